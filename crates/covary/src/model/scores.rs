//! Scores of rows and rows from scores.

use super::density::{check_columns, rows_by_pattern};
use super::{Density, LinearGaussian, RowDistance};
use crate::linalg::{Cholesky, thin_svd};
use crate::{Dataset, Error, Matrix};

/// Which coordinates [`LinearGaussian::transform`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Coordinates {
    /// Posterior mean `E[x | t]` ("regression" scores of factor analysis): shrunk towards 0 as far
    /// as the row is uncertain.
    #[default]
    Posterior,
    /// Orthogonal projection `U_qᵀ D⁻¹ (t − μ)` on the principal axes, in the scale `D` of the fit: the
    /// scores of classical PCA, of standardized columns if these were fitted. A gap enters by its
    /// conditional mean.
    Projection,
    /// [`Projection`](Self::Projection) divided by the standard deviation along each axis.
    Whitened,
    /// Weighted least squares `(WᵀΨ⁻¹W)⁻¹ WᵀΨ⁻¹ (t − μ)`: unbiased given x (Bartlett 1937); the
    /// zero-noise limit of the posterior mean for isotropic noise. Directions the observed cells do
    /// not determine get 0.
    Bartlett,
}

impl Coordinates {
    /// Whether these scores rotate with the loadings; projections are on the principal axes, which no rotation moves.
    pub fn rotates(self) -> bool {
        matches!(self, Self::Posterior | Self::Bartlett)
    }
}

/// Which reconstruction [`LinearGaussian::reconstruct`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reconstruction {
    /// `μ + W E[x | t]`: the noise-free part of the row, shrunk as far as it is uncertain.
    #[default]
    PosteriorMean,
    /// `μ + D U Uᵀ D⁻¹ (t − μ)`: the orthogonal projection of classical PCA, in the scale `D` of the fit; a
    /// gap enters by its conditional mean.
    Orthogonal,
}

/// Posterior distributions of the scores of all rows.
#[derive(Debug, Clone)]
pub struct Posterior {
    /// Posterior means, n × q.
    pub mean: Matrix,
    /// For each row, the index of its covariance in `covariances`.
    pub pattern_of_row: Vec<usize>,
    /// Posterior covariances, one per pattern of gaps; one per row where rows have heavier tails than a Gaussian's.
    pub covariances: Vec<Matrix>,
}

impl Posterior {
    /// Posterior covariance of the scores of row `i`.
    pub fn covariance(&self, i: usize) -> &Matrix {
        &self.covariances[self.pattern_of_row[i]]
    }
}

impl LinearGaussian {
    /// Scores of every row, n × q.
    ///
    /// ```
    /// # use covary::{data::simulate, data::Shape, Coordinates, Estimator, Spec, infer::Spectral};
    /// let (table, _) = simulate::ppca(Shape { rows: 200, columns: 6, n_components: 2 }, 7);
    /// let model = Spectral::default().fit(&table, &Spec::ppca(2))?.model;
    /// let z = model.transform(&table, Coordinates::Whitened)?;
    /// let variance = z.column(0).iter().map(|v| v * v).sum::<f64>() / 200.0;
    /// assert!((variance - 1.0).abs() < 1e-9);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the model.
    pub fn transform(&self, data: &Dataset, coordinates: Coordinates) -> Result<Matrix, Error> {
        match coordinates {
            Coordinates::Posterior => {
                check_columns(self.n_columns(), data)?;
                Ok(self.posterior_means(data))
            }
            Coordinates::Bartlett => self.least_squares(data),
            Coordinates::Projection => self.projection(data, &self.principal_axes().0),
            Coordinates::Whitened => {
                let (axes, variances) = self.principal_axes();
                let mut z = self.projection(data, &axes)?;
                z.scale_columns(&variances.iter().map(|v| 1.0 / v.sqrt()).collect::<Vec<_>>());
                Ok(z)
            }
        }
    }

    /// Posterior mean and covariance of the scores of every row.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the model.
    pub fn posterior(&self, data: &Dataset) -> Result<Posterior, Error> {
        let mean = self.transform(data, Coordinates::Posterior)?;
        let (pattern_of_row, covariances) = self.by_scale_of_row(data, self.posterior_covariances(data));
        Ok(Posterior { mean, pattern_of_row, covariances })
    }

    /// For each row the index of its covariance, and these, from those of each pattern of gaps in a row of scale u = 1.
    fn by_scale_of_row(&self, data: &Dataset, by_pattern: Vec<Matrix>) -> (Vec<usize>, Vec<Matrix>) {
        let mut of_row = vec![0; data.n_rows()];
        for (p, pattern) in data.patterns().enumerate() {
            pattern.rows.iter().for_each(|&i| of_row[i] = p);
        }
        if self.tails.is_gaussian() {
            return (of_row, by_pattern);
        }
        let stretched = |(row, p): (&RowDistance, &usize)| {
            let spread = self.tails.spread(row.n_observed, row.squared);
            let mut covariance = by_pattern[*p].clone();
            covariance.as_mut_slice().iter_mut().for_each(|v| *v *= spread);
            covariance
        };
        let by_row = self.row_distances(data).iter().zip(&of_row).map(stretched).collect();
        ((0..data.n_rows()).collect(), by_row)
    }

    /// Every row as the model sees it, n × d, observed cells too ("denoised").
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the model.
    pub fn reconstruct(&self, data: &Dataset, how: Reconstruction) -> Result<Matrix, Error> {
        let mut out = match how {
            Reconstruction::PosteriorMean => {
                self.transform(data, Coordinates::Posterior)?.dot_t(self.loadings())
            }
            Reconstruction::Orthogonal => {
                let axes = self.principal_axes().0;
                let mut out = self.projection(data, &axes)?.dot(&axes);
                if let Some(scale) = self.scale() {
                    out.scale_columns(scale);
                }
                out
            }
        };
        self.add_mean(&mut out);
        Ok(out)
    }

    /// Rows from scores: `W x + μ`, the noise-free inverse of the posterior coordinates.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless `scores` has q columns.
    pub fn decode(&self, scores: &Matrix) -> Result<Matrix, Error> {
        if scores.n_columns() != self.n_components() {
            return Err(Error::WrongLength {
                what: "scores per row",
                expected: self.n_components(),
                got: scores.n_columns(),
            });
        }
        let mut out = scores.dot_t(self.loadings());
        self.add_mean(&mut out);
        Ok(out)
    }

    pub(super) fn add_mean(&self, rows: &mut Matrix) {
        for i in 0..rows.n_rows() {
            rows.row_mut(i).iter_mut().zip(self.mean()).for_each(|(v, m)| *v += m);
        }
    }

    /// `U D⁻¹ (t − μ)` of axes in the scale of the fit.
    fn projection(&self, data: &Dataset, axes: &Matrix) -> Result<Matrix, Error> {
        let mut centered = self.impute(data)?.values().clone();
        for i in 0..centered.n_rows() {
            centered.row_mut(i).iter_mut().zip(self.mean()).for_each(|(v, m)| *v -= m);
        }
        Ok(centered.dot_t(&self.of_table_units(axes)))
    }

    /// `U D⁻¹`: axes in the scale of the fit, to be applied to differences in the units of the table.
    fn of_table_units(&self, axes: &Matrix) -> Matrix {
        let mut axes = axes.clone();
        axes.scale_columns(&self.inverse_scale());
        axes
    }

    /// Covariance of `U D⁻¹ (t − μ)` given the observed cells of each row, zero where the row is complete:
    /// for each row the index of its covariance, and one q × q covariance per pattern of gaps (per row where rows have
    /// heavier tails than a Gaussian's). Axes `U`
    /// are in the [`scale`](Self::scale) of the fit, as [`components`](Self::components) are.
    ///
    /// ```
    /// use covary::{Dataset, LinearGaussian, Matrix, Noise};
    /// let model = LinearGaussian::new(Matrix::from_rows(&[[2.0], [1.0]]), vec![0.0; 2], Noise::Isotropic(1.0))?;
    /// let rows = Dataset::new(Matrix::from_rows(&[[1.0, 2.0], [1.0, f64::NAN]]))?;
    /// let second = Matrix::from_rows(&[[0.0, 1.0]]);
    /// let (of_row, covariances) = model.projection_covariances(&rows, &second)?;
    /// assert_eq!(covariances[of_row[0]][(0, 0)], 0.0);
    /// assert!((covariances[of_row[1]][(0, 0)] - (2.0 - 2.0 * 2.0 / 5.0)).abs() < 1e-12);   // C₂₂ − C₂₁²/C₁₁
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if table or axes have other columns than the model.
    pub fn projection_covariances(
        &self,
        data: &Dataset,
        axes: &Matrix,
    ) -> Result<(Vec<usize>, Vec<Matrix>), Error> {
        check_columns(self.n_columns(), data)?;
        if axes.n_columns() != self.n_columns() {
            return Err(Error::ColumnCount { expected: self.n_columns(), got: axes.n_columns() });
        }
        let axes = self.of_table_units(axes);
        let mut covariances = Vec::with_capacity(data.n_patterns());
        for pattern in data.patterns() {
            let given = self.condition(&pattern.observed());
            let gaps = given.gaps();
            let own = Matrix::from_fn(axes.n_rows(), gaps.len(), |k, g| axes[(k, gaps[g])]);
            covariances.push(own.dot(&given.gap_covariance(true)).dot_t(&own));
        }
        Ok(self.by_scale_of_row(data, covariances))
    }

    fn least_squares(&self, data: &Dataset) -> Result<Matrix, Error> {
        check_columns(self.n_columns(), data)?;
        let rows = rows_by_pattern(data, |pattern| {
            let given = self.condition(&pattern.observed());
            let signal = SignalInverse::new(given.factor());
            let scores = |&i: &usize| signal.times(&given.weighted_projection(data.row(i)));
            pattern.rows.iter().map(scores).collect()
        });
        Matrix::from_vec(data.n_rows(), self.n_components(), rows.concat())
    }
}

/// `(G − I)⁺` with `G = L Lᵀ`, `G − I = W_Oᵀ Ψ_O⁻¹ W_O`: it turns `W_Oᵀ Ψ_O⁻¹ y` into least-squares
/// scores and drops the directions that the observed cells do not determine.
pub(super) struct SignalInverse(Matrix);

impl SignalInverse {
    pub(super) fn new(factor: &Cholesky) -> Self {
        if factor.lower().n_rows() == 0 {
            return Self(Matrix::zeros(0, 0));
        }
        // L = U S Vᵀ, so G = U S² Uᵀ; directions with S² = 1 carry no signal.
        let svd = thin_svd(factor.lower()).expect("a Cholesky factor is finite");
        let mut half = svd.u;
        let largest = svd.s[0] * svd.s[0];
        let root: Vec<f64> = svd
            .s
            .iter()
            .map(|s| {
                let signal = s * s - 1.0;
                if signal > 1e-12 * largest { 1.0 / signal.sqrt() } else { 0.0 }
            })
            .collect();
        half.scale_columns(&root);
        Self(half.dot_t(&half))
    }

    pub(super) fn into_matrix(self) -> Matrix {
        self.0
    }

    pub(super) fn times(&self, b: &[f64]) -> Vec<f64> {
        self.0.rows().map(|row| row.iter().zip(b).map(|(a, b)| a * b).sum()).collect()
    }
}
