//! `Aᵀ A` and `A Aᵀ` in single precision, in the registers of the machine.
//!
//! The product of a general library takes 100 columns by halves, and packs each. Here a tile of sums stays in registers while
//! the rows of a run go by as they are: 100 000 × 100 cells took 3 ms, some 15 before.

use super::Matrix;
use pulp::{Arch, Simd, WithSimd};

/// Cells that are read behind the last row, whatever they are: the longest tile.
pub(super) const BEHIND: usize = 64;
/// Vectors in a row of a tile, and the cells of as many of the longest.
const VECTORS: usize = 3;
const LONGEST: usize = 16 * VECTORS;

/// Adds `Aᵀ A`, A being `n_rows` rows, to the lower triangle of `out`: products of at most `run` rows are added in single
/// precision. There are [`BEHIND`] cells more than those of the rows.
pub(super) fn add_single(out: &mut Matrix, rows: &[f32], n_rows: usize, run: usize) {
    let d = out.n_columns();
    assert!(rows.len() >= n_rows * d + BEHIND, "cells behind the last row");
    for start in (0..n_rows).step_by(run) {
        let (rows, n_rows) = (&rows[start * d..], run.min(n_rows - start));
        Arch::new().dispatch(Tiles { out: out.as_mut_slice(), rows, n_rows, d });
    }
}

struct Tiles<'a> {
    out: &'a mut [f64],
    rows: &'a [f32],
    n_rows: usize,
    d: usize,
}

impl WithSimd for Tiles<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        // As many sums as leave room for a row of vectors and the number they are multiplied by.
        if S::REGISTER_COUNT >= 32 { self.all::<S, 8>(simd) } else { self.all::<S, 4>(simd) }
    }
}

impl Tiles<'_> {
    /// Tiles of M rows; those beside each other share columns that are in the first-level cache by then.
    #[inline(always)]
    fn all<S: Simd, const M: usize>(&mut self, simd: S) {
        for j in (0..self.d).step_by(VECTORS * S::F32_LANES) {
            for i in (j / M * M..self.d).step_by(M) {
                // From column j to the diagonal.
                let columns = (i + M).min(self.d).saturating_sub(j);
                match columns.div_ceil(S::F32_LANES) {
                    0 => {}
                    1 => self.tile::<S, M, 1>(simd, i, j),
                    2 => self.tile::<S, M, 2>(simd, i, j),
                    _ => self.tile::<S, M, VECTORS>(simd, i, j),
                }
            }
        }
    }

    /// The sums of row i and the M − 1 below it, from column j on. What is beyond the last column or above the diagonal is summed and
    /// not looked at.
    #[inline(always)]
    #[allow(clippy::manual_memcpy, reason = "copied as a whole the sums would be in memory while rows go by")]
    fn tile<S: Simd, const M: usize, const V: usize>(&mut self, simd: S, i: usize, j: usize) {
        let d = self.d;
        let mut sums = [[simd.splat_f32s(0.0); V]; M];
        for r in 0..self.n_rows {
            let left = &self.rows[r * d + i..][..M];
            let right = S::as_simd_f32s(&self.rows[r * d + j..][..V * S::F32_LANES]).0;
            let right: [S::f32s; V] = std::array::from_fn(|v| right[v]);
            for m in 0..M {
                let left = simd.splat_f32s(left[m]);
                for v in 0..V {
                    sums[m][v] = simd.mul_add_e_f32s(left, right[v], sums[m][v]);
                }
            }
        }
        // Written out by constant indices, so that the sums need not be in memory while rows go by.
        let mut found = [[0.0; LONGEST]; M];
        for (found, sums) in found.iter_mut().zip(&sums) {
            let found = S::as_mut_simd_f32s(&mut found[..V * S::F32_LANES]).0;
            for v in 0..V {
                found[v] = sums[v];
            }
        }
        for (i, sums) in (i..d).zip(&found).filter(|(i, _)| *i >= j) {
            for (out, sum) in self.out[i * d + j..=i * d + i].iter_mut().zip(sums) {
                *out += f64::from(*sum);
            }
        }
    }
}

/// Adds `A Aᵀ`, A being rows of `length` cells, a multiple of [`BEHIND`], one every `pitch` cells, to the lower triangle of `out`: no more
/// than `length` products are added in single precision, each lane of a vector for itself.
pub(super) fn add_outer_single(out: &mut Matrix, rows: &[f32], pitch: usize, length: usize) {
    let n = out.n_rows();
    assert!(
        length.is_multiple_of(BEHIND) && rows.len() >= (n - 1) * pitch + length,
        "{n} rows of whole vectors"
    );
    Arch::new().dispatch(OuterTiles { out: out.as_mut_slice(), rows, n, pitch, length });
}

struct OuterTiles<'a> {
    out: &'a mut [f64],
    rows: &'a [f32],
    n: usize,
    pitch: usize,
    length: usize,
}

impl WithSimd for OuterTiles<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        if S::REGISTER_COUNT >= 32 { self.all::<S, 4, 5>(simd) } else { self.all::<S, 2, 4>(simd) }
    }
}

impl OuterTiles<'_> {
    #[inline(always)]
    fn all<S: Simd, const M: usize, const V: usize>(&mut self, simd: S) {
        for j in (0..self.n).step_by(V) {
            for i in (j / M * M..self.n).step_by(M) {
                self.tile::<S, M, V>(simd, i, j);
            }
        }
    }

    /// Products of row i and the M − 1 below it with row j and the V − 1 below it. Beyond the last row it is taken again, and what is above
    /// the diagonal is summed and not looked at.
    #[inline(always)]
    fn tile<S: Simd, const M: usize, const V: usize>(&mut self, simd: S, i: usize, j: usize) {
        let Self { n, pitch, length, .. } = *self;
        let n_vectors = length / S::F32_LANES;
        let row = |k: usize| &S::as_simd_f32s(&self.rows[k.min(n - 1) * pitch..][..length]).0[..n_vectors];
        let left: [&[S::f32s]; M] = std::array::from_fn(|m| row(i + m));
        let right: [&[S::f32s]; V] = std::array::from_fn(|v| row(j + v));
        // Begun with the first products: zeros would come from memory.
        let mut sums: [[S::f32s; V]; M] =
            std::array::from_fn(|m| std::array::from_fn(|v| simd.mul_f32s(left[m][0], right[v][0])));
        for r in 1..n_vectors {
            let right: [S::f32s; V] = std::array::from_fn(|v| right[v][r]);
            for m in 0..M {
                let left = left[m][r];
                for v in 0..V {
                    sums[m][v] = simd.mul_add_e_f32s(left, right[v], sums[m][v]);
                }
            }
        }
        for m in 0..M {
            for v in 0..V {
                let sum = simd.reduce_sum_f32s(sums[m][v]);
                if i + m < n && j + v <= i + m {
                    self.out[(i + m) * n + j + v] += f64::from(sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cells between −1 and 1 in no order, and what may stand behind them.
    fn cells(n_rows: usize, d: usize) -> Vec<f32> {
        let cell = |i: usize| ((i * 7919 + 13) % 2003) as f32 / 1001.5 - 1.0;
        (0..n_rows * d).map(cell).chain(std::iter::repeat_n(f32::NAN, BEHIND)).collect()
    }

    #[test]
    fn products_are_those_of_double_precision_and_stay_below_the_diagonal() {
        for d in [1, 3, 4, 8, 15, 16, 17, 31, 48, 49, 64, 100, 131] {
            for n_rows in [1, 2, 7, 64, 65] {
                let cells = cells(n_rows, d);
                let mut out = Matrix::from_fn(d, d, |i, j| (i + 2 * j) as f64);
                add_single(&mut out, &cells, n_rows, 32);
                for i in 0..d {
                    for j in 0..d {
                        let product = |r: usize| f64::from(cells[r * d + i]) * f64::from(cells[r * d + j]);
                        let sum = if j <= i { (0..n_rows).map(product).sum() } else { 0.0 };
                        let off = out[(i, j)] - (i + 2 * j) as f64 - sum;
                        assert!(off.abs() < 1e-5, "{n_rows} × {d}, {i}, {j}: off by {off}");
                    }
                }
            }
        }
    }

    #[test]
    fn products_of_rows_are_those_of_double_precision_and_stay_below_the_diagonal() {
        for n in [1, 2, 3, 4, 5, 9, 20, 23] {
            for (pitch, length) in [(64, 64), (320, 320), (77, 64)] {
                let cells = cells(n, pitch);
                let mut out = Matrix::from_fn(n, n, |i, j| (i + 2 * j) as f64);
                add_outer_single(&mut out, &cells, pitch, length);
                for i in 0..n {
                    for j in 0..n {
                        let product =
                            |r: usize| f64::from(cells[i * pitch + r]) * f64::from(cells[j * pitch + r]);
                        let sum = if j <= i { (0..length).map(product).sum() } else { 0.0 };
                        let off = out[(i, j)] - (i + 2 * j) as f64 - sum;
                        assert!(off.abs() < 2e-5, "{n} × {length}, {i}, {j}: off by {off}");
                    }
                }
            }
        }
    }
}
