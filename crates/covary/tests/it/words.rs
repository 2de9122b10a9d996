//! Documents, messages and comments use the words of a statistics text, in American spelling.
//!
//! A banned phrase comes with what to write instead. Words are compared whole and in any case; `snake_case` and
//! `CamelCase` are taken apart, so that names of items are read like prose.

use std::fs;
use std::path::{Path, PathBuf};

/// Where a phrase is banned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Everywhere,
    /// README, CHANGELOG, SECURITY and the guide.
    Documents,
}
use Scope::{Documents, Everywhere};

/// (phrase, what to write instead, where)
const BANNED: &[(&str, &str, Scope)] = &[
    ("road", "method", Everywhere),
    ("roads", "methods", Everywhere),
    ("hold the true", "cover the true", Everywhere),
    ("interval that holds", "interval that covers", Everywhere),
    ("intervals held", "intervals covered", Everywhere),
    ("interval holds", "interval covers", Everywhere),
    ("intervals hold", "intervals cover", Everywhere),
    ("intervals that hold", "intervals that cover", Everywhere),
    ("what the intervals hold", "coverage of the intervals", Everywhere),
    ("so many", "this many, or the number itself", Everywhere),
    ("but for", "except for", Everywhere),
    ("surely", "certainly, or how certain", Everywhere),
    ("surer", "more certain", Everywhere),
    ("too sure", "too certain, or intervals that are too narrow", Everywhere),
    ("how sure", "how certain", Everywhere),
    ("hears", "is called with", Everywhere),
    ("leans to", "tends to", Everywhere),
    ("variance in columns", "eigenvalue", Everywhere),
    ("still to rise", "gap to the final value", Everywhere),
    ("stand above", "exceed", Everywhere),
    ("shuffled columns", "permuted columns (parallel analysis)", Everywhere),
    ("too far to be chance", "outliers (with the p-value)", Everywhere),
    ("chance of a row", "p-value", Everywhere),
    ("what to doubt", "limitations, or warnings", Everywhere),
    ("words for the tab key", "shell completions", Everywhere),
    ("made again", "reproduced, or repeated", Everywhere),
    ("in sight", "after seeing", Everywhere),
    ("drawn rows", "simulated rows", Documents),
    ("rising", "ascending, or increasing", Documents),
    ("falling", "descending, or decreasing", Documents),
    ("turned", "rotated", Documents),
    ("offered", "allowed", Documents),
    ("hears of", "is called with", Documents),
    ("set aside", "excluded", Documents),
    ("wrong call", "usage error", Documents),
    ("grey", "gray", Everywhere),
    ("licence", "license", Everywhere),
    ("modelled", "modeled", Everywhere),
    ("modelling", "modeling", Everywhere),
    ("labelled", "labeled", Everywhere),
    ("labelling", "labeling", Everywhere),
    ("cancelled", "canceled", Everywhere),
    ("artefact", "artifact", Everywhere),
    ("judgement", "judgment", Everywhere),
    ("learnt", "learned", Everywhere),
    ("whilst", "while", Everywhere),
];

/// Endings of British spelling, the American ones, and words that end so on both sides of the ocean.
const ENDINGS: &[(&[&str], &str, &[&str])] = &[
    (
        &["ise", "ises", "ised", "iser", "isers", "ising", "isation", "isations"],
        "-ize, -ization",
        &[
            "arise",
            "arises",
            "arising",
            "cellwise",
            "comprise",
            "comprises",
            "concise",
            "denoise",
            "denoised",
            "denoising",
            "devise",
            "devised",
            "exercise",
            "exercises",
            "kaiser",
            "likewise",
            "mises",
            "noise",
            "noises",
            "otherwise",
            "pairwise",
            "pointwise",
            "precise",
            "premise",
            "premises",
            "promise",
            "promised",
            "promises",
            "promising",
            "raise",
            "raised",
            "raises",
            "raising",
            "revise",
            "revised",
            "rise",
            "rises",
            "rising",
            "stepwise",
            "supervised",
            "surprise",
            "surprises",
            "surprising",
            "wise",
        ],
    ),
    (&["yse", "yses", "ysed", "yser", "ysers", "ysing"], "-yze", &["analyses"]),
    (
        &["our", "ours", "oured", "ouring", "ourable", "ourhood"],
        "-or",
        &["contour", "contours", "four", "hour", "hours", "our", "ours", "pour", "tour", "your", "yours"],
    ),
    (&["tre", "tres", "ntred", "ntring"], "-ter, -tered, -tering", &[]),
];

/// (file, phrase, reason)
const ALLOWED: &[(&str, &str, &str)] = &[
    (
        "crates/covary-cli/src/cmd/plot.rs",
        "colour",
        "`--colour` is accepted as another spelling of `--color`",
    ),
    (
        "crates/covary/src/infer/mixture/mod.rs",
        "centres",
        "a word that model files of earlier versions contain",
    ),
    ("crates/covary-py/tests/test_sklearn_own.py", "regularisation", "the name of a test of scikit-learn"),
    ("crates/covary/tests/it/words.rs", "", "this table"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Documents and sources below a folder, in order; generated or foreign text is passed over.
fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut entries: Vec<PathBuf> = entries.collect();
    entries.sort();
    for entry in entries {
        let name = entry.file_name().expect("a name").to_string_lossy().into_owned();
        let ending = entry.extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
        if entry.is_dir() {
            if !matches!(name.as_str(), "target" | "gallery" | "math" | "golden") && !name.starts_with('.') {
                files(&entry, out);
            }
        } else if matches!(ending.as_str(), "rs" | "py" | "pyi")
            || (ending == "md" && folder.ends_with("docs"))
        {
            out.push(entry);
        }
    }
}

/// The words of a line in lower case; names are taken apart at `_` and where a capital follows a small letter.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut after_small) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        if !word.is_empty() && (!c.is_alphabetic() || (after_small && c.is_uppercase())) {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphabetic() {
            word.extend(c.to_lowercase());
        }
        after_small = c.is_lowercase();
    }
    words.extend(Some(word).filter(|w| !w.is_empty()));
    words
}

/// What is wrong with a line of a file: phrases, each with what to write instead.
fn faults(path: &str, line: &str) -> Vec<(String, String)> {
    let is_document = Path::new(path).extension().is_some_and(|e| e == "md");
    let words = words(line);
    let mut found = Vec::new();
    for &(phrase, instead, scope) in BANNED {
        let applies = match scope {
            Everywhere => true,
            Documents => is_document,
        };
        let parts: Vec<&str> = phrase.split(' ').collect();
        if applies && words.windows(parts.len()).any(|window| window == parts) {
            found.push((phrase.to_owned(), instead.to_owned()));
        }
    }
    for (endings, instead, fine) in ENDINGS {
        let british = |w: &&String| endings.iter().any(|e| w.ends_with(e)) && !fine.contains(&w.as_str());
        found.extend(words.iter().filter(british).map(|w| (w.clone(), (*instead).to_owned())));
    }
    let allowed =
        |phrase: &str| ALLOWED.iter().any(|(file, p, _)| path == *file && (p.is_empty() || *p == phrase));
    found.retain(|(phrase, _)| !allowed(phrase));
    found
}

#[test]
fn the_words_are_those_of_a_statistics_text() {
    let mut paths: Vec<PathBuf> =
        ["README.md", "CHANGELOG.md", "SECURITY.md"].map(|name| root().join(name)).to_vec();
    for folder in ["docs", "crates", "xtask", "bench", "examples", "fuzz"] {
        files(&root().join(folder), &mut paths);
    }
    let (mut n_lines, mut wrong) = (0, Vec::new());
    for path in paths {
        let text = fs::read_to_string(&path).expect("a text");
        let name = path.strip_prefix(root()).expect("below the root").to_string_lossy().replace('\\', "/");
        for (k, line) in text.lines().enumerate() {
            n_lines += 1;
            for (phrase, instead) in faults(&name, line) {
                wrong.push(format!("{name}:{}: `{phrase}`; write {instead}", k + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "words to replace (the table is {}):\n{}", file!(), wrong.join("\n"));
    assert!(n_lines > 50_000, "{n_lines} lines were read: the test looks in the wrong place");
}

#[test]
fn phrases_are_found_in_prose_and_in_names() {
    let phrases = |line: &str| -> Vec<String> {
        faults("crates/covary/src/x.rs", line).into_iter().map(|(phrase, _)| phrase).collect()
    };
    assert_eq!(words("BroadRoad_of isRoad2: Eᵀ"), ["broad", "road", "of", "is", "road", "eᵀ"]);
    assert_eq!(phrases("let road = ByRoad::new(broad);"), ["road"]);
    assert_eq!(phrases("95 % Intervals hold the true value"), ["hold the true", "intervals hold"]);
    assert_eq!(
        phrases("/// The colour of a factorised centre, with noise of ours"),
        ["factorised", "colour", "centre"]
    );
    assert_eq!(phrases("rows falling out, `threshold`, four hours, pairwise"), Vec::<String>::new());
    assert_eq!(faults("docs/em.md", "falling").len(), 1);
    assert_eq!(faults("crates/covary-cli/src/main.rs", "so many roads").len(), 2);
}
