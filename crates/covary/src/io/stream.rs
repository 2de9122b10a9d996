//! Text that comes once, such as from a pipe, and may have no end.
//!
//! What comes is kept for as long as memory may hold it. If it ends before, it is a table like any other; beyond that, the first half of what
//! was kept is the first block, and what follows is gone through and let go, in blocks that are cut by rows alone.

use super::blocks::{Block, Bytes, TEXT, Text};
use super::{Error, Format, Layout, ReadOptions, Table, csv};
use crate::data::block_rows;
use crate::{Dataset, Matrix};
use std::io::Read;

/// A text table that comes once, and is kept for as long as memory may hold it.
///
/// ```
/// use covary::io::{Format, Gathered, ReadOptions, RowStream};
/// let rows: String = (0..400).map(|i| format!("{i},{}\n", i % 7)).collect();
/// let text = std::io::Cursor::new(format!("x,y\n{rows}"));
/// let options = ReadOptions { max_memory: Some(6000), ..ReadOptions::default() };
/// let mut stream = RowStream::new(text, Format::CSV, &options)?;
/// assert_eq!(stream.gather()?, Gathered::Beyond);
/// let (first, later) = stream.begin()?;
/// let mut n_rows = first.n_rows();
/// assert_eq!(later.block_rows(), 46);
/// later.for_blocks(|block| {
///     n_rows += block.n_rows();
///     Ok(())
/// })?;
/// assert_eq!(n_rows, 400);
/// # Ok::<(), covary::io::Error>(())
/// ```
pub struct RowStream {
    bytes: Bytes,
    kept: Vec<u8>,
    /// The most that is kept.
    most: usize,
    layout: Layout,
    options: ReadOptions,
}

/// How much of a text has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gathered {
    /// The source has to be waited for.
    Waiting,
    /// All of it.
    Whole,
    /// More than may be kept.
    Beyond,
}

impl RowStream {
    /// A text that is read from `from`, which may say [`WouldBlock`](std::io::ErrorKind::WouldBlock) where it has to be waited for, and
    /// [`ConnectionAborted`](std::io::ErrorKind::ConnectionAborted) where it was stopped: it then ends with its last whole row.
    ///
    /// # Errors
    /// [`Error::NotInBlocks`] for what is not text, and a text that is to be transposed.
    pub fn new(from: impl Read + 'static, format: Format, options: &ReadOptions) -> Result<Self, Error> {
        let not = |what: String| Err(Error::NotInBlocks { what });
        if !format.layout.is_text() {
            return not(format!("the format {}", format.layout.name()));
        }
        if options.transpose {
            return not("a table that is to be transposed".to_owned());
        }
        let most =
            options.max_text().map_or(usize::MAX - 1, |n| usize::try_from(n).unwrap_or(usize::MAX - 1));
        let bytes = Bytes::new(from, format, options);
        Ok(Self { bytes, kept: Vec::new(), most, layout: format.layout, options: options.clone() })
    }

    /// Reads on until the source has to be waited for, has ended, or has more than may be kept.
    ///
    /// # Errors
    /// If the source cannot be read.
    pub fn gather(&mut self) -> Result<Gathered, Error> {
        let enough = self.most.saturating_add(1);
        if self.kept.is_empty() {
            // Room that is not used is not taken; where none can be had, the text is let grow.
            let _ = self.kept.try_reserve_exact(self.most.min(1 << 40));
        }
        let read = self.bytes.read(&mut self.kept, enough)?;
        Ok(match read {
            _ if self.kept.len() > self.most => Gathered::Beyond,
            true => Gathered::Whole,
            false => Gathered::Waiting,
        })
    }

    /// Bytes of text that are kept.
    pub fn n_bytes(&self) -> usize {
        self.kept.len()
    }

    /// The table of the whole rows so far, beside the text that is kept.
    ///
    /// # Errors
    /// As [`read`](super::read).
    pub fn so_far(&self) -> Result<Table, Error> {
        let end =
            if self.bytes.ended { self.kept.len() } else { self.bytes.whole_rows(&self.kept).unwrap_or(0) };
        self.table(self.kept[..end].to_vec())
    }

    /// The table of a text that has ended.
    ///
    /// # Errors
    /// As [`read`](super::read).
    pub fn into_table(mut self) -> Result<Table, Error> {
        let kept = std::mem::take(&mut self.kept);
        self.table(kept)
    }

    fn table(&self, text: Vec<u8>) -> Result<Table, Error> {
        let mut table = csv::parse_encoded(text, self.layout, &self.options)?;
        table.chosen = self.options.choice.is_made();
        Ok(table)
    }

    /// The table of the whole rows in the first half of what was kept, and the rows that follow.
    ///
    /// # Errors
    /// As [`read`](super::read), and [`Error::NotInBlocks`] for text that is not UTF-8.
    pub fn begin(self) -> Result<(Table, LaterRows), Error> {
        let Self { mut bytes, kept, most, layout, options } = self;
        bytes.delimiter = bytes.recognized(&kept);
        bytes.longest = most.saturating_mul(2);
        let limit = most.saturating_mul(3);
        bytes.at_once = (limit / 24).clamp(1 << 10, TEXT.max(1 << 10));
        // A fit takes more than the table that it is of: half of what is kept is the first block.
        let half = &kept[..kept.len() / 2];
        bytes.first = bytes.whole_rows(half).map(|end| half[..end].to_vec());
        bytes.rest = match &bytes.first {
            Some(first) => kept[first.len()..].to_vec(),
            None => kept,
        };
        let mut text = Text::begin(bytes, layout, &options)?;
        let mut first = text.first.take().expect("it begins with its first piece");
        first.chosen = options.choice.is_made();
        let d = text.names.len();
        // Cells of a block take an eighth: they are grouped by their gaps, and stand beside a piece of text.
        let size = (limit / 64 / d).clamp(1, block_rows(d));
        Ok((first, LaterRows { text, size }))
    }
}

/// The rows of a [`RowStream`] after those that were kept.
pub struct LaterRows {
    text: Text,
    size: usize,
}

impl LaterRows {
    /// Rows of a block.
    pub fn block_rows(&self) -> usize {
        self.size
    }

    /// Calls `visit` with one block of the columns of numbers after the other, until there are no more rows.
    ///
    /// # Errors
    /// What is wrong with the text, and what `visit` returns.
    pub fn for_blocks(self, mut visit: impl FnMut(&Dataset) -> Result<(), Error>) -> Result<(), Error> {
        let Self { text, size } = self;
        let names = text.names.clone();
        let d = names.len();
        let mut take = |cells: Vec<f64>| {
            let block = Dataset::with_names(Matrix::from_vec(cells.len() / d, d, cells)?, names.clone())?;
            visit(&block)?;
            Ok(block.into_values().into_vec())
        };
        let mut block = Block { n_columns: d, size, cells: Vec::new(), filled: 0, take: &mut take };
        text.fill(&mut block)?;
        block.pass_on()
    }
}
