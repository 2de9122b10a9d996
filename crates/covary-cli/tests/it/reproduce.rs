//! `covary reproduce`: the list, one exhibit, those left out, and calls that cannot be meant.

use super::{covary, run_in, succeed};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[test]
fn the_list_says_what_each_exhibit_needs() {
    let folder = folder();
    let said = succeed(folder.path(), "reproduce --list");
    for exhibit in covary_reproduce::EXHIBITS {
        assert!(said.out.contains(exhibit.name) && said.out.contains(exhibit.title), "{}", exhibit.name);
    }
    let said = succeed(folder.path(), "reproduce --list --json");
    let list: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(list["exhibits"].as_array().map(Vec::len), Some(covary_reproduce::EXHIBITS.len()));
}

#[test]
fn an_exhibit_becomes_figure_facts_text_and_page() {
    let folder = folder();
    let root = folder.path();
    let said = succeed(root, "reproduce chen-2018-fig-05 -o out --repeats 3 --json");
    let found: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(found["made"][0]["name"], "chen-2018-fig-05");
    assert!(said.err.contains("rows agree"), "{}", said.err);
    let read = |file: &str| fs::read_to_string(root.join("out").join(file)).expect("written");
    assert!(read("chen-2018-fig-05.svg").starts_with("<svg"));
    assert!(read("chen-2018-fig-05.md").contains("| quantity | paper | ours | difference |"));
    let first = read("chen-2018-fig-05.json");
    // Another exhibit joins the page; the first stays on it, and stays as it was.
    succeed(root, "reproduce -q chen-2018-fig-11 chen-2018-fig-03 -o out --threads 1");
    let page = read("index.html");
    assert!(page.contains("chen-2018-fig-05") && page.contains("chen-2018-fig-11"));
    succeed(root, "reproduce -q chen-2018-fig-05 -o out --repeats 3 --threads 1");
    assert_eq!(first, read("chen-2018-fig-05.json"));
}

#[track_caller]
fn refused(root: &Path, command: &str, code: i32, words: &str) {
    let said = run_in(root, &command.split_whitespace().collect::<Vec<_>>(), b"");
    assert_eq!(said.code, Some(code), "covary {command}\n{}", said.err);
    assert!(said.err.contains(words), "covary {command}\n{}", said.err);
}

#[test]
fn wrong_calls_say_what_would_be_right() {
    let folder = folder();
    let root = folder.path();
    refused(root, "reproduce", 2, "--output");
    refused(root, "reproduce chen-2018-fig-05", 2, "--output");
    refused(root, "reproduce chen-2018-fig-99 -o out", 2, "chen-2018-fig-05");
    assert!(!root.join("out").exists(), "nothing is made for a name that is not there");
    fs::write(root.join("file"), "").expect("writable");
    refused(root, "reproduce chen-2018-fig-11 -o file", 1, "file");
}

#[test]
fn missing_data_are_named_and_all_goes_on_without_them() {
    let folder = folder();
    let root = folder.path();
    fs::create_dir(root.join("data")).expect("an empty folder takes a folder");
    refused(root, "reproduce chen-2018-fig-10-mnist -o out --data data", 1, "`mnist`");
    let ended = covary()
        .current_dir(root)
        .args(["reproduce", "all", "-o", "out", "--repeats", "1"])
        .env("COVARY_DATA", root.join("data"))
        .output()
        .expect("the command starts");
    let err = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{err}");
    for exhibit in covary_reproduce::EXHIBITS {
        let made = root.join("out").join(format!("{}.json", exhibit.name)).exists();
        assert_eq!(made, exhibit.needs.is_empty(), "{}", exhibit.name);
        let left_out = err.contains(&format!("warning: {} is left out", exhibit.name));
        assert_eq!(left_out, !made, "{err}");
    }
    let page = fs::read_to_string(root.join("out/index.html")).expect("written");
    assert!(page.contains("Left out"));
}
