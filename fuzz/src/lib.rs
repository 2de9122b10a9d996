//! What every reader of tables is held to, whatever the bytes, and what targets share.

use covary::{Dataset, Matrix};
use covary::io::{self, ColumnChoice, Columns, Delimiter, Format, Input, Layout, ReadOptions, Table};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// A number that no option below declares a gap, exact in every type of float.
const FILL: f64 = 0.625;

/// Options that leave nothing of a text to be recognized: filled, it might be taken for another.
pub fn as_said() -> ReadOptions {
    ReadOptions {
        delimiter: Some(Delimiter::COMMA),
        decimal_comma: Some(false),
        header: Some(true),
        skip: Some(0),
        ..ReadOptions::default()
    }
}

/// Options from one byte, so that the fuzzer finds the ways through them.
pub fn options(byte: u8) -> ReadOptions {
    let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<String>>();
    let columns = match byte & 3 {
        0 | 1 => Columns::Numbers,
        2 => Columns::Listed(words(&["1:"])),
        _ => Columns::Listed(words(&["2", ":1"])),
    };
    let exclude = if byte & 4 == 0 { Vec::new() } else { words(&["2"]) };
    let id = if byte & 8 == 0 { Vec::new() } else { words(&["1"]) };
    let gaps = if byte & 16 == 0 { Vec::new() } else { words(&["-99", "?", "0"]) };
    let array = (byte & 32 != 0).then(|| "a".to_owned());
    ReadOptions { choice: ColumnChoice { columns, exclude, id }, gaps, array, ..as_said() }
}

/// Reads a table and, if it is one, holds it to what always holds.
pub fn check(bytes: &[u8], format: Format, options: &ReadOptions) -> Option<Table> {
    let table = io::read(Input::Stream(bytes), format, options).ok()?;
    let data = table.dataset();
    assert!(data.values().as_slice().iter().all(|v| !v.is_infinite()), "an infinity came in");
    assert_eq!(data.n_columns(), table.numeric_columns().len());
    for i in 0..table.n_rows().min(50) {
        for j in 0..table.n_columns().min(50) {
            table.text(i, j);
        }
    }

    // Filled and written in its own format, it reads back with its observed cells as they were.
    let filled = Matrix::from_fn(data.n_rows(), data.n_columns(), |i, j| {
        if data.row(i)[j].is_nan() { FILL } else { data.row(i)[j] }
    });
    let out = match write(&table, &filled, format) {
        // Integers with gaps leave as float64, which may have no room for one kept aside.
        Err(io::Error::LongInteger { .. }) => return Some(table),
        out => out.expect("what was read can be written"),
    };
    let again = io::read(Input::Stream(&out[..]), format, options).expect("what was written can be read");
    assert_eq!(again.column_names(), table.column_names());
    assert_eq!((again.n_rows(), again.numeric_columns()), (table.n_rows(), table.numeric_columns()));
    for i in 0..data.n_rows() {
        for (j, observed) in data.row(i).iter().enumerate().filter(|(_, v)| !v.is_nan()) {
            assert_eq!(again.dataset().row(i)[j].to_bits(), observed.to_bits(), "row {i}, column {j}");
        }
        for j in table.columns_aside() {
            let (is, was) = (again.text(i, j), table.text(i, j));
            assert!(is == was || is.parse::<f64>().ok() == was.parse().ok(), "row {i}, column {j}: {was}, {is}");
        }
    }

    // Any other format takes it or says why not; not always, because that is slow.
    if bytes.len() % 8 == 0 {
        for (layout, _) in Layout::NAMES {
            let _ = write(&table, &filled, Format { layout, gzip: false });
        }
    }
    Some(table)
}

/// The bytes of the table with these numbers.
pub fn write(table: &Table, values: &Matrix, format: Format) -> Result<Vec<u8>, io::Error> {
    let mut out = Vec::new();
    table.write_filled(values, format, &mut out).map(|_| out)
}

/// A workbook as it is, or one of parts that stand behind each other in the bytes, `name NUL content NUL`, so that the fuzzer
/// gets behind checksums and compression.
pub fn archived(bytes: &[u8]) -> Vec<u8> {
    if bytes.starts_with(b"PK") {
        return bytes.to_vec();
    }
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let mut parts = bytes.split(|&b| b == 0);
    while let (Some(name), Some(part)) = (parts.next(), parts.next()) {
        let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        if archive.start_file(String::from_utf8_lossy(name), stored).is_ok() {
            let _ = archive.write_all(part);
        }
    }
    archive.finish().map(std::io::Cursor::into_inner).unwrap_or_default()
}

/// Runs a target whose reader contains the panics of its decoder: libFuzzer would count them, being
/// told of every panic when it begins. One that comes through is still a find.
pub fn contained(target: impl FnOnce()) {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            if std::env::var_os("COVARY_FUZZ_LOUD").is_some() {
                eprintln!("{info}");
            }
        }));
    });
    if catch_unwind(AssertUnwindSafe(target)).is_err() {
        eprintln!("a panic came through; COVARY_FUZZ_LOUD=1 shows it");
        std::process::abort();
    }
}

/// CRC-64 with the polynomial of ECMA-182, bits reflected: a change of one byte of a file that ends in it would be refused
/// at once, so that targets make it good.
pub fn crc_64(bytes: &[u8]) -> u64 {
    !bytes.iter().fold(u64::MAX, |sum, &byte| {
        (0..8).fold(sum ^ u64::from(byte), |r, _| (r >> 1) ^ (0xc96c_5795_d787_0f42 * (r & 1)))
    })
}

/// Parts that stand behind each other, each after its length in two bytes.
pub fn parts(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    while let [a, b, rest @ ..] = bytes {
        let (part, rest) = rest.split_at(rest.len().min(u16::from_le_bytes([*a, *b]).into()));
        parts.push(part);
        bytes = rest;
    }
    parts
}

/// A small table with gaps.
pub fn small(n_columns: usize) -> Dataset {
    let cell = |i: usize, j: usize| {
        if (i + 2 * j) % 7 == 3 { f64::NAN } else { ((i * i + 3 * j) % 11) as f64 - 4.5 }
    };
    Dataset::new(Matrix::from_fn(9, n_columns, cell)).expect("a table of numbers and gaps")
}
