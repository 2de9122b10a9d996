//! The command as users meet it: one module per verb, and the promises of the README.

mod bad_input;
mod bayes;
mod blocks;
mod curves;
mod documents;
mod factors;
mod families;
mod files;
mod first_tables;
mod forecast;
mod formats;
mod ica;
mod impute;
mod interruption;
mod mixture;
mod pipe;
mod plot;
mod report;
mod reproduce;
mod terminal;
mod verbs;
mod view;
mod views;
mod words;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The built command, in a pipe of no width.
fn covary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_covary"));
    command.env_remove("COLUMNS");
    command
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
    for name in ["wine.csv", "wine_gaps.csv", "months.csv", "growth.csv"] {
        std::fs::copy(repository("examples").join(name), examples.join(name)).expect("shipped examples");
    }
    folder
}

/// What a call printed and how it ended.
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

fn run(arguments: &[&str], stdin: &str) -> Said {
    run_in(Path::new("."), arguments, stdin.as_bytes())
}

fn run_in(folder: &Path, arguments: &[&str], stdin: &[u8]) -> Said {
    let mut child = covary()
        .current_dir(folder)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // A command that fails early closes its input; what it says is what counts.
    let _ = child.stdin.take().expect("piped").write_all(stdin);
    let output = child.wait_with_output().expect("the command ends");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs a command line of plain words that must succeed.
#[track_caller]
fn succeed(folder: &Path, command: &str) -> Said {
    let said = run_in(folder, &command.split_whitespace().collect::<Vec<_>>(), b"");
    assert_eq!(said.code, Some(0), "covary {command}\n{}", said.err);
    said
}

/// The model in a file.
fn learned(folder: &Path, name: &str) -> covary::learned::Learned {
    let file = std::fs::File::open(folder.join(name)).expect("written");
    covary::io::model_file::read(file).expect("a model")
}
