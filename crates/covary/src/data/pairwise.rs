use super::Dataset;
use crate::Matrix;
use crate::linalg::add_gram_lower;

impl Dataset {
    /// Covariance of every pair of columns over the rows that have both, each column about the mean of its
    /// observed cells: d × d, zero for a pair never seen together. With gaps it need not be positive.
    ///
    /// ```text
    /// Sⱼₖ = Σᵢ (tᵢⱼ − mⱼ)(tᵢₖ − mₖ) / Nⱼₖ        i: the Nⱼₖ rows with both
    /// ```
    ///
    /// ```
    /// use covary::{Dataset, Matrix};
    /// let table = Dataset::new(Matrix::from_rows(&[[1.0, 2.0], [3.0, 6.0], [5.0, f64::NAN]]))?;
    /// let s = table.pairwise_covariance();
    /// assert_eq!(s[(1, 1)], table.observed_variances()[1]);
    /// assert_eq!(s[(0, 1)], ((1.0 - 3.0) * (2.0 - 4.0) + 0.0 * 2.0) / 2.0);
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn pairwise_covariance(&self) -> Matrix {
        let (n, d) = (self.n_rows(), self.n_columns());
        let means = self.observed_means();
        let gram = |of: &dyn Fn(f64, usize) -> f64| {
            let mut sums = Matrix::zeros(d, d);
            // A slice of rows at a time: the centered copy stays small.
            for start in (0..n).step_by(ROWS) {
                let rows = ROWS.min(n - start);
                let block = Matrix::from_fn(rows, d, |i, j| of(self.row(start + i)[j], j));
                add_gram_lower(sums.view_mut(), block.view());
            }
            sums
        };
        let mut s = gram(&|v, j| if v.is_nan() { 0.0 } else { v - means[j] });
        if self.is_complete() {
            s.as_mut_slice().iter_mut().for_each(|v| *v /= n as f64);
        } else {
            let together = gram(&|v, _| f64::from(u8::from(!v.is_nan())));
            s.as_mut_slice().iter_mut().zip(together.as_slice()).for_each(|(v, count)| *v /= count.max(1.0));
        }
        s.mirror_lower();
        s
    }
}

const ROWS: usize = 1024;
