//! Words for people, on standard error.

use crate::interrupt::{self, Ends, Part};
use crate::remaining::{self, Remaining};
use covary::infer::{Observer, Step};
use covary_report::scale;
use covary_report::text::{columns, shortened_to};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

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
        self.progress(what, Ends::AtStep)
    }

    /// Shows how much of a known amount is done, of which no part is kept: on a terminal only.
    pub(crate) fn share(self, what: &str) -> Progress {
        self.progress(what, Ends::Process)
    }

    /// The same for one of several things, of which those that were made are kept.
    pub(crate) fn share_of_several(self, what: &str) -> Progress {
        self.progress(what, Ends::AtStep)
    }

    /// Shows that work goes on whose end is not known: on a terminal only. After Ctrl-C the words are said anywhere.
    pub(crate) fn working(self, what: &str) -> Progress {
        let progress = self.progress(what, Ends::ToEnd);
        if interrupt::asked() {
            self.say(&format!("{what}; press Ctrl-C again to give up"));
            progress.part.tell();
        }
        progress
    }

    /// From here on a line says what is done and for how long; how much of it is said once it is known.
    fn progress(self, what: &str, ends: Ends) -> Progress {
        // A target that is not a terminal draws nothing.
        let target =
            if self.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(10) };
        let style = ProgressStyle::with_template("{spinner} {prefix}{msg}, {elapsed}");
        let bar = ProgressBar::with_draw_target(None, target).with_style(style.expect("a valid template"));
        bar.set_prefix(what.to_owned());
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        let part = interrupt::begin(what, ends, Some(bar.clone()));
        Progress { part, bar, left: Arc::default(), began: Mutex::new(Instant::now()) }
    }
}

/// Width that `COLUMNS` asks for.
fn asked_width() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns >= 20)
}

/// Columns that standard output has room for: as many as `COLUMNS` says, or the terminal has; files and pipes have
/// any number.
pub(crate) fn output_width() -> Option<usize> {
    asked_width().or_else(|| terminal_size::terminal_size_of(std::io::stdout()).map(|(w, _)| w.0.into()))
}

/// The same for standard error, where files and pipes get whole lines whatever `COLUMNS` says.
fn error_width() -> Option<usize> {
    let stderr = std::io::stderr();
    let terminal = || terminal_size::terminal_size_of(&stderr).map(|(w, _)| w.0.into());
    stderr.is_terminal().then(|| asked_width().or_else(terminal).unwrap_or(80))
}

/// What goes to standard output for people: sentences broken at words where it has a width.
pub(crate) fn for_output(text: &str) -> Cow<'_, str> {
    output_width().map_or(Cow::Borrowed(text), |width| Cow::Owned(wrapped(text, width)))
}

/// Sentences broken at words for a terminal; files and pipes get them as they are.
fn for_terminal(text: &str) -> Cow<'_, str> {
    error_width().map_or(Cow::Borrowed(text), |width| Cow::Owned(wrapped(text, width)))
}

/// Lines of at most `width` letters, as far as words allow; what is indented is a table and stays as it is.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for whole in text.split('\n') {
        if whole.starts_with(' ') || columns(whole) <= width {
            lines.push(whole.to_owned());
            continue;
        }
        lines.push(String::new());
        for word in whole.split(' ') {
            let line = lines.last_mut().expect("one was begun");
            if line.is_empty() {
                line.push_str(word);
            } else if columns(line) + 1 + columns(word) <= width {
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
    left: Arc<Mutex<Remaining>>,
    began: Mutex<Instant>,
}

impl Progress {
    /// How many of how many are done of a part of the work.
    pub(crate) fn stage(&self, what: &str, done: usize, total: usize) -> ControlFlow<()> {
        if self.bar.prefix() != what {
            self.bar.set_prefix(what.to_owned());
            self.bar.set_position(0);
            self.bar.unset_length();
            *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Remaining::default();
            *self.began.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
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
        if self.bar.is_hidden() {
            return interrupt::flow();
        }
        let began = *self.began.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.done(done, total, began.elapsed());
        drop(left);
        if self.bar.length() != Some(total as u64) {
            self.bar.set_style(self.bar_style(began));
            self.bar.set_length(total as u64);
        }
        self.bar.set_position(self.bar.position().max(done as u64));
        interrupt::flow()
    }

    /// A bar with its numbers, which keeps to the line.
    fn bar_style(&self, began: Instant) -> ProgressStyle {
        // Beside the bar: its words, `: `, ` 120 of 120` and `, 12m 30s left`.
        let beside = columns(&self.bar.prefix()) + 28;
        let length = error_width().unwrap_or(80).saturating_sub(beside).clamp(6, 30);
        let template = format!("{{prefix}}: {{bar:{length}}} {{pos}} of {{len}}{{left}}");
        let left = Arc::clone(&self.left);
        let said = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
            let left = left.lock().unwrap_or_else(PoisonError::into_inner).at(began.elapsed());
            let _ = left.map_or(Ok(()), |left| write!(out, ", {} left", remaining::words(left)));
        };
        ProgressStyle::with_template(&template).expect("a valid template").with_key("left", said)
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
    if n == 1 { format!("1 {what}") } else { format!("{} {what}s", scale::count(n)) }
}

/// Columns of a terminal that names have at least, and that no cell exceeds.
const NAMES: (usize, usize) = (16, 41);

/// Cells that keep to their line and to a width, the names of a column cut where they do not differ.
fn fitting(rows: &[Vec<String>], j: usize, room: usize) -> Vec<String> {
    let clean = |cell: &String| cell.chars().map(|c| if is_harmful(c) { ' ' } else { c }).collect();
    let cells: Vec<String> = rows.iter().map(|row| clean(&row[j])).collect();
    match cells.split_first() {
        // What heads a column is none of its names.
        Some((header, names)) => {
            let header = shortened_to(std::slice::from_ref(header), room);
            header.into_iter().chain(shortened_to(names, room)).collect()
        }
        None => cells,
    }
}

/// Lines of a table for standard output, within its width if it has one. The columns in `left`, which are text, are
/// aligned to the left, others to the right.
pub(crate) fn table(rows: &[Vec<String>], left: &[usize]) -> String {
    folded(rows, left, output_width())
}

/// The same for standard error.
pub(crate) fn said_table(rows: &[Vec<String>], left: &[usize]) -> String {
    folded(rows, left, error_width())
}

/// A table that is too wide for the room has its names cut first; then its columns go into blocks below each other, each
/// beginning with the first column.
fn folded(rows: &[Vec<String>], left: &[usize], room: Option<usize>) -> String {
    let n = rows.first().map_or(0, Vec::len);
    let widest = |cells: &[String]| cells.iter().map(|cell| columns(cell)).max().unwrap_or(0);
    let mut cells: Vec<Vec<String>> = (0..n).map(|j| fitting(rows, j, NAMES.1)).collect();
    let mut widths: Vec<usize> = cells.iter().map(|cells| widest(cells)).collect();
    // Two blanks before each column.
    let taken = |widths: &[usize]| widths.iter().map(|w| w + 2).sum::<usize>();
    let room = room.unwrap_or(usize::MAX);
    let over = taken(&widths).saturating_sub(room);
    if over > 0
        && let Some(&j) = left.iter().filter(|j| **j < n).max_by_key(|j| widths[**j])
    {
        let fits = widths[j].saturating_sub(over);
        let third = (room / 3).max(NAMES.0);
        let to = if fits >= NAMES.0 { fits } else { widths[j].min(third) };
        cells[j] = fitting(rows, j, to);
        widths[j] = widest(&cells[j]);
    }
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    for j in 0..n {
        match blocks.last_mut() {
            Some(block) if block.iter().map(|&k| widths[k] + 2).sum::<usize>() + widths[j] + 2 <= room => {
                block.push(j);
            }
            None => blocks.push(vec![j]),
            Some(_) => blocks.push(vec![0, j]),
        }
    }
    let line = |block: &[usize], i: usize| {
        let cell = |&j: &usize| {
            let blanks = " ".repeat(widths[j] - columns(&cells[j][i]));
            if left.contains(&j) {
                format!("{}{blanks}", cells[j][i])
            } else {
                format!("{blanks}{}", cells[j][i])
            }
        };
        format!("  {}", block.iter().map(cell).collect::<Vec<_>>().join("  ").trim_end())
    };
    let block = |block: &Vec<usize>| (0..rows.len()).map(|i| line(block, i)).collect::<Vec<_>>().join("\n");
    blocks.iter().map(block).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::{count, folded, harmless, wrapped};
    use covary_report::text::columns;

    #[test]
    fn names_do_nothing_to_a_terminal() {
        let name = "`a\u{7}b\u{202e}c\u{1b}[2Jd\r` größe\n";
        assert_eq!(harmless(name), "`a\u{fffd}b\u{fffd}c\u{fffd}[2Jd\u{fffd}` größe\n");
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["row".into(), "column".into()], vec!["12".into(), "ä".into()]];
        assert_eq!(folded(&rows, &[1], None), "  row  column\n   12  ä");
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
    #[test]
    fn a_wide_table_is_folded_at_its_columns_and_loses_no_number() {
        let header = std::iter::once("column".to_owned()).chain((1..=20).map(|k| k.to_string())).collect();
        let row = |j: usize| {
            let name = format!("Concentration of dissolved organic carbon, station {j}");
            std::iter::once(name).chain((1..=20).map(|k| format!("-0.{j}{k}"))).collect()
        };
        let rows: Vec<Vec<String>> = std::iter::once(header).chain((1..=3).map(row)).collect();
        for width in [40, 80, 120] {
            let text = folded(&rows, &[0], Some(width));
            assert!(text.lines().all(|line| columns(line) <= width), "{text}");
            for j in 1..=3 {
                let name = format!("station {j}");
                assert!(text.matches(&name).count() == text.split("\n\n").count(), "{text}");
                for k in 1..=20 {
                    assert!(text.split_whitespace().any(|word| word == format!("-0.{j}{k}")), "{text}");
                }
            }
        }
        assert_eq!(folded(&rows, &[0], None).lines().count(), 4);
    }

    #[test]
    fn names_give_way_before_a_table_is_folded() {
        let rows =
            [vec!["column".to_owned(), "mean".into()], vec!["a long name of a column".into(), "1.5".into()]];
        let text = folded(&rows, &[0], Some(26));
        assert_eq!(text, "  column              mean\n  a long na…a column   1.5");
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!(count(1_198_459, "gap"), "1\u{202f}198\u{202f}459 gaps");
        assert_eq!((count(1, "row"), count(1234, "row")), ("1 row".to_owned(), "1234 rows".to_owned()));
    }
}
