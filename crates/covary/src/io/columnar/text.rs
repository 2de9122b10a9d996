//! What a cell of a column says, for messages, labels and tables in another format.
//!
//! `arrow-cast` has a formatter, which brings every conversion between two types with it: with `arrow-ord`, which nothing
//! else needs, 160 of the 873 seconds that compiling the command took.

use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions as time;
use arrow_array::types::{
    ArrowPrimitiveType, ArrowTemporalType, Date32Type, Date64Type, Decimal32Type, Decimal64Type,
    Decimal128Type, Decimal256Type, DecimalType, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use std::fmt::{Debug, Display};

/// What a cell says; nothing if it is null or a value that its type cannot show. Times are in ISO 8601, those with a
/// zone in UTC: the names of zones mean nothing without the tables of their rules. Bytes are hexadecimal.
pub(super) fn cell(array: &ArrayRef, row: usize) -> String {
    if !array.is_valid(row) {
        return String::new();
    }
    match array.data_type() {
        DataType::Null => String::new(),
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Int8 => plain::<Int8Type>(array, row),
        DataType::Int16 => plain::<Int16Type>(array, row),
        DataType::Int32 => plain::<Int32Type>(array, row),
        DataType::Int64 => plain::<Int64Type>(array, row),
        DataType::UInt8 => plain::<UInt8Type>(array, row),
        DataType::UInt16 => plain::<UInt16Type>(array, row),
        DataType::UInt32 => plain::<UInt32Type>(array, row),
        DataType::UInt64 => plain::<UInt64Type>(array, row),
        DataType::Float16 => plain::<Float16Type>(array, row),
        // With a point, so that a whole number is still seen to be a float.
        DataType::Float32 => format!("{:?}", array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => format!("{:?}", array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal32(..) => decimal::<Decimal32Type>(array, row),
        DataType::Decimal64(..) => decimal::<Decimal64Type>(array, row),
        DataType::Decimal128(..) => decimal::<Decimal128Type>(array, row),
        DataType::Decimal256(..) => decimal::<Decimal256Type>(array, row),
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).to_owned(),
        DataType::Utf8View => array.as_string_view().value(row).to_owned(),
        DataType::Binary => hexadecimal(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => hexadecimal(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => hexadecimal(array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => hexadecimal(array.as_fixed_size_binary().value(row)),
        DataType::Date32 => date(array, row),
        DataType::Date64 => moment::<Date64Type>(array, row, ""),
        DataType::Time32(TimeUnit::Second) => clock::<Time32SecondType>(array, row),
        DataType::Time32(_) => clock::<Time32MillisecondType>(array, row),
        DataType::Time64(TimeUnit::Microsecond) => clock::<Time64MicrosecondType>(array, row),
        DataType::Time64(_) => clock::<Time64NanosecondType>(array, row),
        DataType::Timestamp(unit, zone) => {
            let zone = if zone.is_some() { "Z" } else { "" };
            match unit {
                TimeUnit::Second => moment::<TimestampSecondType>(array, row, zone),
                TimeUnit::Millisecond => moment::<TimestampMillisecondType>(array, row, zone),
                TimeUnit::Microsecond => moment::<TimestampMicrosecondType>(array, row, zone),
                TimeUnit::Nanosecond => moment::<TimestampNanosecondType>(array, row, zone),
            }
        }
        DataType::Duration(unit) => duration(array, row, *unit),
        DataType::Interval(unit) => interval(array, row, *unit),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            dictionary
                .normalized_keys()
                .get(row)
                .map_or_else(String::new, |&key| cell(dictionary.values(), key))
        }
        // Nested columns are described by their type.
        other => other.to_string(),
    }
}

fn plain<T: ArrowPrimitiveType<Native: Display>>(array: &ArrayRef, row: usize) -> String {
    array.as_primitive::<T>().value(row).to_string()
}

fn decimal<T: DecimalType + ArrowPrimitiveType>(array: &ArrayRef, row: usize) -> String {
    array.as_primitive::<T>().value_as_string(row)
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).expect("four bits");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// ISO 8601; nothing for a value beyond the calendar.
fn iso(value: Option<impl Debug>, zone: &str) -> String {
    value.map_or_else(String::new, |value| format!("{value:?}{zone}"))
}

fn date(array: &ArrayRef, row: usize) -> String {
    iso(array.as_primitive::<Date32Type>().value_as_date(row), "")
}

fn clock<T: ArrowTemporalType>(array: &ArrayRef, row: usize) -> String
where
    i64: From<T::Native>,
{
    iso(array.as_primitive::<T>().value_as_time(row), "")
}

fn moment<T: ArrowTemporalType>(array: &ArrayRef, row: usize, zone: &str) -> String
where
    i64: From<T::Native>,
{
    iso(array.as_primitive::<T>().value_as_datetime(row), zone)
}

fn duration(array: &ArrayRef, row: usize, unit: TimeUnit) -> String {
    match unit {
        TimeUnit::Second => {
            shown(time::try_duration_s_to_duration(array.as_primitive::<DurationSecondType>().value(row)))
        }
        TimeUnit::Millisecond => shown(time::try_duration_ms_to_duration(
            array.as_primitive::<DurationMillisecondType>().value(row),
        )),
        TimeUnit::Microsecond => {
            time::duration_us_to_duration(array.as_primitive::<DurationMicrosecondType>().value(row))
                .to_string()
        }
        TimeUnit::Nanosecond => {
            time::duration_ns_to_duration(array.as_primitive::<DurationNanosecondType>().value(row))
                .to_string()
        }
    }
}

fn shown(value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// ISO 8601's `P…`, part by part, since a month has no length in days.
fn interval(array: &ArrayRef, row: usize, unit: IntervalUnit) -> String {
    match unit {
        IntervalUnit::YearMonth => {
            format!("P{}M", array.as_primitive::<IntervalYearMonthType>().value(row))
        }
        IntervalUnit::DayTime => {
            let value = array.as_primitive::<IntervalDayTimeType>().value(row);
            format!("P{}DT{}S", value.days, f64::from(value.milliseconds) / 1e3)
        }
        IntervalUnit::MonthDayNano => {
            let value = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
            format!("P{}M{}DT{}S", value.months, value.days, value.nanoseconds as f64 / 1e9)
        }
    }
}
