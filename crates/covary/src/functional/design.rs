//! The points of the curves of a table.

use super::basis::{Basis, LOCAL, Local};
use crate::{Dataset, Error};
use std::ops::Range;

/// When the columns of a wide table were observed: their names where these are different numbers, else their places 0, 1, …
///
/// ```
/// use covary::functional::column_times;
/// let names = |names: [&str; 3]| names.map(str::to_owned);
/// assert_eq!(column_times(&names(["0.5", "1", "4"])), [0.5, 1.0, 4.0]);
/// assert_eq!(column_times(&names(["jan", "feb", "mar"])), [0.0, 1.0, 2.0]);
/// ```
pub fn column_times(names: &[String]) -> Vec<f64> {
    named_times(names).unwrap_or_else(|| (0..names.len()).map(|j| j as f64).collect())
}

/// The times that the names of columns are, if they are.
fn named_times(names: &[String]) -> Option<Vec<f64>> {
    let number = |name: &String| name.trim().parse::<f64>().ok().filter(|t| t.is_finite());
    let times: Vec<f64> = names.iter().map(number).collect::<Option<_>>()?;
    let mut sorted = times.clone();
    sorted.sort_by(f64::total_cmp);
    sorted.windows(2).all(|pair| pair[0] < pair[1]).then_some(times)
}

/// A point of a curve: when, what, and the cell of the table it is from.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) time: f64,
    /// NaN where it is missing.
    pub(super) value: f64,
    pub(super) cell: (usize, usize),
}

/// The curves of a table, long or wide, with their missing points.
#[derive(Debug, Clone)]
pub(super) struct Curves {
    points: Vec<At>,
    starts: Vec<usize>,
}

impl Curves {
    /// # Errors
    /// [`Error::ColumnCount`] for a long table of more than one column.
    pub(super) fn of(data: &Dataset) -> Result<Self, Error> {
        let mut points = Vec::with_capacity(data.n_rows() * data.n_columns());
        let mut starts = vec![0];
        if let Some(long) = data.points() {
            if data.n_columns() != 1 {
                return Err(Error::ColumnCount { expected: 1, got: data.n_columns() });
            }
            for rows in long.of_curves() {
                points.extend(rows.into_iter().map(|i| At {
                    time: long.times()[i],
                    value: data.row(i)[0],
                    cell: (i, 0),
                }));
                starts.push(points.len());
            }
        } else {
            let times = column_times(data.column_names());
            for i in 0..data.n_rows() {
                let cells = data.row(i).iter().zip(&times).enumerate();
                points.extend(cells.map(|(j, (&value, &time))| At { time, value, cell: (i, j) }));
                starts.push(points.len());
            }
        }
        Ok(Self { points, starts })
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn curve(&self, i: usize) -> &[At] {
        &self.points[self.starts[i]..self.starts[i + 1]]
    }

    /// The points that were observed, all curves together.
    pub(super) fn observed(&self) -> impl Iterator<Item = &At> {
        self.points.iter().filter(|p| !p.value.is_nan())
    }

    /// Refuses curves from which no covariance can be learned: of two times of one curve nothing is known then.
    pub(super) fn check(&self) -> Result<(), Error> {
        let count = |i: usize| self.curve(i).iter().filter(|p| !p.value.is_nan()).count();
        let counts: Vec<usize> = (0..self.len()).map(count).collect();
        let informative = counts.iter().filter(|&&n| n > 0).count();
        if informative < 2 {
            return Err(Error::TooFewCurves { curves: informative });
        }
        if counts.iter().all(|&n| n < 2) {
            return Err(Error::OnePointPerCurve { curves: informative });
        }
        let mut times = self.observed().map(|p| p.time);
        let first = times.next().expect("there are points");
        if times.all(|t| t == first) {
            return Err(Error::OneTime { time: first });
        }
        Ok(())
    }
}

/// Observed points in a basis, in units of the fit.
#[derive(Debug, Clone)]
pub(super) struct Design {
    pub(super) basis_size: usize,
    locals: Vec<Local>,
    values: Vec<f64>,
    starts: Vec<usize>,
}

/// One curve of a design.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) locals: &'a [Local],
    pub(super) values: &'a [f64],
}

impl Design {
    /// The observed points of curves, `(y − center) / scale`.
    pub(super) fn new(curves: &Curves, basis: &Basis, (center, scale): (f64, f64)) -> Result<Self, Error> {
        let (mut locals, mut values, mut starts) = (Vec::new(), Vec::new(), vec![0]);
        for i in 0..curves.len() {
            for point in curves.curve(i).iter().filter(|p| !p.value.is_nan()) {
                locals.push(local(basis, point.time)?);
                values.push((point.value - center) / scale);
            }
            starts.push(locals.len());
        }
        Ok(Self { basis_size: basis.size(), locals, values, starts })
    }

    pub(super) fn n_curves(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn n_points(&self) -> usize {
        self.values.len()
    }

    pub(super) fn curve(&self, i: usize) -> Rows<'_> {
        let range: Range<usize> = self.starts[i]..self.starts[i + 1];
        Rows { locals: &self.locals[range.clone()], values: &self.values[range] }
    }
}

/// The splines at a time.
///
/// # Errors
/// [`Error::OutsideInterval`] for a time before the first or after the last of the model.
pub(super) fn local(basis: &Basis, time: f64) -> Result<Local, Error> {
    let (from, to) = basis.interval();
    basis.at(time).ok_or(Error::OutsideInterval { time, from, to })
}

/// Sums `Σ_j φ_j φ_jᵀ` as bands: `out[b · 4 + k]` is entry `(b, b + k)`.
pub(super) fn add_gram(locals: &[Local], out: &mut [f64]) {
    for local in locals {
        for (i, a) in local.values.iter().enumerate() {
            let row = &mut out[(local.first + i) * LOCAL..][..LOCAL];
            for (o, b) in row.iter_mut().zip(&local.values[i..]) {
                *o += a * b;
            }
        }
    }
}
