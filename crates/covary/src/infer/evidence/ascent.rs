//! The iteration with gaps [M 1.7.6]: MAP-EM for W, μ and σ², α after every step, components dropped on
//! the way.
//!
//! Two moves make it as fast as parameter-expanded EM. Both leave J no lower, though [M 1.5.6] has
//! neither: a precision that is re-estimated is not a fixed prior.
//!
//! **Rotation.** ℓ depends on `W Wᵀ` alone, so W may be rotated for the prior's sake. The best rotation
//! makes its columns orthogonal: `Σ ln ‖W_·i‖² ≥ ln |WᵀW|` (Hadamard), which is what the simple rule
//! pays; and for given precisions `Σ αᵢ ‖W_·i‖²` is least when the longest column has the smallest
//! (von Neumann). Left to EM, this turn takes about N/(αᵢσ²) steps.
//!
//! **Folding.** Let the latent mean and covariance be free for one step, x ~ N(ν, Σ), and fold them
//! back, W ← W L, Σ = L Lᵀ. With B the second moment of the scores about ν, what is gained is
//! ```text
//! −N/2 ln|Σ| − ½ tr(Σ⁻¹B) − d/2 ln|Σ|          largest at Σ = B / (N + d)
//! ```
//! the last term by the simple rule after the best turn. For the effective-number rule d becomes γᵢ;
//! at its fixed points `B = diag(N + γᵢ)`, so that the fold is then the identity.

use super::{AlphaRule, Evidence, most_components};
use crate::infer::em::moments::{LatentMoments, Maximize};
use crate::infer::em::parameters::{Frame, Parameters};
use crate::infer::em::stop::Aitken;
use crate::infer::em::{Init, start};
use crate::infer::report::{Fit, FitReport, Objective, ObjectiveKind, Observer, Step, Termination, Warning};
use crate::linalg::{Cholesky, canonical_signs, dot, thin_svd};
use crate::spec::{LoadingsPrior, Prior};
use crate::{Dataset, Error, Matrix, Spec};

/// Squared length, as a share of σ², below which the effective-number rule drops a column.
const VANISHED: f64 = 1e-8;

/// Where the climb stands: columns of W orthogonal, longest first; units of the frame.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) at: Parameters,
    pub(super) alpha: Vec<f64>,
}

impl Evidence {
    pub(super) fn climb(
        &self,
        data: &Dataset,
        spec: &Spec,
        observer: &mut dyn Observer,
    ) -> Result<Fit, Error> {
        let constant = spec.check_variances(data.observed_variances(), data.column_names(), Some(data))?;
        let frame = Frame::new(data, spec);
        let first = Spec { n_components: most_components(data, spec), ..spec.clone() };
        let mut climb = self.ascend(data, &first, &frame, observer)?;
        if !constant.is_empty() {
            climb.warnings.push(Warning::ConstantColumns { columns: constant });
        }
        climb.into_fit(data, spec, &frame)
    }

    /// From `spec.n_components` columns to the end.
    pub(super) fn ascend(
        &self,
        data: &Dataset,
        spec: &Spec,
        frame: &Frame,
        observer: &mut dyn Observer,
    ) -> Result<Climb, Error> {
        let mut at = start::parameters(&Init::Spectral, data, spec, frame, 0)?;
        turn(&mut at.w)?;
        let alpha = simple(&at.w);
        let mut climb = Climb {
            state: State { at, alpha },
            trace: Vec::new(),
            termination: Termination::IterationLimit,
            warnings: Vec::new(),
        };
        let mut aitken = Aitken::new(self.tolerance);
        // Where J may fall, what stops the climb is how far it still moves either way.
        let mut traveled = 0.0;
        for iteration in 0..=self.max_iterations {
            let State { at, alpha } = &climb.state;
            let moments = LatentMoments::of(data, frame, at);
            let objective = moments.log_likelihood() + at.log_prior(&ard(alpha), frame);
            let before = climb.trace.last().copied();
            climb.trace.push(objective);
            traveled = before.map_or(objective, |before| traveled + (objective - before).abs());
            if let Some(before) = before
                && self.rule == AlphaRule::Simple
                && objective < before - 1e-9 * (1.0 + before.abs())
            {
                climb.warnings.push(Warning::ObjectiveFell { iteration, by: before - objective });
            }
            if aitken.push(traveled) {
                climb.termination = Termination::Converged;
                break;
            }
            if iteration > 0 && observer.step(&Step { iteration, objective }).is_break() {
                climb.termination = Termination::Interrupted;
                break;
            }
            if iteration == self.max_iterations {
                let remaining = aitken.remaining();
                climb.warnings.push(Warning::StillRising { iterations: iteration, remaining });
                break;
            }
            let columns = climb.state.alpha.len();
            climb.state = self.step(data, frame, &moments, &climb.state.alpha, spec.floor())?;
            if climb.state.alpha.len() < columns {
                climb.trace.clear();
                aitken = Aitken::new(self.tolerance);
            }
        }
        Ok(climb)
    }

    fn step(
        &self,
        data: &Dataset,
        frame: &Frame,
        moments: &LatentMoments,
        alpha: &[f64],
        floor: f64,
    ) -> Result<State, Error> {
        let prior = ard(alpha);
        let mut at = Maximize { expand: false, estimate_mean: true, prior: &prior, floor }.step(moments);
        let gamma = self.effective_numbers(moments, alpha, &at);
        fold(&mut at, frame, moments, &gamma);
        turn(&mut at.w)?;
        let keep = self.n_kept(data, &at);
        at.w = at.w.first_columns(keep);
        let alpha = gamma.iter().zip(squared_lengths(&at.w)).map(|(gamma, w2)| gamma / w2).collect();
        Ok(State { at, alpha })
    }

    /// γᵢ at the new parameters, by the precisions and the moments of the step just made:
    /// `γᵢ = d − αᵢ Σⱼ [Hⱼ⁻¹]ᵢᵢ`, `Hⱼ = diag(α) + 1/σ² Σ_{n: j∈O_n} ⟨x xᵀ⟩`; d for the simple rule.
    pub(super) fn effective_numbers(
        &self,
        moments: &LatentMoments,
        alpha: &[f64],
        at: &Parameters,
    ) -> Vec<f64> {
        let (d, q) = (at.w.n_rows(), alpha.len());
        if self.rule == AlphaRule::Simple {
            return vec![d as f64; q];
        }
        let mut gamma = vec![d as f64; q];
        for j in 0..d {
            let a = moments.normal_matrix(j);
            let h = Matrix::from_fn(q, q, |i, k| a[(i, k)] / at.psi[j] + if i == k { alpha[i] } else { 0.0 });
            // H is a diagonal of positive numbers plus a sum of squares; where rounding says
            // otherwise the column is as if unseen.
            let inverse = Cholesky::new(&h).map(|chol| chol.inverse());
            for i in 0..q {
                gamma[i] -= inverse.as_ref().map_or(1.0, |inverse| alpha[i] * inverse[(i, i)]);
            }
        }
        gamma.iter().map(|g| g.max(f64::EPSILON)).collect()
    }

    /// Columns that stay [M 1.7.4]. By the simple rule no column rests between 0 and √(d/(N+d)) σ²;
    /// with gaps N counts rows' worth of cells.
    fn n_kept(&self, data: &Dataset, at: &Parameters) -> usize {
        let d = data.n_columns() as f64;
        let rows = data.n_observed() as f64 / d;
        let least = match self.rule {
            AlphaRule::Simple => 0.5 * (d / (rows + d)).sqrt(),
            AlphaRule::EffectiveNumber => VANISHED,
        };
        squared_lengths(&at.w).iter().take_while(|w2| **w2 >= least * at.psi[0]).count()
    }
}

/// `W_·i ~ N(0, I/αᵢ)` and nothing else.
fn ard(alpha: &[f64]) -> Prior {
    Prior { loadings: LoadingsPrior::Ard { relative_alpha: alpha.to_vec() }, ..Prior::default() }
}

pub(super) fn squared_lengths(w: &Matrix) -> Vec<f64> {
    let mut sums = vec![0.0; w.n_columns()];
    for row in w.rows() {
        sums.iter_mut().zip(row).for_each(|(sum, w)| *sum += w * w);
    }
    sums
}

/// `αᵢ = d/‖W_·i‖²`
fn simple(w: &Matrix) -> Vec<f64> {
    squared_lengths(w).iter().map(|w2| w.n_rows() as f64 / w2).collect()
}

/// Turns W so that its columns are orthogonal, longest first.
fn turn(w: &mut Matrix) -> Result<(), Error> {
    let svd = thin_svd(w)?;
    let mut turned = svd.u;
    turned.scale_columns(&svd.s);
    canonical_signs(&mut turned);
    *w = turned;
    Ok(())
}

/// `μ ← μ + W ν`, `W ← W L` with `L Lᵀ = D^-½ B D^-½`, D = diag(N + γᵢ).
fn fold(at: &mut Parameters, frame: &Frame, moments: &LatentMoments, gamma: &[f64]) {
    let (q, n) = (gamma.len(), moments.n_rows());
    let second = moments.latent_moment();
    let nu: Vec<f64> = (0..q).map(|i| second[(q, i)] / n).collect();
    let weight: Vec<f64> = gamma.iter().map(|gamma| 1.0 / (n + gamma).sqrt()).collect();
    let sigma = Matrix::from_fn(q, q, |i, k| weight[i] * (second[(i, k)] - n * nu[i] * nu[k]) * weight[k]);
    // Rounding can spoil Σ only where a latent direction has lost all variance: nothing to fold.
    let Some(chol) = Cholesky::new(&sigma) else { return };
    for (j, mean) in at.mean.iter_mut().enumerate() {
        *mean += dot(at.w.row(j), &nu) * frame.scale[j];
    }
    at.w = at.w.dot(chol.lower());
}

/// A climb: where it ended and how it went.
pub(super) struct Climb {
    pub(super) state: State,
    pub(super) trace: Vec<f64>,
    termination: Termination,
    pub(super) warnings: Vec<Warning>,
}

impl Climb {
    fn into_fit(self, data: &Dataset, spec: &Spec, frame: &Frame) -> Result<Fit, Error> {
        let State { at, alpha } = self.state;
        let names = |columns: Vec<usize>| -> Vec<String> {
            columns.iter().map(|&j| data.column_names()[j].clone()).collect()
        };
        let mut warnings = self.warnings;
        let observed = data.n_observed_by_column();
        let sparse: Vec<usize> = (0..data.n_columns()).filter(|&j| observed[j] <= alpha.len()).collect();
        if !sparse.is_empty() {
            warnings.push(Warning::SparseColumns { columns: names(sparse) });
        }
        if at.psi[0] <= spec.floor() * (1.0 + 1e-9) {
            warnings.push(Warning::NoiseAtFloor { columns: data.column_names().to_vec() });
        }
        warnings.extend(start::unseen_pairs(data));
        let unit = if spec.standardize { 1.0 } else { frame.scale[0] };
        let value = *self.trace.last().expect("every stage begins with its objective");
        let objective = Objective { kind: ObjectiveKind::LogPosterior, value };
        let report = FitReport {
            relevance: alpha.iter().map(|a| a / (unit * unit)).collect(),
            ..FitReport::new(objective, self.trace, self.termination, warnings)
        };
        Ok(Fit { model: frame.model(&at, spec)?.canonical(), draws: None, report })
    }
}
