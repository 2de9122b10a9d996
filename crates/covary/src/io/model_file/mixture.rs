//! The file of a mixture, or of classes with a density each: kind `mixture`.

use super::header::{Classes, MixtureHeader};
use super::{
    Arrays, Error, FORMAT_VERSION, check_scale, check_strength, constant_names, family, invalid, length,
};
use super::{method_def, noise_of, parsed, put_common, put_models, put_scale, range, take_constants};
use super::{take_models, take_scale, take_training, text};
use crate::infer::{FitReport, MethodRecord};
use crate::learned::{ClassNames, Learned, MixtureFit, Trained};
use crate::model::Mixture;
use crate::spec::NoiseFamily;
use crate::{Density, LinearGaussian, Noise};

/// What the file holds.
pub(super) const KIND: &str = "mixture";

/// Whether the parts fit together; returns the number of columns.
pub(super) fn check(learned: &Learned, fit: &MixtureFit) -> Result<usize, crate::Error> {
    let (models, d) = (fit.mixture.models(), fit.mixture.n_columns());
    let (q, isotropic) = shape(&models[0]);
    length("column names", d, learned.columns.len())?;
    for model in models {
        check_strength(model)?;
        check_scale(model, &fit.spec)?;
        length("components of a model", q, model.n_components())?;
        length("families of noise", 1, if shape(model).1 == isotropic { 1 } else { 2 })?;
    }
    if q > fit.spec.n_components {
        range("the number of components", q as f64, "at most what the spec asks for")?;
    }
    if let Some(classes) = &fit.classes {
        length("names of classes", models.len(), classes.names.len())?;
    }
    fit.spec.check_shape(learned.training.n_rows, d)?;
    Ok(d)
}

/// Components, and whether the noise is isotropic.
fn shape(model: &LinearGaussian) -> (usize, bool) {
    (model.n_components(), matches!(model.noise(), Noise::Isotropic(_)))
}

/// Puts its arrays; returns the header.
pub(super) fn put(learned: &Learned, fit: &MixtureFit, arrays: &mut Arrays) -> String {
    let models = fit.mixture.models();
    put_models(arrays, "models", models);
    put_scale(arrays, &models[0]);
    arrays.put("weights", fit.mixture.weights().to_vec());
    put_common(learned, &fit.report.trace, arrays);
    text(&MixtureHeader {
        format_version: FORMAT_VERSION,
        kind: KIND.to_owned(),
        created_by: learned.created_by.clone(),
        family: learned.family.to_string(),
        n_mixtures: models.len(),
        classes: fit.classes.as_ref().map(|c| Classes { target: c.target.clone(), names: c.names.clone() }),
        columns: learned.columns.clone(),
        constants: constant_names(learned),
        noise: noise_of(&models[0]),
        spec: fit.spec.clone(),
        method: method_def(learned),
        seed: learned.seed,
        objective: fit.report.objective,
        termination: fit.report.termination,
        warnings: fit.report.warnings.clone(),
        n_rows: learned.training.n_rows,
        check: learned.check.clone(),
    })
}

/// Takes its arrays.
pub(super) fn take(header: &str, mut arrays: Arrays, created_by: String) -> Result<Learned, Error> {
    let header: MixtureHeader = parsed(header)?;
    if header.columns.is_empty() {
        return Err(invalid(crate::Error::EmptyTable { rows: header.n_rows, columns: 0 }));
    }
    let isotropic = header.noise == NoiseFamily::Isotropic;
    let scale = take_scale(&mut arrays, &header.spec)?;
    let shape = (header.columns.len(), isotropic);
    let models = take_models(&mut arrays, "models", header.n_mixtures, shape, scale.as_deref())?;
    let weights = arrays.take("weights")?;
    // Weights are divided by their sum: what was written must come back to the last bit.
    let mixture = Mixture::of_normalized(models, weights).map_err(invalid)?;
    let fit = MixtureFit {
        mixture,
        classes: header.classes.map(|Classes { target, names }| ClassNames { target, names }),
        spec: header.spec,
        report: FitReport {
            objective: header.objective,
            trace: arrays.take("trace")?,
            termination: header.termination,
            warnings: header.warnings,
            relevance: Vec::new(),
            monitored: Vec::new(),
        },
    };
    Ok(Learned {
        family: family(&header.family, &created_by)?,
        columns: header.columns,
        constants: take_constants(header.constants, &mut arrays)?,
        method: MethodRecord { name: header.method.name, options: header.method.options },
        seed: header.seed,
        training: take_training(header.n_rows, &mut arrays)?,
        check: header.check,
        filling: None,
        created_by,
        model: Trained::Mixture(Box::new(fit)),
    })
}
