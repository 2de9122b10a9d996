//! The file of a dynamic factor model: kind `dynamic`.

use super::describe::{Entries, constant, numbers, reported, rows, stored};
use super::header::{MethodDef, NoiseFamilyDef, ObjectiveDef, SpecDef, TerminationDef, list, one, option};
use super::{Arrays, Error, FORMAT_VERSION, constant_names, family, invalid, length, parsed, put_common};
use super::{range, take_constants, take_training, text};
use crate::data::{Steps, TimeAxis};
use crate::dynamics::{DynamicFactor, LearnedFrom, Regressors, Season, Start, Trend};
use crate::infer::{FitReport, MethodRecord, Objective, ObjectiveKind, Termination, Warning};
use crate::learned::{DynamicFit, Learned, Trained};
use crate::select::SelfCheck;
use crate::spec::NoiseFamily;
use crate::{Noise, Spec};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What the file holds.
pub(super) const KIND: &str = "dynamic";

/// A header of a dynamic factor model. Fields it does not know are ignored.
#[derive(Serialize, Deserialize)]
struct Header {
    format_version: u64,
    kind: String,
    created_by: String,
    family: String,
    columns: Vec<String>,
    constants: Vec<String>,
    #[serde(with = "NoiseFamilyDef")]
    noise: NoiseFamily,
    season: SeasonDef,
    trend: Option<TrendDef>,
    time: Option<TimeDef>,
    /// First and last time of the table.
    span: (i64, i64),
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
    /// Of these with a cell; all of them in files that do not say.
    #[serde(default)]
    n_informative_rows: Option<usize>,
    #[serde(default, with = "option", skip_serializing_if = "Option::is_none")]
    check: Option<SelfCheck>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum SeasonDef {
    None,
    Harmonics {
        #[serde(with = "one")]
        period: f64,
        n: usize,
    },
    Indicators {
        period: usize,
    },
}

#[derive(Serialize, Deserialize)]
struct TrendDef {
    #[serde(with = "one")]
    center: f64,
    #[serde(with = "one")]
    unit: f64,
}

/// What times stand for.
#[derive(Serialize, Deserialize)]
struct TimeDef {
    column: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sequences: Option<String>,
    notation: String,
    steps: StepsDef,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "unit", rename_all = "snake_case")]
enum StepsDef {
    Numbers {
        #[serde(with = "one")]
        origin: f64,
        #[serde(with = "one")]
        step: f64,
    },
    Months {
        origin: i64,
        step: i64,
        day: u32,
    },
    Microseconds {
        origin: i64,
        step: i64,
    },
}

impl From<&TimeAxis> for TimeDef {
    fn from(axis: &TimeAxis) -> Self {
        let TimeAxis { name, sequences, steps, notation } = axis.clone();
        let steps = match steps {
            Steps::Numbers { origin, step } => StepsDef::Numbers { origin, step },
            Steps::Months { origin, step, day } => StepsDef::Months { origin, step, day },
            Steps::Clock { origin, step } => StepsDef::Microseconds { origin, step },
        };
        Self { column: name, sequences, notation, steps }
    }
}

impl From<TimeDef> for TimeAxis {
    fn from(TimeDef { column, sequences, notation, steps }: TimeDef) -> Self {
        let steps = match steps {
            StepsDef::Numbers { origin, step } => Steps::Numbers { origin, step },
            StepsDef::Months { origin, step, day } => Steps::Months { origin, step, day },
            StepsDef::Microseconds { origin, step } => Steps::Clock { origin, step },
        };
        Self { name: column, sequences, steps, notation }
    }
}

fn season(regressors: &Regressors) -> SeasonDef {
    match regressors.season {
        Season::None => SeasonDef::None,
        Season::Harmonics { period, n } => SeasonDef::Harmonics { period, n },
        Season::Indicators { period } => SeasonDef::Indicators { period },
    }
}

/// Whether the parts fit together; returns the number of columns.
pub(super) fn check(learned: &Learned, fit: &DynamicFit) -> Result<usize, crate::Error> {
    let (model, d) = (&fit.model, fit.model.n_columns());
    length("column names", d, learned.columns.len())?;
    if model.n_components() != fit.spec.n_components {
        range("the number of factors", model.n_components() as f64, "what the spec asks for")?;
    }
    fit.spec.check_shape_in_time(learned.training.n_rows, d)?;
    if let Some(trend) = model.regressors().trend
        && !(trend.center.is_finite() && trend.unit.is_finite() && trend.unit > 0.0)
    {
        range("the unit of the trend", trend.unit, "finite and above 0, about a center that is finite")?;
    }
    let step = fit.axis.as_ref().map_or(1.0, |axis| match axis.steps {
        Steps::Numbers { origin, step } => {
            if origin.is_finite() {
                step
            } else {
                origin
            }
        }
        Steps::Months { step, .. } | Steps::Clock { step, .. } => step as f64,
    });
    if !(step.is_finite() && step > 0.0) {
        range("the step of time", step, "finite and above 0")?;
    }
    Ok(d)
}

/// Puts its arrays; returns the header.
pub(super) fn put(learned: &Learned, fit: &DynamicFit, arrays: &mut Arrays) -> String {
    let model = &fit.model;
    arrays.put_matrix("transition", model.transition());
    arrays.put_matrix("innovation", model.innovation());
    arrays.put_matrix("loadings", model.loadings());
    arrays.put_matrix("coefficients", model.coefficients());
    arrays.put_matrix("start_covariance", &model.start().covariance);
    arrays.put("start_mean", model.start().mean.clone());
    let (noise, variances) = match model.noise() {
        Noise::Isotropic(v) => (NoiseFamily::Isotropic, vec![*v]),
        Noise::Diagonal(psi) => (NoiseFamily::Diagonal, psi.clone()),
    };
    arrays.put("noise_variance", variances);
    if let Some(rho) = model.noise_memory() {
        arrays.put("noise_memory", rho.to_vec());
    }
    put_common(learned, &fit.report.trace, arrays);
    text(&Header {
        format_version: FORMAT_VERSION,
        kind: KIND.to_owned(),
        created_by: learned.created_by.clone(),
        family: learned.family.to_string(),
        columns: learned.columns.clone(),
        constants: constant_names(learned),
        noise,
        season: season(model.regressors()),
        trend: model.regressors().trend.map(|Trend { center, unit }| TrendDef { center, unit }),
        time: fit.axis.as_ref().map(TimeDef::from),
        span: fit.span,
        spec: fit.spec.clone(),
        method: learned.method.clone(),
        seed: learned.seed,
        objective: fit.report.objective,
        termination: fit.report.termination,
        warnings: fit.report.warnings.clone(),
        n_rows: learned.training.n_rows,
        n_informative_rows: Some(fit.from.rows),
        check: learned.check.clone(),
    })
}

/// Takes its arrays.
pub(super) fn take(header: &str, mut arrays: Arrays, created_by: String) -> Result<Learned, Error> {
    let header: Header = parsed(header)?;
    if header.columns.is_empty() {
        return Err(invalid(crate::Error::EmptyTable { rows: header.n_rows, columns: 0 }));
    }
    let coefficients = arrays.take_matrix("coefficients")?;
    let regressors = Regressors {
        season: taken_season(header.season, coefficients.n_columns())?,
        trend: header.trend.map(|TrendDef { center, unit }| Trend { center, unit }),
    };
    let variances = arrays.take("noise_variance")?;
    let noise = match (header.noise, variances.as_slice()) {
        (NoiseFamily::Isotropic, [variance]) => Noise::Isotropic(*variance),
        (NoiseFamily::Isotropic, _) => return Err(Error::broken("noise_variance", "is not one number")),
        (NoiseFamily::Diagonal, _) => Noise::Diagonal(variances),
    };
    let model = DynamicFactor::new(
        arrays.take_matrix("transition")?,
        arrays.take_matrix("innovation")?,
        arrays.take_matrix("loadings")?,
        coefficients,
        regressors,
        noise,
        Start { mean: arrays.take("start_mean")?, covariance: arrays.take_matrix("start_covariance")? },
    )
    .map_err(invalid)?;
    let memory = arrays.has("noise_memory").then(|| arrays.take("noise_memory")).transpose()?;
    let model = model.with_noise_memory(memory).map_err(invalid)?;
    let training = take_training(header.n_rows, &mut arrays)?;
    let from = LearnedFrom {
        rows: header.n_informative_rows.unwrap_or(header.n_rows).min(header.n_rows),
        cells: training.n_observed_by_column.clone(),
    };
    let fit = DynamicFit {
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
        axis: header.time.map(TimeAxis::from),
        span: header.span,
        from,
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
        model: Trained::Dynamic(Box::new(fit)),
    })
}

/// A season that has at most `most` regressors.
fn taken_season(season: SeasonDef, most: usize) -> Result<Season, Error> {
    let refused = |what: &str| Err(Error::broken("season", format!("has {what}")));
    match season {
        SeasonDef::None => Ok(Season::None),
        SeasonDef::Harmonics { period, .. } if !(period.is_finite() && period > 1.0) => {
            refused("a period that is not above 1")
        }
        SeasonDef::Harmonics { n, .. } if n > most => refused("more waves than coefficients"),
        SeasonDef::Harmonics { period, n } => Ok(Season::Harmonics { period, n }),
        SeasonDef::Indicators { period } if !(2..=most).contains(&period) => {
            refused("a period that is not from 2 to the number of coefficients")
        }
        SeasonDef::Indicators { period } => Ok(Season::Indicators { period }),
    }
}

/// Everything in it, for people and for programs.
pub(super) fn entries(learned: &Learned, fit: &DynamicFit) -> Entries {
    let (model, report) = (&fit.model, &fit.report);
    let noise = match model.noise() {
        Noise::Isotropic(variance) => stored(variance),
        Noise::Diagonal(variances) => numbers(variances),
    };
    let trend = model.regressors().trend.map(|Trend { center, unit }| TrendDef { center, unit });
    // With a prior of season and trend it is not what was maximized.
    let likelihood = Some(report.objective).filter(|o| o.kind == ObjectiveKind::LogLikelihood);
    let at = |time: i64| fit.axis.as_ref().map(|axis| axis.text(time));
    let mut entries = vec![
        ("kind", json!(KIND)),
        ("family", json!(learned.family.name())),
        ("n_components", json!(model.n_components())),
        ("order", json!(model.order())),
        ("n_columns", json!(model.n_columns())),
        ("columns", json!(learned.columns)),
        ("transition", rows(model.transition())),
        ("innovation", rows(model.innovation())),
        ("spectral_radius", stored(&model.spectral_radius())),
        ("loadings", rows(model.loadings())),
        ("coefficients", rows(model.coefficients())),
        ("season", json!(season(model.regressors()))),
        ("trend", json!(trend)),
        ("noise_variance", noise),
        ("noise_memory", model.noise_memory().map_or(json!(null), numbers)),
        ("start_mean", numbers(&model.start().mean)),
        ("start_covariance", rows(&model.start().covariance)),
        ("time", json!(fit.axis.as_ref().map(TimeDef::from))),
        ("first_time", json!(at(fit.span.0).map_or(json!(fit.span.0), |text| json!(text)))),
        ("last_time", json!(at(fit.span.1).map_or(json!(fit.span.1), |text| json!(text)))),
        ("log_likelihood", json!(likelihood.map(|objective| stored(&objective.value)))),
    ];
    entries.extend(reported(report));
    entries.push(("spec", stored(&fit.spec)));
    entries.extend(learned.method_json());
    entries.push(("check", json!(learned.check.as_ref().map(stored))));
    entries.push(("constants", learned.constants.iter().map(constant).collect()));
    entries.extend(learned.version_json());
    entries
}
