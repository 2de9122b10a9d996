//! A method of any family.

use crate::dynamics::DynamicEm;
use crate::functional::FunctionalEm;
use crate::ica;
use crate::infer::{MethodRecord, MixtureEm};
use crate::{Error, Method};
use std::collections::BTreeMap;

/// A method of any family, by whichever kind of model it leads to.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyMethod {
    /// To one linear-Gaussian model.
    Linear(Method),
    /// To a mixture of them.
    Mixture(MixtureEm),
    /// To independent sources.
    Sources(ica::Method),
    /// To factors in time.
    Dynamic(DynamicEm),
    /// To curves.
    Functional(FunctionalEm),
}

impl From<Method> for AnyMethod {
    fn from(method: Method) -> Self {
        Self::Linear(method)
    }
}

impl From<MixtureEm> for AnyMethod {
    fn from(method: MixtureEm) -> Self {
        Self::Mixture(method)
    }
}

impl From<ica::Method> for AnyMethod {
    fn from(method: ica::Method) -> Self {
        Self::Sources(method)
    }
}

impl From<DynamicEm> for AnyMethod {
    fn from(method: DynamicEm) -> Self {
        Self::Dynamic(method)
    }
}

impl From<FunctionalEm> for AnyMethod {
    fn from(method: FunctionalEm) -> Self {
        Self::Functional(method)
    }
}

impl From<&AnyMethod> for MethodRecord {
    fn from(method: &AnyMethod) -> Self {
        match method {
            AnyMethod::Linear(method) => method.into(),
            AnyMethod::Mixture(method) => method.into(),
            AnyMethod::Sources(method) => method.into(),
            AnyMethod::Dynamic(method) => method.into(),
            AnyMethod::Functional(method) => method.into(),
        }
    }
}

impl AnyMethod {
    /// The method of that name with its default options.
    pub fn from_name(name: &str) -> Option<Self> {
        let linear = || Method::from_name(name).map(Self::Linear);
        let mixture = || (name == MixtureEm::NAME).then(|| Self::Mixture(MixtureEm::default()));
        let sources = || ica::Method::from_name(name).map(Self::Sources);
        let dynamic = || (name == DynamicEm::NAME).then(|| Self::Dynamic(DynamicEm::default()));
        let curves = || (name == FunctionalEm::NAME).then(|| Self::Functional(FunctionalEm::default()));
        linear().or_else(mixture).or_else(sources).or_else(dynamic).or_else(curves)
    }

    /// The names of all methods.
    pub fn names() -> Vec<&'static str> {
        let others = [&MixtureEm::NAME, &DynamicEm::NAME, &FunctionalEm::NAME];
        Method::NAMES.iter().chain(&ica::Method::NAMES).chain(others).copied().collect()
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Linear(method) => method.name(),
            Self::Mixture(_) => MixtureEm::NAME,
            Self::Sources(method) => method.name(),
            Self::Dynamic(_) => DynamicEm::NAME,
            Self::Functional(_) => FunctionalEm::NAME,
        }
    }

    /// Every option by name, its value as text.
    pub fn options(&self) -> BTreeMap<&'static str, String> {
        match self {
            Self::Linear(method) => method.options(),
            Self::Mixture(method) => method.options(),
            Self::Sources(method) => method.options(),
            Self::Dynamic(method) => method.options(),
            Self::Functional(method) => method.options(),
        }
    }

    /// Sets the option called `name`.
    ///
    /// # Errors
    /// As [`Method::set`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        match self {
            Self::Linear(method) => method.set(name, value),
            Self::Mixture(method) => method.set(name, value),
            Self::Sources(method) => method.set(name, value),
            Self::Dynamic(method) => method.set(name, value),
            Self::Functional(method) => method.set(name, value),
        }
    }

    /// The method of one linear-Gaussian model.
    pub(crate) fn linear(&self) -> Result<&Method, Error> {
        match self {
            Self::Linear(method) => Ok(method),
            other => Err(other.misplaced("one linear-Gaussian model")),
        }
    }

    /// The method of a mixture.
    pub(crate) fn mixture(&self) -> Result<&MixtureEm, Error> {
        match self {
            Self::Mixture(method) => Ok(method),
            other => Err(other.misplaced("a mixture")),
        }
    }

    /// The method of independent sources.
    pub(crate) fn sources(&self) -> Result<&ica::Method, Error> {
        match self {
            Self::Sources(method) => Ok(method),
            other => Err(other.misplaced("independent sources")),
        }
    }

    /// The method of factors in time.
    pub(crate) fn dynamic(&self) -> Result<&DynamicEm, Error> {
        match self {
            Self::Dynamic(method) => Ok(method),
            other => Err(other.misplaced("factors in time")),
        }
    }

    /// The method of curves.
    pub(crate) fn functional(&self) -> Result<&FunctionalEm, Error> {
        match self {
            Self::Functional(method) => Ok(method),
            other => Err(other.misplaced("curves")),
        }
    }

    fn misplaced(&self, what: &'static str) -> Error {
        Error::Unsupported { method: self.name(), what, instead: "a method of the family" }
    }

    /// Whether the method drops components that the table does not support.
    pub fn prunes(&self) -> bool {
        matches!(self, Self::Linear(Method::Structured(_) | Method::MeanField(_) | Method::Evidence(_)))
    }
}
