//! `covary sample`: new rows from a model.

use super::said_written;
use crate::args::{Running, Target, at_least_one};
use crate::facts;
use crate::failure::Failure;
use crate::input;
use crate::output::check_places;
use clap::Args;
use covary::io::model_file::{Opened, SavedClasses};
use covary::io::{Cells, Format, Sheet};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::json;
use std::path::{Path, PathBuf};

/// New rows drawn from a model: what tables like the one it learned from look like.
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

impl Sample {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let outputs: Vec<&Path> = self.target.output.as_deref().into_iter().collect();
        check_places(&[&self.model], &outputs)?;
        self.running.run(|voice| {
            let format = self.target.format(Format::CSV)?;
            let output = self.target.open(format, self.running.json)?;
            let opened = input::opened(&self.model)?;
            if self
                .rows
                .checked_mul(opened.columns().len())
                .is_none_or(|cells| cells > isize::MAX as usize / 64)
            {
                return Err(Failure::Call(format!("--rows {} is more than memory can hold", self.rows)));
            }
            let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
            let (rows, classes) = match &opened {
                Opened::Model(_) | Opened::Sources(_) => {
                    let density =
                        opened.of_new_rows().map_err(|e| Failure::work(&input::name_of(&self.model), e))?;
                    (density.sample(self.rows, &mut rng), None)
                }
                Opened::Mixture(saved) => {
                    let (rows, drawn) = saved.mixture.sample_labelled(self.rows, &mut rng);
                    let class = |classes: &SavedClasses| {
                        let names = drawn.iter().map(|&k| classes.names[k].clone()).collect();
                        (classes.target.clone(), names)
                    };
                    (rows, saved.classes.as_ref().map(class))
                }
            };
            let mut sheet = Sheet::default();
            sheet.push_matrix(opened.columns().iter().cloned(), &rows);
            if let Some((target, names)) = classes {
                sheet.push(target, Cells::Text(names));
            }
            for constant in opened.constants() {
                sheet.push(constant.name.clone(), Cells::Numbers(vec![constant.value; self.rows]));
            }
            let left = output.write(|out| sheet.write(format, out))?;
            facts::left_out(voice, &left, "the result");
            said_written(voice, &outputs);
            self.running.report(&json!({ "n_rows": self.rows, "seed": self.seed }))
        })
    }
}
