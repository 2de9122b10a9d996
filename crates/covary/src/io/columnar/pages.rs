//! What the pages of a Parquet file claim, held against the bytes they have before any is decoded:
//! the decoder takes memory for some claims at once.

use super::parquet::{failed, wrong};
use crate::io::Error;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use std::io::{self, Read};
use std::sync::Arc;

/// Walks the headers of all pages and gives those of each column of each row group. Nothing is
/// decompressed but text that says how long it is in a list of differences, which has a claim of
/// its own.
pub(super) fn walk<T: ChunkReader + Clone + 'static>(
    source: &T,
    metadata: &ParquetMetaData,
) -> Result<Vec<Vec<Vec<Page>>>, Error> {
    let mut groups = Vec::new();
    for group in metadata.row_groups() {
        let mut chunks = Vec::new();
        for chunk in group.columns() {
            let pages = walk_chunk(source, chunk, group.num_rows())?;
            let encodings = pages.iter().filter_map(|page| page.data.as_ref()).map(|data| data.encoding);
            if encodings.into_iter().any(|e| matches!(e, DELTA_LENGTH_BYTE_ARRAY | DELTA_BYTE_ARRAY)) {
                let pages = SerializedPageReader::new(Arc::new(source.clone()), chunk, 0, None);
                for page in pages.map_err(failed)? {
                    check_lengths(&page.map_err(failed)?, chunk)?;
                }
            }
            chunks.push(pages);
        }
        groups.push(chunks);
    }
    Ok(groups)
}

fn walk_chunk<T: ChunkReader>(
    source: &T,
    chunk: &ColumnChunkMetaData,
    rows: i64,
) -> Result<Vec<Page>, Error> {
    let cut = || wrong("a page lies behind the end of its column");
    let (mut at, length) = chunk.byte_range();
    let end = at.checked_add(length).filter(|&end| end <= source.len()).ok_or_else(cut)?;
    let flat = chunk.column_descr().max_rep_level() == 0;
    let mut pages = Vec::new();
    let mut n_values = 0;
    while at < end {
        let mut bytes = Compact { from: source.get_read(at).map_err(failed)?.take(end - at) };
        let mut page = bytes.page().map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => wrong("the header of a page is none"),
            io::ErrorKind::UnexpectedEof => cut(),
            _ => Error::Read(error),
        })?;
        page.at = end - bytes.from.limit();
        at = page.at.checked_add(page.compressed).filter(|&next| next <= end).ok_or_else(cut)?;
        let size = page.size(chunk.compression())?;
        if let Some(dictionary) = &page.dictionary
            && dictionary.values > most_values(chunk, size)
        {
            return Err(wrong("a dictionary claims more values than its bytes can hold"));
        }
        let values = page.data.as_ref().map_or(0, |data| data.values);
        n_values += values;
        // Gaps and repeated values take no bytes, so that these bound what a page may claim only in
        // columns of lists, whose cells have no limit but this.
        let most = if flat { rows.unsigned_abs() } else { LIST_VALUES.saturating_add(8 * size) };
        if (if flat { n_values } else { values }) > most {
            return Err(wrong("a page claims more values than its column has"));
        }
        pages.push(page);
    }
    if flat && n_values < rows.unsigned_abs() {
        return Err(wrong("it has fewer rows than it claims"));
    }
    Ok(pages)
}

/// Lists of lengths are decoded whole, and one of equal lengths takes no bytes for them.
fn check_lengths(page: &page::Page, chunk: &ColumnChunkMetaData) -> Result<(), Error> {
    let none = || wrong("a list of lengths of text is none");
    let values = match page {
        page::Page::DictionaryPage { .. } => return Ok(()),
        page::Page::DataPage { buf, num_values, def_level_encoding, rep_level_encoding, .. } => {
            let descr = chunk.column_descr();
            let mut rest = &buf[..];
            for (most, encoding) in
                [(descr.max_rep_level(), rep_level_encoding), (descr.max_def_level(), def_level_encoding)]
            {
                let skip = match (most, encoding) {
                    (..=0, _) => 0,
                    (_, Encoding::RLE) => {
                        let length = rest.first_chunk().map(|&bytes| u32::from_le_bytes(bytes));
                        length.ok_or_else(none)? as usize + 4
                    }
                    _ => {
                        let bits = (i16::BITS - most.leading_zeros()) as usize;
                        (*num_values as usize * bits).div_ceil(8)
                    }
                };
                rest = rest.get(skip..).ok_or_else(none)?;
            }
            rest
        }
        page::Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
            let levels = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
            buf.get(levels..).ok_or_else(none)?
        }
    };
    let n_lists = match page.encoding() {
        Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
        Encoding::DELTA_BYTE_ARRAY => 2, // of beginnings shared with the value before, of the rest
        _ => 0,
    };
    let mut from = Compact { from: values };
    (0..n_lists).try_for_each(|_| from.pass_differences(u64::from(page.num_values()))).map_err(|_| none())
}

/// Values that a page of lists may claim however short it is.
const LIST_VALUES: u64 = 1 << 24;

/// How the format numbers kinds of pages and encodings.
pub(super) const DATA_PAGE: u64 = 0;
pub(super) const INDEX_PAGE: u64 = 1;
pub(super) const DICTIONARY_PAGE: u64 = 2;
pub(super) const DATA_PAGE_V2: u64 = 3;
pub(super) const PLAIN: u64 = 0;
pub(super) const PLAIN_DICTIONARY: u64 = 2;
pub(super) const RLE: u64 = 3;
pub(super) const RLE_DICTIONARY: u64 = 8;
const DELTA_LENGTH_BYTE_ARRAY: u64 = 6;
const DELTA_BYTE_ARRAY: u64 = 7;

/// How many values a dictionary of this many bytes can hold at most. It is a list of plain values.
fn most_values(chunk: &ColumnChunkMetaData, size: u64) -> u64 {
    match chunk.column_type() {
        Type::BOOLEAN => 8 * size,
        Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => size / 4, // text begins by its length
        Type::INT64 | Type::DOUBLE => size / 8,
        Type::INT96 => size / 12,
        Type::FIXED_LEN_BYTE_ARRAY => {
            size / u64::try_from(chunk.column_descr().type_length()).unwrap_or(1).max(1)
        }
    }
}

/// What the header of a page says.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// Where its bytes begin.
    pub(super) at: u64,
    pub(super) compressed: u64,
    pub(super) uncompressed: u64,
    /// The number that the format gives to its kind.
    pub(super) kind: u64,
    pub(super) dictionary: Option<Held>,
    pub(super) data: Option<Held>,
    /// Of a data page of the second version: its levels are not compressed.
    pub(super) levels: Option<Levels>,
}

/// What a dictionary or a part of a column holds.
#[derive(Debug)]
pub(super) struct Held {
    /// How many, gaps included.
    pub(super) values: u64,
    /// The number that the format gives to their encoding, and to that of the levels that say which
    /// are gaps.
    pub(super) encoding: u64,
    pub(super) gaps_encoding: u64,
}

/// Bytes of levels, and whether the values behind them are not compressed either.
#[derive(Debug, Clone, Copy)]
pub(super) struct Levels {
    pub(super) gaps: u64,
    pub(super) repeats: u64,
    pub(super) stored: bool,
}

impl Page {
    /// Its bytes when it is decompressed.
    fn size(&self, codec: Compression) -> Result<u64, Error> {
        // The most that a codec makes of a byte. Snappy: 64 bytes are copied by 3. LZ4: a byte adds
        // at most 255 to a length. Deflate: 258 bytes by 2 bits. Zstandard: a block of 128 KiB by
        // 4 bytes. Brotli knows no such bound: what real pages reach, and the size they seldom exceed.
        let (ratio, always) = match codec {
            Compression::UNCOMPRESSED => return Ok(self.compressed),
            _ if self.levels.is_some_and(|levels| levels.stored) => return Ok(self.compressed),
            Compression::SNAPPY => (22, 0),
            Compression::LZ4 | Compression::LZ4_RAW => (255, 0),
            Compression::GZIP(_) => (1032, 0),
            Compression::ZSTD(_) => (1 << 15, 0),
            Compression::BROTLI(_) | Compression::LZO => (1 << 12, 1 << 24),
        };
        if self.uncompressed > (self.compressed * ratio).max(always) {
            return Err(wrong("a page claims to be larger than its bytes can make it"));
        }
        Ok(self.uncompressed)
    }
}

/// Thrift's compact protocol, in which headers of pages are written. Stricter than the decoder: a
/// header that two readers could take in two ways is none.
struct Compact<R> {
    from: R,
}

/// The types of fields.
mod kind {
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I32: u8 = 5;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const STRUCT: u8 = 12;
}

impl<R: Read> Compact<R> {
    fn page(&mut self) -> io::Result<Page> {
        const DATA: u64 = 5;
        const SECOND_VERSION: u64 = 8;
        let mut page = Page::default();
        let (mut last, mut seen) = (0, 0_u32);
        while let Some((id, kind)) = self.field(&mut last)? {
            match (id, kind) {
                (1, kind::I32) => page.kind = self.size()?,
                (2, kind::I32) => page.uncompressed = self.size()?,
                (3, kind::I32) => page.compressed = self.size()?,
                (DATA, kind::STRUCT) => {
                    let ([values, encoding, gaps_encoding, ..], _) = self.inner()?;
                    page.data = Some(Held { values, encoding, gaps_encoding });
                }
                (7, kind::STRUCT) => {
                    let ([values, encoding, ..], _) = self.inner()?;
                    page.dictionary = Some(Held { values, encoding, gaps_encoding: 0 });
                }
                (SECOND_VERSION, kind::STRUCT) if page.data.is_none() => {
                    let ([values, _, _, encoding, gaps, repeats], stored) = self.inner()?;
                    page.data = Some(Held { values, encoding, gaps_encoding: RLE });
                    page.levels = Some(Levels { gaps, repeats, stored });
                }
                (1..=3 | DATA | 7 | SECOND_VERSION, _) => return Err(io::ErrorKind::InvalidData.into()),
                _ => self.skip(kind, 0)?,
            }
            seen |= 1 << id.min(31);
        }
        if seen & 0b1110 == 0b1110 { Ok(page) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// The header of a kind of page: its first six fields, which are sizes where they are there, and
    /// whether its seventh says that its values are not compressed.
    fn inner(&mut self) -> io::Result<([u64; 6], bool)> {
        let (mut last, mut sizes, mut stored) = (0, [0; 6], false);
        while let Some((id, kind)) = self.field(&mut last)? {
            match (usize::try_from(id), kind) {
                (Ok(field @ 1..=6), kind::I32) => sizes[field - 1] = self.size()?,
                (Ok(1), _) => return Err(io::ErrorKind::InvalidData.into()),
                (Ok(7), kind::TRUE | kind::FALSE) => stored = kind == kind::FALSE,
                _ => self.skip(kind, 0)?,
            }
        }
        Ok((sizes, stored))
    }

    /// Passes over a list of at most this many numbers, given by their differences in blocks.
    fn pass_differences(&mut self, most: u64) -> io::Result<()> {
        const LARGEST_BLOCK: u64 = 1 << 16; // of writers known to us: 2048
        let (block, minis, n) = (self.varint()?, self.varint()?, self.varint()?);
        if n > most || block > LARGEST_BLOCK || minis == 0 || minis > block {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.varint()?; // the first
        let mut left = n.saturating_sub(1);
        while left > 0 {
            self.varint()?; // the smallest difference
            let mut widths = vec![0; usize::try_from(minis).expect("less than a block")];
            self.from.read_exact(&mut widths)?;
            for width in widths {
                if left > 0 {
                    self.pass(u64::from(width) * (block / minis) / 8)?;
                }
                left = left.saturating_sub(block / minis);
            }
        }
        Ok(())
    }

    /// The next field, or the end of its struct. Fields are in order and none comes twice.
    fn field(&mut self, last: &mut u64) -> io::Result<Option<(u64, u8)>> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        let id = if head >> 4 == 0 { self.size()? } else { *last + u64::from(head >> 4) };
        if id <= *last || id > u64::from(i16::MAX.unsigned_abs()) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        *last = id;
        Ok(Some((id, head & 15)))
    }

    fn skip(&mut self, kind: u8, depth: usize) -> io::Result<()> {
        const DEEPEST: usize = 8; // statistics of a page are at depth 1
        match kind {
            kind::TRUE | kind::FALSE => Ok(()),
            kind::BYTE => self.byte().map(drop),
            kind::I16 | kind::I32 | kind::I64 => self.varint().map(drop),
            kind::DOUBLE => self.pass(8),
            kind::BINARY => {
                let length = self.varint()?;
                self.pass(length)
            }
            kind::LIST | kind::SET if depth < DEEPEST => {
                let head = self.byte()?;
                let n = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                let kind = if head & 15 <= kind::FALSE { kind::BYTE } else { head & 15 };
                (0..n).try_for_each(|_| self.skip(kind, depth + 1))
            }
            kind::STRUCT if depth < DEEPEST => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip(kind, depth + 1)?;
                }
                Ok(())
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.from.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn pass(&mut self, length: u64) -> io::Result<()> {
        let passed = io::copy(&mut self.from.by_ref().take(length), &mut io::sink())?;
        if passed == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    /// A signed number that is a size: 31 bits, none below zero.
    fn size(&mut self) -> io::Result<u64> {
        let zigzag = self.varint()?;
        if zigzag & 1 == 0 && zigzag >> 32 == 0 {
            Ok(zigzag >> 1)
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }
}
