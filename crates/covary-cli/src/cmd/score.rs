//! `covary score`: how likely, and how odd, each row is.

use super::{About, Question, asked_json, push_membership};
use crate::blocks::{Answer, Part};
use crate::console::{Console, count};
use crate::failure::Failure;
use crate::input::Whole;
use clap::Args;
use covary::Error;
use covary::data::Facts;
use covary::io::{Cells, Sheet};
use covary::learned::{Learned, Membership, Surprise};
use covary::model::Outlyingness;
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};

/// Compute the log-likelihood of each row, and how far out it lies: low values are outliers.
///
/// Missing values are integrated out. The result has for each row of the table, after the columns
/// that are not in the model:
///   log_likelihood            log-density of the observed cells, in nats
///   weight                    for --model tppca: the weight of the row, far below 1 for an
///                             outlier
///   n_observed                observed cells of the row
///   mahalanobis               squared distance from the mean; chi-squared with n_observed
///                             degrees of freedom under the model (n_observed times F, where
///                             rows have heavy tails)
///   t_squared                 Hotelling's T²: the part within the plane of the components
///   squared_prediction_error  squared distance from that plane (Q residual), of standardized
///                             columns if these were fitted
/// A mixture has, in place of the last three:
///   model                     the most probable model of the row; `predicted`, its class, if
///                             classes were fitted
///   probability_…             the posterior probability of each of them
/// A dynamic factor model compares each row with its forecast from the rows before:
///   log_likelihood            log-density given the rows before
///   mahalanobis               squared distance from the forecast
///   tail_probability          p-value: the probability of a distance at least as large
/// A functional PCA has the same for each curve, with the distance from the mean curve.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary score wine.covary examples/wine_gaps.csv -o odd.csv
  covary score wine.covary examples/wine_gaps.csv | sort -t, -g -k2 | head -5")]
pub(crate) struct Score {
    #[command(flatten)]
    question: Question,

    /// How log_likelihood counts that the parameters are uncertain. `exact`, of Bayesian PCA by
    /// structured: loadings, mean and noise are integrated out exactly (a Student density given the
    /// scores) and the scores by draws, whose error is in a column standard_error. If not given,
    /// the average over 128 draws of the parameters, where these are uncertain.
    #[arg(long, verbatim_doc_comment, value_name = "exact", value_parser = ["exact"])]
    predictive: Option<String>,

    /// Draws of the scores of each row for --predictive exact.
    #[arg(long, verbatim_doc_comment, value_name = "N", default_value_t = 1000, value_parser = draws, requires = "predictive")]
    draws: usize,

    /// Seed of these draws.
    #[arg(long, verbatim_doc_comment, default_value_t = 0, requires = "predictive")]
    seed: u64,
}

fn draws(s: &str) -> Result<usize, String> {
    match s.parse() {
        Ok(n @ 2..=1_000_000) => Ok(n),
        _ => Err("give a whole number from 2 to 1000000".to_owned()),
    }
}

impl Score {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let total = Mutex::new(0.0);
        let sum = || total.lock().unwrap_or_else(PoisonError::into_inner);
        let of_block = |&Part { learned, data, .. }: &Part<'_>| {
            let found = learned.row_scores(data)?;
            found.log_density.iter().for_each(|value| *sum() += value);
            let observed = |i: usize| data.row(i).iter().filter(|v| !v.is_nan()).count() as i64;
            let mut sheet = Sheet::default();
            sheet.push("log_likelihood", Cells::Numbers(found.log_density));
            let observed = (0..data.n_rows()).map(observed).collect();
            push_rows(
                &mut sheet,
                observed,
                found.membership.as_ref(),
                found.outlyingness.as_deref(),
                learned,
            );
            Ok(sheet)
        };
        let of_all = |console: Console, facts: &Facts| {
            let observed: usize = facts.n_observed_by_column().iter().sum();
            let (total, n_rows) = (*sum(), facts.n_rows());
            told(console, total, total / observed.max(1) as f64, &count(n_rows, "row"))
        };
        let by_blocks = Answer { of_block: &of_block, of_all: &of_all };
        let by_blocks = match self.predictive {
            None => Ok(&by_blocks),
            Some(_) => Err(Whole::option("--predictive exact")),
        };
        self.question.answer_by_blocks(&About::Rows, by_blocks, |console, asked, write| {
            let data = asked.data()?;
            let refused = |e| match e {
                Error::Unsupported { .. } => Failure::Call(
                    "--predictive exact goes with a model by --model bpca --inference structured".to_owned(),
                ),
                e => asked.refused(e),
            };
            let mut found = asked.learned.row_scores(&data).map_err(refused)?;
            let mut errors = None;
            if self.predictive.is_some() {
                let exact = asked.learned.exact_log_density(&data, self.draws, self.seed).map_err(refused)?;
                found.log_density = exact.iter().map(|row| row.value).collect();
                errors = Some(exact.iter().map(|row| row.standard_error).collect());
            }
            let total: f64 = found.log_density.iter().sum();
            let n_rows = found.log_density.len();
            let observed = |i: usize| match &found.surprises {
                Some(rows) => rows[i].n_observed as i64,
                None => data.row(i).iter().filter(|v| !v.is_nan()).count() as i64,
            };
            let observed = (0..n_rows).map(observed).collect();
            let mut sheet = asked.beside(&data);
            sheet.push("log_likelihood", Cells::Numbers(found.log_density));
            if let Some(errors) = errors {
                sheet.push("standard_error", Cells::Numbers(errors));
            }
            push_rows(
                &mut sheet,
                observed,
                found.membership.as_ref(),
                found.outlyingness.as_deref(),
                &asked.learned,
            );
            if let Some(rows) = &found.surprises {
                let column = |of: fn(&Surprise) -> f64| Cells::Numbers(rows.iter().map(of).collect());
                sheet.push("mahalanobis", column(|row| row.mahalanobis));
                sheet.push("tail_probability", column(Surprise::tail_probability));
            }
            write(&sheet)?;

            let per_cell = total / data.n_observed().max(1) as f64;
            let rows = count(n_rows, if asked.learned.functional().is_ok() { "curve" } else { "row" });
            let mut found = asked_json(asked, &data);
            found.extend(told(console, total, per_cell, &rows));
            Ok(Value::Object(found))
        })
    }
}

/// Says how likely all rows are together, and returns it.
fn told(console: Console, total: f64, per_cell: f64, rows: &str) -> serde_json::Map<String, Value> {
    console.say(&format!("log-likelihood {total:.4} over {rows}, {per_cell:.4} per observed cell"));
    let found = [("log_likelihood", json!(total)), ("log_likelihood_per_cell", json!(per_cell))];
    found.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

/// Puts what is known of each row besides its likelihood on a sheet.
fn push_rows(
    sheet: &mut Sheet<'_>,
    observed: Vec<i64>,
    membership: Option<&Membership>,
    rows: Option<&[Outlyingness]>,
    learned: &Learned,
) {
    if let Some(rows) = rows.filter(|_| learned.weighs_rows()) {
        sheet.push("weight", Cells::Numbers(rows.iter().map(Outlyingness::weight).collect()));
    }
    sheet.push("n_observed", Cells::Integers(observed));
    if let Some(membership) = membership {
        push_membership(sheet, membership);
    }
    if let Some(rows) = rows {
        let column = |of: fn(&Outlyingness) -> f64| Cells::Numbers(rows.iter().map(of).collect());
        sheet.push("mahalanobis", column(|row| row.mahalanobis));
        sheet.push("t_squared", column(|row| row.t_squared));
        sheet.push("squared_prediction_error", column(|row| row.squared_prediction_error));
    }
}
