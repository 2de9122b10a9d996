//! Variational Bayesian PCA with empirical precisions, in closed form (Nakajima et al. 2013, 2015;
//! [M 2.4]).

use crate::infer::{Spectrum, edge_of};
use crate::{Error, Matrix};
use std::f64::consts::PI;

/// The global optimum of mean-field variational Bayesian PCA of a complete table whose precisions and
/// noise have no prior: which components stay, and how far their singular values shrink.
///
/// It errs on the side of too few components: an instant second opinion and a start for iterative
/// fits, not the default choice.
///
/// ```
/// use covary::{data::simulate, infer::Spectral, select::EmpiricalVb};
/// let (table, _) = simulate::rotated(100, &[5.0, 4.0, 3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], /* seed */ 1);
/// let spectrum = Spectral::default().spectrum(&table, /* all */ 10, false)?;
/// let found = EmpiricalVb::from_spectrum(&spectrum)?;
/// assert_eq!(found.n_components, 4);
/// assert!((found.noise_variance - 1.0).abs() < 0.2);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct EmpiricalVb {
    /// Components that stay.
    pub n_components: usize,
    /// σ².
    pub noise_variance: f64,
    /// Singular values up to this one are noise.
    pub threshold: f64,
    /// γ̂ of the components that stay: their singular values, shrunk.
    pub singular_values: Vec<f64>,
    /// The bound on `ln p(table)`, in nats: of n × d cells, or (n − 1) × d with the mean taken out; of
    /// a standardized spectrum, of the standardized cells.
    pub bound: f64,
    /// `‖⟨w_h⟩‖` in the posterior whose scores have unit second moment:
    /// `√(γ̂²/n + σ² γ̂/γ)`. The direction is the component's axis.
    pub loading_lengths: Vec<f64>,
    /// Variance of every entry of w_h in that posterior: `(γγ̂/σ² + n) σ⁴/(n γ²)`.
    pub loading_variances: Vec<f64>,
}

/// Points of the first search for the noise; its objective has several minima, of which as many as
/// [`REFINED`] are looked at closely.
const GRID: usize = 400;
const REFINED: usize = 5;

impl EmpiricalVb {
    /// From the spectrum of a complete table with all its eigenvalues. The mean costs one row.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless the spectrum lists every eigenvalue, and as
    /// [`from_singular_values`](Self::from_singular_values).
    pub fn from_spectrum(spectrum: &Spectrum) -> Result<Self, Error> {
        let (n, d) = (spectrum.n_rows, spectrum.mean.len());
        if spectrum.eigenvalues.len() != d {
            return Err(Error::WrongLength {
                what: "eigenvalues in the spectrum (all are needed)",
                expected: d,
                got: spectrum.eigenvalues.len(),
            });
        }
        let most = d.min(n - 1);
        let singular: Vec<f64> =
            spectrum.eigenvalues[..most].iter().map(|l| l.sqrt() * (n as f64).sqrt()).collect();
        Self::from_singular_values(&singular, n - 1, d, None)
    }

    /// From the singular values of an n × d matrix that is not centered, the noise variance given or
    /// searched for.
    ///
    /// ```
    /// use covary::select::EmpiricalVb;
    /// let found = EmpiricalVb::from_singular_values(&[40.0, 9.0, 8.5, 8.0], 60, 4, None)?;
    /// assert_eq!(found.n_components, 1);
    /// assert!(found.singular_values[0] < 40.0);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless there are min(n, d) singular values, [`Error::OutOfRange`] if
    /// one, or the noise variance, is not such a number, [`Error::AllConstant`] if all are 0,
    /// [`Error::DegenerateNoise`] if half of them explain the matrix without noise.
    pub fn from_singular_values(
        singular_values: &[f64],
        n_rows: usize,
        n_columns: usize,
        noise_variance: Option<f64>,
    ) -> Result<Self, Error> {
        let (l, h) = (n_rows.min(n_columns), n_rows.max(n_columns));
        if l == 0 || singular_values.len() != l {
            let got = singular_values.len();
            return Err(Error::WrongLength { what: "singular values", expected: l.max(1), got });
        }
        if let Some(&value) = singular_values.iter().find(|g| !(g.is_finite() && **g >= 0.0)) {
            return Err(Error::OutOfRange {
                name: "singular value",
                value,
                bound: "finite and not negative",
            });
        }
        if let Some(value) = noise_variance
            && !(value.is_finite() && value > 0.0)
        {
            return Err(Error::OutOfRange { name: "noise_variance", value, bound: "finite and above 0" });
        }
        let mut gamma = singular_values.to_vec();
        gamma.sort_by(|a, b| b.total_cmp(a));
        // In units of the root mean square of the cells, so that squares are ordinary numbers.
        let unit =
            gamma[0] * (gamma.iter().map(|g| (g / gamma[0]).powi(2)).sum::<f64>() / (l * h) as f64).sqrt();
        if gamma[0] == 0.0 {
            return Err(Error::AllConstant { columns: n_columns });
        }
        for g in &mut gamma {
            *g /= unit;
        }
        let problem = Problem::new(&gamma, l, h);
        let sigma2 = match noise_variance {
            Some(given) => given / unit / unit,
            None => problem.noise_variance()?,
        };
        Ok(problem.solution(sigma2, unit, n_rows))
    }

    /// The posterior mean of the loadings, d × `n_components`: the axes of the spectrum times their
    /// lengths, in the units of the spectrum.
    ///
    /// # Errors
    /// [`Error::WrongLength`] if there are fewer axes than components.
    pub fn loadings(&self, axes: &Matrix) -> Result<Matrix, Error> {
        if axes.n_columns() < self.n_components {
            return Err(Error::WrongLength {
                what: "axes",
                expected: self.n_components,
                got: axes.n_columns(),
            });
        }
        let mut w = axes.first_columns(self.n_components);
        w.scale_columns(&self.loading_lengths);
        Ok(w)
    }
}

/// Singular values γ, in decreasing order, of an L × H matrix or its transpose, L ≤ H.
struct Problem<'a> {
    gamma: &'a [f64],
    l: f64,
    h: f64,
    /// η = L/H
    eta: f64,
    /// Where a component begins to pay: `x = γ²/(Hσ²)` above this.
    edge: f64,
}

impl<'a> Problem<'a> {
    fn new(gamma: &'a [f64], l: usize, h: usize) -> Self {
        let (l, h) = (l as f64, h as f64);
        let eta = l / h;
        let tau = edge_of(eta);
        Self { gamma, l, h, eta, edge: (1.0 + tau) * (1.0 + eta / tau) }
    }

    /// The σ² at which the bound is largest, over all of it.
    fn noise_variance(&self) -> Result<f64, Error> {
        let squares: Vec<f64> = self.gamma.iter().map(|g| g * g).collect();
        // No more components than this can pay; the others are noise.
        let most = (self.l / (1.0 + self.eta)).ceil() as usize - 1;
        let tail = &squares[most..];
        let mean_of_tail = tail.iter().sum::<f64>() / tail.len() as f64;
        let low = (tail[0] / self.edge).max(mean_of_tail) / self.h;
        let high = squares.iter().sum::<f64>() / (self.l * self.h);
        if low <= f64::EPSILON * self.h * high {
            let rounding = f64::EPSILON * self.h * self.gamma[0];
            let rank = self.gamma.iter().filter(|g| **g > rounding).count();
            return Err(Error::DegenerateNoise { asked: most, rank });
        }
        let at = |i: f64| low * ((high / low).ln() * i / (GRID - 1) as f64).exp();
        let grid: Vec<f64> = (0..GRID).map(|i| self.objective(at(i as f64))).collect();
        let mut best: Vec<usize> = (0..GRID).collect();
        best.sort_by(|&a, &b| grid[a].total_cmp(&grid[b]));
        let last = (GRID - 1) as f64;
        let refined = best.iter().take(REFINED).flat_map(|&i| {
            let i = i as f64;
            let (from, to) = (at((i - 1.0).max(0.0)), at((i + 1.0).min(last)));
            // The objective has a step in its slope where a component begins to pay: each side is
            // searched on its own, and the point itself counts.
            [at(i), minimum(from, at(i), |s| self.objective(s)), minimum(at(i), to, |s| self.objective(s))]
        });
        let found = refined.min_by(|a, b| self.objective(*a).total_cmp(&self.objective(*b)));
        Ok(self.polish(found.expect("five points were refined")))
    }

    /// Solves dΩ/d ln σ² = 0 around a minimum: values of Ω are flat to rounding within 1e-8 of it,
    /// its slope is not.
    fn polish(&self, found: f64) -> f64 {
        let (mut low, mut high) = (found * (1.0 - 1e-6), found * (1.0 + 1e-6));
        if !(self.slope(low) < 0.0 && self.slope(high) > 0.0) {
            return found;
        }
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.slope(middle) < 0.0 { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }

    /// Minus twice the bound over H, without its constants:
    /// ```text
    /// Ω(σ²) = Σ_h [x − ln x + (x > x̲)(ln(1 + t) + η ln(1 + t/η) − t)]      x = γ²/(Hσ²)
    /// t = ½ (x − 1 − η + √((x − 1 − η)² − 4η))
    /// ```
    /// with ln γ² left out, which a singular value of 0 has not.
    fn objective(&self, sigma2: f64) -> f64 {
        let term = |g: &f64| {
            let x = g * g / (self.h * sigma2);
            let noise = x + sigma2.ln();
            if x <= self.edge {
                return noise;
            }
            let t = self.shrunk(x);
            noise + t.ln_1p() + self.eta * (t / self.eta).ln_1p() - t
        };
        self.gamma.iter().map(term).sum()
    }

    /// `dΩ/d ln σ² = Σ_h [1 − x + (x > x̲) t]`: with x = (1 + t)(1 + η/t), t' cancels to
    /// `(1/(1+t) + η/(t+η) − 1) dt/dx = −t/x`.
    fn slope(&self, sigma2: f64) -> f64 {
        let term = |g: &f64| {
            let x = g * g / (self.h * sigma2);
            1.0 - x + if x > self.edge { self.shrunk(x) } else { 0.0 }
        };
        self.gamma.iter().map(term).sum()
    }

    fn shrunk(&self, x: f64) -> f64 {
        let b = x - 1.0 - self.eta;
        0.5 * (b + (b * b - 4.0 * self.eta).max(0.0).sqrt())
    }

    /// The answer at σ², γ and σ² in units of `unit`.
    fn solution(&self, sigma2: f64, unit: f64, n_rows: usize) -> EmpiricalVb {
        let (l, h, n) = (self.l, self.h, n_rows as f64);
        let threshold = (sigma2 * h * self.edge).sqrt();
        let kept: Vec<f64> = self.gamma.iter().copied().filter(|g| *g > threshold).collect();
        // γ̂ = γ/2 [1 − (L+H)σ²/γ² + √((…)² − 4LHσ⁴/γ⁴)] = Hσ² t/γ
        let singular: Vec<f64> =
            kept.iter().map(|g| h * sigma2 * self.shrunk(g * g / (h * sigma2)) / g).collect();
        let pairs = || kept.iter().zip(&singular);
        let squares: f64 = self.gamma.iter().map(|g| g * g).sum();
        let gain: f64 = pairs()
            .map(|(g, s)| {
                let fit = g * s / sigma2;
                h * (fit / h).ln_1p() + l * (fit / l).ln_1p() - fit
            })
            .sum();
        let ln_noise = (2.0 * PI * sigma2).ln() + 2.0 * unit.ln();
        EmpiricalVb {
            n_components: kept.len(),
            noise_variance: sigma2 * unit * unit,
            threshold: threshold * unit,
            bound: -0.5 * (l * h * ln_noise + squares / sigma2 + gain),
            loading_lengths: pairs().map(|(g, s)| (s * s / n + sigma2 * s / g).sqrt() * unit).collect(),
            loading_variances: pairs()
                .map(|(g, s)| (g * s / sigma2 + n) * (sigma2 / g).powi(2) / n * unit * unit)
                .collect(),
            singular_values: singular.iter().map(|s| s * unit).collect(),
        }
    }
}

/// Where `f` is smallest between `low` and `high`, by golden section.
fn minimum(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    for _ in 0..60 {
        let (a, b) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        if f(a) > f(b) { low = a } else { high = b }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The closed form satisfies the updates of mean-field variational Bayes, component by component:
    /// ```text
    /// ⟨w wᵀ⟩, ⟨x xᵀ⟩:   σ_x² = 1/(1 + ⟨‖w‖²⟩/σ²)      x̂ = σ_x² γ ‖ŵ‖/σ² u       Σ⟨x²⟩ = n
    ///                    σ_w² = 1/(α + Σ⟨x²⟩/σ²)       ŵ = σ_w² γ ‖x̂‖/σ² v       α = d/⟨‖w‖²⟩
    /// n d σ² = Σγ² − Σ_kept [2 γ γ̂ − n ⟨‖w‖²⟩]
    /// ```
    #[test]
    fn the_posterior_is_a_fixed_point_of_the_iteration() {
        for (n, d) in [(60_usize, 5_usize), (5, 60), (30, 30)] {
            let gamma: Vec<f64> = (0..n.min(d))
                .map(|h| {
                    [90.0, 40.0]
                        .get(h)
                        .copied()
                        .unwrap_or((n as f64).sqrt() + (d as f64).sqrt() - 0.2 * h as f64)
                })
                .map(|g: f64| g.max(0.5))
                .collect();
            let found = EmpiricalVb::from_singular_values(&gamma, n, d, None).unwrap();
            assert_eq!(found.n_components, 2, "{n} × {d}");
            let (n, d, s2) = (n as f64, d as f64, found.noise_variance);
            let near =
                |what: &str, a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-7, "{what}: {a} and {b}");
            let mut errors: f64 = gamma.iter().map(|g| g * g).sum();
            for k in 0..2 {
                let (g, shrunk) = (gamma[k], found.singular_values[k]);
                let (w, w_variance) = (found.loading_lengths[k], found.loading_variances[k]);
                let w2 = w * w + d * w_variance;
                let x_variance = 1.0 / (1.0 + w2 / s2);
                let x = x_variance * g * w / s2;
                near("γ̂", x * w, shrunk);
                near("Σ⟨x²⟩", x * x + n * x_variance, n);
                near("σ_w²", w_variance, 1.0 / (d / w2 + n / s2));
                near("‖ŵ‖", w, w_variance * g * x / s2);
                errors += n * w2 - 2.0 * g * shrunk;
            }
            near("σ²", s2, errors / (n * d));
        }
    }

    /// √η times 2.5129 is often quoted; that holds at η = 1 and is a third too low at 0.001.
    #[test]
    fn the_edge_is_above_that_of_pure_noise() {
        assert!((edge_of(1.0) - 2.5129).abs() < 1e-4);
        for eta in [1e-6, 1e-3, 0.1, 0.5, 1.0] {
            let tau = edge_of(eta);
            let equation = tau.ln_1p() / tau + (tau / eta).ln_1p() / (tau / eta);
            assert!((equation - 1.0).abs() < 1e-12, "η = {eta}: {equation}");
            let edge = (1.0 + tau) * (1.0 + eta / tau);
            assert!(edge > (1.0 + f64::sqrt(eta)).powi(2), "η = {eta}: {edge}");
        }
    }

    #[test]
    fn units_and_order_do_not_matter() {
        let gamma = [30.0, 11.0, 10.0, 9.0, 8.0];
        let plain = EmpiricalVb::from_singular_values(&gamma, 80, 5, None).unwrap();
        for unit in [1e-150, 1e-4, 1e6, 1e150] {
            let other: Vec<f64> = gamma.iter().rev().map(|g| g * unit).collect();
            let got = EmpiricalVb::from_singular_values(&other, 80, 5, None).unwrap();
            assert_eq!(got.n_components, plain.n_components);
            assert!((got.singular_values[0] / unit / plain.singular_values[0] - 1.0).abs() < 1e-9);
            assert!((got.noise_variance / unit / unit / plain.noise_variance - 1.0).abs() < 1e-9);
            let moved = plain.bound - 400.0 * unit.ln();
            assert!((got.bound / moved - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn what_cannot_be_answered_is_refused() {
        let refused =
            |gamma: &[f64], n, d, noise| EmpiricalVb::from_singular_values(gamma, n, d, noise).unwrap_err();
        assert!(matches!(refused(&[1.0], 3, 2, None), Error::WrongLength { expected: 2, got: 1, .. }));
        assert!(matches!(refused(&[1.0, f64::NAN], 3, 2, None), Error::OutOfRange { .. }));
        assert!(matches!(refused(&[1.0, 0.5], 3, 2, Some(0.0)), Error::OutOfRange { .. }));
        assert!(matches!(refused(&[0.0, 0.0], 3, 2, None), Error::AllConstant { columns: 2 }));
        let rank_two = [9.0, 7.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        assert!(matches!(refused(&rank_two, 90, 8, None), Error::DegenerateNoise { rank: 2, .. }));
    }
}
