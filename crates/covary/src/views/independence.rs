use super::{Canonical, CanonicalCorrelation};
use crate::{Dataset, Error};
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

impl CanonicalCorrelation {
    /// Each correlation beside those of as many tables whose second view has its rows shuffled: the share of them,
    /// itself included, whose correlation of the same rank is as large. For few rows, and with a ridge. A strong first
    /// pair makes it hard on the later ones.
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
        let shuffled = |k: usize| -> Result<Vec<f64>, Error> {
            let mut rows: Vec<usize> = (0..y.n_rows()).collect();
            rows.shuffle(&mut ChaCha8Rng::seed_from_u64(seed.wrapping_add(k as u64)));
            Ok(self.fit(x, &y.of_rows(&rows)?)?.correlations)
        };
        let chance: Vec<Vec<f64>> =
            (0..n_permutations).into_par_iter().map(shuffled).collect::<Result<_, _>>()?;
        let test = |(k, &correlation): (usize, &f64)| {
            // Correlations that are 1 in any table differ by rounding alone.
            let as_large = chance.iter().filter(|rho| rho[k] >= correlation - 1e-9).count();
            let p_value = (1 + as_large) as f64 / (1 + n_permutations) as f64;
            CanonicalTest { correlation, p_value }
        };
        Ok(found.correlations.iter().enumerate().map(test).collect())
    }
}
