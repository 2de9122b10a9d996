use super::noisy_mixing::NoisyMixing;
use super::{FastIca, Warning, gaussian, looks_gaussian, over, unit};
use crate::infer::options::{options, words};
use crate::infer::{Acceleration, Aitken, Em, Estimator, Observer, Step, Termination, extrapolated};
use crate::linalg::{Cholesky, canonical_signs, dot};
use crate::parallel::{add, over_pieces};
use crate::{Coordinates, Dataset, Density, Error, Matrix, Spec};
use std::borrow::Cow;
use std::f64::consts::{LN_2, PI, SQRT_2};
use std::ops::Range;

options! {
    /// Independent components behind noise, with gaps: Laplace sources, fewer than columns or not [M 2.8.4].
    ///
    /// ```text
    /// t = W s + μ + ε      ε ~ N(0, diag ψ)      p(s) = exp(−√2 |s|) / √2
    /// ```
    ///
    /// Variational EM by `−√2 |s| ≥ −(s²/η + η)/√2`, tight at `η = √⟨s²⟩`; the bound never falls. Gaps are left
    /// out of the sums.
    ///
    /// ```
    /// use covary::{Dataset, Matrix, ica::NoisyIca};
    /// // Two pulses with heavy tails, seen by three columns.
    /// let source = |i: usize| [(i as f64 * 0.37).sin().powi(9), (i as f64 * 1.7).cos().powi(15)];
    /// let mixing = Matrix::from_rows(&[[2.0, 0.6], [0.4, 2.0], [1.0, -1.0]]);
    /// let mut rows = Matrix::from_rows(&(0..500).map(source).collect::<Vec<_>>()).dot_t(&mixing);
    /// rows[(3, 1)] = f64::NAN;
    /// let found = NoisyIca::new(2).fit(&Dataset::new(rows)?)?.model;
    /// let w = found.mixing();
    /// let cosine = |a: usize, b: usize| (0..3).map(|j| w[(j, a)] * mixing[(j, b)]).sum::<f64>().abs();
    /// assert!(cosine(0, 0).max(cosine(0, 1)) > 3.0 * cosine(0, 0).min(cosine(0, 1)));
    /// # Ok::<(), covary::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct NoisyIca {
        /// Number of sources.
        pub n_components: usize = 1,
        /// One noise variance for all columns.
        pub tied_noise: bool = false,
        /// Smallest noise variance as a share of a column's. Without a floor one may creep towards 0 for ever.
        pub noise_floor: f64 = 0.005,
        /// Most iterations.
        pub max_iterations: usize = 2000,
        /// Stop when the bound is expected to rise by less in total, in nats per observed cell; 0 runs all
        /// iterations.
        pub tolerance: f64 = 1e-8,
        /// Extrapolation of slow fits; a point where the bound is lower is not taken. [`Acceleration::Never`] is plain
        /// EM, η renewed once in a step.
        pub acceleration: Acceleration = Acceleration::Auto,
        /// Where to start.
        pub start: NoisyStart = NoisyStart::FastIca,
    }
}

/// Where [`NoisyIca`] starts.
#[derive(Debug, Clone, PartialEq)]
pub enum NoisyStart {
    /// FastICA, of the table filled by probabilistic PCA if it has gaps, and what it leaves as noise.
    FastIca,
    /// These parameters.
    Given(Box<NoisyMixing>),
}

words!(NoisyStart { FastIca = "fastica"; Self::Given(_) => "given" }, "fastica; given parameters cannot be named");

/// What [`NoisyIca`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct NoisySeparation {
    /// From rows to sources and back.
    pub model: NoisyMixing,
    /// Excess kurtosis of a linear estimate of every source, the posterior mean had it a Gaussian prior. The
    /// posterior mean itself has heavy tails even where the source has not; noise brings this one nearer to 0.
    pub kurtosis: Vec<f64>,
    /// The bound after every step, in nats.
    pub trace: Vec<f64>,
    /// Why it ended.
    pub termination: Termination,
    /// Warnings.
    pub warnings: Vec<Warning>,
}

/// EM counts as slow when it removes less than this share of the remaining error per step.
const SLOW_RATE: f64 = 0.8;
/// Steps before the rate is trusted.
const STEPS_TO_JUDGE: usize = 8;

impl NoisyIca {
    /// With the options we recommend.
    pub fn new(n_components: usize) -> Self {
        Self { n_components, ..Self::default() }
    }

    /// Separates the sources of a table.
    ///
    /// # Errors
    /// As [`fit_observed`](Self::fit_observed).
    pub fn fit(&self, data: &Dataset) -> Result<NoisySeparation, Error> {
        self.fit_observed(data, &mut ())
    }

    /// Separates the sources; `observer` is called after every step and may end the work.
    ///
    /// # Errors
    /// [`Error::EmptyColumn`], [`Error::ConstantColumn`], [`Error::OutOfScale`], [`Error::OutOfRange`] for an option,
    /// [`Error::WrongLength`] for a start of another shape; those of [`FastIca`] and [`Em`] where they find the start.
    pub fn fit_observed(
        &self,
        data: &Dataset,
        observer: &mut dyn Observer,
    ) -> Result<NoisySeparation, Error> {
        self.check(data)?;
        // Thresholds below have the size of 1.
        let unit = unit(data);
        let data = &over(data, &vec![unit; data.n_columns()])?;
        let ln_units = data.n_observed() as f64 * unit.ln();
        let start = match &self.start {
            NoisyStart::Given(start) => start.times(1.0 / unit),
            NoisyStart::FastIca => self.found_start(data)?,
        };
        for (what, expected, got) in [
            ("rows of the start", data.n_columns(), start.mixing.n_rows()),
            ("columns of the start", self.n_components, start.n_components()),
        ] {
            if expected != got {
                return Err(Error::WrongLength { what, expected, got });
            }
        }
        let eta = vec![1.0; data.n_rows() * self.n_components];
        let now = Moments::of(data, &start, &eta, self.acceleration != Acceleration::Never);
        let mut walk = Walk { request: self, data, at: start, now };
        let mut aitken = Aitken::new(self.tolerance * data.n_observed() as f64);
        let mut trace: Vec<f64> = Vec::new();
        let mut termination = Termination::IterationLimit;
        while trace.len() < self.max_iterations {
            let slow = match self.acceleration {
                Acceleration::Never => false,
                Acceleration::Squarem => true,
                Acceleration::Auto => trace.len() > STEPS_TO_JUDGE && aitken.rate() > SLOW_RATE,
            };
            if slow {
                aitken.extrapolate(aitken.rate());
                aitken.extrapolate(walk.cycle());
            } else {
                walk.step();
            }
            let bound = walk.now.bound(&walk.at);
            trace.push(bound - ln_units);
            if aitken.push(bound) {
                termination = Termination::Converged;
                break;
            }
            if observer.step(&Step { iteration: trace.len(), objective: bound - ln_units }).is_break() {
                termination = Termination::Interrupted;
                break;
            }
        }
        let mut warnings = Vec::new();
        if termination == Termination::IterationLimit {
            let left = aitken.remaining() / data.n_observed() as f64;
            let (iterations, tolerance) = (self.max_iterations, self.tolerance);
            warnings.push(Warning::NotConverged { iterations, left, tolerance });
        }
        let at_floor = |j: &usize| walk.at.noise_variances[*j] <= self.floor(data, *j) * (1.0 + 1e-9);
        let columns: Vec<String> =
            (0..data.n_columns()).filter(at_floor).map(|j| data.column_names()[j].clone()).collect();
        if !columns.is_empty() {
            warnings.push(Warning::NoiseAtFloor { columns });
        }
        let model = in_order(walk.at);
        let kurtosis = linear_kurtosis(&model, data)?;
        let light = |i: &usize| kurtosis[*i] < 0.0 && !looks_gaussian(kurtosis[*i]);
        let sources: Vec<usize> = (0..kurtosis.len()).filter(light).map(|i| i + 1).collect();
        if !sources.is_empty() {
            warnings.push(Warning::LightTails { sources });
        }
        warnings.extend(gaussian(&kurtosis));
        let model = model.times(unit);
        Ok(NoisySeparation { model, kurtosis, trace, termination, warnings })
    }

    fn check(&self, data: &Dataset) -> Result<(), Error> {
        let out = |name, value, bound| Err(Error::OutOfRange { name, value, bound });
        if self.n_components == 0 {
            return out("n_components", 0.0, "1 or more");
        }
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            return out("tolerance", self.tolerance, "finite and not negative");
        }
        if !(self.noise_floor > 0.0 && self.noise_floor < 1.0) {
            return out("noise_floor", self.noise_floor, "between 0 and 1");
        }
        for j in 0..data.n_columns() {
            let column = || data.column_names()[j].clone();
            if data.n_observed_by_column()[j] == 0 {
                return Err(Error::EmptyColumn { column: column() });
            }
            if data.is_constant(j) {
                return Err(Error::ConstantColumn { column: column() });
            }
        }
        let names = data.column_names();
        Spec::factor_analysis(1).check_variances(data.observed_variances(), names, Some(data)).map(drop)
    }

    fn floor(&self, data: &Dataset, column: usize) -> f64 {
        self.noise_floor * data.observed_variances()[column]
    }

    /// FastICA's mixing, and what it leaves as noise.
    fn found_start(&self, data: &Dataset) -> Result<NoisyMixing, Error> {
        let q = self.n_components;
        let whole = &*whole(data, q)?;
        let found = FastIca { n_components: Some(q), ..FastIca::default() }.fit(whole)?.model;
        let back = found.decode(&found.transform(whole)?)?;
        let n = whole.n_rows() as f64;
        let left = |j: usize| {
            let squares = (0..whole.n_rows()).map(|i| (whole.values()[(i, j)] - back[(i, j)]).powi(2));
            (squares.sum::<f64>() / n).max(0.01 * data.observed_variances()[j])
        };
        let own: Vec<f64> = (0..data.n_columns()).map(left).collect();
        let mean = own.iter().sum::<f64>() / own.len() as f64;
        let psi = if self.tied_noise { vec![mean; own.len()] } else { own };
        NoisyMixing::new(found.mixing().clone(), found.mean().to_vec(), psi)
    }

    /// For every column a regression on (s, 1), then the noise at the new loadings.
    fn maximize(&self, data: &Dataset, at: &NoisyMixing, m: &Moments) -> NoisyMixing {
        let (d, q) = (at.mean.len(), at.n_components());
        let mut next = at.clone();
        let mut errors = m.errors.clone();
        for j in 0..d {
            let a = m.normal_matrix(j, q);
            let mut reference = at.mixing.row(j).to_vec();
            reference.push(0.0);
            let slope: Vec<f64> =
                (0..=q).map(|i| m.cross[j * (q + 1) + i] - dot(a.row(i), &reference)).collect();
            let mut delta = slope.clone();
            match Cholesky::new(&a) {
                Some(chol) => chol.solve(&mut delta),
                // Fewer rows than sources in this column: it stays.
                None => delta.fill(0.0),
            }
            // e(w̃ + δ) = e(w̃) − 2 slopeᵀδ + δᵀ A δ
            let curvature: f64 = (0..=q).map(|i| delta[i] * dot(a.row(i), &delta)).sum();
            errors[j] += curvature - 2.0 * dot(&slope, &delta);
            (0..q).for_each(|i| next.mixing[(j, i)] += delta[i]);
            next.mean[j] += delta[q];
        }
        let count = |j: usize| data.n_observed_by_column()[j] as f64;
        let pooled = errors.iter().sum::<f64>() / data.n_observed() as f64;
        for j in 0..d {
            let own = if self.tied_noise { pooled } else { errors[j] / count(j) };
            next.noise_variances[j] = own.max(self.floor(data, j));
        }
        next
    }
}

/// The table, its gaps filled by probabilistic PCA.
pub(super) fn whole(data: &Dataset, n_components: usize) -> Result<Cow<'_, Dataset>, Error> {
    if data.is_complete() {
        return Ok(Cow::Borrowed(data));
    }
    let model = Em::default().fit(data, &Spec::ppca(n_components))?.model;
    Ok(Cow::Owned(Dataset::new(model.impute(data)?.values().clone())?))
}

/// A climb of the bound: where it stands, with its moments.
struct Walk<'a> {
    request: &'a NoisyIca,
    data: &'a Dataset,
    at: NoisyMixing,
    now: Moments,
}

impl Walk<'_> {
    /// One step of EM.
    fn step(&mut self) {
        self.at = self.next();
        self.now = self.moments(&self.at);
    }

    fn next(&self) -> NoisyMixing {
        self.request.maximize(self.data, &self.at, &self.now)
    }

    fn moments(&self, at: &NoisyMixing) -> Moments {
        Moments::of(self.data, at, &self.now.eta, self.request.acceleration != Acceleration::Never)
    }

    /// Two steps, then SQUAREM's extrapolation in W, μ and ln ψ, columns in their standard deviations; it is
    /// taken if the bound there is no lower than after the first. Returns the rate of plain steps.
    fn cycle(&mut self) -> f64 {
        let start = self.at.clone();
        self.step();
        let (first, bound) = (self.at.clone(), self.now.bound(&self.at));
        let second = self.next();
        let [t0, t1, t2] = [&start, &first, &second].map(|at| self.coordinates(at));
        let (t, rate) = extrapolated(&t0, &t1, &t2);
        if let Some(at) = t.and_then(|t| self.of_coordinates(&second, &t)) {
            let now = self.moments(&at);
            if now.bound(&at) >= bound {
                (self.at, self.now) = (at, now);
                return rate;
            }
        }
        (self.now, self.at) = (self.moments(&second), second);
        rate
    }

    fn sd(&self, column: usize) -> f64 {
        self.data.observed_variances()[column].sqrt()
    }

    fn coordinates(&self, at: &NoisyMixing) -> Vec<f64> {
        let column = |j: usize| {
            let shift = at.mean[j] - self.data.observed_means()[j];
            at.mixing.row(j).iter().copied().chain([shift]).map(move |v| v / self.sd(j))
        };
        let d = at.mean.len();
        (0..d).flat_map(column).chain(at.noise_variances.iter().map(|v| v.ln())).collect()
    }

    fn of_coordinates(&self, like: &NoisyMixing, t: &[f64]) -> Option<NoisyMixing> {
        let (mut at, d, q) = (like.clone(), like.mean.len(), like.n_components());
        let (columns, noise) = t.split_at(d * (q + 1));
        for (j, column) in columns.chunks_exact(q + 1).enumerate() {
            (0..q).for_each(|i| at.mixing[(j, i)] = column[i] * self.sd(j));
            at.mean[j] = self.data.observed_means()[j] + column[q] * self.sd(j);
            at.noise_variances[j] = noise[j].exp().max(self.request.floor(self.data, j));
        }
        let NoisyMixing { mixing, mean, noise_variances } = at;
        NoisyMixing::new(mixing, mean, noise_variances).ok()
    }
}

/// Sources by decreasing length of their columns, the entry of largest absolute value positive.
fn in_order(at: NoisyMixing) -> NoisyMixing {
    let (d, q) = (at.mean.len(), at.n_components());
    let lengths: Vec<f64> = (0..q).map(|i| at.mixing.column(i).iter().map(|w| w * w).sum()).collect();
    let mut order: Vec<usize> = (0..q).collect();
    order.sort_by(|&a, &b| lengths[b].total_cmp(&lengths[a]));
    let mut mixing = Matrix::from_fn(d, q, |j, i| at.mixing[(j, order[i])]);
    canonical_signs(&mut mixing);
    NoisyMixing { mixing, ..at }
}

fn linear_kurtosis(model: &NoisyMixing, data: &Dataset) -> Result<Vec<f64>, Error> {
    let scores = model.gaussian()?.transform(data, Coordinates::Posterior)?;
    let n = data.n_rows() as f64;
    let kurtosis = |i: usize| {
        let (square, fourth) =
            scores.column(i).iter().fold((0.0, 0.0), |(a, b), s| (a + s * s, b + s.powi(4)));
        n * fourth / (square * square) - 3.0
    };
    Ok((0..model.n_components()).map(kurtosis).collect())
}

/// Sums over rows given parameters and η, and the posterior of the sources of each row.
struct Moments {
    /// `Σ ⟨z zᵀ⟩`, z = (s, 1), over all rows; then, per column, over the rows that miss it.
    common: Vec<f64>,
    missing: Vec<f64>,
    /// `Σ (t − μ) ẑ` per column.
    cross: Vec<f64>,
    /// `Σ ⟨(t − wᵀs − μ)²⟩` per column, over its observed cells, from residuals.
    errors: Vec<f64>,
    counts: Vec<f64>,
    /// `½ Σ ln |Σₙ|` and the sources' part of the bound.
    rest: f64,
    /// Row by row, the η that the posteriors ask for.
    eta: Vec<f64>,
}

impl Moments {
    /// Starting from these η. Parameters that were extrapolated are far from where their η come from: `refresh` takes
    /// better ones first.
    fn of(data: &Dataset, at: &NoisyMixing, eta: &[f64], refresh: bool) -> Self {
        let (d, q) = (at.mean.len(), at.n_components());
        let step = super::BLOCK_CELLS.div_ceil(d);
        let part_of = |rows: Range<usize>| {
            let mut part = Self::empty(d, q);
            rows.for_each(|n| part.add_row(data.row(n), at, &eta[n * q..(n + 1) * q], refresh));
            part
        };
        over_pieces(data.n_rows(), step, part_of, Self::merge)
    }

    fn empty(d: usize, q: usize) -> Self {
        let square = (q + 1) * (q + 1);
        Self {
            common: vec![0.0; square],
            missing: vec![0.0; d * square],
            cross: vec![0.0; d * (q + 1)],
            errors: vec![0.0; d],
            counts: vec![0.0; d],
            rest: 0.0,
            eta: Vec::new(),
        }
    }

    fn merge(&mut self, other: &Self) {
        add(&mut self.common, &other.common);
        add(&mut self.missing, &other.missing);
        add(&mut self.cross, &other.cross);
        add(&mut self.errors, &other.errors);
        add(&mut self.counts, &other.counts);
        self.rest += other.rest;
        self.eta.extend_from_slice(&other.eta);
    }

    fn add_row(&mut self, row: &[f64], at: &NoisyMixing, eta: &[f64], refresh: bool) {
        let q = eta.len();
        let evidence = at.evidence(row);
        let fresh = refresh.then(|| evidence.posterior(eta).eta());
        let eta = fresh.as_deref().unwrap_or(eta);
        let posterior = evidence.posterior(eta);
        let mut z = posterior.mean.clone();
        z.push(1.0);
        let second = |a: usize, b: usize| {
            z[a] * z[b] + if a < q && b < q { posterior.covariance[(a, b)] } else { 0.0 }
        };
        let square = (q + 1) * (q + 1);
        let moment: Vec<f64> = (0..square).map(|k| second(k / (q + 1), k % (q + 1))).collect();
        add(&mut self.common, &moment);
        for j in 0..row.len() {
            if row[j].is_nan() {
                add(&mut self.missing[j * square..(j + 1) * square], &moment);
                continue;
            }
            let (w, y) = (at.mixing.row(j), row[j] - at.mean[j]);
            self.errors[j] += (y - dot(w, &z[..q])).powi(2) + posterior.variance_along(w);
            self.counts[j] += 1.0;
            self.cross[j * (q + 1)..(j + 1) * (q + 1)].iter_mut().zip(&z).for_each(|(c, z)| *c += y * z);
        }
        self.rest -= 0.5 * posterior.ln_det_precision;
        for (i, eta) in eta.iter().enumerate() {
            self.rest -= 0.5 * LN_2 + 0.5 * SQRT_2 * (second(i, i) / eta + eta);
        }
        self.eta.extend(posterior.eta());
        // The entropy of a Gaussian, and the constants of its prior.
        self.rest += 0.5 * q as f64 * (1.0 + (2.0 * PI).ln());
    }

    /// `Σ ⟨z zᵀ⟩` over the rows that have column j.
    fn normal_matrix(&self, j: usize, q: usize) -> Matrix {
        let square = (q + 1) * (q + 1);
        let missing = &self.missing[j * square..(j + 1) * square];
        Matrix::from_fn(q + 1, q + 1, |a, b| self.common[a * (q + 1) + b] - missing[a * (q + 1) + b])
    }

    fn bound(&self, at: &NoisyMixing) -> f64 {
        let column = |j: usize| {
            self.counts[j] * (2.0 * PI * at.noise_variances[j]).ln() + self.errors[j] / at.noise_variances[j]
        };
        self.rest - 0.5 * (0..at.mean.len()).map(column).sum::<f64>()
    }
}
