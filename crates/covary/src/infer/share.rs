//! `Σ z zᵀ` over the rows that have a column, for every column: the normal matrices of a regression
//! of each column on scores.

use crate::Matrix;
use crate::data::Pattern;
use crate::linalg::packed;

/// Strips whose moments are shared out together: at q = 10 they fit the first-level cache, and their
/// number the bits of a `u32`.
pub(super) const BATCH: usize = 32;

/// Adds the moments of a batch of strips, padded triangles one after the other, to the columns that
/// have them: to all (`common`), less those that miss them, column by column, so that a column's sum
/// stays in registers over the batch; or, for strips with few columns, to these. The sum of column j
/// is `common` plus row j of `by_column`.
#[inline(always)]
pub(super) fn share(
    strips: &[Pattern<'_>],
    moments: &[f64],
    missing: &mut Vec<u32>,
    common: &mut [f64],
    by_column: &mut Matrix,
) {
    let (d, p) = (by_column.n_rows(), by_column.n_columns());
    // Bit k of a column is set if strip k misses it.
    missing.clear();
    missing.resize(d, 0);
    for (k, strip) in strips.iter().enumerate() {
        let moment = &moments[k * p..][..p];
        if 2 * strip.gaps.len() <= d {
            packed::add(common, moment);
            for &j in strip.gaps {
                missing[j as usize] |= 1 << k;
            }
        } else {
            strip.for_observed(|j| packed::add(by_column.row_mut(j), moment));
        }
    }
    for (j, &missing) in missing.iter().enumerate().filter(|(_, bits)| **bits != 0) {
        let (mut bits, mut n, mut starts) = (missing, 0, [0; BATCH]);
        while bits != 0 {
            starts[n] = bits.trailing_zeros() as usize * p;
            bits &= bits - 1;
            n += 1;
        }
        packed::add_rows(by_column.row_mut(j), -1.0, moments, &starts[..n]);
    }
}
