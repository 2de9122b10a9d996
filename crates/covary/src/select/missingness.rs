use crate::data::Pattern;
use crate::model::check_columns;
use crate::model::latent::Block;
use crate::parallel::add;
use crate::{Dataset, Error, LinearGaussian, Matrix};
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::borrow::Cow;
use std::fmt;

/// Chance of any false report in a table whose gaps come at random.
const FAMILY_WISE: f64 = 0.01;
/// Weaker correlations are not worth a word, however many rows prove them.
const WEAKEST: f64 = 0.1;
/// Fewest gaps, and fewest observed cells, of a column that is tested.
const FEWEST: f64 = 5.0;
/// Most rows asked: a correlation of 0.1, the weakest worth a word, is then more than six standard
/// errors.
const MOST_ROWS: usize = 4000;

/// A column whose gaps follow the first component.
#[derive(Debug, Clone, PartialEq)]
pub struct GapTrend {
    /// The column, from 0.
    pub column: usize,
    /// Its name.
    pub name: String,
    /// Correlation over rows between "this cell is missing" and the first component.
    pub correlation: f64,
    /// Two-sided p-value, multiplied by the number of columns tested.
    pub p_value: f64,
}

impl GapTrend {
    /// Whether it is worth a word: p-value below 1 %, correlation of 0.1 or more in size.
    pub fn stands_out(&self) -> bool {
        self.p_value < FAMILY_WISE && self.correlation.abs() >= WEAKEST
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

/// The columns whose gaps follow the first component of the fitted model, which gaps that come
/// completely at random do not.
///
/// For column j, rows are compared by their score without that column, whether it is observed or
/// not: the posterior mean of every other cell's say on the first component. (The plain score
/// would not do: it has seen column j exactly where j is observed.) Leaving one cell out is a
/// rank-one change, so that all columns cost about as much as one
/// [`transform`](LinearGaussian::transform):
///
/// ```text
/// x̂₋ⱼ = x̂ − G⁻¹ wⱼ eⱼ / (ψⱼ (1 − hⱼ))      eⱼ = tⱼ − μⱼ − wⱼᵀ x̂      hⱼ = wⱼᵀ G⁻¹ wⱼ / ψⱼ
/// ```
///
/// The mean scores of rows with and without a gap are compared by Welch's t, which lets the two
/// differ in spread (a row with many gaps has a score shrunk towards 0). A column is reported if its
/// p-value, times the number of columns tested, is below 1 %, and the correlation of gap and score
/// exceeds 0.1 in size. Columns with fewer than five gaps or five values are not tested. Of a table with
/// more than 4000 rows, 4000 are asked: one, anywhere, out of each of 4000 equal runs of rows. Whatever
/// correlation is worth a word shows in them.
///
/// Measured under gaps completely at random (30 %, 300 × 8 cells, 2 components): a report in 7 of
/// 1000 tables; in 10 where the gaps come in blocks, in 16 with 40 rows, in none with
/// 12000.
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
    let mut tested = gap_correlations(model, data)?;
    tested.retain(GapTrend::stands_out);
    Ok(tested)
}

/// What [`gap_trends`] looks at: every column with at least five gaps and five values, whether its gaps
/// follow the first component or not.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::Em, select::gap_correlations, Estimator, Spec};
/// let (whole, _) = simulate::ppca(Shape { rows: 400, columns: 6, n_components: 1 }, /* seed */ 1);
/// let random = simulate::hide(&whole, 0.3, /* seed */ 2);
/// let model = Em::default().fit(&random, &Spec::ppca(1))?.model;
/// let tested = gap_correlations(&model, &random)?;
/// assert!(tested.len() == 6 && tested.iter().all(|t| t.correlation.abs() < 0.2 && !t.stands_out()));
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// [`Error::ColumnCount`] if the table has other columns than the model.
pub fn gap_correlations(model: &LinearGaussian, data: &Dataset) -> Result<Vec<GapTrend>, Error> {
    check_columns(model.mean().len(), data)?;
    if model.n_components() == 0 || data.is_complete() {
        return Ok(Vec::new());
    }
    let spread = data.spread_rows(MOST_ROWS);
    let asked =
        if spread.len() < data.n_rows() { Cow::Owned(data.of_rows(&spread)?) } else { Cow::Borrowed(data) };
    let sums = Sums::of(model, &asked);
    let tested: Vec<(usize, Comparison)> =
        (0..data.n_columns()).filter_map(|j| Some((j, sums.comparison(j)?))).collect();
    let named = tested.iter().map(|&(column, Comparison { correlation, p_value })| GapTrend {
        column,
        name: data.column_names()[column].clone(),
        correlation,
        p_value: (p_value * tested.len() as f64).min(1.0),
    });
    Ok(named.collect())
}

/// For each column, over rows where it is observed and then where it is missing: number of rows, sum
/// and sum of squares of the score without it; 6 × d.
struct Sums(Matrix);

struct Comparison {
    correlation: f64,
    p_value: f64,
}

/// How far a unit of each column's residual moves the first score, and buffers.
struct Pulls {
    pull: Vec<f64>,
    leverage: Vec<f64>,
    half: Vec<f64>,
}

impl Pulls {
    /// With `L⁻¹` packed in `root` and `Wᵀ` in `wt`: leverage `‖L⁻¹ wⱼ‖²`, pull
    /// `(L⁻ᵀ L⁻¹ wⱼ)₁ / (ψⱼ − leverage)`, for all columns at once.
    #[inline(always)]
    fn set(&mut self, root: &[f64], wt: &Matrix, psi: &[f64]) {
        let d = psi.len();
        let Self { pull, leverage, half } = self;
        let (pull, leverage, half) = (&mut pull[..d], &mut leverage[..d], &mut half[..d]);
        pull.fill(0.0);
        leverage.fill(0.0);
        let mut rest = root;
        for i in 0..wt.n_rows() {
            let (row, tail) = rest.split_at(i + 1);
            half.fill(0.0);
            for (f, w) in row.iter().zip(wt.rows()) {
                for j in 0..d {
                    half[j] += f * w[j];
                }
            }
            for j in 0..d {
                leverage[j] += half[j] * half[j];
                pull[j] += row[0] * half[j];
            }
            rest = tail;
        }
        for j in 0..d {
            pull[j] /= psi[j] - leverage[j];
        }
    }
}

impl Sums {
    fn of(model: &LinearGaussian, data: &Dataset) -> Self {
        let d = data.n_columns();
        let (wt, psi) = (model.loadings().transpose(), model.noise_variances());
        let empty = || {
            let zeros = vec![0.0; d];
            (Matrix::zeros(6, d), Pulls { pull: zeros.clone(), leverage: zeros.clone(), half: zeros })
        };
        let informative = |strip: &Pattern<'_>| strip.n_observed() > 0;
        let parts = model.by_block(data, informative, empty, |latent, strips, block, (sums, pulls)| {
            latent.fit(block);
            let kept_len = latent.kept_len();
            latent.arch.dispatch(Count { wt: &wt, psi: &psi, strips, block, kept_len, sums, pulls });
        });
        let mut parts = parts.into_iter().map(|(sums, _)| sums);
        let mut sums = parts.next().expect("a table has rows");
        parts.for_each(|part| add(sums.as_mut_slice(), part.as_slice()));
        Self(sums)
    }

    /// Rows with a gap in column `j` beside the others; `None` where there are too few of either.
    fn comparison(&self, j: usize) -> Option<Comparison> {
        let [n0, sum0, squares0, n1, sum1, squares1] = std::array::from_fn(|k| self.0[(k, j)]);
        if n0 < FEWEST || n1 < FEWEST {
            return None;
        }
        let variance_of_mean = |n: f64, sum: f64, squares: f64| (squares - sum * sum / n) / (n * (n - 1.0));
        let (v0, v1) = (variance_of_mean(n0, sum0, squares0), variance_of_mean(n1, sum1, squares1));
        let (n, difference) = (n0 + n1, sum1 / n1 - sum0 / n0);
        let spread = (squares0 + squares1) / n - ((sum0 + sum1) / n).powi(2);
        if !(v0 + v1 > 0.0 && spread > 0.0) {
            return None;
        }
        // Welch (1947): t on ν degrees of freedom.
        let t = difference / (v0 + v1).sqrt();
        let nu = (v0 + v1).powi(2) / (v0 * v0 / (n0 - 1.0) + v1 * v1 / (n1 - 1.0));
        let p_value = 2.0 * StudentsT::new(0.0, 1.0, nu).ok()?.sf(t.abs());
        Some(Comparison { correlation: difference * (n0 * n1).sqrt() / n / spread.sqrt(), p_value })
    }
}

/// A block's rows, counted.
struct Count<'k> {
    wt: &'k Matrix,
    psi: &'k [f64],
    strips: &'k [Pattern<'k>],
    block: &'k Block,
    kept_len: usize,
    sums: &'k mut Matrix,
    pulls: &'k mut Pulls,
}

impl pulp::WithSimd for Count<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { wt, psi, strips, block, kept_len, sums, pulls } = self;
        let (d, q) = (wt.n_columns(), wt.n_rows());
        let mut row = 0;
        for (k, strip) in strips.iter().enumerate() {
            pulls.set(&block.kept[k * kept_len..], wt, psi);
            for _ in strip.rows {
                let cells = (&block.y[row * d..][..d], &block.fit[row * d..][..d]);
                add_row(sums.as_mut_slice(), strip, block.z[row * (q + 1)], &pulls.pull, cells);
                row += 1;
            }
        }
    }
}

/// Counts a row whose first score is `score`: for its observed columns the score without them, for its
/// gaps the score as it is.
#[inline(always)]
fn add_row(sums: &mut [f64], strip: &Pattern<'_>, score: f64, pull: &[f64], (y, fit): (&[f64], &[f64])) {
    let d = y.len();
    let (observed, missing) = sums.split_at_mut(3 * d);
    // A row that says nothing beside column j has no score without it.
    if strip.n_observed() > 1 {
        let (count, rest) = observed.split_at_mut(d);
        let (sum, squares) = rest.split_at_mut(d);
        strip.for_observed(|j| {
            let without = score - pull[j] * (y[j] - fit[j]);
            count[j] += 1.0;
            sum[j] += without;
            squares[j] += without * without;
        });
    }
    for &j in strip.gaps {
        let j = j as usize;
        missing[j] += 1.0;
        missing[d + j] += score;
        missing[2 * d + j] += score * score;
    }
}
