//! Is every change to a file that keeps a model, or the chains of a sampler, noticed?

use crate::{dynamics_learned, ica_file, mixture, model_file as one};
use covary::data::{Shape, simulate};
use covary::infer::{Gibbs, GibbsState, MeanField, MixtureEm, SharedPrivate, Step, Structured};
use covary::io::model_file;
use covary::learned::Learned;
use covary::{Dataset, Estimator, Method, Spec};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::PathBuf;

const BEFORE_CHECKSUM: &[u8] = br#"{"__metadata__":{"checksum":""#;

/// CRC-64 of `xz`, bit by bit.
fn crc64(bytes: &[u8]) -> u64 {
    !bytes.iter().fold(u64::MAX, |sum, &byte| {
        (0..8)
            .fold(sum ^ u64::from(byte), |s, _| (s >> 1) ^ if s & 1 == 1 { 0xc96c_5795_d787_0f42 } else { 0 })
    })
}

/// The same file with the checksum of its bytes, if it has one: as somebody would make it who means harm.
pub(crate) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let digits = 8 + BEFORE_CHECKSUM.len()..24 + BEFORE_CHECKSUM.len();
    if bytes.get(8..digits.start) == Some(BEFORE_CHECKSUM) && bytes.len() >= digits.end {
        bytes[digits.clone()].fill(b'0');
        let checksum = format!("{:016x}", crc64(&bytes));
        bytes[digits].copy_from_slice(checksum.as_bytes());
    }
    bytes
}

/// The file with header and index changed, and the checksum that suits it.
pub(crate) fn edited(written: &[u8], edit: impl FnOnce(&mut Value, &mut Value)) -> Vec<u8> {
    let length = usize::try_from(u64::from_le_bytes(written[..8].try_into().unwrap())).unwrap();
    let mut index: Value = serde_json::from_slice(&written[8..8 + length]).expect("an index");
    let mut header: Value =
        serde_json::from_str(index["__metadata__"]["covary"].as_str().unwrap()).expect("a header");
    edit(&mut header, &mut index);
    index["__metadata__"]["covary"] = json!(header.to_string());
    let index = index.to_string();
    sealed([&(index.len() as u64).to_le_bytes(), index.as_bytes(), &written[8 + length..]].concat())
}

/// The file with the first number of an array changed, and the checksum that suits it.
pub(crate) fn with_number(written: &[u8], array: &str, value: f64) -> Vec<u8> {
    let length = usize::try_from(u64::from_le_bytes(written[..8].try_into().unwrap())).unwrap();
    let index: Value = serde_json::from_slice(&written[8..8 + length]).expect("an index");
    let at = 8 + length + usize::try_from(index[array]["data_offsets"][0].as_u64().unwrap()).unwrap();
    let mut changed = written.to_vec();
    changed[at..at + 8].copy_from_slice(&value.to_le_bytes());
    sealed(changed)
}

/// What happens to bytes on disks, lines and in editors.
fn damaged(bytes: &[u8], rng: &mut impl Rng) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let n = out.len();
    let at = rng.random_range(0..n);
    let some = |rng: &mut dyn Rng| (0..rng.random_range(1..9)).map(|_| rng.random()).collect::<Vec<u8>>();
    match rng.random_range(0..9) {
        0 | 1 => out[at] ^= 1 << rng.random_range(0..8),
        2 => (0..rng.random_range(2..20))
            .for_each(|_| out[rng.random_range(0..n)] ^= 1 << rng.random_range(0..8)),
        3 => out.truncate(at),
        4 => out.swap(at, rng.random_range(0..n)),
        5 => drop(out.splice(at..at, some(rng))),
        6 => drop(out.drain(at..n.min(at + rng.random_range(1..9)))),
        7 => out[at..n.min(at + 64)].shuffle(rng),
        // One digit for another: what still reads as a number is the hardest to see.
        _ => {
            let digits: Vec<usize> = (0..n).filter(|&i| out[i].is_ascii_digit()).collect();
            let digit = digits.get(rng.random_range(0..digits.len().max(1))).copied().unwrap_or(at);
            out[digit] = b'0' + rng.random_range(0..10);
        }
    }
    out
}

fn table() -> Dataset {
    let shape = Shape { rows: 30, columns: 6, n_components: 2 };
    simulate::hide(&simulate::ppca(shape, 3).0, 0.1, 4)
}

fn one_model(spec: &Spec, method: &Method) -> Vec<u8> {
    let data = table();
    let fit = method.fit(&data, spec).expect("a table that can be fitted");
    one::bytes(&Learned::of_fit(fit, &data, spec, method))
}

/// A file of every kind, as it is written.
fn every_kind() -> Vec<(&'static str, Vec<u8>)> {
    let gibbs = Gibbs { chains: 2, draws: 5, warm_up: 5, thin: 1, ..Gibbs::default() };
    let method = MixtureEm::of(2);
    let mixed = method.fit(&table(), &Spec::ppca(1)).expect("a table that can be fitted");
    vec![
        ("ppca", one_model(&Spec::ppca(2), &Method::from_name("em").expect("a method"))),
        ("bpca", one_model(&Spec::ppca(2), &Method::Structured(Structured::default()))),
        ("bpca by gibbs", one_model(&Spec::ppca(2), &Method::Gibbs(gibbs))),
        ("gfa", one_model(&Spec::of_views(2, vec![3, 3]), &Method::MeanField(MeanField::default()))),
        ("pcca", one_model(&Spec::of_views(1, vec![3, 3]), &Method::SharedPrivate(SharedPrivate::default()))),
        ("every field", one::bytes(&one::everything())),
        ("every uncertain field", one::bytes(&one::everything_uncertain())),
        ("mixture", one::bytes(&Learned::of_mixture(mixed, &table(), &Spec::ppca(1), (&method).into()))),
        ("classes", one::bytes(&mixture::everything_mixed())),
        ("ica", one::bytes(&ica_file::exact())),
        ("noisy ica", one::bytes(&ica_file::noisy())),
        ("dynamic", one::bytes(&dynamics_learned::everything())),
    ]
}

#[test]
fn no_damage_to_a_model_file_goes_unnoticed() {
    for (seed, (kind, written)) in every_kind().into_iter().enumerate() {
        model_file::read(written.as_slice()).unwrap_or_else(|e| panic!("{kind}: {e}"));
        assert!(sealed(written.clone()) == written, "{kind}: the checksum is the CRC-64 of xz");
        let mut rng = ChaCha8Rng::seed_from_u64(seed as u64);
        for k in 0..2000 {
            let changed = damaged(&written, &mut rng);
            let unnoticed = changed != written && model_file::read(changed.as_slice()).is_ok();
            assert!(!unnoticed, "{kind}: damage {k} was not noticed");
        }
    }
}

#[test]
fn every_single_bit_of_a_model_file_counts() {
    let written = one::bytes(&one::everything());
    for bit in 0..8 * written.len() {
        let mut changed = written.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(model_file::read(changed.as_slice()).is_err(), "bit {bit}");
    }
}

#[test]
fn numbers_that_no_table_has_are_refused_under_any_checksum() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    for (kind, written) in every_kind() {
        for (array, value) in [
            ("column_means", nan),
            ("column_means", inf),
            ("column_means", -inf),
            ("column_sds", nan),
            ("column_sds", inf),
            ("column_sds", -1.0),
            ("n_observed_by_column", nan),
            ("n_observed_by_column", inf),
            ("n_observed_by_column", -1.0),
            ("n_observed_by_column", 0.5),
            ("n_observed_by_column", 1e9),
        ] {
            let refused = model_file::read(with_number(&written, array, value).as_slice());
            let refused = refused.expect_err(&format!("{kind}: {array} {value}")).to_string();
            assert!(refused.contains("damaged model file") && !refused.contains("checksum"), "{refused}");
        }
        for repeat in [true, false] {
            let changed = edited(&written, |header, _| {
                if repeat {
                    header["columns"][1] = header["columns"][0].clone();
                } else {
                    header["n_rows"] = json!(-3);
                }
            });
            let refused = model_file::read(changed.as_slice()).expect_err(kind).to_string();
            assert!(refused.contains(if repeat { "columns 1 and 2" } else { "its header" }), "{refused}");
        }
    }
}

#[test]
fn a_file_of_this_version_without_its_checksum_is_refused() {
    let written = one::bytes(&one::everything());
    let without = edited(&written, |_, index| {
        index["__metadata__"].as_object_mut().unwrap().remove("checksum");
    });
    let refused = model_file::read(without.as_slice()).unwrap_err().to_string();
    assert!(refused.contains("its checksum is missing"), "{refused}");
    // Nor does another version take away what the checksum says.
    let older = String::from_utf8_lossy(&written).find(r#"format_version\":3"#).expect("a version") + 17;
    let at = written.windows(18).position(|w| w == br#"format_version\":3"#).unwrap_or(older) + 17;
    let mut changed = written.clone();
    changed[at] = b'2';
    assert!(model_file::read(changed.as_slice()).is_err());
}

fn checkpoint() -> (Gibbs, Spec, GibbsState) {
    let gibbs = Gibbs { chains: 2, draws: 6, warm_up: 4, thin: 1, seed: 7, ..Gibbs::default() };
    let spec = Spec::ppca(2);
    let mut state = gibbs.begin(&table(), &spec).expect("a table that can be sampled");
    gibbs.resume(&mut state, &table(), &spec, &mut |_: &Step| ControlFlow::Break(())).expect("a first round");
    (gibbs, spec, state)
}

#[test]
fn no_damage_to_the_chains_of_a_sampler_goes_unnoticed() {
    let (.., state) = checkpoint();
    let mut written = Vec::new();
    state.write(&mut written).expect("memory takes all");
    assert_eq!(GibbsState::read(written.as_slice()).expect("as written"), state);
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for k in 0..500 {
        let changed = damaged(&written, &mut rng);
        let unnoticed = changed != written && GibbsState::read(changed.as_slice()).is_ok();
        assert!(!unnoticed, "damage {k} was not noticed");
    }
}

fn golden_chains() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/model_files/chains_version_1.gibbs")
}

#[test]
fn chains_of_version_1_still_open_and_go_on() {
    let bytes = std::fs::read(golden_chains()).expect("golden files are part of the project");
    assert!(bytes.starts_with(b"covary gibbs 1\r\n"));
    let state = GibbsState::read(bytes.as_slice()).expect("a file of version 1");
    assert_eq!((state.n_sweeps(), state.n_draws()), (10, 12));
    let mut again = Vec::new();
    state.write(&mut again).expect("memory takes all");
    // The numbers are the same; the version differs, and the checksum is new.
    assert!(again.starts_with(b"covary gibbs 2\r\n") && again[16..again.len() - 8] == bytes[16..]);
    assert_eq!(again[again.len() - 8..], crc64(&again[..again.len() - 8]).to_le_bytes());
}
