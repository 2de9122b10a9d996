//! `cargo xtask cluster`: the Python package on real engines, in an environment of its own.

use crate::{Check, NO_PYTHON, apt_get, passes, python, root, runs, step};
use std::path::PathBuf;
use std::process::Command;

/// Oldest Java that Spark 4 runs on.
const JAVA: u32 = 17;

/// What the tests of all engines need.
const COMMON: &str = "maturin>=1.9,<2 pyarrow>=15 pandas>=2.2,<3 pytest>=8 psutil";

/// An engine: what it is called, the file of its tests, and what they were last run with.
struct Engine {
    name: &'static str,
    file: &'static str,
    packages: &'static str,
    needs_java: bool,
}

/// Spark's package is a source distribution of 456 MB; versions are named so that the wheel which pip makes of it is found in its cache
/// the next time.
const ENGINES: [Engine; 3] = [
    Engine {
        name: "Dask",
        file: "dask",
        packages: "dask[dataframe]==2026.8.0 distributed==2026.8.0",
        needs_java: false,
    },
    Engine { name: "Ray", file: "ray", packages: "ray==2.60.0", needs_java: false },
    Engine { name: "Spark", file: "spark", packages: "pyspark[connect]==4.3.0", needs_java: true },
];

const NO_JAVA: &str = "there is no Java 17 or later, and apt-get could not install it: install it (Debian: openjdk-17-jre-headless), or name one by JAVA_HOME";

/// Tests of an engine that cannot be installed are not run, which is said aloud; those that are run must pass.
pub(crate) fn test() -> bool {
    let Some(python) = python() else {
        eprintln!("{NO_PYTHON}");
        return false;
    };
    let home = root().join("target").join("cluster");
    let own = |arguments: &str| {
        let mut step =
            step(home.join(if cfg!(windows) { "Scripts" } else { "bin" }).join("python").into(), arguments);
        step.environment.push(("VIRTUAL_ENV", home.clone().into()));
        step
    };
    let pip = |packages: &str| own(&format!("-m pip install --quiet {packages}"));
    let tests = |file: &str| {
        own(&format!(
            "-m pytest --quiet --durations=5 -c crates/covary-py/tests/cluster/pytest.ini crates/covary-py/tests/cluster/test_{file}.py"
        ))
    };
    let mut venv = step(python, "-m venv");
    venv.arguments.push(home.clone().into());
    let package = own("-m maturin develop --release --quiet");
    let first = [
        Check { heading: "an environment of their own", commands: vec![venv, pip(COMMON), package] },
        Check { heading: "files", commands: vec![tests("local")] },
    ];
    let failed = |heading: &str| {
        eprintln!("\n== FAILED: {heading}");
        false
    };
    if let Some(check) = first.iter().find(|check| !passes(check)) {
        return failed(check.heading);
    }
    let mut not_run = Vec::new();
    for Engine { name, file, packages, needs_java } in ENGINES {
        if needs_java && !has_java() && !java_installed() {
            not_run.push(format!("{name}: {NO_JAVA}"));
        } else if !passes(&Check { heading: name, commands: vec![pip(packages)] }) {
            not_run.push(format!("{name}: pip could not install {packages}"));
        } else if !runs(&tests(file)) {
            return failed(name);
        }
    }
    eprintln!("\n== all engines passed that were run");
    for engine in not_run {
        eprintln!("== NOT RUN: {engine}");
    }
    true
}

/// Asks this machine's packages for Java.
fn java_installed() -> bool {
    eprintln!("\n== no Java for Spark: asking apt-get for it");
    apt_get("openjdk-17-jre-headless");
    has_java()
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
