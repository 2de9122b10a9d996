//! Draws rotated towards each other [M 2.5.5]: without ARD the posterior does not change when the
//! loadings are rotated, with ARD when components change places and signs.

use super::table::Parameters;
use crate::Matrix;
use crate::linalg::thin_svd;

/// Rounds of "reference = mean of the aligned draws".
const ROUNDS: usize = 3;

/// Turns the loadings of all draws towards a common reference, at first `draws[first]`; with
/// `permute` only by changes of places and signs, α along.
pub(super) fn align(draws: &mut [Parameters], first: usize, permute: bool) {
    let mut reference = draws[first].w.clone();
    if reference.n_columns() == 0 {
        return;
    }
    for _ in 0..ROUNDS {
        for draw in draws.iter_mut() {
            if permute {
                let (from, sign) = matched(&draw.w.t_dot(&reference));
                draw.w = Matrix::from_fn(draw.w.n_rows(), from.len(), |k, j| sign[j] * draw.w[(k, from[j])]);
                draw.alpha = from.iter().map(|&i| draw.alpha[i]).collect();
            } else {
                draw.w = draw.w.dot(&turn_to(&draw.w, &reference));
            }
        }
        reference = mean(draws.iter().map(|draw| &draw.w));
    }
}

/// The orthogonal R that makes `W R` nearest to `reference`: U Vᵀ of `Wᵀ W_ref = U Σ Vᵀ`.
pub(super) fn turn_to(w: &Matrix, reference: &Matrix) -> Matrix {
    let svd = thin_svd(&w.t_dot(reference)).expect("loadings are finite");
    svd.u.dot_t(&svd.v)
}

/// The mean of matrices of one shape.
fn mean<'a>(matrices: impl ExactSizeIterator<Item = &'a Matrix>) -> Matrix {
    let n = matrices.len() as f64;
    let mut sum: Option<Matrix> = None;
    for matrix in matrices {
        match &mut sum {
            None => sum = Some(matrix.clone()),
            Some(sum) => sum.as_mut_slice().iter_mut().zip(matrix.as_slice()).for_each(|(s, v)| *s += v),
        }
    }
    let mut sum = sum.expect("at least one draw");
    sum.as_mut_slice().iter_mut().for_each(|s| *s /= n);
    sum
}

/// For every component of the reference the draw's component of largest agreement still free, and its
/// sign: greedy over all pairs.
fn matched(agreement: &Matrix) -> (Vec<usize>, Vec<f64>) {
    let q = agreement.n_columns();
    let mut pairs: Vec<(usize, usize)> = (0..q).flat_map(|i| (0..q).map(move |j| (i, j))).collect();
    pairs.sort_by(|a, b| agreement[*b].abs().total_cmp(&agreement[*a].abs()));
    let (mut from, mut sign, mut used) = (vec![usize::MAX; q], vec![1.0; q], vec![false; q]);
    for (i, j) in pairs {
        if !used[i] && from[j] == usize::MAX {
            used[i] = true;
            from[j] = i;
            sign[j] = if agreement[(i, j)] < 0.0 { -1.0 } else { 1.0 };
        }
    }
    (from, sign)
}
