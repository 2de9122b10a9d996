//! The M-step of one model, from rows weighted by its responsibilities.

use crate::infer::em::moments::{LatentMoments, Maximize};
use crate::infer::em::parameters::{Frame, Parameters};
use crate::infer::full_covariance::{Gaussian, Moments};
use crate::linalg::{Eigen, leading_eigenpairs, positive_inverse};
use crate::spec::Prior;
use crate::{Dataset, Error, Matrix};

/// Largest angle to the exact principal subspace (radians).
const MAX_ANGLE: f64 = 1e-9;

/// What the M-step may do, and the table it is made on.
pub(super) struct MStep<'a> {
    pub(super) data: &'a Dataset,
    pub(super) frame: &'a Frame,
    pub(super) closed_form: bool,
    pub(super) expand: bool,
    pub(super) prior: &'a Prior,
    /// Smallest noise variance, in units of the frame.
    pub(super) floor: f64,
}

impl MStep<'_> {
    /// New parameters from the expectations at the old ones, each row counted `weights` times.
    pub(super) fn step(&self, at: &Parameters, weights: &[f64]) -> Result<Parameters, Error> {
        if self.closed_form {
            return self.completed(at, weights);
        }
        let maximize =
            Maximize { expand: self.expand, estimate_mean: true, prior: self.prior, floor: self.floor };
        Ok(maximize.step(&LatentMoments::of_weighted(self.data, self.frame, at, weights)))
    }

    /// `μ ← μ + δ`, `S = 1/N Σ r ⟨yyᵀ⟩ − δδᵀ` with `δ = 1/N Σ r ⟨y⟩`, then the closed form ([M 1.9.3],
    /// and completion EM, [M 1.5.2], for the gaps).
    fn completed(&self, at: &Parameters, weights: &[f64]) -> Result<Parameters, Error> {
        let covariance = covariance(at);
        let (precision, ln_det) = positive_inverse(&covariance)
            .ok_or(Error::Numerical { what: "the inverse of a model's covariance" })?;
        let gaussian = Gaussian { mean: at.mean.clone(), covariance, precision, ln_det };
        let Moments { first, mut second, .. } = Moments::of(self.data, self.frame, &gaussian, Some(weights));
        let n: f64 = self
            .data
            .patterns()
            .filter(|p| p.n_observed() > 0)
            .flat_map(|p| p.rows)
            .map(|&i| weights[i])
            .sum();
        let delta: Vec<f64> = first.iter().map(|v| v / n).collect();
        for i in 0..delta.len() {
            for (s, delta_j) in second.row_mut(i)[..=i].iter_mut().zip(&delta) {
                *s = *s / n - delta[i] * delta_j;
            }
        }
        second.mirror_lower();
        let shifts = delta.iter().zip(&self.frame.scale).map(|(delta, scale)| delta * scale);
        let mean = at.mean.iter().zip(shifts).map(|(m, shift)| m + shift).collect();
        closed_form(&second, at.w.n_columns(), mean, self.floor)
    }
}

/// `C = W Wᵀ + Ψ` in units of the frame.
pub(super) fn covariance(at: &Parameters) -> Matrix {
    let mut c = at.w.dot_t(&at.w);
    for (j, psi) in at.psi.iter().enumerate() {
        c[(j, j)] += psi;
    }
    c
}

/// `σ² = 1/(d−q) Σ_{i>q} λᵢ`, no less than the floor, and `W = U (Λ − σ²)₊^½` [M 1.3.4].
pub(super) fn closed_form(s: &Matrix, q: usize, mean: Vec<f64>, floor: f64) -> Result<Parameters, Error> {
    let d = s.n_rows();
    let found = leading_eigenpairs(s, q, MAX_ANGLE, 0)?;
    let sigma2 = (found.rest / (d - q) as f64).max(floor);
    let mut w = found.vectors;
    w.scale_columns(&found.values.iter().map(|l| (l - sigma2).max(0.0).sqrt()).collect::<Vec<_>>());
    Ok(Parameters { w, mean, psi: vec![sigma2; d] })
}

/// The same from all eigenpairs, refusing a covariance that is singular to rounding.
pub(super) fn from_eigenpairs(
    Eigen { values, vectors }: &Eigen,
    q: usize,
    mean: Vec<f64>,
    floor: f64,
) -> Result<Parameters, Error> {
    let d = values.len();
    let sigma2 = (values[q..].iter().sum::<f64>() / (d - q) as f64).max(floor);
    if sigma2.is_nan() || sigma2 <= d as f64 * f64::EPSILON * values[0] {
        return Err(Error::CollapsedModel);
    }
    let mut w = vectors.first_columns(q);
    w.scale_columns(&values[..q].iter().map(|l| (l - sigma2).max(0.0).sqrt()).collect::<Vec<_>>());
    Ok(Parameters { w, mean, psi: vec![sigma2; d] })
}
