//! Curves, and how the fit of their model went.

use super::answers::Surprise;
use super::check::TOLERANCE;
use super::whole::{Filler, Residuals, WholeTable};
use super::{Learned, Trained, Training};
use crate::data::PointColumns;
use crate::error::count;
use crate::family::Family;
use crate::filling::{Hiding, sets_of};
use crate::functional::{
    CurveDensity, FunctionalEm, FunctionalPca, HiddenPoints, check_by_points, column_times,
};
use crate::infer::{FitReport, Observer};
use crate::model::FilledCell;
use crate::select::{CheckedCell, SelfCheck, SelfCheckOptions};
use crate::{Dataset, Error, Fit, Matrix, Spec};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::borrow::Cow;

/// Times of the curves that a model of a long table draws.
const DRAWN: usize = 51;
/// The first of the sets of points that calibrate intervals: others than those that choose and check.
const CALIBRATING: u64 = 100;

/// A functional PCA, and how its fit went.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionalFit {
    /// The model, as fitted.
    pub model: FunctionalPca,
    /// What was fitted.
    pub spec: Spec,
    /// How the fit went and ended.
    pub report: FitReport,
    /// The kind of table it was fitted to.
    pub table: CurveTable,
}

/// A table of curves.
#[derive(Debug, Clone, PartialEq)]
pub enum CurveTable {
    /// A row for each point of a curve.
    Long(PointColumns),
    /// A row for each curve, and a column for each of these times.
    Wide(Vec<f64>),
}

impl FunctionalFit {
    /// A table that it is asked about: the columns of a wide one are its times, in order, whatever they are called there.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] for a wide table of another number of columns.
    pub fn asked<'a>(&self, data: &'a Dataset) -> Result<Cow<'a, Dataset>, Error> {
        let CurveTable::Wide(times) = &self.table else { return Ok(Cow::Borrowed(data)) };
        if data.points().is_some() || column_times(data.column_names()) == *times {
            return Ok(Cow::Borrowed(data));
        }
        if data.n_columns() != times.len() {
            return Err(Error::ColumnCount { expected: times.len(), got: data.n_columns() });
        }
        let names = times.iter().map(f64::to_string).collect();
        data.with_cells(data.values().clone(), names).map(Cow::Owned)
    }

    /// The columns of curves and times of a long table.
    pub fn long(&self) -> Option<&PointColumns> {
        match &self.table {
            CurveTable::Long(columns) => Some(columns),
            CurveTable::Wide(_) => None,
        }
    }

    /// The times of curves that are drawn: those of the columns of a wide table, or a grid.
    fn drawn_times(&self) -> Vec<f64> {
        match &self.table {
            CurveTable::Long(_) => self.model.basis().grid(DRAWN),
            CurveTable::Wide(times) => times.clone(),
        }
    }

    /// Share of the variance, integrated over time, that each component explains; noise has its own.
    pub fn explained_variance_ratio(&self) -> Vec<f64> {
        let total = self.model.total_variance();
        self.model.eigenvalues().iter().map(|l| l / total).collect()
    }
}

impl WholeTable for FunctionalFit {
    type Method = FunctionalEm;

    const WORDS: &'static str = "a functional PCA";
    const NOT_LINEAR: (&'static str, &'static str) = (
        "a question about columns, which are times here",
        "a model of a table whose rows have the same columns",
    );
    const IN_BLOCKS: bool = false;

    fn fitted(&self) -> (&FunctionalPca, &Spec, &FitReport) {
        (&self.model, &self.spec, &self.report)
    }

    fn n_components(&self) -> usize {
        self.model.n_components()
    }

    fn size(&self) -> String {
        let (from, to) = self.model.basis().interval();
        let name = self.long().map_or("times", |columns| columns.time.as_str());
        format!("{}, {name} {from} to {to}", count(self.model.n_components(), "component"))
    }

    fn cells(&self, model: &FunctionalPca, table: &Dataset) -> Result<Vec<FilledCell>, Error> {
        model.fill(&*self.asked(table)?)
    }

    fn draw(&self, table: &Dataset, rng: &mut ChaCha8Rng) -> Result<Matrix, Error> {
        self.model.draw_gaps(&*self.asked(table)?, rng)
    }

    /// Of curves: a curve is its mean and its scores times the eigenfunctions.
    fn score_means(&self, data: &Dataset) -> Result<Matrix, Error> {
        Ok(self.model.scores(&*self.asked(data)?)?.means)
    }

    fn rebuilt(&self, data: &Dataset) -> Result<Matrix, Error> {
        self.model.reconstruct(&*self.asked(data)?)
    }

    /// Of curves, each as a whole.
    fn densities(&self, data: &Dataset) -> Result<(Vec<f64>, Vec<Surprise>), Error> {
        let of_curve = |c: CurveDensity| {
            (c.log_density, Surprise { mahalanobis: c.mahalanobis, n_observed: c.n_observed })
        };
        Ok(self.model.densities(&*self.asked(data)?)?.into_iter().map(of_curve).unzip())
    }

    /// New curves, one in each row.
    fn new_rows(&self, n_rows: usize, rng: &mut dyn Rng) -> Result<Matrix, Error> {
        self.model.sample(&self.drawn_times(), n_rows, rng)
    }

    fn again(&self, learned: &Learned) -> Result<FunctionalEm, Error> {
        Ok(FunctionalEm { tolerance: TOLERANCE, ..FunctionalEm::try_from(&learned.method)? })
    }

    fn check(
        &self,
        data: &Dataset,
        options: &SelfCheckOptions,
        fill: &mut Filler<'_>,
    ) -> Result<(SelfCheck, Vec<CheckedCell>), Error> {
        check_by_points(&*self.asked(data)?, options, fill)
    }

    fn residuals(
        &self,
        learned: &Learned,
        data: &Dataset,
        observer: &mut dyn Observer,
    ) -> Result<Residuals, Error> {
        let data = self.asked(data)?;
        let (n_sets, most) = sets_of(&data);
        let mut out = Residuals::default();
        for set in (CALIBRATING..).take(n_sets) {
            let share = (Hiding::default().share, most);
            let hidden = match HiddenPoints::as_gaps_lie(&data, share, (learned.seed, set)) {
                Err(Error::TooFewToHide { .. }) => break,
                hidden => hidden?,
            };
            let model = self.without(learned, &hidden.visible, observer)?;
            let cells = hidden.predicted(model.fill(&hidden.visible)?).into_iter().map(|(cell, _)| cell);
            out.add(&data, cells, hidden.transplanted);
        }
        Ok(out)
    }
}

impl Learned {
    /// A functional PCA that `method` fitted to `data`.
    pub fn of_curves(fit: Fit<FunctionalPca>, data: &Dataset, spec: &Spec, method: &FunctionalEm) -> Self {
        let unnamed = || PointColumns { curve: "curve".to_owned(), time: "time".to_owned() };
        let table = match data.points() {
            Some(points) => CurveTable::Long(points.columns().cloned().unwrap_or_else(unnamed)),
            None => CurveTable::Wide(column_times(data.column_names())),
        };
        let n_components = fit.model.n_components();
        let spec = Spec { n_components, ..spec.clone() };
        let functional = FunctionalFit { model: fit.model, spec, report: fit.report, table };
        let (training, model) = (Training::with_names(data), Trained::Functional(Box::new(functional)));
        Self::new(Family::Fpca, training, method.into(), model)
    }

    /// The functional PCA.
    ///
    /// # Errors
    /// [`Error::NotCurves`] for other models.
    pub fn functional(&self) -> Result<&FunctionalFit, Error> {
        match &self.model {
            Trained::Functional(fit) => Ok(fit),
            other => Err(Error::NotCurves { what: other.answers().words() }),
        }
    }

    /// The column of curves and their names, where scores and densities are of curves whose points are rows of a long table;
    /// `None` where they are of the rows themselves.
    pub fn curves_of<'a>(&self, data: &'a Dataset) -> Option<(&str, &'a [String])> {
        let columns = self.functional().ok()?.long()?;
        Some((&columns.curve, data.points()?.names()))
    }

    /// What columns of new rows are called: those of the model, or the times of curves.
    pub fn sampled_columns(&self) -> Vec<String> {
        match self.functional() {
            Ok(fit) if fit.long().is_some() => fit.drawn_times().iter().map(f64::to_string).collect(),
            _ => self.columns.clone(),
        }
    }
}
