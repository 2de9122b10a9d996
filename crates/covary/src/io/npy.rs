//! NumPy's array files.
//!
//! The format is a short header, a Python dictionary of three entries, before the items. It is read
//! here because the crates for it believe the header: a file of some bytes may claim any number of
//! cells, and must not get memory for them.

use super::blocks::Block;
use super::columns::{Role, check_names};
use super::error::Place;
use super::gaps::Gaps;
use super::npz::Archive;
use super::sheet::Sheet;
use super::table::Body;
use super::{ColumnKind, Error, Input, ReadOptions, Table};
use crate::{Dataset, Matrix};
use half::f16;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Reads the array of an `.npy` file.
pub(super) fn read<R: Read>(input: Input<R>, gzip: bool, options: &ReadOptions) -> Result<Table, Error> {
    match input {
        Input::File(mut file) if !gzip => {
            let size = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|m| m.len());
            read_array(Source { from: &mut file, size, fail: Error::Read }, None, options)
        }
        Input::File(file) => read_stream(file, gzip, options),
        Input::Stream(stream) => read_stream(stream, gzip, options),
    }
}

fn read_stream(mut stream: impl Read, gzip: bool, options: &ReadOptions) -> Result<Table, Error> {
    if gzip {
        let mut stream = flate2::read::MultiGzDecoder::new(stream);
        read_array(Source { from: &mut stream, size: None, fail: Error::gzip }, None, options)
    } else {
        read_array(Source { from: &mut stream, size: None, fail: Error::Read }, None, options)
    }
}

fn read_array(
    mut source: Source<'_>,
    names: Option<Vec<String>>,
    options: &ReadOptions,
) -> Result<Table, Error> {
    let header = Header::read(&mut source)?;
    read_items(source, &header, names, options)
}

/// The columns of numbers of an array that is gone through block by block, and how many others there are.
pub(super) fn numeric_names(file: &File, options: &ReadOptions) -> Result<(Vec<String>, usize), Error> {
    let places = Blocks::open(file, options)?.places;
    Ok((places.numeric_names(), places.n_aside()))
}

/// Fills the rows of an array into blocks.
pub(super) fn fill(file: &File, options: &ReadOptions, to: &mut Block<'_>) -> Result<(), Error> {
    Blocks::open(file, options)?.fill(to)
}

/// An array that is gone through block by block.
struct Blocks {
    file: File,
    header: Header,
    item: Item,
    big_endian: bool,
    rows: usize,
    columns: usize,
    /// Where the items begin.
    begin: u64,
    places: Places,
    gaps: Gaps,
}

impl Blocks {
    fn open(file: &File, options: &ReadOptions) -> Result<Self, Error> {
        let mut file = file.try_clone().map_err(Error::Read)?;
        file.seek(SeekFrom::Start(0)).map_err(Error::Read)?;
        let size = file.metadata().map_err(Error::Read)?.len();
        let mut source = Source { from: &mut file, size: Some(size), fail: Error::Read };
        let header = Header::read(&mut source)?;
        let left = source.size.unwrap_or(0);
        let (item, big_endian) = header.item().map_err(|holds| Error::ArrayType { holds })?;
        let [rows, columns] = header.sides()?;
        let claimed = rows.checked_mul(columns).and_then(|cells| cells.checked_mul(item.size() as u64));
        if claimed.is_none_or(|claimed| claimed > left) {
            return Err(Error::ArrayEnds { shape: header.shape.clone(), code: item.code(), got: left });
        }
        if claimed.is_some_and(|claimed| claimed < left) {
            return Err(Error::BehindArray { shape: header.shape.clone() });
        }
        let names: Vec<String> = (1..=columns).map(|j| format!("x{j}")).collect();
        let roles = options.choice.roles(&names)?;
        let (rows, columns) = (rows as usize, columns as usize);
        let places = Places::new(item, false, rows, names, &roles)?;
        let gaps = Gaps::new(&options.gaps);
        Ok(Self { file, header, item, big_endian, rows, columns, begin: size - left, places, gaps })
    }

    fn fill(mut self, to: &mut Block<'_>) -> Result<(), Error> {
        let d = self.places.n_numbers;
        let mut bytes = Vec::new();
        let mut first = 0;
        while first < self.rows {
            let room = to.room(self.rows - first)?;
            let n = room.len() / d;
            // Items stand row by row or column by column; runs of either are read at once.
            if self.header.fortran_order {
                for j in 0..self.columns {
                    if self.places.kinds[j] != ColumnKind::Numbers {
                        continue;
                    }
                    self.read((j * self.rows + first) as u64, n, &mut bytes)?;
                    self.put(&bytes, (first, j), 1, room)?;
                }
            } else {
                let at_once = (BLOCK_ITEMS / self.columns).max(1);
                for (k, rows) in room.chunks_mut(at_once * d).enumerate() {
                    let start = first + k * at_once;
                    self.read((start * self.columns) as u64, rows.len() / d * self.columns, &mut bytes)?;
                    self.put(&bytes, (start, 0), self.columns, rows)?;
                }
            }
            first += n;
        }
        Ok(())
    }

    /// Reads `n` items from the one numbered `at` on, little-endian.
    fn read(&mut self, at: u64, n: usize, bytes: &mut Vec<u8>) -> Result<(), Error> {
        let size = self.item.size();
        bytes.resize(n * size, 0);
        self.file.seek(SeekFrom::Start(self.begin + at * size as u64)).map_err(Error::Read)?;
        self.file.read_exact(bytes).map_err(Error::Read)?;
        if self.big_endian {
            bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        Ok(())
    }

    /// Puts items into rows of numbers: those of `across` columns from one cell on, row by row.
    fn put(
        &self,
        bytes: &[u8],
        (row, column): (usize, usize),
        across: usize,
        to: &mut [f64],
    ) -> Result<(), Error> {
        let places = &self.places;
        // Most arrays are numbers as they are wanted.
        if self.item == Item::F8 && across == places.n_numbers && self.gaps.no_numbers() && column == 0 {
            for (to, item) in to.iter_mut().zip(bytes.as_chunks().0) {
                *to = f64::from_le_bytes(*item);
            }
            return Ok(());
        }
        let (mut i, mut j) = (0, column);
        self.item.each(bytes, |value, item| {
            if places.kinds[j] == ColumnKind::Numbers {
                places.check(value, item, row + i, j)?;
                to[i * places.n_numbers + places.slots[j]] = self.gaps.number(value);
            }
            j += 1;
            if j == column + across {
                (i, j) = (i + 1, column);
            }
            Ok(())
        })
    }
}

/// Items read at once.
const BLOCK_ITEMS: usize = if cfg!(test) { 16 } else { 1 << 17 };

/// Where the bytes of an array come from, how many there are if that is known, and what an error of
/// the reader means.
pub(super) struct Source<'a> {
    pub(super) from: &'a mut dyn Read,
    pub(super) size: Option<u64>,
    pub(super) fail: fn(io::Error) -> Error,
}

impl Source<'_> {
    /// Fills the buffer as far as there are bytes.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.from.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err((self.fail)(e)),
            }
        }
        self.size = self.size.map(|size| size.saturating_sub(filled as u64));
        Ok(filled)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        if self.fill(&mut bytes)? < N {
            return Err(Error::NotNpy { why: "it ends in its header".to_owned() });
        }
        Ok(bytes)
    }
}

/// What an array says of itself.
#[derive(Debug, Clone)]
pub(super) struct Header {
    /// Its type in NumPy's code, such as `<f8`.
    descr: String,
    fortran_order: bool,
    shape: Vec<u64>,
}

impl Header {
    pub(super) fn read(source: &mut Source<'_>) -> Result<Self, Error> {
        let bad = |why: &str| Error::NotNpy { why: why.to_owned() };
        let mut start = [0; 8];
        let n = source.fill(&mut start)?;
        if n < 8 || !start.starts_with(b"\x93NUMPY") {
            return Err(bad("it does not begin with \\x93NUMPY"));
        }
        let length = match start[6] {
            1 => usize::from(u16::from_le_bytes(source.take()?)),
            2 | 3 => u32::from_le_bytes(source.take()?) as usize,
            version => return Err(bad(&format!("its version, {version}, is not known"))),
        };
        // Only arrays of many named fields need more.
        if length > usize::from(u16::MAX) {
            return Err(Error::ArrayType { holds: "named fields".to_owned() });
        }
        let mut text = vec![0; length];
        if source.fill(&mut text)? < length {
            return Err(bad("it ends in its header"));
        }
        Self::parse(&String::from_utf8_lossy(&text)).ok_or_else(|| bad("its header cannot be read"))
    }

    /// Reads a header such as `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }`.
    fn parse(text: &str) -> Option<Self> {
        let descr = value_of("descr", text)?;
        let descr = match descr.chars().next()? {
            quote @ ('\'' | '"') => descr[1..].split_once(quote)?.0.to_owned(),
            _ => FIELDS.to_owned(),
        };
        let fortran_order = match value_of("fortran_order", text)? {
            value if value.starts_with("True") => true,
            value if value.starts_with("False") => false,
            _ => return None,
        };
        let (shape, _) = value_of("shape", text)?.strip_prefix('(')?.split_once(')')?;
        // Python 2 wrote `3L`.
        let length = |n: &str| n.trim().trim_end_matches('L').parse().ok();
        let lengths = shape.split(',').filter(|n| !n.trim().is_empty());
        Some(Self { descr, fortran_order, shape: lengths.map(length).collect::<Option<_>>()? })
    }

    /// What it is, in a few words.
    pub(super) fn describe(&self) -> String {
        let holds = self.item().map_or_else(|kind| kind, |(item, _)| item.code().to_owned());
        format!("{}-d, {holds}", self.shape.len())
    }

    /// Rows and columns.
    fn sides(&self) -> Result<[u64; 2], Error> {
        let sides = match *self.shape {
            [rows] => [rows, 1],
            [rows, columns] => [rows, columns],
            _ => return Err(Error::ArrayShape { shape: self.shape.clone() }),
        };
        if sides.contains(&0) { Err(Error::NoCells { shape: self.shape.clone() }) } else { Ok(sides) }
    }

    /// Whether it is a table of numbers beyond doubt.
    pub(super) fn is_table(&self) -> bool {
        self.shape.len() == 2 && self.item().is_ok()
    }

    /// The type of its items and whether their bytes are big-endian; what they are if not numbers.
    fn item(&self) -> Result<(Item, bool), String> {
        let code = self.descr.trim_start_matches(['<', '>', '|', '=']);
        if let Some(item) = Item::of(code) {
            return Ok((item, self.descr.starts_with('>')));
        }
        Err(match code.chars().next() {
            Some('O') => "Python objects".to_owned(),
            Some('U' | 'S' | 'a') => "text".to_owned(),
            Some('c') => "complex numbers".to_owned(),
            Some('M' | 'm') => "dates or times".to_owned(),
            _ if self.descr == FIELDS => self.descr.clone(),
            _ => format!("items of type `{}`", super::error::shown(self.descr.as_bytes())),
        })
    }

    /// Whether it is a list of this many texts.
    pub(super) fn is_names(&self, count: u64) -> bool {
        self.width().is_some() && self.shape == [count]
    }

    /// Characters per text.
    fn width(&self) -> Option<usize> {
        self.descr.trim_start_matches(['<', '>']).strip_prefix('U')?.parse().ok().filter(|width| *width > 0)
    }

    /// The number of columns, if it is a table.
    pub(super) fn n_columns(&self) -> u64 {
        self.sides().map_or(0, |[_, columns]| columns)
    }

    /// The texts behind the header of a list of them.
    pub(super) fn names(&self, source: &mut Source<'_>) -> Result<Vec<String>, Error> {
        let wrong = |why: &str| Error::NotNpy { why: why.to_owned() };
        let width = self.width().ok_or_else(|| wrong("it is not text"))?;
        let size = self.shape.iter().try_fold(4 * width as u64, |size, n| size.checked_mul(*n));
        let size = size.and_then(|size| size.checked_add(1)).ok_or_else(|| wrong("it ends early"))?;
        let mut bytes = Vec::new();
        source.from.take(size).read_to_end(&mut bytes).map_err(source.fail)?;
        if bytes.len() as u64 != size - 1 {
            return Err(wrong("its length is not that of its texts"));
        }
        let big_endian = self.descr.starts_with('>');
        let character = |c: &[u8; 4]| {
            char::from_u32(if big_endian { u32::from_be_bytes(*c) } else { u32::from_le_bytes(*c) })
        };
        let name = |name: &[[u8; 4]]| {
            let end = name.iter().rposition(|c| *c != [0; 4]).map_or(0, |last| last + 1);
            name[..end].iter().map(character).collect::<Option<String>>()
        };
        let names = bytes.as_chunks().0.chunks(width).map(name).collect::<Option<_>>();
        names.ok_or_else(|| wrong("a text of it is none"))
    }
}

const FIELDS: &str = "named fields";

/// What follows a key of the header.
fn value_of<'a>(key: &str, text: &'a str) -> Option<&'a str> {
    text.match_indices(key).find_map(|(at, _)| {
        let value = text[at + key.len()..].strip_prefix(['\'', '"'])?.trim_start().strip_prefix(':')?;
        Some(value.trim_start())
    })
}

/// The numbers an array may hold: name, NumPy's code, type, and the ways to and from f64.
macro_rules! items {
    ($($item:ident $code:literal $type:ty, $number:expr, $nearest:expr;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Item { $($item),* }

        impl Item {
            fn of(code: &str) -> Option<Self> {
                match code { $($code => Some(Self::$item),)* _ => None }
            }

            fn code(self) -> &'static str {
                match self { $(Self::$item => $code),* }
            }

            fn size(self) -> usize {
                match self { $(Self::$item => size_of::<$type>()),* }
            }

            /// Hands out little-endian items one by one, as numbers and as they are.
            fn each(self, bytes: &[u8], mut put: impl FnMut(f64, &[u8]) -> Result<(), Error>) -> Result<(), Error> {
                match self { $(Self::$item => {
                    let number: fn($type) -> f64 = $number;
                    bytes.as_chunks().0.iter().try_for_each(|item| put(number(<$type>::from_le_bytes(*item)), item))
                })* }
            }

            fn write(self, value: f64, out: &mut Vec<u8>) {
                match self { $(Self::$item => {
                    let nearest: fn(f64) -> $type = $nearest;
                    out.extend_from_slice(&nearest(value).to_le_bytes());
                })* }
            }
        }
    };
}

items! {
    Bool "b1" u8, f64::from, |v| v as u8;
    I1 "i1" i8, f64::from, |v| v as i8;
    I2 "i2" i16, f64::from, |v| v as i16;
    I4 "i4" i32, f64::from, |v| v as i32;
    I8 "i8" i64, |v| v as f64, |v| v as i64;
    U1 "u1" u8, f64::from, |v| v as u8;
    U2 "u2" u16, f64::from, |v| v as u16;
    U4 "u4" u32, f64::from, |v| v as u32;
    U8 "u8" u64, |v| v as f64, |v| v as u64;
    F2 "f2" f16, f16::to_f64, f16::from_f64;
    F4 "f4" f32, f64::from, |v| v as f32;
    F8 "f8" f64, |v| v, |v| v;
}

impl Item {
    fn is_float(self) -> bool {
        matches!(self, Self::F2 | Self::F4 | Self::F8)
    }

    /// Whether a filled value has room: whole numbers have none, small floats end early.
    fn holds(self, value: f64) -> bool {
        match self {
            Self::F2 => f16::from_f64(value).is_finite(),
            Self::F4 => (value as f32).is_finite(),
            Self::F8 => true,
            _ => false,
        }
    }

    /// An integer of eight bytes, which f64 may be unable to hold.
    fn wide(self, item: &[u8]) -> Option<i128> {
        match self {
            Self::I8 => Some(i64::from_le_bytes(item.try_into().ok()?).into()),
            Self::U8 => Some(u64::from_le_bytes(item.try_into().ok()?).into()),
            _ => None,
        }
    }

    fn number(self, item: &[u8]) -> f64 {
        let mut number = f64::NAN;
        let stored = self.each(item, |value, _| {
            number = value;
            Ok(())
        });
        stored.expect("nothing here fails");
        number
    }

    fn text(self, value: f64) -> String {
        match value {
            gap if gap.is_nan() => String::new(),
            // As text of a float `1.0` is distinguished from the whole number 1.
            value if self.is_float() => format!("{value:?}"),
            value => format!("{value}"),
        }
    }
}

/// What an array held besides its numbers.
#[derive(Debug, Clone)]
pub(super) struct Array {
    item: Item,
    /// Whether it had one dimension.
    flat: bool,
    /// The place of each column among the numbers, or among those kept aside.
    slots: Vec<usize>,
    /// The items of the columns kept aside, little-endian, row by row.
    aside: Vec<u8>,
    /// Numbers that stand for gaps, by their place among the numbers.
    marks: Vec<(usize, f64)>,
    /// The rest of the `.npz` file it was in.
    pub(super) archive: Option<Archive>,
}

/// Bytes decoded or written at once.
const BLOCK: usize = 1 << 16;

/// Reads the items behind a header, each straight into its place.
pub(super) fn read_items(
    mut source: Source<'_>,
    header: &Header,
    names: Option<Vec<String>>,
    options: &ReadOptions,
) -> Result<Table, Error> {
    /// Columns taken on trust.
    const MANY: u64 = 1 << 16;
    let (item, big_endian) = header.item().map_err(|holds| Error::ArrayType { holds })?;
    let [rows, columns] = header.sides()?;
    let cut = |got: u64| Error::ArrayEnds { shape: header.shape.clone(), code: item.code(), got };
    let size = rows.checked_mul(columns).and_then(|cells| cells.checked_mul(item.size() as u64));
    let size = size.filter(|size| source.size.is_none_or(|got| *size <= got));
    let Some(size) = size else { return Err(cut(source.size.unwrap_or(0))) };
    // The numbers, and grouping the rows takes about as much again.
    options.allow(rows.saturating_mul(columns).saturating_mul(16))?;
    // Without a size to hold it against, a claim gets memory only as bytes arrive.
    if source.size.is_none() && (header.fortran_order || columns > MANY) {
        let mut bytes = Vec::new();
        source.from.take(size.saturating_add(1)).read_to_end(&mut bytes).map_err(source.fail)?;
        let size = Some(bytes.len() as u64);
        return read_items(Source { from: &mut &bytes[..], size, ..source }, header, names, options);
    }

    let d = columns as usize;
    let names = names.filter(|names| names.len() == d);
    let names = names.unwrap_or_else(|| (1..=d).map(|j| format!("x{j}")).collect());
    check_names(&names)?;
    let roles = options.choice.roles(&names)?;
    let mut places = Places::new(item, header.fortran_order, rows as usize, names, &roles)?;
    if source.size.is_some() {
        places.reserve()?;
    }
    let gaps = Gaps::new(&options.gaps);
    let mut buffer = vec![0; BLOCK];
    let mut left = size;
    while left > 0 {
        let wanted = left.min(BLOCK as u64) as usize;
        let got = source.fill(&mut buffer[..wanted])?;
        if got < wanted {
            return Err(cut(size - left + got as u64));
        }
        if big_endian {
            buffer[..got].chunks_exact_mut(item.size()).for_each(<[u8]>::reverse);
        }
        item.each(&buffer[..got], |value, bytes| places.put(value, bytes, &gaps))?;
        left -= got as u64;
    }
    if source.fill(&mut buffer[..1])? > 0 {
        return Err(Error::BehindArray { shape: header.shape.clone() });
    }
    places.table(header.shape.len() == 1)
}

/// A table while its cells arrive, in the order of the file.
struct Places {
    item: Item,
    fortran_order: bool,
    n_rows: usize,
    names: Vec<String>,
    kinds: Vec<ColumnKind>,
    /// As those of [`Array`].
    slots: Vec<usize>,
    n_numbers: usize,
    /// Where the next cell is.
    row: usize,
    column: usize,
    values: Vec<f64>,
    aside: Vec<u8>,
    marks: Vec<(usize, f64)>,
}

impl Places {
    fn new(
        item: Item,
        fortran_order: bool,
        n_rows: usize,
        names: Vec<String>,
        roles: &[Role],
    ) -> Result<Self, Error> {
        let (mut kinds, mut slots) = (Vec::new(), Vec::new());
        let (mut n_numbers, mut n_aside) = (0, 0);
        for role in roles {
            let (kind, slot) = match role {
                Role::Aside => (ColumnKind::Excluded, &mut n_aside),
                Role::Open | Role::Asked => (ColumnKind::Numbers, &mut n_numbers),
            };
            kinds.push(kind);
            slots.push(*slot);
            *slot += 1;
        }
        if n_numbers == 0 {
            return Err(Error::NothingChosen);
        }
        let (values, aside, marks) = (Vec::new(), Vec::new(), Vec::new());
        let (row, column) = (0, 0);
        Ok(Self {
            item,
            fortran_order,
            n_rows,
            names,
            kinds,
            slots,
            n_numbers,
            row,
            column,
            values,
            aside,
            marks,
        })
    }

    fn numeric_names(&self) -> Vec<String> {
        let columns = self.names.iter().zip(&self.kinds);
        columns.filter(|(_, kind)| **kind == ColumnKind::Numbers).map(|(name, _)| name.clone()).collect()
    }

    /// Refuses an integer that is none as a number.
    #[inline]
    fn check(&self, value: f64, bytes: &[u8], row: usize, column: usize) -> Result<(), Error> {
        match self.item.wide(bytes).filter(|wide| *wide != value as i128) {
            Some(wide) => {
                let place = Place { row: row + 1, line: None };
                Err(Error::LongInteger { place, column: self.names[column].clone(), value: wide })
            }
            None => Ok(()),
        }
    }

    fn n_aside(&self) -> usize {
        self.kinds.len() - self.n_numbers
    }

    /// Takes the memory that all cells need, and in Fortran order fills it: cells then arrive in
    /// leaps.
    fn reserve(&mut self) -> Result<(), Error> {
        let (n_values, n_aside) =
            (self.n_rows * self.n_numbers, self.n_rows * self.n_aside() * self.item.size());
        self.values.try_reserve_exact(n_values).map_err(|e| Error::Read(e.into()))?;
        self.aside.try_reserve_exact(n_aside).map_err(|e| Error::Read(e.into()))?;
        if self.fortran_order {
            self.values.resize(n_values, 0.0);
            self.aside.resize(n_aside, 0);
        }
        Ok(())
    }

    #[inline]
    fn put(&mut self, value: f64, bytes: &[u8], gaps: &Gaps) -> Result<(), Error> {
        let slot = self.slots[self.column];
        if self.kinds[self.column] == ColumnKind::Numbers {
            let at = self.row * self.n_numbers + slot;
            self.check(value, bytes, self.row, self.column)?;
            let number = gaps.number(value);
            if number.is_nan() && !value.is_nan() {
                self.marks.push((at, value));
            }
            if self.fortran_order { self.values[at] = number } else { self.values.push(number) }
        } else if self.fortran_order {
            let at = (self.row * self.n_aside() + slot) * bytes.len();
            self.aside[at..at + bytes.len()].copy_from_slice(bytes);
        } else {
            self.aside.extend_from_slice(bytes);
        }
        let (inner, outer, length) = if self.fortran_order {
            (&mut self.row, &mut self.column, self.n_rows)
        } else {
            (&mut self.column, &mut self.row, self.names.len())
        };
        *inner += 1;
        if *inner == length {
            (*inner, *outer) = (0, *outer + 1);
        }
        Ok(())
    }

    fn table(mut self, flat: bool) -> Result<Table, Error> {
        self.values.shrink_to_fit();
        self.marks.sort_unstable_by_key(|mark| mark.0);
        let matrix = Matrix::from_vec(self.n_rows, self.n_numbers, self.values)?;
        let numbers = self.names.iter().zip(&self.kinds).filter(|(_, kind)| **kind == ColumnKind::Numbers);
        let numbers = numbers.map(|(name, _)| name.clone()).collect();
        let data = Dataset::with_names(matrix, numbers).map_err(|error| match error {
            crate::Error::Infinite { row, column, value } => {
                Error::Infinite { place: Place { row, line: None }, column, text: value.to_string() }
            }
            other => other.into(),
        })?;
        let Self { item, slots, aside, marks, names, kinds, .. } = self;
        let array = Array { item, flat, slots, aside, marks, archive: None };
        Ok(Table { names, kinds, data, body: Body::Numpy(array), notes: Vec::new(), chosen: false })
    }
}

impl Array {
    /// The item of a column kept aside.
    fn item_aside(&self, table: &Table, row: usize, column: usize) -> &[u8] {
        let size = self.item.size();
        let per_row = table.n_columns() - table.data.n_columns();
        &self.aside[(row * per_row + self.slots[column]) * size..][..size]
    }

    /// A number that was declared a gap, or NaN.
    fn mark(&self, table: &Table, row: usize, slot: usize) -> f64 {
        let at = row * table.data.n_columns() + slot;
        self.marks.binary_search_by_key(&at, |mark| mark.0).map_or(f64::NAN, |found| self.marks[found].1)
    }

    /// What a cell says.
    pub(super) fn text(&self, table: &Table, row: usize, column: usize) -> String {
        if table.kinds[column] == ColumnKind::Numbers {
            let slot = self.slots[column];
            let value = table.data.row(row)[slot];
            return self.item.text(if value.is_nan() { self.mark(table, row, slot) } else { value });
        }
        let item = self.item_aside(table, row, column);
        self.item.wide(item).map_or_else(|| self.item.text(self.item.number(item)), |whole| whole.to_string())
    }

    /// The number in a column kept aside, unless f64 cannot hold it.
    pub(super) fn number_aside(&self, table: &Table, row: usize, column: usize) -> Option<f64> {
        let item = self.item_aside(table, row, column);
        let value = self.item.number(item);
        self.item.wide(item).is_none_or(|whole| whole == value as i128).then_some(value)
    }

    /// Writes the array, gaps filled, as items of its own type; as float64 if that has no room for
    /// what was filled.
    pub(super) fn write_filled(
        &self,
        table: &Table,
        values: &Matrix,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let filled = |i: usize, k: usize| table.data.row(i)[k].is_nan() && !values[(i, k)].is_nan();
        let (n, d) = (table.n_rows(), table.n_columns());
        let fits = |i, k| !filled(i, k) || self.item.holds(values[(i, k)]);
        let room = table.data.is_complete() || (0..n).all(|i| (0..values.n_columns()).all(|k| fits(i, k)));
        let item = if room { self.item } else { Item::F8 };
        let shape = if self.flat { vec![n] } else { vec![n, d] };
        write_array(item.code(), &shape, out, |i, row| {
            for j in 0..d {
                let slot = self.slots[j];
                if table.kinds[j] == ColumnKind::Numbers {
                    let observed = table.data.row(i)[slot];
                    let gap = || if filled(i, slot) { values[(i, slot)] } else { self.mark(table, i, slot) };
                    item.write(if observed.is_nan() { gap() } else { observed }, row);
                } else if room {
                    row.extend_from_slice(self.item_aside(table, i, j));
                } else {
                    let number = self.number_aside(table, i, j).ok_or_else(|| Error::LongInteger {
                        place: Place { row: i + 1, line: None },
                        column: table.names[j].clone(),
                        value: self.item.wide(self.item_aside(table, i, j)).unwrap_or_default(),
                    })?;
                    item.write(number, row);
                }
            }
            Ok(())
        })
    }
}

/// Writes the columns of numbers as one array of float64 and returns the names of the others.
pub(super) fn write(sheet: &Sheet<'_>, out: &mut dyn Write) -> Result<Vec<String>, Error> {
    let (kept, left_out) = numbers_of(sheet)?;
    let shape = [sheet.n_rows(), kept.len()];
    write_array(Item::F8.code(), &shape, out, |i, row| {
        for &j in &kept {
            Item::F8.write(sheet.columns[j].number(i).expect("a column of numbers"), row);
        }
        Ok(())
    })?;
    Ok(left_out)
}

/// Writes the columns of numbers of a table that comes in parts; returns the names of the others.
pub(super) fn write_parts<'a>(
    n_rows: usize,
    first: &Sheet<'a>,
    others: &mut dyn Iterator<Item = Result<Sheet<'a>, Error>>,
    out: &mut dyn Write,
) -> Result<Vec<String>, Error> {
    let (kept, left_out) = numbers_of(first)?;
    out.write_all(&header(Item::F8.code(), &[n_rows, kept.len()])).map_err(Error::Write)?;
    let mut bytes = Vec::new();
    let mut write = |part: &Sheet<'_>| {
        bytes.clear();
        for i in 0..part.n_rows() {
            for &j in &kept {
                Item::F8.write(part.columns[j].number(i).expect("a column of numbers"), &mut bytes);
            }
        }
        out.write_all(&bytes).map_err(Error::Write)
    };
    write(first)?;
    for part in others {
        write(&part?)?;
    }
    Ok(left_out)
}

/// The columns of numbers, by their places, and the names of the others.
pub(super) fn numbers_of(sheet: &Sheet<'_>) -> Result<(Vec<usize>, Vec<String>), Error> {
    let (kept, others): (Vec<usize>, Vec<usize>) =
        (0..sheet.columns.len()).partition(|&j| sheet.columns[j].is_numbers());
    if kept.is_empty() {
        return Err(Error::OnlyText);
    }
    Ok((kept, others.into_iter().map(|j| sheet.names[j].clone()).collect()))
}

/// Writes names as an array of text.
pub(super) fn write_names(names: &[&String], out: &mut dyn Write) -> Result<(), Error> {
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(1);
    write_array(&format!("U{width}"), &[names.len()], out, |i, row| {
        let padded = names[i].chars().chain(std::iter::repeat('\0')).take(width);
        padded.for_each(|c| row.extend_from_slice(&u32::from(c).to_le_bytes()));
        Ok(())
    })
}

/// Bytes of the header `write_array` writes.
fn header(code: &str, shape: &[usize]) -> Vec<u8> {
    const START: usize = 10;
    let order = if code.ends_with('1') && !code.starts_with('U') { '|' } else { '<' };
    let shape = match shape {
        [n] => format!("({n},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    };
    let text = format!("{{'descr': '{order}{code}', 'fortran_order': False, 'shape': {shape}, }}");
    // Items begin at a multiple of 64 bytes, the header ends in a line end.
    let length = (START + text.len() + 1).next_multiple_of(64) - START;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&(length as u16).to_le_bytes());
    bytes.extend_from_slice(format!("{text:<width$}\n", width = length - 1).as_bytes());
    bytes
}

fn write_array(
    code: &str,
    shape: &[usize],
    out: &mut dyn Write,
    mut row: impl FnMut(usize, &mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut bytes = header(code, shape);
    for i in 0..shape[0] {
        row(i, &mut bytes)?;
        if bytes.len() >= BLOCK {
            out.write_all(&bytes).map_err(Error::Write)?;
            bytes.clear();
        }
    }
    out.write_all(&bytes).map_err(Error::Write)
}
