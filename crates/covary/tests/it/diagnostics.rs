//! Do R-hat and effective sample size say what chains are worth?

use crate::common::{flat, golden};
use crate::dense::normal;
use covary::Error;
use covary::infer::{ChainSummary, effective_sample_size, split_r_hat};

/// `xₜ = r xₜ₋₁ + eₜ`, whose effective size is known: n (1 − r)/(1 + r).
fn autoregressive(r: f64, n: usize, seed: u64) -> Vec<f64> {
    let noise = normal(n, 1, seed);
    let mut x = 0.0;
    noise
        .as_slice()
        .iter()
        .map(|e| {
            x = r * x + e;
            x
        })
        .collect()
}

#[test]
fn golden_chains() {
    let case = golden("part2", "mcmc_diagnostics");
    let chains: Vec<Vec<f64>> = case["input"]["chains"].as_array().unwrap().iter().map(flat).collect();
    let tolerance = case["tolerance"]["values_rel"].as_f64().unwrap();
    let check = |chains: &[Vec<f64>], key: &str| {
        let want = |what: &str| case["expected"][key][what].as_f64().unwrap();
        let got = [split_r_hat(chains).unwrap().unwrap(), effective_sample_size(chains).unwrap()];
        for (got, want) in got.into_iter().zip([want("rhat"), want("ess")]) {
            assert!((got - want).abs() <= tolerance * want.abs().max(1.0), "{key}: {got}, {want}");
        }
    };
    check(&chains, "four");
    check(&chains[..1], "one");
}

#[test]
fn the_effective_size_of_an_autoregression_is_the_textbook_one() {
    for r in [-0.3, 0.0, 0.5, 0.9] {
        let chains: Vec<_> = (0..4).map(|seed| autoregressive(r, 20_000, seed)).collect();
        let summary = ChainSummary::of(&chains).unwrap();
        let want = 80_000.0 * (1.0 - r) / (1.0 + r);
        assert!((summary.ess / want - 1.0).abs() < 0.15, "{r}: {} {want}", summary.ess);
        assert!(summary.r_hat.unwrap() < 1.01);
        assert!(summary.mean.abs() < 4.0 * summary.mcse, "{summary:?}");
    }
}

#[test]
fn a_drift_shows_in_a_single_chain() {
    let drifting = |slope: f64| -> Vec<f64> {
        autoregressive(0.0, 200, 1).iter().enumerate().map(|(t, x)| x + slope * t as f64).collect()
    };
    assert!(split_r_hat(&[drifting(0.0)]).unwrap().unwrap() < 1.02);
    assert!(split_r_hat(&[drifting(0.05)]).unwrap().unwrap() > 1.5);
}

#[test]
fn constant_chains_count_in_full_unless_they_stand_apart() {
    let summary = ChainSummary::of(&[vec![0.1; 7], vec![0.1; 7]]).unwrap();
    assert_eq!((summary.r_hat, summary.ess, summary.sd, summary.mcse), (None, 12.0, 0.0, 0.0));
    let apart = ChainSummary::of(&[vec![0.1; 100], vec![0.2; 100]]).unwrap();
    assert_eq!(apart.r_hat, None);
    assert!(apart.ess < 5.0, "{apart:?}");
}

#[test]
fn the_shortest_chains_have_an_answer_and_shorter_ones_are_refused() {
    for n in 4..12 {
        let summary = ChainSummary::of(&[autoregressive(0.5, n, 3), autoregressive(0.5, n, 4)]).unwrap();
        assert!(summary.ess.is_finite() && summary.ess > 0.0, "{n}: {summary:?}");
    }
    let refused = |chains: &[Vec<f64>]| ChainSummary::of(chains).unwrap_err();
    assert!(matches!(refused(&[]), Error::WrongLength { expected: 1, got: 0, .. }));
    assert!(matches!(refused(&[vec![1.0; 5], vec![1.0; 6]]), Error::WrongLength { expected: 5, got: 6, .. }));
    let short = refused(&[vec![1.0; 3]]);
    assert_eq!(short.to_string(), "number of draws in a chain is 3; it must be at least 4");
    let nan = refused(&[vec![1.0, 2.0, f64::NAN, 4.0]]);
    assert_eq!(nan.to_string(), "a draw is NaN; it must be finite");
}
