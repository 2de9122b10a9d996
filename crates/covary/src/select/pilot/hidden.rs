//! Which cells are hidden, and how their predictions are scored ([M 3.2], [M 3.4]).

use super::Models;
use crate::parallel::copied;
use crate::select::held_out::HeldOutRows;
use crate::{Dataset, Error, Matrix, Spec};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Share of its observed cells that a row hides at a time: more would judge another model than is fitted in the end.
const SHARE: f64 = 0.1;
/// Sets are added until the cells wanted are hidden, up to this many.
const MOST_SETS: f64 = 5.0;
/// Beyond this many cells only some rows hide theirs.
const ENOUGH: f64 = 10_000.0;
/// Rows that hide cells, at least, if there are that many.
const FEWEST_ROWS: f64 = 200.0;
/// Cells that a column keeps.
const KEPT: usize = 3;
/// Small tables leave out whole rows, one such part of them at a time, until this many cells are scored.
const PARTS: usize = 5;
const LEFT_OUT_CELLS: f64 = 8000.0;
/// Rows below which none are left out.
const FEW_ROWS: usize = 20;

/// A table with cells hidden.
pub(super) struct HiddenSet {
    pub(super) visible: Dataset,
    /// Rows with hidden cells, in ascending order.
    rows: Vec<usize>,
    hidden: Hidden,
    pub(super) n_hidden: usize,
}

/// What is predicted from what.
#[allow(clippy::large_enum_variant, reason = "one for each set of a choice")]
enum Hidden {
    Nothing,
    /// Cells of rows that are visible otherwise: what is visible of these rows, and what they are.
    Cells {
        shown: Dataset,
        truth: Dataset,
    },
    /// Each cell of these rows from the others of its row.
    Rows(Dataset),
}

impl HiddenSet {
    /// Whole rows of small tables, cells of others: a component that few rows determine fits their own noise too, and predicts
    /// hidden cells of the same rows worse than those of new ones. In long tables no row matters [M 3.2.3].
    pub(super) fn draw(data: &Dataset, wanted: f64, seed: u64) -> Result<Vec<Self>, Error> {
        let small = SHARE * (data.n_observed() as f64) < wanted;
        if small && let Some(sets) = Self::of_rows(data, seed)? {
            return Ok(sets);
        }
        Self::of_cells(data, wanted, seed)
    }

    /// A fifth of the rows at a time, unless a column would lose what it has.
    fn of_rows(data: &Dataset, seed: u64) -> Result<Option<Vec<Self>>, Error> {
        let n = data.n_rows();
        let observed = |i: usize| data.row(i).iter().filter(|v| !v.is_nan()).count();
        let mut order: Vec<usize> = (0..n).filter(|&i| observed(i) > 1).collect();
        if order.len() < FEW_ROWS {
            return Ok(None);
        }
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        let a_part = data.n_observed() as f64 / PARTS as f64;
        let n_sets = (LEFT_OUT_CELLS / a_part).ceil().clamp(1.0, PARTS as f64) as usize;
        let mut sets = Vec::with_capacity(n_sets);
        for part in 0..n_sets {
            let mut rows: Vec<usize> = order.iter().skip(part).step_by(PARTS).copied().collect();
            rows.sort_unstable();
            let kept: Vec<usize> = (0..n).filter(|i| rows.binary_search(i).is_err()).collect();
            let visible = data.of_rows(&kept)?;
            let left = visible.n_observed_by_column().iter().zip(visible.observed_variances());
            if { left }.any(|(&cells, &variance)| cells < KEPT || variance == 0.0) {
                return Ok(None);
            }
            let left_out = data.of_rows(&rows)?;
            let n_hidden = left_out.n_observed();
            sets.push(Self { visible, rows, hidden: Hidden::Rows(left_out), n_hidden });
        }
        Ok(Some(sets))
    }

    /// Most components that leave noise beside them in the rows that are not left out.
    pub(super) fn room(&self) -> usize {
        match self.hidden {
            Hidden::Rows(_) => {
                let cells = self.visible.n_observed_by_column().iter().copied().min().unwrap_or(0);
                self.visible.n_informative_rows().min(cells).saturating_sub(2)
            }
            _ => usize::MAX,
        }
    }

    /// Sets that have no cell in common, drawn row by row, as many as hide the cells wanted or nearly so.
    pub(super) fn of_cells(data: &Dataset, wanted: f64, seed: u64) -> Result<Vec<Self>, Error> {
        let d = data.n_columns();
        let expected = SHARE * data.n_observed() as f64;
        let n_sets = (wanted / expected).ceil().clamp(1.0, MOST_SETS) as usize;
        let observed = data.n_observed_by_column();
        let mut left: Vec<Vec<usize>> =
            vec![observed.iter().map(|n| n.saturating_sub(KEPT)).collect(); n_sets];
        let mut cells: Vec<Vec<usize>> = vec![Vec::new(); n_sets];
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut candidates = Vec::new();
        // Long tables hide cells of some rows, wide ones some cells of many: rows are the independent units.
        let enough = (ENOUGH / expected).min(1.0);
        let taken = enough.max(FEWEST_ROWS / data.n_rows() as f64).min(1.0);
        let share = SHARE * enough / taken;
        for i in 0..data.n_rows() {
            if taken < 1.0 && rng.random::<f64>() >= taken {
                continue;
            }
            let row = data.row(i);
            candidates.clear();
            candidates.extend((0..d).filter(|&j| !row[j].is_nan()));
            let n_observed = candidates.len();
            for (cells, left) in cells.iter_mut().zip(&mut left) {
                let wanted = share * n_observed as f64;
                let by_lot = usize::from(rng.random::<f64>() < wanted.fract());
                let mut wanted = (wanted as usize + by_lot).min(n_observed.saturating_sub(1));
                while wanted > 0 && !candidates.is_empty() {
                    let j = candidates.swap_remove(rng.random_range(0..candidates.len()));
                    if left[j] > 0 {
                        cells.push(i * d + j);
                        (left[j], wanted) = (left[j] - 1, wanted - 1);
                    }
                }
            }
        }
        cells.into_iter().map(|cells| Self::without(data, cells)).collect()
    }

    /// The table without these cells, in ascending order of their rows.
    pub(super) fn without(data: &Dataset, mut cells: Vec<usize>) -> Result<Self, Error> {
        let d = data.n_columns();
        let hide = |cells: &[usize]| {
            let mut values = copied(data.values().as_slice());
            for &at in cells {
                values[at] = f64::NAN;
            }
            Dataset::with_names(Matrix::from_vec(data.n_rows(), d, values)?, data.column_names().to_vec())
        };
        let mut visible = hide(&cells)?;
        // A column with few different values may have lost all but one of them: it is given back.
        let flat = |table: &Dataset, j: usize| table.observed_variances()[j] == 0.0;
        let lost: Vec<usize> = (0..d).filter(|&j| flat(&visible, j) && !flat(data, j)).collect();
        if !lost.is_empty() {
            cells.retain(|at| !lost.contains(&(at % d)));
            visible = hide(&cells)?;
        }
        let mut rows: Vec<usize> = cells.iter().map(|at| at / d).collect();
        rows.dedup();
        let hidden = if rows.is_empty() {
            Hidden::Nothing
        } else {
            Hidden::Cells { shown: visible.of_rows(&rows)?, truth: data.of_rows(&rows)? }
        };
        Ok(Self { visible, rows, hidden, n_hidden: cells.len() })
    }
}

/// Hidden cells of all sets, and the units they are scored in.
pub(super) struct Scoring<'a> {
    data: &'a Dataset,
    sets: &'a [HiddenSet],
    /// Rows with hidden cells in any set: the independent units.
    rows: Vec<usize>,
    /// `1 / s` of every column in the scale of the fit.
    pub(super) inverse_scale: Vec<f64>,
}

impl<'a> Scoring<'a> {
    pub(super) fn new(data: &'a Dataset, spec: &Spec, sets: &'a [HiddenSet]) -> Self {
        let mut rows: Vec<usize> = sets.iter().flat_map(|set| set.rows.iter().copied()).collect();
        rows.sort_unstable();
        rows.dedup();
        Self { data, sets, rows, inverse_scale: inverse_scale(data.observed_variances(), spec.standardize) }
    }

    /// How the models predict the hidden cells of their sets, row by row.
    pub(super) fn of(&self, models: &Models) -> HeldOutRows {
        let mut scores = HeldOutRows::new(self.rows.len());
        for (set, model) in self.sets.iter().zip(models) {
            let cells = match &set.hidden {
                Hidden::Nothing => Vec::new(),
                Hidden::Cells { shown, truth } => model.fill_hidden(shown, truth),
                Hidden::Rows(rows) => model.given_others(rows),
            };
            for cell in cells {
                self.add(&mut scores, set, cell.row, cell.column, cell.mean, cell.sd);
            }
        }
        scores
    }

    fn add(&self, scores: &mut HeldOutRows, set: &HiddenSet, row: usize, column: usize, mean: f64, sd: f64) {
        let row = set.rows[row];
        let truth = self.data.values()[(row, column)];
        if !truth.is_nan() {
            let unit = self.rows.binary_search(&row).expect("rows of all sets");
            let inverse = self.inverse_scale[column];
            scores.add_cell(unit, (truth - mean) * inverse, sd * inverse);
        }
    }

    /// The mean squared error of filling in the mean of a column's visible cells.
    pub(super) fn baseline(&self) -> f64 {
        let mut scores = HeldOutRows::new(self.rows.len());
        for set in self.sets {
            let means = set.visible.observed_means();
            for (row, &i) in set.rows.iter().enumerate() {
                let is_hidden = |j: usize| match set.hidden {
                    Hidden::Rows(_) => true,
                    _ => set.visible.row(i)[j].is_nan(),
                };
                let hidden = (0..means.len()).filter(|&j| is_hidden(j));
                hidden.for_each(|j| self.add(&mut scores, set, row, j, means[j], 1.0));
            }
        }
        scores.mean_squared_error()
    }
}

/// `1 / s`: the standard deviation of each column if they are standardized, else one for all.
pub(super) fn inverse_scale(variances: &[f64], standardize: bool) -> Vec<f64> {
    let pooled = variances.iter().sum::<f64>() / variances.len() as f64;
    let scale = |v: &f64| if standardize && *v > 0.0 { v.sqrt() } else { pooled.sqrt() };
    variances.iter().map(|v| 1.0 / scale(v)).collect()
}
