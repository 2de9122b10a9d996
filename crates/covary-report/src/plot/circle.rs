//! The correlation circle: correlations of the columns with two components.

use super::biplot::{Arrow, arrows, by_quality, draw_arrow, quality_bar};
use super::scores::{self, BAR_ROOM};
use super::{component_word, conditions};
use crate::layout::{
    Axis, LABEL, Label, NARROW, Panel, Segment, Sheet, Words, draw_placed, in_proportion, placed, room,
};
use crate::scale::{Scale, count, number, several};
use crate::svg::{Anchor, Font, Rect, Stroke};
use crate::text::{in_tip, shortened};
use crate::{Error, Style, Svg};
use covary::learned::Learned;
use serde::{Deserialize, Serialize};

/// Arrows drawn at most.
const MOST_ARROWS: usize = 40;
const USUAL: (f64, f64) = (600.0, 500.0);

/// The numbers behind a correlation circle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CircleNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// `component`, or `factor`.
    pub component_word: String,
    /// The two components, from 1.
    pub components: (usize, usize),
    /// Share of the variance that each explains; none for rotated ones.
    pub shares: Option<(f64, f64)>,
    /// All columns of the model.
    pub n_columns: usize,
    /// The columns, those that the two components explain best.
    pub arrows: Vec<Arrow>,
}

/// Asks for them.
///
/// # Errors
/// [`Error::NoComponents`], and [`Error::NoSuchComponent`] if the model lacks one of the two.
pub fn numbers(learned: &Learned, components: (usize, usize)) -> Result<CircleNumbers, Error> {
    let arrows = arrows(learned, components, MOST_ARROWS)?;
    let unrotated = learned.linear().ok().filter(|fit| fit.rotation.is_none());
    let shares = unrotated.map(|fit| fit.model.explained_variance_ratio());
    Ok(CircleNumbers {
        subject: conditions(learned),
        component_word: component_word(learned).to_owned(),
        components,
        shares: shares.map(|s| (s[components.0 - 1], s[components.1 - 1])),
        n_columns: learned.columns.len(),
        arrows,
    })
}

/// Draws them in the unit circle: an arrow that reaches it is explained whole.
pub fn draw(numbers: &CircleNumbers, style: &Style) -> Svg {
    let n = numbers;
    let word = &n.component_word;
    let title = format!("Correlations of the columns with {word}s {} and {}", n.components.0, n.components.1);
    let mut note = vec![
        "An arrow that reaches the circle belongs to a column that the two explain whole; cos² is the proportion they explain."
            .to_owned(),
    ];
    if n.arrows.len() < n.n_columns {
        note.push(format!(
            "Shown are the {} of {} columns with the largest cos².",
            n.arrows.len(),
            count(n.n_columns)
        ));
    }
    let words = Words { title: &title, subtitle: &n.subject, note: &note.join(" ") };
    let mut sheet = Sheet::new(style, in_proportion(style, USUAL, 290.0), &words);
    let (body, canvas) = (sheet.body, &mut sheet.canvas);
    let p = canvas.palette();
    let beside = if room(style, USUAL.0) < NARROW { 0.0 } else { BAR_ROOM };
    if beside > 0.0 {
        quality_bar(
            canvas,
            Rect { x: body.right() - BAR_ROOM + 12.0, y: body.y + 16.0, w: BAR_ROOM - 12.0, h: 170.0 },
        );
    }
    let outer = Rect { w: body.w - beside, ..body };
    // Room for names beyond the circle.
    let reach = 1.12;
    let (x, y) = scores::one_scale(outer, (-reach, reach), (-reach, reach));
    let names = scores::axis_names(word, n.components, n.shares);
    let panel = Panel::new(
        canvas,
        outer,
        &Axis::new(Scale::Linear { from: x.0, to: x.1 }, names.0),
        &Axis::new(Scale::Linear { from: y.0, to: y.1 }, names.1),
    );
    let origin = panel.at((0.0, 0.0));
    let radius = panel.px(1.0) - origin.0;
    canvas.ellipse(origin, (radius, radius), 0.0, Stroke::new(p.axis, 1.0));
    for (a, b) in [((-1.0, 0.0), (1.0, 0.0)), ((0.0, -1.0), (0.0, 1.0))] {
        canvas.line(panel.at(a), panel.at(b), Stroke::new(p.axis, 0.7).dashed(3.0));
    }
    let tip = |a: &Arrow| {
        format!(
            "{}: {}, {}; cos² {}",
            in_tip(&a.column),
            number(a.x, 2),
            number(a.y, 2),
            number(a.quality, 2)
        )
    };
    let mut order: Vec<&Arrow> = n.arrows.iter().collect();
    order.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    for arrow in order.iter().rev() {
        let color = by_quality(p, arrow.quality);
        canvas.labeled("", &tip(arrow), |canvas| {
            draw_arrow(canvas, origin, panel.at((arrow.x, arrow.y)), color);
        });
    }
    let texts: Vec<String> = order.iter().map(|a| a.column.clone()).collect();
    let texts = shortened(&texts, LABEL, 0.34 * outer.w);
    let label = |(arrow, text): (&&Arrow, String)| {
        let at = panel.at((arrow.x, arrow.y));
        Label { at, text, toward: (at.0 - origin.0, at.1 - origin.1) }
    };
    let labels: Vec<Label> = order.iter().zip(texts).map(label).collect();
    let lines: Vec<Segment> = labels.iter().map(|l| (origin, l.at)).collect();
    let places = placed(&labels, &[], &lines, panel.area, 70.0);
    let unnamed = places.iter().filter(|place| place.is_none()).count();
    for ((arrow, label), place) in order.iter().zip(&labels).zip(places) {
        if let Some(place) = place {
            canvas.labeled("", &tip(arrow), |canvas| {
                draw_placed(canvas, label, place, Font::label(p.ink, Anchor::Start));
            });
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
