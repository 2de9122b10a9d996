//! Everything in a model as JSON, for people and for programs.

use super::header::Stored;
use super::{FORMAT_VERSION, linear, mixture, sources};
use crate::family::Family;
use crate::ica::{self, Kind, Mixing};
use crate::infer::{FitReport, ObjectiveKind, Termination};
use crate::learned::{Constant, Learned, LinearFit, MixtureFit, Trained, Training};
use crate::{Density, LinearGaussian, Matrix, Noise};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;

impl Learned {
    /// Everything in the model by the names the documentation uses, as indented JSON. Loadings are
    /// the rotated ones if there was a rotation. Numbers that are not finite are the texts `NaN`,
    /// `inf` and `-inf`.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, learned::Learned, Estimator, Method, Spec};
    /// let (table, _) = simulate::ppca(Shape { rows: 80, columns: 5, n_components: 2 }, /* seed */ 1);
    /// let (spec, method) = (Spec::ppca(2), Method::from_name("spectral").unwrap());
    /// let json = Learned::of_fit(method.fit(&table, &spec)?, &table, &spec, &method).to_json();
    /// let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    /// let ratio = value["explained_variance_ratio"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap());
    /// assert!(ratio.sum::<f64>() < 1.0);   // the noise has its share
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn to_json(&self) -> String {
        let object = match &self.model {
            Trained::Linear(fit) => self.linear_json(fit),
            Trained::Mixture(fit) => self.mixture_json(fit),
            Trained::Sources(fit) => self.sources_json(fit),
        };
        serde_json::to_string_pretty(&Object(object)).expect("text and numbers are JSON")
    }

    fn linear_json(&self, fit: &LinearFit) -> Entries {
        let (model, report) = (&fit.model, &fit.report);
        let mut entries = vec![
            ("kind", json!(linear::KIND)),
            ("family", json!(self.family.name())),
            ("n_components", json!(model.n_components())),
            ("n_columns", json!(model.n_columns())),
            ("columns", json!(self.columns)),
            ("views", views(self, fit)),
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
            ("loadings", rows(fit.loadings())),
            (
                "rotation",
                json!(fit.rotation.as_ref().map(|rotation| json!({
                    "name": rotation.name,
                    "transform": rows(&rotation.rotated.transform),
                    "factor_correlations": rows(&rotation.rotated.factor_correlations),
                }))),
            ),
            ("components", rows(&model.components())),
            ("explained_variance", numbers(&model.explained_variance())),
            ("explained_variance_ratio", numbers(&model.explained_variance_ratio())),
            ("signal_variance_ratio", numbers(&model.signal_variance_ratio())),
            ("log_likelihood", at(report, ObjectiveKind::LogLikelihood)),
            ("lower_bound", at(report, ObjectiveKind::LowerBound)),
            ("relevance", if report.relevance.is_empty() { Value::Null } else { numbers(&report.relevance) }),
            (
                "monitored",
                if report.monitored.is_empty() {
                    Value::Null
                } else {
                    report.monitored.iter().map(stored).collect()
                },
            ),
            ("parameter_uncertainty", json!(fit.parameter_uncertainty().name())),
        ];
        if self.weighs_rows() {
            entries.push(("degrees_of_freedom", stored(&model.tail_degrees_of_freedom())));
        }
        entries.extend(reported(report));
        entries.push(("spec", stored(&fit.spec)));
        entries.extend(self.method_json());
        entries.push(("constants", self.constants.iter().map(constant).collect()));
        entries.push(("choice", json!(fit.choice.as_ref().map(stored))));
        entries.push(("check", json!(self.check.as_ref().map(stored))));
        entries.extend(self.version_json());
        entries
    }

    fn mixture_json(&self, fit: &MixtureFit) -> Entries {
        let (mixture, report) = (&fit.mixture, &fit.report);
        let name = |k: usize| fit.classes.as_ref().map(|classes| &classes.names[k]);
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
        let mut entries = vec![
            ("kind", json!(mixture::KIND)),
            ("family", json!(self.family.name())),
            ("n_mixtures", json!(mixture.models().len())),
            ("n_components", json!(self.n_components())),
            ("n_parameters", json!(self.n_parameters().ok())),
            ("n_columns", json!(mixture.n_columns())),
            ("columns", json!(self.columns)),
            ("target", json!(fit.classes.as_ref().map(|classes| &classes.target))),
            ("models", mixture.models().iter().enumerate().map(model).collect()),
            ("log_likelihood", stored(&report.objective.value)),
        ];
        entries.extend(reported(report));
        entries.push(("spec", stored(&fit.spec)));
        entries.extend(self.method_json());
        entries.push(("check", json!(self.check.as_ref().map(stored))));
        entries.push(("constants", self.constants.iter().map(constant).collect()));
        entries.extend(self.version_json());
        entries
    }

    fn sources_json(&self, fit: &ica::Fit) -> Entries {
        let model = &fit.model;
        let (exact, noisy) = match model {
            Mixing::Exact(model) => (Some(model), None),
            Mixing::Noisy(model) => (None, Some(model)),
        };
        let objective = fit.objective();
        let at = |kind| {
            json!(objective.as_ref().filter(|o| o.kind == kind).map(|objective| stored(&objective.value)))
        };
        let shares = self.source_variance_ratio().unwrap_or_default();
        let mut entries = vec![
            ("kind", json!(sources::KIND)),
            ("family", json!(self.family.name())),
            ("n_components", json!(model.n_components())),
            ("n_columns", json!(self.columns.len())),
            ("columns", json!(self.columns)),
            ("mean", numbers(model.mean())),
            ("mixing", rows(model.mixing())),
            ("unmixing", json!(exact.map(|model| rows(model.unmixing())))),
            ("whitening", json!(exact.map(|model| rows(model.whitening())))),
            ("rotation", json!(exact.map(|model| rows(model.rotation())))),
            ("noise_variance", json!(noisy.map(|model| numbers(model.noise_variances())))),
            ("kurtosis", numbers(&fit.kurtosis)),
            ("densities", fit.kinds.iter().map(|kind: &Kind| json!(kind.name())).collect()),
            ("explained_variance", numbers(&model.explained_variance())),
            ("explained_variance_ratio", numbers(&shares)),
            ("log_likelihood", at(ObjectiveKind::LogLikelihood)),
            ("lower_bound", at(ObjectiveKind::LowerBound)),
            ("converged", json!(fit.termination == Termination::Converged)),
            ("termination", stored(&fit.termination)),
            ("n_iterations", json!(fit.n_iterations)),
            ("trace", numbers(&fit.trace)),
            ("warnings", fit.warnings.iter().map(warning).collect()),
        ];
        entries.extend(self.method_json());
        entries.push(("constants", self.constants.iter().map(constant).collect()));
        entries.extend(self.version_json());
        entries
    }

    fn method_json(&self) -> Entries {
        vec![
            ("method", json!({ "name": self.method.name, "options": typed(&self.method.options) })),
            ("seed", json!(self.seed)),
            ("training", training(&self.training)),
        ]
    }

    fn version_json(&self) -> Entries {
        vec![("created_by", json!(self.created_by)), ("format_version", json!(FORMAT_VERSION))]
    }
}

/// Names and values, in the order people read them.
type Entries = Vec<(&'static str, Value)>;

/// How a fit ended.
fn reported(report: &FitReport) -> Entries {
    vec![
        ("objective", stored(&report.objective)),
        ("converged", json!(report.converged())),
        ("termination", stored(&report.termination)),
        ("n_iterations", json!(report.n_iterations())),
        ("trace", numbers(&report.trace)),
        ("warnings", report.warnings.iter().map(warning).collect()),
    ]
}

/// The objective, if it is of that kind.
fn at(report: &FitReport, kind: ObjectiveKind) -> Value {
    json!((report.objective.kind == kind).then(|| stored(&report.objective.value)))
}

/// Names and columns of the views; null for a model without.
fn views(learned: &Learned, fit: &LinearFit) -> Value {
    if fit.views.is_empty() {
        return Value::Null;
    }
    let view =
        |(name, columns): (&str, Range<usize>)| json!({ "name": name, "columns": learned.columns[columns] });
    fit.view_columns().into_iter().map(view).collect()
}

/// R² by view and component of group factor analysis [M 2.7.5]; null for other models.
fn explained_by_view(learned: &Learned) -> Value {
    match learned.activity() {
        Ok(Some(activity)) if learned.family == Family::Gfa => rows(&activity.explained_variance),
        _ => Value::Null,
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
struct Object(Entries);

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
