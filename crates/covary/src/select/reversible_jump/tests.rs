//! Each distribution of the sampler against what it must be, by integration.

use super::directions::{Angular, rotation};
use super::truncated_gamma;
use crate::Matrix;
use crate::linalg::normal;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(7)
}

/// Mean of `value` and its standard error over 100 000 draws.
fn average(mut value: impl FnMut() -> f64) -> (f64, f64) {
    let draws: Vec<f64> = (0..100_000).map(|_| value()).collect();
    let n = draws.len() as f64;
    let mean = draws.iter().sum::<f64>() / n;
    let variance = draws.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    (mean, (variance / n).sqrt())
}

/// Mean of `value` under the density `exp(ln_density)` on (low, high), by the midpoint rule.
fn integral(low: f64, high: f64, ln_density: impl Fn(f64) -> f64, value: impl Fn(f64) -> f64) -> f64 {
    let n = 200_000;
    let at = |k: usize| low + (high - low) * (k as f64 + 0.5) / n as f64;
    let top = (0..n).map(|k| ln_density(at(k))).fold(f64::NEG_INFINITY, f64::max);
    let (mut sum, mut weight) = (0.0, 0.0);
    for k in 0..n {
        let w = (ln_density(at(k)) - top).exp();
        sum += w * value(at(k));
        weight += w;
    }
    sum / weight
}

#[test]
fn the_integral_of_the_truncated_gamma_is_golden() {
    let text = include_str!("../../../tests/golden/part2/rjmcmc_small.json");
    let case: Value = serde_json::from_str(text).unwrap();
    let numbers =
        |v: &Value| -> Vec<f64> { v.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect() };
    let (a, b) = (numbers(&case["input"]["trunc_gamma"]["a"]), numbers(&case["input"]["trunc_gamma"]["b"]));
    let tolerance = case["tolerance"]["log_trunc_gamma_rel"].as_f64().unwrap();
    for (k, want) in numbers(&case["expected"]["log_trunc_gamma"]).into_iter().enumerate() {
        let got = truncated_gamma::ln_integral(a[k], b[k]) - b[k];
        assert!((got - want).abs() <= tolerance * want.abs().max(1.0), "{k}: {got} {want}");
    }
}

#[test]
fn both_forms_of_the_integral_meet_and_none_underflows() {
    for a in [1.1, 3.0, 50.1, 5000.0] {
        let (left, right) =
            (truncated_gamma::ln_integral(a, a), truncated_gamma::ln_integral(a, a * (1.0 + 1e-12)));
        assert!((left - right).abs() < 1e-9 * left.abs().max(1.0), "{a}: {left} {right}");
        assert_eq!(truncated_gamma::ln_integral(a, 0.0), -a.ln());
        for beta in [1e-300, 1e-3, 1e3, 1e6, 1e12] {
            assert!(truncated_gamma::ln_integral(a, beta).is_finite(), "{a} {beta}");
        }
    }
}

#[test]
fn truncated_gamma_draws_have_the_mean_of_their_density() {
    let mut rng = rng();
    for (a, beta) in [
        (1.1, 0.0),
        (1.1, 0.1),
        (1.1, 0.3),
        (2.5, 3.9),
        (5.5, 20.0),
        (50.1, 10.0),
        (50.1, 46.0),
        (50.1, 49.0),
        (50.1, 80.0),
        (500.0, 480.0),
    ] {
        let (mean, error) = average(|| truncated_gamma::draw(a, beta, &mut rng));
        let want = integral(0.0, 1.0, |p| (a - 1.0) * p.ln() - beta * p, |p| p);
        assert!((mean - want).abs() < 4.0 * error, "{a}, {beta}: {mean} ± {error}, {want}");
    }
}

#[test]
fn rotations_are_von_mises() {
    let mut rng = rng();
    for (x, y) in
        [(0.0, 0.0), (1e-9, 0.0), (0.3, -0.2), (-2.0, 1.0), (-3.0, -1e-12), (40.0, 70.0), (-1e5, 3e4)]
    {
        let ln_density = |t: f64| x * (2.0 * t).cos() + y * (2.0 * t).sin();
        let half = std::f64::consts::FRAC_PI_2;
        // Around the mean, where the grid is fine enough for every concentration.
        let center = 0.5 * f64::atan2(y, x);
        let width = (20.0 / (x.hypot(y) + 1e-300).sqrt()).min(half);
        for function in [|c: f64, _: f64| c * c, |c: f64, s: f64| c * s] {
            let (mean, error) = average(|| {
                let (c, s) = rotation(x, y, &mut rng);
                assert!((c * c + s * s - 1.0).abs() < 1e-12);
                function(c, s)
            });
            let want = integral(center - width, center + width, ln_density, |t| function(t.cos(), t.sin()));
            assert!((mean - want).abs() < 4.0 * error + 1e-12, "{x}, {y}: {mean} ± {error}, {want}");
        }
    }
}

/// Importance weights against the uniform distribution average to one, in every dimension.
#[test]
fn the_density_of_directions_is_that_of_their_draws() {
    let mut rng = rng();
    for m in [2, 3, 6, 12] {
        let x = normal(2 * m, m, &mut rng);
        let block = x.t_dot(&x);
        for w in [0.0, 0.05, 0.4] {
            let directions = Angular::new(block.clone(), w);
            let (mean, error) = average(|| (-directions.ln_density(directions.draw(&mut rng).1)).exp());
            assert!((mean - 1.0).abs() < 4.5 * error + 1e-9, "{m}, {w}: {mean} ± {error}");
            let (u, along) = directions.draw(&mut rng);
            let of_block: f64 =
                (0..m).map(|i| u[i] * (0..m).map(|j| block[(i, j)] * u[j]).sum::<f64>()).sum();
            assert!((along - of_block).abs() < 1e-12 * block.trace());
            assert!((u.iter().map(|u| u * u).sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }
}

/// In the plane the mean of uᵀ M u under the target follows from the draws and their weights.
#[test]
fn directions_weighted_by_the_target_have_its_mean() {
    let mut rng = rng();
    let (l, w) = ([3.0, 1.0], 0.8);
    let directions = Angular::new(Matrix::diagonal(&l), w);
    let (mut sum, mut weight) = (0.0, 0.0);
    for _ in 0..200_000 {
        let along = directions.draw(&mut rng).1;
        let share = (w * along - directions.ln_density(along)).exp();
        sum += share * along;
        weight += share;
    }
    let along = |t: f64| l[0] * t.cos().powi(2) + l[1] * t.sin().powi(2);
    let want = integral(0.0, std::f64::consts::TAU, |t| w * along(t), along);
    assert!((sum / weight - want).abs() < 0.01, "{} {want}", sum / weight);
}
