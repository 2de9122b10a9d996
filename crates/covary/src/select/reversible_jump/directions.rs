//! Random directions and angles of the sampler, all by the angular central Gaussian distribution
//! (Kent, Ganeiber & Mardia 2013).

use crate::Matrix;
use crate::linalg::tridiagonal::Tridiagonal;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

/// Directions near those that `exp(w uᵀ M u)` favors on the unit sphere of m dimensions.
///
/// ```text
/// gⱼ = 2w (l_max − lⱼ)        Σⱼ 1/(b + gⱼ) = 1        z ~ N(0, Π⁻¹),  Π = I + (2w/b)(l_max I − M),  u = z/|z|
/// density over the uniform one:  |Π|^½ (uᵀ Π u)^(−m/2)        uᵀ Π u = 1 + (2w/b)(l_max − uᵀ M u)
/// ```
///
/// It depends on M only through its eigenvalues l and on u only through uᵀ M u: tridiagonal form
/// suffices, and the axes M is written in do not matter.
pub(super) struct Angular {
    tridiagonal: Tridiagonal,
    largest: f64,
    /// 2w/b.
    scale: f64,
    /// Π = L D Lᵀ in the coordinates of the tridiagonal form: D, and L below its diagonal.
    pivots: Vec<f64>,
    below: Vec<f64>,
    half_ln_det: f64,
}

impl Angular {
    pub(super) fn new(m: Matrix, w: f64) -> Self {
        let tridiagonal = Tridiagonal::new(m);
        let mut g = tridiagonal.eigenvalues();
        let largest = g.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for l in &mut g {
            *l = 2.0 * w * (largest - *l);
        }
        let scale = 2.0 * w / concentration(&g);

        let n = g.len();
        let (mut pivots, mut below) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for k in 0..n {
            let mut pivot = 1.0 + scale * (largest - tridiagonal.diagonal[k]);
            if k > 0 {
                let off = -scale * tridiagonal.off_diagonal[k - 1];
                below.push(off / pivots[k - 1]);
                pivot -= off * below[k - 1];
            }
            // Π ⪰ I has pivots of at least 1, whatever rounding says.
            pivots.push(f64::max(pivot, 1.0));
        }
        let half_ln_det = 0.5 * pivots.iter().map(|p| p.ln()).sum::<f64>();
        Self { tridiagonal, largest, scale, pivots, below, half_ln_det }
    }

    /// A direction u in the coordinates of M, and uᵀ M u.
    pub(super) fn draw(&self, rng: &mut impl Rng) -> (Vec<f64>, f64) {
        let n = self.pivots.len();
        let mut z = vec![0.0; n];
        for k in (0..n).rev() {
            let e: f64 = StandardNormal.sample(rng);
            z[k] = e / self.pivots[k].sqrt();
            if k + 1 < n {
                z[k] -= self.below[k] * z[k + 1];
            }
        }
        let length = z.iter().map(|z| z * z).sum::<f64>().sqrt();
        for z in &mut z {
            *z /= length;
        }
        let along = self.tridiagonal.quadratic_form(&z);
        self.tridiagonal.to_original(&mut z);
        (z, along)
    }

    /// Log-density, over the uniform one, of a direction with that uᵀ M u.
    pub(super) fn ln_density(&self, along: f64) -> f64 {
        let m = self.pivots.len() as f64;
        self.half_ln_det - 0.5 * m * (self.scale * (self.largest - along).max(0.0)).ln_1p()
    }
}

/// The b in [1, m] with `Σ 1/(b + gⱼ) = 1`, where the smallest g is 0. Newton on the reciprocal of the
/// sum, which is concave: from the left it never oversteps.
fn concentration(g: &[f64]) -> f64 {
    let mut b = 1.0;
    for _ in 0..100 {
        let (mut sum, mut squares) = (0.0, 0.0);
        for g in g {
            let term = 1.0 / (b + g);
            sum += term;
            squares += term * term;
        }
        let step = sum * (sum - 1.0) / squares;
        b += step;
        if step <= 1e-14 * b {
            break;
        }
    }
    b
}

/// Cosine and sine of an angle θ with density ∝ `exp(x cos 2θ + y sin 2θ)`, up to half turns: 2θ is
/// von Mises with κ = |(x, y)|.
///
/// Measured from its mean, θ has the density `exp(−2κ sin²θ)`: the circle's case of [`Angular`], here
/// as the envelope of a rejection, so that the draw is exact. No κ is too small or too large for it.
pub(super) fn rotation(x: f64, y: f64, rng: &mut impl Rng) -> (f64, f64) {
    let kappa = x.hypot(y);
    let g = 4.0 * kappa;
    // 1/b + 1/(b + g) = 1, by whichever form of the root does not cancel.
    let root = (g * g + 4.0).sqrt();
    let b = if g < 2.0 { 0.5 * (2.0 - g + root) } else { 2.0 * g / (g - 2.0 + root) };
    let ln_bound = 0.5 * (b - 2.0) + (2.0 / b).ln();
    let narrow = (1.0 + g / b).sqrt();
    let (cosine, sine) = loop {
        let (c, s): (f64, f64) = (StandardNormal.sample(rng), StandardNormal.sample(rng));
        let s = s / narrow;
        let length = c.hypot(s);
        let (c, s) = (c / length, s / length);
        let excess = g * s * s;
        let ln_accept = (excess / b).ln_1p() - 0.5 * excess - ln_bound;
        if rng.random::<f64>() < ln_accept.exp() {
            break (c, s);
        }
    };
    if kappa == 0.0 {
        return (cosine, sine);
    }
    // The mean is half the angle of (x, y), without cancellation near either end.
    let (mean_cosine, mean_sine) = if x >= 0.0 {
        let c = (0.5 * (1.0 + x / kappa)).sqrt();
        (c, 0.5 * (y / kappa) / c)
    } else {
        let s = (0.5 * (1.0 - x / kappa)).sqrt();
        (0.5 * (y / kappa) / s, s)
    };
    (mean_cosine * cosine - mean_sine * sine, mean_sine * cosine + mean_cosine * sine)
}
