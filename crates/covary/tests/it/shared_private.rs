//! Shared and private components of several views: golden cases, agreement with canonical correlation, gaps.

use crate::common::{assert_close, dataset, flat, golden, matrix};
use covary::data::{Shape, simulate};
use covary::infer::{BachJordan, Init, SharedPrivate, Step, Termination, Warning};
use covary::spec::{NoiseFamily, Prior};
use covary::views::CanonicalCorrelation;
use covary::{Dataset, Density, Error, Estimator, LinearGaussian, Matrix, Method, Noise, Spec};
use rand::SeedableRng;
use serde_json::Value;
use std::ops::ControlFlow;

fn method(private: &[usize]) -> SharedPrivate {
    SharedPrivate { private: Some(private.to_vec()), ..SharedPrivate::default() }
}

fn spec(shared: usize, views: &[usize]) -> Spec {
    Spec::of_views(shared, views.to_vec())
}

fn joined(case: &Value) -> Dataset {
    let (x, y) = (matrix(&case["input"]["X"]), matrix(&case["input"]["Y"]));
    let rows: Vec<Vec<f64>> = (0..x.n_rows()).map(|i| [x.row(i), y.row(i)].concat()).collect();
    Dataset::new(Matrix::from_rows(&rows)).unwrap()
}

#[test]
fn the_golden_cases_are_met() {
    for name in ["pcca_shared_private_free", "pcca_shared_private_tied"] {
        let case = golden("part2", name);
        let (data, start, want) = (joined(&case), &case["input"]["start"], &case["expected"]);
        assert!(data.n_gaps() > 0);
        let tied_noise = case["input"]["tied_noise"].as_bool().unwrap();
        let sigma2 = flat(&start["sigma2"]);
        let noise = (0..7).map(|j| sigma2[usize::from(j >= 4 && !tied_noise)]).collect();
        let start = LinearGaussian::new(matrix(&start["W"]), flat(&start["mu"]), Noise::Diagonal(noise));
        let plain = SharedPrivate {
            tied_noise,
            max_iterations: 20,
            tolerance: 0.0,
            parameter_expansion: false,
            init: Init::Given(Box::new(start.unwrap())),
            ..method(&[1, 1])
        };
        let spec = spec(1, &[4, 3]);
        let fit = plain.fit(&data, &spec).unwrap();
        let tolerance = case["tolerance"]["trace_rel"].as_f64().unwrap();
        assert_close("start", &fit.report.trace[..1], &flat(&want["loglik_start"]), tolerance);
        assert_close("trace", &fit.report.trace[1..], &flat(&want["loglik_trace"]), tolerance);
        assert_close("μ", fit.model.mean(), &flat(&want["mu"]), tolerance);
        let noise = fit.model.noise_variances();
        let noise = if tied_noise { vec![noise[0]] } else { vec![noise[0], noise[4]] };
        assert_close("σ²", &noise, &flat(&want["sigma2"]), tolerance);
        // One component of a kind: only its sign is free.
        let (w, golden_w) = (fit.model.loadings(), matrix(&want["W"]));
        for k in 0..3 {
            let (got, want) = (w.column(k), golden_w.column(k));
            let sign = got.iter().zip(&want).map(|(a, b)| a * b).sum::<f64>().signum();
            let turned: Vec<f64> = got.iter().map(|v| sign * v).collect();
            assert_close("W", &turned, &want, tolerance);
        }
        let converged = case["tolerance"]["converged_rel"].as_f64().unwrap();
        let far = SharedPrivate { max_iterations: 100_000, tolerance: 1e-10, ..plain.clone() };
        for parameter_expansion in [false, true] {
            let fit = SharedPrivate { parameter_expansion, ..far.clone() }.fit(&data, &spec).unwrap();
            let want = &want["converged"];
            assert_close("ℓ", &[fit.report.objective.value], &flat(&want["loglik"]), converged);
            assert!(fit.report.trace.windows(2).all(|l| l[1] >= l[0] - 1e-9), "falls");
        }
    }
}

#[test]
fn with_full_private_parts_it_is_canonical_correlation() {
    let case = golden("part2", "pcca_ml");
    let found = CanonicalCorrelation { n_components: Some(1), ..CanonicalCorrelation::default() };
    let found = found.fit(&dataset(&case["input"]["X"]), &dataset(&case["input"]["Y"])).unwrap();
    let (both, spec) = (joined(&case), spec(1, &[4, 3]));
    let close = |value: f64| {
        let apart = value - found.log_likelihood().unwrap();
        assert!(apart.abs() < case["tolerance"]["em_abs"].as_f64().unwrap(), "{apart:.1e}");
    };
    let far = SharedPrivate { max_iterations: 50_000, tolerance: 1e-9, ..method(&[3, 2]) };
    close(far.fit(&both, &spec).unwrap().report.objective.value);
    // By default it starts there.
    let near = SharedPrivate::default().fit(&both, &spec).unwrap().report;
    close(near.objective.value);
    assert!(near.n_iterations() < 10, "{}", near.n_iterations());
    let closed = BachJordan::default().fit(&both, &spec).unwrap();
    close(closed.report.objective.value);
    assert_eq!(closed.model, found.model().unwrap());
    // What is shared comes out as the same pairs.
    let standardized = Spec { standardize: true, ..spec };
    let fit =
        SharedPrivate { tolerance: 1e-10, ..SharedPrivate::default() }.fit(&both, &standardized).unwrap();
    assert_close("W", &fit.model.loadings().column(0), &closed.model.loadings().column(0), 1e-5);
}

/// Three views of 4, 3 and 5 columns with one shared component and one private to each, and the same with gaps
/// and whole views missing.
fn three_views() -> (Dataset, Dataset) {
    let w = Matrix::from_fn(12, 4, |j, k| {
        let view = [0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2][j];
        if k == 0 || k == view + 1 { ((j * 5 + k * 3) as f64).sin() + 0.5 } else { 0.0 }
    });
    let truth = LinearGaussian::new(w, vec![1.0; 12], Noise::Isotropic(0.05)).unwrap();
    let whole = Dataset::new(truth.sample(400, &mut rand_chacha::ChaCha8Rng::seed_from_u64(3))).unwrap();
    let mut gaps = simulate::hide(&whole, 0.1, 4).into_values();
    for i in (0..400).step_by(4) {
        let view = [0..4, 4..7, 7..12][i / 4 % 3].clone();
        gaps.row_mut(i)[view].fill(f64::NAN);
    }
    (whole, Dataset::new(gaps).unwrap())
}

#[test]
fn three_views_with_gaps_are_fitted_and_filled() {
    let (whole, gaps) = three_views();
    let fit = method(&[1, 1, 1]).fit(&gaps, &spec(1, &[4, 3, 5])).unwrap();
    assert_eq!(fit.report.termination, Termination::Converged);
    assert!(fit.report.trace.windows(2).all(|l| l[1] >= l[0] - 1e-8));
    let w = fit.model.loadings();
    assert!((0..4).all(|j| w[(j, 2)] == 0.0 && w[(j, 3)] == 0.0) && (7..12).all(|j| w[(j, 1)] == 0.0));
    let filled = fit.model.impute(&gaps).unwrap();
    let (mut error, mut spread, mut inside) = (0.0, 0.0, 0);
    for cell in filled.cells() {
        let truth = whole.values()[(cell.row, cell.column)];
        let (low, high) = cell.interval(0.9).unwrap();
        error += (cell.mean - truth).powi(2);
        spread += (truth - 1.0).powi(2);
        inside += usize::from((low..high).contains(&truth));
    }
    let n = filled.cells().len() as f64;
    assert!(error < 0.6 * spread, "{error} of {spread}");
    assert!((inside as f64 / n - 0.9).abs() < 0.03, "{}", inside as f64 / n);
}

#[test]
fn a_missing_view_is_integrated_out() {
    let (whole, _) = three_views();
    let model = method(&[1, 1, 1]).fit(&whole, &spec(1, &[4, 3, 5])).unwrap().model;
    let hidden = Matrix::from_fn(400, 12, |i, j| if j < 7 { whole.values()[(i, j)] } else { f64::NAN });
    let w = Matrix::from_fn(7, 4, |j, k| model.loadings()[(j, k)]);
    let noise = Noise::Diagonal(model.noise_variances()[..7].to_vec());
    let marginal = LinearGaussian::new(w, model.mean()[..7].to_vec(), noise).unwrap();
    let first = Dataset::new(Matrix::from_fn(400, 7, |i, j| whole.values()[(i, j)])).unwrap();
    let (a, b) = (model.log_density(&Dataset::new(hidden).unwrap()), marginal.log_density(&first));
    assert_close("log-density", &a.unwrap(), &b.unwrap(), 1e-10);
}

#[test]
fn the_same_bits_on_one_thread_and_two() {
    let (_, gaps) = three_views();
    let many: Vec<usize> = (0..8000).map(|i| i % 400).collect();
    let data = gaps.of_rows(&many).unwrap();
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let fit = SharedPrivate { max_iterations: 5, ..method(&[1, 1, 1]) };
        pool.install(|| fit.fit(&data, &spec(1, &[4, 3, 5])).unwrap().model.loadings().clone())
    };
    assert!(on(1).as_slice().iter().zip(on(2).as_slice()).all(|(a, b)| a.to_bits() == b.to_bits()));
}

#[test]
fn what_cannot_be_fitted_is_refused_in_words() {
    let (data, _) = simulate::ppca(Shape { rows: 50, columns: 6, n_components: 2 }, 1);
    let fit = |views: &[usize], shared, private: &[usize]| {
        method(private).fit(&data, &spec(shared, views)).map(|_| ())
    };
    let refused = fit(&[6, 0], 1, &[1, 0]).unwrap_err();
    assert_eq!(refused, Error::EmptyView { view: 2 });
    assert!(refused.to_string().contains("view 2 has no columns"));
    assert!(matches!(fit(&[4, 3], 1, &[1, 1]), Err(Error::WrongLength { expected: 6, got: 7, .. })));
    assert!(matches!(fit(&[4, 2], 1, &[1]), Err(Error::WrongLength { expected: 2, got: 1, .. })));
    assert!(matches!(fit(&[4, 2], 3, &[1, 1]), Err(Error::TooManyComponents { asked: 3, max: 2, .. })));
    assert!(matches!(fit(&[4, 2], 1, &[1, 2]), Err(Error::TooManyComponents { asked: 2, max: 1, .. })));
    let with = |change: &dyn Fn(usize, usize, f64) -> f64| {
        let values = Matrix::from_fn(50, 6, |i, j| change(i, j, data.values()[(i, j)]));
        method(&[1, 1]).fit(&Dataset::new(values).unwrap(), &spec(1, &[4, 2]))
    };
    assert_eq!(with(&|_, j, v| if j > 3 { 1.0 } else { v }).unwrap_err(), Error::AllConstant { columns: 2 });
    assert!(matches!(with(&|_, j, v| if j == 2 { f64::NAN } else { v }), Err(Error::EmptyColumn { .. })));
    assert!(matches!(with(&|i, _, v| if i > 0 { f64::NAN } else { v }), Err(Error::TooFewRows { rows: 1 })));
    // A view that repeats a column has no noise in its last direction.
    let exact = with(&|i, j, v| if j == 5 { data.values()[(i, 4)] } else { v }).unwrap();
    let said = |w: &Warning| matches!(w, Warning::NoiseAtFloor { columns } if columns == &["x5", "x6"]);
    assert!(exact.report.warnings.iter().any(said), "{:?}", exact.report.warnings);
    let (request, views) = (method(&[1, 1]), spec(1, &[4, 2]));
    let bad = SharedPrivate { tolerance: f64::NAN, ..request.clone() }.fit(&data, &views);
    assert!(matches!(bad, Err(Error::OutOfRange { .. })));
    let (_, start) = simulate::ppca(Shape { rows: 5, columns: 6, n_components: 2 }, 1);
    let bad = SharedPrivate { init: Init::Given(Box::new(start)), ..request.clone() }.fit(&data, &views);
    assert!(matches!(bad, Err(Error::WrongLength { expected: 3, got: 2, .. })));
    let stopped = request.fit_observed(&data, &views, &mut |_: &Step| ControlFlow::Break(())).unwrap();
    assert_eq!(stopped.report.termination, Termination::Interrupted);
    for (spec, what) in [
        (Spec::ppca(1), "a table without views"),
        (Spec { noise: NoiseFamily::Diagonal, ..views.clone() }, "a noise variance for each column"),
        (Spec { prior: Prior::weak(), ..views.clone() }, "a prior"),
    ] {
        assert!(request.fit(&data, &spec).unwrap_err().to_string().contains(what));
    }
    for method in ["em", "spectral", "structured", "gibbs", "full-covariance"] {
        let refused = Method::from_name(method).unwrap().fit(&data, &views).unwrap_err().to_string();
        assert!(refused.contains("does not fit several views"), "{method}: {refused}");
    }
    let closed =
        |data: &Dataset, views: &[usize]| BachJordan::default().fit(data, &spec(1, views)).unwrap_err();
    assert!(closed(&data, &[2, 2, 2]).to_string().contains("other than two views"));
    assert!(closed(&simulate::hide(&data, 0.1, 1), &[4, 2]).to_string().contains("use `shared-private`"));
}

#[test]
fn restarts_keep_the_best() {
    let (_, gaps) = three_views();
    let (one, spec) = (method(&[1, 1, 1]), spec(1, &[4, 3, 5]));
    let random = SharedPrivate { init: Init::Random, seed: 3, ..one.clone() };
    let value = |method: &SharedPrivate| method.fit(&gaps, &spec).unwrap().report.objective.value;
    let (spectral, random, several) =
        (value(&one), value(&random), value(&SharedPrivate { restarts: 2, ..one }));
    assert!(several >= spectral && spectral >= random - 1e-3, "{several} {spectral} {random}");
}

#[test]
fn tied_noise_climbs_from_its_start_and_ends_whatever_the_units() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/wine.csv");
    let wine = covary::io::csv::read(std::fs::File::open(path).unwrap()).unwrap().dataset().clone();
    for standardize in [true, false] {
        for private in [None, Some(vec![1, 1]), Some(vec![2, 3])] {
            for shared in [1, 2] {
                let method =
                    SharedPrivate { private: private.clone(), tied_noise: true, ..SharedPrivate::default() };
                let asked = Spec { standardize, ..spec(shared, &[6, 7]) };
                let report = method.fit(&wine, &asked).unwrap().report;
                let what = format!("{standardize} {private:?} {shared}: {:?}", report.warnings);
                assert_eq!(report.termination, Termination::Converged, "{what}");
                assert!(
                    !report.warnings.iter().any(|w| matches!(w, Warning::ObjectiveFell { .. })),
                    "{what}"
                );
                if private.is_none() {
                    // Full private parts reach the maximum of canonical correlation with one noise as with two.
                    let untied = SharedPrivate::default().fit(&wine, &asked).unwrap().report.objective.value;
                    assert!((report.objective.value - untied).abs() < 1e-4, "{what}");
                }
            }
        }
    }
}
