//! Curves by a column that tells them apart and a column of times.

use super::error::shown;
use super::{Error, Gaps, Note, Table};
use crate::data::{PointColumns, Points};

impl Table {
    /// Says that its rows are points of curves: its [`dataset`](Self::dataset) is [of points](crate::Dataset::of_points) then.
    /// Columns are named as for [`ColumnChoice`](super::ColumnChoice); times are numbers.
    ///
    /// ```
    /// use covary::{data::PointColumns, io::{csv, Gaps}};
    /// let text = "child,age,height\na,1.0,75\nb,1.5,80\na,2.0,87\n".as_bytes();
    /// let columns = PointColumns { curve: "child".to_owned(), time: "age".to_owned() };
    /// let table = csv::read(text)?.of_points(&columns, &Gaps::default())?;
    /// assert_eq!(table.dataset().points().unwrap().of_curves(), [vec![0, 2], vec![1]]);
    /// # Ok::<(), covary::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownColumn`] for a column that is not there, [`Error::NoTime`] for a cell that is missing,
    /// [`Error::NotANumberedTime`] for a time that is no number, [`Error::Request`] for two rows of a curve at one time.
    pub fn of_points(mut self, columns: &PointColumns, gaps: &Gaps) -> Result<Self, Error> {
        let (curve, time) = (self.one_column(&columns.curve)?, self.one_column(&columns.time)?);
        let texts = self.texts(time, gaps)?;
        let comma = self.has_decimal_comma();
        let number = |(row, text): (usize, &String)| {
            let plain = if comma { text.replace(',', ".") } else { text.clone() };
            plain.parse::<f64>().ok().filter(|t| t.is_finite()).ok_or_else(|| Error::NotANumberedTime {
                place: self.place(row),
                column: self.names[time].clone(),
                text: shown(text.as_bytes()),
            })
        };
        let times: Vec<f64> = texts.iter().enumerate().map(number).collect::<Result<_, _>>()?;
        let (curves, names) = super::times::numbered(self.texts(curve, gaps)?);
        let own = PointColumns { curve: self.names[curve].clone(), time: self.names[time].clone() };
        let (first, last) =
            times.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &t| (a.min(t), b.max(t)));
        let n = names.len();
        let words = format!(
            "`{}` of {n} curve{} (`{}`), {first} to {last}",
            own.time,
            if n == 1 { "" } else { "s" },
            own.curve
        );
        self.notes.push(Note::Times { words, sorted: true });
        let points = Points::new(times, curves, names)?.from_columns(own);
        self.data = self.data.of_points(points)?;
        Ok(self)
    }
}
