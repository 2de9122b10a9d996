//! One model for each class of rows [M 1.9.6].

use super::mixture::known::of_classes;
use super::report::{Fit, FitReport, Objective, ObjectiveKind, Observer, Termination};
use super::{Estimator, Method};
use crate::model::{Classifier, LinearGaussian, Mixture, Noise};
use crate::{Dataset, Density, Error, Spec};

/// Fits the rows of each class by themselves: their density, and how frequent they are.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::ClassConditional, Spec};
/// let (whole, _, truth) = simulate::mixture(Shape { rows: 300, columns: 6, n_components: 2 }, 3, 20.0, /* seed */ 1);
/// let table = simulate::hide(&whole, 0.2, /* seed */ 2);
/// let labels: Vec<Option<usize>> = truth.iter().map(|&c| Some(c)).collect();
/// let classes = ["a", "b", "c"].map(str::to_owned);
/// let fit = ClassConditional::default().fit(&table, &labels, &classes, &Spec::ppca(2))?;
/// let right = fit.model.predict(&table)?.iter().zip(&truth).filter(|(a, b)| a == b).count();
/// assert!(right > 290);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClassConditional {
    /// How each class is fitted; if `None`, by the method recommended for its rows.
    pub method: Option<Method>,
    /// How probable the classes are, in their order; if `None`, as frequent as they were.
    pub priors: Option<Vec<f64>>,
    /// λ: how much a row counts for the classes it is not of, from 0 to 1, by EM whatever the method; if `None`, not at all.
    /// A class of few rows is then held to what all rows say; with 1 every class has the model of all of them.
    pub lent: Option<f64>,
}

/// Smallest noise variance as a share of a class's variance, unless the spec says otherwise: a class of
/// few rows has no more rank than rows.
const FLOOR: f64 = 1e-6;

impl ClassConditional {
    /// Fits `classes`, `labels` giving the place of each row's class among them; rows without a label are
    /// passed over.
    ///
    /// A standardized fit divides by the standard deviations of the whole table, so that all classes
    /// share their units.
    ///
    /// # Errors
    /// As [`fit_observed`](Self::fit_observed).
    pub fn fit(
        &self,
        data: &Dataset,
        labels: &[Option<usize>],
        classes: &[String],
        spec: &Spec,
    ) -> Result<Fit<Classifier>, Error> {
        self.fit_observed(data, (labels, classes), spec, &mut ())
    }

    /// [`fit`](Self::fit), telling `observer` of the steps of every class.
    ///
    /// # Errors
    /// [`Error::OneClass`] below two classes, [`Error::InClass`] with the class that could not be fitted and
    /// why, [`Error::WrongLength`] unless there is a label for each row, a prior for each class and no
    /// label beyond the classes.
    pub fn fit_observed(
        &self,
        data: &Dataset,
        (labels, classes): (&[Option<usize>], &[String]),
        spec: &Spec,
        observer: &mut dyn Observer,
    ) -> Result<Fit<Classifier>, Error> {
        let wrong = |what, expected, got| Err(Error::WrongLength { what, expected, got });
        if labels.len() != data.n_rows() {
            return wrong("labels of rows", data.n_rows(), labels.len());
        }
        if let Some(beyond) = labels.iter().flatten().find(|c| **c >= classes.len()) {
            return wrong("classes", beyond + 1, classes.len());
        }
        if let Some(priors) = &self.priors
            && priors.len() != classes.len()
        {
            return wrong("prior probabilities of classes", classes.len(), priors.len());
        }
        if classes.len() < 2 {
            return Err(Error::OneClass { class: classes.first().cloned() });
        }
        if let Some(lent) = self.lent {
            return self.fit_lent(data, (labels, classes), spec, lent, observer);
        }
        let units = Units::of(data, spec)?;
        let table = units.scaled.as_ref().unwrap_or(data);
        let own = Spec { standardize: false, noise_floor: spec.noise_floor.or(Some(FLOOR)), ..spec.clone() };
        let (mut models, mut counts, mut reports) = (Vec::new(), Vec::new(), Vec::new());
        for (c, class) in classes.iter().enumerate() {
            let rows: Vec<usize> = (0..labels.len()).filter(|&i| labels[i] == Some(c)).collect();
            let mut fitted = || {
                if rows.is_empty() {
                    return Err(Error::TooFewRows { rows: 0 });
                }
                let members = table.of_rows(&rows)?;
                let method = self.method.clone().unwrap_or_else(|| Method::recommended(&members, &own));
                let fit = method.fit_observed(&members, &own, observer)?;
                Ok((units.unscale(&fit.model)?, fit.report))
            };
            let (model, report) = fitted()
                .map_err(|error: Error| Error::InClass { class: class.clone(), error: Box::new(error) })?;
            models.push(model);
            reports.push(report);
            counts.push(rows.len() as f64);
        }
        let mixture = Mixture::new(models, self.priors.clone().unwrap_or_else(|| counts.clone()))?;
        let of_classes: f64 = counts.iter().zip(mixture.weights()).map(|(n, w)| n * w.ln()).sum();
        let report = together(reports, of_classes - units.log_volume(data, labels));
        Ok(Fit { model: Classifier::new(classes.to_vec(), mixture)?, draws: None, report })
    }
}

impl ClassConditional {
    /// With rows lent to other classes; the objective is the log-likelihood of the rows under their own classes.
    fn fit_lent(
        &self,
        data: &Dataset,
        (labels, classes): (&[Option<usize>], &[String]),
        spec: &Spec,
        lent: f64,
        observer: &mut dyn Observer,
    ) -> Result<Fit<Classifier>, Error> {
        if !(0.0..=1.0).contains(&lent) {
            return Err(Error::OutOfRange { name: "lent", value: lent, bound: "from 0 to 1" });
        }
        let counts: Vec<f64> = (0..classes.len())
            .map(|c| labels.iter().filter(|label| **label == Some(c)).count() as f64)
            .collect();
        if let Some(c) = counts.iter().position(|n| *n == 0.0) {
            let error = Box::new(Error::TooFewRows { rows: 0 });
            return Err(Error::InClass { class: classes[c].clone(), error });
        }
        let spec = Spec { noise_floor: spec.noise_floor.or(Some(FLOOR)), ..spec.clone() };
        let found = of_classes(data, (labels, classes.len()), &spec, lent, observer)?;
        let (models, reports): (Vec<LinearGaussian>, Vec<FitReport>) = found.into_iter().unzip();
        let mixture = Mixture::new(models, self.priors.clone().unwrap_or(counts))?;
        let mut value = 0.0;
        for (c, (model, weight)) in mixture.models().iter().zip(mixture.weights()).enumerate() {
            let logs = model.log_density(data)?;
            let own = logs.iter().zip(labels).filter(|(_, label)| **label == Some(c));
            value += own.map(|(l, _)| weight.ln() + l).sum::<f64>();
        }
        let report = FitReport {
            objective: Objective { kind: ObjectiveKind::LogLikelihood, value },
            trace: vec![value],
            ..together(reports, 0.0)
        };
        Ok(Fit { model: Classifier::new(classes.to_vec(), mixture)?, draws: None, report })
    }
}

/// The log-likelihood of cells and classes, the most doubtful end, and all warnings. Beside the cells of
/// each class, `rest` is what the log-likelihood has in all.
fn together(reports: Vec<FitReport>, rest: f64) -> FitReport {
    let value = rest + reports.iter().map(|r| r.objective.value).sum::<f64>();
    // A class that is done stays where it is.
    let at = |step: usize, r: &FitReport| r.trace.get(step).copied().unwrap_or(r.objective.value);
    let steps = reports.iter().map(FitReport::n_iterations).max().unwrap_or(0);
    let trace = (0..=steps).map(|step| rest + reports.iter().map(|r| at(step, r)).sum::<f64>()).collect();
    let kind = reports.iter().map(|r| r.objective.kind).next().unwrap_or(ObjectiveKind::LogLikelihood);
    let ends = [
        Termination::Interrupted,
        Termination::IterationLimit,
        Termination::Converged,
        Termination::ClosedForm,
    ];
    let ended = |end: &Termination| reports.iter().any(|r| r.termination == *end);
    let termination = ends.into_iter().find(ended).unwrap_or(Termination::ClosedForm);
    let warnings = reports.into_iter().flat_map(|r| r.warnings).collect();
    FitReport::new(Objective { kind, value }, trace, termination, warnings)
}

/// The units that all classes are fitted in.
struct Units {
    scale: Vec<f64>,
    /// The table in them; `None` where they are its own.
    scaled: Option<Dataset>,
}

impl Units {
    fn of(data: &Dataset, spec: &Spec) -> Result<Self, Error> {
        if !spec.standardize {
            return Ok(Self { scale: Vec::new(), scaled: None });
        }
        let scale: Vec<f64> =
            data.observed_variances().iter().map(|v| if *v > 0.0 { v.sqrt() } else { 1.0 }).collect();
        let mut values = data.values().clone();
        values.scale_columns(&scale.iter().map(|s| 1.0 / s).collect::<Vec<_>>());
        let scaled = Dataset::with_names(values, data.column_names().to_vec())?;
        Ok(Self { scale, scaled: Some(scaled) })
    }

    /// `Σ ln s_j` over the observed cells of labeled rows: ln p falls by it from these units to the table's.
    fn log_volume(&self, data: &Dataset, labels: &[Option<usize>]) -> f64 {
        let labeled = (0..labels.len()).filter(|&i| labels[i].is_some());
        let of_row = |i: usize| -> f64 {
            let cells = data.row(i).iter().zip(&self.scale);
            cells.filter(|(t, _)| !t.is_nan()).map(|(_, s)| s.ln()).sum()
        };
        labeled.map(of_row).sum()
    }

    fn unscale(&self, model: &LinearGaussian) -> Result<LinearGaussian, Error> {
        if self.scaled.is_none() {
            return Ok(model.clone());
        }
        let mut w = model.loadings().clone();
        w.scale_rows(&self.scale);
        let mean = model.mean().iter().zip(&self.scale).map(|(m, s)| m * s).collect();
        let noise = model.noise_variances().iter().zip(&self.scale).map(|(v, s)| v * s * s).collect();
        let model = LinearGaussian::new(w, mean, Noise::Diagonal(noise))?;
        Ok(model.with_scale(Some(self.scale.clone()))?.canonical())
    }
}
