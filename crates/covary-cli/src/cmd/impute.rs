//! `covary impute`: fill the gaps and say how sure each number is.

use crate::choose;
use crate::failure::Failure;
use crate::output::Output;
use crate::voice::{Voice, aligned, count, rounded};
use clap::{Args, ValueEnum};
use covary::infer::{Em, ObjectiveKind, Termination};
use covary::io::{ColumnKind, Error, Table, csv};
use covary::model::Imputed;
use covary::{Dataset, Estimator, Fit, Method, Spec};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// More threads than any table has use for.
const MOST_THREADS: usize = 512;
/// Filled cells listed on the screen.
const LISTED: usize = 12;

/// Fill the gaps of a table, with an interval for every filled cell.
///
/// Columns that move together tell of each other: a linear-Gaussian model is fitted to the
/// observed cells alone (no row is dropped, no gap is guessed first), and every gap is filled
/// with its mean given the observed cells of its row. The interval is where the model expects
/// the true value; it takes the fitted model as known.
///
/// Observed cells leave byte for byte as they came. Columns that hold anything but numbers
/// and gaps are passed through, and so is a column without a name.
// Help breaks its lines where they are typed here: clap's own wrapping costs a dependency.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary impute examples/wine_gaps.csv -o filled.csv
  covary impute examples/wine_gaps.csv --model fa --components 3 --cells cells.csv -o filled.csv")]
pub(crate) struct Impute {
    /// Table to fill: CSV whose first line names the columns; `-` reads standard input.
    /// Empty cells, NA, NaN and null are gaps.
    #[arg(verbatim_doc_comment)]
    data: PathBuf,

    /// Where the filled table goes; standard output if not given. Written beside its target
    /// and renamed, so a failure leaves an older file as it was.
    #[arg(short, long, verbatim_doc_comment, value_name = "OUT")]
    output: Option<PathBuf>,

    /// What to fit.
    #[arg(long, verbatim_doc_comment, value_enum, default_value_t = Model::Ppca)]
    model: Model,

    /// How many components: a number, or `auto` for the fewest that predict hidden cells as
    /// well as any number up to 8.
    #[arg(long, verbatim_doc_comment, value_name = "N|auto", default_value = "auto")]
    components: Components,

    /// Give every column unit variance before fitting, so that units do not matter; results
    /// are in the table's own units either way.
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

    /// Probability that an interval holds the true value, the fitted model taken as known: on
    /// small tables fewer values are inside.
    #[arg(long, verbatim_doc_comment, value_name = "LEVEL", default_value_t = 0.95, value_parser = probability)]
    interval: f64,

    /// Also list the filled cells: row (data rows from 1), column, mean, sd, lower, upper.
    #[arg(long, verbatim_doc_comment, value_name = "CELLS.csv")]
    cells: Option<PathBuf>,

    /// Seed of everything left to chance: which cells `--components auto` hides, and random
    /// starts.
    #[arg(long, verbatim_doc_comment, default_value_t = 0)]
    seed: u64,

    /// Threads to use; all processors if not given. The numbers do not depend on it.
    #[arg(long, verbatim_doc_comment, value_name = "N", value_parser = thread_count)]
    threads: Option<usize>,

    /// Most iterations of a fit; 2000 if not given.
    #[arg(long, verbatim_doc_comment, value_name = "N", value_parser = at_least_one)]
    max_iter: Option<usize>,

    /// Stop when the log-likelihood is expected to rise by less than this many nats; 1e-6
    /// if not given.
    #[arg(long, verbatim_doc_comment, value_name = "TOL", value_parser = positive)]
    tol: Option<f64>,

    /// Say nothing unless something fails.
    #[arg(short, long, verbatim_doc_comment)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Model {
    /// Probabilistic PCA: one noise variance for all columns.
    Ppca,
    /// Factor analysis: a noise variance for each column.
    Fa,
}

impl Model {
    fn spec(self) -> Spec {
        match self {
            Self::Ppca => Spec::ppca(1),
            Self::Fa => Spec::factor_analysis(1),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Ppca => "probabilistic PCA",
            Self::Fa => "factor analysis",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Components {
    Auto,
    Number(usize),
}

impl FromStr for Components {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "auto" => Ok(Self::Auto),
            _ => s.parse().map(Self::Number).map_err(|_| "give a whole number, or `auto`".to_owned()),
        }
    }
}

fn probability(s: &str) -> Result<f64, String> {
    match s.parse() {
        Ok(p) if p > 0.0 && p < 1.0 => Ok(p),
        _ => Err("give a number between 0 and 1, such as 0.95".to_owned()),
    }
}

fn positive(s: &str) -> Result<f64, String> {
    match s.parse::<f64>() {
        Ok(v) if v > 0.0 && v.is_finite() => Ok(v),
        _ => Err("give a number above 0, such as 1e-6".to_owned()),
    }
}

fn thread_count(s: &str) -> Result<usize, String> {
    match s.parse() {
        Ok(n @ 1..=MOST_THREADS) => Ok(n),
        _ => Err(format!("give a whole number from 1 to {MOST_THREADS}")),
    }
}

fn at_least_one(s: &str) -> Result<usize, String> {
    match s.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("give a whole number from 1".to_owned()),
    }
}

impl Impute {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        self.check_targets()?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads.unwrap_or(0))
            .build()
            .map_err(|e| Failure::work("threads", e))?;
        pool.install(|| self.fill())
    }

    /// The list of cells must not land on the filled table or on the input.
    fn check_targets(&self) -> Result<(), Failure> {
        let Some(cells) = &self.cells else { return Ok(()) };
        let standard_output = PathBuf::from("/dev/stdout");
        let resolved = |path: &Path| {
            let path = if path == Path::new("-") { &standard_output } else { path };
            // A file that is not there yet is known by its folder.
            path.canonicalize().unwrap_or_else(|_| match (path.parent(), path.file_name()) {
                (Some(folder), Some(name)) => {
                    let folder = if folder == Path::new("") { Path::new(".") } else { folder };
                    folder.canonicalize().unwrap_or_else(|_| folder.to_owned()).join(name)
                }
                _ => path.to_owned(),
            })
        };
        let output = self.output.as_deref().unwrap_or(&standard_output);
        if resolved(cells) == resolved(output) {
            return Err(Failure::Call(
                "the filled table and --cells would go to the same place; name two files".to_owned(),
            ));
        }
        if self.data != Path::new("-") && resolved(cells) == resolved(&self.data) {
            return Err(Failure::Call("--cells would overwrite the input; name another file".to_owned()));
        }
        Ok(())
    }

    fn fill(&self) -> Result<(), Failure> {
        let voice = Voice::new(self.quiet);
        let name = self.data_name();
        let failed = |e: Error| Failure::work(&name, e);
        let table = self.read().map_err(failed)?;
        let data = table.dataset().map_err(failed)?;
        describe(voice, &name, &table, &data);
        // Opened before the work, so that a folder that cannot be written fails at once.
        let mut output = Output::open(self.output.as_deref())?;
        let mut cells = self.cells.as_deref().map(|path| Output::open(Some(path))).transpose()?;

        // A complete table has nothing to fill: any model leaves it as it is.
        let spec = Spec { standardize: self.standardize, ..self.model.spec() };
        let filled = if data.is_complete() {
            voice.say("no gaps: the table passes through");
            unchanged(&data)
        } else {
            let fit = self.fit(voice, &data, spec).map_err(|e| failed(e.into()))?;
            fit.predictive().impute(&data)
        }
        .map_err(|e| failed(e.into()))?;

        if let Some(cells) = &mut cells {
            cells.write(|out| table.write_cells(&filled, self.interval, out))?;
        }
        output.write(|out| table.write_filled(&filled, out))?;
        output.finish()?;
        cells.map_or(Ok(()), Output::finish)?;
        if !filled.cells().is_empty() {
            voice.say(&self.listing(&data, &filled).map_err(|e| failed(e.into()))?);
        }
        let written = [&self.output, &self.cells].into_iter().flatten().filter(|p| *p != Path::new("-"));
        written.for_each(|path| voice.say(&format!("wrote {}", path.display())));
        Ok(())
    }

    fn read(&self) -> Result<Table, Error> {
        if self.data == Path::new("-") {
            csv::read(std::io::stdin().lock())
        } else {
            csv::read(File::open(&self.data).map_err(Error::Read)?)
        }
    }

    fn data_name(&self) -> String {
        if self.data == Path::new("-") {
            "standard input".to_owned()
        } else {
            self.data.display().to_string()
        }
    }

    fn fit(&self, voice: Voice, data: &Dataset, spec: Spec) -> Result<Fit, covary::Error> {
        let method = self.method(data, &spec);
        let n_components = match self.components {
            Components::Number(n) => n,
            Components::Auto => {
                let choice = choose::n_components(data, &spec, &method, self.seed)?;
                voice.say(&choice.to_string());
                choice.n_components
            }
        };
        let spec = Spec { n_components, ..spec };
        let mut progress = voice.progress("fitting");
        let fit = method.fit_observed(data, &spec, &mut progress)?;
        drop(progress);
        self.describe_fit(voice, &fit, &method);
        Ok(fit)
    }

    /// The recommended road, with the limits asked for.
    fn method(&self, data: &Dataset, spec: &Spec) -> Method {
        match Method::recommended(data, spec) {
            Method::Em(em) => Method::Em(Em {
                max_iterations: self.max_iter.unwrap_or(em.max_iterations),
                tolerance: self.tol.unwrap_or(em.tolerance),
                seed: self.seed,
                ..em
            }),
            other => other,
        }
    }

    fn describe_fit(&self, voice: Voice, fit: &Fit, method: &Method) {
        let report = &fit.report;
        let end = match report.termination {
            Termination::ClosedForm => "in closed form".to_owned(),
            Termination::Converged => format!("converged after {}", count(report.n_iterations(), "step")),
            Termination::IterationLimit => {
                format!("stopped at the limit of {}", count(report.n_iterations(), "step"))
            }
            Termination::Interrupted => format!("interrupted after {}", count(report.n_iterations(), "step")),
        };
        let objective = match report.objective.kind {
            ObjectiveKind::LogLikelihood => "log-likelihood",
            ObjectiveKind::LogPosterior => "log-posterior",
        };
        voice.say(&format!(
            "fitted {}, {}{}, by {}: {end}, {objective} {:.2}",
            self.model.words(),
            count(fit.model.n_components(), "component"),
            if self.standardize { ", columns standardized" } else { "" },
            method.name(),
            report.objective.value,
        ));
        for warning in &report.warnings {
            voice.say(&format!("warning: {warning}"));
        }
    }

    fn listing(&self, data: &Dataset, filled: &Imputed) -> Result<String, covary::Error> {
        let percent = format!("{:.4}", 100.0 * self.interval);
        let percent = percent.trim_end_matches('0').trim_end_matches('.');
        let header = ["row", "column", "filled", "sd", &format!("{percent} % from"), "to"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for cell in filled.cells().iter().take(LISTED) {
            let (lower, upper) = cell.interval(self.interval)?;
            let mut row = vec![(cell.row + 1).to_string(), data.column_names()[cell.column].clone()];
            row.extend([cell.mean, cell.sd, lower, upper].map(|v| rounded(v, cell.sd)));
            rows.push(row);
        }
        let more = match filled.cells().len().saturating_sub(LISTED) {
            0 => String::new(),
            more if self.cells.is_some() => format!("  … and {more} more\n"),
            more => format!("  … and {more} more; --cells FILE writes them all\n"),
        };
        Ok(format!("\n{}\n{more}", aligned(&rows, &[1])))
    }
}

/// A complete table as the answer to its own filling.
fn unchanged(data: &Dataset) -> Result<Imputed, covary::Error> {
    use covary::{Density, LinearGaussian, Matrix, Noise};
    let d = data.n_columns();
    LinearGaussian::new(Matrix::zeros(d, 0), vec![0.0; d], Noise::Isotropic(1.0))?.impute(data)
}

fn describe(voice: Voice, name: &str, table: &Table, data: &Dataset) {
    let (rows, columns, gaps) = (data.n_rows(), data.n_columns(), data.n_gaps());
    let share = 100.0 * gaps as f64 / (rows * columns) as f64;
    voice.say(&format!(
        "{name}: {}, {} of numbers, {} ({share:.1} %)",
        count(rows, "row"),
        count(columns, "column"),
        count(gaps, "gap")
    ));
    if table.column_names().iter().all(|n| n.parse::<f64>().is_ok()) {
        voice.say("warning: the first line holds only numbers and was read as the names of the columns");
    }
    let aside: Vec<String> = (0..table.n_columns())
        .filter_map(|j| match table.kind(j) {
            ColumnKind::Numbers => None,
            ColumnKind::Unnamed => Some("the column without a name".to_owned()),
            ColumnKind::Text { row } => {
                let (name, text) = (&table.column_names()[j], table.text(row, j));
                Some(format!("`{name}` (row {}: `{text}`)", row + 1))
            }
        })
        .collect();
    if !aside.is_empty() {
        voice.say(&format!("not numbers, passed through: {}", aside.join(", ")));
    }
}
