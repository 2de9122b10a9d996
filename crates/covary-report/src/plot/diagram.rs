//! The path diagram of a factor analysis: factors, the columns they load on, how factors are correlated, what is left
//! unexplained, and how well it all fits.

use super::{component_word, conditions, largest, some_components, standardized_loadings};
use crate::layout::{Entry, LABEL, Look, NARROW, Sheet, Words, legend, names_width, spread};
use crate::scale::{minus, several};
use crate::svg::{Anchor, Canvas, Font, Rect, Stroke};
use crate::text::{capital, in_tip, name_lines};
use crate::{Error, Style, Svg};
use covary::learned::Learned;
use serde::{Deserialize, Serialize};

/// Loadings and correlations below it have no arrow, except for the largest loading of a column.
const LEAST: f64 = 0.3;
/// Columns at most: those that the factors explain best.
const MOST_COLUMNS: usize = 40;
/// Height of a column, and of its box.
const STEP: f64 = 27.0;
const BOX: f64 = 19.0;

/// A column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Its name.
    pub name: String,
    /// Its loadings, in standard deviations of the column.
    pub loadings: Vec<f64>,
    /// Share of its variance that is noise.
    pub uniqueness: f64,
}

/// The numbers behind a path diagram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiagramNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// What a component is called.
    pub word: String,
    /// The columns, those of the first factor first.
    pub columns: Vec<Measured>,
    /// All columns of the model.
    pub n_columns: usize,
    /// Correlations of the factors.
    pub correlations: Vec<Vec<f64>>,
    /// How well it fits, a line for each statistic, if that is known.
    pub fit: Vec<String>,
}

/// Asks for them.
///
/// # Errors
/// [`Error::NoComponents`] without factors, [`covary::Error::NotOneModel`] and the like for models without loadings, and
/// [`Error::NoFactors`] for those that are no factor analysis.
pub fn numbers(learned: &Learned) -> Result<DiagramNumbers, Error> {
    let linear = learned.linear()?;
    if linear.fit_statistics.is_none() && linear.rotation.is_none() {
        return Err(Error::NoFactors);
    }
    let q = some_components(learned)?;
    let (loadings, sds) = standardized_loadings(learned)?;
    let uniqueness = |j: usize| linear.model.noise().variance(j) / (sds[j] * sds[j]);
    let explained: Vec<f64> = (0..sds.len()).map(|j| 1.0 - uniqueness(j)).collect();
    let main = |j: usize| {
        let size = |k: &usize| loadings[(j, *k)].abs();
        (0..q).max_by(|a, b| size(a).total_cmp(&size(b)).then(b.cmp(a))).unwrap_or(0)
    };
    let mut shown = largest(&explained, MOST_COLUMNS);
    shown.sort_by(|&a, &b| {
        let size = |j: usize| loadings[(j, main(j))].abs();
        main(a).cmp(&main(b)).then(size(b).total_cmp(&size(a))).then(a.cmp(&b))
    });
    let column = |&j: &usize| Measured {
        name: learned.columns[j].clone(),
        loadings: loadings.row(j).to_vec(),
        uniqueness: uniqueness(j),
    };
    let unit = |k: usize| (0..q).map(|l| if k == l { 1.0 } else { 0.0 }).collect();
    Ok(DiagramNumbers {
        subject: conditions(learned),
        word: component_word(learned).to_owned(),
        columns: shown.iter().map(column).collect(),
        n_columns: sds.len(),
        correlations: match &linear.rotation {
            Some(r) => r.rotated.factor_correlations.rows().map(<[f64]>::to_vec).collect(),
            None => (0..q).map(unit).collect(),
        },
        fit: linear.fit_statistics.as_ref().map(crate::words::fit_statistics).unwrap_or_default(),
    })
}

/// Two digits without the zero before the point, as correlations are printed.
fn short(value: f64) -> String {
    minus(&format!("{value:.2}")).replacen("0.", ".", 1)
}

/// Draws them.
pub fn draw(numbers: &DiagramNumbers, style: &Style) -> Svg {
    let n = numbers;
    let q = n.correlations.len();
    let title = format!("{} and the columns they load on", several(q, &n.word));
    let title = title.replace("1 factor and the columns they load", "One factor and the columns it loads");
    let title =
        title.replace("1 component and the columns they load", "One component and the columns it loads");
    let mut note: Vec<String> = n.fit.iter().map(|line| format!("{}.", capital(line))).collect();
    note.push(format!(
        "Arrows: loadings of at least {LEAST} in standard deviations of the column, and the largest of each; the wider, the larger. At the right: uniqueness, the proportion of variance that is noise."
    ));
    if q > 1 {
        note.push(format!("Arcs: correlations of the {}s of at least 0.1.", n.word));
    }
    if n.columns.len() < n.n_columns {
        note.push(format!(
            "Shown are the {} of {} columns that the {}s explain best.",
            n.columns.len(),
            n.n_columns,
            n.word
        ));
    }
    let names: Vec<String> = n.columns.iter().map(|c| c.name.clone()).collect();
    let arcs = if q > 1 { 46.0 } else { 0.0 };
    let usual = (600.0, 26.0 + STEP * n.columns.len().max(2 * q) as f64);
    let mut sheet =
        Sheet::new(style, usual, &Words { title: &title, subtitle: &n.subject, note: &note.join(" ") });
    let (body, p) = (sheet.body, sheet.canvas.palette());
    let narrow = body.w < NARROW;
    let canvas = &mut sheet.canvas;
    let keys = [
        Entry { text: "positive", color: p.main, look: Look::Line { dash: 0.0 } },
        Entry { text: "negative", color: p.second, look: Look::Line { dash: 4.0 } },
    ];
    legend(canvas, (body.x, body.y + 8.0), body.w, &keys);
    let area = body.inside(arcs, 26.0, 34.0, 0.0);
    let names_room = names_width(&names, if narrow { 0.4 * area.w } else { 200.0 }) + 12.0;
    let boxes = area.right() - names_room;
    let step = area.h / n.columns.len().max(1) as f64;
    let of_column = |i: usize| area.y + (i as f64 + 0.5) * step;
    // A factor stands at the middle of the columns it loads on most.
    let (rx, ry) = (if narrow { 17.0 } else { 30.0 }, 15.0);
    let main = |c: &Measured| {
        let size = |k: &usize| c.loadings[*k].abs();
        (0..q).max_by(|a, b| size(a).total_cmp(&size(b)).then(b.cmp(a))).unwrap_or(0)
    };
    let middle = |k: usize| {
        let own: Vec<f64> =
            (0..n.columns.len()).filter(|&i| main(&n.columns[i]) == k).map(of_column).collect();
        if own.is_empty() { area.y + 0.5 * area.h } else { own.iter().sum::<f64>() / own.len() as f64 }
    };
    let wanted: Vec<f64> = (0..q).map(middle).collect();
    let at = spread(&wanted, 2.0 * ry + 10.0, area.y + ry, area.bottom() - ry);
    let x_factor = area.x + rx + 2.0;
    for (k, line) in n.correlations.iter().enumerate() {
        for (l, &r) in line.iter().enumerate().skip(k + 1).filter(|(_, r)| r.abs() >= 0.1) {
            arc(canvas, (x_factor - rx, at[k]), (x_factor - rx, at[l]), r, arcs);
        }
    }
    let mut arrows = Vec::new();
    for (i, c) in n.columns.iter().enumerate() {
        let largest = main(c);
        // Arrows into one box end below each other, those from above first.
        let mut from: Vec<usize> = (0..q).filter(|&k| k == largest || c.loadings[k].abs() >= LEAST).collect();
        from.sort_by(|&a, &b| at[a].total_cmp(&at[b]));
        for (place, &k) in from.iter().enumerate() {
            let end = of_column(i) + (place as f64 - 0.5 * (from.len() as f64 - 1.0)) * 8.0;
            arrows.push(((x_factor + rx, at[k]), (boxes - 2.0, end), i, k));
        }
    }
    // The numbers of main loadings choose their places first, each where no other stands.
    arrows.sort_by_key(|&(_, _, i, k)| main(&n.columns[i]) != k);
    let mut taken: Vec<(f64, f64)> = Vec::new();
    for &(from, to, i, k) in &arrows {
        let (c, w) = (&n.columns[i], n.columns[i].loadings[k]);
        let along = |t: f64| (from.0 + t * (to.0 - from.0), from.1 + t * (to.1 - from.1));
        let free =
            |&at: &(f64, f64)| taken.iter().all(|t| (t.0 - at.0).abs() > 24.0 || (t.1 - at.1).abs() > 11.0);
        let places = [0.78, 0.7, 0.62, 0.54, 0.46, 0.38, 0.3, 0.86].map(along);
        let label = places.into_iter().find(free).unwrap_or(places[0]);
        taken.push(label);
        let color = if w < 0.0 { p.second } else { p.main };
        let tip = format!("{} {}: {} on {}", n.word, k + 1, short(w), in_tip(&c.name));
        canvas.labeled(if w < 0.0 { "negative" } else { "positive" }, &tip, |canvas| {
            let stroke =
                Stroke::new(color, 0.6 + 2.0 * w.abs().min(1.2)).faint(0.25 + 0.75 * w.abs().min(1.0));
            canvas.line(from, to, if w < 0.0 { stroke.dashed(4.0) } else { stroke });
            head(canvas, from, to, color);
            let font = Font { halo: true, size: LABEL - 1.0, ..Font::label(p.ink, Anchor::Middle) };
            canvas.text((label.0, label.1 + 3.5), &short(w), font);
        });
    }
    let lines = name_lines(&names, LABEL, names_room - 12.0, 1);
    for (i, c) in n.columns.iter().enumerate() {
        let y = of_column(i);
        let frame =
            Rect { x: boxes, y: y - 0.5 * BOX.min(step - 2.0), w: names_room, h: BOX.min(step - 2.0) };
        canvas.frame(frame, Some(p.paper), Stroke::new(p.muted, 1.0));
        canvas.name((boxes + 6.0, y), &c.name, &lines[i], Font::label(p.ink, Anchor::Start));
        let tip = format!("uniqueness of {}: {}", in_tip(&c.name), short(c.uniqueness));
        canvas.labeled("", &tip, |canvas| {
            canvas.text(
                (area.right() + 6.0, y + 4.0),
                &short(c.uniqueness),
                Font::label(p.muted, Anchor::Start),
            );
        });
    }
    for (k, &y) in at.iter().enumerate() {
        canvas.oval((x_factor, y), (rx, ry), p.paper, Stroke::new(p.ink, 1.3));
        let text = if narrow { (k + 1).to_string() } else { format!("{} {}", n.word, k + 1) };
        let size = if n.word.len() > 6 { LABEL - 2.0 } else { LABEL };
        canvas.text((x_factor, y + 4.0), &text, Font { size, ..Font::label(p.ink, Anchor::Middle) });
    }
    sheet.finish()
}

/// The head of an arrow.
fn head(canvas: &mut Canvas, from: (f64, f64), to: (f64, f64), color: crate::theme::Color) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(1e-9);
    let (ux, uy) = (dx / length, dy / length);
    let corner = |side: f64| (to.0 - 7.0 * ux - side * 2.8 * uy, to.1 - 7.0 * uy + side * 2.8 * ux);
    canvas.polygon(&[to, corner(1.0), corner(-1.0)], color, 1.0);
}

/// An arc between two factors with their correlation.
fn arc(canvas: &mut Canvas, from: (f64, f64), to: (f64, f64), r: f64, room: f64) {
    let p = canvas.palette();
    let color = if r < 0.0 { p.second } else { p.main };
    let out = (0.35 * (to.1 - from.1).abs()).clamp(14.0, room - 12.0);
    // A parabola through its furthest point.
    let point = |k: usize| {
        let t = k as f64 / 24.0;
        (from.0 + t * (to.0 - from.0) - 4.0 * out * t * (1.0 - t), from.1 + t * (to.1 - from.1))
    };
    let tip = format!("correlation {}", short(r));
    canvas.labeled(if r < 0.0 { "negative" } else { "positive" }, &tip, |canvas| {
        let stroke = Stroke::new(color, 0.6 + 2.0 * r.abs());
        canvas.polyline((0..=24).map(point), if r < 0.0 { stroke.dashed(4.0) } else { stroke });
        head(canvas, point(2), point(0), color);
        head(canvas, point(22), point(24), color);
        let at = point(12);
        let font = Font { halo: true, size: LABEL - 1.0, ..Font::label(p.ink, Anchor::Middle) };
        canvas.text((at.0, at.1 + 3.5), &short(r), font);
    });
}
