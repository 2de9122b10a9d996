//! `cargo xtask test`: everything a contribution must pass, in the order that fails fastest.

#![allow(clippy::print_stderr, reason = "headings for the person at the terminal")]

use std::process::{Command, ExitCode};

/// A check: its heading, the arguments of `cargo`, and variables it runs under.
struct Check {
    heading: &'static str,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

const CHECKS: [Check; 4] = [
    Check { heading: "format", arguments: &["fmt", "--all", "--check"], environment: &[] },
    Check {
        heading: "lints",
        arguments: &["clippy", "--release", "--workspace", "--all-targets", "--", "-D", "warnings"],
        environment: &[],
    },
    Check {
        heading: "documentation",
        arguments: &["doc", "--release", "--workspace", "--no-deps"],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
    },
    Check {
        heading: "tests and examples in the documentation",
        arguments: &["test", "--release", "--workspace"],
        environment: &[],
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments != ["test"] {
        eprintln!(
            "usage: cargo xtask test     format, lints, documentation and tests; stops at the first failure"
        );
        return ExitCode::from(2);
    }
    match CHECKS.iter().find(|check| !passes(check)) {
        None => {
            eprintln!("\n== all {} checks passed", CHECKS.len());
            ExitCode::SUCCESS
        }
        Some(check) => {
            eprintln!("\n== FAILED: {} (`{}`)", check.heading, command_line(check));
            ExitCode::FAILURE
        }
    }
}

fn passes(check: &Check) -> bool {
    eprintln!("\n== {}: {}", check.heading, command_line(check));
    // The cargo that started us, so that a toolchain chosen with `cargo +name` stays chosen.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(check.arguments)
        .envs(check.environment.iter().copied())
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .status();
    match status {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cargo cannot be started: {error}");
            false
        }
    }
}

fn command_line(check: &Check) -> String {
    let variables = check.environment.iter().map(|(name, value)| format!("{name}=\"{value}\" "));
    variables.chain([format!("cargo {}", check.arguments.join(" "))]).collect()
}
