//! Columns of plain numbers in Parquet, straight from their pages into the rows of a dataset.
//!
//! Most columns are of f64, f32, i32 or i64, as they are or by dictionary, under Snappy or nothing:
//! between their pages and the rows no array is needed, and no buffer that was not there before.
//! All else is for the decoder of the crate.

use super::pages::{
    DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, INDEX_PAGE, PLAIN, PLAIN_DICTIONARY, Page, RLE, RLE_DICTIONARY,
};
use super::parquet::wrong;
use crate::io::Error;
use arrow_schema::DataType;
use parquet::basic::{Compression, Type};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::ChunkReader;
use rayon::prelude::*;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Rows whose pages are decompressed at once.
const SLAB: usize = if cfg!(test) { 16 } else { 1 << 17 };
/// Bytes of decompressed pages in memory at once: the more columns, the more of a row is written while
/// it is in a cache.
const BAND: u64 = if cfg!(test) { 300 } else { 1 << 24 };
/// Rows and columns that are decoded and turned at once: they stay in the first cache.
const SLICE: usize = if cfg!(test) { 3 } else { 512 };
const TILE: usize = if cfg!(test) { 2 } else { 8 };
/// Bytes behind a page, so that eight can be looked at wherever one is.
const MARGIN: usize = 8;

/// A file, or bytes.
pub(super) trait Source: ChunkReader + Clone + 'static {
    fn copy(&self, at: u64, to: &mut [u8]) -> Result<(), Error>;
    /// Looks at some bytes where they are, or in a buffer of the pool.
    fn look(
        &self,
        at: u64,
        length: usize,
        pool: &Pool,
        then: impl FnOnce(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error>;
}

/// A column that is read straight.
pub(super) struct Flat<'a> {
    /// Its place among the columns of the file.
    pub(super) column: usize,
    /// And among those of the dataset.
    slot: usize,
    read: Read,
    width: usize,
    optional: bool,
    /// Its pages in every row group, and whether Snappy made them.
    chunks: Vec<(&'a [Page], bool)>,
    /// What comes next: row group, page, row.
    next: (usize, usize, usize),
    loaded: VecDeque<Loaded>,
    /// Dictionaries of row groups, plain values.
    dictionaries: VecDeque<(usize, Vec<u8>, usize)>,
}

/// Decodes the next rows of a page.
type Read = fn(&Loaded, &[u8], &mut Cursor, &mut [f64]) -> Result<Seen, Error>;

/// What a part of a column holds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) null: bool,
    pub(super) nan: bool,
    /// A number that f64 does not hold.
    pub(super) inexact: bool,
}

impl Seen {
    fn and(self, other: Self) -> Self {
        Self {
            null: self.null | other.null,
            nan: self.nan | other.nan,
            inexact: self.inexact | other.inexact,
        }
    }
}

/// Buffers that pages have left: memory asked for again and again costs more than decoding.
#[derive(Default)]
pub(super) struct Pool(Mutex<Vec<Vec<u8>>>);

impl Pool {
    fn buffers(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The smallest buffer that has this many bytes. A new one's are zeros, which the system gives as
    /// they are written to.
    pub(super) fn take(&self, length: usize) -> Vec<u8> {
        let mut buffers = self.buffers();
        let fits = buffers.iter().enumerate().filter(|(_, buffer)| buffer.len() >= length);
        match fits.min_by_key(|(_, buffer)| buffer.len()).map(|(i, _)| i) {
            Some(i) => buffers.swap_remove(i),
            None => vec![0; length],
        }
    }

    pub(super) fn give(&self, buffer: Vec<u8>) {
        if !buffer.is_empty() {
            self.buffers().push(buffer);
        }
    }
}

/// Reads columns into the rows of a dataset of `d` columns, a band of them at a time, and says of
/// each what every block of `block` rows holds.
pub(super) fn read<S: Source>(
    source: &S,
    columns: &mut [Flat<'_>],
    values: &mut [f64],
    d: usize,
    block: usize,
) -> Result<Vec<Vec<Seen>>, Error> {
    let pool = Pool::default();
    let n = values.len() / d.max(1);
    let mut seen = Vec::new();
    let mut rest = columns;
    while !rest.is_empty() {
        let mut bytes = rest[0].bytes_at_once();
        let others = rest[1..].iter().take_while(|column| {
            bytes += column.bytes_at_once();
            bytes < BAND
        });
        let band = 1 + others.count();
        let (columns, later) = rest.split_at_mut(band);
        let mut of_band = vec![Vec::new(); columns.len()];
        for start in (0..n).step_by(SLAB) {
            let rows = start..n.min(start + SLAB);
            columns.par_iter_mut().try_for_each(|column| column.load(source, &pool, &rows, block))?;
            let columns = &*columns;
            let blocks: Vec<Vec<Seen>> = values[rows.start * d..rows.end * d]
                .par_chunks_mut(block * d)
                .enumerate()
                .map(|(i, rows)| read_block(columns, start + i * block, rows, d, block))
                .collect::<Result<_, Error>>()?;
            for block in blocks {
                of_band.iter_mut().zip(block).for_each(|(column, seen)| column.push(seen));
            }
        }
        for column in columns {
            column.loaded.drain(..).for_each(|page| pool.give(page.bytes));
            column.dictionaries.drain(..).for_each(|(_, bytes, _)| pool.give(bytes));
        }
        seen.append(&mut of_band);
        rest = later;
    }
    Ok(seen)
}

/// Bytes of pages that stay in memory from one run of rows to the next; what is more is decompressed again.
const KEPT: usize = if cfg!(test) { 300 } else { 1 << 27 };

/// Reads the next rows of all columns, those after the ones read before, into the rows of a dataset of `d` columns.
pub(super) fn read_rows<S: Source>(
    source: &S,
    pool: &Pool,
    columns: &mut [Flat<'_>],
    rows: Range<usize>,
    values: &mut [f64],
    d: usize,
) -> Result<(), Error> {
    let mut kept = 0;
    let mut rest = columns;
    while !rest.is_empty() {
        let mut bytes = rest[0].bytes_at_once();
        let others = rest[1..].iter().take_while(|column| {
            bytes += column.bytes_at_once();
            bytes < BAND
        });
        let band = 1 + others.count();
        let (columns, later) = rest.split_at_mut(band);
        // Runs of rows begin anywhere: only what begins at a multiple of this is found at once.
        let block = SLICE;
        columns.par_iter_mut().try_for_each(|column| column.load(source, pool, &rows, block))?;
        let columns_read = &*columns;
        // The first piece ends where a block begins.
        let begin = (rows.start.next_multiple_of(block) - rows.start).min(rows.len());
        let (head, tail) = values.split_at_mut(begin * d);
        if begin > 0 {
            read_from(columns_read, rows.start, head, d, block)?;
        }
        tail.par_chunks_mut(8 * block * d).enumerate().try_for_each(|(i, piece)| {
            read_block(columns_read, rows.start + begin + i * 8 * block, piece, d, block).map(drop)
        })?;
        for column in columns {
            let held: usize = column.loaded.iter().map(|page| page.bytes.len()).sum();
            if kept + held > KEPT {
                column.rewind(pool, rows.end);
            } else {
                kept += held;
            }
        }
        rest = later;
    }
    if kept == 0 {
        pool.buffers().clear();
    }
    Ok(())
}

/// Reads rows of which the first begins no block: those before it in its block are read, too, and dropped.
fn read_from(
    columns: &[Flat<'_>],
    first: usize,
    rows: &mut [f64],
    d: usize,
    block: usize,
) -> Result<(), Error> {
    let n = rows.len() / d;
    for column in columns {
        let page = column.loaded.front().map_or(0, |page| page.rows.start);
        let start = (first / block * block).max(page);
        let mut numbers = vec![0.0; first - start + n];
        let mut place = column.place(start, block)?;
        column.read(start, &mut place, &mut numbers)?;
        for (row, number) in rows.chunks_exact_mut(d).zip(&numbers[first - start..]) {
            row[column.slot] = *number;
        }
    }
    Ok(())
}

fn read_block(
    columns: &[Flat<'_>],
    first: usize,
    rows: &mut [f64],
    d: usize,
    block: usize,
) -> Result<Vec<Seen>, Error> {
    // Lines of cache at distances of a power of two would push each other out.
    let mut tile = vec![[0.0; SLICE + MARGIN]; TILE];
    let mut places: Vec<(usize, Cursor)> =
        columns.iter().map(|column| column.place(first, block)).collect::<Result<_, _>>()?;
    let mut seen = vec![Seen::default(); columns.len()];
    for (i, rows) in rows.chunks_mut(SLICE * d).enumerate() {
        let (row, n) = (first + i * SLICE, rows.len() / d);
        for (t, columns) in columns.chunks(TILE).enumerate() {
            for (c, column) in columns.iter().enumerate() {
                let k = t * TILE + c;
                seen[k] = seen[k].and(column.read(row, &mut places[k], &mut tile[c][..n])?);
            }
            let slot = columns[0].slot;
            if columns.len() == TILE && columns[TILE - 1].slot == slot + TILE - 1 {
                for (r, row) in rows.chunks_exact_mut(d).enumerate() {
                    for (cell, column) in row[slot..slot + TILE].iter_mut().zip(&tile) {
                        *cell = column[r % SLICE]; // it is less, which the compiler does not know
                    }
                }
            } else {
                for (column, numbers) in columns.iter().zip(&tile) {
                    for (row, number) in rows.chunks_exact_mut(d).zip(numbers) {
                        row[column.slot] = *number;
                    }
                }
            }
        }
    }
    Ok(seen)
}

impl<'a> Flat<'a> {
    /// The column, if all of its pages are of the kinds that are read straight; their headers are
    /// given by row group and column.
    pub(super) fn new(
        column: usize,
        slot: usize,
        data_type: &DataType,
        metadata: &ParquetMetaData,
        pages: &'a [Vec<Vec<Page>>],
    ) -> Option<Self> {
        let schema = metadata.file_metadata().schema_descr();
        let mut leaves = (0..schema.num_columns()).filter(|&leaf| schema.get_column_root_idx(leaf) == column);
        let (leaf, None) = (leaves.next()?, leaves.next()) else { return None };
        let descr = schema.column(leaf);
        let optional = descr.max_def_level() == 1;
        if descr.max_rep_level() > 0 || descr.max_def_level() > 1 {
            return None;
        }
        let (read, width): (Read, usize) = match (data_type, descr.physical_type()) {
            (DataType::Float64, Type::DOUBLE) => (Loaded::read::<8, f64>, 8),
            (DataType::Float32, Type::FLOAT) => (Loaded::read::<4, f32>, 4),
            (DataType::Int32, Type::INT32) => (Loaded::read::<4, i32>, 4),
            (DataType::Int64, Type::INT64) => (Loaded::read::<8, i64>, 8),
            _ => return None,
        };
        let mut chunks = Vec::new();
        for (group, pages) in metadata.row_groups().iter().zip(pages) {
            let pages = &pages[leaf][..];
            let snappy = match group.column(leaf).compression() {
                Compression::UNCOMPRESSED => false,
                Compression::SNAPPY => true,
                _ => return None,
            };
            if !pages.iter().enumerate().all(|(i, page)| is_simple(page, i == 0)) {
                return None;
            }
            chunks.push((pages, snappy));
        }
        let (loaded, dictionaries) = (VecDeque::new(), VecDeque::new());
        Some(Self { column, slot, read, width, optional, chunks, next: (0, 0, 0), loaded, dictionaries })
    }

    /// About how many bytes of its pages are in memory at once.
    fn bytes_at_once(&self) -> u64 {
        let of_chunk = |(pages, _): &(&[Page], bool)| {
            let (mut fixed, mut data, mut rows) = (0, 0, 1);
            for page in *pages {
                match &page.data {
                    Some(values) => (data, rows) = (data + page.uncompressed, rows + values.values),
                    None => fixed += page.uncompressed,
                }
            }
            fixed + (data as f64 * (SLAB as f64 / rows as f64).min(1.0)) as u64
        };
        self.chunks.iter().map(of_chunk).max().unwrap_or(0)
    }

    /// Loads the pages of some rows and gives up those before.
    fn load<S: Source>(
        &mut self,
        source: &S,
        pool: &Pool,
        rows: &Range<usize>,
        block: usize,
    ) -> Result<(), Error> {
        self.unload(pool, rows.start);
        while self.next.2 < rows.end {
            let (group, i, row) = self.next;
            let &(pages, snappy) =
                self.chunks.get(group).ok_or_else(|| wrong("it has fewer rows than it claims"))?;
            let Some(page) = pages.get(i) else {
                self.next = (group + 1, 0, row);
                continue;
            };
            self.next.1 += 1;
            if page.kind == INDEX_PAGE {
                continue;
            }
            let (bytes, length) = decompress(source, page, snappy, pool)?;
            let Some(data) = page.data.as_ref().filter(|_| page.kind != DICTIONARY_PAGE) else {
                self.dictionaries.push_back((group, bytes, length));
                continue;
            };
            let n = usize::try_from(data.values).map_err(|_| wrong("a page is too long"))?;
            self.next.2 += n;
            let mut loaded = Loaded { rows: row..row + n, group, page: i, bytes, length, starts: Vec::new() };
            loaded.set_starts(page, self.optional, self.width, block)?;
            self.loaded.push_back(loaded);
        }
        Ok(())
    }

    /// Gives up the pages that hold no row from `row` on.
    fn unload(&mut self, pool: &Pool, row: usize) {
        while self.loaded.front().is_some_and(|page| page.rows.end <= row) {
            pool.give(self.loaded.pop_front().expect("one was just seen").bytes);
        }
        let group = self.loaded.front().map_or(self.next.0, |page| page.group);
        while self.dictionaries.front().is_some_and(|(of, ..)| *of < group) {
            pool.give(self.dictionaries.pop_front().expect("one was just seen").1);
        }
    }

    /// Gives up all pages; that of `row` is the next to be loaded.
    fn rewind(&mut self, pool: &Pool, row: usize) {
        self.unload(pool, row);
        let Some(front) = self.loaded.front() else { return };
        let group = front.group;
        self.next = (group, front.page, front.rows.start);
        self.loaded.drain(..).for_each(|page| pool.give(page.bytes));
        // Those of later row groups come again with their pages.
        while self.dictionaries.back().is_some_and(|(of, ..)| *of > group) {
            pool.give(self.dictionaries.pop_back().expect("one was just seen").1);
        }
    }

    /// Where a row stands that begins a block: in which page, and where there.
    fn place(&self, row: usize, block: usize) -> Result<(usize, Cursor), Error> {
        let i = self.loaded.partition_point(|page| page.rows.end <= row);
        let page = self.loaded.get(i).ok_or_else(|| wrong("it has fewer rows than it claims"))?;
        let start = if row == page.rows.start { 0 } else { row / block - page.rows.start / block };
        Ok((i, page.starts[start]))
    }

    /// Reads the rows from `row` on, of which `place` is the first.
    fn read(&self, mut row: usize, place: &mut (usize, Cursor), mut to: &mut [f64]) -> Result<Seen, Error> {
        let mut seen = Seen::default();
        while !to.is_empty() {
            let page = &self.loaded[place.0];
            if row == page.rows.end {
                let next =
                    self.loaded.get(place.0 + 1).ok_or_else(|| wrong("its columns differ in length"))?;
                *place = (place.0 + 1, next.starts[0]);
                continue;
            }
            let (now, later) = to.split_at_mut(to.len().min(page.rows.end - row));
            let dictionary = self.dictionaries.iter().find(|(group, ..)| *group == page.group);
            let dictionary = dictionary.map_or(&[][..], |(_, bytes, length)| &bytes[..*length]);
            seen = seen.and((self.read)(page, dictionary, &mut place.1, now)?);
            row += now.len();
            to = later;
        }
        Ok(seen)
    }
}

/// Whether a page is of a kind that is read straight. A dictionary comes first.
fn is_simple(page: &Page, first: bool) -> bool {
    match (page.kind, &page.data, &page.dictionary) {
        (INDEX_PAGE, None, None) => true,
        (DICTIONARY_PAGE, None, Some(values)) => first && matches!(values.encoding, PLAIN | PLAIN_DICTIONARY),
        (DATA_PAGE, Some(values), None) if page.levels.is_none() => {
            matches!(values.encoding, PLAIN | PLAIN_DICTIONARY | RLE_DICTIONARY)
                && values.gaps_encoding == RLE
        }
        (DATA_PAGE_V2, Some(values), None) => {
            matches!(values.encoding, PLAIN | PLAIN_DICTIONARY | RLE_DICTIONARY)
                && page.levels.is_some_and(|levels| levels.repeats == 0)
        }
        _ => false,
    }
}

/// The bytes of a page, in a buffer that may be longer, and how many they are.
fn decompress<S: Source>(
    source: &S,
    page: &Page,
    snappy: bool,
    pool: &Pool,
) -> Result<(Vec<u8>, usize), Error> {
    let none = || wrong("a page cannot be decompressed");
    let size = |bytes: u64| usize::try_from(bytes).map_err(|_| none());
    let stored = !snappy || page.levels.is_some_and(|levels| levels.stored);
    let compressed = size(page.compressed)?;
    let length = if stored { compressed } else { size(page.uncompressed)? };
    let mut bytes = pool.take(length + MARGIN);
    if stored {
        source.copy(page.at, &mut bytes[..length])?;
        return Ok((bytes, length));
    }
    source.look(page.at, compressed, pool, |from| {
        // The levels of the second version are as they are.
        let levels = size(page.levels.map_or(0, |levels| levels.gaps))?;
        let (levels, values) = from.split_at_checked(levels).ok_or_else(none)?;
        bytes.get_mut(..levels.len()).ok_or_else(none)?.copy_from_slice(levels);
        let to = bytes.get_mut(levels.len()..length).ok_or_else(none)?;
        let done = to.is_empty() || snap::raw::Decoder::new().decompress(values, to).ok() == Some(to.len());
        if done { Ok(()) } else { Err(none()) }
    })?;
    Ok((bytes, length))
}

/// A decompressed page.
struct Loaded {
    rows: Range<usize>,
    group: usize,
    /// Its place among the pages of the row group.
    page: usize,
    bytes: Vec<u8>,
    length: usize,
    /// Where its first row stands, and every row in it that begins a block.
    starts: Vec<Cursor>,
}

/// A place in a page: among the levels that say which cells are there, and among the values.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    levels: Option<Runs>,
    values: Place,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    /// The byte of the next value.
    Plain(usize),
    Dictionary(Runs),
}

impl Loaded {
    fn set_starts(&mut self, page: &Page, optional: bool, width: usize, block: usize) -> Result<(), Error> {
        let mut levels = None;
        let mut at = match page.levels {
            Some(levels) => usize::try_from(levels.gaps).map_err(|_| too_short())?,
            None if optional => {
                let length = self.bytes[..self.length].first_chunk().ok_or_else(too_short)?;
                usize::try_from(u32::from_le_bytes(*length))
                    .ok()
                    .and_then(|l| l.checked_add(4))
                    .ok_or_else(too_short)?
            }
            None => 0,
        };
        if at > self.length {
            return Err(too_short());
        }
        if optional {
            let first = if page.levels.is_some() { 0 } else { 4 };
            levels = Some(Runs::new(first..at, 1));
        }
        let plain = page.data.as_ref().is_some_and(|data| data.encoding == PLAIN);
        let values = if plain {
            Place::Plain(at)
        } else {
            // A page of gaps may have no values, not even their width.
            let bits = if at < self.length { self.bytes[at] } else { 0 };
            if bits > 32 {
                return Err(wrong("a dictionary has too many values"));
            }
            at = self.length.min(at + 1);
            Place::Dictionary(Runs::new(at..self.length, bits.into()))
        };
        let mut cursor = Cursor { levels, values };
        self.starts.push(cursor);
        let mut row = self.rows.start;
        while let next = (row / block + 1) * block
            && next < self.rows.end
        {
            self.skip(&mut cursor, next - row, width)?;
            self.starts.push(cursor);
            row = next;
        }
        Ok(())
    }

    fn skip(&self, cursor: &mut Cursor, n: usize, width: usize) -> Result<(), Error> {
        let mut present = n;
        if let Some(levels) = &mut cursor.levels {
            present = 0;
            levels.advance(&self.bytes, n, |run, n| {
                present += match run {
                    Run::Repeated(level) => n * usize::from(level == 1),
                    Run::Packed(bit) => ones(&self.bytes, bit, n),
                };
            })?;
        }
        match &mut cursor.values {
            Place::Plain(at) => {
                *at = present
                    .checked_mul(width)
                    .and_then(|bytes| at.checked_add(bytes))
                    .ok_or_else(too_short)?;
            }
            Place::Dictionary(runs) => runs.advance(&self.bytes, present, |_, _| ())?,
        }
        Ok(())
    }

    /// Decodes the next rows.
    fn read<const W: usize, T: Cell<W>>(
        &self,
        dictionary: &[u8],
        cursor: &mut Cursor,
        to: &mut [f64],
    ) -> Result<Seen, Error> {
        let mut there = [0_u8; SLICE];
        let there = &mut there[..to.len()];
        let mut present = to.len();
        if let Some(levels) = &mut cursor.levels
            && !levels.pass_ones(to.len())
        {
            present = levels.levels(&self.bytes, there)?;
        }
        // Where some are gaps, values are put into their places afterwards.
        let null = present < to.len();
        let mut packed = [0.0; SLICE];
        let cells = if null { &mut packed[..present] } else { &mut *to };
        let mut inexact = false;
        match &mut cursor.values {
            Place::Plain(at) => {
                let bytes =
                    at.checked_add(W * present).and_then(|end| self.bytes[..self.length].get(*at..end));
                let bytes = bytes.ok_or_else(too_short)?;
                for (cell, bytes) in cells.iter_mut().zip(bytes.as_chunks::<W>().0) {
                    *cell = T::to_f64(*bytes);
                    inexact |= !T::is_exact(*bytes);
                }
                *at += W * present;
            }
            Place::Dictionary(runs) => {
                let words = dictionary.as_chunks::<W>().0;
                let (mut outside, mut done) = (false, 0);
                let mut word = |i: usize| {
                    let word = words.get(i).copied();
                    outside |= word.is_none();
                    let word = word.unwrap_or([0; W]);
                    inexact |= !T::is_exact(word);
                    T::to_f64(word)
                };
                let bits = runs.bits;
                runs.advance(&self.bytes, present, |run, n| {
                    let cells = &mut cells[done..done + n];
                    match run {
                        Run::Repeated(i) => cells.fill(word(i as usize)),
                        Run::Packed(bit) => unpack(&self.bytes, bit, bits, cells, &mut word),
                    }
                    done += n;
                })?;
                if outside {
                    return Err(wrong("a value is not in its dictionary"));
                }
            }
        }
        let nan = T::FLOATS && cells.iter().fold(false, |nan, cell| nan | cell.is_nan());
        if null {
            let mut next = 0;
            for (cell, &there) in to.iter_mut().zip(&*there) {
                // The same without a branch, which would often be guessed wrong.
                let mask = u64::from(there).wrapping_neg();
                let value = packed[next % SLICE].to_bits();
                *cell = f64::from_bits(value & mask | f64::NAN.to_bits() & !mask);
                next += usize::from(there);
            }
        }
        Ok(Seen { null, nan, inexact })
    }
}

/// A type of numbers in pages.
trait Cell<const W: usize> {
    const FLOATS: bool;
    fn to_f64(bytes: [u8; W]) -> f64;
    /// Whether f64 holds it.
    fn is_exact(_: [u8; W]) -> bool {
        true
    }
}

impl Cell<8> for f64 {
    const FLOATS: bool = true;
    fn to_f64(bytes: [u8; 8]) -> f64 {
        Self::from_le_bytes(bytes)
    }
}

impl Cell<4> for f32 {
    const FLOATS: bool = true;
    fn to_f64(bytes: [u8; 4]) -> f64 {
        Self::from_le_bytes(bytes).into()
    }
}

impl Cell<4> for i32 {
    const FLOATS: bool = false;
    fn to_f64(bytes: [u8; 4]) -> f64 {
        Self::from_le_bytes(bytes).into()
    }
}

impl Cell<8> for i64 {
    const FLOATS: bool = false;
    fn to_f64(bytes: [u8; 8]) -> f64 {
        Self::from_le_bytes(bytes) as f64
    }
    fn is_exact(bytes: [u8; 8]) -> bool {
        Self::to_f64(bytes) as Self == Self::from_le_bytes(bytes)
    }
}

fn too_short() -> Error {
    wrong("a page ends before its values do")
}

/// A place in a list of small numbers: runs of one number repeated, and of numbers packed in bits.
#[derive(Debug, Clone, Copy)]
struct Runs {
    /// Bits of a number.
    bits: usize,
    /// The byte of the next run, and where the last one ends.
    at: usize,
    end: usize,
    /// The rest of this run.
    run: Run,
    left: usize,
}

#[derive(Debug, Clone, Copy)]
enum Run {
    Repeated(u32),
    /// From this bit on.
    Packed(usize),
}

impl Runs {
    fn new(bytes: Range<usize>, bits: usize) -> Self {
        Self { bits, at: bytes.start, end: bytes.end, run: Run::Repeated(0), left: 0 }
    }

    /// Passes over `n` numbers, calling a function for each run or part of one.
    #[inline]
    fn advance(&mut self, bytes: &[u8], mut n: usize, mut each: impl FnMut(Run, usize)) -> Result<(), Error> {
        while n > 0 {
            if self.left == 0 {
                self.next(bytes)?;
                continue;
            }
            let now = n.min(self.left);
            each(self.run, now);
            if let Run::Packed(bit) = &mut self.run {
                *bit += now * self.bits;
            }
            self.left -= now;
            n -= now;
        }
        Ok(())
    }

    fn next(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let bytes = &bytes[..self.end];
        let (mut head, mut shift) = (0_u64, 0);
        loop {
            let byte = *bytes.get(self.at).ok_or_else(too_short)?;
            self.at += 1;
            head |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
            if shift > 28 {
                return Err(wrong("a run of values is too long"));
            }
        }
        let n = usize::try_from(head >> 1).map_err(|_| too_short())?;
        if head & 1 == 0 {
            let length = self.bits.div_ceil(8);
            let value = bytes.get(self.at..self.at + length).ok_or_else(too_short)?;
            self.run = Run::Repeated(value.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)));
            self.at += length;
            self.left = n;
        } else {
            // Eight at a time; what the last of them are is nobody's business if their bytes are cut off.
            self.run = Run::Packed(8 * self.at);
            let length = (n * self.bits).min(self.end - self.at);
            self.left = (8 * length).checked_div(self.bits).unwrap_or(8 * n);
            self.at += length;
        }
        Ok(())
    }

    /// Passes over `n` ones if nothing else comes first.
    fn pass_ones(&mut self, n: usize) -> bool {
        let all = matches!(self.run, Run::Repeated(1)) && self.left >= n;
        if all {
            self.left -= n;
        }
        all
    }

    /// The next levels, 1 where a cell is there, and how many are.
    fn levels(&mut self, bytes: &[u8], to: &mut [u8]) -> Result<usize, Error> {
        let mut done = 0;
        self.advance(bytes, to.len(), |run, n| {
            let to = &mut to[done..done + n];
            match run {
                Run::Repeated(level) => to.fill(u8::from(level == 1)),
                Run::Packed(bit) => {
                    for (i, to) in to.chunks_mut(8).enumerate() {
                        let bit = bit + 8 * i;
                        let eight = spread(word(bytes, bit / 8) >> (bit % 8));
                        to.copy_from_slice(&eight[..to.len()]);
                    }
                }
            }
            done += n;
        })?;
        Ok(to.iter().map(|&there| usize::from(there)).sum())
    }
}

/// Eight bytes; behind a page there are some that mean nothing.
#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// How many of `n` bits are set.
fn ones(bytes: &[u8], mut bit: usize, mut n: usize) -> usize {
    let mut ones = 0;
    while n > 0 {
        let now = n.min(56);
        let bits = word(bytes, bit / 8) >> (bit % 8) & ((1 << now) - 1);
        ones += bits.count_ones() as usize;
        bit += now;
        n -= now;
    }
    ones
}

/// The lowest eight bits, a byte each.
#[inline]
fn spread(bits: u64) -> [u8; 8] {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let alone = ((bits & 0xff) * EACH) & 0x8040_2010_0804_0201; // each in a byte of its own, somewhere
    ((alone + 0x7f * EACH) >> 7 & EACH).to_le_bytes() // where there is one, the highest bit becomes set
}

/// Numbers of some bits each, turned into cells.
#[inline]
fn unpack(bytes: &[u8], mut bit: usize, bits: usize, cells: &mut [f64], cell: &mut impl FnMut(usize) -> f64) {
    let mask = (1_u64 << bits) - 1;
    let at_once = 56_usize.checked_div(bits).unwrap_or(cells.len()).max(1);
    for cells in cells.chunks_mut(at_once) {
        let mut word = word(bytes, bit / 8) >> (bit % 8);
        for to in &mut *cells {
            *to = cell((word & mask) as usize);
            word >>= bits;
        }
        bit += bits * cells.len();
    }
}
