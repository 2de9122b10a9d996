//! `--components auto`.

use crate::voice::count;
use covary::select::{ChoiceRule, HeldOutOptions, held_out_cells};
use covary::{Dataset, Error, Matrix, Method, Spec};
use std::fmt;

/// Most components tried.
const MOST: usize = 8;

/// How many components, and on what grounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) n_components: usize,
    /// Largest number tried.
    most: usize,
    /// Cells hidden to judge by.
    hidden: usize,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { n_components, most, hidden } = *self;
        if most == 0 {
            return write!(
                f,
                "no room for a component: gaps take the mean of their column (--components N fits anyway)"
            );
        }
        write!(
            f,
            "chose {}: the fewest of 0 to {most} that predict {} as well as the best",
            count(n_components, "component"),
            count(hidden, "hidden cell"),
        )?;
        match n_components {
            MOST => write!(f, "; more may do better, such as --components {}", MOST + MOST / 2),
            _ => Ok(()),
        }
    }
}

/// The library's choice by held-out cells, over as many components as the table has room for.
/// Columns with few observed cells have none to spare and are left out of the judging, so that one of
/// them does not speak for all.
pub(crate) fn n_components(data: &Dataset, spec: &Spec, method: &Method, seed: u64) -> Result<Choice, Error> {
    let observed = data.n_observed_by_column();
    let rich: Vec<usize> = (0..observed.len()).filter(|&j| observed[j] > 2 * MOST).collect();
    let judged;
    let data = if rich.len() < 2 || rich.len() == observed.len() {
        data
    } else {
        let values = Matrix::from_fn(data.n_rows(), rich.len(), |i, k| data.values()[(i, rich[k])]);
        let names = rich.iter().map(|&j| data.column_names()[j].clone()).collect();
        judged = Dataset::with_names(values, names)?;
        &judged
    };
    let rows = data.n_informative_rows();
    let most = MOST.min(spec.max_components(data.n_columns())).min(rows.saturating_sub(2));
    let options = HeldOutOptions { seed, ..HeldOutOptions::default() };
    // Fewer components ask fewer cells of a column to stay visible.
    for most in (1..=most).rev() {
        match held_out_cells(data, spec, 0..=most, method, &options) {
            Ok(scores) => {
                let n_components = scores.chosen(ChoiceRule::OneStandardError);
                return Ok(Choice { n_components, most, hidden: scores.n_hidden });
            }
            Err(Error::TooFewToHide { .. } | Error::TooSparse { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Choice { n_components: 0, most: 0, hidden: 0 })
}
