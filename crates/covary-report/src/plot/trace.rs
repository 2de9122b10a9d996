//! The objective step by step, several fits together.

use crate::layout::{Axis, Entry, Look, Panel, Sheet, Words, in_proportion, legend, legend_height, room};
use crate::scale::{Scale, number, several};
use crate::svg::Stroke;
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

/// Draws them: how far each fit was from its final value, on a logarithmic scale, where kinds of objectives can share a
/// panel.
pub fn draw(numbers: &TraceNumbers, style: &Style) -> Svg {
    let fits: Vec<&Steps> = numbers.fits.iter().filter(|f| f.values.len() > 1).collect();
    let steps = |f: &Steps| several(f.values.len() - 1, "step");
    let title = match fits.as_slice() {
        [one] => format!("{} {} after {}", one.method, one.ending, steps(one)),
        many => format!("{} fits, step by step", many.len()),
    };
    let end = |f: &Steps| *f.values.last().expect("two at least");
    let ends: Vec<String> = fits
        .iter()
        .map(|f| {
            format!(
                "{} ({}): {} {}, {} after {}",
                f.name,
                f.method,
                f.objective,
                number(end(f), 7),
                f.ending,
                steps(f)
            )
        })
        .collect();
    let subtitle = if fits.len() > 4 { format!("{}; …", ends[..4].join("; ")) } else { ends.join("; ") };
    let mut note = vec!["How far the objective was from its final value after each step.".to_owned()];
    let closed = numbers.fits.len() - fits.len();
    if closed > 0 {
        note.push(format!("{} in closed form, without steps.", several(closed, "fit")));
    }
    let gap = |f: &Steps| -> Vec<(f64, f64)> {
        thinned(&f.values)
            .into_iter()
            .map(|(s, v)| (s, (end(f) - v).abs()))
            .filter(|(_, g)| *g > 1e-9)
            .collect()
    };
    let gaps: Vec<Vec<(f64, f64)>> = fits.iter().map(|f| gap(f)).collect();
    let names: Vec<String> = fits.iter().map(|f| format!("{} ({})", f.name, f.objective)).collect();
    let p = style.theme.palette();
    let entries: Vec<Entry<'_>> = names
        .iter()
        .enumerate()
        .filter(|_| names.len() > 1)
        .map(|(c, text)| Entry { text, color: p.group(c), look: Look::Line { dash: dash(c) } })
        .collect();
    let usual = (560.0, 300.0);
    let head = legend_height(&entries, room(style, usual.0));
    let (wide, tall) = in_proportion(style, usual, 190.0);
    let mut sheet = Sheet::new(
        style,
        (wide, tall + head),
        &Words { title: &title, subtitle: &subtitle, note: &note.join(" ") },
    );
    let (body, canvas) = (sheet.body, &mut sheet.canvas);
    legend(canvas, (body.x, body.y + 9.0), body.w, &entries);
    let y = Axis::new(
        Scale::log_over(gaps.iter().flatten().map(|g| g.1)),
        "distance from the final value (nats)",
    );
    let most = fits.iter().map(|f| f.values.len() - 1).max().unwrap_or(1);
    let x = Axis::new(Scale::Linear { from: 0.0, to: most as f64 }, "step");
    let panel = Panel::new(canvas, body.inside(0.0, head, 0.0, 0.0), &x, &y);
    for (c, (gap, name)) in gaps.iter().zip(&names).enumerate() {
        canvas.labeled(name, "", |canvas| {
            canvas.polyline(gap.iter().map(|&g| panel.at(g)), Stroke::new(p.group(c), 2.0).dashed(dash(c)));
        });
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
