//! `cargo xtask release --dry-run`: everything that a release would publish is packaged, installed where nothing else
//! is, and its README example run. Nothing is uploaded. `docs/releasing.md` has the steps around it.

use super::{Step, python, root, runs, step};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates of a release, each after those it depends on. The Python extension goes to PyPI instead.
const CRATES: [&str; 5] = ["covary", "covary-png", "covary-report", "covary-reproduce", "covary-cli"];
/// What crates.io takes.
const MOST_BYTES: u64 = 10 * 1024 * 1024;

/// What is made and tried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    All,
    /// The crates, the command and the library.
    Crates,
    /// The wheel and the source distribution.
    Python,
}

/// Makes and tries a part; true if all of it works.
pub(crate) fn dry_run(part: Part) -> bool {
    let Some(python) = python() else {
        eprintln!("no CPython with `venv` was found: install it, or name one by COVARY_PYTHON");
        return false;
    };
    let folder = root().join("target").join("release-dry-run");
    if let Err(error) = fresh(&folder) {
        eprintln!("{} cannot be made: {error}", folder.display());
        return false;
    }
    let release = Release { folder, python };
    let mut summary: Vec<(&str, Result<String, String>)> = Vec::new();
    // The parts of a half need each other; the other half is tried in any case.
    if part != Part::Python {
        summary.push(("crates packaged", release.packages()));
        if summary[0].1.is_ok() {
            summary.push(("command installed from its package, README command run", release.command()));
            summary.push(("library from its package, README example run", release.library()));
        }
    }
    if part != Part::Crates {
        let built = release.distributions();
        let is_built = built.is_ok();
        summary.push(("wheel and sdist built", built));
        if is_built {
            summary.push(("wheel installed, README examples run", release.python_package("wheel", "whl")));
            summary.push(("sdist installed, README examples run", release.python_package("sdist", "gz")));
        }
    }
    eprintln!("\n== release, dry run: nothing was uploaded");
    for (what, result) in &summary {
        match result {
            Ok(details) => eprintln!("   ok      {what}{details}"),
            Err(why) => eprintln!("   FAILED  {what}: {why}"),
        }
    }
    summary.iter().all(|(_, result)| result.is_ok())
}

struct Release {
    /// Where everything is made.
    folder: PathBuf,
    python: OsString,
}

impl Release {
    /// Packages the crates and unpacks them into a workspace of their own, in which they find each other as they would
    /// find each other on crates.io, and nothing that was left out of a package is there.
    fn packages(&self) -> Result<String, String> {
        let mut package = cargo("package --no-verify --allow-dirty");
        for name in CRATES {
            package.arguments.extend(["--package".into(), name.into()]);
        }
        ran(&package)?;
        let unpacked = self.folder.join("crates");
        let (mut sizes, mut patches) = (Vec::new(), Vec::new());
        for name in CRATES {
            let name = format!("{name}-{}", env!("CARGO_PKG_VERSION"));
            let file = target().join("package").join(format!("{name}.crate"));
            let bytes = fs::metadata(&file).map_err(|e| format!("{}: {e}", file.display()))?.len();
            if bytes > MOST_BYTES {
                return Err(format!("{name}.crate has {bytes} bytes, and crates.io takes {MOST_BYTES}"));
            }
            let mut unpack = step("tar".into(), "-xzf");
            unpack.arguments.extend([file.into(), "-C".into(), unpacked.clone().into()]);
            ran(&unpack)?;
            sizes.push(format!("\n           {name}.crate, {} kB", bytes.div_ceil(1000)));
            let short = name.trim_end_matches(env!("CARGO_PKG_VERSION")).trim_end_matches('-');
            patches.push(format!("{short} = {{ path = \"{name}\" }}\n"));
        }
        workspace(&unpacked, &patches.concat()).map_err(|e| format!("the workspace of the packages: {e}"))?;
        Ok(sizes.concat())
    }

    /// Installs the command as `cargo install` does and runs the README's first command.
    fn command(&self) -> Result<String, String> {
        let version = env!("CARGO_PKG_VERSION");
        let home = self.folder.join("command");
        let mut install = cargo("install --force --path");
        install.arguments.push(self.folder.join("crates").join(format!("covary-cli-{version}")).into());
        install.arguments.extend(["--root".into(), home.clone().into()]);
        ran(&install)?;
        let program = home.join("bin").join(if cfg!(windows) { "covary.exe" } else { "covary" });
        let empty = self.examples()?;
        let run = Command::new(&program)
            .args(["impute", "examples/wine_gaps.csv", "-o", "filled.csv"])
            .current_dir(&empty)
            .output()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        if !run.status.success() {
            return Err(said);
        }
        let filled = fs::read_to_string(empty.join("filled.csv")).map_err(|e| e.to_string())?;
        if filled.lines().any(|line| line.contains(",,") || line.starts_with(',')) {
            return Err("filled.csv has missing values".to_owned());
        }
        Ok(format!("\n           {}", said.lines().next().unwrap_or_default()))
    }

    /// Compiles the README's example against the package of the library, and runs it.
    fn library(&self) -> Result<String, String> {
        let mut run = cargo("run --release --quiet --manifest-path");
        run.arguments.push(self.folder.join("crates").join("readme").join("Cargo.toml").into());
        ran(&run).map(|()| String::new())
    }

    /// Builds the wheel and the source distribution.
    fn distributions(&self) -> Result<String, String> {
        let build = self.environment("build")?;
        let own = |arguments: &str| with_target(step(build.clone().into(), arguments));
        ran(&own("-m pip install --quiet maturin>=1.9,<2"))?;
        let out = |mut step: Step| {
            step.arguments.push(self.folder.join("dist").into());
            step
        };
        ran(&out(own("-m maturin build --release --quiet --out")))?;
        ran(&out(own("-m maturin sdist --out")))?;
        let names = ["whl", "gz"].map(|ending| self.distribution(ending));
        let mut details = Vec::new();
        for file in names {
            let file = file?;
            let bytes = fs::metadata(&file).map_err(|e| e.to_string())?.len();
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            details.push(format!("\n           {name}, {} kB", bytes.div_ceil(1000)));
        }
        Ok(details.concat())
    }

    /// Installs one of them into an environment that has nothing else, and runs the examples of both READMEs, away from
    /// the sources.
    fn python_package(&self, name: &str, ending: &str) -> Result<String, String> {
        let python = self.environment(name)?;
        let mut install = with_target(step(python.clone().into(), "-m pip install --quiet"));
        install.arguments.push(self.distribution(ending)?.into());
        ran(&install)?;
        let examples = self.examples()?;
        let code = "import covary, doctest, pathlib, sys; \
                    files = sys.argv[2:]; \
                    assert pathlib.Path(sys.argv[1]) in pathlib.Path(covary.__file__).resolve().parents, covary.__file__; \
                    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS; \
                    results = [doctest.testfile(f, module_relative=False, optionflags=flags, encoding='utf-8') for f in files]; \
                    assert all(r.attempted > 3 for r in results), results; \
                    sys.exit(any(r.failed for r in results))";
        let home = fs::canonicalize(self.folder.join(name)).map_err(|e| e.to_string())?;
        let run = Command::new(&python)
            .args(["-c", code])
            .args([home, root().join("README.md"), root().join("crates/covary-py/README.md")])
            .current_dir(&examples)
            .output()
            .map_err(|e| e.to_string())?;
        if run.status.success() {
            return Ok(String::new());
        }
        Err(String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned())
    }

    /// The file of a kind that was built.
    fn distribution(&self, ending: &str) -> Result<PathBuf, String> {
        let entries = fs::read_dir(self.folder.join("dist")).map_err(|e| e.to_string())?;
        let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
        let mut found = paths.filter(|path| path.extension().is_some_and(|e| e == ending));
        found.next().ok_or_else(|| format!("no file ends in .{ending}"))
    }

    /// The Python of a new environment.
    fn environment(&self, name: &str) -> Result<PathBuf, String> {
        let home = self.folder.join(name);
        let mut venv = step(self.python.clone(), "-m venv");
        venv.arguments.push(home.clone().into());
        ran(&venv)?;
        Ok(home.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" }))
    }

    /// A folder with the example tables and nothing else.
    fn examples(&self) -> Result<PathBuf, String> {
        let folder = self.folder.join("examples-only");
        let copy = || {
            fs::create_dir_all(folder.join("examples"))?;
            for name in ["wine.csv", "wine_gaps.csv"] {
                fs::copy(root().join("examples").join(name), folder.join("examples").join(name))?;
            }
            io::Result::Ok(())
        };
        copy().map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(folder)
    }
}

fn cargo(arguments: &str) -> Step {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    with_target(step(cargo, arguments))
}

/// Dependencies are those of the workspace, and compiled once with it.
fn with_target(mut step: Step) -> Step {
    step.environment.push(("CARGO_TARGET_DIR", target().into()));
    step
}

/// A workspace of the unpacked packages and of a program that has the README's example, with our profile and our
/// versions, so that dependencies need not be compiled again.
fn workspace(unpacked: &Path, patches: &str) -> io::Result<()> {
    let own = fs::read_to_string(root().join("Cargo.toml"))?;
    let profile = own.find("[profile.release]").map_or("", |at| &own[at..]);
    let manifest = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\"covary*\", \"readme\"]\n\n[patch.crates-io]\n{patches}\n{profile}"
    );
    fs::write(unpacked.join("Cargo.toml"), manifest)?;
    fs::copy(root().join("Cargo.lock"), unpacked.join("Cargo.lock"))?;
    fs::create_dir_all(unpacked.join("readme").join("src"))?;
    let version = env!("CARGO_PKG_VERSION");
    fs::write(
        unpacked.join("readme").join("Cargo.toml"),
        format!(
            "[package]\nname = \"readme\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\ncovary = \"{version}\"\n"
        ),
    )?;
    let readme = fs::read_to_string(root().join("README.md"))?;
    let example = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.ok_or_else(|| io::Error::other("the README has no Rust example"))?;
    fs::write(unpacked.join("readme").join("src").join("main.rs"), example)
}

fn target() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    named.map_or_else(|| root().join("target"), |path| root().join(path))
}

/// An empty folder with the folders that are written to.
fn fresh(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder.join("crates"))?;
    fs::create_dir_all(folder.join("dist"))
}

fn ran(step: &Step) -> Result<(), String> {
    if runs(step) { Ok(()) } else { Err("see above".to_owned()) }
}
