//! Simulated curves with known eigenfunctions.

use super::{Basis, FunctionalPca};
use crate::data::Points;
use crate::linalg::Cholesky;
use crate::{Dataset, Matrix};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::{PI, SQRT_2};

/// A long table of curves at random times from 0 to 1, and the model they are from: mean `2t + sin 2πt`, eigenfunctions
/// `√2 sin πt` and `√2 cos πt`, which are splines to 1e-6, with eigenvalues 2 and 0.5, and noise of variance 0.1.
///
/// # Panics
/// Without a curve or a point.
pub fn simulated(n_curves: usize, n_points: usize, seed: u64) -> (Dataset, FunctionalPca) {
    assert!(n_curves > 0 && n_points > 0, "there is a curve and a point");
    let basis = Basis::new(0.0, 1.0, 24).expect("an interval");
    let grid = basis.grid(400);
    let rows: Vec<Vec<f64>> = grid.iter().map(|&t| basis.row(t).expect("within")).collect();
    let design = Matrix::from_rows(&rows);
    let normal = Cholesky::new(&design.t_dot(&design)).expect("splines are independent on a grid");
    let spline = |f: &dyn Fn(f64) -> f64| {
        let values = Matrix::from_fn(grid.len(), 1, |i, _| f(grid[i]));
        let mut c = design.t_dot(&values).into_vec();
        normal.solve(&mut c);
        c
    };
    let mean = spline(&|t| 2.0 * t + (2.0 * PI * t).sin());
    let components = [
        spline(&|t| 2.0_f64.sqrt() * SQRT_2 * (PI * t).sin()),
        spline(&|t| 0.5_f64.sqrt() * SQRT_2 * (PI * t).cos()),
    ];
    let loadings = Matrix::from_fn(24, 2, |b, k| components[k][b]);
    let truth = FunctionalPca::new(basis, mean, loadings, 0.1).expect("finite coefficients");
    let truth = truth.oriented().expect("a decomposition of 2 × 2");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut times, mut values) = (Vec::new(), Vec::new());
    for _ in 0..n_curves {
        let own: Vec<f64> = (0..n_points).map(|_| rng.random::<f64>()).collect();
        values.extend(truth.sample(&own, 1, &mut rng).expect("times within").into_vec());
        times.extend(own);
    }
    let curves = (0..times.len()).map(|i| i / n_points).collect();
    let names = (1..=n_curves).map(|i| format!("curve_{i}")).collect();
    let points = Points::new(times, curves, names).expect("times that differ");
    let n = values.len();
    let values = Matrix::from_vec(n, 1, values).expect("a column");
    let table = Dataset::with_names(values, vec!["y".to_owned()]).expect("finite values");
    (table.of_points(points).expect("a point per row"), truth)
}
