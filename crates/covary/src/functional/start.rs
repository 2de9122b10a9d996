//! Where EM starts: principal components of curves that are smoothed by each other.

use super::basis::Basis;
use super::design::Design;
use super::em::Parameters;
use crate::linalg::{Cholesky, eigen, rows::add_multiple};
use crate::{Error, Matrix};

/// Curves looked at, spread over the table: a start need not be exact.
const CURVES: usize = 300;
/// Steps of EM for a full covariance of coefficients.
const STEPS: usize = 8;

/// Coefficients of the curves are given a covariance of full rank, that of smooth curves at first, and a few steps of EM; its
/// leading eigenfunctions are the components.
pub(super) fn start(design: &Design, basis: &Basis, q: usize, floor: f64) -> Result<Parameters, Error> {
    let size = basis.size();
    let informative: Vec<usize> =
        (0..design.n_curves()).filter(|&i| !design.curve(i).values.is_empty()).collect();
    let every = informative.len().div_ceil(CURVES);
    let curves: Vec<usize> = informative.into_iter().step_by(every).collect();
    // Squares of second differences.
    let mut smooth = Matrix::zeros(size, size);
    for b in 1..size - 1 {
        for (i, f) in [(b - 1, 1.0), (b, -2.0), (b + 1, 1.0)] {
            for (j, g) in [(b - 1, 1.0), (b, -2.0), (b + 1, 1.0)] {
                smooth[(i, j)] += f * g;
            }
        }
    }
    let with_identity = |s: f64, identity: f64| {
        Matrix::from_fn(size, size, |i, j| s * smooth[(i, j)] + if i == j { identity } else { 0.0 })
    };
    let solved = |a: &Matrix| Cholesky::new(a).expect("a sum of squares and a multiple of I");

    let mut system = with_identity(1.0, 1e-6);
    let mut mean = vec![0.0; size];
    for &i in &curves {
        let rows = design.curve(i);
        for (local, y) in rows.locals.iter().zip(rows.values) {
            for (b, value) in local.values.iter().enumerate() {
                local.add_to(*value, system.row_mut(local.first + b));
            }
            local.add_to(*y, &mut mean);
        }
    }
    solved(&system).solve(&mut mean);

    let (mut squares, mut n) = (0.0, 0.0);
    for &i in &curves {
        let rows = design.curve(i);
        for (local, y) in rows.locals.iter().zip(rows.values) {
            squares += (y - local.dot(&mean)).powi(2);
            n += 1.0;
        }
    }
    let variance = (squares / n).max(floor);
    let mut noise = 0.25 * variance;
    let mut precision = with_identity(1.0 / variance, 1.0 / variance);
    let mut covariance = Matrix::zeros(size, size);
    for _ in 0..STEPS {
        covariance = Matrix::zeros(size, size);
        let mut left = 0.0;
        for &i in &curves {
            let rows = design.curve(i);
            let mut own = precision.clone();
            let mut c = vec![0.0; size];
            for (local, y) in rows.locals.iter().zip(rows.values) {
                for (b, value) in local.values.iter().enumerate() {
                    local.add_to(value / noise, own.row_mut(local.first + b));
                }
                local.add_to((y - local.dot(&mean)) / noise, &mut c);
            }
            let factor = solved(&own);
            factor.solve(&mut c);
            let s = factor.inverse();
            for (local, y) in rows.locals.iter().zip(rows.values) {
                left += (y - local.dot(&mean) - local.dot(&c)).powi(2);
                for (b, value) in local.values.iter().enumerate() {
                    left += value * local.dot(s.row(local.first + b));
                }
            }
            for (b, cb) in c.iter().enumerate() {
                let row = covariance.row_mut(b);
                crate::parallel::add(row, s.row(b));
                add_multiple(row, *cb, &c);
            }
        }
        let share = 1.0 / curves.len() as f64;
        covariance.as_mut_slice().iter_mut().for_each(|v| *v *= share);
        noise = (left / n).max(floor);
        // A little of everything keeps what few points tell of from collapsing.
        let mut kept = covariance.clone();
        let least = 1e-6 * (covariance.trace() / size as f64).max(f64::MIN_POSITIVE);
        (0..size).for_each(|b| kept[(b, b)] += least);
        precision = solved(&kept).inverse();
    }
    // Σ = L⁻ᵀ U l Uᵀ L⁻¹ with J = L Lᵀ: eigenfunctions are L⁻ᵀ u.
    let gram = Cholesky::new(&basis.gram()).expect("splines are independent");
    let inner = gram.lower().t_dot(&covariance.dot(gram.lower()));
    let found = eigen(&inner)?;
    let mut v = Vec::with_capacity((q + 1) * size);
    let least = 1e-6 * found.values[0].max(f64::MIN_POSITIVE);
    for k in 0..q {
        let mut u = found.vectors.column(k);
        gram.solve_upper(&mut u);
        let sd = found.values[k].max(least).sqrt();
        v.extend(u.iter().map(|u| u * sd));
    }
    v.extend(mean);
    Ok(Parameters { v, noise })
}
