//! Where the rows and cells of a text lie.
//!
//! The `csv` crate hands out fields without their quotes and without their place in the input, so it
//! cannot give a cell back as it came. The functions below find the places and nothing else; the
//! tests hold them against the crate's own reading. Reading numbers in place, by blocks of rows, is
//! also what makes the reader fast: see bench/README.md.

use super::Error;
use super::error::shown;
use memchr::{Memchr, memchr, memchr_iter, memchr2, memchr3};
use std::borrow::Cow;
use std::ops::Range;

/// What separates the cells of a text table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delimiter {
    /// This character: ASCII, and neither a quote nor a line end. Two of them have an empty cell between them.
    Character(u8),
    /// Spaces and tabs, any number of them; cells are never empty.
    Blanks,
}

impl Delimiter {
    /// A comma.
    pub const COMMA: Self = Self::Character(b',');

    #[inline]
    pub(super) fn is(self, byte: u8) -> bool {
        match self {
            Self::Character(of) => byte == of,
            Self::Blanks => is_blank(byte),
        }
    }

    /// The delimiter in words: itself in quotes, a tab and blanks by name.
    pub(super) fn words(self) -> String {
        match self {
            Self::Character(b'\t') => "tabs".to_owned(),
            Self::Character(of) => format!("`{}`", shown(&[of])),
            Self::Blanks => "blanks".to_owned(),
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Where rows begin, the header's first.
pub(super) struct Rows {
    pub(super) starts: Vec<usize>,
    pub(super) n_blank_lines: usize,
    /// The place of a quote that is never closed, in the last row; nothing is known of what follows.
    pub(super) unclosed: Option<usize>,
}

/// At most this many rows.
pub(super) fn rows(bytes: &[u8], from: usize, delimiter: Delimiter, most: usize) -> Rows {
    let quoted = memchr(b'"', &bytes[from..]).is_some();
    let (mut starts, mut n_blank_lines) = (Vec::new(), 0);
    let mut at = from;
    loop {
        let blank = line_ends(&bytes[at..]);
        at += blank.length;
        if at == bytes.len() || starts.len() == most {
            return Rows { starts, n_blank_lines, unclosed: None };
        }
        // The end of the line before is not a blank line.
        n_blank_lines += blank.count.saturating_sub(usize::from(!starts.is_empty()));
        starts.push(at);
        let end = match row_end(bytes, at, delimiter, quoted) {
            Ok(end) => end,
            Err(quote) => return Rows { starts, n_blank_lines, unclosed: Some(quote) },
        };
        if delimiter == Delimiter::Blanks && bytes[at..end].iter().copied().all(is_blank) {
            starts.pop();
            n_blank_lines += 1;
        }
        at = end;
    }
}

struct LineEnds {
    count: usize,
    length: usize,
}

/// The line ends that a text starts with.
fn line_ends(text: &[u8]) -> LineEnds {
    let length = text.iter().take_while(|&&b| matches!(b, b'\r' | b'\n')).count();
    let pairs = text[..length].windows(2).filter(|w| w == b"\r\n").count();
    LineEnds { count: length - pairs, length }
}

/// Where the row that starts at `at` ends; the place of a quote that is never closed otherwise.
fn row_end(bytes: &[u8], start: usize, delimiter: Delimiter, quoted: bool) -> Result<usize, usize> {
    if !quoted {
        return Ok(memchr2(b'\n', b'\r', &bytes[start..]).map_or(bytes.len(), |n| start + n));
    }
    let mut at = start;
    loop {
        let Some(n) = memchr3(b'"', b'\n', b'\r', &bytes[at..]) else { return Ok(bytes.len()) };
        at += n;
        if bytes[at] != b'"' {
            return Ok(at);
        }
        // A quote inside a field that did not start with one is text.
        let opens = at == start || delimiter.is(bytes[at - 1]);
        at = if opens { quoted_end(bytes, at).ok_or(at)? } else { at + 1 };
    }
}

/// Behind the quote that closes the one at `open`.
pub(super) fn quoted_end(bytes: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        at += memchr(b'"', &bytes[at..])? + 1;
        if bytes.get(at) != Some(&b'"') {
            return Some(at);
        }
        at += 1; // a doubled quote is text
    }
}

pub(super) fn unclosed(bytes: &[u8], row: usize, quote: usize) -> Error {
    Error::UnclosedQuote { row, line: line_of(bytes, quote), text: shown(&bytes[quote..]) }
}

/// Where the field that starts at `start` ends, in a row whose quotes are all closed.
pub(super) fn field_end(row: &[u8], start: usize, delimiter: Delimiter) -> usize {
    let at = match row.get(start) {
        Some(b'"') => quoted_end(row, start).unwrap_or(row.len()),
        _ => start,
    };
    let next = match delimiter {
        Delimiter::Character(of) => memchr(of, &row[at..]),
        Delimiter::Blanks => memchr2(b' ', b'\t', &row[at..]),
    };
    next.map_or(row.len(), |n| at + n)
}

/// Where the fields of a row lie, quotes included.
pub(super) struct Fields<'a> {
    row: &'a [u8],
    delimiter: Delimiter,
    at: Option<usize>,
    /// The delimiters of a row without quotes, where each of them ends a field.
    plain: Option<Memchr<'a>>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(row: &'a [u8], delimiter: Delimiter) -> Self {
        let plain = match delimiter {
            Delimiter::Character(of) => memchr(b'"', row).is_none().then(|| memchr_iter(of, row)),
            Delimiter::Blanks => None,
        };
        let mut fields = Self { row, delimiter, at: Some(0), plain };
        fields.skip_blanks();
        fields
    }

    /// Blanks before a field and behind the last are no cells.
    fn skip_blanks(&mut self) {
        if self.delimiter == Delimiter::Blanks {
            let at = self.at.unwrap_or(self.row.len());
            self.at = self.row[at..].iter().position(|&b| !is_blank(b)).map(|n| at + n);
        }
    }
}

impl Iterator for Fields<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let start = self.at?;
        let end = match &mut self.plain {
            Some(delimiters) => delimiters.next().unwrap_or(self.row.len()),
            None => field_end(self.row, start, self.delimiter),
        };
        self.at = (end < self.row.len()).then_some(end + 1);
        self.skip_blanks();
        Some(start..end)
    }
}

pub(super) fn without_line_ends(row: &[u8]) -> &[u8] {
    let end = row.iter().rposition(|b| !matches!(b, b'\r' | b'\n')).map_or(0, |last| last + 1);
    &row[..end]
}

/// A field without its quotes.
pub(super) fn unquoted(raw: &[u8]) -> Cow<'_, [u8]> {
    if raw.first() != Some(&b'"') {
        return Cow::Borrowed(raw);
    }
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 1;
    while let Some(n) = memchr(b'"', &raw[at..]) {
        out.extend_from_slice(&raw[at..at + n]);
        at += n + 1;
        if raw.get(at) != Some(&b'"') {
            break;
        }
        out.push(b'"');
        at += 1;
    }
    out.extend_from_slice(&raw[at..]);
    Cow::Owned(out)
}

/// The line a byte is on, counted from 1; only asked when something is wrong.
pub(super) fn line_of(bytes: &[u8], at: usize) -> usize {
    let ends_line = |i: &usize| match bytes[*i] {
        b'\n' => true,
        b'\r' => bytes.get(i + 1) != Some(&b'\n'),
        _ => false,
    };
    (0..at).filter(ends_line).count() + 1
}
