//! Delimited text, written back byte for byte except where a gap is filled.
//!
//! The first line names the columns, or holds numbers as the others do (`io/dialect.rs` finds out, and what separates the
//! cells). Fields may stand in double quotes, where separators and line ends are text and `""` is a quote. Lines end in
//! LF, CRLF or CR; blank lines are not rows. A leading byte-order mark is not part of the first name.
//!
//! A cell is a **gap** when it is empty, `NA`, `N/A`, `#N/A`, `<NA>`, `NaN`, `null` or `None`, in
//! upper or lower case, with or without quotes, spaces around it or a sign on `NaN`. A column is
//! **numbers** when every other cell is one (spaces around it do not matter; `+.5` and `1e-7` are
//! numbers, `0x10` is not, and `1,5` is one where decimals are written so). A column that is mostly numbers and holds text is refused: a
//! slip must not take a column out of the model. All other columns are kept aside and pass through,
//! and so does a column without a name beside others: that is how R and pandas write row labels,
//! which are not measurements.
//!
//! The `csv` crate hands out fields without quotes and without positions, so `io/fields.rs` finds them itself, and random tables
//! are held against the crate's reading in the tests. One pass finds where rows begin, which quotes make a matter of order;
//! the next reads blocks of rows at once, numbers straight into their place in the dataset. Cells are not remembered: a row
//! is short, and finding a cell in it again costs less than 16 bytes for each. A filled table is then the input with some
//! spans replaced, which makes "nothing else changed" true by construction.

use super::columns::{Role, check_names};
use super::dialect;
use super::encoding::{Decoded, Encoded, decoded};
use super::error::{Place, shown};
use super::fields::{
    Delimiter, Fields, Rows, field_end, line_of, quoted_end, rows, unclosed, unquoted, without_line_ends,
};
use super::gaps::Gaps;
use super::sheet::{Cells, Sheet};
use super::table::Body;
use super::{ColumnKind, Error, Format, Input, Layout, ReadOptions, Table};
use crate::{Dataset, Matrix};
use encoding_rs::Encoding;
use rayon::prelude::*;
use std::borrow::Cow;
use std::io::{Read, Write};
use std::ops::Range;

/// Reads a comma-separated table.
///
/// ```
/// use covary::io::{csv, ColumnKind};
/// let table = csv::read("site,x,y\nnorth,1,2\nsouth,3,NA\n".as_bytes())?;
/// assert_eq!(table.column_names(), ["site", "x", "y"]);
/// assert_eq!(*table.kind(0), ColumnKind::Text { row: 0 });
/// assert_eq!(table.dataset().n_gaps(), 1);
/// # Ok::<(), covary::io::Error>(())
/// ```
///
/// # Errors
/// As [`io::read`](super::read).
pub fn read(input: impl Read) -> Result<Table, Error> {
    super::read(Input::Stream(input), Format::CSV, &ReadOptions::default())
}

/// A text table: its bytes and where its rows begin. Cells are found again when they are asked for,
/// which costs less than remembering where each of them lies.
#[derive(Debug, Clone)]
pub(super) struct Text {
    bytes: Vec<u8>,
    /// What the bytes were in before they were UTF-8.
    encoding: Option<&'static Encoding>,
    /// Where that begins which is written back.
    begin: usize,
    /// Where each data row begins; the end of the last is that of the file.
    starts: Vec<usize>,
    layout: Layout,
    delimiter: Delimiter,
    decimal_comma: bool,
    n_blank_lines: usize,
}

/// Where text comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A file: it leaves as it came.
    File,
    /// A worksheet, put into words: what stands above the table stays behind.
    #[cfg(feature = "xlsx")]
    Worksheet,
}

/// Text of a file, in any encoding.
pub(super) fn parse_encoded(bytes: Vec<u8>, layout: Layout, options: &ReadOptions) -> Result<Table, Error> {
    const OTHERS: [(&[u8], &str, &str); 6] = [
        (b"PAR1", "Parquet", "parquet"),
        (b"ARROW1", "Arrow", "arrow"),
        (b"\x93NUMPY", "a NumPy array", "npy"),
        (b"PK\x03\x04", "a workbook (.xlsx, .ods) or a zip of NumPy arrays (.npz)", "xlsx"),
        (b"\xd0\xcf\x11\xe0", "an old workbook (.xls): save it as .xlsx", "xlsx"),
        (b"\x1f\x8b", "gzip", "csv.gz"),
    ];
    if let Some(&(_, format, word)) = OTHERS.iter().find(|(magic, ..)| bytes.starts_with(magic)) {
        return Err(Error::NotText { format, word });
    }
    if super::model_file::is_one(&bytes) {
        return Err(Error::ModelAsTable);
    }
    let Decoded { bytes, encoding, note } = decoded(bytes, options.encoding.as_deref(), options.max_text())?;
    let mut table = parse(bytes, Origin::File, layout, options)?;
    if let Body::Text(text) = &mut table.body {
        text.encoding = encoding;
    }
    table.notes.splice(0..0, note);
    Ok(table)
}

/// Reads all rows in two passes: one finds where rows begin, which quotes make a matter of order;
/// the other reads the cells of blocks of rows at once, straight into the place where the dataset
/// keeps them.
pub(super) fn parse(
    bytes: Vec<u8>,
    origin: Origin,
    layout: Layout,
    options: &ReadOptions,
) -> Result<Table, Error> {
    const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
    let from = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let dialect = dialect::recognize(&bytes, from, layout, options)?;
    let Rows { mut starts, n_blank_lines, unclosed: quote } =
        rows(&bytes, from, dialect.delimiter, usize::MAX);
    if let Some(quote) = quote {
        return Err(unclosed(&bytes, starts.len() - 1, quote));
    }
    starts.drain(..dialect.above.min(starts.len()));
    let Some(&header) = starts.first() else { return Err(Error::Empty) };
    if dialect.header {
        starts.remove(0);
    }
    let begin = if origin == Origin::File { 0 } else { header };
    let (delimiter, decimal_comma) = (dialect.delimiter, dialect.decimal_comma);
    let encoding = None;
    let mut text = Text { bytes, encoding, begin, starts, layout, delimiter, decimal_comma, n_blank_lines };
    let end = text.starts.get(usize::from(!dialect.header)).copied().unwrap_or(text.bytes.len());
    let mut names = if dialect.header {
        text.names(header..end)
    } else {
        let row = without_line_ends(&text.bytes[header..end]);
        (1..=text.fields(row).count()).map(|j| format!("x{j}")).collect()
    };
    if dialect.short_header {
        names.insert(0, String::new());
    }
    check_names(&names)?;
    if text.starts.is_empty() {
        return Err(Error::NoRows { columns: names.len() });
    }
    // Rows that cannot hold that many cells would claim memory before anyone looks at them.
    if text.bytes.len() < text.starts.len().saturating_mul(names.len()) - 1 {
        text.check_lengths(&names)?;
    }

    let unnamed = |j: usize| names[j].is_empty() && names.len() > 1;
    let mut roles = options.choice.roles(&names)?;
    for j in 0..names.len() {
        if unnamed(j) && roles[j] == Role::Open {
            roles[j] = Role::Aside;
        }
    }
    let candidates: Vec<usize> = (0..names.len()).filter(|&j| roles[j] != Role::Aside).collect();
    let (mut values, texts) = text.numbers(&names, &candidates, &Gaps::new(&options.gaps))?;

    // Which candidates are numbers, then the others are taken out of the rows.
    let n_rows = text.starts.len();
    let mut kept = Vec::new();
    let mut kinds: Vec<ColumnKind> = (0..names.len())
        .map(|j| if unnamed(j) { ColumnKind::Unnamed } else { ColumnKind::Excluded })
        .collect();
    for (k, &j) in candidates.iter().enumerate() {
        let TextCells { count, first } = texts[k];
        if count == 0 {
            kinds[j] = ColumnKind::Numbers;
            kept.push(k);
            continue;
        }
        let numbers = (0..n_rows).filter(|i| !values[i * candidates.len() + k].is_nan()).count();
        if roles[j] == Role::Asked || numbers > count {
            let place = text.place(first);
            let cell = shown(&text.cell(first, j));
            return Err(Error::TextAmongNumbers {
                place,
                column: names[j].clone(),
                text: cell,
                count,
                numbers,
            });
        }
        kinds[j] = ColumnKind::Text { row: first };
    }
    if kept.is_empty() {
        return Err(text.no_numbers(&names, &kinds));
    }
    if kept.len() < candidates.len() {
        for i in 0..n_rows {
            for (to, &from) in kept.iter().enumerate() {
                values[i * kept.len() + to] = values[i * candidates.len() + from];
            }
        }
        values.truncate(n_rows * kept.len());
        values.shrink_to_fit();
    }
    let numeric: Vec<usize> = kept.iter().map(|&k| candidates[k]).collect();
    let numeric_names = numeric.iter().map(|&j| names[j].clone()).collect();
    let matrix = Matrix::from_vec(n_rows, kept.len(), values)?;
    let data = Dataset::with_names(matrix, numeric_names).map_err(|error| match error {
        crate::Error::Infinite { row, column, .. } => {
            let j = names.iter().position(|n| *n == column).expect("a column of this table");
            let cell = shown(&text.cell(row - 1, j));
            Error::Infinite { place: text.place(row - 1), column, text: cell }
        }
        other => other.into(),
    })?;
    text.bytes.shrink_to_fit();
    Ok(Table { names, kinds, data, body: Body::Text(text), notes: dialect.notes, chosen: false })
}

/// The cells of a column that are neither numbers nor gaps.
#[derive(Debug, Clone, Copy)]
struct TextCells {
    count: usize,
    /// The first row that has one.
    first: usize,
}

impl Text {
    pub(super) fn n_blank_lines(&self) -> usize {
        self.n_blank_lines
    }

    pub(super) fn delimiter(&self) -> Delimiter {
        self.delimiter
    }

    /// Whether it came in another encoding than UTF-8.
    pub(super) fn is_encoded(&self) -> bool {
        self.encoding.is_some()
    }

    pub(super) fn decimal_comma(&self) -> bool {
        self.decimal_comma
    }

    /// Whether a file of this layout can hold the bytes as they are.
    pub(super) fn is(&self, layout: Layout) -> bool {
        // `;`-separated text is kept as it came in any text file but one that promises tabs.
        let tabs = self.delimiter == Delimiter::Character(b'\t');
        layout == self.layout || if tabs { layout == Layout::Tsv } else { layout == Layout::Csv }
    }

    /// A row without its line end.
    fn row(&self, i: usize) -> &[u8] {
        let end = self.starts.get(i + 1).copied().unwrap_or(self.bytes.len());
        without_line_ends(&self.bytes[self.starts[i]..end])
    }

    fn fields<'a>(&self, row: &'a [u8]) -> Fields<'a> {
        Fields::new(row, self.delimiter)
    }

    /// A cell exactly as it came, quotes and spaces included.
    pub(super) fn raw(&self, row: usize, column: usize) -> &[u8] {
        let row = self.row(row);
        &row[self.fields(row).nth(column).expect("every row has a cell for every column")]
    }

    /// What a cell says, without its quotes.
    pub(super) fn cell(&self, row: usize, column: usize) -> Cow<'_, [u8]> {
        unquoted(self.raw(row, column))
    }

    /// The number a cell holds, for a format that tells numbers from text; NaN for a gap. What would
    /// lose digits as a number, such as the postal code 01067, is text.
    #[cfg(any(feature = "arrow", feature = "npy"))]
    pub(super) fn number(&self, row: usize, column: usize) -> Option<f64> {
        let cell = self.cell(row, column);
        let digits = cell.trim_ascii();
        let padded =
            digits.starts_with(b"+") || (digits.len() > 1 && digits[0] == b'0' && digits[1].is_ascii_digit());
        if padded {
            None
        } else {
            meaning(&cell, self.decimal_comma, &Gaps::default()).filter(|v| !v.is_infinite())
        }
    }

    /// Where a data row is, for people.
    pub(super) fn place(&self, row: usize) -> Place {
        Place { row: row + 1, line: Some(line_of(&self.bytes, self.starts[row])) }
    }

    fn names(&self, header: Range<usize>) -> Vec<String> {
        let row = without_line_ends(&self.bytes[header]);
        self.fields(row)
            .map(|field| String::from_utf8_lossy(&unquoted(&row[field])).trim().to_owned())
            .collect()
    }

    /// The cells of `columns`, row by row, NaN where they are gaps or text; and the text among them.
    fn numbers(
        &self,
        names: &[String],
        columns: &[usize],
        gaps: &Gaps,
    ) -> Result<(Vec<f64>, Vec<TextCells>), Error> {
        /// Cells read at once by a thread.
        const BLOCK: usize = 1 << 15;
        let (n, d) = (self.starts.len(), columns.len());
        let mut slots = vec![None; names.len()];
        columns.iter().enumerate().for_each(|(k, &j)| slots[j] = Some(k));
        let mut values = vec![0.0; n * d.max(1)];
        let block = (BLOCK / names.len()).max(1);
        let blocks: Vec<Result<Vec<TextCells>, Error>> = values
            .par_chunks_mut(block * d.max(1))
            .enumerate()
            .map(|(b, block_values)| {
                let mut texts = vec![TextCells { count: 0, first: 0 }; d];
                for (r, row_values) in block_values.chunks_mut(d.max(1)).enumerate() {
                    let i = b * block + r;
                    let got = self.read_row(self.row(i), &slots, gaps, row_values, |k| {
                        if texts[k].count == 0 {
                            texts[k].first = i;
                        }
                        texts[k].count += 1;
                    });
                    self.check_length(i, got, names)?;
                }
                Ok(texts)
            })
            .collect();
        let mut texts = vec![TextCells { count: 0, first: 0 }; d];
        for block in blocks {
            for (all, block) in texts.iter_mut().zip(block?) {
                if all.count == 0 {
                    all.first = block.first;
                }
                all.count += block.count;
            }
        }
        values.truncate(n * d);
        Ok((values, texts))
    }

    /// Reads the cells of a row into their slots and returns how many cells the row has; `text` is called
    /// of the slots whose cells are neither numbers nor gaps.
    fn read_row(
        &self,
        row: &[u8],
        slots: &[Option<usize>],
        gaps: &Gaps,
        out: &mut [f64],
        mut text: impl FnMut(usize),
    ) -> usize {
        if self.delimiter == Delimiter::Blanks {
            let mut n_cells = 0;
            for field in self.fields(row) {
                if let Some(&Some(slot)) = slots.get(n_cells) {
                    out[slot] = self.read_cell(&row[field], gaps, || text(slot));
                }
                n_cells += 1;
            }
            return n_cells;
        }
        let ends = |at: usize| at == row.len() || self.delimiter.is(row[at]);
        let (mut at, mut column) = (0, 0);
        loop {
            let end = match slots.get(column) {
                Some(&Some(slot)) => match self.plain_number(&row[at..]) {
                    Some((value, length)) if ends(at + length) => {
                        out[slot] = gaps.number(value);
                        at + length
                    }
                    _ => {
                        let end = field_end(row, at, self.delimiter);
                        out[slot] = self.read_cell(&row[at..end], gaps, || text(slot));
                        end
                    }
                },
                _ => field_end(row, at, self.delimiter),
            };
            column += 1;
            if end == row.len() {
                return column;
            }
            at = end + 1;
        }
    }

    fn read_cell(&self, raw: &[u8], gaps: &Gaps, text: impl FnOnce()) -> f64 {
        meaning(raw, self.decimal_comma, gaps).unwrap_or_else(|| {
            text();
            f64::NAN
        })
    }

    /// A number that starts here, and its length: nearly every cell, read without looking for its
    /// end first.
    #[inline]
    fn plain_number(&self, from: &[u8]) -> Option<(f64, usize)> {
        if self.decimal_comma { None } else { fast_float2::parse_partial(from).ok() }
    }

    fn check_length(&self, row: usize, got: usize, names: &[String]) -> Result<(), Error> {
        let expected = names.len();
        let place = || self.place(row);
        match got {
            _ if got == expected => Ok(()),
            _ if got < expected => {
                Err(Error::ShortRow { place: place(), column: names[got].clone(), expected, got })
            }
            _ => Err(Error::LongRow { place: place(), column: names[expected - 1].clone(), expected, got }),
        }
    }

    fn check_lengths(&self, names: &[String]) -> Result<(), Error> {
        (0..self.starts.len()).try_for_each(|i| {
            let got = self.fields(self.row(i)).count();
            self.check_length(i, got, names)
        })
    }

    fn no_numbers(&self, names: &[String], kinds: &[ColumnKind]) -> Error {
        let first_text = kinds.iter().enumerate().find_map(|(j, kind)| match *kind {
            ColumnKind::Text { row } => Some((row, j)),
            _ => None,
        });
        let Some((row, column)) = first_text else { return Error::NothingChosen };
        // One column whose name holds another separator was most likely cut by the wrong one.
        let other = [b';', b'\t', b'|', b',']
            .into_iter()
            .find(|&b| !self.delimiter.is(b) && names[0].as_bytes().contains(&b));
        if let (1, Some(other)) = (names.len(), other) {
            return Error::OtherDelimiter { header: shown(names[0].as_bytes()), delimiter: shown(&[other]) };
        }
        let text = shown(&self.cell(row, column));
        Error::NoNumericColumn { place: self.place(row), column: names[column].clone(), text }
    }

    /// Copies the bytes, with numbers in the place of gaps, in the encoding they came in.
    pub(super) fn write_filled(
        &self,
        table: &Table,
        values: &Matrix,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let whole = table.written_whole();
        let Some(encoding) = self.encoding else { return self.write_blocks(table, values, &whole, out) };
        let mut out = Encoded::new(out, encoding);
        self.write_blocks(table, values, &whole, &mut out)?;
        out.finish().map_err(Error::Write)
    }

    /// Blocks of rows are put together at once, a few at a time, and written in order; numbers filled into `whole` columns without
    /// a decimal point.
    pub(super) fn write_blocks(
        &self,
        table: &Table,
        values: &Matrix,
        whole: &[bool],
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        /// Bytes of a block, and blocks in memory at once.
        const BLOCK: usize = 1 << 18;
        const AT_ONCE: usize = 16;
        let columns = table.numeric_columns();
        let n = self.starts.len();
        let rows = (BLOCK * n / self.bytes.len()).max(1);
        let mut blocks = vec![Vec::new(); AT_ONCE];
        out.write_all(&self.bytes[self.begin..self.starts[0]]).map_err(Error::Write)?;
        for first in (0..n).step_by(rows * AT_ONCE) {
            blocks.par_iter_mut().enumerate().for_each(|(k, block)| {
                let start = n.min(first + k * rows);
                self.fill(start..n.min(start + rows), table, values, (&columns, whole), block);
            });
            blocks.iter().try_for_each(|block| out.write_all(block)).map_err(Error::Write)?;
        }
        Ok(())
    }

    /// Of these columns, those that are still `whole` after a look for decimal points in their observed cells.
    pub(super) fn without_points(&self, data: &Dataset, columns: &[usize], whole: &mut [bool]) {
        let point = if self.decimal_comma { b',' } else { b'.' };
        for i in 0..self.starts.len() {
            if !whole.contains(&true) {
                return;
            }
            let (row, observed) = (self.row(i), data.row(i));
            let mut fields = self.fields(row).enumerate();
            for (k, &column) in columns.iter().enumerate().filter(|(k, _)| !observed[*k].is_nan()) {
                let (_, field) = fields.find(|(j, _)| *j == column).expect("a cell per column");
                whole[k] &= !row[field].contains(&point);
            }
        }
    }

    /// Puts the bytes of some rows into `out`, gaps filled; of columns that are written as whole numbers without a
    /// decimal point.
    fn fill(
        &self,
        rows: Range<usize>,
        table: &Table,
        values: &Matrix,
        (columns, whole): (&[usize], &[bool]),
        out: &mut Vec<u8>,
    ) {
        let start = |i: usize| self.starts.get(i).copied().unwrap_or(self.bytes.len());
        let mut copied = start(rows.start);
        let end = start(rows.end);
        out.clear();
        for i in rows {
            let (before, after) = (table.data.row(i), values.row(i));
            let fill = |k: &usize| before[*k].is_nan() && !after[*k].is_nan();
            let mut filled = (0..columns.len()).filter(fill).peekable();
            if filled.peek().is_none() {
                continue;
            }
            let mut fields = self.fields(self.row(i)).enumerate();
            for k in filled {
                let (_, field) = fields.find(|(j, _)| *j == columns[k]).expect("a cell per column");
                out.extend_from_slice(&self.bytes[copied..self.starts[i] + field.start]);
                self.push_number(after[k], whole[k], out);
                copied = self.starts[i] + field.end;
            }
        }
        out.extend_from_slice(&self.bytes[copied..end]);
    }

    fn push_number(&self, value: f64, whole: bool, out: &mut Vec<u8>) {
        if !self.decimal_comma || (whole && is_plain_whole(value)) {
            return push_as_column(value, whole, out);
        }
        // A decimal comma between commas stands in quotes.
        let quotes = if self.delimiter == Delimiter::COMMA { &b"\""[..] } else { b"" };
        out.extend_from_slice(quotes);
        let start = out.len();
        push_shortest(value, out);
        out[start..].iter_mut().filter(|b| **b == b'.').for_each(|b| *b = b',');
        out.extend_from_slice(quotes);
    }
}

/// The shortest digits that read back as the same f64, with an exponent where plain digits would be
/// long: what `{:?}` gives, in 22 ns a number where that took 82.
pub(super) fn push_shortest(value: f64, out: &mut Vec<u8>) {
    // Two shortest numbers can be equally close, and then `{:?}` takes the one further from 0, zmij
    // the even one. The value has 18 digits then, so at most 25 binary places: 5²⁶ > 10¹⁸.
    const PLACES: f64 = (1 << 25) as f64;
    if (1e-4..1e16).contains(&value.abs()) && (value * PLACES).fract() != 0.0 {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else {
        write!(out, "{value:?}").expect("memory takes all");
    }
}

/// Whole numbers that f64 and everyone else write with plain digits.
fn is_plain_whole(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() < 1e15
}

/// As [`push_shortest`], `4` instead of `4.0` beside cells that are written without a decimal point.
fn push_as_column(value: f64, whole: bool, out: &mut Vec<u8>) {
    if whole && is_plain_whole(value) {
        // −0 is 0.
        write!(out, "{}", value + 0.0).expect("memory takes all");
    } else {
        push_shortest(value, out);
    }
}

/// Writes columns as text.
pub(super) fn write(sheet: &Sheet<'_>, delimiter: u8, out: &mut dyn Write) -> Result<(), Error> {
    write_sheet(sheet, delimiter, true, out)
}

/// Writes columns as text below those that are written already.
pub(super) fn write_rows(sheet: &Sheet<'_>, delimiter: u8, out: &mut dyn Write) -> Result<(), Error> {
    write_sheet(sheet, delimiter, false, out)
}

fn write_sheet(sheet: &Sheet<'_>, delimiter: u8, header: bool, out: &mut dyn Write) -> Result<(), Error> {
    for (name, cells) in sheet.names.iter().zip(&sheet.columns) {
        if let Some(kind) = cells.nested_kind() {
            let (column, format) = (name.clone(), "text");
            let instead = "write .parquet or .arrow, or remove the column";
            return Err(Error::CannotHold { column, kind, format, instead, excludable: false });
        }
    }
    let failed = |e: ::csv::Error| match e.into_kind() {
        ::csv::ErrorKind::Io(e) => Error::Write(e),
        other => Error::Write(std::io::Error::other(format!("{other:?}"))),
    };
    let mut out = ::csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
    if header {
        out.write_record(&sheet.names).map_err(failed)?;
    }
    let sources: Vec<usize> = sheet.columns.iter().map(Cells::source).collect();
    // All filled columns of a sheet are of one table.
    let table = sheet.columns.iter().find_map(|cells| match cells {
        Cells::Filled { table, .. } => Some(*table),
        _ => None,
    });
    let whole = table.map(Table::written_whole).unwrap_or_default();
    let mut field = Vec::new();
    for i in 0..sheet.n_rows() {
        for (cells, &source) in sheet.columns.iter().zip(&sources) {
            field.clear();
            let whole = matches!(cells, Cells::Filled { column, .. } if whole[*column]);
            write_cell(cells, source, i, whole, &mut field);
            out.write_field(&field).map_err(failed)?;
        }
        out.write_record(None::<&[u8]>).map_err(failed)?;
    }
    out.flush().map_err(Error::Write)
}

/// `source` is the column of the table that the cells come from, if they do; `whole` whether its cells have no
/// decimal point.
fn write_cell(cells: &Cells<'_>, source: usize, row: usize, whole: bool, field: &mut Vec<u8>) {
    let mut put = |value: std::fmt::Arguments<'_>| field.write_fmt(value).expect("memory takes all");
    match cells {
        Cells::Integers(values) => put(format_args!("{}", values[row])),
        Cells::Text(values) => field.extend_from_slice(values[row].as_bytes()),
        Cells::Carried { table, column } => field.extend_from_slice(&table.cell(row, *column)),
        // An observed cell keeps the digits it came with.
        Cells::Filled { table, column, .. } if !table.data.row(row)[*column].is_nan() => {
            if table.has_decimal_comma() {
                push_as_column(table.data.row(row)[*column], whole, field);
            } else {
                field.extend_from_slice(&table.cell(row, source));
            }
        }
        _ => match cells.number(row).expect("all other cells are numbers") {
            gap if gap.is_nan() => {}
            value => push_as_column(value, whole, field),
        },
    }
}

/// A number, NaN for a gap, `None` for text.
fn meaning(raw: &[u8], decimal_comma: bool, gaps: &Gaps) -> Option<f64> {
    if raw.first() == Some(&b'"') {
        // `"3"4` is not a number, whatever it is.
        let end = quoted_end(raw, 0)?;
        if !raw[end..].trim_ascii().is_empty() {
            return None;
        }
    }
    number_of(unquoted(raw).trim_ascii(), decimal_comma, gaps)
}

/// As [`meaning`], of a cell without quotes and surrounding spaces.
pub(super) fn number_of(cell: &[u8], decimal_comma: bool, gaps: &Gaps) -> Option<f64> {
    if gaps.holds(cell) {
        return Some(f64::NAN);
    }
    let text = str::from_utf8(cell).ok()?;
    let number = if decimal_comma {
        if text.contains('.') {
            return None;
        }
        text.replacen(',', ".", 1).parse()
    } else {
        text.parse()
    };
    number.ok().map(|value| gaps.number(value))
}
