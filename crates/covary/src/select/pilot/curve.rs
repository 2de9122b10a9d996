//! Which numbers of components are scored, and what the scores come to [M 3.4].

use crate::Error;
use crate::select::held_out::{ChoiceRule, HeldOut, HeldOutRows, Score, summarize};
use std::collections::BTreeMap;

/// Up to this many components every number is scored.
pub(super) const ALL: usize = 8;
/// Otherwise this many evenly spaced intervals first.
const INTERVALS: usize = 6;

/// About how many numbers up to `most` are scored.
pub(super) fn n_scored(most: usize) -> usize {
    if most <= ALL { most + 1 } else { INTERVALS + 1 + 2 * (most / INTERVALS).ilog2() as usize }
}

/// Scores by the number of components.
#[derive(Default)]
pub(super) struct Curve {
    found: BTreeMap<usize, (f64, HeldOutRows)>,
}

/// Scores a number of components.
type Scorer<'a> = dyn FnMut(usize) -> Result<HeldOutRows, Error> + 'a;

impl Curve {
    pub(super) fn insert(&mut self, q: usize, rows: HeldOutRows) {
        self.found.insert(q, (rows.mean_loss(Score::Crps), rows));
    }

    pub(super) fn score(&mut self, q: usize, scorer: &mut Scorer<'_>) -> Result<(), Error> {
        if !self.found.contains_key(&q) {
            self.insert(q, scorer(q)?);
        }
        Ok(())
    }

    /// The number that predicts best; of equals the smallest.
    pub(super) fn best(&self) -> usize {
        let first = |best: Option<(usize, f64)>, (&q, &(loss, _)): (&usize, &(f64, HeldOutRows))| match best {
            Some((_, least)) if least <= loss => best,
            _ => Some((q, loss)),
        };
        self.found.iter().fold(None, first).map_or(0, |(q, _)| q)
    }

    /// Scores all numbers up to `most`, or where they are many some of them, and more around the best until both its
    /// neighbors are scored.
    pub(super) fn search(&mut self, most: usize, scorer: &mut Scorer<'_>) -> Result<(), Error> {
        let steps = if most <= ALL { most } else { INTERVALS };
        for i in 0..=steps {
            self.score(i * most / steps.max(1), scorer)?;
        }
        loop {
            let best = self.best();
            let below = self.found.range(..best).next_back().map(|(&q, _)| q);
            let above = self.found.range(best + 1..).next().map(|(&q, _)| q);
            let between: Vec<usize> = [below.map(|q| q.midpoint(best)), above.map(|q| best.midpoint(q))]
                .into_iter()
                .flatten()
                .filter(|q| !self.found.contains_key(q))
                .collect();
            // Halfway between neighbors lies the lower of them; the one below the best is scored then.
            if between.is_empty() {
                return Ok(());
            }
            between.into_iter().try_for_each(|q| self.score(q, scorer))?;
        }
    }

    /// Scores numbers below the one that the rule prefers until it prefers no smaller one.
    pub(super) fn descend(&mut self, baseline: f64, scorer: &mut Scorer<'_>) -> Result<(), Error> {
        loop {
            let chosen = self.summary(baseline).chosen(ChoiceRule::OneStandardError);
            if chosen == 0 || self.found.contains_key(&(chosen - 1)) {
                return Ok(());
            }
            self.score(chosen - 1, scorer)?;
        }
    }

    /// What the scores come to; `baseline` is the mean squared error of column means.
    pub(super) fn summary(&self, baseline: f64) -> HeldOut {
        let found: Vec<(usize, &HeldOutRows)> = self.found.iter().map(|(&q, (_, rows))| (q, rows)).collect();
        summarize(Score::Crps, &found, baseline)
    }
}
