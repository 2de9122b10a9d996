//! L-BFGS: minimization of smooth functions of many variables, with a memory of the last steps.

use crate::linalg::dot;
use std::collections::VecDeque;

/// Value and gradient at a point.
pub(super) struct Value {
    pub(super) value: f64,
    pub(super) gradient: Vec<f64>,
}

pub(super) struct Lbfgs {
    /// Steps remembered.
    pub(super) memory: usize,
    pub(super) max_iterations: usize,
    /// Stop when a step gains less than this.
    pub(super) tolerance: f64,
}

impl Default for Lbfgs {
    fn default() -> Self {
        Self { memory: 10, max_iterations: 100, tolerance: 1e-10 }
    }
}

/// A step and how the gradient changed along it.
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
}

impl Lbfgs {
    /// Where the value is lower than at `x`; `None` if no such place was found. `of` is `None` where the
    /// function is not defined.
    pub(super) fn minimize(&self, mut x: Vec<f64>, of: impl Fn(&[f64]) -> Option<Value>) -> Option<Vec<f64>> {
        /// A step must gain this share of what the slope promises.
        const SUFFICIENT: f64 = 1e-4;
        const HALVINGS: usize = 40;
        let mut at = of(&x)?;
        let start = at.value;
        let mut memory: VecDeque<Pair> = VecDeque::with_capacity(self.memory);
        for _ in 0..self.max_iterations {
            let mut direction = descent(&memory, &at.gradient);
            let mut slope = dot(&direction, &at.gradient);
            if slope >= 0.0 {
                memory.clear();
                direction = descent(&memory, &at.gradient);
                slope = dot(&direction, &at.gradient);
            }
            let found = (0..HALVINGS).find_map(|halvings| {
                let length = 0.5_f64.powi(halvings as i32);
                let next: Vec<f64> = x.iter().zip(&direction).map(|(x, p)| x + length * p).collect();
                let value = of(&next)?;
                (value.value <= at.value + SUFFICIENT * length * slope).then_some((next, value))
            });
            let Some((next, value)) = found else { break };
            let gain = at.value - value.value;
            let step: Vec<f64> = next.iter().zip(&x).map(|(a, b)| a - b).collect();
            let change: Vec<f64> = value.gradient.iter().zip(&at.gradient).map(|(a, b)| a - b).collect();
            (x, at) = (next, value);
            if gain < self.tolerance {
                break;
            }
            // Only along a valley floor that curves upwards is the memory a metric.
            if dot(&step, &change) > 1e-12 * dot(&change, &change) {
                if memory.len() == self.memory {
                    memory.pop_front();
                }
                memory.push_back(Pair { step, change });
            }
        }
        (at.value < start).then_some(x)
    }
}

/// Minus the gradient times the inverse Hessian that the memory stands for (Nocedal 1980).
fn descent(memory: &VecDeque<Pair>, gradient: &[f64]) -> Vec<f64> {
    let mut p: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut shares = Vec::with_capacity(memory.len());
    for Pair { step, change } in memory.iter().rev() {
        let share = dot(step, &p) / dot(step, change);
        p.iter_mut().zip(change).for_each(|(p, y)| *p -= share * y);
        shares.push(share);
    }
    // Before anything is known a step is at most of length 1.
    let scale = match memory.back() {
        Some(Pair { step, change }) => dot(step, change) / dot(change, change),
        None => 1.0 / dot(gradient, gradient).sqrt().max(1.0),
    };
    for p in &mut p {
        *p *= scale;
    }
    for (Pair { step, change }, share) in memory.iter().zip(shares.iter().rev()) {
        let back = share - dot(change, &p) / dot(step, change);
        p.iter_mut().zip(step).for_each(|(p, s)| *p += back * s);
    }
    p
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five of Rosenbrock's valleys, from the customary start: the one minimum is at ones.
    #[test]
    fn it_follows_a_curved_valley_to_its_end() {
        let of = |x: &[f64]| {
            let (mut value, mut gradient) = (0.0, vec![0.0; x.len()]);
            for i in (0..x.len()).step_by(2) {
                let (bend, away) = (x[i + 1] - x[i] * x[i], 1.0 - x[i]);
                value += 100.0 * bend * bend + away * away;
                gradient[i] -= 400.0 * bend * x[i] + 2.0 * away;
                gradient[i + 1] += 200.0 * bend;
            }
            Some(Value { value, gradient })
        };
        let method = Lbfgs { max_iterations: 500, tolerance: 0.0, ..Lbfgs::default() };
        let end = method.minimize([-1.2, 1.0].repeat(5), of).unwrap();
        assert!(end.iter().all(|x| (x - 1.0).abs() < 1e-6), "{end:?}");
    }

    #[test]
    fn a_point_that_is_a_minimum_is_left_alone() {
        let of = |x: &[f64]| Some(Value { value: dot(x, x), gradient: x.iter().map(|x| 2.0 * x).collect() });
        assert!(Lbfgs::default().minimize(vec![0.0; 3], of).is_none());
    }

    #[test]
    fn it_stays_where_the_function_is_defined() {
        // 40 (x − ln x) is steep on the left: steps that overshoot from there would come back below 0.
        let of = |x: &[f64]| {
            let x = x[0];
            (x > 0.0).then(|| Value { value: 40.0 * (x - x.ln()), gradient: vec![40.0 * (1.0 - 1.0 / x)] })
        };
        let end = Lbfgs { tolerance: 0.0, ..Lbfgs::default() }.minimize(vec![0.01], of).unwrap();
        assert!((end[0] - 1.0).abs() < 1e-6, "{end:?}");
    }
}
