//! Tables and models from paths.

use crate::args::{Reading, Selecting};
use crate::failure::Failure;
use crate::memory;
use crate::pipe::Pipe;
use crate::stream::Stream;
use covary::data::{PointColumns, TimeAxis};
use covary::family::{Arrangement, Family};
use covary::io::model_file;
use covary::io::{
    self, BlockFile, ColumnChoice, Columns, Error, Format, Gaps, Input, ReadOptions, RowStream, Table,
    TimeColumns, amount,
};
use covary::learned::Learned;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A table that was read, and where it came from.
pub(crate) struct Source {
    pub(crate) name: String,
    /// In which it leaves if no other is asked for.
    pub(crate) format: Format,
    pub(crate) table: Table,
    /// Whether the columns of the file are the rows of the table.
    pub(crate) transposed: bool,
    /// What means a gap, in columns of every kind.
    pub(crate) gaps: Gaps,
}

/// A table, in memory if it fits.
pub(crate) enum Found {
    Table(Box<Source>),
    Blocks(Box<Blocks>),
}

/// A table that is gone through block by block.
pub(crate) struct Blocks {
    pub(crate) name: String,
    /// The files of a folder; of a file that would not fit into memory there are none.
    pub(crate) n_parts: Option<usize>,
    pub(crate) format: Format,
    pub(crate) rows: BlockFile,
    /// The memory that it would not fit into.
    pub(crate) limit: u64,
}

impl Blocks {
    /// The last advice where something cannot be done block by block: a folder is never read as a whole.
    pub(crate) fn or_more_memory(&self) -> &'static str {
        if self.n_parts.is_some() { "" } else { ", or allow more memory: --max-memory SIZE" }
    }
}

/// What needs a table in memory, and what to do instead.
pub(crate) struct Whole {
    what: String,
    instead: String,
}

impl Whole {
    pub(crate) fn new(what: impl Into<String>, instead: impl Into<String>) -> Self {
        Self { what: what.into(), instead: instead.into() }
    }

    /// An option that rows can be gone through without.
    pub(crate) fn option(flag: &str) -> Self {
        Self::new(flag, "leave it out")
    }

    /// A verb that looks at all rows together.
    pub(crate) fn verb(name: &str) -> Self {
        Self::new(
            format!("`covary {name}`"),
            "use `covary fit` and, with its model, transform, score, reconstruct or impute, which go through it block by block",
        )
    }

    /// What it says of a table that is larger than memory.
    fn beyond(&self, name: &str, error: &Error) -> Failure {
        let Error::OverMemory { bytes, limit, is_text } = *error else {
            return Failure::of_file(name, error);
        };
        let why = format!(
            "takes {} of memory or more{}, and {} are allowed; {} needs the table in memory: {}, or raise the limit if the machine has more (--max-memory SIZE)",
            amount(bytes),
            if is_text { " (a text table takes three times its bytes)" } else { "" },
            amount(limit),
            self.what,
            self.instead
        );
        Failure::work(name, why)
    }

    /// What it says of a folder.
    fn folder(&self, name: &str) -> Failure {
        let why = format!(
            "is a folder, which is gone through block by block, and {} needs the table in memory: {}, or give one file",
            self.what, self.instead
        );
        Failure::work(name, why)
    }
}

/// A folder as a table.
pub(crate) struct Folder {
    /// Its Parquet files and those of the folders in it, in the order of their names.
    pub(crate) files: Vec<PathBuf>,
    /// Itself and the folders in it.
    pub(crate) folders: Vec<PathBuf>,
}

impl Folder {
    pub(crate) fn of(path: &Path) -> std::io::Result<Self> {
        let mut folder = Self { files: Vec::new(), folders: Vec::new() };
        folder.add(path)?;
        Ok(folder)
    }

    /// Whether a file of this name in one of the folders is a part of the table.
    pub(crate) fn is_part(path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "parquet")
    }

    fn add(&mut self, path: &Path) -> std::io::Result<()> {
        self.folders.push(path.to_owned());
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
        entries.sort();
        for entry in entries {
            if entry.is_dir() {
                self.add(&entry)?;
            } else if Self::is_part(&entry) {
                self.files.push(entry);
            }
        }
        Ok(())
    }
}

/// The files of a folder, of which there is one or more.
fn parts(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let name = name_of(path);
    let files = Folder::of(path).map_err(|e| Failure::of_file(&name, &Error::Read(e)))?.files;
    if files.is_empty() {
        let why = "the folder has no file *.parquet; give a file, or a folder of Parquet files";
        return Err(Failure::work(&name, why));
    }
    Ok(files)
}

/// Standard input or output.
pub(crate) fn is_pipe(path: &Path) -> bool {
    path == Path::new("-")
}

/// What a path is called in messages.
pub(crate) fn name_of(path: &Path) -> String {
    if is_pipe(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Who says which columns take part.
#[derive(Clone, Copy)]
pub(crate) enum Select<'a> {
    By(&'a Selecting),
    Model(&'a Learned),
    /// These columns of a model.
    Some(&'a [String]),
}

impl Select<'_> {
    /// The time that a model lives in, if it has one.
    fn axis(self) -> Option<TimeAxis> {
        let Self::Model(learned) = self else { return None };
        learned.time().map(|(axis, _)| axis.clone())
    }

    /// The columns of curves and times of a model of a long table.
    fn points(self) -> Option<PointColumns> {
        let Self::Model(learned) = self else { return None };
        learned.functional().ok()?.long().cloned()
    }

    fn choice(self) -> ColumnChoice {
        match self {
            Self::By(selecting) => ColumnChoice {
                columns: if selecting.columns.is_empty() {
                    Columns::Numbers
                } else {
                    Columns::Listed(selecting.columns.clone())
                },
                exclude: selecting.exclude.clone(),
                id: selecting.id.clone(),
            },
            Self::Some(needed) => {
                let columns = Columns::OfModel { needed: needed.to_vec(), welcome: Vec::new() };
                ColumnChoice { columns, ..ColumnChoice::default() }
            }
            Self::Model(learned) => {
                let welcome = learned.constants.iter().map(|c| c.name.clone()).collect();
                let columns = Columns::OfModel { needed: learned.columns.clone(), welcome };
                ColumnChoice { columns, ..ColumnChoice::default() }
            }
        }
    }
}

impl Reading {
    /// Refuses columns of times and curves for a model that knows none.
    pub(crate) fn check_time(&self, family: Family) -> Result<(), Failure> {
        let of = |rows: Arrangement| Family::names(|family| family.arrangement() == rows);
        let call = |why: String| Err(Failure::Call(why));
        match (family.arrangement(), &self.time, &self.curve) {
            (Arrangement::Curves, Some(time), None) => {
                call(format!("--time {time} goes with --curve COLUMN, which tells the curves apart"))
            }
            (Arrangement::Exchangeable | Arrangement::InTime, _, Some(_)) => {
                call(format!("--curve goes with --model {}, not with {family}", of(Arrangement::Curves)))
            }
            (Arrangement::Exchangeable, Some(_), None) => call(format!(
                "--time goes with --model {} or {}, not with {family}; --id sets a column aside",
                of(Arrangement::InTime),
                of(Arrangement::Curves)
            )),
            _ => Ok(()),
        }
    }

    /// The columns of curves and times of a long table, as asked for or as the model has them.
    fn points(&self, select: Select<'_>) -> Result<Option<PointColumns>, Failure> {
        let own = select.points();
        let said = |given: &Option<String>, own: fn(&PointColumns) -> &String, of: &Option<PointColumns>| {
            given.clone().or_else(|| of.as_ref().map(|columns| own(columns).clone()))
        };
        let Some(curve) = said(&self.curve, |c| &c.curve, &own) else { return Ok(None) };
        let Some(time) = said(&self.time, |c| &c.time, &own) else {
            return Err(Failure::Call(format!(
                "--curve {curve} goes with --time COLUMN: when its points were observed"
            )));
        };
        Ok(Some(PointColumns { curve, time }))
    }

    /// The table at `path`, which `whole` needs in memory.
    pub(crate) fn read(&self, path: &Path, select: Select<'_>, whole: &Whole) -> Result<Source, Failure> {
        if path.is_dir() {
            parts(path)?;
            return Err(whole.folder(&name_of(path)));
        }
        self.attempt(path, select)?.map_err(|e| whole.beyond(&name_of(path), &e))
    }

    /// The table at `path`, or that it takes more memory than it may.
    pub(crate) fn read_or_go_through(&self, path: &Path, select: Select<'_>) -> Result<Found, Failure> {
        if let Some(whole) = self.needs_memory(path)? {
            return Ok(Found::Table(Box::new(self.read(path, select, &whole)?)));
        }
        if path.is_dir() {
            return self.go_through(path, select, &parts(path)?);
        }
        match self.attempt(path, select)? {
            Ok(source) => Ok(Found::Table(Box::new(source))),
            Err(Error::OverMemory { .. }) => self.go_through(path, select, &[path.to_owned()]),
            Err(e) => Err(Failure::of_file(&name_of(path), &e)),
        }
    }

    /// Standard input that is text, if it was said how much memory it may take: what is more than that can be learned from as it
    /// comes. `None` of what has to be read as a whole.
    pub(crate) fn stream(&self, path: &Path, select: Select<'_>) -> Result<Option<Stream>, Failure> {
        let format = self.format_of(path)?;
        let whole = self.transpose || self.time.is_some() || self.curve.is_some() || self.group.is_some();
        let (Some(limit), true) = (self.max_memory, is_pipe(path) && format.layout.is_text() && !whole)
        else {
            return Ok(None);
        };
        let name = name_of(path);
        let rows = RowStream::new(Pipe::open(), format, &self.options(select.choice()));
        let rows = rows.map_err(|e| Failure::of_file(&name, &e))?;
        Ok(Some(Stream { name, format, rows, limit, gaps: Gaps::new(&self.gaps) }))
    }

    /// What of the file, and of the way it is read, needs it in memory.
    fn needs_memory(&self, path: &Path) -> Result<Option<Whole>, Failure> {
        use covary::io::Layout::{Csv, Npy, Parquet, Tsv};
        let format = self.format_of(path)?;
        let (layout, gzip) = (format.layout, if format.gzip { "gzipped " } else { "" });
        let in_blocks =
            path.is_dir() || matches!(layout, Csv | Tsv) || (matches!(layout, Npy | Parquet) && !format.gzip);
        Ok(if is_pipe(path) {
            Some(Whole::new("standard input, which comes once,", "write it to a file"))
        } else if self.transpose {
            Some(Whole::new("--transpose", "write the table with its observations as rows"))
        } else if in_blocks {
            None
        } else {
            let what = format!("the format {gzip}{}", layout.name());
            Some(Whole::new(what, "write the table as .npy, .parquet or .csv"))
        })
    }

    fn go_through(&self, path: &Path, select: Select<'_>, files: &[PathBuf]) -> Result<Found, Failure> {
        let failed = |path: &Path, e: Error| Failure::of_file(&name_of(path), &e);
        let open = |path: &PathBuf| {
            let file = File::open(path).map_err(|e| failed(path, Error::Read(e)))?;
            Ok((name_of(path), file))
        };
        let format = self.format_of(&files[0])?;
        let opened = files.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let options = self.options(select.choice());
        let limit = options.max_memory.unwrap_or(u64::MAX);
        let rows = BlockFile::open_named(opened, format, &options).map_err(|e| failed(path, e))?;
        let name = name_of(path);
        let n_parts = path.is_dir().then_some(files.len());
        Ok(Found::Blocks(Box::new(Blocks { name, n_parts, format, rows, limit })))
    }

    fn format_of(&self, path: &Path) -> Result<Format, Failure> {
        match &self.format {
            Some(word) => Format::from_name(word).map_err(|e| Failure::of_format("--format", &e)),
            None => Ok(Format::of_file(&path.to_string_lossy()).unwrap_or(Format::CSV)),
        }
    }

    fn options(&self, choice: ColumnChoice) -> ReadOptions {
        ReadOptions {
            choice,
            gaps: self.gaps.clone(),
            delimiter: self.delimiter,
            decimal_comma: self.decimal_comma,
            header: if self.header { Some(true) } else { self.no_header.then_some(false) },
            skip: self.skip,
            encoding: self.encoding.clone(),
            sheet: self.sheet.clone(),
            transpose: self.transpose,
            array: self.array.clone(),
            max_memory: Some(self.max_memory.unwrap_or_else(memory::default_limit)),
        }
    }

    fn attempt(&self, path: &Path, select: Select<'_>) -> Result<Result<Source, Error>, Failure> {
        let name = name_of(path);
        let format = self.format_of(path)?;
        let failed = |e: Error| Failure::of_file(&name, &e);
        let input = if is_pipe(path) {
            Input::Stream(std::io::stdin().lock())
        } else {
            Input::File(File::open(path).map_err(|e| failed(Error::Read(e)))?)
        };
        let (axis, points) = (select.axis(), self.points(select)?);
        let own_time = self.time.as_ref().filter(|_| points.is_none());
        let time = own_time.or(axis.as_ref().map(|axis| &axis.name));
        let sequences = self.group.as_ref().or(axis.as_ref().and_then(|axis| axis.sequences.as_ref()));
        if let (Some(group), None) = (&self.group, time) {
            return Err(Failure::Call(format!(
                "--group {group} goes with --time COLUMN: when rows happened"
            )));
        }
        let mut choice = select.choice();
        choice.id.extend(time.into_iter().chain(sequences).cloned());
        choice.id.extend(points.iter().flat_map(|points| [points.curve.clone(), points.time.clone()]));
        if let (Some(value), Select::By(_)) = (&self.value, select) {
            choice.columns = Columns::Listed(vec![value.clone()]);
        }
        let gaps = Gaps::new(&self.gaps);
        let mut table = match io::read(input, format, &self.options(choice)) {
            Ok(table) => table,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(time) = time {
            let sequences = sequences.map(String::as_str);
            let columns = TimeColumns { time, sequences, steps: axis.as_ref().map(|axis| axis.steps) };
            table = table.in_time(&columns, &gaps).map_err(failed)?;
        }
        if let Some(points) = points {
            let names = table.dataset().column_names();
            if names.len() > 1 && self.curve.is_some() {
                return Err(Failure::Call(format!(
                    "points of curves have one value each; say which column: --value {} (or {})",
                    names[0],
                    names[1..].join(", ")
                )));
            }
            table = table.of_points(&points, &gaps).map_err(failed)?;
        }
        Ok(Ok(Source { name, format: format.written(), table, transposed: self.transpose, gaps }))
    }
}

/// The model at `path`, of whichever family.
pub(crate) fn model(path: &Path) -> Result<Learned, Failure> {
    let failed = |e: Error| Failure::of_file(&name_of(path), &e);
    if is_pipe(path) {
        model_file::read(std::io::stdin().lock()).map_err(failed)
    } else {
        let file = File::open(path).map_err(|e| failed(Error::Read(e)))?;
        model_file::read(file).map_err(failed)
    }
}
