#![no_main]
//! The model file, of any kind: what is read can be written, and then is the same bytes for ever.

use covary::io::model_file::{self, Opened};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(opened) = model_file::open(bytes) else { return };
    opened.to_json();
    let write = |opened: &Opened| {
        let mut out = Vec::new();
        match opened {
            Opened::Model(saved) => model_file::write(saved, &mut out),
            Opened::Mixture(saved) => model_file::write_mixture(saved, &mut out),
            Opened::Sources(saved) => model_file::write_sources(saved, &mut out),
        }
        .expect("memory takes all");
        out
    };
    let once = write(&opened);
    let again = model_file::open(&once[..]).expect("what was written can be read");
    assert_eq!(write(&again), once);
});
