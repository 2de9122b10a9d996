use super::{Canonical, CanonicalCorrelation};
use crate::linalg::thin_svd;
use crate::{Dataset, Error, Matrix};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rayon::prelude::*;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// A canonical correlation, and how often chance would show as much.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CanonicalTest {
    /// ρᵢ.
    pub correlation: f64,
    /// Probability of so much correlation in views that share no more than those before.
    pub p_value: f64,
}

impl Canonical {
    /// Bartlett's (1941) test of each correlation together with all smaller ones; of Gaussian rows, and all
    /// correlations, not the first few. Only for tables with at least twice as many rows as columns: it is 1 where
    /// its statistic is not positive.
    ///
    /// ```text
    /// −(N − 1 − (dx + dy + 1)/2) Σ_{i ≥ k} ln(1 − ρᵢ²)  ~  χ²((dx − k)(dy − k)),   k counted from 0
    /// ```
    pub fn bartlett_tests(&self) -> Vec<CanonicalTest> {
        let (dx, dy) = (self.means[0].len(), self.means[1].len());
        let weight = self.n_rows as f64 - 1.0 - 0.5 * (dx + dy + 1) as f64;
        let lost = |r: &f64| -(1.0 - r * r).max(f64::MIN_POSITIVE).ln();
        let test = |k: usize| {
            let statistic = weight.max(0.0) * self.correlations[k..].iter().map(lost).sum::<f64>();
            let degrees_of_freedom = ((dx - k) * (dy - k)) as f64;
            let p_value = ChiSquared::new(degrees_of_freedom).map_or(1.0, |chi| chi.sf(statistic));
            CanonicalTest { correlation: self.correlations[k], p_value }
        };
        (0..self.correlations.len()).map(test).collect()
    }
}

/// Permutation tests that went on until they decided a level.
#[derive(Debug, Clone, PartialEq)]
pub struct SequentialTests {
    /// Every correlation with its test.
    pub tests: Vec<CanonicalTest>,
    /// Permutations made.
    pub n_permutations: usize,
}

/// Permutations after which a sequential test may stop.
const STOPS: [usize; 6] = [199, 999, 4999, 9999, 29_999, 99_999];
/// Standard errors by which a p-value must differ from the level for the test to stop.
const CLEAR: f64 = 4.0;
/// Multiplications that more than 9999 permutations may take.
const WORK: usize = 2_000_000_000;

impl CanonicalCorrelation {
    /// Each correlation compared with those of as many tables whose second view has its rows permuted: the share of them,
    /// itself included, whose correlation of the same rank is as large. For few rows, and with a ridge. A strong first
    /// pair makes it hard on the later ones. Permutation k is drawn from stream k of `seed`.
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    pub fn permutation_tests(
        &self,
        x: &Dataset,
        y: &Dataset,
        n_permutations: usize,
        seed: u64,
    ) -> Result<Vec<CanonicalTest>, Error> {
        let found = self.fit(x, y)?;
        let as_large = self.as_large(&found, (x, y), 0..n_permutations, seed)?;
        Ok(tests(&found, &as_large, n_permutations))
    }

    /// [`permutation_tests`](Self::permutation_tests) with as many permutations as the question needs whether
    /// p-values are at most `level`: 199, and more (999, 4999, 9999, and up to 99 999 of a small table) while the
    /// p-value of a correlation that matters is within four standard errors of the level. Those that matter come no
    /// later than the first whose p-value is clearly above. The numbers are the same at any thread count.
    ///
    /// ```
    /// use covary::{Dataset, Matrix, views::CanonicalCorrelation};
    /// let x = Matrix::from_fn(12, 2, |i, j| ((i * (j + 3)) as f64).sin());
    /// let y = Matrix::from_fn(12, 2, |i, j| if j == 0 { 5.0 - 2.0 * x[(i, 1)] } else { (i as f64).cos() });
    /// let found = CanonicalCorrelation::default().sequential_tests(&Dataset::new(x)?, &Dataset::new(y)?, 0.05, 0)?;
    /// assert_eq!(found.tests[0].p_value, 1.0 / (found.n_permutations + 1) as f64);   // no permutation shows as much
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    pub fn sequential_tests(
        &self,
        x: &Dataset,
        y: &Dataset,
        level: f64,
        seed: u64,
    ) -> Result<SequentialTests, Error> {
        let found = self.fit(x, y)?;
        let (dx, dy) = (x.n_columns(), y.n_columns());
        let one = x.n_rows() * (dx + dy).pow(2) + (dx + dy).pow(3);
        let mut as_large = vec![0; found.correlations.len()];
        let mut done = 0;
        for stop in STOPS {
            if stop > 9999 && (stop - done).saturating_mul(one) > WORK {
                break;
            }
            let more = self.as_large(&found, (x, y), done..stop, seed)?;
            as_large.iter_mut().zip(more).for_each(|(sum, n)| *sum += n);
            done = stop;
            // The binomial standard error at the level itself.
            let error = (level * (1.0 - level) / (done + 1) as f64).sqrt();
            let distance = |n: &usize| (1 + n) as f64 / (1 + done) as f64 - level;
            let first_above = as_large.iter().position(|n| distance(n) > CLEAR * error);
            let mut matter = as_large[..first_above.unwrap_or(as_large.len())].iter();
            if matter.all(|n| distance(n) < -CLEAR * error) {
                break;
            }
        }
        Ok(SequentialTests { tests: tests(&found, &as_large, done), n_permutations: done })
    }

    /// How many of these permutations show as much as each correlation.
    fn as_large(
        &self,
        found: &Canonical,
        (x, y): (&Dataset, &Dataset),
        permutations: std::ops::Range<usize>,
        seed: u64,
    ) -> Result<Vec<usize>, Error> {
        let [x, y] = self.white_views(x, y)?;
        let n = y.n_rows();
        let shuffled = |k: usize| -> Result<Vec<usize>, Error> {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(k as u64);
            let mut rows: Vec<usize> = (0..n).collect();
            rows.shuffle(&mut rng);
            let mut cross = Matrix::zeros(x.n_columns(), y.n_columns());
            for (i, &other) in rows.iter().enumerate() {
                for (a, xa) in x.row(i).iter().enumerate() {
                    cross.row_mut(a).iter_mut().zip(y.row(other)).for_each(|(c, y)| *c += xa * y / n as f64);
                }
            }
            let chance = thin_svd(&cross)?.s;
            // Correlations that are 1 in any table differ by rounding alone.
            let as_large = |(rho, own): (&f64, &f64)| usize::from(rho.min(1.0) >= own - 1e-9);
            Ok(chance.iter().zip(&found.correlations).map(as_large).collect())
        };
        let none = || vec![0; found.correlations.len()];
        let added = |mut a: Vec<usize>, b: Vec<usize>| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            a
        };
        permutations.into_par_iter().map(shuffled).try_reduce(none, |a, b| Ok(added(a, b)))
    }
}

fn tests(found: &Canonical, as_large: &[usize], n_permutations: usize) -> Vec<CanonicalTest> {
    let test = |(&correlation, &n): (&f64, &usize)| CanonicalTest {
        correlation,
        p_value: (1 + n) as f64 / (1 + n_permutations) as f64,
    };
    found.correlations.iter().zip(as_large).map(test).collect()
}
