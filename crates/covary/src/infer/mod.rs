//! Inference methods for a [`LinearGaussian`]: one file per algorithm, all behind [`Estimator`].
//!
//! A new algorithm is a new file here (its `options!` and its `impl Estimator`),
//! one line of [`Method`], and one line in the contract test's list.

mod bach_jordan;
mod class_conditional;
mod conditional_maximization;
mod diagnostics;
mod elastic_net;
mod em;
mod evidence;
mod factor_problem;
mod factor_report;
mod fixed_point;
mod full_covariance;
mod gibbs;
#[cfg(test)]
mod golden;
mod incremental;
mod lbfgs;
mod minka;
mod mixture;
mod newton;
pub(crate) mod options;
pub(crate) mod pass;
mod penalized_decomposition;
mod principal_axes;
mod report;
mod scatter;
mod share;
mod shared_private;
mod sparse_axes;
mod sparse_cca;
mod sparse_coding;
mod spectral;
mod student_t;
mod variational;

pub use bach_jordan::BachJordan;
pub use class_conditional::ClassConditional;
pub use conditional_maximization::ConditionalMaximization;
pub use diagnostics::{ChainSummary, effective_sample_size, split_r_hat};
pub use elastic_net::{ElasticNet, SparseAxes};
pub(crate) use em::moments::{quadratic, solve_spd};
pub use em::{Acceleration, Em, Gradient, Init, LatentMoments, Nonzero, OnlineEm, PathPoint, SparseEm};
pub(crate) use em::{
    PilotStart,
    squarem::extrapolated,
    stop::{Aitken, Ascent},
};
pub use evidence::{AlphaRule, Evidence, RelevantComponents};
pub use factor_report::{FactorReport, Reference, Rmsea, Untested};
pub use fixed_point::FixedPoint;
pub use full_covariance::FullCovariance;
pub(crate) use full_covariance::{ParameterPosterior, informative_rows};
pub use gibbs::{Gibbs, GibbsState};
pub use incremental::Incremental;
pub use mixture::{MixtureEm, MixtureInit, Stop, Update};
pub use newton::Newton;
pub use options::MethodRecord;
pub use pass::{Rows, State, Sums, Task};
pub use penalized_decomposition::{PenalizedDecomposition, SparseProduct};
pub use principal_axes::{Kept, PrincipalAxes};
pub(crate) use report::stop_flag;
pub use report::{Fit, FitReport, Monitored, Objective, ObjectiveKind, Observer, Step, Termination, Warning};
pub(crate) use scatter::scatter_times;
pub use shared_private::SharedPrivate;
pub use sparse_cca::{Penalties, SparseCanonical, SparseCca, TriedPenalty};
pub use sparse_coding::{SparseCoding, SparseComponents};
pub use spectral::{Solver, Spectral, Spectrum};
pub use student_t::{DegreesOfFreedom, StudentT};
pub(crate) use variational::edge_of;
pub use variational::{MeanField, SpikeSlab, Structured};

use crate::spec::NoiseFamily;
use crate::{Dataset, Error, LinearGaussian, Spec};

/// How to fit. The request is a [`Spec`], the answer a [`Fit`] of the model that the method leads to.
pub trait Estimator {
    /// What is fitted: one [`LinearGaussian`], or a [`Mixture`](crate::model::Mixture) of them.
    type Model;

    /// Fits, telling `observer` after every step; it may stop the fit, which is then returned as
    /// far as it got.
    ///
    /// # Errors
    /// When the table or the request is refused; see the variants of [`Error`].
    fn fit_observed(
        &self,
        data: &Dataset,
        spec: &Spec,
        observer: &mut dyn Observer,
    ) -> Result<Fit<Self::Model>, Error>;

    /// Fits rows that are gone through by passes, wherever they are: to those of a table in memory the fit is that of
    /// [`fit_observed`](Self::fit_observed), bit for bit. [`Em`], [`FullCovariance`], [`Structured`], [`MeanField`] and [`MixtureEm`]
    /// can; others need the table in memory.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), [`Error::NotInMemory`] of a method that cannot, and what keeps the rows from being gone
    /// through.
    fn fit_rows(
        &self,
        rows: &dyn Rows,
        spec: &Spec,
        observer: &mut dyn Observer,
    ) -> Result<Fit<Self::Model>, Error> {
        match rows.in_memory() {
            Some(data) => self.fit_observed(data, spec, observer),
            None => Err(Error::NotInMemory { what: "this method".to_owned(), instead: BY_PASSES }),
        }
    }

    /// Fits.
    ///
    /// # Errors
    /// When the table or the request is refused; see the variants of [`Error`].
    fn fit(&self, data: &Dataset, spec: &Spec) -> Result<Fit<Self::Model>, Error> {
        self.fit_observed(data, spec, &mut ())
    }
}

/// The methods that go through rows by passes.
pub(crate) const BY_PASSES: &str =
    "method `em`, `full-covariance`, `structured`, `mean-field` or `mixture-em`";

/// One line per method gives it its arm, its name, its options and its dispatch.
macro_rules! estimators {
    ($($(#[$doc:meta])* $method:ident = $name:literal;)*) => {
        options::methods! {
            /// Every method by name, for command lines and files.
            ///
            /// ```
            /// use covary::Method;
            /// let mut method = Method::from_name("em").unwrap();
            /// method.set("max_iterations", "50")?;
            /// assert_eq!(method.options()["max_iterations"], "50");
            /// let refused = Method::from_name("spectral").unwrap().set("max_iterations", "50").unwrap_err();
            /// assert_eq!(refused.to_string(), "spectral has no option `max_iterations`; it has seed, solver");
            /// # Ok::<(), covary::Error>(())
            /// ```
            #[non_exhaustive]
            pub enum Method { $($(#[$doc])* $method($method) = $name;)* }
        }

        impl Estimator for Method {
            type Model = LinearGaussian;

            fn fit_observed(
                &self,
                data: &Dataset,
                spec: &Spec,
                observer: &mut dyn Observer,
            ) -> Result<Fit, Error> {
                match self {
                    $(Self::$method(method) => method.fit_observed(data, spec, observer),)*
                }
            }

            fn fit_rows(
                &self,
                rows: &dyn Rows,
                spec: &Spec,
                observer: &mut dyn Observer,
            ) -> Result<Fit, Error> {
                match self {
                    $(Self::$method(method) => method.fit_rows(rows, spec, observer),)*
                }
            }
        }
    };
}

estimators! {
    /// [`Spectral`]: probabilistic PCA of a complete table, in closed form.
    Spectral = "spectral";
    /// [`Newton`]: factor analysis of a complete table.
    Newton = "newton";
    /// [`ConditionalMaximization`]: factor analysis of a complete table, by turns.
    ConditionalMaximization = "cm";
    /// [`FixedPoint`]: factor analysis of a complete table, by the iteration of scikit-learn.
    FixedPoint = "fixed-point";
    /// [`Em`]: exact with gaps.
    Em = "em";
    /// [`StudentT`]: rows of heavy tails, exact with gaps.
    StudentT = "student-t";
    /// [`SparseEm`]: sparse loadings, exact with gaps.
    SparseEm = "sparse-em";
    /// [`FullCovariance`]: a Gaussian with any covariance, exact with gaps.
    FullCovariance = "full-covariance";
    /// [`Structured`]: Bayesian PCA, loadings, mean and noise together.
    Structured = "structured";
    /// [`MeanField`]: Bayesian PCA and factor analysis, every factor apart.
    MeanField = "mean-field";
    /// [`SpikeSlab`]: Bayesian PCA that selects columns, exact with gaps.
    SpikeSlab = "spike-slab";
    /// [`Evidence`]: Bayesian PCA by type-II maximum likelihood, which drops components.
    Evidence = "evidence";
    /// [`Gibbs`]: draws from the posterior, complete or with gaps.
    Gibbs = "gibbs";
    /// [`BachJordan`]: canonical correlation of two complete views, in closed form.
    BachJordan = "bach-jordan";
    /// [`SharedPrivate`]: components that views share and private ones, exact with gaps.
    SharedPrivate = "shared-private";
}

impl Method {
    /// Whether it goes through rows by passes, wherever they are.
    pub fn goes_by_passes(&self) -> bool {
        matches!(self, Self::Em(_) | Self::FullCovariance(_) | Self::Structured(_) | Self::MeanField(_))
    }

    /// The method the spec recommends [M 1.12]: closed form where there is one, Newton for factor
    /// analysis of a complete table, EM otherwise.
    pub fn recommended(data: &Dataset, spec: &Spec) -> Self {
        let unpenalized = data.is_complete() && spec.prior.is_flat();
        match spec.noise {
            NoiseFamily::Isotropic if unpenalized => Self::Spectral(Spectral::default()),
            NoiseFamily::Diagonal if unpenalized => Self::Newton(Newton::default()),
            _ => Self::Em(Em::default()),
        }
    }
}
