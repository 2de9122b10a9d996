//! `covary report`: one page that says what is in a table, what was learned, and its limitations.

use super::plot::colored;
use super::said_written;
use crate::args::{
    Fitting, Reading, RotationName, Running, Selecting, at_least_one, families, probability, with_families,
};
use crate::classes;
use crate::console::Console;
use crate::facts;
use crate::failure::Failure;
use crate::input::{Select, Source, Whole};
use crate::interrupt;
use crate::learn::Narrator;
use crate::output::Output;
use clap::Args;
use covary::CentralMoments;
use covary::data::{Ledger, MatrixKind};
use covary::family::{Components, Family, ForFilling, Request};
use covary::learned;
use covary_report::page::{self, Facts, MatrixStudy, Study, Subject};
use covary_report::plot::scores::Rows;
use serde_json::Value;
use std::ffi::OsString;
use std::path::PathBuf;

/// Write a report on a table: data summary, components, imputed values, outliers, limitations.
///
/// The number of components is chosen, the model is fitted and cross-validated on hidden cells, and
/// missing values are imputed as by `covary impute`. The report is one HTML file that loads nothing
/// from elsewhere, with interactive figures and sortable tables; it can be sent, printed and
/// archived.
///
/// For a dynamic factor model it has the factors in time, the transition with its roots and
/// half-lives, a forecast of the next season, and the rows that differ most from their forecasts.
///
/// If no model can be fitted, the report has the data summary and the reason (exit status 1).
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = with_families("\
Examples:
  covary report examples/wine_gaps.csv -o report.html
  covary report examples/wine_gaps.csv --model bpca --json -o report.html
  covary report examples/months.csv --model dfm --time month --season 12 -o months.html"))]
pub(crate) struct Report {
    /// Table to report on: CSV, TSV (.gz too), Parquet, Arrow or NumPy; `-` reads standard input.
    #[arg(verbatim_doc_comment)]
    data: PathBuf,

    /// Where the page goes; standard output if not given. Written beside its target and renamed:
    /// an older page is replaced by a whole new one or stays.
    #[arg(short, long, verbatim_doc_comment, value_name = "REPORT.html")]
    output: Option<PathBuf>,

    /// What to fit [default: ppca, or fa with --matrix].
    #[arg(long, verbatim_doc_comment, value_name = "FAMILY", value_parser = families())]
    model: Option<Family>,

    /// DATA is not a table of observations but their correlations or covariances (divisor N - 1),
    /// columns by columns, as for `covary fit`. The page then has what a matrix allows: eigenvalues,
    /// loadings, communalities, factor correlations and how well they fit.
    #[arg(long, verbatim_doc_comment, value_name = "KIND", value_parser = ["correlation", "covariance"], requires = "rows", conflicts_with_all = ["view", "checkpoint"])]
    matrix: Option<String>,

    /// How many observations the matrix was computed from.
    #[arg(long, verbatim_doc_comment, value_name = "N", value_parser = at_least_one, requires = "matrix")]
    rows: Option<usize>,

    /// Column whose values are classes: each has a model of its own, as for `covary fit`.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMN", conflicts_with = "matrix")]
    target: Option<String>,

    /// Rotation of the loadings; scores are rotated with them.
    #[arg(long, verbatim_doc_comment, value_enum, default_value_t = RotationName::None)]
    rotation: RotationName,

    /// Column that colors the rows of figures, or none; if not given, the one column of text with
    /// two to eight levels, if there is one.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMN", conflicts_with = "matrix")]
    color: Option<String>,

    /// The components along the axes of the figures of scores and the biplot.
    #[arg(long, verbatim_doc_comment, value_name = "X,Y", default_value = "1,2", value_parser = axes, conflicts_with = "matrix")]
    axes: (usize, usize),

    /// Probability that an interval of a filled cell covers the true value.
    #[arg(long, verbatim_doc_comment, value_name = "LEVEL", default_value_t = 0.95, value_parser = probability)]
    interval: f64,

    #[command(flatten)]
    fitting: Fitting,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    selecting: Selecting,

    #[command(flatten)]
    running: Running,
}

impl Report {
    /// What `covary view` asks for.
    pub(super) fn of(
        data: PathBuf,
        (model, rotation): (Option<Family>, RotationName),
        (color, axes): (Option<String>, (usize, usize)),
        fitting: Fitting,
        (reading, selecting, running): (Reading, Selecting, Running),
    ) -> Self {
        Self {
            data,
            output: None,
            model,
            matrix: None,
            rows: None,
            target: None,
            rotation,
            color,
            interval: 0.95,
            axes,
            fitting,
            reading,
            selecting,
            running,
        }
    }

    pub(crate) fn run(&self) -> Result<(), Failure> {
        let output = self.output.as_deref();
        self.running.check_one_output("page", &self.data, output, self.fitting.checkpoint.as_deref())?;
        let requests = self.requests()?;
        self.running.run(|console| {
            let target = Output::open(output)?;
            let (found, refused) = self.report(console, &target, &requests)?;
            said_written(console, output.as_slice());
            self.running.report(&found)?;
            refused.map_or(Ok(()), Err)
        })
    }

    /// What is fitted, and what imputes: as `covary impute` with the same options.
    fn requests(&self) -> Result<(Request, Request), Failure> {
        let default = if self.matrix.is_some() { Family::Fa } else { Family::Ppca };
        let named =
            self.model.or_else(|| self.fitting.implied(&self.reading).filter(|_| self.matrix.is_none()));
        let model = named.unwrap_or(default);
        self.reading.check_time(model)?;
        let request = self.fitting.request(model, self.rotation)?;
        if self.target.is_some() {
            classes::check(&request)?;
        }
        let filling = match named.or(self.target.is_some().then_some(model)) {
            Some(_) => Request {
                filling: Some(ForFilling { choose: false, ..ForFilling::default() }),
                ..self.fitting.request(model, RotationName::None)?
            },
            None => Request { seed: self.fitting.seed, ..Request::for_filling() },
        };
        Ok((request, filling))
    }

    /// The page of a table that was read, and the facts on it.
    pub(super) fn page(
        &self,
        console: Console,
        (source, ledger): (&Source, &Ledger),
    ) -> Result<(String, Facts), Failure> {
        let command = self.call();
        let subject =
            Subject { table: Some((&source.table, ledger)), ..self.subject(&source.name, &command) };
        match self.study(console, &self.requests()?, (subject, source, ledger)) {
            Err(Failure::Unfit { why, .. }) => Self::drawn(&Subject { refusal: Some(&why), ..subject }),
            drawn => drawn,
        }
    }

    fn subject<'a>(&self, source: &'a str, command: &'a str) -> Subject<'a> {
        Subject {
            source,
            table: None,
            study: None,
            matrix: None,
            refusal: None,
            command,
            level: self.interval,
        }
    }

    /// Writes the page; returns the facts, and why there is no model if there is none.
    fn report(
        &self,
        console: Console,
        output: &Output,
        requests: &(Request, Request),
    ) -> Result<(Value, Option<Failure>), Failure> {
        let (name, command) = (crate::input::name_of(&self.data), command_line(std::env::args_os().skip(1)));
        let subject = self.subject(&name, &command);
        let mut selecting = self.fitting.selecting(&self.selecting)?.into_owned();
        selecting.id.extend(self.target.clone());
        let source = match self.reading.read(&self.data, Select::By(&selecting), &Whole::verb("report")) {
            Ok(source) => source,
            Err(unfit @ Failure::Unfit { .. }) => return self.refused(output, subject, unfit),
            Err(other) => return Err(other),
        };
        if let Some(kind) = self.matrix.as_deref().and_then(MatrixKind::from_name) {
            let drawn = self.study_matrix(console, &requests.0, (subject, &source, kind))?;
            return Ok((self.write(output, drawn)?, None));
        }
        let ledger = facts::tell(console, &source);
        let subject = Subject { table: Some((&source.table, &ledger)), ..subject };
        match self.study(console, requests, (subject, &source, &ledger)) {
            Ok(drawn) => Ok((self.write(output, drawn)?, None)),
            Err(unfit @ Failure::Unfit { .. }) => self.refused(output, subject, unfit),
            Err(other) => Err(other),
        }
    }

    fn study(
        &self,
        console: Console,
        (request, filling): &(Request, Request),
        (subject, source, ledger): (Subject<'_>, &Source, &Ledger),
    ) -> Result<(String, Facts), Failure> {
        let refused = |e| Failure::of_table(&source.name, e);
        let classes = self.target.as_deref().map(|target| classes::of_column(source, target)).transpose()?;
        // Rows of a known class are imputed by its model.
        let known =
            classes.as_ref().map(|known| source.table.dataset().clone().of_classes(known.of_rows.clone()));
        let known = known.transpose().map_err(refused)?;
        let wide = known.as_ref().unwrap_or(source.table.dataset());
        let views = self.fitting.views(source)?;
        let complete =
            |request: &Request| Request { views: views.clone(), classes: classes.clone(), ..request.clone() };
        let (request, filling) = (&complete(request), &complete(filling));
        let column_map =
            request.column_map(wide).map_err(|e| Failure::of_request(&source.name, e, &request.views))?;
        let narrator =
            Narrator::new(console, (source, ledger), request, &self.fitting).learning_from(Some(wide));
        let mut learned = narrator.learn_mapped(&column_map)?;
        let most = learned.n_shown();
        if self.axes != FIRST && self.axes.0.max(self.axes.1) > most {
            return Err(Failure::work(
                &source.name,
                format!(
                    "--axes {},{} asks for more than the {most} components there are",
                    self.axes.0, self.axes.1
                ),
            ));
        }
        let data = column_map.dataset(wide).map_err(refused)?;
        let choice = narrator.choice().expect("told of before the fit");
        let (mut filler, mut cells) = (None, Vec::new());
        if data.is_complete() {
            // Independent components without noise predict nothing, and models of classes are checked by their gaps alone.
            if self.target.is_none() && learned.fill(learned::Rows::Training).is_ok() {
                cells = narrator.check(&mut learned, &data)?;
            }
        } else {
            console.say("missing values are imputed as `covary impute` does:");
            let narrator =
                Narrator::new(console, (source, ledger), filling, &self.fitting).learning_from(Some(wide));
            let filled = filler.insert(narrator.learn_mapped(&column_map)?);
            cells.extend(narrator.check(filled, &data)?);
        }
        let color = match &self.color {
            Some(name) if name == "none" && !source.table.column_names().contains(name) => None,
            Some(name) => Some(colored(source, name)?),
            None => page::groups(&source.table),
        };
        let labels = page::row_names(&source.table);
        let study = Study {
            axes: self.axes,
            rows: Rows { color_by: color.as_ref(), labels: labels.as_deref(), ..Rows::default() },
            linear: learned.linear().ok(),
            learned: &learned,
            filler: filler.as_ref().unwrap_or(&learned),
            column_map: &column_map,
            data: &data,
            cells: &cells,
            choice: &choice,
        };
        Self::drawn(&Subject { study: Some(study), ..subject })
    }

    fn study_matrix(
        &self,
        console: Console,
        request: &Request,
        (subject, source, kind): (Subject<'_>, &Source, MatrixKind),
    ) -> Result<(String, Facts), Failure> {
        let n_rows = self.rows.unwrap_or(0);
        let refused = |e| Failure::of_table(&source.name, e);
        let ledger = Ledger::of(source.table.dataset());
        let narrator = Narrator::new(console, (source, &ledger), request, &self.fitting);
        let learned = narrator.learn_matrix(kind, n_rows)?;
        let moments = CentralMoments::of_matrix(source.table.dataset(), kind, n_rows).map_err(refused)?;
        let choice = narrator.choice().expect("told of before the fit");
        let linear = learned.linear().map_err(refused)?;
        let study = MatrixStudy { learned: &learned, linear, kind, moments: &moments, choice: &choice };
        Self::drawn(&Subject { matrix: Some(study), ..subject })
    }

    fn refused(
        &self,
        output: &Output,
        subject: Subject<'_>,
        unfit: Failure,
    ) -> Result<(Value, Option<Failure>), Failure> {
        let Failure::Unfit { why, .. } = &unfit else { return Err(unfit) };
        let found = self.write(output, Self::drawn(&Subject { refusal: Some(why), ..subject })?)?;
        Ok((found, Some(unfit)))
    }

    /// The page as text, and the facts on it.
    fn drawn(subject: &Subject<'_>) -> Result<(String, Facts), Failure> {
        let failed = |e: covary_report::Error| Failure::of_figure(subject.source, &e);
        let _part = interrupt::begin("drawing the report", interrupt::Ends::ToEnd, None);
        let facts = Facts::of(subject).map_err(failed)?;
        let figures = match (subject.study, subject.matrix) {
            (Some(study), _) => page::figures(&study, &facts),
            (None, Some(study)) => page::figures_of_matrix(&study),
            (None, None) => Vec::new(),
        };
        Ok((page::html(&facts, &figures), facts))
    }

    fn write(&self, output: &Output, (html, facts): (String, Facts)) -> Result<Value, Failure> {
        output.write(|out| out.write_all(html.as_bytes()).map_err(covary::io::Error::Write))?;
        Ok(self.running.findings(|| serde_json::to_value(&facts).expect("numbers and text are JSON")))
    }

    /// The call of `covary report` that makes the same page of the whole table, with what can be chosen there; how it is read follows from the call of
    /// `covary view`.
    fn call(&self) -> String {
        // What `view` alone knows, and what does not change the page.
        let mut given = std::env::args_os().skip(2).peekable();
        let mut words: Vec<OsString> = vec!["report".into()];
        while let Some(word) = given.next() {
            match word.to_str() {
                Some("--no-open" | "--quiet" | "-q") => {}
                Some("--port") => drop(given.next()),
                Some(one) if one.starts_with("--port=") => {}
                _ => words.push(word),
            }
        }
        let mut add = |flag: &str, value: Option<String>| {
            words.extend(value.into_iter().flat_map(|value| [OsString::from(flag), value.into()]));
        };
        add("--model", self.model.map(|family| family.name().to_owned()));
        add(
            "--components",
            match self.fitting.components {
                Some(Components::Number(n)) => Some(n.to_string()),
                _ => None,
            },
        );
        add("--rotation", (self.rotation != RotationName::None).then(|| self.rotation.name()));
        add("--color", self.color.clone());
        add("--axes", (self.axes != FIRST).then(|| format!("{},{}", self.axes.0, self.axes.1)));
        add("-o", Some("report.html".to_owned()));
        command_line(words.into_iter())
    }
}

/// The components that figures of scores have as axes.
const FIRST: (usize, usize) = (1, 2);

fn axes(s: &str) -> Result<(usize, usize), String> {
    let pair = s.split_once(',').map(|(x, y)| (x.trim().parse(), y.trim().parse()));
    match pair {
        Some((Ok(x @ 1..), Ok(y @ 1..))) if x != y => Ok((x, y)),
        _ => Err("give two different components, such as 1,3".to_owned()),
    }
}

/// The call, as it can be typed again.
fn command_line(words: impl Iterator<Item = OsString>) -> String {
    let word = |word: OsString| {
        let word = word.to_string_lossy().into_owned();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    let words = std::iter::once("covary".to_owned()).chain(words.map(word));
    words.collect::<Vec<_>>().join(" ")
}
