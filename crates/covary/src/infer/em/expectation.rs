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
use crate::{Dataset, Matrix};
use faer::{MatMut, MatRef};
use std::ops::Range;

/// Cells of a block: its working set stays in the second-level cache.
const BLOCK_CELLS: usize = 16 * 1024;
/// Pieces the rows are cut into, whatever the number of threads, so that the sums have one order.
const MAX_PIECES: usize = 16;
/// Above this, `G − Σ_{gaps}` would lose the digits of the identity in it; the observed columns are
/// added up instead.
const MAX_SUBTRACTED: f64 = 1e8;

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
    subtract: bool,
    block_rows: usize,
    arch: pulp::Arch,
}

/// Consecutive rows of one pattern inside a block.
struct Strip<'a> {
    gaps: &'a [u32],
    /// Rows of the table.
    rows: &'a [usize],
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
    moment: Vec<f64>,
}

impl<'a> Expectation<'a> {
    pub(super) fn new(data: &'a Dataset, frame: &'a Frame, at: &'a Parameters) -> Self {
        let (d, q) = (at.w.n_rows(), at.w.n_columns());
        let inverse: Vec<f64> = at.psi.iter().map(|v| 1.0 / v).collect();
        let mut weighted = at.w.clone();
        weighted.scale_rows(&inverse);
        let p = packed::len(q);
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
            subtract: largest < MAX_SUBTRACTED,
            block_rows: (BLOCK_CELLS / d).clamp(32, 256),
            arch: pulp::Arch::new(),
        }
    }

    /// Ranges of rows, in the order of the patterns, to be worked on independently.
    pub(super) fn pieces(&self) -> Vec<Range<usize>> {
        let n = self.data.n_rows();
        let blocks = n.div_ceil(self.block_rows);
        let piece = blocks.div_ceil(MAX_PIECES) * self.block_rows;
        (0..n).step_by(piece).map(|start| start..(start + piece).min(n)).collect()
    }

    /// Adds the moments of a range of rows to `out`.
    pub(super) fn add(&self, rows: Range<usize>, out: &mut LatentMoments) {
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
        s.g.resize(strips.len() * packed::len(q), 0.0);

        self.arch.dispatch(|| self.load(strips, &mut s.y));
        let y = MatRef::from_row_major_slice(&s.y, n, d);
        gemm(MatMut::from_row_major_slice_mut(&mut s.b, n, q), false, y, self.weighted.view());
        self.arch.dispatch(|| {
            self.latent_precisions(strips, &mut s.g);
            out.ln_det += self.invert(strips, &mut s.g, &mut s.lanes);
            self.posteriors(strips, s, out);
        });
        let z = MatRef::from_row_major_slice(&s.z, n, q + 1);
        let x = z.subcols(0, q);
        gemm(MatMut::from_row_major_slice_mut(&mut s.fit, n, d), false, x, self.at.w.view().transpose());
        self.arch.dispatch(|| self.residuals(strips, &s.y, &mut s.fit, out));
        let y = MatRef::from_row_major_slice(&s.y, n, d);
        gemm(out.cross.view_mut(), true, y.transpose(), z);
    }

    /// `y = (t − μ) / scale`, 0 at the gaps.
    #[inline(always)]
    fn load(&self, strips: &[Strip<'_>], y: &mut [f64]) {
        let d = self.at.w.n_rows();
        let (mean, inverse) = (&self.at.mean[..d], &self.frame.inverse[..d]);
        let rows = strips.iter().flat_map(|s| s.rows.iter().map(move |&i| (i, s.gaps)));
        for ((i, gaps), y) in rows.zip(y.chunks_exact_mut(d)) {
            let t = &self.data.row(i)[..d];
            for j in 0..d {
                y[j] = (t[j] - mean[j]) * inverse[j];
            }
            for &j in gaps {
                y[j as usize] = 0.0;
            }
        }
    }

    /// Packed `G = I + W_Oᵀ Ψ_O⁻¹ W_O` of every strip.
    #[inline(always)]
    fn latent_precisions(&self, strips: &[Strip<'_>], g: &mut [f64]) {
        let p = self.complete.len();
        if p == 0 {
            return;
        }
        let d = self.at.w.n_rows();
        for (strip, g) in strips.iter().zip(g.chunks_exact_mut(p)) {
            if strip.gaps.is_empty() || (self.subtract && 2 * strip.gaps.len() <= d) {
                g.copy_from_slice(&self.complete);
                for &j in strip.gaps {
                    let outer = &self.outer.row(j as usize)[..p];
                    for i in 0..p {
                        g[i] -= outer[i];
                    }
                }
            } else {
                g.copy_from_slice(&self.identity);
                for_observed(strip.gaps, d, |j| {
                    let outer = &self.outer.row(j)[..p];
                    for i in 0..p {
                        g[i] += outer[i];
                    }
                });
            }
        }
    }

    /// Replaces every `G` by `V = G⁻¹`; returns `Σ ln |G|` over the rows.
    #[inline(always)]
    fn invert(&self, strips: &[Strip<'_>], g: &mut [f64], lanes: &mut Vec<Lane>) -> f64 {
        let (q, p) = (self.at.w.n_columns(), self.complete.len());
        if p == 0 {
            return 0.0;
        }
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

    /// Posterior means of the rows into `z`, and the second moments of each strip to the columns
    /// that have it.
    #[inline(always)]
    fn posteriors(&self, strips: &[Strip<'_>], s: &mut Scratch, out: &mut LatentMoments) {
        let (d, q, p) = (self.at.w.n_rows(), self.at.w.n_columns(), self.complete.len());
        let Errors::Residual { posterior_trace, .. } = &mut out.errors else {
            unreachable!("an E-step fills residual moments")
        };
        let pz = p + q + 1;
        s.moment.resize(pz, 0.0);
        let mut at = 0;
        for (k, strip) in strips.iter().enumerate() {
            let v = &s.g[k * p..][..p];
            let m = strip.rows.len();
            let moment = &mut s.moment[..pz];
            for i in 0..p {
                moment[i] = m as f64 * v[i];
            }
            moment[p..].fill(0.0);
            *posterior_trace += m as f64 * (0..q).map(|i| v[packed::len(i + 1) - 1]).sum::<f64>();
            for _ in 0..m {
                let b = &s.b[at * q..][..q];
                let z = &mut s.z[at * (q + 1)..][..=q];
                symmetric_times(v, b, &mut z[..q]);
                z[q] = 1.0;
                out.scores_squared += dot(&z[..q], &z[..q]);
                packed::add_outer(moment, z, 1.0);
                at += 1;
            }
            add(&mut out.latent, moment);
            if 2 * strip.gaps.len() <= d {
                add(&mut out.common, moment);
                for &j in strip.gaps {
                    let column = &mut out.by_column.row_mut(j as usize)[..pz];
                    for i in 0..pz {
                        column[i] -= moment[i];
                    }
                }
            } else {
                for_observed(strip.gaps, d, |j| add(out.by_column.row_mut(j), moment));
            }
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

#[inline(always)]
fn add(a: &mut [f64], b: &[f64]) {
    let n = b.len();
    let a = &mut a[..n];
    for i in 0..n {
        a[i] += b[i];
    }
}
