//! The E-step of a mixture and the sums of its M-step, block by block: nothing of the size of the table is kept.
//!
//! ```text
//! ℓ │ N_1 … N_K │ sums of model 1 │ … │ sums of model K │ K times: ln p of a row, its cells
//! ```
//!
//! All but the last part add. The rows in it are the least likely ones, to which models that have lost their rows are moved: of two
//! blocks, the least likely of both.

use super::NEGLIGIBLE;
use super::maximize::Point;
use crate::data::Run;
use crate::infer::em::parameters::{Frame, Parameters};
use crate::model::{Mixture, Shares};
use crate::parallel::{add, in_turn};
use crate::{Dataset, Error, Spec};
use std::borrow::Cow;
use std::ops::Range;

/// Where the models of a mixture stand.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::infer) struct Models<'a> {
    pub(in crate::infer) frame: Cow<'a, Frame>,
    /// Whether columns are fitted in their own units.
    pub(in crate::infer) standardize: bool,
    /// Whether the M-step is made in closed form.
    pub(in crate::infer) closed_form: bool,
    pub(in crate::infer) at: Cow<'a, [Parameters]>,
    pub(in crate::infer) weights: Cow<'a, [f64]>,
    /// The same in the user's units.
    mixture: Mixture,
}

impl<'a> Models<'a> {
    pub(in crate::infer) fn new(
        frame: Cow<'a, Frame>,
        (standardize, closed_form): (bool, bool),
        at: Cow<'a, [Parameters]>,
        weights: Cow<'a, [f64]>,
    ) -> Result<Self, Error> {
        let spec = Spec { standardize, ..Spec::ppca(0) };
        let models = at.iter().map(|p| frame.model(p, &spec)).collect::<Result<_, _>>()?;
        let mixture = Mixture::new(models, weights.to_vec())?;
        Ok(Self { frame, standardize, closed_form, at, weights, mixture })
    }

    pub(super) fn into_mixture(self) -> Mixture {
        self.mixture
    }

    /// K.
    pub(in crate::infer) fn len(&self) -> usize {
        self.at.len()
    }

    /// How many numbers the sums are.
    pub(in crate::infer) fn numbers_len(&self) -> usize {
        let least = self.len() * (1 + self.frame.mean.len());
        parts(&self.at, self.closed_form).last().map_or(0, |part| part.end) + least
    }

    /// Responsibilities and log-densities of some rows; 0 for one without an observed cell.
    pub(super) fn shares_of(&self, rows: Run<'_>) -> Shares {
        let mut shares = self.mixture.shares_of(rows);
        for pattern in rows.patterns().filter(|p| p.n_observed() == 0) {
            for i in pattern.rows.iter().map(|i| i - rows.first) {
                shares.responsibilities.row_mut(i).fill(0.0);
                shares.log_totals[i] = 0.0;
            }
        }
        shares
    }

    /// All sums over block `b` of a table.
    pub(in crate::infer) fn sums_of_block(&self, data: &Dataset, b: usize) -> Vec<f64> {
        let rows = data.run(b);
        let shares = self.shares_of(rows);
        let mut sums = vec![shares.log_totals.iter().sum()];
        sums.resize(1 + self.len(), 0.0);
        for (k, at) in self.at.iter().enumerate() {
            let weights: Vec<f64> = weights(&shares, k).collect();
            sums[1 + k] = weights.iter().sum();
            match Point::new(at, self.closed_form) {
                Ok(point) => sums.extend(point.sums((data, b), &self.frame, &weights)),
                // Who asked comes to the same error, unless the model is lost and has no M-step.
                Err(_) => sums.resize(sums.len() + Point::sums_len(at, self.closed_form), f64::NAN),
            }
        }
        sums.extend(least_likely(rows, &shares.log_totals, self.len()));
        sums
    }
}

/// Where the sums of each model are.
pub(super) fn parts(at: &[Parameters], closed_form: bool) -> Vec<Range<usize>> {
    let mut end = 1 + at.len();
    let part = |at: &Parameters| {
        let start = end;
        end += Point::sums_len(at, closed_form);
        start..end
    };
    at.iter().map(part).collect()
}

/// How often each row counts in model `k`.
pub(super) fn weights(shares: &Shares, k: usize) -> impl Iterator<Item = f64> {
    shares.responsibilities.rows().map(move |r| if r[k] < NEGLIGIBLE { 0.0 } else { r[k] })
}

/// The least likely rows of a table, one for each model, as [`sums_of_block`](Models::sums_of_block) has them.
pub(super) fn least_likely_of_all(data: &Dataset, blocks: &[Shares], n_models: usize) -> Vec<f64> {
    let of_block = |b: usize| least_likely(data.run(b), &blocks[b].log_totals, n_models);
    in_turn(blocks.len(), of_block, |a, b| keep_least_likely(a, b, 1 + data.n_columns()))
}

/// `ln p` and cells of the `k` least likely rows, the first of equals first; NaN where there are fewer.
fn least_likely(rows: Run<'_>, log_totals: &[f64], k: usize) -> Vec<f64> {
    let mut found: Vec<usize> = Vec::with_capacity(k + 1);
    for (i, l) in log_totals.iter().enumerate() {
        let place = found.partition_point(|&j| log_totals[j].total_cmp(l).is_le());
        if place < k && rows.data.row(rows.first + i).iter().any(|v| !v.is_nan()) {
            found.insert(place, i);
            found.truncate(k);
        }
    }
    let mut least = vec![f64::NAN; k * (1 + rows.data.n_columns())];
    for (to, i) in least.chunks_exact_mut(1 + rows.data.n_columns()).zip(found) {
        to[0] = log_totals[i];
        to[1..].copy_from_slice(rows.data.row(rows.first + i));
    }
    least
}

/// Of two lists of least likely rows, entries of `width` numbers, as many as the first has: where rows are equally likely those of
/// `a`, which come before those of `b`.
fn keep_least_likely(a: &mut [f64], b: &[f64], width: usize) {
    let mut rows: Vec<&[f64]> = a.chunks_exact(width).chain(b.chunks_exact(width)).collect();
    rows.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let kept = rows[..rows.len() / 2].concat();
    a.copy_from_slice(&kept);
}

/// Joins the sums of two runs of rows, one after the other, of which `rows` of `width` numbers at the end are least likely ones.
pub(in crate::infer) fn merge(a: &mut [f64], b: &[f64], (rows, width): (usize, usize)) {
    let at = a.len() - rows * width;
    add(&mut a[..at], &b[..at]);
    keep_least_likely(&mut a[at..], &b[at..], width);
}
