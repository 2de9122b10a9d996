//! How long work goes on whose steps are counted.

use std::time::Duration;

/// Time that is left, from the time that steps took. Steps may take ever longer, as models with more components do: the
/// time of a step is taken to grow linearly. What is told falls with the clock.
#[derive(Default)]
pub(crate) struct Remaining {
    /// How many were done after how many seconds.
    steps: Vec<(f64, f64)>,
    total: usize,
    /// What was told last: when, and how much was left.
    told: Option<(f64, f64)>,
}

/// Seconds before anything is told.
const SILENT: f64 = 1.0;

/// An estimate that exceeds what was told by less than this factor and these seconds only stops its fall.
const BEARABLE: (f64, f64) = (1.5, 2.0);

/// Steps whose times tell of no growth.
const FEW: usize = 6;

impl Remaining {
    /// `done` of `total` are done after this time.
    pub(crate) fn done(&mut self, done: usize, total: usize, after: Duration) {
        self.total = total;
        let done = done as f64;
        if done > self.steps.last().map_or(0.0, |last| last.0) {
            self.steps.push((done, after.as_secs_f64()));
        }
    }

    /// What is left after this time; nothing while it cannot be known.
    pub(crate) fn at(&mut self, after: Duration) -> Option<Duration> {
        let now = after.as_secs_f64();
        let estimate = self.estimate(now).filter(|_| now >= SILENT)?;
        let left = match self.told {
            None => estimate,
            Some((then, left)) => {
                let fallen = (left - (now - then)).max(0.0);
                // Small rises are chance: the number waits for the clock instead of going up.
                if estimate <= fallen || estimate > BEARABLE.0 * left + BEARABLE.1 {
                    estimate
                } else {
                    estimate.min(left)
                }
            }
        };
        self.told = Some((now, left));
        Some(Duration::from_secs_f64(left))
    }

    /// A step takes the mean of those that are done, and more by the slope of their times, as far as it is beyond chance:
    /// two standard errors, of a few steps at least.
    fn estimate(&self, now: f64) -> Option<f64> {
        let &(n, t) = self.steps.last()?;
        let before = std::iter::once(&(0.0, 0.0)).chain(&self.steps);
        let middle =
            |(&(n0, t0), &(n1, t1)): (&(f64, f64), &(f64, f64))| (0.5 * (n0 + n1), (t1 - t0) / (n1 - n0));
        let times: Vec<(f64, f64)> = before.zip(&self.steps).map(middle).collect();
        let count = times.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| times.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|s| s.0), mean(|s| s.1));
        let xx = times.iter().map(|s| (s.0 - x).powi(2)).sum::<f64>();
        let slope = times.iter().map(|s| (s.0 - x) * (s.1 - y)).sum::<f64>() / xx;
        let squares = times.iter().map(|s| (s.1 - y - slope * (s.0 - x)).powi(2)).sum::<f64>();
        let error = (squares / (count - 2.0) / xx).sqrt();
        let growth = if times.len() < FEW { 0.0 } else { (slope - 2.0 * error).max(0.0) };
        let total = (self.total as f64).max(n);
        // The steps to come lie half of all later than those that are done.
        Some((t + (total - n) * (t / n + growth * 0.5 * total) - now).max(0.0))
    }
}

/// `45s`, `3m 20s`, `2h 5m`: the coarser the longer.
pub(crate) fn words(left: Duration) -> String {
    let seconds = left.as_secs_f64().ceil() as u64;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60 / 5 * 5),
        _ => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::{Remaining, words};
    use std::time::Duration;

    /// What is told every tenth of a second while steps take these seconds, with what was true.
    fn told(costs: &[f64]) -> Vec<(f64, f64)> {
        let whole: f64 = costs.iter().sum();
        let mut left = Remaining::default();
        let mut out = Vec::new();
        let (mut ticks, mut done, mut next) = (0, 0, costs[0]);
        while done < costs.len() {
            ticks += 1;
            let clock = f64::from(ticks) / 10.0;
            let now = Duration::from_secs_f64(clock);
            while done < costs.len() && clock >= next - 1e-9 {
                done += 1;
                left.done(done, costs.len(), now);
                next += costs.get(done).copied().unwrap_or(0.0);
            }
            out.extend(left.at(now).map(|said| (said.as_secs_f64(), whole - clock)));
        }
        out
    }

    fn rises(told: &[(f64, f64)]) -> Vec<f64> {
        let pairs = told.windows(2).map(|pair| pair[1].0 - pair[0].0);
        pairs.filter(|rise| *rise > 1e-9).collect()
    }

    #[test]
    fn time_left_of_even_steps_falls_with_the_clock() {
        let said = told(&[2.0; 20]);
        assert_eq!(rises(&said), [0.0; 0]);
        assert!(said.iter().all(|(left, truth)| (left - truth).abs() < 0.2), "{said:?}");
    }

    #[test]
    fn steps_that_take_ever_longer_are_foreseen() {
        let costs: Vec<f64> = (0..30).map(|q| 0.5 + 0.3 * f64::from(q)).collect();
        let said = told(&costs);
        // A third of the steps, which is a tenth of the time.
        let third: f64 = costs[..10].iter().sum();
        let whole: f64 = costs.iter().sum();
        for (left, truth) in said.iter().filter(|(_, truth)| *truth < whole - third) {
            assert!((left - truth).abs() < 0.1 * truth + 1.0, "{left} told, {truth} true");
        }
        assert!(rises(&said).len() <= 3, "{:?}", rises(&said));
    }

    #[test]
    fn chance_does_not_make_the_time_left_go_up() {
        let costs: Vec<f64> = (0..40).map(|k| [1.0, 3.0, 2.0, 0.5, 3.5][k * 7 % 5]).collect();
        let said = told(&costs);
        // Once a few steps are known.
        assert_eq!(rises(&said[100..]), [0.0; 0], "{said:?}");
        assert!(
            said[300..].iter().all(|(left, truth)| (left - truth).abs() < 0.35 * truth + 4.0),
            "{said:?}"
        );
    }

    #[test]
    fn nothing_is_told_before_a_step_is_done() {
        let mut left = Remaining::default();
        assert_eq!(left.at(Duration::from_secs(30)), None);
        left.done(0, 10, Duration::from_secs(31));
        assert_eq!(left.at(Duration::from_secs(31)), None);
        left.done(1, 10, Duration::from_secs(40));
        assert_eq!(left.at(Duration::from_secs(40)), Some(Duration::from_secs(360)));
        assert_eq!(left.at(Duration::from_secs(50)), Some(Duration::from_secs(350)));
    }

    #[test]
    fn times_are_said_coarsely() {
        let said = [0.2, 59.0, 92.0, 7500.0].map(|s| words(Duration::from_secs_f64(s)));
        assert_eq!(said, ["1s", "59s", "1m 30s", "2h 5m"]);
    }
}
