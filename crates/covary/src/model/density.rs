use super::{Limits, Quantiles};
use crate::data::Pattern;
use crate::parallel::{self, copied};
use crate::{Dataset, Error, Matrix};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A distribution of rows out of which any missing values can be integrated.
///
/// Implementors give the conditional distribution for a set of observed columns; everything about whole tables
/// is provided.
pub trait Density: Sync {
    /// Number of columns of a row.
    fn n_columns(&self) -> usize;

    /// The distribution given a set of observed columns (ascending): factorized once, to be asked row by row.
    fn given(&self, observed: &[usize]) -> Box<dyn Given + '_>;

    /// Simulated rows.
    fn sample(&self, n_rows: usize, rng: &mut dyn Rng) -> Matrix;

    /// Log-density of every row in nats, gaps integrated out; 0 for a row of only gaps.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the model.
    fn log_density(&self, data: &Dataset) -> Result<Vec<f64>, Error> {
        by_pattern(self, data, |given, pattern| {
            pattern.rows.iter().map(|&i| given.log_density(data.row(i))).collect()
        })
    }

    /// Log-likelihood of the table in nats: the sum of [`log_density`](Self::log_density).
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the model.
    fn log_likelihood(&self, data: &Dataset) -> Result<f64, Error> {
        Ok(self.log_density(data)?.iter().sum())
    }

    /// Average log-density of the rows of `data`, gaps integrated out.
    ///
    /// ```text
    /// score = 1/n Σᵢ ln N(tᵢₒ | μₒ, Wₒ Wₒᵀ + Ψₒ)          o: the observed columns of row i
    /// ```
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the model.
    fn score(&self, data: &Dataset) -> Result<f64, Error> {
        Ok(self.log_likelihood(data)? / data.n_rows() as f64)
    }

    /// Every missing value, row by row: its conditional mean and standard deviation.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the model.
    fn gap_cells(&self, data: &Dataset) -> Result<Vec<FilledCell>, Error> {
        let completed = by_pattern(self, data, |given, pattern| {
            let rows: Vec<&[f64]> = pattern.rows.iter().map(|&i| data.row(i)).collect();
            given.complete_rows(&rows)
        })?;
        let mut cells = Vec::with_capacity(data.n_gaps());
        for (row, Completed { mean, variance }) in completed.into_iter().enumerate() {
            let gaps = (0..self.n_columns()).filter(|&j| data.row(row)[j].is_nan());
            for ((column, mean), variance) in gaps.zip(mean).zip(variance) {
                cells.push(FilledCell::normal(row, column, mean, variance.sqrt()));
            }
        }
        Ok(cells)
    }

    /// [`gap_cells`](Self::gap_cells) that ends early once `stop` is set, by whichever thread.
    ///
    /// # Errors
    /// As [`gap_cells`](Self::gap_cells), and [`Error::Interrupted`] if `stop` was set.
    fn gap_cells_unless(&self, data: &Dataset, stop: &AtomicBool) -> Result<Vec<FilledCell>, Error> {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        self.gap_cells(data)
    }

    /// Every gap filled by its conditional mean, with its standard deviation; observed cells are
    /// returned as they came.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the model.
    fn impute(&self, data: &Dataset) -> Result<Imputed, Error> {
        Ok(Imputed::new(data, self.gap_cells(data)?))
    }

    /// The table completed by draw `k`: its gaps filled by one joint draw [M 1.5.4]. Row `i` of
    /// draw `k` has its own random stream, so that neither threads nor other rows reach it.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the model.
    fn draw_gaps(&self, data: &Dataset, k: usize, seed: u64) -> Result<Matrix, Error> {
        let draws = by_pattern(self, data, |given, pattern| {
            let draw = |&i: &usize| {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                rng.set_stream(draw_stream(data, k, i));
                given.draw(data.row(i), &mut rng)
            };
            pattern.rows.iter().map(draw).collect()
        })?;
        Matrix::from_vec(data.n_rows(), data.n_columns(), draws.concat())
    }

    /// `m` completed tables: [`draw_gaps`](Self::draw_gaps) 0 to m − 1.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the model.
    fn multiple_impute(&self, data: &Dataset, m: usize, seed: u64) -> Result<Vec<Matrix>, Error> {
        (0..m).map(|k| self.draw_gaps(data, k, seed)).collect()
    }
}

/// The random stream of row `i` in draw `k`.
pub(super) fn draw_stream(data: &Dataset, k: usize, i: usize) -> u64 {
    (k * data.n_rows() + i) as u64
}

/// The table with `cells` put in the place of its gaps.
pub(super) fn filled_values(data: &Dataset, cells: &[FilledCell]) -> Matrix {
    let values = copied(data.values().as_slice());
    let mut values =
        Matrix::from_vec(data.n_rows(), data.n_columns(), values).expect("the table's own shape");
    for cell in cells {
        values[(cell.row, cell.column)] = cell.value();
    }
    values
}

/// Runs `ask` once per pattern of gaps, in parallel, and puts its answers, one per row of the
/// pattern, back in the order of the rows.
fn by_pattern<D: Density + ?Sized, T: Send>(
    density: &D,
    data: &Dataset,
    ask: impl Fn(&dyn Given, Pattern<'_>) -> Vec<T> + Sync,
) -> Result<Vec<T>, Error> {
    check_columns(density.n_columns(), data)?;
    Ok(rows_by_pattern(data, |pattern| ask(&*density.given(&pattern.observed()), pattern)))
}

/// Runs `answer` once per pattern, in parallel; it returns one value per row of the pattern, and
/// they come back in the order of the rows.
pub(crate) fn rows_by_pattern<T: Send>(
    data: &Dataset,
    answer: impl Fn(Pattern<'_>) -> Vec<T> + Sync,
) -> Vec<T> {
    let answers: Vec<Vec<T>> = parallel::map(data.n_patterns(), |p| answer(data.pattern(p)));
    let mut out: Vec<Option<T>> = (0..data.n_rows()).map(|_| None).collect();
    for (pattern, answers) in data.patterns().zip(answers) {
        for (&i, answer) in pattern.rows.iter().zip(answers) {
            out[i] = Some(answer);
        }
    }
    out.into_iter().map(|a| a.expect("every row is in one pattern")).collect()
}

pub(crate) fn check_columns(expected: usize, data: &Dataset) -> Result<(), Error> {
    let got = data.n_columns();
    if expected == got { Ok(()) } else { Err(Error::ColumnCount { expected, got }) }
}

/// A [`Density`] given a set of observed columns, asked row by row. A row is passed whole; its missing cells are not
/// read.
pub trait Given {
    /// Log-density of the observed cells in nats.
    fn log_density(&self, row: &[f64]) -> f64;

    /// Mean and variance of every gap, for several rows.
    fn complete_rows(&self, rows: &[&[f64]]) -> Vec<Completed>;

    /// The row with its gaps filled by one joint draw.
    fn draw(&self, row: &[f64], rng: &mut dyn Rng) -> Vec<f64>;

    /// Mean and variance of every gap of one row.
    fn complete(&self, row: &[f64]) -> Completed {
        self.complete_rows(&[row]).pop().expect("one answer per row")
    }
}

/// Mean and variance of the gaps of a row, in the order of its missing columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Completed {
    /// Conditional means.
    pub mean: Vec<f64>,
    /// Conditional variances of the data values (noise included).
    pub variance: Vec<f64>,
}

/// One filled gap.
#[derive(Debug, Clone, PartialEq)]
pub struct FilledCell {
    /// Row, from 0.
    pub row: usize,
    /// Column, from 0.
    pub column: usize,
    /// Conditional mean, which limits of the column do not change: they apply to [`value`](Self::value) and intervals.
    pub mean: f64,
    /// Conditional standard deviation; 0 where the value is taken as known.
    pub sd: f64,
    /// Its distribution, which says how far intervals reach.
    pub distribution: Distribution,
}

/// A distribution of given mean and standard deviation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Distribution {
    /// Normal.
    Normal,
    /// Student's t.
    Student {
        /// ν. Where it is 2 or less there is no standard deviation, and half the width of the central 68.27 % takes its
        /// place: of a normal distribution they are the same.
        degrees_of_freedom: f64,
    },
    /// Calibrated on hidden cells, or within the limits of its column.
    Shaped(Arc<Shape>),
}

/// How the cells of a column are distributed.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// Quantiles, of mean 0 and standard deviation 1.
    pub quantiles: Quantiles,
    /// The values that the column can have: intervals and the value filled in are the nearest of them.
    pub limits: Limits,
}

impl Distribution {
    /// The value below which a share `p` of a distribution of mean 0 and standard deviation 1 lies.
    pub(super) fn quantile(&self, p: f64) -> f64 {
        match self {
            Self::Normal => Normal::standard().inverse_cdf(p),
            Self::Student { degrees_of_freedom: nu } => student_quantile(*nu, p) / student_unit(*nu),
            Self::Shaped(shape) => shape.quantiles.at(Normal::standard().inverse_cdf(p)),
        }
    }

    /// The share of such a distribution below `z`.
    fn cdf(&self, z: f64) -> f64 {
        match self {
            Self::Normal => Normal::standard().cdf(z),
            Self::Student { degrees_of_freedom: nu } => student_cdf(*nu, z * student_unit(*nu)),
            Self::Shaped(shape) => Normal::standard().cdf(shape.quantiles.level_of(z)),
        }
    }
}

/// From here on quantiles are expanded around the normal one. Those of statrs 0.19 were more than 1e-5 off at 1e7 degrees of
/// freedom, and a table of them up to 1e12 had not ended after ten minutes.
const NEARLY_NORMAL: f64 = 1e3;

/// The quantile of Student's t; where it is nearly normal by the expansion of Fisher and Cornish (1960).
fn student_quantile(nu: f64, p: f64) -> f64 {
    if nu < NEARLY_NORMAL {
        return student(nu).inverse_cdf(p);
    }
    let z = Normal::standard().inverse_cdf(p);
    let s = z * z;
    let terms = [
        (s + 1.0) / 4.0,
        ((5.0 * s + 16.0) * s + 3.0) / 96.0,
        (((3.0 * s + 19.0) * s + 17.0) * s - 15.0) / 384.0,
        ((((79.0 * s + 776.0) * s + 1482.0) * s - 1920.0) * s - 945.0) / 92160.0,
    ];
    z * (1.0 + terms.iter().rev().fold(0.0, |sum, term| (sum + term) / nu))
}

/// The distribution function of Student's t; where 1 / (1 + t²/ν) has lost the digits of t by that of Hill (1970).
fn student_cdf(nu: f64, t: f64) -> f64 {
    if nu < NEARLY_NORMAL * NEARLY_NORMAL {
        return student(nu).cdf(t);
    }
    let a = nu - 0.5;
    let w = (a * (t * t / nu).ln_1p()).sqrt().copysign(t);
    Normal::standard().cdf(w + w * (w * w + 3.0) / (48.0 * a * a))
}

fn student(nu: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, nu).expect("degrees of freedom above 0")
}

/// The standard deviation of Student's t, or what takes its place.
pub(super) fn student_unit(nu: f64) -> f64 {
    if nu > 2.0 { (nu / (nu - 2.0)).sqrt() } else { student_quantile(nu, Normal::standard().cdf(1.0)) }
}

impl FilledCell {
    /// A cell whose value is normal given the row.
    pub fn normal(row: usize, column: usize, mean: f64, sd: f64) -> Self {
        Self { row, column, mean, sd, distribution: Distribution::Normal }
    }

    /// The same with Student's t of this scale around its mean.
    pub(crate) fn student(&mut self, scale: f64, degrees_of_freedom: f64) {
        self.sd = scale * student_unit(degrees_of_freedom);
        self.distribution = Distribution::Student { degrees_of_freedom };
    }

    /// Central interval that covers the value with probability `level` under the model; of a whole column, the whole
    /// numbers in it.
    ///
    /// ```
    /// use covary::model::{Distribution, FilledCell};
    /// let cell = FilledCell::normal(0, 0, 2.0, 3.0);
    /// assert!((cell.interval(0.95)?.1 - (2.0 + 1.959964 * 3.0)).abs() < 1e-5);
    /// // The 97.5 % point of t with 5 degrees of freedom is 2.570582, and its variance 5/3.
    /// let cell = FilledCell { distribution: Distribution::Student { degrees_of_freedom: 5.0 }, ..cell };
    /// assert!((cell.interval(0.95)?.1 - (2.0 + 2.570582 * 3.0 * 0.6_f64.sqrt())).abs() < 1e-5);
    /// assert!((cell.cdf(cell.interval(0.9)?.1) - 0.95).abs() < 1e-9);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `0 < level < 1`.
    pub fn interval(&self, level: f64) -> Result<(f64, f64), Error> {
        let reach = self.reach(level)? * self.sd;
        let (low, high) = (self.mean - reach, self.mean + reach);
        Ok(match &self.distribution {
            Distribution::Shaped(shape) => shape.limits.between(low, high),
            _ => (low, high),
        })
    }

    /// The value below which the cell lies with probability `p`: in a whole column, the nearest whole number.
    ///
    /// ```
    /// let cell = covary::model::FilledCell::normal(0, 0, 2.0, 3.0);
    /// assert!((cell.quantile(0.975)? - (2.0 + 1.959964 * 3.0)).abs() < 1e-5);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `0 < p < 1`.
    pub fn quantile(&self, p: f64) -> Result<f64, Error> {
        if !(p > 0.0 && p < 1.0) {
            return Err(Error::OutOfRange { name: "quantile", value: p, bound: "between 0 and 1" });
        }
        Ok(self.nearest(self.mean + self.sd * self.distribution.quantile(p)))
    }

    /// What is filled in: the mean, or the nearest value that the column can have.
    pub fn value(&self) -> f64 {
        self.nearest(self.mean)
    }

    /// Where a draw of `plain`, the same cell by another distribution, stands in this one, moved by so much: at the same
    /// level.
    pub(crate) fn moved(&self, plain: &Self, drawn: f64, by: f64) -> f64 {
        if plain.sd == 0.0 {
            return drawn + (self.mean - plain.mean) + by;
        }
        let z = (drawn - plain.mean) / plain.sd;
        let z = match (&plain.distribution, &self.distribution) {
            (Distribution::Normal, Distribution::Shaped(shape)) => shape.quantiles.at(z),
            (Distribution::Normal, Distribution::Normal) => z,
            (from, to) => to.quantile(from.cdf(z)),
        };
        self.nearest(self.mean + by + self.sd * z)
    }

    fn nearest(&self, value: f64) -> f64 {
        match &self.distribution {
            Distribution::Shaped(shape) => shape.limits.nearest(value),
            _ => value,
        }
    }

    /// How far the interval of that level reaches from the mean, in standard deviations.
    ///
    /// # Errors
    /// As [`interval`](Self::interval).
    pub fn reach(&self, level: f64) -> Result<f64, Error> {
        if !(level > 0.0 && level < 1.0) {
            return Err(Error::OutOfRange { name: "interval", value: level, bound: "between 0 and 1" });
        }
        Ok(self.distribution.quantile(0.5 + 0.5 * level))
    }

    /// Probability of values below this one; where the value is taken as known, 0, ½ or 1.
    pub fn cdf(&self, value: f64) -> f64 {
        let distance = value - self.mean;
        if self.sd > 0.0 {
            self.distribution.cdf(distance / self.sd)
        } else {
            0.5 + 0.5 * distance.signum() * f64::from(u8::from(distance != 0.0))
        }
    }
}

/// A completed table and what is known about each filled cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Imputed {
    pub(super) values: Matrix,
    pub(super) cells: Vec<FilledCell>,
}

impl Imputed {
    /// The table with these cells filled.
    pub(crate) fn new(data: &Dataset, cells: Vec<FilledCell>) -> Self {
        Self { values: filled_values(data, &cells), cells }
    }

    /// The completed table; observed cells bit for bit as they came.
    pub fn values(&self) -> &Matrix {
        &self.values
    }

    /// The filled cells, row by row.
    pub fn cells(&self) -> &[FilledCell] {
        &self.cells
    }
}
