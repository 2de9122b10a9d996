//! Axes along which the models of a mixture differ most.

use super::{Density, LinearGaussian, Mixture};
use crate::linalg::{Cholesky, dot, eigen};
use crate::{Dataset, Error, Matrix};

/// A mean axis has at least this share of its variance between the means.
const BETWEEN: f64 = 0.2;

/// Axes along which the models of a mixture differ: in their means, as far as at least a fifth of the
/// variance lies between these (Fisher's discriminants), then in their covariances.
///
/// ```text
/// B = Σ_k π_k (μ_k − μ)(μ_k − μ)ᵀ      C̄ = Σ_k π_k C_k      Σ = B + C̄      vᵀ Σ v = 1
/// means: B v = λ Σ v, λ ≥ 1/5           covariances: Σ_k π_k (C_k − C̄) Σ⁻¹ (C_k − C̄) v = λ Σ v among what is left
/// ```
///
/// ```
/// use covary::{model::{Mixture, Discriminants}, LinearGaussian, Matrix, Noise};
/// let at = |x: f64| LinearGaussian::new(Matrix::from_rows(&[[0.0], [9.0]]), vec![x, 0.0], Noise::Isotropic(1.0)).unwrap();
/// let apart = Discriminants::of(&Mixture::equal(vec![at(-3.0), at(3.0)])?, 1)?;
/// assert!(apart.axes()[(1, 0)].abs() < 1e-12);   // they differ in the first column, however far the second reaches
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Discriminants {
    mean: Vec<f64>,
    axes: Matrix,
    correlations: Matrix,
}

impl Discriminants {
    /// The first `n_axes` of a mixture's, or as many as it has columns.
    ///
    /// # Errors
    /// [`Error::Numerical`] if the covariance of the mixture has no inverse to working precision.
    pub fn of(mixture: &Mixture, n_axes: usize) -> Result<Self, Error> {
        let (d, models) = (mixture.n_columns(), mixture.models());
        let weighted = || models.iter().zip(mixture.weights());
        let mut mean = vec![0.0; d];
        for (model, pi) in weighted() {
            mean.iter_mut().zip(model.mean()).for_each(|(m, mu)| *m += pi * mu);
        }
        let (mut between, mut within) = (Matrix::zeros(d, d), Matrix::zeros(d, d));
        for (model, pi) in weighted() {
            let off: Vec<f64> = model.mean().iter().zip(&mean).map(|(mu, m)| mu - m).collect();
            let c = model.covariance();
            for i in 0..d {
                for j in 0..d {
                    between[(i, j)] += pi * off[i] * off[j];
                    within[(i, j)] += pi * c[(i, j)];
                }
            }
        }
        let plus =
            |a: &Matrix, b: &Matrix, sign: f64| Matrix::from_fn(d, d, |i, j| a[(i, j)] + sign * b[(i, j)]);
        let total = plus(&between, &within, 1.0);
        let root = Cholesky::new(&total)
            .ok_or(Error::Numerical { what: "the inverse of a mixture's covariance" })?;
        // L⁻¹ A L⁻ᵀ with Σ = L Lᵀ: there the eigenproblem is an ordinary one.
        let whitened = |a: &Matrix| {
            let mut half = a.clone();
            (0..d).for_each(|i| root.solve_lower(half.row_mut(i)));
            let mut both = half.transpose();
            (0..d).for_each(|i| root.solve_lower(both.row_mut(i)));
            both
        };
        let of_means = eigen(&whitened(&between))?;
        let n_means = of_means.values.iter().take(n_axes).filter(|share| **share >= BETWEEN).count();
        let of_means = of_means.vectors.first_columns(n_means);
        let mut m = Matrix::zeros(d, d);
        for (model, pi) in weighted() {
            // The axes of the means are taken: what is left is turned by I − U Uᵀ.
            let a = whitened(&plus(&model.covariance(), &within, -1.0));
            let a = plus(&a, &of_means.dot(&of_means.t_dot(&a)), -1.0);
            let squared = a.dot_t(&a);
            m.as_mut_slice().iter_mut().zip(squared.as_slice()).for_each(|(m, a)| *m += pi * a);
        }
        let of_shapes = eigen(&m)?.vectors.first_columns(n_axes.min(d) - n_means);
        let rows: Vec<Vec<f64>> = (0..n_means)
            .map(|k| of_means.column(k))
            .chain((0..of_shapes.n_columns()).map(|k| of_shapes.column(k)))
            .collect();
        let mut axes = Matrix::from_rows(&rows);
        (0..axes.n_rows()).for_each(|k| root.solve_upper(axes.row_mut(k)));
        // cov(t, vᵀt) = Σ v, and vᵀt has unit variance.
        let correlations =
            Matrix::from_fn(d, axes.n_rows(), |j, k| dot(total.row(j), axes.row(k)) / total[(j, j)].sqrt());
        Ok(Self { mean, axes: axes.transpose(), correlations })
    }

    /// The axes as columns, d × n. Along each the mixture has unit variance.
    pub fn axes(&self) -> &Matrix {
        &self.axes
    }

    /// How every column correlates with every axis, d × n.
    pub fn correlations(&self) -> &Matrix {
        &self.correlations
    }

    /// The rows of a table along the axes, gaps filled by the mixture; n × axes.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the mixture.
    pub fn places(&self, mixture: &Mixture, data: &Dataset) -> Result<Matrix, Error> {
        let mut rows = mixture.impute(data)?.values().clone();
        let d = self.mean.len();
        for i in 0..rows.n_rows() {
            let row = rows.row_mut(i);
            (0..d).for_each(|j| row[j] -= self.mean[j]);
        }
        Ok(rows.dot(&self.axes))
    }

    /// Mean and covariance of a model along the axes.
    pub fn of_model(&self, model: &LinearGaussian) -> (Vec<f64>, Matrix) {
        let off: Vec<f64> = model.mean().iter().zip(&self.mean).map(|(mu, m)| mu - m).collect();
        let center = (0..self.axes.n_columns()).map(|k| dot(&off, &self.axes.column(k))).collect();
        (center, self.axes.t_dot(&model.covariance().dot(&self.axes)))
    }
}
