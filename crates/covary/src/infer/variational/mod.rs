//! Variational Bayes ([M 2.1] to [M 2.3]): a distribution over everything unknown that approximates the posterior.
//!
//! Both methods sweep the same way: rows are passed once for the moments of q(X) ([`state`]), the other
//! factors follow from these ([`mean_field`], [`structured`]), and the bound comes from what is at hand
//! ([`bound`]). A sweep costs what a step of EM costs.

mod bound;
mod mean_field;
mod rotation;
mod spike_slab;
mod state;
mod structured;
#[cfg(test)]
mod tests;

pub use mean_field::MeanField;
pub use spike_slab::SpikeSlab;
pub use structured::Structured;

use super::em::parameters::Frame;
use super::em::start::{Pairs, WIDE, mean_filled, unseen_pairs_of};
use super::pass::{Rows, Task};
use super::report::{Fit, FitReport, Objective, ObjectiveKind, Observer, Step, Termination, Warning};
use crate::data::{Facts, Pattern};
use crate::linalg::{Cholesky, Eigen, canonical_signs, eigen};
use crate::spec::NoiseFamily;
use crate::views::signal_of_noise;
use crate::{Error, Matrix, Spec};
use state::{Gamma, Prior, State};
use std::ops::Range;

/// The customary vague hyper-parameter; harmless only on data of unit scale, which is why fits divide by
/// the mean observed standard deviation [M 2.1.2].
const BROAD: f64 = 1e-3;
const MAX_ITERATIONS: usize = 500;
const TOLERANCE: f64 = 1e-7;

/// What both methods let their user set.
struct Settings {
    max_iterations: usize,
    tolerance: f64,
    pruning: bool,
    raw: bool,
    relevance: Gamma,
    noise: Gamma,
    mean_precision: f64,
    in_noise_units: bool,
    prior_mean: Option<Vec<f64>>,
    prior_offset: Option<Vec<f64>>,
}

impl Settings {
    fn check(&self) -> Result<(), Error> {
        let positive = [
            ("relevance_shape", self.relevance.shape),
            ("relevance_rate", self.relevance.rate),
            ("noise_shape", self.noise.shape),
            ("noise_rate", self.noise.rate),
            ("mean_precision", self.mean_precision),
        ];
        if let Some((name, value)) = positive.into_iter().find(|(_, v)| !(v.is_finite() && *v > 0.0)) {
            return Err(Error::OutOfRange { name, value, bound: "finite and above 0" });
        }
        if !(self.tolerance >= 0.0 && self.tolerance.is_finite()) {
            let value = self.tolerance;
            return Err(Error::OutOfRange { name: "tolerance", value, bound: "finite and not negative" });
        }
        Ok(())
    }

    /// m₀ relative to the frame and in its units, and s₀.
    fn centers(&self, frame: &Frame, n_components: usize) -> Result<(Vec<f64>, Vec<f64>), Error> {
        let given = |what, given: &Option<Vec<f64>>, expected: usize| match given {
            Some(values) if values.len() != expected => {
                Err(Error::WrongLength { what, expected, got: values.len() })
            }
            Some(values) => match values.iter().find(|v| !v.is_finite()) {
                Some(&value) => Err(Error::OutOfRange { name: what, value, bound: "finite" }),
                None => Ok(Some(values.clone())),
            },
            None => Ok(None),
        };
        let mean = match given("prior_mean", &self.prior_mean, frame.mean.len())? {
            Some(m) => (0..m.len()).map(|j| (m[j] - frame.mean[j]) * frame.inverse[j]).collect(),
            None => frame.mean.iter().map(|m| if self.raw { -m } else { 0.0 }).collect(),
        };
        let offset = given("prior_offset", &self.prior_offset, n_components)?;
        Ok((mean, offset.unwrap_or_else(|| vec![0.0; n_components])))
    }
}

/// What distinguishes the two methods.
trait Scheme {
    const NAME: &'static str;
    /// Whether q keeps loadings and mean together with the noise.
    const COUPLED: bool;
    /// Whether columns may be of several views.
    const VIEWS: bool;

    fn settings(&self) -> Settings;
    fn supports(family: NoiseFamily) -> bool;
    /// One sweep over all factors; the bound after it, in the units of the frame.
    fn sweep(&self, table: Table<'_>, frame: &Frame, prior: &Prior, state: &mut State) -> Result<f64, Error>;
}

/// Sweeps before components are dropped, and from one look at them to the next [M 2.2.7].
const SETTLING: usize = 20;
const LOOK_EVERY: usize = 10;
/// A component with less signal than this share of its second moment is dropped on the way …
const HOPELESS: f64 = 1e-3;
/// … and one with no more than this at the end.
const LIVE: f64 = 0.5;

/// What is fitted to, and what is known of it.
#[derive(Clone, Copy)]
struct Table<'a> {
    rows: &'a dyn Rows,
    facts: &'a Facts,
}

/// A fit under way.
struct Climb<'a> {
    table: Table<'a>,
    spec: &'a Spec,
    frame: Frame,
    prior: Prior,
    state: State,
    constant: Vec<String>,
}

impl<'a> Climb<'a> {
    /// Checks the request and makes a start.
    fn new<S: Scheme>(scheme: &S, table: Table<'a>, spec: &'a Spec) -> Result<Self, Error> {
        let facts = table.facts;
        // Its own priors are proper, so that the posterior is, however many the loadings that fit equally well.
        let proper = Spec { allow_unidentified: true, ..spec.clone() };
        if S::VIEWS {
            proper.check_views_of(facts)?;
        } else {
            proper.check_facts(facts)?;
        }
        let settings = scheme.settings();
        let refused = |what, instead| Err(Error::Unsupported { method: S::NAME, what, instead });
        if spec.noise_floor.is_some() {
            return refused("a noise floor", "`noise_shape` and `noise_rate`, or `em`");
        }
        if settings.raw && spec.standardize {
            return refused("raw and standardized columns at once", "one of them");
        }
        if !spec.prior.is_flat() {
            return refused("a prior in the request (it has its own)", "`em`");
        }
        if !S::supports(spec.noise) {
            return refused("diagonal noise", "`mean-field`");
        }
        let varies = |j: usize| !facts.is_constant(j);
        let constant = spec.check_variances_of(facts.observed_variances(), facts.column_names(), &varies)?;
        settings.check()?;
        let d = facts.n_columns();
        let frame = if settings.raw {
            let isotropic = spec.noise == NoiseFamily::Isotropic && spec.views.len() < 2;
            Frame::with_scale(facts.observed_means().to_vec(), vec![1.0; d], isotropic)
        } else {
            Frame::of_columns(facts.observed_means(), facts.observed_variances(), spec)
        };
        let (mean, offset) = settings.centers(&frame, spec.n_components)?;
        let Settings { relevance, noise, mean_precision, in_noise_units, .. } = settings;
        let prior = Prior { relevance, noise, mean_precision, mean, offset, in_noise_units };
        let state = start(table, spec, &frame, &prior, S::COUPLED)?;
        Ok(Self { table, spec, frame, prior, state, constant })
    }

    fn fit<S: Scheme>(mut self, scheme: &S, observer: &mut dyn Observer) -> Result<Fit, Error> {
        let Settings { max_iterations, tolerance, pruning, .. } = scheme.settings();
        let counts = self.table.facts.n_observed_by_column();
        let units: f64 = counts.iter().zip(&self.frame.scale).map(|(n, s)| *n as f64 * s.ln()).sum();
        let cells = counts.iter().sum::<usize>() as f64;
        let mut trace: Vec<f64> = Vec::new();
        let mut termination = Termination::IterationLimit;
        let mut warnings = Vec::new();
        let mut still = 0;
        // Bounds over different components do not compare.
        let mut comparable = false;
        for iteration in 1..=max_iterations {
            let objective = scheme.sweep(self.table, &self.frame, &self.prior, &mut self.state)? - units;
            let gain = match trace.last() {
                Some(last) if comparable => objective - last,
                _ => f64::INFINITY,
            };
            comparable = true;
            trace.push(objective);
            if gain < -1e-9 * (1.0 + objective.abs()) - self.rounding() {
                warnings.push(Warning::ObjectiveFell { iteration, by: -gain });
            }
            still = if tolerance > 0.0 && gain < tolerance * cells { still + 1 } else { 0 };
            let look = iteration >= SETTLING && iteration % LOOK_EVERY == 0;
            let share = if still >= 2 { LIVE } else { HOPELESS };
            if pruning && (look || still >= 2) && self.prune(share) {
                (still, comparable) = (0, false);
            }
            if still >= 2 {
                termination = Termination::Converged;
                break;
            }
            if observer.step(&Step { iteration, objective }).is_break() {
                termination = Termination::Interrupted;
                break;
            }
        }
        if termination == Termination::IterationLimit {
            let remaining = trace.windows(2).last().map_or(f64::INFINITY, |pair| pair[1] - pair[0]);
            warnings.push(Warning::StillRising { iterations: trace.len(), remaining });
        }
        // Cut short, the others have not yet taken over from what is dropped.
        if pruning && self.prune(LIVE) {
            trace.push(scheme.sweep(self.table, &self.frame, &self.prior, &mut self.state)? - units);
        }
        if pruning && self.state.n_views() > 1 {
            self.silence();
        }
        self.into_fit(trace, termination, warnings)
    }

    /// How much of a bound may be rounding: its squared errors are differences of sums of this size.
    fn rounding(&self) -> f64 {
        let (state, counts) = (&self.state, self.table.facts.n_observed_by_column());
        let of = |j: usize| {
            let w = &state.v.row(j)[..state.n_components()];
            state.tau(j) * counts[j] as f64 * w.iter().map(|w| w * w).sum::<f64>()
        };
        f64::EPSILON * (0..counts.len()).map(of).sum::<f64>()
    }

    /// Drops components whose signal is at most this share of their second moment in every view, and those
    /// too weak for each view and for the whole table; whether there were any.
    ///
    /// The second rule is ours: in long tables the factors may settle on noise, with more than half signal
    /// by their own account (5000 × 100 cells of 10 components, 10 % gaps: all 14 offered to mean-field). In
    /// one view too weak is what noise alone would show. With several, noise that a component of one view
    /// fits is there for every view, and too weak is what a view by itself would not keep at the optimum of
    /// its bound.
    fn prune(&mut self, share: f64) -> bool {
        let counts = self.table.facts.n_observed_by_column();
        let views = self.spec.view_columns(counts.len());
        let least = |columns: Range<usize>| {
            let d = columns.len() as f64;
            let n = counts[columns.clone()].iter().sum::<usize>() as f64 / d;
            if views.len() == 1 {
                return strength_of_noise(n, d);
            }
            // What noise shows rests on pairs of cells.
            let missing =
                |p: &Pattern<'_>| p.gaps.iter().filter(|g| columns.contains(&(**g as usize))).count();
            let data = self.table.rows.in_memory().expect("several views are refused elsewhere");
            let seen = data.patterns().filter(|p| missing(p) < columns.len());
            let ratio = d * seen.map(|p| p.rows.len()).sum::<usize>() as f64 / (n * n);
            shrunk(edge_of(ratio), ratio)
        };
        let whole = least(0..counts.len());
        let views: Vec<f64> = views.iter().cloned().map(least).collect();
        let (fractions, strengths) = (self.state.signal_fractions(&self.prior), self.state.strengths());
        let q = self.state.n_components();
        let lives = |&i: &usize| {
            let signal = fractions.rows().any(|f| f[i] > share);
            let total: f64 = strengths.rows().map(|s| s[i]).sum();
            signal && (total > whole || strengths.rows().zip(&views).any(|(s, least)| s[i] > *least))
        };
        let kept: Vec<usize> = (0..q).filter(lives).collect();
        let any = kept.len() < q;
        if any {
            self.keep(&kept);
        }
        any
    }

    /// Zeros where a component is not active in a view. What noise is left there would move the scores of
    /// rows in which the other views are missing (docs/gfa.md has by how much).
    fn silence(&mut self) {
        let q = self.state.n_components();
        let state = &mut self.state;
        let (signal, sizes) = (state.activity(), state.view_sizes());
        let least: Vec<f64> = sizes.iter().map(|&size| signal_of_noise(size, sizes.len() * q)).collect();
        let active = |v: usize, i: usize| signal[(v, i)] > least[v];
        for (j, &v) in state.view.iter().enumerate() {
            let place = state.place(state.covariance.len(), j);
            for i in (0..q).filter(|&i| !active(v, i)) {
                state.v[(j, i)] = 0.0;
                for k in 0..=q {
                    state.covariance[place][(i, k)] = 0.0;
                    state.covariance[place][(k, i)] = 0.0;
                }
            }
        }
        let somewhere = |i: &usize| (0..sizes.len()).any(|v| active(v, *i));
        self.keep(&(0..q).filter(somewhere).collect::<Vec<_>>());
    }

    /// Only these components.
    fn keep(&mut self, kept: &[usize]) {
        self.prior.offset = kept.iter().map(|&i| self.prior.offset[i]).collect();
        self.state.keep(kept);
    }

    fn into_fit(
        self,
        trace: Vec<f64>,
        termination: Termination,
        mut warnings: Vec<Warning>,
    ) -> Result<Fit, Error> {
        let Self { table: Table { rows, facts }, spec, frame, prior, mut state, constant } = self;
        if !constant.is_empty() {
            warnings.push(Warning::ConstantColumns { columns: constant });
        }
        warnings.extend(unseen_pairs_of(rows, facts)?);
        let model = frame.model(&state.parameters(&frame), spec)?.with_uncertainty(state.uncertainty())?;
        let (model, turn) = if state.n_views() == 1 {
            model.canonical_with_rotation()
        } else {
            // The canonical form would mix what is private with what is shared.
            let turn = falling(model.loadings(), &state.strengths());
            (model.rotated(&turn), turn)
        };
        // α of the components as they are reported.
        state.turn(&turn);
        state.update_relevance(&prior);
        // In units of the noise α has none; else those of 1/W², where the columns of a view share them.
        let shared_units = spec.noise == NoiseFamily::Isotropic && !spec.standardize && !prior.in_noise_units;
        let mut alpha = state.alpha();
        for (view, columns) in spec.view_columns(facts.n_columns()).into_iter().enumerate() {
            let unit = if shared_units { frame.inverse[columns.start].powi(2) } else { 1.0 };
            alpha.row_mut(view).iter_mut().for_each(|a| *a *= unit);
        }
        let relevance = alpha.into_vec();
        let value = trace.last().copied().unwrap_or(f64::NEG_INFINITY);
        let objective = Objective { kind: ObjectiveKind::LowerBound, value };
        let report = FitReport { objective, trace, termination, warnings, relevance, monitored: Vec::new() };
        Ok(Fit { model, draws: None, report })
    }
}

/// Leading eigenpairs of the mean-filled table, and little noise [M 2.2.5]: a start with too much
/// noise prunes components that are there, and cannot bring them back.
fn start(
    Table { rows, facts }: Table<'_>,
    spec: &Spec,
    frame: &Frame,
    prior: &Prior,
    coupled: bool,
) -> Result<State, Error> {
    const LEAST_NOISE: f64 = 0.01;
    let (n, d, q) = (facts.n_informative_rows(), facts.n_columns(), spec.n_components);
    let (values, vectors, least) = if d > WIDE {
        let data = rows.in_memory().ok_or(Error::NotInMemory {
            what: format!("the start of variational Bayes for more than {WIDE} columns"),
            instead: "model `ppca` by method `em` with `init=random`",
        })?;
        match mean_filled(data, q, frame)? {
            Some(Eigen { values, vectors }) => (values, vectors, 0.0),
            None => (vec![1.0; q], Matrix::from_fn(d, q, |i, j| f64::from(i % q.max(1) == j)), 0.0),
        }
    } else {
        let mut covariance = Pairs::summed(&rows.pass(&Task::pairs(frame))?, d)?.products;
        covariance.mirror_lower();
        covariance.as_mut_slice().iter_mut().for_each(|v| *v /= n as f64);
        let Eigen { values, vectors } = eigen(&covariance)?;
        let least = values[(n - 1).min(d) - 1];
        (values, vectors, least)
    };
    let total: f64 = facts.observed_variances().iter().zip(&frame.inverse).map(|(v, s)| v * s * s).sum();
    let mean = total / (n - 1).min(d).max(1) as f64;
    let mean = if mean > 0.0 { mean } else { 1.0 };
    let length = |i: usize| values.get(i).copied().unwrap_or(0.0).max(1e-12 * mean).sqrt();
    let v = Matrix::from_fn(d, q + 1, |j, i| if i < q { vectors[(j, i)] * length(i) } else { 0.0 });
    let tau = 1.0 / least.max(LEAST_NOISE * mean);
    let per_tau = if prior.in_noise_units { 1.0 / tau } else { 1.0 };
    let alpha = |i: usize| Gamma { shape: 1.0, rate: length(i).powi(2) / (d as f64 * per_tau) };
    let views = spec.view_columns(d);
    let noise = if spec.noise == NoiseFamily::Isotropic { views.len() } else { d };
    Ok(State {
        v,
        covariance: vec![Matrix::zeros(q + 1, q + 1)],
        noise: vec![Gamma { shape: 1.0, rate: 1.0 / tau }; noise],
        relevance: vec![(0..q).map(alpha).collect(); views.len()],
        view: views.into_iter().enumerate().flat_map(|(v, columns)| vec![v; columns.len()]).collect(),
        coupled,
    })
}

/// The rotation that puts components in the order of their descending strength over all views, with signs by the
/// library's rule.
fn falling(loadings: &Matrix, strengths: &Matrix) -> Matrix {
    let q = loadings.n_columns();
    let total: Vec<f64> = (0..q).map(|i| strengths.column(i).iter().sum()).collect();
    let mut order: Vec<usize> = (0..q).collect();
    order.sort_by(|&a, &b| total[b].total_cmp(&total[a]));
    let mut turn = Matrix::from_fn(q, q, |i, k| f64::from(u8::from(order[k] == i)));
    let flips = canonical_signs(&mut loadings.dot(&turn));
    turn.scale_columns(&flips);
    turn
}

/// The strength `‖ŵ‖²/σ²` that the largest component of pure noise reaches in one table of twenty.
///
/// Its sample eigenvalue is x = (1 + √η)² + 0.98 · (1 + √η)^{4/3} η^{-1/6} n^{-2/3}, η = d/n (Johnstone 2001);
/// a component of strength t shows x = (1 + t)(1 + η/t).
fn strength_of_noise(n: f64, d: f64) -> f64 {
    const TRACY_WIDOM_95: f64 = 0.979;
    let ratio = d / n;
    let edge = 1.0 + ratio.sqrt();
    let above = TRACY_WIDOM_95 * edge.powf(4.0 / 3.0) * ratio.powf(-1.0 / 6.0) * n.powf(-2.0 / 3.0);
    let sum = 2.0 * ratio.sqrt() + above;
    shrunk(0.5 * (sum + (sum * sum - 4.0 * ratio).sqrt()), ratio)
}

/// What the factors shrink a component of strength t to, η = d/n [M 2.4].
fn shrunk(t: f64, ratio: f64) -> f64 {
    t * t / (t + ratio)
}

/// The strength below which the bound of a complete table is largest without the component [M 2.4]:
/// the zero of `ln(1+t)/t + ln(1+t/η)/(t/η) − 1`, which falls in t; 2.5129 at η = 1.
pub(crate) fn edge_of(eta: f64) -> f64 {
    let share = |t: f64| t.ln_1p() / t;
    let f = |t: f64| share(t) + share(t / eta) - 1.0;
    let (mut low, mut high) = (2.5 * eta.sqrt(), 2.6 * eta.sqrt());
    while f(low) < 0.0 {
        low *= 0.5;
    }
    while f(high) > 0.0 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if f(middle) > 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The Cholesky factor, the diagonal lifted a little if rounding made that necessary [M 2.1.3].
fn factorized(a: &Matrix) -> Result<Cholesky, Error> {
    let n = a.n_rows();
    let mut lifted = a.clone();
    let mut lift = 1e-12 * a.trace() / n as f64;
    for _ in 0..7 {
        if let Some(factor) = Cholesky::new(&lifted) {
            return Ok(factor);
        }
        (0..n).for_each(|i| lifted[(i, i)] += lift);
        lift *= 10.0;
    }
    Err(Error::OutOfRange { name: "a precision of the loadings", value: lift, bound: "positive definite" })
}
