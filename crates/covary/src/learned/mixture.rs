//! A mixture, or a model for each class, and how the fit went.

use super::check::{Refitted, TOLERANCE};
use super::{Answers, Ending, Learned, Membership, Rows, Scores, Trained, Training};
use crate::error::count;
use crate::family::{Family, Request};
use crate::infer::{
    ClassConditional, FitReport, MethodRecord, MixtureEm, Observer, Stop, Termination, stop_flag,
};
use crate::model::{Classifier, Mixture, Predictive};
use crate::select::own_components;
use crate::spec::NoiseFamily;
use crate::{Coordinates, Dataset, Error, Estimator, Fit, LinearGaussian, Matrix, Spec};
use rand::Rng;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

/// A mixture, or a model for each class, and how the fit went.
#[derive(Debug, Clone, PartialEq)]
pub struct MixtureFit {
    /// The mixture, as fitted.
    pub mixture: Mixture,
    /// What its models are called, if they are classes that were known.
    pub classes: Option<ClassNames>,
    /// What each model is.
    pub spec: Spec,
    /// How the fit went and ended.
    pub report: FitReport,
}

/// Classes that rows were known to be of.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassNames {
    /// The column that named them.
    pub target: String,
    /// Their names, one for each model.
    pub names: Vec<String>,
    /// How much a row counted for the classes it is not of, if it did ([`ClassConditional::lent`]).
    pub lent: Option<f64>,
}

impl MixtureFit {
    /// The classes with their densities, if they were known.
    pub fn classifier(&self) -> Option<Classifier> {
        let names = self.classes.as_ref()?.names.clone();
        Some(Classifier::new(names, self.mixture.clone()).expect("a name for each component was checked"))
    }

    /// The components of each model.
    pub fn components(&self) -> Vec<usize> {
        self.mixture.models().iter().map(LinearGaussian::n_components).collect()
    }

    /// How many components the models have: `2 components each`, or `4, 2 and 1 components`.
    pub fn components_in_words(&self) -> String {
        let components = self.components();
        let (last, others) = components.split_last().expect("a mixture has models");
        if others.iter().all(|q| q == last) {
            return format!("{} each", count(*last, "component"));
        }
        let others: Vec<String> = others.iter().map(ToString::to_string).collect();
        format!("{} and {last} components", others.join(", "))
    }

    /// What the models are called: classes by name, others by number.
    pub fn names(&self) -> Vec<String> {
        match &self.classes {
            Some(classes) => classes.names.clone(),
            None => (1..=self.mixture.models().len()).map(|k| k.to_string()).collect(),
        }
    }

    /// Which of its models rows belong to.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] for a table of other columns.
    pub fn membership(&self, data: &Dataset) -> Result<Membership, Error> {
        let probabilities = self.mixture.responsibilities(data)?;
        let labels = Mixture::labels_of(&probabilities);
        Ok(Membership { names: self.names(), are_classes: self.classes.is_some(), labels, probabilities })
    }
}

impl Answers for MixtureFit {
    fn words(&self) -> &'static str {
        if self.classes.is_some() { "classes with a model each" } else { "a mixture" }
    }

    fn n_components(&self) -> usize {
        self.components().into_iter().max().unwrap_or(0)
    }

    fn size(&self, _: &Learned) -> String {
        self.components_in_words()
    }

    fn described(&self, learned: &Learned) -> String {
        let of = match &self.classes {
            Some(classes) => format!(" for each of {} classes of `{}`", classes.names.len(), classes.target),
            None => format!(", {}", count(self.mixture.models().len(), "model")),
        };
        format!("{}{of}, {}", learned.family.words(), self.components_in_words())
    }

    fn spec(&self) -> Option<&Spec> {
        Some(&self.spec)
    }

    fn ending(&self) -> Ending<'_> {
        (&self.report).into()
    }

    fn density(&self, _: Rows) -> Result<Predictive<'_>, Error> {
        Ok(Predictive::Model(&self.mixture))
    }

    fn scores(&self, _: &Learned, data: &Dataset, how: Option<Coordinates>) -> Result<Scores, Error> {
        let membership = self.membership(data)?;
        let how = how.unwrap_or(Coordinates::Posterior);
        let (mut names, mut by_model) = (Vec::new(), Vec::new());
        for (name, model) in membership.names.iter().zip(self.mixture.models()) {
            let scores = model.transform(data, how)?;
            names.extend((1..=scores.n_columns()).map(|k| format!("{name}_component_{k}")));
            by_model.push(scores);
        }
        let rows: Vec<Vec<f64>> = (0..data.n_rows())
            .map(|i| by_model.iter().flat_map(|m| m.row(i).iter().copied()).collect())
            .collect();
        let values = Matrix::from_vec(data.n_rows(), names.len(), rows.concat())?;
        Ok(Scores { names, values, membership: Some(membership) })
    }

    fn membership(&self, data: &Dataset) -> Result<Option<Membership>, Error> {
        self.membership(data).map(Some)
    }

    fn sample(&self, n_rows: usize, rng: &mut dyn Rng) -> Result<(Matrix, Option<Vec<usize>>), Error> {
        let (rows, labels) = self.mixture.sample_labeled(n_rows, rng);
        Ok((rows, Some(labels)))
    }

    fn refit(
        &self,
        learned: &Learned,
        _request: &Request,
        visible: &Dataset,
        observer: &mut dyn Observer,
    ) -> Result<Option<Refitted>, Error> {
        if let Some(classes) = &self.classes {
            let (Some(labels), Some(_)) = (visible.classes(), classes.lent) else {
                return Err(Error::Unsupported {
                    method: "a model for each class",
                    what: "a check on hidden cells",
                    instead: "one model or a mixture",
                });
            };
            let priors = Some(self.mixture.weights().to_vec());
            let estimator = ClassConditional { method: None, priors, lent: classes.lent };
            let fit = estimator.fit_observed(visible, (labels, &classes.names), &self.spec, observer)?;
            return match fit.report.termination {
                Termination::Interrupted => Err(Error::Interrupted),
                _ => Ok(Some(Refitted::Mixture(fit.model.mixture().clone()))),
            };
        }
        // Not from the mixture as it is: which of its models has a row was decided with the hidden cells, and steps from
        // there end at the maximum that knows them.
        let mut method = MixtureEm::default();
        for (name, value) in learned.method.options.iter().filter(|(name, _)| *name != "init") {
            method.set(name, value)?;
        }
        method.n_mixtures = self.mixture.models().len();
        if method.stop == Stop::Remaining {
            method.tolerance = method.tolerance.max(TOLERANCE);
        }
        let (components, most) = (self.components(), self.n_components());
        if components.iter().any(|q| *q != most) {
            // Components of their own are found again, too; where they are not, all models have the most.
            let stop = stop_flag(observer);
            let going_on = |_: usize, _: usize| {
                if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let sizes = [(method.n_mixtures, most)];
            if let (_, Some(own)) = own_components(visible, &self.spec, &sizes, &method, &going_on)? {
                return Ok(Some(Refitted::Mixture(own.mixture)));
            }
        }
        let fit = method.fit_observed(visible, &self.spec, observer)?;
        match fit.report.termination {
            Termination::Interrupted => Err(Error::Interrupted),
            _ => Ok(Some(Refitted::Mixture(fit.model))),
        }
    }
}

impl Learned {
    /// A mixture fitted to `data`; the family follows from what its models are.
    pub fn of_mixture(fit: Fit<Mixture>, data: &Dataset, spec: &Spec, method: MethodRecord) -> Self {
        Self::of_mixture_table(fit, Training::with_names(data), spec, method)
    }

    /// The same of a table known by its columns' names and numbers.
    pub fn of_mixture_table(
        fit: Fit<Mixture>,
        table: (Vec<String>, Training),
        spec: &Spec,
        method: MethodRecord,
    ) -> Self {
        let family = match (spec.noise, spec.n_components + 1 == table.0.len()) {
            (NoiseFamily::Isotropic, true) => Family::Gmm,
            (NoiseFamily::Isotropic, false) => Family::Mppca,
            (NoiseFamily::Diagonal, _) => Family::Mfa,
        };
        let (spec, report) = (spec.clone(), fit.report);
        let mixture = MixtureFit { mixture: fit.model, classes: None, spec, report };
        Self::new(family, table, method, Trained::Mixture(Box::new(mixture)))
    }

    /// Classes that the column `target` named, fitted to `data`, rows `lent` to the classes they are not of.
    pub fn of_classes(
        fit: Fit<Classifier>,
        (target, lent): (&str, Option<f64>),
        data: &Dataset,
        spec: &Spec,
        method: MethodRecord,
    ) -> Self {
        let mixture = MixtureFit {
            classes: Some(ClassNames {
                target: target.to_owned(),
                names: fit.model.classes().to_vec(),
                lent,
            }),
            mixture: fit.model.mixture().clone(),
            spec: spec.clone(),
            report: fit.report,
        };
        let family = match spec.noise {
            NoiseFamily::Isotropic => Family::Ppca,
            NoiseFamily::Diagonal => Family::Fa,
        };
        Self::new(family, Training::with_names(data), method, Trained::Mixture(Box::new(mixture)))
    }

    /// Free parameters of a mixture, as they were fitted: those of the models and all weights but one [M 1.9.7].
    ///
    /// # Errors
    /// [`Error::NotAMixture`] for other models.
    pub fn n_parameters(&self) -> Result<usize, Error> {
        let fit = self.mixture()?;
        let (components, d) = (fit.components(), self.columns.len());
        let k = components.len();
        let of = |&n_components: &usize| Spec { n_components, ..fit.spec.clone() }.n_parameters(d);
        let again = if self.shares_covariance() { (k - 1) * (of(&components[0]) - d) } else { 0 };
        Ok(components.iter().map(of).sum::<usize>() - again + k - 1)
    }

    /// Whether the models of a mixture were fitted with one covariance for all.
    pub fn shares_covariance(&self) -> bool {
        self.method.options.get("shared_covariance").is_some_and(|shared| shared == "true")
    }
}
