//! What is said about tables with one of a kind or none: never `1 columns`, `inf nats`, `0 of 0` or `p = 0e0`.

use super::run_in;
use covary::family::{Arrangement, Family, Kind};
use std::fs;
use std::path::Path;

/// Words that follow a number.
const PLURALS: [&str; 19] = [
    "rows",
    "columns",
    "gaps",
    "components",
    "cells",
    "models",
    "draws",
    "steps",
    "classes",
    "values",
    "sources",
    "views",
    "lines",
    "iterations",
    "factors",
    "folds",
    "pairs",
    "are",
    "were",
];

/// What of a line should not have been said.
fn offense(line: &str) -> Option<&'static str> {
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '-').to_owned();
    // A comma or a bracket between them parts a number from the next word.
    let words: Vec<(&str, String)> = line.split_whitespace().map(|word| (word, bare(word))).collect();
    for pair in words.windows(2) {
        let [(before, number), (after, what)] = pair else { unreachable!("windows of two") };
        let parted = before.ends_with([',', ':', ';', ')']) || after.starts_with('(');
        if number == "1" && !parted && PLURALS.contains(&what.as_str()) {
            return Some("a plural after 1");
        }
    }
    for (_, word) in &words {
        match word.trim_start_matches('-') {
            "inf" | "NaN" | "nan" => return Some("a number that is none"),
            "0e0" => return Some("0e0"),
            _ => {}
        }
    }
    line.contains("0 of 0 ").then_some("0 of 0")
}

#[test]
fn offenses_are_seen() {
    for bad in ["3 rows and 1 columns: x", "-inf nats", "(p = 0e0)", "0 of 0 rows", "1 are left", "a NaN."] {
        assert!(offense(bad).is_some(), "{bad}");
    }
    for good in ["11 columns", "0.1 rows", "1 row", "row 1, columns b", "10 of 0.5", "1 (components"] {
        assert_eq!(offense(good), None, "{good}");
    }
}

/// Numbers between −½ and ½.
fn numbers() -> impl FnMut() -> f64 {
    let mut state = 7_u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64 - 0.5
    }
}

/// Rows along one direction; `gap` gets the row, the column and the place along it.
fn along(rows: usize, columns: usize, gap: impl Fn(usize, usize, f64) -> bool) -> String {
    let mut next = numbers();
    let mut text = (0..columns).map(|j| format!("c{j}")).collect::<Vec<_>>().join(",") + "\n";
    for i in 0..rows {
        let x = next();
        let cells: Vec<String> = (0..columns)
            .map(|j| {
                let value = x * (j + 1) as f64 + 0.2 * next();
                if gap(i, j, x) { String::new() } else { value.to_string() }
            })
            .collect();
        text += &(cells.join(",") + "\n");
    }
    text
}

fn tables() -> Vec<(&'static str, String)> {
    let rows = |rows: Vec<[usize; 3]>| {
        let row = |[a, b, c]: &[usize; 3]| format!("{a},{b},{c}\n");
        rows.iter().map(row).collect::<Vec<_>>().concat()
    };
    let line = rows((0..12).map(|i| [i, 2 * i, 3 * i]).collect());
    let classes = rows((0..20).map(|i| [i % 2, i % 7, (i * i) % 5]).collect());
    vec![
        ("one_column", "x\n1\n2\n\n4\n7\n".to_owned()),
        ("one_row", "a,b,c\n1,,2\n".to_owned()),
        ("two_rows", "a,b\n1,2\n3,\n".to_owned()),
        ("all_gaps", "a,b\n,\n,\n".to_owned()),
        ("constant", "a,b,c\n1,2,5\n1,3,\n1,5,7\n1,4,1\n1,,3\n".to_owned()),
        ("all_constant", "a,b\n1,2\n1,2\n1,\n".to_owned()),
        ("observed_once", "a,b,c\n1,2,\n2,3,\n3,5,9\n4,4,\n2,,\n".to_owned()),
        ("repeated", "a,b\n1,2\n1,2\n3,4\n1,2\n".to_owned()),
        ("empty_row", "a,b,c\n1,2,3\n,,\n2,3,5\n3,1,4\n5,2,\n4,4,4\n".to_owned()),
        ("straight_line", format!("a,b,c\n{line}12,,\n")),
        ("classes", format!("k,a,b\n{classes}")),
        ("one_gap", along(30, 3, |i, j, _| (i, j) == (3, 1))),
        ("complete", along(30, 4, |_, _, _| false)),
        // Which cells are missing follows the component so closely that the probability of it is 0.
        ("trend", along(300, 4, |_, j, x| j == 0 && x > 0.0)),
    ]
}

/// Runs a call, whatever becomes of it, and looks at all that it says; of standard output where it has words.
fn check(folder: &Path, call: &str, offenses: &mut Vec<String>) {
    let said = run_in(folder, &call.split_whitespace().collect::<Vec<_>>(), b"");
    let words = if ["inspect", "select"].iter().any(|verb| call.starts_with(verb)) { &said.out } else { "" };
    for line in said.err.lines().chain(words.lines()) {
        if let Some(why) = offense(line) {
            offenses.push(format!("covary {call}: {why}: {line}"));
        }
    }
    if said.err.contains("panicked") || ![Some(0), Some(1), Some(2)].contains(&said.code) {
        offenses.push(format!("covary {call}: ended with {:?}: {}", said.code, said.err));
    }
}

#[test]
fn odd_tables_are_spoken_of_in_whole_words() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    let mut offenses = Vec::new();
    let plain = |family: &&Family| family.arrangement() == Arrangement::Exchangeable && !family.has_views();
    let families: Vec<Family> = Family::ALL.iter().filter(plain).copied().collect();
    let views = "--view x=c0,c1 --view y=c2,c3";
    for (table, text) in tables() {
        fs::write(root.join("t.csv"), text).expect("writable");
        let mut check = |call: &str| {
            let before = offenses.len();
            check(root, call, &mut offenses);
            offenses[before..].iter_mut().for_each(|o| *o = format!("{table}: {o}"));
        };
        for &family in &families {
            let full = matches!(family, Family::Gaussian | Family::Gmm);
            let mixture = family.kind() == Kind::Mixture;
            for components in if full { &[""][..] } else { &["", "--components 1"] } {
                // Sizes are compared once; to compare them takes most of the time.
                let sizes = if mixture && !(full || components.is_empty()) { "--mixtures 2" } else { "" };
                check(&format!("impute t.csv --model {family} {components} {sizes} -o out.csv"));
                if mixture && components.is_empty() {
                    continue;
                }
                let _ = fs::remove_file(root.join("m.covary"));
                check(&format!("fit t.csv --model {family} {components} {sizes} --check -o m.covary"));
                if !root.join("m.covary").exists() {
                    check(&format!("fit t.csv --model {family} {components} {sizes} -o m.covary"));
                }
                if root.join("m.covary").exists() {
                    for call in [
                        "inspect m.covary",
                        "transform m.covary t.csv -o out.csv",
                        "score m.covary t.csv -o out.csv",
                        "reconstruct m.covary t.csv -o out.csv",
                        "sample m.covary --rows 1 -o out.csv",
                        "impute t.csv --model m.covary -o out.csv",
                        "plot m.covary t.csv --kind missing -o out.svg",
                    ] {
                        check(call);
                    }
                }
            }
        }
        check("select t.csv --max-components 2");
        check("select t.csv --model mppca --max-mixtures 2 --max-components 1");
        check("report t.csv -o out.html");
        check("fit t.csv --model bpca --inference gibbs --prior draws=20 -o m.covary");
        check("fit t.csv --target k -o m.covary");
        check(&format!("fit t.csv --model pcca {views} -o m.covary"));
        check(&format!("fit t.csv --model gfa {views} -o m.covary"));
    }
    assert!(offenses.is_empty(), "{}", offenses.join("\n"));
}
