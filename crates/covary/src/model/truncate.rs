//! Fewer components of the same model.

use super::{LinearGaussian, Noise};
use crate::{Error, Matrix};

impl LinearGaussian {
    /// The model with the first `n_components` principal components; what the others explained is noise, the same in
    /// every direction of the [scale](Self::scale) of the fit [M 3.3.1].
    ///
    /// ```text
    /// σ_q² = (Σ_{q<j≤h} λⱼ + (d − h) σ²) / (d − q)        W_q = [uⱼ √(λⱼ − σ_q²)]_{j≤q}        h: components now
    /// ```
    ///
    /// Of a complete table, models of maximum likelihood nest in just this way.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::Spectral, Density, Estimator, Spec};
    /// let (table, _) = simulate::ppca(Shape { rows: 100, columns: 6, n_components: 2 }, /* seed */ 1);
    /// let fit = |q| Spectral::default().fit(&table, &Spec::ppca(q));
    /// let (wide, narrow) = (fit(4)?.model, fit(1)?.model);
    /// assert!((wide.truncated(1)?.score(&table)? - narrow.score(&table)?).abs() < 1e-12);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for more components than there are, [`Error::Unsupported`] where columns have noise of their
    /// own.
    pub fn truncated(&self, n_components: usize) -> Result<Self, Error> {
        if n_components > self.n_components() {
            let (name, bound) = ("the number of components kept", "at most those of the model");
            return Err(Error::OutOfRange { name, value: n_components as f64, bound });
        }
        Truncations::of(self)?.keeping(n_components)
    }
}

/// A model by its principal axes, of which any number can be kept.
pub(crate) struct Truncations<'a> {
    model: &'a LinearGaussian,
    /// `uⱼ`, q × d, and `λⱼ`.
    axes: Matrix,
    variances: Vec<f64>,
    /// σ² in the scale of the fit.
    noise: f64,
}

impl<'a> Truncations<'a> {
    /// # Errors
    /// [`Error::Unsupported`] where columns have noise of their own.
    pub(crate) fn of(model: &'a LinearGaussian) -> Result<Self, Error> {
        if !model.noise_is_isotropic() {
            return Err(Error::Unsupported {
                method: "truncation",
                what: "noise that differs between columns",
                instead: "a fit with fewer components",
            });
        }
        let (axes, variances) = model.principal_axes();
        let scale = model.scale().map_or(1.0, |scale| scale[0]);
        Ok(Self { model, axes, variances, noise: model.noise().variance(0) / (scale * scale) })
    }

    /// The model with the first `q` axes.
    pub(crate) fn keeping(&self, q: usize) -> Result<LinearGaussian, Error> {
        let (h, d) = (self.axes.n_rows(), self.axes.n_columns());
        let left = self.variances[q..].iter().sum::<f64>() + (d - h) as f64 * self.noise;
        let noise = left / (d - q) as f64;
        let length = |j: usize| (self.variances[j] - noise).max(0.0).sqrt();
        let scale = |j: usize| self.model.scale().map_or(1.0, |scale| scale[j]);
        let loadings = Matrix::from_fn(d, q, |j, k| scale(j) * self.axes[(k, j)] * length(k));
        let noise = match self.model.scale() {
            None => Noise::Isotropic(noise),
            Some(scale) => Noise::Diagonal(scale.iter().map(|s| noise * s * s).collect()),
        };
        LinearGaussian::new(loadings, self.model.mean().to_vec(), noise)?
            .with_scale(self.model.scale().map(<[f64]>::to_vec))
    }
}
/// The same where each column has noise of its own: what is left out of a column's signal is noise of that column, so that
/// columns keep their variances. Axes are principal in units in which the noise is equal.
/// ```text
/// Ψ^-½ W = U S Vᵀ        W_q = Ψ^½ U_q S_q        ψ_q = ψ + diag(L Lᵀ),  L = Ψ^½ U S without its first q columns
/// ```
pub(crate) struct FactorTruncations {
    /// `Ψ^½ U S`
    loadings: Matrix,
    mean: Vec<f64>,
    psi: Vec<f64>,
}

impl FactorTruncations {
    pub(crate) fn of(model: &LinearGaussian) -> Result<Self, Error> {
        let psi = model.noise_variances();
        let deviation: Vec<f64> = psi.iter().map(|v| v.sqrt()).collect();
        let (axes, variances) = model.clone().with_scale(Some(deviation.clone()))?.principal_axes();
        let mut loadings = axes.transpose();
        loadings.scale_columns(&variances.iter().map(|v| (v - 1.0).max(0.0).sqrt()).collect::<Vec<_>>());
        loadings.scale_rows(&deviation);
        Ok(Self { loadings, mean: model.mean().to_vec(), psi })
    }

    /// The model with the first `q` axes.
    pub(crate) fn keeping(&self, q: usize) -> Result<LinearGaussian, Error> {
        let left = |(w, psi): (&[f64], &f64)| psi + w[q..].iter().map(|w| w * w).sum::<f64>();
        let noise = self.loadings.rows().zip(&self.psi).map(left).collect();
        LinearGaussian::new(self.loadings.first_columns(q), self.mean.clone(), Noise::Diagonal(noise))
    }
}
