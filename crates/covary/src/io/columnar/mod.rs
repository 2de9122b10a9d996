//! Typed columns in batches of rows, which Parquet and Arrow share, from and to a [`Table`].
//!
//! Integers, floats and decimals are **numbers**; a null or NaN is a **gap**. Columns of any other
//! type are kept aside and leave as they came. A filled column keeps its type: a gap in a column of
//! integers is filled by the nearest integer. Where the type has no room for one, the column leaves as the next
//! wider type of integers that has.
//!
//! `io/columnar/` turns the batches of Parquet and Arrow into rows of f64 and back. A part of a column whose every cell the
//! dataset holds exactly is not kept a second time: it is rebuilt from the numbers, and only what stood in its gaps is
//! remembered. All other parts (text, dates, integers beyond 2⁵³) are kept as they came. Nothing a file claims about its
//! size is believed before it is decoded, and a panic of a decoder is a damaged file. Where a decoder takes memory for a
//! claim at once, as Parquet's does for pages and dictionaries, `pages.rs` first walks the headers of all pages and refuses
//! what their bytes cannot hold. Arrow's file form is read through the index at its end, as Polars' files must be, and
//! every place the index names is checked against the bytes at hand. Parquet's plain columns of numbers need no batches:
//! `flat.rs` decodes them a slice of rows at a time, eight columns beside each other, straight into the rows.

pub(super) mod arrow;
#[cfg(feature = "parquet")]
mod flat;
mod number;
#[cfg(feature = "parquet")]
mod pages;
#[cfg(feature = "parquet")]
pub(super) mod parquet;
#[cfg(test)]
mod tests;
mod text;

use super::blocks::PAGE_STEP;
use super::columns::{Role, check_names};
use super::error::{Place, shown};
use super::gaps::Gaps;
use super::table::Body;
use super::{Cells, ColumnKind, Error, Layout, ReadOptions, Sheet, Table};
use crate::{Dataset, Matrix};
use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, make_array, new_empty_array,
};
use arrow_buffer::ScalarBuffer;
use arrow_data::transform::MutableArrayData;
use arrow_schema::{ArrowError, DataType, Field, Metadata, Schema, SchemaRef};
use arrow_select::concat::{concat, concat_batches};
use number::Part;
use rayon::prelude::*;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

/// Rows written at once; few in tests, whose tables are small.
const BATCH: usize = if cfg!(test) { 16 } else { 1 << 16 };

/// What a table of typed columns holds besides its numbers.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    schema: SchemaRef,
    /// Where each batch of rows ends.
    ends: Vec<usize>,
    /// For every column, its part of every batch.
    parts: Vec<Vec<Part>>,
    /// For every column, its column of the dataset.
    slots: Vec<Option<usize>>,
}

/// How the columns of a file become a table: settled by the schema, before any cell is read.
struct Plan {
    schema: SchemaRef,
    names: Vec<String>,
    roles: Vec<Role>,
    kinds: Vec<ColumnKind>,
    slots: Vec<Option<usize>>,
    gaps: Gaps,
}

/// A column's part of a batch.
struct Column {
    part: Part,
    /// Its column of the dataset, and the numbers.
    numbers: Option<(usize, ScalarBuffer<f64>)>,
}

impl Plan {
    fn new(schema: &Schema, options: &ReadOptions) -> Result<Self, Error> {
        let names: Vec<String> = schema.fields().iter().map(|f| f.name().trim().to_owned()).collect();
        if names.is_empty() {
            return Err(Error::NoColumns);
        }
        check_names(&names)?;
        let labels = |j: usize| names.len() > 1 && labels_rows(&names[j]);
        let mut roles = options.choice.roles(&names)?;
        let mut fields = schema.fields().to_vec();
        let mut kinds = Vec::new();
        for (j, role) in roles.iter_mut().enumerate() {
            if labels(j) && *role == Role::Open {
                *role = Role::Aside;
            }
            // A column of nothing that the model asks for is a column of gaps.
            if *role == Role::Asked && *fields[j].data_type() == DataType::Null {
                fields[j] = Arc::new(fields[j].as_ref().clone().with_data_type(DataType::Float64));
            }
            let data_type = fields[j].data_type();
            if *role != Role::Aside && is_nested(data_type) {
                return Err(Error::Nested { column: names[j].clone(), kind: kind_of(data_type) });
            }
            kinds.push(match *role {
                Role::Aside if labels(j) => ColumnKind::Unnamed,
                Role::Aside => ColumnKind::Excluded,
                _ if number::is_number(data_type) => ColumnKind::Numbers,
                _ => ColumnKind::Typed { name: kind_of(data_type) },
            });
        }
        let mut next = 0..;
        let slots = kinds.iter().map(|kind| if *kind == ColumnKind::Numbers { next.next() } else { None });
        let slots: Vec<Option<usize>> = slots.collect();
        if slots.iter().all(Option::is_none) {
            let typed = kinds.iter().zip(&names).find_map(|(kind, column)| match kind {
                ColumnKind::Typed { name } => Some((column.clone(), name.clone())),
                _ => None,
            });
            let Some((column, kind)) = typed else { return Err(Error::NothingChosen) };
            if !roles.contains(&Role::Asked) {
                return Err(Error::NoTypedNumbers { column, kind });
            }
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        Ok(Self { schema, names, roles, kinds, slots, gaps: Gaps::new(&options.gaps) })
    }

    fn n_numbers(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// Takes a column of a batch.
    fn column(&self, column: usize, array: &ArrayRef) -> Column {
        let Some(slot) = self.slots[column] else {
            return Column { part: Part::Array(own(array)), numbers: None };
        };
        if *array.data_type() == DataType::Null {
            let numbers = vec![f64::NAN; array.len()].into();
            return Column { part: Part::Numbers { gap: None }, numbers: Some((slot, numbers)) };
        }
        let (numbers, part) = number::read(array, &self.gaps);
        let part = if let Part::Array(array) = part { Part::Array(own(&array)) } else { part };
        Column { part, numbers: Some((slot, numbers)) }
    }

    fn table(self, values: Vec<f64>, ends: Vec<usize>, parts: Vec<Vec<Part>>) -> Result<Table, Error> {
        let Self { schema, names, roles, kinds, slots, .. } = self;
        let rows = ends.last().copied().unwrap_or(0);
        if rows == 0 {
            return Err(Error::NoRows { columns: names.len() });
        }
        let frame = Frame { schema, ends, parts, slots };
        for (j, role) in roles.iter().enumerate() {
            if let (Role::Asked, ColumnKind::Typed { name }) = (role, &kinds[j]) {
                let (column, kind) = (names[j].clone(), name.clone());
                return Err(Error::NotNumbers { column, kind, first: frame.first_cell(j) });
            }
        }
        let numeric: Vec<usize> = (0..names.len()).filter(|&j| frame.slots[j].is_some()).collect();
        let numeric_names = numeric.iter().map(|&j| names[j].clone()).collect();
        let values = Matrix::from_vec(rows, numeric.len(), values)?;
        let data = Dataset::with_names(values, numeric_names).map_err(|error| match error {
            crate::Error::Infinite { row, column, value } => {
                Error::Infinite { place: Place { row, line: None }, column, text: value.to_string() }
            }
            other => other.into(),
        })?;
        Ok(Table { names, kinds, data, body: Body::Columnar(frame), notes: Vec::new(), chosen: false })
    }
}

/// Puts columns of numbers where the rows of a dataset of `d` columns have them.
fn place<'a>(rows: &mut [f64], d: usize, columns: impl Iterator<Item = &'a Column>) {
    /// Rows that a thread takes at once: few enough that their cells stay in its cache while column
    /// after column is written into them.
    const ROWS: usize = 64;
    let columns: Vec<(usize, &[f64])> =
        columns.filter_map(|c| c.numbers.as_ref()).map(|(slot, numbers)| (*slot, &**numbers)).collect();
    if columns.is_empty() {
        return;
    }
    rows.par_chunks_mut(ROWS * d).with_min_len(16).enumerate().for_each(|(block, rows)| {
        for &(slot, numbers) in &columns {
            let from = &numbers[block * ROWS..];
            for (row, number) in rows.chunks_exact_mut(d).zip(from) {
                row[slot] = *number;
            }
        }
    });
}

/// Row labels without a name; pandas gives them one.
fn labels_rows(name: &str) -> bool {
    name.is_empty() || (name.starts_with("__index_level_") && name.ends_with("__"))
}

/// Whether a cell may hold several values.
fn is_nested(data_type: &DataType) -> bool {
    data_type.is_nested() || matches!(data_type, DataType::RunEndEncoded(..))
}

/// A type in words short enough for a message.
fn kind_of(data_type: &DataType) -> String {
    shown(data_type.to_string().as_bytes())
}

/// The array with buffers of its own: those of a batch that was read in one piece would keep all of
/// it in memory.
fn own(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => return Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => return Arc::new(array.as_binary_view().gc()),
        _ => {}
    }
    let data = array.to_data();
    let mut copy = MutableArrayData::new(vec![&data], false, array.len());
    copy.try_extend(0, 0, array.len()).expect("a copy fits where the array did");
    make_array(copy.freeze())
}

impl Frame {
    /// Text of a cell; empty for a null.
    pub(super) fn text(&self, data: &Dataset, row: usize, column: usize) -> String {
        let batch = self.ends.partition_point(|&end| end <= row);
        let data_type = self.schema.field(column).data_type();
        match (&self.parts[column][batch], self.slots[column]) {
            (Part::Array(array), _) => text::cell(array, row - self.start(batch)),
            (part @ Part::Numbers { .. }, slot) => {
                let value = data.row(row)[slot.expect("numbers have a column of the dataset")];
                match data_type {
                    DataType::Float64 if !value.is_nan() => format!("{value:?}"),
                    DataType::Float32 if !value.is_nan() => format!("{:?}", value as f32),
                    // `as` keeps to the range, as the numbers of the column do.
                    signed if signed.is_signed_integer() && !value.is_nan() => format!("{}", value as i64),
                    integer if integer.is_integer() && !value.is_nan() => format!("{}", value as u64),
                    _ => text::cell(&number::fill(part, data_type, std::iter::once((value, value))), 0),
                }
            }
        }
    }

    fn start(&self, batch: usize) -> usize {
        if batch == 0 { 0 } else { self.ends[batch - 1] }
    }

    /// The first cell of a column kept aside that is not null.
    fn first_cell(&self, column: usize) -> Option<(Place, String)> {
        let mut arrays = self.parts[column].iter().enumerate().filter_map(|(batch, part)| match part {
            Part::Array(array) => Some((batch, array)),
            Part::Numbers { .. } => None,
        });
        arrays.find_map(|(batch, array)| {
            let i = (0..array.len()).find(|&i| array.is_valid(i))?;
            let place = Place { row: self.start(batch) + i + 1, line: None };
            Some((place, shown(text::cell(array, i).as_bytes())))
        })
    }

    /// Whether a column's type has no text.
    pub(super) fn nested_kind(&self, column: usize) -> Option<String> {
        let data_type = self.schema.field(column).data_type();
        is_nested(data_type).then(|| kind_of(data_type))
    }

    /// The type of a column.
    pub(super) fn type_of(&self, column: usize) -> &DataType {
        self.schema.field(column).data_type()
    }

    /// Whether filled gaps of a column are rounded.
    pub(super) fn rounds(&self, column: usize) -> bool {
        number::rounds(self.schema.field(column).data_type())
    }

    /// The type a column leaves as when its gaps are filled by the column of `after`: its own, or a wider one if it
    /// has no room for the whole numbers that are filled in. `None` if no type of integers has.
    pub(super) fn filled_type(&self, column: usize, data: &Dataset, after: &Matrix) -> Option<DataType> {
        let own = self.schema.field(column).data_type();
        let (Some(k), true) = (self.slots[column], own.is_integer()) else { return Some(own.clone()) };
        let all = (0..data.n_rows()).map(|i| (data.row(i)[k], after[(i, k)]));
        let filled = all.clone().filter(|(before, after)| before.is_nan() && !after.is_nan());
        let (least, most) = filled.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), (_, after)| {
            (least.min(after.round()), most.max(after.round()))
        });
        if least > most || number::with_room(own, least, most).as_ref() == Some(own) {
            return Some(own.clone());
        }
        // What was observed must have room in the wider type too.
        let observed = all.map(|(before, _)| before).filter(|v| !v.is_nan());
        let (least, most) = observed.fold((least, most), |(least, most), v| (least.min(v), most.max(v)));
        number::with_room(own, least, most)
    }

    /// Some rows of a column, gaps filled by the column of `after`, as its own type or as a wider one.
    fn rows(
        &self,
        column: usize,
        rows: Range<usize>,
        data: &Dataset,
        after: &Matrix,
        data_type: &DataType,
    ) -> ArrayRef {
        let own = self.schema.field(column).data_type();
        let first = self.ends.partition_point(|&end| end <= rows.start);
        let mut pieces = Vec::new();
        for batch in first..self.ends.len() {
            let start = self.start(batch).max(rows.start);
            let end = self.ends[batch].min(rows.end);
            if start >= end {
                break;
            }
            let part = match &self.parts[column][batch] {
                Part::Array(array) => Part::Array(array.slice(start - self.start(batch), end - start)),
                numbers @ Part::Numbers { .. } => numbers.clone(),
            };
            let part = match (part, self.slots[column]) {
                (part, _) if own == data_type => part,
                // Observed cells are integers of their own type first: 2⁶⁴ − 1 is 2⁶⁴ to a float.
                (part, Some(k)) => {
                    let observed = (start..end).map(|i| (data.row(i)[k], f64::NAN));
                    Part::Array(number::widened(&number::fill(&part, own, observed), data_type))
                }
                (part, None) => part,
            };
            pieces.push(match (part, self.slots[column]) {
                (Part::Array(array), None) => array,
                (part, slot) => {
                    let k = slot.expect("numbers have a column of the dataset");
                    let cells = (start..end).map(|i| (data.row(i)[k], after[(i, k)]));
                    number::fill(&part, data_type, cells)
                }
            });
        }
        joined(&pieces, data_type)
    }
}

fn joined(pieces: &[ArrayRef], data_type: &DataType) -> ArrayRef {
    match pieces {
        [] => new_empty_array(data_type),
        [one] => one.clone(),
        several => {
            let several: Vec<&dyn Array> = several.iter().map(AsRef::as_ref).collect();
            concat(&several).expect("pieces of one column have one type")
        }
    }
}

/// Whether files of this layout have typed columns.
pub(super) fn holds(layout: Layout) -> bool {
    layout == Layout::Arrow || (cfg!(feature = "parquet") && layout == Layout::Parquet)
}

/// Writes columns, with what the file of `whole` said of its table as a whole.
pub(super) fn write(
    sheet: &Sheet<'_>,
    whole: Option<&Frame>,
    layout: Layout,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let format = if layout == Layout::Parquet { "Parquet" } else { "Arrow" };
    let columns: Vec<Writable<'_>> =
        sheet.names.iter().zip(&sheet.columns).map(|(name, cells)| Writable::new(name, cells)).collect();
    let metadata = whole.map_or_else(Metadata::new, |frame| frame.schema.metadata().clone());
    let fields: Vec<Field> = columns.iter().map(|c| c.field.clone()).collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    let n = sheet.n_rows();
    let size = batch_rows(columns.len());
    let batches = (0..n.div_ceil(size)).map(|b| b * size..n.min((b + 1) * size)).map(|rows| {
        let arrays =
            columns.par_iter().map(|c| c.rows(rows.clone(), format)).collect::<Result<Vec<_>, _>>()?;
        Ok(RecordBatch::try_new(schema.clone(), arrays).expect("columns of one length and their own types"))
    });
    match layout {
        #[cfg(feature = "parquet")]
        Layout::Parquet => parquet::write(&schema, batches, out),
        _ => arrow::write(&schema, batches, out),
    }
}

/// Rows that are written at once: not many cells, and a multiple of the rows between which a page of Parquet may end.
fn batch_rows(n_columns: usize) -> usize {
    const CELLS: usize = 1 << 20;
    (CELLS / n_columns.max(1) / PAGE_STEP * PAGE_STEP).clamp(PAGE_STEP.min(BATCH), BATCH)
}

/// Rows in batches of one size, in whatever parts they come: then the bytes are those of all rows at once.
struct Recut<I> {
    parts: I,
    held: Option<RecordBatch>,
    size: usize,
}

impl<I: Iterator<Item = Result<RecordBatch, Error>>> Iterator for Recut<I> {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(held) = self.held.take_if(|held| held.num_rows() >= self.size) {
                self.held = Some(held.slice(self.size, held.num_rows() - self.size));
                return Some(Ok(held.slice(0, self.size)));
            }
            match self.parts.next() {
                Some(Ok(part)) => {
                    self.held = Some(match self.held.take().filter(|held| held.num_rows() > 0) {
                        Some(held) => concat_batches(&part.schema(), [&held, &part])
                            .expect("parts of one table have one schema"),
                        None => part,
                    });
                }
                Some(Err(error)) => return Some(Err(error)),
                None => return self.held.take().filter(|held| held.num_rows() > 0).map(Ok),
            }
        }
    }
}

/// Writes columns that come in parts.
pub(super) fn write_parts<'a>(
    first: &Sheet<'a>,
    others: &mut dyn Iterator<Item = Result<Sheet<'a>, Error>>,
    layout: Layout,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let format = if layout == Layout::Parquet { "Parquet" } else { "Arrow" };
    let columns = |sheet: &'_ Sheet<'a>| -> Result<Vec<(Field, ArrayRef)>, Error> {
        let columns = sheet.names.par_iter().zip(&sheet.columns).map(|(name, cells)| {
            let column = Writable::new(name, cells);
            let rows = column.rows(0..cells.len(), format)?;
            Ok((column.field, rows))
        });
        columns.collect()
    };
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns(first)?.into_iter().unzip();
    let schema = Arc::new(Schema::new(fields));
    let batch = |arrays| {
        RecordBatch::try_new(schema.clone(), arrays).expect("columns of one length and their own types")
    };
    let others = others.map(|part| Ok(batch(columns(&part?)?.into_iter().map(|(_, rows)| rows).collect())));
    let size = batch_rows(schema.fields().len());
    let batches = Recut { parts: std::iter::once(Ok(batch(arrays))).chain(others), held: None, size };
    match layout {
        #[cfg(feature = "parquet")]
        Layout::Parquet => parquet::write(&schema, batches, out),
        _ => arrow::write(&schema, batches, out),
    }
}

/// A column of a sheet with its type.
struct Writable<'a> {
    field: Field,
    cells: &'a Cells<'a>,
    /// All rows, where pieces of a column must share a dictionary.
    whole: Option<ArrayRef>,
}

impl<'a> Writable<'a> {
    fn new(name: &str, cells: &'a Cells<'a>) -> Self {
        let field = |data_type, nullable| Field::new(name, data_type, nullable);
        let field = match cells {
            Cells::Numbers(_) | Cells::Column { .. } => field(DataType::Float64, true),
            Cells::Integers(_) => field(DataType::Int64, false),
            Cells::Text(_) => field(DataType::Utf8, false),
            Cells::Carried { table, column } => match &table.body {
                Body::Columnar(frame) => frame.schema.field(*column).clone().with_name(name),
                _ if cells.is_numbers() => field(DataType::Float64, true),
                _ => field(DataType::Utf8, true),
            },
            Cells::Filled { table, values, .. } => match &table.body {
                Body::Columnar(frame) => {
                    let column = frame.schema.field(cells.source()).clone().with_name(name);
                    match frame.filled_type(cells.source(), &table.data, values) {
                        Some(data_type) => column.with_data_type(data_type),
                        // No integer has room: a float64 has.
                        None => column.with_data_type(DataType::Float64),
                    }
                }
                _ => field(DataType::Float64, true),
            },
        };
        let shares = is_nested(field.data_type()) || matches!(field.data_type(), DataType::Dictionary(..));
        let mut column = Self { field, cells, whole: None };
        if shares {
            column.whole = column.rows(0..cells.len(), "").ok();
        }
        column
    }

    fn rows(&self, rows: Range<usize>, format: &'static str) -> Result<ArrayRef, Error> {
        if let Some(whole) = &self.whole {
            return Ok(whole.slice(rows.start, rows.len()));
        }
        Ok(match self.cells {
            Cells::Integers(values) => Arc::new(Int64Array::from(values[rows].to_vec())),
            Cells::Text(values) => Arc::new(StringArray::from_iter_values(&values[rows])),
            Cells::Carried { table, column } => match &table.body {
                Body::Columnar(frame) => {
                    let data_type = frame.schema.field(*column).data_type();
                    frame.rows(*column, rows, &table.data, table.data.values(), data_type)
                }
                _ if *self.field.data_type() == DataType::Float64 => self.numbers(rows),
                _ => {
                    let mut texts = StringBuilder::new();
                    for i in rows {
                        let cell = table.cell(i, *column);
                        let text = String::from_utf8_lossy(&cell);
                        texts.append_option((!text.is_empty()).then_some(text));
                    }
                    Arc::new(texts.finish())
                }
            },
            Cells::Filled { table: Table { body: Body::Columnar(frame), .. }, .. }
                if *self.field.data_type() == DataType::Float64
                    && *frame.schema.field(self.cells.source()).data_type() != DataType::Float64 =>
            {
                if frame.parts[self.cells.source()].iter().any(|part| matches!(part, Part::Array(_))) {
                    return Err(Error::CannotHold {
                        column: self.field.name().clone(),
                        kind:
                            "integers of more digits than a float64 has, and filled values beyond 38 digits"
                                .to_owned(),
                        format,
                        instead: "write .csv",
                        excludable: true,
                    });
                }
                self.numbers(rows)
            }
            Cells::Filled { table: table @ Table { body: Body::Columnar(frame), .. }, values, .. } => {
                frame.rows(self.cells.source(), rows, &table.data, values, self.field.data_type())
            }
            _ => self.numbers(rows),
        })
    }

    fn numbers(&self, rows: Range<usize>) -> ArrayRef {
        let number = |i| self.cells.number(i).expect("all other cells are numbers");
        Arc::new(rows.map(|i| Some(number(i)).filter(|v| !v.is_nan())).collect::<Float64Array>())
    }
}

/// What a decoder says, as one of our errors.
fn damaged(format: &'static str, error: ArrowError) -> Error {
    match error {
        ArrowError::NotYetImplemented(what) => Error::Unsupported { format, what },
        ArrowError::IoError(_, error) => Error::Read(error),
        other => Error::Damaged { format, why: shown(other.to_string().as_bytes()) },
    }
}
