//! Every `[M 1.5.2]` in code and documents names a section of `docs/math`: part 1, section 5.2.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The number a line begins with, as headings (`## 5. EM`, `### 5.2 Exact EM`) and paragraphs (`**9.4 Start`) have it.
fn section(line: &str) -> Option<&str> {
    let rest = ["### ", "## ", "**"].iter().find_map(|mark| line.strip_prefix(mark))?;
    let number = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?.trim_end_matches('.');
    number.starts_with(|c: char| c.is_ascii_digit()).then_some(number)
}

fn sections() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (part, name) in
        [(1, "1-gaussian.md"), (2, "2-bayesian.md"), (3, "3-number-of-components.md"), (4, "4-filling.md")]
    {
        let text = fs::read_to_string(root().join("docs/math").join(name)).expect("a part");
        all.extend(text.lines().filter_map(section).map(|number| format!("{part}.{number}")));
    }
    all
}

/// What stands between `[M ` and `]`.
fn citations(text: &str) -> impl Iterator<Item = &str> {
    text.split("[M ").skip(1).filter_map(|rest| rest.split_once(']').map(|(number, _)| number))
}

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let name = entry.file_name().expect("a name").to_string_lossy().into_owned();
        let ending = entry.extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
        if entry.is_dir()
            && !matches!(name.as_str(), "target" | "gallery" | "golden")
            && !name.starts_with('.')
        {
            files(&entry, out);
        } else if matches!(ending.as_str(), "rs" | "py" | "md") {
            out.push(entry);
        }
    }
}

#[test]
fn every_citation_of_the_mathematics_resolves() {
    let sections = sections();
    assert!(sections.contains("1.5.2") && sections.contains("1.9.4") && sections.contains("2.12"));
    let mut found = Vec::new();
    for folder in ["crates", "docs", "bench"] {
        files(&root().join(folder), &mut found);
    }
    found.retain(|path| !path.ends_with("citations.rs"));
    let (mut count, mut lost) = (0, Vec::new());
    for path in found {
        let text = fs::read_to_string(&path).expect("a text");
        for number in citations(&text) {
            count += 1;
            if !sections.contains(number) {
                lost.push(format!("{}: [M {number}]", path.display()));
            }
        }
        if text.contains(concat!("spec ", "§")) {
            lost.push(format!("{}: cites a specification by §", path.display()));
        }
    }
    assert!(lost.is_empty(), "no such section in docs/math:\n{}", lost.join("\n"));
    assert!(count > 80, "{count} citations were found: the test looks in the wrong place");
}
