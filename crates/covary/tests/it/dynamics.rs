//! Dynamic factor models: golden cases, and a joint Gaussian of all cells at once.

use crate::common::{Golden, assert_close, dataset, flat, matrix, noise};
use covary::data::{Shape, simulate};
use covary::dynamics::{DynamicEm, DynamicFactor, FirstState, Regressors, Season, Start, Timeline};
use covary::infer::{ObjectiveKind, Termination};
use covary::model::Fill;
use covary::{Dataset, Density, Error, Estimator, Matrix, Noise, Spec};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

pub(crate) const GAP: f64 = f64::NAN;

fn given(case: &Golden, at: &Value) -> DynamicFactor {
    let season = match case.input("season_period").as_u64().unwrap() as usize {
        1 => Season::None,
        period => Season::Indicators { period },
    };
    DynamicFactor::new(
        matrix(&at["A"]),
        matrix(&at["Q"]),
        matrix(&at["W"]),
        matrix(&at["B"]),
        Regressors { season, trend: None },
        noise(&at["noise"]),
        Start { mean: flat(&at["m1"]), covariance: matrix(&at["P1"]) },
    )
    .unwrap()
}

fn flattened(all: &[Matrix]) -> Vec<f64> {
    all.iter().flat_map(|m| m.as_slice().to_vec()).collect()
}

fn check_given(name: &str) {
    let case = Golden::open(name);
    let table = dataset(case.input("data"));
    let inputs = serde_json::json!({
        "A": case.input("A"), "Q": case.input("Q"), "W": case.input("W"), "B": case.input("B"),
        "noise": case.input("noise"), "m1": case.input("m1"), "P1": case.input("P1"),
    });
    let model = given(&case, &inputs);
    let times = Timeline::regular(table.n_rows());
    let density = model.log_density(&table, &times).unwrap();
    case.check("step_loglik", &density, case.expected("step_loglik"));
    case.check_one("total_loglik", density.iter().sum(), case.expected("total_loglik"));
    let filtered = &model.filter(&table, &times).unwrap()[0];
    case.check("filtered_mean", filtered.means.as_slice(), case.expected("filtered_mean"));
    case.check("filtered_cov", &flattened(&filtered.covariances), case.expected("filtered_cov"));
    let smoothed = &model.smooth(&table, &times).unwrap()[0];
    case.check("smoothed_mean", smoothed.means.as_slice(), case.expected("smoothed_mean"));
    case.check("smoothed_cov", &flattened(&smoothed.covariances), case.expected("smoothed_cov"));
    for cell in model.fill(&table, &times).unwrap() {
        let at = |key: &str| case.expected(key)[cell.row][cell.column].clone();
        case.check_one("imputed", cell.mean, &at("imputed"));
        case.check_one("imputed_var", cell.sd * cell.sd, &at("imputed_var"));
    }
    let ahead = &model.forecast(&table, &times, 3).unwrap()[0];
    for (step, want) in case.expected("forecast").as_array().unwrap().iter().enumerate() {
        let cells: Vec<_> = ahead.cells.iter().filter(|cell| cell.row == step).collect();
        case.check("forecast mean", &cells.iter().map(|c| c.mean).collect::<Vec<_>>(), &want["mean"]);
        let covariance = matrix(&want["cov"]);
        for cell in cells {
            let want = covariance[(cell.column, cell.column)];
            assert_close("forecast variance", &[cell.sd * cell.sd], &[want], 1e-8);
        }
    }
    let canonical = model.canonical().unwrap();
    let want = case.expected("canonical");
    case.check("canonical A", canonical.transition().as_slice(), &want["A"]);
    case.check("canonical Q", canonical.innovation().as_slice(), &want["Q"]);
    case.check("canonical W", canonical.loadings().as_slice(), &want["W"]);
    case.check("canonical m1", &canonical.start().mean, &want["m1"]);
    case.check("canonical P1", canonical.start().covariance.as_slice(), &want["P1"]);
    let same = canonical.log_density(&table, &times).unwrap();
    assert_close("the density does not depend on the basis", &same, &density, 1e-9);
}

#[test]
fn filter_smoother_forecast_and_basis_are_the_golden_ones() {
    check_given("lds_given");
}

#[test]
fn so_they_are_with_seasonal_means() {
    check_given("lds_seasonal_given");
}

fn check_trace(name: &str) {
    let case = Golden::open(name);
    let table = dataset(case.input("data"));
    let start = given(&case, case.input("start"));
    let times = Timeline::regular(table.n_rows());
    let initial: f64 = start.log_density(&table, &times).unwrap().iter().sum();
    case.check_one("initial_loglik", initial, case.expected("initial_loglik"));
    for record in case.expected("em").as_array().unwrap() {
        let em = DynamicEm {
            max_iterations: record["iterations"].as_u64().unwrap() as usize,
            tolerance: 0.0,
            ridge: 0.0,
            first_state: FirstState::Estimated,
            accelerate: false,
            init: Some(Box::new(start.clone())),
            ..DynamicEm::default()
        };
        let q = start.n_components();
        let spec = match start.noise() {
            Noise::Isotropic(_) => Spec { noise_floor: Some(0.0), ..Spec::ppca(q) },
            Noise::Diagonal(_) => Spec { noise_floor: Some(0.0), ..Spec::factor_analysis(q) },
        };
        let fit = em.fit(&table, &spec).unwrap();
        assert_eq!(fit.report.objective.kind, ObjectiveKind::LogLikelihood);
        case.check_one("loglik", fit.report.objective.value, &record["loglik"]);
        // The fit ends in the canonical basis: what does not depend on one must be the record's.
        let want = given(&case, record);
        case.check("B", fit.model.coefficients().as_slice(), &record["B"]);
        let got_noise = fit.model.noise().variances(table.n_columns());
        assert_close("noise", &got_noise, &want.noise().variances(table.n_columns()), 1e-8);
        let (got, want) = (fit.model.fill(&table, &times).unwrap(), want.fill(&table, &times).unwrap());
        let numbers = |cells: &[covary::model::FilledCell]| {
            cells.iter().flat_map(|c| [c.mean, c.sd]).collect::<Vec<_>>()
        };
        assert_close("filled cells", &numbers(&got), &numbers(&want), 1e-7);
        assert_close(
            "roots",
            &[fit.model.spectral_radius()],
            &[given(&case, record).spectral_radius()],
            1e-7,
        );
    }
}

#[test]
fn em_takes_the_golden_steps() {
    check_trace("lds_em_trace");
}

#[test]
fn em_takes_the_golden_steps_with_seasonal_means() {
    check_trace("lds_seasonal_em_trace");
}

fn random(rng: &mut ChaCha8Rng, rows: usize, columns: usize, size: f64) -> Matrix {
    Matrix::from_fn(rows, columns, |_, _| size * (2.0 * rng.random::<f64>() - 1.0))
}

/// A model of order `p` and a table of its size with gaps, all by lot.
pub(crate) fn random_case(seed: u64, p: usize) -> (DynamicFactor, Dataset, Timeline) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (d, k, n) = (3, 2, 6);
    let square = |m: &Matrix| {
        let mut out = m.dot_t(m);
        out.symmetrize();
        (0..out.n_rows()).for_each(|i| out[(i, i)] += 0.1);
        out
    };
    let regressors = Regressors { season: Season::Harmonics { period: 4.0, n: 1 }, trend: None };
    let model = DynamicFactor::new(
        random(&mut rng, k, k * p, 0.6),
        square(&random(&mut rng, k, k, 1.0)),
        random(&mut rng, d, k, 1.5),
        random(&mut rng, d, regressors.len(), 1.0),
        regressors,
        Noise::Diagonal((0..d).map(|_| 0.05 + rng.random::<f64>()).collect()),
        Start {
            mean: random(&mut rng, k * p, 1, 1.0).as_slice().to_vec(),
            covariance: square(&random(&mut rng, k * p, k * p, 1.0)),
        },
    )
    .unwrap();
    let cells = Matrix::from_fn(n, d, |_, _| {
        let value = 4.0 * rng.random::<f64>() - 2.0;
        if rng.random::<f64>() < 0.4 { GAP } else { value }
    });
    // Not in order, and nothing at times 4 and 6.
    let times = Timeline::new(&[7, 2, 3, 5, 9, 8], None).unwrap();
    (model, Dataset::new(cells).unwrap(), times)
}

/// Mean and covariance of all cells of all steps at once, step by step.
pub(crate) fn joint(model: &DynamicFactor, first: i64, steps: usize) -> (Vec<f64>, Matrix) {
    let (d, k, s) = (model.n_columns(), model.n_components(), model.start().mean.len());
    let a = Matrix::from_fn(s, s, |i, j| {
        if i < k { model.transition()[(i, j)] } else { f64::from(u8::from(j + k == i)) }
    });
    let q = Matrix::from_fn(s, s, |i, j| if i < k && j < k { model.innovation()[(i, j)] } else { 0.0 });
    let w = Matrix::from_fn(d, s, |j, i| if i < k { model.loadings()[(j, i)] } else { 0.0 });
    let (mut states, mut means) = (vec![model.start().covariance.clone()], vec![model.start().mean.clone()]);
    for t in 1..steps {
        let mut next = a.dot(&states[t - 1]).dot_t(&a);
        next.as_mut_slice().iter_mut().zip(q.as_slice()).for_each(|(p, q)| *p += q);
        states.push(next);
        let before = Matrix::from_vec(s, 1, means[t - 1].clone()).unwrap();
        means.push(a.dot(&before).into_vec());
    }
    let mut mean = Vec::new();
    for (t, m) in means.iter().enumerate() {
        let b = model.regressors().at(first + t as i64);
        for j in 0..d {
            let of_state: f64 = w.row(j).iter().zip(m).map(|(w, m)| w * m).sum();
            mean.push(of_state + model.coefficients().row(j).iter().zip(&b).map(|(c, b)| c * b).sum::<f64>());
        }
    }
    let mut covariance = Matrix::zeros(steps * d, steps * d);
    for t in 0..steps {
        let mut shared = states[t].clone(); // Cov(s_u, s_t) for u from t on
        for u in t..steps {
            let block = w.dot(&shared).dot_t(&w);
            for i in 0..d {
                for j in 0..d {
                    let own = if t == u && i == j { model.noise().variance(j) } else { 0.0 };
                    covariance[(u * d + i, t * d + j)] = block[(i, j)] + own;
                    covariance[(t * d + j, u * d + i)] = block[(i, j)] + own;
                }
            }
            shared = a.dot(&shared);
        }
    }
    (mean, covariance)
}

/// Against one Gaussian of all cells, which knows nothing of states.
fn check_brute_force(seed: u64, p: usize) {
    let (model, table, times) = random_case(seed, p);
    let sequence = &times.sequences()[0];
    let (d, steps) = (table.n_columns(), sequence.rows().len());
    let (mean, covariance) = joint(&model, sequence.first(), steps);
    let mut cells = vec![GAP; steps * d];
    for (t, row) in sequence.rows().iter().enumerate() {
        if let Some(row) = row {
            cells[t * d..(t + 1) * d].copy_from_slice(table.row(*row));
        }
    }
    let whole = covary::LinearGaussian::from_covariance(mean, &covariance).unwrap();
    let one_row = Dataset::new(Matrix::from_vec(1, steps * d, cells).unwrap()).unwrap();
    let want = whole.log_likelihood(&one_row).unwrap();
    let got: f64 = model.log_density(&table, &times).unwrap().iter().sum();
    assert_close("log-likelihood", &[got], &[want], 1e-9);
    let want = whole.gap_cells(&one_row).unwrap();
    for cell in model.fill(&table, &times).unwrap() {
        let step = sequence.rows().iter().position(|row| *row == Some(cell.row)).unwrap();
        let same = want.iter().find(|c| c.column == step * d + cell.column).unwrap();
        assert_close("filled cell", &[cell.mean, cell.sd], &[same.mean, same.sd], 1e-8);
    }
}

#[test]
fn likelihood_and_filled_cells_are_those_of_one_gaussian_of_all_cells() {
    for seed in 0..20 {
        check_brute_force(seed, 1);
        check_brute_force(seed, 2);
    }
}

/// Factors without memory are those of probabilistic PCA.
#[test]
fn without_memory_it_is_probabilistic_pca() {
    let (whole, truth) = simulate::ppca(Shape { rows: 40, columns: 5, n_components: 2 }, 1);
    let table = simulate::hide(&whole, 0.2, 2);
    let model = DynamicFactor::new(
        Matrix::zeros(2, 2),
        Matrix::identity(2),
        truth.loadings().clone(),
        Matrix::from_fn(5, 1, |j, _| truth.mean()[j]),
        Regressors::default(),
        truth.noise().clone(),
        Start { mean: vec![0.0; 2], covariance: Matrix::identity(2) },
    )
    .unwrap();
    let times = Timeline::regular(40);
    assert_close(
        "log-density",
        &model.log_density(&table, &times).unwrap(),
        &truth.log_density(&table).unwrap(),
        1e-8,
    );
    let (got, want) = (model.cells(&table).unwrap(), truth.gap_cells(&table).unwrap());
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(&want) {
        assert_eq!((got.row, got.column), (want.row, want.column));
        assert_close("filled cell", &[got.mean, got.sd], &[want.mean, want.sd], 1e-8);
    }
}

/// A table of `k` factors with memory `phi`, a season, and noise of sd 0.3.
pub(crate) fn simulated(rows: usize, d: usize, k: usize, phi: f64, seed: u64) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
    let w = Matrix::from_fn(d, k, |_, _| normal());
    let season = Matrix::from_fn(d, 2, |_, _| normal());
    let mut x = vec![0.0; k];
    let mut out = Matrix::zeros(rows, d);
    for t in 0..rows {
        for x in &mut x {
            *x = phi * *x + (1.0 - phi * phi).sqrt() * normal();
        }
        let phase = t as f64 / 12.0 * std::f64::consts::TAU;
        for j in 0..d {
            let of_factors: f64 = w.row(j).iter().zip(&x).map(|(w, x)| w * x).sum();
            out[(t, j)] = 5.0
                + of_factors
                + season[(j, 0)] * phase.cos()
                + season[(j, 1)] * phase.sin()
                + 0.3 * normal();
        }
    }
    Dataset::new(out).unwrap()
}

pub(crate) fn yearly() -> DynamicEm {
    DynamicEm { season: Season::Harmonics { period: 12.0, n: 1 }, ..DynamicEm::default() }
}

#[test]
fn em_never_falls_and_finds_the_memory() {
    let table = simulate::hide(&simulated(240, 6, 2, 0.8, 1), 0.2, 2);
    for (em, spec) in [
        (yearly(), Spec::ppca(2)),
        (yearly(), Spec::factor_analysis(2)),
        (DynamicEm { accelerate: false, max_iterations: 100, ..yearly() }, Spec::factor_analysis(2)),
        (DynamicEm { order: 2, trend: true, ..yearly() }, Spec { standardize: true, ..Spec::ppca(2) }),
    ] {
        let fit = em.fit(&table, &spec).unwrap();
        if em.accelerate {
            assert_eq!(fit.report.termination, Termination::Converged, "{:?}", fit.report.warnings);
            assert_eq!(fit.report.warnings, [], "{spec:?}");
        }
        assert!(fit.report.trace.windows(2).all(|t| t[1] >= t[0] - 1e-9 * t[0].abs()));
        let radius = fit.model.spectral_radius();
        assert!((0.65..0.95).contains(&radius), "{radius}");
        let long_run = fit.model.stationary_covariance().unwrap();
        let k = fit.model.n_components();
        for (i, j) in (0..k).flat_map(|i| (0..k).map(move |j| (i, j))) {
            assert!(
                (long_run[(i, j)] - f64::from(u8::from(i == j))).abs() < 1e-8,
                "unit variance in the long run"
            );
        }
    }
}

/// What is stated of a fit is the density of its own model in the units of the table.
#[test]
fn the_objective_is_the_density_of_the_table_in_its_own_units() {
    let table = simulate::hide(&simulated(120, 4, 1, 0.7, 3), 0.2, 4);
    let em = DynamicEm { ridge: 0.0, ..yearly() };
    for spec in [Spec::ppca(1), Spec::factor_analysis(1), Spec { standardize: true, ..Spec::ppca(1) }] {
        let fit = em.fit(&table, &spec).unwrap();
        let density = fit.model.log_density(&table, &Timeline::regular(120)).unwrap();
        assert_close("log-likelihood", &[fit.report.objective.value], &[density.iter().sum()], 1e-9);
    }
}

#[test]
fn units_of_columns_change_nothing_but_units() {
    let table = simulate::hide(&simulated(120, 4, 1, 0.7, 5), 0.2, 6);
    let scale = [1.0, 1e-3, 50.0, 7.0];
    let other = Matrix::from_fn(120, 4, |i, j| 3.0 + scale[j] * table.row(i)[j]);
    let other = Dataset::new(other).unwrap();
    let times = Timeline::regular(120);
    let spec = Spec::factor_analysis(1);
    let cells = |table: &Dataset| yearly().fit(table, &spec).unwrap().model.fill(table, &times).unwrap();
    for (a, b) in cells(&table).iter().zip(&cells(&other)) {
        let s = scale[a.column];
        assert_close("filled cell", &[(b.mean - 3.0) / s, b.sd / s], &[a.mean, a.sd], 1e-5);
    }
}

#[test]
fn sequences_are_independent_and_rows_may_stand_in_any_order() {
    let (model, _, _) = random_case(3, 1);
    let (a, b) = (simulated(20, 3, 1, 0.5, 7), simulated(30, 3, 1, 0.5, 8));
    let rows: Vec<Vec<f64>> = a.values().rows().chain(b.values().rows()).map(<[f64]>::to_vec).collect();
    // Interleaved backwards.
    let mut order: Vec<usize> = (0..50).collect();
    order.sort_by_key(|i| (i * 7) % 50);
    let both =
        Dataset::new(Matrix::from_rows(&order.iter().map(|&i| rows[i].clone()).collect::<Vec<_>>())).unwrap();
    let times: Vec<i64> = order.iter().map(|&i| if i < 20 { i } else { i - 20 } as i64).collect();
    let sequences: Vec<usize> = order.iter().map(|&i| usize::from(i >= 20)).collect();
    let timeline = Timeline::new(&times, Some(&sequences)).unwrap();
    let got: f64 = model.log_density(&both, &timeline).unwrap().iter().sum();
    let alone =
        |t: &Dataset| model.log_density(t, &Timeline::regular(t.n_rows())).unwrap().iter().sum::<f64>();
    assert_close("log-likelihood", &[got], &[alone(&a) + alone(&b)], 1e-12);
}

/// A hundred thousand steps next to a unit root, with noise that is next to nothing.
#[test]
fn long_sequences_near_a_unit_root_keep_their_digits() {
    let n = 100_000;
    let model = DynamicFactor::new(
        Matrix::from_rows(&[[0.999_999, 0.1], [0.0, 0.5]]),
        Matrix::diagonal(&[1e-6, 0.0]),
        Matrix::from_rows(&[[1.0, 0.5], [1.0, -0.5], [0.3, 1.0]]),
        Matrix::zeros(3, 1),
        Regressors::default(),
        Noise::Isotropic(1e-10),
        Start { mean: vec![0.0; 2], covariance: Matrix::identity(2) },
    )
    .unwrap();
    let table = Matrix::from_fn(n, 3, |i, j| {
        if i % 1000 < 500 { (i as f64 / 1e4).sin() * 1e-3 * (j + 1) as f64 } else { GAP }
    });
    let table = Dataset::new(table).unwrap();
    let times = Timeline::regular(n);
    assert!(model.log_density(&table, &times).unwrap().iter().all(|l| l.is_finite()));
    let factors = &model.smooth(&table, &times).unwrap()[0];
    for p in &factors.covariances {
        assert!(
            p[(0, 0)] >= 0.0 && p[(1, 1)] >= 0.0 && p[(0, 0)] * p[(1, 1)] >= p[(0, 1)].powi(2) * (1.0 - 1e-9)
        );
    }
}

/// Tables that are short for the memory of their factors, where the parameters' own errors count.
#[test]
fn intervals_of_forecasts_cover_what_they_say() {
    let (mut inside, mut plain, mut all) = ([0; 3], [0; 3], 0);
    for seed in 0..40 {
        let whole = simulated(112, 5, 2, 0.9, 100 + seed);
        let seen = whole.of_rows(&(0..100).collect::<Vec<_>>()).unwrap();
        let fit = yearly().fit(&seen, &Spec::ppca(2)).unwrap();
        let times = Timeline::regular(100);
        let ahead = &fit.model.forecast_estimated(&seen, &times, 12, &(&seen).into()).unwrap()[0];
        let known = &fit.model.forecast(&seen, &times, 12).unwrap()[0];
        for (place, step) in [0, 5, 11].into_iter().enumerate() {
            for (counts, forecast) in [(&mut inside, ahead), (&mut plain, known)] {
                for cell in forecast.cells.iter().filter(|cell| cell.row == step) {
                    let (low, high) = cell.interval(0.95).unwrap();
                    counts[place] += usize::from((low..=high).contains(&whole.row(100 + step)[cell.column]));
                }
            }
        }
        all += 5;
    }
    // 200 cells each, five of a row depending on two factors: about 80 independent ones, whose share has a standard
    // error of 2.4 points.
    for (inside, step) in inside.iter().zip([1, 6, 12]) {
        let share = *inside as f64 / f64::from(all);
        assert!((0.95 - 3.0 * 0.024..=1.0).contains(&share), "{step} steps ahead: {share}");
    }
    assert!(inside.iter().sum::<usize>() > plain.iter().sum::<usize>());
}

#[test]
fn what_cannot_be_a_timeline_is_refused_by_name() {
    assert_eq!(Timeline::new(&[1, 2, 1], None).unwrap_err(), Error::RepeatedTime { rows: (1, 3), time: 1 });
    assert!(matches!(Timeline::new(&[0, i64::MAX], None), Err(Error::TooFewTimes { rows: 2, .. })));
    assert!(matches!(Timeline::new(&[i64::MIN, i64::MAX], None), Err(Error::TooFewTimes { .. })));
    assert!(matches!(Timeline::new(&[1, 2], Some(&[1])), Err(Error::WrongLength { .. })));
    assert!(matches!(Timeline::new(&[], None), Err(Error::EmptyTable { .. })));
    let table = simulated(10, 3, 1, 0.5, 1);
    let alone = Timeline::new(&[0; 10], Some(&(0..10).collect::<Vec<_>>())).unwrap();
    let apart = table.clone().in_time(alone).unwrap();
    let refused = DynamicEm::default().fit(&apart, &Spec::ppca(1)).unwrap_err();
    assert_eq!(refused, Error::NothingFollows { sequences: 10 });
    assert!(matches!(table.clone().in_time(Timeline::regular(9)), Err(Error::WrongLength { .. })));
    assert!(matches!(DynamicEm::default().fit(&table, &Spec::ppca(3)), Err(Error::TooManyComponents { .. })));
    assert!(matches!(DynamicEm::default().fit(&table, &Spec::ppca(0)), Err(Error::OutOfRange { .. })));
    let no_order = DynamicEm { order: 0, ..DynamicEm::default() };
    assert!(matches!(no_order.fit(&table, &Spec::ppca(1)), Err(Error::OutOfRange { name: "order", .. })));
    let fast = DynamicEm { season: Season::Harmonics { period: 3.0, n: 2 }, ..DynamicEm::default() };
    assert!(matches!(fast.fit(&table, &Spec::ppca(1)), Err(Error::OutOfRange { name: "period", .. })));
}

/// Factors that grow without bound are a model like any other.
#[test]
fn an_unstable_transition_is_fitted_and_forecast() {
    let table = Matrix::from_fn(40, 3, |t, j| {
        1.1_f64.powi(t as i32) * (1.0 + j as f64) + ((t * 7 + j * 3) % 5) as f64 / 10.0
    });
    let table = Dataset::new(table).unwrap();
    let fit = DynamicEm::default().fit(&table, &Spec::ppca(1)).unwrap();
    assert!(fit.model.spectral_radius() > 1.0);
    assert!(fit.model.stationary_covariance().is_none());
    let ahead = &fit.model.forecast(&table, &Timeline::regular(40), 1).unwrap()[0];
    let want = 1.1_f64.powi(40);
    assert!((ahead.cells[0].mean / want - 1.0).abs() < 0.1, "{} {want}", ahead.cells[0].mean);
}
