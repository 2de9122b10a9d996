//! Roads to a [`LinearGaussian`]: one file per algorithm, all behind [`Estimator`].
//!
//! A new algorithm is a new file here (an options struct and its `impl Estimator`), one arm of
//! [`Method`], and one line in the contract test's list.

mod em;
mod report;
mod spectral;

pub use em::{Acceleration, Em, Gradient, Init, LatentMoments};
pub use report::{Fit, FitReport, Objective, ObjectiveKind, Observer, Step, Termination, Warning};
pub use spectral::{Solver, Spectral, Spectrum};

use crate::spec::NoiseFamily;
use crate::{Dataset, Error, Spec};

/// How to fit. The request is a [`Spec`], the answer a [`Fit`].
pub trait Estimator {
    /// Fits, telling `observer` after every step; it may stop the fit, which is then returned as
    /// far as it got.
    ///
    /// # Errors
    /// When the table or the request is refused; see the variants of [`Error`].
    fn fit_observed(&self, data: &Dataset, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error>;

    /// Fits.
    ///
    /// # Errors
    /// When the table or the request is refused; see the variants of [`Error`].
    fn fit(&self, data: &Dataset, spec: &Spec) -> Result<Fit, Error> {
        self.fit_observed(data, spec, &mut ())
    }
}

/// Every road by name, for command lines and files.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Method {
    /// [`Spectral`]: closed form, complete tables.
    Spectral(Spectral),
    /// [`Em`]: exact with gaps.
    Em(Em),
}

impl Method {
    /// The road's name, as users type it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Spectral(_) => "spectral",
            Self::Em(_) => "em",
        }
    }

    /// The road of that name with its default options.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Spectral(Spectral::default()), Self::Em(Em::default())].into_iter().find(|m| m.name() == name)
    }

    /// The road the spec recommends (§12): closed form where there is one, EM otherwise.
    pub fn recommended(data: &Dataset, spec: &Spec) -> Self {
        let closed_form = data.is_complete() && spec.prior.is_flat();
        match spec.noise {
            NoiseFamily::Isotropic if closed_form => Self::Spectral(Spectral::default()),
            _ => Self::Em(Em::default()),
        }
    }
}

impl Estimator for Method {
    fn fit_observed(&self, data: &Dataset, spec: &Spec, observer: &mut dyn Observer) -> Result<Fit, Error> {
        match self {
            Self::Spectral(m) => m.fit_observed(data, spec, observer),
            Self::Em(m) => m.fit_observed(data, spec, observer),
        }
    }
}
