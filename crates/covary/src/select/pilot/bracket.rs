//! How many components there may be at most [M 3.2].

use crate::infer::PilotStart;
use crate::{Dataset, Error, Spec};

/// Smallest eigenvalue: with gaps a covariance need not be positive.
const LEAST: f64 = 1e-4;
/// Eigenpairs that are searched first where all of them would take long.
const FIRST: usize = 24;

/// The range of numbers of components of a table.
pub(super) struct Bracket {
    /// The most that the table has room for.
    pub(super) cap: usize,
}

impl Bracket {
    pub(super) fn of(data: &Dataset, spec: &Spec, max_components: Option<usize>) -> Self {
        let columns = spec.max_components(data.n_columns());
        let rows = data.n_informative_rows().saturating_sub(2);
        // The column in the middle: one that is hardly ever observed is no reason to learn nothing of the others.
        let mut observed = data.n_observed_by_column().to_vec();
        observed.sort_unstable();
        let cells = (0.9 * observed[observed.len() / 2] as f64) as usize;
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
        let share = visible.n_observed() as f64 / (n * d as f64);
        loop {
            let (values, mean_variance) = start.eigenvalues();
            let above = n_above_noise(values, mean_variance * d as f64, d, (n * share * share).max(2.0), self.cap);
            let known = values.len();
            if above + 1 < known || known >= self.cap {
                return Ok(self.cap.min((above + 1).max(2)));
            }
            start.know(2 * known)?;
        }
    }
}

/// How many of the leading eigenvalues of a covariance of `d` columns exceed the largest that noise has:
/// ```text
/// λ_{k+1} > s (1 + √((d − k)/n))²        s: the mean of λ_{k+1} … λ_d, whose sum is known though not each of them
/// ```
pub(super) fn n_above_noise(values: &[f64], total: f64, d: usize, n: f64, cap: usize) -> usize {
    let unknown = (total - values.iter().sum::<f64>()).max(0.0);
    let mut left = unknown + values.iter().map(|v| v.max(LEAST)).sum::<f64>();
    let mut k = 0;
    while k < cap.min(values.len()) {
        let rest = (d - k) as f64;
        if values[k] <= left / rest * (1.0 + (rest / n).sqrt()).powi(2) {
            break;
        }
        left -= values[k].max(LEAST);
        k += 1;
    }
    k
}
