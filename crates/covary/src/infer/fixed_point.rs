//! Factor analysis of complete tables by a fixed-point iteration (Barber 2012, algorithm 21.1).

use super::Estimator;
use super::factor_problem::rise_to_come;
use super::options::options;
use super::report::{Fit, FitReport, Objective, ObjectiveKind, Observer, Step, Termination, Warning};
use crate::linalg::{Leading, leading_eigenpairs, rows::center, thin_svd};
use crate::model::{LinearGaussian, Noise};
use crate::spec::NoiseFamily;
use crate::{CentralMoments, Dataset, Density, Error, Matrix, Spec};
use std::cell::OnceCell;

options! {
    /// Factor analysis of complete tables by the iteration that scikit-learn makes, step for step: the best
    /// loadings given the noise, then the noise that makes the variances right.
    ///
    /// ```text
    /// W ← Ψ^½ V_q (Θ_q − I)₊^½        ψⱼ ← max(Sⱼⱼ − Σₖ W²ⱼₖ, floor)        θ, v: eigenpairs of Ψ^-½ S Ψ^-½
    /// ```
    ///
    /// It takes many more steps than [`Newton`](super::Newton) to the same maximum; it is for results that must
    /// be those of other software, stops included. For these the request is
    /// `Spec { noise_floor: Some(0.0), allow_unidentified: true, .. }`: without a floor relative to the variance
    /// of a column only [`floor`](Self::floor) holds, which makes constant columns possible, and as many
    /// components as columns may be asked for.
    ///
    /// The trace has the value of every step, so that its length is their number:
    ///
    /// ```text
    /// ℓ = −N/2 [d ln 2π + q + Σ_{m≤q} ln θₘ + Σ_{m>q} θₘ + Σⱼ ln ψⱼ]
    /// ```
    ///
    /// That is the log-likelihood where the q leading θ are at least 1; each one below adds `N/2 (θ − 1 − ln θ)`. A
    /// fit that ends at the limit of its steps has the noise that follows from its loadings, one turn beyond
    /// the trace. [`FitReport::objective`] is the log-likelihood of the model in any case.
    ///
    /// The way depends on units: `Spec::standardize` makes those of each column its standard deviation.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::{FixedPoint, Newton}, Estimator, Spec};
    /// let (table, _) = simulate::factor_analysis(Shape { rows: 200, columns: 8, n_components: 2 }, /* seed */ 1);
    /// let fit = FixedPoint::default().fit(&table, &Spec::factor_analysis(2))?;
    /// let best = Newton::default().fit(&table, &Spec::factor_analysis(2))?;
    /// assert!((fit.report.objective.value - best.report.objective.value).abs() < 1e-6);
    /// # Ok::<(), covary::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct FixedPoint {
        /// Most steps; at least one is made.
        pub max_iterations: usize = 10_000,
        /// The iteration ends when the value rises by less than this many nats. The default is far below
        /// scikit-learn's 1e-2, which leaves several nats to gain on ordinary tables; 0 makes as many steps as are
        /// allowed.
        pub tolerance: f64 = 1e-9,
        /// Noise variances to start from, in the units of the table; `None` starts from 1 in every column, in
        /// the units that are worked in.
        pub start: Option<Vec<f64>> = None,
        /// Smallest noise variance, in the units that are worked in; a larger one that the request states as a
        /// share of a column's variance takes its place.
        pub floor: f64 = 1e-12,
    }
}

/// Largest angle to the leading subspace (radians) accepted from the iteration on large matrices.
const MAX_ANGLE: f64 = 1e-12;
/// Trace of Ψ^-½ S Ψ^-½ beyond which its largest eigenvalue hides those near 1, so that singular values are
/// taken instead.
const LARGEST_TRACE: f64 = 1e6;

impl Estimator for FixedPoint {
    type Model = LinearGaussian;

    fn fit_observed(&self, data: &Dataset, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        let problem = Problem::new(data, spec, self.floor)?;
        let mut psi = self.start(&problem)?;
        let mut trace: Vec<f64> = Vec::new();
        let (found, w, termination) = loop {
            let found = problem.leading(&psi)?;
            let w = loadings(&found, &psi);
            let value = problem.value(&found, &psi);
            let before = trace.last().copied();
            trace.push(value);
            if self.tolerance > 0.0 && before.is_some_and(|before| value - before < self.tolerance) {
                break (found, w, Termination::Converged);
            }
            if observer.step(&Step { iteration: trace.len(), objective: value }).is_break() {
                break (found, w, Termination::Interrupted);
            }
            psi = problem.noise(&w);
            if trace.len() >= self.max_iterations {
                break (found, w, Termination::IterationLimit);
            }
        };
        let above = found.values.iter().all(|t| *t >= 1.0);
        let known = above && termination != Termination::IterationLimit;
        problem.finish(w, &psi, trace, termination, known)
    }
}

impl FixedPoint {
    fn start(&self, problem: &Problem<'_>) -> Result<Vec<f64>, Error> {
        let d = problem.floors.len();
        let squares = problem.scale.iter().map(|s| s * s);
        let start = self.start.clone().unwrap_or_else(|| squares.clone().collect());
        if start.len() != d {
            let what = "noise variances to start from";
            return Err(Error::WrongLength { what, expected: d, got: start.len() });
        }
        let out = |name, value, bound| Err(Error::OutOfRange { name, value, bound });
        if let Some(&value) = start.iter().find(|v| !(v.is_finite() && **v > 0.0)) {
            return out("start", value, "finite and above 0");
        }
        if self.tolerance.is_nan() {
            return out("tolerance", self.tolerance, "a number");
        }
        Ok(start.iter().zip(squares).zip(&problem.floors).map(|((p, s), f)| (p / s).max(*f)).collect())
    }
}

/// The table as the iteration sees it, columns divided by `scale`.
struct Problem<'a> {
    data: &'a Dataset,
    n_components: usize,
    n_rows: usize,
    mean: Vec<f64>,
    /// 1, or standard deviations.
    scale: Vec<f64>,
    standardized: bool,
    covariance: Matrix,
    /// Smallest noise variance of each column.
    floors: Vec<f64>,
    /// A matrix H with `Hᵀ H = S`, of no more rows than columns; where it is needed.
    half: OnceCell<Matrix>,
}

impl<'a> Problem<'a> {
    /// Checks request and table; wholly missing rows are passed over.
    fn new(data: &'a Dataset, spec: &Spec, floor: f64) -> Result<Self, Error> {
        spec.check_method("fixed-point", NoiseFamily::Diagonal)?;
        let (q, d) = (spec.n_components, data.n_columns());
        // A component per column is a matter of identification here: W Wᵀ leaves room for the noise.
        let n_components = if spec.allow_unidentified && q == d { d - 1 } else { q };
        Spec { n_components, ..spec.clone() }.check(data)?;
        if !(floor.is_finite() && floor > 0.0) {
            return Err(Error::OutOfRange { name: "floor", value: floor, bound: "finite and above 0" });
        }
        let complete = data.complete_rows("fixed-point")?;
        let moments = CentralMoments::of(&complete)?;
        let mut covariance = moments.covariance();
        let variances: Vec<f64> = (0..d).map(|j| covariance[(j, j)]).collect();
        // A share of no variance is not a floor; an absolute one is.
        let in_place = |j: usize| if spec.floor() == 0.0 && data.is_constant(j) { 1.0 } else { variances[j] };
        spec.check_variances(&(0..d).map(in_place).collect::<Vec<_>>(), data.column_names(), Some(data))?;
        let deviation = |v: &f64| if spec.standardize && *v > 0.0 { v.sqrt() } else { 1.0 };
        let scale: Vec<f64> = variances.iter().map(deviation).collect();
        covariance.scale_both(&scale.iter().map(|s| 1.0 / s).collect::<Vec<_>>());
        let floors = (0..d).map(|j| floor.max(spec.floor() * covariance[(j, j)])).collect();
        Ok(Self {
            data,
            n_components: q,
            n_rows: moments.n_rows(),
            mean: moments.mean().to_vec(),
            scale,
            standardized: spec.standardize,
            covariance,
            floors,
            half: OnceCell::new(),
        })
    }

    /// The q leading eigenpairs of `Ψ^-½ S Ψ^-½`, and the sum of the other eigenvalues.
    fn leading(&self, psi: &[f64]) -> Result<Leading, Error> {
        let inverse: Vec<f64> = psi.iter().map(|v| 1.0 / v.sqrt()).collect();
        let trace: f64 = psi.iter().enumerate().map(|(j, v)| self.covariance[(j, j)] / v).sum();
        if trace <= LARGEST_TRACE {
            let mut whitened = self.covariance.clone();
            whitened.scale_both(&inverse);
            return leading_eigenpairs(&whitened, self.n_components, MAX_ANGLE, 0);
        }
        let mut half = self.half()?.clone();
        half.scale_columns(&inverse);
        let svd = thin_svd(&half)?;
        let theta: Vec<f64> = svd.s.iter().map(|s| s * s).collect();
        let known = self.n_components.min(theta.len());
        let rest = theta[known..].iter().sum();
        let next = theta.get(known).copied().unwrap_or(0.0);
        let mut vectors = Matrix::zeros(psi.len(), self.n_components);
        let mut values = vec![0.0; self.n_components];
        for k in 0..known {
            values[k] = theta[k];
            (0..psi.len()).for_each(|j| vectors[(j, k)] = svd.v[(j, k)]);
        }
        Ok(Leading { values, vectors, rest, next })
    }

    /// `Y / √N`, turned into a triangle if it has more rows than columns: scaling its columns costs no
    /// digits, which scaling S does.
    fn half(&self) -> Result<&Matrix, Error> {
        if let Some(half) = self.half.get() {
            return Ok(half);
        }
        let data = self.data.complete_rows("fixed-point")?;
        let (n, d) = (data.n_rows(), data.n_columns());
        let mut y = vec![0.0; n * d];
        let inverse: Vec<f64> = self.scale.iter().map(|s| 1.0 / (s * (n as f64).sqrt())).collect();
        center(data.values().as_slice(), &self.mean, &inverse, &mut y);
        let y = Matrix::from_vec(n, d, y)?;
        let half = if n > d {
            let qr = y.view().qr();
            Matrix::from_fn(d, d, |i, j| if i <= j { qr.thin_R()[(i, j)] } else { 0.0 })
        } else {
            y
        };
        Ok(self.half.get_or_init(|| half))
    }

    fn value(&self, found: &Leading, psi: &[f64]) -> f64 {
        let (n, d) = (self.n_rows, psi.len());
        let ln_2pi = (2.0 * std::f64::consts::PI).ln();
        // Eigenvalues that are zero except for rounding are not smaller than this.
        let least = f64::EPSILON * f64::EPSILON * found.values.first().copied().unwrap_or(1.0);
        let ln_theta: f64 =
            found.values.iter().take(n.min(d)).map(|t| t.max(least).max(f64::MIN_POSITIVE).ln()).sum();
        let ln_psi: f64 = psi.iter().map(|v| v.ln()).sum();
        let ln_units = 2.0 * self.scale.iter().map(|s| s.ln()).sum::<f64>();
        let total = d as f64 * ln_2pi + self.n_components as f64 + ln_theta + found.rest + ln_psi + ln_units;
        -0.5 * n as f64 * total
    }

    /// `max(diag(S − W Wᵀ), floor)`
    fn noise(&self, w: &Matrix) -> Vec<f64> {
        let explained = |j: usize| w.row(j).iter().map(|v| v * v).sum::<f64>();
        (0..w.n_rows()).map(|j| (self.covariance[(j, j)] - explained(j)).max(self.floors[j])).collect()
    }

    /// The fit in the units of the table; `known` says that the last of the trace is its log-likelihood.
    fn finish(
        &self,
        mut w: Matrix,
        psi: &[f64],
        trace: Vec<f64>,
        termination: Termination,
        known: bool,
    ) -> Result<Fit, Error> {
        let mut warnings = Vec::new();
        if termination == Termination::IterationLimit {
            let iterations = trace.len();
            warnings.push(Warning::StillRising { iterations, remaining: rise_to_come(&trace) });
        }
        let names = self.data.column_names();
        let at_floor = |&j: &usize| psi[j] <= self.floors[j] * (1.0 + 1e-9);
        let columns: Vec<String> = (0..psi.len()).filter(at_floor).map(|j| names[j].clone()).collect();
        if !columns.is_empty() {
            warnings.push(Warning::NoiseAtFloor { columns });
        }
        warnings.extend(Warning::of_unidentified(&Spec::factor_analysis(self.n_components), psi.len()));
        // Wᵀ Ψ⁻¹ W is diagonal and descending as it comes.
        w.scale_rows(&self.scale);
        let psi = psi.iter().zip(&self.scale).map(|(p, s)| p * s * s).collect();
        let model = LinearGaussian::new(w, self.mean.clone(), Noise::Diagonal(psi))?
            .with_scale(self.standardized.then(|| self.scale.clone()))?
            .signed();
        let value = match trace.last() {
            Some(&value) if known => value,
            _ => model.log_likelihood(self.data)?,
        };
        let objective = Objective { kind: ObjectiveKind::LogLikelihood, value };
        let report = FitReport::new(objective, trace, termination, warnings);
        Ok(Fit { model, draws: None, report })
    }
}

/// `Ψ^½ V_q (Θ_q − I)₊^½`
fn loadings(found: &Leading, psi: &[f64]) -> Matrix {
    let mut w = found.vectors.clone();
    w.scale_columns(&found.values.iter().map(|t| (t - 1.0).max(0.0).sqrt()).collect::<Vec<_>>());
    w.scale_rows(&psi.iter().map(|v| v.sqrt()).collect::<Vec<_>>());
    w
}
