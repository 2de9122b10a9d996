#![no_main]
//! The model file: what is read can be written, and then is the same bytes for ever.

use covary::io::model_file;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(saved) = model_file::read(bytes) else { return };
    saved.to_json();
    let write = |saved: &model_file::Saved| {
        let mut out = Vec::new();
        model_file::write(saved, &mut out).expect("memory takes all");
        out
    };
    let once = write(&saved);
    let again = model_file::read(&once[..]).expect("what was written can be read");
    assert_eq!(write(&again), once);
});
