//! Imports point left: `linalg ← data ← model ← infer ← select ← filling`, `spec` beside `model`, `dynamics` and `functional` beside `filling`, then `family`, `learned`, and on
//! top `io` and `learn`, which do not know each other.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms from the bottom up; a room may enter only rooms on lower floors.
const FLOORS: [&[&str]; 11] = [
    &["error", "checksum", "json", "parallel"],
    &["linalg"],
    &["data"],
    &["model", "spec"],
    &["views"],
    &["infer"],
    &["select", "ica"],
    &["filling", "dynamics", "functional"],
    &["family"],
    &["learned"],
    &["io", "learn"],
];

/// Arrows that are reversed on purpose: (file, room it enters, reason).
const EXCEPTIONS: [(&str, &str, &str); 1] =
    [("data/simulate.rs", "model", "a simulated table comes with the model it was drawn from")];

#[test]
fn no_arrow_is_reversed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let names = reexports(&fs::read_to_string(root.join("lib.rs")).expect("a library"));
    let mut reversed = Vec::new();
    let mut used = Vec::new();
    for file in sources(&root) {
        let path = file.strip_prefix(&root).expect("below the root").to_string_lossy().replace('\\', "/");
        let room = path.split(['/', '.']).next().expect("a first part");
        // The root gathers the rooms; tests beside the code may ask anyone.
        if room == "lib" || path.ends_with("tests.rs") {
            continue;
        }
        for name in entered(&fs::read_to_string(&file).expect("a source file")) {
            let target = names.get(&name).unwrap_or(&name);
            if target == room || floor(target, &path) < floor(room, &path) {
                continue;
            }
            match EXCEPTIONS.iter().find(|(file, to, _)| *file == path && to == target) {
                Some(exception) => used.push(exception),
                None => reversed.push(format!("{path} enters `{target}` (by `crate::{name}`)")),
            }
        }
    }
    assert!(reversed.is_empty(), "imports must point down the floors of this test:\n{}", reversed.join("\n"));
    assert!(EXCEPTIONS.iter().all(|e| used.contains(&e)), "an exception is no longer needed: remove it");
}

#[test]
fn reading_imports_sees_every_form() {
    let source = "use crate::{Dataset, linalg::{dot, Cholesky},\n    model};\n// use crate::io;\nlet x = crate::parallel::merge();\n#[cfg(test)]\nmod tests { use crate::infer::Em; }";
    assert_eq!(entered(source), ["Dataset", "linalg", "model", "parallel"]);
    let names = reexports("pub use data::{CentralMoments, Dataset};\npub use error::Error;\n");
    assert_eq!(names["Dataset"], "data");
    assert_eq!(names["Error"], "error");
}

fn floor(room: &str, path: &str) -> usize {
    FLOORS.iter().position(|rooms| rooms.contains(&room)).unwrap_or_else(|| {
        panic!("{path}: `{room}` has no floor; give it one in this test and in ARCHITECTURE.md")
    })
}

/// What follows `crate::` outside comments and test modules, first names only.
fn entered(source: &str) -> Vec<String> {
    let code: String = source
        .split("#[cfg(test)]\nmod tests")
        .next()
        .expect("split gives one part")
        .lines()
        .map(|line| line.split("//").next().expect("split gives one part"))
        .collect::<Vec<_>>()
        .join("\n");
    let mut names = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            names.extend(group_items(group).iter().map(|item| first_name(item)));
        } else {
            names.push(first_name(rest));
        }
    }
    names
}

/// The comma-separated items up to the brace that closes the group.
fn group_items(group: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut depth = 0;
    for c in group.chars() {
        match c {
            '}' if depth == 0 => break,
            ',' if depth == 0 => items.push(String::new()),
            _ => {
                depth += i32::from(c == '{') - i32::from(c == '}');
                items.last_mut().expect("never empty").push(c);
            }
        }
    }
    items.retain(|item| !item.trim().is_empty());
    items
}

fn first_name(path: &str) -> String {
    path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Names the root re-exports and the room each comes from.
fn reexports(lib: &str) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for (at, _) in lib.match_indices("\npub use ").chain(lib.starts_with("pub use ").then_some((0, ""))) {
        let rest = lib[at..].trim_start().trim_start_matches("pub use ");
        let statement = rest.split(';').next().expect("split gives one part");
        let (room, items) = statement.split_once("::").expect("a room and a name");
        for item in group_items(items.strip_prefix('{').unwrap_or(items)) {
            let name = item.rsplit([':', ' ']).next().expect("split gives one part");
            names.insert(name.trim().to_owned(), room.to_owned());
        }
    }
    names
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}
