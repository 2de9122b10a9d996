//! Shifts for values that are not missing at random.

use covary::data::{Shape, simulate};
use covary::family::{Family, Request};
use covary::io::model_file;
use covary::learned::{Learned, Rows};
use covary::{Dataset, Error, Matrix};

fn gaps() -> Dataset {
    let (whole, _) = simulate::ppca(Shape { rows: 120, columns: 4, n_components: 2 }, 1);
    // The last column is whole and not negative.
    let values =
        Matrix::from_fn(
            120,
            4,
            |i, j| if j == 3 { (5.0 * whole.row(i)[3]).round().abs() } else { whole.row(i)[j] },
        );
    simulate::hide(&Dataset::new(values).unwrap(), 0.2, 2)
}

fn learned(table: &Dataset) -> Learned {
    Request::for_filling().learn(table).unwrap()
}

#[test]
fn everything_that_is_filled_moves_and_limits_come_after() {
    let table = gaps();
    let plain = learned(&table);
    let mut moved = plain.clone();
    moved.shift(&[("x2".to_owned(), 0.5), ("x4".to_owned(), -3.0)]).unwrap();
    let sds = &plain.training.column_sds;
    let by = [0.0, 0.5 * sds[1], 0.0, -3.0 * sds[3]];
    let fill = |l: &Learned| l.fill(Rows::Training).unwrap().fill(&table).unwrap();
    for (a, b) in fill(&moved).cells().iter().zip(fill(&plain).cells()) {
        let by = by[a.column];
        assert_eq!((a.mean, a.sd), (b.mean + by, b.sd));
        let ((low, high), (from, to)) = (a.interval(0.9).unwrap(), b.interval(0.9).unwrap());
        if a.column < 3 {
            assert!((low - from - by).abs() < 1e-12 && (high - to - by).abs() < 1e-12);
        } else {
            // Never negative, always whole.
            assert!(
                low >= 0.0 && high >= low && low.fract() == 0.0 && high.fract() == 0.0 && a.value() >= 0.0
            );
        }
    }
    let draw = |l: &Learned| l.gap_draws(Rows::Training, &table).unwrap().draw(2, 3).unwrap();
    let (a, b) = (draw(&moved), draw(&plain));
    for i in 0..120 {
        for j in 0..4 {
            let gap = table.row(i)[j].is_nan();
            let by = if gap { by[j] } else { 0.0 };
            if j < 3 {
                assert!((a[(i, j)] - b[(i, j)] - by).abs() < 1e-12);
            } else {
                assert!(a[(i, j)] >= 0.0 && a[(i, j)].fract() == 0.0);
            }
        }
    }
    // A file keeps it; none replaces it.
    let mut bytes = Vec::new();
    model_file::write(&moved, &mut bytes).unwrap();
    let mut read = model_file::read(bytes.as_slice()).unwrap();
    assert_eq!(read, moved);
    assert!(read.to_json().contains("\"shift\""));
    read.shift(&[]).unwrap();
    assert_eq!(fill(&read), fill(&plain));
    // A model that was not fitted for filling moves, too.
    let mut other = Request::new(Family::Ppca).learn(&table).unwrap();
    let before = fill(&other);
    other.shift(&[("x1".to_owned(), -1.0)]).unwrap();
    for (a, b) in fill(&other).cells().iter().zip(before.cells()) {
        assert_eq!(a.mean, b.mean - if a.column == 0 { sds[0] } else { 0.0 });
    }
}

#[test]
fn wrong_shifts_are_refused_by_name() {
    let mut model = learned(&gaps());
    let refused = model.shift(&[("height".to_owned(), 1.0)]).unwrap_err();
    assert!(matches!(refused, Error::ColumnNotFilled { .. }));
    assert_eq!(
        refused.to_string(),
        "`height` is no column that the model fills; give one of `x1`, `x2`, `x3`, `x4`"
    );
    for by in [f64::NAN, f64::INFINITY] {
        assert!(matches!(model.shift(&[("x1".to_owned(), by)]), Err(Error::OutOfRange { .. })));
    }
}

/// Without limits the mean moves by the share of gaps, exactly, and its standard error does not.
#[test]
fn tipping_points_move_by_the_share_of_missing_values() {
    let table = gaps();
    let model = learned(&table);
    let shifts = [-1.0, 0.0, 1.0];
    let found = model.tipping_points(Rows::Training, &table, &[1, 3], &shifts, 7).unwrap();
    assert_eq!(found[0].n_gaps, 120 - table.n_observed_by_column()[1]);
    let step = model.training.column_sds[1] * found[0].n_gaps as f64 / 120.0;
    let [low, middle, high] = found[0].points[..] else { panic!("three points") };
    assert!((middle.mean - low.mean - step).abs() < 1e-12 && (high.mean - middle.mean - step).abs() < 1e-12);
    // The same draws pooled by hand.
    let draws = model.gap_draws(Rows::Training, &table).unwrap();
    let means: Vec<f64> =
        (0..20).map(|k| draws.draw(k, 7).unwrap().column(1).iter().sum::<f64>() / 120.0).collect();
    let mean = means.iter().sum::<f64>() / 20.0;
    assert!((middle.mean - mean).abs() < 1e-12);
    let between = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / 19.0;
    assert!(middle.standard_error.powi(2) > 1.05 * between);
    assert!(middle.lower < middle.mean - 1.9 * middle.standard_error && middle.upper > middle.mean);
    // Limits hold back a column that cannot be negative.
    let [low, middle, _] = found[1].points[..] else { panic!("three points") };
    let step = model.training.column_sds[3] * found[1].n_gaps as f64 / 120.0;
    assert!(middle.mean - low.mean < 0.9 * step);
}
