//! Filling: golden cases of part 3.

use crate::common::{flat, golden, matrix};
use covary::filling::{Gain, calibrate, crps, regress, weights_by_gaps};
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    flat(value)
}

fn counts(value: &Value) -> Vec<usize> {
    flat(value).into_iter().map(|v| v as usize).collect()
}

fn assert_all(got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() <= tolerance * want.abs().max(1.0), "{got}, not {want}");
    }
}

#[test]
fn golden_scores_of_normal_predictions() {
    let case = golden("part3", "crps_pool");
    let y = numbers(&case["input"]["y"]);
    for k in 0..3 {
        let (means, sds) = (numbers(&case["input"]["means"][k]), numbers(&case["input"]["sds"][k]));
        let got: Vec<f64> = (0..y.len()).map(|i| crps(y[i], means[i], sds[i])).collect();
        assert_all(&got, &numbers(&case["expected"]["crps_normal"][k]), 1e-10);
    }
}

#[test]
fn golden_rule_for_ties() {
    let case = golden("part3", "tie_rule");
    let cases = case["input"]["cases"].as_array().unwrap();
    for (input, expected) in cases.iter().zip(case["expected"]["cases"].as_array().unwrap()) {
        let weights = weights_by_gaps(&counts(&input["column"]), &counts(&input["gaps"]));
        assert_all(&weights, &numbers(&expected["weights"]), 1e-10);
        let gain = Gain::of(&numbers(&input["default"]), &numbers(&input["candidate"]), &weights);
        let wanted = [expected["difference"].as_f64().unwrap(), expected["se"].as_f64().unwrap()];
        assert_all(&[gain.mean, gain.standard_error], &wanted, 1e-10);
        assert_eq!(gain.counts(), expected["choose"] == "candidate");
    }
}

#[test]
fn golden_quantile_functions() {
    for name in ["conformal_quantiles", "conformal_tiny"] {
        let case = golden("part3", name);
        let columns = counts(&case["input"]["column"]);
        let residuals: Vec<(usize, f64)> = columns.into_iter().zip(numbers(&case["input"]["z"])).collect();
        let found = calibrate(&residuals, case["input"]["columns"].as_u64().unwrap() as usize);
        let knots = numbers(&case["expected"]["knots"]);
        for (j, quantiles) in found.iter().enumerate() {
            let got: Vec<f64> = knots.iter().map(|&x| quantiles.at(x)).collect();
            assert_all(&got, &numbers(&case["expected"]["Q"][j]), 1e-9);
        }
    }
}

#[test]
fn golden_ridge_on_features() {
    let case = golden("part3", "ridge_features");
    let (input, expected) = (&case["input"], &case["expected"]);
    let features = matrix(&input["features"]);
    let found = regress(&features, &numbers(&input["residual"]), &numbers(&input["loo_sd"])).unwrap();
    let least = numbers(&expected["loo_mean_square"]).into_iter().fold(f64::INFINITY, f64::min);
    assert_all(&[found.loo, found.share], &[least, expected["ratio"].as_f64().unwrap()], 1e-8);
    let rotated = matrix(&input["new_features"]).dot(&found.axes);
    let sds = numbers(&input["new_sd"]);
    let at: Vec<(f64, f64)> = rotated.rows().zip(&sds).map(|(row, &sd)| found.correct(row, sd)).collect();
    assert_all(&at.iter().map(|a| a.0).collect::<Vec<_>>(), &numbers(&expected["add"]), 1e-8);
    assert_all(&at.iter().map(|a| a.1).collect::<Vec<_>>(), &numbers(&expected["new_sd_corrected"]), 1e-8);
}
