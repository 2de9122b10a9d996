//! The posterior of the number of components, by a sampler that changes it [M 2.6].

mod chain;
mod directions;
#[cfg(test)]
mod tests;
mod truncated_gamma;

use crate::infer::{ChainSummary, Observer, Spectral, Spectrum, Step};
use crate::{Dataset, Error, Spec};
use chain::{Chain, Problem};
use rayon::prelude::*;
use std::fmt;

/// p(q | data) for probabilistic PCA of a complete table, by reversible-jump Markov chains (Green
/// 1995; Zhang, Chan, Kwok & Yeung 2004).
///
/// ```text
/// C = σ² [I + Σ_{i≤q} (1/φᵢ − 1) uᵢ uᵢᵀ]      uᵢ orthonormal, uniform      φᵢ = σ²/λᵢ ~ Beta(a₁, 1)
/// p(σ²) ∝ 1/σ²      p(μ) ∝ 1      p(q): uniform, or as given
/// ```
///
/// Nothing in these priors has a unit, so the answer is the same for the table times any number,
/// plus any row. It is exact except for the error of the draws, where
/// [`Criteria`](super::Criteria) approximates; but **it depends on `a1`**, so quote both. Use it
/// to audit a choice, on up to a few dozen columns.
///
/// ```
/// use covary::{data::simulate, select::ReversibleJump};
/// let (table, _) = simulate::rotated(100, &[5.0, 4.0, 3.0, 1.0, 1.0, 1.0, 1.0], /* seed */ 1);
/// let posterior = ReversibleJump::default().sample(&table)?;
/// assert_eq!(posterior.mode(), 3);
/// assert!(posterior.probabilities[3] > 0.7);
/// assert_eq!(posterior.doubt(), None);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ReversibleJump {
    /// Largest q considered; `None` for all that leave room for noise: up to d − 1 and N − 2, and
    /// below the rank of the table.
    pub max_components: Option<usize>,
    /// Shape of the prior of φ = σ²/λ. Smaller values expect components that stand higher above the
    /// noise, and charge a redundant one about a factor a₁. At 0.1 half the prior mass has λ above a
    /// thousand σ²; at 1 much of it is at λ near σ², where components cost nothing and p(q | data)
    /// spreads upwards.
    pub a1: f64,
    /// Sweeps kept of each chain.
    pub sweeps: usize,
    /// Sweeps of each chain before the first kept one.
    pub warm_up: usize,
    /// Chains, at least 2: they start by turns from q = 0 and from the largest q, so that they agree
    /// only if the start is forgotten.
    pub chains: usize,
    /// Seed; chain c has random stream c.
    pub seed: u64,
    /// p(q) for q = 0, 1, … up to the largest, each above 0, in any units; `None` for uniform.
    pub prior: Option<Vec<f64>>,
}

impl Default for ReversibleJump {
    fn default() -> Self {
        Self { max_components: None, a1: 0.1, sweeps: 4000, warm_up: 1000, chains: 4, seed: 0, prior: None }
    }
}

/// Sweeps between two words to the observer.
const ROUND: usize = 50;
/// R-hat above which the chains have not met.
const LARGEST_R_HAT: f64 = 1.05;

impl ReversibleJump {
    /// Runs the chains.
    ///
    /// # Errors
    /// [`Error::HasGaps`] if a cell is missing; [`Error::TooFewRows`] and [`Error::AllConstant`] where
    /// there is nothing to learn; [`Error::TooManyComponents`] if `max_components` exceeds d − 1 or
    /// N − 2, and [`Error::DegenerateNoise`] if that many explain the table exactly, since p(q | data)
    /// is then not defined; [`Error::OutOfRange`] or [`Error::WrongLength`] for options that make no
    /// sense.
    pub fn sample(&self, data: &Dataset) -> Result<ComponentPosterior, Error> {
        self.sample_observed(data, &mut ())
    }

    /// Runs the chains and tells `observer` about every 50 sweeps: `iteration` is the number of sweeps
    /// each chain has made, warm-up included, and `objective` the number of components, averaged over
    /// the chains.
    ///
    /// ```
    /// use covary::{Error, data::{Shape, simulate}, infer::Step, select::ReversibleJump};
    /// use std::ops::ControlFlow;
    /// let (table, _) = simulate::ppca(Shape { rows: 50, columns: 5, n_components: 2 }, /* seed */ 1);
    /// let patience = |step: &Step| if step.iteration < 200 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    /// let stopped = ReversibleJump::default().sample_observed(&table, &mut { patience });
    /// assert_eq!(stopped, Err(Error::Interrupted));
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`sample`](Self::sample), and [`Error::Interrupted`] once `observer` breaks.
    pub fn sample_observed(
        &self,
        data: &Dataset,
        observer: &mut dyn Observer,
    ) -> Result<ComponentPosterior, Error> {
        let problem = self.problem(data)?;
        let mut chains: Vec<Chain<'_>> =
            (0..self.chains).map(|number| Chain::new(&problem, number, self.seed)).collect();
        let mut iteration = 0;
        for (sweeps, keep) in [(self.warm_up, false), (self.sweeps, true)] {
            let end = iteration + sweeps;
            while iteration < end {
                let round = ROUND.min(end - iteration);
                chains.par_iter_mut().for_each(|chain| chain.round(round, keep));
                iteration += round;
                let components: usize = chains.iter().map(Chain::n_components).sum();
                let objective = components as f64 / chains.len() as f64;
                if observer.step(&Step { iteration, objective }).is_break() {
                    return Err(Error::Interrupted);
                }
            }
        }
        self.posterior(&problem, chains)
    }

    /// Checks the request and reduces the table to the eigenvalues of A.
    fn problem(&self, data: &Dataset) -> Result<Problem, Error> {
        let at_least = |name, value: usize, least: usize, bound| {
            if value >= least { Ok(()) } else { Err(Error::OutOfRange { name, value: value as f64, bound }) }
        };
        at_least("chains", self.chains, 2, "at least 2")?;
        at_least("sweeps", self.sweeps, 4, "at least 4")?;
        let positive = |name, value: f64| {
            let bound = "finite and above 0";
            if value.is_finite() && value > 0.0 {
                Ok(())
            } else {
                Err(Error::OutOfRange { name, value, bound })
            }
        };
        positive("a1", self.a1)?;

        let data = &*data.complete_rows("reversible jump")?;
        let spec = Spec::ppca(0);
        spec.check(data)?;
        spec.check_variances(data.observed_variances(), data.column_names(), Some(data))?;
        let spectrum = Spectral::default().spectrum(data, data.n_columns(), false)?;
        let max_components = self.largest(&spectrum)?;

        let expected = max_components + 1;
        let ln_prior = match &self.prior {
            None => vec![0.0; expected],
            Some(prior) if prior.len() != expected => {
                let what = "entries of the prior (one for each q from 0 to the largest)";
                return Err(Error::WrongLength { what, expected, got: prior.len() });
            }
            Some(prior) => {
                prior.iter().try_for_each(|&p| positive("prior", p))?;
                prior.iter().map(|p| p.ln()).collect()
            }
        };
        // In units of the mean variance, which keeps numbers moderate; the answer has no unit.
        let n = spectrum.n_rows as f64;
        let unit = spectrum.eigenvalues.iter().sum::<f64>() / (n * spectrum.eigenvalues.len() as f64);
        let a = spectrum.eigenvalues.iter().map(|l| l / unit).collect();
        Ok(Problem { a, nu: n - 1.0, a1: self.a1, max_components, ln_prior })
    }

    fn largest(&self, spectrum: &Spectrum) -> Result<usize, Error> {
        let (rows, columns) = (spectrum.n_rows, spectrum.mean.len());
        let max = (columns - 1).min(rows - 2);
        match self.max_components {
            Some(asked) if asked > max => Err(Error::TooManyComponents { asked, rows, columns, max }),
            Some(asked) if spectrum.leaves_no_noise(asked) => {
                Err(Error::DegenerateNoise { asked, rank: spectrum.rank() })
            }
            Some(asked) => Ok(asked),
            None => {
                (0..=max).rev().find(|&q| !spectrum.leaves_no_noise(q)).ok_or(Error::AllConstant { columns })
            }
        }
    }

    fn posterior(&self, problem: &Problem, chains: Vec<Chain<'_>>) -> Result<ComponentPosterior, Error> {
        let proposed: usize = chains.iter().map(|c| c.n_proposed).sum();
        let accepted: usize = chains.iter().map(|c| c.n_accepted).sum();
        let draws: Vec<Vec<f64>> = chains.into_iter().map(|c| c.draws).collect();
        let of_q = ChainSummary::of(&draws)?;
        let mut posterior = ComponentPosterior {
            a1: self.a1,
            probabilities: Vec::new(),
            standard_errors: Vec::new(),
            mean: of_q.mean,
            r_hat: of_q.r_hat,
            ess: of_q.ess,
            acceptance: (proposed > 0).then(|| accepted as f64 / proposed as f64),
            chain_means: draws.iter().map(|c| c.iter().sum::<f64>() / c.len() as f64).collect(),
        };
        for q in 0..=problem.max_components {
            let is_q = |chain: &Vec<f64>| chain.iter().map(|&k| f64::from(u8::from(k == q as f64))).collect();
            let share = ChainSummary::of(&draws.iter().map(is_q).collect::<Vec<_>>())?;
            posterior.probabilities.push(share.mean);
            posterior.standard_errors.push(share.mcse);
        }
        Ok(posterior)
    }
}

/// p(q | data), and how far the chains behind it can be trusted.
#[derive(Debug, Clone, PartialEq)]
pub struct ComponentPosterior {
    /// Shape of the prior behind it ([`ReversibleJump::a1`]): the answer depends on it.
    pub a1: f64,
    /// Entry q is p(q | data).
    pub probabilities: Vec<f64>,
    /// Monte-Carlo standard error of each; 0 where every draw or none has that q.
    pub standard_errors: Vec<f64>,
    /// Posterior mean of q.
    pub mean: f64,
    /// Split R-hat of q; `None` if q never changed in any half of a chain.
    pub r_hat: Option<f64>,
    /// Effective number of draws of q.
    pub ess: f64,
    /// Share of proposed births and deaths that were accepted; `None` if only q = 0 is possible.
    pub acceptance: Option<f64>,
    /// Mean of q in each chain: those at even places started from 0, the others from the largest q.
    pub chain_means: Vec<f64>,
}

impl ComponentPosterior {
    /// The most probable number of components; the smaller one in a tie.
    pub fn mode(&self) -> usize {
        let p = &self.probabilities;
        (0..p.len()).rev().max_by(|&i, &j| p[i].total_cmp(&p[j])).expect("q = 0 is always possible")
    }

    /// Why these numbers should not be used yet, as a value that reads as a sentence; `None` if the
    /// chains agree.
    ///
    /// ```
    /// use covary::{data::simulate, select::ReversibleJump};
    /// let deviations: Vec<f64> = (1..=12).map(f64::from).collect();
    /// let (table, _) = simulate::rotated(60, &deviations, /* seed */ 1);
    /// let hasty = ReversibleJump { sweeps: 20, warm_up: 0, ..ReversibleJump::default() };
    /// let doubt = hasty.sample(&table)?.doubt().expect("20 sweeps are too few");
    /// assert!(doubt.to_string().contains("raise `sweeps`"));
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn doubt(&self) -> Option<MixingDoubt> {
        let (lowest, highest) = self
            .chain_means
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &m| (low.min(m), high.max(m)));
        match self.r_hat {
            Some(r_hat) if r_hat > LARGEST_R_HAT => Some(MixingDoubt::LargeRHat { r_hat, lowest, highest }),
            None if lowest < highest => Some(MixingDoubt::StuckApart { lowest, highest }),
            _ => None,
        }
    }
}

/// Chains that do not tell the same story yet.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum MixingDoubt {
    /// R-hat of q is above 1.05.
    LargeRHat {
        /// It.
        r_hat: f64,
        /// Smallest mean of q over a chain.
        lowest: f64,
        /// Largest mean of q over a chain.
        highest: f64,
    },
    /// Every chain stays at one q, and not all at the same.
    StuckApart {
        /// Smallest q.
        lowest: f64,
        /// Largest q.
        highest: f64,
    },
}

impl fmt::Display for MixingDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LargeRHat { r_hat, lowest, highest } => write!(
                f,
                "the chains have not mixed: R-hat of the number of components is {r_hat:.2}, above {LARGEST_R_HAT}, and their means run from {lowest:.1} to {highest:.1}; raise `sweeps` and `warm_up`"
            ),
            Self::StuckApart { lowest, highest } => write!(
                f,
                "the chains have not mixed: none left its number of components, which runs from {lowest} to {highest}; raise `sweeps` and `warm_up`"
            ),
        }
    }
}
