//! Principal components of a sparse table: it is centered in the formulas only, and stays sparse.

use super::scatter::sum_matrices;
use super::{PrincipalAxes, Solver, Spectrum};
use crate::data::Sparse;
use crate::linalg::{Eigen, canonical_signs, krylov, leading_eigenpairs, top_eigenpairs};
use crate::model::Principal;
use crate::parallel::pieces;
use crate::{Error, Matrix};
use faer::{MatMut, MatRef};

/// Largest angle to the exact subspace (radians), as for dense tables.
const MAX_ANGLE: f64 = 1e-9;
/// Smaller side from which a few components are sought by iteration.
const LARGE: usize = 256;
/// Rows or columns of a product that a thread makes at a time.
const STEP: usize = 16;

impl PrincipalAxes {
    /// The principal components of a sparse table, which is never written out. Few components of a large
    /// table are found by block Krylov iteration; otherwise, or where its bound is too large, from the
    /// smaller of the d × d covariance and the N × N Gram matrix:
    ///
    /// ```text
    /// S = Tᵀ T / N − μ μᵀ        K = (T − 1μᵀ)(T − 1μᵀ)ᵀ / N
    /// ```
    ///
    /// Both subtract: columns whose means are 10ᵏ standard deviations lose 2k digits. [`Solver::Svd`] is
    /// taken for that matrix, too.
    ///
    /// ```
    /// use covary::{Dataset, data::Sparse, infer::PrincipalAxes};
    /// let table = Sparse::new((3, 2), vec![0, 1, 2, 4], vec![0, 1, 0, 1], vec![1.0, 2.0, 4.0, 3.0])?;
    /// let dense = PrincipalAxes::default().fit(&Dataset::new(table.to_matrix())?)?;
    /// let sparse = PrincipalAxes::default().fit_sparse(&table)?;
    /// assert!((sparse.explained_variance[0] - dense.explained_variance[0]).abs() < 1e-12);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    pub fn fit_sparse(&self, data: &Sparse) -> Result<Principal, Error> {
        let (n, d) = (data.n_rows(), data.n_columns());
        if n < 2 {
            return Err(Error::TooFewRows { rows: n });
        }
        self.check(n, d)?;
        let k = self.sought(n, d);
        let centered = Centered::new(data);
        let few = n.min(d) >= LARGE && 4 * krylov::block_width(k, n.min(d)) < n.min(d);
        let found = match self.solver {
            Solver::Covariance => centered.covariance(k, self.seed)?,
            Solver::Gram => centered.gram(k, self.seed)?,
            Solver::Krylov => centered.iterated(k, self.seed)?,
            Solver::Auto if few => centered.iterated(k, self.seed)?,
            Solver::Auto | Solver::Svd => centered.exact(k, self.seed)?,
        };
        self.of_spectrum(&found)
    }
}

struct Centered<'a> {
    data: &'a Sparse,
    mean: Vec<f64>,
    variances: Vec<f64>,
}

impl<'a> Centered<'a> {
    fn new(data: &'a Sparse) -> Self {
        let mean = data.means();
        let variances = data.variances(&mean);
        Self { data, mean, variances }
    }

    fn spectrum(&self, found: Eigen, rest: f64, solver: Solver, angle_bound: f64) -> Spectrum {
        let (n, mean, variances) = (self.data.n_rows(), self.mean.clone(), self.variances.clone());
        let mut spectrum = Spectrum::of_eigenpairs(n, mean, variances, found, rest);
        (spectrum.solver, spectrum.angle_bound) = (solver, angle_bound);
        spectrum
    }

    fn exact(&self, k: usize, seed: u64) -> Result<Spectrum, Error> {
        if self.data.n_columns() <= self.data.n_rows() {
            self.covariance(k, seed)
        } else {
            self.gram(k, seed)
        }
    }

    fn iterated(&self, k: usize, seed: u64) -> Result<Spectrum, Error> {
        let d = self.data.n_columns();
        let apply = |x: MatRef<'_, f64>, out: MatMut<'_, f64>| self.times(x, out);
        let Some(found) = top_eigenpairs(apply, d, k, MAX_ANGLE, seed)? else { return self.exact(k, seed) };
        let rest = self.variances.iter().sum::<f64>() - found.eigen.values.iter().sum::<f64>();
        Ok(self.spectrum(found.eigen, rest.max(0.0), Solver::Krylov, found.angle_bound))
    }

    /// `out = Yᵀ Y X / N` for Y = T − 1μᵀ: with Z = T X − 1 (μᵀX), it is `(Tᵀ Z − μ (1ᵀ Z)) / N`.
    fn times(&self, x: MatRef<'_, f64>, mut out: MatMut<'_, f64>) {
        let (n, d, b) = (self.data.n_rows(), self.data.n_columns(), x.ncols());
        let x = Matrix::from_fn(d, b, |i, j| x[(i, j)]);
        let shift = Matrix::from_rows(&[&self.mean]).dot(&x);
        // The last row gathers 1ᵀ Z.
        let sum = sum_matrices(n, STEP, (d + 1, b), |rows, part| {
            let mut z = vec![0.0; b];
            for i in rows {
                z.iter_mut().zip(shift.row(0)).for_each(|(z, s)| *z = -s);
                self.data.row(i).for_each(|(j, v)| add_multiple(&mut z, v, x.row(j)));
                self.data.row(i).for_each(|(j, v)| add_multiple(part.row_mut(j), v, &z));
                add_multiple(part.row_mut(d), 1.0, &z);
            }
        });
        for i in 0..d {
            for j in 0..b {
                out[(i, j)] = (sum[(i, j)] - self.mean[i] * sum[(d, j)]) / n as f64;
            }
        }
    }

    fn covariance(&self, k: usize, seed: u64) -> Result<Spectrum, Error> {
        let (n, d) = (self.data.n_rows(), self.data.n_columns());
        // Each piece makes some rows of the lower triangle, from all rows of the table.
        let parts = pieces(d, STEP, |wanted| {
            let mut part = vec![0.0; wanted.len() * d];
            for i in 0..n {
                let (columns, values) = self.data.stored(i);
                let place = |j: usize| columns.partition_point(|&c| (c as usize) < j);
                for a in place(wanted.start)..place(wanted.end) {
                    let row = &mut part[(columns[a] as usize - wanted.start) * d..][..d];
                    for (&c, v) in columns[..=a].iter().zip(values) {
                        row[c as usize] += values[a] * v;
                    }
                }
            }
            part
        });
        let mut s = Matrix::from_vec(d, d, parts.concat())?;
        for i in 0..d {
            for j in 0..=i {
                let centered = s[(i, j)] / n as f64 - self.mean[i] * self.mean[j];
                // The diagonal is known without a subtraction.
                s[(i, j)] = if i == j { self.variances[i] } else { centered };
            }
        }
        s.mirror_lower();
        let found = leading_eigenpairs(&s, k, MAX_ANGLE, seed)?;
        let (values, rest) = (nonnegative(&found.values), found.rest.max(0.0));
        Ok(self.spectrum(Eigen { values, vectors: found.vectors }, rest, Solver::Covariance, 0.0))
    }

    /// With `cᵢ = tᵢ·μ`: `N Kᵢⱼ = tᵢ·tⱼ − cᵢ − cⱼ + μ·μ`, and u = Yᵀ a / √(N λ).
    fn gram(&self, k: usize, seed: u64) -> Result<Spectrum, Error> {
        let (n, d) = (self.data.n_rows(), self.data.n_columns());
        let along = |i: usize| self.data.row(i).map(|(j, v)| v * self.mean[j]).sum::<f64>();
        let c: Vec<f64> = (0..n).map(along).collect();
        let of_mean: f64 = self.mean.iter().map(|m| m * m).sum();
        let parts = pieces(n, STEP, |wanted| {
            let (mut part, mut row) = (vec![0.0; wanted.len() * n], vec![0.0; d]);
            for (i, out) in wanted.zip(part.chunks_exact_mut(n)) {
                self.data.row(i).for_each(|(j, v)| row[j] = v);
                for (m, out) in out.iter_mut().enumerate().take(i + 1) {
                    let product: f64 = self.data.row(m).map(|(j, v)| v * row[j]).sum();
                    *out = (product - c[i] - c[m] + of_mean) / n as f64;
                }
                self.data.row(i).for_each(|(j, _)| row[j] = 0.0);
            }
            part
        });
        let mut gram = Matrix::from_vec(n, n, parts.concat())?;
        gram.mirror_lower();
        let k_in = k.min(n);
        let found = leading_eigenpairs(&gram, k_in, MAX_ANGLE, seed)?;
        let values = nonnegative(&found.values);
        let rounding = f64::EPSILON * n.max(d) as f64 * values.first().copied().unwrap_or(0.0);
        // A direction without variance has no axis and stays zero.
        let length = |l: &f64| if *l > rounding { 1.0 / (n as f64 * l).sqrt() } else { 0.0 };
        let length: Vec<f64> = values.iter().map(length).collect();
        let mut vectors = Matrix::zeros(d, k_in);
        let mut total = vec![0.0; k_in];
        for i in 0..n {
            self.data.row(i).for_each(|(j, v)| add_multiple(vectors.row_mut(j), v, found.vectors.row(i)));
            add_multiple(&mut total, 1.0, found.vectors.row(i));
        }
        for j in 0..d {
            add_multiple(vectors.row_mut(j), -self.mean[j], &total);
        }
        vectors.scale_columns(&length);
        canonical_signs(&mut vectors);
        Ok(self.spectrum(Eigen { values, vectors }, found.rest.max(0.0), Solver::Gram, 0.0))
    }
}

fn nonnegative(values: &[f64]) -> Vec<f64> {
    values.iter().map(|v| v.max(0.0)).collect()
}

/// `a ← a + f b`
fn add_multiple(a: &mut [f64], f: f64, b: &[f64]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += f * b);
}
