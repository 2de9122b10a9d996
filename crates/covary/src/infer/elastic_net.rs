//! Sparse principal components as regressions with an elastic net [M 2.9.1].

use super::sparse_coding::lasso;
use super::{Estimator, FullCovariance};
use crate::linalg::{Cholesky, Svd, canonical_signs, eigen, thin_svd};
use crate::{CentralMoments, Dataset, Error, Matrix, Spec};

/// Sparse axes of a covariance or correlation matrix G (Zou, Hastie & Tibshirani 2006):
///
/// ```text
/// min  tr G − 2 tr AᵀGB + tr BᵀGB + λ ‖B‖² + Σₖ λ₁ₖ ‖bₖ‖₁        AᵀA = I
/// ```
///
/// in iterations from the leading eigenvectors: each column of B by coordinate descent, A from the singular vectors of GB. A table
/// enters by its [moments](Self::moments).
///
/// ```
/// use covary::{infer::ElasticNet, Matrix};
/// let r = Matrix::from_rows(&[[1.0, 0.8, 0.0], [0.8, 1.0, 0.1], [0.0, 0.1, 1.0]]);
/// let found = ElasticNet { penalties: vec![0.4], ..ElasticNet::default() }.fit(&r)?;
/// assert_eq!(found.axes[(2, 0)], 0.0);
/// assert!(found.adjusted_variance[0] < 1.82);   // what the first principal component explains
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ElasticNet {
    /// λ₁ of each axis, and thereby how many axes there are.
    pub penalties: Vec<f64>,
    /// λ, which makes the axes unique where there are fewer rows than columns.
    pub ridge: f64,
    /// Most iterations.
    pub max_iterations: usize,
    /// Stop when no entry of B moves by more than this in an iteration.
    pub tolerance: f64,
}

impl Default for ElasticNet {
    fn default() -> Self {
        Self { penalties: Vec::new(), ridge: 1e-6, max_iterations: 10_000, tolerance: 1e-12 }
    }
}

/// What [`ElasticNet`] finds.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseAxes {
    /// One per column, at unit length, the entry of largest absolute value positive; an axis without entries stays 0.
    pub axes: Matrix,
    /// `bᵀ G b` along each axis.
    pub variance: Vec<f64>,
    /// What each axis adds to those before it: they are correlated, and their variances over-count.
    pub adjusted_variance: Vec<f64>,
    /// The objective at the start and after each iteration.
    pub trace: Vec<f64>,
}

impl ElasticNet {
    /// Fits.
    ///
    /// # Errors
    /// [`Error::NotCovariance`] for a matrix that is none, [`Error::OutOfRange`] for a penalty that is negative or not finite, or
    /// more of them than columns.
    pub fn fit(&self, covariance: &Matrix) -> Result<SparseAxes, Error> {
        self.check(covariance)?;
        let (g, q) = (covariance, self.penalties.len());
        let mut ridged = g.clone();
        (0..g.n_rows()).for_each(|j| ridged[(j, j)] += self.ridge);
        let mut a = eigen(g)?.vectors.first_columns(q);
        let mut b = a.clone();
        let mut trace = vec![self.objective(g, &a, &b)];
        for _ in 0..self.max_iterations {
            let toward = g.dot(&a);
            let mut moved = 0.0_f64;
            for (k, penalty) in self.penalties.iter().enumerate() {
                // Without a ½ before the square the threshold is half the penalty.
                let next = lasso(&ridged, &toward.column(k), &b.column(k), 0.5 * penalty);
                for (j, value) in next.into_iter().enumerate() {
                    moved = moved.max((value - b[(j, k)]).abs());
                    b[(j, k)] = value;
                }
            }
            let Svd { u, v, .. } = thin_svd(&g.dot(&b))?;
            a = u.dot_t(&v);
            trace.push(self.objective(g, &a, &b));
            if moved <= self.tolerance {
                break;
            }
        }
        Ok(Self::reported(g, b, trace))
    }

    /// Mean and covariance of a table (divisor n), to fit to: with gaps, those of [`FullCovariance`].
    ///
    /// # Errors
    /// [`Error::EmptyColumn`] for a column without a value, and as [`CentralMoments::of`] or [`FullCovariance`].
    pub fn moments(data: &Dataset) -> Result<(Vec<f64>, Matrix), Error> {
        if let Some(j) = data.n_observed_by_column().iter().position(|&n| n == 0) {
            return Err(Error::EmptyColumn { column: data.column_names()[j].clone() });
        }
        if data.is_complete() {
            let moments = CentralMoments::of(data)?;
            return Ok((moments.mean().to_vec(), moments.covariance()));
        }
        let spec = Spec { standardize: true, ..Spec::ppca(data.n_columns() - 1) };
        let model = FullCovariance::default().fit(data, &spec)?.model;
        Ok((model.mean().to_vec(), model.covariance()))
    }

    fn reported(g: &Matrix, b: Matrix, trace: Vec<f64>) -> SparseAxes {
        let mut axes = b;
        let lengths = axes.t_dot(&axes);
        let unit = |k: usize| if lengths[(k, k)] > 0.0 { 1.0 / lengths[(k, k)].sqrt() } else { 0.0 };
        axes.scale_columns(&(0..axes.n_columns()).map(unit).collect::<Vec<_>>());
        canonical_signs(&mut axes);
        let scatter = axes.t_dot(&g.dot(&axes));
        let variance: Vec<f64> = (0..axes.n_columns()).map(|k| scatter[(k, k)]).collect();
        SparseAxes { adjusted_variance: adjusted(&scatter), axes, variance, trace }
    }

    fn objective(&self, g: &Matrix, a: &Matrix, b: &Matrix) -> f64 {
        let gb = g.dot(b);
        let lasso = |k: usize| self.penalties[k] * b.column(k).iter().map(|v| v.abs()).sum::<f64>();
        let squares: f64 = b.as_slice().iter().map(|v| v * v).sum();
        let penalties: f64 = (0..b.n_columns()).map(lasso).sum();
        g.trace() - 2.0 * a.t_dot(&gb).trace() + b.t_dot(&gb).trace() + self.ridge * squares + penalties
    }

    fn check(&self, covariance: &Matrix) -> Result<(), Error> {
        CentralMoments::from_covariance(covariance, 2)?;
        let out = |name, value, bound| Err(Error::OutOfRange { name, value, bound });
        let allowed = |v: f64| v.is_finite() && v >= 0.0;
        if let Some(&value) = self.penalties.iter().chain([&self.ridge]).find(|v| !allowed(**v)) {
            return out("a penalty", value, "finite and not negative");
        }
        if self.penalties.len() > covariance.n_rows() {
            let name = "the number of penalties";
            return out(name, self.penalties.len() as f64, "at most the number of columns");
        }
        Ok(())
    }
}

/// Rⱼⱼ² of the Cholesky factor of `Bᵀ G B`: what is left of each variance given the axes before it. An axis that these span adds
/// nothing.
fn adjusted(scatter: &Matrix) -> Vec<f64> {
    let left = |k: usize| {
        let kept: Vec<usize> = (0..k).filter(|&i| scatter[(i, i)] > 0.0).collect();
        let before = Matrix::from_fn(kept.len(), kept.len(), |i, j| scatter[(kept[i], kept[j])]);
        let with: Vec<f64> = kept.iter().map(|&i| scatter[(i, k)]).collect();
        let explained = Cholesky::new(&before).map_or(0.0, |chol| {
            let mut solved = with.clone();
            chol.solve(&mut solved);
            solved.iter().zip(&with).map(|(a, b)| a * b).sum()
        });
        (scatter[(k, k)] - explained).max(0.0)
    };
    (0..scatter.n_rows()).map(left).collect()
}
