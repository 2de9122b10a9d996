//! From a table to a learned model: the library decides and does, this speaks of it.

use crate::args::{Fitting, RotationName};
use crate::checkpoint;
use crate::console::{Console, Progress, count, names};
use crate::failure::{Failure, note_words};
use crate::input::Source;
use crate::interrupt;
use covary::data::{Ledger, MatrixKind};
use covary::dynamics::{Season, TimeChoice, Tried};
use covary::family::{Arrangement, Choice, Family, Grounds, Request, SIGNIFICANT};
use covary::filling::Filling;
use covary::functional::column_times;
use covary::infer::{self, MixtureEm, Observer, Step, Termination};
use covary::io::TimeColumns;
use covary::learn::Watch;
use covary::learned::{CheckOutcome, Checked, Learned, Rows};
use covary::model::{ColumnMap, Mixture};
use covary::select::{
    CheckedCell, GapTrend, HeldOut, ParallelAnalysis, Score, SelfCheck, SelfCheckOptions, gap_tests,
};
use covary::{CentralMoments, Dataset, Error, Estimator, Fit, LinearGaussian, Method, Spec};
use covary_report::words::{
    calibrated_on, chosen_filling, ending, fit_statistics, not_calibrated, objective, p_value,
};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Tells people what the library decides and does with their table.
pub(crate) struct Narrator<'a> {
    console: Console,
    source: &'a Source,
    /// What is learned from: the table of the source, or that without some cells.
    table: &'a Dataset,
    ledger: &'a Ledger,
    request: &'a Request,
    checkpoint: Option<&'a Path>,
    state: Mutex<State>,
}

/// What is under way.
#[derive(Default)]
struct State {
    progress: Option<Progress>,
    /// What the library cannot carry.
    failure: Option<Failure>,
    choice: Option<Choice>,
}

impl<'a> Narrator<'a> {
    pub(crate) fn new(
        console: Console,
        (source, ledger): (&'a Source, &'a Ledger),
        request: &'a Request,
        fitting: &'a Fitting,
    ) -> Self {
        let checkpoint = fitting.checkpoint.as_deref();
        let table = source.table.dataset();
        Self { console, source, table, ledger, request, checkpoint, state: Mutex::default() }
    }

    /// The same, learning from another table of the same columns if there is one.
    pub(crate) fn learning_from(self, table: Option<&'a Dataset>) -> Self {
        Self { table: table.unwrap_or(self.table), ..self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns the columns that the request takes.
    pub(crate) fn learn(&self) -> Result<(Learned, ColumnMap), Failure> {
        let map = self.request.column_map(self.table).map_err(|e| self.refused(e))?;
        Ok((self.learn_mapped(&map)?, map))
    }

    /// Learns these columns.
    pub(crate) fn learn_mapped(&self, map: &ColumnMap) -> Result<Learned, Failure> {
        let learned = self.request.learn_mapped(self.table, map, self);
        self.state().progress = None;
        learned.map_err(|e| self.refused(e))
    }

    /// Learns from a correlation or covariance matrix.
    pub(crate) fn learn_matrix(&self, kind: MatrixKind, n_rows: usize) -> Result<Learned, Failure> {
        let matrix = self.source.table.dataset();
        self.console.say(&format!(
            "{}: a {} matrix of {}, from {}",
            self.source.name,
            kind.name(),
            count(matrix.n_columns(), "column"),
            count(n_rows, "row")
        ));
        let learned = self.request.learn_matrix_observed(matrix, kind, n_rows, self);
        self.state().progress = None;
        learned.map_err(|e| match e {
            Error::NoRows { instead: "ask for a number of components", .. } => Failure::Call(format!(
                "a {} matrix has no cells to hide, so the number of components cannot be chosen by them: say --components N{}",
                kind.name(),
                retained(matrix, kind, n_rows)
            )),
            other => self.refused(other),
        })
    }

    /// Checks a model on hidden cells of its own table, fitted again without them; returns them.
    pub(crate) fn check(&self, learned: &mut Learned, data: &Dataset) -> Result<Vec<CheckedCell>, Failure> {
        if interrupt::asked() {
            return Ok(Vec::new());
        }
        self.state().progress = Some(self.console.steps("checking on hidden cells"));
        let cells = self.request.check_observed(learned, data, self);
        self.state().progress = None;
        cells.map_err(|e| self.refused(e))
    }

    /// How the number of components came about.
    pub(crate) fn choice(&self) -> Option<Choice> {
        self.state().choice.take()
    }

    /// Says what is known of time where the model wants to know, or that it might.
    fn tell_time(&self) {
        let (timeline, dates) = (self.table.timeline(), self.source.table.column_of_dates());
        match (self.request.family.arrangement(), timeline, dates) {
            (Arrangement::Curves, ..) => self.tell_curves(),
            (Arrangement::InTime, None, None) => self.console.say(
                "rows are taken one step after the other, as they stand (--time COLUMN says when they happened)",
            ),
            (Arrangement::InTime, None, Some(column)) => self.console.warn(&format!(
                "rows are taken one step after the other, as they stand; `{column}` has dates: say --time '{column}' if they are theirs"
            )),
            _ => {}
        }
    }

    /// Says that rows may follow each other in time where the model does not know, and what it might gain, as far as that is soon
    /// found.
    fn tell_of_time(&self, learned: &Learned, data: &Dataset) {
        let in_time =
            self.request.family.arrangement() != Arrangement::Exchangeable || self.table.timeline().is_some();
        let Some(column) = self.source.table.column_of_dates().filter(|_| !in_time) else { return };
        let beside = || {
            let columns = TimeColumns { time: column, sequences: None, steps: None };
            let table = self.source.table.clone().in_time(&columns, &self.source.gaps).ok()?;
            let data = data.clone().in_time(table.dataset().timeline()?.clone()).ok()?;
            learned.beside_time(self.request, &data, &mut |_: &Step| interrupt::flow()).ok()?
        };
        let beside = beside().filter(|_| !interrupt::asked());
        let season = beside.as_ref().and_then(|beside| beside.season);
        let season = season.map_or_else(String::new, |season| format!(" --season {season}"));
        let scored = beside.map_or_else(String::new, |beside| {
            format!(
                ": on {} in blocks of time {} had a root mean squared error of {:.2} sd of the column, this model {:.2}",
                count(beside.n_hidden, "hidden cell"),
                count(beside.n_factors, "dynamic factor"),
                beside.rmse_in_time,
                beside.rmse
            )
        });
        self.console.say(&format!(
            "`{column}` has dates: if rows follow each other in time, --model dfm --time '{column}'{season} learns from that, too{scored}"
        ));
    }

    /// Says when the columns of a wide table are taken to have been observed.
    fn tell_curves(&self) {
        if self.table.points().is_some() {
            return;
        }
        let names = self.table.column_names();
        let times = column_times(names);
        let named = names.iter().zip(&times).all(|(name, time)| name.trim().parse() == Ok(*time));
        let (first, last) =
            times.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &t| (a.min(t), b.max(t)));
        let how = if named {
            "the names of the columns"
        } else {
            "the columns one after the other, whose names are not numbers"
        };
        self.console.say(&format!(
            "rows are curves, at times {first} to {last}: {how} (--curve, --time and --value read a table with a row for each point)"
        ));
    }

    fn refused(&self, error: Error) -> Failure {
        let stopped = self.state().failure.take();
        stopped.unwrap_or_else(|| Failure::of_request(&self.source.name, error, &self.request.views))
    }
}

impl Watch for Narrator<'_> {
    fn mapped(&self, map: &ColumnMap) {
        tell_mapped(self.console, self.source, self.ledger, map);
        self.tell_time();
        let what = if self.request.filling.is_some_and(|how| how.choose) {
            "choosing a model by hidden cells"
        } else {
            "choosing the number of components"
        };
        self.state().progress = Some(self.console.share(what));
    }

    fn choosing(&self, done: usize, total: usize) -> ControlFlow<()> {
        self.state().progress.as_ref().map_or_else(interrupt::flow, |progress| progress.done(done, total))
    }

    fn chosen(&self, choice: &Choice) {
        self.state().progress = None;
        tell_choice(self.console, choice);
        let mut state = self.state();
        state.choice = Some(choice.clone());
        state.progress = Some(self.console.steps("fitting"));
    }

    fn fitting(&self, step: &Step) -> ControlFlow<()> {
        self.state().progress.as_ref().map_or_else(interrupt::flow, |progress| progress.step(step))
    }

    fn fitted(&self, learned: &Learned, _: &Choice, data: &Dataset) {
        self.state().progress = None;
        tell_fitted(self.console, learned);
        if let Ok(fit) = learned.linear()
            && learned.check_rows().is_ok()
            && !interrupt::asked()
        {
            warn_of_trends(self.console, &fit.model, data);
        }
        tell_views(self.console, learned);
        if !(self.console.is_quiet() || interrupt::asked()) {
            self.tell_of_time(learned, data);
        }
        if self.request.filling.is_some() {
            self.state().progress = Some(self.console.steps("calibrating on hidden cells"));
        }
    }

    fn finished(&self, filling: &Filling) {
        self.state().progress = None;
        if let Some(chosen) = chosen_filling(filling) {
            self.console.say(&chosen);
        }
        match calibrated_on(filling) {
            Some(calibrated) => self.console.say(&calibrated),
            None if self.request.family.arrangement() != Arrangement::Exchangeable => {}
            None if self.request.filling.is_some_and(|how| how.calibrate) => {
                self.console.say(&not_calibrated(filling));
            }
            None => {}
        }
    }

    fn checking(&self, step: &Step) -> ControlFlow<()> {
        self.fitting(step)
    }

    fn stop_flag(&self) -> Option<&AtomicBool> {
        interrupt::stop_flag()
    }

    fn checked(&self, checked: &Checked) {
        self.state().progress = None;
        tell_checked(self.console, checked);
    }

    fn fit(
        &self,
        method: &Method,
        data: &Dataset,
        spec: &Spec,
        observer: &mut dyn Observer,
    ) -> Result<Fit, Error> {
        let failure = match (method, self.checkpoint) {
            (Method::Spectral(_) | Method::BachJordan(_), None) => {
                return interrupt::without_steps(|| method.fit(data, spec));
            }
            (_, None) => return method.fit_observed(data, spec, observer),
            (Method::Gibbs(gibbs), Some(path)) => {
                match checkpoint::fit(self.console, gibbs, &self.source.name, data, spec, path, observer) {
                    Ok(fit) => return Ok(fit),
                    Err(failure) => failure,
                }
            }
            (method, Some(path)) if method.goes_by_passes() => {
                return self.journaled(data, path, |rows| method.fit_rows(rows, spec, observer));
            }
            (_, Some(_)) => Failure::Call(CHECKPOINT.to_owned()),
        };
        self.failed(failure)
    }

    fn fit_mixture(
        &self,
        method: &MixtureEm,
        data: &Dataset,
        spec: &Spec,
        observer: &mut dyn Observer,
    ) -> Result<Fit<Mixture>, Error> {
        match self.checkpoint {
            None => method.fit_observed(data, spec, observer),
            Some(path) => self.journaled(data, path, |rows| method.fit_rows(rows, spec, observer)),
        }
    }
}

impl Narrator<'_> {
    /// A fit by passes whose sums `path` keeps.
    fn journaled<M>(
        &self,
        data: &Dataset,
        path: &Path,
        fit: impl FnOnce(&dyn infer::Rows) -> Result<Fit<M>, Error>,
    ) -> Result<Fit<M>, Error> {
        let journal = match checkpoint::journal(self.console, data, path) {
            Ok(journal) => journal,
            Err(failure) => return self.failed(failure),
        };
        match fit(&journal) {
            Err(e @ Error::ForeignState { .. }) => {
                self.failed(checkpoint::refused(path, e, |e| Failure::of_table(&self.source.name, e)))
            }
            fit => fit,
        }
    }

    /// Ends the fit by a failure of its own.
    fn failed<M>(&self, failure: Failure) -> Result<Fit<M>, Error> {
        self.state().failure = Some(failure);
        Err(Error::Interrupted)
    }
}

const CHECKPOINT: &str = "--checkpoint goes with --inference gibbs, and with em, full-covariance, structured, mean-field and mixture-em";

impl Fitting {
    /// What was asked for, as far as it can be known without the table, and that it suits the family.
    pub(crate) fn request(&self, family: Family, rotation: RotationName) -> Result<Request, Failure> {
        let request = Request {
            n_components: self.components,
            n_mixtures: self.mixtures.and_then(|mixtures| mixtures.0),
            views: self.view.iter().map(|view| view.named(Vec::new())).collect(),
            inference: self.inference.clone(),
            standardize: self.standardize,
            max_iterations: self.max_iter,
            tolerance: self.tol,
            options: self.options_of_time().into_iter().chain(self.option.clone()).collect(),
            rotation: rotation.rotation().map(|how| (rotation.name(), how)),
            seed: self.seed,
            ..Request::new(family)
        };
        let in_time = |family: Family| family.arrangement() == Arrangement::InTime;
        if !in_time(family) && !self.options_of_time().is_empty() {
            return Err(Failure::Call(format!(
                "--season, --trend and --order go with --model {}, not with {family}",
                Family::names(in_time)
            )));
        }
        // The number of models may be left to be chosen, and is asked for all the same.
        let asked = Request { n_mixtures: self.mixtures.map(|m| m.0.unwrap_or(1)), ..request.clone() };
        asked.check().map_err(|e| Failure::of_request("", e, &request.views))?;
        self.check_view_names()?;
        if self.checkpoint.is_some() && !family.samples() && request.method_by_passes().is_err() {
            return Err(Failure::Call(CHECKPOINT.to_owned()));
        }
        Ok(request)
    }
}

/// The number of components that parallel analysis of a matrix retains, if it can be had.
fn retained(matrix: &Dataset, kind: MatrixKind, n_rows: usize) -> String {
    CentralMoments::of_matrix(matrix, kind, n_rows)
        .and_then(|moments| ParallelAnalysis::default().run_moments(&moments))
        .map_or_else(
            |_| String::new(),
            |found| format!(" (parallel analysis retains {})", found.n_components),
        )
}

/// Says which columns are not in the model.
pub(crate) fn tell_mapped(console: Console, source: &Source, ledger: &Ledger, map: &ColumnMap) {
    let data = source.table.dataset();
    let constants = &map.constants;
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
    let empty: Vec<&str> = ledger.empty_columns.iter().map(|&j| name(j)).collect();
    if !empty.is_empty() {
        console.warn(&format!("no value at all, so not in the model; gaps stay: {}", names(&empty)));
    }
    if let Some(note) = source.table.identifiers() {
        console.warn(&note_words(&note));
    }
}

/// The columns that can be modeled, which is said.
pub(crate) fn mapped(console: Console, source: &Source, ledger: &Ledger) -> Result<ColumnMap, Failure> {
    let map =
        ColumnMap::of_observed(source.table.dataset()).map_err(|e| Failure::of_table(&source.name, e))?;
    tell_mapped(console, source, ledger, &map);
    Ok(map)
}

/// Says how the number of components was chosen, where it was.
pub(crate) fn tell_choice(console: Console, choice: &Choice) {
    let chosen = count(choice.n_components, "component");
    match &choice.grounds {
        Grounds::HiddenCells(None) => console
            .say("no room for a component: gaps take the mean of their column (--components N fits anyway)"),
        Grounds::HiddenCells(Some(scores)) => {
            console.say(&format!("chose {chosen}: {}", prediction_words(choice.n_components, scores)));
        }
        Grounds::Correlations { tests, n_permutations } => {
            let shown: Vec<String> = tests
                .iter()
                .take(choice.n_components + 1)
                .map(|test| format!("{:.3} (p {})", test.correlation, p_value(test.p_value)))
                .collect();
            console.say(&format!(
                "chose {chosen}: canonical correlations before the first that may be chance (p > {SIGNIFICANT}), by {}:\n{}",
                match n_permutations {
                    Some(n) => format!("{n} tables with permuted rows"),
                    None => "Bartlett's test".to_owned(),
                },
                shown.join(", "),
            ));
            if choice.n_components == 0 {
                console.warn("the views share nothing that could not be chance: predictions are means (--components 1 fits anyway)");
            }
        }
        Grounds::Sizes(sizes) => {
            console.say(&format!("chose the size of least BIC among {} that were tried", sizes.len()));
            if let Some(own) = &choice.own {
                let least =
                    sizes.iter().filter(|at| !at.singular).map(|at| at.bic).fold(f64::INFINITY, f64::min);
                console.say(&format!(
                    "and the components of each model: BIC {:.1}, {:.1} with one number for all, after {}",
                    own.bic,
                    least,
                    count(own.n_fits, "further fit")
                ));
            }
        }
        Grounds::Blocks(None) => console.say("took 1 factor: too few cells can be hidden to choose by"),
        Grounds::Blocks(Some(found)) => console.say(&format!("chose {}", time_words(found))),
        Grounds::Asked | Grounds::Share(_) | Grounds::Fixed | Grounds::Offered | Grounds::Directions => {}
    }
}

/// A number of blocks.
pub(crate) fn of_time(n_blocks: usize) -> String {
    format!("{} of time", count(n_blocks, "hidden block"))
}

/// What blocks of time and forecasts chose.
fn time_words(found: &TimeChoice) -> String {
    let waves = match found.season {
        Season::Harmonics { n, .. } => format!(", {} of the season", count(n, "wave")),
        Season::None | Season::Indicators { .. } => String::new(),
    };
    let is_chosen = |tried: &&Tried| {
        (tried.n_components, tried.order, tried.season) == (found.n_components, found.order, found.season)
    };
    let errors = found.tried.iter().rev().find(is_chosen).map_or_else(String::new, |tried| {
        let ahead = tried.forecast_rmse.map_or_else(String::new, |rmse| {
            format!(
                ", {rmse:.2} in {} of up to {}",
                count(found.n_origins, "forecast"),
                count(found.horizon, "step")
            )
        });
        format!(": RMSE {:.2} in sd of the column in {}{ahead}", tried.block_rmse, of_time(found.n_blocks))
    });
    format!("{} of order {}{waves}{errors}", count(found.n_components, "factor"), found.order)
}

/// How well hidden cells are predicted with the number of components that was chosen, one less, and the best.
fn prediction_words(chosen: usize, scores: &HeldOut) -> String {
    let (best, cells) = (scores.best(), count(scores.n_hidden, "hidden cell"));
    let as_well = if chosen == best {
        format!("no other number predicts {cells} better")
    } else {
        format!("the fewest that predict {cells} as well as the best, {best}")
    };
    let unit = match scores.score {
        Score::Crps => "in CRPS",
        Score::LogDensity => "nats per cell",
    };
    let less = chosen.checked_sub(1).and_then(|less| scores.at(less));
    let fewer = less.map_or_else(String::new, |at| {
        let falls = if at.n_components == 1 { "falls" } else { "fall" };
        let of = if chosen == best { "" } else { " of that" };
        let (by, error) = (at.shortfall, at.shortfall_error);
        format!("; {} {falls} short{of} by {by:.4} ± {error:.4} {unit}", at.n_components)
    });
    let more = match chosen {
        0 => "; gaps take the mean of their column (--components 1 fits anyway)",
        _ if scores.limited => "; the table has no room for more",
        _ => "",
    };
    format!("{as_well}{fewer}{more}")
}

/// Says what was fitted, how that ended, and its warnings.
pub(crate) fn tell_fitted(console: Console, learned: &Learned) {
    let end = learned.ending();
    let standardized = if learned.standardized() { ", columns standardized" } else { "" };
    let reached =
        end.objective.map_or_else(String::new, |at| format!(", {} {:.2}", objective(at.kind), at.value));
    let article = if learned.mixture().is_ok_and(|fit| fit.classes.is_none()) { "a " } else { "" };
    let offered = learned.n_offered().map_or_else(String::new, |n| format!(" of the {n} offered"));
    console.say(&format!(
        "fitted {article}{}{offered}{standardized}, by {}: {}{reached}",
        learned.described(),
        learned.method.name,
        ending(&end)
    ));
    for warning in &end.warnings {
        let option = if warning.of_convergence { " (--max-iter N)" } else { "" };
        console.warn(&format!("{}{option}", warning.message));
    }
    if let Some((left, all @ 1..)) = learned.linear().ok().and_then(|fit| fit.model.n_nonzero()) {
        console.say(&format!("{left} of {all} loadings are not 0"));
    }
    if let Some(found) = learned.linear().ok().and_then(|fit| fit.fit_statistics.as_ref()) {
        for line in fit_statistics(found) {
            console.say(&line);
        }
    }
    if end.termination == Termination::Interrupted {
        console.warn("interrupted: going on with the fit as it is; press Ctrl-C again to give up");
    }
    if learned.all_offered_are_used() {
        console.say(&format!(
            "all that were offered are used; more may be there: --components {}",
            2 * learned.n_components()
        ));
    }
}

/// Says what a fitted model found in its views.
fn tell_views(console: Console, learned: &Learned) {
    if learned.family == Family::Pcca
        && let Ok(Some(found)) = learned.canonical()
        && !found.correlations().is_empty()
    {
        let listed: Vec<String> = found.correlations().iter().map(|r| format!("{r:.3}")).collect();
        console.say(&format!("canonical correlations {}", listed.join(", ")));
    }
    if learned.family == Family::Gfa
        && let Ok(Some(activity)) = learned.activity()
    {
        let shared = (0..activity.n_components()).filter(|&i| activity.is_shared(i)).count();
        console.say(&format!(
            "{} shared by views, {} private to one",
            count(shared, "component"),
            activity.n_components() - shared
        ));
    }
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

/// Where signals cannot be listened to.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Hides cells of rows that a model is asked about from it, and says what came of it.
pub(crate) fn check_as_it_is(
    console: Console,
    learned: &Learned,
    data: &Dataset,
    seed: u64,
) -> Result<Option<SelfCheck>, Error> {
    let options = SelfCheckOptions { seed, ..SelfCheckOptions::default() };
    let progress = console.working("checking on hidden cells");
    let stop = interrupt::stop_flag().unwrap_or(&NEVER);
    let checked = learned.check_as_it_is(Rows::New, data, &options, stop)?;
    drop(progress);
    tell_checked(console, &checked);
    Ok(checked.found().cloned())
}

pub(crate) fn tell_checked(console: Console, checked: &Checked) {
    match &checked.outcome {
        CheckOutcome::NoneToHide => {}
        CheckOutcome::Interrupted => console.say("not checked: interrupted"),
        CheckOutcome::TooFew { n_hidden } => {
            console.say(&format!("not checked: only {} could be hidden", count(*n_hidden, "cell")));
        }
        CheckOutcome::Found(check) => {
            console.say(&check_words(check, checked.in_blocks));
            if check.skill <= 0.0 {
                console.warn(
                    "the model does not beat the mean: hidden cells were predicted no better than by the mean of their column, so filled values say no more than that",
                );
            }
            if !checked.refitted {
                console.say("(the model was not fitted again: if it has seen these rows, this flatters it)");
            }
        }
    }
}

pub(crate) fn check_words(check: &SelfCheck, in_blocks: bool) -> String {
    let list = |digits: usize, shares: Vec<f64>| {
        let words: Vec<String> = shares.iter().map(|s| format!("{:.digits$}", 100.0 * s)).collect();
        let (last, others) = words.split_last().expect("levels were asked for");
        format!("{} and {last} %", others.join(", "))
    };
    format!(
        "checked on {}{}: RMSE {:.2} in sd of the column, column means {:.2} (skill {:.2});\nintervals of {} covered {} of them",
        count(check.n_hidden, "hidden cell"),
        if in_blocks { " in blocks of time" } else { "" },
        check.rmse,
        check.baseline_rmse,
        check.skill,
        list(0, check.coverage.iter().map(|c| c.level).collect()),
        list(1, check.coverage.iter().map(|c| c.share).collect()),
    )
}
