//! Tables that are gone through block by block and never held as a whole.
//!
//! A reader of a format fills the rows of one block after the other into a buffer ([`Block`]); blocks are cut by rows
//! alone, so that one table leads to the same blocks in every format, whatever its row groups or pages are. [`BlockFile`] goes through
//! all of them again for each pass.

use super::columns::Columns;
use super::fields::{self, Delimiter, Rows as RowStarts};
use super::table::{Body, Written};
use super::{ColumnKind, Error, Format, Layout, Note, ReadOptions, Sheet, Table, csv, dialect, identifiers};
use crate::data::{Facts, block_rows};
use crate::infer::pass::Blocks;
use crate::infer::{Rows, Sums, Task};
use crate::{Dataset, Matrix};
use memchr::{memchr, memchr_iter, memrchr};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

/// Rows that a reader fills.
pub(super) struct Block<'a> {
    pub(super) n_columns: usize,
    /// Rows of a whole block.
    pub(super) size: usize,
    /// Cells, and how many of them are filled: a buffer that comes back is as long as it was.
    pub(super) cells: Vec<f64>,
    pub(super) filled: usize,
    pub(super) take: &'a mut dyn FnMut(Vec<f64>) -> Result<Vec<f64>, Error>,
}

impl Block<'_> {
    /// Room for the next rows, at most `most`, of which all are to be filled; blocks that are full are passed on.
    pub(super) fn room(&mut self, most: usize) -> Result<&mut [f64], Error> {
        let d = self.n_columns;
        if self.filled == self.size * d {
            self.pass_on()?;
        }
        let begin = self.filled;
        self.filled += most.min(self.size - begin / d) * d;
        if self.cells.len() < self.filled {
            self.cells.resize(self.filled, 0.0);
        }
        Ok(&mut self.cells[begin..self.filled])
    }

    pub(super) fn pass_on(&mut self) -> Result<(), Error> {
        if self.filled > 0 {
            // What a reader has not filled of a buffer that comes back is of an earlier block.
            self.cells.truncate(self.filled);
            self.cells = (self.take)(std::mem::take(&mut self.cells))?;
            self.filled = 0;
        }
        Ok(())
    }
}

/// A table in one or several files of one format, which is gone through block by block.
///
/// ```
/// use covary::io::{BlockFile, Format, ReadOptions};
/// use covary::infer::Rows;
/// use std::io::Write;
/// let mut file = tempfile::tempfile()?;
/// file.write_all(b"site,x,y\nnorth,1,2\nsouth,3,\neast,5,1\n")?;
/// let table = BlockFile::open(vec![file], Format::CSV, &ReadOptions::default())?;
/// assert_eq!(table.column_names(), ["x", "y"]);
/// let facts = table.facts()?;
/// assert_eq!((facts.n_rows(), facts.n_gaps(), facts.observed_means()[0]), (3, 1, 3.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BlockFile {
    files: Vec<Part>,
    format: Format,
    options: ReadOptions,
    /// The columns of numbers of every file, and how many others there are.
    all: Vec<String>,
    n_aside: usize,
    /// Those that are passed on, by their place among all; their names.
    columns: Vec<usize>,
    names: Vec<String>,
    facts: OnceLock<Facts>,
    /// The cells of the last block, for the first of the next pass: new memory would be cleared before it is filled.
    buffer: Mutex<Vec<f64>>,
    /// How often it was gone through, other columns of it included.
    n_passes: Arc<AtomicUsize>,
}

/// A file of a table.
struct Part {
    /// Its name among several files.
    name: Option<String>,
    file: File,
    stamp: Stamp,
    /// How it is read, if that is not how the first is read.
    options: Option<ReadOptions>,
}

/// What tells that a file was written to: its length and when it was last modified, where the system knows that.
type Stamp = (u64, Option<SystemTime>);

impl Part {
    fn open(name: Option<String>, file: File) -> Result<Self, Error> {
        let stamp = Self::stamp(&file).map_err(|error| error.in_file(name.as_deref()))?;
        Ok(Self { name, file, stamp, options: None })
    }

    fn stamp(file: &File) -> Result<Stamp, Error> {
        let metadata = file.metadata().map_err(Error::Read)?;
        Ok((metadata.len(), metadata.modified().ok()))
    }

    fn check_unchanged(&self) -> Result<(), Error> {
        if Self::stamp(&self.file)? == self.stamp { Ok(()) } else { Err(Error::Changed) }
    }

    /// Does something with the file; what goes wrong names it.
    fn named<T>(&self, with: impl FnOnce(&Self) -> Result<T, Error>) -> Result<T, Error> {
        with(self).map_err(|error| error.in_file(self.name.as_deref()))
    }

    /// The columns of numbers, and how many others there are. They must be those of the first file; a column that holds nothing,
    /// not even a type, is one of gaps where the first has numbers.
    fn columns(
        &mut self,
        format: Format,
        options: &ReadOptions,
        first: Option<&[String]>,
    ) -> Result<(Vec<String>, usize), Error> {
        let found = column_names(&self.file, format, options)?;
        let Some(first) = first.filter(|first| **first != found.0) else { return Ok(found) };
        let other = |here: &[String]| Error::other_columns(first, here);
        if found.0.iter().any(|name| !first.contains(name)) {
            return Err(other(&found.0));
        }
        let columns = Columns::OfModel { needed: first.to_vec(), welcome: Vec::new() };
        let choice = super::ColumnChoice { columns, ..options.choice.clone() };
        let own = ReadOptions { choice, ..options.clone() };
        let again = column_names(&self.file, format, &own).map_err(|_| other(&found.0))?;
        if again.0 != first {
            return Err(other(&again.0));
        }
        self.options = Some(own);
        Ok(again)
    }

    fn again(&self) -> Result<Self, Error> {
        let file = self.named(|part| part.file.try_clone().map_err(Error::Read))?;
        Ok(Self { name: self.name.clone(), file, stamp: self.stamp, options: self.options.clone() })
    }
}

impl BlockFile {
    /// Looks at the columns of files whose rows follow each other.
    ///
    /// # Errors
    /// As [`open_named`](Self::open_named), the files being called by their numbers.
    pub fn open(files: Vec<File>, format: Format, options: &ReadOptions) -> Result<Self, Error> {
        let named = files.into_iter().enumerate().map(|(k, file)| (format!("file {}", k + 1), file));
        Self::open_named(named.collect(), format, options)
    }

    /// The same of files with names, by which errors call them if there are several.
    ///
    /// # Errors
    /// [`Error::NotInBlocks`] for a format that has to be read as a whole, [`Error::OtherColumns`] if files
    /// have other columns of numbers than the first, and what is wrong with a file.
    pub fn open_named(
        files: Vec<(String, File)>,
        format: Format,
        options: &ReadOptions,
    ) -> Result<Self, Error> {
        let several = files.len() > 1;
        let mut parts = Vec::with_capacity(files.len());
        let mut all: Option<(Vec<String>, usize)> = None;
        for (name, file) in files {
            let mut part = Part::open(several.then_some(name), file)?;
            let first = all.as_ref().map(|first| first.0.as_slice());
            let found = part.columns(format, options, first);
            let found = found.map_err(|error| error.in_file(part.name.as_deref()))?;
            all.get_or_insert(found);
            parts.push(part);
        }
        let files = parts;
        let (all, n_aside) = all.ok_or(Error::Empty)?;
        let (columns, names) = ((0..all.len()).collect(), all.clone());
        let options = options.clone();
        let n_passes = Arc::default();
        Ok(Self {
            files,
            format,
            options,
            all,
            n_aside,
            columns,
            names,
            facts: OnceLock::new(),
            buffer: Mutex::default(),
            n_passes,
        })
    }

    /// The columns of numbers.
    pub fn column_names(&self) -> &[String] {
        &self.names
    }

    /// How many columns are not of numbers, or were set aside.
    pub fn n_aside(&self) -> usize {
        self.n_aside
    }

    /// Columns that look like identifiers or dates in some rows of the table, such as a sample of them, unless columns were
    /// asked for, as [`Table::identifiers`](super::Table::identifiers). Leading zeros of a text are not looked for.
    pub fn identifiers(&self, rows: &Dataset) -> Option<Note> {
        if self.options.choice.is_made() { None } else { identifiers::of_rows(rows) }
    }

    /// Writes what `answer` says of some rows after the other (fewer than a block), a sheet of as many rows; returns what the
    /// format could not hold, as [`Sheet::write`].
    ///
    /// # Errors
    /// What is wrong with the file, what `answer` returns, and as [`Sheet::write_parts`].
    pub fn write_answers(
        &self,
        format: Format,
        out: impl Write,
        mut answer: impl FnMut(&Dataset) -> Result<Sheet<'static>, Error>,
    ) -> Result<Vec<String>, Error> {
        let n_rows = self.facts()?.n_rows();
        let size = rows_at_once(self.columns.len());
        // What a pass left is as long as a block.
        *self.buffer.lock().unwrap_or_else(PoisonError::into_inner) = Vec::new();
        // Sheets are asked for where they are written, rows come where they are read.
        std::thread::scope(|scope| {
            let (send, blocks) = sync_channel::<Result<Dataset, Error>>(0);
            scope.spawn(move || {
                let gone = || Error::Request(crate::Error::Interrupted);
                let sent = self.for_rows(size, |rows| send.send(Ok(rows.clone())).map_err(|_| gone()));
                if let Err(error) = sent {
                    // Nobody may be there to hear it.
                    let _ = send.send(Err(error));
                }
            });
            let ended =
                || Error::Damaged { format: self.format.layout.name(), why: "it became shorter".to_owned() };
            let next = |_| answer(&blocks.recv().map_err(|_| ended())??);
            let written = Sheet::write_parts(n_rows, size, format, out, next);
            drop(blocks);
            // Nobody asks for what comes after the last row.
            self.check_unchanged()?;
            written
        })
    }

    /// Writes a text with numbers in place of its gaps, every other byte as it came, as
    /// [`Table::write_filled`](super::Table::write_filled) does. `fill` is called with the columns of numbers of some rows after the
    /// other, and returns them filled.
    ///
    /// ```
    /// use covary::io::{BlockFile, Format, ReadOptions};
    /// use std::io::Write;
    /// let mut file = tempfile::tempfile()?;
    /// file.write_all(b"site,x,y\nnorth,1,2\nsouth,3,\neast,5,1\n")?;
    /// let table = BlockFile::open(vec![file], Format::CSV, &ReadOptions::default())?;
    /// let mut out = Vec::new();
    /// table.write_filled_text(Format::CSV, &mut out, |rows| {
    ///     let mut filled = rows.values().clone();
    ///     filled.as_mut_slice().iter_mut().filter(|v| v.is_nan()).for_each(|v| *v = 7.0);
    ///     Ok(filled)
    /// })?;
    /// assert_eq!(out, b"site,x,y\nnorth,1,2\nsouth,3,7\neast,5,1\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotInBlocks`] unless both formats are the same text, what is wrong with the file, what `fill` returns, and
    /// [`Error::Write`] if the destination fails.
    pub fn write_filled_text(
        &self,
        format: Format,
        mut out: impl Write,
        mut fill: impl FnMut(&Dataset) -> Result<Matrix, Error>,
    ) -> Result<(), Error> {
        if !format.layout.is_text() || format.layout != self.format.layout {
            return Err(Error::NotInBlocks {
                what: "text that is filled and leaves in another format".to_owned(),
            });
        }
        let for_pieces = |visit: &mut dyn FnMut(Piece<'_>) -> Result<(), Error>| {
            self.pass_over(|file, options| Text::open(file, self.format, options)?.for_pieces(&mut *visit))
        };
        let mut written: Option<Written> = None;
        for_pieces(&mut |piece| {
            if let Piece::Rows(table) = piece {
                let mut own = Written::of(&table.data);
                table.clear_pointed(&mut own.whole);
                written = Some(match written.take() {
                    Some(before) => before.and(&own),
                    None => own,
                });
            }
            Ok(())
        })?;
        let whole = written.ok_or(Error::Empty)?.whole();
        super::compressed(format.gzip, &mut out, |out| {
            for_pieces(&mut |piece| match piece {
                Piece::Blank(bytes) => out.write_all(bytes).map_err(Error::Write),
                Piece::Rows(table) => {
                    let Body::Text(text) = &table.body else { unreachable!("text is read as text") };
                    let rows = Dataset::with_names(table.data.values().clone(), self.names.clone())?;
                    text.write_blocks(&table, &fill(&rows)?, &whole, out)
                }
            })
        })
    }

    /// How often its rows were gone through.
    pub fn n_passes(&self) -> usize {
        self.n_passes.load(Ordering::Relaxed)
    }

    /// Calls `visit` with one block after the other.
    ///
    /// # Errors
    /// What is wrong with the file, and what `visit` returns.
    pub fn for_blocks(&self, visit: impl FnMut(&Dataset) -> Result<(), Error>) -> Result<(), Error> {
        self.for_rows(block_rows(self.columns.len()), visit)
    }

    fn check_unchanged(&self) -> Result<(), Error> {
        self.files.iter().try_for_each(|part| part.named(Part::check_unchanged))
    }

    /// Goes through the files once. That one was written to since it was opened is an error, and comes before what a row that is
    /// half written seems to be: sums of two tables are those of none.
    fn pass_over(
        &self,
        mut visit: impl FnMut(&File, &ReadOptions) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.n_passes.fetch_add(1, Ordering::Relaxed);
        self.check_unchanged()?;
        let mut visit = |part: &Part| {
            part.named(|part| visit(&part.file, part.options.as_ref().unwrap_or(&self.options)))
        };
        let ended = self.files.iter().try_for_each(&mut visit);
        self.check_unchanged()?;
        ended
    }

    /// Calls `visit` with this many rows after the other.
    fn for_rows(
        &self,
        size: usize,
        mut visit: impl FnMut(&Dataset) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (d, whole) = (self.columns.len(), self.columns.len() == self.all.len());
        let mut n_before = 0;
        let mut spare = Vec::new();
        let mut take = |cells: Vec<f64>| -> Result<Vec<f64>, Error> {
            let (cells, rest) = if whole {
                (cells, Vec::new())
            } else {
                let mut chosen: Vec<f64> = std::mem::take(&mut spare);
                chosen.clear();
                let rows = cells.chunks_exact(self.all.len());
                chosen.extend(rows.flat_map(|row| self.columns.iter().map(|&j| row[j])));
                (chosen, cells)
            };
            let matrix = Matrix::from_vec(cells.len() / d, d, cells)?;
            let block = Dataset::with_names(matrix, self.names.clone()).map_err(|error| match error {
                crate::Error::Infinite { row, column, value } => {
                    let place = super::Place { row: n_before + row, line: None };
                    Error::Infinite { place, column, text: value.to_string() }
                }
                other => other.into(),
            })?;
            visit(&block)?;
            n_before += block.n_rows();
            let cells = block.into_values().into_vec();
            if whole {
                return Ok(cells);
            }
            spare = cells;
            Ok(rest)
        };
        let buffer = || self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let n_columns = self.all.len();
        let cells = std::mem::take(&mut *buffer());
        let mut block = Block { n_columns, size, cells, filled: 0, take: &mut take };
        self.pass_over(|file, options| fill(file, self.format, options, &mut block))?;
        block.pass_on()?;
        *buffer() = block.cells;
        Ok(())
    }
}

/// Rows between which a page of Parquet that we write may end.
pub(super) const PAGE_STEP: usize = 1024;

/// Rows that are answered about at once. An answer may take many times the memory of its rows (a distribution for each
/// missing value) and no sums over rows, so that it needs no whole block. A multiple of the rows between which Parquet's pages may
/// end: the file is the same however its rows come.
fn rows_at_once(n_columns: usize) -> usize {
    const CELLS: usize = 1 << 20;
    let d = n_columns.max(1);
    (CELLS / d / PAGE_STEP * PAGE_STEP).max(PAGE_STEP).min(block_rows(d))
}

/// The way back for what goes wrong in a pass.
fn unreadable(error: Error) -> crate::Error {
    match error {
        Error::Request(error) => error,
        other => crate::Error::Unreadable { why: other.to_string(), remedies: other.remedies() },
    }
}

impl Rows for BlockFile {
    fn facts(&self) -> Result<Facts, crate::Error> {
        if let Some(facts) = self.facts.get() {
            return Ok(facts.clone());
        }
        let task = Task::facts(&self.names);
        let facts = task.facts_of(&self.pass(&task)?)?;
        Ok(self.facts.get_or_init(|| facts).clone())
    }

    fn pass(&self, task: &Task<'_>) -> Result<Sums, crate::Error> {
        let mut sums = Blocks::new(task);
        self.for_blocks(|block| {
            sums.take(task, block);
            Ok(())
        })
        .map_err(unreadable)?;
        sums.sums().ok_or(crate::Error::EmptyTable { rows: 0, columns: self.names.len() })
    }

    fn of_columns(&self, columns: &[usize]) -> Result<Box<dyn Rows + '_>, crate::Error> {
        let again = |part: &Part| part.again().map_err(unreadable);
        Ok(Box::new(Self {
            files: self.files.iter().map(again).collect::<Result<_, _>>()?,
            format: self.format,
            options: self.options.clone(),
            all: self.all.clone(),
            n_aside: self.n_aside,
            columns: columns.iter().map(|&j| self.columns[j]).collect(),
            names: columns.iter().map(|&j| self.names[j].clone()).collect(),
            facts: OnceLock::new(),
            buffer: Mutex::default(),
            n_passes: Arc::clone(&self.n_passes),
        }))
    }

    fn some_rows(&self, rows: &[usize]) -> Result<Dataset, crate::Error> {
        let d = self.names.len();
        let mut cells = Vec::with_capacity(rows.len() * d);
        let (mut wanted, mut n_before) = (rows.iter().copied().peekable(), 0);
        self.for_blocks(|block| {
            let end = n_before + block.n_rows();
            while let Some(i) = wanted.next_if(|&i| i < end) {
                cells.extend_from_slice(block.row(i - n_before));
            }
            n_before = end;
            Ok(())
        })
        .map_err(unreadable)?;
        Dataset::with_names(Matrix::from_vec(cells.len() / d, d, cells)?, self.names.clone())
    }
}

/// The columns of numbers of a file, and how many others there are.
fn column_names(file: &File, format: Format, options: &ReadOptions) -> Result<(Vec<String>, usize), Error> {
    match format.layout {
        Layout::Csv | Layout::Tsv => {
            let Text { names, n_columns, .. } = Text::open(file, format, options)?;
            let n_aside = n_columns - names.len();
            Ok((names, n_aside))
        }
        #[cfg(feature = "parquet")]
        Layout::Parquet if !format.gzip => super::columnar::parquet::numeric_names(file, options),
        #[cfg(feature = "npy")]
        Layout::Npy if !format.gzip => super::npy::numeric_names(file, options),
        other => Err(Error::NotInBlocks { what: format!("the format {}", other.name()) }),
    }
}

/// Fills all rows of a file into blocks.
fn fill(file: &File, format: Format, options: &ReadOptions, to: &mut Block<'_>) -> Result<(), Error> {
    match format.layout {
        Layout::Csv | Layout::Tsv => Text::open(file, format, options)?.fill(to),
        #[cfg(feature = "parquet")]
        Layout::Parquet => super::columnar::parquet::fill(file, options, to),
        #[cfg(feature = "npy")]
        Layout::Npy => super::npy::fill(file, options, to),
        other => Err(Error::NotInBlocks { what: format!("the format {}", other.name()) }),
    }
}

/// Bytes of text that are read at once.
pub(super) const TEXT: usize = if cfg!(test) { 1 << 8 } else { 1 << 24 };

/// The bytes of a text as they come.
pub(super) struct Bytes {
    from: Box<dyn Read>,
    gzip: bool,
    /// A first piece that was cut by somebody else.
    pub(super) first: Option<Vec<u8>>,
    /// What was read beyond a piece.
    pub(super) rest: Vec<u8>,
    pub(super) ended: bool,
    /// How many are read at once, and the most that a row may take.
    pub(super) at_once: usize,
    pub(super) longest: usize,
    /// What separates cells, once that is known, and what else tells it.
    pub(super) delimiter: Option<Delimiter>,
    layout: Layout,
    options: ReadOptions,
}

impl Bytes {
    pub(super) fn new(
        from: impl Read + 'static,
        Format { layout, gzip }: Format,
        options: &ReadOptions,
    ) -> Self {
        let from: Box<dyn Read> =
            if gzip { Box::new(flate2::read::MultiGzDecoder::new(from)) } else { Box::new(from) };
        let (first, rest, ended, delimiter, options) = (None, Vec::new(), false, None, options.clone());
        Self {
            from,
            gzip,
            first,
            rest,
            ended,
            at_once: TEXT,
            longest: usize::MAX,
            delimiter,
            layout,
            options,
        }
    }

    /// Reads until there are `enough` bytes, or all; `false` if the source has to be waited for, which it says by
    /// [`ErrorKind::WouldBlock`].
    ///
    /// A source that was stopped says [`ErrorKind::ConnectionAborted`], and ends with its last whole row: nobody knows what the next
    /// would have been.
    pub(super) fn read(&mut self, to: &mut Vec<u8>, enough: usize) -> Result<bool, Error> {
        while !self.ended && to.len() < enough {
            match (&mut self.from).take((enough - to.len()) as u64).read_to_end(to) {
                Ok(n) => self.ended = n == 0,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == ErrorKind::ConnectionAborted => {
                    self.ended = true;
                    to.truncate(self.whole_rows(to).unwrap_or(0));
                }
                Err(e) => return Err(if self.gzip { Error::gzip(e) } else { Error::Read(e) }),
            }
        }
        Ok(true)
    }

    /// The next rows, whole ones; `None` at the end.
    fn next_piece(&mut self) -> Result<Option<Vec<u8>>, Error> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let mut piece = std::mem::take(&mut self.rest);
        while !self.ended {
            if let Some(end) = self.whole_rows(&piece) {
                self.rest = piece.split_off(end);
                break;
            }
            if piece.len() > self.longest {
                let open = self.delimiter.map(|delimiter| fields::rows(&piece, 0, delimiter, usize::MAX));
                return Err(match open {
                    Some(RowStarts { unclosed: Some(quote), starts, .. }) => {
                        fields::unclosed(&piece, starts.len() - 1, quote)
                    }
                    _ => Error::LongLine { bytes: piece.len() as u64 },
                });
            }
            let enough = piece.len() + self.at_once;
            while !self.read(&mut piece, enough)? {}
        }
        Ok(if piece.is_empty() { None } else { Some(piece) })
    }

    /// What separates cells, by how the text begins: where rows end is known exactly only by that.
    pub(super) fn recognized(&self, text: &[u8]) -> Option<Delimiter> {
        let mark = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        dialect::recognize(text, mark, self.layout, &self.options).ok().map(|found| found.delimiter)
    }

    /// Where the last whole row ends.
    pub(super) fn whole_rows(&self, text: &[u8]) -> Option<usize> {
        let Some(delimiter) = self.delimiter.or_else(|| self.recognized(text)) else {
            return memrchr(b'\n', text).map(|end| end + 1);
        };
        if let (None, Some(end)) = (memchr(b'"', text), memrchr(b'\n', text)) {
            return Some(end + 1);
        }
        let rows = fields::rows(text, 0, delimiter, usize::MAX);
        if rows.unclosed.is_none() && text.ends_with(b"\n") {
            return Some(text.len());
        }
        rows.starts.last().copied().filter(|start| *start > 0)
    }
}

/// Text that is read a piece at a time. What the first piece shows (separators, decimals, a header, which columns are
/// numbers) holds for all.
pub(super) struct Text {
    bytes: Bytes,
    layout: Layout,
    /// For pieces that have no header: columns go by number.
    options: ReadOptions,
    /// The columns of numbers, and how many there are of all kinds.
    pub(super) names: Vec<String>,
    n_columns: usize,
    /// The first piece, and how many rows and lines it has.
    pub(super) first: Option<Table>,
    before: (usize, usize),
}

impl Text {
    fn open(file: &File, format: Format, options: &ReadOptions) -> Result<Self, Error> {
        let mut file = file.try_clone().map_err(Error::Read)?;
        file.seek(SeekFrom::Start(0)).map_err(Error::Read)?;
        Self::begin(Bytes::new(file, format, options), format.layout, options)
    }

    /// Reads the first piece.
    pub(super) fn begin(mut bytes: Bytes, layout: Layout, options: &ReadOptions) -> Result<Self, Error> {
        let piece = bytes.next_piece()?.ok_or(Error::Empty)?;
        let n_lines = n_lines(&piece);
        let unlimited = ReadOptions { max_memory: None, ..options.clone() };
        let table = csv::parse_encoded(piece, layout, &unlimited)?;
        let Body::Text(text) = &table.body else { unreachable!("text is read as text") };
        if text.is_encoded() {
            return Err(Error::NotInBlocks { what: "text that is not UTF-8".to_owned() });
        }
        bytes.delimiter = Some(text.delimiter());
        let numeric = (0..table.kinds.len()).filter(|&j| table.kinds[j] == ColumnKind::Numbers);
        let mut options = ReadOptions {
            delimiter: Some(text.delimiter()),
            decimal_comma: Some(text.decimal_comma()),
            header: Some(false),
            skip: Some(0),
            ..unlimited
        };
        options.choice = super::ColumnChoice {
            columns: Columns::Listed(numeric.map(|j| format!("x{}", j + 1)).collect()),
            ..super::ColumnChoice::default()
        };
        let names = table.data.column_names().to_vec();
        let (n_columns, before) = (table.names.len(), (table.data.n_rows(), n_lines));
        Ok(Self { bytes, layout, options, names, n_columns, first: Some(table), before })
    }

    pub(super) fn fill(self, to: &mut Block<'_>) -> Result<(), Error> {
        self.for_pieces(|piece| match piece {
            Piece::Rows(table) => {
                // Of the text nothing is needed any more.
                let Table { data, .. } = *table;
                put(&data, to)
            }
            Piece::Blank(_) => Ok(()),
        })
    }

    /// Calls `visit` with one piece after the other.
    fn for_pieces(mut self, mut visit: impl FnMut(Piece<'_>) -> Result<(), Error>) -> Result<(), Error> {
        if let Some(first) = self.first.take() {
            visit(Piece::Rows(Box::new(first)))?;
        }
        let (mut n, mut lines) = self.before;
        let names = &self.names;
        let in_piece = |error: Error, n, lines| error.in_piece((n, lines), &self.options.choice, names);
        while let Some(piece) = self.bytes.next_piece().map_err(|error| in_piece(error, n, lines))? {
            let here = n_lines(&piece);
            if piece.iter().all(u8::is_ascii_whitespace) {
                visit(Piece::Blank(&piece))?;
                lines += here;
                continue;
            }
            let table = csv::parse_encoded(piece, self.layout, &self.options);
            let table = table.map_err(|error| in_piece(error, n, lines))?;
            let (expected, got) = (self.n_columns, table.names.len());
            if got != expected {
                let place = super::Place { row: n + 1, line: Some(lines + 1) };
                let column = names.last().cloned().unwrap_or_default();
                return Err(Error::LongRow { place, column, expected, got });
            }
            n += table.data.n_rows();
            lines += here;
            visit(Piece::Rows(Box::new(table)))?;
        }
        Ok(())
    }
}

/// Lines that end in a text.
fn n_lines(text: &[u8]) -> usize {
    match memchr_iter(b'\n', text).count() {
        0 => memchr_iter(b'\r', text).count(),
        n => n,
    }
}

/// A part of a text.
enum Piece<'a> {
    Rows(Box<Table>),
    /// White space alone.
    Blank(&'a [u8]),
}

fn put(rows: &Dataset, to: &mut Block<'_>) -> Result<(), Error> {
    let mut cells = rows.values().as_slice();
    while !cells.is_empty() {
        let room = to.room(cells.len() / rows.n_columns())?;
        let (now, later) = cells.split_at(room.len());
        room.copy_from_slice(now);
        cells = later;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Block, BlockFile, fill};
    use crate::Matrix;
    use crate::infer::Rows;
    use crate::io::{self, Cells, Error, Format, Input, ReadOptions, Sheet};
    use std::fs::File;
    use std::io::Write;

    /// A table with gaps, a column of text and one of whole numbers, in a file of some format.
    fn file(n: usize, word: &str) -> File {
        let format = Format::from_name(word).unwrap();
        let number = |i: usize, j: usize| {
            if (i * 7 + j * 3).is_multiple_of(11) { f64::NAN } else { ((i * i + 5 * j) % 97) as f64 / 4.0 }
        };
        let numbers = Matrix::from_fn(n, 5, number);
        let text: Vec<String> = (0..n).map(|i| format!("row \"{i}\",\nof many")).collect();
        let mut sheet = Sheet::default();
        if word.starts_with("csv") || word == "parquet" {
            sheet.push("name", Cells::Text(text));
        }
        sheet.push_matrix((1..=5).map(|j| format!("x{j}")), &numbers);
        sheet.push("whole", Cells::Integers((0..n as i64).map(|i| i % 9).collect()));
        let mut file = tempfile::tempfile().unwrap();
        sheet.write(format, &mut file).unwrap();
        file
    }

    fn again(file: &File) -> File {
        use std::io::{Seek, SeekFrom};
        let mut file = file.try_clone().unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file
    }

    /// An inch mark opens no quotation that the first piece would end in.
    #[test]
    fn a_quote_within_one_of_the_first_cells_ends_no_row() {
        let rows: Vec<String> = (0..200).map(|i| format!("5\" pipe,{i},{}\n", (i * i) % 17)).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(format!("name,x,y\n{}", rows.concat()).as_bytes()).unwrap();
        let table = BlockFile::open(vec![file], Format::CSV, &ReadOptions::default()).unwrap();
        assert_eq!((table.facts().unwrap().n_rows(), table.column_names().len()), (200, 2));
    }

    #[test]
    fn blocks_are_the_rows_of_the_table_whatever_the_format() {
        for word in ["csv", "csv.gz", "tsv", "npy", "parquet"] {
            let (format, options) = (Format::from_name(word).unwrap(), ReadOptions::default());
            for n in [1, 17, 200] {
                let file = file(n, word);
                let whole = io::read(Input::<File>::File(again(&file)), format, &options).unwrap();
                let whole = whole.dataset();
                for size in [1, 5, 16, 64, 1000] {
                    let mut blocks: Vec<Vec<f64>> = Vec::new();
                    let mut take = |cells: Vec<f64>| {
                        blocks.push(cells.clone());
                        Ok(cells)
                    };
                    let n_columns = whole.n_columns();
                    let mut block = Block { n_columns, size, cells: Vec::new(), filled: 0, take: &mut take };
                    fill(&file, format, &options, &mut block).unwrap();
                    block.pass_on().unwrap();
                    assert!(blocks[..blocks.len() - 1].iter().all(|b| b.len() == size * n_columns));
                    let bits = |cells: &[f64]| cells.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(&blocks.concat()), bits(whole.values().as_slice()), "{word} {n} {size}");
                }
                let table = BlockFile::open(vec![file], format, &options).unwrap();
                assert_eq!(table.column_names(), whole.column_names());
                // As text, where a missing number equals another.
                let same = |a: &dyn std::fmt::Debug, b: &dyn std::fmt::Debug| {
                    assert_eq!(format!("{a:?}"), format!("{b:?}"));
                };
                same(&table.facts().unwrap(), &whole.facts());
                let rows: Vec<usize> = (0..n).step_by(3).collect();
                same(table.some_rows(&rows).unwrap().values(), whole.of_rows(&rows).unwrap().values());
                let some = Rows::of_columns(&table, &[0, 3, 5]).unwrap().facts().unwrap();
                same(&some, &whole.of_columns(&[0, 3, 5]).unwrap().facts());
                assert_eq!(table.n_passes(), 3);
            }
        }
    }

    #[test]
    fn several_files_are_one_table() {
        let options = ReadOptions::default();
        let files = || vec![file(100, "parquet"), file(30, "parquet")];
        let facts =
            BlockFile::open(files(), Format::from_name("parquet").unwrap(), &options).unwrap().facts();
        assert_eq!(facts.unwrap().n_rows(), 130);
        let mut other = tempfile::tempfile().unwrap();
        other.write_all(b"a,b\n1,2\n").unwrap();
        let refused = BlockFile::open(vec![file(10, "csv"), other], Format::CSV, &options);
        let refused = refused.err().unwrap().to_string();
        for words in
            ["file 2: lacks the columns of numbers `x1`, `x2`", "has the columns of numbers `a`, `b`"]
        {
            assert!(refused.contains(words), "{refused}");
        }
    }

    #[test]
    fn a_file_that_changes_between_or_within_passes_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let text: Vec<String> = (0..300).map(|i| format!("{i},{}\n", i % 7)).collect();
        let text = text.concat();
        let table = || {
            let named = |k: usize| {
                let path = folder.path().join(format!("{k}.csv"));
                std::fs::write(&path, format!("a,b\n{text}")).unwrap();
                (format!("{k}.csv"), File::open(path).unwrap())
            };
            BlockFile::open_named(vec![named(1), named(2)], Format::CSV, &ReadOptions::default()).unwrap()
        };
        let append = |bytes: &[u8]| {
            let mut file = File::options().append(true).open(folder.path().join("2.csv")).unwrap();
            file.write_all(bytes).unwrap();
        };
        let check = |refused: String| {
            let changed = "2.csv: changed while it was read";
            assert!(refused.contains(changed), "{refused}");
        };
        // Between two passes.
        let rows = table();
        rows.facts().unwrap();
        append(b"1,2\n");
        check(rows.some_rows(&[0, 5]).unwrap_err().to_string());
        // Of other columns that see the same files.
        let rows = table();
        let some = Rows::of_columns(&rows, &[0]).unwrap();
        append(b"1,2\n");
        check(some.facts().unwrap_err().to_string());
        // Within a pass, to a row that is torn.
        let rows = table();
        let torn = rows.for_rows(10, |_| {
            append(b"1");
            Ok(())
        });
        check(torn.unwrap_err().to_string());
        // While answers are written, after the last row came.
        let (rows, mut n) = (table(), 0);
        let answers = rows.write_answers(Format::CSV, Vec::new(), |block| {
            n += block.n_rows();
            append(b"3,4\n");
            let mut sheet = Sheet::default();
            sheet.push("a", Cells::Numbers(block.values().column(0)));
            Ok(sheet)
        });
        check(answers.unwrap_err().to_string());
        assert_eq!(n, 600);
        let rows = table();
        let filled = rows.write_filled_text(Format::CSV, Vec::new(), |block| {
            append(b"3,4\n");
            Ok(block.values().clone())
        });
        check(filled.unwrap_err().to_string());
    }

    #[test]
    fn what_is_wrong_with_a_late_row_is_named_by_its_row_and_column() {
        let check = |row: &str, words: &[&str]| {
            let mut file = tempfile::tempfile().unwrap();
            let rows: Vec<String> = (0..100).map(|i| format!("{i},{},a\n", 2 * i)).collect();
            let rows = rows.concat();
            write!(file, "first,second,name\n{rows}{row}\n1,2,b\n").unwrap();
            let refused = BlockFile::open(vec![file], Format::CSV, &ReadOptions::default()).unwrap().facts();
            let refused = refused.unwrap_err().to_string();
            assert!(words.iter().all(|word| refused.contains(word)), "{refused}");
        };
        check("1,oops,a", &["row 101", "`second`", "oops"]);
        check("1,1e999,a", &["row 101", "`second`"]);
        check("1,2", &["row 101"]);
        let mut empty = tempfile::tempfile().unwrap();
        empty.write_all(b"a,b\n").unwrap();
        assert!(BlockFile::open(vec![empty], Format::CSV, &ReadOptions::default()).is_err());
        let refused = BlockFile::open(
            vec![file(3, "arrow")],
            Format::from_name("arrow").unwrap(),
            &ReadOptions::default(),
        );
        assert!(matches!(refused, Err(Error::NotInBlocks { .. })));
    }
}
