//! Flags that several verbs share.

use crate::views::{ViewArg, view};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use covary::family::{Components, Family};
use covary::io::Delimiter;
use covary::model::Rotation;
use std::path::PathBuf;

/// More threads than any table has use for.
const MOST_THREADS: usize = 512;

/// How the work is done, whatever the verb.
#[derive(Args, Clone)]
pub(crate) struct Running {
    /// Threads to use; all processors if not given. The numbers do not depend on it.
    #[arg(long, verbatim_doc_comment, value_name = "N", value_parser = thread_count)]
    pub(crate) threads: Option<usize>,

    /// Print warnings and errors only.
    #[arg(short, long, verbatim_doc_comment)]
    pub(crate) quiet: bool,

    /// Write the findings to standard output as JSON; the resulting table then needs -o.
    #[arg(long, verbatim_doc_comment)]
    pub(crate) json: bool,
}

/// What becomes of cells far from what the rest of their rows say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Wild {
    /// They are named.
    Report,
    /// They are named, and count as missing while fitting and imputing; they leave as they came.
    DownWeight,
}

/// How cells are looked at before a fit.
#[derive(Args, Clone)]
pub(crate) struct Judging {
    /// What to do with cellwise outliers, values far from their prediction by the rest of the row,
    /// such as 1000000 among values of 3: `report` names them; `down-weight` also treats them as
    /// missing while fitting and imputing. They are never changed in the output.
    #[arg(long, verbatim_doc_comment, value_enum, value_name = "report|down-weight", default_value_t = Wild::Report, hide_possible_values = true)]
    pub(crate) wild: Wild,
}

impl Judging {
    /// The option that needs to see all rows before a fit, if it was given.
    pub(crate) fn again(&self) -> Option<&'static str> {
        (self.wild == Wild::DownWeight).then_some("--wild down-weight")
    }
}

/// Where the resulting table goes.
#[derive(Args, Clone)]
pub(crate) struct Target {
    /// File to write the result to; standard output if not given. An existing file is replaced
    /// only when the new one is complete.
    #[arg(short, long, verbatim_doc_comment, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// Format of the result: csv, tsv, parquet, arrow, npy, npz, csv.gz or tsv.gz. If not given,
    /// by the name of OUT.
    #[arg(long, verbatim_doc_comment, value_name = "FORMAT")]
    pub(crate) output_format: Option<String>,
}

/// How a table is read.
#[derive(Args, Clone)]
#[command(next_help_heading = "Reading")]
pub(crate) struct Reading {
    /// Format of DATA: csv, tsv, parquet, arrow, npy, npz, xlsx, ods, csv.gz or tsv.gz. If not
    /// given, by its name; csv otherwise.
    #[arg(long, verbatim_doc_comment, value_name = "FORMAT")]
    pub(crate) format: Option<String>,

    /// Further codes for missing values, separated by commas, such as `-99,?`. These always mean
    /// missing: an empty cell, NA, N/A, #N/A, <NA>, NaN, null, None.
    #[arg(
        long,
        verbatim_doc_comment,
        value_name = "WORDS",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub(crate) gaps: Vec<String>,

    /// What separates the cells of a text table: a character such as `;`, `tab`, or `blanks` for
    /// any number of spaces and tabs. Detected if not given.
    #[arg(long, verbatim_doc_comment, value_name = "CHAR|tab|blanks", value_parser = delimiter)]
    pub(crate) delimiter: Option<Delimiter>,

    /// Whether numbers of a text table have a decimal comma, as in 1,5. Detected if not given.
    #[arg(
        long,
        verbatim_doc_comment,
        value_name = "true|false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        hide_possible_values = true
    )]
    pub(crate) decimal_comma: Option<bool>,

    /// The first line of the table names the columns, even if it holds numbers.
    #[arg(long, verbatim_doc_comment, conflicts_with = "no_header")]
    pub(crate) header: bool,

    /// The first line of the table holds data; columns are named x1, x2, …
    #[arg(long, verbatim_doc_comment)]
    pub(crate) no_header: bool,

    /// Number of lines to skip above the table, such as a title; blank lines are not counted.
    /// Detected if not given.
    #[arg(long, verbatim_doc_comment, value_name = "N")]
    pub(crate) skip: Option<usize>,

    /// Encoding of a text table, such as utf-16le or windows-1252. If not given: UTF-8, UTF-16
    /// if the text begins like it, and windows-1252 (Latin-1) if it is not valid UTF-8.
    #[arg(long, verbatim_doc_comment, value_name = "NAME")]
    pub(crate) encoding: Option<String>,

    /// Which worksheet of an .xlsx or .ods file, by name or number from 1; the first if not given.
    #[arg(long, verbatim_doc_comment, value_name = "NAME|N")]
    pub(crate) sheet: Option<String>,

    /// Transpose the table, as for genes × samples. Its first column that is not numeric, or that
    /// of --id, has the names. An imputed table is written in its original orientation.
    #[arg(long, verbatim_doc_comment)]
    pub(crate) transpose: bool,

    /// Which array of an .npz file.
    #[arg(long, verbatim_doc_comment, value_name = "NAME")]
    pub(crate) array: Option<String>,

    /// Column of the times of the rows: dates 2020-01-31, months 2020-01, quarters 2020Q1, datetimes
    /// 2020-01-31T12:00, or numbers such as years. Rows may be in any order, and steps may be missing.
    /// For --model dfm, and for fpca, where times are numbers; it is kept in the model file.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMN")]
    pub(crate) time: Option<String>,

    /// Column that identifies the curve, in a long table: each row is a point of a curve, at its
    /// --time. For --model fpca; not needed if rows are curves and columns are times (a wide table).
    #[arg(long, verbatim_doc_comment, value_name = "COLUMN")]
    pub(crate) curve: Option<String>,

    /// Column of the values of curves, in a long table with several numeric columns.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMN", requires = "curve")]
    pub(crate) value: Option<String>,

    /// Column that identifies the sequence, such as a station, if there are several time series.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMN")]
    pub(crate) group: Option<String>,

    /// The most memory a table may take to be read, such as 500M or 4G; a larger one is gone
    /// through block by block where a verb can, or refused before it fills the machine; `fit -` goes
    /// on with rows beyond it as they come. Three quarters of the machine's memory if not given.
    #[arg(long, visible_alias = "memory", verbatim_doc_comment, value_name = "SIZE", value_parser = crate::memory::size)]
    pub(crate) max_memory: Option<u64>,
}

/// Which columns take part.
#[derive(Args, Clone)]
#[command(next_help_heading = "Reading")]
pub(crate) struct Selecting {
    /// Use only these columns: names, numbers from 1 or ranges of either, separated by commas, such
    /// as `ash:proline,hue`. All others are excluded from the model and passed through.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,

    /// Exclude these columns from the model; written as for --columns.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) exclude: Vec<String>,

    /// Columns that identify the rows: excluded from the model and passed through.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) id: Vec<String>,
}

impl Selecting {
    pub(crate) fn is_default(&self) -> bool {
        self.columns.is_empty() && self.exclude.is_empty() && self.id.is_empty()
    }
}

/// What is fitted and how.
#[derive(Args, Clone, Default, PartialEq)]
#[command(next_help_heading = "Fitting")]
pub(crate) struct Fitting {
    /// Number of components, proportion of variance that they must explain, such as 0.9, or `auto`,
    /// the default: mostly by cross-validation on hidden cells with the one-standard-error rule;
    /// `impute` takes the number that predicts best. For methods that prune components (structured,
    /// mean-field, evidence) it is the largest number, and `auto` is 30 at most. For pcca it is the
    /// number of components that the views share, for mixtures that of each model, for ica that of
    /// sources (if not given, the rank of the table). docs/command-line.md has the rule of each family.
    #[arg(long, verbatim_doc_comment, value_name = "N|SHARE|auto", value_parser = components)]
    pub(crate) components: Option<Components>,

    /// Number of models of a mixture, or `auto`, the default, for that of the smallest BIC up to 6.
    #[arg(long, verbatim_doc_comment, value_name = "K|auto", value_parser = mixtures)]
    pub(crate) mixtures: Option<Mixtures>,

    /// Columns of one view, such as `x=height:weight,age`; once for each view of pcca (two) and gfa
    /// (two or more). Columns are written as for --columns; all others are passed through.
    #[arg(long, verbatim_doc_comment, value_name = "NAME=COLUMNS", value_parser = view)]
    pub(crate) view: Vec<ViewArg>,

    /// The method of inference; the methods of each family are listed at the end. If not given, the
    /// fastest that is exact for the table, or the first of the list.
    #[arg(long, verbatim_doc_comment, value_name = "METHOD")]
    pub(crate) inference: Option<String>,

    /// Scale every column to unit variance before fitting, so that units do not matter; results
    /// are in the original units either way. Default: true, but false for pca. If all columns have
    /// the same unit and similar noise, false estimates components better. For gfa, true means a
    /// noise variance for each column, false one for each view.
    #[arg(
        long,
        verbatim_doc_comment,
        value_name = "true|false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        hide_possible_values = true
    )]
    pub(crate) standardize: Option<bool>,

    /// An option of the method, such as a parameter of a Bayesian model's prior, `noise_rate=0.01`,
    /// or `contrast=exp` for fastica; may be repeated. `covary inspect --json` lists those of a
    /// fit. (Earlier versions called it --prior, which still works.)
    #[arg(long, verbatim_doc_comment, alias = "prior", value_name = "NAME=VALUE", value_parser = named_value)]
    pub(crate) option: Vec<(String, String)>,

    /// For dfm: length of the season in steps, such as 12 for months; its shape has --harmonics.
    #[arg(long, verbatim_doc_comment, value_name = "N", value_parser = at_least_one)]
    pub(crate) season: Option<usize>,

    /// For dfm: number of harmonics of the season, two coefficients each for every column, or `means`
    /// for a mean at each of its steps. If not given, chosen by cross-validation on blocks of time
    /// along with the number of factors, or 1 if that is given.
    #[arg(long, verbatim_doc_comment, value_name = "N|means", value_parser = harmonics, requires = "season")]
    pub(crate) harmonics: Option<String>,

    /// For dfm: a linear trend in every column.
    #[arg(long, verbatim_doc_comment)]
    pub(crate) trend: bool,

    /// For dfm: order of the autoregression of the factors. If not given, chosen as --harmonics, or 1.
    #[arg(long, verbatim_doc_comment, value_name = "N", value_parser = at_least_one)]
    pub(crate) order: Option<usize>,

    /// Where gibbs keeps its chains, every half minute and when interrupted, and em, full-covariance,
    /// structured, mean-field and mixture-em what each pass over the rows found. If the file is there the run
    /// goes on from it, and ends as if it had never stopped; ask for more draws (--option
    /// draws=2000) or steps (--max-iter) and it goes on from its end. Delete it to begin anew.
    #[arg(long, verbatim_doc_comment, value_name = "FILE")]
    pub(crate) checkpoint: Option<PathBuf>,

    /// Maximum number of iterations; if not given 2000; 1000 of mixtures, curves and rows in
    /// time; 500 of variational methods, gaussian and ica without noise.
    #[arg(long, verbatim_doc_comment, value_name = "N", value_parser = at_least_one)]
    pub(crate) max_iter: Option<usize>,

    /// Convergence tolerance: stop when the log-likelihood is expected to increase by less than this
    /// many nats; 1e-6 if not given. For variational methods it is the increase per cell and sweep,
    /// 1e-7; for gaussian the increase per entry of the covariance and step, 1e-3; for ica the change
    /// of a direction, 1e-6, the largest entry of the gradient, 1e-8, or the increase per cell, 1e-8.
    /// With 0 the maximum number of iterations is made, unless a step of newton or cm changes nothing.
    #[arg(long, verbatim_doc_comment, value_name = "TOL", value_parser = not_negative)]
    pub(crate) tol: Option<f64>,

    /// Seed of the random numbers: hidden cells, random starts, draws.
    #[arg(long, verbatim_doc_comment, default_value_t = 0)]
    pub(crate) seed: u64,
}

impl Fitting {
    /// What was said about time, as options of a method.
    pub(crate) fn options_of_time(&self) -> Vec<(String, String)> {
        let waves =
            |period: usize| self.harmonics.as_deref().map_or(period.to_string(), |n| format!("{period}:{n}"));
        let said = [
            ("season", self.season.map(waves)),
            ("trend", self.trend.then(|| "true".to_owned())),
            ("order", self.order.map(|p| p.to_string())),
        ];
        said.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// The family whose options were given, where none was named: one of curves, of time, or of components.
    pub(crate) fn implied(&self, reading: &Reading) -> Option<Family> {
        if reading.curve.is_some() {
            return Some(Family::Fpca);
        }
        let in_time = reading.time.is_some() || !self.options_of_time().is_empty();
        in_time.then_some(Family::Dfm).or_else(|| (!self.is_default()).then_some(Family::Ppca))
    }

    /// Whether nothing was said about the fit.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self { seed: self.seed, ..Self::default() }
    }
}

/// Help that ends with the families and their methods, from the library's table.
pub(crate) fn with_families(examples: &str) -> String {
    let line = |family: &Family| format!("  {:<9} {}\n", family.name(), family.methods().join(", "));
    let lines: String = Family::ALL.iter().map(line).collect();
    format!("Methods of inference (--inference) of each family:\n{lines}\n{examples}")
}

/// The families by name, from the library's table.
pub(crate) fn families() -> impl TypedValueParser<Value = Family> {
    let values = Family::ALL.iter().map(|family| PossibleValue::new(family.name()).help(family.summary()));
    PossibleValuesParser::new(values).map(|name| name.parse::<Family>().expect("one of the names"))
}

/// How many models; `None` is auto.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mixtures(pub(crate) Option<usize>);

fn mixtures(s: &str) -> Result<Mixtures, String> {
    match (s, s.parse()) {
        ("auto", _) => Ok(Mixtures(None)),
        (_, Ok(n)) if n > 0 => Ok(Mixtures(Some(n))),
        _ => Err("give a whole number from 1, or `auto`".to_owned()),
    }
}

/// Rotations by name, each with its usual parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RotationName {
    /// As fitted: uncorrelated, by decreasing weight.
    None,
    /// Orthogonal: each factor on few columns.
    Varimax,
    /// Orthogonal: each column on few factors.
    Quartimax,
    /// Orthogonal: variance spread evenly.
    Equamax,
    /// Oblique: varimax sharpened to the fourth power.
    Promax,
    /// Oblique: direct oblimin with gamma 0.
    Oblimin,
}

impl RotationName {
    pub(crate) fn rotation(self) -> Option<Rotation> {
        Rotation::from_name(&self.name())
    }

    pub(crate) fn name(self) -> String {
        self.to_possible_value().expect("no variant is skipped").get_name().to_owned()
    }
}

fn components(s: &str) -> Result<Components, String> {
    match (s, s.parse::<usize>(), s.parse::<f64>()) {
        ("auto", ..) => Ok(Components::Auto),
        (_, Ok(n), _) => Ok(Components::Number(n)),
        (_, _, Ok(share)) if share > 0.0 && share < 1.0 => Ok(Components::Share(share)),
        _ => Err("give a whole number, a share of the variance such as 0.9, or `auto`".to_owned()),
    }
}

fn harmonics(s: &str) -> Result<String, String> {
    match (s, s.parse::<usize>()) {
        ("means", _) => Ok(s.to_owned()),
        (_, Ok(n)) if n > 0 => Ok(n.to_string()),
        _ => Err("give a whole number from 1, or `means`".to_owned()),
    }
}

fn named_value(s: &str) -> Result<(String, String), String> {
    let named = s.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    named.ok_or_else(|| "give a name and a value, such as noise_rate=0.01".to_owned())
}

/// A column and how many standard deviations its filled cells are shifted by.
pub(crate) fn shift(s: &str) -> Result<(String, f64), String> {
    let parsed = s.rsplit_once('=').and_then(|(name, by)| Some((name.to_owned(), by.trim().parse().ok()?)));
    match parsed {
        Some((name, by)) if !name.is_empty() && f64::is_finite(by) => Ok((name, by)),
        _ => Err("give a column and a number of its standard deviations, such as income=0.5".to_owned()),
    }
}

pub(crate) fn probability(s: &str) -> Result<f64, String> {
    match s.parse() {
        Ok(p) if (1e-6..=1.0 - 1e-6).contains(&p) => Ok(p),
        _ => Err("give a number between 0 and 1, such as 0.95".to_owned()),
    }
}

fn not_negative(s: &str) -> Result<f64, String> {
    match s.parse::<f64>() {
        Ok(v) if v >= 0.0 && v.is_finite() => Ok(v),
        _ => Err("give a number from 0, such as 1e-6".to_owned()),
    }
}

pub(crate) fn thread_count(s: &str) -> Result<usize, String> {
    match s.parse() {
        Ok(n @ 1..=MOST_THREADS) => Ok(n),
        _ => Err(format!("give a whole number from 1 to {MOST_THREADS}")),
    }
}

pub(crate) fn at_least_one(s: &str) -> Result<usize, String> {
    match s.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("give a whole number from 1".to_owned()),
    }
}

fn delimiter(s: &str) -> Result<Delimiter, String> {
    match s.as_bytes() {
        [byte] => Ok(Delimiter::Character(*byte)),
        b"tab" | b"\\t" => Ok(Delimiter::Character(b'\t')),
        b"blanks" => Ok(Delimiter::Blanks),
        _ => Err("give one character, such as `;`, or `tab` or `blanks`".to_owned()),
    }
}
