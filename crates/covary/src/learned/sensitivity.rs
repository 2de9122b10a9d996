//! Values that are not missing at random: how answers move if missing values are larger, or smaller, than the model fills in
//! (pattern-mixture models) [M 4.12].

use super::{Learned, Rows};
use crate::filling::Filling;
use crate::select::{Pooled, pool};
use crate::{Dataset, Error};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Draws that estimates are pooled over.
const DRAWS: usize = 20;

/// The estimate of each draw, and its variance.
type ByDraw = (Vec<f64>, Vec<f64>);

/// How the mean of a column moves with its missing values.
#[derive(Debug, Clone, PartialEq)]
pub struct Tipping {
    /// The column, from 0.
    pub column: usize,
    /// Its missing cells.
    pub n_gaps: usize,
    /// One for each shift that was asked for.
    pub points: Vec<TippingPoint>,
}

/// The mean of a column if its missing values lie farther up, or down, than the model fills in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TippingPoint {
    /// By how many standard deviations of the column.
    pub shift: f64,
    /// The mean, pooled over draws.
    pub mean: f64,
    /// Its standard error: √T of Rubin's rules.
    pub standard_error: f64,
    /// The ends of its 95 % interval.
    pub lower: f64,
    /// The upper end.
    pub upper: f64,
}

impl TippingPoint {
    fn of(shift: f64, pooled: &Pooled) -> Self {
        let nu = pooled.degrees_of_freedom;
        let quantile = match StudentsT::new(0.0, 1.0, nu) {
            Ok(t) if nu < 1e3 => t.inverse_cdf(0.975),
            _ => Normal::standard().inverse_cdf(0.975),
        };
        let (mean, standard_error) = (pooled.estimate, pooled.total.sqrt());
        let reach = quantile * standard_error;
        Self { shift, mean, standard_error, lower: mean - reach, upper: mean + reach }
    }
}

impl Learned {
    /// From now on fills cells of the named columns this many standard deviations (of the observed cells of the column)
    /// above what hidden cells of the training table say: values, intervals and draws. The check on hidden cells, which are
    /// observed, does not move. It replaces a shift set before.
    ///
    /// ```
    /// use covary::{data::{simulate, Shape}, family::Request, learned::Rows};
    /// let (whole, _) = simulate::ppca(Shape { rows: 80, columns: 5, n_components: 2 }, /* seed */ 1);
    /// let table = simulate::hide(&whole, 0.2, /* seed */ 2);
    /// let mut learned = Request::for_filling().learn(&table)?;
    /// let before = learned.fill(Rows::Training)?.fill(&table)?;
    /// learned.shift(&[("x2".to_owned(), 0.5)])?;
    /// let after = learned.fill(Rows::Training)?.fill(&table)?;
    /// for (a, b) in after.cells().iter().zip(before.cells()) {
    ///     let by = if a.column == 1 { 0.5 * learned.training.column_sds[1] } else { 0.0 };
    ///     assert_eq!(a.mean, b.mean + by);
    /// }
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ColumnNotFilled`] for a column that is not in the model, [`Error::OutOfRange`] for a shift that is not
    /// finite.
    pub fn shift(&mut self, by: &[(String, f64)]) -> Result<(), Error> {
        let mut shift = vec![0.0; self.columns.len()];
        for (name, deviations) in by {
            let Some(j) = self.columns.iter().position(|column| column == name) else {
                return Err(Error::ColumnNotFilled {
                    column: name.clone(),
                    known: crate::data::list(&self.columns),
                });
            };
            if !deviations.is_finite() {
                let (name, bound) = ("a shift in standard deviations", "finite");
                return Err(Error::OutOfRange { name, value: *deviations, bound });
            }
            shift[j] = deviations * self.training.column_sds[j];
        }
        self.filling.get_or_insert_with(Filling::default).shift = shift;
        Ok(())
    }

    /// How the means of these columns, pooled over 20 draws of the gaps, move if missing values lie farther up or down by
    /// each of these `shifts`, in standard deviations of the column, on top of a [shift](Self::shift) that is set.
    ///
    /// # Errors
    /// As [`gap_draws`](Self::gap_draws); [`Error::OutOfRange`] for a shift that is not finite.
    pub fn tipping_points(
        &self,
        rows: Rows,
        data: &Dataset,
        columns: &[usize],
        shifts: &[f64],
        seed: u64,
    ) -> Result<Vec<Tipping>, Error> {
        let draws = self.gap_draws(rows, data)?;
        let n = data.n_rows() as f64;
        // By column and shift: the estimate of each draw and its variance.
        let mut found = vec![vec![(Vec::new(), Vec::new()); shifts.len()]; columns.len()];
        for k in 0..DRAWS {
            let drawn = draws.by_model(k, seed)?;
            for (s, &shift) in shifts.iter().enumerate() {
                let moved = draws.finished(&drawn, |j| shift * self.training.column_sds[j]);
                for (&j, found) in columns.iter().zip(&mut found) {
                    let mean = (0..data.n_rows()).map(|i| moved[(i, j)]).sum::<f64>() / n;
                    let squares: f64 = (0..data.n_rows()).map(|i| (moved[(i, j)] - mean).powi(2)).sum();
                    found[s].0.push(mean);
                    found[s].1.push(squares / (n - 1.0) / n);
                }
            }
        }
        let of_column = |(&column, found): (&usize, Vec<ByDraw>)| {
            let n_gaps = data.n_rows() - data.n_observed_by_column()[column];
            let point = |(&shift, (estimates, variances)): (&f64, ByDraw)| {
                Ok(TippingPoint::of(shift, &pool(&estimates, &variances)?))
            };
            let points = shifts.iter().zip(found).map(point).collect::<Result<_, Error>>()?;
            Ok(Tipping { column, n_gaps, points })
        };
        columns.iter().zip(found).map(of_column).collect()
    }
}
