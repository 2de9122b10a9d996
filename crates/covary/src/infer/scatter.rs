//! Products with a table that is loaded (centered, scaled, gaps as 0) a block of rows at a time, never
//! as a whole.

use crate::linalg::gemm;
use crate::parallel::{BLOCK_CELLS, add, over_pieces};
use crate::{Dataset, Matrix};
use faer::{MatMut, MatRef};
use std::ops::Range;

/// Sums over pieces of `0..n` the matrices that `work` fills.
pub(super) fn sum_matrices(
    n: usize,
    step: usize,
    shape: (usize, usize),
    work: impl Fn(Range<usize>, &mut Matrix) + Sync,
) -> Matrix {
    let part_of = |piece| {
        let mut part = Matrix::zeros(shape.0, shape.1);
        work(piece, &mut part);
        part
    };
    over_pieces(n, step, part_of, |a, b| add(a.as_mut_slice(), b.as_slice()))
}

/// `Σ_blocks Yᵀ R`, d × `width`: `load` turns the cells of whole rows into Y, and `right` gives R for
/// a block of Y and the rows it holds.
pub(super) fn transpose_times(
    data: &Dataset,
    width: usize,
    load: &(impl Fn(&[f64], &mut [f64]) + Sync),
    right: impl Fn(&[f64], Range<usize>, &mut Vec<f64>) + Sync,
) -> Matrix {
    let (n, d) = (data.n_rows(), data.n_columns());
    let step = (BLOCK_CELLS / d).max(64);
    sum_matrices(n, step, (d, width), |rows, part| {
        let (mut y, mut r) = (vec![0.0; step * d], Vec::new());
        for start in rows.clone().step_by(step) {
            let block = start..(start + step).min(rows.end);
            let m = block.len();
            let y = &mut y[..m * d];
            load(&data.values().as_slice()[start * d..(start + m) * d], y);
            right(y, block, &mut r);
            let y = MatRef::from_row_major_slice(y, m, d);
            gemm(part.view_mut(), true, y.transpose(), MatRef::from_row_major_slice(&r, m, width));
        }
    })
}

/// `out = Yᵀ (Y X) / divisor`, one pass over the table.
pub(crate) fn scatter_times(
    data: &Dataset,
    load: &(impl Fn(&[f64], &mut [f64]) + Sync),
    divisor: f64,
    x: MatRef<'_, f64>,
    mut out: MatMut<'_, f64>,
) {
    let (d, b) = (data.n_columns(), x.ncols());
    let sum = transpose_times(data, b, load, |y, rows, r| {
        let m = rows.len();
        r.resize(m * b, 0.0);
        gemm(MatMut::from_row_major_slice_mut(r, m, b), false, MatRef::from_row_major_slice(y, m, d), x);
    });
    for i in 0..d {
        for j in 0..b {
            out[(i, j)] = sum[(i, j)] / divisor;
        }
    }
}
