//! Fits to tables that are gone through block by block, and answers about their rows.

use crate::args::Fitting;
use crate::checkpoint;
use crate::console::{Console, Progress, count, names};
use crate::facts;
use crate::failure::{Failure, note_words};
use crate::input::Blocks;
use crate::input::name_of;
use crate::interrupt;
use crate::learn::{tell_checked, tell_choice, tell_fitted};
use crate::output::Output;
use covary::data::{Facts, Ledger, block_rows};
use covary::family::{Choice, Family, Kind, Request};
use covary::infer::{ObjectiveKind, Rows, Step};
use covary::io::{Cells, Format, Sheet, amount};
use covary::learn::Watch;
use covary::learned::{Checked, Learned, Rows as AnyRows};
use covary::model::ColumnMap;
use covary::{Dataset, Error, Matrix};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Cells of the sample of rows that is looked at for oddities and that a check is made on.
const SAMPLE_CELLS: usize = 1 << 22;

/// Tells people what the library does with rows that it goes through.
pub(crate) struct Teller {
    console: Console,
    facts: Facts,
    /// What there may be several of, whose number is chosen.
    chosen: &'static str,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    progress: Option<Progress>,
    /// Of how many rows the number of components was chosen on.
    chosen_on: Option<usize>,
}

impl Teller {
    /// `chosen` is what there may be several of, whose number is chosen.
    pub(crate) fn new(console: Console, facts: Facts, chosen: &'static str) -> Self {
        Self { console, facts, chosen, state: Mutex::default() }
    }

    /// Of how many rows the number of components was chosen on, if it was.
    pub(crate) fn chosen_on(&self) -> Option<usize> {
        self.state().chosen_on
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for Teller {
    fn mapped(&self, map: &ColumnMap) {
        let name = |j: usize| self.facts.column_names()[j].as_str();
        let constants: Vec<&str> = map.constants.iter().map(|c| name(c.0)).collect();
        if !constants.is_empty() {
            self.console.say(&format!(
                "constant, so not in the model; gaps take the constant: {}",
                names(&constants)
            ));
        }
        let known = |j: &usize| map.columns.contains(j) || map.constants.iter().any(|c| c.0 == *j);
        let left: Vec<&str> = (0..self.facts.n_columns()).filter(|j| !known(j)).map(name).collect();
        if !left.is_empty() {
            self.console
                .warn(&format!("observed once or never, so not in the model; gaps stay: {}", names(&left)));
        }
    }

    fn sampled(&self, sampled: usize, rows: usize) {
        self.console.say(&format!(
            "the number of {} is chosen on {} of {rows}, spread evenly",
            self.chosen,
            count(sampled, "row")
        ));
        let mut state = self.state();
        state.chosen_on = Some(sampled);
        state.progress = Some(self.console.share(&format!("choosing the number of {}", self.chosen)));
    }

    fn choosing(&self, done: usize, total: usize) -> ControlFlow<()> {
        self.state().progress.as_ref().map_or_else(interrupt::flow, |progress| progress.done(done, total))
    }

    fn chosen(&self, choice: &Choice) {
        self.state().progress = None;
        tell_choice(self.console, choice);
        self.state().progress = Some(self.console.steps("fitting"));
    }

    fn fitting(&self, step: &Step) -> ControlFlow<()> {
        self.state().progress.as_ref().map_or_else(interrupt::flow, |progress| progress.step(step))
    }

    fn checking(&self, step: &Step) -> ControlFlow<()> {
        self.fitting(step)
    }

    fn fitted_by_passes(&self, learned: &Learned, _: &Choice) {
        self.state().progress = None;
        tell_fitted(self.console, learned);
    }

    fn checked(&self, checked: &Checked) {
        self.state().progress = None;
        tell_checked(self.console, checked);
    }
}

/// Learns the model of rows that are gone through; what was found is returned besides, as JSON.
pub(crate) fn learn(
    console: Console,
    blocks: &Blocks,
    request: &Request,
    fitting: &Fitting,
    check: bool,
) -> Result<(Learned, Value), Failure> {
    let failed = |e: Error| Failure::of_request(&blocks.name, e, &[]);
    request.method_by_passes().map_err(failed)?;
    let d = blocks.rows.column_names().len();
    tell(console, blocks);
    let facts = blocks.rows.facts().map_err(failed)?;
    let cells = (facts.n_rows() * facts.n_columns()) as f64;
    console.say(&format!(
        "{}: {}, {} of numbers, {} ({:.1} %)",
        blocks.name,
        count(facts.n_rows(), "row"),
        count(facts.n_columns(), "column"),
        count(facts.n_gaps(), "gap"),
        100.0 * facts.n_gaps() as f64 / cells
    ));
    let sample = sample(&blocks.rows, &facts).map_err(failed)?;
    for oddity in Ledger::of(&sample).oddities(&sample) {
        use covary::data::Oddity::{ConstantColumns, EmptyColumns, SingleColumns};
        if !matches!(oddity, ConstantColumns { .. } | SingleColumns { .. } | EmptyColumns { .. }) {
            console.warn(&format!("in a sample of {}: {oddity}", count(sample.n_rows(), "row")));
        }
    }
    if let Some(note) = blocks.rows.identifiers(&sample) {
        console.warn(&format!("in a sample of {}: {}", count(sample.n_rows(), "row"), note_words(&note)));
    }
    let n_sampled = sample.n_rows();
    let sample = check.then_some(sample);
    let is_mixture = request.family.kind() == Kind::Mixture;
    let chosen = if is_mixture { "components and models" } else { "components" };
    let teller = Teller::new(console, facts, chosen);
    let mut learned = match &fitting.checkpoint {
        None => request.learn_rows(&blocks.rows, &teller).map_err(failed)?,
        Some(path) => {
            let journal = checkpoint::journal(console, &blocks.rows, path)?;
            request.learn_rows(&journal, &teller).map_err(|e| checkpoint::refused(path, e, failed))?
        }
    };
    let maximized = learned.ending().objective.is_some_and(|at| at.kind == ObjectiveKind::LogLikelihood);
    if request.family == Family::Fa && maximized {
        console.say("the test of fit is left out: it needs the table in memory");
    }
    if let Some(sample) = sample {
        let columns: Vec<usize> =
            (0..d).filter(|&j| learned.columns.contains(&blocks.rows.column_names()[j])).collect();
        let data = sample.of_columns(&columns).map_err(failed)?;
        console.say(&format!(
            "the check is made on {} of {}",
            count(data.n_rows(), "row"),
            teller.facts.n_rows()
        ));
        teller.state().progress = Some(console.steps("checking on hidden cells"));
        request.check_observed(&mut learned, &data, &teller).map_err(failed)?;
    }
    console.say(&format!("gone through {} times", blocks.rows.n_passes()));
    let chosen_on = teller.chosen_on();
    let found = json!({
        "source": blocks.name,
        "n_rows": teller.facts.n_rows(),
        "n_columns": teller.facts.n_columns(),
        "n_gaps": teller.facts.n_gaps(),
        "by_blocks": {
            "block_rows": block_rows(learned.columns.len()),
            "n_passes": blocks.rows.n_passes(),
            "rows_sampled_for_oddities": n_sampled,
            "rows_sampled_for_the_number_of_components": chosen_on,
            "rows_sampled_for_the_check": check.then_some(n_sampled),
        },
    });
    Ok((learned, found))
}

/// Says that a table is gone through, and why.
fn tell(console: Console, blocks: &Blocks) {
    let why = match blocks.n_parts {
        Some(n) => format!("a folder of {}", count(n, "file")),
        None => format!("more than {} of memory may hold (--max-memory)", amount(blocks.limit)),
    };
    console.say(&format!(
        "{}: {why}, so gone through block by block, {} at a time",
        blocks.name,
        count(block_rows(blocks.rows.column_names().len()), "row")
    ));
}

/// Rows that a verb is asked about: the columns of the model, and where they are in the table.
pub(crate) struct Part<'a> {
    pub(crate) learned: &'a Learned,
    pub(crate) data: &'a Dataset,
    /// The same rows as they are in the table, and its columns of numbers.
    pub(crate) block: &'a Dataset,
    pub(crate) names: &'a [String],
    pub(crate) map: &'a ColumnMap,
}

/// What went wrong while rows were read and answers written, unless it is the destination that failed or cannot hold them.
fn of_source(error: &covary::io::Error, blocks: &Blocks, model: &str) -> Option<Failure> {
    use covary::io::Error::{CannotHold, LargeArchive, NotWritten, OnlyText, Request, Write};
    match error {
        Write(_) | OnlyText | CannotHold { .. } | NotWritten { .. } | LargeArchive { .. } => None,
        Request(
            error @ (Error::NotOneModel { .. } | Error::NoDensity { .. } | Error::NotAMixture { .. }),
        ) => Some(Failure::of_model(model, error.clone())),
        Request(error) => Some(Failure::of_table(&blocks.name, error.clone())),
        error => Some(Failure::of_file(&blocks.name, error)),
    }
}

/// What a verb says of the rows of a block, and of all of them at the end.
pub(crate) struct Answer<'a> {
    pub(crate) of_block: &'a (dyn Fn(&Part<'_>) -> Result<Sheet<'static>, Error> + Sync),
    pub(crate) of_all: &'a (dyn Fn(Console, &Facts) -> serde_json::Map<String, Value> + Sync),
}

impl Answer<'_> {
    /// Writes the answers about all rows, those of one block after the other.
    pub(crate) fn write(
        &self,
        console: Console,
        (learned, model): (&Learned, &Path),
        blocks: &Blocks,
        (format, output, bare): (Format, &Output, bool),
    ) -> Result<Value, Failure> {
        tell(console, blocks);
        if blocks.rows.n_aside() > 0 && !bare {
            return Err(Failure::Call(format!(
                "{} has {} outside the model, which cannot be passed through where rows are gone through block by block; say --bare to leave what is passed through out{}",
                blocks.name,
                count(blocks.rows.n_aside(), "column"),
                blocks.or_more_memory()
            )));
        }
        let failed = |e: Error| Failure::of_table(&blocks.name, e);
        let names = blocks.rows.column_names();
        let map = learned.column_map(names).map_err(failed)?;
        let answer = |block: &Dataset| {
            if interrupt::asked() {
                return Err(Error::Interrupted.into());
            }
            let data = &*map.dataset(block)?;
            Ok((self.of_block)(&Part { learned, data, block, names, map: &map })?)
        };
        let left = output.write_from(
            |out| blocks.rows.write_answers(format, out, answer),
            |e| of_source(e, blocks, &name_of(model)),
        )?;
        facts::left_out(console, &left, "the result");
        let facts = blocks.rows.facts().map_err(failed)?;
        let mut found = (self.of_all)(console, &facts);
        found.insert("source".to_owned(), json!(blocks.name));
        found.insert("n_rows".to_owned(), json!(facts.n_rows()));
        found.insert("n_gaps".to_owned(), json!(facts.n_gaps()));
        Ok(Value::Object(found))
    }
}

/// Writes the table with its gaps filled, block by block; how many were, and how many are left.
pub(crate) fn fill(
    console: Console,
    (learned, model): (&Learned, &Path),
    blocks: &Blocks,
    (format, output): (Format, &Output),
) -> Result<Value, Failure> {
    tell(console, blocks);
    let text = blocks.format.layout.is_text();
    if text && format.layout != blocks.format.layout {
        return Err(Failure::work(
            &blocks.name,
            format!(
                "text is filled block by block into text of the same kind; name such a file{}",
                blocks.or_more_memory()
            ),
        ));
    }
    if !text && blocks.rows.n_aside() > 0 {
        return Err(Failure::work(
            &blocks.name,
            format!(
                "Parquet is filled block by block if it has no columns but the model's; write it so{}",
                blocks.or_more_memory()
            ),
        ));
    }
    let failed = |e: Error| Failure::of_table(&blocks.name, e);
    let names = blocks.rows.column_names();
    let map = learned.column_map(names).map_err(failed)?;
    let model = name_of(model);
    let fill = learned.fill(AnyRows::New).map_err(|e| Failure::of_model(&model, e))?;
    let of_source = |e: &covary::io::Error| of_source(e, blocks, &model);
    let (mut n_filled, mut n_left) = (0, 0);
    let mut filled = |block: &Dataset| -> Result<Matrix, covary::io::Error> {
        if interrupt::asked() {
            return Err(Error::Interrupted.into());
        }
        let filled = map.imputed(fill.fill(&*map.dataset(block)?)?, block)?;
        n_filled += filled.cells().len();
        n_left += block.n_gaps() - filled.cells().len();
        Ok(filled.values().clone())
    };
    if text {
        output.write_from(|out| blocks.rows.write_filled_text(format, out, &mut filled), of_source)?;
    } else {
        let answer = |block: &Dataset| {
            let values = filled(block)?;
            let mut sheet = Sheet::default();
            for (j, name) in names.iter().enumerate() {
                sheet.push(name.clone(), Cells::Numbers(values.column(j)));
            }
            Ok(sheet)
        };
        let left = output.write_from(|out| blocks.rows.write_answers(format, out, answer), of_source)?;
        facts::left_out(console, &left, "the result");
    }
    let as_numbers = if text { "" } else { "columns leave as 64-bit numbers, and " };
    console.say(&format!(
        "filled {}; {as_numbers}neither wild cells nor the model were checked",
        count(n_filled, "gap")
    ));
    Ok(json!({
        "data": { "source": blocks.name, "n_rows": blocks.rows.facts().map_err(failed)?.n_rows() },
        "n_filled": n_filled,
        "n_gaps_left": n_left,
        "model": facts::model_as_json(learned),
    }))
}

fn sample(rows: &dyn Rows, facts: &Facts) -> Result<Dataset, Error> {
    rows.some_rows(&facts.spread_rows((SAMPLE_CELLS / facts.n_columns()).max(1)))
}
