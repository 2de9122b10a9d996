//! EM steps, extrapolated; a step that would decrease the objective is repeated without.

use super::anderson::Anderson;
use super::expectation::Moments;
use super::{FullCovariance, Gaussian, floor};
use crate::data::Facts;
use crate::infer::em::parameters::Frame;
use crate::infer::pass::{Rows, Task};
use crate::infer::report::{NEVER, Observer, Step, Termination, Warning, stop_flag};
use crate::linalg::{Eigen, eigen, packed, positive_inverse};
use crate::{Error, LinearGaussian, Matrix, Spec};
use std::sync::atomic::{AtomicBool, Ordering};

/// A climb: where it stands and how it went.
pub(super) struct Climb<'a> {
    method: &'a FullCovariance,
    rows: &'a dyn Rows,
    facts: &'a Facts,
    frame: &'a Frame,
    floor: f64,
    /// Rows with an observed cell.
    n: f64,
    pub(super) at: Gaussian,
    pub(super) trace: Vec<f64>,
    pub(super) termination: Termination,
    pub(super) warnings: Vec<Warning>,
}

impl<'a> Climb<'a> {
    /// At the start given, or `Σ = v I`, the center of the prior: from there the first step fills gaps by the means.
    pub(super) fn new(
        method: &'a FullCovariance,
        (rows, facts): (&'a dyn Rows, &'a Facts),
        spec: &Spec,
        frame: &'a Frame,
    ) -> Self {
        let identity = || Matrix::identity(facts.n_columns());
        let given = |model: &LinearGaussian| {
            let mut covariance = model.covariance();
            covariance.scale_both(&frame.inverse);
            let (precision, ln_det) = positive_inverse(&covariance)?;
            Some(Gaussian { mean: model.mean().to_vec(), covariance, precision, ln_det })
        };
        let at = method.init.as_ref().and_then(|model| given(model)).unwrap_or_else(|| Gaussian {
            mean: frame.mean.clone(),
            covariance: identity(),
            precision: identity(),
            ln_det: 0.0,
        });
        Self {
            method,
            rows,
            facts,
            frame,
            floor: floor(spec),
            n: facts.n_informative_rows() as f64,
            at,
            trace: Vec::new(),
            termination: Termination::IterationLimit,
            warnings: Vec::new(),
        }
    }

    pub(super) fn run(mut self, observer: &mut dyn Observer) -> Result<Self, Error> {
        let enough = self.method.tolerance * packed::len(self.facts.n_columns()) as f64;
        let complete = self.facts.has_only_whole_rows();
        let mut anderson = Anderson::default();
        let mut moments = self.expectation(&self.at, &NEVER)?;
        let mut objective = self.objective(&self.at, &moments);
        let mut gains = [f64::INFINITY; 2];
        self.trace.push(objective);
        while self.trace.len() <= self.method.max_iterations {
            let stop = stop_flag(observer);
            let next = self.step(&moments, objective, &mut anderson, stop)?;
            if stop.load(Ordering::Relaxed) {
                // The step has not seen all rows: the last whole one counts.
                self.termination = Termination::Interrupted;
                break;
            }
            (self.at, moments) = (next.at, next.moments);
            self.trace.push(next.objective);
            let iteration = self.trace.len() - 1;
            let gain = next.objective - objective;
            objective = next.objective;
            if gain < -1e-9 * (1.0 + objective.abs()) {
                self.warnings.push(Warning::ObjectiveFell { iteration, by: -gain });
            }
            gains = [gains[1], gain];
            if complete {
                self.termination = Termination::ClosedForm;
                break;
            }
            // Gains of extrapolated steps are uneven: two in a row must be small.
            if enough > 0.0 && gains.iter().all(|gain| *gain <= enough) {
                self.termination = Termination::Converged;
                break;
            }
            if observer.step(&Step { iteration, objective }).is_break() {
                self.termination = Termination::Interrupted;
                break;
            }
        }
        if self.termination == Termination::IterationLimit {
            let (iterations, remaining) = (self.trace.len() - 1, gains[0].max(gains[1]));
            self.warnings.push(Warning::StillRising { iterations, remaining });
        }
        Ok(self)
    }

    /// A point no lower than `objective`.
    fn step(
        &self,
        moments: &Moments,
        objective: f64,
        anderson: &mut Anderson,
        stop: &AtomicBool,
    ) -> Result<Point, Error> {
        let (mean, covariance) = self.maximize(moments);
        let here = self.coordinates(&self.at.mean, &self.at.covariance);
        let mut step = self.coordinates(&mean, &covariance);
        step.iter_mut().zip(&here).for_each(|(s, h)| *s -= h);
        if let Some(far) = anderson.extrapolate(here, step)
            && let Some(at) = self.at_coordinates(&far)
        {
            let point = self.point(at, stop)?;
            if point.objective >= objective {
                return Ok(point);
            }
            anderson.restart();
        }
        self.point(self.gaussian(mean, covariance)?, stop)
    }

    fn point(&self, at: Gaussian, stop: &AtomicBool) -> Result<Point, Error> {
        let moments = self.expectation(&at, stop)?;
        Ok(Point { objective: self.objective(&at, &moments), at, moments })
    }

    fn expectation(&self, at: &Gaussian, stop: &AtomicBool) -> Result<Moments, Error> {
        Moments::of_numbers(at, &self.rows.pass(&Task::gaussian(self.frame, at, stop))?.0)
    }

    /// `δ = 1/n Σᵢ ⟨y⟩        Σ = (Σᵢ ⟨yyᵀ⟩ − n δδᵀ + λ I) / (n + λ)`
    fn maximize(&self, moments: &Moments) -> (Vec<f64>, Matrix) {
        let (n, lambda) = (self.n, self.method.pseudo_rows);
        let delta: Vec<f64> = moments.first.iter().map(|v| v / n).collect();
        let mut c = moments.second.clone();
        for i in 0..delta.len() {
            let row = &mut c.row_mut(i)[..=i];
            row[i] += lambda;
            for (c, delta_j) in row.iter_mut().zip(&delta) {
                *c = (*c - n * delta[i] * delta_j) / (n + lambda);
            }
        }
        c.mirror_lower();
        let shifts = delta.iter().zip(&self.frame.scale).map(|(delta, scale)| delta * scale);
        (self.at.mean.iter().zip(shifts).map(|(m, shift)| m + shift).collect(), c)
    }

    /// With no eigenvalue below the floor: where the M-step would go lower, that is its maximum.
    fn gaussian(&self, mean: Vec<f64>, covariance: Matrix) -> Result<Gaussian, Error> {
        let regular = positive_inverse(&covariance).filter(|(p, _)| p.trace() * self.floor < 1.0);
        if let Some((precision, ln_det)) = regular {
            return Ok(Gaussian { mean, covariance, precision, ln_det });
        }
        let Eigen { values, vectors } = eigen(&covariance)?;
        let values: Vec<f64> = values.iter().map(|v| v.max(self.floor)).collect();
        let with = |values: &[f64]| {
            let mut scaled = vectors.clone();
            scaled.scale_columns(values);
            let mut product = scaled.dot_t(&vectors);
            product.symmetrize();
            product
        };
        let precision = with(&values.iter().map(|v| 1.0 / v).collect::<Vec<_>>());
        let ln_det = values.iter().map(|v| v.ln()).sum();
        Ok(Gaussian { mean, covariance: with(&values), precision, ln_det })
    }

    /// Mean, in units of the frame, and lower triangle of the covariance.
    fn coordinates(&self, mean: &[f64], covariance: &Matrix) -> Vec<f64> {
        let d = mean.len();
        let mut out = Vec::with_capacity(d + packed::len(d));
        out.extend((0..d).map(|j| (mean[j] - self.frame.mean[j]) * self.frame.inverse[j]));
        (0..d).for_each(|i| out.extend_from_slice(&covariance.row(i)[..=i]));
        out
    }

    /// `None` if they are those of no Gaussian above the floor.
    fn at_coordinates(&self, coordinates: &[f64]) -> Option<Gaussian> {
        let (mean, triangle) = coordinates.split_at(self.at.mean.len());
        let covariance = packed::unpack(triangle, mean.len());
        let (precision, ln_det) = positive_inverse(&covariance)?;
        let mean = (0..mean.len()).map(|j| self.frame.mean[j] + mean[j] * self.frame.scale[j]).collect();
        (precision.trace() * self.floor < 1.0).then_some(Gaussian { mean, covariance, precision, ln_det })
    }

    /// `ℓ − λ KL(N(0, I) ‖ N(0, Σ))`, ℓ in the user's units.
    fn objective(&self, at: &Gaussian, moments: &Moments) -> f64 {
        let counts = self.facts.n_observed_by_column();
        let units: f64 = counts.iter().zip(&self.frame.scale).map(|(n, s)| *n as f64 * s.ln()).sum();
        let divergence = 0.5 * (at.precision.trace() - at.mean.len() as f64 + at.ln_det);
        moments.log_likelihood - units - self.method.pseudo_rows * divergence
    }
}

/// A point of the climb, and what the rows say there.
struct Point {
    at: Gaussian,
    moments: Moments,
    objective: f64,
}
