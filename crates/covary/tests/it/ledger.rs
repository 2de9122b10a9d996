//! Are the gaps counted, and the oddities of a table seen, without crying wolf?

use crate::common::shared_data;
use covary::data::{Duplicates, Ledger, SuspectedCode, WildCell};
use covary::io::csv;
use covary::{Dataset, Matrix};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, LogNormal, Normal};
use std::fs::File;
use std::path::Path;
use std::time::Instant;

const NAN: f64 = f64::NAN;

/// The numeric tables that may not be shipped.
pub(crate) const TABLES: [&str; 18] = [
    "canadian_weather/daily_precipitation_mm.csv",
    "canadian_weather/daily_temperature_c.csv",
    "canadian_weather/stations.csv",
    "decathlon/decathlon.csv",
    "foetal_ecg/foetal_ecg.csv",
    "holzinger_swineford/holzinger_swineford1939.csv",
    "iris/iris.csv",
    "linnerud/linnerud.csv",
    "metabolite/metabolite_missing.csv",
    "missmda/geno.csv",
    "missmda/orange.csv",
    "missmda/ozone.csv",
    "mmreg/mmreg.csv",
    "nutrimouse/gene.csv",
    "nutrimouse/lipid.csv",
    "oil_flow/oil_train.csv",
    "tobamovirus/tobamovirus.csv",
    "usarrests/usarrests.csv",
];

pub(crate) fn read(path: &Path) -> Dataset {
    csv::read(File::open(path).unwrap()).unwrap().dataset().clone()
}

pub(crate) fn wine() -> Dataset {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/wine.csv"))
}

fn ledger<const D: usize>(rows: &[[f64; D]]) -> Ledger {
    Ledger::of(&Dataset::new(Matrix::from_rows(rows)).unwrap())
}

fn column(values: &[f64]) -> Dataset {
    Dataset::new(Matrix::from_fn(values.len(), 1, |i, _| values[i])).unwrap()
}

/// The codes suspected in a column of these values.
fn codes(values: &[f64]) -> Vec<f64> {
    Ledger::of(&column(values)).codes.iter().map(|code| code.value).collect()
}

/// The table with `share` of one column's cells overwritten by `code`.
fn planted(data: &Dataset, j: usize, code: f64, share: f64) -> Dataset {
    let mut values = data.values().clone();
    let mut rows: Vec<usize> = (0..data.n_rows()).filter(|&i| !values[(i, j)].is_nan()).collect();
    rows.shuffle(&mut ChaCha8Rng::seed_from_u64(1));
    rows.truncate((share * rows.len() as f64).round() as usize);
    for i in rows {
        values[(i, j)] = code;
    }
    Dataset::new(values).unwrap()
}

#[test]
fn gaps_are_counted_by_row_and_by_column() {
    let found = ledger(&[[1.0, NAN, 3.0], [NAN, NAN, NAN], [1.0, 5.0, 4.0], [NAN, NAN, NAN]]);
    assert_eq!((found.n_rows, found.n_columns, found.n_gaps), (4, 3, 7));
    assert_eq!(found.gaps_by_column, [2, 3, 2]);
    assert_eq!(found.n_complete_rows, 1);
    assert_eq!(found.empty_rows, [1, 3]);
}

#[test]
fn columns_without_variance_are_told_apart() {
    let found = ledger(&[[7.0, NAN, 3.0, 1.0], [7.0, NAN, NAN, 2.0], [NAN, NAN, NAN, NAN]]);
    assert_eq!(found.constant_columns, [(0, 7.0)]);
    assert_eq!(found.empty_columns, [1]);
    assert_eq!(found.single_columns, [(2, 3.0)]);
}

#[test]
fn a_repeated_row_is_found_with_its_gaps_and_empty_rows_are_not() {
    let (empty, pair) = ([NAN; 4], [NAN, NAN, 8.0, 9.0]);
    let (a, b, c) = ([1.0, 2.0, 3.0, 4.0], [3.0, NAN, 1.0, 2.0], [0.0, 1.0, 2.0, 3.0]);
    let rows = [empty, a, empty, b, c, b, a, [-0.0, 1.0, 2.0, 3.0]];
    assert_eq!(ledger(&rows).duplicates, Some(Duplicates { n_rows: 3, example: (3, 5) }));
    assert_eq!(ledger(&rows[..5]).duplicates, None);
    assert_eq!(ledger(&[a, pair, pair]).duplicates, None, "two cells may agree by chance");
}

#[test]
fn every_oddity_is_one_sentence_with_a_remedy() {
    let row = |x3, x4| [7.0, NAN, x3, x4, 10.0 - x4];
    let rows = [row(3.0, 1.0), row(NAN, 2.0), row(NAN, 2.0), [NAN; 5]];
    let data = Dataset::new(Matrix::from_rows(&rows)).unwrap();
    let said: Vec<String> = Ledger::of(&data).oddities(&data).map(|o| o.to_string()).collect();
    let begin = [
        "row 4 has no value at all",
        "no value at all in `x2`:",
        "one value only in `x3`:",
        "all values are equal in `x1`:",
        "row 3 repeats row 2",
    ];
    assert_eq!(said.len(), begin.len(), "{said:?}");
    for (said, begin) in said.iter().zip(begin) {
        assert!(said.starts_with(begin), "{said}");
        assert!(said.contains("drop") && !said.contains('\n') && !said.ends_with('.'), "{said}");
    }
}

#[test]
fn copies_of_columns_are_named_with_what_they_copy() {
    let table = |n_copies: usize| {
        let cell =
            |i: usize, j: usize| ((i * 37) % 101) as f64 * (1.0 + j as f64) + f64::from(u8::from(j > 0));
        Dataset::new(Matrix::from_fn(40, 1 + n_copies, cell)).unwrap()
    };
    let said = |data: &Dataset| Ledger::of(data).oddities(data).map(|o| o.to_string()).collect::<Vec<_>>();
    assert!(said(&table(1))[0].starts_with("`x2` is `x1` again, up to its unit: drop"));
    assert!(
        said(&table(2))[0].starts_with(
            "2 columns are others again, up to their units: `x2`, `x3` (the first is `x1`); drop"
        )
    );
}

#[test]
fn scales_that_start_at_zero_are_no_codes() {
    let counts: Vec<f64> = (0..400).map(|i| f64::from(i * i % 7)).collect();
    let indicator: Vec<f64> = (0..400).map(|i| f64::from(u8::from(i % 9 == 0))).collect();
    let rain: Vec<f64> = (0..400).map(|i| if i % 2 == 0 { 0.0 } else { f64::from(i % 37) / 10.0 }).collect();
    let digits: Vec<f64> = (0..100).map(|i| f64::from(i % 10)).collect();
    for values in [counts, indicator, rain, digits] {
        assert!(codes(&values).is_empty(), "{:?}", &values[..10]);
    }
}

#[test]
fn two_codes_in_a_column_do_not_hide_each_other() {
    let mut values: Vec<f64> = (0..200).map(|i| 10.0 + f64::from(i % 23)).collect();
    values[..5].fill(-99.0);
    values[5..15].fill(999.0);
    let found = Ledger::of(&column(&values)).codes;
    let high = SuspectedCode { column: 0, value: 999.0, cells: 10, nearest: 32.0 };
    assert_eq!(found, [high, SuspectedCode { value: -99.0, cells: 5, nearest: 10.0, ..high }]);
}

#[test]
fn one_odd_value_is_no_code() {
    let mut values: Vec<f64> = (0..200).map(|i| f64::from(i % 23)).collect();
    values[3] = 999.0;
    assert!(codes(&values).is_empty());
}

#[test]
fn zeros_for_missing_measurements_are_found_as_in_the_pima_table() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (glucose, pressure) = (Normal::new(120.0, 30.0).unwrap(), Normal::new(72.0, 12.0).unwrap());
    let insulin = LogNormal::new(4.83, 0.7).unwrap();
    for _ in 0..20 {
        let mut check =
            |n: usize, zeros: usize, least: f64, mut draw: Box<dyn FnMut(&mut ChaCha8Rng) -> f64>| {
                let mut values: Vec<f64> = (zeros..n).map(|_| draw(&mut rng).round().max(least)).collect();
                values.resize(n, 0.0);
                assert_eq!(codes(&values), [0.0]);
            };
        check(768, 5, 44.0, Box::new(move |rng| glucose.sample(rng)));
        check(768, 35, 24.0, Box::new(move |rng| pressure.sample(rng)));
        check(768, 374, 14.0, Box::new(move |rng| insulin.sample(rng)));
    }
}

#[test]
fn real_tables_raise_no_alarm() {
    assert_eq!((Ledger::of(&wine()).codes, Ledger::of(&wine()).wild), (vec![], vec![]));
    for path in TABLES.iter().filter_map(|name| shared_data(name)) {
        let found = Ledger::of(&read(&path));
        assert_eq!((found.codes, found.wild), (vec![], vec![]), "{}", path.display());
    }
}

#[test]
fn planted_codes_are_found_in_real_tables() {
    let paths = TABLES.iter().filter_map(|name| shared_data(name));
    let tables: Vec<Dataset> = paths.map(|path| read(&path)).chain([wine()]).collect();
    for (code, share) in [-99.0, 999.0, -9.0].into_iter().flat_map(|code| [(code, 0.01), (code, 0.05)]) {
        let (mut found, mut possible) = (0, 0);
        for data in &tables {
            for j in 0..data.n_columns() {
                let observed = || data.values().rows().map(|row| row[j]).filter(|v| !v.is_nan());
                let outside = observed().all(|v| v > code) || observed().all(|v| v < code);
                if !outside || share * (observed().count() as f64) < 1.5 {
                    continue;
                }
                let ledger = Ledger::of(&planted(data, j, code, share));
                possible += 1;
                found += usize::from(ledger.codes.iter().any(|c| c.column == j && c.value == code));
            }
        }
        assert!(100 * found >= 94 * possible && possible > 0, "{code} at {share}: {found} of {possible}");
    }
}

#[test]
fn the_ledger_of_a_large_table_takes_moments() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let fractions = Matrix::from_fn(20_000, 100, |_, _| rng.random::<f64>());
    let counts = Matrix::from_fn(20_000, 100, |_, _| f64::from(rng.random_range(0..1000_u32)));
    for (what, values) in [("counts", counts), ("fractions", fractions)] {
        let data = Dataset::new(values).unwrap();
        let start = Instant::now();
        assert_eq!(Ledger::of(&data).codes, []);
        let took = start.elapsed();
        assert!(took.as_millis() < 1000, "{what}: {took:?}");
    }
}

#[test]
fn a_wild_cell_is_named_with_its_row_and_value() {
    let mut values: Vec<f64> = (0..54).map(|i| 3.0 * (f64::from(i) * 0.7).sin()).collect();
    assert_eq!(Ledger::of(&column(&values)).wild, []);
    values[17] = 1e6;
    let data = column(&values);
    let ledger = Ledger::of(&data);
    let [WildCell { row: 17, column: 0, value: 1e6, .. }] = ledger.wild[..] else {
        panic!("{:?}", ledger.wild)
    };
    let said: Vec<String> = ledger.oddities(&data).map(|o| o.to_string()).collect();
    assert!(said[0].starts_with("row 18 of `x1` holds 1000000, far beyond all other values"), "{said:?}");
    // In any unit, on either side, and beside another.
    values[30] = -2e6;
    let scaled: Vec<f64> = values.iter().map(|v| 1e-9 * v).collect();
    assert_eq!(Ledger::of(&column(&scaled)).wild.iter().map(|c| c.row).collect::<Vec<_>>(), [17, 30]);
}

#[test]
fn heavy_tails_are_not_wild() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let normal = Normal::new(0.0, 1.0).unwrap();
    let mut alarms = 0;
    for n in [50, 200] {
        for _ in 0..100 {
            let z: Vec<f64> = (0..n).map(|_| normal.sample(&mut rng)).collect();
            let root: Vec<f64> = (0..n).map(|_| normal.sample(&mut rng).abs()).collect();
            let concentrations: Vec<f64> = z.iter().map(|z| (2.0 * z).exp()).collect();
            let cauchy: Vec<f64> = z.iter().zip(&root).map(|(z, r)| z / r).collect();
            let sparse: Vec<f64> = z.iter().map(|z| if *z < 0.5 { 0.0 } else { (2.0 * z).exp() }).collect();
            for values in [concentrations, cauchy, sparse] {
                alarms += Ledger::of(&column(&values)).wild.len();
            }
        }
    }
    // About (2/n)³ of the columns: less than one of these 600.
    assert_eq!(alarms, 0);
}

#[test]
fn a_matrix_in_the_place_of_a_table_is_spoken_of() {
    let said = |rows: &[[f64; 3]]| -> Vec<String> {
        let data = Dataset::new(Matrix::from_rows(rows)).unwrap();
        Ledger::of(&data).oddities(&data).map(|o| o.to_string()).collect()
    };
    let r = said(&[[1.0, 0.6, 0.5], [0.6, 1.0, 0.4], [0.5, 0.4, 1.0]]);
    assert!(r.len() == 1 && r[0].contains("diagonal of ones, as a correlation matrix is"), "{r:?}");
    let s = said(&[[2.0, 0.6, 0.5], [0.6, 1.0, 0.4], [0.5, 0.4, 3.0]]);
    assert!(s.len() == 1 && s[0].contains("symmetric, as a covariance matrix is"), "{s:?}");
    assert!(said(&[[1.0, 0.6, 0.5], [0.6, 1.0, 0.4], [0.5, 0.3, 1.0]]).is_empty());
}
