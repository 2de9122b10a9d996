//! Words for people, on standard error.

use crate::interrupt::{self, Ends, Part};
use covary::infer::{Observer, Step};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

/// Speaks on standard error; with `--quiet` only of what is wrong. A closed standard error changes
/// nothing.
#[derive(Clone, Copy)]
pub(crate) struct Console {
    quiet: bool,
}

impl Console {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// Whether [`say`](Self::say) says nothing.
    pub(crate) fn is_quiet(self) -> bool {
        self.quiet
    }

    pub(crate) fn say(self, line: &str) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr().lock(), "{}", for_terminal(&harmless(line)));
        }
    }

    #[allow(clippy::unused_self, reason = "the console that warns is the one that says")]
    pub(crate) fn warn(self, line: &str) {
        let said = format!("warning: {}", harmless(line));
        let _ = writeln!(std::io::stderr().lock(), "{}", for_terminal(&said));
    }

    /// Shows the steps of a fit as they come: on a terminal only, so that logs stay clean.
    pub(crate) fn steps(self, what: &str) -> Progress {
        let style = ProgressStyle::with_template("{spinner} {prefix}{msg}, {elapsed}");
        self.progress(what, Ends::AtStep, style.expect("a valid template"))
    }

    /// Shows how much of a known amount is done, of which no part is kept: on a terminal only.
    pub(crate) fn share(self, what: &str) -> Progress {
        let style = ProgressStyle::with_template("{prefix}{msg}");
        self.progress(what, Ends::Process, style.expect("a valid template"))
    }

    /// The same for one of several things, of which those that were made are kept.
    pub(crate) fn share_of_several(self, what: &str) -> Progress {
        let style = ProgressStyle::with_template("{prefix}{msg}");
        self.progress(what, Ends::AtStep, style.expect("a valid template"))
    }

    /// Shows that work goes on whose end is not known: on a terminal only. After Ctrl-C the words are said anywhere.
    pub(crate) fn working(self, what: &str) -> Progress {
        let style = ProgressStyle::with_template("{spinner} {prefix}, {elapsed}");
        let progress = self.progress(what, Ends::ToEnd, style.expect("a valid template"));
        if interrupt::asked() {
            self.say(&format!("{what}; press Ctrl-C again to give up"));
            progress.part.tell();
        }
        progress.bar.enable_steady_tick(std::time::Duration::from_millis(200));
        progress
    }

    fn progress(self, what: &str, ends: Ends, style: ProgressStyle) -> Progress {
        // A target that is not a terminal draws nothing.
        let target =
            if self.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(10) };
        let bar = ProgressBar::with_draw_target(None, target).with_style(style);
        bar.set_prefix(what.to_owned());
        Progress { part: interrupt::begin(what, ends, Some(bar.clone())), bar }
    }
}

/// Sentences broken at words for a terminal; files and pipes get them as they are.
fn for_terminal(text: &str) -> Cow<'_, str> {
    if !std::io::stderr().is_terminal() {
        return Cow::Borrowed(text);
    }
    let width = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(80);
    Cow::Owned(wrapped(text, width))
}

/// Lines of at most `width` letters, as far as words allow; what is indented is a table and stays as it is.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for whole in text.split('\n') {
        if whole.starts_with(' ') || whole.chars().count() <= width {
            lines.push(whole.to_owned());
            continue;
        }
        lines.push(String::new());
        for word in whole.split(' ') {
            let line = lines.last_mut().expect("one was begun");
            if line.is_empty() {
                line.push_str(word);
            } else if line.chars().count() + 1 + word.chars().count() <= width {
                line.extend([" ", word]);
            } else {
                lines.push(word.to_owned());
            }
        }
    }
    lines.join("\n")
}

/// One line of progress that wipes itself when dropped, and listens for Ctrl-C.
pub(crate) struct Progress {
    bar: ProgressBar,
    part: Part,
}

impl Progress {
    /// How many of how many are done of a part of the work.
    pub(crate) fn stage(&self, what: &str, done: usize, total: usize) -> ControlFlow<()> {
        if self.bar.prefix() != what {
            self.bar.set_prefix(what.to_owned());
            self.bar.set_position(0);
        }
        self.done(done, total)
    }

    /// A step of a fit.
    pub(crate) fn step(&self, step: &Step) -> ControlFlow<()> {
        if !self.bar.is_hidden() {
            self.bar.set_position(step.iteration as u64);
            // Until the first step there is nothing to say.
            self.bar.set_message(format!(": step {}, objective {:.4}", step.iteration, step.objective));
        }
        interrupt::flow()
    }

    /// How many of how many are done.
    pub(crate) fn done(&self, done: usize, total: usize) -> ControlFlow<()> {
        if self.bar.length() != Some(total as u64) {
            let style = ProgressStyle::with_template("{prefix}: {bar:30} {pos} of {len}, {eta} left");
            self.bar.set_style(style.expect("a valid template"));
            self.bar.set_length(total as u64);
        }
        self.bar.set_position(self.bar.position().max(done as u64));
        interrupt::flow()
    }
}

impl Observer for Progress {
    fn step(&mut self, step: &Step) -> ControlFlow<()> {
        Self::step(self, step)
    }

    fn stop_flag(&self) -> Option<&AtomicBool> {
        interrupt::stop_flag()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// `a`, `b` and 3 more.
pub(crate) fn names(names: &[&str]) -> String {
    const SHOWN: usize = 6;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|n| format!("`{n}`")).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Whether a terminal would do anything but show a character: ring, move, or turn the direction of what follows.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Words whose names, which come from files, do nothing to a terminal. Lines end as they did.
pub(crate) fn harmless(words: &str) -> Cow<'_, str> {
    let harms = |c: char| c != '\n' && is_harmful(c);
    if words.contains(harms) { Cow::Owned(words.replace(harms, "\u{fffd}")) } else { Cow::Borrowed(words) }
}

/// `1 gap`, `2 gaps`.
pub(crate) fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// A cell that keeps to its line and to a width people can read.
fn fitting(cell: &str) -> String {
    const WIDEST: usize = 40;
    let mut out: String = cell.chars().map(|c| if is_harmful(c) { ' ' } else { c }).take(WIDEST).collect();
    if cell.chars().nth(WIDEST).is_some() {
        out.push('…');
    }
    out
}

/// Lines of a table with its columns aligned: the columns in `left` to the left, others right.
pub(crate) fn aligned(rows: &[Vec<String>], left: &[usize]) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|c| fitting(c)).collect()).collect();
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

#[cfg(test)]
mod tests {
    use super::{aligned, harmless, wrapped};

    #[test]
    fn names_do_nothing_to_a_terminal() {
        let name = "`a\u{7}b\u{202e}c\u{1b}[2Jd\r` größe\n";
        assert_eq!(harmless(name), "`a\u{fffd}b\u{fffd}c\u{fffd}[2Jd\u{fffd}` größe\n");
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["row".into(), "column".into()], vec!["12".into(), "ä".into()]];
        assert_eq!(aligned(&rows, &[1]), "  row  column\n   12  ä");
    }

    #[test]
    fn sentences_are_broken_at_words_and_tables_are_not() {
        let text = "one two three five\n  a table that is wide stays\nshort";
        assert_eq!(wrapped(text, 9), "one two\nthree\nfive\n  a table that is wide stays\nshort");
        assert_eq!(wrapped("averyveryverylongword and", 5), "averyveryverylongword\nand");
        let said = wrapped(&"word ".repeat(60), 80);
        assert!(said.lines().all(|line| line.chars().count() <= 80));
        assert_eq!(said.split_whitespace().count(), 60);
    }
}
