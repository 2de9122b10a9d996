//! Ridge regression of residuals on features, and of the logarithm of their squares, by leave-one-out errors [M 4.3.3].

use crate::linalg::{Eigen, dot, eigen};
use crate::{Error, Matrix};

/// Ridges tried for the mean and for the scale.
const FOR_MEAN: [f64; 8] = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0];
const FOR_SCALE: [f64; 7] = [1.0, 3.0, 10.0, 30.0, 100.0, 1000.0, 1e4];
/// Least share of its own weight that a row does not have in its fit.
const LEAST_FREE: f64 = 0.05;
/// The scale is kept if its leave-one-out errors are below this share of the variance.
const SCALE_GAIN: f64 = 0.98;
/// Squares of residuals count as at least this share of their median before the logarithm.
const LEAST_SQUARE: f64 = 1e-4;
/// The logarithm of a squared scale stays within this of the mean.
const LARGEST_LOG: f64 = 2.5;

/// Features in the basis where their second moments are diagonal, so that one decomposition serves all ridges.
struct Rotated {
    /// A row for each cell.
    features: Matrix,
    squares: Matrix,
    moments: Vec<f64>,
    axes: Matrix,
}

/// A fit by one ridge.
struct Fitted {
    ridge: f64,
    coefficients: Vec<f64>,
    /// Leave-one-out errors, and the mean of their squares.
    errors: Vec<f64>,
    loo: f64,
}

impl Rotated {
    fn new(features: &Matrix) -> Result<Self, Error> {
        let Eigen { values, vectors } = eigen(&features.t_dot(features))?;
        let moments = values.iter().map(|v| v.max(0.0)).collect();
        let features = features.dot(&vectors);
        let squares =
            Matrix::from_fn(features.n_rows(), features.n_columns(), |i, j| features[(i, j)].powi(2));
        Ok(Self { features, squares, moments, axes: vectors })
    }

    /// The ridge of least squared leave-one-out errors, of which the first counts among equals.
    fn fit(&self, target: &[f64], ridges: &[f64]) -> Fitted {
        let (n, k) = (self.features.n_rows(), self.moments.len());
        let mut projected = vec![0.0; k];
        for (row, t) in self.features.rows().zip(target) {
            projected.iter_mut().zip(row).for_each(|(p, f)| *p += f * t);
        }
        // A column for each ridge.
        let shrunk = Matrix::from_fn(k, ridges.len(), |a, r| 1.0 / (self.moments[a] + ridges[r]));
        let coefficients = Matrix::from_fn(k, ridges.len(), |a, r| projected[a] * shrunk[(a, r)]);
        let (predicted, leverages) = (self.features.dot(&coefficients), self.squares.dot(&shrunk));
        let mut best: Option<Fitted> = None;
        for (r, &ridge) in ridges.iter().enumerate() {
            let error =
                |i: usize| (target[i] - predicted[(i, r)]) / (1.0 - leverages[(i, r)]).max(LEAST_FREE);
            let errors: Vec<f64> = (0..n).map(error).collect();
            let loo = mean_square(&errors);
            if best.as_ref().is_none_or(|best| loo < best.loo) {
                best = Some(Fitted { ridge, coefficients: coefficients.column(r), errors, loo });
            }
        }
        best.expect("there are ridges")
    }
}

fn mean_square(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64
}

/// What features say of the residuals of a column: their mean and their scale. All coefficients are of the rotated features
/// `axesᵀ φ`.
#[derive(Debug, Clone, PartialEq)]
pub struct Regression {
    /// The axes to rotate features by.
    pub axes: Matrix,
    /// Of the mean; empty if features do not predict it.
    pub mean: Vec<f64>,
    /// The variance that the uncertain coefficients of the mean give to a squared feature; empty likewise.
    pub variance: Vec<f64>,
    /// Mean squared leave-one-out error of the mean.
    pub loo: f64,
    /// The same as a share of the mean square of the residuals; 1 if it is not predicted.
    pub share: f64,
    /// Of the logarithm of the squared scale; empty if features do not predict it.
    pub scale: Vec<f64>,
    /// What the scale is multiplied by to leave its mean square as it is; 1 without.
    pub level: f64,
}

/// The regression of `residuals` with standard deviations `sds` on features, a row for each cell.
///
/// # Errors
/// If a decomposition fails.
pub fn regress(features: &Matrix, residuals: &[f64], sds: &[f64]) -> Result<Regression, Error> {
    let rotated = Rotated::new(features)?;
    let mean = rotated.fit(residuals, &FOR_MEAN);
    let plain = mean_square(residuals);
    let predicted = mean.loo < plain;
    let errors = if predicted { &mean.errors } else { residuals };
    let ratios: Vec<f64> = errors.iter().zip(sds).map(|(e, s)| (e / s).powi(2)).collect();
    let least = LEAST_SQUARE * median(&ratios);
    let mut target: Vec<f64> = ratios.iter().map(|r| r.max(least).ln()).collect();
    let center = target.iter().sum::<f64>() / target.len() as f64;
    for t in &mut target {
        *t -= center;
    }
    let scale = rotated.fit(&target, &FOR_SCALE);
    let scaled = scale.loo < SCALE_GAIN * mean_square(&target);
    let mut found = Regression {
        mean: Vec::new(),
        variance: Vec::new(),
        loo: mean.loo,
        share: 1.0,
        scale: Vec::new(),
        level: 1.0,
        axes: Matrix::zeros(0, 0),
    };
    if predicted {
        found.share = mean.loo / plain;
        found.variance = rotated.moments.iter().map(|g| mean.loo / (g + mean.ridge)).collect();
        found.mean = mean.coefficients;
    }
    if scaled {
        let squares = rotated.features.rows().zip(&ratios);
        let adjusted: f64 = squares.map(|(row, r)| r / log_square(row, &scale.coefficients).exp()).sum();
        found.level = (adjusted / ratios.iter().sum::<f64>()).sqrt();
        found.scale = scale.coefficients;
    }
    found.axes = rotated.axes;
    Ok(found)
}

fn log_square(rotated: &[f64], coefficients: &[f64]) -> f64 {
    dot(rotated, coefficients).clamp(-LARGEST_LOG, LARGEST_LOG)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    0.5 * (sorted[(n - 1) / 2] + sorted[n / 2])
}

impl Regression {
    /// Whether features say anything.
    pub fn is_useful(&self) -> bool {
        !self.mean.is_empty() || !self.scale.is_empty()
    }

    /// What is to be added to the mean of a cell with these rotated features, and its standard deviation instead of `sd`
    /// [M 4.3.5].
    pub fn correct(&self, rotated: &[f64], sd: f64) -> (f64, f64) {
        let scale = if self.scale.is_empty() {
            1.0
        } else {
            self.level * (0.5 * log_square(rotated, &self.scale)).exp()
        };
        if self.mean.is_empty() {
            return (0.0, sd * scale);
        }
        let uncertain: f64 = rotated.iter().zip(&self.variance).map(|(f, v)| f * f * v).sum();
        let variance = sd * sd * self.share * scale * scale + uncertain;
        (dot(rotated, &self.mean), variance.sqrt())
    }
}
