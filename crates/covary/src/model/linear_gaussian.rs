use super::conditioning::Conditioning;
use super::density::{check_columns, draw_stream, filled_values};
use super::uncertainty::GivenUncertain;
use super::{Conditional, Density, FilledCell, Given, Noise, Tails, Uncertainty};
use crate::linalg::{Cholesky, Eigen, eigen};
use crate::{CentralMoments, Dataset, Error, Matrix};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, Ordering};

/// The fitted model, whatever method led to it.
///
/// ```text
/// t = W x + μ + ε      x ~ N(0, I_q)      ε ~ N(0, Ψ)      hence  t ~ N(μ, C),  C = W Wᵀ + Ψ
/// ```
///
/// `W` (`loadings`) is d × q, `μ` (`mean`) has length d, `Ψ` (`noise`) is isotropic or diagonal and
/// positive. Where the method gives it, the model also knows how uncertain they are
/// ([`uncertainty`](Self::uncertainty)), and its answers include that; or its rows have [heavier
/// tails](Self::with_tail_degrees_of_freedom). No d × d matrix is formed except by [`covariance`](Self::covariance) and
/// [`precision`](Self::precision).
///
/// Parameters are in the units of the table, whatever the columns were divided by while fitting. The model remembers
/// that [`scale`](Self::scale), because principal axes, shares of variance, projections and squared prediction errors
/// change with the units of the columns: they belong to the scale of the fit.
///
/// ```
/// use covary::{Density, LinearGaussian, Matrix, Noise, Dataset};
/// let model = LinearGaussian::new(Matrix::from_rows(&[[2.0], [1.0]]), vec![0.0, 0.0], Noise::Isotropic(1.0))?;
/// // The gap follows its neighbor: E[t₂ | t₁] = C₂₁ / C₁₁ · t₁ = 2/5 · 5.
/// let filled = model.impute(&Dataset::new(Matrix::from_rows(&[[5.0, f64::NAN]]))?)?;
/// assert!((filled.values()[(0, 1)] - 2.0).abs() < 1e-12);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LinearGaussian {
    loadings: Matrix,
    mean: Vec<f64>,
    noise: Noise,
    scale: Option<Vec<f64>>,
    /// Whether W is what it is, zeros among it, rather than any W R.
    fixed_axes: bool,
    pub(super) tails: Tails,
    pub(super) uncertainty: Option<Box<Uncertainty>>,
    pub(super) conditioning: Conditioning,
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
        Ok(Self {
            loadings,
            mean,
            noise,
            scale: None,
            fixed_axes: false,
            tails: Tails::GAUSSIAN,
            uncertainty: None,
            conditioning: Conditioning::default(),
        })
    }

    /// The same density, known to be fitted to columns divided by `scale`; `None` for columns as they are.
    ///
    /// ```
    /// use covary::{LinearGaussian, Matrix, Noise};
    /// let new = |scale| LinearGaussian::new(Matrix::from_rows(&[[3.0], [400.0]]), vec![0.0; 2],
    ///     Noise::Diagonal(vec![1.0, 1e4]))?.with_scale(scale);
    /// let (raw, standardized) = (new(None)?, new(Some(vec![1.0, 100.0]))?);
    /// assert!(raw.components()[(0, 0)] < 0.01);                                   // the second column swamps the first
    /// assert!((standardized.components()[(0, 0)] - 3.0 / 5.0).abs() < 1e-12);     // (3, 4) / 5
    /// assert!((standardized.explained_variance()[0] - 26.0).abs() < 1e-12);       // 3² + 4² + 1
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless there is a number per column, [`Error::OutOfRange`] unless all are finite, above 0,
    /// and not so small that loadings or noise overflow when they are divided by them.
    pub fn with_scale(mut self, scale: Option<Vec<f64>>) -> Result<Self, Error> {
        if let Some(scale) = &scale {
            let (expected, got) = (self.mean.len(), scale.len());
            if expected != got {
                return Err(Error::WrongLength { what: "scales of columns", expected, got });
            }
            if let Some(&value) = scale.iter().find(|s| !(s.is_finite() && **s > 0.0)) {
                let name = "the scale of a column";
                return Err(Error::OutOfRange { name, value, bound: "finite and above 0" });
            }
            let finite = |j: usize| {
                let s = 1.0 / scale[j];
                let noise = self.noise.variance(j) * s * s;
                noise.is_finite() && self.loadings.row(j).iter().all(|w| (w * s).is_finite())
            };
            if let Some(j) = (0..expected).find(|&j| !finite(j)) {
                let (name, bound) = ("the scale of a column", "large enough for its loadings and noise");
                return Err(Error::OutOfRange { name, value: scale[j], bound });
            }
        }
        self.scale = scale;
        Ok(self)
    }

    /// The same density, whose loadings mean something as they are, such as sparse ones: no rotation is applied to them, and
    /// [`components`](Self::components) are their columns.
    ///
    /// ```
    /// use covary::{LinearGaussian, Matrix, Noise};
    /// let w = Matrix::from_rows(&[[3.0, 0.0], [4.0, 1.0], [0.0, 2.0]]);
    /// let model = LinearGaussian::new(w.clone(), vec![0.0; 3], Noise::Isotropic(1.0))?.with_fixed_axes();
    /// assert_eq!(*model.canonical().loadings(), w);
    /// assert!((model.components()[(0, 1)] - 0.8).abs() < 1e-12 && model.components()[(0, 2)] == 0.0);
    /// assert_eq!(model.explained_variance(), [25.0, 5.0]);
    /// # Ok::<(), covary::Error>(())
    /// ```
    #[must_use]
    pub fn with_fixed_axes(mut self) -> Self {
        self.fixed_axes = true;
        self
    }

    /// Whether the loadings mean something as they are; see [`with_fixed_axes`](Self::with_fixed_axes).
    pub fn has_fixed_axes(&self) -> bool {
        self.fixed_axes
    }

    /// How many loadings are not 0, and how many there are, where that means something: of [fixed
    /// axes](Self::with_fixed_axes).
    pub fn n_nonzero(&self) -> Option<(usize, usize)> {
        let all = self.loadings.as_slice();
        self.fixed_axes.then(|| (all.iter().filter(|w| **w != 0.0).count(), all.len()))
    }

    /// What each column was divided by while fitting: its standard deviation if columns were standardized, `None` if
    /// they were fitted as they are.
    pub fn scale(&self) -> Option<&[f64]> {
        self.scale.as_deref()
    }

    /// `1 / s` for each column of the [`scale`](Self::scale).
    pub(super) fn inverse_scale(&self) -> Vec<f64> {
        match &self.scale {
            Some(scale) => scale.iter().map(|s| 1.0 / s).collect(),
            None => vec![1.0; self.mean.len()],
        }
    }

    /// `D⁻¹ W`: the loadings in the scale of the fit.
    pub(super) fn scaled_loadings(&self) -> Matrix {
        let mut w = self.loadings.clone();
        if self.scale.is_some() {
            w.scale_rows(&self.inverse_scale());
        }
        w
    }

    /// `ψⱼ / sⱼ²`: the noise variances in the scale of the fit.
    pub(super) fn scaled_noise(&self) -> Vec<f64> {
        self.noise_variances().iter().zip(self.inverse_scale()).map(|(v, s)| v * s * s).collect()
    }

    /// The model with loadings `w = W R`, for an orthogonal `R`.
    pub(super) fn with_loadings(&self, w: Matrix, rotation: &Matrix) -> Self {
        let uncertainty = self.uncertainty().map(|u| Box::new(u.rotated(rotation)));
        Self {
            loadings: w,
            uncertainty,
            mean: self.mean.clone(),
            noise: self.noise.clone(),
            scale: self.scale.clone(),
            fixed_axes: self.fixed_axes,
            tails: self.tails,
            conditioning: self.conditioning.clone(),
        }
    }

    /// The Gaussian of this mean and covariance, as the model with one component less than columns that
    /// it is: the smallest eigenvalue is the noise.
    ///
    /// ```
    /// use covary::{LinearGaussian, Matrix};
    /// let c = Matrix::from_rows(&[[2.0, 0.5], [0.5, 1.0]]);
    /// let model = LinearGaussian::from_covariance(vec![0.0, 1.0], &c)?;
    /// assert!((model.covariance()[(0, 1)] - 0.5).abs() < 1e-12 && model.n_components() == 1);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotCovariance`] unless the matrix is square, finite, symmetric and positive definite;
    /// [`Error::WrongLength`] unless the mean has as many entries.
    pub fn from_covariance(mean: Vec<f64>, covariance: &Matrix) -> Result<Self, Error> {
        CentralMoments::from_covariance(covariance, 2)?;
        let Eigen { values, vectors } = eigen(covariance)?;
        let (q, smallest) = (values.len() - 1, values[values.len() - 1]);
        if smallest <= 0.0 {
            let why = format!("its smallest eigenvalue is {smallest}, not above 0");
            return Err(Error::NotCovariance { what: "the matrix given", why });
        }
        let mut w = vectors.first_columns(q);
        w.scale_columns(&values[..q].iter().map(|v| (v - smallest).sqrt()).collect::<Vec<_>>());
        Self::new(w, mean, Noise::Isotropic(smallest))
    }

    /// As [`from_covariance`](Self::from_covariance), in units of each column's standard deviation: columns of
    /// very different units keep their digits, and the noise is a variance for each of them.
    ///
    /// ```
    /// use covary::{LinearGaussian, Matrix};
    /// let c = Matrix::from_rows(&[[2e8, 0.5], [0.5, 1e-8]]);
    /// let model = LinearGaussian::from_covariance_by_column(vec![0.0, 1.0], &c)?;
    /// assert!((model.covariance()[(1, 1)] / 1e-8 - 1.0).abs() < 1e-12);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`from_covariance`](Self::from_covariance).
    pub fn from_covariance_by_column(mean: Vec<f64>, covariance: &Matrix) -> Result<Self, Error> {
        CentralMoments::from_covariance(covariance, 2)?;
        let scale: Vec<f64> = (0..covariance.n_rows()).map(|j| covariance[(j, j)].sqrt()).collect();
        let mut correlation = covariance.clone();
        correlation
            .scale_both(&scale.iter().map(|s| if *s > 0.0 { 1.0 / s } else { 1.0 }).collect::<Vec<_>>());
        let model = Self::from_covariance(mean, &correlation)?;
        let mut w = model.loadings;
        w.scale_rows(&scale);
        let smallest = model.noise.variance(0);
        Self::new(w, model.mean, Noise::Diagonal(scale.iter().map(|s| smallest * s * s).collect()))
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

    /// What the columns in `observed` (ascending) say about the rest at these very parameters, taken as
    /// known: factorized once, asked row by row.
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

    /// Log-likelihood in nats of complete rows known by their moments alone.
    ///
    /// ```text
    /// ℓ = −N/2 [d ln 2π + ln|C| + tr C⁻¹ (S + (m − μ)(m − μ)ᵀ)]
    /// ```
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, CentralMoments, Density};
    /// let (table, truth) = simulate::ppca(Shape { rows: 40, columns: 5, n_components: 2 }, /* seed */ 1);
    /// let by_moments = truth.log_likelihood_of_moments(&CentralMoments::of(&table)?)?;
    /// assert!((by_moments - truth.log_likelihood(&table)?).abs() < 1e-9);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the moments have other columns than the model.
    pub fn log_likelihood_of_moments(&self, moments: &CentralMoments) -> Result<f64, Error> {
        let d = self.mean.len();
        if moments.n_columns() != d {
            return Err(Error::ColumnCount { expected: d, got: moments.n_columns() });
        }
        let mut s = moments.covariance();
        let shift: Vec<f64> = moments.mean().iter().zip(&self.mean).map(|(a, b)| a - b).collect();
        for i in 0..d {
            s.row_mut(i).iter_mut().zip(&shift).for_each(|(s, x)| *s += shift[i] * x);
        }
        // tr C⁻¹S = Σ sⱼⱼ/ψⱼ − tr G⁻¹ BᵀSB with B = Ψ⁻¹W;   ln|C| = Σ ln ψⱼ + ln|G|
        let psi = self.noise_variances();
        let mut b = self.loadings.clone();
        b.scale_rows(&psi.iter().map(|v| 1.0 / v).collect::<Vec<_>>());
        let g = self.latent_precision();
        let explained = g.solve_matrix(&b.t_dot(&s.dot(&b))).trace();
        let spread: f64 = (0..d).map(|j| psi[j].ln() + s[(j, j)] / psi[j]).sum();
        let ln_2pi = (2.0 * std::f64::consts::PI).ln();
        Ok(-0.5 * moments.n_rows() as f64 * (d as f64 * ln_2pi + spread + g.ln_det() - explained))
    }

    /// Variance of every column: the diagonal of `C`.
    pub fn variances(&self) -> Vec<f64> {
        let signal = |j: usize| self.loadings.row(j).iter().map(|w| w * w).sum::<f64>();
        (0..self.mean.len()).map(|j| signal(j) + self.noise.variance(j)).collect()
    }

    /// Total variance in the [`scale`](Self::scale) of the fit, `Σⱼ Cⱼⱼ / sⱼ²`.
    pub fn total_variance(&self) -> f64 {
        self.scaled_loadings().as_slice().iter().map(|w| w * w).sum::<f64>()
            + self.scaled_noise().iter().sum::<f64>()
    }

    /// Free parameters of the covariance; the mean adds `n_columns` more [M 1.3.7].
    pub fn n_covariance_parameters(&self) -> usize {
        let (d, q) = (self.mean.len(), self.n_components());
        let noise = match self.noise {
            Noise::Isotropic(_) => 1,
            Noise::Diagonal(_) => d,
        };
        (d * q + noise).saturating_sub(q * q.saturating_sub(1) / 2)
    }

    /// What the covariance leaves free: `d(d+1)/2` less
    /// [`n_covariance_parameters`](Self::n_covariance_parameters). Negative when the model has more
    /// parameters than a covariance has entries. For diagonal noise `((d − q)² − (d + q)) / 2`.
    #[allow(clippy::cast_possible_wrap, reason = "counts of matrix entries that fit in memory")]
    pub fn degrees_of_freedom(&self) -> i64 {
        let d = self.mean.len();
        (d * (d + 1) / 2) as i64 - self.n_covariance_parameters() as i64
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

/// Keeps the draw of the parameters apart from that of the gaps.
pub(crate) const PARAMETERS: u64 = 0x9e37_79b9_7f4a_7c15;

impl Density for LinearGaussian {
    fn n_columns(&self) -> usize {
        self.mean.len()
    }

    fn given(&self, observed: &[usize]) -> Box<dyn Given + '_> {
        match &self.uncertainty {
            None => Box::new(self.condition(observed)),
            Some(_) => {
                Box::new(GivenUncertain { model: self, observed: observed.to_vec(), draws: OnceCell::new() })
            }
        }
    }

    fn log_density(&self, data: &Dataset) -> Result<Vec<f64>, Error> {
        check_columns(self.n_columns(), data)?;
        match &self.uncertainty {
            None => Ok(self.log_densities(data.whole())),
            Some(_) => self.scoring_draws().log_density(data),
        }
    }

    fn gap_cells(&self, data: &Dataset) -> Result<Vec<FilledCell>, Error> {
        self.gap_cells_unless(data, &AtomicBool::new(false))
    }

    fn gap_cells_unless(&self, data: &Dataset, stop: &AtomicBool) -> Result<Vec<FilledCell>, Error> {
        check_columns(self.n_columns(), data)?;
        let cells = self.fill_gaps(data, stop);
        if stop.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(cells) }
    }

    fn draw_gaps(&self, data: &Dataset, k: usize, seed: u64) -> Result<Matrix, Error> {
        check_columns(self.n_columns(), data)?;
        if self.uncertainty.is_some() {
            // All rows of a completed table share one draw of the parameters.
            let mut rng = ChaCha8Rng::seed_from_u64(seed ^ PARAMETERS);
            rng.set_stream(k as u64);
            return self.draw_parameters(&mut rng).draw_gaps(data, k, seed);
        }
        let cells = self.draw_cells(data, seed, |i| draw_stream(data, k, i));
        Ok(filled_values(data, &cells))
    }

    fn sample(&self, n_rows: usize, rng: &mut dyn Rng) -> Matrix {
        if self.uncertainty.is_some() {
            return self.scoring_draws().sample(n_rows, rng);
        }
        let (d, q) = (self.mean.len(), self.n_components());
        let deviation: Vec<f64> = self.noise_variances().iter().map(|v| v.sqrt()).collect();
        let mut out = Matrix::zeros(n_rows, d);
        for i in 0..n_rows {
            let stretch = self.tails.draw_deviation(0, 0.0, rng);
            let x: Vec<f64> = (0..q).map(|_| StandardNormal.sample(rng)).collect();
            for j in 0..d {
                let signal: f64 = self.loadings.row(j).iter().zip(&x).map(|(w, x)| w * x).sum();
                let e: f64 = StandardNormal.sample(rng);
                out[(i, j)] = self.mean[j] + stretch * signal + stretch * deviation[j] * e;
            }
        }
        out
    }
}
