use super::linear_gaussian::latent_precision;
use super::scores::SignalInverse;
use super::{Completed, Given, LinearGaussian, RowDistance};
use crate::Matrix;
use crate::linalg::{Cholesky, dot};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// A [`LinearGaussian`] with a fixed set of observed columns: `G_O = I + W_Oᵀ Ψ_O⁻¹ W_O` is
/// factorized once, then asked row by row.
///
/// ```text
/// x | t_O ~ N(x̂, V)        V = G⁻¹      x̂ = V W_Oᵀ Ψ_O⁻¹ (t_O − μ_O)            [M 1.5.1]
/// t_m | t_O ~ N(μ_m + W_m x̂,  W_m V W_mᵀ + Ψ_m)                                 [M 1.5.4]
/// ```
///
/// Covariances are those of a row of scale u = 1, where rows have [heavier
/// tails](LinearGaussian::with_tail_degrees_of_freedom); answers to single rows know theirs.
#[derive(Debug, Clone)]
pub struct Conditional<'a> {
    model: &'a LinearGaussian,
    observed: Vec<usize>,
    gaps: Vec<usize>,
    factor: Cholesky,
    /// `ln |C_OO| + |O| ln 2π`
    ln_volume: f64,
}

impl<'a> Conditional<'a> {
    pub(crate) fn new(model: &'a LinearGaussian, observed: Vec<usize>) -> Self {
        let mut present = observed.iter().copied().peekable();
        let d = model.mean().len();
        let gaps: Vec<usize> = (0..d).filter(|j| present.next_if_eq(j).is_none()).collect();
        assert_eq!(gaps.len() + observed.len(), d, "observed columns are ascending and of the model");
        let factor = latent_precision(model.loadings(), model.noise(), &observed);
        // ln |C_OO| = Σ ln ψⱼ + ln |G|
        let ln_volume = factor.ln_det()
            + observed
                .iter()
                .map(|&j| (2.0 * std::f64::consts::PI * model.noise().variance(j)).ln())
                .sum::<f64>();
        Self { model, observed, gaps, factor, ln_volume }
    }

    /// Columns taken as observed.
    pub fn observed(&self) -> &[usize] {
        &self.observed
    }

    /// Columns taken as missing.
    pub fn gaps(&self) -> &[usize] {
        &self.gaps
    }

    /// `x̂`, the posterior mean of the scores of a row; cells at the gaps are not read.
    pub fn posterior_mean(&self, row: &[f64]) -> Vec<f64> {
        let mut x = self.weighted_projection(row);
        self.factor.solve(&mut x);
        x
    }

    /// `V`, the posterior covariance of the scores: the same for every row.
    pub fn posterior_covariance(&self) -> Matrix {
        self.factor.inverse()
    }

    /// Covariance of the least-squares ([`Bartlett`](super::Coordinates::Bartlett)) scores given x,
    /// `(W_Oᵀ Ψ_O⁻¹ W_O)⁺`: the same for every row.
    pub fn least_squares_covariance(&self) -> Matrix {
        SignalInverse::new(&self.factor).into_matrix()
    }

    /// Covariance of the gaps given the observed cells, in the order of [`gaps`](Self::gaps):
    /// `W_m V W_mᵀ`, plus `Ψ_m` if `with_noise` (intervals for data values need the noise).
    pub fn gap_covariance(&self, with_noise: bool) -> Matrix {
        let half = self.half_signal();
        let mut c = half.dot_t(&half);
        if with_noise {
            for (k, &j) in self.gaps.iter().enumerate() {
                c[(k, k)] += self.model.noise().variance(j);
            }
        }
        c
    }

    /// Squared Mahalanobis distance of the observed part, free of cancellation [M 1.3.2]:
    /// `Δ = (y − W x̂)ᵀ Ψ⁻¹ (y − W x̂) + ‖x̂‖²`.
    pub fn mahalanobis(&self, row: &[f64]) -> f64 {
        let x = self.posterior_mean(row);
        let (w, mean, noise) = (self.model.loadings(), self.model.mean(), self.model.noise());
        let mut sum: f64 = x.iter().map(|v| v * v).sum();
        for &j in &self.observed {
            let r = row[j] - mean[j] - dot(w.row(j), &x);
            sum += r * r / noise.variance(j);
        }
        sum
    }

    /// [`mahalanobis`](Self::mahalanobis) where the scale of a row depends on it.
    fn distance(&self, row: &[f64]) -> f64 {
        if self.model.tails.is_gaussian() { 0.0 } else { self.mahalanobis(row) }
    }

    pub(crate) fn factor(&self) -> &Cholesky {
        &self.factor
    }

    /// `W_Oᵀ Ψ_O⁻¹ (t_O − μ_O)`
    pub(crate) fn weighted_projection(&self, row: &[f64]) -> Vec<f64> {
        let (w, mean, noise) = (self.model.loadings(), self.model.mean(), self.model.noise());
        let mut b = vec![0.0; w.n_columns()];
        for &j in &self.observed {
            let f = (row[j] - mean[j]) / noise.variance(j);
            for (b, w) in b.iter_mut().zip(w.row(j)) {
                *b += f * w;
            }
        }
        b
    }

    /// Rows `L⁻¹ w_j` for the gaps: with `G = L Lᵀ`, `W_m V W_mᵀ` is its product with its own
    /// transpose.
    fn half_signal(&self) -> Matrix {
        let w = self.model.loadings();
        let mut half = Matrix::from_fn(self.gaps.len(), w.n_columns(), |k, i| w[(self.gaps[k], i)]);
        for k in 0..half.n_rows() {
            self.factor.solve_lower(half.row_mut(k));
        }
        half
    }
}

impl Given for Conditional<'_> {
    fn log_density(&self, row: &[f64]) -> f64 {
        if self.observed.is_empty() {
            return 0.0;
        }
        let (n_observed, squared) = (self.observed.len(), self.mahalanobis(row));
        self.model.tails.log_density(&RowDistance { n_observed, ln_volume: self.ln_volume, squared })
    }

    fn complete_rows(&self, rows: &[&[f64]]) -> Vec<Completed> {
        let half = self.half_signal();
        let (w, mean, noise) = (self.model.loadings(), self.model.mean(), self.model.noise());
        let variance: Vec<f64> = (0..self.gaps.len())
            .map(|k| dot(half.row(k), half.row(k)) + noise.variance(self.gaps[k]))
            .collect();
        rows.iter()
            .map(|row| {
                let x = self.posterior_mean(row);
                let mean = self.gaps.iter().map(|&j| mean[j] + dot(w.row(j), &x)).collect();
                let spread = self.model.tails.spread(self.observed.len(), self.distance(row));
                Completed { mean, variance: variance.iter().map(|v| spread * v).collect() }
            })
            .collect()
    }

    fn draw(&self, row: &[f64], rng: &mut dyn Rng) -> Vec<f64> {
        let stretch = self.model.tails.draw_deviation(self.observed.len(), self.distance(row), rng);
        // x ~ N(x̂, G⁻¹) once per row, then the gaps: a joint draw, never one per cell.
        let mut e: Vec<f64> = (0..self.model.n_components()).map(|_| StandardNormal.sample(rng)).collect();
        self.factor.solve_upper(&mut e);
        let x: Vec<f64> = self.posterior_mean(row).iter().zip(&e).map(|(m, e)| m + stretch * e).collect();
        let (w, mean, noise) = (self.model.loadings(), self.model.mean(), self.model.noise());
        let mut filled = row.to_vec();
        for &j in &self.gaps {
            let e: f64 = StandardNormal.sample(rng);
            filled[j] = mean[j] + dot(w.row(j), &x) + stretch * noise.variance(j).sqrt() * e;
        }
        filled
    }
}
