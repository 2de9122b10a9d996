//! One sweep of the sampler: every conditional in turn [M 2.5.2], and moves along the directions in
//! which the likelihood does not change.

use super::random::{drawn_relevance, scaled_inverse_chi_squared, standard_normal};
use super::table::{Parameters, Table};
use crate::Matrix;
use crate::data::Pattern;
use crate::infer::share::{BATCH, share};
use crate::linalg::{add_gram_lower, dot, gemm, packed};
use crate::model::latent::{Block, Keep, Latent, Units, zero_gaps};
use faer::MatMut;
use rand::Rng;
use std::f64::consts::PI;

/// Rows whose residuals are taken together.
const BLOCK_ROWS: usize = 256;

/// Prior in the table's units:
/// ```text
/// σ_k² ~ χ⁻²(ν₀, s₀²)   w_k | σ_k² ~ N(0, σ_k² diag(1/α))   μ_k | σ_k² ~ N(center_k, σ_k²/κ_μ)   αᵢ ~ G(a, b)
/// ```
#[derive(Debug, Clone)]
pub(super) struct Beliefs {
    pub(super) nu0: f64,
    pub(super) s0_squared: f64,
    pub(super) kappa_mu: f64,
    pub(super) center: Vec<f64>,
    pub(super) relevance: Relevance,
}

/// The prior of α.
#[derive(Debug, Clone, Copy)]
pub(super) enum Relevance {
    Fixed(f64),
    Ard { shape: f64, rate: f64 },
}

/// What does not change over a chain.
pub(super) struct Sampler<'a> {
    pub(super) table: &'a Table,
    pub(super) beliefs: &'a Beliefs,
    /// Whether σ² is drawn with W and μ integrated out.
    pub(super) blocked: bool,
}

/// The conditional posterior of loadings and mean given the scores, `v_k | σ_k², X ~ N(v̂_k, σ_k² Λ_k⁻¹)` with
/// `v_k = (w_k, μ_k)`.
pub(super) struct Regression {
    /// Packed lower factors of Λ_k: one row for all columns of a complete table, else one per column.
    factors: Matrix,
    /// v̂, d × (q + 1).
    pub(super) v: Matrix,
    /// `D = diag(α, κ_μ)`.
    d: Vec<f64>,
}

impl Regression {
    pub(super) fn factor(&self, k: usize) -> &[f64] {
        self.factors.row(if self.factors.n_rows() == 1 { 0 } else { k })
    }

    /// `v_k ~ N(v̂_k, σ_k² Λ_k⁻¹)`
    fn draw(&self, at: &mut Parameters, rng: &mut impl Rng) {
        let q = at.w.n_columns();
        let mut e = vec![0.0; q + 1];
        for k in 0..at.mean.len() {
            let deviation = at.noise[k].sqrt();
            for e in &mut e {
                *e = deviation * standard_normal(rng);
            }
            packed::solve_upper(self.factor(k), &mut e);
            let v = self.v.row(k);
            at.w.row_mut(k).iter_mut().enumerate().for_each(|(i, w)| *w = v[i] + e[i]);
            at.mean[k] = v[q] + e[q];
        }
    }
}

/// ν and ν s² of a scaled inverse χ².
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ChiSquared {
    pub(super) nu: f64,
    pub(super) nu_times_scale: f64,
}

impl Sampler<'_> {
    /// X; moves along the invariances; σ²; (W, μ); α. Returns the scores, each row `(x, 1)`, and, if
    /// asked for, the log-likelihood of the parameters that came in, in the table's units.
    pub(super) fn sweep(
        &self,
        at: &mut Parameters,
        score: bool,
        rng: &mut impl Rng,
    ) -> (Matrix, Option<f64>) {
        let (mut z, log_likelihood) = self.draw_scores(at, score, rng);
        if !at.alpha.is_empty() {
            self.translate(at, &mut z, rng);
            self.mix(at, &mut z, rng);
        }
        let regression = self.regression(&z, &at.alpha);
        let squares = if self.blocked {
            self.squares(&z, &regression.v)
        } else {
            self.squares(&z, &stacked(&at.w, &at.mean))
        };
        let noise = if self.blocked {
            self.noise_blocked(&regression, &squares)
        } else {
            self.noise_unblocked(at, &squares)
        };
        let drawn = noise.iter().map(|n| scaled_inverse_chi_squared(n.nu, n.nu_times_scale, rng));
        at.noise = if self.table.isotropic {
            vec![drawn.last().expect("one variance"); self.table.n_columns()]
        } else {
            drawn.collect()
        };
        regression.draw(at, rng);
        if let Relevance::Ard { .. } = self.beliefs.relevance {
            let (shape, rates) = self.relevance(at);
            at.alpha = rates.iter().map(|rate| drawn_relevance(shape, *rate, rng)).collect();
        }
        (z, log_likelihood)
    }

    /// `x_n ~ N(J⁻¹h, J⁻¹)`: x̂ and L⁻¹ of `J = L Lᵀ` come from the kernels of the E-step.
    fn draw_scores(&self, at: &Parameters, score: bool, rng: &mut impl Rng) -> (Matrix, Option<f64>) {
        let (d, q) = (at.w.n_rows(), at.w.n_columns());
        let unscaled = vec![1.0; d];
        let units = Units { w: &at.w, psi: &at.noise, mean: &at.mean, inverse_scale: &unscaled, spread: &[] };
        let latent = Latent::new(&self.table.data, units, Keep::Root);
        let mut z = Vec::with_capacity(self.table.n_rows() * (q + 1));
        let mut log_likelihood = 0.0;
        let mut e = vec![0.0; q];
        latent.for_blocks(
            0..self.table.n_rows(),
            |_| true,
            |strips, block| {
                if score {
                    latent.fit(block);
                    log_likelihood += log_density(&at.noise, strips, block);
                }
                let p = latent.kept_len();
                let mut rows = block.z.chunks_exact(q + 1);
                for (k, strip) in strips.iter().enumerate() {
                    for x in rows.by_ref().take(strip.rows.len()) {
                        for e in &mut e {
                            *e = standard_normal(rng);
                        }
                        packed::upper_times(&block.kept[k * p..][..p], &mut e);
                        z.extend(x.iter().zip(&e).map(|(x, e)| x + e));
                        z.push(1.0);
                    }
                }
            },
        );
        let z = Matrix::from_vec(self.table.n_rows(), q + 1, z).expect("q + 1 numbers per row");
        (z, score.then_some(log_likelihood))
    }

    /// `Λ_k = D + Σ_{n∈O^k} z zᵀ` and `v̂_k = Λ_k⁻¹ (D p_k + Σ_{n∈O^k} z t_nk)`, p_k = (0, center_k).
    pub(super) fn regression(&self, z: &Matrix, alpha: &[f64]) -> Regression {
        let (n_columns, width) = (self.table.n_columns(), z.n_columns());
        let d: Vec<f64> = alpha.iter().copied().chain([self.beliefs.kappa_mu]).collect();
        let mut factors = self.second_moments(z);
        for k in 0..factors.n_rows() {
            let factor = factors.row_mut(k);
            for (i, d) in d.iter().enumerate() {
                factor[packed::len(i + 1) - 1] += d;
            }
            if !packed::cholesky(factor, width) {
                // What was added to all columns and taken from this one has left its rounding.
                self.second_moment_of(k, z, &d, factor);
                assert!(packed::cholesky(factor, width), "a positive diagonal plus a sum of squares");
            }
        }
        let mut v = self.table.cells.t_dot(z);
        let mut regression = Regression { factors, v: Matrix::zeros(0, 0), d };
        for k in 0..n_columns {
            let v = v.row_mut(k);
            v[width - 1] += self.beliefs.kappa_mu * self.beliefs.center[k];
            packed::solve_lower(regression.factor(k), v);
            packed::solve_upper(regression.factor(k), v);
        }
        regression.v = v;
        regression
    }

    /// `Σ_{n∈O^k} z zᵀ` of every column; of a complete table one row for all.
    fn second_moments(&self, z: &Matrix) -> Matrix {
        let width = z.n_columns();
        let p = packed::padded_len(width);
        if self.table.data.is_complete() {
            let mut gram = Matrix::zeros(width, width);
            add_gram_lower(gram.view_mut(), z.view());
            let mut packed = Matrix::zeros(1, p);
            let lower = (0..width).flat_map(|i| gram.row(i)[..=i].iter());
            packed.row_mut(0).iter_mut().zip(lower).for_each(|(p, g)| *p = *g);
            return packed;
        }
        let mut common = vec![0.0; p];
        let mut by_column = Matrix::zeros(self.table.n_columns(), p);
        pulp::Arch::new().dispatch(Share {
            table: self.table,
            z,
            common: &mut common,
            by_column: &mut by_column,
        });
        for k in 0..by_column.n_rows() {
            by_column.row_mut(k).iter_mut().zip(&common).for_each(|(m, c)| *m += c);
        }
        by_column
    }

    /// `Λ_k` from the rows that have column k alone.
    fn second_moment_of(&self, k: usize, z: &Matrix, d: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (i, d) in d.iter().enumerate() {
            out[packed::len(i + 1) - 1] = *d;
        }
        let rows = z.rows().enumerate().filter(|(n, _)| !self.table.data.row(*n)[k].is_nan());
        rows.for_each(|(_, z)| packed::add_outer(out, z, 1.0));
    }

    /// `Σ_{n∈O^k} (t_nk − v_kᵀz_n)²` of every column.
    pub(super) fn squares(&self, z: &Matrix, v: &Matrix) -> Vec<f64> {
        let (d, n) = (self.table.n_columns(), z.n_rows());
        let arch = pulp::Arch::new();
        let mut squares = vec![0.0; d];
        let mut fit = vec![0.0; BLOCK_ROWS.min(n) * d];
        for start in (0..n).step_by(BLOCK_ROWS) {
            let rows = start..(start + BLOCK_ROWS).min(n);
            let fit = &mut fit[..rows.len() * d];
            let z = z.view().subrows(start, rows.len());
            gemm(MatMut::from_row_major_slice_mut(fit, rows.len(), d), false, z, v.view().transpose());
            let strips: Vec<Pattern<'_>> = self.table.data.strips(rows.clone(), BLOCK_ROWS).collect();
            zero_gaps(&strips, fit);
            let cells = &self.table.cells.as_slice()[start * d..rows.end * d];
            arch.dispatch(Residuals { cells, fit, squares: &mut squares });
        }
        squares
    }

    /// σ² with W and μ integrated out: `SS_k` is the squares at v̂ plus `(v̂ − p)ᵀ D (v̂ − p)`.
    pub(super) fn noise_blocked(&self, regression: &Regression, squares: &[f64]) -> Vec<ChiSquared> {
        let penalty = |k: usize| self.penalty(regression.v.row(k), &regression.d, k);
        self.noise(0, (0..squares.len()).map(|k| squares[k] + penalty(k)).collect())
    }

    /// σ² given W and μ, whose own prior holds it, too.
    pub(super) fn noise_unblocked(&self, at: &Parameters, squares: &[f64]) -> Vec<ChiSquared> {
        let d: Vec<f64> = at.alpha.iter().copied().chain([self.beliefs.kappa_mu]).collect();
        let v = stacked(&at.w, &at.mean);
        let sums = (0..squares.len()).map(|k| squares[k] + self.penalty(v.row(k), &d, k)).collect();
        self.noise(d.len(), sums)
    }

    /// `(v − p)ᵀ D (v − p)` of column k.
    fn penalty(&self, v: &[f64], d: &[f64], k: usize) -> f64 {
        let last = v.len() - 1;
        let loadings: f64 = v[..last].iter().zip(d).map(|(v, d)| d * v * v).sum();
        loadings + d[last] * (v[last] - self.beliefs.center[k]).powi(2)
    }

    /// From the sum of squares of every column and what each counts beside its cells.
    fn noise(&self, beside_cells: usize, sums: Vec<f64>) -> Vec<ChiSquared> {
        let Beliefs { nu0, s0_squared, .. } = *self.beliefs;
        let of = |cells: usize, squares: f64| ChiSquared {
            nu: nu0 + cells as f64,
            nu_times_scale: nu0 * s0_squared + squares,
        };
        let cells = self.table.data.n_observed_by_column();
        if self.table.isotropic {
            vec![of(self.table.data.n_observed() + beside_cells * sums.len(), sums.iter().sum())]
        } else {
            cells.iter().zip(sums).map(|(n, s)| of(n + beside_cells, s)).collect()
        }
    }

    /// Shape and rates of `αᵢ ~ G(a + d/2, b + Σ_k w²ₖᵢ / 2σ_k²)`.
    pub(super) fn relevance(&self, at: &Parameters) -> (f64, Vec<f64>) {
        let Relevance::Ard { shape, rate } = self.beliefs.relevance else { return (0.0, Vec::new()) };
        let mut rates = vec![rate; at.w.n_columns()];
        for (w, s) in at.w.rows().zip(&at.noise) {
            rates.iter_mut().zip(w).for_each(|(r, w)| *r += 0.5 * w * w / s);
        }
        (shape + 0.5 * at.mean.len() as f64, rates)
    }
}

/// `(W, μ)`, d × (q + 1).
pub(super) fn stacked(w: &Matrix, mean: &[f64]) -> Matrix {
    let q = w.n_columns();
    Matrix::from_fn(mean.len(), q + 1, |k, i| if i < q { w[(k, i)] } else { mean[k] })
}

/// Log-density of a block's rows, once `W x̂` is known; as for
/// [`LinearGaussian`](crate::LinearGaussian), free of cancellation.
fn log_density(noise: &[f64], strips: &[Pattern<'_>], block: &mut Block) -> f64 {
    let d = noise.len();
    let volume: Vec<f64> = noise.iter().map(|s| (2.0 * PI * s).ln()).collect();
    let complete: f64 = volume.iter().sum();
    zero_gaps(strips, &mut block.fit);
    let mut sum = 0.0;
    for (strip, ln_det) in strips.iter().zip(&block.ln_det) {
        let missing: f64 = strip.gaps.iter().map(|&k| volume[k as usize]).sum();
        sum += strip.rows.len() as f64 * (ln_det + complete - missing);
    }
    let mut squares = vec![0.0; d];
    pulp::Arch::new().dispatch(Residuals { cells: &block.y, fit: &block.fit, squares: &mut squares });
    sum += squares.iter().zip(noise).map(|(r, s)| r / s).sum::<f64>();
    let width = block.z.len() / (block.y.len() / d);
    sum += block.z.chunks_exact(width).map(|z| dot(&z[..width - 1], &z[..width - 1])).sum::<f64>();
    -0.5 * sum
}

/// Squared residuals of rows, by column.
struct Residuals<'k> {
    cells: &'k [f64],
    fit: &'k [f64],
    squares: &'k mut [f64],
}

impl pulp::WithSimd for Residuals<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { cells, fit, squares } = self;
        let d = squares.len();
        for (cells, fit) in cells.chunks_exact(d).zip(fit.chunks_exact(d)) {
            for k in 0..d {
                let r = cells[k] - fit[k];
                squares[k] += r * r;
            }
        }
    }
}

/// Normal matrices of a table with gaps, compiled for the instruction set found at run time.
struct Share<'k> {
    table: &'k Table,
    z: &'k Matrix,
    common: &'k mut [f64],
    by_column: &'k mut Matrix,
}

impl pulp::WithSimd for Share<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { table, z, common, by_column } = self;
        let p = by_column.n_columns();
        let mut moments = vec![0.0; BATCH * p];
        let mut missing = Vec::new();
        let strips: Vec<Pattern<'_>> = table.data.strips(0..table.n_rows(), table.n_rows()).collect();
        let mut rows = z.rows();
        for strips in strips.chunks(BATCH) {
            moments.fill(0.0);
            for (moment, strip) in moments.chunks_exact_mut(p).zip(strips) {
                rows.by_ref().take(strip.rows.len()).for_each(|z| packed::add_outer(moment, z, 1.0));
            }
            share(strips, &moments, &mut missing, common, by_column);
        }
    }
}
