//! A method of any family.

use crate::dynamics::DynamicEm;
use crate::functional::FunctionalEm;
use crate::ica;
use crate::infer::{MethodRecord, MixtureEm};
use crate::{Error, Method};
use std::collections::BTreeMap;

/// One line for each kind of model gives it and its methods their variants, and all that is asked of methods by name.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($method:path) = $own:ident, $words:literal;)*) => {
        /// What a model of a family is made of.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        /// A method of any family, by whichever kind of model it leads to.
        #[derive(Debug, Clone, PartialEq)]
        pub enum AnyMethod {
            $($(#[$doc])* $kind($method),)*
        }

        $(impl From<$method> for AnyMethod {
            fn from(method: $method) -> Self {
                Self::$kind(method)
            }
        })*

        impl From<&AnyMethod> for MethodRecord {
            fn from(method: &AnyMethod) -> Self {
                match method {
                    $(AnyMethod::$kind(method) => method.into(),)*
                }
            }
        }

        impl AnyMethod {
            /// The method of that name with its default options.
            pub fn from_name(name: &str) -> Option<Self> {
                None$(.or_else(|| <$method>::from_name(name).map(Self::$kind)))*
            }

            /// The names of all methods.
            pub fn names() -> Vec<&'static str> {
                [$(<$method>::NAMES),*].concat()
            }

            /// Its name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$kind(method) => method.name(),)*
                }
            }

            /// Every option by name, its value as text.
            pub fn options(&self) -> BTreeMap<&'static str, String> {
                match self {
                    $(Self::$kind(method) => method.options(),)*
                }
            }

            /// Sets the option called `name`.
            ///
            /// # Errors
            /// As [`Method::set`].
            pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
                match self {
                    $(Self::$kind(method) => method.set(name, value),)*
                }
            }

            $(
                #[doc = concat!("The method of ", $words, ".")]
                pub(crate) fn $own(&self) -> Result<&$method, Error> {
                    match self {
                        Self::$kind(method) => Ok(method),
                        other => Err(other.misplaced($words)),
                    }
                }
            )*
        }
    };
}

kinds! {
    /// One linear-Gaussian model.
    Linear(Method) = linear, "one linear-Gaussian model";
    /// Independent sources.
    Sources(ica::Method) = sources, "independent sources";
    /// Several linear-Gaussian models, each with its share of the rows.
    Mixture(MixtureEm) = mixture, "a mixture";
    /// Factors that follow each other in time.
    Dynamic(DynamicEm) = dynamic, "factors in time";
    /// Curves at times of their own.
    Functional(FunctionalEm) = functional, "curves";
}

impl AnyMethod {
    fn misplaced(&self, what: &'static str) -> Error {
        Error::Unsupported { method: self.name(), what, instead: "a method of the family" }
    }

    /// Whether it goes through rows by passes, wherever they are.
    pub fn goes_by_passes(&self) -> bool {
        match self {
            Self::Linear(method) => method.goes_by_passes(),
            Self::Mixture(method) => method.needs_memory().is_none(),
            _ => false,
        }
    }

    /// Whether the method drops components that the table does not support.
    pub fn prunes(&self) -> bool {
        matches!(self, Self::Linear(Method::Structured(_) | Method::MeanField(_) | Method::Evidence(_)))
    }
}
