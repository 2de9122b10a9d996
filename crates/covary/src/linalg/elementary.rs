//! Elementary functions without branches or calls, so that loops over them are vectorized: libm takes
//! 10 to 20 ns a number, these about 1.

use std::f64::consts::LOG2_E;

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
}
