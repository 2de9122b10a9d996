//! EM of a stream of blocks: against EM of the whole table.

use crate::contract::on_threads;
use covary::data::{Shape, simulate};
use covary::infer::{Em, OnlineEm};
use covary::{Dataset, Density, Error, Estimator, Matrix, Spec};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn table(gaps: f64) -> Dataset {
    let (whole, _) = simulate::ppca(Shape { rows: 2000, columns: 12, n_components: 3 }, 1);
    simulate::hide(&whole, gaps, 2)
}

fn rows(table: &Dataset, from: usize, to: usize) -> Dataset {
    table.of_rows(&(from..to).collect::<Vec<_>>()).unwrap()
}

/// The stream that goes this often through a table, `size` rows at a time.
fn stream(table: &Dataset, spec: &Spec, size: usize, times: usize) -> OnlineEm {
    let mut stream = OnlineEm::new(spec.clone());
    for _ in 0..times {
        for from in (0..table.n_rows()).step_by(size) {
            stream.take(&rows(table, from, table.n_rows().min(from + size))).unwrap();
        }
    }
    stream
}

/// Nats per row that the stream's model is below the most likely one of the table.
fn below(table: &Dataset, spec: &Spec, stream: &OnlineEm) -> f64 {
    let best = Em::default().fit(table, spec).unwrap().model.score(table).unwrap();
    best - stream.fit().unwrap().model.score(table).unwrap()
}

#[track_caller]
fn check_converges(spec: &Spec, size: usize, once: f64, often: f64) {
    let table = table(0.2);
    let one = below(&table, spec, &stream(&table, spec, size, 1));
    let many = below(&table, spec, &stream(&table, spec, size, 20));
    assert!((-1e-9..once).contains(&one), "{one} nats per row below after one pass");
    assert!((-1e-9..often).contains(&many), "{many} nats per row below after 20 passes");
}

#[test]
fn a_stream_that_repeats_a_table_comes_to_its_most_likely_model() {
    let standardized = Spec { standardize: true, ..Spec::ppca(3) };
    check_converges(&Spec::ppca(3), 200, 2e-3, 2e-5);
    check_converges(&standardized, 200, 2e-3, 2e-5);
    check_converges(&standardized, 37, 2e-3, 2e-5);
    check_converges(&Spec::factor_analysis(3), 200, 6e-3, 2e-3);
}

#[test]
fn a_stream_of_whole_tables_is_em_of_the_table() {
    let (table, spec) = (table(0.2), Spec::ppca(3));
    let off = below(&table, &spec, &stream(&table, &spec, 2000, 3));
    assert!(off.abs() < 1e-9, "{off} nats per row");
}

#[test]
fn units_and_origin_of_the_columns_do_not_matter() {
    let table = table(0.2);
    let cells = |j: usize, v: f64| 1000.0 * (j as f64 + 1.0) + v * 10_f64.powi(j as i32 % 5 - 2);
    let moved = Matrix::from_fn(2000, 12, |i, j| cells(j, table.values()[(i, j)]));
    let moved = Dataset::new(moved).unwrap();
    for spec in [Spec { standardize: true, ..Spec::ppca(3) }, Spec::factor_analysis(3)] {
        let (a, b) = (stream(&table, &spec, 200, 1), stream(&moved, &spec, 200, 1));
        let units: f64 = (0..12).map(|j| f64::from(j % 5 - 2) * 10_f64.ln()).sum();
        let (a, b) = (a.fit().unwrap().model, b.fit().unwrap().model);
        // Only columns that a row has count their units: compare a row without gaps.
        let whole = (0..2000).find(|&i| table.row(i).iter().all(|v| !v.is_nan())).unwrap();
        let density =
            |model: &covary::LinearGaussian, t: &Dataset| model.score(&rows(t, whole, whole + 1)).unwrap();
        let (x, y) = (density(&a, &table), density(&b, &moved) + units);
        assert!((x - y).abs() < 1e-6 * x.abs(), "{x} against {y}");
    }
}

#[test]
fn threads_leave_no_trace() {
    let (table, spec) = (table(0.2), Spec::factor_analysis(3));
    let fitted = |threads| on_threads(threads, || stream(&table, &spec, 500, 2).to_bytes());
    assert_eq!(fitted(1), fitted(3));
}

#[test]
fn a_column_may_begin_to_vary_and_a_block_may_lack_one() {
    let table = table(0.0);
    let constant = |i: usize, j: usize| if i < 100 && j == 4 { 7.0 } else { table.values()[(i, j)] };
    let lacking =
        |i: usize, j: usize| if (500..600).contains(&i) && j == 2 { f64::NAN } else { constant(i, j) };
    let table = Dataset::new(Matrix::from_fn(2000, 12, lacking)).unwrap();
    let off = below(&table, &Spec::ppca(3), &stream(&table, &Spec::ppca(3), 100, 5));
    assert!(off < 0.02, "{off} nats per row");
    // Of a column without a value nothing is known at all, whatever the noise.
    let none = |i: usize, j: usize| if j == 2 { f64::NAN } else { table.values()[(i, j)] };
    let empty = Dataset::new(Matrix::from_fn(200, 12, none)).unwrap();
    for spec in [Spec { standardize: true, ..Spec::ppca(3) }, Spec { standardize: false, ..Spec::ppca(3) }] {
        let refused = OnlineEm::new(spec).take(&empty);
        assert!(matches!(&refused, Err(Error::EmptyColumn { column }) if column == "x3"), "{refused:?}");
    }
    // A column has no standard deviation to be divided by before it varies.
    for spec in [Spec { standardize: true, ..Spec::ppca(3) }, Spec::factor_analysis(3)] {
        let off = below(&table, &spec, &stream(&table, &spec, 200, 5));
        assert!(off < 0.02, "{off} nats per row");
        let refused = OnlineEm::new(spec).take(&rows(&table, 0, 100)).unwrap_err();
        assert_eq!(refused, Error::ConstantColumn { column: "x5".to_owned() });
    }
}

#[test]
fn what_cannot_be_learned_from_is_refused_and_changes_nothing() {
    let (table, spec) = (table(0.2), Spec::ppca(3));
    let mut stream = OnlineEm::new(spec.clone());
    assert_eq!(stream.fit().unwrap_err(), Error::TooFewRows { rows: 0 });
    stream.take(&rows(&table, 0, 300)).unwrap();
    let before = stream.to_bytes();
    let other = table.of_columns(&[0, 1, 2]).unwrap();
    assert_eq!(stream.take(&other).unwrap_err(), Error::ColumnCount { expected: 12, got: 3 });
    assert!(stream.to_bytes() == before);
    // Rows without a value are counted.
    let fit = stream.fit().unwrap();
    stream.take(&Dataset::new(Matrix::from_fn(3, 12, |_, _| f64::NAN)).unwrap()).unwrap();
    let facts = stream.facts().unwrap();
    assert_eq!((facts.n_rows(), facts.n_informative_rows()), (303, 300));
    assert_eq!(stream.fit().unwrap().model, fit.model);
    assert_eq!(OnlineEm::from_bytes(spec.clone(), table.column_names(), &before).unwrap().to_bytes(), before);
    for damaged in [&before[1..], &before[..before.len() - 8], &[0; 64][..]] {
        assert!(OnlineEm::from_bytes(spec.clone(), table.column_names(), damaged).is_err());
    }
}

/// Whatever numbers a saved state is made to hold: it is refused, or writes the same bytes again and goes on with a model or an error.
#[test]
fn a_damaged_state_is_refused_or_goes_on_without_a_panic() {
    const NUMBERS: [f64; 10] = [0.0, -0.0, 1.0, -1.0, 1e-300, 1e300, -1e300, 1e8, -1e-8, f64::NAN];
    let block = rows(&table(0.2), 0, 60).of_columns(&[0, 1, 2, 3]).unwrap();
    let mut chance = ChaCha8Rng::seed_from_u64(1);
    for spec in [Spec::ppca(2), Spec::factor_analysis(1), Spec { standardize: true, ..Spec::ppca(1) }] {
        let mut stream = OnlineEm::new(spec.clone());
        stream.take(&block).unwrap();
        let bytes = stream.to_bytes();
        for k in 0..3000 {
            let mut bytes = bytes.clone();
            for _ in 0..=k % 3 {
                let at = chance.random_range(1..bytes.len() / 8);
                let number = if k % 2 == 0 {
                    NUMBERS[chance.random_range(0..NUMBERS.len())].to_le_bytes()
                } else {
                    chance.random::<u64>().to_le_bytes()
                };
                bytes[8 * at..][..8].copy_from_slice(&number);
            }
            let opened = OnlineEm::from_bytes(spec.clone(), block.column_names(), &bytes);
            let Ok(mut opened) = opened else { continue };
            assert_eq!(opened.to_bytes(), bytes);
            let _ = opened.fit();
            if opened.take(&block).is_ok() {
                let _ = opened.fit();
            }
        }
    }
}
