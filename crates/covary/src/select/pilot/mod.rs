//! The number of components at about the price of a fit [M 3.1]: cells are hidden, one model with more components than
//! needed is fitted roughly without them, and models of fewer components are its truncations.
//!
//! | step | file |
//! | --- | --- |
//! | how many components there may be at most | [`bracket`] |
//! | which cells are hidden or rows left out, and how their predictions are scored | [`hidden`] |
//! | which numbers of components are scored | [`curve`] |
//! | complete tables whose columns have noise of their own | [`units`] |
//! | complete tables: rows are left out, and no EM is needed | [`complete`] |

mod bracket;
mod complete;
mod curve;
mod hidden;
#[cfg(test)]
mod tests;
mod units;

use super::held_out::{ChoiceRule, HeldOut, HeldOutAt, HeldOutOptions, Purpose, held_out_cells_up_to};
use crate::infer::{Em, PilotStart};
use crate::model::{FactorTruncations, Truncations};
use crate::parallel::try_map;
use crate::spec::NoiseFamily;
use crate::{Dataset, Error, LinearGaussian, Spec};
use bracket::{Bracket, enough_rows, well_observed};
use complete::Complete;
use curve::Curve;
use hidden::{HiddenSet, Scoring};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Searches the number of components, of probabilistic PCA or of factor analysis, that predicts hidden cells best.
///
/// ```
/// use covary::{data::{simulate, Shape}, select::{ChoiceRule, PilotSearch}, Spec};
/// let (whole, _) = simulate::ppca(Shape { rows: 1000, columns: 40, n_components: 12 }, /* seed */ 1);
/// let table = simulate::hide(&whole, 0.1, /* seed */ 2);
/// let found = PilotSearch::default().run(&table, &Spec::ppca(0))?.expect("cells to hide");
/// assert_eq!(found.chosen(ChoiceRule::OneStandardError), 12);
/// assert!(found.at(11).unwrap().shortfall > 3.0 * found.at(11).unwrap().shortfall_error);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PilotSearch {
    /// What the number is for: numbers below the best need not be scored if the best is to fill gaps.
    pub purpose: Purpose,
    /// Most components; if `None`, as many as the table has room for.
    pub max_components: Option<usize>,
    /// Seed of which cells and rows are hidden.
    pub seed: u64,
}

/// Fewer hidden cells than this tell nothing.
const FEWEST_CELLS: usize = 20;
/// Steps of a pilot, and of one of a small table: superfluous components converge slowly, and none has to.
const STEPS: usize = 4;
const SMALL: (usize, usize) = (50_000, 6);
/// Steps where columns have noise of their own, of which the start knows little.
const FACTOR_STEPS: usize = 8;
/// Rows for each column beyond which a table with gaps is long.
const LONG: usize = 20;
/// What counts as much better: a root mean squared error larger by this share. Unequal noise costs a model of equal noise as much,
/// with the right number of components.
const MATERIAL: f64 = 0.05;
/// Hidden cells wanted.
const CELLS: f64 = 4000.0;

impl PilotSearch {
    /// The scores; `None` if the table has no room for a component, or no cells to spare.
    ///
    /// # Errors
    /// When the table or the spec is refused; see the variants of [`Error`].
    pub fn run(&self, data: &Dataset, spec: &Spec) -> Result<Option<HeldOut>, Error> {
        self.run_observed(data, spec, &|_, _| ControlFlow::Continue(()))
    }

    /// [`run`](Self::run) for those who wait: `watch(done, total)` is told how many of about how many steps are done, and
    /// may stop them.
    ///
    /// # Errors
    /// As [`run`](Self::run), and [`Error::Interrupted`] once `watch` breaks.
    pub fn run_observed(
        &self,
        data: &Dataset,
        spec: &Spec,
        watch: &(dyn Fn(usize, usize) -> ControlFlow<()> + Sync),
    ) -> Result<Option<HeldOut>, Error> {
        let data = &*well_observed(data)?;
        let data = &*enough_rows(data)?;
        let mut bracket = Bracket::of(data, spec, self.max_components);
        if bracket.cap == 0 {
            return Ok(None);
        }
        Spec { n_components: 0, ..spec.clone() }.check(data)?;
        spec.check_variances(data.observed_variances(), data.column_names(), Some(data))?;
        let progress = Progress { watch, done: AtomicUsize::new(0), total: AtomicUsize::new(1) };
        if data.n_rows() * data.n_columns() >= FEWEST_CELLS
            && (spec.noise == NoiseFamily::Isotropic || data.n_columns() < data.n_rows())
            && let Ok(rows) = data.complete_rows("this choice")
        {
            let complete = Complete::new(&rows, spec.standardize, self.seed);
            let mut scores = |own_noise, cap, few| complete.curve(own_noise, cap, few, &progress);
            return self.choose(data, spec, bracket.cap, &mut scores).map(Some);
        }
        let sets = HiddenSet::draw(data, CELLS, self.seed)?;
        if sets.iter().map(|set| set.n_hidden).sum::<usize>() < FEWEST_CELLS {
            // Where nothing takes time, every number is fitted again to all but a fifth of the cells.
            let options = HeldOutOptions { seed: self.seed, ..HeldOutOptions::default() };
            return held_out_cells_up_to(data, spec, bracket.cap, &Em::default(), &options, watch);
        }
        bracket.cap = sets.iter().map(HiddenSet::room).fold(bracket.cap, usize::min);
        let mut pilots = Pilots::new(data, spec, &bracket, &sets, self.purpose)?;
        let mut scores = |own_noise, cap, few| pilots.curve(own_noise, cap, few, &progress);
        self.choose(data, spec, bracket.cap, &mut scores).map(Some)
    }

    /// The scores that decide. Components of standardized columns are those that they have beside noise of their own, unless
    /// more of them predict much better in a model of equal noise [M 3.6].
    fn choose(
        &self,
        data: &Dataset,
        spec: &Spec,
        cap: usize,
        scores: &mut Scores<'_>,
    ) -> Result<HeldOut, Error> {
        if spec.noise == NoiseFamily::Diagonal {
            return scores(true, cap, None);
        }
        if !(spec.standardize && self.purpose == Purpose::Components && passes_for_components(data)) {
            return scores(false, cap, None);
        }
        let own = scores(true, cap, None)?;
        let few = own.chosen(ChoiceRule::OneStandardError);
        let ahead = cap.min(2 * few + 4);
        let equal = scores(false, ahead, Some(few))?;
        let error = |at: Option<&HeldOutAt>| at.map_or(f64::INFINITY, |at| at.rmse);
        let more = equal.by_n_components.iter().filter(|at| at.n_components > few);
        let more = more.min_by(|a, b| a.rmse.total_cmp(&b.rmse));
        if error(equal.at(few)) <= (1.0 + MATERIAL) * error(more) {
            return Ok(own);
        }
        scores(false, cap, None)
    }
}

/// Scores with noise of each column or not, with at most this many components; of one number and some more only if one is given.
type Scores<'a> = dyn FnMut(bool, usize, Option<usize>) -> Result<HeldOut, Error> + 'a;

/// Whether unequal noise passes for components. Pilots of a table with gaps do not converge, and take it for them only where there
/// are many rows for each column.
fn passes_for_components(data: &Dataset) -> bool {
    let rows = if data.is_complete() { 1 } else { LONG };
    data.n_rows() > rows * data.n_columns()
}

/// What pilots of equal noise and of noise by column share.
struct Pilots<'a> {
    sets: &'a [HiddenSet],
    scoring: Scoring<'a>,
    baseline: f64,
    starts: Vec<PilotStart<'a>>,
    most: usize,
    steps: usize,
    purpose: Purpose,
}

impl<'a> Pilots<'a> {
    fn new(
        data: &'a Dataset,
        spec: &Spec,
        bracket: &Bracket,
        sets: &'a [HiddenSet],
        purpose: Purpose,
    ) -> Result<Self, Error> {
        // Columns of their own noise are standardized whatever was asked for: what is scored does not depend on it.
        let own_noise = spec.noise == NoiseFamily::Diagonal;
        let standardize = spec.standardize || own_noise;
        let spec = Spec { noise: NoiseFamily::Isotropic, standardize, ..spec.clone() };
        let scoring = Scoring::new(data, &spec, sets);
        let n_known = bracket.n_known();
        let mut starts =
            try_map(sets.len(), |s| PilotStart::new(&sets[s].visible, &spec, own_noise, n_known))?;
        let most = bracket.components(&mut starts[0], &sets[0].visible)?;
        let (n, d) = (data.n_rows(), data.n_columns());
        let steps = if n * d <= SMALL.0 { SMALL.1 } else { STEPS };
        Ok(Self { sets, baseline: scoring.baseline(), scoring, starts, most, steps, purpose })
    }

    /// One more component than there seem to be in units in which the noise is equal: unequal noise passes for many more.
    fn most_beside_own_noise(&self, cap: usize) -> Result<usize, Error> {
        let (start, visible) = (&self.starts[0], &self.sets[0].visible);
        match start.covariance() {
            Some(s) if self.most > curve::ALL => {
                let rows = (visible.n_rows() as f64, visible.observed_share());
                let above = units::n_above_own_noise(s, rows, cap)?;
                Ok(cap.min((above + 1).max(2)))
            }
            _ => Ok(self.most.min(cap)),
        }
    }

    /// The scores of truncated pilots with `cap` components at most; only of `few`, as many as the cap and halfway between, if
    /// it is given.
    fn curve(
        &mut self,
        own_noise: bool,
        cap: usize,
        few: Option<usize>,
        progress: &Progress<'_>,
    ) -> Result<HeldOut, Error> {
        let (noise, steps) = match few {
            _ if own_noise => (NoiseFamily::Diagonal, FACTOR_STEPS),
            // What would make a difference shows early.
            Some(_) => (NoiseFamily::Isotropic, self.steps / 2),
            None => (NoiseFamily::Isotropic, self.steps),
        };
        let mut h = match few {
            Some(_) => cap,
            None if own_noise => self.most_beside_own_noise(cap)?,
            None => self.most.min(cap),
        };
        let Self { sets, scoring, starts, .. } = self;
        let curve = loop {
            progress.expect(sets.len() * steps + curve::n_scored(h));
            starts.iter_mut().try_for_each(|start| start.know(h))?;
            let pilots = try_map(sets.len(), |s| starts[s].climb(h, noise, steps, &|| progress.step()))?;
            let truncated = pilots.iter().map(|pilot| Pilot::of(pilot, own_noise));
            let truncated = truncated.collect::<Result<Vec<_>, _>>()?;
            let mut curve = Curve::default();
            let mut score = |q: usize| {
                progress.check()?;
                Ok(scoring
                    .of(&truncated.iter().map(|pilot| pilot.keeping(q)).collect::<Result<Vec<_>, _>>()?))
            };
            if let Some(few) = few {
                [few, few.midpoint(h), h].into_iter().try_for_each(|q| curve.score(q, &mut score))?;
                break curve;
            }
            curve.search(h, &mut score)?;
            if h < cap && curve.summary(self.baseline).best() == h {
                h = cap.min(2 * h + 2);
                continue;
            }
            if self.purpose == Purpose::Components {
                curve.descend(self.baseline, &mut score)?;
            }
            break curve;
        };
        let limited = curve.best() == cap;
        Ok(HeldOut { n_sets: sets.len(), limited, ..curve.summary(self.baseline) })
    }
}

/// A pilot, of which any number of components can be kept.
enum Pilot<'a> {
    Equal(Truncations<'a>),
    Own(FactorTruncations),
}

impl<'a> Pilot<'a> {
    fn of(model: &'a LinearGaussian, own_noise: bool) -> Result<Self, Error> {
        if own_noise {
            FactorTruncations::of(model).map(Self::Own)
        } else {
            Truncations::of(model).map(Self::Equal)
        }
    }

    fn keeping(&self, q: usize) -> Result<LinearGaussian, Error> {
        match self {
            Self::Equal(pilot) => pilot.keeping(q),
            Self::Own(pilot) => pilot.keeping(q),
        }
    }
}

/// What is done of what has to be done, for those who wait.
struct Progress<'a> {
    watch: &'a (dyn Fn(usize, usize) -> ControlFlow<()> + Sync),
    done: AtomicUsize,
    total: AtomicUsize,
}

impl Progress<'_> {
    /// This many more steps are to be done.
    fn expect(&self, steps: usize) {
        self.total.store(self.done.load(Ordering::Relaxed) + steps, Ordering::Relaxed);
    }

    /// One more step is done.
    fn step(&self) -> ControlFlow<()> {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        (self.watch)(done, self.total.load(Ordering::Relaxed).max(done))
    }

    /// The same where an error ends it.
    fn check(&self) -> Result<(), Error> {
        if self.step().is_break() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// The models of each set of hidden cells, with one number of components.
type Models = [LinearGaussian];
