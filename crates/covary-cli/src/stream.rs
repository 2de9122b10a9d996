//! Fits to standard input that may be larger than memory, or have no end.
//!
//! What comes is kept while memory may hold it. If it ends before, it is a table like any other. Beyond that the rows kept are fitted
//! and let go, and those that follow move the model, block by block. So that others can use the model meanwhile, it is written now and then:
//! what is written last depends on the rows alone.

use crate::blocks::Teller;
use crate::console::{Console, count};
use crate::facts;
use crate::failure::Failure;
use crate::input::Source;
use crate::interrupt;
use crate::output::Output;
use covary::Error;
use covary::family::Request;
use covary::infer::Step;
use covary::io::{Format, Gaps, Gathered, RowStream, amount, model_file};
use covary::learn::Watch;
use covary::learned::Learned;
use covary_report::words::{ending, objective};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// A model that is written now and then is written this long after the last time, or later.
const EVERY: Duration = Duration::from_secs(5);

/// Standard input, of which nothing has been read.
pub(crate) struct Stream {
    pub(crate) name: String,
    pub(crate) format: Format,
    pub(crate) rows: RowStream,
    pub(crate) limit: u64,
    pub(crate) gaps: Gaps,
}

/// What came of it.
pub(crate) enum Came {
    /// All of it, within the memory it may take.
    Table(Box<Source>),
    /// More, of which the model was learned, and what is known of the rows as JSON.
    Model(Box<Learned>, Value),
}

/// Fits that nobody is told of.
struct Silent;

impl Watch for Silent {
    fn choosing(&self, _: usize, _: usize) -> ControlFlow<()> {
        interrupt::flow()
    }

    fn fitting(&self, _: &Step) -> ControlFlow<()> {
        interrupt::flow()
    }
}

/// The file of a model that is written more than once.
struct Meanwhile<'a> {
    console: Console,
    output: &'a Output,
    since: Instant,
    n_written: usize,
}

impl Meanwhile<'_> {
    /// Whether it is time to write the model, where it goes to a file: what else it may go to takes it once.
    fn is_due(&self) -> bool {
        matches!(self.output, Output::File(_)) && self.since.elapsed() >= EVERY
    }

    fn write(&mut self, learned: &Learned) -> Result<(), Failure> {
        self.output.write(|out| model_file::write(learned, out))?;
        if self.n_written == 0 {
            let rows = count(learned.training.n_rows, "row");
            self.console
                .say(&format!("wrote the model of the first {rows}; it is written again as more come"));
        }
        self.n_written += 1;
        self.since = Instant::now();
        Ok(())
    }
}

impl Stream {
    /// Reads to the end, which Ctrl-C may be. The model of more rows than memory holds is learned as they come, unless an
    /// option, `again`, needs to see them again.
    pub(crate) fn go_through(
        mut self,
        console: Console,
        request: &Request,
        output: &Output,
        (check, again): (bool, Option<&str>),
    ) -> Result<Came, Failure> {
        let mut meanwhile = Meanwhile { console, output, since: Instant::now(), n_written: 0 };
        let whole = self.gather(request, &mut meanwhile)?;
        if interrupt::asked() && self.rows.n_bytes() == 0 {
            return Err(Failure::Interrupted);
        }
        let Self { name, format, rows, limit, gaps } = self;
        let failed = |e: covary::io::Error| Failure::of_file(&name, &e);
        let source = |name: String, table| {
            Box::new(Source { name, format: format.written(), table, transposed: false, gaps: gaps.clone() })
        };
        if whole {
            tell_end(console);
            return Ok(Came::Table(source(name.clone(), rows.into_table().map_err(failed)?)));
        }
        let unfit = |e: Error| Failure::of_request(&name, e, &request.views);
        request.method_of_stream().map_err(unfit)?;
        if let Some(flag) = again {
            return Err(Failure::work(
                &name,
                format!(
                    "{flag} goes with rows that can be gone through again; leave it out, write them to a file, or allow more memory: --max-memory SIZE"
                ),
            ));
        }
        let (first, later) = rows.begin().map_err(failed)?;
        let (n_first, block_rows) = (first.n_rows(), later.block_rows());
        console.say(&format!(
            "{name}: more than {} of memory may hold (--max-memory), so gone through once, as it comes: the first {} are fitted, and those that follow move the model, {block} at a time; that comes close to the most likely model of all rows, and is not it",
            amount(limit),
            count(n_first, "row"),
            block = count(block_rows, "row"),
        ));
        if check {
            console
                .warn("not checked: rows that come once cannot be fitted again without some of their cells");
        }
        let source = source(format!("{name}, its first rows"), first);
        facts::tell(console, &source);
        let teller = Teller::new(console, source.table.dataset().facts(), "components");
        let n_columns = source.table.dataset().n_columns();
        let mut stream = request.learn_stream(source.table.dataset(), &teller).map_err(unfit)?;
        drop(source);
        let chosen_on = teller.chosen_on();
        let progress = console.steps("learning from the rows that follow");
        if matches!(output, Output::File(_)) && !interrupt::asked() {
            meanwhile.write(&stream.learned().map_err(unfit)?)?;
        }
        let mut failure = None;
        let ended = later.for_blocks(|block| {
            stream.take(block)?;
            if meanwhile.is_due() && !interrupt::asked() {
                let written = meanwhile.write(&stream.learned()?);
                failure = written.err();
            }
            // What it is does not matter: the failure is told.
            if failure.is_some() { Err(Error::Interrupted.into()) } else { Ok(()) }
        });
        drop(progress);
        if let Some(failure) = failure {
            return Err(failure);
        }
        ended.map_err(failed)?;
        tell_end(console);
        let learned = stream.learned().map_err(unfit)?;
        tell_learned(console, &learned, stream.n_blocks());
        for column in stream.left_out() {
            console.warn(&format!(
                "`{column}` had at most one value in the first {} and has more in later ones: it is not in the model; shuffle the rows, or allow more memory (--max-memory SIZE)",
                count(n_first, "row")
            ));
        }
        for column in stream.no_constants() {
            console.warn(&format!(
                "`{column}` is constant in the first {} and not in later ones: it is not in the model; shuffle the rows, allow more memory (--max-memory SIZE) or leave the column out",
                count(n_first, "row")
            ));
        }
        let found = json!({
            "source": name,
            "n_rows": stream.n_rows(),
            "n_columns": n_columns,
            "n_gaps": stream.n_gaps(),
            "by_stream": {
                "first_rows": n_first,
                "block_rows": block_rows,
                "n_blocks": stream.n_blocks(),
                "rows_sampled_for_the_number_of_components": chosen_on,
            },
        });
        Ok(Came::Model(Box::new(learned), found))
    }

    /// Keeps what comes; whether that is all. Where it comes slowly, the rows so far are fitted now and then, each time that there are
    /// twice as many.
    fn gather(&mut self, request: &Request, meanwhile: &mut Meanwhile<'_>) -> Result<bool, Failure> {
        let _progress = meanwhile.console.steps(&format!("reading {}", self.name));
        let (mut fitted, mut told) = (0, false);
        loop {
            match self.rows.gather().map_err(|e| Failure::of_file(&self.name, &e))? {
                Gathered::Whole => return Ok(true),
                Gathered::Beyond => return Ok(false),
                Gathered::Waiting => {}
            }
            let bytes = self.rows.n_bytes();
            // The table of a text takes three times its memory, beside the text.
            let fits = bytes as u64 <= self.limit / 4;
            if !meanwhile.is_due()
                || bytes == 0
                || bytes < 2 * fitted
                || !fits
                || request.method_by_passes().is_err()
            {
                continue;
            }
            fitted = bytes;
            let learned = self.rows.so_far().map_err(|e| e.to_string()).and_then(|table| {
                request.learn_observed(table.dataset(), &Silent).map_err(|e| e.to_string())
            });
            match learned {
                _ if interrupt::asked() => {}
                Ok(learned) => meanwhile.write(&learned)?,
                Err(why) if !told => {
                    told = true;
                    meanwhile.console.warn(&format!("no model of the rows so far: {why}"));
                }
                Err(_) => {}
            }
        }
    }
}

/// Says that Ctrl-C was the end of what came in. The next will be the first of what is done with it.
fn tell_end(console: Console) {
    if interrupt::asked() {
        interrupt::answered();
        console.warn("interrupted: the rows that came before are all there is");
    }
}

fn tell_learned(console: Console, learned: &Learned, n_blocks: usize) {
    let end = learned.ending();
    let standardized = if learned.standardized() { ", columns standardized" } else { "" };
    let about = end
        .objective
        .map_or_else(String::new, |at| format!(", {} about {:.2}", objective(at.kind), at.value));
    console.say(&format!(
        "fitted {}{standardized}, by {}, {}: {} in {}{about}",
        learned.described(),
        learned.method.name,
        ending(&end),
        count(learned.training.n_rows, "row"),
        count(n_blocks, "block")
    ));
}
