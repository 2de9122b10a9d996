//! `covary fit`: learn a model from a table and keep it in a file.

use super::said_written;
use crate::args::{
    Fitting, Judging, Reading, RotationName, Running, Selecting, at_least_one, families, with_families,
};
use crate::blocks;
use crate::classes;
use crate::console::{Console, count};
use crate::facts;
use crate::failure::Failure;
use crate::input::{self, Found, Select, Source, Whole};
use crate::learn::Narrator;
use crate::output::Output;
use crate::stream::Came;
use clap::Args;
use covary::Error;
use covary::data::{Ledger, MatrixKind};
use covary::family::{Family, Request};
use covary::io::model_file;
use covary::learned::Learned;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Fit a latent-variable model to a table and write it to a file.
///
/// The model is fitted to the observed cells by their likelihood: no row is dropped, and no value
/// is imputed beforehand. The model file has all that the other commands need; they do not need
/// the table it was fitted to.
///
/// --model ica estimates independent components, which `covary transform` writes. They must not
/// be Gaussian; a warning names those that seem to be. Only --inference noisy accepts missing
/// values.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = with_families("\
Examples:
  covary fit examples/wine_gaps.csv -o wine.covary
  covary fit examples/wine.csv --model fa --components 3 --rotation varimax -o factors.covary
  covary fit examples/wine_gaps.csv --model bpca -o bayesian.covary
  covary fit examples/wine_gaps.csv --model mppca --mixtures 3 -o groups.covary
  covary fit examples/wine_gaps.csv --model pcca --view x=1:5 --view y=6:13 -o views.covary
  covary fit examples/wine.csv --model ica --components 4 -o sources.covary
  covary fit examples/months.csv --model dfm --time month --season 12 -o months.covary"))]
pub(crate) struct Fit {
    /// Table to learn from: CSV, TSV (.gz too), Parquet, Arrow or NumPy; `-` reads standard
    /// input. A table beyond --max-memory is gone through block by block (pca, ppca, fa, bpca,
    /// gaussian, mppca, mfa and gmm, from CSV, TSV, Parquet or .npy), and so is a folder of Parquet
    /// files.
    /// With --memory, standard input that is larger, or has no end, is learned from as it comes
    /// (pca, ppca and fa by em, from CSV or TSV): an estimate close to the most likely model.
    /// MODEL is then written every few seconds, and Ctrl-C ends the input.
    #[arg(verbatim_doc_comment)]
    data: PathBuf,

    /// Where the model goes; standard output if not given. Written beside its target and
    /// renamed, so a failure leaves an older file as it was.
    #[arg(short, long, verbatim_doc_comment, value_name = "MODEL")]
    output: Option<PathBuf>,

    /// What to fit.
    #[arg(long, verbatim_doc_comment, value_name = "FAMILY", value_parser = families(), default_value = "ppca")]
    model: Family,

    /// Column of classes, by name or number: a model is fitted to the rows of each class, and
    /// `covary score` tells how probable each class is for a row. Rows without a class are left out.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMN")]
    target: Option<String>,

    /// DATA is not a table of observations but their correlations or covariances (divisor N - 1),
    /// columns by columns; a lower or upper triangle will do. For fa: what the factors are and how
    /// well they fit. Scores, densities and imputed values need the observations themselves.
    #[arg(long, verbatim_doc_comment, value_name = "KIND", value_parser = ["correlation", "covariance"], requires = "rows", conflicts_with_all = ["target", "check", "view", "checkpoint"])]
    matrix: Option<String>,

    /// How many observations the matrix was computed from.
    #[arg(long, verbatim_doc_comment, value_name = "N", value_parser = at_least_one, requires = "matrix")]
    rows: Option<usize>,

    /// Rotation of the loadings; scores are rotated with them.
    #[arg(long, verbatim_doc_comment, value_enum, default_value_t = RotationName::None)]
    rotation: RotationName,

    /// Also cross-validate the model on hidden cells, as `covary impute` does, and keep the result.
    #[arg(long, verbatim_doc_comment)]
    check: bool,

    #[command(flatten)]
    judging: Judging,

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
        let output = self.output.as_deref();
        self.running.check_one_output("model", &self.data, output, self.fitting.checkpoint.as_deref())?;
        self.running.run(|console| {
            let target = Output::open(output)?;
            target.refuse_terminal("a model")?;
            let found = self.fit(console, &target)?;
            said_written(console, output.as_slice());
            self.running.report(&found)
        })
    }

    fn fit(&self, console: Console, output: &Output) -> Result<Value, Failure> {
        self.reading.check_time(self.model)?;
        let request = self.fitting.request(self.model, self.rotation)?;
        let mut selecting = self.fitting.selecting(&self.selecting)?.into_owned();
        if let Some(target) = &self.target {
            classes::check(&request)?;
            if self.check {
                return Err(Failure::Call(
                    "--check goes with one model or a mixture, not with --target".to_owned(),
                ));
            }
            selecting.id.push(target.clone());
        }
        if self.check && !self.model.has_check() {
            return Err(Failure::Call(
                "--check goes with a linear-Gaussian model; independent components have no density to check by"
                    .to_owned(),
            ));
        }
        let one_table = self.matrix.is_none() && self.target.is_none();
        let whole = self.needs_memory(&request)?;
        let stream = if one_table { self.reading.stream(&self.data, Select::By(&selecting))? } else { None };
        let source = if let Some(stream) = stream {
            let again =
                if self.fitting.checkpoint.is_some() { Some("--checkpoint") } else { self.judging.again() };
            match stream.go_through(console, &request, output, (self.check, again))? {
                Came::Table(source) => *source,
                Came::Model(learned, found) => return self.written(output, &learned, &found),
            }
        } else if let Some(whole) = whole {
            self.reading.read(&self.data, Select::By(&selecting), &whole)?
        } else {
            match self.reading.read_or_go_through(&self.data, Select::By(&selecting))? {
                Found::Table(source) => *source,
                Found::Blocks(blocks) => {
                    let (learned, found) =
                        blocks::learn(console, &blocks, &request, &self.fitting, self.check)?;
                    return self.written(output, &learned, &found);
                }
            }
        };
        if let Some(kind) = self.matrix.as_deref().and_then(MatrixKind::from_name) {
            return self.fit_matrix(console, output, (&request, &source), kind);
        }
        let classes = self.target.as_deref().map(|target| classes::of_column(&source, target)).transpose()?;
        let ledger = facts::tell(console, &source);
        if let Some(classes) = &classes {
            let unlabeled = classes.of_rows.iter().filter(|label| label.is_none()).count();
            if unlabeled > 0 {
                console.say(&format!("without a class, so not learned from: {}", count(unlabeled, "row")));
            }
        }
        let request = Request { views: self.fitting.views(&source)?, classes, ..request };
        let (far, without) = facts::judge(console, &source, &ledger, self.judging.wild)?;
        let table = without.as_ref().unwrap_or(source.table.dataset());
        let narrator = Narrator::new(console, (&source, &ledger), &request, &self.fitting)
            .learning_from(without.as_ref());
        let (mut learned, map) = narrator.learn()?;
        if self.check {
            let data = map.dataset(table).map_err(|e| Failure::of_table(&source.name, e))?;
            narrator.check(&mut learned, &data)?;
        }
        output.write(|out| model_file::write(&learned, out))?;
        Ok(self.running.findings(|| {
            json!({
                "data": facts::as_json(&source, &ledger),
                "wild_cells": facts::far_as_json(&source, &far),
                "model": facts::model_as_json(&learned),
            })
        }))
    }

    /// What of the request needs the table in memory.
    fn needs_memory(&self, request: &Request) -> Result<Option<Whole>, Failure> {
        if self.matrix.is_some() {
            return Ok(Some(Whole::new("--matrix", "choose fewer columns")));
        }
        if self.target.is_some() {
            return Ok(Some(Whole::option("--target")));
        }
        match request.method_by_passes() {
            Ok(_) => Ok(self.judging.again().map(Whole::option)),
            Err(Error::NotInMemory { what, instead }) => Ok(Some(Whole::new(what, format!("use {instead}")))),
            Err(other) => Err(Failure::of_request(&input::name_of(&self.data), other, &[])),
        }
    }

    /// Writes a model of rows that were gone through, and what was found.
    fn written(&self, output: &Output, learned: &Learned, found: &Value) -> Result<Value, Failure> {
        output.write(|out| model_file::write(learned, out))?;
        Ok(self.running.findings(|| json!({ "data": found, "model": facts::model_as_json(learned) })))
    }

    fn fit_matrix(
        &self,
        console: Console,
        output: &Output,
        (request, source): (&Request, &Source),
        kind: MatrixKind,
    ) -> Result<Value, Failure> {
        let n_rows = self.rows.unwrap_or(0);
        let ledger = Ledger::of(source.table.dataset());
        let narrator = Narrator::new(console, (source, &ledger), request, &self.fitting);
        let learned = narrator.learn_matrix(kind, n_rows)?;
        output.write(|out| model_file::write(&learned, out))?;
        Ok(self.running.findings(|| {
            let data = json!({ "source": source.name, "matrix": kind.name(), "n_rows": n_rows });
            json!({ "data": data, "model": facts::model_as_json(&learned) })
        }))
    }
}
