//! Complete tables with one noise variance: rows are left out, and each of their cells is predicted from the others in
//! closed form, for all numbers of components at once [M 3.4.1].
//!
//! ```text
//! P_q = (I − U_q U_qᵀ)/σ_q² + U_q Λ_q⁻¹ U_qᵀ        cell j given the others: error [P_q y]_j / [P_q]_jj, variance 1 / [P_q]_jj
//! ```

use super::Progress;
use super::bracket::n_above_noise;
use super::curve::Curve;
use super::hidden::inverse_scale;
use crate::data::CentralMoments;
use crate::linalg::{Eigen, dot, eigen, gemm, krylov};
use crate::parallel::pieces;
use crate::select::held_out::{HeldOut, HeldOutRows};
use crate::{Dataset, Error, Matrix};
use faer::{MatMut, MatRef};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Rows are left out in so many parts, or in one where those that are scored are at most this share of the table.
const FOLDS: usize = 5;
const FEW: usize = 10;
/// Cells, and rows, that are scored at least if there are.
const CELLS: usize = 30_000;
const ROWS: usize = 200;
/// Smallest noise, as a share of the mean variance.
const LEAST_NOISE: f64 = 1e-4;
/// Order from which only leading eigenpairs are searched, and passes of that.
const LARGE: usize = 192;
const PASSES: usize = 4;

/// The scores of all numbers of components up to one beyond the best.
pub(super) fn curve(
    data: &Dataset,
    standardize: bool,
    cap: usize,
    seed: u64,
    progress: &Progress<'_>,
) -> Result<HeldOut, Error> {
    let (n, d) = (data.n_rows(), data.n_columns());
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    order.truncate((CELLS / d).max(ROWS));
    let n_folds = if order.len() * FEW <= n { 1 } else { FOLDS };
    let folds: Vec<Vec<usize>> = (0..n_folds)
        .map(|f| {
            let mut rows: Vec<usize> = order.iter().skip(f).step_by(n_folds).copied().collect();
            rows.sort_unstable();
            rows
        })
        .filter(|rows| !rows.is_empty())
        .collect();
    let scaled = Scaled::new(data, standardize);
    // The rest of the rows must leave noise beside the components.
    let fewest = n - folds.iter().map(Vec::len).max().unwrap_or(0);
    let cap = cap.min(fewest.saturating_sub(2));
    progress.expect(2 * folds.len());
    let mut most: Option<usize> = None;
    loop {
        let mut fold_scores = Vec::new();
        let mut baseline = 0.0;
        for rows in &folds {
            progress.check()?;
            let left_out = scaled.rows(rows);
            let axes = scaled.axes_without(rows, &left_out, most.unwrap_or(cap.min(32)))?;
            let q = *most.get_or_insert_with(|| {
                let above = n_above_noise(&axes.leading.values, axes.total, d, axes.n_rows as f64, cap);
                cap.min((2 * above + 4).max(8))
            });
            let axes = if axes.leading.values.len() < q { scaled.axes_without(rows, &left_out, q)? } else { axes };
            progress.check()?;
            let (scores, squares) = axes.score(&left_out, q);
            fold_scores.push(scores);
            baseline += squares;
        }
        let q = most.expect("there is a fold");
        let mut curve = Curve::default();
        for k in 0..=q {
            curve.insert(k, concatenated(fold_scores.iter().map(|fold| &fold[k])));
        }
        if curve.best() < q || q == cap {
            let cells = order.len() * d;
            let summary = curve.summary(baseline / cells as f64);
            return Ok(HeldOut { n_sets: folds.len(), limited: curve.best() == cap, ..summary });
        }
        most = Some(cap.min(2 * q + 2));
        progress.expect(2 * folds.len());
    }
}

fn concatenated<'a>(parts: impl Iterator<Item = &'a HeldOutRows>) -> HeldOutRows {
    let mut all = HeldOutRows::new(0);
    for part in parts {
        all.joint.extend(&part.joint);
        all.marginal.extend(&part.marginal);
        all.crps.extend(&part.crps);
        all.squared_error.extend(&part.squared_error);
        all.n_hidden.extend(&part.n_hidden);
    }
    all
}

/// The table in the scale of the fit, about its means, and what all folds need of it.
struct Scaled<'a> {
    data: &'a Dataset,
    inverse_scale: Vec<f64>,
    products: Products,
}

/// Products of columns, or of rows where these are fewer.
enum Products {
    /// Moments of the columns.
    Columns(CentralMoments),
    /// Products of the rows, scaled and about the means of the columns.
    Rows(Matrix),
}

/// Principal axes of rows.
struct Axes {
    n_rows: usize,
    /// The mean of the rows, about that of the table.
    mean: Vec<f64>,
    leading: Eigen,
    /// The sum of all eigenvalues.
    total: f64,
}

impl<'a> Scaled<'a> {
    fn new(data: &'a Dataset, standardize: bool) -> Self {
        let (n, d) = (data.n_rows(), data.n_columns());
        let inverse_scale = inverse_scale(data.observed_variances(), standardize);
        let mut scaled = Self { data, inverse_scale, products: Products::Rows(Matrix::zeros(0, 0)) };
        scaled.products = if d <= n {
            Products::Columns(CentralMoments::of(data).expect("the table is complete"))
        } else {
            let y = scaled.rows(&(0..n).collect::<Vec<_>>());
            Products::Rows(y.dot_t(&y))
        };
        scaled
    }

    /// Some rows, scaled and about the means of the table.
    fn rows(&self, rows: &[usize]) -> Matrix {
        let means = self.data.observed_means();
        Matrix::from_fn(rows.len(), means.len(), |i, j| {
            (self.data.row(rows[i])[j] - means[j]) * self.inverse_scale[j]
        })
    }

    /// The `k` leading axes, or more, of all rows but these.
    fn axes_without(&self, rows: &[usize], left_out: &Matrix, k: usize) -> Result<Axes, Error> {
        let (n, d) = (self.data.n_rows(), self.data.n_columns());
        let n_rows = n - rows.len();
        // Σ y over all rows is 0.
        let mut mean = vec![0.0; d];
        left_out.rows().for_each(|y| mean.iter_mut().zip(y).for_each(|(m, y)| *m -= y));
        mean.iter_mut().for_each(|m| *m /= n_rows as f64);
        match &self.products {
            Products::Columns(moments) => {
                // Σ y yᵀ over the others, about their own mean.
                let mut s = moments.scatter();
                s.scale_both(&self.inverse_scale);
                let out = left_out.t_dot(left_out);
                let m = n_rows as f64;
                for i in 0..d {
                    for (j, v) in s.row_mut(i).iter_mut().enumerate() {
                        *v = (*v - out[(i, j)]) / m - mean[i] * mean[j];
                    }
                }
                Ok(Axes { n_rows, total: s.trace(), leading: leading(&s, k)?, mean })
            }
            Products::Rows(products) => {
                let kept: Vec<usize> = (0..n).filter(|i| rows.binary_search(i).is_err()).collect();
                // About the mean of the others: rows and columns of the products are centered.
                let mut s = Matrix::from_fn(n_rows, n_rows, |a, b| products[(kept[a], kept[b])]);
                let sums: Vec<f64> = s.rows().map(|row| row.iter().sum::<f64>() / n_rows as f64).collect();
                let all = sums.iter().sum::<f64>() / n_rows as f64;
                for a in 0..n_rows {
                    for (b, v) in s.row_mut(a).iter_mut().enumerate() {
                        *v = (*v - sums[a] - sums[b] + all) / n_rows as f64;
                    }
                }
                let total = s.trace();
                let Eigen { mut values, vectors } = leading(&s, k)?;
                // Directions without variance have no axis.
                let rank = values.iter().take_while(|v| **v > 1e-12 * values[0]).count().min(n_rows - 1);
                values.truncate(rank);
                // u = Yᵀ v / √(n λ); what the mean adds to Y is gone, since the entries of v sum to 0.
                let mut axes = self.rows(&kept).t_dot(&vectors.first_columns(rank));
                let lengths: Vec<f64> = values.iter().map(|v| 1.0 / (v * n_rows as f64).sqrt()).collect();
                axes.scale_columns(&lengths);
                Ok(Axes { n_rows, total, leading: Eigen { values, vectors: axes }, mean })
            }
        }
    }
}

/// The leading eigenpairs of a covariance: all of a small one.
fn leading(s: &Matrix, k: usize) -> Result<Eigen, Error> {
    let n = s.n_rows();
    if n >= LARGE {
        let apply = |x: MatRef<'_, f64>, out: MatMut<'_, f64>| gemm(out, false, s.view(), x);
        if let Some(found) = krylov::leading_ritz_pairs(apply, n, k, PASSES, 0)? {
            return Ok(found);
        }
    }
    eigen(s)
}

impl Axes {
    /// Scores of the rows left out with 0 to `most` components, and the sum of squares about the mean.
    fn score(&self, left_out: &Matrix, most: usize) -> (Vec<HeldOutRows>, f64) {
        let d = left_out.n_columns();
        let known = self.leading.values.len();
        let axes = self.leading.vectors.transpose();
        let floor = LEAST_NOISE * self.total / d as f64;
        let noise: Vec<f64> = (0..=most)
            .map(|q| {
                let kept = self.leading.values[..q.min(known)].iter().sum::<f64>();
                ((self.total - kept) / (d - q) as f64).max(floor)
            })
            .collect();
        let variance = |k: usize| self.leading.values[k].max(floor);
        // [P_q]_jj
        let precision = Matrix::from_fn(most + 1, d, |q, j| {
            let (mut outside, mut inside) = (1.0, 0.0);
            for k in 0..q.min(known) {
                let square = axes[(k, j)] * axes[(k, j)];
                outside -= square;
                inside += square / variance(k);
            }
            outside.max(0.0) / noise[q] + inside
        });
        let sd = Matrix::from_fn(most + 1, d, |q, j| 1.0 / precision[(q, j)].sqrt());
        let parts = pieces(left_out.n_rows(), 16, |rows| {
            let mut scores: Vec<HeldOutRows> = (0..=most).map(|_| HeldOutRows::new(rows.len())).collect();
            let mut squares = 0.0;
            for (i, row) in rows.enumerate() {
                let y: Vec<f64> = left_out.row(row).iter().zip(&self.mean).map(|(y, m)| y - m).collect();
                squares += dot(&y, &y);
                // (I − U Uᵀ) y, and U Λ⁻¹ Uᵀ y.
                let (mut outside, mut inside) = (y.clone(), vec![0.0; d]);
                for (q, scores) in scores.iter_mut().enumerate() {
                    if q > 0 && q <= known {
                        let u = axes.row(q - 1);
                        let along = dot(u, &y);
                        let weight = along / variance(q - 1);
                        for j in 0..d {
                            outside[j] -= along * u[j];
                            inside[j] += weight * u[j];
                        }
                    }
                    let inverse = 1.0 / noise[q];
                    for j in 0..d {
                        let sd = sd[(q, j)];
                        let error = (outside[j] * inverse + inside[j]) * sd * sd;
                        scores.add_cell(i, error, sd);
                    }
                }
            }
            (scores, squares)
        });
        let squares = parts.iter().map(|part| part.1).sum();
        let all = |q: usize| concatenated(parts.iter().map(|(scores, _)| &scores[q]));
        ((0..=most).map(all).collect(), squares)
    }
}
