//! Tables from and to bytes: one file per format, over [`Read`](std::io::Read) and
//! [`Write`](std::io::Write), never a path.
//!
//! A new format is a new file here with `read(impl Read) -> Result<Table, Error>`.

pub mod csv;
mod error;
#[cfg(test)]
mod tests;

pub use csv::{ColumnKind, Table};
pub use error::Error;
