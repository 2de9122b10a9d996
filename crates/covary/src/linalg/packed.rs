//! Symmetric matrices as their lower triangle, row by row: entry `(i, j ≤ i)` at `i(i+1)/2 + j`.

use super::lanes::LANES;
use super::{Matrix, dot};

/// Numbers in the triangle of a `k × k` matrix.
#[inline]
pub(crate) const fn len(k: usize) -> usize {
    k * (k + 1) / 2
}

/// [`len`] rounded up to whole vector registers: loops over padded triangles have no remainder.
#[inline]
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

/// `out ← out + A` for the leading `k × k` block of a symmetric matrix.
pub(crate) fn add_matrix(out: &mut [f64], a: &Matrix, k: usize) {
    for i in 0..k {
        out[len(i)..].iter_mut().zip(&a.row(i)[..=i]).for_each(|(o, a)| *o += a);
    }
}

/// The full symmetric matrix.
pub(crate) fn unpack(packed: &[f64], k: usize) -> Matrix {
    Matrix::from_fn(k, k, |i, j| {
        let (i, j) = if i >= j { (i, j) } else { (j, i) };
        packed[i * (i + 1) / 2 + j]
    })
}

/// `sum ← sum + sign Σ rows`, for padded rows that begin at `starts` in `table`. A few registers of
/// the sum are carried over all rows at a time: enough independent additions to hide their latency.
#[inline(always)]
pub(crate) fn add_rows(sum: &mut [f64], sign: f64, table: &[f64], starts: &[usize]) {
    const WIDE: usize = 4;
    let registers = sum.len() / LANES;
    let mut c = 0;
    while c + WIDE <= registers {
        add_registers::<WIDE>(sum, sign, table, starts, c * LANES);
        c += WIDE;
    }
    while c < registers {
        add_registers::<1>(sum, sign, table, starts, c * LANES);
        c += 1;
    }
}

#[inline(always)]
fn add_registers<const R: usize>(sum: &mut [f64], sign: f64, table: &[f64], starts: &[usize], at: usize) {
    let sum = &mut sum[at..][..R * LANES];
    let mut carried = [[0.0; LANES]; R];
    for (carried, sum) in carried.iter_mut().zip(sum.chunks_exact(LANES)) {
        carried.copy_from_slice(sum);
    }
    for &start in starts {
        let row = &table[start + at..][..R * LANES];
        for r in 0..R {
            for l in 0..LANES {
                carried[r][l] = sign.mul_add(row[r * LANES + l], carried[r][l]);
            }
        }
    }
    for (carried, sum) in carried.iter().zip(sum.chunks_exact_mut(LANES)) {
        sum.copy_from_slice(carried);
    }
}

/// `out = A b` for a packed symmetric matrix.
#[inline(always)]
pub(crate) fn symmetric_times(a: &[f64], b: &[f64], out: &mut [f64]) {
    let mut row_start = 0;
    for i in 0..b.len() {
        let row = &a[row_start..][..=i];
        let bi = b[i];
        let mut sum = row[i] * bi;
        for j in 0..i {
            sum += row[j] * b[j];
            out[j] += row[j] * bi;
        }
        out[i] = sum;
        row_start += i + 1;
    }
}

/// `LᵀL`, in full, for a packed lower triangle.
pub(crate) fn square(l: &[f64], k: usize) -> Matrix {
    let mut out = Matrix::zeros(k, k);
    for i in 0..k {
        let row = &l[len(i)..][..=i];
        for (a, f) in row.iter().enumerate() {
            out.row_mut(a).iter_mut().zip(row).for_each(|(o, r)| *o += f * r);
        }
    }
    out
}

/// `b ← L b` for a packed lower triangle.
#[inline(always)]
pub(crate) fn lower_times(l: &[f64], b: &mut [f64]) {
    let mut row_start = len(b.len());
    for i in (0..b.len()).rev() {
        row_start -= i + 1;
        let row = &l[row_start..][..=i];
        b[i] = dot(row, &b[..=i]);
    }
}

/// `b ← Lᵀ b` for a packed lower triangle.
#[inline(always)]
pub(crate) fn upper_times(l: &[f64], b: &mut [f64]) {
    let mut row_start = 0;
    for i in 0..b.len() {
        let row = &l[row_start..][..=i];
        let bi = b[i];
        for j in 0..i {
            b[j] += row[j] * bi;
        }
        b[i] = row[i] * bi;
        row_start += i + 1;
    }
}

/// Replaces a packed symmetric `A = L Lᵀ` by `L`; `false`, and `A` half overwritten, if it is not
/// positive definite to working precision.
#[inline(always)]
pub(crate) fn cholesky(a: &mut [f64], k: usize) -> bool {
    for i in 0..k {
        let (above, row) = a.split_at_mut(len(i));
        for j in 0..=i {
            let row_j = if j < i { &above[len(j)..] } else { &*row };
            let s = row[j] - dot(&row[..j], &row_j[..j]);
            if j < i {
                row[j] = s / above[len(j + 1) - 1];
            } else if s > 0.0 {
                row[i] = s.sqrt();
            } else {
                return false;
            }
        }
    }
    true
}

/// `b ← L⁻¹ b` for a packed lower triangle.
#[inline(always)]
pub(crate) fn solve_lower(l: &[f64], b: &mut [f64]) {
    for i in 0..b.len() {
        let row = &l[len(i)..][..=i];
        b[i] = (b[i] - dot(&row[..i], &b[..i])) / row[i];
    }
}

/// `b ← L⁻ᵀ b` for a packed lower triangle.
#[inline(always)]
pub(crate) fn solve_upper(l: &[f64], b: &mut [f64]) {
    for i in (0..b.len()).rev() {
        let row = &l[len(i)..][..=i];
        let bi = b[i] / row[i];
        b[i] = bi;
        for (b, r) in b[..i].iter_mut().zip(row) {
            *b -= r * bi;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_factor_solves() {
        let a = [4.0, 2.0, 5.0, -1.0, 0.5, 3.0];
        let mut l = a;
        assert!(cholesky(&mut l, 3));
        let mut x = [1.0, -2.0, 0.5];
        solve_lower(&l, &mut x);
        solve_upper(&l, &mut x);
        let mut back = [0.0; 3];
        symmetric_times(&a, &x, &mut back);
        assert!(back.iter().zip([1.0, -2.0, 0.5]).all(|(b, w)| (b - w).abs() < 1e-14), "{back:?}");
        assert!(!cholesky(&mut [1.0, 2.0, 1.0], 2));
    }
}
