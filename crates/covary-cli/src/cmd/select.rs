//! `covary select`: how many components, and why.

use crate::args::{Reading, Running, Selecting, at_least_one};
use crate::facts;
use crate::failure::Failure;
use crate::input::Select as Columns;
use crate::learn::placed;
use crate::voice::aligned;
use clap::Args;
use covary::select::{Compare, Comparison, ComparisonAt, ReversibleJump};
use serde_json::{Value, json};
use std::path::PathBuf;

/// How many components a table supports, by every criterion at once, and what to make of them.
///
/// One row for each number of components of probabilistic PCA:
///   log-likelihood   of the observed cells, in nats; never falls, so it cannot choose
///   AIC, BIC         penalised for the number of parameters; smaller is better
///   evidence         Minka's approximation of ln p(data | q), up to a constant; complete tables
///   held-out         nats per hidden cell, each fifth of them predicted from the rest, and by
///                    how much less than the best, with its standard error; its choice is the
///                    fewest components within one standard error of the best
///   bound            of structured variational Bayes; charges several nats per component
///   p(q | data)      sampled by reversible jump, with --sample; complete tables
///
/// An asterisk marks the best number of a column, and the recommended number of components.
/// Below stands what each criterion would take: held-out cells by one standard error,
/// structured variational Bayes by the components it keeps. Recommended is what held-out cells
/// say; for complete tables with more rows than columns and --standardize=false, the evidence.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary select examples/wine_gaps.csv
  covary select examples/wine.csv --sample --max-components 8")]
pub(crate) struct Select {
    /// Table: CSV, TSV (.gz too), Parquet, Arrow or NumPy; `-` reads standard input.
    #[arg(verbatim_doc_comment)]
    data: PathBuf,

    /// Most components tried.
    #[arg(long, verbatim_doc_comment, value_name = "N", default_value_t = 10, value_parser = at_least_one)]
    max_components: usize,

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
    /// falling as its power 1 + A1. Small values favour few strong components.
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
        self.running.run(|voice| {
            let source = self.reading.read(&self.data, Columns::By(&self.selecting))?;
            let ledger = facts::tell(voice, &source);
            let placement = placed(voice, &source, &ledger)?;
            let failed = |e| Failure::of_table(&source.name, e);
            let data = placement.dataset(source.table.dataset()).map_err(failed)?;
            if self.sample && !data.is_complete() {
                voice.warn("p(q | data) is sampled of complete tables only: left out");
            }
            let sample = ReversibleJump { seed: self.seed, a1: self.a1, ..ReversibleJump::default() };
            let sample = self.sample.then_some(sample);
            let compare = Compare {
                max_components: self.max_components,
                standardize: self.standardize,
                sample,
                seed: self.seed,
            };
            let progress = voice.share("comparing numbers of components");
            let found = compare
                .run_observed(&data, &|what, done, total| progress.stage(what, done, total))
                .map_err(failed)?;
            drop(progress);
            if let Some(doubt) = found.posterior.as_ref().and_then(covary::select::ComponentPosterior::doubt)
            {
                voice.warn(&doubt.to_string());
            }
            if self.running.json {
                self.running.report(&as_json(&found, &facts::as_json(&source, &ledger)))
            } else {
                super::print(&described(&found))
            }
        })
    }
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
    let mut columns = vec![
        column("log-likelihood", 1, &|a| a.log_likelihood, 0.0),
        column("AIC", 1, &|a| a.aic, -1.0),
        column("BIC", 1, &|a| a.bic, -1.0),
        column("evidence", 1, &|a| a.log_evidence, 1.0),
        column("held-out", 4, &|a| held(a).map(|h| h.mean), 1.0),
        column("less by", 4, &|a| held(a).map(|h| h.shortfall), 0.0),
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
    for (i, a) in at.iter().enumerate() {
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
    format!("{}\n\n{}\n\n{prior}{found}", aligned(&rows, &[]), aligned(&chosen, &[0]))
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
        "posterior": found.posterior.as_ref().map(|p| json!({
            "probabilities": p.probabilities,
            "standard_errors": p.standard_errors,
            "r_hat": p.r_hat,
            "effective_draws": p.ess,
            "a1": p.a1,
        })),
    })
}
