//! Held-out cells and the predictions for them: values, coverage, and the probability integral transform.

use super::conditions;
use super::scree::shares_ticks;
use crate::layout::{Axis, Entry, LABEL, Look, NARROW, Panel, Sheet, Words, legend, room};
use crate::scale::{Scale, Tick, count, number, several};
use crate::svg::{Anchor, Font, Rect, Stroke};
use crate::text::{Weight, in_tip};
use crate::{Error, Style, Svg};
use covary::Dataset;
use covary::learned::Learned;
use covary::select::CheckedCell;
use serde::{Deserialize, Serialize};

/// Cells drawn with their interval.
const MOST_CELLS: usize = 120;
/// Bars of the histogram.
const BARS: usize = 10;
/// Level of the intervals drawn.
const LEVEL: f64 = 0.9;

/// A hidden cell, in standard deviations of its column from its mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HiddenCell {
    /// Row, from 1.
    pub row: usize,
    /// Name of the column.
    pub column: String,
    /// What was hidden.
    pub truth: f64,
    /// What was predicted.
    pub mean: f64,
    /// Ends of the 90 % interval.
    pub interval: (f64, f64),
}

/// The numbers behind a check of intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntervalsNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// Cells hidden.
    pub n_hidden: usize,
    /// Some of them, by decreasing prediction.
    pub cells: Vec<HiddenCell>,
    /// Levels of intervals, and the share of hidden cells that each covered.
    pub coverage: Vec<(f64, f64)>,
    /// Hidden cells in each tenth of the probability that was predicted below them.
    pub pit: Vec<usize>,
}

/// Arranges the cells that [`covary::select::self_check_by_cell`] found.
///
/// # Errors
/// [`covary::Error::NothingToCompare`] if there are none.
pub fn numbers(
    learned: &Learned,
    data: &Dataset,
    checked: &[CheckedCell],
) -> Result<IntervalsNumbers, Error> {
    if checked.is_empty() {
        return Err(covary::Error::NothingToCompare.into());
    }
    let (means, variances) = (data.observed_means(), data.observed_variances());
    let mut cells: Vec<&CheckedCell> = checked.iter().step_by(checked.len().div_ceil(MOST_CELLS)).collect();
    let scaled = |v: f64, j: usize| (v - means[j]) / variances[j].sqrt();
    cells.sort_by(|a, b| scaled(a.cell.mean, a.cell.column).total_cmp(&scaled(b.cell.mean, b.cell.column)));
    let cell = |c: &&CheckedCell| {
        let j = c.cell.column;
        let (low, high) = c.cell.interval(LEVEL)?;
        Ok::<_, covary::Error>(HiddenCell {
            row: c.cell.row + 1,
            column: data.column_names()[j].clone(),
            truth: scaled(c.truth, j),
            mean: scaled(c.cell.mean, j),
            interval: (scaled(low, j), scaled(high, j)),
        })
    };
    let pits: Vec<f64> = checked.iter().map(CheckedCell::pit).collect();
    let mut pit = vec![0; BARS];
    for u in &pits {
        pit[((u * BARS as f64) as usize).min(BARS - 1)] += 1;
    }
    // A central interval of a level covers the cells whose transform is within half of it of the middle.
    let covered = |level: f64| {
        pits.iter().filter(|u| (**u - 0.5).abs() <= 0.5 * level).count() as f64 / pits.len() as f64
    };
    Ok(IntervalsNumbers {
        subject: conditions(learned),
        n_hidden: checked.len(),
        cells: cells.iter().map(cell).collect::<Result<_, _>>()?,
        coverage: (1..20).map(|k| 0.05 * f64::from(k)).map(|level| (level, covered(level))).collect(),
        pit,
    })
}

/// Draws them in three panels.
pub fn draw(numbers: &IntervalsNumbers, style: &Style) -> Svg {
    let n = numbers;
    let at = |level: f64| n.coverage.iter().find(|(l, _)| (l - level).abs() < 1e-9).map_or(f64::NAN, |c| c.1);
    let title = format!(
        "90 % prediction intervals cover {:.1} % of {} hidden cells",
        100.0 * at(0.9),
        count(n.n_hidden)
    );
    let note = format!(
        "Observed cells were hidden, the model was fitted again without them, and its predictions were compared. {}: {} of them in standard deviations of their column, with 90 % intervals. Bands: 95 % of what chance produces with {}.",
        if room(style, 940.0) < NARROW + 120.0 { "Above" } else { "Left" },
        if n.cells.len() < n.n_hidden {
            format!("{} of {}", n.cells.len(), count(n.n_hidden))
        } else {
            "all".to_owned()
        },
        several(n.n_hidden, "cell"),
    );
    let stacked = room(style, 940.0) < NARROW + 120.0;
    let usual = (940.0, if stacked { 690.0 } else { 320.0 });
    let mut sheet = Sheet::new(style, usual, &Words { title: &title, subtitle: &n.subject, note: &note });
    let (body, p) = (sheet.body, sheet.canvas.palette());
    let canvas = &mut sheet.canvas;
    let [left, middle, right] = if stacked {
        [0, 1, 2].map(|k| body.row(k, 3, 14.0))
    } else {
        [(0.0, 0.46, -16.0), (0.46, 0.27, -24.0), (0.73, 0.27, -20.0)].map(|(from, share, less)| Rect {
            x: body.x + from * body.w + if from > 0.0 { 16.0 } else { 0.0 },
            w: share * body.w + less,
            ..body
        })
    };

    let ends = n.cells.iter().flat_map(|c| [c.truth, c.interval.0, c.interval.1]);
    let y = Axis::new(Scale::over(ends, true), "hidden value (sd)");
    let x = Axis {
        ticks: Some(Vec::new()),
        ..Axis::new(
            Scale::Linear { from: -0.5, to: n.cells.len() as f64 - 0.5 },
            "hidden cells, in order of their prediction",
        )
    };
    let panel = Panel::new(canvas, left, &x, &y);
    for (k, c) in n.cells.iter().enumerate() {
        let at = panel.px(k as f64);
        let stroke = Stroke::new(p.soft, (0.6 * panel.area.w / n.cells.len() as f64).clamp(1.0, 4.0));
        canvas.line((at, panel.py(c.interval.0)), (at, panel.py(c.interval.1)), stroke);
    }
    for (k, c) in n.cells.iter().enumerate() {
        let inside = c.interval.0 <= c.truth && c.truth <= c.interval.1;
        let (series, color, kind) =
            if inside { ("covered", p.main, 0) } else { ("not covered", p.second, 3) };
        let tip = format!(
            "row {}, {}: {} predicted, {} hidden",
            c.row,
            in_tip(&c.column),
            number(c.mean, 3),
            number(c.truth, 3)
        );
        canvas.labeled(series, &tip, |canvas| {
            canvas.mark(panel.at((k as f64, c.truth)), kind, if inside { 2.2 } else { 3.2 }, color, false);
        });
    }
    let entries = [
        Entry { text: "covered", color: p.main, look: Look::Mark { kind: 0, hollow: false } },
        Entry { text: "not covered", color: p.second, look: Look::Mark { kind: 3, hollow: false } },
    ];
    legend(canvas, (left.right() - 158.0, left.y + 11.0), 158.0, &entries);

    let whole = Scale::Linear { from: 0.0, to: 1.0 };
    let ticks = Some(shares_ticks());
    let x_ticks =
        Some([0.0, 0.5, 1.0].map(|v| Tick { value: v, text: format!("{:.0} %", 100.0 * v) }).to_vec());
    let x = Axis { ticks: x_ticks.clone(), ..Axis::new(whole, "level of the interval") };
    let y = Axis { ticks, ..Axis::new(whole, "proportion covered") };
    let panel = Panel::new(canvas, middle, &x, &y);
    let chance = |level: f64| 1.96 * (level * (1.0 - level) / n.n_hidden as f64).sqrt();
    let levels: Vec<f64> = (0..=40).map(|k| f64::from(k) / 40.0).collect();
    let upper = levels.iter().map(|&l| panel.at((l, (l + chance(l)).min(1.0))));
    let lower = levels.iter().rev().map(|&l| panel.at((l, (l - chance(l)).max(0.0))));
    canvas.polygon(&upper.chain(lower).collect::<Vec<_>>(), p.soft, 0.5);
    canvas.line(panel.at((0.0, 0.0)), panel.at((1.0, 1.0)), Stroke::new(p.axis, 1.0));
    let points: Vec<(f64, f64)> =
        [(0.0, 0.0)].into_iter().chain(n.coverage.iter().copied()).map(|c| panel.at(c)).collect();
    canvas.polyline(points.iter().copied(), Stroke::new(p.main, 1.8));
    for at in &points[1..] {
        canvas.mark(*at, 0, 2.2, p.main, false);
    }
    let font = |anchor| Font {
        halo: true,
        size: LABEL - 1.0,
        weight: Weight::Regular,
        ..Font::label(p.muted, anchor)
    };
    let (x, y) = panel.at((0.94, 0.1));
    canvas.text((x, y), "below: too narrow", font(Anchor::End));
    canvas.text(panel.at((0.05, 0.9)), "above: too wide", font(Anchor::Start));

    let expected = n.n_hidden as f64 / n.pit.len() as f64;
    let share = 1.0 / n.pit.len() as f64;
    let band = 1.96 * (n.n_hidden as f64 * share * (1.0 - share)).sqrt();
    let highest = n.pit.iter().map(|c| *c as f64).chain([expected + band]);
    let y = Axis::new(Scale::over(highest.chain([0.0]), true), "hidden cells");
    let x = Axis { grid: false, ticks: x_ticks, ..Axis::new(whole, "predicted probability below (PIT)") };
    let panel = Panel::new(canvas, right, &x, &y);
    let corners =
        [(0.0, expected - band), (1.0, expected - band), (1.0, expected + band), (0.0, expected + band)];
    canvas.polygon(&corners.map(|c| panel.at((c.0, c.1.max(0.0)))), p.soft, 0.5);
    for (k, &c) in n.pit.iter().enumerate() {
        let (x, y) = panel.at((k as f64 * share, c as f64));
        let step = panel.px(share) - panel.px(0.0);
        canvas.rect(Rect { x: x + 0.2 * step, y, w: 0.6 * step, h: panel.py(0.0) - y }, p.main);
    }
    canvas.line(panel.at((0.0, expected)), panel.at((1.0, expected)), Stroke::new(p.second, 1.4).dashed(4.0));
    sheet.finish()
}
