//! Rows simulated from the model and the observed ones: the marginal distribution of each column.

use super::{communalities, conditions, largest, standardized_loadings};
use crate::layout::{Axis, Entry, LABEL, Look, Panel, Sheet, Words, legend, room};
use crate::scale::{Scale, count, several};
use crate::svg::{Rect, Stroke};
use crate::text::shortened;
use crate::{Error, Style, Svg};
use covary::Dataset;
use covary::learned::Learned;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

/// Columns drawn at most, rows drawn from the model, bars of a histogram.
const MOST_COLUMNS: usize = 16;
const DRAWS: usize = 4000;
const BARS: usize = 24;

/// A column, observed and simulated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Marginal {
    /// Its name.
    pub column: String,
    /// Left end of the first bar, right end of the last.
    pub range: (f64, f64),
    /// Share of the real cells in each bar.
    pub real: Vec<f64>,
    /// Share of the drawn ones; what lies outside is in no bar.
    pub drawn: Vec<f64>,
    /// Real cells.
    pub n_real: usize,
}

/// The numbers behind simulated and observed rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SamplesNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// Rows drawn.
    pub n_drawn: usize,
    /// Rows of the table.
    pub n_rows: usize,
    /// All columns.
    pub n_columns: usize,
    /// The columns drawn.
    pub columns: Vec<Marginal>,
}

/// Asks for them; of many columns, the twelve that the components explain best.
///
/// # Errors
/// [`covary::Error::ColumnCount`] if the table has other columns than the model.
pub fn numbers(learned: &Learned, data: &Dataset, seed: u64) -> Result<SamplesNumbers, Error> {
    let linear = learned.linear()?;
    let d = learned.columns.len();
    if data.n_columns() != d {
        return Err(covary::Error::ColumnCount { expected: d, got: data.n_columns() }.into());
    }
    let n_drawn = DRAWS.min(4_000_000 / d).max(200);
    let drawn = linear.of_new_rows().sample(n_drawn, &mut ChaCha8Rng::seed_from_u64(seed));
    let shown = largest(&communalities(&standardized_loadings(learned)?.0), MOST_COLUMNS);
    let marginal = |&j: &usize| {
        let real: Vec<f64> = (0..data.n_rows()).map(|i| data.row(i)[j]).filter(|v| !v.is_nan()).collect();
        let new = drawn.column(j);
        let (from, to) = Scale::over(real.iter().chain(new.iter()).copied(), false).ends();
        // All real cells are inside; draws reach further only where there are hundreds of times as many.
        let shares = |values: &[f64]| {
            let mut bars = vec![0.0; BARS];
            for v in values {
                bars[(((v - from) / (to - from) * BARS as f64) as usize).min(BARS - 1)] +=
                    1.0 / values.len() as f64;
            }
            bars
        };
        let column = learned.columns[j].clone();
        Marginal { column, range: (from, to), real: shares(&real), drawn: shares(&new), n_real: real.len() }
    };
    Ok(SamplesNumbers {
        subject: conditions(learned),
        n_drawn,
        n_rows: data.n_rows(),
        n_columns: d,
        columns: shown.iter().map(marginal).collect(),
    })
}

/// Draws them: observed cells as bars, simulated ones as a line.
pub fn draw(numbers: &SamplesNumbers, style: &Style) -> Svg {
    let n = numbers;
    let title = "Simulated and observed marginal distributions";
    let mut note = vec![format!(
        "{} simulated from the model, {} in the table; heights are proportions of the cells.",
        several(n.n_drawn, "row"),
        count(n.n_rows)
    )];
    if n.columns.len() < n.n_columns {
        note.push(format!(
            "Shown are the {} of {} columns that the components explain best.",
            n.columns.len(),
            count(n.n_columns)
        ));
    }
    let panels = n.columns.len().max(1);
    // Thirteen and more stand five beside each other.
    let most = if panels > 12 { 5 } else { 4 };
    let across = (room(style, 1000.0) / 130.0).clamp(1.0, panels.min(most) as f64) as usize;
    let down = panels.div_ceil(across);
    let mut sheet = Sheet::new(
        style,
        (
            240.0 * across as f64 + 40.0,
            if across < 4 && panels > 4 { 112.0 } else { 150.0 } * down as f64 + 26.0,
        ),
        &Words { title, subtitle: &n.subject, note: &note.join(" ") },
    );
    let (body, p) = (sheet.body, sheet.canvas.palette());
    let canvas = &mut sheet.canvas;
    legend(
        canvas,
        (body.x, body.y + 10.0),
        body.w,
        &[
            Entry { text: "observed", color: p.soft, look: Look::Box },
            Entry { text: "simulated", color: p.second, look: Look::Line { dash: 0.0 } },
        ],
    );
    let body = body.inside(0.0, 22.0, 0.0, 0.0);
    let names: Vec<String> = n.columns.iter().map(|c| c.column.clone()).collect();
    let names = shortened(&names, LABEL, (body.w + 16.0) / across as f64 - 18.0);
    for (k, column) in n.columns.iter().enumerate() {
        let outer = body.row(k / across, down, 8.0).column(k % across, across, 16.0);
        let highest = column.real.iter().chain(&column.drawn).copied().fold(0.0, f64::max) * 1.05;
        let x =
            Axis { grid: false, ..Axis::new(Scale::Linear { from: column.range.0, to: column.range.1 }, "") };
        let y = Axis {
            ticks: Some(Vec::new()),
            ..Axis::new(Scale::Linear { from: 0.0, to: highest.max(1e-9) }, names[k].clone())
        };
        let panel = Panel::new(canvas, outer, &x, &y);
        let edge = |b: usize| column.range.0 + (column.range.1 - column.range.0) * b as f64 / BARS as f64;
        for (b, &share) in column.real.iter().enumerate().filter(|(_, s)| **s > 0.0) {
            let (x0, y0) = panel.at((edge(b), share));
            canvas.frame(
                Rect { x: x0 + 0.4, y: y0, w: panel.px(edge(b + 1)) - x0 - 0.8, h: panel.py(0.0) - y0 },
                Some(p.soft),
                Stroke::new(p.axis, 0.5),
            );
        }
        let steps = column
            .drawn
            .iter()
            .enumerate()
            .flat_map(|(b, &s)| [panel.at((edge(b), s)), panel.at((edge(b + 1), s))]);
        canvas.polyline(steps, Stroke::new(p.second, 1.6));
    }
    sheet.finish()
}
