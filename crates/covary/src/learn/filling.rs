//! A model learned to fill gaps: chosen, corrected and calibrated by hidden cells of its own table [M 4.0].

use super::{Seen, Watch};
use crate::family::{Classes, Components, Family, ForFilling, Request};
use crate::filling::{
    Calibration, Candidate, Correction, Filling, Gain, HiddenSet, Hiding, MANY_ROWS, Odds, Tried, Widths,
    calibrate, crps, hide_as_gaps_lie, hide_one_by_one, limits_of, most_gaps, observed_of, sets_of,
    too_large, weights_by_gaps, work_of_step,
};
use crate::infer::{ClassConditional, FullCovariance};
use crate::learned::{Learned, Residuals};
use crate::model::{ColumnMap, FilledCell};
use crate::{Dataset, Error, Estimator, LinearGaussian, Method, Spec, parallel};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

/// Pseudo-rows tried, and the default [M 4.2.4].
const DEFAULT: f64 = 5.0;
const BELOW: [f64; 5] = [3.0, 1.0, 0.3, 0.1, 0.03];
const ABOVE: [f64; 3] = [10.0, 30.0, 100.0];
/// This many pseudo-rows leave nothing but the mean of each column.
const COLUMN_MEANS: f64 = 1e9;
/// Multiplications of a step of the full covariance from which on pseudo-rows are chosen from fewer, by one set of cells.
const MUCH_WORK: f64 = 1e8;
/// Pseudo-rows tried where fits take long.
const FEW_BELOW: [f64; 2] = [1.0, 0.1];
const FEW_ABOVE: [f64; 1] = [30.0];
/// Observed cells from which on two sets are enough to choose.
const FOR_TWO_SETS: usize = 2000;
/// Sets that calibrate other families.
const FEW_SETS: usize = 4;
/// Fewest distinct hidden cells to choose by, to choose by where each is hidden alone, and to calibrate by [M 4.1.4].
const TO_CHOOSE: usize = 30;
const TO_CHOOSE_ALONE: usize = 5;
const TO_CALIBRATE: usize = 10;
/// Multiplications of a step, over all cells that are hidden alone, up to which they are.
const WORK_ALONE: f64 = 1e7;

/// Standard errors by which a correction must gain: its columns were taken by their own leave-one-out errors.
const TO_CORRECT: f64 = 0.5;

/// A hidden cell and what is predicted for it, in standard deviations of its column.
#[derive(Clone, Copy)]
struct Hidden {
    row: usize,
    column: usize,
    truth: f64,
    mean: f64,
    sd: f64,
}

/// The score of each.
fn scores(cells: &[Hidden]) -> Vec<f64> {
    cells.iter().map(|cell| crps(cell.truth, cell.mean, cell.sd)).collect()
}

/// The row of each.
fn rows_of(cells: &[Hidden]) -> Vec<usize> {
    cells.iter().map(|cell| cell.row).collect()
}

/// Their mean by weights that sum to one.
fn weighted(scores: &[f64], weights: &[f64]) -> f64 {
    weights.iter().zip(scores).map(|(w, s)| w * s).sum()
}

/// The first `n` sets of a table; fewer or none where it cannot spare the cells.
fn sets(
    data: &Dataset,
    (n, most): (usize, usize),
    fewest: usize,
    seed: u64,
) -> Result<Vec<HiddenSet>, Error> {
    let set = |r: usize| match hide_as_gaps_lie(
        data,
        &Hiding { most, fewest, seed, set: r as u64, ..Hiding::default() },
    ) {
        Err(Error::TooFewToHide { .. }) => Ok(None),
        found => found.map(Some),
    };
    Ok(parallel::try_map(n, set)?.into_iter().flatten().collect())
}

/// What is predicted for the hidden cells of a set, by cells that fill its rows.
fn hidden_of(data: &Dataset, set: &HiddenSet, cells: &[FilledCell]) -> Vec<Hidden> {
    let sds: Vec<f64> = data.observed_variances().iter().map(|v| v.sqrt()).collect();
    let of = |cell: &FilledCell| {
        let (row, column, unit) = (set.rows[cell.row], cell.column, sds[cell.column]);
        let truth = data.row(row)[column] / unit;
        (!truth.is_nan()).then_some(Hidden { row, column, truth, mean: cell.mean / unit, sd: cell.sd / unit })
    };
    cells.iter().filter_map(of).collect()
}

/// Different cells among those of all sets.
fn distinct(data: &Dataset, sets: &[HiddenSet]) -> usize {
    let mut places: Vec<(usize, usize)> = sets.iter().flat_map(|set| set.places(data)).collect();
    places.sort_unstable();
    places.dedup();
    places.len()
}

/// Gaps of each column.
fn gaps(data: &Dataset) -> Vec<usize> {
    data.n_observed_by_column().iter().map(|observed| data.n_rows() - observed).collect()
}

/// A Gaussian with this many pseudo-rows, from a start if there is one.
fn gaussian(
    data: &Dataset,
    pseudo_rows: f64,
    start: Option<&LinearGaussian>,
    stop: &AtomicBool,
) -> Result<LinearGaussian, Error> {
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    let method = FullCovariance { pseudo_rows, ..FullCovariance::default() };
    let spec = Spec { standardize: true, ..Spec::ppca(data.n_columns() - 1) };
    Ok(method.from(start).fit(data, &spec)?.model)
}

impl Request {
    /// [`learn_mapped`](Self::learn_mapped) for filling.
    pub(super) fn learn_filling(
        &self,
        how: ForFilling,
        table: &Dataset,
        map: &ColumnMap,
        data: &Dataset,
        watch: &dyn Watch,
    ) -> Result<Learned, Error> {
        let with_classes;
        let data = match &self.classes {
            Some(classes) => {
                with_classes = data.clone().of_classes(classes.of_rows.clone())?;
                &with_classes
            }
            None => data,
        };
        let mut tried = Vec::new();
        let mut request = self.clone();
        if how.choose {
            (request.inference, request.method, request.options) = (None, None, Vec::new());
            request = if too_large(data) {
                Self { family: Family::Ppca, n_components: Some(Components::Auto), ..request }
            } else {
                let pseudo_rows;
                (pseudo_rows, tried) = choose_pseudo_rows(data, self.seed, watch)?;
                request.of_pseudo_rows(pseudo_rows)
            };
        }
        let mut learned = request.learn_data(table, map, data, watch)?;
        let limits = how.limits.then(|| limits_of(data));
        let observed = how.choose.then(|| observed_of(data));
        let mut filling = Filling { tried, observed, limits, ..Filling::default() };
        let correct = how.choose && request.family == Family::Gaussian;
        if (how.calibrate || correct) && !data.is_complete() {
            let finished = match learned.hidden_residuals(data, &mut Seen::Checking(watch)) {
                Some(residuals) => {
                    residuals.map(|found| filling.calibration = calibrated_as_whole(&found, data))
                }
                None => request.finish(&learned, &mut filling, (correct, how.calibrate), data, watch),
            };
            match finished {
                // The model as fitted is worth keeping.
                Ok(()) | Err(Error::Interrupted) => {}
                Err(error) => return Err(error),
            }
            if filling.tried.last().is_some_and(|t| t.taken && t.candidate == Candidate::ColumnMeans) {
                learned = request.of_pseudo_rows(COLUMN_MEANS).learn_data(table, map, data, &())?;
            }
        }
        watch.finished(&filling);
        learned.filling = Some(filling);
        Ok(learned)
    }

    fn of_pseudo_rows(&self, pseudo_rows: f64) -> Self {
        let method = FullCovariance { pseudo_rows, ..FullCovariance::default() };
        Self {
            family: Family::Gaussian,
            n_components: None,
            method: Some(Method::FullCovariance(method).into()),
            ..self.clone()
        }
    }

    /// Corrects and calibrates.
    fn finish(
        &self,
        learned: &Learned,
        filling: &mut Filling,
        (correct, calibrated): (bool, bool),
        data: &Dataset,
        watch: &dyn Watch,
    ) -> Result<(), Error> {
        let (mut n_sets, most) = sets_of(data);
        if self.family != Family::Gaussian {
            // Other fits take longer, and a sampler is not run again and again.
            let samples = learned.method.to_method().is_ok_and(|method| matches!(method, Method::Gibbs(_)));
            n_sets = n_sets.min(if samples { 1 } else { FEW_SETS });
        }
        let sets = sets(data, (n_sets, most), learned.fewest_cells(), self.seed)?;
        let correction = match learned.linear() {
            Ok(fit) if correct && !sets.is_empty() => {
                Correction::learn(&fit.model, data, &most_gaps(&gaps(data)), Widths::Best, self.seed)?
            }
            _ => None,
        };
        let predicted = parallel::try_map(sets.len(), |r| {
            let known = (correction.as_ref(), filling.observed.is_some());
            learned.predict_hidden(self, &sets[r], known, &mut Seen::Checking(watch))
        })?;
        let (mut plain, mut corrected) = (Vec::new(), Vec::new());
        for (predicted, set) in predicted.into_iter().zip(&sets) {
            // Sources are not fitted again.
            let Some(predicted) = predicted else { return Ok(()) };
            plain.extend(hidden_of(data, set, &predicted.plain));
            corrected.extend(hidden_of(data, set, &predicted.corrected.unwrap_or_default()));
        }
        let enough = distinct(data, &sets);
        let columns: Vec<usize> = plain.iter().map(|cell| cell.column).collect();
        let weights = weights_by_gaps(&columns, &gaps(data));
        let mut cells = plain;
        let rows = rows_of(&cells);
        let mut consider = |candidate: Candidate, other: Vec<Hidden>, cells: &mut Vec<Hidden>| {
            let own = scores(&other);
            let gain = Gain::of(&scores(cells), &own, &weights, &rows);
            let crps = weighted(&own, &weights);
            // Scores that are not numbers gain nothing.
            let taken = gain.exceeds(if candidate == Candidate::Correction { TO_CORRECT } else { 1.0 });
            filling.tried.push(Tried { candidate, crps, gain, taken });
            if taken {
                *cells = other;
            }
            taken
        };
        if correct && enough >= TO_CHOOSE {
            if let Some(correction) = correction
                && consider(Candidate::Correction, corrected, &mut cells)
            {
                filling.correction = Some(correction);
            }
            let means = column_means(data, &sets, &cells);
            if consider(Candidate::ColumnMeans, means, &mut cells) {
                filling.correction = None;
            }
        }
        filling.estimated = calibrated && enough < TO_CALIBRATE && learned.has_parameter_posterior();
        if filling.estimated {
            // What lies far outside has a wide interval, around the mean as it is.
            filling.observed = None;
        }
        if calibrated && enough >= TO_CALIBRATE {
            let residuals: Vec<(usize, f64)> =
                cells.iter().map(|c| (c.column, (c.truth - c.mean) / c.sd.max(1e-9))).collect();
            let odds = Odds::of(data);
            let weights: Vec<f64> = cells.iter().map(|c| odds.at(c.row, c.column)).collect();
            filling.calibration = Some(Calibration {
                columns: calibrate(&residuals, &weights, data.n_columns())
                    .into_iter()
                    .map(Into::into)
                    .collect(),
                n_hidden: enough,
                transplanted: sets.iter().all(|set| set.transplanted),
            });
        }
        Ok(())
    }
}

/// How far intervals of a model of whole tables reach.
fn calibrated_as_whole(residuals: &Residuals, data: &Dataset) -> Option<Calibration> {
    let n_hidden = residuals.of_cells.len();
    (n_hidden >= TO_CALIBRATE).then(|| {
        let quantiles = calibrate(&residuals.of_cells, &vec![1.0; n_hidden], data.n_columns());
        let columns = quantiles.into_iter().map(Into::into).collect();
        Calibration { columns, n_hidden, transplanted: !residuals.at_random }
    })
}

/// The same cells predicted by the mean of the visible cells of their column.
fn column_means(data: &Dataset, sets: &[HiddenSet], cells: &[Hidden]) -> Vec<Hidden> {
    let mut out = cells.to_vec();
    let mut at = 0;
    for set in sets {
        let n = set.places(data).count();
        for cell in &mut out[at..at + n] {
            let j = cell.column;
            let unit = data.observed_variances()[j].sqrt();
            let visible = set.visible.n_observed_by_column()[j] as f64;
            cell.mean = set.visible.observed_means()[j] / unit;
            cell.sd = (set.visible.observed_variances()[j] * (1.0 + 1.0 / visible)).sqrt() / unit;
        }
        at += n;
    }
    out
}

/// The number of pseudo-rows whose predictions of hidden cells are best, if better than by the default, and all that were
/// tried; none where too few cells can be hidden [M 4.2.4]. A table that cannot spare enough at once has each hidden alone.
fn choose_pseudo_rows(data: &Dataset, seed: u64, watch: &dyn Watch) -> Result<(f64, Vec<Tried>), Error> {
    let sample;
    let few = if data.n_rows() > MANY_ROWS {
        sample = data.of_rows(&data.spread_rows(MANY_ROWS))?;
        &sample
    } else {
        data
    };
    let (below, above, n_sets) = match few.n_observed() {
        _ if work_of_step(few) > MUCH_WORK => (&FEW_BELOW[..], &FEW_ABOVE[..], 1),
        n if n > FOR_TWO_SETS => (&BELOW[..], &ABOVE[..], 2),
        _ => (&BELOW[..], &ABOVE[..], sets_of(few).0),
    };
    let mut sets = if data.is_complete() { Vec::new() } else { sets(few, (n_sets, usize::MAX), 3, seed)? };
    let mut fewest = TO_CHOOSE;
    if distinct(few, &sets) < TO_CHOOSE && few.n_observed() as f64 * work_of_step(few) < WORK_ALONE {
        (sets, fewest) = (hide_one_by_one(few)?, TO_CHOOSE_ALONE);
    }
    if distinct(few, &sets) < fewest {
        return Ok((DEFAULT, Vec::new()));
    }
    let never = AtomicBool::new(false);
    let stop = watch.stop_flag().unwrap_or(&never);
    let n_fits = sets.len() * (1 + below.len() + above.len());
    let done = std::sync::atomic::AtomicUsize::new(0);
    let of_set = |set: &HiddenSet| -> Result<Vec<Option<Vec<Hidden>>>, Error> {
        let rows = set.visible_rows()?;
        let ask = |lambda: f64, start: Option<&LinearGaussian>| {
            if watch.choosing(done.fetch_add(1, Ordering::Relaxed), n_fits) == ControlFlow::Break(()) {
                return Err(Error::Interrupted);
            }
            let model = gaussian(&set.visible, lambda, start, stop)?;
            let cells = crate::Density::gap_cells(&model, &rows)?;
            Ok((hidden_of(few, set, &cells), model))
        };
        let (cells, start) = ask(DEFAULT, None)?;
        let mut found = vec![Some(cells)];
        for grid in [below, above] {
            let mut last = start.clone();
            for &lambda in grid {
                // Where the table is too small for so few pseudo-rows, they are not tried.
                found.push(match ask(lambda, Some(&last)) {
                    Ok((cells, model)) => {
                        last = model;
                        Some(cells)
                    }
                    Err(Error::Interrupted) => return Err(Error::Interrupted),
                    Err(_) => None,
                });
            }
        }
        Ok(found)
    };
    let by_set = parallel::try_map(sets.len(), |r| of_set(&sets[r]))?;
    let of_candidate = |k: usize| -> Option<Vec<Hidden>> {
        let all: Option<Vec<Vec<Hidden>>> = by_set.iter().map(|found| found[k].clone()).collect();
        all.map(|cells| cells.concat())
            .filter(|cells| cells.iter().all(|c| c.mean.is_finite() && c.sd.is_finite()))
    };
    let Some(plain) = of_candidate(0) else {
        return Ok((DEFAULT, Vec::new()));
    };
    let columns: Vec<usize> = plain.iter().map(|cell| cell.column).collect();
    let weights = weights_by_gaps(&columns, &gaps(few));
    let rows = rows_of(&plain);
    let zero = Gain { mean: 0.0, standard_error: 0.0 };
    let mut found = vec![(DEFAULT, scores(&plain))];
    for (k, &lambda) in below.iter().chain(above).enumerate() {
        found.extend(of_candidate(k + 1).map(|cells| (lambda, scores(&cells))));
    }
    let taken = nearest_as_good(&found, &weights, &rows);
    let tried = found.iter().enumerate().map(|(k, (lambda, own))| {
        let gain = if k == 0 { zero } else { Gain::of(&found[0].1, own, &weights, &rows) };
        let crps = weighted(own, &weights);
        Tried { candidate: Candidate::PseudoRows(*lambda), crps, gain, taken: k == 0 || k == taken }
    });
    Ok((found[taken].0, tried.collect()))
}

/// How much rows count for the classes they are not of: all, less, or not at all.
const LENT: [f64; 6] = [1.0, 0.3, 0.1, 0.03, 0.01, 0.0];
/// The same where too few cells can be hidden to choose by.
const LENT_UNCHOSEN: f64 = 0.3;

/// How much rows are lent to other classes, by hidden cells: the most that predicts them as well as the best, so that the
/// class counts as far as it helps [M 4.13].
pub(super) fn choose_lent(
    estimator: &ClassConditional,
    (data, classes): (&Dataset, &Classes),
    spec: &Spec,
    seed: u64,
    watch: &dyn Watch,
) -> Result<f64, Error> {
    let most = if data.is_complete() { 0 } else { sets_of(data).0.min(FEW_SETS) };
    let sets = sets(data, (most, usize::MAX), spec.n_components + 1, seed)?;
    if distinct(data, &sets) < TO_CHOOSE {
        return Ok(LENT_UNCHOSEN);
    }
    let n_fits = sets.len() * LENT.len();
    let predicted = parallel::try_map(n_fits, |at| -> Result<Option<Vec<Hidden>>, Error> {
        if watch.choosing(at, n_fits) == ControlFlow::Break(()) {
            return Err(Error::Interrupted);
        }
        let (set, lent) = (&sets[at / LENT.len()], Some(LENT[at % LENT.len()]));
        let asked = ClassConditional { lent, ..estimator.clone() };
        match asked.fit(&set.visible, &classes.of_rows, &classes.names, spec) {
            Ok(fit) => {
                let cells = crate::Density::gap_cells(fit.model.mixture(), &set.visible_rows()?)?;
                Ok(Some(hidden_of(data, set, &cells)))
            }
            Err(Error::Interrupted) => Err(Error::Interrupted),
            // Where a class has too few rows by itself.
            Err(_) => Ok(None),
        }
    })?;
    let of_candidate = |k: usize| -> Option<Vec<Hidden>> {
        let sets = predicted.iter().skip(k).step_by(LENT.len());
        let all: Option<Vec<Vec<Hidden>>> = sets.cloned().collect();
        all.map(|cells| cells.concat())
            .filter(|cells| !cells.is_empty() && cells.iter().all(|c| c.mean.is_finite() && c.sd.is_finite()))
    };
    let Some(all) = of_candidate(0) else { return Ok(LENT_UNCHOSEN) };
    let columns: Vec<usize> = all.iter().map(|cell| cell.column).collect();
    let (weights, rows) = (weights_by_gaps(&columns, &gaps(data)), rows_of(&all));
    let found: Vec<(f64, Vec<f64>)> =
        LENT.iter().enumerate().filter_map(|(k, &lent)| Some((lent, scores(&of_candidate(k)?)))).collect();
    Ok(found[nearest_as_good(&found, &weights, &rows)].0)
}

/// The candidate nearest to the first, by ratio, than which the best is not better by more than one standard error [M 4.2.3].
fn nearest_as_good(found: &[(f64, Vec<f64>)], weights: &[f64], rows: &[usize]) -> usize {
    let score = |k: &usize| weighted(&found[*k].1, weights);
    let best = (0..found.len()).min_by(|a, b| score(a).total_cmp(&score(b))).expect("the default");
    let far = |k: &usize| (found[*k].0 / found[0].0).ln().abs();
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by(|a, b| far(a).total_cmp(&far(b)));
    let as_good = |k: &usize| !Gain::of(&found[*k].1, &found[best].1, weights, rows).counts();
    order.into_iter().find(as_good).unwrap_or(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_that_is_as_good_as_the_best_is_taken() {
        // Scores of 40 rows of two cells: a mean, and what differs between rows.
        let scores = |mean: f64, noise: f64| -> Vec<f64> {
            (0..80).map(|i| mean + noise * f64::from(u8::from(i / 2 % 2 == 0)) - 0.5 * noise).collect()
        };
        let rows: Vec<usize> = (0..80).map(|i| i / 2).collect();
        let weights = [1.0 / 80.0; 80];
        let taken = |found: &[(f64, Vec<f64>)]| found[nearest_as_good(found, &weights, &rows)].0;
        // The standard error of a difference with noise a is a/2/√40 by rows, and a/2/√80 by cells.
        let (noise, error) = (0.4, 0.2 / 40.0_f64.sqrt());
        let best = scores(0.5, 0.0);
        let ladder = |third: f64, default: f64| {
            vec![
                (5.0, scores(default, noise)),
                (3.0, scores(third, noise)),
                (0.3, best.clone()),
                (30.0, scores(0.9, noise)),
            ]
        };
        assert_eq!(taken(&ladder(0.5 + 0.9 * error, 0.5 + 1.1 * error)), 3.0);
        assert_eq!(taken(&ladder(0.5 + 1.1 * error, 0.5 + 1.1 * error)), 0.3);
        let found = ladder(0.9, 0.5 + 0.9 * error);
        assert_eq!(taken(&found), 5.0);
        // If cells of a row were independent, the default would not be as good.
        let cells: Vec<usize> = (0..80).collect();
        assert_eq!(found[nearest_as_good(&found, &weights, &cells)].0, 0.3);
    }
}
