//! Long runs of the sampler, and of methods that go through rows by passes, that survive an interruption.

use crate::console::{Console, count};
use crate::failure::Failure;
use crate::output::Output;
use covary::infer::{Fit, Gibbs, GibbsState, Observer, Rows, Step, Termination};
use covary::io::Journal;
use covary::{Dataset, Error, Spec};
use std::fs::File;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How much work may be lost when the power goes.
const EVERY: Duration = Duration::from_secs(30);

const OTHER: &str = "was begun with another table, seed, number of components or other options; call as then, name another file, or delete it";

/// Rows whose sums `path` keeps, and has kept of an earlier run.
pub(crate) fn journal<'a>(console: Console, rows: &'a dyn Rows, path: &Path) -> Result<Journal<'a>, Failure> {
    let place = path.display().to_string();
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
    let file = file.map_err(|e| Failure::work(&place, e))?;
    let journal = Journal::open(rows, file).map_err(|e| Failure::of_file(&place, &e))?;
    match journal.n_known() {
        0 => {}
        1 => console.say(&format!("goes on after 1 pass, from {place}")),
        n => console.say(&format!("goes on after {n} passes, from {place}")),
    }
    Ok(journal)
}

/// An error of a fit whose sums `path` keeps.
pub(crate) fn refused(path: &Path, error: Error, other: impl FnOnce(Error) -> Failure) -> Failure {
    match error {
        Error::ForeignState { what: "pass", .. } => Failure::work(&path.display().to_string(), OTHER),
        Error::Unkept { why } => {
            let why = format!(
                "cannot be written: {why}; the passes before are kept, and the same command goes on from them once it can"
            );
            Failure::work(&path.display().to_string(), why)
        }
        error => other(error),
    }
}

/// Samples from where `path` says the chains stand, keeping it up to date.
pub(crate) fn fit(
    console: Console,
    gibbs: &Gibbs,
    name: &str,
    data: &Dataset,
    spec: &Spec,
    path: &Path,
    observer: &mut dyn Observer,
) -> Result<Fit, Failure> {
    let place = path.display().to_string();
    let failed = |e| Failure::of_table(name, e);
    let output = Output::open(Some(path))?;
    let mut state = match File::open(path) {
        Ok(file) => {
            let state = GibbsState::read(BufReader::new(file)).map_err(|e| Failure::work(&place, e))?;
            let most = gibbs.chains * gibbs.draws;
            if state.n_draws() > most {
                console.warn(&format!(
                    "{place} holds {}, more than the {most} asked for; all are used",
                    count(state.n_draws(), "draw")
                ));
            }
            state
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => gibbs.begin(data, spec).map_err(failed)?,
        Err(e) => return Err(Failure::work(&place, e)),
    };
    loop {
        let mut slice = Slice { observer, since: Instant::now(), over: false };
        let fit = match gibbs.resume(&mut state, data, spec, &mut slice) {
            Err(Error::Unsupported {
                what: "a state begun with another table, request or options", ..
            }) => {
                return Err(Failure::work(&place, OTHER));
            }
            fit => fit.map_err(failed)?,
        };
        let over = slice.over;
        output.write(|out| state.write(out).map_err(covary::io::Error::Write))?;
        if !over || fit.report.termination != Termination::Interrupted {
            if fit.report.termination == Termination::Interrupted {
                console.say(&format!("{place} has the chains: the same command goes on from there"));
            }
            return Ok(fit);
        }
    }
}

/// Stops a run when it is time to write it down.
struct Slice<'a> {
    observer: &'a mut dyn Observer,
    since: Instant,
    /// Whether it was this, and not the user, that stopped it.
    over: bool,
}

impl Observer for Slice<'_> {
    fn step(&mut self, step: &Step) -> ControlFlow<()> {
        self.observer.step(step)?;
        self.over = self.since.elapsed() > EVERY;
        if self.over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn stop_flag(&self) -> Option<&AtomicBool> {
        self.observer.stop_flag()
    }
}
