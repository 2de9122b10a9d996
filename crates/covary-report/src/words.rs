//! Words that the command and the report share.

use crate::scale::several;
use covary::infer::{FitReport, ObjectiveKind, Termination};

/// How a fit ended.
pub fn ending(report: &FitReport) -> String {
    let steps = match report.objective.kind {
        ObjectiveKind::AverageLogLikelihood => format!("{} per chain", several(report.trace.len(), "draw")),
        _ => several(report.n_iterations(), "step"),
    };
    ended(report.termination, &steps)
}

/// Why it ended, after this many steps.
pub fn ended(termination: Termination, steps: &str) -> String {
    match termination {
        Termination::ClosedForm => "in closed form".to_owned(),
        Termination::Converged => format!("converged after {steps}"),
        Termination::IterationLimit => format!("stopped at the limit of {steps}"),
        Termination::Interrupted => format!("interrupted after {steps}"),
    }
}

/// What a fit maximized.
pub fn objective(kind: ObjectiveKind) -> &'static str {
    match kind {
        ObjectiveKind::LogLikelihood => "log-likelihood",
        ObjectiveKind::LogPosterior => "log-posterior",
        ObjectiveKind::LowerBound => "lower bound",
        ObjectiveKind::AverageLogLikelihood => "average log-likelihood",
    }
}
