//! Moves along which no fitted value changes (generalized Gibbs, Liu & Sabatti 2000).
//!
//! `x → A x + a, W → W A⁻¹, μ → μ − W A⁻¹ a` leaves `W x + μ` where it is: only the priors decide where on
//! such an orbit the chain should stand. X and (W, μ), each drawn given the other, walk along it in steps
//! of 1/√N; here every direction of it is drawn from its own conditional, for the price of q × q matrices.

use super::random::{drawn_relevance, gamma, generalized_inverse_gaussian, standard_normal, von_mises};
use super::sweep::{Relevance, Sampler};
use super::table::Parameters;
use crate::Matrix;
use crate::linalg::{dot, packed};
use rand::Rng;

/// Rounds over all directions of A.
const ROUNDS: usize = 3;

/// What two components become of themselves and each other.
type Pair = [[f64; 2]; 2];

impl Sampler<'_> {
    /// ```text
    /// a ~ N(P⁻¹r, P⁻¹)      P = N I + κ_μ WᵀΨ⁻¹W      r = κ_μ WᵀΨ⁻¹(μ − center) − Σ x
    /// ```
    pub(super) fn translate(&self, at: &mut Parameters, z: &mut Matrix, rng: &mut impl Rng) {
        let q = at.w.n_columns();
        let mut precision = vec![0.0; packed::padded_len(q)];
        for i in 0..q {
            precision[packed::len(i + 1) - 1] = z.n_rows() as f64;
        }
        let mut a = vec![0.0; q];
        z.rows().for_each(|z| a.iter_mut().zip(z).for_each(|(a, x)| *a -= x));
        for (k, w) in at.w.rows().enumerate() {
            let weight = self.beliefs.kappa_mu / at.noise[k];
            packed::add_outer(&mut precision, w, weight);
            let offset = weight * (at.mean[k] - self.beliefs.center[k]);
            a.iter_mut().zip(w).for_each(|(a, w)| *a += offset * w);
        }
        assert!(packed::cholesky(&mut precision, q), "a positive diagonal plus a sum of squares");
        packed::solve_lower(&precision, &mut a);
        for a in &mut a {
            *a += standard_normal(rng);
        }
        packed::solve_upper(&precision, &mut a);
        for n in 0..z.n_rows() {
            z.row_mut(n)[..q].iter_mut().zip(&a).for_each(|(x, a)| *x += a);
        }
        at.mean.iter_mut().zip(at.w.rows()).for_each(|(m, w)| *m -= dot(w, &a));
    }

    /// A, as a product of steps that each change one or two components.
    pub(super) fn mix(&self, at: &mut Parameters, z: &mut Matrix, rng: &mut impl Rng) {
        let q = at.w.n_columns();
        let x = Matrix::from_fn(z.n_rows(), q, |n, i| z[(n, i)]);
        let mut weighted = at.w.clone();
        weighted.scale_rows(&at.noise.iter().map(|s| 1.0 / s).collect::<Vec<_>>());
        let mut orbit = Orbit {
            a: Matrix::identity(q),
            b: Matrix::identity(q),
            s: x.t_dot(&x),
            h: at.w.t_dot(&weighted),
        };
        for _ in 0..ROUNDS {
            for i in 0..q {
                self.stretch(&mut orbit, &mut at.alpha[i], i, z.n_rows(), rng);
            }
            for i in 0..q {
                for j in (0..q).filter(|j| *j != i) {
                    if j < i {
                        orbit.turn(i, j, at.alpha[i], at.alpha[j], rng);
                    }
                    orbit.shear(i, j, at.alpha[j], rng);
                }
            }
        }
        let x = x.dot_t(&orbit.a);
        (0..z.n_rows()).for_each(|n| z.row_mut(n)[..q].copy_from_slice(x.row(n)));
        at.w = at.w.dot_t(&orbit.b);
    }

    /// `xᵢ → c xᵢ, wᵢ → wᵢ/c`, with ARD `αᵢ → c² αᵢ` along:
    /// ```text
    /// ARD:         c² ~ G(N/2 + a, Sᵢᵢ/2 + b αᵢ), then αᵢ ~ G(a + d/2, b + Hᵢᵢ/2)
    /// fixed κ₀:    c² ~ GIG((N − d)/2, Sᵢᵢ, κ₀ Hᵢᵢ)
    /// ```
    fn stretch(&self, orbit: &mut Orbit, alpha: &mut f64, i: usize, n: usize, rng: &mut impl Rng) {
        let (n, d) = (n as f64, self.table.n_columns() as f64);
        let (s, h) = (orbit.s[(i, i)], orbit.h[(i, i)]);
        match self.beliefs.relevance {
            Relevance::Fixed(kappa) => {
                let c = generalized_inverse_gaussian(0.5 * (n - d), s, kappa * h, rng).sqrt();
                orbit.scale(i, c);
            }
            Relevance::Ard { shape, rate } => {
                let c = gamma(0.5 * n + shape, 0.5 * s + rate * *alpha, rng).sqrt();
                orbit.scale(i, c);
                *alpha = drawn_relevance(shape + 0.5 * d, rate + 0.5 * orbit.h[(i, i)], rng);
            }
        }
    }
}

/// Where the chain stands on its orbit.
struct Orbit {
    /// A, and its inverse transposed.
    a: Matrix,
    b: Matrix,
    /// `S = Σ x xᵀ` and `H = WᵀΨ⁻¹W`, as A has changed them.
    s: Matrix,
    h: Matrix,
}

impl Orbit {
    fn scale(&mut self, i: usize, c: f64) {
        for k in 0..self.a.n_rows() {
            self.a[(i, k)] *= c;
            self.b[(i, k)] /= c;
            self.s[(i, k)] *= c;
            self.h[(i, k)] /= c;
        }
        for k in 0..self.a.n_rows() {
            self.s[(k, i)] *= c;
            self.h[(k, i)] /= c;
        }
    }

    /// Components i and j rotated by θ: x stays standard normal, and
    /// ```text
    /// 2θ ~ von Mises, ∝ exp(−¼ (αᵢ − αⱼ) [(Hᵢᵢ − Hⱼⱼ) cos 2θ + 2 Hᵢⱼ sin 2θ])      uniform if αᵢ = αⱼ
    /// ```
    fn turn(&mut self, i: usize, j: usize, alpha_i: f64, alpha_j: f64, rng: &mut impl Rng) {
        let f = -0.25 * (alpha_i - alpha_j);
        let theta = 0.5 * von_mises(f * (self.h[(i, i)] - self.h[(j, j)]), f * 2.0 * self.h[(i, j)], rng);
        let (sin, cos) = theta.sin_cos();
        let turn = [[cos, sin], [-sin, cos]];
        self.change((i, j), turn, turn);
    }

    /// `xᵢ → xᵢ + c xⱼ, wⱼ → wⱼ − c wᵢ`:
    /// ```text
    /// c ~ N(r/p, 1/p)      p = Sⱼⱼ + αⱼ Hᵢᵢ      r = αⱼ Hᵢⱼ − Sᵢⱼ
    /// ```
    fn shear(&mut self, i: usize, j: usize, alpha_j: f64, rng: &mut impl Rng) {
        let p = self.s[(j, j)] + alpha_j * self.h[(i, i)];
        let c = (alpha_j * self.h[(i, j)] - self.s[(i, j)]) / p + standard_normal(rng) / p.sqrt();
        self.change((i, j), [[1.0, c], [0.0, 1.0]], [[1.0, 0.0], [-c, 1.0]]);
    }

    /// `x → T x` and `W → W T⁻¹` in two components; the second argument is `T⁻¹` transposed.
    fn change(&mut self, at: (usize, usize), x: Pair, w: Pair) {
        combine_rows(&mut self.a, at, x);
        combine_rows(&mut self.b, at, w);
        combine_rows(&mut self.s, at, x);
        combine_columns(&mut self.s, at, x);
        combine_rows(&mut self.h, at, w);
        combine_columns(&mut self.h, at, w);
    }
}

fn combine_rows(m: &mut Matrix, (i, j): (usize, usize), t: Pair) {
    for k in 0..m.n_columns() {
        let (a, b) = (m[(i, k)], m[(j, k)]);
        m[(i, k)] = t[0][0] * a + t[0][1] * b;
        m[(j, k)] = t[1][0] * a + t[1][1] * b;
    }
}

fn combine_columns(m: &mut Matrix, (i, j): (usize, usize), t: Pair) {
    for k in 0..m.n_rows() {
        let (a, b) = (m[(k, i)], m[(k, j)]);
        m[(k, i)] = t[0][0] * a + t[0][1] * b;
        m[(k, j)] = t[1][0] * a + t[1][1] * b;
    }
}
