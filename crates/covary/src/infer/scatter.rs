//! Products with a table that is loaded (centered, scaled, gaps as 0) a block of rows at a time, never
//! as a whole.

use crate::Matrix;
use crate::linalg::{Cell, gemm};
use crate::parallel::{BLOCK_CELLS, add, over_pieces};
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
fn transpose_times<C: Cell, W: Cell>(
    (cells, d): (&[C], usize),
    width: usize,
    load: &(impl Fn(&[C], &mut [W]) + Sync),
    right: impl Fn(&[W], Range<usize>, &mut Vec<W>) + Sync,
) -> Matrix {
    let n = cells.len() / d;
    let step = (BLOCK_CELLS / d).max(64).max(W::LEAST_ROWS);
    sum_matrices(n, step, (d, width), |rows, part| {
        let (mut y, mut r, mut product) = (vec![W::of(0.0); step * d], Vec::new(), Vec::new());
        for start in rows.clone().step_by(step) {
            let block = start..(start + step).min(rows.end);
            let m = block.len();
            let y = &mut y[..m * d];
            load(&cells[start * d..(start + m) * d], y);
            right(y, block, &mut r);
            let y = MatRef::from_row_major_slice(y, m, d);
            W::add_product(part, y.transpose(), MatRef::from_row_major_slice(&r, m, width), &mut product);
        }
    })
}

/// `out = Yᵀ (Y X) / divisor`, one pass over the table.
pub(crate) fn scatter_times<C: Cell, W: Cell>(
    (cells, d): (&[C], usize),
    load: &(impl Fn(&[C], &mut [W]) + Sync),
    divisor: f64,
    x: MatRef<'_, f64>,
    mut out: MatMut<'_, f64>,
) {
    let b = x.ncols();
    let x: Vec<W> = x.col_iter().flat_map(|column| column.iter().map(|v| W::of(*v))).collect();
    let x = MatRef::from_column_major_slice(&x, d, b);
    let sum = transpose_times((cells, d), b, load, |y, rows, r| {
        let m = rows.len();
        r.resize(m * b, W::of(0.0));
        gemm(MatMut::from_row_major_slice_mut(r, m, b), false, MatRef::from_row_major_slice(y, m, d), x);
    });
    for i in 0..d {
        for j in 0..b {
            out[(i, j)] = sum[(i, j)] / divisor;
        }
    }
}
