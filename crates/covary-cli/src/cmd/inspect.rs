//! `covary inspect`: everything in a model file.

use crate::console::{aligned, count, harmless};
use crate::failure::Failure;
use crate::ica::how_it_ended;
use crate::input;
use crate::learn::check_words;
use crate::mixture;
use crate::views;
use clap::Args;
use covary::io::model_file::{Opened, Saved, SavedMixture, SavedSources};
use covary::learn::Family;
use covary::{LinearGaussian, Matrix, ica};
use covary_report::words::{ending, objective};
use std::fmt::Write;
use std::path::PathBuf;

/// Everything in a model file, for people or, with --json, for programs.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary inspect wine.covary
  covary inspect wine.covary --json > wine.json")]
pub(crate) struct Inspect {
    /// A model file, as `covary fit` writes it.
    #[arg(verbatim_doc_comment)]
    model: PathBuf,

    /// As JSON, with every number.
    #[arg(long, verbatim_doc_comment)]
    json: bool,
}

impl Inspect {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let words = match input::opened(&self.model)? {
            opened if self.json => return super::print(&opened.to_json()),
            Opened::Model(saved) => described(&saved),
            Opened::Mixture(saved) => described_mixture(&saved),
            Opened::Sources(saved) => described_sources(&saved),
        };
        super::print(&harmless(&words))
    }
}

fn described(saved: &Saved) -> String {
    let (model, training) = (&saved.model, &saved.training);
    let q = model.n_components();
    let mut out = String::new();
    let mut say = |line: String| writeln!(out, "{line}").expect("memory takes all");
    let shown = saved.n_shown();
    say(format!(
        "{}, {}{}, {}{}",
        Family::words(&saved.family),
        count(shown, "component"),
        if shown < q { " shared" } else { "" },
        count(saved.columns.len(), "column"),
        if saved.spec.standardize { ", fitted to standardized columns" } else { "" },
    ));
    say(format!(
        "learned from {} with {} ({:.1} %), by {}: {}",
        count(training.n_rows, "row"),
        count(training.n_gaps(), "gap"),
        100.0 * training.n_gaps() as f64 / (training.n_rows * saved.columns.len()) as f64,
        saved.method.name,
        ending(&saved.report),
    ));
    say(format!(
        "{} {:.4}; seed {}; written by {}",
        objective(saved.report.objective.kind),
        saved.report.objective.value,
        saved.seed,
        saved.created_by,
    ));
    for (name, columns) in saved.view_columns() {
        say(format!("view `{name}`: {}", saved.columns[columns].join(", ")));
    }
    match saved.parameter_uncertainty() {
        "none" => {}
        "draws" => say(format!(
            "filled cells, densities and new rows average over {} of the parameters; scores are at their center",
            count(saved.draws.as_ref().map_or(0, |d| d.models().len()), "draw")
        )),
        _ => say("answers include the uncertainty of loadings, mean and noise".to_owned()),
    }
    if saved.family == "bpca" && saved.parameter_uncertainty() == "none" {
        say("answers take the parameters as known".to_owned());
    }
    for warning in &saved.report.warnings {
        say(format!("warning: {warning}"));
    }
    if let Some(choice) = &saved.choice {
        say(
            "\nhow the number of components was chosen: nats per hidden cell, by how much less than the best"
                .to_owned(),
        );
        let mut rows = vec![["components", "nats", "less by", "± se", "skill"].map(str::to_owned).to_vec()];
        for at in &choice.by_n_components {
            rows.push(vec![
                format!("{}{}", if at.n_components == q { "* " } else { "" }, at.n_components),
                format!("{:.4}", at.mean),
                format!("{:.4}", at.shortfall),
                format!("{:.4}", at.shortfall_error),
                format!("{:.3}", at.skill),
            ]);
        }
        say(aligned(&rows, &[]));
    }

    if saved.family == Family::Pcca.name()
        && let Some(correlations) = views::correlations(saved)
    {
        let listed: Vec<String> = correlations.iter().map(|r| format!("{r:.4}")).collect();
        say(format!("\ncanonical correlations: {}", listed.join(", ")));
    }

    let (turned, by) = match &saved.rotation {
        Some(r) => (&r.rotated.loadings, format!(", after {} rotation", r.name)),
        None => (model.loadings(), String::new()),
    };
    let rest = if shown < q { "not shared" } else { "noise" };
    say(format!(
        "\nobserved mean and sd of each column, loadings in standard deviations of the model{by}, and the share of its variance that is {rest}"
    ));
    let deviations: Vec<f64> = model.variances().iter().map(|v| v.sqrt()).collect();
    let mut header = vec!["column".to_owned(), "mean".to_owned(), "sd".to_owned()];
    header.extend((1..=shown).map(|k| k.to_string()));
    header.push(rest.to_owned());
    let mut rows = vec![header];
    for (j, name) in saved.columns.iter().enumerate() {
        let (mean, sd) = (saved.training.column_means[j], saved.training.column_sds[j]);
        let mut row = vec![name.clone(), digits(mean), digits(sd)];
        let in_sds: Vec<f64> = (0..shown).map(|k| turned[(j, k)] / deviations[j]).collect();
        row.extend(in_sds.iter().map(|w| format!("{w:.2}")));
        let left = if shown < q {
            1.0 - in_sds.iter().map(|w| w * w).sum::<f64>()
        } else {
            model.noise().variance(j) / deviations[j].powi(2)
        };
        row.push(format!("{left:.2}"));
        rows.push(row);
    }
    say(aligned(&rows, &[0]));
    // Factors that were rotated together are uncorrelated.
    let correlated = |phi: &Matrix| (1..phi.n_rows()).any(|i| phi.row(i)[..i].iter().any(|r| r.abs() > 1e-9));
    if let Some(r) = saved.rotation.as_ref().filter(|r| correlated(&r.rotated.factor_correlations)) {
        say("\ncorrelations of the factors".to_owned());
        say(square(&r.rotated.factor_correlations));
    }
    if q > 0 && saved.rotation.is_none() && saved.views.is_empty() {
        let ratio = model.explained_variance_ratio();
        let of = if saved.spec.standardize { "standardized columns" } else { "the columns" };
        say(format!("\nproportion of the variance of {of} that each component explains"));
        let relevance = &saved.report.relevance;
        let mut header = vec!["component".to_owned(), "share".to_owned(), "together".to_owned()];
        header.extend((!relevance.is_empty()).then(|| "relevance".to_owned()));
        let mut rows = vec![header];
        let mut together = 0.0;
        for (k, share) in ratio.iter().enumerate() {
            together += share;
            let mut row = vec![(k + 1).to_string(), percent(*share), percent(together)];
            row.extend(relevance.get(k).map(|alpha| digits(*alpha)));
            rows.push(row);
        }
        say(aligned(&rows, &[]));
        if !relevance.is_empty() {
            say("relevance: precision of a component's loadings; the larger, the less it is needed"
                .to_owned());
        }
    }
    if let Some(activity) = views::activity(saved) {
        let of = if saved.spec.standardize { ", columns standardized," } else { "" };
        say(format!(
            "\nshare of the variance of each view{of} that each component explains; – where it is not active"
        ));
        let mut header = vec!["view".to_owned()];
        header.extend((1..=q).map(|k| k.to_string()));
        let mut rows = vec![header];
        for (v, name) in saved.views.iter().enumerate() {
            let cell = |i: usize| {
                let share = activity.explained_variance[(v, i)];
                if activity.is_active(v, i) { percent(share) } else { "–".to_owned() }
            };
            rows.push(std::iter::once(name.clone()).chain((0..q).map(cell)).collect());
        }
        say(aligned(&rows, &[0]));
    }
    if !saved.report.monitored.is_empty() {
        say("\nhow well the chains know what no turn of the components changes, columns centered and scaled"
            .to_owned());
        let mut rows =
            vec![["quantity", "mean", "sd", "R-hat", "effective draws"].map(str::to_owned).to_vec()];
        for m in &saved.report.monitored {
            rows.push(vec![
                m.quantity.clone(),
                digits(m.summary.mean),
                digits(m.summary.sd),
                m.summary.r_hat.map_or("–".to_owned(), |r| format!("{r:.3}")),
                format!("{:.0}", m.summary.ess),
            ]);
        }
        say(aligned(&rows, &[0]));
    }
    for constant in &saved.constants {
        say(format!("\nconstant, not in the model: `{}` = {}", constant.name, constant.value));
    }
    if let Some(check) = &saved.check {
        say(format!("\n{}", check_words(check)));
    }
    out.trim_end().to_owned()
}

fn described_mixture(saved: &SavedMixture) -> String {
    let (mixture, training) = (&saved.mixture, &saved.training);
    let (components, q) = (mixture.models(), mixture.models()[0].n_components());
    let mut out = String::new();
    let mut say = |line: String| writeln!(out, "{line}").expect("memory takes all");
    let words = covary::learn::Family::words(&saved.family);
    let standardized = if saved.spec.standardize { ", fitted to standardized columns" } else { "" };
    let size = format!("{} each, {}", count(q, "component"), count(saved.columns.len(), "column"));
    say(match &saved.classes {
        Some(classes) => format!("{words} for each class of `{}`, {size}{standardized}", classes.target),
        None => format!("{words}, {}, {size}{standardized}", count(components.len(), "model")),
    });
    say(format!(
        "learned from {} with {} ({:.1} %), by {}: {}",
        count(training.n_rows, "row"),
        count(training.n_gaps(), "gap"),
        100.0 * training.n_gaps() as f64 / (training.n_rows * saved.columns.len()) as f64,
        saved.method.name,
        ending(&saved.report),
    ));
    say(format!(
        "{} {:.4}, {} parameters; seed {}; written by {}",
        objective(saved.report.objective.kind),
        saved.report.objective.value,
        saved.n_parameters(),
        saved.seed,
        saved.created_by,
    ));
    for warning in &saved.report.warnings {
        say(format!("warning: {warning}"));
    }
    say("\nshare of the rows in each, and its means in the units of the table".to_owned());
    let mut header = vec!["column".to_owned()];
    header.extend(mixture::names(saved));
    let mut shares = vec!["share of rows".to_owned()];
    shares.extend(mixture.weights().iter().map(|w| percent(*w)));
    let mut rows = vec![header.clone(), shares];
    for (j, name) in saved.columns.iter().enumerate() {
        let means = components.iter().map(|c| digits(c.mean()[j]));
        rows.push(std::iter::once(name.clone()).chain(means).collect());
    }
    say(aligned(&rows, &[0]));
    say("\nstandard deviations in each, and the share of its variance that is noise".to_owned());
    let mut rows = vec![header];
    for (j, name) in saved.columns.iter().enumerate() {
        let cell = |c: &LinearGaussian| {
            let variance = c.variances()[j];
            format!("{} ({:.2})", digits(variance.sqrt()), c.noise().variance(j) / variance)
        };
        rows.push(std::iter::once(name.clone()).chain(components.iter().map(cell)).collect());
    }
    say(aligned(&rows, &[0]));
    for constant in &saved.constants {
        say(format!("\nconstant, not in the model: `{}` = {}", constant.name, constant.value));
    }
    if let Some(check) = &saved.check {
        say(format!("\n{}", check_words(check)));
    }
    out.trim_end().to_owned()
}

fn described_sources(saved: &SavedSources) -> String {
    let (found, model, training) = (&saved.found, saved.model(), &saved.training);
    let q = model.n_components();
    let mut out = String::new();
    let mut say = |line: String| writeln!(out, "{line}").expect("memory takes all");
    let noise = if saved.noisy().is_ok() { ", behind noise" } else { "" };
    say(format!(
        "independent components, {}, {}{noise}",
        count(q, "source"),
        count(saved.columns.len(), "column")
    ));
    say(format!(
        "learned from {} with {}, by {}: {}",
        count(training.n_rows, "row"),
        count(training.n_gaps(), "gap"),
        saved.method.name,
        how_it_ended(found),
    ));
    say(format!("seed {}; written by {}", saved.seed, saved.created_by));
    for warning in &found.warnings {
        say(format!("warning: {warning}"));
    }
    let whose = if saved.noisy().is_ok() { "model" } else { "table" };
    say(format!(
        "\nhow each source is made: share of the {whose}'s variance, and excess kurtosis (0 for a Gaussian)"
    ));
    let mut header = ["source", "share", "kurtosis", "tails"].map(str::to_owned).to_vec();
    header.extend((!found.kinds.is_empty()).then(|| "density".to_owned()));
    let mut rows = vec![header];
    for (k, (share, kurtosis)) in saved.explained_variance_ratio().iter().zip(&found.kurtosis).enumerate() {
        let mut row = vec![(k + 1).to_string(), percent(*share), format!("{kurtosis:.2}")];
        row.push(tails(*kurtosis).to_owned());
        row.extend(found.kinds.get(k).map(|kind| kind.name().to_owned()));
        rows.push(row);
    }
    say(aligned(&rows, &[3, 4]));
    say("\nmixing: what one unit of each source adds, in standard deviations of the column".to_owned());
    let mut header = ["column", "mean", "sd"].map(str::to_owned).to_vec();
    header.extend((1..=q).map(|k| k.to_string()));
    header.extend(saved.noisy().is_ok().then(|| "noise".to_owned()));
    let mut rows = vec![header];
    for (j, name) in saved.columns.iter().enumerate() {
        let sd = training.column_sds[j];
        let mut row = vec![name.clone(), digits(model.mean()[j]), digits(sd)];
        // A column that never varied, which Python leaves in, has no part in any source.
        let unit = if sd > 0.0 { sd } else { 1.0 };
        row.extend(model.mixing().row(j).iter().map(|a| format!("{:.2}", a / unit)));
        row.extend(saved.noisy().ok().map(|m| format!("{:.2}", m.noise_variances()[j] / (unit * unit))));
        rows.push(row);
    }
    say(aligned(&rows, &[0]));
    for constant in &saved.constants {
        say(format!("\nconstant, not in the model: `{}` = {}", constant.name, constant.value));
    }
    out.trim_end().to_owned()
}

fn tails(kurtosis: f64) -> &'static str {
    match kurtosis {
        k if ica::looks_gaussian(k) => "like a Gaussian's",
        k if k > 0.0 => "heavy",
        _ => "light",
    }
}

fn square(matrix: &Matrix) -> String {
    let row = |r: &[f64]| r.iter().map(|v| format!("{v:.2}")).collect();
    aligned(&matrix.rows().map(row).collect::<Vec<_>>(), &[])
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Four significant digits.
fn digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let places = 3 - value.abs().log10().floor() as i32;
    match places {
        0..=8 => format!("{value:.*}", places as usize),
        -6..0 => format!("{value:.0}"),
        _ => format!("{value:.3e}"),
    }
}
