//! A model for each known class, to which the rows of other classes are lent [M 1.9.6].
//!
//! ```text
//! ℓ_c = Σ_{n of c} ln N(t_nO | c) + λ Σ_{n of others} ln N(t_nO | c)
//! ```
//!
//! λ = 0 fits every class by itself, λ = 1 all rows at once: between them a class of few rows keeps to what all rows say.

use super::maximize::MStep;
use super::{FLOOR, MixtureEm};
use crate::infer::em::stop::Aitken;
use crate::infer::em::{Init, start as em_start};
use crate::infer::report::{FitReport, Objective, ObjectiveKind, Observer, Step, Termination, Warning};
use crate::{Dataset, Density, Error, LinearGaussian, Spec};

/// The model of each of `n_classes`, by EM, rows of other classes counted `lent` times and those without a class not at all.
pub(in crate::infer) fn of_classes(
    data: &Dataset,
    (labels, n_classes): (&[Option<usize>], usize),
    spec: &Spec,
    lent: f64,
    observer: &mut dyn Observer,
) -> Result<Vec<(LinearGaussian, FitReport)>, Error> {
    let method = MixtureEm::default();
    spec.check(data)?;
    let (_, frame) = method.frame(data, spec)?;
    let maximize = MStep {
        data,
        frame: &frame,
        closed_form: method.closed_form(data, spec),
        expand: true,
        prior: &spec.prior,
        floor: spec.noise_floor.unwrap_or(FLOOR),
    };
    let start = em_start::parameters(&Init::Spectral, data, spec, &frame, 0)?;
    let mut found = Vec::with_capacity(n_classes);
    for class in 0..n_classes {
        let count = |label: &Option<usize>| label.map_or(0.0, |c| if c == class { 1.0 } else { lent });
        let weights: Vec<f64> = labels.iter().map(count).collect();
        let (mut at, mut trace, mut aitken) = (start.clone(), Vec::new(), Aitken::new(method.tolerance));
        let mut termination = Termination::IterationLimit;
        let model = loop {
            let model = frame.model(&at, spec)?;
            let logs = model.log_density(data)?;
            let value = weights.iter().zip(&logs).filter(|(w, _)| **w > 0.0).map(|(w, l)| w * l).sum();
            let iteration = trace.len();
            trace.push(value);
            if aitken.push(value) {
                termination = Termination::Converged;
            }
            if observer.step(&Step { iteration, objective: value }).is_break() {
                termination = Termination::Interrupted;
            }
            if termination != Termination::IterationLimit || iteration == method.max_iterations {
                break model;
            }
            at = maximize.step(&at, &weights)?;
        };
        let still = Warning::StillRising { iterations: trace.len() - 1, remaining: aitken.remaining() };
        let report = FitReport {
            objective: Objective {
                kind: ObjectiveKind::LogLikelihood,
                value: *trace.last().expect("a step"),
            },
            trace,
            termination,
            warnings: (termination == Termination::IterationLimit).then_some(still).into_iter().collect(),
            relevance: Vec::new(),
            monitored: Vec::new(),
        };
        found.push((model.canonical(), report));
    }
    Ok(found)
}
