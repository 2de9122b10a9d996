//! The M-step of one model, from rows weighted by its responsibilities.

use crate::data::Run;
use crate::infer::em::moments::{LatentMoments, Maximize};
use crate::infer::em::parameters::{Frame, Parameters};
use crate::infer::full_covariance::{Gaussian, Moments};
use crate::infer::report::NEVER;
use crate::linalg::{Eigen, leading_eigenpairs, positive_inverse};
use crate::parallel::{add, in_turn};
use crate::spec::Prior;
use crate::{Dataset, Error, Matrix};

/// Largest angle to the exact principal subspace (radians).
const MAX_ANGLE: f64 = 1e-9;

/// What the M-step may do.
pub(super) struct MStep<'a> {
    pub(super) frame: &'a Frame,
    pub(super) closed_form: bool,
    pub(super) expand: bool,
    pub(super) prior: &'a Prior,
    /// Smallest noise variance, in units of the frame.
    pub(super) floor: f64,
}

/// The parameters at which a model's expectations are taken, as the M-step needs them.
pub(super) enum Point<'a> {
    Latent(&'a Parameters),
    Completed(&'a Parameters, Gaussian),
}

impl<'a> Point<'a> {
    pub(super) fn new(at: &'a Parameters, closed_form: bool) -> Result<Self, Error> {
        if !closed_form {
            return Ok(Self::Latent(at));
        }
        let covariance = covariance(at);
        let (precision, ln_det) = positive_inverse(&covariance)
            .ok_or(Error::Numerical { what: "the inverse of a model's covariance" })?;
        Ok(Self::Completed(at, Gaussian { mean: at.mean.clone(), covariance, precision, ln_det }))
    }

    /// How many numbers the sums of a model are.
    pub(super) fn sums_len(at: &Parameters, closed_form: bool) -> usize {
        let (d, q) = (at.w.n_rows(), at.w.n_columns());
        if closed_form { Moments::numbers_len(d) + 1 } else { LatentMoments::numbers_len(d, q) }
    }

    /// The sums over block `b` of a table, each of its rows counted as often as its weight says. Those of disjoint rows add.
    pub(super) fn sums(&self, (data, b): (&Dataset, usize), frame: &Frame, weights: &[f64]) -> Vec<f64> {
        match self {
            Self::Latent(at) => {
                LatentMoments::of_weighted_block((data, b), frame, at, weights).into_numbers()
            }
            Self::Completed(_, gaussian) => {
                let mut sums = Moments::sums_of_block((data, b), frame, gaussian, Some(weights), &NEVER);
                let rows: Run<'_> = data.run(b);
                let informative = rows.patterns().filter(|p| p.n_observed() > 0).flat_map(|p| p.rows);
                sums.push(informative.map(|&i| weights[i - rows.first]).sum());
                sums
            }
        }
    }
}

impl MStep<'_> {
    /// New parameters from the expectations at the old ones, each row counted `weights` times.
    pub(super) fn step(&self, data: &Dataset, at: &Parameters, weights: &[f64]) -> Result<Parameters, Error> {
        let point = Point::new(at, self.closed_form)?;
        let of_block = |b: usize| point.sums((data, b), self.frame, &weights[data.block(b)]);
        let sums = in_turn(data.n_blocks(), of_block, |a, b| add(a, b));
        self.maximize(&point, &sums)
    }

    /// The same from sums over all rows.
    pub(super) fn maximize(&self, point: &Point<'_>, sums: &[f64]) -> Result<Parameters, Error> {
        match point {
            Point::Latent(at) => {
                let (expand, prior, floor) = (self.expand, self.prior, self.floor);
                let maximize = Maximize { expand, estimate_mean: true, prior, floor };
                Ok(maximize.step(&LatentMoments::of_numbers(self.frame, at, sums)?))
            }
            Point::Completed(at, gaussian) => self.completed(at, gaussian, sums),
        }
    }

    /// `μ ← μ + δ`, `S = 1/N Σ r ⟨yyᵀ⟩ − δδᵀ` with `δ = 1/N Σ r ⟨y⟩`, then the closed form ([M 1.9.3],
    /// and completion EM, [M 1.5.2], for the gaps).
    fn completed(&self, at: &Parameters, gaussian: &Gaussian, sums: &[f64]) -> Result<Parameters, Error> {
        let (n, sums) = sums.split_last().ok_or(Error::DamagedState { why: "it is too short" })?;
        let Moments { first, mut second, .. } = Moments::of_numbers(gaussian, sums)?;
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
