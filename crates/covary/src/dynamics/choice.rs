//! How many factors, of which order, with how many waves: by blocks of time that are hidden, and by rows that are still to come
//! [M 1.10.9].

use super::blocks::{HiddenBlocks, Hide};
use super::{DynamicEm, Season, Timeline};
use crate::infer::Termination;
use crate::parallel::try_map;
use crate::select::{HeldOut, HeldOutRows, Purpose, Score, summarize};
use crate::{Dataset, Error, Estimator, Spec};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Sets of blocks, and origins of forecasts.
const SETS: usize = 3;
const ORIGINS: usize = 3;
/// Share of the observed cells in a set.
const SHARE: f64 = 0.1;
/// Steps of a fit, none of which has to converge.
const STEPS: usize = 50;
/// Steps ahead that count, at most; fewer in short tables.
const HORIZON: usize = 12;
/// Numbers in a row without a gain after which no larger one is tried.
const PATIENCE: usize = 2;
/// Most waves that are tried, and factors while they are: two factors of order 1 can swing like a wave, one cannot.
const MOST_WAVES: usize = 4;
const PILOT: usize = 1;
/// Most factors if it is not said.
const MOST_FACTORS: usize = 20;

/// Chooses what a dynamic factor model has by how well it predicts blocks of the table that it did not see, and rows after an
/// origin that it did not see past.
///
/// First the waves of the season, if there is a period, with one factor; then the factors, of order 1; then their order. Every
/// number is fitted to the table without one of three sets of blocks of time, each a tenth of the observed cells, and without what
/// follows one of three origins. Predictions are scored by their CRPS in standard deviations of the column. That is at most six
/// fits of 50 steps for each number tried: waves to 4, factors until two more of them gain nothing, orders likewise.
///
/// ```
/// use covary::dynamics::{DynamicEm, TimeSearch};
/// use covary::{data::{simulate, Shape}, Estimator, Spec};
/// let (table, _) = simulate::ppca(Shape { rows: 200, columns: 6, n_components: 2 }, /* seed */ 1);
/// let found = TimeSearch { max_components: Some(3), ..TimeSearch::default() }.run(&table, &Spec::ppca(1))?;
/// assert_eq!((found.n_components, found.order), (2, 1));
/// let spec = Spec { n_components: found.n_components, ..Spec::ppca(1) };
/// let fit = found.applied(&DynamicEm::default()).fit(&table, &spec)?;
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct TimeSearch {
    /// What all candidates share. Its `season` says the period; of its waves, if these are waves, the number is searched.
    pub estimator: DynamicEm,
    /// What the numbers are for: the fewest within one standard error of the best, or the best.
    pub purpose: Purpose,
    /// Factors that are given, of which the number is not searched.
    pub n_components: Option<usize>,
    /// Most factors; if `None`, as many as the table has room for, at most 20.
    pub max_components: Option<usize>,
    /// The highest order; where it is that of `estimator`, the order is not searched.
    pub max_order: usize,
    /// Whether the number of waves is searched.
    pub search_waves: bool,
    /// Seed of which blocks are hidden.
    pub seed: u64,
}

impl Default for TimeSearch {
    fn default() -> Self {
        Self {
            estimator: DynamicEm::default(),
            purpose: Purpose::default(),
            n_components: None,
            max_components: None,
            max_order: 3,
            search_waves: true,
            seed: 0,
        }
    }
}

/// What was chosen, and by what.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeChoice {
    /// Factors.
    pub n_components: usize,
    /// Their order.
    pub order: usize,
    /// The season, with its waves.
    pub season: Season,
    /// Every candidate that was tried, in the order in which it was.
    pub tried: Vec<Tried>,
    /// The scores of numbers of factors, as every other choice has them, if they were searched.
    pub components: Option<HeldOut>,
    /// Blocks that were hidden, and forecasts that were compared with what came.
    pub n_blocks: usize,
    /// Forecasts that were compared with what came: origins times sequences.
    pub n_origins: usize,
    /// Steps ahead of these.
    pub horizon: usize,
}

impl TimeChoice {
    /// An estimator with the order and the season that were chosen.
    pub fn applied(&self, estimator: &DynamicEm) -> DynamicEm {
        DynamicEm { order: self.order, season: self.season, ..estimator.clone() }
    }
}

/// A candidate and its scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tried {
    /// Factors.
    pub n_components: usize,
    /// Their order.
    pub order: usize,
    /// The season, with its waves.
    pub season: Season,
    /// Mean CRPS of a hidden cell, in standard deviations of its column.
    pub mean: f64,
    /// How far that is above the best of those it was compared with, and the standard error of this, blocks being the
    /// independent units.
    pub shortfall: f64,
    /// Its standard error.
    pub shortfall_error: f64,
    /// Root mean squared error in hidden blocks, in standard deviations of the column.
    pub block_rmse: f64,
    /// The same of forecasts; `None` where the table is too short for an origin.
    pub forecast_rmse: Option<f64>,
}

/// One thing that is tried.
#[derive(Clone, Copy)]
struct Candidate {
    n_components: usize,
    order: usize,
    season: Season,
}

impl TimeSearch {
    /// Searches.
    ///
    /// # Errors
    /// What [`DynamicEm`] refuses, and [`Error::TooFewToHide`] where no cell can be spared.
    pub fn run(&self, data: &Dataset, spec: &Spec) -> Result<TimeChoice, Error> {
        self.run_observed(data, spec, &|_, _| ControlFlow::Continue(()))
    }

    /// [`run`](Self::run) for those who wait: `watch(done, total)` is told how many of about how many fits are done, and may stop
    /// them.
    ///
    /// # Errors
    /// As [`run`](Self::run), and [`Error::Interrupted`] once `watch` breaks.
    pub fn run_observed(
        &self,
        data: &Dataset,
        spec: &Spec,
        watch: &(dyn Fn(usize, usize) -> ControlFlow<()> + Sync),
    ) -> Result<TimeChoice, Error> {
        let timeline = data.times();
        let room = data.n_columns().saturating_sub(1).min(data.n_rows().saturating_sub(1)).max(1);
        let most = self.max_components.unwrap_or(MOST_FACTORS).clamp(1, room);
        let first = self.n_components.unwrap_or(PILOT.min(most));
        Spec { n_components: first, ..spec.clone() }.check_in_time(data)?;
        let hidden = Hidden::of(data, &timeline, self.n_components.unwrap_or(most), self.seed)?;
        let stages = 3 + most.min(6) + self.max_order;
        let trial = Trial {
            search: self,
            data,
            spec,
            hidden: &hidden,
            watch,
            done: AtomicUsize::new(0),
            total: stages * hidden.sets.len(),
        };
        let mut at =
            Candidate { n_components: first, order: self.estimator.order, season: self.estimator.season };
        let mut tried = Vec::new();
        if let Season::Harmonics { period, n } = at.season
            && self.search_waves
        {
            let most_waves = ((period / 2.0).floor() as usize).min(MOST_WAVES.max(n));
            let waves = |n| Candidate {
                season: if n == 0 { Season::None } else { Season::Harmonics { period, n } },
                ..at
            };
            // Numbers of components are counted from 1, waves from 0.
            let (n, _) = trial.stage(1..=most_waves + 1, |k| waves(k - 1), &mut tried)?;
            at = waves(n - 1);
        }
        let mut components = None;
        if self.n_components.is_none() {
            let (n_components, scores) =
                trial.stage(1..=most, |n_components| Candidate { n_components, ..at }, &mut tried)?;
            at.n_components = n_components;
            components = Some(scores);
        }
        if self.max_order > at.order {
            let (order, _) =
                trial.stage(at.order..=self.max_order, |order| Candidate { order, ..at }, &mut tried)?;
            at.order = order;
        }
        let Candidate { n_components, order, season } = at;
        let Hidden { n_blocks, n_origins, horizon, .. } = hidden;
        Ok(TimeChoice { n_components, order, season, tried, components, n_blocks, n_origins, horizon })
    }
}

/// What is hidden, set by set.
struct Hidden {
    sets: Vec<HiddenBlocks>,
    /// Blocks of all sets before each.
    offsets: Vec<usize>,
    n_blocks: usize,
    n_origins: usize,
    horizon: usize,
    /// Mean squared error of the means of visible cells, in variances of the columns.
    baseline: f64,
}

impl Hidden {
    fn of(data: &Dataset, timeline: &Timeline, n_components: usize, seed: u64) -> Result<Self, Error> {
        let mut sets = (0..SETS)
            .map(|set| {
                HiddenBlocks::draw(data, timeline, n_components, (SHARE, Hide::Half), (seed, set as u64))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let n_blocks = sets.iter().map(|set| set.n_blocks).sum();
        let longest = timeline.sequences().iter().map(|s| s.rows().len()).max().unwrap_or(1);
        let horizon = (longest / 20).clamp(1, HORIZON);
        for origin in 1..=ORIGINS {
            let at = (origin * horizon, horizon);
            sets.extend(HiddenBlocks::after_origin(data, timeline, n_components, at)?);
        }
        let offsets = sets.iter().scan(0, |sum, set| Some(std::mem::replace(sum, *sum + set.n_blocks)));
        let offsets: Vec<usize> = offsets.collect();
        let (mut squares, mut cells) = (0.0, 0.0);
        for set in &sets {
            for &(i, j, _) in &set.cells {
                let error = data.row(i)[j] - set.visible.observed_means()[j];
                squares += error * error / data.observed_variances()[j];
                cells += 1.0;
            }
        }
        let n_all: usize = sets.iter().map(|set| set.n_blocks).sum();
        Ok(Self { offsets, n_origins: n_all - n_blocks, n_blocks, horizon, baseline: squares / cells, sets })
    }
}

struct Trial<'a> {
    search: &'a TimeSearch,
    data: &'a Dataset,
    spec: &'a Spec,
    hidden: &'a Hidden,
    watch: &'a (dyn Fn(usize, usize) -> ControlFlow<()> + Sync),
    done: AtomicUsize,
    total: usize,
}

impl Trial<'_> {
    /// Tries one number after the other until some bring nothing, and chooses.
    fn stage(
        &self,
        range: std::ops::RangeInclusive<usize>,
        candidate: impl Fn(usize) -> Candidate,
        tried: &mut Vec<Tried>,
    ) -> Result<(usize, HeldOut), Error> {
        let mut found: Vec<(usize, HeldOutRows)> = Vec::new();
        let (mut best, mut since, last) = (f64::INFINITY, 0, *range.end());
        for n in range {
            let rows = match self.score(candidate(n)) {
                Ok(rows) => rows,
                // A table may have room for fewer than this.
                Err(Error::TooManyComponents { .. }) if !found.is_empty() => break,
                Err(error) => return Err(error),
            };
            let mean = rows.crps.iter().sum::<f64>();
            since = if mean < best { 0 } else { since + 1 };
            best = best.min(mean);
            found.push((n, rows));
            if since >= PATIENCE {
                break;
            }
        }
        let by_number: Vec<(usize, &HeldOutRows)> = found.iter().map(|(n, rows)| (*n, rows)).collect();
        let mut scores = summarize(Score::Crps, &by_number, self.hidden.baseline);
        scores.n_sets = self.hidden.sets.len();
        scores.limited = scores.best() == last;
        for ((n, rows), at) in found.iter().zip(&scores.by_n_components) {
            let Candidate { n_components, order, season } = candidate(*n);
            let rmse = |units: std::ops::Range<usize>| {
                let cells: usize = rows.n_hidden[units.clone()].iter().sum();
                (cells > 0).then(|| (rows.squared_error[units].iter().sum::<f64>() / cells as f64).sqrt())
            };
            let blocks = self.hidden.n_blocks;
            tried.push(Tried {
                n_components,
                order,
                season,
                mean: at.mean,
                shortfall: at.shortfall,
                shortfall_error: at.shortfall_error,
                block_rmse: rmse(0..blocks).unwrap_or(f64::NAN),
                forecast_rmse: rmse(blocks..rows.n_hidden.len()),
            });
        }
        Ok((scores.chosen(self.search.purpose.rule()), scores))
    }

    /// Predicts all that was hidden; units are blocks.
    fn score(&self, candidate: Candidate) -> Result<HeldOutRows, Error> {
        let Candidate { n_components, order, season } = candidate;
        let estimator =
            DynamicEm { order, season, max_iterations: STEPS, init: None, ..self.search.estimator.clone() };
        let spec = Spec { n_components, ..self.spec.clone() };
        let Hidden { sets, offsets, n_blocks, n_origins, .. } = self.hidden;
        let variances = self.data.observed_variances();
        let stopped = AtomicBool::new(false);
        let of_sets = try_map(sets.len(), |s| {
            let (set, mut rows) = (&sets[s], HeldOutRows::new(n_blocks + n_origins));
            let mut watch = |_: &_| {
                if stopped.load(Ordering::Relaxed) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            let fit = estimator.fit_observed(&set.visible, &spec, &mut watch)?;
            if fit.report.termination == Termination::Interrupted {
                return Err(Error::Interrupted);
            }
            for (cell, block) in set.predicted(fit.model.fill(&set.visible, &self.data.times())?) {
                let (t, unit) = (self.data.row(cell.row)[cell.column], variances[cell.column].sqrt());
                rows.add_cell(offsets[s] + block, (t - cell.mean) / unit, cell.sd / unit);
            }
            let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
            if (self.watch)(done.min(self.total), self.total).is_break() {
                stopped.store(true, Ordering::Relaxed);
                return Err(Error::Interrupted);
            }
            Ok(rows)
        })?;
        let mut all = HeldOutRows::new(n_blocks + n_origins);
        for rows in &of_sets {
            all.add(rows);
        }
        Ok(all)
    }
}
