//! The file of a functional PCA: kind `functional`.

use super::describe::{Entries, constant, numbers, reported, rows, stored};
use super::header::{MethodDef, ObjectiveDef, SpecDef, TerminationDef, list, one, option};
use super::{Arrays, Error, FORMAT_VERSION, constant_names, family, invalid, length, parsed, put_common};
use super::{range, take_constants, take_training, text};
use crate::Spec;
use crate::data::PointColumns;
use crate::functional::{Basis, FunctionalPca, column_times};
use crate::infer::{FitReport, MethodRecord, Objective, Termination, Warning};
use crate::learned::{CurveTable, FunctionalFit, Learned, Trained};
use crate::select::SelfCheck;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What the file holds.
pub(super) const KIND: &str = "functional";

/// Times at which `inspect` has the functions.
const SHOWN: usize = 101;

/// A header of a functional PCA. Fields it does not know are ignored.
#[derive(Serialize, Deserialize)]
struct Header {
    format_version: u64,
    kind: String,
    created_by: String,
    family: String,
    columns: Vec<String>,
    constants: Vec<String>,
    basis: BasisDef,
    /// Columns of a long table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    points: Option<PointsDef>,
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

/// Cubic B-splines on equally spaced knots.
#[derive(Serialize, Deserialize)]
struct BasisDef {
    #[serde(with = "one")]
    from: f64,
    #[serde(with = "one")]
    to: f64,
    size: usize,
}

#[derive(Serialize, Deserialize)]
struct PointsDef {
    curve: String,
    time: String,
}

impl From<&PointColumns> for PointsDef {
    fn from(columns: &PointColumns) -> Self {
        Self { curve: columns.curve.clone(), time: columns.time.clone() }
    }
}

impl From<&Basis> for BasisDef {
    fn from(basis: &Basis) -> Self {
        let (from, to) = basis.interval();
        Self { from, to, size: basis.size() }
    }
}

/// Whether the parts fit together; returns the number of columns.
pub(super) fn check(learned: &Learned, fit: &FunctionalFit) -> Result<usize, crate::Error> {
    let d = learned.columns.len();
    match &fit.table {
        CurveTable::Long(_) => length("columns of values", 1, d)?,
        CurveTable::Wide(times) => length("times of columns", d, times.len())?,
    }
    if fit.model.n_components() != fit.spec.n_components {
        range("the number of components", fit.model.n_components() as f64, "what the spec asks for")?;
    }
    Ok(d)
}

/// Puts its arrays; returns the header.
pub(super) fn put(learned: &Learned, fit: &FunctionalFit, arrays: &mut Arrays) -> String {
    let model = &fit.model;
    arrays.put("mean", model.mean_coefficients().to_vec());
    arrays.put_matrix("loadings", model.loadings());
    arrays.put("noise_variance", vec![model.noise()]);
    arrays.put("smoothing", model.smoothing().to_vec());
    if let Some(covariance) = model.covariance_of_coefficients() {
        arrays.put_matrix("coefficient_covariance", covariance);
    }
    put_common(learned, &fit.report.trace, arrays);
    text(&Header {
        format_version: FORMAT_VERSION,
        kind: KIND.to_owned(),
        created_by: learned.created_by.clone(),
        family: learned.family.to_string(),
        columns: learned.columns.clone(),
        constants: constant_names(learned),
        basis: model.basis().into(),
        points: fit.long().map(Into::into),
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
    let BasisDef { from, to, size } = header.basis;
    let mean = arrays.take("mean")?;
    let basis = Basis::new(from, to, size).map_err(invalid)?;
    let noise = match arrays.take("noise_variance")?.as_slice() {
        [variance] => *variance,
        _ => return Err(Error::broken("noise_variance", "is not one number")),
    };
    let smoothing = match arrays.take("smoothing")?.as_slice() {
        [mean, components] if mean.is_finite() && components.is_finite() => [*mean, *components],
        _ => return Err(Error::broken("smoothing", "is not two finite numbers")),
    };
    let mut model = FunctionalPca::new(basis, mean, arrays.take_matrix("loadings")?, noise)
        .map_err(invalid)?
        .with_smoothing(smoothing);
    if arrays.has("coefficient_covariance") {
        let covariance = arrays.take_matrix("coefficient_covariance")?;
        model = model.with_uncertainty(covariance).map_err(invalid)?;
    }
    let table = match header.points {
        Some(PointsDef { curve, time }) => CurveTable::Long(PointColumns { curve, time }),
        None => CurveTable::Wide(column_times(&header.columns)),
    };
    let training = take_training(header.n_rows, &mut arrays)?;
    let fit = FunctionalFit {
        model,
        spec: header.spec,
        report: FitReport {
            objective: header.objective,
            trace: arrays.take("trace")?,
            termination: header.termination,
            warnings: header.warnings,
            relevance: Vec::new(),
            monitored: Vec::new(),
        },
        table,
    };
    let n_columns = header.columns.len();
    Ok(Learned {
        family: family(&header.family, &created_by)?,
        columns: header.columns,
        constants: take_constants(header.constants, &mut arrays)?,
        method: header.method,
        seed: header.seed,
        training,
        check: header.check,
        filling: super::filling::take(&mut arrays, n_columns)?,
        created_by,
        model: Trained::Functional(Box::new(fit)),
    })
}

/// Everything in it, for people and for programs.
pub(super) fn entries(learned: &Learned, fit: &FunctionalFit) -> Entries {
    let (model, report) = (&fit.model, &fit.report);
    let times = model.basis().grid(SHOWN);
    let mean = model.mean_at(&times).expect("times within the interval");
    let functions = model.eigenfunctions(&times).expect("times within the interval");
    let [of_mean, of_components] = model.smoothing();
    let mut entries = vec![
        ("kind", json!(KIND)),
        ("family", json!(learned.family.name())),
        ("n_components", json!(model.n_components())),
        ("columns", json!(learned.columns)),
        ("points", json!(fit.long().map(PointsDef::from))),
        ("basis", json!(BasisDef::from(model.basis()))),
        ("smoothing", json!({ "mean": stored(&of_mean), "components": stored(&of_components) })),
        ("eigenvalues", numbers(&model.eigenvalues())),
        ("explained_variance_ratio", numbers(&fit.explained_variance_ratio())),
        ("noise_variance", stored(&model.noise())),
        ("times", numbers(&times)),
        ("mean", numbers(&mean.values.column(0))),
        ("mean_sd", numbers(&mean.sds.column(0))),
        ("eigenfunctions", rows(&functions.values.transpose())),
        ("eigenfunctions_sd", rows(&functions.sds.transpose())),
        ("mean_coefficients", numbers(model.mean_coefficients())),
        ("loadings", rows(model.loadings())),
    ];
    entries.extend(reported(report));
    entries.push(("spec", stored(&fit.spec)));
    entries.extend(learned.method_json());
    entries.push(("check", json!(learned.check.as_ref().map(stored))));
    entries.push(("constants", learned.constants.iter().map(constant).collect()));
    entries.extend(learned.version_json());
    entries
}
