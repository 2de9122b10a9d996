//! `covary impute`: fill the gaps and say how certain each number is.

use super::{Asked, Pending, ask_or_go_through, said_written};
use crate::args::{
    Fitting, Judging, Reading, RotationName, Running, Selecting, Target, at_least_one, probability, shift,
    with_families,
};
use crate::blocks;
use crate::classes;
use crate::console::{Console, count, names, said_table};
use crate::facts;
use crate::failure::Failure;
use crate::input::{self, Select, Source, Whole};
use crate::learn::{self, Narrator};
use crate::output::{Output, check_places, format_of, is_device};
use clap::Args;
use covary::data::Ledger;
use covary::family::{Family, ForFilling, Request};
use covary::filling::FarCell;
use covary::io::{Format, Rounding};
use covary::learned::{Learned, Rows};
use covary::model::{ColumnMap, Imputed};
use covary::{Dataset, Error};
use covary_report::scale::{self, rounded};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The model that hidden cells choose.
const AUTO: &str = "auto";

/// What filled values may be.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Bounds {
    Auto,
    None,
}

/// Filled cells listed on the screen.
const LISTED: usize = 12;

/// Impute the missing values of a table, each with a prediction interval.
///
/// Correlated columns are informative about one another: a model is fitted to the observed cells
/// (no row is dropped, and no value is imputed beforehand), and every missing value is replaced by
/// its mean given the observed cells of its row. Prediction intervals are calibrated: some observed
/// cells are hidden in the way the missing values lie, the model is fitted again without them, and
/// the intervals become as wide as its errors there require.
///
/// The result is then cross-validated on further hidden cells of the same table: the error, the
/// improvement over column means, and the coverage of the intervals are reported.
///
/// Observed cells are copied byte for byte. Columns that are not numeric are passed through, and so
/// is a column without a name.
// Help breaks its lines where they are typed here: clap's own wrapping costs a dependency.
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = with_families("\
Examples:
  covary impute examples/wine_gaps.csv -o filled.csv
  covary impute examples/wine_gaps.csv --model bpca -o filled.csv
  covary impute examples/wine_gaps.csv --model fa --components 3 --cells cells.csv -o filled.csv
  covary impute examples/wine_gaps.csv --model wine.covary --draws 5 -o filled.csv"))]
pub(crate) struct Impute {
    /// Table to impute: CSV, TSV (.gz too), Excel, ODS, Parquet, Arrow or NumPy; `-` reads standard
    /// input. Empty cells, NA, NaN and null are missing values.
    #[arg(verbatim_doc_comment)]
    data: PathBuf,

    /// The model: `auto`, a family, or a model file. `auto`, the default, is a Gaussian with a full
    /// covariance (components if columns are very many); cross-validation on hidden cells chooses
    /// how strongly it is regularized and whether a nonlinear correction is added. The families are
    /// listed at the end (`covary fit --help` has a sentence on each). With a model file nothing is
    /// fitted. With options of a fit, such as --components, the default is ppca; with --time it is
    /// dfm, with --curve fpca.
    #[arg(long, verbatim_doc_comment, value_name = "auto|NAME|MODEL")]
    model: Option<String>,

    /// Column of classes, by name or number: each row is imputed by the model of its class, and a row
    /// without a class by all of them, weighted by their posterior probabilities. Rows of other
    /// classes enter the model of a class with a weight chosen by cross-validation, so that small
    /// classes borrow from the others. For pca, ppca (the default then), fa and gaussian.
    #[arg(long = "target", verbatim_doc_comment, value_name = "COLUMN")]
    classes: Option<String>,

    /// Level of the prediction intervals: the probability that one covers the true value.
    #[arg(long, verbatim_doc_comment, value_name = "LEVEL", default_value_t = 0.95, value_parser = probability)]
    interval: f64,

    /// Do not calibrate the intervals on hidden cells: use those of the model. Saves a few fits.
    #[arg(long, verbatim_doc_comment)]
    no_calibrate: bool,

    /// Bounds of imputed values, intervals and draws: `auto` infers them from the observed values of
    /// a column (not negative, at most 1 or 100, whole numbers, the codes of a short scale); `none`
    /// has none.
    #[arg(long, verbatim_doc_comment, value_enum, value_name = "auto|none", default_value_t = Bounds::Auto)]
    bounds: Bounds,

    /// Sensitivity analysis for values not missing at random: add this many standard deviations of the
    /// column to its imputed values, such as `income=0.5`; once for each column. The data cannot tell
    /// the right shift: try several, and see for which the conclusions hold.
    #[arg(long, verbatim_doc_comment, value_name = "COLUMN=SD", value_parser = shift, allow_hyphen_values = true)]
    shift: Vec<(String, f64)>,

    #[command(flatten)]
    judging: Judging,

    /// Also write a table of the imputed cells: row (from 1), column, imputed value, predictive mean
    /// and standard deviation (before --bounds), lower and upper end of the interval.
    #[arg(long, verbatim_doc_comment, value_name = "CELLS.csv")]
    cells: Option<PathBuf>,

    /// Multiple imputation: also write this many tables whose missing values are random draws from
    /// their joint predictive distribution, numbered filled-1.csv, filled-2.csv, …
    #[arg(long, verbatim_doc_comment, value_name = "M", value_parser = at_least_one, requires = "output")]
    draws: Option<usize>,

    /// Let --draws replace existing files.
    #[arg(long, verbatim_doc_comment, requires = "draws")]
    overwrite: bool,

    /// Do not cross-validate the result on hidden cells; saves about the time of a fit.
    #[arg(long, verbatim_doc_comment)]
    no_check: bool,

    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    fitting: Fitting,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    selecting: Selecting,

    #[command(flatten)]
    running: Running,
}

/// What fills the gaps, and how well.
struct Filler {
    /// Whether the model was fitted to this very table.
    rows: Rows,
    source: Source,
    learned: Learned,
    column_map: ColumnMap,
    ledger: Ledger,
    /// Cells far from what the rest of their rows say, and the table without them if they count as missing.
    far: Vec<FarCell>,
    without: Option<Dataset>,
}

impl Impute {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        if self.draws.is_some() && self.target.output.as_deref().is_some_and(input::is_pipe) {
            return Err(Failure::Call("--draws writes several tables; name a file with -o".to_owned()));
        }
        let draws = self.draw_paths();
        self.check_draws(&draws)?;
        let outputs: Vec<&Path> = [&self.target.output, &self.cells]
            .into_iter()
            .flatten()
            .chain(&draws)
            .map(PathBuf::as_path)
            .collect();
        let standard_output = Path::new("-");
        // Without -o the table goes to standard output.
        let table = self.target.output.is_none().then_some(standard_output);
        let checkpoint = self.fitting.checkpoint.as_deref();
        let all: Vec<&Path> = table.into_iter().chain(outputs.iter().copied()).chain(checkpoint).collect();
        // Where the model is chosen, the family is where that begins.
        let family = if self.model() == AUTO { Some(Family::Gaussian) } else { self.model().parse().ok() };
        let model = PathBuf::from(self.model());
        let inputs: Vec<&Path> =
            std::iter::once(self.data.as_path()).chain(family.is_none().then_some(model.as_path())).collect();
        check_places(&inputs, &all)?;
        self.running.run(|console| {
            let filled = match family {
                Some(family) => self.fill_by_fit(console, family, &draws),
                None => self.fill_by_model(console, &model, &draws),
            }?;
            said_written(console, &outputs);
            self.running.report(&filled)
        })
    }

    /// What was asked for: options of a fit are those of components, unless a model is named.
    fn model(&self) -> &str {
        let by_default = if self.classes.is_some() { Family::Ppca.name() } else { AUTO };
        let default = || self.fitting.implied(&self.reading).map_or(by_default, Family::name);
        self.model.as_deref().unwrap_or_else(default)
    }

    fn fill_by_fit(&self, console: Console, family: Family, draws: &[PathBuf]) -> Result<Value, Failure> {
        let choose = self.model() == AUTO;
        if choose && !self.fitting.is_default() {
            return Err(Failure::Call(
                "hidden cells choose the model and how it is fitted; name one, such as --model ppca, or leave out --components, --mixtures, --view, --inference, --standardize, --option, --checkpoint, --max-iter and --tol"
                    .to_owned(),
            ));
        }
        self.reading.check_time(family)?;
        let filling =
            ForFilling { choose, calibrate: !self.no_calibrate, limits: self.bounds == Bounds::Auto };
        let request = Request { filling: Some(filling), ..self.fitting.request(family, RotationName::None)? };
        let mut selecting = self.fitting.selecting(&self.selecting)?.into_owned();
        if let Some(target) = &self.classes {
            if choose {
                return Err(Failure::Call(format!(
                    "--target fits a model to each class; name which: --model {}",
                    Family::names(Family::has_classes)
                )));
            }
            classes::check(&request)?;
            selecting.id.push(target.clone());
        }
        let outputs = Outputs::open(self, draws)?;
        let whole = Whole::new(
            "`covary impute` without a model file",
            "use `covary fit` and then `covary impute --model FILE`, which go through it block by block",
        );
        let source = self.reading.read(&self.data, Select::By(&selecting), &whole)?;
        // A complete table has nothing to fill: any model leaves it as it is.
        if source.table.dataset().is_complete() {
            return self.pass_through(console, &source, &outputs);
        }
        let ledger = facts::tell(console, &source);
        let classes =
            self.classes.as_deref().map(|target| classes::of_column(&source, target)).transpose()?;
        let request = Request { views: self.fitting.views(&source)?, classes, ..request };
        let (far, mut without) = facts::judge(console, &source, &ledger, self.judging.wild)?;
        if let Some(classes) = &request.classes {
            let table = without.unwrap_or_else(|| source.table.dataset().clone());
            let known = table.of_classes(classes.of_rows.clone());
            without = Some(known.map_err(|e| Failure::of_table(&source.name, e))?);
        }
        let narrator = Narrator::new(console, (&source, &ledger), &request, &self.fitting)
            .learning_from(without.as_ref());
        let (mut learned, column_map) = narrator.learn()?;
        if let Some(lent) = learned.mixture().ok().and_then(|fit| fit.classes.as_ref()?.lent) {
            console.say(&format!("hidden cells chose that a row counts {lent} in the classes it is not of"));
        }
        learned.fill(Rows::Training).map_err(|e| Failure::of_model(&source.name, e))?;
        if !self.no_check {
            let failed = |e| Failure::of_table(&source.name, e);
            let table = without.as_ref().unwrap_or(source.table.dataset());
            narrator.check(&mut learned, &*column_map.dataset(table).map_err(failed)?)?;
        }
        drop(narrator);
        let rows = Rows::Training;
        let mut filler = Filler { rows, source, learned, column_map, ledger, far, without };
        self.move_cells(console, &mut filler)?;
        self.write(console, &filler, &outputs)
    }

    fn fill_by_model(&self, console: Console, model: &Path, draws: &[PathBuf]) -> Result<Value, Failure> {
        if !model.exists() && !input::is_pipe(model) {
            return Err(Failure::Call(format!(
                "--model `{}` is neither auto, {} nor a model file",
                model.display(),
                Family::names(|_| true)
            )));
        }
        if !self.selecting.is_default() {
            return Err(Failure::Call(
                "the model says which columns take part; leave out --columns, --exclude and --id".to_owned(),
            ));
        }
        if self.classes.is_some() {
            return Err(Failure::Call(
                "a model file knows which column names its classes; leave out --target".to_owned(),
            ));
        }
        if !self.fitting.is_default() {
            return Err(Failure::Call(
                "a model file is not fitted again; leave out --components, --mixtures, --view, --inference, --standardize, --option, --checkpoint, --max-iter and --tol"
                    .to_owned(),
            ));
        }
        let outputs = Outputs::open(self, draws)?;
        let given = [
            (!draws.is_empty(), "--draws"),
            (outputs.cells.is_some(), "--cells"),
            (!self.shift.is_empty(), "--shift"),
        ];
        let flag = given.iter().find(|(given, _)| *given).map(|(_, flag)| *flag).or(self.judging.again());
        let asked = match ask_or_go_through(model, &self.data, &self.reading, flag.map(Whole::option))? {
            Pending::Table(asked) => *asked,
            Pending::Blocks(learned, blocks) => {
                let format = self.target.format(blocks.format)?;
                return blocks::fill(console, (&learned, model), &blocks, (format, &outputs.table));
            }
        };
        let ledger = facts::tell(console, &asked.source);
        let (far, mut without) = facts::judge(console, &asked.source, &ledger, self.judging.wild)?;
        asked.warn_of_constants(console);
        let mut data = asked.data()?;
        let learned = &asked.learned;
        if let Some(known) = classes::of_model(&asked.source, learned) {
            let table = without.unwrap_or_else(|| asked.source.table.dataset().clone());
            without = Some(table.of_classes(known.clone()).map_err(|e| asked.refused(e))?);
            data = Cow::Owned(data.into_owned().of_classes(known).map_err(|e| asked.refused(e))?);
        }
        learned.fill(Rows::New).map_err(|e| asked.refused(e))?;
        console.say(&format!(
            "filling by {}, learned from {}",
            learned.described(),
            count(learned.training.n_rows, "row"),
        ));
        if let Ok(fit) = learned.linear() {
            learn::warn_of_trends(console, &fit.model, &data);
        }
        let mut check = None;
        if !self.no_check && !data.is_complete() {
            check = learn::check_as_it_is(console, learned, &data, self.fitting.seed)
                .map_err(|e| asked.refused(e))?;
        }
        drop(data);
        let Asked { mut learned, source, column_map, .. } = asked;
        learned.check = check;
        let mut filler = Filler { rows: Rows::New, source, learned, column_map, ledger, far, without };
        self.move_cells(console, &mut filler)?;
        self.write(console, &filler, &outputs)
    }

    /// Shifts filled cells as was asked for, after the check, which knows nothing of that.
    fn move_cells(&self, console: Console, filler: &mut Filler) -> Result<(), Failure> {
        if self.shift.is_empty() {
            return Ok(());
        }
        filler.learned.shift(&self.shift).map_err(|e| Failure::Call(format!("--shift: {e}")))?;
        let words = |(name, by): &(String, f64)| format!("`{name}` by {by}");
        console.say(&format!(
            "imputed values are shifted, in standard deviations of the column: {}",
            self.shift.iter().map(words).collect::<Vec<_>>().join(", ")
        ));
        Ok(())
    }

    fn pass_through(&self, console: Console, source: &Source, outputs: &Outputs) -> Result<Value, Failure> {
        let ledger = facts::tell(console, source);
        console.say("no gaps: the table passes through");
        let format = self.target.format(source.format)?;
        for output in std::iter::once(&outputs.table).chain(&outputs.draws) {
            let values = source.table.dataset().values();
            let left = output.write(|out| source.table.write_filled(values, format, out))?;
            facts::left_out(console, &left, "the result");
        }
        if let Some(cells) = &outputs.cells {
            let cells_format = self.cells_format()?;
            cells.write(|out| source.table.no_cells().write(cells_format, out))?;
        }
        Ok(json!({ "data": facts::as_json(source, &ledger), "n_filled": 0, "n_gaps_left": 0 }))
    }

    fn cells_format(&self) -> Result<Format, Failure> {
        format_of(self.cells.as_deref(), Format::CSV, "leave the ending out for .csv")
    }

    /// The names of draws are made here, so that nobody has seen what stands under them.
    fn check_draws(&self, draws: &[PathBuf]) -> Result<(), Failure> {
        if let Some(output) = self.target.output.as_deref().filter(|p| !draws.is_empty() && is_device(p)) {
            return Err(Failure::Call(format!(
                "--draws writes several tables, and {} is no file; name one with -o",
                output.display()
            )));
        }
        match draws.iter().find(|path| !self.overwrite && path.symlink_metadata().is_ok()) {
            Some(path) => Err(Failure::Call(format!(
                "{} is there already and --draws would write over it; remove it, name another file with -o, or say --overwrite",
                path.display()
            ))),
            None => Ok(()),
        }
    }

    fn write(&self, console: Console, filler: &Filler, outputs: &Outputs) -> Result<Value, Failure> {
        let Filler { rows, source, learned, column_map, ledger, far, without } = filler;
        let (table, wide) = (&source.table, source.table.dataset());
        let failed = |e: Error| Failure::of_table(&source.name, e);
        let format = self.target.format(source.format)?;
        if !format.layout.is_text() || format.gzip {
            outputs.table.refuse_terminal(format.layout.name())?;
        }
        let seen = without.as_ref().unwrap_or(wide);
        let progress = console.working(&format!("filling {}", count(wide.n_gaps(), "gap")));
        let filled = learned.impute(*rows, column_map, seen, wide).map_err(failed)?;
        drop(progress);
        let target = self.target.output.as_deref().map_or("standard output".to_owned(), input::name_of);
        let left = outputs.table.write(|out| table.write_filled(filled.values(), format, out))?;
        facts::left_out(console, &left, &target);
        if let Some(cells) = &outputs.cells {
            let cells_format = self.cells_format()?;
            let sheet =
                table.cells_sheet(&filled, self.interval).map_err(|e| Failure::of_file(&source.name, &e))?;
            cells.write(|out| sheet.write(cells_format, out))?;
        }
        if !outputs.draws.is_empty() {
            let data = column_map.dataset(seen).map_err(failed)?;
            let draws = learned.gap_draws(*rows, &data).map_err(|e| match e {
                Error::NoDensity { .. } => Failure::Call(
                    "--draws needs a density of rows, which independent components are not; leave it out, or give --model ppca or fa".to_owned(),
                ),
                e => failed(e),
            })?;
            for (k, output) in outputs.draws.iter().enumerate() {
                let drawn = draws.draw(k, self.fitting.seed).map_err(failed)?;
                let values = column_map.values(&drawn, wide).map_err(failed)?;
                output.write(|out| table.write_filled(&values, format, out))?;
            }
        }
        if !format.layout.is_text() {
            tell_rounding(
                console,
                &table.rounding(filled.values()).map_err(|e| Failure::of_file(&source.name, &e))?,
            );
        }
        let left_gaps = ledger.n_gaps - filled.cells().len();
        if left_gaps > 0 {
            console.warn(&format!("{} left, in columns observed once or never", count(left_gaps, "gap")));
        }
        if !filled.cells().is_empty() {
            console.say(&self.listing(wide, &filled).map_err(failed)?);
        }
        Ok(self.running.findings(|| {
            json!({
                "data": facts::as_json(source, ledger),
                "wild_cells": facts::far_as_json(source, far),
                "n_filled": filled.cells().len(),
                "n_gaps_left": left_gaps,
                "model": facts::model_as_json(learned),
            })
        }))
    }

    /// `filled.csv` gives `filled-1.csv`, …, numbered with as many digits as the last.
    fn draw_paths(&self) -> Vec<PathBuf> {
        let (Some(m), Some(output)) = (self.draws, self.target.output.as_deref()) else { return Vec::new() };
        let name = output.file_name().unwrap_or_default().to_string_lossy();
        let at = name.find('.').filter(|&at| at > 0).unwrap_or(name.len());
        let width = m.to_string().len();
        (1..=m)
            .map(|k| output.with_file_name(format!("{}-{k:0width$}{}", &name[..at], &name[at..])))
            .collect()
    }

    fn listing(&self, data: &Dataset, filled: &Imputed) -> Result<String, Error> {
        let percent = format!("{:.4}", 100.0 * self.interval);
        let percent = percent.trim_end_matches('0').trim_end_matches('.');
        let header = ["row", "column", "filled", "sd", &format!("{percent} % from"), "to"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for cell in filled.cells().iter().take(LISTED) {
            let (lower, upper) = cell.interval(self.interval)?;
            let mut row = vec![(cell.row + 1).to_string(), data.column_names()[cell.column].clone()];
            row.extend([cell.value(), cell.sd, lower, upper].map(|v| rounded(v, cell.sd)));
            rows.push(row);
        }
        let more = match filled.cells().len().saturating_sub(LISTED) {
            0 => String::new(),
            more if self.cells.is_some() => format!("  … and {} more\n", scale::count(more)),
            more => format!("  … and {} more; --cells FILE writes them all\n", scale::count(more)),
        };
        Ok(format!("\n{}\n{more}", said_table(&rows, &[1])))
    }
}

/// Says what became of numbers in columns of whole numbers.
fn tell_rounding(console: Console, rounding: &Rounding) {
    if rounding.n_cells > 0 {
        let columns: Vec<&str> = rounding.columns.iter().map(String::as_str).collect();
        console.say(&format!(
            "columns of whole numbers or decimals stay such, so {} rounded: {}",
            if rounding.n_cells == 1 {
                "1 filled value is".to_owned()
            } else {
                format!("{} filled values are", rounding.n_cells)
            },
            names(&columns)
        ));
    }
    for (column, own, wide) in &rounding.widened {
        console.say(&format!("`{column}` leaves as {wide}: {own} has no room for its filled values"));
    }
}

/// Opened before the work, so that a folder that cannot be written fails at once.
struct Outputs {
    table: Output,
    cells: Option<Output>,
    draws: Vec<Output>,
}

impl Outputs {
    fn open(impute: &Impute, draws: &[PathBuf]) -> Result<Self, Failure> {
        impute.target.format(Format::CSV)?;
        impute.cells_format()?;
        Ok(Self {
            table: impute.target.open(Format::CSV, impute.running.json)?,
            cells: impute.cells.as_deref().map(|path| Output::open(Some(path))).transpose()?,
            draws: draws.iter().map(|path| Output::open(Some(path))).collect::<Result<_, _>>()?,
        })
    }
}
