//! Columns of numbers that label their rows.

use super::Table;
use super::note::{Note, Pattern};
use super::table::Body;
use crate::Dataset;

/// Rows whose text is looked at for leading zeros.
const LOOKED_AT: usize = 1000;
/// Fewest cells of each pattern: fewer are too easily so by chance.
const FEWEST_PADDED: usize = 3;
const FEWEST_DATES: usize = 3;
const FEWEST_NUMBERED: usize = 5;
const FEWEST_ASCENDING: usize = 10;

impl Table {
    /// Columns of numbers that look like identifiers or dates ([`Pattern`]), unless they were asked for one by one.
    /// Modeled as measurements they add a component that nothing else has a part in, or tie all columns to time.
    ///
    /// ```
    /// use covary::io::{csv, Note, Pattern};
    /// let table = csv::read("zip,day,x\n01067,20240130,3\n04109,20240131,1\n10115,20240201,2\n".as_bytes())?;
    /// let columns = vec![("zip".to_owned(), Pattern::LeadingZeros), ("day".to_owned(), Pattern::Dates)];
    /// assert_eq!(table.identifiers(), Some(Note::Identifiers { columns }));
    /// # Ok::<(), covary::io::Error>(())
    /// ```
    pub fn identifiers(&self) -> Option<Note> {
        if self.chosen {
            return None;
        }
        let padded = self.padded();
        let data = self.dataset();
        let columns: Vec<(String, Pattern)> = (0..data.n_columns())
            .filter_map(|k| {
                let pattern = if padded[k] { Some(Pattern::LeadingZeros) } else { pattern(data, k) };
                pattern.map(|pattern| (data.column_names()[k].clone(), pattern))
            })
            .collect();
        (!columns.is_empty()).then_some(Note::Identifiers { columns })
    }

    /// Which columns of the dataset hold whole numbers that begin with zeros.
    fn padded(&self) -> Vec<bool> {
        let data = self.dataset();
        let mut columns: Vec<(usize, usize)> = self.numeric_columns().into_iter().enumerate().collect();
        let mut padded = vec![false; data.n_columns()];
        let Body::Text(text) = &self.body else { return padded };
        let rows = data.n_rows().min(LOOKED_AT);
        let mut seen = vec![0; data.n_columns()];
        for i in 0..rows {
            columns.retain(|&(k, j)| {
                if data.row(i)[k].is_nan() {
                    return true;
                }
                let cell = text.cell(i, j);
                let cell = cell.trim_ascii();
                seen[k] += 1;
                padded[k] |= cell.len() > 1 && cell[0] == b'0';
                cell.iter().all(u8::is_ascii_digit)
            });
        }
        let alive: Vec<bool> = (0..data.n_columns())
            .map(|k| columns.iter().any(|c| c.0 == k) && seen[k] >= FEWEST_PADDED)
            .collect();
        padded.iter().zip(alive).map(|(&padded, alive)| padded && alive).collect()
    }
}

/// Columns of numbers that look like identifiers or dates in some rows of a table, by their values alone.
pub(super) fn of_rows(data: &Dataset) -> Option<Note> {
    let named = |k: usize| Some((data.column_names()[k].clone(), pattern(data, k)?));
    let columns: Vec<(String, Pattern)> = (0..data.n_columns()).filter_map(named).collect();
    (!columns.is_empty()).then_some(Note::Identifiers { columns })
}

/// What the numbers of a column look like.
fn pattern(data: &Dataset, column: usize) -> Option<Pattern> {
    let (n, value) = (data.n_rows(), |i: usize| data.row(i)[column]);
    let mut observed = (0..n).map(value).filter(|v| !v.is_nan());
    if n >= FEWEST_DATES
        && observed.clone().take(FEWEST_DATES).count() == FEWEST_DATES
        && observed.all(is_date)
    {
        return Some(Pattern::Dates);
    }
    let first = value(0);
    let numbered = || (first == 0.0 || first == 1.0) && (1..n).all(|i| value(i) == first + i as f64);
    let ascends =
        || first.fract() == 0.0 && (1..n).all(|i| value(i).fract() == 0.0 && value(i) > value(i - 1));
    match n {
        FEWEST_NUMBERED.. if numbered() => Some(Pattern::RowNumbers),
        FEWEST_ASCENDING.. if ascends() => Some(Pattern::Ascending),
        _ => None,
    }
}

/// Whether a number is a day of this or the last two centuries, written 20240131.
fn is_date(value: f64) -> bool {
    if value.fract() != 0.0 || !(18_000_101.0..=21_001_231.0).contains(&value) {
        return false;
    }
    let day = value as u32;
    (1..=12).contains(&(day / 100 % 100)) && (1..=31).contains(&(day % 100))
}
