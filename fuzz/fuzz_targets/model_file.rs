#![no_main]
//! The model file, of any kind: what is read can be written, and then is the same bytes for ever.

use covary::io::model_file;
use covary::learned::Learned;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(learned) = model_file::read(bytes) else { return };
    learned.to_json();
    let written = |learned: &Learned| {
        let mut out = Vec::new();
        model_file::write(learned, &mut out).expect("memory takes all");
        out
    };
    let once = written(&learned);
    let again = model_file::read(&once[..]).expect("what was written can be read");
    assert_eq!(written(&again), once);
});
