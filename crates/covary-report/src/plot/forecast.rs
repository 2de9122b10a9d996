//! Columns in time: what was observed, what the model says, and what comes.

use super::{communalities, conditions, largest, standardized_loadings};
use crate::dates::{Instant, Times};
use crate::layout::{Axis, Entry, LABEL, Look, Panel, Sheet, Words, legend, legend_height, room};
use crate::scale::{Scale, count, several};
use crate::svg::{Canvas, Rect, Stroke};
use crate::text::{in_tip, shortened};
use crate::theme::{Color, Palette};
use crate::{Error, Style, Svg};
use covary::Dataset;
use covary::learned::{Course, Learned};
use serde::{Deserialize, Serialize};

/// Panels drawn at most.
const MOST_PANELS: usize = 12;
/// Steps of the past that are drawn: this many for each step to come, or the next of these if that is more, and never more than
/// the last.
const PAST_PER_STEP: usize = 5;
const PAST: (usize, usize) = (60, 600);
/// Height of the name of the times.
const NAME: f64 = 16.0;
/// Probabilities of the two bands.
const LEVELS: [f64; 2] = [0.5, 0.95];

/// A step of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// When.
    #[serde(flatten)]
    pub when: Instant,
    /// The value, if one was observed.
    pub observed: Option<f64>,
    /// Given all rows, or of a step to come what is expected.
    pub mean: f64,
    /// Prediction intervals of 50 and of 95 %, where nothing was observed.
    pub intervals: Option<[(f64, f64); 2]>,
}

/// A column of a sequence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The column.
    pub column: String,
    /// The sequence, if it has a name.
    pub sequence: Option<String>,
    /// Steps of the table that are shown.
    pub past: Vec<Step>,
    /// Steps to come.
    pub ahead: Vec<Step>,
}

/// The numbers behind a forecast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForecastNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// What times are.
    pub times: Times,
    /// Steps to come.
    pub n_steps: usize,
    /// Steps of the longest sequence of the table.
    pub n_past: usize,
    /// Columns of the table.
    pub n_columns: usize,
    /// Sequences of the table.
    pub n_sequences: usize,
    /// Those that are shown.
    pub series: Vec<Series>,
}

/// Asks for this many steps, those of a season if none; of some columns, or of those that the factors explain best.
///
/// # Errors
/// Those of [`Learned::courses`].
pub fn numbers(
    learned: &Learned,
    data: &Dataset,
    steps: Option<usize>,
    columns: Option<&[usize]>,
) -> Result<ForecastNumbers, Error> {
    let fit = learned.dynamic()?;
    let n_steps = steps.unwrap_or_else(|| fit.usual_steps());
    let courses = learned.courses(data, n_steps)?;
    let table_times = fit.times(data)?;
    let axis = table_times.axis();
    let shown_sequences = courses.len().min(MOST_PANELS);
    let room = (MOST_PANELS / shown_sequences.max(1)).max(1);
    let columns: Vec<usize> = match columns {
        Some(asked) => asked.iter().copied().take(room).collect(),
        None => largest(&communalities(&standardized_loadings(learned)?.0), room),
    };
    let several_sequences = courses.len() > 1;
    let series = |(k, course): (usize, &Course), j: usize| {
        let from = course.n_past - past_shown(n_steps).min(course.n_past);
        let mut all: Vec<Step> = (from..course.times.len())
            .map(|step| Step {
                when: Instant::of(axis, course.times[step]),
                observed: (step < course.n_past).then(|| course.observed[(step, j)]).filter(|v| !v.is_nan()),
                mean: course.means[(step, j)],
                intervals: None,
            })
            .collect();
        for cell in course.unseen.iter().filter(|cell| cell.column == j && cell.row >= from) {
            all[cell.row - from].intervals = Some([cell.interval(LEVELS[0])?, cell.interval(LEVELS[1])?]);
        }
        let ahead = all.split_off(course.n_past - from);
        let column = learned.columns[j].clone();
        let number = || several_sequences.then(|| format!("sequence {}", k + 1));
        Ok(Series { column, sequence: course.sequence.clone().or_else(number), past: all, ahead })
    };
    let pairs = columns
        .iter()
        .flat_map(|&j| courses.iter().take(shown_sequences).enumerate().map(move |course| (course, j)));
    Ok(ForecastNumbers {
        subject: conditions(learned),
        times: Times::of(axis),
        n_steps,
        n_past: courses.iter().map(|course| course.n_past).max().unwrap_or(0),
        n_columns: learned.columns.len(),
        n_sequences: courses.len(),
        series: pairs.map(|(course, j)| series(course, j)).collect::<Result<_, covary::Error>>()?,
    })
}

fn past_shown(n_steps: usize) -> usize {
    (PAST_PER_STEP * n_steps).clamp(PAST.0, PAST.1)
}

/// Draws them: a panel for each column of a sequence.
pub fn draw(numbers: &ForecastNumbers, style: &Style) -> Svg {
    let n = numbers;
    let mut firsts: Vec<&str> =
        n.series.iter().filter_map(|s| Some(s.ahead.first()?.when.time.as_str())).collect();
    firsts.dedup();
    // Sequences may end at different times.
    let from = match firsts[..] {
        [first] if n.times.step == "row" => format!(", from row {first}"),
        [first] => format!(", from {first}"),
        _ => String::new(),
    };
    let title = format!("Forecast of the next {}{from}", several(n.n_steps, &n.times.step));
    let shown = n.series.len();
    let mut note = vec![
        "Points are observed values, the line is the mean given all of them. Bands are 50 and 95 % prediction intervals: of \
         missing values before the dashed line, of rows to come after it."
            .to_owned(),
    ];
    let longest = n.series.iter().map(|series| series.past.len()).max().unwrap_or(0);
    if longest < n.n_past {
        note.push(format!("The last {longest} of {} are shown.", several(n.n_past, "step")));
    }
    if shown < n.n_columns * n.n_sequences {
        note.push(format!("{shown} of {} series are shown.", count(n.n_columns * n.n_sequences)));
    }
    let across = match shown {
        0 | 1 => 1,
        2..=8 => 2,
        _ => 3,
    };
    let across = across.min((style.width.unwrap_or(860.0) / 240.0).max(1.0) as usize);
    let down = shown.div_ceil(across).max(1);
    let each = if shown == 1 { 260.0 } else { 158.0 };
    let words = Words { title: &title, subtitle: &n.subject, note: &note.join(" ") };
    let p = style.theme.palette();
    let entries = [
        Entry { text: "observed", color: p.ink, look: Look::Mark { kind: 1, hollow: false } },
        Entry { text: "mean", color: p.main, look: Look::Line { dash: 0.0 } },
        Entry { text: "50 % interval", color: band_color(p, 0), look: Look::Box },
        Entry { text: "95 % interval", color: band_color(p, 1), look: Look::Box },
    ];
    let head = legend_height(&entries, room(style, 860.0)) + 5.0;
    let mut sheet = Sheet::new(style, (860.0, head + NAME + each * down as f64), &words);
    let (body, canvas) = (sheet.body, &mut sheet.canvas);
    legend(canvas, (body.x, body.y + 8.0), body.w, &entries);
    let grid = body.inside(0.0, head, 0.0, 0.0);
    let ends = n.series.iter().flat_map(|s| s.past.iter().chain(&s.ahead)).map(|step| step.when.at);
    let (from, to) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), at| (a.min(at), b.max(at)));
    let edge = 0.5 * n.series.iter().map(step_length).fold(f64::INFINITY, f64::min);
    let (from, to) = (from - edge, to + edge);
    let name = |series: &Series| match &series.sequence {
        None => series.column.clone(),
        Some(sequence) => format!("{} · {sequence}", series.column),
    };
    let names: Vec<String> = n.series.iter().map(name).collect();
    let names = shortened(&names, LABEL, grid.w / across as f64 - 14.0);
    for (k, series) in n.series.iter().enumerate() {
        // The name of the times stands below the last panel of each column of them.
        let last = k + across >= shown;
        let cell =
            grid.inside(0.0, 0.0, 0.0, NAME).row(k / across, down, 0.0).column(k % across, across, 14.0);
        let cell = Rect { h: cell.h + if last { NAME } else { 0.0 }, ..cell };
        let mut x = n.times.axis(from, to, cell.w - 30.0);
        if !last {
            x.name = String::new();
        }
        panel(canvas, cell, (series, &names[k]), &x);
    }
    sheet.finish()
}

/// The shortest distance from one step to the next.
fn step_length(series: &Series) -> f64 {
    let every: Vec<f64> = series.past.iter().chain(&series.ahead).map(|step| step.when.at).collect();
    let shortest = every.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    if shortest.is_finite() { shortest } else { 1.0 }
}

fn band_color(p: &Palette, level: usize) -> Color {
    p.paper.towards(p.main, if level == 0 { 0.42 } else { 0.2 })
}

fn panel(canvas: &mut Canvas, cell: Rect, (series, name): (&Series, &str), x: &Axis) {
    let p = canvas.palette();
    let steps = || series.past.iter().chain(&series.ahead);
    let values = steps().flat_map(|s| {
        let ends = s.intervals.map(|i| [i[1].0, i[1].1]).into_iter().flatten();
        ends.chain([s.mean]).chain(s.observed)
    });
    let (low, high) = Scale::over(values, false).ends();
    let room = 0.04 * (high - low);
    let y = Axis::new(Scale::Linear { from: low - room, to: high + room }, name);
    let panel = Panel::new(canvas, cell, x, &y);
    // Runs of steps with a band; a run of one step has a width of its own.
    let half = 0.5 * step_length(series);
    let every: Vec<&Step> = steps().collect();
    canvas.clipped(panel.area, |canvas| {
        for level in [1, 0] {
            for run in every.chunk_by(|a, b| a.intervals.is_some() == b.intervals.is_some()) {
                let ends = |s: &&Step| s.intervals.map(|i| (s.when.at, i[level]));
                let run: Vec<(f64, (f64, f64))> = run.iter().filter_map(ends).collect();
                let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
                let widened: Vec<(f64, (f64, f64))> = std::iter::once((first.0 - half, first.1))
                    .chain(run.iter().copied())
                    .chain(std::iter::once((last.0 + half, last.1)))
                    .collect();
                let upper = widened.iter().map(|(at, ends)| panel.at((*at, ends.1)));
                let lower = widened.iter().rev().map(|(at, ends)| panel.at((*at, ends.0)));
                let corners: Vec<(f64, f64)> = upper.chain(lower).collect();
                canvas.polygon(&corners, band_color(p, level), 1.0);
            }
        }
        canvas.polyline(steps().map(|s| panel.at((s.when.at, s.mean))), Stroke::new(p.main, 1.3));
        let side = if every.len() > 250 { 1.6 } else { 2.4 };
        let dots: Vec<Rect> = series
            .past
            .iter()
            .filter_map(|s| s.observed.map(|v| panel.at((s.when.at, v))))
            .map(|(x, y)| Rect { x: x - 0.5 * side, y: y - 0.5 * side, w: side, h: side })
            .collect();
        canvas.cells(&dots, p.ink);
    });
    if let (Some(last), Some(next)) = (series.past.last(), series.ahead.first()) {
        let at = panel.px(0.5 * (last.when.at + next.when.at));
        let tip = format!(
            "{}: observed to {}, forecast from {}",
            in_tip(&series.column),
            last.when.time,
            next.when.time
        );
        canvas.labeled("", &tip, |canvas| {
            canvas.line((at, panel.area.y), (at, panel.area.bottom()), Stroke::new(p.ink, 1.0).dashed(3.0));
        });
    }
}
