//! Symmetric matrices as their lower triangle, row by row: entry `(i, j ≤ i)` at `i(i+1)/2 + j`.

use super::Matrix;
use super::lanes::LANES;

/// Numbers in the triangle of a `k × k` matrix.
pub(crate) const fn len(k: usize) -> usize {
    k * (k + 1) / 2
}

/// [`len`] rounded up to whole vector registers: loops over padded triangles have no remainder.
pub(crate) const fn padded_len(k: usize) -> usize {
    len(k).next_multiple_of(LANES)
}

/// `a ← a + b` for padded triangles.
#[inline(always)]
pub(crate) fn add(a: &mut [f64], b: &[f64]) {
    for (a, b) in a.chunks_exact_mut(LANES).zip(b.chunks_exact(LANES)) {
        for l in 0..LANES {
            a[l] += b[l];
        }
    }
}

/// `out ← out + s · x xᵀ`.
#[inline(always)]
pub(crate) fn add_outer(out: &mut [f64], x: &[f64], s: f64) {
    let mut rest = out;
    for (i, xi) in x.iter().enumerate() {
        let (row, tail) = rest.split_at_mut(i + 1);
        let f = s * xi;
        for (o, xj) in row.iter_mut().zip(x) {
            *o += f * xj;
        }
        rest = tail;
    }
}

/// The full symmetric matrix.
pub(crate) fn unpack(packed: &[f64], k: usize) -> Matrix {
    Matrix::from_fn(k, k, |i, j| {
        let (i, j) = if i >= j { (i, j) } else { (j, i) };
        packed[i * (i + 1) / 2 + j]
    })
}
