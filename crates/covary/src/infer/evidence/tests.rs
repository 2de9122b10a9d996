//! One update, and two ways to the same maximum.

use super::ascent::Climb;
use super::{AlphaRule, Evidence};
use crate::data::{Shape, simulate};
use crate::infer::em::moments::{LatentMoments, Maximize};
use crate::infer::em::parameters::Frame;
use crate::infer::golden::{flat, golden, matrix};
use crate::infer::{Estimator, Spectral};
use crate::spec::{LoadingsPrior, Prior};
use crate::{Dataset, Matrix, Spec};
use serde_json::Value;

const RULES: [AlphaRule; 2] = [AlphaRule::Simple, AlphaRule::EffectiveNumber];

/// Loadings, noise, J and both re-estimates of α, step by step at fixed α.
#[test]
fn map_steps_are_those_of_the_golden_case() {
    let case = golden("part1/bpca_map_em_trace");
    let input = &case["input"];
    let check = |what: &str, got: &[f64], want: &Value| {
        let want = flat(want);
        assert_eq!(got.len(), want.len(), "{what}");
        for (g, w) in got.iter().zip(&want) {
            assert!((g - w).abs() <= 1e-8 * (1.0 + w.abs()), "{what}: got {g}, want {w}");
        }
    };
    let data = Dataset::new(matrix(&input["data"])).unwrap();
    let (d, alpha) = (data.n_columns(), flat(&input["alpha"]));
    // Unit scale: the golden case has no frame.
    let frame = Frame::with_scale(data.observed_means().to_vec(), vec![1.0; d], true);
    let sigma2 = input["sigma2_0"].as_f64().unwrap();
    let model = crate::LinearGaussian::new(
        matrix(&input["W0"]),
        data.observed_means().to_vec(),
        crate::Noise::Isotropic(sigma2),
    );
    let mut at = frame.parameters(&model.unwrap());
    let loadings = LoadingsPrior::Ard { relative_alpha: alpha.clone() };
    let prior = Prior { loadings, ..Prior::default() };
    let maximize = Maximize { expand: false, estimate_mean: false, prior: &prior, floor: 0.0 };
    for record in case["expected"]["em"].as_array().unwrap() {
        let moments = LatentMoments::of(&data, &frame, &at);
        at = maximize.step(&moments);
        check("W", at.w.as_slice(), &record["W"]);
        check("sigma2", &at.psi[..1], &record["sigma2"]);
        let objective = LatentMoments::of(&data, &frame, &at).log_likelihood() + at.log_prior(&prior, &frame);
        check("objective", &[objective], &record["objective"]);
        for (rule, key) in RULES.into_iter().zip(["alpha_if_simple", "alpha_if_gamma"]) {
            let gamma = Evidence { rule, ..Evidence::default() }.effective_numbers(&moments, &alpha, &at);
            let again: Vec<f64> =
                gamma.iter().zip(super::ascent::squared_lengths(&at.w)).map(|(g, w2)| g / w2).collect();
            check(key, &again, &record[key]);
            if rule == AlphaRule::EffectiveNumber {
                check("gamma", &gamma, &record["gamma"]);
            }
        }
    }
}

/// The climb that tables with gaps take, walked to its end.
fn ascend(rule: AlphaRule, data: &Dataset, q: usize) -> (Climb, Frame) {
    let spec = Spec::ppca(q);
    let frame = Frame::new(data, &spec);
    let method = Evidence { rule, tolerance: 1e-13, max_iterations: 20_000 };
    (method.ascend(data, &spec, &frame, &mut ()).unwrap(), frame)
}

/// 24 random tables from 12 to 120 rows, 4 to 15 columns and up to 4 signals.
fn problems() -> impl Iterator<Item = Dataset> {
    (0..24_u64).map(|seed| {
        let columns = 4 + (seed as usize * 5) % 12;
        let shape =
            Shape { rows: 12 + (seed as usize * 37) % 109, columns, n_components: 1 + seed as usize % 3 };
        simulate::ppca(shape, 1000 + seed).0
    })
}

#[test]
fn the_climb_ends_at_the_scalar_equations() {
    for (problem, data) in problems().enumerate() {
        for rule in RULES {
            let (n, d) = (data.n_rows(), data.n_columns());
            let spectrum = Spectral::default().spectrum(&data, d, false).unwrap();
            let want = Evidence { rule, ..Evidence::default() }.components(&spectrum, d).unwrap();
            let (climb, frame) = ascend(rule, &data, (d - 1).min((n - 1) / 2));
            let c2 = frame.scale[0] * frame.scale[0];
            let what = format!("problem {problem}, {n} × {d}, {rule:?}");
            assert_eq!(climb.state.alpha.len(), want.n_components(), "{what}");
            let near = |name: &str, got: f64, want: f64| {
                assert!((got / want - 1.0).abs() < 2e-6, "{what}: {name} {got}, want {want}");
            };
            near("σ²", climb.state.at.psi[0] * c2, want.noise_variance);
            for (got, want) in climb.state.alpha.iter().zip(&want.relevance) {
                near("α", got / c2, *want);
            }
            let objective = *climb.trace.last().unwrap();
            near("J", objective, want.log_posterior(&spectrum));
        }
    }
}

/// With gaps, too, ∂J/∂(W, μ, σ²) = 0 where the climb ends; and on the way J never fell.
#[test]
fn with_gaps_the_climb_ends_where_the_gradient_vanishes() {
    for seed in 0..6 {
        let (whole, _) = simulate::rotated(80, &[5.0, 4.0, 3.0, 2.0, 1.0, 1.0, 1.0, 1.0], seed);
        let data = simulate::hide(&whole, 0.2, seed + 100);
        for rule in RULES {
            let (climb, frame) = ascend(rule, &data, 7);
            let (at, alpha) = (&climb.state.at, &climb.state.alpha);
            if rule == AlphaRule::Simple {
                let falls = climb.trace.windows(2).any(|p| p[1] < p[0] - 1e-9 * (1.0 + p[0].abs()));
                assert!(!falls && climb.warnings.is_empty(), "{:?}", climb.trace);
            }
            let model = frame.model(at, &Spec::ppca(alpha.len())).unwrap();
            let gradient = LatentMoments::new(&model, &data).unwrap().gradient();
            let scale = frame.scale[0];
            for (j, slope) in gradient.loadings.rows().enumerate() {
                for i in 0..alpha.len() {
                    let slope = slope[i] * scale - alpha[i] * at.w[(j, i)];
                    assert!(slope.abs() < 1e-3, "seed {seed}, {rule:?}: ∂J/∂W = {slope}");
                }
            }
            assert!(gradient.mean.iter().all(|g| (g * scale).abs() < 1e-3), "∂J/∂μ");
            let noise = gradient.noise.iter().sum::<f64>() * model.noise().variance(0);
            assert!(noise.abs() < 1e-3, "∂J/∂ln σ² = {noise}");
        }
    }
}

/// The largest root is a root, and none is found only where there is none.
#[test]
fn both_rules_solve_their_equations() {
    for (n, d) in [(200, 8), (30, 40), (15, 10)] {
        let (data, _) = simulate::ppca(Shape { rows: n, columns: d, n_components: 3 }, 5);
        let spectrum = Spectral::default().spectrum(&data, d, false).unwrap();
        for rule in RULES {
            let method = Evidence { rule, ..Evidence::default() };
            let found = method.components(&spectrum, d).unwrap();
            let (n, df, s2) = (n as f64, d as f64, found.noise_variance);
            let k = found.n_components();
            let mut noise = spectrum.eigenvalues[k..].iter().sum::<f64>();
            for i in 0..k {
                let (l, v, alpha) = (spectrum.eigenvalues[i], found.model_variances[i], found.relevance[i]);
                let gamma = alpha * (v - s2);
                assert!((n * (l - v) / (v * v) / alpha - 1.0).abs() < 1e-8, "N (λ − v)/v² = α");
                // γ = d (1 − α [H⁻¹]ᵢᵢ) with H = α + (N + γ)/σ²
                let want = match rule {
                    AlphaRule::Simple => df,
                    AlphaRule::EffectiveNumber => df * (1.0 - alpha / (alpha + (n + gamma) / s2)),
                };
                assert!((gamma / want - 1.0).abs() < 1e-8, "γ = {gamma}, want {want}");
                noise += s2 * s2 * alpha / n;
            }
            assert!((noise / ((df - k as f64) * s2) - 1.0).abs() < 1e-10, "the equation of σ²");
            if rule == AlphaRule::Simple {
                let rho = ((df / n).sqrt() + (1.0 + df / n).sqrt()).powi(2);
                let kept = spectrum.eigenvalues.iter().filter(|l| **l / s2 >= rho).count();
                assert_eq!(kept, k, "kept where λ/σ² is at least {rho}");
            }
        }
    }
}

#[test]
fn units_and_offsets_do_not_matter() {
    let (whole, _) = simulate::rotated(60, &[5.0, 4.0, 3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 3);
    for data in [whole.clone(), simulate::hide(&whole, 0.1, 4)] {
        for rule in RULES {
            let method = Evidence { rule, ..Evidence::default() };
            let plain = method.fit(&data, &Spec::ppca(9)).unwrap();
            let scores = |model: &crate::LinearGaussian, data: &Dataset| {
                model.transform(data, crate::Coordinates::Posterior).unwrap()
            };
            let want = scores(&plain.model, &data);
            for (a, b) in [(1e-4, 0.0), (1e6, 1e6), (1e-4, 1.0), (1e-120, 0.0), (1e120, 0.0)] {
                let other = Matrix::from_fn(60, 10, |i, j| a * data.values()[(i, j)] + b);
                let other = Dataset::new(other).unwrap();
                let fit = method.fit(&other, &Spec::ppca(9)).unwrap();
                assert_eq!(fit.model.n_components(), plain.model.n_components(), "× {a} + {b}");
                let got = scores(&fit.model, &other);
                for (g, w) in got.as_slice().iter().zip(want.as_slice()) {
                    assert!((g - w).abs() < 1e-5, "× {a} + {b}: score {g}, want {w}");
                }
                for (g, w) in fit.report.relevance.iter().zip(&plain.report.relevance) {
                    assert!((g * a * a / w - 1.0).abs() < 1e-5, "× {a} + {b}: α {g}, want {w}");
                }
            }
        }
    }
}
