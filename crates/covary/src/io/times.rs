//! When the rows of a table happened, by a column of dates, moments or numbers.

use super::error::{Place, shown};
use super::table::Body;
use super::{Error, Gaps, Note, Table, columns_named};
use crate::data::{Moment, Steps, TimeAxis, Timeline};
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};
use std::collections::{BTreeSet, HashMap};

/// Dates as people write them so that no two of them mean the same.
const DATES: [&str; 2] = ["%Y-%m-%d", "%Y/%m/%d"];
const MONTHS: [&str; 6] = ["%Y-%m", "%Y/%m", "%YM%m", "%YQ%q", "%Y-Q%q", "%Y Q%q"];
/// Times of the day, and zones. Moments of a zone are kept in UTC.
const CLOCKS: [&str; 2] = ["%H:%M:%S%.f", "%H:%M"];
const ZONES: [&str; 3] = ["", "Z", "%:z"];
/// Years of whole numbers such as 20200131 and 202001.
const YEARS: std::ops::RangeInclusive<i64> = 1500..=2200;

/// Rows that are looked at to see whether a column has dates, and fewest of them.
const LOOKED_AT: usize = 1000;
const FEWEST_ROWS: usize = 5;

/// Where to find when rows happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeColumns<'a> {
    /// The column of times.
    pub time: &'a str,
    /// The column that tells sequences apart, if there are several.
    pub sequences: Option<&'a str>,
    /// The steps of a model that is asked about the table; if `None`, those that the times show.
    pub steps: Option<Steps>,
}

impl Table {
    /// Says when its rows happened: its [`dataset`](Self::dataset) is [in time](crate::Dataset::in_time) then. Columns are
    /// named as for [`ColumnChoice`](super::ColumnChoice). Dates are written 2020-01-31, months 2020-01 or 2020M01, quarters 2020Q1, moments
    /// 2020-01-31T12:00, all else as numbers; what the steps are is [noted](Self::notes).
    ///
    /// ```
    /// use covary::io::{csv, Gaps, TimeColumns};
    /// let text = "month,x\n2020-11,3\n2021-02,1\n2020-12,2\n".as_bytes();
    /// let columns = TimeColumns { time: "month", sequences: None, steps: None };
    /// let table = csv::read(text)?.in_time(&columns, &Gaps::default())?;
    /// let times = table.dataset().timeline().unwrap();
    /// assert_eq!(times.sequences()[0].rows(), [Some(0), Some(2), None, Some(1)]);
    /// assert_eq!(table.notes()[0].to_string(), "`month`: monthly, 2020-11 to 2021-02, 1 month without a row; rows are not in the order of time, which they leave in all the same");
    /// # Ok::<(), covary::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownColumn`] for a column that is not there, [`Error::NoTime`] and [`Error::NotATime`] for a cell that is none,
    /// [`Error::SameTime`] for two rows of a sequence, [`Error::OffStep`] for a time between two steps of a model, and
    /// [`Error::Request`] for irregular times.
    pub fn in_time(mut self, columns: &TimeColumns<'_>, gaps: &Gaps) -> Result<Self, Error> {
        let time = self.one_column(columns.time)?;
        let group = columns.sequences.map(|name| self.one_column(name)).transpose()?;
        let texts = self.texts(time, gaps)?;
        let (moments, notation) = self.moments(time, &texts)?;
        let (sequences, names) = match group {
            None => (vec![0; texts.len()], Vec::new()),
            Some(group) => numbered(self.texts(group, gaps)?),
        };
        let rows: Vec<(Moment, usize)> = moments.iter().copied().zip(sequences.iter().copied()).collect();
        let steps = match columns.steps {
            Some(steps) => steps,
            None => Steps::of(&rows)?,
        };
        let place = |(row, moment): (usize, &Moment)| {
            steps.place(*moment).ok_or_else(|| Error::OffStep {
                place: self.place(row),
                column: self.names[time].clone(),
                text: shown(texts[row].as_bytes()),
                steps: steps.words(),
            })
        };
        let times: Vec<i64> = moments.iter().enumerate().map(place).collect::<Result<_, _>>()?;
        let timeline = Timeline::new(&times, Some(&sequences)).map_err(|error| match error {
            crate::Error::RepeatedTime { rows: (first, second), .. } => Error::SameTime {
                first: self.place(first - 1),
                second: self.place(second - 1),
                column: self.names[time].clone(),
                text: shown(texts[second - 1].as_bytes()),
                in_sequences: group.is_some(),
            },
            other => other.into(),
        })?;
        let name = |column: usize| self.names[column].clone();
        let axis = TimeAxis { name: name(time), sequences: group.map(name), steps, notation };
        let timeline = timeline.on(axis).called(names);
        self.notes.push(Note::Times { words: timeline.words(), sorted: timeline.is_sorted() });
        self.data = self.data.in_time(timeline)?;
        Ok(self)
    }

    /// The first column kept aside whose cells are dates or moments, no two of them the same: rows may follow each other.
    pub fn column_of_dates(&self) -> Option<&str> {
        let is_dates = |&column: &usize| {
            let rows = self.n_rows().min(LOOKED_AT);
            let texts: Vec<String> = (0..rows).map(|row| self.text(row, column).trim().to_owned()).collect();
            let first = texts.first()?;
            let notation = notations().find(|notation| parsed(first, notation).is_some())?;
            let moment = |text: &String| match parsed(text, &notation)? {
                Moment::Clock(at) => Some(at),
                Moment::Number(_) => None,
            };
            let moments: BTreeSet<i64> = texts.iter().map(moment).collect::<Option<_>>()?;
            (rows >= FEWEST_ROWS && moments.len() == rows).then_some(())
        };
        let dated = self.columns_aside().into_iter().find(|column| is_dates(column).is_some());
        dated.map(|column| self.names[column].as_str())
    }

    /// The column of that name or number.
    pub(super) fn one_column(&self, name: &str) -> Result<usize, Error> {
        match columns_named(&[name.to_owned()], &self.names)?.as_slice() {
            [column] => Ok(*column),
            _ => Err(Error::UnknownColumn { name: name.to_owned(), known: self.names.clone() }),
        }
    }

    /// What the cells of a column say, none of which may be missing.
    pub(super) fn texts(&self, column: usize, gaps: &Gaps) -> Result<Vec<String>, Error> {
        let text = |row: usize| {
            let text = self.text(row, column).trim().to_owned();
            let missing = || Error::NoTime { place: self.place(row), column: self.names[column].clone() };
            if gaps.is_gap(&text) { Err(missing()) } else { Ok(text) }
        };
        (0..self.n_rows()).map(text).collect()
    }

    pub(super) fn place(&self, row: usize) -> Place {
        match &self.body {
            Body::Text(text) => text.place(row),
            _ => Place { row: row + 1, line: None },
        }
    }

    /// The moments that texts of a column name, all in the notation of the first.
    fn moments(&self, column: usize, texts: &[String]) -> Result<(Vec<Moment>, String), Error> {
        let refused = |row: usize, like: &String| Error::NotATime {
            place: self.place(row),
            column: self.names[column].clone(),
            text: shown(texts[row].as_bytes()),
            like: (row > 0).then(|| shown(like.as_bytes())),
        };
        let first = &texts[0];
        let number = |text: &String| {
            let text = if self.has_decimal_comma() { text.replace(',', ".") } else { text.clone() };
            text.parse().ok().filter(|v: &f64| v.is_finite())
        };
        if number(first).is_some() {
            for compact in ["%Y%m%d", "%Y%m"] {
                let width = if compact.len() > 4 { 8 } else { 6 };
                let whole = |text: &String| {
                    let year = text.get(..4)?.parse().ok()?;
                    (text.len() == width && YEARS.contains(&year)).then(|| parsed(text, compact))?
                };
                if let Some(moments) = texts.iter().map(whole).collect::<Option<Vec<Moment>>>() {
                    return Ok((moments, compact.to_owned()));
                }
            }
            let one = |(row, text)| number(text).map(Moment::Number).ok_or_else(|| refused(row, first));
            return Ok((texts.iter().enumerate().map(one).collect::<Result<_, _>>()?, String::new()));
        }
        let notation = notations().find(|n| parsed(first, n).is_some()).ok_or_else(|| refused(0, first))?;
        let one = |(row, text): (usize, &String)| parsed(text, &notation).ok_or_else(|| refused(row, first));
        let moments = texts.iter().enumerate().map(one).collect::<Result<_, _>>()?;
        Ok((moments, notation.replace("%:z", "+00:00")))
    }
}

/// Every notation that is understood.
fn notations() -> impl Iterator<Item = String> {
    let moments = DATES.into_iter().flat_map(|date| {
        [' ', 'T'].into_iter().flat_map(move |between| {
            CLOCKS.into_iter().flat_map(move |clock| {
                ZONES.into_iter().map(move |zone| format!("{date}{between}{clock}{zone}"))
            })
        })
    });
    DATES.into_iter().chain(MONTHS).map(str::to_owned).chain(moments)
}

/// The moment that a text names in a notation; a month and a quarter begin with their first day.
fn parsed(text: &str, notation: &str) -> Option<Moment> {
    let midnight = |date: NaiveDate| date.and_time(NaiveTime::MIN);
    let at = if let Some(before) = notation.strip_suffix("%q") {
        let (year, quarter) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let quarter: u32 = quarter.parse().ok().filter(|q| (1..=4).contains(q))?;
        midnight(
            NaiveDate::parse_from_str(&format!("{year}{}-1", 3 * quarter - 2), &format!("{before}%m-%d"))
                .ok()?,
        )
    } else if notation.ends_with("%:z") {
        DateTime::parse_from_str(text, notation).ok()?.naive_utc()
    } else if notation.contains("%H") {
        NaiveDateTime::parse_from_str(text, notation).ok()?
    } else if notation.contains("%d") {
        midnight(NaiveDate::parse_from_str(text, notation).ok()?)
    } else {
        midnight(NaiveDate::parse_from_str(&format!("{text}-1"), &format!("{notation}-%d")).ok()?)
    };
    Some(Moment::Clock(at.and_utc().timestamp_micros()))
}

/// Texts numbered in the order they first come, and each of them once.
pub(super) fn numbered(texts: Vec<String>) -> (Vec<usize>, Vec<String>) {
    let mut numbers = HashMap::new();
    let mut names = Vec::new();
    let number = |text: String| {
        *numbers.entry(text).or_insert_with_key(|text| {
            names.push(text.clone());
            names.len() - 1
        })
    };
    let of_rows = texts.into_iter().map(number).collect();
    (of_rows, names)
}
