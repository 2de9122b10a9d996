//! Independent sources.

use super::answers::other_coordinates;
use super::{Answers, Ending, Learned, Notice, Rows, Scores, Trained, Training};
use crate::error::count;
use crate::family::Family;
use crate::ica::{self, Mixing, NoisyMixing};
use crate::model::Fill;
use crate::{Coordinates, Dataset, Error, Matrix, Spec};

impl Answers for ica::Fit {
    fn words(&self) -> &'static str {
        "independent components"
    }

    fn not_linear(&self) -> Error {
        Error::NoDensity { noisy: matches!(self.model, Mixing::Noisy(_)) }
    }

    fn n_components(&self) -> usize {
        self.model.n_components()
    }

    fn size(&self, _: &Learned) -> String {
        let noise = if matches!(self.model, Mixing::Noisy(_)) { " behind noise" } else { "" };
        format!("{}{noise}", count(self.model.n_components(), "source"))
    }

    fn spec(&self) -> Option<&Spec> {
        None
    }

    fn ending(&self) -> Ending<'_> {
        Ending {
            termination: self.termination,
            n_iterations: self.n_iterations,
            trace: &self.trace,
            objective: self.objective(),
            warnings: self.warnings.iter().map(Notice::from).collect(),
        }
    }

    fn fill(&self, _: Rows) -> Result<Box<dyn Fill + '_>, Error> {
        match &self.model {
            Mixing::Noisy(model) => Ok(Box::new(model.clone())),
            Mixing::Exact(_) => Err(self.not_linear()),
        }
    }

    fn scores(&self, _: &Learned, data: &Dataset, how: Option<Coordinates>) -> Result<Scores, Error> {
        if how.is_some() {
            return Err(other_coordinates("independent components", "their one form"));
        }
        let values = self.model.transform(data)?;
        let names = (1..=values.n_columns()).map(|k| format!("source_{k}")).collect();
        Ok(Scores { names, values, membership: None })
    }

    fn reconstruct(&self, _: &Learned, data: &Dataset, _: bool) -> Result<Matrix, Error> {
        self.model.decode(&self.model.transform(data)?)
    }
}

impl Learned {
    /// The sources that `method` found in `data`.
    pub fn of_sources(fit: ica::Fit, data: &Dataset, method: &ica::Method) -> Self {
        Self::new(Family::Ica, Training::with_names(data), method.into(), Trained::Sources(Box::new(fit)))
    }

    /// Sources behind noise: only these take gaps and fill them.
    ///
    /// # Errors
    /// [`Error::NoDensity`] if there is no noise, [`Error::NoSources`] for other models.
    pub fn noisy_sources(&self) -> Result<&NoisyMixing, Error> {
        let fit = self.sources()?;
        match &fit.model {
            Mixing::Noisy(model) => Ok(model),
            Mixing::Exact(_) => Err(fit.not_linear()),
        }
    }

    /// Share of the variance that each source explains: `‖aᵢ‖²` over that of all columns. Behind noise, all
    /// columns have the variance `Σ ‖aᵢ‖² + Σ ψⱼ` of the fitted model, sources of unit variance: with the noise, the
    /// shares sum to 1. (The table's own variance would not do: the Laplace density may fit sources of another
    /// variance best, and shares of more than 1 came out.)
    ///
    /// # Errors
    /// [`Error::NoSources`] for other models.
    pub fn source_variance_ratio(&self) -> Result<Vec<f64>, Error> {
        let model = &self.sources()?.model;
        let explained = model.explained_variance();
        let total: f64 = match model {
            Mixing::Exact(_) => self.training.column_sds.iter().map(|sd| sd * sd).sum(),
            Mixing::Noisy(model) => explained.iter().chain(model.noise_variances()).sum(),
        };
        Ok(explained.iter().map(|v| v / total).collect())
    }
}
