//! Outliers: Hotelling's T² inside the plane of the model, squared prediction error (Q residual) outside it.

use super::density::{check_columns, rows_by_pattern};
use super::scores::SignalInverse;
use super::{Density, LinearGaussian};
use crate::linalg::dot;
use crate::{Dataset, Error};
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Distances of one row from the model [M 1.3.5], over its observed cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlyingness {
    /// Hotelling's T²: squared distance inside the plane of the components, in standard deviations
    /// of the fitted scores; under the model χ² with q degrees of freedom.
    pub t_squared: f64,
    /// Squared prediction error (Q residual): squared distance from the plane in the
    /// [scale](LinearGaussian::scale) of the fit (least squares weighted by Ψ⁻¹).
    pub squared_prediction_error: f64,
    /// Squared Mahalanobis distance `yᵀ C⁻¹ y`; under the model χ² with as many degrees of freedom
    /// as observed cells. Where the noise is σ² in every direction of that scale, it is T² + SPE/σ².
    pub mahalanobis: f64,
    /// Cells that were observed.
    pub n_observed: usize,
}

impl Outlyingness {
    /// Probability that a row of the model, with as many observed cells, is at least as far away.
    ///
    /// ```text
    /// P(χ²ₙ ≥ yᵀ C⁻¹ y)      n: observed cells
    /// ```
    ///
    /// ```
    /// use covary::model::Outlyingness;
    /// let far = Outlyingness { t_squared: 2.0, squared_prediction_error: 1.0, mahalanobis: 5.991, n_observed: 2 };
    /// assert!((far.tail_probability() - 0.05).abs() < 1e-4);
    /// ```
    pub fn tail_probability(&self) -> f64 {
        match ChiSquared::new(self.n_observed as f64) {
            Ok(chi) if self.mahalanobis > 0.0 => chi.sf(self.mahalanobis),
            _ => 1.0,
        }
    }
}

impl LinearGaussian {
    /// T², squared prediction error and Mahalanobis distance of every row.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the model.
    pub fn outlyingness(&self, data: &Dataset) -> Result<Vec<Outlyingness>, Error> {
        check_columns(self.n_columns(), data)?;
        let unit = self.inverse_scale();
        Ok(rows_by_pattern(data, |pattern| {
            let given = self.condition(&pattern.observed());
            let signal = SignalInverse::new(given.factor());
            let of_row = |&i: &usize| {
                let row = data.row(i);
                let b = given.weighted_projection(row);
                let bartlett = signal.times(&b);
                // Bartlett scores have covariance G (G − I)⁻¹ under the model, so
                // T² = x_Bᵀ (G − I) G⁻¹ x_B = bᵀ G⁻¹ x_B.
                let mut weighted = bartlett.clone();
                given.factor().solve(&mut weighted);
                let residual =
                    |&j: &usize| (row[j] - self.mean()[j] - dot(self.loadings().row(j), &bartlett)) * unit[j];
                Outlyingness {
                    // Adding 0 turns the −0 of no components into 0.
                    t_squared: dot(&b, &weighted) + 0.0,
                    squared_prediction_error: given.observed().iter().map(|j| residual(j).powi(2)).sum(),
                    mahalanobis: given.mahalanobis(row),
                    n_observed: given.observed().len(),
                }
            };
            pattern.rows.iter().map(of_row).collect()
        }))
    }
}
