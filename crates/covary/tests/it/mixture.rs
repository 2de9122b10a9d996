//! Mixtures of linear-Gaussian models: golden cases and laws (spec §9, §11).

use crate::common::{Golden, assert_close, dataset, flat, matrix, noise, shared_data};
use crate::contract::on_threads;
use crate::dense::Gaussian;
use covary::data::{Shape, simulate};
use covary::infer::{
    Acceleration, ClassConditional, Em, FullCovariance, LatentMoments, MixtureEm, MixtureInit, Spectral,
    Termination, Update, Warning,
};
use covary::io;
use covary::io::model_file::{self, Constant, Opened, SavedMixture};
use covary::model::Mixture;
use covary::select::information_criteria;
use covary::spec::{NoiseFamily, Prior};
use covary::{Dataset, Density, Error, Estimator, Fit, LinearGaussian, Matrix, Method, Noise, Spec};
use serde_json::Value;

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
    let model = &mixture.components()[0];
    match model.noise() {
        Noise::Isotropic(_) => Spec::ppca(model.n_components()),
        Noise::Diagonal(_) => Spec::factor_analysis(model.n_components()),
    }
}

/// Components of a record in the order of falling weight.
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
    for (component, k) in got.components().iter().zip(order(&record["pi"])) {
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

/// The records of a start, by the road itself.
fn check_trace(name: &str, start_name: &str, update: Update) {
    let case = Golden::open(name);
    let data = dataset(case.input("data"));
    let start = start(&case.input("starts")[start_name]);
    let expected = case.expected(start_name);
    case.check_one("initial", start.log_likelihood(&data).unwrap(), &expected["initial_loglik"]);
    let mut last = None;
    for record in expected["trace"].as_array().unwrap() {
        let road = MixtureEm {
            n_mixtures: start.components().len(),
            max_iterations: record["iterations"].as_u64().unwrap() as usize,
            tolerance: 0.0,
            update,
            parameter_expansion: false,
            init: MixtureInit::Given(Box::new(start.clone())),
            ..MixtureEm::default()
        };
        let fit = road.fit(&data, &spec_of(&start)).unwrap();
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
                let (components, weights) = mixture.components().iter().enumerate().map(step).unzip();
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
                let road = MixtureEm { update, parameter_expansion, ..MixtureEm::of(3) };
                let Fit { model, report, .. } = road.fit(&data, &spec).unwrap();
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
fn both_updates_meet() {
    for data in [simulate::mixture(shape(300, 6, 2), 3, 8.0, 3).0, gappy(3)] {
        let fit = |update| to_the_end(3, update).fit(&data, &Spec::ppca(2)).unwrap();
        let (closed, latent) = (fit(Update::ClosedForm), fit(Update::Latent));
        assert!(closed.report.converged() && latent.report.converged());
        assert_close("ℓ", &[closed.report.objective.value], &[latent.report.objective.value], 1e-9);
        for (a, b) in closed.model.components().iter().zip(latent.model.components()) {
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
    let dense: Vec<Gaussian> = model.components().iter().map(Gaussian::of).collect();
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
    assert_close("mean", one.components()[0].mean(), single.mean(), 1e-12);
    let (got, want) = (one.components()[0].covariance(), single.covariance());
    assert_close("covariance", got.as_slice(), want.as_slice(), 1e-12);

    // With gaps, where both climb.
    let data = simulate::hide(&data, 0.2, 5);
    for (spec, update) in families() {
        let road = to_the_end(1, update);
        let (one, single) = (road.fit(&data, &spec).unwrap(), single_model(&data, &spec));
        let ends = [one.report.objective.value, single.log_likelihood(&data).unwrap()];
        assert!((ends[0] - ends[1]).abs() < 1e-5, "{spec:?} {update:?}: {ends:?}");
    }
}

fn single_model(data: &Dataset, spec: &Spec) -> LinearGaussian {
    if spec.n_components + 1 == data.n_columns() {
        let road = FullCovariance { pseudo_rows: 0.0, tolerance: 1e-12, ..FullCovariance::default() };
        return road.fit(data, spec).unwrap().model;
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
    for (k, c) in model.components().iter().enumerate() {
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
        ..MixtureEm::of(start.components().len())
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
        let components = start.components().iter().map(turn).collect();
        let turned = Mixture::new(components, start.weights().to_vec()).unwrap();
        let columns = fit(&Dataset::new(columns).unwrap(), &turned);
        assert_close("ℓ", &[columns.report.objective.value], &[once.report.objective.value], 1e-9);
        for (a, b) in columns.model.components().iter().zip(once.model.components()) {
            let mean: Vec<f64> = a.mean().iter().rev().copied().collect();
            assert_close("mean", &mean, b.mean(), 1e-7);
        }

        let mut longer = data.values().as_slice().to_vec();
        longer.extend(vec![f64::NAN; 3 * d]);
        let longer = Dataset::new(Matrix::from_vec(n + 3, d, longer).unwrap()).unwrap();
        let longer = fit(&longer, &start);
        assert_close("ℓ", &[longer.report.objective.value], &[once.report.objective.value], 1e-12);
        for (a, b) in longer.model.components().iter().zip(once.model.components()) {
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
    // By falling weight: the last of the truth comes first.
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
            let road = MixtureEm { max_iterations: 12, restarts: 1, update, ..MixtureEm::of(3) };
            let fit = |threads| {
                on_threads(threads, || {
                    let fit = road.fit(&data, &Spec::ppca(3)).unwrap();
                    let filled = fit.model.impute(&data).unwrap();
                    let numbers = fit.model.components().iter().flat_map(|c| c.loadings().as_slice());
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
    let road = MixtureEm { max_iterations: 200, ..from(&start, Update::Latent) };
    let fit = road.fit(&data, &Spec::ppca(0)).unwrap();
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
    assert!(fit.model.components().iter().all(|c| c.noise().variance(0) >= least * (1.0 - 1e-9)));
}

#[test]
fn bad_requests_are_named() {
    let data = gappy(11);
    let error = |road: MixtureEm, spec: Spec| road.fit(&data, &spec).unwrap_err();
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
    assert!(matches!(error(start(2), Spec::ppca(2)), Error::WrongLength { .. }));
    let model = &other.components()[0];
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
    let noise: Vec<f64> = mixture.components().iter().map(|c| c.noise().variance(0)).collect();
    case.check("sigma2", &noise, case.expected("sigma2"));
    let rows = dataset(case.input("new_rows"));
    let by_class: Vec<Vec<f64>> =
        mixture.components().iter().map(|c| c.log_density(&rows).unwrap()).collect();
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
fn standardised_classes_follow_the_units_of_the_table() {
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
    assert!(lonely.to_string().starts_with("class `class 1`: only 1 row(s)"), "{lonely}");
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

fn bytes(saved: &SavedMixture) -> Vec<u8> {
    let mut bytes = Vec::new();
    model_file::write_mixture(saved, &mut bytes).expect("parts that fit together");
    bytes
}

/// A mixture and classes, as they are kept.
fn kept() -> [SavedMixture; 2] {
    let (whole, _, of) = simulate::mixture(shape(90, 4, 1), 3, 8.0, 14);
    let data = simulate::hide(&whole, 0.1, 14);
    let (spec, road) = (Spec::factor_analysis(1), MixtureEm::of(3));
    let mixture = SavedMixture::new(road.fit(&data, &spec).unwrap(), &data, &spec, (&road).into());
    let constants = vec![Constant { name: "always".to_owned(), value: -0.0 }];
    let spec = Spec { standardize: true, ..Spec::ppca(2) };
    let fit = ClassConditional::default().fit(&data, &labels(&of), &names(3), &spec).unwrap();
    let em = Method::from_name("em").unwrap();
    let classes = SavedMixture::of_classes(fit, "größe", &data, &spec, (&em).into());
    [SavedMixture { constants, ..mixture }, classes]
}

#[test]
fn mixtures_and_classes_come_back_from_their_files() {
    for saved in kept() {
        let written = bytes(&saved);
        let Ok(Opened::Mixture(read)) = model_file::open(written.as_slice()) else {
            panic!("a mixture was written")
        };
        assert_eq!(*read, saved);
        assert!(bytes(&read) == written, "written, read and written again");
        serde_json::from_str::<Value>(&saved.to_json()).expect("JSON");
        assert!(matches!(model_file::read(written.as_slice()), Err(io::Error::NotOneModel { .. })));
    }
}

#[test]
fn damaged_files_of_mixtures_are_refused() {
    for saved in kept() {
        let written = bytes(&saved);
        for length in (0..written.len()).step_by(7) {
            assert!(model_file::open(&written[..length]).is_err(), "cut at {length}");
        }
        // One byte changed: refused, or a model whose parts fit together.
        let mut read = 0;
        for at in 0..written.len().min(6000) {
            let mut changed = written.clone();
            changed[at] ^= 1 << (at % 8);
            if let Ok(Opened::Mixture(saved)) = model_file::open(changed.as_slice()) {
                bytes(&saved);
                read += 1;
            }
        }
        assert!(read > 0, "numbers may change");
        let broken = SavedMixture { columns: saved.columns[1..].to_vec(), ..saved.clone() };
        assert!(model_file::write_mixture(&broken, Vec::new()).is_err());
    }
}
