use super::{FilledCell, Imputed};
use crate::data::Facts;
use crate::{Dataset, Error, Matrix};
use std::borrow::Cow;

/// Where the columns of a model stand in a wider table, and which other columns of it are constants:
/// the way from the table to what the model sees, and back.
///
/// ```
/// use covary::{model::ColumnMap, Dataset, Density, LinearGaussian, Matrix, Noise};
/// let nan = f64::NAN;
/// let wide = Dataset::new(Matrix::from_rows(&[[nan, 7.0, 5.0, nan], [1.0, nan, nan, nan]]))?;
/// // The model knows columns 2 and 0, in that order; column 1 is always 7; of column 3 nothing is known.
/// let column_map = ColumnMap { columns: vec![2, 0], constants: vec![(1, 7.0)] };
/// let model = LinearGaussian::new(Matrix::from_rows(&[[2.0], [1.0]]), vec![0.0, 0.0], Noise::Isotropic(1.0))?;
/// let narrow = column_map.dataset(&wide)?;
/// assert_eq!(narrow.row(0)[0], 5.0);
/// let filled = column_map.imputed(model.impute(&narrow)?, &wide)?;
/// assert_eq!(filled.cells().iter().map(|c| (c.row, c.column)).collect::<Vec<_>>(), [(0, 0), (1, 1), (1, 2)]);
/// assert!((filled.values()[(0, 0)] - 2.0).abs() < 1e-12);   // C₂₁ / C₁₁ · 5, as in the model's own order
/// assert_eq!((filled.cells()[1].mean, filled.cells()[1].sd), (7.0, 0.0));
/// assert!(filled.values()[(0, 3)].is_nan());
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ColumnMap {
    /// For each column of the model, its place in the wide table.
    pub columns: Vec<usize>,
    /// Columns of the wide table whose gaps are filled with a constant, and that constant.
    pub constants: Vec<(usize, f64)>,
}

impl ColumnMap {
    /// The columns of a table that a model can be fitted to: those that vary. Constant ones are kept as
    /// constants; of columns observed once nothing is known.
    ///
    /// ```
    /// use covary::{model::ColumnMap, Dataset, Matrix};
    /// let nan = f64::NAN;
    /// let table = Dataset::new(Matrix::from_rows(&[[1.0, 7.0, nan], [2.0, nan, 3.0], [4.0, 7.0, nan]]))?;
    /// let column_map = ColumnMap::of_varying(&table)?;
    /// assert_eq!((column_map.columns, column_map.constants), (vec![0], vec![(1, 7.0)]));
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::EmptyColumn`] if a column has no observed cell, [`Error::AllConstant`] if none varies.
    pub fn of_varying(table: &Dataset) -> Result<Self, Error> {
        let (observed, names) = (table.n_observed_by_column(), table.column_names());
        if let Some(j) = observed.iter().position(|&n| n == 0) {
            return Err(Error::EmptyColumn { column: names[j].clone() });
        }
        Self::of_observed(table)
    }

    /// As [`of_varying`](Self::of_varying), but columns without any value are left out too, for callers
    /// that say so.
    ///
    /// # Errors
    /// [`Error::AllConstant`] if no column varies, [`Error::EmptyColumn`] if none has a value.
    pub fn of_observed(table: &Dataset) -> Result<Self, Error> {
        Self::of(table.n_observed_by_column(), table.column_names(), |j| table.constant(j))
    }

    /// The same of rows that are gone through.
    ///
    /// # Errors
    /// As [`of_observed`](Self::of_observed).
    pub fn of_facts(facts: &Facts) -> Result<Self, Error> {
        Self::of(facts.n_observed_by_column(), facts.column_names(), |j| facts.constant(j))
    }

    fn of(
        observed: &[usize],
        names: &[String],
        constant: impl Fn(usize) -> Option<f64>,
    ) -> Result<Self, Error> {
        if observed.iter().all(|&n| n == 0) {
            return Err(Error::EmptyColumn { column: names[0].clone() });
        }
        let mut column_map = Self::default();
        for j in (0..names.len()).filter(|&j| observed[j] > 0) {
            match constant(j) {
                None => column_map.columns.push(j),
                Some(value) if observed[j] > 1 => column_map.constants.push((j, value)),
                Some(_) => {}
            }
        }
        if column_map.columns.is_empty() {
            return Err(Error::AllConstant { columns: names.len() });
        }
        Ok(column_map)
    }

    /// All columns with a value, those that never vary too: times of curves are columns, and curves may meet.
    ///
    /// # Errors
    /// [`Error::EmptyColumn`] if none has a value.
    pub fn of_seen(table: &Dataset) -> Result<Self, Error> {
        let observed = table.n_observed_by_column();
        let columns: Vec<usize> = (0..table.n_columns()).filter(|&j| observed[j] > 0).collect();
        if columns.is_empty() {
            return Err(Error::EmptyColumn { column: table.column_names()[0].clone() });
        }
        Ok(Self { columns, constants: Vec::new() })
    }

    /// The model's columns of the wide table, in the model's order; row labels stay behind. Copied
    /// only if they are not the table as it is.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if a place is not a column of the table or is taken twice, and
    /// [`Error::EmptyTable`] without any column.
    pub fn dataset<'a>(&self, wide: &'a Dataset) -> Result<Cow<'a, Dataset>, Error> {
        self.check(wide)?;
        if self.is_whole(wide) {
            return Ok(Cow::Borrowed(wide));
        }
        wide.of_columns(&self.columns).map(Cow::Owned)
    }

    /// The wide table with the gaps filled that the model (`completed`, over its own columns) and
    /// the constants can fill; other gaps stay, and observed cells keep their bits.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, model::ColumnMap, Density};
    /// let (whole, truth) = simulate::ppca(Shape { rows: 50, columns: 6, n_components: 2 }, /* seed */ 1);
    /// let table = simulate::hide(&whole, 0.2, /* seed */ 2);
    /// let column_map = ColumnMap { columns: (0..6).collect(), ..ColumnMap::default() };
    /// for draw in truth.multiple_impute(&table, 3, /* seed */ 0)? {
    ///     assert_eq!(column_map.values(&draw, &table)?, draw);   // every column in its own place
    /// }
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`imputed`](Self::imputed).
    pub fn values(&self, completed: &Matrix, wide: &Dataset) -> Result<Matrix, Error> {
        self.check(wide)?;
        if completed.n_columns() != self.columns.len() {
            let (expected, got) = (self.columns.len(), completed.n_columns());
            return Err(Error::WrongLength { what: "columns of the completed table", expected, got });
        }
        if completed.n_rows() != wide.n_rows() {
            let (expected, got) = (wide.n_rows(), completed.n_rows());
            return Err(Error::WrongLength { what: "rows of the completed table", expected, got });
        }
        let mut values = wide.values().clone();
        for i in 0..values.n_rows() {
            let row = values.row_mut(i);
            let modeled = self.columns.iter().zip(completed.row(i)).map(|(&j, &v)| (j, v));
            for (j, v) in modeled.chain(self.constants.iter().copied()) {
                row[j] = if row[j].is_nan() { v } else { row[j] };
            }
        }
        Ok(values)
    }

    /// The wide table filled as by [`values`](Self::values), with what is known about each filled
    /// cell, row by row: a constant has standard deviation 0, and gaps that stay are not listed.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if a place is not a column of the table, is taken twice, or gets a
    /// constant that is not finite; [`Error::WrongLength`] if `filled` has other columns than were
    /// placed, or other rows than the table.
    pub fn imputed(&self, filled: Imputed, wide: &Dataset) -> Result<Imputed, Error> {
        self.check(wide)?;
        let shape = |m: &Matrix| (m.n_rows(), m.n_columns());
        let is_whole = self.is_whole(wide) && shape(&filled.values) == shape(wide.values());
        if is_whole && filled.cells.len() == wide.n_gaps() {
            return Ok(filled);
        }
        let values = self.values(&filled.values, wide)?;
        let mut cells: Vec<FilledCell> = filled
            .cells
            .iter()
            .map(|cell| FilledCell { column: self.columns[cell.column], ..cell.clone() })
            // Cells that are observed here were hidden from the model.
            .filter(|cell| wide.row(cell.row)[cell.column].is_nan())
            .collect();
        for pattern in wide.patterns() {
            for &(column, mean) in &self.constants {
                if pattern.gaps.binary_search(&(column as u32)).is_ok() {
                    let known = |&row: &usize| FilledCell::normal(row, column, mean, 0.0);
                    cells.extend(pattern.rows.iter().map(known));
                }
            }
        }
        cells.sort_unstable_by_key(|cell| (cell.row, cell.column));
        Ok(Imputed { values, cells })
    }

    /// Whether every column of the table stands in its own place.
    fn is_whole(&self, wide: &Dataset) -> bool {
        self.columns.iter().copied().eq(0..wide.n_columns())
    }

    fn check(&self, wide: &Dataset) -> Result<(), Error> {
        let mut free = vec![true; wide.n_columns()];
        for &j in self.columns.iter().chain(self.constants.iter().map(|(j, _)| j)) {
            if !free.get_mut(j).is_some_and(std::mem::take) {
                let bound = "a column of the table, named once";
                return Err(Error::OutOfRange { name: "a place in the table", value: j as f64, bound });
            }
        }
        match self.constants.iter().find(|(_, v)| !v.is_finite()) {
            Some(&(_, value)) => Err(Error::OutOfRange { name: "a constant", value, bound: "finite" }),
            None => Ok(()),
        }
    }
}
