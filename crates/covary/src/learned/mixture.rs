//! A mixture, or a model for each class, and how the fit went.

use super::{Learned, Trained, Training};
use crate::family::Family;
use crate::infer::{FitReport, MethodRecord};
use crate::model::{Classifier, Mixture};
use crate::spec::NoiseFamily;
use crate::{Dataset, Error, Fit, Spec};

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassNames {
    /// The column that named them.
    pub target: String,
    /// Their names, one for each model.
    pub names: Vec<String>,
}

impl MixtureFit {
    /// The classes with their densities, if they were known.
    pub fn classifier(&self) -> Option<Classifier> {
        let names = self.classes.as_ref()?.names.clone();
        Some(Classifier::new(names, self.mixture.clone()).expect("a name for each component was checked"))
    }

    /// What the models are called: classes by name, others by number.
    pub fn names(&self) -> Vec<String> {
        match &self.classes {
            Some(classes) => classes.names.clone(),
            None => (1..=self.mixture.models().len()).map(|k| k.to_string()).collect(),
        }
    }

    /// What it is, in words.
    pub(super) fn words(&self) -> &'static str {
        if self.classes.is_some() { "classes with a model each" } else { "a mixture" }
    }
}

impl Learned {
    /// A mixture fitted to `data`; the family follows from what its models are.
    pub fn of_mixture(fit: Fit<Mixture>, data: &Dataset, spec: &Spec, method: MethodRecord) -> Self {
        let family = match (spec.noise, spec.n_components + 1 == data.n_columns()) {
            (NoiseFamily::Isotropic, true) => Family::Gmm,
            (NoiseFamily::Isotropic, false) => Family::Mppca,
            (NoiseFamily::Diagonal, _) => Family::Mfa,
        };
        let mixture =
            MixtureFit { mixture: fit.model, classes: None, spec: spec.clone(), report: fit.report };
        let table = (data.column_names().to_vec(), Training::of(data));
        Self::new(family, table, method, Trained::Mixture(Box::new(mixture)))
    }

    /// Classes that the column `target` named, fitted to `data`.
    pub fn of_classes(
        fit: Fit<Classifier>,
        target: &str,
        data: &Dataset,
        spec: &Spec,
        method: MethodRecord,
    ) -> Self {
        let family = match spec.noise {
            NoiseFamily::Isotropic => Family::Ppca,
            NoiseFamily::Diagonal => Family::Fa,
        };
        let mixture = MixtureFit {
            classes: Some(ClassNames { target: target.to_owned(), names: fit.model.classes().to_vec() }),
            mixture: fit.model.mixture().clone(),
            spec: spec.clone(),
            report: fit.report,
        };
        let table = (data.column_names().to_vec(), Training::of(data));
        Self::new(family, table, method, Trained::Mixture(Box::new(mixture)))
    }

    /// Free parameters of a mixture, as they were fitted: those of the models and all weights but one [M 1.9.7].
    ///
    /// # Errors
    /// [`Error::NotAMixture`] for other models.
    pub fn n_parameters(&self) -> Result<usize, Error> {
        let fit = self.mixture()?;
        let models = fit.mixture.models();
        let spec = Spec { n_components: models[0].n_components(), ..fit.spec.clone() };
        let (k, d) = (models.len(), self.columns.len());
        let one = spec.n_parameters(d);
        let again = if self.shares_covariance() { (k - 1) * (one - d) } else { 0 };
        Ok(k * one - again + k - 1)
    }

    /// Whether the models of a mixture were fitted with one covariance for all.
    pub fn shares_covariance(&self) -> bool {
        self.method.options.get("shared_covariance").is_some_and(|shared| shared == "true")
    }
}
