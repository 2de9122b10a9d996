use crate::linalg::{Cholesky, dot};
use crate::model::{Fill, FilledCell};
use crate::parallel::pieces;
use crate::{Dataset, Error, LinearGaussian, Matrix, Noise};
use std::f64::consts::SQRT_2;

/// Laplace sources behind Gaussian noise, as [`NoisyIca`](super::NoisyIca) finds them.
///
/// ```text
/// t = W s + μ + ε      ε ~ N(0, diag ψ)      p(s) = exp(−√2 |s|) / √2
/// ```
///
/// The posterior of the sources of a row has no closed form: all answers are by the Gaussian that bounds it best,
/// `N(m, Σ)` at `η = √⟨s²⟩`, with the parameters as known.
#[derive(Debug, Clone, PartialEq)]
pub struct NoisyMixing {
    pub(super) mixing: Matrix,
    pub(super) mean: Vec<f64>,
    pub(super) noise_variances: Vec<f64>,
}

/// Passes until no η moves by more than [`STILL`] of itself.
const MOST_PASSES: usize = 10_000;
const STILL: f64 = 1e-10;
const LEAST_ETA: f64 = 1e-150;

impl NoisyMixing {
    /// From its parts: W (d × q), μ and ψ.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless they fit each other, [`Error::OutOfRange`] for a number that is not finite, a
    /// noise variance below 1e-290, or a loading above 1e145 of its root, beyond which precisions are not numbers.
    pub fn new(mixing: Matrix, mean: Vec<f64>, noise_variances: Vec<f64>) -> Result<Self, Error> {
        let model = Self { mixing, mean, noise_variances };
        model.gaussian()?;
        let out = |name, value, bound| Err(Error::OutOfRange { name, value, bound });
        if let Some(&value) = model.noise_variances.iter().find(|v| **v < 1e-290) {
            return out("a noise variance", value, "at least 1e-290");
        }
        let strength = |j| dot(model.mixing.row(j), model.mixing.row(j)) / model.noise_variances[j];
        match (0..model.mean.len()).map(strength).find(|s| s.is_nan() || *s > 1e290) {
            Some(value) => out("the square of a loading over its noise", value, "at most 1e290"),
            None => Ok(model),
        }
    }

    /// Number of sources q.
    pub fn n_components(&self) -> usize {
        self.mixing.n_columns()
    }

    /// μ.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// W, d × q, columns by decreasing length, the entry of largest absolute value positive.
    pub fn mixing(&self) -> &Matrix {
        &self.mixing
    }

    /// ψ of every column.
    pub fn noise_variances(&self) -> &[f64] {
        &self.noise_variances
    }

    /// Posterior means of the sources of every row, n × q, from its observed cells.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns.
    pub fn transform(&self, data: &Dataset) -> Result<Matrix, Error> {
        let sources = self.by_row(data, |_, posterior, out| out.extend_from_slice(&posterior.mean))?;
        Matrix::from_vec(data.n_rows(), self.n_components(), sources)
    }

    /// Rows from sources, without noise: `W s + μ`.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless there is a number per source.
    pub fn decode(&self, sources: &Matrix) -> Result<Matrix, Error> {
        super::unmixing::mixed(&self.mixing, &self.mean, sources)
    }

    /// Of the table in other units: every cell times `factor`.
    pub(super) fn times(&self, factor: f64) -> Self {
        let mixing =
            Matrix::from_fn(self.mean.len(), self.n_components(), |j, i| self.mixing[(j, i)] * factor);
        let mean = self.mean.iter().map(|m| m * factor).collect();
        let noise_variances = self.noise_variances.iter().map(|v| v * factor * factor).collect();
        Self { mixing, mean, noise_variances }
    }

    /// The Gaussian model with the same loadings, mean and noise.
    pub(super) fn gaussian(&self) -> Result<LinearGaussian, Error> {
        let noise = Noise::Diagonal(self.noise_variances.clone());
        LinearGaussian::new(self.mixing.clone(), self.mean.clone(), noise)
    }

    /// What `tell` collects of every row once its η has converged, in order.
    fn by_row<T: Send>(
        &self,
        data: &Dataset,
        tell: impl Fn(usize, &Posterior, &mut Vec<T>) + Sync,
    ) -> Result<Vec<T>, Error> {
        let (d, got) = (self.mean.len(), data.n_columns());
        if got != d {
            return Err(Error::ColumnCount { expected: d, got });
        }
        let said = pieces(data.n_rows(), super::BLOCK_CELLS.div_ceil(d), |rows| {
            let mut said = Vec::new();
            rows.for_each(|n| tell(n, &self.evidence(data.row(n)).settled(), &mut said));
            said
        });
        Ok(said.into_iter().flatten().collect())
    }

    /// The posterior of the sources of a row given its observed cells.
    pub(super) fn evidence(&self, row: &[f64]) -> Evidence {
        let q = self.n_components();
        let (mut precision, mut linear) = (Matrix::zeros(q, q), vec![0.0; q]);
        for j in (0..row.len()).filter(|&j| !row[j].is_nan()) {
            let (w, inverse) = (self.mixing.row(j), 1.0 / self.noise_variances[j]);
            for a in 0..q {
                linear[a] += w[a] * inverse * (row[j] - self.mean[j]);
                (0..=a).for_each(|b| precision[(a, b)] += w[a] * inverse * w[b]);
            }
        }
        Evidence { precision, linear }
    }
}

/// Every gap is filled by its posterior mean `wⱼᵀ m + μⱼ`, with the standard deviation `√(wⱼᵀ Σ wⱼ + ψⱼ)`.
///
/// ```
/// use covary::{Dataset, Matrix, ica::NoisyMixing, model::Fill};
/// let model = NoisyMixing::new(Matrix::from_rows(&[[2.0], [1.0]]), vec![0.0, 5.0], vec![1e-6, 1e-6])?;
/// let filled = model.fill(&Dataset::new(Matrix::from_rows(&[[6.0, f64::NAN]]))?)?;
/// assert!((filled.values()[(0, 1)] - 8.0).abs() < 1e-4);   // the source is 3
/// # Ok::<(), covary::Error>(())
/// ```
impl Fill for NoisyMixing {
    fn cells(&self, data: &Dataset) -> Result<Vec<FilledCell>, Error> {
        self.by_row(data, |row, posterior, out| {
            for column in (0..data.n_columns()).filter(|&j| data.row(row)[j].is_nan()) {
                let w = self.mixing.row(column);
                let mean = dot(w, &posterior.mean) + self.mean[column];
                let sd = (posterior.variance_along(w) + self.noise_variances[column]).sqrt();
                out.push(FilledCell::normal(row, column, mean, sd));
            }
        })
    }
}

/// `Wᵀ Ψ⁻¹ W`, its lower triangle, and `Wᵀ Ψ⁻¹ (t − μ)` over the observed columns of a row.
pub(super) struct Evidence {
    precision: Matrix,
    linear: Vec<f64>,
}

/// `N(m, Σ)`, the posterior of the sources of a row.
pub(super) struct Posterior {
    pub(super) mean: Vec<f64>,
    pub(super) covariance: Matrix,
    pub(super) ln_det_precision: f64,
}

impl Evidence {
    /// `Σ = (Wᵀ Ψ⁻¹ W + diag(√2/η))⁻¹`, `m = Σ Wᵀ Ψ⁻¹ (t − μ)`.
    pub(super) fn posterior(&self, eta: &[f64]) -> Posterior {
        let mut precision = self.precision.clone();
        eta.iter().enumerate().for_each(|(i, eta)| precision[(i, i)] += SQRT_2 / eta);
        let chol = Cholesky::new(&precision).unwrap_or_else(|| {
            // Sources that the row cannot tell apart, and next to no noise: rounding hides diag(√2/η).
            let q = eta.len();
            (0..q).for_each(|i| precision[(i, i)] *= 1.0 + 1e-12 * q as f64);
            Cholesky::new(&precision).expect("a sum of squares whose diagonal outweighs rounding")
        });
        let mut mean = self.linear.clone();
        chol.solve(&mut mean);
        Posterior { mean, covariance: chol.inverse(), ln_det_precision: chol.ln_det() }
    }

    /// At the η that bounds best: each pass raises the bound.
    fn settled(&self) -> Posterior {
        let mut eta = vec![1.0; self.linear.len()];
        for _ in 0..MOST_PASSES {
            let next = self.posterior(&eta).eta();
            let moved = eta.iter().zip(&next).any(|(a, b)| (a - b).abs() > STILL * b);
            eta = next;
            if !moved {
                break;
            }
        }
        self.posterior(&eta)
    }
}

impl Posterior {
    /// `√⟨s²⟩`, which makes the bound tight.
    pub(super) fn eta(&self) -> Vec<f64> {
        let eta = |(i, m): (usize, &f64)| {
            let eta = (m * m + self.covariance[(i, i)]).sqrt();
            // A source that is certainly 0 has no η, nor has NaN; the smallest here changes nothing. The largest keeps √2/η
            // above 0.
            if eta > LEAST_ETA { eta.min(1.0 / LEAST_ETA) } else { LEAST_ETA }
        };
        self.mean.iter().enumerate().map(eta).collect()
    }

    /// `wᵀ Σ w`
    pub(super) fn variance_along(&self, w: &[f64]) -> f64 {
        w.iter().enumerate().map(|(a, wa)| wa * dot(self.covariance.row(a), w)).sum()
    }
}
