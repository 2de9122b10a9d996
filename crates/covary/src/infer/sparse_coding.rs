//! Sparse components in the sense of dictionary learning, with gaps.

use crate::linalg::{Svd, canonical_signs, dot, thin_svd};
use crate::parallel::pieces;
use crate::{Dataset, Error, Matrix};

/// Sparse principal components as scikit-learn's `SparsePCA` has them: a table as few scores times sparse components,
///
/// ```text
/// min  ½ ‖T − 1μᵀ − U V‖² + α Σ |v|        columns of U no longer than 1,  over observed cells
/// ```
///
/// in iterations over V and U: the column of V for each column of the table by coordinate descent on q × q products, each column
/// of U in closed form. With a [number of entries](Self::n_nonzero) instead of α each component in turn keeps its largest, which
/// is the minimum given its scores. A complete table enters by its singular values and right singular vectors, whose U has as many
/// rows as the smaller side; a gap is what `U V` says after each iteration, which never raises the objective. It has no
/// likelihood; [`SparseEm`](super::SparseEm) does.
///
/// ```
/// use covary::{infer::SparseCoding, Dataset, Matrix};
/// let table = Dataset::new(Matrix::from_rows(&[[3.0, 3.1, 0.1], [-2.9, -3.0, 0.0], [1.0, f64::NAN, -0.1], [-1.1, -1.0, 0.0]]))?;
/// let found = SparseCoding { n_components: 1, alpha: 0.5, ..SparseCoding::default() }.fit(&table, None)?;
/// assert_eq!(found.components[(0, 2)], 0.0);
/// assert!(found.errors.windows(2).all(|e| e[1] <= e[0] * (1.0 + 1e-12)));
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SparseCoding {
    /// Components.
    pub n_components: usize,
    /// α: the larger, the more zeros.
    pub alpha: f64,
    /// How many entries of each component are not 0. α has no part then.
    pub n_nonzero: Option<usize>,
    /// Most iterations.
    pub max_iterations: usize,
    /// Stop when an iteration lowers the objective by less than this share of it.
    pub tolerance: f64,
}

impl Default for SparseCoding {
    fn default() -> Self {
        Self { n_components: 1, alpha: 1.0, n_nonzero: None, max_iterations: 1000, tolerance: 1e-8 }
    }
}

/// What [`SparseCoding`] finds.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseComponents {
    /// V at unit length, q × d, the entry of largest absolute value positive; a component without entries stays 0.
    pub components: Matrix,
    /// Mean of the observed cells of each column.
    pub mean: Vec<f64>,
    /// The objective after each iteration.
    pub errors: Vec<f64>,
}

/// Sweeps over the entries of one column, and the change, as a share of the largest, at which they end.
const SWEEPS: usize = 1000;
const SETTLED: f64 = 1e-10;
/// Columns that one thread takes at a time.
const STEP: usize = 64;

impl SparseCoding {
    /// Fits, from the leading singular vectors, or from these scores (n × q) and components (q × d).
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for an option or a start that is not finite, [`Error::WrongLength`] for a start of another shape,
    /// [`Error::EmptyColumn`] for a column without a value.
    pub fn fit(&self, data: &Dataset, start: Option<(&Matrix, &Matrix)>) -> Result<SparseComponents, Error> {
        self.check(data, start)?;
        let mean = data.observed_means().to_vec();
        let centered = |i: usize, j: usize| {
            let value = data.row(i)[j];
            if value.is_nan() { 0.0 } else { value - mean[j] }
        };
        let whole = Matrix::from_fn(data.n_rows(), data.n_columns(), centered);
        let (table, u, v) = match start {
            Some((u, v)) => (whole, u.clone(), v.clone()),
            None => self.spectral(whole, data.is_complete())?,
        };
        let alpha = if self.n_nonzero.is_some() { 0.0 } else { self.alpha };
        let mut at = Iterate { alpha, table, u, v };
        let gaps: Vec<(usize, usize)> = if data.is_complete() { Vec::new() } else { gaps(data) };
        let mut errors: Vec<f64> = Vec::new();
        for _ in 0..self.max_iterations {
            if let Some(n) = self.n_nonzero {
                at.largest(n);
            } else {
                at.components();
                at.scores();
            }
            let fitted = at.u.dot(&at.v);
            let error = at.objective(&fitted, &gaps);
            at.revive(&fitted);
            let last = errors.last().copied();
            errors.push(error);
            if last.is_some_and(|last| last - error < self.tolerance * error) {
                break;
            }
        }
        let mut components = at.v;
        let mut by_column = components.transpose();
        canonical_signs(&mut by_column);
        for k in 0..self.n_components {
            let column = by_column.column(k);
            let length = dot(&column, &column).sqrt();
            let unit = if length > 0.0 { 1.0 / length } else { 0.0 };
            components.row_mut(k).iter_mut().zip(&column).for_each(|(v, c)| *v = c * unit);
        }
        Ok(SparseComponents { components, mean, errors })
    }

    /// Leading singular vectors; further components are empty. A complete table is turned to as many rows as it has singular
    /// values: scores lie in what its columns span.
    fn spectral(&self, whole: Matrix, complete: bool) -> Result<(Matrix, Matrix, Matrix), Error> {
        let Svd { u, s, v } = thin_svd(&whole)?;
        let (q, d, kept) = (self.n_components, whole.n_columns(), s.len().min(self.n_components));
        let components = Matrix::from_fn(q, d, |k, j| if k < kept { v[(j, k)] } else { 0.0 });
        if complete {
            let scores = Matrix::from_fn(s.len(), q, |i, k| if i == k { s[k] } else { 0.0 });
            let mut turned = v;
            turned.scale_columns(&s);
            return Ok((turned.transpose(), scores, components));
        }
        let scores = Matrix::from_fn(whole.n_rows(), q, |i, k| if k < kept { u[(i, k)] * s[k] } else { 0.0 });
        Ok((whole, scores, components))
    }

    fn check(&self, data: &Dataset, start: Option<(&Matrix, &Matrix)>) -> Result<(), Error> {
        let out = |name, value, bound| Err(Error::OutOfRange { name, value, bound });
        if !(self.alpha >= 0.0 && self.alpha.is_finite()) {
            return out("alpha", self.alpha, "finite and not negative");
        }
        if !(self.tolerance >= 0.0 && self.tolerance.is_finite()) {
            return out("tolerance", self.tolerance, "finite and not negative");
        }
        if let Some(n) = self.n_nonzero.filter(|n| !(1..=data.n_columns()).contains(n)) {
            return out("n_nonzero", n as f64, "at least 1 and at most the number of columns");
        }
        if let Some(j) = data.n_observed_by_column().iter().position(|&n| n == 0) {
            return Err(Error::EmptyColumn { column: data.column_names()[j].clone() });
        }
        let Some((u, v)) = start else { return Ok(()) };
        for (what, expected, got) in [
            ("rows of the scores given", data.n_rows(), u.n_rows()),
            ("columns of the scores given", self.n_components, u.n_columns()),
            ("components given", self.n_components, v.n_rows()),
            ("columns of the components given", data.n_columns(), v.n_columns()),
        ] {
            if expected != got {
                return Err(Error::WrongLength { what, expected, got });
            }
        }
        match u.as_slice().iter().chain(v.as_slice()).find(|x| !x.is_finite()) {
            Some(&value) => out("an entry of the start", value, "finite"),
            None => Ok(()),
        }
    }
}

fn gaps(data: &Dataset) -> Vec<(usize, usize)> {
    let of_row =
        |i: usize| (0..data.n_columns()).filter(move |&j| data.row(i)[j].is_nan()).map(move |j| (i, j));
    (0..data.n_rows()).flat_map(of_row).collect()
}

/// Where the iterations stand.
struct Iterate {
    alpha: f64,
    table: Matrix,
    u: Matrix,
    v: Matrix,
}

impl Iterate {
    /// Each column of V: `min ½ vᵀ UᵀU v − (Uᵀt)ᵀ v + α ‖v‖₁`.
    fn components(&mut self) {
        let (gram, cross) = (self.u.t_dot(&self.u), self.table.t_dot(&self.u));
        let (d, q, at) = (self.table.n_columns(), self.u.n_columns(), self.v.transpose());
        let (alpha, fitted) = (self.alpha, at.dot(&gram));
        let parts = pieces(d, STEP, |columns| {
            let of = |j: usize| {
                let slope = cross.row(j).iter().zip(fitted.row(j)).map(|(b, f)| b - f).collect();
                descend(&gram, slope, at.row(j), alpha)
            };
            columns.flat_map(of).collect::<Vec<f64>>()
        });
        let by_column = parts.concat();
        self.v = Matrix::from_fn(q, d, |k, j| by_column[j * q + k]);
    }

    /// Each column of U, in turn: what the others leave, regressed on its component, and no longer than 1.
    fn scores(&mut self) {
        let (cross, gram) = (self.v.dot_t(&self.table), self.v.dot_t(&self.v));
        let mut u = self.u.transpose();
        for k in 0..u.n_rows() {
            if gram[(k, k)] <= 0.0 {
                continue;
            }
            let mut next = cross.row(k).to_vec();
            for l in (0..u.n_rows()).filter(|&l| l != k && gram[(k, l)] != 0.0) {
                next.iter_mut().zip(u.row(l)).for_each(|(x, u)| *x -= u * gram[(k, l)]);
            }
            let length = dot(&next, &next).sqrt();
            let scale = 1.0 / length.max(gram[(k, k)]);
            u.row_mut(k).iter_mut().zip(&next).for_each(|(u, x)| *u = x * scale);
        }
        self.u = u.transpose();
    }

    /// Each component in turn: of what the others leave, its `n` largest entries given its scores of unit length, then its scores
    /// given these. Each is the minimum given the rest.
    fn largest(&mut self, n: usize) {
        let by_column = self.table.transpose();
        let (mut u, d) = (self.u.transpose(), self.table.n_columns());
        for k in 0..u.n_rows() {
            let length = dot(u.row(k), u.row(k)).sqrt();
            if length > 0.0 {
                u.row_mut(k).iter_mut().for_each(|x| *x /= length);
                self.v.row_mut(k).iter_mut().for_each(|x| *x *= length);
            }
            let with: Vec<f64> = u.rows().map(|other| dot(other, u.row(k))).collect();
            let mut next: Vec<f64> = by_column.rows().map(|column| dot(column, u.row(k))).collect();
            for l in (0..u.n_rows()).filter(|&l| l != k) {
                next.iter_mut().zip(self.v.row(l)).for_each(|(x, v)| *x -= v * with[l]);
            }
            let mut order: Vec<usize> = (0..d).collect();
            order.sort_by(|&i, &j| next[j].abs().total_cmp(&next[i].abs()));
            order[n..].iter().for_each(|&j| next[j] = 0.0);
            let of_others: Vec<f64> = self.v.rows().map(|other| dot(other, &next)).collect();
            let mut scores: Vec<f64> = self.table.rows().map(|row| dot(row, &next)).collect();
            for l in (0..u.n_rows()).filter(|&l| l != k && of_others[l] != 0.0) {
                scores.iter_mut().zip(u.row(l)).for_each(|(x, u)| *x -= u * of_others[l]);
            }
            let square = dot(&next, &next);
            self.v.row_mut(k).copy_from_slice(&next);
            if square > 0.0 {
                u.row_mut(k).iter_mut().zip(&scores).for_each(|(u, x)| *u = x / square);
            }
        }
        self.u = u.transpose();
    }

    /// Scores of empty components matter to nothing: they become what is left of the columns explained least, of which the next
    /// iteration may make something.
    fn revive(&mut self, fitted: &Matrix) {
        let empty: Vec<usize> =
            (0..self.v.n_rows()).filter(|&k| self.v.row(k).iter().all(|v| *v == 0.0)).collect();
        if empty.is_empty() {
            return;
        }
        let left =
            Matrix::from_fn(fitted.n_columns(), fitted.n_rows(), |j, i| self.table[(i, j)] - fitted[(i, j)]);
        let squares: Vec<f64> = left.rows().map(|r| dot(r, r)).collect();
        let mut order: Vec<usize> = (0..squares.len()).filter(|&j| squares[j] > 0.0).collect();
        order.sort_by(|&i, &j| squares[j].total_cmp(&squares[i]));
        for (k, j) in empty.into_iter().zip(order) {
            let length = squares[j].sqrt();
            (0..self.u.n_rows()).for_each(|i| self.u[(i, k)] = left[(j, i)] / length);
        }
    }

    /// The objective, with gaps as the product has them from now on.
    fn objective(&mut self, fitted: &Matrix, gaps: &[(usize, usize)]) -> f64 {
        for &cell in gaps {
            self.table[cell] = fitted[cell];
        }
        let squares = self.table.as_slice().iter().zip(fitted.as_slice()).map(|(t, f)| (t - f).powi(2));
        let sizes = self.v.as_slice().iter().map(|v| v.abs());
        0.5 * squares.sum::<f64>() + self.alpha * sizes.sum::<f64>()
    }
}

/// `min ½ vᵀ G v − bᵀ v + α ‖v‖₁` from `start`, by coordinate descent: sweeps over the entries that are not 0, and over all
/// once these have settled.
pub(super) fn lasso(g: &Matrix, b: &[f64], start: &[f64], alpha: f64) -> Vec<f64> {
    let slope = b.iter().zip(g.rows()).map(|(b, g)| b - dot(g, start)).collect();
    descend(g, slope, start, alpha)
}

/// [`lasso`] given `slope = b − G v` at the start.
fn descend(g: &Matrix, mut slope: Vec<f64>, start: &[f64], alpha: f64) -> Vec<f64> {
    let q = start.len();
    let mut at = start.to_vec();
    let mut all = true;
    for _ in 0..SWEEPS {
        let (mut moved, mut size) = (0.0_f64, 0.0_f64);
        for i in 0..q {
            if !all && at[i] == 0.0 {
                continue;
            }
            let curvature = g[(i, i)];
            let z = slope[i] + curvature * at[i];
            let next =
                if curvature > 0.0 { z.signum() * (z.abs() - alpha).max(0.0) / curvature } else { 0.0 };
            let change = next - at[i];
            if change != 0.0 {
                slope.iter_mut().zip(g.row(i)).for_each(|(s, g)| *s -= g * change);
                at[i] = next;
            }
            (moved, size) = (moved.max(change.abs()), size.max(next.abs()));
        }
        let settled = moved <= SETTLED * size;
        if settled && all {
            break;
        }
        all = settled;
    }
    at
}
