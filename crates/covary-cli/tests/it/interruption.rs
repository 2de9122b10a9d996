//! A command that is stopped, kindly or not, leaves whole files or none.

use super::{covary, succeed};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A table large enough that a kill may hit any part of the work.
fn write_table(path: &Path) {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64 - 0.5
    };
    let mut text = (1..=12).map(|j| format!("c{j}")).collect::<Vec<_>>().join(",") + "\n";
    for _ in 0..4000 {
        let (a, b) = (next(), next());
        let cells: Vec<String> = (0..12)
            .map(|j| match next() {
                gap if gap > 0.4 => String::new(),
                noise => (a * f64::from(j) + b + 0.3 * noise).to_string(),
            })
            .collect();
        text += &(cells.join(",") + "\n");
    }
    fs::write(path, text).expect("writable");
}

fn start(folder: &Path, command: &str) -> Child {
    covary()
        .current_dir(folder)
        .args(command.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts")
}

#[test]
fn no_half_written_file_is_seen_after_200_kills() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    write_table(&root.join("t.csv"));
    let commands = [
        (
            "impute -q t.csv --components 2 --cells cells.csv --draws 2 --overwrite -o out.csv",
            vec!["out.csv", "cells.csv", "out-1.csv", "out-2.csv"],
        ),
        ("fit -q t.csv --components 2 -o out.covary", vec!["out.covary"]),
    ];
    for (command, outputs) in commands {
        let begun = Instant::now();
        succeed(root, command);
        let mut whole_run = begun.elapsed();
        let whole: Vec<Vec<u8>> =
            outputs.iter().map(|name| fs::read(root.join(name)).expect("written")).collect();
        let old = b"what was there before".to_vec();
        let (mut killed, mut replaced) = (0, 0);
        for k in 0..100_u32 {
            for name in &outputs {
                fs::write(root.join(name), &old).expect("writable");
            }
            let mut child = start(root, command);
            // Evenly over a little more than a whole run, by the golden ratio.
            sleep(whole_run.mul_f64(1.1 * (f64::from(k) * 0.618_033_988_75).fract()));
            child.kill().expect("it can be killed");
            if child.wait().expect("it ends").success() {
                // Runs are faster than was thought: come earlier; or else a little later. However busy the
                // machine, about one run in six comes to its end.
                whole_run = whole_run.mul_f64(0.9);
            } else {
                whole_run = whole_run.mul_f64(1.02);
                killed += 1;
            }
            for (name, whole) in outputs.iter().zip(&whole) {
                let now = fs::read(root.join(name)).expect("never absent");
                assert!(now == old || now == *whole, "{name} is half written");
                replaced += u32::from(now == *whole);
            }
        }
        assert!(killed > 50, "only {killed} of 100 runs of `{command}` were hit");
        assert!(replaced > 0, "no run of `{command}` came to its end");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_the_fit_so_far_and_says_so() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    write_table(&root.join("t.csv"));
    // More steps than end by themselves, so that only Ctrl-C ends it.
    let mut child = start(root, "fit t.csv --components 2 --tol 0 --max-iter 100000000 -o out.covary");
    sleep(Duration::from_millis(1500));
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("a kill command").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let said = succeed(root, "inspect out.covary");
    assert!(said.out.contains("interrupted after"), "{}", said.out);
    assert_eq!(fs::read_dir(root).expect("a folder").count(), 2, "no litter");
}

#[cfg(unix)]
fn interrupt(child: &Child) {
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("a kill command").success());
}

#[cfg(unix)]
#[test]
fn ctrl_c_gives_up_the_check_and_the_rest_goes_on() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    write_table(&root.join("t.csv"));
    for model in ["gaussian", "ppca --components 2", "mppca --mixtures 2 --components 1"] {
        // The check fits as long as the fit did, of which the end is said.
        let call = format!("impute t.csv --model {model} --tol 0 --max-iter 150");
        succeed(root, &format!("{call} --no-check -o whole.csv"));
        let mut child = covary()
            .current_dir(root)
            .args(format!("{call} -o out.csv").split_whitespace())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map(|l| l.expect("text"));
        let mut said: Vec<String> = Vec::new();
        while !said.last().is_some_and(|line| line.starts_with("fitted ")) {
            said.push(lines.next().expect("it says that it fitted"));
        }
        interrupt(&child);
        said.extend(lines);
        let said = said.join("\n");
        assert_eq!(child.wait().expect("it ends").code(), Some(130), "{said}");
        assert!(said.contains("; press Ctrl-C again to give up"), "{said}");
        assert!(!said.contains("checked on"), "{said}");
        let read = |name: &str| fs::read(root.join(name)).expect("written");
        assert!(read("out.csv") == read("whole.csv"), "the file of --model {model} is another");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_what_has_nothing_to_keep() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for verb in ["fit - -o out.covary", "select -", "impute - -o out.csv"] {
        // A table that never comes.
        let mut child = covary()
            .current_dir(folder.path())
            .args(verb.split_whitespace())
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let listens = |status: String| {
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            u64::from_str_radix(caught.expect("a mask").trim(), 16).expect("a number") & 0b10 != 0
        };
        while !listens(fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs")) {
            sleep(Duration::from_millis(10));
        }
        interrupt(&child);
        let stdin = child.stdin.take();
        let output = child.wait_with_output().expect("it ends");
        drop(stdin);
        assert_eq!(output.status.code(), Some(130), "{verb}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said, "covary: interrupted; nothing was written\n", "{verb}");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "{verb}: no litter");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_closed_form_without_a_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    // Its decomposition takes longer than it takes to press Ctrl-C.
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64 - 0.5
    };
    let n = 3000_usize;
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({n}, {n}), }}");
    let header = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(header.as_bytes());
    (0..n * n).for_each(|_| bytes.extend(next().to_le_bytes()));
    fs::write(root.join("t.npy"), bytes).expect("writable");
    let mut child = start(root, "fit t.npy --model pca --components 2000 -o out.covary");
    sleep(Duration::from_millis(2500));
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("a kill command").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(fs::read_dir(root).expect("a folder").count(), 1, "no file was written");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    write_table(&root.join("t.csv"));
    // Everything written to this device fails as on a full disk.
    let said = super::run_in(root, &["impute", "-q", "t.csv", "--components", "2", "-o", "/dev/full"], b"");
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.err.contains("covary: /dev/full: cannot be written: "), "{}", said.err);
    // A limit on the size of files stands for a full disk under the final name.
    let program = env!("CARGO_BIN_EXE_covary");
    let script =
        format!("trap '' XFSZ; ulimit -f 64; exec {program} impute -q t.csv --components 2 -o out.csv");
    let output = std::process::Command::new("sh").args(["-c", &script]).current_dir(root).output();
    let output = output.expect("a shell");
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("out.csv: cannot be written: "));
    assert_eq!(fs::read_dir(root).expect("a folder").count(), 1, "nothing half-written is left");
}
