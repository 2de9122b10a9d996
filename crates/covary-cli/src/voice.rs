//! Words for people, on standard error.

use covary::infer::{Observer, Step};
use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Speaks on standard error, or not at all with `--quiet`. A closed standard error changes nothing.
#[derive(Clone, Copy)]
pub(crate) struct Voice {
    quiet: bool,
}

impl Voice {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    pub(crate) fn say(self, line: &str) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr().lock(), "{line}");
        }
    }

    /// A counter that rewrites its line: on a terminal only, so that logs stay clean.
    pub(crate) fn progress(self, what: &str) -> Progress {
        Progress {
            what: what.to_owned(),
            shown: false,
            last: Instant::now(),
            silent: self.quiet || !std::io::stderr().is_terminal(),
        }
    }
}

/// One line of progress; it wipes itself when dropped.
pub(crate) struct Progress {
    what: String,
    silent: bool,
    shown: bool,
    last: Instant,
}

impl Observer for Progress {
    fn step(&mut self, step: &Step) -> ControlFlow<()> {
        const PAUSE: Duration = Duration::from_millis(100);
        if !self.silent && self.last.elapsed() >= PAUSE {
            (self.last, self.shown) = (Instant::now(), true);
            let mut err = std::io::stderr().lock();
            let _ = write!(
                err,
                "\r\x1b[K{}: step {}, objective {:.4}",
                self.what, step.iteration, step.objective
            );
            let _ = err.flush();
        }
        ControlFlow::Continue(())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

/// `1 gap`, `2 gaps`.
pub(crate) fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// Lines of a table with its columns aligned: the columns in `left` to the left, others right.
pub(crate) fn aligned(rows: &[Vec<String>], left: &[usize]) -> String {
    let width = |j: usize| rows.iter().map(|row| row[j].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(j, (cell, &w))| {
            if left.contains(&j) { format!("{cell:<w$}") } else { format!("{cell:>w$}") }
        });
        format!("  {}", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// `value` to the digits that `sd` leaves meaningful: two of the standard deviation's own.
pub(crate) fn rounded(value: f64, sd: f64) -> String {
    let last = sd.log10().floor() - 1.0;
    if (-9.0..=0.0).contains(&last) && value.abs() < 1e9 {
        format!("{value:.0$}", -last as usize)
    } else if last.is_finite() && last > 0.0 && value.abs() < 1e9 {
        format!("{value:.0}")
    } else {
        format!("{value:.3e}")
    }
}

#[cfg(test)]
mod tests {
    use super::{aligned, rounded};

    #[test]
    fn numbers_are_rounded_to_two_digits_of_their_deviation() {
        assert_eq!(rounded(2.345_67, 0.012), "2.346");
        assert_eq!(rounded(1065.3, 170.0), "1065");
        assert_eq!(rounded(0.5, 2.0), "0.5");
        assert_eq!(rounded(1.234e-12, 1e-13), "1.234e-12");
        assert_eq!(rounded(7.0, 0.0), "7.000e0");
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["row".into(), "column".into()], vec!["12".into(), "ä".into()]];
        assert_eq!(aligned(&rows, &[1]), "  row  column\n   12  ä");
    }
}
