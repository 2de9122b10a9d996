//! Everything in a model as JSON, for people and for programs.

use super::FORMAT_VERSION;
use crate::filling::{Calibration, Candidate, Correction, Filling, Tried};
use crate::infer::FitReport;
use crate::json::Number;
use crate::learned::{Constant, Learned, Training};
use crate::model::Limits;
use crate::{Matrix, Noise, Spec};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::BTreeMap;

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
        let kept = super::kept(&self.model);
        let mut entries = vec![("kind", json!(kept.kind())), ("family", json!(self.family.name()))];
        entries.extend(kept.entries(self));
        entries.push(("created_by", json!(self.created_by)));
        entries.push(("format_version", json!(FORMAT_VERSION)));
        if let Some(filling) = &self.filling {
            entries.push(("filling", self.filling_json(filling)));
        }
        serde_json::to_string_pretty(&Object(entries)).expect("text and numbers are JSON")
    }

    fn filling_json(&self, filling: &Filling) -> Value {
        let tried = |t: &Tried| {
            let (what, pseudo_rows) = match t.candidate {
                Candidate::PseudoRows(n) => ("gaussian", Some(n)),
                Candidate::Correction => ("correction", None),
                Candidate::ColumnMeans => ("column_means", None),
            };
            json!({
                "what": what,
                "pseudo_rows": pseudo_rows,
                "crps": t.crps,
                "gain": t.gain.mean,
                "gain_standard_error": t.gain.standard_error,
                "taken": t.taken,
            })
        };
        let corrected = filling.correction.iter().flat_map(Correction::columns);
        let calibration =
            |c: &Calibration| json!({ "n_hidden": c.n_hidden, "hidden_as_gaps_lie": c.transplanted });
        let shifted = filling.shift.iter().zip(&self.columns).filter(|(by, _)| **by != 0.0);
        let finite = |limit: f64| limit.is_finite().then_some(limit);
        let limits = |limits: &Vec<Limits>| {
            let limited = limits.iter().zip(&self.columns).filter(|(limits, _)| **limits != Limits::NONE);
            let one = |(l, name): (&Limits, &String)| json!({ "column": name, "lower": finite(l.lower), "upper": finite(l.upper), "whole": l.whole });
            limited.map(one).collect::<Vec<_>>()
        };
        json!({
            "tried": filling.tried.iter().map(tried).collect::<Vec<_>>(),
            "corrected_columns": corrected.map(|j| &self.columns[j]).collect::<Vec<_>>(),
            "calibration": filling.calibration.as_ref().map(calibration),
            "limits": filling.limits.as_ref().map(limits),
            "shift": shifted.map(|(by, name)| json!({ "column": name, "by": by })).collect::<Vec<_>>(),
        })
    }

    /// What was fitted, how that ended, and how it was done.
    pub(super) fn asked_and_ended(&self, spec: &Spec, report: &FitReport) -> Entries {
        let mut entries = reported(report);
        entries.push(("spec", stored(spec)));
        entries.extend(self.method_json());
        entries
    }

    pub(super) fn check_and_constants(&self) -> Entries {
        vec![
            ("check", json!(self.check.as_ref().map(stored))),
            ("constants", self.constants.iter().map(constant).collect()),
        ]
    }

    pub(super) fn method_json(&self) -> Entries {
        vec![
            ("method", json!({ "name": self.method.name, "options": typed(&self.method.options) })),
            ("seed", json!(self.seed)),
            ("training", training(&self.training)),
        ]
    }
}

/// Names and values, in the order people read them.
pub(super) type Entries = Vec<(&'static str, Value)>;

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

pub(super) fn noise(noise: &Noise) -> Value {
    match noise {
        Noise::Isotropic(variance) => number(*variance),
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

pub(super) fn constant(constant: &Constant) -> Value {
    json!({ "name": constant.name, "value": number(constant.value) })
}

/// An object in the order people read it.
struct Object(Entries);

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// As the file's header has it.
pub(super) fn stored<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("text and numbers are JSON")
}

pub(super) fn number(value: f64) -> Value {
    stored(&Number(value))
}

pub(super) fn numbers(values: &[f64]) -> Value {
    values.iter().copied().map(number).collect()
}

pub(super) fn rows(matrix: &Matrix) -> Value {
    matrix.rows().map(numbers).collect()
}

/// Code and numbers of a warning, with its sentence.
pub(super) fn warning<W: std::fmt::Display + Serialize>(warning: &W) -> Value {
    let mut value = stored(warning);
    value["message"] = json!(warning.to_string());
    value
}

/// Numbers, switches and lists are JSON as they stand; the rest are words.
fn typed(options: &BTreeMap<String, String>) -> Value {
    let typed = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    options.iter().map(|(name, text)| (name.clone(), typed(text))).collect()
}
