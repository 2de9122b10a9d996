//! EM and missing data against the golden cases of the spec.

use crate::common::{Golden, dataset, flat, matrix, noise};
use covary::infer::{Acceleration, Em, Init, LatentMoments};
use covary::spec::{LoadingsPrior, MeanPrior, NoiseFamily, NoisePrior, Prior};
use covary::{Coordinates, Dataset, Density, Estimator, LinearGaussian, Matrix, Noise, Spec};
use serde_json::Value;

fn start(case: &Golden) -> LinearGaussian {
    let w = matrix(case.input("W0"));
    let mean = match case.input("mu0") {
        Value::Null => column_means(&matrix(case.input("data"))),
        given => flat(given),
    };
    let given = ["noise0", "sigma2_0", "psi0"].map(|key| case.input(key)).into_iter().find(|v| !v.is_null());
    LinearGaussian::new(w, mean, noise(given.expect("a start has a noise"))).unwrap()
}

fn column_means(data: &Matrix) -> Vec<f64> {
    (0..data.n_columns()).map(|j| data.column(j).iter().sum::<f64>() / data.n_rows() as f64).collect()
}

fn spec_for(model: &LinearGaussian) -> Spec {
    match model.noise() {
        Noise::Isotropic(_) => Spec::ppca(model.n_components()),
        Noise::Diagonal(_) => Spec { noise_floor: Some(0.0), ..Spec::factor_analysis(model.n_components()) },
    }
}

/// After `iterations` steps: loadings up to rotation, mean, noise and log-likelihood.
fn check_record(case: &Golden, data: &Dataset, model: &LinearGaussian, record: &Value) {
    case.check("model_covariance", model.covariance().as_slice(), &record["model_covariance"]);
    if !record["mu"].is_null() {
        case.check("mu", model.mean(), &record["mu"]);
    }
    let noise = ["noise", "sigma2", "psi"].map(|k| &record[k]).into_iter().find(|v| !v.is_null()).unwrap();
    let got = model.noise_variances();
    case.check("noise", if noise.is_array() { &got } else { &got[..1] }, noise);
    case.check_one("loglik", model.log_likelihood(data).unwrap(), &record["loglik"]);
}

fn check_trace(name: &str) {
    let case = Golden::open(name);
    let data = dataset(case.input("data"));
    let start = start(&case);
    let initial = case.expected("initial_loglik");
    if !initial.is_null() {
        case.check_one("initial", start.log_likelihood(&data).unwrap(), initial);
    }
    for (key, parameter_expansion) in [("em", false), ("px_em", true)] {
        for record in case.expected(key).as_array().unwrap() {
            let iterations = record["iterations"].as_u64().unwrap() as usize;
            let em = Em {
                max_iterations: iterations,
                tolerance: 0.0,
                parameter_expansion,
                acceleration: Acceleration::Never,
                init: Init::Given(Box::new(start.clone())),
                ..Em::default()
            };
            let fit = em.fit(&data, &spec_for(&start)).unwrap();
            assert_eq!(fit.report.n_iterations(), iterations);
            case.check_one("trace", fit.report.objective.value, &record["loglik"]);
            check_record(&case, &data, &fit.model, record);

            // The same steps by hand, without canonical form: the loadings themselves agree.
            let mut model = start.clone();
            for _ in 0..iterations {
                model = LatentMoments::new(&model, &data).unwrap().maximize(parameter_expansion).unwrap();
            }
            case.check("W", model.loadings().as_slice(), &record["W"]);
            check_record(&case, &data, &model, record);
        }
    }
}

#[test]
fn em_steps_on_complete_ppca() {
    check_trace("ppca_em_trace");
}

#[test]
fn em_steps_on_complete_factor_analysis() {
    check_trace("fa_em_trace");
}

#[test]
fn em_steps_on_ppca_with_gaps() {
    check_trace("ppca_missing_em_trace");
}

#[test]
fn em_steps_on_factor_analysis_with_gaps() {
    check_trace("fa_missing_em_trace");
}

#[test]
fn em_reaches_the_limit_on_complete_data() {
    let case = Golden::open("ppca_em_trace");
    let data = dataset(case.input("data"));
    let em = Em { init: Init::Given(Box::new(start(&case))), tolerance: 1e-12, ..Em::default() };
    let fit = em.fit(&data, &Spec::ppca(2)).unwrap();
    case.check_one("limit", fit.report.objective.value, case.expected("limit_loglik"));
}

fn check_missing_given(name: &str) {
    let case = Golden::open(name);
    let data = dataset(case.input("data"));
    let model =
        LinearGaussian::new(matrix(case.input("W")), flat(case.input("mu")), noise(case.input("noise")))
            .unwrap();
    case.check("row_loglik", &model.log_density(&data).unwrap(), case.expected("row_loglik"));
    case.check_one("total", model.log_likelihood(&data).unwrap(), case.expected("total_loglik"));
    let posterior = model.posterior(&data).unwrap();
    case.check("posterior_mean", posterior.mean.as_slice(), case.expected("posterior_mean"));
    for (i, want) in case.expected("posterior_cov").as_array().unwrap().iter().enumerate() {
        case.check("posterior_cov", posterior.covariance(i).as_slice(), want);
    }
    let gradient = LatentMoments::new(&model, &data).unwrap().gradient();
    let want = case.expected("gradient");
    case.check("∂W", gradient.loadings.as_slice(), &want["W"]);
    case.check("∂μ", &gradient.mean, &want["mu"]);
    let total = [gradient.noise.iter().sum()];
    case.check("∂ψ", if want["noise"].is_array() { &gradient.noise } else { &total }, &want["noise"]);
    let imputed = model.impute(&data).unwrap();
    case.check("imputed", imputed.values().as_slice(), case.expected("imputed"));
    for gap in case.expected("missing").as_array().unwrap() {
        let row = gap["row"].as_u64().unwrap() as usize;
        let cols: Vec<usize> = flat(&gap["cols"]).iter().map(|&c| c as usize).collect();
        let observed: Vec<usize> = (0..data.n_columns()).filter(|j| !cols.contains(j)).collect();
        let given = model.condition(&observed);
        assert_eq!(given.gaps(), cols);
        case.check("signal_cov", given.gap_covariance(false).as_slice(), &gap["signal_cov"]);
        case.check("predictive_cov", given.gap_covariance(true).as_slice(), &gap["predictive_cov"]);
        let cells: Vec<_> = imputed.cells().iter().filter(|c| c.row == row).collect();
        for (k, cell) in cells.iter().enumerate() {
            let want = given.gap_covariance(true)[(k, k)];
            assert!((cell.sd * cell.sd - want).abs() < 1e-12 * (1.0 + want));
        }
    }
}

#[test]
fn gaps_of_ppca_at_given_parameters() {
    check_missing_given("ppca_missing_given");
}

#[test]
fn gaps_of_factor_analysis_at_given_parameters() {
    check_missing_given("fa_missing_given");
}

/// A fit polished as the golden optima were: parameters at 1e-7 need more than the likelihood, flat
/// to rounding there, can tell, so the steps are counted instead.
fn polished() -> Em {
    Em { tolerance: 0.0, max_iterations: 5000, acceleration: Acceleration::Never, ..Em::default() }
}

fn check_ml(name: &str) {
    let case = Golden::open(name);
    let data = dataset(case.input("data"));
    let q = case.input("q").as_u64().unwrap() as usize;
    let spec = match case.input("noise_model").as_str().unwrap() {
        "isotropic" => Spec::ppca(q),
        _ => Spec::factor_analysis(q),
    };
    let fit = polished().fit(&data, &spec).unwrap();
    case.check_one("loglik", fit.report.objective.value, case.expected("loglik"));
    case.check("model_covariance", fit.model.covariance().as_slice(), case.expected("model_covariance"));
    case.check("mu", fit.model.mean(), case.expected("mu"));
    case.check("W", fit.model.loadings().as_slice(), case.expected("W"));
    let variances = fit.model.noise_variances();
    let wanted = case.expected("noise");
    case.check("noise", if wanted.is_array() { &variances } else { &variances[..1] }, wanted);
    let scores = fit.model.transform(&data, Coordinates::Posterior).unwrap();
    case.check("posterior_mean", scores.as_slice(), case.expected("posterior_mean"));
    let imputed = fit.predictive().impute(&data).unwrap();
    case.check("imputed", imputed.values().as_slice(), case.expected("imputed"));
    let variances: Vec<f64> = imputed.cells().iter().map(|c| c.sd * c.sd).collect();
    let wanted: Vec<Value> =
        case.expected("missing").as_array().unwrap().iter().map(|m| m["predictive_var"].clone()).collect();
    case.check("predictive_var", &variances, &Value::Array(wanted));
    case.check_one("n_params", fit.model.n_parameters() as f64, case.expected("n_params"));
}

#[test]
fn maximum_likelihood_of_ppca_with_gaps() {
    check_ml("ppca_missing_ml");
}

#[test]
fn maximum_likelihood_with_gaps_at_full_rank_is_the_unrestricted_gaussian() {
    check_ml("ppca_missing_ml_full_rank");
}

#[test]
fn maximum_likelihood_of_ppca_with_a_sparse_column() {
    check_ml("ppca_missing_ml_sparse_column");
}

#[test]
fn maximum_likelihood_of_factor_analysis_with_gaps() {
    check_ml("fa_missing_ml");
}

#[test]
fn a_ridge_has_one_likelihood() {
    let case = Golden::open("ppca_missing_ridge");
    let data = dataset(case.input("data"));
    for point in case.expected("ridge_points").as_array().unwrap() {
        let noise = Noise::Isotropic(point["sigma2"].as_f64().unwrap());
        let model = LinearGaussian::new(matrix(&point["W"]), flat(case.expected("mu")), noise).unwrap();
        case.check_one("loglik", model.log_likelihood(&data).unwrap(), &point["loglik"]);
        case.check("imputed", model.impute(&data).unwrap().values().as_slice(), &point["imputed"]);
    }
    let fit = polished().fit(&data, &Spec::ppca(1)).unwrap();
    case.check("mu", fit.model.mean(), case.expected("mu"));
    case.check_one("maximum", fit.report.objective.value, case.expected("max_loglik"));
    let unseen =
        |w: &covary::infer::Warning| matches!(w, covary::infer::Warning::UnseenPairs { pairs: 1, .. });
    assert!(fit.report.warnings.iter().any(unseen), "the user is told that the pair was never seen");
}

/// The observed variance that relative prior scales refer to.
fn mean_variance(data: &Dataset) -> f64 {
    let variances = data.observed_variances();
    variances.iter().sum::<f64>() / variances.len() as f64
}

fn check_map(name: &str) {
    let case = Golden::open(name);
    let data = dataset(case.input("data"));
    let given = case.input("prior");
    let unit = mean_variance(&data);
    let number = |key: &str| given[key].as_f64();
    let prior = Prior {
        loadings: match number("kappa") {
            Some(kappa) => LoadingsPrior::Scaled { kappa },
            None => LoadingsPrior::Ard {
                relative_alpha: flat(&given["alpha"]).iter().map(|a| a * unit).collect(),
            },
        },
        noise: Some(NoisePrior { shape: number("a0").unwrap(), relative_rate: number("b0").unwrap() / unit }),
        mean: number("alpha_mu").map(|precision| MeanPrior {
            center: vec![number("mu0").unwrap(); data.n_columns()],
            relative_precision: precision * unit,
        }),
    };
    let spec = Spec { prior, noise: NoiseFamily::Isotropic, ..Spec::ppca(2) };
    for record in case.expected("em").as_array().unwrap() {
        let em = Em {
            max_iterations: record["iterations"].as_u64().unwrap() as usize,
            tolerance: 0.0,
            acceleration: Acceleration::Never,
            init: Init::Given(Box::new(start(&case))),
            ..Em::default()
        };
        let fit = em.fit(&data, &spec).unwrap();
        let w = matrix(&record["W"]);
        case.check(
            "W Wᵀ",
            fit.model.loadings().dot_t(fit.model.loadings()).as_slice(),
            &nested(&w.dot_t(&w)),
        );
        case.check("mu", fit.model.mean(), &record["mu"]);
        case.check_one("noise", fit.model.noise().variance(0), &record["noise"]);
        let prior = fit.report.objective.value - fit.model.log_likelihood(&data).unwrap();
        case.check_one("log_prior", prior, &record["log_prior"]);
        case.check_one("loglik", fit.model.log_likelihood(&data).unwrap(), &record["loglik"]);
    }
    let want = case.expected("optimum");
    let fit = polished().fit(&data, &spec).unwrap();
    case.check_one("objective", fit.report.objective.value, &want["objective"]);
    case.check_one("loglik", fit.model.log_likelihood(&data).unwrap(), &want["loglik"]);
    case.check("model_covariance", fit.model.covariance().as_slice(), &want["model_covariance"]);
    case.check("mu", fit.model.mean(), &want["mu"]);
    case.check_one("noise", fit.model.noise().variance(0), &want["noise"]);
    case.check("imputed", fit.predictive().impute(&data).unwrap().values().as_slice(), &want["imputed"]);
}

fn nested(m: &Matrix) -> Value {
    Value::Array(m.as_slice().iter().map(|&v| Value::from(v)).collect())
}

#[test]
fn map_fit_under_the_scaled_prior() {
    check_map("ppca_missing_map_scaled");
}

#[test]
fn map_fit_under_the_ard_prior() {
    check_map("ppca_missing_map_ard");
}

#[test]
fn moments_of_shards_merge_and_blend() {
    let case = Golden::open("ppca_stats_merge");
    let data = matrix(case.input("data"));
    let d = data.n_columns();
    let model =
        LinearGaussian::new(matrix(case.input("W")), flat(case.input("mu")), noise(case.input("sigma2")))
            .unwrap();
    let cuts: Vec<usize> = flat(case.input("split_after_rows")).iter().map(|&c| c as usize).collect();
    let bounds = [vec![0], cuts, vec![data.n_rows()]].concat();
    let shards: Vec<Dataset> = bounds
        .windows(2)
        .map(|ends| {
            let rows = data.as_slice()[ends[0] * d..ends[1] * d].to_vec();
            Dataset::new(Matrix::from_vec(ends[1] - ends[0], d, rows).unwrap()).unwrap()
        })
        .collect();
    let check = |m: &LatentMoments, want: &Value| {
        case.check_one("n", m.n_rows(), &want["n"]);
        case.check("sum_yx", m.cross_moment().as_slice(), &want["sum_yx"]);
        case.check("sum_xx", m.scores_second_moment().as_slice(), &want["sum_xx"]);
        case.check_one("sum_yy", m.squares().iter().sum(), &want["sum_yy"]);
    };
    let mut merged: Option<LatentMoments> = None;
    for (shard, want) in shards.iter().zip(case.expected("shards").as_array().unwrap()) {
        let moments = LatentMoments::new(&model, shard).unwrap();
        check(&moments, want);
        match &mut merged {
            None => merged = Some(moments),
            Some(sum) => sum.merge(&moments).unwrap(),
        }
    }
    let merged = merged.unwrap();
    check(&merged, case.expected("merged"));
    let step = merged.maximize_fixed_mean(false).unwrap();
    case.check("em_step W", step.loadings().as_slice(), &case.expected("em_step")["W"]);
    case.check_one("em_step sigma2", step.noise().variance(0), &case.expected("em_step")["sigma2"]);

    // Stepwise EM: γ_k = (k + 2)^−κ, the first shard initializes the average.
    let mut model = model;
    let mut running: Option<LatentMoments> = None;
    for (k, shard) in shards.iter().enumerate() {
        let moments = LatentMoments::new(&model, shard).unwrap();
        match &mut running {
            None => running = Some(moments),
            Some(average) => average.blend(&moments, (k as f64 + 2.0).powf(-0.7)).unwrap(),
        }
        model = running.as_ref().unwrap().maximize_fixed_mean(false).unwrap();
    }
    case.check("stepwise W", model.loadings().as_slice(), &case.expected("stepwise")["W"]);
    case.check_one("stepwise sigma2", model.noise().variance(0), &case.expected("stepwise")["sigma2"]);
}
