//! Every observed cell given the other observed cells of its row.

use super::{FilledCell, LinearGaussian};
use crate::Dataset;
use crate::linalg::{dot, packed};
use crate::parallel::pieces;
use std::ops::Range;

/// Patterns of gaps that are worked on at a time.
const PATTERNS: usize = 16;

impl LinearGaussian {
    /// Mean and standard deviation of every observed cell given the others of its row, in closed form; rows of normal tails.
    ///
    /// ```text
    /// B = L⁻¹ Wᵀ Ψ^-½      L Lᵀ = I + Wᵀ Ψ⁻¹ W      z = Ψ^-½ (t − μ)      r = z − Bᵀ B z      over the row's observed columns
    /// mean t_j − √ψ_j r_j / p_j      variance ψ_j / p_j      p_j = 1 − Σ_k B_kj²                                [M 3.4.2]
    /// ```
    pub(crate) fn given_others(&self, data: &Dataset) -> Vec<FilledCell> {
        let arch = pulp::Arch::new();
        let work = |patterns| arch.dispatch(|| self.given_others_in(data, patterns));
        pieces(data.n_patterns(), PATTERNS, work).concat()
    }

    #[inline(always)]
    fn given_others_in(&self, data: &Dataset, patterns: Range<usize>) -> Vec<FilledCell> {
        let q = self.n_components();
        let sds: Vec<f64> = (0..self.mean().len()).map(|j| self.noise().variance(j).sqrt()).collect();
        let mut cells = Vec::new();
        let mut root = vec![0.0; packed::len(q)];
        // B, row by row, as long as there are observed columns: loops over these are the long ones.
        let (mut b, mut left, mut z) = (Vec::new(), Vec::new(), Vec::new());
        for pattern in patterns.map(|p| data.pattern(p)) {
            let observed = pattern.observed();
            let m = observed.len();
            b.clear();
            for k in 0..q {
                b.extend(observed.iter().map(|&j| self.loadings()[(j, k)] / sds[j]));
            }
            for k in 0..q {
                for l in 0..=k {
                    root[packed::len(k) + l] =
                        f64::from(u8::from(k == l)) + dot(&b[k * m..(k + 1) * m], &b[l * m..(l + 1) * m]);
                }
            }
            let positive = packed::cholesky(&mut root, q);
            debug_assert!(positive, "I + Wᵀ Ψ⁻¹ W is at least 1 along every direction");
            left.clear();
            left.resize(m, 1.0);
            for k in 0..q {
                let (solved, rest) = b.split_at_mut(k * m);
                let row = &root[packed::len(k)..][..=k];
                let own = &mut rest[..m];
                for (l, factor) in row[..k].iter().enumerate() {
                    own.iter_mut().zip(&solved[l * m..]).for_each(|(own, b)| *own -= factor * b);
                }
                let inverse = 1.0 / row[k];
                for (own, left) in own.iter_mut().zip(&mut left) {
                    *own *= inverse;
                    *left -= *own * *own;
                }
            }
            for &i in pattern.rows {
                let t = data.row(i);
                z.clear();
                z.extend(observed.iter().map(|&j| (t[j] - self.mean()[j]) / sds[j]));
                // The rows of B are not orthogonal: all products with z come first.
                let along: Vec<f64> = (0..q).map(|k| dot(&b[k * m..(k + 1) * m], &z)).collect();
                for (k, along) in along.iter().enumerate() {
                    z.iter_mut().zip(&b[k * m..]).for_each(|(z, b)| *z -= along * b);
                }
                for (a, &j) in observed.iter().enumerate() {
                    let mean = t[j] - sds[j] * z[a] / left[a];
                    cells.push(FilledCell::normal(i, j, mean, sds[j] / left[a].sqrt()));
                }
            }
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use crate::data::{Shape, simulate};
    use crate::model::Density;

    #[test]
    fn a_cell_given_the_others_is_what_fills_it_once_it_is_hidden() {
        let shape = Shape { rows: 12, columns: 7, n_components: 3 };
        for (whole, model) in [simulate::ppca(shape, 4), simulate::factor_analysis(shape, 5)] {
            for table in [whole.clone(), simulate::hide(&whole, 0.3, 6)] {
                let found = model.given_others(&table);
                assert_eq!(found.len(), table.n_observed());
                for cell in found {
                    let mut values = table.values().clone();
                    values[(cell.row, cell.column)] = f64::NAN;
                    let hidden = crate::Dataset::new(values).unwrap();
                    let all = model.gap_cells(&hidden).unwrap();
                    let want =
                        all.iter().find(|c| (c.row, c.column) == (cell.row, cell.column)).expect("a gap");
                    assert!((cell.mean - want.mean).abs() < 1e-10, "{cell:?}, not {want:?}");
                    assert!((cell.sd - want.sd).abs() < 1e-10, "{cell:?}, not {want:?}");
                }
            }
        }
    }

    #[test]
    fn without_components_the_others_tell_nothing() {
        let (table, model) = simulate::ppca(Shape { rows: 5, columns: 4, n_components: 1 }, 4);
        let none = model.truncated(0).unwrap();
        for cell in none.given_others(&table) {
            assert!((cell.mean - none.mean()[cell.column]).abs() < 1e-12);
            assert!((cell.sd - none.noise().variance(0).sqrt()).abs() < 1e-12);
        }
    }
}
