//! Tables whose rows are the columns of a file, as in genes × samples.

use super::columns::{Role, check_names};
use super::table::Body;
use super::{ColumnChoice, ColumnKind, Error, Format, Input, ReadOptions, Rounding, Table, columns_named};
use crate::{Dataset, Matrix};
use std::borrow::Cow;
use std::io::{Read, Write};

/// The file as it came. Its columns of numbers are the rows of the table, in order.
#[derive(Debug, Clone)]
pub(super) struct Upright {
    table: Box<Table>,
    columns: Vec<usize>,
}

/// Reads a file and turns it.
pub(super) fn read<R: Read>(input: Input<R>, format: Format, options: &ReadOptions) -> Result<Table, Error> {
    let ColumnChoice { columns, exclude, id } = options.choice.clone();
    let choice = ColumnChoice { id, ..ColumnChoice::default() };
    let upright =
        super::read_upright(input, format, &ReadOptions { choice, transpose: false, ..options.clone() })?;
    turned(upright, &ColumnChoice { columns, exclude, id: Vec::new() }, &options.choice.id)
}

fn turned(mut upright: Table, choice: &ColumnChoice, id: &[String]) -> Result<Table, Error> {
    let aside = upright.columns_aside();
    let labels = columns_named(id, upright.column_names())?.first().copied().or(aside.first().copied());
    let n_columns = upright.n_rows();
    let mut names = vec![String::new()];
    match labels {
        Some(j) => names.extend((0..n_columns).map(|i| upright.text(i, j).trim().to_owned())),
        None => names.extend((1..=n_columns).map(|i| format!("x{i}"))),
    }
    check_names(&names)?;
    let roles = choice.roles(&names)?;
    let kept: Vec<usize> = (1..names.len()).filter(|&j| roles[j] != Role::Aside).collect();
    if kept.is_empty() {
        return Err(Error::NothingChosen);
    }
    let mut kinds = vec![ColumnKind::Excluded; names.len()];
    kinds[0] = ColumnKind::Unnamed;
    for &j in &kept {
        kinds[j] = ColumnKind::Numbers;
    }
    let columns = upright.numeric_columns();
    let values = Matrix::from_fn(columns.len(), kept.len(), |i, k| upright.data.row(kept[k] - 1)[i]);
    let data = Dataset::with_names(values, kept.iter().map(|&j| names[j].clone()).collect())?;
    let mut notes = std::mem::take(&mut upright.notes);
    // A column of identifiers would be a row among the others.
    notes.extend(upright.identifiers().filter(|_| labels.is_none()));
    let body = Body::Turned(Upright { table: Box::new(upright), columns });
    Ok(Table { names, kinds, data, body, notes, chosen: false })
}

impl Upright {
    pub(super) fn n_blank_lines(&self) -> usize {
        self.table.n_blank_lines()
    }

    pub(super) fn cell(&self, row: usize, column: usize) -> Cow<'_, [u8]> {
        match column {
            0 => Cow::Borrowed(self.table.names[self.columns[row]].as_bytes()),
            _ => self.table.cell(column - 1, self.columns[row]),
        }
    }

    /// The number in a column kept aside, if it is one; NaN for a gap.
    #[cfg(any(feature = "arrow", feature = "npy"))]
    pub(super) fn number(&self, row: usize, column: usize) -> Option<f64> {
        column.checked_sub(1).map(|i| self.table.data.row(i)[row])
    }

    /// The numbers of the file, its gaps filled by those of the turned table.
    fn values(&self, turned: &Table, filled: &Matrix) -> Matrix {
        let mut values = self.table.data.values().clone();
        for (k, j) in turned.numeric_columns().into_iter().enumerate() {
            for (i, value) in values.row_mut(j - 1).iter_mut().enumerate().filter(|(_, v)| v.is_nan()) {
                *value = filled[(i, k)];
            }
        }
        values
    }

    pub(super) fn rounding(&self, turned: &Table, filled: &Matrix) -> Result<Rounding, Error> {
        self.table.rounding(&self.values(turned, filled))
    }

    /// Writes the file as it came, gaps filled.
    pub(super) fn write_filled(
        &self,
        turned: &Table,
        filled: &Matrix,
        format: Format,
        out: &mut dyn Write,
    ) -> Result<Vec<String>, Error> {
        self.table.write_filled(&self.values(turned, filled), format, out)
    }
}
