//! EM for dynamic factors [M 1.10.4].

use super::memory::{Chains, Products};
use super::model::{DynamicFactor, spectral_radius, stationary};
use super::moments::{Maximize, Moments, regressed, unexplained};
use super::prior::{FollowsItself, Prior, seasonal_deviation, wave_precisions};
use super::{Regressors, Root, Season, Start, Timeline, Trend, model};
use crate::infer::options::{one_method, options, start, words};
use crate::infer::{
    Aitken, Ascent, Em, Fit, FitReport, ObjectiveKind, Observer, Structured, Warning, extrapolated, solve_spd,
};
use crate::linalg::{Cholesky, dot};
use crate::spec::NoiseFamily;
use crate::{Coordinates, Dataset, Error, Estimator, LinearGaussian, Matrix, Noise, Spec};

options! {
    /// EM over a filter and a smoother, exact with any pattern of gaps.
    ///
    /// The [`Spec`] says how many factors, which noise, and whether columns are standardized, the table when its rows happened
    /// ([`Dataset::in_time`]); the rest that is about time is here.
    ///
    /// ```
    /// use covary::dynamics::{DynamicEm, Timeline};
    /// use covary::{data::{simulate, Shape}, Estimator, Spec};
    /// let (table, _) = simulate::ppca(Shape { rows: 80, columns: 5, n_components: 1 }, /* seed */ 1);
    /// let fit = DynamicEm::default().fit(&table, &Spec::ppca(1))?;
    /// assert!(fit.model.spectral_radius() < 0.4);                   // these rows have no memory
    /// let ahead = fit.model.forecast(&table, &Timeline::regular(80), 3)?;
    /// assert_eq!(ahead[0].times, [80, 81, 82]);
    /// # Ok::<(), covary::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct DynamicEm {
        /// How many steps back the factors depend on.
        pub order: usize = 1,
        /// How means change within a period.
        pub season: Season = Season::None,
        /// Whether every column has a straight line in time.
        pub trend: bool = false,
        /// Precision of the normal prior of coefficients of season and trend about 0, in standard deviations of the column. The
        /// default, 0.01, counts as a hundredth of a cell: it keeps what is hardly observed finite.
        pub ridge: f64 = 0.01,
        /// The first state of a sequence.
        pub first_state: FirstState = FirstState::Stationary,
        /// Where loadings, levels, season and noise come from.
        pub loadings: Loadings = Loadings::Likelihood,
        /// Most iterations.
        pub max_iterations: usize = 1000,
        /// Stop when the estimated remaining gain is below this many nats in total [M 1.4.5]. 0 runs all iterations.
        pub tolerance: f64 = 1e-4,
        /// Whether slow climbs are extrapolated by SQUAREM.
        pub accelerate: bool = true,
        /// Whether the noise of every column remembers a share of itself from one step to the next, AR(1) [M 1.10.11].
        pub noise_memory: bool = false,
        /// Parameters to start from, instead of those of a model without memory.
        pub init: Option<Box<DynamicFactor>> = None,
    }
}

/// How the first state of a sequence is distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FirstState {
    /// As the factors are in the long run; where they grow without bound, estimated.
    #[default]
    Stationary,
    /// With a mean and a covariance of its own. For a single sequence the likelihood grows for ever as that covariance shrinks
    /// to 0, so that the climb ends slowly: for many sequences.
    Estimated,
}

/// Where loadings, levels, season and noise come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Loadings {
    /// Their likelihood, with transition and innovations.
    #[default]
    Likelihood,
    /// A Bayesian PCA of what season and trend leave, which shrinks what few rows support; transition and innovations are fitted
    /// given its posterior (two steps, as Doz, Giannone & Reichlin 2011; [M 1.10.12]). For tables with more columns than rows.
    Bayes,
}

words!(FirstState { Stationary = "stationary", Estimated = "estimated" }, "stationary or estimated");
words!(Loadings { Likelihood = "likelihood", Bayes = "bayes" }, "likelihood or bayes");

start!(Option<Box<DynamicFactor>>: "without-memory", "without-memory; given parameters cannot be named");

one_method!(DynamicEm = "kalman-em");

/// EM counts as slow when it removes less than this share of the remaining error per step …
const SLOW_RATE: f64 = 0.5;
/// … judged from this many steps on.
const STEPS_TO_JUDGE: usize = 4;

impl Estimator for DynamicEm {
    type Model = DynamicFactor;

    fn fit_observed(
        &self,
        data: &Dataset,
        spec: &Spec,
        observer: &mut dyn Observer,
    ) -> Result<Fit<DynamicFactor>, Error> {
        spec.check_in_time(data)?;
        if !spec.prior.is_flat() {
            return Err(Error::Unsupported {
                method: "a dynamic factor model",
                what: "a prior of the loadings",
                instead: "a flat one",
            });
        }
        let constant = spec.check_variances(data.observed_variances(), data.column_names(), Some(data))?;
        let timeline = data.times();
        self.check(&timeline, spec)?;

        let units = Units::of(data, spec);
        let scaled = units.scaled(data)?;
        let problem = Problem { table: &scaled, timeline: &timeline, spec };
        let (start, prior) = match &self.init {
            Some(given) => {
                let prior = self.prior(&problem, given.regressors())?;
                (self.started(units.of_fit(given))?, prior)
            }
            None => self.start(&problem)?,
        };
        let mut climb = self.climb(&problem, start, prior, &units, observer)?;
        if !constant.is_empty() {
            climb.report.warnings.push(Warning::ConstantColumns { columns: constant });
        }
        let at_floor: Vec<String> = (0..data.n_columns())
            .filter(|&j| climb.model.noise().variance(j) <= spec.floor() * (1.0 + 1e-9))
            .map(|j| data.column_names()[j].clone())
            .collect();
        if !at_floor.is_empty() {
            climb.report.warnings.push(Warning::NoiseAtFloor { columns: at_floor });
        }
        climb.report.warnings.extend(long_memory(&climb.model, &timeline));
        let model = climb.model.canonical()?.in_units(&units.mean, &units.scale);
        Ok(Fit { model, draws: None, report: climb.report })
    }
}

/// A root of the transition whose half-life is longer than any sequence: of the level that factors return to the table says
/// hardly anything.
fn long_memory(model: &DynamicFactor, timeline: &Timeline) -> Option<Warning> {
    let modulus = model.spectral_radius();
    let half_life = Root { modulus, period: None }.half_life();
    let steps = timeline.sequences().iter().map(|s| s.rows().len()).max()?;
    (half_life > steps as f64).then_some(Warning::LongMemory { modulus, steps })
}

/// The table in units of the fit, and what is asked of it.
struct Problem<'a> {
    table: &'a Dataset,
    timeline: &'a Timeline,
    spec: &'a Spec,
}

/// A model on its way up.
struct Climb {
    model: DynamicFactor,
    report: FitReport,
}

/// Columns are centered and divided while fitting, so that ridge, floors and steps are free of units.
struct Units {
    mean: Vec<f64>,
    scale: Vec<f64>,
}

impl Units {
    fn of(data: &Dataset, spec: &Spec) -> Self {
        let variances = data.observed_variances();
        let pooled = (variances.iter().sum::<f64>() / variances.len() as f64).sqrt();
        let own = spec.standardize || spec.noise == NoiseFamily::Diagonal;
        let scale = variances.iter().map(|v| if own && *v > 0.0 { v.sqrt() } else { pooled }).collect();
        Self { mean: data.observed_means().to_vec(), scale }
    }

    fn scaled(&self, data: &Dataset) -> Result<Dataset, Error> {
        let cell = |i: usize, j: usize| (data.row(i)[j] - self.mean[j]) / self.scale[j];
        Dataset::with_names(
            Matrix::from_fn(data.n_rows(), data.n_columns(), cell),
            data.column_names().to_vec(),
        )
    }

    /// From the log-density of cells, and of this many coefficients of each column, in units of the fit to that in the units
    /// of the table.
    fn ln_jacobian(&self, table: &Dataset, coefficients: usize) -> f64 {
        let numbers = table.n_observed_by_column().iter().map(|&n| (n + coefficients) as f64);
        -self.scale.iter().zip(numbers).map(|(s, n)| n * s.ln()).sum::<f64>()
    }

    /// A model of the table in units of the fit.
    fn of_fit(&self, model: &DynamicFactor) -> DynamicFactor {
        let inverse: Vec<f64> = self.scale.iter().map(|s| 1.0 / s).collect();
        let shift: Vec<f64> = self.mean.iter().zip(&inverse).map(|(m, s)| -m * s).collect();
        model.clone().in_units(&shift, &inverse)
    }
}

impl DynamicEm {
    /// Given parameters with the first state and the kind of noise that are asked for.
    fn started(&self, given: DynamicFactor) -> Result<DynamicFactor, Error> {
        let memory = given.noise_memory().map_or_else(|| vec![0.0; given.n_columns()], <[f64]>::to_vec);
        let given = given.with_noise_memory(self.noise_memory.then_some(memory))?;
        match given.stationary_covariance() {
            Some(covariance) if self.first_state == FirstState::Stationary => {
                given.with_start(Start { mean: vec![0.0; covariance.n_rows()], covariance })
            }
            _ => Ok(given),
        }
    }

    fn check(&self, timeline: &Timeline, spec: &Spec) -> Result<(), Error> {
        let range = |name, value: f64, bound| Err(Error::OutOfRange { name, value, bound });
        if spec.n_components == 0 {
            return range("n_components", 0.0, "at least 1: without factors nothing follows in time");
        }
        if self.order == 0 {
            return range("order", 0.0, "at least 1");
        }
        for (name, value) in [("tolerance", self.tolerance), ("ridge", self.ridge)] {
            if !(value.is_finite() && value >= 0.0) {
                return range(name, value, "finite and not negative");
            }
        }
        match self.season {
            Season::Harmonics { period, n }
                if !(period.is_finite() && period > 1.0 && (2 * n) as f64 <= period) =>
            {
                return range("period", period, "finite, above 1, and at least twice the harmonics");
            }
            Season::Indicators { period } if period < 2 => {
                return range("period", period as f64, "at least 2");
            }
            _ => {}
        }
        if timeline.sequences().iter().all(|s| s.rows().len() < 2) {
            return Err(Error::NothingFollows { sequences: timeline.sequences().len() });
        }
        Ok(())
    }

    fn climb(
        &self,
        problem: &Problem<'_>,
        start: DynamicFactor,
        prior: Prior,
        units: &Units,
        observer: &mut dyn Observer,
    ) -> Result<Climb, Error> {
        let (shrunk, is_posterior) = (prior.rank(), prior.rank() > 0);
        let constant = units.ln_jacobian(problem.table, shrunk);
        let maximize = Maximize {
            prior,
            floor: problem.spec.floor(),
            first: self.first_state,
            loadings: self.loadings,
            follows: None,
        };
        let mut walk = Walk { problem, maximize, constant };

        let mut point = walk.at(start)?;
        if self.loadings == Loadings::Bayes {
            walk.maximize.follows = FollowsItself::of(&point.moments.dynamics);
            point = walk.believed(point);
        }
        let mut ascent = Ascent::new(self.tolerance, point.objective);
        while ascent.goes_on(self.max_iterations) {
            let judged = ascent.trace.len() > STEPS_TO_JUDGE;
            let slow = self.accelerate && judged && ascent.aitken.rate() > SLOW_RATE;
            point = if slow { walk.cycle(&point, &mut ascent.aitken)? } else { walk.next(&point)? };
            ascent.take(point.objective, observer);
        }
        let kind = match (self.loadings, is_posterior) {
            (Loadings::Bayes, _) => ObjectiveKind::LowerBound,
            (Loadings::Likelihood, true) => ObjectiveKind::LogPosterior,
            (Loadings::Likelihood, false) => ObjectiveKind::LogLikelihood,
        };
        let report = ascent.ended().report(kind);
        Ok(Climb { model: point.model, report })
    }

    /// Where to start: the model without memory of what regression on season and trend leaves, and how its scores follow
    /// each other.
    fn start(&self, problem: &Problem<'_>) -> Result<(DynamicFactor, Prior), Error> {
        let Problem { timeline, spec, .. } = problem;
        let trend = self.trend.then(|| Trend {
            center: timeline.center(),
            unit: (timeline.n_steps() as f64 / timeline.sequences().len() as f64 / 2.0).max(1.0),
        });
        let regressors = Regressors { season: self.season, trend };
        let prior = self.prior(problem, &regressors)?;
        let (coefficients, left) = problem.regressed(&regressors, &prior)?;
        let without_memory = Spec { standardize: false, ..(*spec).clone() };
        let rough = match self.loadings {
            // A single column is half factor, half noise, until time tells them apart.
            _ if left.n_columns() == 1 => {
                let half = 0.5 * left.observed_variances()[0];
                let loadings = Matrix::from_rows(&[[half.sqrt()]]);
                let noise = match spec.noise {
                    NoiseFamily::Isotropic => Noise::Isotropic(half),
                    NoiseFamily::Diagonal => Noise::Diagonal(vec![half]),
                };
                LinearGaussian::new(loadings, left.observed_means().to_vec(), noise)?
            }
            // Scores of a rough fit will do.
            Loadings::Likelihood => {
                let em = Em { max_iterations: 30, tolerance: 0.1, ..Em::default() };
                em.fit(&left, &without_memory)?.model
            }
            Loadings::Bayes => Structured::default().fit(&left, &Spec::ppca(spec.n_components))?.model,
        };
        let scores = rough.transform(&left, Coordinates::Posterior)?;
        let (transition, innovation) = self.follow(&scores, &left, timeline);
        let states = transition.n_columns();
        let covariance = stationary(&transition, &innovation).unwrap_or_else(|| Matrix::identity(states));
        let mut coefficients = coefficients;
        for level in (0..regressors.len()).filter(|&l| regressors.is_level(l)) {
            for (j, m) in rough.mean().iter().enumerate() {
                coefficients[(j, level)] += m;
            }
        }
        let noise = match rough.noise() {
            Noise::Isotropic(v) if spec.noise == NoiseFamily::Diagonal => {
                Noise::Diagonal(vec![v.max(spec.floor()); rough.mean().len()])
            }
            Noise::Isotropic(v) => Noise::Isotropic(v.max(spec.floor())),
            Noise::Diagonal(psi) => Noise::Diagonal(psi.iter().map(|v| v.max(spec.floor())).collect()),
        };
        let start = Start { mean: vec![0.0; states], covariance };
        let loadings = rough.loadings().clone();
        let memory =
            if self.noise_memory { Some(remembered(&rough, &scores, &left, timeline, spec)) } else { None };
        let model =
            DynamicFactor::new(transition, innovation, loadings, coefficients, regressors, noise, start)?
                .with_noise_memory(memory)?;
        let uncertainty = rough.uncertainty().filter(|_| self.loadings == Loadings::Bayes).cloned();
        let model = match uncertainty {
            Some(uncertainty) => model.with_uncertainty(uncertainty)?,
            None => model,
        };
        Ok((model, prior))
    }

    /// What is believed of coefficients before the table is seen, except for how far seasonal means are from a wave, and how large waves
    /// are in a table of many columns.
    fn prior(&self, problem: &Problem<'_>, regressors: &Regressors) -> Result<Prior, Error> {
        let mut waves = Vec::new();
        let deviation = match regressors.season {
            Season::Indicators { period } if self.ridge > 0.0 => {
                let wave = Season::Harmonics { period: period as f64, n: 1 };
                let wave = Regressors { season: wave, trend: regressors.trend };
                let (_, left) = problem.regressed(&wave, &Prior::new(&wave, self.ridge, 1.0, &[]))?;
                seasonal_deviation(&left, &seasons(problem.timeline, period), period)
            }
            Season::Harmonics { n, .. } if self.ridge > 0.0 && self.loadings == Loadings::Bayes => {
                let weak = Prior::new(regressors, self.ridge, 1.0, &[]);
                let (coefficients, left) = problem.regressed(regressors, &weak)?;
                waves = wave_precisions(&coefficients, &left, n);
                1.0
            }
            _ => 1.0,
        };
        Ok(Prior::new(regressors, self.ridge, deviation, &waves))
    }

    /// Least squares of scores on those of the steps before, their memory kept below 0.98, and the covariance of what is
    /// left.
    fn follow(&self, scores: &Matrix, left: &Dataset, timeline: &Timeline) -> (Matrix, Matrix) {
        let (k, p) = (scores.n_columns(), self.order);
        let states = k * p;
        let (mut before, mut with, mut now) =
            (Matrix::identity(states), Matrix::zeros(k, states), Matrix::identity(k));
        let mut n = 1.0;
        for sequence in timeline.sequences() {
            for window in sequence.rows().windows(p + 1) {
                let Some(rows) = window.iter().copied().collect::<Option<Vec<usize>>>() else { continue };
                // Scores of a row without a cell are 0, and would be taken for what the others return to.
                if rows.iter().any(|&row| left.row(row).iter().all(|v| v.is_nan())) {
                    continue;
                }
                let x = scores.row(rows[p]);
                let s: Vec<f64> = (0..p).rev().flat_map(|l| scores.row(rows[l]).to_vec()).collect();
                for i in 0..k {
                    crate::parallel::add(with.row_mut(i), &s.iter().map(|v| v * x[i]).collect::<Vec<_>>());
                    crate::parallel::add(now.row_mut(i), &x.iter().map(|v| v * x[i]).collect::<Vec<_>>());
                }
                for i in 0..states {
                    crate::parallel::add(before.row_mut(i), &s.iter().map(|v| v * s[i]).collect::<Vec<_>>());
                }
                n += 1.0;
            }
        }
        let mut a = regressed(&with, &before);
        let radius = spectral_radius(&model::companion(&a));
        if radius > 0.98 {
            // A_l r^l has its roots multiplied by r.
            let shrink = 0.98 / radius;
            for i in 0..k {
                for (l, v) in a.row_mut(i).iter_mut().enumerate() {
                    *v *= shrink.powi(1 + (l / k) as i32);
                }
            }
        }
        let q = unexplained(&a, &now, &with, &before, n);
        (a, q)
    }
}

/// How what a model without memory leaves of each column follows itself.
fn remembered(
    rough: &LinearGaussian,
    scores: &Matrix,
    left: &Dataset,
    timeline: &Timeline,
    spec: &Spec,
) -> Vec<f64> {
    let chains = Chains::of(left, timeline, rough.loadings().n_columns());
    let rest = |row: usize, j: usize| {
        left.row(row)[j] - rough.mean()[j] - dot(rough.loadings().row(j), scores.row(row))
    };
    crate::parallel::map(left.n_columns(), |j| {
        let mut sums = Products::new(chains.reach());
        for sequence in timeline.sequences() {
            for (t, row) in sequence.rows().iter().enumerate() {
                let Some(row) = row.filter(|&row| !left.row(row)[j].is_nan()) else { continue };
                let lag = chains.before(row, j);
                let (now, before) = (rest(row, j), sequence.rows()[t - lag].map_or(0.0, |row| rest(row, j)));
                match lag {
                    0 => sums.add(0, now * now, 0.0, 0.0),
                    lag => sums.add(lag, now * now, now * before, before * before),
                }
            }
        }
        sums.best(0.0, Err(spec.floor())).0
    })
}

impl Problem<'_> {
    /// Least squares of each column on the regressors with a prior, and what that leaves.
    fn regressed(&self, regressors: &Regressors, prior: &Prior) -> Result<(Matrix, Dataset), Error> {
        let (table, known, r) = (self.table, known(regressors, self.timeline), regressors.len());
        let mut out = Matrix::zeros(table.n_columns(), r);
        for j in 0..table.n_columns() {
            let mut system = prior.precision().clone();
            let beta = out.row_mut(j);
            for i in (0..table.n_rows()).filter(|&i| !table.row(i)[j].is_nan()) {
                let b = known.row(i);
                for k in 0..r {
                    beta[k] += b[k] * table.row(i)[j];
                    crate::parallel::add(system.row_mut(k), &b.iter().map(|v| v * b[k]).collect::<Vec<_>>());
                }
            }
            // A little of everything, so that seasons without a cell stay at the mean.
            (0..r).for_each(|k| system[(k, k)] += 1e-9);
            solve_spd(system, beta);
        }
        let left = Matrix::from_fn(table.n_rows(), table.n_columns(), |i, j| {
            table.row(i)[j] - dot(out.row(j), known.row(i))
        });
        Ok((out, Dataset::with_names(left, table.column_names().to_vec())?))
    }
}

/// What a climb needs at every step.
struct Walk<'a> {
    problem: &'a Problem<'a>,
    maximize: Maximize,
    /// From the density in units of the fit to that of the table.
    constant: f64,
}

/// A model, its E-step, and its objective.
struct Point {
    model: DynamicFactor,
    moments: Moments,
    objective: f64,
}

impl Walk<'_> {
    fn at(&self, model: DynamicFactor) -> Result<Point, Error> {
        let moments = Moments::new(&model, self.problem.table, self.problem.timeline, &self.maximize)?;
        let objective =
            moments.log_likelihood + self.maximize.prior.ln_density(model.coefficients()) + self.constant;
        Ok(self.believed(Point { model, moments, objective }))
    }

    /// With the prior of the transition.
    fn believed(&self, mut point: Point) -> Point {
        if let Some(prior) = &self.maximize.follows {
            point.moments.dynamics.believe(prior);
            // A covariance without an inverse is no place to climb to.
            let density = prior.ln_density(point.model.transition(), point.model.innovation());
            point.objective += density.unwrap_or(f64::NEG_INFINITY);
        }
        point
    }

    /// A step of EM.
    fn next(&self, from: &Point) -> Result<Point, Error> {
        self.at(self.maximize.step(&from.model, &from.moments)?)
    }

    /// Two steps of EM, and as far beyond as they promise if that is no worse than one of them (SQUAREM).
    fn cycle(&self, from: &Point, aitken: &mut Aitken) -> Result<Point, Error> {
        aitken.extrapolate(aitken.rate());
        let first = self.next(from)?;
        let second = self.maximize.step(&first.model, &first.moments)?;
        let points = [&from.model, &first.model, &second].map(|m| coordinates(m, self.maximize.first));
        if let [Some(t0), Some(t1), Some(t2)] = &points {
            let (beyond, rate) = extrapolated(t0, t1, t2);
            aitken.extrapolate(rate);
            let model =
                beyond.and_then(|t| from_coordinates(&second, &t, self.maximize.first, self.maximize.floor));
            if let Some(model) = model {
                let there = self.at(model)?;
                if there.objective >= first.objective {
                    return Ok(there);
                }
            }
        }
        self.at(second)
    }
}

/// The regressors of every row.
fn known(regressors: &Regressors, timeline: &Timeline) -> Matrix {
    let mut out = Matrix::zeros(timeline.n_rows(), regressors.len());
    for sequence in timeline.sequences() {
        for (t, row) in sequence.rows().iter().enumerate() {
            if let Some(row) = *row {
                out.row_mut(row).copy_from_slice(&regressors.at(sequence.time(t)));
            }
        }
    }
    out
}

/// The step within a period at which each row stands.
fn seasons(timeline: &Timeline, period: usize) -> Vec<usize> {
    let mut out = vec![0; timeline.n_rows()];
    for sequence in timeline.sequences() {
        for (t, row) in sequence.rows().iter().enumerate() {
            if let Some(row) = *row {
                out[row] = sequence.time(t).rem_euclid(period as i64) as usize;
            }
        }
    }
    out
}

/// Free parameters in coordinates without bounds: covariances by their Cholesky factors with logarithms of the diagonal, the
/// noise by logarithms. `None` where a covariance is singular.
fn coordinates(model: &DynamicFactor, first: FirstState) -> Option<Vec<f64>> {
    let mut t = model.transition().as_slice().to_vec();
    t.extend(model.loadings().as_slice());
    t.extend(model.coefficients().as_slice());
    t.extend(noise_of(model).iter().map(|v| v.ln()));
    t.extend(model.noise_memory().unwrap_or_default().iter().map(|rho| rho.atanh()));
    t.extend(triangle(model.innovation())?);
    if first == FirstState::Estimated {
        t.extend(&model.start().mean);
        t.extend(triangle(&model.start().covariance)?);
    }
    Some(t)
}

fn from_coordinates(like: &DynamicFactor, t: &[f64], first: FirstState, floor: f64) -> Option<DynamicFactor> {
    let mut rest = t;
    let mut take = |n: usize| {
        let (head, tail) = rest.split_at(n);
        rest = tail;
        head
    };
    let mut matrix = |like: &Matrix| {
        Matrix::from_vec(like.n_rows(), like.n_columns(), take(like.as_slice().len()).to_vec())
    };
    let transition = matrix(like.transition()).ok()?;
    let loadings = matrix(like.loadings()).ok()?;
    let coefficients = matrix(like.coefficients()).ok()?;
    let psi: Vec<f64> = take(noise_of(like).len()).iter().map(|v| v.exp().max(floor)).collect();
    let noise = match like.noise() {
        Noise::Isotropic(_) => Noise::Isotropic(psi[0]),
        Noise::Diagonal(_) => Noise::Diagonal(psi),
    };
    let memory: Option<Vec<f64>> =
        like.noise_memory().map(|rho| take(rho.len()).iter().map(|t| t.tanh()).collect());
    let k = like.n_components();
    let innovation = from_triangle(take(k * (k + 1) / 2), k);
    let n = like.start().mean.len();
    let start = match first {
        FirstState::Estimated => {
            let mean = take(n).to_vec();
            Start { mean, covariance: from_triangle(take(n * (n + 1) / 2), n) }
        }
        FirstState::Stationary => {
            Start { mean: vec![0.0; n], covariance: stationary(&transition, &innovation)? }
        }
    };
    DynamicFactor::new(
        transition,
        innovation,
        loadings,
        coefficients,
        like.regressors().clone(),
        noise,
        start,
    )
    .and_then(|model| model.like(like).with_noise_memory(memory))
    .ok()
}

/// The noise variances that are free.
fn noise_of(model: &DynamicFactor) -> Vec<f64> {
    match model.noise() {
        Noise::Isotropic(v) => vec![*v],
        Noise::Diagonal(psi) => psi.clone(),
    }
}

fn triangle(covariance: &Matrix) -> Option<Vec<f64>> {
    let chol = Cholesky::new(covariance)?;
    let lower = chol.lower();
    let entry = |i: usize, j: usize| if i == j { lower[(i, i)].ln() } else { lower[(i, j)] };
    Some((0..lower.n_rows()).flat_map(|i| (0..=i).map(move |j| entry(i, j))).collect())
}

fn from_triangle(t: &[f64], n: usize) -> Matrix {
    let at = |i: usize, j: usize| t[i * (i + 1) / 2 + j];
    let lower = Matrix::from_fn(n, n, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Greater => at(i, j),
        std::cmp::Ordering::Equal => at(i, i).exp(),
        std::cmp::Ordering::Less => 0.0,
    });
    let mut out = lower.dot_t(&lower);
    out.symmetrize();
    out
}
