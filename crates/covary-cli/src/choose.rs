//! `--components auto`.

use crate::voice::count;
use covary::select::{ChoiceRule, HeldOutOptions, held_out_cells};
use covary::{Dataset, Error, Method, Spec};
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
            return write!(f, "no room for a component: gaps take the mean of their column");
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
pub(crate) fn n_components(data: &Dataset, spec: &Spec, method: &Method, seed: u64) -> Result<Choice, Error> {
    let fewest = data.n_observed_by_column().iter().copied().min().unwrap_or(0);
    let rows = data.n_informative_rows();
    // Each fold leaves four fifths of a column; half of it is room enough to hide and to fit.
    let most = MOST.min(spec.max_components(data.n_columns())).min(rows.saturating_sub(2)).min(fewest / 2);
    if most == 0 {
        return Ok(Choice { n_components: 0, most, hidden: 0 });
    }
    let options = HeldOutOptions { seed, ..HeldOutOptions::default() };
    let scores = held_out_cells(data, spec, 0..=most, method, &options)?;
    Ok(Choice { n_components: scores.chosen(ChoiceRule::OneStandardError), most, hidden: scores.n_hidden })
}
