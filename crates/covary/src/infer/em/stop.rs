//! The stopping rule of all EM-type fits [M 1.4.5], and how a climb by it goes.

use crate::infer::report::{FitReport, Objective, ObjectiveKind, Observer, Step, Termination, Warning};

/// Rates beyond this are plateaus on the way, not the rate at the end.
const SLOWEST: f64 = 0.999;

/// Aitken's estimate of what is still to gain, from three successive values of the objective:
/// ```text
/// δ_k = ℓ_k − ℓ_{k−1}      c = δ_k / δ_{k−1}      g = δ_k c / (1 − c)
/// ```
/// Met when `g ≤ τ/2` and `δ ≤ √τ` twice in a row; near a saddle c ≥ 1, so it does not stop there.
/// The half is for the estimate's own error: rates approach their limit from below, and plain EM was
/// once seen to end 29 % further from the optimum than estimated.
#[derive(Debug, Clone)]
pub(crate) struct Aitken {
    tolerance: f64,
    last: Option<f64>,
    gain: Option<f64>,
    rate: f64,
    /// Slowest rate that extrapolation has met; 0 without extrapolation.
    slowest: f64,
    remaining: f64,
    met: usize,
}

impl Aitken {
    pub(crate) fn new(tolerance: f64) -> Self {
        Self { tolerance, last: None, gain: None, rate: 0.0, slowest: 0.0, remaining: f64::INFINITY, met: 0 }
    }

    /// Takes the next value of the objective; true when the fit may stop.
    pub(crate) fn push(&mut self, objective: f64) -> bool {
        let gain = self.last.map(|last| objective - last);
        if let (Some(gain), Some(before)) = (gain, self.gain) {
            // At rounding level the ratio of gains says nothing; a gain of nothing leaves nothing.
            self.rate = if before > 0.0 { (gain / before).clamp(0.0, 1.0 - 1e-12) } else { 0.0 };
            let rate = self.rate.max(self.slowest);
            self.remaining = gain.max(0.0) * rate / (1.0 - rate);
            // Below 1e-13 |ℓ| differences of the objective are rounding.
            let tau = self.tolerance.max(1e-13 * objective.abs());
            let met = self.tolerance > 0.0 && self.remaining <= 0.5 * tau && gain <= tau.sqrt();
            self.met = if met { self.met + 1 } else { 0 };
        }
        self.gain = gain;
        self.last = Some(objective);
        self.met >= 2
    }

    /// Notes that the next gains are those of extrapolated cycles, or follow one, where plain steps
    /// would have gained at `rate`. Such gains are not a geometric series: they fall at once where the
    /// fast directions end and say nothing about the slow ones, which are therefore remembered.
    pub(crate) fn extrapolate(&mut self, rate: f64) {
        self.slowest = self.slowest.max(rate.min(SLOWEST));
    }

    /// Share of the error left by the last step.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    /// Estimated gain still to come, in nats.
    pub(crate) fn remaining(&self) -> f64 {
        self.remaining
    }
}

/// How a climb goes and ends: what every EM-type fit tells of its steps.
pub(crate) struct Ascent {
    pub(crate) aitken: Aitken,
    /// The objective at the start and after each step.
    pub(crate) trace: Vec<f64>,
    pub(crate) termination: Termination,
    pub(crate) warnings: Vec<Warning>,
}

impl Ascent {
    /// From a start with this objective.
    pub(crate) fn new(tolerance: f64, objective: f64) -> Self {
        let mut aitken = Aitken::new(tolerance);
        aitken.push(objective);
        let (termination, warnings) = (Termination::IterationLimit, Vec::new());
        Self { aitken, trace: vec![objective], termination, warnings }
    }

    /// Whether there is a step to make, of this many at most.
    pub(crate) fn goes_on(&self, most: usize) -> bool {
        self.termination == Termination::IterationLimit && self.trace.len() <= most
    }

    /// Takes the objective after a step, and ends where the rule is met or the observer says so.
    pub(crate) fn take(&mut self, objective: f64, observer: &mut dyn Observer) {
        let (before, iteration) = (self.value(), self.trace.len());
        self.trace.push(objective);
        if objective < before - 1e-9 * (1.0 + before.abs()) {
            self.warnings.push(Warning::ObjectiveFell { iteration, by: before - objective });
        }
        if self.aitken.push(objective) {
            self.termination = Termination::Converged;
        } else if observer.step(&Step { iteration, objective }).is_break() {
            self.termination = Termination::Interrupted;
        }
    }

    /// Says so if the steps did not suffice.
    #[must_use]
    pub(crate) fn ended(mut self) -> Self {
        if self.termination == Termination::IterationLimit {
            let (iterations, remaining) = (self.trace.len() - 1, self.aitken.remaining());
            self.warnings.push(Warning::StillRising { iterations, remaining });
        }
        self
    }

    /// The objective where it stands.
    pub(crate) fn value(&self) -> f64 {
        *self.trace.last().expect("the start is in the trace")
    }

    pub(crate) fn report(self, kind: ObjectiveKind) -> FitReport {
        let objective = Objective { kind, value: self.value() };
        FitReport::new(objective, self.trace, self.termination, self.warnings)
    }
}
