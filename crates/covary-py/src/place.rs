//! Where the columns of a model stand in the table it was fitted to.

use crate::array::{Array1, Array2, Table, array2};
use crate::error::{of, raise};
use covary::learned::Constant;
use covary::model::{ColumnMap, FilledCell, Imputed};
use covary::{Dataset, Error, Matrix};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

/// The place of a model's columns among the table's, and what is known of the others.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) column_map: ColumnMap,
    /// Names of the table's columns.
    pub(crate) names: Vec<String>,
    /// Value of each column observed once: nothing else is known of it.
    pub(crate) singles: Vec<(usize, f64)>,
}

/// What pickle keeps of it: names, columns of the model, constants, columns observed once.
pub(crate) type Pickled = (Vec<String>, Vec<usize>, Vec<(usize, f64)>, Vec<(usize, f64)>);

/// What a filled table is: values, then row, column, mean and sd of each filled cell.
pub(crate) type Filled<'py> =
    (Array2<'py>, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>, Array1<'py>, Array1<'py>);

impl Place {
    pub(crate) fn new(column_map: ColumnMap, data: &Dataset) -> Self {
        let single = |j: &usize| data.n_observed_by_column()[*j] == 1 && !column_map.columns.contains(j);
        let value = |j: usize| Some((j, data.constant(j)?));
        let singles = (0..data.n_columns()).filter(single).filter_map(value).collect();
        Self { column_map, names: data.column_names().to_vec(), singles }
    }

    /// Of a model whose columns are the table's.
    pub(crate) fn whole(names: Vec<String>) -> Self {
        let columns = (0..names.len()).collect();
        Self { column_map: ColumnMap { columns, constants: Vec::new() }, names, singles: Vec::new() }
    }

    /// Of a model file, its columns in the order of their default names if they have such, else first the
    /// model's and then its constants.
    pub(crate) fn of_file(columns: &[String], constants: &[Constant]) -> Self {
        let aside = constants.iter().map(|c| &c.name);
        let mut names: Vec<String> = columns.iter().chain(aside).cloned().collect();
        let number = |name: &String| name.strip_prefix('x').and_then(|n| n.parse::<usize>().ok());
        let mut numbers: Vec<Option<usize>> = names.iter().map(number).collect();
        numbers.sort_unstable();
        if numbers.into_iter().eq((1..=names.len()).map(Some)) {
            names.sort_unstable_by_key(number);
        }
        let place = |name: &String| names.iter().position(|n| n == name).expect("listed above");
        let column_map = ColumnMap {
            columns: columns.iter().map(place).collect(),
            constants: constants.iter().map(|c| (place(&c.name), c.value)).collect(),
        };
        Self { column_map, names, singles: Vec::new() }
    }

    /// Of a pickled model with this many columns.
    pub(crate) fn unpickled(pickled: Pickled, in_model: usize) -> PyResult<Self> {
        let (names, columns, constants, singles) = pickled;
        let d = names.len();
        let places = columns.iter().copied().chain(constants.iter().chain(&singles).map(|c| c.0));
        if columns.len() != in_model || places.clone().count() != d || places.max() >= Some(d) {
            return Err(raise("ModelFileError", "the pickled model is damaged"));
        }
        Ok(Self { column_map: ColumnMap { columns, constants }, names, singles })
    }

    pub(crate) fn dataset(&self, py: Python<'_>, x: Table<'_>, threads: usize) -> PyResult<Dataset> {
        x.dataset(py, threads, Some(self.names.clone()))
    }

    /// Whether the columns have the names that a table without names gets.
    pub(crate) fn has_default_names(&self) -> bool {
        self.names.iter().enumerate().all(|(j, name)| *name == format!("x{}", j + 1))
    }

    /// A completed table whose columns observed once are filled by that value.
    pub(crate) fn with_singles(&self, mut values: Matrix) -> Matrix {
        for &(j, value) in &self.singles {
            for i in 0..values.n_rows() {
                values[(i, j)] = if values[(i, j)].is_nan() { value } else { values[(i, j)] };
            }
        }
        values
    }

    /// Columns outside the model, with the one value they had.
    pub(crate) fn aside(&self) -> impl Iterator<Item = (usize, f64)> {
        self.column_map.constants.iter().chain(&self.singles).copied()
    }

    /// Numbers per column of the model as numbers per column of the table.
    pub(crate) fn widen(&self, narrow: &[f64], aside: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut wide = vec![0.0; self.names.len()];
        self.column_map.columns.iter().zip(narrow).for_each(|(&j, v)| wide[j] = *v);
        self.aside().for_each(|(j, v)| wide[j] = aside(v));
        wide
    }

    /// Rows over the model's columns as rows over the table's.
    pub(crate) fn widen_rows(&self, narrow: &Matrix, aside: impl Fn(f64) -> f64) -> Matrix {
        if narrow.n_columns() == self.names.len() && self.column_map.columns.is_sorted() {
            return narrow.clone();
        }
        let rows: Vec<Vec<f64>> = narrow.rows().map(|row| self.widen(row, &aside)).collect();
        let flat: Vec<f64> = rows.concat();
        Matrix::from_vec(narrow.n_rows(), self.names.len(), flat).expect("rows of one length")
    }

    /// Numbers per column of the model, in rows, likewise; 0 for the others.
    pub(crate) fn widen_columns(&self, narrow: &Matrix) -> Matrix {
        self.widen_rows(&narrow.transpose(), |_| 0.0).transpose()
    }

    /// Refuses a table with columns outside the model, which have no variance to invert.
    pub(crate) fn none_aside(&self) -> PyResult<()> {
        match self.aside().next() {
            Some((j, _)) => Err(of(Error::ConstantColumn { column: self.names[j].clone() })),
            None => Ok(()),
        }
    }

    /// The covariance-like matrix of the table's columns: zero beside the model's.
    pub(crate) fn widen_both(&self, narrow: &Matrix) -> Matrix {
        self.widen_rows(&self.widen_rows(narrow, |_| 0.0).transpose(), |_| 0.0)
    }

    pub(crate) fn filled<'py>(
        &self,
        py: Python<'py>,
        filled: &Imputed,
        wide: &Dataset,
    ) -> PyResult<Filled<'py>> {
        let mut values = filled.values().clone();
        let cell = |c: &FilledCell| (c.row as u64, c.column as u64, c.mean, c.sd);
        let mut cells: Vec<_> = filled.cells().iter().map(cell).collect();
        // How far a column observed once spreads is not known.
        for &(j, value) in &self.singles {
            for i in (0..wide.n_rows()).filter(|&i| wide.row(i)[j].is_nan()) {
                values[(i, j)] = value;
                cells.push((i as u64, j as u64, value, f64::NAN));
            }
        }
        cells.sort_unstable_by_key(|c| (c.0, c.1));
        Ok((
            array2(py, values)?,
            cells.iter().map(|c| c.0).collect::<Vec<_>>().into_pyarray(py),
            cells.iter().map(|c| c.1).collect::<Vec<_>>().into_pyarray(py),
            cells.iter().map(|c| c.2).collect::<Vec<_>>().into_pyarray(py),
            cells.iter().map(|c| c.3).collect::<Vec<_>>().into_pyarray(py),
        ))
    }
}
