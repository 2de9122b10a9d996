//! Tables and models from paths.

use crate::args::{Reading, Selecting};
use crate::failure::Failure;
use crate::memory;
use covary::io::model_file;
use covary::io::{self, ColumnChoice, Columns, Error, Format, Gaps, Input, ReadOptions, Table};
use covary::learned::Learned;
use std::fs::File;
use std::path::Path;

/// A table that was read, and where it came from.
pub(crate) struct Source {
    pub(crate) name: String,
    /// In which it leaves if no other is asked for.
    pub(crate) format: Format,
    pub(crate) table: Table,
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
        let options = ReadOptions {
            choice: select.choice(),
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
        let table = io::read(input, format, &options).map_err(failed)?;
        Ok(Source { name, format: format.written(), table, gaps: Gaps::new(&self.gaps) })
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
