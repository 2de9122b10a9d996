//! Does a factor analysis fit? Likelihoods of the same rows under wider and narrower models, and the indices made of them
//! [M 1.6.7].

use super::full_covariance::FullCovariance;
use super::report::{Fit, Observer, Termination, Warning};
use super::{Estimator, ObjectiveKind};
use crate::linalg::Cholesky;
use crate::{CentralMoments, Dataset, Density, Error, LinearGaussian, Matrix, Spec};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF};
use statrs::function::gamma::{gamma_lr, ln_gamma};

/// Communalities and fit indices of a factor analysis.
///
/// With ℓ the log-likelihood of the fit, ℓ₁ that of an unrestricted mean and covariance, ℓ₀ that of independent columns, all
/// of the same observed cells, and `df = ((d − q)² − (d + q))/2`:
///
/// ```text
/// F   = 2 (ℓ₁ − ℓ)/N            = ln|C| − ln|S| + tr C⁻¹S − d of a complete table
/// χ²  = (N − 1 − (2d + 5)/6 − 2q/3) F            complete: Bartlett (1951), as R's factanal has it
/// χ²  = N F                                      with missing values: the likelihood ratio
/// ```
///
/// Both are χ² distributed with df degrees of freedom if the model holds. With missing values ℓ₁ is found by EM. The other
/// indices are made of the likelihood ratios N F and `χ²₀ = 2 (ℓ₁ − ℓ₀)`, as R's lavaan has them.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::{FactorReport, Newton}, CentralMoments, Estimator, Spec};
/// let (table, _) = simulate::factor_analysis(Shape { rows: 2000, columns: 8, n_components: 2 }, /* seed */ 3);
/// let moments = CentralMoments::of(&table)?;
/// let report = |q| FactorReport::new(&Newton::default().fit(&table, &Spec::factor_analysis(q))?, &moments);
/// assert!(report(1)?.p_value.unwrap() < 1e-6);    // one factor is not enough …
/// assert!(report(2)?.p_value.unwrap() > 0.01);    // … two are
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FactorReport {
    /// Variance of each column that the factors explain: `hⱼ = Σₖ W²ⱼₖ`. No rotation changes it.
    pub communalities: Vec<f64>,
    /// Noise variance ψⱼ of each column.
    pub uniquenesses: Vec<f64>,
    /// `hⱼ / (hⱼ + ψⱼ)`.
    pub communality_shares: Vec<f64>,
    /// What the indices are made of.
    pub reference: Reference,
    /// `2p − 2ℓ` with p the free parameters of covariance and mean.
    pub aic: f64,
    /// `p ln N − 2ℓ`.
    pub bic: f64,
    /// Entries of the covariance less its free parameters.
    pub degrees_of_freedom: i64,
    /// F; absent without ℓ₁.
    pub discrepancy: Option<f64>,
    /// χ², with Bartlett's correction if the table is complete; absent without F, or where N is too small for the
    /// correction.
    pub chi_square: Option<f64>,
    /// `N F`, without a correction.
    pub likelihood_ratio: Option<f64>,
    /// `P(χ²_df ≥ χ²)`; absent without degrees of freedom, and where a noise variance is at its
    /// floor: the statistic then does not follow χ²_df.
    pub p_value: Option<f64>,
    /// Root mean square error of approximation; absent without degrees of freedom.
    pub rmsea: Option<Rmsea>,
    /// Tucker–Lewis index `(χ²₀/df₀ − N F/df) / (χ²₀/df₀ − 1)`, where 0 marks the model without
    /// factors. Absent without degrees of freedom, or where that model already fits.
    pub tli: Option<f64>,
    /// Comparative fit index `1 − max(N F − df, 0) / max(χ²₀ − df₀, N F − df, 0)`. Absent as `tli`.
    pub cfi: Option<f64>,
    /// Why there is no p-value, if there is none.
    pub untested: Option<Untested>,
}

/// The fit beside the unrestricted Gaussian and beside independent columns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// N: rows with an observed cell.
    pub n_rows: usize,
    /// Whether no cell of them is missing.
    pub complete: bool,
    /// ℓ in nats, constants included.
    #[serde(with = "crate::json")]
    pub log_likelihood: f64,
    /// ℓ₁, of an unrestricted mean and covariance.
    #[serde(with = "crate::json")]
    pub saturated: Option<f64>,
    /// ℓ₀, of independent columns.
    #[serde(with = "crate::json")]
    pub independent: f64,
    /// Standardized root mean square residual: of `(sᵢⱼ − cᵢⱼ)/√(sᵢᵢ sⱼⱼ)`, i ≥ j, with S the unrestricted covariance.
    #[serde(with = "crate::json")]
    pub srmr: Option<f64>,
    /// Why ℓ₁ is not known.
    pub untested: Option<Untested>,
}

/// Why there is no test of a fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Untested {
    /// N ≤ d, or too few for Bartlett's correction.
    TooFewRows,
    /// The unrestricted covariance has no inverse.
    Singular,
    /// Two columns are never observed in the same row.
    UnseenPairs,
    /// The unrestricted covariance was not found.
    NotConverged,
    /// The unrestricted covariance was not looked for.
    TooLarge,
    /// It was interrupted.
    Interrupted,
    /// No degrees of freedom are left.
    NoDegreesOfFreedom,
    /// A noise variance is at its floor.
    NoiseAtFloor,
}

impl Untested {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::TooFewRows => "there are too few rows for the number of columns",
            Self::Singular => {
                "the covariance of the columns has no inverse, as where one is a combination of others"
            }
            Self::UnseenPairs => "two columns are never observed in the same row",
            Self::NotConverged => {
                "the unrestricted covariance of a table with these missing values was not found"
            }
            Self::TooLarge => {
                "the unrestricted covariance of this many columns, or of these missing values, takes too long to find"
            }
            Self::Interrupted => "it was interrupted",
            Self::NoDegreesOfFreedom => "this many factors leave no degrees of freedom",
            Self::NoiseAtFloor => {
                "a noise variance is at its lower bound, where the statistic is not chi-squared"
            }
        }
    }
}

/// `√(max(N F − df, 0)/(df N))` (Steiger), with its 90 % interval from the noncentral χ² of `N F`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rmsea {
    /// Point estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Columns up to which a covariance is formed to test by.
const MOST_COLUMNS: usize = 2000;
/// Multiplications that one step of EM for the unrestricted covariance may take: patterns of gaps times d³.
const MOST_WORK: f64 = 1e9;
/// Nats for each entry of the covariance at which that EM has ended: far below what a χ² is read to.
const TOLERANCE: f64 = 1e-10;

impl FactorReport {
    /// Reports on a fit and the moments of the complete table it was fitted to.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the moments have other columns than the model.
    pub fn new(fit: &Fit, moments: &CentralMoments) -> Result<Self, Error> {
        Ok(Self::of_reference(&fit.model, &fit.report.warnings, Reference::of_moments(&fit.model, moments)?))
    }

    /// Reports on a fit and the table it was fitted to, complete or not.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the table has other columns than the model.
    pub fn of_table(fit: &Fit, data: &Dataset, observer: &mut dyn Observer) -> Result<Self, Error> {
        let reference = Reference::of_table(&fit.model, data, observer)?;
        Ok(Self::of_reference(&fit.model, &fit.report.warnings, reference))
    }

    /// The indices that a reference makes.
    pub(crate) fn of_reference(model: &LinearGaussian, warnings: &[Warning], reference: Reference) -> Self {
        let Reference { n_rows, complete, log_likelihood, saturated, independent, .. } = reference;
        let (n, d, q) = (n_rows as f64, model.n_columns() as f64, model.n_components() as f64);
        let parameters = model.n_parameters() as f64;
        let degrees_of_freedom = model.degrees_of_freedom();
        let df = (degrees_of_freedom > 0).then_some(degrees_of_freedom as f64);

        let communalities: Vec<f64> =
            model.loadings().rows().map(|w| w.iter().map(|v| v * v).sum()).collect();
        let uniquenesses = model.noise_variances();
        let communality_shares = communalities.iter().zip(&uniquenesses).map(|(h, p)| h / (h + p)).collect();

        let discrepancy = saturated.map(|best| 2.0 * (best - log_likelihood) / n);
        let weight = if complete { n - 1.0 - (2.0 * d + 5.0) / 6.0 - 2.0 * q / 3.0 } else { n };
        let chi_square = discrepancy.filter(|_| weight > 0.0).map(|f| weight * f);
        let likelihood_ratio = discrepancy.map(|f| n * f);
        let at_floor = warnings.iter().any(|w| matches!(w, Warning::NoiseAtFloor { .. }));
        let untested = match (chi_square, df) {
            (None, _) => Some(reference.untested.unwrap_or(Untested::TooFewRows)),
            (_, None) => Some(Untested::NoDegreesOfFreedom),
            _ if at_floor => Some(Untested::NoiseAtFloor),
            _ => None,
        };
        let p_value = match (chi_square, df) {
            (Some(statistic), Some(df)) if !at_floor => {
                Some(ChiSquared::new(df).expect("df is above 0").sf(statistic.max(0.0)))
            }
            _ => None,
        };
        let null_df = d * (d - 1.0) / 2.0;
        let null = saturated.map(|best| 2.0 * (best - independent));
        let indices = match (likelihood_ratio, df, null) {
            (Some(t), Some(df), Some(t0)) if t0 > null_df => Some((t, df, t0)),
            _ => None,
        };
        Self {
            communalities,
            uniquenesses,
            communality_shares,
            reference,
            aic: 2.0 * parameters - 2.0 * log_likelihood,
            bic: parameters * n.ln() - 2.0 * log_likelihood,
            degrees_of_freedom,
            discrepancy,
            chi_square,
            likelihood_ratio,
            p_value,
            rmsea: likelihood_ratio.zip(df).map(|(statistic, df)| Rmsea::new(statistic, df, n)),
            tli: indices.map(|(t, df, t0)| (t0 / null_df - t / df) / (t0 / null_df - 1.0)),
            cfi: indices.map(|(t, df, t0)| 1.0 - (t - df).max(0.0) / (t0 - null_df).max(t - df)),
            untested,
        }
    }
}

impl Reference {
    fn of_moments(model: &LinearGaussian, moments: &CentralMoments) -> Result<Self, Error> {
        let (n, d) = (moments.n_rows(), moments.n_columns());
        let s = moments.covariance();
        let variances: Vec<f64> = (0..d).map(|j| s[(j, j)]).collect();
        let log_likelihood = model.log_likelihood_of_moments(moments)?;
        let independent = independent(variances.iter().map(|&v| (n, v)));
        let known = Self::without(n, true, log_likelihood, independent);
        if n <= d {
            return Ok(known(Untested::TooFewRows));
        }
        // Factorized on the correlation scale, where units cannot hide a singular matrix; R = I where columns are
        // independent.
        let mut r = s.clone();
        r.scale_both(&variances.iter().map(|v| 1.0 / v.sqrt()).collect::<Vec<_>>());
        let Some(ln_det) = Cholesky::new(&r).map(|factor| factor.ln_det()) else {
            return Ok(known(Untested::Singular));
        };
        let saturated = Some(independent - 0.5 * n as f64 * ln_det);
        Ok(Self { saturated, srmr: Some(srmr(&s, model)), untested: None, ..known(Untested::Singular) })
    }

    fn of_table(model: &LinearGaussian, data: &Dataset, observer: &mut dyn Observer) -> Result<Self, Error> {
        let (n, d) = (data.n_informative_rows(), data.n_columns());
        let complete = data.complete_rows("a covariance matrix");
        if let Ok(data) = &complete
            && n > d
            && d <= MOST_COLUMNS
        {
            return Self::of_moments(model, &CentralMoments::of(data)?);
        }
        let seen = data.n_observed_by_column().iter().copied().zip(data.observed_variances().iter().copied());
        let known = Self::without(n, complete.is_ok(), model.log_likelihood(data)?, independent(seen));
        if n <= d {
            return Ok(known(Untested::TooFewRows));
        }
        if complete.is_ok() || data.n_patterns() as f64 * (d as f64).powi(3) > MOST_WORK {
            return Ok(known(Untested::TooLarge));
        }
        let start = Some(Box::new(model.clone()));
        let em = FullCovariance { pseudo_rows: 0.0, max_iterations: 5000, tolerance: TOLERANCE, init: start };
        let spec = Spec { standardize: true, ..Spec::ppca(d - 1) };
        let fit = match em.fit_observed(data, &spec, observer) {
            Ok(fit) => fit,
            Err(Error::Interrupted) => return Ok(known(Untested::Interrupted)),
            Err(_) => return Ok(known(Untested::Singular)),
        };
        debug_assert_eq!(fit.report.objective.kind, ObjectiveKind::LogLikelihood, "there are no pseudo-rows");
        let warned = |of: fn(&Warning) -> bool| fit.report.warnings.iter().any(of);
        Ok(match fit.report.termination {
            _ if warned(|w| matches!(w, Warning::UnseenPairs { .. })) => known(Untested::UnseenPairs),
            _ if warned(|w| matches!(w, Warning::NoiseAtFloor { .. })) => known(Untested::Singular),
            Termination::Interrupted => known(Untested::Interrupted),
            Termination::IterationLimit => known(Untested::NotConverged),
            Termination::Converged | Termination::ClosedForm => Self {
                saturated: Some(fit.report.objective.value),
                srmr: Some(srmr(&fit.model.covariance(), model)),
                untested: None,
                ..known(Untested::NotConverged)
            },
        })
    }

    /// A reference that lacks the unrestricted Gaussian.
    fn without(
        n_rows: usize,
        complete: bool,
        log_likelihood: f64,
        independent: f64,
    ) -> impl Fn(Untested) -> Self {
        move |why| Self {
            n_rows,
            complete,
            log_likelihood,
            saturated: None,
            independent,
            srmr: None,
            untested: Some(why),
        }
    }
}

/// `−½ Σⱼ nⱼ (ln 2πsⱼ² + 1)`, of columns with nⱼ observed cells of variance sⱼ²: each has its own mean and variance.
fn independent(columns: impl Iterator<Item = (usize, f64)>) -> f64 {
    let of = |(n, variance): (usize, f64)| n as f64 * ((2.0 * std::f64::consts::PI * variance).ln() + 1.0);
    -0.5 * columns.map(of).sum::<f64>()
}

fn srmr(s: &Matrix, model: &LinearGaussian) -> f64 {
    let (c, d) = (model.covariance(), s.n_rows());
    let residual = |i: usize, j: usize| (s[(i, j)] - c[(i, j)]).powi(2) / (s[(i, i)] * s[(j, j)]);
    let sum: f64 = (0..d).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|(i, j)| residual(i, j)).sum();
    (sum / (d * (d + 1) / 2) as f64).sqrt()
}

impl Rmsea {
    fn new(statistic: f64, df: f64, n: f64) -> Self {
        let of = |noncentrality: f64| (noncentrality.max(0.0) / (df * n)).sqrt();
        Self {
            value: of(statistic - df),
            low: of(noncentrality(statistic, df, 0.95)),
            high: of(noncentrality(statistic, df, 0.05)),
        }
    }
}

/// The λ at which `P(χ²_df(λ) ≤ x) = level`; 0 if the probability is below `level` even there.
fn noncentrality(x: f64, df: f64, level: f64) -> f64 {
    if noncentral_cdf(x, df, 0.0) <= level {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, x + 1.0);
    while noncentral_cdf(x, df, high) > level {
        (low, high) = (high, 2.0 * high);
    }
    // The probability falls with λ: halve until the ends meet in the digits that are shown.
    while high - low > 1e-9 * high {
        let middle = 0.5 * (low + high);
        if noncentral_cdf(x, df, middle) > level {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// `P(χ²_df(λ) ≤ x) = Σⱼ Poisson(j; λ/2) P(χ²_{df+2j} ≤ x)`, over the j that carry weight.
fn noncentral_cdf(x: f64, df: f64, lambda: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let rate = 0.5 * lambda;
    if rate == 0.0 {
        return gamma_lr(0.5 * df, 0.5 * x);
    }
    let width = 8.0 * rate.sqrt() + 30.0;
    let (first, last) = ((rate - width).max(0.0) as u64, (rate + width) as u64);
    (first..=last)
        .map(|j| {
            let j = j as f64;
            (j * rate.ln() - rate - ln_gamma(j + 1.0)).exp() * gamma_lr(0.5 * df + j, 0.5 * x)
        })
        .sum()
}
