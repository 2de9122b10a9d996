//! Scree plot: the eigenvalue of each component, compared with those of permuted columns (parallel analysis).

use super::{conditions, some_components};
use crate::layout::{Axis, Entry, LABEL, Look, NARROW, Panel, Sheet, Words, legend, legend_height, room};
use crate::scale::{Scale, number, percent, several};
use crate::svg::{Anchor, Font, Rect, Stroke};
use crate::text::{Weight, width};
use crate::{Error, Style, Svg};
use covary::learned::Learned;
use covary::select::{ParallelAnalysis, ParallelSpectrum};
use covary::{CentralMoments, Dataset};
use serde::{Deserialize, Serialize};

/// Components drawn; the others hardly show.
const MOST: usize = 30;
/// Permuted cells, or multiplications, that take about half a second.
const CELLS: f64 = 2e7;
const WORK: f64 = 6e9;
const FEWEST_COPIES: f64 = 20.0;
/// Groups of rows left out in turn.
const GROUPS: usize = 20;

/// The numbers behind a scree plot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "numbers of a figure, each of which says one thing")]
pub struct ScreeNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// Components of the model.
    pub n_components: usize,
    /// Whether variances are those of columns with unit variance.
    pub standardized: bool,
    /// Whether the variances are the table's; else they are the model's own.
    pub of_table: bool,
    /// Variance along each component, in decreasing order.
    pub variances: Vec<f64>,
    /// Lower and upper end of its 95 % interval.
    pub intervals: Option<Vec<(f64, f64)>>,
    /// Share of the total variance up to each component.
    pub cumulative: Vec<f64>,
    /// All components, drawn or not.
    pub n_all: usize,
    /// 95 % quantile of each variance over tables with every column permuted.
    pub thresholds: Option<Vec<f64>>,
    /// Variances above their threshold, counted until the first that is not.
    pub n_above: Option<usize>,
    /// Permuted tables behind the thresholds.
    pub n_copies: usize,
    /// Whether a table was given that is too large to be permuted for a figure: variances are the model's.
    pub too_large: bool,
    /// Whether thresholds are of simulated columns: of a matrix no cells can be permuted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// Whether variances are those of covariances over the rows that each pair of columns has, since values are missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pairwise: bool,
}

/// Computes them: with a table, its eigenvalues and those of permuted columns; without, the model's.
///
/// # Errors
/// [`Error::NoComponents`] for a model without, if no table is given; and what the library refuses.
pub fn numbers(learned: &Learned, data: Option<&Dataset>) -> Result<ScreeNumbers, Error> {
    let linear = learned.linear()?;
    if learned.n_shown() < linear.model.n_components() {
        return Err(Error::OfViews { kind: "scree" });
    }
    let standardized = linear.spec.standardize;
    let Some(data) = data else {
        some_components(learned)?;
        let model = &linear.model;
        let shares = model.explained_variance_ratio();
        return Ok(ScreeNumbers {
            subject: conditions(learned),
            n_components: model.n_components(),
            standardized,
            of_table: false,
            variances: model.explained_variance().into_iter().take(MOST).collect(),
            intervals: None,
            cumulative: running(&shares),
            n_all: shares.len(),
            thresholds: None,
            n_above: None,
            n_copies: 0,
            too_large: false,
            simulated: false,
            pairwise: false,
        });
    };
    let (n, d) = (data.n_rows() as f64, data.n_columns() as f64);
    // With gaps every pair of columns is counted; without, the smaller side decides.
    let least = if data.is_complete() { n.min(d) } else { d };
    let once = n * d * least + 4.0 * least.powi(3);
    if FEWEST_COPIES * once > WORK {
        return Ok(ScreeNumbers { too_large: true, ..self::numbers(learned, None)? });
    }
    // Thresholds of many rows lie close together: few copies show them.
    let n_copies = (CELLS / (n * d)).min(WORK / once).clamp(FEWEST_COPIES, 200.0) as usize;
    let analysis = ParallelAnalysis { standardize: standardized, n_copies, ..ParallelAnalysis::default() };
    let spectrum = analysis.run(data)?;
    let errors = analysis.log_errors(data, GROUPS).ok();
    // Student's t at 97.5 % with 19 degrees of freedom.
    let intervals = errors.map(|errors| {
        let of = |(l, e): (&f64, &f64)| (l * (-2.093 * e).exp(), l * (2.093 * e).exp());
        spectrum
            .eigenvalues
            .iter()
            .zip(&errors)
            .map(of)
            .take_while(|(a, b)| a.is_finite() && b.is_finite())
            .take(MOST)
            .collect()
    });
    Ok(ScreeNumbers {
        intervals,
        pairwise: !data.is_complete(),
        ..of_spectrum(learned, &spectrum, &analysis)?
    })
}

/// Computes them of a model that was learned from moments: their eigenvalues and those of simulated independent columns.
///
/// # Errors
/// What the library refuses.
pub fn of_moments(learned: &Learned, moments: &CentralMoments) -> Result<ScreeNumbers, Error> {
    let standardize = learned.linear()?.spec.standardize;
    let once = 4.0 * (moments.n_columns() as f64).powi(3);
    if FEWEST_COPIES * once > WORK {
        return Ok(ScreeNumbers { too_large: true, ..numbers(learned, None)? });
    }
    let n_copies = (WORK / once).clamp(FEWEST_COPIES, 200.0) as usize;
    let analysis = ParallelAnalysis { standardize, n_copies, ..ParallelAnalysis::default() };
    let spectrum = analysis.run_moments(moments)?;
    Ok(ScreeNumbers { simulated: true, ..of_spectrum(learned, &spectrum, &analysis)? })
}

fn of_spectrum(
    learned: &Learned,
    spectrum: &ParallelSpectrum,
    analysis: &ParallelAnalysis,
) -> Result<ScreeNumbers, Error> {
    // Correlations over the rows that each pair has need not be those of any table: eigenvalues below 0 explain nothing.
    let eigenvalues: Vec<f64> = spectrum.eigenvalues.iter().map(|l| l.max(0.0)).collect();
    let total: f64 = eigenvalues.iter().sum();
    let shares: Vec<f64> = eigenvalues.iter().map(|l| l / total).collect();
    Ok(ScreeNumbers {
        subject: conditions(learned),
        n_components: learned.linear()?.model.n_components(),
        standardized: analysis.standardize,
        of_table: true,
        variances: eigenvalues.iter().copied().take(MOST).collect(),
        intervals: None,
        cumulative: running(&shares),
        n_all: shares.len(),
        thresholds: Some(spectrum.thresholds.iter().copied().take(MOST).collect()),
        n_above: Some(spectrum.n_components),
        n_copies: analysis.n_copies,
        too_large: false,
        simulated: false,
        pairwise: false,
    })
}

fn running(shares: &[f64]) -> Vec<f64> {
    let sums = shares.iter().scan(0.0, |sum, share| {
        *sum += share;
        Some(*sum)
    });
    sums.take(MOST).collect()
}

/// Draws them: bars with their intervals and the threshold, and next to them the cumulative share.
pub fn draw(numbers: &ScreeNumbers, style: &Style) -> Svg {
    let n = numbers;
    let q = n.n_components;
    let title = match (n.n_above, n.cumulative.get(q.wrapping_sub(1))) {
        (Some(above), _) => {
            format!("Parallel analysis retains {}", several(above, "component"))
        }
        (None, Some(share)) => {
            let explain = if q == 1 { "explains" } else { "explain" };
            format!("{} {explain} {} of the variance", several(q, "component"), percent(*share))
        }
        (None, None) => "Eigenvalue of each component".to_owned(),
    };
    let mut note = Vec::new();
    if let Some(intervals) = &n.intervals
        && !intervals.is_empty()
    {
        note.push(format!("Whiskers: 95 % intervals by leaving out {GROUPS} groups of rows in turn."));
    }
    if n.pairwise {
        note.push(
            "Eigenvalues are the table's, by the rows that each pair of columns has; the model's own shares differ a little.".to_owned(),
        );
    }
    let apart = if n.simulated { "independent columns" } else { "permuted columns" };
    if n.thresholds.is_some() && n.simulated {
        note.push(format!(
            "Dashed: 95 % quantile of {} of independent columns, simulated (parallel analysis).",
            several(n.n_copies, "table")
        ));
    } else if n.thresholds.is_some() {
        note.push(format!(
            "Dashed: 95 % quantile of {} of the table with every column permuted (parallel analysis).",
            several(n.n_copies, "copy").replace("copys", "copies")
        ));
    } else if n.too_large {
        note.push("Eigenvalues are the model's: the table is too large for parallel analysis.".to_owned());
    }
    if n.n_all > n.variances.len() {
        note.push(format!("The first {} of {} are shown.", n.variances.len(), several(n.n_all, "component")));
    }
    let stacked = room(style, 760.0) < NARROW;
    let mut sheet = Sheet::new(
        style,
        (760.0, if stacked { 440.0 } else { 300.0 }),
        &Words { title: &title, subtitle: &n.subject, note: &note.join(" ") },
    );
    let (body, p) = (sheet.body, sheet.canvas.palette());
    let canvas = &mut sheet.canvas;
    let shown = n.variances.len();
    let in_model = if n.of_table { "in the model" } else { "component" };
    let mut entries = vec![Entry { text: in_model, color: p.main, look: Look::Box }];
    if shown > q {
        entries.push(Entry { text: "not in it", color: p.soft, look: Look::Box });
    }
    if n.thresholds.is_some() {
        entries.push(Entry { text: apart, color: p.second, look: Look::Line { dash: 4.0 } });
    }
    let above = if n.of_table { legend_height(&entries, body.w) + 5.0 } else { 0.0 };
    let body = body.inside(0.0, above, 0.0, 0.0);
    let (left, right) = if stacked {
        (body.row(0, 2, 12.0), body.row(1, 2, 12.0))
    } else {
        let right = Rect { x: body.x + 0.6 * body.w + 12.0, w: 0.4 * body.w - 12.0, ..body };
        (Rect { w: 0.6 * body.w - 12.0, ..body }, right)
    };

    let unit = if n.standardized { "eigenvalue" } else { "eigenvalue, in squared units of the table" };
    let highest = n.intervals.iter().flatten().map(|i| i.1).chain(n.variances.iter().copied()).chain([0.0]);
    let lowest = n.variances.iter().copied().fold(0.0, f64::min);
    let y = Axis::new(Scale::over(highest.chain([lowest]), true), unit);
    let x = Axis::whole(1, shown.max(1), left.w, "component");
    let panel = Panel::new(canvas, left, &x, &y);
    let bar = (panel.area.w / (shown as f64 + 0.2) * 0.72).min(46.0);
    for (k, &v) in n.variances.iter().enumerate() {
        let (at, top) = panel.at((k as f64 + 1.0, v));
        let zero = panel.py(0.0);
        let color = if k < q { p.main } else { p.soft };
        let tip = format!(
            "component {}: eigenvalue {}, {} cumulative",
            k + 1,
            number(v, 4),
            n.cumulative.get(k).map_or(String::new(), |share| percent(*share))
        );
        let series = if k < q { in_model } else { "not in it" };
        canvas.labeled(series, &tip, |canvas| {
            let bar = Rect { x: at - 0.5 * bar, y: top.min(zero), w: bar, h: (zero - top).abs() };
            canvas.frame(bar, Some(color), Stroke::new(p.main, 0.8));
        });
    }
    for (k, &(low, high)) in n.intervals.iter().flatten().enumerate() {
        let at = panel.px(k as f64 + 1.0);
        let over = p.ink.towards(p.paper, 0.25);
        for (width, color) in [(3.0, p.paper), (1.2, over)] {
            canvas.line(
                (at, panel.py(low)),
                (at, panel.py(high)),
                Stroke::new(color, width).faint(if width > 2.0 { 0.6 } else { 1.0 }),
            );
        }
    }
    if let Some(thresholds) = &n.thresholds {
        let points = thresholds.iter().enumerate().map(|(k, &t)| panel.at((k as f64 + 1.0, t)));
        canvas.labeled(apart, "", |canvas| {
            canvas.polyline(points, Stroke::new(p.second, 1.8).dashed(5.0));
        });
    }
    if n.of_table {
        legend(canvas, (body.x, body.y - above + 9.0), body.w, &entries);
    }

    let name = "cumulative variance explained";
    let name = if width(name, LABEL, Weight::Regular) <= right.w { name } else { "cumulative variance" };
    let y = Axis::new(Scale::Linear { from: 0.0, to: 1.0 }, name);
    let y = Axis { ticks: Some(shares_ticks()), ..y };
    let x = Axis::whole(1, shown.max(1), right.w, "component");
    let panel = Panel::new(canvas, right, &x, &y);
    let points: Vec<(f64, f64)> =
        n.cumulative.iter().take(shown).enumerate().map(|(k, &s)| panel.at((k as f64 + 1.0, s))).collect();
    canvas.polyline(points.iter().copied(), Stroke::new(p.axis, 1.5));
    let radius = if shown > 15 { 2.6 } else { 3.6 };
    for (k, &at) in points.iter().enumerate() {
        canvas.mark(at, 0, radius, if k < q { p.main } else { p.axis }, k >= q);
    }
    if let (Some(&at), Some(share)) = (points.get(q.wrapping_sub(1)), n.cumulative.get(q.wrapping_sub(1))) {
        let last = at.0 + 60.0 > panel.area.right();
        let (dx, anchor) = if last { (-6.0, Anchor::End) } else { (8.0, Anchor::Start) };
        let dy = if last && *share > 0.85 { 18.0 } else { 14.0 };
        let font = Font { weight: Weight::Bold, halo: true, ..Font::label(p.main, anchor) };
        canvas.text((at.0 + dx, at.1 + dy), &format!("{} %", number(100.0 * share, 3)), font);
    }
    sheet.finish()
}

pub(crate) fn shares_ticks() -> Vec<crate::scale::Tick> {
    let tick = |k: usize| crate::scale::Tick { value: k as f64 / 4.0, text: format!("{} %", 25 * k) };
    (0..=4).map(tick).collect()
}
