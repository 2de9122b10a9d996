//! What values the columns of a table can have, by those they have [M 4.5].

use crate::Dataset;
use crate::model::Limits;
use std::collections::BTreeSet;

/// Fewer observed cells tell nothing of what a column can be, and fewer than ten nothing of how large.
const FEWEST: usize = 5;
const FEWEST_BELOW: usize = 10;
/// Codes have at most this many different values, without holes.
const MOST_CODES: usize = 12;

/// Cells that tell this many codes: ten for each, or thirty if that leaves five for each. Of the cells that were then hidden in short
/// tables 2 % had another value ([M 4.5]).
fn enough_for(codes: usize) -> usize {
    (10 * codes).min((5 * codes).max(30))
}

/// The limits of each column, as far as its observed cells tell: none below zero (or above) where none is observed, none
/// above 1 or 100 where values come close to it from below, whole numbers where all are, and the codes of a short scale.
///
/// ```
/// use covary::{filling::limits_of, Dataset, Matrix};
/// let table = Dataset::new(Matrix::from_fn(12, 2, |i, j| if j == 0 { 0.3 * i as f64 } else { i as f64 - 4.0 }))?;
/// let limits = limits_of(&table);
/// assert!(limits[0].lower == 0.0 && !limits[0].whole);
/// assert!(limits[1].lower == f64::NEG_INFINITY && limits[1].whole);
/// # Ok::<(), covary::Error>(())
/// ```
pub fn limits_of(data: &Dataset) -> Vec<Limits> {
    (0..data.n_columns()).map(|j| of_column(data, j)).collect()
}

fn of_column(data: &Dataset, j: usize) -> Limits {
    let cells = || (0..data.n_rows()).map(|i| data.row(i)[j]).filter(|v| !v.is_nan());
    let (mut least, mut most, mut n) = (f64::INFINITY, f64::NEG_INFINITY, 0);
    let mut whole = true;
    for value in cells() {
        (least, most, n) = (least.min(value), most.max(value), n + 1);
        // Beyond 2⁵³ every number is whole.
        whole &= value.fract() == 0.0 && value.abs() < 9e15;
    }
    if n < FEWEST {
        return Limits::NONE;
    }
    let mut limits = Limits { whole, ..Limits::NONE };
    if least >= 0.0 {
        limits.lower = 0.0;
        if n < FEWEST_BELOW {
            // Values close to 1 or 100 may be so by chance.
        } else if !whole && most > 0.9 && most <= 1.0 {
            limits.upper = 1.0;
        } else if most > 90.0 && most <= 100.0 {
            limits.upper = 100.0;
        }
    } else if most <= 0.0 {
        limits.upper = 0.0;
    }
    if whole && most - least < MOST_CODES as f64 {
        let codes: BTreeSet<i64> = cells().map(|v| v as i64).collect();
        let without_holes = codes.len() as f64 == most - least + 1.0;
        if without_holes && n >= enough_for(codes.len()) {
            (limits.lower, limits.upper) = (least, most);
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;

    fn limits(values: &[f64]) -> Limits {
        // Ten times over, so that there is enough of each.
        let column: Vec<[f64; 2]> =
            values.iter().cycle().take(10 * values.len()).map(|&v| [v, 0.5]).collect();
        limits_of(&Dataset::new(Matrix::from_rows(&column)).unwrap())[0]
    }

    #[test]
    fn each_rule_by_its_own_table() {
        let infinity = f64::INFINITY;
        let is = |found: Limits, lower: f64, upper: f64, whole: bool| {
            assert_eq!(found, Limits { lower, upper, whole });
        };
        is(limits(&[-1.5, 2.0, f64::NAN]), -infinity, infinity, false);
        is(limits(&[0.0, 2.5]), 0.0, infinity, false);
        is(limits(&[-0.5, -2.5]), -infinity, 0.0, false);
        is(limits(&[0.2, 0.95]), 0.0, 1.0, false);
        is(limits(&[0.2, 0.85]), 0.0, infinity, false);
        is(limits(&[3.0, 97.5]), 0.0, 100.0, false);
        is(limits(&[3.0, 97.0]), 0.0, 100.0, true);
        is(limits(&[0.0, 20.0]), 0.0, infinity, true);
        is(limits(&[0.0, 1.0]), 0.0, 1.0, true);
        let few = |n: usize, unit: f64| {
            limits_of(&Dataset::new(Matrix::from_fn(n, 1, |i, _| 95.5 + unit * i as f64)).unwrap())[0]
        };
        assert_eq!(few(4, 0.5), Limits::NONE);
        is(few(9, 0.5), 0.0, infinity, false);
        is(few(10, 0.4), 0.0, 100.0, false);
        let likert: Vec<f64> = (0..60).map(|i| f64::from(i % 5 + 1)).collect();
        is(limits(&likert), 1.0, 5.0, true);
        let of_rows = |n: usize, codes: usize| {
            limits_of(&Dataset::new(Matrix::from_fn(n, 1, |i, _| (i % codes + 1) as f64)).unwrap())[0].upper
        };
        for (codes, enough) in [(2, 20), (3, 30), (5, 30), (6, 30), (7, 35), (12, 60)] {
            assert_eq!((of_rows(enough, codes), of_rows(enough - 1, codes)), (codes as f64, infinity));
        }
        let holes: Vec<f64> = likert.iter().map(|v| if *v == 3.0 { 2.0 } else { *v }).collect();
        is(limits(&holes), 0.0, infinity, true);
        assert_eq!(limits(&likert).nearest(5.4), 5.0);
        assert_eq!(limits(&likert).nearest(2.6), 3.0);
        assert_eq!(limits(&likert).clip(2.6), 2.6);
    }
}
