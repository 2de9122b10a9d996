//! Words that the command and the report share.

use crate::scale::several;
use covary::infer::{ObjectiveKind, Termination};
use covary::learned::Ending;

/// How a fit ended.
pub fn ending(end: &Ending<'_>) -> String {
    let steps = match end.objective.map(|objective| objective.kind) {
        Some(ObjectiveKind::AverageLogLikelihood) => {
            format!("{} per chain", several(end.trace.len(), "draw"))
        }
        _ => several(end.n_iterations, "step"),
    };
    match end.termination {
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
