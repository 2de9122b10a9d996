//! What factors in time would have predicted of a table whose model does not know of time.

use super::Learned;
use super::check::Refitted;
use crate::data::{Steps, Timeline};
use crate::dynamics::{DynamicEm, HiddenBlocks, Hide, Season};
use crate::family::{Family, Request};
use crate::infer::Observer;
use crate::model::FilledCell;
use crate::select::SelfCheckOptions;
use crate::{Dataset, Density, Error, Estimator};

/// Cells beyond which nothing is compared: it would take longer than the fit.
const MOST_CELLS: usize = 20_000;
/// Factors in time and their steps: a look, not a search.
const FACTORS: usize = 2;
const STEPS: usize = 50;
/// Blocks other than those that choose, check and calibrate.
const SET: u64 = 200;

/// Two models beside each other on the same hidden blocks of time.
#[derive(Debug, Clone, PartialEq)]
pub struct BesideTime {
    /// Cells that were hidden.
    pub n_hidden: usize,
    /// Factors of the model in time.
    pub n_factors: usize,
    /// Steps of its season: a year, where steps are months or quarters.
    pub season: Option<usize>,
    /// Root mean squared error of the model that does not know of time, fitted again, in standard deviations of the columns.
    pub rmse: f64,
    /// The same of factors in time.
    pub rmse_in_time: f64,
}

impl Learned {
    /// Hides blocks of time of `data`, the model's columns of its own table, [in time](Dataset::in_time), and compares what this model
    /// and factors in time, both fitted without them, predict. `None` where that would take longer than the fit did, where no block can
    /// be spared, and for a model in time or one that is not fitted again.
    ///
    /// ```
    /// use covary::{Dataset, Matrix, family::{Components, Family, Request}};
    /// let wave = |i: usize, j: usize| (i as f64 / 9.0).sin() * (j + 1) as f64 + ((i * 7 + j * 3) % 5) as f64 / 9.0;
    /// let table = Dataset::new(Matrix::from_fn(120, 4, wave))?;
    /// let request = Request { n_components: Some(Components::Number(1)), ..Request::new(Family::Ppca) };
    /// let beside = request.learn(&table)?.beside_time(&request, &table, &mut ())?.unwrap();
    /// assert!(beside.rmse_in_time < beside.rmse);                    // whole rows are hidden, too
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// What a fit refuses, and [`Error::Interrupted`].
    pub fn beside_time(
        &self,
        request: &Request,
        data: &Dataset,
        observer: &mut dyn Observer,
    ) -> Result<Option<BesideTime>, Error> {
        if data.n_observed() > MOST_CELLS || self.dynamic().is_ok() {
            return Ok(None);
        }
        let n_factors = FACTORS.min(data.n_columns().saturating_sub(1)).max(1);
        let (times, share) = (data.times(), SelfCheckOptions::default().share);
        let keep = n_factors.max(self.fewest_cells());
        let drawn = HiddenBlocks::draw(data, &times, keep, (share, Hide::AsGaps), (request.seed, SET));
        let hidden = match drawn {
            Err(Error::TooFewToHide { .. }) => return Ok(None),
            hidden => hidden?,
        };
        let own = match self.answers().refit(self, request, &hidden.visible, observer)? {
            None => return Ok(None),
            Some(Refitted::Linear(fit)) => fit.of_training_rows().gap_cells(&hidden.visible)?,
            Some(Refitted::Mixture(mixture)) => mixture.gap_cells(&hidden.visible)?,
        };
        let period = steps_of_a_year(&times);
        let season = period.map_or(Season::None, |s| Season::Harmonics { period: s as f64, n: 1 });
        let em = DynamicEm { max_iterations: STEPS, season, ..DynamicEm::default() };
        let spec = Request::new(Family::Dfm).spec_for(data, n_factors);
        let fit = em.fit_observed(&hidden.visible, &spec, observer)?;
        let in_time = fit.model.fill(&hidden.visible, &times)?;
        let rmse = |cells: Vec<FilledCell>| {
            let (mut sum, mut n) = (0.0, 0);
            for (cell, _) in hidden.predicted(cells) {
                let error = data.row(cell.row)[cell.column] - cell.mean;
                sum += error * error / data.observed_variances()[cell.column];
                n += 1;
            }
            ((sum / n as f64).sqrt(), n)
        };
        let ((rmse_in_time, n_hidden), (rmse, _)) = (rmse(in_time), rmse(own));
        Ok(Some(BesideTime { n_hidden, n_factors, season: period, rmse, rmse_in_time }))
    }
}

/// Steps of a year in a table of several years whose steps are parts of it.
fn steps_of_a_year(times: &Timeline) -> Option<usize> {
    let Steps::Months { step, .. } = times.axis()?.steps else { return None };
    let steps = usize::try_from(12 / step).ok().filter(|steps| *steps >= 2 && 12 % step == 0)?;
    let longest = times.sequences().iter().map(|s| s.rows().len()).max()?;
    (longest >= 3 * steps).then_some(steps)
}
