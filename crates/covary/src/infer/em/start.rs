//! Where EM starts [M 1.5.3].

use super::Init;
use super::parameters::{Frame, Parameters};
use crate::data::{Facts, Patterns};
use crate::infer::pass::{Rows, Sums, Task};
use crate::infer::report::Warning;
use crate::infer::scatter::scatter_times;
use crate::linalg::rows::{center_observed, count_clear_in_both};
use crate::linalg::{Eigen, add_gram_lower, dot, krylov, leading_eigenpairs, normal, packed, top_eigenpairs};
use crate::parallel::{self, BLOCK_CELLS, add, over_pieces};
use crate::{Dataset, Error, Matrix, Spec};
use faer::{MatMut, MatRef};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::ops::Range;

/// Share of a mean variance below which a starting loading or noise is not taken.
const LEAST_SIGNAL: f64 = 1e-2;
const LEAST_NOISE: f64 = 1e-3;
/// Share of a column's variance that a factor start leaves to its noise.
const LEAST_SHARE: f64 = 0.05;
const FACTOR_ROUNDS: usize = 10;
/// Columns beyond which no d × d matrix is formed for the start.
pub(in crate::infer) const WIDE: usize = 2000;

pub(in crate::infer) fn parameters(
    init: &Init,
    rows: &dyn Rows,
    spec: &Spec,
    frame: &Frame,
    seed: u64,
) -> Result<Parameters, Error> {
    let (d, q) = (frame.mean.len(), spec.n_components);
    match init {
        Init::Given(model) => {
            if model.mean().len() != d || model.n_components() != q {
                return Err(Error::WrongLength {
                    what: "loadings of the start",
                    expected: d * q,
                    got: model.mean().len() * model.n_components(),
                });
            }
            let mut p = frame.parameters(model);
            if frame.isotropic {
                let pooled = p.psi.iter().sum::<f64>() / d as f64;
                p.psi.fill(pooled);
            }
            Ok(p)
        }
        Init::Random => Ok(random(q, frame, seed)),
        Init::Spectral => spectral(rows, q, frame, spec.floor(), seed),
    }
}

pub(in crate::infer) fn random(q: usize, frame: &Frame, seed: u64) -> Parameters {
    let d = frame.mean.len();
    let mut w = normal(d, q, &mut ChaCha8Rng::seed_from_u64(seed));
    w.as_mut_slice().iter_mut().for_each(|v| *v *= 0.3);
    Parameters { w, mean: frame.mean.clone(), psi: vec![0.5; d] }
}

/// The start moved at random by a third of its own size, for restarts.
pub(in crate::infer) fn jitter(start: &Parameters, seed: u64) -> Parameters {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut p = start.clone();
    let size = p.w.as_slice().iter().map(|v| v * v).sum::<f64>() / p.w.as_slice().len().max(1) as f64;
    for v in p.w.as_mut_slice() {
        let e: f64 = StandardNormal.sample(&mut rng);
        *v += 0.3 * size.sqrt() * e;
    }
    p
}

/// Leading eigenpairs of the available-case covariance: each entry from the rows that have both
/// columns, 0 where none has. For very wide tables, where d × d is too much, of the covariance of the
/// mean-filled table.
fn spectral(rows: &dyn Rows, q: usize, frame: &Frame, floor: f64, seed: u64) -> Result<Parameters, Error> {
    let scaled = |variances: &[f64]| -> Vec<f64> {
        variances.iter().zip(&frame.inverse).map(|(v, s)| v * s * s).collect()
    };
    if frame.mean.len() > WIDE {
        let data = rows.in_memory().ok_or(Error::NotInMemory {
            what: format!("the start of EM for more than {WIDE} columns"),
            instead: "`init=random`",
        })?;
        return match mean_filled(data, q, frame)? {
            Some(eigen) => {
                let variances = scaled(data.observed_variances());
                Ok(from_eigenpairs(&variances, &eigen.values, eigen.vectors, frame, floor))
            }
            None => Ok(random(q, frame, seed)),
        };
    }
    let s = Pairs::summed(&rows.pass(&Task::pairs(frame))?, frame.mean.len())?.covariance();
    if !frame.isotropic {
        return principal_factors(&s, q, frame, floor);
    }
    let found = leading_eigenpairs(&s, q, krylov::START_ANGLE, 0)?;
    let variances = match rows.in_memory() {
        Some(data) => scaled(data.observed_variances()),
        None => scaled(rows.facts()?.observed_variances()),
    };
    Ok(from_eigenpairs(&variances, &found.values, found.vectors, frame, floor))
}

/// `σ²` the mean of what the eigenvalues leave, `W = U (Λ − σ²)^½`; for diagonal noise each column
/// keeps what its loadings leave. `variances` are those of the columns in the frame.
pub(super) fn from_eigenpairs(
    variances: &[f64],
    values: &[f64],
    axes: Matrix,
    frame: &Frame,
    floor: f64,
) -> Parameters {
    let (d, q) = (variances.len(), values.len());
    let total: f64 = variances.iter().sum();
    let mean_variance = total / d as f64;
    let rest = total - values.iter().sum::<f64>();
    let sigma2 = (rest / (d - q) as f64).max(LEAST_NOISE * mean_variance);
    let length = |l: &f64| (l - sigma2).max(LEAST_SIGNAL * mean_variance).sqrt();
    let mut w = axes;
    w.scale_columns(&values.iter().map(length).collect::<Vec<_>>());
    let left = |j: usize| (variances[j] - dot(w.row(j), w.row(j))).max(LEAST_SHARE * variances[j]);
    let psi = |j: usize| if frame.isotropic { sigma2 } else { left(j) };
    let psi = (0..d).map(|j| psi(j).max(floor)).collect();
    Parameters { w, mean: frame.mean.clone(), psi }
}

/// Leading eigenpairs of the [`filled_scatter`]; `None` if they are not separated.
pub(in crate::infer) fn mean_filled(data: &Dataset, q: usize, frame: &Frame) -> Result<Option<Eigen>, Error> {
    let apply = filled_scatter(data, frame);
    Ok(top_eigenpairs(apply, data.n_columns(), q, krylov::START_ANGLE, 0)?.map(|found| found.eigen))
}

/// Products with `Yᵀ Y / (N p²)`, Y centered with 0 at the gaps and p the share of observed cells: off the diagonal that is the
/// covariance, were cells missing at random.
pub(super) fn filled_scatter(data: &Dataset, frame: &Frame) -> impl Fn(MatRef<'_, f64>, MatMut<'_, f64>) {
    let (n, share) = (data.n_rows(), data.observed_share());
    move |x, out| {
        let load = |cells: &[f64], out: &mut [f64]| center_observed(cells, &frame.mean, &frame.inverse, out);
        scatter_times((data.values().as_slice(), data.n_columns()), &load, n as f64 * share * share, x, out);
    }
}

/// A few rounds of `W = Ψ^½ V_q (Θ_q − I)₊^½`, `ψ = diag(S − W Wᵀ)` [M 1.6.2] from ψ = s/2: each
/// costs one small eigenproblem, and at 20000×50, q = 5, 20 % gaps they save 5 of 27 passes over
/// the data.
pub(super) fn principal_factors(
    s: &Matrix,
    q: usize,
    frame: &Frame,
    floor: f64,
) -> Result<Parameters, Error> {
    let d = s.n_rows();
    let mut psi: Vec<f64> = (0..d).map(|j| (0.5 * s[(j, j)]).max(floor)).collect();
    let mut w = Matrix::zeros(d, q);
    for _ in 0..FACTOR_ROUNDS {
        let deviation: Vec<f64> = psi.iter().map(|v| v.sqrt()).collect();
        let inverse: Vec<f64> = deviation.iter().map(|v| 1.0 / v).collect();
        let mut whitened = s.clone();
        whitened.scale_both(&inverse);
        let found = leading_eigenpairs(&whitened, q, krylov::START_ANGLE, 0)?;
        w = found.vectors;
        let lengths: Vec<f64> = found.values.iter().map(|t| (t - 1.0).max(LEAST_SIGNAL).sqrt()).collect();
        w.scale_columns(&lengths);
        w.scale_rows(&deviation);
        for j in 0..d {
            let v = s[(j, j)];
            psi[j] = (v - dot(w.row(j), w.row(j))).max(LEAST_SHARE * v).max(floor);
        }
    }
    Ok(Parameters { w, mean: frame.mean.clone(), psi })
}

/// A warning of pairs of columns that no row has together: how many, and the first.
pub(in crate::infer) fn unseen_pairs(data: &Dataset) -> Option<Warning> {
    may_be_unseen(data.n_observed_by_column(), data.n_rows())
        .then(|| unseen(&Pairs::counts(data), data.column_names()))?
}

/// The same of rows wherever they are.
pub(in crate::infer) fn unseen_pairs_of(rows: &dyn Rows, facts: &Facts) -> Result<Option<Warning>, Error> {
    if !may_be_unseen(facts.n_observed_by_column(), facts.n_rows()) {
        return Ok(None);
    }
    Ok(unseen(&pair_counts(rows, facts.n_columns())?, facts.column_names()))
}

/// Rows that have both columns of each pair, a lower triangle.
pub(in crate::infer) fn pair_counts(rows: &dyn Rows, d: usize) -> Result<Matrix, Error> {
    unpacked(&rows.pass(&Task::counts(d))?.0, d)
}

fn may_be_unseen(observed: &[usize], n_rows: usize) -> bool {
    let mut observed = observed.to_vec();
    observed.sort_unstable();
    // A very wide table is not searched: the counts alone would be d × d. Two columns whose counts exceed the number
    // of rows must meet somewhere.
    (2..=WIDE).contains(&observed.len()) && observed[0] + observed[1] <= n_rows
}

fn unseen(counts: &Matrix, names: &[String]) -> Option<Warning> {
    let d = names.len();
    let mut unseen = (0..d).flat_map(|j| (0..j).map(move |i| (i, j))).filter(|&(i, j)| counts[(j, i)] == 0.0);
    let (a, b) = unseen.next()?;
    let pairs = 1 + unseen.count();
    Some(Warning::UnseenPairs { pairs, example: (names[a].clone(), names[b].clone()) })
}

/// The lower triangle of a square matrix, row by row, in the memory that it had.
fn triangle(a: Matrix) -> Vec<f64> {
    let d = a.n_rows();
    let mut cells = a.into_vec();
    for i in 1..d {
        cells.copy_within(i * d..=i * d + i, packed::len(i));
    }
    cells.truncate(packed::len(d));
    cells.shrink_to_fit();
    cells
}

fn unpacked(triangle: &[f64], d: usize) -> Result<Matrix, Error> {
    if triangle.len() != packed::len(d) {
        return Err(Error::DamagedState { why: "its length is not that of its shape" });
    }
    Ok(lower(triangle, d))
}

/// The matrix of a lower triangle.
fn lower(triangle: &[f64], d: usize) -> Matrix {
    Matrix::from_fn(d, d, |i, j| if j <= i { triangle[packed::len(i) + j] } else { 0.0 })
}

/// Sums over the rows that have both columns of a pair; lower triangles.
pub(in crate::infer) struct Pairs {
    pub(in crate::infer) products: Matrix,
    counts: Matrix,
}

impl Pairs {
    pub(super) fn of(data: &Dataset, frame: &Frame) -> Self {
        Self { products: Self::products(data, frame), counts: Self::counts(data) }
    }

    /// Those of a pass.
    pub(in crate::infer) fn summed(sums: &Sums, d: usize) -> Result<Self, Error> {
        let (products, counts) = sums.0.split_at(sums.0.len() / 2);
        Ok(Self { products: unpacked(products, d)?, counts: unpacked(counts, d)? })
    }

    /// The products of block `b`, a lower triangle.
    pub(in crate::infer) fn products_of(data: &Dataset, b: usize, frame: &Frame) -> Vec<f64> {
        Self::products_of_rows(data, data.block(b), frame)
    }

    /// The counts of block `b`, a lower triangle.
    pub(in crate::infer) fn counts_of(data: &Dataset, b: usize) -> Vec<f64> {
        Self::counts_of_rows(data.sorted_block(b), data.block(b), data.n_columns())
    }

    fn counts(data: &Dataset) -> Matrix {
        let d = data.n_columns();
        lower(&Self::counts_of_rows(data.sorted(), 0..data.n_rows(), d), d)
    }

    /// Rows that have both columns of each pair, from one bitset of gaps per column: 64 rows per
    /// operation.
    fn counts_of_rows(patterns: &Patterns, rows: Range<usize>, d: usize) -> Vec<f64> {
        let n = rows.len();
        let words = n.div_ceil(64);
        let mut gaps = vec![0_u64; d * words];
        for pattern in (0..patterns.len()).map(|p| patterns.get(p)) {
            for &j in pattern.gaps {
                for i in pattern.rows.iter().map(|i| i - rows.start) {
                    gaps[j as usize * words + i / 64] |= 1 << (i % 64);
                }
            }
        }
        let rows: Vec<Vec<f64>> = parallel::map(d, |j| {
            let of = |k: usize| &gaps[k * words..][..words];
            // Bits beyond the last row are not gaps either.
            let beyond = (64 * words - n) as u32;
            (0..=j).map(|k| f64::from(count_clear_in_both(of(j), of(k)) - beyond)).collect()
        });
        rows.concat()
    }

    fn products(data: &Dataset, frame: &Frame) -> Matrix {
        lower(&Self::products_of_rows(data, 0..data.n_rows(), frame), data.n_columns())
    }

    /// A lower triangle: what waits to be added is half of a matrix.
    fn products_of_rows(data: &Dataset, of: Range<usize>, frame: &Frame) -> Vec<f64> {
        let d = data.n_columns();
        let step = BLOCK_CELLS.div_ceil(d);
        let cells = &data.values().as_slice()[of.start * d..of.end * d];
        let part_of = |rows: Range<usize>| {
            let mut part = Matrix::zeros(d, d);
            let rows = &cells[rows.start * d..rows.end * d];
            let mut block = vec![0.0; (step * d).min(rows.len())];
            for rows in rows.chunks(step * d) {
                let block = &mut block[..rows.len()];
                center_observed(rows, &frame.mean, &frame.inverse, block);
                add_gram_lower(part.view_mut(), MatRef::from_row_major_slice(block, rows.len() / d, d));
            }
            triangle(part)
        };
        over_pieces(of.len(), step, part_of, |a, b| add(a, b))
    }

    pub(super) fn covariance(&self) -> Matrix {
        let d = self.products.n_rows();
        let mut s = Matrix::from_fn(d, d, |i, j| {
            if j > i || self.counts[(i, j)] == 0.0 {
                0.0
            } else {
                self.products[(i, j)] / self.counts[(i, j)]
            }
        });
        s.mirror_lower();
        s
    }
}
