//! Loops over the rows of a table, compiled for the widest vectors the machine has.
//!
//! These passes read the whole table; in baseline SSE2 code they cost as much as the matrix products
//! they feed.

use super::Cell;
use super::lanes::LANES;
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Numbers beside each other from which a row fills vectors.
const WIDE: usize = 64;

/// How many short rows are taken as one.
fn rows_as_one(n_columns: usize) -> usize {
    if n_columns < WIDE { WIDE.div_ceil(n_columns) } else { 1 }
}

/// `out = (rows − mean) · inverse` in the precision of these, row by row; `rows` and `out` are row-major with `mean.len()`
/// columns.
pub(crate) fn center<C: Cell, P: Cell, W: Cell>(rows: &[C], mean: &[P], inverse: &[P], out: &mut [W]) {
    let as_one = rows_as_one(mean.len());
    let wide = as_one * mean.len();
    let whole = rows.len() / wide * wide;
    let (out, rest) = out[..rows.len()].split_at_mut(whole);
    if as_one > 1 && whole > 0 {
        let (mean, inverse) = (mean.repeat(as_one), inverse.repeat(as_one));
        Arch::new().dispatch(Center { rows: &rows[..whole], mean: &mean, inverse: &inverse, out });
    } else {
        Arch::new().dispatch(Center { rows: &rows[..whole], mean, inverse, out });
    }
    Arch::new().dispatch(Center { rows: &rows[whole..], mean, inverse, out: rest });
}

struct Center<'a, C, P, W> {
    rows: &'a [C],
    mean: &'a [P],
    inverse: &'a [P],
    out: &'a mut [W],
}

impl<C: Cell, P: Cell, W: Cell> WithSimd for Center<'_, C, P, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let d = self.mean.len();
        let (mean, inverse) = (&self.mean[..d], &self.inverse[..d]);
        for (row, out) in self.rows.chunks_exact(d).zip(self.out.chunks_exact_mut(d)) {
            for j in 0..d {
                out[j] = W::of(((P::of(row[j].wide()) - mean[j]) * inverse[j]).wide());
            }
        }
    }
}

/// Adds every row, less `origin`, to `sum`.
pub(crate) fn add_rows<C: Cell>(rows: &[C], origin: &[f64], sum: &mut [f64]) {
    // Sums of double cells keep their order.
    let as_one = if C::ROUNDING > 0.0 { rows_as_one(origin.len()) } else { 1 };
    let wide = as_one * origin.len();
    let whole = if as_one > 1 { rows.len() / wide * wide } else { 0 };
    if whole > 0 {
        let mut sums = vec![0.0; wide];
        Arch::new().dispatch(AddRows {
            rows: &rows[..whole],
            origin: &origin.repeat(as_one),
            sum: &mut sums,
        });
        for part in sums.chunks_exact(origin.len()) {
            crate::parallel::add(sum, part);
        }
    }
    Arch::new().dispatch(AddRows { rows: &rows[whole..], origin, sum });
}

struct AddRows<'a, C> {
    rows: &'a [C],
    origin: &'a [f64],
    sum: &'a mut [f64],
}

impl<C: Cell> WithSimd for AddRows<'_, C> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let d = self.origin.len();
        let (origin, sum) = (&self.origin[..d], &mut self.sum[..d]);
        for row in self.rows.chunks_exact(d) {
            for j in 0..d {
                sum[j] += row[j].wide() - origin[j];
            }
        }
    }
}

/// As [`center`], with 0 at the gaps.
pub(crate) fn center_observed(rows: &[f64], mean: &[f64], inverse: &[f64], out: &mut [f64]) {
    center(rows, mean, inverse, out);
    Arch::new().dispatch(ZeroGaps(out));
}

struct ZeroGaps<'a>(&'a mut [f64]);

impl WithSimd for ZeroGaps<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for v in self.0 {
            *v = if v.is_nan() { 0.0 } else { *v };
        }
    }
}

/// Columns whose sums stay in the first-level cache.
pub(crate) const STRIP: usize = 512;

/// What is added up of each column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The count of its observed cells, their sum and the sum of their squares.
    All,
    /// The sum alone, where no cell is missing.
    Sum,
    /// The sum of squares alone, where no cell is missing.
    Squares,
}

/// Adds to each of some columns of rows of `d` cells what is wanted of them, about `origin`.
pub(crate) fn add_column_sums<C: Cell>(
    rows: &[C],
    d: usize,
    columns: Range<usize>,
    origin: &[f64],
    sums: &mut ColumnSums,
) {
    Arch::new().dispatch(AddColumns { rows, d, columns, origin, sums });
}

/// Running sums of [`add_column_sums`]; what is not wanted is empty.
pub(crate) struct ColumnSums {
    wanted: Wanted,
    pub(crate) count: Vec<f64>,
    pub(crate) sum: Vec<f64>,
    pub(crate) squares: Vec<f64>,
}

impl ColumnSums {
    pub(crate) fn new(d: usize, wanted: Wanted) -> Self {
        let zeros = |unless: Wanted| vec![0.0; if wanted == unless { 0 } else { d }];
        let count = vec![0.0; if wanted == Wanted::All { d } else { 0 }];
        Self { wanted, count, sum: zeros(Wanted::Squares), squares: zeros(Wanted::Sum) }
    }
}

struct AddColumns<'a, C> {
    rows: &'a [C],
    d: usize,
    columns: Range<usize>,
    origin: &'a [f64],
    sums: &'a mut ColumnSums,
}

impl<C: Cell> WithSimd for AddColumns<'_, C> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        let (d, rows) = (self.d, self.rows.chunks_exact(BESIDE * self.d));
        let rest = rows.remainder().chunks_exact(d);
        rows.for_each(|rows| self.add::<BESIDE>(std::array::from_fn(|r| &rows[r * d..][..d])));
        rest.for_each(|row| self.add([row]));
    }
}

/// Rows that are read side by side, so that the sums of a column are read and written once for all of them.
const BESIDE: usize = 4;

impl<C: Cell> AddColumns<'_, C> {
    /// Adds R rows, each in its turn: sums of double cells keep their order.
    #[inline(always)]
    fn add<const R: usize>(&mut self, rows: [&[C]; R]) {
        let n = self.columns.len();
        let (origin, rows) = (&self.origin[..n], rows.map(|row| &row[self.columns.clone()][..n]));
        let wanted = self.sums.wanted;
        let ColumnSums { count, sum, squares, .. } = &mut *self.sums;
        match wanted {
            Wanted::All => {
                let (count, sum, squares) = (&mut count[..n], &mut sum[..n], &mut squares[..n]);
                for j in 0..n {
                    let mut of_column = [count[j], sum[j], squares[j]];
                    for row in &rows {
                        let seen = !row[j].is_gap();
                        let y = if seen { row[j].wide() - origin[j] } else { 0.0 };
                        of_column[0] += if seen { 1.0 } else { 0.0 };
                        of_column[1] += y;
                        of_column[2] += y * y;
                    }
                    [count[j], sum[j], squares[j]] = of_column;
                }
            }
            Wanted::Sum => {
                let sum = &mut sum[..n];
                for j in 0..n {
                    let mut of_column = sum[j];
                    for row in &rows {
                        of_column += row[j].wide() - origin[j];
                    }
                    sum[j] = of_column;
                }
            }
            Wanted::Squares => {
                let squares = &mut squares[..n];
                for j in 0..n {
                    let mut of_column = squares[j];
                    for row in &rows {
                        let y = row[j].wide() - origin[j];
                        of_column += y * y;
                    }
                    squares[j] = of_column;
                }
            }
        }
    }
}

/// What [`mark_gaps`] has seen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Seen {
    /// Numbers only: no bit was set.
    Complete,
    Gaps,
    Infinite,
}

/// Sets one bit per NaN in `masks`, `⌈columns/64⌉` words per row.
pub(crate) fn mark_gaps<C: Cell>(rows: &[C], n_columns: usize, masks: &mut [u64]) -> Seen {
    Arch::new().dispatch(MarkGaps { rows, n_columns, masks })
}

struct MarkGaps<'a, C> {
    rows: &'a [C],
    n_columns: usize,
    masks: &'a mut [u64],
}

impl<C: Cell> WithSimd for MarkGaps<'_, C> {
    type Output = Seen;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Seen {
        if self.rows.iter().fold(true, |all, v| all & v.is_number()) {
            return Seen::Complete;
        }
        let words = self.n_columns.div_ceil(64);
        let mut finite = true;
        for (mask, row) in self.masks.chunks_exact_mut(words).zip(self.rows.chunks_exact(self.n_columns)) {
            // Most rows of most tables are complete: look before building the mask.
            if row.iter().fold(true, |all, v| all & v.is_number()) {
                continue;
            }
            for (word, cells) in mask.iter_mut().zip(row.chunks(64)) {
                for (j, v) in cells.iter().enumerate() {
                    *word |= u64::from(v.is_gap()) << j;
                    finite &= v.is_gap() || v.is_number();
                }
            }
        }
        if finite { Seen::Gaps } else { Seen::Infinite }
    }
}

/// Bits clear in both of two equally long bitsets.
pub(crate) fn count_clear_in_both(a: &[u64], b: &[u64]) -> u32 {
    Arch::new().dispatch(ClearInBoth(a, b))
}

struct ClearInBoth<'a>(&'a [u64], &'a [u64]);

impl WithSimd for ClearInBoth<'_> {
    type Output = u32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> u32 {
        self.0.iter().zip(self.1).map(|(a, b)| (!(a | b)).count_ones()).sum()
    }
}

/// `aᵀ b` in eight sums side by side.
pub(crate) fn wide_dot(a: &[f64], b: &[f64]) -> f64 {
    Arch::new().dispatch(WideDot(a, b))
}

struct WideDot<'a>(&'a [f64], &'a [f64]);

impl WithSimd for WideDot<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let (a, b) = (self.0.chunks_exact(LANES), self.1.chunks_exact(LANES));
        let rest = super::dot(a.remainder(), b.remainder());
        let mut sums = [0.0; LANES];
        for (a, b) in a.zip(b) {
            for l in 0..LANES {
                sums[l] += a[l] * b[l];
            }
        }
        sums.iter().sum::<f64>() + rest
    }
}

/// `a ← a + f · b`
pub(crate) fn add_multiple(a: &mut [f64], f: f64, b: &[f64]) {
    Arch::new().dispatch(AddMultiple(a, f, b));
}

struct AddMultiple<'a>(&'a mut [f64], f64, &'a [f64]);

impl WithSimd for AddMultiple<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self(a, f, b) = self;
        for (a, b) in a.iter_mut().zip(b) {
            *a += f * b;
        }
    }
}

/// `a ← a + b`
pub(crate) fn add_wide(a: &mut [f64], b: &[f32]) {
    Arch::new().dispatch(AddWide(a, b));
}

struct AddWide<'a>(&'a mut [f64], &'a [f32]);

impl WithSimd for AddWide<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (a, b) in self.0.iter_mut().zip(self.1) {
            *a += f64::from(*b);
        }
    }
}

/// Least and greatest observed cell of some columns of rows of `d` cells; ∞ and −∞ of an empty one.
pub(crate) fn extremes<C: Cell>(rows: &[C], d: usize, columns: Range<usize>) -> (Vec<f64>, Vec<f64>) {
    // Short rows are taken together, with all their columns.
    let (pitch, strip) = match rows_as_one(d) {
        as_one if as_one > 1 && columns == (0..d) => (as_one * d, 0..as_one * d),
        _ => (d, columns.clone()),
    };
    let (n, whole) = (columns.len(), rows.len() / pitch * pitch);
    let (mut low, mut high) =
        (vec![C::of(f64::INFINITY); strip.len()], vec![C::of(f64::NEG_INFINITY); strip.len()]);
    let all = AddExtremes { rows: &rows[..whole], pitch, columns: strip, low: &mut low, high: &mut high };
    Arch::new().dispatch(all);
    let (rows, low_of, high_of) = (&rows[whole..], &mut low[..n], &mut high[..n]);
    Arch::new().dispatch(AddExtremes { rows, pitch: d, columns, low: low_of, high: high_of });
    let of_column = |numbers: &[C], pick: fn(f64, f64) -> f64, none: f64| {
        (0..n).map(|j| numbers[j..].iter().step_by(n).fold(none, |m, v| pick(m, v.wide()))).collect()
    };
    (of_column(&low, f64::min, f64::INFINITY), of_column(&high, f64::max, f64::NEG_INFINITY))
}

struct AddExtremes<'a, C> {
    rows: &'a [C],
    pitch: usize,
    columns: Range<usize>,
    low: &'a mut [C],
    high: &'a mut [C],
}

impl<C: Cell> WithSimd for AddExtremes<'_, C> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        let (pitch, rows) = (self.pitch, self.rows.chunks_exact(BESIDE * self.pitch));
        let rest = rows.remainder().chunks_exact(pitch);
        rows.for_each(|rows| self.add::<BESIDE>(std::array::from_fn(|r| &rows[r * pitch..][..pitch])));
        rest.for_each(|row| self.add([row]));
    }
}

impl<C: Cell> AddExtremes<'_, C> {
    #[inline(always)]
    fn add<const R: usize>(&mut self, rows: [&[C]; R]) {
        let n = self.columns.len();
        let rows = rows.map(|row| &row[self.columns.clone()][..n]);
        let (low, high) = (&mut self.low[..n], &mut self.high[..n]);
        // NaN is neither less nor more.
        for j in 0..n {
            let (mut least, mut greatest) = (low[j], high[j]);
            for row in &rows {
                least = if row[j] < least { row[j] } else { least };
                greatest = if row[j] > greatest { row[j] } else { greatest };
            }
            (low[j], high[j]) = (least, greatest);
        }
    }
}

/// Of some columns, in the precision of their cells: the least and the greatest cell, the sum and the sum of squares about `origin`. A gap
/// makes the sums of its column gaps.
pub(crate) struct Rough<C> {
    pub(crate) low: Vec<C>,
    pub(crate) high: Vec<C>,
    pub(crate) sum: Vec<C>,
    pub(crate) squares: Vec<C>,
}

impl<C: Cell> Rough<C> {
    pub(crate) fn of(rows: &[C], d: usize, columns: Range<usize>, origin: &[C]) -> Self {
        let all = |v: f64| vec![C::of(v); columns.len()];
        let mut found =
            Self { low: all(f64::INFINITY), high: all(f64::NEG_INFINITY), sum: all(0.0), squares: all(0.0) };
        Arch::new().dispatch(AddRough { rows, d, columns, origin, to: &mut found });
        found
    }
}

struct AddRough<'a, C> {
    rows: &'a [C],
    d: usize,
    columns: Range<usize>,
    origin: &'a [C],
    to: &'a mut Rough<C>,
}

impl<C: Cell> WithSimd for AddRough<'_, C> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        let (d, rows) = (self.d, self.rows.chunks_exact(BESIDE * self.d));
        let rest = rows.remainder().chunks_exact(d);
        rows.for_each(|rows| self.add::<BESIDE>(std::array::from_fn(|r| &rows[r * d..][..d])));
        rest.for_each(|row| self.add([row]));
    }
}

impl<C: Cell> AddRough<'_, C> {
    #[inline(always)]
    fn add<const R: usize>(&mut self, rows: [&[C]; R]) {
        let n = self.columns.len();
        let (origin, rows) = (&self.origin[..n], rows.map(|row| &row[self.columns.clone()][..n]));
        let Rough { low, high, sum, squares } = &mut *self.to;
        let (low, high, sum, squares) = (&mut low[..n], &mut high[..n], &mut sum[..n], &mut squares[..n]);
        for j in 0..n {
            let mut of_column = [low[j], high[j], sum[j], squares[j]];
            for row in &rows {
                let y = row[j] - origin[j];
                of_column[0] = if row[j] < of_column[0] { row[j] } else { of_column[0] };
                of_column[1] = if row[j] > of_column[1] { row[j] } else { of_column[1] };
                of_column[2] += y;
                of_column[3] += y * y;
            }
            [low[j], high[j], sum[j], squares[j]] = of_column;
        }
    }
}
