//! Comma-separated tables, written back byte for byte except where a gap is filled.
//!
//! The first line names the columns. Fields are separated by commas and may stand in double quotes,
//! where commas and line ends are text and `""` is a quote. Lines end in LF, CRLF or CR; blank lines
//! are no rows. A leading byte-order mark is not part of the first name.
//!
//! A cell is a **gap** when it is empty, `NA`, `NaN` or `null`, in upper or lower case, with or
//! without quotes, spaces around it or a sign on `NaN`. A column is **numbers** when every other
//! cell is one (spaces around it do not matter; `+.5` and `1e-7` are numbers, `1,5` and `0x10` are
//! not). All other columns are kept aside and pass through, and so does a column without a name
//! beside others: that is how R and pandas write row labels, which are not measurements.

use super::Error;
use crate::model::Imputed;
use crate::{Dataset, Matrix};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{Read, Write};

/// Reads a comma-separated table.
///
/// ```
/// use covary::io::{csv, ColumnKind};
/// let table = csv::read("site,x,y\nnorth,1,2\nsouth,3,NA\n".as_bytes())?;
/// assert_eq!(table.column_names(), ["site", "x", "y"]);
/// assert_eq!(table.kind(0), ColumnKind::Text { row: 0 });
/// assert_eq!(table.dataset()?.n_gaps(), 1);
/// # Ok::<(), covary::io::Error>(())
/// ```
///
/// # Errors
/// [`Error::Read`] if the source fails; [`Error::Empty`], [`Error::NoRows`],
/// [`Error::DuplicateColumn`], [`Error::ShortRow`], [`Error::LongRow`] and [`Error::UnclosedQuote`]
/// if the text is not a table.
pub fn read(mut input: impl Read) -> Result<Table, Error> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).map_err(Error::Read)?;
    Table::parse(bytes)
}

/// A table as it came: the bytes, where every cell lies in them, and what the cells mean.
///
/// Rows and columns are counted from 0 here, as in [`Dataset`]; messages count from 1.
#[derive(Debug, Clone)]
pub struct Table {
    bytes: Vec<u8>,
    names: Vec<String>,
    kinds: Vec<ColumnKind>,
    /// Row by row, all columns.
    spans: Vec<Span>,
    /// Row by row, all columns; NaN where the cell is a gap or text.
    values: Vec<f64>,
}

/// What the cells of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Numbers and gaps: part of the [`Dataset`].
    Numbers,
    /// Kept aside: at least one cell is neither a number nor a gap.
    Text {
        /// The first such row.
        row: usize,
    },
    /// Kept aside: the column has no name, so its cells label the rows.
    Unnamed,
}

impl Table {
    /// Number of rows, the header not counted.
    pub fn n_rows(&self) -> usize {
        self.spans.len() / self.names.len()
    }

    /// Number of columns, those kept aside included.
    pub fn n_columns(&self) -> usize {
        self.names.len()
    }

    /// Column names in order, without quotes and surrounding spaces.
    pub fn column_names(&self) -> &[String] {
        &self.names
    }

    /// What the cells of a column are.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn kind(&self, column: usize) -> ColumnKind {
        self.kinds[column]
    }

    /// The columns of the [`Dataset`], rising.
    pub fn numeric_columns(&self) -> Vec<usize> {
        (0..self.n_columns()).filter(|&j| self.kinds[j] == ColumnKind::Numbers).collect()
    }

    /// A cell exactly as it came, quotes and spaces included.
    ///
    /// # Panics
    /// If there is no such cell.
    pub fn raw(&self, row: usize, column: usize) -> &[u8] {
        assert!(column < self.n_columns(), "column {column} of {}", self.n_columns());
        self.spans[row * self.n_columns() + column].of(&self.bytes)
    }

    /// What a cell says: quotes taken off, bytes that are not UTF-8 replaced.
    ///
    /// # Panics
    /// If there is no such cell.
    pub fn text(&self, row: usize, column: usize) -> String {
        String::from_utf8_lossy(&unquoted(self.raw(row, column))).into_owned()
    }

    /// The columns of numbers, gaps as NaN.
    ///
    /// # Errors
    /// [`Error::NoNumericColumn`] if there is none, [`Error::Infinite`] at the first infinite cell.
    pub fn dataset(&self) -> Result<Dataset, Error> {
        let columns = self.numeric_columns();
        if columns.is_empty() {
            return Err(self.no_numbers());
        }
        let d = self.n_columns();
        let values = Matrix::from_fn(self.n_rows(), columns.len(), |i, j| self.values[i * d + columns[j]]);
        if let Some(at) = values.as_slice().iter().position(|v| v.is_infinite()) {
            let (row, column) = (at / columns.len(), columns[at % columns.len()]);
            let text = self.text(row, column);
            return Err(Error::Infinite { row: row + 1, column: self.names[column].clone(), text });
        }
        let names = columns.iter().map(|&j| self.names[j].clone()).collect();
        Ok(Dataset::with_names(values, names)?)
    }

    /// Writes the table with its gaps filled: every other byte leaves as it came. Filled numbers are
    /// the shortest that read back as the same f64.
    ///
    /// ```
    /// use covary::{io::csv, Density, LinearGaussian, Matrix, Noise};
    /// let table = csv::read("\"x\", y\r\n+5.0,NA\r\n".as_bytes())?;
    /// let model = LinearGaussian::new(Matrix::from_rows(&[[2.0], [1.0]]), vec![0.0; 2], Noise::Isotropic(1.0))?;
    /// let mut out = Vec::new();
    /// table.write_filled(&model.impute(&table.dataset()?)?, &mut out)?;
    /// assert_eq!(out, b"\"x\", y\r\n+5.0,2.0\r\n");      // E[y | x] = 2/5 x
    /// # Ok::<(), covary::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OtherTable`] unless `filled` came from this table's [`dataset`](Self::dataset),
    /// [`Error::Write`] if the destination fails.
    pub fn write_filled(&self, filled: &Imputed, mut out: impl Write) -> Result<(), Error> {
        let columns = self.check_own(filled)?;
        let mut copied = 0;
        for cell in filled.cells() {
            let span = self.spans[cell.row * self.n_columns() + columns[cell.column]];
            out.write_all(&self.bytes[copied..span.start]).map_err(Error::Write)?;
            // Debug formatting of f64 is the shortest that round-trips, with an exponent where plain
            // digits would be long.
            write!(out, "{:?}", cell.mean).map_err(Error::Write)?;
            copied = span.end;
        }
        out.write_all(&self.bytes[copied..]).map_err(Error::Write)?;
        out.flush().map_err(Error::Write)
    }

    /// Writes one line per filled gap: `row,column,mean,sd,lower,upper`, with `row` counting data
    /// rows from 1, `column` by name, and the central interval of probability `level`.
    ///
    /// # Errors
    /// As [`write_filled`](Self::write_filled), and [`Error::Request`] unless `0 < level < 1`.
    pub fn write_cells(&self, filled: &Imputed, level: f64, out: impl Write) -> Result<(), Error> {
        let columns = self.check_own(filled)?;
        let failed = |e: ::csv::Error| Error::Write(e.into());
        let mut out = ::csv::Writer::from_writer(out);
        out.write_record(["row", "column", "mean", "sd", "lower", "upper"]).map_err(failed)?;
        for cell in filled.cells() {
            let (lower, upper) = cell.interval(level)?;
            let numbers = [cell.mean, cell.sd, lower, upper].map(|v| format!("{v:?}"));
            let place = [(cell.row + 1).to_string(), self.names[columns[cell.column]].clone()];
            out.write_record(place.iter().chain(&numbers)).map_err(failed)?;
        }
        out.flush().map_err(Error::Write)
    }

    /// The columns of numbers, once it is sure that `filled` speaks of the same cells.
    fn check_own(&self, filled: &Imputed) -> Result<Vec<usize>, Error> {
        let columns = self.numeric_columns();
        let (got_rows, got_columns) = (filled.values().n_rows(), filled.values().n_columns());
        if (got_rows, got_columns) == (self.n_rows(), columns.len()) {
            return Ok(columns);
        }
        Err(Error::OtherTable { rows: self.n_rows(), columns: columns.len(), got_rows, got_columns })
    }

    fn no_numbers(&self) -> Error {
        let first_text = self.kinds.iter().enumerate().find_map(|(j, kind)| match *kind {
            ColumnKind::Text { row } => Some((row, j)),
            _ => None,
        });
        let (row, column) =
            first_text.expect("at most one column is unnamed, and never the only one: another is text");
        let text = self.text(row, column);
        Error::NoNumericColumn { row: row + 1, column: self.names[column].clone(), text }
    }

    fn parse(bytes: Vec<u8>) -> Result<Self, Error> {
        const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
        let mut at = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let unclosed = |start, place| Error::UnclosedQuote { place, line: line_of(&bytes, start) };

        let mut header = Vec::new();
        if !next_record(&bytes, &mut at, &mut header)
            .map_err(|start| unclosed(start, "the header".to_owned()))?
        {
            return Err(Error::Empty);
        }
        let names: Vec<String> = header.iter().map(|span| name(span.of(&bytes))).collect();
        check_unique(&names)?;

        let d = names.len();
        let mut spans = Vec::new();
        let mut values = Vec::new();
        let mut kinds: Vec<ColumnKind> = names
            .iter()
            .map(|name| if name.is_empty() && d > 1 { ColumnKind::Unnamed } else { ColumnKind::Numbers })
            .collect();
        loop {
            let (row, before) = (spans.len() / d, spans.len());
            let more = next_record(&bytes, &mut at, &mut spans).map_err(|start| {
                let column = names.get(spans.len() - before).map_or("beyond the header", String::as_str);
                unclosed(start, format!("row {}, column `{column}`", row + 1))
            })?;
            if !more {
                break;
            }
            let got = spans.len() - before;
            let (row_number, expected) = (row + 1, d);
            let line = || line_of(&bytes, spans[before].start);
            if got < d {
                let column = names[got].clone();
                return Err(Error::ShortRow { row: row_number, line: line(), column, expected, got });
            }
            if got > d {
                let column = names[d - 1].clone();
                return Err(Error::LongRow { row: row_number, line: line(), column, expected, got });
            }
            for (span, kind) in spans[before..].iter().zip(&mut kinds) {
                values.push(f64::NAN);
                if *kind == ColumnKind::Numbers {
                    match meaning(span.of(&bytes)) {
                        Some(value) => *values.last_mut().expect("just pushed") = value,
                        None => *kind = ColumnKind::Text { row },
                    }
                }
            }
        }
        if spans.is_empty() {
            return Err(Error::NoRows { columns: d });
        }
        Ok(Self { bytes, names, kinds, spans, values })
    }
}

/// Where a field lies, quotes included.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
}

impl Span {
    fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start..self.end]
    }
}

// The `csv` crate hands out fields without their quotes and without their place in the input, so it
// cannot give a cell back as it came. These two functions find the places and nothing else; the
// tests hold them against the crate's own reading.

/// Adds the fields of the next record to `spans` and moves `at` behind it; false at the end of the
/// input. An unclosed quote is an error that carries the start of its field.
fn next_record(bytes: &[u8], at: &mut usize, spans: &mut Vec<Span>) -> Result<bool, usize> {
    *at += bytes[*at..].iter().take_while(|&&b| matches!(b, b'\r' | b'\n')).count();
    if *at == bytes.len() {
        return Ok(false);
    }
    loop {
        let span = Span { start: *at, end: field_end(bytes, *at).ok_or(*at)? };
        spans.push(span);
        *at = span.end;
        if bytes.get(span.end) != Some(&b',') {
            return Ok(true);
        }
        *at += 1;
    }
}

/// Where the field that starts at `start` ends; `None` if its quote is never closed.
fn field_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    if bytes.get(at) == Some(&b'"') {
        at += 1;
        loop {
            at += bytes[at..].iter().position(|&b| b == b'"')? + 1;
            if bytes.get(at) != Some(&b'"') {
                break;
            }
            at += 1; // a doubled quote is text
        }
    }
    let plain = bytes[at..].iter().position(|b| matches!(b, b',' | b'\r' | b'\n'));
    Some(plain.map_or(bytes.len(), |n| at + n))
}

/// A field without its quotes.
fn unquoted(raw: &[u8]) -> Cow<'_, [u8]> {
    if raw.first() != Some(&b'"') {
        return Cow::Borrowed(raw);
    }
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 1;
    while let Some(n) = raw[at..].iter().position(|&b| b == b'"') {
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

/// A number, NaN for a gap, `None` for text.
fn meaning(raw: &[u8]) -> Option<f64> {
    const GAPS: [&[u8]; 4] = [b"", b"NA", b"NaN", b"null"];
    let cell = unquoted(raw);
    let cell = cell.trim_ascii();
    if GAPS.iter().any(|gap| cell.eq_ignore_ascii_case(gap)) {
        return Some(f64::NAN);
    }
    str::from_utf8(cell).ok()?.parse().ok()
}

fn name(raw: &[u8]) -> String {
    String::from_utf8_lossy(&unquoted(raw)).trim().to_owned()
}

fn check_unique(names: &[String]) -> Result<(), Error> {
    let mut seen = HashMap::new();
    for (j, name) in names.iter().enumerate() {
        if let Some(first) = seen.insert(name, j) {
            return Err(Error::DuplicateColumn { name: name.clone(), first: first + 1, second: j + 1 });
        }
    }
    Ok(())
}

/// The line a byte is on, counted from 1; only asked when something is wrong.
fn line_of(bytes: &[u8], at: usize) -> usize {
    let ends_line = |i: &usize| match bytes[*i] {
        b'\n' => true,
        b'\r' => bytes.get(i + 1) != Some(&b'\n'),
        _ => false,
    };
    (0..at).filter(ends_line).count() + 1
}
