//! How much likelier a cell is to be a gap than others of its column, by the rest of its row [M 4.4.3].

use crate::linalg::{dot, positive_inverse};
use crate::{Dataset, Matrix};

/// Rows that the odds are learned from, at most.
const MOST_ROWS: usize = 4000;
/// Columns from which on a factorization takes too long: all cells then count alike.
const MOST_COLUMNS: usize = 400;
/// Cells count as at most this many standard deviations from the mean of their column.
const FARTHEST: f64 = 3.0;
/// Added to the variances of the columns, which are at most 1.
const RIDGE: f64 = 0.25;
/// Largest odds, and one over the smallest.
const LARGEST: f64 = 10.0;

/// Odds that cells are gaps, by linear discriminants of rows with and without each.
pub(crate) struct Odds<'a> {
    data: &'a Dataset,
    /// Coefficients of the other columns and the mean of the exponentials over observed cells, of each column with gaps.
    discriminants: Vec<Option<(Vec<f64>, f64)>>,
}

/// A row in standard deviations from the mean, gaps at the mean.
fn standard(data: &Dataset, i: usize) -> Vec<f64> {
    let of = |(j, value): (usize, &f64)| {
        let sd = data.observed_variances()[j].sqrt();
        let z = (value - data.observed_means()[j]) / sd;
        if z.is_finite() { z.clamp(-FARTHEST, FARTHEST) } else { 0.0 }
    };
    data.row(i).iter().enumerate().map(of).collect()
}

impl<'a> Odds<'a> {
    /// Learns them. With S the covariance of the columns, gaps filled by means, and μ₁, μ₀ the means of rows that lack and
    /// that have column j, all without column j itself:
    ///
    /// ```text
    /// b = (S + ¼I)⁻¹ (μ₁ − μ₀)        oᵢ = exp(b·xᵢ) / mean of that over rows that have j
    /// ```
    ///
    /// the odds, up to a factor, if both kinds of rows are normal with the covariance S. One inverse P serves all columns:
    /// that without column j is P less its part that goes through j.
    pub(crate) fn of(data: &'a Dataset) -> Self {
        let d = data.n_columns();
        let none = || Self { data, discriminants: vec![None; d] };
        if d > MOST_COLUMNS {
            return none();
        }
        let sample = data.spread_rows(MOST_ROWS);
        let rows: Vec<Vec<f64>> = sample.iter().map(|&i| standard(data, i)).collect();
        let mut rows = Matrix::from_rows(&rows);
        let n = rows.n_rows() as f64;
        let means: Vec<f64> = (0..d).map(|j| rows.column(j).iter().sum::<f64>() / n).collect();
        for i in 0..rows.n_rows() {
            rows.row_mut(i).iter_mut().zip(&means).for_each(|(v, m)| *v -= m);
        }
        let mut covariance = rows.t_dot(&rows);
        covariance.as_mut_slice().iter_mut().for_each(|v| *v /= n);
        (0..d).for_each(|j| covariance[(j, j)] += RIDGE);
        let Some((inverse, _)) = positive_inverse(&covariance) else { return none() };
        let is_gap = |k: usize, j: usize| data.row(sample[k])[j].is_nan();
        let discriminant = |j: usize| {
            let gaps: Vec<usize> = (0..sample.len()).filter(|&k| is_gap(k, j)).collect();
            let others = sample.len() - gaps.len();
            if gaps.is_empty() || others == 0 {
                return None;
            }
            let mut between = vec![0.0; d];
            for &k in &gaps {
                between.iter_mut().zip(rows.row(k)).for_each(|(b, v)| *b += v);
            }
            // Rows sum to zero, so that what the gaps' rows have the others lack.
            let factor = 1.0 / gaps.len() as f64 + 1.0 / others as f64;
            for b in &mut between {
                *b *= factor;
            }
            between[j] = 0.0;
            let through: Vec<f64> = inverse.rows().map(|row| dot(row, &between)).collect();
            let b: Vec<f64> =
                (0..d).map(|k| through[k] - inverse[(k, j)] * through[j] / inverse[(j, j)]).collect();
            let have = (0..sample.len()).filter(|&k| !is_gap(k, j));
            let level = have.map(|k| dot(&b, rows.row(k)).exp()).sum::<f64>() / others as f64;
            // Rows are asked for as they are, not less the mean.
            let level = level * dot(&b, &means).exp();
            (level.is_finite() && level > 0.0).then_some((b, level))
        };
        Self { data, discriminants: (0..d).map(discriminant).collect() }
    }

    /// How much likelier the cell of a row and column is to be a gap than observed cells of the column are on average,
    /// within a factor of ten; 1 in a column without gaps.
    pub(crate) fn at(&self, row: usize, column: usize) -> f64 {
        let of = |(b, level): &(Vec<f64>, f64)| dot(b, &standard(self.data, row)).exp() / level;
        self.discriminants[column].as_ref().map_or(1.0, of).clamp(1.0 / LARGEST, LARGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Shape, simulate};
    use crate::linalg::Cholesky;

    /// By a solve for each column, without that column.
    #[test]
    fn odds_are_those_of_two_normal_distributions() {
        let (whole, _) = simulate::ppca(Shape { rows: 150, columns: 5, n_components: 2 }, 1);
        let mut values = whole.into_values();
        for i in 0..150 {
            // Column 0 is complete; columns 1 and 3 are missing where it is large.
            let place = values[(i, 0)] + 0.3 * (i as f64).sin();
            for j in [1, 3] {
                if place > 0.4 * j as f64 {
                    values[(i, j)] = f64::NAN;
                }
            }
        }
        let table = Dataset::new(values).unwrap();
        let odds = Odds::of(&table);
        let rows: Vec<Vec<f64>> = (0..150).map(|i| standard(&table, i)).collect();
        for j in [1, 3] {
            let rest: Vec<usize> = (0..5).filter(|&k| k != j).collect();
            let mean = |k: usize, of: &dyn Fn(usize) -> bool| {
                let some: Vec<f64> = (0..150).filter(|&i| of(i)).map(|i| rows[i][k]).collect();
                some.iter().sum::<f64>() / some.len() as f64
            };
            let lacks = |i: usize| table.row(i)[j].is_nan();
            let all = |_: usize| true;
            let covariance = Matrix::from_fn(4, 4, |a, b| {
                let (a_mean, b_mean) = (mean(rest[a], &all), mean(rest[b], &all));
                let sum: f64 = rows.iter().map(|row| (row[rest[a]] - a_mean) * (row[rest[b]] - b_mean)).sum();
                sum / 150.0 + if a == b { RIDGE } else { 0.0 }
            });
            let mut b: Vec<f64> = rest.iter().map(|&k| mean(k, &lacks) - mean(k, &|i| !lacks(i))).collect();
            Cholesky::new(&covariance).unwrap().solve(&mut b);
            let raw = |i: usize| rest.iter().zip(&b).map(|(&k, b)| b * rows[i][k]).sum::<f64>().exp();
            let have: Vec<usize> = (0..150).filter(|&i| !lacks(i)).collect();
            let level = have.iter().map(|&i| raw(i)).sum::<f64>() / have.len() as f64;
            for &i in &have {
                let expected = (raw(i) / level).clamp(0.1, 10.0);
                assert!((odds.at(i, j) / expected - 1.0).abs() < 1e-9);
            }
            // Larger where column 0 is.
            let high =
                have.iter().copied().max_by(|&a, &b| table.row(a)[0].total_cmp(&table.row(b)[0])).unwrap();
            assert!(odds.at(high, j) > 1.5);
        }
        assert_eq!(odds.at(0, 0), 1.0);
    }
}
