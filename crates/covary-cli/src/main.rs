//! The command `covary`: one file per verb in `cmd`; every decision about numbers is the library's.

mod args;
mod blocks;
mod checkpoint;
mod classes;
mod cmd;
mod console;
mod facts;
mod failure;
mod help;
mod input;
mod interrupt;
mod learn;
mod memory;
mod output;
mod pipe;
mod remaining;
mod server;
mod stream;
mod views;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use failure::Failure;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Tables are large: pages of memory of 2 MiB, which this allocator asks for, cost the system less to
/// hand out than those of 4 KiB.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Linear-Gaussian latent-variable models for tables with missing values.
///
/// Tables are CSV or TSV (gzipped too), Excel, ODS, Parquet, Arrow or NumPy files; the name of a
/// file tells its format, and `-` is standard input. Results go to standard output or to -o,
/// messages to standard error. Exit status: 0 success, 1 failure, 2 usage error, 130 interrupted
/// (what was finished has been written).
#[derive(Parser)]
#[command(name = "covary", version, verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary impute examples/wine_gaps.csv -o filled.csv
  covary fit examples/wine_gaps.csv -o wine.covary && covary inspect wine.covary")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Fit(cmd::fit::Fit),
    Impute(cmd::impute::Impute),
    Transform(cmd::transform::Transform),
    Reconstruct(cmd::reconstruct::Reconstruct),
    Score(cmd::score::Score),
    Forecast(cmd::forecast::Forecast),
    Sample(cmd::sample::Sample),
    Select(cmd::select::Select),
    Inspect(cmd::inspect::Inspect),
    Plot(cmd::plot::Plot),
    Report(cmd::report::Report),
    View(cmd::view::View),
    Reproduce(cmd::reproduce::Reproduce),
    Completions(cmd::completions::Completions),
    Man(cmd::man::Man),
}

/// Help that was asked for and found no place is a failure like any other.
fn said(error: &clap::Error) -> ExitCode {
    let outcome = error.print().and_then(|()| std::io::stdout().flush());
    match outcome {
        Err(e) if !error.use_stderr() && e.kind() != ErrorKind::BrokenPipe => {
            Failure::of_file("standard output", &covary::io::Error::Write(e)).report()
        }
        _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
    }
}

fn main() -> ExitCode {
    // A decoder that panics on a damaged file is caught, and the file refused in words.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !covary::io::is_decoding() {
            hook(panic);
        }
    }));
    let mut command = help::filled(Cli::command());
    let matches = command.try_get_matches_from_mut(std::env::args_os());
    let cli =
        match matches.and_then(|found| Cli::from_arg_matches(&found).map_err(|e| e.format(&mut command))) {
            Ok(cli) => cli,
            Err(error) => return said(&error),
        };
    let outcome = match cli.verb {
        Verb::Fit(fit) => fit.run(),
        Verb::Impute(impute) => impute.run(),
        Verb::Transform(transform) => transform.run(),
        Verb::Reconstruct(reconstruct) => reconstruct.run(),
        Verb::Score(score) => score.run(),
        Verb::Forecast(forecast) => forecast.run(),
        Verb::Sample(sample) => sample.run(),
        Verb::Select(select) => select.run(),
        Verb::Inspect(inspect) => inspect.run(),
        Verb::Plot(plot) => plot.run(),
        Verb::Report(report) => report.run(),
        Verb::View(view) => view.run(),
        Verb::Reproduce(reproduce) => reproduce.run(),
        Verb::Completions(completions) => completions.run(&mut Cli::command()),
        Verb::Man(man) => man.run(&Cli::command()),
    };
    match outcome {
        Ok(()) if interrupt::happened() => ExitCode::from(Failure::INTERRUPTED),
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
