//! Rows of heavy tails [M 2.11]: do they meet the golden case, the dense t, and the Gaussian as their limit? And do gross
//! outliers leave the plane where it is?

use crate::common::{assert_close, dataset, flat, golden, matrix};
use crate::contract::on_threads;
use crate::dense::{self, Gaussian};
use crate::scale;
use covary::data::{Shape, simulate};
use covary::family::{Components, Family, Request};
use covary::infer::{Acceleration, DegreesOfFreedom, Em, Fit, Init, Spectral, StudentT, Warning};
use covary::learned::{CheckOutcome, Rows};
use covary::model::Distribution;
use covary::select::SelfCheckOptions;
use covary::{
    CentralMoments, Coordinates, Dataset, Density, Error, Estimator, LinearGaussian, Matrix, Method, Noise,
    Spec,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, StandardNormal};
use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};
use statrs::function::gamma::ln_gamma;
use std::f64::consts::PI;

fn fixed(nu: f64, em: Em) -> StudentT {
    StudentT { degrees_of_freedom: DegreesOfFreedom::Fixed(nu), em }
}

/// Steps are counted, not judged.
fn to_the_end(em: Em) -> Em {
    Em { tolerance: 0.0, max_iterations: 400, ..em }
}

/// `|got − want| ≤ tolerance · max(1, |want|)`, as the golden case has it.
#[track_caller]
fn check(what: &str, got: &[f64], want: &serde_json::Value, tolerance: f64) {
    let want = flat(want);
    assert_eq!(got.len(), want.len(), "{what}");
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() <= tolerance * want.abs().max(1.0), "{what}: got {got}, want {want}");
    }
}

fn signal(model: &LinearGaussian) -> Matrix {
    model.loadings().dot_t(model.loadings())
}

#[test]
fn golden_steps_with_gaps() {
    let case = golden("part2", "student_ppca");
    let (data, want) = (dataset(&case["input"]["T_missing"]), &case["expected"]["missing"]);
    let (nu, given) = (case["input"]["nu"].as_f64().unwrap(), &case["input"]["start_missing"]);
    let sigma2 = Noise::Isotropic(given["sigma2"].as_f64().unwrap());
    let start = LinearGaussian::new(matrix(&given["W"]), flat(&given["mu"]), sigma2).unwrap();
    let em = Em {
        max_iterations: 20,
        tolerance: 0.0,
        parameter_expansion: false,
        acceleration: Acceleration::Never,
        init: Init::Given(Box::new(start)),
        ..Em::default()
    };
    let Fit { model, report, .. } = fixed(nu, em).fit(&data, &Spec::ppca(2)).unwrap();
    check("ℓ at the start", &report.trace[..1], &serde_json::json!([want["loglik_start"]]), 1e-9);
    check("ℓ", &report.trace[1..], &want["loglik_trace"], 1e-9);
    check("σ²", &[model.noise().variance(0)], &serde_json::json!([want["sigma2"]]), 1e-8);
    check("μ", model.mean(), &want["mu"], 1e-8);
    check("W Wᵀ", signal(&model).as_slice(), &want["WWt"], 1e-8);
}

#[test]
fn golden_maximum_of_a_complete_table() {
    let case = golden("part2", "student_ppca");
    let (data, want) = (dataset(&case["input"]["T"]), &case["expected"]["complete"]);
    let nu = case["input"]["nu"].as_f64().unwrap();
    for em in [Em::default(), Em { acceleration: Acceleration::Squarem, ..Em::default() }] {
        let Fit { model, report, .. } = fixed(nu, to_the_end(em)).fit(&data, &Spec::ppca(2)).unwrap();
        let end = want["loglik_trace"].as_array().unwrap().last().unwrap();
        check("ℓ", &[report.objective.value], &serde_json::json!([end]), 1e-9);
        check("σ²", &[model.noise().variance(0)], &serde_json::json!([want["sigma2"]]), 1e-8);
        check("μ", model.mean(), &want["mu"], 1e-8);
        check("W Wᵀ", signal(&model).as_slice(), &want["WWt"], 1e-8);
    }
}

/// Sweeps in closed form: weights, mean, weighted covariance, PPCA of it.
#[test]
fn golden_sweeps_of_a_complete_table() {
    let case = golden("part2", "student_ppca");
    let (data, want) = (dataset(&case["input"]["T"]), &case["expected"]["complete"]);
    let nu = case["input"]["nu"].as_f64().unwrap();
    let maximum = |weights: &[f64]| {
        let total: f64 = weights.iter().sum();
        let average = |of: &dyn Fn(&[f64]) -> f64| {
            weights.iter().enumerate().map(|(i, u)| u * of(data.row(i))).sum::<f64>() / total
        };
        let mean: Vec<f64> = (0..5).map(|j| average(&|t| t[j])).collect();
        let s = Matrix::from_fn(5, 5, |i, j| average(&|t| (t[i] - mean[i]) * (t[j] - mean[j])));
        let moments = CentralMoments::from_covariance(&s, 40).unwrap();
        let model = Spectral::default().fit_moments(&moments, &Spec::ppca(2)).unwrap().model;
        LinearGaussian::new(model.loadings().clone(), mean, model.noise().clone())
            .and_then(|model| model.with_tail_degrees_of_freedom(nu))
            .unwrap()
    };
    let (mut model, mut trace, mut weights) = (maximum(&[1.0; 40]), Vec::new(), Vec::new());
    for _ in 0..20 {
        weights = model.row_weights(&data).unwrap();
        model = maximum(&weights);
        trace.push(model.log_likelihood(&data).unwrap());
    }
    check("ℓ", &trace, &want["loglik_trace"], 1e-9);
    check("u", &weights, &want["weights"], 1e-8);
    check("W Wᵀ", signal(&model).as_slice(), &want["WWt"], 1e-8);
}

#[test]
fn golden_degrees_of_freedom() {
    let case = golden("part2", "student_ppca");
    let (data, want) = (dataset(&case["input"]["T"]), &case["expected"]["learned_nu"]);
    let Fit { model, report, .. } = StudentT::default().fit(&data, &Spec::ppca(2)).unwrap();
    assert!(report.converged());
    check("ν", &[model.tail_degrees_of_freedom()], &serde_json::json!([want["nu"]]), 1e-4);
    check("ℓ", &[report.objective.value], &serde_json::json!([want["loglik"]]), 1e-7);
    let end = StudentT { em: to_the_end(Em::default()), ..StudentT::default() };
    let Fit { model, report, .. } = end.fit(&data, &Spec::ppca(2)).unwrap();
    check("ℓ", &[report.objective.value], &serde_json::json!([want["loglik"]]), 1e-9);
    check("ν", &[model.tail_degrees_of_freedom()], &serde_json::json!([want["nu"]]), 1e-5);
    check("σ²", &[model.noise().variance(0)], &serde_json::json!([want["sigma2"]]), 1e-5);
    check("μ", model.mean(), &want["mu"], 1e-5);
}

/// Rows of a plane in ten columns, with 5 % of them replaced by noise of standard deviation 60.
fn with_outliers(seed: u64) -> (Dataset, LinearGaussian) {
    let (clean, truth) = simulate::ppca(Shape { rows: 600, columns: 10, n_components: 2 }, seed);
    let mut rng = ChaCha8Rng::seed_from_u64(seed + 100);
    let mut rows = clean.values().clone();
    for i in 0..30 {
        for v in rows.row_mut(20 * i) {
            let e: f64 = StandardNormal.sample(&mut rng);
            *v = 60.0 * e;
        }
    }
    (Dataset::new(rows).unwrap(), truth)
}

/// The larger of the two principal angles, in degrees.
fn angle(a: &LinearGaussian, b: &LinearGaussian) -> f64 {
    let m = a.components().dot_t(&b.components());
    let (square, det) = (m.t_dot(&m), m[(0, 0)] * m[(1, 1)] - m[(0, 1)] * m[(1, 0)]);
    let half = 0.5 * square.trace();
    let smallest = half - (half * half - det * det).max(0.0).sqrt();
    smallest.max(0.0).sqrt().min(1.0).acos().to_degrees()
}

#[test]
fn gross_outliers_leave_the_plane_where_it_is() {
    for seed in 1..6 {
        let (whole, truth) = with_outliers(seed);
        for data in [simulate::hide(&whole, 0.1, seed), whole] {
            let spec = Spec::ppca(2);
            let fit = StudentT::default().fit(&data, &spec).unwrap();
            let gaussian = Em::default().fit(&data, &spec).unwrap().model;
            let (ours, theirs) = (angle(&fit.model, &truth), angle(&gaussian, &truth));
            assert!(fit.report.converged() && ours < 3.0, "seed {seed}: {ours}°");
            assert!(theirs > 30.0, "seed {seed}: PPCA is off by {theirs}°");
            let weights = fit.model.row_weights(&data).unwrap();
            let (out, rest): (Vec<usize>, Vec<usize>) = (0..600).partition(|i| i % 20 == 0);
            let most = out.iter().map(|&i| weights[i]).fold(0.0, f64::max);
            let least = rest.iter().map(|&i| weights[i]).fold(f64::INFINITY, f64::min);
            assert!(most < 0.1 * least, "seed {seed}: outliers count {most}, others {least}");
        }
    }
}

#[test]
fn the_likelihood_never_falls_and_is_stationary_in_the_degrees_of_freedom() {
    for seed in 1..4 {
        let data = simulate::hide(&with_outliers(seed).0, 0.2, seed);
        let standardized = Spec { standardize: true, ..Spec::ppca(3) };
        for spec in [Spec::ppca(0), Spec::ppca(2), standardized, Spec::factor_analysis(2)] {
            for em in [
                Em::default(),
                Em { parameter_expansion: false, acceleration: Acceleration::Never, ..Em::default() },
                Em { acceleration: Acceleration::Squarem, ..Em::default() },
            ] {
                let Fit { model, report, .. } =
                    StudentT { em, ..StudentT::default() }.fit(&data, &spec).unwrap();
                let falls = |pair: &[f64]| pair[1] < pair[0] - 1e-9 * (1.0 + pair[0].abs());
                assert!(!report.trace.windows(2).any(falls), "{:?}", report.trace);
                let of = |model: &LinearGaussian| model.log_likelihood(&data).unwrap();
                assert_close("ℓ", &[of(&model)], &[report.objective.value], 1e-10);
                let nu = model.tail_degrees_of_freedom();
                for factor in [0.99, 1.01] {
                    let beside = model.clone().with_tail_degrees_of_freedom(factor * nu).unwrap();
                    assert!(of(&beside) < of(&model), "ν = {nu}");
                }
            }
        }
    }
}

#[test]
fn infinitely_many_degrees_of_freedom_are_probabilistic_pca() {
    let whole = simulate::ppca(Shape { rows: 80, columns: 6, n_components: 2 }, 3).0;
    for data in [simulate::hide(&whole, 0.15, 4), whole] {
        let spec = Spec::ppca(2);
        let gaussian = Em::default().fit(&data, &spec).unwrap();
        let infinite = fixed(f64::INFINITY, Em::default()).fit(&data, &spec).unwrap();
        assert_eq!((&infinite.model, &infinite.report), (&gaussian.model, &gaussian.report));
        let many = fixed(1e6, Em::default()).fit(&data, &spec).unwrap().model;
        assert_close("W", many.loadings().as_slice(), gaussian.model.loadings().as_slice(), 1e-3);
        let (near, far) = (many.log_density(&data).unwrap(), gaussian.model.log_density(&data).unwrap());
        assert_close("ln p", &near, &far, 1e-3);
    }
    // Rows on a sphere have no tails at all.
    let mut rows = dense::normal(80, 6, 1);
    for i in 0..80 {
        let length = rows.row(i).iter().map(|v| v * v).sum::<f64>().sqrt();
        rows.row_mut(i).iter_mut().for_each(|v| *v /= length);
    }
    let data = Dataset::new(rows).unwrap();
    let Fit { model, report, .. } = StudentT::default().fit(&data, &Spec::ppca(1)).unwrap();
    assert_eq!(model.tail_degrees_of_freedom(), f64::INFINITY);
    assert_eq!(report.warnings, [Warning::GaussianTails]);
    assert_eq!(model.row_weights(&data).unwrap(), [1.0; 80]);
}

/// `ln t_ν(t_O | μ_O, C_OO)` from the dense Gaussian.
fn log_t(dense: &Gaussian, nu: f64, row: &[f64]) -> f64 {
    let m = dense::observed(row).len() as f64;
    let delta = dense.mahalanobis(row);
    // ln N = −½ (m ln 2π + ln |C| + δ)
    let ln_det = -2.0 * dense.log_density(row) - m * (2.0 * PI).ln() - delta;
    ln_gamma(0.5 * (nu + m))
        - ln_gamma(0.5 * nu)
        - 0.5 * (m * (nu * PI).ln() + ln_det)
        - 0.5 * (nu + m) * (1.0 + delta / nu).ln()
}

#[test]
fn answers_are_those_of_the_dense_t() {
    let table = simulate::ppca(Shape { rows: 60, columns: 7, n_components: 2 }, 5).0;
    for (data, standardize) in scale::tables(&table, true) {
        for (method, nu) in [(fixed(3.0, Em::default()), 3.0), (fixed(0.7, Em::default()), 0.7)] {
            let spec = Spec { standardize, ..Spec::ppca(2) };
            let model = method.fit(&data, &spec).unwrap().model;
            // Means do not depend on ν: axes, scores and distances are those of the Gaussian of the same parameters.
            scale::check(
                &model.clone().with_tail_degrees_of_freedom(f64::INFINITY).unwrap(),
                &data,
                standardize,
            );
            check_dense(&model, nu, &simulate::hide(&data, 0.3, 8));
        }
    }
}

#[track_caller]
fn check_dense(model: &LinearGaussian, nu: f64, data: &Dataset) {
    let (dense, q) = (Gaussian::of(model), model.n_components());
    let mut cells = model.gap_cells(data).unwrap().into_iter();
    let (density, weights) = (model.log_density(data).unwrap(), model.row_weights(data).unwrap());
    let distances = model.outlyingness(data).unwrap();
    let posterior = model.posterior(data).unwrap();
    assert_eq!(posterior.mean, model.transform(data, Coordinates::Posterior).unwrap());
    for i in 0..data.n_rows() {
        let (row, seen) = (data.row(i), dense::observed(data.row(i)));
        let (m, delta, gaps) = (seen.len() as f64, dense.mahalanobis(row), dense.gaps(row));
        let given = model.given(&seen);
        assert_close("ln p", &[density[i], given.log_density(row)], &[log_t(&dense, nu, row); 2], 1e-9);
        let u = (nu + m) / (nu + delta);
        assert_close("u", &[weights[i], distances[i].weight()], &[u; 2], 1e-9);
        if m > 0.0 {
            let far = FisherSnedecor::new(m, nu).unwrap().sf(delta / m);
            assert_close("tail", &[distances[i].tail_probability()], &[far], 1e-9);
        }
        // t_g | t_O ~ t_{ν + m}(mean, C_g|O / u), of which the variance is (ν + m)/(ν + m − 2) times that.
        let t = StudentsT::new(0.0, 1.0, nu + m).unwrap();
        let unit = if nu + m > 2.0 {
            ((nu + m) / (nu + m - 2.0)).sqrt()
        } else {
            t.inverse_cdf(0.841_344_746_068_542_9)
        };
        let completed = given.complete(row);
        for (k, &column) in gaps.columns.iter().enumerate() {
            let cell = cells.next().expect("one per gap");
            let spread = (gaps.covariance[(k, k)] / u).sqrt();
            assert_eq!((cell.row, cell.column), (i, column));
            assert_eq!(cell.distribution, Distribution::Student { degrees_of_freedom: nu + m });
            let z = [cell.mean - gaps.mean[k], completed.mean[k] - gaps.mean[k]].map(|v| v / spread);
            assert_close("mean", &z, &[0.0; 2], 1e-8);
            let got = [cell.sd / spread, completed.variance[k].sqrt() / spread];
            assert_close("sd", &got, &[unit; 2], 1e-8);
            let high = (cell.interval(0.8).unwrap().1 - gaps.mean[k]) / spread;
            assert_close("90 % point", &[high], &[t.inverse_cdf(0.9)], 1e-7);
        }
        // x | t_O ~ t_{ν + m}(x̂, V / u),  V = I − W_Oᵀ C_OO⁻¹ W_O
        let w = Matrix::from_fn(seen.len(), q, |a, k| model.loadings()[(seen[a], k)]);
        let explained = w.t_dot(&dense::solve(&dense::block(&dense.covariance, &seen, &seen), &w));
        let v =
            Matrix::from_fn(q, q, |a, b| (f64::from(u8::from(a == b)) - explained[(a, b)]) / u * unit * unit);
        assert_close("cov x", posterior.covariance(i).as_slice(), v.as_slice(), 1e-6);
    }
    assert!(cells.next().is_none());
}

#[test]
fn draws_have_the_moments_of_the_t() {
    let w = Matrix::from_rows(&[[2.0, 0.5], [1.0, -1.0], [0.5, 1.0], [-1.0, 0.3]]);
    let nu = 8.0;
    let gaussian = LinearGaussian::new(w, vec![1.0, 2.0, 3.0, 4.0], Noise::Isotropic(0.5)).unwrap();
    let model = gaussian.clone().with_tail_degrees_of_freedom(nu).unwrap();
    // New rows: covariance ν/(ν − 2) C.
    let drawn = model.sample(40_000, &mut ChaCha8Rng::seed_from_u64(1));
    let (got, c) = (dense::moments(&drawn), model.covariance());
    for a in 0..4 {
        for b in 0..4 {
            let (want, size) = (c[(a, b)] * nu / (nu - 2.0), (c[(a, a)] * c[(b, b)]).sqrt());
            assert!((got.covariance[(a, b)] - want).abs() < 0.05 * size, "{a}, {b}");
        }
    }
    // Squared distances over m are F(m, ν): their quartiles and a far point.
    let rows = Dataset::new(drawn).unwrap();
    let far = model.outlyingness(&rows).unwrap();
    for p in [0.25, 0.5, 0.75, 0.99] {
        let share = far.iter().filter(|row| row.tail_probability() < p).count() as f64 / 40_000.0;
        assert!((share - p).abs() < 5.0 * (p * (1.0 - p) / 40_000.0).sqrt(), "{p}: {share}");
    }
    // Gaps: those of the conditional t, drawn for the table and row by row.
    let row = [9.0, f64::NAN, 3.0, f64::NAN];
    let one = Dataset::new(Matrix::from_rows(&[row])).unwrap();
    let cells = model.gap_cells(&one).unwrap();
    let given = model.given(&[0, 2]);
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let by_table = model.multiple_impute(&one, 20_000, 3).unwrap();
    let by_row: Vec<Vec<f64>> = (0..20_000).map(|_| given.draw(&row, &mut rng)).collect();
    for cell in &cells {
        let table: Vec<f64> = by_table.iter().map(|t| t[(0, cell.column)]).collect();
        let rows: Vec<f64> = by_row.iter().map(|t| t[cell.column]).collect();
        for drawn in [table, rows] {
            for p in [0.05, 0.5, 0.9, 0.99] {
                let share = drawn.iter().filter(|v| cell.cdf(**v) < p).count() as f64 / 20_000.0;
                assert!((share - p).abs() < 5.0 * (p * (1.0 - p) / 20_000.0).sqrt(), "{p}: {share}");
            }
        }
    }
}

#[test]
fn the_scale_of_a_row_is_common_to_its_gaps() {
    // Two gaps that are uncorrelated given the rest share u: their squares are correlated.
    let model = LinearGaussian::new(Matrix::zeros(3, 0), vec![0.0; 3], Noise::Isotropic(1.0)).unwrap();
    let table = Dataset::new(Matrix::from_rows(&[[1.0, f64::NAN, f64::NAN]])).unwrap();
    let agreement = |model: &LinearGaussian| {
        let drawn = model.multiple_impute(&table, 4000, 5).unwrap();
        let far = |t: &Matrix, j: usize| t[(0, j)].abs() > 1.5;
        let both = drawn.iter().filter(|t| far(t, 1) && far(t, 2)).count() as f64;
        both * 4000.0 / (1..3).map(|j| drawn.iter().filter(|t| far(t, j)).count() as f64).product::<f64>()
    };
    assert!((agreement(&model) - 1.0).abs() < 0.3);
    assert!(agreement(&model.clone().with_tail_degrees_of_freedom(2.0).unwrap()) > 1.6);
}

#[test]
fn a_row_with_hardly_a_cell_has_an_interval_all_the_same() {
    let w = Matrix::from_rows(&[[2.0], [1.0], [1.0]]);
    let gaussian = LinearGaussian::new(w, vec![0.0; 3], Noise::Isotropic(1.0)).unwrap();
    let rows = Dataset::new(Matrix::from_rows(&[[f64::NAN; 3], [3.0, f64::NAN, f64::NAN]])).unwrap();
    for nu in [0.2, 0.5, 1.0, 1.999, 2.001, 30.0] {
        let model = gaussian.clone().with_tail_degrees_of_freedom(nu).unwrap();
        for cell in model.gap_cells(&rows).unwrap() {
            let (low, high) = cell.interval(0.9).unwrap();
            assert!(
                cell.sd > 0.0 && low.is_finite() && low < cell.mean && cell.mean < high,
                "{nu}: {cell:?}"
            );
            assert!((cell.cdf(high) - 0.95).abs() < 1e-8, "{nu}: {}", cell.cdf(high));
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let (data, model) = simulate::ppca(Shape { rows: 30, columns: 4, n_components: 1 }, 1);
    for nu in [0.0, 0.1, -1.0, 1e7, f64::NAN, f64::NEG_INFINITY] {
        let refused = |e: Error| matches!(e, Error::OutOfRange { name: "degrees_of_freedom", .. });
        assert!(refused(model.clone().with_tail_degrees_of_freedom(nu).unwrap_err()), "{nu}");
        assert!(refused(fixed(nu, Em::default()).fit(&data, &Spec::ppca(1)).unwrap_err()), "{nu}");
    }
    let uncertain = Method::from_name("structured").unwrap().fit(&data, &Spec::ppca(1)).unwrap().model;
    assert!(matches!(uncertain.with_tail_degrees_of_freedom(4.0), Err(Error::Unsupported { .. })));
    let mut method = Method::from_name("student-t").unwrap();
    method.set("degrees_of_freedom", "4").unwrap();
    assert_eq!(method, Method::StudentT(fixed(4.0, Em::default())));
    method.set("degrees_of_freedom", "estimated").unwrap();
    assert_eq!(method, Method::StudentT(StudentT::default()));
    assert!(matches!(method.set("degrees_of_freedom", "some"), Err(Error::BadOption { .. })));
}

#[test]
fn hidden_cells_are_covered_where_a_gaussian_is_fooled() {
    let (whole, _) = with_outliers(2);
    let table = simulate::hide(&whole, 0.05, 3);
    let learn = |family| {
        let request = Request { n_components: Some(Components::Number(2)), ..Request::new(family) };
        let learned = request.learn(&table).unwrap();
        let checked =
            learned.check_by_refit(&request, &table, &SelfCheckOptions::default(), &mut ()).unwrap();
        assert!(checked.refitted);
        let CheckOutcome::Found(check) = checked.outcome else { panic!("{checked:?}") };
        let cells = learned.fill(Rows::Training).unwrap().cells(&table).unwrap();
        let mut widths: Vec<f64> =
            cells.iter().map(|c| c.interval(0.8).map(|(a, b)| b - a).unwrap()).collect();
        widths.sort_by(f64::total_cmp);
        (check, widths[widths.len() / 2])
    };
    let ((student, ours), (_, theirs)) = (learn(Family::Tppca), learn(Family::Ppca));
    assert!(ours < 0.3 * theirs, "80 % intervals: {ours} and {theirs}");
    for level in &student.coverage {
        let slack = 4.0 * level.standard_error + 0.03;
        assert!((level.share - level.level).abs() < slack, "{level:?}");
    }
}

#[test]
fn the_number_of_components_is_found_among_outliers() {
    let (table, _) = with_outliers(3);
    let request = Request { standardize: Some(false), ..Request::new(Family::Tppca) };
    let learned = on_threads(2, || request.learn(&table).unwrap());
    assert_eq!(learned.n_components(), 2);
    let json: serde_json::Value = serde_json::from_str(&learned.to_json()).unwrap();
    let nu = learned.linear().unwrap().model.tail_degrees_of_freedom();
    assert_eq!(json["degrees_of_freedom"].as_f64(), Some(nu));
    assert!(learned.weighs_rows());
    let other = Request::new(Family::Ppca).learn(&table).unwrap();
    assert!(!other.weighs_rows() && !other.to_json().contains("degrees_of_freedom"));
}
