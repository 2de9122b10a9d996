//! `covary select`: how many components, or how many models of a mixture, and why.

use crate::args::{Reading, Running, Selecting, at_least_one, families};
use crate::console::{Console, count, harmless, table};
use crate::facts;
use crate::failure::Failure;
use crate::input::{Select as Columns, Source, Whole};
use crate::learn::{mapped, of_time};
use clap::Args;
use covary::dynamics::{Season, TimeChoice, Tried};
use covary::family::{Arrangement, Family, Grounds, Kind, Request};
use covary::select::{
    Compare, Comparison, ComparisonAt, MixtureComparison, MixtureSize, ReversibleJump, Score,
};
use covary::{Dataset, Error};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Choose the number of components: every criterion side by side, and a recommendation.
///
/// One row for each number of components of probabilistic PCA:
///   log-likelihood   of the observed cells, in nats; never decreases, so it cannot choose
///   AIC, BIC         penalized for the number of parameters; smaller is better
///   evidence         Minka's approximation of ln p(data | q), up to a constant; complete tables
///   held-out         CRPS per hidden cell, predicted from the rest of the table (smaller is better),
///                    and by how much more than the best, with its standard error; its choice is
///                    the fewest components within one standard error of the best
///   bound            evidence lower bound of structured variational Bayes
///   p(q | data)      sampled by reversible jump, with --sample; complete tables
///
/// An asterisk marks the best number of a column, and the recommended number of components.
/// The second table has the number that each criterion selects: held-out cells by the
/// one-standard-error rule, structured variational Bayes by the components it keeps. The
/// recommendation is that of held-out cells; for complete tables with more rows than columns and
/// --standardize=false, that of the evidence.
///
/// With --model mppca, mfa or gmm one row for each number of models of a mixture and of
/// components of each: parameters, log-likelihood, BIC, and fivefold cross-validation of rows, in
/// nats per cell. The recommendation is that of the smallest BIC, as for `covary fit`.
///
/// With --model dfm --time COLUMN one row for each number of harmonics, factors and lags that was
/// tried: CRPS and root mean squared error in hidden blocks of time, and of forecasts from rolling
/// origins.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary select examples/wine_gaps.csv
  covary select examples/wine.csv --sample --max-components 8
  covary select examples/wine_gaps.csv --model mppca --max-mixtures 4 --max-components 2
  covary select examples/months.csv --model dfm --time month --season 12")]
pub(crate) struct Select {
    /// Table: CSV, TSV (.gz too), Parquet, Arrow or NumPy; `-` reads standard input.
    #[arg(verbatim_doc_comment)]
    data: PathBuf,

    /// What is compared: ppca, a mixture, which is mppca, mfa or gmm, or dfm, for rows in time.
    #[arg(long, verbatim_doc_comment, value_name = "FAMILY", value_parser = families(), hide_possible_values = true, default_value = "ppca")]
    model: Family,

    /// Of dfm: steps of a season, such as 12 for months.
    #[arg(long, verbatim_doc_comment, value_name = "N", value_parser = at_least_one)]
    season: Option<usize>,

    /// Most components tried; if not given 10 (held-out cells look at as many as there may be), and 4
    /// of the models of a mixture.
    #[arg(long, verbatim_doc_comment, value_name = "N", value_parser = at_least_one)]
    max_components: Option<usize>,

    /// Most models of a mixture tried; 6 if not given.
    #[arg(long, verbatim_doc_comment, value_name = "K", value_parser = at_least_one)]
    max_mixtures: Option<usize>,

    /// Give every column unit variance first, so that units do not matter.
    #[arg(
        long,
        verbatim_doc_comment,
        value_name = "true|false",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        hide_possible_values = true
    )]
    standardize: bool,

    /// Also sample the posterior over the number of components; complete tables only.
    #[arg(long, verbatim_doc_comment)]
    sample: bool,

    /// Prior of the sampled components: their variance over that of the noise has density
    /// falling as its power 1 + A1. Small values favor few strong components.
    #[arg(long, verbatim_doc_comment, value_name = "A1", default_value_t = 0.1)]
    a1: f64,

    /// Seed of hidden cells, shuffled copies and samples.
    #[arg(long, verbatim_doc_comment, default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    selecting: Selecting,

    #[command(flatten)]
    running: Running,
}

impl Select {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let call = |why: &str| Err(Failure::Call(why.to_owned()));
        let mixture = self.model.kind() == Kind::Mixture;
        if mixture && self.sample {
            return call("--sample goes with --model ppca");
        }
        let in_time = self.model.arrangement() == Arrangement::InTime;
        if !mixture && !in_time && self.model != Family::Ppca {
            return call("select compares models of ppca, mppca, mfa, gmm and dfm; give one of these");
        }
        if in_time && (self.sample || self.max_components.is_some()) {
            return call("--sample and --max-components do not go with --model dfm");
        }
        if !in_time && self.season.is_some() {
            return call("--season goes with --model dfm");
        }
        self.reading.check_time(self.model)?;
        if !mixture && self.max_mixtures.is_some() {
            return call("--max-mixtures goes with --model mppca, mfa or gmm");
        }
        self.running.run(|console| {
            let source = {
                let instead =
                    "use `covary fit`, which chooses the number of components on a sample of its rows";
                let whole = Whole::new("`covary select`", instead);
                self.reading.read(&self.data, Columns::By(&self.selecting), &whole)?
            };
            let ledger = facts::tell(console, &source);
            let column_map = mapped(console, &source, &ledger)?;
            let failed = |e| Failure::of_table(&source.name, e);
            let data = column_map.dataset(source.table.dataset()).map_err(failed)?;
            if mixture {
                let (found, largest) = self.mixtures(console, &source, &data)?;
                return if self.running.json {
                    let facts = facts::as_json(&source, &ledger);
                    self.running.report(&mixtures_as_json(&found, largest, &facts))
                } else {
                    super::print_words(&harmless(&mixtures_described(&found, largest)))
                };
            }
            if in_time {
                let found = self.in_time(console, &source, &data)?;
                return if self.running.json {
                    self.running.report(&time_as_json(&found, &facts::as_json(&source, &ledger)))
                } else {
                    super::print_words(&harmless(&time_described(&found)))
                };
            }
            if self.sample && !data.is_complete() {
                console.warn("p(q | data) is sampled of complete tables only: left out");
            }
            let sample = ReversibleJump { seed: self.seed, a1: self.a1, ..ReversibleJump::default() };
            let sample = self.sample.then_some(sample);
            let compare = Compare {
                max_components: self.max_components,
                standardize: self.standardize,
                sample,
                seed: self.seed,
            };
            let found = compared(console, &compare, &data).map_err(failed)?;
            if let Some(doubt) = found.posterior.as_ref().and_then(covary::select::ComponentPosterior::doubt)
            {
                console.warn(&doubt.to_string());
            }
            if self.running.json {
                self.running.report(&as_json(&found, &facts::as_json(&source, &ledger)))
            } else {
                super::print_words(&harmless(&described(&found)))
            }
        })
    }
}

/// Every criterion over numbers of components.
pub(super) fn compared(console: Console, compare: &Compare, data: &Dataset) -> Result<Comparison, Error> {
    let progress = console.share("comparing numbers of components");
    compare.run_observed(data, &|what, done, total| progress.stage(what, done, total))
}

/// Parts of the rows that are held out in turn.
const FOLDS: usize = 5;

impl Select {
    fn mixtures(
        &self,
        console: Console,
        source: &Source,
        data: &Dataset,
    ) -> Result<(MixtureComparison, Largest), Failure> {
        let defaults = Request::new(self.model);
        let request = Request {
            standardize: Some(self.standardize),
            seed: self.seed,
            max_mixtures: self.max_mixtures.unwrap_or(defaults.max_mixtures),
            max_components: self.max_components.unwrap_or(defaults.max_components),
            ..defaults
        };
        let progress = console.share("comparing sizes of mixtures");
        let found = request
            .compare_sizes(data, FOLDS.min(data.n_rows()), &|done, total| progress.done(done, total))
            .map_err(|e| Failure::of_table(&source.name, e))?;
        let room = request.spec().max_components(data.n_columns());
        let most = request.max_components;
        let largest = found.recommended().map_or(Largest::default(), |at| Largest {
            mixtures: at.n_mixtures == request.max_mixtures,
            components: at.n_components == most && most < room,
        });
        Ok((found, largest))
    }
}

impl Select {
    fn in_time(&self, console: Console, source: &Source, data: &Dataset) -> Result<TimeChoice, Failure> {
        let failed = |e| Failure::of_table(&source.name, e);
        let request = Request {
            standardize: Some(self.standardize),
            seed: self.seed,
            options: self.season.iter().map(|n| ("season".to_owned(), n.to_string())).collect(),
            ..Request::new(self.model)
        };
        let method = request.method(data).map_err(failed)?;
        let progress = console.share("comparing models of time");
        let choice =
            request.choose(data, &method, &|done, total| progress.done(done, total)).map_err(failed)?;
        match choice.grounds {
            Grounds::Blocks(Some(found)) => Ok(*found),
            _ => Err(Failure::work(&source.name, "has too few cells to hide some and compare by them")),
        }
    }
}

/// How many waves there are.
fn waves(season: Season) -> usize {
    match season {
        Season::Harmonics { n, .. } => n,
        Season::None | Season::Indicators { .. } => 0,
    }
}

fn is_chosen(tried: &Tried, found: &TimeChoice) -> bool {
    (tried.n_components, tried.order, tried.season) == (found.n_components, found.order, found.season)
}

fn time_described(found: &TimeChoice) -> String {
    let header = ["factors", "order", "waves", "CRPS", "more by", "± se", "RMSE in blocks", "of forecasts"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for tried in &found.tried {
        let mark = if is_chosen(tried, found) { "* " } else { "" };
        rows.push(vec![
            format!("{mark}{}", tried.n_components),
            tried.order.to_string(),
            waves(tried.season).to_string(),
            format!("{:.4}", tried.mean),
            format!("{:.4}", tried.shortfall),
            format!("{:.4}", tried.shortfall_error),
            format!("{:.3}", tried.block_rmse),
            tried.forecast_rmse.map_or("–".to_owned(), |rmse| format!("{rmse:.3}")),
        ]);
    }
    format!(
        "{}\n\nby {} and {} of up to {}; recommended: {} of order {}, {}",
        table(&rows, &[]),
        of_time(found.n_blocks),
        count(found.n_origins, "forecast"),
        count(found.horizon, "step"),
        count(found.n_components, "factor"),
        found.order,
        count(waves(found.season), "wave"),
    )
}

fn time_as_json(found: &TimeChoice, data: &Value) -> Value {
    let one = |tried: &Tried| {
        json!({
            "n_components": tried.n_components,
            "order": tried.order,
            "harmonics": waves(tried.season),
            "crps": tried.mean,
            "shortfall": tried.shortfall,
            "shortfall_error": tried.shortfall_error,
            "block_rmse": tried.block_rmse,
            "forecast_rmse": tried.forecast_rmse,
        })
    };
    json!({
        "data": data,
        "tried": found.tried.iter().map(one).collect::<Vec<_>>(),
        "n_blocks": found.n_blocks,
        "n_origins": found.n_origins,
        "horizon": found.horizon,
        "recommended": {
            "n_components": found.n_components,
            "order": found.order,
            "harmonics": waves(found.season),
        },
    })
}

/// Whether the recommended size is the largest tried, and a larger one could be.
#[derive(Clone, Copy, Default)]
struct Largest {
    mixtures: bool,
    components: bool,
}

impl Largest {
    /// The recommendation, and how to look beyond it.
    fn sentence(self, found: &MixtureComparison) -> String {
        let beyond = match (self.mixtures, self.components) {
            (true, true) => {
                " Both numbers are the largest tried; --max-mixtures and --max-components raise them."
            }
            (true, false) => " The number of models is the largest tried; --max-mixtures raises it.",
            (false, true) => " The number of components is the largest tried; --max-components raises it.",
            (false, false) => "",
        };
        format!("{found}{beyond}")
    }
}

fn mixtures_described(found: &MixtureComparison, largest: Largest) -> String {
    let (recommended, best) = (found.recommended(), found.best_held_out());
    let mark = |is: bool, text: String| if is { format!("*{text}") } else { text };
    let header =
        ["models", "components", "parameters", "log-likelihood", "BIC", "held-out", "less by", "± se"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for at in &found.0 {
        let is_recommended = recommended == Some(at);
        let mut row = vec![
            mark(is_recommended, at.n_mixtures.to_string()),
            at.n_components.to_string(),
            at.n_parameters.to_string(),
            format!("{:.1}", at.log_likelihood),
            if at.singular { "–".to_owned() } else { mark(is_recommended, format!("{:.1}", at.bic)) },
        ];
        row.extend(at.held_out.map_or(vec!["–".to_owned(); 3], |h| {
            let mean = mark(best == Some(at), format!("{:.4}", h.mean));
            vec![mean, format!("{:.4}", h.shortfall), format!("{:.4}", h.shortfall_error)]
        }));
        rows.push(row);
    }
    format!("{}\n\n{}", table(&rows, &[]), largest.sentence(found))
}

fn mixtures_as_json(found: &MixtureComparison, largest: Largest, data: &Value) -> Value {
    let size = |at: &MixtureSize| {
        json!({
            "n_mixtures": at.n_mixtures,
            "n_components": at.n_components,
            "n_parameters": at.n_parameters,
            "log_likelihood": at.log_likelihood,
            "bic": at.bic,
            "singular": at.singular,
            "held_out": at.held_out.map(|h| json!({
                "mean": h.mean,
                "shortfall": h.shortfall,
                "shortfall_error": h.shortfall_error,
            })),
        })
    };
    let chosen = |at: Option<&MixtureSize>| {
        at.map(|at| json!({ "n_mixtures": at.n_mixtures, "n_components": at.n_components }))
    };
    json!({
        "data": data,
        "by_size": found.0.iter().map(size).collect::<Vec<_>>(),
        "choices": { "bic": chosen(found.recommended()), "held_out": chosen(found.best_held_out()) },
        "recommended": chosen(found.recommended()),
        "by": "bic",
        "largest_tried": { "n_mixtures": largest.mixtures, "n_components": largest.components },
        "sentence": largest.sentence(found),
    })
}

/// A column of the table: its name, its numbers as text, and the row that is best.
struct Column {
    name: &'static str,
    cells: Vec<String>,
    best: Option<usize>,
}

fn described(found: &Comparison) -> String {
    let at = &found.by_n_components;
    let column = |name, digits: usize, of: &dyn Fn(&ComparisonAt) -> Option<f64>, sign: f64| {
        let values: Vec<Option<f64>> = at.iter().map(of).collect();
        let rank = |(_, v): &(usize, f64)| sign * v;
        let best = values.iter().enumerate().filter_map(|(i, v)| Some((i, (*v)?)));
        let best = best.fold(None, |m: Option<(usize, f64)>, e| match m {
            Some(m) if rank(&m) >= rank(&e) => Some(m),
            _ => Some(e),
        });
        // Adding 0 turns −0 into 0.
        let text = |v: &Option<f64>| match v {
            None => "–".to_owned(),
            Some(v) if v.abs() >= 1e9 => format!("{v:.1e}"),
            Some(v) => format!("{:.digits$}", v + 0.0),
        };
        Column {
            name,
            cells: values.iter().map(text).collect(),
            best: best.filter(|_| sign != 0.0).map(|b| b.0),
        }
    };
    let held = |a: &ComparisonAt| a.held_out;
    let crps = found.score == Score::Crps;
    let mut columns = vec![
        column("log-likelihood", 1, &|a| a.log_likelihood, 0.0),
        column("AIC", 1, &|a| a.aic, -1.0),
        column("BIC", 1, &|a| a.bic, -1.0),
        column("evidence", 1, &|a| a.log_evidence, 1.0),
        column("held-out", 4, &|a| held(a).map(|h| h.mean), if crps { -1.0 } else { 1.0 }),
        column(if crps { "more by" } else { "less by" }, 4, &|a| held(a).map(|h| h.shortfall), 0.0),
        column("± se", 4, &|a| held(a).map(|h| h.shortfall_error), 0.0),
        column("bound", 1, &|a| a.lower_bound, 1.0),
        column("p(q | data)", 3, &|a| a.probability, 1.0),
    ];
    columns.retain(|c| c.cells.iter().any(|cell| cell != "–"));
    let mut rows = vec![
        std::iter::once("components")
            .chain(columns.iter().map(|c| c.name))
            .map(str::to_owned)
            .collect::<Vec<_>>(),
    ];
    // Numbers between those that were tried have no row.
    let tried = |i: &usize| columns.iter().any(|c| c.cells[*i] != "–");
    for (i, a) in at.iter().enumerate().filter(|(i, _)| tried(i)) {
        let mark = |best: bool| if best { "*" } else { "" };
        let mut row = vec![format!("{}{}", mark(a.n_components == found.recommended), a.n_components)];
        row.extend(columns.iter().map(|c| format!("{}{}", mark(c.best == Some(i)), c.cells[i])));
        rows.push(row);
    }
    let choices =
        found.choices.iter().map(|(criterion, q)| vec![criterion.words().to_owned(), q.to_string()]);
    let mut chosen = vec![vec!["criterion".to_owned(), "components".to_owned()]];
    chosen.extend(choices);
    let prior =
        found.posterior.as_ref().map_or(String::new(), |p| format!("p(q | data) with a1 = {}\n\n", p.a1));
    format!("{}\n\n{}\n\n{prior}{found}", table(&rows, &[]), table(&chosen, &[0]))
}

fn as_json(found: &Comparison, data: &Value) -> Value {
    let rows: Vec<Value> = found
        .by_n_components
        .iter()
        .map(|a| {
            json!({
                "n_components": a.n_components,
                "log_likelihood": a.log_likelihood,
                "aic": a.aic,
                "bic": a.bic,
                "log_evidence": a.log_evidence,
                "held_out": a.held_out.map(|h| json!({
                    "mean": h.mean,
                    "standard_error": h.standard_error,
                    "shortfall": h.shortfall,
                    "shortfall_error": h.shortfall_error,
                    "rmse": h.rmse,
                    "skill": h.skill,
                })),
                "lower_bound": a.lower_bound,
                "probability": a.probability,
            })
        })
        .collect();
    let choices: serde_json::Map<String, Value> =
        found.choices.iter().map(|(criterion, q)| (criterion.name().to_owned(), json!(q))).collect();
    json!({
        "data": data,
        "by_n_components": rows,
        "choices": choices,
        "recommended": found.recommended,
        "by": found.by.name(),
        "sentence": found.to_string(),
        "n_hidden": found.n_hidden,
        "score": match found.score {
            Score::Crps => "crps",
            Score::LogDensity => "log-density",
        },
        "posterior": found.posterior.as_ref().map(|p| json!({
            "probabilities": p.probabilities,
            "standard_errors": p.standard_errors,
            "r_hat": p.r_hat,
            "effective_draws": p.ess,
            "a1": p.a1,
        })),
    })
}
