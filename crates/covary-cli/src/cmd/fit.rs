//! `covary fit`: learn a model from a table and keep it in a file.

use super::said_written;
use crate::args::{Family, Fitting, Kind, Reading, RotationName, Running, Selecting};
use crate::console::Console;
use crate::facts;
use crate::failure::Failure;
use crate::ica;
use crate::input::Select;
use crate::learn::learn;
use crate::mixture;
use crate::output::{Output, check_places};
use clap::Args;
use covary::io::model_file;
use covary::learn::MixtureFamily;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Learn a model of how the columns of a table move together.
///
/// A linear-Gaussian model is fitted to the observed cells alone: no row is dropped, no gap is
/// guessed first. The model file holds everything later verbs need, and opens without the data.
///
/// --model ica looks for independent sources behind the columns instead: `covary transform`
/// gives them. They must not be Gaussian, which is said where they seem to be, and only
/// --inference noisy takes gaps.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  covary fit examples/wine_gaps.csv -o wine.covary
  covary fit examples/wine.csv --model fa --components 3 --rotation varimax -o factors.covary
  covary fit examples/wine_gaps.csv --model bpca -o bayesian.covary
  covary fit examples/wine_gaps.csv --model mppca --mixtures 3 -o groups.covary
  covary fit examples/wine_gaps.csv --model pcca --view x=1:5 --view y=6:13 -o views.covary
  covary fit examples/wine.csv --model ica --components 4 -o sources.covary")]
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

    /// Column of classes, by name or number: a model is fitted to the rows of each class, and
    /// `covary score` tells how probable each class is for a row. Rows without a class are left out.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMN")]
    target: Option<String>,

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

/// More than one model.
#[derive(Clone, Copy)]
enum Several<'a> {
    Mixture(MixtureFamily),
    /// One for each class that a column names.
    Classes(covary::learn::Family, &'a str),
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
        self.running.run(|console| {
            let output = Output::open(self.output.as_deref())?;
            output.refuse_terminal("a model")?;
            let found = self.fit(console, &output)?;
            said_written(console, &outputs);
            self.running.report(&found)
        })
    }

    /// What is fitted where it is more than one model.
    fn several(&self) -> Result<Option<Several<'_>>, Failure> {
        let call = |why: &str| Err(Failure::Call(why.to_owned()));
        let several = match (self.model.kind(), self.target.as_deref()) {
            (Kind::One(_), None) if self.fitting.mixtures.is_some() => {
                return call("--mixtures goes with --model mppca, mfa or gmm");
            }
            (Kind::One(_) | Kind::Ica, None) => return Ok(None),
            (Kind::Mixture(_) | Kind::Ica, Some(_)) => {
                return call(
                    "--target fits one model for each class; leave it out, or give --model ppca or fa",
                );
            }
            (Kind::One(_), Some(_)) if self.fitting.mixtures.is_some() => {
                return call("--target has one model for each class; leave out --mixtures");
            }
            (Kind::Mixture(family), None) => Several::Mixture(family),
            (Kind::One(family), Some(target)) => Several::Classes(family, target),
        };
        if self.rotation != RotationName::None {
            return call("--rotation goes with one model");
        }
        if self.check && matches!(several, Several::Classes(..)) {
            return call("--check goes with one model or a mixture, not with --target");
        }
        Ok(Some(several))
    }

    fn fit_several(&self, console: Console, output: &Output, several: Several<'_>) -> Result<Value, Failure> {
        self.fitting.check_views(None)?;
        let mut selecting = self.selecting.clone();
        if let Several::Classes(_, target) = several {
            selecting.id.push(target.to_owned());
        }
        let source = self.reading.read(&self.data, Select::By(&selecting))?;
        let (learned, ledger) = match several {
            Several::Mixture(family) => {
                let (mut learned, ledger) = mixture::learn(console, &source, family, &self.fitting)?;
                if self.check {
                    mixture::check(console, &source, &mut learned, self.fitting.seed)?;
                }
                (learned, ledger)
            }
            Several::Classes(family, target) => {
                let request = self.fitting.request(family, self.rotation);
                mixture::learn_by_class(console, &source, (family, target), &request)?
            }
        };
        output.write(|out| model_file::write_mixture(&learned.saved, out))?;
        Ok(self.running.findings(|| {
            json!({
                "data": facts::as_json(&source, &ledger),
                "model": facts::parsed(&learned.saved.to_json()),
            })
        }))
    }

    fn fit_sources(&self, console: Console, output: &Output) -> Result<Value, Failure> {
        self.fitting.check_views(None)?;
        if self.check || self.rotation != RotationName::None {
            return Err(Failure::Call(
                "--check and --rotation go with a linear-Gaussian model; independent components have no density to check by, and their directions are their own"
                    .to_owned(),
            ));
        }
        let source = self.reading.read(&self.data, Select::By(&self.selecting))?;
        let (learned, ledger) = ica::learn(console, &source, &self.fitting)?;
        output.write(|out| model_file::write_sources(&learned.saved, out))?;
        Ok(self.running.findings(|| {
            json!({
                "data": facts::as_json(&source, &ledger),
                "model": facts::parsed(&learned.saved.to_json()),
            })
        }))
    }

    fn fit(&self, console: Console, output: &Output) -> Result<Value, Failure> {
        if let Some(several) = self.several()? {
            return self.fit_several(console, output, several);
        }
        let Kind::One(family) = self.model.kind() else { return self.fit_sources(console, output) };
        self.fitting.check_views(Some(family))?;
        if family.has_views() && self.rotation != RotationName::None {
            return Err(Failure::Call(
                "--rotation would mix what views share with what is private to one; leave it out".to_owned(),
            ));
        }
        let source = self.reading.read(&self.data, Select::By(&*self.fitting.selecting(&self.selecting)?))?;
        let (mut learned, ledger) = learn(console, &source, family, &self.fitting, self.rotation)?;
        if self.check {
            learned.check(console, &source.name, &self.fitting)?;
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
