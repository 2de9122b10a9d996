//! Canonical correlation of two views by sparse vectors [M 2.9.2].

use super::PenalizedDecomposition;
use super::penalized_decomposition::{SparseProduct, times};
use crate::linalg::dot;
use crate::parallel;
use crate::{Dataset, Error, Matrix};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Sparse canonical correlation (Witten, Tibshirani & Hastie 2009): the penalized decomposition of the correlations between two
/// views,
///
/// ```text
/// max  uᵀ C v      ‖u‖₂ ≤ 1,  ‖v‖₂ ≤ 1,  ‖u‖₁ ≤ c_x √dx,  ‖v‖₁ ≤ c_y √dy        C: correlations of the columns of X with those of Y
/// ```
///
/// then the same of what that leaves of C. Columns within a view are treated as if they were uncorrelated, so that views may have
/// more columns than rows. With gaps each entry of C is over the rows that have both cells.
///
/// ```
/// use covary::{infer::{Penalties, SparseCca}, Dataset, Matrix};
/// let (wave, other) = (|i: usize, f: f64| (i as f64 * f).sin(), |i: usize, j: usize| ((i * i * (j + 3)) as f64).cos());
/// let x = Matrix::from_fn(60, 4, |i, j| if j < 2 { wave(i, 0.3) + 0.1 * other(i, j) } else { other(i, j) });
/// let y = Matrix::from_fn(60, 3, |i, j| if j == 0 { -wave(i, 0.3) } else { other(i, j + 9) });
/// let method = SparseCca { penalties: Penalties::Given([0.7, 0.6]), ..SparseCca::default() };
/// let found = method.fit(&Dataset::new(x)?, &Dataset::new(y)?)?;
/// assert!(found.correlations[0] > 0.99 && found.weights[0][(2, 0)] == 0.0 && found.weights[1][(1, 0)] == 0.0);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SparseCca {
    /// Pairs of canonical vectors.
    pub n_components: usize,
    /// c_x and c_y.
    pub penalties: Penalties,
    /// Most iterations for each pair.
    pub max_iterations: usize,
    /// Stop when no entry of v moves by more than this in an iteration.
    pub tolerance: f64,
}

/// How sparse canonical vectors are: bounds of their absolute sums, as shares of the root of the number of columns, above 0 and
/// at most 1. The smaller, the more zeros; 1 is no bound.
#[derive(Debug, Clone, PartialEq)]
pub enum Penalties {
    /// These, for x and y.
    Given([f64; 2]),
    /// One for both of ten from 0.1 to 0.7: that at which the first correlation stands out most from those of views whose rows
    /// are permuted.
    Permutation {
        /// How many permutations.
        n: usize,
        /// Which.
        seed: u64,
    },
}

impl Default for SparseCca {
    fn default() -> Self {
        Self {
            n_components: 1,
            penalties: Penalties::Permutation { n: 25, seed: 0 },
            max_iterations: 1000,
            tolerance: 1e-9,
        }
    }
}

/// What [`SparseCca`] finds.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseCanonical {
    /// Means of the observed cells of the columns of x, and of y.
    pub means: [Vec<f64>; 2],
    /// Their standard deviations; 1 for a constant column, whose weights are 0.
    pub scales: [Vec<f64>; 2],
    /// Canonical vectors of standardized columns, one per column, of unit length; in those of x the entry of largest absolute
    /// value is positive.
    pub weights: [Matrix; 2],
    /// Correlation of each pair of variates, with gaps by the correlations of columns over the rows that have both.
    pub correlations: Vec<f64>,
    /// c_x and c_y.
    pub penalties: [f64; 2],
    /// Iterations that each pair took.
    pub n_iterations: Vec<usize>,
    /// What permutations said of each penalty; empty where they were given.
    pub tried: Vec<TriedPenalty>,
}

/// How a penalty fared beside permuted rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TriedPenalty {
    /// c_x and c_y.
    pub penalty: f64,
    /// The first correlation.
    pub correlation: f64,
    /// By how many standard deviations of the permuted ones it exceeds their mean, on Fisher's scale.
    pub z: f64,
    /// Share of the permutations whose correlation is at least as large, the table itself being one of them. It is that of one penalty:
    /// the best of several has a smaller one by chance.
    pub p_value: f64,
}

impl SparseCanonical {
    /// Variates of rows of view 0 or 1, n × k; a missing cell counts as the mean of its column.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns.
    ///
    /// # Panics
    /// For a view beyond 1.
    pub fn transform(&self, view: usize, data: &Dataset) -> Result<Matrix, Error> {
        let (expected, got) = (self.means[view].len(), data.n_columns());
        if expected != got {
            return Err(Error::ColumnCount { expected, got });
        }
        Ok(standardized(data, &self.means[view], &self.scales[view]).dot(&self.weights[view]))
    }
}

const PENALTIES: usize = 10;
/// Power iterations to the first vectors.
const POWERS: usize = 30;

impl SparseCca {
    /// Fits.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless the views have the same number of rows, [`Error::TooFewRows`], [`Error::EmptyColumn`],
    /// [`Error::TooManyComponents`] beyond the smaller view, [`Error::OutOfRange`] for an option.
    pub fn fit(&self, x: &Dataset, y: &Dataset) -> Result<SparseCanonical, Error> {
        self.check(x, y)?;
        let views = Views::new(x, y);
        let (penalties, tried) = match self.penalties {
            Penalties::Given(penalties) => (penalties, Vec::new()),
            Penalties::Permutation { n, seed } => {
                let tried = self.tried(&views, n, seed);
                let best = tried.iter().fold(tried[0], |best, one| if one.z > best.z { *one } else { best });
                ([best.penalty; 2], tried)
            }
        };
        let pairs = self.pairs(&views.cross(None), self.n_components, penalties);
        let (dx, dy) = (x.n_columns(), y.n_columns());
        // The largest weight of x is positive.
        let sign = |p: &SparseProduct| {
            let largest = p.left.iter().fold(0.0_f64, |m, v| if v.abs() > m.abs() { *v } else { m });
            if largest < 0.0 { -1.0 } else { 1.0 }
        };
        let signs: Vec<f64> = pairs.iter().map(sign).collect();
        let k = self.n_components;
        Ok(SparseCanonical {
            weights: [
                Matrix::from_fn(dx, k, |j, k| signs[k] * pairs[k].left[j]),
                Matrix::from_fn(dy, k, |j, k| signs[k] * pairs[k].right[j]),
            ],
            correlations: pairs.iter().map(|pair| views.correlation(pair, None)).collect(),
            means: [x.observed_means().to_vec(), y.observed_means().to_vec()],
            scales: [scales(x), scales(y)],
            penalties,
            n_iterations: pairs.iter().map(|pair| pair.n_iterations).collect(),
            tried,
        })
    }

    fn check(&self, x: &Dataset, y: &Dataset) -> Result<(), Error> {
        let out = |name, value, bound| Err(Error::OutOfRange { name, value, bound });
        let (rows, max) = (x.n_rows(), x.n_columns().min(y.n_columns()));
        if rows != y.n_rows() {
            return Err(Error::WrongLength {
                what: "rows of the second view",
                expected: rows,
                got: y.n_rows(),
            });
        }
        if rows < 2 {
            return Err(Error::TooFewRows { rows });
        }
        for data in [x, y] {
            if let Some(j) = data.n_observed_by_column().iter().position(|&n| n == 0) {
                return Err(Error::EmptyColumn { column: data.column_names()[j].clone() });
            }
        }
        let asked = self.n_components;
        if asked == 0 || asked > max {
            return Err(Error::TooManyComponents { asked, rows, columns: max, max });
        }
        match self.penalties {
            Penalties::Given(both) => match both.into_iter().find(|c| !(*c > 0.0 && *c <= 1.0)) {
                Some(value) => out("a penalty", value, "above 0 and at most 1"),
                None => Ok(()),
            },
            Penalties::Permutation { n, .. } if n < 2 => {
                out("the number of permutations", n as f64, "2 or more")
            }
            Penalties::Permutation { .. } => Ok(()),
        }
    }

    /// How each penalty fares beside permutations of the rows of y, as Witten and Tibshirani (2009) choose it: a twentieth keeps the
    /// standard deviation of few permutations from being 0.
    fn tried(&self, views: &Views<'_>, n: usize, seed: u64) -> Vec<TriedPenalty> {
        let fisher = |r: f64| r.clamp(-1.0 + 1e-12, 1.0 - 1e-12).atanh();
        let candidates: Vec<f64> =
            (0..PENALTIES).map(|k| 0.1 + 0.6 * k as f64 / (PENALTIES - 1) as f64).collect();
        let correlations = |order: Option<&[usize]>| -> Vec<f64> {
            let cross = views.cross(order);
            let first = |c: &f64| views.correlation(&self.pairs(&cross, 1, [*c; 2])[0], order);
            candidates.iter().map(first).collect()
        };
        let actual = correlations(None);
        let permuted = parallel::map(n, |k| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(k as u64 + 1);
            let mut order: Vec<usize> = (0..views.n).collect();
            (1..views.n).rev().for_each(|i| order.swap(i, rng.random_range(0..=i)));
            correlations(Some(&order))
        });
        let of = |(k, &penalty): (usize, &f64)| {
            let chance: Vec<f64> = permuted.iter().map(|r| fisher(r[k])).collect();
            let mean = chance.iter().sum::<f64>() / n as f64;
            let variance = chance.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
            let z = (fisher(actual[k]) - mean) / (variance.sqrt() + 0.05);
            let above = permuted.iter().filter(|r| r[k] >= actual[k]).count();
            TriedPenalty { penalty, correlation: actual[k], z, p_value: (above + 1) as f64 / (n + 1) as f64 }
        };
        candidates.iter().enumerate().map(of).collect()
    }

    /// The first pairs of vectors.
    fn pairs(&self, cross: &Cross, n: usize, penalties: [f64; 2]) -> Vec<SparseProduct> {
        // A sum of absolute values of unit length cannot be below 1.
        let bound = |c: f64, d: usize| (c < 1.0).then(|| (c * (d as f64).sqrt()).max(1.0));
        let method = PenalizedDecomposition {
            n_components: n,
            left_bound: bound(penalties[0], cross.dx),
            right_bound: bound(penalties[1], cross.dy),
            max_iterations: self.max_iterations,
            tolerance: self.tolerance,
        };
        let free = PenalizedDecomposition {
            left_bound: None,
            right_bound: None,
            max_iterations: POWERS,
            tolerance: 1e-6,
            ..method.clone()
        };
        let mut found: Vec<SparseProduct> = Vec::with_capacity(n);
        for _ in 0..n {
            let forward = |v: &[f64]| {
                let mut image = cross.forward(v);
                for p in &found {
                    let along = p.value * dot(&p.right, v);
                    image.iter_mut().zip(&p.left).for_each(|(x, u)| *x -= along * u);
                }
                image
            };
            let backward = |u: &[f64]| {
                let mut image = cross.backward(u);
                for p in &found {
                    let along = p.value * dot(&p.left, u);
                    image.iter_mut().zip(&p.right).for_each(|(x, v)| *x -= along * v);
                }
                image
            };
            // Any vector that is not orthogonal to the first will do, and this one is not by design.
            let start = (0..cross.dy).map(|j| 1.0 + 0.1 * (j as f64 * 0.754_877_666).fract()).collect();
            let start = free.climb(&forward, &backward, start).right;
            let product = method.climb(&forward, &backward, start);
            found.push(product);
        }
        found
    }
}

/// Both views with standardized columns, gaps as 0, and whether cells are there.
struct Views<'a> {
    data: [&'a Dataset; 2],
    standard: [Matrix; 2],
    /// 1 where a cell is observed; only if there are gaps.
    seen: Option<[Matrix; 2]>,
    n: usize,
}

impl<'a> Views<'a> {
    fn new(x: &'a Dataset, y: &'a Dataset) -> Self {
        let standard = [x, y].map(|data| standardized(data, data.observed_means(), &scales(data)));
        let cells = |data: &Dataset| {
            Matrix::from_fn(data.n_rows(), data.n_columns(), |i, j| {
                f64::from(u8::from(!data.row(i)[j].is_nan()))
            })
        };
        let seen = (!(x.is_complete() && y.is_complete())).then(|| [x, y].map(cells));
        Self { data: [x, y], standard, seen, n: x.n_rows() }
    }

    /// Correlations of columns of x with those of y, whose rows are in this order.
    fn cross(&self, order: Option<&[usize]>) -> Cross {
        let arranged = |m: &Matrix| match order {
            Some(order) => Matrix::from_fn(self.n, m.n_columns(), |i, j| m[(order[i], j)]),
            None => m.clone(),
        };
        let [x, y] = [&self.standard[0], &self.standard[1]];
        let (dx, dy) = (x.n_columns(), y.n_columns());
        let y = arranged(y);
        // Views of many columns are multiplied one after the other, and the dx × dy matrix is never there.
        let parts = if self.seen.is_none() && self.n * (dx + dy) < dx * dy {
            Parts::Views { x: x.clone(), across: [x.transpose(), y.transpose()], y, n: self.n as f64 }
        } else {
            let mut c = x.t_dot(&y);
            match &self.seen {
                Some([a, b]) => {
                    let together = a.t_dot(&arranged(b));
                    c.as_mut_slice().iter_mut().zip(together.as_slice()).for_each(|(c, n)| *c /= n.max(1.0));
                }
                None => c.as_mut_slice().iter_mut().for_each(|c| *c /= self.n as f64),
            }
            Parts::Whole { across: c.transpose(), whole: c }
        };
        Cross { dx, dy, parts }
    }

    /// `uᵀ C v / √(uᵀ Rx u · vᵀ Ry v)`, over the columns that have weights.
    fn correlation(&self, pair: &SparseProduct, order: Option<&[usize]>) -> f64 {
        if self.seen.is_none() {
            let [u, v] = [times(&self.standard[0], &pair.left), times(&self.standard[1], &pair.right)];
            let both: f64 = (0..self.n).map(|i| u[i] * v[order.map_or(i, |order| order[i])]).sum();
            return quotient(both, dot(&u, &u) * dot(&v, &v));
        }
        let within = |view: usize, w: &[f64]| {
            let kept: Vec<usize> = (0..w.len()).filter(|&j| w[j] != 0.0).collect();
            let Ok(part) = self.data[view].of_columns(&kept) else { return 0.0 };
            let (s, scale) = (part.pairwise_covariance(), scales(&part));
            let scaled: Vec<f64> = kept.iter().zip(&scale).map(|(&j, s)| w[j] / s).collect();
            dot(&times(&s, &scaled), &scaled)
        };
        let cross = self.cross(order);
        let both = dot(&pair.left, &cross.forward(&pair.right));
        quotient(both, within(0, &pair.left) * within(1, &pair.right)).clamp(-1.0, 1.0)
    }
}

fn quotient(both: f64, square: f64) -> f64 {
    if square > 0.0 { both / square.sqrt() } else { 0.0 }
}

/// C, by its products with vectors.
struct Cross {
    dx: usize,
    dy: usize,
    parts: Parts,
}

enum Parts {
    Whole { whole: Matrix, across: Matrix },
    Views { x: Matrix, y: Matrix, across: [Matrix; 2], n: f64 },
}

impl Cross {
    fn forward(&self, v: &[f64]) -> Vec<f64> {
        match &self.parts {
            Parts::Whole { whole, .. } => times(whole, v),
            Parts::Views { y, across, n, .. } => {
                times(&across[0], &times(y, v)).into_iter().map(|c| c / n).collect()
            }
        }
    }

    fn backward(&self, u: &[f64]) -> Vec<f64> {
        match &self.parts {
            Parts::Whole { across, .. } => times(across, u),
            Parts::Views { x, across, n, .. } => {
                times(&across[1], &times(x, u)).into_iter().map(|c| c / n).collect()
            }
        }
    }
}

fn scales(data: &Dataset) -> Vec<f64> {
    data.observed_variances().iter().map(|v| if *v > 0.0 { v.sqrt() } else { 1.0 }).collect()
}

fn standardized(data: &Dataset, means: &[f64], scales: &[f64]) -> Matrix {
    Matrix::from_fn(data.n_rows(), data.n_columns(), |i, j| {
        let cell = data.row(i)[j];
        if cell.is_nan() { 0.0 } else { (cell - means[j]) / scales[j] }
    })
}
