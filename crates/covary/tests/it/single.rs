//! Tables of single precision: read as they are, with the answers of double precision.

use covary::data::{Shape, simulate};
use covary::infer::{Incremental, Kept, PrincipalAxes, Solver, Spectral};
use covary::model::Principal;
use covary::{Dataset, Density, Error, Estimator, Matrix, Spec};
use std::sync::Arc;

/// The table rounded to single precision, as it is and widened.
fn both(values: &Matrix) -> (Dataset, Dataset) {
    let cells: Vec<f32> = values.as_slice().iter().map(|v| *v as f32).collect();
    let wide: Vec<f64> = cells.iter().map(|v| f64::from(*v)).collect();
    let (n, d) = (values.n_rows(), values.n_columns());
    let single = Dataset::from_single((n, d), Arc::new(cells), None).unwrap();
    (single, Dataset::new(Matrix::from_vec(n, d, wide).unwrap()).unwrap())
}

/// A table with `q` components far above the noise, its columns far from 0.
fn table(rows: usize, columns: usize, q: usize) -> Matrix {
    simulate::ppca(Shape { rows, columns, n_components: q }, 7).0.into_values()
}

/// Largest angle between the spans of two sets of orthonormal rows, in degrees, by the sine: `‖A − A BᵀB‖`.
fn degrees(a: &Matrix, b: &Matrix) -> f64 {
    let beside = a.dot_t(b).dot(b);
    let apart: f64 = a.as_slice().iter().zip(beside.as_slice()).map(|(a, b)| (a - b).powi(2)).sum();
    apart.sqrt().min(1.0).asin().to_degrees()
}

fn fitted(data: &Dataset, q: usize, solver: Solver) -> Principal {
    PrincipalAxes { kept: Kept::Number(q), solver, ..PrincipalAxes::default() }.fit(data).unwrap()
}

fn assert_same(values: &Matrix, q: usize, solver: Solver) {
    let (single, double) = both(values);
    let (ours, exact) = (fitted(&single, q, solver), fitted(&double, q, Solver::Auto));
    let angle = degrees(&ours.components, &exact.components);
    assert!(angle < 1e-4, "{} × {}, {solver:?}: {angle} degrees", values.n_rows(), values.n_columns());
    for (a, b) in ours.explained_variance.iter().zip(&exact.explained_variance) {
        assert!((a - b).abs() < 1e-6 * b, "{solver:?}: variance {a}, exactly {b}");
    }
    for (a, b) in ours.mean.iter().zip(&exact.mean) {
        assert!((a - b).abs() < 1e-9 * (1.0 + b.abs()), "{solver:?}: mean {a}, exactly {b}");
    }
    let (a, b) = (ours.noise_variance, exact.noise_variance);
    assert!((a - b).abs() < 1e-5 * b, "{solver:?}: noise {a}, exactly {b}");
}

#[test]
fn the_subspace_is_that_of_double_precision_at_every_shape() {
    for (rows, columns, q) in [(20_000, 40, 5), (50_000, 8, 2), (1500, 300, 6), (300, 900, 6), (60, 2000, 4)]
    {
        assert_same(&table(rows, columns, q), q, Solver::Auto);
    }
    for solver in [Solver::Covariance, Solver::Gram, Solver::Krylov, Solver::Svd] {
        assert_same(&table(700, 300, 5), 5, solver);
        // Products of rows of the table as it is, its last columns centered, beside singular values of the centered one.
        assert_same(&table(100, 1500, 8), 8, solver);
    }
}

#[test]
fn a_large_mean_costs_no_digit() {
    let mut values = table(3000, 12, 3);
    values.as_mut_slice().iter_mut().for_each(|v| *v += 1e4);
    assert_same(&values, 3, Solver::Auto);
    let mut wide = table(100, 400, 3);
    wide.as_mut_slice().iter_mut().for_each(|v| *v += 1e4);
    assert_same(&wide, 3, Solver::Auto);
    assert_same(&wide, 3, Solver::Krylov);
}

/// Columns of very different scales, and eigenvalues that nearly tie: single precision would decide them.
#[test]
fn what_rounding_would_decide_is_left_to_double_precision() {
    let mut scaled = table(4000, 10, 3);
    scaled.scale_columns(&[1e3, 1.0, 1e-3, 1.0, 1.0, 30.0, 1.0, 1e-2, 1.0, 1.0]);
    for q in [2, 5, 9] {
        assert_same(&scaled, q, Solver::Auto);
    }
    let mut close = table(2000, 300, 1);
    close.scale_columns(&(0..300).map(|j| 1.0 + 0.002 * f64::from(j)).collect::<Vec<_>>());
    for solver in [Solver::Auto, Solver::Krylov, Solver::Covariance] {
        assert_same(&close, 4, solver);
    }
}

#[test]
fn the_bits_do_not_depend_on_the_threads() {
    for (rows, columns) in [(9000, 40), (600, 300), (80, 700)] {
        let (single, _) = both(&table(rows, columns, 4));
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let axes = fitted(&single, 4, Solver::Auto);
                let scores = axes.transform_single(&single, false).unwrap();
                (axes, scores)
            })
        };
        assert_eq!(on(1), on(2), "{rows} × {columns}");
    }
}

#[test]
fn the_table_is_looked_at_where_it_is() {
    let values = table(500, 20, 2);
    let cells: Arc<Vec<f32>> = Arc::new(values.as_slice().iter().map(|v| *v as f32).collect());
    let data = Dataset::from_single((500, 20), cells.clone(), None).unwrap();
    assert_eq!(Arc::strong_count(&cells), 2);
    fitted(&data, 2, Solver::Auto);
    assert_eq!(data.values().row(3)[4], f64::from(cells[3 * 20 + 4]));
    drop(data);
    assert_eq!(Arc::strong_count(&cells), 1);
}

#[test]
fn scores_are_those_of_double_precision() {
    for shift in [0.0, 1e4] {
        let mut values = table(700, 30, 3);
        values.as_mut_slice().iter_mut().for_each(|v| *v += shift);
        let (single, double) = both(&values);
        let axes = fitted(&double, 3, Solver::Auto);
        for whiten in [false, true] {
            let exact = axes.transform(&double, whiten).unwrap();
            let ours = axes.transform_single(&single, whiten).unwrap();
            let largest = exact.as_slice().iter().fold(0.0_f64, |m, v| m.max(v.abs()));
            for (a, b) in ours.iter().zip(exact.as_slice()) {
                assert!((f64::from(*a) - b).abs() < 1e-6 * largest, "{a}, exactly {b}");
            }
            assert_eq!(axes.transform(&single, whiten).unwrap(), exact);
        }
    }
}

/// A gap leads to the methods of double precision, on the same numbers.
#[test]
fn gaps_are_those_of_the_widened_table() {
    let mut values = table(200, 6, 2);
    (values[(3, 1)], values[(9, 5)], values[(10, 5)]) = (f64::NAN, f64::NAN, f64::NAN);
    let (single, double) = both(&values);
    assert_eq!((single.n_gaps(), single.n_patterns()), (3, double.n_patterns()));
    assert_eq!(single.observed_means(), double.observed_means());
    let axes = PrincipalAxes { kept: Kept::Number(2), ..PrincipalAxes::default() };
    assert_eq!(axes.fit(&single).unwrap(), axes.fit(&double).unwrap());
    let found = axes.fit(&single).unwrap();
    let narrow: Vec<f32> =
        found.transform(&double, true).unwrap().as_slice().iter().map(|v| *v as f32).collect();
    assert_eq!(found.transform_single(&single, true).unwrap(), narrow);
}

#[test]
fn what_is_no_table_is_refused_by_name() {
    let cells = vec![1.0_f32, 2.0, f32::NEG_INFINITY, 4.0];
    let names = Some(vec!["a".to_owned(), "b".to_owned()]);
    let error = Dataset::from_single((2, 2), Arc::new(cells), names).unwrap_err();
    assert_eq!(error, Error::Infinite { row: 2, column: "a".to_owned(), value: f64::NEG_INFINITY });
    let short = Dataset::from_single((2, 3), Arc::new(vec![0.0_f32; 5]), None).unwrap_err();
    assert!(matches!(short, Error::WrongLength { expected: 6, got: 5, .. }));
    assert!(matches!(
        Dataset::from_single((0, 3), Arc::new(Vec::<f32>::new()), None),
        Err(Error::EmptyTable { rows: 0, columns: 3 })
    ));
}

#[test]
fn probabilistic_pca_and_streams_read_single_precision() {
    let (single, double) = both(&table(4000, 15, 3));
    let fit = |data: &Dataset, spec: &Spec| Spectral::default().fit(data, spec).unwrap().model;
    // At the maximum of the likelihood rounding shows by its square; the scales of columns are not at one.
    for (spec, off) in [(Spec::ppca(3), 1e-12), (Spec { standardize: true, ..Spec::ppca(3) }, 1e-7)] {
        let (ours, exact) = (fit(&single, &spec), fit(&double, &spec));
        let (a, b) = (ours.score(&double).unwrap(), exact.score(&double).unwrap());
        assert!((a - b).abs() < off * b.abs(), "{a}, exactly {b}");
    }
    let (mut ours, mut exact) = (Incremental::new(Some(3)), Incremental::new(Some(3)));
    for _ in 0..2 {
        ours.take(&single).unwrap();
        exact.take(&double).unwrap();
    }
    let (ours, exact) = (ours.principal().unwrap(), exact.principal().unwrap());
    assert!(degrees(&ours.components, &exact.components) < 1e-4);
}
