//! The file of one linear-Gaussian model: kind `linear-gaussian`.

use super::describe::{Entries, constant, noise, number, numbers, rows, stored};
use super::header;
use super::{Arrays, Error, Kept, check_scale, check_strength, invalid, length, noise_variances};
use super::{put_models, put_scale, range, take_models, take_noise, take_scale};
use crate::data::MatrixKind;
use crate::family::Family;
use crate::infer::{FactorReport, FitReport, Monitored, ObjectiveKind, Reference, Rmsea, Untested};
use crate::learned::{Learned, LinearFit, RotatedLoadings, Trained};
use crate::linalg::packed;
use crate::model::{Mixture, Rotated, Uncertainty};
use crate::select::{HeldOut, SelfCheck};
use crate::{Density, LinearGaussian, Matrix, Noise, Spec};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::ops::Range;

/// What the file holds.
pub(super) const KIND: &str = "linear-gaussian";
/// Of a full covariance.
const INFORMATIVE_ROWS: &str = "informative_rows";
/// Of a method that selects columns.
const INCLUSION: &str = "inclusion";

/// Its header.
type Header = header::Header<Own, Turned, Views>;

#[derive(Serialize, Deserialize)]
struct Views {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    views: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Turned {
    rotation: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Own {
    #[serde(default)]
    choice: Option<HeldOut>,
    /// Written whether there is one or not, as it always was; the header reads it.
    #[serde(default, rename = "check")]
    check_or_null: Option<SelfCheck>,
    /// Since version 2: whether the uncertain loadings are coupled to the noise; none if they are
    /// taken as known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uncertainty: Option<UncertaintyDef>,
    /// Since version 2: how many draws of the parameters there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n_draws: Option<usize>,
    /// Degrees of freedom of rows with heavy tails; none of Gaussian rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tail_degrees_of_freedom: Option<f64>,
    /// Whether loadings are as they are, rather than any rotation of them.
    #[serde(default, skip_serializing_if = "crate::json::is_default")]
    fixed_axes: bool,
    #[serde(default, with = "crate::json", skip_serializing_if = "Vec::is_empty")]
    relevance: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    monitored: Vec<Monitored>,
    /// What a factor analysis is compared by, from which its statistics are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fit_reference: Option<Reference>,
    /// `correlation` or `covariance`, of a model of such a matrix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    matrix: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct UncertaintyDef {
    coupled: bool,
}

impl Kept for LinearFit {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn check(&self, learned: &Learned) -> Result<usize, crate::Error> {
        let (d, q) = (self.model.n_columns(), self.model.n_components());
        let mut models = self.draws.iter().flat_map(Mixture::models).chain([&self.model]);
        models.try_for_each(|model| check_strength(model).and_then(|()| check_scale(model, &self.spec)))?;
        length("names of views", self.spec.views.len(), self.views.len())?;
        // Views have private components besides those they share.
        let most = self.spec.n_components.saturating_add(if self.views.is_empty() { 0 } else { d });
        if q > most {
            range("the number of components", q as f64, "at most what the spec asks for")?;
        }
        if !self.report.relevance.is_empty() {
            length("relevances", q * self.views.len().max(1), self.report.relevance.len())?;
        }
        if let Some(draws) = &self.draws {
            length("columns of a draw", d, draws.n_columns())?;
            let isotropic = |model: &LinearGaussian| matches!(model.noise(), Noise::Isotropic(_));
            for draw in draws.models() {
                length("components of a draw", q, draw.n_components())?;
                let families = if isotropic(draw) == isotropic(&self.model) { 1 } else { 2 };
                length("families of noise among model and draws", 1, families)?;
            }
        }
        if !self.informative_rows.is_empty() {
            length("counts of informative rows", d, self.informative_rows.len())?;
            let n_rows = learned.training.n_rows as f64;
            if let Some(&n) = self.informative_rows.iter().find(|n| !(**n > 0.0 && **n <= n_rows)) {
                range("a count of informative rows", n, "above 0 and at most the number of rows")?;
            }
        }
        // Whether it should have been fitted was for the method to say.
        let fitted = Spec { allow_unidentified: true, ..self.spec.clone() };
        fitted.check_shape(learned.training.n_rows, d)?;
        if let Some(RotatedLoadings { rotated, .. }) = &self.rotation {
            let Rotated { loadings, transform, factor_correlations } = rotated;
            for (what, matrix, rows) in [
                ("rows and columns of the rotated loadings", loadings, d),
                ("rows and columns of the rotation", transform, q),
                ("rows and columns of the factor correlations", factor_correlations, q),
            ] {
                length(what, rows, matrix.n_rows())?;
                length(what, q, matrix.n_columns())?;
                if let Some(&value) = matrix.as_slice().iter().find(|v| !v.is_finite()) {
                    range("an entry of the rotation", value, "finite")?;
                }
            }
        }
        if let Some(choice) = &self.choice
            && !choice.by_n_components.iter().any(|at| at.shortfall == 0.0 && at.shortfall_error >= 0.0)
        {
            range("the smallest shortfall of a choice", f64::NAN, "0")?;
        }
        Ok(d)
    }

    fn put(&self, learned: &Learned, arrays: &mut Arrays) -> String {
        arrays.put("mean", self.model.mean().to_vec());
        arrays.put_matrix("loadings", self.model.loadings());
        arrays.put("noise_variance", noise_variances(self.model.noise()));
        put_scale(arrays, &self.model);
        if let Some(RotatedLoadings { rotated, .. }) = &self.rotation {
            arrays.put_matrix("rotated_loadings", &rotated.loadings);
            arrays.put_matrix("rotation", &rotated.transform);
            arrays.put_matrix("factor_correlations", &rotated.factor_correlations);
        }
        if let Some(u) = self.model.uncertainty() {
            arrays.put_matrix("relative_covariances", &triangles(&u.relative));
            arrays.put("noise_shape", u.shape.clone());
            if !u.inclusion.is_empty() {
                arrays.put(INCLUSION, u.inclusion.clone());
            }
        }
        if !self.informative_rows.is_empty() {
            arrays.put(INFORMATIVE_ROWS, self.informative_rows.clone());
        }
        if let Some(draws) = &self.draws {
            put_models(arrays, "draws", draws.models());
        }
        let own = Own {
            choice: self.choice.clone(),
            check_or_null: learned.check.clone(),
            uncertainty: self.model.uncertainty().map(|u| UncertaintyDef { coupled: u.coupled }),
            n_draws: self.draws.as_ref().map(|draws| draws.models().len()),
            tail_degrees_of_freedom: Some(self.model.tail_degrees_of_freedom()).filter(|nu| nu.is_finite()),
            fixed_axes: self.model.has_fixed_axes(),
            relevance: self.report.relevance.clone(),
            monitored: self.report.monitored.clone(),
            fit_reference: self.fit_statistics.as_ref().map(|statistics| statistics.reference),
            matrix: self.matrix.map(|kind| kind.name().to_owned()),
        };
        let turned = Turned { rotation: self.rotation.as_ref().map(|r| r.name.clone()) };
        let parts = (Views { views: self.views.clone() }, turned, own);
        let mut header = Header::of(learned, Some(self.model.noise()), parts, (&self.report).into());
        header.check = None;
        header.text()
    }

    fn entries(&self, learned: &Learned) -> Entries {
        let (model, report) = (&self.model, &self.report);
        let mut entries = vec![
            ("n_components", json!(model.n_components())),
            ("n_columns", json!(model.n_columns())),
            ("columns", json!(learned.columns)),
            ("views", views(learned, self)),
            (
                "canonical_correlations",
                match learned.canonical() {
                    Ok(Some(found)) => numbers(found.correlations()),
                    _ => Value::Null,
                },
            ),
            ("explained_variance_by_view", explained_by_view(learned)),
            ("mean", numbers(model.mean())),
            ("noise_variance", noise(model.noise())),
            ("scale", json!(model.scale().map(numbers))),
            ("loadings", rows(self.loadings())),
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
            ("parameter_uncertainty", json!(self.parameter_uncertainty().name())),
        ];
        entries
            .extend(self.fit_statistics.as_ref().map(|found| ("fit_statistics", statistics(learned, found))));
        entries.extend(self.matrix.map(|kind| ("matrix", json!(kind.name()))));
        entries.extend(model.inclusion().map(|p| ("inclusion", numbers(p))));
        if learned.weighs_rows() {
            entries.extend(model.tails().parameters().iter().map(|(name, value)| (*name, number(*value))));
        }
        entries.extend(learned.asked_and_ended(&self.spec, report));
        entries.push(("constants", learned.constants.iter().map(constant).collect()));
        entries.push(("choice", json!(self.choice.as_ref().map(stored))));
        entries.push(("check", json!(learned.check.as_ref().map(stored))));
        entries
    }
}

/// Takes its arrays.
pub(super) fn take(header: &str, mut arrays: Arrays) -> Result<Learned, Error> {
    let header = Header::parsed(header)?;
    let noise = take_noise(&mut arrays, header.noise()?)?;
    let mut model =
        LinearGaussian::new(arrays.take_matrix("loadings")?, arrays.take("mean")?, noise).map_err(invalid)?;
    // Whatever follows is sized by the columns, of which there must be some.
    let (expected, got) = (model.n_columns(), header.columns.len());
    if got == 0 || expected != got {
        return Err(invalid(crate::Error::WrongLength { what: "column names", expected, got }));
    }
    let own = &header.last;
    let scale = take_scale(&mut arrays, header.spec()?)?;
    model = model.with_scale(scale).map_err(invalid)?;
    if let Some(UncertaintyDef { coupled }) = own.uncertainty {
        let relative =
            from_triangles(&arrays.take_matrix("relative_covariances")?, model.n_components() + 1)?;
        let shape = arrays.take("noise_shape")?;
        let inclusion = if arrays.has(INCLUSION) { arrays.take(INCLUSION)? } else { Vec::new() };
        let uncertainty = Uncertainty { relative, shape, coupled, inclusion };
        model = model.with_uncertainty(uncertainty).map_err(invalid)?;
    }
    if let Some(nu) = own.tail_degrees_of_freedom {
        model = model.with_tail_degrees_of_freedom(nu).map_err(invalid)?;
    }
    if own.fixed_axes {
        model = model.with_fixed_axes();
    }
    let draws = own.n_draws.map(|n| take_draws(&mut arrays, n, &model)).transpose()?;
    let rotation = match header.middle.rotation.clone() {
        None => None,
        Some(name) => {
            let rotated = Rotated {
                loadings: arrays.take_matrix("rotated_loadings")?,
                transform: arrays.take_matrix("rotation")?,
                factor_correlations: arrays.take_matrix("factor_correlations")?,
            };
            Some(RotatedLoadings { name, rotated })
        }
    };
    let of_reference = |reference| FactorReport::of_reference(&model, &header.ended.warnings, reference);
    let fit_statistics = own.fit_reference.map(of_reference);
    let known = |name: &String| {
        MatrixKind::from_name(name).ok_or_else(|| Error::broken("matrix", format!("is `{name}`")))
    };
    let matrix = own.matrix.as_ref().map(known).transpose()?;
    let fit = LinearFit {
        model,
        draws,
        rotation,
        views: header.first.views.clone(),
        spec: header.spec()?.clone(),
        report: FitReport {
            relevance: own.relevance.clone(),
            monitored: own.monitored.clone(),
            ..header.ended.taken(&mut arrays)?
        },
        choice: own.choice.clone(),
        fit_statistics,
        matrix,
        informative_rows: if arrays.has(INFORMATIVE_ROWS) {
            arrays.take(INFORMATIVE_ROWS)?
        } else {
            Vec::new()
        },
    };
    header.into_learned(&mut arrays, Trained::Linear(Box::new(fit)))
}

/// The lower triangle of each matrix, one per row.
pub(super) fn triangles(matrices: &[Matrix]) -> Matrix {
    let triangle =
        |m: &Matrix| -> Vec<f64> { (0..m.n_rows()).flat_map(|i| m.row(i)[..=i].to_vec()).collect() };
    Matrix::from_rows(&matrices.iter().map(triangle).collect::<Vec<_>>())
}

pub(super) fn from_triangles(triangles: &Matrix, size: usize) -> Result<Vec<Matrix>, Error> {
    if triangles.n_columns() != packed::len(size) {
        return Err(Error::broken("relative_covariances", "are not triangles of the right size"));
    }
    Ok(triangles.rows().map(|row| packed::unpack(row, size)).collect())
}

fn take_draws(arrays: &mut Arrays, n: usize, model: &LinearGaussian) -> Result<Mixture, Error> {
    let isotropic = matches!(model.noise(), Noise::Isotropic(_));
    let draws = take_models(arrays, "draws", n, (model.n_columns(), isotropic), model.scale())?;
    if draws.iter().any(|draw| draw.n_components() != model.n_components()) {
        return Err(Error::broken("draws", "do not have the shape of the model"));
    }
    Mixture::equal(draws).map_err(|e| Error::broken("draws", format!("are not valid ({e})")))
}

/// The objective, if it is of that kind.
fn at(report: &FitReport, kind: ObjectiveKind) -> Value {
    json!((report.objective.kind == kind).then(|| number(report.objective.value)))
}

/// How well a factor analysis fits.
fn statistics(learned: &Learned, found: &FactorReport) -> Value {
    let optional = |value: Option<f64>| json!(value.map(number));
    let by_column = |values: &[f64]| -> Value {
        let named = learned.columns.iter().zip(values).map(|(name, value)| (name.clone(), number(*value)));
        Value::Object(named.collect())
    };
    let reference = &found.reference;
    let rmsea = |end: fn(Rmsea) -> f64| optional(found.rmsea.map(end));
    json!({
        "n_rows": reference.n_rows,
        "chi_square": optional(found.chi_square),
        "correction": if reference.complete { "bartlett" } else { "none" },
        "degrees_of_freedom": found.degrees_of_freedom,
        "p_value": optional(found.p_value),
        "untested": found.untested.map(Untested::words),
        "likelihood_ratio": optional(found.likelihood_ratio),
        "rmsea": rmsea(|r| r.value),
        "rmsea_lower": rmsea(|r| r.low),
        "rmsea_upper": rmsea(|r| r.high),
        "tli": optional(found.tli),
        "cfi": optional(found.cfi),
        "srmr": optional(reference.srmr),
        "aic": number(found.aic),
        "bic": number(found.bic),
        "log_likelihood": number(reference.log_likelihood),
        "saturated_log_likelihood": optional(reference.saturated),
        "independent_log_likelihood": number(reference.independent),
        "communalities": by_column(&found.communality_shares),
        "uniquenesses": by_column(&found.communality_shares.iter().map(|h| 1.0 - h).collect::<Vec<_>>()),
    })
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
