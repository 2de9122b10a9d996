//! The file of one linear-Gaussian model: kind `linear-gaussian`.

use super::describe::{Entries, constant, noise, numbers, reported, rows, stored};
use super::header::{Header, UncertaintyDef};
use super::{
    Arrays, Error, FORMAT_VERSION, check_scale, check_strength, constant_names, family, invalid, length,
};
use super::{noise_of, noise_variances, parsed, put_common, put_models, put_scale, range};
use super::{take_constants, take_models, take_scale, take_training, text};
use crate::data::MatrixKind;
use crate::family::Family;
use crate::infer::{FactorReport, FitReport, ObjectiveKind, Rmsea, Untested};
use crate::learned::{Learned, LinearFit, RotatedLoadings, Trained};
use crate::linalg::packed;
use crate::model::{Mixture, Rotated, Uncertainty};
use crate::spec::NoiseFamily;
use crate::{Density, LinearGaussian, Matrix, Noise, Spec};
use serde_json::{Value, json};
use std::ops::Range;

/// What the file holds.
pub(super) const KIND: &str = "linear-gaussian";
/// Of a full covariance.
const INFORMATIVE_ROWS: &str = "informative_rows";
/// Of a method that selects columns.
const INCLUSION: &str = "inclusion";

/// Whether the parts fit together; returns the number of columns.
pub(super) fn check(learned: &Learned, fit: &LinearFit) -> Result<usize, crate::Error> {
    let (d, q) = (fit.model.n_columns(), fit.model.n_components());
    length("column names", d, learned.columns.len())?;
    let mut models = fit.draws.iter().flat_map(Mixture::models).chain([&fit.model]);
    models.try_for_each(|model| check_strength(model).and_then(|()| check_scale(model, &fit.spec)))?;
    length("names of views", fit.spec.views.len(), fit.views.len())?;
    // Views have private components besides those they share.
    let most = fit.spec.n_components.saturating_add(if fit.views.is_empty() { 0 } else { d });
    if q > most {
        range("the number of components", q as f64, "at most what the spec asks for")?;
    }
    if !fit.report.relevance.is_empty() {
        length("relevances", q * fit.views.len().max(1), fit.report.relevance.len())?;
    }
    if let Some(draws) = &fit.draws {
        length("columns of a draw", d, draws.n_columns())?;
        let isotropic = |model: &LinearGaussian| matches!(model.noise(), Noise::Isotropic(_));
        for draw in draws.models() {
            length("components of a draw", q, draw.n_components())?;
            let families = if isotropic(draw) == isotropic(&fit.model) { 1 } else { 2 };
            length("families of noise among model and draws", 1, families)?;
        }
    }
    if !fit.informative_rows.is_empty() {
        length("counts of informative rows", d, fit.informative_rows.len())?;
        let n_rows = learned.training.n_rows as f64;
        if let Some(&n) = fit.informative_rows.iter().find(|n| !(**n > 0.0 && **n <= n_rows)) {
            range("a count of informative rows", n, "above 0 and at most the number of rows")?;
        }
    }
    // Whether it should have been fitted was for the method to say.
    let fitted = Spec { allow_unidentified: true, ..fit.spec.clone() };
    fitted.check_shape(learned.training.n_rows, d)?;
    if let Some(RotatedLoadings { rotated, .. }) = &fit.rotation {
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
    if let Some(choice) = &fit.choice
        && !choice.by_n_components.iter().any(|at| at.shortfall == 0.0 && at.shortfall_error >= 0.0)
    {
        range("the smallest shortfall of a choice", f64::NAN, "0")?;
    }
    Ok(d)
}

/// Puts its arrays; returns the header.
pub(super) fn put(learned: &Learned, fit: &LinearFit, arrays: &mut Arrays) -> String {
    arrays.put("mean", fit.model.mean().to_vec());
    arrays.put_matrix("loadings", fit.model.loadings());
    arrays.put("noise_variance", noise_variances(&fit.model));
    put_scale(arrays, &fit.model);
    put_common(learned, &fit.report.trace, arrays);
    if let Some(RotatedLoadings { rotated, .. }) = &fit.rotation {
        arrays.put_matrix("rotated_loadings", &rotated.loadings);
        arrays.put_matrix("rotation", &rotated.transform);
        arrays.put_matrix("factor_correlations", &rotated.factor_correlations);
    }
    if let Some(u) = fit.model.uncertainty() {
        arrays.put_matrix("relative_covariances", &triangles(&u.relative));
        arrays.put("noise_shape", u.shape.clone());
        if !u.inclusion.is_empty() {
            arrays.put(INCLUSION, u.inclusion.clone());
        }
    }
    if !fit.informative_rows.is_empty() {
        arrays.put(INFORMATIVE_ROWS, fit.informative_rows.clone());
    }
    if let Some(draws) = &fit.draws {
        put_models(arrays, "draws", draws.models());
    }
    text(&Header {
        format_version: FORMAT_VERSION,
        kind: KIND.to_owned(),
        created_by: learned.created_by.clone(),
        family: learned.family.to_string(),
        views: fit.views.clone(),
        columns: learned.columns.clone(),
        constants: constant_names(learned),
        noise: noise_of(&fit.model),
        rotation: fit.rotation.as_ref().map(|r| r.name.clone()),
        spec: fit.spec.clone(),
        method: learned.method.clone(),
        seed: learned.seed,
        objective: fit.report.objective,
        termination: fit.report.termination,
        warnings: fit.report.warnings.clone(),
        n_rows: learned.training.n_rows,
        choice: fit.choice.clone(),
        check: learned.check.clone(),
        uncertainty: fit.model.uncertainty().map(|u| UncertaintyDef { coupled: u.coupled }),
        n_draws: fit.draws.as_ref().map(|draws| draws.models().len()),
        tail_degrees_of_freedom: Some(fit.model.tail_degrees_of_freedom()).filter(|nu| nu.is_finite()),
        fixed_axes: fit.model.has_fixed_axes(),
        relevance: fit.report.relevance.clone(),
        monitored: fit.report.monitored.clone(),
        fit_reference: fit.fit_statistics.as_ref().map(|statistics| statistics.reference),
        matrix: fit.matrix.map(|kind| kind.name().to_owned()),
    })
}

/// Takes its arrays.
pub(super) fn take(header: &str, mut arrays: Arrays, created_by: String) -> Result<Learned, Error> {
    let header: Header = parsed(header)?;
    let noise = match (header.noise, arrays.take("noise_variance")?) {
        (NoiseFamily::Diagonal, variances) => Noise::Diagonal(variances),
        (NoiseFamily::Isotropic, variances) => match variances[..] {
            [variance] => Noise::Isotropic(variance),
            _ => return Err(Error::broken("noise_variance", "of isotropic noise is not one number")),
        },
    };
    let mut model =
        LinearGaussian::new(arrays.take_matrix("loadings")?, arrays.take("mean")?, noise).map_err(invalid)?;
    // Whatever follows is sized by the columns, of which there must be some.
    let (expected, got) = (model.n_columns(), header.columns.len());
    if got == 0 || expected != got {
        return Err(invalid(crate::Error::WrongLength { what: "column names", expected, got }));
    }
    let scale = take_scale(&mut arrays, &header.spec)?;
    model = model.with_scale(scale).map_err(invalid)?;
    if let Some(UncertaintyDef { coupled }) = header.uncertainty {
        let relative =
            from_triangles(&arrays.take_matrix("relative_covariances")?, model.n_components() + 1)?;
        let shape = arrays.take("noise_shape")?;
        let inclusion = if arrays.has(INCLUSION) { arrays.take(INCLUSION)? } else { Vec::new() };
        let uncertainty = Uncertainty { relative, shape, coupled, inclusion };
        model = model.with_uncertainty(uncertainty).map_err(invalid)?;
    }
    if let Some(nu) = header.tail_degrees_of_freedom {
        model = model.with_tail_degrees_of_freedom(nu).map_err(invalid)?;
    }
    if header.fixed_axes {
        model = model.with_fixed_axes();
    }
    let draws = header.n_draws.map(|n| take_draws(&mut arrays, n, &model)).transpose()?;
    let rotation = match header.rotation {
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
    let of_reference = |reference| FactorReport::of_reference(&model, &header.warnings, reference);
    let fit_statistics = header.fit_reference.map(of_reference);
    let known = |name: &String| {
        MatrixKind::from_name(name).ok_or_else(|| Error::broken("matrix", format!("is `{name}`")))
    };
    let matrix = header.matrix.as_ref().map(known).transpose()?;
    let fit = LinearFit {
        model,
        draws,
        rotation,
        views: header.views,
        spec: header.spec,
        report: FitReport {
            objective: header.objective,
            trace: arrays.take("trace")?,
            termination: header.termination,
            warnings: header.warnings,
            relevance: header.relevance,
            monitored: header.monitored,
        },
        choice: header.choice,
        fit_statistics,
        matrix,
        informative_rows: if arrays.has(INFORMATIVE_ROWS) {
            arrays.take(INFORMATIVE_ROWS)?
        } else {
            Vec::new()
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
        model: Trained::Linear(Box::new(fit)),
    })
}

/// The lower triangle of each matrix, one per row.
fn triangles(matrices: &[Matrix]) -> Matrix {
    let triangle =
        |m: &Matrix| -> Vec<f64> { (0..m.n_rows()).flat_map(|i| m.row(i)[..=i].to_vec()).collect() };
    Matrix::from_rows(&matrices.iter().map(triangle).collect::<Vec<_>>())
}

fn from_triangles(triangles: &Matrix, size: usize) -> Result<Vec<Matrix>, Error> {
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

/// Everything in it, for people and for programs.
pub(super) fn entries(learned: &Learned, fit: &LinearFit) -> Entries {
    let (model, report) = (&fit.model, &fit.report);
    let mut entries = vec![
        ("kind", json!(KIND)),
        ("family", json!(learned.family.name())),
        ("n_components", json!(model.n_components())),
        ("n_columns", json!(model.n_columns())),
        ("columns", json!(learned.columns)),
        ("views", views(learned, fit)),
        (
            "canonical_correlations",
            match learned.canonical() {
                Ok(Some(found)) => numbers(found.correlations()),
                _ => Value::Null,
            },
        ),
        ("explained_variance_by_view", explained_by_view(learned)),
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
        ("inclusion", fit.model.inclusion().map_or(Value::Null, numbers)),
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
    entries.extend(fit.fit_statistics.as_ref().map(|found| ("fit_statistics", statistics(learned, found))));
    entries.extend(fit.matrix.map(|kind| ("matrix", json!(kind.name()))));
    if learned.weighs_rows() {
        entries.push(("degrees_of_freedom", stored(&model.tail_degrees_of_freedom())));
    }
    entries.extend(reported(report));
    entries.push(("spec", stored(&fit.spec)));
    entries.extend(learned.method_json());
    entries.push(("constants", learned.constants.iter().map(constant).collect()));
    entries.push(("choice", json!(fit.choice.as_ref().map(stored))));
    entries.push(("check", json!(learned.check.as_ref().map(stored))));
    entries.extend(learned.version_json());
    entries
}

/// The objective, if it is of that kind.
fn at(report: &FitReport, kind: ObjectiveKind) -> Value {
    json!((report.objective.kind == kind).then(|| stored(&report.objective.value)))
}

/// How well a factor analysis fits.
fn statistics(learned: &Learned, found: &FactorReport) -> Value {
    let optional = |value: Option<f64>| json!(value.as_ref().map(stored));
    let by_column = |values: &[f64]| -> Value {
        let named = learned.columns.iter().zip(values).map(|(name, value)| (name.clone(), stored(value)));
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
        "aic": stored(&found.aic),
        "bic": stored(&found.bic),
        "log_likelihood": stored(&reference.log_likelihood),
        "saturated_log_likelihood": optional(reference.saturated),
        "independent_log_likelihood": stored(&reference.independent),
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
