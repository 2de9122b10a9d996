//! The check on hidden cells: a model is fitted again without some cells of its own table, which it then predicts.

use super::{Learned, Residuals, Rows};
use crate::family::{Family, Request};
use crate::filling::{
    Correction, HiddenSet, Hiding, Widths, hide_as_gaps_lie, most_gaps, observed_of, restrain, sets_of,
};
use crate::infer::{Observer, stop_flag};
use crate::model::{FilledCell, Mixture};
use crate::select::{CheckedCell, SelfCheck, SelfCheckOptions, compare, self_check_by};
use crate::{Dataset, Density, Error, Fit};
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
    /// Whether they were hidden in blocks of time, where rows follow each other, and not one by one.
    pub in_blocks: bool,
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
        Ok(Self { outcome, cells, refitted, in_blocks: false })
    }

    /// How well the hidden cells were predicted, if enough could be hidden.
    pub fn found(&self) -> Option<&SelfCheck> {
        match &self.outcome {
            CheckOutcome::Found(check) => Some(check),
            _ => None,
        }
    }
}

/// A model fitted again without hidden cells.
pub(crate) enum Refitted {
    /// One model.
    Linear(Box<Fit>),
    /// Several.
    Mixture(Mixture),
}

/// What is predicted for the gaps of rows with hidden cells.
pub(crate) struct Predicted {
    /// By the model.
    pub(crate) plain: Vec<FilledCell>,
    /// With its correction, if it has one.
    pub(crate) corrected: Option<Vec<FilledCell>>,
}

impl Learned {
    /// Hides cells of `data`, the model's columns of its own table, as its gaps lie, fits again without them as `request`
    /// asked, and compares. Cells that calibrated intervals are not among those of the check, except by chance. What was
    /// found is kept with the model by [`Request::check_observed`].
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
        options.check()?;
        if let Some(checked) = self.answers().check_in_blocks(self, data, options, Some(&mut *observer)) {
            return checked;
        }
        let (used, most) = sets_of(data);
        let (mut cells, mut baseline) = (Vec::new(), Vec::new());
        for set in used..used + if used > 1 { 2 } else { 1 } {
            let hiding = Hiding {
                share: options.share,
                most,
                fewest: self.fewest_cells(),
                seed: options.seed,
                set: set as u64,
            };
            let set = match hide_as_gaps_lie(data, &hiding) {
                Err(Error::TooFewToHide { .. }) => continue,
                set => set?,
            };
            let correction = self.filling.as_ref().and_then(|filling| filling.correction.as_ref());
            let restrained = self.filling.as_ref().is_some_and(|filling| filling.observed.is_some());
            let predicted = match self.predict_hidden(request, &set, (correction, restrained), observer) {
                Ok(None) => {
                    return self.check_as_it_is(Rows::Training, data, options, stop_flag(observer));
                }
                Ok(Some(predicted)) => predicted,
                Err(error) => return Checked::of(Err(error), true),
            };
            let mut own = predicted.corrected.unwrap_or(predicted.plain);
            if let Some(filling) = &self.filling {
                filling.shape(&mut own, |_| true);
            }
            let own = set.checked(data, own);
            baseline.extend(own.iter().map(|c| set.visible.observed_means()[c.cell.column]));
            cells.extend(own);
        }
        let found = if cells.is_empty() {
            Err(Error::TooFewToHide { cells: 0, folds: 1 })
        } else {
            let rows: Vec<usize> = cells.iter().map(|c| c.cell.row).collect();
            Ok((compare(&cells, &baseline, &rows, data, &options.levels), cells))
        };
        Checked::of(found, true)
    }

    /// Residuals of cells that are hidden together, of a model of whole tables; `None` for others.
    pub(crate) fn hidden_residuals(
        &self,
        data: &Dataset,
        observer: &mut dyn Observer,
    ) -> Option<Result<Residuals, Error>> {
        self.answers().hidden_residuals(self, data, observer)
    }

    /// Fewest cells that a column must keep for the model to be fitted again.
    pub(crate) fn fewest_cells(&self) -> usize {
        // Pseudo-rows make up for cells.
        let needed = if self.family == Family::Gaussian { 0 } else { self.n_shown() };
        needed.min(self.training.n_rows / 2) + 1
    }

    /// What the model, fitted again without the cells of a set, predicts for them, and what a correction with the widths
    /// of `known`, learned without them, makes of that, both restrained by what is visible if asked for; `None` for a model
    /// that is not fitted again.
    pub(crate) fn predict_hidden(
        &self,
        request: &Request,
        set: &HiddenSet,
        (known, restrained): (Option<&Correction>, bool),
        observer: &mut dyn Observer,
    ) -> Result<Option<Predicted>, Error> {
        let Some(refit) = self.answers().refit(self, request, &set.visible, observer)? else {
            return Ok(None);
        };
        let rows = set.visible_rows()?;
        let stop = stop_flag(observer);
        let mut plain = match &refit {
            Refitted::Linear(fit) => fit.of_training_rows().gap_cells_unless(&rows, stop)?,
            Refitted::Mixture(mixture) => mixture.gap_cells_unless(&rows, stop)?,
        };
        let mut corrected = None;
        if let (Some(known), Refitted::Linear(fit)) = (known, &refit) {
            let own = corrected.insert(plain.clone());
            let gaps: Vec<usize> = rows.n_observed_by_column().iter().map(|n| rows.n_rows() - n).collect();
            let (columns, widths) = (most_gaps(&gaps), Widths::Of(known));
            if let Some(found) = Correction::learn(&fit.model, &set.visible, &columns, widths, request.seed)?
            {
                found.correct(&rows, own);
            }
        }
        if restrained {
            let observed = observed_of(&set.visible);
            restrain(&observed, &mut plain);
            restrain(&observed, corrected.as_deref_mut().unwrap_or_default());
        }
        Ok(Some(Predicted { plain, corrected }))
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
        if let Some(checked) = self.answers().check_in_blocks(self, data, options, None) {
            return checked;
        }
        let fill = self.fill(rows)?;
        Checked::of(self_check_by(data, 0, options, |_, rows| fill.cells_unless(rows, stop)), false)
    }
}
