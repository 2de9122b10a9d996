use super::Delimiter;
use crate::Remedy;
use std::fmt;

/// What was assumed of a file that does not say it, or what is odd about its columns: a sentence each, and the option
/// that decides otherwise ([`remedies`](Self::remedies)).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Text that is not UTF-8.
    Encoding {
        /// The encoding it was read in.
        name: &'static str,
        /// Whether the bytes say so, and not only that they are not UTF-8.
        certain: bool,
    },
    /// Cells that are not separated by commas, or numbers that have a decimal comma.
    Delimiter {
        /// What separates the cells.
        delimiter: Delimiter,
        /// Whether numbers are written `1,5`.
        decimal_comma: bool,
    },
    /// A number such as `1,234`, read as 1.234, that could have a separator of thousands.
    Thousands {
        /// The number as it is written.
        text: String,
    },
    /// Lines above the table.
    Above {
        /// How many, blank ones not counted.
        n_lines: usize,
        /// What the first one says.
        text: String,
    },
    /// A first line that holds numbers as the other lines do.
    NoHeader,
    /// A first line of numbers that names the columns.
    NumericHeader,
    /// A header with one name fewer than the rows have cells, as R writes it.
    ShortHeader,
    /// One of several worksheets.
    Sheet {
        /// The one that was read.
        name: String,
        /// All of them.
        all: Vec<String>,
    },
    /// When the rows happened.
    Times {
        /// The steps, from when to when, and what is missing.
        words: String,
        /// Whether rows stand in the order of time.
        sorted: bool,
    },
    /// Columns of numbers that look like identifiers or dates and not like measurements.
    Identifiers {
        /// Their names, and what makes them look so.
        columns: Vec<(String, Pattern)>,
    },
}

/// What makes numbers look like labels of their rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pattern {
    /// Whole numbers of one length that begin with zeros.
    LeadingZeros,
    /// Days, such as 20240131.
    Dates,
    /// 1, 2, 3, … or 0, 1, 2, …
    RowNumbers,
    /// Whole numbers without a gap, each larger than the one before.
    Ascending,
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LeadingZeros => "leading zeros",
            Self::Dates => "dates",
            Self::RowNumbers => "numbers of the rows",
            Self::Ascending => "whole numbers that only ascend",
        })
    }
}

impl Note {
    /// Whether it is likely enough to be wrong that nobody should miss it.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::NumericHeader | Self::Thousands { .. } | Self::Identifiers { .. })
    }

    /// The option that decides otherwise.
    pub fn remedies(&self) -> Vec<Remedy> {
        match self {
            Self::Encoding { .. } => vec![Remedy::Encoding],
            Self::Delimiter { .. } => vec![Remedy::Delimiter(None)],
            Self::Thousands { .. } => vec![Remedy::DecimalPoint],
            Self::Above { .. } => vec![Remedy::Skip],
            Self::NoHeader => vec![Remedy::Header(true)],
            Self::NumericHeader => vec![Remedy::Header(false)],
            Self::ShortHeader | Self::Times { .. } => Vec::new(),
            Self::Sheet { .. } => vec![Remedy::Sheet],
            Self::Identifiers { columns } => {
                vec![Remedy::Id(columns.iter().map(|(name, _)| name.clone()).collect())]
            }
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encoding { name, certain: true } => write!(f, "read as {name} text"),
            Self::Encoding { name, certain: false } => write!(f, "not UTF-8, so read as {name} text"),
            Self::Delimiter { delimiter, decimal_comma } => {
                let decimals = if *decimal_comma { ", decimals by a comma" } else { "" };
                write!(f, "cells are separated by {}{decimals}", delimiter.words())
            }
            Self::Thousands { text } => write!(
                f,
                "`{text}` is read with a decimal comma, not with a separator of thousands: remove the commas if they are such"
            ),
            Self::Above { n_lines: 1, text } => {
                write!(f, "the line above the table is not part of it: `{text}`")
            }
            Self::Above { n_lines, text } => {
                write!(f, "{n_lines} lines above the table are not part of it: `{text}`, …")
            }
            Self::NoHeader => f.write_str(
                "no header: the first line holds numbers as the others do, and columns are called x1, x2, …",
            ),
            Self::NumericHeader => {
                f.write_str("the first line holds only numbers and was read as the names of the columns")
            }
            Self::ShortHeader => f.write_str(
                "the header has one name fewer than the rows have cells: the first column labels the rows",
            ),
            Self::Sheet { name, all } => {
                let others: Vec<String> =
                    all.iter().filter(|n| *n != name).map(|n| format!("`{n}`")).collect();
                write!(f, "worksheet `{name}` is read, and not {}", others.join(", "))
            }
            Self::Times { words, sorted } => {
                let order = "; rows are not in the order of time, which they leave in all the same";
                write!(f, "{words}{}", if *sorted { "" } else { order })
            }
            Self::Identifiers { columns } => {
                let said: Vec<String> =
                    columns.iter().map(|(name, why)| format!("`{name}` ({why})")).collect();
                let (verb, them) =
                    if said.len() == 1 { ("looks", "it labels") } else { ("look", "they label") };
                write!(
                    f,
                    "{} {verb} like identifiers or dates and not like measurements, and would be modeled; set aside what labels the rows, if {them} them",
                    said.join(", ")
                )
            }
        }
    }
}
