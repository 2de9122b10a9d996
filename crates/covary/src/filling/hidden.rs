//! Cells hidden the way the gaps of the table lie [M 4.1].

use crate::model::FilledCell;
use crate::parallel::copied;
use crate::select::CheckedCell;
use crate::{Dataset, Error, Matrix};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Fewest visible cells of a column.
const FEWEST: usize = 3;

/// A table some of whose observed cells were hidden.
#[derive(Debug, Clone)]
pub struct HiddenSet {
    /// The table without them.
    pub visible: Dataset,
    /// The rows that they were hidden in, ascending.
    pub rows: Vec<usize>,
    /// Whether they lie as the gaps of other rows do; at random otherwise.
    pub transplanted: bool,
}

/// Which cells to hide.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hiding {
    /// Share of the observed cells. A tenth leaves a fit close to that of the whole table.
    pub share: f64,
    /// Most cells.
    pub most: usize,
    /// Fewest cells that a column keeps; half of them, and three, are always kept.
    pub fewest: usize,
    /// Seed of all sets.
    pub seed: u64,
    /// The number of the set.
    pub set: u64,
}

impl Default for Hiding {
    fn default() -> Self {
        Self { share: 0.1, most: usize::MAX, fewest: FEWEST, seed: 0, set: 0 }
    }
}

/// Rows up to which a table has several sets of hidden cells [M 4.7].
pub(crate) const MANY_ROWS: usize = 4000;
/// Cells of all sets together, or of the one set of a long table.
const CELLS: usize = 20_000;
/// Numbers of sets.
const FEWEST_SETS: usize = 4;
const MOST_SETS: usize = 12;

/// How many sets of hidden cells choose and calibrate, and how many cells each has at most [M 4.1.2].
pub(crate) fn sets_of(data: &Dataset) -> (usize, usize) {
    if data.n_rows() > MANY_ROWS {
        return (1, CELLS);
    }
    // One set of a wide table has more cells than all of a small one.
    if data.n_observed() > 10 * CELLS {
        return (1, usize::MAX);
    }
    (CELLS.div_ceil(data.n_observed().max(1)).clamp(FEWEST_SETS, MOST_SETS), usize::MAX)
}

/// A table with some of its observed cells hidden: rows lose what another row lacks, so that hidden cells lie as gaps do,
/// alone, in blocks or in runs [M 4.1.1]. Cells are hidden at random in a table without gaps.
///
/// Every row keeps a cell, every column enough of them and two values. The set depends on the seed and its own number alone.
///
/// ```
/// use covary::{data::{simulate, Shape}, filling::{hide_as_gaps_lie, Hiding}};
/// let (whole, _) = simulate::ppca(Shape { rows: 200, columns: 6, n_components: 2 }, /* seed */ 1);
/// let table = simulate::hide(&whole, 0.2, /* seed */ 2);
/// let set = hide_as_gaps_lie(&table, &Hiding::default())?;
/// let hidden = table.n_observed() - set.visible.n_observed();
/// assert!(set.transplanted && (85..=100).contains(&hidden));
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// [`Error::TooFewToHide`] if the table cannot spare a cell.
pub fn hide_as_gaps_lie(data: &Dataset, hiding: &Hiding) -> Result<HiddenSet, Error> {
    let &Hiding { share, most, fewest, seed, set } = hiding;
    let (n, d) = (data.n_rows(), data.n_columns());
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(set);
    let gaps_of = |i: usize| data.row(i).iter().filter(|v| v.is_nan()).count();
    let donors: Vec<usize> = (0..n).filter(|&i| (1..d).contains(&gaps_of(i))).collect();
    let wanted = ((share * data.n_observed() as f64).round() as usize).clamp(1, most);
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut rng);
    let mut cells = copied(data.values().as_slice());
    let mut touched = Vec::new();
    let mut hidden = 0;
    for &i in &order {
        if hidden >= wanted {
            break;
        }
        let row = data.row(i);
        let taken: Vec<usize> = if donors.is_empty() {
            (0..d).filter(|_| rng.random::<f64>() < share).filter(|&j| !row[j].is_nan()).collect()
        } else {
            let lacking = data.row(donors[rng.random_range(0..donors.len())]);
            (0..d).filter(|&j| lacking[j].is_nan() && !row[j].is_nan()).collect()
        };
        if taken.is_empty() || taken.len() + gaps_of(i) >= d {
            continue;
        }
        for j in &taken {
            cells[i * d + j] = f64::NAN;
        }
        hidden += taken.len();
        touched.push(i);
    }
    touched.sort_unstable();
    give_back(data, &mut cells, &touched, fewest);
    let lost = |i: usize| (0..d).any(|j| cells[i * d + j].is_nan() && !data.row(i)[j].is_nan());
    let rows: Vec<usize> = touched.into_iter().filter(|&i| lost(i)).collect();
    if rows.is_empty() {
        return Err(Error::TooFewToHide { cells: 0, folds: 1 });
    }
    let visible = data.with_cells(Matrix::from_vec(n, d, cells)?, data.column_names().to_vec())?;
    Ok(HiddenSet { visible, rows, transplanted: !donors.is_empty() })
}

/// Each observed cell that can be spared of a column with gaps, hidden alone: for tables that cannot spare several at once.
/// Its row keeps another cell and its column three, of two values.
pub(crate) fn hide_one_by_one(data: &Dataset) -> Result<Vec<HiddenSet>, Error> {
    let (n, d) = (data.n_rows(), data.n_columns());
    let mut sets = Vec::new();
    for j in (0..d).filter(|&j| (FEWEST + 1..n).contains(&data.n_observed_by_column()[j])) {
        for i in (0..n).filter(|&i| !data.row(i)[j].is_nan()) {
            let others = || (0..n).filter(|&k| k != i).map(|k| data.row(k)[j]).filter(|v| !v.is_nan());
            let alone = data.row(i).iter().filter(|v| !v.is_nan()).count() == 1;
            if alone || others().all(|v| Some(v) == others().next()) {
                continue;
            }
            let mut cells = copied(data.values().as_slice());
            cells[i * d + j] = f64::NAN;
            let visible = Dataset::with_names(Matrix::from_vec(n, d, cells)?, data.column_names().to_vec())?;
            sets.push(HiddenSet { visible, rows: vec![i], transplanted: false });
        }
    }
    Ok(sets)
}

/// Gives hidden cells back, lowest row first, until every column keeps enough of them, and all cells of a column that would
/// keep one value only.
fn give_back(data: &Dataset, cells: &mut [f64], rows: &[usize], fewest: usize) {
    let d = data.n_columns();
    let mut lost = vec![0; d];
    for (i, j) in rows.iter().flat_map(|&i| (0..d).map(move |j| (i, j))) {
        lost[j] += usize::from(cells[i * d + j].is_nan() && !data.row(i)[j].is_nan());
    }
    for j in (0..d).filter(|&j| lost[j] > 0) {
        let observed = data.n_observed_by_column()[j];
        let kept = observed.div_ceil(2).max(FEWEST).max(fewest).min(observed);
        let mut back = lost[j].saturating_sub(observed - kept);
        for &i in rows {
            let (cell, t) = (&mut cells[i * d + j], data.row(i)[j]);
            if back > 0 && cell.is_nan() && !t.is_nan() {
                (*cell, back) = (t, back - 1);
            }
        }
        let mut values = (0..data.n_rows()).map(|i| cells[i * d + j]).filter(|v| !v.is_nan());
        let first = values.next();
        if values.all(|v| Some(v) == first) {
            for &i in rows {
                cells[i * d + j] = data.row(i)[j];
            }
        }
    }
}

/// The columns that have gaps, most first.
pub(crate) fn most_gaps(gaps: &[usize]) -> Vec<usize> {
    let mut columns: Vec<usize> = (0..gaps.len()).filter(|&j| gaps[j] > 0).collect();
    columns.sort_by_key(|&j| std::cmp::Reverse(gaps[j]));
    columns
}

impl HiddenSet {
    /// The rows with hidden cells, as they are visible.
    ///
    /// # Errors
    /// Never, for a set that hides cells.
    pub fn visible_rows(&self) -> Result<Dataset, Error> {
        self.visible.of_rows(&self.rows)
    }

    /// Row and column of each hidden cell.
    pub(crate) fn places(&self, data: &Dataset) -> impl Iterator<Item = (usize, usize)> {
        let hidden = |&(i, j): &(usize, usize)| self.visible.row(i)[j].is_nan() && !data.row(i)[j].is_nan();
        self.rows.iter().flat_map(|&i| (0..data.n_columns()).map(move |j| (i, j))).filter(hidden)
    }

    /// Of cells that fill those rows, the ones that were hidden from `data`, with what they hold.
    pub fn checked(&self, data: &Dataset, cells: Vec<FilledCell>) -> Vec<CheckedCell> {
        let of = |cell: FilledCell| {
            let row = self.rows[cell.row];
            CheckedCell { truth: data.row(row)[cell.column], cell: FilledCell { row, ..cell } }
        };
        cells.into_iter().map(of).filter(|checked| !checked.truth.is_nan()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Shape, simulate};

    #[test]
    fn every_cell_that_can_be_spared_is_hidden_alone() {
        let nan = f64::NAN;
        // Column 1 has two values; row 1 has one cell; column 3 has three cells.
        let rows = [
            [1.0, 5.0, 1.0, nan],
            [nan, nan, 2.0, nan],
            [3.0, 7.0, 3.0, 1.0],
            [4.0, 7.0, 5.0, 2.0],
            [6.0, 7.0, nan, 4.0],
        ];
        let table = Dataset::new(Matrix::from_rows(&rows)).unwrap();
        let mut places: Vec<(usize, usize)> = Vec::new();
        for set in hide_one_by_one(&table).unwrap() {
            assert_eq!(table.n_observed() - set.visible.n_observed(), 1);
            assert_eq!(set.places(&table).count(), 1);
            places.extend(set.places(&table));
        }
        places.sort_unstable();
        // Without row 0 column 1 is constant, and row 1 keeps its only cell.
        assert_eq!(places, [(0, 0), (0, 2), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1), (3, 2), (4, 0), (4, 1)]);
    }

    #[test]
    fn rows_columns_and_values_are_kept() {
        let whole = simulate::ppca(Shape { rows: 40, columns: 5, n_components: 2 }, 1).0;
        for (share, seed) in [(0.0, 1), (0.05, 2), (0.3, 3), (0.7, 4)] {
            let mut values = simulate::hide(&whole, share, seed).into_values();
            // A column of few values, one of which is rare.
            (0..40).for_each(|i| values[(i, 4)] = if i == 7 { 1.0 } else { 0.0 });
            let table = Dataset::new(values).unwrap();
            for set in 0..20 {
                let hidden = hide_as_gaps_lie(&table, &Hiding { seed, set, ..Hiding::default() }).unwrap();
                let again = hide_as_gaps_lie(&table, &Hiding { seed, set, ..Hiding::default() }).unwrap();
                let bits =
                    |d: &Dataset| d.values().as_slice().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&hidden.visible), bits(&again.visible));
                assert_eq!(hidden.transplanted, !table.is_complete());
                for j in 0..5 {
                    let (before, after) =
                        (table.n_observed_by_column()[j], hidden.visible.n_observed_by_column()[j]);
                    assert!(2 * after >= before && after >= 3.min(before));
                    assert!(hidden.visible.constant(j).is_none());
                }
                for i in 0..40 {
                    let kept = |d: &Dataset| d.row(i).iter().filter(|v| !v.is_nan()).count();
                    assert!(kept(&hidden.visible) > 0 || kept(&table) == 0);
                    let lost = kept(&hidden.visible) < kept(&table);
                    assert_eq!(lost, hidden.rows.contains(&i));
                }
            }
        }
    }

    #[test]
    fn blocks_are_hidden_as_blocks() {
        let whole = simulate::ppca(Shape { rows: 100, columns: 6, n_components: 2 }, 1).0;
        let mut values = whole.into_values();
        (0..30).for_each(|i| (0..3).for_each(|j| values[(i, j)] = f64::NAN));
        let table = Dataset::new(values).unwrap();
        let set = hide_as_gaps_lie(&table, &Hiding::default()).unwrap();
        for &i in &set.rows {
            let gaps: Vec<bool> = set.visible.row(i).iter().map(|v| v.is_nan()).collect();
            assert_eq!(gaps, [true, true, true, false, false, false]);
        }
    }
}
