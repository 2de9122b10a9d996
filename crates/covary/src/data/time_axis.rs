//! What the whole numbers of a [`Timeline`](super::Timeline) stand for.

use crate::Error;
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime};
use serde::{Deserialize, Serialize};

/// Microseconds.
const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// Steps that may lie between most rows. Beyond it the common step of the times is an accident, as between the first working
/// days of months.
const STEPS_BETWEEN_ROWS: f64 = 20.0;
/// How far decimal fractions may be off their step, in steps: `1981.083` is a month after `1981`.
const OFF_STEP: f64 = 0.05;

/// A moment, as a table has it.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub enum Moment {
    /// A plain number, such as a year.
    Number(f64),
    /// Microseconds since the beginning of 1970, by the clock of the table.
    Clock(i64),
}

/// Steps of equal length, of which the one at time 0 is known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "unit", rename_all = "snake_case")]
pub enum Steps {
    /// Of a number.
    Numbers {
        /// The number at time 0.
        origin: f64,
        /// From one to the next.
        step: f64,
    },
    /// Of the calendar, whose months have different lengths.
    Months {
        /// The month at time 0, from January of the year 0 on.
        origin: i64,
        /// Months from one to the next.
        step: i64,
        /// The day of the month, or its last where it has fewer.
        day: u32,
    },
    /// Of the clock, in microseconds.
    #[serde(rename = "microseconds")]
    Clock {
        /// The moment at time 0.
        origin: i64,
        /// From one to the next.
        step: i64,
    },
}

/// What the whole numbers of a [`Timeline`](super::Timeline) stand for, and what people call it.
///
/// ```
/// use covary::data::{Moment, Steps, TimeAxis};
/// let day = |n: i64| Moment::Clock(n * 86_400_000_000);
/// // 1 January, 1 February and 1 April of 1970: a month is missing.
/// let steps = Steps::of(&[(day(0), 0), (day(31), 0), (day(90), 0)])?;
/// assert_eq!(steps.words(), "monthly");
/// let axis = TimeAxis { name: "date".to_owned(), sequences: None, steps, notation: "%Y-%m".to_owned() };
/// let first = axis.steps.place(day(0)).unwrap();
/// assert_eq!(axis.steps.place(day(90)), Some(first + 3));
/// assert_eq!(axis.text(first + 12), "1971-01");
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimeAxis {
    /// The column of times.
    #[serde(rename = "column")]
    pub name: String,
    /// The column that names sequences, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequences: Option<String>,
    /// How moments are written: as the crate chrono formats a date and a time, `%q` being the quarter; not looked at for
    /// numbers.
    pub notation: String,
    /// Its steps.
    pub steps: Steps,
}

impl TimeAxis {
    /// A time in the notation of the table.
    pub fn text(&self, time: i64) -> String {
        self.steps.moment(time).text(&self.notation)
    }
}

impl Moment {
    /// In a notation; a moment that no calendar reaches as its number.
    pub fn text(self, notation: &str) -> String {
        match self {
            Self::Number(number) => format!("{number}"),
            Self::Clock(at) => match calendar(at) {
                Some(at) => at.format(&notation.replace("%q", &at.quarter().to_string())).to_string(),
                None => at.to_string(),
            },
        }
    }
}

fn calendar(at: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp_micros(at).map(|at| at.naive_utc())
}

/// The month of a moment, from January of the year 0 on, its day, and whether that is the last of the month.
fn month(at: i64) -> Option<(i64, u32, bool)> {
    let date = calendar(at)?.date();
    let last = date.succ_opt().is_none_or(|next| next.day() == 1);
    Some((i64::from(date.year()) * 12 + i64::from(date.month0()), date.day(), last))
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

/// The common step of whole numbers.
fn common(mut of: impl Iterator<Item = i64>) -> i64 {
    let Some(first) = of.next() else { return 0 };
    of.fold(0, |step, at| gcd(step, at.saturating_sub(first)))
}

/// Rows that follow each other in a sequence, and how far apart they are.
struct Apart {
    rows: (usize, usize),
    by: f64,
}

impl Steps {
    /// The longest step that all moments are multiples of from each other: of the calendar if it can be, else of the clock.
    /// Each row has its moment and the number of its sequence.
    ///
    /// # Errors
    /// [`Error::NothingFollows`] where no row follows another, [`Error::IrregularTimes`] where rows are not whole steps
    /// apart, or too many of them for the step to be more than an accident.
    pub fn of(rows: &[(Moment, usize)]) -> Result<Self, Error> {
        let clock: Option<Vec<i64>> = rows
            .iter()
            .map(|(moment, _)| match *moment {
                Moment::Clock(at) => Some(at),
                Moment::Number(_) => None,
            })
            .collect();
        let steps = match clock {
            Some(clock) => Self::of_months(&clock).unwrap_or_else(|| {
                let step = common(clock.iter().copied()).max(1);
                Self::Clock { origin: clock.first().map_or(0, |at| at.rem_euclid(step)), step }
            }),
            None => Self::of_numbers(rows)?,
        };
        let apart = steps.apart(rows);
        if apart.is_empty() {
            let sequences = rows.iter().map(|(_, sequence)| sequence).max().map_or(0, |s| s + 1);
            return Err(Error::NothingFollows { sequences });
        }
        let mut by: Vec<f64> = apart.iter().map(|apart| apart.by).collect();
        by.sort_by(f64::total_cmp);
        if by[by.len() / 2] > STEPS_BETWEEN_ROWS {
            return Err(irregular(&steps, &apart));
        }
        Ok(steps)
    }

    /// If all stand at one day of the month, or at its last, and one time of the day.
    fn of_months(clock: &[i64]) -> Option<Self> {
        let months: Vec<(i64, u32, bool)> = clock.iter().map(|&at| month(at)).collect::<Option<_>>()?;
        let latest = months.iter().map(|m| m.1).max()?;
        let same = months.iter().all(|&(_, day, last)| day == latest || (last && day < latest));
        let step = common(months.iter().map(|m| m.0));
        let one_time = clock.iter().all(|at| at.rem_euclid(DAY) == 0);
        (same && one_time && step > 0).then(|| {
            let day = if months.iter().all(|m| m.2) { 31 } else { latest };
            Self::Months { origin: months[0].0.rem_euclid(step), step, day }
        })
    }

    fn of_numbers(rows: &[(Moment, usize)]) -> Result<Self, Error> {
        let value = |moment: Moment| match moment {
            Moment::Number(number) => number,
            Moment::Clock(at) => at as f64,
        };
        let numbers: Vec<f64> = rows.iter().map(|(moment, _)| value(*moment)).collect();
        // Beyond 2⁵³ neighboring whole numbers are no longer told apart.
        if numbers.iter().all(|v| v.fract() == 0.0 && v.abs() < 9_007_199_254_740_992.0) {
            let step = common(numbers.iter().map(|v| *v as i64)).max(1);
            let origin = numbers.first().map_or(0, |v| (*v as i64).rem_euclid(step));
            return Ok(Self::Numbers { origin: origin as f64, step: step as f64 });
        }
        let origin = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let unit = Self::Numbers { origin, step: 1.0 };
        let apart = unit.apart(rows);
        let least = apart.iter().map(|apart| apart.by).fold(f64::INFINITY, f64::min);
        // The least distance may be two steps where the others are two and three.
        for parts in 1..=4 {
            let rough = least / f64::from(parts);
            let (sum, count) =
                apart.iter().fold((0.0, 0.0), |(s, n), apart| (s + apart.by, n + (apart.by / rough).round()));
            let steps = Self::Numbers { origin, step: sum / count };
            if numbers.iter().all(|&number| steps.place(Moment::Number(number)).is_some()) {
                return Ok(steps);
            }
        }
        if apart.is_empty() { Ok(unit) } else { Err(irregular(&unit, &apart)) }
    }

    /// How many steps rows are apart that follow each other in a sequence.
    fn apart(&self, rows: &[(Moment, usize)]) -> Vec<Apart> {
        let at = |row: usize| match (*self, rows[row].0) {
            (Self::Numbers { origin, step }, Moment::Number(number)) => (number - origin) / step,
            (_, moment) => self.place(moment).map_or(0.0, |place| place as f64),
        };
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by(|&a, &b| rows[a].1.cmp(&rows[b].1).then(at(a).total_cmp(&at(b))));
        let pair = |pair: &[usize]| {
            let (before, after) = (pair[0], pair[1]);
            let by = at(after) - at(before);
            (rows[before].1 == rows[after].1 && by > 0.0).then_some(Apart { rows: (before, after), by })
        };
        order.windows(2).filter_map(pair).collect()
    }

    /// The time of a moment; `None` between two steps. In months, whichever day of the month.
    pub fn place(&self, moment: Moment) -> Option<i64> {
        let whole = |from: i64, step: i64| (from % step == 0).then_some(from / step);
        match (*self, moment) {
            (Self::Numbers { origin, step }, Moment::Number(number)) => {
                let place = (number - origin) / step;
                let near = (place - place.round()).abs() <= OFF_STEP && place.abs() < 9e15;
                near.then_some(place.round() as i64)
            }
            (Self::Months { origin, step, .. }, Moment::Clock(at)) => {
                whole(month(at)?.0.checked_sub(origin)?, step)
            }
            (Self::Clock { origin, step }, Moment::Clock(at)) => whole(at.checked_sub(origin)?, step),
            _ => None,
        }
    }

    /// The moment of a time; the last that the calendar reaches where it reaches no further.
    pub fn moment(&self, time: i64) -> Moment {
        match *self {
            Self::Numbers { origin, step } => Moment::Number(origin + time as f64 * step),
            Self::Months { origin, step, day } => {
                let month = time.saturating_mul(step).saturating_add(origin);
                let year = i32::try_from(month.div_euclid(12)).unwrap_or(i32::MAX);
                let of_month = |day: u32| NaiveDate::from_ymd_opt(year, month.rem_euclid(12) as u32 + 1, day);
                let date = (28..=day.max(28)).rev().find_map(of_month).filter(|_| day >= 28);
                let date = date.or_else(|| of_month(day)).unwrap_or(NaiveDate::MAX);
                Moment::Clock(date.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_micros())
            }
            Self::Clock { origin, step } => Moment::Clock(time.saturating_mul(step).saturating_add(origin)),
        }
    }

    /// In words: `monthly`, `every 15 minutes`, `in steps of 0.5`.
    pub fn words(&self) -> String {
        match (self.unit(), *self) {
            (_, Self::Numbers { step, .. }) => format!("in steps of {step}"),
            ((1, unit), _) => match unit {
                "day" => "daily".to_owned(),
                "hour" | "week" | "month" | "quarter" | "year" => format!("{unit}ly"),
                unit => format!("every {unit}"),
            },
            ((n, unit), _) => format!("every {n} {unit}s"),
        }
    }

    /// What a step is: a number of units.
    pub fn unit(&self) -> (i64, &'static str) {
        let units: &[(i64, &str)] = match self {
            Self::Numbers { .. } => return (1, "step"),
            Self::Months { .. } => &[(12, "year"), (3, "quarter"), (1, "month")],
            Self::Clock { .. } => &[
                (7 * DAY, "week"),
                (DAY, "day"),
                (3600 * SECOND, "hour"),
                (60 * SECOND, "minute"),
                (SECOND, "second"),
                (1000, "millisecond"),
                (1, "microsecond"),
            ],
        };
        let (Self::Months { step, .. } | Self::Clock { step, .. }) = *self else { return (1, "step") };
        let fits = |&&(of, _): &&(i64, &str)| step % of == 0;
        units.iter().find(fits).map_or((step, "step"), |&(of, unit)| (step / of, unit))
    }
}

/// Two distances between rows that no step explains, as people count them.
fn irregular(steps: &Steps, apart: &[Apart]) -> Error {
    let (of, unit) = steps.unit();
    let say = |apart: &Apart| (apart.rows.0 + 1, apart.rows.1 + 1, apart.by * of as f64);
    let first = &apart[0];
    let other = apart.iter().find(|other| (other.by - first.by).abs() > OFF_STEP).unwrap_or(first);
    Error::IrregularTimes { first: say(first), second: say(other), unit }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dates(texts: &[&str]) -> Vec<(Moment, usize)> {
        let at = |text: &str| {
            let date: NaiveDate = text.parse().expect("a date");
            Moment::Clock(date.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_micros())
        };
        texts.iter().map(|text| (at(text), 0)).collect()
    }

    fn numbers(values: &[f64]) -> Vec<(Moment, usize)> {
        values.iter().map(|&v| (Moment::Number(v), 0)).collect()
    }

    #[test]
    fn months_quarters_and_years_are_regular() {
        let cases: [(&[&str], &str); 6] = [
            (&["2020-01-15", "2020-02-15", "2020-03-15"], "monthly"),
            (&["2020-01-31", "2020-02-29", "2020-04-30"], "monthly"),
            (&["2020-01-30", "2020-02-29", "2020-03-30"], "monthly"),
            (&["2019-03-31", "2019-06-30", "2019-12-31"], "quarterly"),
            (&["1990-01-01", "1991-01-01", "2000-01-01"], "yearly"),
            (&["2020-01-06", "2020-01-13", "2020-02-03"], "weekly"),
        ];
        for (texts, words) in cases {
            let (rows, notation) = (dates(texts), "%Y-%m-%d");
            let steps = Steps::of(&rows).unwrap();
            assert_eq!(steps.words(), words);
            for ((moment, _), text) in rows.iter().zip(texts) {
                let place = steps.place(*moment).unwrap();
                assert_eq!(steps.moment(place).text(notation), *text);
            }
        }
        assert_eq!(Steps::of(&dates(&["2020-01-01", "2020-01-02", "2020-01-05"])).unwrap().words(), "daily");
    }

    #[test]
    fn the_time_of_a_month_does_not_depend_on_where_the_table_begins() {
        let (early, late) = (dates(&["1999-11-01", "1999-12-01"]), dates(&["2020-02-01", "2020-03-01"]));
        let (early, steps) = (Steps::of(&early).unwrap(), Steps::of(&late).unwrap());
        assert_eq!(early, steps);
        // January is the first of the twelve.
        assert_eq!(steps.place(dates(&["2020-01-01"])[0].0).unwrap().rem_euclid(12), 0);
    }

    #[test]
    fn decimal_years_are_months() {
        let rounded: Vec<f64> = (0..40)
            .filter(|k| k % 7 != 3)
            .map(|k| 1981.0 + (f64::from(k) / 12.0 * 1e3).round() / 1e3)
            .collect();
        let steps = Steps::of(&numbers(&rounded)).unwrap();
        let Steps::Numbers { step, .. } = steps else { panic!("numbers") };
        assert!((step - 1.0 / 12.0).abs() < 1e-4);
        assert_eq!(steps.place(Moment::Number(rounded[rounded.len() - 1])), Some(39));
        // Two and three steps apart, never one.
        assert_eq!(
            Steps::of(&numbers(&[0.5, 1.5, 3.0, 4.0])).unwrap(),
            Steps::Numbers { origin: 0.5, step: 0.5 }
        );
        assert_eq!(Steps::of(&numbers(&[1990.0, 2000.0, 2010.0])).unwrap().words(), "in steps of 10");
    }

    #[test]
    fn times_without_a_step_are_refused() {
        let mondays = ["2020-01-02", "2020-02-03", "2020-03-02", "2020-04-01", "2020-05-04"];
        let said = Steps::of(&dates(&mondays)).unwrap_err().to_string();
        assert!(said.contains("rows 1 and 2 are 32 days apart, rows 2 and 3 28 days"), "{said}");
        let said = Steps::of(&numbers(&[0.0, 1.0, 2.37, 3.01])).unwrap_err().to_string();
        assert!(said.contains("rows 1 and 2 are 1 step apart, rows 2 and 3 1.37 steps"), "{said}");
        assert!(matches!(Steps::of(&numbers(&[3.0])), Err(Error::NothingFollows { sequences: 1 })));
        let apart = [(Moment::Number(1.0), 0), (Moment::Number(2.0), 1)];
        assert!(matches!(Steps::of(&apart), Err(Error::NothingFollows { sequences: 2 })));
    }
}
