//! Rows by blocks: how a table is cut, and what is known of it before its rows are gone through.

use std::ops::Range;

/// Cells of a block: long enough that its sums cost nothing beside its rows …
const CELLS: usize = 1 << 22;
/// … which for wide tables takes this many rows, as far as they are not more cells than this.
const ROWS: usize = 1 << 14;
const MOST_CELLS: usize = 1 << 24;

/// Rows of a block of a table with this many columns; the last block has the rest.
///
/// Sums over rows are taken block by block and joined in one fixed tree, so that a table in memory, on a disk and on the
/// machines of a cluster leads to the same bits.
///
/// ```
/// use covary::data::block_rows;
/// assert_eq!(block_rows(50), 83_886);        // 2²² cells
/// assert_eq!(block_rows(1000), 16_384);
/// ```
pub fn block_rows(n_columns: usize) -> usize {
    let d = n_columns.max(1);
    (CELLS / d).max(ROWS.min(MOST_CELLS / d)).max(1)
}

/// At most `most` of `n` rows, as [`Dataset::spread_rows`](crate::Dataset::spread_rows).
pub(crate) fn spread_rows(n: usize, most: usize) -> Vec<usize> {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let m = most.min(n);
    let start = |k: usize| k * n / m;
    let place = |k: usize| (k as f64 * GOLDEN).fract() * (start(k + 1) - start(k)) as f64;
    (0..m).map(|k| start(k) + place(k) as usize).collect()
}

/// What is to be known of a table before its rows are gone through: a first pass finds it.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    column_names: Vec<String>,
    n_rows: usize,
    n_informative_rows: usize,
    observed: Vec<usize>,
    means: Vec<f64>,
    variances: Vec<f64>,
    columns: ColumnFacts,
}

impl Facts {
    pub(crate) fn new(
        column_names: Vec<String>,
        (n_rows, n_informative_rows): (usize, usize),
        columns: ColumnFacts,
    ) -> Self {
        let observed = columns.part(COUNT).iter().map(|n| *n as usize).collect();
        let (means, variances) = (columns.means(), columns.variances());
        Self { column_names, n_rows, n_informative_rows, observed, means, variances, columns }
    }

    /// Takes in those of rows that follow, of the same columns.
    pub(crate) fn merge(&mut self, next: &Self) {
        let mut columns = self.columns.clone();
        columns.merge(&next.columns);
        let rows = (self.n_rows + next.n_rows, self.n_informative_rows + next.n_informative_rows);
        *self = Self::new(std::mem::take(&mut self.column_names), rows, columns);
    }

    /// Of which they were made.
    pub(crate) fn columns(&self) -> &ColumnFacts {
        &self.columns
    }

    /// Column names in order.
    pub fn column_names(&self) -> &[String] {
        &self.column_names
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.column_names.len()
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Rows with at least one observed cell.
    pub fn n_informative_rows(&self) -> usize {
        self.n_informative_rows
    }

    /// Observed cells per column.
    pub fn n_observed_by_column(&self) -> &[usize] {
        &self.observed
    }

    /// Missing cells in the whole table.
    pub fn n_gaps(&self) -> usize {
        self.observed.iter().map(|n| self.n_rows - n).sum()
    }

    /// Whether rows that have a value have all of theirs.
    pub(crate) fn has_only_whole_rows(&self) -> bool {
        self.observed.iter().sum::<usize>() == self.n_informative_rows * self.n_columns()
    }

    /// Mean of each column over its observed cells; NaN for an empty column.
    pub fn observed_means(&self) -> &[f64] {
        &self.means
    }

    /// Variance of each column over its observed cells, as [`Dataset::observed_variances`](crate::Dataset::observed_variances).
    pub fn observed_variances(&self) -> &[f64] {
        &self.variances
    }

    /// At most `most` rows, as [`Dataset::spread_rows`](crate::Dataset::spread_rows).
    pub fn spread_rows(&self, most: usize) -> Vec<usize> {
        spread_rows(self.n_rows, most)
    }

    /// The one value of column `j`, if all its observed cells have it.
    pub fn constant(&self, j: usize) -> Option<f64> {
        let constant = self.observed[j] > 0 && self.columns.part(VARIES)[j] == 0.0;
        constant.then(|| self.columns.part(FIRST)[j])
    }

    /// Whether the observed cells of column `j` are all equal.
    pub(crate) fn is_constant(&self, j: usize) -> bool {
        self.columns.part(VARIES)[j] == 0.0
    }
}

/// Per column: observed cells, the first of them, whether another differs from it, how far their mean is from the first,
/// and the sum of squares about the mean. Those of two runs of rows, one after the other, merge into those of both (Chan, Golub &
/// LeVeque 1983), where a large common offset costs no digits:
///
/// ```text
/// δ = (f_b − f_a) + (m_b − m_a)     n = n_a + n_b     m = m_a + δ n_b/n     s = s_a + s_b + δ² n_a n_b / n
/// ```
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ColumnFacts(Vec<f64>);

/// The parts of [`ColumnFacts`], each as long as there are columns; those of an empty column are 0.
const COUNT: usize = 0;
const FIRST: usize = 1;
const VARIES: usize = 2;
const MEAN: usize = 3;
const SQUARES: usize = 4;
/// How many they are.
pub(crate) const COLUMN_FACTS: usize = 5;

impl ColumnFacts {
    pub(crate) fn new(
        count: Vec<f64>,
        first: Vec<f64>,
        varies: Vec<bool>,
        from_first: Vec<f64>,
        squares: Vec<f64>,
    ) -> Self {
        let varies = varies.into_iter().map(|v| f64::from(u8::from(v))).collect();
        let mut numbers = [count, first, varies, from_first, squares].concat();
        numbers.iter_mut().filter(|v| v.is_nan()).for_each(|v| *v = 0.0);
        Self(numbers)
    }

    /// Those of strips of columns as one.
    pub(crate) fn side_by_side(mut strips: Vec<Self>) -> Self {
        if strips.len() == 1 {
            return strips.remove(0);
        }
        let parts = (0..COLUMN_FACTS).flat_map(|part| strips.iter().flat_map(move |strip| strip.part(part)));
        Self(parts.copied().collect())
    }

    /// Of as many numbers as they have.
    pub(crate) fn of_numbers(numbers: &[f64]) -> Self {
        Self(numbers.to_vec())
    }

    pub(crate) fn numbers(&self) -> &[f64] {
        &self.0
    }

    fn range(&self, part: usize) -> Range<usize> {
        let d = self.0.len() / COLUMN_FACTS;
        part * d..(part + 1) * d
    }

    fn part(&self, part: usize) -> &[f64] {
        &self.0[self.range(part)]
    }

    pub(crate) fn means(&self) -> Vec<f64> {
        let (count, first, mean) = (self.part(COUNT), self.part(FIRST), self.part(MEAN));
        (0..count.len()).map(|j| if count[j] > 0.0 { first[j] + mean[j] } else { f64::NAN }).collect()
    }

    pub(crate) fn variances(&self) -> Vec<f64> {
        self.part(SQUARES).iter().zip(self.part(COUNT)).map(|(s, n)| s / n).collect()
    }

    pub(crate) fn merge(&mut self, next: &Self) {
        let d = self.0.len() / COLUMN_FACTS;
        for j in 0..d {
            let place = |part: usize| part * d + j;
            let of = |facts: &Self| [COUNT, FIRST, VARIES, MEAN, SQUARES].map(|part| facts.0[place(part)]);
            let (a, b) = (of(self), of(next));
            let merged = match (a, b) {
                (_, [0.0, ..]) => a,
                ([0.0, ..], _) => b,
                ([n_a, first, varies, mean, squares], [n_b, other, varied, other_mean, other_squares]) => {
                    let (n, apart) = (n_a + n_b, (other - first) + (other_mean - mean));
                    let varies = varies.max(varied).max(f64::from(u8::from(first != other)));
                    let squares = squares + other_squares + apart * apart * (n_a * n_b / n);
                    [n, first, varies, mean + apart * (n_b / n), squares]
                }
            };
            merged.iter().enumerate().for_each(|(part, v)| self.0[place(part)] = *v);
        }
    }
}
