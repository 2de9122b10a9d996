//! A model for each known class, to which the rows of other classes are lent [M 1.9.6].
//!
//! ```text
//! ℓ_c = Σ_{n of c} ln N(t_nO | c) + λ Σ_{n of others} ln N(t_nO | c)
//! ```
//!
//! λ = 0 fits every class by itself, λ = 1 all rows at once: between them a class of few rows keeps to what all rows say.

use super::maximize::MStep;
use super::{FLOOR, MixtureEm};
use crate::infer::em::stop::Ascent;
use crate::infer::em::{Init, start as em_start};
use crate::infer::report::{FitReport, ObjectiveKind, Observer};
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
    let (_, frame) = method.frame(&data.facts(), spec)?;
    let maximize = MStep {
        frame: &frame,
        closed_form: method.closed_form(data.n_columns(), spec),
        expand: true,
        prior: &spec.prior,
        floor: spec.noise_floor.unwrap_or(FLOOR),
    };
    let start = em_start::parameters(&Init::Spectral, data, spec, &frame, 0)?;
    let mut found = Vec::with_capacity(n_classes);
    for class in 0..n_classes {
        let count = |label: &Option<usize>| label.map_or(0.0, |c| if c == class { 1.0 } else { lent });
        let weights: Vec<f64> = labels.iter().map(count).collect();
        let judged = |model: &LinearGaussian| -> Result<f64, Error> {
            let logs = model.log_density(data)?;
            Ok(weights.iter().zip(&logs).filter(|(w, _)| **w > 0.0).map(|(w, l)| w * l).sum())
        };
        let mut at = start.clone();
        let mut model = frame.model(&at, spec)?;
        let mut ascent = Ascent::new(method.tolerance, judged(&model)?);
        while ascent.goes_on(method.max_iterations) {
            at = maximize.step(data, &at, &weights)?;
            model = frame.model(&at, spec)?;
            ascent.take(judged(&model)?, observer);
        }
        found.push((model.canonical(), ascent.ended().report(ObjectiveKind::LogLikelihood)));
    }
    Ok(found)
}
