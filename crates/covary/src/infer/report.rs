//! How a fit went and how it ended, as data.

use crate::data::list;
use crate::model::{Density, LinearGaussian};
use std::fmt;
use std::ops::ControlFlow;

/// A fitted model and how it came about.
#[derive(Debug, Clone)]
pub struct Fit<M = LinearGaussian> {
    /// The model, in canonical form.
    pub model: M,
    /// How the fit went and ended.
    pub report: FitReport,
}

impl<M: Density> Fit<M> {
    /// The density to score and impute with.
    pub fn predictive(&self) -> &dyn Density {
        &self.model
    }
}

/// How a fit went and ended.
#[derive(Debug, Clone, PartialEq)]
pub struct FitReport {
    /// The quantity the road maximised, at the end.
    pub objective: Objective,
    /// The objective after each step, the start first.
    pub trace: Vec<f64>,
    /// Why the fit ended.
    pub termination: Termination,
    /// What to doubt.
    pub warnings: Vec<Warning>,
}

impl FitReport {
    /// Steps taken.
    pub fn n_iterations(&self) -> usize {
        self.trace.len().saturating_sub(1)
    }

    /// Whether the road reached what it was looking for.
    pub fn converged(&self) -> bool {
        matches!(self.termination, Termination::ClosedForm | Termination::Converged)
    }
}

/// A value and what it is; different kinds never compare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// What the value is.
    pub kind: ObjectiveKind,
    /// In nats, every constant included.
    pub value: f64,
}

/// What an objective measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectiveKind {
    /// Log-likelihood of the observed cells.
    LogLikelihood,
    /// Log-likelihood plus log-prior.
    LogPosterior,
}

/// Why a fit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// The iteration limit came before the stopping rule was met.
    StillRising {
        /// Iterations made.
        iterations: usize,
        /// Estimated gain still to come, in nats.
        remaining: f64,
    },
    /// The objective fell by more than rounding: precision was lost.
    ObjectiveFell {
        /// Iteration at which it fell.
        iteration: usize,
        /// By how much, in nats.
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
    /// A factor model with zero degrees of freedom: it fits any covariance.
    Saturated,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StillRising { iterations, remaining } => write!(
                f,
                "still rising after {iterations} iterations, by an estimated {remaining:.2e} nats; raise the limit on iterations"
            ),
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
                "{pairs} pair(s) of columns are never observed together (`{a}` and `{b}`, for one): their correlation rests on the model alone"
            ),
            Self::Saturated => {
                write!(f, "zero degrees of freedom: the model fits any covariance and cannot be tested")
            }
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
