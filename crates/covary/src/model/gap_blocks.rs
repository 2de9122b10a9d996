//! Gaps given the observed cells, from the precision matrix (P = C⁻¹): only the block of the gaps is
//! factorized, m × m for m gaps, where the latent method of [`super::latent`] needs q × q.
//!
//! ```text
//! x̂_m = μ_m − P_mm⁻¹ P_mo y_o        cov = P_mm⁻¹        |C_oo| = |C| |P_mm|        y = t − μ
//! ```

use crate::data::{Pattern, Patterns};
use crate::linalg::blocks::{Blocks, Inverted};
use crate::linalg::{gemm, packed};
use crate::{Dataset, Matrix};
use faer::{MatMut, MatRef};
use std::ops::Range;

/// Cells of a block: its working set stays in the second-level cache.
const BLOCK_CELLS: usize = 16 * 1024;

/// A table and a Gaussian whose precision is in units of `inverse_scale`.
pub(crate) struct GapBlocks<'a> {
    data: &'a Dataset,
    /// The rows that are gone through, and in which order.
    order: &'a Patterns,
    mean: &'a [f64],
    inverse_scale: &'a [f64],
    precision: Blocks,
    pub(crate) block_rows: usize,
    pub(crate) arch: pulp::Arch,
}

/// A block of rows, and the buffers of its thread.
#[derive(Default)]
pub(crate) struct Filled {
    /// `(t − μ) · inverse_scale`, its expectation at the gaps.
    pub(crate) y: Vec<f64>,
    /// The inverse of every strip's `unit · P_mm`.
    pub(crate) inverted: Inverted,
    /// `unit · P y`, before the gaps of y were filled.
    pull: Vec<f64>,
    gap: Vec<f64>,
    change: Vec<f64>,
}

impl<'a> GapBlocks<'a> {
    /// Rows of a table in some order; `total` is the trace of the covariance.
    pub(crate) fn new(
        (data, order): (&'a Dataset, &'a Patterns),
        (mean, inverse_scale): (&'a [f64], &'a [f64]),
        (precision, total): (&Matrix, f64),
    ) -> Self {
        let block_rows = (BLOCK_CELLS / data.n_columns()).clamp(32, 256);
        let precision = Blocks::new(precision, total);
        Self { data, order, mean, inverse_scale, precision, block_rows, arch: pulp::Arch::new() }
    }

    /// What inverted blocks are to be multiplied by.
    pub(crate) fn unit(&self) -> f64 {
        self.precision.unit()
    }

    /// Calls `visit` with blocks of filled rows: those of `rows`, in the order of the patterns, whose
    /// pattern is `asked` for; strips are runs of rows of one pattern.
    pub(crate) fn for_blocks(
        &self,
        rows: Range<usize>,
        asked: impl Fn(&Pattern<'_>) -> bool,
        mut visit: impl FnMut(&[Pattern<'_>], &mut Filled),
    ) {
        let mut filled = Filled::default();
        self.order.for_blocks(rows, self.block_rows, asked, |strips, n| {
            self.fill(strips, n, &mut filled);
            visit(strips, &mut filled);
        });
    }

    fn fill(&self, strips: &[Pattern<'_>], n: usize, filled: &mut Filled) {
        let d = self.data.n_columns();
        filled.y.resize(n * d, 0.0);
        self.arch.dispatch(Kernel { blocks: self, stage: Stage::Load, strips, filled });
        if strips.iter().all(|strip| strip.gaps.is_empty()) {
            return;
        }
        filled.pull.resize(n * d, 0.0);
        let y = MatRef::from_row_major_slice(&filled.y, n, d);
        let pull = MatMut::from_row_major_slice_mut(&mut filled.pull, n, d);
        gemm(pull, false, y, self.precision.scaled().view());
        self.arch.dispatch(Kernel { blocks: self, stage: Stage::Solve, strips, filled });
    }

    /// `y = (t − μ) · inverse_scale`, 0 at the gaps.
    #[inline(always)]
    fn load(&self, strips: &[Pattern<'_>], filled: &mut Filled) {
        let d = self.data.n_columns();
        let (mean, inverse) = (&self.mean[..d], &self.inverse_scale[..d]);
        let rows = strips.iter().flat_map(|s| s.rows.iter().map(move |&i| (i, s.gaps)));
        for ((i, gaps), y) in rows.zip(filled.y.chunks_exact_mut(d)) {
            let t = &self.data.row(i)[..d];
            for j in 0..d {
                y[j] = (t[j] - mean[j]) * inverse[j];
            }
            for &j in gaps {
                y[j as usize] = 0.0;
            }
        }
    }

    /// `y_m = −P_mm⁻¹ (P y)_m`
    #[inline(always)]
    fn solve(&self, strips: &[Pattern<'_>], filled: &mut Filled) {
        let d = self.data.n_columns();
        let Filled { y, inverted, pull, gap, change } = filled;
        self.precision.invert(|k| strips[k].gaps, strips.len(), inverted);
        let mut rows = y.chunks_exact_mut(d).zip(pull.chunks_exact(d));
        for (k, strip) in strips.iter().enumerate() {
            let inverse = inverted.block(k);
            change.resize(strip.gaps.len(), 0.0);
            for (y, pull) in rows.by_ref().take(strip.rows.len()) {
                gap.clear();
                gap.extend(strip.gaps.iter().map(|&j| pull[j as usize]));
                packed::symmetric_times(inverse, gap, change);
                for (&j, change) in strip.gaps.iter().zip(change.iter()) {
                    y[j as usize] = -change;
                }
            }
        }
    }
}

/// The parts of a block's work that are loops, not matrix products.
#[derive(Clone, Copy)]
enum Stage {
    Load,
    Solve,
}

/// A stage with its arguments: everything below `with_simd` is inlined into a function compiled for
/// the instruction set found at run time.
struct Kernel<'k, 'a> {
    blocks: &'k GapBlocks<'a>,
    stage: Stage,
    strips: &'k [Pattern<'k>],
    filled: &'k mut Filled,
}

impl pulp::WithSimd for Kernel<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        match self.stage {
            Stage::Load => self.blocks.load(self.strips, self.filled),
            Stage::Solve => self.blocks.solve(self.strips, self.filled),
        }
    }
}
