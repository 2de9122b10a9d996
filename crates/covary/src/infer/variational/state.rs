//! The factors of q, and their moments from one pass over the rows.

use super::Table;
use crate::infer::em::LatentMoments;
use crate::infer::em::parameters::{Frame, Parameters};
use crate::infer::pass::Task;
use crate::linalg::{dot, packed};
use crate::model::Uncertainty;
use crate::model::latent::one_or_each;
use crate::{Error, Matrix};
use statrs::function::gamma::{digamma, ln_gamma};

/// A Gamma distribution by shape and rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Gamma {
    pub(super) shape: f64,
    pub(super) rate: f64,
}

impl Gamma {
    pub(super) fn mean(&self) -> f64 {
        self.shape / self.rate
    }

    /// `⟨ln x⟩`
    pub(super) fn mean_ln(&self) -> f64 {
        digamma(self.shape) - self.rate.ln()
    }

    /// `⟨ln p(x)⟩ − ⟨ln q(x)⟩` for this q.
    pub(super) fn gain(&self, prior: &Self) -> f64 {
        let Self { shape: a, rate: b } = *prior;
        let cross = a * b.ln() - ln_gamma(a) + (a - 1.0) * self.mean_ln() - b * self.mean();
        let entropy =
            self.shape - self.rate.ln() + ln_gamma(self.shape) + (1.0 - self.shape) * digamma(self.shape);
        cross + entropy
    }
}

/// The prior, in the units of the frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Prior {
    /// Of every `α`.
    pub(super) relevance: Gamma,
    /// Of the noise precision.
    pub(super) noise: Gamma,
    /// β.
    pub(super) mean_precision: f64,
    /// `m₀`, relative to the frame's mean.
    pub(super) mean: Vec<f64>,
    /// `s₀`: `μ` is around `W s₀ + m₀`.
    pub(super) offset: Vec<f64>,
    /// Whether loadings and mean are around their prior means in units of the noise.
    pub(super) in_noise_units: bool,
}

/// q(W, μ) q(τ) q(α), with `v_j = (w_j, μ_j)` in the units of the frame, μ relative to its mean.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// Means of `v_j`, d × (q+1).
    pub(super) v: Matrix,
    /// Covariances of `v_j`, times τ if `coupled`: one for all, for each view, or for each column.
    pub(super) covariance: Vec<Matrix>,
    /// Noise precision: one for each view, or for each column.
    pub(super) noise: Vec<Gamma>,
    /// α of each view, one per component.
    pub(super) relevance: Vec<Vec<Gamma>>,
    /// The view of each column.
    pub(super) view: Vec<usize>,
    /// Whether `q(v_j | τ)` has covariance `∝ 1/τ`.
    pub(super) coupled: bool,
}

impl State {
    pub(super) fn n_components(&self) -> usize {
        self.v.n_columns() - 1
    }

    pub(super) fn n_views(&self) -> usize {
        self.relevance.len()
    }

    /// Where among this many entries that of column `j` stands: one for all, for each column or for each view.
    pub(super) fn place(&self, entries: usize, j: usize) -> usize {
        match entries {
            1 => 0,
            each if each == self.view.len() => j,
            _ => self.view[j],
        }
    }

    pub(super) fn tau(&self, j: usize) -> f64 {
        self.noise(j).mean()
    }

    pub(super) fn noise(&self, j: usize) -> &Gamma {
        &self.noise[self.place(self.noise.len(), j)]
    }

    pub(super) fn covariance(&self, j: usize) -> &Matrix {
        &self.covariance[self.place(self.covariance.len(), j)]
    }

    /// ⟨α⟩, views × components.
    pub(super) fn alpha(&self) -> Matrix {
        Matrix::from_fn(self.n_views(), self.n_components(), |v, i| self.relevance[v][i].mean())
    }

    /// What a covariance counts as in `⟨τ v vᵀ⟩`.
    pub(super) fn weight(&self, j: usize) -> f64 {
        if self.coupled { 1.0 } else { self.tau(j) }
    }

    /// `E_j = ⟨τ cov(v_j)⟩`
    pub(super) fn relative(&self) -> Vec<Matrix> {
        let one = self.covariance.len() == 1 && (self.coupled || self.noise.len() == 1);
        let each = if one { 1 } else { self.view.len() };
        let of = |j: usize| {
            let mut e = self.covariance(j).clone();
            let weight = self.weight(j);
            e.as_mut_slice().iter_mut().for_each(|v| *v *= weight);
            e
        };
        (0..each).map(of).collect()
    }

    /// The posterior as a model keeps it.
    pub(super) fn uncertainty(&self) -> Uncertainty {
        let shapes = if self.noise.len() == 1 { 1 } else { self.view.len() };
        Uncertainty {
            relative: self.relative(),
            shape: (0..shapes).map(|j| self.noise(j).shape).collect(),
            coupled: self.coupled,
            inclusion: Vec::new(),
        }
    }

    /// The parameters at which rows are looked at.
    pub(super) fn parameters(&self, frame: &Frame) -> Parameters {
        let (d, q) = (self.v.n_rows(), self.n_components());
        let mean = (0..d).map(|j| frame.mean[j] + frame.scale[j] * self.v[(j, q)]).collect();
        let psi = (0..d).map(|j| 1.0 / self.tau(j)).collect();
        Parameters { w: self.v.first_columns(q), mean, psi }
    }

    /// `Σ_j ⟨w wᵀ⟩` over the columns of each view, each `τ`-weighted where the prior is in units of the noise.
    pub(super) fn loadings_moments(&self, prior: &Prior) -> Vec<Matrix> {
        let (d, q) = (self.v.n_rows(), self.n_components());
        let mut moments = vec![Matrix::zeros(q, q); self.n_views()];
        for j in 0..d {
            let k = &mut moments[self.view[j]];
            let tau = if prior.in_noise_units { self.tau(j) } else { 1.0 };
            let spread = if self.coupled { 1.0 } else { tau };
            let (c, v) = (self.covariance(j), self.v.row(j));
            for a in 0..q {
                for b in 0..q {
                    k[(a, b)] += spread * c[(a, b)] + tau * v[a] * v[b];
                }
            }
        }
        moments
    }

    /// Columns of each view.
    pub(super) fn view_sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.n_views()];
        self.view.iter().for_each(|&v| sizes[v] += 1);
        sizes
    }

    /// Share of each component's second moment in each view that is signal (2.11), views × components.
    pub(super) fn signal_fractions(&self, prior: &Prior) -> Matrix {
        let moments = self.loadings_moments(prior);
        let mut signal = self.squares(|j| if prior.in_noise_units { self.tau(j) } else { 1.0 });
        for (v, moment) in moments.iter().enumerate() {
            signal.row_mut(v).iter_mut().enumerate().for_each(|(i, s)| *s /= moment[(i, i)]);
        }
        signal
    }

    /// `Σ_j τ_j ŵ_ji²` over the columns of each view: the variance of component i there in units of the noise.
    pub(super) fn strengths(&self) -> Matrix {
        self.squares(|j| self.tau(j))
    }

    /// [`signal_fractions`](Self::signal_fractions) in units of the noise, whatever the prior is in.
    pub(super) fn activity(&self) -> Matrix {
        let mut signal = self.strengths();
        let mut spread = Matrix::zeros(self.n_views(), self.n_components());
        for (j, &v) in self.view.iter().enumerate() {
            let (weight, c) = (self.weight(j), self.covariance(j));
            spread.row_mut(v).iter_mut().enumerate().for_each(|(i, s)| *s += weight * c[(i, i)]);
        }
        signal.as_mut_slice().iter_mut().zip(spread.as_slice()).for_each(|(s, spread)| *s /= *s + spread);
        signal
    }

    /// `Σ_j weight_j ŵ_ji²` over the columns of each view, views × components.
    fn squares(&self, weight: impl Fn(usize) -> f64) -> Matrix {
        let mut sums = Matrix::zeros(self.n_views(), self.n_components());
        for (j, &v) in self.view.iter().enumerate() {
            let weight = weight(j);
            sums.row_mut(v).iter_mut().zip(self.v.row(j)).for_each(|(s, w)| *s += weight * w.powi(2));
        }
        sums
    }

    /// q(α) given q(W, τ) (2.4, 3.5).
    pub(super) fn update_relevance(&mut self, prior: &Prior) {
        let Gamma { shape, rate } = prior.relevance;
        let of = |(moment, size): (Matrix, usize)| {
            let shape = shape + 0.5 * size as f64;
            let rate = |i: usize| rate + 0.5 * moment[(i, i)];
            (0..moment.n_rows()).map(|i| Gamma { shape, rate: rate(i) }).collect()
        };
        self.relevance = self.loadings_moments(prior).into_iter().zip(self.view_sizes()).map(of).collect();
    }

    /// Rows of W times `to`.
    pub(super) fn turn(&mut self, to: &Matrix) {
        let to = to.bordered();
        self.v = self.v.dot(&to);
        for c in &mut self.covariance {
            *c = to.t_dot(&c.dot(&to));
            c.symmetrize();
        }
    }

    /// Only these components.
    pub(super) fn keep(&mut self, kept: &[usize]) {
        let q = self.n_components();
        let places: Vec<usize> = kept.iter().copied().chain([q]).collect();
        let of = |m: &Matrix, rows: &[usize]| {
            Matrix::from_fn(rows.len(), places.len(), |a, b| m[(rows[a], places[b])])
        };
        let all: Vec<usize> = (0..self.v.n_rows()).collect();
        self.v = of(&self.v, &all);
        self.covariance = self.covariance.iter().map(|c| of(c, &places)).collect();
        for relevance in &mut self.relevance {
            *relevance = kept.iter().map(|&i| relevance[i]).collect();
        }
    }

    /// `(v̂ − p)ᵀ D (v̂ − p)` and `tr D cov(v)` of column `j`, with the prior precision D (over τ where
    /// the prior is in units of the noise) at `alpha`.
    pub(super) fn prior_quadratics(&self, j: usize, prior: &Prior, alpha: &Matrix) -> (f64, f64) {
        let q = self.n_components();
        let alpha = alpha.row(self.view[j]);
        let (v, c) = (self.v.row(j), self.covariance(j));
        let beta = prior.mean_precision;
        let off = v[q] - dot(&v[..q], &prior.offset) - prior.mean[j];
        // μ − wᵀs₀ as a combination of v.
        let direction = |i: usize| if i < q { -prior.offset[i] } else { 1.0 };
        let (mut at_mean, mut spread) = (beta * off * off, 0.0);
        for i in 0..q {
            at_mean += alpha[i] * v[i] * v[i];
            spread += alpha[i] * c[(i, i)];
        }
        for a in 0..=q {
            for b in 0..=q {
                spread += beta * direction(a) * direction(b) * c[(a, b)];
            }
        }
        (at_mean, spread)
    }
}

/// What one pass over the rows leaves: everything q(W, μ, τ) needs, with `z = (x, 1)`.
pub(super) struct Statistics {
    /// Rows with at least one observed cell.
    pub(super) n: f64,
    /// `Σ ⟨z zᵀ⟩` over them.
    pub(super) latent: Matrix,
    /// `Σ ln |G_n|`
    pub(super) ln_det: f64,
    /// `A_j = Σ_{n: j ∈ O_n} ⟨z zᵀ⟩`: one for every column, or one for all of a complete table.
    pub(super) normal: Vec<Matrix>,
    /// `b_j = Σ y ẑ`, d × (q+1), y relative to the mean of the pass.
    pub(super) cross: Matrix,
    /// `N_j`
    pub(super) counts: Vec<f64>,
    /// Where the pass had μ, relative to the frame's mean.
    origin: Vec<f64>,
    /// The pass's own `(w_j, 0)`, and the expected squared error there.
    reference: Matrix,
    errors: Vec<f64>,
}

impl Statistics {
    /// q(X) at `state`, summed up (2.1, 3.6). No row's covariance is kept.
    pub(super) fn of(Table { rows, facts }: Table<'_>, frame: &Frame, state: &State) -> Result<Self, Error> {
        let at = state.parameters(frame);
        let sums = rows.pass(&Task::uncertain(frame, &at, &state.relative()))?;
        let moments = LatentMoments::of_numbers(frame, &at, &sums.0)?;
        let (d, q) = (facts.n_columns(), state.n_components());
        let own = if facts.has_only_whole_rows() { 1 } else { d };
        Ok(Self {
            n: moments.n_rows(),
            latent: packed::unpack(&moments.latent, q + 1),
            ln_det: moments.ln_det,
            normal: (0..own).map(|j| moments.normal_matrix(j)).collect(),
            cross: moments.cross.clone(),
            origin: state.v.column(q),
            counts: (0..d).map(|j| moments.count(j)).collect(),
            reference: Matrix::from_rows(&(0..d).map(|j| moments.reference(j)).collect::<Vec<_>>()),
            errors: (0..d).map(|j| moments.error_at_reference(j)).collect(),
        })
    }

    pub(super) fn normal(&self, j: usize) -> &Matrix {
        one_or_each(&self.normal, j).expect("one at least")
    }

    /// Whether all columns share their normal matrix.
    pub(super) fn is_shared(&self) -> bool {
        self.normal.len() == 1
    }

    /// `x ← x + c`: moves every moment as `T z` with `T z = (x + c, 1)`, and the reference with it, so
    /// that errors stay what they are.
    pub(super) fn translate(&mut self, c: &[f64]) {
        self.latent = translated(&self.latent, c);
        self.normal.iter_mut().for_each(|a| *a = translated(a, c));
        let q = c.len();
        for j in 0..self.cross.n_rows() {
            let last = self.cross[(j, q)];
            let row = self.cross.row_mut(j);
            row.iter_mut().zip(c).for_each(|(b, c)| *b += c * last);
            let row = self.reference.row_mut(j);
            row[q] -= dot(&row[..q], c);
        }
    }

    /// `Σ [(t − vᵀẑ)² + wᵀ V w]` over the observed cells of column `j`, as a change from the reference.
    pub(super) fn error(&self, j: usize, v: &[f64]) -> f64 {
        let (a, b, from) = (self.normal(j), self.cross.row(j), self.reference.row(j));
        let mut v = v.to_vec();
        v[from.len() - 1] -= self.origin[j];
        let change = |i: usize| {
            let sum: f64 = a.row(i).iter().zip(v.iter().zip(from)).map(|(a, (v, f))| a * (v + f)).sum();
            (v[i] - from[i]) * (sum - 2.0 * b[i])
        };
        (self.errors[j] + (0..v.len()).map(change).sum::<f64>()).max(0.0)
    }
}

/// `T M Tᵀ` with `T z = (x + c, 1)`.
pub(super) fn translated(m: &Matrix, c: &[f64]) -> Matrix {
    let q = c.len();
    let shift = |i: usize| if i < q { c[i] } else { 0.0 };
    let last = m[(q, q)];
    Matrix::from_fn(q + 1, q + 1, |i, j| {
        m[(i, j)] + shift(i) * m[(q, j)] + m[(i, q)] * shift(j) + shift(i) * last * shift(j)
    })
}

/// `tr A B` of symmetric matrices.
pub(super) fn trace_product(a: &Matrix, b: &Matrix) -> f64 {
    dot(a.as_slice(), b.as_slice())
}
