//! Loops over the rows of a table, compiled for the widest vectors the machine has.
//!
//! These passes read the whole table; in baseline SSE2 code they cost as much as the matrix products
//! they feed.

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
