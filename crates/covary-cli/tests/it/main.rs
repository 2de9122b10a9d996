//! The command as users meet it: one module per verb, and the promises of the README.

mod impute;
mod readme;

use std::path::PathBuf;
use std::process::Command;

/// The built command.
fn covary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_covary"))
}

/// A file of the repository.
fn repository(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

/// An empty folder of its own with a copy of `examples/`, so that documented commands run as typed.
fn folder_with_examples() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let examples = folder.path().join("examples");
    std::fs::create_dir(&examples).expect("an empty folder takes a folder");
    for name in ["wine.csv", "wine_gaps.csv"] {
        std::fs::copy(repository("examples").join(name), examples.join(name)).expect("shipped examples");
    }
    folder
}
