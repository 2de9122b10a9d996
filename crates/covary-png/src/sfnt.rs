//! As much of the TrueType format as a part of a font needs (OpenType 1.9, `glyf`, `loca`, `hmtx`). The shipped fonts are
//! known to be whole, so nothing is checked here.

use std::collections::BTreeSet;

/// Tables that a reader of glyphs needs.
const KEPT: [&[u8; 4]; 9] = [b"cvt ", b"fpgm", b"glyf", b"head", b"hhea", b"hmtx", b"loca", b"maxp", b"prep"];

pub(crate) struct Sfnt<'a> {
    font: &'a [u8],
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn signed_at(bytes: &[u8], at: usize) -> i16 {
    i16::from_be_bytes([bytes[at], bytes[at + 1]])
}

impl<'a> Sfnt<'a> {
    pub(crate) fn new(font: &'a [u8]) -> Self {
        Self { font }
    }

    fn table(&self, tag: [u8; 4]) -> &'a [u8] {
        let records = self.font[12..].chunks_exact(16).take(usize::from(u16_at(self.font, 4)));
        let found = { records }.find(|record| record[..4] == tag[..]);
        found.map_or(&[], |record| {
            let from = u32_at(record, 8) as usize;
            &self.font[from..from + u32_at(record, 12) as usize]
        })
    }

    pub(crate) fn units_per_em(&self) -> u16 {
        u16_at(self.table(*b"head"), 18)
    }

    /// Left, lower, right and upper end of all glyphs.
    pub(crate) fn bounds(&self) -> [i16; 4] {
        [36, 38, 40, 42].map(|at| signed_at(self.table(*b"head"), at))
    }

    pub(crate) fn ascent_and_descent(&self) -> (i16, i16) {
        let hhea = self.table(*b"hhea");
        (signed_at(hhea, 4), signed_at(hhea, 6))
    }

    /// How far the next glyph is.
    pub(crate) fn advance(&self, glyph: u16) -> u16 {
        let full = u16_at(self.table(*b"hhea"), 34);
        u16_at(self.table(*b"hmtx"), 4 * usize::from(glyph.min(full - 1)))
    }

    fn outline(&self, glyph: u16) -> &'a [u8] {
        let (head, loca, glyf) = (self.table(*b"head"), self.table(*b"loca"), self.table(*b"glyf"));
        let place = |k: usize| match u16_at(head, 50) {
            0 => 2 * usize::from(u16_at(loca, 2 * k)),
            _ => u32_at(loca, 4 * k) as usize,
        };
        &glyf[place(usize::from(glyph))..place(usize::from(glyph) + 1)]
    }

    /// Glyphs that a composite glyph is put together of.
    fn parts(&self, glyph: u16) -> Vec<u16> {
        let outline = self.outline(glyph);
        let mut parts = Vec::new();
        if outline.len() < 10 || signed_at(outline, 0) >= 0 {
            return parts;
        }
        let mut at = 10;
        loop {
            let flags = u16_at(outline, at);
            parts.push(u16_at(outline, at + 2));
            at += 4 + if flags & 1 == 0 { 2 } else { 4 };
            at += match flags & 0b1100_1000 {
                0x08 => 2,
                0x40 => 4,
                0x80 => 8,
                _ => 0,
            };
            if flags & 0x20 == 0 {
                return parts;
            }
        }
    }

    /// The font with these glyphs and their parts; all others are empty and keep their numbers.
    pub(crate) fn with_glyphs(&self, glyphs: &BTreeSet<u16>) -> Vec<u8> {
        let n = u16_at(self.table(*b"maxp"), 4);
        let mut wanted: Vec<u16> = glyphs.iter().copied().filter(|g| *g < n).chain([0]).collect();
        let mut kept = BTreeSet::new();
        while let Some(glyph) = wanted.pop() {
            if kept.insert(glyph) {
                wanted.extend(self.parts(glyph));
            }
        }
        let (mut glyf, mut loca) = (Vec::new(), Vec::new());
        for glyph in 0..n {
            loca.extend((glyf.len() as u32).to_be_bytes());
            if kept.contains(&glyph) {
                glyf.extend(self.outline(glyph));
                glyf.resize(glyf.len().next_multiple_of(4), 0);
            }
        }
        loca.extend((glyf.len() as u32).to_be_bytes());
        let mut head = self.table(*b"head").to_vec();
        // Places of 4 bytes; the sum over the file is no longer true, and nobody asks for it.
        head[50..52].copy_from_slice(&1_u16.to_be_bytes());
        head[8..12].fill(0);
        let table = |tag: &[u8; 4]| match tag {
            b"glyf" => glyf.clone(),
            b"loca" => loca.clone(),
            b"head" => head.clone(),
            other => self.table(*other).to_vec(),
        };
        let tables: Vec<(&[u8; 4], Vec<u8>)> =
            KEPT.into_iter().map(|tag| (tag, table(tag))).filter(|(_, bytes)| !bytes.is_empty()).collect();
        assembled(&tables)
    }
}

fn assembled(tables: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let n = tables.len() as u16;
    let power = n.ilog2() as u16;
    let mut out = 0x0001_0000_u32.to_be_bytes().to_vec();
    for word in [n, 16 << power, power, 16 * n - (16 << power)] {
        out.extend(word.to_be_bytes());
    }
    let mut place = 12 + 16 * tables.len();
    for (tag, bytes) in tables {
        let words = bytes.chunks(4).map(|c| {
            let mut word = [0; 4];
            word[..c.len()].copy_from_slice(c);
            u32::from_be_bytes(word)
        });
        let sum = words.fold(0_u32, u32::wrapping_add);
        out.extend(&tag[..]);
        for number in [sum, place as u32, bytes.len() as u32] {
            out.extend(number.to_be_bytes());
        }
        place += bytes.len().next_multiple_of(4);
    }
    for (_, bytes) in tables {
        out.extend(bytes);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BOLD, REGULAR};

    #[test]
    fn a_part_of_a_font_keeps_its_glyphs_and_their_widths() {
        for font in [REGULAR, BOLD] {
            let whole = Sfnt::new(font);
            let glyphs: BTreeSet<u16> = (3..60).step_by(7).chain([200, 240]).collect();
            let bytes = whole.with_glyphs(&glyphs);
            assert!(bytes.len() < font.len() / 2, "{}", bytes.len());
            let part = Sfnt::new(&bytes);
            for &glyph in &glyphs {
                let outline = whole.outline(glyph);
                assert_eq!(&part.outline(glyph)[..outline.len()], outline);
                assert_eq!(part.advance(glyph), whole.advance(glyph));
                for inner in whole.parts(glyph) {
                    assert!(!part.outline(inner).is_empty() || whole.outline(inner).is_empty());
                }
            }
            assert!(part.outline(61).is_empty());
        }
    }
}
