//! Tables and models from paths.

use crate::args::{Reading, Selecting};
use crate::failure::Failure;
use crate::memory;
use covary::data::TimeAxis;
use covary::family::{Family, Kind};
use covary::io::model_file;
use covary::io::{self, ColumnChoice, Columns, Error, Format, Gaps, Input, ReadOptions, Table, TimeColumns};
use covary::learned::Learned;
use std::fs::File;
use std::path::Path;

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
        learned.dynamic().ok()?.axis.clone()
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
    /// Refuses a column of times for a model that knows no time.
    pub(crate) fn check_time(&self, family: Family) -> Result<(), Failure> {
        match &self.time {
            Some(_) if family.kind() != Kind::Dynamic => Err(Failure::Call(format!(
                "--time goes with --model {}, not with {family}; --id sets a column aside",
                Family::names(|family| family.kind() == Kind::Dynamic)
            ))),
            _ => Ok(()),
        }
    }

    /// The table at `path`.
    pub(crate) fn read(&self, path: &Path, select: Select<'_>) -> Result<Source, Failure> {
        let name = name_of(path);
        let format = match &self.format {
            Some(word) => Format::from_name(word).map_err(|e| Failure::of_format("--format", &e))?,
            None => Format::of_file(&path.to_string_lossy()).unwrap_or(Format::CSV),
        };
        let failed = |e: Error| Failure::of_file(&name, &e);
        let input = if is_pipe(path) {
            Input::Stream(std::io::stdin().lock())
        } else {
            Input::File(File::open(path).map_err(|e| failed(Error::Read(e)))?)
        };
        let axis = select.axis();
        let time = self.time.as_ref().or(axis.as_ref().map(|axis| &axis.name));
        let sequences = self.group.as_ref().or(axis.as_ref().and_then(|axis| axis.sequences.as_ref()));
        if let (Some(group), None) = (&self.group, time) {
            return Err(Failure::Call(format!(
                "--group {group} goes with --time COLUMN: when rows happened"
            )));
        }
        let mut choice = select.choice();
        choice.id.extend(time.into_iter().chain(sequences).cloned());
        let options = ReadOptions {
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
        };
        let (mut table, gaps) = (io::read(input, format, &options).map_err(failed)?, Gaps::new(&self.gaps));
        if let Some(time) = time {
            let sequences = sequences.map(String::as_str);
            let columns = TimeColumns { time, sequences, steps: axis.as_ref().map(|axis| axis.steps) };
            table = table.in_time(&columns, &gaps).map_err(failed)?;
        }
        Ok(Source { name, format: format.written(), table, transposed: self.transpose, gaps })
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
