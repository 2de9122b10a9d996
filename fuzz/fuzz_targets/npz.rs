#![no_main]
//! An archive of NumPy arrays: as it comes or, because its checksums keep most damage out, made of
//! arrays as they come.

use covary::io::{Format, Layout};
use covary_fuzz::{check, options};
use std::io::{Cursor, Write};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [first, bytes @ ..] = bytes else { return };
    let format = Format { layout: Layout::Npz, gzip: false };
    if first & 128 == 0 {
        check(bytes, format, &options(*first));
    } else if let Some(archive) = archive(bytes) {
        check(&archive, format, &options(*first));
    }
});

/// Arrays `a`, `columns` and `b`, cut where an array begins.
fn archive(bytes: &[u8]) -> Option<Vec<u8>> {
    const START: &[u8] = b"\x93NUMPY";
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut rest = bytes;
    for name in ["a.npy", "columns.npy", "b.npy"] {
        let next = rest.windows(START.len()).skip(1).position(|w| w == START).map_or(rest.len(), |at| at + 1);
        let (array, behind) = rest.split_at(next);
        zip.start_file(name, options).ok()?;
        zip.write_all(array).ok()?;
        rest = behind;
    }
    Some(zip.finish().ok()?.into_inner())
}
