#![no_main]
//! Compressed text: whole or refused.

use covary::io::{Format, Layout, ReadOptions};
use covary_fuzz::check;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let format = Format { layout: Layout::Csv, gzip: true };
    check(bytes, format, &ReadOptions::default());
});
