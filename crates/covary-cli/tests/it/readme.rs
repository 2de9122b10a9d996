use super::{covary, folder_with_examples, repository};
use std::fs;

/// Runs `arguments` where the README and the help say they work: at the root, beside `examples/`.
#[track_caller]
fn check_runs(arguments: &str) {
    let folder = folder_with_examples();
    let status = covary().current_dir(folder.path()).args(arguments.split_whitespace()).status();
    assert!(status.expect("the command starts").success(), "covary {arguments}");
    let filled = fs::read_to_string(folder.path().join("filled.csv")).expect("the command wrote it");
    assert!(!filled.contains(",,"), "a gap is left");
}

#[test]
fn the_commands_of_the_readme_run() {
    let readme = fs::read_to_string(repository("README.md")).expect("a README");
    let commands: Vec<&str> =
        readme.lines().filter_map(|line| line.trim().strip_prefix("cargo run --release -- ")).collect();
    assert_eq!(commands.len(), 1, "the README fills the shipped table with one command");
    commands.into_iter().for_each(check_runs);
    assert!(readme.lines().any(|line| line.trim() == "cargo xtask test"));
    let alias = fs::read_to_string(repository(".cargo/config.toml")).expect("the alias is shipped");
    assert!(alias.contains("xtask ="));
}

#[test]
fn the_output_shown_in_the_readme_is_what_the_command_says() {
    let readme = fs::read_to_string(repository("README.md")).expect("a README");
    let folder = folder_with_examples();
    let output = covary()
        .current_dir(folder.path())
        .args(["impute", "examples/wine_gaps.csv", "-o", "filled.csv"])
        .output()
        .expect("the command starts");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    let shown = readme.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("output");
    assert_eq!(shown.trim().lines().count(), said.trim().lines().count(), "the README should show:\n{said}");
    for (shown, said) in shown.split_whitespace().zip(said.split_whitespace()) {
        // Instruction sets round differently: the last digit shown may move, and a step come or go.
        let number = |word: &str| word.trim_end_matches([',', ';']).parse::<f64>();
        let close = match (number(shown), number(said)) {
            (Ok(a), Ok(b)) => (a - b).abs() <= 0.05 * (a.abs() + b.abs()),
            _ => shown == said,
        };
        assert!(close, "the README shows `{shown}` and the command says `{said}`");
    }
}

#[test]
fn help_ends_with_two_commands_that_work() {
    let output = covary().args(["impute", "--help"]).output().expect("the command starts");
    assert!(output.status.success());
    let help = String::from_utf8(output.stdout).expect("UTF-8");
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| !line.starts_with("Examples:"))
        .filter_map(|line| line.trim().strip_prefix("covary "))
        .collect();
    assert_eq!(commands.len(), 2, "{help}");
    commands.into_iter().for_each(check_runs);
}
