//! Means beyond all that was observed of a column [M 4.3.6].

use crate::Dataset;
use crate::model::FilledCell;

/// Standard deviation of what lies beyond the observed values, in standard deviations of the column.
const BEYOND: f64 = 0.1;

/// What was observed of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observed {
    /// The least value.
    pub least: f64,
    /// The largest.
    pub most: f64,
    /// Their standard deviation.
    pub sd: f64,
}

/// What was observed of each column.
pub(crate) fn observed_of(data: &Dataset) -> Vec<Observed> {
    let empty =
        |variance: &f64| Observed { least: f64::INFINITY, most: f64::NEG_INFINITY, sd: variance.sqrt() };
    let mut found: Vec<Observed> = data.observed_variances().iter().map(empty).collect();
    for i in 0..data.n_rows() {
        // A gap is neither less nor more.
        for (column, value) in found.iter_mut().zip(data.row(i)) {
            (column.least, column.most) = (column.least.min(*value), column.most.max(*value));
        }
    }
    found
}

impl Observed {
    /// A mean with standard deviation `sd`, the less beyond the observed values the less certain it is: what lies beyond
    /// them, e, has the prior N(0, τ²), τ a tenth of a standard deviation of the column, and the likelihood N(m − end, s²).
    ///
    /// ```text
    /// m′ = end + (m − end) τ²/(τ² + s²)
    /// ```
    ///
    /// ```
    /// use covary::filling::Observed;
    /// let column = Observed { least: -2.0, most: 3.0, sd: 1.0 };
    /// assert_eq!(column.restrained(2.5, 1.0), 2.5);
    /// assert!((column.restrained(5.0, 0.1) - 4.0).abs() < 1e-12);
    /// ```
    pub fn restrained(&self, mean: f64, sd: f64) -> f64 {
        // Not `clamp`, which asks for ends in order: a column may be empty.
        let end = mean.min(self.most).max(self.least);
        let prior = (BEYOND * self.sd).powi(2);
        let kept = prior / (prior + sd * sd);
        if end == mean || !end.is_finite() || !kept.is_finite() { mean } else { end + (mean - end) * kept }
    }
}

/// Restrains the means of cells.
pub(crate) fn restrain(observed: &[Observed], cells: &mut [FilledCell]) {
    for cell in cells.iter_mut() {
        cell.mean = observed[cell.column].restrained(cell.mean, cell.sd);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;

    #[test]
    fn means_go_beyond_what_was_observed_only_if_certain() {
        let nan = f64::NAN;
        let table = Matrix::from_rows(&[[1.0, 5.0, nan], [nan, 5.0, nan], [4.0, 5.0, nan], [2.0, nan, nan]]);
        let observed = observed_of(&Dataset::new(table).unwrap());
        let column = observed[0];
        assert_eq!((column.least, column.most), (1.0, 4.0));
        assert!((column.sd - (14.0_f64 / 9.0).sqrt()).abs() < 1e-12);
        assert_eq!(column.restrained(3.9, 0.7), 3.9);
        // The normal prior and likelihood, by their precisions.
        for (mean, sd, end) in [(6.0, 0.3, 4.0), (-9.0, 2.0, 1.0)] {
            let (prior, own) = (1.0 / (0.01 * 14.0 / 9.0), 1.0 / (sd * sd));
            let expected = end + (mean - end) * own / (prior + own);
            assert!((column.restrained(mean, sd) - expected).abs() < 1e-12);
        }
        assert_eq!(column.restrained(6.0, 0.0), 6.0);
        // A constant column is as certain as it was observed; an empty one says nothing.
        assert_eq!((observed[1].restrained(5.0, 0.0), observed[1].restrained(7.0, 1.0)), (5.0, 5.0));
        assert_eq!(observed[2].restrained(3.0, 1.0), 3.0);
    }
}
