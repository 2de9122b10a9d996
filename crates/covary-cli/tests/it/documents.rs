//! Every command that a document or a help text shows runs, and says what the document shows.

use super::{covary, folder_with_examples, repository};
use covary::family::Family;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A block of commands and, if the next block shows one, what they say.
struct Block {
    commands: String,
    shown: Option<String>,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut last_was_commands = false;
    for piece in text.split("\n```").skip(1).step_by(2) {
        let (language, body) = piece.split_once('\n').unwrap_or((piece, ""));
        match language.trim() {
            "sh" => blocks.push(Block { commands: body.to_owned(), shown: None }),
            "text" if last_was_commands => {
                blocks.last_mut().expect("just pushed").shown = Some(body.to_owned());
            }
            _ => {}
        }
        last_was_commands = language.trim() == "sh";
    }
    blocks
}

/// `covary view` serves until it is interrupted, and a test has no browser to open; other commands as they are.
fn interrupted(command: &str) -> String {
    match command.strip_prefix("covary view ") {
        None => command.to_owned(),
        Some(rest) => {
            let rest = rest.replace("--no-open", "");
            format!(
                "timeout --preserve-status --signal=INT 3 covary view --no-open {rest} || test $? -eq 130"
            )
        }
    }
}

/// Runs shell commands at a root, as a reader would; `covary` is the built command.
fn run(commands: &str, root: &Path) -> (bool, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_covary"));
    let path = std::env::var("PATH").unwrap_or_default();
    let folder = program.parent().expect("in a folder").display().to_string();
    let commands: Vec<String> = commands.lines().map(interrupted).collect();
    let commands = commands.join("\n");
    let output = Command::new("sh")
        .args(["-e", "-c", &format!("exec 2>&1\n{commands}")])
        .env("PATH", format!("{folder}:{path}"))
        .current_dir(root)
        .output()
        .expect("a shell");
    (output.status.success(), String::from_utf8(output.stdout).expect("UTF-8"))
}

/// Commands that build, install or compare are for the reader's own machine.
fn is_for_the_reader(commands: &str) -> bool {
    ["cargo xtask", "cargo install", "pip ", "bench/", "cargo fuzz"]
        .iter()
        .any(|word| commands.contains(word))
}

#[track_caller]
fn check_document(path: &Path) {
    let text = fs::read_to_string(path).expect("a document");
    let folder = folder_with_examples();
    for Block { commands, shown } in blocks(&text) {
        if is_for_the_reader(&commands) {
            continue;
        }
        let commands = commands.replace("cargo run --release -- ", "covary ");
        let (success, said) = run(&commands, folder.path());
        assert!(success, "{}: `{commands}` failed:\n{said}", path.display());
        if let Some(shown) = shown {
            check_said(&commands, &shown, &said);
        }
    }
}

#[track_caller]
fn check_said(commands: &str, shown: &str, said: &str) {
    assert_eq!(shown.trim().lines().count(), said.trim().lines().count(), "`{commands}` says:\n{said}");
    for (shown, said_word) in shown.split_whitespace().zip(said.split_whitespace()) {
        // Instruction sets round differently: the last digit shown may move, and a step come or go.
        let number = |word: &str| {
            let word = word.trim_end_matches([',', ';', ')']);
            let digits = word.split_once('.').map_or(0, |(_, after)| after.len());
            word.parse::<f64>().map(|value| (value, 0.1_f64.powi(digits.try_into().unwrap_or(0))))
        };
        let close = match (number(shown), number(said_word)) {
            (Ok((a, last)), Ok((b, _))) => (a - b).abs() <= 0.01 * (a.abs() + b.abs()) + 1.5 * last,
            _ => shown == said_word,
        };
        assert!(close, "`{shown}` is shown and `{said_word}` is said; `{commands}` says:\n{said}");
    }
}

#[test]
fn the_readme_holds() {
    let path = repository("README.md");
    let readme = fs::read_to_string(&path).expect("a README");
    let first = &blocks(&readme)[0];
    assert_eq!(first.commands.trim(), "cargo run --release -- impute examples/wine_gaps.csv -o filled.csv");
    assert!(first.shown.is_some());
    assert!(readme.lines().any(|line| line.trim() == "cargo xtask test"));
    let alias = fs::read_to_string(repository(".cargo/config.toml")).expect("the alias is shipped");
    assert!(alias.contains("xtask ="));
    for verb in ["fit", "impute", "transform", "reconstruct", "score", "sample", "inspect"] {
        assert!(
            blocks(&readme).iter().any(|b| b.commands.contains(&format!("covary {verb} "))
                || b.commands.contains(&format!("-- {verb} "))),
            "the README shows `{verb}`"
        );
    }
    check_document(&path);
}

#[test]
fn the_commands_of_the_guide_run() {
    let mut documents = 0;
    for entry in fs::read_dir(repository("docs")).expect("a guide") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|e| e == "md") {
            check_document(&path);
            documents += 1;
        }
    }
    assert!(documents > 5);
}

/// The verbs, as `covary --help` lists them.
fn verbs() -> Vec<String> {
    let help = covary().arg("--help").output().expect("the command starts");
    let help = String::from_utf8(help.stdout).expect("UTF-8");
    let after = help.split("Commands:\n").nth(1).expect("a list of verbs");
    let listed = after.lines().take_while(|line| line.starts_with("  "));
    listed
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|v| *v != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_help_ends_with_commands_that_work() {
    assert!(verbs().len() >= 9, "{:?}", verbs());
    let arguments = std::iter::once(Vec::new()).chain(verbs().into_iter().map(|v| vec![v]));
    for verb in arguments {
        let help = covary().args(&verb).arg("--help").output().expect("the command starts");
        // Commands longer than a line go on below.
        let help = String::from_utf8(help.stdout).expect("UTF-8").replace(" \\\n      ", " ");
        let commands: Vec<&str> = help
            .lines()
            .skip_while(|line| !line.starts_with("Examples:"))
            .filter_map(|line| line.trim().strip_prefix("covary "))
            .collect();
        assert!(commands.len() >= 2, "{verb:?}: {help}");
        let folder = folder_with_examples();
        // Where help speaks of a model, it is the wine's.
        let (success, said) = run("covary fit -q examples/wine_gaps.csv -o wine.covary", folder.path());
        assert!(success, "{said}");
        for command in commands {
            // Completions go where the shell looks for them, which is the reader's own folder.
            let command = command.split("> ~/").next().expect("a first part");
            let (success, said) = run(&format!("covary {command}"), folder.path());
            assert!(success, "covary {command}\n{said}");
        }
    }
}

#[test]
fn shells_and_the_manual_are_served() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = covary().args(["completions", shell]).output().expect("the command starts");
        assert!(String::from_utf8_lossy(&said.stdout).contains("components"), "{shell}");
    }
    let page = covary().args(["man", "impute"]).output().expect("the command starts");
    let page = String::from_utf8(page.stdout).expect("UTF-8");
    assert!(page.contains(".TH covary-impute 1") && page.contains("Impute the missing values"), "{page}");
}

#[test]
fn help_and_guide_have_every_family_and_method_of_the_table() {
    let help = covary().args(["fit", "--help"]).env("COLUMNS", "100").output().expect("the command starts");
    let help = String::from_utf8(help.stdout).expect("UTF-8");
    let guide = fs::read_to_string(repository("docs/command-line.md")).expect("a page");
    for family in Family::ALL {
        let listed = help.lines().any(|line| line.trim_start().starts_with(&format!("- {}:", family.name())));
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(listed && words.contains(family.summary()), "{family} in the help of fit");
        let methods = format!("  {:<9} {}", family.name(), family.methods().join(", "));
        assert!(help.lines().any(|line| line == methods), "{methods}");
        let row = format!("| `{}` | {} |", family.name(), family.methods().join(", "));
        assert!(guide.contains(&row), "docs/command-line.md lacks the row {row}");
    }
}
