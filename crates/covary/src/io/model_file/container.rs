//! The safetensors layout, of which this page is all that is needed.
//!
//! ```text
//! length of the index (u64) | index (JSON, padded with spaces) | numbers (f64), all little-endian
//! index: {"__metadata__": {key: text}, name: {"dtype": "F64", "shape": [..], "data_offsets": [start, end]}, ..}
//! ```
//!
//! The first of the keys is `checksum`: sixteen hexadecimal digits of the CRC-64 of the whole file, taken with
//! zeros in the place of these digits.
//!
//! The crate of that name reads what is written here (a test sees to it). It is not used to read: a
//! file cut short and one with bytes too many are one error to it, its sums of offsets overflow on
//! hostile files in builds that check, and it needs the whole file before it looks at any of it.

use super::Error;
use crate::Matrix;
use crate::checksum::Checksum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Read, Write};

/// Longest index believed: far beyond any model, far below what text or another format says here.
const LONGEST_INDEX: u64 = 1 << 40;
const METADATA_KEY: &str = "covary";
const CHECKSUM_KEY: &str = "checksum";
/// What an index with a checksum begins with, and what stands in the place of its digits while it is taken.
const BEFORE_CHECKSUM: &[u8] = br#"{"__metadata__":{"checksum":""#;
const NO_CHECKSUM: [u8; 16] = *b"0000000000000000";

#[derive(Serialize, Deserialize)]
struct Index {
    #[serde(rename = "__metadata__", default)]
    metadata: BTreeMap<String, String>,
    #[serde(flatten)]
    arrays: BTreeMap<String, Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

/// Writes the header and the arrays, which come out in the order of their names.
pub(super) fn write(header: String, arrays: &Arrays, mut out: impl Write) -> Result<(), Error> {
    let mut end = 0;
    let mut entry = |array: &Array| {
        let start = end;
        end += 8 * array.values.len();
        Entry { dtype: "F64".to_owned(), shape: array.shape.clone(), data_offsets: (start, end) }
    };
    let unknown = String::from_utf8_lossy(&NO_CHECKSUM).into_owned();
    let index = Index {
        metadata: BTreeMap::from([(CHECKSUM_KEY.to_owned(), unknown), (METADATA_KEY.to_owned(), header)]),
        arrays: arrays.0.iter().map(|(name, array)| (name.clone(), entry(array))).collect(),
    };
    let mut index = serde_json::to_string(&index).expect("text and numbers are JSON");
    index.extend(std::iter::repeat_n(' ', index.len().next_multiple_of(8) - index.len()));
    let mut bytes = (index.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(index.as_bytes());
    bytes.extend(arrays.0.values().flat_map(|array| &array.values).flat_map(|v| v.to_le_bytes()));
    let mut checksum = Checksum::new();
    checksum.add(&bytes);
    let at = 8 + BEFORE_CHECKSUM.len();
    debug_assert!(bytes[8..].starts_with(BEFORE_CHECKSUM) && bytes[at..].starts_with(&NO_CHECKSUM));
    bytes[at..at + NO_CHECKSUM.len()].copy_from_slice(digits(&checksum).as_bytes());
    out.write_all(&bytes).and_then(|()| out.flush()).map_err(Error::Write)
}

fn digits(checksum: &Checksum) -> String {
    format!("{:016x}", checksum.value())
}

/// A file whose index has been read and whose numbers have not.
pub(super) struct Opened<R> {
    /// The checksum as it was written, none in a file of version 1 or 2, and that of what was read.
    claimed: Option<Vec<u8>>,
    checksum: Checksum,
    /// What stands under our key.
    pub(super) header: String,
    arrays: BTreeMap<String, Entry>,
    start: u64,
    rest: R,
}

/// Whether bytes begin as those of a model do, of any version: the first key of an index is one of ours.
pub(in crate::io) fn is_one(bytes: &[u8]) -> bool {
    const BEGINNING: &str = r#"{"__metadata__":{""#;
    let index = bytes.get(8..).unwrap_or_default();
    let key = index.strip_prefix(BEGINNING.as_bytes()).unwrap_or_default();
    [METADATA_KEY, CHECKSUM_KEY].iter().any(|ours| key.starts_with(ours.as_bytes()))
}

/// Reads as far as the index. Foreign files are refused by their first bytes.
pub(super) fn open<R: Read>(mut input: R) -> Result<Opened<R>, Error> {
    let first = at_most(9, &mut input)?;
    let &[ref length @ .., b'{'] = first.as_slice() else { return Err(foreign(&first)) };
    let length = <[u8; 8]>::try_from(length).map_err(|_| foreign(&first))?;
    let length = u64::from_le_bytes(length);
    if !(1..=LONGEST_INDEX).contains(&length) {
        return Err(foreign(&first));
    }
    let mut index = vec![b'{'];
    index.extend(at_most(length - 1, &mut input)?);
    if (index.len() as u64) < length {
        return Err(Error::Truncated { expected: 8 + length, got: 8 + index.len() as u64 });
    }
    let mut checksum = Checksum::new();
    checksum.add(&length.to_le_bytes());
    let behind =
        index.strip_prefix(BEFORE_CHECKSUM).and_then(|rest| rest.split_at_checked(NO_CHECKSUM.len()));
    let claimed = behind.map(|(claimed, rest)| {
        for part in [BEFORE_CHECKSUM, &NO_CHECKSUM, rest] {
            checksum.add(part);
        }
        claimed.to_vec()
    });
    let mut index: Index =
        serde_json::from_slice(&index).map_err(|e| Error::broken("index", e.to_string()))?;
    let header = index
        .metadata
        .remove(METADATA_KEY)
        .ok_or(Error::NotAModel { looks_like: "safetensors written by another program" })?;
    Ok(Opened { claimed, checksum, header, arrays: index.arrays, start: 8 + length, rest: input })
}

impl<R: Read> Opened<R> {
    /// Whether the file says what its checksum is.
    pub(super) fn has_checksum(&self) -> bool {
        self.claimed.is_some()
    }

    /// Reads the numbers. They must lie side by side and end with the file.
    pub(super) fn arrays(mut self) -> Result<Arrays, Error> {
        let mut entries: Vec<(String, Entry)> = self.arrays.into_iter().collect();
        entries.sort_by_key(|(_, entry)| entry.data_offsets);
        let mut end = 0;
        for (name, entry) in &entries {
            let n = entry.shape.iter().try_fold(8_usize, |n, &m| n.checked_mul(m));
            if entry.dtype != "F64" {
                return Err(Error::broken(name, format!("holds {} instead of F64", entry.dtype)));
            }
            if entry.data_offsets.0 != end || n.and_then(|n| n.checked_add(end)) != Some(entry.data_offsets.1)
            {
                let (start, stop) = entry.data_offsets;
                let why = format!("of shape {:?} cannot lie at bytes {start} to {stop}", entry.shape);
                return Err(Error::broken(name, why));
            }
            end = entry.data_offsets.1;
        }
        let data = at_most((end as u64).saturating_add(1), &mut self.rest)?;
        let (expected, got) = (self.start.saturating_add(end as u64), self.start + data.len() as u64);
        if got < expected {
            return Err(Error::Truncated { expected, got });
        }
        if got > expected {
            return Err(Error::broken("file", format!("goes on after its {expected} bytes")));
        }
        self.checksum.add(&data);
        if self.claimed.is_some_and(|claimed| claimed != digits(&self.checksum).as_bytes()) {
            return Err(Error::broken("checksum", "is not that of its bytes, some of which have changed"));
        }
        let number = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let array = |entry: Entry| Array {
            values: data[entry.data_offsets.0..entry.data_offsets.1].chunks_exact(8).map(number).collect(),
            shape: entry.shape,
        };
        Ok(Arrays(entries.into_iter().map(|(name, entry)| (name, array(entry))).collect()))
    }
}

/// Up to this many bytes; what is claimed and not there takes no memory.
fn at_most(n: u64, input: &mut impl Read) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    input.take(n).read_to_end(&mut bytes).map_err(Error::Read)?;
    Ok(bytes)
}

fn foreign(first: &[u8]) -> Error {
    let looks_like = match first {
        [] => "an empty file",
        [0x1f, 0x8b, ..] => "gzip",
        [b'P', b'A', b'R', b'1', ..] => "a Parquet table",
        [b'P', b'K', 3, 4, ..] => "a zip archive",
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => "an Arrow table",
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => "a NumPy array",
        text if text.iter().all(|b| !b.is_ascii_control() || b.is_ascii_whitespace()) => {
            "text, such as a CSV table"
        }
        _ => "bytes of another format",
    };
    Error::NotAModel { looks_like }
}

/// Arrays by name.
#[derive(Default)]
pub(super) struct Arrays(BTreeMap<String, Array>);

struct Array {
    shape: Vec<usize>,
    values: Vec<f64>,
}

impl Arrays {
    pub(super) fn put(&mut self, name: &str, values: Vec<f64>) {
        self.0.insert(name.to_owned(), Array { shape: vec![values.len()], values });
    }

    pub(super) fn put_matrix(&mut self, name: &str, matrix: &Matrix) {
        let shape = vec![matrix.n_rows(), matrix.n_columns()];
        self.0.insert(name.to_owned(), Array { shape, values: matrix.as_slice().to_vec() });
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn get(&self, name: &str) -> Result<&[f64], Error> {
        self.0.get(name).map(|array| array.values.as_slice()).ok_or_else(|| absent(name))
    }

    pub(super) fn take(&mut self, name: &str) -> Result<Vec<f64>, Error> {
        let Array { shape, values } = self.remove(name)?;
        if shape.len() == 1 { Ok(values) } else { Err(dimensions(name, &shape, 1)) }
    }

    pub(super) fn take_matrix(&mut self, name: &str) -> Result<Matrix, Error> {
        let Array { shape, values } = self.remove(name)?;
        let &[n_rows, n_columns] = shape.as_slice() else { return Err(dimensions(name, &shape, 2)) };
        Matrix::from_vec(n_rows, n_columns, values).map_err(|e| Error::broken(name, e.to_string()))
    }

    fn remove(&mut self, name: &str) -> Result<Array, Error> {
        self.0.remove(name).ok_or_else(|| absent(name))
    }
}

fn absent(name: &str) -> Error {
    Error::broken(name, "is missing")
}

fn dimensions(name: &str, shape: &[usize], expected: usize) -> Error {
    Error::broken(name, format!("has {} dimensions instead of {expected}", shape.len()))
}
