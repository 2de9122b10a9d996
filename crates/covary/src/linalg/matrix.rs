use crate::Error;
use std::fmt;
use std::ops::{Deref, DerefMut, Index, IndexMut};
use std::sync::Arc;

/// A dense row-major matrix of `f64`.
///
/// ```
/// use covary::Matrix;
/// let a = Matrix::from_rows(&[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
/// assert_eq!(a.t_dot(&a)[(0, 1)], 1.0 * 2.0 + 3.0 * 4.0 + 5.0 * 6.0);
/// ```
#[derive(Clone)]
pub struct Matrix {
    n_rows: usize,
    n_columns: usize,
    values: Values,
}

/// Numbers of our own, or somebody else's that must not be copied: a NumPy array, a mapped file.
#[derive(Clone)]
enum Values {
    Own(Vec<f64>),
    Shared(Arc<dyn AsRef<[f64]> + Send + Sync>),
}

impl Deref for Values {
    type Target = [f64];
    #[inline]
    fn deref(&self) -> &[f64] {
        match self {
            Self::Own(values) => values,
            Self::Shared(values) => (**values).as_ref(),
        }
    }
}

impl DerefMut for Values {
    /// Shared numbers are copied before they are written to.
    #[inline]
    fn deref_mut(&mut self) -> &mut [f64] {
        if let Self::Shared(values) = self {
            *self = Self::Own((**values).as_ref().to_vec());
        }
        match self {
            Self::Own(values) => values,
            Self::Shared(_) => unreachable!("just replaced"),
        }
    }
}

impl Matrix {
    /// All zeros.
    pub fn zeros(n_rows: usize, n_columns: usize) -> Self {
        Self { n_rows, n_columns, values: Values::Own(vec![0.0; n_rows * n_columns]) }
    }

    /// Ones on the diagonal.
    pub fn identity(n: usize) -> Self {
        Self::from_fn(n, n, |i, j| f64::from(u8::from(i == j)))
    }

    /// The given numbers on the diagonal.
    pub fn diagonal(d: &[f64]) -> Self {
        Self::from_fn(d.len(), d.len(), |i, j| if i == j { d[i] } else { 0.0 })
    }

    /// Entry `(i, j)` is `f(i, j)`.
    pub fn from_fn(n_rows: usize, n_columns: usize, mut f: impl FnMut(usize, usize) -> f64) -> Self {
        let mut values = Vec::with_capacity(n_rows * n_columns);
        for i in 0..n_rows {
            for j in 0..n_columns {
                values.push(f(i, j));
            }
        }
        Self { n_rows, n_columns, values: Values::Own(values) }
    }

    /// From rows of equal length.
    ///
    /// # Panics
    /// If the rows differ in length.
    pub fn from_rows<R: AsRef<[f64]>>(rows: &[R]) -> Self {
        let n_columns = rows.first().map_or(0, |r| r.as_ref().len());
        let mut values = Vec::with_capacity(rows.len() * n_columns);
        for row in rows {
            assert_eq!(row.as_ref().len(), n_columns, "rows of one matrix have one length");
            values.extend_from_slice(row.as_ref());
        }
        Self { n_rows: rows.len(), n_columns, values: Values::Own(values) }
    }

    /// Takes a row-major buffer as it is.
    ///
    /// # Errors
    /// [`Error::WrongLength`] if the buffer does not hold `n_rows × n_columns` numbers.
    pub fn from_vec(n_rows: usize, n_columns: usize, values: Vec<f64>) -> Result<Self, Error> {
        check_length(n_rows, n_columns, values.len())?;
        Ok(Self { n_rows, n_columns, values: Values::Own(values) })
    }

    /// Looks at somebody else's row-major buffer without copying it. It is kept alive as long as the
    /// matrix or a clone of it, and copied only if one of them is written to. What `as_ref` returns must
    /// not change.
    ///
    /// ```
    /// use covary::Matrix;
    /// use std::sync::Arc;
    /// let numbers = Arc::new(vec![1.0, 2.0, 3.0, 4.0]);
    /// let mut a = Matrix::from_shared(2, 2, numbers.clone())?;
    /// assert!(std::ptr::eq(a.as_slice(), numbers.as_slice()));
    /// a[(0, 0)] = 5.0;
    /// assert_eq!((a[(0, 0)], numbers[0]), (5.0, 1.0));
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::WrongLength`] if the buffer does not hold `n_rows × n_columns` numbers.
    pub fn from_shared(
        n_rows: usize,
        n_columns: usize,
        values: Arc<dyn AsRef<[f64]> + Send + Sync>,
    ) -> Result<Self, Error> {
        check_length(n_rows, n_columns, (*values).as_ref().len())?;
        Ok(Self { n_rows, n_columns, values: Values::Shared(values) })
    }

    /// Number of rows.
    #[inline]
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    #[inline]
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Row `i`.
    #[inline]
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.n_columns..][..self.n_columns]
    }

    /// Row `i`, to write.
    #[inline]
    pub fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.values[i * self.n_columns..][..self.n_columns]
    }

    /// The rows in order.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        (0..self.n_rows).map(|i| self.row(i))
    }

    /// Column `j`, copied.
    pub fn column(&self, j: usize) -> Vec<f64> {
        (0..self.n_rows).map(|i| self[(i, j)]).collect()
    }

    /// All numbers, row by row.
    #[inline]
    pub fn as_slice(&self) -> &[f64] {
        &self.values
    }

    /// All numbers, row by row, to write.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// Gives the buffer back.
    pub fn into_vec(self) -> Vec<f64> {
        match self.values {
            Values::Own(values) => values,
            Values::Shared(values) => (*values).as_ref().to_vec(),
        }
    }

    /// The transpose.
    #[must_use]
    pub fn transpose(&self) -> Self {
        // Some rows at a time: cells beside each other, here and there, are in the cache.
        const ROWS: usize = 16;
        let (n, d) = (self.n_rows, self.n_columns);
        let mut values = vec![0.0; n * d];
        for (first, rows) in (0..).step_by(ROWS).zip(self.as_slice().chunks(ROWS * d.max(1))) {
            for j in 0..d {
                let column = rows[j..].iter().step_by(d);
                values[j * n + first..].iter_mut().zip(column).for_each(|(to, from)| *to = *from);
            }
        }
        Self { n_rows: d, n_columns: n, values: Values::Own(values) }
    }

    /// The first `k` columns.
    #[must_use]
    pub fn first_columns(&self, k: usize) -> Self {
        let mut values = Vec::with_capacity(self.n_rows * k);
        (0..self.n_rows).for_each(|i| values.extend_from_slice(&self.row(i)[..k]));
        Self { n_rows: self.n_rows, n_columns: k, values: Values::Own(values) }
    }

    /// `A B`.
    #[must_use]
    pub fn dot(&self, other: &Self) -> Self {
        let mut out = Self::zeros(self.n_rows, other.n_columns);
        super::gemm(out.view_mut(), false, self.view(), other.view());
        out
    }

    /// `Aᵀ B`.
    #[must_use]
    pub fn t_dot(&self, other: &Self) -> Self {
        let mut out = Self::zeros(self.n_columns, other.n_columns);
        super::gemm(out.view_mut(), false, self.view().transpose(), other.view());
        out
    }

    /// `A Bᵀ`.
    #[must_use]
    pub fn dot_t(&self, other: &Self) -> Self {
        let mut out = Self::zeros(self.n_rows, other.n_rows);
        super::gemm(out.view_mut(), false, self.view(), other.view().transpose());
        out
    }

    /// Sum of the diagonal.
    pub fn trace(&self) -> f64 {
        (0..self.n_rows.min(self.n_columns)).map(|i| self[(i, i)]).sum()
    }

    /// Multiplies row `i` by `factor[i]`.
    pub fn scale_rows(&mut self, factor: &[f64]) {
        for (i, f) in factor.iter().enumerate() {
            self.row_mut(i).iter_mut().for_each(|v| *v *= f);
        }
    }

    /// Multiplies column `j` by `factor[j]`.
    pub fn scale_columns(&mut self, factor: &[f64]) {
        for i in 0..self.n_rows {
            for (v, f) in self.row_mut(i).iter_mut().zip(factor) {
                *v *= f;
            }
        }
    }

    /// Multiplies entry `(i, j)` by `factor[i] · factor[j]`: a covariance in other units.
    pub(crate) fn scale_both(&mut self, factor: &[f64]) {
        self.scale_rows(factor);
        self.scale_columns(factor);
    }

    /// Replaces the matrix by the mean of itself and its transpose.
    pub fn symmetrize(&mut self) {
        for i in 0..self.n_rows {
            for j in 0..i {
                let mean = 0.5 * (self[(i, j)] + self[(j, i)]);
                self[(i, j)] = mean;
                self[(j, i)] = mean;
            }
        }
    }

    /// The symmetric matrix of products of rows, made that of rows about their mean.
    pub(crate) fn center_both(&mut self) {
        let n = self.n_rows as f64;
        let means: Vec<f64> = self.rows().map(|row| row.iter().sum::<f64>() / n).collect();
        let all = means.iter().sum::<f64>() / n;
        for i in 0..self.n_rows {
            for (v, mean) in self.row_mut(i).iter_mut().zip(&means) {
                *v = *v - means[i] - mean + all;
            }
        }
    }

    /// Copies the lower triangle onto the upper one.
    pub(crate) fn mirror_lower(&mut self) {
        for i in 0..self.n_rows {
            for j in 0..i {
                self[(j, i)] = self[(i, j)];
            }
        }
    }

    /// The square matrix with one more row and column, those of the identity: a turn of the scores that
    /// leaves the mean beside them alone.
    pub(crate) fn bordered(&self) -> Self {
        let n = self.n_rows();
        Self::from_fn(n + 1, n + 1, |i, j| match (i < n, j < n) {
            (true, true) => self[(i, j)],
            (false, false) => 1.0,
            _ => 0.0,
        })
    }

    #[inline]
    pub(crate) fn view(&self) -> faer::MatRef<'_, f64> {
        faer::MatRef::from_row_major_slice(&self.values, self.n_rows, self.n_columns)
    }

    #[inline]
    pub(crate) fn view_mut(&mut self) -> faer::MatMut<'_, f64> {
        faer::MatMut::from_row_major_slice_mut(&mut self.values, self.n_rows, self.n_columns)
    }
}

fn check_length(n_rows: usize, n_columns: usize, got: usize) -> Result<(), Error> {
    match n_rows * n_columns {
        expected if expected == got => Ok(()),
        expected => Err(Error::WrongLength { what: "numbers in the matrix", expected, got }),
    }
}

impl PartialEq for Matrix {
    fn eq(&self, other: &Self) -> bool {
        (self.n_rows, self.n_columns) == (other.n_rows, other.n_columns) && *self.values == *other.values
    }
}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matrix")
            .field("n_rows", &self.n_rows)
            .field("n_columns", &self.n_columns)
            .field("values", &&*self.values)
            .finish()
    }
}

impl Index<(usize, usize)> for Matrix {
    type Output = f64;
    #[inline]
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.values[i * self.n_columns + j]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    #[inline]
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        &mut self.values[i * self.n_columns + j]
    }
}
