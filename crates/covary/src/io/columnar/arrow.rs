//! Apache Arrow IPC. The stream form is read message by message. The file form is read through the
//! index at its end: a file need not hold a stream, and some writers (Polars) put something else before
//! the first batch.

use super::{Column, Part, Plan, damaged, place};
use crate::io::guarded;
use crate::io::{Error, Input, ReadOptions, Table};
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{FileDecoder, StreamDecoder};
use arrow_ipc::writer::FileWriter;
use arrow_ipc::{Block, MessageHeader, root_as_footer, root_as_message};
use arrow_schema::{ArrowError, SchemaRef};
use rayon::prelude::*;
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;

const FORMAT: &str = "Arrow";
const MAGIC: &[u8] = b"ARROW1";
/// The magic word at the start, padded.
const OPENING: u64 = 8;
/// The length of the index and the magic word, at the end.
const CLOSING: u64 = 10;
/// Before a message since version 0.15 of the format.
const CONTINUATION: [u8; 4] = [0xff; 4];

pub(in crate::io) fn read<R: Read>(
    input: Input<R>,
    gzip: bool,
    options: &ReadOptions,
) -> Result<Table, Error> {
    match input {
        Input::File(file) if !gzip && file.metadata().is_ok_and(|m| m.is_file()) => {
            let length = file.metadata().map_err(Error::Read)?.len();
            read_from(file, options, |_, file| Ok(Source::File { file, length }))
        }
        Input::File(file) => read_stream(file, gzip, options),
        Input::Stream(stream) => read_stream(stream, gzip, options),
    }
}

fn read_stream(from: impl Read, gzip: bool, options: &ReadOptions) -> Result<Table, Error> {
    if gzip {
        let from = flate2::read::MultiGzDecoder::new(from);
        read_from(from, options, |ahead, from| Source::in_memory(ahead, from, options))
    } else {
        read_from(from, options, |ahead, from| Source::in_memory(ahead, from, options))
    }
}

/// Reads either form; `source` makes one of the file form of its first bytes and the rest.
fn read_from<R: Read>(
    mut from: R,
    options: &ReadOptions,
    source: impl FnOnce(Vec<u8>, R) -> Result<Source, Error>,
) -> Result<Table, Error> {
    let mut ahead = Vec::new();
    from.by_ref().take(OPENING).read_to_end(&mut ahead).map_err(Error::Read)?;
    if ahead.starts_with(MAGIC) {
        let source = source(ahead, from)?;
        guarded(FORMAT, || source.table(options))
    } else if ahead.starts_with(b"FEA1") {
        Err(Error::Unsupported { format: FORMAT, what: "version 1 of Feather".to_owned() })
    } else if ahead.starts_with(&CONTINUATION) {
        guarded(FORMAT, || Messages { from: BufReader::new(from), ahead }.table(options))
    } else {
        Err(Error::NotOfFormat { format: FORMAT })
    }
}

/// The file form.
enum Source {
    /// Batches are read from it one by one.
    File {
        file: File,
        length: u64,
    },
    Memory(Buffer),
}

impl Source {
    fn in_memory(ahead: Vec<u8>, from: impl Read, options: &ReadOptions) -> Result<Self, Error> {
        let mut bytes = ahead;
        let most = options.max_memory.unwrap_or(u64::MAX - 1);
        from.take(most + 1).read_to_end(&mut bytes).map_err(Error::Read)?;
        options.allow(bytes.len() as u64)?;
        Ok(Self::Memory(Buffer::from(bytes)))
    }

    fn length(&self) -> u64 {
        match self {
            Self::File { length, .. } => *length,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Some of the bytes, which must be there.
    fn bytes(&self, range: &Range<u64>) -> Result<Buffer, Error> {
        let length = (range.end - range.start) as usize;
        match self {
            Self::Memory(bytes) => Ok(bytes.slice_with_length(range.start as usize, length)),
            Self::File { file, .. } => {
                let mut file = file;
                file.seek(SeekFrom::Start(range.start)).map_err(Error::Read)?;
                let mut bytes = Vec::new();
                let _ = bytes.try_reserve_exact(length);
                file.take(length as u64).read_to_end(&mut bytes).map_err(Error::Read)?;
                if bytes.len() == length { Ok(bytes.into()) } else { Err(Error::CutShort { format: FORMAT }) }
            }
        }
    }

    fn table(&self, options: &ReadOptions) -> Result<Table, Error> {
        let cut = || Error::CutShort { format: FORMAT };
        let end = self.length().checked_sub(CLOSING).filter(|end| *end >= OPENING).ok_or_else(cut)?;
        let closing = self.bytes(&(end..end + CLOSING))?;
        let length = closing.strip_suffix(MAGIC).and_then(|l| l.first_chunk::<4>()).ok_or_else(cut)?;
        let length = u64::try_from(i32::from_le_bytes(*length)).ok();
        let start = length.and_then(|length| end.checked_sub(length)).filter(|start| *start >= OPENING);
        let start = start.ok_or_else(|| wrong("its index lies outside the file"))?;
        // A copy, for what is read in place must be aligned.
        let index = self.bytes(&(start..end))?.to_vec();
        let index = root_as_footer(&index).map_err(|_| wrong("its index cannot be read"))?;
        let schema = index.schema().ok_or_else(|| wrong("its index lacks a schema"))?;
        if !schema.endianness().equals_to_target_endianness() {
            let what = "the byte order of another kind of machine".to_owned();
            return Err(Error::Unsupported { format: FORMAT, what });
        }
        let schema = Arc::new(try_fb_to_schema(schema).map_err(|e| damaged(FORMAT, e))?);
        let mut gathered = Gathered::new(Plan::new(&schema, options)?, options);
        let mut decoder = FileDecoder::new(schema, index.version());
        let mut blocks = Blocks { source: self, within: OPENING..start, left: start - OPENING };
        let mut known = HashSet::new();
        for block in index.dictionaries().into_iter().flatten() {
            let bytes = blocks.next(block)?;
            // All dictionaries come before all batches, so that only additions to one make sense.
            if bytes.dictionary.is_some_and(|id| !known.insert(id)) {
                return Err(wrong("it has two dictionaries for one column"));
            }
            decoder.read_dictionary(block, &bytes.message).map_err(|e| damaged(FORMAT, e))?;
        }
        for block in index.recordBatches().into_iter().flatten() {
            let bytes = blocks.next(block)?;
            let batch = decoder.read_record_batch(block, &bytes.message).map_err(|e| damaged(FORMAT, e))?;
            if let Some(batch) = batch {
                gathered.add(&batch)?;
            }
        }
        gathered.table()
    }
}

/// The messages that an index points at.
struct Blocks<'a> {
    source: &'a Source,
    within: Range<u64>,
    /// Bytes that blocks may still take: those that overlap could make much of little.
    left: u64,
}

/// A message that was checked.
struct Checked {
    message: Buffer,
    /// Whose values it sets, if it is a dictionary and no addition to one.
    dictionary: Option<i64>,
}

impl Blocks<'_> {
    fn next(&mut self, block: &Block) -> Result<Checked, Error> {
        let outside = || wrong("a message lies outside the file");
        let sizes = (u64::try_from(block.offset()), u64::try_from(block.metaDataLength()));
        let (Ok(start), Ok(head)) = sizes else { return Err(outside()) };
        let body = u64::try_from(block.bodyLength()).map_err(|_| outside())?;
        let length = head.checked_add(body).ok_or_else(outside)?;
        let end = start.checked_add(length).ok_or_else(outside)?;
        if start < self.within.start || end > self.within.end {
            return Err(outside());
        }
        self.left = self.left.checked_sub(length).ok_or_else(|| wrong("its messages overlap"))?;
        let message = self.source.bytes(&(start..end))?;
        let (head, body) = message.split_at(head as usize);
        let skip = if head.starts_with(&CONTINUATION) { 8 } else { 4 };
        let head = head.get(skip..).ok_or_else(|| wrong("a message does not begin as one"))?;
        if check(head, Some(body))? > body.len() {
            return Err(wrong("a message is longer than its place"));
        }
        let head = root_as_message(head).map_err(|_| wrong("a message cannot be read"))?;
        let dictionary = head.header_as_dictionary_batch().filter(|d| !d.isDelta()).map(|d| d.id());
        Ok(Checked { message, dictionary })
    }
}

/// The stream form.
struct Messages<R> {
    from: R,
    /// The first bytes.
    ahead: Vec<u8>,
}

impl<R: Read> Messages<R> {
    /// Appends the next `n` bytes; memory grows with what is there, not with what is claimed.
    fn take(&mut self, n: usize, to: &mut Vec<u8>) -> Result<(), Error> {
        let ahead = n.min(self.ahead.len());
        to.extend(self.ahead.drain(..ahead));
        let rest = (n - ahead) as u64;
        let got = self.from.by_ref().take(rest).read_to_end(to).map_err(Error::Read)?;
        if got as u64 == rest { Ok(()) } else { Err(Error::CutShort { format: FORMAT }) }
    }

    /// The next message: its length, its description, its body. Empty at the end.
    fn next(&mut self) -> Result<Vec<u8>, Error> {
        let mut message = Vec::new();
        if let Err(error) = self.take(8, &mut message) {
            // A stream may simply end.
            return if message.is_empty() { Ok(message) } else { Err(error) };
        }
        let (marker, length) = message.split_at(4);
        let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        if marker != CONTINUATION {
            return Err(wrong("a message does not begin as one"));
        }
        if length == 0 {
            return Ok(Vec::new());
        }
        self.take(length, &mut message)?;
        let body = check(&message[8..], None)?;
        let start = message.len();
        // The size is claimed; a reserve that is not written to costs nothing.
        let _ = message.try_reserve_exact(body.min(1 << 30));
        self.take(body, &mut message)?;
        check(&message[8..start], Some(&message[start..]))?;
        Ok(message)
    }

    fn table(mut self, options: &ReadOptions) -> Result<Table, Error> {
        let mut decoder = StreamDecoder::new();
        let mut gathered: Option<Gathered<'_>> = None;
        loop {
            let mut message = self.next()?;
            let end = message.is_empty();
            if end {
                // The decoder acts on a message without a body when it sees what follows.
                message = [CONTINUATION, [0; 4]].concat();
            }
            let mut message = Buffer::from(message);
            while !message.is_empty() {
                let batch = decoder.decode(&mut message).map_err(|e| damaged(FORMAT, e))?;
                if let Some(schema) = decoder.schema().filter(|_| gathered.is_none()) {
                    gathered = Some(Gathered::new(Plan::new(&schema, options)?, options));
                }
                if let (Some(batch), Some(gathered)) = (batch, &mut gathered) {
                    gathered.add(&batch)?;
                }
            }
            if end {
                break;
            }
        }
        gathered.ok_or(Error::CutShort { format: FORMAT })?.table()
    }
}

/// What was read so far.
struct Gathered<'a> {
    options: &'a ReadOptions,
    plan: Plan,
    values: Vec<f64>,
    ends: Vec<usize>,
    parts: Vec<Vec<Part>>,
}

impl<'a> Gathered<'a> {
    fn new(plan: Plan, options: &'a ReadOptions) -> Self {
        let parts = vec![Vec::new(); plan.names.len()];
        Self { options, plan, values: Vec::new(), ends: Vec::new(), parts }
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let (rows, d) = (batch.num_rows(), self.plan.n_numbers());
        if rows == 0 {
            return Ok(());
        }
        let start = self.values.len();
        let before = self.ends.last().copied().unwrap_or(0);
        let too_large = |_| Error::TooLarge { rows: before + rows, columns: d };
        let more = rows.saturating_mul(d);
        self.options.allow((start.saturating_add(more) as u64).saturating_mul(16))?;
        self.values.try_reserve(more).map_err(too_large)?;
        self.values.resize(start + more, 0.0);
        let columns: Vec<Column> =
            batch.columns().par_iter().enumerate().map(|(j, array)| self.plan.column(j, array)).collect();
        place(&mut self.values[start..], d, columns.iter());
        for (parts, column) in self.parts.iter_mut().zip(columns) {
            parts.push(column.part);
        }
        self.ends.push(before + rows);
        Ok(())
    }

    fn table(self) -> Result<Table, Error> {
        self.plan.table(self.values, self.ends, self.parts)
    }
}

/// Checks what a message claims, and returns the length of its body. The decoder reserves what a
/// compressed buffer says it will grow to, and an absurd claim would end the program.
fn check(message: &[u8], body: Option<&[u8]>) -> Result<usize, Error> {
    /// No codec of the format packs tighter: zstd repeats 128 kB by four bytes.
    const TIGHTEST: u64 = 1 << 15;
    let message = root_as_message(message).map_err(|_| wrong("a message cannot be read"))?;
    let length = usize::try_from(message.bodyLength());
    let length = length.map_err(|_| wrong("a message has a negative length"))?;
    let batch = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        MessageHeader::DictionaryBatch => message.header_as_dictionary_batch().and_then(|d| d.data()),
        _ => None,
    };
    if let (Some(body), Some(batch)) = (body, batch)
        && batch.compression().is_some()
    {
        for buffer in batch.buffers().into_iter().flatten() {
            let range = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
            let bytes = range.and_then(|(from, length)| body.get(from..from.checked_add(length)?));
            let bytes = bytes.ok_or_else(|| wrong("a buffer lies outside its message"))?;
            let Some(claimed) = bytes.first_chunk::<8>() else { continue };
            let claimed = i64::from_le_bytes(*claimed);
            if u64::try_from(claimed).is_ok_and(|claimed| claimed / TIGHTEST > bytes.len() as u64) {
                return Err(wrong(&format!("a buffer claims {claimed} bytes")));
            }
        }
    }
    Ok(length)
}

fn wrong(why: &str) -> Error {
    Error::Damaged { format: FORMAT, why: why.to_owned() }
}

/// Writes the file form, which every reader of Arrow knows.
pub(super) fn write(
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch, Error>>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let failed = |error: ArrowError| match error {
        ArrowError::IoError(_, error) => Error::Write(error),
        other => Error::Write(std::io::Error::other(other)),
    };
    let mut writer = FileWriter::try_new(out, schema).map_err(failed)?;
    for batch in batches {
        writer.write(&batch?).map_err(failed)?;
    }
    writer.finish().map_err(failed)
}
