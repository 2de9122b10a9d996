//! Mixtures of linear-Gaussian models: golden cases and laws ([M 1.9], [M 1.11]).

use crate::common::{Golden, assert_close, dataset, flat, matrix, noise, shared_data};
use crate::contract::on_threads;
use crate::damage::sealed;
use crate::dense::Gaussian;
use crate::model_file::bytes;
use covary::data::{Shape, simulate};
use covary::family::{Classes, Components, Family, ForFilling, Request};
use covary::infer::{
    Acceleration, ClassConditional, Em, FitReport, FullCovariance, LatentMoments, MethodRecord, MixtureEm,
    MixtureInit, Objective, ObjectiveKind, Observer, Spectral, Step, Termination, Update, Warning,
};
use covary::io::model_file;
use covary::learned::{ClassNames, Constant, Learned, MixtureFit, Rows, Trained, Training};
use covary::model::{Discriminants, Mixture};
use covary::select::{Coverage, MixtureComparison, SelfCheck, information_criteria, mixture_sizes};
use covary::spec::{NoiseFamily, Prior};
use covary::{Dataset, Density, Error, Estimator, Fit, LinearGaussian, Matrix, Method, Noise, Spec};
use serde_json::Value;
use std::ops::ControlFlow;

/// The start of a golden case; a full covariance v I has no loadings yet.
fn start(value: &Value) -> Mixture {
    let component = |c: &Value| {
        let mean = flat(&c["mu"]);
        let d = mean.len();
        if c["C"].is_null() {
            let w = match &c["W"][0] {
                Value::Array(row) if row.is_empty() => Matrix::zeros(d, 0),
                _ => matrix(&c["W"]),
            };
            return LinearGaussian::new(w, mean, noise(&c["noise"])).unwrap();
        }
        let covariance = matrix(&c["C"]);
        assert_eq!(covariance, Matrix::diagonal(&vec![covariance[(0, 0)]; d]));
        LinearGaussian::new(Matrix::zeros(d, d - 1), mean, Noise::Isotropic(covariance[(0, 0)])).unwrap()
    };
    let components = value["components"].as_array().unwrap().iter().map(component).collect();
    Mixture::new(components, flat(&value["pi"])).unwrap()
}

fn spec_of(mixture: &Mixture) -> Spec {
    let model = &mixture.models()[0];
    match model.noise() {
        Noise::Isotropic(_) => Spec::ppca(model.n_components()),
        Noise::Diagonal(_) => Spec::factor_analysis(model.n_components()),
    }
}

/// Components of a record in the order of decreasing weight.
fn order(pi: &Value) -> Vec<usize> {
    let pi = flat(pi);
    let mut order: Vec<usize> = (0..pi.len()).collect();
    order.sort_by(|&a, &b| pi[b].total_cmp(&pi[a]));
    order
}

#[track_caller]
fn check_record(case: &Golden, data: &Dataset, got: &Mixture, record: &Value) {
    let got = got.canonical();
    case.check_one("loglik", got.log_likelihood(data).unwrap(), &record["loglik"]);
    for (component, k) in got.models().iter().zip(order(&record["pi"])) {
        case.check("mu", component.mean(), &record["mu"][k]);
        case.check("covariance", component.covariance().as_slice(), &record["covariance"][k]);
        match &record["noise"][k] {
            Value::Null => {}
            list @ Value::Array(_) => case.check("noise", &component.noise_variances(), list),
            number => case.check_one("noise", component.noise().variance(0), number),
        }
    }
    let pi: Vec<f64> = order(&record["pi"]).iter().map(|&k| flat(&record["pi"])[k]).collect();
    assert_close("pi", got.weights(), &pi, 1e-8);
}

#[track_caller]
fn check_end(case: &Golden, data: &Dataset, got: &Mixture, expected: &Value) {
    let last = expected["trace"].as_array().unwrap().last().unwrap();
    let want = matrix(&expected["responsibilities_last"]);
    let r = got.canonical().responsibilities(data).unwrap();
    for (c, k) in order(&last["pi"]).into_iter().enumerate() {
        assert_close("responsibilities", &r.column(c), &want.column(k), 1e-8);
    }
    assert_eq!(got.n_parameters() as u64, expected["n_params"].as_u64().unwrap());
    let ll = got.log_likelihood(data).unwrap();
    let bic = information_criteria(ll, got.n_parameters(), data.n_informative_rows()).bic;
    case.check_one("bic", bic, &expected["bic_last"]);
}

/// The records of a start, by the method itself.
fn check_trace(name: &str, start_name: &str, update: Update) {
    let case = Golden::open(name);
    let data = dataset(case.input("data"));
    let start = start(&case.input("starts")[start_name]);
    let expected = case.expected(start_name);
    case.check_one("initial", start.log_likelihood(&data).unwrap(), &expected["initial_loglik"]);
    let mut last = None;
    for record in expected["trace"].as_array().unwrap() {
        let method = MixtureEm {
            n_mixtures: start.models().len(),
            max_iterations: record["iterations"].as_u64().unwrap() as usize,
            tolerance: 0.0,
            update,
            parameter_expansion: false,
            init: MixtureInit::Given(Box::new(start.clone())),
            ..MixtureEm::default()
        };
        let fit = method.fit(&data, &spec_of(&start)).unwrap();
        case.check_one("trace", fit.report.objective.value, &record["loglik"]);
        check_record(&case, &data, &fit.model, record);
        last = Some(fit.model);
    }
    check_end(&case, &data, &last.expect("there are records"), expected);
}

#[test]
fn closed_form_steps_of_a_mixture_of_ppca() {
    check_trace("mixture_ppca", "ppca_exact", Update::ClosedForm);
}

#[test]
fn gaussian_mixtures_are_special_cases() {
    check_trace("mixture_gaussian", "full", Update::ClosedForm);
    check_trace("mixture_gaussian", "diag", Update::Latent);
    check_trace("mixture_gaussian", "spherical", Update::Latent);
    check_trace("mixture_gaussian", "spherical", Update::ClosedForm);
}

#[test]
fn single_cycle_steps_with_gaps() {
    check_trace("mixture_missing", "ppca_missing", Update::Latent);
    check_trace("mixture_missing", "fa_missing", Update::Latent);
    check_trace("mixture_missing", "full_missing", Update::ClosedForm);
}

/// Means from the responsibilities, then one EM step of loadings and noise about them: by weighted
/// moments, as anyone can.
#[test]
fn two_stage_steps_by_weighted_moments() {
    for (name, start_name) in [("mixture_ppca", "ppca_two_stage"), ("mixture_fa", "fa_two_stage")] {
        let case = Golden::open(name);
        let data = dataset(case.input("data"));
        let mut mixture = start(&case.input("starts")[start_name]);
        let expected = case.expected(start_name);
        let mut made = 0;
        for record in expected["trace"].as_array().unwrap() {
            while made < record["iterations"].as_u64().unwrap() {
                let r = mixture.responsibilities(&data).unwrap();
                let step = |(k, c): (usize, &LinearGaussian)| {
                    let weights = r.column(k);
                    let n: f64 = weights.iter().sum();
                    let mean = |j: usize| {
                        data.values().column(j).iter().zip(&weights).map(|(t, r)| r * t).sum::<f64>() / n
                    };
                    let mean = (0..data.n_columns()).map(mean).collect();
                    let about = LinearGaussian::new(c.loadings().clone(), mean, c.noise().clone()).unwrap();
                    let moments = LatentMoments::weighted(&about, &data, &weights).unwrap();
                    (moments.maximize_fixed_mean(false).unwrap(), n)
                };
                let (components, weights) = mixture.models().iter().enumerate().map(step).unzip();
                mixture = Mixture::new(components, weights).unwrap();
                made += 1;
            }
            check_record(&case, &data, &mixture, record);
        }
        check_end(&case, &data, &mixture, expected);
    }
}

fn shape(rows: usize, columns: usize, n_components: usize) -> Shape {
    Shape { rows, columns, n_components }
}

/// A table of three components, 15 % gaps.
fn gappy(seed: u64) -> Dataset {
    simulate::hide(&simulate::mixture(shape(300, 6, 2), 3, 8.0, seed).0, 0.15, seed)
}

/// The families a mixture can have, with the updates that reach them.
fn families() -> Vec<(Spec, Update)> {
    vec![
        (Spec::ppca(2), Update::ClosedForm),
        (Spec::ppca(2), Update::Latent),
        (Spec::ppca(5), Update::ClosedForm),
        (Spec::ppca(0), Update::Latent),
        (Spec::factor_analysis(0), Update::Latent),
        (Spec::factor_analysis(2), Update::Latent),
        (Spec { standardize: true, ..Spec::ppca(2) }, Update::ClosedForm),
        (Spec { standardize: true, ..Spec::ppca(2) }, Update::Latent),
    ]
}

fn to_the_end(n_mixtures: usize, update: Update) -> MixtureEm {
    MixtureEm { update, tolerance: 1e-9, max_iterations: 20_000, ..MixtureEm::of(n_mixtures) }
}

#[test]
fn the_likelihood_never_falls_and_is_that_of_the_model() {
    for (spec, update) in families() {
        for data in [simulate::mixture(shape(200, 6, 2), 3, 4.0, 1).0, gappy(2)] {
            for parameter_expansion in [false, true] {
                let method = MixtureEm { update, parameter_expansion, ..MixtureEm::of(3) };
                let Fit { model, report, .. } = method.fit(&data, &spec).unwrap();
                for pair in report.trace.windows(2) {
                    assert!(pair[1] >= pair[0] - 1e-9 * (1.0 + pair[0].abs()), "{spec:?} {update:?}");
                }
                let value = model.log_likelihood(&data).unwrap();
                assert_close("ℓ", &[report.objective.value], &[value], 1e-11);
            }
        }
    }
}

#[test]
fn a_shared_covariance_never_lowers_the_likelihood_and_is_shared() {
    for spec in
        [Spec::ppca(5), Spec { standardize: true, ..Spec::ppca(5) }, Spec::ppca(2), Spec::factor_analysis(0)]
    {
        for data in [simulate::mixture(shape(200, 6, 2), 3, 4.0, 1).0, gappy(2)] {
            for ridge in [None, Some(0.0)] {
                let method = MixtureEm { shared_covariance: true, ridge, ..MixtureEm::of(3) };
                let Fit { model, report, .. } = method.fit(&data, &spec).unwrap();
                for pair in report.trace.windows(2) {
                    assert!(pair[1] >= pair[0] - 1e-9 * (1.0 + pair[0].abs()), "{spec:?} {ridge:?}");
                }
                let first = model.models()[0].covariance();
                assert!(model.models().iter().all(|c| c.covariance() == first));
                assert_close("ℓ", &[report.objective.value], &[model.log_likelihood(&data).unwrap()], 1e-11);
            }
        }
    }
}

#[test]
fn a_ridge_is_added_to_the_covariance_of_the_rows_in_their_units() {
    let (data, _, labels) = simulate::mixture(shape(90, 4, 1), 2, 6.0, 1);
    let units = [1e-3, 1.0, 10.0, 1e4];
    let data = Dataset::new(Matrix::from_fn(90, 4, |i, j| data.values()[(i, j)] * units[j])).unwrap();
    let shares = Matrix::from_fn(90, 2, |i, k| if labels[i] == k { 1.0 } else { 0.0 });
    let init = MixtureInit::Responsibilities(Box::new(shares));
    for shared_covariance in [false, true] {
        let method = MixtureEm {
            ridge: Some(1e-6),
            shared_covariance,
            max_iterations: 0,
            init: init.clone(),
            ..MixtureEm::of(2)
        };
        let spec = Spec { standardize: true, ..Spec::ppca(3) };
        let fit = method.fit(&data, &spec).unwrap().model;
        let (mut pooled, mut own) = (Matrix::zeros(4, 4), Vec::new());
        for k in 0..2 {
            let rows: Vec<usize> = (0..90).filter(|&i| labels[i] == k).collect();
            let mean = |j: usize| rows.iter().map(|&i| data.row(i)[j]).sum::<f64>() / rows.len() as f64;
            let means: Vec<f64> = (0..4).map(mean).collect();
            assert_close("mean", fit.models()[k].mean(), &means, 1e-12);
            let product =
                |i: &usize, a: usize, b: usize| (data.row(*i)[a] - means[a]) * (data.row(*i)[b] - means[b]);
            let sum = Matrix::from_fn(4, 4, |a, b| rows.iter().map(|i| product(i, a, b)).sum());
            pooled = Matrix::from_fn(4, 4, |a, b| pooled[(a, b)] + sum[(a, b)] / 90.0);
            own.push(Matrix::from_fn(4, 4, |a, b| sum[(a, b)] / rows.len() as f64));
        }
        for k in 0..2 {
            let want = if shared_covariance { &pooled } else { &own[k] };
            let got = fit.models()[k].covariance();
            for a in 0..4 {
                for b in 0..4 {
                    let want = want[(a, b)] + if a == b { 1e-6 } else { 0.0 };
                    assert!((got[(a, b)] - want).abs() < 1e-10 * units[a] * units[b], "{a} {b}");
                }
            }
        }
    }
}

#[test]
fn with_a_ridge_no_model_is_lost_and_without_variance_one_is_refused() {
    // Five rows, each four times, and eight models.
    let data =
        Dataset::new(Matrix::from_fn(20, 3, |i, j| ((i % 5) * (j + 1)) as f64 + (i % 5 / 2) as f64)).unwrap();
    let method = MixtureEm { ridge: Some(1e-6), init: MixtureInit::KMeans, ..MixtureEm::of(8) };
    let spec = Spec { standardize: true, ..Spec::ppca(2) };
    let fit = method.fit(&data, &spec).unwrap();
    assert_eq!(fit.model.models().len(), 8);
    let none = MixtureEm { ridge: Some(0.0), ..method };
    assert_eq!(none.fit(&data, &spec).unwrap_err(), Error::CollapsedModel);
    let factors = Spec { allow_unidentified: true, ..Spec::factor_analysis(1) };
    assert!(matches!(none.fit(&data, &factors), Err(Error::Unsupported { .. })));
}

#[test]
fn both_updates_meet() {
    for data in [simulate::mixture(shape(300, 6, 2), 3, 8.0, 3).0, gappy(3)] {
        let fit = |update| to_the_end(3, update).fit(&data, &Spec::ppca(2)).unwrap();
        let (closed, latent) = (fit(Update::ClosedForm), fit(Update::Latent));
        assert!(closed.report.converged() && latent.report.converged());
        assert_close("ℓ", &[closed.report.objective.value], &[latent.report.objective.value], 1e-9);
        for (a, b) in closed.model.models().iter().zip(latent.model.models()) {
            assert_close("mean", a.mean(), b.mean(), 1e-3);
            assert_close("covariance", a.covariance().as_slice(), b.covariance().as_slice(), 1e-3);
        }
    }
}

#[test]
fn responsibilities_sum_to_one_and_follow_bayes() {
    let data = gappy(4);
    let model = MixtureEm::of(3).fit(&data, &Spec::ppca(2)).unwrap().model;
    let r = model.responsibilities(&data).unwrap();
    let dense: Vec<Gaussian> = model.models().iter().map(Gaussian::of).collect();
    for i in 0..data.n_rows() {
        assert!((r.row(i).iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let joint: Vec<f64> =
            dense.iter().zip(model.weights()).map(|(g, w)| w * g.log_density(data.row(i)).exp()).collect();
        let total: f64 = joint.iter().sum();
        assert_close("r", r.row(i), &joint.iter().map(|p| p / total).collect::<Vec<_>>(), 1e-9);
    }
}

#[test]
fn one_model_is_the_single_model() {
    let data = simulate::ppca(shape(120, 6, 2), 5).0;
    let one = MixtureEm::of(1).fit(&data, &Spec::ppca(2)).unwrap().model;
    let single = Spectral::default().fit(&data, &Spec::ppca(2)).unwrap().model;
    assert_close("mean", one.models()[0].mean(), single.mean(), 1e-12);
    let (got, want) = (one.models()[0].covariance(), single.covariance());
    assert_close("covariance", got.as_slice(), want.as_slice(), 1e-12);

    // With gaps, where both climb.
    let data = simulate::hide(&data, 0.2, 5);
    for (spec, update) in families() {
        let method = to_the_end(1, update);
        let (one, single) = (method.fit(&data, &spec).unwrap(), single_model(&data, &spec));
        let ends = [one.report.objective.value, single.log_likelihood(&data).unwrap()];
        assert!((ends[0] - ends[1]).abs() < 1e-5, "{spec:?} {update:?}: {ends:?}");
    }
}

fn single_model(data: &Dataset, spec: &Spec) -> LinearGaussian {
    if spec.n_components + 1 == data.n_columns() {
        let method = FullCovariance { pseudo_rows: 0.0, tolerance: 1e-12, ..FullCovariance::default() };
        return method.fit(data, spec).unwrap().model;
    }
    let spec = Spec { noise_floor: Some(1e-6), ..spec.clone() };
    let em =
        Em { tolerance: 1e-9, max_iterations: 20_000, acceleration: Acceleration::Never, ..Em::default() };
    em.fit(data, &spec).unwrap().model
}

#[test]
fn one_component_less_than_columns_is_the_full_gaussian_mixture() {
    // At its limit each covariance is that of its rows, weighted.
    let data = simulate::mixture(shape(300, 4, 1), 2, 8.0, 6).0;
    let model = to_the_end(2, Update::ClosedForm).fit(&data, &Spec::ppca(3)).unwrap().model;
    let r = model.responsibilities(&data).unwrap();
    for (k, c) in model.models().iter().enumerate() {
        let n: f64 = r.column(k).iter().sum();
        let s = Matrix::from_fn(4, 4, |i, j| {
            let product = |row: usize| {
                let t = data.row(row);
                r[(row, k)] * (t[i] - c.mean()[i]) * (t[j] - c.mean()[j])
            };
            (0..300).map(product).sum::<f64>() / n
        });
        assert_close("covariance", c.covariance().as_slice(), s.as_slice(), 1e-4);
    }
}

/// From a given start, so that no seed depends on the order of the rows.
fn from(start: &Mixture, update: Update) -> MixtureEm {
    MixtureEm {
        init: MixtureInit::Given(Box::new(start.clone())),
        update,
        max_iterations: 20,
        tolerance: 0.0,
        ..MixtureEm::of(start.models().len())
    }
}

#[test]
fn orders_of_rows_and_columns_and_rows_of_only_gaps_change_nothing() {
    let data = gappy(7);
    let (n, d) = (data.n_rows(), data.n_columns());
    for (spec, update) in families() {
        let start = MixtureEm { max_iterations: 1, update, ..MixtureEm::of(3) };
        let start = start.fit(&data, &spec).unwrap().model;
        if spec.standardize && spec.noise == NoiseFamily::Isotropic {
            continue; // Its noise comes back diagonal: not a start of its own family.
        }
        let fit = |data: &Dataset, start: &Mixture| from(start, update).fit(data, &spec).unwrap();
        let once = fit(&data, &start);

        let turned: Vec<usize> = (0..n).rev().collect();
        let rows = fit(&data.of_rows(&turned).unwrap(), &start);
        assert_close("ℓ", &[rows.report.objective.value], &[once.report.objective.value], 1e-11);

        let back = |j: usize| d - 1 - j;
        let columns = Matrix::from_fn(n, d, |i, j| data.row(i)[back(j)]);
        let turn = |c: &LinearGaussian| {
            let w = Matrix::from_fn(d, c.n_components(), |j, k| c.loadings()[(back(j), k)]);
            let noise = match c.noise() {
                Noise::Diagonal(v) => Noise::Diagonal(v.iter().rev().copied().collect()),
                one @ Noise::Isotropic(_) => one.clone(),
            };
            LinearGaussian::new(w, c.mean().iter().rev().copied().collect(), noise).unwrap()
        };
        let components = start.models().iter().map(turn).collect();
        let turned = Mixture::new(components, start.weights().to_vec()).unwrap();
        let columns = fit(&Dataset::new(columns).unwrap(), &turned);
        assert_close("ℓ", &[columns.report.objective.value], &[once.report.objective.value], 1e-9);
        for (a, b) in columns.model.models().iter().zip(once.model.models()) {
            let mean: Vec<f64> = a.mean().iter().rev().copied().collect();
            assert_close("mean", &mean, b.mean(), 1e-7);
        }

        let mut longer = data.values().as_slice().to_vec();
        longer.extend(vec![f64::NAN; 3 * d]);
        let longer = Dataset::new(Matrix::from_vec(n + 3, d, longer).unwrap()).unwrap();
        let longer = fit(&longer, &start);
        assert_close("ℓ", &[longer.report.objective.value], &[once.report.objective.value], 1e-12);
        for (a, b) in longer.model.models().iter().zip(once.model.models()) {
            assert_close("mean", a.mean(), b.mean(), 1e-12);
        }
    }
}

#[test]
fn components_far_apart_are_found_with_gaps() {
    let (whole, truth, labels) = simulate::mixture(shape(900, 8, 2), 3, 25.0, 8);
    let data = simulate::hide(&whole, 0.2, 8);
    let fit = MixtureEm::of(3).fit(&data, &Spec::ppca(2)).unwrap();
    assert_eq!(fit.report.termination, Termination::Converged);
    assert!(fit.model.log_likelihood(&data).unwrap() > truth.log_likelihood(&data).unwrap());
    // By decreasing weight: the last of the truth comes first.
    let found = fit.model.labels(&data).unwrap();
    let wrong = found.iter().zip(&labels).filter(|(f, t)| **f != 2 - **t).count();
    assert!(wrong <= 3, "{wrong} of 900 rows in another component");
    // What fills the gaps knows the component: far better than one model of the same size.
    let error = |density: &dyn Density| {
        let filled = density.impute(&data).unwrap();
        filled.cells().iter().map(|c| (c.mean - whole.values()[(c.row, c.column)]).powi(2)).sum::<f64>()
    };
    let single = Em::default().fit(&data, &Spec::ppca(2)).unwrap().model;
    assert!(error(&fit.model) < 0.5 * error(&single));
    assert!(error(&fit.model) < 1.05 * error(&truth));
}

#[test]
fn bic_finds_the_number_of_models() {
    let data = gappy(9);
    let bic = |k: usize| {
        let fit = MixtureEm::of(k).fit(&data, &Spec::ppca(2)).unwrap();
        information_criteria(fit.report.objective.value, fit.model.n_parameters(), data.n_informative_rows())
            .bic
    };
    let best = (1..=5).min_by(|&a, &b| bic(a).total_cmp(&bic(b))).unwrap();
    assert_eq!(best, 3);
}

#[test]
fn threads_and_repetition_leave_no_trace() {
    let whole = simulate::mixture(shape(9000, 12, 3), 3, 8.0, 10).0;
    for data in [simulate::hide(&whole, 0.1, 10), whole] {
        for update in [Update::ClosedForm, Update::Latent] {
            let method = MixtureEm { max_iterations: 12, restarts: 1, update, ..MixtureEm::of(3) };
            let fit = |threads| {
                on_threads(threads, || {
                    let fit = method.fit(&data, &Spec::ppca(3)).unwrap();
                    let filled = fit.model.impute(&data).unwrap();
                    let numbers = fit.model.models().iter().flat_map(|c| c.loadings().as_slice());
                    let numbers = numbers.chain(filled.values().as_slice()).chain(&fit.report.trace);
                    numbers.map(|v| v.to_bits()).collect::<Vec<_>>()
                })
            };
            let (one, two, again) = (fit(1), fit(2), fit(2));
            assert!(one == two && two == again, "{update:?}");
        }
    }
}

#[test]
fn models_that_lose_their_rows_are_moved_or_removed_and_said() {
    // Two points repeated: more models than places have no rows of their own.
    let values = Matrix::from_fn(60, 2, |i, j| {
        let place = if i % 2 == 0 { 0.0 } else { 10.0 };
        place + 0.01 * ((i * (j + 3)) % 7) as f64
    });
    let data = Dataset::new(values).unwrap();
    let at = |m: f64| LinearGaussian::new(Matrix::zeros(2, 0), vec![m; 2], Noise::Isotropic(1.0)).unwrap();
    let start = Mixture::equal(vec![at(0.0), at(10.0), at(500.0)]).unwrap();
    let method = MixtureEm { max_iterations: 200, ..from(&start, Update::Latent) };
    let fit = method.fit(&data, &Spec::ppca(0)).unwrap();
    let moved = |w: &Warning| matches!(w, Warning::ModelMoved { .. });
    assert!(fit.report.warnings.iter().any(moved), "{:?}", fit.report.warnings);
    assert!(fit.model.weights().iter().all(|w| *w * 60.0 >= 2.0 - 1e-9));
    assert!(fit.model.log_likelihood(&data).unwrap().is_finite());
}

#[test]
fn collapsing_models_stop_at_the_floor() {
    // Half of the rows are one point: its model would have no noise.
    let values = Matrix::from_fn(80, 3, |i, j| if i < 40 { 1.0 } else { ((i * 7 + j * 13) % 11) as f64 });
    let data = Dataset::new(values).unwrap();
    let fit = MixtureEm::of(2).fit(&data, &Spec::ppca(1)).unwrap();
    assert!(fit.report.warnings.iter().any(|w| matches!(w, Warning::NoiseAtFloor { .. })));
    let least = data.observed_variances().iter().sum::<f64>() / 3.0 * 1e-6;
    assert!(fit.model.models().iter().all(|c| c.noise().variance(0) >= least * (1.0 - 1e-9)));
}

/// As few rows as the models need, so that all have no more than enough, and rows that repeat.
#[test]
fn fewest_rows_and_repeated_rows_are_fitted() {
    let finite = |data: &Dataset, k: usize, spec: &Spec, update: Update, what: &str| {
        let method = MixtureEm { update, ..MixtureEm::of(k) };
        let fit = method.fit(data, spec).unwrap_or_else(|e| panic!("{what}, {update:?}: {e}"));
        assert!(fit.report.trace.iter().all(|l| l.is_finite()), "{what}: {:?}", fit.report.trace);
        assert_close(what, &[fit.model.log_likelihood(data).unwrap()], &[fit.report.objective.value], 1e-8);
    };
    for (k, q, rows) in [(2, 1, 6), (2, 2, 8), (3, 1, 9), (3, 0, 6), (2, 1, 7), (3, 2, 12)] {
        for seed in 0..20 {
            let (whole, _) = simulate::ppca(shape(rows, 5, 3), seed);
            let gaps = simulate::hide(&whole, 0.2, seed + 1);
            let repeated = whole.of_rows(&(0..30).map(|i| i % 3).collect::<Vec<_>>()).unwrap();
            let repeated_gaps = gaps.of_rows(&(0..30).map(|i| i % rows).collect::<Vec<_>>()).unwrap();
            for (data, of) in
                [(whole, "whole"), (gaps, "gaps"), (repeated, "repeated"), (repeated_gaps, "both")]
            {
                if data.n_informative_rows() < k * (q + 2) || data.n_observed_by_column().contains(&0) {
                    continue;
                }
                let what = format!("{k} models, {q} components, {rows} rows, seed {seed}, {of}");
                finite(&data, k, &Spec::ppca(q), Update::Latent, &what);
                finite(&data, k, &Spec::ppca(q), Update::ClosedForm, &what);
                finite(&data, k, &Spec::factor_analysis(q), Update::Auto, &what);
            }
        }
    }
}

#[test]
fn bad_requests_are_named() {
    let data = gappy(11);
    let error = |method: MixtureEm, spec: Spec| method.fit(&data, &spec).unwrap_err();
    assert_eq!(
        error(MixtureEm::of(100), Spec::ppca(2)),
        Error::TooManyMixtures { asked: 100, rows: 300, each: 4, max: 75 }
    );
    assert_eq!(
        error(MixtureEm::of(0), Spec::ppca(2)),
        Error::OutOfRange { name: "n_mixtures", value: 0.0, bound: "at least 1" }
    );
    let prior = Spec { prior: Prior::weak(), ..Spec::ppca(2) };
    assert!(matches!(error(MixtureEm::of(2), prior), Error::Unsupported { what: "a prior", .. }));
    let closed = MixtureEm { update: Update::ClosedForm, ..MixtureEm::of(2) };
    assert!(matches!(error(closed, Spec::factor_analysis(2)), Error::Unsupported { .. }));
    let endless = MixtureEm { tolerance: f64::NAN, ..MixtureEm::of(2) };
    assert!(matches!(error(endless, Spec::ppca(2)), Error::OutOfRange { name: "tolerance", .. }));
    assert!(matches!(error(MixtureEm::of(2), Spec::ppca(6)), Error::TooManyComponents { .. }));
    let other = MixtureEm::of(2).fit(&data, &Spec::ppca(1)).unwrap().model;
    let start = |n| MixtureEm { init: MixtureInit::Given(Box::new(other.clone())), ..MixtureEm::of(n) };
    assert!(matches!(error(start(3), Spec::ppca(1)), Error::WrongLength { .. }));
    // Fewer components than the spec allows are a model's own; more are not.
    assert!(matches!(error(start(2), Spec::ppca(0)), Error::WrongLength { .. }));
    let model = &other.models()[0];
    let weights = |w: &[f64]| LatentMoments::weighted(model, &data, w).map(drop).unwrap_err();
    assert!(matches!(weights(&[1.0]), Error::WrongLength { .. }));
    assert!(matches!(weights(&[-1.0; 300]), Error::OutOfRange { name: "weight", .. }));
}

fn labels(labels: &[usize]) -> Vec<Option<usize>> {
    labels.iter().map(|&c| Some(c)).collect()
}

fn names(n: usize) -> Vec<String> {
    (0..n).map(|c| format!("class {c}")).collect()
}

#[test]
fn classes_with_a_density_each() {
    let case = Golden::open("classifier_ppca");
    let data = dataset(case.input("data"));
    let of: Vec<usize> = flat(case.input("labels")).iter().map(|&c| c as usize).collect();
    let q = case.input("q").as_u64().unwrap() as usize;
    let fit = ClassConditional::default().fit(&data, &labels(&of), &names(2), &Spec::ppca(q)).unwrap();
    let (classifier, mixture) = (&fit.model, fit.model.mixture());
    case.check("class_prior", mixture.weights(), case.expected("class_prior"));
    let noise: Vec<f64> = mixture.models().iter().map(|c| c.noise().variance(0)).collect();
    case.check("sigma2", &noise, case.expected("sigma2"));
    let rows = dataset(case.input("new_rows"));
    let by_class: Vec<Vec<f64>> = mixture.models().iter().map(|c| c.log_density(&rows).unwrap()).collect();
    let densities: Vec<f64> = (0..rows.n_rows()).flat_map(|i| [by_class[0][i], by_class[1][i]]).collect();
    case.check("class_logdensity", &densities, case.expected("class_logdensity"));
    case.check(
        "probabilities",
        classifier.probabilities(&rows).unwrap().as_slice(),
        case.expected("probabilities"),
    );
    case.check("log_evidence", &mixture.log_density(&rows).unwrap(), case.expected("log_evidence"));
}

#[test]
fn standardized_classes_follow_the_units_of_the_table() {
    let (data, _, of) = simulate::mixture(shape(200, 5, 1), 2, 6.0, 12);
    let units = [1e3, 1.0, 1e-4, 7.0, 0.2];
    let stretched = Dataset::new(Matrix::from_fn(200, 5, |i, j| data.row(i)[j] * units[j])).unwrap();
    let spec = Spec { standardize: true, ..Spec::ppca(1) };
    let probabilities = |data: &Dataset| {
        let fit = ClassConditional::default().fit(data, &labels(&of), &names(2), &spec).unwrap();
        fit.model.probabilities(data).unwrap()
    };
    assert_close("p", probabilities(&stretched).as_slice(), probabilities(&data).as_slice(), 1e-8);
}

#[test]
fn the_likelihood_of_classes_is_in_the_units_of_the_table() {
    let (whole, _, of) = simulate::mixture(shape(120, 5, 1), 3, 6.0, 14);
    let units = [1e3, 1.0, 1e-4, 7.0, 0.2];
    let whole = Dataset::new(Matrix::from_fn(120, 5, |i, j| whole.row(i)[j] * units[j])).unwrap();
    let of: Vec<Option<usize>> = of.iter().enumerate().map(|(i, &c)| (i % 10 > 0).then_some(c)).collect();
    for (data, standardize) in
        [(simulate::hide(&whole, 0.2, 1), true), (simulate::hide(&whole, 0.2, 1), false), (whole, true)]
    {
        let spec = Spec { standardize, ..Spec::ppca(1) };
        let fit = ClassConditional::default().fit(&data, &of, &names(3), &spec).unwrap();
        let mixture = fit.model.mixture();
        let by_class: Vec<Vec<f64>> =
            mixture.models().iter().map(|model| model.log_density(&data).unwrap()).collect();
        let labeled = of.iter().enumerate().filter_map(|(i, c)| Some((i, (*c)?)));
        let expected: f64 = labeled.map(|(i, c)| mixture.weights()[c].ln() + by_class[c][i]).sum();
        assert_close("log-likelihood", &[fit.report.objective.value], &[expected], 1e-8);
        assert_close("end of the trace", &fit.report.trace[fit.report.n_iterations()..], &[expected], 1e-8);
        let steps = |c| {
            let rows: Vec<usize> = (0..of.len()).filter(|&i| of[i] == Some(c)).collect();
            let members = data.of_rows(&rows).unwrap();
            let spec = Spec { noise_floor: Some(1e-6), ..spec.clone() };
            Method::recommended(&members, &spec).fit(&members, &spec).unwrap().report.n_iterations()
        };
        if !standardize {
            assert_eq!(fit.report.n_iterations(), (0..3).map(steps).max().unwrap());
        }
        assert_eq!(fit.report.n_iterations() > 0, !data.is_complete());
    }
}

#[test]
fn classes_that_cannot_be_told_apart_or_fitted_are_named() {
    let (data, _, of) = simulate::mixture(shape(40, 4, 1), 2, 6.0, 13);
    let fit = |of: &[Option<usize>], classes: &[String]| {
        ClassConditional::default().fit(&data, of, classes, &Spec::ppca(1)).map(drop).unwrap_err()
    };
    let one = fit(&labels(&[0; 40]), &names(1));
    assert_eq!(
        one.to_string(),
        "all rows are of class `class 0`: a classifier tells classes apart; give rows of two or more"
    );
    assert!(matches!(fit(&labels(&of), &names(1)), Error::WrongLength { what: "classes", .. }));
    assert!(matches!(fit(&labels(&of[1..]), &names(2)), Error::WrongLength { what: "labels of rows", .. }));
    let mut single = vec![Some(0); 40];
    single[3] = Some(1);
    let lonely = fit(&single, &names(2));
    assert!(lonely.to_string().starts_with("class `class 1`: only 1 row has"), "{lonely}");
    let mut alike = data.values().clone();
    (0..20).for_each(|i| alike.row_mut(i).fill(2.0));
    let halves: Vec<usize> = (0..40).map(|i| i / 20).collect();
    let alike = Dataset::new(alike).unwrap();
    let constant = ClassConditional::default().fit(&alike, &labels(&halves), &names(2), &Spec::ppca(1));
    assert!(matches!(constant, Err(Error::InClass { .. })));
    let priors = ClassConditional { priors: Some(vec![1.0]), ..ClassConditional::default() };
    let wrong = priors.fit(&data, &labels(&of), &names(2), &Spec::ppca(1)).map(drop).unwrap_err();
    assert!(matches!(wrong, Error::WrongLength { what: "prior probabilities of classes", .. }));
}

/// Rows of `oil_flow`: twelve measurements, then the flow: stratified, annular or homogeneous.
fn oil(file: &str) -> Option<(Dataset, Vec<usize>)> {
    let path = shared_data(&format!("oil_flow/{file}"))?;
    let text = std::fs::read_to_string(path).unwrap();
    let numbers = |line: &str| line.split(',').map(str::parse::<f64>).collect::<Result<Vec<_>, _>>();
    let rows: Vec<Vec<f64>> = text.lines().filter_map(|line| numbers(line).ok()).collect();
    let flows: Vec<usize> = rows.iter().map(|r| r[12] as usize).collect();
    let first = *flows.iter().min().unwrap();
    let values = Matrix::from_fn(rows.len(), 12, |i, j| rows[i][j]);
    Some((Dataset::new(values).unwrap(), flows.iter().map(|c| c - first).collect()))
}

#[test]
fn flows_of_oil_are_told_apart() {
    let (Some((train, flows)), Some((test, truth))) = (oil("oil_train.csv"), oil("oil_test.csv")) else {
        return;
    };
    // Rows of several models of one flow each: few rows of a model are of another flow.
    let fit = MixtureEm::of(12).fit(&train, &Spec::ppca(2)).unwrap();
    let found = fit.model.labels(&train).unwrap();
    let mut counts = Matrix::zeros(12, 3);
    found.iter().zip(&flows).for_each(|(&k, &c)| counts[(k, c)] += 1.0);
    let pure: f64 = counts.rows().map(|row| row.iter().copied().fold(0.0, f64::max)).sum();
    assert!(
        pure / train.n_rows() as f64 > 0.9,
        "{} of {} rows in models of their own flow",
        pure,
        train.n_rows()
    );

    let share = |rows: &Dataset| {
        let fit =
            ClassConditional::default().fit(&train, &labels(&flows), &names(3), &Spec::ppca(6)).unwrap();
        let right = fit.model.predict(rows).unwrap().iter().zip(&truth).filter(|(a, b)| a == b).count();
        right as f64 / truth.len() as f64
    };
    assert!(share(&test) > 0.97, "{}", share(&test));
    assert!(share(&simulate::hide(&test, 0.2, 1)) > 0.9, "{}", share(&simulate::hide(&test, 0.2, 1)));
}

/// A mixture and classes, as they are kept.
fn kept() -> [Learned; 2] {
    let (whole, _, of) = simulate::mixture(shape(90, 4, 1), 3, 8.0, 14);
    let data = simulate::hide(&whole, 0.1, 14);
    let (spec, method) = (Spec::factor_analysis(1), MixtureEm::of(3));
    let mixture = Learned::of_mixture(method.fit(&data, &spec).unwrap(), &data, &spec, (&method).into());
    let constants = vec![Constant { name: "always".to_owned(), value: -0.0 }];
    let spec = Spec { standardize: true, ..Spec::ppca(2) };
    let fit = ClassConditional::default().fit(&data, &labels(&of), &names(3), &spec).unwrap();
    let em = Method::from_name("em").unwrap();
    let classes = Learned::of_classes(fit, ("größe", None), &data, &spec, (&em).into());
    [Learned { constants, ..mixture }, classes]
}

#[test]
fn mixtures_and_classes_come_back_from_their_files() {
    for saved in kept() {
        let written = bytes(&saved);
        let read = model_file::read(written.as_slice()).expect("a mixture was written");
        assert_eq!(read, saved);
        assert!(bytes(&read) == written, "written, read and written again");
        let json = serde_json::from_str::<Value>(&saved.to_json()).expect("JSON");
        let components = saved.mixture().unwrap().components();
        let differ = components.iter().any(|q| *q != components[0]);
        for (listed, q) in json["models"].as_array().unwrap().iter().zip(components) {
            assert_eq!(listed["loadings"][0].as_array().unwrap().len(), q);
            // Where all have as many, the number stands once.
            assert_eq!(listed["n_components"].as_u64(), differ.then_some(q as u64));
        }
        let what =
            if read.mixture().unwrap().classes.is_some() { "classes with a model each" } else { "a mixture" };
        assert_eq!(read.linear().unwrap_err(), Error::NotOneModel { what });
    }
}

#[test]
fn damaged_files_of_mixtures_are_refused() {
    for saved in kept() {
        let written = bytes(&saved);
        for length in (0..written.len()).step_by(7) {
            assert!(model_file::read(&written[..length]).is_err(), "cut at {length}");
        }
        // One byte changed: refused, or a model whose parts fit together.
        let mut read = 0;
        for at in 0..written.len().min(6000) {
            let mut changed = written.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(model_file::read(changed.as_slice()).is_err(), "the checksum tells");
            if let Some(saved) =
                model_file::read(sealed(changed).as_slice()).ok().filter(|s| s.mixture().is_ok())
            {
                bytes(&saved);
                read += 1;
            }
        }
        assert!(read > 0, "numbers may change");
        let broken = Learned { columns: saved.columns[1..].to_vec(), ..saved.clone() };
        assert!(model_file::write(&broken, Vec::new()).is_err());
    }
}

/// A file of every field, its numbers written out: what `golden_mixture` has.
pub(crate) fn everything_mixed() -> Learned {
    let model = |shift: f64| {
        let w = Matrix::from_rows(&[[1.5 + shift], [-0.25], [0.0]]);
        LinearGaussian::new(w, vec![shift, -0.0, 1e-300], Noise::Diagonal(vec![0.5, 2.0, 1e-6]))
            .and_then(|model| model.with_scale(Some(vec![2.0, 1.5, 0.125])))
            .unwrap()
    };
    let mut options = std::collections::BTreeMap::new();
    options.insert("init".to_owned(), "k-means".to_owned());
    options.insert("n_mixtures".to_owned(), "2".to_owned());
    let fit = MixtureFit {
        mixture: Mixture::new(vec![model(0.0), model(3.0)], vec![0.75, 0.25]).unwrap(),
        classes: Some(ClassNames {
            target: "größe".to_owned(),
            names: vec!["klein".to_owned(), "groß".to_owned()],
            lent: None,
        }),
        spec: Spec { standardize: true, ..Spec::factor_analysis(1) },
        report: FitReport {
            objective: Objective { kind: ObjectiveKind::LogLikelihood, value: -12.5 },
            trace: vec![-14.0, -13.0, -12.5],
            termination: Termination::IterationLimit,
            warnings: vec![
                Warning::ModelMoved { iteration: 1 },
                Warning::StillRising { iterations: 2, remaining: 0.1 },
            ],
            relevance: Vec::new(),
            monitored: Vec::new(),
        },
    };
    Learned {
        family: Family::Mfa,
        columns: ["a", "b b", "ç"].map(str::to_owned).to_vec(),
        constants: vec![Constant { name: "always".to_owned(), value: -0.0 }],
        method: MethodRecord { name: "mixture-em".to_owned(), options },
        seed: u64::MAX,
        training: Training {
            n_rows: 20,
            n_observed_by_column: vec![20, 19, 7],
            column_means: vec![0.5, 0.25, -1.0],
            column_sds: vec![2.0, 1.5, 0.125],
        },
        check: Some(SelfCheck {
            n_hidden: 9,
            rmse: 0.5,
            baseline_rmse: 1.0,
            skill: 0.75,
            skill_by_column: vec![Some(0.5), None, Some(-0.25)],
            coverage: vec![Coverage { level: 0.9, share: 0.875, standard_error: 0.0625 }],
        }),
        filling: None,
        created_by: "covary 0.1.0".to_owned(),
        model: Trained::Mixture(Box::new(fit)),
    }
}

fn golden_mixture(version: u64) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/golden/model_files/mixture_version_{version}.covary"))
}

#[test]
fn the_golden_file_of_a_mixture_still_opens() {
    for version in [2, 3] {
        let file =
            std::fs::File::open(golden_mixture(version)).expect("golden files are part of the project");
        let read = model_file::read(file).expect("a model file");
        assert_eq!(read, everything_mixed());
        assert_eq!(
            read.mixture().expect("a mixture was written").mixture.models()[0].mean()[1].to_bits(),
            (-0.0_f64).to_bits()
        );
    }
}

#[test]
#[ignore = "writes the golden file: `cargo test --release -p covary --test it write_the_golden -- --ignored`"]
fn write_the_golden_file_of_a_mixture() {
    std::fs::write(golden_mixture(3), bytes(&everything_mixed())).expect("a folder to write to");
}

#[test]
fn a_check_of_other_columns_is_refused() {
    let mut saved = everything_mixed();
    saved.check.as_mut().unwrap().skill_by_column.pop();
    assert!(model_file::write(&saved, Vec::new()).is_err());
}

#[test]
fn starts_around_rows_find_planes_that_k_means_cuts() {
    // Three long planes through one place: nearness says nothing of them.
    let planes = |seed: u64| simulate::mixture(shape(600, 10, 2), 3, 0.0, seed);
    for seed in 0..4 {
        let (data, truth, _) = planes(seed);
        let fit = MixtureEm::of(3).fit(&data, &Spec::ppca(2)).unwrap();
        let (found, true_value) = (fit.report.objective.value, truth.log_likelihood(&data).unwrap());
        assert!(found > true_value, "seed {seed}: {found} {true_value}");
    }
    let Some((train, _)) = oil("oil_train.csv") else { return };
    let k_means = MixtureEm { init: MixtureInit::KMeans, restarts: 2, ..MixtureEm::of(3) };
    let by = |method: &MixtureEm| method.fit(&train, &Spec::ppca(2)).unwrap().report.objective.value / 1000.0;
    assert!(by(&MixtureEm::of(3)) > by(&k_means) + 2.0);
}

#[test]
fn starts_of_a_long_table_are_compared_on_a_part_of_it() {
    // What goes on is a climb of all rows: its trace is theirs, and never falls.
    let data = simulate::hide(&simulate::mixture(shape(6000, 6, 2), 3, 8.0, 21).0, 0.1, 21);
    let fit = MixtureEm::of(3).fit(&data, &Spec::ppca(2)).unwrap();
    assert!(fit.report.converged() && fit.report.n_iterations() < 60);
    assert!(fit.report.trace.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9 * pair[0].abs()));
    assert_close("ℓ", &[fit.report.objective.value], &[fit.model.log_likelihood(&data).unwrap()], 1e-11);

    // A column that the part lacks: all rows are asked.
    let mut sparse = data.values().clone();
    let shown = data.spread_rows(1000);
    for i in 0..6000 {
        if shown.binary_search(&i).is_ok() {
            sparse[(i, 5)] = f64::NAN;
        }
    }
    let fit = MixtureEm::of(3).fit(&Dataset::new(sparse).unwrap(), &Spec::ppca(2)).unwrap();
    assert!(fit.report.objective.value.is_finite());
}

#[test]
fn an_interrupted_start_is_returned_as_far_as_it_got() {
    for rows in [300, 3000] {
        let data = simulate::mixture(shape(rows, 6, 2), 3, 4.0, 22).0;
        let mut steps = 0;
        let mut observer = |_: &Step| {
            steps += 1;
            if steps == 12 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let fit =
            MixtureEm::of(3).fit_observed(&data, &Spec::ppca(2), &mut observer as &mut dyn Observer).unwrap();
        assert_eq!(fit.report.termination, Termination::Interrupted);
        assert_eq!(steps, 12);
        assert!(fit.report.objective.value.is_finite());
    }
}

#[test]
fn sizes_are_judged_by_bic_and_by_rows_held_out() {
    let (data, _, _) = simulate::mixture(shape(300, 5, 1), 2, 12.0, 23);
    let request = Request {
        max_mixtures: 3,
        max_components: 2,
        standardize: Some(false),
        ..Request::new(Family::Mppca)
    };
    let found = request.compare_sizes(&data, 5, &|_, _| ControlFlow::Continue(())).unwrap();
    assert_eq!(found.0.len(), 6);
    let chosen = found.recommended().unwrap();
    assert_eq!((chosen.n_mixtures, chosen.n_components), (2, 1));
    let held: Vec<_> = found.0.iter().map(|at| at.held_out.unwrap()).collect();
    let best = held.iter().map(|h| h.mean).fold(f64::NEG_INFINITY, f64::max);
    for h in &held {
        assert_close("shortfall", &[h.shortfall], &[best - h.mean], 1e-9);
        assert!(h.shortfall == 0.0 || h.shortfall_error > 0.0);
    }
    assert_eq!(found.best_held_out().unwrap().n_mixtures, 2);
    assert!(
        found.to_string().starts_with("Recommended: 2 models with 1 component, the least BIC."),
        "{found}"
    );

    // One model is the single model, standardized or not.
    let one = Request { max_mixtures: 1, standardize: Some(true), ..request.clone() };
    let one = one.compare_sizes(&data, 0, &|_, _| ControlFlow::Continue(())).unwrap();
    assert_eq!(one.0.iter().map(|at| at.n_parameters).collect::<Vec<_>>(), [5 + 5 + 1, 5 + 10 + 1 - 1]);

    // Sizes that do not fit what is left when rows are held out are not tried.
    let few = data.of_rows(&(0..20).collect::<Vec<_>>()).unwrap();
    let request = Request { max_mixtures: 6, n_components: Some(Components::Number(1)), ..request };
    let found = request.compare_sizes(&few, 5, &|_, _| ControlFlow::Continue(())).unwrap();
    assert_eq!(found.0.iter().map(|at| at.n_mixtures).max(), Some(5));
}

/// A few rows that are alike make the likelihood as large as the floor of the noise allows: its BIC would win.
#[test]
fn a_size_without_a_maximum_is_not_recommended() {
    let mut values = simulate::ppca(shape(60, 5, 2), 3).0.into_values();
    for (i, j) in (1..10).flat_map(|i| (0..5).map(move |j| (i, j))) {
        values[(i, j)] = values[(0, j)];
    }
    let data = Dataset::new(values).unwrap();
    let found =
        Request::new(Family::Mppca).compare_sizes(&data, 0, &|_, _| ControlFlow::Continue(())).unwrap();
    let least = found.0.iter().min_by(|a, b| a.bic.total_cmp(&b.bic)).unwrap();
    assert!(least.singular && least.n_mixtures > 1, "{least:?}");
    let chosen = found.recommended().unwrap();
    let others = found.0.iter().filter(|at| !at.singular);
    assert_eq!(chosen.bic, others.map(|at| at.bic).fold(f64::INFINITY, f64::min));
    assert!(!chosen.singular && chosen.bic > least.bic, "{chosen:?}");
    assert!(found.to_string().contains("no maximum was found"), "{found}");

    // Where every size is singular, BIC is all there is.
    let flat = found.0.iter().copied().filter(|at| at.singular).collect();
    let flat = MixtureComparison(flat);
    assert_eq!(flat.recommended().unwrap().bic, least.bic);

    // A fit that ended on its way: its likelihood is not the maximum that BIC needs.
    let judged = |max_iterations: usize| {
        let method = MixtureEm { max_iterations, restarts: 0, ..MixtureEm::default() };
        let data = unequal(0.1, NoiseFamily::Isotropic);
        mixture_sizes(&data, &Spec::ppca(1), &[(3, 2)], &method, 0, &|_, _| ControlFlow::Continue(()))
            .unwrap()[0]
    };
    let (early, late) = (judged(3), judged(1000));
    assert!(late.log_likelihood - early.log_likelihood > 1.0, "{early:?} {late:?}");
    assert!(early.singular && !late.singular, "{early:?} {late:?}");
}

/// Rows of three classes, some without one, by their labels.
fn classed(gaps: f64) -> (Dataset, Vec<Option<usize>>) {
    let (whole, _, of) = simulate::mixture(shape(120, 5, 2), 3, 4.0, 51);
    let labels = of.iter().enumerate().map(|(i, &c)| (i % 10 != 0).then_some(c)).collect();
    (if gaps > 0.0 { simulate::hide(&whole, gaps, 52) } else { whole }, labels)
}

/// Of a complete table everything has a closed form: weighted moments, and at the ends the single models.
#[test]
fn rows_lent_to_other_classes_are_counted_by_their_share() {
    let (data, labels) = classed(0.0);
    let fit = |lent: Option<f64>| {
        let estimator = ClassConditional { lent, ..ClassConditional::default() };
        estimator.fit(&data, &labels, &names(3), &Spec::ppca(2)).unwrap()
    };
    let own = fit(None);
    let labeled: Vec<usize> = (0..120).filter(|&i| labels[i].is_some()).collect();
    let all = Spectral::default().fit(&data.of_rows(&labeled).unwrap(), &Spec::ppca(2)).unwrap().model;
    let (none, every, some) = (fit(Some(0.0)), fit(Some(1.0)), fit(Some(0.2)));
    assert_close("own rows", &[none.report.objective.value], &[own.report.objective.value], 1e-9);
    for c in 0..3 {
        let covariance = |fit: &Fit<covary::model::Classifier>| fit.model.mixture().models()[c].covariance();
        assert_close("λ = 0", covariance(&none).as_slice(), covariance(&own).as_slice(), 1e-9);
        assert_close("λ = 1", covariance(&every).as_slice(), all.covariance().as_slice(), 1e-9);
        let weight = |i: usize| labels[i].map_or(0.0, |k| if k == c { 1.0 } else { 0.2 });
        let total: f64 = (0..120).map(weight).sum();
        let mean: Vec<f64> =
            (0..5).map(|j| (0..120).map(|i| weight(i) * data.row(i)[j]).sum::<f64>() / total).collect();
        let model = &some.model.mixture().models()[c];
        assert_close("mean", model.mean(), &mean, 1e-9);
        let variance = |i: usize| (0..5).map(|j| (data.row(i)[j] - mean[j]).powi(2)).sum::<f64>();
        let trace = (0..120).map(|i| weight(i) * variance(i)).sum::<f64>() / total;
        // Maximum likelihood keeps the total variance.
        assert_close("variance", &[model.covariance().trace()], &[trace], 1e-9);
    }
    assert_eq!(none.model.mixture().weights(), own.model.mixture().weights());
    let beyond = ClassConditional { lent: Some(1.5), ..ClassConditional::default() };
    let refused = beyond.fit(&data, &labels, &names(3), &Spec::ppca(2)).unwrap_err();
    assert_eq!(refused, Error::OutOfRange { name: "lent", value: 1.5, bound: "from 0 to 1" });
}

#[test]
fn a_row_of_a_known_class_is_filled_by_its_class() {
    let (data, labels) = classed(0.15);
    for (family, standardize) in [(Family::Ppca, true), (Family::Ppca, false), (Family::Fa, true)] {
        let classes =
            Classes { target: "kind".to_owned(), names: names(3), of_rows: labels.clone(), priors: None };
        let filling = ForFilling { choose: false, calibrate: false, limits: false };
        let request = Request {
            n_components: Some(Components::Number(2)),
            classes: Some(classes),
            standardize: Some(standardize),
            filling: Some(filling),
            ..Request::new(family)
        };
        let what = format!("{family}, standardized {standardize}");
        let mut learned = on_threads(2, || request.learn(&data).unwrap());
        assert_eq!(bytes(&on_threads(1, || request.learn(&data).unwrap())), bytes(&learned), "{what}");
        assert_eq!(model_file::read(bytes(&learned).as_slice()).expect("a file"), learned, "{what}");
        let known = data.clone().of_classes(labels.clone()).unwrap();
        let fit = learned.mixture().unwrap();
        assert!(fit.classes.as_ref().unwrap().lent.is_some_and(|lent| (0.0..=1.0).contains(&lent)));
        let dense: Vec<Gaussian> = fit.mixture.models().iter().map(Gaussian::of).collect();
        let (filled, blind) = (
            learned.fill(Rows::Training).unwrap().fill(&known).unwrap(),
            learned.fill(Rows::Training).unwrap().fill(&data).unwrap(),
        );
        assert_eq!(filled.cells().len(), data.n_gaps());
        for (cell, blind) in filled.cells().iter().zip(blind.cells()) {
            let (mean, sd) = match labels[cell.row] {
                None => (blind.mean, blind.sd),
                Some(c) => {
                    let gaps = dense[c].gaps(data.row(cell.row));
                    let k = gaps.columns.iter().position(|j| *j == cell.column).unwrap();
                    (gaps.mean[k], gaps.covariance[(k, k)].sqrt())
                }
            };
            assert_close(&what, &[cell.mean, cell.sd], &[mean, sd], 1e-8);
        }
        let drawn = learned.gap_draws(Rows::Training, &known).unwrap().draw(0, 1).unwrap();
        assert!(drawn.as_slice().iter().all(|v| v.is_finite()), "{what}");
        request.check_observed(&mut learned, &known, &()).unwrap();
        assert!(learned.check.as_ref().is_some_and(|check| check.n_hidden > 20), "{what}");
    }
    let beyond = data.clone().of_classes(vec![Some(3); 120]).unwrap();
    let mixture = simulate::mixture(shape(10, 5, 2), 3, 4.0, 51).1;
    assert_eq!(
        mixture.impute(&beyond).unwrap_err(),
        Error::WrongLength { what: "classes", expected: 4, got: 3 }
    );
}

/// Two groups that lie apart, with one and with three components.
fn unequal(gaps: f64, noise: NoiseFamily) -> Dataset {
    let draw = |q: usize, seed: u64| match noise {
        NoiseFamily::Isotropic => simulate::ppca(shape(150, 8, q), seed).0,
        NoiseFamily::Diagonal => simulate::factor_analysis(shape(150, 8, q), seed).0,
    };
    let (one, three) = (draw(1, 31), draw(3, 32));
    let cell = |i: usize, j: usize| {
        let value = if i < 150 { one.values()[(i, j)] } else { three.values()[(i - 150, j)] + 12.0 };
        // Columns of different units, where each has its own noise.
        value * if noise == NoiseFamily::Diagonal { 1.0 + j as f64 } else { 1.0 }
    };
    let whole = Dataset::new(Matrix::from_fn(300, 8, cell)).unwrap();
    if gaps > 0.0 { simulate::hide(&whole, gaps, 33) } else { whole }
}

/// Every number against dense formulas: likelihood, parameters, memberships, filled cells.
#[test]
fn each_model_has_components_of_its_own() {
    for (family, standardize, gaps) in [
        (Family::Mppca, true, 0.1),
        (Family::Mppca, false, 0.0),
        (Family::Mfa, true, 0.0),
        (Family::Mfa, false, 0.1),
    ] {
        let request = Request { max_mixtures: 2, standardize: Some(standardize), ..Request::new(family) };
        let data = unequal(gaps, request.spec().noise);
        let what = format!("{family}, standardized {standardize}, gaps {gaps}");
        let learned = on_threads(2, || request.learn(&data).unwrap());
        let fit = learned.mixture().unwrap();
        let mut found = fit.components();
        if family == Family::Mfa || !standardize {
            found.sort_unstable();
            assert_eq!(found, [1, 3], "{what}");
        }
        let (models, weights) = (fit.mixture.models(), fit.mixture.weights());
        let dense: Vec<Gaussian> = models.iter().map(Gaussian::of).collect();
        let joint = |i: usize| -> Vec<f64> {
            dense.iter().zip(weights).map(|(g, w)| w * g.log_density(data.row(i)).exp()).collect()
        };
        let total: f64 = (0..300).map(|i| joint(i).iter().sum::<f64>().ln()).sum();
        assert_close(&what, &[fit.report.objective.value], &[total], 1e-9);
        // d means, q (2 d − q + 1) / 2 for the plane, its noise, and the weights but one.
        let of = |q: usize| 8 + q * (2 * 8 + 1 - q) / 2 + if family == Family::Mfa { 8 } else { 1 };
        let n_parameters = fit.components().into_iter().map(of).sum::<usize>() + models.len() - 1;
        assert_eq!(learned.n_parameters().unwrap(), n_parameters, "{what}");
        let common = request.compare_sizes(&data, 0, &|_, _| ControlFlow::Continue(())).unwrap();
        let bic = -2.0 * total + n_parameters as f64 * 300.0_f64.ln();
        assert!(bic < common.recommended().unwrap().bic, "{what}");
        let shares = fit.mixture.responsibilities(&data).unwrap();
        for i in [0, 149, 150, 299] {
            let joint = joint(i);
            let r: Vec<f64> = joint.iter().map(|j| j / joint.iter().sum::<f64>()).collect();
            assert_close(&what, shares.row(i), &r, 1e-9);
        }
        let filled = fit.mixture.impute(&data).unwrap();
        for cell in filled.cells() {
            let row = data.row(cell.row);
            let r = shares.row(cell.row);
            let gaps: Vec<_> = dense.iter().map(|g| g.gaps(row)).collect();
            let k = gaps[0].columns.iter().position(|j| *j == cell.column).unwrap();
            let mean: f64 = gaps.iter().zip(r).map(|(g, r)| r * g.mean[k]).sum();
            let square =
                |(g, r): (&crate::dense::Gaps, &f64)| r * (g.covariance[(k, k)] + (g.mean[k] - mean).powi(2));
            let variance: f64 = gaps.iter().zip(r).map(square).sum();
            assert_close(&what, &[cell.mean, cell.sd], &[mean, variance.sqrt()], 1e-7);
        }
        let read = model_file::read(bytes(&learned).as_slice()).expect("a mixture was written");
        assert_eq!(read, learned, "{what}");
        let again = on_threads(1, || request.learn(&data).unwrap());
        assert_eq!(bytes(&again), bytes(&learned), "{what}, on one thread");
    }
}

#[test]
fn separating_axes_solve_their_eigenproblem() {
    let mixture = simulate::mixture(shape(50, 5, 2), 3, 6.0, 24).1;
    let apart = Discriminants::of(&mixture, 5).unwrap();
    let d = 5;
    let sum = |of: &dyn Fn(&LinearGaussian) -> Matrix| {
        mixture.models().iter().zip(mixture.weights()).fold(Matrix::zeros(d, d), |sum, (c, pi)| {
            let of = of(c);
            Matrix::from_fn(d, d, |i, j| sum[(i, j)] + pi * of[(i, j)])
        })
    };
    let mean = |j: usize| -> f64 {
        mixture.models().iter().zip(mixture.weights()).map(|(c, pi)| pi * c.mean()[j]).sum()
    };
    let off = |c: &LinearGaussian, j: usize| c.mean()[j] - mean(j);
    let between = sum(&|c| Matrix::from_fn(d, d, |i, j| off(c, i) * off(c, j)));
    let within = sum(&LinearGaussian::covariance);
    let total = Matrix::from_fn(d, d, |i, j| between[(i, j)] + within[(i, j)]);
    let unit = apart.axes().t_dot(&total.dot(apart.axes()));
    assert_close("vᵀΣv", unit.as_slice(), Matrix::identity(d).as_slice(), 1e-9);
    // Means first, largest share first; they take what they can, so the rest has little of them.
    let shares = apart.axes().t_dot(&between.dot(apart.axes()));
    let n_means = (0..d).take_while(|&k| shares[(k, k)] >= 0.2).count();
    assert_eq!(n_means, 2, "{shares:?}");
    assert!(shares[(0, 0)] >= shares[(1, 1)] && shares[(0, 1)].abs() < 1e-9);
    assert!((2..d).all(|i| (0..d).all(|j| shares[(i, j)].abs() < 1e-9)), "three means lie in a plane");
    // All axes together are Σ⁻¹ = V Vᵀ; the others are eigenvectors of how covariances differ.
    let inverse = apart.axes().dot_t(apart.axes());
    let turned = |a: &Matrix| apart.axes().t_dot(&a.dot(apart.axes()));
    let shapes = sum(&|c| {
        let c = c.covariance();
        let a = Matrix::from_fn(d, d, |i, j| c[(i, j)] - within[(i, j)]);
        a.dot(&inverse).dot(&a)
    });
    let shapes = turned(&shapes);
    for i in 2..d {
        assert!((2..d).all(|j| i == j || shapes[(i, j)].abs() < 1e-9), "{shapes:?}");
        assert!(i == 2 || shapes[(i, i)] <= shapes[(i - 1, i - 1)] + 1e-12);
    }
    let centered = Dataset::new(Matrix::from_fn(1, d, |_, j| mean(j))).unwrap();
    assert!(apart.places(&mixture, &centered).unwrap().as_slice().iter().all(|v| v.abs() < 1e-12));
}
