//! Rows in time: when they happened, how factors move, what comes, and which rows were surprises.

use super::facts::{ModelFacts, NoiseFacts, Study, Why};
use super::template::{capital, level, name, th, to_sd};
use crate::Error;
use crate::scale::{count, number, several};
use crate::text::clean;
use covary::data::TimeAxis;
use covary::dynamics::{Season, Tried};
use covary::family::Grounds;
use covary::learned::{DynamicFit, Surprise};
use maud::{Markup, html as markup};
use serde::Serialize;

/// Surprises listed.
const MOST_ROWS: usize = 12;
/// Columns named as the reason why a row is one.
const REASONS: usize = 2;
/// Numbers of a forecast on the page.
const MOST_AHEAD: usize = 400;
/// Probability that a table simulated from the model has any row called a surprise.
const FAMILY_WISE: f64 = 0.01;

/// What a report says of rows in time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimeFacts {
    /// The column of times, if rows were not only counted.
    pub column: Option<String>,
    /// How far steps are apart, in words: `monthly`.
    pub steps: String,
    /// What a step is called.
    pub step: String,
    /// The first time.
    pub first: String,
    /// The last.
    pub last: String,
    /// Sequences.
    pub n_sequences: usize,
    /// Rows of the table.
    pub n_rows: usize,
    /// Steps without a row.
    pub n_empty: usize,
    /// How many steps back factors depend on.
    pub order: usize,
    /// The season, in words.
    pub season: String,
    /// Whether columns have a straight line in time.
    pub trend: bool,
    /// The transition (A₁ … A_p), a row for each factor.
    pub transition: Vec<Vec<f64>>,
    /// Its roots, the longest memory first.
    pub roots: Vec<RootFacts>,
    /// Steps that are forecast.
    pub n_steps: usize,
    /// Probability that an interval of a forecast covers what comes.
    pub level: f64,
    /// What is forecast: sequences, steps and columns in their order.
    pub ahead: Vec<AheadFacts>,
    /// What was tried on hidden blocks of time, in the order in which it was.
    pub tried: Vec<TriedFacts>,
    /// Rows that differ from what those before let expect.
    pub surprises: SurpriseFacts,
}

/// A root of the transition, or a pair of complex ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RootFacts {
    /// What is left after a step.
    pub modulus: f64,
    /// Steps after which half is left; none where it does not return.
    pub half_life: Option<f64>,
    /// Steps of a swing, where it swings.
    pub period: Option<f64>,
}

/// A number that is forecast.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AheadFacts {
    /// The sequence, if it has a name.
    pub sequence: Option<String>,
    /// When.
    pub time: String,
    /// The column.
    pub column: String,
    /// What is expected.
    pub mean: f64,
    /// Its standard deviation.
    pub sd: f64,
    /// The interval.
    pub lower: f64,
    /// The interval.
    pub upper: f64,
}

/// Something that was tried on hidden blocks of time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TriedFacts {
    /// Factors.
    pub n_components: usize,
    /// Their order.
    pub order: usize,
    /// The season, in words.
    pub season: String,
    /// Mean CRPS of hidden cells, in standard deviations of their column.
    pub crps: f64,
    /// How far above the best of those it was compared with.
    pub shortfall: f64,
    /// The standard error of that.
    pub shortfall_error: f64,
    /// Root mean squared error in hidden blocks.
    pub block_rmse: f64,
    /// Root mean squared error of forecasts.
    pub forecast_rmse: Option<f64>,
}

/// Rows far from what those before them let expect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SurpriseFacts {
    /// Those too far to be due to chance.
    pub n_far: usize,
    /// The tail probability below which a row counts as that.
    pub threshold: f64,
    /// The most surprising.
    pub rows: Vec<SurprisingRow>,
}

/// A row and how far it is from what was expected a step before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SurprisingRow {
    /// The row, from 1.
    pub row: usize,
    /// When.
    pub time: String,
    /// The sequence, if it has a name.
    pub sequence: Option<String>,
    /// Squared Mahalanobis distance.
    pub mahalanobis: f64,
    /// Observed cells of the row.
    pub n_observed: usize,
    /// Probability of a distance at least as large.
    pub tail_probability: f64,
    /// The columns furthest from their smoothed mean, each by how many standard deviations of its noise.
    pub because: Vec<(String, f64)>,
}

fn text(axis: Option<&TimeAxis>, time: i64) -> String {
    axis.map_or_else(|| (time + 1).to_string(), |axis| axis.text(time))
}

fn season_words(season: Season) -> String {
    match season {
        Season::None => "none".to_owned(),
        Season::Harmonics { period, n } => format!("{} of period {}", several(n, "wave"), number(period, 6)),
        Season::Indicators { period } => format!("a mean for each of {period} steps"),
    }
}

impl TimeFacts {
    /// Asks the library for them.
    pub(super) fn of(study: &Study<'_>, fit: &DynamicFit, interval: f64) -> Result<Self, Error> {
        let (model, data) = (&fit.model, study.data);
        let times = fit.times(data)?;
        let axis = times.axis();
        let (first, last) = times.span();
        let n_steps = fit.usual_steps();
        let mut ahead = Vec::new();
        for (k, forecast) in fit.forecast(data, n_steps)?.into_iter().enumerate() {
            for cell in &forecast.cells {
                let (lower, upper) = cell.interval(interval)?;
                ahead.push(AheadFacts {
                    sequence: times.name(k).map(str::to_owned),
                    time: text(axis, forecast.times[cell.row]),
                    column: study.learned.columns[cell.column].clone(),
                    mean: cell.mean,
                    sd: cell.sd,
                    lower,
                    upper,
                });
            }
        }
        let tried = match &study.choice.grounds {
            Grounds::Blocks(Some(found)) => found.tried.iter().map(tried).collect(),
            _ => Vec::new(),
        };
        let root = |root: &covary::dynamics::Root| RootFacts {
            modulus: root.modulus,
            half_life: Some(root.half_life()).filter(|steps| steps.is_finite()),
            period: root.period,
        };
        let named = crate::dates::Times::of(axis);
        Ok(Self {
            column: axis.map(|axis| axis.name.clone()),
            steps: axis.map_or_else(|| "one row after the other".to_owned(), |axis| axis.steps.words()),
            step: named.step,
            first: text(axis, first),
            last: text(axis, last),
            n_sequences: times.sequences().len(),
            n_rows: times.n_rows(),
            n_empty: times.n_empty(),
            order: model.order(),
            season: season_words(model.regressors().season),
            trend: model.regressors().trend.is_some(),
            transition: model.transition().rows().map(<[f64]>::to_vec).collect(),
            roots: model.roots()?.iter().map(root).collect(),
            n_steps,
            level: interval,
            ahead,
            tried,
            surprises: surprises(study, fit)?,
        })
    }

    /// The largest modulus of a root.
    pub(super) fn radius(&self) -> f64 {
        self.roots.first().map_or(0.0, |root| root.modulus)
    }
}

fn tried(of: &Tried) -> TriedFacts {
    TriedFacts {
        n_components: of.n_components,
        order: of.order,
        season: season_words(of.season),
        crps: of.mean,
        shortfall: of.shortfall,
        shortfall_error: of.shortfall_error,
        block_rmse: of.block_rmse,
        forecast_rmse: of.forecast_rmse,
    }
}

fn surprises(study: &Study<'_>, fit: &DynamicFit) -> Result<SurpriseFacts, Error> {
    let (learned, data) = (study.learned, study.data);
    let found = learned.row_scores(data)?.surprises.unwrap_or_default();
    let tails: Vec<f64> = found.iter().map(Surprise::tail_probability).collect();
    let n_told = found.iter().filter(|s| s.n_observed > 0).count();
    let threshold = FAMILY_WISE / n_told.max(1) as f64;
    let mut order: Vec<usize> = (0..found.len()).filter(|&i| found[i].n_observed > 0).collect();
    // Where probabilities round to zero the distances still differ.
    let distance = |i: usize| found[i].mahalanobis / found[i].n_observed as f64;
    order.sort_by(|&a, &b| {
        tails[a].total_cmp(&tails[b]).then(distance(b).total_cmp(&distance(a))).then(a.cmp(&b))
    });
    order.truncate(MOST_ROWS);
    let expected = learned.reconstruct(data, false)?;
    let times = fit.times(data)?;
    let of_rows = times.of_rows();
    let because = |i: usize| {
        let apart = |j: usize| (data.row(i)[j] - expected[(i, j)]) / fit.model.noise().variance(j).sqrt();
        let observed = (0..data.n_columns()).filter(|&j| !data.row(i)[j].is_nan());
        let mut columns: Vec<(usize, f64)> = observed.map(|j| (j, apart(j))).collect();
        columns.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
        columns.into_iter().take(REASONS).map(|(j, z)| (learned.columns[j].clone(), z)).collect()
    };
    let row = |&i: &usize| SurprisingRow {
        row: i + 1,
        time: text(times.axis(), of_rows[i].0),
        sequence: times.name(of_rows[i].1).map(str::to_owned),
        mahalanobis: found[i].mahalanobis,
        n_observed: found[i].n_observed,
        tail_probability: tails[i],
        because: because(i),
    };
    Ok(SurpriseFacts {
        n_far: (0..found.len()).filter(|&i| found[i].n_observed > 0 && tails[i] < threshold).count(),
        threshold,
        rows: order.iter().map(row).collect(),
    })
}

/// What was fitted, of a model in time.
pub(super) fn model_facts(study: &Study<'_>, fit: &DynamicFit) -> ModelFacts {
    let learned = study.learned;
    let (why, scores) = match &study.choice.grounds {
        Grounds::Blocks(Some(found)) => (
            Why::Blocks { blocks: found.n_blocks, origins: found.n_origins, horizon: found.horizon },
            found.components.as_ref(),
        ),
        Grounds::Blocks(None) => (Why::TooFewBlocks, None),
        _ => (Why::Asked, None),
    };
    ModelFacts {
        choice_in_crps: true,
        noise: Some(NoiseFacts::of(learned, |j| fit.model.noise().variance(j))),
        ..ModelFacts::of(learned, why, scores)
    }
}

/// What is not certain because of how factors move.
pub(super) fn doubts(time: &TimeFacts) -> Vec<String> {
    let mut said = Vec::new();
    let steps = time.n_rows + time.n_empty;
    match time.roots.first() {
        Some(root) if root.modulus >= 1.0 => said.push(format!(
            "The transition has a root of modulus {}: factors do not return to a mean, and intervals of forecasts widen without end.",
            number(root.modulus, 5)
        )),
        Some(RootFacts { half_life: Some(half), modulus, .. }) if *half > 0.5 * steps as f64 / time.n_sequences.max(1) as f64 => {
            said.push(format!(
                "The longest memory, a root of {}, has a half-life of {} steps, which is long compared with the table: the level to which factors return is hardly known.",
                number(*modulus, 4),
                number(*half, 3)
            ));
        }
        _ => {}
    }
    if time.surprises.n_far > 0 {
        said.push(format!(
            "{} too far from what the rows before let expect to be due to chance: errors of measurement, breaks in the series, or tails heavier than Gaussian ones, which make intervals too narrow.",
            if time.surprises.n_far == 1 { "One row is".to_owned() } else { format!("{} rows are", count(time.surprises.n_far)) }
        ));
    }
    said
}

/// Times, transition, what was tried, what comes.
pub(super) fn section(time: &TimeFacts, figures: &Markup) -> Markup {
    let radius = time.radius();
    markup! {
        p {
            (several(time.n_rows, "row")) ", " (time.steps) ", from " (clean(&time.first)) " to " (clean(&time.last))
            @if let Some(column) = &time.column { " (" (name(column)) ")" }
            @if time.n_sequences > 1 { ", in " (several(time.n_sequences, "sequence")) }
            ". "
            @if time.n_empty == 0 { "No step is without a row. " }
            @else {
                (capital(&several(time.n_empty, &time.step))) (if time.n_empty == 1 { " has" } else { " have" })
                " no row: missing rows are predicted from those before and after them. "
            }
            "Factors depend on " (several(time.order, "step")) " before. Season: " (time.season) ". "
            @if time.trend { "Every column has a linear trend. " }
        }
        (figures)
        h3 { "How the factors move" }
        p {
            "The largest root of the transition matrix has modulus " (number(radius, 4)) ": "
            @if radius < 1.0 { "the factors are stationary and return to their mean." }
            @else { "the factors are not stationary." }
        }
        div.scroll tabindex="0" role="region" aria-label="Transition" {
            table {
                caption.quiet { "Transition matrix A: the factors (rows) given those of the steps before (columns)" }
                thead { tr {
                    th scope="col" {}
                    @for k in 0..time.transition.first().map_or(0, Vec::len) {
                        @let q = time.transition.len();
                        th scope="col" { "factor " (k % q + 1) @if time.order > 1 { ", lag " (k / q + 1) } }
                    }
                } }
                tbody { @for (k, row) in time.transition.iter().enumerate() { tr {
                    th scope="row" { "factor " (k + 1) } @for a in row { td { (number(*a, 3)) } }
                } } }
            }
        }
        div.scroll tabindex="0" role="region" aria-label="Roots of the transition" {
            table {
                caption.quiet { "Roots of A: what remains after one step, steps until half remains, and the period of oscillating pairs" }
                thead { tr { @for heading in ["root", "modulus", "half-life", "period"] { th scope="col" { (heading) } } } }
                tbody { @for (k, root) in time.roots.iter().enumerate() { tr {
                    th scope="row" { (k + 1) } td { (number(root.modulus, 4)) }
                    td { (root.half_life.map_or("–".to_owned(), |half| number(half, 3))) }
                    td { (root.period.map_or("–".to_owned(), |period| number(period, 3))) }
                } } }
            }
        }
        (ahead(time))
        @if !time.tried.is_empty() { (choice(time)) }
    }
}

fn ahead(time: &TimeFacts) -> Markup {
    let named = time.ahead.iter().any(|a| a.sequence.is_some());
    markup! {
        h3 { "Forecast of the next " (several(time.n_steps, &time.step)) }
        details {
            summary { "Every number"
                @if time.ahead.len() > MOST_AHEAD { " (the first " (MOST_AHEAD) " of " (count(time.ahead.len())) ")" }
            }
            div.scroll.tall tabindex="0" role="region" aria-label="Forecasts" {
                table.sortable {
                    caption.quiet {
                        "Prediction intervals cover what comes with probability " (level(time.level))
                        ", if the model is correct; they account for the estimation of the parameters. "
                        code { "covary forecast" } " writes them. "
                        span.hint { "Click or press a heading to sort." }
                    }
                    thead { tr {
                        (th("time", "text")) @if named { (th("sequence", "text")) } (th("column", "text"))
                        (th("mean", "number")) (th("sd", "number")) (th("lower", "number")) (th("upper", "number"))
                    } }
                    tbody { @for a in time.ahead.iter().take(MOST_AHEAD) { tr {
                        th scope="row" { (clean(&a.time)) }
                        @if named { td.left { bdi { (clean(a.sequence.as_deref().unwrap_or(""))) } } }
                        td.left { (name(&a.column)) }
                        td { (to_sd(a.mean, a.sd)) } td { (to_sd(a.sd, a.sd)) } td { (to_sd(a.lower, a.sd)) } td { (to_sd(a.upper, a.sd)) }
                    } } }
                }
            }
        }
    }
}

fn choice(time: &TimeFacts) -> Markup {
    markup! {
        h3 { "Choice by blocks of time" }
        details {
            summary { "Everything that was tried" }
            div.scroll tabindex="0" role="region" aria-label="Models tried" {
                table.sortable {
                    caption.quiet {
                        "CRPS: continuous ranked probability score of hidden blocks and of forecasts, smaller is better; errors are root mean squared. All are in standard deviations of the columns."
                    }
                    thead { tr {
                        (th("factors", "number")) (th("order", "number")) (th("season", "text")) (th("CRPS", "number"))
                        (th("above the best", "number")) (th("± standard error", "number")) (th("error in blocks", "number"))
                        (th("error of forecasts", "number"))
                    } }
                    tbody { @for t in &time.tried { tr {
                        th scope="row" { (t.n_components) } td { (t.order) } td.left { (t.season) } td { (number(t.crps, 3)) }
                        td { (number(t.shortfall, 2)) } td { (number(t.shortfall_error, 2)) } td { (number(t.block_rmse, 3)) }
                        td { (t.forecast_rmse.map_or("–".to_owned(), |rmse| number(rmse, 3))) }
                    } } }
                }
            }
        }
    }
}

/// Rows that were not expected.
pub(super) fn odd(found: &SurpriseFacts) -> Markup {
    let named = found.rows.iter().any(|r| r.sequence.is_some());
    markup! {
        p {
            @if found.n_far == 0 { "No row is further from what the rows before it predict than expected by chance. " }
            @else {
                (several(found.n_far, "row")) (if found.n_far == 1 { " is" } else { " are" })
                " further from what the rows before predict than expected by chance (p < 0.01, Bonferroni): of a hundred tables simulated from the model, one would have such a row. "
            }
            "The distance is the squared Mahalanobis distance of a row from its prediction one step ahead. "
            @if found.rows.len() < found.n_far {
                "Listed are the " (found.rows.len()) " furthest of these; " code { "covary score" } " has every row."
            } @else { "The furthest are listed." }
        }
        div.scroll tabindex="0" role="region" aria-label="Surprising rows" {
            table.sortable {
                thead { tr {
                    (th("time", "text")) @if named { (th("sequence", "text")) } (th("row", "number")) (th("distance", "number"))
                    (th("observed cells", "number")) (th("p-value", "number")) (th("largest residuals from the smoothed mean (sd)", "text"))
                } }
                tbody { @for r in &found.rows { tr class=[(r.tail_probability < found.threshold).then_some("far")] {
                    th scope="row" { (clean(&r.time)) }
                    @if named { td.left { bdi { (clean(r.sequence.as_deref().unwrap_or(""))) } } }
                    td { (r.row) } td { (number(r.mahalanobis, 3)) } td { (r.n_observed) } td { (number(r.tail_probability, 2)) }
                    td.left { @for (k, (column, z)) in r.because.iter().enumerate() {
                        @if k > 0 { ", " } (name(column)) " " (number(*z, 2)) " sd"
                    } }
                } } }
            }
        }
    }
}

/// How many of the rows were surprises, for the head of a page.
pub(super) fn tile(time: &TimeFacts) -> (String, String) {
    let n = time.surprises.n_far;
    let what = if n == 1 { "surprising row" } else { "surprising rows" };
    (count(n), format!("{what} (p < 0.01, Bonferroni)"))
}

/// What a reader finds at first: the span.
pub(super) fn lede(time: &TimeFacts) -> Markup {
    markup! { ", " (time.steps) " from " (clean(&time.first)) " to " (clean(&time.last)) }
}
