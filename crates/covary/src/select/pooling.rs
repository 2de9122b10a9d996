use crate::Error;

/// One estimate and its uncertainty, pooled over imputations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pooled {
    /// Q̄, the mean of the estimates.
    pub estimate: f64,
    /// Ū, the mean of their variances.
    pub within: f64,
    /// B, the variance of the estimates (divisor m − 1): what the gaps cost.
    pub between: f64,
    /// T, the variance to report.
    pub total: f64,
    /// ν of the t distribution of the estimate; infinite when the imputations agree exactly.
    pub degrees_of_freedom: f64,
}

/// Pools a scalar estimated from each of `m` imputed tables by Rubin's (1987) rules.
///
/// ```text
/// T = Ū + (1 + 1/m) B        ν = (m − 1) (1 + Ū / ((1 + 1/m) B))²                   [M 1.5.4]
/// ```
///
/// ```
/// use covary::select::pool;
/// let pooled = pool(&[1.0, 2.0, 3.0], &[0.5, 0.5, 0.5])?;
/// assert_eq!((pooled.estimate, pooled.within, pooled.between), (2.0, 0.5, 1.0));
/// assert!(pooled.total > pooled.within);   // gaps never make an estimate more certain
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfRange`] for fewer than two imputations, or a variance that is negative or not
/// finite; [`Error::WrongLength`] unless there is one variance per estimate.
pub fn pool(estimates: &[f64], variances: &[f64]) -> Result<Pooled, Error> {
    let m = estimates.len() as f64;
    if estimates.len() < 2 {
        return Err(Error::OutOfRange { name: "the number of imputations", value: m, bound: "at least 2" });
    }
    if variances.len() != estimates.len() {
        return Err(Error::WrongLength {
            what: "variances to pool",
            expected: estimates.len(),
            got: variances.len(),
        });
    }
    if let Some(&value) = variances.iter().find(|v| !(v.is_finite() && **v >= 0.0)) {
        return Err(Error::OutOfRange {
            name: "a variance to pool",
            value,
            bound: "finite and not negative",
        });
    }
    if let Some(&value) = estimates.iter().find(|v| !v.is_finite()) {
        return Err(Error::OutOfRange { name: "an estimate to pool", value, bound: "finite" });
    }
    let estimate = estimates.iter().sum::<f64>() / m;
    let within = variances.iter().sum::<f64>() / m;
    let between = estimates.iter().map(|q| (q - estimate).powi(2)).sum::<f64>() / (m - 1.0);
    let from_gaps = (1.0 + 1.0 / m) * between;
    let degrees_of_freedom =
        if from_gaps > 0.0 { (m - 1.0) * (1.0 + within / from_gaps).powi(2) } else { f64::INFINITY };
    Ok(Pooled { estimate, within, between, total: within + from_gaps, degrees_of_freedom })
}
