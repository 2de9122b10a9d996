//! How gaps are filled best, and how certain that is, by hidden cells of the table itself [M 4.0].
//!
//! | step | answer |
//! | --- | --- |
//! | which cells to hide? | [`hide_as_gaps_lie`]: as the gaps of other rows lie |
//! | how good is a prediction? | [`crps`], in standard deviations of the column |
//! | is a candidate better than the default? | [`Gain`]: by more than its standard error |
//! | what does a Gaussian leave over? | [`Correction`]: smooth functions of the rest of the row |
//! | may a mean lie beyond all observed values? | [`Observed::restrained`]: as far as it is certain |
//! | how far do intervals reach? | [`calibrate`]: as far as the residuals of hidden cells |
//! | what values can a column have? | [`limits_of`] |
//! | which cells are far from what their rows say? | [`wild_cells`] |
//!
//! [`Request::learn`](crate::family::Request::learn) puts them together where the request is for
//! [filling](crate::family::Request::filling).

mod calibration;
mod correction;
mod extrapolation;
mod hidden;
mod limits;
mod odds;
mod ridge;
mod score;
mod wild;

pub use calibration::{ColumnCalibration, calibrate};
pub use correction::Correction;
pub(crate) use correction::{ColumnCorrection, Widths};
pub use extrapolation::Observed;
pub(crate) use extrapolation::{observed_of, restrain};
pub use hidden::{HiddenSet, Hiding, hide_as_gaps_lie};
pub(crate) use hidden::{MANY_ROWS, hide_one_by_one, most_gaps, sets_of};
pub use limits::limits_of;
pub(crate) use odds::Odds;
pub use ridge::{Regression, regress};
pub use score::{Gain, crps, weights_by_gaps};
pub use wild::{FarCell, FarCellWords, wild_cells};

use crate::infer::ParameterPosterior;
use crate::model::{Distribution, Fill, FilledCell, Limits, Quantiles, Shape};
use crate::{Dataset, Error};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Multiplications of a step of the full covariance from which on a table is modeled by components: at 1e9 a fit takes about a
/// second.
const TOO_MUCH_WORK: f64 = 1e9;

/// Multiplications of a step of the full covariance: moments, and a block for each pattern of gaps.
pub(crate) fn work_of_step(data: &Dataset) -> f64 {
    let d = data.n_columns() as f64;
    let of_blocks = |gaps: usize| (gaps.min(data.n_columns() - gaps) as f64).powi(2) * d;
    let rows = data.patterns().map(|p| p.rows.len() as f64 * (d * d + of_blocks(p.gaps.len())));
    d * d * d + rows.sum::<f64>()
}

/// Whether a full covariance takes too long.
pub(crate) fn too_large(data: &Dataset) -> bool {
    work_of_step(data) > TOO_MUCH_WORK
}

/// What hidden cells say of how a model fills.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filling {
    /// What was tried on hidden cells, in order; the last that was taken is the model. Empty if nothing was.
    pub tried: Vec<Tried>,
    /// What is added to a Gaussian's cells.
    pub correction: Option<Correction>,
    /// What means are restrained by; `None` for a model that was asked for by name.
    pub observed: Option<Vec<Observed>>,
    /// How far intervals reach; `None` if it was not asked for or too few cells can be hidden.
    pub calibration: Option<Calibration>,
    /// Whether too few cells can be hidden to calibrate a Gaussian, whose cells are Student's t then: they count that mean
    /// and covariance were estimated [M 4.4.7].
    pub estimated: bool,
    /// What values the columns can have; `None` if limits were not asked for.
    pub limits: Option<Vec<Limits>>,
    /// What is added to filled cells of each column, where values are taken to be missing because of what they are
    /// ([`Learned::shift`](crate::learned::Learned::shift)); empty if nothing is.
    pub shift: Vec<f64>,
}

/// A way of filling that was tried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tried {
    /// What.
    pub candidate: Candidate,
    /// Mean score on hidden cells, in standard deviations of the columns.
    pub crps: f64,
    /// How much lower that is than the score of what had been taken before; zero for the first.
    pub gain: Gain,
    /// Whether it was taken in its place.
    pub taken: bool,
}

/// A way of filling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Candidate {
    /// A Gaussian with a full covariance and this many pseudo-rows.
    PseudoRows(f64),
    /// The same with its correction.
    Correction,
    /// The mean of each column.
    ColumnMeans,
}

/// Quantile functions of the columns, by hidden cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// One for each column.
    pub columns: Vec<ColumnCalibration>,
    /// Hidden cells that they were made from, each counted once.
    pub n_hidden: usize,
    /// Whether cells were hidden as gaps of other rows lie.
    pub transplanted: bool,
}

impl Filling {
    /// Of cells that the model fills, those that are to be filled in; `exchangeable` says that rows tell nothing of each other.
    pub(crate) fn finish(
        &self,
        data: &Dataset,
        mut cells: Vec<FilledCell>,
        exchangeable: bool,
    ) -> Vec<FilledCell> {
        if let Some(correction) = &self.correction {
            correction.correct(data, &mut cells);
        }
        if let Some(observed) = &self.observed {
            restrain(observed, &mut cells);
        }
        // Of a row without a value nothing was predicted: it has the spread of the columns, which the model knows. Unless others tell.
        self.shape(&mut cells, |row| !exchangeable || data.row(row).iter().any(|v| !v.is_nan()));
        if !self.shift.is_empty() {
            for cell in &mut cells {
                cell.mean += self.shift[cell.column];
            }
        }
        cells
    }

    /// Gives cells the distribution of their columns, as wide as hidden cells say where rows are known in part.
    pub(crate) fn shape(&self, cells: &mut [FilledCell], in_part: impl Fn(usize) -> bool) {
        let limits = |j: usize| self.limits.as_ref().map_or(Limits::NONE, |limits| limits[j]);
        let calibrated = |j: usize| self.calibration.as_ref().map(|c| &c.columns[j]);
        let n = self.calibration.as_ref().map(|c| c.columns.len()).or(self.limits.as_ref().map(Vec::len));
        let of = |quantiles: Quantiles, j: usize| Arc::new(Shape { quantiles, limits: limits(j) });
        let shape = |j: usize| {
            of(calibrated(j).map_or_else(Quantiles::normal, |c| Quantiles::clone(&c.quantiles)), j)
        };
        let shapes: Vec<Arc<Shape>> = (0..n.unwrap_or(0)).map(shape).collect();
        for cell in cells.iter_mut().filter(|cell| cell.sd > 0.0 && cell.column < shapes.len()) {
            match calibrated(cell.column) {
                Some(_) if !in_part(cell.row) => {}
                Some(column) => cell.sd *= column.spread,
                None if self.estimated && limits(cell.column) != Limits::NONE => {
                    cell.distribution =
                        Distribution::Shaped(of(Quantiles::of(&cell.distribution), cell.column));
                    continue;
                }
                // Limits alone: a shape of its own is worth more than they are.
                None if cell.distribution != Distribution::Normal => continue,
                None => {}
            }
            cell.distribution = Distribution::Shaped(shapes[cell.column].clone());
        }
    }
}

/// A model that fills, finished by what hidden cells say.
pub(crate) struct Finished<'a> {
    pub(crate) model: Box<dyn Fill + 'a>,
    pub(crate) filling: &'a Filling,
    /// How uncertain its parameters are, where cells are to count it.
    pub(crate) parameters: Option<ParameterPosterior>,
    /// Whether rows tell nothing of each other.
    pub(crate) exchangeable: bool,
}

impl Finished<'_> {
    fn finish(&self, table: &Dataset, mut cells: Vec<FilledCell>) -> Vec<FilledCell> {
        if let Some(parameters) = &self.parameters {
            parameters.predict(table, &mut cells);
        }
        self.filling.finish(table, cells, self.exchangeable)
    }
}

impl Fill for Finished<'_> {
    fn cells(&self, table: &Dataset) -> Result<Vec<FilledCell>, Error> {
        Ok(self.finish(table, self.model.cells(table)?))
    }

    fn cells_unless(&self, table: &Dataset, stop: &AtomicBool) -> Result<Vec<FilledCell>, Error> {
        Ok(self.finish(table, self.model.cells_unless(table, stop)?))
    }
}
