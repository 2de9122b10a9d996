//! A fitted functional PCA [M 2.10].

use super::basis::Basis;
use super::design::{Curves, Design, Rows, local};
use super::em::{Known, Parameters};
use crate::infer::quadratic;
use crate::linalg::{dot, eigen, rows::add_multiple};
use crate::model::{Distribution, FilledCell};
use crate::parallel;
use crate::{Dataset, Error, Matrix};
use rand::Rng;
use rand_distr::{Distribution as _, StandardNormal};

/// Curves `y(t) = μ(t) + Σ_k ξ_k φ_k(t) + ε`: a mean and orthonormal eigenfunctions that are splines, scores `ξ_k ~ N(0, l_k)`
/// whose variances are the eigenvalues, and noise.
///
/// ```
/// use covary::{functional::{Basis, FunctionalPca}, Matrix};
/// let basis = Basis::new(0.0, 1.0, 4)?;
/// let level = Matrix::from_fn(4, 1, |_, _| 2.0);                                  // constant splines sum to a constant
/// let model = FunctionalPca::new(basis, vec![1.0; 4], level, 0.1)?;
/// assert!((model.eigenvalues()[0] - 4.0).abs() < 1e-12);
/// assert!((model.eigenfunctions(&[0.3])?.values[(0, 0)] - 1.0).abs() < 1e-12);    // ∫ φ² = 1
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionalPca {
    basis: Basis,
    mean: Vec<f64>,
    /// Θ: a component in each column, its length the standard deviation of its scores.
    loadings: Matrix,
    noise: f64,
    /// Of all coefficients, components first, one after the other, then the mean.
    covariance: Option<Matrix>,
    smoothing: [f64; 2],
}

/// Functions at some times, and how uncertain they are.
#[derive(Debug, Clone, PartialEq)]
pub struct Eigenfunctions {
    /// A row for each time, a column for each function.
    pub values: Matrix,
    /// Standard deviations; 0 where parameters are taken as known.
    pub sds: Matrix,
}

/// What is known of the scores of curves.
#[derive(Debug, Clone, PartialEq)]
pub struct CurveScores {
    /// Their means, a row for each curve.
    pub means: Matrix,
    /// Their covariance given the curve's points, parameters taken as known.
    pub covariances: Vec<Matrix>,
}

/// A curve at some times.
#[derive(Debug, Clone, PartialEq)]
pub struct PredictedCurve {
    /// What is expected.
    pub means: Vec<f64>,
    /// Standard deviations of the curve itself, without the noise of a new point.
    pub sds: Vec<f64>,
}

/// Θ with its components rotated to eigenfunctions, largest first, each of positive integral.
pub(super) fn oriented(theta: &Matrix, basis: &Basis) -> Result<Matrix, Error> {
    let mut inner = theta.t_dot(&basis.gram().dot(theta));
    inner.symmetrize();
    let mut out = theta.dot(&eigen(&inner)?.vectors);
    let integrals = basis.integrals();
    let signs: Vec<f64> = (0..out.n_columns())
        .map(|k| {
            let c = out.column(k);
            let largest = c.iter().fold(0.0, |most: f64, v| if v.abs() > most.abs() { *v } else { most });
            let (integral, size) = (dot(&c, &integrals), largest.abs() * basis.length());
            // Around 0 an integral has no sign.
            let decides = if integral.abs() > 1e-6 * size { integral } else { largest };
            if decides < 0.0 { -1.0 } else { 1.0 }
        })
        .collect();
    out.scale_columns(&signs);
    Ok(out)
}

impl FunctionalPca {
    /// A model of given coefficients; components as they are, which should be orthogonal ([`oriented`](Self::oriented)).
    ///
    /// # Errors
    /// [`Error::WrongLength`] where sizes differ, [`Error::OutOfRange`] for numbers that are not finite or a noise variance
    /// that is not above 0.
    pub fn new(basis: Basis, mean: Vec<f64>, loadings: Matrix, noise: f64) -> Result<Self, Error> {
        let length = |what, expected, got| {
            if expected == got { Ok(()) } else { Err(Error::WrongLength { what, expected, got }) }
        };
        length("coefficients of the mean", basis.size(), mean.len())?;
        length("coefficients of a component", basis.size(), loadings.n_rows())?;
        if loadings.n_columns() > basis.size() {
            return Err(Error::TooManyEigenfunctions { asked: loadings.n_columns(), basis: basis.size() });
        }
        if let Some(&value) = mean.iter().chain(loadings.as_slice()).find(|v| !v.is_finite()) {
            return Err(Error::OutOfRange { name: "a coefficient", value, bound: "finite" });
        }
        if !(noise.is_finite() && noise > 0.0) {
            return Err(Error::OutOfRange { name: "noise", value: noise, bound: "finite and above 0" });
        }
        Ok(Self { basis, mean, loadings, noise, covariance: None, smoothing: [0.0; 2] })
    }

    /// The same with components rotated to eigenfunctions, largest first; what was known of their uncertainty is left behind.
    ///
    /// # Errors
    /// If a decomposition fails.
    pub fn oriented(self) -> Result<Self, Error> {
        let loadings = oriented(&self.loadings, &self.basis)?;
        Ok(Self { loadings, covariance: None, ..self })
    }

    /// The same with the covariance of all coefficients: components, one after the other, then the mean.
    ///
    /// # Errors
    /// [`Error::WrongLength`] for another size.
    pub fn with_uncertainty(self, covariance: Matrix) -> Result<Self, Error> {
        let expected = (self.n_components() + 1) * self.basis.size();
        for got in [covariance.n_rows(), covariance.n_columns()] {
            if got != expected {
                let what = "rows and columns of the covariance of coefficients";
                return Err(Error::WrongLength { what, expected, got });
            }
        }
        if let Some(&value) = covariance.as_slice().iter().find(|v| !v.is_finite()) {
            return Err(Error::OutOfRange { name: "a covariance of coefficients", value, bound: "finite" });
        }
        Ok(Self { covariance: Some(covariance), ..self })
    }

    /// The same with the λ it was fitted with, of mean and components.
    pub(crate) fn with_smoothing(self, smoothing: [f64; 2]) -> Self {
        Self { smoothing, ..self }
    }

    /// Its splines.
    pub fn basis(&self) -> &Basis {
        &self.basis
    }

    /// Number of components.
    pub fn n_components(&self) -> usize {
        self.loadings.n_columns()
    }

    /// Coefficients of the mean.
    pub fn mean_coefficients(&self) -> &[f64] {
        &self.mean
    }

    /// Coefficients of the components, one in each column, scaled by the standard deviations of their scores.
    pub fn loadings(&self) -> &Matrix {
        &self.loadings
    }

    /// Variance of the noise of a point.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// Covariance of all coefficients, if parameters were estimated: components, one after the other, then the mean.
    pub fn covariance_of_coefficients(&self) -> Option<&Matrix> {
        self.covariance.as_ref()
    }

    /// λ of the mean and of the components.
    pub fn smoothing(&self) -> [f64; 2] {
        self.smoothing
    }

    /// Variances of the scores, largest first.
    pub fn eigenvalues(&self) -> Vec<f64> {
        let gram = self.basis.gram();
        (0..self.n_components()).map(|k| quadratic(&gram, &self.loadings.column(k))).collect()
    }

    /// Variance of all components and of the noise, integrated over time.
    pub fn total_variance(&self) -> f64 {
        self.eigenvalues().iter().sum::<f64>() + self.noise * self.basis.length()
    }

    /// The mean at some times, in the only column.
    ///
    /// # Errors
    /// [`Error::OutsideInterval`] for a time outside the interval of the model.
    pub fn mean_at(&self, times: &[f64]) -> Result<Eigenfunctions, Error> {
        let (m, offset) = (times.len(), self.n_components() * self.basis.size());
        let (mut values, mut sds) = (Matrix::zeros(m, 1), Matrix::zeros(m, 1));
        for (i, &time) in times.iter().enumerate() {
            let at = local(&self.basis, time)?;
            values[(i, 0)] = at.dot(&self.mean);
            let mut gradient = vec![0.0; offset + self.basis.size()];
            at.add_to(1.0, &mut gradient[offset..]);
            sds[(i, 0)] = self.variance_along(&gradient).sqrt();
        }
        Ok(Eigenfunctions { values, sds })
    }

    /// The eigenfunctions at some times, with standard deviations by the delta method [M 2.10.1].
    ///
    /// # Errors
    /// As [`mean_at`](Self::mean_at).
    pub fn eigenfunctions(&self, times: &[f64]) -> Result<Eigenfunctions, Error> {
        let (q, size) = (self.n_components(), self.basis.size());
        let (gram, l) = (self.basis.gram(), self.eigenvalues());
        // c_k = θ_k / √l_k, and J c_k.
        let mut c = self.loadings.transpose();
        c.scale_rows(&l.iter().map(|l| 1.0 / l.max(f64::MIN_POSITIVE).sqrt()).collect::<Vec<_>>());
        let jc = c.dot(&gram);
        let (mut values, mut sds) = (Matrix::zeros(times.len(), q), Matrix::zeros(times.len(), q));
        for (i, &time) in times.iter().enumerate() {
            let at = local(&self.basis, time)?;
            let phi: Vec<f64> = (0..q).map(|k| at.dot(c.row(k))).collect();
            // What no component has of the splines here.
            let mut beside = vec![0.0; size];
            at.add_to(1.0, &mut beside);
            (0..q).for_each(|s| add_multiple(&mut beside, -phi[s], jc.row(s)));
            for k in 0..q {
                let mut gradient = vec![0.0; (q + 1) * size];
                let own = l[k].max(f64::MIN_POSITIVE).sqrt();
                add_multiple(&mut gradient[k * size..][..size], 1.0 / own, &beside);
                for s in (0..q).filter(|&s| s != k) {
                    let f = phi[s] / (l[k] - l[s]);
                    add_multiple(&mut gradient[k * size..][..size], f * own, jc.row(s));
                    add_multiple(&mut gradient[s * size..][..size], f * l[s].sqrt(), jc.row(k));
                }
                values[(i, k)] = phi[k];
                sds[(i, k)] = self.variance_along(&gradient).sqrt();
            }
        }
        Ok(Eigenfunctions { values, sds })
    }

    /// Covariance of curves, without noise, at pairs of times.
    ///
    /// # Errors
    /// As [`mean_at`](Self::mean_at).
    pub fn covariance(&self, times: &[f64]) -> Result<Matrix, Error> {
        let row = |&time: &f64| {
            let at = local(&self.basis, time)?;
            Ok((0..self.n_components()).map(|k| at.dot(&self.loadings.column(k))).collect::<Vec<f64>>())
        };
        let f = Matrix::from_rows(&times.iter().map(row).collect::<Result<Vec<_>, Error>>()?);
        Ok(f.dot_t(&f))
    }

    /// `gᵀ Σ g` for the covariance Σ of coefficients.
    fn variance_along(&self, gradient: &[f64]) -> f64 {
        self.covariance.as_ref().map_or(0.0, |covariance| quadratic(covariance, gradient).max(0.0))
    }

    fn parameters(&self) -> Parameters {
        Parameters::of(self, (0.0, 1.0))
    }

    fn read(&self, data: &Dataset) -> Result<(Curves, Design), Error> {
        let curves = Curves::of(data)?;
        let design = Design::new(&curves, &self.basis, (0.0, 1.0))?;
        Ok((curves, design))
    }

    /// Scores of every curve given its points.
    ///
    /// # Errors
    /// As [`mean_at`](Self::mean_at).
    pub fn scores(&self, data: &Dataset) -> Result<CurveScores, Error> {
        let (curves, design) = self.read(data)?;
        let (parameters, q, size) = (self.parameters(), self.n_components(), self.basis.size());
        let sd: Vec<f64> = self.eigenvalues().iter().map(|l| l.sqrt()).collect();
        let one = |i: usize| {
            let known = Known::new(design.curve(i), &parameters, q, size);
            let mut covariance = known.covariance();
            covariance.scale_both(&sd);
            (known.mean.iter().zip(&sd).map(|(m, s)| m * s).collect::<Vec<f64>>(), covariance)
        };
        let (means, covariances): (Vec<Vec<f64>>, Vec<Matrix>) =
            parallel::map(curves.len(), one).into_iter().unzip();
        Ok(CurveScores { means: Matrix::from_fn(means.len(), q, |i, k| means[i][k]), covariances })
    }

    /// Log-density of the observed points of every curve, and their squared Mahalanobis distance from the mean.
    ///
    /// # Errors
    /// As [`mean_at`](Self::mean_at).
    pub fn densities(&self, data: &Dataset) -> Result<Vec<CurveDensity>, Error> {
        let (curves, design) = self.read(data)?;
        let (parameters, q, size) = (self.parameters(), self.n_components(), self.basis.size());
        Ok(parallel::map(curves.len(), |i| {
            let rows = design.curve(i);
            let known = Known::new(rows, &parameters, q, size);
            let n_observed = rows.values.len();
            CurveDensity { log_density: known.log_density, mahalanobis: known.distance, n_observed }
        }))
    }

    /// Every curve at the same times, given its points.
    ///
    /// # Errors
    /// As [`mean_at`](Self::mean_at).
    pub fn predict(&self, data: &Dataset, times: &[f64]) -> Result<Vec<PredictedCurve>, Error> {
        let (curves, design) = self.read(data)?;
        times.iter().try_for_each(|&time| local(&self.basis, time).map(|_| ()))?;
        let parameters = self.parameters();
        Ok(parallel::map(curves.len(), |i| {
            let given = self.given(design.curve(i), &parameters);
            let at = |&time: &f64| given.at(time).expect("the time was looked at");
            let (means, variances): (Vec<f64>, Vec<f64>) = times.iter().map(at).unzip();
            PredictedCurve { means, sds: variances.into_iter().map(f64::sqrt).collect() }
        }))
    }

    /// Every cell of a table as the curves have it, without noise.
    ///
    /// # Errors
    /// As [`mean_at`](Self::mean_at).
    pub fn reconstruct(&self, data: &Dataset) -> Result<Matrix, Error> {
        let (curves, design) = self.read(data)?;
        let parameters = self.parameters();
        let mut out = Matrix::zeros(data.n_rows(), data.n_columns());
        for i in 0..curves.len() {
            let given = self.given(design.curve(i), &parameters);
            for point in curves.curve(i) {
                out[point.cell] = given.mean_at(point.time)?;
            }
        }
        Ok(out)
    }

    /// What is known of every missing point of a table.
    ///
    /// # Errors
    /// As [`mean_at`](Self::mean_at).
    pub fn fill(&self, data: &Dataset) -> Result<Vec<FilledCell>, Error> {
        let (curves, design) = self.read(data)?;
        let parameters = self.parameters();
        let of_curve = |i: usize| {
            let missing: Vec<_> = curves.curve(i).iter().filter(|p| p.value.is_nan()).collect();
            if missing.is_empty() {
                return Ok(Vec::new());
            }
            let given = self.given(design.curve(i), &parameters);
            let cell = |point: &super::design::At| {
                let (mean, variance) = given.at(point.time)?;
                let (row, column) = point.cell;
                let sd = (variance + self.noise).sqrt();
                Ok(FilledCell { row, column, mean, sd, distribution: Distribution::Normal })
            };
            missing.into_iter().map(cell).collect::<Result<Vec<_>, Error>>()
        };
        let mut cells = parallel::try_map(curves.len(), of_curve)?.concat();
        cells.sort_by_key(|cell| (cell.row, cell.column));
        Ok(cells)
    }

    /// The table with its missing points drawn given the others of their curve, parameters taken as known.
    ///
    /// # Errors
    /// As [`mean_at`](Self::mean_at).
    pub fn draw_gaps(&self, data: &Dataset, rng: &mut dyn Rng) -> Result<Matrix, Error> {
        let (curves, design) = self.read(data)?;
        let (parameters, q, size) = (self.parameters(), self.n_components(), self.basis.size());
        let mut out = data.values().clone();
        for i in 0..curves.len() {
            if curves.curve(i).iter().all(|p| !p.value.is_nan()) {
                continue;
            }
            let known = Known::new(design.curve(i), &parameters, q, size);
            let mut x: Vec<f64> = (0..q).map(|_| StandardNormal.sample(rng)).collect();
            known.spread(&mut x);
            parallel::add(&mut x, &known.mean);
            for point in curves.curve(i).iter().filter(|p| p.value.is_nan()) {
                let at = local(&self.basis, point.time)?;
                let z: f64 = StandardNormal.sample(rng);
                out[point.cell] = self.curve_at(&at, &x) + self.noise.sqrt() * z;
            }
        }
        Ok(out)
    }

    /// New curves with noise, one in each row, at these times.
    ///
    /// # Errors
    /// As [`mean_at`](Self::mean_at).
    pub fn sample(&self, times: &[f64], n_curves: usize, rng: &mut dyn Rng) -> Result<Matrix, Error> {
        let at: Vec<_> = times.iter().map(|&t| local(&self.basis, t)).collect::<Result<_, _>>()?;
        let mut out = Matrix::zeros(n_curves, times.len());
        for i in 0..n_curves {
            let x: Vec<f64> = (0..self.n_components()).map(|_| StandardNormal.sample(rng)).collect();
            for (value, at) in out.row_mut(i).iter_mut().zip(&at) {
                let z: f64 = StandardNormal.sample(rng);
                *value = self.curve_at(at, &x) + self.noise.sqrt() * z;
            }
        }
        Ok(out)
    }

    /// `φ(t)ᵀ (v₀ + Θ x)`.
    fn curve_at(&self, at: &super::basis::Local, x: &[f64]) -> f64 {
        let of = |b: usize| self.mean[b] + dot(self.loadings.row(b), x);
        at.values.iter().enumerate().map(|(i, v)| v * of(at.first + i)).sum()
    }

    fn given<'a>(&'a self, rows: Rows<'a>, parameters: &Parameters) -> GivenPoints<'a> {
        let (q, size) = (self.n_components(), self.basis.size());
        let known = Known::new(rows, parameters, q, size);
        // Φᵀ e with e = y − Φ v₀ − F m.
        let mut residual = vec![0.0; size];
        for (j, (local, y)) in rows.locals.iter().zip(rows.values).enumerate() {
            let fitted = local.dot(&self.mean) + dot(&known.loadings[j * q..][..q], &known.mean);
            local.add_to(y - fitted, &mut residual);
        }
        GivenPoints { model: self, rows, known, residual }
    }
}

/// How likely a curve is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurveDensity {
    /// Log-density of its observed points, in nats.
    pub log_density: f64,
    /// Their squared Mahalanobis distance from the mean.
    pub mahalanobis: f64,
    /// Points that were observed.
    pub n_observed: usize,
}

/// A model and the points of a curve.
struct GivenPoints<'a> {
    model: &'a FunctionalPca,
    rows: Rows<'a>,
    known: Known,
    residual: Vec<f64>,
}

impl GivenPoints<'_> {
    fn mean_at(&self, time: f64) -> Result<f64, Error> {
        Ok(self.model.curve_at(&local(&self.model.basis, time)?, &self.known.mean))
    }

    /// Mean and variance of the curve at a time, without noise. The variance is that of the scores and, to first order, that
    /// of the estimated parameters: with `g = Θᵀφ(t)` and `a = F S g / σ²` the mean has the gradient
    /// `(φ(t) − Φᵀa) ⊗ (m, 1) + Φᵀe ⊗ (S g / σ², 0)`.
    fn at(&self, time: f64) -> Result<(f64, f64), Error> {
        let model = self.model;
        let at = local(&model.basis, time)?;
        let (q, size) = (model.n_components(), model.basis.size());
        let g: Vec<f64> = (0..q)
            .map(|k| at.values.iter().enumerate().map(|(i, v)| v * model.loadings[(at.first + i, k)]).sum())
            .collect();
        let mut sg = g.clone();
        self.known.times_covariance(&mut sg);
        let variance = dot(&g, &sg);
        let mean = model.curve_at(&at, &self.known.mean);
        if model.covariance.is_none() {
            return Ok((mean, variance));
        }
        let mut own = vec![0.0; size];
        at.add_to(1.0, &mut own);
        for (j, local) in self.rows.locals.iter().enumerate() {
            let a = dot(&self.known.loadings[j * q..][..q], &sg) / model.noise;
            local.add_to(-a, &mut own);
        }
        let mut gradient = vec![0.0; (q + 1) * size];
        for k in 0..q {
            let part = &mut gradient[k * size..][..size];
            add_multiple(part, self.known.mean[k], &own);
            add_multiple(part, sg[k] / model.noise, &self.residual);
        }
        gradient[q * size..].copy_from_slice(&own);
        Ok((mean, variance + model.variance_along(&gradient)))
    }
}
