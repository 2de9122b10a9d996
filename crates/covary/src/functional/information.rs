//! How well curves determine the parameters: expected information [M 2.10.1].

use super::design::Design;
use super::em::{Known, Lambda, Parameters};
use crate::linalg::{Cholesky, dot};
use crate::parallel::{add, over_pieces};
use crate::{Error, Matrix};

/// Expected information about the coefficients of the components, of which the noise is estimated too, and of the mean; they
/// do not depend on each other. With `C = F Fᵀ + σ² I` the covariance of the points of a curve and `P = Φᵀ C⁻¹ Φ`:
///
/// ```text
/// mean                       Σ P
/// components (k, b), (l, c)  Σ (ΘᵀP)_kc (ΘᵀP)_lb + (ΘᵀPΘ)_kl P_bc
/// ```
pub(super) struct Information {
    pub(super) components: Matrix,
    pub(super) mean: Matrix,
}

/// `tr(H⁻¹ Ω)` of the mean and of all components, `H` being information and penalty.
pub(super) struct Freedom {
    pub(super) mean: f64,
    pub(super) components: f64,
}

struct Sums {
    components: Vec<f64>,
    mean: Vec<f64>,
    /// Of components with the noise, and of the noise.
    with_noise: Vec<f64>,
    noise: f64,
}

impl Information {
    pub(super) fn new(design: &Design, parameters: &Parameters, q: usize) -> Self {
        let (size, noise) = (design.basis_size, parameters.noise);
        let n = q * size;
        let work = |curves: std::ops::Range<usize>| {
            let mut out = Sums {
                components: vec![0.0; n * n],
                mean: vec![0.0; size * size],
                with_noise: vec![0.0; n],
                noise: 0.0,
            };
            for i in curves {
                let rows = design.curve(i);
                if rows.values.is_empty() {
                    continue;
                }
                let known = Known::new(rows, parameters, q, size);
                let s = known.covariance();
                // FᵀΦ, then H = FᵀC⁻¹Φ = S FᵀΦ / σ².
                let mut cross = Matrix::zeros(q, size);
                let mut p = Matrix::zeros(size, size);
                for (j, local) in rows.locals.iter().enumerate() {
                    for k in 0..q {
                        local.add_to(known.loadings[j * q + k], cross.row_mut(k));
                    }
                    for (b, value) in local.values.iter().enumerate() {
                        local.add_to(value / noise, p.row_mut(local.first + b));
                    }
                }
                let mut h = s.dot(&cross);
                h.as_mut_slice().iter_mut().for_each(|v| *v /= noise);
                // P = (ΦᵀΦ − ΦᵀF H) / σ².
                for b in 0..size {
                    for k in 0..q {
                        let f = cross[(k, b)] / noise;
                        if f != 0.0 {
                            crate::linalg::rows::add_multiple(p.row_mut(b), -f, h.row(k));
                        }
                    }
                }
                add(&mut out.mean, p.as_slice());
                for k in 0..q {
                    for l in 0..q {
                        // ΘᵀPΘ = I − S.
                        let g = f64::from(u8::from(k == l)) - s[(k, l)];
                        for b in 0..size {
                            let row = &mut out.components[(k * size + b) * n + l * size..][..size];
                            crate::linalg::rows::add_multiple(row, h[(l, b)], h.row(k));
                            crate::linalg::rows::add_multiple(row, g, p.row(b));
                        }
                    }
                }
                let both = s.dot(&h);
                out.with_noise.iter_mut().zip(both.as_slice()).for_each(|(o, v)| *o += v / noise);
                let trace = rows.values.len() as f64 - q as f64 + dot(s.as_slice(), s.as_slice());
                out.noise += 0.5 * trace / (noise * noise);
            }
            out
        };
        let mut sums = over_pieces(design.n_curves(), 1, work, |a, b| {
            add(&mut a.components, &b.components);
            add(&mut a.mean, &b.mean);
            add(&mut a.with_noise, &b.with_noise);
            a.noise += b.noise;
        });
        // The noise is estimated too: what it explains of the components is not known of them.
        for i in 0..n {
            let f = sums.with_noise[i] / sums.noise;
            let row = &mut sums.components[i * n..][..n];
            crate::linalg::rows::add_multiple(row, -f, &sums.with_noise);
        }
        let matrix = |size: usize, values: Vec<f64>| {
            let mut out = Matrix::from_vec(size, size, values).expect("a square");
            out.symmetrize();
            out
        };
        Self { components: matrix(n, sums.components), mean: matrix(size, sums.mean) }
    }

    /// Covariance of the components' coefficients and of the mean's: `(information + λ Ω)⁻¹`. Rotations of the components,
    /// which change nothing, are left out.
    fn blocks(
        &self,
        parameters: &Parameters,
        penalty: &Matrix,
        lambda: Lambda,
    ) -> Result<(Matrix, Matrix), Error> {
        let size = penalty.n_rows();
        let q = self.components.n_rows() / size;
        let penalized = |information: &Matrix, lambda: f64| {
            let mut out = information.clone();
            for k in 0..information.n_rows() / size {
                for b in 0..size {
                    let row = &mut out.row_mut(k * size + b)[k * size..][..size];
                    crate::linalg::rows::add_multiple(row, lambda, penalty.row(b));
                }
            }
            let ridge = 1e-12 * out.trace() / out.n_rows() as f64;
            (0..out.n_rows()).for_each(|i| out[(i, i)] += ridge);
            out
        };
        let mean = positive(&penalized(&self.mean, lambda.mean))?;
        let mut components = penalized(&self.components, lambda.components);
        // Onto what is left beside rotations, and a fixed precision along them.
        let turns = rotations(parameters, q, size);
        let fixed = components.trace() / components.n_rows() as f64;
        for turn in &turns {
            project(&mut components, turn);
        }
        for turn in &turns {
            add_square(&mut components, fixed, turn);
        }
        let mut components = positive(&components)?;
        for turn in &turns {
            add_square(&mut components, -1.0 / fixed, turn);
        }
        Ok((components, mean))
    }

    pub(super) fn freedom(
        &self,
        parameters: &Parameters,
        penalty: &Matrix,
        lambda: Lambda,
    ) -> Result<Freedom, Error> {
        let (components, mean) = self.blocks(parameters, penalty, lambda)?;
        let size = penalty.n_rows();
        let trace = |covariance: &Matrix, k: usize| {
            let row = |b: usize| dot(&covariance.row(k * size + b)[k * size..][..size], penalty.row(b));
            (0..size).map(row).sum::<f64>()
        };
        let q = components.n_rows() / size;
        Ok(Freedom { mean: trace(&mean, 0), components: (0..q).map(|k| trace(&components, k)).sum() })
    }

    /// Of all coefficients, those of the mean last.
    pub(super) fn covariance(
        &self,
        parameters: &Parameters,
        penalty: &Matrix,
        lambda: Lambda,
    ) -> Result<Matrix, Error> {
        let (components, mean) = self.blocks(parameters, penalty, lambda)?;
        let (n, size) = (components.n_rows(), mean.n_rows());
        Ok(Matrix::from_fn(n + size, n + size, |i, j| match (i < n, j < n) {
            (true, true) => components[(i, j)],
            (false, false) => mean[(i - n, j - n)],
            _ => 0.0,
        }))
    }
}

/// `A⁻¹` of a matrix that is positive definite except for rounding.
fn positive(a: &Matrix) -> Result<Matrix, Error> {
    if let Some(factor) = Cholesky::new(a) {
        Ok(factor.inverse())
    } else {
        let eigen = crate::linalg::eigen(a)?;
        let least = 1e-12 * eigen.values[0].abs().max(f64::MIN_POSITIVE);
        let mut scaled = eigen.vectors.clone();
        scaled.scale_columns(&eigen.values.iter().map(|v| 1.0 / v.max(least)).collect::<Vec<_>>());
        let mut out = scaled.dot_t(&eigen.vectors);
        out.symmetrize();
        Ok(out)
    }
}

/// Directions in which components rotate into each other, orthonormal.
fn rotations(parameters: &Parameters, q: usize, size: usize) -> Vec<Vec<f64>> {
    let mut turns: Vec<Vec<f64>> = Vec::new();
    for k in 0..q {
        for l in 0..k {
            let mut turn = vec![0.0; q * size];
            turn[k * size..][..size].copy_from_slice(parameters.function(l, size));
            turn[l * size..][..size].iter_mut().zip(parameters.function(k, size)).for_each(|(t, v)| *t = -v);
            let before = dot(&turn, &turn).sqrt();
            // Twice: once loses digits where directions are nearly the same.
            for other in turns.iter().chain(&turns.clone()) {
                let f = dot(&turn, other);
                crate::linalg::rows::add_multiple(&mut turn, -f, other);
            }
            let length = dot(&turn, &turn).sqrt();
            if length > 1e-8 * before {
                for v in &mut turn {
                    *v /= length;
                }
                turns.push(turn);
            }
        }
    }
    turns
}

/// `A ← (I − u uᵀ) A (I − u uᵀ)`
fn project(a: &mut Matrix, u: &[f64]) {
    let au: Vec<f64> = a.rows().map(|row| dot(row, u)).collect();
    let uau = dot(&au, u);
    for i in 0..u.len() {
        let (ui, aui) = (u[i], au[i]);
        for (j, v) in a.row_mut(i).iter_mut().enumerate() {
            *v += ui * u[j] * uau - aui * u[j] - ui * au[j];
        }
    }
}

/// `A ← A + s u uᵀ`
fn add_square(a: &mut Matrix, s: f64, u: &[f64]) {
    for (i, ui) in u.iter().enumerate() {
        crate::linalg::rows::add_multiple(a.row_mut(i), s * ui, u);
    }
}
