//! The file of a mixture, or of classes with a density each: kind `mixture`.

use super::describe::{Entries, constant, noise, numbers, reported, rows, stored};
use super::header::{MethodDef, NoiseFamilyDef, ObjectiveDef, SpecDef, TerminationDef, list, option};
use super::{
    Arrays, Error, FORMAT_VERSION, check_scale, check_strength, constant_names, family, invalid, length,
};
use super::{noise_of, parsed, put_common, put_models, put_scale, range, take_constants};
use super::{take_models, take_scale, take_training, text};
use crate::infer::{FitReport, MethodRecord, Objective, Termination, Warning};
use crate::learned::{ClassNames, Learned, MixtureFit, Trained};
use crate::model::Mixture;
use crate::select::SelfCheck;
use crate::spec::NoiseFamily;
use crate::{Density, LinearGaussian, Matrix, Noise, Spec};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What the file holds.
pub(super) const KIND: &str = "mixture";

/// A header of a mixture. Fields it does not know are ignored.
#[derive(Serialize, Deserialize)]
struct Header {
    format_version: u64,
    kind: String,
    created_by: String,
    family: String,
    n_mixtures: usize,
    /// The components of each model where they differ. Its loadings are zero beyond them, so that a reader that does not
    /// know this field reads the same densities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    components: Option<Vec<usize>>,
    classes: Option<Classes>,
    columns: Vec<String>,
    constants: Vec<String>,
    #[serde(with = "NoiseFamilyDef")]
    noise: NoiseFamily,
    #[serde(with = "SpecDef")]
    spec: Spec,
    #[serde(with = "MethodDef")]
    method: MethodRecord,
    seed: u64,
    #[serde(with = "ObjectiveDef")]
    objective: Objective,
    #[serde(with = "TerminationDef")]
    termination: Termination,
    #[serde(with = "list")]
    warnings: Vec<Warning>,
    n_rows: usize,
    #[serde(default, with = "option", skip_serializing_if = "Option::is_none")]
    check: Option<SelfCheck>,
}

/// Names of the components of a mixture, and the column they are from.
#[derive(Serialize, Deserialize)]
struct Classes {
    target: String,
    names: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lent: Option<f64>,
}

/// Whether the parts fit together; returns the number of columns.
pub(super) fn check(learned: &Learned, fit: &MixtureFit) -> Result<usize, crate::Error> {
    let (models, d) = (fit.mixture.models(), fit.mixture.n_columns());
    let is_isotropic = |model: &LinearGaussian| matches!(model.noise(), Noise::Isotropic(_));
    length("column names", d, learned.columns.len())?;
    for model in models {
        check_strength(model)?;
        check_scale(model, &fit.spec)?;
        let kinds = if is_isotropic(model) == is_isotropic(&models[0]) { 1 } else { 2 };
        length("families of noise", 1, kinds)?;
        let q = model.n_components();
        if q > fit.spec.n_components {
            range("the number of components", q as f64, "at most what the spec asks for")?;
        }
    }
    if let Some(classes) = &fit.classes {
        length("names of classes", models.len(), classes.names.len())?;
    }
    fit.spec.check_shape(learned.training.n_rows, d)?;
    Ok(d)
}

/// The model with loadings of this many components, those it does not have being zero, or with its first ones.
fn of_width(model: &LinearGaussian, n_components: usize) -> Result<LinearGaussian, crate::Error> {
    let w = model.loadings();
    let entry = |j: usize, i: usize| if i < w.n_columns() { w[(j, i)] } else { 0.0 };
    let loadings = Matrix::from_fn(w.n_rows(), n_components, entry);
    LinearGaussian::new(loadings, model.mean().to_vec(), model.noise().clone())?
        .with_scale(model.scale().map(<[f64]>::to_vec))
}

/// Puts its arrays; returns the header.
pub(super) fn put(learned: &Learned, fit: &MixtureFit, arrays: &mut Arrays) -> String {
    let models = fit.mixture.models();
    let (components, widest) = (fit.components(), learned.n_components());
    let own = components.iter().any(|q| *q != widest);
    let wide = |model| of_width(model, widest).expect("zeros are loadings");
    put_models(arrays, "models", &models.iter().map(wide).collect::<Vec<_>>());
    put_scale(arrays, &models[0]);
    arrays.put("weights", fit.mixture.weights().to_vec());
    put_common(learned, &fit.report.trace, arrays);
    text(&Header {
        format_version: FORMAT_VERSION,
        kind: KIND.to_owned(),
        created_by: learned.created_by.clone(),
        family: learned.family.to_string(),
        n_mixtures: models.len(),
        components: own.then_some(components),
        classes: fit.classes.as_ref().map(|c| Classes {
            target: c.target.clone(),
            names: c.names.clone(),
            lent: c.lent,
        }),
        columns: learned.columns.clone(),
        constants: constant_names(learned),
        noise: noise_of(&models[0]),
        spec: fit.spec.clone(),
        method: learned.method.clone(),
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
    let header: Header = parsed(header)?;
    if header.columns.is_empty() {
        return Err(invalid(crate::Error::EmptyTable { rows: header.n_rows, columns: 0 }));
    }
    let isotropic = header.noise == NoiseFamily::Isotropic;
    let scale = take_scale(&mut arrays, &header.spec)?;
    let shape = (header.columns.len(), isotropic);
    let mut models = take_models(&mut arrays, "models", header.n_mixtures, shape, scale.as_deref())?;
    if let Some(components) = &header.components {
        length("components of models", models.len(), components.len()).map_err(invalid)?;
        for (model, &q) in models.iter_mut().zip(components) {
            let beyond = |row: &[f64]| row.get(q..).is_none_or(|rest| rest.iter().any(|w| *w != 0.0));
            if model.loadings().rows().any(beyond) {
                return Err(Error::broken("models", "have other components than the header says"));
            }
            *model = of_width(model, q).map_err(invalid)?;
        }
    }
    let weights = arrays.take("weights")?;
    // Weights are divided by their sum: what was written must come back to the last bit.
    let mixture = Mixture::of_normalized(models, weights).map_err(invalid)?;
    let fit = MixtureFit {
        mixture,
        classes: header.classes.map(|Classes { target, names, lent }| ClassNames { target, names, lent }),
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
    let n_columns = header.columns.len();
    Ok(Learned {
        family: family(&header.family, &created_by)?,
        columns: header.columns,
        constants: take_constants(header.constants, &mut arrays)?,
        method: header.method,
        seed: header.seed,
        training: take_training(header.n_rows, &mut arrays)?,
        check: header.check,
        filling: super::filling::take(&mut arrays, n_columns)?,
        created_by,
        model: Trained::Mixture(Box::new(fit)),
    })
}

/// Everything in it, for people and for programs.
pub(super) fn entries(learned: &Learned, fit: &MixtureFit) -> Entries {
    let (mixture, report) = (&fit.mixture, &fit.report);
    let name = |k: usize| fit.classes.as_ref().map(|classes| &classes.names[k]);
    let model = |(k, model): (usize, &LinearGaussian)| {
        json!({
            "weight": stored(&mixture.weights()[k]),
            "class": name(k),
            "n_components": model.n_components(),
            "mean": numbers(model.mean()),
            "noise_variance": noise(model),
            "loadings": rows(model.loadings()),
            "components": rows(&model.components()),
            "explained_variance": numbers(&model.explained_variance()),
            "explained_variance_ratio": numbers(&model.explained_variance_ratio()),
        })
    };
    let mut entries = vec![
        ("kind", json!(KIND)),
        ("family", json!(learned.family.name())),
        ("n_mixtures", json!(mixture.models().len())),
        ("n_components", json!(learned.n_components())),
        ("n_parameters", json!(learned.n_parameters().ok())),
        ("n_columns", json!(mixture.n_columns())),
        ("columns", json!(learned.columns)),
        ("lent", json!(fit.classes.as_ref().and_then(|classes| classes.lent))),
        ("target", json!(fit.classes.as_ref().map(|classes| &classes.target))),
        ("models", mixture.models().iter().enumerate().map(model).collect()),
        ("log_likelihood", stored(&report.objective.value)),
    ];
    entries.extend(reported(report));
    entries.push(("spec", stored(&fit.spec)));
    entries.extend(learned.method_json());
    entries.push(("check", json!(learned.check.as_ref().map(stored))));
    entries.push(("constants", learned.constants.iter().map(constant).collect()));
    entries.extend(learned.version_json());
    entries
}
