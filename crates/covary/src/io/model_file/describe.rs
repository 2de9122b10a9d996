//! Everything in a model as JSON, for people and for programs.

use super::header::Stored;
use super::{Constant, FORMAT_VERSION, KIND, Saved, SavedMixture, SavedSources, Training, ica, mixture};
use crate::ica::{Kind, Mixing};
use crate::infer::{ObjectiveKind, Termination};
use crate::{Density, LinearGaussian, Matrix, Noise};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;

impl Saved {
    /// Everything in the model by the names the documentation uses, as indented JSON. Loadings are
    /// the rotated ones if there was a rotation. Numbers that are not finite are the texts `NaN`,
    /// `inf` and `-inf`.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, io::model_file::Saved, Estimator, Method, Spec};
    /// let (table, _) = simulate::ppca(Shape { rows: 80, columns: 5, n_components: 2 }, /* seed */ 1);
    /// let (spec, method) = (Spec::ppca(2), Method::from_name("spectral").unwrap());
    /// let json = Saved::new(method.fit(&table, &spec)?, &table, &spec, &method).to_json();
    /// let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    /// let ratio = value["explained_variance_ratio"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap());
    /// assert!(ratio.sum::<f64>() < 1.0);   // the noise has its share
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn to_json(&self) -> String {
        let (model, report) = (&self.model, &self.report);
        let loadings = self.rotation.as_ref().map_or(model.loadings(), |r| &r.rotated.loadings);
        let likelihood = report.objective.kind == ObjectiveKind::LogLikelihood;
        let object = Object(vec![
            ("kind", json!(KIND)),
            ("family", json!(self.family)),
            ("n_components", json!(model.n_components())),
            ("n_columns", json!(model.n_columns())),
            ("columns", json!(self.columns)),
            ("views", views(self)),
            (
                "canonical_correlations",
                match self.canonical() {
                    Ok(Some(found)) => numbers(found.correlations()),
                    _ => Value::Null,
                },
            ),
            ("explained_variance_by_view", explained_by_view(self)),
            ("mean", numbers(model.mean())),
            ("noise_variance", noise(model)),
            ("scale", json!(model.scale().map(numbers))),
            ("loadings", rows(loadings)),
            (
                "rotation",
                json!(self.rotation.as_ref().map(|rotation| json!({
                    "name": rotation.name,
                    "transform": rows(&rotation.rotated.transform),
                    "factor_correlations": rows(&rotation.rotated.factor_correlations),
                }))),
            ),
            ("components", rows(&model.components())),
            ("explained_variance", numbers(&model.explained_variance())),
            ("explained_variance_ratio", numbers(&model.explained_variance_ratio())),
            ("signal_variance_ratio", numbers(&model.signal_variance_ratio())),
            ("log_likelihood", json!(likelihood.then(|| stored(&report.objective.value)))),
            (
                "lower_bound",
                json!(
                    (report.objective.kind == ObjectiveKind::LowerBound)
                        .then(|| stored(&report.objective.value))
                ),
            ),
            ("relevance", if report.relevance.is_empty() { Value::Null } else { numbers(&report.relevance) }),
            (
                "monitored",
                if report.monitored.is_empty() {
                    Value::Null
                } else {
                    report.monitored.iter().map(stored).collect()
                },
            ),
            ("parameter_uncertainty", json!(self.parameter_uncertainty())),
            ("objective", stored(&report.objective)),
            ("converged", json!(report.converged())),
            ("termination", stored(&report.termination)),
            ("n_iterations", json!(report.n_iterations())),
            ("trace", numbers(&report.trace)),
            ("warnings", report.warnings.iter().map(warning).collect()),
            ("spec", stored(&self.spec)),
            ("method", json!({ "name": self.method.name, "options": typed(&self.method.options) })),
            ("seed", json!(self.seed)),
            ("training", training(&self.training)),
            ("constants", self.constants.iter().map(constant).collect()),
            ("choice", json!(self.choice.as_ref().map(stored))),
            ("check", json!(self.check.as_ref().map(stored))),
            ("created_by", json!(self.created_by)),
            ("format_version", json!(FORMAT_VERSION)),
        ]);
        serde_json::to_string_pretty(&object).expect("text and numbers are JSON")
    }

    /// Where the uncertainty of the parameters is kept, in a word: `none`, `posterior` or `draws`.
    pub fn parameter_uncertainty(&self) -> &'static str {
        match (&self.draws, self.model.uncertainty()) {
            (Some(_), _) => "draws",
            (None, Some(_)) => "posterior",
            (None, None) => "none",
        }
    }
}

/// Names and columns of the views; null for a model without.
fn views(saved: &Saved) -> Value {
    if saved.views.is_empty() {
        return Value::Null;
    }
    let view =
        |(name, columns): (&str, Range<usize>)| json!({ "name": name, "columns": saved.columns[columns] });
    saved.view_columns().into_iter().map(view).collect()
}

/// R² by view and component of group factor analysis [M 2.7.5]; null for other models.
fn explained_by_view(saved: &Saved) -> Value {
    match saved.activity() {
        Ok(Some(activity)) if saved.family == "gfa" => rows(&activity.explained_variance),
        _ => Value::Null,
    }
}

impl SavedMixture {
    /// Everything in the mixture, as [`Saved::to_json`] has it of one model.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::MixtureEm, io::model_file::SavedMixture, Spec};
    /// let (table, _, _) = simulate::mixture(Shape { rows: 90, columns: 4, n_components: 1 }, 2, 9.0, /* seed */ 1);
    /// let (spec, method) = (Spec::ppca(1), MixtureEm::of(2));
    /// let json = SavedMixture::new(method.fit(&table, &spec)?, &table, &spec, (&method).into()).to_json();
    /// let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    /// assert!(value["models"][0]["weight"].as_f64().unwrap() >= value["models"][1]["weight"].as_f64().unwrap());
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn to_json(&self) -> String {
        let (mixture, report) = (&self.mixture, &self.report);
        let name = |k: usize| self.classes.as_ref().map(|classes| &classes.names[k]);
        let model = |(k, model): (usize, &LinearGaussian)| {
            json!({
                "weight": stored(&mixture.weights()[k]),
                "class": name(k),
                "mean": numbers(model.mean()),
                "noise_variance": noise(model),
                "loadings": rows(model.loadings()),
                "components": rows(&model.components()),
                "explained_variance": numbers(&model.explained_variance()),
                "explained_variance_ratio": numbers(&model.explained_variance_ratio()),
            })
        };
        let object = Object(vec![
            ("kind", json!(mixture::KIND)),
            ("family", json!(self.family)),
            ("n_mixtures", json!(mixture.models().len())),
            ("n_components", json!(mixture.models()[0].n_components())),
            ("n_parameters", json!(self.n_parameters())),
            ("n_columns", json!(mixture.n_columns())),
            ("columns", json!(self.columns)),
            ("target", json!(self.classes.as_ref().map(|classes| &classes.target))),
            ("models", mixture.models().iter().enumerate().map(model).collect()),
            ("log_likelihood", stored(&report.objective.value)),
            ("objective", stored(&report.objective)),
            ("converged", json!(report.converged())),
            ("termination", stored(&report.termination)),
            ("n_iterations", json!(report.n_iterations())),
            ("trace", numbers(&report.trace)),
            ("warnings", report.warnings.iter().map(warning).collect()),
            ("spec", stored(&self.spec)),
            ("method", json!({ "name": self.method.name, "options": typed(&self.method.options) })),
            ("seed", json!(self.seed)),
            ("training", training(&self.training)),
            ("check", json!(self.check.as_ref().map(stored))),
            ("constants", self.constants.iter().map(constant).collect()),
            ("created_by", json!(self.created_by)),
            ("format_version", json!(FORMAT_VERSION)),
        ]);
        serde_json::to_string_pretty(&object).expect("text and numbers are JSON")
    }
}

impl SavedSources {
    /// Everything in it, as [`Saved::to_json`] has it of one model.
    ///
    /// ```
    /// use covary::{Dataset, Matrix, ica::Method, io::model_file::SavedSources};
    /// let saws = Matrix::from_fn(200, 2, |i, j| ((i * (3 + 4 * j)) % 19) as f64);
    /// let (table, method) = (Dataset::new(saws)?, Method::from_name("fastica").unwrap());
    /// let json = SavedSources::new(method.fit_observed(&table, &mut ())?, &table, &method).to_json();
    /// let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    /// assert!(value["kurtosis"][0].as_f64().unwrap() < -1.0);   // light tails
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn to_json(&self) -> String {
        let (found, model) = (&self.found, self.model());
        let exact = match model {
            Mixing::Exact(model) => Some(model),
            Mixing::Noisy(_) => None,
        };
        let objective = found.objective();
        let at = |kind| {
            json!(objective.as_ref().filter(|o| o.kind == kind).map(|objective| stored(&objective.value)))
        };
        let object = Object(vec![
            ("kind", json!(ica::KIND)),
            ("family", json!(ica::KIND)),
            ("n_components", json!(model.n_components())),
            ("n_columns", json!(self.columns.len())),
            ("columns", json!(self.columns)),
            ("mean", numbers(model.mean())),
            ("mixing", rows(model.mixing())),
            ("unmixing", json!(exact.map(|model| rows(model.unmixing())))),
            ("whitening", json!(exact.map(|model| rows(model.whitening())))),
            ("rotation", json!(exact.map(|model| rows(model.rotation())))),
            ("noise_variance", json!(self.noisy().ok().map(|model| numbers(model.noise_variances())))),
            ("kurtosis", numbers(&found.kurtosis)),
            ("densities", found.kinds.iter().map(|kind: &Kind| json!(kind.name())).collect()),
            ("explained_variance", numbers(&model.explained_variance())),
            ("explained_variance_ratio", numbers(&self.explained_variance_ratio())),
            ("log_likelihood", at(ObjectiveKind::LogLikelihood)),
            ("lower_bound", at(ObjectiveKind::LowerBound)),
            ("converged", json!(found.termination == Termination::Converged)),
            ("termination", stored(&found.termination)),
            ("n_iterations", json!(found.n_iterations)),
            ("trace", numbers(&found.trace)),
            ("warnings", found.warnings.iter().map(warning).collect()),
            ("method", json!({ "name": self.method.name, "options": typed(&self.method.options) })),
            ("seed", json!(self.seed)),
            ("training", training(&self.training)),
            ("constants", self.constants.iter().map(constant).collect()),
            ("created_by", json!(self.created_by)),
            ("format_version", json!(FORMAT_VERSION)),
        ]);
        serde_json::to_string_pretty(&object).expect("text and numbers are JSON")
    }
}

fn noise(model: &LinearGaussian) -> Value {
    match model.noise() {
        Noise::Isotropic(variance) => stored(variance),
        Noise::Diagonal(variances) => numbers(variances),
    }
}

fn training(training: &Training) -> Value {
    json!({
        "n_rows": training.n_rows,
        "n_gaps": training.n_gaps(),
        "n_observed_by_column": training.n_observed_by_column,
        "column_means": numbers(&training.column_means),
        "column_sds": numbers(&training.column_sds),
    })
}

fn constant(constant: &Constant) -> Value {
    json!({ "name": constant.name, "value": stored(&constant.value) })
}

/// An object in the order people read it.
struct Object(Vec<(&'static str, Value)>);

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// As the file's header has it.
fn stored<'a, T>(value: &'a T) -> Value
where
    Stored<&'a T>: Serialize,
{
    serde_json::to_value(Stored(value)).expect("text and numbers are JSON")
}

fn numbers(values: &[f64]) -> Value {
    values.iter().map(stored).collect()
}

fn rows(matrix: &Matrix) -> Value {
    matrix.rows().map(numbers).collect()
}

/// Code and numbers of a warning, with its sentence.
fn warning<'a, W: std::fmt::Display>(warning: &'a W) -> Value
where
    Stored<&'a W>: Serialize,
{
    let mut value = stored(warning);
    value["message"] = json!(warning.to_string());
    value
}

/// Numbers, switches and lists are JSON as they stand; the rest are words.
fn typed(options: &BTreeMap<String, String>) -> Value {
    let typed = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    options.iter().map(|(name, text)| (name.clone(), typed(text))).collect()
}
