//! The posterior of the scores given the observed cells, block by block [M 1.5.1]: the part that
//! the E-step and all questions to a whole table share.
//!
//! Rows are walked in the order of their patterns. For a block of them:
//! ```text
//! B = Y Ψ⁻¹W                       one product for all rows (Y is 0 at the gaps)
//! G_p = (I + WᵀΨ⁻¹W) − Σ_{gaps} wwᵀ/ψ     per pattern, from whichever side is shorter
//! L⁻¹ or V_p = G_p⁻¹ = L⁻ᵀL⁻¹      eight patterns at a time, one per SIMD lane
//! x̂ = V b
//! ```

use crate::data::{Pattern, Patterns};
use crate::linalg::lanes::{self, LANES, Lane};
use crate::linalg::{gemm, packed};
use crate::{Dataset, Matrix};
use faer::{MatMut, MatRef};
use std::ops::Range;

/// Cells of a block: its working set stays in the second-level cache.
const BLOCK_CELLS: usize = 32 * 1024;
/// Numbers that come from memory together.
const LINE: usize = 8;
/// Passes that bring `x̂` to working precision up to a condition of about 1e14.
const REFINED_PASSES: usize = 4;

/// Parameters in units of `1 / inverse_scale`, except the mean.
#[derive(Clone, Copy)]
pub(crate) struct Units<'a> {
    pub(crate) w: &'a Matrix,
    pub(crate) psi: &'a [f64],
    pub(crate) mean: &'a [f64],
    pub(crate) inverse_scale: &'a [f64],
    /// `E_j`, the covariance of `(w_j, μ_j)` over `ψ_j`: one for every column, one for all, or none
    /// where the parameters are taken as known.
    pub(crate) spread: &'a [Matrix],
}

/// What is kept of every `G = L Lᵀ`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// `V = G⁻¹`. Digits are at stake once `G` exceeds 1e8: what the E-step gets wrong it corrects
    /// in the next.
    Inverse,
    /// `L⁻¹`, which gives variances as sums of squares and draws. Answers are final: digits are at
    /// stake from 1e6.
    Root,
}

impl Keep {
    /// Above this, `G − Σ_{gaps}` would lose the digits of the identity in it, and `G⁻¹` those of
    /// small residuals: the observed columns are added up instead, and `x̂` is refined.
    fn ill_conditioned(self) -> f64 {
        match self {
            Self::Inverse => 1e8,
            Self::Root => 1e6,
        }
    }
}

/// A table, parameters, and what all blocks share.
pub(crate) struct Latent<'a> {
    data: &'a Dataset,
    /// The rows that are gone through, and in which order.
    pub(crate) order: &'a Patterns,
    units: Units<'a>,
    /// `Ψ⁻¹ W`
    weighted: Matrix,
    /// Packed `w_j w_jᵀ / ψ_j`, d × q(q+1)/2.
    outer: Matrix,
    /// Packed `I + Σ_j w_j w_jᵀ / ψ_j`.
    complete: Vec<f64>,
    /// Packed identity.
    identity: Vec<f64>,
    /// `cov(w_j, μ_j) / ψ_j` of every column, d × q, and their sum; empty where parameters are known.
    offset: Option<(Matrix, Vec<f64>)>,
    /// Whether no digits of `G` are at stake.
    well_conditioned: bool,
    keep: Keep,
    pub(crate) block_rows: usize,
    pub(crate) arch: pulp::Arch,
}

/// A block of rows, and the buffers of its thread.
#[derive(Default)]
pub(crate) struct Block {
    /// `(t − μ) / scale`, 0 at the gaps.
    pub(crate) y: Vec<f64>,
    /// After [`Latent::fit`], `W x̂` for every column.
    pub(crate) fit: Vec<f64>,
    /// `ẑ = (x̂, 1)`, row by row.
    pub(crate) z: Vec<f64>,
    /// What is [kept](Keep) of `G`, packed, one per strip.
    pub(crate) kept: Vec<f64>,
    /// `ln |G|` of every strip.
    pub(crate) ln_det: Vec<f64>,
    b: Vec<f64>,
    lanes: Vec<Lane>,
    columns: Vec<usize>,
    change: Vec<f64>,
}

/// The parts of a block's work that are loops, not matrix products.
#[derive(Clone, Copy)]
enum Stage {
    Load,
    Factor,
    Solve,
    Misfit,
}

/// A stage with its arguments: everything below `with_simd` is inlined into a function compiled for
/// the instruction set found at run time.
struct Kernel<'k, 'a> {
    latent: &'k Latent<'a>,
    stage: Stage,
    strips: &'k [Pattern<'k>],
    block: &'k mut Block,
}

impl pulp::WithSimd for Kernel<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { latent, stage, strips, block } = self;
        match stage {
            Stage::Load => latent.load(strips, block),
            Stage::Factor => {
                latent.latent_precisions(strips, block);
                latent.factor(strips, block);
            }
            Stage::Solve => latent.solve(strips, block),
            Stage::Misfit => misfit(strips, &block.y, &mut block.fit),
        }
    }
}

impl<'a> Latent<'a> {
    pub(crate) fn new(data: &'a Dataset, units: Units<'a>, keep: Keep) -> Self {
        Self::of_rows(data, data.sorted(), units, keep)
    }

    /// Of some rows of a table only.
    pub(crate) fn of_rows(data: &'a Dataset, order: &'a Patterns, units: Units<'a>, keep: Keep) -> Self {
        let Units { w, psi, spread, .. } = units;
        let (d, q) = (w.n_rows(), w.n_columns());
        let inverse: Vec<f64> = psi.iter().map(|v| 1.0 / v).collect();
        let mut weighted = w.clone();
        weighted.scale_rows(&inverse);
        let p = packed::padded_len(q);
        let mut identity = vec![0.0; p];
        for i in 0..q {
            identity[packed::len(i + 1) - 1] = 1.0;
        }
        let mut outer = Matrix::zeros(d, p);
        let mut complete = identity.clone();
        for j in 0..d {
            packed::add_outer(outer.row_mut(j), w.row(j), inverse[j]);
            if let Some(e) = one_or_each(spread, j) {
                packed::add_matrix(outer.row_mut(j), e, q);
            }
            complete.iter_mut().zip(outer.row(j)).for_each(|(c, o)| *c += o);
        }
        let largest = complete.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        let offset = (!spread.is_empty()).then(|| {
            let each = Matrix::from_fn(d, q, |j, i| one_or_each(spread, j).map_or(0.0, |e| e[(q, i)]));
            let sum = (0..q).map(|i| (0..d).map(|j| each[(j, i)]).sum()).collect();
            (each, sum)
        });
        Self {
            data,
            order,
            offset,
            units,
            weighted,
            outer,
            complete,
            identity,
            well_conditioned: largest < keep.ill_conditioned(),
            keep,
            block_rows: (BLOCK_CELLS / d).clamp(32, 256),
            arch: pulp::Arch::new(),
        }
    }

    /// Numbers from one strip's [`Block::kept`] to the next.
    pub(crate) fn kept_len(&self) -> usize {
        self.complete.len()
    }

    /// Calls `visit` with blocks of solved rows: those of `rows`, in the order of the patterns, whose
    /// pattern is `asked` for; strips are runs of rows of one pattern.
    pub(crate) fn for_blocks(
        &self,
        rows: Range<usize>,
        asked: impl Fn(&Pattern<'_>) -> bool,
        mut visit: impl FnMut(&[Pattern<'_>], &mut Block),
    ) {
        let mut block = Block::default();
        self.order.for_blocks(rows, self.block_rows, asked, |strips, n| {
            self.solve_block(strips, n, &mut block);
            visit(strips, &mut block);
        });
    }

    fn solve_block(&self, strips: &[Pattern<'_>], n: usize, block: &mut Block) {
        let (d, q) = (self.units.w.n_rows(), self.units.w.n_columns());
        block.y.resize(n * d, 0.0);
        block.b.resize(n * q, 0.0);
        block.z.resize(n * (q + 1), 0.0);
        block.kept.resize(strips.len() * self.kept_len(), 0.0);

        self.run(Stage::Load, strips, block);
        self.run(Stage::Factor, strips, block);
        // x̂ ← x̂ + V (WᵀΨ⁻¹(y − W x̂) − x̂), from x̂ = 0: once is the posterior mean, and where V has
        // lost digits the next passes restore those of x̂.
        // Uncertain loadings blunt what an ill-conditioned G could tell apart: once is enough.
        let passes = if self.well_conditioned || self.offset.is_some() { 1 } else { REFINED_PASSES };
        for pass in 0..passes {
            if pass > 0 {
                self.fit(block);
                self.run(Stage::Misfit, strips, block);
            }
            let misfit = if pass == 0 { &block.y } else { &block.fit };
            let misfit = MatRef::from_row_major_slice(misfit, n, d);
            gemm(MatMut::from_row_major_slice_mut(&mut block.b, n, q), false, misfit, self.weighted.view());
            self.subtract_offsets(strips, block);
            self.run(Stage::Solve, strips, block);
        }
    }

    /// `b ← b − Σ_O cov(w_j, μ_j) / ψ_j` for every row.
    fn subtract_offsets(&self, strips: &[Pattern<'_>], block: &mut Block) {
        let Some((each, sum)) = &self.offset else { return };
        let q = sum.len();
        let mut rows = block.b.chunks_exact_mut(q.max(1));
        for strip in strips {
            let mut offset = vec![0.0; q];
            if 2 * strip.gaps.len() <= each.n_rows() {
                offset.copy_from_slice(sum);
                for &j in strip.gaps {
                    offset.iter_mut().zip(each.row(j as usize)).for_each(|(o, e)| *o -= e);
                }
            } else {
                strip.for_observed(|j| offset.iter_mut().zip(each.row(j)).for_each(|(o, e)| *o += e));
            }
            for b in rows.by_ref().take(strip.rows.len()) {
                b.iter_mut().zip(&offset).for_each(|(b, o)| *b -= o);
            }
        }
    }

    /// `W x̂` of every row of the block, for all columns.
    pub(crate) fn fit(&self, block: &mut Block) {
        let (d, q) = (self.units.w.n_rows(), self.units.w.n_columns());
        let n = block.y.len() / d;
        block.fit.resize(n * d, 0.0);
        let x = MatRef::from_row_major_slice(&block.z, n, q + 1).subcols(0, q);
        let fit = MatMut::from_row_major_slice_mut(&mut block.fit, n, d);
        gemm(fit, false, x, self.units.w.view().transpose());
    }

    /// Runs a stage compiled for the widest vectors this machine has.
    fn run(&self, stage: Stage, strips: &[Pattern<'_>], block: &mut Block) {
        self.arch.dispatch(Kernel { latent: self, stage, strips, block });
    }

    /// `y = (t − μ) / scale`, 0 at the gaps; `ẑ = (0, 1)`.
    #[inline(always)]
    fn load(&self, strips: &[Pattern<'_>], block: &mut Block) {
        let (d, q) = (self.units.w.n_rows(), self.units.w.n_columns());
        block.z.fill(0.0);
        block.z.chunks_exact_mut(q + 1).for_each(|z| z[q] = 1.0);
        let (mean, inverse) = (&self.units.mean[..d], &self.units.inverse_scale[..d]);
        let cells = self.data.values().as_slice();
        // Rows of a pattern are far from each other: all are asked for before anything waits for one of them (10⁶ × 20 cells,
        // 10 % gaps, q = 5: .074 instead of .095 s for a step of EM).
        let mut seen = 0;
        for &i in strips.iter().flat_map(|s| s.rows) {
            for t in cells[i * d..][..d].iter().step_by(LINE) {
                seen ^= t.to_bits();
            }
        }
        std::hint::black_box(seen);
        let rows = strips.iter().flat_map(|s| s.rows.iter().map(move |&i| (i, s.gaps)));
        for ((i, gaps), y) in rows.zip(block.y.chunks_exact_mut(d)) {
            let t = &cells[i * d..][..d];
            for j in 0..d {
                y[j] = (t[j] - mean[j]) * inverse[j];
            }
            for &j in gaps {
                y[j as usize] = 0.0;
            }
        }
    }

    /// Packed `G = I + W_Oᵀ Ψ_O⁻¹ W_O` of every strip, from whichever of its observed and missing
    /// columns are fewer.
    #[inline(always)]
    fn latent_precisions(&self, strips: &[Pattern<'_>], block: &mut Block) {
        let (d, p) = (self.units.w.n_rows(), self.kept_len());
        for (k, strip) in strips.iter().enumerate() {
            block.columns.clear();
            let few = strip.gaps.is_empty() || (self.well_conditioned && 2 * strip.gaps.len() <= d);
            let (base, sign) = if few {
                block.columns.extend(strip.gaps.iter().map(|&j| j as usize * p));
                (&self.complete, -1.0)
            } else {
                strip.for_observed(|j| block.columns.push(j * p));
                (&self.identity, 1.0)
            };
            let g = &mut block.kept[k * p..][..p];
            g.copy_from_slice(base);
            packed::add_rows(g, sign, self.outer.as_slice(), &block.columns);
        }
    }

    /// Replaces every `G` by what is kept of it.
    #[inline(always)]
    fn factor(&self, strips: &[Pattern<'_>], block: &mut Block) {
        let (q, p) = (self.units.w.n_columns(), self.kept_len());
        block.ln_det.clear();
        block.ln_det.resize(strips.len(), 0.0);
        if p == 0 {
            return;
        }
        // Padding rides along; only the triangle is worked on.
        block.lanes.resize(p, [0.0; LANES]);
        for (ln_dets, g) in block.ln_det.chunks_mut(LANES).zip(block.kept.chunks_mut(LANES * p)) {
            // Lanes without a strip hold the identity.
            for (i, lane) in block.lanes.iter_mut().enumerate() {
                *lane = [self.identity[i]; LANES];
            }
            for (l, g) in g.chunks_exact(p).enumerate() {
                for (lane, g) in block.lanes.iter_mut().zip(g) {
                    lane[l] = *g;
                }
            }
            let ln_det = lanes::inverse_root(&mut block.lanes, q);
            if self.keep == Keep::Inverse {
                lanes::square(&mut block.lanes, q);
            }
            for (l, g) in g.chunks_exact_mut(p).enumerate() {
                for (lane, g) in block.lanes.iter().zip(g) {
                    *g = lane[l];
                }
            }
            ln_dets.iter_mut().zip(ln_det).for_each(|(to, v)| *to = v);
        }
    }

    /// `x̂ ← x̂ + V (b − x̂)` for every row.
    #[inline(always)]
    fn solve(&self, strips: &[Pattern<'_>], block: &mut Block) {
        let (q, p) = (self.units.w.n_columns(), self.kept_len());
        block.change.resize(q, 0.0);
        let mut row = 0;
        for (k, strip) in strips.iter().enumerate() {
            let kept = &block.kept[k * p..][..p];
            for _ in strip.rows {
                let b = &mut block.b[row * q..][..q];
                let x = &mut block.z[row * (q + 1)..][..q];
                for i in 0..q {
                    b[i] -= x[i];
                }
                match self.keep {
                    Keep::Inverse => packed::symmetric_times(kept, b, &mut block.change),
                    Keep::Root => {
                        packed::lower_times(kept, b);
                        packed::upper_times(kept, b);
                        block.change.copy_from_slice(b);
                    }
                }
                for i in 0..q {
                    x[i] += block.change[i];
                }
                row += 1;
            }
        }
    }
}

/// The entry of column `j` where there is one for each, or the one for all.
pub(crate) fn one_or_each<T>(entries: &[T], j: usize) -> Option<&T> {
    entries.get(j).or_else(|| entries.first())
}

/// `fit ← y − fit`, 0 at the gaps.
#[inline(always)]
fn misfit(strips: &[Pattern<'_>], y: &[f64], fit: &mut [f64]) {
    fit.iter_mut().zip(y).for_each(|(fit, y)| *fit = y - *fit);
    zero_gaps(strips, fit);
}

/// Puts 0 at the gaps of rows as wide as the table.
#[inline(always)]
pub(crate) fn zero_gaps(strips: &[Pattern<'_>], rows: &mut [f64]) {
    let gaps = strips.iter().flat_map(|s| s.rows.iter().map(move |_| s));
    let mut rest = rows;
    for strip in gaps {
        let (row, tail) = rest.split_at_mut(strip.n_columns());
        for &j in strip.gaps {
            row[j as usize] = 0.0;
        }
        rest = tail;
    }
}
