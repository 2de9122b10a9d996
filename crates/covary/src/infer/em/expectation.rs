//! The E-step over blocks of rows ([M 1.5.1], [M 1.5.2]).
//!
//! `V` and `x̂` of a block of rows are those of [`Latent`]; then:
//! ```text
//! R = Y − X̂ Wᵀ                     one product; 0 at the gaps
//! Σ y ẑᵀ = Yᵀ Ẑ                    one product
//! Σ_{n: j∈O} ⟨zzᵀ⟩                 per pattern: to all columns, less the missing ones
//! ```
//! A row of weight r enters as √r times y, W x̂ and ẑ; only V and ln |G| are then counted r times. So does a row whose
//! scores and noise have variances 1/u, with r = ⟨u⟩, but V once: its ⟨u xxᵀ⟩ is V + ⟨u⟩ x̂x̂ᵀ [M 2.11].

use super::moments::{Errors, LatentMoments};
use super::parameters::{Frame, Parameters};
use crate::data::Pattern;
use crate::infer::share::{BATCH, share};
use crate::linalg::{dot, gemm, packed};
use crate::model::latent::{Block, Keep, Latent, Units, zero_gaps};
use crate::parallel::over_pieces;
use crate::{Dataset, Matrix};
use faer::MatRef;

/// One E-step: the table and the parameters.
pub(super) struct Expectation<'a> {
    latent: Latent<'a>,
    w: &'a Matrix,
    weights: Weights<'a>,
    /// The number of the first row, which has the first weight.
    first: usize,
}

/// How rows enter.
#[derive(Clone, Copy)]
enum Weights<'a> {
    Equal,
    /// Each counts this many times.
    Counts(&'a [f64]),
    /// Each counts once, and its variances are divided by this.
    Scales(&'a [f64]),
}

/// The parts of a block's work that are loops, not matrix products.
#[derive(Clone, Copy)]
enum Stage {
    Weigh,
    Residual,
    Share,
}

/// A stage with its arguments: everything below `with_simd` is inlined into a function compiled for
/// the instruction set found at run time.
struct Kernel<'k, 'a> {
    step: &'k Expectation<'a>,
    stage: Stage,
    strips: &'k [Pattern<'k>],
    block: &'k mut Block,
    scratch: &'k mut Scratch,
    out: &'k mut LatentMoments,
}

impl pulp::WithSimd for Kernel<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { step, stage, strips, block, scratch, out } = self;
        match stage {
            Stage::Weigh => step.weigh(strips, block),
            Stage::Residual => residuals(strips, &block.y, &mut block.fit, out),
            Stage::Share => step.second_moments(strips, block, scratch, out),
        }
    }
}

/// Buffers of one thread.
#[derive(Default)]
struct Scratch {
    /// Packed `⟨z zᵀ⟩`, summed over the rows of each strip of a batch.
    moments: Vec<f64>,
    missing: Vec<u32>,
}

impl<'a> Expectation<'a> {
    pub(super) fn new(data: &'a Dataset, frame: &'a Frame, at: &'a Parameters) -> Self {
        let units =
            Units { w: &at.w, psi: &at.psi, mean: &at.mean, inverse_scale: &frame.inverse, spread: &[] };
        Self { latent: Latent::new(data, units, Keep::Inverse), w: &at.w, weights: Weights::Equal, first: 0 }
    }

    /// That of block `b` of the table.
    pub(super) fn of_block(
        (data, b): (&'a Dataset, usize),
        frame: &'a Frame,
        at: &'a Parameters,
        spread: &'a [Matrix],
    ) -> Self {
        let units = Units { w: &at.w, psi: &at.psi, mean: &at.mean, inverse_scale: &frame.inverse, spread };
        let latent = Latent::of_rows(data, data.sorted_block(b), units, Keep::Inverse);
        Self { latent, w: &at.w, weights: Weights::Equal, first: data.block(b).start }
    }

    pub(super) fn weighted(self, weights: &'a [f64]) -> Self {
        Self { weights: Weights::Counts(weights), ..self }
    }

    /// The variances of each row divided by what `scales` has for it.
    pub(super) fn scaled(self, scales: &'a [f64]) -> Self {
        Self { weights: Weights::Scales(scales), ..self }
    }

    /// What the rows of a strip count together.
    fn mass(&self, strip: &Pattern<'_>) -> f64 {
        match self.weights {
            Weights::Equal | Weights::Scales(_) => strip.rows.len() as f64,
            Weights::Counts(weights) => strip.rows.iter().map(|&i| weights[i - self.first]).sum(),
        }
    }

    /// Moments of all rows, from `empty` ones.
    pub(super) fn sum(&self, empty: impl Fn() -> LatentMoments + Sync) -> LatentMoments {
        let part_of = |rows| {
            let (mut part, mut scratch) = (empty(), Scratch::default());
            let informative = |strip: &Pattern<'_>| strip.n_observed() > 0 && self.mass(strip) > 0.0;
            self.latent.for_blocks(rows, informative, |strips, block| {
                self.add(strips, block, &mut scratch, &mut part);
            });
            part
        };
        let (n, step) = (self.latent.order.n_rows(), self.latent.block_rows);
        over_pieces(n, step, part_of, LatentMoments::add_sums)
    }

    /// Adds the moments of a block of rows to `out`.
    fn add(&self, strips: &[Pattern<'_>], block: &mut Block, scratch: &mut Scratch, out: &mut LatentMoments) {
        let rows_of = |(strip, ln_det): (&Pattern<'_>, &f64)| self.mass(strip) * ln_det;
        out.ln_det += strips.iter().zip(&block.ln_det).map(rows_of).sum::<f64>();
        self.latent.fit(block);
        for stage in [Stage::Weigh, Stage::Residual, Stage::Share] {
            self.latent.arch.dispatch(Kernel { step: self, stage, strips, block, scratch, out });
        }
        let (d, q) = (self.w.n_rows(), self.w.n_columns());
        let n = block.y.len() / d;
        let y = MatRef::from_row_major_slice(&block.y, n, d);
        let z = MatRef::from_row_major_slice(&block.z, n, q + 1);
        gemm(out.cross.view_mut(), true, y.transpose(), z);
    }

    /// Every row times the root of its weight.
    #[inline(always)]
    fn weigh(&self, strips: &[Pattern<'_>], block: &mut Block) {
        let (Weights::Counts(weights) | Weights::Scales(weights)) = self.weights else { return };
        let (d, q) = (self.w.n_rows(), self.w.n_columns());
        let rows = strips.iter().flat_map(|strip| strip.rows);
        for (row, &i) in rows.enumerate() {
            let root = weights[i - self.first].sqrt();
            block.y[row * d..][..d].iter_mut().for_each(|v| *v *= root);
            block.fit[row * d..][..d].iter_mut().for_each(|v| *v *= root);
            block.z[row * (q + 1)..][..=q].iter_mut().for_each(|v| *v *= root);
        }
    }

    /// The second moments of every strip, to the columns that have it.
    #[inline(always)]
    fn second_moments(
        &self,
        strips: &[Pattern<'_>],
        block: &Block,
        s: &mut Scratch,
        out: &mut LatentMoments,
    ) {
        let (q, p) = (self.w.n_columns(), self.latent.kept_len());
        let triangle = packed::len(q);
        let pz = packed::padded_len(q + 1);
        s.moments.resize(BATCH * pz, 0.0);
        let mut row = 0;
        for (batch, strips) in strips.chunks(BATCH).enumerate() {
            for (k, strip) in strips.iter().enumerate() {
                let v = &block.kept[(batch * BATCH + k) * p..][..p];
                let m = self.mass(strip);
                let moment = &mut s.moments[k * pz..][..pz];
                for i in 0..triangle {
                    moment[i] = m * v[i];
                }
                moment[triangle..].fill(0.0);
                *posterior_trace(out) += m * (0..q).map(|i| v[packed::len(i + 1) - 1]).sum::<f64>();
                for _ in strip.rows {
                    let z = &block.z[row * (q + 1)..][..=q];
                    out.scores_squared += dot(&z[..q], &z[..q]);
                    packed::add_outer(moment, z, 1.0);
                    row += 1;
                }
            }
            for moment in s.moments[..strips.len() * pz].chunks_exact(pz) {
                packed::add(&mut out.latent, moment);
            }
            share(strips, &s.moments, &mut s.missing, &mut out.common, &mut out.by_column);
        }
    }
}

/// Squared residuals and squared fits, per column, over the observed cells.
#[inline(always)]
fn residuals(strips: &[Pattern<'_>], y: &[f64], fit: &mut [f64], out: &mut LatentMoments) {
    let Errors::Residual { squares, fitted, .. } = &mut out.errors else {
        unreachable!("an E-step fills residual moments")
    };
    zero_gaps(strips, fit);
    let d = squares.len();
    let (squares, fitted) = (&mut squares[..d], &mut fitted[..d]);
    for (y, fit) in y.chunks_exact(d).zip(fit.chunks_exact(d)) {
        for j in 0..d {
            let r = y[j] - fit[j];
            squares[j] += r * r;
            fitted[j] += fit[j] * fit[j];
        }
    }
}

/// Where `Σ tr V` is summed.
#[inline(always)]
fn posterior_trace(out: &mut LatentMoments) -> &mut f64 {
    let Errors::Residual { posterior_trace, .. } = &mut out.errors else {
        unreachable!("an E-step fills residual moments")
    };
    posterior_trace
}
