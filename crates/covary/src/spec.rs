//! What to fit: [`Spec`].

use crate::{Dataset, Error};

/// The family of the noise Ψ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoiseFamily {
    /// One variance for all columns: PCA and probabilistic PCA.
    Isotropic,
    /// A variance per column: factor analysis.
    Diagonal,
}

/// A prior on the loadings and the noise that keeps weakly determined fits stable (spec §5.6).
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Prior {
    /// None: maximum likelihood.
    #[default]
    Flat,
    /// Rows of W ~ N(0, ψⱼ/κ I) and ψⱼ ~ inverse-gamma(shape, rate): κ counts pseudo-rows,
    /// `2·shape + 2` pseudo-cells whose squares sum to `2·rate`.
    Scaled {
        /// κ; 1 is weak, 3 to 30 suit columns with fewer than about 5 q observed cells.
        kappa: f64,
        /// a₀.
        shape: f64,
        /// b₀ as a multiple of the mean observed variance, so that units do not matter.
        relative_rate: f64,
    },
    /// Column i of W ~ N(0, I/αᵢ) with fixed precisions, and the same prior on the noise.
    Ard {
        /// αᵢ, in units of one over the mean observed variance.
        relative_alpha: Vec<f64>,
        /// a₀.
        shape: f64,
        /// b₀ as a multiple of the mean observed variance.
        relative_rate: f64,
    },
}

impl Prior {
    /// The weak default of the spec: κ = 1, a₀ = 1, b₀ = 0.05 s̄.
    pub fn weak() -> Self {
        Self::Scaled { kappa: 1.0, shape: 1.0, relative_rate: 0.05 }
    }
}

/// What to fit: number of components, noise family, prior. *How* is an
/// [`Estimator`](crate::Estimator).
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Latent dimension q; 0 gives a spherical or diagonal Gaussian.
    pub n_components: usize,
    /// Family of the noise.
    pub noise: NoiseFamily,
    /// Divide every column by its observed standard deviation before fitting; the answer is folded
    /// back into the user's units (so isotropic noise comes back diagonal).
    pub standardize: bool,
    /// Prior on loadings and noise.
    pub prior: Prior,
    /// Smallest noise variance, as a share of the (mean) observed variance. `None` is the family's
    /// own: 1e-12 for isotropic noise with gaps (complete data without noise are refused), 0.005 of
    /// each column's variance for diagonal noise, which is where Heywood cases stop.
    pub noise_floor: Option<f64>,
}

impl Spec {
    /// Probabilistic PCA: isotropic noise.
    pub fn ppca(n_components: usize) -> Self {
        Self {
            n_components,
            noise: NoiseFamily::Isotropic,
            standardize: false,
            prior: Prior::Flat,
            noise_floor: None,
        }
    }

    /// Factor analysis: a noise variance per column.
    pub fn factor_analysis(n_components: usize) -> Self {
        Self { noise: NoiseFamily::Diagonal, ..Self::ppca(n_components) }
    }

    /// The noise floor in force, relative to the observed variance.
    pub(crate) fn floor(&self) -> f64 {
        self.noise_floor.unwrap_or(match self.noise {
            NoiseFamily::Isotropic => 1e-12,
            NoiseFamily::Diagonal => 0.005,
        })
    }

    /// Refuses a factor model with more parameters than the covariance of that many columns has
    /// entries (spec §6.1).
    pub(crate) fn check_identified(&self, columns: usize) -> Result<(), Error> {
        let degrees_of_freedom = factor_degrees_of_freedom(columns, self.n_components);
        if degrees_of_freedom >= 0 {
            return Ok(());
        }
        let max = (0..self.n_components).rfind(|&q| factor_degrees_of_freedom(columns, q) >= 0).unwrap_or(0);
        Err(Error::NotIdentified { asked: self.n_components, columns, degrees_of_freedom, max })
    }

    /// Checks the request against the table, once, at the top of every fit.
    pub(crate) fn check(&self, data: &Dataset) -> Result<(), Error> {
        let rows = data.n_informative_rows();
        if rows < 2 {
            return Err(Error::TooFewRows { rows });
        }
        let observed = data.n_observed_by_column();
        if let Some(j) = observed.iter().position(|&n| n == 0) {
            return Err(Error::EmptyColumn { column: data.column_names()[j].clone() });
        }
        self.check_shape(rows, data.n_columns())?;
        // A column is constant when all its observed cells equal the first of them.
        let constant = constant_columns(data);
        if constant.len() == data.n_columns() {
            return Err(Error::AllConstant { columns: constant.len() });
        }
        match (self.noise, constant.first()) {
            (NoiseFamily::Diagonal, Some(&j)) => {
                Err(Error::ConstantColumn { column: data.column_names()[j].clone() })
            }
            _ => Ok(()),
        }
    }

    /// The part of [`check`](Self::check) that needs only the size of the table.
    pub(crate) fn check_shape(&self, rows: usize, columns: usize) -> Result<(), Error> {
        let asked = self.n_components;
        if asked >= columns {
            let max = columns.saturating_sub(1);
            return Err(Error::TooManyComponents { asked, rows, columns, max });
        }
        let positive = |name, value: f64| {
            if value.is_finite() && value > 0.0 {
                Ok(())
            } else {
                Err(Error::OutOfRange { name, value, bound: "finite and above 0" })
            }
        };
        if let Some(floor) = self.noise_floor
            && !(0.0..1.0).contains(&floor)
        {
            return Err(Error::OutOfRange { name: "noise_floor", value: floor, bound: "in [0, 1)" });
        }
        match &self.prior {
            Prior::Flat => Ok(()),
            Prior::Scaled { kappa, shape, relative_rate } => {
                positive("kappa", *kappa)?;
                positive("shape", *shape)?;
                positive("relative_rate", *relative_rate)
            }
            Prior::Ard { relative_alpha, shape, relative_rate } => {
                if relative_alpha.len() != asked {
                    return Err(Error::WrongLength {
                        what: "precisions of the ARD prior",
                        expected: asked,
                        got: relative_alpha.len(),
                    });
                }
                relative_alpha.iter().try_for_each(|&a| positive("relative_alpha", a))?;
                positive("shape", *shape)?;
                positive("relative_rate", *relative_rate)
            }
        }
    }
}

/// Entries of a d × d covariance less the parameters of q factors: `((d − q)² − (d + q)) / 2`.
#[allow(clippy::cast_possible_wrap, reason = "counts of columns that fit in memory")]
pub(crate) fn factor_degrees_of_freedom(columns: usize, factors: usize) -> i64 {
    let (d, q) = (columns as i64, factors as i64);
    ((d - q).pow(2) - (d + q)) / 2
}

/// Columns whose observed cells are all equal.
pub(crate) fn constant_columns(data: &Dataset) -> Vec<usize> {
    let mut first = vec![f64::NAN; data.n_columns()];
    let mut varies = vec![false; data.n_columns()];
    for row in data.values().rows() {
        for ((f, v), varies) in first.iter_mut().zip(row).zip(&mut varies) {
            if f.is_nan() {
                *f = *v;
            }
            *varies |= !v.is_nan() && v != f;
        }
    }
    (0..varies.len()).filter(|&j| !varies[j]).collect()
}
