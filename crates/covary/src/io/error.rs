/// Why bytes could not be read as a table or written back: each names the place, what is wrong
/// there, and the way out. Rows count data rows from 1; lines count every line of the file from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source failed.
    #[error("cannot be read: {0}")]
    Read(std::io::Error),
    /// The destination failed.
    #[error("cannot be written: {0}")]
    Write(std::io::Error),
    /// No header.
    #[error("is empty; give a first line with the names of the columns, then one line per row")]
    Empty,
    /// A header and nothing else.
    #[error("has a header of {columns} column(s) and no rows; give at least two rows of data")]
    NoRows {
        /// Columns named.
        columns: usize,
    },
    /// Two columns of one name.
    #[error("columns {first} and {second} are both called `{name}`; give every column its own name")]
    DuplicateColumn {
        /// The name.
        name: String,
        /// The first of them, counted from 1.
        first: usize,
        /// The second.
        second: usize,
    },
    /// A row with fewer cells than the header.
    #[error(
        "row {row} (line {line}), column `{column}`: the row ends before it, with {got} cells of {expected}; add the missing cells, or a comma for each gap"
    )]
    ShortRow {
        /// The row.
        row: usize,
        /// The line it starts on.
        line: usize,
        /// The first column without a cell.
        column: String,
        /// Columns named by the header.
        expected: usize,
        /// Cells in the row.
        got: usize,
    },
    /// A row with more cells than the header.
    #[error(
        "row {row} (line {line}), after column `{column}`: {got} cells where the header names {expected} columns; quote cells that hold a comma, or name the extra columns"
    )]
    LongRow {
        /// The row.
        row: usize,
        /// The line it starts on.
        line: usize,
        /// The last column of the header.
        column: String,
        /// Columns named by the header.
        expected: usize,
        /// Cells in the row.
        got: usize,
    },
    /// A quote that is opened and never closed.
    #[error("{place} (line {line}): a quote is opened and never closed; close it, or remove it")]
    UnclosedQuote {
        /// The cell, in words.
        place: String,
        /// The line the cell starts on.
        line: usize,
    },
    /// Nothing to fit.
    #[error(
        "row {row}, column `{column}`: `{text}` is not a number, and no other column holds only numbers and gaps; separate cells by commas, use a point for decimals and leave unknown cells empty"
    )]
    NoNumericColumn {
        /// The row of the first cell that is not a number, in the first column that has one.
        row: usize,
        /// Name of that column.
        column: String,
        /// What the cell says.
        text: String,
    },
    /// A number beyond the range of f64, or an infinity.
    #[error(
        "row {row}, column `{column}`: `{text}` is not a finite number; correct the cell or leave it empty"
    )]
    Infinite {
        /// The row.
        row: usize,
        /// Name of the column.
        column: String,
        /// What the cell says.
        text: String,
    },
    /// Filled values of another table.
    #[error(
        "the filled values have {got_rows} rows and {got_columns} columns, this table has {rows} rows and {columns} columns of numbers; fill the table's own `dataset()`"
    )]
    OtherTable {
        /// Rows of the table.
        rows: usize,
        /// Columns of numbers of the table.
        columns: usize,
        /// Rows filled.
        got_rows: usize,
        /// Columns filled.
        got_columns: usize,
    },
    /// A request the model refused.
    #[error(transparent)]
    Request(#[from] crate::Error),
}
