//! Which components are active in which views [M 2.7.5].

use crate::{Dataset, Density, Error, LinearGaussian, Matrix};
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// What each component of a model means to each view of its columns.
///
/// ```text
/// ρ_vi  = Σ_{j∈v} ŵ_ji² / ψ_j / Σ_{j∈v} ⟨w_ji²⟩ / ψ_j        share of the loadings' second moment that is signal
/// R²_vi = Σ_{j∈v} ŵ_ji² ⟨x_i²⟩ / Σ_{j∈v} Var(t_j)             share of the view's variance
/// ```
///
/// In units of the noise ρ does not depend on those of the columns; where the columns of a view share their
/// noise it cancels. The model may come from a file: nothing of its fit is needed.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::MeanField, views::Activity, Dataset, Estimator, Matrix, Spec};
/// let shape = |columns, n_components| Shape { rows: 300, columns, n_components };
/// let ((a, _), (b, _)) = (simulate::ppca(shape(6, 1), /* seed */ 1), simulate::ppca(shape(5, 1), /* seed */ 2));
/// // Two views that have nothing in common.
/// let both: Vec<_> = (0..300).map(|i| [a.row(i), b.row(i)].concat()).collect();
/// let table = Dataset::new(Matrix::from_rows(&both))?;
/// let fit = MeanField::default().fit(&table, &Spec::of_views(5, vec![6, 5]))?;
/// let activity = Activity::of(&fit.model, &[6, 5], &table)?;
/// assert_eq!(activity.n_components(), 2);
/// assert!((0..2).all(|i| !activity.is_shared(i)));
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    /// ρ, views × components. 1 or 0 where the model takes its loadings as known, 0 where
    /// [`MeanField`](crate::infer::MeanField) has set them to zero.
    pub signal: Matrix,
    /// R², views × components.
    pub explained_variance: Matrix,
    /// A component is active in a view where ρ is above this.
    pub threshold: Vec<f64>,
}

impl Activity {
    /// Of a model whose columns are views of these widths, side by side. `data` gives `⟨x²⟩` and the variances of the
    /// columns.
    ///
    /// # Errors
    /// [`Error::EmptyView`], [`Error::WrongLength`] unless the views add up to the model's columns,
    /// [`Error::ColumnCount`] if the table has other columns than the model.
    pub fn of(model: &LinearGaussian, views: &[usize], data: &Dataset) -> Result<Self, Error> {
        Self::with(model, views, data.observed_variances(), &second_moments(model, data)?, false)
    }

    /// [`of`](Self::of) a model alone, with the variances of the columns it was fitted to, and `⟨x²⟩` = 1 as the
    /// model has it. R² of `standardized` columns weighs each by one over its variance, so that units do not matter.
    ///
    /// # Errors
    /// [`Error::EmptyView`], [`Error::WrongLength`] unless views and variances fit the model.
    pub fn of_model(
        model: &LinearGaussian,
        views: &[usize],
        variances: &[f64],
        standardized: bool,
    ) -> Result<Self, Error> {
        let (expected, got) = (model.n_columns(), variances.len());
        if expected != got {
            return Err(Error::WrongLength { what: "variances of columns", expected, got });
        }
        Self::with(model, views, variances, &vec![1.0; model.n_components()], standardized)
    }

    fn with(
        model: &LinearGaussian,
        views: &[usize],
        variances: &[f64],
        squares: &[f64],
        standardized: bool,
    ) -> Result<Self, Error> {
        let (d, q) = (model.n_columns(), model.n_components());
        if let Some(view) = views.iter().position(|&size| size == 0) {
            return Err(Error::EmptyView { view: view + 1 });
        }
        let got = views.iter().fold(0_usize, |sum, size| sum.saturating_add(*size));
        if got != d {
            return Err(Error::WrongLength { what: "columns of all views", expected: d, got });
        }
        let (w, sds, psi) = (model.loadings(), model.loading_sds(), model.noise_variances());
        let mut signal = Matrix::zeros(views.len(), q);
        let mut explained_variance = Matrix::zeros(views.len(), q);
        let mut start = 0;
        for (v, size) in views.iter().enumerate() {
            let columns = start..start + size;
            start += size;
            let weight = |j: usize| if standardized && variances[j] > 0.0 { 1.0 / variances[j] } else { 1.0 };
            let total: f64 = columns.clone().map(|j| weight(j) * variances[j]).sum();
            for i in 0..q {
                let (mut at_mean, mut spread, mut length) = (0.0, 0.0, 0.0);
                for j in columns.clone() {
                    at_mean += w[(j, i)].powi(2) / psi[j];
                    spread += sds.as_ref().map_or(0.0, |sds| sds[(j, i)].powi(2) / psi[j]);
                    length += weight(j) * w[(j, i)].powi(2);
                }
                if at_mean > 0.0 {
                    signal[(v, i)] = at_mean / (at_mean + spread);
                }
                if total > 0.0 {
                    explained_variance[(v, i)] = length * squares[i] / total;
                }
            }
        }
        let threshold = views.iter().map(|&size| signal_of_noise(size, views.len() * q)).collect();
        Ok(Self { signal, explained_variance, threshold })
    }

    /// Number of views.
    pub fn n_views(&self) -> usize {
        self.signal.n_rows()
    }

    /// Number of components.
    pub fn n_components(&self) -> usize {
        self.signal.n_columns()
    }

    /// Whether a component is active in a view, both counted from 0.
    pub fn is_active(&self, view: usize, component: usize) -> bool {
        self.signal[(view, component)] > self.threshold[view]
    }

    /// Whether a component is active in two views or more; one that is active in one is private to it.
    pub fn is_shared(&self, component: usize) -> bool {
        (0..self.n_views()).filter(|&view| self.is_active(view, component)).count() > 1
    }
}

/// The ρ that a view without a component shows in any of that many tests in one fit of a hundred, ¾ at least.
///
/// Where x is known, the least-squares loadings of d such columns have Σ ŵ² N/ψ = r d ~ χ²_d; then α settles where
/// ρ = 1 − 1/r, or at 0 if r < 1. But x is estimated, and a little of the strong components is in the others. The
/// spec's ½ finds 570 of 720 planted patterns exactly, this 719 (docs/gfa.md).
pub(crate) fn signal_of_noise(columns: usize, tests: usize) -> f64 {
    let d = columns as f64;
    let law = ChiSquared::new(d).expect("a view has columns");
    (1.0 - d / law.inverse_cdf(1.0 - 0.01 / tests.max(1) as f64)).max(0.75)
}

/// `⟨x_i²⟩`, averaged over the rows with an observed cell.
fn second_moments(model: &LinearGaussian, data: &Dataset) -> Result<Vec<f64>, Error> {
    let posterior = model.posterior(data)?;
    let mut sums = vec![0.0; model.n_components()];
    for pattern in data.patterns().filter(|p| p.n_observed() > 0) {
        for &row in pattern.rows {
            let covariance = posterior.covariance(row);
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum += posterior.mean[(row, i)].powi(2) + covariance[(i, i)];
            }
        }
    }
    let n = data.n_informative_rows().max(1) as f64;
    Ok(sums.into_iter().map(|sum| sum / n).collect())
}
