//! Rows along the two axes that separate the models of a mixture best, by the model they are most likely
//! of.

use super::fitted_to;
use super::scores::{Ellipse, MOST_POINTS, corners, ellipse_of, one_scale, roomy};
use crate::layout::{Axis, Entry, LABEL, Look, Panel, Sheet, Words, in_proportion, legend, legend_height};
use crate::scale::{Scale, count, number, percent, several};
use crate::svg::{Anchor, Canvas, Font, MARKS, Rect, Stroke};
use crate::text::{Weight, in_tip, shortened, width};
use crate::theme::{Color, Palette};
use crate::{Error, Style, Svg};
use covary::learned::{Learned, MixtureFit};
use covary::model::Discriminants;
use covary::{Dataset, Matrix};
use serde::{Deserialize, Serialize};

/// Columns that an axis is named by, and how much they must correlate with it.
const NAMED_COLUMNS: usize = 3;
const LEAST_CORRELATION: f64 = 0.3;
/// Probability of the likeliest model below which a row counts as not certain.
const CERTAIN: f64 = 0.9;
/// Colors before they come again; the last of the palette stands for others.
const COLORS: usize = 6;
/// Room beside a panel that the numbers of its axis take.
const AXIS_NUMBERS: f64 = 48.0;

/// A row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Row, from 1.
    pub row: usize,
    /// Its place along the first axis.
    pub x: f64,
    /// Along the second.
    pub y: f64,
    /// Gaps of the row.
    pub n_gaps: usize,
    /// The most probable model, counted in `models`.
    pub model: usize,
    /// Its probability.
    pub probability: f64,
}

/// One of the models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Its number or the name of its class.
    pub name: String,
    /// Its weight.
    pub weight: f64,
    /// The mean along both axes.
    pub center: (f64, f64),
    /// Half axes of the ellipse that covers 95 % of its rows.
    pub half: (f64, f64),
    /// Angle of the long one in degrees, against the clock.
    pub angle: f64,
}

/// A column and how it correlates with an axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Correlated {
    /// Column.
    pub column: String,
    /// Correlation.
    pub correlation: f64,
}

/// The numbers behind a figure of a mixture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixtureNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// The column that named the models, if they are classes.
    pub classes_of: Option<String>,
    /// Columns that correlate most with each of the two axes.
    pub axes: [Vec<Correlated>; 2],
    /// Rows of the table.
    pub n_rows: usize,
    /// Rows with a gap.
    pub n_with_gaps: usize,
    /// Rows whose likeliest model has a probability below 0.9.
    pub n_uncertain: usize,
    /// The models.
    pub models: Vec<Model>,
    /// Rows drawn.
    pub points: Vec<Point>,
}

/// Asks for them.
///
/// # Errors
/// [`Error::OneColumn`] if the mixture has no second axis, and [`covary::Error::ColumnCount`] if the table
/// has other columns.
pub fn numbers(learned: &Learned, data: &Dataset) -> Result<MixtureNumbers, Error> {
    let fit = learned.mixture()?;
    let mixture = &fit.mixture;
    if learned.columns.len() < 2 {
        return Err(Error::OneColumn);
    }
    let apart = Discriminants::of(mixture, 2)?;
    let shares = mixture.responsibilities(data)?;
    let labels = mixture.labels(data)?;
    let certainty = |i: usize| shares[(i, labels[i])];
    let drawn = data.spread_rows(MOST_POINTS);
    let places = apart.places(mixture, &data.of_rows(&drawn)?)?;
    let n_gaps = |i: usize| data.row(i).iter().filter(|v| v.is_nan()).count();
    let point = |(k, &i): (usize, &usize)| Point {
        row: i + 1,
        x: places[(k, 0)],
        y: places[(k, 1)],
        n_gaps: n_gaps(i),
        model: labels[i],
        probability: certainty(i),
    };
    let models = mixture.models().iter().enumerate().map(|(k, model)| {
        let (center, c) = apart.of_model(model);
        let (half, angle) = ellipse_of(c[(0, 0)], c[(0, 1)], c[(1, 1)]);
        let name = fit.classes.as_ref().map_or((k + 1).to_string(), |classes| classes.names[k].clone());
        Model { name, weight: mixture.weights()[k], center: (center[0], center[1]), half, angle }
    });
    Ok(MixtureNumbers {
        subject: subject(learned, fit),
        classes_of: fit.classes.as_ref().map(|classes| classes.target.clone()),
        axes: [0, 1].map(|k| correlated(&learned.columns, apart.correlations(), k)),
        n_rows: data.n_rows(),
        n_with_gaps: (0..data.n_rows()).filter(|&i| n_gaps(i) > 0).count(),
        n_uncertain: (0..data.n_rows()).filter(|&i| certainty(i) < CERTAIN).count(),
        models: models.collect(),
        points: drawn.iter().enumerate().map(point).collect(),
    })
}

fn subject(learned: &Learned, fit: &MixtureFit) -> String {
    let (words, models) = (learned.family.words(), fit.mixture.models());
    let what = match &fit.classes {
        Some(classes) => format!("{words} for each class of {}", classes.target),
        None => format!("{words}, {}", several(models.len(), "model")),
    };
    format!("{what}, {}; {}", fit.components_in_words(), fitted_to(learned))
}

/// The columns that an axis is mostly about.
fn correlated(columns: &[String], correlations: &Matrix, axis: usize) -> Vec<Correlated> {
    let mut order: Vec<usize> = (0..columns.len()).collect();
    let of = |j: usize| correlations[(j, axis)];
    order.sort_by(|&a, &b| of(b).abs().total_cmp(&of(a).abs()).then(a.cmp(&b)));
    order.truncate(NAMED_COLUMNS);
    order.retain(|&j| of(j).abs() >= LEAST_CORRELATION);
    order.iter().map(|&j| Correlated { column: columns[j].clone(), correlation: of(j) }).collect()
}

/// Draws them.
pub fn draw(numbers: &MixtureNumbers, style: &Style) -> Svg {
    let n = numbers;
    let title = match &n.classes_of {
        Some(target) => format!("Rows by their most probable class of {target}"),
        None => "Rows by the model that they most probably belong to".to_owned(),
    };
    let words = Words { title: &title, subtitle: &n.subject, note: &notes(n) };
    let mut sheet = Sheet::new(style, in_proportion(style, (660.0, 520.0), 240.0), &words);
    let (body, canvas) = (sheet.body, &mut sheet.canvas);
    let below = key(canvas, body, n);
    scatter(canvas, Rect { y: below, h: body.bottom() - below, ..body }, n);
    sheet.finish()
}

fn notes(n: &MixtureNumbers) -> String {
    let mut note = vec![format!(
        "The models differ most along these axes. Each ellipse covers 95 % of the rows of its model. The fainter a row, the \
         less probable its model: {} of {} below {}.",
        count(n.n_uncertain),
        several(n.n_rows, "row"),
        percent(CERTAIN),
    )];
    if n.n_with_gaps > 0 {
        note.push(format!(
            "Hollow: {} with missing values, imputed by the mixture.",
            several(n.n_with_gaps, "row")
        ));
    }
    if n.points.len() < n.n_rows {
        note.push(format!("{} rows are shown, evenly spread over the table.", count(n.points.len())));
    }
    note.join(" ")
}

/// Mark and color of a model: a pair that is not repeated before the 36th.
fn look(p: &Palette, k: usize) -> (usize, Color) {
    ((k + k / COLORS) % MARKS, p.group(k % COLORS))
}

/// The legend, in as many lines as it takes; returns where it ends.
fn key(canvas: &mut Canvas, body: Rect, n: &MixtureNumbers) -> f64 {
    let p = canvas.palette();
    let names: Vec<String> = n.models.iter().map(|m| m.name.clone()).collect();
    let names = shortened(&names, LABEL, 150.0);
    let texts: Vec<String> =
        names.iter().zip(&n.models).map(|(name, m)| format!("{name}, {}", percent(m.weight))).collect();
    let entry = |(k, text): (usize, &'_ String)| {
        let (kind, color) = look(p, k);
        (text.clone(), color, Look::Mark { kind, hollow: false })
    };
    let looks: Vec<(String, Color, Look)> = texts.iter().enumerate().map(entry).collect();
    let entries: Vec<Entry<'_>> =
        looks.iter().map(|(text, color, look)| Entry { text, color: *color, look: *look }).collect();
    legend(canvas, (body.x, body.y + 9.0), body.w, &entries);
    body.y + legend_height(&entries, body.w) + 4.0
}

fn scatter(canvas: &mut Canvas, outer: Rect, n: &MixtureNumbers) {
    let p = canvas.palette();
    let ellipses: Vec<Ellipse> = n.models.iter().map(ellipse).collect();
    let places = || n.points.iter().map(|q| (q.x, q.y)).chain(ellipses.iter().flat_map(corners));
    let span = |of: fn((f64, f64)) -> f64| roomy(Scale::over(places().map(of), false).ends());
    let (x, y) = one_scale(outer, span(|q| q.0), span(|q| q.1));
    // As many of its columns as the line has room for.
    let name = |k: usize| {
        let columns: Vec<String> = n.axes[k].iter().map(|c| c.column.clone()).collect();
        let columns = shortened(&columns, LABEL, 130.0);
        let about = columns
            .iter()
            .zip(&n.axes[k])
            .map(|(column, c)| format!("{column} {}", number(c.correlation, 2)));
        let mut name = format!("axis {}", k + 1);
        for (i, column) in about.enumerate() {
            let longer = format!("{name}{} {column}", if i == 0 { ":" } else { "," });
            if width(&longer, LABEL, Weight::Regular) > outer.w - AXIS_NUMBERS {
                break;
            }
            name = longer;
        }
        name
    };
    let x = Axis::new(Scale::Linear { from: x.0, to: x.1 }, name(0));
    let y = Axis::new(Scale::Linear { from: y.0, to: y.1 }, name(1));
    let panel = Panel::new(canvas, outer, &x, &y);
    let size = match n.points.len() {
        0..=400 => 3.2,
        401..=1500 => 2.5,
        _ => 1.9,
    };
    let least = 1.0 / n.models.len().max(2) as f64;
    canvas.clipped(panel.area, |canvas| {
        for q in &n.points {
            let (kind, color) = look(p, q.model);
            // A row that all models share alike is nearly paper.
            let doubt = 0.85 * (1.0 - q.probability) / (1.0 - least);
            let name = &n.models[q.model].name;
            let gaps = if q.n_gaps > 0 {
                format!("; {}", several(q.n_gaps, "missing value"))
            } else {
                String::new()
            };
            let tip = format!("row {}: {}, {}{gaps}", q.row, in_tip(name), percent(q.probability));
            canvas.labeled(name, &tip, |canvas| {
                let color = color.towards(p.paper, doubt);
                canvas.mark(panel.at((q.x, q.y)), kind, size, color, q.n_gaps > 0);
            });
        }
        for (k, (model, e)) in n.models.iter().zip(&ellipses).enumerate() {
            let half = (panel.px(e.half.0) - panel.px(0.0), panel.px(e.half.1) - panel.px(0.0));
            let stroke = Stroke::new(look(p, k).1, 1.6);
            canvas.labeled(&model.name, "", |canvas| {
                canvas.ellipse(panel.at(e.center), half, -e.angle, stroke);
            });
        }
        let names: Vec<String> = n.models.iter().map(|model| model.name.clone()).collect();
        for (model, name) in n.models.iter().zip(shortened(&names, LABEL, 90.0)) {
            let (x, y) = panel.at(model.center);
            let font = Font { weight: Weight::Bold, anchor: Anchor::Middle, halo: true, ..Font::default() };
            canvas.text((x, y + 4.0), &name, font);
        }
    });
}

fn ellipse(model: &Model) -> Ellipse {
    Ellipse { row: 0, center: model.center, half: model.half, angle: model.angle, group: None }
}
