//! The result of the E-step: a mergeable value, and all that the M-step needs [M 1.5.2].

use super::expectation::Expectation;
use super::parameters::{Frame, Parameters};
use crate::linalg::{Cholesky, dot, packed};
use crate::model::{LinearGaussian, RowDistance, Tails};
use crate::parallel::add;
use crate::spec::{LoadingsPrior, Prior};
use crate::{Dataset, Error, Matrix, Noise};

/// Expected sufficient statistics of rows under a model, with `z = (x, 1)` and `y = t − μ`:
///
/// ```text
/// A_j = Σ_{n: j∈O_n} ⟨z zᵀ⟩      b_j = Σ_{n: j∈O_n} y_nj ẑ_n      and the observed log-likelihood
/// ```
///
/// Moments of disjoint rows under the same model merge by addition, so threads, files larger than
/// memory and machines of a cluster all use this one value.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::LatentMoments, Density};
/// let (rows, model) = simulate::ppca(Shape { rows: 50, columns: 5, n_components: 2 }, /* seed */ 1);
/// let moments = LatentMoments::new(&model, &rows)?;
/// assert!((moments.log_likelihood() - model.log_likelihood(&rows)?).abs() < 1e-9);
/// let better = moments.maximize(true)?;          // one EM step never lowers the likelihood
/// assert!(better.log_likelihood(&rows)? >= moments.log_likelihood());
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LatentMoments {
    pub(super) frame: Frame,
    /// The parameters of the E-step.
    pub(super) at: Parameters,
    /// Packed (and padded) `Σ ⟨z zᵀ⟩` over all informative rows.
    pub(in crate::infer) latent: Vec<f64>,
    /// The part of `latent` that counts for every column …
    pub(super) common: Vec<f64>,
    /// … and what each column has more or less, d × packed: rows that miss few columns are added to
    /// `common` and taken from those columns, rows that have few are added to these only.
    pub(in crate::infer) by_column: Matrix,
    /// `Σ y ẑᵀ`, d × (q+1).
    pub(in crate::infer) cross: Matrix,
    pub(super) errors: Errors,
    /// `Σ ln |G_n|`
    pub(in crate::infer) ln_det: f64,
    /// `Σ ‖x̂_n‖²`
    pub(super) scores_squared: f64,
    /// Where rows have scales of their own: sums are then of rows divided by these.
    pub(super) tailed: Option<Tailed>,
}

/// What moments of rows with scales of their own have besides [M 2.11].
#[derive(Debug, Clone)]
pub(super) struct Tailed {
    /// Rows with at least one observed cell, however they are scaled.
    n_rows: f64,
    /// Observed cells of every column.
    cells: Vec<f64>,
    log_likelihood: f64,
    tails: Tails,
}

/// Where expected squared errors come from.
#[derive(Debug, Clone)]
pub(super) enum Errors {
    /// Sums of squared residuals at the E-step's own parameters: free of cancellation, however
    /// small the noise.
    Residual {
        /// `Σ (y − wᵀx̂)²` per column.
        squares: Vec<f64>,
        /// `Σ (wᵀx̂)²` per column.
        fitted: Vec<f64>,
        /// `Σ tr V_n`
        posterior_trace: f64,
    },
    /// `Σ y²` per column: holds for any loadings, so that moments taken at different parameters can
    /// be blended.
    Raw(Vec<f64>),
}

impl LatentMoments {
    /// E-step over the rows of `data` under `model`; gaps integrated out.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the model.
    pub fn new(model: &LinearGaussian, data: &Dataset) -> Result<Self, Error> {
        let (frame, at) = Self::unscaled(model, data)?;
        Ok(Self::of(data, &frame, &at))
    }

    /// The E-step of rows that count `weights` times, such as those of a component of a mixture.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, infer::LatentMoments};
    /// let (rows, model) = simulate::ppca(Shape { rows: 50, columns: 5, n_components: 2 }, /* seed */ 1);
    /// let twice = LatentMoments::weighted(&model, &rows, &[2.0; 50])?;
    /// let once = LatentMoments::new(&model, &rows)?;
    /// assert!((twice.log_likelihood() - 2.0 * once.log_likelihood()).abs() < 1e-9);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the model, [`Error::WrongLength`] unless
    /// there is a weight per row, [`Error::OutOfRange`] if one is negative or not finite.
    pub fn weighted(model: &LinearGaussian, data: &Dataset, weights: &[f64]) -> Result<Self, Error> {
        check_weights(data, weights)?;
        let (frame, at) = Self::unscaled(model, data)?;
        Ok(Self::of_weighted(data, &frame, &at, weights))
    }

    fn unscaled(model: &LinearGaussian, data: &Dataset) -> Result<(Frame, Parameters), Error> {
        let d = model.mean().len();
        if data.n_columns() != d {
            return Err(Error::ColumnCount { expected: d, got: data.n_columns() });
        }
        let isotropic = matches!(model.noise(), Noise::Isotropic(_));
        let frame = Frame::with_scale(model.mean().to_vec(), vec![1.0; d], isotropic);
        let at = frame.parameters(model);
        Ok((frame, at))
    }

    pub(in crate::infer) fn of(data: &Dataset, frame: &Frame, at: &Parameters) -> Self {
        Expectation::new(data, frame, at).sum(|| Self::empty(frame, at))
    }

    pub(super) fn of_weighted(data: &Dataset, frame: &Frame, at: &Parameters, weights: &[f64]) -> Self {
        Expectation::new(data, frame, at).weighted(weights).sum(|| Self::empty(frame, at))
    }

    /// The E-step of rows of heavier tails, whose distances were found at these parameters: `u = (ν + m) / (ν + δ)`.
    pub(super) fn of_tailed(
        data: &Dataset,
        frame: &Frame,
        at: &Parameters,
        tails: Tails,
        rows: &[RowDistance],
    ) -> Self {
        let scales: Vec<f64> = rows.iter().map(|row| tails.weight(row.n_observed, row.squared)).collect();
        let mut moments = Expectation::new(data, frame, at).scaled(&scales).sum(|| Self::empty(frame, at));
        moments.tailed = Some(Tailed {
            n_rows: data.n_informative_rows() as f64,
            cells: data.n_observed_by_column().iter().map(|&n| n as f64).collect(),
            log_likelihood: rows.iter().map(|row| tails.log_density(row)).sum(),
            tails,
        });
        moments
    }

    /// The E-step of block `b` of a table, under parameters with a `spread` around them ([`Units::spread`]).
    ///
    /// [`Units::spread`]: crate::model::latent::Units::spread
    pub(in crate::infer) fn of_block(
        block: (&Dataset, usize),
        frame: &Frame,
        at: &Parameters,
        spread: &[Matrix],
    ) -> Self {
        Expectation::of_block(block, frame, at, spread).sum(|| Self::empty(frame, at))
    }

    /// The E-step of block `b` of a table, each of its rows counted as often as its weight says.
    pub(in crate::infer) fn of_weighted_block(
        block: (&Dataset, usize),
        frame: &Frame,
        at: &Parameters,
        weights: &[f64],
    ) -> Self {
        Expectation::of_block(block, frame, at, &[]).weighted(weights).sum(|| Self::empty(frame, at))
    }

    /// How many numbers the sums of d columns and q components are.
    pub(in crate::infer) fn numbers_len(d: usize, q: usize) -> usize {
        let p = packed::padded_len(q + 1);
        2 * p + d * (p + q + 3) + 3
    }

    /// The sums of an E-step, one after the other: moments of disjoint rows under the same parameters add as these do.
    pub(in crate::infer) fn into_numbers(self) -> Vec<f64> {
        let Errors::Residual { squares, fitted, posterior_trace } = self.errors else {
            unreachable!("an E-step fills residual moments")
        };
        let (by_column, cross) = (self.by_column.as_slice(), self.cross.as_slice());
        let scalars = [posterior_trace, self.ln_det, self.scores_squared];
        [&self.latent, &self.common, by_column, cross, &squares, &fitted, &scalars].concat()
    }

    /// The moments under these parameters whose sums are `numbers`.
    pub(in crate::infer) fn of_numbers(
        frame: &Frame,
        at: &Parameters,
        numbers: &[f64],
    ) -> Result<Self, Error> {
        if numbers.len() != Self::numbers_len(at.w.n_rows(), at.w.n_columns()) {
            return Err(Error::DamagedState { why: "its length is not that of its shape" });
        }
        let mut moments = Self::empty(frame, at);
        let Errors::Residual { squares, fitted, posterior_trace } = &mut moments.errors else {
            unreachable!("moments begin as those of residuals")
        };
        let (by_column, cross) = (moments.by_column.as_mut_slice(), moments.cross.as_mut_slice());
        let mut rest = numbers;
        for part in [&mut moments.latent, &mut moments.common, by_column, cross, squares, fitted] {
            let (taken, left) = rest.split_at(part.len());
            part.copy_from_slice(taken);
            rest = left;
        }
        (*posterior_trace, moments.ln_det, moments.scores_squared) = (rest[0], rest[1], rest[2]);
        Ok(moments)
    }

    /// How heavy the tails of the rows are.
    pub(super) fn tails(&self) -> Tails {
        self.tailed.as_ref().map_or(Tails::GAUSSIAN, |tailed| tailed.tails)
    }

    pub(super) fn empty(frame: &Frame, at: &Parameters) -> Self {
        let (d, q) = (at.w.n_rows(), at.w.n_columns());
        let p = packed::padded_len(q + 1);
        Self {
            frame: frame.clone(),
            at: at.clone(),
            latent: vec![0.0; p],
            common: vec![0.0; p],
            by_column: Matrix::zeros(d, p),
            cross: Matrix::zeros(d, q + 1),
            errors: Errors::Residual { squares: vec![0.0; d], fitted: vec![0.0; d], posterior_trace: 0.0 },
            ln_det: 0.0,
            scores_squared: 0.0,
            tailed: None,
        }
    }

    /// Adds the moments of other rows under the same model.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the two were taken under different models; see
    /// [`blend`](Self::blend).
    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        if self.at != other.at || self.frame != other.frame {
            return Err(Error::Unsupported {
                method: "merge",
                what: "moments taken under different models",
                instead: "`blend`",
            });
        }
        self.add_sums(other);
        Ok(())
    }

    pub(super) fn add_sums(&mut self, other: &Self) {
        if let (
            Errors::Residual { squares, fitted, posterior_trace },
            Errors::Residual { squares: s, fitted: f, posterior_trace: t },
        ) = (&mut self.errors, &other.errors)
        {
            add(squares, s);
            add(fitted, f);
            *posterior_trace += t;
        } else {
            let mut raw = self.raw_squares();
            add(&mut raw, &other.raw_squares());
            self.errors = Errors::Raw(raw);
        }
        add(&mut self.latent, &other.latent);
        add(&mut self.common, &other.common);
        add(self.by_column.as_mut_slice(), other.by_column.as_slice());
        add(self.cross.as_mut_slice(), other.cross.as_slice());
        self.ln_det += other.ln_det;
        self.scores_squared += other.scores_squared;
    }

    /// Stepwise (online) EM [M 1.4.4]: replaces the per-row averages by
    /// `(1 − γ) self + γ batch`, where `batch` was taken at newer loadings and noise but the same
    /// mean. The number of rows becomes the batch's.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the means differ: `y` would not be the same quantity.
    pub fn blend(&mut self, batch: &Self, gamma: f64) -> Result<(), Error> {
        if self.at.mean != batch.at.mean || self.frame != batch.frame {
            return Err(Error::Unsupported {
                method: "blend",
                what: "moments about different means",
                instead: "a fixed mean (`estimate_mean: false`)",
            });
        }
        let keep = (1.0 - gamma) * batch.n_rows() / self.n_rows();
        let mix = |a: &mut [f64], b: &[f64]| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a = keep * *a + gamma * b);
        };
        let mut raw = self.raw_squares();
        mix(&mut raw, &batch.raw_squares());
        self.errors = Errors::Raw(raw);
        mix(&mut self.latent, &batch.latent);
        mix(&mut self.common, &batch.common);
        mix(self.by_column.as_mut_slice(), batch.by_column.as_slice());
        mix(self.cross.as_mut_slice(), batch.cross.as_slice());
        self.ln_det = keep * self.ln_det + gamma * batch.ln_det;
        self.scores_squared = keep * self.scores_squared + gamma * batch.scores_squared;
        self.at = batch.at.clone();
        Ok(())
    }

    /// Rows with at least one observed cell (a weighted count after [`blend`](Self::blend)).
    pub fn n_rows(&self) -> f64 {
        self.latent[self.last()]
    }

    /// `Σ ⟨x xᵀ⟩` over the rows, q × q.
    pub fn scores_second_moment(&self) -> Matrix {
        packed::unpack(&self.latent, self.n_components())
    }

    /// `Σ y x̂ᵀ` over the observed cells, d × q.
    pub fn cross_moment(&self) -> Matrix {
        let mut cross = self.cross.first_columns(self.n_components());
        cross.scale_rows(&self.frame.scale);
        cross
    }

    /// `Σ (t − μ)²` over the observed cells of each column.
    pub fn squares(&self) -> Vec<f64> {
        self.raw_squares().iter().zip(&self.frame.scale).map(|(v, s)| v * s * s).collect()
    }

    /// Log-likelihood of the rows under the model of the E-step, in nats.
    ///
    /// ```text
    /// ℓ = −½ [ Σ_j N_j ln 2πψ_j + Σ_n ln |G_n| + Σ_j Σ_n r_nj²/ψ_j + Σ_n ‖x̂_n‖² ]
    /// ```
    pub fn log_likelihood(&self) -> f64 {
        if let Some(tailed) = &self.tailed {
            return tailed.log_likelihood;
        }
        let two_pi = 2.0 * std::f64::consts::PI;
        let mut sum = self.ln_det + self.scores_squared;
        let raw;
        let squares = match &self.errors {
            Errors::Residual { squares, .. } => squares,
            Errors::Raw(_) => {
                // The residuals at the current loadings, from the normal equations.
                raw = (0..self.at.psi.len()).map(|j| self.error_at_reference(j)).collect::<Vec<_>>();
                &raw
            }
        };
        for (j, (psi, r2)) in self.at.psi.iter().zip(squares).enumerate() {
            let n_j = self.count(j);
            sum += n_j * (two_pi * psi).ln() + r2 / psi + 2.0 * n_j * self.frame.scale[j].ln();
        }
        -0.5 * sum
    }

    /// Gradient of the log-likelihood at the model of the E-step [M 1.5.1].
    ///
    /// ```text
    /// ∂ℓ/∂w̃_j = (b_j − A_j w̃_j)/ψ_j      ∂ℓ/∂ψ_j = −N_j/2ψ_j + e_j/2ψ_j²
    /// ```
    pub fn gradient(&self) -> Gradient {
        let (d, q) = (self.at.w.n_rows(), self.n_components());
        let mut gradient =
            Gradient { loadings: Matrix::zeros(d, q), mean: vec![0.0; d], noise: vec![0.0; d] };
        for j in 0..d {
            let (a, w, psi) = (self.normal_matrix(j), self.reference(j), self.at.psi[j]);
            let unit = self.frame.inverse[j];
            let slope = |i: usize| (self.cross.row(j)[i] - dot(a.row(i), &w)) / psi * unit;
            for i in 0..q {
                gradient.loadings[(j, i)] = slope(i);
            }
            gradient.mean[j] = slope(q);
            gradient.noise[j] = 0.5 * (self.error_at_reference(j) / psi - self.count(j)) / psi * unit * unit;
        }
        gradient
    }

    /// One EM step, or PX-EM step if `expand`, from these moments; the result is not brought to
    /// canonical form.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if a noise variance vanished.
    pub fn maximize(&self, expand: bool) -> Result<LinearGaussian, Error> {
        self.to_model(&Maximize { expand, estimate_mean: true, prior: &Prior::default(), floor: 0.0 })
    }

    /// One EM step for loadings and noise with the mean left as it is.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if a noise variance vanished.
    pub fn maximize_fixed_mean(&self, expand: bool) -> Result<LinearGaussian, Error> {
        self.to_model(&Maximize { expand, estimate_mean: false, prior: &Prior::default(), floor: 0.0 })
    }

    fn to_model(&self, how: &Maximize<'_>) -> Result<LinearGaussian, Error> {
        let p = how.step(self);
        let noise = if self.frame.isotropic { Noise::Isotropic(p.psi[0]) } else { Noise::Diagonal(p.psi) };
        LinearGaussian::new(p.w, p.mean, noise)
    }

    /// `Σ ⟨z zᵀ⟩` over the rows, (q+1) × (q+1).
    pub(in crate::infer) fn latent_moment(&self) -> Matrix {
        packed::unpack(&self.latent, self.n_components() + 1)
    }

    pub(super) fn n_components(&self) -> usize {
        self.at.w.n_columns()
    }

    /// Where a packed `⟨z zᵀ⟩` counts its rows: `z` ends in 1.
    fn last(&self) -> usize {
        packed::len(self.n_components() + 1) - 1
    }

    /// `N_j`
    pub(in crate::infer) fn count(&self, j: usize) -> f64 {
        self.common[self.last()] + self.by_column.row(j)[self.last()]
    }

    /// The cells of column `j`, however their rows are scaled.
    fn cells(&self, j: usize) -> f64 {
        self.tailed.as_ref().map_or_else(|| self.count(j), |tailed| tailed.cells[j])
    }

    /// `⟨u⟩`, averaged over the rows; 1 where they have one scale.
    fn mean_scale(&self) -> f64 {
        self.tailed.as_ref().map_or(1.0, |tailed| self.n_rows() / tailed.n_rows)
    }

    /// `A_j`, (q+1) × (q+1).
    pub(in crate::infer) fn normal_matrix(&self, j: usize) -> Matrix {
        let sum: Vec<f64> = self.common.iter().zip(self.by_column.row(j)).map(|(a, b)| a + b).collect();
        packed::unpack(&sum, self.n_components() + 1)
    }

    /// `(w_j, 0)`: loadings and mean of the E-step relative to `y`.
    pub(in crate::infer) fn reference(&self, j: usize) -> Vec<f64> {
        let mut w = self.at.w.row(j).to_vec();
        w.push(0.0);
        w
    }

    /// `e_j = Σ [(y − w̃ᵀẑ)² + wᵀ V w]` at the parameters of the E-step.
    pub(in crate::infer) fn error_at_reference(&self, j: usize) -> f64 {
        let (a, w) = (self.normal_matrix(j), self.reference(j));
        let curvature: f64 = quadratic(&a, &w);
        match &self.errors {
            // Σ wᵀVw = wᵀ A w − Σ (wᵀx̂)²
            Errors::Residual { squares, fitted, .. } => squares[j] + (curvature - fitted[j]).max(0.0),
            Errors::Raw(y2) => y2[j] - 2.0 * dot(self.cross.row(j), &w) + curvature,
        }
    }

    /// `Σ y²` per column.
    pub(super) fn raw_squares(&self) -> Vec<f64> {
        match &self.errors {
            Errors::Raw(y2) => y2.clone(),
            Errors::Residual { .. } => (0..self.at.psi.len())
                .map(|j| {
                    let (a, w) = (self.normal_matrix(j), self.reference(j));
                    self.error_at_reference(j) + 2.0 * dot(self.cross.row(j), &w) - quadratic(&a, &w)
                })
                .collect(),
        }
    }

    /// `Σ_j e_j` at the parameters of the E-step. For isotropic noise the posterior part needs no
    /// difference of large numbers: `Σ_j w_jᵀ V w_j = σ² (q − tr V)`.
    fn total_error_at_reference(&self) -> f64 {
        match &self.errors {
            Errors::Residual { squares, posterior_trace, .. } => {
                let n_rows = self.tailed.as_ref().map_or_else(|| self.n_rows(), |tailed| tailed.n_rows);
                let free = self.n_components() as f64 * n_rows - posterior_trace;
                squares.iter().sum::<f64>() + self.at.psi[0] * free
            }
            Errors::Raw(_) => (0..self.at.psi.len()).map(|j| self.error_at_reference(j)).sum(),
        }
    }
}

/// Derivatives of the observed log-likelihood, in the units of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradient {
    /// With respect to W, d × q.
    pub loadings: Matrix,
    /// With respect to μ.
    pub mean: Vec<f64>,
    /// With respect to each column's noise variance; their sum is the derivative with respect to an
    /// isotropic σ².
    pub noise: Vec<f64>,
}

/// The M-step: what may move, and under which prior.
#[derive(Debug, Clone, Copy)]
pub(in crate::infer) struct Maximize<'a> {
    pub(in crate::infer) expand: bool,
    pub(in crate::infer) estimate_mean: bool,
    pub(in crate::infer) prior: &'a Prior,
    /// Smallest noise variance in units of the frame.
    pub(in crate::infer) floor: f64,
}

impl Maximize<'_> {
    /// New parameters from the moments: the exact joint maximizer in (W, μ, noise) of the expected
    /// complete-data log-likelihood plus log-prior, then the PX fold if asked and valid.
    pub(in crate::infer) fn step(&self, m: &LatentMoments) -> Parameters {
        self.step_of(m, Loadings::Free)
    }

    /// The same for loadings that are not all free: given the noise, the loadings of each column solve
    /// ```text
    /// min ½ w̃ᵀ A w̃ − bᵀ w̃  [+ ψ λ n ‖w‖₁]        over w̃ = (w, μ), w on its support
    /// ```
    /// and then the noise its own equation.
    pub(super) fn step_of(&self, m: &LatentMoments, loadings: Loadings<'_>) -> Parameters {
        let (d, q) = (m.at.w.n_rows(), m.n_components());
        let free = q + usize::from(self.estimate_mean);
        let mut w = Matrix::zeros(d, q);
        let mut shift = vec![0.0; d];
        // How far e_j moves from the E-step's parameters to the new ones.
        let mut change = vec![0.0; d];
        for j in 0..d {
            let a = m.normal_matrix(j);
            let reference = m.reference(j);
            if self.knows_nothing_of(m, j) {
                w.row_mut(j).copy_from_slice(&reference[..q]);
                continue;
            }
            // The prior adds K to A and K (its center) to b; for μ relative to the E-step's mean.
            let ridge = |i: usize| match (&self.prior.loadings, &self.prior.mean) {
                (_, Some(mean)) if i == q => m.at.psi[j] * mean.relative_precision,
                (LoadingsPrior::Scaled { kappa }, _) if i < q => *kappa,
                (LoadingsPrior::Ard { relative_alpha }, _) if i < q => m.at.psi[j] * relative_alpha[i],
                _ => 0.0,
            };
            let center = |i: usize| match &self.prior.mean {
                Some(mean) if i == q => (mean.center[j] - m.at.mean[j]) * m.frame.inverse[j],
                _ => 0.0,
            };
            // Newton from the reference, exact for a quadratic: δ = (A + K)⁻¹ (b − A w̃ + K (c − w̃)).
            // Working with the difference keeps the digits that w̃ already has.
            let slope: Vec<f64> = (0..=q).map(|i| m.cross.row(j)[i] - dot(a.row(i), &reference)).collect();
            let pull = |i: usize| slope[i] + ridge(i) * (center(i) - reference[i]);
            let held = |i: usize, k: usize| a[(i, k)] + if i == k { ridge(i) } else { 0.0 };
            let mut delta = match loadings {
                Loadings::Free => {
                    let mut delta: Vec<f64> = (0..free).map(pull).collect();
                    solve_spd(Matrix::from_fn(free, free, held), &mut delta);
                    delta
                }
                Loadings::On(support) => {
                    let moving: Vec<usize> = (0..free).filter(|&i| i == q || support.has(j, i)).collect();
                    let mut moved: Vec<f64> = moving.iter().map(|&i| pull(i)).collect();
                    let size = moving.len();
                    solve_spd(Matrix::from_fn(size, size, |i, k| held(moving[i], moving[k])), &mut moved);
                    let mut delta = vec![0.0; q + 1];
                    moving.iter().zip(moved).for_each(|(&i, v)| delta[i] = v);
                    delta
                }
                Loadings::Penalized(penalty) => {
                    let threshold = m.at.psi[j] * penalty * m.count(j);
                    shrunken(&a, &slope, &reference, (free, q), threshold)
                }
            };
            delta.resize(q + 1, 0.0);
            // e(w̃ + δ) = e(w̃) − 2 slopeᵀδ + δᵀ A δ
            change[j] = quadratic(&a, &delta) - 2.0 * dot(&slope, &delta);
            for i in 0..q {
                // Exactly 0 where a penalty says so.
                w[(j, i)] = if delta[i] == -reference[i] { 0.0 } else { reference[i] + delta[i] };
            }
            shift[j] = delta[q];
        }
        let mut psi = self.noise(m, &w, &change);

        if self.expand && self.prior.is_flat() && !matches!(loadings, Loadings::Penalized(_)) {
            // PX of the scales [M 2.11]: with their mean α free for one step, the model is (W Σ_x Wᵀ + Ψ) / α. Not where
            // that would take the noise below its floor: held there, it is no ascent.
            let scale = m.mean_scale();
            let alpha = if psi.iter().any(|v| v / scale < self.floor) { 1.0 } else { scale };
            for v in &mut psi {
                *v /= alpha;
            }
            if q > 0 {
                self.fold(m, loadings, scale / alpha, &mut w, &mut shift);
            }
        }
        let mean = (0..d).map(|j| m.at.mean[j] + shift[j] * m.frame.scale[j]).collect();
        Parameters { w, mean, psi }
    }

    /// Whether all rows together weigh nothing where a column is observed, as in a mixture the rows of a model may: what
    /// it was stays.
    fn knows_nothing_of(&self, m: &LatentMoments, j: usize) -> bool {
        self.prior.is_flat() && m.count(j) <= f64::EPSILON * m.n_rows()
    }

    fn noise(&self, m: &LatentMoments, w: &Matrix, change: &[f64]) -> Vec<f64> {
        let (d, q) = (w.n_rows(), w.n_columns() as f64);
        let squares = |j: usize| dot(w.row(j), w.row(j));
        // Pseudo-squares and pseudo-cells of the prior [M 1.5.6], given ‖W‖² and its size.
        let prior = |norm: f64, entries: f64| {
            let (mut extra, mut cells) = (0.0, 0.0);
            if let LoadingsPrior::Scaled { kappa } = self.prior.loadings {
                (extra, cells) = (kappa * norm, entries);
            }
            if let Some(noise) = &self.prior.noise {
                (extra, cells) = (extra + 2.0 * noise.relative_rate, cells + 2.0 * noise.shape + 2.0);
            }
            (extra, cells)
        };
        if m.frame.isotropic {
            let (extra, pseudo_cells) = prior((0..d).map(squares).sum(), d as f64 * q);
            let error = m.total_error_at_reference() + change.iter().sum::<f64>();
            let n: f64 = (0..d).map(|j| m.cells(j)).sum();
            return vec![((error + extra) / (n + pseudo_cells)).max(self.floor); d];
        }
        (0..d)
            .map(|j| {
                if self.knows_nothing_of(m, j) {
                    return m.at.psi[j];
                }
                let (extra, pseudo_cells) = prior(squares(j), q);
                let error = m.error_at_reference(j) + change[j];
                ((error + extra) / (m.cells(j) + pseudo_cells)).max(self.floor)
            })
            .collect()
    }

    /// PX fold: with the latent mean ν and covariance Σ_x = L Lᵀ that the rows ask for, of this `scale`,
    /// `μ ← μ + W ν`, `W ← W L` ([M 1.4.3], [M 1.5.2]). Loadings on a support keep it: only the variances of the factors
    /// are free then, and L is diagonal.
    fn fold(&self, m: &LatentMoments, loadings: Loadings<'_>, scale: f64, w: &mut Matrix, shift: &mut [f64]) {
        let q = w.n_columns();
        let n = m.n_rows();
        let second = m.latent_moment();
        let nu: Vec<f64> =
            (0..q).map(|i| if self.estimate_mean { second[(q, i)] / n } else { 0.0 }).collect();
        let correlated = matches!(loadings, Loadings::Free);
        let covariance = |i: usize, k: usize| (second[(i, k)] / n - nu[i] * nu[k]) * scale;
        let sigma = Matrix::from_fn(q, q, |i, k| if correlated || i == k { covariance(i, k) } else { 0.0 });
        // Rounding can spoil Σ_x only when a latent direction has lost all variance; then there is
        // nothing to fold.
        let Some(chol) = Cholesky::new(&sigma) else { return };
        for (j, s) in shift.iter_mut().enumerate() {
            *s += dot(w.row(j), &nu);
        }
        *w = w.dot(chol.lower());
    }
}

/// Which loadings the M-step may move, and what holds them back.
#[derive(Debug, Clone, Copy)]
pub(super) enum Loadings<'a> {
    /// All of them, up to a rotation.
    Free,
    /// Those of a support; the others are 0.
    On(&'a Support),
    /// All, each drawn to 0 by `λ n |w|`, n the cells observed in its column.
    Penalized(f64),
}

/// Which loadings are not 0, by column and component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Support {
    not_zero: Vec<bool>,
    n_components: usize,
}

impl Support {
    pub(super) fn of(w: &Matrix) -> Self {
        Self { not_zero: w.as_slice().iter().map(|v| *v != 0.0).collect(), n_components: w.n_columns() }
    }

    fn has(&self, column: usize, component: usize) -> bool {
        self.not_zero[column * self.n_components + component]
    }

    pub(super) fn len(&self) -> usize {
        self.not_zero.iter().filter(|is| **is).count()
    }
}

/// Sweeps of coordinate descent over the loadings of one column, and the change at which they end.
const SWEEPS: usize = 1000;
const SETTLED: f64 = 1e-12;

/// How far from `reference` the minimum of `½ w̃ᵀ A w̃ − bᵀ w̃ + t Σ_{i<q} |wᵢ|` is, by coordinate descent; `slope` is
/// `b − A w̃` at the reference.
fn shrunken(a: &Matrix, slope: &[f64], reference: &[f64], (free, q): (usize, usize), t: f64) -> Vec<f64> {
    let mut slope = slope.to_vec();
    let mut at = reference.to_vec();
    for _ in 0..SWEEPS {
        let (mut moved, mut size) = (0.0_f64, 0.0_f64);
        for i in 0..free {
            let z = slope[i] + a[(i, i)] * at[i];
            let shrunken = if i < q { z.signum() * (z.abs() - t).max(0.0) } else { z };
            let next = if a[(i, i)] > 0.0 { shrunken / a[(i, i)] } else { 0.0 };
            let change = next - at[i];
            if change != 0.0 {
                slope.iter_mut().enumerate().for_each(|(k, s)| *s -= a[(k, i)] * change);
                at[i] = next;
            }
            (moved, size) = (moved.max(change.abs()), size.max(next.abs()));
        }
        if moved <= SETTLED * size {
            break;
        }
    }
    at.iter().zip(reference).map(|(a, b)| a - b).collect()
}

fn check_weights(data: &Dataset, weights: &[f64]) -> Result<(), Error> {
    if weights.len() != data.n_rows() {
        return Err(Error::WrongLength {
            what: "weights of rows",
            expected: data.n_rows(),
            got: weights.len(),
        });
    }
    match weights.iter().find(|w| !(w.is_finite() && **w >= 0.0)) {
        Some(&value) => Err(Error::OutOfRange { name: "weight", value, bound: "finite and not negative" }),
        None => Ok(()),
    }
}

/// `A x = b` in place. A sum of `⟨z zᵀ⟩` is positive definite; should rounding say otherwise
/// (a column observed in a single row), the smallest ridge that factorizes is added.
pub(crate) fn solve_spd(mut a: Matrix, b: &mut [f64]) {
    let mut ridge = 1e-15 * a.trace();
    loop {
        if let Some(chol) = Cholesky::new(&a) {
            chol.solve(b);
            return;
        }
        if !ridge.is_finite() || ridge == 0.0 {
            b.fill(0.0);
            return;
        }
        for i in 0..a.n_rows() {
            a[(i, i)] += ridge;
        }
        ridge *= 10.0;
    }
}

/// `xᵀ A x`
pub(crate) fn quadratic(a: &Matrix, x: &[f64]) -> f64 {
    a.rows().zip(x).map(|(row, xi)| xi * dot(row, x)).sum()
}
