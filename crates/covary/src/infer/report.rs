//! How a fit went and how it ended, as data.

use super::diagnostics::ChainSummary;
use crate::data::list;
use crate::error::count;
use crate::model::{Density, LinearGaussian, Mixture, Predictive};
use crate::spec::{NoiseFamily, factor_degrees_of_freedom};
use crate::{Error, Spec};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

/// A fitted model and how it came about.
#[derive(Debug, Clone)]
pub struct Fit<M = LinearGaussian> {
    /// The model, in canonical form; of a sampler, the mean of its draws.
    pub model: M,
    /// Draws of the parameters, by a method that samples them.
    pub draws: Option<Mixture>,
    /// How the fit went and ended.
    pub report: FitReport,
}

impl<M: Density> Fit<M> {
    /// The density to score and impute new rows with: the draws if there are any, else the model.
    pub fn predictive(&self) -> &dyn Density {
        match &self.draws {
            Some(draws) => draws,
            None => &self.model,
        }
    }

    /// The density for rows the fit has seen: draws know them already and are not reweighted.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::Em, Density, Estimator, Spec};
    /// let (whole, _) = simulate::ppca(Shape { rows: 60, columns: 6, n_components: 2 }, /* seed */ 1);
    /// let table = simulate::hide(&whole, 0.2, /* seed */ 2);
    /// let filled = Em::default().fit(&table, &Spec::ppca(2))?.of_training_rows().impute(&table)?;
    /// assert_eq!(filled.cells().len(), table.n_gaps());
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn of_training_rows(&self) -> Predictive<'_> {
        Predictive::of_training_rows(&self.model, self.draws.as_ref())
    }
}

/// How a fit went and ended.
#[derive(Debug, Clone, PartialEq)]
pub struct FitReport {
    /// The quantity the method maximized, at the end.
    pub objective: Objective,
    /// The objective after each step, the start first (but variational methods, whose start has no bound).
    /// It may fall where a component was dropped.
    pub trace: Vec<f64>,
    /// Why the fit ended.
    pub termination: Termination,
    /// Warnings.
    pub warnings: Vec<Warning>,
    /// `E[αᵢ]` of the ARD prior, one per component of the model; empty for a method without one. A
    /// component counts for little where its precision is large. Its units are those of the method's
    /// prior: one over squared loadings, in the table's units where all columns share them and of the
    /// standardized table otherwise; pure numbers where the prior is in units of the noise
    /// ([`Structured`](super::Structured), [`Gibbs`](super::Gibbs)). With several
    /// [views](crate::Spec::views) one per view and component, those of the first view first, in its units.
    pub relevance: Vec<f64>,
    /// Diagnostics of a sampler's chains for scalars that no rotation of the components changes; empty for other
    /// methods.
    pub monitored: Vec<Monitored>,
}

/// A scalar that the chains of a sampler were watched by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Monitored {
    /// What it is, in words.
    pub quantity: String,
    /// Its mean over all draws, in the units that are sampled in (columns centered and scaled), and how well
    /// the chains know it.
    pub summary: ChainSummary,
}

impl FitReport {
    /// Of a method without relevances and chains.
    pub fn new(
        objective: Objective,
        trace: Vec<f64>,
        termination: Termination,
        warnings: Vec<Warning>,
    ) -> Self {
        Self { objective, trace, termination, warnings, relevance: Vec::new(), monitored: Vec::new() }
    }

    /// Of a closed form.
    pub(crate) fn closed_form(kind: ObjectiveKind, value: f64, warnings: Vec<Warning>) -> Self {
        Self::new(Objective { kind, value }, vec![value], Termination::ClosedForm, warnings)
    }

    /// Steps taken.
    pub fn n_iterations(&self) -> usize {
        self.trace.len().saturating_sub(1)
    }

    /// Whether the method reached what it was looking for.
    pub fn converged(&self) -> bool {
        matches!(self.termination, Termination::ClosedForm | Termination::Converged)
    }
}

/// A value and what it is; different kinds never compare.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Objective {
    /// What the value is.
    pub kind: ObjectiveKind,
    /// In nats, every constant included.
    #[serde(with = "crate::json")]
    pub value: f64,
}

/// What an objective measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectiveKind {
    /// Log-likelihood of the observed cells.
    LogLikelihood,
    /// Log-likelihood plus log-prior.
    LogPosterior,
    /// The variational bound: never above the log-evidence.
    LowerBound,
    /// Log-likelihood of the observed cells, averaged over draws of the parameters.
    AverageLogLikelihood,
}

/// Why a fit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Termination {
    /// There was nothing to iterate.
    ClosedForm,
    /// The stopping rule was met.
    Converged,
    /// The limit on iterations came first.
    IterationLimit,
    /// The observer asked to stop.
    Interrupted,
}

/// Something the user should know about a fit that was nevertheless returned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Warning {
    /// The iteration limit came before the stopping rule was met.
    StillRising {
        /// Iterations made.
        iterations: usize,
        /// Estimated gain still to come, in nats.
        #[serde(with = "crate::json")]
        remaining: f64,
    },
    /// The objective fell by more than rounding: precision was lost.
    ObjectiveFell {
        /// Iteration at which it fell.
        iteration: usize,
        /// By how much, in nats.
        #[serde(with = "crate::json")]
        by: f64,
    },
    /// The noise reached its floor, in these columns (all of them for isotropic noise): the data
    /// are explained without noise there ("Heywood case" in factor analysis).
    NoiseAtFloor {
        /// Names of the columns.
        columns: Vec<String>,
    },
    /// Columns with one value only.
    ConstantColumns {
        /// Names of the columns.
        columns: Vec<String>,
    },
    /// Columns observed in no more rows than there are components.
    SparseColumns {
        /// Names of the columns.
        columns: Vec<String>,
    },
    /// Pairs of columns never observed together: their covariance is known only through the
    /// low-rank structure.
    UnseenPairs {
        /// How many pairs.
        pairs: usize,
        /// The first of them, by name.
        example: (String, String),
    },
    /// The chains of a sampler have not met.
    NotMixed {
        /// What they disagree on most.
        quantity: String,
        /// Its split R̂; `None` if undefined.
        #[serde(with = "crate::json")]
        r_hat: Option<f64>,
        /// Draws that count, of all kept.
        #[serde(with = "crate::json")]
        effective_draws: f64,
    },
    /// A model of a mixture had lost its rows and was put at the row that the mixture explained least.
    ModelMoved {
        /// Iteration at which it was moved; the likelihood may fall there.
        iteration: usize,
    },
    /// A model of a mixture had lost its rows once too often.
    ModelRemoved {
        /// Iteration at which it was removed; the likelihood may fall there.
        iteration: usize,
        /// Models left.
        left: usize,
    },
    /// The degrees of freedom of Student's t grew without bound: the rows are a Gaussian's.
    GaussianTails,
    /// A factor model with zero degrees of freedom: it fits any covariance.
    Saturated,
    /// More factors than the columns can determine.
    NotIdentified {
        /// Factors of the model.
        factors: usize,
        /// Columns of the table.
        columns: usize,
        /// Most factors that this many columns determine.
        max: usize,
    },
    /// Factors in time that forget more slowly than the table is long, or not at all.
    LongMemory {
        /// The largest modulus of the roots of the transition.
        #[serde(with = "crate::json")]
        modulus: f64,
        /// Steps of the longest sequence.
        steps: usize,
    },
}

impl Warning {
    /// Its name for programs, as model files have it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::StillRising { .. } => "still_rising",
            Self::ObjectiveFell { .. } => "objective_fell",
            Self::NoiseAtFloor { .. } => "noise_at_floor",
            Self::ConstantColumns { .. } => "constant_columns",
            Self::SparseColumns { .. } => "sparse_columns",
            Self::UnseenPairs { .. } => "unseen_pairs",
            Self::NotMixed { .. } => "not_mixed",
            Self::ModelMoved { .. } => "model_moved",
            Self::ModelRemoved { .. } => "model_removed",
            Self::GaussianTails => "gaussian_tails",
            Self::Saturated => "saturated",
            Self::NotIdentified { .. } => "not_identified",
            Self::LongMemory { .. } => "long_memory",
        }
    }

    /// The warning about a model with as many parameters as the covariance has entries, or with more.
    pub(crate) fn of_unidentified(spec: &Spec, columns: usize) -> Option<Self> {
        let factors = spec.n_components;
        if spec.noise != NoiseFamily::Diagonal || factors == 0 {
            return None;
        }
        match factor_degrees_of_freedom(columns, factors) {
            0 => Some(Self::Saturated),
            degrees if degrees < 0 => {
                let max = spec.max_components(columns);
                Some(Self::NotIdentified { factors, columns, max })
            }
            _ => None,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StillRising { iterations, remaining } => {
                write!(
                    f,
                    "still rising after {iterations} iteration{}",
                    if *iterations == 1 { "" } else { "s" }
                )?;
                // One step carries no information about the next, and at rounding level there is nothing to estimate.
                if remaining.is_finite() && *remaining > 0.0 {
                    write!(f, ", by an estimated {remaining:.2e} nats")?;
                }
                write!(f, "; raise the limit on iterations")
            }
            Self::ObjectiveFell { iteration, by } => write!(
                f,
                "the objective fell by {by:.2e} nats at iteration {iteration}: precision was lost; rescale the data or set a noise floor"
            ),
            Self::NoiseAtFloor { columns } => write!(
                f,
                "the noise variance reached its floor in {}: these values are explained without noise; try fewer components or a prior",
                list(columns)
            ),
            Self::ConstantColumns { columns } => write!(
                f,
                "constant: {}; they carry no information and pull the noise variance down",
                list(columns)
            ),
            Self::SparseColumns { columns } => write!(
                f,
                "observed in no more rows than there are components: {}; their loadings are ill-determined, try a prior",
                list(columns)
            ),
            Self::UnseenPairs { pairs, example: (a, b) } => write!(
                f,
                "{pairs} pair(s) of columns are never observed together (`{a}` and `{b}`, for example): their correlation rests on the model alone"
            ),
            Self::NotMixed { quantity, r_hat, effective_draws } => write!(
                f,
                "{}: {quantity} has R-hat {} and {effective_draws:.0} effective draws (at most 1.01 and at least 400 are required); ask for more `draws` and a longer `warm_up`, or for fewer components",
                if r_hat.is_some_and(|r| r > 1.01) { "the chains have not mixed" } else { "too few draws" },
                r_hat.map_or("undefined".to_owned(), |r| format!("{r:.3}"))
            ),
            Self::ModelMoved { iteration } => write!(
                f,
                "a model of the mixture lost its rows at iteration {iteration} and was put elsewhere; fewer models may do"
            ),
            Self::ModelRemoved { iteration, left } => write!(
                f,
                "a model of the mixture lost its rows at iteration {iteration} and was removed: {left} {} left; ask for fewer, or for more restarts",
                if *left == 1 { "is" } else { "are" }
            ),
            Self::GaussianTails => write!(
                f,
                "the tails of the rows are no heavier than a Gaussian's: the model is probabilistic PCA"
            ),
            Self::Saturated => {
                write!(f, "zero degrees of freedom: the model fits any covariance and cannot be tested")
            }
            Self::NotIdentified { factors, columns, max } => write!(
                f,
                "{} more than the {max} that {} can determine: the covariance and the imputed values are meaningful, but the loadings are one choice of many",
                if *factors == 1 { "1 factor is".to_owned() } else { format!("{factors} factors are") },
                count(*columns, "column")
            ),
            Self::LongMemory { modulus, .. } if *modulus >= 1.0 => write!(
                f,
                "the largest root of the transition is {modulus:.6}, and from 1 on factors do not return to a mean: forecasts and their intervals grow without end; give the columns a trend, or fit differences or logarithms"
            ),
            Self::LongMemory { modulus, steps } => write!(
                f,
                "the largest root of the transition is {modulus:.6}, and below 1 factors return to their mean: within the {steps} steps of the table they hardly do, so that forecasts rest on a level that is barely known; give the columns a trend, or fit differences or logarithms"
            ),
        }
    }
}

/// One step of an iterative fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Steps made so far.
    pub iteration: usize,
    /// The objective now.
    pub objective: f64,
}

/// Watches a fit and may stop it: progress bars, Ctrl-C, early stopping.
pub trait Observer {
    /// Called after every step.
    fn step(&mut self, step: &Step) -> ControlFlow<()>;

    /// Called before (`true`) and after (`false`) a decomposition that has no step to stop at. In between, the
    /// work reads nothing of the table it was given, so that who waits for it may go away and let the last
    /// call end it.
    fn decomposing(&mut self, _begins: bool) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// A flag that, once set, asks for an end between two steps too. Several threads look at it while they go
    /// through the rows of a table.
    fn stop_flag(&self) -> Option<&AtomicBool> {
        None
    }
}

/// A flag that is never set.
pub(super) static NEVER: AtomicBool = AtomicBool::new(false);

/// The flag of an observer, or one that is never set.
pub(crate) fn stop_flag(observer: &dyn Observer) -> &AtomicBool {
    observer.stop_flag().unwrap_or(&NEVER)
}

/// A decomposition of numbers that belong to the work alone.
pub(super) fn decomposed<T>(
    observer: &mut dyn Observer,
    decompose: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    if observer.decomposing(true).is_break() {
        return Err(Error::Interrupted);
    }
    let found = decompose();
    if observer.decomposing(false).is_break() {
        return Err(Error::Interrupted);
    }
    found
}

impl Observer for () {
    fn step(&mut self, _: &Step) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(&Step) -> ControlFlow<()>> Observer for F {
    fn step(&mut self, step: &Step) -> ControlFlow<()> {
        self(step)
    }
}
