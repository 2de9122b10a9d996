//! The naive formulas: dense Gaussian algebra by elimination, written to be read, not to be fast.

use covary::{Dataset, LinearGaussian, Matrix};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// A Gaussian by its mean and its whole covariance.
pub(crate) struct Gaussian {
    pub(crate) mean: Vec<f64>,
    pub(crate) covariance: Matrix,
}

/// What is known about the gaps of one row.
pub(crate) struct Gaps {
    pub(crate) columns: Vec<usize>,
    pub(crate) mean: Vec<f64>,
    pub(crate) covariance: Matrix,
}

impl Gaussian {
    /// `N(μ, W Wᵀ + Ψ)`, formed entry by entry.
    pub(crate) fn of(model: &LinearGaussian) -> Self {
        let (w, psi) = (model.loadings(), model.noise_variances());
        let covariance = Matrix::from_fn(psi.len(), psi.len(), |i, j| {
            let signal: f64 = (0..w.n_columns()).map(|k| w[(i, k)] * w[(j, k)]).sum();
            signal + if i == j { psi[i] } else { 0.0 }
        });
        Self { mean: model.mean().to_vec(), covariance }
    }

    /// `yᵀ C_OO⁻¹ y` of the observed cells.
    pub(crate) fn mahalanobis(&self, row: &[f64]) -> f64 {
        let seen = observed(row);
        let y = self.centered(row, &seen);
        t_dot(&y, &solve(&block(&self.covariance, &seen, &seen), &y))[(0, 0)]
    }

    /// `ln N(t_O | μ_O, C_OO)`; 0 for a row of only gaps.
    pub(crate) fn log_density(&self, row: &[f64]) -> f64 {
        let seen = observed(row);
        let volume = seen.len() as f64 * (2.0 * std::f64::consts::PI).ln()
            + ln_det(&block(&self.covariance, &seen, &seen));
        -0.5 * (volume + self.mahalanobis(row))
    }

    pub(crate) fn log_likelihood(&self, data: &Dataset) -> f64 {
        (0..data.n_rows()).map(|i| self.log_density(data.row(i))).sum()
    }

    /// `μ_m + C_mO C_OO⁻¹ (t_O − μ_O)` and `C_mm − C_mO C_OO⁻¹ C_Om`.
    pub(crate) fn gaps(&self, row: &[f64]) -> Gaps {
        let seen = observed(row);
        let columns: Vec<usize> = (0..row.len()).filter(|j| !seen.contains(j)).collect();
        let (c_oo, c_om) = (block(&self.covariance, &seen, &seen), block(&self.covariance, &seen, &columns));
        let shift = t_dot(&c_om, &solve(&c_oo, &self.centered(row, &seen)));
        let known = t_dot(&c_om, &solve(&c_oo, &c_om));
        let covariance = Matrix::from_fn(columns.len(), columns.len(), |a, b| {
            self.covariance[(columns[a], columns[b])] - known[(a, b)]
        });
        let mean = columns.iter().enumerate().map(|(k, &j)| self.mean[j] + shift[(k, 0)]).collect();
        Gaps { columns, mean, covariance }
    }

    fn centered(&self, row: &[f64], seen: &[usize]) -> Matrix {
        Matrix::from_fn(seen.len(), 1, |i, _| row[seen[i]] - self.mean[seen[i]])
    }
}

/// Mean and covariance (divisor n) of complete rows, two passes.
pub(crate) fn moments(rows: &Matrix) -> Gaussian {
    let (n, d) = (rows.n_rows() as f64, rows.n_columns());
    let mean: Vec<f64> = (0..d).map(|j| rows.column(j).iter().sum::<f64>() / n).collect();
    let covariance = Matrix::from_fn(d, d, |a, b| {
        rows.rows().map(|t| (t[a] - mean[a]) * (t[b] - mean[b])).sum::<f64>() / n
    });
    Gaussian { mean, covariance }
}

pub(crate) fn observed(row: &[f64]) -> Vec<usize> {
    (0..row.len()).filter(|&j| !row[j].is_nan()).collect()
}

pub(crate) fn block(a: &Matrix, rows: &[usize], columns: &[usize]) -> Matrix {
    Matrix::from_fn(rows.len(), columns.len(), |i, j| a[(rows[i], columns[j])])
}

/// `Aᵀ B`, entry by entry.
fn t_dot(a: &Matrix, b: &Matrix) -> Matrix {
    Matrix::from_fn(a.n_columns(), b.n_columns(), |i, j| (0..a.n_rows()).map(|k| a[(k, i)] * b[(k, j)]).sum())
}

/// `A⁻¹ B` by Gaussian elimination with pivoting.
pub(crate) fn solve(a: &Matrix, b: &Matrix) -> Matrix {
    let (mut a, mut b) = (a.clone(), b.clone());
    eliminate(&mut a, &mut b);
    for j in 0..b.n_columns() {
        for i in (0..a.n_rows()).rev() {
            let known: f64 = (i + 1..a.n_rows()).map(|k| a[(i, k)] * b[(k, j)]).sum();
            b[(i, j)] = (b[(i, j)] - known) / a[(i, i)];
        }
    }
    b
}

/// `ln |A|` of a positive definite matrix.
pub(crate) fn ln_det(a: &Matrix) -> f64 {
    let mut a = a.clone();
    eliminate(&mut a, &mut Matrix::zeros(0, 0));
    (0..a.n_rows()).map(|i| a[(i, i)].abs().ln()).sum()
}

fn eliminate(a: &mut Matrix, b: &mut Matrix) {
    let n = a.n_rows();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[(i, k)].abs().total_cmp(&a[(j, k)].abs())).expect("k < n");
        swap_rows(a, k, pivot);
        swap_rows(b, k, pivot);
        for i in k + 1..n {
            let f = a[(i, k)] / a[(k, k)];
            (k..n).for_each(|j| a[(i, j)] -= f * a[(k, j)]);
            (0..b.n_columns()).for_each(|j| b[(i, j)] -= f * b[(k, j)]);
        }
    }
}

fn swap_rows(a: &mut Matrix, i: usize, j: usize) {
    for k in 0..a.n_columns() {
        (a[(i, k)], a[(j, k)]) = (a[(j, k)], a[(i, k)]);
    }
}

/// Lower Cholesky factor, entry by entry.
pub(crate) fn cholesky(a: &Matrix) -> Matrix {
    let mut l = Matrix::zeros(a.n_rows(), a.n_rows());
    for i in 0..a.n_rows() {
        for j in 0..=i {
            let s = a[(i, j)] - (0..j).map(|k| l[(i, k)] * l[(j, k)]).sum::<f64>();
            l[(i, j)] = if i == j { s.sqrt() } else { s / l[(j, j)] };
        }
    }
    l
}

/// Independent standard normal numbers.
pub(crate) fn normal(rows: usize, columns: usize, seed: u64) -> Matrix {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    Matrix::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
}

/// A random orthogonal matrix: Gram–Schmidt, twice, on normal numbers.
pub(crate) fn orthogonal(n: usize, seed: u64) -> Matrix {
    let mut q = normal(n, n, seed);
    for _ in 0..2 {
        for i in 0..n {
            for k in 0..i {
                let along: f64 = (0..n).map(|j| q[(i, j)] * q[(k, j)]).sum();
                (0..n).for_each(|j| q[(i, j)] -= along * q[(k, j)]);
            }
            let length = q.row(i).iter().map(|v| v * v).sum::<f64>().sqrt();
            q.row_mut(i).iter_mut().for_each(|v| *v /= length);
        }
    }
    q
}
