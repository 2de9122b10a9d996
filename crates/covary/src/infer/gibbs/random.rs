//! The few distributions a sweep draws from.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Gamma, StandardNormal};
use std::f64::consts::PI;

/// A standard normal number.
pub(super) fn standard_normal(rng: &mut impl Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// Gamma of this shape and rate. The rate is divided out: what is rejected on the way depends on the
/// shape alone, so that the same seed walks the same way in other units.
pub(super) fn gamma(shape: f64, rate: f64, rng: &mut impl Rng) -> f64 {
    let unit: f64 = Gamma::new(shape, 1.0).expect("a positive shape").sample(rng);
    // A tiny shape may underflow to 0, whose inverse nothing survives.
    unit.max(f64::MIN_POSITIVE) / rate
}

/// Relevances beyond these are numbers that no table could tell from them: loadings of 10⁵ standard deviations
/// of the noise, or of 10⁻⁵. Without them a prior with next to no mass in between overflows.
const RELEVANCES: (f64, f64) = (1e-10, 1e10);

/// A relevance: Gamma of this shape and rate, within reason.
pub(super) fn drawn_relevance(shape: f64, rate: f64, rng: &mut impl Rng) -> f64 {
    gamma(shape, rate, rng).clamp(RELEVANCES.0, RELEVANCES.1)
}

/// Scaled inverse χ²: `ν s² / χ²_ν`, given ν and ν s².
pub(super) fn scaled_inverse_chi_squared(nu: f64, nu_times_scale: f64, rng: &mut impl Rng) -> f64 {
    1.0 / gamma(0.5 * nu, 0.5 * nu_times_scale, rng)
}

/// Angle with density ∝ `exp(a cos φ + b sin φ)`: von Mises, by rejection under a wrapped Cauchy
/// (Best & Fisher 1979, Applied Statistics 28).
pub(super) fn von_mises(a: f64, b: f64, rng: &mut impl Rng) -> f64 {
    let kappa = a.hypot(b);
    // Nearly flat, where ρ below would be a difference of equal numbers: by rejection from the uniform.
    if kappa.is_nan() || kappa < 1e-2 {
        loop {
            let angle = 2.0 * PI * rng.random::<f64>();
            let rejected = rng.random::<f64>() > (a * angle.cos() + b * angle.sin() - kappa).exp();
            if !rejected {
                return angle;
            }
        }
    }
    // Too narrow to tell from normal.
    let center = b.atan2(a);
    if kappa > 1e6 {
        return center + standard_normal(rng) / kappa.sqrt();
    }
    let tau = 1.0 + (1.0 + 4.0 * kappa * kappa).sqrt();
    let rho = (tau - (2.0 * tau).sqrt()) / (2.0 * kappa);
    let r = (1.0 + rho * rho) / (2.0 * rho);
    loop {
        let (u, v, side): (f64, f64, bool) = (rng.random(), rng.random(), rng.random());
        let z = (PI * u).cos();
        let f = (1.0 + r * z) / (r + z);
        let c = kappa * (r - f);
        if c * (2.0 - c) > v || (c / v).ln() + 1.0 - c >= 0.0 {
            let angle = f.clamp(-1.0, 1.0).acos();
            return center + if side { angle } else { -angle };
        }
    }
}

/// Generalized inverse Gaussian, density ∝ `x^(p−1) exp(−(a x + b / x) / 2)`, a, b > 0: rejection
/// under three pieces in `ln x`, where the density is log-concave (Devroye 2014, Statistics and
/// Computing 24).
pub(super) fn generalized_inverse_gaussian(p: f64, a: f64, b: f64, rng: &mut impl Rng) -> f64 {
    // Loadings of 0 would leave no b.
    let b = b.max(f64::MIN_POSITIVE);
    let (omega, lambda) = ((a * b).sqrt(), p.abs());
    if !omega.is_finite() {
        return (b / a).sqrt();
    }
    let alpha = omega.hypot(lambda) - lambda;
    let psi = |x: f64| -alpha * (x.cosh() - 1.0) - lambda * (x.exp_m1() - x);
    let slope = |x: f64| -alpha * x.sinh() - lambda * x.exp_m1();
    let t = match -psi(1.0) {
        y if y > 2.0 => (2.0 / (alpha + lambda)).sqrt(),
        y if y < 0.5 => (4.0 / (alpha + 2.0 * lambda)).ln(),
        _ => 1.0,
    };
    let s = match -psi(-1.0) {
        y if y > 2.0 => (4.0 / (alpha * 1.0_f64.cosh() + lambda)).sqrt(),
        y if y < 0.5 => {
            (1.0 / lambda).min((1.0 / alpha + (1.0 / (alpha * alpha) + 2.0 / alpha).sqrt()).ln_1p())
        }
        _ => 1.0,
    };
    let (eta, zeta, theta, xi) = (-psi(t), -slope(t), -psi(-s), slope(-s));
    let (left, right) = (1.0 / xi, 1.0 / zeta);
    let (low, high) = (-(s - left * theta), t - right * eta);
    let middle = high - low;
    let x = loop {
        let (u, v, w): (f64, f64, f64) = (rng.random(), 1.0 - rng.random::<f64>(), rng.random());
        let place = u * (left + middle + right);
        let (x, hat) = if place < middle {
            (low + middle * v, 1.0)
        } else if place < middle + right {
            let x = high - right * v.ln();
            (x, (-eta - zeta * (x - t)).exp())
        } else {
            let x = low + left * v.ln();
            (x, (-theta + xi * (x + s)).exp())
        };
        if w * hat <= psi(x).exp() {
            break x;
        }
    };
    let ratio = lambda / omega;
    let unit = (ratio + 1.0_f64.hypot(ratio)) * x.exp();
    (b / a).sqrt() * if p < 0.0 { 1.0 / unit } else { unit }
}
