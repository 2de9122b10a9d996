//! The density ∝ φ^(a−1) e^(−βφ) on (0, 1), a > 1: its integral and its draws.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Gamma};
use statrs::function::gamma::{gamma_lr, ln_gamma};

/// `β + ln ∫₀¹ φ^(a−1) e^(−βφ) dφ`: the integral with e^β taken out, which is how it is used, and so
/// that nothing under- or overflows.
///
/// ```text
/// β ≤ a:  ln Σ_k β^k / (a (a+1) … (a+k))                    (all terms positive)
/// β > a:  β + ln Γ(a) − a ln β + ln P(a, β)                 (P, the regularized incomplete gamma, is near ½ or above)
/// ```
pub(super) fn ln_integral(a: f64, beta: f64) -> f64 {
    if beta > a {
        return beta + ln_gamma(a) - a * beta.ln() + gamma_lr(a, beta).ln();
    }
    let (mut term, mut sum, mut k) = (1.0, 1.0, a);
    while term > 1e-17 * sum {
        k += 1.0;
        term *= beta / k;
        sum += term;
    }
    sum.ln() - a.ln()
}

/// One draw, by rejection.
///
/// The logarithm of the density is concave, so it lies below its tangent at 1: proposals from that
/// exponential fit where the density rises up to 1, and wherever β is small. Elsewhere a good part of
/// the untruncated Gamma distribution lies in (0, 1) and proposes.
pub(super) fn draw(a: f64, beta: f64, rng: &mut impl Rng) -> f64 {
    let slope = a - 1.0 - beta;
    if beta > 4.0 && slope <= 0.5 * a.sqrt() {
        let gamma = Gamma::new(a, 1.0 / beta).expect("a > 1 and β > 4");
        loop {
            let phi = gamma.sample(rng);
            if phi < 1.0 {
                return phi;
            }
        }
    }
    loop {
        // 1 − φ is exponential of rate `slope` (of either sign), cut at 1.
        let u: f64 = rng.random();
        let below = if slope.abs() > 1e-9 { -(u * (-slope).exp_m1()).ln_1p() / slope } else { u };
        let phi = 1.0 - below;
        if phi > 0.0 && rng.random::<f64>() < ((a - 1.0) * ((-below).ln_1p() + below)).exp() {
            return phi;
        }
    }
}
