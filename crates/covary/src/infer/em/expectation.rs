//! The E-step over blocks of rows (spec §5.1, §5.2).
//!
//! Rows are walked in the order of their patterns. For a block of them:
//! ```text
//! B = Y Ψ⁻¹W                       one product for all rows (Y is 0 at the gaps)
//! G_p = (I + WᵀΨ⁻¹W) − Σ_{gaps} wwᵀ/ψ     per pattern, from whichever side is shorter
//! V_p = G_p⁻¹                      eight patterns at a time, one per SIMD lane
//! x̂ = V b,   R = Y − X̂ Wᵀ         one product; 0 at the gaps
//! Σ y ẑᵀ = Yᵀ Ẑ                    one product
//! Σ_{n: j∈O} ⟨zzᵀ⟩                 per pattern: to all columns, less the missing ones
//! ```

use super::moments::{Errors, LatentMoments};
use super::parameters::{Frame, Parameters};
use crate::linalg::lanes::{self, LANES, Lane};
use crate::linalg::{dot, gemm, packed};
use crate::parallel::over_pieces;
use crate::{Dataset, Matrix};
use faer::{MatMut, MatRef};
use std::ops::Range;

/// Cells of a block: its working set stays in the second-level cache.
const BLOCK_CELLS: usize = 32 * 1024;
/// Strips whose moments are shared out together: at q = 10 they fit the first-level cache, and their
/// number the bits of a `u32`.
const BATCH: usize = 32;
/// Above this, `G − Σ_{gaps}` would lose the digits of the identity in it, and `G⁻¹` those of small
/// residuals: the observed columns are added up instead, and `x̂` is refined.
const ILL_CONDITIONED: f64 = 1e8;
/// Passes that bring `x̂` to working precision up to a condition of about 1e14.
const REFINED_PASSES: usize = 4;

/// One E-step: the table, the parameters, and what all blocks share.
pub(super) struct Expectation<'a> {
    data: &'a Dataset,
    frame: &'a Frame,
    at: &'a Parameters,
    /// `Ψ⁻¹ W`
    weighted: Matrix,
    /// Packed `w_j w_jᵀ / ψ_j`, d × q(q+1)/2.
    outer: Matrix,
    /// Packed `I + Σ_j w_j w_jᵀ / ψ_j`.
    complete: Vec<f64>,
    /// Packed identity.
    identity: Vec<f64>,
    /// Whether no digits of `G` are at stake.
    well_conditioned: bool,
    block_rows: usize,
    arch: pulp::Arch,
}

/// Consecutive rows of one pattern inside a block.
struct Strip<'a> {
    gaps: &'a [u32],
    /// Rows of the table.
    rows: &'a [usize],
}

/// The parts of a block's work that are loops, not matrix products.
#[derive(Clone, Copy)]
enum Stage {
    Load,
    Factor,
    Solve,
    Misfit,
    Residual,
    Share,
}

/// A stage with its arguments: everything below `with_simd` is inlined into a function compiled for
/// the instruction set found at run time.
struct Kernel<'k, 'a> {
    step: &'k Expectation<'a>,
    stage: Stage,
    strips: &'k [Strip<'k>],
    scratch: &'k mut Scratch,
    out: &'k mut LatentMoments,
}

impl pulp::WithSimd for Kernel<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { step, stage, strips, scratch: s, out } = self;
        match stage {
            Stage::Load => step.load(strips, s),
            Stage::Factor => {
                step.latent_precisions(strips, s);
                out.ln_det += step.invert(strips, &mut s.g, &mut s.lanes);
            }
            Stage::Solve => step.solve(strips, s),
            Stage::Misfit => misfit(strips, &s.y, &mut s.fit),
            Stage::Residual => step.residuals(strips, &s.y, &mut s.fit, out),
            Stage::Share => step.second_moments(strips, s, out),
        }
    }
}

/// Buffers of one thread.
#[derive(Default)]
struct Scratch {
    y: Vec<f64>,
    fit: Vec<f64>,
    b: Vec<f64>,
    z: Vec<f64>,
    g: Vec<f64>,
    lanes: Vec<Lane>,
    /// Packed `⟨z zᵀ⟩`, summed over the rows of each strip of a batch.
    moments: Vec<f64>,
    missing: Vec<u32>,
    columns: Vec<usize>,
    change: Vec<f64>,
}

impl<'a> Expectation<'a> {
    pub(super) fn new(data: &'a Dataset, frame: &'a Frame, at: &'a Parameters) -> Self {
        let (d, q) = (at.w.n_rows(), at.w.n_columns());
        let inverse: Vec<f64> = at.psi.iter().map(|v| 1.0 / v).collect();
        let mut weighted = at.w.clone();
        weighted.scale_rows(&inverse);
        let p = packed::padded_len(q);
        let mut identity = vec![0.0; p];
        for i in 0..q {
            identity[packed::len(i + 1) - 1] = 1.0;
        }
        let mut outer = Matrix::zeros(d, p);
        let mut complete = identity.clone();
        for j in 0..d {
            packed::add_outer(outer.row_mut(j), at.w.row(j), inverse[j]);
            complete.iter_mut().zip(outer.row(j)).for_each(|(c, o)| *c += o);
        }
        let largest = complete.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        Self {
            data,
            frame,
            at,
            weighted,
            outer,
            complete,
            identity,
            well_conditioned: largest < ILL_CONDITIONED,
            block_rows: (BLOCK_CELLS / d).clamp(32, 256),
            arch: pulp::Arch::new(),
        }
    }

    /// Moments of all rows, from `empty` ones.
    pub(super) fn sum(&self, empty: impl Fn() -> LatentMoments + Sync) -> LatentMoments {
        let part_of = |rows| {
            let mut part = empty();
            self.add(rows, &mut part);
            part
        };
        over_pieces(self.data.n_rows(), self.block_rows, part_of, LatentMoments::add_sums)
    }

    /// Adds the moments of a range of rows, in the order of the patterns, to `out`.
    fn add(&self, rows: Range<usize>, out: &mut LatentMoments) {
        let mut scratch = Scratch::default();
        let mut strips = Vec::new();
        let mut in_block = 0;
        for strip in self.data.strips(rows, self.block_rows) {
            if strip.n_observed() == 0 {
                continue;
            }
            if in_block + strip.rows.len() > self.block_rows {
                self.block(&strips, in_block, &mut scratch, out);
                strips.clear();
                in_block = 0;
            }
            in_block += strip.rows.len();
            strips.push(Strip { gaps: strip.gaps, rows: strip.rows });
        }
        if in_block > 0 {
            self.block(&strips, in_block, &mut scratch, out);
        }
    }

    fn block(&self, strips: &[Strip<'_>], n: usize, s: &mut Scratch, out: &mut LatentMoments) {
        let (d, q) = (self.at.w.n_rows(), self.at.w.n_columns());
        s.y.resize(n * d, 0.0);
        s.fit.resize(n * d, 0.0);
        s.b.resize(n * q, 0.0);
        s.z.resize(n * (q + 1), 0.0);
        s.g.resize(strips.len() * packed::padded_len(q), 0.0);

        self.run(Stage::Load, strips, s, out);
        self.run(Stage::Factor, strips, s, out);
        // x̂ ← x̂ + V (WᵀΨ⁻¹(y − W x̂) − x̂), from x̂ = 0: once is the posterior mean, and where V has
        // lost digits the next passes restore those of x̂.
        let passes = if self.well_conditioned { 1 } else { REFINED_PASSES };
        for pass in 0..passes {
            let misfit = if pass == 0 { &s.y } else { &s.fit };
            let misfit = MatRef::from_row_major_slice(misfit, n, d);
            gemm(MatMut::from_row_major_slice_mut(&mut s.b, n, q), false, misfit, self.weighted.view());
            self.run(Stage::Solve, strips, s, out);
            let x = MatRef::from_row_major_slice(&s.z, n, q + 1).subcols(0, q);
            gemm(MatMut::from_row_major_slice_mut(&mut s.fit, n, d), false, x, self.at.w.view().transpose());
            if pass + 1 < passes {
                self.run(Stage::Misfit, strips, s, out);
            }
        }
        self.run(Stage::Residual, strips, s, out);
        self.run(Stage::Share, strips, s, out);
        let (y, z) = (MatRef::from_row_major_slice(&s.y, n, d), MatRef::from_row_major_slice(&s.z, n, q + 1));
        gemm(out.cross.view_mut(), true, y.transpose(), z);
    }

    /// Runs a stage compiled for the widest vectors this machine has.
    fn run(&self, stage: Stage, strips: &[Strip<'_>], scratch: &mut Scratch, out: &mut LatentMoments) {
        self.arch.dispatch(Kernel { step: self, stage, strips, scratch, out });
    }

    /// `y = (t − μ) / scale`, 0 at the gaps; `ẑ = (0, 1)`.
    #[inline(always)]
    fn load(&self, strips: &[Strip<'_>], s: &mut Scratch) {
        let (d, q) = (self.at.w.n_rows(), self.at.w.n_columns());
        s.z.fill(0.0);
        s.z.chunks_exact_mut(q + 1).for_each(|z| z[q] = 1.0);
        let (mean, inverse) = (&self.at.mean[..d], &self.frame.inverse[..d]);
        let rows = strips.iter().flat_map(|s| s.rows.iter().map(move |&i| (i, s.gaps)));
        for ((i, gaps), y) in rows.zip(s.y.chunks_exact_mut(d)) {
            let t = &self.data.row(i)[..d];
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
    fn latent_precisions(&self, strips: &[Strip<'_>], s: &mut Scratch) {
        let (d, p) = (self.at.w.n_rows(), self.complete.len());
        for (k, strip) in strips.iter().enumerate() {
            s.columns.clear();
            let few = strip.gaps.is_empty() || (self.well_conditioned && 2 * strip.gaps.len() <= d);
            let (base, sign) = if few {
                s.columns.extend(strip.gaps.iter().map(|&j| j as usize * p));
                (&self.complete, -1.0)
            } else {
                for_observed(strip.gaps, d, |j| s.columns.push(j * p));
                (&self.identity, 1.0)
            };
            let g = &mut s.g[k * p..][..p];
            g.copy_from_slice(base);
            add_rows(g, sign, self.outer.as_slice(), &s.columns);
        }
    }

    /// Replaces every `G` by `V = G⁻¹`; returns `Σ ln |G|` over the rows.
    #[inline(always)]
    fn invert(&self, strips: &[Strip<'_>], g: &mut [f64], lanes: &mut Vec<Lane>) -> f64 {
        let (q, p) = (self.at.w.n_columns(), self.complete.len());
        if p == 0 {
            return 0.0;
        }
        // Padding rides along; `invert` reads the triangle only.
        lanes.resize(p, [0.0; LANES]);
        let mut sum = 0.0;
        for (strips, g) in strips.chunks(LANES).zip(g.chunks_mut(LANES * p)) {
            // Lanes without a strip invert the identity.
            for (i, lane) in lanes.iter_mut().enumerate() {
                *lane = [self.identity[i]; LANES];
            }
            for (l, g) in g.chunks_exact(p).enumerate() {
                for (lane, g) in lanes.iter_mut().zip(g) {
                    lane[l] = *g;
                }
            }
            let ln_det = lanes::invert(lanes, q);
            for (l, g) in g.chunks_exact_mut(p).enumerate() {
                for (lane, g) in lanes.iter().zip(g) {
                    *g = lane[l];
                }
            }
            sum += strips.iter().zip(ln_det).map(|(s, v)| s.rows.len() as f64 * v).sum::<f64>();
        }
        sum
    }

    /// `x̂ ← x̂ + V (b − x̂)` for every row.
    #[inline(always)]
    fn solve(&self, strips: &[Strip<'_>], s: &mut Scratch) {
        let (q, p) = (self.at.w.n_columns(), self.complete.len());
        s.change.resize(q, 0.0);
        let mut row = 0;
        for (k, strip) in strips.iter().enumerate() {
            let v = &s.g[k * p..][..p];
            for _ in strip.rows {
                let b = &mut s.b[row * q..][..q];
                let x = &mut s.z[row * (q + 1)..][..q];
                for i in 0..q {
                    b[i] -= x[i];
                }
                symmetric_times(v, b, &mut s.change);
                for i in 0..q {
                    x[i] += s.change[i];
                }
                row += 1;
            }
        }
    }

    /// The second moments of every strip, to the columns that have it.
    #[inline(always)]
    fn second_moments(&self, strips: &[Strip<'_>], s: &mut Scratch, out: &mut LatentMoments) {
        let (q, p) = (self.at.w.n_columns(), self.complete.len());
        let triangle = packed::len(q);
        let pz = packed::padded_len(q + 1);
        s.moments.resize(BATCH * pz, 0.0);
        let mut row = 0;
        for (batch, strips) in strips.chunks(BATCH).enumerate() {
            for (k, strip) in strips.iter().enumerate() {
                let v = &s.g[(batch * BATCH + k) * p..][..p];
                let m = strip.rows.len() as f64;
                let moment = &mut s.moments[k * pz..][..pz];
                for i in 0..triangle {
                    moment[i] = m * v[i];
                }
                moment[triangle..].fill(0.0);
                *posterior_trace(out) += m * (0..q).map(|i| v[packed::len(i + 1) - 1]).sum::<f64>();
                for _ in strip.rows {
                    let z = &s.z[row * (q + 1)..][..=q];
                    out.scores_squared += dot(&z[..q], &z[..q]);
                    packed::add_outer(moment, z, 1.0);
                    row += 1;
                }
            }
            self.share(strips, s, out);
        }
    }

    /// Adds the moments of a batch of strips to the columns that have them: to all, less those that
    /// miss them, column by column, so that a column's sum stays in registers over the batch; or, for
    /// strips with few columns, to these.
    #[inline(always)]
    fn share(&self, strips: &[Strip<'_>], s: &mut Scratch, out: &mut LatentMoments) {
        let (d, pz) = (self.at.w.n_rows(), packed::padded_len(self.at.w.n_columns() + 1));
        // Bit k of a column is set if strip k misses it.
        s.missing.clear();
        s.missing.resize(d, 0);
        for (k, strip) in strips.iter().enumerate() {
            let moment = &s.moments[k * pz..][..pz];
            packed::add(&mut out.latent, moment);
            if 2 * strip.gaps.len() <= d {
                packed::add(&mut out.common, moment);
                for &j in strip.gaps {
                    s.missing[j as usize] |= 1 << k;
                }
            } else {
                for_observed(strip.gaps, d, |j| packed::add(out.by_column.row_mut(j), moment));
            }
        }
        for (j, &missing) in s.missing.iter().enumerate().filter(|(_, bits)| **bits != 0) {
            let (mut bits, mut n, mut starts) = (missing, 0, [0; BATCH]);
            while bits != 0 {
                starts[n] = bits.trailing_zeros() as usize * pz;
                bits &= bits - 1;
                n += 1;
            }
            add_rows(out.by_column.row_mut(j), -1.0, &s.moments, &starts[..n]);
        }
    }

    /// Squared residuals and squared fits, per column, over the observed cells.
    #[inline(always)]
    fn residuals(&self, strips: &[Strip<'_>], y: &[f64], fit: &mut [f64], out: &mut LatentMoments) {
        let d = self.at.w.n_rows();
        let Errors::Residual { squares, fitted, .. } = &mut out.errors else {
            unreachable!("an E-step fills residual moments")
        };
        let (squares, fitted) = (&mut squares[..d], &mut fitted[..d]);
        let gaps = strips.iter().flat_map(|s| s.rows.iter().map(move |_| s.gaps));
        for ((gaps, y), fit) in gaps.zip(y.chunks_exact(d)).zip(fit.chunks_exact_mut(d)) {
            for &j in gaps {
                fit[j as usize] = 0.0;
            }
            for j in 0..d {
                let r = y[j] - fit[j];
                squares[j] += r * r;
                fitted[j] += fit[j] * fit[j];
            }
        }
    }
}

/// `fit ← y − fit`, 0 at the gaps.
#[inline(always)]
fn misfit(strips: &[Strip<'_>], y: &[f64], fit: &mut [f64]) {
    fit.iter_mut().zip(y).for_each(|(fit, y)| *fit = y - *fit);
    let gaps: Vec<&[u32]> = strips.iter().flat_map(|s| s.rows.iter().map(|_| s.gaps)).collect();
    let d = y.len() / gaps.len();
    for (gaps, fit) in gaps.iter().zip(fit.chunks_exact_mut(d)) {
        for &j in *gaps {
            fit[j as usize] = 0.0;
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

/// `sum ← sum + sign Σ rows`, for padded rows that begin at `starts` in `table`. A few registers of
/// the sum are carried over all rows at a time: enough independent additions to hide their latency.
#[inline(always)]
fn add_rows(sum: &mut [f64], sign: f64, table: &[f64], starts: &[usize]) {
    const WIDE: usize = 4;
    let registers = sum.len() / LANES;
    let mut c = 0;
    while c + WIDE <= registers {
        add_registers::<WIDE>(sum, sign, table, starts, c * LANES);
        c += WIDE;
    }
    while c < registers {
        add_registers::<1>(sum, sign, table, starts, c * LANES);
        c += 1;
    }
}

#[inline(always)]
fn add_registers<const R: usize>(sum: &mut [f64], sign: f64, table: &[f64], starts: &[usize], at: usize) {
    let sum = &mut sum[at..][..R * LANES];
    let mut carried = [[0.0; LANES]; R];
    for (carried, sum) in carried.iter_mut().zip(sum.chunks_exact(LANES)) {
        carried.copy_from_slice(sum);
    }
    for &start in starts {
        let row = &table[start + at..][..R * LANES];
        for r in 0..R {
            for l in 0..LANES {
                carried[r][l] = sign.mul_add(row[r * LANES + l], carried[r][l]);
            }
        }
    }
    for (carried, sum) in carried.iter().zip(sum.chunks_exact_mut(LANES)) {
        sum.copy_from_slice(carried);
    }
}

/// Calls `visit` with every column that is not among the (rising) gaps.
#[inline(always)]
fn for_observed(gaps: &[u32], d: usize, mut visit: impl FnMut(usize)) {
    let mut start = 0;
    for &gap in gaps {
        (start..gap as usize).for_each(&mut visit);
        start = gap as usize + 1;
    }
    (start..d).for_each(visit);
}

/// `out = A b` for a packed symmetric matrix.
#[inline(always)]
fn symmetric_times(a: &[f64], b: &[f64], out: &mut [f64]) {
    let mut row_start = 0;
    for i in 0..b.len() {
        let row = &a[row_start..][..=i];
        let bi = b[i];
        let mut sum = row[i] * bi;
        for j in 0..i {
            sum += row[j] * b[j];
            out[j] += row[j] * bi;
        }
        out[i] = sum;
        row_start += i + 1;
    }
}
