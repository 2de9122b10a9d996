//! Priors: the normal one of coefficients [M 1.10.6], and that of a transition of many factors [M 1.10.12].

use super::moments::{Dynamics, regressed, unexplained};
use super::{Regressors, Season};
use crate::infer::quadratic;
use crate::linalg::Cholesky;
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
    /// Waves and trend have precision `ridge`, or waves that of `waves` where it has more. Seasonal means deviate by `deviation`, a variance, from a wave of that kind, so
    /// that a season that is hardly observed is drawn to the wave of its column, never to the mean of the year:
    ///
    /// ```text
    /// β_s = m + a cos 2πs/S + b sin 2πs/S + δ_s      a, b ~ N(0, 1/ridge)      δ ~ N(0, deviation)      m free
    /// ```
    pub(super) fn new(regressors: &Regressors, ridge: f64, deviation: f64, waves: &[f64]) -> Self {
        let r = regressors.len();
        let mut prior = Self { precision: Matrix::zeros(r, r), rank: 0, ln_det: 0.0 };
        if ridge == 0.0 {
            return prior;
        }
        if let Season::Indicators { period } = regressors.season {
            prior.add_seasons(period, ridge, deviation);
        }
        for l in (0..r).filter(|&l| !regressors.is_level(l)) {
            // Cosine and sine of each wave follow the level.
            let precision = waves.get((l - 1) / 2).map_or(ridge, |precision| precision.max(ridge));
            prior.precision[(l, l)] = precision;
            prior.rank += 1;
            prior.ln_det += precision.ln();
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

/// Rounds of a search that ends sooner as a rule.
const ROUNDS: usize = 100;
/// Beyond this many steps of the table a prior leaves nothing to estimate.
const MOST: f64 = 1e4;
/// Largest memory of a factor that a prior is about.
const LARGEST: f64 = 0.98;

/// The prior of a transition by which each factor follows itself alone,
///
/// ```text
/// A ~ N(A₀, Q ⊗ (λ B)⁻¹)        A₀ = (diag a, 0, …)        B: the covariance of states of such factors
/// ```
///
/// a being the correlation of each factor with itself one step before. It counts as λ steps without innovations: what these add to the
/// moments of steps is all that the M-step needs. A transition of k factors has k² entries, of which a table of a few hundred rows
/// says little; λ is the one that the table makes most probable.
pub(super) struct FollowsItself {
    /// `λ A₀ B A₀ᵀ`, `λ A₀ B`, `λ B`
    pub(super) now: Matrix,
    pub(super) with_before: Matrix,
    pub(super) before: Matrix,
}

impl FollowsItself {
    /// Of expected moments; `None` for a single factor of order 1, or without steps.
    pub(super) fn of(seen: &Dynamics) -> Option<Self> {
        let (k, states) = (seen.with_before.n_rows(), seen.with_before.n_columns());
        if states == 1 || seen.steps == 0.0 {
            return None;
        }
        let variance = |i: usize| seen.before[(i, i)] / seen.steps;
        let a: Vec<f64> = (0..k)
            .map(|i| seen.with_before[(i, i)] / (seen.before[(i, i)] * seen.now[(i, i)]).sqrt())
            .map(|a| if a.is_finite() { a.clamp(-LARGEST, LARGEST) } else { 0.0 })
            .collect();
        // Covariance of a factor with itself this many steps apart.
        let apart = |i: usize, j: usize, steps: usize| {
            if i == j { variance(i) * a[i].powi(steps as i32) } else { 0.0 }
        };
        let one = Self {
            now: Matrix::from_fn(k, k, |i, j| apart(i, j, 2)),
            with_before: Matrix::from_fn(k, states, |i, s| apart(i, s % k, 1 + s / k)),
            before: Matrix::from_fn(states, states, |r, s| apart(r % k, s % k, (r / k).abs_diff(s / k))),
        };
        let mut lambda = seen.steps;
        for _ in 0..ROUNDS {
            let next = one.times(lambda).more_probable(&one.before, &a, seen)?;
            let moved = (next / lambda).ln().abs();
            lambda = next;
            if moved < 1e-3 || lambda > MOST * seen.steps {
                break;
            }
        }
        Some(one.times(lambda.min(MOST * seen.steps)))
    }

    fn times(&self, lambda: f64) -> Self {
        let of = |m: &Matrix| Matrix::from_fn(m.n_rows(), m.n_columns(), |i, j| lambda * m[(i, j)]);
        Self { now: of(&self.now), with_before: of(&self.with_before), before: of(&self.before) }
    }

    /// MacKay's fixed point: `λ = k·states / ⟨tr Q⁻¹ (A − A₀) B (A − A₀)ᵀ⟩`, given Q.
    fn more_probable(&self, b: &Matrix, a: &[f64], seen: &Dynamics) -> Option<f64> {
        let sum =
            |x: &Matrix, y: &Matrix| Matrix::from_fn(x.n_rows(), x.n_columns(), |i, j| x[(i, j)] + y[(i, j)]);
        let [now, with_before, before] = [
            sum(&self.now, &seen.now),
            sum(&self.with_before, &seen.with_before),
            sum(&self.before, &seen.before),
        ];
        let transition = regressed(&with_before, &before);
        let q = unexplained(&transition, &now, &with_before, &before, seen.steps);
        let (k, states) = (transition.n_rows(), transition.n_columns());
        let off = Matrix::from_fn(k, states, |i, j| transition[(i, j)] - if i == j { a[i] } else { 0.0 });
        let apart = Cholesky::new(&q)?.solve_matrix(&off.dot(b).dot_t(&off)).trace();
        let unknown = k as f64 * Cholesky::new(&before)?.solve_matrix(b).trace();
        let lambda = (k * states) as f64 / (apart + unknown);
        lambda.is_finite().then_some(lambda)
    }

    /// Its log-density without constants: `−½ tr Q⁻¹ (A − A₀) λB (A − A₀)ᵀ`.
    pub(super) fn ln_density(&self, transition: &Matrix, innovation: &Matrix) -> Option<f64> {
        let left = unexplained(transition, &self.now, &self.with_before, &self.before, 1.0);
        Some(-0.5 * Cholesky::new(innovation)?.solve_matrix(&left).trace())
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

/// Precisions of the coefficients of each of the first `n` waves of a table whose columns have unit variance, from their least squares and
/// what these leave: one over the mean of squares less what their errors have in it.
pub(super) fn wave_precisions(coefficients: &Matrix, left: &Dataset, n: usize) -> Vec<f64> {
    let error: Vec<f64> = (left.observed_variances().iter())
        .zip(left.n_observed_by_column())
        .map(|(variance, &cells)| 2.0 * variance / (cells as f64).max(1.0))
        .collect();
    let precision = |wave: usize| {
        let of_column =
            |(b, error): (&[f64], &f64)| 0.5 * (b[1 + 2 * wave].powi(2) + b[2 + 2 * wave].powi(2)) - error;
        let sum: f64 = coefficients.rows().zip(&error).map(of_column).sum();
        1.0 / (sum / error.len() as f64).max(LEAST_DEVIATION)
    };
    (0..n).map(precision).collect()
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
            let prior = Prior::new(
                &Regressors { season: Season::Indicators { period }, trend },
                ridge,
                deviation,
                &[],
            );
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

    /// Numbers of mean 0 and variance 1, by lot.
    fn lot() -> impl FnMut() -> f64 {
        let mut state = 1_u64;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64 * 12.0_f64.sqrt() - 3.0_f64.sqrt()
        }
    }

    /// Moments of a hundred steps of three factors that follow each other, too, of order 1 or 2.
    fn seen(order: usize) -> Dynamics {
        let (k, n, mut noise) = (3, 100, lot());
        let mut factors = Matrix::zeros(n + order, k);
        for t in 0..n + order {
            for i in 0..k {
                let before = if t == 0 { [0.0; 2] } else { [i, (i + 1) % k].map(|i| factors[(t - 1, i)]) };
                factors[(t, i)] = 0.5 * before[0] - 0.4 * before[1] + noise();
            }
        }
        let state = |t: usize, i: usize| factors[(t, i)];
        let mut out = Dynamics::zeros(k, k * order);
        for t in order..n + order {
            let x: Vec<f64> = (0..k).map(|i| state(t, i)).collect();
            let s: Vec<f64> = (0..k * order).map(|j| state(t - 1 - j / k, j % k)).collect();
            let outer = |m: &mut Matrix, x: &[f64], y: &[f64]| {
                for (i, x) in x.iter().enumerate() {
                    m.row_mut(i).iter_mut().zip(y).for_each(|(m, y)| *m += x * y);
                }
            };
            outer(&mut out.now, &x, &x);
            outer(&mut out.with_before, &x, &s);
            outer(&mut out.before, &s, &s);
            out.steps += 1.0;
        }
        out
    }

    /// The density of steps with the transition integrated out, `|λB|^{k/2} |S₀₀ + λB|^{−k/2} exp(−½ tr Q⁻¹ left)`, is largest at λ, the
    /// prior is the matrix normal, and a transition by which factors follow themselves alone is where it is largest.
    #[test]
    fn the_prior_of_a_transition_is_the_most_probable() {
        for order in [1, 2] {
            let seen = seen(order);
            let (k, states) = (3, 3 * order);
            let prior = FollowsItself::of(&seen).unwrap();
            let lambda = prior.before[(0, 0)] / (seen.before[(0, 0)] / seen.steps);
            assert!((1.0..1e4).contains(&lambda), "{lambda}");
            let sums = |share: f64| {
                let mut all = Dynamics::zeros(k, states);
                all.steps = seen.steps;
                let of = |m: &Matrix, p: &Matrix| {
                    Matrix::from_fn(m.n_rows(), m.n_columns(), |i, j| m[(i, j)] + share * p[(i, j)])
                };
                (all.now, all.with_before, all.before) = (
                    of(&seen.now, &prior.now),
                    of(&seen.with_before, &prior.with_before),
                    of(&seen.before, &prior.before),
                );
                all
            };
            let at = sums(1.0);
            let a = regressed(&at.with_before, &at.before);
            let q = unexplained(&a, &at.now, &at.with_before, &at.before, seen.steps);
            let evidence = |share: f64| {
                let all = sums(share);
                let a = regressed(&all.with_before, &all.before);
                let left = unexplained(&a, &all.now, &all.with_before, &all.before, 1.0);
                0.5 * (k * states) as f64 * share.ln()
                    - 0.5 * k as f64 * Cholesky::new(&all.before).unwrap().ln_det()
                    - 0.5 * Cholesky::new(&q).unwrap().solve_matrix(&left).trace()
            };
            assert!(evidence(1.0) > evidence(1.05) && evidence(1.0) > evidence(0.95), "order {order}");

            // vec(A − A₀)ᵀ (λB ⊗ Q⁻¹) vec(A − A₀), entry by entry.
            let itself = regressed(&prior.with_before, &prior.before);
            let inverse = Cholesky::new(&q).unwrap().inverse();
            let mut squared = 0.0;
            for (i, j, r, s) in (0..k)
                .flat_map(|i| (0..k).map(move |j| (i, j)))
                .flat_map(|(i, j)| (0..states).flat_map(move |r| (0..states).map(move |s| (i, j, r, s))))
            {
                let off = |i: usize, r: usize| a[(i, r)] - itself[(i, r)];
                squared += off(i, r) * prior.before[(r, s)] * off(j, s) * inverse[(i, j)];
            }
            let got = prior.ln_density(&a, &q).unwrap();
            assert!((got + 0.5 * squared).abs() < 1e-6 * squared, "{got} {squared}");
            assert!(prior.ln_density(&itself, &q).unwrap().abs() < 1e-6);
            for (i, s) in (0..k).flat_map(|i| (0..states).map(move |s| (i, s))) {
                let want = if i == s {
                    seen.with_before[(i, i)] / (seen.now[(i, i)] * seen.before[(i, i)]).sqrt()
                } else {
                    0.0
                };
                assert!((itself[(i, s)] - want).abs() < 1e-9, "{i} {s}");
            }
        }
        assert!(FollowsItself::of(&Dynamics::zeros(1, 1)).is_none());
    }

    /// Waves of a known size in noise: the precision is one over their mean square, whatever the noise; without any it is the largest.
    #[test]
    fn waves_have_the_precision_that_columns_show() {
        let mut noise = lot();
        let (rows, d) = (48, 400);
        let coefficients = Matrix::from_fn(d, 5, |_, l| match l {
            1 | 2 => 0.5 * noise() + (2.0_f64 / 48.0).sqrt() * noise(),
            _ => (2.0_f64 / 48.0).sqrt() * noise(),
        });
        let left = Dataset::new(Matrix::from_fn(rows, d, |_, _| noise())).unwrap();
        let found = wave_precisions(&coefficients, &left, 2);
        assert!((3.2..5.0).contains(&found[0]), "{found:?}");
        assert!(found[1] > 100.0, "{found:?}");
    }
}
