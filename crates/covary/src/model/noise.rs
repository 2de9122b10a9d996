/// The noise Ψ of a row, independent between columns.
#[derive(Debug, Clone, PartialEq)]
pub enum Noise {
    /// One variance σ² for all columns: probabilistic PCA.
    Isotropic(f64),
    /// A variance ψⱼ per column: factor analysis.
    Diagonal(Vec<f64>),
}

impl Noise {
    /// Noise variance of column `j`.
    #[inline]
    pub fn variance(&self, j: usize) -> f64 {
        match self {
            Self::Isotropic(s) => *s,
            Self::Diagonal(psi) => psi[j],
        }
    }

    /// Noise variances of `n_columns` columns.
    pub fn variances(&self, n_columns: usize) -> Vec<f64> {
        (0..n_columns).map(|j| self.variance(j)).collect()
    }
}
