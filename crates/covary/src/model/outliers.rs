//! Outliers: Hotelling's T² inside the plane of the model, squared prediction error (Q residual) outside it.

use super::density::{check_columns, rows_by_pattern};
use super::scores::SignalInverse;
use super::{Density, LinearGaussian, Tails};
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
    /// How heavy the tails of the model's rows are.
    pub tails: Tails,
}

impl Outlyingness {
    /// Probability that a row of the model, with as many observed cells, is at least as far away.
    ///
    /// ```text
    /// P(χ²ₙ ≥ yᵀ C⁻¹ y)      n: observed cells;      P(n F(n, ν) ≥ yᵀ C⁻¹ y) with heavier tails
    /// ```
    ///
    /// ```
    /// use covary::model::{Outlyingness, Tails};
    /// let far = Outlyingness { t_squared: 2.0, squared_prediction_error: 1.0, mahalanobis: 5.991, n_observed: 2,
    ///     tails: Tails::GAUSSIAN };
    /// assert!((far.tail_probability() - 0.05).abs() < 1e-4);
    /// // The 95 % point of F with 2 and 4 degrees of freedom is 6.944.
    /// let far = Outlyingness { mahalanobis: 2.0 * 6.944, tails: Tails::student(4.0)?, ..far };
    /// assert!((far.tail_probability() - 0.05).abs() < 1e-4);
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn tail_probability(&self) -> f64 {
        self.tails.tail_probability(self.n_observed, self.mahalanobis)
    }
}

/// `P(χ²ₙ ≥ squared)`
pub(crate) fn tail_of_chi_squared(n: usize, squared: f64) -> f64 {
    match ChiSquared::new(n as f64) {
        Ok(chi) if squared > 0.0 => chi.sf(squared),
        _ => 1.0,
    }
}

impl Outlyingness {
    /// How much the row counts in a fit of rows with heavy tails, `(ν + n) / (ν + yᵀ C⁻¹ y)` with n observed cells: far
    /// below 1 for an outlier, 1 if rows are Gaussian.
    ///
    /// ```
    /// use covary::model::{Outlyingness, Tails};
    /// let far = Outlyingness { t_squared: 30.0, squared_prediction_error: 6.0, mahalanobis: 36.0, n_observed: 4,
    ///     tails: Tails::student(4.0)? };
    /// assert_eq!(far.weight(), 0.2);
    /// assert_eq!(Outlyingness { tails: Tails::GAUSSIAN, ..far }.weight(), 1.0);
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn weight(&self) -> f64 {
        self.tails.weight(self.n_observed, self.mahalanobis)
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
                    tails: self.tails,
                }
            };
            pattern.rows.iter().map(of_row).collect()
        }))
    }
}
