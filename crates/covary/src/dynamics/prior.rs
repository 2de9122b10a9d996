//! The normal prior of coefficients [M 1.10.6].

use super::{Regressors, Season};
use crate::infer::quadratic;
use crate::{Dataset, Matrix};
use std::f64::consts::TAU;

/// Least variance of a seasonal mean about the wave, in variances of the column: where a table shows none.
const LEAST_DEVIATION: f64 = 1e-4;

/// `β ~ N(0, K⁻¹)` of every column, in units of the fit; K is 0 in the direction of the level.
pub(super) struct Prior {
    precision: Matrix,
    /// Directions with a precision above 0, and the sum of the logarithms of these.
    rank: usize,
    ln_det: f64,
}

impl Prior {
    /// Waves and trend have precision `ridge`. Seasonal means deviate by `deviation`, a variance, from a wave of that kind, so
    /// that a season that is hardly observed is drawn to the wave of its column, never to the mean of the year:
    ///
    /// ```text
    /// β_s = m + a cos 2πs/S + b sin 2πs/S + δ_s      a, b ~ N(0, 1/ridge)      δ ~ N(0, deviation)      m free
    /// ```
    pub(super) fn new(regressors: &Regressors, ridge: f64, deviation: f64) -> Self {
        let r = regressors.len();
        let mut prior = Self { precision: Matrix::zeros(r, r), rank: 0, ln_det: 0.0 };
        if ridge == 0.0 {
            return prior;
        }
        if let Season::Indicators { period } = regressors.season {
            prior.add_seasons(period, ridge, deviation);
        }
        for l in (0..r).filter(|&l| !regressors.is_level(l)) {
            prior.precision[(l, l)] = ridge;
            prior.rank += 1;
            prior.ln_det += ridge.ln();
        }
        prior
    }

    fn add_seasons(&mut self, period: usize, ridge: f64, deviation: f64) {
        let s = period as f64;
        let phase = |k: usize| k as f64 / s * TAU;
        // The sine of a period of 2 is 0.
        let waves = [f64::cos, f64::sin].map(|wave| (0..period).map(|k| wave(phase(k))).collect::<Vec<_>>());
        let waves = waves.iter().take(period - 1).map(|wave| {
            let square: f64 = wave.iter().map(|v| v * v).sum();
            (wave, square, 1.0 / (square / ridge + deviation))
        });
        let waves: Vec<_> = waves.collect();
        for i in 0..period {
            for j in 0..period {
                let mut rest = f64::from(u8::from(i == j)) - 1.0 / s;
                for (wave, square, precision) in &waves {
                    let shared = wave[i] * wave[j] / square;
                    rest -= shared;
                    self.precision[(i, j)] += precision * shared;
                }
                self.precision[(i, j)] += rest / deviation;
            }
        }
        self.rank += period - 1;
        self.ln_det += waves.iter().map(|(.., precision)| precision.ln()).sum::<f64>()
            - (period - 1 - waves.len()) as f64 * deviation.ln();
    }

    /// K
    pub(super) fn precision(&self) -> &Matrix {
        &self.precision
    }

    /// Coefficients of a column that have a prior, in number.
    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    /// `Σ ln p(β)` over columns.
    pub(super) fn ln_density(&self, coefficients: &Matrix) -> f64 {
        let constant = self.ln_det - self.rank as f64 * TAU.ln();
        0.5 * coefficients.rows().map(|b| constant - quadratic(&self.precision, b)).sum::<f64>()
    }
}

/// The variance of seasonal means about the wave, of what wave and trend leave of a table whose columns have unit variance: one-way
/// random effects by their moments, over all columns,
///
/// ```text
/// Σ [Σ_s n_s (m_s − m)² − (g − 3) w²] / Σ (N − Σ n_s²/N)      w²: mean square within seasons, g: seasons
/// ```
pub(super) fn seasonal_deviation(left: &Dataset, season_of_row: &[usize], period: usize) -> f64 {
    let (mut between, mut weight) = (0.0, 0.0);
    for j in 0..left.n_columns() {
        let (mut n, mut sum, mut squares) = (vec![0.0; period], vec![0.0; period], 0.0);
        for (i, &s) in season_of_row.iter().enumerate() {
            let v = left.row(i)[j];
            if !v.is_nan() {
                n[s] += 1.0;
                sum[s] += v;
                squares += v * v;
            }
        }
        let (cells, total) = (n.iter().sum::<f64>(), sum.iter().sum::<f64>());
        let seasons = n.iter().filter(|n| **n > 0.0).count() as f64;
        if cells <= seasons || seasons <= 3.0 {
            continue;
        }
        let of_seasons: f64 = sum.iter().zip(&n).filter(|(_, n)| **n > 0.0).map(|(s, n)| s * s / n).sum();
        let within = (squares - of_seasons) / (cells - seasons);
        between += of_seasons - total * total / cells - (seasons - 3.0) * within;
        weight += cells - n.iter().map(|n| n * n).sum::<f64>() / cells;
    }
    if weight > 0.0 { (between / weight).max(LEAST_DEVIATION) } else { LEAST_DEVIATION }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamics::Trend;
    use crate::linalg::Cholesky;

    /// Against the covariance that the prior is the inverse of, with a level that is next to free.
    #[test]
    fn seasonal_means_have_the_covariance_of_a_wave_and_deviations() {
        let (ridge, deviation, level) = (0.5, 0.1, 1e6);
        for period in [2, 3, 4, 12] {
            let trend = Some(Trend { center: 0.0, unit: 1.0 });
            let prior =
                Prior::new(&Regressors { season: Season::Indicators { period }, trend }, ridge, deviation);
            let phase = |k: usize| k as f64 / period as f64 * TAU;
            let sine = f64::from(u8::from(period > 2));
            let covariance =
                Matrix::from_fn(period + 1, period + 1, |i, j| match (i == period, j == period) {
                    (true, true) => 1.0 / ridge,
                    (false, false) => {
                        let (a, b) = (phase(i), phase(j));
                        let own = if i == j { deviation } else { 0.0 };
                        level + (a.cos() * b.cos() + sine * a.sin() * b.sin()) / ridge + own
                    }
                    _ => 0.0,
                });
            let chol = Cholesky::new(&covariance).unwrap();
            let inverse = chol.inverse();
            for (got, want) in prior.precision().as_slice().iter().zip(inverse.as_slice()) {
                assert!((got - want).abs() < 1e-4, "{period}: {got} {want}");
            }
            assert_eq!(prior.rank(), period);
            // ln|C| has the level's variance times the period, and deviations in that direction.
            let free = (level * period as f64 + deviation).ln();
            assert!((prior.ln_det + chol.ln_det() - free).abs() < 1e-6, "{period}");
        }
    }

    /// Means that deviate by a known variance, in a balanced table: the estimate is the textbook's.
    #[test]
    fn deviations_are_those_of_one_way_random_effects() {
        let (period, years) = (6, 5);
        let cell = |t: usize| ((t * t * 7 + 3 * t) % 11) as f64 + 4.0 * f64::from(u8::from(t % period == 2));
        let table = Dataset::new(Matrix::from_fn(period * years, 1, |t, _| cell(t))).unwrap();
        let seasons: Vec<usize> = (0..period * years).map(|t| t % period).collect();
        let mean = |s: usize| (0..years).map(|y| cell(y * period + s)).sum::<f64>() / years as f64;
        let all = (0..period).map(mean).sum::<f64>() / period as f64;
        let between: f64 = (0..period).map(|s| years as f64 * (mean(s) - all).powi(2)).sum();
        let within = (0..period * years).map(|t| (cell(t) - mean(t % period)).powi(2)).sum::<f64>()
            / (period * (years - 1)) as f64;
        let n = (period * years) as f64;
        let want = (between - (period - 3) as f64 * within) / (n - n / period as f64);
        let got = seasonal_deviation(&table, &seasons, period);
        assert!((got - want.max(LEAST_DEVIATION)).abs() < 1e-12, "{got} {want}");
        assert!(want > LEAST_DEVIATION);
    }
}
