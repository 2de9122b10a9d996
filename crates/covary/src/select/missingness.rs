use crate::linalg::{Cholesky, dot};
use crate::model::check_columns;
use crate::parallel;
use crate::{Dataset, Error, LinearGaussian, Matrix};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::fmt;

/// Probability of any false report in a table whose gaps come completely at random.
const FAMILY_WISE: f64 = 0.01;
/// Weaker correlations are not worth a word, however many rows prove them.
const WEAKEST: f64 = 0.1;
/// Fewest gaps, and fewest observed cells, of a column that is tested.
const FEWEST: usize = 5;
/// Permutations of the rows. The smallest possible p-value is one over one more.
const PERMUTATIONS: usize = 999;
/// Most rows used: a correlation of 0.1, the weakest worth a word, is then more than six standard
/// errors.
const MOST_ROWS: usize = 4000;
/// Rows that are used, if there are as many, however wide the table is.
const FEWEST_ROWS: usize = 200;
/// Cells used, except for the rows that are always used: a bound on the time and the memory.
const MOST_CELLS: usize = 4_000_000;
/// Gaps that are permuted: another bound on the time.
const MOST_GAPS: usize = 300_000;
/// Components of the model that are kept; the others count as noise of the columns.
const MOST_COMPONENTS: usize = 8;
/// Least noise variance as a share of a column's: a score needs no more precision.
const LEAST_NOISE: f64 = 1e-6;

/// A column whose gaps follow the first component.
#[derive(Debug, Clone, PartialEq)]
pub struct GapTrend {
    /// The column, from 0.
    pub column: usize,
    /// Its name.
    pub name: String,
    /// Correlation over rows between "this cell is missing" and the rank of the row's score on the first
    /// component.
    pub correlation: f64,
    /// Two-sided p-value of the permutation test, adjusted for all columns tested: the share of permutations,
    /// the table itself included, in which any column has a correlation as large.
    pub p_value: f64,
}

impl GapTrend {
    /// Whether it is worth a word: adjusted p-value of at most 1 %, correlation of 0.1 or more in size.
    pub fn stands_out(&self) -> bool {
        self.p_value <= FAMILY_WISE && self.correlation.abs() >= WEAKEST
    }
}

impl fmt::Display for GapTrend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, correlation, .. } = self;
        let level = if *correlation > 0.0 { "high" } else { "low" };
        write!(
            f,
            "gaps in `{name}` are more frequent where component 1 is {level} (correlation {correlation:.2}): dropping incomplete rows would bias the rest; the model stays valid if the gaps depend only on observed cells, so keep columns that explain them"
        )
    }
}

/// The columns that were tested, and on how much of the table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GapTests {
    /// Every column tested.
    pub columns: Vec<GapTrend>,
    /// Rows used.
    pub n_rows_used: usize,
    /// Rows that could have been: those with an observed cell.
    pub n_rows: usize,
    /// Columns that could have been tested: those with at least five gaps and five observed cells in the rows
    /// used.
    pub n_columns: usize,
}

impl GapTests {
    /// The columns worth a word.
    pub fn trends(&self) -> impl Iterator<Item = &GapTrend> {
        self.columns.iter().filter(|trend| trend.stands_out())
    }

    /// How much of a large table was used, such as "4000 of 40000 rows"; `None` if all of it was.
    pub fn sampled(&self) -> Option<String> {
        let part = |used: usize, all: usize, of: &str| (used < all).then(|| format!("{used} of {all} {of}"));
        let parts = [
            part(self.n_rows_used, self.n_rows, "rows"),
            part(self.columns.len(), self.n_columns, "columns with gaps"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(" and "))
    }
}

/// The columns whose gaps follow the first component of the fitted model, which gaps that come
/// completely at random do not.
///
/// For column j, rows are compared by their score without that column, whether it is observed or
/// not: the posterior mean of the first component given all other cells, over its standard deviation. (The
/// plain score would not do: it has seen column j exactly where j is observed.) Leaving one cell out is a
/// rank-one change:
///
/// ```text
/// x̂₋ⱼ = x̂ − V wⱼ eⱼ / rⱼ      V₋ⱼ = V + V wⱼ wⱼᵀ V / rⱼ      zⱼ = x̂₋ⱼ / √(1 − V₋ⱼ)   (first entries)
/// eⱼ = tⱼ − μⱼ − wⱼᵀ x̂        rⱼ = ψⱼ − wⱼᵀ V wⱼ             V = (I + Σ_observed wⱼ wⱼᵀ / ψⱼ)⁻¹
/// ```
///
/// The standard deviation matters because a row with many gaps has a score shrunk towards 0. The statistic is
/// the correlation of the gaps with the ranks of z, which no outlier dominates. **The test** permutes the gaps
/// of all columns together over the rows, 999 times, and compares each column with the largest correlation of
/// any column in each permutation (Westfall & Young). The level is therefore that of the whole family of
/// columns, however few the gaps and however the columns depend on each other, and no p-value is below 0.001. A
/// column is reported if its adjusted p-value is at most 1 % and the correlation is 0.1 or more in size. Columns
/// with fewer than five gaps or five values are not tested. The permutations are the same in every run.
///
/// Memory and time are bounded: at most 4000 rows and 4 million cells are used (but 200 rows in any case), and
/// as many columns as have 300 000 gaps together, all evenly spread; [`GapTests::sampled`] says how much. Of a
/// model with more than eight components, the others count as noise of each column.
///
/// **Measured** in 200 simulated tables each, two components, gaps completely at random, columns normal, lognormal (σ = 1.2)
/// and heavy-tailed (z³): a report in 2, 2 and 1 tables of 100 × 10 with 20 % gaps; 1, 1 and 2 of 1000 × 50; 3, 5 and 1 of
/// 40 × 8 with 30 %; 1, 1 and 2 of 80 × 5000 with about six gaps a column; 2 of 300 × 8 with gaps in blocks. Where the gaps of
/// one column depended on another (logit 2 z − 1, the others at random), that column was found in 182, 179 and 172 tables of
/// 50 × 10, in all of 100 × 10, 300 × 10 and 1000 × 50, in 195 of 80 × 5000 (normal).
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::Em, select::gap_trends, Dataset, Estimator, Matrix, Spec};
/// let (whole, _) = simulate::ppca(Shape { rows: 400, columns: 6, n_components: 1 }, /* seed */ 1);
/// // At random, nothing is found; with column 3 hidden where column 1 is high, it is named.
/// let random = simulate::hide(&whole, 0.3, /* seed */ 2);
/// let high = whole.observed_means()[1];
/// let cell = |i, j| if j == 3 && whole.row(i)[1] > high { f64::NAN } else { random.row(i)[j] };
/// let follows = Dataset::new(Matrix::from_fn(400, 6, cell))?;
/// let trends = |table| gap_trends(&Em::default().fit(table, &Spec::ppca(1))?.model, table);
/// assert_eq!(trends(&random)?, []);
/// assert_eq!(trends(&follows)?.iter().map(|t| t.column).collect::<Vec<_>>(), [3]);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// [`Error::ColumnCount`] if the table has other columns than the model.
pub fn gap_trends(model: &LinearGaussian, data: &Dataset) -> Result<Vec<GapTrend>, Error> {
    let mut tested = gap_tests(model, data)?.columns;
    tested.retain(GapTrend::stands_out);
    Ok(tested)
}

/// What [`gap_trends`] looks at: every column with at least five gaps and five values, whether its gaps
/// follow the first component or not.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::Em, select::gap_tests, Estimator, Spec};
/// let (whole, _) = simulate::ppca(Shape { rows: 400, columns: 6, n_components: 1 }, /* seed */ 1);
/// let random = simulate::hide(&whole, 0.3, /* seed */ 2);
/// let model = Em::default().fit(&random, &Spec::ppca(1))?.model;
/// let tests = gap_tests(&model, &random)?;
/// assert!(tests.columns.len() == 6 && tests.columns.iter().all(|t| t.correlation.abs() < 0.2));
/// assert!(tests.columns.iter().all(|t| t.p_value >= 0.001) && tests.trends().count() == 0);
/// assert_eq!(tests.sampled(), None);   // all rows and columns were used
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// [`Error::ColumnCount`] if the table has other columns than the model.
pub fn gap_tests(model: &LinearGaussian, data: &Dataset) -> Result<GapTests, Error> {
    check_columns(model.mean().len(), data)?;
    if model.n_components() == 0 || data.is_complete() {
        return Ok(GapTests::default());
    }
    let d = data.n_columns();
    let most_rows = (MOST_CELLS / d).clamp(FEWEST_ROWS, MOST_ROWS);
    // A row without an observed cell has no score.
    let mut informative = vec![true; data.n_rows()];
    for empty in data.patterns().filter(|p| p.n_observed() == 0) {
        empty.rows.iter().for_each(|&i| informative[i] = false);
    }
    let rows: Vec<usize> = data.spread_rows(most_rows).into_iter().filter(|&i| informative[i]).collect();
    let n = rows.len();
    let mut gaps = vec![Vec::new(); d];
    for (k, &i) in (0_u32..).zip(&rows) {
        let missing = data.row(i).iter().zip(&mut gaps).filter(|(v, _)| v.is_nan());
        missing.for_each(|(_, gaps)| gaps.push(k));
    }
    let mut columns: Vec<usize> =
        (0..d).filter(|&j| gaps[j].len() >= FEWEST && gaps[j].len() + FEWEST <= n).collect();
    let n_columns = columns.len();
    let permuted = |j: usize| gaps[j].len().min(n - gaps[j].len());
    let n_permuted: usize = columns.iter().map(|&j| permuted(j)).sum();
    if n_permuted > MOST_GAPS {
        let kept = (n_columns * MOST_GAPS / n_permuted).max(1);
        columns = (0..kept).map(|k| columns[k * n_columns / kept]).collect();
    }
    let scores = Scores::of(model, data, &rows);
    let columns: Vec<(usize, Vec<f64>)> =
        columns.into_iter().filter_map(|j| Some((j, scores.ranks_without(j)?))).collect();
    let observed: Vec<f64> =
        columns.iter().map(|(j, ranks)| sum_at(ranks, &gaps[*j]) / unit(n, gaps[*j].len())).collect();
    let largest = largest_by_chance(n, &columns, &gaps);
    let named = columns.iter().zip(observed).map(|(&(column, _), correlation)| {
        let as_large = largest.iter().filter(|&&r| r >= correlation.abs() - 1e-12).count();
        GapTrend {
            column,
            name: data.column_names()[column].clone(),
            correlation,
            p_value: (1 + as_large) as f64 / (1 + PERMUTATIONS) as f64,
        }
    });
    let n_rows = informative.iter().filter(|row| **row).count();
    Ok(GapTests { columns: named.collect(), n_rows_used: n, n_rows, n_columns })
}

/// `√(n₀ n₁)`: what the sum of the standardized ranks at the gaps is divided by for the correlation.
fn unit(n: usize, n_gaps: usize) -> f64 {
    ((n_gaps * (n - n_gaps)) as f64).sqrt()
}

fn sum_at(ranks: &[f64], rows: &[u32]) -> f64 {
    rows.iter().map(|&i| ranks[i as usize]).sum()
}

/// The largest absolute correlation of any column in each permutation of the rows of gaps.
fn largest_by_chance(n: usize, columns: &[(usize, Vec<f64>)], gaps: &[Vec<u32>]) -> Vec<f64> {
    let permutation = |b: usize| {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        rng.set_stream(b as u64);
        let mut rows: Vec<u32> = (0..n as u32).collect();
        rows.shuffle(&mut rng);
        rows
    };
    let permutations: Vec<Vec<u32>> = parallel::map(PERMUTATIONS, permutation);
    let nothing = || vec![0.0_f64; PERMUTATIONS];
    let larger = |mut a: Vec<f64>, b: Vec<f64>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a = a.max(b));
        a
    };
    let of_column = |mut largest: Vec<f64>, (j, ranks): &(usize, Vec<f64>)| {
        let (gaps, unit) = (&gaps[*j], unit(n, gaps[*j].len()));
        // The ranks sum to 0: what the gaps have, the observed cells lack.
        let fewer: Vec<u32> = if 2 * gaps.len() <= n {
            gaps.clone()
        } else {
            let mut missing = vec![false; n];
            for &i in gaps {
                missing[i as usize] = true;
            }
            (0..n as u32).filter(|&i| !missing[i as usize]).collect()
        };
        for (largest, rows) in largest.iter_mut().zip(&permutations) {
            let sum: f64 = fewer.iter().map(|&i| ranks[rows[i as usize] as usize]).sum();
            *largest = largest.max(sum.abs() / unit);
        }
        largest
    };
    // The maximum does not depend on the order in which threads finish.
    columns.par_iter().fold(nothing, of_column).reduce(nothing, larger)
}

/// Posterior of the components of each row.
struct Scores<'a> {
    data: &'a Dataset,
    rows: &'a [usize],
    mean: &'a [f64],
    /// W, its first few columns.
    w: Matrix,
    /// ψ, the other components included.
    psi: Vec<f64>,
    /// x̂ and V of each row.
    posterior: Vec<(Vec<f64>, Matrix)>,
}

impl<'a> Scores<'a> {
    fn of(model: &'a LinearGaussian, data: &'a Dataset, rows: &'a [usize]) -> Self {
        let (loadings, mean) = (model.loadings(), model.mean());
        let q = loadings.n_columns().min(MOST_COMPONENTS);
        let w = loadings.first_columns(q);
        let noise = |j: usize| {
            let variance = dot(loadings.row(j), loadings.row(j)) + model.noise().variance(j);
            (variance - dot(w.row(j), w.row(j))).max(LEAST_NOISE * variance).max(f64::MIN_POSITIVE)
        };
        let psi: Vec<f64> = (0..mean.len()).map(noise).collect();
        let posterior = |&i: &usize| {
            let mut precision = Matrix::identity(q);
            let mut x = vec![0.0; q];
            for (j, t) in data.row(i).iter().enumerate().filter(|(_, t)| !t.is_nan()) {
                let (w, weight) = (w.row(j), 1.0 / psi[j]);
                for a in 0..q {
                    x[a] += w[a] * weight * (t - mean[j]);
                    (0..=a).for_each(|b| precision[(a, b)] += w[a] * weight * w[b]);
                }
            }
            for a in 0..q {
                (0..a).for_each(|b| precision[(b, a)] = precision[(a, b)]);
            }
            // Numbers at the limits of f64 leave the row without a score.
            let v = Cholesky::new(&precision).map_or_else(|| Matrix::identity(q), |chol| chol.inverse());
            ((0..q).map(|a| dot(v.row(a), &x)).collect(), v)
        };
        let posterior = parallel::map(rows.len(), |k| posterior(&rows[k]));
        Self { data, rows, mean, w, psi, posterior }
    }

    /// Ranks of the rows by their score without column `j`, ties sharing theirs, with mean 0 and variance 1;
    /// `None` if all are equal.
    fn ranks_without(&self, j: usize) -> Option<Vec<f64>> {
        let (w, psi) = (self.w.row(j), self.psi[j]);
        let z = |(&i, (x, v)): (&usize, &(Vec<f64>, Matrix))| {
            let t = self.data.row(i)[j];
            let (mut score, mut variance) = (x[0], v[(0, 0)]);
            if !t.is_nan() {
                let pull = dot(v.row(0), w);
                let leverage: f64 = w.iter().enumerate().map(|(a, wa)| wa * dot(v.row(a), w)).sum();
                let rest = (psi - leverage).max(f64::MIN_POSITIVE);
                score -= pull * (t - self.mean[j] - dot(w, x)) / rest;
                variance += pull * pull / rest;
            }
            // A row that says nothing beside column j has the mean of all.
            let scale = (1.0 - variance).sqrt();
            if scale > 1e-6 && score.is_finite() { score / scale } else { 0.0 }
        };
        let z: Vec<f64> = self.rows.iter().zip(&self.posterior).map(z).collect();
        let mut order: Vec<usize> = (0..z.len()).collect();
        order.sort_unstable_by(|&a, &b| z[a].total_cmp(&z[b]));
        let mut ranks = vec![0.0; z.len()];
        let (mut before, middle) = (0, 0.5 * (z.len() as f64 - 1.0));
        for equal in order.chunk_by(|&a, &b| z[a] == z[b]) {
            let rank = before as f64 + 0.5 * (equal.len() as f64 - 1.0) - middle;
            for &i in equal {
                ranks[i] = rank;
            }
            before += equal.len();
        }
        let scale = (dot(&ranks, &ranks) / z.len() as f64).sqrt();
        (scale > 0.0).then(|| ranks.iter().map(|r| r / scale).collect())
    }
}
