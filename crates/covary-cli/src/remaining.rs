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

/// An estimate that exceeds what was told by less than this factor only stops its fall.
const BEARABLE: f64 = 1.5;

impl Remaining {
    /// So many of so many are done after this time.
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
                if estimate <= fallen || estimate > BEARABLE * left { estimate } else { estimate.min(left) }
            }
        };
        self.told = Some((now, left));
        Some(Duration::from_secs_f64(left))
    }

    /// From `t = a n + b n²` for the time of n steps, with neither negative, through the last of them.
    fn estimate(&self, now: f64) -> Option<f64> {
        let &(n, t) = self.steps.last()?;
        let total = (self.total as f64).max(n);
        let count = self.steps.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| self.steps.iter().map(of).sum::<f64>() / count;
        // t / n = a + b n, a line.
        let (x, y) = (mean(|s| s.0), mean(|s| s.1 / s.0));
        let xx = self.steps.iter().map(|s| (s.0 - x).powi(2)).sum::<f64>();
        let xy = self.steps.iter().map(|s| (s.0 - x) * (s.1 / s.0 - y)).sum::<f64>();
        let slope = if self.steps.len() > 2 && xx > 0.0 { (xy / xx).clamp(0.0, y / x) } else { 0.0 };
        let time = |n: f64| (y - slope * x) * n + slope * n * n;
        let whole = if time(n) > 0.0 { t * time(total) / time(n) } else { t };
        Some((whole - now).max(0.0))
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
        let (mut clock, mut done, mut next) = (0.0, 0, costs[0]);
        while done < costs.len() {
            clock += 0.1;
            let now = Duration::from_secs_f64(clock);
            while done < costs.len() && clock >= next {
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
            assert!((left - truth).abs() < 0.25 * truth + 2.0, "{left} told, {truth} true");
        }
        assert!(rises(&said).len() <= 4, "{:?}", rises(&said));
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
