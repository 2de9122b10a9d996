#![no_main]
//! Saved states of streams and samplers: what opens writes the same bytes again, and goes on with a fit or an error.

use covary::data::{Shape, simulate};
use covary::infer::{Gibbs, GibbsState, Incremental, OnlineEm};
use covary::{Dataset, Density, Spec};
use covary_fuzz::{crc_64, small};
use std::sync::LazyLock;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [kind, options, bytes @ ..] = bytes else { return };
    match kind % 3 {
        0 => online(*options, bytes),
        1 => incremental(bytes),
        _ => chains(bytes),
    }
});

/// Two bits say what is fitted, two how many components, three how many columns.
fn online(options: u8, bytes: &[u8]) {
    let q = usize::from(options >> 2 & 3);
    let spec = if options & 1 == 0 { Spec::ppca(q) } else { Spec::factor_analysis(q) };
    let spec = Spec { standardize: options & 2 != 0, ..spec };
    let names: Vec<String> = (0..usize::from(options >> 4 & 7)).map(|j| format!("x{j}")).collect();
    let Ok(mut stream) = OnlineEm::from_bytes(spec.clone(), &names, bytes) else { return };
    assert_eq!(stream.to_bytes(), bytes);
    if let Ok(fit) = stream.fit() {
        let _ = fit.model.score(&small(names.len()));
    }
    if !names.is_empty() && stream.take(&small(names.len())).is_ok() {
        let taken = stream.to_bytes();
        let again = OnlineEm::from_bytes(spec, &names, &taken);
        assert!(taken.is_empty() || again.expect("what was written can be read").to_bytes() == taken);
        let _ = stream.fit();
    }
}

fn incremental(bytes: &[u8]) {
    let Ok(mut stream) = Incremental::from_bytes(bytes) else { return };
    // The noise follows from the other numbers: what is written again need not be what came, but stays.
    let written = stream.to_bytes();
    let again = Incremental::from_bytes(&written).expect("what was written can be read");
    assert_eq!(again.to_bytes(), written);
    let d = match stream.variances().len() {
        0 => 3,
        d @ 1..=8 => d,
        _ => return,
    };
    let _ = stream.model().map(|model| model.score(&small(d)));
    let _ = stream.transform(&small(d), true);
    if stream.take(&small(d)).is_ok() {
        let _ = stream.model();
        Incremental::from_bytes(&stream.to_bytes()).expect("what was written can be read");
    }
}

/// Chains of a table, after the fingerprint that they should have.
fn chains(bytes: &[u8]) {
    static BEGUN: LazyLock<(Dataset, Gibbs, Vec<u8>)> = LazyLock::new(|| {
        let (table, _) = simulate::ppca(Shape { rows: 8, columns: 3, n_components: 1 }, 1);
        let gibbs = Gibbs { chains: 2, draws: 2, warm_up: 1, ..Gibbs::default() };
        let mut begun = Vec::new();
        let state = gibbs.begin(&table, &Spec::ppca(1)).expect("a good table");
        state.write(&mut begun).expect("memory takes all");
        begun.truncate(24);
        (table, gibbs, begun)
    });
    let (table, gibbs, begun) = &*BEGUN;
    let mut file = [&begun[..], bytes].concat();
    file.extend(crc_64(&file).to_le_bytes());
    let Ok(mut state) = GibbsState::read(&file[..]) else { return };
    let mut written = Vec::new();
    state.write(&mut written).expect("memory takes all");
    assert_eq!(written, file);
    if state.n_sweeps() < 1000 && state.n_draws() < 100 {
        let _ = gibbs.resume(&mut state, table, &Spec::ppca(1), &mut ());
    }
}
