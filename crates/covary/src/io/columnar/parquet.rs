//! Apache Parquet.

use super::flat::{self, Flat, Pool, Seen, Source};
use super::pages::{self, Page};
use super::{BATCH, Column, Part, Plan, damaged, place};
use crate::io::blocks::{Block, PAGE_STEP};
use crate::io::columns::Role;
use crate::io::error::shown;
use crate::io::guarded;
use crate::io::{ColumnKind, Error, Input, ReadOptions, Table};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter, ProjectionMask};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{ChunkReader, Length};
use rayon::prelude::*;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::sync::Arc;

const FORMAT: &str = "Parquet";
/// Rows decoded at once: a column's part and its place in the rows stay in a thread's cache.
const ROWS: usize = if cfg!(test) { 8 } else { 1 << 12 };

pub(in crate::io) fn read<R: Read>(
    input: Input<R>,
    gzip: bool,
    options: &ReadOptions,
) -> Result<Table, Error> {
    match input {
        Input::File(file) if !gzip && file.metadata().is_ok_and(|m| m.is_file()) => {
            let file = SharedFile::new(file)?;
            guarded(FORMAT, || read_from(&file, options))
        }
        other => {
            let bytes = Bytes::from(crate::io::bytes(other, gzip, options.max_memory)?);
            guarded(FORMAT, || read_from(&bytes, options))
        }
    }
}

/// Reads plain numbers straight into the rows, and then all other columns through arrays.
fn read_from<S: Source>(source: &S, options: &ReadOptions) -> Result<Table, Error> {
    check_magic(source)?;
    let metadata = ArrowReaderMetadata::load(source, ArrowReaderOptions::new()).map_err(failed)?;
    let plan = Plan::new(metadata.schema(), options)?;
    let n = claimed_rows(&metadata)?;
    let pages = pages::walk(source, metadata.metadata())?;
    let d = plan.n_numbers();
    options.allow((n as u64).saturating_mul(16 * d as u64))?;
    let mut values = zeros(n, d)?;
    let ends: Vec<usize> = (1..=n.div_ceil(ROWS)).map(|batch| n.min(batch * ROWS)).collect();
    let mut parts: Vec<Vec<Part>> = vec![Vec::new(); plan.names.len()];

    let mut flat = flat_columns(&plan, metadata.metadata(), &pages);
    let seen = flat::read(source, &mut flat, &mut values, d, ROWS)?;
    for (column, seen) in flat.iter().zip(seen) {
        // A column that the dataset does not hold is kept as it came, which takes arrays.
        if !seen.iter().any(|seen| seen.inexact || (seen.null && seen.nan)) {
            let part = |seen: Seen| Part::Numbers { gap: seen.nan.then_some(f64::NAN) };
            parts[column.column] = seen.into_iter().map(part).collect();
        }
    }
    drop(flat);
    let others: Vec<usize> = (0..parts.len()).filter(|&j| parts[j].is_empty()).collect();
    for band in others.chunks(band_width(n)) {
        read_arrays(source, &metadata, &plan, band, &ends, &mut values, &mut parts)?;
    }
    plan.table(values, ends, parts)
}

/// A file that is gone through block by block.
struct Blocks {
    source: SharedFile,
    metadata: ArrowReaderMetadata,
    plan: Plan,
    rows: usize,
}

impl Blocks {
    fn open(file: &File, options: &ReadOptions) -> Result<Self, Error> {
        let source = SharedFile::new(file.try_clone().map_err(Error::Read)?)?;
        guarded(FORMAT, || {
            check_magic(&source)?;
            let metadata = ArrowReaderMetadata::load(&source, ArrowReaderOptions::new()).map_err(failed)?;
            let plan = Plan::new(metadata.schema(), options)?;
            let rows = claimed_rows(&metadata)?;
            Ok(Self { source: source.clone(), metadata, plan, rows })
        })
    }

    fn fill(&self, to: &mut Block<'_>) -> Result<(), Error> {
        let Self { source, metadata, plan, rows } = self;
        let d = plan.n_numbers();
        let pages = guarded(FORMAT, || pages::walk(source, metadata.metadata()))?;
        let mut flat = flat_columns(plan, metadata.metadata(), &pages);
        let is_flat = |j: &usize| flat.iter().any(|column| column.column == *j);
        let numbers = (0..plan.names.len()).filter(|&j| plan.slots[j].is_some());
        let others: Vec<usize> = numbers.filter(|j| !is_flat(j)).collect();
        let mut readers = if others.is_empty() { Vec::new() } else { readers(source, metadata, &others)? };
        let pool = Pool::default();
        // Batches of arrays do not end where blocks do: what is left of one waits.
        let mut waiting = Vec::new();
        let mut first = 0;
        while first < *rows {
            let room = to.room(rows - first)?;
            let n = room.len() / d;
            guarded(FORMAT, || {
                flat::read_rows(source, &pool, &mut flat, first..first + n, room, d)?;
                let mut done = 0;
                while done < n && !readers.is_empty() {
                    if waiting.is_empty() {
                        let read = readers.par_iter_mut().map(|reader| reader.next(plan));
                        let decoded: Vec<(usize, Vec<Column>)> = read.collect::<Result<_, Error>>()?;
                        let batch = decoded[0].0;
                        if batch == 0 || decoded.iter().any(|(rows, _)| *rows != batch) {
                            return Err(wrong("it has fewer rows than it claims"));
                        }
                        waiting = decoded.into_iter().flat_map(|(_, columns)| columns).collect();
                    }
                    done += put_waiting(&mut waiting, &mut room[done * d..], d);
                }
                Ok(())
            })?;
            first += n;
        }
        Ok(())
    }
}

/// Puts as many rows of columns as there is room for, and keeps the others; how many they were.
fn put_waiting(waiting: &mut Vec<Column>, to: &mut [f64], d: usize) -> usize {
    let length = |column: &Column| column.numbers.as_ref().map_or(0, |(_, numbers)| numbers.len());
    let rows = (to.len() / d).min(waiting.iter().map(length).max().unwrap_or(0));
    place(&mut to[..rows * d], d, waiting.iter());
    for (_, numbers) in waiting.iter_mut().filter_map(|column| column.numbers.as_mut()) {
        *numbers = numbers.slice(rows, numbers.len() - rows);
    }
    if waiting.iter().all(|column| length(column) == 0) {
        waiting.clear();
    }
    rows
}

/// The columns of numbers of a file, and how many others there are.
pub(in crate::io) fn numeric_names(
    file: &File,
    options: &ReadOptions,
) -> Result<(Vec<String>, usize), Error> {
    let plan = Blocks::open(file, options)?.plan;
    let asked = plan
        .roles
        .iter()
        .zip(&plan.kinds)
        .position(|(role, kind)| *role == Role::Asked && *kind != ColumnKind::Numbers);
    if let Some(j) = asked {
        let ColumnKind::Typed { name } = &plan.kinds[j] else { return Err(Error::NothingChosen) };
        let (column, kind) = (plan.names[j].clone(), name.clone());
        return Err(Error::NotNumbers { column, kind, first: None });
    }
    let n_aside = plan.names.len() - plan.n_numbers();
    let numbers = plan.names.into_iter().zip(&plan.slots).filter(|(_, slot)| slot.is_some());
    Ok((numbers.map(|(name, _)| name).collect(), n_aside))
}

/// Fills the rows of a file into blocks.
pub(in crate::io) fn fill(file: &File, options: &ReadOptions, to: &mut Block<'_>) -> Result<(), Error> {
    Blocks::open(file, options)?.fill(to)
}

fn claimed_rows(metadata: &ArrowReaderMetadata) -> Result<usize, Error> {
    let claimed = metadata.metadata().row_groups().iter().map(|g| usize::try_from(g.num_rows()).ok());
    claimed.sum::<Option<usize>>().ok_or_else(|| wrong("it claims less than no rows"))
}

/// The columns that are read straight. A number that means a gap is distinguished in arrays.
fn flat_columns<'a>(plan: &Plan, metadata: &ParquetMetaData, pages: &'a [Vec<Vec<Page>>]) -> Vec<Flat<'a>> {
    if !plan.gaps.no_numbers() {
        return Vec::new();
    }
    let fields = plan.schema.fields().iter().zip(&plan.slots).enumerate();
    fields
        .filter_map(|(j, (field, slot))| Flat::new(j, (*slot)?, field.data_type(), metadata, pages))
        .collect()
}

/// Reads a band of columns through arrays: all threads decode a batch of rows at a time, and put it
/// into its place. Only the pages of one band are in memory besides the numbers.
fn read_arrays<S: Source>(
    source: &S,
    metadata: &ArrowReaderMetadata,
    plan: &Plan,
    band: &[usize],
    ends: &[usize],
    values: &mut [f64],
    parts: &mut [Vec<Part>],
) -> Result<(), Error> {
    let d = plan.n_numbers();
    let mut readers = readers(source, metadata, band)?;
    let mut start = 0;
    for &end in ends {
        // Every reader gives the same rows of its own columns.
        let decoded: Vec<(usize, Vec<Column>)> =
            readers.par_iter_mut().map(|reader| reader.next(plan)).collect::<Result<_, Error>>()?;
        if decoded.iter().any(|(rows, _)| *rows != end - start) {
            return Err(wrong("it has fewer rows than it claims"));
        }
        let columns: Vec<Column> = decoded.into_iter().flat_map(|(_, columns)| columns).collect();
        place(&mut values[start * d..end * d], d, columns.iter());
        for (&j, column) in band.iter().zip(columns) {
            parts[j].push(column.part);
        }
        start = end;
    }
    Ok(())
}

/// Columns to be read at once: few enough that their pages and batches are small beside the table,
/// enough to share among threads.
fn band_width(rows: usize) -> usize {
    /// Cells of the pages of a band: a page of eight-byte numbers seldom has more than 2¹⁷.
    const CELLS: usize = 1 << 21;
    const PAGE: usize = 1 << 17;
    if cfg!(test) { 3 } else { (CELLS / rows.clamp(1, PAGE)).max(1) }
}

/// A decoder of some columns.
struct ColumnReader {
    columns: Vec<usize>,
    batches: ParquetRecordBatchReader,
}

/// A decoder for each thread.
fn readers<S: Source>(
    source: &S,
    metadata: &ArrowReaderMetadata,
    band: &[usize],
) -> Result<Vec<ColumnReader>, Error> {
    let build = |columns: &[usize]| {
        let mask = ProjectionMask::roots(metadata.parquet_schema(), columns.iter().copied());
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(source.clone(), metadata.clone());
        let batches = builder.with_projection(mask).with_batch_size(ROWS).build().map_err(failed)?;
        Ok(ColumnReader { columns: columns.to_vec(), batches })
    };
    band.chunks(band.len().div_ceil(4 * rayon::current_num_threads())).map(build).collect()
}

impl ColumnReader {
    /// How many rows come next, and their columns; none at the end.
    fn next(&mut self, plan: &Plan) -> Result<(usize, Vec<Column>), Error> {
        let Some(batch) = self.batches.next() else { return Ok((0, Vec::new())) };
        let batch = batch.map_err(|e| damaged(FORMAT, e))?;
        let columns = self.columns.iter().zip(batch.columns());
        Ok((batch.num_rows(), columns.map(|(&j, array)| plan.column(j, array)).collect()))
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

pub(super) fn wrong(why: &str) -> Error {
    Error::Damaged { format: FORMAT, why: why.to_owned() }
}

pub(super) fn failed(error: ParquetError) -> Error {
    match error {
        ParquetError::NYI(what) => Error::Unsupported { format: FORMAT, what },
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            Ok(error) => Error::Read(*error),
            Err(other) => wrong(&shown(other.to_string().as_bytes())),
        },
        other => wrong(&shown(other.to_string().as_bytes())),
    }
}

/// A file read by several threads, each from places of its own.
#[derive(Clone)]
struct SharedFile {
    file: Arc<File>,
    length: u64,
    /// Held while the file's own position is used.
    #[cfg(not(unix))]
    position: Arc<std::sync::Mutex<()>>,
}

impl SharedFile {
    fn new(file: File) -> Result<Self, Error> {
        let length = file.metadata().map_err(Error::Read)?.len();
        Ok(Self {
            file: Arc::new(file),
            length,
            #[cfg(not(unix))]
            position: Arc::default(),
        })
    }

    #[cfg(unix)]
    fn read_at(&self, at: u64, to: &mut [u8]) -> std::io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&*self.file, to, at)
    }

    #[cfg(not(unix))]
    fn read_at(&self, at: u64, to: &mut [u8]) -> std::io::Result<usize> {
        use std::io::{Seek, SeekFrom};
        let _held = self.position.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(at))?;
        file.read(to)
    }
}

impl Source for SharedFile {
    fn copy(&self, at: u64, to: &mut [u8]) -> Result<(), Error> {
        FromPosition { file: self.clone(), position: at }.read_exact(to).map_err(Error::Read)
    }

    fn look(
        &self,
        at: u64,
        length: usize,
        pool: &Pool,
        then: impl FnOnce(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut buffer = pool.take(length);
        self.copy(at, &mut buffer[..length])?;
        then(&buffer[..length])?;
        pool.give(buffer);
        Ok(())
    }
}

impl Source for Bytes {
    fn copy(&self, at: u64, to: &mut [u8]) -> Result<(), Error> {
        self.look(at, to.len(), &Pool::default(), |bytes| {
            to.copy_from_slice(bytes);
            Ok(())
        })
    }

    fn look(
        &self,
        at: u64,
        length: usize,
        _: &Pool,
        then: impl FnOnce(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..));
        then(rest.and_then(|rest| rest.get(..length)).ok_or(Error::CutShort { format: FORMAT })?)
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
        Ok(BufReader::with_capacity(1 << 8, FromPosition { file: self.clone(), position: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let end = start.checked_add(length as u64);
        if end.is_none_or(|end| end > self.length) {
            return Err(ParquetError::EOF("a page lies behind the end of the file".to_owned()));
        }
        let mut bytes = Vec::with_capacity(length);
        let from = FromPosition { file: self.clone(), position: start };
        if from.take(length as u64).read_to_end(&mut bytes)? < length {
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
        let read = self.file.read_at(self.position, to)?;
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
    /// A row group is in memory, encoded, until it is whole: at most this many rows, and this many cells if that takes no fewer rows than
    /// are between two places where a page may end.
    const ROW_GROUP: usize = 2 * BATCH;
    const CELLS: usize = 1 << 22;
    let fitting = CELLS / schema.fields().len().max(1) / PAGE_STEP * PAGE_STEP;
    for field in schema.fields() {
        let alone = arrow_schema::Schema::new(vec![field.clone()]);
        ArrowSchemaConverter::new().convert(&alone).map_err(|_| Error::CannotHold {
            column: field.name().clone(),
            kind: super::kind_of(field.data_type()),
            format: FORMAT,
            instead: "write .arrow",
            excludable: false,
        })?;
    }
    let metadata: Vec<KeyValue> =
        schema.metadata().iter().map(|(k, v)| KeyValue::new(k.clone(), v.clone())).collect();
    let properties = WriterProperties::builder()
        .set_created_by("covary".to_owned())
        .set_compression(Compression::SNAPPY)
        .set_write_batch_size(PAGE_STEP)
        .set_max_row_group_row_count(Some(ROW_GROUP.min(fitting.max(PAGE_STEP))))
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
