//! A matrix as a few products of sparse vectors [M 2.9.2].

use crate::linalg::{Svd, dot, thin_svd};
use crate::{Error, Matrix};

/// The penalized matrix decomposition of Witten, Tibshirani & Hastie (2009), component by component:
///
/// ```text
/// max  uᵀ X v        ‖u‖₂ ≤ 1,  ‖v‖₂ ≤ 1,  ‖u‖₁ ≤ c₁,  ‖v‖₁ ≤ c₂        then  X ← X − (uᵀXv) u vᵀ
/// ```
///
/// With a bound on `v` alone it is sparse PCA of a centered table; of `XᵀY` with both bounds it is sparse canonical correlation.
/// Bounds that are not active give the singular value decomposition.
///
/// ```
/// use covary::{infer::PenalizedDecomposition, Matrix};
/// let x = Matrix::from_rows(&[[3.0, 3.0, 0.1], [-3.0, -2.9, 0.0], [1.0, 1.1, -0.1]]);
/// let method = PenalizedDecomposition { n_components: 1, right_bound: Some(1.4), ..PenalizedDecomposition::default() };
/// assert_eq!(method.fit(&x)?[0].right[2], 0.0);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PenalizedDecomposition {
    /// Components.
    pub n_components: usize,
    /// c₁, from 1 to the root of the number of rows; `None` is no bound.
    pub left_bound: Option<f64>,
    /// c₂, from 1 to the root of the number of columns; `None` is no bound.
    pub right_bound: Option<f64>,
    /// Most iterations for each component.
    pub max_iterations: usize,
    /// Stop when no entry of v moves by more than this in an iteration.
    pub tolerance: f64,
}

impl Default for PenalizedDecomposition {
    fn default() -> Self {
        Self {
            n_components: 1,
            left_bound: None,
            right_bound: None,
            max_iterations: 10_000,
            tolerance: 1e-13,
        }
    }
}

/// One component: `value · left rightᵀ`.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseProduct {
    /// u.
    pub left: Vec<f64>,
    /// `uᵀ X v`.
    pub value: f64,
    /// v.
    pub right: Vec<f64>,
    /// Iterations that it took.
    pub n_iterations: usize,
}

impl PenalizedDecomposition {
    /// Decomposes.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a bound outside its range, an entry that is not finite, or more components than rows or columns.
    pub fn fit(&self, x: &Matrix) -> Result<Vec<SparseProduct>, Error> {
        self.check(x)?;
        let mut left_over = x.clone();
        let mut found = Vec::with_capacity(self.n_components);
        for _ in 0..self.n_components {
            let product = self.one(&left_over)?;
            for (i, u) in product.left.iter().enumerate() {
                let row = left_over.row_mut(i).iter_mut().zip(&product.right);
                row.for_each(|(x, v)| *x -= product.value * u * v);
            }
            found.push(product);
        }
        Ok(found)
    }

    /// The leading component, from the leading right singular vector.
    fn one(&self, x: &Matrix) -> Result<SparseProduct, Error> {
        let Svd { v, .. } = thin_svd(x)?;
        let across = x.transpose();
        Ok(self.climb(&|a| times(x, a), &|a| times(&across, a), v.column(0)))
    }

    /// The leading component of X, known by its products `X v` and `Xᵀ u`, from a right vector.
    pub(super) fn climb(
        &self,
        forward: &dyn Fn(&[f64]) -> Vec<f64>,
        backward: &dyn Fn(&[f64]) -> Vec<f64>,
        start: Vec<f64>,
    ) -> SparseProduct {
        let (mut right, mut left, mut n_iterations) = (start, Vec::new(), 0);
        while n_iterations < self.max_iterations {
            n_iterations += 1;
            left = bounded(&forward(&right), self.left_bound);
            let next = bounded(&backward(&left), self.right_bound);
            let moved = next.iter().zip(&right).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            right = next;
            if moved <= self.tolerance {
                break;
            }
        }
        let value = dot(&left, &forward(&right));
        SparseProduct { left, value, right, n_iterations }
    }

    fn check(&self, x: &Matrix) -> Result<(), Error> {
        let out = |name, value, bound| Err(Error::OutOfRange { name, value, bound });
        if let Some(&value) = x.as_slice().iter().find(|v| !v.is_finite()) {
            return out("an entry of the matrix", value, "finite");
        }
        if self.n_components > x.n_rows().min(x.n_columns()) {
            let value = self.n_components as f64;
            return out("n_components", value, "at most the number of rows and of columns");
        }
        for (name, bound, size) in
            [("left_bound", self.left_bound, x.n_rows()), ("right_bound", self.right_bound, x.n_columns())]
        {
            if let Some(value) = bound.filter(|c| !(1.0..=(size as f64).sqrt()).contains(c)) {
                return out(name, value, "from 1 to the root of the number of entries");
            }
        }
        Ok(())
    }
}

/// `M a`
pub(super) fn times(m: &Matrix, a: &[f64]) -> Vec<f64> {
    m.rows().map(|row| dot(row, a)).collect()
}

/// `a` soft-thresholded and scaled to unit length, by the smallest threshold at which its absolute values sum to at most `bound`.
fn bounded(a: &[f64], bound: Option<f64>) -> Vec<f64> {
    let thresholded = |t: f64| -> Vec<f64> {
        let shrunken: Vec<f64> = a.iter().map(|v| v.signum() * (v.abs() - t).max(0.0)).collect();
        let length = dot(&shrunken, &shrunken).sqrt();
        shrunken.iter().map(|v| if length > 0.0 { v / length } else { 0.0 }).collect()
    };
    let size = |v: &[f64]| v.iter().map(|v| v.abs()).sum::<f64>();
    let whole = thresholded(0.0);
    let Some(bound) = bound.filter(|c| size(&whole) > *c) else { return whole };
    let (mut low, mut high) = (0.0, a.iter().fold(0.0, |m: f64, v| m.max(v.abs())));
    // Halved until no number lies between.
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if size(&thresholded(middle)) > bound {
            low = middle;
        } else {
            high = middle;
        }
    }
    let found = thresholded(high);
    // At a tie of the largest entries all of them vanish at once.
    if found.iter().all(|v| *v == 0.0) { thresholded(low) } else { found }
}
