//! The kinds of figures, a module each: a struct of numbers, a function that asks for them, a function
//! that draws them.

pub mod biplot;
pub mod calibration;
pub mod circle;
pub mod contributions;
pub mod correlation;
pub mod covariance;
pub mod curves;
pub mod density;
pub mod diagram;
pub mod eigenfunctions;
pub mod factors;
pub mod forecast;
pub mod hinton;
pub mod images;
pub mod intervals;
pub mod loadings;
pub mod map;
pub mod missing;
pub mod mixture;
pub mod outliers;
pub mod pairs;
pub mod path;
pub mod patterns;
pub mod relevance;
pub mod samples;
pub mod scores;
pub mod scree;
pub mod select;
pub mod sources;
pub mod trace;
pub mod views;

use crate::Error;
use crate::scale::{percent, several};
use covary::Matrix;
use covary::family::Family;
use covary::learned::Learned;

/// The kinds by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Eigenvalues and parallel analysis.
    Scree,
    /// Loadings as squares.
    Hinton,
    /// Scores on two components.
    Scores,
    /// Rows and columns together.
    Biplot,
    /// Loadings as bars with intervals.
    Loadings,
    /// Covariance of the table, of the model, and their difference.
    Covariance,
    /// The objective step by step.
    Trace,
    /// Which components a prior kept.
    Relevance,
    /// Where the gaps are.
    Missing,
    /// Hidden cells against their intervals.
    Intervals,
    /// Every criterion over the number of components.
    Select,
    /// Simulated and observed rows.
    Samples,
    /// Values on the globe.
    Map,
    /// Rows as images.
    Images,
    /// What each component explains of each view.
    Views,
    /// Independent sources over the rows.
    Sources,
    /// Rows by the models of a mixture.
    Mixture,
    /// Columns in time, and what comes.
    Forecast,
    /// Factors in time.
    Factors,
    /// Sparse loadings along the path of penalties.
    Path,
    /// Mean and eigenfunctions of curves.
    Eigenfunctions,
    /// Curves through their points.
    Curves,
    /// Correlations of the columns with two components.
    Circle,
    /// What each column contributes to each component.
    Contributions,
    /// Correlations of the columns, similar ones together.
    Correlation,
    /// Scores on several components, in pairs.
    Pairs,
    /// Densities of imputed and observed values.
    Density,
    /// Which values are missing together.
    Patterns,
    /// Coverage of intervals, column by column.
    Calibration,
    /// Distances of the rows in the plane of the components and from it.
    Outliers,
    /// Factors and the columns they load on, with how well they fit.
    Diagram,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 31] = [
        Self::Scree,
        Self::Hinton,
        Self::Scores,
        Self::Biplot,
        Self::Loadings,
        Self::Covariance,
        Self::Trace,
        Self::Relevance,
        Self::Missing,
        Self::Intervals,
        Self::Select,
        Self::Samples,
        Self::Map,
        Self::Images,
        Self::Views,
        Self::Sources,
        Self::Mixture,
        Self::Forecast,
        Self::Factors,
        Self::Path,
        Self::Eigenfunctions,
        Self::Curves,
        Self::Circle,
        Self::Contributions,
        Self::Correlation,
        Self::Pairs,
        Self::Density,
        Self::Patterns,
        Self::Calibration,
        Self::Outliers,
        Self::Diagram,
    ];

    /// As users type it.
    ///
    /// ```
    /// use covary_report::plot::Kind;
    /// assert!(Kind::ALL.iter().all(|kind| Kind::from_name(kind.name()) == Some(*kind)));
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::Scree => "scree",
            Self::Hinton => "hinton",
            Self::Scores => "scores",
            Self::Biplot => "biplot",
            Self::Loadings => "loadings",
            Self::Covariance => "covariance",
            Self::Trace => "trace",
            Self::Relevance => "relevance",
            Self::Missing => "missing",
            Self::Intervals => "intervals",
            Self::Select => "select",
            Self::Samples => "samples",
            Self::Map => "map",
            Self::Images => "images",
            Self::Views => "views",
            Self::Sources => "sources",
            Self::Mixture => "mixture",
            Self::Forecast => "forecast",
            Self::Factors => "factors",
            Self::Path => "path",
            Self::Eigenfunctions => "eigenfunctions",
            Self::Curves => "curves",
            Self::Circle => "circle",
            Self::Contributions => "contributions",
            Self::Correlation => "correlation",
            Self::Pairs => "pairs",
            Self::Density => "density",
            Self::Patterns => "patterns",
            Self::Calibration => "calibration",
            Self::Outliers => "outliers",
            Self::Diagram => "diagram",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What was fitted to what, for a subtitle.
pub(crate) fn conditions(learned: &Learned) -> String {
    let word = if learned.dynamic().is_ok() { "factor" } else { "component" };
    format!("{}, {}; {}", learned.family.words(), several(learned.n_shown(), word), fitted_to(learned))
}

/// The table that a model is from.
pub(crate) fn fitted_to(learned: &Learned) -> String {
    let (training, d) = (&learned.training, learned.columns.len());
    let standardized = learned.standardized();
    if let Some(kind) = learned.linear().ok().and_then(|fit| fit.matrix) {
        return format!(
            "fitted to a {} matrix of {}, from {}",
            kind.name(),
            several(d, "column"),
            several(training.n_rows, "row")
        );
    }
    if let Some(columns) = learned.functional().ok().and_then(|fit| fit.long()) {
        let points = training.n_observed_by_column.iter().sum::<usize>();
        return format!(
            "fitted to {} of {} by {}",
            several(points, "point"),
            learned.columns[0],
            columns.curve
        );
    }
    let gaps = match training.n_gaps() {
        0 => "no missing values".to_owned(),
        n => format!("{} missing", percent(n as f64 / (training.n_rows * d) as f64)),
    };
    format!(
        "fitted to {} of {}, {gaps}{}",
        several(training.n_rows, "row"),
        several(d, "column"),
        if standardized { ", columns standardized" } else { "" },
    )
}

/// Loadings as the reader sees them, rotated if that was asked for, in standard deviations of each
/// column, d × q; and those deviations. In time, deviations are those of the table: the model has none over the seasons.
pub(crate) fn standardized_loadings(learned: &Learned) -> Result<(Matrix, Vec<f64>), Error> {
    if let Ok(fit) = learned.dynamic() {
        let sds = learned.training.column_sds.clone();
        let mut loadings = fit.model.loadings().clone();
        loadings.scale_rows(&sds.iter().map(|s| 1.0 / s).collect::<Vec<_>>());
        return Ok((loadings, sds));
    }
    let linear = learned.linear()?;
    let sds: Vec<f64> = linear.model.variances().iter().map(|v| v.sqrt()).collect();
    let mut loadings = linear.loadings().clone();
    if learned.n_shown() < loadings.n_columns() {
        loadings = loadings.first_columns(learned.n_shown());
    }
    loadings.scale_rows(&sds.iter().map(|s| 1.0 / s).collect::<Vec<_>>());
    Ok((loadings, sds))
}

/// What the components are called: a factor that was rotated is not a principal component.
pub(crate) fn component_word(learned: &Learned) -> &'static str {
    let rotated = learned.linear().is_ok_and(|fit| fit.rotation.is_some());
    if rotated || matches!(learned.family, Family::Fa | Family::Dfm) { "factor" } else { "component" }
}

/// At least one component, or no figure.
pub(crate) fn some_components(learned: &Learned) -> Result<usize, Error> {
    match learned.n_shown() {
        0 => Err(Error::NoComponents),
        q => Ok(q),
    }
}

/// The `most` columns with the largest numbers, in the order of the table.
pub(crate) fn largest(numbers: &[f64], most: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by(|&a, &b| numbers[b].total_cmp(&numbers[a]).then(a.cmp(&b)));
    order.truncate(most);
    order.sort_unstable();
    order
}

/// Sum of squares of each column's loadings: the share of its variance that the components explain.
pub(crate) fn communalities(loadings: &Matrix) -> Vec<f64> {
    loadings.rows().map(|row| row.iter().map(|w| w * w).sum()).collect()
}
