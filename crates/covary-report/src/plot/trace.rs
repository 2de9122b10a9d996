//! The objective step by step, several fits together.

use crate::layout::{Axis, LABEL, Panel, Sheet, Words, spread};
use crate::scale::{Scale, number, several};
use crate::svg::{Anchor, Font, Rect, Stroke};
use crate::text::{Weight, shorten, width};
use crate::{Error, Style, Svg};
use covary::infer::{ObjectiveKind, Termination};
use covary::learned::Learned;
use serde::{Deserialize, Serialize};

/// Steps drawn of a fit at most; the others are passed over evenly.
const MOST_STEPS: usize = 400;

/// The steps of a fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Steps {
    /// What the reader calls it.
    pub name: String,
    /// The method.
    pub method: String,
    /// What it maximizes.
    pub objective: String,
    /// How it ended.
    pub ending: String,
    /// The objective after each step.
    pub values: Vec<f64>,
}

/// The numbers behind a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceNumbers {
    /// The fits.
    pub fits: Vec<Steps>,
}

/// Asks for them, each fit with the name given.
///
/// # Errors
/// [`Error::NoTrace`] if no fit made steps.
pub fn numbers(fits: &[(String, &Learned)]) -> Result<TraceNumbers, Error> {
    let steps = |(name, learned): &(String, &Learned)| {
        let ending = learned.ending();
        Steps {
            name: name.clone(),
            method: learned.method.name.clone(),
            objective: match ending.objective.map(|objective| objective.kind) {
                Some(ObjectiveKind::LogLikelihood) => "log-likelihood",
                Some(ObjectiveKind::LogPosterior) => "log-posterior",
                Some(ObjectiveKind::LowerBound) => "lower bound",
                Some(ObjectiveKind::AverageLogLikelihood) => "log-likelihood of the draws",
                None => "objective",
            }
            .to_owned(),
            ending: match ending.termination {
                Termination::ClosedForm => "closed form",
                Termination::Converged => "converged",
                Termination::IterationLimit => "stopped at its limit of iterations",
                Termination::Interrupted => "interrupted",
            }
            .to_owned(),
            values: ending.trace.to_vec(),
        }
    };
    let fits: Vec<Steps> = fits.iter().map(steps).collect();
    if fits.iter().all(|f| f.values.len() < 2) {
        return Err(Error::NoTrace);
    }
    Ok(TraceNumbers { fits })
}

/// Draws them: a panel for each kind of objective, since kinds do not compare, and one with the gap
/// of each fit to its final value.
pub fn draw(numbers: &TraceNumbers, style: &Style) -> Svg {
    let fits: Vec<&Steps> = numbers.fits.iter().filter(|f| f.values.len() > 1).collect();
    let mut kinds: Vec<&str> = Vec::new();
    for f in &fits {
        if !kinds.contains(&f.objective.as_str()) {
            kinds.push(&f.objective);
        }
    }
    let steps = |f: &Steps| several(f.values.len() - 1, "step");
    let title = match fits.as_slice() {
        [one] => format!("{} {} after {}", one.method, one.ending, steps(one)),
        many => format!("{} fits, step by step", many.len()),
    };
    let ends: Vec<String> = fits
        .iter()
        .map(|f| {
            format!(
                "{} ({}): {} {}, {} after {}",
                f.name,
                f.method,
                f.objective,
                number(*f.values.last().expect("two at least"), 7),
                f.ending,
                steps(f)
            )
        })
        .collect();
    let subtitle = if fits.len() > 4 { format!("{}; …", ends[..4].join("; ")) } else { ends.join("; ") };
    let mut note = vec!["Right: gap of the objective to its final value, after each step.".to_owned()];
    if kinds.len() > 1 {
        note.push("Objectives of different kinds cannot be compared, so each has its panel.".to_owned());
    }
    let closed = numbers.fits.len() - fits.len();
    if closed > 0 {
        note.push(format!("{} in closed form, without steps.", several(closed, "fit")));
    }
    let panels = kinds.len() + 1;
    let wide = (380.0 * panels as f64).min(1100.0);
    let mut sheet = Sheet::new(
        style,
        (wide, 310.0),
        &Words { title: &title, subtitle: &subtitle, note: &note.join(" ") },
    );
    let (body, p) = (sheet.body, sheet.canvas.palette());
    let canvas = &mut sheet.canvas;
    let names = fits.iter().map(|f| width(&f.name, LABEL, Weight::Regular)).fold(0.0, f64::max).min(90.0);
    let most = |of: &[&Steps]| of.iter().map(|f| f.values.len() - 1).max().unwrap_or(1);
    for (k, kind) in kinds.iter().enumerate() {
        let own: Vec<(usize, &Steps)> =
            fits.iter().copied().enumerate().filter(|(_, f)| f.objective == *kind).collect();
        let outer = body.column(k, panels, 24.0);
        let room = if fits.len() > 1 { names + 12.0 } else { 0.0 };
        // The first steps come from far below: the panel shows what follows, unless there is little of it.
        let all = own.iter().flat_map(|(_, f)| f.values.iter().copied());
        let later = own.iter().flat_map(|(_, f)| f.values[(f.values.len() - 1).min(2)..].iter().copied());
        let (low, high) = Scale::over(all.clone(), false).ends();
        let from_later = later.fold(f64::INFINITY, f64::min);
        let low = if high - low > 20.0 * (high - from_later) && high > from_later {
            high - 1.6 * (high - from_later)
        } else {
            low
        };
        let y = Axis::new(Scale::over([low, high], false), format!("{kind} (nats)"));
        let x = Axis::new(
            Scale::Linear { from: 0.0, to: most(&own.iter().map(|o| o.1).collect::<Vec<_>>()) as f64 },
            "step",
        );
        let panel = Panel::new(canvas, Rect { w: outer.w - room, ..outer }, &x, &y);
        canvas.clipped(
            Rect { y: panel.area.y - 3.0, h: panel.area.h + 3.0, w: panel.area.w + 3.0, ..panel.area },
            |canvas| {
                for (c, f) in &own {
                    let points = thinned(&f.values).into_iter().map(|(s, v)| panel.at((s, v)));
                    canvas.polyline(points, Stroke::new(p.group(*c), 2.0).dashed(dash(*c)));
                }
            },
        );
        if fits.len() > 1 {
            let ends: Vec<f64> =
                own.iter().map(|(_, f)| panel.py(*f.values.last().expect("two at least"))).collect();
            for ((c, f), y) in own.iter().zip(spread(&ends, 13.0, panel.area.y, panel.area.bottom())) {
                let x = panel.px((f.values.len() - 1) as f64).max(panel.area.x);
                let (x, anchor) = if x > panel.area.right() - 40.0 {
                    (panel.area.right() + 6.0, Anchor::Start)
                } else {
                    (x + 5.0, Anchor::Start)
                };
                canvas.text(
                    (x, y + 4.0),
                    &shorten(&f.name, LABEL, names),
                    Font { halo: true, ..Font::label(p.group(*c), anchor) },
                );
            }
        }
    }
    let outer = body.column(panels - 1, panels, 24.0);
    let left = |f: &Steps| -> Vec<(f64, f64)> {
        let end = *f.values.last().expect("two at least");
        thinned(&f.values).into_iter().map(|(s, v)| (s, end - v)).filter(|(_, g)| *g > 1e-9).collect()
    };
    let gaps: Vec<Vec<(f64, f64)>> = fits.iter().map(|f| left(f)).collect();
    let y = Axis::new(Scale::log_over(gaps.iter().flatten().map(|g| g.1)), "gap to the final value (nats)");
    let x = Axis::new(Scale::Linear { from: 0.0, to: most(&fits) as f64 }, "step");
    let panel = Panel::new(canvas, outer, &x, &y);
    for (c, gap) in gaps.iter().enumerate() {
        canvas.polyline(gap.iter().map(|&g| panel.at(g)), Stroke::new(p.group(c), 2.0).dashed(dash(c)));
    }
    sheet.finish()
}

/// Lines of neighbors differ without color, too.
fn dash(k: usize) -> f64 {
    [0.0, 6.0, 2.5, 10.0][k % 4]
}

fn thinned(values: &[f64]) -> Vec<(f64, f64)> {
    let step = values.len().div_ceil(MOST_STEPS);
    let last = values.len() - 1;
    (0..values.len()).filter(|k| k % step == 0 || *k == last).map(|k| (k as f64, values[k])).collect()
}
