//! Figures of linear-Gaussian models, as pure functions of a fit and a table: first the numbers, then
//! the drawing.
//!
//! Every kind of figure is a module of [`plot`] with a struct of numbers, which goes to and from JSON, a
//! function `numbers` that asks the library for them, and a function `draw` that makes an [`Svg`] of
//! them. The same numbers give the same bytes.
//!
//! ```
//! use covary::{data::{simulate, Shape}, learned::Learned, Estimator, Method, Spec};
//! use covary_report::{plot::hinton, Style};
//! let (table, _) = simulate::ppca(Shape { rows: 100, columns: 6, n_components: 2 }, /* seed */ 1);
//! let (spec, method) = (Spec::ppca(2), Method::from_name("spectral").unwrap());
//! let learned = Learned::of_fit(method.fit(&table, &spec)?, &table, &spec, &method);
//!
//! let numbers = hinton::numbers(&learned)?;
//! assert_eq!((numbers.columns.len(), numbers.n_components), (6, 2));
//! let svg = hinton::draw(&numbers, &Style::default());
//! assert!(svg.as_str().starts_with("<svg"));
//! # Ok::<(), covary_report::Error>(())
//! ```

pub mod chart;
pub mod dates;
mod layout;
pub mod page;
pub mod plot;
pub mod scale;
pub mod svg;
pub mod text;
pub mod theme;
mod widths;
pub mod words;

pub use svg::Svg;
pub use theme::Theme;

use covary::family::Family;

/// How a figure looks, whatever it shows.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Style {
    /// Light or dark.
    pub theme: Theme,
    /// Width in pixels; the kind's own if none.
    pub width: Option<f64>,
    /// Height in pixels; what the contents need if none.
    pub height: Option<f64>,
}

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The library refused.
    #[error(transparent)]
    Numbers(#[from] covary::Error),
    /// The figure shows components and there are none.
    #[error("the model has no components, so there is nothing to draw; fit with 1 component or more")]
    NoComponents,
    /// A component that the model does not have.
    #[error("there is no component {asked}: the model has {has}")]
    NoSuchComponent {
        /// The requested one, from 1.
        asked: usize,
        /// How many there are.
        has: usize,
    },
    /// The model has no prior that prunes.
    #[error("the model has no relevances: they come with a prior on components, as in Bayesian PCA")]
    NoRelevance,
    /// The model has no sparse loadings.
    #[error("the model has no path of penalties: it comes with sparse loadings")]
    NoPath,
    /// The model has no factors to interpret.
    #[error("the figure is of a factor analysis, or of rotated components, and this model is neither")]
    NoFactors,
    /// The model is of one table.
    #[error("the model has no views: they come with canonical correlation and group factor analysis")]
    NoViews,
    /// The figure is of a model of one table.
    #[error(
        "the figure `{kind}` is of a model of one table, and this one has views; the figure `views` shows them"
    )]
    OfViews {
        /// The kind.
        kind: &'static str,
    },
    /// No iteration was kept.
    #[error("the fit was in closed form, so there are no steps to draw; the method `em` is iterative")]
    NoTrace,
    /// Rows cannot be pictures of this shape.
    #[error(
        "{rows}x{columns} makes {cells} cells, and a row has {has}; give the shape of the image of one row"
    )]
    WrongShape {
        /// Rows requested.
        rows: usize,
        /// Columns requested.
        columns: usize,
        /// Their product.
        cells: usize,
        /// Columns of the table.
        has: usize,
    },
    /// There is no second axis.
    #[error("the mixture has one column, and the figure needs two; fit more columns")]
    OneColumn,
    /// No row can be put on the map.
    #[error("no row has a latitude from -90 to 90, a longitude from -180 to 360, and a value")]
    NoPlaces,
}

impl Error {
    /// What the caller can ask for differently, as data that each interface says in its own words.
    pub fn remedies(&self) -> Vec<Remedy> {
        match self {
            Self::Numbers(error) => error.remedies().into_iter().map(Remedy::Library).collect(),
            Self::NoComponents => vec![Remedy::Components(1)],
            Self::NoRelevance => vec![Remedy::Families(&[Family::Bpca])],
            Self::NoPath => vec![Remedy::Families(&[Family::Spca])],
            Self::NoFactors => vec![Remedy::Families(&[Family::Fa])],
            Self::NoViews => vec![Remedy::Families(&[Family::Pcca, Family::Gfa])],
            Self::OfViews { .. } => vec![Remedy::Kind("views")],
            Self::NoTrace => vec![Remedy::Library(covary::Remedy::Method("em"))],
            Self::WrongShape { .. } => vec![Remedy::Shape],
            Self::OneColumn => vec![Remedy::Library(covary::Remedy::Columns)],
            Self::NoSuchComponent { .. } | Self::NoPlaces => Vec::new(),
        }
    }
}

/// What a caller can ask for differently so that there is a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// What the library knows of.
    Library(covary::Remedy),
    /// A model with this many components or more.
    Components(usize),
    /// A model of one of these families.
    Families(&'static [Family]),
    /// The figure of this kind.
    Kind(&'static str),
    /// The rows and columns of an image.
    Shape,
}
