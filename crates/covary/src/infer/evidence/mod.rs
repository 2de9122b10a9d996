//! Bayesian PCA by type-II maximum likelihood: components that the data do not support are dropped
//! [M 1.7].

mod ascent;
mod scalar;
#[cfg(test)]
mod tests;

pub use scalar::RelevantComponents;

use super::Estimator;
use super::options::{options, words};
use super::report::{Fit, FitReport, ObjectiveKind, Observer, Warning};
use super::spectral::{Spectral, Spectrum};
use crate::spec::NoiseFamily;
use crate::{Dataset, Error, LinearGaussian, Spec};

options! {
    /// Probabilistic PCA whose columns of W have their own, estimated precisions αᵢ:
    ///
    /// ```text
    /// W_·i ~ N(0, I/αᵢ)        J = ℓ + ln p(W | α)
    /// ```
    ///
    /// A component whose precision runs away is dropped, so [`Spec::n_components`] is the most there may
    /// be, and the model may have fewer, down to none. A complete table takes one spectrum and two scalar
    /// equations; one with gaps is climbed.
    ///
    /// [`FitReport::relevance`] has α in one over the squared unit of the table (of the standardized
    /// table, if [`Spec::standardize`]), in ascending order: the first component counts most. The trace begins where
    /// the last component was dropped, since densities over different numbers of loadings do not compare.
    ///
    /// ```
    /// use covary::{data::simulate, infer::Evidence, Estimator, Spec};
    /// let (table, _) = simulate::rotated(200, &[5.0, 4.0, 1.0, 1.0, 1.0, 1.0], /* seed */ 1);
    /// let whole = Evidence::default().fit(&table, &Spec::ppca(5))?;
    /// assert_eq!(whole.model.n_components(), 2);                       // five were allowed
    /// let gaps = Evidence::default().fit(&simulate::hide(&table, 0.1, /* seed */ 2), &Spec::ppca(5))?;
    /// assert_eq!(gaps.model.n_components(), 2);
    /// assert!(gaps.report.relevance[0] < gaps.report.relevance[1]);
    /// # Ok::<(), covary::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct Evidence {
        /// How α follows from W. The default is the simple rule: it climbs one objective, and where
        /// components are dropped there is a gap between the kept and the dropped.
        pub rule: AlphaRule = AlphaRule::Simple,
        /// Most steps of a fit with gaps, counted over all prunings. The default, 2000, is that of
        /// [`Em`](super::Em).
        pub max_iterations: usize = 2000,
        /// With gaps: stop when J is estimated to move by less than this many nats [M 1.4.5]. 0 makes
        /// all steps.
        pub tolerance: f64 = 1e-6,
    }
}

/// Rows' worth of cells per column beyond which a start that explains every row is left again: 1000 ×
/// 10 tables with 40 % gaps end at their four signals from 9 candidates, too.
const AMPLE: usize = 10;

/// How the precisions follow from the loadings [M 1.7.2].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlphaRule {
    /// `αᵢ = d / ‖W_·i‖²`: the joint maximum over W and ln α.
    Simple,
    /// `αᵢ = γᵢ / ‖W_·i‖²` with the effective number of parameters `γᵢ = d − αᵢ tr H⁻¹` (MacKay
    /// 1992): the spread of W counts too, and a little less is dropped. J may fall on the way.
    EffectiveNumber,
}

words!(
    AlphaRule { Simple = "simple", EffectiveNumber = "effective-number" },
    "simple or effective-number"
);

impl Estimator for Evidence {
    type Model = LinearGaussian;

    fn fit_observed(&self, data: &Dataset, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        spec.check_method("evidence", NoiseFamily::Isotropic)?;
        spec.check(data)?;
        if !(self.tolerance >= 0.0 && self.tolerance.is_finite()) {
            let value = self.tolerance;
            return Err(Error::OutOfRange { name: "tolerance", value, bound: "finite and not negative" });
        }
        // Rows of only gaps do not count.
        let cells = data.n_informative_rows() * data.n_columns();
        if data.n_observed() < cells {
            return self.climb(data, spec, observer);
        }
        let most = most_components(data, spec);
        let (spectrum, constant) = Spectral::default().checked_spectrum(data, spec, most)?;
        let mut fit = self.fit_spectrum(&spectrum, spec)?;
        fit.report.warnings.extend(constant);
        Ok(fit)
    }
}

impl Evidence {
    /// The components of a complete table that are worth their precision.
    ///
    /// # Errors
    /// [`Error::DegenerateNoise`] if the candidates leave no variance for the noise.
    ///
    /// ```
    /// use covary::{data::simulate, infer::{Evidence, Spectral}};
    /// let (table, _) = simulate::rotated(100, &[5.0, 4.0, 3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], /* seed */ 1);
    /// let spectrum = Spectral::default().spectrum(&table, /* all */ 10, false)?;
    /// let found = Evidence::default().components(&spectrum, /* at most */ 9)?;
    /// assert_eq!(found.n_components(), 4);
    /// // ln p(table | α, σ²), W integrated out by Laplace's method:
    /// assert!(found.log_evidence(&spectrum)?.is_some_and(f64::is_finite));
    /// # Ok::<(), covary::Error>(())
    /// ```
    pub fn components(
        &self,
        spectrum: &Spectrum,
        max_components: usize,
    ) -> Result<RelevantComponents, Error> {
        scalar::solve(self.rule, spectrum, max_components, None)
    }

    fn fit_spectrum(&self, spectrum: &Spectrum, spec: &Spec) -> Result<Fit, Error> {
        let found = scalar::solve(self.rule, spectrum, spec.n_components, spec.noise_floor)?;
        let mut warnings = Vec::new();
        if found.at_floor {
            warnings.push(Warning::NoiseAtFloor { columns: vec!["all columns".to_owned()] });
        }
        let value = found.log_posterior(spectrum);
        let report = FitReport {
            relevance: found.relevance.clone(),
            ..FitReport::closed_form(ObjectiveKind::LogPosterior, value, warnings)
        };
        let model = spectrum.model(&found.model_variances, found.noise_variance, spec)?;
        Ok(Fit { model, draws: None, report })
    }
}

/// Candidates to begin with: as asked, but no more than half the rows of a complete table, or a
/// third of the rows' worth of cells of one with gaps. Where σ² begins near 0 it stays there and
/// everything is kept ([M 1.7.3], [M 1.7.6]).
///
/// Nor, below [`AMPLE`] such rows per column, more than a row has cells: as many components
/// explain every row without noise. Of 100 × 10 tables with four signals and 40 % gaps (6 cells a
/// row, 60 rows' worth), 7 candidates end at 4 in all but a few and 9 at 8 in half.
fn most_components(data: &Dataset, spec: &Spec) -> usize {
    let (n, d, cells) = (data.n_informative_rows(), data.n_columns(), data.n_observed());
    let room = match cells / d {
        rows if cells == n * d => (rows - 1) / 2,
        rows if rows < AMPLE * d => (rows / 3).min(cells / n),
        rows => rows / 3,
    };
    spec.n_components.min(d - 1).min(room)
}
