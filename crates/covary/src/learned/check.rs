//! The check on hidden cells: a model is fitted again without some cells of its own table, which it then predicts.

use super::{Learned, Rows, Trained};
use crate::family::Request;
use crate::infer::{Em, Init, MixtureEm, MixtureInit, Observer, SharedPrivate, Termination, stop_flag};
use crate::select::{
    CheckedCell, SelfCheck, SelfCheckOptions, check_filled, self_check_by, self_check_by_cell,
};
use crate::model::{FilledCell, Mixture};
use crate::{Dataset, Density, Error, Estimator, Fit, Method, Spec};
use std::sync::atomic::AtomicBool;

/// Fewer hidden cells than this tell nothing.
const FEWEST: usize = 20;

/// The tolerance of the fit without the hidden cells. The parameters, all together, end √(2 · 0.01) = 0.14 standard
/// errors from their optimum: what is left of the start, which has seen the hidden cells, does not show in what is said.
const TOLERANCE: f64 = 1e-2;

/// What came of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// What was found.
    pub outcome: CheckOutcome,
    /// The hidden cells, where the family tells of each.
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
    fn of(found: Result<(SelfCheck, Vec<CheckedCell>), Error>, refitted: bool) -> Result<Self, Error> {
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

/// A model fitted again without hidden cells.
pub(crate) enum Refit {
    /// One model.
    Linear(Box<Fit>),
    /// Several.
    Mixture(Mixture),
}

impl Refit {
    /// What it fills gaps with, in rows that it was fitted to.
    pub(crate) fn cells(&self, rows: &Dataset, stop: &AtomicBool) -> Result<Vec<FilledCell>, Error> {
        match self {
            Self::Linear(fit) => fit.of_training_rows().gap_cells_unless(rows, stop),
            Self::Mixture(mixture) => mixture.gap_cells_unless(rows, stop),
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
        match &self.model {
            Trained::Linear(fit) => {
                // Components that were found superfluous are not offered again.
                let spec = Spec { n_components: self.n_shown(), ..fit.spec.clone() };
                let method = self.refit_method(request)?;
                Checked::of(self_check_by_cell(data, &spec, &method, options, observer), true)
            }
            Trained::Mixture(fit) if fit.classes.is_none() => {
                let method = MixtureEm {
                    init: MixtureInit::Given(Box::new(fit.mixture.clone())),
                    tolerance: TOLERANCE,
                    ..MixtureEm::of(fit.mixture.models().len())
                };
                let found =
                    self_check_by(data, self.n_components(), options, observer, |visible, observer| {
                        let fit = method.fit_observed(visible, &fit.spec, observer)?;
                        match fit.report.termination {
                            Termination::Interrupted => Err(Error::Interrupted),
                            _ => Ok(fit.model),
                        }
                    });
                Checked::of(found.map(|check| (check, Vec::new())), true)
            }
            Trained::Mixture(_) => Err(Error::Unsupported {
                method: "a model for each class",
                what: "a check on hidden cells",
                instead: "one model or a mixture",
            }),
            Trained::Sources(_) => self.check_as_it_is(Rows::Training, data, options, stop_flag(observer)),
        }
    }

    /// Hides cells of `data` from the model as it is: if it has seen these rows, the answer flatters it. Once `stop` is set
    /// it ends early.
    ///
    /// # Errors
    /// As [`check_filled`], and [`fill`](Self::fill).
    pub fn check_as_it_is(
        &self,
        rows: Rows,
        data: &Dataset,
        options: &SelfCheckOptions,
        stop: &AtomicBool,
    ) -> Result<Checked, Error> {
        let fill = self.fill(rows)?;
        let found = check_filled(&|rows: &Dataset| fill.cells_unless(rows, stop), data, options);
        Checked::of(found.map(|check| (check, Vec::new())), false)
    }

    /// The model fitted again, as `request` asked, to its own table with cells hidden.
    ///
    /// # Errors
    /// As [`check_by_refit`](Self::check_by_refit).
    pub(crate) fn refit(
        &self,
        request: &Request,
        visible: &Dataset,
        observer: &mut dyn Observer,
    ) -> Result<Refit, Error> {
        let (refit, termination) = match &self.model {
            Trained::Linear(fit) => {
                // Components that were found superfluous are not offered again.
                let spec = Spec { n_components: self.n_shown(), ..fit.spec.clone() };
                let fit = self.refit_method(request)?.fit_observed(visible, &spec, observer)?;
                let termination = fit.report.termination;
                (Refit::Linear(Box::new(fit)), termination)
            }
            Trained::Mixture(fit) if fit.classes.is_none() => {
                let method = MixtureEm {
                    init: MixtureInit::Given(Box::new(fit.mixture.clone())),
                    tolerance: TOLERANCE,
                    ..MixtureEm::of(fit.mixture.models().len())
                };
                let fit = method.fit_observed(visible, &fit.spec, observer)?;
                (Refit::Mixture(fit.model), fit.report.termination)
            }
            Trained::Mixture(_) | Trained::Sources(_) => {
                return Err(Error::Unsupported {
                    method: self.family.name(),
                    what: "a fit without hidden cells",
                    instead: "one model or a mixture",
                });
            }
        };
        if termination == Termination::Interrupted { Err(Error::Interrupted) } else { Ok(refit) }
    }

    /// The method that fits the model again with cells hidden: its own if it allows gaps, started from the
    /// model if it can be.
    fn refit_method(&self, request: &Request) -> Result<Method, Error> {
        let model = &self.linear()?.model;
        let own = self.method.to_method()?;
        let hidden = if matches!(own, Method::Gibbs(_)) { own } else { request.with_gaps(&own)? };
        Ok(match hidden {
            Method::Em(em) => {
                Method::Em(Em { tolerance: em.tolerance.max(TOLERANCE), ..em.from_model(model) })
            }
            Method::SharedPrivate(method) if method.private.is_none() => {
                Method::SharedPrivate(SharedPrivate {
                    tolerance: method.tolerance.max(TOLERANCE),
                    init: Init::Given(Box::new(model.clone())),
                    ..method
                })
            }
            other => other,
        })
    }
}
