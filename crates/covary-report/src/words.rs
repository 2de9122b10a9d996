//! Words that the command and the report share.

use crate::scale::several;
use covary::filling::{Candidate, Filling, Gain};
use covary::infer::{FactorReport, ObjectiveKind, Termination};
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
        // Nothing but a stream ends without a step.
        Termination::IterationLimit if end.n_iterations == 0 => "from a stream of blocks of rows".to_owned(),
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

/// What hidden cells chose to impute by, if they did.
pub fn chosen_filling(filling: &Filling) -> Option<String> {
    let first = filling.tried.first()?;
    if let Some(means) = filling.tried.iter().find(|t| t.taken && t.candidate == Candidate::ColumnMeans) {
        return Some(format!(
            "gaps take the mean of their column, which predicts hidden cells best (CRPS {:.3})",
            means.crps
        ));
    }
    let (mut chosen, mut default) = (None, None);
    let mut words = Vec::new();
    for tried in &filling.tried {
        match tried.candidate {
            Candidate::PseudoRows(n) if tried == first => default = Some((n, tried.crps)),
            Candidate::PseudoRows(n) if tried.taken => chosen = Some((n, tried.crps)),
            Candidate::Correction if tried.taken => {
                let Gain { mean, standard_error } = tried.gain;
                let digits = if mean < 5e-4 { 5 } else { 3 };
                let gain = format!("{mean:.digits$} ± {standard_error:.digits$}");
                words.push(format!("a nonlinear correction (CRPS lower by {gain})"));
            }
            _ => {}
        }
    }
    let (n, crps) = default?;
    let rows = match chosen {
        Some((better, score)) => format!("{} (CRPS {score:.3}; {crps:.3} with {n})", pseudo_rows(better)),
        None => format!("{} (CRPS {crps:.3})", pseudo_rows(n)),
    };
    words.insert(0, rows);
    Some(format!("hidden cells chose {}", words.join(" and ")))
}

/// A number of pseudo-rows, whole or not.
fn pseudo_rows(n: f64) -> String {
    format!("{n} pseudo-row{}", if n == 1.0 { "" } else { "s" })
}

/// What the intervals of imputed values were calibrated on, if they were.
pub fn calibrated_on(filling: &Filling) -> Option<String> {
    let calibration = filling.calibration.as_ref()?;
    let how = if calibration.transplanted { ", hidden as the gaps lie" } else { "" };
    Some(format!("intervals calibrated on {}{how}", several(calibration.n_hidden, "hidden cell")))
}

/// Why the intervals of imputed values are not calibrated, where that was asked for.
pub fn not_calibrated(filling: &Filling) -> String {
    let instead = if filling.estimated {
        "; they are those of Student's t, which counts that mean and covariance were estimated"
    } else {
        ""
    };
    format!("intervals are not calibrated: too few cells can be hidden{instead}")
}

/// A p-value, with the sign that stands before it.
pub fn p_value(p: f64) -> String {
    match p {
        // The smallest numbers are 0 to a computer.
        p if p < f64::MIN_POSITIVE => "< 1e-300".to_owned(),
        p if p < 1e-4 => format!("= {p:.0e}"),
        p => format!("= {p:.4}"),
    }
}

/// How well a factor analysis fits: the test, then the indices.
pub fn fit_statistics(found: &FactorReport) -> Vec<String> {
    let mut lines = Vec::new();
    let test = found.chi_square.map(|chi_square| {
        let df = several(usize::try_from(found.degrees_of_freedom).unwrap_or(0), "degree");
        let kind =
            if found.reference.complete { "Bartlett's chi-squared" } else { "likelihood-ratio chi-squared" };
        format!("{kind} {chi_square:.2}, {df} of freedom")
    });
    let p = found.p_value.map(|p| format!("p {}", p_value(p)));
    let why = found.untested.map_or(String::new(), |why| why.words().to_owned());
    lines.push(match (test, p) {
        (Some(test), Some(p)) => format!("test of fit: {test}, {p}"),
        (Some(test), None) => format!("{test}, without a p-value: {why}"),
        (None, _) => format!("no test of fit: {why}"),
    });
    let mut indices = Vec::new();
    if let Some(rmsea) = found.rmsea {
        indices
            .push(format!("RMSEA {:.3} (90 % interval {:.3} to {:.3})", rmsea.value, rmsea.low, rmsea.high));
    }
    let index = |name: &str, value: Option<f64>| value.map(|v| format!("{name} {v:.3}"));
    indices.extend(index("TLI", found.tli));
    indices.extend(index("CFI", found.cfi));
    indices.extend(index("SRMR", found.reference.srmr));
    indices.push(format!("BIC {:.2}", found.bic));
    lines.push(indices.join(", "));
    lines
}
