#![no_main]
//! Text tables: what is not a gap leaves byte for byte, in whatever encoding and however it was recognized.

use covary::io::{self, Delimiter, Format, Input, Layout, ReadOptions};
use covary_fuzz::{check, options, write};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [first, second, text @ ..] = bytes else { return };
    let mut options = options(*first);
    let layout = if second & 8 == 0 { Layout::Csv } else { Layout::Tsv };
    let format = Format { layout, gzip: false };
    let delimiters = [b',', b';', b' ', b'|'].map(Delimiter::Character);
    options.transpose = second & 128 != 0;
    let table = if second & 16 == 0 {
        options.delimiter = Some(delimiters[usize::from(second >> 1 & 3)]).filter(|_| layout == Layout::Csv);
        options.delimiter = if second & 32 == 0 { options.delimiter } else { Some(Delimiter::Blanks) };
        options.decimal_comma = Some(second & 1 != 0);
        options.header = Some(second & 64 == 0);
        check(text, format, &options)
    } else {
        // Filled, it might be taken for another: only what is not filled is held.
        let encodings = [None, Some("utf-16"), Some("windows-1252"), Some("shift_jis")];
        let encoding = encodings[usize::from(second >> 1 & 3)].map(str::to_owned);
        let ReadOptions { choice, gaps, transpose, .. } = options;
        let recognized = ReadOptions { choice, gaps, transpose, encoding, ..ReadOptions::default() };
        let table = io::read(Input::Stream(text), format, &recognized).ok();
        table.filter(|_| recognized.encoding.as_deref() != Some("shift_jis"))
    };
    if let Some(table) = table {
        table.identifiers();
        let untouched = write(&table, table.dataset().values(), format).expect("memory takes all");
        assert_eq!(untouched, text);
    }
});
