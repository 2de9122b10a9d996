//! Do answers for whole tables, worked out in blocks, equal those of one factorization per row?

use covary::data::{Shape, simulate};
use covary::model::Given;
use covary::{Coordinates, Dataset, Density, LinearGaussian, Matrix, Noise};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// A row of the table, its observed columns and what they say, one row at a time.
fn check(what: &str, model: &LinearGaussian, table: &Dataset, tolerance: f64) {
    let close = |name: &str, i: usize, got: f64, want: f64, unit: f64| {
        assert!((got - want).abs() <= tolerance * unit, "{what}: {name} of row {i}: {got}, not {want}");
    };
    let filled = model.impute(table).unwrap();
    let (density, scores) =
        (model.log_density(table).unwrap(), model.transform(table, Coordinates::Posterior).unwrap());
    let drawn = model.draw_gaps(table, 3, 7).unwrap();
    let posterior = model.posterior(table).unwrap();
    let mut cells = filled.cells().iter();
    for i in 0..table.n_rows() {
        let row = table.row(i);
        let observed: Vec<usize> = (0..row.len()).filter(|&j| !row[j].is_nan()).collect();
        let given = model.condition(&observed);
        let want = given.log_density(row);
        close("log-density", i, density[i], want, 1.0 + want.abs());
        for (got, want) in scores.row(i).iter().zip(given.posterior_mean(row)) {
            close("a score", i, *got, want, 1.0 + want.abs());
        }
        let (got, want) = (posterior.covariance(i), given.posterior_covariance());
        for (got, want) in got.as_slice().iter().zip(want.as_slice()) {
            close("a covariance", i, *got, *want, 1.0);
        }
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        rng.set_stream((3 * table.n_rows() + i) as u64);
        let draw = given.draw(row, &mut rng);
        let completed = given.complete(row);
        for (k, &j) in given.gaps().iter().enumerate() {
            let cell = cells.next().unwrap();
            assert_eq!((cell.row, cell.column), (i, j));
            assert_eq!(filled.values()[(i, j)].to_bits(), cell.mean.to_bits());
            // Errors of a mean count against its own uncertainty and against its column's spread.
            let spread = model.variances()[j].sqrt();
            close("a mean", i, cell.mean, completed.mean[k], spread + cell.mean.abs());
            close("a variance", i, cell.sd.powi(2), completed.variance[k], completed.variance[k]);
            close("a draw", i, drawn[(i, j)], draw[j], spread + draw[j].abs());
        }
        for j in observed {
            assert_eq!(filled.values()[(i, j)].to_bits(), row[j].to_bits());
            assert_eq!(drawn[(i, j)].to_bits(), row[j].to_bits());
        }
    }
    assert!(cells.next().is_none());
}

/// Random gaps, but row 0 is complete, row 1 has one cell, and row 2 none.
fn with_gaps(whole: &Dataset, share: f64) -> Dataset {
    let gaps = simulate::hide(whole, share, 5);
    let cell = |i: usize, j: usize| match i {
        0 => whole.row(0)[j],
        1 if j > 0 => f64::NAN,
        1 => whole.row(1)[0],
        2 => f64::NAN,
        _ => gaps.row(i)[j],
    };
    Dataset::new(Matrix::from_fn(whole.n_rows(), whole.n_columns(), cell)).unwrap()
}

#[test]
fn blocks_of_rows_say_what_each_row_says_alone() {
    for (rows, columns, n_components) in
        [(400, 12, 3), (300, 7, 1), (50, 5, 0), (20, 1, 0), (60, 1, 1), (40, 30, 17), (600, 3, 2)]
    {
        let shape = Shape { rows, columns, n_components };
        for share in [0.1, 0.5, 0.9] {
            for seed in 0..3 {
                let (isotropic, model) = simulate::ppca(shape, seed);
                check("isotropic", &model, &with_gaps(&isotropic, share), 1e-11);
                let (diagonal, model) = simulate::factor_analysis(shape, seed);
                check("diagonal", &model, &with_gaps(&diagonal, share), 1e-11);
            }
        }
    }
}

#[test]
fn small_noise_costs_no_more_digits_than_row_by_row() {
    let shape = Shape { rows: 200, columns: 10, n_components: 3 };
    for noise in [1e-3, 1e-6, 1e-9, 1e-12] {
        let (_, truth) = simulate::ppca(shape, 1);
        let psi = |j: usize| if j < 5 { noise } else { 1.0 };
        for psi in [Noise::Isotropic(noise), Noise::Diagonal((0..10).map(psi).collect())] {
            let model = LinearGaussian::new(truth.loadings().clone(), truth.mean().to_vec(), psi).unwrap();
            let whole = Dataset::new(model.sample(200, &mut ChaCha8Rng::seed_from_u64(2))).unwrap();
            // G holds 1 beside 10/noise: where a row says nothing about a direction, digits of the 1
            // are all there is, for one row as for many.
            check(&format!("noise {noise:e}"), &model, &with_gaps(&whole, 0.3), 1e-13 + 1e-14 / noise);
        }
    }
}

#[test]
fn extreme_models_give_numbers() {
    // Pivots of 1e140 in every direction: their product is beyond f64, its logarithm is not.
    let w = Matrix::from_fn(4, 3, |i, j| if i == j { 1.0 } else { 0.0 });
    let model = LinearGaussian::new(w, vec![0.0; 4], Noise::Isotropic(1e-280)).unwrap();
    let table = Dataset::new(Matrix::from_rows(&[[1.0, -1.0, 0.5, f64::NAN]])).unwrap();
    let density = model.log_density(&table).unwrap()[0];
    // ln |C| = 3 ln (1 + 1e-280) = 0, and y is in the plane: −½ (3 ln 2π + ‖y‖²).
    assert!((density + 0.5 * (3.0 * (2.0 * std::f64::consts::PI).ln() + 2.25)).abs() < 1e-9, "{density}");
}

#[test]
fn threads_leave_no_trace() {
    let (whole, model) = simulate::factor_analysis(Shape { rows: 3000, columns: 40, n_components: 5 }, 1);
    // Few patterns and many.
    let blocks =
        Matrix::from_fn(3000, 40, |i, j| if (i + j / 10) % 4 == 0 { f64::NAN } else { whole.row(i)[j] });
    for table in [with_gaps(&whole, 0.2), Dataset::new(blocks).unwrap()] {
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                (
                    model.impute(&table).unwrap(),
                    model.log_density(&table).unwrap(),
                    model.transform(&table, Coordinates::Posterior).unwrap(),
                    model.draw_gaps(&table, 0, 1).unwrap(),
                )
            })
        };
        assert_eq!(run(1), run(2));
        assert_eq!(run(1), run(3));
    }
}
