//! Filter and smoother with any pattern of gaps ([M 1.10.2], [M 1.10.3]).
//!
//! Covariances travel as square roots, `P = L Lᵀ`, and only orthogonal transformations and factorizations of `I + …` touch
//! them, so that none loses its positive sign however long the sequence, near a unit root or without noise to speak of.
//! Nothing of the size of a row is ever factorized: a step costs O(observed cells · k + states³), and the states³ only until
//! the covariances of a run of rows with the same gaps have settled.

use super::Sequence;
use super::memory::{Chains, share};
use super::model::{DynamicFactor, bordered, companion};
use crate::linalg::{Cholesky, dot, eigen};
use crate::{Dataset, Error, Matrix};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::TAU;

/// The model as a first-order one of states.
pub(super) struct StateSpace<'a> {
    model: &'a DynamicFactor,
    /// Its transition.
    transition: Matrix,
    /// A square root of the covariance of innovations, and of the first state.
    innovation: Matrix,
    start: Matrix,
    /// The mean of the first state.
    mean: Vec<f64>,
    psi: Vec<f64>,
}

/// What the observed columns of a pattern of gaps say: `Wᵀ_O Ψ_O⁻¹ W_O` and `Σ ln 2πψ`.
pub(super) struct Seen {
    information: Matrix,
    ln_noise: f64,
    cells: Vec<SeenCell>,
    /// Most steps back that a cell's noise remembers.
    longest: usize,
    unsure: Option<Unsure>,
}

/// What the posterior of loadings and levels adds to squared errors over variances, as a function of the factors s of these steps:
/// `sᵀ S s + 2 oᵀ s + c`, S being a part of the information [M 1.10.12].
struct Unsure {
    square: Matrix,
    offset: Vec<f64>,
    constant: f64,
}

impl Unsure {
    /// Half of its slope.
    fn slope(&self, state: &[f64]) -> Vec<f64> {
        let rows = self.square.rows().zip(&self.offset);
        rows.map(|(row, o)| dot(row, &state[..row.len()]) + o).collect()
    }

    fn at(&self, state: &[f64]) -> f64 {
        let slope = self.slope(state);
        let linear = slope.iter().zip(&self.offset).zip(state).map(|((slope, o), s)| s * (slope + o));
        linear.sum::<f64>() + self.constant
    }
}

/// A column, seen in the difference to `share` of what it was `lag` steps before if its noise remembers that; 0 and 0 if not.
struct SeenCell {
    column: usize,
    lag: usize,
    share: f64,
    variance: f64,
}

/// The patterns of a table.
pub(super) struct Observed {
    patterns: Vec<Seen>,
    of_row: Vec<usize>,
}

/// Covariances of a step, shared by all steps whose covariances they are.
struct Gain {
    /// Whether anything was observed, and then `I + L⁻ᵀ Wᵀ Ψ⁻¹ W L⁻`.
    seen: Option<(usize, Cholesky)>,
    /// Root of the covariance before …
    predicted: Matrix,
    /// … and after the row was seen, and before the next is.
    filtered: Matrix,
    next: Matrix,
    /// `J = P Aᵀ (P⁻)⁻¹` of the step to the next, and `P − J P⁻ Jᵀ`.
    back: Matrix,
    left: Matrix,
}

/// What the filter found on its way through a sequence.
pub(super) struct Pass<'a> {
    space: &'a StateSpace<'a>,
    gains: Vec<Gain>,
    /// The gain of each step.
    gain: Vec<usize>,
    /// Means before and after each row was seen.
    predicted: Matrix,
    pub(super) filtered: Matrix,
    /// Of the observed cells of each step given those before.
    pub(super) log_density: Vec<f64>,
    /// Their squared Mahalanobis distance from what those before let expect.
    pub(super) squared: Vec<f64>,
}

/// States given all rows of a sequence.
pub(super) struct Smoothed {
    means: Matrix,
    /// `P_t` and `Cov(x_{t+1}, x_t)`, shared by all steps whose covariances they are.
    spreads: Vec<(Matrix, Matrix)>,
    /// Those of each step.
    spread: Vec<usize>,
}

impl<'a> StateSpace<'a> {
    pub(super) fn new(model: &'a DynamicFactor) -> Result<Self, Error> {
        let transition = companion(model.transition());
        let innovation = root(&bordered(model.innovation(), transition.n_rows()))?;
        let start = root(&model.start().covariance)?;
        Ok(Self::given(model, transition, innovation, start, model.start().mean.clone()))
    }

    /// A state of which the first k are the factors: its transition, roots of the covariances of innovations and of the first
    /// state, and the mean of this.
    pub(super) fn given(
        model: &'a DynamicFactor,
        transition: Matrix,
        innovation: Matrix,
        start: Matrix,
        mean: Vec<f64>,
    ) -> Self {
        Self { model, transition, innovation, start, mean, psi: model.noise().variances(model.n_columns()) }
    }

    /// What each pattern of gaps of a table leaves to see. Where noise remembers, cells of one pattern are as far from those
    /// before them, too.
    pub(super) fn observed(&self, table: &Dataset, chains: Option<&Chains>) -> Observed {
        let mut of_row = vec![0; table.n_rows()];
        let Some(chains) = chains else {
            let seen = |(p, pattern): (usize, crate::data::Pattern<'_>)| {
                pattern.rows.iter().for_each(|&row| of_row[row] = p);
                self.seen(pattern.observed().into_iter().map(|j| (j, 0)))
            };
            let patterns = table.patterns().enumerate().map(seen).collect();
            return Observed { patterns, of_row };
        };
        let (mut patterns, mut known) = (Vec::new(), std::collections::HashMap::new());
        for (row, own) in of_row.iter_mut().enumerate() {
            let columns = (0..table.n_columns()).filter(|&j| !table.row(row)[j].is_nan());
            let cells: Vec<(usize, usize)> = columns.map(|j| (j, chains.before(row, j))).collect();
            *own = *known.entry(cells).or_insert_with_key(|cells| {
                patterns.push(self.seen(cells.iter().copied()));
                patterns.len() - 1
            });
        }
        Observed { patterns, of_row }
    }

    /// What columns say that are as many steps from their noise before.
    fn seen(&self, cells: impl Iterator<Item = (usize, usize)>) -> Seen {
        let (k, w, memory) = (self.model.n_components(), self.model.loadings(), self.model.noise_memory());
        let cell = |(column, lag): (usize, usize)| {
            let share = memory.map_or(0.0, |rho| share(rho[column], lag));
            SeenCell { column, lag, share, variance: self.psi[column] * (1.0 - share * share) }
        };
        let cells: Vec<SeenCell> = cells.map(cell).collect();
        let longest = cells.iter().map(|cell| cell.lag).max().unwrap_or(0);
        let mut information = Matrix::zeros(k * (longest + 1), k * (longest + 1));
        for SeenCell { column: j, lag, share, variance } in &cells {
            let blocks = [(0, 1.0), (lag * k, -share)];
            let blocks = if *lag == 0 { &blocks[..1] } else { &blocks[..] };
            for ((from, a), (to, c)) in blocks.iter().flat_map(|x| blocks.iter().map(move |y| (x, y))) {
                for i in 0..k {
                    let weight = a * c * w[(*j, i)] / variance;
                    for (sum, v) in information.row_mut(from + i)[*to..to + k].iter_mut().zip(w.row(*j)) {
                        *sum += weight * v;
                    }
                }
            }
        }
        let ln_noise = cells.iter().map(|cell| (TAU * cell.variance).ln()).sum();
        let unsure = self.unsure(&cells, longest);
        if let Some(unsure) = &unsure {
            crate::parallel::add(information.as_mut_slice(), unsure.square.as_slice());
        }
        Seen { information, ln_noise, cells, longest, unsure }
    }

    /// `zᵀ E z / (1 − ρ^{2g})` of every cell, z = (x_t − ρ^g x_{t−g}, 1 − ρ^g).
    fn unsure(&self, cells: &[SeenCell], longest: usize) -> Option<Unsure> {
        let (k, uncertainty) = (self.model.n_components(), self.model.uncertainty()?);
        let n = k * (longest + 1);
        let mut out = Unsure { square: Matrix::zeros(n, n), offset: vec![0.0; n], constant: 0.0 };
        for &SeenCell { column, lag, share, .. } in cells {
            let e = uncertainty.of_column(column);
            let (new, level) = (1.0 - share * share, 1.0 - share);
            out.constant += level * level * e[(k, k)] / new;
            let blocks = [(0, 1.0), (lag * k, -share)];
            for (from, a) in blocks.iter().take(1 + lag.min(1)) {
                for i in 0..k {
                    out.offset[from + i] += a * level * e[(i, k)] / new;
                    for (to, c) in blocks.iter().take(1 + lag.min(1)) {
                        let sums = out.square.row_mut(from + i)[*to..to + k].iter_mut();
                        sums.zip(e.row(i)).for_each(|(sum, e)| *sum += a * c * e / new);
                    }
                }
            }
        }
        Some(out)
    }

    pub(super) fn filter(&'a self, table: &Dataset, observed: &Observed, sequence: &Sequence) -> Pass<'a> {
        let (steps, states) = (sequence.rows().len(), self.transition.n_rows());
        let mut pass = Pass {
            space: self,
            gains: Vec::new(),
            gain: Vec::with_capacity(steps),
            predicted: Matrix::zeros(steps, states),
            filtered: Matrix::zeros(steps, states),
            log_density: Vec::with_capacity(steps),
            squared: Vec::with_capacity(steps),
        };
        let mut mean = self.mean.clone();
        for (t, row) in sequence.rows().iter().enumerate() {
            let seen =
                row.map(|row| observed.of_row[row]).filter(|&p| !observed.patterns[p].cells.is_empty());
            pass.step(seen, observed);
            pass.predicted.row_mut(t).copy_from_slice(&mean);
            let (density, squared) = seen
                .map_or((0.0, 0.0), |p| pass.update(&observed.patterns[p], table, (sequence, t), &mut mean));
            pass.log_density.push(density);
            pass.squared.push(squared);
            pass.filtered.row_mut(t).copy_from_slice(&mean);
            mean = self.transition.rows().map(|row| dot(row, &mean)).collect();
        }
        pass
    }

    /// A draw of the first state.
    pub(super) fn first_state(&self, rng: &mut dyn Rng) -> Vec<f64> {
        let own = self.model.start().mean.iter().zip(drawn(&self.start, rng));
        own.map(|(mean, error)| mean + error).collect()
    }

    /// A draw of the state after another.
    pub(super) fn next_state(&self, state: &[f64], rng: &mut dyn Rng) -> Vec<f64> {
        let moved = self.transition.rows().map(|row| dot(row, state));
        moved.zip(drawn(&self.innovation, rng)).map(|(mean, error)| mean + error).collect()
    }

    /// A times a matrix of states.
    pub(super) fn moved(&self, states: &Matrix) -> Matrix {
        self.transition.dot(states)
    }

    /// One step further without a row.
    pub(super) fn ahead(&self, mean: &[f64], root: &Matrix) -> (Vec<f64>, Matrix) {
        (self.transition.rows().map(|row| dot(row, mean)).collect(), self.predict(root).0)
    }

    /// From the root `L` of a state's covariance that of the next, with `J` and `P − J P⁻ Jᵀ`:
    ///
    /// ```text
    /// | A L   Q^½ |       | L⁻  0 |
    /// |  L     0  | Θ  =  | X   Y |        Θ orthogonal;   J = X (L⁻)⁻¹,   P − J P⁻ Jᵀ = Y Yᵀ
    /// ```
    fn predict(&self, root: &Matrix) -> (Matrix, Matrix, Matrix) {
        let n = root.n_rows();
        let moved = self.transition.dot(root);
        let stacked = Matrix::from_fn(2 * n, 2 * n, |i, j| match (i < n, j < n) {
            (true, true) => moved[(i, j)],
            (true, false) => self.innovation[(i, j - n)],
            (false, true) => root[(i - n, j)],
            (false, false) => 0.0,
        });
        let lower = triangular(&stacked);
        let next = Matrix::from_fn(n, n, |i, j| lower[(i, j)]);
        let rest = Matrix::from_fn(n, n, |i, j| lower[(n + i, n + j)]);
        let mut back = Matrix::from_fn(n, n, |i, j| lower[(n + i, j)]);
        let largest = (0..n).map(|i| next[(i, i)]).fold(0.0, f64::max);
        for i in 0..n {
            // J L⁻ = X from the last column on. In a direction that the next state cannot move in, nothing is learned from it.
            for j in (0..n).rev() {
                let known: f64 = (j + 1..n).map(|l| back[(i, l)] * next[(l, j)]).sum();
                let pivot = next[(j, j)];
                back[(i, j)] = if pivot > 1e-14 * largest { (back[(i, j)] - known) / pivot } else { 0.0 };
            }
        }
        (next, back, rest.dot_t(&rest))
    }
}

impl Pass<'_> {
    /// Covariances of the next step, at which pattern `seen` is observed.
    fn step(&mut self, seen: Option<usize>, observed: &Observed) {
        let last = self.gain.last().map(|&g| &self.gains[g]);
        let predicted = last.map_or_else(|| triangular(&self.space.start), |gain| gain.next.clone());
        if let Some(gain) = last
            && gain.seen.as_ref().map(|(p, _)| *p) == seen
            && settled(&gain.predicted, &predicted)
        {
            self.gain.push(self.gains.len() - 1);
            return;
        }
        let n = predicted.n_rows();
        let (seen, filtered) = match seen {
            None => (None, predicted.clone()),
            Some(p) => {
                // G = I + L⁻ᵀ C L⁻ = R Rᵀ, and P = (L⁻ R⁻ᵀ)(L⁻ R⁻ᵀ)ᵀ.
                let c = &observed.patterns[p].information;
                let k = c.n_rows();
                let top = Matrix::from_fn(k, n, |i, j| predicted[(i, j)]);
                let mut g = top.t_dot(&c.dot(&top));
                (0..n).for_each(|i| g[(i, i)] += 1.0);
                let chol =
                    Cholesky::new(&g).expect("the identity plus a sum of squares is positive definite");
                let mut filtered = predicted.clone();
                (0..n).for_each(|i| chol.solve_lower(filtered.row_mut(i)));
                (Some((p, chol)), filtered)
            }
        };
        let (next, back, left) = self.space.predict(&filtered);
        self.gain.push(self.gains.len());
        self.gains.push(Gain { seen, predicted, filtered, next, back, left });
    }

    /// Takes in the row of a step: moves the mean, and returns the log-density of its observed cells and their squared distance
    /// from what was expected.
    fn update(
        &self,
        seen: &Seen,
        table: &Dataset,
        (sequence, t): (&Sequence, usize),
        mean: &mut [f64],
    ) -> (f64, f64) {
        let model = self.space.model;
        let gain = &self.gains[*self.gain.last().expect("a step was made")];
        let (_, chol) = gain.seen.as_ref().expect("something was observed");
        let (k, n) = (model.n_components(), mean.len());
        let known = |lag: usize| model.regressors().at(sequence.time(t - lag));
        let known: Vec<Vec<f64>> = (0..=seen.longest.min(t)).map(known).collect();
        let row = |lag: usize| sequence.rows()[t - lag].expect("cells are of rows");
        let mut residuals = Vec::with_capacity(seen.cells.len());
        let mut pull = vec![0.0; seen.information.n_rows()];
        for &SeenCell { column: j, lag, share, variance } in &seen.cells {
            let (w, beta) = (model.loadings().row(j), model.coefficients().row(j));
            let left = |lag: usize| {
                table.row(row(lag))[j] - dot(beta, &known[lag]) - dot(w, &mean[lag * k..(lag + 1) * k])
            };
            let mut r = left(0);
            if lag > 0 {
                r -= share * left(lag);
                pull[lag * k..].iter_mut().zip(w).for_each(|(u, w)| *u -= share * w * r / variance);
            }
            pull.iter_mut().zip(w).for_each(|(u, w)| *u += w * r / variance);
            residuals.push(r);
        }
        if let Some(unsure) = &seen.unsure {
            pull.iter_mut().zip(unsure.slope(mean)).for_each(|(u, slope)| *u -= slope);
        }
        // s = G⁻¹ L⁻ᵀ Wᵀ Ψ⁻¹ r, and the state moves by L⁻ s.
        let mut s: Vec<f64> =
            (0..n).map(|i| pull.iter().enumerate().map(|(a, u)| gain.predicted[(a, i)] * u).sum()).collect();
        chol.solve(&mut s);
        let moved: Vec<f64> = gain.predicted.rows().map(|row| dot(row, &s)).collect();
        mean.iter_mut().zip(&moved).for_each(|(m, v)| *m += v);
        let left = |(cell, r): (&SeenCell, &f64)| {
            let w = model.loadings().row(cell.column);
            let mut left = r - dot(w, &moved[..k]);
            if cell.lag > 0 {
                left += cell.share * dot(w, &moved[cell.lag * k..(cell.lag + 1) * k]);
            }
            left.powi(2) / cell.variance
        };
        let left: f64 = seen.cells.iter().zip(&residuals).map(left).sum();
        let squared = left + dot(&s, &s);
        let unsure = seen.unsure.as_ref().map_or(0.0, |unsure| unsure.at(mean));
        (-0.5 * (seen.ln_noise + chol.ln_det() + squared + unsure), squared)
    }

    /// The states it went through.
    pub(super) fn space(&self) -> &StateSpace<'_> {
        self.space
    }

    /// Covariance of the state after a row was seen.
    pub(super) fn covariance(&self, t: usize) -> Matrix {
        let root = &self.gains[self.gain[t]].filtered;
        root.dot_t(root)
    }

    /// Mean and root of the covariance of the state after the last.
    pub(super) fn next(&self) -> (Vec<f64>, Matrix) {
        let last = self.gain.len() - 1;
        let mean = self.space.transition.rows().map(|row| dot(row, self.filtered.row(last))).collect();
        (mean, self.gains[self.gain[last]].next.clone())
    }

    /// Back through the sequence [M 1.10.3]: `P_t = (P − J P⁻ Jᵀ) + J P_{t+1} Jᵀ`, a sum of squares.
    pub(super) fn smooth(&self) -> Smoothed {
        let (steps, n) = (self.filtered.n_rows(), self.filtered.n_columns());
        let mut means = self.filtered.clone();
        let mut spreads = vec![(self.covariance(steps - 1), Matrix::zeros(n, n))];
        let mut spread = vec![0; steps];
        let mut ahead = vec![0.0; n];
        for t in (0..steps - 1).rev() {
            let gain = &self.gains[self.gain[t]];
            for (i, v) in ahead.iter_mut().enumerate() {
                *v = means[(t + 1, i)] - self.predicted[(t + 1, i)];
            }
            for (m, back) in means.row_mut(t).iter_mut().zip(gain.back.rows()) {
                *m += dot(back, &ahead);
            }
            let last = spread[t + 1];
            let after = &spreads[last].0;
            // The same step back from the same covariance leads to the same again.
            let settled = t + 2 < steps
                && self.gain[t] == self.gain[t + 1]
                && (spread[t + 2] == last || settled(&spreads[spread[t + 2]].0, after));
            spread[t] = last;
            if !settled {
                let shared = after.dot_t(&gain.back);
                let mut now = gain.back.dot(&shared);
                crate::parallel::add(now.as_mut_slice(), gain.left.as_slice());
                now.symmetrize();
                spread[t] = spreads.len();
                spreads.push((now, shared));
            }
        }
        Smoothed { means, spreads, spread }
    }
}

impl Smoothed {
    pub(super) fn means(&self) -> &Matrix {
        &self.means
    }

    /// `P_t`
    pub(super) fn covariance(&self, t: usize) -> &Matrix {
        &self.spreads[self.spread[t]].0
    }

    /// `Cov(x_{t+1}, x_t)`
    pub(super) fn with_next(&self, t: usize) -> &Matrix {
        &self.spreads[self.spread[t]].1
    }
}

/// A draw with the covariance of this root.
fn drawn(root: &Matrix, rng: &mut dyn Rng) -> Vec<f64> {
    let e: Vec<f64> = (0..root.n_columns()).map(|_| StandardNormal.sample(rng)).collect();
    root.rows().map(|row| dot(row, &e)).collect()
}

/// A square root of a covariance, which may be singular.
pub(super) fn root(covariance: &Matrix) -> Result<Matrix, Error> {
    match Cholesky::new(covariance) {
        Some(chol) => Ok(chol.lower().clone()),
        None => Ok(eigen(covariance)?.root()),
    }
}

/// The lower triangular L, its diagonal not negative, with `L Lᵀ = M Mᵀ`.
fn triangular(m: &Matrix) -> Matrix {
    let n = m.n_rows();
    let qr = m.view().transpose().qr();
    let r = qr.thin_R();
    Matrix::from_fn(
        n,
        n,
        |i, j| if j > i { 0.0 } else { r[(j, i)] * if r[(j, j)] < 0.0 { -1.0 } else { 1.0 } },
    )
}

/// Whether covariances move by no more than rounding.
fn settled(before: &Matrix, now: &Matrix) -> bool {
    let size = now.as_slice().iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    before.as_slice().iter().zip(now.as_slice()).all(|(a, b)| (a - b).abs() <= 4.0 * f64::EPSILON * size)
}
