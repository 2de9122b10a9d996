//! Dynamic factor models beside statsmodels' state space models, whose numbers `golden/statsmodels/make.py` wrote.

use crate::common::{assert_close, dataset, flat, golden, matrix};
use covary::dynamics::{DynamicEm, DynamicFactor, Regressors, Season, Start, Timeline};
use covary::infer::Termination;
use covary::{Estimator, Noise, Spec};

#[test]
fn likelihood_states_and_forecasts_are_those_of_statsmodels() {
    for case in golden("statsmodels", "state_space")["given"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let season = match case["season"].as_str().unwrap() {
            "indicators" => Season::Indicators { period: 4 },
            "harmonics" => Season::Harmonics { period: 6.0, n: 1 },
            _ => Season::None,
        };
        let (a, q) = (matrix(&case["A"]), matrix(&case["Q"]));
        let states = a.n_columns();
        let at = |start| {
            DynamicFactor::new(
                a.clone(),
                q.clone(),
                matrix(&case["W"]),
                matrix(&case["B"]),
                Regressors { season, trend: None },
                Noise::Diagonal(flat(&case["psi"])),
                start,
            )
            .unwrap()
        };
        let start = |covariance| Start { mean: vec![0.0; states], covariance };
        let long_run = at(start(covary::Matrix::identity(states))).stationary_covariance().unwrap();
        let model = at(start(long_run));
        let table = dataset(&case["data"]);
        let times = Timeline::regular(table.n_rows());
        let density = model.log_density(&table, &times).unwrap();
        assert_close(name, &density, &flat(&case["log_density"]), 1e-8);
        let sum = |v: &[f64]| v.iter().sum::<f64>();
        assert_close(name, &[sum(&density)], &[sum(&flat(&case["log_density"]))], 1e-10);
        let smoothed = &model.smooth(&table, &times).unwrap()[0];
        assert_close(name, smoothed.means.as_slice(), &flat(&case["smoothed"]), 1e-8);
        let ahead = &model.forecast(&table, &times, 3).unwrap()[0].cells;
        assert_close(name, &ahead.iter().map(|c| c.mean).collect::<Vec<_>>(), &flat(&case["forecast"]), 1e-8);
        let variances: Vec<f64> = ahead.iter().map(|c| c.sd * c.sd).collect();
        assert_close(name, &variances, &flat(&case["forecast_variance"]), 1e-8);
    }
}

/// Complete tables, the same model: `DynamicFactor` by L-BFGS from its own start, started again where it ended.
#[test]
fn fits_are_no_worse_than_those_of_statsmodels() {
    for case in golden("statsmodels", "state_space")["fits"].as_array().unwrap() {
        let table = dataset(&case["data"]);
        let em = DynamicEm { ridge: 0.0, tolerance: 1e-7, max_iterations: 5000, ..DynamicEm::default() };
        let spec = Spec::factor_analysis(case["n_components"].as_u64().unwrap() as usize);
        let fit = em.fit(&table, &spec).unwrap();
        assert_eq!(fit.report.termination, Termination::Converged);
        let (ours, theirs) = (fit.report.objective.value, case["log_likelihood"].as_f64().unwrap());
        assert!(ours > theirs - 1e-6, "{ours} {theirs}");
    }
}
