//! Independent components: from a table to sources that can be kept.

use crate::args::Fitting;
use crate::console::{Console, count};
use crate::facts;
use crate::failure::Failure;
use crate::input::Source;
use crate::learn::{call, placed};
use covary::data::Ledger;
use covary::ica::Fit;
use covary::infer::Termination;
use covary::io::model_file::SavedSources;
use covary::learn::{IcaRequest, LearnedSources};
use covary_report::words::{ended, objective};

impl Fitting {
    /// The independent components asked for.
    fn sources(&self) -> Result<IcaRequest, Failure> {
        let refused = |why: &str| Err(Failure::Call(why.to_owned()));
        if self.mixtures.is_some() {
            return refused("--mixtures goes with --model mppca, mfa or gmm");
        }
        if self.standardize.is_some() {
            return refused(
                "--standardize changes no independent component: the table is made white first; leave it out",
            );
        }
        if self.checkpoint.is_some() {
            return refused("--checkpoint goes with --inference gibbs");
        }
        Ok(IcaRequest {
            n_components: self.components,
            inference: self.inference.clone(),
            max_iterations: self.max_iter,
            tolerance: self.tol,
            options: self.prior.clone(),
            seed: self.seed,
        })
    }
}

/// Separates the sources of a table, saying how it went.
pub(crate) fn learn(
    console: Console,
    source: &Source,
    fitting: &Fitting,
) -> Result<(LearnedSources, Ledger), Failure> {
    let request = fitting.sources()?;
    request.method().map_err(call)?;
    let ledger = facts::tell(console, source);
    placed(console, source, &ledger)?;
    let progress = console.steps("separating");
    let learned =
        request.learn(source.table.dataset(), &progress).map_err(|e| Failure::of_table(&source.name, e))?;
    drop(progress);
    let saved = &learned.saved;
    console.say(&format!(
        "separated {}, by {}: {}",
        count(saved.model().n_components(), "source"),
        saved.method.name,
        how_it_ended(&saved.found)
    ));
    for warning in &saved.found.warnings {
        console.warn(&warning.to_string());
    }
    if saved.found.termination == Termination::Interrupted {
        console.warn("interrupted: going on with the sources as they are; press Ctrl-C again to give up");
    }
    Ok((learned, ledger))
}

/// How it ended, and what was reached where something was maximized.
pub(crate) fn how_it_ended(found: &Fit) -> String {
    let ended = ended(found.termination, &count(found.n_iterations, "step"));
    match found.objective() {
        Some(reached) => format!("{ended}, {} {:.4}", objective(reached.kind), reached.value),
        None => ended,
    }
}

/// Names of the columns that hold sources.
pub(crate) fn names(saved: &SavedSources) -> Vec<String> {
    (1..=saved.model().n_components()).map(|k| format!("source_{k}")).collect()
}
