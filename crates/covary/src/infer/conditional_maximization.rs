//! Maximum-likelihood factor analysis of complete data by conditional maximization [M 1.6.2].

use super::Estimator;
use super::factor_problem::{FactorProblem, Profile};
use super::options::options;
use super::report::{Fit, Observer, Step, Termination};
use crate::{Dataset, Error, LinearGaussian, Matrix, Spec};

options! {
    /// Factor analysis of complete data by turns: the best loadings given the noise, then each noise
    /// variance given everything else. Every turn has a closed form and none lowers the likelihood.
    ///
    /// ```text
    /// W  ← Ψ^½ V_q (Θ_q − I)₊^½                   θ, v: eigenpairs of Ψ^-½ S Ψ^-½
    /// ψᵢ ← ψᵢ + (b − a)/a²                        a = (C⁻¹)ᵢᵢ,  b = (C⁻¹ S C⁻¹)ᵢᵢ
    /// ```
    ///
    /// [`Newton`](super::Newton) needs fewer and cheaper steps; this method shares no step with it and so
    /// checks its answers.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::{ConditionalMaximization, Newton}, Estimator, Spec};
    /// let (table, _) = simulate::factor_analysis(Shape { rows: 200, columns: 8, n_components: 2 }, /* seed */ 1);
    /// let by_turns = ConditionalMaximization::default().fit(&table, &Spec::factor_analysis(2))?;
    /// let at_once = Newton::default().fit(&table, &Spec::factor_analysis(2))?;
    /// assert!((by_turns.report.objective.value - at_once.report.objective.value).abs() < 1e-8);
    /// # Ok::<(), covary::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct ConditionalMaximization {
        /// Rounds of loadings and all noise variances; at least one is made unless the start is best.
        pub max_iterations: usize = 2000,
        /// Largest slope |∂(−2ℓ/N)/∂ ln ψⱼ| left in a column that is not at the floor; with 0 the rounds go on
        /// until one changes no variance.
        pub tolerance: f64 = 1e-8,
        /// Noise variances to start from, in the units of the table; `None` starts as Newton does.
        pub start: Option<Vec<f64>> = None,
    }
}

impl Estimator for ConditionalMaximization {
    type Model = LinearGaussian;

    fn fit_observed(&self, data: &Dataset, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        let problem = FactorProblem::of_table("cm", data, spec)?;
        let q = problem.n_components;
        let mut psi = problem.start_from(self.start.as_deref())?;
        let mut profile = problem.profile(&psi, None)?;
        let mut trace = vec![profile.value];
        let (loadings, termination) = loop {
            let loadings = profile.loadings(&psi, q);
            if profile.is_flat(&profile.free(&psi, problem.floor), self.tolerance) {
                *trace.last_mut().expect("a trace holds its start") = profile.value;
                break (loadings, Termination::Converged);
            }
            let before = psi.clone();
            let value = sweep(&problem, &profile, &mut psi);
            trace.push(value);
            if psi == before {
                break (loadings, Termination::Converged);
            }
            let step = Step { iteration: trace.len() - 1, objective: problem.log_likelihood(value) };
            if observer.step(&step).is_break() {
                break (loadings, Termination::Interrupted);
            }
            if trace.len() > self.max_iterations {
                break (loadings, Termination::IterationLimit);
            }
            profile = problem.profile(&psi, Some(&profile))?;
        };
        problem.finish(loadings, &psi, &trace, termination)
    }
}

/// Each ψᵢ in turn to its best value, the loadings fixed. Returns `ln|C| + tr C⁻¹S` at the end.
///
/// With δ the change of ψᵢ, `c = δ/(1 + δa)`, k and u the i-th columns of `K = C⁻¹` and of `KSK`:
///
/// ```text
/// K ← K − c k kᵀ      KSK ← KSK − c (k uᵀ + u kᵀ) + c² b k kᵀ      ln|C| ← ln|C| + ln(1 + δa)
/// ```
fn sweep(problem: &FactorProblem, profile: &Profile, psi: &mut [f64]) -> f64 {
    let s = &problem.correlation;
    let d = psi.len();
    let theta = &profile.eigen.values[..profile.kept];
    // C⁻¹ = Ψ^-½ (I − V_k diag(1 − 1/θ) V_kᵀ) Ψ^-½
    let inverse: Vec<f64> = psi.iter().map(|v| 1.0 / v.sqrt()).collect();
    let mut half = profile.eigen.vectors.first_columns(profile.kept);
    half.scale_rows(&inverse);
    half.scale_columns(&theta.iter().map(|t| (1.0 - 1.0 / t).sqrt()).collect::<Vec<_>>());
    let signal = half.dot_t(&half);
    let mut precision =
        Matrix::from_fn(d, d, |i, j| if i == j { 1.0 / psi[i] } else { 0.0 } - signal[(i, j)]);
    let mut sandwich = precision.dot(s).dot(&precision);
    let mut ln_det = psi.iter().chain(theta).map(|v| v.ln()).sum::<f64>();
    for i in 0..d {
        let (a, b) = (precision[(i, i)], sandwich[(i, i)]);
        let best = (psi[i] + (b - a) / (a * a)).max(problem.floor);
        let delta = best - psi[i];
        psi[i] = best;
        ln_det += (delta * a).ln_1p();
        let c = delta / (1.0 + delta * a);
        let (k, u) = (precision.column(i), sandwich.column(i));
        for m in 0..d {
            let (ck, row_u) = (c * k[m], c * u[m]);
            for (v, k) in precision.row_mut(m).iter_mut().zip(&k) {
                *v -= ck * k;
            }
            let along_k = c * b * ck - row_u;
            for ((v, k), u) in sandwich.row_mut(m).iter_mut().zip(&k).zip(&u) {
                *v += along_k * k - ck * u;
            }
        }
    }
    ln_det + precision.as_slice().iter().zip(s.as_slice()).map(|(k, s)| k * s).sum::<f64>()
}
