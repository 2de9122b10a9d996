//! The types of numbers a typed column may have, beside f64.

use crate::io::gaps::Gaps;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_buffer::{ScalarBuffer, i256};
use arrow_schema::DataType;
use std::sync::Arc;

/// The cells of a column in one batch.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// As they came.
    Array(ArrayRef),
    /// In the dataset, which holds every one of them exactly. All gaps held `gap`: a null if `None`.
    Numbers { gap: Option<f64> },
}

pub(super) fn is_number(data_type: &DataType) -> bool {
    data_type.is_floating() || rounds(data_type)
}

/// Whether a filled gap must be rounded to be of this type.
pub(super) fn rounds(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_decimal()
}

/// The smallest type of integers, at least as wide as that of the column, that has room for whole numbers from
/// `least` to `most`, or a decimal of 38 digits; none if neither has.
pub(super) fn with_room(data_type: &DataType, least: f64, most: f64) -> Option<DataType> {
    use DataType::{Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    const TWO: f64 = 2.0;
    let unsigned = [(UInt8, 8), (UInt16, 16), (UInt32, 32), (UInt64, 64)];
    let signed = [(Int8, 8), (Int16, 16), (Int32, 32), (Int64, 64)];
    let holds = |(wide, bits): &(DataType, i32)| {
        let (low, end) = if wide.is_signed_integer() {
            (-TWO.powi(bits - 1), TWO.powi(bits - 1))
        } else {
            (0.0, TWO.powi(*bits))
        };
        low <= least && most < end
    };
    let own = |(wide, _): &&(DataType, i32)| wide == data_type;
    let bits = unsigned.iter().chain(&signed).find(own)?.1;
    // Values keep their sign if they can; an unsigned column with a value below 0 becomes a signed one.
    let sorted = if data_type.is_signed_integer() { vec![signed] } else { vec![unsigned, signed] };
    let mut wider = sorted.into_iter().flatten().filter(|(_, b)| *b >= bits);
    let decimal = || (-1e37 < least && most < 1e37).then_some(DataType::Decimal128(38, 0));
    wider.find(holds).map(|(wide, _)| wide).or_else(decimal)
}

/// An array of integers as one of a wider type.
pub(super) fn widened(array: &ArrayRef, to: &DataType) -> ArrayRef {
    fn wide<T: ArrowPrimitiveType>(array: &ArrayRef) -> Vec<Option<i128>>
    where
        T::Native: Into<i128>,
    {
        array.as_primitive::<T>().iter().map(|cell| cell.map(Into::into)).collect()
    }
    fn narrow<T: ArrowPrimitiveType>(cells: Vec<Option<i128>>) -> ArrayRef
    where
        T::Native: TryFrom<i128>,
    {
        let fits = |cell: i128| T::Native::try_from(cell).ok();
        Arc::new(cells.into_iter().map(|cell| cell.and_then(fits)).collect::<PrimitiveArray<T>>())
    }
    let cells = match array.data_type() {
        DataType::Int8 => wide::<Int8Type>(array),
        DataType::Int16 => wide::<Int16Type>(array),
        DataType::Int32 => wide::<Int32Type>(array),
        DataType::Int64 => wide::<Int64Type>(array),
        DataType::UInt8 => wide::<UInt8Type>(array),
        DataType::UInt16 => wide::<UInt16Type>(array),
        DataType::UInt32 => wide::<UInt32Type>(array),
        DataType::UInt64 => wide::<UInt64Type>(array),
        other => unreachable!("{other} is not a type of integers"),
    };
    match to {
        DataType::Int8 => narrow::<Int8Type>(cells),
        DataType::Int16 => narrow::<Int16Type>(cells),
        DataType::Int32 => narrow::<Int32Type>(cells),
        DataType::Int64 => narrow::<Int64Type>(cells),
        DataType::UInt16 => narrow::<UInt16Type>(cells),
        DataType::UInt32 => narrow::<UInt32Type>(cells),
        DataType::UInt64 => narrow::<UInt64Type>(cells),
        DataType::Decimal128(..) => {
            let decimals: PrimitiveArray<Decimal128Type> = cells.into_iter().collect();
            Arc::new(decimals.with_data_type(to.clone()))
        }
        other => unreachable!("{other} is not a wider type of integers"),
    }
}

/// Calls a function that is generic in the type of numbers.
macro_rules! of_type {
    ($data_type:expr, $f:ident($($argument:expr),*)) => {
        match $data_type {
            DataType::Int8 => $f::<Int8Type>($($argument),*),
            DataType::Int16 => $f::<Int16Type>($($argument),*),
            DataType::Int32 => $f::<Int32Type>($($argument),*),
            DataType::Int64 => $f::<Int64Type>($($argument),*),
            DataType::UInt8 => $f::<UInt8Type>($($argument),*),
            DataType::UInt16 => $f::<UInt16Type>($($argument),*),
            DataType::UInt32 => $f::<UInt32Type>($($argument),*),
            DataType::UInt64 => $f::<UInt64Type>($($argument),*),
            DataType::Float16 => $f::<Float16Type>($($argument),*),
            DataType::Float32 => $f::<Float32Type>($($argument),*),
            DataType::Float64 => $f::<Float64Type>($($argument),*),
            DataType::Decimal32(..) => $f::<Decimal32Type>($($argument),*),
            DataType::Decimal64(..) => $f::<Decimal64Type>($($argument),*),
            DataType::Decimal128(..) => $f::<Decimal128Type>($($argument),*),
            DataType::Decimal256(..) => $f::<Decimal256Type>($($argument),*),
            other => unreachable!("{other} is not a type of numbers"),
        }
    };
}

/// The numbers of an array, NaN where it has gaps, and what must be kept to give the array back.
pub(super) fn read(array: &ArrayRef, gaps: &Gaps) -> (ScalarBuffer<f64>, Part) {
    of_type!(array.data_type(), read_as(array, gaps))
}

fn read_as<T: Number>(array: &ArrayRef, gaps: &Gaps) -> (ScalarBuffer<f64>, Part) {
    let typed = array.as_primitive::<T>();
    let decimal = Decimal::of(array.data_type());
    // What stands under a null is anything: at worst an array is kept that need not be.
    let exact = |wide: f64, cell: T::Native| wide.is_nan() || T::nearest(wide, decimal) == cell;
    let numbers = T::widen_all(typed.values(), decimal);
    let all_exact = numbers.iter().zip(typed.values()).all(|(wide, cell)| exact(*wide, *cell));
    let n_nulls = typed.null_count();
    if n_nulls == 0 && gaps.no_numbers() {
        let gap = numbers.iter().any(|v| v.is_nan()).then_some(f64::NAN);
        return (numbers, part(all_exact, gap, array));
    }
    let mut numbers = numbers.to_vec();
    let (mut gap, mut alike) = (None, true);
    if !gaps.no_numbers() {
        for (i, number) in numbers.iter_mut().enumerate() {
            let came = *number;
            *number = gaps.number(came);
            if number.is_nan() && typed.is_valid(i) {
                alike &= gap.is_none_or(|other: f64| other == came || (other.is_nan() && came.is_nan()));
                gap = Some(came);
            }
        }
    }
    if let Some(valid) = typed.nulls() {
        (!valid.inner()).set_indices().for_each(|i| numbers[i] = f64::NAN);
    }
    let n_gaps = numbers.iter().filter(|v| v.is_nan()).count();
    alike &= n_nulls == 0 || n_gaps == n_nulls;
    (numbers.into(), part(all_exact && alike, gap, array))
}

fn part(in_dataset: bool, gap: Option<f64>, array: &ArrayRef) -> Part {
    if in_dataset { Part::Numbers { gap } } else { Part::Array(array.clone()) }
}

/// The cells of a part in their own type, from pairs of numbers: as read, and as filled. A gap whose
/// filled number is NaN stays as it came.
pub(super) fn fill(part: &Part, data_type: &DataType, cells: impl Iterator<Item = (f64, f64)>) -> ArrayRef {
    of_type!(data_type, fill_as(part, data_type, cells))
}

fn fill_as<T: Number>(
    part: &Part,
    data_type: &DataType,
    cells: impl Iterator<Item = (f64, f64)>,
) -> ArrayRef {
    let decimal = Decimal::of(data_type);
    let near = |value| T::nearest(value, decimal);
    let filled: PrimitiveArray<T> = match part {
        Part::Numbers { gap } => {
            let cell = |(before, after): (f64, f64)| {
                let value = if before.is_nan() { after } else { before };
                if value.is_nan() { gap.map(near) } else { Some(near(value)) }
            };
            cells.map(cell).collect()
        }
        Part::Array(array) => {
            let came = array.as_primitive::<T>();
            let cell = |(came, (before, after)): (Option<T::Native>, (f64, f64))| {
                if before.is_nan() && !after.is_nan() { Some(near(after)) } else { came }
            };
            came.iter().zip(cells).map(cell).collect()
        }
    };
    Arc::new(filled.with_data_type(data_type.clone()))
}

/// A type of numbers.
trait Number: ArrowPrimitiveType {
    /// The f64 nearest to a value.
    fn widen(value: Self::Native, decimal: Decimal) -> f64;
    /// The value nearest to a finite f64, within the range of the type.
    fn nearest(value: f64, decimal: Decimal) -> Self::Native;
    /// Many values at once.
    fn widen_all(values: &ScalarBuffer<Self::Native>, decimal: Decimal) -> ScalarBuffer<f64> {
        values.iter().map(|&value| Self::widen(value, decimal)).collect()
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        #[allow(clippy::cast_lossless, reason = "one text for all types, the wide ones too")]
        impl Number for $type {
            #[inline]
            fn widen(value: Self::Native, _: Decimal) -> f64 {
                value as f64
            }
            #[inline]
            fn nearest(value: f64, _: Decimal) -> Self::Native {
                value.round() as Self::Native // `as` stays within the range
            }
        }
    )*};
}
integers!(Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type);

impl Number for Float64Type {
    #[inline]
    fn widen(value: f64, _: Decimal) -> f64 {
        value
    }
    #[inline]
    fn nearest(value: f64, _: Decimal) -> f64 {
        value
    }
    fn widen_all(values: &ScalarBuffer<f64>, _: Decimal) -> ScalarBuffer<f64> {
        values.clone() // shared, not copied
    }
}

impl Number for Float32Type {
    #[inline]
    fn widen(value: f32, _: Decimal) -> f64 {
        f64::from(value)
    }
    #[inline]
    fn nearest(value: f64, _: Decimal) -> f32 {
        // Finite numbers stay finite; NaN passes.
        if value.is_infinite() { value as f32 } else { (value as f32).clamp(f32::MIN, f32::MAX) }
    }
}

type Half = <Float16Type as ArrowPrimitiveType>::Native;
impl Number for Float16Type {
    fn widen(value: Half, _: Decimal) -> f64 {
        value.to_f64()
    }
    fn nearest(value: f64, _: Decimal) -> Half {
        let half = Half::from_f64(value);
        if half.is_infinite() && value.is_finite() {
            return if value > 0.0 { Half::MAX } else { Half::MIN };
        }
        half
    }
}

macro_rules! decimals {
    ($($type:ty, $wide:expr, $narrow:expr;)*) => {$(
        impl Number for $type {
            fn widen(value: Self::Native, decimal: Decimal) -> f64 {
                decimal.widen($wide(value))
            }
            fn nearest(value: f64, decimal: Decimal) -> Self::Native {
                $narrow(decimal.nearest(value))
            }
        }
    )*};
}
decimals! {
    Decimal32Type, |v| i256::from_i128(i128::from(v)), |v: i256| v.as_i128() as i32;
    Decimal64Type, |v| i256::from_i128(i128::from(v)), |v: i256| v.as_i128() as i64;
    Decimal128Type, i256::from_i128, i256::as_i128;
    Decimal256Type, |v| v, |v| v;
}

/// A decimal type: `value = digits · 10^−scale`, with at most `precision` digits.
#[derive(Debug, Clone, Copy)]
struct Decimal {
    precision: u8,
    scale: i8,
}

impl Decimal {
    fn of(data_type: &DataType) -> Self {
        match *data_type {
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => Self { precision, scale },
            _ => Self { precision: 0, scale: 0 },
        }
    }

    /// `10^scale` where f64 holds it exactly.
    fn power(self) -> Option<f64> {
        const POWERS: [f64; 23] = [
            1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
            1e18, 1e19, 1e20, 1e21, 1e22,
        ];
        usize::try_from(self.scale).ok().and_then(|scale| POWERS.get(scale).copied())
    }

    fn widen(self, digits: i256) -> f64 {
        // A quotient of two exact numbers is rounded once; all else is read as text is.
        match (digits.to_i128(), self.power()) {
            (Some(small), Some(power)) if small.unsigned_abs() < 1 << 53 => small as f64 / power,
            _ => format!("{digits}e{}", -i32::from(self.scale)).parse().expect("digits are a number"),
        }
    }

    fn nearest(self, value: f64) -> i256 {
        let ten = i256::from_i128(10);
        let largest = ten.wrapping_pow(u32::from(self.precision)).wrapping_sub(i256::ONE);
        let digits = match self.power() {
            Some(power) if (value * power).abs() < (1_u64 << 50) as f64 => {
                Some(i256::from_i128((value * power).round() as i128))
            }
            _ if self.scale >= 0 => {
                let text = format!("{value:.*}", self.scale.unsigned_abs() as usize);
                i256::from_string(&text.replace('.', ""))
            }
            _ => i256::from_f64((value / 10_f64.powi(-i32::from(self.scale))).round()),
        };
        let beyond = if value < 0.0 { largest.wrapping_neg() } else { largest };
        digits.unwrap_or(beyond).clamp(largest.wrapping_neg(), largest)
    }
}
