//! Sparse components in the sense of dictionary learning, with gaps.

use crate::linalg::rows::add_multiple;
use crate::linalg::{Svd, canonical_signs, dot, thin_svd};
use crate::model::{Rotation, RotationSearch, rotate};
use crate::parallel::pieces;
use crate::{Dataset, Error, Matrix};

/// Sparse principal components as scikit-learn's `SparsePCA` has them: a table as few scores times sparse components,
///
/// ```text
/// min  ½ ‖T − 1μᵀ − U V‖² + α Σ |v|        columns of U no longer than 1,  over observed cells
/// ```
///
/// in iterations over V and U: the column of V for each column of the table by coordinate descent on q × q products, each column
/// of U in closed form. An iteration begins beyond where the last one ended, in its direction; one that so ends higher than the last
/// is repeated from there, so that the objective never increases. With a [number of entries](Self::n_nonzero) instead of α each component in turn keeps its largest, which
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

/// Iterations that find each column of V to [`ROUGH`]; later ones make one sweep over its entries, which then move little.
const THOROUGH: usize = 10;
/// The change of a sweep, as a share of the largest entry, at which sweeps end: in thorough iterations, and of [`lasso`].
const ROUGH: f64 = 1e-3;
const SETTLED: f64 = 1e-10;
/// Most sweeps.
const SWEEPS: usize = 1000;
/// How far beyond an iteration the next one begins, as a share of its step: at first, how much farther after each, and at most.
const BEYOND: f64 = 0.5;
const FARTHER: f64 = 1.05;
const FARTHEST: f64 = 1.0;
/// Squares left, as a share of those of the table, below which a difference of large sums has too few digits to be the objective.
const DIGITS: f64 = 0.01;
/// Columns that one thread takes at a time.
const STEP: usize = 64;

impl SparseCoding {
    /// Fits, from the leading singular vectors (where entries are counted also from their varimax rotation, the lower end being
    /// kept), or from these scores (n × q) and components (q × d).
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
        let (table, starts) = match start {
            Some((u, v)) => (whole, vec![(u.transpose(), v.transpose())]),
            None => self.spectral(whole, data.is_complete())?,
        };
        let alpha = if self.n_nonzero.is_some() { 0.0 } else { self.alpha };
        let squares = dot(table.as_slice(), table.as_slice());
        let gaps: Vec<(usize, usize)> = if data.is_complete() { Vec::new() } else { gaps(data) };
        let columns = table.transpose();
        let ends = starts
            .into_iter()
            .map(|(u, v)| self.descend(Iterate { alpha, squares, columns: columns.clone(), u, v }, &gaps));
        // The first of those that are as low.
        let last = |errors: &[f64]| errors.last().copied().unwrap_or(f64::INFINITY);
        let lower =
            |a: (Matrix, Vec<f64>), b: (Matrix, Vec<f64>)| if last(&b.1) < last(&a.1) { b } else { a };
        let (mut by_column, errors) = ends.reduce(lower).expect("a start");
        let mut components = by_column.transpose();
        canonical_signs(&mut by_column);
        for k in 0..self.n_components {
            let column = by_column.column(k);
            let length = dot(&column, &column).sqrt();
            let unit = if length > 0.0 { 1.0 / length } else { 0.0 };
            components.row_mut(k).iter_mut().zip(&column).for_each(|(v, c)| *v = c * unit);
        }
        Ok(SparseComponents { components, mean, errors })
    }

    /// V where the iterations end, and the objective after each.
    fn descend(&self, mut at: Iterate, gaps: &[(usize, usize)]) -> (Matrix, Vec<f64>) {
        let mut errors: Vec<f64> = Vec::new();
        let mut beyond = BEYOND;
        // Where the last iteration ended, if the next one began farther on.
        let mut back: Option<(Matrix, Matrix)> = None;
        for iteration in 0..self.max_iterations {
            let thorough = iteration < THOROUGH;
            let from = (at.u.clone(), at.v.clone());
            let mut error = match self.n_nonzero {
                Some(n) => at.largest(n, gaps),
                None => at.step(thorough, gaps),
            };
            let last = errors.last().copied();
            let ended = |error: f64| last.is_some_and(|last| last - error < self.tolerance * error);
            let from = match back.take() {
                // Too far, or at the end: a step from where it was.
                Some(here) if ended(error) => {
                    beyond *= 0.5;
                    (at.u, at.v) = here.clone();
                    at.fill(gaps);
                    error = at.step(thorough, gaps);
                    here
                }
                Some(here) => {
                    beyond = (beyond * FARTHER).min(FARTHEST);
                    here
                }
                None => from,
            };
            let revived = at.revive();
            errors.push(error);
            if ended(error) {
                break;
            }
            if !revived && iteration > 0 && self.n_nonzero.is_none() {
                back = Some((at.u.clone(), at.v.clone()));
                at.extrapolate(&from, beyond);
            }
        }
        (at.v, errors)
    }

    /// Leading singular vectors; further components are empty. A complete table is turned to as many rows as it has singular
    /// values: scores lie in what its columns span. Where entries are counted, the varimax rotation of these vectors is a second
    /// start: components of similar variance have axes that are mixed, and which entries are the largest is decided there.
    fn spectral(&self, whole: Matrix, complete: bool) -> Result<(Matrix, Vec<Start>), Error> {
        let Svd { u, s, v } = thin_svd(&whole)?;
        let (q, d, kept) = (self.n_components, whole.n_columns(), s.len().min(self.n_components));
        let components = Matrix::from_fn(d, q, |j, k| if k < kept { v[(j, k)] } else { 0.0 });
        let (table, scores) = if complete {
            let mut turned = v;
            turned.scale_columns(&s);
            (turned.transpose(), Matrix::from_fn(q, s.len(), |k, i| if i == k { s[k] } else { 0.0 }))
        } else {
            let score = |k: usize, i: usize| if k < kept { u[(i, k)] * s[k] } else { 0.0 };
            let scores = Matrix::from_fn(q, whole.n_rows(), score);
            (whole, scores)
        };
        let mut starts = vec![(scores, components)];
        if self.n_nonzero.is_some_and(|n| n < d) && q > 1 {
            let (scores, components) = &starts[0];
            let size = |k: usize| s.get(k).copied().unwrap_or(0.0);
            let loadings = Matrix::from_fn(d, q, |j, k| components[(j, k)] * size(k));
            let turned = rotate(&loadings, &Rotation::Varimax { kaiser: true }, &RotationSearch::default())?;
            let unit = |k: usize, i: usize| if size(k) > 0.0 { scores[(k, i)] / size(k) } else { 0.0 };
            let unit = Matrix::from_fn(q, scores.n_columns(), unit);
            starts.push((turned.transform.t_dot(&unit), turned.loadings));
        }
        Ok((table, starts))
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

/// Scores, a row for each component, and entries of the components, a row for each column.
type Start = (Matrix, Matrix);

/// Where the iterations stand.
struct Iterate {
    alpha: f64,
    /// Σ t², of a complete table.
    squares: f64,
    /// The table, a row for each of its columns, gaps as `U V` had them last.
    columns: Matrix,
    /// Scores, a row for each component.
    u: Matrix,
    /// Entries of the components, a row for each column of the table.
    v: Matrix,
}

impl Iterate {
    /// V, then U, and the objective there.
    fn step(&mut self, thorough: bool, gaps: &[(usize, usize)]) -> f64 {
        self.components(thorough);
        let (cross, gram) = self.scores();
        if gaps.is_empty() {
            // ½ Σ t² − Σ (Tᵀ V)·U + ½ Σ (VᵀV)·(UᵀU)
            let products = dot(cross.as_slice(), self.u.as_slice());
            let image = times_sparse(&gram, &self.u);
            let left = self.squares - 2.0 * products + dot(image.as_slice(), self.u.as_slice());
            if left > DIGITS * self.squares {
                return 0.5 * left + self.penalty();
            }
        }
        self.fill(gaps)
    }

    /// Each column of V: `min ½ vᵀ UᵀU v − (Uᵀt)ᵀ v + α ‖v‖₁`.
    fn components(&mut self, thorough: bool) {
        let (gram, cross) = (self.u.dot_t(&self.u), self.columns.dot_t(&self.u));
        let (d, q, alpha, at) = (self.columns.n_rows(), self.u.n_rows(), self.alpha, &self.v);
        let (sweeps, settled) = if thorough { (SWEEPS, ROUGH) } else { (1, 0.0) };
        let parts = pieces(d, STEP, |columns| {
            let of = |j: usize| {
                let mut slope = cross.row(j).to_vec();
                for (k, v) in entries(at.row(j)) {
                    add_multiple(&mut slope, -v, gram.row(k));
                }
                descend(&gram, slope, at.row(j), alpha, (sweeps, settled))
            };
            columns.flat_map(of).collect::<Vec<f64>>()
        });
        self.v = Matrix::from_vec(d, q, parts.concat()).expect("q entries for each column");
    }

    /// Each column of U, in turn: what the others leave, regressed on its component, and no longer than 1. `Tᵀ V` and `VᵀV`.
    fn scores(&mut self) -> (Matrix, Matrix) {
        let by_component = self.v.transpose();
        let (cross, gram) =
            (times_sparse(&by_component, &self.columns), times_sparse(&by_component, &self.v));
        for k in 0..self.u.n_rows() {
            if gram[(k, k)] <= 0.0 {
                continue;
            }
            let mut next = cross.row(k).to_vec();
            for (l, g) in entries(gram.row(k)).filter(|&(l, _)| l != k) {
                add_multiple(&mut next, -g, self.u.row(l));
            }
            let scale = 1.0 / dot(&next, &next).sqrt().max(gram[(k, k)]);
            self.u.row_mut(k).iter_mut().zip(&next).for_each(|(u, x)| *u = x * scale);
        }
        (cross, gram)
    }

    /// Each component in turn: of what the others leave, its `n` largest entries given its scores of unit length, then its scores
    /// given these. Each is the minimum given the rest.
    fn largest(&mut self, n: usize, gaps: &[(usize, usize)]) -> f64 {
        let (q, d) = (self.u.n_rows(), self.columns.n_rows());
        for k in 0..q {
            let length = dot(self.u.row(k), self.u.row(k)).sqrt();
            if length > 0.0 {
                self.u.row_mut(k).iter_mut().for_each(|x| *x /= length);
            }
            let own = self.u.row(k);
            let with: Vec<f64> = self.u.rows().map(|other| dot(other, own)).collect();
            let others = |j: usize| entries(self.v.row(j)).filter(|&(l, _)| l != k);
            let left =
                |j: usize| dot(self.columns.row(j), own) - others(j).map(|(l, v)| v * with[l]).sum::<f64>();
            let mut next: Vec<f64> = (0..d).map(left).collect();
            let mut order: Vec<usize> = (0..d).collect();
            order.sort_by(|&i, &j| next[j].abs().total_cmp(&next[i].abs()));
            order[n..].iter().for_each(|&j| next[j] = 0.0);
            let (mut scores, mut of_others) = (vec![0.0; self.u.n_columns()], vec![0.0; q]);
            for (j, v) in entries(&next) {
                add_multiple(&mut scores, v, self.columns.row(j));
                others(j).for_each(|(l, other)| of_others[l] += v * other);
            }
            for (l, with) in entries(&of_others) {
                add_multiple(&mut scores, -with, self.u.row(l));
            }
            let square = dot(&next, &next);
            (0..d).for_each(|j| self.v[(j, k)] = next[j]);
            if square > 0.0 {
                self.u.row_mut(k).iter_mut().zip(&scores).for_each(|(u, x)| *u = x / square);
            }
        }
        self.fill(gaps)
    }

    /// Scores of empty components matter to nothing: they become what is left of the columns explained least, of which the next
    /// iteration may make something. Whether there were any.
    fn revive(&mut self) -> bool {
        let mut empty = vec![true; self.u.n_rows()];
        self.v.rows().for_each(|row| entries(row).for_each(|(k, _)| empty[k] = false));
        if !empty.contains(&true) {
            return false;
        }
        let mut left = self.columns.clone();
        for (left, v) in left.as_mut_slice().iter_mut().zip(self.v.dot(&self.u).as_slice()) {
            *left -= v;
        }
        let squares: Vec<f64> = left.rows().map(|r| dot(r, r)).collect();
        let mut order: Vec<usize> = (0..squares.len()).filter(|&j| squares[j] > 0.0).collect();
        order.sort_by(|&i, &j| squares[j].total_cmp(&squares[i]));
        for (k, j) in (0..empty.len()).filter(|&k| empty[k]).zip(order) {
            let length = squares[j].sqrt();
            self.u.row_mut(k).iter_mut().zip(left.row(j)).for_each(|(u, x)| *u = x / length);
        }
        true
    }

    /// Goes on in the direction from where the iteration began, entries that it made 0 or took from 0 staying as they are.
    fn extrapolate(&mut self, (u, v): &(Matrix, Matrix), beyond: f64) {
        for k in 0..self.u.n_rows() {
            let row = self.u.row_mut(k);
            row.iter_mut().zip(u.row(k)).for_each(|(x, from)| *x += beyond * (*x - from));
            let length = dot(row, row).sqrt().max(1.0);
            for x in row.iter_mut() {
                *x /= length;
            }
        }
        for (x, from) in self.v.as_mut_slice().iter_mut().zip(v.as_slice()) {
            if *x != 0.0 && *from != 0.0 {
                *x += beyond * (*x - from);
            }
        }
    }

    /// The objective, cell by cell, with gaps as the product has them from now on.
    fn fill(&mut self, gaps: &[(usize, usize)]) -> f64 {
        let fitted = self.v.dot(&self.u);
        for &(i, j) in gaps {
            self.columns[(j, i)] = fitted[(j, i)];
        }
        let cells = self.columns.as_slice().iter().zip(fitted.as_slice());
        0.5 * cells.map(|(t, f)| (t - f).powi(2)).sum::<f64>() + self.penalty()
    }

    fn penalty(&self) -> f64 {
        self.alpha * self.v.as_slice().iter().map(|v| v.abs()).sum::<f64>()
    }
}

/// What is not 0, and where.
fn entries(row: &[f64]) -> impl Iterator<Item = (usize, f64)> + '_ {
    row.iter().copied().enumerate().filter(|(_, v)| *v != 0.0)
}

/// `A B`, by the entries of A that are not 0 where these are few.
fn times_sparse(a: &Matrix, b: &Matrix) -> Matrix {
    let left = a.as_slice().iter().filter(|v| **v != 0.0).count();
    if 4 * left > a.as_slice().len() {
        return a.dot(b);
    }
    let mut out = Matrix::zeros(a.n_rows(), b.n_columns());
    for (i, row) in a.rows().enumerate() {
        for (k, v) in entries(row) {
            add_multiple(out.row_mut(i), v, b.row(k));
        }
    }
    out
}

/// `min ½ vᵀ G v − bᵀ v + α ‖v‖₁` from `start`, by coordinate descent.
pub(super) fn lasso(g: &Matrix, b: &[f64], start: &[f64], alpha: f64) -> Vec<f64> {
    let slope = b.iter().zip(g.rows()).map(|(b, g)| b - dot(g, start)).collect();
    descend(g, slope, start, alpha, (SWEEPS, SETTLED))
}

/// [`lasso`] given `slope = b − G v` at the start: sweeps over all entries, and over those that are not 0 until these have
/// settled, in turns; at most this many, until the largest change is this share of the largest entry.
fn descend(
    g: &Matrix,
    mut slope: Vec<f64>,
    start: &[f64],
    alpha: f64,
    (sweeps, settled): (usize, f64),
) -> Vec<f64> {
    let q = start.len();
    let mut at = start.to_vec();
    let mut all = true;
    for _ in 0..sweeps {
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
                add_multiple(&mut slope, -change, g.row(i));
                at[i] = next;
            }
            (moved, size) = (moved.max(change.abs()), size.max(next.abs()));
        }
        let done = moved <= settled * size;
        if done && all {
            break;
        }
        all = done;
    }
    at
}
