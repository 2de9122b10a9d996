//! What figures have in common: title, conditions, notes, panels with axes, legends.

use crate::Style;
use crate::scale::{Scale, Tick};
use crate::svg::{Anchor, Canvas, Font, Rect, Stroke, Svg};
use crate::text::{Weight, shorten, width, wrap};
use crate::theme::Color;

/// Size of labels.
pub(crate) const LABEL: f64 = 11.0;
const TITLE: f64 = 15.0;
const SUBTITLE: f64 = 12.0;
const MARGIN: f64 = 18.0;

/// What stands around a figure.
pub(crate) struct Words<'a> {
    /// The finding or the subject.
    pub(crate) title: &'a str,
    /// The conditions.
    pub(crate) subtitle: &'a str,
    /// What the reader must know of the marks.
    pub(crate) note: &'a str,
}

/// A sheet with its words set, and the room they leave.
pub(crate) struct Sheet {
    pub(crate) canvas: Canvas,
    pub(crate) body: Rect,
    title: String,
    description: String,
}

impl Sheet {
    /// Sets the words around a body of the size asked for, or of `usual` width and body height.
    pub(crate) fn new(style: &Style, usual: (f64, f64), words: &Words<'_>) -> Self {
        let total_width = style.width.unwrap_or(usual.0);
        let room = total_width - 2.0 * MARGIN;
        let title = wrap(words.title, TITLE, Weight::Bold, room, 2);
        let subtitle = wrap(words.subtitle, SUBTITLE, Weight::Regular, room, 3);
        let note = wrap(words.note, LABEL, Weight::Regular, room, 4);
        let head = MARGIN + 20.0 * title.len() as f64 + 17.0 * subtitle.len() as f64 + 13.0;
        let foot = 15.0 * note.len() as f64 + if note.is_empty() { 12.0 } else { 20.0 };
        let total_height = style.height.unwrap_or(head + usual.1 + foot);
        let mut canvas = Canvas::new(total_width, total_height, style.theme);
        let p = canvas.palette();
        let mut y = MARGIN + 13.0;
        for line in &title {
            canvas.text((MARGIN, y), line, Font { size: TITLE, weight: Weight::Bold, ..Font::default() });
            y += 20.0;
        }
        for line in &subtitle {
            let font = Font { size: SUBTITLE, color: Some(p.muted), ..Font::default() };
            canvas.text((MARGIN, y), line, font);
            y += 17.0;
        }
        for (k, line) in note.iter().enumerate() {
            let at = total_height - 12.0 - 15.0 * (note.len() - 1 - k) as f64;
            canvas.text((MARGIN, at), line, Font::label(p.muted, Anchor::Start));
        }
        let h = (total_height - head - foot).max(40.0);
        let description = [words.subtitle, words.note].into_iter().filter(|w| !w.is_empty());
        Self {
            canvas,
            body: Rect { x: MARGIN, y: head, w: room, h },
            title: words.title.to_owned(),
            description: description.collect::<Vec<_>>().join(". "),
        }
    }

    pub(crate) fn finish(self) -> Svg {
        self.canvas.finish(&self.title, &self.description)
    }
}

/// An axis: how numbers lie on it, what it is called, and its ticks if they are not the usual ones.
pub(crate) struct Axis {
    pub(crate) scale: Scale,
    pub(crate) name: String,
    pub(crate) ticks: Option<Vec<Tick>>,
    pub(crate) grid: bool,
}

impl Axis {
    pub(crate) fn new(scale: Scale, name: impl Into<String>) -> Self {
        Self { scale, name: name.into(), ticks: None, grid: true }
    }

    /// Whole numbers only, as many as there is room for.
    pub(crate) fn whole(from: usize, to: usize, room: f64, name: impl Into<String>) -> Self {
        let most = (room / 26.0).max(2.0) as usize;
        let span = to - from + 1;
        let step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000]
            .into_iter()
            .find(|s| span / s <= most)
            .unwrap_or(span);
        // Counting by twos begins where the counting does; larger steps are round numbers.
        let first = if step <= 2 { from } else { from.next_multiple_of(step) };
        let ticks = (first..=to).step_by(step).map(|k| Tick { value: k as f64, text: k.to_string() });
        // Room for half a bar at both ends.
        let scale = Scale::Linear { from: from as f64 - 0.6, to: to as f64 + 0.6 };
        Self { scale, name: name.into(), ticks: Some(ticks.collect()), grid: false }
    }

    fn ticks(&self, room: f64, each: f64) -> Vec<Tick> {
        self.ticks.clone().unwrap_or_else(|| self.scale.ticks((room / each).clamp(2.0, 7.0) as usize))
    }
}

/// A panel with its axes drawn: numbers to places.
#[derive(Clone, Copy)]
pub(crate) struct Panel {
    pub(crate) area: Rect,
    pub(crate) x: Scale,
    pub(crate) y: Scale,
}

impl Panel {
    /// Draws grid, ticks and names. The name of the upright axis stands level above it: nobody turns
    /// their head.
    pub(crate) fn new(canvas: &mut Canvas, outer: Rect, x: &Axis, y: &Axis) -> Self {
        let p = canvas.palette();
        let top = if y.name.is_empty() { 8.0 } else { 24.0 };
        let bottom = if x.name.is_empty() { 22.0 } else { 38.0 };
        let y_ticks = y.ticks(outer.h - top - bottom, 34.0);
        let widest = y_ticks.iter().map(|t| width(&t.text, LABEL, Weight::Regular)).fold(0.0, f64::max);
        let area = outer.inside(widest + 8.0, top, 8.0, bottom);
        let panel = Self { area, x: x.scale, y: y.scale };
        let grid = Stroke::new(p.grid, 1.0);
        for tick in &y_ticks {
            let at = panel.py(tick.value);
            if y.grid {
                canvas.line((area.x, at), (area.right(), at), grid);
            }
            canvas.text((area.x - 6.0, at + 4.0), &tick.text, Font::label(p.muted, Anchor::End));
        }
        let mut free = f64::NEG_INFINITY;
        for tick in x.ticks(area.w, 56.0) {
            let at = panel.px(tick.value);
            if x.grid {
                canvas.line((at, area.y), (at, area.bottom()), grid);
            }
            let half = 0.5 * width(&tick.text, LABEL, Weight::Regular);
            // Labels that would touch the one before are left out.
            if at - half > free {
                canvas.text((at, area.bottom() + 15.0), &tick.text, Font::label(p.muted, Anchor::Middle));
                free = at + half + 4.0;
            }
        }
        canvas.line((area.x, area.bottom()), (area.right(), area.bottom()), Stroke::new(p.axis, 1.0));
        let name = shorten(&y.name, LABEL, outer.w);
        canvas.text((outer.x, outer.y + 11.0), &name, Font::default());
        let name = shorten(&x.name, LABEL, outer.w);
        let at = (area.x + 0.5 * area.w, area.bottom() + 32.0);
        canvas.text(at, &name, Font { anchor: Anchor::Middle, ..Font::default() });
        panel
    }

    pub(crate) fn px(&self, value: f64) -> f64 {
        self.area.x + self.area.w * self.x.place(value)
    }

    pub(crate) fn py(&self, value: f64) -> f64 {
        self.area.bottom() - self.area.h * self.y.place(value)
    }

    pub(crate) fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.px(x), self.py(y))
    }
}

/// An entry of a legend.
pub(crate) struct Entry<'a> {
    pub(crate) text: &'a str,
    pub(crate) color: Color,
    pub(crate) look: Look,
}

/// What an entry shows before its text.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Look {
    Box,
    Line { dash: f64 },
    Mark { kind: usize, hollow: bool },
}

/// A row of entries from `at` on; what does not fit the room is left out. Returns where it ends.
pub(crate) fn legend(canvas: &mut Canvas, at: (f64, f64), room: f64, entries: &[Entry<'_>]) -> f64 {
    let (mut x, end) = (at.0, at.0 + room);
    let muted = canvas.palette().muted;
    for entry in entries {
        let text = shorten(entry.text, LABEL, 0.6 * room);
        let wide = 16.0 + width(&text, LABEL, Weight::Regular) + 16.0;
        if x + wide - 16.0 > end {
            break;
        }
        let y = at.1;
        canvas.key(entry.text, |canvas| {
            match entry.look {
                Look::Box => canvas.rect(Rect { x, y: y - 9.0, w: 10.0, h: 10.0 }, entry.color),
                Look::Line { dash } => {
                    let stroke = Stroke::new(entry.color, 2.0).dashed(dash);
                    canvas.line((x, y - 4.0), (x + 12.0, y - 4.0), stroke);
                }
                Look::Mark { kind, hollow } => {
                    canvas.mark((x + 5.0, y - 4.0), kind, 4.0, entry.color, hollow);
                }
            }
            canvas.text((x + 16.0, y), &text, Font::label(muted, Anchor::Start));
        });
        x += wide;
    }
    x
}

/// Width that names need, at most `most`.
pub(crate) fn names_width<'a>(names: impl IntoIterator<Item = &'a String>, most: f64) -> f64 {
    names.into_iter().map(|n| width(n, LABEL, Weight::Regular)).fold(20.0, f64::max).min(most)
}

/// An upright bar of colors with its ends named.
pub(crate) fn color_bar(canvas: &mut Canvas, bar: Rect, of: impl Fn(f64) -> Color, ticks: &[(f64, String)]) {
    const STEPS: usize = 40;
    for k in 0..STEPS {
        let cell = bar.row(STEPS - 1 - k, STEPS, 0.0);
        canvas.cells(&[Rect { h: cell.h + 0.3, ..cell }], of((k as f64 + 0.5) / STEPS as f64));
    }
    let muted = canvas.palette().muted;
    for (place, text) in ticks {
        let y = bar.bottom() - place * bar.h + 4.0;
        canvas.text((bar.right() + 5.0, y), text, Font::label(muted, Anchor::Start));
    }
}

/// Keeps labels one below the other apart: moves them as little as needed, within `from..to`.
pub(crate) fn spread(places: &[f64], apart: f64, from: f64, to: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|&a, &b| places[a].total_cmp(&places[b]));
    let mut out = places.to_vec();
    let mut last = from - apart;
    for &k in &order {
        out[k] = out[k].max(last + apart);
        last = out[k];
    }
    let mut next = to + apart;
    for &k in order.iter().rev() {
        out[k] = out[k].min(next - apart);
        next = out[k];
    }
    out
}
