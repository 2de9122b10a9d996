//! The command `covary`: one file per verb in `cmd`; every decision about numbers is the library's.

mod choose;
mod cmd;
mod failure;
mod output;
mod voice;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Linear-Gaussian models of tables with gaps: how columns move together, and what is missing.
///
/// Data go to standard output or to -o, words for people to standard error.
/// Exit status: 0 done, 1 failed, 2 wrong call.
#[derive(Parser)]
#[command(name = "covary", version, verbatim_doc_comment)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Impute(cmd::impute::Impute),
}

fn main() -> ExitCode {
    let Cli { verb } = Cli::parse();
    let outcome = match verb {
        Verb::Impute(impute) => impute.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
