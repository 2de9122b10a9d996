//! What a report says, as data: the page and `--json` are two readings of it.

use super::doubts;
use super::factors::{FitFacts, MatrixFacts, MatrixStudy, fit_facts};
use super::structure::StructureFacts;
use super::time::{self, TimeFacts};
use super::tipping::{TippingFacts, tipping};
use crate::Error;
use crate::plot::scores::{self, ColorBy};
use crate::words::chosen_filling;
use covary::Dataset;
use covary::data::Ledger;
use covary::family::{Choice, Family, Grounds, Kind};
use covary::infer::Termination;
use covary::io::{ColumnKind, Table};
use covary::learned::{Learned, LinearFit, ParameterUncertainty, Rows};
use covary::model::{ColumnMap, FilledCell, Imputed, Reconstruction};
use covary::select::{CheckedCell, GapTests, HeldOut, Score, SelfCheck, gap_tests};
use serde::Serialize;
use std::collections::BTreeSet;

/// Filled cells listed: the least certain ones.
const MOST_CELLS: usize = 1000;
/// Odd rows listed.
const MOST_ROWS: usize = 12;
/// Columns named as the reason why a row is odd.
const REASONS: usize = 2;
/// Probability that a table simulated from the model has any row called an outlier.
const FAMILY_WISE: f64 = 0.01;

/// A table, and what was learned from it.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// What the table is called.
    pub source: &'a str,
    /// The table as it was read; none if it holds no numbers.
    pub table: Option<(&'a Table, &'a Ledger)>,
    /// What was learned.
    pub study: Option<Study<'a>>,
    /// What was learned from a matrix in place of a table.
    pub matrix: Option<MatrixStudy<'a>>,
    /// Why nothing was learned.
    pub refusal: Option<&'a str>,
    /// The command that makes the page.
    pub command: &'a str,
    /// Probability that the interval of an imputed value covers the true value.
    pub level: f64,
}

/// A model and the table it was learned from.
#[derive(Clone, Copy)]
pub struct Study<'a> {
    /// The components along the axes of figures of rows.
    pub axes: (usize, usize),
    /// The model of the components.
    pub learned: &'a Learned,
    /// What imputes missing values, with the check on hidden cells if there was one: as `covary impute` has it, or the
    /// model itself where nothing is missing.
    pub filler: &'a Learned,
    /// Its linear-Gaussian model, unless its rows follow each other in time.
    pub linear: Option<&'a LinearFit>,
    /// Where its columns stand in the table.
    pub column_map: &'a ColumnMap,
    /// Its columns of the table.
    pub data: &'a Dataset,
    /// The hidden cells of the check.
    pub cells: &'a [CheckedCell],
    /// How many components there are, and why.
    pub choice: &'a Choice,
    /// Names and colors of the rows in figures.
    pub rows: scores::Rows<'a>,
}

/// The groups that a table itself says: its one column of text with two to eight levels, where there are at least twice as
/// many rows.
pub fn groups(table: &Table) -> Option<ColorBy> {
    const MOST_LEVELS: usize = 8;
    let texts = |j: usize| (0..table.n_rows()).map(|i| table.text(i, j)).collect::<Vec<_>>();
    let few = |labels: &Vec<String>| {
        let levels: BTreeSet<&str> = labels.iter().map(|l| l.trim()).filter(|l| !l.is_empty()).collect();
        (2..=MOST_LEVELS).contains(&levels.len()) && table.n_rows() >= 2 * levels.len()
    };
    let found = table.columns_aside().into_iter().map(|j| (j, texts(j))).filter(|(_, labels)| few(labels));
    match found.collect::<Vec<_>>() {
        mut one if one.len() == 1 => {
            let (j, labels) = one.remove(0);
            Some(ColorBy::Groups { name: table.column_names()[j].clone(), labels })
        }
        _ => None,
    }
}

/// Everything a report says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Facts {
    /// What the table is called.
    pub source: String,
    /// The program and its version.
    pub created_by: String,
    /// The command that makes the page.
    pub command: String,
    /// Why there is no model, if there is none.
    pub refusal: Option<String>,
    /// What came in.
    pub table: Option<TableFacts>,
    /// What came in where it was not a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matrix: Option<MatrixFacts>,
    /// What was fitted.
    pub model: Option<ModelFacts>,
    /// How well hidden cells were predicted.
    pub check: Option<CheckFacts>,
    /// What was filled.
    pub filled: Option<FilledFacts>,
    /// Which rows are far from the model.
    pub odd_rows: Option<OddRows>,
    /// What is known of rows that follow each other in time.
    pub time: Option<TimeFacts>,
    /// What this family of models has beside components: groups, views, sources, curves, sparse loadings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structure: Option<StructureFacts>,
    /// What was not done.
    pub not_done: Vec<String>,
    /// Limitations.
    pub doubts: Vec<String>,
}

/// What came in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableFacts {
    /// Rows.
    pub n_rows: usize,
    /// Columns of numbers.
    pub n_columns: usize,
    /// Missing cells.
    pub n_gaps: usize,
    /// Rows without a gap.
    pub n_complete_rows: usize,
    /// The columns of numbers.
    pub columns: Vec<ColumnFacts>,
    /// Columns that take no part, each with why.
    pub set_aside: Vec<SetAside>,
    /// What is odd about the table, one sentence each.
    pub oddities: Vec<String>,
    /// Whether any column has gaps enough to ask whether they follow the first component.
    pub gaps_tested: bool,
    /// Columns whose gaps follow the first component, one sentence each.
    pub gap_trends: Vec<String>,
}

/// A column of numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnFacts {
    /// Its name.
    pub name: String,
    /// Missing cells.
    pub n_gaps: usize,
    /// Mean of the observed cells.
    pub mean: Option<f64>,
    /// Their standard deviation (divisor: their number).
    pub sd: Option<f64>,
    /// The smallest.
    pub least: Option<f64>,
    /// The largest.
    pub largest: Option<f64>,
    /// Share of the column's variance, as the model has it, that the components explain.
    pub explained: Option<f64>,
    /// Standard deviation of the column in the model, in standard deviations of its observed cells: 1 where
    /// the model fits.
    pub spread: Option<f64>,
    /// Share of the column's variance that was predicted where cells were hidden; below 0 where the mean
    /// of the column does better.
    pub skill: Option<f64>,
}

/// A column that takes no part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetAside {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}

/// What was fitted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelFacts {
    /// The family.
    pub family: Family,
    /// The same in words.
    pub words: String,
    /// The same with its size.
    pub described: String,
    /// How it was fitted.
    pub method: String,
    /// Whether columns had unit variance in the fit.
    pub standardized: bool,
    /// Components.
    pub n_components: usize,
    /// Why this number.
    pub why: Why,
    /// How well hidden cells were predicted with each number of components, if that chose it.
    pub choice: Vec<ChoiceAt>,
    /// Whether that is counted in CRPS, not in nats.
    pub choice_in_crps: bool,
    /// Share of the variance that each component explains; of the model after rotation none.
    pub shares: Vec<f64>,
    /// The rotation, if there was one.
    pub rotation: Option<String>,
    /// The noise, of a model that has one for each column.
    pub noise: Option<NoiseFacts>,
    /// How the fit ended, in words.
    pub ending: String,
    /// Whether it ended where it should.
    pub converged: bool,
    /// What was maximized, if anything was.
    pub objective: Option<String>,
    /// Its value in nats.
    pub objective_value: Option<f64>,
    /// How well a factor analysis fits.
    pub fit_statistics: Option<FitFacts>,
    /// Warnings of the fit.
    pub warnings: Vec<String>,
    /// Where the uncertainty of the parameters is kept: `none`, `posterior` or `draws`.
    pub parameter_uncertainty: ParameterUncertainty,
}

/// Why the model has as many components as it has.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// They predict hidden cells as well as any number.
    HiddenCells,
    /// A prior dropped those that the table does not support.
    Pruned {
        /// How many were allowed.
        offered: usize,
    },
    /// A full covariance has one less than columns.
    FullCovariance,
    /// The table has no room for any, or no cell to spare to judge by.
    NoRoom,
    /// The fewest that explain more than this share of the variance, as asked.
    Share(f64),
    /// They predict hidden blocks of time and rows to come as well as any number.
    Blocks {
        /// Blocks that were hidden.
        blocks: usize,
        /// Forecasts that were compared with what came.
        origins: usize,
        /// Steps ahead of these.
        horizon: usize,
    },
    /// One factor, as the table has no cell to spare.
    TooFewBlocks,
    /// The size of a mixture with the smallest BIC.
    Sizes {
        /// How many sizes were tried.
        tried: usize,
    },
    /// Canonical correlations that are not due to chance.
    Correlations,
    /// All directions of the table.
    Directions,
    /// They were requested.
    Asked,
}

/// How well hidden cells were predicted with one number of components.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ChoiceAt {
    /// The number.
    pub n_components: usize,
    /// Nats per hidden cell below the best number.
    pub shortfall: f64,
    /// Its standard error.
    pub shortfall_error: f64,
}

/// The noise, beside what the components explain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NoiseFacts {
    /// Smallest standard deviation of a column's noise, in standard deviations of its observed cells.
    pub least: f64,
    /// The largest.
    pub largest: f64,
}

/// How well hidden cells were predicted by a fit without them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckFacts {
    /// Cells hidden.
    pub n_hidden: usize,
    /// Root mean squared error, in standard deviations of the columns.
    pub rmse: f64,
    /// The same for the mean of the column.
    pub baseline_rmse: f64,
    /// Share of the variance that was predicted.
    pub skill: f64,
    /// Empirical coverage of intervals.
    pub coverage: Vec<CoverageFacts>,
}

/// Empirical coverage of intervals of a level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CoverageFacts {
    /// The level.
    pub level: f64,
    /// Share of the hidden cells inside.
    pub share: f64,
    /// Standard error of that share.
    pub standard_error: f64,
}

/// What was filled.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FilledFacts {
    /// What imputes them.
    pub by: String,
    /// What hidden cells chose to impute by, if they did.
    pub chosen: Option<String>,
    /// Hidden cells that intervals are calibrated on, if they are.
    pub n_calibrated: Option<usize>,
    /// Whether values are kept to what their column can be: not negative, whole numbers and the like.
    pub bounded: bool,
    /// Cells filled.
    pub n_filled: usize,
    /// Gaps that stay.
    pub n_left: usize,
    /// Probability that an interval covers the true value.
    pub level: f64,
    /// Half of the filled cells are at least this certain: standard deviation, in standard deviations of
    /// the column.
    pub median_uncertainty: Option<f64>,
    /// Cells filled with a value outside the range observed in their column.
    pub n_outside_range: usize,
    /// The least certain cells, the worst first.
    pub cells: Vec<CellFacts>,
    /// How the means of the columns with most gaps move with their missing values.
    pub tipping: Vec<TippingFacts>,
}

/// A filled cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellFacts {
    /// Its row, from 1.
    pub row: usize,
    /// What the row is called, if a column says so.
    pub label: Option<String>,
    /// Its column.
    pub column: String,
    /// What fills it.
    pub mean: f64,
    /// Its standard deviation.
    pub sd: f64,
    /// The interval.
    pub lower: f64,
    /// The interval.
    pub upper: f64,
    /// The standard deviation, in standard deviations of the column.
    pub uncertainty: f64,
}

/// Rows far from the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OddRows {
    /// Outliers: one of a hundred tables like this would have any row as far away.
    pub n_far: usize,
    /// The tail probability below which a row counts as far.
    pub threshold: f64,
    /// The furthest rows.
    pub rows: Vec<OddRow>,
}

/// A row and its distances.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OddRow {
    /// The row, from 1.
    pub row: usize,
    /// What it is called, if a column says so.
    pub label: Option<String>,
    /// Hotelling's T²: squared distance inside the plane of the components.
    pub t_squared: f64,
    /// Squared prediction error: squared distance from that plane, in squared units of the table.
    pub squared_prediction_error: f64,
    /// The same in variances of the noise, so that units do not matter.
    pub scaled_prediction_error: f64,
    /// Squared Mahalanobis distance: T² and the scaled prediction error together.
    pub mahalanobis: f64,
    /// Probability that a row of the model is at least as far.
    pub tail_probability: f64,
    /// The columns that differ most from what the components say, each by how many standard deviations of
    /// the noise.
    pub because: Vec<(String, f64)>,
}

impl Facts {
    /// Asks the library for them.
    ///
    /// # Errors
    /// What the library refuses.
    pub fn of(subject: &Subject<'_>) -> Result<Self, Error> {
        let names = subject.table.and_then(|(table, _)| row_names(table));
        let study = subject.study.as_ref();
        let table = match subject.table {
            Some((table, ledger)) => Some((table, table_facts(table, ledger, study)?)),
            None => None,
        };
        let filled = match (study, &table) {
            // Independent components have nothing to say of a missing value.
            (Some(study), Some((table, facts))) if study.filler.fill(Rows::Training).is_ok() => {
                Some(filled(study, (table, &facts.columns), subject.level, names.as_deref())?)
            }
            _ => None,
        };
        let mut facts = Self {
            source: subject.source.to_owned(),
            created_by: concat!("covary ", env!("CARGO_PKG_VERSION")).to_owned(),
            command: subject.command.to_owned(),
            refusal: subject.refusal.map(str::to_owned),
            table: table.map(|(_, facts)| facts),
            matrix: subject.matrix.as_ref().map(MatrixFacts::of),
            model: match (study, &subject.matrix) {
                (Some(s), _) => Some(match (s.linear, s.learned.dynamic()) {
                    (Some(linear), _) => model_facts(s.learned, linear, s.choice),
                    (None, Ok(fit)) => time::model_facts(s, fit),
                    _ => ModelFacts::of(s.learned, why(s.choice), s.choice.scores()),
                }),
                (None, Some(m)) => Some(model_facts(m.learned, m.linear, m.choice)),
                (None, None) => None,
            },
            check: study.and_then(|s| s.filler.check.as_ref()).map(check_facts),
            filled,
            odd_rows: study
                .and_then(|s| Some((s, s.linear?)))
                .map(|(s, linear)| odd_rows(s, linear, names.as_deref()))
                .transpose()?,
            time: study
                .and_then(|s| Some((s, s.learned.dynamic().ok()?)))
                .map(|(s, fit)| TimeFacts::of(s, fit, subject.level))
                .transpose()?,
            structure: study.map(StructureFacts::of).transpose()?.flatten(),
            not_done: Vec::new(),
            doubts: Vec::new(),
        };
        (facts.not_done, facts.doubts) = (doubts::not_done(&facts), doubts::doubts(&facts));
        Ok(facts)
    }
}

fn table_facts(table: &Table, ledger: &Ledger, study: Option<&Study<'_>>) -> Result<TableFacts, Error> {
    let data = table.dataset();
    let mut explained = vec![None; data.n_columns()];
    let mut spread = vec![None; data.n_columns()];
    let mut skill = vec![None; data.n_columns()];
    let mut tests = GapTests::default();
    if let Some(Study { learned, filler, linear, column_map, data, .. }) = study {
        let sds = &learned.training.column_sds;
        for (k, &j) in column_map.columns.iter().enumerate() {
            skill[j] = filler.check.as_ref().and_then(|c| c.skill_by_column[k]);
            if let Ok(fit) = learned.dynamic() {
                explained[j] = Some(1.0 - fit.model.noise().variance(k) / (sds[k] * sds[k]));
            }
        }
        if let Some(linear) = linear {
            let variances = linear.model.variances();
            for (k, &j) in column_map.columns.iter().enumerate() {
                explained[j] = Some(1.0 - linear.model.noise().variance(k) / variances[k]);
                spread[j] = Some(variances[k].sqrt() / sds[k]);
            }
            tests = gap_tests(&linear.model, data)?;
        }
    }
    let columns = data.column_names().iter().enumerate().map(|(j, name)| {
        let column = data.values().column(j);
        let observed = || column.iter().copied().filter(|v| !v.is_nan());
        let some = |v: f64| (data.n_observed_by_column()[j] > 0).then_some(v);
        ColumnFacts {
            name: name.clone(),
            n_gaps: ledger.gaps_by_column[j],
            mean: some(data.observed_means()[j]),
            sd: some(data.observed_variances()[j].sqrt()),
            least: some(observed().fold(f64::INFINITY, f64::min)),
            largest: some(observed().fold(f64::NEG_INFINITY, f64::max)),
            explained: explained[j],
            spread: spread[j],
            skill: skill[j],
        }
    });
    let identifiers = table.identifiers();
    let suspected =
        table.notes().iter().filter(|note| note.is_warning()).chain(&identifiers).map(ToString::to_string);
    Ok(TableFacts {
        n_rows: ledger.n_rows,
        n_columns: ledger.n_columns,
        n_gaps: ledger.n_gaps,
        n_complete_rows: ledger.n_complete_rows,
        columns: columns.collect(),
        set_aside: set_aside(table, ledger),
        oddities: suspected.chain(ledger.oddities(data).map(|o| o.to_string())).collect(),
        gaps_tested: !tests.columns.is_empty(),
        gap_trends: tests.trends().map(ToString::to_string).collect(),
    })
}

fn set_aside(table: &Table, ledger: &Ledger) -> Vec<SetAside> {
    let named = |name: &str, why: &str| SetAside { name: name.to_owned(), why: why.to_owned() };
    let times = table.dataset().times();
    let axis = times.axis();
    let read = table.columns_aside().into_iter().map(|j| {
        let name = &table.column_names()[j];
        if axis.is_some_and(|axis| axis.name == *name) {
            return named(name, "says when rows happened");
        }
        if axis.is_some_and(|axis| axis.sequences.as_ref() == Some(name)) {
            return named(name, "tells sequences of rows apart");
        }
        match table.kind(j) {
            ColumnKind::Text { row } => named(name, &format!("not numeric: text in row {}", row + 1)),
            ColumnKind::Typed { name: of } => named(name, &format!("of type {of}")),
            ColumnKind::Unnamed => named("(no name)", "a column without a name labels the rows"),
            ColumnKind::Numbers | ColumnKind::Excluded if table.dataset().points().is_some() => {
                named(name, "says which curve a point is of, or when it was observed")
            }
            ColumnKind::Numbers | ColumnKind::Excluded => named(name, "excluded as requested"),
        }
    });
    let name = |j: usize| table.dataset().column_names()[j].as_str();
    let constant = ledger.constant_columns.iter().map(|&(j, v)| {
        named(name(j), &format!("constant, always {v}: not modeled; its missing values take that value"))
    });
    let single = ledger
        .single_columns
        .iter()
        .map(|&(j, _)| named(name(j), "one value only: its missing values remain"));
    let empty =
        ledger.empty_columns.iter().map(|&j| named(name(j), "no value at all: its missing values remain"));
    read.chain(constant).chain(single).chain(empty).collect()
}

/// Why there are as many components as there are, as the library says.
fn why(choice: &Choice) -> Why {
    match &choice.grounds {
        Grounds::HiddenCells(Some(_)) => Why::HiddenCells,
        Grounds::HiddenCells(None) => Why::NoRoom,
        Grounds::Fixed => Why::FullCovariance,
        Grounds::Share(share) => Why::Share(*share),
        Grounds::Sizes(sizes) => Why::Sizes { tried: sizes.len() },
        Grounds::Correlations { .. } => Why::Correlations,
        Grounds::Directions => Why::Directions,
        Grounds::Asked | Grounds::Offered | Grounds::Blocks(_) => Why::Asked,
    }
}

fn model_facts(learned: &Learned, linear: &LinearFit, choice: &Choice) -> ModelFacts {
    let (q, shown) = (linear.model.n_components(), learned.n_shown());
    // A method that drops components takes a number that was asked for as the most there may be.
    let pruned = !linear.report.relevance.is_empty() || q < linear.spec.n_components;
    let why = match why(choice) {
        Why::Asked if pruned => Why::Pruned { offered: linear.spec.n_components },
        other => other,
    };
    ModelFacts {
        n_components: shown,
        // Rotated components, and those that two views share, do not divide the variance among them.
        shares: if linear.rotation.is_none() && shown == q {
            linear.model.explained_variance_ratio()
        } else {
            Vec::new()
        },
        rotation: linear.rotation.as_ref().map(|r| r.name.clone()),
        noise: Some(NoiseFacts::of(learned, |j| linear.model.noise().variance(j))),
        fit_statistics: fit_facts(learned, linear),
        parameter_uncertainty: linear.parameter_uncertainty(),
        ..ModelFacts::of(learned, why, linear.choice.as_ref())
    }
}

fn check_facts(check: &SelfCheck) -> CheckFacts {
    CheckFacts {
        n_hidden: check.n_hidden,
        rmse: check.rmse,
        baseline_rmse: check.baseline_rmse,
        skill: check.skill,
        coverage: check
            .coverage
            .iter()
            .map(|c| CoverageFacts { level: c.level, share: c.share, standard_error: c.standard_error })
            .collect(),
    }
}

fn filled(
    study: &Study<'_>,
    (table, columns): (&Table, &[ColumnFacts]),
    level: f64,
    names: Option<&[String]>,
) -> Result<FilledFacts, Error> {
    let wide = table.dataset();
    let imputed = study.filler.fill(Rows::Training)?.fill(study.data)?;
    let imputed: Imputed = study.column_map.imputed(imputed, wide)?;
    let filling = study.filler.filling.as_ref();
    let sds: Vec<f64> = wide.observed_variances().iter().map(|v| v.sqrt()).collect();
    let uncertainty = |c: &FilledCell| if sds[c.column] > 0.0 { c.sd / sds[c.column] } else { 0.0 };
    let mut order: Vec<(f64, &FilledCell)> = imputed.cells().iter().map(|c| (uncertainty(c), c)).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.row.cmp(&b.1.row)).then(a.1.column.cmp(&b.1.column)));
    let outside = |c: &&FilledCell| {
        let ColumnFacts { least, largest, .. } = &columns[c.column];
        least.is_some_and(|v| c.mean < v) || largest.is_some_and(|v| c.mean > v)
    };
    let cell = |&(uncertainty, c): &(f64, &FilledCell)| {
        let (lower, upper) = c.interval(level)?;
        Ok(CellFacts {
            row: c.row + 1,
            label: names.map(|n| n[c.row].clone()),
            column: wide.column_names()[c.column].clone(),
            mean: c.mean,
            sd: c.sd,
            lower,
            upper,
            uncertainty,
        })
    };
    Ok(FilledFacts {
        by: study.filler.described(),
        chosen: filling.and_then(chosen_filling),
        n_calibrated: filling.and_then(|f| f.calibration.as_ref()).map(|c| c.n_hidden),
        bounded: filling.is_some_and(|f| f.limits.is_some()),
        n_filled: imputed.cells().len(),
        n_left: wide.n_gaps() - imputed.cells().len(),
        level,
        median_uncertainty: order.get(order.len() / 2).map(|o| o.0),
        n_outside_range: imputed.cells().iter().filter(outside).count(),
        cells: order.iter().take(MOST_CELLS).map(cell).collect::<Result<_, covary::Error>>()?,
        tipping: tipping(study)?,
    })
}

fn odd_rows(study: &Study<'_>, linear: &LinearFit, names: Option<&[String]>) -> Result<OddRows, Error> {
    let Study { learned, data, .. } = study;
    let distances = linear.model.outlyingness(data)?;
    let tails: Vec<f64> = distances.iter().map(covary::model::Outlyingness::tail_probability).collect();
    let threshold = FAMILY_WISE / data.n_rows() as f64;
    let mut order: Vec<usize> = (0..data.n_rows()).collect();
    // Where probabilities round to zero the distances still differ.
    let distance = |i: usize| distances[i].mahalanobis / distances[i].n_observed.max(1) as f64;
    order.sort_by(|&a, &b| {
        tails[a].total_cmp(&tails[b]).then(distance(b).total_cmp(&distance(a))).then(a.cmp(&b))
    });
    order.truncate(MOST_ROWS);
    let rows = data.of_rows(&order)?;
    let expected = linear.model.reconstruct(&rows, Reconstruction::PosteriorMean)?;
    let because = |k: usize| {
        let apart = |j: usize| {
            let sd = linear.model.noise().variance(j).sqrt();
            (rows.row(k)[j] - expected[(k, j)]) / sd
        };
        let mut columns: Vec<(usize, f64)> =
            (0..rows.n_columns()).filter(|&j| !rows.row(k)[j].is_nan()).map(|j| (j, apart(j))).collect();
        columns.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
        columns.into_iter().take(REASONS).map(|(j, z)| (learned.columns[j].clone(), z)).collect()
    };
    Ok(OddRows {
        n_far: tails.iter().filter(|&&p| p < threshold).count(),
        threshold,
        rows: order
            .iter()
            .enumerate()
            .map(|(k, &i)| OddRow {
                row: i + 1,
                label: names.map(|n| n[i].clone()),
                t_squared: distances[i].t_squared,
                squared_prediction_error: distances[i].squared_prediction_error,
                scaled_prediction_error: (distances[i].mahalanobis - distances[i].t_squared).max(0.0),
                mahalanobis: distances[i].mahalanobis,
                tail_probability: tails[i],
                because: because(k),
            })
            .collect(),
    })
}

/// What the rows are called: the first column set aside whose entries are all different.
pub fn row_names(table: &Table) -> Option<Vec<String>> {
    let texts = |j: usize| (0..table.n_rows()).map(|i| table.text(i, j)).collect::<Vec<_>>();
    table.columns_aside().into_iter().map(texts).find(|names| {
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort_unstable();
        sorted.windows(2).all(|pair| pair[0] != pair[1])
    })
}

impl NoiseFacts {
    /// Of variances of the noise of each column.
    pub(super) fn of(learned: &Learned, variance: impl Fn(usize) -> f64) -> Self {
        let noise = |(j, sd): (usize, &f64)| variance(j).sqrt() / sd;
        let noises = || learned.training.column_sds.iter().enumerate().map(noise);
        Self { least: noises().fold(f64::INFINITY, f64::min), largest: noises().fold(0.0, f64::max) }
    }
}

impl ModelFacts {
    /// What is known of a model of any kind.
    pub(super) fn of(learned: &Learned, why: Why, scores: Option<&HeldOut>) -> Self {
        let ending = learned.ending();
        let at = scores.iter().flat_map(|found| &found.by_n_components).map(|at| ChoiceAt {
            n_components: at.n_components,
            shortfall: at.shortfall,
            shortfall_error: at.shortfall_error,
        });
        Self {
            family: learned.family,
            words: learned.family.words().to_owned(),
            described: learned.described(),
            method: learned.method.name.clone(),
            standardized: learned.standardized(),
            n_components: learned.n_components(),
            why,
            choice: at.collect(),
            choice_in_crps: scores.is_some_and(|found| found.score == Score::Crps),
            shares: Vec::new(),
            rotation: None,
            noise: None,
            ending: crate::words::ending(&ending),
            converged: matches!(ending.termination, Termination::Converged | Termination::ClosedForm),
            objective: ending.objective.map(|found| crate::words::objective(found.kind).to_owned()),
            objective_value: ending.objective.map(|found| found.value),
            fit_statistics: None,
            warnings: ending.warnings.iter().map(|warning| warning.message.clone()).collect(),
            parameter_uncertainty: ParameterUncertainty::None,
        }
    }

    /// The number of components that predicted hidden cells best, whether chosen or not.
    pub(crate) fn best(&self) -> Option<usize> {
        self.choice.iter().find(|at| at.shortfall == 0.0).map(|at| at.n_components)
    }

    /// What its components are called.
    pub(crate) fn word(&self) -> &'static str {
        match self.family.kind() {
            Kind::Dynamic => "factor",
            Kind::Sources => "source",
            _ => "component",
        }
    }

    /// The most components that were tried.
    pub(crate) fn most_tried(&self) -> Option<usize> {
        self.choice.last().map(|at| at.n_components)
    }
}
