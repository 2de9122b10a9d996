//! Rows of heavy tails: multivariate t by EM, exact with gaps [M 2.11].

use super::options::{Options, Setting, word_or_number};
use super::report::{Fit, Observer};
use super::{Em, Estimator};
use crate::model::{LinearGaussian, RowDistance, Tails};
use crate::parallel::pieces;
use crate::{Dataset, Error, Spec};
use statrs::function::gamma::digamma;

/// Probabilistic PCA (or factor analysis) of rows that are multivariate t: each has a scale of its own, and the farther
/// out it is, the less it counts.
///
/// ```text
/// t = W x + μ + ε      x ~ N(0, I/u)      ε ~ N(0, Ψ/u)      u ~ Gamma(ν/2, ν/2)
/// ⟨u | t_O⟩ = (ν + m) / (ν + δ)        m: observed cells,  δ = yᵀ C_OO⁻¹ y
/// ```
///
/// EM as [`Em`] does it, rows weighted by ⟨u⟩; ν is the most likely one at every step, unless it is given.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::{Spectral, StudentT}, Dataset, Estimator, Spec};
/// let (clean, _) = simulate::ppca(Shape { rows: 200, columns: 6, n_components: 1 }, /* seed */ 3);
/// let without = Spectral::default().fit(&clean, &Spec::ppca(1))?.model;
/// let mut values = clean.values().clone();
/// values.row_mut(0).copy_from_slice(&[500.0, -500.0, 0.0, 0.0, 0.0, 0.0]);
/// let table = Dataset::new(values)?;
/// let model = StudentT::default().fit(&table, &Spec::ppca(1))?.model;
/// assert!(model.outlyingness(&table)?[0].weight() < 0.01);
/// let cosine: f64 = model.components().row(0).iter().zip(without.components().row(0)).map(|(a, b)| a * b).sum();
/// assert!(cosine > 0.99);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct StudentT {
    /// ν. Estimated by default: at the maximum it says how heavy the tails are, and it costs little.
    pub degrees_of_freedom: DegreesOfFreedom,
    /// How the likelihood is climbed; the options of both are one list.
    pub em: Em,
}

impl Default for StudentT {
    fn default() -> Self {
        Self { degrees_of_freedom: DegreesOfFreedom::Estimated, em: Em::default() }
    }
}

/// Where ν comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DegreesOfFreedom {
    /// Maximum likelihood, from 0.2 to 1000; beyond, the rows are taken for Gaussian.
    Estimated,
    /// This number; ∞ is the Gaussian.
    Fixed(f64),
}

word_or_number!(DegreesOfFreedom: Estimated = "estimated", Fixed, "estimated, or a number");

impl Options for StudentT {
    fn options(&mut self) -> Vec<(&'static str, &mut dyn Setting)> {
        let Self { degrees_of_freedom, em } = self;
        let mut options = em.options();
        options.push(("degrees_of_freedom", degrees_of_freedom));
        options
    }
}

impl Estimator for StudentT {
    type Model = LinearGaussian;

    fn fit_observed(&self, data: &Dataset, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        match self.degrees_of_freedom {
            DegreesOfFreedom::Fixed(f64::INFINITY) => self.em.fit_observed(data, spec, observer),
            DegreesOfFreedom::Fixed(nu) => self.em.fit_tailed(data, spec, &|_| Tails::student(nu), observer),
            DegreesOfFreedom::Estimated => self.em.fit_tailed(data, spec, &most_likely, observer),
        }
    }
}

/// Between these ν is looked for.
const FEWEST: f64 = 0.2;
const MOST: f64 = 1000.0;
/// How exactly ln ν is found: the likelihood is flat there to the square of it.
const PRECISION: f64 = 1e-9;
/// Rows that one thread looks at.
const STEP: usize = 4096;

/// Where the log-likelihood stops rising with ν; beyond the upper end, whichever of it and ∞ is likelier.
fn most_likely(rows: &[RowDistance]) -> Result<Tails, Error> {
    let widths = n_rows_by_width(rows);
    let slope = |ln_nu: f64| slope(rows, &widths, ln_nu.exp());
    let (mut low, mut high) = (FEWEST.ln(), MOST.ln());
    let (mut at_low, mut at_high) = (slope(low), slope(high));
    if at_high >= 0.0 {
        let most = Tails::student(MOST)?;
        let of = |tails: Tails| rows.iter().map(|row| tails.log_density(row)).sum::<f64>();
        return Ok(if of(most) > of(Tails::GAUSSIAN) { most } else { Tails::GAUSSIAN });
    }
    if at_low <= 0.0 {
        return Tails::student(FEWEST);
    }
    // Regula falsi; an end that stays is pulled in (Illinois).
    let (mut last, mut side) = (f64::INFINITY, 0);
    loop {
        let middle = low + (high - low) * at_low / (at_low - at_high);
        let moved = (middle - last).abs();
        if moved <= PRECISION || moved.is_nan() {
            return Tails::student(middle.exp());
        }
        last = middle;
        let at = slope(middle);
        if at > 0.0 {
            (low, at_low) = (middle, at);
            at_high *= if side == 1 { 0.5 } else { 1.0 };
            side = 1;
        } else {
            (high, at_high) = (middle, at);
            at_low *= if side == -1 { 0.5 } else { 1.0 };
            side = -1;
        }
    }
}

/// How many rows have 0, 1, … observed cells.
fn n_rows_by_width(rows: &[RowDistance]) -> Vec<f64> {
    let widest = rows.iter().map(|row| row.n_observed).max().unwrap_or(0);
    let mut counts = vec![0.0; widest + 1];
    for row in rows {
        counts[row.n_observed] += 1.0;
    }
    counts
}

/// The derivative of the log-likelihood by ln ν at given distances:
/// ```text
/// ν/2 Σ_n [ψ((ν + m)/2) − ψ(ν/2) + (δ − m)/(ν + δ) − ln(1 + δ/ν)]
/// ```
fn slope(rows: &[RowDistance], widths: &[f64], nu: f64) -> f64 {
    let none = digamma(0.5 * nu);
    let of_width = |(m, n): (usize, &f64)| n * (digamma(0.5 * (nu + m as f64)) - none);
    // (δ − m)/(ν + δ), which is 1 for rows so far away that δ overflows.
    let of_row = |row: &RowDistance| {
        1.0 - (nu + row.n_observed as f64) / (nu + row.squared) - (row.squared / nu).ln_1p()
    };
    let parts = pieces(rows.len(), STEP, |part| rows[part].iter().map(of_row).sum::<f64>());
    0.5 * nu * (widths.iter().enumerate().map(of_width).sum::<f64>() + parts.iter().sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few rows leave noise at its floor, and some rows infinitely far.
    #[test]
    fn rows_beyond_all_numbers_do_not_keep_the_search_going() {
        let row = |squared: f64| RowDistance { n_observed: 4, ln_volume: 0.0, squared };
        let rows = [row(f64::INFINITY), row(1e20), row(12.0), row(30.0)];
        assert!(slope(&rows, &n_rows_by_width(&rows), 1.0) < 0.0);
        assert_eq!(most_likely(&rows).unwrap(), Tails::student(FEWEST).unwrap());
    }
}
