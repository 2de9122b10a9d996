//! Communalities, uniquenesses and fit indices of a factor analysis [M 1.6.7].

use super::report::{Fit, Warning};
use crate::linalg::Cholesky;
use crate::{CentralMoments, Error};
use statrs::distribution::{ChiSquared, ContinuousCDF};
use statrs::function::gamma::{gamma_lr, ln_gamma};

/// Communalities and fit indices of a factor analysis of complete data.
///
/// With S the covariance of the table and C that of the model, `df = ((d − q)² − (d + q))/2`:
///
/// ```text
/// F   = ln|C| − ln|S| + tr C⁻¹S − d                discrepancy; 0 when C = S
/// χ²  = (N − 1 − (2d + 5)/6 − 2q/3) F              Bartlett (1951); ~ χ²_df if the model holds
/// ```
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
    /// Log-likelihood in nats, constants included.
    pub log_likelihood: f64,
    /// `2p − 2ℓ` with p the free parameters of covariance and mean.
    pub aic: f64,
    /// `p ln N − 2ℓ`.
    pub bic: f64,
    /// Entries of the covariance less its free parameters.
    pub degrees_of_freedom: i64,
    /// F; absent where S has no inverse, as it must for N ≤ d.
    pub discrepancy: Option<f64>,
    /// Bartlett-corrected χ²; absent without F, or where N is too small for the correction.
    pub chi_square: Option<f64>,
    /// `P(χ²_df ≥ χ²)`; absent without degrees of freedom, and where a noise variance is at its
    /// floor: the statistic then does not follow χ²_df.
    pub p_value: Option<f64>,
    /// Root mean square error of approximation; absent without degrees of freedom.
    pub rmsea: Option<Rmsea>,
    /// Tucker–Lewis index `(χ²₀/df₀ − χ²/df) / (χ²₀/df₀ − 1)`, where 0 marks the model without
    /// factors. Absent without degrees of freedom, or where that model already fits.
    pub tli: Option<f64>,
    /// Comparative fit index `1 − max(χ² − df, 0) / max(χ²₀ − df₀, χ² − df, 0)`. Absent as `tli`.
    pub cfi: Option<f64>,
}

/// `√(max(F/df − 1/(N−1), 0))` (Steiger), with its 90 % interval from the noncentral χ².
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rmsea {
    /// Point estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl FactorReport {
    /// Reports on a fit and the moments of the table it was fitted to.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] if the moments have other columns than the model.
    pub fn new(fit: &Fit, moments: &CentralMoments) -> Result<Self, Error> {
        let model = &fit.model;
        let (n, d, q) = (moments.n_rows() as f64, moments.n_columns() as f64, model.n_components() as f64);
        let log_likelihood = model.log_likelihood_of_moments(moments)?;
        let parameters = model.n_parameters() as f64;
        let degrees_of_freedom = model.degrees_of_freedom();
        let df = (degrees_of_freedom > 0).then_some(degrees_of_freedom as f64);

        let communalities: Vec<f64> =
            model.loadings().rows().map(|w| w.iter().map(|v| v * v).sum()).collect();
        let uniquenesses = model.noise_variances();
        let communality_shares = communalities.iter().zip(&uniquenesses).map(|(h, p)| h / (h + p)).collect();

        let ln_det = LnDet::of(moments);
        // ln|C| + tr C⁻¹S = −2ℓ/N − d ln 2π
        let fitted = -2.0 * log_likelihood / n - d * (2.0 * std::f64::consts::PI).ln();
        let discrepancy = ln_det.as_ref().map(|s| fitted - s.covariance - d);
        let bartlett = |f: f64, q: f64| {
            let weight = n - 1.0 - (2.0 * d + 5.0) / 6.0 - 2.0 * q / 3.0;
            (weight > 0.0).then_some(weight * f)
        };
        let chi_square = discrepancy.and_then(|f| bartlett(f, q));
        let at_floor = fit.report.warnings.iter().any(|w| matches!(w, Warning::NoiseAtFloor { .. }));
        let p_value = match (chi_square, df) {
            (Some(statistic), Some(df)) if !at_floor => {
                Some(ChiSquared::new(df).expect("df is above 0").sf(statistic.max(0.0)))
            }
            _ => None,
        };
        // Without factors C = diag S, so F₀ = −ln|R|.
        let null_df = d * (d - 1.0) / 2.0;
        let null = ln_det.and_then(|s| bartlett(-s.correlation, 0.0));
        let indices = match (chi_square, df, null) {
            (Some(t), Some(df), Some(t0)) if t0 > null_df => Some((t, df, t0)),
            _ => None,
        };
        Ok(Self {
            communalities,
            uniquenesses,
            communality_shares,
            log_likelihood,
            aic: 2.0 * parameters - 2.0 * log_likelihood,
            bic: parameters * n.ln() - 2.0 * log_likelihood,
            degrees_of_freedom,
            discrepancy,
            chi_square,
            p_value,
            rmsea: discrepancy.zip(df).map(|(f, df)| Rmsea::new(f, df, n - 1.0)),
            tli: indices.map(|(t, df, t0)| (t0 / null_df - t / df) / (t0 / null_df - 1.0)),
            cfi: indices.map(|(t, df, t0)| 1.0 - (t - df).max(0.0) / (t0 - null_df).max(t - df)),
        })
    }
}

/// `ln|S|` and `ln|R|`.
struct LnDet {
    covariance: f64,
    correlation: f64,
}

impl LnDet {
    /// `None` where S has no inverse.
    fn of(moments: &CentralMoments) -> Option<Self> {
        if moments.n_rows() <= moments.n_columns() {
            return None;
        }
        // Factorized on the correlation scale, where units cannot hide a singular matrix.
        let mut r = moments.covariance();
        let variances: Vec<f64> = (0..r.n_rows()).map(|j| r[(j, j)]).collect();
        let inverse: Vec<f64> = variances.iter().map(|v| 1.0 / v.sqrt()).collect();
        r.scale_rows(&inverse);
        r.scale_columns(&inverse);
        let correlation = Cholesky::new(&r)?.ln_det();
        Some(Self { covariance: correlation + variances.iter().map(|v| v.ln()).sum::<f64>(), correlation })
    }
}

impl Rmsea {
    fn new(discrepancy: f64, df: f64, weight: f64) -> Self {
        let statistic = weight * discrepancy.max(0.0);
        let of = |noncentrality: f64| (noncentrality.max(0.0) / (df * weight)).sqrt();
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
