#![no_main]
//! Apache Parquet; its decoder's panics are contained by the reader.

use covary::io::{Format, Layout};
use covary_fuzz::{check, contained, options};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [first, bytes @ ..] = bytes else { return };
    contained(|| {
        check(bytes, Format { layout: Layout::Parquet, gzip: false }, &options(*first));
    });
});
