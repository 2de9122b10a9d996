//! Parameters as EM iterates them, and the frame that ties them to the user's units.

use super::is_isotropic;
use crate::model::{LinearGaussian, Noise};
use crate::spec::{LoadingsPrior, NoisePrior, Prior};
use crate::{Dataset, Error, Matrix, Spec};
use statrs::function::gamma::ln_gamma;

/// Columns are divided by `scale` while fitting: each by its own standard deviation for diagonal
/// noise and for standardized fits, all of a view by one number otherwise, so that floors, priors and
/// step lengths are free of units. Means stay in the user's units.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::infer) struct Frame {
    pub(in crate::infer) mean: Vec<f64>,
    pub(in crate::infer) scale: Vec<f64>,
    pub(in crate::infer) inverse: Vec<f64>,
    pub(in crate::infer) isotropic: bool,
}

impl Frame {
    pub(in crate::infer) fn new(data: &Dataset, spec: &Spec) -> Self {
        Self::of_columns(data.observed_means(), data.observed_variances(), spec)
    }

    /// Of columns with these means and variances.
    pub(in crate::infer) fn of_columns(means: &[f64], variances: &[f64], spec: &Spec) -> Self {
        let own = spec.standardize || !is_isotropic(spec);
        let mut scale = Vec::with_capacity(variances.len());
        for columns in spec.view_columns(variances.len()) {
            let variances = &variances[columns];
            let pooled = (variances.iter().sum::<f64>() / variances.len() as f64).sqrt();
            scale.extend(variances.iter().map(|v| if own && *v > 0.0 { v.sqrt() } else { pooled }));
        }
        Self::with_scale(means.to_vec(), scale, is_isotropic(spec) && spec.views.len() < 2)
    }

    pub(in crate::infer) fn with_scale(mean: Vec<f64>, scale: Vec<f64>, isotropic: bool) -> Self {
        let inverse = scale.iter().map(|s| 1.0 / s).collect();
        Self { mean, scale, inverse, isotropic }
    }

    /// The scale that a model remembers: columns with their own noise are divided by their standard deviations on
    /// the way, whatever was asked for, but were fitted in it only if they were standardized.
    pub(in crate::infer) fn of_fit(&self, spec: &Spec) -> Option<Vec<f64>> {
        spec.standardize.then(|| self.scale.clone())
    }

    /// The parameters in the user's units.
    pub(in crate::infer) fn model(&self, p: &Parameters, spec: &Spec) -> Result<LinearGaussian, Error> {
        let noise = if self.isotropic && !spec.standardize {
            Noise::Isotropic(p.psi[0] * self.scale[0] * self.scale[0])
        } else {
            Noise::Diagonal(p.psi.iter().zip(&self.scale).map(|(v, s)| v * s * s).collect())
        };
        let mut w = p.w.clone();
        w.scale_rows(&self.scale);
        LinearGaussian::new(w, p.mean.clone(), noise)?.with_scale(self.of_fit(spec))
    }

    /// A model in the user's units as parameters of this frame.
    pub(in crate::infer) fn parameters(&self, model: &LinearGaussian) -> Parameters {
        let mut w = model.loadings().clone();
        w.scale_rows(&self.inverse);
        let psi = model.noise_variances().iter().zip(&self.inverse).map(|(v, s)| v * s * s).collect();
        Parameters { w, mean: model.mean().to_vec(), psi }
    }
}

/// `W` and `ψ` in units of [`Frame::scale`], the mean in the user's.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::infer) struct Parameters {
    pub(in crate::infer) w: Matrix,
    pub(in crate::infer) mean: Vec<f64>,
    /// One variance per column, all equal for isotropic noise.
    pub(in crate::infer) psi: Vec<f64>,
}

impl Parameters {
    /// `ln p(W, μ, ψ)` with every constant, as a density in the user's units [M 1.5.6].
    pub(in crate::infer) fn log_prior(&self, prior: &Prior, frame: &Frame) -> f64 {
        let q = self.w.n_columns() as f64;
        let ln_scale: Vec<f64> = frame.scale.iter().map(|s| s.ln()).collect();
        let units: f64 = ln_scale.iter().sum();
        // ln N(x | 0, 1/precision)
        let normal = |x: f64, precision: f64| {
            0.5 * (precision.ln() - (2.0 * std::f64::consts::PI).ln() - precision * x * x)
        };
        let mut sum = 0.0;
        match &prior.loadings {
            LoadingsPrior::Flat => {}
            LoadingsPrior::Scaled { kappa } => {
                let rows = self.w.rows().zip(&self.psi);
                sum += rows.flat_map(|(w, psi)| w.iter().map(move |&w| normal(w, kappa / psi))).sum::<f64>();
                sum -= q * units;
            }
            LoadingsPrior::Ard { relative_alpha } => {
                let entries = self.w.rows().flat_map(|w| w.iter().zip(relative_alpha));
                sum += entries.map(|(&w, &a)| normal(w, a)).sum::<f64>() - q * units;
            }
        }
        if let Some(NoisePrior { shape, relative_rate: rate }) = &prior.noise {
            let noise =
                |psi: &f64| shape * rate.ln() - ln_gamma(*shape) - (shape + 1.0) * psi.ln() - rate / psi;
            sum += if frame.isotropic {
                noise(&self.psi[0]) - 2.0 * ln_scale[0]
            } else {
                self.psi.iter().map(noise).sum::<f64>() - 2.0 * units
            };
        }
        if let Some(mean) = &prior.mean {
            let offsets = self.mean.iter().zip(&mean.center).zip(&frame.inverse);
            sum +=
                offsets.map(|((m, c), s)| normal((m - c) * s, mean.relative_precision)).sum::<f64>() - units;
        }
        sum
    }
}
