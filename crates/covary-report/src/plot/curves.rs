//! Curves through their points, with bands.

use super::conditions;
use super::eigenfunctions::time_name;
use crate::layout::{Axis, Entry, LABEL, Look, NARROW, Panel, Sheet, Words, legend, legend_height, room};
use crate::scale::{Scale, several};
use crate::svg::{Rect, Stroke};
use crate::text::{in_tip, shortened};
use crate::{Error, Style, Svg};
use covary::functional::column_times;
use covary::learned::Learned;
use covary::{Dataset, functional::PredictedCurve};
use serde::{Deserialize, Serialize};

/// Curves drawn at most.
const MOST_CURVES: usize = 12;
/// Times at which curves are drawn.
const TIMES: usize = 101;
/// Standard deviations to either end of a 95 % band.
const WITHIN: f64 = 1.959_963_984_540_054;

/// A curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// What it is called.
    pub name: String,
    /// Its observed points: time and value.
    pub points: Vec<(f64, f64)>,
    /// Its mean at the times of [`CurvesNumbers`], given its points.
    pub means: Vec<f64>,
    /// Standard deviations of the curve itself.
    pub sds: Vec<f64>,
}

/// The numbers behind curves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurvesNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// What times are called.
    pub time: String,
    /// The times.
    pub times: Vec<f64>,
    /// The mean of all curves at these times.
    pub mean: Vec<f64>,
    /// Curves of the table.
    pub n_curves: usize,
    /// Those that are shown, spread over the table.
    pub curves: Vec<Curve>,
}

/// Asks for some curves of a table, given their points.
///
/// # Errors
/// [`covary::Error::NotCurves`] for other models, and those of the model for a table it cannot be asked about.
pub fn numbers(learned: &Learned, data: &Dataset) -> Result<CurvesNumbers, Error> {
    let model = &learned.functional()?.model;
    let times = model.basis().grid(TIMES);
    let (rows, names): (Vec<Vec<usize>>, Vec<String>) = match data.points() {
        Some(points) => (points.of_curves(), points.names().to_vec()),
        None => (0..data.n_rows()).map(|i| (vec![i], row_name(data, i))).unzip(),
    };
    let n_curves = rows.len();
    let every = n_curves.div_ceil(MOST_CURVES);
    let shown: Vec<usize> = (0..n_curves).step_by(every).collect();
    let some = data.of_rows(&shown.iter().flat_map(|&i| rows[i].iter().copied()).collect::<Vec<_>>())?;
    let predicted = model.predict(&some, &times)?;
    let observed = |i: usize| -> Vec<(f64, f64)> {
        let seen = |&(_, value): &(f64, f64)| !value.is_nan();
        let mut points: Vec<(f64, f64)> = if let Some(points) = data.points() {
            rows[i].iter().map(|&r| (points.times()[r], data.row(r)[0])).filter(seen).collect()
        } else {
            let values = data.row(i).iter().copied();
            column_times(data.column_names()).into_iter().zip(values).filter(seen).collect()
        };
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let curve = |(&i, of): (&usize, PredictedCurve)| Curve {
        name: names[i].clone(),
        points: observed(i),
        means: of.means,
        sds: of.sds,
    };
    Ok(CurvesNumbers {
        subject: conditions(learned),
        time: time_name(learned),
        mean: model.mean_at(&times)?.values.column(0),
        times,
        n_curves,
        curves: shown.iter().zip(predicted).map(curve).collect(),
    })
}

fn row_name(data: &Dataset, i: usize) -> String {
    data.row_labels().map_or_else(|| format!("row {}", i + 1), |labels| labels[i].clone())
}

/// Draws them: a panel for each, all with the same scales.
pub fn draw(numbers: &CurvesNumbers, style: &Style) -> Svg {
    let n = numbers;
    let title = format!("{} given their points", several(n.n_curves, "curve"));
    let mut note = vec![
        "Bands are 95 % intervals of the curve itself at each time, without the noise of a point.".to_owned(),
    ];
    if n.curves.len() < n.n_curves {
        note.push(format!("{} of {} are shown.", n.curves.len(), several(n.n_curves, "curve")));
    }
    let across = match n.curves.len() {
        0 | 1 => 1,
        2..=4 => 2,
        _ => 3,
    };
    let wide = room(style, 860.0);
    let across = across.min((wide / if wide < NARROW { 130.0 } else { 240.0 }).max(1.0) as usize);
    let down = n.curves.len().div_ceil(across).max(1);
    let p = style.theme.palette();
    let entries = [
        Entry { text: "observed", color: p.ink, look: Look::Mark { kind: 1, hollow: false } },
        Entry { text: "curve", color: p.main, look: Look::Line { dash: 0.0 } },
        Entry { text: "95 % interval", color: p.paper.towards(p.main, 0.22), look: Look::Box },
        Entry { text: "mean of all curves", color: p.muted, look: Look::Line { dash: 3.0 } },
    ];
    let head = legend_height(&entries, wide) + 5.0;
    let words = Words { title: &title, subtitle: &n.subject, note: &note.join(" ") };
    let mut sheet = Sheet::new(style, (860.0, head + 158.0 * down as f64), &words);
    let (body, canvas) = (sheet.body, &mut sheet.canvas);
    legend(canvas, (body.x, body.y + 8.0), body.w, &entries);
    let grid = body.inside(0.0, head, 0.0, 0.0);
    let ends = |curve: &Curve, i: usize| {
        let reach = WITHIN * curve.sds[i];
        (curve.means[i] - reach, curve.means[i] + reach)
    };
    let values = n.curves.iter().flat_map(|curve| {
        let bands = (0..n.times.len()).flat_map(|i| [ends(curve, i).0, ends(curve, i).1]);
        bands.chain(curve.points.iter().map(|point| point.1))
    });
    let (low, high) = Scale::over(values.chain(n.mean.iter().copied()), false).ends();
    let around = 0.04 * (high - low);
    let (from, to) = (n.times[0], n.times[n.times.len() - 1]);
    let names: Vec<String> = n.curves.iter().map(|curve| curve.name.clone()).collect();
    let names = shortened(&names, LABEL, grid.column(0, across, 14.0).w - 14.0);
    for (k, (curve, name)) in n.curves.iter().zip(names).enumerate() {
        let cell = grid.row(k / across, down, 4.0).column(k % across, across, 14.0);
        let last = k + across >= n.curves.len();
        let y = Axis::new(Scale::Linear { from: low - around, to: high + around }, name);
        let x = Axis::new(Scale::Linear { from, to }, if last { n.time.clone() } else { String::new() });
        let panel = Panel::new(canvas, cell, &x, &y);
        let line = |values: &[f64]| -> Vec<(f64, f64)> {
            n.times.iter().zip(values).map(|(&t, &v)| panel.at((t, v))).collect()
        };
        canvas.clipped(panel.area, |canvas| {
            let upper = n.times.iter().enumerate().map(|(i, &t)| panel.at((t, ends(curve, i).1)));
            let lower = n.times.iter().enumerate().rev().map(|(i, &t)| panel.at((t, ends(curve, i).0)));
            let corners: Vec<(f64, f64)> = upper.chain(lower).collect();
            canvas.polygon(&corners, p.main, 0.22);
            canvas.polyline(line(&n.mean), Stroke::new(p.muted, 1.0).dashed(3.0));
            canvas.labeled("", &in_tip(&curve.name), |canvas| {
                canvas.polyline(line(&curve.means), Stroke::new(p.main, 1.4));
            });
            let side = if curve.points.len() > 100 { 1.6 } else { 3.2 };
            let dots: Vec<Rect> = curve
                .points
                .iter()
                .map(|&point| panel.at(point))
                .map(|(x, y)| Rect { x: x - 0.5 * side, y: y - 0.5 * side, w: side, h: side })
                .collect();
            canvas.cells(&dots, p.ink);
        });
    }
    sheet.finish()
}
