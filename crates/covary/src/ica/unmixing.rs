use crate::linalg::{gemm, rows::center};
use crate::parallel::{BLOCK_CELLS, pieces};
use crate::{Dataset, Error, Matrix};
use faer::{MatMut, MatRef};

/// From rows to sources and back: `s = U (t − μ)`, `t = A s + μ`.
///
/// Sources have unit variance (divisor N) and fall in the variance they explain, `‖aᵢ‖²`; in each
/// column of A the entry of largest absolute value is positive.
#[derive(Debug, Clone, PartialEq)]
pub struct Unmixing {
    pub(super) mean: Vec<f64>,
    pub(super) whitening: Matrix,
    pub(super) rotation: Matrix,
    pub(super) matrix: Matrix,
    pub(super) mixing: Matrix,
}

impl Unmixing {
    /// From its parts: μ, Kᵀ (q × d), R (q × q) and A (d × q), as the methods of these names give them.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless they fit each other.
    pub fn new(mean: Vec<f64>, whitening: Matrix, rotation: Matrix, mixing: Matrix) -> Result<Self, Error> {
        let (inner, got) = (rotation.n_columns(), whitening.n_rows());
        if inner != got {
            return Err(Error::WrongLength { what: "rows of the whitening", expected: inner, got });
        }
        let matrix = rotation.dot(&whitening);
        Self::of_parts(mean, whitening, rotation, (matrix, mixing))
    }

    /// The same with U as it was kept: another machine may round `R Kᵀ` differently.
    pub(crate) fn of_parts(
        mean: Vec<f64>,
        whitening: Matrix,
        rotation: Matrix,
        (matrix, mixing): (Matrix, Matrix),
    ) -> Result<Self, Error> {
        let (q, d) = (whitening.n_rows(), mean.len());
        for (what, expected, got) in [
            ("columns of the whitening", d, whitening.n_columns()),
            ("rows of the rotation", q, rotation.n_rows()),
            ("columns of the rotation", q, rotation.n_columns()),
            ("rows of the unmixing", q, matrix.n_rows()),
            ("columns of the unmixing", d, matrix.n_columns()),
            ("rows of the mixing", d, mixing.n_rows()),
            ("columns of the mixing", q, mixing.n_columns()),
        ] {
            if expected != got {
                return Err(Error::WrongLength { what, expected, got });
            }
        }
        Ok(Self { mean, whitening, rotation, matrix, mixing })
    }

    /// Number of sources q.
    pub fn n_components(&self) -> usize {
        self.matrix.n_rows()
    }

    /// μ.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// U, q × d.
    pub fn unmixing(&self) -> &Matrix {
        &self.matrix
    }

    /// A, d × q: the pseudo-inverse of U. Column i is what one unit of source i adds to a row.
    pub fn mixing(&self) -> &Matrix {
        &self.mixing
    }

    /// Kᵀ, q × d, that makes rows white: `z = Kᵀ (t − μ)`.
    pub fn whitening(&self) -> &Matrix {
        &self.whitening
    }

    /// R, q × q, with `U = R Kᵀ`: what is left of the unmixing once rows are white. Of [`FastIca`](super::FastIca)
    /// it is orthogonal.
    pub fn rotation(&self) -> &Matrix {
        &self.rotation
    }

    /// Sources of every row, n × q.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns, [`Error::GapsInSources`] if it has gaps.
    pub fn transform(&self, data: &Dataset) -> Result<Matrix, Error> {
        let (n, d, q) = (data.n_rows(), self.mean.len(), self.n_components());
        if data.n_columns() != d {
            return Err(Error::ColumnCount { expected: d, got: data.n_columns() });
        }
        super::refuse_gaps(data, "an unmixing")?;
        let ones = vec![1.0; d];
        let step = BLOCK_CELLS.div_ceil(d);
        let sources = pieces(n, step, |rows| {
            let (mut centered, mut sources) =
                (vec![0.0; step.min(rows.len()) * d], vec![0.0; rows.len() * q]);
            let cells = &data.values().as_slice()[rows.start * d..rows.end * d];
            for (block, out) in cells.chunks(step * d).zip(sources.chunks_mut(step * q)) {
                let m = block.len() / d;
                let centered = &mut centered[..block.len()];
                center(block, &self.mean, &ones, centered);
                let out = MatMut::from_row_major_slice_mut(out, m, q);
                gemm(
                    out,
                    false,
                    MatRef::from_row_major_slice(centered, m, d),
                    self.matrix.view().transpose(),
                );
            }
            sources
        });
        Matrix::from_vec(n, q, sources.concat())
    }

    /// Rows from sources: `A s + μ`.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless there is a number per source.
    pub fn decode(&self, sources: &Matrix) -> Result<Matrix, Error> {
        mixed(&self.mixing, &self.mean, sources)
    }
}

/// `A s + μ` of every row.
pub(super) fn mixed(mixing: &Matrix, mean: &[f64], sources: &Matrix) -> Result<Matrix, Error> {
    let (expected, got) = (mixing.n_columns(), sources.n_columns());
    if expected != got {
        return Err(Error::WrongLength { what: "sources per row", expected, got });
    }
    let mut rows = sources.dot_t(mixing);
    for i in 0..rows.n_rows() {
        rows.row_mut(i).iter_mut().zip(mean).for_each(|(t, m)| *t += m);
    }
    Ok(rows)
}

/// How far `P = unmixing × true mixing` is from a scaled permutation: 0 if it is one, at most 1
/// (Amari, Cichocki & Yang 1996).
///
/// ```text
/// 1/(2q(q−1)) [Σᵢ (Σⱼ |pᵢⱼ| / maxₗ |pᵢₗ| − 1) + Σⱼ (Σᵢ |pᵢⱼ| / maxₗ |pₗⱼ| − 1)]
/// ```
///
/// ```
/// use covary::{Matrix, ica::amari_index};
/// assert_eq!(amari_index(&Matrix::from_rows(&[[0.0, -3.0], [0.5, 0.0]])), 0.0);
/// assert_eq!(amari_index(&Matrix::from_rows(&[[1.0, 1.0], [1.0, 1.0]])), 1.0);
/// ```
///
/// # Panics
/// Unless the matrix is square with two rows or more.
pub fn amari_index(p: &Matrix) -> f64 {
    let q = p.n_rows();
    assert!(q > 1 && q == p.n_columns(), "a square matrix of two rows or more");
    let excess = |entry: &dyn Fn(usize) -> f64| {
        let largest = (0..q).map(|k| entry(k).abs()).fold(0.0, f64::max);
        (0..q).map(|k| entry(k).abs()).sum::<f64>() / largest - 1.0
    };
    let sum: f64 = (0..q).map(|i| excess(&|j| p[(i, j)]) + excess(&|j| p[(j, i)])).sum();
    sum / (2 * q * (q - 1)) as f64
}
