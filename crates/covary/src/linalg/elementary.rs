//! Elementary functions without branches or calls, so that loops over them are vectorized: libm takes
//! 10 to 20 ns a number, these about 1.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LOG2_E};

/// ln 2 in two parts: the first has 20 zero bits at its end, so that small multiples of it are exact.
const LN_2: (f64, f64) = (0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10);
/// Added to a number of moderate size it leaves the nearest integer in the last bits.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// `eˣ − 1` as `2ᵏ (p, 1)`: `eˣ = 2ᵏ (1 + p)`, for −700 ≤ x ≤ 700.
#[inline(always)]
fn reduced(x: f64) -> (f64, f64) {
    let shifted = x * LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (x - k * LN_2.0) - k * LN_2.1;
    // Taylor's polynomial of order 13: |r| ≤ ½ ln 2, so that the next term is below 1e-17.
    let mut sum = 1.0 / 6_227_020_800.0;
    for factorial in
        [479_001_600.0, 39_916_800.0, 3_628_800.0, 362_880.0, 40_320.0, 5_040.0, 720.0, 120.0, 24.0, 6.0, 2.0]
    {
        sum = sum * r + 1.0 / factorial;
    }
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52));
    (power, r + r * r * sum)
}

/// `eˣ` for x ≤ 0.
#[inline(always)]
pub(crate) fn exp_of_negative(x: f64) -> f64 {
    let (power, p) = reduced(if x > -700.0 { x } else { -700.0 });
    power * p + power
}

/// `tanh y` and `1 + e^(−2|y|)`, of which `ln 2 cosh y = |y| + ln(1 + e^(−2|y|))`.
#[inline(always)]
pub(crate) fn tanh_and_tail(y: f64) -> (f64, f64) {
    let twice = 2.0 * y.abs();
    let (power, p) = reduced(-if twice < 60.0 { twice } else { 60.0 });
    let minus = power * p + (power - 1.0);
    let tail = 2.0 + minus;
    ((-minus / tail).copysign(y), tail)
}

/// Chebyshev's coefficients of `H(a) = 1 − a Q(a)/φ(a)` in `(a − 5)/(a + 5)`, Q being the upper tail of the standard normal.
const TAIL: [f64; 18] = [
    0.232_424_282_028_807_55,
    -0.388_085_727_856_294_86,
    0.229_880_831_367_549_55,
    -0.101_695_252_798_099_84,
    0.035_528_937_866_285_096,
    -0.009_889_742_288_838_97,
    0.002_140_394_447_084_089,
    -0.000_331_649_559_691_813_56,
    2.650_093_025_003_2e-5,
    2.304_762_851_762_509_6e-6,
    -9.638_146_912_099_854e-7,
    7.132_536_255_019_528e-8,
    1.738_652_774_876_947_6e-8,
    -3.711_321_663_185_662_7e-9,
    -2.117_909_077_281_599e-10,
    1.303_132_081_409_419_4e-10,
    -1.538_630_334_252_388_8e-13,
    -4.434_119_738_050_413e-12,
];

/// The continuous ranked probability score of a standard normal at z, to 1e-13:
/// ```text
/// z (2Φ(z) − 1) + 2φ(z) − 1/√π = |z| + 2φ(z) H(|z|) − 1/√π
/// ```
#[inline(always)]
pub(crate) fn standard_crps(z: f64) -> f64 {
    let a = z.abs();
    let t = (a - 5.0) / (a + 5.0);
    // Clenshaw's sum.
    let (mut last, mut before) = (0.0, 0.0);
    for c in TAIL[1..].iter().rev() {
        let next = 2.0 * t * last - before + c;
        (last, before) = (next, last);
    }
    let h = t * last - before + TAIL[0];
    let density = exp_of_negative(-0.5 * a * a) * (0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2);
    a + 2.0 * density * h - 0.5 * FRAC_2_SQRT_PI
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn within_a_few_units_of_the_last_place() {
        for i in 0..200_000 {
            let y = (f64::from(i) - 100_000.0) * 3.17e-4;
            let (t, tail) = tanh_and_tail(y);
            assert!((t - y.tanh()).abs() <= 4.0 * f64::EPSILON * y.tanh().abs(), "tanh {y}: {t}");
            let want = 1.0 + (-2.0 * y.abs()).exp();
            assert!((tail - want).abs() <= 4.0 * f64::EPSILON, "tail {y}: {tail}");
            let x = -y.abs() * 20.0;
            let (got, want) = (exp_of_negative(x), x.exp());
            assert!((got - want).abs() <= 4.0 * f64::EPSILON * want, "exp {x}: {got}, not {want}");
        }
        assert_eq!(tanh_and_tail(0.0).0, 0.0);
        assert_eq!(tanh_and_tail(-1e300), (-1.0, 1.0));
        assert!(exp_of_negative(-1e300) < 1e-300);
        assert!((tanh_and_tail(1e-200).0 - 1e-200).abs() < 1e-215);
    }

    #[test]
    fn the_crps_of_a_normal_is_that_by_the_error_function() {
        // Of positive terms only; statrs 0.19 is off by up to 1e-13.
        let erf = |x: f64| {
            let (mut term, mut sum, mut k) = (x, x, 1.0);
            while term.abs() > 1e-18 * sum.abs() {
                term *= 2.0 * x * x / (2.0 * k + 1.0);
                (sum, k) = (sum + term, k + 1.0);
            }
            if x.abs() < 6.0 { FRAC_2_SQRT_PI * (-x * x).exp() * sum } else { x.signum() }
        };
        for i in -4000..=4000 {
            let z = f64::from(i) * 0.01;
            let density = (-0.5 * z * z).exp() * FRAC_1_SQRT_2 * FRAC_2_SQRT_PI;
            let want = z * erf(z * FRAC_1_SQRT_2) + density - 0.5 * FRAC_2_SQRT_PI;
            assert!(
                (standard_crps(z) - want).abs() < 1e-13 * (1.0 + z.abs()),
                "{z}: {}",
                standard_crps(z) - want
            );
        }
        assert_eq!(standard_crps(1e200), 1e200);
    }
}
