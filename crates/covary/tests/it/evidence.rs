//! Bayesian PCA by type-II maximum likelihood and by closed-form variational Bayes: golden cases, and
//! how often each finds the right number of components.

#![allow(clippy::print_stdout, reason = "the counts are what one runs these tests for: `-- --nocapture`")]

use crate::common::{Golden, dataset, flat, matrix};
use covary::data::simulate;
use covary::infer::{AlphaRule, Evidence, ObjectiveKind, Spectral, Termination};
use covary::select::{Criteria, EmpiricalVb};
use covary::{Dataset, Error, Estimator, Matrix, Spec};
use serde_json::Value;

const TOY_A: [f64; 10] = [5.0, 4.0, 3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

fn method(rule: AlphaRule) -> Evidence {
    Evidence { rule, ..Evidence::default() }
}

fn check_type_two(case: &Golden, rule: AlphaRule, want: &Value) {
    let data = dataset(case.input("data"));
    let d = data.n_columns();
    let fit = method(rule).fit(&data, &Spec::ppca(d - 1)).unwrap();
    case.check_one("k", fit.model.n_components() as f64, &want["k"]);
    case.check_one("sigma2", fit.model.noise().variance(0), &want["sigma2"]);
    case.check("W", fit.model.loadings().as_slice(), &want["W"]);
    case.check("alpha", &fit.report.relevance, &want["alpha"]);
    assert_eq!(fit.report.objective.kind, ObjectiveKind::LogPosterior);
    assert_eq!(fit.report.termination, Termination::ClosedForm);
    let posterior = flat(&want["loglik"])[0] + flat(&want["log_prior_W"])[0];
    case.check_one("J", fit.report.objective.value, &posterior.into());

    let spectrum = Spectral::default().spectrum(&data, d, false).unwrap();
    case.check("eigenvalues", &spectrum.eigenvalues, case.expected("eigenvalues"));
    let found = method(rule).components(&spectrum, d).unwrap();
    case.check("model_variances", &found.model_variances, &want["model_variances"]);
    case.check("column_norm2", &found.squared_lengths(), &want["column_norm2"]);
    let gamma: Vec<f64> =
        found.relevance.iter().zip(found.squared_lengths()).map(|(alpha, w2)| alpha * w2).collect();
    case.check("gamma", &gamma, &want["gamma"]);
    let evidence = found.log_evidence(&spectrum).unwrap().unwrap();
    case.check_one("evidence", evidence, &want["laplace_log_evidence_exact"]);
    // The Hessian of complete data is the same for every row of W: diag(α + (N + γ)/σ²).
    let n = data.n_rows() as f64;
    let ln_det: f64 = found
        .relevance
        .iter()
        .zip(&gamma)
        .map(|(alpha, gamma)| d as f64 * (alpha + (n + gamma) / found.noise_variance).ln())
        .sum();
    case.check_one("log_det_hessian_complete", ln_det, &want["log_det_hessian_complete"]);
}

#[test]
fn type_two_golden() {
    let case = Golden::open("bpca_type2");
    check_type_two(&case, AlphaRule::Simple, case.expected("simple"));
    check_type_two(&case, AlphaRule::EffectiveNumber, case.expected("gamma"));
    let wide = Golden::open("bpca_type2_wide");
    check_type_two(&wide, AlphaRule::Simple, wide.expected("simple"));
}

/// Singular values of a matrix as it is: beside its mirror image it has mean 0.
fn singular_values(values: &Matrix) -> Vec<f64> {
    let (n, d) = (values.n_rows(), values.n_columns());
    let mirrored = Matrix::from_fn(2 * n, d, |i, j| if i < n { values[(i, j)] } else { -values[(i - n, j)] });
    let spectrum = Spectral::default().spectrum(&Dataset::new(mirrored).unwrap(), d, false).unwrap();
    spectrum.eigenvalues[..n.min(d)].iter().map(|l| (l * n as f64).sqrt()).collect()
}

#[test]
fn empirical_vb_golden() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/part2/evb_analytic.json");
    let case: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let check = |what: &str, got: &[f64], want: &Value| {
        let want = flat(want);
        assert_eq!(got.len(), want.len(), "{what}");
        for (g, w) in got.iter().zip(&want) {
            assert!((g - w).abs() <= 1e-6 * w.abs().max(1.0), "{what}: got {g}, want {w}");
        }
    };
    let cases = case["expected"]["cases"].as_array().unwrap();
    for (values, want) in case["input"]["matrices"].as_array().unwrap().iter().zip(cases) {
        let values = matrix(values);
        let gamma = singular_values(&values);
        for (key, noise) in [("free_noise", None), ("sigma2_fixed_1", Some(1.0))] {
            let want = &want[key];
            let found = EmpiricalVb::from_singular_values(&gamma, values.n_rows(), values.n_columns(), noise)
                .unwrap();
            check("rank", &[found.n_components as f64], &want["rank"]);
            check("threshold", &[found.threshold], &want["threshold"]);
            check("shrunk", &found.singular_values, &want["shrunk"]);
            check("bound", &[found.bound], &want["bound"]);
            if noise.is_none() {
                check("sigma2", &[found.noise_variance], &want["sigma2"]);
            }
        }
    }
}

/// Numbers of components that each method finds in 50 tables of toy A: evidence with either rule, and
/// variational Bayes; Minka's evidence beside them.
fn dimensions(rows: usize) -> [Vec<usize>; 4] {
    let mut found: [Vec<usize>; 4] = Default::default();
    for seed in 0..50 {
        let (data, _) = simulate::rotated(rows, &TOY_A, 1000 * rows as u64 + seed);
        let spectrum = Spectral::default().spectrum(&data, 10, false).unwrap();
        let by = |rule| method(rule).components(&spectrum, 9).unwrap().n_components();
        found[0].push(by(AlphaRule::Simple));
        found[1].push(by(AlphaRule::EffectiveNumber));
        found[2].push(EmpiricalVb::from_spectrum(&spectrum).unwrap().n_components);
        found[3].push(Criteria::from_spectrum(&spectrum).unwrap().chosen().evidence.unwrap_or(0));
    }
    found
}

/// The reference has, of 50 tables with 15, 20, 30, 50 and 100 rows: type-II 17, 30, 34, 49, 50;
/// closed-form variational Bayes 0, 4, 11, 41, 50; Minka 19, 34, 38, 49, 48 [M 2.12.1]. A
/// count near 35 has a standard error of 3.
#[test]
fn four_of_ten_components_are_found() {
    let names = ["evidence, simple", "evidence, effective number", "variational Bayes", "Minka"];
    let mut counts = Vec::new();
    for rows in [15, 20, 30, 50, 100] {
        let found = dimensions(rows);
        let right = |k: &Vec<usize>| k.iter().filter(|k| **k == 4).count();
        for (name, k) in names.iter().zip(&found) {
            let mean = k.iter().sum::<usize>() as f64 / 50.0;
            println!("{rows:4} rows, {name}: {} of 50 right, {mean:.2} on average", right(k));
        }
        counts.push(found.each_ref().map(right));
    }
    let last = counts[4];
    assert!(last[0] >= 46 && last[1] >= 46 && last[2] >= 46, "{last:?}");
    // Within three standard errors of the difference from the reference.
    for (got, want) in counts.iter().zip([(17.0, 0.0), (30.0, 4.0), (34.0, 11.0), (49.0, 41.0), (50.0, 50.0)])
    {
        let near = |got: usize, want: f64| {
            let p = (want + 0.5) / 51.0;
            (got as f64 - want).abs() <= 3.0 * (2.0 * 50.0 * p * (1.0 - p)).sqrt() + 1.0
        };
        assert!(near(got[0], want.0) && near(got[2], want.1), "{counts:?}");
    }
}

#[test]
fn four_of_ten_components_are_found_with_gaps() {
    for rule in [AlphaRule::Simple, AlphaRule::EffectiveNumber] {
        let (mut right, mut steps) = (0, 0);
        for seed in 0..50 {
            let (whole, _) = simulate::rotated(100, &TOY_A, seed);
            let fit = method(rule).fit(&simulate::hide(&whole, 0.2, seed + 500), &Spec::ppca(9)).unwrap();
            assert!(fit.report.converged(), "{:?}", fit.report.warnings);
            assert_eq!(fit.report.relevance.len(), fit.model.n_components());
            if rule == AlphaRule::Simple {
                let trace = &fit.report.trace;
                assert!(trace.windows(2).all(|p| p[1] >= p[0] - 1e-9 * (1.0 + p[0].abs())), "{trace:?}");
            }
            right += usize::from(fit.model.n_components() == 4);
            steps += fit.report.n_iterations();
        }
        println!("20 % gaps, {rule:?}: {right} of 50 right, {} steps since the last was dropped", steps / 50);
        assert!(right >= 44, "{rule:?}: {right} of 50");
    }
}

/// With as many candidates as a row has cells σ² could fall to 0; it does not.
#[test]
fn many_gaps_do_not_explain_the_noise_away() {
    let mut found = Vec::new();
    for seed in 0..20 {
        let (whole, _) = simulate::rotated(100, &TOY_A, seed);
        let hidden = simulate::hide(&whole, 0.4, seed + 50);
        let fit = Evidence::default().fit(&hidden, &Spec::ppca(9)).unwrap();
        assert!(fit.model.noise().variance(0) > 0.5, "seed {seed}: σ² = {}", fit.model.noise().variance(0));
        found.push(fit.model.n_components());
    }
    println!("40 % gaps: {found:?}");
    assert!(found.iter().filter(|k| **k == 4).count() >= 15 && found.iter().all(|k| *k <= 4), "{found:?}");
}

#[test]
fn a_table_of_noise_has_no_components() {
    let (data, _) = simulate::rotated(200, &[1.0; 8], 1);
    for data in [data.clone(), simulate::hide(&data, 0.1, 2)] {
        let fit = Evidence::default().fit(&data, &Spec::ppca(7)).unwrap();
        assert_eq!(fit.model.n_components(), 0);
        assert!(fit.report.relevance.is_empty() && fit.report.converged());
    }
}

#[test]
fn what_the_method_does_not_fit_is_refused() {
    let (data, _) = simulate::rotated(50, &TOY_A, 1);
    let diagonal = Evidence::default().fit(&data, &Spec::factor_analysis(2)).unwrap_err();
    assert!(matches!(diagonal, Error::Unsupported { method: "evidence", what: "diagonal noise", .. }));
    let spec = Spec { prior: covary::spec::Prior::weak(), ..Spec::ppca(2) };
    let prior = Evidence::default().fit(&data, &spec).unwrap_err();
    assert!(matches!(prior, Error::Unsupported { method: "evidence", what: "a prior", .. }));
    let tolerance = Evidence { tolerance: f64::NAN, ..Evidence::default() };
    assert!(matches!(tolerance.fit(&data, &Spec::ppca(2)).unwrap_err(), Error::OutOfRange { .. }));
    let short = Spectral::default().spectrum(&data, 5, false).unwrap();
    let found = Evidence::default().components(&short, 5).unwrap();
    assert!(matches!(found.log_evidence(&short).unwrap_err(), Error::WrongLength { .. }));
    assert!(matches!(EmpiricalVb::from_spectrum(&short).unwrap_err(), Error::WrongLength { .. }));
}

/// The number asked for is the most there may be.
#[test]
fn no_more_components_are_kept_than_asked_for() {
    let (whole, _) = simulate::rotated(100, &TOY_A, 1);
    for data in [whole.clone(), simulate::hide(&whole, 0.1, 2)] {
        for asked in 0..4 {
            let fit = Evidence::default().fit(&data, &Spec::ppca(asked)).unwrap();
            assert_eq!(fit.model.n_components(), asked);
        }
    }
}
