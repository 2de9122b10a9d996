//! `cargo xtask cluster`: the Python package on real engines, in an environment of its own.

use crate::{Check, NO_PYTHON, passes, python, root, step};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// Oldest Java that Spark 4 runs on.
const JAVA: u32 = 17;

/// What the tests were last run with. Spark's package is a source distribution of 456 MB; versions are named so that the wheel
/// which pip makes of it is found in its cache the next time.
const ENGINES: &str = "pyspark[connect]==4.3.0 dask[dataframe]==2026.8.0 distributed==2026.8.0 ray==2.60.0 \
                       pyarrow>=15 pandas>=2.2,<3 pytest>=8";

const NO_JAVA: &str =
    "there is no Java 17 or later: install it (Debian: openjdk-17-jre-headless), or name one by JAVA_HOME";

pub(crate) fn test() -> bool {
    let Some(python) = python() else {
        eprintln!("{NO_PYTHON}");
        return false;
    };
    let java = has_java();
    let passed = checks(&python, java).iter().all(|check| {
        let passed = passes(check);
        if !passed {
            eprintln!("\n== FAILED: {}", check.heading);
        }
        passed
    });
    if passed {
        eprintln!("\n== all engines passed that were run");
    }
    if !java {
        eprintln!("== NOT RUN: Spark: {NO_JAVA}");
    }
    passed
}

fn checks(python: &OsString, java: bool) -> Vec<Check> {
    let home = root().join("target").join("cluster");
    let own = |arguments: &str| {
        let mut step =
            step(home.join(if cfg!(windows) { "Scripts" } else { "bin" }).join("python").into(), arguments);
        step.environment.push(("VIRTUAL_ENV", home.clone().into()));
        step
    };
    let mut venv = step(python.clone(), "-m venv");
    venv.arguments.push(home.clone().into());
    let installed = own(&format!("-m pip install --quiet maturin>=1.9,<2 {ENGINES}"));
    let package = own("-m maturin develop --release --quiet");
    let tests = "-m pytest --quiet --durations=5 -c crates/covary-py/tests/cluster/pytest.ini crates/covary-py/tests/cluster/test_";
    let engine = |heading, file: &str| Check { heading, commands: vec![own(&format!("{tests}{file}.py"))] };
    let mut checks = vec![
        Check { heading: "engines installed", commands: vec![venv, installed, package] },
        engine("files", "local"),
        engine("Dask", "dask"),
        engine("Ray", "ray"),
    ];
    if java {
        checks.push(engine("Spark", "spark"));
    }
    checks
}

/// Whether `java` of JAVA_HOME, or of the path, is new enough.
fn has_java() -> bool {
    let home = std::env::var_os("JAVA_HOME");
    let program =
        home.map_or_else(|| PathBuf::from("java"), |home| PathBuf::from(home).join("bin").join("java"));
    // Such as: openjdk version "17.0.15" 2025-04-15, on standard error.
    Command::new(program).arg("-version").output().is_ok_and(|out| {
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        let version = said.split('"').nth(1).and_then(|v| v.split('.').next()?.parse::<u32>().ok());
        version.is_some_and(|version| version >= JAVA)
    })
}
