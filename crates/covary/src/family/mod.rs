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
mod bspca;
mod choice;
mod dfm;
mod fa;
mod fpca;
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
mod spca;
mod tppca;

pub use choice::{Choice, Grounds, MOST_OFFERED, SIGNIFICANT};
pub use method::{AnyMethod, Kind};
pub use mppca::{MOST_COMPONENTS, MOST_MIXTURES};
pub use request::{Classes, Components, ForFilling, Request, View};

use crate::infer::MixtureEm;
use crate::model::{Coordinates, Reconstruction};
use crate::{Dataset, Error, LinearGaussian, Method, Spec};
use std::fmt;
use std::str::FromStr;

/// What the rows of a family's tables are to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrangement {
    /// They may be shuffled.
    Exchangeable,
    /// They follow each other in time.
    InTime,
    /// They are curves, or points of curves.
    Curves,
}

/// What sets a family apart: a file fills in what is its own and leaves the rest to [`LINEAR`], [`MIXTURE`] or another
/// family.
#[allow(clippy::struct_excessive_bools, reason = "a row of a table of facts")]
pub(crate) struct Entry {
    /// As users type it and files keep it.
    name: &'static str,
    /// What it is, in words.
    words: &'static str,
    /// One or two sentences for a list of families.
    summary: &'static str,
    kind: Kind,
    arrangement: Arrangement,
    /// The methods that lead to a model of this family.
    methods: &'static [&'static str],
    /// The method for a table where none was asked for.
    default_method: fn(&Dataset, &Spec) -> AnyMethod,
    /// Whether columns get unit variance unless something else was asked for.
    standardizes: bool,
    /// Whether that can be asked for.
    has_scale: bool,
    /// Whether the number of components can be asked for by the share of the variance that they explain.
    has_share: bool,
    /// What is fitted, to standardized columns or others, except for the number of components and the sizes of views.
    spec: fn(bool) -> Spec,
    /// How many views it has: the fewest, the most, and both in words; `None` if it has no views.
    views: Option<(usize, usize, &'static str)>,
    /// Whether a model can be fitted to each class of rows.
    has_classes: bool,
    /// Whether it is fitted again without hidden cells to be checked.
    has_check: bool,
    /// The number of components where it was left open.
    choose: fn(&Request, &Dataset, &AnyMethod, &Progress<'_>) -> Chosen,
    /// Most components that the columns can determine.
    most: fn(&Request, &Dataset) -> usize,
    /// The number of components that was asked for, if the family can have it.
    allowed: fn(&Request, &Dataset, usize) -> Result<usize, Error>,
    /// The components to show of a model, given the number that was asked for.
    pub(crate) n_shown: fn(&LinearGaussian, usize) -> usize,
    /// The scores of a row unless others are asked for; of a model that was rotated or not.
    pub(crate) coordinates: fn(bool) -> Coordinates,
    /// What a row is reconstructed by unless something else is asked for; `None` if a view is predicted from the
    /// other instead.
    pub(crate) reconstruction: Option<Reconstruction>,
    /// Whether its loadings may be rotated.
    rotates: bool,
    /// Whether rows have weights, the less the farther out they are.
    pub(crate) weighs_rows: bool,
}

/// What most families of one linear-Gaussian model have.
const LINEAR: Entry = Entry {
    name: "",
    words: "",
    summary: "",
    kind: Kind::Linear,
    arrangement: Arrangement::Exchangeable,
    methods: &[],
    default_method: |data, spec| Method::recommended(data, spec).into(),
    standardizes: true,
    has_scale: true,
    has_share: true,
    spec: |standardize| Spec { standardize, ..Spec::ppca(1) },
    views: None,
    has_classes: false,
    has_check: true,
    choose: choice::by_hidden_cells,
    most: |request, data| request.spec().max_components(data.n_columns()),
    allowed: |_, _, asked| Ok(asked),
    n_shown: |model, _| model.n_components(),
    coordinates: |_| Coordinates::Posterior,
    reconstruction: Some(Reconstruction::PosteriorMean),
    rotates: true,
    weighs_rows: false,
};

/// What mixtures have.
const MIXTURE: Entry = Entry {
    kind: Kind::Mixture,
    methods: &[MixtureEm::NAME],
    default_method: |_, _| MixtureEm::default().into(),
    has_share: false,
    choose: mppca::by_bic,
    rotates: false,
    ..LINEAR
};

/// Told how many of how many fits are done.
pub(crate) type Progress<'a> = dyn Fn(usize, usize) -> std::ops::ControlFlow<()> + Sync + 'a;
/// A number of components and the grounds for it.
pub(crate) type Chosen = Result<Choice, Error>;

/// One line per family gives it its variant and its entry.
macro_rules! families {
    ($($(#[$doc:meta])* $family:ident = $entry:ident;)*) => {
        /// A family of models.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Family {
            $($(#[$doc])* $family,)*
        }

        impl Family {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$family),*];

            pub(crate) fn entry(self) -> &'static Entry {
                match self {
                    $(Self::$family => &$entry::ENTRY,)*
                }
            }
        }
    };
}

families! {
    /// Principal components: scores are projections, in the units of the table.
    Pca = pca;
    /// Probabilistic PCA: one noise variance for all columns.
    Ppca = ppca;
    /// Probabilistic PCA of rows with heavy tails: Student's t.
    Tppca = tppca;
    /// Sparse probabilistic PCA: components of a few columns each.
    Spca = spca;
    /// Factor analysis: a noise variance for each column.
    Fa = fa;
    /// Bayesian PCA: components that are not needed are dropped.
    Bpca = bpca;
    /// Bayesian PCA that selects columns.
    Bspca = bspca;
    /// A Gaussian with a full covariance, which no number of components restricts.
    Gaussian = gaussian;
    /// Probabilistic canonical correlation: what two views of the same rows share.
    Pcca = pcca;
    /// Group factor analysis: components that any of several views share.
    Gfa = gfa;
    /// A mixture of probabilistic PCAs.
    Mppca = mppca;
    /// A mixture of factor analyzers.
    Mfa = mfa;
    /// A mixture of Gaussians with full covariances.
    Gmm = gmm;
    /// Independent components.
    Ica = ica;
    /// A dynamic factor model: rows that follow each other in time.
    Dfm = dfm;
    /// Functional PCA: curves at times of their own.
    Fpca = fpca;
}

impl Family {
    /// As users type it and files keep it.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// What it is, in words.
    pub fn words(self) -> &'static str {
        self.entry().words
    }

    /// One or two sentences for a list of families.
    pub fn summary(self) -> &'static str {
        self.entry().summary
    }

    /// What its models are made of.
    pub fn kind(self) -> Kind {
        self.entry().kind
    }

    /// What the rows of its tables are to each other.
    pub fn arrangement(self) -> Arrangement {
        self.entry().arrangement
    }

    /// The names of the methods that lead to a model of this family.
    pub fn methods(self) -> &'static [&'static str] {
        self.entry().methods
    }

    /// Whether it is a model of several views.
    pub fn has_views(self) -> bool {
        self.entry().views.is_some()
    }

    /// Whether a model can be fitted to each class of rows.
    pub fn has_classes(self) -> bool {
        self.entry().has_classes
    }

    /// Whether it is fitted again without hidden cells to be checked.
    pub fn has_check(self) -> bool {
        self.entry().has_check
    }

    /// Whether a method of it draws samples of the parameters, whose chains can be kept in a file.
    pub fn samples(self) -> bool {
        let samples = |name: &str| matches!(Method::from_name(name), Some(Method::Gibbs(_)));
        self.methods().iter().any(|name| samples(name))
    }

    /// The names of all families for which `suits` holds, in the order of the table: `pca, ppca or fa`.
    pub fn names(suits: impl Fn(Self) -> bool) -> String {
        let names: Vec<&str> = Self::ALL.iter().filter(|f| suits(**f)).map(|f| f.name()).collect();
        match names.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            _ => names.concat(),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl serde::Serialize for Family {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl FromStr for Family {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.iter().find(|family| family.name() == name);
        found
            .copied()
            .ok_or_else(|| Error::NoSuchFamily { name: name.to_owned(), known: Self::names(|_| true) })
    }
}
