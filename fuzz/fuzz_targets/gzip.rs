#![no_main]
//! Compressed text: whole or refused.

use covary::io::{Format, Layout};
use covary_fuzz::{as_said, check};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let format = Format { layout: Layout::Csv, gzip: true };
    check(bytes, format, &as_said());
});
