//! Units in which all columns have the same noise [M 3.6].
//!
//! Divided by their standard deviations, columns whose shares of noise differ have unequal noise, and to a model of equal noise that
//! looks like components: of 10 in 20 000 × 100 standardized cells it would take 85. Divided by the standard deviations of
//! their noise they have as many components as there are.

use super::bracket::n_above_noise;
use crate::linalg::{Eigen, dot, leading_or_all as leading, positive_inverse};
use crate::{Error, Matrix};

/// Rounds at most, and the change that ends them, in standard errors √(2/n) of a noise variance, as shares of it.
const ROUNDS: usize = 100;
const SETTLED: f64 = 0.1;
/// Rows for each column beyond which weaker components do not count: they move the noise by little, and while it is not yet
/// found, unequal noise would pass for them.
const ENOUGH: f64 = 50.0;
/// Least share of a column's variance that is noise: the scores of others are not to drown in those of a column that is known
/// almost exactly.
const LEAST_SHARE: f64 = 1e-3;
/// Eigenpairs searched beyond those above noise, where all of them would take long.
const SPARE: usize = 12;

/// What columns of a covariance `s` are divided by for equal noise, such that their mean variance is 1: the roots of
/// ```text
/// ψ ← diag(S) − diag(Ψ^½ U_k (Λ_k − I) U_kᵀ Ψ^½)      U, Λ: eigenpairs of Ψ^-½ S Ψ^-½;   k: how many are above noise
/// ```
/// from the variance of each column given all others. That is the maximum of the likelihood of k factors [M 1.6.2].
pub(super) fn equal_noise(s: &Matrix, n_rows: f64, cap: usize) -> Result<Vec<f64>, Error> {
    let psi = own_noise(s, (n_rows, 1.0), cap)?;
    let mean = psi.iter().enumerate().map(|(j, psi)| s[(j, j)] / psi).sum::<f64>() / psi.len() as f64;
    Ok(psi.iter().map(|psi| (psi * mean).sqrt()).collect())
}

/// How many eigenvalues of a covariance exceed those of noise in units in which it is equal. `rows`: how many there are, and the
/// share of their cells that is observed.
pub(super) fn n_above_own_noise(s: &Matrix, rows: (f64, f64), cap: usize) -> Result<usize, Error> {
    let psi = own_noise(s, rows, cap)?;
    let whitened = whitened(s, &psi);
    let (n, share) = rows;
    above(&whitened, SPARE, (n, share), cap).map(|(_, k)| k)
}

/// The noise variances of [`equal_noise`].
fn own_noise(s: &Matrix, (n_rows, share): (f64, f64), cap: usize) -> Result<Vec<f64>, Error> {
    let d = s.n_rows();
    let mut psi = given_others(s, d as f64 / (n_rows * share * share));
    let settled = SETTLED * (2.0 / n_rows).sqrt();
    let counted = n_rows.min(ENOUGH * d as f64);
    let mut before = 0;
    for _ in 0..ROUNDS {
        let deviation: Vec<f64> = psi.iter().map(|v| v.sqrt()).collect();
        let (found, k) = above(&whitened(s, &psi), before + SPARE, (counted, share), cap)?;
        let mut w = found.vectors.first_columns(k);
        w.scale_columns(&found.values[..k].iter().map(|v| (v - 1.0).max(0.0).sqrt()).collect::<Vec<_>>());
        w.scale_rows(&deviation);
        let mut change: f64 = 0.0;
        for (j, psi) in psi.iter_mut().enumerate() {
            let v = s[(j, j)];
            let left = (v - dot(w.row(j), w.row(j))).max(LEAST_SHARE * v);
            change = change.max((left / *psi - 1.0).abs());
            *psi = left;
        }
        if k == before && change < settled {
            break;
        }
        before = k;
    }
    Ok(psi)
}

/// `Ψ^-½ S Ψ^-½`
fn whitened(s: &Matrix, psi: &[f64]) -> Matrix {
    let mut whitened = s.clone();
    whitened.scale_both(&psi.iter().map(|v| 1.0 / v.sqrt()).collect::<Vec<_>>());
    whitened
}

/// Leading eigenpairs, this many or more, and how many of them are above noise.
fn above(s: &Matrix, known: usize, (n, share): (f64, f64), cap: usize) -> Result<(Eigen, usize), Error> {
    let (d, total) = (s.n_rows(), s.trace());
    let mut known = known.min(d);
    loop {
        let found = leading(s, known)?;
        let k = n_above_noise(&found.values, total, (n, d), share, cap);
        if k < found.values.len() || known == d {
            return Ok((found, k));
        }
        known = (2 * known).min(d);
    }
}

/// The variance of each column given all others; of a covariance whose diagonal is raised until it has an inverse, as few
/// rows demand.
fn given_others(s: &Matrix, blur: f64) -> Vec<f64> {
    let d = s.n_rows();
    let mut raised = (0.1 * blur).clamp(1e-6, 1.0);
    loop {
        let mut a = s.clone();
        for j in 0..d {
            a[(j, j)] *= 1.0 + raised;
        }
        match positive_inverse(&a) {
            Some((inverse, _)) => {
                return (0..d)
                    .map(|j| (1.0 / inverse[(j, j)]).clamp(LEAST_SHARE * s[(j, j)], s[(j, j)]))
                    .collect();
            }
            None if raised < 1.0 => raised *= 4.0,
            // Not positive, however much is added: nothing is known of the noise.
            None => return (0..d).map(|j| s[(j, j)]).collect(),
        }
    }
}
