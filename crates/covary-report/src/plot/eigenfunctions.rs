//! Mean and eigenfunctions of curves over time, with bands.

use super::{conditions, some_components};
use crate::layout::{Axis, Panel, Sheet, Words};
use crate::scale::{Scale, percent, several};
use crate::svg::{Rect, Stroke};
use crate::{Error, Style, Svg};
use covary::functional::Eigenfunctions;
use covary::learned::Learned;
use serde::{Deserialize, Serialize};

/// Eigenfunctions drawn at most.
const MOST_FUNCTIONS: usize = 8;
/// Times at which functions are drawn.
const TIMES: usize = 101;
/// Standard deviations to either end of a 95 % band.
const WITHIN: f64 = 1.959_963_984_540_054;

/// A function over the times of [`EigenfunctionsNumbers`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// What it is called.
    pub name: String,
    /// Its share of the variance over time; `None` for the mean.
    pub share: Option<f64>,
    /// Its values.
    pub values: Vec<f64>,
    /// Their standard deviations.
    pub sds: Vec<f64>,
}

/// The numbers behind eigenfunctions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EigenfunctionsNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// What times are called.
    pub time: String,
    /// The times.
    pub times: Vec<f64>,
    /// Components of the model.
    pub n_components: usize,
    /// The mean, then the eigenfunctions.
    pub functions: Vec<Function>,
}

/// Asks for the mean and the first eigenfunctions.
///
/// # Errors
/// [`covary::Error::NotCurves`] for other models.
pub fn numbers(learned: &Learned) -> Result<EigenfunctionsNumbers, Error> {
    let fit = learned.functional()?;
    let shown = some_components(learned)?.min(MOST_FUNCTIONS);
    let times = fit.model.basis().grid(TIMES);
    let function = |name: String, share, of: &Eigenfunctions, k: usize| Function {
        name,
        share,
        values: of.values.column(k),
        sds: of.sds.column(k),
    };
    let (mean, own) = (fit.model.mean_at(&times)?, fit.model.eigenfunctions(&times)?);
    let shares = fit.explained_variance_ratio();
    let mut functions = vec![function("mean".to_owned(), None, &mean, 0)];
    functions.extend((0..shown).map(|k| function(format!("component {}", k + 1), Some(shares[k]), &own, k)));
    Ok(EigenfunctionsNumbers {
        subject: conditions(learned),
        time: time_name(learned),
        times,
        n_components: learned.n_shown(),
        functions,
    })
}

/// What times are called.
pub(super) fn time_name(learned: &Learned) -> String {
    let long = learned.functional().ok().and_then(|fit| fit.long());
    long.map_or_else(|| "time".to_owned(), |columns| columns.time.clone())
}

/// Draws them: a panel for each.
pub fn draw(numbers: &EigenfunctionsNumbers, style: &Style) -> Svg {
    let n = numbers;
    let title = format!("Mean and {} of curves", several(n.n_components, "eigenfunction"));
    let mut note = vec![
        "Bands are pointwise 95 % intervals. Eigenfunctions have unit length; shares are of the variance of curves and noise over time."
            .to_owned(),
    ];
    let drawn = n.functions.len() - 1;
    if drawn < n.n_components {
        note.push(format!("The first {drawn} eigenfunctions are shown."));
    }
    let across = if n.functions.len() == 1 { 1 } else { 2 };
    let across = across.min((style.width.unwrap_or(860.0) / 260.0).max(1.0) as usize);
    let down = n.functions.len().div_ceil(across);
    let words = Words { title: &title, subtitle: &n.subject, note: &note.join(" ") };
    let mut sheet = Sheet::new(style, (860.0, 190.0 * down as f64), &words);
    let (body, canvas) = (sheet.body, &mut sheet.canvas);
    let p = canvas.palette();
    let (from, to) = (n.times[0], n.times[n.times.len() - 1]);
    for (k, function) in n.functions.iter().enumerate() {
        let cell = body.row(k / across, down, 6.0).column(k % across, across, 14.0);
        let ends = |i: usize| {
            let reach = WITHIN * function.sds[i];
            (function.values[i] - reach, function.values[i] + reach)
        };
        let values = (0..n.times.len()).flat_map(|i| [ends(i).0, ends(i).1]);
        let (low, high) = Scale::over(values, k > 0).ends();
        let room = 0.04 * (high - low);
        let name = match function.share {
            None => function.name.clone(),
            Some(share) => format!("{} ({})", function.name, percent(share)),
        };
        let y = Axis::new(Scale::Linear { from: low - room, to: high + room }, name.clone());
        let x = Axis::new(Scale::Linear { from, to }, n.time.clone());
        let panel = Panel::new(canvas, Rect { h: cell.h, ..cell }, &x, &y);
        canvas.clipped(panel.area, |canvas| {
            if k > 0 {
                let zero = panel.py(0.0);
                let across = ((panel.area.x, zero), (panel.area.right(), zero));
                canvas.line(across.0, across.1, Stroke::new(p.muted, 0.8).dashed(3.0));
            }
            let upper = n.times.iter().enumerate().map(|(i, &t)| panel.at((t, ends(i).1)));
            let lower = n.times.iter().enumerate().rev().map(|(i, &t)| panel.at((t, ends(i).0)));
            let corners: Vec<(f64, f64)> = upper.chain(lower).collect();
            canvas.labeled("", &name, |canvas| {
                canvas.polygon(&corners, p.main, 0.22);
                let line = n.times.iter().zip(&function.values).map(|(&t, &v)| panel.at((t, v)));
                canvas.polyline(line, Stroke::new(p.main, 1.6));
            });
        });
    }
    sheet.finish()
}
