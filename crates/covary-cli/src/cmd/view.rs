//! `covary view`: the report in a browser, recomputed as a person changes the model.

use super::report::Report;
use crate::args::{Fitting, Reading, RotationName, Running, Selecting};
use crate::console::{Console, count};
use crate::facts;
use crate::failure::Failure;
use crate::input::{Select, Source, Whole};
use crate::interrupt;
use crate::server::{Asked, Reply, Server};
use clap::{Args, ValueEnum};
use covary::data::Ledger;
use covary::family::{Components, Family};
use covary::io::{self, Cells, ColumnChoice, Columns, Format, Input, ReadOptions, Sheet};
use serde_json::json;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Cells of the rows that are looked at, and the most and fewest of these: a page of them is there in seconds.
const CELLS: usize = 120_000;
const MOST_ROWS: usize = 5000;
const FEWEST_ROWS: usize = 500;
/// Pages that are kept, so that the last ones can still be saved.
const KEPT: usize = 8;
/// Levels of a column of text that rows are colored by.
const MOST_LEVELS: usize = 24;
/// How long nothing is heard of a page that was opened until it is taken to be closed. Browsers let pages that are not seen
/// say something once a minute.
const SILENCE: Duration = Duration::from_secs(150);
/// The same after it said that it closes: loaded anew, it is back sooner.
const CLOSING: Duration = Duration::from_secs(3);
/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(200);

/// Explore a table in the browser: its report, with model, components, rotation and axes to choose.
///
/// The report is served on this machine only (127.0.0.1), at an address that contains a random
/// token, and loads nothing from elsewhere. The server ends with Ctrl-C, or when the page is closed.
/// Of a large table a systematic sample of rows is used, so that a page takes seconds; the page says
/// how many, and which `covary report` command uses all of them.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary view examples/wine_gaps.csv
  covary view examples/wine_gaps.csv --no-open --port 8000")]
pub(crate) struct View {
    /// Table to explore: CSV, TSV (.gz too), Parquet, Arrow or NumPy; `-` reads standard input.
    #[arg(verbatim_doc_comment)]
    data: PathBuf,

    /// Do not open a browser; the address is printed either way.
    #[arg(long, verbatim_doc_comment)]
    no_open: bool,

    /// Port to listen on; a free one if not given.
    #[arg(long, verbatim_doc_comment, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,

    /// Seed of everything left to chance.
    #[arg(long, verbatim_doc_comment, default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    selecting: Selecting,

    /// Threads to use; all processors if not given. The numbers do not depend on it.
    #[arg(long, verbatim_doc_comment, value_name = "N", value_parser = crate::args::thread_count)]
    threads: Option<usize>,

    /// Say only the address and what is wrong.
    #[arg(short, long, verbatim_doc_comment)]
    quiet: bool,
}

impl View {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let running = Running { threads: self.threads, quiet: self.quiet, json: false };
        running.run(|console| {
            let source = self.reading.read(&self.data, Select::By(&self.selecting), &Whole::verb("view"))?;
            let ledger = facts::tell(console, &source);
            let n_rows = source.table.n_rows();
            let sampled =
                if self.reading.time.is_some() { None } else { sampled(&source, &self.reading.gaps)? };
            let (source, ledger) = match sampled {
                None => (source, ledger),
                Some(few) => {
                    let ledger = Ledger::of(few.table.dataset());
                    (few, ledger)
                }
            };
            let server = Server::new(self.port).map_err(|e| Failure::work("the server", e))?;
            let mut session = Session {
                view: self,
                running: running.clone(),
                source: &source,
                ledger: &ledger,
                n_rows,
                pages: VecDeque::new(),
                n_pages: 0,
            };
            self.serve(console, &server, &mut session)
        })
    }

    fn serve(&self, console: Console, server: &Server, session: &mut Session<'_>) -> Result<(), Failure> {
        let address = server.address();
        super::print(&address)?;
        if !self.no_open
            && let Err(error) = open::that_detached(&address)
        {
            console.warn(&format!("no browser could be opened ({error}); open the address above yourself"));
        }
        console.say("serving the report on this machine; Ctrl-C or closing the page ends it");
        let _part = interrupt::begin("serving the report", interrupt::Ends::AtStep, None);
        // Until the page was there once, it may take as long as it likes.
        let (mut heard, mut patience) = (Instant::now(), Duration::MAX);
        while !interrupt::asked() && heard.elapsed() < patience {
            let Some(asked) = server.next(LOOK).map_err(|e| Failure::work("the server", e))? else {
                continue;
            };
            patience = if asked.what == "closed" { CLOSING } else { SILENCE };
            session.answer(asked);
            heard = Instant::now();
        }
        if !interrupt::asked() {
            console.say("the page was closed");
        }
        Ok(())
    }
}

/// What is served, and the pages so far.
struct Session<'a> {
    view: &'a View,
    running: Running,
    source: &'a Source,
    ledger: &'a Ledger,
    /// Rows of the whole table.
    n_rows: usize,
    /// Pages by number.
    pages: VecDeque<(usize, String)>,
    n_pages: usize,
}

impl Session<'_> {
    fn answer(&mut self, asked: Asked) {
        const SHELL: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                             frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
        const PAGE: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                            base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts \
                            allow-downloads allow-modals";
        let html = "text/html; charset=utf-8";
        let reply = match asked.what.as_str() {
            "" => Reply { policy: SHELL, ..Reply::of(html, include_str!("../view/shell.html")) },
            "shell.css" => Reply::of("text/css; charset=utf-8", include_str!("../view/shell.css")),
            "shell.js" => Reply::of("text/javascript; charset=utf-8", include_str!("../view/shell.js")),
            "offered" => Reply::of("application/json", self.offered().to_string()),
            "compute" => Reply::of("application/json", self.compute(&asked).to_string()),
            "alive" | "closed" => Reply::of("text/plain", ""),
            other => match self.page(other) {
                Some(page) => Reply { policy: PAGE, ..Reply::of(html, page) },
                None => Reply::refused(404, "there is no such page, or newer ones took its place"),
            },
        };
        asked.answer(reply);
    }

    fn page(&self, what: &str) -> Option<&str> {
        let number: usize = what.strip_prefix("page/")?.parse().ok()?;
        self.pages.iter().find(|(own, _)| *own == number).map(|(_, page)| page.as_str())
    }

    /// What can be chosen, each with its words.
    fn offered(&self) -> serde_json::Value {
        let table = &self.source.table;
        let families = Family::ALL.iter().filter(|family| self.suits(**family));
        let model: Vec<[&str; 2]> = families.map(|family| [family.name(), family.words()]).collect();
        let rotation: Vec<[String; 2]> =
            RotationName::value_variants().iter().map(|r| [r.name(), r.name()]).collect();
        let columns = table.columns_aside().into_iter().filter(|&j| {
            let mut levels: Vec<String> = (0..table.n_rows()).map(|i| table.text(i, j)).collect();
            levels.sort_unstable();
            levels.dedup();
            (2..=MOST_LEVELS).contains(&levels.len())
        });
        let of_text = columns.map(|j| table.column_names()[j].clone());
        let of_numbers = table.dataset().column_names().iter().cloned();
        let mut color = vec![[String::new(), "by itself".to_owned()], ["none".to_owned(), "none".to_owned()]];
        color.extend(of_text.chain(of_numbers).map(|name| [name.clone(), name]));
        json!({
            "name": self.source.name,
            "model": model,
            "rotation": rotation,
            "color": color,
            "now": { "model": self.usual().name() },
            "sample": self.sample(),
        })
    }

    /// Whether the table can be looked at by a model of this family: rows are what it takes them for. Which columns are in
    /// which view is not asked for here.
    fn suits(&self, family: Family) -> bool {
        !family.has_views() && family.arrangement() == self.usual().arrangement()
    }

    /// What is fitted first.
    fn usual(&self) -> Family {
        match &self.view.reading {
            reading if reading.curve.is_some() => Family::Fpca,
            reading if reading.time.is_some() => Family::Dfm,
            _ => Family::Ppca,
        }
    }

    /// What is said of a table that is not looked at whole.
    fn sample(&self) -> Option<String> {
        let seen = self.source.table.n_rows();
        (seen < self.n_rows).then(|| {
            format!(
                "A sample: {seen} rows spread evenly over the {} of the table. `covary report` takes all of them.",
                count(self.n_rows, "row")
            )
        })
    }

    /// The page of what was asked for, or what is wrong with it.
    fn compute(&mut self, asked: &Asked) -> serde_json::Value {
        let started = Instant::now();
        let made = self.report(asked).and_then(|report| {
            let console = Console::new(true);
            report.page(console, (self.source, self.ledger))
        });
        match made {
            Err(failure) => json!({ "error": failure.words() }),
            Ok((html, facts)) => {
                self.n_pages += 1;
                self.pages.push_back((self.n_pages, html));
                while self.pages.len() > KEPT {
                    self.pages.pop_front();
                }
                let model = facts.model.map(|model| {
                    format!("{}, {}; ", model.family.words(), count(model.n_components, "component"))
                });
                let words = format!("{}{:.1} s.", model.unwrap_or_default(), started.elapsed().as_secs_f64());
                json!({ "page": format!("page/{}", self.n_pages), "words": words })
            }
        }
    }

    /// The report that was asked for.
    fn report(&self, asked: &Asked) -> Result<Report, Failure> {
        let unknown = |what: &str, value: &str| Failure::Call(format!("there is no {what} `{value}`"));
        let whole = |name: &str| match asked.value(name).map(|value| (value, value.parse::<usize>())) {
            None => Ok(None),
            Some((_, Ok(n @ 1..))) => Ok(Some(n)),
            Some((value, _)) => {
                Err(Failure::Call(format!("{name}: give a whole number from 1, not `{value}`")))
            }
        };
        let model = match asked.value("model") {
            None => None,
            Some(name) => {
                let found = name.parse::<Family>().ok().filter(|family| self.suits(*family));
                Some(found.ok_or_else(|| unknown("model", name))?)
            }
        };
        let rotation = match asked.value("rotation") {
            None => RotationName::None,
            Some(name) => RotationName::from_str(name, false).map_err(|_| unknown("rotation", name))?,
        };
        let components = whole("components")?.map(Components::Number);
        let axes = (whole("x")?.unwrap_or(1), whole("y")?.unwrap_or(2));
        if axes.0 == axes.1 {
            return Err(Failure::Call(format!(
                "both axes are component {}; give two different ones",
                axes.0
            )));
        }
        // As `covary report` without flags, which imputes by the default, until something is asked for.
        let plain = components.is_none() && model == Some(Family::Ppca);
        Ok(Report::of(
            self.view.data.clone(),
            (model.filter(|_| !plain), rotation),
            (asked.value("color").map(str::to_owned), axes),
            Fitting { components, seed: self.view.seed, ..Fitting::default() },
            (self.view.reading.clone(), self.view.selecting.clone(), self.running.clone()),
        ))
    }
}

/// Rows spread evenly over a large table, as a table of their own; `None` if all are few enough.
fn sampled(source: &Source, gaps: &[String]) -> Result<Option<Source>, Failure> {
    let table = &source.table;
    let most = (CELLS / table.dataset().n_columns().max(1)).clamp(FEWEST_ROWS, MOST_ROWS);
    if table.n_rows() <= most {
        return Ok(None);
    }
    let rows = table.dataset().spread_rows(most);
    let mut sheet = Sheet::default();
    for (j, name) in table.column_names().iter().enumerate() {
        sheet.push(name.clone(), Cells::Text(rows.iter().map(|&i| table.text(i, j)).collect()));
    }
    let failed = |e: io::Error| Failure::of_file(&source.name, &e);
    let mut text = Vec::new();
    sheet.write(Format::CSV, &mut text).map_err(failed)?;
    // The columns that take part are those of the whole table, and gaps are written in the same words.
    let columns = Columns::Listed(table.dataset().column_names().to_vec());
    let choice = ColumnChoice { columns, ..ColumnChoice::default() };
    let options = ReadOptions { header: Some(true), choice, gaps: gaps.to_vec(), ..ReadOptions::default() };
    let table = io::read(Input::Stream(text.as_slice()), Format::CSV, &options).map_err(failed)?;
    Ok(Some(Source { name: source.name.clone(), table, gaps: io::Gaps::new(gaps), ..*source }))
}
