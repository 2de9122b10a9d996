use crate::model::{FilledCell, Imputed};
use crate::{Dataset, Error};

/// Share of the filled cells whose true value lies in its central interval, one share per level.
///
/// ```text
/// share(level) = #{ |t − m| ≤ z s } / #{ filled cells with known t }        z: normal quantile at (1 + level)/2
/// ```
///
/// Filled cells that are gaps in `truth` as well are not counted.
///
/// ```
/// use covary::{data::{simulate, Shape}, select::interval_coverage, Density};
/// let (whole, truth) = simulate::ppca(Shape { rows: 500, columns: 8, n_components: 2 }, /* seed */ 1);
/// let filled = truth.impute(&simulate::hide(&whole, 0.3, /* seed */ 2))?;
/// let share = interval_coverage(&whole, &filled, &[0.5, 0.9])?;
/// assert!((share[0] - 0.5).abs() < 0.05 && (share[1] - 0.9).abs() < 0.03);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfRange`] unless `0 < level < 1`, [`Error::ColumnCount`] or [`Error::WrongLength`] if
/// the tables differ in shape, [`Error::NothingToCompare`] if no filled cell has a known truth.
pub fn interval_coverage(truth: &Dataset, filled: &Imputed, levels: &[f64]) -> Result<Vec<f64>, Error> {
    let (rows, columns) = (filled.values().n_rows(), filled.values().n_columns());
    if truth.n_columns() != columns {
        return Err(Error::ColumnCount { expected: columns, got: truth.n_columns() });
    }
    if truth.n_rows() != rows {
        return Err(Error::WrongLength {
            what: "rows of the true table",
            expected: rows,
            got: truth.n_rows(),
        });
    }
    let known = |cell: &&FilledCell| !truth.values()[(cell.row, cell.column)].is_nan();
    let cells: Vec<&FilledCell> = filled.cells().iter().filter(known).collect();
    if cells.is_empty() {
        return Err(Error::NothingToCompare);
    }
    // The standard deviation may be 0.
    let covered = |cell: &FilledCell, level: f64| {
        let distance = (truth.values()[(cell.row, cell.column)] - cell.mean).abs();
        Ok(distance <= cell.reach(level)? * cell.sd)
    };
    levels
        .iter()
        .map(|&level| {
            let covered = cells.iter().map(|cell| covered(cell, level)).collect::<Result<Vec<_>, Error>>()?;
            Ok(covered.iter().filter(|inside| **inside).count() as f64 / cells.len() as f64)
        })
        .collect()
}
