//! The predictive density of structured variational Bayes [M 2.3.6]: given x, a row is multivariate
//! Student, loadings, mean and noise integrated out exactly; x is integrated out by importance sampling.

use super::uncertainty::{Estimate, Uncertainty, log_mean};
use super::{Density, LinearGaussian};
use crate::linalg::{Cholesky, dot};
use crate::parallel;
use crate::{Dataset, Matrix};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use statrs::function::gamma::ln_gamma;
use std::f64::consts::PI;

/// The proposal is a little wider than the posterior of x it follows, so that no weight is far above the
/// others.
const WIDER: f64 = 1.1;

/// A model whose loadings and mean are known in units of a noise that all columns share.
pub(super) struct Student<'a> {
    model: &'a LinearGaussian,
    uncertainty: &'a Uncertainty,
    psi: Vec<f64>,
}

impl<'a> Student<'a> {
    /// `None` unless the posterior has that form.
    pub(super) fn of(model: &'a LinearGaussian) -> Option<Self> {
        let uncertainty = model.uncertainty().filter(|u| u.coupled && u.shape.len() == 1)?;
        Some(Self { model, uncertainty, psi: model.noise_variances() })
    }

    /// `ln S(t_O | x)`: ν = 2a degrees of freedom, location `v̂_jᵀ z`, scale `ψ_j (1 + zᵀ E_j z)`, z = (x, 1).
    pub(super) fn log_density_given(&self, row: &[f64], observed: &[usize], x: &[f64]) -> f64 {
        let (w, mean, q) = (self.model.loadings(), self.model.mean(), x.len());
        let nu = 2.0 * self.uncertainty.shape[0];
        let width = observed.len() as f64;
        let (mut ln_scale, mut distance) = (0.0, 0.0);
        for &j in observed {
            let e = self.uncertainty.of_column(j);
            let mut spread = 1.0 + e[(q, q)];
            for i in 0..q {
                spread += x[i] * (dot(&e.row(i)[..q], x) + 2.0 * e[(i, q)]);
            }
            let scale = self.psi[j] * spread;
            let r = row[j] - mean[j] - dot(w.row(j), x);
            ln_scale += (nu * PI * scale).ln();
            distance += r * r / scale;
        }
        ln_gamma(0.5 * (nu + width))
            - ln_gamma(0.5 * nu)
            - 0.5 * ln_scale
            - 0.5 * (nu + width) * (distance / nu).ln_1p()
    }

    /// `ln ∫ S(t_O | x) N(x | 0, I) dx` of every row, from `n` draws each. Row i has its own stream.
    pub(super) fn log_densities(&self, data: &Dataset, n: usize, seed: u64) -> Vec<Estimate> {
        let (w, mean, q) = (self.model.loadings(), self.model.mean(), self.model.n_components());
        let of_pattern = |observed: &[usize]| {
            // The posterior of x at the average scale.
            let weight = |j: usize| 1.0 / (self.psi[j] * (1.0 + self.uncertainty.of_column(j).trace()));
            let mut g = Matrix::identity(q);
            for &j in observed {
                for a in 0..q {
                    for b in 0..q {
                        g[(a, b)] += weight(j) * w[(j, a)] * w[(j, b)];
                    }
                }
            }
            let factor = Cholesky::new(&g).expect("identity plus squares is positive definite");
            (factor, observed.iter().map(|&j| weight(j)).collect::<Vec<_>>())
        };
        let of_row = |i: usize, observed: &[usize], factor: &Cholesky, weights: &[f64]| {
            let row = data.row(i);
            if observed.is_empty() {
                return Estimate { value: 0.0, standard_error: 0.0 };
            }
            let mut center = vec![0.0; q];
            for (&j, weight) in observed.iter().zip(weights) {
                let r = weight * (row[j] - mean[j]);
                center.iter_mut().zip(w.row(j)).for_each(|(c, w)| *c += r * w);
            }
            factor.solve(&mut center);
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(i as u64);
            let terms: Vec<f64> = (0..n)
                .map(|_| {
                    let mut x: Vec<f64> = (0..q).map(|_| StandardNormal.sample(&mut rng)).collect();
                    let e2 = dot(&x, &x);
                    factor.solve_upper(&mut x);
                    x.iter_mut().zip(&center).for_each(|(x, c)| *x = c + WIDER * *x);
                    // ln N(x | 0, I) − ln g(x); the 2π cancel.
                    let ratio = 0.5 * (e2 - dot(&x, &x)) - 0.5 * factor.ln_det() + q as f64 * WIDER.ln();
                    self.log_density_given(row, observed, &x) + ratio
                })
                .collect();
            log_mean(&terms)
        };
        let by_pattern: Vec<Vec<(usize, Estimate)>> = parallel::map(data.n_patterns(), |p| {
            let pattern = data.pattern(p);
            let observed = pattern.observed();
            let (factor, weights) = of_pattern(&observed);
            parallel::map(pattern.rows.len(), |k| {
                let i = pattern.rows[k];
                (i, of_row(i, &observed, &factor, &weights))
            })
        });
        let mut out = vec![Estimate { value: 0.0, standard_error: 0.0 }; data.n_rows()];
        by_pattern.into_iter().flatten().for_each(|(i, estimate)| out[i] = estimate);
        out
    }
}

impl LinearGaussian {
    /// Whether loadings and mean are known in units of one noise, as by
    /// [`Structured`](crate::infer::Structured): its predictive density is then a mixture of Student densities, in which
    /// the parameters are integrated out exactly.
    pub fn has_student_predictive(&self) -> bool {
        Student::of(self).is_some()
    }

    /// Covariance of a new row with the parameters' uncertainty counted ([M 2.2.8], [M 2.3.6]):
    /// `W Wᵀ + diag(⟨σ²⟩ + tr cov(v_j))`; [`covariance`](Self::covariance) where they are known.
    pub fn predictive_covariance(&self) -> Matrix {
        let mut c = self.covariance();
        if let Some(u) = self.uncertainty() {
            for j in 0..self.n_columns() {
                let added = u.noise_factor(j) - 1.0 + u.spread_factor(j) * u.of_column(j).trace();
                c[(j, j)] += self.noise().variance(j) * added;
            }
        }
        c
    }
}
