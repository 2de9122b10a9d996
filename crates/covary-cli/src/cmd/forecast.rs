//! `covary forecast`: the rows that follow a table in time.

use super::{About, Asked, Asking};
use crate::args::{at_least_one, probability};
use crate::console::count;
use crate::failure::Failure;
use crate::input::Whole;
use clap::Args;
use covary::data::Timeline;
use covary::dynamics;
use covary::io::{Cells, Sheet};
use covary::learned::DynamicFit;
use covary::model::FilledCell;
use serde_json::json;

/// Forecast the rows that follow a table in time, each value with a prediction interval.
///
/// The forecast is that of a dynamic factor model, with its season and trend. The result has a row
/// for each step, sequence and column: the time, in the notation of the table, the column, the mean
/// and standard deviation of the forecast, and the ends of its interval, which accounts for the
/// estimation of the parameters. --wide has a row for each step and a column for each column, with
/// the means alone, as a continuation of the table.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary fit examples/months.csv --model dfm --time month --season 12 -o months.covary
  covary forecast months.covary examples/months.csv --steps 12 -o ahead.csv
  covary forecast months.covary examples/months.csv --steps 12 --wide -o next.csv")]
pub(crate) struct Forecast {
    #[command(flatten)]
    asking: Asking,

    /// How many steps ahead.
    #[arg(long, verbatim_doc_comment, value_name = "N", value_parser = at_least_one)]
    steps: usize,

    /// Probability that an interval covers the true value.
    #[arg(long, verbatim_doc_comment, value_name = "LEVEL", default_value_t = 0.95, value_parser = probability)]
    interval: f64,

    /// A row for each step, with the means in the columns of the table.
    #[arg(long, verbatim_doc_comment, conflicts_with = "interval")]
    wide: bool,
}

/// Steps ahead of a sequence.
struct Ahead<'a> {
    asked: &'a Asked,
    fit: &'a DynamicFit,
    times: &'a Timeline,
    forecasts: Vec<dynamics::Forecast>,
}

impl Forecast {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let taken = "which the table has already; rename that of the table";
        let whole = Err(Whole::new("`covary forecast`", "leave early rows out"));
        self.asking.answer(&About::Rows, (true, taken), whole, |console, asked, write| {
            let refused = |e| asked.refused(e);
            let fit = asked.learned.dynamic().map_err(refused)?;
            if let Some(unstable) = fit.unstable() {
                console.warn(&unstable.to_string());
            }
            let data = asked.data()?;
            let forecasts = fit.forecast(&data, self.steps).map_err(refused)?;
            let times = fit.times(&data).map_err(refused)?;
            let ahead = Ahead { asked, fit, times: &times, forecasts };
            write(&if self.wide { ahead.wide() } else { ahead.long(self.interval)? })?;
            let (first, last) = ahead.span();
            console.say(&format!("{} ahead: {first} to {last}", count(self.steps, "step")));
            Ok(json!({
                "source": asked.source.name,
                "n_rows": data.n_rows(),
                "n_sequences": times.sequences().len(),
                "n_steps": self.steps,
                "first": first,
                "last": last,
                "interval": self.interval,
            }))
        })
    }
}

impl Ahead<'_> {
    fn text(&self, time: i64) -> String {
        let axis = self.times.axis().or(self.fit.axis.as_ref());
        axis.map_or_else(|| (time + 1).to_string(), |axis| axis.text(time))
    }

    /// The first and the last time of any sequence.
    fn span(&self) -> (String, String) {
        let times = || self.forecasts.iter().flat_map(|forecast| forecast.times.iter().copied());
        (self.text(times().min().unwrap_or(0)), self.text(times().max().unwrap_or(0)))
    }

    /// Time, and the sequence if they have names, `each` times for every step.
    fn places(&self, each: usize) -> Sheet<'static> {
        let mut sheet = Sheet::default();
        let axis = self.times.axis();
        let steps = self.forecasts.iter().enumerate().flat_map(|(k, forecast)| {
            forecast.times.iter().flat_map(move |&time| std::iter::repeat_n((time, k), each))
        });
        let (times, sequences): (Vec<String>, Vec<String>) = steps
            .map(|(time, k)| (self.text(time), self.times.name(k).unwrap_or_default().to_owned()))
            .unzip();
        if let Some(name) = axis.and_then(|axis| axis.sequences.clone()) {
            sheet.push(name, Cells::Text(sequences));
        }
        // Rows that were only counted go on being counted.
        sheet.push(axis.map_or("row".to_owned(), |axis| axis.name.clone()), Cells::Text(times));
        sheet
    }

    /// Means, a column for each.
    fn wide(&self) -> Sheet<'static> {
        let (learned, mut sheet) = (&self.asked.learned, self.places(1));
        let d = learned.columns.len();
        for (j, name) in learned.columns.iter().enumerate() {
            let means = self.forecasts.iter().flat_map(|f| f.cells.iter().skip(j).step_by(d).map(|c| c.mean));
            sheet.push(name.clone(), Cells::Numbers(means.collect()));
        }
        for constant in &learned.constants {
            sheet.push(constant.name.clone(), Cells::Numbers(vec![constant.value; sheet.n_rows()]));
        }
        sheet
    }

    /// A row for each number, with its interval.
    fn long(&self, level: f64) -> Result<Sheet<'static>, Failure> {
        let learned = &self.asked.learned;
        let d = learned.columns.len();
        let mut cells: Vec<FilledCell> = Vec::new();
        for forecast in &self.forecasts {
            for row in forecast.cells.chunks(d) {
                cells.extend_from_slice(row);
                let constants = learned.constants.iter().enumerate();
                cells.extend(constants.map(|(c, of)| FilledCell::normal(row[0].row, d + c, of.value, 0.0)));
            }
        }
        let intervals: Vec<(f64, f64)> = cells
            .iter()
            .map(|cell| cell.interval(level))
            .collect::<Result<_, _>>()
            .map_err(|e| Failure::Call(format!("--interval: {e}")))?;
        let names: Vec<&String> =
            learned.columns.iter().chain(learned.constants.iter().map(|c| &c.name)).collect();
        let mut sheet = self.places(names.len());
        sheet.push("column", Cells::Text(cells.iter().map(|cell| names[cell.column].clone()).collect()));
        sheet.push("mean", Cells::Numbers(cells.iter().map(|cell| cell.mean).collect()));
        sheet.push("sd", Cells::Numbers(cells.iter().map(|cell| cell.sd).collect()));
        sheet.push("lower", Cells::Numbers(intervals.iter().map(|i| i.0).collect()));
        sheet.push("upper", Cells::Numbers(intervals.iter().map(|i| i.1).collect()));
        Ok(sheet)
    }
}
