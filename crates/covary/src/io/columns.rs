//! Which columns take part, by name or range.

use super::Error;
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// Which columns of a file take part in the model. All others are kept aside and pass through.
///
/// An entry is a column's name; its number, counted from 1; or a range of either, `first:last`, in
/// which either end may be left out. A name that reads like a number or a range counts as a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnChoice {
    /// These …
    pub columns: Columns,
    /// … but not these …
    pub exclude: Vec<String>,
    /// … nor these, which label the rows.
    pub id: Vec<String>,
}

/// Which columns to begin with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Columns {
    /// Every column of numbers.
    #[default]
    Numbers,
    /// These entries.
    Listed(Vec<String>),
    /// The columns of a model, by their exact names.
    OfModel {
        /// Those that must be there.
        needed: Vec<String>,
        /// Those that may.
        welcome: Vec<String>,
    },
}

/// What was stated about a column before its cells were seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Takes part if it holds numbers.
    Open,
    /// Takes part: it must hold numbers.
    Asked,
    /// Kept aside.
    Aside,
}

impl ColumnChoice {
    /// Whether the columns are named, and not all those of numbers.
    pub(super) fn is_made(&self) -> bool {
        self.columns != Columns::Numbers
    }

    /// One role per name.
    pub(super) fn roles(&self, names: &[String]) -> Result<Vec<Role>, Error> {
        let places: HashMap<&str, usize> = names.iter().enumerate().map(|(j, n)| (n.as_str(), j)).collect();
        let open = if self.columns == Columns::Numbers { Role::Open } else { Role::Aside };
        let mut roles = vec![open; names.len()];
        match &self.columns {
            Columns::Numbers => {}
            Columns::Listed(entries) => assign(&mut roles, entries, Role::Asked, names, &places)?,
            Columns::OfModel { needed, welcome } => {
                for name in needed {
                    let Some(&j) = places.get(name.as_str()) else {
                        return Err(missing(needed, names));
                    };
                    roles[j] = Role::Asked;
                }
                for name in welcome {
                    if let Some(&j) = places.get(name.as_str()) {
                        roles[j] = Role::Asked;
                    }
                }
            }
        }
        assign(&mut roles, &self.exclude, Role::Aside, names, &places)?;
        assign(&mut roles, &self.id, Role::Aside, names, &places)?;
        Ok(roles)
    }
}

/// The columns that entries name, in the order of the table; entries are written as for [`ColumnChoice`].
///
/// ```
/// let names = ["id", "ash", "hue", "proline"].map(str::to_owned);
/// let entries = ["ash:hue", "4"].map(str::to_owned);
/// assert_eq!(covary::io::columns_named(&entries, &names)?, [1, 2, 3]);
/// # Ok::<(), covary::io::Error>(())
/// ```
///
/// # Errors
/// [`Error::UnknownColumn`] and [`Error::BackwardRange`].
pub fn columns_named(entries: &[String], names: &[String]) -> Result<Vec<usize>, Error> {
    let places: HashMap<&str, usize> = names.iter().enumerate().map(|(j, n)| (n.as_str(), j)).collect();
    let mut roles = vec![Role::Aside; names.len()];
    assign(&mut roles, entries, Role::Asked, names, &places)?;
    Ok((0..names.len()).filter(|&j| roles[j] == Role::Asked).collect())
}

fn assign(
    roles: &mut [Role],
    entries: &[String],
    role: Role,
    names: &[String],
    places: &HashMap<&str, usize>,
) -> Result<(), Error> {
    for entry in entries {
        roles[find(entry, names, places)?].fill(role);
    }
    Ok(())
}

fn missing(wanted: &[String], names: &[String]) -> Error {
    let without = |a: &[String], b: &[String]| a.iter().filter(|n| !b.contains(n)).cloned().collect();
    Error::MissingColumns { missing: without(wanted, names), unknown: without(names, wanted) }
}

fn find(
    entry: &str,
    names: &[String],
    places: &HashMap<&str, usize>,
) -> Result<RangeInclusive<usize>, Error> {
    let unknown = |name: &str| Error::UnknownColumn { name: name.to_owned(), known: names.to_vec() };
    let one = |name: &str| {
        let by_number =
            || name.parse::<usize>().ok().filter(|n| (1..=names.len()).contains(n)).map(|n| n - 1);
        places.get(name).copied().or_else(by_number)
    };
    let trimmed = entry.trim();
    if let Some(j) = one(trimmed) {
        return Ok(j..=j);
    }
    // Names may hold colons: every place to cut is tried.
    for (at, _) in trimmed.match_indices(':') {
        let (first, last) = (trimmed[..at].trim(), trimmed[at + 1..].trim());
        let first = if first.is_empty() { Some(0) } else { one(first) };
        let last = if last.is_empty() { names.len().checked_sub(1) } else { one(last) };
        if let (Some(first), Some(last)) = (first, last) {
            return if first <= last {
                Ok(first..=last)
            } else {
                Err(Error::BackwardRange { range: trimmed.to_owned() })
            };
        }
    }
    Err(unknown(trimmed))
}

/// Names must tell columns apart; one column may go without, as R and pandas write row labels.
pub(super) fn check_names(names: &[String]) -> Result<(), Error> {
    let mut seen = HashMap::new();
    for (j, name) in names.iter().enumerate() {
        if let Some(first) = seen.insert(name, j) {
            let (first, second) = (first + 1, j + 1);
            return Err(if name.is_empty() {
                Error::UnnamedColumns { first, second }
            } else {
                Error::DuplicateColumn { name: name.clone(), first, second }
            });
        }
    }
    Ok(())
}
