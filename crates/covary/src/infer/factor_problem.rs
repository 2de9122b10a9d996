//! Factor analysis of complete data as a function of the noise variances alone [M 1.6].
//!
//! Everything here is on the correlation scale: factor analysis follows any rescaling of the columns
//! exactly, and unit variances keep the eigenproblem well conditioned. [`FactorProblem::finish`]
//! maps back to the user's units.

use super::report::{Fit, FitReport, Objective, ObjectiveKind, Termination, Warning};
use crate::linalg::{
    Cholesky, Eigen, eigen, gemm,
    krylov::{self, Krylov},
    top_eigenpairs,
};
use crate::model::{LinearGaussian, Noise};
use crate::spec::NoiseFamily;
use crate::{CentralMoments, Dataset, Error, Matrix, Spec};
use faer::{MatMut, MatRef};

/// Smallest relative noise variance, whatever floor was asked for: below it the rounding of the
/// large eigenvalues of Ψ^-½ R Ψ^-½ hides the small ones.
const LEAST_FLOOR: f64 = 1e-9;

/// Columns from which only the leading eigenpairs are sought. They give value and gradient; the steps
/// then use the approximate Hessian, which is close when d ≫ q.
const LARGE: usize = 256;
/// Largest angle to the leading subspace (radians) accepted from the iteration.
const MAX_ANGLE: f64 = 1e-12;

pub(super) struct FactorProblem {
    pub(super) correlation: Matrix,
    pub(super) n_components: usize,
    /// Smallest noise variance on the correlation scale.
    pub(super) floor: f64,
    pub(super) variances: Vec<f64>,
    standardized: bool,
    n_rows: usize,
    mean: Vec<f64>,
    names: Vec<String>,
}

impl FactorProblem {
    /// Checks request and table; wholly missing rows are passed over.
    pub(super) fn of_table(method: &'static str, data: &Dataset, spec: &Spec) -> Result<Self, Error> {
        spec.check_method(method, NoiseFamily::Diagonal)?;
        spec.check(data)?;
        let data = data.complete_rows(method)?;
        let names = data.column_names().to_vec();
        Self::new(&CentralMoments::of(&data)?, names, spec, Some(&data))
    }

    /// Checks request and moments; columns are called `x1, x2, …` unless they have names.
    pub(super) fn of_moments(
        method: &'static str,
        moments: &CentralMoments,
        names: Option<&[String]>,
        spec: &Spec,
    ) -> Result<Self, Error> {
        spec.check_method(method, NoiseFamily::Diagonal)?;
        if moments.n_rows() < 2 {
            return Err(Error::TooFewRows { rows: moments.n_rows() });
        }
        spec.check_shape(moments.n_rows(), moments.n_columns())?;
        let unnamed = || (1..=moments.n_columns()).map(|j| format!("x{j}")).collect();
        Self::new(moments, names.map_or_else(unnamed, <[String]>::to_vec), spec, None)
    }

    fn new(
        moments: &CentralMoments,
        names: Vec<String>,
        spec: &Spec,
        data: Option<&Dataset>,
    ) -> Result<Self, Error> {
        let mut correlation = moments.covariance();
        let variances: Vec<f64> = (0..names.len()).map(|j| correlation[(j, j)]).collect();
        spec.check_variances(&variances, &names, data)?;
        let inverse: Vec<f64> = variances.iter().map(|v| 1.0 / v.sqrt()).collect();
        correlation.scale_both(&inverse);
        Ok(Self {
            correlation,
            n_components: spec.n_components,
            floor: spec.floor().max(LEAST_FLOOR),
            variances,
            standardized: spec.standardize,
            n_rows: moments.n_rows(),
            mean: moments.mean().to_vec(),
            names,
        })
    }

    pub(super) fn n_columns(&self) -> usize {
        self.names.len()
    }

    /// The noise variances given, in the units of the table, or Jöreskog's.
    pub(super) fn start_from(&self, given: Option<&[f64]>) -> Result<Vec<f64>, Error> {
        let Some(given) = given else { return Ok(self.start()) };
        let (what, expected) = ("noise variances to start from", self.n_columns());
        if given.len() != expected {
            return Err(Error::WrongLength { what, expected, got: given.len() });
        }
        if let Some(&value) = given.iter().find(|v| !(v.is_finite() && **v > 0.0)) {
            return Err(Error::OutOfRange { name: "start", value, bound: "finite and above 0" });
        }
        Ok(given.iter().zip(&self.variances).map(|(p, v)| (p / v).clamp(self.floor, 1.0)).collect())
    }

    /// `ψⱼ = (1 − q/2d) / (R⁻¹)ⱼⱼ` (Jöreskog), ½ where R has no inverse.
    fn start(&self) -> Vec<f64> {
        let d = self.n_columns();
        let share = 1.0 - self.n_components as f64 / (2.0 * d as f64);
        let factor = if self.n_rows > d { Cholesky::new(&self.correlation) } else { None };
        match factor {
            Some(factor) => {
                let inverse = factor.inverse();
                (0..d).map(|j| (share / inverse[(j, j)]).max(self.floor)).collect()
            }
            None => vec![0.5_f64.max(self.floor); d],
        }
    }

    /// The likelihood at `psi`, loadings maximized out. Where the step before could not do with the
    /// leading eigenpairs this one does not try.
    pub(super) fn profile(&self, psi: &[f64], before: Option<&Profile>) -> Result<Profile, Error> {
        let inverse: Vec<f64> = psi.iter().map(|v| 1.0 / v.sqrt()).collect();
        let mut whitened = self.correlation.clone();
        whitened.scale_both(&inverse);
        let ln_psi = psi.iter().map(|v| v.ln()).sum::<f64>();
        if self.is_large() && !before.is_some_and(Profile::has_all_pairs) {
            let apply = |x: MatRef<'_, f64>, out: MatMut<'_, f64>| gemm(out, false, whitened.view(), x);
            let found = top_eigenpairs(apply, psi.len(), self.n_components, MAX_ANGLE, 0)?;
            if let Some(found) = found {
                return Ok(Profile::from_leading(ln_psi, &whitened, found));
            }
        }
        Ok(Profile::from_all(ln_psi, eigen(&whitened)?, self.n_components))
    }

    /// Whether the few leading eigenpairs are cheaper by iteration than all of them at once.
    pub(super) fn is_large(&self) -> bool {
        let d = self.n_columns();
        self.n_components > 0 && d >= LARGE && 8 * krylov::block_width(self.n_components, d) <= d
    }

    /// Log-likelihood in nats and in the user's units of `value = ln|C| + tr C⁻¹R`.
    pub(super) fn log_likelihood(&self, value: f64) -> f64 {
        let ln_2pi = (2.0 * std::f64::consts::PI).ln();
        let units: f64 = self.variances.iter().map(|v| v.ln()).sum();
        -0.5 * self.n_rows as f64 * (self.n_columns() as f64 * ln_2pi + value + units)
    }

    /// The fit with these loadings and noise variances, in the user's units and canonical form.
    pub(super) fn finish(
        &self,
        mut loadings: Matrix,
        psi: &[f64],
        trace: &[f64],
        termination: Termination,
    ) -> Result<Fit, Error> {
        let deviations: Vec<f64> = self.variances.iter().map(|v| v.sqrt()).collect();
        loadings.scale_rows(&deviations);
        let noise = Noise::Diagonal(psi.iter().zip(&self.variances).map(|(p, v)| p * v).collect());
        let model = LinearGaussian::new(loadings, self.mean.clone(), noise)?
            .with_scale(self.standardized.then_some(deviations))?
            .canonical();

        let trace: Vec<f64> = trace.iter().map(|v| self.log_likelihood(*v)).collect();
        let value = *trace.last().expect("a trace holds its start");
        let mut warnings = Vec::new();
        if termination == Termination::IterationLimit {
            let iterations = trace.len() - 1;
            warnings.push(Warning::StillRising { iterations, remaining: rise_to_come(&trace) });
        }
        let columns: Vec<String> =
            (0..psi.len()).filter(|&j| psi[j] <= self.floor).map(|j| self.names[j].clone()).collect();
        if !columns.is_empty() {
            warnings.push(Warning::NoiseAtFloor { columns });
        }
        let spec = Spec::factor_analysis(self.n_components);
        warnings.extend(Warning::of_unidentified(&spec, self.n_columns()));
        let objective = Objective { kind: ObjectiveKind::LogLikelihood, value };
        let report = FitReport::new(objective, trace, termination, warnings);
        Ok(Fit { model, draws: None, report })
    }
}

/// What a geometric series through the last two gains still adds (Aitken); the last gain if they do
/// not shrink.
pub(super) fn rise_to_come(trace: &[f64]) -> f64 {
    let gain = |back: usize| match trace.len() {
        n if n > back => trace[n - back] - trace[n - back - 1],
        _ => f64::INFINITY,
    };
    let (last, before) = (gain(1), gain(2));
    if before > last && before.is_finite() { last * last / (before - last) } else { last }
}

/// A few ε times the size of what is added up.
fn rounding(ln_psi: f64, trace: f64) -> f64 {
    8.0 * f64::EPSILON * (1.0 + ln_psi.abs() + trace)
}

/// How many of the first q eigenvalues exceed 1 and so carry a factor.
fn kept(leading: &[f64]) -> usize {
    leading.iter().take_while(|t| **t > 1.0).count()
}

/// The likelihood as a function of ρ = ln ψ, loadings maximized out [M 1.6.3]. With θ, v the
/// eigenpairs of `Ψ^-½ R Ψ^-½` and `kept` the number of θ > 1 among the first q:
///
/// ```text
/// −2/N ℓ − d ln 2π = Σᵢ ρᵢ + Σ_{m≤kept} (ln θₘ + 1) + Σ_{m>kept} θₘ
/// ```
pub(super) struct Profile {
    pub(super) value: f64,
    /// `gᵢ = Σ_{m>kept} (1 − θₘ) v²ᵢₘ = (Cᵢᵢ − Rᵢᵢ) / ψᵢ`, the derivative of `value` by ρᵢ.
    pub(super) gradient: Vec<f64>,
    /// All eigenpairs, or the q leading ones of a large problem.
    pub(super) eigen: Eigen,
    pub(super) kept: usize,
    /// `θ_{q+1}`, or a bound on it.
    pub(super) next: f64,
    /// What rounding may have done to `value`.
    pub(super) rounding: f64,
}

impl Profile {
    fn from_all(ln_psi: f64, eigen: Eigen, n_components: usize) -> Self {
        let kept = kept(&eigen.values[..n_components]);
        let (signal, rest) = eigen.values.split_at(kept);
        let value = ln_psi + signal.iter().map(|t| t.ln() + 1.0).sum::<f64>() + rest.iter().sum::<f64>();
        let misfit: Vec<f64> = rest.iter().map(|t| 1.0 - t).collect();
        let slope = |v: &[f64]| v[kept..].iter().zip(&misfit).map(|(v, f)| f * v * v).sum();
        let gradient = eigen.vectors.rows().map(slope).collect();
        let next = eigen.values[n_components];
        let rounding = rounding(ln_psi, eigen.values.iter().sum());
        Self { value, gradient, eigen, kept, next, rounding }
    }

    /// What the leading pairs say is enough: the others enter through trace and diagonal.
    fn from_leading(ln_psi: f64, whitened: &Matrix, found: Krylov) -> Self {
        let Krylov { eigen, next, .. } = found;
        let kept = kept(&eigen.values);
        let signal = &eigen.values[..kept];
        let value = ln_psi + signal.iter().map(|t| t.ln() + 1.0 - t).sum::<f64>() + whitened.trace();
        let excess: Vec<f64> = signal.iter().map(|t| t - 1.0).collect();
        let explained = |v: &[f64]| v.iter().zip(&excess).map(|(v, e)| e * v * v).sum::<f64>();
        let gradient =
            eigen.vectors.rows().enumerate().map(|(i, v)| 1.0 + explained(v) - whitened[(i, i)]).collect();
        let rounding = rounding(ln_psi, whitened.trace());
        Self { value, gradient, eigen, kept, next, rounding }
    }

    /// Whether all eigenpairs are known, not only the leading ones.
    pub(super) fn has_all_pairs(&self) -> bool {
        self.eigen.values.len() == self.gradient.len()
    }

    /// The best loadings given `psi`: `W = Ψ^½ V_q (Θ_q − I)₊^½`.
    pub(super) fn loadings(&self, psi: &[f64], n_components: usize) -> Matrix {
        let mut w = self.eigen.vectors.first_columns(n_components);
        let length: Vec<f64> =
            self.eigen.values[..n_components].iter().map(|t| (t - 1.0).max(0.0).sqrt()).collect();
        w.scale_columns(&length);
        w.scale_rows(&psi.iter().map(|v| v.sqrt()).collect::<Vec<_>>());
        w
    }

    /// Columns that may move: above the floor, or pushed away from it.
    pub(super) fn free(&self, psi: &[f64], floor: f64) -> Vec<usize> {
        (0..psi.len()).filter(|&i| psi[i] > floor || self.gradient[i] < 0.0).collect()
    }

    /// Whether no free column has a slope above `tolerance`, or above the rounding of the
    /// eigenvalues where that is larger; with a tolerance of 0, only where no column is free.
    pub(super) fn is_flat(&self, free: &[usize], tolerance: f64) -> bool {
        if tolerance == 0.0 {
            return free.is_empty();
        }
        let rounding = 16.0 * f64::EPSILON * self.eigen.values[0];
        free.iter().all(|&i| self.gradient[i].abs() < tolerance.max(rounding))
    }
}
