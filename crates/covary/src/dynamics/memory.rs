//! Noise that remembers [M 1.10.11]: `ε_t = ρ ε_{t−1} + u_t` in every column, of variance ψ at each step.
//!
//! Given the factors, what is left of an observed cell is its noise itself, so that a chain needs no state: with the cell observed g
//! steps before, `ε_t − ρ^g ε_{t−g}` is new noise of variance `ψ (1 − ρ^{2g})`. The filter sees this difference through the factors of
//! both steps; its state has the factors of as many steps back as the longest gap, up to [`Chains::reach`].

use super::Timeline;
use crate::Dataset;

/// Longest gap that noise remembers through …
const MOST_STEPS: usize = 12;
/// … where states of the filter are not more than this; it always remembers one step. Noise begins anew after a longer gap.
const MOST_STATES: usize = 48;
/// Largest |ρ|: noise that never forgets is a factor of its own.
const LARGEST: f64 = 0.99;

/// Where each cell stands in the noise of its column.
pub(super) struct Chains {
    reach: usize,
    n_columns: usize,
    /// Steps back to the cell observed before and on to the one after, row by row; 0 where noise does not reach.
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Chains {
    pub(super) fn of(table: &Dataset, timeline: &Timeline, n_factors: usize) -> Self {
        let d = table.n_columns();
        // Steps at which a column is observed, and how many the sequence has.
        let observed = |sequence: &super::Sequence, j: usize| {
            let is = |row: &Option<usize>| row.is_some_and(|row| !table.row(row)[j].is_nan());
            let steps = sequence.rows().iter().enumerate().filter(|(_, row)| is(row));
            steps.map(|(t, _)| t).collect::<Vec<usize>>()
        };
        let mut longest = 1;
        for sequence in timeline.sequences() {
            for j in 0..d {
                let (seen, n) = (observed(sequence, j), sequence.rows().len());
                let (Some(first), Some(last)) = (seen.first(), seen.last()) else { continue };
                let inner = seen.windows(2).map(|pair| pair[1] - pair[0]);
                longest = inner.chain([*first, n - 1 - last]).fold(longest, usize::max);
            }
        }
        let most = (MOST_STATES / n_factors).saturating_sub(1).clamp(1, MOST_STEPS);
        let reach = longest.min(most);
        let mut out = Self {
            reach,
            n_columns: d,
            before: vec![0; table.n_rows() * d],
            after: vec![0; table.n_rows() * d],
        };
        let within = |steps: Option<usize>| steps.filter(|g| *g <= reach).unwrap_or(0);
        for sequence in timeline.sequences() {
            for j in 0..d {
                let seen = observed(sequence, j);
                for (t, row) in sequence.rows().iter().enumerate() {
                    let Some(row) = *row else { continue };
                    let at = seen.partition_point(|s| *s < t);
                    let before = at.checked_sub(1).map(|k| t - seen[k]);
                    let is_seen = seen.get(at) == Some(&t);
                    let after = seen.get(at).filter(|_| !is_seen).map(|u| u - t);
                    let (mut back, mut on) = (within(before), within(after));
                    // A gap that is too long is cut in the middle: its cells follow one end.
                    if back > 0 && on > 0 && back + on > reach {
                        if back <= on { on = 0 } else { back = 0 }
                    }
                    out.before[row * d + j] = back as u8;
                    out.after[row * d + j] = on as u8;
                }
            }
        }
        out
    }

    /// Most steps that noise is remembered for.
    pub(super) fn reach(&self) -> usize {
        self.reach
    }

    /// Steps back to the observed cell whose noise this one's follows; 0 if there is none.
    pub(super) fn before(&self, row: usize, column: usize) -> usize {
        usize::from(self.before[row * self.n_columns + column])
    }

    /// Steps on to the observed cell whose noise follows this one's; 0 if there is none, or if this one is observed.
    pub(super) fn after(&self, row: usize, column: usize) -> usize {
        usize::from(self.after[row * self.n_columns + column])
    }
}

/// `ρ^g`; 0 for no cell, which is g = 0 here.
pub(super) fn share(rho: f64, steps: usize) -> f64 {
    if steps == 0 { 0.0 } else { rho.powi(steps as i32) }
}

/// Noise given that of the cells observed before and after: shares of these, and its variance in variances of the noise.
pub(super) fn bridge(rho: f64, before: usize, after: usize) -> (f64, f64, f64) {
    let (a, c) = (share(rho, before), share(rho, after));
    let (new, newer) = (1.0 - a * a, 1.0 - c * c);
    let whole = 1.0 - (a * c).powi(2);
    (a * newer / whole, c * new / whole, new * newer / whole)
}

/// Sums over the cells of a column, by the steps g back to the cell before: how many, and expected `ε_t²`, `ε_t ε_{t−g}`, `ε_{t−g}²`; of
/// those without a cell before, g = 0, the first alone.
#[derive(Clone)]
pub(super) struct Products(Vec<[f64; 4]>);

impl Products {
    pub(super) fn new(reach: usize) -> Self {
        Self(vec![[0.0; 4]; reach + 1])
    }

    pub(super) fn add(&mut self, lag: usize, now: f64, shared: f64, before: f64) {
        crate::parallel::add(&mut self.0[lag], &[1.0, now, shared, before]);
    }

    /// Cells, `Σ ln(1 − ρ^{2g})`, and the sum of squares of what is new, in variances ψ (1 − ρ^{2g}).
    fn terms(&self, rho: f64) -> (f64, f64, f64) {
        let (mut n, mut ln_det, mut squares) = (0.0, 0.0, 0.0);
        for (lag, [cells, now, shared, before]) in self.0.iter().enumerate() {
            let c = share(rho, lag);
            let new = 1.0 - c * c;
            n += cells;
            ln_det += cells * new.ln();
            squares += (now - 2.0 * c * shared + c * c * before) / new;
        }
        (n, ln_det, squares)
    }

    /// Expected log-density without constants, and the variance ψ it is of: the best above a floor, or one that is given.
    fn value(&self, rho: f64, psi: Result<f64, f64>) -> (f64, f64) {
        let (n, ln_det, squares) = self.terms(rho);
        let psi = psi.unwrap_or_else(|floor| (squares / n.max(1.0)).max(floor));
        (-0.5 * (n * psi.ln() + ln_det + squares / psi), psi)
    }

    /// The ρ of the largest expected log-density, no worse than `from`, and its ψ: `Ok` is one that is given, `Err` the floor of one
    /// that is not.
    pub(super) fn best(&self, from: f64, psi: Result<f64, f64>) -> (f64, f64) {
        const GRID: i32 = 20;
        let of = |rho: f64| self.value(rho, psi).0;
        let at = |k: i32| LARGEST * f64::from(k) / f64::from(GRID);
        let (mut best, mut most) = (from, of(from));
        for k in -GRID..=GRID {
            if of(at(k)) > most {
                (best, most) = (at(k), of(at(k)));
            }
        }
        // Golden section about it.
        let golden = (5.0_f64.sqrt() - 1.0) / 2.0;
        let (mut low, mut high) = (
            (best - LARGEST / f64::from(GRID)).max(-LARGEST),
            (best + LARGEST / f64::from(GRID)).min(LARGEST),
        );
        for _ in 0..45 {
            let (a, b) = (high - golden * (high - low), low + golden * (high - low));
            if of(a) >= of(b) { high = b } else { low = a }
        }
        let middle = 0.5 * (low + high);
        if of(middle) > most {
            best = middle;
        }
        (best, self.value(best, psi).1)
    }
}
