//! Factors in time, with how certain they are.

use super::{conditions, some_components};
use crate::dates::{Instant, Times};
use crate::layout::{Axis, Entry, LABEL, Look, Panel, Sheet, Words, legend};
use crate::scale::{Scale, Tick, count, several};
use crate::svg::{Anchor, Font, Rect, Stroke};
use crate::text::shorten;
use crate::{Error, Style, Svg};
use covary::Dataset;
use covary::learned::{Knowing, Learned};
use serde::{Deserialize, Serialize};

/// Places of a curve at most; of longer sequences each holds the least and the largest of its steps.
const MOST_PLACES: usize = 800;
/// Factors drawn at most, those that explain most.
const MOST_FACTORS: usize = 10;
/// Sequences drawn at most, the longest; one color each.
const MOST_SEQUENCES: usize = 6;
/// Quantile of the normal distribution that 95 % lie within.
const WITHIN: f64 = 1.959_963_984_540_054;
/// Room for the name of a factor, right of its curve.
const MARGIN: f64 = 74.0;

/// A step, or a few steps together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// When the first of them was.
    #[serde(flatten)]
    pub when: Instant,
    /// Whether any cell was observed then.
    pub observed: bool,
    /// The least and the largest mean of each factor, in the order in which they come.
    pub means: Vec<(f64, f64)>,
    /// The ends of 95 % intervals of each factor: the least and the largest.
    pub intervals: Vec<(f64, f64)>,
}

/// A sequence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// What it is called, if it has a name.
    pub sequence: Option<String>,
    /// Its steps.
    pub places: Vec<Place>,
}

/// The numbers behind the curves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FactorsNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// What times are.
    pub times: Times,
    /// Factors there are.
    pub n_components: usize,
    /// Sequences there are.
    pub n_sequences: usize,
    /// Steps at which nothing was observed.
    pub n_empty: usize,
    /// Steps at one place.
    pub steps_per_place: usize,
    /// The longest sequences, in their order.
    pub courses: Vec<Course>,
}

/// Asks for them, given all rows.
///
/// # Errors
/// Those of [`DynamicFit::factors`](covary::learned::DynamicFit::factors).
pub fn numbers(learned: &Learned, data: &Dataset) -> Result<FactorsNumbers, Error> {
    let fit = learned.dynamic()?;
    let q = some_components(learned)?.min(MOST_FACTORS);
    let every = data.every_step()?;
    let factors = fit.factors(&every, Knowing::AllRows)?;
    let table_times = fit.times(&every)?;
    let (axis, sequences) = (table_times.axis(), table_times.sequences());
    let longest = sequences.iter().map(|s| s.rows().len()).max().unwrap_or(1);
    let steps_per_place = longest.div_ceil(MOST_PLACES).max(1);
    let is_observed = |row: usize| every.row(row).iter().any(|v| !v.is_nan());
    let place = |steps: &[(i64, usize)]| {
        let ends = |of: &dyn Fn(usize) -> f64| {
            let values: Vec<f64> = steps.iter().map(|&(_, row)| of(row)).collect();
            let by = |a: &usize, b: &usize| values[*a].total_cmp(&values[*b]);
            let low = (0..values.len()).min_by(by).expect("a place has steps");
            let high = (0..values.len()).rev().max_by(by).expect("a place has steps");
            (values[low.min(high)], values[low.max(high)])
        };
        let mean = |k: usize| ends(&|row| factors.means[(row, k)]);
        let end = |k: usize, side: f64| {
            let found = ends(&|row| {
                factors.means[(row, k)] + side * WITHIN * factors.covariances[row][(k, k)].sqrt()
            });
            if side < 0.0 { found.0.min(found.1) } else { found.0.max(found.1) }
        };
        Place {
            when: Instant::of(axis, steps[0].0),
            observed: steps.iter().any(|&(_, row)| is_observed(row)),
            means: (0..q).map(mean).collect(),
            intervals: (0..q).map(|k| (end(k, -1.0), end(k, 1.0))).collect(),
        }
    };
    let lengths: Vec<f64> = sequences.iter().map(|s| s.rows().len() as f64).collect();
    let courses = super::largest(&lengths, MOST_SEQUENCES).into_iter().map(|s| {
        let sequence = &sequences[s];
        let steps = sequence.rows().iter().flatten().enumerate();
        let steps: Vec<(i64, usize)> = steps.map(|(k, &row)| (sequence.first() + k as i64, row)).collect();
        Course {
            sequence: table_times.name(s).map(str::to_owned),
            places: steps.chunks(steps_per_place).map(place).collect(),
        }
    });
    Ok(FactorsNumbers {
        subject: conditions(learned),
        times: Times::of(axis),
        n_components: learned.n_shown(),
        n_sequences: sequences.len(),
        n_empty: (0..every.n_rows()).filter(|&row| !is_observed(row)).count(),
        steps_per_place,
        courses: courses.collect(),
    })
}

/// Draws them: a panel for each factor, all with the same times and the same scale.
pub fn draw(numbers: &FactorsNumbers, style: &Style) -> Svg {
    let n = numbers;
    let shown = n.n_components.min(MOST_FACTORS);
    let title = format!("{} in time", several(n.n_components, "factor"));
    let mut note =
        vec!["Means given all rows, and their 95 % intervals, in standard deviations of the factor in the long run.".to_owned()];
    if n.n_empty > 0 {
        let steps = several(n.n_empty, &n.times.step);
        note.push(format!("The curve is interrupted where nothing was observed ({steps})."));
    }
    if n.steps_per_place > 1 {
        note.push(format!(
            "A place stands for {} steps: the curve goes through their minimum and their maximum.",
            count(n.steps_per_place)
        ));
    }
    if shown < n.n_components {
        note.push(format!("The first {shown} factors are shown."));
    }
    if n.courses.len() < n.n_sequences {
        note.push(format!(
            "The longest {} of {} are shown.",
            n.courses.len(),
            several(n.n_sequences, "sequence")
        ));
    }
    let words = Words { title: &title, subtitle: &n.subject, note: &note.join(" ") };
    let head = if n.courses.len() > 1 { 22.0 } else { 0.0 };
    let mut sheet = Sheet::new(style, (860.0, head + 46.0 + 96.0 * shown as f64), &words);
    let (body, canvas) = (sheet.body, &mut sheet.canvas);
    let p = canvas.palette();
    let names: Vec<String> = (n.courses.iter().enumerate())
        .map(|(k, course)| course.sequence.clone().unwrap_or_else(|| format!("sequence {}", k + 1)))
        .collect();
    if head > 0.0 {
        let entry = |(k, name)| Entry { text: name, color: p.group(k), look: Look::Line { dash: 0.0 } };
        let entries: Vec<Entry<'_>> = names.iter().map(String::as_str).enumerate().map(entry).collect();
        legend(canvas, (body.x, body.y + 8.0), body.w, &entries);
    }
    let every = || n.courses.iter().flat_map(|course| &course.places);
    let (from, to) = every()
        .map(|place| place.when.at)
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), at| (a.min(at), b.max(at)));
    let y_scale =
        Scale::over(every().flat_map(|place| &place.intervals).flat_map(|&(low, high)| [low, high]), false);
    let foot = 38.0;
    let rows = body.inside(0.0, head, 0.0, foot);
    for k in 0..shown {
        let last = k + 1 == shown;
        let own = rows.row(k, shown, 0.0);
        // Ticks and name of the times stand below the last panel only.
        let room = Rect { w: (own.w - MARGIN).max(20.0), h: own.h + if last { foot } else { 22.0 }, ..own };
        let mut x = n.times.axis(from, to, room.w - 30.0);
        if !last {
            x.name = String::new();
            let silent = |tick: Tick| Tick { text: String::new(), ..tick };
            x.ticks = x.ticks.map(|ticks| ticks.into_iter().map(silent).collect());
        }
        let y = Axis { ticks: Some(y_scale.ticks(3)), ..Axis::new(y_scale, "") };
        let panel = Panel::new(canvas, room, &x, &y);
        canvas.clipped(panel.area, |canvas| {
            for (s, course) in n.courses.iter().enumerate() {
                let color = if head > 0.0 { p.group(s) } else { p.main };
                let upper = course.places.iter().map(|place| panel.at((place.when.at, place.intervals[k].1)));
                let lower =
                    course.places.iter().rev().map(|place| panel.at((place.when.at, place.intervals[k].0)));
                let corners: Vec<(f64, f64)> = upper.chain(lower).collect();
                let curve = course.places.iter().flat_map(|place| {
                    let (first, second) = place.means[k];
                    let pair = [first, second].into_iter().take(if first == second { 1 } else { 2 });
                    pair.map(
                        |v| if place.observed { panel.at((place.when.at, v)) } else { (f64::NAN, f64::NAN) },
                    )
                });
                let curve: Vec<(f64, f64)> = curve.collect();
                let series = if head > 0.0 { names[s].as_str() } else { "" };
                let tip = format!("factor {}{}{series}", k + 1, if series.is_empty() { "" } else { ", " });
                canvas.labeled(series, &tip, |canvas| {
                    canvas.polygon(&corners, color, 0.22);
                    canvas.polyline(curve, Stroke::new(color, 1.3));
                });
            }
        });
        let middle = panel.area.y + 0.5 * panel.area.h + 4.0;
        let name = shorten(&format!("factor {}", k + 1), LABEL, MARGIN - 10.0);
        canvas.text((panel.area.right() + 10.0, middle), &name, Font::label(p.ink, Anchor::Start));
    }
    sheet.finish()
}
