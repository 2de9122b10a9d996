//! Draws from the posterior of Bayesian PPCA and factor analysis, complete or with gaps.

mod align;
mod moves;
mod random;
mod start;
mod state;
mod summary;
mod sweep;
mod table;
#[cfg(test)]
mod tests;

pub use state::GibbsState;

use super::Estimator;
use super::em::unseen_pairs;
use super::options::{Options, options};
use super::report::{Fit, Observer, Step, Termination, Warning};
use crate::{Dataset, Density, Error, LinearGaussian, Spec};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use state::{Chain, Draw};
use std::ops::ControlFlow;
use sweep::{Beliefs, Relevance, Sampler};
use table::Table;

options! {
    /// Gibbs sampling: not one model but draws of it, as many as the table leaves room for.
    ///
    /// ```text
    /// t | x ~ N(W x + μ, Ψ)    x ~ N(0, I)    σ_k² ~ χ⁻²(ν₀, s₀²)    w_k | σ_k² ~ N(0, σ_k² diag(1/α))
    /// μ_k | σ_k² ~ N(0, σ_k²/κ_μ)    αᵢ ~ G(a, b)          in the units of the table, centered and scaled
    /// ```
    ///
    /// One σ² for [`Spec::ppca`], one per column for [`Spec::factor_analysis`]. Intervals of gaps then cover
    /// the uncertainty of the parameters, which those of a single fitted model leave out; on small
    /// tables that is what calibrates them. [`Fit::draws`](super::Fit) has the draws, chain after chain, in
    /// the user's units and rotated towards each other; `model` is their mean.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::Gibbs, Density, Estimator, Spec};
    /// let (whole, _) = simulate::ppca(Shape { rows: 40, columns: 6, n_components: 2 }, /* seed */ 1);
    /// let table = simulate::hide(&whole, 0.2, /* seed */ 2);
    /// let fit = Gibbs { draws: 200, ..Gibbs::default() }.fit(&table, &Spec::ppca(2))?;
    /// // Rows the draws were learned from keep them at equal weights.
    /// let filled = fit.draws.unwrap().of_training_rows().impute(&table)?;
    /// let plugged_in = fit.model.impute(&table)?;
    /// let spread = |cells: &[covary::model::FilledCell]| cells.iter().map(|c| c.sd).sum::<f64>();
    /// assert!(spread(filled.cells()) > spread(plugged_in.cells()));   // the parameters are uncertain, too
    /// # Ok::<(), covary::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct Gibbs {
        /// Chains, from starts far apart; they run side by side. Four let R̂ see what one hides.
        pub chains: usize = 4,
        /// Draws kept per chain.
        pub draws: usize = 500,
        /// Sweeps of each chain before the first draw is kept.
        pub warm_up: usize = 500,
        /// Sweeps from one kept draw to the next.
        pub thin: usize = 2,
        /// Whether each component has a precision α of its own, learned from the data (ARD). A fixed κ₀
        /// believes loadings of about the noise's size: where the signal is r times the noise, r·q/N of
        /// the noise variance would come from the prior alone. ARD finds the size, and shrinks components
        /// that nothing asks for; hence the default.
        pub ard: bool = true,
        /// κ₀, the precision of the loadings in units of the noise without ARD, as a number of pseudo-rows.
        pub kappa0: f64 = 1.0,
        /// Shape a of the prior of α.
        pub ard_shape: f64 = 1.0,
        /// Rate b of the prior of α.
        pub ard_rate: f64 = 1.0,
        /// ν₀: the number of pseudo-cells that inform the noise.
        pub nu0: f64 = 1.0,
        /// s₀²: their variance, as a share of the observed variance. With 1, σ² stays above about 1/(observed
        /// cells): where the noise is less (100 × 8 cells, 0.001 of the signal: intervals 25 times too wide)
        /// set it to what the noise may be. A much smaller default would make intervals of small tables too
        /// narrow: at 30 rows 95 % intervals cover 93 % with 1e-3, 96 % with 1.
        pub s0_squared: f64 = 1.0,
        /// κ_μ: the number of pseudo-rows at the observed mean.
        pub kappa_mu: f64 = 0.01,
        /// Whether σ² is drawn with W and μ integrated out, which mixes faster at the same cost.
        pub blocked: bool = true,
        /// Seed of everything drawn; chains and sweeps have their own streams.
        pub seed: u64 = 0,
        /// Use the table as it is: not centered, not scaled, priors in its units.
        pub raw: bool = false,
    }
}

/// Cells that all chains together go through before the observer is asked again, about a tenth of a
/// second.
const CELLS_PER_ROUND: usize = 2_000_000;

impl Estimator for Gibbs {
    type Model = LinearGaussian;

    fn fit_observed(&self, data: &Dataset, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        let mut state = self.begin(data, spec)?;
        self.resume(&mut state, data, spec, observer)
    }
}

impl Gibbs {
    /// The chains at their starts: draws of the prior for a table of up to 20000 cells, beyond that a
    /// short climb of EM from which every chain is moved at random.
    ///
    /// # Errors
    /// As [`fit`](Estimator::fit).
    pub fn begin(&self, data: &Dataset, spec: &Spec) -> Result<GibbsState, Error> {
        self.check(data, spec)?;
        let table = Table::new(data, spec, self.raw)?;
        let beliefs = self.beliefs(data.n_columns());
        let sampler = Sampler { table: &table, beliefs: &beliefs, blocked: self.blocked };
        let center = start::center(&table, spec.n_components)?;
        let start = |chain| {
            let mut rng = self.stream(chain, None);
            let at = start::start(&sampler, center.as_ref(), spec.n_components, &mut rng);
            Chain { at, draws: Vec::new() }
        };
        let chains = (0..self.chains).map(start).collect();
        Ok(GibbsState { fingerprint: self.fingerprint(data, spec), sweeps: 0, chains })
    }

    /// Goes on from where the chains stand, to the last draw or until the observer stops it, and says
    /// what they have found. The state keeps up: write it down after an interruption, or ask for more
    /// [`draws`](Self::draws) and go on. Stopped before any draw was kept, the answer is made of where
    /// the chains stand.
    ///
    /// # Errors
    /// As [`fit`](Estimator::fit), and [`Error::Unsupported`] if the state is of another table, request
    /// or options (other `draws` are welcome).
    pub fn resume(
        &self,
        state: &mut GibbsState,
        data: &Dataset,
        spec: &Spec,
        observer: &mut dyn Observer,
    ) -> Result<Fit, Error> {
        let warnings = self.check(data, spec)?;
        if state.fingerprint != self.fingerprint(data, spec) || !state.fits(self.chains, data, spec) {
            let what = "a state begun with another table, request or options";
            return Err(Error::Unsupported { method: "gibbs", what, instead: "those it began with" });
        }
        let table = Table::new(data, spec, self.raw)?;
        let beliefs = self.beliefs(data.n_columns());
        let sampler = Sampler { table: &table, beliefs: &beliefs, blocked: self.blocked };
        let ended = self.run(&sampler, state, observer);
        let termination = if ended.is_break() { Termination::Interrupted } else { Termination::Converged };
        if state.n_draws() > 0 {
            return summary::fit(state, &table, &beliefs, termination, warnings);
        }
        let mut stand = state.clone();
        for Chain { at, draws } in &mut stand.chains {
            let log_likelihood = table.model(&at.w, &at.mean, &at.noise)?.log_likelihood(data)?;
            draws.push(Draw { parameters: at.clone(), log_likelihood });
        }
        summary::fit(&stand, &table, &beliefs, termination, warnings)
    }

    /// Sweeps in rounds, all chains side by side, the observer asked after each.
    fn run(
        &self,
        sampler: &Sampler<'_>,
        state: &mut GibbsState,
        observer: &mut dyn Observer,
    ) -> ControlFlow<()> {
        let table = sampler.table;
        let cells = table.n_rows() * table.n_columns() * self.chains;
        let per_round = (CELLS_PER_ROUND / cells).clamp(1, 100);
        let total = self.warm_up + self.draws * self.thin;
        while state.sweeps < total {
            let (first, last) = (state.sweeps, (state.sweeps + per_round).min(total) - 1);
            let walk = |(c, chain): (usize, &mut Chain)| {
                let mut score = 0.0;
                for sweep in first..=last {
                    // The state that comes in is kept, since drawing scores gives its likelihood.
                    let keep = sweep >= self.warm_up && (sweep - self.warm_up).is_multiple_of(self.thin);
                    let came = keep.then(|| chain.at.clone());
                    let mut rng = self.stream(c, Some(sweep));
                    let (_, log_likelihood) = sampler.sweep(&mut chain.at, keep || sweep == last, &mut rng);
                    score = log_likelihood.map_or(score, |l| l - table.ln_units);
                    chain.draws.extend(came.map(|parameters| Draw { parameters, log_likelihood: score }));
                }
                score
            };
            let scores: Vec<f64> = state.chains.par_iter_mut().enumerate().map(walk).collect();
            state.sweeps = last + 1;
            let objective = scores.iter().sum::<f64>() / scores.len() as f64;
            observer.step(&Step { iteration: state.sweeps, objective })?;
        }
        ControlFlow::Continue(())
    }

    /// Refuses what cannot be sampled; warns of what can but carries no information.
    fn check(&self, data: &Dataset, spec: &Spec) -> Result<Vec<Warning>, Error> {
        // The prior is proper, so the posterior exists however many loadings fit equally well.
        Spec { allow_unidentified: true, ..spec.clone() }.check(data)?;
        let unsupported = |what, instead| Err(Error::Unsupported { method: "gibbs", what, instead });
        if !spec.prior.is_flat() {
            return unsupported("a prior of the request", "its own options, or `em`");
        }
        if self.raw && spec.standardize {
            return unsupported("raw and standardized columns at once", "one of them");
        }
        if spec.noise_floor.is_some() {
            return unsupported("a noise floor", "`nu0` and `s0_squared`, or `em`");
        }
        let constant = spec.check_variances(data.observed_variances(), data.column_names(), Some(data))?;
        for (name, value) in [("chains", self.chains), ("draws", self.draws), ("thin", self.thin)] {
            if value == 0 {
                return Err(Error::OutOfRange { name, value: 0.0, bound: "at least 1" });
            }
        }
        let positive = [
            ("kappa0", self.kappa0),
            ("ard_shape", self.ard_shape),
            ("ard_rate", self.ard_rate),
            ("nu0", self.nu0),
            ("s0_squared", self.s0_squared),
            ("kappa_mu", self.kappa_mu),
        ];
        // Columns have unit variance here: beyond these a prior says nothing more, and products overflow.
        if let Some((name, value)) = positive.into_iter().find(|(_, v)| !(1e-9..=1e9).contains(v)) {
            return Err(Error::OutOfRange { name, value, bound: "from 1e-9 to 1e9" });
        }
        let mut warnings = Vec::new();
        if !constant.is_empty() {
            warnings.push(Warning::ConstantColumns { columns: constant });
        }
        let counts = data.column_names().iter().zip(data.n_observed_by_column());
        let few = counts.filter(|(_, n)| **n <= spec.n_components);
        let columns: Vec<String> = few.map(|(name, _)| name.clone()).collect();
        if !columns.is_empty() {
            warnings.push(Warning::SparseColumns { columns });
        }
        warnings.extend(unseen_pairs(data));
        warnings.extend(Warning::of_unidentified(spec, data.n_columns()));
        Ok(warnings)
    }

    fn beliefs(&self, n_columns: usize) -> Beliefs {
        let relevance = if self.ard {
            Relevance::Ard { shape: self.ard_shape, rate: self.ard_rate }
        } else {
            Relevance::Fixed(self.kappa0)
        };
        let Self { nu0, s0_squared, kappa_mu, .. } = *self;
        Beliefs { nu0, s0_squared, kappa_mu, center: vec![0.0; n_columns], relevance }
    }

    /// The random numbers of one sweep of one chain, or of its start.
    fn stream(&self, chain: usize, sweep: Option<usize>) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(((chain as u64) << 40) | sweep.map_or(0, |s| s as u64 + 1));
        rng
    }

    /// Of everything that the next sweep depends on, and of what is kept: in the manner of FNV-1a.
    fn fingerprint(&self, data: &Dataset, spec: &Spec) -> u64 {
        let mut options = self.clone();
        let options = options.options();
        let options = options.iter().filter(|(name, _)| *name != "draws");
        let options: Vec<String> = options.map(|(name, value)| format!("{name}={}", value.text())).collect();
        let text = format!("{options:?}{spec:?}{}×{}", data.n_rows(), data.n_columns());
        // All gaps are one, whatever the bits of their NaN.
        let bits = |v: &f64| if v.is_nan() { u64::MAX } else { v.to_bits() };
        let cells = data.values().as_slice().iter().map(bits);
        text.bytes().map(u64::from).chain(cells).fold(0xcbf2_9ce4_8422_2325, |hash, word| {
            (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23)
        })
    }
}
