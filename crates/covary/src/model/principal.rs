//! Classical principal components: axes and variances, by the conventions of other software.

use super::{LinearGaussian, Noise};
use crate::data::{Cells, Sparse};
use crate::linalg::{Cell, gemm, rows::center};
use crate::parallel::{BLOCK_CELLS, pieces};
use crate::{Dataset, Density, Error, Matrix};
use faer::{MatMut, MatRef};

/// Principal components by the conventions of classical software, where they differ from maximum
/// likelihood: variances have the divisor N − 1, and the noise is the mean variance of the
/// `min(N, d) − q` directions beyond the components.
///
/// As a density ([`model`](Self::model)) it is
///
/// ```text
/// t ~ N(μ, D (Uᵀ diag(v − σ²) U + σ² I) D)        U: q × d axes,  v: explained variance,  D: scale of the columns
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Principal {
    /// N, rows with an observed cell.
    pub n_rows: usize,
    /// μ.
    pub mean: Vec<f64>,
    /// Orthonormal axes as rows, q × d, by decreasing variance, signs by the library's rule.
    pub components: Matrix,
    /// Variance along each axis, divisor N − 1.
    pub explained_variance: Vec<f64>,
    /// Sum of the variances of all columns, divisor N − 1.
    pub total_variance: f64,
    /// Variance of each column in the units of the table, divisor N − 1.
    pub variances: Vec<f64>,
    /// σ²; 0 where the components leave no direction.
    pub noise_variance: f64,
    /// What each column was divided by before the axes were found, `None` for 1. Axes, variances along them, their sum
    /// and σ² are of the divided columns.
    pub scale: Option<Vec<f64>>,
}

impl Principal {
    /// Share of the total variance along each axis.
    pub fn explained_variance_ratio(&self) -> Vec<f64> {
        let share = |v: &f64| if *v > 0.0 { v / self.total_variance } else { 0.0 };
        self.explained_variance.iter().map(share).collect()
    }

    /// Singular values of the centered table, `√((N − 1) vᵢ)`.
    pub fn singular_values(&self) -> Vec<f64> {
        self.explained_variance.iter().map(|v| (v * (self.n_rows as f64 - 1.0)).sqrt()).collect()
    }

    /// Loadings, d × q: axes times the standard deviation they explain beyond the noise.
    pub fn loadings(&self) -> Matrix {
        let mut w = self.components.transpose();
        let length = |v: &f64| (v - self.noise_variance).max(0.0).sqrt();
        w.scale_columns(&self.explained_variance.iter().map(length).collect::<Vec<_>>());
        w.scale_rows(&self.units());
        w
    }

    /// What columns were divided by.
    fn units(&self) -> Vec<f64> {
        self.scale.clone().unwrap_or_else(|| vec![1.0; self.mean.len()])
    }

    /// The covariance these components state, d × d: `D (Uᵀ diag(v − σ²) U + σ² I) D`.
    pub fn covariance(&self) -> Matrix {
        let (w, units) = (self.loadings(), self.units());
        let mut c = w.dot_t(&w);
        for j in 0..self.mean.len() {
            c[(j, j)] += self.noise_variance * units[j] * units[j];
        }
        c
    }

    /// Log-likelihood in nats of the complete rows behind these components, under the density they state.
    ///
    /// ```text
    /// ℓ = −N/2 [d ln 2π + Σᵢ ln vᵢ + (d − q) ln σ² + 2 ln|D| + (N−1)/N (q + (tr S − Σᵢ vᵢ)/σ²)]
    /// ```
    ///
    /// # Errors
    /// As [`model`](Self::model).
    pub fn log_likelihood(&self) -> Result<f64, Error> {
        self.check_noise()?;
        let (n, d) = (self.n_rows as f64, self.mean.len());
        let (kept, noise) = self.kept_and_noise();
        let inside = &self.explained_variance[..kept];
        let ln_units: f64 = self.units().iter().map(|s| s.ln()).sum();
        let ln_det =
            inside.iter().map(|v| v.ln()).sum::<f64>() + (d - kept) as f64 * noise.ln() + 2.0 * ln_units;
        let outside = (self.total_variance - inside.iter().sum::<f64>()) / noise;
        let spread = (n - 1.0) / n * (kept as f64 + outside);
        let ln_2pi = (2.0 * std::f64::consts::PI).ln();
        Ok(-0.5 * n * (d as f64 * ln_2pi + ln_det + spread))
    }

    /// The density these components state. Where they leave no noise but are as many as the columns,
    /// the last of them is the noise: the same covariance.
    ///
    /// # Errors
    /// [`Error::DegenerateNoise`] where the covariance has no inverse.
    pub fn model(&self) -> Result<LinearGaussian, Error> {
        self.check_noise()?;
        self.density(0.0)
    }

    fn check_noise(&self) -> Result<(), Error> {
        let q = self.components.n_rows();
        // What rounding leaves of a variance that is zero.
        let largest = self.explained_variance.first().copied().unwrap_or(self.noise_variance);
        let rounding = f64::EPSILON * self.n_rows.max(self.mean.len()) as f64 * largest;
        if self.kept_and_noise().1 <= rounding {
            return Err(Error::DegenerateNoise { asked: q, rank: q });
        }
        Ok(())
    }

    /// How many components make the signal, and the variance beyond them.
    fn kept_and_noise(&self) -> (usize, f64) {
        match (self.components.n_rows(), self.explained_variance.last()) {
            (q, Some(&last)) if q == self.mean.len() => (q - 1, last),
            (q, _) => (q, self.noise_variance),
        }
    }

    /// The density with a noise variance of at least `least`.
    fn density(&self, least: f64) -> Result<LinearGaussian, Error> {
        let d = self.mean.len();
        let (kept, noise) = self.kept_and_noise();
        let noise = noise.max(least);
        let mut w = Matrix::from_fn(d, kept, |j, i| self.components[(i, j)]);
        let length = |v: &f64| (v - noise).max(0.0).sqrt();
        w.scale_columns(&self.explained_variance[..kept].iter().map(length).collect::<Vec<_>>());
        let noise = match &self.scale {
            None => Noise::Isotropic(noise),
            Some(scale) => {
                w.scale_rows(scale);
                Noise::Diagonal(scale.iter().map(|s| s * s * noise).collect())
            }
        };
        LinearGaussian::new(w, self.mean.clone(), noise)?.with_scale(self.scale.clone())
    }

    /// The density to fill gaps with: [`model`](Self::model), its noise held at 1e-10 of the largest
    /// variance where there is less. G = I + Wₒᵀ Wₒ / σ² keeps its inverse, and what the observed cells
    /// determine moves by about 1e-10.
    fn filling(&self) -> Result<LinearGaussian, Error> {
        let largest = self.explained_variance.first().copied().unwrap_or(self.noise_variance);
        let least = if largest > 0.0 { 1e-10 * largest } else { 1.0 };
        self.density(least)
    }

    /// Scores of every row, n × q: `U D⁻¹ (t − μ)`, divided by the standard deviation along each axis if
    /// `whiten`. A gap enters by its conditional mean.
    ///
    /// ```
    /// use covary::{Dataset, Matrix, infer::PrincipalAxes};
    /// let table = Dataset::new(Matrix::from_rows(&[[1.0, 2.0], [2.0, 4.1], [3.0, 5.9], [4.0, 8.0]]))?;
    /// let axes = PrincipalAxes::default().fit(&table)?;
    /// let scores = axes.transform(&table, false)?;
    /// let back = axes.decode(&scores, false)?;
    /// assert!((back[(1, 1)] - 4.1).abs() < 1e-12);      // all components lose nothing
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns.
    pub fn transform(&self, data: &Dataset, whiten: bool) -> Result<Matrix, Error> {
        super::density::check_columns(self.mean.len(), data)?;
        let filled;
        let values = if data.is_complete() {
            data.values()
        } else {
            filled = self.filling()?.impute(data)?;
            filled.values()
        };
        Matrix::from_vec(values.n_rows(), self.components.n_rows(), self.scores(values.as_slice(), whiten))
    }

    /// As [`transform`](Self::transform), row by row and in single precision; a complete table of single precision is
    /// read as it is.
    ///
    /// # Errors
    /// As [`transform`](Self::transform).
    pub fn transform_single(&self, data: &Dataset, whiten: bool) -> Result<Vec<f32>, Error> {
        match data.cells() {
            Cells::Single(cells) if data.is_complete() => {
                super::density::check_columns(self.mean.len(), data)?;
                Ok(self.scores(cells, whiten))
            }
            _ => Ok(self.transform(data, whiten)?.as_slice().iter().map(|z| *z as f32).collect()),
        }
    }

    /// Scores of complete rows.
    fn scores<C: Cell>(&self, cells: &[C], whiten: bool) -> Vec<C> {
        let (d, q) = (self.mean.len(), self.components.n_rows());
        let axes: Vec<C> = self.to_scores(whiten).as_slice().iter().map(|v| C::of(*v)).collect();
        let axes = MatRef::from_row_major_slice(&axes, q, d);
        let ones = vec![1.0; d];
        let step = BLOCK_CELLS.div_ceil(d);
        let scores = pieces(cells.len() / d, step, |rows| {
            let mut centered = vec![C::of(0.0); step.min(rows.len()) * d];
            let mut scores = vec![C::of(0.0); rows.len() * q];
            let cells = &cells[rows.start * d..rows.end * d];
            for (block, out) in cells.chunks(step * d).zip(scores.chunks_mut((step * q).max(1))) {
                let m = block.len() / d;
                let centered = &mut centered[..block.len()];
                center(block, &self.mean, &ones, centered);
                let out = MatMut::from_row_major_slice_mut(out, m, q);
                gemm(out, false, MatRef::from_row_major_slice(centered, m, d), axes.transpose());
            }
            scores
        });
        scores.concat()
    }

    /// As [`transform`](Self::transform), of a sparse table that is not written out: `U D⁻¹ t − U D⁻¹ μ`.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns.
    pub fn transform_sparse(&self, data: &Sparse, whiten: bool) -> Result<Matrix, Error> {
        let (d, q) = (self.mean.len(), self.components.n_rows());
        if data.n_columns() != d {
            return Err(Error::ColumnCount { expected: d, got: data.n_columns() });
        }
        let axes = self.to_scores(whiten).transpose();
        let origin = Matrix::from_rows(&[&self.mean]).dot(&axes);
        let scores = pieces(data.n_rows(), 64, |rows| {
            let mut scores = Vec::with_capacity(rows.len() * q);
            for i in rows {
                let start = scores.len();
                scores.extend(origin.row(0).iter().map(|o| -o));
                for (j, v) in data.row(i) {
                    scores[start..].iter_mut().zip(axes.row(j)).for_each(|(z, u)| *z += v * u);
                }
            }
            scores
        });
        Matrix::from_vec(data.n_rows(), q, scores.concat())
    }

    /// `U D⁻¹`, divided by the standard deviation along each axis if `whiten`.
    fn to_scores(&self, whiten: bool) -> Matrix {
        let mut axes = self.components.clone();
        axes.scale_rows(&self.whitening(whiten).iter().map(|s| 1.0 / s).collect::<Vec<_>>());
        if self.scale.is_some() {
            axes.scale_columns(&self.units().iter().map(|s| 1.0 / s).collect::<Vec<_>>());
        }
        axes
    }

    /// Rows from scores: `μ + D Uᵀ z`, undoing `whiten`.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless there is a score per component.
    pub fn decode(&self, scores: &Matrix, whiten: bool) -> Result<Matrix, Error> {
        let q = self.components.n_rows();
        if scores.n_columns() != q {
            return Err(Error::WrongLength { what: "scores per row", expected: q, got: scores.n_columns() });
        }
        let mut axes = self.components.clone();
        axes.scale_rows(&self.whitening(whiten));
        axes.scale_columns(&self.units());
        let mut rows = scores.dot(&axes);
        for i in 0..rows.n_rows() {
            rows.row_mut(i).iter_mut().zip(&self.mean).for_each(|(t, m)| *t += m);
        }
        Ok(rows)
    }

    /// What scores are divided by: standard deviations, or 1. An axis without variance has the smallest
    /// scale that keeps its scores, which are all rounding, finite.
    fn whitening(&self, whiten: bool) -> Vec<f64> {
        let sd = |v: &f64| if whiten { v.sqrt().max(f64::EPSILON) } else { 1.0 };
        self.explained_variance.iter().map(sd).collect()
    }
}
