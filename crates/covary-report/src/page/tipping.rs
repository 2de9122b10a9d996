//! Sensitivity to values that are not missing at random: how means move with them.

use super::facts::Study;
use crate::Error;
use crate::scale::{count, number, rounded};
use crate::text::clean;
use covary::learned::{Rows, Tipping, TippingPoint};
use maud::{Markup, html as markup};
use serde::Serialize;

/// Columns whose means are shifted, by this many standard deviations, and cells of a table beyond which none is.
const TIPPED: usize = 5;
const SHIFTS: [f64; 5] = [-1.0, -0.5, 0.0, 0.5, 1.0];
const MOST_DRAWN: usize = 5_000_000;

/// How the mean of a column moves if its missing values lie farther up or down than the model imputes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TippingFacts {
    /// The column.
    pub column: String,
    /// Its missing values.
    pub n_missing: usize,
    /// One for each shift.
    pub points: Vec<TippingPointFacts>,
}

/// The mean of a column under one shift.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TippingPointFacts {
    /// In standard deviations of the column.
    pub shift: f64,
    /// The mean, pooled over draws.
    pub mean: f64,
    /// Its 95 % interval.
    pub lower: f64,
    /// Its 95 % interval.
    pub upper: f64,
}

/// Of the columns with most gaps; of none in a table too large to be drawn again and again.
pub(super) fn tipping(study: &Study<'_>) -> Result<Vec<TippingFacts>, Error> {
    let Study { filler, data, .. } = study;
    if data.n_rows() * data.n_columns() > MOST_DRAWN {
        return Ok(Vec::new());
    }
    let gaps = |j: &usize| data.n_rows() - data.n_observed_by_column()[*j];
    let mut columns: Vec<usize> = (0..data.n_columns()).filter(|j| gaps(j) > 0).collect();
    columns.sort_by_key(|j| std::cmp::Reverse(gaps(j)));
    columns.truncate(TIPPED);
    let found = match filler.tipping_points(Rows::Training, data, &columns, &SHIFTS, filler.seed) {
        // Sources behind noise impute, but cannot be drawn from.
        Err(covary::Error::NoDensity { .. }) => return Ok(Vec::new()),
        found => found?,
    };
    let point =
        |p: &TippingPoint| TippingPointFacts { shift: p.shift, mean: p.mean, lower: p.lower, upper: p.upper };
    let facts = |t: &Tipping| TippingFacts {
        column: data.column_names()[t.column].clone(),
        n_missing: t.n_gaps,
        points: t.points.iter().map(point).collect(),
    };
    Ok(found.iter().map(facts).collect())
}

/// How means move with values that are missing because of what they are.
pub(super) fn table(columns: &[TippingFacts]) -> Markup {
    let value = |p: &TippingPointFacts| {
        let digits = (p.upper - p.lower) / 4.0;
        let [mean, lower, upper] = [p.mean, p.lower, p.upper].map(|v| rounded(v, digits));
        markup! { td { (mean) br; span.quiet { (lower) " to " (upper) } } }
    };
    markup! {
        p {
            "The check assumes that missing values are like the hidden cells. If they are missing because of what they are, \
             the mean of a column depends on how far they lie from what is imputed:"
        }
        div.scroll tabindex="0" role="region" aria-label="Means by shift" {
            table {
                caption.quiet { "Mean of a column, with its 95 % interval, if its missing values lie this many standard deviations higher" }
                thead { tr {
                    th.left scope="col" { "column" } th scope="col" { "missing" }
                    @for p in &columns[0].points { th scope="col" { (number(p.shift, 2)) } }
                } }
                tbody { @for c in columns { tr {
                    th scope="row" { bdi.name { (clean(&c.column)) } } td { (count(c.n_missing)) }
                    @for p in &c.points { (value(p)) }
                } } }
            }
        }
    }
}
