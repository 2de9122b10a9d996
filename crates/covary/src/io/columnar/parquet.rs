//! Apache Parquet.

use super::{BATCH, Column, Part, Plan, damaged, guarded, place};
use crate::io::error::shown;
use crate::io::{Error, Input, ReadOptions, Table};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter, ProjectionMask};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{ChunkReader, Length};
use rayon::prelude::*;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

const FORMAT: &str = "Parquet";
/// Rows decoded at once: a column's part and its place in the rows stay in a thread's cache.
const ROWS: usize = if cfg!(test) { 8 } else { 1 << 13 };

pub(in crate::io) fn read<R: Read>(
    input: Input<R>,
    gzip: bool,
    options: &ReadOptions,
) -> Result<Table, Error> {
    match input {
        Input::File(file) if !gzip && file.metadata().is_ok_and(|m| m.is_file()) => {
            let length = file.metadata().map_err(Error::Read)?.len();
            let file = Arc::new(Mutex::new(file));
            guarded(FORMAT, || read_from(&SharedFile { file, length }, options))
        }
        other => {
            let bytes = Bytes::from(crate::io::bytes(other, gzip)?);
            guarded(FORMAT, || read_from(&bytes, options))
        }
    }
}

/// Reads band after band of columns: each band's columns are decoded by all threads, a batch of rows
/// at a time, and put into their place. Only the pages of one band are in memory besides the numbers.
fn read_from<T: ChunkReader + Clone + 'static>(source: &T, options: &ReadOptions) -> Result<Table, Error> {
    check_magic(source)?;
    let metadata = ArrowReaderMetadata::load(source, ArrowReaderOptions::new()).map_err(failed)?;
    let plan = Plan::new(metadata.schema(), options)?;
    let claimed = metadata.metadata().row_groups().iter().map(|g| usize::try_from(g.num_rows()).ok());
    let claimed = claimed.sum::<Option<usize>>();
    let n = claimed.ok_or_else(|| wrong("it claims less than no rows"))?;
    let d = plan.n_numbers();
    let mut values = zeros(n, d)?;
    let mut ends = Vec::new();
    let mut parts: Vec<Vec<Part>> = vec![Vec::new(); plan.names.len()];
    for band in bands(plan.names.len(), n) {
        let mut readers = readers(source, &metadata, band.clone())?;
        let mut batch = 0;
        loop {
            // Every reader gives the same rows of its own columns.
            let decoded: Vec<(usize, Vec<Column>)> =
                readers.par_iter_mut().map(|reader| reader.next(&plan)).collect::<Result<_, Error>>()?;
            let rows = decoded[0].0;
            let start = if batch == 0 { 0 } else { ends[batch - 1] };
            if decoded.iter().any(|(other, _)| *other != rows) || rows > n - start {
                return Err(wrong("its columns differ in length"));
            }
            if rows == 0 {
                break;
            }
            let columns: Vec<Column> = decoded.into_iter().flat_map(|(_, columns)| columns).collect();
            if ends.len() == batch {
                ends.push(start + rows);
            }
            place(&mut values[start * d..(start + rows) * d], d, columns.iter());
            for (j, column) in band.clone().zip(columns) {
                parts[j].push(column.part);
            }
            batch += 1;
        }
        if batch != ends.len() || ends.last().is_some_and(|&end| end != n) {
            return Err(wrong("it has fewer rows than it claims"));
        }
    }
    plan.table(values, ends, parts)
}

/// Columns to be read at once: few enough that their pages and batches are small beside the table,
/// enough to share among threads.
fn bands(columns: usize, rows: usize) -> impl Iterator<Item = Range<usize>> {
    /// Cells of the pages of a band: a page of eight-byte numbers seldom has more than 2¹⁷.
    const CELLS: usize = 1 << 21;
    const PAGE: usize = 1 << 17;
    let width = if cfg!(test) { 3 } else { (CELLS / rows.clamp(1, PAGE)).max(1) };
    (0..columns.div_ceil(width)).map(move |b| b * width..columns.min((b + 1) * width))
}

/// A decoder of some columns.
struct ColumnReader {
    first: usize,
    batches: ParquetRecordBatchReader,
}

/// A decoder for each thread.
fn readers<T: ChunkReader + Clone + 'static>(
    source: &T,
    metadata: &ArrowReaderMetadata,
    band: Range<usize>,
) -> Result<Vec<ColumnReader>, Error> {
    let each = band.len().div_ceil(4 * rayon::current_num_threads());
    let build = |first: usize| {
        let columns = first..band.end.min(first + each);
        let mask = ProjectionMask::roots(metadata.parquet_schema(), columns);
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(source.clone(), metadata.clone());
        let batches = builder.with_projection(mask).with_batch_size(ROWS).build().map_err(failed)?;
        Ok(ColumnReader { first, batches })
    };
    band.clone().step_by(each).map(build).collect()
}

impl ColumnReader {
    /// How many rows come next, and their columns; none at the end.
    fn next(&mut self, plan: &Plan) -> Result<(usize, Vec<Column>), Error> {
        let Some(batch) = self.batches.next() else { return Ok((0, Vec::new())) };
        let batch = batch.map_err(|e| damaged(FORMAT, e))?;
        let columns = batch.columns().iter().enumerate();
        Ok((batch.num_rows(), columns.map(|(j, array)| plan.column(self.first + j, array)).collect()))
    }
}

/// Zeros for the rows that the file claims. The pages of memory behind them are only taken as rows
/// are decoded, so that a false claim costs an address and no memory.
fn zeros(rows: usize, columns: usize) -> Result<Vec<f64>, Error> {
    let too_large = || Error::TooLarge { rows, columns };
    let cells = rows.checked_mul(columns).ok_or_else(too_large)?;
    // `vec!` asks the system for zeros but cannot fail: the same is asked for first in a way that can.
    Vec::<f64>::new().try_reserve_exact(cells).map_err(|_| too_large())?;
    Ok(vec![0.0; cells])
}

/// The file begins and ends by the same word.
fn check_magic<T: ChunkReader>(source: &T) -> Result<(), Error> {
    const LENGTH: usize = 4;
    let length = source.len();
    if length < 2 * LENGTH as u64 {
        return Err(Error::NotOfFormat { format: FORMAT });
    }
    let word = |at| source.get_bytes(at, LENGTH).map_err(failed);
    match (&*word(0)?, &*word(length - LENGTH as u64)?) {
        (b"PAR1", b"PAR1") => Ok(()),
        (b"PARE", _) | (_, b"PARE") => {
            Err(Error::Unsupported { format: FORMAT, what: "encryption".to_owned() })
        }
        (b"PAR1", _) => Err(Error::CutShort { format: FORMAT }),
        _ => Err(Error::NotOfFormat { format: FORMAT }),
    }
}

fn wrong(why: &str) -> Error {
    Error::Damaged { format: FORMAT, why: why.to_owned() }
}

fn failed(error: ParquetError) -> Error {
    match error {
        ParquetError::NYI(what) => Error::Unsupported { format: FORMAT, what },
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            Ok(error) => Error::Read(*error),
            Err(other) => wrong(&shown(other.to_string().as_bytes())),
        },
        other => wrong(&shown(other.to_string().as_bytes())),
    }
}

/// A file read by several threads. (`File` itself is a source too, but its copies share one position.)
#[derive(Clone)]
struct SharedFile {
    file: Arc<Mutex<File>>,
    length: u64,
}

impl SharedFile {
    fn at(&self, position: u64) -> std::io::Result<MutexGuard<'_, File>> {
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.seek(SeekFrom::Start(position))?;
        Ok(file)
    }
}

impl Length for SharedFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for SharedFile {
    type T = BufReader<FromPosition>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        // Page headers are read this way; they are short.
        Ok(BufReader::with_capacity(1 << 10, FromPosition { file: self.clone(), position: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let end = start.checked_add(length as u64);
        if end.is_none_or(|end| end > self.length) {
            return Err(ParquetError::EOF("a page lies behind the end of the file".to_owned()));
        }
        let mut bytes = Vec::with_capacity(length);
        if (&mut *self.at(start)?).take(length as u64).read_to_end(&mut bytes)? < length {
            return Err(ParquetError::EOF("the file became shorter".to_owned()));
        }
        Ok(bytes.into())
    }
}

/// A file from a position of its own on.
struct FromPosition {
    file: SharedFile,
    position: u64,
}

impl Read for FromPosition {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.at(self.position)?.read(to)?;
        self.position += read as u64;
        Ok(read)
    }
}

/// Writes the same bytes for the same columns: no time, no version. Snappy, because every reader of
/// Parquet knows it and noisy numbers, which is what most tables hold, hardly shrink under stronger
/// codecs.
pub(super) fn write(
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch, Error>>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    /// A row group is in memory, encoded, until it is whole.
    const ROW_GROUP: usize = 2 * BATCH;
    for field in schema.fields() {
        let alone = arrow_schema::Schema::new(vec![field.clone()]);
        ArrowSchemaConverter::new().convert(&alone).map_err(|_| Error::CannotHold {
            column: field.name().clone(),
            kind: super::kind_of(field.data_type()),
            format: FORMAT,
            remedy: "write .arrow",
        })?;
    }
    let metadata: Vec<KeyValue> =
        schema.metadata().iter().map(|(k, v)| KeyValue::new(k.clone(), v.clone())).collect();
    let properties = WriterProperties::builder()
        .set_created_by("covary".to_owned())
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_key_value_metadata((!metadata.is_empty()).then_some(metadata))
        .build();
    let unwritten = |e: ParquetError| Error::Write(std::io::Error::other(e));
    // The writer wants to own what it writes to and to move between threads: it gets a buffer, which
    // is emptied into `out` after every batch.
    let mut writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties)).map_err(unwritten)?;
    for batch in batches {
        writer.write(&batch?).map_err(unwritten)?;
        let buffer = writer.inner_mut();
        out.write_all(buffer).map_err(Error::Write)?;
        buffer.clear();
    }
    out.write_all(&writer.into_inner().map_err(unwritten)?).map_err(Error::Write)
}
