//! Factor analysis against the golden cases of the spec.

use crate::common::{Golden, dataset, flat, matrix, noise};
use covary::infer::{ConditionalMaximization, FactorReport, Newton, Termination, Warning};
use covary::model::{Rotated, Rotation, RotationSearch, rotate};
use covary::{CentralMoments, Coordinates, Dataset, Density, Estimator, LinearGaussian, Matrix, Spec};

fn size(case: &Golden, key: &str) -> usize {
    case.input(key).as_u64().expect("a count") as usize
}

#[test]
fn factor_analysis_at_given_parameters() {
    let case = Golden::open("fa_given");
    let data = dataset(case.input("data"));
    let model =
        LinearGaussian::new(matrix(case.input("W")), flat(case.input("mu")), noise(case.input("psi")))
            .unwrap();
    case.check("row_loglik", &model.log_density(&data).unwrap(), case.expected("row_loglik"));
    let posterior = model.posterior(&data).unwrap();
    case.check("regression", posterior.mean.as_slice(), case.expected("scores_regression"));
    case.check("regression_cov", posterior.covariance(0).as_slice(), case.expected("regression_cov"));
    let bartlett = model.transform(&data, Coordinates::Bartlett).unwrap();
    case.check("bartlett", bartlett.as_slice(), case.expected("scores_bartlett"));
    let communality: Vec<f64> = model.loadings().rows().map(|w| w.iter().map(|v| v * v).sum()).collect();
    case.check("communality", &communality, case.expected("communality"));
    let (canonical, rotation) = model.canonical_with_rotation();
    case.check("canonical_W", canonical.loadings().as_slice(), case.expected("canonical_W"));
    case.check("R", rotation.as_slice(), case.expected("canonical_rotation_R"));
}

/// The table with columns divided by their standard deviations.
fn standardized(data: &Dataset) -> Dataset {
    let mean = data.observed_means();
    let deviation: Vec<f64> = data.observed_variances().iter().map(|v| v.sqrt()).collect();
    let z = |i, j| (data.values()[(i, j)] - mean[j]) / deviation[j];
    Dataset::new(Matrix::from_fn(data.n_rows(), data.n_columns(), z)).unwrap()
}

fn check_ml(name: &str) {
    let case = Golden::open(name);
    let mut data = dataset(case.input("data"));
    if case.input("use_correlation").as_bool().unwrap() {
        data = standardized(&data);
    }
    let spec = Spec {
        noise_floor: case.input("psi_floor_relative").as_f64(),
        ..Spec::factor_analysis(size(&case, "q"))
    };
    let moments = CentralMoments::of(&data).unwrap();
    case.check("S", moments.covariance().as_slice(), case.expected("S"));
    let at_bound: Vec<String> = case
        .expected("at_bound")
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .filter(|(_, b)| b.as_bool().unwrap())
        .map(|(j, _)| format!("x{}", j + 1))
        .collect();
    let tight = ConditionalMaximization { tolerance: 1e-10, ..ConditionalMaximization::default() };
    let fits = [
        Newton::default().fit(&data, &spec).unwrap(),
        Newton::default().fit_moments(&moments, &spec).unwrap(),
        tight.fit(&data, &spec).unwrap(),
    ];
    for fit in fits {
        assert_eq!(fit.report.termination, Termination::Converged);
        case.check_one("loglik", fit.report.objective.value, case.expected("loglik"));
        case.check("psi", &fit.model.noise_variances(), case.expected("psi"));
        case.check("W", fit.model.loadings().as_slice(), case.expected("W"));
        case.check_one("n_params", fit.model.n_parameters() as f64, case.expected("n_params"));
        case.check_one("dof", fit.model.degrees_of_freedom() as f64, case.expected("dof"));
        let report = FactorReport::new(&fit, &moments).unwrap();
        case.check("communality", &report.communalities, case.expected("communality"));
        case.check_one("F", report.discrepancy.unwrap(), case.expected("discrepancy_F"));
        case.check_one("chi_square", report.chi_square.unwrap(), case.expected("chi_square_bartlett"));
        assert_eq!(report.p_value.is_some(), at_bound.is_empty());
        let bound = fit.report.warnings.iter().find_map(|w| match w {
            Warning::NoiseAtFloor { columns } => Some(columns.clone()),
            _ => None,
        });
        assert_eq!(bound.unwrap_or_default(), at_bound);
    }
}

#[test]
fn maximum_likelihood_inside_the_bounds() {
    check_ml("fa_ml");
}

#[test]
fn a_heywood_case_stops_at_the_floor() {
    check_ml("fa_ml_heywood");
}

#[test]
fn conditional_maximization_step_by_step() {
    let case = Golden::open("fa_em_trace");
    let data = dataset(case.input("data"));
    for want in case.expected("cm").as_array().unwrap() {
        let cm = ConditionalMaximization {
            max_iterations: want["iterations"].as_u64().unwrap() as usize,
            start: Some(flat(case.input("psi0"))),
            ..ConditionalMaximization::default()
        };
        let fit = cm.fit(&data, &Spec::factor_analysis(2)).unwrap();
        case.check("psi", &fit.model.noise_variances(), &want["psi"]);
        case.check("W", fit.model.loadings().as_slice(), &want["W"]);
        case.check("C", fit.model.covariance().as_slice(), &want["model_covariance"]);
        case.check_one("loglik", fit.report.objective.value, &want["loglik"]);
        case.check_one("loglik by rows", fit.model.log_likelihood(&data).unwrap(), &want["loglik"]);
    }
}

#[test]
fn rotations_to_simple_structure() {
    let case = Golden::open("rotations");
    let a = matrix(case.input("A"));
    let check = |rotation: Rotation, key: &str, transform: &str| -> Rotated {
        let got = rotate(&a, &rotation, &RotationSearch::default()).unwrap();
        let want = case.expected(key);
        case.check(key, got.loadings.as_slice(), &want["loadings"]);
        case.check(key, got.transform.as_slice(), &want[transform]);
        if want["phi"].is_array() {
            case.check(key, got.factor_correlations.as_slice(), &want["phi"]);
        } else {
            assert_eq!(got.factor_correlations, Matrix::identity(3));
        }
        got
    };
    check(Rotation::Varimax { kaiser: false }, "varimax_raw", "rotation");
    check(Rotation::Varimax { kaiser: true }, "varimax_kaiser", "rotation");
    let quartimax = check(Rotation::Quartimax, "quartimax_raw", "rotation");
    let fourth: f64 = quartimax.loadings.as_slice().iter().map(|v| v.powi(4)).sum();
    case.check_one("quartimax criterion", fourth, &case.expected("quartimax_raw")["criterion"]);
    check(Rotation::Promax { power: 4.0 }, "promax_power4_kaiser", "transform");
    check(Rotation::Oblimin { gamma: 0.0 }, "oblimin_gamma0_raw", "transform");
}
