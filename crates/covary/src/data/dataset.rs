use super::pattern::{Pattern, Patterns, Run};
use super::rows::{ColumnFacts, Facts, block_rows};
use super::{Points, Timeline};
use crate::linalg::Cell;
use crate::linalg::rows::{ColumnSums, STRIP, Wanted, add_column_sums};
use crate::parallel::{self, BLOCK_CELLS, add, in_turn, over_pieces, widened};
use crate::{Error, Matrix};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A table of numbers with gaps, checked once: row-major, NaN where a cell is missing, rows grouped
/// by their [`Pattern`] of gaps.
///
/// ```
/// use covary::{Dataset, Matrix};
/// let table = Dataset::new(Matrix::from_rows(&[[1.0, f64::NAN], [2.0, 4.0], [3.0, f64::NAN]]))?;
/// assert_eq!(table.n_gaps(), 2);
/// assert_eq!(table.patterns().map(|p| p.rows.to_vec()).collect::<Vec<_>>(), [vec![0, 2], vec![1]]);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    values: Values,
    column_names: Names,
    row_labels: Option<Vec<String>>,
    timeline: Option<Timeline>,
    points: Option<Points>,
    classes: Option<Vec<Option<usize>>>,
    patterns: Patterns,
    observed: Vec<usize>,
    columns: OnceLock<Columns>,
    blocks: Blocks,
}

/// Names of columns: of those that have none `x1, x2, …`, made when they are asked for, since a wide table has many.
#[derive(Debug, Clone)]
struct Names {
    n: usize,
    names: OnceLock<Vec<String>>,
}

impl Names {
    fn all(&self) -> &[String] {
        self.names.get_or_init(|| (1..=self.n).map(|j| format!("x{j}")).collect())
    }
}

impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        self.all() == other.all()
    }
}

/// Cells in the precision they came in.
#[derive(Debug, Clone)]
enum Values {
    Double(Matrix),
    Single(Single),
}

/// Somebody else's numbers, looked at where they are, and widened once if a method needs them in double.
#[derive(Clone)]
struct Single {
    n_columns: usize,
    cells: Arc<dyn AsRef<[f32]> + Send + Sync>,
    wide: OnceLock<Matrix>,
}

/// All cells of a table, row by row.
#[derive(Clone, Copy)]
pub(crate) enum Cells<'a> {
    Double(&'a [f64]),
    Single(&'a [f32]),
}

/// Does the same with the cells of a table in either precision.
macro_rules! in_its_precision {
    ($data:expr, $cells:ident => $work:expr) => {
        match $data.cells() {
            $crate::data::Cells::Double($cells) => $work,
            $crate::data::Cells::Single($cells) => $work,
        }
    };
}
pub(crate) use in_its_precision;

impl Values {
    fn cells(&self) -> Cells<'_> {
        match self {
            Self::Double(values) => Cells::Double(values.as_slice()),
            Self::Single(single) => Cells::Single((*single.cells).as_ref()),
        }
    }

    fn n_columns(&self) -> usize {
        match self {
            Self::Double(values) => values.n_columns(),
            Self::Single(single) => single.n_columns,
        }
    }

    fn n_rows(&self) -> usize {
        match self {
            Self::Double(values) => values.n_rows(),
            Self::Single(single) => (*single.cells).as_ref().len() / single.n_columns,
        }
    }

    fn matrix(&self) -> &Matrix {
        match self {
            Self::Double(values) => values,
            Self::Single(single) => single.wide.get_or_init(|| {
                let cells = (*single.cells).as_ref();
                let d = single.n_columns;
                Matrix::from_vec(cells.len() / d, d, widened(cells)).expect("whole rows, as was checked")
            }),
        }
    }
}

impl fmt::Debug for Single {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Single")
            .field("n_columns", &self.n_columns)
            .field("cells", &(*self.cells).as_ref())
            .finish_non_exhaustive()
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        self.matrix() == other.matrix()
    }
}

/// The columns as they are, and mean and variance of each over its observed cells.
#[derive(Debug, Clone, PartialEq)]
struct Columns {
    facts: ColumnFacts,
    means: Vec<f64>,
    variances: Vec<f64>,
}

/// The patterns within each block of rows, once somebody has asked: they follow from the cells.
#[derive(Debug, Clone, Default)]
struct Blocks(OnceLock<Vec<Patterns>>);

impl PartialEq for Blocks {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Dataset {
    /// Takes a table whose missing cells are NaN; columns are named `x1, x2, …`.
    ///
    /// # Errors
    /// [`Error::EmptyTable`] without rows or columns, [`Error::Infinite`] at the first ±∞.
    pub fn new(values: Matrix) -> Result<Self, Error> {
        let shape = (values.n_rows(), values.n_columns());
        Self::of_values(Values::Double(values), shape, None)
    }

    /// Takes a table whose missing cells are NaN, and its column names.
    ///
    /// # Errors
    /// As [`Dataset::new`], and [`Error::WrongLength`] unless there is one name per column.
    pub fn with_names(values: Matrix, column_names: Vec<String>) -> Result<Self, Error> {
        let shape = (values.n_rows(), values.n_columns());
        Self::of_values(Values::Double(values), shape, Some(column_names))
    }

    /// Looks at somebody else's table of single precision, row-major, without copying it; it is kept alive, and must
    /// not change. Principal components and the closed form of probabilistic PCA read it as it is, with sums in double
    /// precision; other methods widen it once, in a copy.
    ///
    /// ```
    /// use covary::{Dataset, Matrix, infer::PrincipalAxes};
    /// use std::sync::Arc;
    /// let numbers = Arc::new(vec![1.0_f32, 1.0, 2.0, 2.5, 3.0, 2.0]);
    /// let table = Dataset::from_single((3, 2), numbers, None)?;
    /// let same = Dataset::new(table.values().clone())?;
    /// let (single, double) = (PrincipalAxes::default().fit(&table)?, PrincipalAxes::default().fit(&same)?);
    /// assert!((single.components[(0, 0)] - double.components[(0, 0)]).abs() < 1e-6);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`with_names`](Self::with_names), and [`Error::WrongLength`] unless there are as many numbers as cells.
    pub fn from_single(
        (n_rows, n_columns): (usize, usize),
        cells: Arc<dyn AsRef<[f32]> + Send + Sync>,
        column_names: Option<Vec<String>>,
    ) -> Result<Self, Error> {
        check_length("numbers in the table", n_rows * n_columns, (*cells).as_ref().len())?;
        let values = Values::Single(Single { n_columns, cells, wide: OnceLock::new() });
        Self::of_values(values, (n_rows, n_columns), column_names)
    }

    fn of_values(
        values: Values,
        (rows, columns): (usize, usize),
        column_names: Option<Vec<String>>,
    ) -> Result<Self, Error> {
        if rows == 0 || columns == 0 {
            return Err(Error::EmptyTable { rows, columns });
        }
        if let Some(names) = &column_names {
            check_length("column names", columns, names.len())?;
        }
        let column_names =
            Names { n: columns, names: column_names.map_or_else(OnceLock::new, OnceLock::from) };
        let grouped = in_its_precision!(values, cells => Patterns::new(cells, columns).ok_or_else(|| {
            let infinite = |v: &f64| v.is_infinite();
            let (at, value) = cells.iter().map(|v| v.wide()).enumerate().find(|(_, v)| infinite(v)).expect("just seen");
            Error::Infinite { row: at / columns + 1, column: column_names.all()[at % columns].clone(), value }
        }));
        let patterns = grouped?;
        let mut observed = vec![rows; columns];
        for p in 0..patterns.len() {
            let pattern = patterns.get(p);
            for &j in pattern.gaps {
                observed[j as usize] -= pattern.rows.len();
            }
        }
        Ok(Self {
            values,
            column_names,
            row_labels: None,
            timeline: None,
            points: None,
            classes: None,
            patterns,
            observed,
            columns: OnceLock::new(),
            blocks: Blocks::default(),
        })
    }

    /// Adds a label to every row.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless there is one label per row.
    pub fn with_row_labels(mut self, labels: Vec<String>) -> Result<Self, Error> {
        check_length("row labels", self.n_rows(), labels.len())?;
        self.row_labels = Some(labels);
        Ok(self)
    }

    /// Says when its rows happened. A table without times has its rows one step apart, in the order they stand.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless there is one time per row.
    pub fn in_time(mut self, timeline: Timeline) -> Result<Self, Error> {
        timeline.check(self.n_rows())?;
        self.timeline = Some(timeline);
        Ok(self)
    }

    /// Says of which class each row is, where that is known: a mixture whose models are these classes imputes the row by its
    /// own class alone.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless there is one for each row.
    pub fn of_classes(mut self, classes: Vec<Option<usize>>) -> Result<Self, Error> {
        check_length("classes of rows", self.n_rows(), classes.len())?;
        self.classes = Some(classes);
        Ok(self)
    }

    /// The class of each row, if that was said.
    pub fn classes(&self) -> Option<&[Option<usize>]> {
        self.classes.as_deref()
    }

    /// When its rows happened, if that was said.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.timeline.as_ref()
    }

    /// When its rows happened: one step after the other unless something else was said.
    pub fn times(&self) -> Cow<'_, Timeline> {
        match &self.timeline {
            Some(timeline) => Cow::Borrowed(timeline),
            None => Cow::Owned(Timeline::regular(self.n_rows())),
        }
    }

    /// Says that its rows are points of curves.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless there is one point per row.
    pub fn of_points(mut self, points: Points) -> Result<Self, Error> {
        points.check(self.n_rows())?;
        self.points = Some(points);
        Ok(self)
    }

    /// The curves that its rows are points of, if they are.
    pub fn points(&self) -> Option<&Points> {
        self.points.as_ref()
    }

    /// Other cells of the same rows: columns of these names, times and classes kept, labels left behind.
    ///
    /// # Errors
    /// As [`with_names`](Self::with_names), and [`Error::WrongLength`] for another number of rows.
    pub(crate) fn with_cells(&self, values: Matrix, column_names: Vec<String>) -> Result<Self, Error> {
        let other = Self::with_names(values, column_names)?;
        self.timeline.iter().try_for_each(|timeline| timeline.check(other.n_rows()))?;
        self.points.iter().try_for_each(|points| points.check(other.n_rows()))?;
        self.classes.iter().try_for_each(|c| check_length("classes of rows", other.n_rows(), c.len()))?;
        let (timeline, points, classes) = (self.timeline.clone(), self.points.clone(), self.classes.clone());
        Ok(Self { timeline, points, classes, ..other })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.values.n_rows()
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.values.n_columns()
    }

    /// The cells; NaN where missing.
    pub fn values(&self) -> &Matrix {
        self.values.matrix()
    }

    /// The cells in the precision they came in.
    pub(crate) fn cells(&self) -> Cells<'_> {
        self.values.cells()
    }

    /// Gives the cells back.
    pub fn into_values(self) -> Matrix {
        match self.values {
            Values::Double(values) => values,
            Values::Single(_) => self.values.matrix().clone(),
        }
    }

    /// Row `i`; NaN where missing.
    pub fn row(&self, i: usize) -> &[f64] {
        self.values().row(i)
    }

    /// Column names in order.
    pub fn column_names(&self) -> &[String] {
        self.column_names.all()
    }

    /// Row labels, if any were given.
    pub fn row_labels(&self) -> Option<&[String]> {
        self.row_labels.as_deref()
    }

    /// The groups of rows with the same gaps, in order of first appearance.
    pub fn patterns(&self) -> impl Iterator<Item = Pattern<'_>> {
        (0..self.patterns.len()).map(|p| self.patterns.get(p))
    }

    /// Number of different patterns of gaps.
    pub fn n_patterns(&self) -> usize {
        self.patterns.len()
    }

    /// Pattern `p`, counted in order of first appearance.
    pub(crate) fn pattern(&self, p: usize) -> Pattern<'_> {
        self.patterns.get(p)
    }

    /// Rows `range` of the table sorted by pattern, as runs of at most `longest` rows that share
    /// their gaps.
    pub(crate) fn strips(&self, range: Range<usize>, longest: usize) -> impl Iterator<Item = Pattern<'_>> {
        self.patterns.strips(range, longest)
    }

    /// Observed cells per column.
    pub fn n_observed_by_column(&self) -> &[usize] {
        &self.observed
    }

    /// Observed cells in the whole table.
    pub fn n_observed(&self) -> usize {
        self.observed.iter().sum()
    }

    /// Missing cells in the whole table.
    pub fn n_gaps(&self) -> usize {
        self.n_rows() * self.n_columns() - self.n_observed()
    }

    /// Row and column of the first missing cell, both from 0.
    pub fn first_gap(&self) -> Option<(usize, usize)> {
        let place = in_its_precision!(self, cells => cells.iter().position(|v| v.is_nan()))?;
        Some((place / self.n_columns(), place % self.n_columns()))
    }

    /// Whether no cell is missing.
    pub fn is_complete(&self) -> bool {
        self.n_gaps() == 0
    }

    /// Rows with at least one observed cell; the others say nothing and change nothing.
    pub fn n_informative_rows(&self) -> usize {
        self.patterns.n_informative_rows()
    }

    /// The table without its wholly missing rows (copied only if there are any), for a method that
    /// needs the others complete.
    pub(crate) fn complete_rows(&self, method: &'static str) -> Result<Cow<'_, Self>, Error> {
        if self.is_complete() {
            return Ok(Cow::Borrowed(self));
        }
        let mut kept: Vec<usize> =
            self.patterns().filter(|p| p.gaps.is_empty()).flat_map(|p| p.rows.to_vec()).collect();
        if kept.len() < self.n_informative_rows() {
            return Err(Error::HasGaps { method, gaps: self.n_gaps() });
        }
        kept.sort_unstable();
        self.of_rows(&kept).map(Cow::Owned)
    }

    /// Some rows of the table, in the order given; labels stay behind.
    ///
    /// # Errors
    /// [`Error::EmptyTable`] without rows.
    pub fn of_rows(&self, rows: &[usize]) -> Result<Self, Error> {
        let mut values = Vec::with_capacity(rows.len() * self.n_columns());
        for &i in rows {
            values.extend_from_slice(self.row(i));
        }
        let values = Matrix::from_vec(rows.len(), self.n_columns(), values)?;
        let timeline = self.timeline.as_ref().and_then(|timeline| timeline.some_rows(rows));
        let points = self.points.as_ref().and_then(|points| points.some_rows(rows));
        let classes = self.classes.as_ref().map(|classes| rows.iter().map(|&i| classes[i]).collect());
        let other = Self::with_names(values, self.column_names().to_vec())?;
        Ok(Self { timeline, points, classes, ..other })
    }

    /// The table with a row for every step of its times, empty where there was none: sequences one after the other, each in the
    /// order of time.
    ///
    /// ```
    /// use covary::{Dataset, Matrix, data::Timeline};
    /// let table = Dataset::new(Matrix::from_rows(&[[3.0], [1.0]]))?.in_time(Timeline::new(&[2, 0], None)?)?;
    /// let every = table.every_step()?;
    /// assert_eq!((every.row(0), every.row(2)), (&[1.0][..], &[3.0][..]));
    /// assert!(every.row(1)[0].is_nan());
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::EmptyTable`] without rows.
    pub fn every_step(&self) -> Result<Self, Error> {
        let times = self.times();
        let rows: Vec<Option<usize>> =
            times.sequences().iter().flat_map(|s| s.rows().iter().copied()).collect();
        let cell = |step: usize, j: usize| rows[step].map_or(f64::NAN, |row| self.row(row)[j]);
        let values = Matrix::from_fn(rows.len(), self.n_columns(), cell);
        Self::with_names(values, self.column_names().to_vec())?.in_time(times.every_step())
    }

    /// Some columns of the table, in the order given; labels stay behind.
    ///
    /// # Errors
    /// [`Error::EmptyTable`] without columns.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn of_columns(&self, columns: &[usize]) -> Result<Self, Error> {
        let values = Matrix::from_fn(self.n_rows(), columns.len(), |i, k| self.row(i)[columns[k]]);
        self.with_cells(values, columns.iter().map(|&j| self.column_names()[j].clone()).collect())
    }

    /// The table with these cells missing.
    ///
    /// # Errors
    /// As [`Dataset::new`].
    pub fn without_cells(&self, cells: impl IntoIterator<Item = (usize, usize)>) -> Result<Self, Error> {
        let mut values = self.values().clone();
        cells.into_iter().for_each(|at| values[at] = f64::NAN);
        self.with_cells(values, self.column_names().to_vec())
    }

    /// At most `most` rows, ascending and evenly spread: one out of each of `most` equal runs of rows,
    /// its place in the run by multiples of the golden ratio, so that no period of the table (hours
    /// of a day, plates of a screen) is met in step.
    ///
    /// ```
    /// use covary::{Dataset, Matrix};
    /// let table = Dataset::new(Matrix::from_fn(10, 1, |i, _| i as f64))?;
    /// let rows = table.spread_rows(3);
    /// assert!(rows[0] < 3 && (3..6).contains(&rows[1]) && (6..10).contains(&rows[2]));
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn spread_rows(&self, most: usize) -> Vec<usize> {
        super::rows::spread_rows(self.n_rows(), most)
    }

    /// The share of cells that are observed.
    pub(crate) fn observed_share(&self) -> f64 {
        self.n_observed() as f64 / (self.n_rows() * self.n_columns()) as f64
    }

    /// Mean of each column over its observed cells; NaN for an empty column.
    pub fn observed_means(&self) -> &[f64] {
        &self.columns().means
    }

    /// Variance of each column over its observed cells (divisor: their number); exactly 0 for a
    /// constant column, NaN for an empty one.
    pub fn observed_variances(&self) -> &[f64] {
        &self.columns().variances
    }

    /// Whether the observed cells of column `j` are all equal.
    pub(crate) fn is_constant(&self, j: usize) -> bool {
        self.observed[j] == 0 || self.constant(j).is_some()
    }

    /// The one value of column `j`, if all its observed cells have it.
    pub fn constant(&self, j: usize) -> Option<f64> {
        in_its_precision!(self, cells => {
            let mut seen = cells[j..].iter().step_by(self.n_columns()).filter(|v| !v.is_gap());
            let first = seen.next()?;
            seen.all(|v| v == first).then_some(first.wide())
        })
    }

    /// How many [blocks](block_rows) its rows are.
    pub(crate) fn n_blocks(&self) -> usize {
        self.n_rows().div_ceil(block_rows(self.n_columns()))
    }

    /// The rows of block `b`.
    pub(crate) fn block(&self, b: usize) -> Range<usize> {
        let size = block_rows(self.n_columns());
        b * size..((b + 1) * size).min(self.n_rows())
    }

    /// All rows sorted by pattern.
    pub(crate) fn sorted(&self) -> &Patterns {
        &self.patterns
    }

    /// The rows of block `b` sorted by pattern, as those of a table of its own.
    pub(crate) fn sorted_block(&self, b: usize) -> &Patterns {
        if self.n_blocks() == 1 {
            return &self.patterns;
        }
        &self.blocks.0.get_or_init(|| self.patterns.by_blocks(block_rows(self.n_columns())))[b]
    }

    /// All rows.
    pub(crate) fn whole(&self) -> Run<'_> {
        Run { data: self, order: &self.patterns, first: 0 }
    }

    /// The rows of block `b`.
    pub(crate) fn run(&self, b: usize) -> Run<'_> {
        Run { data: self, order: self.sorted_block(b), first: self.block(b).start }
    }

    /// What a method must know of it before it goes through its rows.
    pub fn facts(&self) -> Facts {
        let columns = self.columns().facts.clone();
        Facts::new(self.column_names().to_vec(), (self.n_rows(), self.n_informative_rows()), columns)
    }

    /// Block by block.
    fn columns(&self) -> &Columns {
        self.columns.get_or_init(|| {
            let facts = in_turn(self.n_blocks(), |b| self.columns_of_block(b), ColumnFacts::merge);
            let (means, variances) = (facts.means(), facts.variances());
            Columns { facts, means, variances }
        })
    }

    /// Strip by strip of columns, which stays in the cache if it is not long.
    pub(crate) fn columns_of_block(&self, b: usize) -> ColumnFacts {
        let (d, rows) = (self.n_columns(), self.block(b));
        let whole = self.is_complete();
        in_its_precision!(self, cells => {
            let cells = &cells[rows.start * d..rows.end * d];
            ColumnFacts::side_by_side(parallel::map(d.div_ceil(STRIP), |s| {
                columns_of_strip(cells, d, s * STRIP..((s + 1) * STRIP).min(d), whole)
            }))
        })
    }
}

/// Two passes in fixed pieces: means about the first observed values, so that a large common
/// offset costs no digits, then squares about the means. Of a complete table each takes what it is for.
fn columns_of_strip<C: Cell>(cells: &[C], d: usize, columns: Range<usize>, whole: bool) -> ColumnFacts {
    let n = cells.len() / d;
    let sums_about = |origin: &[f64], alone: Wanted| {
        let wanted = if whole { alone } else { Wanted::All };
        let sums_of = |rows: Range<usize>| {
            let mut sums = ColumnSums::new(columns.len(), wanted);
            add_column_sums(&cells[rows.start * d..rows.end * d], d, columns.clone(), origin, &mut sums);
            sums
        };
        over_pieces(n, BLOCK_CELLS.div_ceil(columns.len()), sums_of, |a, b| {
            add(&mut a.count, &b.count);
            add(&mut a.sum, &b.sum);
            add(&mut a.squares, &b.squares);
        })
    };
    let column = |j: usize| cells[columns.start + j..].iter().step_by(d).filter(|v| !v.is_gap());
    let first: Vec<f64> =
        (0..columns.len()).map(|j| column(j).next().map_or(f64::NAN, |v| v.wide())).collect();
    let about_first = sums_about(&first, Wanted::Sum);
    let count = if whole { vec![n as f64; columns.len()] } else { about_first.count };
    let from_first: Vec<f64> = about_first.sum.iter().zip(&count).map(|(sum, n)| sum / n).collect();
    let means: Vec<f64> = first.iter().zip(&from_first).map(|(first, m)| first + m).collect();
    let squares = sums_about(&means, Wanted::Squares).squares;
    let differs = |j: usize| column(j).any(|v| v.wide() != first[j]);
    let varies = (0..columns.len()).map(|j| squares[j] > 0.0 || differs(j)).collect();
    ColumnFacts::new(count, first, varies, from_first, squares)
}

fn check_length(what: &'static str, expected: usize, got: usize) -> Result<(), Error> {
    if expected == got { Ok(()) } else { Err(Error::WrongLength { what, expected, got }) }
}
