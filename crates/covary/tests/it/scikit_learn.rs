//! scikit-learn's numbers on its own tables (`tests/golden/scikit_learn`).

use crate::common::{flat, golden, matrix};
use covary::infer::{FixedPoint, Kept, PrincipalAxes};
use covary::{Dataset, Estimator, Matrix, Spec};
use serde_json::Value;
use std::path::Path;

pub(crate) fn table(name: &str) -> Dataset {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/scikit_learn");
    let text = std::fs::read_to_string(folder.join(format!("{name}.csv"))).expect("part of the project");
    let row = |line: &str| line.split(',').map(|cell| cell.parse().expect("a number")).collect::<Vec<f64>>();
    Dataset::new(Matrix::from_rows(&text.lines().map(row).collect::<Vec<_>>())).unwrap()
}

/// `|got − want| ≤ relative |want| + absolute`, element by element.
#[track_caller]
fn check(what: &str, got: &[f64], want: &Value, relative: f64, absolute: f64) {
    let want = flat(want);
    assert_eq!(got.len(), want.len(), "{what}: number of values");
    for (i, (g, w)) in got.iter().zip(&want).enumerate() {
        assert!((g - w).abs() <= relative * w.abs() + absolute, "{what}[{i}]: got {g:e}, want {w:e}");
    }
}

fn cases(name: &str) -> Vec<Value> {
    golden("scikit_learn", name)["cases"].as_array().expect("a list").clone()
}

fn kept(value: &Value) -> Kept {
    match (value.as_u64(), value.as_f64()) {
        (Some(q), _) => Kept::Number(q as usize),
        (_, Some(share)) => Kept::Share(share),
        _ if value.is_string() => Kept::Evidence,
        _ => Kept::All,
    }
}

#[test]
fn principal_components_are_those_of_scikit_learn() {
    for case in cases("pca") {
        let name = case["table"].as_str().unwrap();
        let data = table(name);
        let axes = PrincipalAxes { kept: kept(&case["options"]["n_components"]), ..PrincipalAxes::default() };
        let got = axes.fit(&data).unwrap();
        let what = format!("{name} {}", case["options"]);
        // Zero variances are rounding on both sides.
        let rounding = 1e-13 * got.total_variance;
        check(&what, &got.explained_variance, &case["explained_variance"], 1e-9, rounding);
        check(&what, &got.explained_variance_ratio(), &case["explained_variance_ratio"], 1e-9, 1e-13);
        check(
            &what,
            &got.singular_values(),
            &case["singular_values"],
            1e-9,
            1e-12 * got.singular_values()[0],
        );
        check(&what, &[got.noise_variance], &case["noise_variance"], 1e-9, rounding);
        let shown = got.components.n_rows().min(4);
        let components = &got.components.as_slice()[..shown * data.n_columns()];
        check(&what, components, &case["components"], 1e-9, 1e-10);
        let first = Matrix::from_fn(3, data.n_columns(), |i, j| data.values()[(i, j)]);
        let scores = got.transform(&Dataset::new(first).unwrap(), false).unwrap().first_columns(shown);
        check(&what, scores.as_slice(), &case["transformed"], 1e-9, 1e-9);
    }
}

#[test]
fn factor_analysis_is_that_of_scikit_learn_step_by_step() {
    for case in cases("factor_analysis") {
        let (name, options) = (case["table"].as_str().unwrap(), &case["options"]);
        let what = format!("{name} {} {options}", case["n_components"]);
        let q = case["n_components"].as_u64().unwrap() as usize;
        let method = FixedPoint {
            tolerance: options["tol"].as_f64().unwrap_or(1e-2),
            max_iterations: options["max_iter"].as_u64().unwrap_or(1000) as usize,
            ..FixedPoint::default()
        };
        let spec = Spec { noise_floor: Some(0.0), allow_unidentified: true, ..Spec::factor_analysis(q) };
        let fit = method.fit(&table(name), &spec).unwrap();
        let trace = &fit.report.trace;
        assert_eq!(trace.len() as u64, case["n_iter"].as_u64().unwrap(), "{what}");
        check(&what, &trace[..trace.len().min(5)], &case["first_loglike"], 1e-9, 0.0);
        check(&what, &trace[trace.len() - 2..], &case["last_loglike"], 1e-9, 0.0);
        check(&what, &fit.model.noise_variances(), &case["noise_variance"], 1e-6, 0.0);
        // Their signs are as the decomposition leaves them.
        let (ours, theirs) = (fit.model.loadings().transpose(), matrix(&case["components"]));
        for (k, w) in theirs.rows().enumerate() {
            let largest = w.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
            let side: f64 = w.iter().zip(ours.row(k)).map(|(a, b)| a * b).sum();
            for (a, b) in w.iter().zip(ours.row(k)) {
                let off = (a - b * side.signum()).abs();
                assert!(off <= 1e-6 * a.abs() + 1e-8 * largest, "{what}: component {k} has {b}, want {a}");
            }
        }
    }
}
