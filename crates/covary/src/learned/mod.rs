//! What comes of a request: a [`Learned`] model, whatever its family, with all that is known of how it came about.
//!
//! It is what every verb of the command, every figure and every Python class works on, and what a model file holds.
//!
//! ```
//! use covary::{data::{simulate, Shape}, learned::{Learned, Rows}, Estimator, Method, Spec};
//! let (whole, _) = simulate::ppca(Shape { rows: 80, columns: 5, n_components: 2 }, /* seed */ 1);
//! let table = simulate::hide(&whole, 0.1, /* seed */ 2);
//! let (spec, method) = (Spec::ppca(2), Method::from_name("em").unwrap());
//! let learned = Learned::of_fit(method.fit(&table, &spec)?, &table, &spec, &method);
//! assert_eq!(learned.fill(Rows::Training)?.fill(&table)?.cells().len(), table.n_gaps());
//! # Ok::<(), covary::Error>(())
//! ```

mod answers;
mod beside;
mod check;
mod course;
mod draws;
mod dynamic;
mod functional;
mod linear;
mod mixture;
mod sensitivity;
mod sources;
mod whole;

pub(crate) use answers::Answers;
pub use answers::{Membership, RowScores, Rows, Scores, Surprise};
pub use beside::BesideTime;
pub use check::{CheckOutcome, Checked};
pub use course::Course;
pub use draws::GapDraws;
pub use dynamic::{DynamicFit, Knowing};
pub use functional::{CurveTable, FunctionalFit};
pub use linear::{LinearFit, ParameterUncertainty, RotatedLoadings};
pub use mixture::{ClassNames, MixtureFit};
pub use sensitivity::{Tipping, TippingPoint};
pub(crate) use whole::Residuals;

use crate::data::Facts;
use crate::family::{Arrangement, Family};
use crate::filling::Filling;
use crate::ica;
use crate::infer::{FitReport, MethodRecord, Objective, Termination};
use crate::model::ColumnMap;
use crate::select::SelfCheck;
use crate::{Dataset, Error, Spec};

/// A learned model of any family.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    /// What the user called the model; of classes that of each.
    pub family: Family,
    /// Names of its columns, in order.
    pub columns: Vec<String>,
    /// Columns that never varied and are not in the model.
    pub constants: Vec<Constant>,
    /// How it was fitted.
    pub method: MethodRecord,
    /// The seed the user gave.
    pub seed: u64,
    /// The table it was fitted to, in a few numbers per column.
    pub training: Training,
    /// How well hidden cells of the table were predicted, if that was looked at.
    pub check: Option<SelfCheck>,
    /// How it fills, by hidden cells of the table, if it was learned for that.
    pub filling: Option<Filling>,
    /// The program that learned it, with its version.
    pub created_by: String,
    /// The model itself, and how the fit went.
    pub model: Trained,
}

/// The model itself, by the kind of its family.
#[derive(Debug, Clone, PartialEq)]
pub enum Trained {
    /// One linear-Gaussian model.
    Linear(Box<LinearFit>),
    /// Several, or one for each class.
    Mixture(Box<MixtureFit>),
    /// Independent sources.
    Sources(Box<ica::Fit>),
    /// Factors in time.
    Dynamic(Box<DynamicFit>),
    /// Curves.
    Functional(Box<FunctionalFit>),
}

impl Trained {
    /// The one place that tells kinds of models apart: what they answer is in a file for each.
    fn answers(&self) -> &dyn Answers {
        match self {
            Self::Linear(fit) => &**fit,
            Self::Mixture(fit) => &**fit,
            Self::Sources(fit) => &**fit,
            Self::Dynamic(fit) => &**fit,
            Self::Functional(fit) => &**fit,
        }
    }
}

/// A column that never varied.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Its one value.
    pub value: f64,
}

/// The table behind a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Training {
    /// Its rows.
    pub n_rows: usize,
    /// Observed cells per column.
    pub n_observed_by_column: Vec<usize>,
    /// Mean of the observed cells of each column.
    pub column_means: Vec<f64>,
    /// Standard deviation of the observed cells of each column (divisor: their number).
    pub column_sds: Vec<f64>,
}

impl Training {
    /// The numbers of a table.
    pub fn of(data: &Dataset) -> Self {
        Self {
            n_rows: data.n_rows(),
            n_observed_by_column: data.n_observed_by_column().to_vec(),
            column_means: data.observed_means().to_vec(),
            column_sds: data.observed_variances().iter().map(|v| v.sqrt()).collect(),
        }
    }

    /// The numbers of rows that were gone through.
    pub fn of_facts(facts: &Facts) -> Self {
        Self {
            n_rows: facts.n_rows(),
            n_observed_by_column: facts.n_observed_by_column().to_vec(),
            column_means: facts.observed_means().to_vec(),
            column_sds: facts.observed_variances().iter().map(|v| v.sqrt()).collect(),
        }
    }

    /// The names of a table's columns, and its numbers.
    fn with_names(data: &Dataset) -> (Vec<String>, Self) {
        (data.column_names().to_vec(), Self::of(data))
    }

    /// Missing cells.
    pub fn n_gaps(&self) -> usize {
        self.n_observed_by_column.iter().map(|n| self.n_rows - n).sum()
    }
}

/// The name and version of this library.
const CREATED_BY: &str = concat!("covary ", env!("CARGO_PKG_VERSION"));

impl Learned {
    /// A model of a table known by its columns' names and numbers, all that was not said left empty.
    fn new(
        family: Family,
        (columns, training): (Vec<String>, Training),
        method: MethodRecord,
        model: Trained,
    ) -> Self {
        Self {
            family,
            columns,
            constants: Vec::new(),
            seed: method.options.get("seed").and_then(|seed| seed.parse().ok()).unwrap_or(0),
            method,
            training,
            check: None,
            filling: None,
            created_by: CREATED_BY.to_owned(),
            model,
        }
    }

    /// Whether rows tell nothing of each other.
    fn has_exchangeable_rows(&self) -> bool {
        self.family.arrangement() == Arrangement::Exchangeable
    }

    /// Where the model's columns stand among these, by name, and the constants.
    ///
    /// # Errors
    /// [`Error::NoColumn`] if one is not among them.
    pub fn column_map(&self, names: &[String]) -> Result<ColumnMap, Error> {
        let place = |name: &String| names.iter().position(|n| n == name);
        let needed = |name: &String| place(name).ok_or_else(|| Error::NoColumn { column: name.clone() });
        Ok(ColumnMap {
            columns: self.columns.iter().map(needed).collect::<Result<_, _>>()?,
            constants: self.constants.iter().filter_map(|c| Some((place(&c.name)?, c.value))).collect(),
        })
    }

    /// The one linear-Gaussian model.
    ///
    /// # Errors
    /// [`Error::NotOneModel`] for a mixture, [`Error::NoDensity`] for independent components.
    pub fn linear(&self) -> Result<&LinearFit, Error> {
        match &self.model {
            Trained::Linear(fit) => Ok(fit),
            other => Err(other.answers().not_linear()),
        }
    }

    /// The same, to change it.
    ///
    /// # Errors
    /// As [`linear`](Self::linear).
    pub fn linear_mut(&mut self) -> Result<&mut LinearFit, Error> {
        match &mut self.model {
            Trained::Linear(fit) => Ok(fit),
            other => Err(other.answers().not_linear()),
        }
    }

    /// The models of a mixture, or of classes.
    ///
    /// # Errors
    /// [`Error::NotAMixture`] for other models.
    pub fn mixture(&self) -> Result<&MixtureFit, Error> {
        match &self.model {
            Trained::Mixture(fit) => Ok(fit),
            Trained::Linear(_) => Err(Error::NotAMixture { what: "one model" }),
            other => Err(Error::NotAMixture { what: other.answers().words() }),
        }
    }

    /// The independent sources.
    ///
    /// # Errors
    /// [`Error::NoSources`] for other models.
    pub fn sources(&self) -> Result<&ica::Fit, Error> {
        match &self.model {
            Trained::Sources(fit) => Ok(fit),
            other => Err(Error::NoSources { what: other.answers().words() }),
        }
    }

    fn answers(&self) -> &dyn Answers {
        self.model.answers()
    }

    /// The components of the model, of each of its models, or its sources.
    pub fn n_components(&self) -> usize {
        self.answers().n_components()
    }

    /// The components to show: of canonical correlation those that are shared, not the private ones that stand for
    /// the noise within views.
    pub fn n_shown(&self) -> usize {
        self.answers().n_shown(self)
    }

    /// What the scores of one model are called: `component_1`, …
    pub fn score_names(&self) -> Vec<String> {
        (1..=self.n_shown()).map(|k| format!("component_{k}")).collect()
    }

    /// What was fitted, or is each of several models; `None` for independent components.
    pub fn spec(&self) -> Option<&Spec> {
        self.answers().spec()
    }

    /// Whether columns were given unit variance before the fit.
    pub fn standardized(&self) -> bool {
        self.spec().is_some_and(|spec| spec.standardize)
    }

    /// How the fit ended.
    pub fn ending(&self) -> Ending<'_> {
        self.answers().ending()
    }
}

/// How a fit of any family ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending<'a> {
    /// Why it ended.
    pub termination: Termination,
    /// Steps taken.
    pub n_iterations: usize,
    /// The objective after each step.
    pub trace: &'a [f64],
    /// What was maximized, at the end; `None` for a method that has no objective.
    pub objective: Option<Objective>,
    /// Its warnings.
    pub warnings: Vec<Notice>,
}

impl<'a> From<&'a FitReport> for Ending<'a> {
    fn from(report: &'a FitReport) -> Self {
        Self {
            termination: report.termination,
            n_iterations: report.n_iterations(),
            trace: &report.trace,
            objective: Some(report.objective),
            warnings: report.warnings.iter().map(Notice::from).collect(),
        }
    }
}

/// A warning of any method, as data and in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Its code, as model files have it.
    pub code: &'static str,
    /// Whether it is about convergence.
    pub of_convergence: bool,
    /// The sentence.
    pub message: String,
}

impl From<&crate::infer::Warning> for Notice {
    fn from(warning: &crate::infer::Warning) -> Self {
        let of_convergence = matches!(warning, crate::infer::Warning::StillRising { .. });
        Self { code: warning.code(), of_convergence, message: warning.to_string() }
    }
}

impl From<&ica::Warning> for Notice {
    fn from(warning: &ica::Warning) -> Self {
        let of_convergence = matches!(warning, ica::Warning::NotConverged { .. });
        Self { code: warning.code(), of_convergence, message: warning.to_string() }
    }
}
