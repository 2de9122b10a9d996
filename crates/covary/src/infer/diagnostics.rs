//! Convergence diagnostics of Markov chains: R-hat and effective sample sizes
//! (Gelman & Rubin 1992; Geyer 1992; Vehtari et al. 2021).

use crate::Error;
use serde::{Deserialize, Serialize};

/// Split R-hat of one scalar over several chains: the scale by which its spread could still shrink if
/// the chains went on for ever; 1 when they tell the same story.
///
/// ```text
/// every chain is cut in halves: m sequences of n draws (the middle one of an odd number is left out)
/// W = mean of their variances (divisor n − 1)        B/n = variance of their means (divisor m − 1)
/// R̂ = √( ((n−1)/n W + B/n) / W )
/// ```
///
/// Halves show a chain that drifts even where there is only one. `None` if no half varies: then
/// nothing is known, and the draws themselves show whether the chains stand at the same value.
///
/// ```
/// use covary::infer::split_r_hat;
/// let calm = vec![vec![1.0, -1.0, 0.5, -0.5, 1.0, -1.0, 0.5, -0.5]; 2];
/// assert!(split_r_hat(&calm)?.unwrap() < 1.0);
/// let apart = vec![calm[0].clone(), calm[0].iter().map(|v| v + 5.0).collect()];
/// assert!(split_r_hat(&apart)?.unwrap() > 3.0);
/// assert_eq!(split_r_hat(&[vec![2.0; 10]])?, None);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// [`Error::WrongLength`] without chains or if their lengths differ, [`Error::OutOfRange`] for fewer
/// than 4 draws in a chain or a draw that is not finite.
pub fn split_r_hat(chains: &[Vec<f64>]) -> Result<Option<f64>, Error> {
    Ok(Halves::of(chains)?.r_hat())
}

/// Effective sample size of the mean of one scalar over several chains: how many independent draws
/// would estimate it as well.
///
/// ```text
/// ρₜ = 1 − (W − cₜ) / ((n−1)/n W + B/n)        cₜ: mean autocovariance at lag t over the half-chains
/// ESS = m n / (1 + 2 Σ ρₜ)
/// ```
///
/// The sum runs over pairs of lags while they are positive, made monotone (Geyer 1992). Draws
/// that are all the same count in full; chains that stand at different values count for next to
/// nothing.
///
/// ```
/// use covary::infer::effective_sample_size;
/// let slow: Vec<f64> = (0..400).map(|i| (f64::from(i) / 40.0).sin()).collect();
/// assert!(effective_sample_size(&[slow])? < 40.0);
/// assert_eq!(effective_sample_size(&[vec![2.0; 10], vec![2.0; 10]])?, 20.0);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// As [`split_r_hat`].
pub fn effective_sample_size(chains: &[Vec<f64>]) -> Result<f64, Error> {
    Ok(Halves::of(chains)?.effective_sample_size())
}

/// One scalar over all chains: what it is, and how well the chains know it.
///
/// ```
/// use covary::infer::ChainSummary;
/// let chains = vec![vec![1.0, 3.0, 2.0, 1.5, 2.5, 2.0], vec![2.0, 1.0, 3.0, 2.5, 1.5, 2.0]];
/// let summary = ChainSummary::of(&chains)?;
/// assert_eq!(summary.mean, 2.0);
/// assert_eq!(summary.mcse, summary.sd / summary.ess.sqrt());
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ChainSummary {
    /// Mean of all draws.
    #[serde(with = "crate::json")]
    pub mean: f64,
    /// Standard deviation of all draws (divisor: their number less one).
    #[serde(with = "crate::json")]
    pub sd: f64,
    /// Monte-Carlo standard error of the mean: `sd / √ESS`.
    #[serde(with = "crate::json")]
    pub mcse: f64,
    /// [`split_r_hat`]; `None` where no chain moves.
    #[serde(with = "crate::json")]
    pub r_hat: Option<f64>,
    /// [`effective_sample_size`].
    #[serde(with = "crate::json")]
    pub ess: f64,
}

impl ChainSummary {
    /// Of chains of equal length.
    ///
    /// # Errors
    /// As [`split_r_hat`].
    pub fn of(chains: &[Vec<f64>]) -> Result<Self, Error> {
        let halves = Halves::of(chains)?;
        let all: Vec<f64> = chains.iter().flatten().copied().collect();
        let (mean, variance) = mean_and_variance(&all);
        let (sd, ess) = (variance.sqrt(), halves.effective_sample_size());
        Ok(Self { mean, sd, mcse: sd / ess.sqrt(), r_hat: halves.r_hat(), ess })
    }
}

/// Chains cut in halves, centered, with what both diagnostics need.
struct Halves {
    /// m sequences of n draws, each less its own mean.
    centered: Vec<Vec<f64>>,
    /// W.
    within: f64,
    /// `(n−1)/n W + B/n`.
    pooled: f64,
}

const FEWEST_DRAWS: usize = 4;

impl Halves {
    fn of(chains: &[Vec<f64>]) -> Result<Self, Error> {
        let Some(first) = chains.first() else {
            return Err(Error::WrongLength { what: "number of chains", expected: 1, got: 0 });
        };
        let expected = first.len();
        if let Some(other) = chains.iter().find(|c| c.len() != expected) {
            return Err(Error::WrongLength { what: "draws in each chain", expected, got: other.len() });
        }
        if expected < FEWEST_DRAWS {
            let (name, value) = ("number of draws in a chain", expected as f64);
            return Err(Error::OutOfRange { name, value, bound: "at least 4" });
        }
        if let Some(&value) = chains.iter().flatten().find(|v| !v.is_finite()) {
            return Err(Error::OutOfRange { name: "a draw", value, bound: "finite" });
        }
        let n = expected / 2;
        let halves: Vec<&[f64]> = chains.iter().flat_map(|c| [&c[..n], &c[expected - n..]]).collect();
        let (means, variances): (Vec<f64>, Vec<f64>) = halves.iter().map(|h| mean_and_variance(h)).unzip();
        let within = variances.iter().sum::<f64>() / variances.len() as f64;
        let pooled = (n - 1) as f64 / n as f64 * within + mean_and_variance(&means).1;
        let center = |(half, mean): (&&[f64], &f64)| half.iter().map(|v| v - mean).collect();
        Ok(Self { centered: halves.iter().zip(&means).map(center).collect(), within, pooled })
    }

    fn r_hat(&self) -> Option<f64> {
        (self.within > 0.0).then(|| (self.pooled / self.within).sqrt())
    }

    /// ρₜ.
    fn autocorrelation(&self, t: usize) -> f64 {
        let n = self.centered[0].len();
        let lagged = |h: &Vec<f64>| h[t..].iter().zip(h).map(|(a, b)| a * b).sum::<f64>() / n as f64;
        let covariance = self.centered.iter().map(lagged).sum::<f64>() / self.centered.len() as f64;
        1.0 - (self.within - covariance) / self.pooled
    }

    fn effective_sample_size(&self) -> f64 {
        let n = self.centered[0].len();
        let draws = (self.centered.len() * n) as f64;
        if self.pooled == 0.0 {
            return draws;
        }
        // Pairs (ρ₀, ρ₁), (ρ₂, ρ₃), … while their sum is positive. Lags are found one by one, since
        // chains that mix need few of them.
        let (mut even, mut odd) = (1.0, self.autocorrelation(1));
        let mut pairs = vec![(even, odd)];
        while 2 * pairs.len() + 2 < n && even + odd > 0.0 {
            let t = 2 * pairs.len();
            (even, odd) = (self.autocorrelation(t), self.autocorrelation(t + 1));
            pairs.push(if even + odd >= 0.0 { (even, odd) } else { (0.0, 0.0) });
        }
        // The last pair is not summed; its even lag is added once if it is positive.
        let last = pairs.pop().expect("it starts with one pair");
        let beyond = if even > 0.0 { even } else { last.0 };
        let mut sum = 0.0;
        let mut smallest = f64::INFINITY;
        for (even, odd) in pairs {
            smallest = smallest.min(even + odd);
            sum += smallest;
        }
        let tau = (-1.0 + 2.0 * sum + beyond).max(1.0 / draws.log10());
        draws / tau
    }
}

/// Mean and variance (divisor n − 1); exactly 0 if all values are the same.
fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let first = values[0];
    let mean = first + values.iter().map(|v| v - first).sum::<f64>() / n;
    (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0))
}
