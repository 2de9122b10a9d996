use super::{Eigen, Matrix, canonical_signs, eigen};
use crate::Error;
use faer::{Mat, MatMut, MatRef};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Leading eigenpairs found by [`top_eigenpairs`], with a bound on their error.
#[derive(Debug, Clone)]
pub(crate) struct Krylov {
    pub(crate) eigen: Eigen,
    /// Bound on the angle, in radians, between the found and the true leading subspace.
    pub(crate) angle_bound: f64,
    /// Upper bound on the first eigenvalue that was not asked for.
    pub(crate) next: f64,
}

/// Passes over the operator before the search is given up: beyond this the exact method is cheaper.
pub(crate) const MAX_PASSES: usize = 10;
/// Order from which a few leading pairs are worth an iteration.
pub(crate) const SMALLEST: usize = 128;
/// Angle (radians) that is good enough for the start of an iteration.
pub(crate) const START_ANGLE: f64 = 1e-2;
/// Columns carried beyond the wanted ones; the usual oversampling of randomized range finders.
const OVERSAMPLING: usize = 8;

/// Width of the block for `k` wanted pairs: whole vector registers.
pub(crate) fn block_width(k: usize, n: usize) -> usize {
    (k + OVERSAMPLING).next_multiple_of(8).min(n)
}

/// The `k` leading eigenpairs of a positive semi-definite operator of order `n`, by block Krylov
/// iteration with full reorthogonalization and Rayleigh–Ritz, from a seeded random block.
///
/// With residuals `r = A u − θ u`, the distance of the found subspace from the true one obeys
/// (Davis–Kahan)
/// ```text
/// sin ∠ ≤ ‖R‖ / (θ_k − λ_{k+1}),      λ_{k+1} ≤ θ_{k+1} + ‖r_{k+1}‖
/// ```
/// Returns `None` when that bound stays above `max_angle` after [`MAX_PASSES`] applications.
pub(crate) fn top_eigenpairs(
    mut apply: impl FnMut(MatRef<'_, f64>, MatMut<'_, f64>),
    n: usize,
    k: usize,
    max_angle: f64,
    seed: u64,
) -> Result<Option<Krylov>, Error> {
    let b = block_width(k, n);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut block = Mat::from_fn(n, b, |_, _| StandardNormal.sample(&mut rng));
    block = block.qr().compute_thin_Q();
    // Columns of the basis Q and of A Q, side by side.
    let (mut basis, mut image): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let mut t = Matrix::zeros(0, 0);

    for _ in 0..MAX_PASSES {
        let done = basis.len() / n;
        let m = done + b;
        if m > n {
            return Ok(None);
        }
        let mut z = Mat::<f64>::zeros(n, b);
        apply(block.as_ref(), z.as_mut());
        append(&mut basis, block.as_ref());
        append(&mut image, z.as_ref());
        let q = MatRef::from_column_major_slice(&basis, n, m);
        let aq = MatRef::from_column_major_slice(&image, n, m);

        // T = Qᵀ A Q grows by one block row; only its lower triangle is kept.
        let new_rows = z.transpose() * q;
        t = Matrix::from_fn(m, m, |i, j| match (i < done, j < done) {
            (true, true) => t[(i, j)],
            (true, false) => 0.0,
            (false, _) => new_rows[(i - done, j)],
        });
        let ritz = eigen(&t)?;
        let top = (k + 1).min(m);
        let y = Mat::from_fn(m, top, |i, j| ritz.vectors[(i, j)]);
        let u = q * &y;
        let residual = aq * &y - Mat::from_fn(n, top, |i, j| u[(i, j)] * ritz.values[j]);
        let norm = |j: usize| residual.col(j).norm_l2();
        let found = (0..k).map(norm).map(|r| r * r).sum::<f64>().sqrt();
        // `b > k`, so pair k exists unless k exhausts the space.
        let next = if top > k { ritz.values[k] + norm(k) } else { 0.0 };
        let gap = if k == 0 { f64::INFINITY } else { ritz.values[k - 1] - next };
        let angle_bound = if gap > 0.0 { found / gap } else { f64::INFINITY };
        if angle_bound <= max_angle {
            let mut vectors = Matrix::from_fn(n, k, |i, j| u[(i, j)]);
            canonical_signs(&mut vectors);
            let eigen = Eigen { values: ritz.values[..k].to_vec(), vectors };
            return Ok(Some(Krylov { eigen, angle_bound, next }));
        }

        // Twice is enough; the second time mends what the first left in a nearly dependent block.
        for _ in 0..2 {
            z = &z - q * (q.transpose() * &z);
            z = z.qr().compute_thin_Q();
        }
        block = z;
    }
    Ok(None)
}

fn append(columns: &mut Vec<f64>, block: MatRef<'_, f64>) {
    for j in 0..block.ncols() {
        columns.extend(block.col(j).iter());
    }
}
