//! A Gaussian with an unrestricted covariance, complete or with gaps, regularized by pseudo-rows.

mod anderson;
mod climb;
mod expectation;
mod posterior;

pub(super) use expectation::Moments;
pub(crate) use posterior::{ParameterPosterior, informative_rows};

use super::Estimator;
use super::em::parameters::Frame;
use super::em::start::unseen_pairs_of;
use super::options::{Options, Setting};
use super::pass::Rows;
use super::report::{Fit, FitReport, Objective, ObjectiveKind, Observer, Warning};
use crate::data::Facts;
use crate::linalg::eigen;
use crate::model::{LinearGaussian, Noise};
use crate::spec::NoiseFamily;
use crate::{Dataset, Error, Matrix, Spec};
use climb::Climb;

/// EM for the whole covariance matrix, which probabilistic PCA has when it is given all components but
/// one: its noise is then the smallest eigenvalue.
///
/// ```text
/// max  ℓ(μ, Σ) − λ KL(N(0, v I) ‖ N(0, Σ))
/// Σ ← (Σᵢ ⟨(t−μ)(t−μ)ᵀ⟩ + λ v I) / (n + λ)
/// ```
///
/// λ is [`pseudo_rows`](Self::pseudo_rows), v the mean observed variance, which is 1 for a standardized
/// fit. A method to filled gaps; `Spec::n_components` must be one less than columns.
///
/// ```
/// use covary::{infer::FullCovariance, CentralMoments, Dataset, Estimator, Matrix, Spec};
/// let table = Dataset::new(Matrix::from_rows(&[[1.0, 2.0], [2.0, 1.0], [4.0, 7.0], [3.0, 3.0]]))?;
/// let method = FullCovariance { pseudo_rows: 0.0, ..FullCovariance::default() };
/// let model = method.fit(&table, &Spec::ppca(1))?.model;
/// let (c, s) = (model.covariance(), CentralMoments::of(&table)?.covariance());
/// assert!((c[(0, 1)] - s[(0, 1)]).abs() < 1e-12);   // without gaps and pseudo-rows: the sample covariance
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FullCovariance {
    /// λ: this many rows of variance v in every direction are added to those seen. 5, the default, filled
    /// the gaps of three tables best on average, 3 and 10 less than half a percent worse. 0 is maximum
    /// likelihood, which needs more rows than columns.
    pub pseudo_rows: f64,
    /// Most iterations.
    pub max_iterations: usize,
    /// Stop when two steps in a row gained less than this many nats for each entry of the covariance. A
    /// remaining gain of g for each leaves them √(2g) standard errors from the optimum: 0.04 by default,
    /// where filled cells no longer change their error. 0 runs all iterations.
    pub tolerance: f64,
    /// Where it starts; if `None`, at the center of the prior.
    pub init: Option<Box<LinearGaussian>>,
}

impl Default for FullCovariance {
    fn default() -> Self {
        Self { pseudo_rows: 5.0, max_iterations: 500, tolerance: 1e-3, init: None }
    }
}

/// A start has no name.
impl Options for FullCovariance {
    fn options(&mut self) -> Vec<(&'static str, &mut dyn Setting)> {
        let Self { pseudo_rows, max_iterations, tolerance, init: _ } = self;
        vec![("pseudo_rows", pseudo_rows), ("max_iterations", max_iterations), ("tolerance", tolerance)]
    }
}

const NAME: &str = "full-covariance";
/// Smallest eigenvalue as a share of v: a covariance matrix holds no digits of much smaller ones.
const FLOOR: f64 = 1e-8;

/// The floor in force.
fn floor(spec: &Spec) -> f64 {
    spec.floor().max(FLOOR)
}

impl Estimator for FullCovariance {
    type Model = LinearGaussian;

    fn fit_observed(&self, data: &Dataset, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        self.fit_rows(data, spec, observer)
    }

    fn fit_rows(&self, rows: &dyn Rows, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        let facts = &rows.facts()?;
        spec.check_method(NAME, NoiseFamily::Isotropic)?;
        spec.check_facts(facts)?;
        let (variances, names) = (facts.observed_variances(), facts.column_names());
        let constant = spec.check_variances_of(variances, names, &|j| !facts.is_constant(j))?;
        self.check(facts, spec)?;
        let frame = Frame::of_columns(facts.observed_means(), variances, spec);
        let climb = Climb::new(self, (rows, facts), spec, &frame).run(observer)?;
        let mut warnings = climb.warnings;
        if !constant.is_empty() {
            warnings.push(Warning::ConstantColumns { columns: constant });
        }
        let spectrum = eigen(&climb.at.covariance)?;
        if spectrum.values[names.len() - 1] <= floor(spec) * (1.0 + 1e-6) {
            warnings.push(Warning::NoiseAtFloor { columns: names.to_vec() });
        }
        let sparse = |j: &usize| facts.n_observed_by_column()[*j] <= spec.n_components;
        let sparse: Vec<usize> = (0..names.len()).filter(sparse).collect();
        if self.pseudo_rows == 0.0 && !sparse.is_empty() {
            let columns = sparse.iter().map(|&j| names[j].clone()).collect();
            warnings.push(Warning::SparseColumns { columns });
        }
        warnings.extend(unseen_pairs_of(rows, facts)?);
        let kind =
            if self.pseudo_rows == 0.0 { ObjectiveKind::LogLikelihood } else { ObjectiveKind::LogPosterior };
        let value = *climb.trace.last().expect("the start is in the trace");
        let report = FitReport::new(Objective { kind, value }, climb.trace, climb.termination, warnings);
        let model = model(&spectrum.values, &spectrum.vectors, climb.at.mean, &frame, spec)?;
        Ok(Fit { model, draws: None, report })
    }
}

impl FullCovariance {
    /// The same, started from a model of the same columns if there is one.
    #[must_use]
    pub fn from(&self, start: Option<&LinearGaussian>) -> Self {
        Self { init: start.map(|model| Box::new(model.clone())), ..self.clone() }
    }

    fn check(&self, facts: &Facts, spec: &Spec) -> Result<(), Error> {
        for (name, value) in [("pseudo_rows", self.pseudo_rows), ("tolerance", self.tolerance)] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Error::OutOfRange { name, value, bound: "finite and not negative" });
            }
        }
        let (asked, columns) = (spec.n_components, facts.n_columns());
        if asked + 1 != columns {
            return Err(Error::FixedComponents { asked, columns, fixed: columns - 1 });
        }
        let rows = facts.n_informative_rows();
        if self.pseudo_rows == 0.0 && rows <= columns && spec.noise_floor.is_none() {
            return Err(Error::DegenerateNoise { asked: spec.n_components, rank: rows - 1 });
        }
        Ok(())
    }
}

/// `W = D U (Λ − λ_d)^½`, `Ψ = λ_d D²`: canonical except for signs, since `Wᵀ Ψ⁻¹ W` is diagonal.
fn model(
    values: &[f64],
    axes: &Matrix,
    mean: Vec<f64>,
    frame: &Frame,
    spec: &Spec,
) -> Result<LinearGaussian, Error> {
    let q = values.len() - 1;
    let smallest = values[q].max(floor(spec));
    let mut w = axes.first_columns(q);
    w.scale_columns(&values[..q].iter().map(|v| (v - smallest).max(0.0).sqrt()).collect::<Vec<_>>());
    w.scale_rows(&frame.scale);
    let noise = if spec.standardize {
        Noise::Diagonal(frame.scale.iter().map(|s| s * s * smallest).collect())
    } else {
        Noise::Isotropic(frame.scale[0] * frame.scale[0] * smallest)
    };
    Ok(LinearGaussian::new(w, mean, noise)?.with_scale(frame.of_fit(spec))?.signed())
}

/// Where a climb stands: the mean in the user's units, the rest in those of the frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Gaussian {
    pub(super) mean: Vec<f64>,
    pub(super) covariance: Matrix,
    pub(super) precision: Matrix,
    pub(super) ln_det: f64,
}
