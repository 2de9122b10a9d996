//! Canonical form: `W` and `W R` (R orthogonal) are the same model, so one of them is chosen.

use super::{Density, LinearGaussian, Noise};
use crate::Matrix;
use crate::linalg::{Svd, canonical_signs, thin_svd};

impl LinearGaussian {
    /// The same density with loadings in canonical form (spec §1.3): columns orthogonal and falling
    /// in length for isotropic noise, `Wᵀ Ψ⁻¹ W` diagonal and falling for diagonal noise; in each
    /// column the entry of largest absolute value is positive (ties: the first).
    #[must_use]
    pub fn canonical(&self) -> Self {
        self.canonical_with_rotation().0
    }

    /// The canonical form and the orthogonal `R` with `W_canonical = W R`; scores move as `Rᵀ x`.
    pub fn canonical_with_rotation(&self) -> (Self, Matrix) {
        let deviation: Vec<f64> = match self.noise() {
            // A common factor does not turn the axes, so the plain SVD of W serves.
            Noise::Isotropic(_) => vec![1.0; self.n_columns()],
            Noise::Diagonal(psi) => psi.iter().map(|v| v.sqrt()).collect(),
        };
        let mut whitened = self.loadings().clone();
        whitened.scale_rows(&deviation.iter().map(|v| 1.0 / v).collect::<Vec<_>>());
        let Svd { mut u, s, v } = svd(&whitened);
        u.scale_columns(&s);
        u.scale_rows(&deviation);
        let flips = canonical_signs(&mut u);
        let mut rotation = v;
        rotation.scale_columns(&flips);
        (self.with_loadings(u, &rotation), rotation)
    }

    /// Orthonormal principal axes of the signal, q × d, by falling variance, signs by the rule of
    /// [`canonical`](Self::canonical).
    pub fn components(&self) -> Matrix {
        self.principal_axes().0
    }

    /// Variance `uᵀ C u` of the fitted covariance along each of [`components`](Self::components).
    pub fn explained_variance(&self) -> Vec<f64> {
        self.principal_axes().1
    }

    /// [`components`](Self::components) and [`explained_variance`](Self::explained_variance) at the price
    /// of one.
    pub fn principal_axes(&self) -> (Matrix, Vec<f64>) {
        let Svd { mut u, s, .. } = svd(self.loadings());
        canonical_signs(&mut u);
        let noise = self.noise_variances();
        let along = |k: usize| (0..u.n_rows()).map(|j| noise[j] * u[(j, k)] * u[(j, k)]).sum::<f64>();
        let variances = (0..s.len()).map(|k| s[k] * s[k] + along(k)).collect();
        (u.transpose(), variances)
    }

    /// [`explained_variance`](Self::explained_variance) as a share of the total variance `tr C`.
    pub fn explained_variance_ratio(&self) -> Vec<f64> {
        let total = self.total_variance();
        self.explained_variance().iter().map(|v| v / total).collect()
    }

    /// Share of the variance of the columns, each divided by its own variance, that each column of
    /// the loadings explains: `1/d Σⱼ W²ⱼₖ / Cⱼⱼ`.
    pub fn standardized_share(&self) -> Vec<f64> {
        let (variances, d) = (self.variances(), self.n_columns());
        let share = |k: usize| (0..d).map(|j| self.loadings()[(j, k)].powi(2) / variances[j]).sum::<f64>();
        (0..self.n_components()).map(|k| share(k) / d as f64).collect()
    }

    /// The same density with loadings `W R`, for an orthogonal `R`.
    ///
    /// # Panics
    /// If `rotation` is not q × q.
    #[must_use]
    pub fn rotated(&self, rotation: &Matrix) -> Self {
        self.with_loadings(self.loadings().dot(rotation), rotation)
    }

    /// The model with loadings `w = W R`.
    fn with_loadings(&self, w: Matrix, rotation: &Matrix) -> Self {
        let mut model = Self::new(w, self.mean().to_vec(), self.noise().clone())
            .expect("a rotation keeps parameters valid");
        model.uncertainty = self.uncertainty().map(|u| Box::new(u.rotated(rotation)));
        model
    }
}

/// A zero-width W has no singular vectors to ask faer for.
fn svd(w: &Matrix) -> Svd {
    if w.n_columns() == 0 {
        return Svd { u: w.clone(), s: Vec::new(), v: Matrix::zeros(0, 0) };
    }
    thin_svd(w).expect("loadings are finite")
}
