//! Scores on several components, each pair of them in a panel.

use super::scores::{self, ColorBy, ScoresNumbers};
use super::some_components;
use crate::layout::{
    Axis, Entry, LABEL, NARROW, Panel, Sheet, Words, draw_legend_beside, legend, legend_beside,
    legend_height, room,
};
use crate::scale::{Scale, count, several};
use crate::svg::{Anchor, Font, Rect, Stroke};
use crate::text::{Weight, shorten, width};
use crate::{Error, Style, Svg};
use covary::Dataset;
use covary::learned::Learned;
use serde::{Deserialize, Serialize};

/// Components and rows drawn at most.
const MOST_COMPONENTS: usize = 5;
const MOST_POINTS: usize = 1500;

/// The numbers behind a pair plot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairsNumbers {
    /// All components of the model.
    pub n_components: usize,
    /// Rows of the table.
    pub n_rows: usize,
    /// Components shown, from 1.
    pub components: Vec<usize>,
    /// The scores of each component and the next one; those of the last and the first at the end.
    pub pairs: Vec<ScoresNumbers>,
    /// Density of each component, of all rows or of each group.
    pub densities: Vec<Vec<scores::Density>>,
}

/// Asks for them: of many rows those that are evenly spread over the table.
///
/// # Errors
/// As [`scores::numbers`], and [`Error::NoSuchComponent`] for a model with one component.
pub fn numbers(
    learned: &Learned,
    data: &Dataset,
    components: &[usize],
    color_by: Option<&ColorBy>,
) -> Result<PairsNumbers, Error> {
    let has = some_components(learned)?;
    if has < 2 {
        return Err(Error::NoSuchComponent { asked: 2, has });
    }
    let listed: Vec<usize> =
        if components.is_empty() { (1..=has.min(MOST_COMPONENTS)).collect() } else { components.to_vec() };
    let rows = data.spread_rows(MOST_POINTS);
    let some = if rows.len() < data.n_rows() { data.of_rows(&rows)? } else { data.clone() };
    let colored = color_by.map(|color| match color {
        ColorBy::Groups { name, labels } => {
            ColorBy::Groups { name: name.clone(), labels: rows.iter().map(|&i| labels[i].clone()).collect() }
        }
        ColorBy::Values { name, values } => {
            ColorBy::Values { name: name.clone(), values: rows.iter().map(|&i| values[i]).collect() }
        }
    });
    let next = |k: usize| listed[(k + 1) % listed.len()];
    let pair = |(k, &component): (usize, &usize)| {
        scores::numbers(learned, &some, (component, next(k)), &scores::Rows::by(colored.as_ref()))
    };
    let pairs = listed.iter().enumerate().map(pair).collect::<Result<Vec<_>, _>>()?;
    let densities = pairs.iter().map(|n| scores::densities(&n.points, n.n_named)).collect();
    Ok(PairsNumbers { n_components: has, n_rows: data.n_rows(), components: listed, pairs, densities })
}

/// Draws them: densities on the diagonal, points below it.
pub fn draw(numbers: &PairsNumbers, style: &Style) -> Svg {
    let n = numbers;
    let first = &n.pairs[0];
    let m = n.components.len();
    let word = &first.component_word;
    let by = first.color_by.as_ref().map_or(String::new(), |name| format!(", by {name}"));
    let title = format!("Scores on {}, in pairs{by}", several(m, word));
    let mut note = vec!["On the diagonal: densities by a normal kernel.".to_owned()];
    if first.n_rows < n.n_rows {
        note.push(format!(
            "{} of {} rows are shown, evenly spread over the table.",
            count(first.n_rows),
            count(n.n_rows)
        ));
    }
    if first.n_with_gaps > 0 {
        note.push(format!("Hollow: {} with missing values.", several(first.n_with_gaps, "row")));
    }
    if m < n.n_components {
        note.push(format!("{m} of {} {word}s are shown.", n.n_components));
    }
    let usual = 165.0 * m as f64 + 110.0;
    let wide = room(style, usual);
    let p = style.theme.palette();
    let entries: Vec<Entry<'_>> = scores::entries(first, p);
    let by = first.color_by.as_deref().unwrap_or_default();
    let (beside, tall_key) = legend_beside(by, &entries);
    let narrow = wide < NARROW;
    let (side, head) = match (entries.is_empty(), narrow) {
        (true, _) => (0.0, 0.0),
        (false, true) => (0.0, legend_height(&entries, wide) + 4.0),
        (false, false) => (beside + 14.0, 0.0),
    };
    let words = Words { title: &title, subtitle: &first.subject, note: &note.join(" ") };
    let mut sheet = Sheet::new(style, (usual, head + wide - side), &words);
    let (body, canvas) = (sheet.body, &mut sheet.canvas);
    if side > 0.0 {
        let area = Rect { x: body.right() - beside, y: body.y + 8.0, w: beside, h: tall_key };
        draw_legend_beside(canvas, area, by, &entries);
    } else {
        legend(canvas, (body.x, body.y + 9.0), body.w, &entries);
    }
    let whole = Rect { x: body.x, y: body.y + head, w: body.w - side, h: body.h - head };
    let scores_of = |k: usize| n.pairs[k].points.iter().map(|q| q.x).collect::<Vec<_>>();
    let columns: Vec<Vec<f64>> = (0..m).map(scores_of).collect();
    let ends = |k: usize| scores::roomy(Scale::over(columns[k].iter().copied(), false).ends());
    let values: Vec<f64> = first.points.iter().filter_map(|q| q.value).collect();
    let range = Scale::over(values.iter().copied(), false);
    let size = if first.points.len() > 400 { 1.5 } else { 2.2 };
    for i in 0..m {
        for j in 0..=i {
            let outer = whole.row(i, m, 4.0).column(j, m, 4.0);
            let (x, y) = (ends(j), ends(i));
            let ticks = |(from, to): (f64, f64), shown: bool| {
                let ticks = Scale::Linear { from, to }.ticks(3);
                Some(if shown { ticks } else { Vec::new() })
            };
            let axis = |ends: (f64, f64), shown: bool| Axis {
                ticks: ticks(ends, shown),
                ..Axis::new(Scale::Linear { from: ends.0, to: ends.1 }, "")
            };
            if i == j {
                let highest =
                    n.densities[i].iter().flat_map(|d| d.curve.iter().map(|c| c.1)).fold(1e-12, f64::max);
                let up = Axis {
                    ticks: Some(Vec::new()),
                    ..Axis::new(Scale::Linear { from: 0.0, to: 1.3 * highest }, "")
                };
                let panel = Panel::new(canvas, outer, &axis(x, i + 1 == m), &up);
                let name = scores::axis_names(word, (n.components[i], 0), n.pairs[i].shares).0;
                // Without its share where there is no room for that.
                let fits = width(&name, LABEL, Weight::Regular) <= panel.area.w;
                let name = name.split(" (").next().filter(|_| !fits).unwrap_or(&name);
                let at = (panel.area.x + 2.0, panel.area.y + 10.0);
                canvas.clipped(panel.area, |canvas| {
                    for d in &n.densities[i] {
                        let color = d.group.map_or(p.main, |g| scores::look(first, p, g).0);
                        canvas.polyline(d.curve.iter().map(|&c| panel.at(c)), Stroke::new(color, 1.5));
                    }
                });
                canvas.text(at, &shorten(name, LABEL, panel.area.w), Font::label(p.ink, Anchor::Start));
                continue;
            }
            let panel = Panel::new(canvas, outer, &axis(x, i + 1 == m), &axis(y, j == 0));
            canvas.frame(panel.area, None, Stroke::new(p.grid, 1.0));
            canvas.clipped(panel.area, |canvas| {
                for (k, q) in first.points.iter().enumerate() {
                    let (color, kind) = match (q.group, q.value) {
                        (Some(g), _) => scores::look(first, p, g),
                        (_, Some(v)) => (p.sequential(0.25 + 0.75 * range.place(v)), 0),
                        _ => (p.main, 0),
                    };
                    let at = panel.at((columns[j][k], columns[i][k]));
                    let series = q.group.map_or("", |g| first.groups[g].as_str());
                    canvas.labeled(series, "", |canvas| canvas.mark(at, kind, size, color, q.n_gaps > 0));
                }
            });
        }
    }
    sheet.finish()
}
