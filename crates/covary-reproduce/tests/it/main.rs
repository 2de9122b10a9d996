//! What exhibits find, how they are kept, and what happens without data.

mod chen_2018;
mod pages;
mod real_data;
mod slides;

use covary_reproduce::{Data, Error, Record, Run, find};
use std::path::PathBuf;

/// The folder of data sets that may not be shipped: `COVARY_DATA`, else `../shared/data` beside the
/// repository. Says aloud that a test was skipped for want of it.
#[allow(clippy::print_stderr, reason = "a skipped test must be seen")]
fn shared_data() -> Option<Data> {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    let folder = std::env::var_os("COVARY_DATA").map_or_else(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(Data::of(folder));
    }
    eprintln!("SKIPPED: {} is absent; set COVARY_DATA to the folder of data sets", folder.display());
    None
}

/// An exhibit of shipped or simulated data, with this many repeats.
#[track_caller]
fn made(name: &str, repeats: usize) -> Record {
    made_of(&Data::none(), name, repeats)
}

#[track_caller]
fn made_of(data: &Data, name: &str, repeats: usize) -> Record {
    let run = Run { most_repeats: Some(repeats), ..Run::new(data) };
    let record = find(name).expect("listed").record(&run).expect("made");
    for row in record.tables.iter().flat_map(|t| &t.rows) {
        assert!(row.agrees || row.why.is_some(), "{name}: `{}` differs and nothing says why", row.quantity);
    }
    record
}

/// Our entry of a row, and whether it agrees.
#[track_caller]
fn row<'a>(record: &'a Record, quantity: &str) -> (&'a str, bool) {
    let mut rows = record.tables.iter().flat_map(|t| &t.rows);
    let row = rows.find(|r| r.quantity == quantity).unwrap_or_else(|| panic!("no row `{quantity}`"));
    (&row.ours, row.agrees)
}

#[test]
fn names_are_unique_and_unknown_ones_list_those_there_are() {
    let mut names: Vec<&str> = covary_reproduce::EXHIBITS.iter().map(|e| e.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), covary_reproduce::EXHIBITS.len());
    let why = find("chen-2018-fig-99").unwrap_err().to_string();
    assert!(why.contains("chen-2018-fig-99") && why.contains("chen-2018-fig-05"), "{why}");
}

#[test]
fn missing_data_are_named_with_the_way_out() {
    for exhibit in covary_reproduce::EXHIBITS.iter().filter(|e| !e.needs.is_empty()) {
        let why = exhibit.record(&Run::new(&Data::none())).unwrap_err();
        assert!(matches!(&why, Error::NoData { folder, .. } if exhibit.needs.contains(&folder.as_str())));
        assert!(why.to_string().contains("--data FOLDER"), "{why}");
    }
}

#[test]
fn an_observer_that_asks_to_stop_is_heard() {
    let data = Data::none();
    let run = Run { observer: &|_, _, _| std::ops::ControlFlow::Break(()), ..Run::new(&data) };
    let stopped = find("chen-2018-fig-05").expect("listed").record(&run);
    assert!(matches!(stopped, Err(Error::Interrupted)));
}
