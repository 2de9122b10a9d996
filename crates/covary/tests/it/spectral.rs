//! Which eigensolver is taken, and what its answer is worth.

use crate::common::assert_close;
use covary::data::{Shape, simulate};
use covary::infer::{Em, Solver, Spectral, Spectrum};
use covary::model::FilledCell;
use covary::{Dataset, Estimator, Matrix, Spec};

fn spectrum(data: &Dataset, solver: Solver, k: usize) -> Spectrum {
    Spectral { solver, ..Spectral::default() }.spectrum(data, k, false).unwrap()
}

/// Sine of the largest angle between two subspaces: the part of one outside the other.
fn sine(a: &Matrix, b: &Matrix) -> f64 {
    let inside = a.dot(&a.t_dot(b));
    let outside = b.as_slice().iter().zip(inside.as_slice()).map(|(b, i)| (b - i).powi(2));
    outside.sum::<f64>().sqrt()
}

#[test]
fn the_solver_follows_the_shape_of_the_table() {
    let of = |rows, columns, n_components| {
        let (data, _) = simulate::ppca(Shape { rows, columns, n_components }, 1);
        spectrum(&data, Solver::Auto, n_components).solver
    };
    assert_eq!(of(300, 20, 2), Solver::Covariance);
    assert_eq!(of(20, 300, 2), Solver::Gram);
    assert_eq!(of(700, 1500, 3), Solver::Krylov);
}

#[test]
fn an_ill_conditioned_table_goes_to_the_svd() {
    // Noise 1e-10 of the signal: squaring keeps hardly a digit of it, the SVD keeps six.
    let (data, truth) = simulate::rotated(400, &[1e5, 3e4, 1.0, 1.0, 1.0, 1.0], 3);
    let found = spectrum(&data, Solver::Auto, 2);
    assert_eq!(found.solver, Solver::Svd);
    let noise = found.noise_variance(2);
    assert!((noise / truth.noise().variance(0) - 1.0).abs() < 0.1, "noise variance {noise}");
    let exact = spectrum(&data, Solver::Svd, 6);
    let tail: f64 = exact.eigenvalues[2..].iter().sum();
    assert_close("discarded variance", &[found.discarded_variance], &[tail], 1e-9);
}

#[test]
fn the_krylov_answer_keeps_its_bound() {
    for (rows, columns, q) in [(600, 400, 4), (400, 900, 8)] {
        let (data, _) = simulate::ppca(Shape { rows, columns, n_components: q }, 5);
        let (fast, exact) = (spectrum(&data, Solver::Krylov, q), spectrum(&data, Solver::Svd, q));
        assert_eq!(fast.solver, Solver::Krylov);
        assert!(fast.angle_bound <= 1e-9);
        // 1e-6 degrees, as promised; the bound itself is below what rounding lets us see.
        assert!(sine(&exact.axes, &fast.axes) < 1.7e-8);
        assert_close("eigenvalues", &fast.eigenvalues, &exact.eigenvalues, 1e-12);
        assert_close("rest", &[fast.discarded_variance], &[exact.discarded_variance], 1e-10);
    }
}

#[test]
fn components_that_are_not_separated_fall_back_to_the_exact_method() {
    let (data, _) = simulate::ppca(Shape { rows: 400, columns: 300, n_components: 0 }, 7);
    let found = spectrum(&data, Solver::Krylov, 5);
    assert_eq!(found.solver, Solver::Covariance);
    let exact = spectrum(&data, Solver::Svd, 5);
    assert_close("eigenvalues", &found.eigenvalues, &exact.eigenvalues, 1e-11);
}

#[test]
fn a_very_wide_table_with_gaps_is_fitted_without_a_square_matrix() {
    let shape = Shape { rows: 60, columns: 2500, n_components: 2 };
    for (whole, spec) in [
        (simulate::ppca(shape, 9).0, Spec::ppca(2)),
        (simulate::factor_analysis(shape, 9).0, Spec::factor_analysis(2)),
    ] {
        let gaps = simulate::hide(&whole, 0.2, 10);
        let fit = Em::default().fit(&gaps, &spec).unwrap();
        assert!(fit.report.converged());
        let filled = fit.predictive().impute(&gaps).unwrap();
        let error = |c: &FilledCell, guess: f64| (guess - whole.values()[(c.row, c.column)]).powi(2);
        let ours: f64 = filled.cells().iter().map(|c| error(c, c.mean)).sum();
        let mean: f64 = filled.cells().iter().map(|c| error(c, gaps.observed_means()[c.column])).sum();
        assert!(ours < 0.5 * mean, "squared error {ours} against {mean} of column means");
    }
}
