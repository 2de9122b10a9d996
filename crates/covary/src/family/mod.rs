//! The families of models: one table, a file per family.
//!
//! A family says what it is called, what is fitted and by which methods, how the number of components is chosen
//! where it was left open, how it is fitted again to be checked, and which questions it answers. The command's help,
//! the Python classes and model files read this table or are tested against it; no name of a family is compared as
//! text anywhere else.
//!
//! ```
//! use covary::family::Family;
//! let family: Family = "fa".parse()?;
//! assert_eq!(family.words(), "factor analysis");
//! assert_eq!(family.methods()[0], "newton");
//! assert!("fb".parse::<Family>().is_err());
//! # Ok::<(), covary::Error>(())
//! ```

mod bpca;
mod choice;
mod fa;
mod gaussian;
mod gfa;
mod gmm;
mod ica;
mod method;
mod mfa;
mod mppca;
mod pca;
mod pcca;
mod ppca;
mod request;

pub use choice::{Choice, Grounds, MOST_OFFERED, MOST_TRIED, SIGNIFICANT};
pub use method::AnyMethod;
pub use mppca::{MOST_COMPONENTS, MOST_MIXTURES};
pub use request::{Classes, Components, Request, View};

use crate::model::{Coordinates, Reconstruction};
use crate::{Dataset, Error, LinearGaussian, Method, Spec};
use std::fmt;
use std::str::FromStr;

/// What a model of a family is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One linear-Gaussian model.
    Linear,
    /// Several of them, each with its share of the rows.
    Mixture,
    /// Independent sources.
    Sources,
}

/// What sets a family apart. Whatever is not said is what most families have.
pub(crate) trait Entry: Sync {
    /// As users type it and files keep it.
    fn name(&self) -> &'static str;

    /// What it is, in words.
    fn words(&self) -> &'static str;

    /// One or two sentences for a list of families.
    fn summary(&self) -> &'static str;

    fn kind(&self) -> Kind {
        Kind::Linear
    }

    /// The methods that lead to a model of this family; the first is the one taken where nothing else decides.
    fn methods(&self) -> &'static [&'static str];

    /// The method for a table where none was asked for.
    fn default_method(&self, data: &Dataset, spec: &Spec) -> AnyMethod {
        Method::recommended(data, spec).into()
    }

    /// Whether columns get unit variance unless something else was asked for.
    fn standardizes(&self) -> bool {
        true
    }

    /// What is fitted, except for the number of components and the sizes of views.
    fn spec(&self, standardize: bool) -> Spec {
        Spec { standardize, ..Spec::ppca(1) }
    }

    /// How many views it has: the fewest, the most, and both in words; `None` if it has no views.
    fn views(&self) -> Option<(usize, usize, &'static str)> {
        None
    }

    /// The number of components where it was left open.
    fn choose(&self, request: &Request, data: &Dataset, method: &AnyMethod, watch: &Progress<'_>) -> Chosen {
        choice::by_hidden_cells(request, data, method, watch)
    }

    /// Most components that so many columns can determine.
    fn most(&self, request: &Request, data: &Dataset) -> usize {
        request.spec().max_components(data.n_columns())
    }

    /// The number of components that was asked for, if the family can have it.
    fn allowed(&self, _: &Request, _: &Dataset, asked: usize) -> Result<usize, Error> {
        Ok(asked)
    }

    /// Whether rows can be modeled class by class.
    fn has_classes(&self) -> bool {
        false
    }

    /// The components to show of a model that was asked for with `asked` components.
    fn n_shown(&self, model: &LinearGaussian, _asked: usize) -> usize {
        model.n_components()
    }

    /// The scores of a row unless others are asked for.
    fn coordinates(&self, _rotated: bool) -> Coordinates {
        Coordinates::Posterior
    }

    /// What a row is reconstructed by unless something else is asked for; `None` if a view is predicted from the
    /// other instead.
    fn reconstruction(&self) -> Option<Reconstruction> {
        Some(Reconstruction::PosteriorMean)
    }
}

/// Told how many of how many fits are done.
pub(crate) type Progress<'a> = dyn Fn(usize, usize) -> std::ops::ControlFlow<()> + Sync + 'a;
/// A number of components and the grounds for it.
pub(crate) type Chosen = Result<Choice, Error>;

/// One line per family gives it its variant and its entry.
macro_rules! families {
    ($($(#[$doc:meta])* $family:ident = $entry:path;)*) => {
        /// A family of models.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Family {
            $($(#[$doc])* $family,)*
        }

        impl Family {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$family),*];

            pub(crate) fn entry(self) -> &'static dyn Entry {
                match self {
                    $(Self::$family => &$entry,)*
                }
            }
        }
    };
}

families! {
    /// Principal components: scores are projections, in the units of the table.
    Pca = pca::Pca;
    /// Probabilistic PCA: one noise variance for all columns.
    Ppca = ppca::Ppca;
    /// Factor analysis: a noise variance for each column.
    Fa = fa::Fa;
    /// Bayesian PCA: components that are not needed are dropped.
    Bpca = bpca::Bpca;
    /// A Gaussian with a full covariance, which no number of components restricts.
    Gaussian = gaussian::Gaussian;
    /// Probabilistic canonical correlation: what two views of the same rows share.
    Pcca = pcca::Pcca;
    /// Group factor analysis: components that any of several views share.
    Gfa = gfa::Gfa;
    /// A mixture of probabilistic PCAs.
    Mppca = mppca::Mppca;
    /// A mixture of factor analyzers.
    Mfa = mfa::Mfa;
    /// A mixture of Gaussians with full covariances.
    Gmm = gmm::Gmm;
    /// Independent components.
    Ica = ica::Ica;
}

impl Family {
    /// As users type it and files keep it.
    pub fn name(self) -> &'static str {
        self.entry().name()
    }

    /// What it is, in words.
    pub fn words(self) -> &'static str {
        self.entry().words()
    }

    /// One or two sentences for a list of families.
    pub fn summary(self) -> &'static str {
        self.entry().summary()
    }

    /// What its models are made of.
    pub fn kind(self) -> Kind {
        self.entry().kind()
    }

    /// The names of the methods that lead to a model of this family.
    pub fn methods(self) -> &'static [&'static str] {
        self.entry().methods()
    }

    /// Whether it is a model of several views.
    pub fn has_views(self) -> bool {
        self.entry().views().is_some()
    }

    /// Whether a model can be fitted to each class of rows.
    pub fn has_classes(self) -> bool {
        self.entry().has_classes()
    }

    /// The names of all families, or of those for which `suits` holds, in the order of the table.
    pub fn names(suits: impl Fn(Self) -> bool) -> Vec<&'static str> {
        Self::ALL.iter().filter(|family| suits(**family)).map(|family| family.name()).collect()
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Family {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.iter().find(|family| family.name() == name);
        found.copied().ok_or_else(|| Error::NoSuchFamily {
            name: name.to_owned(),
            known: Self::names(|_| true).join(", "),
        })
    }
}
