//! How many components, by every criterion at once.

use super::criteria::ppca_parameters;
use super::held_out::{ChoiceRule, HeldOutAt, Score};
use super::{ComponentPosterior, PilotSearch, ReversibleJump};
use super::{Criteria, ParallelAnalysis, gavish_donoho, information_criteria};
use crate::infer::{Em, Evidence, Observer, Spectral, Step, Structured};
use crate::{Dataset, Density, Error, Estimator, Spec};
use std::fmt;
use std::ops::ControlFlow;

/// Compares numbers of components of probabilistic PCA by every criterion the table allows.
///
/// ```
/// use covary::{data::{simulate, Shape}, select::Compare};
/// let (table, _) = simulate::ppca(Shape { rows: 200, columns: 8, n_components: 2 }, /* seed */ 1);
/// let comparison = Compare::default().run(&table)?;
/// assert_eq!(comparison.recommended, 2);
/// assert!(comparison.to_string().starts_with("2 components, selected by "));
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Compare {
    /// Most components tried; as many as the table has room for if it is less. `None` is 10, and for held-out cells as many as
    /// predict best.
    pub max_components: Option<usize>,
    /// Give every column unit variance first.
    pub standardize: bool,
    /// Also sample p(q | data); complete tables only, others go without.
    pub sample: Option<ReversibleJump>,
    /// Seed of the hidden cells and of the permuted copies.
    pub seed: u64,
}

/// Components tried by all criteria where nothing else was asked for.
const MOST_TRIED: usize = 10;

/// A way to choose the number of components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Criterion {
    /// Minka's Laplace evidence.
    Evidence,
    /// The fewest components that predict hidden cells as well as the best number.
    HeldOutCells,
    /// Bayesian information criterion.
    Bic,
    /// Akaike's information criterion.
    Aic,
    /// Components that structured variational Bayes keeps.
    Structured,
    /// Components that type-II maximum likelihood keeps.
    TypeTwo,
    /// Parallel analysis: eigenvalues above those of permuted columns.
    ParallelAnalysis,
    /// Singular values above the optimal threshold.
    GavishDonoho,
    /// The mode of p(q | data), sampled by reversible jump.
    Posterior,
}

impl Criterion {
    /// Its name, as tables and JSON have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Evidence => "evidence",
            Self::HeldOutCells => "held_out_cells",
            Self::Bic => "bic",
            Self::Aic => "aic",
            Self::Structured => "structured",
            Self::TypeTwo => "type_two",
            Self::ParallelAnalysis => "parallel_analysis",
            Self::GavishDonoho => "gavish_donoho",
            Self::Posterior => "posterior",
        }
    }

    /// Its name in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Evidence => "Minka's evidence",
            Self::HeldOutCells => "held-out cells",
            Self::Bic => "BIC",
            Self::Aic => "AIC",
            Self::Structured => "structured variational Bayes",
            Self::TypeTwo => "type-II maximum likelihood",
            Self::ParallelAnalysis => "parallel analysis",
            Self::GavishDonoho => "Gavish–Donoho",
            Self::Posterior => "p(q | data)",
        }
    }

    /// What it means when it selects more, or fewer, than was recommended.
    fn leaning(self, more: bool) -> &'static str {
        match (self, more) {
            (Self::Evidence, true) => "weak directions still justify their parameters",
            (Self::Evidence, false) => "the rest is not worth its parameters; few rows make it cautious",
            (Self::HeldOutCells, true) => "weak components still help to predict",
            (Self::HeldOutCells, false) => "the others do not predict better than expected by chance",
            (Self::Bic | Self::Structured, true) => "unequal noise looks like components to it",
            (Self::Bic, false) => "it is strict when rows are few",
            (Self::Aic, true) => "it tends to overestimate",
            (Self::Aic, false) => "even AIC finds no support for more",
            (Self::Structured | Self::TypeTwo, false) => "it tends to underestimate",
            (Self::TypeTwo, true) => "with few rows it can mistake noise for components",
            (Self::ParallelAnalysis, true) => "more directions than in permuted columns, however weak",
            (Self::ParallelAnalysis, false) => "strong components hide weak ones from it",
            (Self::GavishDonoho, true) => "noise that differs between columns misleads it",
            (Self::GavishDonoho, false) => "components below its threshold add more error than they remove",
            (Self::Posterior, true) => "its prior leaves room for weak components",
            (Self::Posterior, false) => "its prior favors few strong components",
        }
    }
}

/// The criteria at one number of components; `None` where the table does not allow one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ComparisonAt {
    /// q.
    pub n_components: usize,
    /// Maximum log-likelihood of the observed cells, in nats. It never falls, so it cannot choose.
    pub log_likelihood: Option<f64>,
    /// Smaller is better.
    pub aic: Option<f64>,
    /// Smaller is better.
    pub bic: Option<f64>,
    /// Minka's evidence, up to a constant; complete tables only.
    pub log_evidence: Option<f64>,
    /// Predictions of hidden cells; `None` for numbers that were passed over in the search.
    pub held_out: Option<HeldOutAt>,
    /// The bound of structured variational Bayes with exactly q components. It charges each component
    /// several nats for its vague prior: compare what it keeps rather than its maximum.
    pub lower_bound: Option<f64>,
    /// p(q | data), if sampled.
    pub probability: Option<f64>,
}

/// All criteria over a range of numbers of components, and what to make of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// q = 0, 1, …
    pub by_n_components: Vec<ComparisonAt>,
    /// The number that each criterion selects, where the table allows it; parallel analysis and Gavish–Donoho look at
    /// all components, whatever was tried.
    pub choices: Vec<(Criterion, usize)>,
    /// The recommendation …
    pub recommended: usize,
    /// … and whose it is.
    pub by: Criterion,
    /// Hidden cells behind the held-out scores; 0 if the table had none to spare.
    pub n_hidden: usize,
    /// What their predictions are scored by.
    pub score: Score,
    /// The posterior over q, if sampled.
    pub posterior: Option<ComponentPosterior>,
    /// Whether the table allows more components than were tried.
    pub allows_more: bool,
}

impl Compare {
    /// Compares.
    ///
    /// # Errors
    /// As [`run_observed`](Self::run_observed).
    pub fn run(&self, data: &Dataset) -> Result<Comparison, Error> {
        self.run_observed(data, &|_, _, _| ControlFlow::Continue(()))
    }

    /// Compares, telling `watch` what is being done and how much of it.
    ///
    /// # Errors
    /// When the table is refused ([`Spec`]), [`Error::Interrupted`] once `watch` breaks, and what
    /// [`ReversibleJump`] refuses if it was asked for.
    pub fn run_observed(
        &self,
        data: &Dataset,
        watch: &(dyn Fn(&'static str, usize, usize) -> ControlFlow<()> + Sync),
    ) -> Result<Comparison, Error> {
        let spec = Spec { standardize: self.standardize, ..Spec::ppca(0) };
        let (rows, d) = (data.n_informative_rows(), data.n_columns());
        let possible = (d - 1).min(rows.saturating_sub(2));
        let most = self.max_components.unwrap_or(MOST_TRIED).min(possible);
        spec.check(data)?;
        spec.check_variances(data.observed_variances(), data.column_names(), Some(data))?;
        let with = |n_components| Spec { n_components, ..spec.clone() };
        let mut choices = Vec::new();
        let mut at: Vec<ComparisonAt> = (0..=most).map(ComparisonAt::empty).collect();
        let complete = data.complete_rows("select").ok();

        // Likelihoods, from one spectrum or by EM.
        if let Some(complete) = &complete {
            let spectrum = Spectral::default().spectrum(complete, d, self.standardize)?;
            let criteria = Criteria::from_spectrum(&spectrum)?;
            let counted = &criteria.by_n_components[..criteria.by_n_components.len().min(most + 1)];
            for (at, of) in at.iter_mut().zip(counted) {
                at.log_likelihood = Some(of.information.log_likelihood);
                (at.aic, at.bic) = (Some(of.information.aic), Some(of.information.bic));
                at.log_evidence = of.log_evidence;
            }
            choices.extend(best(&at, |a| a.log_evidence).map(|q| (Criterion::Evidence, q)));
            choices.push((Criterion::GavishDonoho, gavish_donoho(&spectrum)?));
        } else {
            for (q, at) in at.iter_mut().enumerate() {
                let mut told =
                    Told { watch, what: "maximum likelihood", done: q, total: most + 1, stopped: false };
                let fit = Em::default().fit_observed(data, &with(q), &mut told)?;
                told.check()?;
                let found =
                    information_criteria(fit.model.log_likelihood(data)?, ppca_parameters(d, q), rows);
                at.log_likelihood = Some(found.log_likelihood);
                (at.aic, at.bic) = (Some(found.aic), Some(found.bic));
            }
        }
        choices.extend(best(&at, |a| a.bic.map(|v| -v)).map(|q| (Criterion::Bic, q)));
        choices.extend(best(&at, |a| a.aic.map(|v| -v)).map(|q| (Criterion::Aic, q)));

        // As `covary fit` chooses.
        let max_components = self.max_components;
        let search = PilotSearch { max_components, seed: self.seed, ..PilotSearch::default() };
        let held_out =
            search.run_observed(data, &spec, &|done, total| watch("held-out cells", done, total))?;
        let n_hidden = held_out.as_ref().map_or(0, |h| h.n_hidden);
        let score = held_out.as_ref().map_or(Score::Crps, |h| h.score);
        if let Some(held_out) = &held_out {
            choices.push((Criterion::HeldOutCells, held_out.chosen(ChoiceRule::OneStandardError)));
        }

        for (q, at) in at.iter_mut().enumerate() {
            let mut told =
                Told { watch, what: "the variational bound", done: q, total: most + 1, stopped: false };
            let method = Structured { pruning: false, ..Structured::default() };
            at.lower_bound = Some(method.fit_observed(data, &with(q), &mut told)?.report.objective.value);
            told.check()?;
        }
        let kept = Structured::default().fit(data, &with(most))?.model.n_components();
        choices.push((Criterion::Structured, kept));
        let type_two = allowed(Evidence::default().fit(data, &with(most)))?;
        choices.extend(type_two.map(|fit| (Criterion::TypeTwo, fit.model.n_components())));
        let parallel = ParallelAnalysis {
            standardize: self.standardize,
            seed: self.seed,
            ..ParallelAnalysis::default()
        };
        choices.push((Criterion::ParallelAnalysis, parallel.run(data)?.n_components));

        let mut posterior = None;
        if let Some(sample) = self.sample.as_ref().filter(|_| complete.is_some()) {
            let total = sample.warm_up + sample.sweeps;
            let mut told = |step: &Step| watch("p(q | data)", step.iteration, total);
            let scaled;
            let table = if self.standardize {
                scaled = standardized(data)?;
                &scaled
            } else {
                data
            };
            let largest = |most| ReversibleJump { max_components: Some(most), ..sample.clone() };
            // Beyond the rank of the table there is no posterior; its own limit is then the sampler's.
            let asked = sample.max_components.map_or(most, |asked| asked.min(most));
            let found = match allowed(largest(asked).sample_observed(table, &mut told))? {
                Some(found) => found,
                None => ReversibleJump { max_components: None, ..sample.clone() }
                    .sample_observed(table, &mut told)?,
            };
            for (at, p) in at.iter_mut().zip(&found.probabilities) {
                at.probability = Some(*p);
            }
            choices.push((Criterion::Posterior, found.mode()));
            posterior = Some(found);
        }

        // The evidence where there is one and rows suffice [M 2.12.3]; else what predicts [M 1.8.5],
        // rather than structured variational Bayes, which [M 2.12.3] takes and itself calls a lower estimate.
        // Dividing columns by their deviations makes equal noise unequal, which the evidence takes for
        // components: of 80 × 8 standardized cells of 3 components it found 5.
        let preferred = if complete.is_some() && rows > d && !self.standardize {
            [Criterion::Evidence, Criterion::HeldOutCells, Criterion::Structured]
        } else {
            [Criterion::HeldOutCells, Criterion::Structured, Criterion::Evidence]
        };
        let (by, recommended) = preferred
            .iter()
            .find_map(|by| choices.iter().find(|(c, _)| c == by))
            .copied()
            .expect("structured variational Bayes always answers");
        for of in held_out.iter().flat_map(|h| &h.by_n_components) {
            at.extend((at.len()..=of.n_components).map(ComparisonAt::empty));
            at[of.n_components].held_out = Some(*of);
        }
        let allows_more = most < possible;
        Ok(Comparison {
            by_n_components: at,
            choices,
            recommended,
            by,
            n_hidden,
            score,
            posterior,
            allows_more,
        })
    }
}

/// What a criterion says, or nothing where the table leaves it no noise to judge by.
fn allowed<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Err(Error::DegenerateNoise { .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// The table with every column divided by its standard deviation.
fn standardized(data: &Dataset) -> Result<Dataset, Error> {
    let scale: Vec<f64> =
        data.observed_variances().iter().map(|v| if *v > 0.0 { 1.0 / v.sqrt() } else { 1.0 }).collect();
    let (mut values, mean) = (data.values().clone(), data.observed_means());
    for i in 0..values.n_rows() {
        for (j, v) in values.row_mut(i).iter_mut().enumerate() {
            *v = (*v - mean[j]) * scale[j];
        }
    }
    Dataset::with_names(values, data.column_names().to_vec())
}

/// The number of components with the largest value; the smaller one in a tie.
fn best(at: &[ComparisonAt], of: impl Fn(&ComparisonAt) -> Option<f64>) -> Option<usize> {
    let mut found: Option<(usize, f64)> = None;
    for entry in at {
        if let Some(value) = of(entry)
            && found.is_none_or(|(_, largest)| value > largest)
        {
            found = Some((entry.n_components, value));
        }
    }
    found.map(|(q, _)| q)
}

/// An observer that passes on where the whole comparison stands.
struct Told<'a> {
    watch: &'a (dyn Fn(&'static str, usize, usize) -> ControlFlow<()> + Sync),
    what: &'static str,
    done: usize,
    total: usize,
    stopped: bool,
}

impl Told<'_> {
    fn check(&self) -> Result<(), Error> {
        if self.stopped { Err(Error::Interrupted) } else { Ok(()) }
    }
}

impl Observer for Told<'_> {
    fn step(&mut self, _: &Step) -> ControlFlow<()> {
        let flow = (self.watch)(self.what, self.done, self.total);
        self.stopped |= flow.is_break();
        flow
    }
}

impl ComparisonAt {
    fn empty(n_components: usize) -> Self {
        Self {
            n_components,
            log_likelihood: None,
            aic: None,
            bic: None,
            log_evidence: None,
            held_out: None,
            lower_bound: None,
            probability: None,
        }
    }
}

/// The recommendation in one sentence: who agrees, who does not, and what that means.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let q = self.recommended;
        let plural = if q == 1 { "" } else { "s" };
        let others = |of: &dyn Fn(usize) -> bool| -> Vec<Criterion> {
            self.choices.iter().filter(|(c, k)| *c != self.by && of(*k)).map(|(c, _)| *c).collect()
        };
        let words = |list: &[Criterion]| {
            let names: Vec<&str> = list.iter().map(|c| c.words()).collect();
            match names.split_last() {
                None => String::new(),
                Some((only, [])) => (*only).to_owned(),
                Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
            }
        };
        let agree = others(&|k| k == q);
        write!(
            f,
            "{q} component{plural}, selected by {}{}",
            self.by.words(),
            if self.by == Criterion::HeldOutCells { " (cross-validation)" } else { "" }
        )?;
        match agree.len() {
            0 => write!(f, ", and no other criterion agrees")?,
            1 if agree[0] == Criterion::HeldOutCells => write!(f, ", and held-out cells agree")?,
            1 => write!(f, ", and {} agrees", words(&agree))?,
            _ => write!(f, ", and {} agree", words(&agree))?,
        }
        let mut differing: Vec<(Criterion, usize)> =
            self.choices.iter().copied().filter(|(c, k)| *c != self.by && *k != q).collect();
        differing.sort_by_key(|(_, k)| *k);
        for (i, (criterion, k)) in differing.iter().enumerate() {
            let (start, would) = if i == 0 { ("; ", " selects ") } else { (", ", " ") };
            write!(f, "{start}{}{would}{k} ({})", criterion.words(), criterion.leaning(*k > q))?;
        }
        let spread = self.choices.iter().map(|(_, k)| *k);
        if spread.clone().max().unwrap_or(q) - spread.min().unwrap_or(q) > 3 {
            write!(
                f,
                "; the criteria are so far apart that the components should be inspected before any number is trusted"
            )?;
        }
        if q + 1 == self.by_n_components.len() && q > 0 && self.allows_more {
            write!(f, "; this is the largest number that was tried, so try more")?;
        }
        write!(f, ".")
    }
}
