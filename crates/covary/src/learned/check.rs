//! The check on hidden cells: a model is fitted again without some cells of its own table, which it then predicts.

use super::answers::Refit;
use super::{Learned, Rows};
use crate::family::Request;
use crate::infer::Observer;
use crate::select::{CheckedCell, SelfCheck, SelfCheckOptions, self_check_by};
use crate::{Dataset, Error};
use std::sync::atomic::AtomicBool;

/// Fewer hidden cells than this tell nothing.
const FEWEST: usize = 20;

/// The tolerance of the fit without the hidden cells. The parameters, all together, end √(2 · 0.01) = 0.14 standard
/// errors from their optimum: what is left of the start, which has seen the hidden cells, does not show in what is said.
pub(super) const TOLERANCE: f64 = 1e-2;

/// What came of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// What was found.
    pub outcome: CheckOutcome,
    /// The hidden cells.
    pub cells: Vec<CheckedCell>,
    /// Whether the model was fitted again without them. Otherwise a model that has seen these rows is flattered.
    pub refitted: bool,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq)]
pub enum CheckOutcome {
    /// How well the hidden cells were predicted.
    Found(SelfCheck),
    /// So few cells could be hidden that they tell nothing.
    TooFew {
        /// How many.
        n_hidden: usize,
    },
    /// The table has no cell to spare.
    NoneToHide,
    /// The observer ended it.
    Interrupted,
}

impl Checked {
    pub(super) fn of(
        found: Result<(SelfCheck, Vec<CheckedCell>), Error>,
        refitted: bool,
    ) -> Result<Self, Error> {
        let (outcome, cells) = match found {
            Ok((check, _)) if check.n_hidden < FEWEST => {
                (CheckOutcome::TooFew { n_hidden: check.n_hidden }, Vec::new())
            }
            Ok((check, cells)) => (CheckOutcome::Found(check), cells),
            Err(Error::TooFewToHide { .. }) => (CheckOutcome::NoneToHide, Vec::new()),
            Err(Error::Interrupted) => (CheckOutcome::Interrupted, Vec::new()),
            Err(other) => return Err(other),
        };
        Ok(Self { outcome, cells, refitted })
    }

    /// How well the hidden cells were predicted, if enough could be hidden.
    pub fn found(&self) -> Option<&SelfCheck> {
        match &self.outcome {
            CheckOutcome::Found(check) => Some(check),
            _ => None,
        }
    }
}

impl Learned {
    /// Hides cells of `data`, the model's columns of its own table, fits again without them as `request` asked, and
    /// compares. What was found is kept with the model by [`Request::check_observed`].
    ///
    /// # Errors
    /// As [`self_check`](crate::select::self_check); [`Error::Unsupported`] for classes, which are not refitted.
    pub fn check_by_refit(
        &self,
        request: &Request,
        data: &Dataset,
        options: &SelfCheckOptions,
        observer: &mut dyn Observer,
    ) -> Result<Checked, Error> {
        self.answers().check_by_refit(Refit { learned: self, request, data, options, observer })
    }

    /// Hides cells of `data` from the model as it is: if it has seen these rows, the answer flatters it. Once `stop` is set
    /// it ends early.
    ///
    /// # Errors
    /// As [`self_check_by`], and [`fill`](Self::fill).
    pub fn check_as_it_is(
        &self,
        rows: Rows,
        data: &Dataset,
        options: &SelfCheckOptions,
        stop: &AtomicBool,
    ) -> Result<Checked, Error> {
        let fill = self.fill(rows)?;
        Checked::of(self_check_by(data, 0, options, |_, rows| fill.cells_unless(rows, stop)), false)
    }
}
