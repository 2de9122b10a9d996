//! A factor analysis on a page: how well it fits, its loadings in numbers, and the matrix that it may have been learned
//! from in place of a table.

use super::facts::ModelFacts;
use super::template::{MOST_COLUMNS, capital, name, th, two};
use crate::scale::{count, several};
use covary::CentralMoments;
use covary::data::MatrixKind;
use covary::family::Choice;
use covary::learned::{Learned, LinearFit, RotatedLoadings};
use maud::{Markup, html as markup};
use serde::Serialize;

/// A model and the correlations or covariances it was learned from.
#[derive(Clone, Copy)]
pub struct MatrixStudy<'a> {
    /// The model.
    pub learned: &'a Learned,
    /// Its linear-Gaussian model.
    pub linear: &'a LinearFit,
    /// What the matrix holds.
    pub kind: MatrixKind,
    /// The matrix and the number of rows it was computed from.
    pub moments: &'a CentralMoments,
    /// How many components there are, and why.
    pub choice: &'a Choice,
}

/// A correlation or covariance matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatrixFacts {
    /// `correlation` or `covariance`.
    pub kind: String,
    /// Rows it was computed from.
    pub n_rows: usize,
    /// Columns.
    pub n_columns: usize,
}

impl MatrixFacts {
    pub(super) fn of(study: &MatrixStudy<'_>) -> Self {
        let MatrixStudy { kind, moments, .. } = study;
        Self { kind: kind.name().to_owned(), n_rows: moments.n_rows(), n_columns: moments.n_columns() }
    }
}

/// How well a factor analysis fits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitFacts {
    /// The test and the indices, a line each.
    pub words: Vec<String>,
    /// χ², by Bartlett's correction if the table is complete.
    pub chi_square: Option<f64>,
    /// Its degrees of freedom.
    pub degrees_of_freedom: i64,
    /// Its p-value.
    pub p_value: Option<f64>,
    /// Root mean square error of approximation, and the ends of its 90 % interval.
    pub rmsea: Option<[f64; 3]>,
    /// Tucker–Lewis index.
    pub tli: Option<f64>,
    /// Comparative fit index.
    pub cfi: Option<f64>,
    /// Standardized root mean square residual.
    pub srmr: Option<f64>,
    /// Bayesian information criterion.
    pub bic: f64,
    /// Correlations of the factors, if they were rotated obliquely or not.
    pub factor_correlations: Option<Vec<Vec<f64>>>,
    /// What the factors say of each column.
    pub columns: Vec<LoadingFacts>,
}

/// A column of a factor analysis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadingFacts {
    /// The column.
    pub column: String,
    /// Its loadings in standard deviations of the column, rotated if that was asked for.
    pub loadings: Vec<f64>,
    /// Share of its variance that the factors explain.
    pub communality: f64,
}

/// Asks for them.
pub(super) fn fit_facts(learned: &Learned, linear: &LinearFit) -> Option<FitFacts> {
    let found = linear.fit_statistics.as_ref()?;
    let rows = |r: &RotatedLoadings| r.rotated.factor_correlations.rows().map(<[f64]>::to_vec).collect();
    let (loadings, _) = crate::plot::standardized_loadings(learned).ok()?;
    let column = |(j, row): (usize, &[f64])| LoadingFacts {
        column: learned.columns[j].clone(),
        loadings: row.to_vec(),
        communality: found.communality_shares[j],
    };
    Some(FitFacts {
        words: crate::words::fit_statistics(found),
        chi_square: found.chi_square,
        degrees_of_freedom: found.degrees_of_freedom,
        p_value: found.p_value,
        rmsea: found.rmsea.map(|r| [r.value, r.low, r.high]),
        tli: found.tli,
        cfi: found.cfi,
        srmr: found.reference.srmr,
        bic: found.bic,
        factor_correlations: linear.rotation.as_ref().map(rows),
        columns: loadings.rows().enumerate().map(column).collect(),
    })
}

/// What is said first of a matrix.
pub(super) fn lede(matrix: &MatrixFacts, model: Option<&ModelFacts>) -> Markup {
    markup! {
        "A " (matrix.kind) " matrix of " (several(matrix.n_columns, "column")) ", computed from "
        (several(matrix.n_rows, "row")) ". "
        @match model {
            None => "No model could be fitted.",
            Some(model) => {
                (capital(&model.words)) " with " (several(model.n_components, "component")) " was fitted."
                @if let Some(fit) = &model.fit_statistics { @for line in &fit.words { " " (capital(line)) "." } }
            }
        }
    }
}

/// What came in.
pub(super) fn summary(matrix: &MatrixFacts) -> Markup {
    markup! {
        p {
            "The " (matrix.kind) "s of " (several(matrix.n_columns, "column")) " over " (several(matrix.n_rows, "row"))
            @if matrix.kind == "covariance" { " (divisor N − 1)" }
            ". The rows themselves are not known: there are no means, no scores and no missing values."
        }
    }
}

/// The test of fit, the indices, and the correlations of the factors.
pub(super) fn test(found: &FitFacts) -> Markup {
    markup! {
        h3 { "Do the factors fit?" }
        @for line in &found.words { p { (capital(line)) "." } }
        p.quiet {
            "A small p-value says that the factors do not reproduce the covariances of the columns; in a long table small "
            "misfits suffice for that. By convention, RMSEA and SRMR below about 0.06 and 0.08 and TLI and CFI above about "
            "0.95 mark a good fit."
        }
        @if let Some(phi) = found.factor_correlations.as_ref().filter(|phi| phi.len() > 1) {
            table {
                caption.quiet { "Correlations of the factors" }
                tbody { @for (k, row) in phi.iter().enumerate() { tr {
                    th scope="row" { (k + 1) } @for r in row { td { (two(*r)) } }
                } } }
            }
        }
    }
}

/// Loadings, communalities and uniquenesses of a factor analysis, in numbers.
pub(super) fn loadings(fit: &FitFacts) -> Markup {
    let q = fit.columns.first().map_or(0, |c| c.loadings.len());
    markup! {
        details open[fit.columns.len() <= 40] {
            summary { "Loadings and communalities" @if fit.columns.len() > MOST_COLUMNS {
                " (the first " (MOST_COLUMNS) " of " (count(fit.columns.len())) " columns)"
            } }
            div.scroll tabindex="0" role="region" aria-label="Loadings and communalities" {
                table.sortable {
                    caption.quiet {
                        "Loadings in standard deviations of the column. Communality: proportion of its variance that the factors explain; "
                        "uniqueness: the rest. "
                        span.hint { "Click or press a heading to sort." }
                    }
                    thead { tr {
                        (th("column", "text"))
                        @for k in 1..=q { (th(&format!("factor {k}"), "number")) }
                        (th("communality", "number")) (th("uniqueness", "number"))
                    } }
                    tbody { @for c in fit.columns.iter().take(MOST_COLUMNS) { tr {
                        th scope="row" { (name(&c.column)) }
                        @for w in &c.loadings { td { (two(*w)) } }
                        td { (two(c.communality)) } td { (two(1.0 - c.communality)) }
                    } } }
                }
            }
        }
    }
}
