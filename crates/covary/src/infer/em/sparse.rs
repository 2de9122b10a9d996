//! Sparse loadings: which of them are 0 is found by a penalized likelihood, the others are those of maximum likelihood.

use super::moments::{Loadings, Support};
use super::parameters::{Frame, Parameters};
use super::{Em, Problem, Rule};
use crate::infer::options::{Options, Setting, word_or_number};
use crate::infer::report::{Fit, Observer, Termination};
use crate::infer::{Estimator, Method};
use crate::linalg::{Eigen, eigen};
use crate::model::{Rotation, RotationSearch, rotate_model};
use crate::{CentralMoments, Dataset, Error, LinearGaussian, Matrix, Spec};

/// Probabilistic PCA, or factor analysis, whose loadings are mostly 0 [M 2.9.4].
///
/// A path of penalized likelihoods, from the varimax rotation of the dense fit to ever sparser loadings,
///
/// ```text
/// max  ℓ(W, μ, Ψ) − λ Σⱼₖ nⱼ |wⱼₖ|        in units of each column's scale,  nⱼ: its observed cells
/// ```
///
/// offers supports: which loadings are not 0. On each the likelihood is maximized without the penalty, which would draw
/// the loadings that are left to 0, too; the support of the smallest extended BIC (Chen & Chen 2008, γ = ½),
/// `−2 ℓ + (ln n + ln d) · #{w ≠ 0}`, is kept: BIC alone takes one in a hundred zeros for a loading. Exact with gaps, like
/// [`Em`].
///
/// ```
/// use covary::{infer::SparseEm, data::simulate, Dataset, Density, Estimator, LinearGaussian, Matrix, Noise, Spec};
/// use rand::SeedableRng;
/// use rand_chacha::ChaCha8Rng;
/// let w = Matrix::from_rows(&[[1.0, 0.0], [0.9, 0.0], [0.8, 0.0], [0.0, 0.8], [0.0, 0.7], [0.0, 0.6]]);
/// let truth = LinearGaussian::new(w, vec![0.0; 6], Noise::Isotropic(0.2))?;
/// let table = simulate::hide(&Dataset::new(truth.sample(300, &mut ChaCha8Rng::seed_from_u64(1)))?, 0.1, /* seed */ 2);
/// let model = SparseEm::default().fit(&table, &Spec::ppca(2))?.model;
/// let zeros = |w: &Matrix| w.as_slice().iter().map(|v| *v == 0.0).collect::<Vec<_>>();
/// assert_eq!(zeros(model.loadings()), zeros(truth.loadings()));
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SparseEm {
    /// How many loadings of each component are not 0.
    pub n_nonzero: Nonzero,
    /// λ, instead of a number of loadings. What is fitted then is the penalized likelihood itself, whose loadings are drawn
    /// to 0.
    pub penalty: Option<f64>,
    /// How likelihoods are climbed; the options of both are one list.
    pub em: Em,
}

impl Default for SparseEm {
    fn default() -> Self {
        Self { n_nonzero: Nonzero::Chosen, penalty: None, em: Em::default() }
    }
}

/// How many loadings of each component are not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nonzero {
    /// As many as the smallest extended BIC asks for.
    Chosen,
    /// This many at most.
    Each(usize),
}

word_or_number!(Nonzero: Chosen = "chosen", Each, "chosen, or a whole number");

impl Options for SparseEm {
    fn options(&mut self) -> Vec<(&'static str, &mut dyn Setting)> {
        let Self { n_nonzero, penalty, em } = self;
        let mut options = em.options();
        options.push(("n_nonzero", n_nonzero));
        options.push(("penalty", penalty));
        options
    }
}

/// Penalties of the path: from this share of the one at which the largest loading of the start would vanish, to all of it.
const PATH: usize = 25;
const LEAST: f64 = 1.0 / 300.0;
/// Nats that may be left to gain on the path, where only supports are wanted, and iterations.
const ROUGH: f64 = 0.05;
const ROUGH_ITERATIONS: usize = 100;
/// Sparser supports in a row that are no better, after which the path ends.
const PATIENCE: usize = 5;

impl Estimator for SparseEm {
    type Model = LinearGaussian;

    fn fit_observed(&self, data: &Dataset, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        self.check(data, spec)?;
        self.em.fit_sparse(data, spec, observer, |problem, start| match (self.penalty, self.n_nonzero) {
            (Some(penalty), _) => Ok((start, Some(penalty))),
            (None, Nonzero::Chosen) => Ok((self.of_smallest_bic(problem, &start, cost(data))?, None)),
            (None, Nonzero::Each(n)) => Ok((self.of_size(problem, &start, n)?, None)),
        })
    }
}

impl Em {
    /// Fits sparse loadings from where `look`, given the dense fit turned to a simple structure, leads: with this penalty, or
    /// without one on the support that is there.
    pub(super) fn fit_sparse(
        &self,
        data: &Dataset,
        spec: &Spec,
        observer: &mut dyn Observer,
        look: impl FnOnce(Problem<'_>, Parameters) -> Result<(Parameters, Option<f64>), Error>,
    ) -> Result<Fit, Error> {
        let dense = self.dense(data, spec, observer)?;
        if spec.n_components == 0 || dense.report.termination == Termination::Interrupted {
            return Ok(dense);
        }
        from_dense(data, spec, &dense.model, |problem, start| {
            let (found, penalty) = look(problem, start)?;
            let found = if penalty.is_some() { found } else { without_empty(found) };
            let support = Support::of(&found.w);
            let loadings = penalty.map_or(Loadings::On(&support), Loadings::Penalized);
            let problem = Problem { loadings, ..problem };
            let climb = self.climb(problem, found, observer)?;
            // Warnings are those of the table, not of its summary.
            climb.into_fit(Problem { rows: data, facts: &data.facts(), ..problem })
        })
    }

    fn dense(&self, data: &Dataset, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        match Method::recommended(data, spec) {
            Method::Em(_) => self.fit_observed(data, spec, observer),
            closed => closed.fit_observed(data, spec, observer),
        }
    }
}

/// A point of the path of penalties.
#[derive(Debug, Clone, PartialEq)]
pub struct PathPoint {
    /// λ.
    pub penalty: f64,
    /// Loadings there, drawn to 0, d × q in the units of the table.
    pub loadings: Matrix,
    /// Extended BIC of the likelihood on their support.
    pub criterion: f64,
}

/// What a loading costs in extended BIC.
fn cost(data: &Dataset) -> f64 {
    (data.n_informative_rows() as f64).ln() + (data.n_columns() as f64).ln()
}

/// Works on the problem of a table from its dense model, turned to a simple structure; a long complete table is summed up.
fn from_dense<T>(
    data: &Dataset,
    spec: &Spec,
    dense: &LinearGaussian,
    work: impl FnOnce(Problem<'_>, Parameters) -> Result<T, Error>,
) -> Result<T, Error> {
    let frame = Frame::new(data, spec);
    let summary = Summary::of(data)?;
    let rows = summary.as_ref().map_or(data, |s| &s.rows);
    let rule = summary.as_ref().map_or(Rule::Equal, |s| Rule::Weighted(&s.rows, &s.weights));
    let facts = &rows.facts();
    let problem = Problem { rows, facts, spec, frame: &frame, rule, loadings: Loadings::Free };
    work(problem, frame.parameters(&simple(dense)?))
}

impl SparseEm {
    /// The path that supports are chosen from, penalties ascending, up to the last that leaves a loading.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::SparseEm, Spec};
    /// let (table, _) = simulate::ppca(Shape { rows: 100, columns: 6, n_components: 2 }, /* seed */ 1);
    /// let path = SparseEm::default().path(&table, &Spec::ppca(2))?;
    /// let left = |k: usize| path[k].loadings.as_slice().iter().filter(|w| **w != 0.0).count();
    /// assert!(path.windows(2).all(|p| p[0].penalty < p[1].penalty) && left(path.len() - 1) < left(0));
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`fit`](Estimator::fit).
    pub fn path(&self, data: &Dataset, spec: &Spec) -> Result<Vec<PathPoint>, Error> {
        self.check(data, spec)?;
        let dense = self.em.dense(data, spec, &mut ())?;
        if spec.n_components == 0 {
            return Ok(Vec::new());
        }
        from_dense(data, spec, &dense.model, |problem, start| {
            let mut points = Vec::with_capacity(PATH);
            self.walk(problem, &start, |penalty, at| {
                let mut loadings = at.w.clone();
                loadings.scale_rows(&problem.frame.scale);
                if loadings.as_slice().iter().all(|w| *w == 0.0) {
                    return Ok(false);
                }
                let (criterion, _) = self.on_support(problem, at.clone(), cost(data))?;
                points.push(PathPoint { penalty, loadings, criterion });
                Ok(true)
            })?;
            Ok(points)
        })
    }

    /// Extended BIC of the likelihood on the support of these loadings, and the parameters at its maximum.
    fn on_support(
        &self,
        problem: Problem<'_>,
        at: Parameters,
        cost: f64,
    ) -> Result<(f64, Parameters), Error> {
        let support = Support::of(&at.w);
        let on = Problem { loadings: Loadings::On(&support), ..problem };
        let climb = self.rough().climb(on, at, &mut ())?;
        Ok((cost * support.len() as f64 - 2.0 * climb.ascent.value(), climb.parameters))
    }

    fn check(&self, data: &Dataset, spec: &Spec) -> Result<(), Error> {
        spec.check_method("sparse-em", spec.noise)?;
        if let Nonzero::Each(n) = self.n_nonzero
            && !(1..=data.n_columns()).contains(&n)
        {
            let bound = "at least 1 and at most the number of columns";
            return Err(Error::OutOfRange { name: "n_nonzero", value: n as f64, bound });
        }
        match self.penalty {
            Some(value) if !(value.is_finite() && value >= 0.0) => {
                Err(Error::OutOfRange { name: "penalty", value, bound: "finite and not negative" })
            }
            Some(_) if self.n_nonzero != Nonzero::Chosen => Err(Error::Unsupported {
                method: "sparse-em",
                what: "`penalty` and `n_nonzero` at once",
                instead: "one of them",
            }),
            _ => Ok(()),
        }
    }

    /// The support of the path on which BIC is smallest, and the parameters there.
    fn of_smallest_bic(
        &self,
        problem: Problem<'_>,
        start: &Parameters,
        cost: f64,
    ) -> Result<Parameters, Error> {
        let on_support = |at: Parameters| self.on_support(problem, at, cost);
        let mut best = on_support(start.clone())?;
        let mut worse = 0;
        let mut last = Support::of(&start.w);
        self.walk(problem, start, |_, at| {
            let support = Support::of(&at.w);
            if support == last {
                return Ok(true);
            }
            let found = on_support(at.clone())?;
            last = support;
            worse = if found.0 < best.0 { 0 } else { worse + 1 };
            if found.0 < best.0 {
                best = found;
            }
            Ok(worse < PATIENCE && last.len() > 0)
        })?;
        // The path has no support between two of its points: the weakest loadings are tried one by one.
        while Support::of(&best.1.w).len() > 1 {
            let fewer = on_support(without_weakest(&best.1))?;
            if fewer.0 >= best.0 {
                break;
            }
            best = fewer;
        }
        Ok(best.1)
    }

    /// Of each component the `n` largest loadings, where the path leaves it as many last.
    fn of_size(&self, problem: Problem<'_>, start: &Parameters, n: usize) -> Result<Parameters, Error> {
        let mut found = largest(start, n);
        self.walk(problem, start, |_, at| {
            let mut left = false;
            for k in 0..at.w.n_columns() {
                if at.w.column(k).iter().filter(|v| **v != 0.0).count() >= n {
                    let kept = largest(at, n);
                    (0..at.w.n_rows()).for_each(|j| found.w[(j, k)] = kept.w[(j, k)]);
                    left = true;
                }
            }
            (found.mean, found.psi) = (at.mean.clone(), at.psi.clone());
            Ok(left)
        })?;
        Ok(found)
    }

    /// Walks along the path of penalties, each climb from the end of the last, while `look` wants more.
    fn walk(
        &self,
        problem: Problem<'_>,
        start: &Parameters,
        mut look: impl FnMut(f64, &Parameters) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let strength =
            start.w.rows().zip(&start.psi).flat_map(|(w, psi)| w.iter().map(move |w| w.abs() / psi));
        let most = strength.fold(0.0, f64::max);
        let rough = self.rough();
        let mut at = start.clone();
        for k in 0..PATH {
            let penalty = most * LEAST.powf(1.0 - k as f64 / (PATH - 1) as f64);
            let penalized = Problem { loadings: Loadings::Penalized(penalty), ..problem };
            at = rough.climb(penalized, at, &mut ())?.parameters;
            if !look(penalty, &at)? {
                break;
            }
        }
        Ok(())
    }

    fn rough(&self) -> Em {
        let tolerance = self.em.tolerance.max(ROUGH);
        Em { tolerance, max_iterations: self.em.max_iterations.min(ROUGH_ITERATIONS), ..self.em.clone() }
    }
}

/// A few rows that stand for a long complete table: with its mean and covariance they have its likelihood, too.
///
/// ```text
/// μ ± √d λᵢ^½ D vᵢ,  each n/2d times        λᵢ, vᵢ: eigenpairs of the correlations,  D: standard deviations
/// ```
struct Summary {
    rows: Dataset,
    weights: Vec<f64>,
}

impl Summary {
    /// `None` if the table has gaps or is shorter than that.
    fn of(data: &Dataset) -> Result<Option<Self>, Error> {
        let (n, d) = (data.n_rows(), data.n_columns());
        if n <= 2 * d || !data.is_complete() {
            return Ok(None);
        }
        let moments = CentralMoments::of(data)?;
        // In the units of the table columns of small numbers would lose their digits.
        let mut correlations = moments.covariance();
        let deviation: Vec<f64> = (0..d).map(|j| correlations[(j, j)].sqrt()).collect();
        let inverse: Vec<f64> = deviation.iter().map(|s| if *s > 0.0 { 1.0 / s } else { 0.0 }).collect();
        correlations.scale_both(&inverse);
        let Eigen { values, vectors } = eigen(&correlations)?;
        let length = |i: usize| (d as f64 * values[i].max(0.0)).sqrt();
        let sign = |i: usize| if i < d { 1.0 } else { -1.0 };
        let cell = |i: usize, j: usize| {
            moments.mean()[j] + sign(i) * length(i % d) * deviation[j] * vectors[(j, i % d)]
        };
        let rows = Dataset::new(Matrix::from_fn(2 * d, d, cell))?;
        Ok(Some(Self { rows, weights: vec![n as f64 / (2 * d) as f64; 2 * d] }))
    }
}

/// The same model with its loadings turned to a simple structure.
fn simple(model: &LinearGaussian) -> Result<LinearGaussian, Error> {
    let varimax = rotate_model(model, &Rotation::Varimax { kaiser: true }, &RotationSearch::default())?;
    Ok(model.rotated(&varimax.transform))
}

/// The parameters without components that have no loadings left.
fn without_empty(mut at: Parameters) -> Parameters {
    let kept: Vec<usize> =
        (0..at.w.n_columns()).filter(|&k| at.w.column(k).iter().any(|v| *v != 0.0)).collect();
    at.w = Matrix::from_fn(at.w.n_rows(), kept.len(), |j, k| at.w[(j, kept[k])]);
    at
}

/// The parameters without the loading that is smallest beside the noise of its column.
fn without_weakest(at: &Parameters) -> Parameters {
    let strength = |&(j, k): &(usize, usize)| at.w[(j, k)].powi(2) / at.psi[j];
    let cells = (0..at.w.n_rows()).flat_map(|j| (0..at.w.n_columns()).map(move |k| (j, k)));
    let left = cells.filter(|&cell| at.w[cell] != 0.0);
    let mut fewer = at.clone();
    if let Some(weakest) = left.min_by(|a, b| strength(a).total_cmp(&strength(b))) {
        fewer.w[weakest] = 0.0;
    }
    fewer
}

/// The parameters with the `n` largest loadings of each component alone.
fn largest(at: &Parameters, n: usize) -> Parameters {
    let mut kept = at.clone();
    for k in 0..at.w.n_columns() {
        let mut order: Vec<usize> = (0..at.w.n_rows()).collect();
        order.sort_by(|&i, &j| at.w[(j, k)].abs().total_cmp(&at.w[(i, k)].abs()));
        order[n..].iter().for_each(|&j| kept.w[(j, k)] = 0.0);
    }
    kept
}
