#![no_main]
//! Workbooks: refused, or a table that can be written as text.

use covary::io::{self, Format, Input, Layout, ReadOptions};
use covary_fuzz::{contained, write};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    contained(|| {
        let options = ReadOptions { max_memory: Some(1 << 28), ..ReadOptions::default() };
        let format = Format { layout: Layout::Ods, gzip: false };
        let Ok(table) = io::read(Input::Stream(covary_fuzz::archived(bytes).as_slice()), format, &options) else { return };
        table.identifiers();
        assert!(table.dataset().values().as_slice().iter().all(|v| !v.is_infinite()), "an infinity came in");
        write(&table, table.dataset().values(), Format::CSV).expect("what was read can be written");
    });
});
