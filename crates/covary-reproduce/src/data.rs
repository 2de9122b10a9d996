//! Tables from folders and from what is shipped.

use crate::Error;
use covary::io::{self, Format, Input, ReadOptions};
use covary::{Dataset, Matrix};
use flate2::read::GzDecoder;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where data are: a folder with a folder per data set, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    folder: Option<PathBuf>,
}

/// Handwritten digits of 8 × 8 cells, 1797 of them, 64 counts from 0 to 16 and the digit.
const DIGITS: &[u8] = include_bytes!("../data/digits.csv.gz");

impl Data {
    /// In this folder.
    pub fn of(folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()) }
    }

    /// Nowhere: only what is shipped.
    pub fn none() -> Self {
        Self { folder: None }
    }

    /// The folder, if any.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Whether a data set is there.
    pub fn has(&self, folder: &str) -> bool {
        self.folder.as_ref().is_some_and(|f| f.join(folder).is_dir())
    }

    /// The place of a file, `folder/name`.
    pub(crate) fn path(&self, file: &str) -> Result<PathBuf, Error> {
        let set = file.split('/').next().unwrap_or(file);
        let folder = self.folder.as_ref().filter(|_| self.has(set));
        Ok(folder.ok_or_else(|| Error::no_data(set, self))?.join(file))
    }

    /// The columns of numbers of a table, `folder/name`, by the format of its name.
    pub(crate) fn table(&self, file: &str, options: &ReadOptions) -> Result<Dataset, Error> {
        let path = self.path(file)?;
        let failed =
            |why: &dyn std::fmt::Display| Error::Read { path: file.to_owned(), why: why.to_string() };
        let opened = File::open(&path).map_err(|e| failed(&e))?;
        let format = Format::of_file(file).unwrap_or(Format::CSV);
        let table = io::read(Input::<File>::File(opened), format, options).map_err(|e| failed(&e))?;
        Ok(table.dataset().clone())
    }

    /// The pictures of an `idx` file, `folder/name`, a row each, cells from 0 to 255; the first `most`.
    pub(crate) fn pictures(&self, file: &str, most: usize) -> Result<Dataset, Error> {
        let (lengths, cells) = self.idx::<3>(file, most)?;
        let values = cells.iter().map(|b| f64::from(*b)).collect();
        Ok(Dataset::new(Matrix::from_vec(lengths[0], lengths[1] * lengths[2], values)?)?)
    }

    /// The labels of an `idx` file, `folder/name`; the first `most`.
    pub(crate) fn labels(&self, file: &str, most: usize) -> Result<Vec<usize>, Error> {
        Ok(self.idx::<1>(file, most)?.1.iter().map(|b| usize::from(*b)).collect())
    }

    /// Lengths and bytes of an `idx` file of `N` directions, the first cut to `most`.
    fn idx<const N: usize>(&self, file: &str, most: usize) -> Result<([usize; N], Vec<u8>), Error> {
        let failed = |why: &str| Error::Read { path: file.to_owned(), why: why.to_owned() };
        let mut bytes = Vec::new();
        let opened = File::open(self.path(file)?).map_err(|e| failed(&e.to_string()))?;
        GzDecoder::new(opened).read_to_end(&mut bytes).map_err(|e| failed(&e.to_string()))?;
        // Numbers of 32 bits: 0x800 + N for N directions of bytes, then their lengths.
        let word = |k: usize| {
            let four: Option<[u8; 4]> = bytes.get(4 * k..4 * k + 4).and_then(|b| b.try_into().ok());
            four.map(|b| u32::from_be_bytes(b) as usize)
        };
        if word(0) != Some(0x800 + N) {
            return Err(failed(&format!("not a file of bytes in {N} directions in the format idx")));
        }
        let mut lengths = [0; N];
        for (k, length) in lengths.iter_mut().enumerate() {
            *length = word(k + 1).ok_or_else(|| failed("shorter than its header"))?;
        }
        lengths[0] = lengths[0].min(most);
        let (start, cells) = (4 * (N + 1), lengths.iter().fold(1, |a: usize, b| a.saturating_mul(*b)));
        let cells = bytes.get(start..start.saturating_add(cells));
        Ok((lengths, cells.ok_or_else(|| failed("shorter than its header says"))?.to_vec()))
    }

    /// The shipped digits: 1797 rows of 64 cells from 0 to 16.
    pub(crate) fn digits() -> Dataset {
        let mut text = String::new();
        GzDecoder::new(DIGITS).read_to_string(&mut text).expect("the shipped file is whole");
        let rows: Vec<Vec<f64>> = text
            .lines()
            .map(|line| line.split(',').take(64).map(|v| v.parse().expect("shipped numbers")).collect())
            .collect();
        Dataset::new(Matrix::from_rows(&rows)).expect("finite numbers")
    }
}

/// The data that tests over real tables need: `COVARY_DATA`, else `../shared/data` beside the project. `None`,
/// said aloud, when a set is absent.
#[cfg(test)]
#[allow(clippy::print_stderr, reason = "a skipped comparison must be seen")]
pub(crate) fn shared(sets: &[&str]) -> Option<Data> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = Data::of(std::env::var_os("COVARY_DATA").map_or_else(beside, PathBuf::from));
    let absent = sets.iter().find(|set| !data.has(set));
    if let Some(set) = absent {
        eprintln!("SKIPPED: {set} is absent; set COVARY_DATA to the folder of data sets");
    }
    absent.is_none().then_some(data)
}
