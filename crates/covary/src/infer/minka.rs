//! How probable a number of components is, from the spectrum alone (Minka 2000; [M 1.8.2]).

use super::Spectrum;
use crate::Error;
use statrs::function::gamma::ln_gamma;
use std::f64::consts::{LN_2, PI};

impl Spectrum {
    /// Laplace approximation of `ln p(D | k)` without the constants common to all k, at noise variance
    /// v, with m = dk − k(k+1)/2 and λ̂ⱼ = λⱼ for j ≤ k, v beyond. Needs all eigenvalues.
    ///
    /// ```text
    /// ln p(D|k) ≈ ln p_U − N/2 Σ_{j≤k} ln λⱼ − N(d−k)/2 ln v + (m+k)/2 ln 2π − ½ ln|A_z| − k/2 ln N
    /// ln p_U    = −k ln 2 + Σ_{i≤k} [ln Γ((d−i+1)/2) − (d−i+1)/2 ln π]
    /// ln|A_z|   = Σ_{i≤k} Σ_{j>i} ln[(1/λ̂ⱼ − 1/λ̂ᵢ)(λᵢ − λⱼ) N]
    /// ```
    ///
    /// At k = 0 every sum is empty and −Nd/2 ln v is left: the spherical Gaussian. `None` where a
    /// retained eigenvalue equals another one and the approximation is infinite.
    pub(crate) fn log_evidence(&self, k: usize, v: f64) -> Option<f64> {
        let lambda = &self.eigenvalues;
        let (d, n) = (lambda.len(), self.n_rows as f64);
        let fitted = |j: usize| if j < k { lambda[j] } else { v };
        let mut ln_p_u = -(k as f64) * LN_2;
        let mut ln_a_z = 0.0;
        for i in 0..k {
            let half = (d - i) as f64 / 2.0;
            ln_p_u += ln_gamma(half) - half * PI.ln();
            for j in i + 1..d {
                let curvature = (1.0 / fitted(j) - 1.0 / fitted(i)) * (lambda[i] - lambda[j]) * n;
                if curvature <= 0.0 {
                    return None;
                }
                ln_a_z += curvature.ln();
            }
        }
        let ln_retained: f64 = lambda[..k].iter().map(|l| l.ln()).sum();
        let m = (d * k - k * (k + 1) / 2) as f64;
        let k_f = k as f64;
        Some(
            ln_p_u - 0.5 * n * ln_retained - 0.5 * n * (d - k) as f64 * v.ln()
                + 0.5 * (m + k_f) * (2.0 * PI).ln()
                - 0.5 * ln_a_z
                - 0.5 * k_f * n.ln(),
        )
    }

    /// The number of components of largest evidence among 1 … d − 1, as classical software picks it:
    /// directions without variance count as noise of variance ελ₁, so that data of rank r < d, which
    /// have no likelihood to speak of, get all r. Without any variance, or with one column, it is 1.
    ///
    /// [`Criteria`](crate::select::Criteria) also weighs no component at all, and leaves out numbers
    /// that leave no noise.
    ///
    /// # Errors
    /// [`Error::TooFewForEvidence`] with fewer rows than columns, [`Error::WrongLength`] unless all
    /// eigenvalues are listed.
    pub(super) fn evident_components(&self) -> Result<usize, Error> {
        let (rows, columns) = (self.n_rows, self.mean.len());
        if rows < columns {
            return Err(Error::TooFewForEvidence { rows, columns });
        }
        let least = f64::EPSILON * self.eigenvalues[0];
        let evidence = |k: usize| Some((k, self.log_evidence(k, self.noise_variance(k).max(least))?));
        let candidates = (1..columns).take_while(|k| self.eigenvalues[k - 1] > least).filter_map(evidence);
        // The first of equals.
        let best = candidates.reduce(|best, next| if next.1 > best.1 { next } else { best });
        Ok(best.map_or(1, |(k, _)| k))
    }
}
