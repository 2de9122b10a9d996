//! The file of a dynamic factor model: kind `dynamic`.

use super::describe::{Entries, noise, number, numbers, rows};
use super::header::{self, Nothing};
use super::linear::{from_triangles, triangles};
use super::{Arrays, Error, Kept, counts, invalid, noise_variances, range, take_noise};
use crate::data::{Steps, TimeAxis};
use crate::dynamics::{DynamicFactor, LearnedFrom, Regressors, Season, Start, Trend};
use crate::infer::ObjectiveKind;
use crate::learned::{DynamicFit, Learned, Trained};
use crate::model::Uncertainty;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What the file holds.
pub(super) const KIND: &str = "dynamic";

/// Its header.
type Header = header::Header<Informative, Own>;

#[derive(Serialize, Deserialize)]
struct Own {
    season: Season,
    trend: Option<Trend>,
    time: Option<TimeAxis>,
    /// First and last time of the table.
    span: (i64, i64),
}

#[derive(Serialize, Deserialize)]
struct Informative {
    /// Rows with a cell; all of them in files that do not say.
    #[serde(default)]
    n_informative_rows: Option<usize>,
}

impl Kept for DynamicFit {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn check(&self, learned: &Learned) -> Result<usize, crate::Error> {
        let (model, d) = (&self.model, self.model.n_columns());
        if model.n_components() != self.spec.n_components {
            range("the number of factors", model.n_components() as f64, "what the spec asks for")?;
        }
        self.spec.check_shape_in_time(learned.training.n_rows, d)?;
        if let Some(trend) = model.regressors().trend
            && !(trend.center.is_finite() && trend.unit.is_finite() && trend.unit > 0.0)
        {
            range("the unit of the trend", trend.unit, "finite and above 0, about a center that is finite")?;
        }
        let step = self.axis.as_ref().map_or(1.0, |axis| match axis.steps {
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

    fn put(&self, learned: &Learned, arrays: &mut Arrays) -> String {
        let model = &self.model;
        arrays.put_matrix("transition", model.transition());
        arrays.put_matrix("innovation", model.innovation());
        arrays.put_matrix("loadings", model.loadings());
        arrays.put_matrix("coefficients", model.coefficients());
        arrays.put_matrix("start_covariance", &model.start().covariance);
        arrays.put("start_mean", model.start().mean.clone());
        arrays.put("noise_variance", noise_variances(model.noise()));
        if let Some(rho) = model.noise_memory() {
            arrays.put("noise_memory", rho.to_vec());
        }
        if let Some(u) = model.uncertainty() {
            arrays.put_matrix("relative_covariances", &triangles(&u.relative));
            arrays.put("noise_shape", u.shape.clone());
        }
        let own = Own {
            season: model.regressors().season,
            trend: model.regressors().trend,
            time: self.axis.clone(),
            span: self.span,
        };
        let informative = Informative { n_informative_rows: Some(self.from.rows) };
        let parts = (Nothing {}, own, informative);
        Header::of(learned, Some(model.noise()), parts, (&self.report).into()).text()
    }

    fn entries(&self, learned: &Learned) -> Entries {
        let (model, report) = (&self.model, &self.report);
        // With a prior of season and trend it is not what was maximized.
        let likelihood = Some(report.objective).filter(|o| o.kind == ObjectiveKind::LogLikelihood);
        let at = |time: i64| self.axis.as_ref().map(|axis| axis.text(time));
        let mut entries = vec![
            ("n_components", json!(model.n_components())),
            ("order", json!(model.order())),
            ("n_columns", json!(model.n_columns())),
            ("columns", json!(learned.columns)),
            ("transition", rows(model.transition())),
            ("innovation", rows(model.innovation())),
            ("spectral_radius", number(model.spectral_radius())),
            ("loadings", rows(model.loadings())),
            ("coefficients", rows(model.coefficients())),
            ("season", json!(model.regressors().season)),
            ("trend", json!(model.regressors().trend)),
            ("noise_variance", noise(model.noise())),
            ("noise_memory", model.noise_memory().map_or(json!(null), numbers)),
            ("start_mean", numbers(&model.start().mean)),
            ("start_covariance", rows(&model.start().covariance)),
            ("time", json!(self.axis)),
            ("first_time", json!(at(self.span.0).map_or(json!(self.span.0), |text| json!(text)))),
            ("last_time", json!(at(self.span.1).map_or(json!(self.span.1), |text| json!(text)))),
            ("log_likelihood", json!(likelihood.map(|objective| number(objective.value)))),
        ];
        entries.extend(learned.asked_and_ended(&self.spec, report));
        entries.extend(learned.check_and_constants());
        entries
    }
}

/// Takes its arrays.
pub(super) fn take(header: &str, mut arrays: Arrays) -> Result<Learned, Error> {
    let header = Header::with_columns(header)?;
    let own = &header.middle;
    let coefficients = arrays.take_matrix("coefficients")?;
    let regressors = Regressors { season: checked(own.season, coefficients.n_columns())?, trend: own.trend };
    let noise = take_noise(&mut arrays, header.noise()?)?;
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
    let mut model = model.with_noise_memory(memory).map_err(invalid)?;
    if arrays.has("relative_covariances") {
        let size = model.n_components() + 1;
        let relative = from_triangles(&arrays.take_matrix("relative_covariances")?, size)?;
        // That of a structured posterior, as what is fitted takes it from.
        let (shape, coupled) = (arrays.take("noise_shape")?, true);
        let uncertainty = Uncertainty { relative, shape, coupled, inclusion: Vec::new() };
        model = model.with_uncertainty(uncertainty).map_err(invalid)?;
    }
    let from = LearnedFrom {
        rows: header.last.n_informative_rows.unwrap_or(header.n_rows).min(header.n_rows),
        cells: counts(arrays.get("n_observed_by_column")?)?,
    };
    let fit = DynamicFit {
        model,
        spec: header.spec()?.clone(),
        report: header.ended.taken(&mut arrays)?,
        axis: own.time.clone(),
        span: own.span,
        from,
    };
    header.into_learned(&mut arrays, Trained::Dynamic(Box::new(fit)))
}

/// A season that has at most `most` regressors.
fn checked(season: Season, most: usize) -> Result<Season, Error> {
    let refused = |what: &str| Err(Error::broken("season", format!("has {what}")));
    match season {
        Season::Harmonics { period, .. } if !(period.is_finite() && period > 1.0) => {
            refused("a period that is not above 1")
        }
        Season::Harmonics { n, .. } if n > most => refused("more waves than coefficients"),
        Season::Indicators { period } if !(2..=most).contains(&period) => {
            refused("a period that is not from 2 to the number of coefficients")
        }
        _ => Ok(season),
    }
}
