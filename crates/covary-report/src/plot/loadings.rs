//! Loadings as bars, with intervals where the fit knows them.

use super::{communalities, component_word, conditions, largest, some_components, standardized_loadings};
use crate::layout::{LABEL, NARROW, Sheet, Words, names_width, room};
use crate::scale::{Scale, count, number, percent};
use crate::svg::{Anchor, Font, Rect, Stroke};
use crate::text::{Weight, in_tip, name_lines, shorten};
use crate::{Error, Style, Svg};
use covary::learned::Learned;
use covary::model::FilledCell;
use serde::{Deserialize, Serialize};

/// Columns drawn at most, and components.
const MOST_COLUMNS: usize = 40;
const MOST_COMPONENTS: usize = 6;

/// A loading in standard deviations of its column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Loading {
    /// Its value.
    pub value: f64,
    /// Ends of its 95 % interval.
    pub interval: Option<(f64, f64)>,
}

/// The numbers behind a plot of loadings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadingsNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// `component`, or `factor`.
    pub component_word: String,
    /// Components drawn, from 1.
    pub components: Vec<usize>,
    /// All components.
    pub n_components: usize,
    /// Share of the variance that each drawn component explains; none for rotated ones.
    pub shares: Option<Vec<f64>>,
    /// Columns drawn.
    pub columns: Vec<String>,
    /// All columns.
    pub n_columns: usize,
    /// A row for each of `columns`, an entry for each of `components`.
    pub loadings: Vec<Vec<Loading>>,
}

/// Asks for them: the components listed, from 1, or the first six.
///
/// # Errors
/// [`Error::NoComponents`], or [`Error::NoSuchComponent`] for one that the model lacks.
pub fn numbers(learned: &Learned, components: Option<&[usize]>) -> Result<LoadingsNumbers, Error> {
    let (loadings, sds) = standardized_loadings(learned)?;
    let has = some_components(learned)?;
    // A rotation is chosen by the loadings themselves: what is known of them before it does not carry over.
    let unrotated = learned.linear().ok().filter(|fit| fit.rotation.is_none());
    let components: Vec<usize> = match components {
        Some(listed) => listed.to_vec(),
        None => (1..=has.min(MOST_COMPONENTS)).collect(),
    };
    if let Some(&asked) = components.iter().find(|k| **k == 0 || **k > has) {
        return Err(Error::NoSuchComponent { asked, has });
    }
    let spread = unrotated.and_then(covary::learned::LinearFit::loading_sds);
    let drawn = largest(&communalities(&loadings), MOST_COLUMNS);
    let of = |j: usize, k: usize| {
        let value = loadings[(j, k)];
        let interval = spread
            .as_ref()
            .map(|s| FilledCell::normal(0, 0, value, s[(j, k)] / sds[j]).interval(0.95).expect("a level"));
        Loading { value, interval }
    };
    let shares = unrotated.map(|fit| fit.model.explained_variance_ratio());
    Ok(LoadingsNumbers {
        subject: conditions(learned),
        component_word: component_word(learned).to_owned(),
        shares: shares.map(|s| components.iter().map(|k| s[k - 1]).collect()),
        columns: drawn.iter().map(|&j| learned.columns[j].clone()).collect(),
        n_columns: learned.columns.len(),
        loadings: drawn.iter().map(|&j| components.iter().map(|k| of(j, k - 1)).collect()).collect(),
        n_components: has,
        components,
    })
}

/// Draws them: a panel for each component, columns below each other.
pub fn draw(numbers: &LoadingsNumbers, style: &Style) -> Svg {
    let n = numbers;
    let word = &n.component_word;
    let known = n.loadings.iter().flatten().any(|l| l.interval.is_some());
    let title = if known {
        format!("Loadings on {word}s, with 95 % intervals")
    } else {
        format!("Loadings on {word}s")
    };
    let mut note = vec![if known {
        "Pale: the interval includes 0.".to_owned()
    } else {
        "The fit takes its parameters as known, so there are no intervals; Bayesian PCA computes them."
            .to_owned()
    }];
    if n.n_columns > n.columns.len() {
        note.push(format!(
            "Shown are the {} of {} columns that the {word}s explain best.",
            n.columns.len(),
            count(n.n_columns)
        ));
    }
    // A narrow figure shows four of many.
    let narrow = room(style, 1000.0) < NARROW;
    let shown_components = if narrow { n.components.len().min(4) } else { n.components.len() };
    let panels = shown_components.max(1);
    if n.n_components > shown_components {
        note.push(format!("{shown_components} of {} {word}s are shown.", n.n_components));
    }
    let line = (640.0 / n.columns.len().max(1) as f64).clamp(15.0, 22.0);
    let names = names_width(&n.columns, 220.0);
    let wide = (names + 60.0 + 170.0 * panels as f64).clamp(460.0, 1080.0);
    // Panels that would be too narrow stand below each other.
    let beside = room(style, wide) - names.min(0.4 * room(style, wide)) - 18.0;
    let across = ((beside + 18.0) / 80.0).floor().clamp(1.0, panels as f64) as usize;
    let down = panels.div_ceil(across);
    let tall = (line * n.columns.len() as f64 + 66.0) * down as f64 - 18.0 * (down as f64 - 1.0);
    let mut sheet = Sheet::new(
        style,
        (wide, tall.max(150.0)),
        &Words { title: &title, subtitle: &n.subject, note: &note.join(" ") },
    );
    let (body, p) = (sheet.body, sheet.canvas.palette());
    let canvas = &mut sheet.canvas;
    let names = names.min(0.4 * body.w);
    let all = n.loadings.iter().flatten();
    let ends = all.flat_map(|l| [l.value, l.interval.map_or(0.0, |i| i.0), l.interval.map_or(0.0, |i| i.1)]);
    let scale = Scale::over(ends.chain([0.0]), true);
    let area = body.inside(names + 12.0, 0.0, 6.0, 20.0);
    let strip = |k: usize| area.row(k, down, 6.0).inside(0.0, 26.0, 0.0, 18.0);
    let line = strip(0).h / n.columns.len().max(1) as f64;
    let shown = name_lines(&n.columns, LABEL, names, if line >= 25.0 { 2 } else { 1 });
    for k in 0..down {
        for (j, name) in n.columns.iter().enumerate() {
            let y = strip(k).y + (j as f64 + 0.5) * line;
            canvas.name((area.x - 8.0, y), name, &shown[j], Font::label(p.ink, Anchor::End));
        }
    }
    for k in 0..shown_components {
        let panel = strip(k / across).column(k % across, across, if narrow { 18.0 } else { 30.0 });
        let place = |v: f64| panel.x + panel.w * scale.place(v);
        let text = match &n.shares {
            Some(s) if word == "component" => format!("PC{} ({})", n.components[k], percent(s[k])),
            Some(s) => format!("{word} {} ({})", n.components[k], percent(s[k])),
            None => format!("{word} {}", n.components[k]),
        };
        let text = shorten(&text, LABEL, panel.w + if narrow { 14.0 } else { 26.0 });
        canvas.text((panel.x, panel.y - 10.0), &text, Font { weight: Weight::Regular, ..Font::default() });
        for tick in scale.ticks((panel.w / 46.0).clamp(1.0, 5.0) as usize) {
            let x = place(tick.value);
            canvas.line((x, panel.y), (x, panel.bottom()), Stroke::new(p.grid, 1.0));
            canvas.text((x, panel.bottom() + 15.0), &tick.text, Font::label(p.muted, Anchor::Middle));
        }
        for (j, row) in n.loadings.iter().enumerate() {
            let Loading { value, interval } = &row[k];
            let (y, thick) = (panel.y + (j as f64 + 0.5) * line, (0.58 * line).min(12.0));
            let (from, to) = (place(0.0), place(*value));
            let full = if *value < 0.0 { p.negative } else { p.positive };
            let unsure = interval.is_some_and(|(a, b)| a <= 0.0 && b >= 0.0);
            let color = if unsure { full.towards(p.paper, 0.6) } else { full };
            let between = interval
                .map_or(String::new(), |(a, b)| format!(", 95 % from {} to {}", number(a, 3), number(b, 3)));
            let tip = format!(
                "{} on {word} {}: {}{between}",
                in_tip(&n.columns[j]),
                n.components[k],
                number(*value, 3)
            );
            canvas.labeled("", &tip, |canvas| {
                let bar = Rect { x: from.min(to), y: y - 0.5 * thick, w: (to - from).abs(), h: thick };
                if unsure {
                    canvas.frame(bar, Some(color), Stroke::new(full, 0.8));
                } else {
                    canvas.rect(bar, color);
                }
                if let Some((a, b)) = interval {
                    canvas.line((place(*a), y), (place(*b), y), Stroke::new(p.ink, 1.2));
                }
            });
        }
        canvas.line((place(0.0), panel.y), (place(0.0), panel.bottom()), Stroke::new(p.axis, 1.0));
    }
    let font = Font { anchor: Anchor::Middle, ..Font::default() };
    let text = shorten("loading, in standard deviations of the column", LABEL, body.w);
    let middle =
        (area.x + 0.5 * area.w).min(body.right() - 0.5 * crate::text::width(&text, LABEL, Weight::Regular));
    canvas.text((middle, body.bottom() - 6.0), &text, font);
    sheet.finish()
}
