use super::held_out::{Room, per_cell};
use crate::infer::{Observer, Termination, stop_flag};
use crate::model::FilledCell;
use crate::parallel::copied;
use crate::{Dataset, Error, Estimator, LinearGaussian, Matrix, Spec};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Most cells hidden: their coverage is then known to 0.1 % at level 0.95 and 0.25 % at 0.5.
const MOST_HIDDEN: usize = 40_000;

/// How cells are hidden, and which intervals are tried.
#[derive(Debug, Clone, PartialEq)]
pub struct SelfCheckOptions {
    /// Share of the observed cells to hide. A tenth leaves the fit close to that of the whole table.
    /// Never more than 40 000 cells are hidden: in a large table this share of as many rows, evenly
    /// spread, as have them.
    pub share: f64,
    /// Levels of the intervals tried.
    pub levels: Vec<f64>,
    /// Seed of the choice of cells.
    pub seed: u64,
}

impl Default for SelfCheckOptions {
    fn default() -> Self {
        Self { share: 0.1, levels: vec![0.5, 0.8, 0.95], seed: 0 }
    }
}

impl SelfCheckOptions {
    pub(crate) fn check(&self) -> Result<(), Error> {
        if !(self.share > 0.0 && self.share < 1.0) {
            return Err(Error::OutOfRange { name: "share", value: self.share, bound: "between 0 and 1" });
        }
        let unit = FilledCell::normal(0, 0, 0.0, 1.0);
        self.levels.iter().try_for_each(|&level| unit.reach(level).map(|_| ()))
    }
}

/// Cross-validation: how well hidden cells of this table were predicted by a fit without them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelfCheck {
    /// Cells hidden.
    pub n_hidden: usize,
    /// Root mean squared error of the predicted means, each in standard deviations of its column's
    /// observed cells: units do not matter.
    #[serde(with = "crate::json")]
    pub rmse: f64,
    /// The same for the mean of the column's visible cells.
    #[serde(with = "crate::json")]
    pub baseline_rmse: f64,
    /// `1 − rmse² / baseline_rmse²`: the share of the columns' variance that is predicted; 0 or less
    /// where the model is of no use.
    #[serde(with = "crate::json")]
    pub skill: f64,
    /// Skill in each column; `None` where no cell could be hidden.
    pub skill_by_column: Vec<Option<f64>>,
    /// Empirical coverage of the intervals, one entry per requested level.
    pub coverage: Vec<Coverage>,
}

/// Empirical coverage of intervals of one level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// The level promised.
    #[serde(with = "crate::json")]
    pub level: f64,
    /// Share of the hidden cells inside their interval.
    #[serde(with = "crate::json")]
    pub share: f64,
    /// Standard error of `share`, over rows.
    #[serde(with = "crate::json")]
    pub standard_error: f64,
}

/// Cross-validation on the table itself: hides some observed cells of this very table, fits the rest, and compares
/// what it predicts with what was hidden.
///
/// ```text
/// zₕ = (tₕ − m̂ₕ) / sⱼ      rmse² = 1/|H| Σ zₕ²      sⱼ: standard deviation of the column's observed cells
/// ```
///
/// Every row keeps one cell and every column `n_components + 1`; constant columns are left alone. The
/// cost is one fit; less by [`Em::from_model`](crate::infer::Em::from_model) where the whole table has
/// been fitted already. What it says holds for gaps that come like the hidden cells, at random.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::Em, select::self_check, Spec};
/// let (whole, _) = simulate::ppca(Shape { rows: 400, columns: 8, n_components: 2 }, /* seed */ 1);
/// let table = simulate::hide(&whole, 0.2, /* seed */ 2);
/// let check = self_check(&table, &Spec::ppca(2), &Em::default(), &Default::default(), &mut ())?;
/// assert!(check.skill > 0.5 && check.rmse < check.baseline_rmse);
/// let at_95 = check.coverage[2];
/// assert!((at_95.share - 0.95).abs() < 4.0 * at_95.standard_error);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfRange`] unless share and levels lie between 0 and 1; [`Error::TooFewToHide`] if no
/// cell can be spared; [`Error::Interrupted`] if the observer stopped the fit or its
/// [flag](Observer::stop_flag) the filling of the hidden cells; and what the estimator
/// refuses: it meets a table with gaps.
pub fn self_check(
    data: &Dataset,
    spec: &Spec,
    estimator: &dyn Estimator<Model = LinearGaussian>,
    options: &SelfCheckOptions,
    observer: &mut dyn Observer,
) -> Result<SelfCheck, Error> {
    Ok(self_check_by_cell(data, spec, estimator, options, observer)?.0)
}

/// The same by whatever fills gaps, with the hidden cells one by one. `fill` gets the table with cells hidden, of which
/// every column keeps more than `n_components`, and those rows of it that it is to fill. Of a model that has seen these
/// rows before, which knows the hidden cells a little, the answer is flattering.
///
/// # Errors
/// As [`self_check`], and those of `fill`.
pub fn self_check_by(
    data: &Dataset,
    n_components: usize,
    options: &SelfCheckOptions,
    fill: impl FnOnce(&Dataset, &Dataset) -> Result<Vec<FilledCell>, Error>,
) -> Result<(SelfCheck, Vec<CheckedCell>), Error> {
    options.check()?;
    let Hidden { visible, rows } = Hidden::new(data, n_components, options)?;
    let cells = fill(&visible, &visible.of_rows(&rows)?)?.into_iter().map(|cell| {
        let row = rows[cell.row];
        CheckedCell { cell: FilledCell { row, ..cell }, truth: data.values()[(row, cell.column)] }
    });
    let cells: Vec<CheckedCell> = cells.filter(|c| !c.truth.is_nan()).collect();
    let baseline: Vec<f64> = cells.iter().map(|c| visible.observed_means()[c.cell.column]).collect();
    let rows: Vec<usize> = cells.iter().map(|c| c.cell.row).collect();
    Ok((compare(&cells, &baseline, &rows, data, &options.levels), cells))
}

/// A hidden cell: what it holds and what was predicted for it.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedCell {
    /// The prediction.
    pub cell: FilledCell,
    /// The value that was hidden.
    pub truth: f64,
}

impl CheckedCell {
    /// Probability that the prediction gave to values below the truth: even between 0 and 1 over many
    /// cells if the predictions are calibrated (Dawid 1984).
    ///
    /// ```text
    /// u = Φ((t − m) / s)
    /// ```
    ///
    /// ```
    /// use covary::{model::FilledCell, select::CheckedCell};
    /// let cell = FilledCell::normal(0, 0, 2.0, 1.0);
    /// let upper = cell.interval(0.9).unwrap().1;
    /// assert_eq!(CheckedCell { cell: cell.clone(), truth: 2.0 }.pit(), 0.5);
    /// assert!((CheckedCell { cell, truth: upper }.pit() - 0.95).abs() < 1e-9);
    /// ```
    pub fn pit(&self) -> f64 {
        self.cell.cdf(self.truth)
    }
}

/// [`self_check`] with the cells behind it, one by one.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::Em, select::self_check_by_cell, Spec};
/// let (whole, _) = simulate::ppca(Shape { rows: 400, columns: 8, n_components: 2 }, /* seed */ 1);
/// let (check, cells) = self_check_by_cell(&whole, &Spec::ppca(2), &Em::default(), &Default::default(), &mut ())?;
/// let mean = cells.iter().map(|c| c.pit()).sum::<f64>() / check.n_hidden as f64;
/// assert!((mean - 0.5).abs() < 0.05);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// As [`self_check`].
pub fn self_check_by_cell(
    data: &Dataset,
    spec: &Spec,
    estimator: &dyn Estimator<Model = LinearGaussian>,
    options: &SelfCheckOptions,
    observer: &mut dyn Observer,
) -> Result<(SelfCheck, Vec<CheckedCell>), Error> {
    self_check_by(data, spec.n_components, options, |visible, rows| {
        let fit = estimator.fit_observed(visible, spec, observer)?;
        match fit.report.termination {
            Termination::Interrupted => Err(Error::Interrupted),
            _ => fit.of_training_rows().gap_cells_unless(rows, stop_flag(observer)),
        }
    })
}

/// What was predicted for the hidden cells, against what they hold and what the mean of the visible cells of the column says
/// of each. `units` numbers the independent units that they are in, as a rule their rows.
pub(crate) fn compare(
    cells: &[CheckedCell],
    baseline_means: &[f64],
    units: &[usize],
    data: &Dataset,
    levels: &[f64],
) -> SelfCheck {
    let (n, d) = (units.iter().max().map_or(0, |last| last + 1), data.n_columns());
    let variances = data.observed_variances();
    let (mut squares, mut baseline) = (vec![0.0; d], vec![0.0; d]);
    let mut hidden_in = vec![0; n];
    let mut inside = vec![vec![0.0; n]; levels.len()];
    for ((CheckedCell { cell, truth: t }, plain), &unit) in cells.iter().zip(baseline_means).zip(units) {
        let &FilledCell { column, mean, sd, .. } = cell;
        squares[column] += (t - mean).powi(2) / variances[column];
        baseline[column] += (t - plain).powi(2) / variances[column];
        hidden_in[unit] += 1;
        for (inside, &level) in inside.iter_mut().zip(levels) {
            let reach = cell.reach(level).expect("levels were checked");
            inside[unit] += f64::from(u8::from((t - mean).abs() <= reach * sd));
        }
    }
    let n_hidden: usize = hidden_in.iter().sum();
    let total = |sums: &[f64]| sums.iter().sum::<f64>() / n_hidden as f64;
    let (squared, baseline_squared) = (total(&squares), total(&baseline));
    let coverage = levels.iter().zip(&inside).map(|(&level, inside)| {
        let (share, standard_error) = per_cell(inside, &hidden_in);
        Coverage { level, share, standard_error }
    });
    SelfCheck {
        n_hidden,
        rmse: squared.sqrt(),
        baseline_rmse: baseline_squared.sqrt(),
        skill: 1.0 - squared / baseline_squared,
        skill_by_column: (0..d)
            .map(|j| (baseline[j] > 0.0).then(|| 1.0 - squares[j] / baseline[j]))
            .collect(),
        coverage: coverage.collect(),
    }
}

/// The table with cells hidden.
struct Hidden {
    visible: Dataset,
    /// The rows they were hidden in, in ascending order.
    rows: Vec<usize>,
}

impl Hidden {
    /// Hides the share asked for, as far as rows and columns can spare it.
    fn new(data: &Dataset, n_components: usize, options: &SelfCheckOptions) -> Result<Self, Error> {
        let &SelfCheckOptions { share, seed, .. } = options;
        let d = data.n_columns();
        let varies = |j: usize| data.observed_variances()[j] > 0.0;
        let Room { mut rows, mut columns } = Room::of(data, n_components);
        let mut cells = copied(data.values().as_slice());
        let by_share = (share * data.n_observed() as f64).ceil().max(1.0) as usize;
        let mut wanted = by_share.min(MOST_HIDDEN);
        let spare = |&at: &usize| !cells[at].is_nan() && varies(at % d);
        let from = data.spread_rows((data.n_rows() * wanted).div_ceil(by_share));
        let mut candidates: Vec<usize> = from.iter().flat_map(|i| i * d..(i + 1) * d).filter(spare).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // A shuffle that ends with the last cell wanted.
        while wanted > 0 && !candidates.is_empty() {
            let at = candidates.swap_remove(rng.random_range(0..candidates.len()));
            let (row, column) = (&mut rows[at / d], &mut columns[at % d]);
            if *row > 0 && *column > 0 {
                cells[at] = f64::NAN;
                (*row, *column, wanted) = (*row - 1, *column - 1, wanted - 1);
            }
        }
        let with_names = |values| Dataset::with_names(values, data.column_names().to_vec());
        let mut visible = with_names(Matrix::from_vec(data.n_rows(), d, cells)?)?;
        // A column with few different values may have lost all but one of them: it is given back.
        let lost: Vec<usize> =
            (0..d).filter(|&j| varies(j) && visible.observed_variances()[j] == 0.0).collect();
        if !lost.is_empty() {
            let mut values = visible.into_values();
            for (i, &j) in (0..data.n_rows()).flat_map(|i| lost.iter().map(move |j| (i, j))) {
                values[(i, j)] = data.row(i)[j];
            }
            visible = with_names(values)?;
        }
        let hidden_in =
            |&i: &usize| data.row(i).iter().zip(visible.row(i)).any(|(t, v)| v.is_nan() && !t.is_nan());
        let rows: Vec<usize> = from.into_iter().filter(hidden_in).collect();
        if rows.is_empty() {
            return Err(Error::TooFewToHide { cells: 0, folds: 1 });
        }
        Ok(Self { visible, rows })
    }
}
