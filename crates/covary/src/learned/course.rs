//! What a model in time says of every step, past and to come.

use super::{Learned, Rows};
use crate::model::FilledCell;
use crate::{Dataset, Error, Matrix};

/// A sequence from its first step to the last that is forecast.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// What the sequence is called, if it has a name.
    pub sequence: Option<String>,
    /// The time of each step.
    pub times: Vec<i64>,
    /// Steps of the table; those after them are to come.
    pub n_past: usize,
    /// The cells of the steps of the table; NaN where none was observed.
    pub observed: Matrix,
    /// What is expected of each step: given all rows of the sequence, or of steps to come. Of observed cells without their noise.
    pub means: Matrix,
    /// What may have been where nothing was observed, and what may come; `row` is the step.
    pub unseen: Vec<FilledCell>,
}

impl Learned {
    /// Every step of each sequence of a table, and as many as asked for after it.
    ///
    /// ```
    /// use covary::{Dataset, Matrix, family::{Components, Family, Request}};
    /// let wave = |i: usize, j: usize| (i as f64 / 5.0 + j as f64).sin() + ((i * 7 + j * 3) % 5) as f64 / 20.0;
    /// let cells = Matrix::from_fn(60, 3, |i, j| if i == 20 { f64::NAN } else { wave(i, j) });
    /// let table = Dataset::new(cells)?;
    /// let request = Request { n_components: Some(Components::Number(1)), ..Request::new(Family::Dfm) };
    /// let course = &request.learn(&table)?.courses(&table, 4)?[0];
    /// assert_eq!((course.n_past, course.times.len(), course.means.n_rows()), (60, 64, 64));
    /// let unseen: Vec<usize> = course.unseen.iter().step_by(3).map(|cell| cell.row).collect();
    /// assert_eq!(unseen, [20, 60, 61, 62, 63]);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotInTime`] for other models than those in time, and as [`DynamicFit::factors`](super::DynamicFit::factors).
    pub fn courses(&self, data: &Dataset, steps: usize) -> Result<Vec<Course>, Error> {
        let fit = self.dynamic()?;
        let ahead = fit.forecast(data, steps)?;
        let every = data.every_step()?;
        let times = fit.times(&every)?;
        let (means, cells) = (self.reconstruct(&every, false)?, self.fill(Rows::New)?.cells(&every)?);
        let (d, mut cells) = (every.n_columns(), cells.into_iter().peekable());
        let course =
            |((k, sequence), ahead): ((usize, &crate::data::Sequence), crate::dynamics::Forecast)| {
                let past: Vec<usize> = sequence.rows().iter().flatten().copied().collect();
                let (from, n_past) = (past[0], past.len());
                let own = std::iter::from_fn(|| cells.next_if(|cell| cell.row < from + n_past));
                let mut unseen: Vec<FilledCell> =
                    own.map(|cell| FilledCell { row: cell.row - from, ..cell }).collect();
                unseen.extend(
                    ahead.cells.into_iter().map(|cell| FilledCell { row: cell.row + n_past, ..cell }),
                );
                let mut all = Matrix::from_fn(n_past + ahead.times.len(), d, |step, j| {
                    if step < n_past { means[(from + step, j)] } else { f64::NAN }
                });
                for cell in &unseen {
                    all[(cell.row, cell.column)] = cell.mean;
                }
                Course {
                    sequence: times.name(k).map(str::to_owned),
                    times: (0..n_past).map(|step| sequence.time(step)).chain(ahead.times).collect(),
                    n_past,
                    observed: Matrix::from_fn(n_past, d, |step, j| every.row(from + step)[j]),
                    means: all,
                    unseen,
                }
            };
        Ok(times.sequences().iter().enumerate().zip(ahead).map(course).collect())
    }
}
