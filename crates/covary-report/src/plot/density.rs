//! Imputed values beside observed ones, column by column.

use super::conditions;
use super::scores;
use crate::layout::{Axis, Entry, LABEL, Look, Panel, Sheet, Words, legend, room};
use crate::scale::{Scale, count, several};
use crate::svg::Stroke;
use crate::text::shortened;
use crate::{Error, Style, Svg};
use covary::Dataset;
use covary::learned::{Learned, Rows};
use covary::model::FilledCell;
use serde::{Deserialize, Serialize};

/// Columns drawn at most: those with most missing values.
const MOST_COLUMNS: usize = 16;
/// Places of a density.
const PLACES: usize = 121;

/// A column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OfColumn {
    /// Its name.
    pub column: String,
    /// Observed and missing values.
    pub n_values: (usize, usize),
    /// Density of the observed values, by a normal kernel.
    pub observed: Vec<(f64, f64)>,
    /// Mean of the predictive densities of the missing ones.
    pub imputed: Vec<(f64, f64)>,
}

/// The numbers behind the densities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DensityNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// Columns with missing values.
    pub n_columns: usize,
    /// The columns, in the order of the table.
    pub columns: Vec<OfColumn>,
}

/// Asks for them. What is imputed is a distribution, so that of a column is the mean of those of its cells.
///
/// # Errors
/// Those of [`Learned::fill`]; [`covary::Error::NothingToCompare`] if no value is missing.
pub fn numbers(learned: &Learned, data: &Dataset) -> Result<DensityNumbers, Error> {
    let cells = learned.fill(Rows::New)?.cells(data)?;
    let mut of: Vec<Vec<&FilledCell>> = vec![Vec::new(); data.n_columns()];
    for cell in &cells {
        of[cell.column].push(cell);
    }
    let gaps: Vec<f64> = of.iter().map(|c| c.len() as f64).collect();
    if cells.is_empty() {
        return Err(covary::Error::NothingToCompare.into());
    }
    let column = |j: &usize| {
        let observed: Vec<f64> = data.values().column(*j).into_iter().filter(|v| !v.is_nan()).collect();
        let (_, curve) = scores::density(&observed)?;
        let filled = &of[*j];
        if filled.is_empty() {
            return None;
        }
        let reach = |c: &&FilledCell| [c.mean - 3.0 * c.sd, c.mean + 3.0 * c.sd];
        let (from, to) = Scale::over(filled.iter().flat_map(reach), false).ends();
        let step = (to - from) / (PLACES - 1) as f64;
        // Probability of a short stretch around each place, per its length: true of predictions of any shape.
        let at = |k: usize| {
            let x = from + step * k as f64;
            let sum: f64 = filled.iter().map(|c| c.cdf(x + 0.5 * step) - c.cdf(x - 0.5 * step)).sum();
            (x, sum / (step * filled.len() as f64))
        };
        Some(OfColumn {
            column: data.column_names()[*j].clone(),
            n_values: (observed.len(), filled.len()),
            observed: curve,
            imputed: (0..PLACES).map(at).collect(),
        })
    };
    Ok(DensityNumbers {
        subject: conditions(learned),
        n_columns: gaps.iter().filter(|n| **n > 0.0).count(),
        columns: super::largest(&gaps, MOST_COLUMNS).iter().filter_map(column).collect(),
    })
}

/// Draws them, a panel for each column.
pub fn draw(numbers: &DensityNumbers, style: &Style) -> Svg {
    let n = numbers;
    let mut note = vec![
        "Imputed: the mean of the predictive densities. The two differ where values are not missing completely at random, or \
         where the model does not fit."
            .to_owned(),
    ];
    if n.columns.len() < n.n_columns {
        note.push(format!(
            "Shown are the {} of {} columns with most missing values.",
            n.columns.len(),
            count(n.n_columns)
        ));
    }
    let panels = n.columns.len().max(1);
    // Thirteen and more stand five beside each other.
    let most = if panels > 12 { 5 } else { 4 };
    let across = (room(style, 1000.0) / 130.0).clamp(1.0, panels.min(most) as f64) as usize;
    let down = panels.div_ceil(across);
    let each = if across < 4 && panels > 4 { 118.0 } else { 150.0 };
    let words = Words {
        title: "Densities of imputed and observed values",
        subtitle: &n.subject,
        note: &note.join(" "),
    };
    let mut sheet = Sheet::new(style, (240.0 * across as f64 + 40.0, each * down as f64 + 26.0), &words);
    let (body, p) = (sheet.body, sheet.canvas.palette());
    let canvas = &mut sheet.canvas;
    let entries = [
        Entry { text: "observed", color: p.main, look: Look::Line { dash: 0.0 } },
        Entry { text: "imputed", color: p.second, look: Look::Line { dash: 4.0 } },
    ];
    legend(canvas, (body.x, body.y + 10.0), body.w, &entries);
    let body = body.inside(0.0, 22.0, 0.0, 0.0);
    let names: Vec<String> = n.columns.iter().map(|c| c.column.clone()).collect();
    let names = shortened(&names, LABEL, (body.w + 16.0) / across as f64 - 18.0);
    for (k, column) in n.columns.iter().enumerate() {
        let outer = body.row(k / across, down, 8.0).column(k % across, across, 16.0);
        let curves = || column.observed.iter().chain(&column.imputed);
        let highest = curves().map(|c| c.1).fold(0.0, f64::max);
        let x = Axis { grid: false, ..Axis::new(Scale::over(curves().map(|c| c.0), false), "") };
        let scale = Scale::Linear { from: 0.0, to: if highest > 0.0 { 1.05 * highest } else { 1.0 } };
        let y = Axis { ticks: Some(Vec::new()), ..Axis::new(scale, names[k].clone()) };
        let panel = Panel::new(canvas, outer, &x, &y);
        let line = |curve: &[(f64, f64)]| curve.iter().map(|&c| panel.at(c)).collect::<Vec<_>>();
        let tip = format!(
            "{}: {} observed, {} imputed",
            crate::text::in_tip(&column.column),
            several(column.n_values.0, "value"),
            count(column.n_values.1)
        );
        canvas.labeled("observed", &tip, |canvas| {
            canvas.polyline(line(&column.observed), Stroke::new(p.main, 1.8));
        });
        canvas.labeled("imputed", &tip, |canvas| {
            canvas.polyline(line(&column.imputed), Stroke::new(p.second, 1.8).dashed(4.0));
        });
    }
    sheet.finish()
}
