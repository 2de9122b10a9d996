//! A small symmetric matrix as an orthogonal transform of a tridiagonal one.
//!
//! What a sampler asks of a few thousand matrices of order 2 to 30 per second is their eigenvalues and
//! products with functions of them, not their eigenvectors.

use crate::Matrix;
use crate::linalg::dot;

/// `A = H T Hᵀ` with T tridiagonal and H a product of reflections `I − v vᵀ`, |v|² = 2.
#[derive(Debug, Clone)]
pub(crate) struct Tridiagonal {
    pub(crate) diagonal: Vec<f64>,
    /// One shorter than the diagonal.
    pub(crate) off_diagonal: Vec<f64>,
    /// Row k holds reflection k from column k + 1 on.
    reflections: Matrix,
}

impl Tridiagonal {
    /// Of a symmetric matrix given in full.
    pub(crate) fn new(mut a: Matrix) -> Self {
        let m = a.n_rows();
        let mut off_diagonal = Vec::with_capacity(m);
        let mut w = vec![0.0; m];
        for k in 0..m.saturating_sub(1) {
            let (above, below) = a.as_mut_slice().split_at_mut((k + 1) * m);
            // The reflection sends v = (x₁, x₂, …) to (∓|x|, 0, …); nothing to do if it is there.
            let v = &mut above[k * m + k + 1..];
            let tail: f64 = v[1..].iter().map(|x| x * x).sum();
            if tail == 0.0 {
                off_diagonal.push(v[0]);
                v[0] = 0.0;
                continue;
            }
            let norm = (v[0] * v[0] + tail).sqrt();
            let end = -norm.copysign(v[0]);
            off_diagonal.push(end);
            v[0] -= end;
            let unit = 1.0 / (norm * v[0].abs()).sqrt();
            for x in v.iter_mut() {
                *x *= unit;
            }

            // (I − vvᵀ) A (I − vvᵀ) = A − v wᵀ − w vᵀ      w = A v − ½ (vᵀ A v) v
            let w = &mut w[k + 1..];
            w.fill(0.0);
            for (row, &x) in below.chunks_exact(m).zip(&*v) {
                w.iter_mut().zip(&row[k + 1..]).for_each(|(w, a)| *w += a * x);
            }
            let half = 0.5 * dot(v, w);
            w.iter_mut().zip(&*v).for_each(|(w, v)| *w -= half * v);
            for (i, row) in below.chunks_exact_mut(m).enumerate() {
                let (vi, wi) = (v[i], w[i]);
                row[k + 1..].iter_mut().zip(&*v).zip(&*w).for_each(|((a, v), w)| *a -= vi * w + wi * v);
            }
        }
        Self { diagonal: (0..m).map(|i| a[(i, i)]).collect(), off_diagonal, reflections: a }
    }

    /// `z ← H z`: from the coordinates of T to those of A.
    pub(crate) fn to_original(&self, z: &mut [f64]) {
        for k in (0..self.off_diagonal.len()).rev() {
            let v = &self.reflections.row(k)[k + 1..];
            let along = dot(v, &z[k + 1..]);
            z[k + 1..].iter_mut().zip(v).for_each(|(z, v)| *z -= along * v);
        }
    }

    /// `zᵀ T z`
    pub(crate) fn quadratic_form(&self, z: &[f64]) -> f64 {
        let squares: f64 = self.diagonal.iter().zip(z).map(|(t, z)| t * z * z).sum();
        let products: f64 = self.off_diagonal.iter().zip(z.windows(2)).map(|(t, z)| t * z[0] * z[1]).sum();
        squares + 2.0 * products
    }

    /// Eigenvalues in no order, by implicit QL steps (Francis 1961; Dubrulle, Martin & Wilkinson 1968).
    pub(crate) fn eigenvalues(&self) -> Vec<f64> {
        let (mut d, mut e) = (self.diagonal.clone(), self.off_diagonal.clone());
        for low in 0..e.len() {
            // Two or three steps suffice; the bound only makes sure that this ends.
            for _ in 0..50 {
                let negligible = |i: usize| e[i].abs() <= f64::EPSILON * (d[i].abs() + d[i + 1].abs());
                let high = (low..e.len()).find(|&i| negligible(i)).unwrap_or(e.len());
                if high == low {
                    break;
                }
                ql_step(&mut d[low..=high], &mut e[low..high]);
            }
        }
        d
    }
}

/// One implicit QL step on an unreduced block, shifted by the eigenvalue of its first 2 × 2 corner
/// that is nearer to its first entry. Rotations chase the bulge from the end to the start.
fn ql_step(d: &mut [f64], e: &mut [f64]) {
    let last = e.len();
    let slope = (d[1] - d[0]) / (2.0 * e[0]);
    let shift = d[0] - e[0] / (slope + (1.0 + slope * slope).sqrt().copysign(slope));
    let mut g = d[last] - shift;
    let (mut sine, mut cosine, mut carried) = (1.0, 1.0, 0.0);
    for i in (0..last).rev() {
        let (f, b) = (sine * e[i], cosine * e[i]);
        let r = (f * f + g * g).sqrt();
        if i + 1 < last {
            e[i + 1] = r;
        }
        if r == 0.0 {
            // The bulge vanished: the block splits here.
            d[i + 1] -= carried;
            return;
        }
        (sine, cosine) = (f / r, g / r);
        g = d[i + 1] - carried;
        let t = (d[i] - g) * sine + 2.0 * cosine * b;
        carried = sine * t;
        d[i + 1] = g + carried;
        g = cosine * t - b;
    }
    d[0] -= carried;
    e[0] = g;
}

#[cfg(test)]
mod tests {
    use super::Tridiagonal;
    use crate::Matrix;
    use crate::linalg::{dot, eigenvalues, normal};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn check(a: &Matrix) {
        let t = Tridiagonal::new(a.clone());
        let mut got = t.eigenvalues();
        got.sort_by(|x, y| y.total_cmp(x));
        let want = eigenvalues(a).unwrap();
        for (g, w) in got.iter().zip(&want) {
            assert!((g - w).abs() <= 1e-13 * (want[0].abs() + want[want.len() - 1].abs()), "{g} {w}");
        }
        // zᵀ T z = (H z)ᵀ A (H z), and H keeps lengths.
        let z: Vec<f64> = (0..a.n_rows()).map(|i| 1.0 + (i as f64).sin()).collect();
        let mut x = z.clone();
        t.to_original(&mut x);
        let ax: Vec<f64> = a.rows().map(|row| dot(row, &x)).collect();
        assert!((dot(&x, &x) - dot(&z, &z)).abs() < 1e-12 * dot(&z, &z));
        assert!((dot(&x, &ax) - t.quadratic_form(&z)).abs() < 1e-12 * (1.0 + dot(&x, &ax).abs()));
    }

    #[test]
    fn the_spectrum_is_that_of_a_library() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for m in [1, 2, 3, 4, 7, 14, 25, 60] {
            let x = normal(m + 1, m, &mut rng);
            check(&x.t_dot(&x));
        }
    }

    #[test]
    fn ties_zeros_and_wide_ranges() {
        check(&Matrix::identity(6));
        check(&Matrix::zeros(5, 5));
        check(&Matrix::diagonal(&[1e12, 3.0, 3.0, 1e-9, 0.0]));
        // Rank one: all but one eigenvalue are zero.
        check(&Matrix::from_fn(8, 8, |i, j| ((i + 1) * (j + 1)) as f64));
        // Already tridiagonal.
        check(&Matrix::from_fn(9, 9, |i, j| match i.abs_diff(j) {
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        }));
    }
}
