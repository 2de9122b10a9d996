//! Tables and models from and to bytes, over [`Read`] and [`Write`], never a path: one file per
//! format. A format of tables reads into a [`Table`] and writes from a [`Sheet`].

#[cfg(feature = "arrow")]
mod columnar;
mod columns;
pub mod csv;
mod error;
mod format;
mod gaps;
pub mod model_file;
#[cfg(feature = "npy")]
mod npy;
#[cfg(feature = "npy")]
mod npz;
mod sheet;
mod table;
#[cfg(test)]
mod tests;

pub use columns::{ColumnChoice, Columns, columns_named};
pub use error::{Error, Place};
pub use format::{Format, Layout};
pub use gaps::Gaps;
pub use sheet::{Cells, Sheet};
pub use table::{ColumnKind, Rounding, Table};

use std::fs::File;
use std::io::{Read, Write};
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
    /// What separates the cells of a text table: an ASCII character, not a quote or a line end. If
    /// none is given: a tab for [`Layout::Tsv`], otherwise a semicolon with `decimal_comma`, else a
    /// comma.
    pub delimiter: Option<u8>,
    /// Whether numbers of a text table are written `1,5`.
    pub decimal_comma: bool,
    /// Which array of an `.npz` file; needed only if several could be meant.
    pub array: Option<String>,
    /// The most bytes of memory the table may take, with the text or the bytes it is read from; any number of them if
    /// none is given.
    pub max_memory: Option<u64>,
}

impl ReadOptions {
    /// Refuses what takes more memory than it may.
    #[cfg(any(feature = "arrow", feature = "npy"))]
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
    match format.layout {
        Layout::Csv | Layout::Tsv => {
            // Text is read into numbers of about its own size, and grouping the rows takes as much again.
            let text = bytes(input, format.gzip, options.max_memory.map(|limit| limit / 3))?;
            csv::parse(text, format.layout, options)
        }
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
