//! From a table to a fitted model: what `fit` and `impute` share.

use crate::args::{Components, Family, Fitting, RotationName};
use crate::checkpoint;
use crate::choose;
use crate::facts;
use crate::failure::Failure;
use crate::input::Source;
use crate::interrupt;
use crate::voice::{Voice, count, names};
use covary::data::Ledger;
use covary::infer::{Em, FitReport, ObjectiveKind, Observer, Termination};
use covary::io::model_file::{Constant, Saved, SavedRotation};
use covary::model::{Placement, RotationSearch, rotate_model};
use covary::select::{SelfCheck, SelfCheckOptions, gap_trends, self_check};
use covary::{Dataset, Error, Estimator, LinearGaussian, Method, Spec};
use std::borrow::Cow;

/// A model with the table it was learned from.
pub(crate) struct Learned<'a> {
    pub(crate) saved: Saved,
    /// Where the model's columns stand among the table's.
    pub(crate) placement: Placement,
    /// The model's columns of the table.
    pub(crate) data: Cow<'a, Dataset>,
}

/// The columns that can be modelled, and the constants beside them.
pub(crate) fn placed(voice: Voice, source: &Source, ledger: &Ledger) -> Result<Placement, Failure> {
    let data = source.table.dataset();
    if let Some(&empty) = ledger.empty_columns.first() {
        let column = data.column_names()[empty].clone();
        return Err(Failure::of_table(&source.name, Error::EmptyColumn { column }));
    }
    let single: Vec<usize> = ledger.single_columns.iter().map(|c| c.0).collect();
    let constants = ledger.constant_columns.clone();
    let set_aside = |j: &usize| single.contains(j) || constants.iter().any(|c| c.0 == *j);
    let columns: Vec<usize> = (0..data.n_columns()).filter(|j| !set_aside(j)).collect();
    if columns.is_empty() {
        return Err(Failure::of_table(&source.name, Error::AllConstant { columns: data.n_columns() }));
    }
    let name = |j: usize| data.column_names()[j].as_str();
    if !constants.is_empty() {
        let said: Vec<&str> = constants.iter().map(|c| name(c.0)).collect();
        voice.say(&format!("constant, so not in the model; gaps take the constant: {}", names(&said)));
    }
    if !single.is_empty() {
        let said: Vec<&str> = single.iter().map(|&j| name(j)).collect();
        voice.say(&format!("observed once, so not in the model; gaps stay: {}", names(&said)));
    }
    Ok(Placement { columns, constants })
}

/// Fits what was asked for, saying how it went.
pub(crate) fn learn<'a>(
    voice: Voice,
    source: &'a Source,
    family: Family,
    fitting: &Fitting,
    rotation: RotationName,
) -> Result<(Learned<'a>, Ledger), Failure> {
    let ledger = facts::tell(voice, source);
    let placement = placed(voice, source, &ledger)?;
    let failed = |e| Failure::of_table(&source.name, e);
    let data = placement.dataset(source.table.dataset()).map_err(failed)?;
    let standardize = fitting.standardize.unwrap_or(family != Family::Pca);
    let spec = Spec { standardize, ..family.spec() };
    let method = method(&data, &spec, family, fitting)?;
    let prunes = PRUNING.contains(&method.name());
    let (n_components, choice) = match fitting.components {
        Some(Components::Number(n)) => (n, None),
        Some(Components::Auto) | None if prunes => (offered(&data, &spec), None),
        Some(Components::Auto) | None => {
            let judge = with_gaps(&method, fitting)?;
            let choice = choose::n_components(voice, &data, &spec, &judge, fitting.seed).map_err(failed)?;
            choice.say(voice);
            (choice.n_components, choice.scores)
        }
    };
    let spec = Spec { n_components, ..spec };
    let mut progress = voice.steps("fitting");
    let fit = match (&method, &fitting.checkpoint) {
        (_, None) => method.fit_observed(&data, &spec, &mut progress).map_err(failed)?,
        (Method::Gibbs(gibbs), Some(path)) => {
            checkpoint::fit(voice, gibbs, &source.name, &data, &spec, path, &mut progress)?
        }
        _ => return Err(Failure::Call("--checkpoint goes with --inference gibbs".to_owned())),
    };
    drop(progress);
    describe(
        voice,
        &fit.report,
        &format!(
            "fitted {}, {}{}{}, by {}",
            Family::words(family.name()),
            count(fit.model.n_components(), "component"),
            if prunes { format!(" of the {n_components} offered") } else { String::new() },
            if standardize { ", columns standardized" } else { "" },
            method.name(),
        ),
    );
    if prunes
        && fit.model.n_components() == n_components
        && n_components < spec.max_components(data.n_columns())
    {
        voice.say(&format!(
            "all that were offered are used; more may be there: --components {}",
            2 * n_components
        ));
    }
    warn_of_trends(voice, &fit.model, &data).map_err(failed)?;
    let mut saved = Saved::new(fit, &data, &spec, &method);
    let names = source.table.dataset().column_names();
    saved.constants =
        placement.constants.iter().map(|&(j, value)| Constant { name: names[j].clone(), value }).collect();
    family.name().clone_into(&mut saved.family);
    (saved.seed, saved.choice) = (fitting.seed, choice);
    if let Some(how) = rotation.rotation() {
        let search = RotationSearch { seed: fitting.seed, ..RotationSearch::default() };
        let rotated = rotate_model(&saved.model, &how, &search).map_err(failed)?;
        saved.rotation = Some(SavedRotation { name: rotation.name(), rotated });
    }
    Ok((Learned { saved, placement, data }, ledger))
}

/// Methods that drop components the table does not support.
const PRUNING: [&str; 3] = ["structured", "mean-field", "evidence"];
/// Most components offered to them without being asked.
const MOST_OFFERED: usize = 30;

fn offered(data: &Dataset, spec: &Spec) -> usize {
    let rows = data.n_informative_rows();
    MOST_OFFERED.min(spec.max_components(data.n_columns())).min(rows.saturating_sub(2))
}

/// Names the columns whose gaps follow the first component.
pub(crate) fn warn_of_trends(voice: Voice, model: &LinearGaussian, data: &Dataset) -> Result<(), Error> {
    match &gap_trends(model, data)?[..] {
        [] => {}
        [trend] => voice.warn(&trend.to_string()),
        trends => {
            const SHOWN: usize = 5;
            let mut named: Vec<String> = trends
                .iter()
                .take(SHOWN)
                .map(|t| format!("`{}` (correlation {:.2})", t.name, t.correlation))
                .collect();
            if trends.len() > SHOWN {
                named.push(format!("{} more columns", trends.len() - SHOWN));
            }
            voice.warn(&format!(
                "gaps follow component 1 in {}: dropping incomplete rows would bias the rest; the model stays valid if the gaps depend only on observed cells, so keep columns that explain them",
                named.join(", ")
            ));
        }
    }
    Ok(())
}

/// The road asked for, or the recommended one, with the limits asked for.
fn method(data: &Dataset, spec: &Spec, family: Family, fitting: &Fitting) -> Result<Method, Failure> {
    let method = match &fitting.inference {
        None if family == Family::Bpca => Method::from_name(family.methods()[0]).expect("a method's name"),
        None => Method::recommended(data, spec),
        Some(name) => match Method::from_name(name) {
            Some(method) if family.methods().contains(&name.as_str()) => method,
            known => {
                let (what, known) = match known {
                    None => ("is not known".to_owned(), Method::NAMES),
                    Some(_) => (format!("does not lead to --model {}", family.name()), family.methods()),
                };
                return Err(Failure::Call(format!(
                    "--inference `{name}` {what}; give one of {}",
                    known.join(", ")
                )));
            }
        },
    };
    limited(method, fitting)
}

/// The same for a table whose cells have been hidden: there are gaps then, even where there were
/// none.
fn with_gaps(method: &Method, fitting: &Fitting) -> Result<Method, Failure> {
    match method {
        // The sampler would be run for every number of components and every fold.
        Method::Spectral(_) | Method::Newton(_) | Method::ConditionalMaximization(_) | Method::Gibbs(_) => {
            limited(Method::Em(Em::default()), &Fitting { prior: Vec::new(), ..fitting.clone() })
        }
        _ => Ok(method.clone()),
    }
}

impl Learned<'_> {
    /// Checks the model on hidden cells of its own table: fitted again without them.
    pub(crate) fn check(&mut self, voice: Voice, name: &str, fitting: &Fitting) -> Result<(), Failure> {
        if interrupt::asked() {
            return Ok(());
        }
        let failed = |e| Failure::of_table(name, e);
        // Components that were found superfluous are not offered again.
        let n_components = self.saved.model.n_components();
        let (data, spec) = (&self.data, &Spec { n_components, ..self.saved.spec.clone() });
        let own = self.saved.method.to_method().map_err(failed)?;
        let hidden = if matches!(own, Method::Gibbs(_)) { own } else { with_gaps(&own, fitting)? };
        let method = match hidden {
            // The parameters, all together, end √(2 · 0.01) = 0.14 standard errors from their optimum:
            // what is left of the start, which has seen the hidden cells, does not show in what is said.
            Method::Em(em) => {
                Method::Em(Em { tolerance: em.tolerance.max(1e-2), ..em.from_model(&self.saved.model) })
            }
            other => other,
        };
        let refit = |options: &SelfCheckOptions, observer: &mut dyn Observer| {
            self_check(data, spec, &method, options, observer)
        };
        self.saved.check = check(voice, fitting.seed, refit).map_err(failed)?;
        Ok(())
    }
}

fn limited(mut method: Method, fitting: &Fitting) -> Result<Method, Failure> {
    let limits = [
        ("max_iterations", fitting.max_iter.map(|n| n.to_string())),
        ("tolerance", fitting.tol.map(|t| format!("{t:?}"))),
        ("seed", Some(fitting.seed.to_string())),
    ];
    for (option, value) in limits {
        // A road that has no use for a limit keeps it.
        if let Some(value) = value
            && method.options().contains_key(option)
        {
            method.set(option, &value).map_err(|e| Failure::Call(e.to_string()))?;
        }
    }
    for (option, value) in &fitting.prior {
        method.set(option, value).map_err(|e| Failure::Call(format!("--prior: {e}")))?;
    }
    Ok(method)
}

/// Says how a fit ended, and its warnings.
fn describe(voice: Voice, report: &FitReport, what: &str) {
    voice.say(&format!(
        "{what}: {}, {} {:.2}",
        ending(report),
        objective(report.objective.kind),
        report.objective.value
    ));
    for warning in &report.warnings {
        voice.warn(&warning.to_string());
    }
    if report.termination == Termination::Interrupted {
        voice.warn("interrupted: going on with the fit as it is; press Ctrl-C again to give up");
    }
}

pub(crate) fn ending(report: &FitReport) -> String {
    let steps = match report.objective.kind {
        ObjectiveKind::AverageLogLikelihood => format!("{} per chain", count(report.trace.len(), "draw")),
        _ => count(report.n_iterations(), "step"),
    };
    match report.termination {
        Termination::ClosedForm => "in closed form".to_owned(),
        Termination::Converged => format!("converged after {steps}"),
        Termination::IterationLimit => format!("stopped at the limit of {steps}"),
        Termination::Interrupted => format!("interrupted after {steps}"),
    }
}

pub(crate) fn objective(kind: ObjectiveKind) -> &'static str {
    match kind {
        ObjectiveKind::LogLikelihood => "log-likelihood",
        ObjectiveKind::LogPosterior => "log-posterior",
        ObjectiveKind::LowerBound => "lower bound",
        ObjectiveKind::AverageLogLikelihood => "average log-likelihood",
    }
}

/// Fewer hidden cells than this tell nothing.
const FEWEST: usize = 20;

/// Says what came of the check on hidden cells that `check` makes. None if the table has no cell to
/// spare or Ctrl-C came.
pub(crate) fn check(
    voice: Voice,
    seed: u64,
    check: impl FnOnce(&SelfCheckOptions, &mut dyn Observer) -> Result<SelfCheck, Error>,
) -> Result<Option<SelfCheck>, Error> {
    let options = SelfCheckOptions { seed, ..SelfCheckOptions::default() };
    let mut progress = voice.steps("checking on hidden cells");
    let check = match check(&options, &mut progress) {
        Err(Error::TooFewToHide { .. } | Error::Interrupted) => return Ok(None),
        other => other?,
    };
    drop(progress);
    if check.n_hidden < FEWEST {
        voice.say(&format!("not checked: only {} could be hidden", count(check.n_hidden, "cell")));
        return Ok(None);
    }
    voice.say(&check_words(&check));
    if check.skill <= 0.0 {
        voice.warn(
            "the model does not beat the mean: hidden cells were predicted no better than by the mean of their column, so filled values say no more than that",
        );
    }
    Ok(Some(check))
}

pub(crate) fn check_words(check: &SelfCheck) -> String {
    let list = |digits: usize, shares: Vec<f64>| {
        let words: Vec<String> = shares.iter().map(|s| format!("{:.digits$}", 100.0 * s)).collect();
        let (last, others) = words.split_last().expect("levels were asked for");
        format!("{} and {last} %", others.join(", "))
    };
    format!(
        "checked on {}: RMSE {:.2} in sd of the column, column means {:.2} (skill {:.2});\nintervals of {} held {} of them",
        count(check.n_hidden, "hidden cell"),
        check.rmse,
        check.baseline_rmse,
        check.skill,
        list(0, check.coverage.iter().map(|c| c.level).collect()),
        list(1, check.coverage.iter().map(|c| c.share).collect()),
    )
}
