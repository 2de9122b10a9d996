//! How many components: by points that are hidden, a few of each curve.

use super::FunctionalEm;
use super::design::Curves;
use crate::infer::{Step, Termination};
use crate::model::FilledCell;
use crate::parallel::try_map;
use crate::select::{
    CheckedCell, HeldOut, HeldOutRows, Score, SelfCheck, SelfCheckOptions, compare, summarize,
};
use crate::{Dataset, Error, Estimator, Spec};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::ControlFlow;

/// Sets of points, and the share of each curve in one of them.
const SETS: usize = 3;
const SHARE: f64 = 0.2;
/// Curves that choose, spread over the table.
const CURVES: usize = 500;
/// Points that a curve keeps at least.
const KEPT: usize = 2;
/// Numbers in a row without a gain after which no larger one is tried.
const PATIENCE: usize = 2;
/// A component whose variance at a point is this share of the noise's has none: there is no larger number to try.
const NOTHING: f64 = 1e-3;
/// The tolerance of fits that choose.
const TOLERANCE: f64 = 0.1;

/// Chooses the number of components by how well hidden points are predicted from the others of their curve.
///
/// Three sets of points are hidden in turn, a fifth of each curve with three points or more; every number is fitted without them,
/// smoothing included, and scored by the joint log-density of the hidden points of a curve given its visible ones. Numbers are
/// tried from 1 on until two in a row gain nothing, or the smoothing draws the last component of every set to 0. At most 500
/// curves take part.
///
/// ```
/// use covary::functional::{CurveSearch, simulated};
/// use covary::{select::ChoiceRule, Spec};
/// let (table, _) = simulated(150, 8, /* seed */ 1);
/// let found = CurveSearch::default().run(&table, &Spec::ppca(1))?.expect("points to spare");
/// assert_eq!(found.chosen(ChoiceRule::OneStandardError), 2);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CurveSearch {
    /// What all candidates share.
    pub estimator: FunctionalEm,
    /// Most components that are tried.
    pub max_components: usize,
    /// Seed of which points are hidden.
    pub seed: u64,
}

impl Default for CurveSearch {
    fn default() -> Self {
        Self { estimator: FunctionalEm::default(), max_components: 8, seed: 0 }
    }
}

impl CurveSearch {
    /// How well each number predicts; `None` if no curve has a point to spare.
    ///
    /// # Errors
    /// What the estimator refuses.
    pub fn run(&self, data: &Dataset, spec: &Spec) -> Result<Option<HeldOut>, Error> {
        self.run_observed(data, spec, &|_, _| ControlFlow::Continue(()))
    }

    /// [`run`](Self::run), watched: is told how many of how many fits are done, and may end it.
    ///
    /// # Errors
    /// As [`run`](Self::run), and [`Error::Interrupted`] once `watch` breaks.
    pub fn run_observed(
        &self,
        data: &Dataset,
        spec: &Spec,
        watch: &(dyn Fn(usize, usize) -> ControlFlow<()> + Sync),
    ) -> Result<Option<HeldOut>, Error> {
        Curves::of(data)?.check()?;
        let some;
        let data = match spread(data) {
            None => data,
            Some(rows) => {
                some = data.of_rows(&rows)?;
                &some
            }
        };
        let hidden = |set: usize| HiddenPoints::draw(data, SHARE, (self.seed, set as u64));
        let sets = match (0..SETS).map(hidden).collect::<Result<Vec<_>, _>>() {
            Err(Error::TooFewToHide { .. }) => return Ok(None),
            sets => sets?,
        };
        let curves = Curves::of(data)?;
        let most = self.max_components.min(curves.len().saturating_sub(2)).max(1);
        let estimator = FunctionalEm { tolerance: TOLERANCE, init: None, ..self.estimator.clone() };
        let mut found: Vec<(usize, HeldOutRows)> = Vec::new();
        let (mut best, mut without_gain) = (f64::INFINITY, 0);
        for n_components in 1..=most {
            let spec = Spec { n_components, ..spec.clone() };
            let done = (n_components - 1) * SETS;
            let score = |set: usize| {
                let visible = &sets[set].visible;
                let mut told = |_: &Step| watch(done, most * SETS);
                let fit = match estimator.fit_observed(visible, &spec, &mut told) {
                    // The table has no room for more.
                    Err(Error::TooManyEigenfunctions { .. } | Error::TooManyComponents { .. }) => {
                        return Ok(None);
                    }
                    fit => fit?,
                };
                if fit.report.termination == Termination::Interrupted {
                    return Err(Error::Interrupted);
                }
                let mut rows = HeldOutRows::new(curves.len());
                let (before, after) = (fit.model.densities(visible)?, fit.model.densities(data)?);
                let filled = sets[set].predicted(fit.model.fill(visible)?);
                for (cell, curve) in filled {
                    rows.add_cell(curve, data.row(cell.row)[cell.column] - cell.mean, cell.sd);
                }
                for i in (0..curves.len()).filter(|&i| rows.n_hidden[i] > 0) {
                    rows.joint[i] = after[i].log_density - before[i].log_density;
                }
                let nothing = NOTHING * fit.model.noise() * fit.model.basis().length();
                Ok(Some((rows, fit.model.eigenvalues()[n_components - 1] > nothing)))
            };
            let scored: Option<Vec<(HeldOutRows, bool)>> = try_map(SETS, score)?.into_iter().collect();
            let Some(scored) = scored.filter(|sets| n_components == 1 || sets.iter().any(|(_, any)| *any))
            else {
                break;
            };
            let mut total = HeldOutRows::new(curves.len());
            for (rows, _) in &scored {
                total.add(rows);
            }
            let loss = -total.joint.iter().sum::<f64>();
            without_gain = if loss < best { 0 } else { without_gain + 1 };
            best = best.min(loss);
            found.push((n_components, total));
            if watch(n_components * SETS, most * SETS).is_break() {
                return Err(Error::Interrupted);
            }
            if without_gain == PATIENCE {
                break;
            }
        }
        if found.is_empty() {
            return Ok(None);
        }
        let entries: Vec<(usize, &HeldOutRows)> = found.iter().map(|(q, rows)| (*q, rows)).collect();
        let values: Vec<f64> = curves.observed().map(|p| p.value).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let baseline = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
        let scores = summarize(Score::LogDensity, &entries, baseline);
        Ok(Some(HeldOut { n_sets: SETS, ..scores }))
    }
}

/// The rows of curves that are spread over a table of more than enough; `None` if all of them take part.
fn spread(data: &Dataset) -> Option<Vec<usize>> {
    let Some(points) = data.points() else {
        return (data.n_rows() > CURVES).then(|| data.spread_rows(CURVES));
    };
    let curves = points.of_curves();
    if curves.len() <= CURVES {
        return None;
    }
    let every = curves.len().div_ceil(CURVES);
    Some(curves.into_iter().step_by(every).flatten().collect())
}

/// A table without some points of its curves.
pub(crate) struct HiddenPoints {
    pub(crate) visible: Dataset,
    /// Row, column and curve of each, in order.
    cells: Vec<(usize, usize, usize)>,
    /// Whether they lie as missing points of other curves do; at random otherwise.
    pub(crate) transplanted: bool,
}

impl HiddenPoints {
    /// Hides a share of every curve, at least one point of those that keep two.
    ///
    /// # Errors
    /// [`Error::TooFewToHide`] if no curve has a point to spare.
    fn draw(data: &Dataset, share: f64, (seed, set): (u64, u64)) -> Result<Self, Error> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(set);
        let curves = Curves::of(data)?;
        let mut cells = Vec::new();
        for i in 0..curves.len() {
            let observed = curves.curve(i).iter().filter(|p| !p.value.is_nan());
            let mut own: Vec<(usize, usize)> = observed.map(|p| p.cell).collect();
            let n = ((own.len() as f64 * share).round() as usize).max(1);
            own.shuffle(&mut rng);
            let spare = own.len().saturating_sub(KEPT);
            cells.extend(own.into_iter().take(n.min(spare)).map(|(row, column)| (row, column, i)));
        }
        Self::of_cells(data, cells, false)
    }

    /// Hides a share of all points, but not more than `most`, as points of other curves are missing: a curve loses those next to the
    /// times of the missing ones of another, and keeps two. At random where no curve lacks a part of its points.
    ///
    /// # Errors
    /// As [`draw`](Self::draw).
    pub(crate) fn as_gaps_lie(
        data: &Dataset,
        (share, most): (f64, usize),
        (seed, set): (u64, u64),
    ) -> Result<Self, Error> {
        let curves = Curves::of(data)?;
        let missing = |i: usize| curves.curve(i).iter().filter(|p| p.value.is_nan()).map(|p| p.time);
        let donors: Vec<usize> =
            (0..curves.len()).filter(|&i| (1..curves.curve(i).len()).contains(&missing(i).count())).collect();
        if donors.is_empty() {
            return Self::draw(data, share, (seed, set));
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(set);
        let wanted = ((share * curves.observed().count() as f64).round() as usize).clamp(1, most);
        let mut order: Vec<usize> = (0..curves.len()).collect();
        order.shuffle(&mut rng);
        let mut cells = Vec::new();
        for i in order {
            if cells.len() >= wanted {
                break;
            }
            let mut own: Vec<_> = curves.curve(i).iter().filter(|p| !p.value.is_nan()).collect();
            for time in missing(donors[rng.random_range(0..donors.len())]) {
                let far = |k: &usize| (own[*k].time - time).abs();
                let next = (0..own.len()).min_by(|a, b| far(a).total_cmp(&far(b)));
                if let Some(next) = next.filter(|_| own.len() > KEPT) {
                    let (row, column) = own.swap_remove(next).cell;
                    cells.push((row, column, i));
                }
            }
        }
        Self::of_cells(data, cells, true)
    }

    fn of_cells(
        data: &Dataset,
        mut cells: Vec<(usize, usize, usize)>,
        transplanted: bool,
    ) -> Result<Self, Error> {
        if cells.is_empty() {
            return Err(Error::TooFewToHide { cells: 0, folds: 1 });
        }
        cells.sort_unstable();
        let visible = data.without_cells(cells.iter().map(|&(row, column, _)| (row, column)))?;
        Ok(Self { visible, cells, transplanted })
    }

    /// Of all filled cells those that were hidden, with their curves.
    pub(crate) fn predicted(&self, cells: Vec<FilledCell>) -> Vec<(FilledCell, usize)> {
        let curve = |cell: FilledCell| {
            let at = self.cells.binary_search_by_key(&(cell.row, cell.column), |&(i, j, _)| (i, j)).ok()?;
            Some((cell, self.cells[at].2))
        };
        cells.into_iter().filter_map(curve).collect()
    }
}

/// The check on hidden points: `fill` gets the table without a share of every curve.
///
/// # Errors
/// [`Error::TooFewToHide`] if no curve has a point to spare, and those of `fill`.
pub(crate) fn check_by_points(
    data: &Dataset,
    options: &SelfCheckOptions,
    fill: impl FnOnce(&Dataset) -> Result<Vec<FilledCell>, Error>,
) -> Result<(SelfCheck, Vec<CheckedCell>), Error> {
    options.check()?;
    // Another set than those that choose.
    let hidden = HiddenPoints::draw(data, options.share, (options.seed, SETS as u64))?;
    let (mut cells, mut curves, mut baseline) = (Vec::new(), Vec::new(), Vec::new());
    for (cell, curve) in hidden.predicted(fill(&hidden.visible)?) {
        let mean = hidden.visible.observed_means()[cell.column];
        // A time at which curves do not differ, or only this one was seen, has nothing to compare with.
        if mean.is_nan() || data.observed_variances()[cell.column] <= 0.0 {
            continue;
        }
        cells.push(CheckedCell { truth: data.row(cell.row)[cell.column], cell });
        curves.push(curve);
        baseline.push(mean);
    }
    if cells.is_empty() {
        return Err(Error::TooFewToHide { cells: 0, folds: 1 });
    }
    Ok((compare(&cells, &baseline, &curves, data, &options.levels), cells))
}
