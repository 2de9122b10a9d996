//! Classical principal components: complete tables, gaps, and what no table may do to them.

use crate::common::assert_close;
use covary::data::{Shape, Sparse, simulate};
use covary::infer::{Kept, PrincipalAxes, Solver};
use covary::model::Principal;
use covary::{Dataset, Error, Matrix};

fn fit(data: &Dataset, kept: Kept) -> Result<Principal, Error> {
    PrincipalAxes { kept, ..PrincipalAxes::default() }.fit(data)
}

fn shape(rows: usize, columns: usize, n_components: usize) -> Shape {
    Shape { rows, columns, n_components }
}

/// Finite everywhere, axes orthonormal, variances descending, their sum within the total.
#[track_caller]
fn check_sane(axes: &Principal) {
    let q = axes.components.n_rows();
    let gram = axes.components.dot_t(&axes.components);
    assert_close("U Uᵀ", gram.as_slice(), Matrix::identity(q).as_slice(), 1e-10);
    assert!(axes.explained_variance.windows(2).all(|v| v[0] >= v[1] - 1e-12));
    assert!(axes.explained_variance.iter().all(|v| v.is_finite() && *v >= 0.0));
    assert!(axes.noise_variance.is_finite() && axes.noise_variance >= 0.0);
    let share: f64 = axes.explained_variance_ratio().iter().sum();
    assert!((0.0..=1.0 + 1e-12).contains(&share), "{share}");
}

#[test]
fn an_offset_of_a_million_costs_no_digits() {
    let (data, _) = simulate::ppca(shape(300, 5, 2), 1);
    let moved = Matrix::from_fn(300, 5, |i, j| (data.values()[(i, j)] * 1024.0).round() / 1024.0);
    let far = Matrix::from_fn(300, 5, |i, j| moved[(i, j)] + 1_048_576.0);
    let (near, far) = (Dataset::new(moved).unwrap(), Dataset::new(far).unwrap());
    let (a, b) = (fit(&near, Kept::Number(2)).unwrap(), fit(&far, Kept::Number(2)).unwrap());
    assert_close("variance", &b.explained_variance, &a.explained_variance, 1e-12);
    let (a, b) = (a.transform(&near, true).unwrap(), b.transform(&far, true).unwrap());
    assert_close("scores", b.as_slice(), a.as_slice(), 1e-9);
}

#[test]
fn scores_have_the_same_bits_on_one_thread_and_two() {
    let (data, _) = simulate::ppca(shape(5000, 40, 3), 2);
    let axes = fit(&data, Kept::Number(3)).unwrap();
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| axes.transform(&data, true).unwrap())
    };
    assert!(on(1).as_slice().iter().zip(on(2).as_slice()).all(|(a, b)| a.to_bits() == b.to_bits()));
}

#[test]
fn every_solver_finds_the_same_axes() {
    for (rows, columns) in [(200, 12), (12, 40)] {
        let (data, _) = simulate::ppca(shape(rows, columns, 2), 3);
        for kept in [Kept::All, Kept::Number(0), Kept::Number(2), Kept::Share(0.8)] {
            let want = fit(&data, kept).unwrap();
            check_sane(&want);
            for solver in [Solver::Covariance, Solver::Gram, Solver::Svd, Solver::Krylov] {
                let got = PrincipalAxes { kept, solver, ..PrincipalAxes::default() }.fit(&data).unwrap();
                assert_close("variance", &got.explained_variance, &want.explained_variance, 1e-9);
                assert_close("noise", &[got.noise_variance], &[want.noise_variance], 1e-9);
                check_sane(&got);
            }
        }
    }
}

#[test]
fn noise_is_a_mean_over_the_directions_there_are() {
    let (data, _) = simulate::ppca(shape(10, 30, 2), 4);
    let axes = PrincipalAxes { kept: Kept::Number(2), ..PrincipalAxes::default() };
    let by_rows = axes.fit(&data).unwrap();
    let by_columns = PrincipalAxes { noise_over_columns: true, ..axes }.fit(&data).unwrap();
    let left = by_rows.total_variance - by_rows.explained_variance.iter().sum::<f64>();
    assert_close(
        "noise",
        &[by_rows.noise_variance, by_columns.noise_variance],
        &[left / 8.0, left / 28.0],
        1e-12,
    );
}

#[test]
fn the_answer_is_continuous_as_gaps_vanish() {
    for (rows, columns, kept) in [
        (120, 8, Kept::Number(2)),
        (120, 8, Kept::All),
        (120, 8, Kept::Share(0.9)),
        (120, 8, Kept::Evidence),
        (20, 30, Kept::Number(2)),
        (20, 30, Kept::All),
        (200, 70, Kept::All),
        (600, 40, Kept::Share(0.9)),
    ] {
        let (whole, _) = simulate::ppca(shape(rows, columns, 2), 5);
        let want = fit(&whole, kept).unwrap();
        let mut one = whole.values().clone();
        one[(0, 0)] = f64::NAN;
        one[(1, 2)] = f64::NAN;
        let got = fit(&Dataset::new(one).unwrap(), kept).unwrap();
        check_sane(&got);
        let (a, b) = (&got.explained_variance, &want.explained_variance);
        assert_eq!(a.len(), b.len(), "{rows} × {columns}, {kept:?}");
        let tolerance = 20.0 / rows as f64 / columns as f64;
        assert_close("variance", &a[..2], &b[..2], tolerance);
        assert_close("noise", &[got.noise_variance], &[want.noise_variance], tolerance);
    }
}

#[test]
fn odd_tables_give_finite_axes() {
    const NAN: f64 = f64::NAN;
    let (whole, _) = simulate::ppca(shape(40, 6, 2), 6);
    let with = |change: &dyn Fn(usize, usize, f64) -> f64| {
        Dataset::new(Matrix::from_fn(40, 6, |i, j| change(i, j, whole.values()[(i, j)]))).unwrap()
    };
    let (wide, _) = simulate::ppca(shape(6, 20, 2), 7);
    let tables = [
        with(&|i, _, v| if i == 3 { NAN } else { v }),
        with(&|i, j, v| if j == 2 && i != 5 { NAN } else { v }),
        with(&|i, j, v| {
            if j == 1 {
                4.0
            } else if (i + j) % 5 == 0 {
                NAN
            } else {
                v
            }
        }),
        with(&|i, j, v| if i == 3 || (i * j) % 3 == 1 { NAN } else { v }),
        with(&|_, j, _| j as f64),
        with(&|i, j, _| if i == j { NAN } else { j as f64 }),
        simulate::hide(&wide, 0.3, 8),
        Dataset::new(Matrix::from_rows(&[[1.0, NAN, 2.0], [NAN, 1.0, 3.0]])).unwrap(),
        Dataset::new(Matrix::from_rows(&[[1.0], [NAN], [3.0]])).unwrap(),
    ];
    for (t, table) in tables.iter().enumerate() {
        for kept in [Kept::All, Kept::Number(0), Kept::Number(1), Kept::Share(0.5), Kept::Evidence] {
            match fit(table, kept) {
                Ok(axes) => {
                    check_sane(&axes);
                    let scores = axes.transform(table, true).unwrap();
                    assert!(scores.as_slice().iter().all(|v| v.is_finite()), "table {t}, {kept:?}");
                }
                Err(Error::TooFewForEvidence { .. }) => assert_eq!(kept, Kept::Evidence),
                Err(Error::AllConstant { .. }) => assert_eq!(t, 5),
                Err(other) => panic!("table {t}, {kept:?}: {other}"),
            }
        }
    }
}

#[test]
fn requests_that_cannot_be_met_are_refused() {
    let (data, _) = simulate::ppca(shape(5, 8, 2), 9);
    let most = Error::TooManyComponents { asked: 6, rows: 5, columns: 8, max: 5 };
    assert_eq!(fit(&data, Kept::Number(6)).unwrap_err(), most);
    assert_eq!(fit(&data, Kept::Evidence).unwrap_err(), Error::TooFewForEvidence { rows: 5, columns: 8 });
    assert!(matches!(fit(&data, Kept::Share(1.0)).unwrap_err(), Error::OutOfRange { .. }));
    let empty = Dataset::new(Matrix::from_rows(&[[1.0, f64::NAN], [2.0, f64::NAN]])).unwrap();
    assert_eq!(fit(&empty, Kept::All).unwrap_err(), Error::EmptyColumn { column: "x2".to_owned() });
    let one = Dataset::new(Matrix::from_rows(&[[1.0, 2.0]])).unwrap();
    assert_eq!(fit(&one, Kept::All).unwrap_err(), Error::TooFewRows { rows: 1 });
}

#[test]
fn a_gap_beside_components_without_noise_is_filled_by_regression() {
    // Two directions explain all of it: t₃ = t₁ + t₂, and t₄ = t₁ − t₂.
    let row = |a: f64, b: f64| [a, b, a + b, a - b];
    let rows = [row(1.0, 2.0), row(3.0, -1.0), row(0.5, 0.0)];
    let axes = fit(&Dataset::new(Matrix::from_rows(&rows)).unwrap(), Kept::All).unwrap();
    let whole = Dataset::new(Matrix::from_rows(&[row(2.0, 1.5)])).unwrap();
    let mut gappy = whole.values().clone();
    gappy[(0, 2)] = f64::NAN;
    let (got, want) = (axes.transform(&Dataset::new(gappy).unwrap(), false), axes.transform(&whole, false));
    assert_close("scores", got.unwrap().as_slice(), want.unwrap().as_slice(), 1e-8);
}

/// A table with about one cell in six that is not 0.
fn sparse(rows: usize, columns: usize, seed: u64) -> Sparse {
    let (base, _) = simulate::ppca(shape(rows, columns, 3), seed);
    let (mut starts, mut places, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..rows {
        for j in (0..columns).filter(|j| (i * 7 + j * 13 + i * j) % 6 == 0) {
            places.push(j as u32);
            values.push(base.values()[(i, j)] + 1.0);
        }
        starts.push(places.len());
    }
    Sparse::new((rows, columns), starts, places, values).unwrap()
}

#[test]
fn a_sparse_table_has_the_axes_of_the_same_numbers_written_out() {
    for (rows, columns) in [(300, 20), (20, 60), (700, 300), (300, 500)] {
        let table = sparse(rows, columns, 10);
        let dense = Dataset::new(table.to_matrix()).unwrap();
        for kept in [Kept::All, Kept::Number(4), Kept::Share(0.7)] {
            let want = fit(&dense, kept).unwrap();
            for solver in [Solver::Auto, Solver::Covariance, Solver::Gram, Solver::Krylov] {
                let axes = PrincipalAxes { kept, solver, ..PrincipalAxes::default() };
                let got = axes.fit_sparse(&table).unwrap();
                assert_close("mean", &got.mean, &want.mean, 1e-12);
                assert_close("variance", &got.explained_variance, &want.explained_variance, 1e-9);
                assert_close("noise", &[got.noise_variance], &[want.noise_variance], 1e-9);
                if got.components.n_rows() == 4 {
                    let (a, b) = (got.components.as_slice(), want.components.as_slice());
                    assert_close("components", a, b, 1e-7);
                    let (a, b) = (got.transform_sparse(&table, true), got.transform(&dense, true));
                    assert_close("scores", a.unwrap().as_slice(), b.unwrap().as_slice(), 1e-9);
                }
            }
        }
    }
}

#[test]
fn sparse_tables_are_checked_once() {
    let of = |starts: &[usize], columns: &[u32], values: &[f64]| {
        Sparse::new((2, 3), starts.to_vec(), columns.to_vec(), values.to_vec()).map(|t| t.n_stored())
    };
    assert_eq!(of(&[0, 1, 2], &[0, 2], &[1.0, 2.0]), Ok(2));
    assert!(matches!(of(&[0, 2], &[0, 2], &[1.0, 2.0]), Err(Error::WrongLength { expected: 3, .. })));
    assert!(matches!(of(&[0, 1, 3], &[0, 2], &[1.0, 2.0]), Err(Error::WrongLength { .. })));
    assert_eq!(of(&[0, 3, 2], &[0, 2], &[1.0, 2.0]), Err(Error::SparseOrder { row: 1 }));
    assert_eq!(of(&[0, 0, 2], &[2, 0], &[1.0, 2.0]), Err(Error::SparseOrder { row: 2 }));
    assert_eq!(of(&[0, 0, 2], &[1, 3], &[1.0, 2.0]), Err(Error::SparseOrder { row: 2 }));
    assert_eq!(of(&[0, 1, 2], &[0, 2], &[1.0, f64::NAN]), Err(Error::SparseGap { row: 2, column: 3 }));
    assert!(matches!(of(&[0, 1, 2], &[0, 2], &[1.0, f64::INFINITY]), Err(Error::Infinite { row: 2, .. })));
}

/// Enough patterns of gaps for one step towards a free covariance; rows too few for any.
#[test]
fn a_whole_spectrum_with_gaps_keeps_the_variance() {
    for (rows, columns, short) in [(300, 60, 0.01), (40, 60, 0.03)] {
        let (whole, _) = simulate::ppca(shape(rows, columns, 3), 11);
        let (want, got) =
            (fit(&whole, Kept::All).unwrap(), fit(&simulate::hide(&whole, 0.1, 12), Kept::All).unwrap());
        check_sane(&got);
        assert_eq!(got.components.n_rows(), rows.min(columns));
        let share = got.total_variance / want.total_variance;
        assert!((share - 1.0).abs() < short, "{rows} × {columns}: {share}");
        for (a, b) in got.explained_variance.iter().zip(&want.explained_variance).take(3) {
            assert!((a / b - 1.0).abs() < 0.05, "{a}, {b}");
        }
    }
}
