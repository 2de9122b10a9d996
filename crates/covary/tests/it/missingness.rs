//! Are gaps that follow the first component told from gaps at random?

use covary::data::{Shape, simulate};
use covary::infer::Em;
use covary::select::{GapTrend, gap_tests, gap_trends};
use covary::{Dataset, Error, Estimator, LinearGaussian, Matrix, Noise, Spec};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn trends(table: &Dataset, spec: &Spec) -> Vec<GapTrend> {
    gap_trends(&Em::default().fit(table, spec).unwrap().model, table).unwrap()
}

/// The table with cell (i, j) hidden where `gone` says so.
fn without(whole: &Dataset, mut gone: impl FnMut(usize, usize) -> bool) -> Dataset {
    let (n, d) = (whole.n_rows(), whole.n_columns());
    Dataset::new(Matrix::from_fn(n, d, |i, j| if gone(i, j) { f64::NAN } else { whole.row(i)[j] })).unwrap()
}

#[test]
fn gaps_at_random_are_seldom_reported() {
    const TABLES: u64 = 200;
    let reported = |spec: &Spec, gaps: &dyn Fn(u64) -> Dataset| {
        (0..TABLES).filter(|&seed| !trends(&gaps(seed), spec).is_empty()).count()
    };
    let whole = |seed| simulate::ppca(Shape { rows: 300, columns: 8, n_components: 2 }, seed).0;
    let scattered = |seed| simulate::hide(&whole(seed), 0.3, seed + 1);
    // Half the table is missing together in a third of the rows: scores there are shrunk.
    let blocks = |seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let row: Vec<bool> = (0..300).map(|_| rng.random::<f64>() < 0.3).collect();
        without(&whole(seed), |i, j| (row[i] && j < 5) || rng.random::<f64>() < 0.05)
    };
    let few = |seed| {
        let whole = simulate::ppca(Shape { rows: 40, columns: 8, n_components: 2 }, seed).0;
        simulate::hide(&whole, 0.3, seed + 1)
    };
    let counts = [
        reported(&Spec::ppca(2), &scattered),
        reported(&Spec::factor_analysis(2), &scattered),
        reported(&Spec::ppca(2), &blocks),
        reported(&Spec::ppca(2), &few),
    ];
    // One table in a hundred is allowed for; chance gives more than 8 once in five thousand times.
    assert!(counts.iter().all(|&n| n <= 8), "{counts:?} of {TABLES}");
}

#[test]
fn gaps_that_follow_another_column_are_found_with_their_direction() {
    let found = |seed: u64, sign: f64| {
        let (whole, truth) = simulate::ppca(Shape { rows: 500, columns: 8, n_components: 1 }, seed);
        let strongest = (0..8)
            .max_by(|&a, &b| truth.loadings()[(a, 0)].abs().total_cmp(&truth.loadings()[(b, 0)].abs()))
            .unwrap();
        let hit = (strongest + 1) % 8;
        let mean = whole.observed_means()[strongest];
        let table = without(&whole, |i, j| j == hit && sign * (whole.row(i)[strongest] - mean) > 0.5);
        let fit = Em::default().fit(&table, &Spec::ppca(1)).unwrap();
        let trends = gap_trends(&fit.model, &table).unwrap();
        let rises = sign * fit.model.loadings()[(strongest, 0)] > 0.0;
        matches!(&trends[..], [only] if only.column == hit && (only.correlation > 0.0) == rises)
    };
    for seed in 0..20 {
        assert!(found(seed, 1.0) && found(seed, -1.0), "seed {seed}");
    }
}

#[test]
fn a_trend_says_what_it_means_for_the_model() {
    let (name, correlation) = ("x".to_owned(), -0.314);
    let said = GapTrend { column: 0, name, correlation, p_value: 0.001 }.to_string();
    assert!(said.starts_with("gaps in `x` are more frequent where component 1 is low (correlation -0.31): "));
    assert!(said.contains("the model stays valid if the gaps depend only on observed cells"));
}

#[test]
fn trends_do_not_depend_on_threads_and_equal_scores_without_the_column() {
    let (whole, truth) = simulate::factor_analysis(Shape { rows: 300, columns: 6, n_components: 2 }, 3);
    let high = whole.observed_means()[1];
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let table = without(&whole, |i, j| rng.random::<f64>() < 0.2 || (j == 0 && whole.row(i)[1] > high));
    let run = |n| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        pool.install(|| gap_trends(&truth, &table).unwrap())
    };
    let found = run(1);
    assert_eq!(found, run(2));
    // The correlation with the ranks of the scores, by conditioning anew on every row without column 0.
    let rows: Vec<(f64, f64)> = (0..300)
        .filter_map(|i| {
            let row = table.row(i);
            let others: Vec<usize> = (1..6).filter(|&j| !row[j].is_nan()).collect();
            let given = truth.condition(&others);
            let score = given.posterior_mean(row)[0] / (1.0 - given.posterior_covariance()[(0, 0)]).sqrt();
            (!others.is_empty()).then_some((f64::from(u8::from(row[0].is_nan())), score))
        })
        .collect();
    assert_eq!(rows.len(), 300, "every row has another cell");
    let rank = |score: f64| rows.iter().filter(|r| r.1 < score).count() as f64;
    let rows: Vec<(f64, f64)> = rows.iter().map(|r| (r.0, rank(r.1))).collect();
    let n = rows.len() as f64;
    let (a, b) = (rows.iter().map(|r| r.0).sum::<f64>() / n, rows.iter().map(|r| r.1).sum::<f64>() / n);
    let product = |f: fn(f64, f64) -> f64| rows.iter().map(|r| f(r.0 - a, r.1 - b)).sum::<f64>();
    let expected = product(|x, y| x * y) / (product(|x, _| x * x) * product(|_, y| y * y)).sqrt();
    let [first, ..] = &found[..] else { panic!("{found:?}") };
    assert_eq!(first.column, 0);
    assert!((first.correlation - expected).abs() < 1e-9, "{} {expected}", first.correlation);
}

#[test]
fn nothing_is_said_without_gaps_or_components_and_other_columns_are_refused() {
    let (whole, truth) = simulate::ppca(Shape { rows: 50, columns: 4, n_components: 1 }, 1);
    assert_eq!(gap_trends(&truth, &whole), Ok(Vec::new()));
    assert_eq!(trends(&simulate::hide(&whole, 0.3, 1), &Spec::ppca(0)), []);
    let (other, _) = simulate::ppca(Shape { rows: 50, columns: 5, n_components: 1 }, 1);
    assert_eq!(gap_trends(&truth, &other), Err(Error::ColumnCount { expected: 4, got: 5 }));
}

#[test]
fn a_long_table_is_judged_by_some_of_its_rows() {
    // Every second row comes from another day; a rule that took only one kind would be blind.
    let (whole, truth) = simulate::ppca(Shape { rows: 40_000, columns: 6, n_components: 1 }, 1);
    let high = whole.observed_means()[1];
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let table =
        without(&whole, |i, j| rng.random::<f64>() < 0.2 || (j == 0 && i % 2 == 1 && whole.row(i)[1] > high));
    let found = gap_trends(&truth, &table).unwrap();
    assert_eq!(found.iter().map(|t| t.column).collect::<Vec<_>>(), [0]);
    assert_eq!(gap_trends(&truth, &simulate::hide(&whole, 0.2, 3)).unwrap(), []);
}

#[test]
fn gaps_at_random_in_a_wide_table_with_few_gaps_a_column_are_seldom_reported() {
    let reported = |seed: u64| {
        let (whole, truth) = simulate::ppca(Shape { rows: 80, columns: 3000, n_components: 2 }, seed);
        !gap_trends(&truth, &simulate::hide(&whole, 0.08, seed + 1)).unwrap().is_empty()
    };
    // Welch's test, multiplied by the number of columns, reported 5 of 12 such tables at a level of 1 %.
    let tables = (0..12).filter(|&seed| reported(seed)).count();
    assert!(tables <= 1, "{tables} of 12");
}

#[test]
fn a_model_with_as_many_components_as_columns_needs_little_memory() {
    // One packed matrix for each column was 4 GB here, and 15 GB for 1566 columns.
    let (n, d) = (60, 1000);
    let (whole, _) = simulate::ppca(Shape { rows: n, columns: d, n_components: 2 }, 1);
    let table = simulate::hide(&whole, 0.2, 2);
    let w = Matrix::from_fn(d, d - 1, |j, k| ((j * 31 + k * 17) as f64).sin() / (1.0 + k as f64));
    let model = LinearGaussian::new(w, vec![0.0; d], Noise::Isotropic(0.5)).unwrap();
    let tests = gap_tests(&model, &table).unwrap();
    assert!(tests.columns.len() > 900);
    // A share of 1000 tables, this one included: never 0.
    assert!(tests.columns.iter().all(|t| t.p_value >= 0.001));
}

#[test]
fn a_large_table_says_how_much_of_it_was_used() {
    let (whole, truth) = simulate::ppca(Shape { rows: 9000, columns: 30, n_components: 1 }, 1);
    let tests = gap_tests(&truth, &simulate::hide(&whole, 0.4, 2)).unwrap();
    assert_eq!(tests.n_rows_used, 4000);
    assert!(tests.sampled().unwrap().starts_with("4000 of 9000 rows"), "{:?}", tests.sampled());
    let (small, truth) = simulate::ppca(Shape { rows: 90, columns: 6, n_components: 1 }, 1);
    assert_eq!(gap_tests(&truth, &simulate::hide(&small, 0.3, 2)).unwrap().sampled(), None);
}
