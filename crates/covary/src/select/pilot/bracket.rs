//! How many components there may be at most [M 3.2].

use crate::infer::PilotStart;
use crate::{Dataset, Error, Spec};
use std::borrow::Cow;

/// Smallest eigenvalue: with gaps a covariance need not be positive.
const LEAST: f64 = 1e-4;
/// Eigenpairs that are searched first where all of them would take long.
const FIRST: usize = 24;

/// The table without columns that have less than a tenth of the cells of the one in the middle: a column with fewer cells than
/// components is explained by any of them, which is no reason to learn less of the others.
pub(super) fn well_observed(data: &Dataset) -> Result<Cow<'_, Dataset>, Error> {
    let observed = data.n_observed_by_column();
    let mut sorted = observed.to_vec();
    sorted.sort_unstable();
    let least = sorted[sorted.len() / 2].div_ceil(10);
    if sorted[0] >= least {
        return Ok(Cow::Borrowed(data));
    }
    let kept: Vec<usize> = (0..observed.len()).filter(|&j| observed[j] >= least).collect();
    data.of_columns(&kept).map(Cow::Owned)
}

/// Rows of a table with gaps that are enough. Of d columns, 10 000 hidden cells are those of 100 000/d rows; they tell a component
/// that gains 8 nats in all, 8e-5 d in a row [M 3.2.4]. This many rows find it: they gain more than twice as many nats as it has
/// loadings.
const ENOUGH_ROWS: usize = 30_000;

/// Some rows of a long table with gaps, unless a column would be constant in them. Complete tables take no longer than a fit.
pub(super) fn enough_rows(data: &Dataset) -> Result<Cow<'_, Dataset>, Error> {
    if data.n_rows() > ENOUGH_ROWS && !data.is_complete() {
        let sample = data.of_rows(&data.spread_rows(ENOUGH_ROWS))?;
        if sample.observed_variances().iter().all(|v| *v > 0.0) {
            return Ok(Cow::Owned(sample));
        }
    }
    Ok(Cow::Borrowed(data))
}

/// The range of numbers of components of a table.
pub(super) struct Bracket {
    /// The most that the table has room for.
    pub(super) cap: usize,
}

impl Bracket {
    pub(super) fn of(data: &Dataset, spec: &Spec, max_components: Option<usize>) -> Self {
        let columns = spec.max_components(data.n_columns());
        let rows = data.n_informative_rows().saturating_sub(2);
        // Of the column with fewest cells a tenth is hidden, too.
        let fewest = data.n_observed_by_column().iter().copied().min().unwrap_or(0);
        let cells = 9 * fewest / 10;
        let room = columns.min(rows).min(cells.saturating_sub(2));
        Self { cap: max_components.map_or(room, |most| most.min(room)) }
    }

    /// Eigenpairs to begin with.
    pub(super) fn n_known(&self) -> usize {
        FIRST.min(self.cap)
    }

    /// One more component than eigenvalues exceed those of noise, given what is left of the variance: most often more
    /// than there are, hardly ever fewer.
    pub(super) fn components(&self, start: &mut PilotStart<'_>, visible: &Dataset) -> Result<usize, Error> {
        let (n, d) = (visible.n_rows() as f64, visible.n_columns());
        let share = visible.observed_share();
        loop {
            let (values, mean_variance) = start.eigenvalues();
            let above = n_above_noise(values, mean_variance * d as f64, (n, d), share, self.cap);
            let known = values.len();
            if above + 1 < known || known >= self.cap {
                return Ok(self.cap.min((above + 1).max(2)));
            }
            start.know(2 * known)?;
        }
    }
}

/// How many of the leading eigenvalues of a covariance of `d` columns and n rows exceed those of noise and of the errors
/// that gaps leave in it:
/// ```text
/// λ_{k+1} > s (1 + r/n) + 2 √(r e²)      r = d − k      s: the mean of λ_{k+1} … λ_d, of which the sum is known
/// e² = s²/n + v² (1/(n p²) − 1/n)        p: the share of observed cells; v: the mean variance of a column
/// ```
/// An entry of the covariance is a mean over n p² rows, not n, and it is the whole variance that it varies with then, however
/// little noise there is. Without gaps that is the edge of the law of Marchenko and Pastur.
pub(super) fn n_above_noise(
    values: &[f64],
    total: f64,
    (n, d): (f64, usize),
    share: f64,
    cap: usize,
) -> usize {
    let unknown = (total - values.iter().sum::<f64>()).max(0.0);
    let mut left = unknown + values.iter().map(|v| v.max(LEAST)).sum::<f64>();
    let missing = (total / d as f64).powi(2) * (1.0 / (share * share) - 1.0) / n;
    let mut k = 0;
    while k < cap.min(values.len()) {
        let rest = (d - k) as f64;
        let s = left / rest;
        let error = s * s / n + missing;
        if values[k] <= s * (1.0 + rest / n) + 2.0 * (rest * error).sqrt() {
            break;
        }
        left -= values[k].max(LEAST);
        k += 1;
    }
    k
}
