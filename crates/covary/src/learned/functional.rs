//! Curves, and how the fit of their model went.

use super::answers::{RowScores, Surprise, other_coordinates};
use super::check::{Checked, Refitted, TOLERANCE};
use super::draws::DrawGaps;
use super::{Answers, Ending, Learned, Rows, Scores, Trained, Training};
use crate::data::PointColumns;
use crate::family::{Family, Request};
use crate::functional::{FunctionalEm, FunctionalPca, check_by_points, column_times};
use crate::infer::{FitReport, Observer, Termination};
use crate::model::{Fill, FilledCell, Predictive};
use crate::select::SelfCheckOptions;
use crate::{Coordinates, Dataset, Error, Estimator, Fit, Matrix, Spec};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::borrow::Cow;

/// Times of the curves that a model of a long table draws.
const DRAWN: usize = 51;

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
    /// The model fitted again to its own table with points hidden.
    fn without(
        &self,
        learned: &Learned,
        visible: &Dataset,
        observer: &mut dyn Observer,
    ) -> Result<FunctionalPca, Error> {
        let method = FunctionalEm { tolerance: TOLERANCE, ..FunctionalEm::try_from(&learned.method)? };
        let fit = method.fit_observed(visible, &self.spec, observer)?;
        match fit.report.termination {
            Termination::Interrupted => Err(Error::Interrupted),
            _ => Ok(fit.model),
        }
    }

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

/// Who fills points of curves.
struct InCurves<'a>(&'a FunctionalFit);

impl Fill for InCurves<'_> {
    fn cells(&self, table: &Dataset) -> Result<Vec<FilledCell>, Error> {
        self.0.model.fill(&*self.0.asked(table)?)
    }
}

impl DrawGaps for InCurves<'_> {
    fn draw_gaps(&self, table: &Dataset, k: usize, seed: u64) -> Result<Matrix, Error> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(k as u64);
        self.0.model.draw_gaps(&*self.0.asked(table)?, &mut rng)
    }
}

impl Answers for FunctionalFit {
    fn words(&self) -> &'static str {
        "a functional PCA"
    }

    fn not_linear(&self) -> Error {
        Error::Unsupported {
            method: self.words(),
            what: "a question about columns, which are times here",
            instead: "a model of a table whose rows have the same columns",
        }
    }

    fn n_components(&self) -> usize {
        self.model.n_components()
    }

    fn spec(&self) -> Option<&Spec> {
        Some(&self.spec)
    }

    fn ending(&self) -> Ending<'_> {
        (&self.report).into()
    }

    fn density(&self, _: Rows) -> Result<Predictive<'_>, Error> {
        Err(self.not_linear())
    }

    /// Of curves, each as a whole.
    fn row_scores(&self, data: &Dataset) -> Result<RowScores, Error> {
        let found = self.model.densities(&*self.asked(data)?)?;
        let surprise = |c: &crate::functional::CurveDensity| Surprise {
            mahalanobis: c.mahalanobis,
            n_observed: c.n_observed,
        };
        Ok(RowScores {
            log_density: found.iter().map(|c| c.log_density).collect(),
            surprises: Some(found.iter().map(surprise).collect()),
            membership: None,
            outlyingness: None,
        })
    }

    fn fill(&self, _: Rows) -> Result<Box<dyn Fill + '_>, Error> {
        Ok(Box::new(InCurves(self)))
    }

    fn gap_drawer(&self, _: Rows) -> Result<Box<dyn DrawGaps + '_>, Error> {
        Ok(Box::new(InCurves(self)))
    }

    /// Of curves: a curve is its mean and its scores times the eigenfunctions.
    fn scores(&self, learned: &Learned, data: &Dataset, how: Option<Coordinates>) -> Result<Scores, Error> {
        if !matches!(how, None | Some(Coordinates::Posterior)) {
            return Err(other_coordinates(self.words(), "posterior scores"));
        }
        let values = self.model.scores(&*self.asked(data)?)?.means;
        Ok(Scores { names: learned.score_names(), values, membership: None })
    }

    fn reconstruct(&self, _: &Learned, data: &Dataset, orthogonal: bool) -> Result<Matrix, Error> {
        if orthogonal {
            return Err(other_coordinates(self.words(), "posterior means"));
        }
        self.model.reconstruct(&*self.asked(data)?)
    }

    fn check_in_blocks(
        &self,
        learned: &Learned,
        data: &Dataset,
        options: &SelfCheckOptions,
        refit: Option<&mut dyn Observer>,
    ) -> Option<Result<Checked, Error>> {
        let refitted = refit.is_some();
        let data = match self.asked(data) {
            Ok(data) => data,
            Err(error) => return Some(Err(error)),
        };
        let fill = |visible: &Dataset| {
            let mut cells = match refit {
                None => self.model.fill(visible)?,
                Some(observer) => self.without(learned, visible, observer)?.fill(visible)?,
            };
            learned.filling.iter().for_each(|filling| filling.shape(&mut cells));
            Ok(cells)
        };
        Some(Checked::of(check_by_points(&data, options, fill), refitted))
    }

    fn refit(
        &self,
        _learned: &Learned,
        _request: &Request,
        _visible: &Dataset,
        _observer: &mut dyn Observer,
    ) -> Result<Option<Refitted>, Error> {
        Ok(None)
    }

    /// New curves, one in each row.
    fn sample(&self, n_rows: usize, rng: &mut dyn Rng) -> Result<(Matrix, Option<Vec<usize>>), Error> {
        Ok((self.model.sample(&self.drawn_times(), n_rows, rng)?, None))
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
