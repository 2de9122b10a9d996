//! Worksheets of workbooks (.xlsx, .ods), put into comma-separated text and read as such: titles above the table, headers,
//! gaps and columns of text are found as in a text file.
//!
//! A number leaves as the shortest digits that read back as the same f64, a day or time in the form of ISO 8601, an error as
//! Excel shows it (`#DIV/0!`; `#N/A` is a gap). Lines of the text are rows of the worksheet. The decoder is that of
//! `calamine`; what it would take memory for is unpacked and counted first.

use super::csv::{self, Origin, push_shortest};
use super::{Delimiter, Error, Format, Input, Layout, Note, ReadOptions, Table, guarded};
use calamine::{Data, DataRef, ExcelDateTime, Ods, Reader, SheetVisible, Xlsx};
use quick_xml::events::Event;
use std::io::{Cursor, Read, Write};
use zip::ZipArchive;

/// Bytes that the decoder of a workbook keeps for a byte of its XML: a style of five bytes is a record, a text has a header.
const STYLES: u64 = 64;
const OTHERS: u64 = 4;
/// Bytes that a cell of an .ods takes, with the formula beside it.
const CELL: u64 = 64;
/// The most columns and rows of a worksheet.
const WIDEST: usize = 1 << 14;
const LONGEST: u64 = 1 << 20;

/// Reads a worksheet.
pub(super) fn read<R: Read>(input: Input<R>, format: Format, options: &ReadOptions) -> Result<Table, Error> {
    let bytes = super::bytes(input, format.gzip, options.max_memory)?;
    let kind = format.layout.name();
    let (text, note) = guarded(kind, || {
        weigh(&bytes, format.layout, options)?;
        let cursor = Cursor::new(&bytes[..]);
        match format.layout {
            Layout::Ods => of_ods(Ods::new(cursor).map_err(|e| damaged(kind, &e))?, options),
            _ => of_xlsx(Xlsx::new(cursor).map_err(|e| damaged(kind, &e))?, options),
        }
    })?;
    drop(bytes);
    // Cells of a worksheet are separated as they were put into text, whatever their words look like.
    let separated = options.decimal_comma != Some(true);
    let delimiter = if separated { Some(Delimiter::COMMA) } else { options.delimiter };
    let options = &ReadOptions { delimiter, ..options.clone() };
    let mut table = csv::parse(text, Origin::Worksheet, Layout::Csv, options)?;
    table.notes.splice(0..0, note);
    Ok(table)
}

fn damaged(format: &'static str, why: &dyn std::fmt::Display) -> Error {
    Error::Damaged { format, why: why.to_string() }
}

/// Refuses a workbook whose parts, unpacked, take more memory than they may: sizes are counted, not believed.
fn weigh(bytes: &[u8], layout: Layout, options: &ReadOptions) -> Result<(), Error> {
    let kind = layout.name();
    let not_one = |_| Error::NotOfFormat { format: kind };
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(not_one)?;
    let limit = options.max_memory.unwrap_or(u64::MAX / (2 * STYLES));
    let mut total = 0;
    for i in 0..archive.len() {
        let part = archive.by_index(i).map_err(|e| damaged(kind, &e))?;
        let name = part.name().map_err(|e| damaged(kind, &e))?.to_ascii_lowercase();
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        if ending != "xml" && ending != "rels" {
            continue;
        }
        let weight = if name.ends_with("styles.xml") { STYLES } else { OTHERS };
        let mut part = part.take((limit - total) / weight + 1);
        if name == "content.xml" {
            let mut xml = Vec::new();
            part.read_to_end(&mut xml).map_err(|e| damaged(kind, &e))?;
            total = total.saturating_add(expanded(&xml).max(weight * xml.len() as u64));
            options.allow(total)?;
            if !ends(&xml) {
                return Err(damaged(kind, &"an element of content.xml does not end"));
            }
        } else {
            let length = std::io::copy(&mut part, &mut std::io::sink()).map_err(|e| damaged(kind, &e))?;
            total = total.saturating_add(weight * length);
        }
        options.allow(total)?;
    }
    Ok(())
}

/// Whether every element ends, by its own name: the decoder of .ods waits for the end of a table as long as it takes.
fn ends(xml: &[u8]) -> bool {
    let mut reader = quick_xml::Reader::from_reader(xml);
    let mut open = 0_usize;
    loop {
        match reader.read_event() {
            Ok(Event::Start(_)) => open += 1,
            // One that was not opened is an error.
            Ok(Event::End(_)) => open -= 1,
            Ok(Event::Eof) => return open == 0,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

/// At least the bytes that the tables of an .ods take when its repeated cells and rows are written out: the empty ones at
/// the end of a row or table, which programs repeat to the edge of the sheet, take none.
fn expanded(xml: &[u8]) -> u64 {
    let finder = memchr::memmem::Finder::new(b"<table:");
    let mut tags = finder.find_iter(xml).peekable();
    let (mut total, mut widest) = (0_u64, 0_u64);
    // Of the present row: its repeats, its width with and without the empty cells at its end, its bytes.
    let (mut repeats, mut width, mut filled, mut bytes) = (0_u64, 0_u64, 0_u64, 0_u64);
    let (mut rows, mut pending) = (0_u64, 0_u64);
    let mut end_row = |repeats: u64, filled: u64, bytes: u64| {
        total = total.saturating_add(bytes + filled * CELL).saturating_add(repeats.saturating_mul(bytes));
        widest = widest.max(filled);
        if filled > 0 {
            rows = (rows + pending + repeats).min(LONGEST);
            pending = 0;
        } else {
            pending = (pending + repeats).min(LONGEST);
        }
    };
    while let Some(at) = tags.next() {
        let next = tags.peek().copied().unwrap_or(xml.len());
        let element = &xml[at..next];
        let tag = &element[..memchr::memchr(b'>', element).unwrap_or(element.len())];
        let times = |name: &[u8], most: u64| {
            let value = memchr::memmem::find(tag, name).map(|n| &tag[n + name.len()..]);
            let digits = value.into_iter().flatten().skip_while(|b| !b.is_ascii_digit());
            let number = digits.take_while(|b| b.is_ascii_digit());
            value.map_or(1, |_| number.fold(0_u64, |n, b| (10 * n + u64::from(b - b'0')).min(most)))
        };
        if tag.starts_with(b"<table:table-row") && !tag.starts_with(b"<table:table-rows") {
            end_row(repeats, filled, bytes);
            (repeats, width, filled, bytes) = (times(b"number-rows-repeated", LONGEST), 0, 0, 0);
        } else if tag.starts_with(b"<table:table-cell") || tag.starts_with(b"<table:covered-table-cell") {
            let columns = times(b"number-columns-repeated", WIDEST as u64);
            width = (width + columns).min(WIDEST as u64);
            if !tag.ends_with(b"/") || memchr::memmem::find(tag, b"office:").is_some() {
                filled = width;
                bytes = bytes.saturating_add(columns * element.len() as u64);
            }
        }
    }
    end_row(repeats, filled, bytes);
    total.saturating_add(widest.saturating_mul(rows).saturating_mul(CELL))
}

fn of_xlsx<R: Read + std::io::Seek>(
    mut book: Xlsx<R>,
    options: &ReadOptions,
) -> Result<(Vec<u8>, Option<Note>), Error> {
    let sheets = visible(book.sheets_metadata());
    let all: Vec<String> = sheets.iter().map(|s| s.0.clone()).collect();
    let read = |book: &mut Xlsx<R>, name: &str| {
        let failed = |e: calamine::XlsxError| damaged("xlsx", &e);
        let mut cells = book.worksheet_cells_reader(name).map_err(failed)?;
        let mut text = Rows::new(options);
        while let Some(cell) = cells.next_cell().map_err(failed)? {
            let (row, column) = cell.get_position();
            text.push(row as usize, column as usize, cell.get_value())?;
        }
        Ok(text)
    };
    chosen(&all, &sheets, options, |name| read(&mut book, name))
}

fn of_ods<R: Read + std::io::Seek>(
    mut book: Ods<R>,
    options: &ReadOptions,
) -> Result<(Vec<u8>, Option<Note>), Error> {
    let sheets = visible(book.sheets_metadata());
    let all: Vec<String> = sheets.iter().map(|s| s.0.clone()).collect();
    let read = |book: &mut Ods<R>, name: &str| {
        let range = book.worksheet_range(name).map_err(|e| damaged("ods", &e))?;
        let mut text = Rows::new(options);
        let start = range.start().unwrap_or((0, 0));
        for (i, row) in range.rows().enumerate() {
            for (j, cell) in row.iter().enumerate() {
                text.push(start.0 as usize + i, start.1 as usize + j, &borrowed(cell))?;
            }
        }
        Ok(text)
    };
    chosen(&all, &sheets, options, |name| read(&mut book, name))
}

fn visible(sheets: &[calamine::Sheet]) -> Vec<(String, bool)> {
    sheets.iter().map(|s| (s.name.clone(), s.visible == SheetVisible::Visible)).collect()
}

fn borrowed(cell: &Data) -> DataRef<'_> {
    match cell {
        Data::Int(value) => DataRef::Int(*value),
        Data::Float(value) => DataRef::Float(*value),
        Data::Bool(value) => DataRef::Bool(*value),
        Data::DateTime(value) => DataRef::DateTime(*value),
        Data::String(text) | Data::DateTimeIso(text) | Data::DurationIso(text) => DataRef::SharedString(text),
        Data::Error(error) => DataRef::Error(error.clone()),
        Data::Empty => DataRef::Empty,
    }
}

/// The text of the worksheet asked for, or of the first visible one that has cells, which is said where there are several.
fn chosen(
    all: &[String],
    sheets: &[(String, bool)],
    options: &ReadOptions,
    mut read: impl FnMut(&str) -> Result<Rows, Error>,
) -> Result<(Vec<u8>, Option<Note>), Error> {
    if let Some(asked) = &options.sheet {
        let by_number = || asked.parse::<usize>().ok().and_then(|n| all.get(n.checked_sub(1)?));
        let Some(name) = all.iter().find(|n| *n == asked).or_else(by_number) else {
            return Err(Error::UnknownSheet { name: asked.clone(), known: all.to_vec() });
        };
        return Ok((read(name)?.text()?, None));
    }
    for (name, _) in sheets.iter().filter(|s| s.1) {
        let rows = read(name)?;
        if !rows.is_empty() {
            let note = (all.len() > 1).then(|| Note::Sheet { name: name.clone(), all: all.to_vec() });
            return Ok((rows.text()?, note));
        }
    }
    Err(Error::Empty)
}

/// Comma-separated rows, as they come.
struct Rows {
    bytes: Vec<u8>,
    /// Where each row ends, and the columns it reaches to.
    ends: Vec<(usize, usize)>,
    /// Columns to the left that are empty in every row.
    left: usize,
    most: usize,
    cell: Vec<u8>,
}

impl Rows {
    fn new(options: &ReadOptions) -> Self {
        let most = options.max_text().map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
        Self { bytes: Vec::new(), ends: Vec::new(), left: usize::MAX, most, cell: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn push(&mut self, row: usize, column: usize, value: &DataRef<'_>) -> Result<(), Error> {
        self.cell.clear();
        write_value(value, &mut self.cell);
        if self.cell.is_empty() {
            return Ok(());
        }
        let misplaced = || damaged("workbook", &"its cells are not in order");
        if row as u64 >= LONGEST || column >= WIDEST || row + 1 < self.ends.len() {
            return Err(misplaced());
        }
        while self.ends.len() <= row {
            self.ends.push((self.bytes.len(), 0));
        }
        let (_, width) = self.ends[row];
        if column < width || (width > 0 && column + 1 == width) {
            return Err(misplaced());
        }
        self.left = self.left.min(column);
        let commas = if width == 0 { column } else { column + 1 - width };
        self.bytes.extend(std::iter::repeat_n(b',', commas));
        quote(&self.cell, &mut self.bytes);
        self.ends[row] = (self.bytes.len(), column + 1);
        self.check(self.bytes.len())
    }

    fn check(&self, bytes: usize) -> Result<(), Error> {
        if bytes <= self.most {
            return Ok(());
        }
        Err(Error::OverMemory { bytes: bytes as u64, limit: self.most as u64, is_text: true })
    }

    /// The text, every row as wide as the widest.
    fn text(self) -> Result<Vec<u8>, Error> {
        let widest = self.ends.iter().map(|r| r.1).max().unwrap_or(0);
        let filled = self.ends.iter().filter(|r| r.1 > 0).count();
        self.check(self.bytes.len() + self.ends.len() + filled.saturating_mul(widest))?;
        let mut text = Vec::with_capacity(self.bytes.len() + self.ends.len());
        let mut start = 0;
        for &(end, width) in &self.ends {
            if width > 0 {
                text.extend_from_slice(&self.bytes[start + self.left..end]);
                text.extend(std::iter::repeat_n(b',', widest - width));
            }
            text.push(b'\n');
            start = end;
        }
        Ok(text)
    }
}

/// Puts a cell between quotes where it needs them.
fn quote(cell: &[u8], out: &mut Vec<u8>) {
    if !cell.iter().any(|b| matches!(b, b',' | b'"' | b'\n' | b'\r')) {
        return out.extend_from_slice(cell);
    }
    out.push(b'"');
    for &byte in cell {
        out.extend(std::iter::repeat_n(byte, if byte == b'"' { 2 } else { 1 }));
    }
    out.push(b'"');
}

/// What a cell says.
fn write_value(value: &DataRef<'_>, out: &mut Vec<u8>) {
    let mut put = |text: std::fmt::Arguments<'_>| out.write_fmt(text).expect("memory takes all");
    match value {
        DataRef::Empty => {}
        DataRef::Int(value) => put(format_args!("{value}")),
        DataRef::Float(value) if value.fract() == 0.0 && value.abs() < 1e15 => put(format_args!("{value}")),
        DataRef::Float(value) => push_shortest(*value, out),
        DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => {
            out.extend_from_slice(text.trim().as_bytes());
        }
        DataRef::SharedString(text) => out.extend_from_slice(text.trim().as_bytes()),
        DataRef::Bool(value) => put(format_args!("{}", if *value { "TRUE" } else { "FALSE" })),
        DataRef::DateTime(time) => write_time(time, out),
        DataRef::Error(error) => put(format_args!("{error}")),
    }
}

fn write_time(time: &ExcelDateTime, out: &mut Vec<u8>) {
    let mut put = |text: std::fmt::Arguments<'_>| out.write_fmt(text).expect("memory takes all");
    let days = time.as_f64();
    // A time of day, or a duration, has no day.
    if time.is_duration() || (0.0..1.0).contains(&days) {
        let seconds = (days * 86_400.0).round();
        let (sign, seconds) = (if seconds < 0.0 { "-" } else { "" }, seconds.abs() as u64);
        return put(format_args!("{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60));
    }
    let (year, month, day, hour, minute, second, milli) = time.to_ymd_hms_milli();
    put(format_args!("{year:04}-{month:02}-{day:02}"));
    if (hour, minute, second, milli) != (0, 0, 0, 0) {
        put(format_args!("T{hour:02}:{minute:02}:{second:02}"));
    }
}
