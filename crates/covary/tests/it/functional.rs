//! Curves: are splines what they should be, is EM that of the specification, do answers equal dense formulas, and does a common
//! grid give probabilistic PCA?

use crate::common::{assert_close, flat, golden, matrix};
use crate::dense::{Gaussian, normal, solve};
use covary::data::Points;
use covary::family::{Components, Family, ForFilling, Request};
use covary::functional::{
    Basis, CurveSearch, FunctionalEm, FunctionalPca, Interval, Smoothing, column_times, simulated,
};
use covary::infer::Spectral;
use covary::io::model_file;
use covary::learned::{Learned, Rows};
use covary::model::{Distribution, FilledCell};
use covary::select::{ChoiceRule, SelfCheckOptions};
use covary::{Dataset, Error, Estimator, Matrix, Spec};
use serde_json::Value;

fn long(curves: &[(Vec<f64>, Vec<f64>)]) -> Dataset {
    let (mut times, mut of, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (i, (t, y)) in curves.iter().enumerate() {
        times.extend(t);
        values.extend(y);
        of.extend(vec![i; t.len()]);
    }
    let names = (0..curves.len()).map(|i| format!("c{i}")).collect();
    let n = values.len();
    let table = Dataset::with_names(Matrix::from_vec(n, 1, values).unwrap(), vec!["y".to_owned()]).unwrap();
    table.of_points(Points::new(times, of, names).unwrap()).unwrap()
}

fn curves_of(case: &Value) -> Dataset {
    let lists =
        |name: &str| -> Vec<Vec<f64>> { case["input"][name].as_array().unwrap().iter().map(flat).collect() };
    let pairs: Vec<_> = lists("times").into_iter().zip(lists("values")).collect();
    long(&pairs)
}

#[test]
fn golden_functional_pca() {
    let case = golden("part2", "functional_pca");
    let expected = &case["expected"];
    let basis = Basis::new(0.0, 1.0, 7).unwrap();
    assert_close("curves", basis.gram().as_slice(), &flat(&expected["gram"]), 1e-9);
    assert_close("curves", basis.penalty().as_slice(), &flat(&expected["penalty"]), 1e-9 * 768.0);

    let start = &case["input"]["start"];
    let init = FunctionalPca::new(basis, flat(&start["v0"]), matrix(&start["Theta"]), 1.0).unwrap();
    let em = FunctionalEm {
        smoothing: Smoothing::Given { mean: 1e-3, components: 1e-3 },
        max_iterations: 20,
        tolerance: 0.0,
        accelerate: false,
        init: Some(Box::new(init)),
        ..FunctionalEm::default()
    };
    let fit = em.fit(&curves_of(&case), &Spec::ppca(2)).unwrap();
    let trace = flat(&expected["objective_trace"]);
    let relative = |got: f64, right: f64| (got - right).abs() / right.abs().max(1.0);
    assert!(relative(fit.report.trace[0], expected["objective_start"].as_f64().unwrap()) < 1e-7);
    for (got, right) in fit.report.trace[1..].iter().zip(&trace) {
        assert!(relative(*got, *right) < 1e-7, "{got} {right}");
    }
    assert_eq!(fit.report.trace.len(), trace.len() + 1);
    assert!(relative(fit.model.noise(), expected["sigma2"].as_f64().unwrap()) < 1e-6);
    assert_close("curves", &fit.model.eigenvalues(), &flat(&expected["eigenvalues"]), 1e-6);
    assert_close("curves", fit.model.mean_coefficients(), &flat(&expected["mean_coefficients"]), 1e-6);
}

#[test]
fn splines_sum_to_one_and_straight_lines_are_not_rough() {
    let basis = Basis::new(-2.0, 5.0, 9).unwrap();
    for time in basis.grid(37) {
        let row = basis.row(time).unwrap();
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-14 && row.iter().all(|v| *v >= 0.0));
    }
    // Coefficients of a straight line are its values at averages of three knots (Greville).
    let knots: Vec<f64> =
        (0..13).map(|i: usize| -2.0 + 7.0 / 6.0 * i.saturating_sub(3).min(6) as f64).collect();
    let line: Vec<f64> = (0..9).map(|b| (knots[b + 1] + knots[b + 2] + knots[b + 3]) / 3.0).collect();
    let rough = basis.penalty();
    assert!(rough.rows().all(|row| row.iter().zip(&line).map(|(a, b)| a * b).sum::<f64>().abs() < 1e-10));
    let at = |t: f64| basis.row(t).unwrap().iter().zip(&line).map(|(a, b)| a * b).sum::<f64>();
    assert!((at(1.3) - 1.3).abs() < 1e-13);
    // J by many small steps.
    let grid = basis.grid(20_001);
    let h = basis.length() / 20_000.0;
    let sum: f64 = grid.iter().map(|&t| basis.row(t).unwrap()[3] * basis.row(t).unwrap()[4] * h).sum();
    assert!((sum - basis.gram()[(3, 4)]).abs() < 1e-7);
}

/// Points of a curve under a model as one dense Gaussian.
fn dense(model: &FunctionalPca, times: &[f64]) -> Gaussian {
    let mean = model.mean_at(times).unwrap().values.column(0);
    let covariance = model.covariance(times).unwrap();
    let n = times.len();
    let noisy = |i: usize, j: usize| covariance[(i, j)] + if i == j { model.noise() } else { 0.0 };
    Gaussian { mean, covariance: Matrix::from_fn(n, n, noisy) }
}

#[test]
fn answers_are_the_dense_ones_for_long_and_wide_tables() {
    let (table, truth) = simulated(40, 5, 3);
    let fitted = FunctionalEm::default().fit(&table, &Spec::ppca(2)).unwrap().model;
    // Without uncertainty of parameters formulas are those of a Gaussian.
    for model in [truth, strip(&fitted)] {
        let points = table.points().unwrap();
        let gaps = table.without_cells([(3, 0), (4, 0), (11, 0)]).unwrap();
        let filled = model.fill(&gaps).unwrap();
        assert_eq!(filled.iter().map(|c| c.row).collect::<Vec<_>>(), [3, 4, 11]);
        let densities = model.densities(&gaps).unwrap();
        let fitted = model.reconstruct(&gaps).unwrap();
        for (curve, rows) in points.of_curves().iter().enumerate().take(4) {
            let times: Vec<f64> = rows.iter().map(|&i| points.times()[i]).collect();
            let values: Vec<f64> = rows.iter().map(|&i| gaps.row(i)[0]).collect();
            let gaussian = dense(&model, &times);
            assert!((densities[curve].log_density - gaussian.log_density(&values)).abs() < 1e-9);
            assert!((densities[curve].mahalanobis - gaussian.mahalanobis(&values)).abs() < 1e-9);
            let gaps = gaussian.gaps(&values);
            for (k, &at) in gaps.columns.iter().enumerate() {
                let cell = filled.iter().find(|c| c.row == rows[at]).unwrap();
                assert!((cell.mean - gaps.mean[k]).abs() < 1e-9);
                assert!((cell.sd - gaps.covariance[(k, k)].sqrt()).abs() < 1e-9);
                assert!((fitted[(cell.row, 0)] - gaps.mean[k]).abs() < 1e-9);
            }
        }
        // The same curves in a wide table, whose columns are all times.
        let times = [0.1, 0.25, 0.5, 0.8];
        let names = times.iter().map(f64::to_string).collect();
        let values = Matrix::from_rows(&[[1.0, f64::NAN, 2.0, f64::NAN], [0.5, 0.1, f64::NAN, 3.0]]);
        let wide = Dataset::with_names(values, names).unwrap();
        let cells = model.fill(&wide).unwrap();
        let own = model.predict(&wide, &times).unwrap();
        for cell in &cells {
            let gaps = dense(&model, &times).gaps(wide.row(cell.row));
            let k = gaps.columns.iter().position(|&j| j == cell.column).unwrap();
            assert!((cell.mean - gaps.mean[k]).abs() < 1e-9);
            assert!((cell.sd - gaps.covariance[(k, k)].sqrt()).abs() < 1e-9);
            let at = &own[cell.row];
            assert!((at.means[cell.column] - cell.mean).abs() < 1e-12);
            let with_noise = (at.sds[cell.column].powi(2) + model.noise()).sqrt();
            assert!((with_noise - cell.sd).abs() < 1e-9);
        }
        assert_eq!(cells.len(), 3);
    }
}

/// The model with its parameters taken as known.
fn strip(model: &FunctionalPca) -> FunctionalPca {
    let (basis, mean) = (model.basis().clone(), model.mean_coefficients().to_vec());
    FunctionalPca::new(basis, mean, model.loadings().clone(), model.noise()).unwrap()
}

/// The band of the mean is that of generalized least squares: curves vary about the mean by their scores and the noise, and the
/// penalty of roughness is a prior, so that its bias is counted.
///
/// ```text
/// Var μ(t) = φ(t)ᵀ (Σ_i Φ_iᵀ C_i⁻¹ Φ_i + λ Ω)⁻¹ φ(t)        C_i = cov(t_i) + σ² I
/// ```
#[test]
fn the_band_of_the_mean_is_that_of_generalized_least_squares() {
    let (table, _) = simulated(60, 4, 31);
    let given = Smoothing::Given { mean: 0.01, components: 0.02 };
    for smoothing in [Smoothing::Reml, given] {
        let em = FunctionalEm { smoothing, ..FunctionalEm::default() };
        let model = em.fit(&table, &Spec::ppca(2)).unwrap().model;
        let (basis, points) = (model.basis(), table.points().unwrap());
        let mut precision = basis.penalty();
        precision.as_mut_slice().iter_mut().for_each(|v| *v *= model.smoothing()[0]);
        for rows in points.of_curves() {
            let times: Vec<f64> = rows.iter().map(|&i| points.times()[i]).collect();
            let splines: Vec<Vec<f64>> = times.iter().map(|&t| basis.row(t).unwrap()).collect();
            let splines = Matrix::from_rows(&splines);
            let of_curve = splines.t_dot(&solve(&dense(&model, &times).covariance, &splines));
            precision.as_mut_slice().iter_mut().zip(of_curve.as_slice()).for_each(|(p, own)| *p += own);
        }
        let grid = basis.grid(21);
        let band = model.mean_at(&grid).unwrap();
        for (i, &time) in grid.iter().enumerate() {
            let at = Matrix::from_vec(basis.size(), 1, basis.row(time).unwrap()).unwrap();
            let variance = at.t_dot(&solve(&precision, &at))[(0, 0)];
            assert!((band.sds[(i, 0)] / variance.sqrt() - 1.0).abs() < 1e-6, "{time}: {}", band.sds[(i, 0)]);
            // Not less than what sampling the scores of 60 curves gives, were all of them known.
            let sampling = model.covariance(&[time]).unwrap()[(0, 0)] / 60.0;
            assert!(smoothing == given || variance > 0.8 * sampling, "{time}: {variance} {sampling}");
        }
    }
}

/// Points hidden where other curves lack theirs say how far intervals reach; what is said is kept with the model.
#[test]
fn intervals_of_curves_are_calibrated_by_hidden_points() {
    let (whole, _) = simulated(120, 6, 41);
    // A fifth of the curves has noise of ten times the variance of that of the others.
    let rough = |i: usize| if (i / 6).is_multiple_of(5) { 1.5 * (2.3 * i as f64).sin() } else { 0.0 };
    let values = Matrix::from_fn(whole.n_rows(), 1, |i, _| whole.row(i)[0] + rough(i));
    let noisy = Dataset::with_names(values, vec!["y".to_owned()]).unwrap();
    let noisy = noisy.of_points(whole.points().unwrap().clone()).unwrap();
    let table = noisy.without_cells((0..120).step_by(2).map(|i| (6 * i + i % 6, 0))).unwrap();
    let filling = |calibrate| Some(ForFilling { choose: false, calibrate, limits: false });
    let request = Request { n_components: Some(Components::Number(2)), ..Request::new(Family::Fpca) };
    let learned = Request { filling: filling(true), ..request.clone() }.learn(&table).unwrap();
    let plain = Request { filling: filling(false), ..request.clone() }.learn(&table).unwrap();
    let calibration = learned.filling.as_ref().unwrap().calibration.clone().unwrap();
    assert!(plain.filling.as_ref().unwrap().calibration.is_none());
    assert!(calibration.transplanted && calibration.n_hidden >= 400, "{}", calibration.n_hidden);
    let cells = |model: &Learned| model.fill(Rows::Training).unwrap().cells(&table).unwrap();
    let (finished, own) = (cells(&learned), cells(&plain));
    assert_eq!(own.len(), 60);
    let spread = calibration.columns[0].spread;
    let width = |cell: &FilledCell, level: f64| {
        let (low, high) = cell.interval(level).unwrap();
        high - low
    };
    for (cell, own) in finished.iter().zip(&own) {
        assert_eq!((cell.row, cell.mean), (own.row, own.mean));
        assert!((cell.sd - spread * own.sd).abs() < 1e-12);
        // Most points are nearer than a Gaussian of that variance has them, and a few farther.
        assert!(width(cell, 0.5) < width(own, 0.5) && width(cell, 0.99) > width(own, 0.99));
    }
    let mut bytes = Vec::new();
    model_file::write(&learned, &mut bytes).unwrap();
    let again = model_file::read(bytes.as_slice()).unwrap();
    assert_eq!(cells(&again), finished);
    // The check on other points is of the calibrated intervals.
    let options = SelfCheckOptions { share: 0.15, ..SelfCheckOptions::default() };
    let checked = learned.check_by_refit(&request, &table, &options, &mut ()).unwrap();
    assert!(checked.refitted && checked.cells.len() >= 100);
    assert!(checked.cells.iter().all(|c| matches!(c.cell.distribution, Distribution::Shaped(_))));
}

#[test]
fn eigenfunctions_are_orthonormal_and_scores_are_their_integrals() {
    let (table, _) = simulated(120, 30, 5);
    let model = FunctionalEm::default().fit(&table, &Spec::ppca(2)).unwrap().model;
    let n = 4001;
    let grid = model.basis().grid(n);
    let phi = model.eigenfunctions(&grid).unwrap().values;
    let h = model.basis().length() / (n - 1) as f64;
    let inner = |k: usize, l: usize| {
        let ends = |i: usize| if i == 0 || i == n - 1 { 0.5 } else { 1.0 };
        (0..n).map(|i| ends(i) * phi[(i, k)] * phi[(i, l)] * h).sum::<f64>()
    };
    for k in 0..2 {
        for l in 0..2 {
            assert!((inner(k, l) - f64::from(u8::from(k == l))).abs() < 1e-6, "{k} {l}");
        }
    }
    // A curve is its mean and its scores times the eigenfunctions.
    let times = model.basis().grid(5);
    let (scores, curves) = (model.scores(&table).unwrap(), model.predict(&table, &times).unwrap());
    let (mean, phi) = (model.mean_at(&times).unwrap().values, model.eigenfunctions(&times).unwrap().values);
    for (i, curve) in curves.iter().enumerate() {
        for j in 0..5 {
            let sum = mean[(j, 0)] + (0..2).map(|k| scores.means[(i, k)] * phi[(j, k)]).sum::<f64>();
            assert!((curve.means[j] - sum).abs() < 1e-10);
        }
        let v = &scores.covariances[i];
        assert!((0..2).all(|k| v[(k, k)] > 0.0 && v[(k, k)] < model.eigenvalues()[k]));
    }
}

#[test]
fn a_full_basis_on_a_common_grid_is_probabilistic_pca() {
    let d = 7;
    let grid: Vec<f64> = (0..d).map(|j| j as f64).collect();
    let w = normal(d, 2, 1);
    let (x, e) = (normal(60, 2, 2), normal(60, d, 3));
    let cell = |i: usize, j: usize| {
        4.0 + 3.0 * w[(j, 0)] * x[(i, 0)] + 1.5 * w[(j, 1)] * x[(i, 1)] + 0.3 * e[(i, j)]
    };
    let table = Dataset::new(Matrix::from_fn(60, d, cell)).unwrap();
    assert_eq!(column_times(table.column_names()), grid);
    let em = FunctionalEm {
        basis_size: Some(d),
        smoothing: Smoothing::Given { mean: 0.0, components: 0.0 },
        max_iterations: 3000,
        tolerance: 0.0,
        ..FunctionalEm::default()
    };
    let curves = em.fit(&table, &Spec::ppca(2)).unwrap();
    let plain = Spectral::default().fit(&table, &Spec::ppca(2)).unwrap();
    assert!((curves.report.objective.value - plain.report.objective.value).abs() < 1e-8);
    let (ours, right) = (dense(&curves.model, &grid).covariance, plain.model.covariance());
    assert_close("curves", ours.as_slice(), right.as_slice(), 1e-8 * right.trace());
    let mean = curves.model.mean_at(&grid).unwrap().values;
    assert_close("curves", mean.as_slice(), plain.model.mean(), 1e-8);
}

#[test]
fn smoothing_by_reml_is_near_that_of_least_error_and_follows_units() {
    let (table, truth) = simulated(100, 5, 11);
    let grid = truth.basis().grid(101);
    let right = truth.eigenfunctions(&grid).unwrap().values;
    let error = |smoothing: Smoothing| {
        let em = FunctionalEm { smoothing, interval: Interval::Given(0.0, 1.0), ..FunctionalEm::default() };
        let model = em.fit(&table, &Spec::ppca(2)).unwrap().model;
        let found = model.eigenfunctions(&grid).unwrap().values;
        found.as_slice().iter().zip(right.as_slice()).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / 101.0
    };
    let auto = error(Smoothing::Reml);
    let least = (-8..4)
        .map(|p| 10_f64.powi(p))
        .map(|l| error(Smoothing::Given { mean: l, components: l }))
        .fold(f64::INFINITY, f64::min);
    assert!(auto < 2.0 * least + 0.01, "{auto} {least}");

    // Values and times in other units: the same curves.
    let points = table.points().unwrap();
    let times = points.times().iter().map(|t| 24.0 * t + 3.0).collect();
    let values = Matrix::from_fn(table.n_rows(), 1, |i, _| 50.0 + 1000.0 * table.row(i)[0]);
    let moved = Dataset::with_names(values, vec!["y".to_owned()]).unwrap();
    let other = Points::new(times, points.curves().to_vec(), points.names().to_vec()).unwrap();
    let moved = moved.of_points(other).unwrap();
    let exact = FunctionalEm { tolerance: 1e-9, ..FunctionalEm::default() };
    let (a, b) = (exact.fit(&table, &Spec::ppca(2)).unwrap(), exact.fit(&moved, &Spec::ppca(2)).unwrap());
    let scaled = |a: f64, b: f64, tolerance: f64| assert!((a / b - 1.0).abs() < tolerance, "{a} {b}");
    scaled(b.model.noise(), 1e6 * a.model.noise(), 1e-6);
    for (b, a) in b.model.eigenvalues().iter().zip(a.model.eigenvalues()) {
        scaled(*b, 24e6 * a, 1e-5);
    }
    scaled(b.model.smoothing()[1], 24_f64.powi(3) / 1e6 * a.model.smoothing()[1], 1e-3);
}

/// The penalty makes components smooth and leaves their sizes alone: these, and the noise, are where the likelihood is largest.
#[test]
fn sizes_are_those_of_maximum_likelihood() {
    let (table, _) = simulated(35, 30, 12);
    let exact = FunctionalEm { tolerance: 1e-9, ..FunctionalEm::default() };
    let model = exact.fit(&table, &Spec::ppca(2)).unwrap().model;
    let log_likelihood = |sizes: [f64; 2], noise: f64| {
        let mut loadings = model.loadings().clone();
        loadings.scale_columns(&sizes);
        let mean = model.mean_coefficients().to_vec();
        let other = FunctionalPca::new(model.basis().clone(), mean, loadings, noise * model.noise()).unwrap();
        other.densities(&table).unwrap().iter().map(|d| d.log_density).sum::<f64>()
    };
    let here = log_likelihood([1.0, 1.0], 1.0);
    for (sizes, noise) in [([1.001, 1.0], 1.0), ([1.0, 1.001], 1.0), ([1.0, 1.0], 1.001)] {
        let there = log_likelihood(sizes, noise);
        let back = log_likelihood(sizes.map(|s| 2.0 - s), 2.0 - noise);
        assert!(there < here && back < here, "{sizes:?} {noise}: {there} {back} {here}");
        // At a maximum both sides fall by the same.
        assert!((there - back).abs() < 0.02 * (here - there), "{sizes:?} {noise}: {there} {back} {here}");
    }
    // So that eigenvalues are nearly those without a penalty.
    let plain = FunctionalEm { smoothing: Smoothing::Given { mean: 0.0, components: 0.0 }, ..exact };
    let plain = plain.fit(&table, &Spec::ppca(2)).unwrap().model.eigenvalues();
    for (smooth, plain) in model.eigenvalues().iter().zip(plain) {
        assert!((smooth / plain - 1.0).abs() < 0.03, "{smooth} {plain}");
    }
}

#[test]
fn the_number_of_components_is_found_by_hidden_points() {
    let mut right = 0;
    for seed in 0..5 {
        let (table, _) = simulated(150, 6, 100 + seed);
        let found = CurveSearch::default().run(&table, &Spec::ppca(1)).unwrap().unwrap();
        right += usize::from(found.chosen(ChoiceRule::OneStandardError) == 2);
    }
    assert!(right >= 4, "{right} of 5");
}

#[test]
fn the_objective_never_falls_and_threads_do_not_matter() {
    let (table, _) = simulated(80, 5, 21);
    for accelerate in [false, true] {
        let em = FunctionalEm { accelerate, tolerance: 1e-6, ..FunctionalEm::default() };
        let fit = em.fit(&table, &Spec::ppca(3)).unwrap();
        assert!(fit.report.warnings.is_empty(), "{:?}", fit.report.warnings);
        assert!(fit.report.trace.windows(2).all(|w| w[1] >= w[0] - 1e-9 * w[0].abs()));
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let again = alone.install(|| em.fit(&table, &Spec::ppca(3)).unwrap());
        assert_eq!((again.model, again.report.trace), (fit.model, fit.report.trace));
    }
}

#[test]
fn tables_that_tell_nothing_are_refused_by_name() {
    let em = FunctionalEm::default();
    let refused = |table: &Dataset, spec: &Spec| em.fit(table, spec).unwrap_err().to_string();
    let one = Spec::ppca(1);
    let single = long(&[(vec![0.1], vec![1.0]), (vec![0.5], vec![2.0]), (vec![0.9], vec![1.5])]);
    assert!(refused(&single, &one).contains("all 3 curves have one observed point"));
    let alone = long(&[(vec![0.1, 0.4], vec![1.0, 2.0])]);
    assert!(refused(&alone, &one).contains("1 curve with an observed point"));
    let still = Dataset::with_names(Matrix::from_rows(&[[1.0], [2.0]]), vec!["3".to_owned()]).unwrap();
    assert!(refused(&still, &one).contains("one observed point"));
    let pair = long(&[(vec![0.1, 0.4], vec![1.0, 2.0]), (vec![0.2, 0.4], vec![1.5, 2.0])]);
    assert!(refused(&pair, &Spec::ppca(2)).contains("2 components are too many"));
    let (many, _) = simulated(30, 5, 1);
    assert!(refused(&many, &Spec::ppca(11)).contains("10 basis functions have at most 10"));
    assert!(refused(&many, &Spec::ppca(0)).contains("at least 1"));
    let twice = Points::new(vec![0.5, 0.2, 0.5], vec![0, 0, 0], vec!["a".to_owned()]).unwrap_err();
    assert!(matches!(twice, Error::RepeatedPoint { rows: (1, 3), .. }));
    let model = em.fit(&many, &one).unwrap().model;
    let late = model.mean_at(&[1.5]).unwrap_err().to_string();
    assert!(late.starts_with("time 1.5 is outside the interval of the model"), "{late}");
    // A longer interval can be asked for.
    let longer = FunctionalEm { interval: Interval::Given(0.0, 2.0), ..FunctionalEm::default() };
    let model = longer.fit(&many, &one).unwrap().model;
    let sds = model.mean_at(&[0.5, 1.8]).unwrap().sds;
    assert!(sds[(1, 0)] > 5.0 * sds[(0, 0)]);
}
