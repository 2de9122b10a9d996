use crate::Error;
use crate::infer::Spectrum;

/// Likelihood against the number of parameters; smaller is better for all three.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InformationCriteria {
    /// ℓ, in nats.
    pub log_likelihood: f64,
    /// p, mean included.
    pub n_parameters: usize,
    /// `−2ℓ + 2p`
    pub aic: f64,
    /// `AIC + 2p(p+1)/(N−p−1)`; `None` unless `N > p + 1`.
    pub aicc: Option<f64>,
    /// `−2ℓ + p ln N`
    pub bic: f64,
}

/// AIC, AICc and BIC of any fit by maximum likelihood [M 1.8.1].
///
/// `n_rows` counts the rows with at least one observed cell
/// ([`Dataset::n_informative_rows`](crate::Dataset::n_informative_rows)).
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::Spectral, select::information_criteria, Density, Estimator, Spec};
/// let (table, _) = simulate::ppca(Shape { rows: 300, columns: 8, n_components: 2 }, /* seed */ 1);
/// let bic = |q| -> Result<f64, covary::Error> {
///     let model = Spectral::default().fit(&table, &Spec::ppca(q))?.model;
///     let ll = model.log_likelihood(&table)?;
///     Ok(information_criteria(ll, model.n_parameters(), table.n_informative_rows()).bic)
/// };
/// assert!(bic(2)? < bic(1)? && bic(2)? < bic(3)?);
/// # Ok::<(), covary::Error>(())
/// ```
pub fn information_criteria(log_likelihood: f64, n_parameters: usize, n_rows: usize) -> InformationCriteria {
    let (p, n) = (n_parameters as f64, n_rows as f64);
    let aic = -2.0 * log_likelihood + 2.0 * p;
    InformationCriteria {
        log_likelihood,
        n_parameters,
        aic,
        aicc: (n > p + 1.0).then(|| aic + 2.0 * p * (p + 1.0) / (n - p - 1.0)),
        bic: -2.0 * log_likelihood + p * n.ln(),
    }
}

/// Criteria of probabilistic PCA for every number of components, from one spectrum.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::Spectral, select::Criteria};
/// let (table, _) = simulate::ppca(Shape { rows: 200, columns: 8, n_components: 2 }, /* seed */ 1);
/// let spectrum = Spectral::default().spectrum(&table, /* all */ 8, false)?;
/// let criteria = Criteria::from_spectrum(&spectrum)?;
/// assert_eq!(criteria.chosen().evidence, Some(2));
/// assert_eq!(criteria.chosen().bic, 2);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Criteria {
    /// Entry q is the model with q components: q = 0, 1, … up to d − 1, or up to the last that
    /// leaves variance for the noise (beyond it the likelihood is unbounded).
    pub by_n_components: Vec<SpectrumCriteria>,
}

/// Criteria of one number of components.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpectrumCriteria {
    /// q.
    pub n_components: usize,
    /// AIC, AICc and BIC.
    pub information: InformationCriteria,
    /// Minka's (2000) Laplace approximation of `ln p(data | q)`, without the constants common to
    /// all q: compare it across q only; larger is better. `None` where a retained eigenvalue equals
    /// another one and the approximation is infinite.
    pub log_evidence: Option<f64>,
}

/// The number of components each criterion prefers; the smaller one in a tie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// By AIC.
    pub aic: usize,
    /// By AICc, among the models small enough to have one.
    pub aicc: Option<usize>,
    /// By BIC.
    pub bic: usize,
    /// By Minka's evidence: the default for complete tables.
    pub evidence: Option<usize>,
}

impl Criteria {
    /// From a spectrum with all its eigenvalues.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless the spectrum lists every eigenvalue, [`Error::AllConstant`] if
    /// there is no variance at all.
    pub fn from_spectrum(spectrum: &Spectrum) -> Result<Self, Error> {
        let d = spectrum.mean.len();
        if spectrum.eigenvalues.len() != d {
            return Err(Error::WrongLength {
                what: "eigenvalues in the spectrum (all are needed)",
                expected: d,
                got: spectrum.eigenvalues.len(),
            });
        }
        let by_n_components: Vec<SpectrumCriteria> = (0..d)
            .take_while(|&q| !spectrum.leaves_no_noise(q))
            .map(|q| {
                let log_likelihood = spectrum.log_likelihood(q, spectrum.noise_variance(q));
                let n_parameters = ppca_parameters(d, q);
                SpectrumCriteria {
                    n_components: q,
                    information: information_criteria(log_likelihood, n_parameters, spectrum.n_rows),
                    log_evidence: spectrum.log_evidence(q, spectrum.noise_variance(q)),
                }
            })
            .collect();
        if by_n_components.is_empty() {
            return Err(Error::AllConstant { columns: d });
        }
        Ok(Self { by_n_components })
    }

    /// The number of components each criterion prefers.
    pub fn chosen(&self) -> Chosen {
        let smallest = |of: &dyn Fn(&SpectrumCriteria) -> Option<f64>| {
            let candidates = self.by_n_components.iter().filter_map(|c| Some((of(c)?, c.n_components)));
            candidates.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, q)| q)
        };
        let always = "every entry has it and there is at least one";
        Chosen {
            aic: smallest(&|c| Some(c.information.aic)).expect(always),
            aicc: smallest(&|c| c.information.aicc),
            bic: smallest(&|c| Some(c.information.bic)).expect(always),
            evidence: smallest(&|c| c.log_evidence.map(|e| -e)),
        }
    }
}

/// Mean, noise, and W up to rotation [M 1.3.7].
pub(super) fn ppca_parameters(d: usize, q: usize) -> usize {
    d + 1 + d * q - q * q.saturating_sub(1) / 2
}
