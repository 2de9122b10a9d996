use super::{Conditional, Density, Given, Noise};
use crate::linalg::Cholesky;
use crate::{Error, Matrix};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// The fitted model, whatever road led to it.
///
/// ```text
/// t = W x + μ + ε      x ~ N(0, I_q)      ε ~ N(0, Ψ)      hence  t ~ N(μ, C),  C = W Wᵀ + Ψ
/// ```
///
/// `W` (`loadings`) is d × q, `μ` (`mean`) has length d, `Ψ` (`noise`) is isotropic or diagonal and
/// positive. No d × d matrix is formed except by [`covariance`](Self::covariance) and
/// [`precision`](Self::precision).
///
/// ```
/// use covary::{Density, LinearGaussian, Matrix, Noise, Dataset};
/// let model = LinearGaussian::new(Matrix::from_rows(&[[2.0], [1.0]]), vec![0.0, 0.0], Noise::Isotropic(1.0))?;
/// // The gap follows its neighbour: E[t₂ | t₁] = C₂₁ / C₁₁ · t₁ = 2/5 · 5.
/// let filled = model.impute(&Dataset::new(Matrix::from_rows(&[[5.0, f64::NAN]]))?)?;
/// assert!((filled.values()[(0, 1)] - 2.0).abs() < 1e-12);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LinearGaussian {
    loadings: Matrix,
    mean: Vec<f64>,
    noise: Noise,
}

impl LinearGaussian {
    /// The model with these parameters, as given: no canonical form is imposed.
    ///
    /// # Errors
    /// [`Error::WrongLength`] if the shapes disagree, [`Error::OutOfRange`] if a parameter is not
    /// finite or a noise variance is not positive.
    pub fn new(loadings: Matrix, mean: Vec<f64>, noise: Noise) -> Result<Self, Error> {
        let d = loadings.n_rows();
        let wrong = |what, got| Err(Error::WrongLength { what, expected: d, got });
        if mean.len() != d {
            return wrong("entries of the mean", mean.len());
        }
        if let Noise::Diagonal(psi) = &noise
            && psi.len() != d
        {
            return wrong("noise variances", psi.len());
        }
        let out = |name, value, bound| Err(Error::OutOfRange { name, value, bound });
        if let Some(&value) = loadings.as_slice().iter().find(|v| !v.is_finite()) {
            return out("a loading", value, "finite");
        }
        if let Some(&value) = mean.iter().find(|v| !v.is_finite()) {
            return out("a mean", value, "finite");
        }
        if let Some(value) = noise.variances(d).into_iter().find(|v| !(v.is_finite() && *v > 0.0)) {
            return out("a noise variance", value, "finite and above 0");
        }
        Ok(Self { loadings, mean, noise })
    }

    /// Number of components q.
    pub fn n_components(&self) -> usize {
        self.loadings.n_columns()
    }

    /// `W`, d × q.
    pub fn loadings(&self) -> &Matrix {
        &self.loadings
    }

    /// `μ`.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// `Ψ`.
    pub fn noise(&self) -> &Noise {
        &self.noise
    }

    /// Noise variance of every column.
    pub fn noise_variances(&self) -> Vec<f64> {
        self.noise.variances(self.mean.len())
    }

    /// What the columns in `observed` (rising) say about the rest: factorised once, asked row by
    /// row.
    ///
    /// # Panics
    /// If an index is not a column of the model.
    pub fn condition(&self, observed: &[usize]) -> Conditional<'_> {
        Conditional::new(self, observed.to_vec())
    }

    /// `C = W Wᵀ + Ψ`, d × d.
    pub fn covariance(&self) -> Matrix {
        let mut c = self.loadings.dot_t(&self.loadings);
        for j in 0..self.mean.len() {
            c[(j, j)] += self.noise.variance(j);
        }
        c
    }

    /// `C⁻¹ = Ψ⁻¹ − Ψ⁻¹ W G⁻¹ Wᵀ Ψ⁻¹`, `G = I + Wᵀ Ψ⁻¹ W`, d × d.
    pub fn precision(&self) -> Matrix {
        let d = self.mean.len();
        let inverse: Vec<f64> = self.noise_variances().iter().map(|v| 1.0 / v).collect();
        let mut weighted = self.loadings.clone();
        weighted.scale_rows(&inverse);
        let g = self.latent_precision();
        // With B = L⁻¹ Wᵀ Ψ⁻¹ the second term is BᵀB: symmetric by construction.
        let mut b = weighted.clone();
        for j in 0..d {
            g.solve_lower(b.row_mut(j));
        }
        let bb = b.dot_t(&b);
        Matrix::from_fn(d, d, |i, j| if i == j { inverse[i] } else { 0.0 } - bb[(i, j)])
    }

    /// Cholesky factor of `G = I + Wᵀ Ψ⁻¹ W` for a complete row.
    pub(crate) fn latent_precision(&self) -> Cholesky {
        let all: Vec<usize> = (0..self.mean.len()).collect();
        latent_precision(&self.loadings, &self.noise, &all)
    }

    /// Total variance `tr C`.
    pub fn total_variance(&self) -> f64 {
        self.loadings.as_slice().iter().map(|w| w * w).sum::<f64>()
            + self.noise_variances().iter().sum::<f64>()
    }

    /// Free parameters of the covariance; the mean adds `n_columns` more (spec §3.7).
    pub fn n_covariance_parameters(&self) -> usize {
        let (d, q) = (self.mean.len(), self.n_components());
        let noise = match self.noise {
            Noise::Isotropic(_) => 1,
            Noise::Diagonal(_) => d,
        };
        (d * q + noise).saturating_sub(q * q.saturating_sub(1) / 2)
    }

    /// Free parameters of covariance and mean together.
    pub fn n_parameters(&self) -> usize {
        self.n_covariance_parameters() + self.mean.len()
    }
}

/// Cholesky factor of `G_O = I_q + W_Oᵀ Ψ_O⁻¹ W_O`; `G ⪰ I`, so it always exists.
pub(crate) fn latent_precision(w: &Matrix, noise: &Noise, observed: &[usize]) -> Cholesky {
    let q = w.n_columns();
    let mut g = Matrix::identity(q);
    for &j in observed {
        let (row, inverse) = (w.row(j), 1.0 / noise.variance(j));
        for a in 0..q {
            let f = inverse * row[a];
            for (o, b) in g.row_mut(a)[..=a].iter_mut().zip(row) {
                *o += f * b;
            }
        }
    }
    Cholesky::new(&g).expect("identity plus a sum of squares is positive definite")
}

impl Density for LinearGaussian {
    fn n_columns(&self) -> usize {
        self.mean.len()
    }

    fn given(&self, observed: &[usize]) -> Box<dyn Given + '_> {
        Box::new(self.condition(observed))
    }

    fn sample(&self, n_rows: usize, rng: &mut dyn Rng) -> Matrix {
        let (d, q) = (self.mean.len(), self.n_components());
        let deviation: Vec<f64> = self.noise_variances().iter().map(|v| v.sqrt()).collect();
        let mut out = Matrix::zeros(n_rows, d);
        for i in 0..n_rows {
            let x: Vec<f64> = (0..q).map(|_| StandardNormal.sample(rng)).collect();
            for j in 0..d {
                let signal: f64 = self.loadings.row(j).iter().zip(&x).map(|(w, x)| w * x).sum();
                let e: f64 = StandardNormal.sample(rng);
                out[(i, j)] = self.mean[j] + signal + deviation[j] * e;
            }
        }
        out
    }
}
