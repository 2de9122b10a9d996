//! EM steps from one start, and what happens to models that lose their rows.

use super::expectation::{self, Models, least_likely_of_all, weights};
use super::maximize::{MStep, Point, closed_form, covariance};
use super::regularized::Regularized;
use super::start::{Clusters, informative};
use super::{FLOOR, MixtureEm, MixtureInit, Stop, fewest_rows};
use crate::data::Facts;
use crate::infer::em::parameters::{Frame, Parameters};
use crate::infer::em::stop::Aitken;
use crate::infer::em::{Init, start as em_start};
use crate::infer::pass::{Rows, Task};
use crate::infer::report::{Fit, FitReport, Objective, ObjectiveKind, Observer, Step, Termination, Warning};
use crate::model::{Mixture, Shares};
use crate::parallel::in_turn;
use crate::{Dataset, Error, LinearGaussian, Matrix, Spec};
use std::borrow::Cow;

/// Where the rows are.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// In memory, where responsibilities are kept until sums are needed: the last E-step needs none.
    Memory(&'a Dataset),
    /// Anywhere: they are only ever asked for sums.
    Passes(&'a dyn Rows),
}

impl<'a> Source<'a> {
    pub(super) fn rows(self) -> &'a dyn Rows {
        match self {
            Self::Memory(data) => data,
            Self::Passes(rows) => rows,
        }
    }
}

/// What the last E-step found.
enum Expected<'a> {
    /// Of each block of rows in memory.
    Shares(&'a Dataset, Vec<Shares>),
    /// As [`Models::sums_of_block`] has them.
    Sums(Vec<f64>),
}

/// A climb of the likelihood: where it stands and how it went.
pub(super) struct Climb<'a> {
    method: &'a MixtureEm,
    source: Source<'a>,
    facts: &'a Facts,
    spec: &'a Spec,
    pub(super) frame: &'a Frame,
    maximize: MStep<'a>,
    /// The M-step of all models at once, where they are regularized or share a covariance.
    together: Option<Regularized<'a>>,
    models: Vec<Parameters>,
    weights: Vec<f64>,
    /// At the current models; `None` before the first step.
    expected: Option<Expected<'a>>,
    trace: Vec<f64>,
    aitken: Aitken,
    termination: Termination,
    warnings: Vec<Warning>,
    /// Models put at a new place so far.
    reseeded: usize,
}

impl<'a> Climb<'a> {
    pub(super) fn new(
        method: &'a MixtureEm,
        (source, facts): (Source<'a>, &'a Facts),
        spec: &'a Spec,
        frame: &'a Frame,
    ) -> Self {
        let maximize = MStep {
            frame,
            closed_form: method.closed_form(frame.mean.len(), spec),
            expand: method.parameter_expansion,
            prior: &spec.prior,
            floor: spec.noise_floor.unwrap_or(FLOOR),
        };
        let together = match source {
            Source::Memory(data) if method.regularized() => Some(Regularized {
                data,
                frame,
                n_components: spec.n_components,
                ridge: method.ridge.unwrap_or(0.0),
                floor: if method.ridge.is_some() { 0.0 } else { maximize.floor },
                shared: method.shared_covariance,
            }),
            _ => None,
        };
        Self {
            method,
            source,
            facts,
            spec,
            frame,
            maximize,
            together,
            models: Vec::new(),
            weights: Vec::new(),
            expected: None,
            trace: Vec::new(),
            aitken: Aitken::new(method.tolerance),
            termination: Termination::IterationLimit,
            warnings: Vec::new(),
            reseeded: 0,
        }
    }

    /// At the parameters of a mixture.
    pub(super) fn at_mixture(self, mixture: &Mixture) -> Result<Self, Error> {
        let (expected, got) = (self.method.n_mixtures, mixture.models().len());
        if expected != got {
            return Err(Error::WrongLength { what: "models of the start", expected, got });
        }
        let parameters = |model: &LinearGaussian| {
            let shape = (model.mean().len(), model.n_components());
            if self.together.is_some()
                && self.spec.standardize
                && shape == (self.facts.n_columns(), self.spec.n_components)
            {
                // Its noise may differ from column to column before the first step.
                return Ok(self.frame.parameters(model));
            }
            // A model may have fewer components than the spec allows, and keeps their number.
            let n_components = self.spec.n_components.min(model.n_components());
            let spec = Spec { n_components, ..self.spec.clone() };
            let init = Init::Given(Box::new(model.clone()));
            em_start::parameters(&init, self.source.rows(), &spec, self.frame, 0)
        };
        let models = mixture.models().iter().map(parameters).collect::<Result<_, _>>()?;
        let weights = mixture.weights().to_vec();
        Ok(Self { models, weights, ..self })
    }

    /// One M-step from clusters, each with the covariance that rows have about their centers.
    pub(super) fn at_clusters(mut self, data: &Dataset, clusters: Clusters) -> Result<Self, Error> {
        let Clusters { centers, labels, members } = clusters;
        let Frame { mean, scale, inverse, isotropic } = self.frame;
        let d = data.n_columns();
        let residual = |i: usize, j: usize| {
            labels[i].map_or(f64::NAN, |c| (data.row(i)[j] - mean[j]) * inverse[j] - centers[(c, j)])
        };
        let residuals = Matrix::from_fn(data.n_rows(), d, residual);
        let pooled = if self.maximize.closed_form {
            // The M-step needs no axes to begin with.
            let observed = residuals.as_slice().iter().filter(|v| !v.is_nan());
            let within = observed.map(|v| v * v).sum::<f64>() / data.n_observed() as f64;
            let psi = vec![within.max(self.maximize.floor); d];
            Parameters { w: Matrix::zeros(d, self.spec.n_components), mean: Vec::new(), psi }
        } else {
            let about = Frame::with_scale(vec![0.0; d], vec![1.0; d], *isotropic);
            let spec = Spec { noise_floor: Some(self.maximize.floor), ..self.spec.clone() };
            let residuals = Dataset::new(residuals)?;
            em_start::parameters(&Init::Spectral, &residuals, &spec, &about, self.method.seed)?
        };
        if self.together.is_some() {
            let at = |center: &[f64]| {
                let mean = (0..d).map(|j| mean[j] + scale[j] * center[j]).collect();
                Parameters { mean, ..pooled.clone() }
            };
            self.models = centers.rows().map(at).collect();
            let counted = |members: &Vec<usize>| {
                let mut counted = vec![0.0; data.n_rows()];
                for &i in members {
                    counted[i] = 1.0;
                }
                counted
            };
            let weights: Vec<Vec<f64>> = members.iter().map(counted).collect();
            self.step_together(&weights)?;
            return Ok(self);
        }
        for (center, members) in centers.rows().zip(members) {
            let mean = (0..d).map(|j| mean[j] + scale[j] * center[j]).collect();
            let at = Parameters { mean, ..pooled.clone() };
            let enough = members.len() >= fewest_rows(self.spec.n_components);
            let mut counted = vec![0.0; data.n_rows()];
            for &i in &members {
                counted[i] = 1.0;
            }
            self.models.push(if enough { self.maximize.step(data, &at, &counted)? } else { at });
            self.weights.push(members.len().max(1) as f64);
        }
        let total: f64 = self.weights.iter().sum();
        self.weights.iter_mut().for_each(|w| *w /= total);
        Ok(self)
    }

    /// One M-step from responsibilities, gaps filled as the table as a whole says.
    pub(super) fn at_responsibilities(mut self, data: &Dataset, shares: &Matrix) -> Result<Self, Error> {
        let Frame { mean, inverse, .. } = self.frame;
        let (d, q) = (data.n_columns(), self.spec.n_components);
        let own = data.observed_variances().iter().zip(inverse).map(|(v, inverse)| v * inverse * inverse);
        let psi: Vec<f64> = own.map(|v| v.max(self.maximize.floor)).collect();
        let psi = if self.frame.isotropic { vec![psi.iter().sum::<f64>() / d as f64; d] } else { psi };
        let at = Parameters { w: Matrix::zeros(d, q), mean: mean.clone(), psi };
        self.models = vec![at; shares.n_columns()];
        let rows = informative(data);
        let column = |k: usize| {
            let mut weights = vec![0.0; data.n_rows()];
            for &i in &rows {
                weights[i] = shares[(i, k)];
            }
            weights
        };
        let weights: Vec<Vec<f64>> = (0..shares.n_columns()).map(column).collect();
        if self.together.is_some() {
            self.step_together(&weights)?;
        } else {
            let totals: Vec<f64> = weights.iter().map(|weights| weights.iter().sum()).collect();
            let all: f64 = totals.iter().sum();
            for ((at, weights), n) in self.models.iter_mut().zip(&weights).zip(&totals) {
                if *n >= fewest_rows(self.spec.n_components) as f64 {
                    *at = self.maximize.step(data, at, weights)?;
                }
            }
            self.weights = totals.iter().map(|n| n / all).collect();
        }
        Ok(self)
    }

    /// The M-step of all models at once, each row counted `weights` times in each of them.
    fn step_together(&mut self, weights: &[Vec<f64>]) -> Result<(), Error> {
        let together = self.together.as_ref().expect("asked for where there is one");
        let (models, counts) = together.step(&self.models, weights)?;
        let total: f64 = counts.iter().sum();
        self.models = models;
        self.weights = counts.iter().map(|n| n / total).collect();
        Ok(())
    }

    /// Where another climb, of some of the rows, has come to.
    pub(super) fn at_end_of(self, other: Climb<'_>) -> Self {
        // An interruption stays one; that some of the rows had converged says nothing of all.
        let termination = match other.termination {
            Termination::Interrupted => Termination::Interrupted,
            _ => self.termination,
        };
        Self { models: other.models, weights: other.weights, termination, ..self }
    }

    pub(super) fn log_likelihood(&self) -> f64 {
        self.trace.last().copied().unwrap_or(f64::NEG_INFINITY)
    }

    /// Whether ℓ is higher by more than two standard errors of the difference, over rows (Vuong 1989).
    pub(super) fn is_clearly_above(&self, other: &Self) -> bool {
        let (Some(Expected::Shares(data, own)), Some(Expected::Shares(_, others))) =
            (&self.expected, &other.expected)
        else {
            return false;
        };
        let by_row = |blocks: &[Shares]| blocks.iter().flat_map(|b| b.log_totals.clone()).collect::<Vec<_>>();
        let (own, others) = (by_row(own), by_row(others));
        let more: Vec<f64> = informative(data).iter().map(|&i| own[i] - others[i]).collect();
        let sum: f64 = more.iter().sum();
        let mean = sum / more.len() as f64;
        sum > 2.0 * more.iter().map(|m| (m - mean).powi(2)).sum::<f64>().sqrt()
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.termination == Termination::Interrupted
    }

    pub(super) fn interrupted(self) -> Self {
        Self { termination: Termination::Interrupted, ..self }
    }

    /// Goes on until the stopping rule is met or `steps` have been made, those of earlier calls included.
    pub(super) fn run(&mut self, steps: usize, observer: &mut dyn Observer) -> Result<(), Error> {
        if self.expected.is_none() {
            self.expect()?;
        }
        while self.trace.len() <= steps && self.termination == Termination::IterationLimit {
            let before = self.log_likelihood();
            let steady = self.step()?;
            let converged = self.expect()?;
            let (iteration, objective) = (self.trace.len() - 1, self.log_likelihood());
            if !steady {
                // ℓ may fall where a model was moved: the gains begin anew.
                self.aitken = Aitken::new(self.method.tolerance);
            } else if self.method.ridge.is_none() && objective < before - 1e-9 * (1.0 + before.abs()) {
                self.warnings.push(Warning::ObjectiveFell { iteration, by: before - objective });
            } else if converged {
                self.termination = Termination::Converged;
            }
            if observer.step(&Step { iteration, objective }).is_break() {
                self.termination = Termination::Interrupted;
            }
        }
        Ok(())
    }

    /// E-step; whether the stopping rule is met.
    fn expect(&mut self) -> Result<bool, Error> {
        let models = self.at()?;
        let (log_likelihood, expected) = match self.source {
            Source::Memory(data) => {
                let blocks: Vec<_> = (0..data.n_blocks()).map(|b| models.shares_of(data.run(b))).collect();
                let of_block = |b: usize| blocks[b].log_totals.iter().sum::<f64>();
                (in_turn(blocks.len(), of_block, |a, b| *a += b), Expected::Shares(data, blocks))
            }
            Source::Passes(rows) => {
                let length = models.numbers_len();
                let sums = rows.pass(&Task::mixture(models))?.0;
                if sums.len() != length {
                    return Err(Error::DamagedState { why: "its length is not that of its shape" });
                }
                (sums[0], Expected::Sums(sums))
            }
        };
        self.expected = Some(expected);
        self.trace.push(log_likelihood);
        let expected = self.aitken.push(log_likelihood);
        Ok(match self.method.stop {
            Stop::Remaining => expected,
            Stop::Change { before } => self.is_settled(before),
        })
    }

    /// Whether the step before the last changed the log-likelihood per row by less than the tolerance.
    fn is_settled(&self, before: Option<f64>) -> bool {
        let (n, steps) = (self.facts.n_rows() as f64, self.trace.len() - 1);
        let before = if steps >= 2 { Some(self.trace[steps - 2] / n) } else { before };
        let change = |before: f64| (self.trace[steps - 1] / n - before).abs();
        steps > 0 && before.is_some_and(|before| change(before) < self.method.tolerance)
    }

    fn at(&self) -> Result<Models<'_>, Error> {
        let how = (self.spec.standardize, self.maximize.closed_form);
        let (at, weights) = (Cow::Borrowed(&self.models[..]), Cow::Borrowed(&self.weights[..]));
        Models::new(Cow::Borrowed(self.frame), how, at, weights)
    }

    /// M-step. False if a model had lost its rows and was moved or removed.
    fn step(&mut self) -> Result<bool, Error> {
        let expected = self.expected.take().expect("expect comes before");
        let n_models = self.models.len();
        let of_model = |blocks: &[Shares], k: usize| blocks.iter().flat_map(|b| weights(b, k)).collect();
        if let (Some(_), Expected::Shares(_, blocks)) = (&self.together, &expected) {
            self.step_together(&(0..n_models).map(|k| of_model(blocks, k)).collect::<Vec<_>>())?;
            return Ok(true);
        }
        let closed_form = self.maximize.closed_form;
        let parts = expectation::parts(&self.models, closed_form);
        let mut lost = Vec::new();
        for (k, at) in self.models.iter_mut().enumerate() {
            let mut of_rows = Vec::new();
            let n = match &expected {
                Expected::Sums(sums) => sums[1 + k],
                Expected::Shares(data, blocks) => {
                    of_rows = of_model(blocks, k);
                    let of_block = |b: usize| of_rows[data.block(b)].iter().sum::<f64>();
                    in_turn(blocks.len(), of_block, |a, b| *a += b)
                }
            };
            self.weights[k] = n / self.facts.n_informative_rows() as f64;
            // Rounding alone loses no model: as shares sum to the rows, one at least then has enough.
            let fewest = fewest_rows(at.w.n_columns()) as f64 * (1.0 - 1e-9);
            // One model has all rows, however few.
            if n < fewest && n_models > 1 {
                lost.push(k);
                continue;
            }
            *at = match &expected {
                Expected::Shares(data, _) => self.maximize.step(data, at, &of_rows)?,
                Expected::Sums(sums) => {
                    self.maximize.maximize(&Point::new(at, closed_form)?, &sums[parts[k].clone()])?
                }
            };
        }
        if !lost.is_empty() {
            let least = match &expected {
                Expected::Shares(data, blocks) => least_likely_of_all(data, blocks, n_models),
                Expected::Sums(sums) => sums[parts[n_models - 1].end..].to_vec(),
            };
            self.replace(&lost, &least)?;
        }
        Ok(lost.is_empty())
    }

    /// Puts each lost model at the least likely row, with the covariance of the others; once as many
    /// have been moved as there are models, it is removed [M 1.9.4].
    fn replace(&mut self, lost: &[usize], least_likely: &[f64]) -> Result<(), Error> {
        let iteration = self.trace.len();
        let rows = least_likely.chunks_exact(1 + self.facts.n_columns()).filter(|row| !row[0].is_nan());
        let mut unlikely = rows.map(|row| &row[1..]);
        let mean_covariance = self.mean_covariance(lost);
        for &k in lost.iter().rev() {
            let row = unlikely.next().filter(|_| self.reseeded < self.method.n_mixtures);
            if let Some(row) = row {
                self.reseeded += 1;
                let cells = row.iter().zip(&self.frame.mean);
                let mean = cells.map(|(t, m)| if t.is_nan() { *m } else { *t }).collect();
                let pooled = self.pooled(&mean_covariance, self.models[k].w.n_columns())?;
                self.models[k] = Parameters { mean, ..pooled };
                self.weights[k] = 1.0 / self.method.n_mixtures as f64;
                self.warnings.push(Warning::ModelMoved { iteration });
            } else {
                self.models.remove(k);
                self.weights.remove(k);
                self.warnings.push(Warning::ModelRemoved { iteration, left: self.models.len() });
            }
        }
        let total: f64 = self.weights.iter().sum();
        self.weights.iter_mut().for_each(|w| *w /= total);
        Ok(())
    }

    /// The mean covariance of the models that have rows.
    fn mean_covariance(&self, lost: &[usize]) -> Matrix {
        let d = self.facts.n_columns();
        let (mut sum, mut total) = (Matrix::zeros(d, d), 0.0);
        for (k, at) in self.models.iter().enumerate().filter(|(k, _)| !lost.contains(k)) {
            let c = covariance(at);
            let weighted = sum.as_mut_slice().iter_mut().zip(c.as_slice());
            weighted.for_each(|(sum, c)| *sum += self.weights[k] * c);
            total += self.weights[k];
        }
        sum.as_mut_slice().iter_mut().for_each(|v| *v /= total);
        sum
    }

    /// `q` loadings and the noise of a covariance.
    fn pooled(&self, sum: &Matrix, q: usize) -> Result<Parameters, Error> {
        let d = sum.n_rows();
        let mut at = closed_form(sum, q, vec![0.0; d], self.maximize.floor)?;
        if !self.frame.isotropic {
            for j in 0..d {
                let signal: f64 = at.w.row(j).iter().map(|w| w * w).sum();
                at.psi[j] = (sum[(j, j)] - signal).max(self.maximize.floor);
            }
        }
        Ok(at)
    }

    pub(super) fn into_fit(
        mut self,
        constant: Vec<String>,
        unseen_pairs: Option<Warning>,
    ) -> Result<Fit<Mixture>, Error> {
        if self.termination == Termination::IterationLimit {
            let iterations = self.trace.len() - 1;
            self.warnings.push(Warning::StillRising { iterations, remaining: self.aitken.remaining() });
        }
        if !constant.is_empty() {
            self.warnings.push(Warning::ConstantColumns { columns: constant });
        }
        let floor = self.maximize.floor * (1.0 + 1e-9);
        let at_floor = |j: &usize| self.models.iter().any(|at| at.psi[*j] <= floor);
        let names = self.facts.column_names();
        let columns: Vec<String> = (0..names.len()).filter(at_floor).map(|j| names[j].clone()).collect();
        if !columns.is_empty() && self.method.ridge.is_none() {
            self.warnings.push(Warning::NoiseAtFloor { columns });
        }
        self.warnings.extend(unseen_pairs);
        let mixture = self.at()?.into_mixture();
        let model = match &self.method.init {
            // In units of the columns the loadings keep digits that turning them in the table's would take.
            _ if self.together.is_some() => mixture,
            MixtureInit::Auto | MixtureInit::KMeans => mixture.canonical(),
            // Whoever gave a start knows its models by their places.
            MixtureInit::Centers(_) | MixtureInit::Responsibilities(_) | MixtureInit::Given(_) => {
                mixture.canonical_components()
            }
        };
        let value = self.log_likelihood();
        let objective = Objective { kind: ObjectiveKind::LogLikelihood, value };
        let report = FitReport::new(objective, self.trace, self.termination, self.warnings);
        Ok(Fit { model, draws: None, report })
    }
}
