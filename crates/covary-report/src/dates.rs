//! Times on an axis, as people write them.

use crate::layout::Axis;
use crate::scale::{Scale, Tick};
use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveDateTime, NaiveTime};
use covary::data::{Moment, TimeAxis};
use serde::{Deserialize, Serialize};

/// What times are, whatever the figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The column of times; `row` where rows were only counted.
    pub name: String,
    /// Whether [`Instant::at`] counts seconds since the beginning of 1970, by the clock of the table.
    pub dated: bool,
    /// What a step is called: `month`, or `step` if it is no unit of its own.
    pub step: String,
}

/// A time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Instant {
    /// As the table writes it.
    pub time: String,
    /// Its place: seconds, the number it is, or that of the row, from 1.
    pub at: f64,
}

impl Times {
    /// Those of a table.
    pub(crate) fn of(axis: Option<&TimeAxis>) -> Self {
        let Some(axis) = axis else {
            return Self { name: "row".to_owned(), dated: false, step: "row".to_owned() };
        };
        let (n, unit) = axis.steps.unit();
        Self {
            name: axis.name.clone(),
            dated: matches!(axis.steps.moment(0), Moment::Clock(_)),
            step: if n == 1 { unit } else { "step" }.to_owned(),
        }
    }

    /// The axis of a panel from one time to another.
    pub(crate) fn axis(&self, from: f64, to: f64, room: f64) -> Axis {
        let scale = Scale::over([from, to], false);
        if !self.dated {
            let ticks = scale.ticks((room / 56.0).clamp(2.0, 8.0) as usize);
            // A time is counted, not measured: 1981 is no round 2k.
            let whole = ticks.iter().all(|tick| tick.value.fract() == 0.0 && tick.value.abs() < 1e6);
            let plain = |tick: Tick| Tick { text: crate::scale::minus(&format!("{}", tick.value)), ..tick };
            let ticks = if whole { ticks.into_iter().map(plain).collect() } else { ticks };
            return Axis { ticks: Some(ticks), ..Axis::new(scale, &*self.name) };
        }
        let unit = Unit::of(to - from, (room / 74.0).clamp(2.0, 10.0));
        let ticks = unit.ticks(from, to);
        let name = match unit.rest(from, to) {
            None => self.name.clone(),
            Some(rest) => format!("{}, {rest}", self.name),
        };
        Axis { ticks: Some(ticks), ..Axis::new(scale, name) }
    }
}

impl Instant {
    /// A time of a table.
    pub(crate) fn of(axis: Option<&TimeAxis>, time: i64) -> Self {
        let Some(axis) = axis else { return Self { time: (time + 1).to_string(), at: (time + 1) as f64 } };
        let at = match axis.steps.moment(time) {
            Moment::Number(number) => number,
            Moment::Clock(micros) => micros as f64 / 1e6,
        };
        Self { time: axis.text(time), at }
    }
}

/// What lies between two ticks.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Seconds(f64),
    Months(u32),
}

const DAY: f64 = 86_400.0;
/// Seconds that clocks are read in.
const CLOCK: [f64; 22] = [
    0.001,
    0.01,
    0.1,
    1.0,
    2.0,
    5.0,
    10.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
    1800.0,
    3600.0,
    7200.0,
    10_800.0,
    21_600.0,
    43_200.0,
    DAY,
    2.0 * DAY,
    7.0 * DAY,
    14.0 * DAY,
];
/// Months that calendars are read in.
const CALENDAR: [u32; 13] = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 12_000];

impl Unit {
    /// The shortest of which at most this many make the span.
    fn of(span: f64, most: f64) -> Self {
        let seconds = CLOCK.into_iter().find(|unit| span / unit <= most);
        // Years are short.
        let most_of = |unit: u32| if unit.is_multiple_of(12) { 1.5 * most } else { most };
        let months =
            || CALENDAR.into_iter().find(|&unit| span / (f64::from(unit) * 30.4 * DAY) <= most_of(unit));
        seconds.map_or_else(|| Self::Months(months().unwrap_or(120_000)), Self::Seconds)
    }

    fn ticks(self, from: f64, to: f64) -> Vec<Tick> {
        match self {
            Self::Seconds(unit) => {
                // The first day of 1970 was a Thursday; weeks begin on Mondays.
                let origin = if unit >= 7.0 * DAY { 4.0 * DAY } else { 0.0 };
                let (first, last) =
                    (((from - origin) / unit).ceil() as i64, ((to - origin) / unit).floor() as i64);
                (first..=last)
                    .map(|k| origin + k as f64 * unit)
                    .map(|value| Tick { value, text: self.text(value) })
                    .collect()
            }
            Self::Months(unit) => {
                let Some(begin) = calendar(from) else { return Vec::new() };
                let month = (begin.year() * 12 + begin.month0() as i32).div_euclid(unit as i32) * unit as i32;
                let first = NaiveDate::from_ymd_opt(month.div_euclid(12), month.rem_euclid(12) as u32 + 1, 1);
                std::iter::successors(first, |date| date.checked_add_months(Months::new(unit)))
                    .map(|date| date.and_time(NaiveTime::MIN).and_utc().timestamp() as f64)
                    .skip_while(|&value| value < from)
                    .take_while(|&value| value <= to)
                    .map(|value| Tick { value, text: self.text(value) })
                    .collect()
            }
        }
    }

    fn text(self, value: f64) -> String {
        let notation = match self {
            Self::Months(unit) if unit.is_multiple_of(12) => "%Y",
            Self::Months(_) => "%b %Y",
            Self::Seconds(_) if value.rem_euclid(DAY) == 0.0 => "%-d %b",
            Self::Seconds(unit) if unit >= 60.0 => "%H:%M",
            Self::Seconds(unit) if unit >= 1.0 => "%H:%M:%S",
            Self::Seconds(_) => "%H:%M:%S%.3f",
        };
        written(value, notation)
    }

    /// What ticks leave unsaid: the years of days, the day of hours.
    fn rest(self, from: f64, to: f64) -> Option<String> {
        let Self::Seconds(unit) = self else { return None };
        let notation = if unit < DAY { "%-d %b %Y" } else { "%Y" };
        let (first, last) = (written(from, notation), written(to, notation));
        Some(if first == last { first } else { format!("{first} – {last}") })
    }
}

fn calendar(at: f64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp_micros((at * 1e6).round() as i64).map(|at| at.naive_utc())
}

fn written(at: f64, notation: &str) -> String {
    calendar(at).map_or(String::new(), |at| at.format(notation).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> f64 {
        let time: NaiveDateTime = text.parse().expect("a time");
        time.and_utc().timestamp() as f64
    }

    fn shown(from: &str, to: &str, room: f64) -> (Vec<String>, String) {
        let times = Times { name: "when".to_owned(), dated: true, step: "step".to_owned() };
        let axis = times.axis(at(from), at(to), room);
        (axis.ticks.expect("dates").into_iter().map(|tick| tick.text).collect(), axis.name)
    }

    #[test]
    fn times_are_written_as_people_do() {
        let day = "T00:00:00";
        let (ticks, name) = shown(&format!("1981-03-01{day}"), &format!("2001-03-01{day}"), 400.0);
        assert_eq!((ticks.join(" "), name.as_str()), ("1985 1990 1995 2000".to_owned(), "when"));
        let (ticks, _) = shown(&format!("2019-11-15{day}"), &format!("2020-12-15{day}"), 400.0);
        assert_eq!(ticks, ["Jan 2020", "Apr 2020", "Jul 2020", "Oct 2020"]);
        let (ticks, name) = shown(&format!("2020-02-27{day}"), &format!("2020-03-03{day}"), 400.0);
        assert_eq!(
            (ticks.join(", "), name.as_str()),
            ("27 Feb, 28 Feb, 29 Feb, 1 Mar, 2 Mar, 3 Mar".to_owned(), "when, 2020").clone()
        );
        let (ticks, name) = shown("2020-02-27T20:00:00", "2020-02-28T09:30:00", 400.0);
        assert_eq!(ticks, ["21:00", "28 Feb", "03:00", "06:00", "09:00"]);
        assert_eq!(name, "when, 27 Feb 2020 – 28 Feb 2020");
        let (ticks, _) = shown("2020-02-27T20:00:00", "2020-02-27T20:01:00", 300.0);
        assert_eq!(ticks, ["20:00:00", "20:00:30", "20:01:00"]);
        // Centuries, and a span no longer than a moment.
        assert_eq!(shown("0850-01-01T00:00:00", "1990-01-01T00:00:00", 400.0).0, ["1000", "1500"]);
        assert_eq!(shown("2020-01-01T00:00:00", "2020-01-01T00:00:00", 400.0).0, ["1 Jan"]);
    }

    #[test]
    fn years_that_are_numbers_stay_whole() {
        let times = Times { name: "year".to_owned(), dated: false, step: "step".to_owned() };
        let axis = times.axis(1950.0, 2020.0, 300.0);
        let texts: Vec<String> = axis.ticks.expect("numbers").into_iter().map(|tick| tick.text).collect();
        assert_eq!(texts, ["1960", "1980", "2000", "2020"]);
        let axis = times.axis(9000.0, 21_000.0, 300.0);
        let texts: Vec<String> = axis.ticks.expect("numbers").into_iter().map(|tick| tick.text).collect();
        assert_eq!(texts, ["10000", "12000", "14000", "16000", "18000", "20000"]);
    }
}
