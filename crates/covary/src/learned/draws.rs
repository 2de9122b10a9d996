//! Tables completed by joint random draws, for multiple imputation.

use super::{Learned, Rows};
use crate::infer::ParameterPosterior;
use crate::model::{Fill, FilledCell, PARAMETERS, Predictive};
use crate::{Dataset, Density, Error, Matrix};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The gaps of a table, ready to be drawn: what is the same in every draw is known.
pub struct GapDraws<'a> {
    data: &'a Dataset,
    drawer: Box<dyn DrawGaps + 'a>,
    parameters: Option<ParameterPosterior>,
    /// Each gap as the model's draws are distributed, and as it is filled.
    cells: Vec<(FilledCell, FilledCell)>,
}

/// Draws the gaps of a table jointly.
pub(crate) trait DrawGaps: Fill {
    /// The table with a random draw in the place of each gap, the `k`th of several.
    fn draw_gaps(&self, table: &Dataset, k: usize, seed: u64) -> Result<Matrix, Error>;
}

impl DrawGaps for Predictive<'_> {
    fn draw_gaps(&self, table: &Dataset, k: usize, seed: u64) -> Result<Matrix, Error> {
        (**self).draw_gaps(table, k, seed)
    }
}

impl Learned {
    /// The gaps of a table, to be [drawn](GapDraws::draw) jointly by the model, each time with other parameters where it
    /// knows how uncertain these are, then moved as filled cells are by hidden cells of the training table [M 4.4.4].
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, family::Request, learned::Rows};
    /// let (whole, _) = simulate::ppca(Shape { rows: 80, columns: 5, n_components: 2 }, /* seed */ 1);
    /// let table = simulate::hide(&whole, 0.2, /* seed */ 2);
    /// let learned = Request::for_filling().learn(&table)?;
    /// let draws = learned.gap_draws(Rows::Training, &table)?;
    /// assert_eq!(draws.draw(0, /* seed */ 3)?, learned.gap_draws(Rows::Training, &table)?.draw(0, 3)?);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoDensity`] for independent components, [`Error::ColumnCount`] for a table of other columns.
    pub fn gap_draws<'a>(&'a self, rows: Rows, data: &'a Dataset) -> Result<GapDraws<'a>, Error> {
        let drawer = self.answers().gap_drawer(rows)?;
        let parameters = self.answers().parameter_posterior(self);
        let mut cells = Vec::new();
        if let Some(filling) = &self.filling {
            let mut plain = drawer.cells(data)?;
            let mut finished = plain.clone();
            if let (Some(parameters), true) = (&parameters, filling.estimated) {
                parameters.predict(data, &mut finished);
                parameters.predict_draws(data, &mut plain);
            }
            let finished = filling.finish(data, finished, self.has_exchangeable_rows());
            // Residuals of hidden cells are those of estimated parameters: a calibrated cell has counted them already, so
            // that draws are put in units that count them, too.
            if let (Some(parameters), Some(_)) = (&parameters, &filling.calibration) {
                for cell in &mut plain {
                    let observed = data.row(cell.row).iter().filter(|v| !v.is_nan()).count();
                    cell.sd *= parameters.inflation(cell.column, observed).sqrt();
                }
            }
            cells = plain.into_iter().zip(finished).collect();
        }
        Ok(GapDraws { data, drawer, parameters, cells })
    }
}

impl GapDraws<'_> {
    /// The table with a random draw in the place of each gap, the `k`th of several. Neither threads nor other rows reach
    /// the draw of a row.
    ///
    /// # Errors
    /// [`Error::ColumnCount`] for a table of other columns than the model's.
    pub fn draw(&self, k: usize, seed: u64) -> Result<Matrix, Error> {
        Ok(self.finished(&self.by_model(k, seed)?, |_| 0.0))
    }

    /// The same as the model draws it.
    pub(super) fn by_model(&self, k: usize, seed: u64) -> Result<Matrix, Error> {
        match &self.parameters {
            None => self.drawer.draw_gaps(self.data, k, seed),
            Some(parameters) => {
                // All rows of a completed table share one draw of the parameters.
                let mut rng = ChaCha8Rng::seed_from_u64(seed ^ PARAMETERS);
                rng.set_stream(k as u64);
                parameters.draw(&mut rng)?.draw_gaps(self.data, k, seed)
            }
        }
    }

    /// A draw of the model, moved as filled cells are and then by so much in each column.
    pub(super) fn finished(&self, drawn: &Matrix, by: impl Fn(usize) -> f64) -> Matrix {
        let mut out = drawn.clone();
        for (plain, finished) in &self.cells {
            let value = &mut out[(plain.row, plain.column)];
            *value = finished.moved(plain, *value, by(plain.column));
        }
        if self.cells.is_empty() {
            for pattern in self.data.patterns() {
                for (&i, &j) in pattern.rows.iter().flat_map(|i| pattern.gaps.iter().map(move |j| (i, j))) {
                    out[(i, j as usize)] += by(j as usize);
                }
            }
        }
        out
    }
}
