//! Rows and columns in one picture: arrows point to where a column is large.

use super::scores::{self, ColorBy, ScoresNumbers};
use super::{communalities, largest, standardized_loadings};
use crate::layout::{LABEL, Sheet, Words};
use crate::scale::{count, several};
use crate::svg::{Anchor, Font, Rect, Stroke};
use crate::text::{Weight, shorten, width};
use crate::{Error, Style, Svg};
use covary::learned::Learned;
use covary::{Dataset, Matrix};
use serde::{Deserialize, Serialize};

/// Arrows drawn at most.
const MOST_ARROWS: usize = 24;
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
    color_by: Option<&ColorBy>,
) -> Result<BiplotNumbers, Error> {
    let has = super::some_components(learned)?;
    if has < 2 {
        return Err(Error::NoSuchComponent { asked: 2, has });
    }
    let scores = scores::numbers(learned, data, components, color_by)?;
    let (loadings, _) = standardized_loadings(learned)?;
    let (a, b) = (components.0 - 1, components.1 - 1);
    let pair = Matrix::from_fn(loadings.n_rows(), 2, |j, k| loadings[(j, if k == 0 { a } else { b })]);
    let drawn = largest(&communalities(&pair), MOST_ARROWS);
    let arrow = |&j: &usize| Arrow { column: learned.columns[j].clone(), x: pair[(j, 0)], y: pair[(j, 1)] };
    Ok(BiplotNumbers { scores, arrows: drawn.iter().map(arrow).collect(), n_columns: learned.columns.len() })
}

/// Draws them: points pale, arrows over them, a label wherever it does not cover another.
pub fn draw(numbers: &BiplotNumbers, style: &Style) -> Svg {
    let n = &numbers.scores;
    let word = &n.component_word;
    let by = n.color_by.as_ref().map_or(String::new(), |name| format!(", rows by {name}"));
    let title = format!("Biplot of {word}s {} and {}{by}", n.components.0, n.components.1);
    let mut note = vec![
        "Arrows show loadings: an arrow points to where its column is large, and its length reflects how well the two explain it.".to_owned(),
    ];
    if numbers.arrows.len() < numbers.n_columns {
        note.push(format!("{} of {} columns have an arrow.", numbers.arrows.len(), count(numbers.n_columns)));
    }
    let without_ellipses = ScoresNumbers { ellipses: Vec::new(), ..n.clone() };
    let rows = scores::notes(&without_ellipses);
    note.push(rows);
    let mut sheet = Sheet::new(
        style,
        (720.0, 560.0),
        &Words { title: &title, subtitle: &n.subject, note: &note.join(" ") },
    );
    let body = sheet.body;
    // Arrows take three quarters of the way to the furthest point.
    let furthest =
        |points: &mut dyn Iterator<Item = (f64, f64)>| points.fold(0.0_f64, |m, (x, y)| m.max(x.hypot(y)));
    let reach = match &n.bins {
        Some(b) => b.x.1.abs().max(b.x.0.abs()),
        None => furthest(&mut n.points.iter().map(|q| (q.x, q.y))),
    };
    let longest = furthest(&mut numbers.arrows.iter().map(|a| (a.x, a.y)));
    let scale = if longest > 0.0 { 0.8 * reach / longest } else { 1.0 };
    let tips: Vec<(f64, f64)> = numbers.arrows.iter().map(|a| (a.x * scale, a.y * scale)).collect();
    // Room for the names beyond the tips, as far as it is known before the axes are.
    let per_pixel = 2.2 * reach / body.w;
    let beyond = tips.iter().zip(&numbers.arrows).map(|(&(x, y), arrow)| {
        let wide = width(&shorten(&arrow.column, LABEL, NAME), LABEL, Weight::Regular) + 10.0;
        (x + x.signum() * wide * per_pixel, y)
    });
    let needed: Vec<(f64, f64)> = tips.iter().copied().chain(beyond).collect();
    let values = n.points.iter().any(|q| q.value.is_some());
    let outer = Rect { w: body.w - if values { 66.0 } else { 0.0 }, ..body };
    let panel = scores::scatter(&mut sheet.canvas, outer, n, &needed, false);
    scores::key(&mut sheet.canvas, body, &panel, n);
    let canvas = &mut sheet.canvas;
    let p = canvas.palette();
    let (origin, ink) = (panel.at((0.0, 0.0)), p.ink);
    let mut taken: Vec<Rect> = Vec::new();
    let mut order: Vec<usize> = (0..tips.len()).collect();
    order.sort_by(|&a, &b| {
        let length = |k: usize| tips[k].0.hypot(tips[k].1);
        length(b).total_cmp(&length(a)).then(a.cmp(&b))
    });
    for &k in &order {
        let tip = panel.at(tips[k]);
        canvas.line(origin, tip, Stroke::new(p.paper, 3.2).faint(0.7));
        canvas.line(origin, tip, Stroke::new(ink, 1.3));
        let (dx, dy) = (tip.0 - origin.0, tip.1 - origin.1);
        let length = dx.hypot(dy);
        if length > 4.0 {
            let (ux, uy) = (dx / length, dy / length);
            let corner = |side: f64| (tip.0 - 7.0 * ux - side * 3.2 * uy, tip.1 - 7.0 * uy + side * 3.2 * ux);
            canvas.polygon(&[(tip.0 + ux, tip.1 + uy), corner(1.0), corner(-1.0)], ink, 1.0);
        }
    }
    let mut unnamed = 0;
    for &k in &order {
        let tip = panel.at(tips[k]);
        let to_the_right = tip.0 >= origin.0;
        let text = shorten(&numbers.arrows[k].column, LABEL, NAME);
        let wide = width(&text, LABEL, Weight::Regular);
        let fits = |dy: f64, right: bool| {
            let x = if right { tip.0 + 5.0 } else { tip.0 - 5.0 - wide };
            let room = Rect { x, y: tip.1 - 6.0 + dy, w: wide, h: 13.0 };
            let apart = |o: &Rect| {
                room.right() < o.x || o.right() < room.x || room.bottom() < o.y || o.bottom() < room.y
            };
            let inside = room.x > panel.area.x - 4.0
                && room.right() < panel.area.right() + 8.0
                && room.y > panel.area.y
                && room.bottom() < panel.area.bottom();
            (inside && taken.iter().all(apart)).then_some((room, right))
        };
        // Outwards first, so that names stay clear of arrows; the other side is the last resort.
        let shifts = [0.0, -7.0, 7.0, -13.0, 13.0, -19.0, 19.0];
        let tries =
            shifts.map(|dy| (dy, to_the_right)).into_iter().chain(shifts.map(|dy| (dy, !to_the_right)));
        let placed = { tries }.find_map(|(dy, right)| fits(dy, right));
        match placed {
            None => unnamed += 1,
            Some((room, right)) => {
                let (x, anchor) = if right { (room.x, Anchor::Start) } else { (room.right(), Anchor::End) };
                canvas.text((x, room.y + 10.0), &text, Font { halo: true, anchor, ..Font::default() });
                taken.push(room);
            }
        }
    }
    if unnamed > 0 {
        let font = Font { halo: true, ..Font::label(p.muted, Anchor::End) };
        let text = format!("{} without room for a name", several(unnamed, "arrow"));
        canvas.text((panel.area.right(), panel.area.bottom() - 6.0), &text, font);
    }
    sheet.finish()
}
