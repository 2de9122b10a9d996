//! The rotation of the latent space that increases the bound most [M 2.2.4].

use super::state::{Gamma, trace_product};
use crate::infer::lbfgs::{Lbfgs, Value};
use crate::linalg::{Eigen, eigen, inverse_and_ln_det};
use crate::{Error, Matrix};

/// `x → R x`, `w → R⁻ᵀ w`.
pub(super) struct Rotation {
    /// R.
    pub(super) by: Matrix,
    pub(super) inverse: Matrix,
    /// `ln |det R|`
    pub(super) ln_det: f64,
}

/// What the bound depends on as R varies, α adapted.
pub(super) struct Turned {
    /// `P = Σ ⟨x xᵀ⟩`
    pub(super) p: Matrix,
    /// `K_h = Σ ⟨w wᵀ⟩` over the columns of each view h.
    pub(super) k: Vec<Matrix>,
    /// `d_h`
    pub(super) sizes: Vec<usize>,
    /// N
    pub(super) n: f64,
    /// Prior of α.
    pub(super) relevance: Gamma,
}

impl Turned {
    /// The best R that was found; `None` where the identity is no worse.
    pub(super) fn best(&self) -> Result<Option<Rotation>, Error> {
        match &self.k[..] {
            [k] => self.canonical(k),
            _ => Ok(self.ascend()),
        }
    }

    /// (2.8) with `P → RPRᵀ` given by its trace and `K_h → R⁻ᵀK_hR⁻¹` by its diagonal.
    fn bound(&self, trace: f64, diagonals: &[Vec<f64>], ln_det: f64) -> f64 {
        let Gamma { shape, rate } = self.relevance;
        let d = self.sizes.iter().sum::<usize>() as f64;
        let of = |(diagonal, size): (&Vec<f64>, &usize)| {
            let relevance: f64 = diagonal.iter().map(|k| (rate + 0.5 * k).ln()).sum();
            (shape + 0.5 * *size as f64) * relevance
        };
        let relevance: f64 = diagonals.iter().zip(&self.sizes).map(of).sum();
        -0.5 * trace + (self.n - d) * ln_det - relevance
    }

    /// The gauge of one view, `Σ⟨xxᵀ⟩ = N I` and `Σ⟨wwᵀ⟩` diagonal and descending (2.9).
    fn canonical(&self, k: &Matrix) -> Result<Option<Rotation>, Error> {
        let (p, n, q) = (&self.p, self.n, k.n_rows());
        let Eigen { values, vectors } = eigen(p)?;
        if values.iter().any(|v| *v <= 0.0) {
            return Ok(None);
        }
        let power = |exponent: f64| {
            let mut scaled = vectors.clone();
            scaled.scale_columns(&values.iter().map(|v| (v / n).powf(exponent)).collect::<Vec<_>>());
            scaled.dot_t(&vectors)
        };
        let (root, inverse_root) = (power(0.5), power(-0.5));
        let mut turned = root.dot(k).dot(&root);
        turned.symmetrize();
        let Eigen { values: kappa, vectors: turn } = eigen(&turned)?;
        let ln_det: f64 = -0.5 * values.iter().map(|v| (v / n).ln()).sum::<f64>();
        if self.bound(n * q as f64, &[kappa], ln_det) < self.bound(p.trace(), &[diagonal(k)], 0.0) {
            return Ok(None);
        }
        // R⁻¹ = (P/N)^½ Q
        Ok(Some(Rotation { by: turn.t_dot(&inverse_root), inverse: root.dot(&turn), ln_det }))
    }

    /// Several views have no closed form: uphill from the identity.
    fn ascend(&self) -> Option<Rotation> {
        let q = self.p.n_rows();
        let per_row = |r: &[f64]| {
            let r = Matrix::from_vec(q, q, r.to_vec()).expect("q × q numbers");
            let (value, gradient) = self.value_and_gradient(&r)?;
            let gradient = gradient.into_vec().into_iter().map(|g| -g / self.n).collect();
            Some(Value { value: -value / self.n, gradient })
        };
        let found = Lbfgs::default().minimize(Matrix::identity(q).into_vec(), per_row)?;
        let by = Matrix::from_vec(q, q, found).expect("q × q numbers");
        let (inverse, ln_det) = inverse_and_ln_det(&by);
        Some(Rotation { by, inverse, ln_det })
    }

    /// The bound at R and its gradient (2.10), `G_h = R⁻ᵀK_hR⁻¹`; `None` where R is singular.
    ///
    /// ```text
    /// ∇ = −R P + (N − d) R⁻ᵀ + Σ_h G_h E_h R⁻ᵀ      E_h = diag (a + d_h/2) / (b + ½ [G_h]_ii)
    /// ```
    pub(super) fn value_and_gradient(&self, r: &Matrix) -> Option<(f64, Matrix)> {
        let (inverse, ln_det) = inverse_and_ln_det(r);
        let Gamma { shape, rate } = self.relevance;
        let (rp, q) = (r.dot(&self.p), r.n_rows());
        let d = self.sizes.iter().sum::<usize>() as f64;
        let mut pull = Matrix::diagonal(&vec![self.n - d; q]);
        let mut diagonals = Vec::with_capacity(self.k.len());
        for (k, &size) in self.k.iter().zip(&self.sizes) {
            let g = inverse.t_dot(&k.dot(&inverse));
            let own = diagonal(&g);
            let e: Vec<f64> =
                own.iter().map(|g| (shape + 0.5 * size as f64) / (rate + 0.5 * g.max(0.0))).collect();
            for i in 0..q {
                for j in 0..q {
                    pull[(i, j)] += g[(i, j)] * e[j];
                }
            }
            diagonals.push(own);
        }
        let value = self.bound(trace_product(&rp, r), &diagonals, ln_det);
        let mut gradient = pull.dot_t(&inverse);
        gradient.as_mut_slice().iter_mut().zip(rp.as_slice()).for_each(|(g, p)| *g -= p);
        (value.is_finite() && gradient.as_slice().iter().all(|g| g.is_finite())).then_some((value, gradient))
    }
}

fn diagonal(m: &Matrix) -> Vec<f64> {
    (0..m.n_rows()).map(|i| m[(i, i)]).collect()
}
