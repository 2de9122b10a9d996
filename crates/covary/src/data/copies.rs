use super::Dataset;
use crate::Matrix;

/// A column that says the same as an earlier one: `column = added + factor × of` in every row that has both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CopiedColumn {
    /// The column.
    pub column: usize,
    /// The earlier one.
    pub of: usize,
    /// The ratio of their units.
    pub factor: f64,
    /// The difference of their zeros, in units of the column.
    pub added: f64,
}

/// Rows that both have, and different values there, without which columns may agree by chance.
const FEWEST_ROWS: usize = 10;
const FEWEST_VALUES: usize = 3;
/// What rounding may leave, as a share of the range of the column.
const ROUNDING: f64 = 1e-9;
/// Rows in which all pairs are compared first, which must show that both vary, and columns beyond which pairs are too many.
const SAMPLE: usize = 32;
const MOST_COLUMNS: usize = 2000;

/// The columns that are linear functions of an earlier one. `low` and `high` are the extremes of the columns.
pub(super) fn copies(data: &Dataset, low: &[f64], high: &[f64]) -> Vec<CopiedColumn> {
    let d = data.n_columns();
    if d > MOST_COLUMNS {
        return Vec::new();
    }
    let rows = data.spread_rows(SAMPLE);
    let sample = Matrix::from_fn(d, rows.len(), |j, i| data.row(rows[i])[j]);
    let varies = |j: usize| low[j] < high[j];
    let copy_of = |j: usize| {
        let alike = |&of: &usize| {
            let pairs = sample.row(of).iter().zip(sample.row(j)).map(|(x, y)| (*x, *y));
            varies(of)
                && Line::of(pairs, ROUNDING.sqrt() * (high[j] - low[j])).is_some_and(|line| line.is_slanted())
        };
        let same = |of: usize| {
            let pairs = (0..data.n_rows()).map(|i| (data.row(i)[of], data.row(i)[j]));
            let line = Line::of(pairs, ROUNDING * (high[j] - low[j]))?;
            let enough = line.n_rows >= FEWEST_ROWS && line.is_slanted();
            enough.then_some(CopiedColumn { column: j, of, factor: line.factor, added: line.added })
        };
        (0..j).filter(alike).find_map(same)
    };
    (0..d).filter(|&j| varies(j)).filter_map(copy_of).collect()
}

/// The line through pairs of numbers.
struct Line {
    n_rows: usize,
    /// Some different values of x and of y.
    values: [Vec<f64>; 2],
    factor: f64,
    added: f64,
}

impl Line {
    /// `None` if pairs without a gap do not lie on one to within `tolerance`.
    fn of(pairs: impl Iterator<Item = (f64, f64)>, tolerance: f64) -> Option<Self> {
        let both = pairs.filter(|(x, y)| !x.is_nan() && !y.is_nan());
        let (mut n_rows, mut values) = (0, [Vec::new(), Vec::new()]);
        let mut first: Option<(f64, f64)> = None;
        let mut line: Option<(f64, f64)> = None;
        for (x, y) in both {
            n_rows += 1;
            let (x0, y0) = *first.get_or_insert((x, y));
            for (values, v) in values.iter_mut().zip([x, y]) {
                if values.len() < FEWEST_VALUES && !values.contains(&v) {
                    values.push(v);
                }
            }
            let (far, factor) = match line {
                Some((far, factor)) => (far, factor),
                None if x == x0 => (0.0, 0.0),
                None => (0.0, (y - y0) / (x - x0)),
            };
            // The slope is known to the rounding over the distance that it was found at.
            let reach = if far == 0.0 { 1.0 } else { 1.0 + ((x - x0) / far).abs() };
            if (y - y0 - factor * (x - x0)).abs() > tolerance * reach {
                return None;
            }
            if (x - x0).abs() > far.abs() {
                line = Some((x - x0, (y - y0) / (x - x0)));
            }
        }
        let ((x0, y0), (_, factor)) = (first.unwrap_or_default(), line.unwrap_or_default());
        let added = y0 - factor * x0;
        // What is left of numbers that cancel is rounding.
        let added = if added.abs() <= tolerance { 0.0 } else { added };
        Some(Self { n_rows, values, factor, added })
    }

    /// Whether both x and y vary: what is constant where the other is seen says nothing of it.
    fn is_slanted(&self) -> bool {
        self.values.iter().all(|values| values.len() >= FEWEST_VALUES)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Ledger;
    use super::*;

    #[test]
    fn columns_in_other_units_are_copies_and_correlated_ones_are_not() {
        let celsius = |i: usize| ((i * 37) % 101) as f64 / 7.0 - 3.0;
        let cell = |i: usize, j: usize| match j {
            1 => 32.0 + 1.8 * celsius(i),
            2 => celsius(i) + if i == 50 { 1e-6 } else { 0.0 },
            3 => f64::from(u8::from(i.is_multiple_of(2))),
            4 => f64::from(u8::from(!i.is_multiple_of(2))),
            5 => 4.0,
            6 if i.is_multiple_of(3) => f64::NAN,
            0 | 6 => celsius(i),
            7 => (i * i % 17) as f64,
            // Weeks of pregnancy, and sex: constant where the former is known.
            8 if i % 4 > 1 => f64::NAN,
            8 => 30.0 + (i * 7 % 11) as f64,
            _ => f64::from(u8::from(i % 4 > 1)) * (1 + i % 3) as f64,
        };
        let data = Dataset::new(Matrix::from_fn(90, 10, cell)).unwrap();
        let found = Ledger::of(&data).copies;
        assert_eq!(found.iter().map(|c| (c.column, c.of)).collect::<Vec<_>>(), [(1, 0), (6, 0)]);
        assert!((found[0].factor - 1.8).abs() < 1e-12 && (found[0].added - 32.0).abs() < 1e-9);
        assert_eq!((found[1].factor, found[1].added), (1.0, 0.0));
        // Nine rows may agree by chance.
        let few = data.of_rows(&(0..9).collect::<Vec<_>>()).unwrap();
        assert_eq!(Ledger::of(&few).copies, []);
    }
}
