use super::{Error, Format, Layout, Table, csv};
#[cfg(feature = "arrow")]
use super::{columnar, table::Body};
#[cfg(feature = "npy")]
use super::{npy, npz};
use crate::Matrix;
use std::io::Write;

/// Columns to be written as a table of any format.
///
/// ```
/// use covary::{io::{Cells, Format, Sheet}, Matrix};
/// let scores = Matrix::from_rows(&[[1.5, -0.25]]);
/// let mut sheet = Sheet::default();
/// sheet.push("name", Cells::Text(vec!["a, b".to_owned()]));
/// sheet.push("x1", Cells::Column { of: &scores, column: 0 });
/// let mut out = Vec::new();
/// sheet.write(Format::CSV, &mut out)?;
/// assert_eq!(out, b"name,x1\n\"a, b\",1.5\n");
/// # Ok::<(), covary::io::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Sheet<'a> {
    pub(super) names: Vec<String>,
    pub(super) columns: Vec<Cells<'a>>,
}

/// The cells of one column of a [`Sheet`].
#[derive(Debug, Clone)]
pub enum Cells<'a> {
    /// Numbers; NaN is written as a gap.
    Numbers(Vec<f64>),
    /// A column of a matrix; NaN is written as a gap.
    Column {
        /// The matrix.
        of: &'a Matrix,
        /// Its column.
        column: usize,
    },
    /// Whole numbers.
    Integers(Vec<i64>),
    /// Text.
    Text(Vec<String>),
    /// A column of a table that was read, as it came.
    Carried {
        /// The table.
        table: &'a Table,
        /// Its column, those kept aside included.
        column: usize,
    },
    /// A column of numbers of a table that was read, its gaps filled.
    Filled {
        /// The table.
        table: &'a Table,
        /// The filled values of its dataset.
        values: &'a Matrix,
        /// The column of the dataset.
        column: usize,
    },
}

impl Cells<'_> {
    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len(),
            Self::Column { of, .. } => of.n_rows(),
            Self::Integers(values) => values.len(),
            Self::Text(values) => values.len(),
            Self::Carried { table, .. } | Self::Filled { table, .. } => table.n_rows(),
        }
    }

    /// The type of cells that hold several values each, and so have no text.
    pub(super) fn nested_kind(&self) -> Option<String> {
        match self {
            #[cfg(feature = "arrow")]
            Self::Carried { table: Table { body: Body::Columnar(frame), .. }, column } => {
                frame.nested_kind(*column)
            }
            _ => None,
        }
    }

    /// The column of the table that the cells come from; 0 if they come from none.
    pub(super) fn source(&self) -> usize {
        match self {
            Self::Carried { column, .. } => *column,
            Self::Filled { table, column, .. } => table.numeric_columns()[*column],
            _ => 0,
        }
    }

    /// The number in a row, if the column holds numbers.
    #[inline]
    pub(super) fn number(&self, row: usize) -> Option<f64> {
        match self {
            Self::Numbers(values) => Some(values[row]),
            Self::Column { of, column } | Self::Filled { values: of, column, .. } => Some(of[(row, *column)]),
            Self::Integers(values) => Some(values[row] as f64),
            #[cfg(any(feature = "arrow", feature = "npy"))]
            Self::Carried { table, column } => table.number_aside(row, *column),
            #[cfg(not(any(feature = "arrow", feature = "npy")))]
            Self::Carried { .. } => None,
            Self::Text(_) => None,
        }
    }

    /// Whether every cell is a number or a gap.
    #[cfg(any(feature = "arrow", feature = "npy"))]
    pub(super) fn is_numbers(&self) -> bool {
        match self {
            Self::Text(_) => false,
            Self::Carried { .. } => (0..self.len()).all(|row| self.number(row).is_some()),
            _ => true,
        }
    }
}

impl<'a> Sheet<'a> {
    /// Adds a column to the right.
    ///
    /// # Panics
    /// If its length differs from the others'.
    pub fn push(&mut self, name: impl Into<String>, cells: Cells<'a>) {
        assert!(self.columns.first().is_none_or(|first| first.len() == cells.len()), "columns of one length");
        self.names.push(name.into());
        self.columns.push(cells);
    }

    /// Adds the columns of a matrix to the right.
    ///
    /// # Panics
    /// If there is not one name per column, or the number of rows differs.
    pub fn push_matrix(&mut self, names: impl IntoIterator<Item = String>, of: &'a Matrix) {
        let mut names = names.into_iter();
        for column in 0..of.n_columns() {
            self.push(names.next().expect("one name per column"), Cells::Column { of, column });
        }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.columns.first().map_or(0, Cells::len)
    }

    /// A name that stands twice, if any does.
    pub fn repeated_name(&self) -> Option<&str> {
        let mut seen = std::collections::HashSet::new();
        self.names.iter().find(|name| !seen.insert(name.as_str())).map(String::as_str)
    }

    /// Writes the columns. Returns the names of those that the format cannot hold and that were left
    /// out: text in NumPy's arrays.
    ///
    /// # Errors
    /// [`Error::Write`] if the destination fails, and what the format cannot hold.
    pub fn write(&self, format: Format, mut out: impl Write) -> Result<Vec<String>, Error> {
        super::compressed(format.gzip, &mut out, |out| {
            match format.layout {
                Layout::Csv => csv::write(self, b',', out)?,
                Layout::Tsv => csv::write(self, b'\t', out)?,
                #[cfg(feature = "arrow")]
                layout if columnar::holds(layout) => columnar::write(self, None, layout, out)?,
                #[cfg(feature = "npy")]
                Layout::Npy => return npy::write(self, out),
                #[cfg(feature = "npy")]
                Layout::Npz => return npz::write(self, out),
                other => return Err(other.not_written()),
            }
            Ok(Vec::new())
        })
    }

    /// Writes a table of `n_rows` rows that comes in parts of at most `at_once`, so that one part is in memory and not
    /// all of them: `part` gives the next rows, this many of them, always with the same columns. NumPy's archives, which are
    /// put together in memory, must fit into [`LARGEST_ARCHIVE`](Self::LARGEST_ARCHIVE). Otherwise as
    /// [`write`](Self::write).
    ///
    /// ```
    /// use covary::io::{Cells, Format, Sheet};
    /// let mut next = 0..5;
    /// let mut out = Vec::new();
    /// Sheet::write_parts(5, 2, Format::CSV, &mut out, |rows| {
    ///     let mut sheet = Sheet::default();
    ///     sheet.push("x", Cells::Integers(next.by_ref().take(rows).collect()));
    ///     Ok(sheet)
    /// })?;
    /// assert_eq!(out, b"x\n0\n1\n2\n3\n4\n");
    /// # Ok::<(), covary::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`write`](Self::write), those of `part`, and [`Error::LargeArchive`].
    pub fn write_parts(
        n_rows: usize,
        at_once: usize,
        format: Format,
        mut out: impl Write,
        mut part: impl FnMut(usize) -> Result<Sheet<'a>, Error>,
    ) -> Result<Vec<String>, Error> {
        let at_once = at_once.max(1);
        let first = part(n_rows.min(at_once))?;
        let starts = (at_once.min(n_rows)..n_rows).step_by(at_once);
        let mut others = starts.map(|start| part((n_rows - start).min(at_once)));
        super::compressed(format.gzip, &mut out, |out| {
            match format.layout {
                Layout::Csv | Layout::Tsv => {
                    let delimiter = if format.layout == Layout::Csv { b',' } else { b'\t' };
                    csv::write(&first, delimiter, out)?;
                    others.try_for_each(|part| csv::write_rows(&part?, delimiter, out))?;
                }
                #[cfg(feature = "arrow")]
                layout if columnar::holds(layout) => {
                    columnar::write_parts(&first, &mut others, layout, out)?;
                }
                #[cfg(feature = "npy")]
                Layout::Npy => return npy::write_parts(n_rows, &first, &mut others, out),
                #[cfg(feature = "npy")]
                Layout::Npz => {
                    let bytes = n_rows.saturating_mul(8 * first.columns.len()) as u64;
                    if bytes > Self::LARGEST_ARCHIVE {
                        return Err(Error::LargeArchive { bytes, limit: Self::LARGEST_ARCHIVE });
                    }
                    return npz::write_parts(n_rows, &first, &mut others, out);
                }
                other => return Err(other.not_written()),
            }
            Ok(Vec::new())
        })
    }

    /// Bytes of the largest archive that is put together in memory.
    pub const LARGEST_ARCHIVE: u64 = 1 << 30;
}
