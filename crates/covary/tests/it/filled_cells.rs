//! A filled cell knows its distribution: intervals and probabilities are those of it, normal or not.

use covary::data::{Shape, simulate};
use covary::model::{Distribution, FilledCell};
use covary::select::{CheckedCell, SelfCheckOptions, self_check_by};
use covary::{Dataset, Density, Error};
use statrs::distribution::{ContinuousCDF, StudentsT};

fn student(degrees_of_freedom: f64, mean: f64, sd: f64) -> FilledCell {
    let distribution = Distribution::Student { degrees_of_freedom };
    FilledCell { distribution, ..FilledCell::normal(3, 1, mean, sd) }
}

/// Points of t below which 0.9, 0.95, 0.975 and 0.995 of it lie, from printed tables.
const TABLE: [(f64, [f64; 4]); 5] = [
    (3.0, [1.637_744, 2.353_363, 3.182_446, 5.840_909]),
    (5.0, [1.475_884, 2.015_048, 2.570_582, 4.032_143]),
    (10.0, [1.372_184, 1.812_461, 2.228_139, 3.169_273]),
    (30.0, [1.310_415, 1.697_261, 2.042_272, 2.749_996]),
    (120.0, [1.288_646, 1.657_651, 1.979_930, 2.617_421]),
];
const LEVELS: [f64; 4] = [0.8, 0.9, 0.95, 0.99];

#[test]
fn intervals_of_student_cells_are_those_of_the_tables() {
    for (nu, points) in TABLE {
        let cell = student(nu, -2.0, 0.5);
        // t has the variance ν / (ν − 2), the cell that of its sd.
        let unit = 0.5 * ((nu - 2.0) / nu).sqrt();
        for (level, t) in LEVELS.into_iter().zip(points) {
            let (low, high) = cell.interval(level).unwrap();
            assert!((high - (-2.0 + unit * t)).abs() < 1e-6, "ν {nu}, level {level}: {high}");
            assert!((low - (-2.0 - unit * t)).abs() < 1e-6, "ν {nu}, level {level}: {low}");
            assert!((cell.reach(level).unwrap() - (high + 2.0) / 0.5).abs() < 1e-12);
            assert!((cell.cdf(-2.0 + unit * t) - (0.5 + 0.5 * level)).abs() < 1e-6);
            assert!((cell.cdf(-2.0 - unit * t) - (0.5 - 0.5 * level)).abs() < 1e-6);
        }
    }
}

#[test]
fn probabilities_of_student_cells_are_those_of_statrs() {
    for nu in [2.5, 3.0, 5.0, 17.0, 400.0] {
        let (mean, sd) = (7.0, 3.0);
        let want = StudentsT::new(mean, sd * f64::sqrt((nu - 2.0) / nu), nu).unwrap();
        let cell = student(nu, mean, sd);
        for z in [-30.0, -4.0, -1.0, -0.1, 0.0, 0.3, 2.0, 9.0] {
            let value = mean + sd * z;
            assert!((cell.cdf(value) - want.cdf(value)).abs() < 1e-12, "ν {nu}, z {z}");
            let checked = CheckedCell { cell: cell.clone(), truth: value };
            assert_eq!(checked.pit().to_bits(), cell.cdf(value).to_bits());
        }
        for level in LEVELS {
            let (low, high) = cell.interval(level).unwrap();
            assert!((high - want.inverse_cdf(0.5 + 0.5 * level)).abs() < 1e-8, "ν {nu}, level {level}");
            let pit = |truth: f64| CheckedCell { cell: cell.clone(), truth }.pit();
            assert!(
                (pit(high) - (0.5 + 0.5 * level)).abs() < 1e-9
                    && (pit(low) - (0.5 - 0.5 * level)).abs() < 1e-9
            );
        }
    }
}

#[test]
fn tails_are_heavier_than_normal_ones_and_end_there() {
    let normal = FilledCell::normal(3, 1, 0.0, 1.0);
    let at = |nu: f64| student(nu, 0.0, 1.0);
    // At the same standard deviation Student's is narrower in the middle and wider in the tails.
    assert!(at(5.0).reach(0.5).unwrap() < normal.reach(0.5).unwrap());
    assert!(at(5.0).reach(0.99).unwrap() > normal.reach(0.99).unwrap());
    assert!(
        CheckedCell { cell: at(5.0), truth: 4.0 }.pit()
            < CheckedCell { cell: normal.clone(), truth: 4.0 }.pit()
    );
    // No degrees of freedom are too many, and on both sides of the expansion it is the same function.
    for nu in [999.0, 1000.0, 1e4, 999_999.0, 1e6, 1e7, 1e12] {
        for level in LEVELS {
            let reach = at(nu).reach(level).unwrap();
            assert!((at(nu).cdf(reach) - (0.5 + 0.5 * level)).abs() < 1e-7, "ν {nu}, level {level}");
        }
    }
    for level in LEVELS {
        let (below, above) = (at(999.999_999).reach(level).unwrap(), at(1000.0).reach(level).unwrap());
        assert!((below - above).abs() < 1e-8, "{below} {above}");
        assert!((at(1e7).reach(level).unwrap() - normal.reach(level).unwrap()).abs() < 1e-5);
    }
    // Where the value is taken as known there is nothing to spread.
    let known = student(5.0, 2.0, 0.0);
    assert_eq!([1.0, 2.0, 3.0].map(|v| known.cdf(v)), [0.0, 0.5, 1.0]);
    assert_eq!(known.interval(0.9).unwrap(), (2.0, 2.0));
    for level in [0.0, 1.0, f64::NAN, -0.5] {
        assert!(matches!(at(5.0).interval(level), Err(Error::OutOfRange { name: "interval", .. })));
    }
}

/// What the intervals of a check cover is counted by the distribution of each cell.
#[test]
fn the_check_on_hidden_cells_goes_by_the_distribution_of_each() {
    let (data, model) = simulate::ppca(Shape { rows: 200, columns: 6, n_components: 2 }, 1);
    let options = SelfCheckOptions { levels: vec![0.5, 0.99], ..SelfCheckOptions::default() };
    let share = |distribution: Distribution| {
        let seen = std::sync::Mutex::new(Vec::new());
        let fill = |rows: &Dataset| {
            let cells = model.gap_cells(rows)?.into_iter();
            let cells: Vec<FilledCell> =
                cells.map(|cell| FilledCell { distribution: distribution.clone(), ..cell }).collect();
            seen.lock().unwrap().clone_from(&cells);
            Ok(cells)
        };
        let found = self_check_by(&data, 0, &options, |_, rows| fill(rows)).unwrap().0;
        assert_eq!(found.n_hidden, seen.lock().unwrap().len());
        found.coverage.iter().map(|at| at.share).collect::<Vec<_>>()
    };
    let (normal, heavy) =
        (share(Distribution::Normal), share(Distribution::Student { degrees_of_freedom: 2.2 }));
    assert!((normal[0] - 0.5).abs() < 0.15, "{normal:?}");
    // The 75 % point of t with 2.2 degrees of freedom is 0.80, times √(0.2 / 2.2) is 0.24 standard deviations.
    assert!(heavy[0] < normal[0] - 0.15, "{heavy:?} {normal:?}");
}
