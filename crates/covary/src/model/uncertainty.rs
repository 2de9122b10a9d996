//! The uncertainty of the parameters of a fit.
//!
//! `Uncertainty` holds, per column, the posterior covariance of (w_j, μ_j) over ψ_j, which has no units: folding a scale back,
//! rotating and saving need no special case. The block kernels of `model/latent.rs` take it as `Units::spread` and add it to
//! G and to the right-hand side; with none they are what maximum likelihood uses. So the variational methods pass over the
//! rows by the E-step of EM (`LatentMoments::of_block`), and a fitted one answers by the same code as any other. PCA, factor
//! analysis and group factor analysis are one mean-field method: columns have a noise group and a view (`State::place`). What has
//! no closed form (densities) averages over fixed draws of the parameters; the Student form is in `model/student.rs`. A
//! sampler's answer is a `Mixture`: new rows reweight its draws, rows it was trained on do not (`Fit::of_training_rows`).

use super::density::check_columns;
use super::latent::one_or_each;
use super::student::Student;
use super::{Completed, Density, Given, LinearGaussian, Mixture, Noise};
use crate::linalg::{Cholesky, dot};
use crate::{Dataset, Error, Matrix};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma, StandardNormal};
use std::cell::OnceCell;

/// The posterior of loadings, mean and noise around the values a [`LinearGaussian`] holds: with it,
/// scores, filled cells and densities include the uncertainty of the parameters.
///
/// ```text
/// v_j = (w_j, μ_j)      v_j ~ N(v̂_j, ψ_j E_j)      1/σ_j² ~ Gamma(a, mean 1/ψ_j)
/// ```
///
/// `E_j` has no units: rescaling a column leaves it alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Uncertainty {
    /// `E_j`, (q+1) × (q+1), the mean last: one per column, or one that all share.
    pub relative: Vec<Matrix>,
    /// Shape a of the posterior of the noise precision: one, or one per column.
    pub shape: Vec<f64>,
    /// Whether loadings and mean are known the better the smaller the noise turns out to be
    /// (`v_j | σ² ~ N(v̂_j, σ² E_j)`), or are independent of it.
    pub coupled: bool,
    /// Posterior probability that a column has a part in any component, of a method that selects columns; else empty. Loadings
    /// and covariances are averages over whether it has.
    pub inclusion: Vec<f64>,
}

/// Beyond these no table has a say, and draws of the parameters would not be finite numbers.
const LARGEST: f64 = 1e100;
const SHAPES: std::ops::RangeInclusive<f64> = 1e-6..=1e15;

impl Uncertainty {
    pub(crate) fn check(&self, d: usize, q: usize) -> Result<(), Error> {
        let wrong = |what, expected, got| Err(Error::WrongLength { what, expected, got });
        if ![1, d].contains(&self.relative.len()) {
            return wrong("covariances of loadings", d, self.relative.len());
        }
        if ![1, d].contains(&self.shape.len()) {
            return wrong("shapes of the noise", d, self.shape.len());
        }
        if ![0, d].contains(&self.inclusion.len()) {
            return wrong("inclusion probabilities", d, self.inclusion.len());
        }
        if let Some(&value) = self.inclusion.iter().find(|p| !(0.0..=1.0).contains(*p)) {
            return Err(Error::OutOfRange { name: "an inclusion probability", value, bound: "from 0 to 1" });
        }
        for e in &self.relative {
            if e.n_rows() != q + 1 || e.n_columns() != q + 1 {
                return wrong("rows and columns of a covariance of loadings", q + 1, e.n_rows());
            }
            if let Some(&value) = e.as_slice().iter().find(|v| v.is_nan() || v.abs() > LARGEST) {
                let bound = "at most 1e100 in size";
                return Err(Error::OutOfRange { name: "a covariance of the loadings", value, bound });
            }
            // Positive semi-definite to rounding: what a posterior is, and what keeps every answer finite.
            let mut lifted = e.clone();
            for i in 0..=q {
                lifted[(i, i)] += 1e-10 * (e.trace() / (q + 1) as f64).max(f64::MIN_POSITIVE);
            }
            let symmetric = (0..=q).all(|i| (0..i).all(|j| e[(i, j)] == e[(j, i)]));
            if !symmetric || e.trace() < 0.0 || Cholesky::new(&lifted).is_none() {
                let (value, bound) = (e.trace(), "that of a symmetric positive semi-definite matrix");
                return Err(Error::OutOfRange {
                    name: "the trace of a covariance of the loadings",
                    value,
                    bound,
                });
            }
        }
        match self.shape.iter().find(|a| !SHAPES.contains(*a)) {
            Some(&value) => {
                Err(Error::OutOfRange { name: "a shape of the noise", value, bound: "from 1e-6 to 1e15" })
            }
            None => Ok(()),
        }
    }

    /// Loadings turned to `W R`.
    pub(crate) fn rotated(&self, rotation: &Matrix) -> Self {
        let turn = rotation.bordered();
        let turned = |e: &Matrix| {
            let mut e = turn.t_dot(&e.dot(&turn));
            e.symmetrize();
            e
        };
        Self { relative: self.relative.iter().map(turned).collect(), ..self.clone() }
    }

    pub(crate) fn of_column(&self, j: usize) -> &Matrix {
        one_or_each(&self.relative, j).expect("there is one at least")
    }

    fn shape_of(&self, j: usize) -> f64 {
        *one_or_each(&self.shape, j).expect("there is one at least")
    }

    /// `⟨σ²⟩ / ψ = a / (a − 1)`. A column seen once or twice, with a below 3/2, has no ⟨σ²⟩ to speak of; it
    /// counts as one seen three times.
    pub(crate) fn noise_factor(&self, j: usize) -> f64 {
        let a = self.shape_of(j);
        a / (a - 1.0).max(0.5)
    }

    /// What multiplies `ψ E`, on average over the noise.
    pub(super) fn spread_factor(&self, j: usize) -> f64 {
        if self.coupled { self.noise_factor(j) } else { 1.0 }
    }

    /// What loadings and mean of a column add to the variance of `wᵀ x + level · μ` where the scores have mean x and covariance V, in
    /// variances of its noise: `ẑᵀ E ẑ + tr E V` with ẑ = (x, level).
    pub(crate) fn added_spread(&self, column: usize, (x, level): (&[f64], f64), v: &Matrix) -> f64 {
        let (e, q) = (self.of_column(column), x.len());
        let mut spread = level * level * e[(q, q)];
        for i in 0..q {
            let row = &e.row(i)[..q];
            spread += x[i] * (dot(row, x) + 2.0 * level * e[(i, q)]) + dot(row, v.row(i));
        }
        self.spread_factor(column) * spread.max(0.0)
    }
}

/// Draws that a density is averaged over: the error of a row's log-density is then about a tenth of
/// how far that density varies over plausible parameters.
const SCORING_DRAWS: usize = 128;

/// An average over draws, and how far it may be off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The average.
    pub value: f64,
    /// Its Monte-Carlo standard error.
    pub standard_error: f64,
}

impl LinearGaussian {
    /// The same values with a posterior around them.
    ///
    /// # Errors
    /// [`Error::WrongLength`] or [`Error::OutOfRange`] if it does not fit the model.
    pub fn with_uncertainty(mut self, uncertainty: Uncertainty) -> Result<Self, Error> {
        uncertainty.check(self.n_columns(), self.n_components())?;
        self.uncertainty = Some(Box::new(uncertainty));
        Ok(self)
    }

    /// The uncertainty of the parameters; `None` where they are taken as known.
    pub fn uncertainty(&self) -> Option<&Uncertainty> {
        self.uncertainty.as_deref()
    }

    /// Posterior probability that each column has a part in any component, of a method that
    /// [selects columns](crate::infer::SpikeSlab).
    pub fn inclusion(&self) -> Option<&[f64]> {
        self.uncertainty().map(|u| &u.inclusion[..]).filter(|inclusion| !inclusion.is_empty())
    }

    /// Standard deviations of the loadings, d × q; `None` where they are taken as known.
    ///
    /// ```text
    /// sd(wⱼₖ)² = ⟨σⱼ²⟩ (Eⱼ)ₖₖ        ψⱼ (Eⱼ)ₖₖ if loadings are independent of the noise
    /// ```
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::Structured, Estimator, Spec};
    /// let sd = |rows| {
    ///     let (table, _) = simulate::ppca(Shape { rows, columns: 6, n_components: 2 }, /* seed */ 1);
    ///     Ok::<_, covary::Error>(Structured::default().fit(&table, &Spec::ppca(2))?.model.loading_sds().unwrap()[(0, 0)])
    /// };
    /// assert!(sd(800)? < 0.5 * sd(100)?);      // eight times the rows, a third of the uncertainty
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn loading_sds(&self) -> Option<Matrix> {
        let uncertainty = self.uncertainty()?;
        let variance = |j: usize, k: usize| {
            self.noise().variance(j) * uncertainty.spread_factor(j) * uncertainty.of_column(j)[(k, k)]
        };
        Some(Matrix::from_fn(self.n_columns(), self.n_components(), |j, k| variance(j, k).max(0.0).sqrt()))
    }

    /// The same values, taken as known.
    #[must_use]
    pub fn plug_in(&self) -> Self {
        let mut known = self.clone();
        known.uncertainty = None;
        known
    }

    /// One draw of the parameters from their posterior.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::Structured, Estimator, Spec};
    /// use rand::SeedableRng;
    /// let (table, _) = simulate::ppca(Shape { rows: 60, columns: 6, n_components: 2 }, /* seed */ 1);
    /// let model = Structured::default().fit(&table, &Spec::ppca(2))?.model;
    /// let drawn = model.draw_parameters(&mut rand_chacha::ChaCha8Rng::seed_from_u64(1));
    /// assert!(drawn.uncertainty().is_none() && drawn.loadings() != model.loadings());
    /// # Ok::<(), covary::Error>(())
    /// ```
    #[must_use]
    pub fn draw_parameters(&self, rng: &mut dyn Rng) -> Self {
        let Some(uncertainty) = self.uncertainty() else { return self.clone() };
        let (d, q) = (self.n_columns(), self.n_components());
        let mut noise = |j: usize| {
            let a = uncertainty.shape_of(j);
            let ratio = Gamma::new(a, 1.0 / a).expect("a shape above 0").sample(rng);
            // A draw that underflows would be infinite noise, one of huge noise too.
            (self.noise().variance(j) / ratio.max(1e-100)).min(1e290)
        };
        let noise = match self.noise() {
            Noise::Isotropic(_) => Noise::Isotropic(noise(0)),
            // One draw for all where one posterior serves all (a standardized fit).
            Noise::Diagonal(psi) if uncertainty.shape.len() == 1 => {
                let ratio = noise(0) / psi[0];
                Noise::Diagonal(psi.iter().map(|v| v * ratio).collect())
            }
            Noise::Diagonal(_) => Noise::Diagonal((0..d).map(noise).collect()),
        };
        let roots: Vec<Matrix> = uncertainty.relative.iter().map(root).collect();
        let mut w = self.loadings().clone();
        let mut mean = self.mean().to_vec();
        for j in 0..d {
            let variance = if uncertainty.coupled { noise.variance(j) } else { self.noise().variance(j) };
            let e: Vec<f64> = (0..=q).map(|_| StandardNormal.sample(rng)).collect();
            let root = one_or_each(&roots, j).expect("one at least");
            let change = |i: usize| {
                variance.sqrt().min(1e145) * root.row(i)[..=i].iter().zip(&e).map(|(l, e)| l * e).sum::<f64>()
            };
            (0..q).for_each(|i| w[(j, i)] += change(i));
            mean[j] += change(q);
        }
        let drawn = Self::new(w, mean, noise).expect("draws are finite");
        drawn.with_scale(self.scale().map(<[f64]>::to_vec)).expect("the scale of this model")
    }

    /// `ln S(t | x)` of a complete row.
    #[cfg(test)]
    pub(crate) fn log_student(&self, row: &[f64], x: &[f64]) -> f64 {
        let all: Vec<usize> = (0..row.len()).collect();
        Student::of(self).expect("a coupled posterior").log_density_given(row, &all, x)
    }

    /// Variance of the noise-free value of a cell, and of its noise, for a row whose scores have mean
    /// `x` and covariance `v`.
    #[cfg(test)]
    pub(crate) fn cell_variance(&self, column: usize, x: &[f64], v: &Matrix) -> (f64, f64) {
        let w = self.loadings().row(column);
        let own: f64 = w.iter().enumerate().map(|(i, wi)| wi * dot(v.row(i), w)).sum();
        let psi = self.noise().variance(column);
        let added = self.uncertainty().map(|u| super::batch::added_variance(u, self.noise(), v, x, column));
        let (signal, noise) = added.unwrap_or_default();
        (own + signal, psi + noise)
    }

    /// `n` draws of the parameters as a mixture.
    fn draws(&self, n: usize, seed: u64) -> Mixture {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let draws = (0..n).map(|_| self.draw_parameters(&mut rng)).collect();
        Mixture::equal(draws).expect("draws of one model")
    }

    /// The draws behind densities and fresh rows: always the same ones.
    pub(super) fn scoring_draws(&self) -> Mixture {
        self.draws(SCORING_DRAWS, 0)
    }

    /// Log-density of every row, gaps and parameters integrated out by `n_draws` draws, with its
    /// Monte-Carlo standard error: 0 where the parameters are taken as known.
    ///
    /// Where loadings and mean are coupled to one noise, x is drawn and the rest integrated exactly (a
    /// Student density, [M 2.3.6]); else the parameters are drawn and x is integrated exactly. 2000
    /// draws leave about 0.01 nats.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::Structured, Estimator, Spec};
    /// let (table, _) = simulate::ppca(Shape { rows: 60, columns: 6, n_components: 2 }, /* seed */ 1);
    /// let model = Structured::default().fit(&table, &Spec::ppca(2))?.model;
    /// let density = model.predictive_log_density(&table, 2000, /* seed */ 0)?;
    /// assert!(density.iter().all(|d| d.standard_error < 0.05));
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the model, [`Error::OutOfRange`]
    /// for fewer than 2 draws.
    pub fn predictive_log_density(
        &self,
        data: &Dataset,
        n_draws: usize,
        seed: u64,
    ) -> Result<Vec<Estimate>, Error> {
        if n_draws < 2 {
            let value = n_draws as f64;
            return Err(Error::OutOfRange { name: "number of draws", value, bound: "at least 2" });
        }
        if self.uncertainty().is_none() {
            let exact = |value| Estimate { value, standard_error: 0.0 };
            return Ok(self.log_density(data)?.into_iter().map(exact).collect());
        }
        if let Some(student) = Student::of(self) {
            check_columns(self.n_columns(), data)?;
            return Ok(student.log_densities(data, n_draws, seed));
        }
        let by_draw: Vec<Vec<f64>> = self
            .draws(n_draws, seed)
            .models()
            .iter()
            .map(|draw| draw.log_density(data))
            .collect::<Result<_, _>>()?;
        let of_row = |i: usize| log_mean(&by_draw.iter().map(|l| l[i]).collect::<Vec<_>>());
        Ok((0..data.n_rows()).map(of_row).collect())
    }
}

/// `ln` of the average of `exp(terms)`, with the standard error that the spread of the terms gives it.
pub(super) fn log_mean(terms: &[f64]) -> Estimate {
    let largest = terms.iter().fold(f64::NEG_INFINITY, |m, t| m.max(*t));
    if largest == f64::NEG_INFINITY {
        return Estimate { value: largest, standard_error: 0.0 };
    }
    let n = terms.len() as f64;
    let weights = terms.iter().map(|t| (t - largest).exp());
    let mean = weights.clone().sum::<f64>() / n;
    let variance = weights.map(|w| (w - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Estimate { value: largest + mean.ln(), standard_error: (variance / n).sqrt() / mean }
}

/// A lower root of a covariance that may be singular.
fn root(e: &Matrix) -> Matrix {
    let n = e.n_rows();
    let mut lift = 1e-14 * e.trace() / n as f64;
    let mut lifted = e.clone();
    loop {
        if let Some(factor) = Cholesky::new(&lifted) {
            return factor.lower().clone();
        }
        if !(lift > 0.0 && lift.is_finite()) {
            return Matrix::zeros(n, n);
        }
        (0..n).for_each(|i| lifted[(i, i)] += lift);
        lift *= 10.0;
    }
}

/// The answers of an uncertain model for one pattern of gaps, through the kernels for whole tables.
pub(super) struct GivenUncertain<'a> {
    pub(super) model: &'a LinearGaussian,
    pub(super) observed: Vec<usize>,
    /// Drawn when the first density is asked for.
    pub(super) draws: OnceCell<Mixture>,
}

impl GivenUncertain<'_> {
    fn table(&self, rows: &[&[f64]]) -> Dataset {
        let d = self.model.n_columns();
        let mut values = Matrix::from_fn(rows.len(), d, |_, _| f64::NAN);
        for (i, row) in rows.iter().enumerate() {
            self.observed.iter().for_each(|&j| values[(i, j)] = row[j]);
        }
        Dataset::new(values).expect("rows of a table")
    }
}

impl Given for GivenUncertain<'_> {
    fn log_density(&self, row: &[f64]) -> f64 {
        let draws = self.draws.get_or_init(|| self.model.scoring_draws());
        draws.log_density(&self.table(&[row])).expect("the model's columns")[0]
    }

    fn complete_rows(&self, rows: &[&[f64]]) -> Vec<Completed> {
        if rows.is_empty() {
            return Vec::new();
        }
        let cells = self.model.gap_cells(&self.table(rows)).expect("the model's columns");
        let gaps = self.model.n_columns() - self.observed.len();
        let mut completed = vec![Completed { mean: Vec::new(), variance: Vec::new() }; rows.len()];
        for cell in cells {
            completed[cell.row].mean.push(cell.mean);
            completed[cell.row].variance.push(cell.sd * cell.sd);
        }
        debug_assert!(completed.iter().all(|c| c.mean.len() == gaps));
        completed
    }

    fn draw(&self, row: &[f64], rng: &mut dyn Rng) -> Vec<f64> {
        self.model.draw_parameters(rng).condition(&self.observed).draw(row, rng)
    }
}
