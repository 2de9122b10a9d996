//! The score of predicted cells, and the rule for ties [M 4.2].

use crate::linalg::elementary::standard_crps;
use statrs::distribution::{ContinuousCDF, Normal};
use std::collections::BTreeMap;

/// Standard deviations below this count as this.
const SMALLEST: f64 = 1e-9;

/// Distribution function of the standard normal.
pub(super) fn cdf(x: f64) -> f64 {
    Normal::standard().cdf(x)
}

/// Continuous ranked probability score of a normal prediction [M 4.2.1]: the mean absolute error of its draws, less half
/// of that between two of them. Linear in large errors, so that a few outliers do not decide.
///
/// ```text
/// s [w (2Φ(w) − 1) + 2φ(w) − 1/√π]        w = (t − m)/s
/// ```
///
/// ```
/// let at_the_mean = covary::filling::crps(0.0, 0.0, 1.0);
/// assert!((at_the_mean - (2.0_f64.sqrt() - 1.0) / std::f64::consts::PI.sqrt()).abs() < 1e-12);
/// ```
pub fn crps(value: f64, mean: f64, sd: f64) -> f64 {
    let s = sd.max(SMALLEST);
    s * standard_crps((value - mean) / s)
}

/// How much each hidden cell counts: each column as often as it has gaps [M 4.2.2]; all alike if no cell is of a column
/// with gaps. They sum to one.
pub fn weights_by_gaps(columns: &[usize], gaps: &[usize]) -> Vec<f64> {
    let mut hidden = vec![0.0; gaps.len()];
    for &j in columns {
        hidden[j] += 1.0;
    }
    let mut weights: Vec<f64> = columns.iter().map(|&j| gaps[j] as f64 / hidden[j]).collect();
    let total: f64 = weights.iter().sum();
    if total == 0.0 {
        return vec![1.0 / columns.len() as f64; columns.len()];
    }
    for w in &mut weights {
        *w /= total;
    }
    weights
}

/// How much lower the scores of a candidate are than those of the default, and the standard error of that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// Mean of the default's less the candidate's.
    pub mean: f64,
    /// Its standard error.
    pub standard_error: f64,
}

impl Gain {
    /// The candidate's gain, cell by cell, by weights that sum to one [M 4.2.3]. Cells of a row are alike, so that rows, not
    /// cells, count as independent; `rows` says which row each cell is of.
    ///
    /// ```text
    /// d̄ = ΣW d        se = √Σᵢ (Σ_{cells of row i} W (d − d̄))²
    /// ```
    pub fn of(default: &[f64], candidate: &[f64], weights: &[f64], rows: &[usize]) -> Self {
        let cells = || default.iter().zip(candidate).map(|(a, b)| a - b).zip(weights);
        let mean: f64 = cells().map(|(d, w)| w * d).sum();
        let mut of_rows = BTreeMap::new();
        for ((d, w), &row) in cells().zip(rows) {
            *of_rows.entry(row).or_insert(0.0) += w * (d - mean);
        }
        Self { mean, standard_error: of_rows.values().map(|t: &f64| t * t).sum::<f64>().sqrt() }
    }

    /// Whether the gain is above one standard error.
    pub fn counts(&self) -> bool {
        self.exceeds(1.0)
    }

    /// Whether the gain is above this many standard errors.
    pub fn exceeds(&self, standard_errors: f64) -> bool {
        self.mean > standard_errors * self.standard_error
    }
}
