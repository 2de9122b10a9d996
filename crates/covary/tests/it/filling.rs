//! Filling by hidden cells: golden cases, and what is chosen, corrected, calibrated and kept.

use crate::common::{flat, golden, matrix, shared_data};
use covary::data::{Shape, simulate};
use covary::family::{Family, ForFilling, Request};
use covary::filling::{Candidate, Gain, crps, regress, weights_by_gaps};
use covary::io::model_file;
use covary::learned::{Learned, Rows};
use covary::model::FilledCell;
use covary::select::SelfCheckOptions;
use covary::{Dataset, Density, Matrix};
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
    let drawn = learned.gap_draws(Rows::Training, &table).unwrap();
    let draws: Vec<Matrix> = (0..n).map(|k| drawn.draw(k, 1).unwrap()).collect();
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
        (0..7).map(|i| vec![f64::from(i), if i == 5 { nan } else { 2.0 * f64::from(i) + 0.5 }]).collect();
    let (filling, filled) = fill(&line);
    assert!(filling.calibration.is_none() && filling.estimated);
    // Cells hidden one by one choose the fewest pseudo-rows. The mean of the column is 5.8, the line says 10.5.
    let taken = filling.tried.iter().rfind(|t| t.taken).unwrap();
    assert_eq!(taken.candidate, Candidate::PseudoRows(0.03));
    let cell = &filled.cells()[0];
    assert!((cell.mean - 10.5).abs() < 0.05 && cell.sd < 1.0, "{cell:?}");
    // At its end, too, and beyond all that was observed.
    let (_, filled) = fill(&line[..6]);
    assert!((filled.cells()[0].mean - 10.5).abs() < 0.1, "{:?}", filled.cells()[0]);
    // Four rows have too few cells to choose by.
    let (filling, _) = fill(&line[2..6]);
    assert!(filling.estimated && filling.tried.is_empty());
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

/// A Gaussian with this many pseudo-rows, calibrated if that is possible.
fn gaussian(table: &Dataset, pseudo_rows: f64, standardize: bool) -> Learned {
    let options = vec![
        ("pseudo_rows".to_owned(), pseudo_rows.to_string()),
        ("tolerance".to_owned(), "1e-12".to_owned()),
    ];
    let filling = Some(ForFilling { choose: false, calibrate: true, limits: false });
    let standardize = Some(standardize);
    Request { filling, options, standardize, ..Request::new(Family::Gaussian) }.learn(table).unwrap()
}

/// The textbook's prediction interval of a regression, a + b x ± t √(s² (1 + 1/n + (x − x̄)²/Σ(x − x̄)²)).
/// Residuals of cells that were predicted from the rest of their rows say nothing of rows that have no value.
#[test]
fn rows_without_a_value_have_the_spread_of_the_columns() {
    let (whole, _) = simulate::ppca(Shape { rows: 90, columns: 6, n_components: 3 }, 11);
    let mut values = simulate::hide(&whole, 0.1, 3).into_values();
    values.row_mut(4).fill(f64::NAN);
    let table = Dataset::new(values).unwrap();
    for family in [Family::Gaussian, Family::Ppca, Family::Fa] {
        let filling = Some(ForFilling { choose: family == Family::Gaussian, ..ForFilling::default() });
        let learned = Request { filling, ..Request::new(family) }.learn(&table).unwrap();
        let cells = learned.fill(Rows::Training).unwrap().cells(&table).unwrap();
        let by_model = learned.linear().unwrap().model.gap_cells(&table).unwrap();
        let calibration = learned.filling.as_ref().unwrap().calibration.as_ref().unwrap();
        assert_eq!(cells.iter().filter(|cell| cell.row == 4).count(), 6);
        for (cell, model) in cells.iter().zip(&by_model) {
            let sd = table.observed_variances()[cell.column].sqrt();
            let spread = calibration.columns[cell.column].spread;
            if cell.row == 4 {
                assert_eq!(cell.sd, model.sd);
                assert!((cell.sd / sd - 1.0).abs() < 0.15, "{}: {} beside {sd}", cell.column, cell.sd);
            } else if family != Family::Gaussian {
                assert!((cell.sd / (model.sd * spread) - 1.0).abs() < 1e-12);
            }
        }
        assert!(calibration.columns.iter().any(|c| (c.spread - 1.0).abs() > 0.01));
        assert!(calibration.n_hidden < table.n_observed());
    }
}

#[test]
fn cells_of_tables_too_small_to_calibrate_are_those_of_the_regression() {
    let (x, y) = ([1.0, 2.0, 4.0, 5.5, 8.0], [2.3, 1.9, 5.1, 4.0, 8.2]);
    // A row without cells is a gap that tells nothing.
    let mut rows: Vec<[f64; 2]> = x.into_iter().zip(y).map(|(x, y)| [x, y]).collect();
    rows.push([f64::NAN; 2]);
    let table = Dataset::new(Matrix::from_rows(&rows)).unwrap();
    let (mean_x, mean_y) = (x.iter().sum::<f64>() / 5.0, y.iter().sum::<f64>() / 5.0);
    let squares: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
    let slope = x.iter().zip(&y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / squares;
    let residual = |(x, y): (&f64, &f64)| (y - mean_y - slope * (x - mean_x)).powi(2);
    let variance = x.iter().zip(&y).map(residual).sum::<f64>() / 3.0;
    for standardize in [true, false] {
        let learned = gaussian(&table, 0.0, standardize);
        assert!(learned.filling.as_ref().unwrap().estimated);
        let mut bytes = Vec::new();
        model_file::write(&learned, &mut bytes).unwrap();
        for learned in [model_file::read(bytes.as_slice()).unwrap(), learned] {
            for at in [3.0, 10.0] {
                let row = Dataset::new(Matrix::from_rows(&[[at, f64::NAN], [1.0, 2.0]])).unwrap();
                let cells = learned.fill(Rows::New).unwrap().cells(&row).unwrap();
                let scale = (variance * (1.2 + (at - mean_x).powi(2) / squares)).sqrt();
                let middle = mean_y + slope * (at - mean_x);
                // The 97.5 and 75 % points of t with three degrees of freedom, and its standard deviation.
                for (level, point) in [(0.95, 3.182_446_305_284_263), (0.5, 0.764_892_328_404_345)] {
                    let (lower, upper) = cells[0].interval(level).unwrap();
                    assert_all(&[lower, upper], &[middle - point * scale, middle + point * scale], 1e-7);
                }
                assert_all(&[cells[0].mean, cells[0].sd], &[middle, scale * 3.0_f64.sqrt()], 1e-7);
            }
        }
    }
}

/// With pseudo-rows and gaps in several columns, by matrices: [M 4.4.7].
#[test]
fn cells_of_small_tables_with_several_gaps_have_the_scale_and_freedom_of_the_formula() {
    let whole = simulate::ppca(Shape { rows: 6, columns: 3, n_components: 1 }, 11).0;
    let missing = |i: usize, j: usize| [(1, 2), (4, 1), (4, 2)].contains(&(i, j));
    let value = |i: usize, j: usize| if missing(i, j) { f64::NAN } else { 1.0 + 10.0 * whole.row(i)[j] };
    let table = Dataset::new(Matrix::from_fn(6, 3, value)).unwrap();
    let lambda = 4.0;
    for standardize in [true, false] {
        let learned = gaussian(&table, lambda, standardize);
        assert!(learned.filling.as_ref().unwrap().estimated);
        let model = &learned.linear().unwrap().model;
        let (mean, covariance) = (model.mean(), model.covariance());
        let v = table.observed_variances();
        let unit = |j: usize| if standardize { v[j] } else { v.iter().sum::<f64>() / 3.0 };
        let cells = learned.fill(Rows::Training).unwrap().cells(&table).unwrap();
        assert_eq!(cells.len(), 3);
        for cell in cells {
            let (i, j) = (cell.row, cell.column);
            let seen: Vec<usize> = (0..3).filter(|&k| !table.row(i)[k].is_nan()).collect();
            // Column 0 has 6 cells, column 1 has 5, column 2 has 4, all of them in rows that have column 1.
            let rows = if j == 1 { 5.0 } else { 4.0 };
            // Σ_OO⁻¹ of one or two columns.
            let inverse = match seen[..] {
                [a] => vec![vec![1.0 / covariance[(a, a)]]],
                [a, b] => {
                    let (p, q, r) = (covariance[(a, a)], covariance[(a, b)], covariance[(b, b)]);
                    let det = p * r - q * q;
                    vec![vec![r / det, -q / det], vec![-q / det, p / det]]
                }
                _ => unreachable!(),
            };
            let away: Vec<f64> = seen.iter().map(|&k| table.row(i)[k] - mean[k]).collect();
            let cross: Vec<f64> = seen.iter().map(|&k| covariance[(j, k)]).collect();
            let form = |a: &[f64], b: &[f64]| -> f64 {
                let k = a.len();
                (0..k * k).map(|e| a[e / k] * inverse[e / k][e % k] * b[e % k]).sum()
            };
            let trace: f64 = (0..seen.len()).map(|k| inverse[k][k] * unit(seen[k])).sum();
            let freedom = rows - 1.0 - (seen.len() as f64 - lambda * trace / (rows + lambda));
            let plain = covariance[(j, j)] - form(&cross, &cross);
            let leverage = 1.0 + 1.0 / rows + form(&away, &away) / (rows + lambda);
            let variance = plain * rows / freedom * leverage * freedom / (freedom - 2.0);
            assert!(freedom > 2.0);
            assert_all(&[cell.sd], &[variance.sqrt()], 1e-7);
            assert_all(&[cell.mean], &[mean[j] + form(&cross, &away)], 1e-7);
            let expected = covary::model::Distribution::Student { degrees_of_freedom: freedom };
            let wanted = FilledCell { distribution: expected, ..cell.clone() }.interval(0.9).unwrap();
            let found = cell.interval(0.9).unwrap();
            assert_all(&[found.0, found.1], &[wanted.0, wanted.1], 1e-7);
        }
    }
}

#[test]
fn one_column_of_counts_has_counts_by_students_t() {
    let counts = [0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 5.0, 6.0, 9.0, 12.0];
    let rows: Vec<[f64; 1]> = counts.into_iter().chain([f64::NAN]).map(|v| [v]).collect();
    let table = Dataset::new(Matrix::from_rows(&rows)).unwrap();
    let learned = Request::for_filling().learn(&table).unwrap();
    assert!(learned.filling.as_ref().unwrap().estimated);
    let filled = learned.fill(Rows::Training).unwrap().fill(&table).unwrap();
    let cell = &filled.cells()[0];
    // Mean 4 and squares 138: s² = 138/11, times 1 + 1/12, with eleven degrees of freedom.
    let scale = (138.0 / 11.0 * 13.0_f64 / 12.0).sqrt();
    assert_all(&[cell.mean, cell.sd], &[4.0, scale * (11.0_f64 / 9.0).sqrt()], 1e-7);
    // The 97.5, 90 and 75 % points of t.
    for (level, point) in [(0.95, 2.200_985), (0.8, 1.363_43), (0.5, 0.697_445)] {
        let (lower, upper) = cell.interval(level).unwrap();
        assert_eq!(lower, (4.0 - point * scale).max(0.0).ceil(), "{level}");
        assert_eq!(upper, (4.0 + point * scale).floor(), "{level}");
    }
}

/// Nothing is to be found, and four planes of two dimensions in 60 rows find it: where a mixture was led to by cells that are
/// then hidden, it knows them.
#[test]
fn intervals_of_a_mixture_larger_than_the_table_supports_cover_too() {
    let (mut inside, mut total) = (0, 0);
    for seed in 0..3 {
        let whole = simulate::ppca(Shape { rows: 60, columns: 8, n_components: 1 }, seed).0;
        let table = hidden(&whole, 0.2, seed + 50);
        let filling = Some(ForFilling { choose: false, calibrate: true, limits: false });
        let n_components = Some(covary::family::Components::Number(2));
        let request = Request { filling, n_mixtures: Some(4), n_components, ..Request::new(Family::Mppca) };
        let learned = request.learn(&table).unwrap();
        for cell in learned.fill(Rows::Training).unwrap().cells(&table).unwrap() {
            let (lower, upper) = cell.interval(0.95).unwrap();
            inside += usize::from((lower..=upper).contains(&whole.row(cell.row)[cell.column]));
            total += 1;
        }
    }
    let share = inside as f64 / f64::from(total);
    assert!((0.93..0.99).contains(&share), "{share} of {total}");
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
