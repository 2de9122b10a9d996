//! From a table to a fitted model: what `fit` and `impute` share.

use crate::args::{Fitting, RotationName};
use crate::checkpoint;
use crate::choose;
use crate::console::{Console, count, names};
use crate::facts;
use crate::failure::Failure;
use crate::input::Source;
use crate::interrupt;
use crate::views;
use covary::data::Ledger;
use covary::infer::{Em, FitReport, Init, Observer, SharedPrivate, Termination};
use covary::io::model_file::Saved;
use covary::learn::{Components, Family, Request};
use covary::model::ColumnMap;
use covary::select::{CheckedCell, GapTrend, SelfCheck, SelfCheckOptions, gap_tests, self_check_by_cell};
use covary::{Dataset, Error, Estimator, LinearGaussian, Method, Spec};
use covary_report::words::{ending, objective};
use std::borrow::Cow;

/// A model with the table it was learned from.
pub(crate) struct Learned<'a> {
    pub(crate) saved: Saved,
    /// Where the model's columns stand among the table's.
    pub(crate) column_map: ColumnMap,
    /// The model's columns of the table.
    pub(crate) data: Cow<'a, Dataset>,
    /// What was asked for.
    request: Request,
}

/// The columns that can be modeled, and the constants beside them.
pub(crate) fn placed(console: Console, source: &Source, ledger: &Ledger) -> Result<ColumnMap, Failure> {
    let column_map =
        ColumnMap::of_varying(source.table.dataset()).map_err(|e| Failure::of_table(&source.name, e))?;
    tell_placed(console, source, ledger, &column_map);
    Ok(column_map)
}

/// Says which columns are not in the model.
pub(crate) fn tell_placed(console: Console, source: &Source, ledger: &Ledger, column_map: &ColumnMap) {
    let data = source.table.dataset();
    let constants = &column_map.constants;
    let single: Vec<usize> = ledger.single_columns.iter().map(|c| c.0).collect();
    let name = |j: usize| data.column_names()[j].as_str();
    if !constants.is_empty() {
        let said: Vec<&str> = constants.iter().map(|c| name(c.0)).collect();
        console.say(&format!("constant, so not in the model; gaps take the constant: {}", names(&said)));
    }
    if !single.is_empty() {
        let said: Vec<&str> = single.iter().map(|&j| name(j)).collect();
        console.say(&format!("observed once, so not in the model; gaps stay: {}", names(&said)));
    }
}

/// Fits what was asked for, saying how it went.
pub(crate) fn learn<'a>(
    console: Console,
    source: &'a Source,
    family: Family,
    fitting: &Fitting,
    rotation: RotationName,
) -> Result<(Learned<'a>, Ledger), Failure> {
    let ledger = facts::tell(console, source);
    let request = Request { views: fitting.views(source)?, ..fitting.request(family, rotation) };
    let column_map =
        request.column_map(source.table.dataset()).map_err(|e| Failure::of_table(&source.name, e))?;
    tell_placed(console, source, &ledger, &column_map);
    Ok((learn_placed(console, source, column_map, request, fitting)?, ledger))
}

/// Fits the columns that were placed.
pub(crate) fn learn_placed<'a>(
    console: Console,
    source: &'a Source,
    column_map: ColumnMap,
    request: Request,
    fitting: &Fitting,
) -> Result<Learned<'a>, Failure> {
    let failed = |e| views::refused(&source.name, e, &request.views);
    let data = column_map.dataset(source.table.dataset()).map_err(failed)?;
    let method = request.method(&data).map_err(call)?;
    let prunes = Request::prunes(&method);
    let choice = choose::n_components(console, &request, &data, &method).map_err(failed)?;
    let spec = request.spec_for(&data, choice.n_components);
    let (n_components, standardize) = (spec.n_components, spec.standardize);
    let mut progress = console.steps("fitting");
    let fit = match (&method, &fitting.checkpoint) {
        (Method::Spectral(_) | Method::BachJordan(_), None) => {
            interrupt::without_steps(|| method.fit(&data, &spec)).map_err(failed)?
        }
        (_, None) => method.fit_observed(&data, &spec, &mut progress).map_err(failed)?,
        (Method::Gibbs(gibbs), Some(path)) => {
            checkpoint::fit(console, gibbs, &source.name, &data, &spec, path, &mut progress)?
        }
        _ => return Err(Failure::Call("--checkpoint goes with --inference gibbs".to_owned())),
    };
    drop(progress);
    describe(
        console,
        &fit.report,
        &format!(
            "fitted {}, {}{}{}, by {}",
            covary::learn::Family::words(request.family.name()),
            if request.family == Family::Pcca {
                format!("{} shared", count(n_components, "component"))
            } else {
                count(fit.model.n_components(), "component")
            },
            if prunes { format!(" of the {n_components} offered") } else { String::new() },
            if standardize { ", columns standardized" } else { "" },
            method.name(),
        ),
    );
    if prunes
        && fit.model.n_components() == n_components
        && n_components < spec.max_components(data.n_columns())
    {
        console.say(&format!(
            "all that were offered are used; more may be there: --components {}",
            2 * n_components
        ));
    }
    if !interrupt::asked() {
        warn_of_trends(console, &fit.model, &data);
    }
    let wide = source.table.dataset();
    let saved = request.keep(fit, &data, (&spec, &method, choice), (&column_map, wide)).map_err(failed)?;
    views::tell(console, &saved);
    Ok(Learned { saved, column_map, data, request })
}

/// Names the columns whose gaps follow the first component: a courtesy, which never stops the work.
pub(crate) fn warn_of_trends(console: Console, model: &LinearGaussian, data: &Dataset) {
    const SHOWN: usize = 5;
    let Ok(tests) = gap_tests(model, data) else { return };
    let trends: Vec<&GapTrend> = tests.trends().collect();
    let said = match &trends[..] {
        [] => return,
        [trend] => trend.to_string(),
        trends => {
            let mut named: Vec<String> = trends
                .iter()
                .take(SHOWN)
                .map(|t| format!("`{}` (correlation {:.2})", t.name, t.correlation))
                .collect();
            if trends.len() > SHOWN {
                named.push(count(trends.len() - SHOWN, "more column"));
            }
            format!(
                "gaps follow component 1 in {}: dropping incomplete rows would bias the rest; the model stays valid if the gaps depend only on observed cells, so keep columns that explain them",
                named.join(", ")
            )
        }
    };
    let part = tests.sampled().map_or_else(String::new, |part| format!(" (judged by {part})"));
    console.warn(&format!("{said}{part}"));
}

/// A method or an option of it that cannot be meant is a wrong call.
pub(crate) fn call(error: Error) -> Failure {
    Failure::Call(match error {
        Error::NoSuchMethod { name, known } => {
            format!("--inference `{name}` is not known; give one of {known}")
        }
        Error::WrongMethod { method, family, known } => {
            format!("--inference `{method}` does not lead to --model {family}; give one of {known}")
        }
        other => format!("--prior: {other}"),
    })
}

impl Fitting {
    /// What was asked for.
    pub(crate) fn request(&self, family: Family, rotation: RotationName) -> Request {
        Request {
            family,
            n_components: self.components.unwrap_or(Components::Auto),
            views: Vec::new(),
            inference: self.inference.clone(),
            standardize: self.standardize,
            max_iterations: self.max_iter,
            tolerance: self.tol,
            options: self.prior.clone(),
            rotation: rotation.rotation().map(|how| (rotation.name(), how)),
            seed: self.seed,
        }
    }
}

impl Learned<'_> {
    /// Checks the model on hidden cells of its own table, fitted again without them; returns them.
    pub(crate) fn check(
        &mut self,
        console: Console,
        name: &str,
        fitting: &Fitting,
    ) -> Result<Vec<CheckedCell>, Failure> {
        if interrupt::asked() {
            return Ok(Vec::new());
        }
        let failed = |e| Failure::of_table(name, e);
        // Components that were found superfluous are not offered again.
        let n_components = self.saved.n_shown();
        let (data, spec) = (&self.data, &Spec { n_components, ..self.saved.spec.clone() });
        let method = judge(&self.saved, &self.request).map_err(failed)?;
        let mut cells = Vec::new();
        let refit = |options: &SelfCheckOptions, observer: &mut dyn Observer| {
            let (found, by_cell) = self_check_by_cell(data, spec, &method, options, observer)?;
            cells = by_cell;
            Ok(found)
        };
        self.saved.check = check(console, fitting.seed, refit).map_err(failed)?;
        Ok(cells)
    }
}

/// The method that fits a model again with cells hidden: its own if it allows gaps, started from the
/// model if it can be.
pub(crate) fn judge(saved: &Saved, request: &Request) -> Result<Method, Error> {
    let own = saved.method.to_method()?;
    let hidden = if matches!(own, Method::Gibbs(_)) { own } else { request.with_gaps(&own)? };
    Ok(match hidden {
        // The parameters, all together, end √(2 · 0.01) = 0.14 standard errors from their optimum: what is
        // left of the start, which has seen the hidden cells, does not show in what is said.
        Method::Em(em) => Method::Em(Em { tolerance: em.tolerance.max(1e-2), ..em.from_model(&saved.model) }),
        Method::SharedPrivate(method) if method.private.is_none() => Method::SharedPrivate(SharedPrivate {
            tolerance: method.tolerance.max(1e-2),
            init: Init::Given(Box::new(saved.model.clone())),
            ..method
        }),
        other => other,
    })
}

/// Says how a fit ended, and its warnings.
pub(crate) fn describe(console: Console, report: &FitReport, what: &str) {
    console.say(&format!(
        "{what}: {}, {} {:.2}",
        ending(report),
        objective(report.objective.kind),
        report.objective.value
    ));
    for warning in &report.warnings {
        console.warn(&warning.to_string());
    }
    if report.termination == Termination::Interrupted {
        console.warn("interrupted: going on with the fit as it is; press Ctrl-C again to give up");
    }
}

/// Fewer hidden cells than this tell nothing.
const FEWEST: usize = 20;

/// Says what came of the check on hidden cells that `check` makes. None if the table has no cell to
/// spare or Ctrl-C came.
pub(crate) fn check(
    console: Console,
    seed: u64,
    check: impl FnOnce(&SelfCheckOptions, &mut dyn Observer) -> Result<SelfCheck, Error>,
) -> Result<Option<SelfCheck>, Error> {
    let options = SelfCheckOptions { seed, ..SelfCheckOptions::default() };
    let mut progress = console.steps("checking on hidden cells");
    let check = match check(&options, &mut progress) {
        Err(Error::TooFewToHide { .. }) => return Ok(None),
        Err(Error::Interrupted) => {
            console.say("not checked: interrupted");
            return Ok(None);
        }
        other => other?,
    };
    drop(progress);
    if check.n_hidden < FEWEST {
        console.say(&format!("not checked: only {} could be hidden", count(check.n_hidden, "cell")));
        return Ok(None);
    }
    console.say(&check_words(&check));
    if check.skill <= 0.0 {
        console.warn(
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
