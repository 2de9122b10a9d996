//! Rows of heavier tails than a Gaussian's: each has a scale of its own [M 2.11].
//!
//! ```text
//! t | u ~ N(μ, C / u)      u ~ Gamma(ν/2, ν/2)      hence  t ~ t_ν(μ, C)
//! u | t_O ~ Gamma((ν + m)/2, (ν + δ)/2)      m: observed cells,  δ = yᵀ C_OO⁻¹ y
//! ```
//!
//! Given u everything is Gaussian, and the mean of whatever is asked for does not depend on u: answers are those of the
//! Gaussian with variances multiplied by the mean of 1/u.

use super::density::{check_columns, student_unit};
use super::outliers::tail_of_chi_squared;
use super::{Density, Distribution, LinearGaussian};
use crate::{Dataset, Error};
use rand::Rng;
use rand_distr::{Distribution as _, Gamma};
use statrs::function::beta::beta_reg;
use statrs::function::gamma::ln_gamma;
use std::ops::RangeInclusive;

/// Below, quantiles lose their digits (95 % of rows with 0.1 degrees of freedom are within 2e12); above, densities do.
const FINITE: RangeInclusive<f64> = 0.2..=1e6;

/// How heavy the tails of rows are, by the degrees of freedom ν of Student's t, of which ∞ is the Gaussian. All that a
/// distribution of the scale u changes in the answers of a model is here.
///
/// ```
/// use covary::model::Tails;
/// let heavy = Tails::student(4.0)?;
/// assert_eq!(heavy.parameters(), [("degrees_of_freedom", 4.0)]);
/// assert!(Tails::student(0.1).is_err() && Tails::GAUSSIAN.is_gaussian());
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tails(f64);

/// What the density of a row comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RowDistance {
    /// m, its observed cells.
    pub(crate) n_observed: usize,
    /// `ln |2π C_OO|`
    pub(crate) ln_volume: f64,
    /// `δ = yᵀ C_OO⁻¹ y`
    pub(crate) squared: f64,
}

impl Tails {
    /// Those of a Gaussian.
    pub const GAUSSIAN: Self = Self(f64::INFINITY);

    /// Those of Student's t.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless there are from 0.2 to 1e6 degrees of freedom, or ∞.
    pub fn student(degrees_of_freedom: f64) -> Result<Self, Error> {
        if degrees_of_freedom == f64::INFINITY || FINITE.contains(&degrees_of_freedom) {
            return Ok(Self(degrees_of_freedom));
        }
        let (name, bound) = ("degrees_of_freedom", "from 0.2 to 1e6, or inf");
        Err(Error::OutOfRange { name, value: degrees_of_freedom, bound })
    }

    /// Its parameters by name.
    pub fn parameters(self) -> Vec<(&'static str, f64)> {
        vec![("degrees_of_freedom", self.0)]
    }

    /// What rows are, in words, numbers as `digits` writes them; nothing of Gaussian ones.
    pub fn words(self, digits: impl Fn(f64) -> String) -> Option<String> {
        let student = || format!("rows are Student's t with {} degrees of freedom", digits(self.0));
        (!self.is_gaussian()).then(student)
    }

    /// Whether rows are Gaussian.
    pub fn is_gaussian(self) -> bool {
        self == Self::GAUSSIAN
    }

    /// `ln t_ν(t_O | μ_O, C_OO)`; 0 of no cell.
    pub(crate) fn log_density(self, row: &RowDistance) -> f64 {
        let RowDistance { ln_volume, squared, .. } = *row;
        if self.is_gaussian() {
            return 0.0 - 0.5 * (ln_volume + squared);
        }
        let (half, m) = (0.5 * self.0, row.n_observed as f64);
        ln_gamma(half + 0.5 * m)
            - ln_gamma(half)
            - 0.5 * (ln_volume + m * half.ln())
            - (half + 0.5 * m) * (squared / self.0).ln_1p()
    }

    /// `⟨u | t_O⟩ = (ν + m) / (ν + δ)`
    pub(crate) fn weight(self, n_observed: usize, squared: f64) -> f64 {
        if self.is_gaussian() { 1.0 } else { (self.0 + n_observed as f64) / (self.0 + squared) }
    }

    /// The probability that a row of n observed cells is at least as far away: `P(n F(n, ν) ≥ δ)`, or `P(χ²ₙ ≥ δ)`.
    pub(crate) fn tail_probability(self, n_observed: usize, squared: f64) -> f64 {
        if self.is_gaussian() || n_observed == 0 {
            return tail_of_chi_squared(n_observed, squared);
        }
        beta_reg(0.5 * self.0, 0.5 * n_observed as f64, self.0 / (self.0 + squared))
    }

    /// Of a value that is normal given u: its distribution given the observed cells.
    pub(crate) fn distribution(self, n_observed: usize, _squared: f64) -> Distribution {
        if self.is_gaussian() {
            Distribution::Normal
        } else {
            Distribution::Student { degrees_of_freedom: self.0 + n_observed as f64 }
        }
    }

    /// What its variance given u = 1 is multiplied by: `⟨1/u | t_O⟩ = (ν + δ) / (ν + m − 2)`, and where there is no
    /// variance what [`Distribution::Student`] has in its place.
    pub(crate) fn spread(self, n_observed: usize, squared: f64) -> f64 {
        if self.is_gaussian() {
            return 1.0;
        }
        student_unit(self.0 + n_observed as f64).powi(2) / self.weight(n_observed, squared)
    }

    /// A draw of `1 / √u` given the observed cells; without any, of a new row.
    pub(crate) fn draw_deviation(self, n_observed: usize, squared: f64, rng: &mut dyn Rng) -> f64 {
        if self.is_gaussian() {
            return 1.0;
        }
        let shape = 0.5 * (self.0 + n_observed as f64);
        let u = Gamma::new(shape, 2.0 / (self.0 + squared)).expect("a shape and a scale above 0").sample(rng);
        // A draw that underflows would be an infinite row.
        1.0 / f64::max(u, 1e-200).sqrt()
    }
}

impl LinearGaussian {
    /// The same parameters of rows whose scale varies: multivariate t with this many degrees of freedom, ν, of which ∞
    /// is the Gaussian.
    ///
    /// ```text
    /// t = W x + μ + ε      x ~ N(0, I/u)      ε ~ N(0, Ψ/u)      u ~ Gamma(ν/2, ν/2)
    /// ```
    ///
    /// [`covariance`](Self::covariance), variances and noise are those of a row with u = 1; the covariance of all rows is
    /// ν/(ν − 2) times that where ν > 2.
    ///
    /// ```
    /// use covary::{Dataset, Density, LinearGaussian, Matrix, Noise};
    /// let normal = LinearGaussian::new(Matrix::zeros(1, 0), vec![0.0], Noise::Isotropic(1.0))?;
    /// let cauchy = normal.clone().with_tail_degrees_of_freedom(1.0)?;
    /// let rows = Dataset::new(Matrix::from_rows(&[[3.0]]))?;
    /// let density = cauchy.log_density(&rows)?[0].exp();
    /// assert!((density - 1.0 / (std::f64::consts::PI * 10.0)).abs() < 1e-12);   // 1 / π(1 + t²)
    /// assert!(normal.log_density(&rows)?[0].exp() < 0.2 * density);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless ν is ∞ or from 0.2 to 1e6, [`Error::Unsupported`] for a model with uncertain
    /// parameters.
    pub fn with_tail_degrees_of_freedom(self, nu: f64) -> Result<Self, Error> {
        self.with_tails(Tails::student(nu)?)
    }

    /// The same of rows with these tails.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a model with uncertain parameters.
    pub fn with_tails(mut self, tails: Tails) -> Result<Self, Error> {
        if self.uncertainty().is_some() && !tails.is_gaussian() {
            let (what, instead) = ("heavy tails", "parameters taken as known (`plug_in`)");
            return Err(Error::Unsupported { method: "a model with uncertain parameters", what, instead });
        }
        self.tails = tails;
        Ok(self)
    }

    /// How much each row counts, `⟨u | t_O⟩ = (ν + m) / (ν + yᵀ C_OO⁻¹ y)` with m observed cells: far below 1 for an
    /// outlier; 1 if rows are Gaussian.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the model.
    pub fn row_weights(&self, data: &Dataset) -> Result<Vec<f64>, Error> {
        check_columns(self.n_columns(), data)?;
        let weight = |row: &RowDistance| self.tails.weight(row.n_observed, row.squared);
        Ok(self.row_distances(data).iter().map(weight).collect())
    }

    /// How heavy the tails of its rows are.
    pub fn tails(&self) -> Tails {
        self.tails
    }

    /// ν, the degrees of freedom of its rows; ∞ if they are Gaussian.
    pub fn tail_degrees_of_freedom(&self) -> f64 {
        self.tails.0
    }
}
