//! A thin layer over faer: decompositions in canonical order and sign.
//!
//! faer types appear in no public signature. Everything here runs on the calling thread.

pub(crate) mod blocks;
pub(crate) mod cell;
pub(crate) mod elementary;
mod gram;
pub(crate) mod krylov;
pub(crate) mod lanes;
mod matrix;
mod orient;
pub(crate) mod packed;
pub(crate) mod rows;
pub(crate) mod tridiagonal;

pub(crate) use cell::Cell;
pub(crate) use krylov::{top_eigenpairs, top_eigenpairs_from_rough};
pub use matrix::Matrix;
pub(crate) use orient::canonical_signs;

use crate::Error;
use faer::linalg::matmul::{matmul, triangular};
use faer::linalg::solvers::DenseSolveCore;
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::{Accum, Par, Side};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use triangular::BlockStructure as Block;

/// `aᵀ b`
#[inline(always)]
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `out ← A B`, or `out ← out + A B`; views may be transposed.
pub(crate) fn gemm<W: Cell>(
    out: faer::MatMut<'_, W>,
    accumulate: bool,
    a: faer::MatRef<'_, W>,
    b: faer::MatRef<'_, W>,
) {
    let beta = if accumulate { Accum::Add } else { Accum::Replace };
    matmul(out, beta, a, b, W::ONE, Par::Seq);
}

/// Adds `Aᵀ A` to the lower triangle of `out`; the upper triangle is left alone.
pub(crate) fn add_gram_lower<W: Cell>(out: faer::MatMut<'_, W>, a: faer::MatRef<'_, W>) {
    add_product_lower(out, a.transpose(), a);
}

/// Adds `A B`, known to be symmetric, to the lower triangle of `out`; the upper one is left alone.
pub(crate) fn add_product_lower<W: Cell>(
    out: faer::MatMut<'_, W>,
    a: faer::MatRef<'_, W>,
    b: faer::MatRef<'_, W>,
) {
    triangular::matmul(
        out,
        Block::TriangularLower,
        Accum::Add,
        a,
        Block::Rectangular,
        b,
        Block::Rectangular,
        W::ONE,
        Par::Seq,
    );
}

/// Eigenpairs of a symmetric matrix, largest first; `vectors` holds them as columns, with the sign
/// rule of [`canonical_signs`].
#[derive(Debug, Clone)]
pub(crate) struct Eigen {
    pub(crate) values: Vec<f64>,
    pub(crate) vectors: Matrix,
}

impl Eigen {
    /// `V max(Λ, 0)^½`: a square root of a covariance, which may be singular.
    pub(crate) fn root(self) -> Matrix {
        let mut root = self.vectors;
        root.scale_columns(&self.values.iter().map(|v| v.max(0.0).sqrt()).collect::<Vec<_>>());
        root
    }
}

/// All eigenpairs of the symmetric matrix whose lower triangle is given.
pub(crate) fn eigen(a: &Matrix) -> Result<Eigen, Error> {
    let n = a.n_rows();
    let e = a
        .view()
        .self_adjoint_eigen(Side::Lower)
        .map_err(|_| Error::Numerical { what: "the symmetric eigenproblem" })?;
    let values = (0..n).map(|i| e.S()[n - 1 - i]).collect();
    let mut vectors = Matrix::from_fn(n, n, |i, j| e.U()[(i, n - 1 - j)]);
    canonical_signs(&mut vectors);
    Ok(Eigen { values, vectors })
}

/// All eigenvalues of the symmetric matrix whose lower triangle is given, largest first.
pub(crate) fn eigenvalues(a: &Matrix) -> Result<Vec<f64>, Error> {
    let mut values = a
        .view()
        .self_adjoint_eigenvalues(Side::Lower)
        .map_err(|_| Error::Numerical { what: "the symmetric eigenproblem" })?;
    values.reverse();
    Ok(values)
}

/// Leading eigenpairs of a symmetric matrix.
#[derive(Debug, Clone)]
pub(crate) struct Leading {
    pub(crate) values: Vec<f64>,
    pub(crate) vectors: Matrix,
    /// Sum of the other eigenvalues.
    pub(crate) rest: f64,
    /// Upper bound on the first of them.
    pub(crate) next: f64,
}

/// The `k` leading eigenpairs of a symmetric matrix. For few pairs of a large matrix the iteration
/// of [`krylov`] is tried first (20 of 1000 took 1/8 of the time here), to within `max_angle`
/// radians.
pub(crate) fn leading_eigenpairs(a: &Matrix, k: usize, max_angle: f64, seed: u64) -> Result<Leading, Error> {
    let n = a.n_rows();
    if n >= krylov::SMALLEST && 8 * krylov::block_width(k, n) <= n {
        let apply = |x: faer::MatRef<'_, f64>, out: faer::MatMut<'_, f64>| gemm(out, false, a.view(), x);
        if let Some(krylov::Krylov { eigen, next, .. }) = top_eigenpairs(apply, n, k, max_angle, seed)? {
            let rest = a.trace() - eigen.values.iter().sum::<f64>();
            return Ok(Leading { values: eigen.values, vectors: eigen.vectors, rest, next });
        }
    }
    let all = eigen(a)?;
    let rest = all.values[k..].iter().map(|v| v.max(0.0)).sum();
    let next = all.values.get(k).copied().unwrap_or(0.0);
    Ok(Leading { values: all.values[..k].to_vec(), vectors: all.vectors.first_columns(k), rest, next })
}

/// The `k` leading eigenpairs of a symmetric matrix or more, roughly where it is large: by a few passes of [`krylov`], which its
/// other eigenvalues do not prolong.
pub(crate) fn leading_or_all(a: &Matrix, k: usize) -> Result<Eigen, Error> {
    const LARGE: usize = 192;
    const PASSES: usize = 4;
    let n = a.n_rows();
    if n >= LARGE {
        let apply = |x: faer::MatRef<'_, f64>, out: faer::MatMut<'_, f64>| gemm(out, false, a.view(), x);
        if let Some(found) = krylov::leading_ritz_pairs(apply, n, k.min(n), PASSES, 0)? {
            return Ok(found);
        }
    }
    eigen(a)
}

/// Thin singular value decomposition `A = U diag(s) Vᵀ`, largest first; signs as faer gives them.
#[derive(Debug, Clone)]
pub(crate) struct Svd {
    pub(crate) u: Matrix,
    pub(crate) s: Vec<f64>,
    pub(crate) v: Matrix,
}

pub(crate) fn thin_svd(a: &Matrix) -> Result<Svd, Error> {
    let k = a.n_rows().min(a.n_columns());
    // Squares of numbers outside this range leave that of f64; a power of two costs no digit.
    let largest = a.as_slice().iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    if largest.is_normal() && !(1e-100..=1e100).contains(&largest) {
        let unit = 2.0_f64.powi(largest.log2().floor() as i32 / 2);
        // In two halves, since 2⁻ᵏ itself may overflow.
        let mut scaled = a.clone();
        scaled.as_mut_slice().iter_mut().for_each(|v| *v = *v / unit / unit);
        let mut svd = thin_svd(&scaled)?;
        svd.s.iter_mut().for_each(|s| *s = *s * unit * unit);
        return Ok(svd);
    }
    let svd =
        a.view().thin_svd().map_err(|_| Error::Numerical { what: "the singular value decomposition" })?;
    Ok(Svd {
        u: Matrix::from_fn(a.n_rows(), k, |i, j| svd.U()[(i, j)]),
        s: (0..k).map(|i| svd.S()[i]).collect(),
        v: Matrix::from_fn(a.n_columns(), k, |i, j| svd.V()[(i, j)]),
    })
}

/// `A⁻¹` of a square matrix, by LU with pivoting; not finite where A is singular.
pub(crate) fn inverse(a: &Matrix) -> Matrix {
    let inverse = a.view().partial_piv_lu().inverse();
    Matrix::from_fn(a.n_rows(), a.n_rows(), |i, j| inverse[(i, j)])
}

/// [`inverse`] and `ln |det A|`, not finite where A is singular.
pub(crate) fn inverse_and_ln_det(a: &Matrix) -> (Matrix, f64) {
    let (n, lu) = (a.n_rows(), a.view().partial_piv_lu());
    let inverse = lu.inverse();
    let ln_det = (0..n).map(|i| lu.U()[(i, i)].abs().ln()).sum();
    (Matrix::from_fn(n, n, |i, j| inverse[(i, j)]), ln_det)
}

/// `A⁻¹`, symmetric to the last bit, and `ln |A|` of the symmetric matrix whose lower triangle is
/// given; `None` if it is not positive definite to working precision.
pub(crate) fn positive_inverse(a: &Matrix) -> Option<(Matrix, f64)> {
    let n = a.n_rows();
    let llt = a.view().llt(Side::Lower).ok()?;
    let ln_det = 2.0 * (0..n).map(|i| llt.L()[(i, i)].ln()).sum::<f64>();
    let inverse = llt.inverse();
    Some((Matrix::from_fn(n, n, |i, j| inverse[(i.max(j), i.min(j))]), ln_det))
}

/// Independent standard normal entries.
pub(crate) fn normal(rows: usize, columns: usize, rng: &mut impl Rng) -> Matrix {
    Matrix::from_fn(rows, columns, |_, _| StandardNormal.sample(rng))
}

/// Lower Cholesky factor `A = L Lᵀ`.
#[derive(Debug, Clone)]
pub(crate) struct Cholesky {
    lower: Matrix,
}

impl Cholesky {
    /// Factorizes the symmetric matrix whose lower triangle is given; `None` if it is not positive
    /// definite to working precision.
    pub(crate) fn new(a: &Matrix) -> Option<Self> {
        let llt = a.view().llt(Side::Lower).ok()?;
        let lower =
            Matrix::from_fn(a.n_rows(), a.n_rows(), |i, j| if j <= i { llt.L()[(i, j)] } else { 0.0 });
        Some(Self { lower })
    }

    pub(crate) fn lower(&self) -> &Matrix {
        &self.lower
    }

    /// `ln |A|`, never through the determinant itself.
    pub(crate) fn ln_det(&self) -> f64 {
        2.0 * (0..self.lower.n_rows()).map(|i| self.lower[(i, i)].ln()).sum::<f64>()
    }

    /// `L⁻¹ b` in place.
    pub(crate) fn solve_lower(&self, b: &mut [f64]) {
        for i in 0..b.len() {
            let row = self.lower.row(i);
            let mut s = b[i];
            for k in 0..i {
                s -= row[k] * b[k];
            }
            b[i] = s / row[i];
        }
    }

    /// `L⁻ᵀ b` in place.
    pub(crate) fn solve_upper(&self, b: &mut [f64]) {
        for i in (0..b.len()).rev() {
            let bi = b[i] / self.lower[(i, i)];
            b[i] = bi;
            for k in 0..i {
                b[k] -= self.lower[(i, k)] * bi;
            }
        }
    }

    /// `A⁻¹ b` in place.
    pub(crate) fn solve(&self, b: &mut [f64]) {
        self.solve_lower(b);
        self.solve_upper(b);
    }

    /// `A⁻¹ B`.
    pub(crate) fn solve_matrix(&self, b: &Matrix) -> Matrix {
        let mut columns = b.transpose();
        for j in 0..columns.n_rows() {
            self.solve(columns.row_mut(j));
        }
        columns.transpose()
    }

    /// `L⁻¹`.
    pub(crate) fn lower_inverse(&self) -> Matrix {
        let n = self.lower.n_rows();
        let mut out = Matrix::zeros(n, n);
        invert_lower_triangular(out.view_mut(), self.lower.view(), Par::Seq);
        out
    }

    /// `A⁻¹`, symmetric to the last bit.
    pub(crate) fn inverse(&self) -> Matrix {
        let n = self.lower.n_rows();
        let mut inverse = self.solve_matrix(&Matrix::identity(n));
        inverse.symmetrize();
        inverse
    }
}
