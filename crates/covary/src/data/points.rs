//! Rows of a long table that are points of curves.

use crate::Error;
use std::collections::BTreeMap;

/// The curve that each row of a long table belongs to, and when it was observed; times may be any numbers.
///
/// ```
/// use covary::data::Points;
/// let names = || ["a", "b"].map(str::to_owned).to_vec();
/// let points = Points::new(vec![0.5, 1.0, 0.2], vec![0, 0, 1], names())?;
/// assert_eq!(points.of_curves(), [vec![0, 1], vec![2]]);
/// assert!(Points::new(vec![0.5, 0.5], vec![1, 1], names()).is_err());   // twice at one time
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Points {
    times: Vec<f64>,
    curves: Vec<usize>,
    names: Vec<String>,
    columns: Option<PointColumns>,
}

/// The columns of a long table that say which curve a row belongs to, and when it was observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointColumns {
    /// The column of curves.
    pub curve: String,
    /// The column of times.
    pub time: String,
}

impl Points {
    /// The time of each row, its curve, and the names of the curves.
    ///
    /// # Errors
    /// [`Error::WrongLength`] unless every row has a time and a curve and every curve a name, [`Error::OutOfRange`] for a time
    /// that is not finite, [`Error::RepeatedPoint`] where two rows of a curve have one time.
    pub fn new(times: Vec<f64>, curves: Vec<usize>, names: Vec<String>) -> Result<Self, Error> {
        let length = |what, expected, got| {
            if expected == got { Ok(()) } else { Err(Error::WrongLength { what, expected, got }) }
        };
        length("curves of rows", times.len(), curves.len())?;
        let needed = curves.iter().max().map_or(0, |most| most + 1);
        if names.len() < needed {
            length("names of curves", needed, names.len())?;
        }
        if let Some(&value) = times.iter().find(|t| !t.is_finite()) {
            return Err(Error::OutOfRange { name: "a time", value, bound: "a finite number" });
        }
        let mut seen = BTreeMap::new();
        for (row, (&time, &curve)) in times.iter().zip(&curves).enumerate() {
            // Both zeros are one time.
            if let Some(before) = seen.insert((curve, (time + 0.0).to_bits()), row) {
                let rows = (before + 1, row + 1);
                return Err(Error::RepeatedPoint { curve: names[curve].clone(), time, rows });
            }
        }
        Ok(Self { times, curves, names, columns: None })
    }

    /// The same with the columns it was read from.
    #[must_use]
    pub fn from_columns(self, columns: PointColumns) -> Self {
        Self { columns: Some(columns), ..self }
    }

    /// The columns it was read from, if it was.
    pub fn columns(&self) -> Option<&PointColumns> {
        self.columns.as_ref()
    }

    /// The time of each row.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// The place of each row's curve.
    pub fn curves(&self) -> &[usize] {
        &self.curves
    }

    /// What the curves are called.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The rows of each curve, in the order they stand.
    pub fn of_curves(&self) -> Vec<Vec<usize>> {
        let mut rows = vec![Vec::new(); self.names.len()];
        self.curves.iter().enumerate().for_each(|(row, &curve)| rows[curve].push(row));
        rows
    }

    /// Some of its rows, in the order given; `None` if one of them stands twice.
    pub(super) fn some_rows(&self, rows: &[usize]) -> Option<Self> {
        let mut left: Vec<usize> = rows.iter().map(|&i| self.curves[i]).collect();
        left.sort_unstable();
        left.dedup();
        let place = |curve: usize| left.binary_search(&curve).expect("its row is among them");
        let own = Self::new(
            rows.iter().map(|&i| self.times[i]).collect(),
            rows.iter().map(|&i| place(self.curves[i])).collect(),
            left.iter().map(|&curve| self.names[curve].clone()).collect(),
        );
        Some(Self { columns: self.columns.clone(), ..own.ok()? })
    }

    /// Refuses a table of another number of rows.
    pub(super) fn check(&self, n_rows: usize) -> Result<(), Error> {
        if n_rows == self.times.len() {
            return Ok(());
        }
        Err(Error::WrongLength { what: "times of rows", expected: n_rows, got: self.times.len() })
    }
}
