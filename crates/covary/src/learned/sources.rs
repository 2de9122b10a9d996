//! Independent sources.

use super::{Learned, Trained, Training};
use crate::family::Family;
use crate::ica::{self, Mixing, NoisyMixing};
use crate::{Dataset, Error};

impl Learned {
    /// The sources that `method` found in `data`.
    pub fn of_sources(fit: ica::Fit, data: &Dataset, method: &ica::Method) -> Self {
        let table = (data.column_names().to_vec(), Training::of(data));
        Self::new(Family::Ica, table, method.into(), Trained::Sources(Box::new(fit)))
    }

    /// Sources behind noise: only these take gaps and fill them.
    ///
    /// # Errors
    /// [`Error::NoDensity`] if there is no noise, [`Error::NoSources`] for other models.
    pub fn noisy_sources(&self) -> Result<&NoisyMixing, Error> {
        let fit = self.sources()?;
        match &fit.model {
            Mixing::Noisy(model) => Ok(model),
            Mixing::Exact(_) => Err(super::no_density(fit)),
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
