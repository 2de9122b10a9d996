//! Independent sources as curves over the rows, one below the other.

use crate::layout::{Axis, LABEL, Panel, Sheet, Words};
use crate::scale::{Scale, Tick, count, number, percent, several};
use crate::svg::{Anchor, Font, Rect, Stroke};
use crate::text::shorten;
use crate::{Error, Style, Svg};
use covary::Dataset;
use covary::ica::looks_gaussian;
use covary::learned::Learned;
use serde::{Deserialize, Serialize};

/// Places of a curve at most; of longer tables each holds the least and the largest of its rows.
const MOST_PLACES: usize = 800;
/// Sources drawn at most, those that explain most.
const MOST_SOURCES: usize = 12;
/// Room for the numbers of a source, right of its curve.
const MARGIN: f64 = 108.0;

/// A source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Its excess kurtosis when it was found.
    pub kurtosis: f64,
    /// Whether that is a Gaussian's.
    pub looks_gaussian: bool,
    /// Share of the table's variance that it explains.
    pub share: f64,
    /// The least and the largest value at every place, in the order in which they come.
    pub spans: Vec<(f64, f64)>,
}

/// The numbers behind the curves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourcesNumbers {
    /// How they were found.
    pub method: String,
    /// Rows of the table.
    pub n_rows: usize,
    /// Rows at one place.
    pub rows_per_place: usize,
    /// Sources there are.
    pub n_components: usize,
    /// Those that explain most.
    pub sources: Vec<Curve>,
}

/// Asks for them.
///
/// # Errors
/// Those of [`Mixing::transform`](covary::ica::Mixing::transform).
pub fn numbers(learned: &Learned, data: &Dataset) -> Result<SourcesNumbers, Error> {
    let fit = learned.sources()?;
    let sources = fit.model.transform(data)?;
    let (n, q) = (sources.n_rows(), sources.n_columns());
    let rows_per_place = n.div_ceil(MOST_PLACES).max(1);
    let share = learned.source_variance_ratio()?;
    let curve = |i: usize| {
        let ends = |rows: &[f64]| {
            let by = |a: &usize, b: &usize| rows[*a].total_cmp(&rows[*b]);
            let low = (0..rows.len()).min_by(by).expect("a place has rows");
            let high = (0..rows.len()).rev().max_by(by).expect("a place has rows");
            (rows[low.min(high)], rows[low.max(high)])
        };
        let kurtosis = fit.kurtosis[i];
        Curve {
            kurtosis,
            looks_gaussian: looks_gaussian(kurtosis),
            share: share[i],
            spans: sources.column(i).chunks(rows_per_place).map(ends).collect(),
        }
    };
    Ok(SourcesNumbers {
        method: learned.method.name.clone(),
        n_rows: n,
        rows_per_place,
        n_components: q,
        sources: (0..q.min(MOST_SOURCES)).map(curve).collect(),
    })
}

/// Draws them: a panel each, all with the same rows and the same scale.
pub fn draw(numbers: &SourcesNumbers, style: &Style) -> Svg {
    let shown = numbers.sources.len();
    let gaussian = numbers.sources.iter().filter(|s| s.looks_gaussian).count();
    let title = match gaussian {
        0 | 1 => several(numbers.n_components, "independent source"),
        n => format!(
            "{}, {n} of them not distinguishable from Gaussian",
            several(numbers.n_components, "source")
        ),
    };
    let subtitle = format!(
        "{} by {}; each in its standard deviations, with its proportion of variance and its excess kurtosis",
        several(numbers.n_rows, "row"),
        numbers.method
    );
    let mut note = Vec::new();
    if numbers.rows_per_place > 1 {
        note.push(format!(
            "The curve is the envelope of {} rows at a time: it goes through their minimum and their maximum.",
            count(numbers.rows_per_place)
        ));
    }
    if shown < numbers.n_components {
        note.push(format!("The {shown} that explain most are shown."));
    }
    let height = 120.0 + 74.0 * shown as f64;
    let words = Words { title: &title, subtitle: &subtitle, note: &note.join(" ") };
    let mut sheet = Sheet::new(style, (760.0, height), &words);
    let (body, p) = (sheet.body, sheet.canvas.palette());
    let canvas = &mut sheet.canvas;
    let ends = numbers.sources.iter().flat_map(|s| &s.spans).flat_map(|&(low, high)| [low, high]);
    let y_scale = Scale::over(ends, false);
    let x_scale = Scale::Linear { from: 1.0, to: (numbers.n_rows as f64).max(2.0) };
    let foot = 38.0;
    let rows = Rect { h: (body.h - foot).max(10.0), ..body };
    for (k, source) in numbers.sources.iter().enumerate() {
        let last = k + 1 == shown;
        let own = rows.row(k, shown, 0.0);
        // Ticks and name of the rows stand below the last panel only.
        let room = Rect { w: (own.w - MARGIN).max(20.0), h: own.h + if last { foot } else { 22.0 }, ..own };
        let lines = x_scale.ticks(7).into_iter().map(|tick| Tick { text: String::new(), ..tick });
        let mut x = Axis::new(x_scale, if last { "row" } else { "" });
        x.ticks = Some(if last { x_scale.ticks(7) } else { lines.collect() });
        let mut y = Axis::new(y_scale, "");
        y.ticks = Some(y_scale.ticks(3));
        let panel = Panel::new(canvas, room, &x, &y);
        let color = p.group(k);
        let at = |place: usize| 1.0 + (place * numbers.rows_per_place) as f64;
        let points = source.spans.iter().enumerate().flat_map(|(place, &(first, second))| {
            let pair = [first, second].into_iter().take(if first == second { 1 } else { 2 });
            pair.map(move |v| (at(place), v))
        });
        let points: Vec<(f64, f64)> = points.map(|at| panel.at(at)).collect();
        let name = format!("source {}", k + 1);
        let tip = format!("{name}: excess kurtosis {}", number(source.kurtosis, 3));
        canvas.labeled(&name, &tip, |canvas| canvas.polyline(points, Stroke::new(color, 1.2)));
        let x = panel.area.right() + 10.0;
        let middle = panel.area.y + 0.5 * panel.area.h;
        let kurtosis = format!("kurtosis {}", number(source.kurtosis, 3));
        let doubt = if source.looks_gaussian { "near Gaussian" } else { "" };
        let share = format!("share {}", percent(source.share));
        for (line, (text, ink)) in
            [(name.as_str(), color), (&share, p.muted), (&kurtosis, p.muted), (doubt, p.ink)]
                .iter()
                .enumerate()
        {
            let text = shorten(text, LABEL, MARGIN - 10.0);
            canvas.text((x, middle - 12.0 + 14.0 * line as f64), &text, Font::label(*ink, Anchor::Start));
        }
    }
    sheet.finish()
}
