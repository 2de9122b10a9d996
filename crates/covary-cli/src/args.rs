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

    /// Say only what is wrong: warnings and errors.
    #[arg(short, long, verbatim_doc_comment)]
    pub(crate) quiet: bool,

    /// Write what was found to standard output as JSON, for programs; the data need -o then.
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
    /// What becomes of cells far from what the rest of their rows say, such as 1000000 among values
    /// of 3: `report` names them; `down-weight` names them and treats them as missing while fitting
    /// and imputing. They leave as they came either way.
    #[arg(long, verbatim_doc_comment, value_enum, value_name = "report|down-weight", default_value_t = Wild::Report, hide_possible_values = true)]
    pub(crate) wild: Wild,
}

/// Where the resulting table goes.
#[derive(Args, Clone)]
pub(crate) struct Target {
    /// Where the result goes; standard output if not given. Written beside its target and
    /// renamed, so a failure leaves an older file as it was.
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

    /// Further words or numbers that mean a gap, separated by commas, such as `-99,?`. Always
    /// gaps: empty, NA, N/A, #N/A, <NA>, NaN, null, None.
    #[arg(
        long,
        verbatim_doc_comment,
        value_name = "WORDS",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub(crate) gaps: Vec<String>,

    /// What separates the cells of a text table: a character such as `;`, `tab`, or `blanks` for
    /// any number of spaces and tabs. If not given, what the text shows.
    #[arg(long, verbatim_doc_comment, value_name = "CHAR|tab|blanks", value_parser = delimiter)]
    pub(crate) delimiter: Option<Delimiter>,

    /// Whether numbers of a text table are written 1,5. If not given, what the text shows.
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

    /// The first line of the table is a row like the others; columns are called x1, x2, …
    #[arg(long, verbatim_doc_comment)]
    pub(crate) no_header: bool,

    /// Lines above the table that are not part of it, such as a title; blank lines are not
    /// counted. If not given, as many as are not like the table.
    #[arg(long, verbatim_doc_comment, value_name = "N")]
    pub(crate) skip: Option<usize>,

    /// Encoding of a text table, such as utf-16le or windows-1252. If not given: UTF-8, UTF-16
    /// where the beginning shows it, and windows-1252 (Latin-1) where the text is not UTF-8.
    #[arg(long, verbatim_doc_comment, value_name = "NAME")]
    pub(crate) encoding: Option<String>,

    /// Which worksheet of an .xlsx or .ods file, by name or number from 1; the first if not given.
    #[arg(long, verbatim_doc_comment, value_name = "NAME|N")]
    pub(crate) sheet: Option<String>,

    /// The columns of the file are the rows of the table, as in genes × samples. Its first column
    /// that is not of numbers, or that of --id, has the names. Imputed, the table leaves as it came.
    #[arg(long, verbatim_doc_comment)]
    pub(crate) transpose: bool,

    /// Which array of an .npz file.
    #[arg(long, verbatim_doc_comment, value_name = "NAME")]
    pub(crate) array: Option<String>,

    /// Column that says when rows happened: dates 2020-01-31, months 2020-01, quarters 2020Q1, moments
    /// 2020-01-31T12:00, or numbers such as years. Rows may stand in any order and steps be missing.
    /// For --model dfm, and of points of curves for fpca, where times are numbers; a model file
    /// remembers the column.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMN")]
    pub(crate) time: Option<String>,

    /// Column that tells curves apart, in a long table: each row is a point of a curve, at its --time.
    /// For --model fpca; a wide table, whose rows are curves and whose columns are times, has none.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMN")]
    pub(crate) curve: Option<String>,

    /// Column of the values of curves, in a long table that has several columns of numbers.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMN", requires = "curve")]
    pub(crate) value: Option<String>,

    /// Column that tells several sequences of rows apart, such as stations; each has its own times.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMN")]
    pub(crate) group: Option<String>,

    /// The most memory a table may take to be read, such as 500M or 4G; a larger one is gone
    /// through block by block where a verb can, or refused before it fills the machine. Three
    /// quarters of the machine's memory if not given.
    #[arg(long, visible_alias = "memory", verbatim_doc_comment, value_name = "SIZE", value_parser = crate::memory::size)]
    pub(crate) max_memory: Option<u64>,
}

/// Which columns take part.
#[derive(Args, Clone)]
#[command(next_help_heading = "Reading")]
pub(crate) struct Selecting {
    /// Only these columns: names, numbers from 1 or ranges of either, separated by commas, such
    /// as `ash:proline,hue`. All others are set aside and passed through.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,

    /// Not these columns; written as for --columns.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) exclude: Vec<String>,

    /// Columns that label the rows: passed through, never measured.
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
    /// How many components: a number, a share of the variance they must explain, such as 0.9, or
    /// `auto`, which is the default: the family chooses, mostly the fewest that predict hidden cells
    /// as well as any number; `impute` takes the number that predicts best. Methods that drop components (structured, mean-field,
    /// evidence) take the number as the most there may be; `auto` is up to 30 for them. For pcca it
    /// is the number that the views share, for mixtures that of each model, for ica that of sources
    /// (all directions of the table if not given). docs/command-line.md has the rule of each family.
    #[arg(long, verbatim_doc_comment, value_name = "N|SHARE|auto", value_parser = components)]
    pub(crate) components: Option<Components>,

    /// How many models a mixture has, or `auto` for the number of least BIC up to 6; auto if not
    /// given.
    #[arg(long, verbatim_doc_comment, value_name = "K|auto", value_parser = mixtures)]
    pub(crate) mixtures: Option<Mixtures>,

    /// Columns of one view, such as `x=height:weight,age`; once for each view of pcca (two) and gfa
    /// (two or more). Columns are written as for --columns; those in no view are passed through.
    #[arg(long, verbatim_doc_comment, value_name = "NAME=COLUMNS", value_parser = view)]
    pub(crate) view: Vec<ViewArg>,

    /// The method of inference; the methods of each family are listed at the end. If not given, the
    /// fastest that the table allows, and for a family whose methods do not depend on the table
    /// the first.
    #[arg(long, verbatim_doc_comment, value_name = "METHOD")]
    pub(crate) inference: Option<String>,

    /// Give every column unit variance before fitting, so that units do not matter; results
    /// are in the table's own units either way. Default: true, but false for pca. If all columns
    /// are in one unit and about as noisy, false finds components better. For gfa true has a
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

    /// Of dfm: steps of a season, such as 12 for months; means change within it by --harmonics waves.
    #[arg(long, verbatim_doc_comment, value_name = "N", value_parser = at_least_one)]
    pub(crate) season: Option<usize>,

    /// Waves within a season, each two numbers for every column, or `means` for a mean of each of its
    /// steps. If not given 1, or what predicts hidden blocks of time where the number of factors is
    /// chosen, too.
    #[arg(long, verbatim_doc_comment, value_name = "N|means", value_parser = harmonics, requires = "season")]
    pub(crate) harmonics: Option<String>,

    /// Of dfm: every column has a straight line in time.
    #[arg(long, verbatim_doc_comment)]
    pub(crate) trend: bool,

    /// Of dfm: how many steps back the factors depend on; if not given 1, or what predicts as above.
    #[arg(long, verbatim_doc_comment, value_name = "N", value_parser = at_least_one)]
    pub(crate) order: Option<usize>,

    /// Where gibbs keeps its chains, every half minute and when interrupted, and em, full-covariance,
    /// structured and mean-field what each pass over the rows found. If the file is there the run
    /// goes on from it, and ends as if it had never stopped; ask for more draws (--option
    /// draws=2000) or steps (--max-iter) and it goes on from its end. Delete it to begin anew.
    #[arg(long, verbatim_doc_comment, value_name = "FILE")]
    pub(crate) checkpoint: Option<PathBuf>,

    /// Most iterations of a fit; if not given 2000, and 500 for variational methods, gaussian and
    /// ica without noise.
    #[arg(long, verbatim_doc_comment, value_name = "N", value_parser = at_least_one)]
    pub(crate) max_iter: Option<usize>,

    /// Stop when the log-likelihood is expected to rise by less than this many nats; 1e-6
    /// if not given. For variational methods nats per cell that a sweep must add, 1e-7; for
    /// gaussian nats per entry of the covariance that a step must add, 1e-3; for ica how far a
    /// direction may still turn, 1e-6, the largest entry of the gradient, 1e-8, or nats per cell, 1e-8.
    /// 0 makes as many iterations as are allowed; newton and cm end before where a step changes nothing.
    #[arg(long, verbatim_doc_comment, value_name = "TOL", value_parser = not_negative)]
    pub(crate) tol: Option<f64>,

    /// Seed of everything left to chance: which cells are hidden, random starts, draws.
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
