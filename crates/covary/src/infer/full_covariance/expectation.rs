//! The E-step: expected first and second moments of the rows, gaps filled.
//!
//! A row with few gaps is filled from the block of its gaps in P = Σ⁻¹ (see
//! [`gap_blocks`](crate::model::gap_blocks)); one with few observed cells from their block of Σ, where
//! nothing of the size of its gaps is ever formed:
//! ```text
//! η = Σ_oo⁻¹ y_o        ⟨y⟩ = Σ_:o η        ⟨yyᵀ⟩ = Σ + Σ_:o (ηηᵀ − Σ_oo⁻¹) Σ_o:        y = t − μ
//! ```
//! so that the sum over such rows is `n Σ + Σ H Σ` with `H = Σᵢ (ηηᵀ − Σ_oo⁻¹)`, o × o for each row.

use super::Gaussian;
use crate::data::{Pattern, Patterns};
use crate::infer::em::parameters::Frame;
use crate::infer::report::NEVER;
use crate::linalg::blocks::{Blocks, Inverted};
use crate::linalg::{add_gram_lower, dot, packed};
use crate::model::gap_blocks::{Filled, GapBlocks};
use crate::parallel::{add, over_pieces};
use crate::{Dataset, Error, Matrix};
use faer::MatRef;
use std::f64::consts::PI;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the rows say: all the M-step needs, and the log-likelihood.
pub(in crate::infer) struct Moments {
    /// `Σᵢ ⟨y⟩`
    pub(in crate::infer) first: Vec<f64>,
    /// `Σᵢ ⟨yyᵀ⟩`, lower triangle.
    pub(in crate::infer) second: Matrix,
    /// `ℓ` of the observed cells, in units of the frame.
    pub(super) log_likelihood: f64,
}

/// How often rows count, from the one of this number on: `None` is once each.
#[derive(Clone, Copy)]
struct Weights<'a>(Option<&'a [f64]>, usize);

impl Weights<'_> {
    #[inline(always)]
    fn of(self, row: usize) -> f64 {
        self.0.map_or(1.0, |weights| weights[row - self.1])
    }

    #[inline(always)]
    fn sum(self, rows: &[usize]) -> f64 {
        self.0.map_or(rows.len() as f64, |weights| rows.iter().map(|&i| weights[i - self.1]).sum())
    }
}

/// Sums over the rows of a piece.
struct Sums {
    first: Vec<f64>,
    second: Matrix,
    /// `Σᵢ η` and `Σᵢ (ηηᵀ − Σ_oo⁻¹)` of rows with more gaps than observed cells.
    pull: Vec<f64>,
    pull_second: Option<Matrix>,
    /// `Σᵢ ln |P_mm|` or `ln |Σ_oo|`, and `Σᵢ yᵀη` where it is not a trace.
    ln_det: f64,
    distance: f64,
    /// Rows with few gaps and these gaps; rows with few observed cells and their gaps.
    counts: [f64; 4],
}

impl Sums {
    fn new(d: usize) -> Self {
        let (first, pull) = (vec![0.0; d], vec![0.0; d]);
        let second = Matrix::zeros(d, d);
        Self { first, second, pull, pull_second: None, ln_det: 0.0, distance: 0.0, counts: [0.0; 4] }
    }

    /// As many numbers as [`into_numbers`](Self::into_numbers) gives.
    fn numbers_len(d: usize) -> usize {
        2 * (d + packed::len(d)) + 6
    }

    /// The sums one after the other: those of disjoint rows at the same Gaussian add as these do.
    fn into_numbers(self) -> Vec<f64> {
        let triangle = |m: &Matrix| -> Vec<f64> {
            m.rows().enumerate().flat_map(|(i, row)| row[..=i].iter().copied()).collect()
        };
        let none = || vec![0.0; packed::len(self.first.len())];
        let pull_second = self.pull_second.as_ref().map_or_else(none, triangle);
        let scalars = [self.ln_det, self.distance];
        [&self.first, &triangle(&self.second), &self.pull, &pull_second, &scalars[..], &self.counts].concat()
    }

    fn of_numbers(d: usize, numbers: &[f64]) -> Result<Self, Error> {
        if numbers.len() != Self::numbers_len(d) {
            return Err(Error::DamagedState { why: "its length is not that of its shape" });
        }
        let (first, rest) = numbers.split_at(d);
        let (second, rest) = rest.split_at(packed::len(d));
        let (pull, rest) = rest.split_at(d);
        let (pull_second, rest) = rest.split_at(packed::len(d));
        let counts = [rest[2], rest[3], rest[4], rest[5]];
        let lower = |triangle: &[f64]| {
            Matrix::from_fn(d, d, |i, j| if j <= i { triangle[packed::len(i) + j] } else { 0.0 })
        };
        Ok(Self {
            first: first.to_vec(),
            second: lower(second),
            pull: pull.to_vec(),
            pull_second: (counts[2] > 0.0).then(|| lower(pull_second)),
            ln_det: rest[0],
            distance: rest[1],
            counts,
        })
    }

    fn merge(&mut self, other: &Self) {
        add(&mut self.first, &other.first);
        add(self.second.as_mut_slice(), other.second.as_slice());
        add(&mut self.pull, &other.pull);
        match (&mut self.pull_second, &other.pull_second) {
            (Some(a), Some(b)) => add(a.as_mut_slice(), b.as_slice()),
            (a @ None, Some(b)) => *a = Some(b.clone()),
            (_, None) => {}
        }
        self.ln_det += other.ln_det;
        self.distance += other.distance;
        add(&mut self.counts, &other.counts);
    }
}

impl Sums {
    /// Over rows of a table in some order.
    fn of(
        (data, order): (&Dataset, &Patterns),
        frame: &Frame,
        at: &Gaussian,
        weights: Weights<'_>,
        stop: &AtomicBool,
    ) -> Self {
        let go_on = || !stop.load(Ordering::Relaxed);
        let d = data.n_columns();
        let (units, precision) = ((&at.mean[..], &frame.inverse[..]), (&at.precision, at.covariance.trace()));
        let blocks = GapBlocks::new((data, order), units, precision);
        let sparse = Sparse::new((data, order), frame, at, weights);
        let mut sums = over_pieces(
            order.n_rows(),
            blocks.block_rows,
            |rows| {
                let mut sums = Self::new(d);
                let dense = |strip: &Pattern<'_>| few_gaps(strip) && weights.sum(strip.rows) > 0.0 && go_on();
                blocks.for_blocks(rows.clone(), dense, |strips, filled| {
                    let unit = blocks.unit();
                    blocks.arch.dispatch(Spread { strips, filled, unit, weights, sums: &mut sums });
                    let y = MatRef::from_row_major_slice(&filled.y, filled.y.len() / d, d);
                    add_gram_lower(sums.second.view_mut(), y);
                });
                if let Some(sparse) = &sparse {
                    let asked = |strip: &Pattern<'_>| few_observed(strip) && weights.sum(strip.rows) > 0.0;
                    let strips: Vec<_> = order.strips(rows, usize::MAX).filter(asked).collect();
                    for batch in strips.chunks(BATCH).take_while(|_| go_on()) {
                        blocks.arch.dispatch(AddSparse(sparse, batch, &mut sums));
                    }
                }
                sums
            },
            Self::merge,
        );
        for pattern in (0..order.len()).map(|p| order.get(p)).filter(|p| p.n_observed() > 0) {
            let (n, of) = (weights.sum(pattern.rows), if few_gaps(&pattern) { 0 } else { 2 });
            sums.counts[of] += n;
            sums.counts[of + 1] += n * pattern.gaps.len() as f64;
        }
        sums
    }
}

/// Whether a row is filled from the block of its gaps.
fn few_gaps(strip: &Pattern<'_>) -> bool {
    strip.gaps.len() <= strip.n_observed()
}

/// Whether a row is filled from the block of its observed cells.
fn few_observed(strip: &Pattern<'_>) -> bool {
    strip.n_observed() > 0 && !few_gaps(strip)
}

impl Moments {
    /// Of the rows, each counted as often as its weight says.
    pub(in crate::infer) fn of(
        data: &Dataset,
        frame: &Frame,
        at: &Gaussian,
        weights: Option<&[f64]>,
    ) -> Self {
        Self::gather(Sums::of((data, data.sorted()), frame, at, Weights(weights, 0), &NEVER), at)
    }

    /// The sums over block `b` of a table as numbers, each of its rows counted as often as its weight says, of no use once `stop`
    /// is set: the rows that are left are passed over.
    pub(in crate::infer) fn sums_of_block(
        (data, b): (&Dataset, usize),
        frame: &Frame,
        at: &Gaussian,
        weights: Option<&[f64]>,
        stop: &AtomicBool,
    ) -> Vec<f64> {
        let weights = Weights(weights, data.block(b).start);
        Sums::of((data, data.sorted_block(b)), frame, at, weights, stop).into_numbers()
    }

    /// How many numbers the sums of d columns are.
    pub(in crate::infer) fn numbers_len(d: usize) -> usize {
        Sums::numbers_len(d)
    }

    /// What the rows say whose sums are `numbers`.
    pub(in crate::infer) fn of_numbers(at: &Gaussian, numbers: &[f64]) -> Result<Self, Error> {
        Ok(Self::gather(Sums::of_numbers(at.mean.len(), numbers)?, at))
    }

    fn gather(sums: Sums, at: &Gaussian) -> Self {
        let Sums { mut first, mut second, pull, pull_second, ln_det, distance, counts } = sums;
        let d = first.len();
        let [dense, gaps, sparse, sparse_gaps] = counts;
        // tr P Σᵢ⟨yyᵀ⟩ = Σᵢ ŷᵀPŷ + Σᵢ tr P_mm P_mm⁻¹, and ŷᵀPŷ = y_oᵀ Σ_oo⁻¹ y_o.
        let mut trace = 0.0;
        for i in 0..d {
            let (p, s) = (&at.precision.row(i)[..=i], &second.row(i)[..=i]);
            trace += 2.0 * dot(p, s) - p[i] * s[i];
        }
        let observed = (dense + sparse) * d as f64 - gaps - sparse_gaps;
        let cells = observed * (2.0 * PI).ln();
        let log_likelihood = -0.5 * (cells + dense * at.ln_det + ln_det + trace - gaps + distance);
        if let Some(mut h) = pull_second {
            h.mirror_lower();
            let sandwich = at.covariance.dot(&h).dot(&at.covariance);
            for i in 0..d {
                first[i] += dot(at.covariance.row(i), &pull);
                for j in 0..=i {
                    second[(i, j)] += sparse * at.covariance[(i, j)] + sandwich[(i, j)];
                }
            }
        }
        Self { first, second, log_likelihood }
    }
}

/// Adds the first moments of a block's rows, and the covariances of its gaps.
struct Spread<'k> {
    strips: &'k [Pattern<'k>],
    filled: &'k mut Filled,
    unit: f64,
    weights: Weights<'k>,
    sums: &'k mut Sums,
}

impl pulp::WithSimd for Spread<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { strips, filled, unit, weights, sums } = self;
        let d = sums.first.len();
        if weights.0.is_none() {
            for y in filled.y.chunks_exact(d) {
                add(&mut sums.first, y);
            }
        } else {
            // A row of weight r enters the second moments as √r y.
            let rows = strips.iter().flat_map(|strip| strip.rows);
            for (y, &i) in filled.y.chunks_exact_mut(d).zip(rows) {
                let root = weights.of(i).sqrt();
                for (sum, y) in sums.first.iter_mut().zip(y) {
                    *y *= root;
                    *sum += root * *y;
                }
            }
        }
        for (k, strip) in strips.iter().enumerate().filter(|(_, strip)| !strip.gaps.is_empty()) {
            let n = weights.sum(strip.rows);
            sums.ln_det += n * filled.inverted.ln_det(k);
            scatter(filled.inverted.block(k), strip.gaps, n * unit, &mut sums.second);
        }
    }
}

/// Adds `weight ·` a packed block to the rows and columns `at` of a lower triangle.
#[inline(always)]
fn scatter(block: &[f64], at: &[u32], weight: f64, sum: &mut Matrix) {
    let mut rest = block;
    for (i, &a) in at.iter().enumerate() {
        let (row, tail) = rest.split_at(i + 1);
        let to = sum.row_mut(a as usize);
        for (&b, v) in at.iter().zip(row) {
            to[b as usize] += weight * v;
        }
        rest = tail;
    }
}

/// Rows with more gaps than observed cells.
struct Sparse<'a> {
    data: &'a Dataset,
    frame: &'a Frame,
    at: &'a Gaussian,
    weights: Weights<'a>,
    blocks: Blocks,
}

/// Strips whose blocks are inverted together.
const BATCH: usize = 64;

impl<'a> Sparse<'a> {
    /// `None` if there is no such row.
    fn new(
        (data, order): (&'a Dataset, &Patterns),
        frame: &'a Frame,
        at: &'a Gaussian,
        weights: Weights<'a>,
    ) -> Option<Self> {
        let blocks = || Blocks::new(&at.covariance, at.precision.trace());
        let any = (0..order.len()).any(|p| few_observed(&order.get(p)));
        any.then(|| Self { data, frame, at, weights, blocks: blocks() })
    }

    #[inline(always)]
    fn add(&self, strips: &[Pattern<'_>], sums: &mut Sums) {
        let d = self.data.n_columns();
        let mut columns: Vec<u32> = Vec::new();
        let mut starts = vec![0];
        for strip in strips {
            strip.for_observed(|j| columns.push(j as u32));
            starts.push(columns.len());
        }
        let observed = |k: usize| &columns[starts[k]..starts[k + 1]];
        let mut inverted = Inverted::default();
        self.blocks.invert(observed, strips.len(), &mut inverted);
        let h = sums.pull_second.get_or_insert_with(|| Matrix::zeros(d, d));
        let (mut y, mut eta, mut second) = (Vec::new(), Vec::new(), Vec::new());
        for (k, strip) in strips.iter().enumerate() {
            let (observed, inverse) = (observed(k), inverted.block(k));
            let n = self.weights.sum(strip.rows);
            sums.ln_det += n * inverted.ln_det(k);
            eta.resize(observed.len(), 0.0);
            second.clear();
            second.extend(inverse.iter().map(|v| -n * self.blocks.unit() * v));
            for &i in strip.rows {
                let t = self.data.row(i);
                let at = |&j: &u32| {
                    let j = j as usize;
                    (t[j] - self.at.mean[j]) * self.frame.inverse[j]
                };
                y.clear();
                y.extend(observed.iter().map(at));
                packed::symmetric_times(inverse, &y, &mut eta);
                for v in &mut eta {
                    *v *= self.blocks.unit();
                }
                let weight = self.weights.of(i);
                sums.distance += weight * dot(&y, &eta);
                packed::add_outer(&mut second, &eta, weight);
                observed.iter().zip(&eta).for_each(|(&j, eta)| sums.pull[j as usize] += weight * eta);
            }
            scatter(&second, observed, 1.0, h);
        }
    }
}

/// [`Sparse::add`], compiled for the widest vectors the machine has.
struct AddSparse<'k, 'a>(&'k Sparse<'a>, &'k [Pattern<'k>], &'k mut Sums);

impl pulp::WithSimd for AddSparse<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        self.0.add(self.1, self.2);
    }
}
