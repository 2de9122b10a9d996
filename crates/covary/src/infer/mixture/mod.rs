//! Mixtures of linear-Gaussian models by EM, complete or with gaps [M 1.9].
//!
//! Responsibilities come from each model's `log_density`, and a row of weight r enters the E-step of EM or of
//! `FullCovariance` as √r times itself, so that one kernel serves both (`LatentMoments::of_weighted`,
//! `full_covariance::Moments`). Of a table in memory responsibilities are kept until the M-step asks for sums; rows that are gone through
//! by passes are only ever asked for sums, block by block and by the same functions (`expectation.rs`), so that the bits agree. A classifier fits each class by itself and keeps the result as a `Mixture`.

mod climb;
mod expectation;
pub(super) mod known;
mod maximize;
mod regularized;
mod start;

pub(super) use expectation::{Models, merge};

use super::em::parameters::Frame;
use super::em::start::unseen_pairs_of;
use super::options::{Setting, one_method, options, words};
use super::pass::Rows;
use super::report::{Fit, Observer};
use super::{BY_PASSES, Estimator};
use crate::data::{Facts, block_rows};
use crate::model::Mixture;
use crate::spec::NoiseFamily;
use crate::{Dataset, Error, Matrix, Spec};
use climb::{Climb, Source};

options! {
    /// EM for K models at once, each row belonging to all of them in part.
    ///
    /// ```text
    /// p(t) = Σ_k π_k N(t | μ_k, C_k)        r_nk = π_k N(t_nO | k) / p(t_nO)        C_k = W_k W_kᵀ + Ψ_k
    /// ```
    ///
    /// The [`Spec`] says what each of them is: `Spec::ppca(q)` makes a mixture of probabilistic PCAs, of
    /// spherical Gaussians with q = 0 and of full ones with one component less than columns;
    /// `Spec::factor_analysis(q)` a mixture of factor analyzers, of diagonal Gaussians with q = 0.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::MixtureEm, Dataset, Estimator, Matrix, Spec};
    /// let (a, _) = simulate::ppca(Shape { rows: 100, columns: 5, n_components: 1 }, /* seed */ 1);
    /// let shifted = |i: usize, j: usize| a.values()[(i, j)] + if i < 40 { 50.0 } else { 0.0 };
    /// let table = simulate::hide(&Dataset::new(Matrix::from_fn(100, 5, shifted))?, 0.1, /* seed */ 2);
    /// let fit = MixtureEm::of(2).fit(&table, &Spec::ppca(1))?;
    /// assert!((fit.model.weights()[0] - 0.6).abs() < 1e-6);                       // by decreasing weight
    /// assert!(fit.model.labels(&table)?.iter().enumerate().all(|(i, &k)| (k == 1) == (i < 40)));
    /// # Ok::<(), covary::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct MixtureEm {
        /// K, the number of models.
        pub n_mixtures: usize = 2,
        /// Most iterations.
        pub max_iterations: usize = 1000,
        /// Stop when the estimated remaining gain is below this many nats in total [M 1.4.5]. The default,
        /// 1e-3, leaves all parameters together 0.045 standard errors from the optimum; where components
        /// overlap, the digits beyond take most of the steps. 0 runs all iterations.
        pub tolerance: f64 = 1e-3,
        /// What the tolerance is compared with.
        pub stop: Stop = Stop::Remaining,
        /// How the M-step is made.
        pub update: Update = Update::Auto,
        /// Parameter expansion, as in [`Em`](super::Em), for [`Update::Latent`].
        pub parameter_expansion: bool = true,
        /// λ, added to every variance after each M-step, in squared units of the table. Without one the noise has
        /// a floor, a share of the observed variance, and a model that has lost its rows is moved or removed;
        /// with one every model stays. The likelihood may then fall by a little, as λ is not a part of it.
        ///
        /// ```text
        /// C_k = S_k + λ I        S_k: the covariance that the M-step finds
        /// ```
        pub ridge: Option<f64> = None,
        /// Whether all models share one covariance, `Σ_k N_k S_k / N`.
        pub shared_covariance: bool = false,
        /// Where to start.
        pub init: MixtureInit = MixtureInit::Auto,
        /// Further starts from other seeds: the likelihood has many maxima, and most bad ones are distinguished
        /// early. Each makes five steps, the best third goes on to twenty, and the best of these to the end;
        /// of a long table all are made on a part of its rows. Without chance, as from given
        /// parameters, there are none.
        pub restarts: usize = 11,
        /// Seed of the starts.
        pub seed: u64 = 0,
    }
}

/// When a mixture's steps end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stop {
    /// When the log-likelihood of the whole table is expected to rise by less than the tolerance.
    Remaining,
    /// One step after the log-likelihood per row has changed by less than the tolerance, as scikit-learn does.
    Change {
        /// The log-likelihood per row one step before the start, for a fit that goes on from another.
        before: Option<f64>,
    },
}

impl Setting for Stop {
    fn text(&self) -> String {
        match self {
            Self::Remaining => "remaining",
            Self::Change { .. } => "change",
        }
        .to_owned()
    }

    fn set(&mut self, text: &str) -> Result<(), &'static str> {
        *self = match text {
            "remaining" => Self::Remaining,
            "change" => Self::Change { before: None },
            _ => return Err("remaining or change"),
        };
        Ok(())
    }
}

/// How a mixture's loadings, means and noise follow from the responsibilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// In closed form up to 64 columns or eight times the components, where there is one; by latent
    /// moments otherwise.
    Auto,
    /// Weighted moments of the rows, gaps filled by their expectation, then eigenpairs: the whole M-step
    /// at once, d² for each row and isotropic noise only.
    ClosedForm,
    /// Weighted moments of the scores: dq for each row, more steps.
    Latent,
}

/// Where a mixture starts.
#[derive(Debug, Clone, PartialEq)]
pub enum MixtureInit {
    /// As [`KMeans`](Self::KMeans) and, every second start, from the rows around some taken at random:
    /// the first finds groups that lie apart, the second planes that cross.
    Auto,
    /// Seeds far from each other (k-means++), a few rounds of k-means, and one M-step.
    KMeans,
    /// Rows to the nearest of these centers, K × d, and one M-step; of a table of more than a block a part of the rows, evenly spread.
    Centers(Box<Matrix>),
    /// One M-step from these responsibilities, n × K.
    Responsibilities(Box<Matrix>),
    /// This mixture. Its models may have fewer components than the spec asks for, each its own number, and keep it.
    Given(Box<Mixture>),
}

words!(
    Update { Auto = "auto", ClosedForm = "closed-form", Latent = "latent" },
    "auto, closed-form or latent"
);

words!(
    MixtureInit {
        Auto = "auto",
        KMeans = "k-means";
        Self::Centers(_) => "centres",
        Self::Responsibilities(_) => "responsibilities",
        Self::Given(_) => "given",
    },
    "auto or k-means; given centers or parameters cannot be named"
);

/// Smallest noise variance as a share of the observed one, unless the spec says otherwise: without a
/// floor the likelihood has no maximum [M 1.9.4].
const FLOOR: f64 = 1e-6;
/// Steps of each start before a third of them is taken, and of these before the best is.
const SHORT: [usize; 2] = [5, 20];
const KEPT: usize = 3;
/// Rows that are enough to compare starts: this many, and this many for each axis and mean of a model.
const ROWS_OF_STARTS: usize = 1000;
const ROWS_PER_AXIS: usize = 25;
/// Responsibilities below this are taken for none: runs of such rows are passed over.
const NEGLIGIBLE: f64 = 1e-14;
/// Columns up to which the closed form is taken, and how many for each component.
const NARROW: usize = 64;
const COLUMNS_PER_COMPONENT: usize = 8;

/// A start on its way.
struct Start<'a> {
    /// Whether it began around rows, not by k-means.
    around: bool,
    climb: Climb<'a>,
}

/// Models are in canonical form, by decreasing weight, or in the order of a start that was given. Besides what
/// every estimator refuses, [`Error::TooManyMixtures`] says that there are too few rows for each model to have as many as
/// it needs.
impl Estimator for MixtureEm {
    type Model = Mixture;

    fn fit_observed(
        &self,
        data: &Dataset,
        spec: &Spec,
        observer: &mut dyn Observer,
    ) -> Result<Fit<Mixture>, Error> {
        self.fit_source(Source::Memory(data), spec, observer)
    }

    /// By passes a start may be drawn from a sample of the rows, or be given as centers or as a mixture. A table of so few rows that it
    /// starts on all of them is taken into memory.
    fn fit_rows(
        &self,
        rows: &dyn Rows,
        spec: &Spec,
        observer: &mut dyn Observer,
    ) -> Result<Fit<Mixture>, Error> {
        match rows.in_memory() {
            _ if self.needs_memory().is_none() => self.fit_source(Source::Passes(rows), spec, observer),
            Some(data) => self.fit_observed(data, spec, observer),
            None => Err(self.not_in_memory()),
        }
    }
}

one_method!(MixtureEm = "mixture-em");

impl MixtureEm {
    /// This many models, everything else by default.
    pub fn of(n_mixtures: usize) -> Self {
        Self { n_mixtures, ..Self::default() }
    }

    /// What cannot be had by passes, and what can be had instead.
    pub(crate) fn needs_memory(&self) -> Option<(&'static str, &'static str)> {
        match &self.init {
            MixtureInit::Responsibilities(_) => {
                Some(("a start from responsibilities", "one from centers or from a mixture"))
            }
            // Their means are found before their covariances: that takes two passes for each step.
            _ if self.ridge.is_some() => Some(("a mixture with a ridge", "one without")),
            _ if self.shared_covariance => {
                Some(("a mixture with one covariance", "one whose models have their own"))
            }
            _ => None,
        }
    }

    /// The error of one that needs the table in memory.
    pub(crate) fn not_in_memory(&self) -> Error {
        let (what, instead) = self.needs_memory().unwrap_or(("this method", BY_PASSES));
        Error::NotInMemory { what: what.to_owned(), instead }
    }

    fn fit_source(
        &self,
        source: Source<'_>,
        spec: &Spec,
        observer: &mut dyn Observer,
    ) -> Result<Fit<Mixture>, Error> {
        let facts = &source.rows().facts()?;
        self.check(facts, spec)?;
        let (constant, frame) = self.frame(facts, spec)?;
        let climb = || Climb::new(self, (source, facts), spec, &frame);
        let mut best = match (&self.init, source) {
            (MixtureInit::Given(mixture), _) => climb().at_mixture(mixture)?,
            (MixtureInit::Responsibilities(shares), Source::Memory(data)) => {
                climb().at_responsibilities(data, shares)?
            }
            _ => match (self.rows_of_starts(source.rows(), facts, spec)?, source) {
                (Some(some), _) => {
                    let facts = &some.facts();
                    let start = || Climb::new(self, (Source::Memory(&some), facts), spec, &frame);
                    climb().at_end_of(self.best_start(&some, start, observer)?)
                }
                (None, Source::Memory(data)) => self.best_start(data, climb, observer)?,
                (None, Source::Passes(rows)) => {
                    if let Some(data) = rows.in_memory() {
                        return self.fit_observed(data, spec, observer);
                    }
                    let all: Vec<usize> = (0..facts.n_rows()).collect();
                    return self.fit_observed(&rows.some_rows(&all)?, spec, observer);
                }
            },
        };
        best.run(self.max_iterations, observer)?;
        best.into_fit(constant, unseen_pairs_of(source.rows(), facts)?)
    }

    /// The units to fit in, and the constant columns. A ridge gives these a variance of their own.
    fn frame(&self, facts: &Facts, spec: &Spec) -> Result<(Vec<String>, Frame), Error> {
        let (variances, names) = (facts.observed_variances(), facts.column_names());
        let varies = |j: usize| !facts.is_constant(j);
        let frame = Frame::of_columns(facts.observed_means(), variances, spec);
        let Some(ridge) = self.ridge.filter(|ridge| *ridge > 0.0) else {
            return Ok((spec.check_variances_of(variances, names, &varies)?, frame));
        };
        // Of isotropic noise a constant column is a part like any other.
        let pooled = Spec { noise: NoiseFamily::Isotropic, ..spec.clone() };
        pooled.check_variances_of(variances, names, &varies)?;
        let Frame { mean, mut scale, isotropic, .. } = frame;
        if spec.standardize || !isotropic {
            scale.iter_mut().zip(variances).for_each(|(scale, v)| *scale = (v + ridge).sqrt());
        }
        Ok((Vec::new(), Frame::with_scale(mean, scale, isotropic)))
    }

    /// The part of a long table that it starts on; `None` where all rows are needed. Starts that are compared take few rows; one
    /// alone takes all, unless the table is longer than a block.
    fn rows_of_starts(&self, rows: &dyn Rows, facts: &Facts, spec: &Spec) -> Result<Option<Dataset>, Error> {
        let each = fewest_rows(spec.n_components) * self.n_mixtures;
        let (few, block) = (ROWS_OF_STARTS.max(ROWS_PER_AXIS * each), block_rows(facts.n_columns()));
        let is_long = facts.n_rows() > block;
        let compared = self.n_starts() > 1;
        if self.regularized() || few >= facts.n_rows() || !(compared || is_long) {
            return Ok(None);
        }
        for n in [few, block.max(few)] {
            let some = rows.some_rows(&facts.spread_rows(n))?;
            let seen = some.n_observed_by_column().iter().all(|n| *n > 0);
            if seen && some.n_informative_rows() >= each {
                return Ok(Some(some));
            }
            if !is_long {
                break;
            }
        }
        if is_long && rows.in_memory().is_none() {
            return Err(Error::NotInMemory {
                what: "a mixture, for whose start rows spread over the table have too few values,".to_owned(),
                instead: "a start that you give",
            });
        }
        Ok(None)
    }

    /// How many starts there are.
    fn n_starts(&self) -> usize {
        match self.init {
            MixtureInit::Auto | MixtureInit::KMeans if self.n_mixtures > 1 => 1 + self.restarts,
            _ => 1,
        }
    }

    /// The best of the starts, after some steps of all and more of the best third. One around rows must be
    /// clearly better than the best by k-means: on few rows a likelier maximum is often a worse one.
    fn best_start<'a>(
        &self,
        data: &Dataset,
        climb: impl Fn() -> Climb<'a>,
        observer: &mut dyn Observer,
    ) -> Result<Climb<'a>, Error> {
        let start = |k: usize| -> Result<Start<'a>, Error> {
            let around = self.init == MixtureInit::Auto && k % 2 == 1;
            Ok(Start { around, climb: self.start(data, climb(), k, around)? })
        };
        let mut left = (0..self.n_starts()).map(start).collect::<Result<Vec<_>, _>>()?;
        for steps in SHORT {
            if left.len() == 1 {
                break;
            }
            let mut interrupted = false;
            for Start { climb, .. } in &mut left {
                climb.run(steps.min(self.max_iterations), observer)?;
                interrupted = climb.is_interrupted();
                if interrupted {
                    break;
                }
            }
            // One that made no step yet comes last.
            let reached = |start: &Start<'_>| start.climb.log_likelihood().max(f64::NEG_INFINITY);
            left.sort_by(|a, b| reached(b).total_cmp(&reached(a)));
            if interrupted {
                return Ok(left.swap_remove(0).climb.interrupted());
            }
            let by_k_means = left.iter().position(|start| !start.around).unwrap_or(0);
            let keep = left.len().div_ceil(KEPT);
            if by_k_means >= keep {
                left.swap(keep, by_k_means);
            }
            left.truncate(keep.max(1 + by_k_means.min(keep)));
        }
        let by_k_means = left.iter().position(|start| !start.around).unwrap_or(0);
        let clearly = by_k_means == 0 || left[0].climb.is_clearly_above(&left[by_k_means].climb);
        Ok(left.swap_remove(if clearly { 0 } else { by_k_means }).climb)
    }

    /// Start number `k`, around rows or by k-means, if there are no centers.
    fn start<'a>(
        &self,
        data: &Dataset,
        climb: Climb<'a>,
        k: usize,
        around: bool,
    ) -> Result<Climb<'a>, Error> {
        let (frame, seed) = (climb.frame, self.seed.wrapping_add(k as u64));
        let clusters = match &self.init {
            MixtureInit::Centers(centers) => start::nearest(data, frame, centers),
            _ if around => start::neighborhoods(data, frame, self.n_mixtures, seed),
            _ => start::k_means(data, frame, self.n_mixtures, seed),
        };
        climb.at_clusters(data, clusters)
    }

    fn check(&self, facts: &Facts, spec: &Spec) -> Result<(), Error> {
        spec.check_facts(facts)?;
        let unsupported = |what, instead| Err(Error::Unsupported { method: Self::NAME, what, instead });
        if !spec.prior.is_flat() {
            return unsupported("a prior", "a noise floor");
        }
        if self.update == Update::ClosedForm && spec.noise == NoiseFamily::Diagonal {
            return unsupported("diagonal noise in closed form", "`latent` updates");
        }
        if self.regularized() && spec.noise == NoiseFamily::Diagonal && spec.n_components > 0 {
            return unsupported("a ridge or a shared covariance of factor analyzers", "isotropic noise");
        }
        if let Some(value) = self.ridge.filter(|ridge| !(ridge.is_finite() && *ridge >= 0.0)) {
            return Err(Error::OutOfRange { name: "ridge", value, bound: "finite and not negative" });
        }
        if !(self.tolerance >= 0.0 && self.tolerance.is_finite()) {
            let value = self.tolerance;
            return Err(Error::OutOfRange { name: "tolerance", value, bound: "finite and not negative" });
        }
        let (asked, rows) = (self.n_mixtures, facts.n_informative_rows());
        if asked == 0 {
            return Err(Error::OutOfRange { name: "n_mixtures", value: 0.0, bound: "at least 1" });
        }
        let each = if self.ridge.is_some() { 1 } else { fewest_rows(spec.n_components) };
        if asked > 1 && asked > rows / each {
            return Err(Error::TooManyMixtures { asked, rows, each, max: (rows / each).max(1) });
        }
        self.check_start(facts)
    }

    fn check_start(&self, facts: &Facts) -> Result<(), Error> {
        let (k, n, d) = (self.n_mixtures, facts.n_rows(), facts.n_columns());
        let (what, given, expected) = match &self.init {
            MixtureInit::Responsibilities(shares) => ("responsibilities", shares, (n, k)),
            MixtureInit::Centers(centers) => ("numbers of the centers", centers, (k, d)),
            _ => return Ok(()),
        };
        if (given.n_rows(), given.n_columns()) != expected {
            let expected = expected.0 * expected.1;
            return Err(Error::WrongLength { what, expected, got: given.as_slice().len() });
        }
        let negative = given.as_slice().iter().find(|v| !(v.is_finite() && **v >= 0.0));
        match (&self.init, negative) {
            (MixtureInit::Responsibilities(_), Some(&value)) => {
                let bound = "finite and not negative";
                Err(Error::OutOfRange { name: "a responsibility", value, bound })
            }
            _ => Ok(()),
        }
    }

    /// Whether the M-step is that of [`regularized`].
    fn regularized(&self) -> bool {
        self.ridge.is_some() || self.shared_covariance
    }

    fn closed_form(&self, d: usize, spec: &Spec) -> bool {
        let q = spec.n_components;
        match self.update {
            Update::ClosedForm => true,
            Update::Latent => false,
            Update::Auto => {
                // Without components the latent moments are the closed form, from observed cells alone.
                spec.noise == NoiseFamily::Isotropic && q > 0 && d <= NARROW.max(COLUMNS_PER_COMPONENT * q)
            }
        }
    }
}

/// Rows below which a model of a mixture is lost [M 1.9.4]: as many as its axes and mean take, and one.
fn fewest_rows(n_components: usize) -> usize {
    n_components + 2
}
