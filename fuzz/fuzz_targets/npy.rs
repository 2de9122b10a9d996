#![no_main]
//! One NumPy array.

use covary::io::{Format, Layout};
use covary_fuzz::{check, options};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [first, array @ ..] = bytes else { return };
    check(array, Format { layout: Layout::Npy, gzip: false }, &options(*first));
});
