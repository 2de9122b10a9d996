//! When rows happened: sequences of steps of equal length.

use super::TimeAxis;
use crate::Error;
use std::collections::{BTreeMap, BTreeSet};

/// Steps without a row that a timeline may have for each that has one. Beyond it times are more likely in another unit,
/// such as seconds for daily rows, than that sparse.
const EMPTY_STEPS_PER_ROW: u64 = 1000;

/// The times of the rows of a table, as whole numbers of steps, in one or several sequences that know nothing of each
/// other. Rows may stand in any order; a time without a row is a step at which nothing was observed.
///
/// ```
/// use covary::data::Timeline;
/// let timeline = Timeline::new(&[3, 1, 0], None)?;             // nothing at time 2
/// assert_eq!(timeline.sequences()[0].rows(), [Some(2), Some(1), None, Some(0)]);
/// assert!(Timeline::new(&[3, 1, 3], None).is_err());           // two rows at one time
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    sequences: Vec<Sequence>,
    n_rows: usize,
    axis: Option<TimeAxis>,
    /// What the sequences are called, if they have names.
    names: Vec<String>,
}

/// Steps that follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    first: i64,
    rows: Vec<Option<usize>>,
}

impl Sequence {
    /// The time of its first step.
    pub fn first(&self) -> i64 {
        self.first
    }

    /// The row of the table at each step, if there is one.
    pub fn rows(&self) -> &[Option<usize>] {
        &self.rows
    }

    /// The time of a step.
    pub(crate) fn time(&self, step: usize) -> i64 {
        self.first + step as i64
    }
}

impl Timeline {
    /// One sequence: row `i` at time `i`.
    pub fn regular(n_rows: usize) -> Self {
        Self {
            sequences: vec![Sequence { first: 0, rows: (0..n_rows).map(Some).collect() }],
            n_rows,
            axis: None,
            names: Vec::new(),
        }
    }

    /// The time of each row, and the sequence it belongs to if there are several; sequences come in the order of their
    /// numbers.
    ///
    /// # Errors
    /// [`Error::EmptyTable`] without rows, [`Error::WrongLength`] unless every row has a sequence,
    /// [`Error::RepeatedTime`] where two rows of a sequence have one time, [`Error::TooFewTimes`] where far more steps
    /// are empty than not.
    pub fn new(times: &[i64], sequences: Option<&[usize]>) -> Result<Self, Error> {
        let n_rows = times.len();
        if n_rows == 0 {
            return Err(Error::EmptyTable { rows: 0, columns: 0 });
        }
        if let Some(given) = sequences
            && given.len() != n_rows
        {
            return Err(Error::WrongLength { what: "sequences of rows", expected: n_rows, got: given.len() });
        }
        let mut by_sequence: BTreeMap<usize, BTreeMap<i64, usize>> = BTreeMap::new();
        for (row, &time) in times.iter().enumerate() {
            let rows = by_sequence.entry(sequences.map_or(0, |s| s[row])).or_default();
            if let Some(before) = rows.insert(time, row) {
                return Err(Error::RepeatedTime { rows: (before + 1, row + 1), time });
            }
        }
        let span = |rows: &BTreeMap<i64, usize>| {
            let ends = rows.first_key_value().zip(rows.last_key_value());
            let ((first, _), (last, _)) = ends.expect("a sequence has a row");
            first.abs_diff(*last).saturating_add(1)
        };
        let steps = by_sequence.values().fold(0_u64, |sum, rows| sum.saturating_add(span(rows)));
        if steps / EMPTY_STEPS_PER_ROW > n_rows as u64 {
            return Err(Error::TooFewTimes { rows: n_rows, steps });
        }
        let sequences = by_sequence
            .into_values()
            .map(|rows| {
                let first = *rows.first_key_value().expect("a sequence has a row").0;
                let mut steps = vec![None; span(&rows) as usize];
                for (time, row) in rows {
                    steps[(time - first) as usize] = Some(row);
                }
                Sequence { first, rows: steps }
            })
            .collect();
        Ok(Self { sequences, n_rows, axis: None, names: Vec::new() })
    }

    /// The same with what its whole numbers stand for.
    #[must_use]
    pub fn on(self, axis: TimeAxis) -> Self {
        Self { axis: Some(axis), ..self }
    }

    /// The same with names for its sequences, in their order.
    pub(crate) fn called(self, names: Vec<String>) -> Self {
        Self { names, ..self }
    }

    /// What a sequence is called, if it has a name.
    pub fn name(&self, sequence: usize) -> Option<&str> {
        self.names.get(sequence).map(String::as_str)
    }

    /// Whether the rows of every sequence stand in the order of time.
    pub fn is_sorted(&self) -> bool {
        self.sequences.iter().all(|s| s.rows.iter().flatten().is_sorted())
    }

    /// Steps without a row.
    pub fn n_empty(&self) -> usize {
        self.n_steps() - self.n_rows
    }

    /// In words: what its steps are, from when to when, how many sequences, and how many steps have no row.
    pub(crate) fn words(&self) -> String {
        let (first, last) = self.span();
        let (n, unit) = self.axis.as_ref().map_or((1, "step"), |axis| axis.steps.unit());
        let unit = if n == 1 { unit } else { "step" };
        let several = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let mut words = match &self.axis {
            None => format!("times {first} to {last}"),
            Some(axis) => {
                let steps = axis.steps.words();
                format!("`{}`: {steps}, {} to {}", axis.name, axis.text(first), axis.text(last))
            }
        };
        if self.sequences.len() > 1 {
            words = format!("{words} in {}", several(self.sequences.len(), "sequence"));
        }
        if self.n_empty() > 0 {
            words = format!("{words}, {} without a row", several(self.n_empty(), unit));
        }
        words
    }

    /// What its whole numbers stand for, if they are more than numbers of rows.
    pub fn axis(&self) -> Option<&TimeAxis> {
        self.axis.as_ref()
    }

    /// The time of each row, and the place of its sequence.
    pub fn of_rows(&self) -> Vec<(i64, usize)> {
        let mut out = vec![(0, 0); self.n_rows];
        for (k, sequence) in self.sequences.iter().enumerate() {
            for (step, row) in sequence.rows.iter().enumerate() {
                if let Some(row) = *row {
                    out[row] = (sequence.time(step), k);
                }
            }
        }
        out
    }

    /// The first and the last time of any sequence.
    pub fn span(&self) -> (i64, i64) {
        let last = |s: &Sequence| s.time(s.rows.len().saturating_sub(1));
        let first = self.sequences.iter().map(|s| s.first).min().unwrap_or(0);
        (first, self.sequences.iter().map(last).max().unwrap_or(0))
    }

    /// The times of some of its rows, in the order given; `None` if one of them stands twice.
    pub(super) fn some_rows(&self, rows: &[usize]) -> Option<Self> {
        let every = self.of_rows();
        let (times, sequences): (Vec<i64>, Vec<usize>) = rows.iter().map(|&i| every[i]).unzip();
        let left: BTreeSet<usize> = sequences.iter().copied().collect();
        let names = left.into_iter().filter_map(|k| self.names.get(k).cloned()).collect();
        Some(Self { axis: self.axis.clone(), names, ..Self::new(&times, Some(&sequences)).ok()? })
    }

    /// The times of a table that has a row for every step, sequence by sequence.
    pub(super) fn every_step(&self) -> Self {
        let mut rows = 0..;
        let own = |s: &Sequence| Sequence {
            first: s.first,
            rows: rows.by_ref().take(s.rows.len()).map(Some).collect(),
        };
        let sequences = self.sequences.iter().map(own).collect();
        Self { sequences, n_rows: self.n_steps(), axis: self.axis.clone(), names: self.names.clone() }
    }

    /// Its sequences.
    pub fn sequences(&self) -> &[Sequence] {
        &self.sequences
    }

    /// Rows of the table.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Steps of all sequences together.
    pub fn n_steps(&self) -> usize {
        self.sequences.iter().map(|s| s.rows.len()).sum()
    }

    /// The mean time of the rows.
    pub(crate) fn center(&self) -> f64 {
        let of = |s: &Sequence| {
            let at = s.rows.iter().enumerate().filter(|(_, row)| row.is_some());
            at.map(|(step, _)| s.time(step) as f64).sum::<f64>()
        };
        self.sequences.iter().map(of).sum::<f64>() / self.n_rows as f64
    }

    /// Refuses a table of another number of rows.
    pub(crate) fn check(&self, n_rows: usize) -> Result<(), Error> {
        if n_rows == self.n_rows {
            return Ok(());
        }
        Err(Error::WrongLength { what: "times of rows", expected: n_rows, got: self.n_rows })
    }
}
