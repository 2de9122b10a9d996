//! Choice of dimension, held-out cells and pooling against the golden cases of the spec.

use crate::common::{Golden, dataset, flat, matrix, noise};
use covary::LinearGaussian;
use covary::infer::Spectral;
use covary::select::{Criteria, hold_out_at, pool};

#[test]
fn criteria_from_the_spectrum() {
    let case = Golden::open("select_spectrum");
    let data = dataset(case.input("data"));
    let spectrum = Spectral::default().spectrum(&data, data.n_columns(), false).unwrap();
    case.check("eigenvalues", &spectrum.eigenvalues, case.expected("eigenvalues"));
    let criteria = Criteria::from_spectrum(&spectrum).unwrap();
    let wanted = case.expected("by_k").as_array().unwrap();
    assert_eq!(wanted.len(), data.n_columns() - 1);
    assert_eq!(criteria.by_n_components.len(), data.n_columns());
    for want in wanted {
        let got = &criteria.by_n_components[want["k"].as_u64().unwrap() as usize];
        assert_eq!(got.n_components as u64, want["k"].as_u64().unwrap());
        case.check_one("loglik", got.information.log_likelihood, &want["loglik"]);
        case.check_one("n_params", got.information.n_parameters as f64, &want["n_params"]);
        case.check_one("aic", got.information.aic, &want["aic"]);
        case.check_one("bic", got.information.bic, &want["bic"]);
        case.check_one("evidence", got.log_evidence.unwrap(), &want["minka_log_evidence"]);
    }
    let chosen = criteria.chosen();
    case.check_one("chosen by aic", chosen.aic as f64, &case.expected("chosen")["aic"]);
    case.check_one("chosen by bic", chosen.bic as f64, &case.expected("chosen")["bic"]);
    case.check_one("chosen by evidence", chosen.evidence.unwrap() as f64, &case.expected("chosen")["minka"]);
}

#[test]
fn criteria_of_maximum_likelihood_fits() {
    for name in ["ppca_ml_tall", "ppca_ml_wide"] {
        let case = Golden::open(name);
        let data = dataset(case.input("data"));
        let spectrum = Spectral::default().spectrum(&data, data.n_columns(), false).unwrap();
        let criteria = Criteria::from_spectrum(&spectrum).unwrap();
        for want in case.expected("fits").as_array().unwrap() {
            let got = &criteria.by_n_components[want["q"].as_u64().unwrap() as usize].information;
            case.check_one("loglik", got.log_likelihood, &want["loglik"]);
            case.check_one("n_params", got.n_parameters as f64, &want["n_params"]);
            case.check_one("aic", got.aic, &want["aic"]);
            case.check_one("bic", got.bic, &want["bic"]);
        }
    }
}

#[test]
fn held_out_entries_at_given_parameters() {
    let case = Golden::open("heldout_entries");
    let (loadings, mean) = (matrix(case.input("W")), flat(case.input("mu")));
    let model = LinearGaussian::new(loadings, mean, noise(case.input("noise"))).unwrap();
    let (full, visible) = (dataset(case.input("data_full")), dataset(case.input("data_visible")));
    let rows = hold_out_at(&model, &full, &visible).unwrap();
    case.check("joint", &rows.joint, case.expected("joint"));
    case.check("marginal", &rows.marginal, case.expected("marginal"));
    case.check_one("mse", rows.mean_squared_error(), case.expected("mse"));
}

#[test]
fn rubin_pooling() {
    let case = Golden::open("rubin_pooling");
    let pooled = pool(&flat(case.input("estimates")), &flat(case.input("variances"))).unwrap();
    case.check_one("estimate", pooled.estimate, case.expected("estimate"));
    case.check_one("within", pooled.within, case.expected("within"));
    case.check_one("between", pooled.between, case.expected("between"));
    case.check_one("total", pooled.total, case.expected("total"));
    case.check_one("df", pooled.degrees_of_freedom, case.expected("df"));
}
