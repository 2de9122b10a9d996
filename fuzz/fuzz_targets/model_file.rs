#![no_main]
//! The model file, of any kind: what is read can be written, and then is the same bytes for ever.

use covary::io::model_file;
use covary::learned::Learned;
use covary_fuzz::crc_64;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(learned) = model_file::read(&with_checksum(bytes)[..]) else { return };
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

/// The file with the checksum that it should have, behind which damage would not be seen.
fn with_checksum(bytes: &[u8]) -> Vec<u8> {
    const BEFORE: &[u8] = br#"{"__metadata__":{"checksum":""#;
    let mut bytes = bytes.to_vec();
    let at = 8 + BEFORE.len();
    if bytes.get(8..).is_some_and(|index| index.starts_with(BEFORE)) && bytes.len() >= at + 16 {
        bytes[at..at + 16].fill(b'0');
        let digits = format!("{:016x}", crc_64(&bytes));
        bytes[at..at + 16].copy_from_slice(digits.as_bytes());
    }
    bytes
}
