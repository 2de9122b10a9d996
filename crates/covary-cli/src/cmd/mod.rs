//! The verbs, one file each: flags in, calls of the library, words out.

pub(crate) mod completions;
pub(crate) mod fit;
pub(crate) mod forecast;
pub(crate) mod impute;
pub(crate) mod inspect;
pub(crate) mod man;
pub(crate) mod plot;
pub(crate) mod reconstruct;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod sample;
pub(crate) mod score;
pub(crate) mod select;
pub(crate) mod transform;
pub(crate) mod view;

use crate::args::{Reading, Running, Target};
use crate::blocks::Answer;
use crate::console::{Console, for_output};
use crate::facts;
use crate::failure::Failure;
use crate::input::{self, Blocks, Found, Select, Source, Whole};
use crate::interrupt;
use crate::output::check_places;
use crate::views;
use clap::Args;
use covary::io::{Cells, Format, Sheet};
use covary::learned::{Learned, LinearFit, Membership};
use covary::model::ColumnMap;
use covary::{Dataset, Error};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};

impl Running {
    /// Runs `work` on the threads asked for, with Ctrl-C heard.
    pub(crate) fn run<T: Send>(
        &self,
        work: impl FnOnce(Console) -> Result<T, Failure> + Send,
    ) -> Result<T, Failure> {
        interrupt::listen(self.quiet);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads.unwrap_or(0))
            .build()
            .map_err(|e| Failure::work("threads", e))?;
        pool.install(|| work(Console::new(self.quiet)))
    }

    /// Refuses places that are one, and a result that has no place beside the findings: of a verb that reads one file and
    /// writes one, and maybe a checkpoint.
    pub(crate) fn check_one_output(
        &self,
        what: &str,
        input: &Path,
        output: Option<&Path>,
        checkpoint: Option<&Path>,
    ) -> Result<(), Failure> {
        check_places(&[input], &output.into_iter().chain(checkpoint).collect::<Vec<_>>())?;
        if self.json && output.is_none() {
            let why = format!("--json takes standard output; name a file for the {what} with -o");
            return Err(Failure::Call(why));
        }
        Ok(())
    }

    /// The findings of a run, put together only if they were asked for.
    pub(crate) fn findings(&self, found: impl FnOnce() -> Value) -> Value {
        if self.json { found() } else { Value::Null }
    }

    /// Writes the findings, if they were asked for as JSON.
    pub(crate) fn report(&self, findings: &Value) -> Result<(), Failure> {
        if !self.json {
            return Ok(());
        }
        let text = serde_json::to_string_pretty(findings).expect("text and numbers are JSON");
        print(&text)
    }
}

/// Writes text to standard output; that nobody reads it to its end is success.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::work("standard output", e)),
        _ => Ok(()),
    }
}

/// The same for people: sentences keep to the width of a terminal.
pub(crate) fn print_words(text: &str) -> Result<(), Failure> {
    print(&for_output(text))
}

/// The arguments of a verb that asks a model about the rows of a table.
#[derive(Args)]
pub(crate) struct Question {
    #[command(flatten)]
    asking: Asking,

    /// Write only the result, without the columns that are passed through.
    #[arg(long, verbatim_doc_comment)]
    bare: bool,
}

/// The arguments of a verb that asks a model about a table.
#[derive(Args)]
pub(crate) struct Asking {
    /// A model file, as `covary fit` writes it.
    #[arg(verbatim_doc_comment)]
    model: PathBuf,

    /// Table to apply the model to: CSV, TSV, Parquet, Arrow or NumPy; `-` reads standard input.
    /// Columns are matched to the model's by name.
    #[arg(verbatim_doc_comment)]
    data: PathBuf,

    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    running: Running,
}

/// A model and the table it is asked about.
pub(crate) struct Asked {
    pub(crate) model: String,
    pub(crate) learned: Learned,
    pub(crate) source: Source,
    pub(crate) column_map: ColumnMap,
    pub(crate) bare: bool,
}

impl Asked {
    /// The columns passed through, to stand before the result.
    pub(crate) fn aside(&self) -> Sheet<'_> {
        if self.bare { Sheet::default() } else { self.source.table.aside() }
    }

    /// The columns that stand before answers about each row, or about each curve of a long table.
    pub(crate) fn beside(&self, data: &Dataset) -> Sheet<'_> {
        match self.learned.curves_of(data) {
            None => self.aside(),
            Some((column, names)) => {
                let mut sheet = Sheet::default();
                sheet.push(column, Cells::Text(names.to_vec()));
                sheet
            }
        }
    }

    /// The one model, where only one can answer.
    pub(crate) fn linear(&self) -> Result<&LinearFit, Failure> {
        self.learned.linear().map_err(|e| self.refused(e))
    }

    /// What the model refused to answer, or the table to be asked.
    pub(crate) fn refused(&self, error: Error) -> Failure {
        match error {
            Error::NotOneModel { .. }
            | Error::NoDensity { .. }
            | Error::NotAMixture { .. }
            | Error::NoSources { .. }
            | Error::NotInTime { .. }
            | Error::NotCurves { .. } => Failure::of_model(&self.model, error),
            other => Failure::of_table(&self.source.name, other),
        }
    }

    /// Names the columns that never varied where the model learned and that differ here: the model knows nothing of
    /// what goes with another value.
    pub(crate) fn warn_of_constants(&self, console: Console) {
        let data = self.source.table.dataset();
        for &(column, value) in &self.column_map.constants {
            let differs = |i: &usize| !data.row(*i)[column].is_nan() && data.row(*i)[column] != value;
            if let Some(row) = (0..data.n_rows()).find(differs) {
                console.warn(&format!(
                    "`{}` was always {value} where the model learned and is {} in row {}: the model does not take it into account",
                    data.column_names()[column],
                    data.row(row)[column],
                    row + 1
                ));
            }
        }
    }

    /// The model's columns of the table.
    pub(crate) fn data(&self) -> Result<Cow<'_, Dataset>, Failure> {
        self.column_map
            .dataset(self.source.table.dataset())
            .map_err(|e| Failure::of_table(&self.source.name, e))
    }
}

/// What the table of a question holds.
enum About<'a> {
    /// Rows of the model's columns.
    Rows,
    /// The same without the columns of this view: it is missing from all rows.
    Without(&'a str),
    /// Scores of rows.
    Scores,
}

/// Writes a sheet.
type WriteSheet<'a> = dyn FnMut(&Sheet<'_>) -> Result<(), Failure> + 'a;

impl Question {
    /// As [`Asking::answer`], with the columns carried through, of a table in memory: this option needs it there.
    fn answer(
        &self,
        about: &About<'_>,
        flag: &str,
        answer: impl FnOnce(Console, &Asked, &mut WriteSheet<'_>) -> Result<Value, Failure> + Send,
    ) -> Result<(), Failure> {
        self.answer_by_blocks(about, Err(Whole::option(flag)), answer)
    }

    /// The same, of a table beyond memory block by block unless something needs it there.
    fn answer_by_blocks(
        &self,
        about: &About<'_>,
        by_blocks: Result<&Answer<'_>, Whole>,
        answer: impl FnOnce(Console, &Asked, &mut WriteSheet<'_>) -> Result<Value, Failure> + Send,
    ) -> Result<(), Failure> {
        let taken = "and so has the table; rename it, or say --bare to leave out what is passed through";
        self.asking.answer(about, (self.bare, taken), by_blocks, answer)
    }
}

impl Asking {
    /// Reads model and table, lets `answer` put columns on a sheet beside those carried through unless it is to be bare, and
    /// writes it; `taken` says why a name is not free. `answer` returns what it found, for `--json`.
    fn answer(
        &self,
        about: &About<'_>,
        (bare, taken): (bool, &str),
        by_blocks: Result<&Answer<'_>, Whole>,
        answer: impl FnOnce(Console, &Asked, &mut WriteSheet<'_>) -> Result<Value, Failure> + Send,
    ) -> Result<(), Failure> {
        let outputs: Vec<&Path> = self.target.output.as_deref().into_iter().collect();
        check_places(&[&self.model, &self.data], &outputs)?;
        if input::is_pipe(&self.model) && input::is_pipe(&self.data) {
            return Err(Failure::Call("model and data cannot both be standard input".to_owned()));
        }
        self.running.run(|console| {
            let format = self.target.format(Format::CSV)?;
            let output = self.target.open(format, self.running.json)?;
            let asked = match about {
                About::Rows => match by_blocks {
                    Err(whole) => ask(&self.model, &self.data, &self.reading, &whole)?,
                    Ok(answer) => match ask_or_go_through(&self.model, &self.data, &self.reading, None)? {
                        Pending::Table(asked) => *asked,
                        Pending::Blocks(learned, blocks) => {
                            let to = (format, &output, bare);
                            let found = answer.write(console, (&learned, &self.model), &blocks, to)?;
                            said_written(console, &outputs);
                            return self.running.report(&found);
                        }
                    },
                },
                About::Without(view) => ask_without(view, &self.model, &self.data, &self.reading)?,
                About::Scores => ask_scores(&self.model, &self.data, &self.reading)?,
            };
            let asked = Asked { bare, ..asked };
            asked.warn_of_constants(console);
            facts::tell_times(console, &asked.source);
            let mut written = |sheet: &Sheet<'_>| {
                if let Some(name) = sheet.repeated_name() {
                    return Err(Failure::work(
                        &asked.source.name,
                        format!("the result has a column `{name}`, {taken}"),
                    ));
                }
                let left = output.write(|out| sheet.write(format, out))?;
                let target =
                    self.target.output.as_deref().map_or("standard output".to_owned(), input::name_of);
                facts::left_out(console, &left, &target);
                Ok(())
            };
            let found = answer(console, &asked, &mut written)?;
            said_written(console, &outputs);
            self.running.report(&found)
        })
    }
}

/// The model and the table at these paths, columns matched by name.
pub(crate) fn ask(model: &Path, data: &Path, reading: &Reading, whole: &Whole) -> Result<Asked, Failure> {
    asked_of(input::model(model)?, model, |select| reading.read(data, select, whole))
}

/// A model, and the table it is asked about or blocks of it.
pub(crate) enum Pending {
    Table(Box<Asked>),
    Blocks(Box<Learned>, Box<Blocks>),
}

/// As [`ask`], of a table beyond memory its blocks unless `whole` or the model needs it there.
pub(crate) fn ask_or_go_through(
    model: &Path,
    data: &Path,
    reading: &Reading,
    whole: Option<Whole>,
) -> Result<Pending, Failure> {
    let learned = input::model(model)?;
    // Rows whose class the table may name are asked about with it.
    let by_rows = learned.linear().is_ok() || learned.mixture().is_ok_and(|fit| fit.classes.is_none());
    let of_model = || {
        let with_classes = if learned.mixture().is_ok() { " with classes" } else { "" };
        let what = format!("a model `{}`{with_classes}", learned.family.name());
        (!by_rows).then(|| Whole::new(what, "ask about fewer rows at a time"))
    };
    if let Some(whole) = whole.or_else(of_model) {
        let asked = asked_of(learned, model, |select| reading.read(data, select, &whole))?;
        return Ok(Pending::Table(Box::new(asked)));
    }
    learned.check_rows().map_err(|e| Failure::of_model(&input::name_of(model), e))?;
    match reading.read_or_go_through(data, Select::Model(&learned))? {
        Found::Table(source) => Ok(Pending::Table(Box::new(asked_of(learned, model, |_| Ok(*source))?))),
        Found::Blocks(blocks) => Ok(Pending::Blocks(Box::new(learned), blocks)),
    }
}

fn asked_of(
    learned: Learned,
    model: &Path,
    read: impl FnOnce(Select<'_>) -> Result<Source, Failure>,
) -> Result<Asked, Failure> {
    learned.check_rows().map_err(|e| Failure::of_model(&input::name_of(model), e))?;
    let source = read(Select::Model(&learned))?;
    let map = learned.column_map(source.table.dataset().column_names());
    let column_map = map.map_err(|e| Failure::of_table(&source.name, e))?;
    Ok(Asked { model: input::name_of(model), learned, source, column_map, bare: false })
}

/// As [`ask`], where the table need not have the columns of a view. The map has those of the others.
fn ask_without(view: &str, model: &Path, data: &Path, reading: &Reading) -> Result<Asked, Failure> {
    let learned = input::model(model)?;
    let name = input::name_of(model);
    let hidden = views::find(learned.linear().map_err(|e| Failure::of_model(&name, e))?, view)?;
    let needed: Vec<String> = (0..learned.columns.len())
        .filter(|j| !hidden.contains(j))
        .map(|j| learned.columns[j].clone())
        .collect();
    ask_for(&needed, (learned, name), (data, reading, &Whole::option("--view")))
}

/// As [`ask`], of a table of scores as `covary transform` writes it.
fn ask_scores(model: &Path, data: &Path, reading: &Reading) -> Result<Asked, Failure> {
    let learned = input::model(model)?;
    let name = input::name_of(model);
    let refused = |e| Failure::of_model(&name, e);
    learned.check_rows().and_then(|()| learned.linear().map(|_| ())).map_err(refused)?;
    let needed = learned.score_names();
    if needed.is_empty() {
        return Err(Failure::work(&name, "has no components, so there are no scores to make rows of"));
    }
    ask_for(&needed, (learned, name), (data, reading, &Whole::option("--from-scores")))
}

/// The model and these columns of the table, in their order.
fn ask_for(
    needed: &[String],
    (learned, model): (Learned, String),
    (data, reading, whole): (&Path, &Reading, &Whole),
) -> Result<Asked, Failure> {
    let source = reading.read(data, Select::Some(needed), whole)?;
    let names = source.table.dataset().column_names();
    let place = |n: &String| names.iter().position(|name| name == n).expect("the reader found them all");
    let columns = needed.iter().map(place).collect();
    let column_map = ColumnMap { columns, constants: Vec::new() };
    Ok(Asked { model, learned, source, column_map, bare: false })
}

/// Puts the most likely model of every row and the probability of each on a sheet.
fn push_membership(sheet: &mut Sheet<'_>, of: &Membership) {
    if of.are_classes {
        sheet.push("predicted", Cells::Text(of.labels.iter().map(|&k| of.names[k].clone()).collect()));
    } else {
        sheet.push("model", Cells::Integers(of.labels.iter().map(|&k| k as i64 + 1).collect()));
    }
    for (k, name) in of.names.iter().enumerate() {
        sheet.push(format!("probability_{name}"), Cells::Numbers(of.probabilities.column(k)));
    }
}

/// Says which files were written.
pub(crate) fn said_written(console: Console, paths: &[&Path]) {
    for path in paths.iter().filter(|p| !input::is_pipe(p)) {
        console.say(&format!("wrote {}", path.display()));
    }
}

/// Findings that every question shares.
fn asked_json(asked: &Asked, data: &Dataset) -> serde_json::Map<String, Value> {
    let mut found = serde_json::Map::new();
    found.insert("source".to_owned(), json!(asked.source.name));
    found.insert("n_rows".to_owned(), json!(data.n_rows()));
    found.insert("n_gaps".to_owned(), json!(data.n_gaps()));
    found
}
