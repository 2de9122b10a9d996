//! `covary fit`: learn a model from a table and keep it in a file.

use super::said_written;
use crate::args::{Family, Fitting, Reading, RotationName, Running, Selecting};
use crate::facts;
use crate::failure::Failure;
use crate::input::Select;
use crate::learn::learn;
use crate::output::{Output, check_places};
use crate::voice::Voice;
use clap::Args;
use covary::io::model_file;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Learn a model of how the columns of a table move together.
///
/// A linear-Gaussian model is fitted to the observed cells alone: no row is dropped, no gap is
/// guessed first. The model file holds everything later verbs need, and opens without the data.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary fit examples/wine_gaps.csv -o wine.covary
  covary fit examples/wine.csv --model fa --components 3 --rotation varimax -o factors.covary
  covary fit examples/wine_gaps.csv --model bpca -o bayesian.covary")]
pub(crate) struct Fit {
    /// Table to learn from: CSV, TSV (.gz too), Parquet, Arrow or NumPy; `-` reads standard
    /// input.
    #[arg(verbatim_doc_comment)]
    data: PathBuf,

    /// Where the model goes; standard output if not given. Written beside its target and
    /// renamed, so a failure leaves an older file as it was.
    #[arg(short, long, verbatim_doc_comment, value_name = "MODEL")]
    output: Option<PathBuf>,

    /// What to fit.
    #[arg(long, verbatim_doc_comment, value_enum, default_value_t = Family::Ppca)]
    model: Family,

    /// How the loadings are turned for the reader; scores turn with them.
    #[arg(long, verbatim_doc_comment, value_enum, default_value_t = RotationName::None)]
    rotation: RotationName,

    /// Also check the model on hidden cells, as `covary impute` does, and keep what was found.
    #[arg(long, verbatim_doc_comment)]
    check: bool,

    #[command(flatten)]
    fitting: Fitting,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    selecting: Selecting,

    #[command(flatten)]
    running: Running,
}

impl Fit {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let outputs: Vec<&Path> = self.output.as_deref().into_iter().collect();
        let places: Vec<&Path> = outputs.iter().copied().chain(self.fitting.checkpoint.as_deref()).collect();
        check_places(&[&self.data], &places)?;
        if self.running.json && outputs.is_empty() {
            return Err(Failure::Call(
                "--json takes standard output; name a file for the model with -o".to_owned(),
            ));
        }
        self.running.run(|voice| {
            let output = Output::open(self.output.as_deref())?;
            output.refuse_terminal("a model")?;
            let found = self.fit(voice, &output)?;
            said_written(voice, &outputs);
            self.running.report(&found)
        })
    }

    fn fit(&self, voice: Voice, output: &Output) -> Result<Value, Failure> {
        let source = self.reading.read(&self.data, Select::By(&self.selecting))?;
        let (mut learned, ledger) = learn(voice, &source, self.model, &self.fitting, self.rotation)?;
        if self.check {
            learned.check(voice, &source.name, &self.fitting)?;
        }
        output.write(|out| model_file::write(&learned.saved, out))?;
        Ok(self.running.findings(|| {
            json!({
                "data": facts::as_json(&source, &ledger),
                "model": facts::model_as_json(&learned.saved),
            })
        }))
    }
}
