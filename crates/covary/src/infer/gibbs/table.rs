//! The table as the chains see it.

use crate::infer::em::parameters::Frame;
use crate::model::{LinearGaussian, Noise};
use crate::spec::NoiseFamily;
use crate::{Dataset, Error, Matrix, Spec};

/// Rows with an observed cell, in the order of their patterns, centered and scaled: priors are then
/// free of units, and the rows of a pattern stand together.
pub(super) struct Table {
    /// Gaps are NaN.
    pub(super) data: Dataset,
    /// The same cells with 0 at the gaps, for products.
    pub(super) cells: Matrix,
    /// What was subtracted from each column, and what it was divided by.
    mean: Vec<f64>,
    scale: Vec<f64>,
    pub(super) isotropic: bool,
    /// Whether the noise is one number in the user's units, too.
    one_scale: bool,
    /// `Σ ln scale` over the observed cells: a log-density in the user's units is less by this.
    pub(super) ln_units: f64,
}

/// Parameters in the table's units.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parameters {
    /// `W`, d × q.
    pub(super) w: Matrix,
    /// `μ`.
    pub(super) mean: Vec<f64>,
    /// `σ_k²`, one per column, all equal for isotropic noise.
    pub(super) noise: Vec<f64>,
    /// `αᵢ`, κ₀ without ARD.
    pub(super) alpha: Vec<f64>,
}

impl Table {
    /// One number for all columns of isotropic noise, so that the model stays the same: the root of
    /// the mean variance. Each column's own deviation for diagonal noise, whose columns have no common
    /// unit, and where asked for.
    pub(super) fn new(data: &Dataset, spec: &Spec, raw: bool) -> Result<Self, Error> {
        let d = data.n_columns();
        let isotropic = spec.noise == NoiseFamily::Isotropic;
        let (mean, scale) = if raw {
            (vec![0.0; d], vec![1.0; d])
        } else {
            let Frame { mean, scale, .. } = Frame::new(data, spec);
            (mean, scale)
        };
        let informative = data.patterns().filter(|p| p.n_observed() > 0);
        let rows: Vec<usize> = informative.flat_map(|p| p.rows.iter().copied()).collect();
        let values = Matrix::from_fn(rows.len(), d, |i, j| (data.row(rows[i])[j] - mean[j]) / scale[j]);
        let cells = Matrix::from_fn(rows.len(), d, |i, j| {
            let v = values[(i, j)];
            if v.is_nan() { 0.0 } else { v }
        });
        let counts = data.n_observed_by_column();
        let ln_units = scale.iter().zip(counts).map(|(s, n)| *n as f64 * s.ln()).sum();
        let data = Dataset::with_names(values, data.column_names().to_vec())?;
        let one_scale = raw || !spec.standardize;
        Ok(Self { data, cells, mean, scale, isotropic, one_scale, ln_units })
    }

    pub(super) fn n_rows(&self) -> usize {
        self.data.n_rows()
    }

    pub(super) fn n_columns(&self) -> usize {
        self.data.n_columns()
    }

    /// The parameters in the user's units.
    pub(super) fn model(&self, w: &Matrix, mean: &[f64], noise: &[f64]) -> Result<LinearGaussian, Error> {
        let noise = if self.isotropic && self.one_scale {
            Noise::Isotropic(noise[0] * self.scale[0] * self.scale[0])
        } else {
            Noise::Diagonal(noise.iter().zip(&self.scale).map(|(v, s)| v * s * s).collect())
        };
        let mut w = w.clone();
        w.scale_rows(&self.scale);
        let center = self.mean.iter().zip(&self.scale);
        let mean = mean.iter().zip(center).map(|(m, (c, s))| c + s * m).collect();
        LinearGaussian::new(w, mean, noise)?.with_scale((!self.one_scale).then(|| self.scale.clone()))
    }
}
