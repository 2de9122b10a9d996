//! Rows that come through a pipe and may be more than memory holds: `fit -` with `--memory`.

use super::{Said, covary, learned, run_in, succeed};
use covary::family::{Components, Family, Request};
use covary::infer::OnlineEm;
use covary::{Dataset, Matrix, Spec};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::{Child, Stdio};

const COLUMNS: usize = 6;

/// A cell of a table of two factors and noise, with gaps, to three decimals.
fn cell(i: usize, j: usize) -> f64 {
    let unit = |k: usize| (k as f64 * 0.618_033_988_749_894_9).fract() - 0.5;
    if (i * 31 + j * 17).is_multiple_of(13) {
        return f64::NAN;
    }
    let signal = unit(3 * i + 1) * unit(j + 5) + unit(7 * i + 2) * unit(11 * j + 3);
    (1000.0 * (10.0 * signal + unit(i * COLUMNS + j * j))).round() / 1000.0
}

const HEADER: &str = "site,x1,x2,x3,x4,x5,x6\n";

fn row(i: usize) -> String {
    let cells: Vec<String> = (0..COLUMNS)
        .map(|j| if cell(i, j).is_nan() { String::new() } else { cell(i, j).to_string() })
        .collect();
    format!("\"a \"\"{}\"\"\",{}\n", i % 5, cells.join(","))
}

fn rows(n: usize) -> String {
    let rows: String = (0..n).map(row).collect();
    format!("{HEADER}{rows}")
}

fn start(root: &Path, command: &str) -> Child {
    covary()
        .current_dir(root)
        .args(command.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts")
}

fn ended(child: Child) -> Said {
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// What a command says of a text that comes in pieces of this many bytes.
fn piped(root: &Path, command: &str, text: &[u8], piece: usize) -> Said {
    let mut child = start(root, command);
    let mut stdin = child.stdin.take().expect("piped");
    let mut pieces = text.chunks(piece);
    // A command that refuses a row reads no further.
    let _ = pieces.try_for_each(|piece| stdin.write_all(piece));
    drop(stdin);
    ended(child)
}

/// The same of the whole text, which must succeed.
#[track_caller]
fn fitted(root: &Path, command: &str, text: &str) -> Said {
    let said = piped(root, command, text.as_bytes(), usize::MAX);
    assert_eq!(said.code, Some(0), "{}", said.err);
    said
}

fn block(from: usize, to: usize) -> Dataset {
    let cells = Matrix::from_fn(to - from, COLUMNS, |i, j| cell(from + i, j));
    Dataset::with_names(cells, (1..=COLUMNS).map(|j| format!("x{j}")).collect()).unwrap()
}

/// Rows of the first block and of those that follow, where 300 kB of memory hold a text of 100 kB.
fn cut(text: &str) -> (usize, usize) {
    let held = &text.as_bytes()[..50_000];
    (held.split(|b| *b == b'\n').count() - 2, 300_000 / 64 / COLUMNS)
}

#[test]
fn a_stream_is_em_of_its_blocks_whatever_the_pieces_of_the_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let n = 9000;
    let text = rows(n);
    let (first, size) = cut(&text);
    for family in [Family::Ppca, Family::Fa, Family::Pca] {
        let request = Request::new(family);
        let mut stream = OnlineEm::new(Spec { n_components: 2, ..request.spec() });
        stream.take(&block(0, first)).unwrap();
        for from in (first..n).step_by(size) {
            stream.take(&block(from, n.min(from + size))).unwrap();
        }
        let call = format!("fit - --model {family} --components 2 --memory 300K -o m.covary");
        let said = fitted(root, &format!("{call} --threads 2"), &text);
        let line = said.err.lines().next().unwrap_or_default();
        assert!(line.contains("gone through once, as it comes"), "{line}");
        let kept = learned(root, "m.covary");
        assert_eq!(kept.training.n_rows, n);
        assert_eq!(kept.linear().unwrap().model, stream.fit().unwrap().model, "{family}");
        let bytes = fs::read(root.join("m.covary")).unwrap();
        for (piece, threads) in [(17, 1), (4093, 2), (1 << 20, 1)] {
            let said = piped(root, &format!("{call} --threads {threads}"), text.as_bytes(), piece);
            assert_eq!(said.code, Some(0), "{}", said.err);
            assert!(fs::read(root.join("m.covary")).unwrap() == bytes, "{family}, pieces of {piece}");
        }
    }
    // Another dialect of the same rows, and compressed.
    let bytes = {
        fitted(root, "fit - --components 2 --memory 300K -o m.covary", &text);
        fs::read(root.join("m.covary")).unwrap()
    };
    fs::write(root.join("t.csv"), &text).unwrap();
    let zipped = std::process::Command::new("gzip").arg("-k").arg("t.csv").current_dir(root).status();
    if zipped.is_ok_and(|status| status.success()) {
        let text = fs::read(root.join("t.csv.gz")).unwrap();
        let said = piped(root, "fit - --format csv.gz --components 2 --memory 300K -o z.covary", &text, 999);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(fs::read(root.join("z.covary")).unwrap() == bytes);
    }
}

#[test]
fn what_is_chosen_is_chosen_on_the_first_rows_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let text = rows(4000);
    let said = fitted(root, "fit - --memory 300K --json -o m.covary", &text);
    let found: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert!(said.err.contains("the number of components is chosen on"), "{}", said.err);
    assert!(said.err.contains("from a stream of blocks of rows: 4000 rows in "), "{}", said.err);
    let (first, size) = cut(&text);
    let data = &found["data"];
    assert_eq!(data["n_rows"], 4000);
    assert_eq!(data["n_columns"], COLUMNS);
    assert_eq!(data["n_gaps"], block(0, 4000).n_gaps());
    assert_eq!(data["by_stream"]["first_rows"], first);
    assert_eq!(data["by_stream"]["block_rows"], size);
    assert_eq!(data["by_stream"]["n_blocks"], 1 + (4000 - first).div_ceil(size));
    assert_eq!(data["by_stream"]["rows_sampled_for_the_number_of_components"], first);
    let request = Request { n_components: Some(Components::Auto), ..Request::new(Family::Ppca) };
    let chosen = request.learn_stream(&block(0, first), &()).unwrap().learned().unwrap();
    assert_eq!(learned(root, "m.covary").n_components(), chosen.n_components());
}

#[test]
fn input_that_memory_holds_is_fitted_as_ever() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let text = rows(400);
    for how in ["--components 2", "--model bpca --components 3", "--model fa --components 2 --check"] {
        let ever = fitted(root, &format!("fit - {how} -o ever.covary"), &text);
        let said = fitted(root, &format!("fit - {how} --memory 10M -o m.covary"), &text);
        assert_eq!(said.err.replace("m.covary", "ever.covary"), ever.err);
        assert!(
            fs::read(root.join("m.covary")).unwrap() == fs::read(root.join("ever.covary")).unwrap(),
            "{how}"
        );
    }
}

#[test]
fn a_row_that_is_wrong_is_named_by_its_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let (before, after) = (rows(5000), "a,1,2,3,4,5,6\n".repeat(2000));
    for (row, words) in [
        ("a,1,2,oops,4,5,6\n", &["row 5001 (line 5002), column `x3`: `oops` is not a number"][..]),
        ("a,1,2,3\n", &["row 5001 (line 5002), column `x4`", "4 cells of 7"]),
        ("a,1,2,3,4,5,6,7\n", &["row 5001 (line 5002)", "8 cells"]),
        ("a,1,2,1e999,4,5,6\n", &["row 5001 (line 5002), column `x3`: `1e999` is not a finite number"]),
        ("a,1,\"2,3,4,5,6\n", &["row 5001 (line 5002): a quote is opened at"]),
    ] {
        let text = format!("{before}{row}{after}");
        let said = piped(root, "fit - --components 2 --memory 300K -o m.covary", text.as_bytes(), 1 << 16);
        assert_eq!(said.code, Some(1), "{row}: {}", said.err);
        assert!(words.iter().all(|word| said.err.contains(word)), "{row}: {}", said.err);
        // The model of the rows before stays.
        assert!(learned(root, "m.covary").training.n_rows > 500);
    }
}

#[test]
fn what_cannot_be_learned_from_rows_that_come_once_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let text = rows(4000);
    for (how, words) in [
        ("--model bpca", "model `bpca` by method `structured` cannot be learned from rows that come once"),
        ("--model gaussian", "model `gaussian` by method `full-covariance`"),
        ("--model ica", "model `ica` cannot be learned"),
        ("--model mppca", "model `mppca` by method `mixture-em` cannot be learned"),
        ("--inference spectral", "method `spectral` cannot be learned"),
        ("--model fa --inference mean-field", "model `fa` by method `mean-field`"),
        ("--checkpoint c", "--checkpoint goes with rows that can be gone through again"),
        ("--components 6", "6 components are too many"),
    ] {
        let said = run_in(
            root,
            &format!("fit - {how} --memory 300K -o m.covary").split(' ').collect::<Vec<_>>(),
            text.as_bytes(),
        );
        assert!(said.code == Some(1) && said.err.contains(words), "{how}: {}", said.err);
        assert!(!root.join("m.covary").exists(), "{how}");
    }
    // Without a limit that was asked for, all is read as ever.
    let said = fitted(root, "fit - --model bpca --components 3 -o m.covary", &text);
    assert!(!said.err.contains("as it comes"), "{}", said.err);
}

#[test]
fn a_column_that_varies_late_is_not_in_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let rows: Vec<String> = (0..9000).map(|i| format!("{},{},{}\n", i % 7, (i * i) % 11, i / 8000)).collect();
    let text = rows.concat();
    let said = fitted(root, "fit - --no-header --columns 1:3 --components 1 --memory 60K -o m.covary", &text);
    assert!(said.err.contains("constant, so not in the model"), "{}", said.err);
    assert!(said.err.contains("warning: `x3` is constant in the first "), "{}", said.err);
    let kept = learned(root, "m.covary");
    assert!(kept.constants.is_empty() && kept.columns == ["x1", "x2"], "{:?}", kept.constants);
}

#[test]
fn a_column_that_has_values_late_is_not_in_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let late = |i: usize| if i < 8000 { String::new() } else { (i % 5).to_string() };
    let rows: Vec<String> = (0..9000).map(|i| format!("{},{},{}\n", i % 7, (i * i) % 11, late(i))).collect();
    let text = format!("x1,x2,x3\n{}", rows.concat());
    let said = fitted(root, "fit - --columns x1,x2,x3 --components 1 --memory 60K -o m.covary", &text);
    assert!(said.err.contains("warning: `x3` had at most one value in the first "), "{}", said.err);
    assert_eq!(learned(root, "m.covary").columns, ["x1", "x2"]);
}

#[test]
fn rows_without_a_value_are_counted_wherever_blocks_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let row = |i: usize| {
        if (400..800).contains(&i) { ",\n".to_owned() } else { format!("{},{}\n", i % 7, (i * i) % 11) }
    };
    let text = format!("x,y\n{}", (0..1200).map(row).collect::<String>());
    fitted(root, "fit - --components 1 --memory 12K -o m.covary", &text);
    let kept = learned(root, "m.covary");
    assert_eq!((kept.training.n_rows, &kept.training.n_observed_by_column), (1200, &vec![800, 800]));
}

#[cfg(target_os = "linux")]
mod endless {
    use super::*;
    use std::process::{ChildStdin, Command};
    use std::thread::{self, sleep};
    use std::time::{Duration, Instant};

    fn signal(child: &Child, name: &str) {
        let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
        assert!(sent.expect("a kill command").success());
    }

    /// Rows without end, for as long as somebody reads them.
    fn endless(mut stdin: ChildStdin) -> thread::JoinHandle<()> {
        thread::spawn(move || {
            let mut written = stdin.write_all(HEADER.as_bytes());
            let mut i = 0;
            while written.is_ok() {
                written = stdin.write_all(row(i).as_bytes());
                i += 1;
            }
            assert_eq!(written.unwrap_err().kind(), ErrorKind::BrokenPipe);
        })
    }

    #[track_caller]
    fn wait_for(path: &Path) {
        let since = Instant::now();
        while !path.exists() {
            assert!(since.elapsed() < Duration::from_secs(60), "{} does not come", path.display());
            sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn ctrl_c_ends_the_stream_and_keeps_the_model() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let mut child = start(root, "fit - --components 2 --memory 300K -o m.covary");
        let writer = endless(child.stdin.take().unwrap());
        wait_for(&root.join("m.covary"));
        sleep(Duration::from_millis(500));
        signal(&child, "-INT");
        let said = ended(child);
        writer.join().unwrap();
        assert_eq!(said.code, Some(130), "{}", said.err);
        assert!(said.err.contains("interrupted: the rows that came before are all there is"), "{}", said.err);
        let kept = learned(root, "m.covary");
        assert!(said.err.contains(" from a stream of blocks of rows: "), "{}", said.err);
        // Of whole rows alone, wherever in one it was stopped.
        let n = kept.training.n_rows;
        fitted(root, "fit - --components 2 --memory 300K -o again.covary", &rows(n));
        assert_eq!(learned(root, "again.covary").linear().unwrap().model, kept.linear().unwrap().model);
        assert_eq!(fs::read_dir(root).unwrap().count(), 2, "no litter");
    }

    #[test]
    fn a_kill_leaves_the_model_that_was_written_last() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["-KILL", "-TERM"] {
            let mut child = start(root, "fit - --components 2 --memory 300K -o m.covary");
            let writer = endless(child.stdin.take().unwrap());
            wait_for(&root.join("m.covary"));
            sleep(Duration::from_millis(100));
            signal(&child, name);
            let said = ended(child);
            writer.join().unwrap();
            assert_ne!(said.code, Some(0));
            let n = learned(root, "m.covary").training.n_rows;
            succeed(root, "inspect m.covary");
            assert!(n > 500, "{n}");
            assert!(said.err.contains("wrote the model of the first "), "{}", said.err);
            fs::remove_file(root.join("m.covary")).unwrap();
        }
    }

    #[test]
    fn a_slow_pipe_has_its_model_before_memory_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let mut child = start(root, "fit - --components 2 --memory 10M -o m.covary");
        let mut stdin = child.stdin.take().unwrap();
        // The last row is not whole.
        stdin.write_all(rows(300).as_bytes()).unwrap();
        stdin.write_all(b"a,1.5,2.5,3.5,4.5,5.5,6").unwrap();
        wait_for(&root.join("m.covary"));
        fitted(root, "fit - --components 2 -o whole.covary", &rows(300));
        let whole = fs::read(root.join("whole.covary")).unwrap();
        assert!(fs::read(root.join("m.covary")).unwrap() == whole);
        signal(&child, "-INT");
        let said = ended(child);
        drop(stdin);
        assert_eq!(said.code, Some(130), "{}", said.err);
        assert!(said.err.contains("wrote the model of the first 300 rows"), "{}", said.err);
        assert!(fs::read(root.join("m.covary")).unwrap() == whole);
    }

    /// Nothing is missed behind an inch mark, whose quotation nobody closes.
    #[test]
    fn ctrl_c_keeps_the_rows_behind_a_quote_within_a_cell() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let mut child = start(root, "fit - --components 2 --memory 10M -o m.covary");
        let mut stdin = child.stdin.take().unwrap();
        let text = rows(300).replacen("\"a \"\"3\"\"\"", "5\" pipe", 1);
        assert!(text.contains("\n5\" pipe,"));
        stdin.write_all(text.as_bytes()).unwrap();
        stdin.write_all(b"a,1.5,2.5").unwrap();
        wait_for(&root.join("m.covary"));
        signal(&child, "-INT");
        let said = ended(child);
        drop(stdin);
        assert!(said.err.contains("wrote the model of the first 300 rows"), "{}", said.err);
    }

    #[test]
    fn ctrl_c_before_the_first_row_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let mut child = start(root, "fit - --components 2 --memory 10M -o m.covary");
        let stdin = child.stdin.take().unwrap();
        sleep(Duration::from_millis(1500));
        signal(&child, "-INT");
        let said = ended(child);
        drop(stdin);
        assert_eq!((said.code, said.err.as_str()), (Some(130), "covary: interrupted; nothing was written\n"));
        assert_eq!(fs::read_dir(root).unwrap().count(), 0);
    }

    /// The most memory that a stream of this many rows has taken.
    fn peak(root: &Path, n: usize) -> u64 {
        let mut child = start(root, "fit - --components 2 --memory 12M --threads 1 -o m.covary");
        let mut stdin = child.stdin.take().unwrap();
        let text = rows(n);
        stdin.write_all(text.as_bytes()).unwrap();
        wait_for(&root.join("m.covary"));
        // What is left in the pipe is less than a block.
        sleep(Duration::from_millis(500));
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it runs");
        drop(stdin);
        assert_eq!(ended(child).code, Some(0));
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    #[test]
    fn memory_does_not_grow_with_the_rows() {
        let folder = tempfile::tempdir().unwrap();
        let (once, eight) = (peak(folder.path(), 100_000), peak(folder.path(), 800_000));
        assert!(eight < once + once / 4, "{once} kB, of eight times the rows {eight} kB");
    }
}
