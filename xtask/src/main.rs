//! `cargo xtask test`: everything a contribution must pass, in the order that fails fastest. `cargo xtask release
//! --dry-run`: everything that a release publishes, made and tried. `cargo xtask cluster`: the engines.

#![allow(clippy::print_stderr, reason = "headings for the person at the terminal")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

mod cluster;
mod release;

/// A check: its heading and the commands that must succeed one after the other.
struct Check {
    heading: &'static str,
    commands: Vec<Step>,
}

/// A command, its arguments, and variables it runs under.
struct Step {
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
}

/// Oldest Python the package is for.
const OLDEST: (u32, u32) = (3, 10);

const NO_PYTHON: &str =
    "the Python package needs CPython 3.10 or later with `venv`: install it, or name one by COVARY_PYTHON";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["test"] => test(),
        ["cluster"] => code(cluster::test()),
        ["release", "--dry-run"] => released(release::Part::All),
        ["release", "--dry-run", "crates"] => released(release::Part::Crates),
        ["release", "--dry-run", "python"] => released(release::Part::Python),
        _ => {
            eprintln!(
                "usage: cargo xtask test                                 format, lints, documentation and tests; stops at the first failure\n       cargo xtask cluster                              the Python package on Dask, Ray and Spark, in an environment of its own\n       cargo xtask release --dry-run [crates|python]    packages, wheel and sdist: made, installed and tried; nothing is uploaded"
            );
            ExitCode::from(2)
        }
    }
}

fn released(part: release::Part) -> ExitCode {
    code(release::dry_run(part))
}

fn code(passed: bool) -> ExitCode {
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn test() -> ExitCode {
    let Some(python) = python() else {
        eprintln!("{NO_PYTHON}");
        return ExitCode::FAILURE;
    };
    let browser = browser();
    let checks = checks(&python, browser.as_ref());
    match checks.iter().find(|check| !passes(check)) {
        None => {
            eprintln!("\n== all {} checks passed", checks.len());
            if browser.is_none() {
                eprintln!("== NOT RUN: the report in a browser: {NO_BROWSER}");
            }
            ExitCode::SUCCESS
        }
        Some(check) => {
            eprintln!("\n== FAILED: {}", check.heading);
            ExitCode::FAILURE
        }
    }
}

fn checks(python: &OsString, browser: Option<&OsString>) -> Vec<Check> {
    // The cargo that started us, so that a toolchain chosen with `cargo +name` stays chosen.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let cargo = |arguments: &str| step(cargo.clone(), arguments);
    // An environment of our own, kept between runs, so that nothing of the machine's is touched.
    let home = root().join("target").join("python");
    let bin = home.join(if cfg!(windows) { "Scripts" } else { "bin" });
    let own = |program: &str, arguments: &str| {
        let mut step = step(bin.join(program).into(), arguments);
        step.environment.push(("VIRTUAL_ENV", home.clone().into()));
        step.environment.push(("MPLBACKEND", "Agg".into()));
        step
    };
    let mut venv = step(python.clone(), "-m venv");
    venv.arguments.push(home.clone().into());
    let mut documentation = cargo("doc --release --workspace --no-deps");
    documentation.environment.push(("RUSTDOCFLAGS", "-D warnings".into()));
    let in_browser = browser.map(|browser| {
        let mut open = own("python", "-m pytest --quiet -c crates/covary-report/tests/browser/pytest.ini crates/covary-report/tests/browser");
        open.environment.push(("COVARY_BROWSER", browser.clone()));
        // The tests of the command have built it.
        open.environment.push(("COVARY", root().join("target").join("release").join("covary").into()));
        Check {
            heading: "the report in a browser",
            commands: vec![
                own("python", "-m pip install --quiet playwright pytest pypdfium2 numpy"),
                open,
            ],
        }
    });
    let mut checks = vec![
        Check { heading: "format", commands: vec![cargo("fmt --all --check")] },
        Check {
            heading: "lints",
            commands: vec![cargo("clippy --release --workspace --all-targets -- -D warnings")],
        },
        Check { heading: "documentation", commands: vec![documentation] },
        Check {
            heading: "tests and examples in the documentation",
            commands: vec![cargo("test --release --workspace --exclude covary-py")],
        },
        Check {
            heading: "the Python package",
            commands: vec![
                venv,
                own("python", "-m pip install --quiet maturin>=1.9,<2"),
                own("python", "-m maturin develop --release --quiet --extras test"),
                own("python", "-m mypy"),
                own("python", "-m pytest --quiet"),
            ],
        },
    ];
    checks.extend(in_browser);
    checks
}

const NO_BROWSER: &str =
    "there is no Chromium, and apt-get could not install one; install it, or name one by COVARY_BROWSER";

/// A Chromium: the one named, one that is installed, or one that this machine's packages have.
fn browser() -> Option<OsString> {
    if let Some(named) = std::env::var_os("COVARY_BROWSER") {
        return Some(named);
    }
    let usual = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let installed = || {
        let found = std::env::split_paths(&folders).flat_map(|f| usual.map(|name| f.join(name)));
        { found }.find(|path| path.is_file()).map(PathBuf::into_os_string)
    };
    installed().or_else(|| {
        eprintln!("\n== no browser for the report: asking apt-get for Chromium");
        apt_get("chromium");
        installed()
    })
}

/// Installs a package of Debian's, if this machine is one of that kind and we may.
fn apt_get(package: &str) {
    let runs = |arguments: &[&str]| {
        let run = Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive").output();
        run.is_ok_and(|out| out.status.success())
    };
    // The list of packages may be old; an install that fails without a new one fails with it.
    runs(&["update", "-qq"]);
    runs(&["install", "-y", "-qq", "--no-install-recommends", package]);
}

/// A Python to make the environment with: the one named, or the first that is new enough.
fn python() -> Option<OsString> {
    let named = std::env::var_os("COVARY_PYTHON");
    let usual = ["python3", "python", "python3.13", "python3.12", "python3.11", "python3.10"];
    let candidates = named.map_or_else(|| usual.map(OsString::from).to_vec(), |one| vec![one]);
    let question = format!("import sys, venv; sys.exit(sys.version_info < ({}, {}))", OLDEST.0, OLDEST.1);
    let suits = |python: &OsString| {
        Command::new(python).args(["-c", &question]).output().is_ok_and(|out| out.status.success())
    };
    candidates.into_iter().find(suits)
}

fn step(program: OsString, arguments: &str) -> Step {
    let arguments = arguments.split_whitespace().map(OsString::from).collect();
    Step { program, arguments, environment: Vec::new() }
}

fn root() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).to_path_buf()
}

fn passes(check: &Check) -> bool {
    eprintln!("\n== {}", check.heading);
    check.commands.iter().all(runs)
}

fn runs(step: &Step) -> bool {
    eprintln!("   {}", command_line(step));
    let status = Command::new(&step.program)
        .args(&step.arguments)
        .envs(step.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(root())
        .status();
    match status {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("{} cannot be started: {error}", Path::new(&step.program).display());
            false
        }
    }
}

fn command_line(step: &Step) -> String {
    let program = Path::new(&step.program).file_name().unwrap_or_default().to_string_lossy();
    let words = step.arguments.iter().map(|word| word.to_string_lossy());
    std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
}
