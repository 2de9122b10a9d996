//! The M-step of all Gaussians of a mixture at once, with λ added to every variance or one covariance for all.
//!
//! ```text
//! N_k = Σ_n r_nk + ε      μ_k = Σ_n r_nk ⟨t⟩ / N_k      S_k = Σ_n r_nk ⟨(t − μ_k)(t − μ_k)ᵀ⟩ / N_k
//! C_k = S_k + λ I         or, shared,   C = Σ_k N_k S_k / Σ_k N_k + λ I
//! ```
//!
//! A model without components is known by the observed cells alone: its variances are sums over them.

use super::maximize::{covariance, from_eigenpairs};
use crate::infer::em::parameters::{Frame, Parameters};
use crate::infer::full_covariance::{Gaussian, Moments};
use crate::linalg::{eigen, positive_inverse};
use crate::parallel;
use crate::{Dataset, Error, Matrix};

/// ε: what a model without rows is divided by, as in scikit-learn.
const EPSILON: f64 = 10.0 * f64::EPSILON;

/// What the M-step may do, and the table it is made on.
pub(super) struct Regularized<'a> {
    pub(super) data: &'a Dataset,
    pub(super) frame: &'a Frame,
    pub(super) n_components: usize,
    /// λ, in squared units of the table.
    pub(super) ridge: f64,
    /// Smallest noise variance, in units of the frame.
    pub(super) floor: f64,
    pub(super) shared: bool,
}

/// The moments of one model.
struct Moment {
    mean: Vec<f64>,
    /// Counts of rows; of the observed cells of each column where there are no components.
    counts: Vec<f64>,
    scatter: Scatter,
}

/// In units of the frame.
enum Scatter {
    Full(Matrix),
    Diagonal(Vec<f64>),
}

impl Regularized<'_> {
    /// New parameters from the expectations at the old ones, row n counted `weights[k][n]` times in model k;
    /// and `N_k`.
    pub(super) fn step(
        &self,
        at: &[Parameters],
        weights: &[Vec<f64>],
    ) -> Result<(Vec<Parameters>, Vec<f64>), Error> {
        let counts = weights.iter().map(|weights| weights.iter().sum::<f64>() + EPSILON).collect();
        let moment = |k: usize| {
            let (at, weights) = (&at[k], &weights[k]);
            if self.n_components == 0 { Ok(self.by_cells(at, weights)) } else { self.by_rows(at, weights) }
        };
        let moments: Vec<Moment> = parallel::try_map(at.len(), moment)?;
        let parameters = if self.shared {
            let means: Vec<Vec<f64>> = moments.iter().map(|m| m.mean.clone()).collect();
            let one = self.parameters(pooled(&moments), Vec::new())?;
            means.into_iter().map(|mean| Parameters { mean, ..one.clone() }).collect()
        } else {
            let one = |Moment { mean, scatter, counts }| self.parameters((scatter, counts), mean);
            moments.into_iter().map(one).collect::<Result<_, _>>()?
        };
        Ok((parameters, counts))
    }

    /// Gaps filled by their expectation (completion EM, [M 1.5.2]).
    fn by_rows(&self, at: &Parameters, weights: &[f64]) -> Result<Moment, Error> {
        let (d, n) = (self.data.n_columns(), weights.iter().sum::<f64>() + EPSILON);
        let gaussian = if self.data.is_complete() {
            // Nothing is filled, and about its own mean a covariance keeps its digits.
            let mean = self.mean(weights, n);
            Gaussian { mean, covariance: Matrix::identity(d), precision: Matrix::identity(d), ln_det: 0.0 }
        } else {
            let covariance = covariance(at);
            let (precision, ln_det) = positive_inverse(&covariance).ok_or(Error::CollapsedModel)?;
            Gaussian { mean: at.mean.clone(), covariance, precision, ln_det }
        };
        let Moments { first, mut second, .. } = Moments::of(self.data, self.frame, &gaussian, Some(weights));
        let delta: Vec<f64> = first.iter().map(|v| v / n).collect();
        for i in 0..d {
            for (s, delta_j) in second.row_mut(i)[..=i].iter_mut().zip(&delta) {
                *s = *s / n - delta[i] * delta_j;
            }
        }
        second.mirror_lower();
        let shifts = delta.iter().zip(&self.frame.scale).map(|(delta, scale)| delta * scale);
        let mean = gaussian.mean.iter().zip(shifts).map(|(m, shift)| m + shift).collect();
        Ok(Moment { mean, counts: vec![n; d], scatter: Scatter::Full(second) })
    }

    /// `Σ r t / N` of complete rows.
    fn mean(&self, weights: &[f64], n: f64) -> Vec<f64> {
        let about = &self.frame.mean;
        let mut sums = vec![0.0; about.len()];
        for (i, &r) in weights.iter().enumerate().filter(|(_, r)| **r > 0.0) {
            for ((sum, t), m) in sums.iter_mut().zip(self.data.row(i)).zip(about) {
                *sum += r * (t - m);
            }
        }
        sums.iter().zip(about).map(|(sum, m)| (sum + m * (n - EPSILON)) / n).collect()
    }

    /// Every column by its observed cells. ε counts as a cell of 0, so that the variances of a model that one
    /// row has to itself are what scikit-learn's differences of squares leave of them.
    fn by_cells(&self, at: &Parameters, weights: &[f64]) -> Moment {
        let Frame { mean: about, inverse, .. } = self.frame;
        let d = about.len();
        let (mut counts, mut sums) = (vec![0.0; d], vec![0.0; d]);
        let members = || weights.iter().enumerate().filter(|(_, r)| **r > 0.0);
        for (i, &r) in members() {
            let row = self.data.row(i);
            for j in (0..d).filter(|&j| !row[j].is_nan()) {
                counts[j] += r;
                sums[j] += r * (row[j] - about[j]);
            }
        }
        let mean = |j: usize| (sums[j] + about[j] * counts[j]) / (counts[j] + EPSILON);
        let mut mean: Vec<f64> = (0..d).map(mean).collect();
        let mut squares = vec![0.0; d];
        for (i, &r) in members() {
            let row = self.data.row(i);
            for j in (0..d).filter(|&j| !row[j].is_nan()) {
                squares[j] += r * (row[j] - mean[j]).powi(2);
            }
        }
        let mut variances = vec![0.0; d];
        for j in 0..d {
            if counts[j] == 0.0 && !self.data.is_complete() {
                // None of its rows has a cell here: what was known stays.
                (mean[j], variances[j]) = (at.mean[j], at.psi[j]);
            } else {
                counts[j] += EPSILON;
                let spread = squares[j] + EPSILON * mean[j] * mean[j];
                variances[j] = spread / counts[j] * inverse[j] * inverse[j];
            }
        }
        Moment { mean, counts, scatter: Scatter::Diagonal(variances) }
    }

    /// `C` with the ridge as loadings and noise.
    fn parameters(
        &self,
        (scatter, counts): (Scatter, Vec<f64>),
        mean: Vec<f64>,
    ) -> Result<Parameters, Error> {
        let d = self.data.n_columns();
        let ridge = |j: usize| self.ridge * self.frame.inverse[j] * self.frame.inverse[j];
        match scatter {
            Scatter::Full(mut s) => {
                (0..d).for_each(|j| s[(j, j)] += ridge(j));
                from_eigenpairs(&eigen(&s)?, self.n_components, mean, self.floor)
            }
            Scatter::Diagonal(mut psi) => {
                if self.frame.isotropic {
                    let cells: f64 = counts.iter().sum();
                    let sum: f64 = psi.iter().zip(&counts).map(|(v, n)| v * n).sum();
                    let pooled = if cells > 0.0 { sum / cells } else { psi[0] };
                    psi.fill(pooled);
                }
                psi.iter_mut().enumerate().for_each(|(j, v)| *v = (*v + ridge(j)).max(self.floor));
                if psi.iter().any(|v| *v <= 0.0) {
                    return Err(Error::CollapsedModel);
                }
                Ok(Parameters { w: Matrix::zeros(d, 0), mean, psi })
            }
        }
    }
}

/// `Σ_k N_k S_k / Σ_k N_k`, and `Σ_k N_k`.
fn pooled(moments: &[Moment]) -> (Scatter, Vec<f64>) {
    let d = moments[0].counts.len();
    let total: Vec<f64> = (0..d).map(|j| moments.iter().map(|m| m.counts[j]).sum()).collect();
    let share = |m: &Moment, j: usize| if total[j] > 0.0 { m.counts[j] / total[j] } else { 0.0 };
    let mut sum = match &moments[0].scatter {
        Scatter::Full(_) => Scatter::Full(Matrix::zeros(d, d)),
        Scatter::Diagonal(_) => Scatter::Diagonal(vec![0.0; d]),
    };
    for moment in moments {
        match (&mut sum, &moment.scatter) {
            (Scatter::Full(sum), Scatter::Full(s)) => {
                let entries = sum.as_mut_slice().iter_mut().zip(s.as_slice());
                entries.for_each(|(sum, s)| *sum += share(moment, 0) * s);
            }
            (Scatter::Diagonal(sum), Scatter::Diagonal(v)) => {
                (0..d).for_each(|j| sum[j] += share(moment, j) * v[j]);
            }
            _ => unreachable!("all models are of one kind"),
        }
    }
    (sum, total)
}
