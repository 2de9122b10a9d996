//! Panels of curves, points, bars, squares, shades and pictures: what no kind of [`plot`](crate::plot)
//! shows, drawn as those are. A [`Chart`] is its numbers; it goes to and from JSON.

use crate::layout::{
    Axis as Drawn, Entry, LABEL, Look as LegendLook, Panel as Area, Sheet, Words, legend, legend_height,
};
use crate::plot::map::{self, MapNumbers};
use crate::plot::scores::{self, ScoresNumbers};
use crate::scale::{Scale, Tick, number};
use crate::svg::{Anchor, Canvas, Font, Rect, Stroke};
use crate::text::{Weight, shorten, width};
use crate::theme::{Color, Palette};
use crate::{Style, Svg};
use serde::{Deserialize, Serialize};

/// A sheet of panels.
///
/// ```
/// use covary_report::{Style, chart::{Axis, Chart, Curves, Look, Panel, Series}};
/// let series = vec![Series::new("ours", Look::Joined, vec![(1.0, 2.0), (2.0, 3.0)])];
/// let curves = Curves { x: Axis::new("components"), y: Axis::new("nats"), series };
/// let chart = Chart { title: "A line".into(), panels: vec![Panel::curves("", curves)], ..Chart::default() };
/// assert!(chart.draw(&Style::default()).as_str().contains("components"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// The finding.
    pub title: String,
    /// The conditions.
    pub subtitle: String,
    /// What the reader must know of the marks.
    pub note: String,
    /// Panels side by side; all of them if 0.
    pub across: usize,
    /// The panels, line by line.
    pub panels: Vec<Panel>,
}

/// A panel and what stands above it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Panel {
    /// What stands above it.
    pub title: String,
    /// What it shows.
    pub content: Content,
}

/// What a panel shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Content {
    /// Numbers against numbers.
    Curves(Curves),
    /// A matrix as squares, a Hinton diagram: area by size, color by sign.
    Squares(Cells),
    /// A matrix as shades, zero in the middle.
    Shades(Cells),
    /// Little pictures in a line, in shades of gray.
    Pictures(Pictures),
    /// Values on the globe.
    Map {
        /// The values.
        numbers: MapNumbers,
        /// The value at the end of the colors, for panels to compare; the largest of these if none.
        full: Option<f64>,
    },
    /// Scores on two components, all such panels of a chart over the same range.
    Scores(ScoresNumbers),
}

/// A matrix to be drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cells {
    /// Its rows.
    pub values: Vec<Vec<f64>>,
    /// The number that fills a cell, for panels to compare; the largest of these if none.
    pub full: Option<f64>,
    /// Names of the rows; their numbers if none are given.
    pub rows: Vec<String>,
    /// What the columns are called.
    pub columns: String,
}

/// Pictures with one range of values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pictures {
    /// Rows and columns of a picture.
    pub shape: (usize, usize),
    /// What is black and what is white.
    pub range: (f64, f64),
    /// What stands below a picture, and its cells row by row.
    pub tiles: Vec<(String, Vec<f64>)>,
}

/// Axes and what is drawn between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// The level axis.
    pub x: Axis,
    /// The upright axis.
    pub y: Axis,
    /// What is drawn; those of one name share a place in the legend.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// Even ratios instead of even steps.
    pub log: bool,
    /// Its ends; what the series need if none.
    pub range: Option<(f64, f64)>,
    /// Names of 1, 2, 3, … instead of numbers.
    pub names: Vec<String>,
}

impl Axis {
    /// Even steps as far as the series reach.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Even ratios.
    #[must_use]
    pub fn log(self) -> Self {
        Self { log: true, ..self }
    }

    /// From here to there.
    #[must_use]
    pub fn between(self, from: f64, to: f64) -> Self {
        Self { range: Some((from, to)), ..self }
    }

    /// Names at 1, 2, 3, ….
    #[must_use]
    pub fn named<S: ToString>(self, names: &[S]) -> Self {
        Self { names: names.iter().map(S::to_string).collect(), ..self }
    }

    fn drawn(&self, values: impl Iterator<Item = f64>) -> Drawn {
        let scale = match (self.range, self.log) {
            (Some((from, to)), true) => Scale::Log { from, to },
            (Some((from, to)), false) => Scale::Linear { from, to },
            (None, true) => Scale::log_over(values),
            (None, false) if !self.names.is_empty() => {
                Scale::Linear { from: 0.4, to: self.names.len() as f64 + 0.6 }
            }
            (None, false) => Scale::over(values, true),
        };
        let mut axis = Drawn::new(scale, self.name.clone());
        if !self.names.is_empty() {
            let tick = |(k, text): (usize, &String)| Tick { value: k as f64 + 1.0, text: text.clone() };
            axis.ticks = Some(self.names.iter().enumerate().map(tick).collect());
            axis.grid = false;
        } else if let Scale::Log { from, to } = scale {
            // A short axis has no power of ten, or one; one with ends of its own none beyond them.
            let ticks = if to / from < 50.0 { within_decades(from, to) } else { scale.ticks(6) };
            axis.ticks = Some(ticks.into_iter().filter(|t| (from..=to).contains(&t.value)).collect());
        }
        axis
    }
}

/// 1, 2 and 5 times the powers of ten around two numbers.
fn within_decades(from: f64, to: f64) -> Vec<Tick> {
    let decades = from.log10().floor() as i32..=to.log10().ceil() as i32;
    let all = decades.flat_map(|e| [1.0, 2.0, 5.0].map(|f| f * 10f64.powi(e)));
    all.map(|value| Tick { value, text: number(value, 2) }).collect()
}

/// Numbers that belong together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Their name in the legend; without one they are not in it.
    pub name: String,
    /// How they are drawn.
    pub look: Look,
    /// Which color of the palette.
    pub color: usize,
    /// The places.
    pub points: Vec<(f64, f64)>,
    /// Lengths of error bars, up and down; none if empty.
    pub errors: Vec<f64>,
    /// Words at the places, for [`Look::Words`].
    pub words: Vec<String>,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Look {
    /// A line.
    Line,
    /// A dashed line.
    Dashed,
    /// Points.
    Points,
    /// Hollow points.
    Hollow,
    /// Points joined by a line.
    Joined,
    /// Bars from 0; series of bars stand beside each other.
    Bars,
    /// Words instead of points.
    Words,
}

impl Series {
    /// A series of the first color.
    pub fn new(name: &str, look: Look, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.to_owned(), look, color: 0, points, errors: Vec::new(), words: Vec::new() }
    }

    /// In color `k` of the palette.
    #[must_use]
    pub fn color(self, k: usize) -> Self {
        Self { color: k, ..self }
    }

    /// With error bars.
    #[must_use]
    pub fn errors(self, errors: Vec<f64>) -> Self {
        Self { errors, ..self }
    }

    /// Words at the places.
    #[must_use]
    pub fn words<S: ToString>(self, words: &[S]) -> Self {
        Self { words: words.iter().map(S::to_string).collect(), ..self }
    }

    fn in_legend(&self, p: &Palette) -> (Color, LegendLook) {
        let look = match self.look {
            Look::Line => LegendLook::Line { dash: 0.0 },
            Look::Dashed => LegendLook::Line { dash: 4.0 },
            Look::Points | Look::Joined => LegendLook::Mark { kind: self.color, hollow: false },
            Look::Hollow => LegendLook::Mark { kind: self.color, hollow: true },
            Look::Bars | Look::Words => LegendLook::Box,
        };
        (p.group(self.color), look)
    }
}

impl Panel {
    /// Curves below a title.
    pub fn curves(title: &str, curves: Curves) -> Self {
        Self { title: title.to_owned(), content: Content::Curves(curves) }
    }

    /// Squares below a title; `full` fills a cell.
    pub fn squares(title: &str, values: Vec<Vec<f64>>, full: f64, columns: &str) -> Self {
        let cells = Cells { values, full: Some(full), rows: Vec::new(), columns: columns.to_owned() };
        Self { title: title.to_owned(), content: Content::Squares(cells) }
    }

    /// Shades below a title; `full` has the darkest.
    pub fn shades(title: &str, values: Vec<Vec<f64>>, full: f64) -> Self {
        let cells = Cells { values, full: Some(full), rows: Vec::new(), columns: String::new() };
        Self { title: title.to_owned(), content: Content::Shades(cells) }
    }

    /// A map below a title, its colors up to `full`.
    pub fn map(title: &str, numbers: MapNumbers, full: Option<f64>) -> Self {
        Self { title: title.to_owned(), content: Content::Map { numbers, full } }
    }

    /// Scores below a title.
    pub fn scores(title: &str, numbers: ScoresNumbers) -> Self {
        Self { title: title.to_owned(), content: Content::Scores(numbers) }
    }

    /// Height that the content needs in so much width.
    fn height(&self, wide: f64) -> f64 {
        let title = if self.title.is_empty() { 0.0 } else { TITLE };
        title
            + match &self.content {
                Content::Curves(_) => (0.72 * wide).clamp(200.0, 300.0),
                Content::Squares(cells) | Content::Shades(cells) => cells.size(wide).1,
                Content::Pictures(pictures) => pictures.tile(wide).1 + pictures.captions(),
                Content::Map { numbers, .. } if numbers.places.is_empty() => 0.0,
                Content::Map { numbers, .. } => map::panel_height(numbers, wide),
                Content::Scores(_) => 0.9 * wide,
            }
    }
}

/// Room for the title of a panel.
const TITLE: f64 = 24.0;
/// Widest side of a cell, of a picture, and room around cells for names.
const CELL: f64 = 30.0;
const PICTURE: f64 = 84.0;
const NAMES: f64 = 26.0;

impl Cells {
    fn names(&self) -> f64 {
        let widest = self.rows.iter().map(|n| width(n, LABEL, Weight::Regular)).fold(0.0, f64::max);
        NAMES.max(widest + 8.0)
    }

    /// Side of a cell, and height of the whole, in so much width.
    fn size(&self, wide: f64) -> (f64, f64) {
        let columns = self.values.first().map_or(1, Vec::len).max(1) as f64;
        let cell = ((wide - self.names()) / columns).min(CELL);
        (cell, cell * self.values.len() as f64 + NAMES + if self.columns.is_empty() { 6.0 } else { 18.0 })
    }
}

impl Pictures {
    /// Room below the pictures.
    fn captions(&self) -> f64 {
        if self.tiles.iter().all(|(caption, _)| caption.is_empty()) { 6.0 } else { 18.0 }
    }

    fn tile(&self, wide: f64) -> (f64, f64) {
        let n = self.tiles.len().max(1) as f64;
        let w = (wide / n - 8.0).min(PICTURE);
        (w, w * self.shape.0 as f64 / self.shape.1.max(1) as f64)
    }
}

impl Chart {
    /// Draws it.
    pub fn draw(&self, style: &Style) -> Svg {
        let across = if self.across == 0 { self.panels.len() } else { self.across }.max(1);
        let needs = |p: &Panel| match &p.content {
            Content::Pictures(p) => p.tiles.len() as f64 * (PICTURE + 8.0),
            Content::Map { .. } => 520.0,
            _ => 380.0,
        };
        let each = self.panels.iter().map(needs).fold(380.0, f64::max);
        let usual = (each * across as f64 + 40.0).clamp(640.0, 1100.0);
        let wide = (style.width.unwrap_or(usual) - 36.0 - GAP * (across as f64 - 1.0)) / across as f64;
        let lines: Vec<f64> = self
            .panels
            .chunks(across)
            .map(|line| line.iter().map(|p| p.height(wide)).fold(0.0, f64::max))
            .collect();
        let entries = self.entries(style.theme.palette());
        let head = match legend_height(&entries, style.width.unwrap_or(usual) - 36.0) {
            0.0 => 0.0,
            lines => lines + 3.0,
        };
        let tall = head + lines.iter().sum::<f64>() + GAP * lines.len().saturating_sub(1) as f64;
        let words = Words { title: &self.title, subtitle: &self.subtitle, note: &self.note };
        let mut sheet = Sheet::new(style, (usual, tall), &words);
        let body = sheet.body;
        legend(&mut sheet.canvas, (body.x, body.y + 11.0), body.w, &entries);
        let reach: Vec<(f64, f64)> = self.panels.iter().flat_map(Panel::reach).collect();
        let mut y = body.y + head;
        let share = (body.h - head) / (tall - head);
        for (line, height) in self.panels.chunks(across).zip(lines) {
            for (k, panel) in line.iter().enumerate() {
                let column = body.column(k, across, GAP);
                panel.draw(&mut sheet.canvas, Rect { y, h: height * share, ..column }, &reach);
            }
            y += (height + GAP) * share;
        }
        sheet.finish()
    }

    fn entries(&self, p: &'static Palette) -> Vec<Entry<'_>> {
        let mut entries: Vec<Entry<'_>> = Vec::new();
        for panel in &self.panels {
            let Content::Curves(curves) = &panel.content else { continue };
            for s in curves.series.iter().filter(|s| !s.name.is_empty()) {
                if !entries.iter().any(|e| e.text == s.name) {
                    let (color, look) = s.in_legend(p);
                    entries.push(Entry { text: &s.name, color, look });
                }
            }
        }
        if self.panels.iter().any(|p| matches!(p.content, Content::Squares(_) | Content::Shades(_))) {
            let sign = |text, color| Entry { text, color, look: LegendLook::Box };
            entries.extend([sign("positive", p.positive), sign("negative", p.negative)]);
        }
        entries
    }
}

/// Room between panels.
const GAP: f64 = 22.0;

impl Panel {
    /// Places that scores of other panels must have room for.
    fn reach(&self) -> Vec<(f64, f64)> {
        match &self.content {
            Content::Scores(numbers) => scores::reach(numbers).collect(),
            _ => Vec::new(),
        }
    }

    fn draw(&self, canvas: &mut Canvas, mut outer: Rect, reach: &[(f64, f64)]) {
        if !self.title.is_empty() {
            let font = Font { weight: Weight::Bold, ..Font::default() };
            canvas.text((outer.x, outer.y + 13.0), &shorten(&self.title, LABEL, 0.92 * outer.w), font);
            outer = outer.inside(0.0, TITLE, 0.0, 0.0);
        }
        match &self.content {
            Content::Curves(curves) => curves.draw(canvas, outer),
            Content::Squares(cells) => cells.draw(canvas, outer, true),
            Content::Shades(cells) => cells.draw(canvas, outer, false),
            Content::Pictures(pictures) => pictures.draw(canvas, outer),
            Content::Map { numbers, .. } if numbers.places.is_empty() => {}
            Content::Map { numbers, full } => map::panel(canvas, outer, numbers, *full),
            Content::Scores(numbers) => {
                scores::scatter(canvas, outer, numbers, reach, true);
            }
        }
    }
}

impl Curves {
    fn draw(&self, canvas: &mut Canvas, outer: Rect) {
        let p = canvas.palette();
        let all = || self.series.iter().flat_map(|s| s.points.iter().copied());
        let upright = self.series.iter().flat_map(|s| {
            let error = |k: usize| s.errors.get(k).copied().unwrap_or(0.0);
            let reach = move |(k, (_, y)): (usize, &(f64, f64))| [y - error(k), y + error(k)];
            let zero = if s.look == Look::Bars { Some(0.0) } else { None };
            s.points.iter().enumerate().flat_map(reach).chain(zero)
        });
        let panel = Area::new(
            canvas,
            outer,
            &self.x.drawn(all().map(|(x, _)| x)),
            &self.y.drawn(upright.collect::<Vec<_>>().into_iter()),
        );
        let bars = self.series.iter().filter(|s| s.look == Look::Bars).count();
        let mut bar = 0;
        let area = panel.area;
        let clip = Rect { x: area.x - 6.0, y: area.y - 6.0, w: area.w + 12.0, h: area.h + 12.0 };
        canvas.clipped(clip, |canvas| {
            for s in &self.series {
                s.draw(canvas, &panel, (bar, bars.max(1)), p.group(s.color));
                bar += usize::from(s.look == Look::Bars);
            }
        });
    }
}

impl Series {
    fn draw(&self, canvas: &mut Canvas, panel: &Area, (bar, bars): (usize, usize), color: Color) {
        let places: Vec<(f64, f64)> = self.points.iter().map(|&at| panel.at(at)).collect();
        // Bars of several series share 0.8 of the step between places.
        let step = self.points.windows(2).map(|w| w[1].0 - w[0].0).fold(f64::INFINITY, f64::min);
        let step = if step.is_finite() { step } else { 1.0 };
        let each = (panel.px(step) - panel.px(0.0)) * 0.8 / bars as f64;
        let shift =
            if self.look == Look::Bars { (bar as f64 - 0.5 * (bars as f64 - 1.0)) * each } else { 0.0 };
        match self.look {
            Look::Line => canvas.polyline(places.iter().copied(), Stroke::new(color, 2.0)),
            Look::Dashed => canvas.polyline(places.iter().copied(), Stroke::new(color, 1.6).dashed(5.0)),
            Look::Joined => canvas.polyline(places.iter().copied(), Stroke::new(color, 1.6)),
            Look::Bars => {
                for &(x, y) in places.iter().filter(|(x, y)| x.is_finite() && y.is_finite()) {
                    let zero = panel.py(0.0);
                    let x = x + shift - 0.5 * each;
                    canvas.rect(Rect { x, y: y.min(zero), w: each * 0.94, h: (y - zero).abs() }, color);
                }
            }
            Look::Points | Look::Hollow | Look::Words => {}
        }
        for (k, error) in self.errors.iter().enumerate().filter(|(k, _)| *k < self.points.len()) {
            let (x, y) = self.points[k];
            if !(x.is_finite() && y.is_finite() && error.is_finite()) {
                continue;
            }
            let px = panel.px(x) + shift;
            let (low, high) = (panel.py(y - error), panel.py(y + error));
            let stroke = Stroke::new(if self.look == Look::Bars { canvas.palette().ink } else { color }, 1.2);
            canvas.line((px, low), (px, high), stroke);
        }
        match self.look {
            Look::Points | Look::Joined | Look::Hollow => {
                let size = if places.len() > 300 { 1.8 } else { 3.6 };
                for &at in places.iter().filter(|(x, y)| x.is_finite() && y.is_finite()) {
                    canvas.mark(at, self.color, size, color, self.look == Look::Hollow);
                }
            }
            Look::Words => {
                let seen =
                    places.iter().zip(&self.words).filter(|((x, y), _)| x.is_finite() && y.is_finite());
                for (&(x, y), word) in seen {
                    let font = Font { halo: true, ..Font::label(color, Anchor::Middle) };
                    canvas.text((x, y + 4.0), word, font);
                }
            }
            _ => {}
        }
    }
}

impl Cells {
    fn draw(&self, canvas: &mut Canvas, outer: Rect, squares: bool) {
        let p = canvas.palette();
        let (cell, _) = self.size(outer.w);
        let (n, m) = (self.values.len(), self.values.first().map_or(0, Vec::len));
        let names = self.names();
        let area =
            Rect { x: outer.x + names, y: outer.y + NAMES - 6.0, w: cell * m as f64, h: cell * n as f64 };
        let largest = self.values.iter().flatten().fold(0.0_f64, |l, v| l.max(v.abs()));
        let full = self.full.unwrap_or(largest).max(1e-300);
        let every = ((22.0 / cell).ceil() as usize).max(1);
        for k in (0..m).step_by(every) {
            let at = (area.x + (k as f64 + 0.5) * cell, area.y - 6.0);
            canvas.text(at, &(k + 1).to_string(), Font::label(p.muted, Anchor::Middle));
        }
        for j in 0..n {
            let y = area.y + (j as f64 + 0.5) * cell + 4.0;
            let name = self.rows.get(j).cloned().unwrap_or_else(|| (j + 1).to_string());
            if j % (if self.rows.is_empty() { every } else { 1 }) == 0 {
                canvas.text((area.x - 6.0, y), &name, Font::label(p.muted, Anchor::End));
            }
        }
        if !self.columns.is_empty() {
            let at = (area.x + 0.5 * area.w, area.bottom() + 14.0);
            canvas.text(at, &self.columns, Font { anchor: Anchor::Middle, ..Font::default() });
        }
        if squares {
            for (j, row) in self.values.iter().enumerate() {
                for (k, v) in row.iter().enumerate() {
                    let s = 0.94 * cell * (v.abs() / full).min(1.0).sqrt();
                    let x = area.x + (k as f64 + 0.5) * cell;
                    let y = area.y + (j as f64 + 0.5) * cell;
                    let color = if *v < 0.0 { p.negative } else { p.positive };
                    if s >= 0.3 {
                        canvas.rect(Rect { x: x - 0.5 * s, y: y - 0.5 * s, w: s, h: s }, color);
                    }
                }
            }
        } else {
            crate::plot::covariance::paint(canvas, area, &self.values, |v| p.diverging(v / full));
        }
        canvas.frame(area, None, Stroke::new(p.grid, 1.0));
    }
}

impl Pictures {
    fn draw(&self, canvas: &mut Canvas, outer: Rect) {
        // Few gray levels: neighbors of one shade become one rectangle, and a figure stays small.
        const LEVELS: f64 = 12.0;
        let p = canvas.palette();
        let (w, h) = self.tile(outer.w);
        let (dark, light) = (Color([16, 16, 16]), Color([248, 248, 248]));
        for (k, (caption, cells)) in self.tiles.iter().enumerate() {
            let area = Rect { x: outer.x + k as f64 * (w + 8.0), y: outer.y, w, h };
            let shade = |v: &f64| {
                let share = (v - self.range.0) / (self.range.1 - self.range.0);
                (share.clamp(0.0, 1.0) * LEVELS).round() / LEVELS
            };
            let picture: Vec<Vec<f64>> =
                cells.chunks(self.shape.1.max(1)).map(|row| row.iter().map(shade).collect()).collect();
            crate::plot::covariance::paint(canvas, area, &picture, |v| dark.towards(light, v));
            canvas.frame(area, None, Stroke::new(p.grid, 0.8));
            let font = Font { size: LABEL - 1.0, ..Font::label(p.muted, Anchor::Start) };
            canvas.text((area.x, area.bottom() + 12.0), &shorten(caption, LABEL - 1.0, w + 6.0), font);
        }
    }
}

/// Largest absolute number of some matrices, so that panels can share what is full.
pub fn largest<'a>(matrices: impl IntoIterator<Item = &'a Vec<Vec<f64>>>) -> f64 {
    matrices.into_iter().flatten().flatten().fold(0.0_f64, |l, v| l.max(v.abs()))
}

/// A number as tables have it: this many digits after the point, with the sign of typesetters.
pub fn fixed(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return number(value, 1);
    }
    let text = format!("{value:.digits$}");
    // −0.00 is 0.00.
    let zero = text.trim_start_matches(['-', '0', '.']).is_empty();
    crate::scale::minus(if zero { text.trim_start_matches('-') } else { &text })
}
