//! A small canvas that writes SVG text.
//!
//! Numbers have two digits behind the point, attributes one order, text is escaped: the same calls give
//! the same bytes, and no name of a column can become markup.

use crate::text::{Weight, clean, in_tip};
use crate::theme::{Color, Palette, Theme};
use std::fmt::{self, Write};

/// A finished figure.
///
/// ```
/// use covary_report::{Style, svg::{Canvas, Font}};
/// let mut canvas = Canvas::new(80.0, 20.0, Style::default().theme);
/// canvas.text((5.0, 14.0), "<b>a & \"b\"</b>", Font::default());
/// let svg = canvas.finish("A title", "What it shows");
/// assert!(svg.as_str().contains("&lt;b&gt;a &amp; &quot;b&quot;&lt;/b&gt;"));
/// assert!(svg.as_str().contains("role=\"img\"") && svg.as_str().contains("<title"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Svg {
    text: String,
    width: f64,
    height: f64,
    /// What those who cannot see it are told, escaped.
    pub(crate) title: String,
    pub(crate) description: String,
}

impl Svg {
    /// The file.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its title, as text.
    pub fn title(&self) -> String {
        let marks = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
        marks.iter().fold(self.title.clone(), |title, (mark, letter)| title.replace(mark, letter))
    }

    /// What is drawn, without the words around it; ends the file.
    pub(crate) fn body(&self) -> &str {
        const WORDS_END: &str = "</desc>\n";
        self.text.split_once(WORDS_END).map_or("", |(_, body)| body)
    }

    /// Width and height in pixels, 96 of which make an inch.
    pub fn size(&self) -> (f64, f64) {
        (self.width, self.height)
    }

    /// The same drawing with all of it, letters and lines, `factor` times as large.
    ///
    /// ```
    /// use covary_report::{Style, svg::Canvas};
    /// let svg = Canvas::new(80.0, 20.0, Style::default().theme).finish("", "").enlarged(1.5);
    /// assert_eq!(svg.size(), (120.0, 30.0));
    /// assert!(svg.as_str().contains(r#"width="120" height="30" viewBox="0 0 80 20""#));
    /// ```
    #[must_use]
    pub fn enlarged(self, factor: f64) -> Self {
        let sides = |w: f64, h: f64| format!("width=\"{}\" height=\"{}\"", Number(w), Number(h));
        let (width, height) = (self.width * factor, self.height * factor);
        let text = self.text.replacen(&sides(self.width, self.height), &sides(width, height), 1);
        Self { text, width, height, ..self }
    }
}

impl fmt::Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// An upright rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rect {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width.
    pub w: f64,
    /// Height.
    pub h: f64,
}

impl Rect {
    /// Right edge.
    pub fn right(&self) -> f64 {
        self.x + self.w
    }

    /// Lower edge.
    pub fn bottom(&self) -> f64 {
        self.y + self.h
    }

    /// What is left when so much is cut off at the left, top, right and bottom.
    #[must_use]
    pub fn inside(&self, left: f64, top: f64, right: f64, bottom: f64) -> Self {
        let (w, h) = ((self.w - left - right).max(1.0), (self.h - top - bottom).max(1.0));
        Self { x: self.x + left, y: self.y + top, w, h }
    }

    /// Part `k` of `n` side by side, with gaps between them.
    #[must_use]
    pub fn column(&self, k: usize, n: usize, gap: f64) -> Self {
        let w = (self.w - gap * (n as f64 - 1.0)) / n as f64;
        Self { x: self.x + k as f64 * (w + gap), w, ..*self }
    }

    /// Part `k` of `n` below each other.
    #[must_use]
    pub fn row(&self, k: usize, n: usize, gap: f64) -> Self {
        let h = (self.h - gap * (n as f64 - 1.0)) / n as f64;
        Self { y: self.y + k as f64 * (h + gap), h, ..*self }
    }
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stroke {
    /// Its color.
    pub color: Color,
    /// Its width.
    pub width: f64,
    /// Lengths of dash and gap; 0 for a line without.
    pub dash: f64,
    /// From 0, unseen, to 1.
    pub opacity: f64,
}

impl Stroke {
    /// A plain line.
    pub fn new(color: Color, width: f64) -> Self {
        Self { color, width, dash: 0.0, opacity: 1.0 }
    }

    /// The same, dashed.
    #[must_use]
    pub fn dashed(self, dash: f64) -> Self {
        Self { dash, ..self }
    }

    /// The same, paler.
    #[must_use]
    pub fn faint(self, opacity: f64) -> Self {
        Self { opacity, ..self }
    }
}

/// Where text hangs on its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Anchor {
    /// It begins there.
    #[default]
    Start,
    /// It is centered there.
    Middle,
    /// It ends there.
    End,
}

/// How text looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Font {
    /// Height in pixels.
    pub size: f64,
    /// Weight.
    pub weight: Weight,
    /// Color; that of the ink if none.
    pub color: Option<Color>,
    /// Where it hangs.
    pub anchor: Anchor,
    /// Rotated by this many degrees about its place.
    pub turn: f64,
    /// Whether a rim of paper keeps it readable over lines.
    pub halo: bool,
}

impl Default for Font {
    fn default() -> Self {
        Self {
            size: 11.0,
            weight: Weight::Regular,
            color: None,
            anchor: Anchor::Start,
            turn: 0.0,
            halo: false,
        }
    }
}

impl Font {
    /// Ordinary text of a color, hanging so.
    pub fn label(color: Color, anchor: Anchor) -> Self {
        Self { color: Some(color), anchor, ..Self::default() }
    }
}

/// Shapes of points: with colors, what tells groups apart in gray.
pub const MARKS: usize = 6;
/// How much of what is below it a filled point covers.
pub(crate) const MARK_OPACITY: f64 = 0.9;

/// Draws.
#[derive(Debug, Clone)]
pub struct Canvas {
    body: String,
    width: f64,
    height: f64,
    palette: &'static Palette,
}

/// Two digits behind the point at most, no negative zero, nothing that is not a number.
pub(crate) struct Number(pub(crate) f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = (self.0.clamp(-1e6, 1e6) * 100.0).round();
        let hundredths = if hundredths.is_nan() { 0 } else { hundredths as i64 };
        let (whole, rest) = (hundredths / 100, hundredths.abs() % 100);
        if hundredths < 0 && whole == 0 {
            f.write_str("-")?;
        }
        match rest {
            0 => write!(f, "{whole}"),
            r if r % 10 == 0 => write!(f, "{whole}.{}", r / 10),
            r => write!(f, "{whole}.{r:02}"),
        }
    }
}

/// Text as XML has it.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

macro_rules! put {
    ($canvas:expr, $($what:tt)*) => {
        write!($canvas.body, $($what)*).expect("memory takes all")
    };
}

impl Canvas {
    /// A sheet of paper.
    pub fn new(width: f64, height: f64, theme: Theme) -> Self {
        let mut canvas = Self { body: String::new(), width, height, palette: theme.palette() };
        canvas.rect(Rect { x: 0.0, y: 0.0, w: width, h: height }, canvas.palette.paper);
        canvas
    }

    /// The colors in use.
    pub fn palette(&self) -> &'static Palette {
        self.palette
    }

    /// A filled rectangle.
    pub fn rect(&mut self, r: Rect, fill: Color) {
        let [x, y, w, h] = [r.x, r.y, r.w, r.h].map(Number);
        put!(self, "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" fill=\"{fill}\"/>\n");
    }

    /// A rectangle with a line around it, filled or not.
    pub fn frame(&mut self, r: Rect, fill: Option<Color>, stroke: Stroke) {
        let [x, y, w, h] = [r.x, r.y, r.w, r.h].map(Number);
        let fill = fill.map_or("none".to_owned(), |c| c.to_string());
        put!(self, "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" fill=\"{fill}\"");
        self.stroke(stroke);
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) {
        let [a, b, c, d] = [from.0, from.1, to.0, to.1].map(Number);
        put!(self, "<line x1=\"{a}\" y1=\"{b}\" x2=\"{c}\" y2=\"{d}\"");
        self.stroke(stroke);
    }

    /// A line through points; it breaks where one is not a number.
    pub fn polyline(&mut self, points: impl IntoIterator<Item = (f64, f64)>, stroke: Stroke) {
        let mut path = String::new();
        let mut pen_down = false;
        for (x, y) in points {
            if !(x.is_finite() && y.is_finite()) {
                pen_down = false;
                continue;
            }
            let letter = if pen_down { 'L' } else { 'M' };
            write!(path, "{letter}{} {}", Number(x), Number(y)).expect("memory takes all");
            pen_down = true;
        }
        if !path.is_empty() {
            put!(self, "<path d=\"{path}\" fill=\"none\" stroke-linejoin=\"round\"");
            self.stroke(stroke);
        }
    }

    /// The filled shape with these corners.
    pub fn polygon(&mut self, points: &[(f64, f64)], fill: Color, opacity: f64) {
        let mut path = String::new();
        for (k, &(x, y)) in points.iter().enumerate() {
            write!(path, "{}{} {}", if k == 0 { 'M' } else { 'L' }, Number(x), Number(y))
                .expect("memory takes all");
        }
        put!(self, "<path d=\"{path}Z\" fill=\"{fill}\" fill-opacity=\"{}\"/>\n", Number(opacity));
    }

    /// Filled rectangles of one color as a single path: what maps and pictures are made of.
    pub fn cells(&mut self, cells: &[Rect], fill: Color) {
        if cells.is_empty() {
            return;
        }
        put!(self, "<path shape-rendering=\"crispEdges\" fill=\"{fill}\" d=\"");
        for r in cells {
            let [x, y, w, h, back] = [r.x, r.y, r.w, r.h, -r.w].map(Number);
            put!(self, "M{x} {y}h{w}v{h}h{back}z");
        }
        put!(self, "\"/>\n");
    }

    /// Hexagons that stand on a corner, of one color, as a single path.
    pub fn hexagons(&mut self, centers: &[(f64, f64)], side: f64, fill: Color) {
        if centers.is_empty() {
            return;
        }
        let (half, quarter) = (0.5 * 3f64.sqrt() * side, 0.5 * side);
        put!(self, "<path fill=\"{fill}\" d=\"");
        for &(x, y) in centers {
            let corners = [
                (0.0, -side),
                (half, -quarter),
                (half, quarter),
                (0.0, side),
                (-half, quarter),
                (-half, -quarter),
            ];
            for (k, (a, b)) in corners.into_iter().enumerate() {
                put!(self, "{}{} {}", if k == 0 { 'M' } else { 'L' }, Number(x + a), Number(y + b));
            }
            put!(self, "Z");
        }
        put!(self, "\"/>\n");
    }

    /// A circle or ellipse: half axes, and the turn of the first one in degrees.
    pub fn ellipse(&mut self, at: (f64, f64), half: (f64, f64), turn: f64, stroke: Stroke) {
        let [x, y, a, b, t] = [at.0, at.1, half.0, half.1, turn].map(Number);
        put!(
            self,
            "<ellipse rx=\"{a}\" ry=\"{b}\" transform=\"translate({x} {y}) rotate({t})\" fill=\"none\""
        );
        self.stroke(stroke);
    }

    /// An opaque ellipse with a rim.
    pub fn oval(&mut self, (x, y): (f64, f64), half: (f64, f64), fill: Color, rim: Stroke) {
        let [x, y, a, b] = [x, y, half.0, half.1].map(Number);
        put!(self, "<ellipse cx=\"{x}\" cy=\"{y}\" rx=\"{a}\" ry=\"{b}\" fill=\"{fill}\"");
        self.stroke(rim);
    }

    /// An opaque disc with a rim.
    pub fn disc(&mut self, (x, y): (f64, f64), radius: f64, fill: Color, rim: Stroke) {
        let [x, y, r] = [x, y, radius].map(Number);
        put!(self, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" fill=\"{fill}\"");
        self.stroke(rim);
    }

    /// A point: mark `kind`, filled or hollow.
    pub fn mark(&mut self, (x, y): (f64, f64), kind: usize, size: f64, color: Color, hollow: bool) {
        let s = size;
        let corners: &[(f64, f64)] = match kind % MARKS {
            0 => &[],
            1 => &[(-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)],
            2 => &[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
            3 => &[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
            4 => &[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)],
            _ => &[
                (-0.4, -1.2),
                (0.4, -1.2),
                (0.4, -0.4),
                (1.2, -0.4),
                (1.2, 0.4),
                (0.4, 0.4),
                (0.4, 1.2),
                (-0.4, 1.2),
                (-0.4, 0.4),
                (-1.2, 0.4),
                (-1.2, -0.4),
                (-0.4, -0.4),
            ],
        };
        let [px, py, r] = [x, y, s].map(Number);
        if corners.is_empty() {
            put!(self, "<circle cx=\"{px}\" cy=\"{py}\" r=\"{r}\"");
        } else {
            put!(self, "<path d=\"");
            for (k, (a, b)) in corners.iter().enumerate() {
                put!(self, "{}{} {}", if k == 0 { 'M' } else { 'L' }, Number(x + a * s), Number(y + b * s));
            }
            put!(self, "Z\"");
        }
        if hollow {
            put!(self, " fill=\"{}\" fill-opacity=\"0.5\"", self.palette.paper);
            self.stroke(Stroke::new(color, (0.35 * s).max(0.8)));
        } else {
            put!(self, " fill=\"{color}\" fill-opacity=\"{}\"/>\n", Number(MARK_OPACITY));
        }
    }

    /// One line of text, its base line at the place given.
    pub fn text(&mut self, at: (f64, f64), text: &str, font: Font) {
        if text.is_empty() {
            return;
        }
        let (x, y, size) = (Number(at.0), Number(at.1), Number(font.size));
        let color = self.readable(font.color.unwrap_or(self.palette.ink));
        put!(self, "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{color}\"");
        match font.anchor {
            Anchor::Start => {}
            Anchor::Middle => put!(self, " text-anchor=\"middle\""),
            Anchor::End => put!(self, " text-anchor=\"end\""),
        }
        if font.weight == Weight::Bold {
            put!(self, " font-weight=\"bold\"");
        }
        if font.turn != 0.0 {
            put!(self, " transform=\"rotate({} {x} {y})\"", Number(font.turn));
        }
        if font.halo {
            let paper = self.palette.paper;
            put!(
                self,
                " stroke=\"{paper}\" stroke-width=\"3\" stroke-linejoin=\"round\" paint-order=\"stroke\""
            );
        }
        put!(self, ">{}</text>\n", escape(text));
    }

    /// A color for text on paper: nearer to the ink until its contrast is 4.5 : 1. What has hardly any stands on a dark
    /// ground of its own.
    fn readable(&self, color: Color) -> Color {
        const LEAST: f64 = 4.5;
        let contrast = |color: Color| color.contrast(self.palette.paper);
        if !(1.6..LEAST).contains(&contrast(color)) {
            return color;
        }
        let nearer = (1..=20).map(|step| color.towards(self.palette.ink, 0.05 * f64::from(step)));
        { nearer }.find(|color| contrast(*color) >= LEAST).unwrap_or(self.palette.ink)
    }

    /// A name in one or more lines, around the height of `at`; what was cut is whole when pointed at.
    pub(crate) fn name(&mut self, at: (f64, f64), name: &str, lines: &[String], font: Font) {
        const LINE: f64 = 1.12;
        let first = at.1 + 0.36 * font.size - 0.5 * LINE * font.size * (lines.len() as f64 - 1.0);
        let draw = |canvas: &mut Self| {
            for (k, line) in lines.iter().enumerate() {
                canvas.text((at.0, first + LINE * font.size * k as f64), line, font);
            }
        };
        if lines.join(" ") == clean(name) { draw(self) } else { self.labeled("", name, draw) }
    }

    /// Draws what belongs to a `series` of the legend and, pointed at, says `tip`; either may be empty.
    pub fn labeled(&mut self, series: &str, tip: &str, draw: impl FnOnce(&mut Self)) {
        put!(self, "<g");
        if !series.is_empty() {
            put!(self, " data-series=\"{}\"", escape(&in_tip(series)));
        }
        put!(self, ">");
        if !tip.is_empty() {
            const MOST_LETTERS: usize = 300;
            let cut: String = tip.chars().take(MOST_LETTERS).collect();
            put!(self, "<title>{}{}</title>", escape(&cut), if cut.len() < tip.len() { "…" } else { "" });
        }
        draw(self);
        put!(self, "</g>\n");
    }

    /// Draws the entry of a legend that a series goes by.
    pub fn key(&mut self, series: &str, draw: impl FnOnce(&mut Self)) {
        put!(self, "<g data-key=\"{}\">\n", escape(&in_tip(series)));
        draw(self);
        put!(self, "</g>\n");
    }

    /// Draws with everything outside `area` cut off.
    pub fn clipped(&mut self, area: Rect, draw: impl FnOnce(&mut Self)) {
        let [x, y, w, h] = [area.x, area.y, area.w, area.h].map(Number);
        // Named by what it is: two figures on one page may share it.
        let id = format!("clip-{x}-{y}-{w}-{h}");
        put!(
            self,
            "<clipPath id=\"{id}\"><rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"/></clipPath>\n"
        );
        put!(self, "<g clip-path=\"url(#{id})\">\n");
        draw(self);
        put!(self, "</g>\n");
    }

    fn stroke(&mut self, Stroke { color, width, dash, opacity }: Stroke) {
        put!(self, " stroke=\"{color}\" stroke-width=\"{}\"", Number(width));
        if dash > 0.0 {
            put!(self, " stroke-dasharray=\"{0} {0}\"", Number(dash));
        }
        if opacity < 1.0 {
            put!(self, " stroke-opacity=\"{}\"", Number(opacity));
        }
        put!(self, "/>\n");
    }

    /// The file, with what those who cannot see it are told.
    pub fn finish(self, title: &str, description: &str) -> Svg {
        let (w, h) = (Number(self.width), Number(self.height));
        let (title, description) = (escape(title), escape(description));
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\" \
             font-family=\"Helvetica, Arial, sans-serif\">\n<title>{title}</title>\n<desc>{description}</desc>\n{}</svg>\n",
            self.body
        );
        Svg { text, width: self.width, height: self.height, title, description }
    }
}
