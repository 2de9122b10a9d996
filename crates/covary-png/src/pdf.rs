//! A page of vectors from SVG, with the letters of the shipped font that it uses.
//!
//! What figures are made of is written, and no more: filled and stroked paths, opacity, clips and text (PDF 1.7, ISO 32000-1).

use crate::sfnt::Sfnt;
use crate::{BOLD, Error, REGULAR, parsed};
use flate2::{Compression, write::ZlibEncoder};
use resvg::tiny_skia::{self, PathSegment};
use resvg::usvg::{self, Node, Paint, Transform};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;

/// Points of a pixel: 72 of one, 96 of the other make an inch.
const POINTS: f32 = 0.75;

/// A figure as a PDF file of one page, as large as the figure, with its title.
///
/// ```
/// let svg = r#"<svg xmlns="http://www.w3.org/2000/svg" width="302" height="40"><text x="5" y="20">α = 1</text></svg>"#;
/// let pdf = covary_png::pdf(svg, "A title")?;
/// assert!(pdf.starts_with(b"%PDF-1.7") && pdf.ends_with(b"%%EOF\n"));
/// # Ok::<(), covary_png::Error>(())
/// ```
///
/// # Errors
/// [`Error::Svg`] for text that is no SVG.
pub fn pdf(svg: &str, title: &str) -> Result<Vec<u8>, Error> {
    let tree = parsed(svg)?;
    let mut page = Page { height: tree.size().height(), ..Page::default() };
    page.group(&tree, tree.root());
    Ok(page.file(tree.size().width(), title))
}

/// What a font of the file shows: its glyphs and the text of each.
type Shown = BTreeMap<u16, String>;

#[derive(Default)]
struct Page {
    height: f32,
    content: String,
    /// Opacity of fills and of strokes, in thousandths, in order of their first use.
    opacities: Vec<(u32, u32)>,
    /// Glyphs in use, of the regular and of the bold font.
    shown: [Shown; 2],
}

/// Three digits behind the point at most.
fn short(value: f32) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

macro_rules! put {
    ($page:expr, $($what:tt)*) => {
        writeln!($page.content, $($what)*).expect("memory takes all")
    };
}

impl Page {
    /// A place on the page.
    fn at(&self, transform: Transform, mut point: tiny_skia::Point) -> String {
        transform.map_point(&mut point);
        format!("{} {}", short(POINTS * point.x), short(POINTS * (self.height - point.y)))
    }

    fn group(&mut self, tree: &usvg::Tree, group: &usvg::Group) {
        let clip = group.clip_path();
        if let Some(clip) = clip {
            put!(self, "q");
            for node in clip.root().children() {
                if let Node::Path(path) = node {
                    self.outline(path.data(), group.abs_transform().pre_concat(clip.transform()));
                }
            }
            put!(self, "W n");
        }
        for node in group.children() {
            match node {
                Node::Group(inner) => self.group(tree, inner),
                Node::Path(path) if path.is_visible() => self.path(path),
                Node::Text(text) => self.text(tree, text),
                Node::Path(_) | Node::Image(_) => {}
            }
        }
        if clip.is_some() {
            put!(self, "Q");
        }
    }

    fn outline(&mut self, path: &tiny_skia::Path, transform: Transform) {
        let mut last = tiny_skia::Point::zero();
        for segment in path.segments() {
            let line = match segment {
                PathSegment::MoveTo(p) => format!("{} m", self.at(transform, p)),
                PathSegment::LineTo(p) => format!("{} l", self.at(transform, p)),
                // A quadratic curve as the cubic one that it is.
                PathSegment::QuadTo(c, p) => {
                    let towards = |from: tiny_skia::Point| {
                        let third = |a: f32, b: f32| a + (b - a) * 2.0 / 3.0;
                        tiny_skia::Point::from_xy(third(from.x, c.x), third(from.y, c.y))
                    };
                    let (a, b) = (self.at(transform, towards(last)), self.at(transform, towards(p)));
                    format!("{a} {b} {} c", self.at(transform, p))
                }
                PathSegment::CubicTo(a, b, p) => {
                    let [a, b, p] = [a, b, p].map(|p| self.at(transform, p));
                    format!("{a} {b} {p} c")
                }
                PathSegment::Close => "h".to_owned(),
            };
            put!(self, "{line}");
            match segment {
                PathSegment::MoveTo(p)
                | PathSegment::LineTo(p)
                | PathSegment::QuadTo(_, p)
                | PathSegment::CubicTo(_, _, p) => last = p,
                PathSegment::Close => {}
            }
        }
    }

    fn path(&mut self, path: &usvg::Path) {
        let transform = path.abs_transform();
        let (fill, stroke) = (path.fill(), path.stroke());
        let fill_color = fill.and_then(|f| color(f.paint()));
        let stroke_color = stroke.and_then(|s| color(s.paint()));
        self.opacity(fill.map_or(1.0, |f| f.opacity().get()), stroke.map_or(1.0, |s| s.opacity().get()));
        if let Some(color) = fill_color {
            put!(self, "{color} rg");
        }
        if let (Some(stroke), Some(color)) = (stroke, stroke_color.as_ref()) {
            self.pen(stroke, color, transform);
        }
        let even = fill.is_some_and(|f| f.rule() == usvg::FillRule::EvenOdd);
        let paint = match (fill.is_some(), stroke_color.is_some(), even) {
            (true, true, false) => "B",
            (true, true, true) => "B*",
            (true, false, false) => "f",
            (true, false, true) => "f*",
            (false, true, _) => "S",
            (false, false, _) => return,
        };
        self.outline(path.data(), transform);
        put!(self, "{paint}");
    }

    fn pen(&mut self, stroke: &usvg::Stroke, color: &str, transform: Transform) {
        // Turned, moved and enlarged, never stretched: one number is enough.
        let larger = POINTS * (transform.sx * transform.sy - transform.kx * transform.ky).abs().sqrt();
        let dashes = stroke.dasharray().unwrap_or_default().iter().map(|d| short(larger * d));
        put!(self, "{color} RG {} w", short(larger * stroke.width().get()));
        put!(self, "[{}] 0 d", dashes.collect::<Vec<_>>().join(" "));
        let cap = match stroke.linecap() {
            usvg::LineCap::Butt => 0,
            usvg::LineCap::Round => 1,
            usvg::LineCap::Square => 2,
        };
        let join = match stroke.linejoin() {
            usvg::LineJoin::Round => 1,
            usvg::LineJoin::Bevel => 2,
            _ => 0,
        };
        put!(self, "{cap} J {join} j");
    }

    fn opacity(&mut self, fill: f32, stroke: f32) {
        let thousandths = |v: f32| (1000.0 * v).round() as u32;
        let wanted = (thousandths(fill), thousandths(stroke));
        let known = self.opacities.iter().position(|o| *o == wanted).unwrap_or_else(|| {
            self.opacities.push(wanted);
            self.opacities.len() - 1
        });
        put!(self, "/G{known} gs");
    }

    fn text(&mut self, tree: &usvg::Tree, text: &usvg::Text) {
        for span in text.layouted().iter().filter(|span| span.visible) {
            let fill = span.fill.as_ref().and_then(|f| Some((f.opacity().get(), color(f.paint())?)));
            let stroke = span.stroke.as_ref().and_then(|s| Some((s, color(s.paint())?)));
            // A rim lies below the letters.
            if let Some((pen, color)) = &stroke {
                self.opacity(1.0, pen.opacity().get());
                self.pen(pen, color, text.abs_transform());
                self.letters(tree, text, span, 1);
            }
            if let Some((opacity, color)) = fill {
                self.opacity(opacity, 1.0);
                put!(self, "{color} rg");
                self.letters(tree, text, span, 0);
            }
        }
    }

    fn letters(&mut self, tree: &usvg::Tree, text: &usvg::Text, span: &usvg::layout::Span, mode: u8) {
        put!(self, "BT {mode} Tr");
        for glyph in &span.positioned_glyphs {
            let bold = tree.fontdb().face(glyph.font).is_some_and(|face| face.weight.0 >= 600);
            let units = Sfnt::new(if bold { BOLD } else { REGULAR }).units_per_em();
            let id = u16::try_from(glyph.id.0).unwrap_or(0);
            self.shown[usize::from(bold)].entry(id).or_insert_with(|| glyph.text.clone());
            let t = text.abs_transform().pre_concat(glyph.outline_transform());
            let em = POINTS * f32::from(units);
            let [a, b, c, d] = [em * t.sx, -em * t.ky, em * t.kx, -em * t.sy].map(short);
            let (x, y) = (short(POINTS * t.tx), short(POINTS * (self.height - t.ty)));
            put!(self, "/F{} 1 Tf {a} {b} {c} {d} {x} {y} Tm <{id:04x}> Tj", u8::from(bold));
        }
        put!(self, "ET");
    }

    /// Puts the objects together.
    fn file(&self, width: f32, title: &str) -> Vec<u8> {
        let mut file = File::default();
        let (catalog, pages, page, info) = (file.reserve(), file.reserve(), file.reserve(), file.reserve());
        let content = file.stream("", self.content.as_bytes());
        let mut fonts = String::new();
        for (k, shown) in self.shown.iter().enumerate().filter(|(_, shown)| !shown.is_empty()) {
            let font = file.font(shown, if k == 0 { REGULAR } else { BOLD }, k == 1);
            write!(fonts, "/F{k} {font} 0 R ").expect("memory takes all");
        }
        let mut states = String::new();
        for (k, (fill, stroke)) in self.opacities.iter().enumerate() {
            let [fill, stroke] = [*fill, *stroke].map(|v| short(v as f32 / 1000.0));
            write!(states, "/G{k} << /ca {fill} /CA {stroke} >> ").expect("memory takes all");
        }
        let [w, h] = [width, self.height].map(|v| short(POINTS * v));
        file.put(catalog, &format!("<< /Type /Catalog /Pages {pages} 0 R >>"));
        file.put(pages, &format!("<< /Type /Pages /Kids [{page} 0 R] /Count 1 >>"));
        file.put(
            page,
            &format!(
                "<< /Type /Page /Parent {pages} 0 R /MediaBox [0 0 {w} {h}] /Contents {content} 0 R \
                 /Group << /S /Transparency /CS /DeviceRGB >> \
                 /Resources << /Font << {fonts}>> /ExtGState << {states}>> >> >>"
            ),
        );
        file.put(info, &format!("<< /Title {} /Producer (Covary) >>", utf16(title)));
        file.finish(catalog, info)
    }
}

/// Red, green and blue from 0 to 1; figures have no other paint.
fn color(paint: &Paint) -> Option<String> {
    match paint {
        Paint::Color(c) => Some([c.red, c.green, c.blue].map(|v| short(f32::from(v) / 255.0)).join(" ")),
        _ => None,
    }
}

/// Text as PDF has it, in hexadecimal digits.
fn utf16(text: &str) -> String {
    format!("<feff{}>", hexadecimal(text))
}

fn hexadecimal(text: &str) -> String {
    text.encode_utf16().fold(String::new(), |mut digits, unit| {
        write!(digits, "{unit:04x}").expect("memory takes all");
        digits
    })
}

/// Numbered objects.
#[derive(Default)]
struct File {
    objects: Vec<Vec<u8>>,
}

impl File {
    /// The number of an object that comes later.
    fn reserve(&mut self) -> usize {
        self.objects.push(Vec::new());
        self.objects.len()
    }

    fn put(&mut self, number: usize, object: &str) {
        self.objects[number - 1] = object.as_bytes().to_vec();
    }

    fn add(&mut self, object: &str) -> usize {
        let number = self.reserve();
        self.put(number, object);
        number
    }

    fn stream(&mut self, entries: &str, bytes: &[u8]) -> usize {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(9));
        encoder.write_all(bytes).expect("memory takes all");
        let packed = encoder.finish().expect("memory takes all");
        let number = self.reserve();
        let head = format!("<< /Length {} /Filter /FlateDecode {entries}>>\nstream\n", packed.len());
        self.objects[number - 1] = [head.as_bytes(), &packed, b"\nendstream"].concat();
        number
    }

    /// A font with the glyphs that are shown, their widths, and the text that they stand for.
    fn font(&mut self, shown: &Shown, font: &[u8], bold: bool) -> usize {
        let sfnt = Sfnt::new(font);
        let used: BTreeSet<u16> = shown.keys().copied().collect();
        let subset = sfnt.with_glyphs(&used);
        let program = self.stream(&format!("/Length1 {} ", subset.len()), &subset);
        let name = if bold { "COVARY+DejaVuSans-Bold" } else { "COVARY+DejaVuSans" };
        let em = 1000.0 / f32::from(sfnt.units_per_em());
        let [low_x, low_y, high_x, high_y] = sfnt.bounds().map(|v| short(em * f32::from(v)));
        let (ascent, descent) = sfnt.ascent_and_descent();
        let [ascent, descent] = [ascent, descent].map(|v| short(em * f32::from(v)));
        let descriptor = self.add(&format!(
            "<< /Type /FontDescriptor /FontName /{name} /Flags 4 /FontBBox [{low_x} {low_y} {high_x} {high_y}] \
             /ItalicAngle 0 /Ascent {ascent} /Descent {descent} /CapHeight {ascent} /StemV {} \
             /FontFile2 {program} 0 R >>",
            if bold { 140 } else { 80 },
        ));
        let width = |&g: &u16| format!("{g} [{}]", short(em * f32::from(sfnt.advance(g))));
        let widths = used.iter().map(width).collect::<Vec<_>>().join(" ");
        let descendant = self.add(&format!(
            "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /{name} /CIDToGIDMap /Identity \
             /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> \
             /FontDescriptor {descriptor} 0 R /W [{widths}] >>"
        ));
        let unicode = self.stream("", to_unicode(shown).as_bytes());
        self.add(&format!(
            "<< /Type /Font /Subtype /Type0 /BaseFont /{name} /Encoding /Identity-H \
             /DescendantFonts [{descendant} 0 R] /ToUnicode {unicode} 0 R >>"
        ))
    }

    fn finish(self, catalog: usize, info: usize) -> Vec<u8> {
        let mut out = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec();
        let mut places = Vec::with_capacity(self.objects.len());
        for (k, object) in self.objects.iter().enumerate() {
            places.push(out.len());
            out.extend(format!("{} 0 obj\n", k + 1).bytes());
            out.extend(object);
            out.extend(b"\nendobj\n");
        }
        let start = out.len();
        let size = places.len() + 1;
        out.extend(format!("xref\n0 {size}\n0000000000 65535 f \n").bytes());
        for place in places {
            out.extend(format!("{place:010} 00000 n \n").bytes());
        }
        let trailer = format!("<< /Size {size} /Root {catalog} 0 R /Info {info} 0 R >>");
        out.extend(format!("trailer\n{trailer}\nstartxref\n{start}\n%%EOF\n").bytes());
        out
    }
}

/// Which text each glyph is, for readers that search and copy.
fn to_unicode(shown: &Shown) -> String {
    let mut map =
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CIDSystemInfo << /Registry (Adobe) \
                   /Ordering (UCS) /Supplement 0 >> def /CMapName /Adobe-Identity-UCS def /CMapType 2 def \
                   1 begincodespacerange <0000> <ffff> endcodespacerange\n"
            .to_owned();
    let named: Vec<(&u16, &String)> = shown.iter().filter(|(_, text)| !text.is_empty()).collect();
    // A block has 100 entries at most.
    for block in named.chunks(100) {
        writeln!(map, "{} beginbfchar", block.len()).expect("memory takes all");
        for (glyph, text) in block {
            writeln!(map, "<{glyph:04x}> <{}>", hexadecimal(text)).expect("memory takes all");
        }
        writeln!(map, "endbfchar").expect("memory takes all");
    }
    map + "endcmap CMapName currentdict /CMap defineresource pop end end\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([short(1.5), short(-0.0001), short(2.0), short(0.1239)], ["1.5", "0", "2", "0.124"]);
    }

    #[test]
    fn the_page_has_the_size_of_the_figure_and_every_offset_is_true() {
        let svg = r##"<svg xmlns="http://www.w3.org/2000/svg" width="302.36" height="100"><rect width="9" height="9" fill="#f00" fill-opacity="0.5"/><text x="5" y="20" font-weight="bold">a fig</text></svg>"##;
        let file = pdf(svg, "µ").expect("SVG");
        let text = String::from_utf8_lossy(&file);
        // 8 cm are 226.77 points.
        assert!(text.contains("/MediaBox [0 0 226.77 75]"), "{text}");
        assert!(
            text.contains("<feff00b5>")
                && text.contains("/ca 0.5")
                && text.contains("COVARY+DejaVuSans-Bold")
        );
        let at = |place: &str| &file[place.parse::<usize>().expect("a place")..];
        let start = text.rsplit("startxref\n").next().and_then(|t| t.lines().next()).expect("a place");
        assert!(at(start).starts_with(b"xref\n"));
        let table = String::from_utf8_lossy(at(start)).into_owned();
        for (k, line) in table.lines().skip(3).take_while(|line| line.ends_with(" n ")).enumerate() {
            assert!(at(&line[..10]).starts_with(format!("{} 0 obj", k + 1).as_bytes()), "{line}");
        }
    }
}
