//! Words that the command and the report share.

use crate::scale::several;
use covary::infer::{ObjectiveKind, Termination};
use covary::learned::{Ending, Learned, Trained};

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

/// A learned model by its family and size.
pub fn described(learned: &Learned) -> String {
    let (words, q, shown) = (learned.family.words(), learned.n_components(), learned.n_shown());
    match &learned.model {
        Trained::Linear(_) => {
            format!("{words}, {}{}", several(shown, "component"), if shown < q { " shared" } else { "" })
        }
        Trained::Mixture(fit) => {
            let of = match &fit.classes {
                Some(classes) => {
                    format!(" for each of {} classes of `{}`", classes.names.len(), classes.target)
                }
                None => format!(", {}", several(fit.mixture.models().len(), "model")),
            };
            format!("{words}{of}, {} each", several(q, "component"))
        }
        Trained::Sources(_) => {
            let noise = if learned.noisy_sources().is_ok() { " behind noise" } else { "" };
            format!("{words}, {}{noise}", several(q, "source"))
        }
    }
}
