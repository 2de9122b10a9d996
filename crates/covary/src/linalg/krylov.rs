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
/// Bound on the angle (radians) from which rounding to single precision may be what holds it up.
const ROUGH: f64 = 1e-4;
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
    apply: impl FnMut(MatRef<'_, f64>, MatMut<'_, f64>),
    n: usize,
    k: usize,
    max_angle: f64,
    seed: u64,
) -> Result<Option<Krylov>, Error> {
    Ok(Space::new(apply, n, block_width(k, n), seed).search(k, max_angle, 0.0)?.ok())
}

/// As [`top_eigenpairs`], with products in single precision as long as they bring the bound down. Where their rounding
/// holds it above `max_angle`, the leading vectors found so far are the start of a search with exact ones.
pub(crate) fn top_eigenpairs_from_rough(
    rough: impl FnMut(MatRef<'_, f64>, MatMut<'_, f64>),
    exact: impl FnMut(MatRef<'_, f64>, MatMut<'_, f64>),
    n: usize,
    k: usize,
    max_angle: f64,
    seed: u64,
) -> Result<Option<Krylov>, Error> {
    let mut space = Space::new(rough, n, block_width(k, n), seed);
    match space.search(k, max_angle, ROUGH)? {
        Ok(found) => Ok(Some(found)),
        Err(Short::Far) => Ok(None),
        Err(Short::Stalled) => {
            let (ritz, _) = space.ritz(block_width(k, n))?;
            let block = ritz.vectors.view().to_owned().qr().compute_thin_Q();
            Ok(Space::of_block(exact, block).search(k, max_angle, 0.0)?.ok())
        }
    }
}

/// Why a search ended short of its bound.
enum Short {
    /// In the rounding of its products.
    Stalled,
    /// Out of passes or of room.
    Far,
}

/// The `k` leading eigenpairs of such an operator after a few passes, however close the eigenvalues are: those far
/// above the rest are found, of the others some directions that explain nearly as much. `None` if the space has no room
/// for that many passes.
pub(crate) fn leading_ritz_pairs(
    apply: impl FnMut(MatRef<'_, f64>, MatMut<'_, f64>),
    n: usize,
    k: usize,
    passes: usize,
    seed: u64,
) -> Result<Option<Eigen>, Error> {
    Space::new(apply, n, block_width(k, n), seed).after(passes, k)
}

/// The same from the span of these columns, which is near the leading subspace: fewer passes are enough.
pub(crate) fn leading_ritz_pairs_near(
    apply: impl FnMut(MatRef<'_, f64>, MatMut<'_, f64>),
    start: &Matrix,
    k: usize,
    passes: usize,
) -> Result<Option<Eigen>, Error> {
    Space::of_block(apply, start.view().to_owned().qr().compute_thin_Q()).after(passes, k)
}

/// The span of a random block and its images, one pass after the other.
struct Space<A> {
    apply: A,
    n: usize,
    /// The next block, orthogonal to the basis.
    block: Mat<f64>,
    /// The image of the last block, from which the next one comes.
    last: Option<Mat<f64>>,
    /// Columns of the basis Q and of A Q, side by side.
    basis: Vec<f64>,
    image: Vec<f64>,
    /// `T = Qᵀ A Q`; only its lower triangle is kept.
    t: Matrix,
}

impl<A: FnMut(MatRef<'_, f64>, MatMut<'_, f64>)> Space<A> {
    fn new(apply: A, n: usize, width: usize, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let block: Mat<f64> = Mat::from_fn(n, width, |_, _| StandardNormal.sample(&mut rng));
        Self::of_block(apply, block.qr().compute_thin_Q())
    }

    /// From an orthonormal block.
    fn of_block(apply: A, block: Mat<f64>) -> Self {
        let (basis, image) = (Vec::new(), Vec::new());
        Self { apply, n: block.nrows(), block, last: None, basis, image, t: Matrix::zeros(0, 0) }
    }

    /// Grows until the bound on the angle is low enough. Below `rough` a pass that does not halve it has met the
    /// rounding of the products.
    fn search(&mut self, k: usize, max_angle: f64, rough: f64) -> Result<Result<Krylov, Short>, Error> {
        let mut before = f64::INFINITY;
        for _ in 0..MAX_PASSES {
            if !self.grow() {
                break;
            }
            let (ritz, residual) = self.ritz(k + 1)?;
            let norm = |j: usize| residual.col(j).norm_l2();
            let found = (0..k).map(norm).map(|r| r * r).sum::<f64>().sqrt();
            // The block is wider than k, so pair k exists unless k exhausts the space.
            let next = if ritz.values.len() > k { ritz.values[k] + norm(k) } else { 0.0 };
            let gap = if k == 0 { f64::INFINITY } else { ritz.values[k - 1] - next };
            let angle_bound = if gap > 0.0 { found / gap } else { f64::INFINITY };
            if angle_bound <= max_angle {
                let mut vectors = ritz.vectors.first_columns(k);
                canonical_signs(&mut vectors);
                let eigen = Eigen { values: ritz.values[..k].to_vec(), vectors };
                return Ok(Ok(Krylov { eigen, angle_bound, next }));
            }
            if angle_bound < rough && angle_bound > 0.5 * before {
                return Ok(Err(Short::Stalled));
            }
            before = angle_bound;
        }
        Ok(Err(if before < rough { Short::Stalled } else { Short::Far }))
    }

    /// The `k` leading pairs after this many passes; `None` if there is no room for them.
    fn after(mut self, passes: usize, k: usize) -> Result<Option<Eigen>, Error> {
        for _ in 0..passes {
            if !self.grow() {
                return Ok(None);
            }
        }
        self.ritz(k).map(|(ritz, _)| Some(ritz))
    }

    /// Adds a block to the basis, one pass over the operator; false if there is no room for it.
    fn grow(&mut self) -> bool {
        let (n, b) = (self.n, self.block.ncols());
        let done = self.basis.len() / n;
        let m = done + b;
        if m > n {
            return false;
        }
        if let Some(mut z) = self.last.take() {
            let q = MatRef::from_column_major_slice(&self.basis, n, done);
            // Twice is enough; the second time mends what the first left in a nearly dependent block.
            for _ in 0..2 {
                z = &z - q * (q.transpose() * &z);
                z = z.qr().compute_thin_Q();
            }
            self.block = z;
        }
        let mut z = Mat::<f64>::zeros(n, b);
        (self.apply)(self.block.as_ref(), z.as_mut());
        append(&mut self.basis, self.block.as_ref());
        append(&mut self.image, z.as_ref());
        // T grows by one block row.
        let new_rows = z.transpose() * MatRef::from_column_major_slice(&self.basis, n, m);
        self.t = Matrix::from_fn(m, m, |i, j| match (i < done, j < done) {
            (true, true) => self.t[(i, j)],
            (true, false) => 0.0,
            (false, _) => new_rows[(i - done, j)],
        });
        self.last = Some(z);
        true
    }

    /// The leading pairs of A within the space, signs as they come, and their residuals `A u − θ u`.
    fn ritz(&self, top: usize) -> Result<(Eigen, Mat<f64>), Error> {
        let (n, m) = (self.n, self.t.n_rows());
        let q = MatRef::from_column_major_slice(&self.basis, n, m);
        let aq = MatRef::from_column_major_slice(&self.image, n, m);
        let ritz = eigen(&self.t)?;
        let top = top.min(m);
        let y = Mat::from_fn(m, top, |i, j| ritz.vectors[(i, j)]);
        let u = q * &y;
        let residual = aq * &y - Mat::from_fn(n, top, |i, j| u[(i, j)] * ritz.values[j]);
        let vectors = Matrix::from_fn(n, top, |i, j| u[(i, j)]);
        Ok((Eigen { values: ritz.values[..top].to_vec(), vectors }, residual))
    }
}

fn append(columns: &mut Vec<f64>, block: MatRef<'_, f64>) {
    for j in 0..block.ncols() {
        columns.extend(block.col(j).iter());
    }
}
