//! Exact EM, complete or with gaps, mean estimated too ([M 1.4] and [M 1.5]).

mod expectation;
pub(super) mod moments;
mod online;
pub(super) mod parameters;
mod pilot;
mod sparse;
pub(super) mod squarem;
pub(super) mod start;
pub(super) mod stop;

pub use moments::{Gradient, LatentMoments};
pub use online::OnlineEm;
pub(crate) use pilot::PilotStart;
pub use sparse::{Nonzero, PathPoint, SparseEm};
pub(super) use start::unseen_pairs;

use super::Estimator;
use super::options::{options, words};
use super::pass::{Rows, Task};
use super::report::{Fit, ObjectiveKind, Observer, Warning};
use crate::data::Facts;
use crate::model::{LinearGaussian, RowDistance, Tails};
use crate::spec::{LoadingsPrior, NoiseFamily};
use crate::{Dataset, Error, Spec};
use moments::{Loadings, Maximize};
use parameters::{Frame, Parameters};
use stop::Ascent;

options! {
    /// EM over the rows grouped by their gaps; PX-EM by default.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::{Em, Spectral}, Estimator, Spec};
    /// let (table, _) = simulate::ppca(Shape { rows: 200, columns: 6, n_components: 2 }, /* seed */ 3);
    /// let em = Em::default().fit(&table, &Spec::ppca(2))?.report.objective.value;
    /// let closed = Spectral::default().fit(&table, &Spec::ppca(2))?.report.objective.value;
    /// assert!((em - closed).abs() < 1e-6);   // without gaps EM reaches the closed form
    /// # Ok::<(), covary::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct Em {
        /// Most iterations. The default, 2000, is far beyond what PX-EM needs on well-posed tables.
        pub max_iterations: usize = 2000,
        /// Stop when the estimated remaining gain is below this many nats in total [M 1.4.5]. A
        /// remaining gain g leaves the parameters about √(2g) standard errors from the optimum. 0 runs
        /// all iterations.
        pub tolerance: f64 = 1e-6,
        /// Parameter expansion: lets the latent covariance move for one step and folds it back; up to
        /// 100× fewer iterations. Ignored with a prior, for which it is not an ascent step.
        pub parameter_expansion: bool = true,
        /// Extrapolation of slow fits.
        pub acceleration: Acceleration = Acceleration::Auto,
        /// Where to start.
        pub init: Init = Init::Spectral,
        /// Further starts, jittered from the first, of which the best is kept: with few observed cells
        /// the likelihood may have several maxima.
        pub restarts: usize = 0,
        /// Seed of the jitter and of [`Init::Random`].
        pub seed: u64 = 0,
        /// Whether the mean is estimated; if not, it stays where the start puts it.
        pub estimate_mean: bool = true,
    }
}

/// When to extrapolate by SQUAREM (Varadhan & Roland 2008).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceleration {
    /// When most cells are gone, or as soon as the observed rate of convergence is slow.
    Auto,
    /// Never.
    Never,
    /// From the first iteration.
    Squarem,
}

/// Where EM starts.
#[derive(Debug, Clone, PartialEq)]
pub enum Init {
    /// Leading eigenpairs of the available-case covariance [M 1.5.3].
    Spectral,
    /// Small random loadings.
    Random,
    /// These parameters.
    Given(Box<LinearGaussian>),
}

words!(Acceleration { Auto = "auto", Never = "never", Squarem = "squarem" }, "auto, never or squarem");

words!(
    Init { Spectral = "spectral", Random = "random"; Self::Given(_) => "given" },
    "spectral or random; given parameters cannot be named"
);

/// EM counts as slow when it removes less than this share of the remaining error per step.
const SLOW_RATE: f64 = 0.8;
/// Steps before the rate is trusted.
const STEPS_TO_JUDGE: usize = 8;

impl Estimator for Em {
    type Model = LinearGaussian;

    fn fit_observed(&self, data: &Dataset, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        self.fit_rows(data, spec, observer)
    }

    fn fit_rows(&self, rows: &dyn Rows, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        self.fit_by(rows, spec, Rule::Equal, observer)
    }
}

impl Em {
    /// Fits rows of heavy tails, which at every step are those that `tails` finds for rows at these distances.
    pub(super) fn fit_tailed(
        &self,
        data: &Dataset,
        spec: &Spec,
        tails: &dyn Fn(&[RowDistance]) -> Result<Tails, Error>,
        observer: &mut dyn Observer,
    ) -> Result<Fit, Error> {
        self.fit_by(data, spec, Rule::Tailed(data, tails), observer)
    }

    fn fit_by(
        &self,
        rows: &dyn Rows,
        spec: &Spec,
        rule: Rule<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Fit, Error> {
        let facts = &rows.facts()?;
        spec.check_facts(facts)?;
        let varies = |j: usize| !facts.is_constant(j);
        let constant = spec.check_variances_of(facts.observed_variances(), facts.column_names(), &varies)?;
        if !(self.tolerance >= 0.0 && self.tolerance.is_finite()) {
            let value = self.tolerance;
            return Err(Error::OutOfRange { name: "tolerance", value, bound: "finite and not negative" });
        }
        let frame = Frame::of_columns(facts.observed_means(), facts.observed_variances(), spec);
        let first = start::parameters(&self.init, rows, spec, &frame, self.seed)?;
        let problem = Problem { rows, facts, spec, frame: &frame, rule, loadings: Loadings::Free };
        let mut best = self.climb(problem, first.clone(), observer)?;
        for k in 1..=self.restarts {
            let jittered = start::jitter(&first, self.seed.wrapping_add(k as u64));
            let other = self.climb(problem, jittered, observer)?;
            if other.ascent.value() > best.ascent.value() {
                best = other;
            }
        }
        if !constant.is_empty() {
            best.ascent.warnings.push(Warning::ConstantColumns { columns: constant });
        }
        if matches!(rule, Rule::Tailed(..)) && best.tails.is_gaussian() {
            best.ascent.warnings.push(Warning::GaussianTails);
        }
        best.into_fit(problem)
    }

    /// The same method, from a fitted model: for a table that differs little from the one it was fitted
    /// to, such as the same with cells hidden.
    ///
    /// The end does not remember the start. Converged, less than [`tolerance`](Self::tolerance) nats
    /// are left to gain, wherever the climb began: at 1e-6 the parameters are 0.0014 of their standard
    /// errors from the maximum, and what the model had seen in cells now hidden is gone with the rest.
    /// It only saves steps: 20000 × 100 cells, 10 % gaps and 10 components took 4 instead of 6, and no
    /// search for a start.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::Em, Estimator, Spec};
    /// let (whole, _) = simulate::ppca(Shape { rows: 300, columns: 6, n_components: 2 }, /* seed */ 1);
    /// let spec = Spec { standardize: true, ..Spec::ppca(2) };
    /// let near = Em::default().fit(&whole, &spec)?.model;
    /// let hidden = simulate::hide(&whole, 0.1, /* seed */ 2);
    /// let (cold, warm) = (Em::default().fit(&hidden, &spec)?, Em::default().from_model(&near).fit(&hidden, &spec)?);
    /// assert!((cold.report.objective.value - warm.report.objective.value).abs() < 1e-6);
    /// assert!(warm.report.n_iterations() <= cold.report.n_iterations());
    /// # Ok::<(), covary::Error>(())
    /// ```
    #[must_use]
    pub fn from_model(&self, model: &LinearGaussian) -> Self {
        Self { init: Init::Given(Box::new(model.clone())), ..self.clone() }
    }

    fn climb(
        &self,
        problem: Problem<'_>,
        start: Parameters,
        observer: &mut dyn Observer,
    ) -> Result<Climb, Error> {
        let Problem { facts, spec, .. } = problem;
        let maximize = Maximize {
            expand: self.parameter_expansion,
            estimate_mean: self.estimate_mean,
            prior: &spec.prior,
            floor: spec.floor(),
        };
        let mut walk = Walk { problem, maximize, parameters: start };
        let sparse = 2 * facts.n_gaps() > facts.n_rows() * facts.n_columns();
        let mut moments = walk.expectation()?;
        let mut ascent = Ascent::new(self.tolerance, walk.objective(&moments));
        while ascent.goes_on(self.max_iterations) {
            let (steps, aitken) = (ascent.trace.len(), &mut ascent.aitken);
            let accelerate = match self.acceleration {
                Acceleration::Never => false,
                Acceleration::Squarem => true,
                Acceleration::Auto => sparse || (steps > STEPS_TO_JUDGE && aitken.rate() > SLOW_RATE),
            };
            if accelerate && self.max_iterations + 1 - steps >= squarem::STEPS {
                aitken.extrapolate(aitken.rate());
                let (end, rate) = squarem::cycle(&mut walk, &moments)?;
                moments = end;
                aitken.extrapolate(rate);
            } else {
                walk.parameters = walk.step(&moments);
                moments = walk.expectation()?;
            }
            ascent.take(walk.objective(&moments), observer);
        }
        Ok(Climb { parameters: walk.parameters, tails: moments.tails(), ascent: ascent.ended() })
    }
}

/// What is fitted to what.
#[derive(Clone, Copy)]
struct Problem<'a> {
    rows: &'a dyn Rows,
    facts: &'a Facts,
    spec: &'a Spec,
    frame: &'a Frame,
    rule: Rule<'a>,
    loadings: Loadings<'a>,
}

/// How rows count.
#[derive(Clone, Copy)]
enum Rule<'a> {
    /// All alike.
    Equal,
    /// Those of a table, each as often as it says.
    Weighted(&'a Dataset, &'a [f64]),
    /// Those of a table, the less the farther out they are.
    Tailed(&'a Dataset, &'a dyn Fn(&[RowDistance]) -> Result<Tails, Error>),
}

/// The fixed parts of one climb, and where it stands.
struct Walk<'a> {
    problem: Problem<'a>,
    maximize: Maximize<'a>,
    parameters: Parameters,
}

impl Walk<'_> {
    /// The E-step. Degrees of freedom that are estimated are the most likely ones at the parameters, so that the climb
    /// is one of the likelihood with these maximized out, and extrapolates in the other parameters alone.
    fn expectation(&self) -> Result<LatentMoments, Error> {
        let Problem { rows, spec, frame, rule, .. } = self.problem;
        let at = &self.parameters;
        match rule {
            Rule::Equal => {
                let sums = rows.pass(&Task::latent(frame, at))?;
                LatentMoments::of_numbers(frame, at, &sums.0)
            }
            Rule::Weighted(data, weights) => Ok(LatentMoments::of_weighted(data, frame, at, weights)),
            Rule::Tailed(data, tails) => {
                let rows = frame.model(at, spec)?.row_distances(data);
                Ok(LatentMoments::of_tailed(data, frame, at, tails(&rows)?, &rows))
            }
        }
    }

    /// The M-step.
    fn step(&self, moments: &LatentMoments) -> Parameters {
        self.maximize.step_of(moments, self.problem.loadings)
    }

    /// Log-likelihood plus log-prior, in the user's units, or less the penalty.
    fn objective(&self, moments: &LatentMoments) -> f64 {
        let at = &self.parameters;
        let penalty = match self.problem.loadings {
            Loadings::Penalized(penalty) => {
                let of_column =
                    |j: usize| moments.count(j) * at.w.row(j).iter().map(|w| w.abs()).sum::<f64>();
                penalty * (0..at.psi.len()).map(of_column).sum::<f64>()
            }
            _ => 0.0,
        };
        moments.log_likelihood() + at.log_prior(self.maximize.prior, self.problem.frame) - penalty
    }
}

/// A climb of the likelihood: where it stands and how it went.
struct Climb {
    parameters: Parameters,
    tails: Tails,
    ascent: Ascent,
}

impl Climb {
    fn into_fit(mut self, problem: Problem<'_>) -> Result<Fit, Error> {
        let Problem { rows, facts, spec, frame, loadings, .. } = problem;
        let fixed_axes = !matches!(loadings, Loadings::Free);
        let names = |columns: Vec<usize>| -> Vec<String> {
            columns.iter().map(|&j| facts.column_names()[j].clone()).collect()
        };
        let warnings = &mut self.ascent.warnings;
        let sparse: Vec<usize> = (0..facts.n_columns())
            .filter(|&j| facts.n_observed_by_column()[j] <= spec.n_components)
            .collect();
        if !sparse.is_empty() {
            warnings.push(Warning::SparseColumns { columns: names(sparse) });
        }
        let floor = spec.floor() * (1.0 + 1e-9);
        let at_floor: Vec<usize> =
            (0..facts.n_columns()).filter(|&j| self.parameters.psi[j] <= floor).collect();
        if !at_floor.is_empty() {
            warnings.push(Warning::NoiseAtFloor { columns: names(at_floor) });
        }
        warnings.extend(Warning::of_unidentified(spec, facts.n_columns()));
        warnings.extend(start::unseen_pairs_of(rows, facts)?);
        let model = frame.model(&self.parameters, spec)?.with_tails(self.tails)?;
        // Unequal ARD precisions pin the columns down; every other prior is rotation invariant.
        let model = match &spec.prior.loadings {
            _ if fixed_axes => model.with_fixed_axes().canonical(),
            LoadingsPrior::Ard { relative_alpha } if relative_alpha.windows(2).any(|a| a[0] != a[1]) => model,
            _ => model.canonical(),
        };
        let kind = if spec.prior.is_flat() && !matches!(loadings, Loadings::Penalized(_)) {
            ObjectiveKind::LogLikelihood
        } else {
            ObjectiveKind::LogPosterior
        };
        Ok(Fit { model, draws: None, report: self.ascent.report(kind) })
    }
}

/// Whether the noise is one number.
fn is_isotropic(spec: &Spec) -> bool {
    spec.noise == NoiseFamily::Isotropic
}
