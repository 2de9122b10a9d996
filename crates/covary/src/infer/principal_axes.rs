//! Classical principal components of a table, complete or with gaps.

use super::scatter::sum_matrices;
use super::{Em, Estimator, Fit, FitReport, Observer, Solver, Spectral, Spectrum};
use crate::linalg::{dot, eigen};
use crate::model::Principal;
use crate::parallel::add;
use crate::spec::Prior;
use crate::{CentralMoments, Dataset, Density, Error, LinearGaussian, Matrix, Spec};

/// How many principal components to keep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kept {
    /// `min(N, d)`.
    All,
    /// This many.
    Number(usize),
    /// The fewest whose share of the total variance exceeds this one, between 0 and 1.
    Share(f64),
    /// The most probable number among 1 … d − 1 (Minka 2000).
    Evidence,
}

/// Principal components by the conventions of classical software ([`Principal`]).
///
/// A complete table has them in closed form. Gaps are integrated out:
///
/// - q components, fewer than d and than N − 1: the maximum of the likelihood of probabilistic PCA;
/// - more than that of the spectrum (all components, a share, the evidence) with more rows than columns: the
///   maximum of the likelihood of the Gaussian with a free covariance, or, where that takes long, one step
///   towards it from probabilistic PCA with few components:
///   `S = 1/N Σᵢ (⟨tᵢ⟩ − μ)(⟨tᵢ⟩ − μ)ᵀ + Cov[tᵢ | observed]`;
/// - otherwise a free covariance is not determined. Gaps are filled by the mean that probabilistic PCA with
///   a weak prior gives them, and the filled table counts as complete. The variance of what was filled in
///   is not in the answer, which is too small by that.
///
/// All become the closed form as the gaps vanish.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::{Kept, PrincipalAxes}};
/// let (whole, _) = simulate::ppca(Shape { rows: 500, columns: 6, n_components: 2 }, /* seed */ 1);
/// let axes = PrincipalAxes { kept: Kept::Number(2), ..PrincipalAxes::default() };
/// let (all, some) = (axes.fit(&whole)?, axes.fit(&simulate::hide(&whole, 0.1, /* seed */ 2))?);
/// let cosine = |k: usize| (0..6).map(|j| all.components[(k, j)] * some.components[(k, j)]).sum::<f64>();
/// assert!(cosine(0) > 0.99 && cosine(1) > 0.99);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PrincipalAxes {
    /// How many components.
    pub kept: Kept,
    /// Eigensolver of complete tables.
    pub solver: Solver,
    /// Seed of the start of [`Solver::Krylov`].
    pub seed: u64,
    /// Most steps of EM, where there are gaps.
    pub max_iterations: usize,
    /// Nats left to gain when EM stops ([`Em::tolerance`]).
    pub tolerance: f64,
    /// Whether the noise is the mean over all d − q directions beyond the components, also on tables with
    /// fewer rows than columns, where only N − q of them can hold variance.
    pub noise_over_columns: bool,
}

impl Default for PrincipalAxes {
    /// All components. With 30 % of the cells of digits, wine, diabetes and breast cancer hidden, three
    /// components took 18 to 35 steps; a free covariance took 74 and 93 of the narrower tables and all 500
    /// of the last, whose smallest variance is 1e-12 of its largest.
    fn default() -> Self {
        Self {
            kept: Kept::All,
            solver: Solver::Auto,
            seed: 0,
            max_iterations: 500,
            tolerance: 1e-6,
            noise_over_columns: false,
        }
    }
}

/// Patterns × d³ up to which a free covariance is fitted to its end: about 20 ms a step.
const MOST_FREE_WORK: f64 = 2e7;
/// Components, at most, of a fit that stands in for the free one.
const MOST_TO_FILL: usize = 32;

impl PrincipalAxes {
    /// The principal components of the table.
    ///
    /// # Errors
    /// As [`fit_observed`](Self::fit_observed).
    pub fn fit(&self, data: &Dataset) -> Result<Principal, Error> {
        self.fit_observed(data, &mut ())
    }

    /// The principal components of the table; `observer` is called after every step of EM and may end it.
    ///
    /// # Errors
    /// [`Error::EmptyColumn`], [`Error::TooFewRows`] below two rows with an observed cell,
    /// [`Error::TooManyComponents`] beyond `min(N, d)`, [`Error::OutOfRange`] for a share that is not
    /// between 0 and 1, [`Error::TooFewForEvidence`] for the evidence of fewer rows than columns.
    pub fn fit_observed(&self, data: &Dataset, observer: &mut dyn Observer) -> Result<Principal, Error> {
        Ok(self.fit_reported(data, observer)?.0)
    }

    /// [`fit_observed`](Self::fit_observed), with how EM went where there are gaps.
    ///
    /// # Errors
    /// As [`fit_observed`](Self::fit_observed).
    pub fn fit_reported(
        &self,
        data: &Dataset,
        observer: &mut dyn Observer,
    ) -> Result<(Principal, Option<FitReport>), Error> {
        let (n, d) = (data.n_informative_rows(), data.n_columns());
        if n < 2 {
            return Err(Error::TooFewRows { rows: n });
        }
        if let Some(j) = data.n_observed_by_column().iter().position(|&seen| seen == 0) {
            return Err(Error::EmptyColumn { column: data.column_names()[j].clone() });
        }
        self.check(n, d)?;
        if data.complete_rows("principal axes").is_ok() {
            return Ok((self.fit_complete(data, observer)?, None));
        }
        let mut report = None;
        let mut em = |spec: &Spec| {
            let fit = self.em(data, spec, observer)?;
            report = Some(fit.report);
            Ok::<_, Error>(fit.model)
        };
        let found = match self.kept {
            Kept::Number(q) if q < d.min(n - 1) => {
                let model = em(&Spec::ppca(q))?;
                Ok(self.of_model(n, &model))
            }
            _ if n > d && data.n_patterns() as f64 * (d as f64).powi(3) <= MOST_FREE_WORK => {
                // d − 1 components and a noise variance make any covariance.
                let model = em(&Spec::ppca(d - 1))?;
                self.of_covariance(n, model.mean().to_vec(), &model.covariance())
            }
            _ if n > d => {
                let model = em(&Spec::ppca(few(d)))?;
                let (mean, covariance) = expected_moments(data, &model)?;
                self.of_covariance(n, mean, &covariance)
            }
            _ => {
                let spec = Spec { prior: Prior::weak(), ..Spec::ppca(few(n)) };
                self.fit_complete(&filled(data, &em(&spec)?)?, &mut ())
            }
        };
        Ok((found?, report))
    }

    /// Checks the request against the size of the table.
    pub(super) fn check(&self, rows: usize, columns: usize) -> Result<(), Error> {
        let max = rows.min(columns);
        match self.kept {
            Kept::Number(asked) if asked > max => Err(Error::TooManyComponents { asked, rows, columns, max }),
            Kept::Share(value) if !(value > 0.0 && value < 1.0) => {
                Err(Error::OutOfRange { name: "the share of variance", value, bound: "between 0 and 1" })
            }
            Kept::Evidence if rows < columns => Err(Error::TooFewForEvidence { rows, columns }),
            _ => Ok(()),
        }
    }

    /// How many leading eigenpairs must be known.
    pub(super) fn sought(&self, rows: usize, columns: usize) -> usize {
        match self.kept {
            Kept::Number(q) => q,
            _ => rows.min(columns),
        }
    }

    fn fit_complete(&self, data: &Dataset, observer: &mut dyn Observer) -> Result<Principal, Error> {
        let sought = self.sought(data.n_informative_rows(), data.n_columns());
        let spectral = Spectral { solver: self.solver, seed: self.seed };
        self.of_spectrum(&spectral.spectrum_observed(data, sought, false, observer)?)
    }

    fn em(&self, data: &Dataset, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        let em = Em { max_iterations: self.max_iterations, tolerance: self.tolerance, ..Em::default() };
        em.fit_observed(data, spec, observer)
    }

    /// From probabilistic PCA: `λᵢ = wᵢᵀwᵢ + σ²` along the components, σ² along the d − q others.
    fn of_model(&self, n: usize, model: &LinearGaussian) -> Principal {
        let (d, q) = (model.n_columns(), model.n_components());
        let sigma2 = model.noise().variance(0);
        let found = Leading {
            n_rows: n,
            mean: model.mean(),
            variances: &model.explained_variance(),
            axes: model.components(),
            rest: sigma2 * (d - q) as f64,
            columns: &model.variances(),
        };
        found.principal(self.noise_over_columns)
    }

    /// From all eigenpairs of a covariance with divisor N.
    fn of_covariance(&self, n: usize, mean: Vec<f64>, covariance: &Matrix) -> Result<Principal, Error> {
        let variances = (0..mean.len()).map(|j| covariance[(j, j)]).collect();
        self.of_spectrum(&Spectrum::of_eigenpairs(n, mean, variances, eigen(covariance)?, 0.0))
    }

    /// From the eigenpairs that [`sought`](Self::sought) asks for.
    pub(super) fn of_spectrum(&self, spectrum: &Spectrum) -> Result<Principal, Error> {
        let lambda = &spectrum.eigenvalues;
        let q = match self.kept {
            Kept::All => lambda.len(),
            Kept::Number(q) => q,
            Kept::Share(share) => reaching(lambda, spectrum.total_variance, share),
            Kept::Evidence => spectrum.evident_components()?,
        };
        let all = q == spectrum.axes.n_columns();
        let mut axes =
            if all { spectrum.axes.transpose() } else { spectrum.axes.first_columns(q).transpose() };
        complete_axes(&mut axes);
        let rest = spectrum.discarded_variance + lambda[q..].iter().sum::<f64>();
        let (n_rows, mean) = (spectrum.n_rows, &spectrum.mean);
        let columns = &spectrum.variances;
        let found = Leading { n_rows, mean, variances: &lambda[..q], axes, rest, columns };
        Ok(found.principal(self.noise_over_columns))
    }
}

/// Components of a fit that stands in for the free covariance of this many directions.
fn few(directions: usize) -> usize {
    ((directions - 1) / 2).min(MOST_TO_FILL)
}

/// The rows with an observed cell, gaps at their conditional means; the others carry no information.
fn filled(data: &Dataset, model: &LinearGaussian) -> Result<Dataset, Error> {
    let seen = |i: &usize| data.row(*i).iter().any(|v| !v.is_nan());
    let rows: Vec<usize> = (0..data.n_rows()).filter(seen).collect();
    Dataset::new(model.impute(&data.of_rows(&rows)?)?.values().clone())
}

/// Mean and covariance, divisor N, that the rows are expected to have under the model.
fn expected_moments(data: &Dataset, model: &LinearGaussian) -> Result<(Vec<f64>, Matrix), Error> {
    let (n, d) = (data.n_informative_rows() as f64, data.n_columns());
    let moments = CentralMoments::of(&filled(data, model)?)?;
    let mut covariance = moments.covariance();
    let unseen = sum_matrices(data.n_patterns(), 1, (d, d), |patterns, sum| {
        for pattern in patterns.map(|p| data.pattern(p)).filter(|p| p.n_observed() > 0) {
            let of_gaps = model.condition(&pattern.observed()).gap_covariance(true);
            let share = pattern.rows.len() as f64 / n;
            for (a, &i) in pattern.gaps.iter().enumerate() {
                for (b, &j) in pattern.gaps.iter().enumerate() {
                    sum[(i as usize, j as usize)] += share * of_gaps[(a, b)];
                }
            }
        }
    });
    add(covariance.as_mut_slice(), unseen.as_slice());
    Ok((moments.mean().to_vec(), covariance))
}

/// Leading eigenpairs of a covariance with divisor N, the sum of all other eigenvalues, and its diagonal.
struct Leading<'a> {
    n_rows: usize,
    mean: &'a [f64],
    variances: &'a [f64],
    axes: Matrix,
    rest: f64,
    columns: &'a [f64],
}

impl Leading<'_> {
    fn principal(self, noise_over_columns: bool) -> Principal {
        let (n, d, q) = (self.n_rows, self.mean.len(), self.variances.len());
        let unbiased = n as f64 / (n as f64 - 1.0);
        let directions = if noise_over_columns { d } else { n.min(d) };
        let noise = if q < n.min(d) { self.rest.max(0.0) / (directions - q) as f64 } else { 0.0 };
        Principal {
            n_rows: n,
            mean: self.mean.to_vec(),
            components: self.axes,
            explained_variance: self.variances.iter().map(|v| v * unbiased).collect(),
            total_variance: (self.variances.iter().sum::<f64>() + self.rest.max(0.0)) * unbiased,
            variances: self.columns.iter().map(|v| v * unbiased).collect(),
            noise_variance: noise * unbiased,
            scale: None,
        }
    }
}

/// The fewest leading eigenvalues whose sum exceeds a share of the total; all of them if none does.
fn reaching(eigenvalues: &[f64], total: f64, share: f64) -> usize {
    let mut sum = 0.0;
    let within = |l: &&f64| {
        sum += **l;
        sum / total <= share
    };
    (eigenvalues.iter().take_while(within).count() + 1).min(eigenvalues.len())
}

/// Gives every zero row a direction of its own: what is left, beside the other rows, of the unit vector
/// they cover least.
fn complete_axes(axes: &mut Matrix) {
    let (q, d) = (axes.n_rows(), axes.n_columns());
    for k in 0..q {
        if axes.row(k).iter().any(|v| *v != 0.0) {
            continue;
        }
        let covered = |j: usize| axes.rows().map(|u| u[j] * u[j]).sum::<f64>();
        let j = (0..d).min_by(|&a, &b| covered(a).total_cmp(&covered(b))).expect("a table has columns");
        let mut unit = vec![0.0; d];
        unit[j] = 1.0;
        // Twice is enough.
        for _ in 0..2 {
            for u in axes.rows() {
                let along = dot(u, &unit);
                unit.iter_mut().zip(u).for_each(|(v, u)| *v -= along * u);
            }
            let length = dot(&unit, &unit).sqrt();
            for v in &mut unit {
                *v /= length;
            }
        }
        axes.row_mut(k).copy_from_slice(&unit);
    }
}
