//! What is written is there, what is there is not lost, and names from files are only names.

use super::{covary, folder_with_examples, repository, run_in, succeed};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn fitted() -> tempfile::TempDir {
    let folder = folder_with_examples();
    succeed(folder.path(), "fit examples/wine_gaps.csv --components 2 -o wine.covary");
    folder
}

#[cfg(target_os = "linux")]
#[test]
fn bytes_that_find_no_place_are_a_failure_of_every_verb() {
    let folder = fitted();
    let full = || File::options().write(true).open("/dev/full").expect("a device that is always full");
    for call in [
        "plot wine.covary --kind scree",
        "plot wine.covary --kind hinton",
        "plot wine.covary --kind loadings",
        "inspect wine.covary",
        "inspect wine.covary --json",
        "select examples/wine.csv --max-components 2",
        "sample wine.covary --rows 2",
        "score wine.covary examples/wine.csv --bare",
        "score wine.covary examples/wine.csv --json -o scores.csv",
        "completions bash",
        "man",
        "--help",
        "impute --help",
        "--version",
    ] {
        let mut command = covary();
        command.current_dir(folder.path()).args(call.split_whitespace()).stdout(full());
        let output = command.output().expect("the command starts");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "covary {call}: {err}");
        assert!(err.contains("standard output"), "covary {call}: {err}");
    }
    for call in ["plot wine.covary --kind scree -o /dev/full", "sample wine.covary --rows 2 -o /dev/full"] {
        let said = run_in(folder.path(), &call.split_whitespace().collect::<Vec<_>>(), b"");
        assert_eq!(said.code, Some(1), "covary {call}: {}", said.err);
        assert!(
            said.err.contains("/dev/full: cannot be written") && !said.err.contains("wrote"),
            "{}",
            said.err
        );
    }
}

#[test]
fn endings_that_say_another_format_are_refused() {
    let folder = fitted();
    let root = folder.path();
    for (call, name) in [
        ("impute examples/wine_gaps.csv --components 1 -o out.xlsx", "out.xlsx"),
        ("impute examples/wine_gaps.csv --components 1 -o out.xyz", "out.xyz"),
        ("impute examples/wine_gaps.csv --components 1 -o out.csv --cells cells.xlsx", "cells.xlsx"),
        ("score wine.covary examples/wine.csv -o out.json", "out.json"),
        ("sample wine.covary --rows 3 -o out.xls", "out.xls"),
    ] {
        let said = run_in(root, &call.split_whitespace().collect::<Vec<_>>(), b"");
        assert_eq!(said.code, Some(2), "covary {call}: {}", said.err);
        assert!(
            said.err.contains(name)
                && said.err.contains(".csv")
                && (said.err.contains(".parquet") || said.err.contains("xlsx is read and not written")),
            "{}",
            said.err
        );
        assert!(!root.join(name).exists());
    }
    succeed(root, "sample wine.covary --rows 3 -o out.dat --output-format csv");
    succeed(root, "sample wine.covary --rows 3 -o out");
    succeed(root, "sample wine.covary --rows 3 -o /dev/null");
}

#[test]
fn draws_never_write_over_files_unasked() {
    let folder = fitted();
    let root = folder.path();
    let call = "impute examples/wine_gaps.csv --model wine.covary --no-check --draws 3 -o d.csv";
    fs::write(root.join("d-2.csv"), "mine").expect("writable");
    let said = run_in(root, &call.split_whitespace().collect::<Vec<_>>(), b"");
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("d-2.csv") && said.err.contains("--overwrite"), "{}", said.err);
    assert_eq!(fs::read_to_string(root.join("d-2.csv")).expect("still there"), "mine");
    assert!(!root.join("d.csv").exists() && !root.join("d-1.csv").exists());
    succeed(root, &format!("{call} --overwrite"));
    assert_ne!(fs::read_to_string(root.join("d-2.csv")).expect("written"), "mine");
    let said = run_in(
        root,
        &["impute", "examples/wine_gaps.csv", "--model", "wine.covary", "--draws", "3", "-o", "/dev/null"],
        b"",
    );
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("/dev/null is no file"), "{}", said.err);
}

#[cfg(unix)]
#[test]
fn links_that_lead_nowhere_are_refused_and_stay() {
    use std::os::unix::fs::symlink;
    let folder = fitted();
    let root = folder.path();
    symlink("nowhere/at-all.csv", root.join("dangling.csv")).expect("a link");
    symlink("b.csv", root.join("a.csv")).expect("a link");
    symlink("a.csv", root.join("b.csv")).expect("a link");
    for name in ["dangling.csv", "a.csv"] {
        let said = run_in(root, &["sample", "wine.covary", "--rows", "2", "-o", name], b"");
        assert_eq!(said.code, Some(1), "{}", said.err);
        assert!(said.err.contains("is a link that leads to no file"), "{}", said.err);
        assert!(fs::symlink_metadata(root.join(name)).expect("still there").is_symlink());
    }
    fs::write(root.join("real.csv"), "old").expect("writable");
    symlink("real.csv", root.join("good.csv")).expect("a link");
    succeed(root, "sample wine.covary --rows 2 -o good.csv");
    assert_ne!(fs::read_to_string(root.join("real.csv")).expect("written through the link"), "old");
}

#[test]
fn names_do_nothing_to_a_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    let mut lines = vec!["a\u{7}b,c\u{202e}d,\u{1b}[2Je".to_owned()];
    for i in 0..40 {
        let x = f64::from(i * 7 % 13);
        let gap = if i % 5 == 0 { String::new() } else { format!("{}", x * 2.0 + f64::from(i % 3)) };
        lines.push(format!("{x},{gap},{}", 3.0 - x + f64::from(i % 4)));
    }
    fs::write(root.join("t.csv"), lines.join("\n") + "\n").expect("writable");
    let harmless = |words: &str| !words.contains(['\u{7}', '\u{202e}', '\u{1b}', '\r']);
    let fit = succeed(root, "fit t.csv --components 1 -o m.covary");
    let impute = succeed(root, "impute t.csv --components 1 -o f.csv");
    let inspect = succeed(root, "inspect m.covary");
    let refused = run_in(root, &["impute", "t.csv", "--columns", "nothing\u{7}", "-o", "f.csv"], b"");
    for words in [fit.err, impute.err, inspect.out, refused.err] {
        assert!(harmless(&words), "{words:?}");
    }
    let filled = fs::read_to_string(root.join("f.csv")).expect("written");
    assert!(filled.starts_with("a\u{7}b,c\u{202e}d,\u{1b}[2Je\n"), "data keep their bytes");
}

#[test]
fn parts_of_a_sample_are_the_whole() {
    let folder = fitted();
    let root = folder.path();
    // 80 000 rows of 13 columns are more than one part in any format.
    succeed(root, "sample wine.covary --rows 81000 --seed 3 -o long.csv");
    succeed(root, "sample wine.covary --rows 5 --seed 3 -o short.csv");
    let (long, short) = (
        fs::read_to_string(root.join("long.csv")).unwrap(),
        fs::read_to_string(root.join("short.csv")).unwrap(),
    );
    assert!(long.starts_with(&short), "the same rows, however many");
    assert_eq!(long.lines().count(), 81_001);
    succeed(root, "score wine.covary long.csv --bare -o t.csv");
    for format in ["npz", "parquet", "arrow", "tsv.gz"] {
        succeed(root, &format!("sample wine.covary --rows 81000 --seed 3 -o long.{format}"));
        succeed(root, &format!("score wine.covary long.{format} --bare -o s.csv"));
        assert!(
            fs::read(root.join("s.csv")).unwrap() == fs::read(root.join("t.csv")).unwrap(),
            "{format} holds the same rows"
        );
    }
    succeed(root, "sample wine.covary --rows 81000 --seed 3 -o long.npy");
    assert_eq!(fs::metadata(root.join("long.npy")).expect("written").len() % 64, 0);
    assert!(fs::metadata(root.join("long.npy")).expect("written").len() >= 81_000 * 13 * 8);
}

/// Starts a call, waits until a temporary file of it has grown, and sends a signal.
#[cfg(target_os = "linux")]
fn signaled(root: &Path, call: &str, signal: &str) -> (Option<i32>, String) {
    let mut child = covary()
        .current_dir(root)
        .args(call.split_whitespace())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let growing = || {
        temporary_files(root)
            .iter()
            .any(|name| fs::metadata(root.join(name)).is_ok_and(|m| m.len() > 100_000))
    };
    while !growing() {
        assert!(child.try_wait().expect("a child").is_none(), "it ended before it wrote");
        std::thread::sleep(Duration::from_millis(10));
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().expect("kill").success());
    let code = child.wait().expect("it ends").code();
    let mut err = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut err).expect("text");
    (code, err)
}

#[cfg(target_os = "linux")]
fn temporary_files(root: &Path) -> Vec<String> {
    let names = fs::read_dir(root).expect("a folder").map(|e| e.expect("an entry").file_name());
    names.map(|n| n.to_string_lossy().into_owned()).filter(|n| n.starts_with(".covary-")).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn a_sample_stops_at_signals_and_leaves_nothing_behind() {
    let folder = fitted();
    let root = folder.path();
    let call = "sample wine.covary --rows 20000000 -o s.csv";
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let (got, err) = signaled(root, call, signal);
        assert_eq!(got, Some(code), "{signal}: {err}");
        assert_eq!(temporary_files(root), Vec::<String>::new(), "{signal}");
        assert!(!root.join("s.csv").exists(), "{signal}");
    }
}

#[test]
fn what_unpacks_beyond_the_memory_allowed_is_refused_with_the_figure() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    let zip = |text: &[u8]| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(text).and_then(|()| out.finish()).expect("memory takes all")
    };
    let cell = [b"a,b\n1,".as_slice(), &vec![b'7'; 40_000_000], b"\n"].concat();
    let rows = [b"a,b\n".as_slice(), &b"1.5,2.5\n".repeat(5_000_000)].concat();
    fs::write(root.join("cell.csv.gz"), zip(&cell)).expect("writable");
    fs::write(root.join("rows.csv.gz"), zip(&rows)).expect("writable");
    fs::write(root.join("rows.csv"), &rows).expect("writable");
    for name in ["cell.csv.gz", "rows.csv.gz", "rows.csv"] {
        let said = run_in(root, &["impute", name, "--max-memory", "30M", "-o", "out.csv"], b"");
        assert_eq!(said.code, Some(1), "{name}: {}", said.err);
        assert!(
            said.err.contains("10.0 MB are allowed") && said.err.contains("(--max-memory SIZE)"),
            "{name}: {}",
            said.err
        );
    }
    let header = format!("{:<117}\n", "{'descr': '<f8', 'fortran_order': False, 'shape': (2000000, 10), }");
    let mut npy =
        [b"\x93NUMPY\x01\x00".as_slice(), &(header.len() as u16).to_le_bytes(), header.as_bytes()].concat();
    npy.resize(npy.len() + 160_000_000, 0);
    fs::write(root.join("x.npy"), npy).expect("writable");
    let said = run_in(root, &["impute", "x.npy", "--max-memory", "100M", "-o", "out.csv"], b"");
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.err.contains("320.0 MB") && said.err.contains("100.0 MB"), "{}", said.err);
}

#[test]
fn gaps_of_a_class_column_are_those_of_every_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    let mut lines = vec!["kind,x,y".to_owned()];
    for i in 0..60 {
        let kind = ["red", "blue", ["none", "Null", "?", "-99.0"][i / 3 % 4]][i % 3];
        let x = (i * 37 % 19) as f64 + if i % 3 == 0 { 30.0 } else { 0.0 };
        lines.push(format!("{kind},{x},{}", x * 0.5 + (i * 11 % 7) as f64));
    }
    fs::write(root.join("t.csv"), lines.join("\n") + "\n").expect("writable");
    let call = [
        "fit",
        "t.csv",
        "--model",
        "ppca",
        "--target",
        "kind",
        "--components",
        "1",
        "--gaps",
        "?,-99",
        "-o",
        "m.covary",
    ];
    let said = run_in(root, &call, b"");
    assert_eq!(said.code, Some(0), "{}", said.err);
    let inspected = succeed(root, "inspect m.covary --json").out;
    assert!(
        ["none", "Null", "?", "-99"].iter().all(|gap| !inspected.contains(&format!("\"{gap}"))),
        "{inspected}"
    );
    assert!(inspected.contains("\"red\"") && inspected.contains("\"blue\""), "{inspected}");
}

#[test]
fn a_damaged_arrow_file_is_refused_without_the_text_of_a_panic() {
    let folder = fitted();
    let root = folder.path();
    succeed(root, "sample -q wine.covary --rows 60 -o t.csv");
    let text = fs::read_to_string(root.join("t.csv")).expect("written");
    let named: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(i, line)| format!("{line},{}\n", if i == 0 { "name" } else { "w" }))
        .collect();
    fs::write(root.join("named.csv"), named.concat()).expect("writable");
    succeed(root, "impute -q named.csv -o named.arrow");
    let whole = fs::read(root.join("named.arrow")).expect("written");
    let mut state = 5_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for k in 0..120 {
        let mut damaged = whole.clone();
        // Half of them where the file says what lies where.
        let at = if k % 2 == 0 { next(whole.len()) } else { whole.len() - 1 - next(1200) };
        damaged[at] ^= 1 << next(8);
        fs::write(root.join("x.arrow"), damaged).expect("writable");
        let said = run_in(root, &["score", "wine.covary", "x.arrow", "-o", "s.csv"], b"");
        assert!(!said.err.contains("panicked"), "byte {at}: {}", said.err);
        assert!(matches!(said.code, Some(0 | 1)), "byte {at}: {:?} {}", said.code, said.err);
    }
}

#[test]
fn tables_of_numbers_beyond_the_memory_allowed_are_refused_with_the_figure() {
    let folder = fitted();
    let root = folder.path();
    for (name, takes) in
        [("s.parquet", "41.6 MB"), ("s.arrow", "MB"), ("s.npz", "41.6 MB"), ("s.npy", "41.6 MB")]
    {
        succeed(root, &format!("sample wine.covary --rows 200000 -o {name}"));
        // A list of cells needs the table in memory.
        let call = format!("impute --model wine.covary {name} --cells c.csv --max-memory 10M -o out.csv");
        let said = run_in(root, &call.split(' ').collect::<Vec<_>>(), b"");
        assert_eq!(said.code, Some(1), "{name}: {}", said.err);
        let figure = format!("{name}: takes ");
        assert!(said.err.contains(&figure) && said.err.contains(takes), "{name}: {}", said.err);
        assert!(said.err.contains("10.0 MB are allowed; "), "{name}: {}", said.err);
        assert!(
            said.err.contains("raise the limit") && said.err.contains("(--max-memory SIZE)"),
            "{name}: {}",
            said.err
        );
        assert!(!root.join("out.csv").exists(), "{name}");
    }
}

#[test]
fn a_gzip_file_with_other_bytes_behind_it_is_refused() {
    let folder = folder_with_examples();
    let root = folder.path();
    let text = fs::read(root.join("examples/wine_gaps.csv")).expect("an example");
    let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let whole = zip.write_all(&text).and_then(|()| zip.finish()).expect("memory takes all");
    fs::write(root.join("whole.csv.gz"), &whole).expect("writable");
    succeed(root, "impute whole.csv.gz --no-check -o whole.csv");
    for behind in [b"garbage".to_vec(), vec![b'x'; 500], vec![0; 500]] {
        fs::write(root.join("x.csv.gz"), [whole.as_slice(), &behind].concat()).expect("writable");
        let said = run_in(root, &["impute", "x.csv.gz", "-o", "out.csv"], b"");
        assert_eq!(said.code, Some(1), "{}", said.err);
        assert!(said.err.contains("x.csv.gz: is not a whole gzip file"), "{}", said.err);
        assert!(!root.join("out.csv").exists());
    }
}

#[test]
fn a_constant_column_with_another_value_is_said_by_every_verb_and_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    fs::write(root.join("a.csv"), "a,b,c\n1,2,7\n2,1,7\n3,5,7\n4,3,7\n5,8,7\n6,2,7\n").expect("writable");
    fs::write(root.join("b.csv"), "a,b,c\n1,2,9\n2,,7\n").expect("writable");
    succeed(root, "fit a.csv --components 1 -o m.covary");
    for call in [
        "impute b.csv --model m.covary",
        "transform m.covary b.csv",
        "score m.covary b.csv",
        "reconstruct m.covary b.csv",
    ] {
        let said = succeed(root, call);
        let words = "`c` was always 7 where the model learned and is 9 in row 1";
        assert!(said.err.contains(words), "{call}: {}", said.err);
        if call.starts_with("impute") {
            assert!(said.out.starts_with("a,b,c\n1,2,9\n2,"), "{}", said.out);
        }
    }
}

/// Model files that covary wrote before public types said themselves how they are written; what it answered by them then.
#[test]
fn golden_files_of_rows_in_time_and_of_curves_answer_as_they_did() {
    let folder = folder_with_examples();
    let root = folder.path();
    for (kind, table) in [("dynamic", "months"), ("functional", "growth")] {
        let golden = repository("crates/covary/tests/golden/model_files");
        let recorded = |ending: &str| fs::read_to_string(golden.join(format!("{kind}.{ending}"))).unwrap();
        fs::copy(golden.join(format!("{kind}_version_3.covary")), root.join("model.covary")).unwrap();
        succeed(
            root,
            &format!(
                "impute examples/{table}.csv --model model.covary --no-check --cells cells.csv -o filled.csv"
            ),
        );
        let cells = fs::read_to_string(root.join("cells.csv")).unwrap();
        let (found, want): (Vec<&str>, String) = (cells.split([',', '\n']).collect(), recorded("csv"));
        let want: Vec<&str> = want.split([',', '\n']).collect();
        assert_eq!(found.len(), want.len(), "{kind}");
        for (found, want) in found.iter().zip(want) {
            match (found.parse::<f64>(), want.parse::<f64>()) {
                (Ok(a), Ok(b)) => assert!((a - b).abs() <= 1e-10 * b.abs(), "{kind}: {a} was {b}"),
                _ => assert_eq!(*found, want, "{kind}"),
            }
        }
        let told: Value = serde_json::from_str(&succeed(root, "inspect model.covary --json").out).unwrap();
        let before: Value = serde_json::from_str(&recorded("json")).unwrap();
        assert_alike(&told, &before, kind);
    }
}

/// The same fields, texts and numbers, these to ten digits.
#[track_caller]
fn assert_alike(found: &Value, want: &Value, at: &str) {
    match (found, want) {
        (Value::Object(a), Value::Object(b)) => {
            assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>(), "{at}");
            a.iter().for_each(|(name, value)| assert_alike(value, &b[name], &format!("{at}.{name}")));
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{at}");
            a.iter().zip(b).for_each(|(a, b)| assert_alike(a, b, at));
        }
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert!((a - b).abs() <= 1e-10 * b.abs().max(1e-10), "{at}: {a} was {b}");
        }
        _ => assert_eq!(found, want, "{at}"),
    }
}
