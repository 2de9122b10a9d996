use crate::{Error, Matrix};

/// A table of numbers most of which are 0, by rows: the cells that are not, and their columns. It has no
/// gaps; a cell that is not stored is 0.
///
/// ```
/// use covary::data::Sparse;
/// // 1 0 2
/// // 0 0 3
/// let table = Sparse::new((2, 3), vec![0, 2, 3], vec![0, 2, 2], vec![1.0, 2.0, 3.0])?;
/// assert_eq!(table.row(0).collect::<Vec<_>>(), [(0, 1.0), (2, 2.0)]);
/// assert_eq!(table.means(), [0.5, 0.0, 2.5]);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Sparse {
    n_rows: usize,
    n_columns: usize,
    row_starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Sparse {
    /// The table of that many rows and columns whose row `i` has the stored cells `row_starts[i]` up to
    /// `row_starts[i + 1]`, with ascending columns counted from 0.
    ///
    /// # Errors
    /// [`Error::EmptyTable`] without rows or columns, [`Error::WrongLength`] unless starts, columns and
    /// values fit each other, [`Error::SparseOrder`] where a row ends before it begins or its columns do
    /// not rise below the number of columns, [`Error::Infinite`], and [`Error::SparseGap`] at a NaN.
    pub fn new(
        (n_rows, n_columns): (usize, usize),
        row_starts: Vec<usize>,
        columns: Vec<u32>,
        values: Vec<f64>,
    ) -> Result<Self, Error> {
        if n_rows == 0 || n_columns == 0 {
            return Err(Error::EmptyTable { rows: n_rows, columns: n_columns });
        }
        let lengths = [
            ("starts of sparse rows", n_rows + 1, row_starts.len()),
            ("columns of stored cells", values.len(), columns.len()),
            ("start of the first sparse row", 0, row_starts.first().copied().unwrap_or(0)),
            ("end of the last sparse row", values.len(), row_starts.last().copied().unwrap_or(0)),
        ];
        for (what, expected, got) in lengths {
            if expected != got {
                return Err(Error::WrongLength { what, expected, got });
            }
        }
        let table = Self { n_rows, n_columns, row_starts, columns, values };
        (0..n_rows).try_for_each(|i| table.check_row(i))?;
        Ok(table)
    }

    fn check_row(&self, i: usize) -> Result<(), Error> {
        let row = i + 1;
        let (start, end) = (self.row_starts[i], self.row_starts[i + 1]);
        if start > end || end > self.values.len() {
            return Err(Error::SparseOrder { row });
        }
        let columns = &self.columns[start..end];
        let rising = columns.windows(2).all(|c| c[0] < c[1]);
        if !rising || columns.last().is_some_and(|&c| c as usize >= self.n_columns) {
            return Err(Error::SparseOrder { row });
        }
        match self.row(i).find(|(_, v)| !v.is_finite()) {
            Some((j, value)) if value.is_nan() => Err(Error::SparseGap { row, column: j + 1 }),
            Some((j, value)) => Err(Error::Infinite { row, column: format!("x{}", j + 1), value }),
            None => Ok(()),
        }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Number of stored cells.
    pub fn n_stored(&self) -> usize {
        self.values.len()
    }

    /// The stored cells of row `i`: column and value.
    pub fn row(&self, i: usize) -> impl Iterator<Item = (usize, f64)> {
        let (columns, values) = self.stored(i);
        columns.iter().zip(values).map(|(c, v)| (*c as usize, *v))
    }

    /// Columns and values of the stored cells of row `i`.
    pub(crate) fn stored(&self, i: usize) -> (&[u32], &[f64]) {
        let range = self.row_starts[i]..self.row_starts[i + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// Mean of each column.
    pub fn means(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.n_columns];
        self.columns.iter().zip(&self.values).for_each(|(&c, v)| sums[c as usize] += v);
        sums.iter().map(|s| s / self.n_rows as f64).collect()
    }

    /// Variance of each column about `means`, divisor N: squares of differences, the cells that are not
    /// stored all at once.
    pub(crate) fn variances(&self, means: &[f64]) -> Vec<f64> {
        let n = self.n_rows as f64;
        let (mut squares, mut left) = (vec![0.0; self.n_columns], vec![n; self.n_columns]);
        for (&c, v) in self.columns.iter().zip(&self.values) {
            let j = c as usize;
            squares[j] += (v - means[j]) * (v - means[j]);
            left[j] -= 1.0;
        }
        (0..self.n_columns).map(|j| (squares[j] + left[j] * means[j] * means[j]) / n).collect()
    }

    /// The same numbers with every 0 written out.
    pub fn to_matrix(&self) -> Matrix {
        let mut dense = Matrix::zeros(self.n_rows, self.n_columns);
        for i in 0..self.n_rows {
            self.row(i).for_each(|(j, v)| dense[(i, j)] = v);
        }
        dense
    }
}
