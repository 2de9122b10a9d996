//! Rows and columns in one picture: arrows point to where a column is large.

use super::scores::{self, BAR_ROOM, Rows, ScoresNumbers};
use super::{communalities, largest, standardized_loadings};
use crate::layout::{
    LABEL, Label, NARROW, Panel, Segment, Sheet, Words, draw_placed, in_proportion, placed, room, titled_bar,
};
use crate::scale::{Scale, count, number, several};
use crate::svg::{Anchor, Canvas, Font, Rect, Stroke};
use crate::text::{Weight, in_tip, shortened, width};
use crate::theme::{Color, Palette};
use crate::{Error, Style, Svg};
use covary::learned::Learned;
use covary::{Dataset, Matrix};
use serde::{Deserialize, Serialize};

/// Arrows drawn at most.
const MOST_ARROWS: usize = 24;
/// And in a narrow figure.
const MOST_NARROW: usize = 8;
/// Width of the figure and height of its body.
const USUAL: (f64, f64) = (720.0, 560.0);
/// Room below which the axes make none for names beyond the tips of arrows: points would be small.
const TIGHT: f64 = 400.0;
/// Room for the name of a column.
const NAME: f64 = 190.0;

/// A column's loadings on the two components, in its standard deviations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arrow {
    /// Name of the column.
    pub column: String,
    /// Loading on the first of the two components.
    pub x: f64,
    /// Loading on the second.
    pub y: f64,
    /// Quality of representation, cos²: the proportion of the column's variance that the two components explain.
    pub quality: f64,
}

/// The numbers behind a biplot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BiplotNumbers {
    /// The rows.
    pub scores: ScoresNumbers,
    /// The columns, those that the two components explain best.
    pub arrows: Vec<Arrow>,
    /// All columns of the model.
    pub n_columns: usize,
}

/// Asks for them.
///
/// # Errors
/// As [`scores::numbers`], and [`Error::NoSuchComponent`] for a model with one component.
pub fn numbers(
    learned: &Learned,
    data: &Dataset,
    components: (usize, usize),
    rows: &Rows<'_>,
) -> Result<BiplotNumbers, Error> {
    let arrows = arrows(learned, components, MOST_ARROWS)?;
    let scores = scores::numbers(learned, data, components, rows)?;
    Ok(BiplotNumbers { scores, arrows, n_columns: learned.columns.len() })
}

/// Loadings of the columns that two components explain best.
pub(crate) fn arrows(
    learned: &Learned,
    components: (usize, usize),
    most: usize,
) -> Result<Vec<Arrow>, Error> {
    let has = super::some_components(learned)?;
    if has < 2 {
        return Err(Error::NoSuchComponent { asked: 2, has });
    }
    if let Some(asked) = [components.0, components.1].into_iter().find(|k| *k == 0 || *k > has) {
        return Err(Error::NoSuchComponent { asked, has });
    }
    let (loadings, _) = standardized_loadings(learned)?;
    let (a, b) = (components.0 - 1, components.1 - 1);
    let pair = Matrix::from_fn(loadings.n_rows(), 2, |j, k| loadings[(j, if k == 0 { a } else { b })]);
    let quality = communalities(&pair);
    let drawn = largest(&quality, most);
    let arrow = |&j: &usize| Arrow {
        column: learned.columns[j].clone(),
        x: pair[(j, 0)],
        y: pair[(j, 1)],
        quality: quality[j],
    };
    Ok(drawn.iter().map(arrow).collect())
}

/// Color of an arrow by its quality of representation.
pub(crate) fn by_quality(p: &Palette, quality: f64) -> Color {
    p.axis.towards(p.second, quality)
}

/// The bar of these colors.
pub(crate) fn quality_bar(canvas: &mut Canvas, area: Rect) {
    let p = canvas.palette();
    let ticks = [(0.0, "0".to_owned()), (0.5, "0.5".to_owned()), (1.0, "1".to_owned())];
    titled_bar(canvas, area, "cos²", |share| by_quality(p, share), &ticks);
}

/// An arrow with its head.
pub(crate) fn draw_arrow(canvas: &mut Canvas, from: (f64, f64), to: (f64, f64), color: Color) {
    canvas.line(from, to, Stroke::new(color, 1.5));
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy);
    if length > 4.0 {
        let (ux, uy) = (dx / length, dy / length);
        let corner = |side: f64| (to.0 - 7.0 * ux - side * 3.2 * uy, to.1 - 7.0 * uy + side * 3.2 * ux);
        canvas.polygon(&[(to.0 + ux, to.1 + uy), corner(1.0), corner(-1.0)], color, 1.0);
    }
}

/// Draws them: rows, arrows over them with an axis of their own, names wherever they cover nothing.
pub fn draw(numbers: &BiplotNumbers, style: &Style) -> Svg {
    let narrow = room(style, USUAL.0) < NARROW;
    let arrows = if narrow { best(&numbers.arrows) } else { numbers.arrows.iter().collect() };
    let n = &numbers.scores;
    let word = &n.component_word;
    let by = n.color_by.as_ref().map_or(String::new(), |name| format!(", rows by {name}"));
    let title = format!("Biplot of {word}s {} and {}{by}", n.components.0, n.components.1);
    let mut note = vec![
        "Arrows show loadings, on the axes above and at the right; cos² is the proportion of a column's variance that the two explain.".to_owned(),
    ];
    if narrow {
        note.push("The stronger the color of an arrow, the larger is cos².".to_owned());
    }
    if arrows.len() < numbers.n_columns {
        note.push(format!("{} of {} columns have an arrow.", arrows.len(), count(numbers.n_columns)));
    }
    note.push(scores::notes(n));
    let usual = scores::with_legend(in_proportion(style, USUAL, 310.0), n, style);
    let mut sheet =
        Sheet::new(style, usual, &Words { title: &title, subtitle: &n.subject, note: &note.join(" ") });
    let (body, canvas) = (sheet.body, &mut sheet.canvas);
    let p = canvas.palette();
    let (left, below) = scores::frame(canvas, body, n, 0.5);
    let left = match below {
        Some(area) => {
            quality_bar(canvas, Rect { h: area.h.min(150.0), ..area });
            left
        }
        None if narrow => left,
        None => {
            let area =
                Rect { x: left.right() - BAR_ROOM + 12.0, y: left.y + 16.0, w: BAR_ROOM - 12.0, h: 150.0 };
            quality_bar(canvas, area);
            Rect { w: left.w - BAR_ROOM, ..left }
        }
    };
    // The second axis: ticks above and at the right.
    let outer = left.inside(0.0, AXIS_ABOVE, AXIS_BESIDE, 0.0);
    // Arrows take four fifths of the way to the furthest point.
    let furthest =
        |points: &mut dyn Iterator<Item = (f64, f64)>| points.fold(0.0_f64, |m, (x, y)| m.max(x.hypot(y)));
    let reach = furthest(&mut scores::reach(n));
    let longest = furthest(&mut arrows.iter().map(|a| (a.x, a.y)));
    let scale = if longest > 0.0 && reach > 0.0 { 0.8 * reach / longest } else { 1.0 };
    let tips: Vec<(f64, f64)> = arrows.iter().map(|a| (a.x * scale, a.y * scale)).collect();
    let names: Vec<String> = arrows.iter().map(|a| a.column.clone()).collect();
    let names = shortened(&names, LABEL, NAME.min(0.34 * outer.w));
    // Room for the names beyond the tips, as far as it is known before the axes are; long names have to find theirs
    // among the rows, which would be pressed into the middle otherwise.
    let per_pixel = 2.2 * reach / outer.w;
    let beyond = tips.iter().zip(&names).map(|(&(x, y), name)| {
        let wide = if outer.w < TIGHT { 0.0 } else { width(name, LABEL, Weight::Regular) + 10.0 };
        ((x + x.signum() * wide * per_pixel).clamp(-1.2 * reach, 1.2 * reach), y)
    });
    let needed: Vec<(f64, f64)> = tips.iter().copied().chain(beyond).collect();
    let panel = scores::scatter(canvas, outer, n, &needed, true);
    second_axes(canvas, &panel, scale);
    let origin = panel.at((0.0, 0.0));
    let mut order: Vec<usize> = (0..tips.len()).collect();
    let length = |k: usize| tips[k].0.hypot(tips[k].1);
    order.sort_by(|&a, &b| length(b).total_cmp(&length(a)).then(a.cmp(&b)));
    let tip = |k: usize| {
        let arrow = arrows[k];
        let loadings = format!("{}, {}", number(arrow.x, 2), number(arrow.y, 2));
        format!("{}: {loadings}; cos² {}", in_tip(&arrow.column), number(arrow.quality, 2))
    };
    for &k in order.iter().rev() {
        let color = by_quality(p, arrows[k].quality);
        canvas.labeled("", &tip(k), |canvas| draw_arrow(canvas, origin, panel.at(tips[k]), color));
    }
    let of_column = |&k: &usize| {
        let at = panel.at(tips[k]);
        Label { at, text: names[k].clone(), toward: (at.0 - origin.0, at.1 - origin.1) }
    };
    let mut labels: Vec<Label> = order.iter().map(of_column).collect();
    labels.extend(scores::row_labels(&panel, n));
    let points: Vec<(f64, f64)> = n.points.iter().map(|q| panel.at((q.x, q.y))).collect();
    let lines: Vec<Segment> = tips.iter().map(|&t| (origin, panel.at(t))).collect();
    let places = placed(&labels, &points, &lines, panel.area, 60.0);
    let mut unnamed = 0;
    for (k, (label, place)) in labels.iter().zip(places).enumerate() {
        let column = order.get(k);
        match (place, column) {
            (Some(room), Some(&j)) => canvas.labeled("", &tip(j), |canvas| {
                draw_placed(canvas, label, room, Font::label(p.ink, Anchor::Start));
            }),
            (Some(room), None) => draw_placed(canvas, label, room, Font::label(p.muted, Anchor::Start)),
            (None, Some(_)) => unnamed += 1,
            (None, None) => {}
        }
    }
    if unnamed > 0 {
        let text = format!("{} without room for a name", several(unnamed, "arrow"));
        canvas.text(
            (panel.area.right(), panel.area.bottom() - 6.0),
            &text,
            Font::label(p.muted, Anchor::End),
        );
    }
    sheet.finish()
}

/// Those with the best quality of representation, as many as a narrow figure has room to name, in their order.
fn best(arrows: &[Arrow]) -> Vec<&Arrow> {
    let quality: Vec<f64> = arrows.iter().map(|a| a.quality).collect();
    largest(&quality, MOST_NARROW).into_iter().map(|k| &arrows[k]).collect()
}

/// Room above and beside for the axes of loadings.
const AXIS_ABOVE: f64 = 26.0;
const AXIS_BESIDE: f64 = 26.0;

/// Axes of loadings, above and at the right: a loading of 1 is `scale` on the axes of scores.
fn second_axes(canvas: &mut Canvas, panel: &Panel, scale: f64) {
    let p = canvas.palette();
    let color = p.second;
    let area = panel.area;
    let stroke = Stroke::new(color, 0.8);
    let ticks = |room: f64, (from, to): (f64, f64)| {
        let ends = Scale::Linear { from: (from / scale).max(-1.0), to: (to / scale).min(1.0) };
        ends.ticks((room / 60.0).clamp(2.0, 5.0) as usize)
    };
    canvas.line((area.x, area.y), (area.right(), area.y), stroke);
    canvas.line((area.right(), area.y), (area.right(), area.bottom()), stroke);
    for tick in ticks(area.w, panel.x.ends()) {
        let x = panel.px(tick.value * scale);
        canvas.line((x, area.y), (x, area.y - 3.0), stroke);
        canvas.text((x, area.y - 5.0), &tick.text, Font::label(color, Anchor::Middle));
    }
    for tick in ticks(area.h, panel.y.ends()) {
        let y = panel.py(tick.value * scale);
        canvas.line((area.right(), y), (area.right() + 3.0, y), stroke);
        canvas.text((area.right() + 5.0, y + 4.0), &tick.text, Font::label(color, Anchor::Start));
    }
    canvas.text((area.right() + AXIS_BESIDE, area.y - 20.0), "loading", Font::label(color, Anchor::End));
}
