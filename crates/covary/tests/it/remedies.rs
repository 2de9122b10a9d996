//! The library speaks to every interface: no text of it names a flag of the command. What a caller can do is data
//! ([`covary::Remedy`]), which each interface says by its own names.

use std::fs;
use std::path::{Path, PathBuf};

/// Rust sources below a folder, in order; tests beside the code and the report, a page of the command, are passed over.
fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for entry in entries {
        let name = entry.file_name().expect("a name").to_string_lossy().into_owned();
        if entry.is_dir() && name != "page" {
            sources(&entry, out);
        } else if entry.extension().is_some_and(|e| e == "rs") && name != "tests.rs" {
            out.push(entry);
        }
    }
}

/// The string literals of a source, each with the line it begins on; comments and characters are passed over.
fn literals(source: &str) -> Vec<(usize, String)> {
    let (mut found, mut rest, mut before) = (Vec::new(), source, ' ');
    let line = |rest: &str| source[..source.len() - rest.len()].matches('\n').count() + 1;
    while let Some(c) = rest.chars().next() {
        let raw = if before.is_alphanumeric() || before == '_' { None } else { raw_end(rest) };
        let after = if rest.starts_with("//") {
            rest.find('\n').map_or("", |end| &rest[end..])
        } else if rest.starts_with("/*") {
            after_block(rest)
        } else if let Some((start, end)) = raw {
            let text = &rest[start..];
            let length = text.find(&end).expect("a raw string ends");
            found.push((line(rest), text[..length].to_owned()));
            &text[length + end.len()..]
        } else if c == '"' {
            let length = quoted(&rest[1..], '"');
            found.push((line(rest), rest[1..=length].to_owned()));
            &rest[length + 2..]
        } else if c == '\'' {
            after_character(rest)
        } else {
            &rest[c.len_utf8()..]
        };
        before = c;
        rest = after;
    }
    found
}

/// Where the text of a raw string that begins here starts, and what ends it.
fn raw_end(rest: &str) -> Option<(usize, String)> {
    let marks = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = marks.len() - marks.trim_start_matches('#').len();
    marks[hashes..].starts_with('"').then(|| {
        let start = rest.len() - marks.len() + hashes + 1;
        (start, format!("\"{}", "#".repeat(hashes)))
    })
}

fn after_block(rest: &str) -> &str {
    let (mut depth, mut at) = (1, 2);
    while depth > 0 {
        let opens = rest[at..].find("/*").unwrap_or(usize::MAX);
        let closes = rest[at..].find("*/").expect("a comment ends");
        depth = if opens < closes { depth + 1 } else { depth - 1 };
        at += opens.min(closes) + 2;
    }
    &rest[at..]
}

/// Bytes up to the quote that closes.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at,
            _ => {}
        }
    }
    panic!("a quote is never closed")
}

/// A character such as `'"'` ends two quotes later; a lifetime such as `'a` has one.
fn after_character(rest: &str) -> &str {
    let mut chars = rest[1..].chars();
    let (first, second) = (chars.next(), chars.next());
    if first == Some('\\') || second == Some('\'') {
        let text = &rest[1..];
        &text[quoted(text, '\'') + 1..]
    } else {
        &rest[1..]
    }
}

/// Whether a text speaks the language of the command: ` --flag`, or `covary verb` as it is typed.
fn is_of_command(text: &str) -> bool {
    let flag = text.match_indices("--").any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + 2..].chars().next();
        before.is_none_or(|c| c.is_whitespace() || "`'(".contains(c))
            && after.is_some_and(|c| c.is_ascii_lowercase())
    });
    flag || text.contains("`covary ")
}

#[test]
fn the_library_names_no_flag_of_the_command() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut paths = Vec::new();
    for name in ["covary/src", "covary-report/src"] {
        sources(&crates.join(name), &mut paths);
    }
    let (mut n_literals, mut wrong) = (0, Vec::new());
    for path in paths {
        for (line, text) in literals(&fs::read_to_string(&path).expect("a source file")) {
            n_literals += 1;
            if is_of_command(&text) {
                wrong.push(format!("{}:{line}: {text}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "say it in plain words, and by a remedy as data:\n{}", wrong.join("\n"));
    assert!(n_literals > 1000, "{n_literals} literals were read: the test looks in the wrong place");
}

#[test]
fn literals_are_told_from_comments_characters_and_lifetimes() {
    let source = r##"// "no"
/* "no" /* "no" */ "no" */
fn f<'a>(x: &'a str) -> char { if x == "a \" --b" { '"' } else { '\'' } }
const R: &str = r#"raw "--flag" text"#; // don't
let attribute = br"bytes"; let bar = "last";"##;
    let found: Vec<(usize, String)> = literals(source);
    let want = [(3, r#"a \" --b"#), (4, r#"raw "--flag" text"#), (5, "bytes"), (5, "last")];
    assert_eq!(found, want.map(|(line, text)| (line, text.to_owned())));
    for text in ["say --gaps '?'", "--kind {kind}", "(--exclude)", "first\n--model", "`covary impute` fills"]
    {
        assert!(is_of_command(text), "{text}");
    }
    for text in ["a -- b", "---", "--{k}", "a--b", "a covary model"] {
        assert!(!is_of_command(text), "{text}");
    }
}
