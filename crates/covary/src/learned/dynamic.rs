//! Factors that follow each other in time, and how their fit went.

use super::answers::Surprise;
use super::check::TOLERANCE;
use super::whole::{Filler, Residuals, WholeTable, times_of};
use super::{Learned, Trained, Training};
use crate::data::{TimeAxis, Timeline};
use crate::dynamics::{
    DynamicEm, DynamicFactor, Factors, Forecast, HiddenBlocks, Hide, LearnedFrom, Loadings, Season,
    check_by_blocks,
};
use crate::error::count;
use crate::family::Family;
use crate::infer::{FitReport, Observer, Warning};
use crate::linalg::dot;
use crate::model::FilledCell;
use crate::select::{CheckedCell, SelfCheck, SelfCheckOptions};
use crate::{Dataset, Error, Fit, Matrix, Spec};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::borrow::Cow;

/// A dynamic factor model, the time it lives in, and how its fit went.
#[derive(Debug, Clone, PartialEq)]
pub struct DynamicFit {
    /// The model, as fitted.
    pub model: DynamicFactor,
    /// What was fitted.
    pub spec: Spec,
    /// How the fit went and ended.
    pub report: FitReport,
    /// What its times stand for; `None` if rows were only counted.
    pub axis: Option<TimeAxis>,
    /// The first and the last time of the table it was fitted to.
    pub span: (i64, i64),
    /// How much that table had.
    pub from: LearnedFrom,
}

/// Sets of blocks that calibrate intervals: others than those that choose and check.
const CALIBRATING: std::ops::Range<u64> = 100..104;
/// As many of them for a fit that does not begin where the model stands.
const FEWER: usize = 2;

/// Which rows tell of the factors at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Knowing {
    /// All rows of the sequence: smoothed.
    AllRows,
    /// Those up to that time: filtered, what was known then.
    RowsSoFar,
}

impl DynamicFit {
    /// When the rows of a table happened, in the times of the model.
    ///
    /// # Errors
    /// [`Error::OtherTimes`] for a table in other steps than those of the model.
    pub fn times<'a>(&self, data: &'a Dataset) -> Result<Cow<'a, Timeline>, Error> {
        times_of(self.axis.as_ref(), data)
    }

    /// The factors of each row.
    ///
    /// # Errors
    /// As [`times`](Self::times), [`Error::ColumnCount`] for a table of other columns.
    pub fn factors(&self, data: &Dataset, knowing: Knowing) -> Result<Factors, Error> {
        let times = self.times(data)?;
        let steps = match knowing {
            Knowing::AllRows => self.model.smooth(data, &times)?,
            Knowing::RowsSoFar => self.model.filter(data, &times)?,
        };
        let k = self.model.n_components();
        let mut means = Matrix::zeros(data.n_rows(), k);
        let mut covariances = vec![Matrix::zeros(k, k); data.n_rows()];
        for (sequence, mut factors) in times.sequences().iter().zip(steps) {
            for (step, row) in sequence.rows().iter().enumerate() {
                if let Some(row) = *row {
                    means.row_mut(row).copy_from_slice(factors.means.row(step));
                    std::mem::swap(&mut covariances[row], &mut factors.covariances[step]);
                }
            }
        }
        Ok(Factors { means, covariances })
    }

    /// What is to be said of factors that do not return to a mean, as those of a fit with its own first state or of a model
    /// that was written by hand.
    pub fn unstable(&self) -> Option<Warning> {
        let (modulus, steps) = (self.model.spectral_radius(), self.span.0.abs_diff(self.span.1) as usize + 1);
        (modulus >= 1.0).then_some(Warning::LongMemory { modulus, steps })
    }

    /// How far a forecast looks unless something else is asked for: the steps of a season, or a dozen.
    pub fn usual_steps(&self) -> usize {
        match self.model.regressors().season {
            Season::None => 12,
            Season::Harmonics { period, .. } => period.ceil() as usize,
            Season::Indicators { period } => period,
        }
    }

    /// The rows that follow each sequence of a table, of which the parameters were estimated.
    ///
    /// # Errors
    /// As [`factors`](Self::factors).
    pub fn forecast(&self, data: &Dataset, steps: usize) -> Result<Vec<Forecast>, Error> {
        self.model.forecast_estimated(data, &*self.times(data)?, steps, &self.from)
    }
}

impl WholeTable for DynamicFit {
    type Method = DynamicEm;

    const WORDS: &'static str = "a dynamic factor model";
    const NOT_LINEAR: (&'static str, &'static str) =
        ("a question about single rows, which follow each other here", "a model whose rows may be shuffled");
    const IN_BLOCKS: bool = true;

    fn fitted(&self) -> (&DynamicFactor, &Spec, &FitReport) {
        (&self.model, &self.spec, &self.report)
    }

    fn n_components(&self) -> usize {
        self.model.n_components()
    }

    fn size(&self) -> String {
        let order = match self.model.order() {
            1 => String::new(),
            p => format!(" of order {p}"),
        };
        let steps = self.axis.as_ref().map_or_else(String::new, |a| format!(", {}", a.steps.words()));
        format!("{}{order}{steps}", count(self.model.n_components(), "factor"))
    }

    fn time(&self) -> Option<(&TimeAxis, i64)> {
        Some((self.axis.as_ref()?, self.span.0))
    }

    fn cells(&self, model: &DynamicFactor, table: &Dataset) -> Result<Vec<FilledCell>, Error> {
        model.fill(table, &*self.times(table)?)
    }

    fn draw(&self, table: &Dataset, rng: &mut ChaCha8Rng) -> Result<Matrix, Error> {
        self.model.draw_gaps(table, &*self.times(table)?, rng)
    }

    fn score_means(&self, data: &Dataset) -> Result<Matrix, Error> {
        Ok(self.factors(data, Knowing::AllRows)?.means)
    }

    fn rebuilt(&self, data: &Dataset) -> Result<Matrix, Error> {
        let (times, means) = (self.times(data)?, self.score_means(data)?);
        let (w, b) = (self.model.loadings(), self.model.coefficients());
        let of_rows = times.of_rows();
        let known: Vec<Vec<f64>> =
            of_rows.iter().map(|&(time, _)| self.model.regressors().at(time)).collect();
        let cell = |i: usize, j: usize| dot(w.row(j), means.row(i)) + dot(b.row(j), &known[i]);
        Ok(Matrix::from_fn(data.n_rows(), self.model.n_columns(), cell))
    }

    fn densities(&self, data: &Dataset) -> Result<(Vec<f64>, Vec<Surprise>), Error> {
        let (log_density, squared) = self.model.densities_and_surprises(data, &*self.times(data)?)?;
        let of_row = |(i, mahalanobis): (usize, f64)| Surprise {
            mahalanobis,
            n_observed: data.row(i).iter().filter(|v| !v.is_nan()).count(),
        };
        Ok((log_density, squared.into_iter().enumerate().map(of_row).collect()))
    }

    /// A sequence that begins with the table it was fitted to.
    fn new_rows(&self, n_rows: usize, rng: &mut dyn Rng) -> Result<Matrix, Error> {
        self.model.sample(self.span.0, n_rows, rng)
    }

    /// From where the model stands.
    fn again(&self, learned: &Learned) -> Result<DynamicEm, Error> {
        let own = DynamicEm::try_from(&learned.method)?;
        // Loadings that stay as they are would have seen what is hidden.
        let init = (own.loadings == Loadings::Likelihood).then(|| Box::new(self.model.clone()));
        Ok(DynamicEm { init, tolerance: TOLERANCE, ..own })
    }

    fn check(
        &self,
        data: &Dataset,
        options: &SelfCheckOptions,
        fill: &mut Filler<'_>,
    ) -> Result<(SelfCheck, Vec<CheckedCell>), Error> {
        check_by_blocks(data, &*self.times(data)?, self.model.n_components(), options, fill)
    }

    /// Of blocks of time: cells hidden one by one do not speak for rows that follow each other.
    fn residuals(
        &self,
        learned: &Learned,
        data: &Dataset,
        observer: &mut dyn Observer,
    ) -> Result<Residuals, Error> {
        let (times, k, mut out) = (self.times(data)?, self.model.n_components(), Residuals::default());
        let bayes = DynamicEm::try_from(&learned.method)?.loadings == Loadings::Bayes;
        for set in CALIBRATING.take(if bayes { FEWER } else { usize::MAX }) {
            let share = (SelfCheckOptions::default().share, Hide::AsGaps);
            let hidden = match HiddenBlocks::draw(data, &times, k, share, (learned.seed, set)) {
                Err(Error::TooFewToHide { .. }) => break,
                hidden => hidden?,
            };
            let model = self.without(learned, &hidden.visible, observer)?;
            let cells = hidden.predicted(model.fill(&hidden.visible, &times)?).map(|(cell, _)| cell);
            out.add(data, cells, true);
        }
        Ok(out)
    }
}

impl Learned {
    /// A dynamic factor model that `method` fitted to `data`.
    pub fn of_dynamic(fit: Fit<DynamicFactor>, data: &Dataset, spec: &Spec, method: &DynamicEm) -> Self {
        let (times, n_components) = (data.times(), fit.model.n_components());
        let dynamic = DynamicFit {
            model: fit.model,
            spec: Spec { n_components, ..spec.clone() },
            report: fit.report,
            axis: times.axis().cloned(),
            span: times.span(),
            from: data.into(),
        };
        Self::new(Family::Dfm, Training::with_names(data), method.into(), Trained::Dynamic(Box::new(dynamic)))
    }

    /// The dynamic factor model.
    ///
    /// # Errors
    /// [`Error::NotInTime`] for other models.
    pub fn dynamic(&self) -> Result<&DynamicFit, Error> {
        match &self.model {
            Trained::Dynamic(fit) => Ok(fit),
            other => Err(Error::NotInTime { what: other.answers().words() }),
        }
    }
}
