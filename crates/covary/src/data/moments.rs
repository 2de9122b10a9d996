use super::{Cells, Dataset};
use crate::linalg::{Cell, rows};
use crate::parallel::{BLOCK_CELLS, add, over_pieces};
use crate::{Error, Matrix};
use std::ops::Range;

/// Number of rows, their mean, and their scatter about it: a value that merges exactly.
///
/// ```text
/// δ = m_b − m_a     n = n_a + n_b     m = m_a + δ n_b/n
/// M = M_a + M_b + δ δᵀ n_a n_b / n                                  [M 1.4.4]
/// ```
///
/// ```
/// use covary::{CentralMoments, Matrix};
/// let rows = Matrix::from_rows(&[[1.0, 5.0], [2.0, 3.0], [6.0, 1.0]]);
/// let mut halves = CentralMoments::new(2);
/// halves.add(&rows.as_slice()[..2]);
/// let mut rest = CentralMoments::new(2);
/// rest.add(&rows.as_slice()[2..]);
/// halves.merge(&rest);
/// assert_eq!(halves.mean(), [3.0, 3.0]);
/// assert!((halves.covariance()[(0, 1)] - (-10.0 / 3.0)).abs() < 1e-15);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CentralMoments {
    n_rows: usize,
    mean: Vec<f64>,
    /// Lower triangle of the scatter.
    scatter: Matrix,
}

/// What a table of columns by columns holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixKind {
    /// Correlations: columns have unit variance.
    Correlation,
    /// Covariances with divisor N − 1, as R, NumPy and most tables in print have them.
    Covariance,
}

impl MatrixKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Correlation, Self::Covariance];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Correlation => "correlation",
            Self::Covariance => "covariance",
        }
    }

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The kind of matrix that a table seems to be: as many rows as columns, at least three, symmetric to the last bit,
    /// no entry beyond what the variances allow. No table of observations is.
    ///
    /// ```
    /// use covary::{data::MatrixKind, Dataset, Matrix};
    /// let r = Matrix::from_rows(&[[1.0, 0.6, 0.5], [0.6, 1.0, 0.4], [0.5, 0.4, 1.0]]);
    /// assert_eq!(MatrixKind::suspected(&Dataset::new(r)?), Some(MatrixKind::Correlation));
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn suspected(table: &Dataset) -> Option<Self> {
        let (d, v) = (table.n_columns(), table.values());
        if d < 3 || table.n_rows() != d || !table.is_complete() {
            return None;
        }
        let pairs = || (0..d).flat_map(|i| (0..i).map(move |j| (i, j)));
        let bounded = |(i, j): (usize, usize)| v[(i, j)].abs() <= (v[(i, i)] * v[(j, j)]).sqrt();
        let variances = (0..d).all(|j| v[(j, j)] > 0.0);
        // Zeros are symmetric in many a table that is mostly zeros.
        let some = pairs().any(|at| v[at] != 0.0);
        if !(variances && some && pairs().all(|(i, j)| v[(i, j)] == v[(j, i)] && bounded((i, j)))) {
            return None;
        }
        let unit = (0..d).all(|j| v[(j, j)] == 1.0);
        Some(if unit { Self::Correlation } else { Self::Covariance })
    }
}

impl CentralMoments {
    /// From a correlation or covariance matrix with named columns, of `n_rows` rows. One triangle will do: an entry that is
    /// missing is the one across the diagonal, and a missing variance of a correlation matrix is 1. The mean is taken as
    /// zero.
    ///
    /// # Errors
    /// [`Error::NotCovariance`] and [`Error::TooFewRows`] as [`from_covariance`](Self::from_covariance), and unless
    /// correlations lie between −1 and 1 with ones on the diagonal.
    pub fn of_matrix(matrix: &Dataset, kind: MatrixKind, n_rows: usize) -> Result<Self, Error> {
        let (d, names) = (matrix.n_columns(), matrix.column_names());
        let bad = |why: String| Err(Error::NotCovariance { what: "the matrix given", why });
        if matrix.n_rows() != d {
            return bad(format!("it has {} rows and {d} columns", matrix.n_rows()));
        }
        let given = matrix.values();
        let entry = |i: usize, j: usize| match (given[(i, j)], given[(j, i)]) {
            (a, _) if !a.is_nan() => a,
            (_, b) if i == j && b.is_nan() && kind == MatrixKind::Correlation => 1.0,
            (_, b) => b,
        };
        let mut s = Matrix::from_fn(d, d, entry);
        for i in 0..d {
            if kind == MatrixKind::Correlation && (s[(i, i)] - 1.0).abs() > 1e-6 {
                return bad(format!(
                    "the correlation of `{0}` with itself is {1}, not 1",
                    names[i],
                    s[(i, i)]
                ));
            }
            for j in 0..i {
                if s[(i, j)].is_nan() {
                    return bad(format!("the entry of `{}` and `{}` is missing", names[i], names[j]));
                }
                let most = (s[(i, i)] * s[(j, j)]).sqrt();
                if s[(i, j)].abs() > most * (1.0 + 1e-6) {
                    return bad(format!(
                        "the entry of `{}` and `{}` is {}, beyond the {most} that their variances allow",
                        names[i],
                        names[j],
                        s[(i, j)]
                    ));
                }
            }
        }
        if kind == MatrixKind::Covariance {
            let shrunk = (n_rows as f64 - 1.0) / n_rows as f64;
            s.as_mut_slice().iter_mut().for_each(|v| *v *= shrunk);
        }
        Self::from_covariance(&s, n_rows)
    }

    /// No rows yet.
    pub fn new(n_columns: usize) -> Self {
        Self { n_rows: 0, mean: vec![0.0; n_columns], scatter: Matrix::zeros(n_columns, n_columns) }
    }

    /// Of a complete table, in one pass.
    ///
    /// # Errors
    /// [`Error::HasGaps`] if a cell is missing.
    pub fn of(data: &Dataset) -> Result<Self, Error> {
        if !data.is_complete() {
            return Err(Error::HasGaps { method: "a covariance matrix", gaps: data.n_gaps() });
        }
        Ok(match data.cells() {
            Cells::Double(cells) => Self::of_cells::<f64, f64>(cells, data.n_columns()),
            Cells::Single(cells) => Self::of_cells::<f32, f64>(cells, data.n_columns()),
        })
    }

    /// Of complete rows, row-major, by products in the precision W.
    pub(crate) fn of_cells<C: Cell, W: Cell>(cells: &[C], d: usize) -> Self {
        let moments_of = |rows: Range<usize>| {
            let mut part = Self::new(d);
            part.add_cells::<C, W>(&cells[rows.start * d..rows.end * d]);
            part
        };
        over_pieces(cells.len() / d, block_rows::<W>(d), moments_of, Self::merge)
    }

    /// From a covariance (or correlation) matrix that somebody else computed from `n_rows` rows,
    /// with divisor `n_rows`. The mean is taken as zero.
    ///
    /// # Errors
    /// [`Error::NotCovariance`] unless the matrix is square, finite, symmetric and has a
    /// non-negative diagonal; [`Error::TooFewRows`] below two rows.
    pub fn from_covariance(covariance: &Matrix, n_rows: usize) -> Result<Self, Error> {
        let d = covariance.n_columns();
        let bad = |why: String| Err(Error::NotCovariance { what: "the matrix given", why });
        if covariance.n_rows() != d || d == 0 {
            return bad(format!("it has {} rows and {d} columns", covariance.n_rows()));
        }
        if n_rows < 2 {
            return Err(Error::TooFewRows { rows: n_rows });
        }
        for i in 0..d {
            for j in 0..=i {
                let (a, b) = (covariance[(i, j)], covariance[(j, i)]);
                if !a.is_finite() || !b.is_finite() {
                    return bad(format!("entry ({}, {}) is {a}", i + 1, j + 1));
                }
                if (a - b).abs() > 1e-8 * (a.abs() + b.abs()) {
                    return bad(format!(
                        "entries ({0}, {1}) = {a} and ({1}, {0}) = {b} differ",
                        i + 1,
                        j + 1
                    ));
                }
            }
            if covariance[(i, i)] < 0.0 {
                return bad(format!("variance {} is {}", i + 1, covariance[(i, i)]));
            }
        }
        let mut scatter = covariance.clone();
        scatter.as_mut_slice().iter_mut().for_each(|v| *v *= n_rows as f64);
        Ok(Self { n_rows, mean: vec![0.0; d], scatter })
    }

    /// Adds rows, given row-major.
    ///
    /// # Panics
    /// If the length of `rows` is not a multiple of the number of columns.
    pub fn add(&mut self, rows: &[f64]) {
        self.add_cells::<f64, f64>(rows);
    }

    fn add_cells<C: Cell, W: Cell>(&mut self, rows: &[C]) {
        let d = self.mean.len();
        assert_eq!(rows.len() % d, 0, "whole rows of {d} numbers");
        let block_rows = block_rows::<W>(d);
        let ones = vec![1.0; d];
        let mut centered = vec![W::of(0.0); (block_rows * d).min(rows.len()) + W::BEHIND];
        for block in rows.chunks(block_rows * d) {
            let n = block.len() / d;
            let first: Vec<f64> = block[..d].iter().map(|v| v.wide()).collect();
            let mut mean = vec![0.0; d];
            rows::add_rows(block, &first, &mut mean);
            mean.iter_mut().zip(&first).for_each(|(m, o)| *m = o + *m / n as f64);
            rows::center(block, &mean, &ones, &mut centered);
            W::add_gram(&mut self.scatter, &centered, n);
            self.absorb_mean(n, &mean);
        }
    }

    /// Adds the rows that `other` has seen.
    pub fn merge(&mut self, other: &Self) {
        if other.n_rows == 0 {
            return;
        }
        add(self.scatter.as_mut_slice(), other.scatter.as_slice());
        self.absorb_mean(other.n_rows, &other.mean);
    }

    fn absorb_mean(&mut self, n_b: usize, mean_b: &[f64]) {
        let (na, nb) = (self.n_rows as f64, n_b as f64);
        let n = na + nb;
        let delta: Vec<f64> = mean_b.iter().zip(&self.mean).map(|(b, a)| b - a).collect();
        if self.n_rows > 0 {
            for i in 0..delta.len() {
                let f = delta[i] * na * nb / n;
                for (s, dj) in self.scatter.row_mut(i)[..=i].iter_mut().zip(&delta) {
                    *s += f * dj;
                }
            }
        }
        self.mean.iter_mut().zip(&delta).for_each(|(m, dj)| *m += dj * (nb / n));
        self.n_rows += n_b;
    }

    /// Rows seen.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.mean.len()
    }

    /// Mean of the rows seen.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// `Σ (t − m)(t − m)ᵀ` over the rows seen.
    pub fn scatter(&self) -> Matrix {
        let mut full = self.scatter.clone();
        full.mirror_lower();
        full
    }

    /// Covariance with divisor `n_rows`.
    pub fn covariance(&self) -> Matrix {
        let mut s = self.scatter();
        let n = self.n_rows as f64;
        s.as_mut_slice().iter_mut().for_each(|v| *v /= n);
        s
    }
}

/// Rows of a block that are centered about their own mean.
fn block_rows<W: Cell>(d: usize) -> usize {
    BLOCK_CELLS.div_ceil(d).max(W::LEAST_ROWS)
}
