//! The number of components at about the price of a fit [M 3.1]: cells are hidden, one model with more components than
//! needed is fitted roughly without them, and models of fewer components are its truncations.
//!
//! | step | file |
//! | --- | --- |
//! | how many components there may be at most | [`bracket`] |
//! | which cells are hidden, and how their predictions are scored | [`hidden`] |
//! | which numbers of components are scored | [`curve`] |
//! | complete tables: rows are left out, and no EM is needed | [`complete`] |

mod bracket;
mod complete;
mod curve;
mod hidden;
#[cfg(test)]
mod tests;

use super::held_out::{HeldOut, HeldOutOptions, Purpose, held_out_cells_up_to};
use crate::infer::{Em, PilotStart};
use crate::model::Truncations;
use crate::parallel::try_map;
use crate::spec::NoiseFamily;
use crate::{Dataset, Error, LinearGaussian, Spec};
use bracket::{Bracket, well_observed};
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
#[derive(Debug, Clone, Default, PartialEq)]
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
/// Steps of a factor analysis, whose start is close.
const FACTOR_STEPS: usize = 8;
/// Hidden cells wanted; fewer of a factor analysis, of which every number has to be fitted.
const CELLS: f64 = 4000.0;
const FACTOR_CELLS: f64 = 2000.0;

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
        let bracket = Bracket::of(data, spec, self.max_components);
        if bracket.cap == 0 {
            return Ok(None);
        }
        Spec { n_components: 0, ..spec.clone() }.check(data)?;
        spec.check_variances(data.observed_variances(), data.column_names(), Some(data))?;
        let progress = Progress { watch, done: AtomicUsize::new(0), total: AtomicUsize::new(1) };
        let isotropic = spec.noise == NoiseFamily::Isotropic;
        if isotropic
            && data.n_rows() * data.n_columns() >= FEWEST_CELLS
            && let Ok(rows) = data.complete_rows("this choice")
        {
            return complete::curve(&rows, spec.standardize, bracket.cap, self.seed, &progress).map(Some);
        }
        let sets = HiddenSet::draw(data, if isotropic { CELLS } else { FACTOR_CELLS }, self.seed)?;
        if sets.iter().map(|set| set.n_hidden).sum::<usize>() < FEWEST_CELLS {
            // Where nothing takes time, every number is fitted again to all but a fifth of the cells.
            let options = HeldOutOptions { seed: self.seed, ..HeldOutOptions::default() };
            return held_out_cells_up_to(data, spec, bracket.cap, &Em::default(), &options, watch);
        }
        self.by_pilots(data, spec, &bracket, &sets, &progress).map(Some)
    }

    /// The scores of truncated pilots, or of factor analyses around the best of them.
    fn by_pilots(
        &self,
        data: &Dataset,
        spec: &Spec,
        bracket: &Bracket,
        sets: &[HiddenSet],
        progress: &Progress<'_>,
    ) -> Result<HeldOut, Error> {
        // Columns of their own noise are standardized whatever was asked for: what is scored does not depend on it.
        let own_noise = spec.noise == NoiseFamily::Diagonal;
        let pilot_spec = Spec {
            noise: NoiseFamily::Isotropic,
            standardize: spec.standardize || own_noise,
            ..spec.clone()
        };
        let scoring = Scoring::new(data, &pilot_spec, sets);
        let baseline = scoring.baseline();
        let n_known = bracket.n_known();
        let mut starts = try_map(sets.len(), |s| PilotStart::new(&sets[s].visible, &pilot_spec, n_known))?;
        let mut h = bracket.components(&mut starts[0], &sets[0].visible)?;
        let steps = if data.n_rows() * data.n_columns() <= SMALL.0 { SMALL.1 } else { STEPS };
        let mut curve = loop {
            progress.expect(sets.len() * steps + curve::n_scored(h));
            starts.iter_mut().try_for_each(|start| start.know(h))?;
            let climb = |s: usize| starts[s].climb(h, NoiseFamily::Isotropic, steps, &|| progress.step());
            let pilots = try_map(sets.len(), climb)?;
            let truncated = pilots.iter().map(Truncations::of).collect::<Result<Vec<_>, _>>()?;
            let mut curve = Curve::default();
            let mut score = |q: usize| {
                progress.check()?;
                scoring.of(&truncated.iter().map(|pilot| pilot.keeping(q)).collect::<Result<Vec<_>, _>>()?)
            };
            curve.search(h, &mut score)?;
            if curve.best() == h && h < bracket.cap && !own_noise {
                h = bracket.cap.min(2 * h + 2);
                continue;
            }
            if self.purpose == Purpose::Components && !own_noise {
                curve.descend(baseline, &mut score)?;
            }
            break curve;
        };
        if own_noise {
            let near = curve.best().min(bracket.cap);
            progress.expect(4 * sets.len() * FACTOR_STEPS);
            let mut score = |q: usize| {
                let climb =
                    |s: usize| starts[s].climb(q, NoiseFamily::Diagonal, FACTOR_STEPS, &|| progress.step());
                scoring.of(&try_map(sets.len(), climb)?)
            };
            curve = Curve::default();
            curve.walk(near, bracket.cap, &mut score)?;
            if self.purpose == Purpose::Components {
                curve.descend(baseline, &mut score)?;
            }
        }
        Ok(HeldOut { n_sets: sets.len(), limited: curve.best() == bracket.cap, ..curve.summary(baseline) })
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
