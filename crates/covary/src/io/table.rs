#[cfg(feature = "arrow")]
use super::columnar;
use super::csv;
use super::sheet::{Cells, Sheet};
use super::transposed::Upright;
use super::{Error, Format, Note};
#[cfg(feature = "npy")]
use super::{Layout, npy, npz};
use crate::model::{FilledCell, Imputed};
use crate::{Dataset, Matrix};
use std::borrow::Cow;
use std::io::Write;

/// A table as it came: its columns of numbers as a [`Dataset`], everything else kept to be written
/// back untouched.
///
/// Rows and columns are counted from 0 here, as in [`Dataset`]; messages count from 1.
#[derive(Debug, Clone)]
pub struct Table {
    pub(super) names: Vec<String>,
    pub(super) kinds: Vec<ColumnKind>,
    pub(super) data: Dataset,
    pub(super) body: Body,
    /// What was assumed.
    pub(super) notes: Vec<Note>,
    /// Whether the columns were listed, or those of a model.
    pub(super) chosen: bool,
}

/// What a file held besides the numbers, as its format keeps it.
#[derive(Debug, Clone)]
pub(super) enum Body {
    Text(csv::Text),
    #[cfg(feature = "npy")]
    Numpy(npy::Array),
    #[cfg(feature = "arrow")]
    Columnar(columnar::Frame),
    Turned(Upright),
}

/// What the cells of a column are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnKind {
    /// Numbers and gaps: part of the [`Dataset`].
    Numbers,
    /// Kept aside: at least one cell is neither a number nor a gap.
    Text {
        /// The first such row.
        row: usize,
    },
    /// Kept aside: the column has no name, so its cells label the rows.
    Unnamed,
    /// Kept aside: of a type that is not a number, such as a date.
    Typed {
        /// The type in the words of its format.
        name: String,
    },
    /// Kept aside, as asked for.
    Excluded,
}

/// What became of numbers filled into columns of whole numbers or decimals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rounding {
    /// Cells that were rounded to the type of their column.
    pub n_cells: usize,
    /// The columns they are in.
    pub columns: Vec<String>,
    /// Columns whose type had no room for a filled number: name, type, and the wider type it leaves as.
    pub widened: Vec<(String, String, String)>,
}

/// How the cells of each column of numbers are written, as far as some rows tell.
pub(super) struct Written {
    pub(super) whole: Vec<bool>,
    gaps: Vec<bool>,
    cells: Vec<bool>,
}

impl Written {
    pub(super) fn of(data: &Dataset) -> Self {
        let d = data.n_columns();
        let (mut whole, mut gaps, mut cells) = (vec![true; d], vec![false; d], vec![false; d]);
        for row in data.values().rows() {
            for (k, value) in row.iter().enumerate() {
                gaps[k] |= value.is_nan();
                cells[k] |= !value.is_nan();
                whole[k] &= value.is_nan() || value.fract() == 0.0;
            }
        }
        Self { whole, gaps, cells }
    }

    /// With what other rows tell.
    pub(super) fn and(mut self, other: &Self) -> Self {
        for k in 0..self.whole.len() {
            self.whole[k] &= other.whole[k];
            self.gaps[k] |= other.gaps[k];
            self.cells[k] |= other.cells[k];
        }
        self
    }

    /// The columns of whole numbers. Only where something is filled in does it matter.
    pub(super) fn whole(&self) -> Vec<bool> {
        (0..self.whole.len()).map(|k| self.whole[k] && self.gaps[k] && self.cells[k]).collect()
    }
}

impl Table {
    /// Number of rows, the header not counted.
    pub fn n_rows(&self) -> usize {
        self.data.n_rows()
    }

    /// Number of columns, those kept aside included.
    pub fn n_columns(&self) -> usize {
        self.names.len()
    }

    /// Column names in order, without quotes and surrounding spaces.
    pub fn column_names(&self) -> &[String] {
        &self.names
    }

    /// What the cells of a column are.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn kind(&self, column: usize) -> &ColumnKind {
        &self.kinds[column]
    }

    /// The columns of the [`Dataset`], in ascending order.
    pub fn numeric_columns(&self) -> Vec<usize> {
        self.columns_that(|kind| *kind == ColumnKind::Numbers)
    }

    /// The columns kept aside, in ascending order.
    pub fn columns_aside(&self) -> Vec<usize> {
        self.columns_that(|kind| *kind != ColumnKind::Numbers)
    }

    fn columns_that(&self, is: impl Fn(&ColumnKind) -> bool) -> Vec<usize> {
        (0..self.n_columns()).filter(|&j| is(&self.kinds[j])).collect()
    }

    /// The columns of numbers, gaps as NaN.
    pub fn dataset(&self) -> &Dataset {
        &self.data
    }

    /// Blank lines that were passed over, those at the end of the file not counted.
    pub fn n_blank_lines(&self) -> usize {
        match &self.body {
            Body::Text(text) => text.n_blank_lines(),
            #[cfg(feature = "npy")]
            Body::Numpy(_) => 0,
            #[cfg(feature = "arrow")]
            Body::Columnar(_) => 0,
            Body::Turned(upright) => upright.n_blank_lines(),
        }
    }

    /// What was assumed of the file where it does not say it.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// What a cell says, as text: quotes taken off, bytes that are not UTF-8 replaced; empty where a
    /// typed format holds nothing.
    ///
    /// # Panics
    /// If there is no such cell.
    pub fn text(&self, row: usize, column: usize) -> String {
        String::from_utf8_lossy(&self.cell(row, column)).into_owned()
    }

    /// What a cell says.
    pub(super) fn cell(&self, row: usize, column: usize) -> Cow<'_, [u8]> {
        match &self.body {
            Body::Text(text) => text.cell(row, column),
            #[cfg(feature = "npy")]
            Body::Numpy(array) => Cow::Owned(array.text(self, row, column).into_bytes()),
            #[cfg(feature = "arrow")]
            Body::Columnar(frame) => Cow::Owned(frame.text(&self.data, row, column).into_bytes()),
            Body::Turned(upright) => upright.cell(row, column),
        }
    }

    /// The number in a column kept aside, if it is one; NaN for a gap.
    #[cfg(any(feature = "arrow", feature = "npy"))]
    pub(super) fn number_aside(&self, row: usize, column: usize) -> Option<f64> {
        match &self.body {
            Body::Text(text) => text.number(row, column),
            #[cfg(feature = "npy")]
            Body::Numpy(array) => array.number_aside(self, row, column),
            #[cfg(feature = "arrow")]
            Body::Columnar(_) => None,
            Body::Turned(upright) => upright.number(row, column),
        }
    }

    /// Whether its numbers are written `1,5`.
    pub(super) fn has_decimal_comma(&self) -> bool {
        match &self.body {
            Body::Text(text) => text.decimal_comma(),
            _ => false,
        }
    }

    /// What becomes of `values`, filled into columns of integers or decimals, where types are kept: in Parquet and
    /// Arrow.
    ///
    /// # Errors
    /// [`Error::OtherTable`] unless `values` has the shape of the table's numbers.
    pub fn rounding(&self, values: &Matrix) -> Result<Rounding, Error> {
        self.check_own(values)?;
        if let Body::Turned(upright) = &self.body {
            return upright.rounding(self, values);
        }
        #[allow(unused_mut, reason = "without typed formats nothing is rounded")]
        let mut rounding = Rounding::default();
        #[cfg(feature = "arrow")]
        if let Body::Columnar(frame) = &self.body {
            for (k, j) in self.numeric_columns().into_iter().enumerate().filter(|&(_, j)| frame.rounds(j)) {
                let filled = |i: &usize| self.data.row(*i)[k].is_nan() && !values[(*i, k)].is_nan();
                let n_cells = (0..self.n_rows()).filter(filled).count();
                let (own, wide) = (frame.type_of(j), frame.filled_type(j, &self.data, values));
                if wide.as_ref() != Some(own) {
                    let wide = wide.map_or_else(|| "Float64".to_owned(), |wide| wide.to_string());
                    rounding.widened.push((self.names[j].clone(), own.to_string(), wide));
                }
                if n_cells > 0 {
                    rounding.n_cells += n_cells;
                    rounding.columns.push(self.names[j].clone());
                }
            }
        }
        Ok(rounding)
    }

    /// Writes the table with `values` (the numbers of [`dataset`](Self::dataset), gaps filled) in the
    /// place of its gaps. Written in the format it came in, every other byte of a text table, and
    /// every other cell and the types of a typed one, leave as they came. A value still NaN leaves its
    /// gap. Numbers are the shortest that read back as the same f64; in text, `4` rather than `4.0` in a column where
    /// no cell has a decimal point.
    ///
    /// Returns the names of columns that the format cannot hold and that were left out.
    ///
    /// ```
    /// use covary::{io::{csv, Format}, Density, LinearGaussian, Matrix, Noise};
    /// let table = csv::read("\"x\", y\r\n+5.0,NA\r\n".as_bytes())?;
    /// let model = LinearGaussian::new(Matrix::from_rows(&[[2.0], [1.0]]), vec![0.0; 2], Noise::Isotropic(1.0))?;
    /// let mut out = Vec::new();
    /// table.write_filled(model.impute(table.dataset())?.values(), Format::CSV, &mut out)?;
    /// assert_eq!(out, b"\"x\", y\r\n+5.0,2.0\r\n");      // E[y | x] = 2/5 x
    /// # Ok::<(), covary::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OtherTable`] unless `values` has the shape of the table's numbers, [`Error::Write`] if
    /// the destination fails, and what the format cannot hold.
    pub fn write_filled(
        &self,
        values: &Matrix,
        format: Format,
        mut out: impl Write,
    ) -> Result<Vec<String>, Error> {
        self.check_own(values)?;
        match &self.body {
            Body::Text(text) if text.is(format.layout) => {
                super::compressed(format.gzip, &mut out, |out| text.write_filled(self, values, out))?;
                Ok(Vec::new())
            }
            #[cfg(feature = "npy")]
            Body::Numpy(array) if matches!(format.layout, Layout::Npy | Layout::Npz) => {
                super::compressed(format.gzip, &mut out, |out| match format.layout {
                    Layout::Npy => array.write_filled(self, values, out),
                    _ => npz::write_filled(array, self, values, out),
                })?;
                Ok(Vec::new())
            }
            #[cfg(feature = "arrow")]
            Body::Columnar(frame) if columnar::holds(format.layout) => {
                let sheet = self.filled_sheet(values);
                let write = |out: &mut dyn Write| columnar::write(&sheet, Some(frame), format.layout, out);
                super::compressed(format.gzip, &mut out, write)?;
                Ok(Vec::new())
            }
            Body::Turned(upright) => upright.write_filled(self, values, format, &mut out),
            _ => self.filled_sheet(values).write(format, out),
        }
    }

    /// Of the columns of numbers, those whose cells are whole numbers written without a decimal point: a number
    /// filled in beside them is written as they are.
    pub(super) fn written_whole(&self) -> Vec<bool> {
        let mut whole = Written::of(&self.data).whole();
        self.clear_pointed(&mut whole);
        whole
    }

    /// Of these columns, leaves those `whole` in which no observed cell has a decimal point.
    pub(super) fn clear_pointed(&self, whole: &mut [bool]) {
        let columns = self.numeric_columns();
        match &self.body {
            Body::Text(text) => text.without_points(&self.data, &columns, whole),
            _ => {
                for (k, &column) in columns.iter().enumerate() {
                    let pointed =
                        |i: usize| !self.data.row(i)[k].is_nan() && self.cell(i, column).contains(&b'.');
                    whole[k] = whole[k] && !(0..self.n_rows()).any(pointed);
                }
            }
        }
    }

    /// Whether values have the shape of the table's numbers.
    fn check_own(&self, values: &Matrix) -> Result<(), Error> {
        let (rows, columns) = (self.data.n_rows(), self.data.n_columns());
        let (got_rows, got_columns) = (values.n_rows(), values.n_columns());
        if (got_rows, got_columns) == (rows, columns) {
            return Ok(());
        }
        Err(Error::OtherTable { rows, columns, got_rows, got_columns })
    }

    /// The filled table as columns, in order.
    fn filled_sheet<'a>(&'a self, values: &'a Matrix) -> Sheet<'a> {
        let mut sheet = Sheet::default();
        let mut numbers = 0..values.n_columns();
        for j in 0..self.n_columns() {
            let cells = match self.kinds[j] {
                ColumnKind::Numbers => {
                    let column = numbers.next().expect("one column of values per column of numbers");
                    Cells::Filled { table: self, values, column }
                }
                _ => Cells::Carried { table: self, column: j },
            };
            sheet.push(self.names[j].clone(), cells);
        }
        sheet
    }

    /// The columns kept aside, to stand beside results.
    pub fn aside(&self) -> Sheet<'_> {
        let mut sheet = Sheet::default();
        for column in self.columns_aside() {
            sheet.push(self.names[column].clone(), Cells::Carried { table: self, column });
        }
        sheet
    }

    /// One row per filled gap: `row,column,mean,sd,lower,upper`, with `row` counting data rows from
    /// 1, `column` by name, and the central interval of probability `level`.
    ///
    /// # Errors
    /// [`Error::OtherTable`] unless `filled` came from this table's [`dataset`](Self::dataset), and
    /// [`Error::Request`] unless `0 < level < 1`.
    pub fn cells_sheet(&self, filled: &Imputed, level: f64) -> Result<Sheet<'static>, Error> {
        self.check_own(filled.values())?;
        self.sheet_of(filled.cells(), level)
    }

    /// The same for a table without a gap to fill: no rows.
    pub fn no_cells(&self) -> Sheet<'static> {
        self.sheet_of(&[], 0.5).expect("a level between 0 and 1")
    }

    fn sheet_of(&self, cells: &[FilledCell], level: f64) -> Result<Sheet<'static>, Error> {
        let intervals =
            cells.iter().map(|cell| cell.interval(level)).collect::<Result<Vec<(f64, f64)>, _>>()?;
        let name = |column: usize| self.data.column_names()[column].clone();
        let mut sheet = Sheet::default();
        sheet.push("row", Cells::Integers(cells.iter().map(|c| c.row as i64 + 1).collect()));
        sheet.push("column", Cells::Text(cells.iter().map(|c| name(c.column)).collect()));
        sheet.push("value", Cells::Numbers(cells.iter().map(FilledCell::value).collect()));
        sheet.push("mean", Cells::Numbers(cells.iter().map(|c| c.mean).collect()));
        sheet.push("sd", Cells::Numbers(cells.iter().map(|c| c.sd).collect()));
        sheet.push("lower", Cells::Numbers(intervals.iter().map(|i| i.0).collect()));
        sheet.push("upper", Cells::Numbers(intervals.iter().map(|i| i.1).collect()));
        Ok(sheet)
    }
}
