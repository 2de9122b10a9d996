use super::{Density, FilledCell, Imputed, Predictive};
use crate::{Dataset, Error};
use std::sync::atomic::{AtomicBool, Ordering};

/// Fills the gaps of a table.
///
/// Every [`Density`] does, row by row; a model whose rows depend on each other, or one that has no density, answers
/// for the table as a whole.
///
/// ```
/// use covary::{data::{simulate, Shape}, model::Fill};
/// let (whole, truth) = simulate::ppca(Shape { rows: 50, columns: 6, n_components: 2 }, /* seed */ 1);
/// let table = simulate::hide(&whole, 0.2, /* seed */ 2);
/// let filled = truth.fill(&table)?;
/// assert_eq!(filled.cells(), truth.cells(&table)?);
/// # Ok::<(), covary::Error>(())
/// ```
pub trait Fill: Sync {
    /// What is known of every gap, row by row.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the model.
    fn cells(&self, table: &Dataset) -> Result<Vec<FilledCell>, Error>;

    /// [`cells`](Self::cells) that may end early once `stop` is set.
    ///
    /// # Errors
    /// As [`cells`](Self::cells), and [`Error::Interrupted`] if it ended early.
    fn cells_unless(&self, table: &Dataset, stop: &AtomicBool) -> Result<Vec<FilledCell>, Error> {
        if stop.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { self.cells(table) }
    }

    /// The table with its gaps filled; observed cells are returned as they came.
    ///
    /// # Errors
    /// As [`cells`](Self::cells).
    fn fill(&self, table: &Dataset) -> Result<Imputed, Error> {
        Ok(Imputed::new(table, self.cells(table)?))
    }
}

impl<D: Density + ?Sized> Fill for D {
    fn cells(&self, table: &Dataset) -> Result<Vec<FilledCell>, Error> {
        self.gap_cells(table)
    }

    fn cells_unless(&self, table: &Dataset, stop: &AtomicBool) -> Result<Vec<FilledCell>, Error> {
        self.gap_cells_unless(table, stop)
    }

    fn fill(&self, table: &Dataset) -> Result<Imputed, Error> {
        self.impute(table)
    }
}

impl Fill for Predictive<'_> {
    fn cells(&self, table: &Dataset) -> Result<Vec<FilledCell>, Error> {
        self.gap_cells(table)
    }

    fn cells_unless(&self, table: &Dataset, stop: &AtomicBool) -> Result<Vec<FilledCell>, Error> {
        self.gap_cells_unless(table, stop)
    }

    fn fill(&self, table: &Dataset) -> Result<Imputed, Error> {
        self.impute(table)
    }
}
