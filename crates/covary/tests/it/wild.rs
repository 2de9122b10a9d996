//! Cells far from what the rest of their rows say.

use crate::common::shared_data;
use crate::ledger::{TABLES, read, wine};
use covary::data::{Ledger, Shape, simulate};
use covary::family::{Family, Request};
use covary::filling::{FarCell, FarCellWords, wild_cells};
use covary::learned::Rows;
use covary::{Dataset, Matrix};
use rand::SeedableRng;
use rand_distr::{Distribution, LogNormal, StudentT};

fn table(rows: usize, columns: usize, seed: u64) -> Dataset {
    simulate::ppca(Shape { rows, columns, n_components: 2 }, seed).0
}

fn with(data: &Dataset, cells: &[(usize, usize, f64)]) -> Dataset {
    let mut values = data.values().clone();
    for &(i, j, v) in cells {
        values[(i, j)] = v;
    }
    Dataset::with_names(values, data.column_names().to_vec()).unwrap()
}

fn places(cells: &[FarCell]) -> Vec<(usize, usize)> {
    let mut places: Vec<(usize, usize)> = cells.iter().map(|c| (c.row, c.column)).collect();
    places.sort_unstable();
    places
}

#[test]
fn cells_are_judged_by_the_rest_of_their_row() {
    // Column 3 is the sum of the others, nearly: 2 is an ordinary value there, but not where the others add up to −2.
    let whole = table(200, 3, 1);
    let sums = Matrix::from_fn(200, 4, |i, j| {
        let row = whole.row(i);
        if j < 3 { row[j] } else { row.iter().sum::<f64>() + 0.05 * ((i * 37 % 101) as f64 / 50.0 - 1.0) }
    });
    let good = Dataset::new(sums).unwrap();
    assert_eq!(wild_cells(&good), []);
    let spread = good.observed_variances()[3].sqrt();
    let row = 17;
    let wrong = good.row(row)[3] + 1.5 * spread;
    let found = wild_cells(&with(&good, &[(row, 3, wrong)]));
    assert_eq!(places(&found), [(row, 3)]);
    // The columns alone see nothing odd in it, and it is expected where the others add up to.
    assert_eq!(Ledger::of(&with(&good, &[(row, 3, wrong)])).wild, []);
    assert!((found[0].expected - (wrong - 1.5 * spread)).abs() < 0.2 * spread, "{:?}", found[0]);
    assert_eq!(found[0].value, wrong);
}

#[test]
fn gross_cells_are_found_wherever_they_are_and_good_ones_are_left_alone() {
    let good = simulate::hide(&table(300, 8, 4), 0.15, 5);
    assert_eq!(wild_cells(&good), []);
    let at = |i: usize, j: usize| !good.row(i)[j].is_nan();
    let placed: Vec<(usize, usize, f64)> =
        [(3, 1, 1e6), (40, 5, -300.0), (41, 0, 80.0), (41, 6, -1e4), (299, 7, 500.0)]
            .into_iter()
            .filter(|&(i, j, _)| at(i, j))
            .collect();
    assert!(placed.len() > 2);
    let found = wild_cells(&with(&good, &placed));
    assert_eq!(places(&found), placed.iter().map(|c| (c.0, c.1)).collect::<Vec<_>>());
    assert!(found.windows(2).all(|w| w[0].distance() >= w[1].distance()));
    // The same cells whatever the units of a column.
    let scaled =
        Matrix::from_fn(300, 8, |i, j| if j == 5 { 7.0 - 1e3 * good.row(i)[j] } else { good.row(i)[j] });
    let scaled = with(&Dataset::new(scaled).unwrap(), &[(3, 1, 1e6), (40, 5, 3e5)]);
    assert_eq!(wild_cells(&scaled).len(), wild_cells(&with(&good, &[(3, 1, 1e6), (40, 5, -299.993)])).len());
}

/// One cell in twenty is wrong: none hides another.
#[test]
fn many_gross_cells_are_found_together() {
    let good = simulate::hide(&table(120, 5, 21), 0.1, 3);
    assert_eq!(wild_cells(&good), []);
    let spread: Vec<f64> = good.observed_variances().iter().map(|v| v.sqrt()).collect();
    for share in [100, 50, 30, 20] {
        let place = |k: usize| (k * 7919 % 120, k * 31 % 5);
        let observed = |&(i, j): &(usize, usize)| !good.row(i)[j].is_nan();
        let mut at: Vec<(usize, usize)> = (0..600 / share).map(place).filter(observed).collect();
        at.sort_unstable();
        at.dedup();
        let gross = |&(i, j): &(usize, usize)| {
            let sign = if (i + j) % 2 == 0 { 1.0 } else { -1.0 };
            (i, j, good.row(i)[j] + 30.0 * sign * spread[j])
        };
        let cells: Vec<_> = at.iter().map(gross).collect();
        assert_eq!(places(&wild_cells(&with(&good, &cells))), at, "one in {share}");
    }
}

/// Where a covariance takes too long the rest of a row speaks through components.
#[test]
fn wide_tables_with_many_gaps_are_judged_by_components() {
    let good = simulate::hide(&table(400, 300, 7), 0.6, 8);
    assert_eq!(wild_cells(&good), []);
    let (row, column) = (170, 11);
    let expected = good.row(row)[column];
    let spoiled = with(&good, &[(row, column, expected + 60.0 * good.observed_variances()[column].sqrt())]);
    let found = wild_cells(&spoiled);
    assert_eq!(places(&found), [(row, column)]);
    assert!((found[0].expected - expected).abs() < 4.0 * found[0].sd, "{:?}", found[0]);
}

/// Real tables raise few alarms: one cell in thousands.
#[test]
fn real_tables_raise_few_alarms() {
    assert_eq!(wild_cells(&wine()), []);
    let (mut alarms, mut cells) = (0, 0);
    for path in TABLES.iter().filter_map(|name| shared_data(name)) {
        let table = read(&path);
        (alarms, cells) = (alarms + wild_cells(&table).len(), cells + table.n_observed());
    }
    assert!(alarms as f64 <= 5e-4 * cells as f64, "{alarms} of {cells}");
}

#[test]
fn tails_are_not_taken_for_errors() {
    let mut alarms = 0;
    for seed in 0..30 {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let normal = table(150, 6, 100 + seed);
        let (t, lognormal) = (StudentT::new(3.0).unwrap(), LogNormal::new(0.0, 1.0).unwrap());
        let heavy = Matrix::from_fn(150, 6, |i, j| {
            let noise: f64 = t.sample(&mut rng);
            let skewed: f64 = lognormal.sample(&mut rng);
            normal.row(i)[j] + if j < 3 { noise } else { skewed }
        });
        alarms += wild_cells(&normal).len() + wild_cells(&Dataset::new(heavy).unwrap()).len();
    }
    assert!(alarms <= 1, "{alarms} alarms in 60 tables");
}

#[test]
fn one_cell_does_not_decide_a_fit_without_it() {
    let good = simulate::hide(&table(120, 6, 9), 0.1, 2);
    let row = (0..120).find(|&i| good.row(i).iter().filter(|v| v.is_nan()).count() == 1).unwrap();
    let column = (0..6).find(|&j| !good.row(row)[j].is_nan()).unwrap();
    let spoiled = with(&good, &[(row, column, 1e6)]);
    let cells = wild_cells(&spoiled);
    assert_eq!(places(&cells), [(row, column)]);
    let without = spoiled.without_cells(cells.iter().map(|c| (c.row, c.column))).unwrap();
    assert_eq!(without.column_names(), spoiled.column_names());
    let filled = |data: &Dataset| {
        let learned = Request::new(Family::Gaussian).learn(data).unwrap();
        learned.fill(Rows::Training).unwrap().fill(data).unwrap()
    };
    let (by_good, by_spoiled, by_without) = (filled(&good), filled(&spoiled), filled(&without));
    let worst = |other: &covary::model::Imputed| {
        let gap = |c: &&covary::model::FilledCell| (c.row, c.column) != (row, column);
        let same = other.cells().iter().filter(gap);
        same.zip(by_good.cells()).map(|(a, b)| (a.mean - b.mean).abs() / b.sd).fold(0.0, f64::max)
    };
    assert!(worst(&by_without) < 1.0, "{}", worst(&by_without));
    assert!(worst(&by_spoiled) > 3.0, "{}", worst(&by_spoiled));
}

#[test]
fn small_and_odd_tables_are_not_judged_or_do_not_fail() {
    for (rows, columns) in [(3, 2), (19, 4), (30, 1), (25, 2), (30, 40)] {
        let values = Matrix::from_fn(rows, columns, |i, j| ((i * 7 + j * 3) % 11) as f64);
        assert_eq!(wild_cells(&Dataset::new(values).unwrap()), []);
    }
    // Constant, empty, once observed and mostly zero columns; numbers whose squares overflow.
    let odd = Matrix::from_fn(60, 6, |i, j| match j {
        0 => 4.0,
        1 => f64::NAN,
        2 if i != 5 => f64::NAN,
        3 => f64::from(u8::from(i % 10 == 0)),
        4 => (i * 31 % 17) as f64 * 1e200,
        _ => (i * 13 % 23) as f64,
    });
    assert_eq!(wild_cells(&Dataset::new(odd).unwrap()), []);
}

#[test]
fn words_name_three_and_leave_out_what_was_said() {
    let good = table(100, 5, 6);
    let spoiled = with(&good, &[(1, 0, 1e5), (2, 1, 400.0), (3, 2, 300.0), (4, 3, -200.0)]);
    let cells = wild_cells(&spoiled);
    assert_eq!(cells.len(), 4);
    let ledger = Ledger::of(&spoiled);
    assert!(ledger.wild.iter().any(|w| (w.row, w.column) == (1, 0)));
    let words = |known| FarCellWords { cells: &cells, names: spoiled.column_names(), known }.to_string();
    let all = words(&[]);
    assert!(
        all.starts_with("row 2 of `x1` holds 100000, expected ") && all.ends_with("; and 1 more"),
        "{all}"
    );
    assert!(!words(&ledger.wild).contains("100000"));
}
