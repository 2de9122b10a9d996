use crate::infer::{Step, Termination};
use crate::linalg::elementary::standard_crps;
use crate::model::{Density, check_columns};
use crate::parallel::{self, add};
use crate::{Dataset, Error, Estimator, Spec};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How cells are hidden.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldOutOptions {
    /// Number of folds: each hides its share of the cells once. 5 hides a fifth at a time, close to
    /// the gaps the model will meet, at five fits per number of components.
    pub n_folds: usize,
    /// Seed of the random folds.
    pub seed: u64,
}

impl Default for HeldOutOptions {
    fn default() -> Self {
        Self { n_folds: 5, seed: 0 }
    }
}

/// Components that predict this share of the variance of hidden cells are there, whatever a few rows say of
/// the density.
const PLAIN: f64 = 0.6;

/// A share of the best CRPS that is no difference: superfluous components predict so nearly the same that chance decides, and take
/// long to fit.
const NEGLIGIBLE: f64 = 5e-4;

/// What predictions of hidden cells are scored by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Score {
    /// Joint log-density `ln p(t_H | t_O)` in nats per hidden cell; larger is better.
    /// What files from before CRPS have.
    #[default]
    LogDensity,
    /// Continuous ranked probability score of each hidden cell's own distribution, in the scale of the fit: standard
    /// deviations of the column if it standardizes. Smaller is better. Linear in large errors, so that a few wild cells do
    /// not rule it [M 3.4].
    Crps,
}

/// What the number of components is chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Purpose {
    /// To be looked at: the fewest that predict as well as the best, [`ChoiceRule::OneStandardError`].
    #[default]
    Components,
    /// To fill gaps: those that predict best, [`ChoiceRule::Maximum`].
    Filling,
}

impl Purpose {
    /// How it chooses.
    pub fn rule(self) -> ChoiceRule {
        match self {
            Self::Components => ChoiceRule::OneStandardError,
            Self::Filling => ChoiceRule::Maximum,
        }
    }
}

/// How the held-out scores choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChoiceRule {
    /// The smallest number of components whose mean falls short of the best by no more than one
    /// standard error of that shortfall, so that a component must earn its place. (The standard
    /// error of the best mean itself, as often used, is dominated by how hard the rows are: with
    /// three weak components in 500 rows it found them in 5 tables of 20, this rule in 17.)
    ///
    /// Where this takes no component, the fewest are taken after all that have a [skill](HeldOutAt::skill) of 0.6 or
    /// more. In very few rows the fitted noise is far too small now and then, hence the log-density of some row is
    /// extremely low, and its standard error so large that it excludes nothing. (200 tables of 7 to 15 rows and 2
    /// to 4 columns: at least one component is taken in 1 of pure noise, with and without; in 174 instead of 123 where
    /// one component has 90 % of the variance; in 200 instead of 160 where it has 99 %.)
    #[default]
    OneStandardError,
    /// The best mean; of those that differ by less than 0.05 % of their CRPS the fewest components.
    Maximum,
}

/// Predictions of hidden cells, for several numbers of components.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldOut {
    /// One entry per number of components, in ascending order.
    pub by_n_components: Vec<HeldOutAt>,
    /// Cells hidden, all folds together.
    pub n_hidden: usize,
    /// Root mean squared error of filling in the mean of the visible cells of the column.
    #[serde(with = "crate::json")]
    pub baseline_rmse: f64,
    /// What the predictions are scored by. Errors are in the units of the table with log-densities, in the scale of the fit
    /// with CRPS.
    #[serde(default, skip_serializing_if = "crate::json::is_default")]
    pub score: Score,
    /// Rows with hidden cells.
    #[serde(default, skip_serializing_if = "crate::json::is_default")]
    pub n_rows: usize,
    /// Sets of cells that were hidden one after the other.
    #[serde(default, skip_serializing_if = "crate::json::is_default")]
    pub n_sets: usize,
    /// Whether the best number is the largest that the table has room for.
    #[serde(default, skip_serializing_if = "crate::json::is_default")]
    pub limited: bool,
}

/// Predictions of hidden cells with one number of components.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HeldOutAt {
    /// q.
    pub n_components: usize,
    /// The mean [score](Score) of a hidden cell.
    #[serde(with = "crate::json")]
    pub mean: f64,
    /// Standard error of `mean`, over rows.
    #[serde(with = "crate::json")]
    pub standard_error: f64,
    /// How far `mean` falls short of the best entry's; 0 for the best.
    #[serde(with = "crate::json")]
    pub shortfall: f64,
    /// Standard error of `shortfall`, over rows. Both are scored on the same cells, so that what
    /// makes a row hard for every model cancels: it is far smaller than `standard_error`.
    #[serde(with = "crate::json")]
    pub shortfall_error: f64,
    /// Sum of the univariate log-densities of the hidden cells, in nats per hidden cell.
    #[serde(with = "crate::json")]
    pub marginal_mean: f64,
    /// Root mean squared error of the predicted means.
    #[serde(with = "crate::json")]
    pub rmse: f64,
    /// `1 − rmse² / baseline_rmse²`: the share of the columns' variance that is predicted.
    #[serde(with = "crate::json")]
    pub skill: f64,
}

impl HeldOut {
    /// The number of components that predicts best.
    pub fn best(&self) -> usize {
        self.chosen(ChoiceRule::Maximum)
    }

    /// The predictions with this many components, if they were made.
    pub fn at(&self, n_components: usize) -> Option<&HeldOutAt> {
        self.by_n_components.iter().find(|at| at.n_components == n_components)
    }

    /// The number of components the rule prefers.
    pub fn chosen(&self, rule: ChoiceRule) -> usize {
        let least = match self.score {
            Score::Crps => self.by_n_components.iter().map(|at| at.mean).fold(f64::INFINITY, f64::min),
            // A density has no zero to be a share of.
            Score::LogDensity => 0.0,
        };
        let slack = |at: &HeldOutAt| match rule {
            ChoiceRule::OneStandardError => at.shortfall_error.max(NEGLIGIBLE * least),
            ChoiceRule::Maximum => NEGLIGIBLE * least,
        };
        let chosen = self
            .by_n_components
            .iter()
            .find(|at| at.shortfall <= slack(at))
            .expect("the best entry falls short by zero")
            .n_components;
        if chosen > 0 || rule == ChoiceRule::Maximum {
            return chosen;
        }
        let plain = |at: &&HeldOutAt| at.n_components > 0 && at.skill >= PLAIN;
        self.by_n_components.iter().find(plain).map_or(0, |at| at.n_components)
    }
}

/// How well hidden cells were predicted, row by row; zero for rows without hidden cells.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldOutRows {
    /// `ln p(t_H | t_O)`, in nats; zero where only single cells are scored.
    pub joint: Vec<f64>,
    /// `Σ_h ln p(t_h | t_O)`, in nats, each hidden cell by a normal with its predicted mean and
    /// variance.
    pub marginal: Vec<f64>,
    /// `Σ_h CRPS`, of the same normals.
    pub crps: Vec<f64>,
    /// Sum of squared errors of the predicted means.
    pub squared_error: Vec<f64>,
    /// Hidden cells.
    pub n_hidden: Vec<usize>,
}

impl HeldOutRows {
    pub(crate) fn new(n_rows: usize) -> Self {
        let zeros = vec![0.0; n_rows];
        Self {
            joint: zeros.clone(),
            marginal: zeros.clone(),
            crps: zeros.clone(),
            squared_error: zeros,
            n_hidden: vec![0; n_rows],
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        add(&mut self.joint, &other.joint);
        add(&mut self.marginal, &other.marginal);
        add(&mut self.crps, &other.crps);
        add(&mut self.squared_error, &other.squared_error);
        self.n_hidden.iter_mut().zip(&other.n_hidden).for_each(|(a, b)| *a += b);
    }

    /// Scores a hidden cell of a row: how far it is from its prediction, which has this standard deviation.
    #[inline]
    pub(crate) fn add_cell(&mut self, row: usize, error: f64, sd: f64) {
        let z = error / sd;
        self.marginal[row] -= 0.5 * ((2.0 * PI).ln() + z * z) + sd.ln();
        self.crps[row] += sd * standard_crps(z);
        self.squared_error[row] += error * error;
        self.n_hidden[row] += 1;
    }

    /// The loss of every row by a score.
    fn losses(&self, score: Score) -> Vec<f64> {
        match score {
            Score::LogDensity => self.joint.iter().map(|v| -v).collect(),
            Score::Crps => self.crps.clone(),
        }
    }

    /// The mean loss of a hidden cell.
    pub(super) fn mean_loss(&self, score: Score) -> f64 {
        per_cell(&self.losses(score), &self.n_hidden).0
    }

    /// Mean squared error over all hidden cells; NaN if there are none.
    pub fn mean_squared_error(&self) -> f64 {
        self.squared_error.iter().sum::<f64>() / self.n_hidden.iter().sum::<usize>() as f64
    }
}

/// Scores given parameters on the cells of `full` that are gaps in `visible` [M 1.8.3].
///
/// ```text
/// ln p(t_H | t_O) = ℓ(O ∪ H) − ℓ(O)                  row by row; O visible, H hidden
/// ```
///
/// ```
/// use covary::{select::hold_out_at, Dataset, LinearGaussian, Matrix, Noise};
/// let model = LinearGaussian::new(Matrix::from_rows(&[[2.0], [1.0]]), vec![0.0, 0.0], Noise::Isotropic(1.0))?;
/// let full = Dataset::new(Matrix::from_rows(&[[5.0, 3.0], [1.0, 1.0]]))?;
/// let visible = Dataset::new(Matrix::from_rows(&[[5.0, f64::NAN], [1.0, 1.0]]))?;
/// let rows = hold_out_at(&model, &full, &visible)?;
/// // t₂ | t₁ = 5 has mean 2: an error of 1. With one hidden cell, joint and marginal agree.
/// assert!((rows.mean_squared_error() - 1.0).abs() < 1e-12);
/// assert!((rows.joint[0] - rows.marginal[0]).abs() < 1e-12 && rows.joint[1] == 0.0);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// [`Error::ColumnCount`] or [`Error::WrongLength`] if the shapes disagree,
/// [`Error::NotInFullTable`] if a visible cell differs from the full table's.
pub fn hold_out_at(model: &dyn Density, full: &Dataset, visible: &Dataset) -> Result<HeldOutRows, Error> {
    check_columns(model.n_columns(), full)?;
    check_columns(model.n_columns(), visible)?;
    let (n, d) = (full.n_rows(), full.n_columns());
    if visible.n_rows() != n {
        return Err(Error::WrongLength {
            what: "rows of the visible table",
            expected: n,
            got: visible.n_rows(),
        });
    }
    let cells = visible.values().as_slice().iter().zip(full.values().as_slice());
    if let Some(at) = { cells }.position(|(v, f)| !v.is_nan() && v != f) {
        let column = full.column_names()[at % d].clone();
        return Err(Error::NotInFullTable { row: at / d + 1, column });
    }
    let mut rows = HeldOutRows::new(n);
    for cell in model.gap_cells(visible)? {
        let t = full.values()[(cell.row, cell.column)];
        if t.is_nan() {
            continue;
        }
        rows.add_cell(cell.row, t - cell.mean, cell.sd);
    }
    let (before, after) = (model.log_density(visible)?, model.log_density(full)?);
    for i in (0..n).filter(|&i| rows.n_hidden[i] > 0) {
        rows.joint[i] = after[i] - before[i];
    }
    Ok(rows)
}

/// Scores every number of components in `range` by the cells it did not see: each fold of the
/// observed cells is hidden in turn, `spec` (with that number of components) is fitted to the
/// rest, and the hidden cells are predicted.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::Em, select::{held_out_cells, HeldOutOptions}, Spec};
/// let (whole, _) = simulate::ppca(Shape { rows: 100, columns: 6, n_components: 2 }, /* seed */ 1);
/// let table = simulate::hide(&whole, 0.1, /* seed */ 2);
/// let scores = held_out_cells(&table, &Spec::ppca(0), 0..=3, &Em::default(), &HeldOutOptions::default())?;
/// let [none, one, two, _] = scores.by_n_components[..] else { unreachable!() };
/// assert!(two.mean > one.mean && one.mean > none.mean);
/// assert!(two.rmse < scores.baseline_rmse);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfRange`] for an empty range or fewer than two folds; [`Error::TooFewToHide`] if the
/// table cannot spare the cells; and what the estimator refuses.
pub fn held_out_cells<E: Estimator<Model: Density> + Sync + ?Sized>(
    data: &Dataset,
    spec: &Spec,
    range: RangeInclusive<usize>,
    estimator: &E,
    options: &HeldOutOptions,
) -> Result<HeldOut, Error> {
    held_out_cells_observed(data, spec, range, estimator, options, &|_, _| ControlFlow::Continue(()))
}

/// [`held_out_cells`] for those who wait: `watch(done, total)` is called with how many of the fits are
/// done, after each of them and after every step on the way, and may stop them all. It is called
/// from several threads, so that a larger count may overtake a smaller one; the scores are the same
/// to the last bit.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::Em, select::held_out_cells_observed, Error, Spec};
/// use std::{ops::ControlFlow, sync::atomic::{AtomicUsize, Ordering}};
/// let (table, _) = simulate::ppca(Shape { rows: 100, columns: 6, n_components: 2 }, /* seed */ 1);
/// let run = |watch: &(dyn Fn(usize, usize) -> ControlFlow<()> + Sync)| {
///     held_out_cells_observed(&table, &Spec::ppca(0), 0..=3, &Em::default(), &Default::default(), watch)
/// };
/// let most = AtomicUsize::new(0);
/// run(&|done, total| {
///     assert_eq!(total, 4 * 5);   // numbers of components × folds
///     most.fetch_max(done, Ordering::Relaxed);
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(most.into_inner(), 20);
/// assert_eq!(run(&|_, _| ControlFlow::Break(())), Err(Error::Interrupted));
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// As [`held_out_cells`], and [`Error::Interrupted`] once `watch` breaks.
pub fn held_out_cells_observed<E: Estimator<Model: Density> + Sync + ?Sized>(
    data: &Dataset,
    spec: &Spec,
    range: RangeInclusive<usize>,
    estimator: &E,
    options: &HeldOutOptions,
    watch: &(dyn Fn(usize, usize) -> ControlFlow<()> + Sync),
) -> Result<HeldOut, Error> {
    let largest = *range.end();
    if range.is_empty() {
        let bound = "at least the smallest number asked for";
        return Err(Error::OutOfRange {
            name: "the largest number of components",
            value: largest as f64,
            bound,
        });
    }
    let with = |n_components| Spec { n_components, ..spec.clone() };
    with(largest).check(data)?;
    let folds = folds_of_cells(data, options.n_folds, largest, options.seed)?;

    let sizes: Vec<usize> = range.collect();
    let jobs: Vec<(usize, usize)> =
        (0..sizes.len()).flat_map(|s| (0..folds.len()).map(move |f| (s, f))).collect();
    let done = AtomicUsize::new(0);
    let tell = |finished| watch(done.fetch_add(finished, Ordering::Relaxed) + finished, jobs.len());
    let fold = |job: usize| {
        let (s, f) = jobs[job];
        let fit = estimator.fit_observed(&folds[f], &with(sizes[s]), &mut |_: &Step| tell(0))?;
        let rows = hold_out_at(&*fit.of_training_rows(), data, &folds[f])?;
        if fit.report.termination == Termination::Interrupted || tell(1).is_break() {
            return Err(Error::Interrupted);
        }
        Ok(rows)
    };
    let scores: Vec<HeldOutRows> = parallel::try_map(jobs.len(), fold)?;
    let totals: Vec<HeldOutRows> = scores
        .chunks(folds.len())
        .map(|by_fold| {
            let mut total = HeldOutRows::new(data.n_rows());
            for fold in by_fold {
                total.add(fold);
            }
            total
        })
        .collect();
    let found: Vec<(usize, &HeldOutRows)> = sizes.iter().copied().zip(&totals).collect();
    let summary = summarize(Score::LogDensity, &found, baseline_mean_squared_error(data, &folds));
    Ok(HeldOut { n_sets: folds.len(), ..summary })
}

/// [`held_out_cells_observed`] over 0 to `most` components, or as many as leave cells to hide: fewer ask
/// fewer cells of a column to stay visible. `None` if there is no room for any.
///
/// # Errors
/// As [`held_out_cells_observed`], except [`Error::TooFewToHide`].
pub fn held_out_cells_up_to<E: Estimator<Model: Density> + Sync + ?Sized>(
    data: &Dataset,
    spec: &Spec,
    most: usize,
    estimator: &E,
    options: &HeldOutOptions,
    watch: &(dyn Fn(usize, usize) -> ControlFlow<()> + Sync),
) -> Result<Option<HeldOut>, Error> {
    for most in (1..=most).rev() {
        match held_out_cells_observed(data, spec, 0..=most, estimator, options, watch) {
            Err(Error::TooFewToHide { .. }) => {}
            other => return other.map(Some),
        }
    }
    Ok(None)
}

/// [`held_out_cells`], then the choice of [`ChoiceRule::OneStandardError`].
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::Em, select::choose_by_held_out_cells, Spec};
/// let (whole, _) = simulate::ppca(Shape { rows: 100, columns: 6, n_components: 2 }, /* seed */ 1);
/// let table = simulate::hide(&whole, 0.1, /* seed */ 2);
/// let q = choose_by_held_out_cells(&table, &Spec::ppca(0), 0..=3, &Em::default(), &Default::default())?;
/// assert_eq!(q, 2);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// As [`held_out_cells`].
pub fn choose_by_held_out_cells<E: Estimator<Model: Density> + Sync + ?Sized>(
    data: &Dataset,
    spec: &Spec,
    range: RangeInclusive<usize>,
    estimator: &E,
    options: &HeldOutOptions,
) -> Result<usize, Error> {
    Ok(held_out_cells(data, spec, range, estimator, options)?.chosen(ChoiceRule::default()))
}

/// The table once per fold, each time with that fold's cells hidden. Every observed cell is hidden
/// at most once; in each fold every row that has a cell keeps one, and every column keeps
/// `n_components + 1`. The cells no fold can spare, among them all those of sparser columns, stay
/// visible throughout.
///
/// ```
/// use covary::{data::{simulate, Shape}, select::folds_of_cells};
/// let (table, _) = simulate::ppca(Shape { rows: 50, columns: 6, n_components: 2 }, /* seed */ 1);
/// let folds = folds_of_cells(&table, 5, /* n_components */ 2, /* seed */ 0)?;
/// let hidden: usize = folds.iter().map(|fold| fold.n_gaps()).sum();
/// assert_eq!(hidden, 50 * 6);   // each cell exactly once
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfRange`] for fewer than two folds; [`Error::TooFewToHide`] if a fold would be empty.
pub fn folds_of_cells(
    data: &Dataset,
    n_folds: usize,
    n_components: usize,
    seed: u64,
) -> Result<Vec<Dataset>, Error> {
    if n_folds < 2 {
        return Err(Error::OutOfRange { name: "n_folds", value: n_folds as f64, bound: "at least 2" });
    }
    let d = data.n_columns();
    let Room { rows: row_room, columns: column_room } = Room::of(data, n_components);
    let values = data.values().as_slice();
    let mut cells: Vec<usize> = (0..values.len()).filter(|&at| !values[at].is_nan()).collect();
    cells.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));

    // Each cell goes to the fold that has taken least from its row, then from its column, then in
    // all: the folds come out alike.
    let mut from_row = vec![0; data.n_rows() * n_folds];
    let mut from_column = vec![0; d * n_folds];
    let mut sizes = vec![0; n_folds];
    let mut tables = vec![data.values().clone(); n_folds];
    for at in cells {
        let (i, j) = (at / d, at % d);
        let fold = (0..n_folds)
            .filter(|f| {
                from_row[i * n_folds + f] < row_room[i] && from_column[j * n_folds + f] < column_room[j]
            })
            .min_by_key(|f| (from_row[i * n_folds + f], from_column[j * n_folds + f], sizes[*f]));
        if let Some(fold) = fold {
            from_row[i * n_folds + fold] += 1;
            from_column[j * n_folds + fold] += 1;
            sizes[fold] += 1;
            tables[fold].as_mut_slice()[at] = f64::NAN;
        }
    }
    if sizes.contains(&0) {
        return Err(Error::TooFewToHide { cells: sizes.iter().sum(), folds: n_folds });
    }
    tables.into_iter().map(|table| Dataset::with_names(table, data.column_names().to_vec())).collect()
}

/// What may be hidden from each row and each column at a time: a row keeps one cell, a column one
/// more than there are components.
pub(super) struct Room {
    pub(super) rows: Vec<usize>,
    pub(super) columns: Vec<usize>,
}

impl Room {
    pub(super) fn of(data: &Dataset, n_components: usize) -> Self {
        let mut rows = vec![0; data.n_rows()];
        for pattern in data.patterns() {
            pattern.rows.iter().for_each(|&i| rows[i] = pattern.n_observed().saturating_sub(1));
        }
        let spare = |n: &usize| n.saturating_sub(n_components + 1);
        Self { rows, columns: data.n_observed_by_column().iter().map(spare).collect() }
    }
}

/// Mean squared error of predicting each hidden cell by the mean of its column's visible cells.
fn baseline_mean_squared_error(data: &Dataset, folds: &[Dataset]) -> f64 {
    let (mut sum, mut n) = (0.0, 0);
    for fold in folds {
        let means = fold.observed_means();
        for (full, visible) in data.values().rows().zip(fold.values().rows()) {
            for ((t, v), m) in full.iter().zip(visible).zip(means) {
                if v.is_nan() && !t.is_nan() {
                    sum += (t - m).powi(2);
                    n += 1;
                }
            }
        }
    }
    sum / f64::from(n)
}

/// What predictions with several numbers of components, in ascending order, come to.
pub(crate) fn summarize(score: Score, found: &[(usize, &HeldOutRows)], baseline: f64) -> HeldOut {
    let n_hidden = &found[0].1.n_hidden;
    let losses: Vec<Vec<f64>> = found.iter().map(|(_, rows)| rows.losses(score)).collect();
    let means: Vec<f64> = losses.iter().map(|loss| per_cell(loss, n_hidden).0).collect();
    let best = (0..means.len()).fold(0, |best, s| if means[s] < means[best] { s } else { best });
    let at = |(&(n_components, rows), loss): (&(usize, &HeldOutRows), &Vec<f64>)| {
        let (mean, standard_error) = per_cell(loss, n_hidden);
        let lost: Vec<f64> = loss.iter().zip(&losses[best]).map(|(own, best)| own - best).collect();
        let (shortfall, shortfall_error) = per_cell(&lost, n_hidden);
        let squared = rows.mean_squared_error();
        HeldOutAt {
            n_components,
            mean: if score == Score::LogDensity { -mean } else { mean },
            standard_error,
            shortfall,
            shortfall_error,
            marginal_mean: per_cell(&rows.marginal, n_hidden).0,
            rmse: squared.sqrt(),
            skill: 1.0 - squared / baseline,
        }
    };
    HeldOut {
        by_n_components: found.iter().zip(&losses).map(at).collect(),
        n_hidden: n_hidden.iter().sum(),
        baseline_rmse: baseline.sqrt(),
        score,
        n_rows: n_hidden.iter().filter(|&&h| h > 0).count(),
        n_sets: 1,
        limited: false,
    }
}

/// Mean per hidden cell and its standard error, rows being the independent units.
///
/// ```text
/// m = Σ yᵢ / Σ hᵢ        s² = n/(n−1) Σ (yᵢ − m hᵢ)² / (Σ hᵢ)²        (ratio estimator)
/// ```
pub(super) fn per_cell(sums: &[f64], counts: &[usize]) -> (f64, f64) {
    let cells = counts.iter().sum::<usize>() as f64;
    let n = counts.iter().filter(|&&h| h > 0).count() as f64;
    let mean = sums.iter().sum::<f64>() / cells;
    let squares: f64 = sums.iter().zip(counts).map(|(y, &h)| (y - mean * h as f64).powi(2)).sum();
    (mean, (n / (n - 1.0).max(1.0) * squares).sqrt() / cells)
}
