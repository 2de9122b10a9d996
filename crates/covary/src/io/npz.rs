//! NumPy's archives: a zip of arrays, each an `.npy` file of its name.

use super::npy::{self, Header, Source};
use super::sheet::Sheet;
use super::table::Body;
use super::{Error, Input, ReadOptions, Table};
use crate::Matrix;
use std::io::{self, BufReader, Cursor, Read, Seek, Write};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// The array that names the columns.
const NAMES: &str = "columns";
/// The array of a table that came from elsewhere.
const TABLE: &str = "x";

/// What surrounds an array in its archive.
#[derive(Debug, Clone)]
pub(super) struct Archive {
    name: String,
    /// How many other files come before it.
    position: usize,
    method: CompressionMethod,
    /// The other files, an archive of their own.
    others: Vec<u8>,
}

/// Reads the array that `options` name, or the only one that is a table of numbers.
pub(super) fn read<R: Read>(input: Input<R>, gzip: bool, options: &ReadOptions) -> Result<Table, Error> {
    match input {
        // The directory is at the end: what cannot be read in any order is read whole first.
        Input::File(file) if !gzip && file.metadata().is_ok_and(|m| m.is_file()) => {
            read_archive(BufReader::new(file), options)
        }
        input => read_archive(Cursor::new(super::bytes(input, gzip, options.max_memory)?), options),
    }
}

fn read_archive<R: Read + Seek>(mut from: R, options: &ReadOptions) -> Result<Table, Error> {
    let size = from.seek(io::SeekFrom::End(0)).map_err(Error::Read)?;
    let mut zip = ZipArchive::new(from).map_err(failed)?;
    let arrays: Vec<Entry> = (0..zip.len()).filter_map(|index| Entry::read(&mut zip, index)).collect();
    let chosen = choose(&arrays, options.array.as_deref())?;
    let header = chosen.header()?;
    let mut names = None;
    if let Some(entry) = arrays.iter().find(|entry| entry.name == NAMES && entry.index != chosen.index)
        && entry.header()?.is_names(header.n_columns())
    {
        let mut file = zip.by_index(entry.index).map_err(failed)?;
        let mut source = Source { from: &mut file, size: None, fail: damaged };
        let header = Header::read(&mut source)?;
        names = Some(header.names(&mut source).map_err(|error| error.in_array(NAMES))?);
    }

    let mut file = zip.by_index(chosen.index).map_err(failed)?;
    let method = file.compression();
    let stored = (method == CompressionMethod::Stored).then_some(size.min(file.size()));
    let mut source = Source { from: &mut file, size: stored, fail: damaged };
    Header::read(&mut source)?;
    let mut table =
        npy::read_items(source, header, names, options).map_err(|error| error.in_array(&chosen.name))?;
    drop(file);

    let mut others = ZipWriter::new(Cursor::new(Vec::new()));
    for index in (0..zip.len()).filter(|index| *index != chosen.index) {
        let file = zip.by_index_raw(index).map_err(failed)?;
        // A copy would not be marked as such.
        if file.encrypted() {
            return Err(Error::NotNpz { why: "a part of it is encrypted".to_owned() });
        }
        others.raw_copy_file(file).map_err(failed)?;
    }
    let others = others.finish().map_err(failed)?.into_inner();
    let Body::Numpy(array) = &mut table.body else { unreachable!("the table was an array") };
    array.archive = Some(Archive { name: chosen.name.clone(), position: chosen.index, method, others });
    Ok(table)
}

/// An array in an archive.
struct Entry {
    index: usize,
    /// The name of its file without `.npy`.
    name: String,
    header: Result<Header, String>,
}

impl Entry {
    /// The array of that number, if it is one.
    fn read<R: Read + Seek>(zip: &mut ZipArchive<R>, index: usize) -> Option<Self> {
        let name = zip.name_for_index(index)?.ok()?.strip_suffix(".npy")?.to_owned();
        let header = zip.by_index(index).map_err(|e| e.to_string()).and_then(|mut file| {
            Header::read(&mut Source { from: &mut file, size: None, fail: damaged })
                .map_err(|e| e.to_string())
        });
        Some(Self { index, name, header })
    }

    fn header(&self) -> Result<&Header, Error> {
        self.header.as_ref().map_err(|why| Error::NotNpz { why: format!("array `{}`: {why}", self.name) })
    }

    fn describe(&self) -> String {
        let what = self.header.as_ref().map_or("cannot be read".to_owned(), Header::describe);
        format!("{} ({what})", self.name)
    }
}

fn choose<'a>(arrays: &'a [Entry], wanted: Option<&str>) -> Result<&'a Entry, Error> {
    let known = || arrays.iter().map(Entry::describe).collect();
    if let Some(name) = wanted {
        let found = arrays.iter().find(|entry| entry.name == name);
        return found.ok_or_else(|| Error::UnknownArray { name: name.to_owned(), known: known() });
    }
    let is_table = |entry: &&Entry| entry.header.as_ref().is_ok_and(Header::is_table);
    let mut tables = arrays.iter().filter(is_table);
    match (tables.next(), tables.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(Error::NoArray { known: known() }),
        _ => Err(Error::SeveralArrays {
            names: arrays.iter().filter(is_table).map(|entry| entry.name.clone()).collect(),
        }),
    }
}

fn failed(error: ZipError) -> Error {
    match error {
        ZipError::Io(error) => damaged(error),
        ZipError::InvalidArchive(why) => Error::NotNpz { why: why.into_owned() },
        other => Error::NotNpz { why: other.to_string() },
    }
}

/// Errors of the file itself are distinguished from bytes that make no sense.
fn damaged(error: io::Error) -> Error {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::UnexpectedEof => Error::NotNpz { why: "it ends early".to_owned() },
        Kind::InvalidInput | Kind::InvalidData | Kind::Unsupported | Kind::Other => {
            Error::NotNpz { why: error.to_string() }
        }
        _ => Error::Read(error),
    }
}

/// Writes the archive again with the filled array in its place; an array that had none becomes one.
pub(super) fn write_filled(
    array: &npy::Array,
    table: &Table,
    values: &Matrix,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let cells = table.n_rows() * table.n_columns();
    let Some(archive) = &array.archive else {
        return write_archive(out, |zip| {
            start(zip, TABLE, CompressionMethod::Stored, cells)?;
            array.write_filled(table, values, zip)?;
            write_names(&table.names.iter().collect::<Vec<_>>(), zip)
        });
    };
    let mut others = ZipArchive::new(Cursor::new(&archive.others[..])).map_err(failed)?;
    write_archive(out, |zip| {
        for index in 0..=others.len() {
            if index == archive.position {
                start(zip, &archive.name, archive.method, cells)?;
                array.write_filled(table, values, zip)?;
            }
            if index < others.len() {
                zip.raw_copy_file(others.by_index_raw(index).map_err(failed)?).map_err(unwritten)?;
            }
        }
        Ok(())
    })
}

/// Writes the columns of numbers as the array `x` and their names as the array `columns`; returns
/// the names of the other columns.
pub(super) fn write(sheet: &Sheet<'_>, out: &mut dyn Write) -> Result<Vec<String>, Error> {
    let (kept, left_out) = npy::numbers_of(sheet)?;
    write_archive(out, |zip| {
        start(zip, TABLE, CompressionMethod::Stored, sheet.n_rows() * kept.len())?;
        npy::write(sheet, zip)?;
        write_names(&kept.iter().map(|&j| &sheet.names[j]).collect::<Vec<_>>(), zip)
    })?;
    Ok(left_out)
}

/// The same of a table that comes in parts.
pub(super) fn write_parts<'a>(
    n_rows: usize,
    first: &Sheet<'a>,
    others: &mut dyn Iterator<Item = Result<Sheet<'a>, Error>>,
    out: &mut dyn Write,
) -> Result<Vec<String>, Error> {
    let (kept, left_out) = npy::numbers_of(first)?;
    write_archive(out, |zip| {
        start(zip, TABLE, CompressionMethod::Stored, n_rows * kept.len())?;
        npy::write_parts(n_rows, first, others, zip)?;
        write_names(&kept.iter().map(|&j| &first.names[j]).collect::<Vec<_>>(), zip)
    })?;
    Ok(left_out)
}

type Zip = ZipWriter<Cursor<Vec<u8>>>;

fn write_names(names: &[&String], zip: &mut Zip) -> Result<(), Error> {
    start(zip, NAMES, CompressionMethod::Stored, 0)?;
    npy::write_names(names, zip)
}

/// Begins an array of this many cells, always with the same date.
fn start(zip: &mut Zip, name: &str, method: CompressionMethod, cells: usize) -> Result<(), Error> {
    let options = SimpleFileOptions::default()
        .compression_method(method)
        .last_modified_time(zip::DateTime::default())
        .large_file(cells >= 1 << 28);
    zip.start_file(format!("{name}.npy"), options).map_err(unwritten)
}

/// Writes by way of memory: the crate's streams give copied entries no sizes in front of them, and
/// print where the destination fails.
fn write_archive(
    out: &mut dyn Write,
    write: impl FnOnce(&mut Zip) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    write(&mut zip)?;
    out.write_all(zip.finish().map_err(unwritten)?.get_ref()).map_err(Error::Write)
}

fn unwritten(error: ZipError) -> Error {
    Error::Write(error.into())
}
