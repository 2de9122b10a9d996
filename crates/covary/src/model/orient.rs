//! Canonical form: `W` and `W R` (R orthogonal) are the same model, so one of them is chosen.

use super::{Density, LinearGaussian, Noise};
use crate::Matrix;
use crate::linalg::{Svd, canonical_signs, thin_svd};

impl LinearGaussian {
    /// The same density with loadings in canonical form [M 1.1.3]: columns orthogonal and descending
    /// in length for isotropic noise, `Wᵀ Ψ⁻¹ W` diagonal and descending for diagonal noise; in each
    /// column the entry of largest absolute value is positive in the [`scale`](Self::scale) of the fit (ties: the first).
    #[must_use]
    pub fn canonical(&self) -> Self {
        self.canonical_with_rotation().0
    }

    /// The canonical form and the orthogonal `R` with `W_canonical = W R`; scores move as `Rᵀ x`.
    ///
    /// Of [fixed axes](Self::with_fixed_axes) only order, by decreasing length in the scale of the fit, and signs are chosen.
    pub fn canonical_with_rotation(&self) -> (Self, Matrix) {
        if self.has_fixed_axes() {
            return self.ordered();
        }
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
        let flips = self.flips(&u);
        u.scale_columns(&flips);
        let mut rotation = v;
        rotation.scale_columns(&flips);
        (self.with_loadings(u, &rotation), rotation)
    }

    /// Columns by decreasing length in the scale of the fit, with the signs of the canonical form.
    fn ordered(&self) -> (Self, Matrix) {
        let (q, lengths) = (self.n_components(), self.signal_variance());
        let mut order: Vec<usize> = (0..q).collect();
        order.sort_by(|&a, &b| lengths[b].total_cmp(&lengths[a]));
        let flips = self.flips(self.loadings());
        let rotation = Matrix::from_fn(q, q, |i, k| if order[k] == i { flips[i] } else { 0.0 });
        let w = self.loadings();
        let ordered = Matrix::from_fn(w.n_rows(), q, |j, k| w[(j, order[k])] * flips[order[k]]);
        (self.with_loadings(ordered, &rotation), rotation)
    }

    /// The same density with only the signs of the canonical form.
    pub(crate) fn signed(&self) -> Self {
        let flips = self.flips(self.loadings());
        let mut w = self.loadings().clone();
        w.scale_columns(&flips);
        let rotation = Matrix::from_fn(flips.len(), flips.len(), |i, k| if i == k { flips[k] } else { 0.0 });
        self.with_loadings(w, &rotation)
    }

    /// The signs that make the entry of largest absolute value positive in each column of `w`, in the scale of the fit.
    fn flips(&self, w: &Matrix) -> Vec<f64> {
        let mut scaled = w.clone();
        scaled.scale_rows(&self.inverse_scale());
        canonical_signs(&mut scaled)
    }

    /// Orthonormal principal axes of the signal in the [`scale`](Self::scale) of the fit, q × d, by decreasing variance,
    /// signs by the rule of [`canonical`](Self::canonical).
    ///
    /// ```text
    /// D⁻¹ W = U S Vᵀ        D: the scale of the columns,  components = Uᵀ
    /// ```
    ///
    /// Of [fixed axes](Self::with_fixed_axes) they are the columns of `D⁻¹ W` at unit length, which need not be orthogonal.
    pub fn components(&self) -> Matrix {
        if !self.has_fixed_axes() {
            return self.principal_axes().0;
        }
        let lengths = self.signal_variance();
        let unit = |v: &f64| if *v > 0.0 { 1.0 / v.sqrt() } else { 0.0 };
        let mut w = self.scaled_loadings();
        w.scale_columns(&lengths.iter().map(unit).collect::<Vec<_>>());
        w.transpose()
    }

    /// Orthonormal principal axes of the signal, and the variance `uᵀ D⁻¹ C D⁻¹ u` of the fitted covariance along each.
    pub fn principal_axes(&self) -> (Matrix, Vec<f64>) {
        let Svd { mut u, s, .. } = svd(&self.scaled_loadings());
        canonical_signs(&mut u);
        let noise = self.scaled_noise();
        let along = |k: usize| (0..u.n_rows()).map(|j| noise[j] * u[(j, k)] * u[(j, k)]).sum::<f64>();
        let variances = (0..s.len()).map(|k| s[k] * s[k] + along(k)).collect();
        (u.transpose(), variances)
    }

    /// Variance that each component explains, in the [`scale`](Self::scale) of the fit.
    ///
    /// ```text
    /// λₖ = sₖ² + σ²      eigenvalues of D⁻¹ C D⁻¹, where the noise is σ² in every direction
    /// ‖D⁻¹ wₖ‖²           of factor k, where each column has a noise of its own or axes are fixed
    /// ```
    ///
    /// Where columns have their own noise, the axes of the signal are not eigenvectors of the covariance, and the
    /// variance along an axis would count noise as explained.
    pub fn explained_variance(&self) -> Vec<f64> {
        let principal = self.noise_is_isotropic() && !self.has_fixed_axes();
        if principal { self.principal_axes().1 } else { self.signal_variance() }
    }

    /// [`explained_variance`](Self::explained_variance) as a share of the [total
    /// variance](Self::total_variance): `λₖ / Σλ`, the proportion of variance explained.
    pub fn explained_variance_ratio(&self) -> Vec<f64> {
        let total = self.total_variance();
        self.explained_variance().iter().map(|v| v / total).collect()
    }

    /// Share of the total variance that is signal of each component, noise subtracted: `‖D⁻¹ wₖ‖² / tr D⁻¹ C D⁻¹`.
    pub fn signal_variance_ratio(&self) -> Vec<f64> {
        let total = self.total_variance();
        self.signal_variance().iter().map(|v| v / total).collect()
    }

    fn signal_variance(&self) -> Vec<f64> {
        let w = self.scaled_loadings();
        (0..w.n_columns()).map(|k| w.column(k).iter().map(|w| w * w).sum()).collect()
    }

    /// Whether the noise is the same in every direction in the scale of the fit. Folding the scale back rounds, so
    /// equal means equal to rounding.
    pub fn noise_is_isotropic(&self) -> bool {
        let noise = self.scaled_noise();
        noise.iter().all(|v| (v / noise[0] - 1.0).abs() < 1e-12)
    }

    /// The same density with loadings `W R`, for an orthogonal `R`.
    ///
    /// # Panics
    /// If `rotation` is not q × q.
    #[must_use]
    pub fn rotated(&self, rotation: &Matrix) -> Self {
        self.with_loadings(self.loadings().dot(rotation), rotation)
    }
}

/// A zero-width W has no singular vectors to ask faer for.
fn svd(w: &Matrix) -> Svd {
    if w.n_columns() == 0 {
        return Svd { u: w.clone(), s: Vec::new(), v: Matrix::zeros(0, 0) };
    }
    thin_svd(w).expect("loadings are finite")
}
