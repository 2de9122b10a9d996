//! Filling by hidden cells: golden cases, and what is chosen, corrected, calibrated and kept.

use crate::common::{flat, golden, matrix, shared_data};
use covary::data::{Shape, simulate};
use covary::family::{Family, Request};
use covary::filling::{Candidate, Gain, calibrate, crps, regress, weights_by_gaps};
use covary::io::model_file;
use covary::learned::{Learned, Rows};
use covary::model::FilledCell;
use covary::select::SelfCheckOptions;
use covary::{Dataset, Matrix};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, StudentT};
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    flat(value)
}

fn counts(value: &Value) -> Vec<usize> {
    flat(value).into_iter().map(|v| v as usize).collect()
}

fn assert_all(got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() <= tolerance * want.abs().max(1.0), "{got}, not {want}");
    }
}

#[test]
fn golden_scores_of_normal_predictions() {
    let case = golden("part3", "crps_pool");
    let y = numbers(&case["input"]["y"]);
    for k in 0..3 {
        let (means, sds) = (numbers(&case["input"]["means"][k]), numbers(&case["input"]["sds"][k]));
        let got: Vec<f64> = (0..y.len()).map(|i| crps(y[i], means[i], sds[i])).collect();
        assert_all(&got, &numbers(&case["expected"]["crps_normal"][k]), 1e-10);
    }
}

#[test]
fn golden_rule_for_ties() {
    let case = golden("part3", "tie_rule");
    let cases = case["input"]["cases"].as_array().unwrap();
    for (input, expected) in cases.iter().zip(case["expected"]["cases"].as_array().unwrap()) {
        let weights = weights_by_gaps(&counts(&input["column"]), &counts(&input["gaps"]));
        assert_all(&weights, &numbers(&expected["weights"]), 1e-10);
        // Each cell is of a row of its own.
        let rows: Vec<usize> = (0..weights.len()).collect();
        let gain = Gain::of(&numbers(&input["default"]), &numbers(&input["candidate"]), &weights, &rows);
        let wanted = [expected["difference"].as_f64().unwrap(), expected["se"].as_f64().unwrap()];
        assert_all(&[gain.mean, gain.standard_error], &wanted, 1e-10);
        assert_eq!(gain.counts(), expected["choose"] == "candidate");
    }
}

#[test]
fn golden_quantile_functions() {
    for name in ["conformal_quantiles", "conformal_tiny"] {
        let case = golden("part3", name);
        let columns = counts(&case["input"]["column"]);
        let residuals: Vec<(usize, f64)> = columns.into_iter().zip(numbers(&case["input"]["z"])).collect();
        let weights = vec![1.0; residuals.len()];
        let found = calibrate(&residuals, &weights, case["input"]["columns"].as_u64().unwrap() as usize);
        let knots = numbers(&case["expected"]["knots"]);
        for (j, quantiles) in found.iter().enumerate() {
            let got: Vec<f64> = knots.iter().map(|&x| quantiles.at(x)).collect();
            assert_all(&got, &numbers(&case["expected"]["Q"][j]), 1e-9);
        }
    }
}

#[test]
fn golden_ridge_on_features() {
    let case = golden("part3", "ridge_features");
    let (input, expected) = (&case["input"], &case["expected"]);
    let features = matrix(&input["features"]);
    let found = regress(&features, &numbers(&input["residual"]), &numbers(&input["loo_sd"])).unwrap();
    let least = numbers(&expected["loo_mean_square"]).into_iter().fold(f64::INFINITY, f64::min);
    assert_all(&[found.loo, found.share], &[least, expected["ratio"].as_f64().unwrap()], 1e-8);
    let rotated = matrix(&input["new_features"]).dot(&found.axes);
    let sds = numbers(&input["new_sd"]);
    let at: Vec<(f64, f64)> = rotated.rows().zip(&sds).map(|(row, &sd)| found.correct(row, sd)).collect();
    assert_all(&at.iter().map(|a| a.0).collect::<Vec<_>>(), &numbers(&expected["add"]), 1e-8);
    assert_all(&at.iter().map(|a| a.1).collect::<Vec<_>>(), &numbers(&expected["new_sd_corrected"]), 1e-8);
}

fn hidden(whole: &Dataset, share: f64, seed: u64) -> Dataset {
    simulate::hide(whole, share, seed)
}

/// Root mean squared error of filled cells, in standard deviations of their columns.
fn error_of(learned: &Learned, table: &Dataset, whole: &Dataset) -> f64 {
    let filled = learned.fill(Rows::Training).unwrap().fill(table).unwrap();
    let sds: Vec<f64> = whole.observed_variances().iter().map(|v| v.sqrt()).collect();
    let square = |c: &FilledCell| ((c.mean - whole.row(c.row)[c.column]) / sds[c.column]).powi(2);
    (filled.cells().iter().map(square).sum::<f64>() / filled.cells().len() as f64).sqrt()
}

fn plain(table: &Dataset) -> Learned {
    Request::new(Family::Gaussian).learn(table).unwrap()
}

#[test]
fn linear_tables_are_not_corrected_and_lose_nothing() {
    let shape = Shape { rows: 500, columns: 10, n_components: 4 };
    let mut corrected = 0;
    for seed in 0..10 {
        let whole = simulate::ppca(shape, seed).0;
        let table = hidden(&whole, 0.2, seed + 100);
        let learned = Request::for_filling().learn(&table).unwrap();
        corrected += usize::from(learned.filling.as_ref().unwrap().correction.is_some());
        let (chosen, default) =
            (error_of(&learned, &table, &whole), error_of(&plain(&table), &table, &whole));
        assert!(chosen < 1.01 * default, "seed {seed}: {chosen}, by the default {default}");
    }
    assert!(corrected <= 1, "{corrected} of 10 tables were corrected");
}

/// Columns that are curves of two hidden numbers.
fn curved(rows: usize, seed: u64) -> Dataset {
    let latent = simulate::ppca(Shape { rows, columns: 2, n_components: 1 }, seed).0;
    let noise = simulate::ppca(Shape { rows, columns: 8, n_components: 0 }, seed + 1).0;
    let at = |i: usize, j: usize| {
        let (a, b) = (latent.row(i)[0], latent.row(i)[1]);
        let value = match j {
            0 => a,
            1 => b,
            2 => a * a,
            3 => (2.0 * b).sin(),
            4 => a * b,
            5 => b.exp(),
            6 => a.abs(),
            _ => a - b,
        };
        value + 0.05 * noise.row(i)[j]
    };
    Dataset::new(Matrix::from_fn(rows, 8, at)).unwrap()
}

#[test]
fn curved_tables_are_corrected_kept_in_files_and_the_same_for_any_threads() {
    let whole = curved(400, 3);
    let table = hidden(&whole, 0.15, 4);
    let learned = Request::for_filling().learn(&table).unwrap();
    let filling = learned.filling.as_ref().unwrap();
    assert!(filling.correction.is_some());
    assert!(filling.tried.iter().any(|t| t.candidate == Candidate::Correction && t.taken));
    let (corrected, default) = (error_of(&learned, &table, &whole), error_of(&plain(&table), &table, &whole));
    assert!(corrected < 0.8 * default, "{corrected}, by a Gaussian {default}");

    let mut bytes = Vec::new();
    model_file::write(&learned, &mut bytes).unwrap();
    let read = model_file::read(bytes.as_slice()).unwrap();
    assert_eq!(read, learned);
    let cells = |learned: &Learned| learned.fill(Rows::New).unwrap().cells(&table).unwrap();
    assert_eq!(cells(&read), cells(&learned));

    let threads = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let other = threads.install(|| Request::for_filling().learn(&table).unwrap());
    assert_eq!(other, learned);
}

#[test]
fn intervals_of_heavy_tails_cover_what_they_promise() {
    // Errors with t(3) tails: normal intervals are too wide at 50 % and too narrow at 99 %.
    let shape = Shape { rows: 600, columns: 6, n_components: 2 };
    let signal = simulate::ppca(shape, 5).0;
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let heavy = StudentT::new(3.0).unwrap();
    let whole = Matrix::from_fn(600, 6, |i, j| signal.row(i)[j] + 2.0 * heavy.sample(&mut rng));
    let whole = Dataset::new(whole).unwrap();
    let table = hidden(&whole, 0.2, 7);
    let learned = Request::for_filling().learn(&table).unwrap();
    let filled = learned.fill(Rows::Training).unwrap().fill(&table).unwrap();
    for level in [0.5, 0.8, 0.95] {
        let inside = filled.cells().iter().filter(|cell| {
            let ((lower, upper), t) = (cell.interval(level).unwrap(), whole.row(cell.row)[cell.column]);
            lower <= t && t <= upper
        });
        let share = inside.count() as f64 / filled.cells().len() as f64;
        // Three standard errors of about 720 cells, and two points for what 50 hidden cells of a column do not know.
        let noise = 3.0 * (level * (1.0 - level) / filled.cells().len() as f64).sqrt() + 0.02;
        assert!((share - level).abs() < noise, "{level}: {share}");
    }
    let request = Request::for_filling();
    let checked = learned.check_by_refit(&request, &table, &SelfCheckOptions::default(), &mut ()).unwrap();
    for at in &checked.found().unwrap().coverage {
        assert!((at.share - at.level).abs() < 4.0 * at.standard_error + 0.02, "{at:?}");
    }
}

#[test]
fn draws_have_the_quantiles_of_their_cells_and_stay_within_limits() {
    let whole = curved(300, 8);
    // A whole column, a share and one that is not negative.
    let limited = Matrix::from_fn(300, 8, |i, j| match j {
        0 => whole.row(i)[0].round(),
        5 => whole.row(i)[5].abs(),
        6 => 1.0 / (1.0 + (-2.0 * whole.row(i)[6]).exp()),
        _ => whole.row(i)[j],
    });
    let table = hidden(&Dataset::new(limited).unwrap(), 0.1, 9);
    let learned = Request::for_filling().learn(&table).unwrap();
    let filled = learned.fill(Rows::Training).unwrap().fill(&table).unwrap();
    let n = 400;
    let draws: Vec<Matrix> =
        (0..n).map(|k| learned.draw_gaps(Rows::Training, &table, k, 1).unwrap()).collect();
    let (mut inside, mut total) = (0.0, 0.0);
    for cell in filled.cells() {
        let at = |k: usize| draws[k][(cell.row, cell.column)];
        for k in 0..n {
            match cell.column {
                0 => assert_eq!(at(k).fract(), 0.0),
                5 => assert!(at(k) >= 0.0),
                6 => assert!((0.0..=1.0).contains(&at(k))),
                _ => {}
            }
        }
        if ![0, 5, 6].contains(&cell.column) {
            let (lower, upper) = cell.interval(0.8).unwrap();
            inside += (0..n).filter(|&k| lower <= at(k) && at(k) <= upper).count() as f64;
            total += n as f64;
        }
    }
    assert!((inside / total - 0.8).abs() < 0.01, "{}", inside / total);
    for i in 0..300 {
        for j in (0..8).filter(|&j| !table.row(i)[j].is_nan()) {
            assert_eq!(draws[0][(i, j)].to_bits(), table.row(i)[j].to_bits());
        }
    }
}

#[test]
fn small_and_odd_tables_are_filled_and_say_what_was_not_done() {
    let fill = |rows: &[Vec<f64>]| {
        let table = Dataset::new(Matrix::from_rows(rows)).unwrap();
        let learned = Request::for_filling().learn(&table).unwrap();
        let filled = learned.fill(Rows::Training).unwrap().fill(&table).unwrap();
        assert!(filled.values().as_slice().iter().all(|v| v.is_finite()));
        (learned.filling.unwrap(), filled)
    };
    let nan = f64::NAN;
    let line: Vec<Vec<f64>> =
        (0..7).map(|i| vec![f64::from(i), if i == 3 { nan } else { 2.0 * f64::from(i) + 0.5 }]).collect();
    let (filling, filled) = fill(&line);
    assert!(filling.calibration.is_none() && filling.tried.is_empty());
    // The mean of the column is 6.5, the line says 6.5.
    assert!((filled.cells()[0].mean - 6.5).abs() < 1.0);
    // Fewer rows than columns.
    let whole = simulate::ppca(Shape { rows: 20, columns: 40, n_components: 2 }, 1).0;
    let table = hidden(&whole, 0.1, 2);
    let learned = Request::for_filling().learn(&table).unwrap();
    assert!(learned.filling.as_ref().unwrap().calibration.is_some());
    assert!(error_of(&learned, &table, &whole) < 1.0);
    // Nothing to fill.
    let learned = Request::for_filling().learn(&whole).unwrap();
    assert!(learned.filling.unwrap().calibration.is_none());
}

#[test]
fn oil_flow_is_corrected() {
    let Some(path) = shared_data("oil_flow/oil_train.csv") else { return };
    let text = std::fs::read_to_string(path).unwrap();
    let numbers =
        |line: &str| line.split(',').take(12).map(|cell| cell.parse().unwrap()).collect::<Vec<f64>>();
    let rows: Vec<Vec<f64>> = text.lines().skip(1).take(600).map(numbers).collect();
    let whole = Dataset::new(Matrix::from_rows(&rows)).unwrap();
    let table = hidden(&whole, 0.1, 1);
    let learned = Request::for_filling().learn(&table).unwrap();
    assert!(learned.filling.as_ref().unwrap().correction.is_some());
    let (corrected, default) = (error_of(&learned, &table, &whole), error_of(&plain(&table), &table, &whole));
    assert!(corrected <= 0.85 * default, "{corrected}, by the default {default}");
}
