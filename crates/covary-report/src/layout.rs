//! What figures have in common: title, conditions, notes, panels with axes, legends.

use crate::Style;
use crate::scale::{Scale, Tick};
use crate::svg::{Anchor, Canvas, Font, Rect, Stroke, Svg};
use crate::text::{Weight, name_lines, shorten, shortened, width, wrap};
use crate::theme::Color;

/// Size of labels.
pub(crate) const LABEL: f64 = 11.0;
const TITLE: f64 = 15.0;
const SUBTITLE: f64 = 12.0;
const MARGIN: f64 = 18.0;

/// Room below which panels stand below each other instead of side by side: figures for one column of a page.
pub(crate) const NARROW: f64 = 430.0;

/// Room that the words and the panels of a figure have between its margins.
pub(crate) fn room(style: &Style, usual: f64) -> f64 {
    style.width.unwrap_or(usual) - 2.0 * MARGIN
}

/// A usual size whose height follows the width that was asked for, from `least` on.
pub(crate) fn in_proportion(style: &Style, usual: (f64, f64), least: f64) -> (f64, f64) {
    let factor = style.width.map_or(1.0, |wide| wide / usual.0);
    (usual.0, (usual.1 * factor.min(1.3)).max(least.min(usual.1)))
}

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
        // A narrow figure has more lines, not fewer words; one of a given height must leave room.
        let (more, title_size) = if room < NARROW { (2, LABEL + 2.0) } else { (1, TITLE) };
        let more = if style.height.is_some() { 1 } else { more };
        let title = wrap(words.title, title_size, Weight::Bold, room, 1 + more);
        let subtitle = wrap(words.subtitle, SUBTITLE, Weight::Regular, room, 3 * more);
        // What is said of the marks is said to its end, where the height may follow.
        let lines = if style.height.is_some() { 4 } else { 16 };
        let note = wrap(words.note, LABEL, Weight::Regular, room, lines);
        let head = MARGIN + 20.0 * title.len() as f64 + 17.0 * subtitle.len() as f64 + 13.0;
        let foot = 15.0 * note.len() as f64 + if note.is_empty() { 12.0 } else { 20.0 };
        let total_height = style.height.unwrap_or(head + usual.1 + foot);
        let mut canvas = Canvas::new(total_width, total_height, style.theme);
        let p = canvas.palette();
        let mut y = MARGIN + 13.0;
        for line in &title {
            canvas.text(
                (MARGIN, y),
                line,
                Font { size: title_size, weight: Weight::Bold, ..Font::default() },
            );
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
        Self::with_foot(canvas, outer, x, y, 0.0)
    }

    /// The same with room for marks between the area and the level axis.
    pub(crate) fn with_foot(canvas: &mut Canvas, outer: Rect, x: &Axis, y: &Axis, foot: f64) -> Self {
        // How far numbers may reach into the space between panels.
        const BESIDE: f64 = 6.0;
        let p = canvas.palette();
        let top = if y.name.is_empty() { 8.0 } else { 24.0 };
        let bottom = foot + if x.name.is_empty() { 22.0 } else { 38.0 };
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
            // Wide numbers at the ends stay out of the next panel.
            let at = at.min(outer.right() + BESIDE - half).max(outer.x - BESIDE + half);
            // Labels that would touch the one before are left out.
            if at - half > free {
                let y = area.bottom() + foot + 15.0;
                canvas.text((at, y), &tick.text, Font::label(p.muted, Anchor::Middle));
                free = at + half + 4.0;
            }
        }
        canvas.line((area.x, area.bottom()), (area.right(), area.bottom()), Stroke::new(p.axis, 1.0));
        let name = shorten(&y.name, LABEL, outer.w);
        canvas.text((outer.x, outer.y + 11.0), &name, Font::default());
        let name = shorten(&x.name, LABEL, outer.w);
        let at = (area.x + 0.5 * area.w, area.bottom() + foot + 32.0);
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

/// Height of a line of a legend.
pub(crate) const LEGEND_LINE: f64 = 17.0;
/// Room of a mark before its text, and between entries.
const KEY: f64 = 16.0;

/// Where entries stand, in as many lines as they need: offset, line and text of each.
fn arranged(entries: &[Entry<'_>], room: f64) -> Vec<(f64, usize, String)> {
    let names: Vec<String> = entries.iter().map(|e| e.text.to_owned()).collect();
    let names = shortened(&names, LABEL, room - KEY);
    let wide: Vec<f64> = names.iter().map(|text| 2.0 * KEY + width(text, LABEL, Weight::Regular)).collect();
    let in_a_line = wide.iter().sum::<f64>() - KEY <= room;
    // Many entries stand in columns.
    let step = match names.len() {
        5.. if !in_a_line => wide.iter().copied().fold(0.0, f64::max),
        _ => 0.0,
    };
    let (mut x, mut line) = (0.0, 0);
    let place = |(text, wide): (String, f64)| {
        if x > 0.0 && x + wide - KEY > room {
            (x, line) = (0.0, line + 1);
        }
        let at = (x, line, text);
        x += wide.max(step);
        at
    };
    names.into_iter().zip(wide).map(place).collect()
}

/// Height of a legend in so much room.
pub(crate) fn legend_height(entries: &[Entry<'_>], room: f64) -> f64 {
    arranged(entries, room).last().map_or(0.0, |(_, line, _)| LEGEND_LINE * (*line as f64 + 1.0))
}

/// Entries side by side from `at` on, in as many lines as they need: none is left out.
pub(crate) fn legend(canvas: &mut Canvas, at: (f64, f64), room: f64, entries: &[Entry<'_>]) {
    for (entry, (x, line, text)) in entries.iter().zip(arranged(entries, room)) {
        draw_entry(canvas, (at.0 + x, at.1 + LEGEND_LINE * line as f64), entry, &[text]);
    }
}

/// Widest legend that stands beside a figure.
const LEGEND_BESIDE: f64 = 170.0;

/// Width and height of a legend below its title, one entry below the other.
pub(crate) fn legend_beside(title: &str, entries: &[Entry<'_>]) -> (f64, f64) {
    let wide = entries.iter().map(|e| KEY + width(e.text, LABEL, Weight::Regular));
    let title = width(title, LABEL, Weight::Bold);
    let wide = wide.chain([title]).fold(0.0, f64::max).min(LEGEND_BESIDE);
    let lines: usize = beside(entries, wide).iter().map(Vec::len).sum();
    (wide, LEGEND_LINE * (entries.len() + 1) as f64 + 13.0 * (lines - entries.len().min(lines)) as f64)
}

fn beside(entries: &[Entry<'_>], wide: f64) -> Vec<Vec<String>> {
    let names: Vec<String> = entries.iter().map(|e| e.text.to_owned()).collect();
    name_lines(&names, LABEL, wide - KEY, 2)
}

/// Draws that legend.
pub(crate) fn draw_legend_beside(canvas: &mut Canvas, area: Rect, title: &str, entries: &[Entry<'_>]) {
    let font = Font { weight: Weight::Bold, ..Font::default() };
    canvas.text((area.x, area.y + 10.0), &shorten(title, LABEL, 0.9 * area.w), font);
    let mut y = area.y + 10.0 + LEGEND_LINE;
    for (entry, lines) in entries.iter().zip(beside(entries, area.w)) {
        draw_entry(canvas, (area.x, y), entry, &lines);
        y += LEGEND_LINE + 13.0 * (lines.len() - 1) as f64;
    }
}

/// An entry with its base line at `y`.
fn draw_entry(canvas: &mut Canvas, (x, y): (f64, f64), entry: &Entry<'_>, lines: &[String]) {
    let muted = canvas.palette().muted;
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
        let middle = y - 4.0 + 6.2 * (lines.len() - 1) as f64;
        canvas.name((x + KEY, middle), entry.text, lines, Font::label(muted, Anchor::Start));
    });
}

/// Width that names need, at most `most`: less, if they are cut where they do not differ.
pub(crate) fn names_width<'a>(names: impl IntoIterator<Item = &'a String>, most: f64) -> f64 {
    let names: Vec<String> = names.into_iter().cloned().collect();
    let shown = shortened(&names, LABEL, most);
    shown.iter().map(|n| width(n, LABEL, Weight::Regular)).fold(20.0, f64::max).min(most)
}

/// An upright bar of colors with its ends named.
pub(crate) fn color_bar(canvas: &mut Canvas, bar: Rect, of: impl Fn(f64) -> Color, ticks: &[(f64, String)]) {
    const STEPS: usize = 40;
    for k in 0..STEPS {
        let cell = bar.row(STEPS - 1 - k, STEPS, 0.0);
        canvas.cells(&[Rect { h: cell.h + 0.3, ..cell }], of((k as f64 + 0.5) / STEPS as f64));
    }
    canvas.frame(bar, None, Stroke::new(canvas.palette().axis, 0.6));
    let muted = canvas.palette().muted;
    for (place, text) in ticks {
        let y = bar.bottom() - place * bar.h + 4.0;
        canvas.text((bar.right() + 5.0, y), text, Font::label(muted, Anchor::Start));
    }
}

/// The same below its title, which may take two lines; the whole stands in `area`.
pub(crate) fn titled_bar(
    canvas: &mut Canvas,
    area: Rect,
    title: &str,
    of: impl Fn(f64) -> Color,
    ticks: &[(f64, String)],
) {
    let lines = name_lines(&[title.to_owned()], LABEL, area.w, 2).remove(0);
    let head = 14.0 * lines.len() as f64;
    canvas.name((area.x, area.y + 0.5 * head), title, &lines, Font::default());
    let bar =
        Rect { x: area.x, y: area.y + head + 8.0, w: 11.0, h: (area.h - head - 14.0).clamp(40.0, 200.0) };
    color_bar(canvas, bar, of, ticks);
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

/// A name to be placed beside what it names.
pub(crate) struct Label {
    /// What it names.
    pub(crate) at: (f64, f64),
    /// Its text, which fits its room.
    pub(crate) text: String,
    /// Where it stands if there is room: a direction.
    pub(crate) toward: (f64, f64),
}

/// Height of a placed name.
const LABEL_HEIGHT: f64 = 12.0;

/// From one point to another.
pub(crate) type Segment = ((f64, f64), (f64, f64));

/// Places names so that none covers another, one of the points, or leaves the area; the first ones choose first. A
/// name without such a place has none.
pub(crate) fn placed(
    labels: &[Label],
    points: &[(f64, f64)],
    lines: &[Segment],
    area: Rect,
    furthest: f64,
) -> Vec<Option<Rect>> {
    const ANGLES: usize = 16;
    let mut taken: Vec<Rect> = Vec::new();
    let mut places = Vec::with_capacity(labels.len());
    let overlaps =
        |a: &Rect, b: &Rect| a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
    let covers = |r: &Rect, (x, y): (f64, f64), room: f64| {
        r.x - room < x && x < r.right() + room && r.y - room < y && y < r.bottom() + room
    };
    for label in labels {
        let wide = width(&label.text, LABEL, Weight::Regular);
        let turn = label.toward.1.atan2(label.toward.0);
        let near: Vec<(f64, f64)> = points
            .iter()
            .copied()
            .filter(|q| {
                (q.0 - label.at.0).abs() < wide + furthest + 8.0 && (q.1 - label.at.1).abs() < furthest + 20.0
            })
            .collect();
        let mut best: Option<(f64, Rect)> = None;
        let mut radius = 7.0;
        while radius <= furthest {
            for k in 0..ANGLES {
                // Alternately to both sides of the direction asked for.
                let step = 0.5 * (k as f64 + 1.0);
                let angle = turn
                    + step.floor() * if k % 2 == 0 { -1.0 } else { 1.0 } * std::f64::consts::TAU
                        / ANGLES as f64;
                let (sin, cos) = angle.sin_cos();
                // The nearest point of the name lies in this direction.
                let (x, y) = (label.at.0 + radius * cos, label.at.1 + radius * sin);
                let room = Rect {
                    x: x - 0.5 * wide * (1.0 - cos),
                    y: y - 0.5 * LABEL_HEIGHT * (1.0 - sin),
                    w: wide,
                    h: LABEL_HEIGHT,
                };
                let inside = room.x >= area.x
                    && room.right() <= area.right()
                    && room.y >= area.y
                    && room.bottom() <= area.bottom();
                if !inside || taken.iter().any(|t| overlaps(&room, t)) {
                    continue;
                }
                let covered = near.iter().filter(|q| covers(&room, **q, 2.0)).count();
                let crossed = lines.iter().filter(|(a, b)| crosses(&room, *a, *b)).count();
                let cost = radius + 1.5 * step + 14.0 * covered as f64 + 24.0 * crossed as f64;
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    best = Some((cost, room));
                }
            }
            radius += 6.0;
        }
        taken.extend(best.as_ref().map(|b| b.1));
        places.push(best.map(|b| b.1));
    }
    places
}

/// Whether a line enters a rectangle.
fn crosses(r: &Rect, a: (f64, f64), b: (f64, f64)) -> bool {
    let (mut from, mut to) = (0.0_f64, 1.0_f64);
    for (p, d, low, high) in [(a.0, b.0 - a.0, r.x, r.right()), (a.1, b.1 - a.1, r.y, r.bottom())] {
        if d.abs() < 1e-12 {
            if p < low || p > high {
                return false;
            }
            continue;
        }
        let (s, t) = ((low - p) / d, (high - p) / d);
        (from, to) = (from.max(s.min(t)), to.min(s.max(t)));
    }
    from <= to
}

/// Draws a placed name, with a line to what it names where that is not beside it.
pub(crate) fn draw_placed(canvas: &mut Canvas, label: &Label, room: Rect, font: Font) {
    let nearest = (label.at.0.clamp(room.x, room.right()), label.at.1.clamp(room.y, room.bottom()));
    if (nearest.0 - label.at.0).hypot(nearest.1 - label.at.1) > 10.0 {
        let axis = canvas.palette().axis;
        canvas.line(label.at, nearest, Stroke::new(axis, 0.6));
    }
    canvas.text((room.x, room.y + 9.6), &label.text, font);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Theme;

    #[test]
    fn a_legend_keeps_every_entry_however_narrow() {
        let names: Vec<String> = (0..12).map(|k| format!("Species {k} of the northern region")).collect();
        let color = Theme::Light.palette().main;
        let entries: Vec<Entry<'_>> =
            names.iter().map(|text| Entry { text, color, look: Look::Box }).collect();
        for room in [120.0, 266.0, 900.0] {
            let mut canvas = Canvas::new(room, 400.0, Theme::Light);
            legend(&mut canvas, (0.0, 10.0), room, &entries);
            assert_eq!(canvas.finish("", "").as_str().matches("data-key=").count(), 12);
            let lines = arranged(&entries, room);
            assert!(
                lines.iter().all(|(x, _, text)| x + KEY + width(text, LABEL, Weight::Regular) <= room + 1e-9)
            );
            let texts: std::collections::BTreeSet<&String> = lines.iter().map(|(.., text)| text).collect();
            assert_eq!(texts.len(), 12, "names stay apart: {texts:?}");
        }
    }

    #[test]
    fn names_cover_neither_each_other_nor_points() {
        let at = |k: usize| (100.0 + 9.0 * (k % 5) as f64, 100.0 + 9.0 * (k / 5) as f64);
        let points: Vec<(f64, f64)> = (0..25).map(at).collect();
        let label = |k: usize| Label { at: at(k), text: format!("name {k}"), toward: (1.0, 0.0) };
        let labels: Vec<Label> = (0..25).map(label).collect();
        let area = Rect { x: 0.0, y: 0.0, w: 240.0, h: 240.0 };
        let rooms: Vec<Rect> = placed(&labels, &points, &[], area, 90.0).into_iter().flatten().collect();
        assert!(rooms.len() > 15, "{}", rooms.len());
        for (k, a) in rooms.iter().enumerate() {
            for b in &rooms[..k] {
                assert!(a.right() <= b.x || b.right() <= a.x || a.bottom() <= b.y || b.bottom() <= a.y);
            }
        }
    }
}
