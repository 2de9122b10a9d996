//! `covary inspect`: everything in a model file.

use crate::console::{count, harmless, table};
use crate::failure::Failure;
use crate::input;
use crate::learn::check_words;
use clap::Args;
use covary::dynamics::{Regressors, Season};
use covary::family::{Arrangement, Family};
use covary::ica;
use covary::learned::{
    DynamicFit, FunctionalFit, Learned, LinearFit, MixtureFit, ParameterUncertainty, Trained,
};
use covary::select::Score;
use covary::{LinearGaussian, Matrix};
use covary_report::words::{ending, fit_statistics, objective};
use std::path::PathBuf;

/// Describe a model file: parameters, variance explained, how it was fitted and chosen.
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
        let learned = input::model(&self.model)?;
        if self.json {
            return super::print(&learned.to_json());
        }
        let sections = [head(&learned), own(&learned), tail(&learned)];
        super::print_words(harmless(&sections.concat()).trim_end())
    }
}

/// A section, line by line.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn say(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }
}

/// What it is, where it comes from, and its warnings.
fn head(learned: &Learned) -> String {
    let mut out = Lines::default();
    let (training, d, end) = (&learned.training, learned.columns.len(), learned.ending());
    let standardized = if learned.standardized() { ", fitted to standardized columns" } else { "" };
    out.say(&format!("{}, {}{standardized}", learned.described(), count(d, "column")));
    let of = match learned.linear().ok().and_then(|fit| fit.matrix) {
        Some(kind) => format!("a {} matrix of {}", kind.name(), count(training.n_rows, "row")),
        None => format!(
            "{} with {} ({:.1} %)",
            count(training.n_rows, "row"),
            count(training.n_gaps(), "gap"),
            100.0 * training.n_gaps() as f64 / (training.n_rows * d) as f64
        ),
    };
    out.say(&format!("learned from {of}, by {}: {}", learned.method.name, ending(&end)));
    let reached = end.objective.map(|at| format!("{} {:.4}", objective(at.kind), at.value));
    let parameters = learned.n_parameters().ok().map(|n| format!("{n} parameters"));
    let facts: Vec<String> = reached.into_iter().chain(parameters).collect();
    let facts = if facts.is_empty() { String::new() } else { format!("{}; ", facts.join(", ")) };
    out.say(&format!("{facts}seed {}; written by {}", learned.seed, learned.created_by));
    if let Ok(fit) = learned.linear() {
        for (name, columns) in fit.view_columns() {
            out.say(&format!("view `{name}`: {}", learned.columns[columns].join(", ")));
        }
        if let Some(rows) = fit.model.tails().words(digits) {
            out.say(&rows);
        }
        match fit.parameter_uncertainty() {
            ParameterUncertainty::None if learned.family == Family::Bpca => {
                out.say("answers take the parameters as known");
            }
            ParameterUncertainty::None => {}
            ParameterUncertainty::Draws => out.say(&format!(
                "filled cells, densities and new rows average over {} of the parameters; scores are at their center",
                count(fit.draws.as_ref().map_or(0, |d| d.models().len()), "draw")
            )),
            ParameterUncertainty::Posterior if fit.model.inclusion().is_some() => {
                out.say("answers include the uncertainty of loadings and noise");
            }
            ParameterUncertainty::Posterior => {
                out.say("answers include the uncertainty of loadings, mean and noise");
            }
        }
    }
    for warning in &end.warnings {
        out.say(&format!("warning: {}", warning.message));
    }
    out.0
}

/// What only models of its kind have.
fn own(learned: &Learned) -> String {
    match &learned.model {
        Trained::Linear(fit) => [
            statistics(fit),
            choice(fit),
            correlations(learned),
            loadings(learned, fit),
            shares(learned, fit),
            monitored(fit),
        ]
        .concat(),
        Trained::Mixture(fit) => models(learned, fit),
        Trained::Sources(fit) => sources(learned, fit),
        Trained::Dynamic(fit) => dynamics(learned, fit),
        Trained::Functional(fit) => curves(fit),
    }
}

/// What every model may have at the end.
fn tail(learned: &Learned) -> String {
    let mut out = Lines::default();
    for constant in &learned.constants {
        out.say(&format!("\nconstant, not in the model: `{}` = {}", constant.name, constant.value));
    }
    if let Some(check) = &learned.check {
        out.say(&format!("\n{}", check_words(check, learned.family.arrangement() == Arrangement::InTime)));
    }
    out.0
}

/// How well a factor analysis fits.
fn statistics(fit: &LinearFit) -> String {
    let Some(found) = &fit.fit_statistics else { return String::new() };
    format!("\n{}\n", fit_statistics(found).join("\n"))
}

/// How the number of components was chosen.
fn choice(fit: &LinearFit) -> String {
    let Some(choice) = &fit.choice else { return String::new() };
    let mut out = Lines::default();
    let (unit, short) = match choice.score {
        Score::Crps => ("CRPS per hidden cell, by how much more than the best", "more by"),
        Score::LogDensity => ("nats per hidden cell, by how much less than the best", "less by"),
    };
    out.say(&format!("\nhow the number of components was chosen: {unit}"));
    let score = if choice.score == Score::Crps { "CRPS" } else { "nats" };
    let mut rows = vec![["components", score, short, "± se", "skill"].map(str::to_owned).to_vec()];
    for at in &choice.by_n_components {
        let mark = if at.n_components == fit.model.n_components() { "* " } else { "" };
        rows.push(vec![
            format!("{mark}{}", at.n_components),
            format!("{:.4}", at.mean),
            format!("{:.4}", at.shortfall),
            format!("{:.4}", at.shortfall_error),
            format!("{:.3}", at.skill),
        ]);
    }
    out.say(&table(&rows, &[]));
    out.0
}

/// Canonical correlations.
fn correlations(learned: &Learned) -> String {
    let mut out = Lines::default();
    if learned.family == Family::Pcca
        && let Ok(Some(found)) = learned.canonical()
    {
        let listed: Vec<String> = found.correlations().iter().map(|r| format!("{r:.4}")).collect();
        out.say(&format!("\ncanonical correlations: {}", listed.join(", ")));
    }
    out.0
}

/// Every column with its loadings and noise.
fn loadings(learned: &Learned, fit: &LinearFit) -> String {
    let mut out = Lines::default();
    let (model, training) = (&fit.model, &learned.training);
    let (q, shown) = (model.n_components(), learned.n_shown());
    let by = fit.rotation.as_ref().map_or_else(String::new, |r| format!(", after {} rotation", r.name));
    let is_factors = learned.family == Family::Fa;
    let rest = if shown < q { "not shared" } else { "noise" };
    let share = if is_factors {
        "and the share of its variance that the factors explain (communality) and that is noise (uniqueness)"
            .to_owned()
    } else {
        format!("and the share of its variance that is {rest}")
    };
    // A correlation or covariance matrix has no means.
    let means = if fit.matrix.is_none() { "observed mean and sd" } else { "sd" };
    out.say(&format!("\n{means} of each column, loadings in standard deviations of the model{by}, {share}"));
    let deviations: Vec<f64> = model.variances().iter().map(|v| v.sqrt()).collect();
    let mut header = vec!["column".to_owned()];
    header.extend(fit.matrix.is_none().then(|| "mean".to_owned()));
    header.push("sd".to_owned());
    header.extend((1..=shown).map(|k| k.to_string()));
    header.extend(is_factors.then(|| "communality".to_owned()));
    header.push(if is_factors { "uniqueness" } else { rest }.to_owned());
    let mut rows = vec![header];
    for (j, name) in learned.columns.iter().enumerate() {
        let mut row = vec![name.clone()];
        row.extend(fit.matrix.is_none().then(|| digits(training.column_means[j])));
        row.push(digits(training.column_sds[j]));
        let in_sds: Vec<f64> = (0..shown).map(|k| fit.loadings()[(j, k)] / deviations[j]).collect();
        // A zero of sparse loadings is no small number.
        row.extend(in_sds.iter().map(|w| if *w == 0.0 { "0".to_owned() } else { format!("{w:.2}") }));
        let left = if shown < q {
            1.0 - in_sds.iter().map(|w| w * w).sum::<f64>()
        } else {
            model.noise().variance(j) / deviations[j].powi(2)
        };
        row.extend(is_factors.then(|| format!("{:.2}", 1.0 - left)));
        row.push(format!("{left:.2}"));
        rows.push(row);
    }
    out.say(&table(&rows, &[0]));
    out.0.push_str(&selected(learned, fit));
    // Factors that were rotated together are uncorrelated.
    let correlated = |phi: &Matrix| (1..phi.n_rows()).any(|i| phi.row(i)[..i].iter().any(|r| r.abs() > 1e-9));
    if let Some(r) = fit.rotation.as_ref().filter(|r| correlated(&r.rotated.factor_correlations)) {
        out.say("\ncorrelations of the factors");
        out.say(&square(&r.rotated.factor_correlations));
    }
    out.0
}

/// Which columns have a part, of a method that selects them, and which have one in each sparse component.
fn selected(learned: &Learned, fit: &LinearFit) -> String {
    let mut out = Lines::default();
    if let Some(inclusion) = fit.model.inclusion() {
        let mut order: Vec<usize> = (0..inclusion.len()).filter(|&j| inclusion[j] > 0.5).collect();
        order.sort_by(|&a, &b| inclusion[b].total_cmp(&inclusion[a]));
        out.say(&format!(
            "\n{} of {} columns have a part in some component (probability above 1/2)",
            order.len(),
            inclusion.len()
        ));
        let mut rows = vec![vec!["column".to_owned(), "probability".to_owned()]];
        rows.extend(order.iter().map(|&j| vec![learned.columns[j].clone(), format!("{:.3}", inclusion[j])]));
        out.say(&table(&rows, &[0]));
    }
    if fit.model.has_fixed_axes() && fit.views.is_empty() {
        out.say("\ncolumns that each component is made of, those of large loadings first");
        for k in 0..fit.model.n_components() {
            let size = |j: usize| (fit.model.loadings()[(j, k)] / learned.training.column_sds[j]).abs();
            let mut order: Vec<usize> =
                (0..learned.columns.len()).filter(|&j| fit.model.loadings()[(j, k)] != 0.0).collect();
            order.sort_by(|&a, &b| size(b).total_cmp(&size(a)));
            let names: Vec<&str> = order.iter().map(|&j| learned.columns[j].as_str()).collect();
            out.say(&format!("{}: {}", k + 1, names.join(", ")));
        }
    }
    out.0
}

/// What components explain, of the columns or of each view.
fn shares(learned: &Learned, fit: &LinearFit) -> String {
    let mut out = Lines::default();
    let q = fit.model.n_components();
    if q > 0 && fit.rotation.is_none() && fit.views.is_empty() {
        let of = if fit.spec.standardize { "standardized columns" } else { "the columns" };
        out.say(&format!("\nproportion of the variance of {of} that each component explains"));
        let relevance = &fit.report.relevance;
        let mut header = vec!["component".to_owned(), "share".to_owned(), "together".to_owned()];
        header.extend((!relevance.is_empty()).then(|| "relevance".to_owned()));
        let mut rows = vec![header];
        let mut together = 0.0;
        for (k, share) in fit.model.explained_variance_ratio().iter().enumerate() {
            together += share;
            let mut row = vec![(k + 1).to_string(), percent(*share), percent(together)];
            row.extend(relevance.get(k).map(|alpha| digits(*alpha)));
            rows.push(row);
        }
        out.say(&table(&rows, &[]));
        if !relevance.is_empty() {
            out.say("relevance: precision of a component's loadings; the larger, the less it is needed");
        }
    }
    if learned.family == Family::Gfa
        && let Ok(Some(activity)) = learned.activity()
    {
        let of = if fit.spec.standardize { ", columns standardized," } else { "" };
        out.say(&format!(
            "\nshare of the variance of each view{of} that each component explains; – where it is not active"
        ));
        let mut header = vec!["view".to_owned()];
        header.extend((1..=q).map(|k| k.to_string()));
        let mut rows = vec![header];
        for (v, name) in fit.views.iter().enumerate() {
            let cell = |i: usize| {
                let share = activity.explained_variance[(v, i)];
                if activity.is_active(v, i) { percent(share) } else { "–".to_owned() }
            };
            rows.push(std::iter::once(name.clone()).chain((0..q).map(cell)).collect());
        }
        out.say(&table(&rows, &[0]));
    }
    out.0
}

/// What the chains of a sampler say.
fn monitored(fit: &LinearFit) -> String {
    let mut out = Lines::default();
    if !fit.report.monitored.is_empty() {
        out.say("\nconvergence of the chains, in quantities that no rotation changes, columns centered and scaled");
        let mut rows =
            vec![["quantity", "mean", "sd", "R-hat", "effective draws"].map(str::to_owned).to_vec()];
        for m in &fit.report.monitored {
            rows.push(vec![
                m.quantity.clone(),
                digits(m.summary.mean),
                digits(m.summary.sd),
                m.summary.r_hat.map_or("–".to_owned(), |r| format!("{r:.3}")),
                format!("{:.0}", m.summary.ess),
            ]);
        }
        out.say(&table(&rows, &[0]));
    }
    out.0
}

/// The models of a mixture side by side.
fn models(learned: &Learned, fit: &MixtureFit) -> String {
    let mut out = Lines::default();
    let models = fit.mixture.models();
    out.say("\nshare of the rows in each, and its means in the units of the table");
    let mut header = vec!["column".to_owned()];
    header.extend(fit.names());
    let mut shares = vec!["share of rows".to_owned()];
    shares.extend(fit.mixture.weights().iter().map(|w| percent(*w)));
    let mut rows = vec![header.clone(), shares];
    let components = fit.components();
    if components.iter().any(|q| *q != components[0]) {
        rows.push(
            std::iter::once("components".to_owned())
                .chain(components.iter().map(ToString::to_string))
                .collect(),
        );
    }
    for (j, name) in learned.columns.iter().enumerate() {
        let means = models.iter().map(|c| digits(c.mean()[j]));
        rows.push(std::iter::once(name.clone()).chain(means).collect());
    }
    out.say(&table(&rows, &[0]));
    out.say("\nstandard deviations in each, and the share of its variance that is noise");
    let mut rows = vec![header];
    for (j, name) in learned.columns.iter().enumerate() {
        let cell = |c: &LinearGaussian| {
            let variance = c.variances()[j];
            format!("{} ({:.2})", digits(variance.sqrt()), c.noise().variance(j) / variance)
        };
        rows.push(std::iter::once(name.clone()).chain(models.iter().map(cell)).collect());
    }
    out.say(&table(&rows, &[0]));
    out.0
}

/// Independent components and how they mix.
fn sources(learned: &Learned, fit: &ica::Fit) -> String {
    let mut out = Lines::default();
    let (model, training) = (&fit.model, &learned.training);
    let noisy = learned.noisy_sources().ok();
    let whose = if noisy.is_some() { "model" } else { "table" };
    out.say(&format!(
        "\nhow each source is made: share of the {whose}'s variance, and excess kurtosis (0 for a Gaussian)"
    ));
    let mut header = ["source", "share", "kurtosis", "tails"].map(str::to_owned).to_vec();
    header.extend((!fit.kinds.is_empty()).then(|| "density".to_owned()));
    let mut rows = vec![header];
    let shares = learned.source_variance_ratio().unwrap_or_default();
    for (k, (share, kurtosis)) in shares.iter().zip(&fit.kurtosis).enumerate() {
        let mut row = vec![(k + 1).to_string(), percent(*share), format!("{kurtosis:.2}")];
        row.push(tails(*kurtosis).to_owned());
        row.extend(fit.kinds.get(k).map(|kind| kind.name().to_owned()));
        rows.push(row);
    }
    out.say(&table(&rows, &[3, 4]));
    out.say("\nmixing: what one unit of each source adds, in standard deviations of the column");
    let mut header = ["column", "mean", "sd"].map(str::to_owned).to_vec();
    header.extend((1..=model.n_components()).map(|k| k.to_string()));
    header.extend(noisy.map(|_| "noise".to_owned()));
    let mut rows = vec![header];
    for (j, name) in learned.columns.iter().enumerate() {
        let sd = training.column_sds[j];
        let mut row = vec![name.clone(), digits(model.mean()[j]), digits(sd)];
        // A column that never varied, which Python leaves in, has no part in any source.
        let unit = if sd > 0.0 { sd } else { 1.0 };
        row.extend(model.mixing().row(j).iter().map(|a| format!("{:.2}", a / unit)));
        row.extend(noisy.map(|m| format!("{:.2}", m.noise_variances()[j] / (unit * unit))));
        rows.push(row);
    }
    out.say(&table(&rows, &[0]));
    out.0
}

/// Times at which eigenfunctions are listed.
const TIMES_SHOWN: usize = 11;

/// What curves are made of.
fn curves(fit: &FunctionalFit) -> String {
    let mut out = Lines::default();
    let (model, (from, to)) = (&fit.model, fit.model.basis().interval());
    let [of_mean, of_components] = model.smoothing();
    match fit.long() {
        Some(columns) => {
            out.say(&format!("\ncurves by `{}`, `{}` {from} to {to}", columns.curve, columns.time));
        }
        None => out.say(&format!("\nrows are curves, columns times {from} to {to}")),
    }
    out.say(&format!(
        "{} cubic splines; smoothing {} of the mean, {} of the components; noise sd {}",
        model.basis().size(),
        digits(of_mean),
        digits(of_components),
        digits(model.noise().sqrt())
    ));
    out.say("\nvariance of the scores (eigenvalue), and its share of that of curves and noise over time");
    let mut rows = vec![["component", "eigenvalue", "share"].map(str::to_owned).to_vec()];
    let shares = fit.explained_variance_ratio();
    for (k, (l, share)) in model.eigenvalues().iter().zip(&shares).enumerate() {
        rows.push(vec![(k + 1).to_string(), digits(*l), format!("{:.1} %", 100.0 * share)]);
    }
    let noise = (1.0 - shares.iter().sum::<f64>()).max(0.0);
    rows.push(vec!["noise".to_owned(), String::new(), format!("{:.1} %", 100.0 * noise)]);
    out.say(&table(&rows, &[0]));
    let times = model.basis().grid(TIMES_SHOWN);
    let mean = model.mean_at(&times).expect("times within the interval");
    let functions = model.eigenfunctions(&times).expect("times within the interval");
    out.say("\nmean and eigenfunctions, with standard deviations");
    let mut header = vec!["time".to_owned(), "mean".to_owned()];
    header.extend((1..=model.n_components()).map(|k| k.to_string()));
    let mut rows = vec![header];
    for (i, time) in times.iter().enumerate() {
        let with = |value: f64, sd: f64| format!("{} ± {}", digits(value), digits(sd));
        let mut row = vec![digits(*time), with(mean.values[(i, 0)], mean.sds[(i, 0)])];
        row.extend((0..model.n_components()).map(|k| with(functions.values[(i, k)], functions.sds[(i, k)])));
        rows.push(row);
    }
    out.say(&table(&rows, &[]));
    out.0
}

/// How factors follow each other, what is known beforehand, and what columns are made of.
fn dynamics(learned: &Learned, fit: &DynamicFit) -> String {
    let mut out = Lines::default();
    let (model, training) = (&fit.model, &learned.training);
    let steps = fit.axis.as_ref().map_or_else(
        || format!("times {} to {}, counted in rows", fit.span.0, fit.span.1),
        |axis| {
            let (first, last) = (axis.text(fit.span.0), axis.text(fit.span.1));
            format!("`{}`: {}, {first} to {last}", axis.name, axis.steps.words())
        },
    );
    out.say(&format!("\n{steps}"));
    let stays = if model.spectral_radius() < 1.0 {
        "factors return to their mean"
    } else {
        "factors grow without bound"
    };
    out.say(&format!("spectral radius of the transition {:.4}: {stays}", model.spectral_radius()));
    for (lag, header) in (0..model.order()).map(|lag| (lag, lag + 1)) {
        let k = model.n_components();
        let own = Matrix::from_fn(k, k, |i, j| model.transition()[(i, lag * k + j)]);
        let of = if model.order() == 1 { String::new() } else { format!(", {header} back") };
        out.say(&format!("\ntransition of the factors (rows) from those a step before (columns){of}"));
        out.say(&square(&own));
    }
    if let Ok(roots) = model.roots() {
        out.say(
            "\nroots of the transition: what is left after a step, and how long half of it lasts, in steps",
        );
        let mut rows = vec![["root", "modulus", "half-life", "period"].map(str::to_owned).to_vec()];
        for (i, root) in roots.iter().enumerate() {
            let period = root.period.map_or("–".to_owned(), |p| format!("{p:.1}"));
            let half = root.half_life();
            let half = if half.is_finite() { format!("{half:.1}") } else { "never".to_owned() };
            rows.push(vec![(i + 1).to_string(), format!("{:.4}", root.modulus), half, period]);
        }
        out.say(&table(&rows, &[]));
    }
    let regressors = model.regressors();
    let season = match regressors.season {
        Season::None => String::new(),
        Season::Harmonics { period, n } => format!(", {} of a season of {period} steps", count(n, "wave")),
        Season::Indicators { period } => format!(", a mean for each of {period} steps of a season"),
    };
    let trend = if regressors.trend.is_some() { ", a trend" } else { "" };
    let memory = model.noise_memory().map_or("", |_| " and how much of it stays from step to step (memory)");
    out.say(&format!("\nmean and sd of each column, loadings in its standard deviations, and the share of its variance that is noise{memory}{season}{trend}"));
    let names = season_names(regressors);
    let mut header = ["column", "mean", "sd"].map(str::to_owned).to_vec();
    header.extend((1..=model.n_components()).map(|k| k.to_string()));
    header.push("noise".to_owned());
    header.extend(model.noise_memory().map(|_| "memory".to_owned()));
    header.extend(names.iter().map(|(name, _)| name.clone()));
    let mut rows = vec![header];
    for (j, name) in learned.columns.iter().enumerate() {
        let sd = training.column_sds[j];
        let mut row = vec![name.clone(), digits(training.column_means[j]), digits(sd)];
        row.extend(model.loadings().row(j).iter().map(|w| format!("{:.2}", w / sd)));
        row.push(format!("{:.2}", model.noise().variance(j) / (sd * sd)));
        row.extend(model.noise_memory().map(|rho| format!("{:.2}", rho[j])));
        row.extend(
            names.iter().map(|&(_, at)| format!("{:.2}", amplitude(model.coefficients().row(j), at) / sd)),
        );
        rows.push(row);
    }
    out.say(&table(&rows, &[0]));
    out.0
}

/// What regressors beyond a level are called, and which of them belong together.
fn season_names(regressors: &Regressors) -> Vec<(String, Regressor)> {
    let mut names = Vec::new();
    if let Season::Harmonics { n, .. } = regressors.season {
        names.extend((1..=n).map(|k| (format!("wave {k}"), Regressor::Wave(2 * k - 1))));
    }
    if regressors.trend.is_some() {
        names.push(("trend".to_owned(), Regressor::Line(regressors.len() - 1)));
    }
    names
}

/// A cosine and a sine, or a number by itself.
#[derive(Clone, Copy)]
enum Regressor {
    Wave(usize),
    Line(usize),
}

/// How far a wave goes up, or how steep a line is.
fn amplitude(coefficients: &[f64], at: Regressor) -> f64 {
    match at {
        Regressor::Wave(first) => coefficients[first].hypot(coefficients[first + 1]),
        Regressor::Line(place) => coefficients[place],
    }
}

fn tails(kurtosis: f64) -> &'static str {
    match kurtosis {
        k if ica::looks_gaussian(k) => "like a Gaussian's",
        k if k > 0.0 => "heavy",
        _ => "light",
    }
}

fn square(matrix: &Matrix) -> String {
    let header = std::iter::once(String::new()).chain((1..=matrix.n_columns()).map(|k| k.to_string()));
    let row = |(i, r): (usize, &[f64])| {
        std::iter::once((i + 1).to_string()).chain(r.iter().map(|v| format!("{v:.2}"))).collect()
    };
    let rows: Vec<Vec<String>> =
        std::iter::once(header.collect()).chain(matrix.rows().enumerate().map(row)).collect();
    table(&rows, &[])
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
