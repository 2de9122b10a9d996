//! The type-II maximum of a complete table from its spectrum [M 1.7.3].
//!
//! At a stationary point the columns of W are eigenvectors of S, so that only their lengths and the
//! noise are unknown. With `vᵢ = σ² + ‖W_·i‖²` and `γᵢ = αᵢ ‖W_·i‖²` (d for the simple rule):
//! ```text
//! N (λᵢ − vᵢ)(vᵢ − σ²) = γᵢ vᵢ²            (d − k) σ² = Σ_{j>k} λⱼ + σ⁴ Σ_{i≤k} αᵢ / N
//! ```

use super::AlphaRule;
use crate::Error;
use crate::infer::Spectrum;
use std::f64::consts::PI;

/// The components of a complete table that survive type-II maximum likelihood, and the lengths and
/// precisions they survive with.
#[derive(Debug, Clone, PartialEq)]
pub struct RelevantComponents {
    /// σ².
    pub noise_variance: f64,
    /// `vᵢ = σ² + ‖W_·i‖²`: the model's variance along each kept axis, in decreasing order.
    pub model_variances: Vec<f64>,
    /// αᵢ, in ascending order.
    pub relevance: Vec<f64>,
    pub(super) at_floor: bool,
}

/// Steps of the fixed point before it is taken as it is. From below it rises to the solution, by a
/// factor of the error per step that nears 1 only where a component is about to be lost.
const MAX_STEPS: usize = 100_000;

/// Points at which the largest root of the effective-number rule is looked for.
const SCAN: usize = 128;

/// From the most components down: raise σ² to its fixed point, and drop the last component whenever it
/// has no length there.
///
/// σ² need not start again after a drop: with one component less the right-hand side of the equation
/// is larger wherever both have roots, so that no solution lies below the σ² already reached.
pub(super) fn solve(
    rule: AlphaRule,
    spectrum: &Spectrum,
    max_components: usize,
    noise_floor: Option<f64>,
) -> Result<RelevantComponents, Error> {
    let (d, n) = (spectrum.mean.len(), spectrum.n_rows);
    let mut k = max_components.min(d - 1).min((n - 1) / 2).min(spectrum.eigenvalues.len());
    if noise_floor.is_none() && spectrum.leaves_no_noise(k) {
        return Err(Error::DegenerateNoise { asked: k, rank: spectrum.rank() });
    }
    // In units of the mean variance, whose square is an ordinary number.
    let unit = spectrum.total_variance / d as f64;
    let lambda: Vec<f64> = spectrum.eigenvalues[..k].iter().map(|l| l / unit).collect();
    let length = Length { rule, n: n as f64, d: d as f64 };
    let floor = noise_floor.unwrap_or(0.0);
    let tail = |k: usize| (spectrum.noise_variance(k) / unit).max(floor);
    // The last σ² at which every component had a length.
    let mut reached: f64 = 0.0;
    let (mut sigma2, mut steps) = (tail(k), 0);
    let found = loop {
        // The shortest first: it is the one that fails.
        let roots: Option<Vec<Root>> = lambda[..k].iter().rev().map(|&l| length.of(l, sigma2)).collect();
        let Some(roots) = roots else {
            k -= 1;
            (sigma2, steps) = (reached.max(tail(k)), 0);
            continue;
        };
        let left = (d - k) as f64;
        let shrinkage: f64 = roots.iter().map(|root| root.alpha).sum::<f64>() / n as f64;
        let next = (spectrum.noise_variance(k) / unit + sigma2 * sigma2 * shrinkage / left).max(floor);
        steps += 1;
        if (next - sigma2).abs() <= 4.0 * f64::EPSILON * sigma2 || steps == MAX_STEPS {
            break roots;
        }
        (reached, sigma2) = (sigma2, next);
    };
    Ok(RelevantComponents {
        noise_variance: sigma2 * unit,
        model_variances: found.iter().rev().map(|root| root.v * unit).collect(),
        relevance: found.iter().rev().map(|root| root.alpha / unit).collect(),
        at_floor: noise_floor.is_some() && sigma2 <= floor,
    })
}

/// A component's variance and precision.
struct Root {
    v: f64,
    alpha: f64,
}

/// The equation of one component's length.
struct Length {
    rule: AlphaRule,
    n: f64,
    d: f64,
}

impl Length {
    /// The largest root, if there is one.
    fn of(&self, lambda: f64, sigma2: f64) -> Option<Root> {
        if lambda <= sigma2 {
            return None;
        }
        let (n, d) = (self.n, self.d);
        match self.rule {
            AlphaRule::Simple => {
                // (N + d) v² − N (λ + σ²) v + N λ σ² = 0
                let discriminant = n * n * (lambda - sigma2).powi(2) - 4.0 * n * d * lambda * sigma2;
                let root = (discriminant >= 0.0).then(|| discriminant.sqrt())?;
                let v = (n * (lambda + sigma2) + root) / (2.0 * (n + d));
                // v − σ² without the difference of near-equal numbers.
                let squared = (n * (lambda - sigma2) - 2.0 * d * sigma2 + root) / (2.0 * (n + d));
                Some(Root { v, alpha: d / squared })
            }
            AlphaRule::EffectiveNumber => {
                let y = self.largest_root(lambda / sigma2)?;
                Some(Root { v: sigma2 * (1.0 + y), alpha: self.effective_number(y) / (sigma2 * y) })
            }
        }
    }

    /// γ of a column whose squared length is y σ²; with r = v/(v − σ²) the positive root of
    /// `r γ² + (N − d) γ − d N = 0`.
    fn effective_number(&self, y: f64) -> f64 {
        let (n, d) = (self.n, self.d);
        let r = (1.0 + y) / y;
        let root = ((n - d).powi(2) + 4.0 * r * d * n).sqrt();
        if n >= d { 2.0 * d * n / (n - d + root) } else { (d - n + root) / (2.0 * r) }
    }

    /// The largest y with `N (x − 1 − y) y = γ(y) (1 + y)²`, x = λ/σ². Negative at both ends of
    /// (0, x − 1): there are two roots or none.
    fn largest_root(&self, x: f64) -> Option<f64> {
        let excess = |y: f64| self.n * (x - 1.0 - y) * y / (1.0 + y).powi(2) - self.effective_number(y);
        // In ln v the roots are apart wherever x is large.
        let at = |i: f64| (x.ln() * i / SCAN as f64).exp_m1();
        let above = |i: &usize| excess(at(*i as f64)) >= 0.0;
        let (mut low, mut high) = if let Some(i) = (1..SCAN).rev().find(above) {
            (at(i as f64), at(i as f64 + 1.0))
        } else {
            // Two roots may hide between neighbors, around the largest value.
            let top = (1..SCAN)
                .max_by(|&a, &b| excess(at(a as f64)).total_cmp(&excess(at(b as f64))))
                .expect("there are points") as f64;
            let peak = maximum(at(top - 1.0), at(top + 1.0), &excess);
            (excess(peak) >= 0.0).then_some((peak, at(top + 1.0)))?
        };
        while high - low > f64::EPSILON * high {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                break;
            }
            if excess(middle) >= 0.0 { low = middle } else { high = middle }
        }
        Some(low)
    }
}

/// Where `f` is largest between `low` and `high`, by golden section.
fn maximum(mut low: f64, mut high: f64, f: &impl Fn(f64) -> f64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    for _ in 0..80 {
        let (a, b) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        if f(a) < f(b) { low = a } else { high = b }
    }
    0.5 * (low + high)
}

impl RelevantComponents {
    /// Components kept.
    pub fn n_components(&self) -> usize {
        self.relevance.len()
    }

    /// `J = ℓ + ln p(W | α)`, every constant included, in the units of the table.
    pub fn log_posterior(&self, spectrum: &Spectrum) -> f64 {
        let log_likelihood = spectrum.log_likelihood_at(&self.model_variances, self.noise_variance);
        log_likelihood + self.log_prior(spectrum) - self.n_components() as f64 * spectrum.ln_units()
    }

    /// `ln p(W | α)` in the units of the spectrum.
    fn log_prior(&self, spectrum: &Spectrum) -> f64 {
        let d = spectrum.mean.len() as f64;
        let squared = self.squared_lengths();
        let columns = self.relevance.iter().zip(&squared);
        columns.map(|(alpha, w2)| 0.5 * (d * (alpha / (2.0 * PI)).ln() - alpha * w2)).sum()
    }

    /// `‖W_·i‖²`, in the units of the spectrum.
    pub fn squared_lengths(&self) -> Vec<f64> {
        self.model_variances.iter().map(|v| v - self.noise_variance).collect()
    }

    /// Laplace's approximation of `ln p(table | α, σ²)`, W integrated out around its maximum
    /// [M 1.7.5], c² = v − σ²:
    ///
    /// ```text
    /// ln p ≈ ℓ + ln p(W | α) + dk/2 ln 2π − ½ ln|H|        H block diagonal in the eigenbasis:
    ///   (a, i), a > k      αᵢ + N/σ² [(σ² − λₐ)/vᵢ + cᵢ² λᵢ/vᵢ²]
    ///   (i, i)             2N cᵢ²/vᵢ² (2λᵢ/vᵢ − 1)
    ///   (i, j), (j, i)     (αᵢ − αⱼ) [N κ (cⱼ² − cᵢ²) − (αᵢ − αⱼ)]     κ = (λᵢ/vᵢ + λⱼ/vⱼ − 1)/(vᵢ vⱼ)
    /// ```
    ///
    /// **Erratic where precisions are near-equal**: W may then turn at no cost, the pair's determinant
    /// goes to 0 and the evidence to +∞. Compare numbers of components by
    /// [`Criteria`](crate::select::Criteria) instead, whose evidence integrates the turns out. `None`
    /// where a block is not positive.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless the spectrum lists every eigenvalue.
    pub fn log_evidence(&self, spectrum: &Spectrum) -> Result<Option<f64>, Error> {
        let (d, k) = (spectrum.mean.len(), self.n_components());
        if spectrum.eigenvalues.len() != d {
            return Err(Error::WrongLength {
                what: "eigenvalues in the spectrum (all are needed)",
                expected: d,
                got: spectrum.eigenvalues.len(),
            });
        }
        let log_likelihood = spectrum.log_likelihood_at(&self.model_variances, self.noise_variance);
        let size = (d * k) as f64;
        Ok(self.ln_det_hessian(spectrum).map(|ln_det| {
            log_likelihood + self.log_prior(spectrum) + 0.5 * size * (2.0 * PI).ln() - 0.5 * ln_det
        }))
    }

    fn ln_det_hessian(&self, spectrum: &Spectrum) -> Option<f64> {
        let (n, s2) = (spectrum.n_rows as f64, self.noise_variance);
        let (lambda, v, alpha) = (&spectrum.eigenvalues, &self.model_variances, &self.relevance);
        let c2 = self.squared_lengths();
        let (k, d) = (v.len(), lambda.len());
        let mut blocks = Vec::with_capacity(k * d);
        for i in 0..k {
            let own = c2[i] * lambda[i] / (v[i] * v[i]);
            blocks.extend((k..d).map(|a| alpha[i] + n / s2 * ((s2 - lambda[a]) / v[i] + own)));
            blocks.push(2.0 * n * c2[i] / (v[i] * v[i]) * (2.0 * lambda[i] / v[i] - 1.0));
            for j in i + 1..k {
                let kappa = (lambda[i] / v[i] + lambda[j] / v[j] - 1.0) / (v[i] * v[j]);
                let apart = alpha[i] - alpha[j];
                blocks.push(apart * (n * kappa * (c2[j] - c2[i]) - apart));
            }
        }
        blocks.iter().all(|b| *b > 0.0).then(|| blocks.iter().map(|b| b.ln()).sum())
    }
}
