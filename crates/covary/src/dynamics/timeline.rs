//! When rows happened: sequences of steps of equal length.

use crate::Error;
use std::collections::BTreeMap;

/// Steps without a row that a timeline may have for each that has one. Beyond it times are more likely in another unit,
/// such as seconds for daily rows, than that sparse.
const EMPTY_STEPS_PER_ROW: u64 = 1000;

/// The times of the rows of a table, as whole numbers of steps, in one or several sequences that know nothing of each
/// other. Rows may stand in any order; a time without a row is a step at which nothing was observed.
///
/// ```
/// use covary::dynamics::Timeline;
/// let timeline = Timeline::new(&[3, 1, 0], None)?;             // nothing at time 2
/// assert_eq!(timeline.sequences()[0].rows(), [Some(2), Some(1), None, Some(0)]);
/// assert!(Timeline::new(&[3, 1, 3], None).is_err());           // two rows at one time
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    sequences: Vec<Sequence>,
    n_rows: usize,
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
    pub(super) fn time(&self, step: usize) -> i64 {
        self.first + step as i64
    }
}

impl Timeline {
    /// One sequence: row `i` at time `i`.
    pub fn regular(n_rows: usize) -> Self {
        Self { sequences: vec![Sequence { first: 0, rows: (0..n_rows).map(Some).collect() }], n_rows }
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
        Ok(Self { sequences, n_rows })
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
    pub(super) fn center(&self) -> f64 {
        let of = |s: &Sequence| {
            let at = s.rows.iter().enumerate().filter(|(_, row)| row.is_some());
            at.map(|(step, _)| s.time(step) as f64).sum::<f64>()
        };
        self.sequences.iter().map(of).sum::<f64>() / self.n_rows as f64
    }

    /// Refuses a table of another number of rows.
    pub(super) fn check(&self, n_rows: usize) -> Result<(), Error> {
        if n_rows == self.n_rows {
            return Ok(());
        }
        Err(Error::WrongLength { what: "times of rows", expected: n_rows, got: self.n_rows })
    }
}
