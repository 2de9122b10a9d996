//! The result of the E-step, and all that the M-step needs [M 1.10.4].

use super::memory::{Chains, Products, share};
use super::model::{DynamicFactor, companion, long_run, stationary};
use super::prior::{FollowsItself, Prior};
use super::smoother::Smoothed;
use super::{FirstState, Loadings, Sequence, Start, Timeline};
use crate::infer::{quadratic, solve_spd};
use crate::linalg::{Cholesky, dot, eigen, packed};
use crate::parallel::{add, over_pieces};
use crate::{Dataset, Error, Matrix, Noise};

/// Rows whose moments are added up at a time.
const STRIP: usize = 256;

/// Rounds of a search that ends sooner as a rule.
const ROUNDS: usize = 30;

/// Expected sufficient statistics under a model, with `z = (x, b)` and residuals `e = t − (w, β)ᵀ ẑ` at its own parameters: in
/// differences from these nothing cancels, however small the noise.
pub(super) struct Moments {
    pub(super) log_likelihood: f64,
    pub(super) dynamics: Dynamics,
    /// Of no use where loadings stay as they are.
    columns: Option<Columns>,
    /// ρ of each column if noise remembers, new already, and the variances that go with it.
    memory: Option<(Vec<f64>, Vec<f64>)>,
}

/// Of the factors: over steps that follow another, and over first steps.
pub(super) struct Dynamics {
    pub(super) steps: f64,
    /// `Σ⟨x_t x_tᵀ⟩`, k × k, `Σ⟨x_t s_{t−1}ᵀ⟩` and `Σ⟨s_{t−1} s_{t−1}ᵀ⟩`, s the state.
    pub(super) now: Matrix,
    pub(super) with_before: Matrix,
    pub(super) before: Matrix,
    sequences: f64,
    first: Vec<f64>,
    first_square: Matrix,
}

/// Of every column, over the rows in which it is observed.
struct Columns {
    count: Vec<f64>,
    /// Packed `Σ ẑ ẑᵀ` and `Σ V`, V the covariance of the factors.
    scores: Matrix,
    spread: Matrix,
    /// `Σ e ẑ` and `Σ e²`.
    slope: Matrix,
    squares: Vec<f64>,
}

/// How the M-step goes about it.
pub(super) struct Maximize {
    /// Of coefficients.
    pub(super) prior: Prior,
    /// Smallest noise variance.
    pub(super) floor: f64,
    /// The first state of a sequence.
    pub(super) first: FirstState,
    /// Those of a Bayesian PCA stay as they are, and with them coefficients and noise.
    pub(super) loadings: Loadings,
    /// Of the transition, if any.
    pub(super) follows: Option<FollowsItself>,
}

impl Moments {
    /// The E-step, and the memory of noise: sums over columns are of differences that depend on it.
    pub(super) fn new(
        model: &DynamicFactor,
        table: &Dataset,
        timeline: &Timeline,
        maximize: &Maximize,
    ) -> Result<Self, Error> {
        let (k, states) = (model.n_components(), model.start().mean.len());
        let mut dynamics = Dynamics::zeros(k, states);
        let width = k + model.regressors().len();
        let mut rows = Rows {
            z: Matrix::zeros(table.n_rows(), width),
            v: Matrix::zeros(table.n_rows(), packed::len(k)),
        };
        let (mut log_likelihood, mut all) = (0.0, Vec::new());
        let learns = maximize.loadings == Loadings::Likelihood;
        model.passes(table, timeline, |sequence, pass, chains| {
            let smoothed = pass.smooth();
            log_likelihood += pass.log_density.iter().sum::<f64>();
            dynamics.add(&smoothed, k);
            if learns {
                rows.take(model, sequence, &smoothed);
                all.extend(chains.map(|_| smoothed));
            }
        })?;
        let chains = model.chains(table, timeline).filter(|_| learns);
        let Some(chains) = chains else {
            let columns = learns.then(|| Columns::of(model, table, &rows));
            return Ok(Self { log_likelihood, dynamics, columns, memory: None });
        };
        let steps = Steps { model, table, timeline, chains, rows, smoothed: all };
        let memory = steps.memory(maximize.floor);
        let columns = Some(steps.columns(&memory.0));
        Ok(Self { log_likelihood, dynamics, columns, memory: Some(memory) })
    }
}

/// What the smoother says of the steps of a table in which noise remembers.
struct Steps<'a> {
    model: &'a DynamicFactor,
    table: &'a Dataset,
    timeline: &'a Timeline,
    chains: Chains,
    rows: Rows,
    smoothed: Vec<Smoothed>,
}

/// An observed cell of a column: its row, and the smoothed state; steps back to the cell before, 0 if there is none, and its row.
struct Cell<'a> {
    row: usize,
    state: &'a Matrix,
    lag: usize,
    before: usize,
}

impl Steps<'_> {
    /// Observed cells of a column.
    fn cells(&self, j: usize) -> impl Iterator<Item = Cell<'_>> {
        let all = self.timeline.sequences().iter().zip(&self.smoothed);
        all.flat_map(move |(sequence, smoothed)| {
            sequence.rows().iter().enumerate().filter_map(move |(t, row)| {
                let row = row.filter(|&row| !self.table.row(row)[j].is_nan())?;
                let lag = self.chains.before(row, j);
                let before = sequence.rows()[t - lag].unwrap_or(row);
                Some(Cell { row, state: smoothed.covariance(t), lag, before })
            })
        })
    }

    /// What the model leaves of a cell.
    fn left(&self, row: usize, j: usize) -> f64 {
        let (z, k) = (self.rows.z.row(row), self.model.n_components());
        let fitted =
            dot(self.model.loadings().row(j), &z[..k]) + dot(self.model.coefficients().row(j), &z[k..]);
        self.table.row(row)[j] - fitted
    }

    /// New ρ, given loadings and coefficients, and variances.
    fn memory(&self, floor: f64) -> (Vec<f64>, Vec<f64>) {
        let (model, k) = (self.model, self.model.n_components());
        let rho = model.noise_memory().unwrap_or_default();
        let found = crate::parallel::map(model.n_columns(), |j| {
            let (w, mut sums) = (model.loadings().row(j), Products::new(self.chains.reach()));
            for cell in self.cells(j) {
                let block = |from: usize, to: usize| {
                    let row = |i: usize| &cell.state.row(from * k + i)[to * k..(to + 1) * k];
                    w.iter().enumerate().map(|(i, w_i)| w_i * dot(row(i), w)).sum::<f64>()
                };
                let (now, before) = (self.left(cell.row, j), self.left(cell.before, j));
                let squared = now * now + block(0, 0);
                match cell.lag {
                    0 => sums.add(0, squared, 0.0, 0.0),
                    lag => {
                        sums.add(
                            lag,
                            squared,
                            now * before + block(0, lag),
                            before * before + block(lag, lag),
                        );
                    }
                }
            }
            let psi = match model.noise() {
                Noise::Isotropic(v) => Ok(*v),
                Noise::Diagonal(_) => Err(floor),
            };
            sums.best(rho[j], psi)
        });
        found.into_iter().unzip()
    }

    /// Sums over differences of cells, in units of their noise.
    fn columns(&self, rho: &[f64]) -> Columns {
        let (d, k, width) = (self.model.n_columns(), self.model.n_components(), self.rows.z.n_columns());
        let found = crate::parallel::map(d, |j| {
            let mut out = Columns::zeros(1, k, width);
            let (mut z, mut spread) = (vec![0.0; width], Matrix::zeros(k, k));
            for cell in self.cells(j) {
                let c = share(rho[j], cell.lag);
                let weight = 1.0 / (1.0 - c * c);
                let (now, before) = (self.rows.z.row(cell.row), self.rows.z.row(cell.before));
                z.iter_mut().zip(now.iter().zip(before)).for_each(|(z, (now, before))| *z = now - c * before);
                let (p, lag) = (cell.state, cell.lag * k);
                for a in 0..k {
                    for b in 0..k {
                        spread[(a, b)] = weight
                            * (p[(a, b)] - c * (p[(a, lag + b)] + p[(lag + a, b)])
                                + c * c * p[(lag + a, lag + b)]);
                    }
                }
                let e = self.left(cell.row, j) - c * self.left(cell.before, j);
                out.count[0] += 1.0;
                out.squares[0] += weight * e * e;
                packed::add_outer(out.scores.row_mut(0), &z, weight);
                packed::add_matrix(out.spread.row_mut(0), &spread, k);
                out.slope.row_mut(0).iter_mut().zip(&z).for_each(|(sum, z)| *sum += weight * e * z);
            }
            out
        });
        let mut all = Columns::zeros(d, k, width);
        for (j, own) in found.iter().enumerate() {
            (all.count[j], all.squares[j]) = (own.count[0], own.squares[0]);
            all.scores.row_mut(j).copy_from_slice(own.scores.row(0));
            all.spread.row_mut(j).copy_from_slice(own.spread.row(0));
            all.slope.row_mut(j).copy_from_slice(own.slope.row(0));
        }
        all
    }
}

/// What the smoother says of the rows of a table.
struct Rows {
    z: Matrix,
    v: Matrix,
}

impl Rows {
    fn take(&mut self, model: &DynamicFactor, sequence: &Sequence, smoothed: &Smoothed) {
        let k = model.n_components();
        for (t, row) in sequence.rows().iter().enumerate() {
            let Some(row) = *row else { continue };
            let z = self.z.row_mut(row);
            z[..k].copy_from_slice(&smoothed.means().row(t)[..k]);
            z[k..].copy_from_slice(&model.regressors().at(sequence.time(t)));
            packed::add_matrix(self.v.row_mut(row), smoothed.covariance(t), k);
        }
    }
}

impl Dynamics {
    pub(super) fn zeros(k: usize, states: usize) -> Self {
        Self {
            steps: 0.0,
            now: Matrix::zeros(k, k),
            with_before: Matrix::zeros(k, states),
            before: Matrix::zeros(states, states),
            sequences: 0.0,
            first: vec![0.0; states],
            first_square: Matrix::zeros(states, states),
        }
    }

    fn add(&mut self, smoothed: &Smoothed, k: usize) {
        let means = smoothed.means();
        // ⟨s sᵀ⟩ = P + m mᵀ, as many rows and columns of it as the sum has.
        let second = |sum: &mut Matrix, t: usize| {
            let (p, m) = (smoothed.covariance(t), means.row(t));
            for i in 0..sum.n_rows() {
                for (j, sum) in sum.row_mut(i).iter_mut().enumerate() {
                    *sum += p[(i, j)] + m[i] * m[j];
                }
            }
        };
        let states = self.first.len();
        add(&mut self.first, &means.row(0)[..states]);
        second(&mut self.first_square, 0);
        self.sequences += 1.0;
        for t in 1..means.n_rows() {
            second(&mut self.now, t);
            second(&mut self.before, t - 1);
            let (shared, before) = (smoothed.with_next(t - 1), means.row(t - 1));
            for i in 0..k {
                let m = means.row(t)[i];
                for (j, sum) in self.with_before.row_mut(i).iter_mut().enumerate() {
                    *sum += shared[(i, j)] + m * before[j];
                }
            }
            self.steps += 1.0;
        }
    }

    /// As if what a prior says of the transition had been seen, too.
    pub(super) fn believe(&mut self, prior: &FollowsItself) {
        add(self.now.as_mut_slice(), prior.now.as_slice());
        add(self.with_before.as_mut_slice(), prior.with_before.as_slice());
        add(self.before.as_mut_slice(), prior.before.as_slice());
    }

    /// New transition, innovations and first state.
    fn maximize(&self, model: &DynamicFactor, first: FirstState) -> Result<(Matrix, Matrix, Start), Error> {
        let (old_a, old_q) = (model.transition(), model.innovation());
        if self.steps == 0.0 {
            return Ok((old_a.clone(), old_q.clone(), model.start().clone()));
        }
        let a = regressed(&self.with_before, &self.before);
        let q = positive(&self.left(&a))?;
        if first == FirstState::Stationary && stationary(&a, &q).is_some() {
            let (to_a, to_q) =
                self.stationary(a.clone(), q.clone()).unwrap_or_else(|| (a.clone(), q.clone()));
            // All the way, or the farthest of ever shorter steps, that does not lower F.
            let before = self.value(old_a, old_q, model.start());
            let ways = (0..ROUNDS).map(|k| 0.5_f64.powi(k as i32)).chain([0.0]);
            for (a, q) in ways.map(|t| (mixed(old_a, &to_a, t), mixed(old_q, &to_q, t))) {
                let Some(covariance) = stationary(&a, &q) else { continue };
                let start = Start { mean: vec![0.0; covariance.n_rows()], covariance };
                if self.value(&a, &q, &start) >= before {
                    return Ok((a, q, start));
                }
            }
        }
        Ok((a, q, self.start()?))
    }

    /// What A leaves of the factors.
    fn left(&self, a: &Matrix) -> Matrix {
        unexplained(a, &self.now, &self.with_before, &self.before, self.steps)
    }

    /// Where `F(A, Q) = ln N(first states | 0, Σ) + ln N(steps | A, Q)`, expected, has no slope, with `Σ = A Σ Aᵀ + Q`. With
    /// `G = ∂F/∂Σ` and `Λ = Aᵀ Λ A + G` that is
    ///
    /// ```text
    /// A = (S₁₀ + 2 Q Λ A Σ) S₀₀⁻¹        Q = left(A) + 2/n Q Λ Q
    /// ```
    ///
    /// iterated from the solution without first states, which are few among n steps: each round gains digits as n does.
    /// `None` where it leads out of the stationary models.
    fn stationary(&self, mut a: Matrix, mut q: Matrix) -> Option<(Matrix, Matrix)> {
        let (k, states) = (a.n_rows(), a.n_columns());
        for _ in 0..ROUNDS {
            let sigma = stationary(&a, &q)?;
            let inverse = Cholesky::new(&sigma)?.inverse();
            let pull = inverse.dot(&self.first_square).dot(&inverse);
            let g = Matrix::from_fn(states, states, |i, j| {
                0.5 * (pull[(i, j)] - self.sequences * inverse[(i, j)])
            });
            let moved = companion(&a);
            let lambda = long_run(moved.transpose(), g)?;
            let slope = lambda.dot(&moved).dot(&sigma);
            let top = |m: &Matrix, columns: usize| Matrix::from_fn(k, columns, |i, j| 2.0 * m[(i, j)]);
            let mut with_before = q.dot(&top(&slope, states));
            add(with_before.as_mut_slice(), self.with_before.as_slice());
            let next_a = regressed(&with_before, &self.before);
            let mut next_q = q.dot(&top(&lambda, k)).dot(&q);
            next_q.as_mut_slice().iter_mut().for_each(|v| *v /= self.steps);
            add(next_q.as_mut_slice(), self.left(&next_a).as_slice());
            next_q.symmetrize();
            let far = |x: &Matrix, y: &Matrix| {
                x.as_slice().iter().zip(y.as_slice()).any(|(x, y)| (x - y).abs() > 1e-12 * (1.0 + x.abs()))
            };
            let moves = far(&next_a, &a) || far(&next_q, &q);
            (a, q) = (next_a, next_q);
            if !moves {
                break;
            }
        }
        Some((a, q))
    }

    /// F of a first state, without constants; `None` where a covariance is singular.
    fn value(&self, a: &Matrix, q: &Matrix, first: &Start) -> Option<f64> {
        let term = |n: f64, covariance: &Matrix, second: &Matrix| {
            let chol = Cholesky::new(covariance)?;
            Some(-0.5 * (n * chol.ln_det() + chol.solve_matrix(second).trace()))
        };
        let mut left = self.left(a);
        left.as_mut_slice().iter_mut().for_each(|v| *v *= self.steps);
        let (states, m, sum, n) = (self.first.len(), &first.mean, &self.first, self.sequences);
        let about = Matrix::from_fn(states, states, |i, j| {
            self.first_square[(i, j)] - m[i] * sum[j] - sum[i] * m[j] + n * m[i] * m[j]
        });
        Some(term(n, &first.covariance, &about)? + term(self.steps, q, &left)?)
    }

    fn start(&self) -> Result<Start, Error> {
        let n = self.sequences;
        let mean: Vec<f64> = self.first.iter().map(|m| m / n).collect();
        let states = mean.len();
        let mut covariance =
            Matrix::from_fn(states, states, |i, j| self.first_square[(i, j)] / n - mean[i] * mean[j]);
        covariance.symmetrize();
        Ok(Start { mean, covariance: positive(&covariance)? })
    }
}

impl Columns {
    fn zeros(d: usize, k: usize, width: usize) -> Self {
        Self {
            count: vec![0.0; d],
            scores: Matrix::zeros(d, packed::len(width)),
            spread: Matrix::zeros(d, packed::len(k)),
            slope: Matrix::zeros(d, width),
            squares: vec![0.0; d],
        }
    }

    fn of(model: &DynamicFactor, table: &Dataset, rows: &Rows) -> Self {
        let (d, k, width) = (model.n_columns(), model.n_components(), rows.z.n_columns());
        let sums = |range: std::ops::Range<usize>| {
            let mut out = Self::zeros(d, k, width);
            for strip in table.strips(range, STRIP) {
                let columns = strip.observed();
                let (mut scores, mut spread) = (vec![0.0; packed::len(width)], vec![0.0; packed::len(k)]);
                for &row in strip.rows {
                    let z = rows.z.row(row);
                    packed::add_outer(&mut scores, z, 1.0);
                    add(&mut spread, rows.v.row(row));
                    for &j in &columns {
                        let fitted =
                            dot(model.loadings().row(j), &z[..k]) + dot(model.coefficients().row(j), &z[k..]);
                        let e = table.row(row)[j] - fitted;
                        out.squares[j] += e * e;
                        out.slope.row_mut(j).iter_mut().zip(z).for_each(|(sum, z)| *sum += e * z);
                    }
                }
                for &j in &columns {
                    out.count[j] += strip.rows.len() as f64;
                    add(out.scores.row_mut(j), &scores);
                    add(out.spread.row_mut(j), &spread);
                }
            }
            out
        };
        over_pieces(table.n_rows(), STRIP, sums, |a, b| {
            add(&mut a.count, &b.count);
            add(a.scores.as_mut_slice(), b.scores.as_slice());
            add(a.spread.as_mut_slice(), b.spread.as_slice());
            add(a.slope.as_mut_slice(), b.slope.as_slice());
            add(&mut a.squares, &b.squares);
        })
    }
}

impl Maximize {
    /// New parameters: the maximum of the expected complete-data log-likelihood, plus log-prior given the noise.
    pub(super) fn step(&self, model: &DynamicFactor, moments: &Moments) -> Result<DynamicFactor, Error> {
        let Moments { dynamics, columns, memory, .. } = moments;
        let (transition, innovation, start) = dynamics.maximize(model, self.first)?;
        let Some(columns) = columns else {
            let (w, b) = (model.loadings().clone(), model.coefficients().clone());
            let (regressors, noise) = (model.regressors().clone(), model.noise().clone());
            return Ok(
                DynamicFactor::new(transition, innovation, w, b, regressors, noise, start)?.like(model)
            );
        };
        let (k, d) = (model.n_components(), model.n_columns());
        let (mut loadings, mut coefficients) = (model.loadings().clone(), model.coefficients().clone());
        let mut errors = vec![0.0; d];
        for j in 0..d {
            let spread = packed::unpack(columns.spread.row(j), k);
            let width = columns.slope.n_columns();
            let mut a = packed::unpack(columns.scores.row(j), width);
            for i in 0..k {
                add(&mut a.row_mut(i)[..k], spread.row(i));
            }
            // e(w) = Σ(t − wᵀẑ)² + wᵀ V w; its slope at the E-step's own w is −2 (Σ e ẑ − V w).
            let w = model.loadings().row(j);
            let mut slope = columns.slope.row(j).to_vec();
            (0..k).for_each(|i| slope[i] -= dot(spread.row(i), w));
            let (mut system, mut delta) = (a.clone(), slope.clone());
            let beta = model.coefficients().row(j);
            let psi = memory.as_ref().map_or(model.noise().variance(j), |(_, psi)| psi[j]);
            for (l, precision) in self.prior.precision().rows().enumerate() {
                for (sum, p) in system.row_mut(k + l)[k..].iter_mut().zip(precision) {
                    *sum += psi * p;
                }
                delta[k + l] -= psi * dot(precision, beta);
            }
            solve_spd(system, &mut delta);
            errors[j] = columns.squares[j] + quadratic(&spread, w) + quadratic(&a, &delta)
                - 2.0 * dot(&slope, &delta);
            add(loadings.row_mut(j), &delta[..k]);
            add(coefficients.row_mut(j), &delta[k..]);
        }
        let noise = match model.noise() {
            Noise::Isotropic(_) => {
                let cells: f64 = columns.count.iter().sum();
                Noise::Isotropic((errors.iter().sum::<f64>() / cells).max(self.floor))
            }
            Noise::Diagonal(_) => Noise::Diagonal(
                errors.iter().zip(&columns.count).map(|(e, n)| (e / n).max(self.floor)).collect(),
            ),
        };
        DynamicFactor::new(
            transition,
            innovation,
            loadings,
            coefficients,
            model.regressors().clone(),
            noise,
            start,
        )?
        .with_noise_memory(memory.as_ref().map(|(rho, _)| rho.clone()))
    }
}

/// `S₁₀ S₀₀⁻¹`: the regression of factors on states before them.
pub(super) fn regressed(with_before: &Matrix, before: &Matrix) -> Matrix {
    let mut a = with_before.clone();
    (0..a.n_rows()).for_each(|i| solve_spd(before.clone(), a.row_mut(i)));
    a
}

/// `(S₁₁ − A S₁₀ᵀ − S₁₀ Aᵀ + A S₀₀ Aᵀ)/n`: what the regression leaves of them.
pub(super) fn unexplained(a: &Matrix, now: &Matrix, with_before: &Matrix, before: &Matrix, n: f64) -> Matrix {
    let explained = a.dot_t(with_before);
    let squared = a.dot(before).dot_t(a);
    let k = a.n_rows();
    let mut q = Matrix::from_fn(k, k, |i, j| {
        (now[(i, j)] - explained[(i, j)] - explained[(j, i)] + squared[(i, j)]) / n
    });
    q.symmetrize();
    q
}

/// `x + t (y − x)`
fn mixed(x: &Matrix, y: &Matrix, t: f64) -> Matrix {
    Matrix::from_fn(x.n_rows(), x.n_columns(), |i, j| x[(i, j)] + t * (y[(i, j)] - x[(i, j)]))
}

/// A covariance without the negative variances that rounding may leave.
fn positive(covariance: &Matrix) -> Result<Matrix, Error> {
    let pairs = eigen(covariance)?;
    if pairs.values.last().is_none_or(|smallest| *smallest >= 0.0) {
        return Ok(covariance.clone());
    }
    let root = pairs.root();
    let mut out = root.dot_t(&root);
    out.symmetrize();
    Ok(out)
}
