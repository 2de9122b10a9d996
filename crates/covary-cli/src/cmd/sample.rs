//! `covary sample`: new rows from a model.

use super::said_written;
use crate::args::{Running, Target, at_least_one};
use crate::facts;
use crate::failure::Failure;
use crate::input;
use crate::interrupt;
use crate::output::check_places;
use clap::Args;
use covary::family::Arrangement;
use covary::io::{Cells, Error, Format, Sheet};
use covary::learned::Learned;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Simulate new rows from a model.
///
/// For a functional PCA: new curves, one in each row, whose columns are times.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary sample wine.covary --rows 5
  covary sample wine.covary --rows 1000 --seed 7 -o new.parquet")]
pub(crate) struct Sample {
    /// A model file, as `covary fit` writes it.
    #[arg(verbatim_doc_comment)]
    model: PathBuf,

    /// How many rows.
    #[arg(long, verbatim_doc_comment, value_name = "N", value_parser = at_least_one)]
    rows: usize,

    /// Seed of the draws.
    #[arg(long, verbatim_doc_comment, default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    running: Running,
}

/// Rows drawn and written at once, and cells of them.
const ROWS: usize = 1 << 16;
const CELLS: usize = 1 << 20;

impl Sample {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let outputs: Vec<&Path> = self.target.output.as_deref().into_iter().collect();
        check_places(&[&self.model], &outputs)?;
        self.running.run(|console| {
            let format = self.target.format(Format::CSV)?;
            let output = self.target.open(format, self.running.json)?;
            let learned = input::model(&self.model)?;
            let generator = || ChaCha8Rng::seed_from_u64(self.seed);
            // What has no rows refuses one as it would refuse many.
            learned
                .sample(1, &mut generator())
                .map_err(|e| Failure::of_model(&input::name_of(&self.model), e))?;
            let mut rng = generator();
            // Rows that follow each other are one sequence.
            let whole = learned.family.arrangement() == Arrangement::InTime;
            let at_once = if whole { self.rows } else { (CELLS / learned.columns.len()).clamp(1, ROWS) };
            let progress = console.share("drawing rows");
            let mut done = 0;
            // Rows are drawn one after the other, so that it does not matter where a part ends.
            let mut part = |rows: usize| {
                if interrupt::asked() {
                    return Err(covary::Error::Interrupted.into());
                }
                let sheet = part(&learned, rows, &mut rng)?;
                done += rows;
                let _ = progress.done(done, self.rows);
                Ok(sheet)
            };
            let left = output.write(|out| Sheet::write_parts(self.rows, at_once, format, out, &mut part))?;
            drop(progress);
            facts::left_out(console, &left, "the result");
            said_written(console, &outputs);
            self.running.report(&json!({ "n_rows": self.rows, "seed": self.seed }))
        })
    }
}

/// The next rows, with the columns that never varied.
fn part(learned: &Learned, n_rows: usize, rng: &mut ChaCha8Rng) -> Result<Sheet<'static>, Error> {
    let (rows, labels) = learned.sample(n_rows, rng)?;
    let mut sheet = Sheet::default();
    if let Some((axis, first)) = learned.time() {
        let times = (0..n_rows as i64).map(|t| axis.text(first.saturating_add(t))).collect();
        sheet.push(axis.name.clone(), Cells::Text(times));
    }
    for (j, name) in learned.sampled_columns().into_iter().enumerate() {
        sheet.push(name, Cells::Numbers(rows.column(j)));
    }
    let classes = learned.mixture().ok().and_then(|fit| fit.classes.as_ref());
    if let (Some(labels), Some(classes)) = (labels, classes) {
        let names = labels.iter().map(|&k| classes.names[k].clone()).collect();
        sheet.push(classes.target.clone(), Cells::Text(names));
    }
    for constant in &learned.constants {
        sheet.push(constant.name.clone(), Cells::Numbers(vec![constant.value; n_rows]));
    }
    Ok(sheet)
}
