//! Draws for multiple imputation: the parameters' uncertainty is in them, and they stay within their margins.

use covary::data::{Shape, simulate};
use covary::family::{Family, ForFilling, Request};
use covary::io::model_file;
use covary::learned::{Learned, Rows};
use covary::{Dataset, Matrix};

/// Learned as a Gaussian without pseudo-rows to speak of, as it states its cells.
fn plain(table: &Dataset) -> Learned {
    let filling = Some(ForFilling { choose: false, calibrate: false, limits: false });
    let options =
        vec![("pseudo_rows".to_owned(), "1e-6".to_owned()), ("tolerance".to_owned(), "1e-9".to_owned())];
    Request { filling, options, ..Request::new(Family::Gaussian) }.learn(table).unwrap()
}

fn tables(learned: &Learned, table: &Dataset, n: usize) -> Vec<Matrix> {
    let draws = learned.gap_draws(Rows::Training, table).unwrap();
    (0..n).map(|k| draws.draw(k, 5).unwrap()).collect()
}

fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0))
}

/// One column has gaps: the textbook's posterior predictive of a regression, 1/σ² its prior, is Student's t.
///
/// ```text
/// t_m | rest ~ t_{n−p}(x'β, s² (I + X_m (X'X)⁻¹ X_m'))        s²: residual squares / (n − p)
/// ```
#[test]
fn draws_of_nested_gaps_are_those_of_the_regression() {
    let (whole, _) = simulate::ppca(Shape { rows: 40, columns: 3, n_components: 1 }, 4);
    let gaps = 12;
    let table =
        Dataset::new(Matrix::from_fn(
            40,
            3,
            |i, j| {
                if j == 1 && i < gaps { f64::NAN } else { whole.row(i)[j] }
            },
        ))
        .unwrap();
    // Normal equations of column 1 on the others, by the rows that have it.
    let x = |i: usize| [1.0, table.row(i)[0], table.row(i)[2]];
    let mut gram = [[0.0; 4]; 3];
    for i in gaps..40 {
        let row = x(i);
        for a in 0..3 {
            (0..3).for_each(|b| gram[a][b] += row[a] * row[b]);
            gram[a][3] += row[a] * table.row(i)[1];
        }
    }
    let solve = |mut m: [[f64; 4]; 3]| {
        for a in 0..3 {
            let pivot = m[a][a];
            m[a].iter_mut().for_each(|v| *v /= pivot);
            for b in (0..3).filter(|&b| b != a) {
                let factor = m[b][a];
                let row = m[a];
                m[b].iter_mut().zip(row).for_each(|(v, r)| *v -= factor * r);
            }
        }
        [m[0][3], m[1][3], m[2][3]]
    };
    let beta = solve(gram);
    let fit = |i: usize| x(i).iter().zip(beta).map(|(x, b)| x * b).sum::<f64>();
    let squares: f64 = (gaps..40).map(|i| (table.row(i)[1] - fit(i)).powi(2)).sum();
    let freedom = (40 - gaps - 3) as f64;
    // (a, X'X⁻¹ b)
    let leverage = |a: usize, b: usize| {
        let mut m = gram;
        (0..3).for_each(|r| m[r][3] = x(b)[r]);
        solve(m).iter().zip(x(a)).map(|(s, x)| s * x).sum::<f64>()
    };
    let scale = squares / (freedom - 2.0);

    let n = 4000;
    let drawn = tables(&plain(&table), &table, n);
    let of = |i: usize| drawn.iter().map(|t| t[(i, 1)]).collect::<Vec<f64>>();
    for i in 0..gaps {
        let (mean, variance) = mean_and_variance(&of(i));
        let want = scale * (1.0 + leverage(i, i));
        assert!((mean - fit(i)).abs() < 4.0 * (want / n as f64).sqrt(), "row {i}: {mean}, {}", fit(i));
        // Four standard errors of a variance whose kurtosis is that of t with 25 degrees of freedom.
        assert!((variance / want - 1.0).abs() < 4.0 * (2.3 / n as f64).sqrt(), "row {i}: {variance}, {want}");
    }
    // Rows of a draw share its parameters: without that their covariance would be 0.
    let (mut together, mut want) = (0.0, 0.0);
    for a in 0..gaps {
        for b in 0..a {
            let (left, right) = (of(a), of(b));
            let (ma, mb) = (mean_and_variance(&left).0, mean_and_variance(&right).0);
            let sign = leverage(a, b).signum();
            together +=
                sign * left.iter().zip(&right).map(|(l, r)| (l - ma) * (r - mb)).sum::<f64>() / n as f64;
            want += sign * scale * leverage(a, b);
        }
    }
    assert!((together / want - 1.0).abs() < 0.15, "{together}, {want}");
}

/// The mean of a column over draws varies by the parameters' uncertainty as well: by the rows that are observed, not by all.
#[test]
fn means_over_draws_vary_as_observed_cells_allow() {
    let (rows, gaps) = (200, 100);
    // Unrelated columns, of which one lacks half its cells: its mean is known to σ²/100.
    let (whole, _) = simulate::ppca(Shape { rows, columns: 3, n_components: 0 }, 6);
    let table =
        Dataset::new(Matrix::from_fn(
            rows,
            3,
            |i, j| {
                if j == 2 && i < gaps { f64::NAN } else { whole.row(i)[j] }
            },
        ))
        .unwrap();
    let observed: Vec<f64> = (gaps..rows).map(|i| table.row(i)[2]).collect();
    let sigma = mean_and_variance(&observed).1;
    let means: Vec<f64> = tables(&plain(&table), &table, 2000)
        .iter()
        .map(|t| (0..rows).map(|i| t[(i, 2)]).sum::<f64>() / rows as f64)
        .collect();
    // Half of the mean is drawn: ¼ (σ²/100 for its own scatter + σ²/100 for the mean it scatters about, + two slopes).
    let want = 0.25 * sigma * (2.0 / gaps as f64);
    let found = mean_and_variance(&means).1;
    assert!((found / want - 1.0).abs() < 0.15, "{found}, {want}");
}

#[test]
fn calibrated_draws_keep_the_quantiles_of_their_cells() {
    let (whole, _) = simulate::ppca(Shape { rows: 60, columns: 10, n_components: 3 }, 7);
    let table = simulate::hide(&whole, 0.25, 8);
    let filling = Some(ForFilling { choose: false, calibrate: true, limits: false });
    let learned = Request { filling, ..Request::new(Family::Gaussian) }.learn(&table).unwrap();
    assert!(learned.filling.as_ref().unwrap().calibration.is_some());
    let filled = learned.fill(Rows::Training).unwrap().fill(&table).unwrap();
    let drawn = tables(&learned, &table, 500);
    for level in [0.5, 0.8, 0.95] {
        let mut inside = 0.0;
        for cell in filled.cells() {
            let (lower, upper) = cell.interval(level).unwrap();
            let within = |t: &&Matrix| (lower..=upper).contains(&t[(cell.row, cell.column)]);
            inside += drawn.iter().filter(within).count() as f64 / drawn.len() as f64;
        }
        let share = inside / filled.cells().len() as f64;
        assert!((share - level).abs() < 0.02, "{level}: {share}");
    }
}

#[test]
fn draws_of_a_small_table_have_the_distribution_of_their_cells() {
    let rows = [[1.0, 2.3], [2.0, 1.9], [4.0, 5.1], [5.5, 4.0], [8.0, f64::NAN]];
    let table = Dataset::new(Matrix::from_rows(&rows)).unwrap();
    let learned = Request::for_filling().learn(&table).unwrap();
    assert!(learned.filling.as_ref().unwrap().estimated);
    let filled = learned.fill(Rows::Training).unwrap().fill(&table).unwrap();
    let cell = &filled.cells()[0];
    let drawn: Vec<f64> = tables(&learned, &table, 4000).iter().map(|t| t[(4, 1)]).collect();
    for level in [0.5, 0.8, 0.95] {
        let (lower, upper) = cell.interval(level).unwrap();
        let share = drawn.iter().filter(|v| (lower..=upper).contains(v)).count() as f64 / 4000.0;
        let error = (level * (1.0 - level) / 4000.0).sqrt();
        assert!((share - level).abs() < 4.0 * error, "{level}: {share}");
    }
}

#[test]
fn a_file_draws_the_same_and_one_from_before_counts_observed_cells() {
    let (whole, _) = simulate::ppca(Shape { rows: 80, columns: 5, n_components: 2 }, 1);
    let table = simulate::hide(&whole, 0.2, 2);
    let learned = plain(&table);
    let mut bytes = Vec::new();
    model_file::write(&learned, &mut bytes).unwrap();
    let mut read = model_file::read(bytes.as_slice()).unwrap();
    assert_eq!(read, learned);
    let draw = |learned: &Learned, rows: Rows| learned.gap_draws(rows, &table).unwrap().draw(1, 2).unwrap();
    assert_eq!(draw(&learned, Rows::Training), draw(&read, Rows::New));
    read.linear_mut().unwrap().informative_rows.clear();
    assert!(draw(&read, Rows::New) != draw(&learned, Rows::New));
    // What cannot be is refused.
    for rows in [vec![1.0; 4], vec![0.0; 5], vec![81.0; 5]] {
        read.linear_mut().unwrap().informative_rows = rows;
        assert!(model_file::write(&read, Vec::new()).is_err());
    }
}

/// More columns than rows, hardly any pseudo-rows: draws are still numbers of the size of the table's.
#[test]
fn few_rows_are_drawn_too() {
    let (whole, _) = simulate::ppca(Shape { rows: 12, columns: 30, n_components: 2 }, 3);
    let table = simulate::hide(&whole, 0.2, 4);
    let options = vec![("pseudo_rows".to_owned(), "0.03".to_owned())];
    let learned = Request { options, ..Request::new(Family::Gaussian) }.learn(&table).unwrap();
    let largest =
        table.values().as_slice().iter().filter(|v| !v.is_nan()).fold(0.0_f64, |m, v| m.max(v.abs()));
    for drawn in tables(&learned, &table, 50) {
        assert!(drawn.as_slice().iter().all(|v| v.abs() < 100.0 * largest));
    }
}
