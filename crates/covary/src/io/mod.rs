//! Tables and models from and to bytes, over [`Read`] and [`Write`], never a path: one file per
//! format. A format of tables reads into a [`Table`] and writes from a [`Sheet`].

mod blocks;
#[cfg(feature = "arrow")]
mod columnar;
mod columns;
pub mod csv;
mod dialect;
mod encoding;
mod error;
mod fields;
mod format;
mod gaps;
mod identifiers;
mod journal;
pub mod model_file;
mod note;
#[cfg(feature = "npy")]
mod npy;
#[cfg(feature = "npy")]
mod npz;
mod points;
mod sheet;
#[cfg(feature = "xlsx")]
mod spreadsheet;
mod stream;
mod table;
#[cfg(test)]
mod tests;
mod times;
mod transposed;

pub use blocks::BlockFile;
pub use columns::{ColumnChoice, Columns, columns_named};
pub use error::{Error, Place, amount};
pub use fields::Delimiter;
pub use format::{Format, Layout};
pub use gaps::Gaps;
pub use journal::Journal;
pub use note::{Note, Pattern};
pub use sheet::{Cells, Sheet};
pub use stream::{Gathered, LaterRows, RowStream};
pub use table::{ColumnKind, Rounding, Table};
pub use times::TimeColumns;

use std::fs::File;
use std::io::{Read, Write};
#[cfg(any(feature = "arrow", feature = "xlsx"))]
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Decoders at work whose panics are caught.
static DECODING: AtomicUsize = AtomicUsize::new(0);

/// Whether a table is being decoded whose decoder may panic on damaged bytes. Such a panic is caught and becomes an
/// [`Error`]; a program that does not want to see its text sets a panic hook that is silent meanwhile. Decoders use
/// several threads, so that this holds for the process and not for a thread.
pub fn is_decoding() -> bool {
    DECODING.load(Ordering::SeqCst) > 0
}

/// How to read a table. The default suits most files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Which columns take part.
    pub choice: ColumnChoice,
    /// Words that mean a gap, besides an empty cell, `NA`, `N/A`, `#N/A`, `<NA>`, `NaN`, `null` and
    /// `None`, in any case; one that reads as a number means that number, however it is written.
    pub gaps: Vec<String>,
    /// What separates the cells of a text table. If none is given: a tab for [`Layout::Tsv`], otherwise what the text shows:
    /// commas, tabs, semicolons, bars, or blanks where it is none of these.
    pub delimiter: Option<Delimiter>,
    /// Whether numbers of a text table are written `1,5`; if not given, what the text shows.
    pub decimal_comma: Option<bool>,
    /// Whether the first line of a text table, or row of a worksheet, names the columns; if not given, what the cells show.
    /// Without a header columns are called `x1, x2, …`.
    pub header: Option<bool>,
    /// Lines above the table, blank ones not counted; if not given, as many as are not like the table.
    pub skip: Option<usize>,
    /// The encoding of a text table, by a name such as `utf-16le` or `windows-1252`. If not given: UTF-8; UTF-16 where the
    /// beginning shows it; Windows-1252, which has Latin-1 in it, where the text is not UTF-8.
    pub encoding: Option<String>,
    /// Which worksheet of a workbook, by its name or its number from 1; the first visible one with cells if not given.
    pub sheet: Option<String>,
    /// Whether the columns of the file are the rows of the table, as in genes × samples. The column of the file that
    /// [`ColumnChoice::id`] names, or the first that is not of numbers, has the names of the columns then; columns are
    /// chosen by these names. Filled, the table leaves as it came.
    pub transpose: bool,
    /// Which array of an `.npz` file; needed only if several could be meant.
    pub array: Option<String>,
    /// The most bytes of memory the table may take, with the text or the bytes it is read from; any number of them if
    /// none is given.
    pub max_memory: Option<u64>,
}

impl ReadOptions {
    /// The most bytes of text: it is read into numbers of about its own size, and grouping the rows takes as much again; so
    /// does turning the table.
    fn max_text(&self) -> Option<u64> {
        self.max_memory.map(|limit| limit / if self.transpose { 4 } else { 3 })
    }

    /// Refuses what takes more memory than it may.
    #[cfg(any(feature = "arrow", feature = "npy", feature = "xlsx"))]
    fn allow(&self, bytes: u64) -> Result<(), Error> {
        match self.max_memory {
            Some(limit) if bytes > limit => Err(Error::OverMemory { bytes, limit, is_text: false }),
            _ => Ok(()),
        }
    }
}

/// Where bytes come from.
#[derive(Debug)]
pub enum Input<R> {
    /// A file, which formats with an index read in the order they like.
    File(File),
    /// Anything else, read once from the beginning.
    Stream(R),
}

/// Reads a table of the given format.
///
/// ```
/// use covary::io::{self, ColumnChoice, Columns, Format, Input, ReadOptions};
/// let choice = ColumnChoice { columns: Columns::Listed(vec!["x:y".to_owned()]), ..Default::default() };
/// let options = ReadOptions { choice, gaps: vec!["-99".to_owned()], ..Default::default() };
/// let text = "year,x,y\n1998,1,2\n1999,-99.0,4\n".as_bytes();
/// let table = io::read(Input::Stream(text), Format::CSV, &options)?;
/// assert_eq!(table.dataset().column_names(), ["x", "y"]);
/// assert_eq!(table.dataset().n_gaps(), 1);
/// # Ok::<(), io::Error>(())
/// ```
///
/// # Errors
/// [`Error::Read`] if the source fails; otherwise what is wrong with the bytes, the columns or the
/// options, with its place and the way out.
pub fn read<R: Read>(input: Input<R>, format: Format, options: &ReadOptions) -> Result<Table, Error> {
    let mut table = if options.transpose {
        transposed::read(input, format, options)?
    } else {
        read_upright(input, format, options)?
    };
    table.chosen = options.choice.is_made();
    Ok(table)
}

fn read_upright<R: Read>(input: Input<R>, format: Format, options: &ReadOptions) -> Result<Table, Error> {
    match format.layout {
        Layout::Csv | Layout::Tsv => {
            csv::parse_encoded(bytes(input, format.gzip, options.max_text())?, format.layout, options)
        }
        #[cfg(feature = "xlsx")]
        Layout::Xlsx | Layout::Ods => spreadsheet::read(input, format, options),
        #[cfg(feature = "parquet")]
        Layout::Parquet => columnar::parquet::read(input, format.gzip, options),
        #[cfg(feature = "arrow")]
        Layout::Arrow => columnar::arrow::read(input, format.gzip, options),
        #[cfg(feature = "npy")]
        Layout::Npy => npy::read(input, format.gzip, options),
        #[cfg(feature = "npy")]
        Layout::Npz => npz::read(input, format.gzip, options),
        #[allow(unreachable_patterns, reason = "with every feature nothing is left")]
        other => Err(Error::NotBuilt { format: other.name() }),
    }
}

/// All bytes of the input, decompressed: once in memory, and at most this many bytes.
fn bytes<R: Read>(input: Input<R>, gzip: bool, most: Option<u64>) -> Result<Vec<u8>, Error> {
    fn all(from: impl Read, size: usize, gzip: bool, most: Option<u64>) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let limit = most.unwrap_or(u64::MAX - 1);
        let too_large = |bytes: u64| Error::OverMemory { bytes, limit, is_text: true };
        if gzip {
            let from = flate2::read::MultiGzDecoder::new(from);
            from.take(limit + 1).read_to_end(&mut bytes).map_err(Error::gzip)?;
        } else {
            if size as u64 > limit + 1 {
                return Err(too_large(size as u64 - 1));
            }
            bytes.try_reserve_exact(size).map_err(|e| Error::Read(e.into()))?;
            from.take(limit + 1).read_to_end(&mut bytes).map_err(Error::Read)?;
        }
        if bytes.len() as u64 > limit {
            return Err(too_large(bytes.len() as u64));
        }
        Ok(bytes)
    }
    match input {
        Input::File(file) => {
            // One byte more lets `read_to_end` see the end without growing.
            let size = file.metadata().map_or(0, |m| m.len() as usize + 1);
            all(file, size, gzip, most)
        }
        Input::Stream(stream) => all(stream, 0, gzip, most),
    }
}

/// Runs `write` on `out`, through gzip if asked, and flushes.
fn compressed<T>(
    gzip: bool,
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Error>,
) -> Result<T, Error> {
    let answer = if gzip {
        let mut encoder = flate2::write::GzEncoder::new(&mut *out, flate2::Compression::default());
        let answer = write(&mut encoder)?;
        encoder.finish().map_err(Error::Write)?;
        answer
    } else {
        write(out)?
    };
    out.flush().map_err(Error::Write)?;
    Ok(answer)
}

/// Runs a decoder on bytes that nobody vouches for. The crates return errors for nearly all damage
/// and assert the rest: their panic is a damaged file like any other. (A panic hook, which is the
/// program's to set, is still called; [`is_decoding`] tells it to be silent.)
#[cfg(any(feature = "arrow", feature = "xlsx"))]
fn guarded<T>(format: &'static str, decode: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let contradiction = || Error::Damaged { format, why: "its parts contradict each other".to_owned() };
    DECODING.fetch_add(1, Ordering::SeqCst);
    let outcome = catch_unwind(AssertUnwindSafe(decode));
    DECODING.fetch_sub(1, Ordering::SeqCst);
    outcome.unwrap_or_else(|_| Err(contradiction()))
}
