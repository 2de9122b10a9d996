//! PCA and PPCA against the golden cases of the spec.

use crate::common::{Golden, assert_close, dataset, flat, matrix, noise};
use covary::infer::{Solver, Spectral};
use covary::{
    CentralMoments, Coordinates, Dataset, Density, Estimator, LinearGaussian, Reconstruction, Spec,
};

fn every_solver() -> [Spectral; 4] {
    [Solver::Auto, Solver::Covariance, Solver::Gram, Solver::Svd]
        .map(|solver| Spectral { solver, ..Spectral::default() })
}

fn check_pca(name: &str) {
    let case = Golden::open(name);
    let data = dataset(case.input("data"));
    let q = case.input("n_components").as_u64().unwrap() as usize;
    let (n, d) = (data.n_rows() as f64, data.n_columns());
    for spectral in every_solver() {
        let spectrum = spectral.spectrum(&data, d, false).unwrap();
        case.check("mean", &spectrum.mean, case.expected("mean"));
        case.check("eigenvalues", &spectrum.eigenvalues, case.expected("eigenvalues"));
        let sample: Vec<f64> = spectrum.eigenvalues.iter().map(|l| l * n / (n - 1.0)).collect();
        case.check("eigenvalues_ddof1", &sample, case.expected("eigenvalues_ddof1"));
        let ratio: Vec<f64> = spectrum.eigenvalues.iter().map(|l| l / spectrum.total_variance).collect();
        case.check("explained_variance_ratio", &ratio, case.expected("explained_variance_ratio"));
        let errors: Vec<f64> = (0..=d).map(|k| spectrum.eigenvalues[k..].iter().sum()).collect();
        let wanted = case.expected("mean_squared_reconstruction_error_by_k");
        case.check("reconstruction errors", &errors[..flat(wanted).len()], wanted);

        let model = spectral.fit(&data, &Spec::ppca(q)).unwrap().model;
        case.check("components", model.components().transpose().as_slice(), case.expected("components"));
        let scores = model.transform(&data, Coordinates::Projection).unwrap();
        case.check("scores", scores.as_slice(), case.expected("scores"));
        let back = model.reconstruct(&data, Reconstruction::Orthogonal).unwrap();
        case.check("reconstruction", back.as_slice(), case.expected("reconstruction"));
    }
}

#[test]
fn pca_of_a_tall_table() {
    check_pca("pca_tall");
}

#[test]
fn pca_of_a_wide_table() {
    check_pca("pca_wide");
}

fn check_given(name: &str) {
    let case = Golden::open(name);
    let data = dataset(case.input("data"));
    let model =
        LinearGaussian::new(matrix(case.input("W")), flat(case.input("mu")), noise(case.input("sigma2")))
            .unwrap();
    case.check("row_loglik", &model.log_density(&data).unwrap(), case.expected("row_loglik"));
    case.check_one("total_loglik", model.log_likelihood(&data).unwrap(), case.expected("total_loglik"));
    let odd = model.outlyingness(&data).unwrap();
    let delta: Vec<f64> = odd.iter().map(|o| o.mahalanobis).collect();
    case.check("mahalanobis", &delta, case.expected("mahalanobis"));
    case.check("covariance", model.covariance().as_slice(), case.expected("model_covariance"));
    let posterior = model.posterior(&data).unwrap();
    case.check("posterior_mean", posterior.mean.as_slice(), case.expected("posterior_mean"));
    case.check("posterior_cov", posterior.covariance(0).as_slice(), case.expected("posterior_cov"));
    for (how, key) in [
        (Reconstruction::PosteriorMean, "reconstruction_posterior_mean"),
        (Reconstruction::Orthogonal, "reconstruction_orthogonal"),
    ] {
        case.check(key, model.reconstruct(&data, how).unwrap().as_slice(), case.expected(key));
    }
    let least_squares = model.transform(&data, Coordinates::Bartlett).unwrap();
    case.check("zero_noise_scores", least_squares.as_slice(), case.expected("zero_noise_scores"));
    let (canonical, rotation) = model.canonical_with_rotation();
    case.check("canonical_W", canonical.loadings().as_slice(), case.expected("canonical_W"));
    case.check("R", rotation.as_slice(), case.expected("canonical_rotation_R"));
    let scores = canonical.transform(&data, Coordinates::Posterior).unwrap();
    case.check("canonical scores", scores.as_slice(), case.expected("canonical_posterior_mean"));
    let counts = [model.n_covariance_parameters() as f64, model.n_parameters() as f64];
    case.check_one("n_params_cov", counts[0], case.expected("n_params_cov"));
    case.check_one("n_params", counts[1], case.expected("n_params_with_mean"));
}

#[test]
fn ppca_at_given_parameters() {
    check_given("ppca_given");
}

#[test]
fn precision_is_the_inverse_of_covariance() {
    let case = Golden::open("ppca_given");
    let model =
        LinearGaussian::new(matrix(case.input("W")), flat(case.input("mu")), noise(case.input("sigma2")))
            .unwrap();
    let identity = model.precision().dot(&model.covariance());
    assert_close("C⁻¹ C", identity.as_slice(), covary::Matrix::identity(6).as_slice(), 1e-12);
}

#[test]
fn ppca_at_given_parameters_with_tiny_noise() {
    check_given("ppca_given_tiny_noise");
}

#[test]
fn ppca_maximum_likelihood() {
    for name in ["ppca_ml_tall", "ppca_ml_wide"] {
        let case = Golden::open(name);
        let data = dataset(case.input("data"));
        let fits = case.expected("fits").as_array().expect("a list of fits");
        assert!(!fits.is_empty());
        for fit in fits {
            check_ml(&case, &data, fit);
        }
    }
}

fn check_ml(case: &Golden, data: &Dataset, want: &serde_json::Value) {
    let q = want["q"].as_u64().unwrap() as usize;
    for spectral in every_solver() {
        let fit = spectral.fit(data, &Spec::ppca(q)).unwrap();
        case.check("W", fit.model.loadings().as_slice(), &want["W"]);
        case.check_one("sigma2", fit.model.noise().variance(0), &want["sigma2"]);
        case.check_one("loglik", fit.report.objective.value, &want["loglik"]);
        case.check_one("loglik by rows", fit.model.log_likelihood(data).unwrap(), &want["loglik"]);
        case.check("mu", fit.model.mean(), case.expected("mu"));
        case.check("C", fit.model.covariance().as_slice(), &want["model_covariance"]);
        let posterior = fit.model.posterior(data).unwrap();
        case.check("posterior_mean", posterior.mean.as_slice(), &want["posterior_mean"]);
        case.check("posterior_cov", posterior.covariance(0).as_slice(), &want["posterior_cov"]);
    }
}

#[test]
fn central_moments_merge() {
    let case = Golden::open("ppca_stats_merge");
    let data = matrix(case.input("data"));
    let d = data.n_columns();
    let cuts: Vec<usize> = flat(case.input("split_after_rows")).iter().map(|&c| c as usize).collect();
    let bounds = [vec![0], cuts, vec![data.n_rows()]].concat();
    let mut all = CentralMoments::new(d);
    for (ends, want) in bounds.windows(2).zip(case.expected("moments").as_array().unwrap()) {
        let mut shard = CentralMoments::new(d);
        shard.add(&data.as_slice()[ends[0] * d..ends[1] * d]);
        case.check("mean", shard.mean(), &want["mean"]);
        case.check("m2", shard.scatter().as_slice(), &want["m2"]);
        all.merge(&shard);
    }
    let want = case.expected("merged_moments");
    case.check_one("n", all.n_rows() as f64, &want["n"]);
    case.check("merged mean", all.mean(), &want["mean"]);
    case.check("merged m2", all.scatter().as_slice(), &want["m2"]);
}
