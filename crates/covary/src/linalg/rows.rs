//! Loops over the rows of a table, compiled for the widest vectors the machine has.
//!
//! These passes read the whole table; in baseline SSE2 code they cost as much as the matrix products
//! they feed.

use super::lanes::LANES;
use pulp::{Arch, Simd, WithSimd};

/// `out = (rows − mean) · inverse`, row by row; `rows` and `out` are row-major with `mean.len()`
/// columns.
pub(crate) fn center(rows: &[f64], mean: &[f64], inverse: &[f64], out: &mut [f64]) {
    Arch::new().dispatch(Center { rows, mean, inverse, out });
}

struct Center<'a> {
    rows: &'a [f64],
    mean: &'a [f64],
    inverse: &'a [f64],
    out: &'a mut [f64],
}

impl WithSimd for Center<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let d = self.mean.len();
        let (mean, inverse) = (&self.mean[..d], &self.inverse[..d]);
        for (row, out) in self.rows.chunks_exact(d).zip(self.out.chunks_exact_mut(d)) {
            for j in 0..d {
                out[j] = (row[j] - mean[j]) * inverse[j];
            }
        }
    }
}

/// Adds every row, less `origin`, to `sum`.
pub(crate) fn add_rows(rows: &[f64], origin: &[f64], sum: &mut [f64]) {
    Arch::new().dispatch(AddRows { rows, origin, sum });
}

struct AddRows<'a> {
    rows: &'a [f64],
    origin: &'a [f64],
    sum: &'a mut [f64],
}

impl WithSimd for AddRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let d = self.origin.len();
        let (origin, sum) = (&self.origin[..d], &mut self.sum[..d]);
        for row in self.rows.chunks_exact(d) {
            for j in 0..d {
                sum[j] += row[j] - origin[j];
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

/// Adds to each column: the count of its observed cells, their sum about `origin`, and the sum of
/// squares about it.
pub(crate) fn add_column_sums(rows: &[f64], origin: &[f64], sums: &mut ColumnSums) {
    Arch::new().dispatch(AddColumns { rows, origin, sums });
}

/// Running sums of [`add_column_sums`].
pub(crate) struct ColumnSums {
    pub(crate) count: Vec<f64>,
    pub(crate) sum: Vec<f64>,
    pub(crate) squares: Vec<f64>,
}

impl ColumnSums {
    pub(crate) fn new(d: usize) -> Self {
        Self { count: vec![0.0; d], sum: vec![0.0; d], squares: vec![0.0; d] }
    }
}

struct AddColumns<'a> {
    rows: &'a [f64],
    origin: &'a [f64],
    sums: &'a mut ColumnSums,
}

impl WithSimd for AddColumns<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let d = self.origin.len();
        let origin = &self.origin[..d];
        let (count, sum) = (&mut self.sums.count[..d], &mut self.sums.sum[..d]);
        let squares = &mut self.sums.squares[..d];
        for row in self.rows.chunks_exact(d) {
            for j in 0..d {
                let seen = !row[j].is_nan();
                let y = if seen { row[j] - origin[j] } else { 0.0 };
                count[j] += if seen { 1.0 } else { 0.0 };
                sum[j] += y;
                squares[j] += y * y;
            }
        }
    }
}

/// Sets one bit per NaN in `masks`, `⌈columns/64⌉` words per row; false if a cell is infinite.
pub(crate) fn mark_gaps(rows: &[f64], n_columns: usize, masks: &mut [u64]) -> bool {
    Arch::new().dispatch(MarkGaps { rows, n_columns, masks })
}

struct MarkGaps<'a> {
    rows: &'a [f64],
    n_columns: usize,
    masks: &'a mut [u64],
}

impl WithSimd for MarkGaps<'_> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> bool {
        let words = self.n_columns.div_ceil(64);
        let mut finite = true;
        for (mask, row) in self.masks.chunks_exact_mut(words).zip(self.rows.chunks_exact(self.n_columns)) {
            // Most rows of most tables are complete: look before building the mask.
            if row.iter().fold(true, |all, v| all & v.is_finite()) {
                continue;
            }
            for (word, cells) in mask.iter_mut().zip(row.chunks(64)) {
                for (j, v) in cells.iter().enumerate() {
                    *word |= u64::from(v.is_nan()) << j;
                    finite &= !v.is_infinite();
                }
            }
        }
        finite
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
