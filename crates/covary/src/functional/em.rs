//! Penalized EM for functional PCA [M 2.10].

use super::basis::{Basis, LOCAL};
use super::design::{Curves, Design, Rows, add_gram};
use super::information::Information;
use super::model::FunctionalPca;
use super::start::start;
use crate::infer::options::{Setting, one_method, options, start as given};
use crate::infer::{
    Aitken, Fit, FitReport, Objective, ObjectiveKind, Observer, Step, Termination, Warning, extrapolated,
    quadratic,
};
use crate::linalg::{Cholesky, dot, packed};
use crate::parallel::{add, over_pieces};
use crate::{Dataset, Error, Estimator, Matrix, Spec};
use std::f64::consts::PI;

options! {
    /// EM for curves at irregular times, exact however few points a curve has. Roughness of the mean and of the
    /// components is penalized; how much is estimated with them (REML) unless it is given.
    ///
    /// ```
    /// use covary::{functional::{simulated, FunctionalEm}, Estimator, Spec};
    /// let (table, truth) = simulated(100, 6, /* seed */ 1);
    /// let fit = FunctionalEm::default().fit(&table, &Spec::ppca(2))?;
    /// let times = fit.model.basis().grid(50);
    /// let (found, right) = (fit.model.eigenfunctions(&times)?, truth.eigenfunctions(&times)?);
    /// let error = (0..50).map(|i| (found.values[(i, 0)] - right.values[(i, 0)]).powi(2)).sum::<f64>() / 50.0;
    /// assert!(error < 0.05);
    /// # Ok::<(), covary::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct FunctionalEm {
        /// How many splines; if `None`, twice the points of a curve on average, but from 10 to 30: what they could follow beyond the
        /// curves is for the smoothing to restrain.
        pub basis_size: Option<usize> = None,
        /// The first and the last time; that of the table unless something else is said.
        pub interval: Interval = Interval::OfTable,
        /// How much roughness is penalized.
        pub smoothing: Smoothing = Smoothing::Reml,
        /// Most iterations.
        pub max_iterations: usize = 1000,
        /// Stop when the estimated remaining gain is below this many nats in total [M 1.4.5]. 0 runs all iterations.
        pub tolerance: f64 = 1e-4,
        /// Whether slow climbs are extrapolated by SQUAREM.
        pub accelerate: bool = true,
        /// Parameters to start from, instead of principal components of smoothed curves.
        pub init: Option<Box<FunctionalPca>> = None,
    }
}

/// The times that a model of curves is about.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Interval {
    /// From the first to the last of the table.
    #[default]
    OfTable,
    /// From one time to another, such as a whole day although nothing was observed at midnight.
    Given(f64, f64),
}

/// How much roughness is penalized: λ of `½ λ ∫ f″(t)² dt`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Smoothing {
    /// By the marginal likelihood of mean and components, each with its own λ [M 2.10.1].
    #[default]
    Reml,
    /// These, in units of one over the squared values and cubed times. 0 leaves splines as they are.
    Given {
        /// Of the mean.
        mean: f64,
        /// Of the components, scaled by the standard deviations of their scores.
        components: f64,
    },
}

impl Setting for Interval {
    fn text(&self) -> String {
        match self {
            Self::OfTable => "table".to_owned(),
            Self::Given(from, to) => format!("{from:?}:{to:?}"),
        }
    }

    fn set(&mut self, text: &str) -> Result<(), &'static str> {
        const EXPECTED: &str = "table, or two times such as 0:24";
        *self = match text.trim() {
            "table" => Self::OfTable,
            given => {
                let (from, to) = given.split_once(':').ok_or(EXPECTED)?;
                let number = |text: &str| text.trim().parse::<f64>().map_err(|_| EXPECTED);
                Self::Given(number(from)?, number(to)?)
            }
        };
        Ok(())
    }
}

impl Setting for Smoothing {
    fn text(&self) -> String {
        match self {
            Self::Reml => "reml".to_owned(),
            Self::Given { mean, components } => format!("{mean:?}:{components:?}"),
        }
    }

    fn set(&mut self, text: &str) -> Result<(), &'static str> {
        const EXPECTED: &str = "reml, or one number, or two such as 0.1:1 for mean and components";
        let number = |text: &str| text.trim().parse::<f64>().map_err(|_| EXPECTED);
        *self = match text.trim() {
            "reml" => Self::Reml,
            given => {
                let (mean, components) = given.split_once(':').unwrap_or((given, given));
                Self::Given { mean: number(mean)?, components: number(components)? }
            }
        };
        Ok(())
    }
}

given!(Option<Box<FunctionalPca>>: "smoothed", "smoothed; given parameters cannot be named");

one_method!(FunctionalEm = "curve-em");

/// EM counts as slow when it removes less than this share of the remaining error per step …
const SLOW_RATE: f64 = 0.5;
/// … judged from this many steps on.
const STEPS_TO_JUDGE: usize = 4;
/// Rounds of smoothing, and how little λ changes in the last.
const ROUNDS: usize = 40;
const SETTLED: f64 = 0.02;
/// Steps of EM, and the tolerance, between two changes of λ.
const STEPS_PER_ROUND: usize = 20;
const ROUGH: f64 = 0.1;
/// Most steps for the sizes of the components.
const SIZING: usize = 500;
/// Splines unless another number is asked for: the fewest and the most.
const FEWEST: usize = 10;
const MOST: usize = 30;
/// How far λ may go from where penalty and information weigh the same.
const FARTHEST: f64 = 1e8;

impl Estimator for FunctionalEm {
    type Model = FunctionalPca;

    fn fit_observed(
        &self,
        data: &Dataset,
        spec: &Spec,
        observer: &mut dyn Observer,
    ) -> Result<Fit<FunctionalPca>, Error> {
        let curves = Curves::of(data)?;
        curves.check()?;
        let basis = self.basis(&curves)?;
        self.check(&curves, &basis, spec)?;
        let units = units(&curves)?;
        let (_, scale) = units;
        let design = Design::new(&curves, &basis, units)?;
        let problem = Problem {
            design: &design,
            penalty: basis.penalty(),
            curvature: basis.curvature(),
            floor: spec.floor(),
            q: spec.n_components,
            ln_scale: scale.ln(),
        };
        let mut point = match &self.init {
            Some(given) => Parameters::of(given, units),
            None => start(&design, &basis, spec.n_components, problem.floor)?,
        };
        let mut stopped = false;
        let lambda = match self.smoothing {
            Smoothing::Given { mean, components } => {
                Lambda { mean: mean * scale * scale, components: components * scale * scale }
            }
            Smoothing::Reml => {
                let found = self.smooth(&problem, point, observer)?;
                (point, stopped) = (found.1, found.2);
                found.0
            }
        };
        let climb = self.climb(&Walk { problem: &problem, lambda }, point, stopped, observer);
        let (mut parameters, mut report) = (climb.parameters, climb.report);
        if self.smoothing == Smoothing::Reml && !stopped {
            let gain = problem.resize(&mut parameters, self.tolerance);
            report.objective.value += gain;
            report.trace.push(report.objective.value);
        }
        parameters.orient(&basis, spec.n_components)?;
        let information = Information::new(&design, &parameters, spec.n_components);
        let covariance = information.covariance(&parameters, &problem.penalty, lambda)?;
        let model = parameters.model(basis, units, covariance, lambda)?;
        if model.noise() <= spec.floor() * scale * scale * (1.0 + 1e-9) {
            report.warnings.push(Warning::NoiseAtFloor { columns: vec![value_name(data)] });
        }
        Ok(Fit { model, draws: None, report })
    }
}

/// What a point's value is called.
fn value_name(data: &Dataset) -> String {
    if data.points().is_some() { data.column_names()[0].clone() } else { "all columns".to_owned() }
}

/// Mean and standard deviation of all values, which units of the fit are made of.
fn units(curves: &Curves) -> Result<(f64, f64), Error> {
    let n = curves.observed().count() as f64;
    let center = curves.observed().map(|p| p.value / n).sum::<f64>();
    let variance = curves.observed().map(|p| (p.value - center).powi(2) / n).sum::<f64>();
    if variance > 0.0 && variance.is_finite() {
        return Ok((center, variance.sqrt()));
    }
    Err(Error::OutOfRange {
        name: "the variance of all points",
        value: variance,
        bound: "finite and above 0",
    })
}

/// λ in units of the fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Lambda {
    pub(super) mean: f64,
    pub(super) components: f64,
}

/// What is fitted to.
pub(super) struct Problem<'a> {
    pub(super) design: &'a Design,
    pub(super) penalty: Matrix,
    curvature: Matrix,
    floor: f64,
    pub(super) q: usize,
    /// From densities in units of the fit to those of the table.
    ln_scale: f64,
}

impl Problem<'_> {
    /// `∫ f″(t)² dt` of a function with these coefficients.
    fn roughness(&self, v: &[f64]) -> f64 {
        self.curvature.rows().map(|row| dot(row, v).powi(2)).sum()
    }

    /// Sizes of the components and the noise by maximum likelihood, what the components span being as it is: steps of EM for the
    /// covariance of the scores [M 2.10.1]. The penalty is on components as large as their scores are, so that it draws their sizes to
    /// 0 beside making them smooth. What the log-likelihood gains.
    fn resize(&self, parameters: &mut Parameters, tolerance: f64) -> f64 {
        let (q, size) = (self.q, self.design.basis_size);
        let mut aitken = Aitken::new(tolerance);
        let mut first = None;
        let mut last = 0.0;
        for _ in 0..SIZING {
            let sums = self.sizes(parameters);
            last = sums.log_likelihood;
            first.get_or_insert(last);
            if aitken.push(last) {
                break;
            }
            let mut covariance = Matrix::from_vec(q, q, sums.second).expect("a square");
            covariance.as_mut_slice().iter_mut().for_each(|c| *c /= sums.curves);
            covariance.symmetrize();
            let Some(factor) = Cholesky::new(&covariance) else { break };
            let theta = parameters.theta(q, size).dot(factor.lower());
            parameters.v[..q * size].copy_from_slice(theta.transpose().as_slice());
            let left = parameters.noise * sums.left / self.design.n_points() as f64;
            parameters.noise = left.max(self.floor);
        }
        last - first.unwrap_or(last)
    }

    fn sizes(&self, parameters: &Parameters) -> Sizes {
        let (q, size) = (self.q, self.design.basis_size);
        let work = |curves: std::ops::Range<usize>| {
            let mut out = Sizes { second: vec![0.0; q * q], left: 0.0, curves: 0.0, log_likelihood: 0.0 };
            for rows in curves.map(|i| self.design.curve(i)).filter(|rows| !rows.values.is_empty()) {
                let known = Known::new(rows, parameters, q, size);
                let s = known.covariance();
                add(&mut out.second, s.as_slice());
                for (k, m) in known.mean.iter().enumerate() {
                    crate::linalg::rows::add_multiple(&mut out.second[k * q..][..q], *m, &known.mean);
                }
                // ‖y − Φ v₀ − F m‖² + tr F S Fᵀ, in units of σ², as FᵀF = σ² (S⁻¹ − I).
                out.left += known.distance - dot(&known.mean, &known.mean) + q as f64 - s.trace();
                out.curves += 1.0;
                out.log_likelihood += known.log_density;
            }
            out
        };
        over_pieces(self.design.n_curves(), 1, work, |a, b| {
            add(&mut a.second, &b.second);
            a.left += b.left;
            a.curves += b.curves;
            a.log_likelihood += b.log_likelihood;
        })
    }
}

/// Sums over curves, which sizes are made from.
struct Sizes {
    /// `Σ m mᵀ + S`.
    second: Vec<f64>,
    /// Squares that the scores leave, in units of the noise.
    left: f64,
    curves: f64,
    log_likelihood: f64,
}

/// Coefficients of components and mean, one after the other, and the noise.
#[derive(Debug, Clone)]
pub(super) struct Parameters {
    pub(super) v: Vec<f64>,
    pub(super) noise: f64,
}

impl Parameters {
    /// Those of a model, in units of the fit.
    pub(super) fn of(model: &FunctionalPca, (center, scale): (f64, f64)) -> Self {
        let mut v: Vec<f64> = model.loadings().transpose().into_vec().iter().map(|c| c / scale).collect();
        v.extend(model.mean_coefficients().iter().map(|c| (c - center) / scale));
        Self { v, noise: model.noise() / (scale * scale) }
    }

    /// Component `k`, or the mean if there are as many.
    pub(super) fn function(&self, k: usize, basis_size: usize) -> &[f64] {
        &self.v[k * basis_size..][..basis_size]
    }

    /// Θ, a component in each column.
    pub(super) fn theta(&self, q: usize, basis_size: usize) -> Matrix {
        Matrix::from_fn(basis_size, q, |b, k| self.v[k * basis_size + b])
    }

    /// Rotates components to eigenfunctions, largest first, of positive integral.
    fn orient(&mut self, basis: &Basis, q: usize) -> Result<(), Error> {
        let theta = super::model::oriented(&self.theta(q, basis.size()), basis)?;
        self.v[..q * basis.size()].copy_from_slice(theta.transpose().as_slice());
        Ok(())
    }

    /// In units of the table.
    fn model(
        &self,
        basis: Basis,
        (center, scale): (f64, f64),
        mut covariance: Matrix,
        lambda: Lambda,
    ) -> Result<FunctionalPca, Error> {
        let size = basis.size();
        let q = self.v.len() / size - 1;
        let mut theta = self.theta(q, size);
        theta.as_mut_slice().iter_mut().for_each(|c| *c *= scale);
        // The splines sum to 1, so that a constant is the same number for each.
        let mean = self.function(q, size).iter().map(|c| center + c * scale).collect();
        let square = scale * scale;
        covariance.as_mut_slice().iter_mut().for_each(|c| *c *= square);
        let smoothing = [lambda.mean / square, lambda.components / square];
        FunctionalPca::new(basis, mean, theta, self.noise * square)?
            .with_uncertainty(covariance)
            .map(|model| model.with_smoothing(smoothing))
    }
}

/// What is known of the scores of a curve.
pub(super) struct Known {
    /// Factor of `S⁻¹ = I + FᵀF / σ²`, packed.
    factor: Vec<f64>,
    /// Their mean.
    pub(super) mean: Vec<f64>,
    /// Log-density of the points.
    pub(super) log_density: f64,
    /// Their squared Mahalanobis distance from the mean.
    pub(super) distance: f64,
    /// `F`, a row for each point.
    pub(super) loadings: Vec<f64>,
}

impl Known {
    /// `S⁻¹ = I + FᵀF / σ²`, `m = S Fᵀ (y − Φ v₀) / σ²`.
    pub(super) fn new(rows: Rows<'_>, parameters: &Parameters, q: usize, size: usize) -> Self {
        let (n, noise) = (rows.values.len(), parameters.noise);
        let mut loadings = vec![0.0; n * q];
        let mut factor = vec![0.0; packed::len(q)];
        let (mut mean, mut squares) = (vec![0.0; q], 0.0);
        for (j, (local, y)) in rows.locals.iter().zip(rows.values).enumerate() {
            let f = &mut loadings[j * q..][..q];
            for (k, f) in f.iter_mut().enumerate() {
                *f = local.dot(parameters.function(k, size));
            }
            let left = y - local.dot(parameters.function(q, size));
            squares += left * left;
            packed::add_outer(&mut factor, f, 1.0 / noise);
            mean.iter_mut().zip(&*f).for_each(|(m, f)| *m += f * left / noise);
        }
        (0..q).for_each(|k| factor[packed::len(k + 1) - 1] += 1.0);
        let positive = packed::cholesky(&mut factor, q);
        debug_assert!(positive, "I plus a sum of squares is positive definite");
        let ln_det = 2.0 * (0..q).map(|k| factor[packed::len(k + 1) - 1].ln()).sum::<f64>();
        packed::solve_lower(&factor, &mut mean);
        let explained = dot(&mean, &mean);
        packed::solve_upper(&factor, &mut mean);
        let distance = (squares / noise - explained).max(0.0);
        let log_density = -0.5 * (n as f64 * (2.0 * PI * noise).ln() + ln_det + distance);
        Self { factor, mean, log_density, distance, loadings }
    }

    /// `S g`.
    pub(super) fn times_covariance(&self, g: &mut [f64]) {
        packed::solve_lower(&self.factor, g);
        packed::solve_upper(&self.factor, g);
    }

    /// S.
    pub(super) fn covariance(&self) -> Matrix {
        let q = self.mean.len();
        let mut out = Matrix::identity(q);
        (0..q).for_each(|k| self.times_covariance(out.row_mut(k)));
        out.symmetrize();
        out
    }

    /// `L⁻ᵀ z`, which has covariance S if z has I.
    pub(super) fn spread(&self, z: &mut [f64]) {
        packed::solve_upper(&self.factor, z);
    }
}

/// Sums over curves, which the M-step is made from.
struct Moments {
    /// `Σ E_i ⊗ Φᵢᵀ Φᵢ`, bands of each pair of functions.
    gram: Vec<f64>,
    /// `Σ ζ_i ⊗ Φᵢᵀ yᵢ`.
    right: Vec<f64>,
    squares: f64,
    log_likelihood: f64,
}

impl Moments {
    fn new(problem: &Problem<'_>, parameters: &Parameters) -> Self {
        let (q, size) = (problem.q, problem.design.basis_size);
        let functions = q + 1;
        let work = |curves: std::ops::Range<usize>| {
            let mut out = Self {
                gram: vec![0.0; packed::len(functions) * size * LOCAL],
                right: vec![0.0; functions * size],
                squares: 0.0,
                log_likelihood: 0.0,
            };
            let (mut own, mut seen) = (vec![0.0; size * LOCAL], vec![0.0; size]);
            for i in curves {
                let rows = problem.design.curve(i);
                if rows.values.is_empty() {
                    continue;
                }
                let known = Known::new(rows, parameters, q, size);
                out.log_likelihood += known.log_density;
                own.fill(0.0);
                seen.fill(0.0);
                add_gram(rows.locals, &mut own);
                for (local, y) in rows.locals.iter().zip(rows.values) {
                    local.add_to(*y, &mut seen);
                    out.squares += y * y;
                }
                let covariance = known.covariance();
                for k in 0..functions {
                    let a = if k < q { known.mean[k] } else { 1.0 };
                    crate::linalg::rows::add_multiple(&mut out.right[k * size..][..size], a, &seen);
                    for l in 0..=k {
                        let b = if l < q { known.mean[l] } else { 1.0 };
                        let e = a * b + if k < q { covariance[(k, l)] } else { 0.0 };
                        let place = (packed::len(k) + l) * size * LOCAL;
                        crate::linalg::rows::add_multiple(&mut out.gram[place..][..size * LOCAL], e, &own);
                    }
                }
            }
            out
        };
        over_pieces(problem.design.n_curves(), 1, work, |a, b| {
            add(&mut a.gram, &b.gram);
            add(&mut a.right, &b.right);
            a.squares += b.squares;
            a.log_likelihood += b.log_likelihood;
        })
    }

    /// The matrix of the normal equations, in full.
    fn system(&self, functions: usize, size: usize) -> Matrix {
        let mut out = Matrix::zeros(functions * size, functions * size);
        for k in 0..functions {
            for l in 0..=k {
                let bands = &self.gram[(packed::len(k) + l) * size * LOCAL..][..size * LOCAL];
                for b in 0..size {
                    for (c, value) in (b..size.min(b + LOCAL)).zip(&bands[b * LOCAL..]) {
                        for (k, l) in [(k, l), (l, k)] {
                            out[(k * size + b, l * size + c)] = *value;
                            out[(k * size + c, l * size + b)] = *value;
                        }
                    }
                }
            }
        }
        out
    }
}

/// What a climb needs at every step.
struct Walk<'a> {
    problem: &'a Problem<'a>,
    lambda: Lambda,
}

/// Parameters, their E-step, and their objective.
struct Point {
    parameters: Parameters,
    moments: Moments,
    objective: f64,
}

struct Climb {
    parameters: Parameters,
    report: FitReport,
}

impl Walk<'_> {
    fn at(&self, parameters: Parameters) -> Point {
        let moments = Moments::new(self.problem, &parameters);
        let (q, size) = (self.problem.q, self.problem.design.basis_size);
        let rough = |k: usize| self.problem.roughness(parameters.function(k, size));
        let components: f64 = (0..q).map(rough).sum();
        let penalty = 0.5 * (self.lambda.components * components + self.lambda.mean * rough(q));
        let jacobian = self.problem.design.n_points() as f64 * self.problem.ln_scale;
        let objective = moments.log_likelihood - penalty - jacobian;
        Point { parameters, moments, objective }
    }

    /// The M-step: a ridge regression of all points on all functions, then the noise.
    fn maximized(&self, from: &Point) -> Parameters {
        let Problem { q, penalty, design, floor, .. } = self.problem;
        let (functions, size) = (q + 1, design.basis_size);
        let sums = &from.moments;
        let plain = sums.system(functions, size);
        let mut system = plain.clone();
        for k in 0..functions {
            let lambda = if k < *q { self.lambda.components } else { self.lambda.mean };
            let weight = from.parameters.noise * lambda;
            for b in 0..size {
                let row = &mut system.row_mut(k * size + b)[k * size..][..size];
                row.iter_mut().zip(penalty.row(b)).for_each(|(s, p)| *s += weight * p);
            }
        }
        // What no point tells of stays small.
        let n = functions * size;
        let ridge = 1e-12 * plain.trace() / n as f64;
        (0..n).for_each(|i| system[(i, i)] += ridge);
        let mut v = sums.right.clone();
        match Cholesky::new(&system) {
            Some(factor) => factor.solve(&mut v),
            None => v.clone_from(&from.parameters.v),
        }
        let left = sums.squares - 2.0 * dot(&v, &sums.right) + quadratic(&plain, &v);
        let noise = (left / design.n_points() as f64).max(*floor);
        Parameters { v, noise }
    }

    fn next(&self, from: &Point) -> Point {
        self.at(self.maximized(from))
    }

    /// Two steps of EM, and as far beyond as they promise if that is no worse than one of them (SQUAREM).
    fn cycle(&self, from: &Point, aitken: &mut Aitken) -> Point {
        aitken.extrapolate(aitken.rate());
        let first = self.next(from);
        let second = self.maximized(&first);
        let coordinates = |p: &Parameters| {
            let mut t = p.v.clone();
            t.push(p.noise.ln());
            t
        };
        let (beyond, rate) = extrapolated(
            &coordinates(&from.parameters),
            &coordinates(&first.parameters),
            &coordinates(&second),
        );
        aitken.extrapolate(rate);
        if let Some(mut v) = beyond {
            let noise = v.pop().expect("the noise").exp();
            if noise.is_finite() && v.iter().all(|c| c.is_finite()) {
                let there = self.at(Parameters { v, noise: noise.max(self.problem.floor) });
                if there.objective >= first.objective {
                    return there;
                }
            }
        }
        self.at(second)
    }
}

impl FunctionalEm {
    /// The splines that a table is fitted with.
    fn basis(&self, curves: &Curves) -> Result<Basis, Error> {
        if let Some(given) = &self.init {
            return Ok(given.basis().clone());
        }
        let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
        let (mut points, mut informative) = (0, 0);
        for i in 0..curves.len() {
            for point in curves.curve(i) {
                (from, to) = (from.min(point.time), to.max(point.time));
            }
            let n = curves.curve(i).iter().filter(|p| !p.value.is_nan()).count();
            points += n;
            informative += usize::from(n > 0);
        }
        if let Interval::Given(first, last) = self.interval {
            (from, to) = (first, last);
        }
        let size = self.basis_size.unwrap_or_else(|| (2 * points / informative.max(1)).clamp(FEWEST, MOST));
        Basis::new(from, to, size)
    }

    fn check(&self, curves: &Curves, basis: &Basis, spec: &Spec) -> Result<(), Error> {
        let range = |name, value: f64, bound| Err(Error::OutOfRange { name, value, bound });
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            return range("tolerance", self.tolerance, "finite and not negative");
        }
        if let Smoothing::Given { mean, components } = self.smoothing
            && let Some(&value) = [mean, components].iter().find(|l| !(l.is_finite() && **l >= 0.0))
        {
            return range("smoothing", value, "finite and not negative");
        }
        if !spec.prior.is_flat() {
            return Err(Error::Unsupported {
                method: "functional PCA",
                what: "a prior of the loadings",
                instead: "a flat one; smoothing restrains them",
            });
        }
        if spec.n_components == 0 {
            return range("n_components", 0.0, "at least 1: without components curves do not differ");
        }
        if let Some(given) = &self.init
            && given.n_components() != spec.n_components
        {
            let (expected, got) = (spec.n_components, given.n_components());
            return Err(Error::WrongLength { what: "components of the start", expected, got });
        }
        if spec.n_components > basis.size() {
            return Err(Error::TooManyEigenfunctions { asked: spec.n_components, basis: basis.size() });
        }
        let rows = (0..curves.len()).filter(|&i| curves.curve(i).iter().any(|p| !p.value.is_nan())).count();
        if spec.n_components >= rows {
            let (asked, max) = (spec.n_components, rows - 1);
            return Err(Error::TooManyComponents { asked, rows, columns: basis.size(), max });
        }
        Ok(())
    }

    /// λ by the marginal likelihood, its update that of Wood and Fasiolo (2017), between steps of EM [M 2.10.1]. Whether
    /// the observer ended it comes last.
    fn smooth(
        &self,
        problem: &Problem<'_>,
        mut parameters: Parameters,
        observer: &mut dyn Observer,
    ) -> Result<(Lambda, Parameters, bool), Error> {
        let (q, size) = (problem.q, problem.design.basis_size);
        let information = Information::new(problem.design, &parameters, q);
        let weight = problem.penalty.trace();
        // Where penalty and information weigh the same.
        let even = Lambda {
            mean: information.mean.trace() / weight,
            components: information.components.trace() / (q as f64 * weight),
        };
        let mut lambda = Lambda { mean: 0.1 * even.mean, components: 0.1 * even.components };
        let mut iteration = 0;
        for _ in 0..ROUNDS {
            let walk = Walk { problem, lambda };
            let mut aitken = Aitken::new(ROUGH);
            let mut point = walk.at(parameters);
            aitken.push(point.objective);
            for step in 0..STEPS_PER_ROUND.min(self.max_iterations) {
                let slow = step > STEPS_TO_JUDGE && aitken.rate() > SLOW_RATE;
                point = if slow { walk.cycle(&point, &mut aitken) } else { walk.next(&point) };
                iteration += 1;
                if observer.step(&Step { iteration, objective: point.objective }).is_break() {
                    return Ok((lambda, point.parameters, true));
                }
                if aitken.push(point.objective) {
                    break;
                }
            }
            parameters = point.parameters;
            let before = lambda;
            let freedom = Information::new(problem.design, &parameters, q).freedom(
                &parameters,
                &problem.penalty,
                lambda,
            )?;
            let dims = (size - 2) as f64;
            let rough = |k: usize| problem.roughness(parameters.function(k, size));
            let next = |dims: f64, trace: f64, own: f64, rough: f64, even: f64| {
                let next = (dims - own * trace).max(0.0) / rough.max(f64::MIN_POSITIVE);
                next.clamp(even / FARTHEST, even * FARTHEST)
            };
            lambda = Lambda {
                mean: next(dims, freedom.mean, lambda.mean, rough(q), even.mean),
                components: next(
                    q as f64 * dims,
                    freedom.components,
                    lambda.components,
                    (0..q).map(rough).sum(),
                    even.components,
                ),
            };
            let moved = |a: f64, b: f64| (a / b).ln().abs();
            if moved(lambda.mean, before.mean).max(moved(lambda.components, before.components)) < SETTLED {
                break;
            }
        }
        Ok((lambda, parameters, false))
    }

    fn climb(&self, walk: &Walk<'_>, start: Parameters, stopped: bool, observer: &mut dyn Observer) -> Climb {
        let mut point = walk.at(start);
        let (mut trace, mut warnings) = (vec![point.objective], Vec::new());
        let mut aitken = Aitken::new(self.tolerance);
        aitken.push(point.objective);
        let mut termination = if stopped { Termination::Interrupted } else { Termination::IterationLimit };
        while trace.len() <= self.max_iterations && !stopped {
            let slow = self.accelerate && trace.len() > STEPS_TO_JUDGE && aitken.rate() > SLOW_RATE;
            let before = point.objective;
            point = if slow { walk.cycle(&point, &mut aitken) } else { walk.next(&point) };
            trace.push(point.objective);
            let (iteration, objective) = (trace.len() - 1, point.objective);
            if objective < before - 1e-9 * (1.0 + before.abs()) {
                warnings.push(Warning::ObjectiveFell { iteration, by: before - objective });
            }
            if aitken.push(objective) {
                termination = Termination::Converged;
                break;
            }
            if observer.step(&Step { iteration, objective }).is_break() {
                termination = Termination::Interrupted;
                break;
            }
        }
        if termination == Termination::IterationLimit {
            warnings
                .push(Warning::StillRising { iterations: trace.len() - 1, remaining: aitken.remaining() });
        }
        let unpenalized = walk.lambda == Lambda { mean: 0.0, components: 0.0 };
        let kind = if unpenalized { ObjectiveKind::LogLikelihood } else { ObjectiveKind::LogPosterior };
        let report = FitReport {
            objective: Objective { kind, value: point.objective },
            trace,
            termination,
            warnings,
            relevance: Vec::new(),
            monitored: Vec::new(),
        };
        Climb { parameters: point.parameters, report }
    }
}
