//! Exact maximum likelihood of probabilistic PCA on complete tables ([M 1.2] and [M 1.3.4]).
//!
//! ```text
//! σ² = 1/(d−q) Σ_{i>q} λᵢ        W = U_q (Λ_q − σ² I)^½        λ, U: eigenpairs of S (divisor N)
//! ```

use super::Estimator;
use super::options::{options, words};
use super::report::{Fit, FitReport, ObjectiveKind, Observer, Warning, decomposed};
use super::scatter::{scatter_times, sum_matrices};
use crate::data::in_its_precision;
use crate::linalg::rows::center;
use crate::linalg::{
    Cell, Eigen, Leading, canonical_signs, krylov, leading_eigenpairs, thin_svd, top_eigenpairs,
    top_eigenpairs_from_rough,
};
use crate::model::{LinearGaussian, Noise};
use crate::parallel::{BLOCK_CELLS, pieces};
use crate::spec::NoiseFamily;
use crate::{CentralMoments, Dataset, Error, Matrix, Spec};
use faer::{MatMut, MatRef};
use std::ops::Range;
use std::sync::OnceLock;

options! {
    /// Closed form, complete tables, isotropic noise.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::Spectral, Density, Estimator, Spec};
    /// let (table, truth) = simulate::ppca(Shape { rows: 500, columns: 8, n_components: 2 }, /* seed */ 1);
    /// let fit = Spectral::default().fit(&table, &Spec::ppca(2))?;
    /// assert!(fit.model.score(&table)? >= truth.score(&table)?);   // maximum likelihood beats the truth on its own data
    /// # Ok::<(), covary::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct Spectral {
        /// Eigensolver; [`Solver::Auto`] picks the cheapest accurate one.
        pub solver: Solver = Solver::Auto,
        /// Seed of the start of [`Solver::Krylov`].
        pub seed: u64 = 0,
    }
}

/// How the leading eigenpairs of the covariance are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Solver {
    /// By size, then by what the spectrum turns out to be: the others below.
    Auto,
    /// Eigenpairs of the d × d covariance: tall tables.
    Covariance,
    /// Eigenpairs of the n × n Gram matrix: wide tables.
    Gram,
    /// Singular values of the centered table: keeps eigenvalues below 1e-8 of the largest accurate,
    /// which squaring loses. Copies the table.
    Svd,
    /// Block Krylov iteration on the table itself: few components of a large table. Its answer
    /// comes with a bound on its error; the exact method is taken when the bound is too large.
    Krylov,
}

words!(
    Solver { Auto = "auto", Covariance = "covariance", Gram = "gram", Svd = "svd", Krylov = "krylov" },
    "auto, covariance, gram, svd or krylov"
);

/// Leading eigenpairs of a sample covariance.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrum {
    /// Rows behind it.
    pub n_rows: usize,
    /// Column means.
    pub mean: Vec<f64>,
    /// Leading eigenvalues of S (divisor N), in decreasing order.
    pub eigenvalues: Vec<f64>,
    /// Their eigenvectors as columns, d × k, signs by the library's rule.
    pub axes: Matrix,
    /// `tr S`.
    pub total_variance: f64,
    /// Sum of the eigenvalues beyond those listed, from the eigenvalues themselves where the solver
    /// found them all, else from the trace.
    pub discarded_variance: f64,
    /// The solver that found them (never `Auto`).
    pub solver: Solver,
    /// Bound on the angle, in radians, between these axes and the exact principal subspace; 0 for
    /// the exact solvers.
    pub angle_bound: f64,
    /// Variance of each column in the units of the data.
    pub variances: Vec<f64>,
    /// Standard deviation each column was divided by; all 1 unless asked to standardize.
    scale: Vec<f64>,
}

/// Below this share of the largest eigenvalue the squared methods have lost the digits that matter.
const ILL_CONDITIONED: f64 = 1e-8;
/// Squares of means, as a share of the total variance, up to which products of a table as it is are good enough.
const SMALL_MEANS: f64 = 0.25;
/// Share of the smallest eigenvalue that counts that rounding to single precision may have.
const NEGLIGIBLE: f64 = 1e-4;

impl Spectral {
    /// The `k` leading eigenpairs of the covariance of a complete table, each column divided by its
    /// standard deviation if `standardize`.
    ///
    /// ```
    /// use covary::{Dataset, Matrix, infer::Spectral};
    /// let table = Dataset::new(Matrix::from_rows(&[[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]))?;
    /// let spectrum = Spectral::default().spectrum(&table, 1, false)?;
    /// assert!((spectrum.eigenvalues[0] - 4.0 / 3.0).abs() < 1e-12 && spectrum.discarded_variance < 1e-12);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::HasGaps`] if a cell of an otherwise observed row is missing, [`Error::TooFewRows`]
    /// below two rows.
    pub fn spectrum(&self, data: &Dataset, k: usize, standardize: bool) -> Result<Spectrum, Error> {
        self.spectrum_observed(data, k, standardize, &mut ())
    }

    pub(super) fn spectrum_observed(
        &self,
        data: &Dataset,
        k: usize,
        standardize: bool,
        observer: &mut dyn Observer,
    ) -> Result<Spectrum, Error> {
        let data = &*data.complete_rows("spectral")?;
        if data.n_rows() < 2 {
            return Err(Error::TooFewRows { rows: data.n_rows() });
        }
        in_its_precision!(data, cells => {
            self.of_centered(&Centered::new(data, cells, standardize), k.min(data.n_columns()), observer)
        })
    }

    /// Of a table in its own precision, and in double where its rounding would show.
    fn of_centered<C: Cell>(
        &self,
        table: &Centered<'_, C>,
        k: usize,
        observer: &mut dyn Observer,
    ) -> Result<Spectrum, Error> {
        let found = match self.found::<C, C>(table, k, observer)? {
            Some(found) => found,
            None => self.found::<C, f64>(table, k, observer)?.expect("double precision decides"),
        };
        let tail = found.noise_variance(k);
        let smallest = found.eigenvalues.last().copied().unwrap_or(tail).min(tail);
        let largest = found.eigenvalues.first().copied().unwrap_or(0.0);
        if self.solver == Solver::Auto && k > 0 && smallest < ILL_CONDITIONED * largest {
            return table.svd(k, observer);
        }
        Ok(found)
    }

    /// By products in the precision W; `None` if their rounding would show.
    fn found<C: Cell, W: Cell>(
        &self,
        table: &Centered<'_, C>,
        k: usize,
        observer: &mut dyn Observer,
    ) -> Result<Option<Spectrum>, Error> {
        let (n, d) = (table.data.n_rows(), table.data.n_columns());
        let solver = match self.solver {
            Solver::Auto => cheapest(n, d, k),
            chosen => chosen,
        };
        let mut by_covariance = || {
            let moments = CentralMoments::of_cells::<C, W>(table.cells, d);
            from_moments::<W>(&moments, k, table.standardize, self.seed, observer)
        };
        match solver {
            Solver::Covariance => by_covariance(),
            Solver::Svd => table.svd(k, observer).map(Some),
            Solver::Gram => table.gram::<W>(k, self.seed, observer),
            Solver::Krylov | Solver::Auto => match table.krylov::<W>(k, self.seed)? {
                Some(found) => {
                    // The rest is what the eigenvalues leave of the total: their rounding is its own.
                    let rounding = W::ROUNDING * found.eigenvalues.iter().sum::<f64>();
                    Ok((rounding <= NEGLIGIBLE * found.discarded_variance).then_some(found))
                }
                None if d <= n => by_covariance(),
                None => table.gram::<W>(k, self.seed, observer),
            },
        }
    }

    /// The `k` leading eigenpairs for a request that passed its checks, and a warning if columns are
    /// constant.
    pub(super) fn checked_spectrum(
        &self,
        data: &Dataset,
        spec: &Spec,
        k: usize,
    ) -> Result<(Spectrum, Option<Warning>), Error> {
        let found = self.spectrum(data, k, spec.standardize);
        // A decomposition fails on numbers near the limits of f64: name the column that holds them.
        let variances = match &found {
            Ok(spectrum) => &spectrum.variances,
            Err(Error::Numerical { .. }) => data.observed_variances(),
            Err(other) => return Err(other.clone()),
        };
        let columns = spec.check_variances(variances, data.column_names(), Some(data))?;
        let constant = (!columns.is_empty()).then_some(Warning::ConstantColumns { columns });
        Ok((found?, constant))
    }

    /// Fits from mean and covariance alone.
    ///
    /// # Errors
    /// As [`Estimator::fit`].
    pub fn fit_moments(&self, moments: &CentralMoments, spec: &Spec) -> Result<Fit, Error> {
        spec.check_method("spectral", NoiseFamily::Isotropic)?;
        spec.check_shape(moments.n_rows(), moments.n_columns())?;
        let found = from_moments::<f64>(moments, spec.n_components, spec.standardize, self.seed, &mut ())?;
        found.expect("double precision decides").fit(spec)
    }
}

impl Estimator for Spectral {
    type Model = LinearGaussian;

    fn fit_observed(&self, data: &Dataset, spec: &Spec, _: &mut dyn Observer) -> Result<Fit, Error> {
        spec.check_method("spectral", NoiseFamily::Isotropic)?;
        spec.check(data)?;
        let (spectrum, constant) = self.checked_spectrum(data, spec, spec.n_components)?;
        let mut fit = spectrum.fit(spec)?;
        fit.report.warnings.extend(constant);
        Ok(fit)
    }
}

/// Rough flop counts decide; the iterative method is charged for its thinner products.
fn cheapest(n: usize, d: usize, k: usize) -> Solver {
    let (nf, df) = (n as f64, d as f64);
    let small = nf.min(df);
    let exact = nf * df * small + 5.0 * small.powi(3);
    let b = krylov::block_width(k, n.min(d)) as f64;
    let passes = 7.0;
    let iterative = passes * 4.0 * nf * df * b / 0.6;
    match (small >= 256.0 && b * 4.0 < small && iterative < exact, d <= n) {
        (true, _) => Solver::Krylov,
        (false, true) => Solver::Covariance,
        (false, false) => Solver::Gram,
    }
}

impl Spectrum {
    /// From leading eigenpairs of a covariance with divisor N and the sum of the other eigenvalues.
    pub(super) fn of_eigenpairs(
        n_rows: usize,
        mean: Vec<f64>,
        variances: Vec<f64>,
        found: Eigen,
        discarded_variance: f64,
    ) -> Self {
        let eigenvalues: Vec<f64> = found.values.iter().map(|v| v.max(0.0)).collect();
        Self {
            n_rows,
            total_variance: eigenvalues.iter().sum::<f64>() + discarded_variance,
            discarded_variance,
            solver: Solver::Covariance,
            angle_bound: 0.0,
            scale: vec![1.0; mean.len()],
            mean,
            variances,
            eigenvalues,
            axes: found.vectors,
        }
    }

    /// σ² of the model with the `q` leading components.
    ///
    /// # Panics
    /// If `q` exceeds the number of listed eigenvalues.
    pub fn noise_variance(&self, q: usize) -> f64 {
        let d = self.mean.len();
        let tail = self.discarded_variance + self.eigenvalues[q..].iter().sum::<f64>();
        if q < d { tail.max(0.0) / (d - q) as f64 } else { 0.0 }
    }

    /// Number of eigenvalues above rounding, among those listed.
    pub fn rank(&self) -> usize {
        let size = self.n_rows.max(self.mean.len()) as f64;
        let largest = self.eigenvalues.first().copied().unwrap_or(0.0);
        self.eigenvalues.iter().filter(|&&l| l > f64::EPSILON * size * largest).count()
    }

    /// Whether `q` components explain the data to rounding, which leaves about ε‖S‖ in eigenvalues
    /// that should be zero.
    pub(crate) fn leaves_no_noise(&self, q: usize) -> bool {
        let d = self.mean.len();
        let largest = self.eigenvalues[..q].first().copied().unwrap_or(0.0);
        self.noise_variance(q) * (d - q) as f64 <= f64::EPSILON * self.n_rows.max(d) as f64 * largest
    }

    /// Log-likelihood with `q` components and noise variance σ², lengths by maximum likelihood, in the
    /// units of the table.
    pub(crate) fn log_likelihood(&self, q: usize, sigma2: f64) -> f64 {
        self.log_likelihood_at(&self.fitted_variances(q, sigma2), sigma2)
    }

    /// `vᵢ = max(λᵢ, σ²)` of the `q` leading components.
    fn fitted_variances(&self, q: usize, sigma2: f64) -> Vec<f64> {
        self.eigenvalues[..q].iter().map(|l| l.max(sigma2)).collect()
    }

    /// Log-likelihood of the model with variances vᵢ along the leading axes and σ² beyond, in the
    /// units of the table.
    ///
    /// ```text
    /// ℓ = −N/2 [d ln 2π + Σ_{i≤q} (ln vᵢ + λᵢ/vᵢ) + (d−q) ln σ² + Σ_{i>q} λᵢ/σ²]
    /// ```
    pub(super) fn log_likelihood_at(&self, v: &[f64], sigma2: f64) -> f64 {
        let (d, n, q) = (self.mean.len(), self.n_rows as f64, v.len());
        let inside: f64 = self.eigenvalues.iter().zip(v).map(|(l, v)| v.ln() + l / v).sum();
        let outside = (d - q) as f64 * (sigma2.ln() + self.noise_variance(q) / sigma2);
        let ln_2pi = (2.0 * std::f64::consts::PI).ln();
        -0.5 * n * (d as f64 * ln_2pi + inside + outside) - n * self.ln_units()
    }

    /// `Σ ln` of what the columns were divided by.
    pub(super) fn ln_units(&self) -> f64 {
        self.scale.iter().map(|s| s.ln()).sum()
    }

    /// The model with variances vᵢ along the leading axes and σ² beyond, in the units of the table.
    pub(super) fn model(&self, v: &[f64], sigma2: f64, spec: &Spec) -> Result<LinearGaussian, Error> {
        let mut w = self.axes.first_columns(v.len());
        w.scale_columns(&v.iter().map(|v| (v - sigma2).sqrt()).collect::<Vec<_>>());
        w.scale_rows(&self.scale);
        let noise = if spec.standardize {
            Noise::Diagonal(self.scale.iter().map(|s| s * s * sigma2).collect())
        } else {
            Noise::Isotropic(sigma2)
        };
        let scale = spec.standardize.then(|| self.scale.clone());
        Ok(LinearGaussian::new(w, self.mean.clone(), noise)?.with_scale(scale)?.canonical())
    }

    /// Probabilistic PCA with `spec.n_components` of these components.
    ///
    /// # Errors
    /// [`Error::DegenerateNoise`] if they leave no variance for the noise and no floor was set.
    pub fn fit(&self, spec: &Spec) -> Result<Fit, Error> {
        let (q, d) = (spec.n_components, self.mean.len());
        let ml = self.noise_variance(q);
        let floor = spec.noise_floor.map(|f| f * self.total_variance / d as f64);
        let mut warnings = Vec::new();
        let sigma2 = match floor {
            Some(floor) if ml < floor => {
                warnings.push(Warning::NoiseAtFloor { columns: vec!["all columns".to_owned()] });
                floor
            }
            None if self.leaves_no_noise(q) => {
                return Err(Error::DegenerateNoise { asked: q, rank: self.rank() });
            }
            _ => ml,
        };
        let v = self.fitted_variances(q, sigma2);
        let value = self.log_likelihood_at(&v, sigma2);
        let model = self.model(&v, sigma2, spec)?;
        let report = FitReport::closed_form(ObjectiveKind::LogLikelihood, value, warnings);
        Ok(Fit { model, draws: None, report })
    }
}

/// Whether rounding shows in the `k` leading eigenpairs of a symmetric matrix whose entries are means of `n` products,
/// made in runs of m. Each term of a run rounds what was added before it, and runs are independent:
///
/// ```text
/// Var Eᵢⱼ ≈ u² (m² Sᵢⱼ² / 3 + m Sᵢᵢ Sⱼⱼ / 2) / n        ‖E U‖² ≈ Σᵢⱼ Var Eᵢⱼ Σₖ Uⱼₖ²        sin ∠ ≤ ‖E U‖ / (λₖ − λₖ₊₁)
/// ```
fn rounding_shows<W: Cell>(s: &Matrix, found: &Leading, n: usize) -> bool {
    if W::ROUNDING == 0.0 {
        return false;
    }
    let (order, k) = (s.n_rows(), found.values.len());
    let (n, m) = (n as f64, W::RUN.min(n) as f64);
    let within: Vec<f64> = found.vectors.rows().map(|row| row.iter().map(|u| u * u).sum()).collect();
    let mut squares = 0.0;
    for i in 0..order {
        for (j, within) in within.iter().enumerate() {
            let (sum, spread) = (s[(i, j)] * s[(i, j)], s[(i, i)] * s[(j, j)]);
            squares += within * (m * m * sum / 3.0 + m * spread / 2.0) / n;
        }
    }
    let rounding = W::ROUNDING * squares.sqrt();
    let last = found.values.last().copied().unwrap_or(0.0);
    let gap = if k < order { last - found.next } else { f64::INFINITY };
    let others = if k < order { found.rest / (order - k) as f64 } else { f64::INFINITY };
    !(rounding <= W::MAX_ANGLE * gap && rounding <= NEGLIGIBLE * last.min(others))
}

/// By products in the precision W; `None` if their rounding would show.
fn from_moments<W: Cell>(
    moments: &CentralMoments,
    k: usize,
    standardize: bool,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Option<Spectrum>, Error> {
    let mut s = moments.covariance();
    let variances: Vec<f64> = (0..s.n_rows()).map(|j| s[(j, j)]).collect();
    let scale = scales(&variances, standardize);
    let inverse: Vec<f64> = scale.iter().map(|s| 1.0 / s).collect();
    s.scale_both(&inverse);
    let total_variance = s.trace();
    let found = decomposed(observer, || leading_eigenpairs(&s, k, f64::MAX_ANGLE, seed))?;
    if rounding_shows::<W>(&s, &found, moments.n_rows()) {
        return Ok(None);
    }
    let discarded_variance = found.rest;
    Ok(Some(Spectrum {
        n_rows: moments.n_rows(),
        mean: moments.mean().to_vec(),
        eigenvalues: found.values.iter().map(|v| v.max(0.0)).collect(),
        axes: found.vectors,
        total_variance,
        discarded_variance,
        solver: Solver::Covariance,
        angle_bound: 0.0,
        variances,
        scale,
    }))
}

/// Standard deviations to divide by; a constant column keeps its scale.
fn scales(variances: &[f64], standardize: bool) -> Vec<f64> {
    let of = |v: &f64| if standardize && *v > 0.0 { v.sqrt() } else { 1.0 };
    variances.iter().map(of).collect()
}

/// A complete table seen centered and scaled, a block of rows at a time, without a copy of the whole.
struct Centered<'a, C> {
    data: &'a Dataset,
    cells: &'a [C],
    standardize: bool,
    /// Not all solvers look at them.
    units: OnceLock<Units>,
}

/// What columns are divided by, and its inverse.
struct Units {
    scale: Vec<f64>,
    inverse: Vec<f64>,
    total_variance: f64,
}

impl<'a, C: Cell> Centered<'a, C> {
    fn new(data: &'a Dataset, cells: &'a [C], standardize: bool) -> Self {
        Self { data, cells, standardize, units: OnceLock::new() }
    }

    fn units(&self) -> &Units {
        self.units.get_or_init(|| {
            let variances = self.data.observed_variances();
            let scale = scales(variances, self.standardize);
            let total_variance = variances.iter().zip(&scale).map(|(v, s)| v / (s * s)).sum();
            let inverse = scale.iter().map(|s| 1.0 / s).collect();
            Units { scale, inverse, total_variance }
        })
    }

    fn spectrum(&self, found: Eigen, discarded_variance: f64, solver: Solver, angle_bound: f64) -> Spectrum {
        Spectrum {
            n_rows: self.data.n_rows(),
            mean: self.data.observed_means().to_vec(),
            eigenvalues: found.values,
            axes: found.vectors,
            total_variance: self.units().total_variance,
            discarded_variance: discarded_variance.max(0.0),
            solver,
            angle_bound,
            variances: self.data.observed_variances().to_vec(),
            scale: self.units().scale.clone(),
        }
    }

    /// The table as it is, where rows about their mean can be had of its products: their rounding is hardly more.
    fn as_it_is<W: Cell>(&self) -> Option<&'a [W]> {
        let of_means: f64 = self.data.observed_means().iter().map(|m| m * m).sum();
        let small = !self.standardize && of_means <= SMALL_MEANS * self.units().total_variance;
        small.then(|| W::these(self.cells)).flatten()
    }

    /// Calls `visit` with some columns of all rows after the other, and the distance from one row to the next: as they are where that will do,
    /// else centered and scaled by arithmetic in the precision W, in which means are rounded. Their last columns are zeros.
    fn for_panels<W: Cell>(
        &self,
        columns: Range<usize>,
        width: usize,
        mut visit: impl FnMut(&[W], usize, Range<usize>),
    ) {
        let (n, d) = (self.data.n_rows(), self.data.n_columns());
        let in_precision = |numbers: &[f64]| numbers.iter().map(|v| W::of(*v)).collect::<Vec<W>>();
        let (as_it_is, mut y) = (self.as_it_is::<W>(), Vec::new());
        for start in columns.clone().step_by(width) {
            let block = start..(start + width).min(columns.end);
            if let Some(cells) = as_it_is.filter(|_| block.len() == width) {
                visit(&cells[start..], d, block);
                continue;
            }
            y.resize(n * width, W::of(0.0));
            let mean = in_precision(&self.data.observed_means()[block.clone()]);
            let inverse = in_precision(&self.units().inverse[block.clone()]);
            for (row, out) in self.cells.chunks_exact(d).zip(y.chunks_exact_mut(width)) {
                let (own, behind) = out.split_at_mut(block.len());
                center(&row[block.clone()], &mean, &inverse, own);
                behind.fill(W::of(0.0));
            }
            visit(&y, width, block);
        }
    }

    fn svd(&self, k: usize, observer: &mut dyn Observer) -> Result<Spectrum, Error> {
        let (n, d) = (self.data.n_rows(), self.data.n_columns());
        let mut y = vec![0.0; n * d];
        self.load()(self.cells, &mut y);
        let y = Matrix::from_vec(n, d, y)?;
        let svd = decomposed(observer, || thin_svd(&y))?;
        let mut values: Vec<f64> = svd.s.iter().map(|s| s * s / n as f64).collect();
        values.resize(d, 0.0);
        let rest = values[k..].iter().sum();
        let mut vectors =
            Matrix::from_fn(d, k, |i, j| if j < svd.v.n_columns() { svd.v[(i, j)] } else { 0.0 });
        canonical_signs(&mut vectors);
        values.truncate(k);
        Ok(self.spectrum(Eigen { values, vectors }, rest, Solver::Svd, 0.0))
    }

    /// By products in the precision W; `None` if their rounding would show.
    fn gram<W: Cell>(
        &self,
        k: usize,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Option<Spectrum>, Error> {
        let (n, d) = (self.data.n_rows(), self.data.n_columns());
        // Whole vectors of columns, whose rows stay in the second-level cache.
        let width = (2 * BLOCK_CELLS / n).clamp(64, 1024) / 64 * 64;
        let mut gram = sum_matrices(d, width, (n, n), |columns, part| {
            self.for_panels(columns, width, |y: &[W], pitch, _| W::add_outer(part, y, pitch, width));
        });
        gram.mirror_lower();
        // Rows are not about their mean, or it was rounded.
        gram.center_both();
        gram.as_mut_slice().iter_mut().for_each(|v| *v /= n as f64);
        let k_in = k.min(n);
        let found = decomposed(observer, || leading_eigenpairs(&gram, k_in, f64::MAX_ANGLE, seed))?;
        if rounding_shows::<W>(&gram, &found, d) {
            return Ok(None);
        }
        let rest = found.rest;
        // u = Yᵀ a / √(N λ); a direction without variance has no axis and stays zero.
        let a: Vec<W> = found.vectors.as_slice().iter().map(|v| W::of(*v)).collect();
        let a = MatRef::from_row_major_slice(&a, n, k_in);
        let of_columns = pieces(d, width, |columns| {
            let (mut all, mut part) = (Vec::with_capacity(columns.len() * k_in), Vec::new());
            // The sum of each a is 0: what the rows are about does not matter.
            self.for_panels(columns, width, |y: &[W], pitch, block| {
                let y = MatRef::from_row_major_slice_with_stride(y, n, block.len(), pitch);
                let mut along = Matrix::zeros(block.len(), k_in);
                W::add_product(&mut along, y.transpose(), a, &mut part);
                all.extend(along.into_vec());
            });
            all
        });
        let mut axes = Matrix::from_vec(d, k_in, of_columns.concat())?;
        let rounding = f64::EPSILON * n.max(d) as f64 * found.values.first().copied().unwrap_or(0.0);
        let length: Vec<f64> = found
            .values
            .iter()
            .map(|&l| if l > rounding { 1.0 / (n as f64 * l).sqrt() } else { 0.0 })
            .collect();
        axes.scale_columns(&length);
        let mut vectors = match k {
            _ if k == k_in => axes,
            _ => Matrix::from_fn(d, k, |i, j| if j < k_in { axes[(i, j)] } else { 0.0 }),
        };
        canonical_signs(&mut vectors);
        let mut values: Vec<f64> = found.values.iter().map(|v| v.max(0.0)).collect();
        values.resize(k, 0.0);
        Ok(Some(self.spectrum(Eigen { values, vectors }, rest, Solver::Gram, 0.0)))
    }

    /// The cells of whole rows, centered and scaled.
    fn load<W: Cell>(&self) -> impl Fn(&[C], &mut [W]) + Sync {
        let (mean, inverse) = (self.data.observed_means(), &self.units().inverse);
        move |cells, out| center(cells, mean, inverse, out)
    }

    /// `out = Yᵀ (Y X) / N`, by products in the precision W.
    fn times<W: Cell>(&self, x: MatRef<'_, f64>, out: MatMut<'_, f64>) {
        let (n, d) = (self.data.n_rows(), self.data.n_columns());
        scatter_times((self.cells, d), &self.load::<W>(), n as f64, x, out);
    }

    fn krylov<W: Cell>(&self, k: usize, seed: u64) -> Result<Option<Spectrum>, Error> {
        let d = self.data.n_columns();
        let (own, exact) = (
            |x: MatRef<'_, f64>, out: MatMut<'_, f64>| self.times::<W>(x, out),
            |x: MatRef<'_, f64>, out: MatMut<'_, f64>| self.times::<f64>(x, out),
        );
        let found = if W::ROUNDING > 0.0 {
            top_eigenpairs_from_rough(own, exact, d, k, W::MAX_ANGLE, seed)?
        } else {
            top_eigenpairs(own, d, k, W::MAX_ANGLE, seed)?
        };
        let Some(found) = found else { return Ok(None) };
        let rest = self.units().total_variance - found.eigen.values.iter().sum::<f64>();
        Ok(Some(self.spectrum(found.eigen, rest, Solver::Krylov, found.angle_bound)))
    }
}
