use crate::Remedy;
use std::fmt;

/// Where a row is, for people: its number among the data rows and, in a text table, its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Data rows from 1.
    pub row: usize,
    /// Lines of the file from 1.
    pub line: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {}", self.row)?;
        self.line.map_or(Ok(()), |line| write!(f, " (line {line})"))
    }
}

/// Characters of a cell that a message shows.
const LONGEST: usize = 40;

/// What a cell says, short and harmless enough for a message.
pub(super) fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut out = String::new();
    for c in text.chars().take(LONGEST) {
        if c.is_control() { out.extend(c.escape_debug()) } else { out.push(c) }
    }
    if text.chars().nth(LONGEST).is_some() {
        out.push('…');
    }
    out
}

/// Whether what is shown of a cell is not all it says.
fn is_cut(shown: &str) -> bool {
    shown.ends_with('…') && shown.chars().count() > LONGEST
}

fn python_tuple(shape: &[u64]) -> String {
    match shape {
        [n] => format!("({n},)"),
        _ => format!("({})", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

fn among_numbers(count: usize, numbers: usize) -> String {
    let cells = |n: usize| if n == 1 { "1 cell".to_owned() } else { format!("{n} cells") };
    match count {
        _ if numbers == 0 => "and neither is any other cell of the column".to_owned(),
        1 => format!("unlike {} of the column", cells(numbers)),
        _ => format!("nor are {} more, unlike {} of the column", count - 1, cells(numbers)),
    }
}

fn other_columns(lacking: &[String], more: &[String]) -> String {
    let named = |names: &[String]| {
        format!("the column{} of numbers {}", if names.len() == 1 { "" } else { "s" }, list(names))
    };
    match (lacking, more) {
        ([], []) => "has the columns of numbers of the first file in another order".to_owned(),
        (_, []) => format!("lacks {}, which the first file has", named(lacking)),
        ([], _) => format!("has {}, which the first file lacks", named(more)),
        _ => format!(
            "lacks {}, which the first file has, and has {}, which that lacks",
            named(lacking),
            named(more)
        ),
    }
}

fn list(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|n| format!("`{n}`")).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Why bytes could not be read as a table or a model, or written back: each names the place, what is
/// wrong there, and the way out, which is also there as data ([`Error::remedies`]). Rows count data rows
/// from 1; lines count every line of the file from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source failed.
    #[error("cannot be read: {0}")]
    Read(std::io::Error),
    /// The destination failed.
    #[error("cannot be written: {0}")]
    Write(std::io::Error),
    /// Compressed bytes that end early or are damaged.
    #[error(
        "is not a whole gzip file ({why}); copy or download it again, or remove `.gz` from its name if it is not compressed"
    )]
    Gzip {
        /// What the decoder met.
        why: String,
    },
    /// A format of that name is not known.
    #[error(
        "format `{name}` is not known; give one of csv, tsv, parquet, arrow, npy, npz, xlsx and ods (csv.gz and tsv.gz too), or a file whose name ends so"
    )]
    UnknownFormat {
        /// The word.
        name: String,
    },
    /// A format left out when the program was built.
    #[error(
        "{format} was left out of this build; build with the feature `{format}`, or convert the file to .csv"
    )]
    NotBuilt {
        /// The format.
        format: &'static str,
    },
    /// Bytes of another format.
    #[error("is not {format}; give its true format")]
    NotOfFormat {
        /// The format it was taken for.
        format: &'static str,
    },
    /// A file that lacks its end.
    #[error("is {format} that was cut short; copy or download it again")]
    CutShort {
        /// The format.
        format: &'static str,
    },
    /// A file whose parts do not fit together.
    #[error("is damaged {format} ({why}); copy or download it again")]
    Damaged {
        /// The format.
        format: &'static str,
        /// What its decoder met.
        why: String,
    },
    /// A part of a format that is not understood.
    #[error(
        "uses a part of {format} that is not known here ({what}); write it again without that, or as .csv"
    )]
    Unsupported {
        /// The format.
        format: &'static str,
        /// The part.
        what: String,
    },
    /// More cells than memory.
    #[error(
        "has {rows} rows of {columns} columns of numbers, more than memory can hold; choose fewer columns"
    )]
    TooLarge {
        /// Rows it says it has.
        rows: usize,
        /// Columns of numbers.
        columns: usize,
    },
    /// Cells that hold more than one value.
    #[error(
        "column `{column}` holds {kind}, not one value per cell; take it apart into columns, or exclude it"
    )]
    Nested {
        /// Name of the column.
        column: String,
        /// Its type.
        kind: String,
    },
    /// A column that was asked for and is not of a type of numbers.
    #[error(
        "column `{column}` holds {kind}, not numbers{}; store it as numbers, or exclude it",
        .first.as_ref().map_or(String::new(), |(place, text)| format!(" ({place}: `{text}`)"))
    )]
    NotNumbers {
        /// Name of the column.
        column: String,
        /// Its type.
        kind: String,
        /// The first cell that holds something, and what it says.
        first: Option<(Place, String)>,
    },
    /// Nothing to fit in a typed table.
    #[error(
        "no column is of a type of numbers: column `{column}` holds {kind}; store at least one column as numbers"
    )]
    NoTypedNumbers {
        /// The first column.
        column: String,
        /// Its type.
        kind: String,
    },
    /// A table without columns.
    #[error("has no columns; give at least one column of numbers")]
    NoColumns,
    /// A column that the format to be written cannot hold.
    #[error(
        "column `{column}` holds {kind}, which {format} cannot hold; {instead}{}",
        if *.excludable { ", or exclude the column" } else { "" }
    )]
    CannotHold {
        /// Name of the column.
        column: String,
        /// Its type.
        kind: String,
        /// The format to be written.
        format: &'static str,
        /// What to write instead.
        instead: &'static str,
        /// Whether the format can hold the column if the model leaves it out.
        excludable: bool,
    },
    /// A separator that cannot be distinguished from the text.
    #[error(
        "cells cannot be separated by {delimiter}; give one ASCII character that is neither a quote nor a line end, such as `;`"
    )]
    BadDelimiter {
        /// The separator.
        delimiter: String,
    },
    /// Bytes of another format.
    #[error("is not text but looks like {format}; name the file .{word}, or give its format")]
    NotText {
        /// The format in words.
        format: &'static str,
        /// The word that names it.
        word: &'static str,
    },
    /// A model in the place of a table.
    #[error("is a model that Covary wrote, not a table; give the table it is to be used with")]
    ModelAsTable,
    /// An encoding that is not known.
    #[error("encoding `{name}` is not known; give one such as utf-8, utf-16le or windows-1252")]
    UnknownEncoding {
        /// The word.
        name: String,
    },
    /// Bytes that are no text in an encoding.
    #[error(
        "is not {name} text: byte {at}, after `{text}`, is not of a character; save the file as UTF-8, or name its encoding"
    )]
    NotInEncoding {
        /// The encoding.
        name: &'static str,
        /// Where, from 0.
        at: usize,
        /// What stands before it.
        text: String,
    },
    /// A worksheet that was asked for and is not there.
    #[error("there is no worksheet `{name}`; there are {}", list(.known))]
    UnknownSheet {
        /// The name or number.
        name: String,
        /// The worksheets of the file.
        known: Vec<String>,
    },
    /// A format that is read and not written.
    #[error(
        "{format} is read and not written; write .csv, which spreadsheet programs open, or another format"
    )]
    NotWritten {
        /// The format.
        format: &'static str,
    },
    /// A column that was asked for and is not there.
    #[error("there is no column `{name}`; there are {}", list(.known))]
    UnknownColumn {
        /// The name, number or range asked for.
        name: String,
        /// The columns of the table.
        known: Vec<String>,
    },
    /// A row whose time, or sequence, is missing.
    #[error(
        "{place} has no value in column `{column}`, so nobody knows when or where it belongs; give it one, or remove the row"
    )]
    NoTime {
        /// Where the row is.
        place: Place,
        /// The column of times, or of sequences.
        column: String,
    },
    /// A cell that is no time.
    #[error(
        "`{text}` in {place} of column `{column}` is no time{}; write dates 2020-01-31, months 2020-01, quarters 2020Q1, moments 2020-01-31T12:00, all in one way, or numbers",
        like.as_ref().map_or_else(String::new, |like| format!(" such as `{like}`"))
    )]
    NotATime {
        /// Where the row is.
        place: Place,
        /// The column.
        column: String,
        /// What the cell says.
        text: String,
        /// The first cell of the column, if this is another.
        like: Option<String>,
    },
    /// A time of a curve that is no number.
    #[error(
        "`{text}` in {place} of column `{column}` is no number; times of curves are numbers, such as days since the first"
    )]
    NotANumberedTime {
        /// Where the row is.
        place: Place,
        /// The column.
        column: String,
        /// What the cell says.
        text: String,
    },
    /// Two rows of a sequence at one time.
    #[error(
        "{first} and {second} both have `{text}` in column `{column}`: a sequence has one row at a time; remove one of them{}",
        if *in_sequences { "" } else { ", or say which column tells several sequences apart" }
    )]
    SameTime {
        /// Where the first row is.
        first: Place,
        /// Where the second is.
        second: Place,
        /// The column of times.
        column: String,
        /// The time.
        text: String,
        /// Whether a column tells sequences apart.
        in_sequences: bool,
    },
    /// A time between two steps of a model.
    #[error("`{text}` in {place} of column `{column}` is between two steps of the model, which are {steps}")]
    OffStep {
        /// Where the row is.
        place: Place,
        /// The column of times.
        column: String,
        /// The time.
        text: String,
        /// The steps of the model.
        steps: String,
    },
    /// A range of columns whose end comes first.
    #[error("the range `{range}` ends before it begins; turn it around")]
    BackwardRange {
        /// The range.
        range: String,
    },
    /// Columns of the model that the table does not have.
    #[error(
        "lacks {}, which the model needs{}; columns are matched by name, in any order: rename or add them (a column of gaps will do)",
        list(.missing),
        if .unknown.is_empty() { String::new() } else { format!(" (and has {}, which it does not know)", list(.unknown)) }
    )]
    MissingColumns {
        /// Columns of the model that are missing.
        missing: Vec<String>,
        /// Columns of the table that the model does not know.
        unknown: Vec<String>,
    },
    /// Two columns without a name.
    #[error(
        "columns {first} and {second} have no name; name them in the first line (one column without a name may label the rows), or say how many lines precede the table"
    )]
    UnnamedColumns {
        /// The first of them, counted from 1.
        first: usize,
        /// The second.
        second: usize,
    },
    /// Text in a column of numbers.
    #[error(
        "{place}, column `{column}`: `{text}` is not a number, {}; correct it, declare it a gap if it means one, or exclude the column",
        among_numbers(*.count, *.numbers)
    )]
    TextAmongNumbers {
        /// The first such cell.
        place: Place,
        /// Name of the column.
        column: String,
        /// What the cell says.
        text: String,
        /// Cells of the column that are text.
        count: usize,
        /// Cells of the column that are numbers.
        numbers: usize,
    },
    /// The columns chosen leave none to fit.
    #[error("no column is left to fit: all are set aside; choose fewer to set aside")]
    NothingChosen,
    /// One column whose name holds another separator.
    #[error(
        "has one column, `{header}`, and no numbers; if its cells are separated by `{delimiter}`, declare that separator"
    )]
    OtherDelimiter {
        /// The header.
        header: String,
        /// The separator it holds.
        delimiter: String,
    },
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
        "{place}, column `{column}`: the row ends before it, with {got} cells of {expected}; add the missing cells, or a separator for each gap"
    )]
    ShortRow {
        /// The row.
        place: Place,
        /// The first column without a cell.
        column: String,
        /// Columns named by the header.
        expected: usize,
        /// Cells in the row.
        got: usize,
    },
    /// A row with more cells than the header.
    #[error(
        "{place}, after column `{column}`: {got} cells where the header names {expected} column{}; quote cells that hold a separator, or name the extra columns",
        if *.expected == 1 { "" } else { "s" }
    )]
    LongRow {
        /// The row.
        place: Place,
        /// The last column of the header.
        column: String,
        /// Columns named by the header.
        expected: usize,
        /// Cells in the row.
        got: usize,
    },
    /// A quote that is opened and never closed.
    #[error(
        "{} (line {line}): a quote is opened at `{text}` and never closed; close it, or remove it",
        if *.row == 0 { "the header".to_owned() } else { format!("row {}", .row) }
    )]
    UnclosedQuote {
        /// The row, data rows from 1; 0 is the header.
        row: usize,
        /// The line the quote is on.
        line: usize,
        /// What follows it.
        text: String,
    },
    /// A line that does not end within the memory there is for it.
    #[error(
        "has a line that goes on for more than {}; end lines with a line feed, or allow more memory",
        amount(*.bytes)
    )]
    LongLine {
        /// Bytes that were read of it.
        bytes: u64,
    },
    /// Nothing to fit.
    #[error(
        "{place}, column `{column}`: `{text}` is not a number, and no other column holds only numbers and gaps; leave unknown cells empty, separate cells by commas and write decimals with a point, or declare another separator or decimal commas"
    )]
    NoNumericColumn {
        /// The first cell that is not a number, in the first column that has one.
        place: Place,
        /// Name of that column.
        column: String,
        /// What the cell says.
        text: String,
    },
    /// A number beyond the range of f64, or an infinity.
    #[error(
        "{place}, column `{column}`: `{text}` is not a finite number; correct the cell or leave it empty"
    )]
    Infinite {
        /// The row.
        place: Place,
        /// Name of the column.
        column: String,
        /// What the cell says.
        text: String,
    },
    /// Bytes that are not a NumPy array.
    #[error("is not a whole NumPy array ({why}); write it with numpy.save, or give its true format")]
    NotNpy {
        /// What is wrong.
        why: String,
    },
    /// Bytes that are not an archive of NumPy arrays.
    #[error(
        "is not a whole archive of NumPy arrays ({why}); write it with numpy.savez, or give its true format"
    )]
    NotNpz {
        /// What is wrong.
        why: String,
    },
    /// An array of an archive that cannot be read.
    #[error("array `{name}` {error}")]
    InArray {
        /// The array.
        name: String,
        /// What is wrong with it.
        error: Box<Error>,
    },
    /// An array of something else than real numbers.
    #[error("holds {holds}, not numbers; save it as numbers: numpy.save(FILE, a.astype('float64'))")]
    ArrayType {
        /// What it holds.
        holds: String,
    },
    /// An array that has not one or two dimensions.
    #[error(
        "has shape {} and a table has rows and columns; save the part that is one, or reshape it: numpy.save(FILE, a.reshape(rows, columns))",
        python_tuple(.shape)
    )]
    ArrayShape {
        /// Its lengths.
        shape: Vec<u64>,
    },
    /// An array without cells.
    #[error("has shape {}, which holds no cells; give at least two rows of data", python_tuple(.shape))]
    NoCells {
        /// Its lengths.
        shape: Vec<u64>,
    },
    /// An array with fewer bytes than its shape needs.
    #[error(
        "ends early: {got} bytes cannot be an array of shape {} and type {code}; copy or save it again",
        python_tuple(.shape)
    )]
    ArrayEnds {
        /// Its lengths.
        shape: Vec<u64>,
        /// NumPy's code for the type of its items.
        code: &'static str,
        /// Bytes there are for its items.
        got: u64,
    },
    /// An array with more bytes than its shape needs.
    #[error("goes on behind its array of shape {}; save one array per file, or several with numpy.savez", python_tuple(.shape))]
    BehindArray {
        /// Its lengths.
        shape: Vec<u64>,
    },
    /// An array that was asked for and is not there.
    #[error("there is no array `{name}`; there are {}", list(.known))]
    UnknownArray {
        /// The requested name.
        name: String,
        /// The arrays of the file and what they are.
        known: Vec<String>,
    },
    /// No array is a table of numbers.
    #[error(
        "has no array of numbers in two dimensions{}; save one with numpy.savez, or choose one by its name",
        if .known.is_empty() { String::new() } else { format!(" among {}", list(.known)) }
    )]
    NoArray {
        /// The arrays of the file and what they are.
        known: Vec<String>,
    },
    /// More than one array is a table of numbers.
    #[error("has several arrays of numbers: {}; choose one by its name", list(.names))]
    SeveralArrays {
        /// Their names.
        names: Vec<String>,
    },
    /// An integer that f64 cannot hold.
    #[error(
        "{place}, column `{column}`: {value} has more digits than a float64 holds; save the column as float64 if rounding does no harm, or exclude it"
    )]
    LongInteger {
        /// The row.
        place: Place,
        /// Name of the column.
        column: String,
        /// The integer.
        value: i128,
    },
    /// Nothing that the format could hold.
    #[error("there is no column of numbers, and NumPy's arrays hold nothing else; write .csv instead")]
    OnlyText,
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
    /// Not a model file.
    #[error(
        "is not a covary model file: it looks like {looks_like}; give a file that covary wrote for a fitted model"
    )]
    NotAModel {
        /// What the first bytes say.
        looks_like: &'static str,
    },
    /// A model file that ends too early.
    #[error("is a model file cut short: {got} of {expected} bytes are there; copy it again, or fit again")]
    Truncated {
        /// Bytes there should be.
        expected: u64,
        /// Bytes there are.
        got: u64,
    },
    /// A model file of a later version.
    #[error(
        "was written by {created_by} as version {version} of the model file; this covary reads up to version {supported}; upgrade it"
    )]
    NewerModel {
        /// The program that wrote it.
        created_by: String,
        /// Version of the file.
        version: u64,
        /// Latest version that can be read.
        supported: u64,
    },
    /// A model of a kind this version does not know.
    #[error(
        "holds a model of kind `{kind}`, written by {created_by}; this covary reads `linear-gaussian`, `mixture` and `ica`; upgrade it"
    )]
    UnknownKind {
        /// The kind.
        kind: String,
        /// The program that wrote it.
        created_by: String,
    },
    /// A model file whose contents contradict each other.
    #[error(
        "is a damaged model file: its {part} {why}; copy it again, read it with the covary that wrote it, or fit again"
    )]
    BrokenModel {
        /// The array or part at fault.
        part: String,
        /// What is wrong with it.
        why: String,
    },
    /// A table beyond the memory that [`ReadOptions::max_memory`](super::ReadOptions::max_memory) allows.
    #[error(
        "takes {} of memory or more, and {} are allowed{}; read fewer rows or columns, or raise the limit if the machine has more",
        amount(*.bytes),
        amount(*.limit),
        if *.is_text { " (a text table takes three times its bytes)" } else { "" }
    )]
    OverMemory {
        /// Bytes it takes.
        bytes: u64,
        /// Bytes it may take.
        limit: u64,
        /// Whether the bytes are those of the text, a third of what is needed to read it.
        is_text: bool,
    },
    /// What has to be read as a whole.
    #[error("{what} cannot be read block by block; write .npy, .parquet or UTF-8 text, or allow more memory")]
    NotInBlocks {
        /// What it is.
        what: String,
    },
    /// A file that was written to while it was gone through.
    #[error("changed while it was read, so that it was not one table; begin again once nothing writes to it")]
    Changed,
    /// A file whose columns are not those of the first of its table.
    #[error("{}; give files of the same columns, in the same order", other_columns(.lacking, .more))]
    OtherColumns {
        /// Columns of numbers of the first file that are none here.
        lacking: Vec<String>,
        /// Columns of numbers that are none in the first file.
        more: Vec<String>,
    },
    /// What is wrong with one of several files.
    #[error("{name}: {error}")]
    InFile {
        /// The file.
        name: String,
        /// What is wrong with it.
        error: Box<Error>,
    },
    /// A file that keeps no passes.
    #[error("is not a checkpoint of passes; name another file, or delete it to begin anew")]
    NotACheckpoint,
    /// A file that keeps the passes over another table.
    #[error(
        "is the checkpoint of another table, or of this one before it changed; call with that table, name another file, or delete it to begin anew"
    )]
    OtherCheckpoint,
    /// An archive that is too large to be put together in memory.
    #[error(
        "takes {} of memory or more, and an archive may take {}; write .npy, .parquet or .csv, which need no room for it",
        amount(*.bytes),
        amount(*.limit)
    )]
    LargeArchive {
        /// Bytes it takes.
        bytes: u64,
        /// Bytes it may take.
        limit: u64,
    },
    /// A request the model refused.
    #[error(transparent)]
    Request(#[from] crate::Error),
}

/// Bytes in words.
pub fn amount(bytes: u64) -> String {
    match bytes as f64 {
        b if b >= 1e9 => format!("{:.1} GB", b / 1e9),
        b if b >= 1e6 => format!("{:.1} MB", b / 1e6),
        _ => format!("{bytes} bytes"),
    }
}

impl Error {
    /// What the caller can ask for differently; none where only the file itself can be mended.
    ///
    /// ```
    /// use covary::{Remedy, io::csv};
    /// let error = csv::read("x\n1,5\n2,5\n".as_bytes()).unwrap_err();
    /// assert_eq!(error.remedies(), [Remedy::DecimalComma]);
    /// ```
    pub fn remedies(&self) -> Vec<Remedy> {
        match self {
            Self::UnknownFormat { .. }
            | Self::NotOfFormat { .. }
            | Self::NotNpy { .. }
            | Self::NotNpz { .. } => vec![Remedy::Format(None)],
            Self::NotText { word, .. } => vec![Remedy::Format(Some(word))],
            Self::NotInEncoding { .. } | Self::UnknownEncoding { .. } => vec![Remedy::Encoding],
            Self::OtherDelimiter { delimiter, .. } => vec![Remedy::Delimiter(Some(delimiter.clone()))],
            Self::NoNumericColumn { .. } => vec![Remedy::Delimiter(None), Remedy::DecimalComma],
            Self::UnnamedColumns { .. } => vec![Remedy::Skip],
            Self::TextAmongNumbers { text, column, place, .. } => {
                // 1,5 is a number where decimals are written so.
                let is_decimal = text.contains(',') && text.replacen(',', ".", 1).parse::<f64>().is_ok();
                let comma = is_decimal.then_some(Remedy::DecimalComma);
                let gap = (!is_cut(text)).then(|| Remedy::Gaps(text.clone()));
                // The first row is the first line: of names, it may be.
                let names = (place.line == Some(1)).then_some(Remedy::Header(true));
                names.into_iter().chain(comma).chain(gap).chain([Remedy::Exclude(column.clone())]).collect()
            }
            Self::Nested { column, .. }
            | Self::NotNumbers { column, .. }
            | Self::LongInteger { column, .. }
            | Self::CannotHold { column, excludable: true, .. } => vec![Remedy::Exclude(column.clone())],
            Self::LongRow { expected: 1, got: 2, .. } => vec![Remedy::DecimalComma],
            Self::TooLarge { .. } => vec![Remedy::Columns],
            Self::NoArray { .. } | Self::SeveralArrays { .. } => vec![Remedy::Array],
            Self::OverMemory { .. } | Self::LongLine { .. } => vec![Remedy::MaxMemory],
            Self::InArray { error, .. } | Self::InFile { error, .. } => error.remedies(),
            Self::Request(error) => error.remedies(),
            _ => Vec::new(),
        }
    }

    /// What is wrong with a piece of a text, whose columns go by number, after these numbers of rows and lines of it.
    pub(super) fn in_piece(
        self,
        (rows, lines): (usize, usize),
        choice: &super::ColumnChoice,
        names: &[String],
    ) -> Self {
        let named = |column: String| match &choice.columns {
            super::Columns::Listed(listed) => {
                let k = listed.iter().position(|number| *number == column);
                k.map_or(column, |k| names[k].clone())
            }
            _ => column,
        };
        let moved = |place: Place| Place { row: place.row + rows, line: place.line.map(|line| line + lines) };
        match self {
            Self::TextAmongNumbers { place, column, text, count, numbers } => {
                let (place, column) = (moved(place), named(column));
                Self::TextAmongNumbers { place, column, text, count, numbers }
            }
            Self::Infinite { place, column, text } => {
                Self::Infinite { place: moved(place), column: named(column), text }
            }
            Self::ShortRow { place, column, expected, got } => {
                Self::ShortRow { place: moved(place), column: named(column), expected, got }
            }
            Self::LongRow { place, column, expected, got } => {
                Self::LongRow { place: moved(place), column: named(column), expected, got }
            }
            // A piece has no header: what would be its line is a row.
            Self::UnclosedQuote { row, line, text } => {
                Self::UnclosedQuote { row: row + rows + 1, line: line + lines, text }
            }
            other => other,
        }
    }

    /// What tells the columns of a file from those of the first.
    pub(super) fn other_columns(first: &[String], here: &[String]) -> Self {
        let without = |all: &[String], some: &[String]| -> Vec<String> {
            all.iter().filter(|name| !some.contains(name)).cloned().collect()
        };
        Self::OtherColumns { lacking: without(first, here), more: without(here, first) }
    }

    /// Says which of several files is wrong; what the caller does with the rows is no fault of the file.
    pub(super) fn in_file(self, name: Option<&str>) -> Self {
        match (name, self) {
            (_, error @ (Self::Request(_) | Self::Write(_) | Self::InFile { .. })) | (None, error) => error,
            (Some(name), error) => Self::InFile { name: name.to_owned(), error: Box::new(error) },
        }
    }

    /// Says which array of a file is wrong, unless a row or column is named already.
    #[cfg(feature = "npy")]
    pub(super) fn in_array(self, name: &str) -> Self {
        match self {
            Self::NotNpy { .. }
            | Self::ArrayType { .. }
            | Self::ArrayShape { .. }
            | Self::NoCells { .. }
            | Self::ArrayEnds { .. }
            | Self::BehindArray { .. } => Self::InArray { name: name.to_owned(), error: Box::new(self) },
            other => other,
        }
    }

    pub(super) fn gzip(error: std::io::Error) -> Self {
        use std::io::ErrorKind as Kind;
        match error.kind() {
            // A few bytes behind a whole stream are taken for the beginning of another one.
            Kind::UnexpectedEof => {
                Self::Gzip { why: "it ends early, or a few other bytes stand behind it".to_owned() }
            }
            // What follows a whole stream must be another one.
            Kind::InvalidInput if error.to_string().contains("header") => {
                Self::Gzip { why: "other bytes stand before it or behind it".to_owned() }
            }
            Kind::InvalidInput | Kind::InvalidData => Self::Gzip { why: error.to_string() },
            _ => Self::Read(error),
        }
    }

    pub(super) fn broken(part: &str, why: impl Into<String>) -> Self {
        Self::BrokenModel { part: part.to_owned(), why: why.into() }
    }
}
