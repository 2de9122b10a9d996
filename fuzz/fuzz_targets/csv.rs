#![no_main]
//! Text tables: what is not a gap leaves byte for byte.

use covary::io::{Format, Layout};
use covary_fuzz::{check, options, write};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [first, second, text @ ..] = bytes else { return };
    let mut options = options(*first);
    options.decimal_comma = second & 1 != 0;
    options.delimiter = [None, Some(b';'), Some(b','), Some(b' ')][usize::from(second >> 1 & 3)];
    let layout = if second & 8 == 0 { Layout::Csv } else { Layout::Tsv };
    let format = Format { layout, gzip: false };
    if let Some(table) = check(text, format, &options) {
        let untouched = write(&table, table.dataset().values(), format).expect("memory takes all");
        assert_eq!(untouched, text);
    }
});
