//! NumPy arrays as tables, and numbers as NumPy arrays.

use crate::work::run;
use covary::{Dataset, Error, Matrix};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::sync::Arc;

/// Arrays on their way to Python.
pub(crate) type Array1<'py> = Bound<'py, PyArray1<f64>>;
pub(crate) type Array2<'py> = Bound<'py, PyArray2<f64>>;
pub(crate) type Array3<'py> = Bound<'py, PyArray3<f64>>;

/// A 2-d array of numbers, as the veneer hands it over.
#[derive(FromPyObject)]
pub(crate) enum Table<'py> {
    Wide(PyReadonlyArray2<'py, f64>),
    Narrow(PyReadonlyArray2<'py, f32>),
}

impl Table<'_> {
    /// The numbers: looked at in place if they are f64, row by row and without holes, else copied.
    pub(crate) fn matrix(self) -> PyResult<Matrix> {
        match self {
            Self::Wide(array) => {
                let (n, d) = (array.shape()[0], array.shape()[1]);
                // `as_slice` also takes arrays that are column by column.
                let made = if array.is_c_contiguous() {
                    Matrix::from_shared(n, d, Arc::new(Borrowed::new(&array)))
                } else {
                    Matrix::from_vec(n, d, array.as_array().iter().copied().collect())
                };
                made.map_err(crate::error::of)
            }
            Self::Narrow(array) => {
                let (n, d) = (array.shape()[0], array.shape()[1]);
                let wide = |v: &f32| f64::from(*v);
                let values = array.as_array().iter().map(wide).collect();
                Matrix::from_vec(n, d, values).map_err(crate::error::of)
            }
        }
    }

    /// The table, with names for its columns if there are any; grouping its rows is work for threads.
    pub(crate) fn dataset(
        self,
        py: Python<'_>,
        threads: usize,
        names: Option<Vec<String>>,
    ) -> PyResult<Dataset> {
        let values = self.matrix()?;
        run(py, threads, None, |_| grouped(values, names))
    }
}

/// The table of these numbers. To be called on threads of ours: those that the library would find by itself do
/// not live on in a forked process. Names that stand for two columns name none: a model file matches by them.
pub(crate) fn grouped(values: Matrix, names: Option<Vec<String>>) -> Result<Dataset, Error> {
    match names.filter(|names| are_distinct(names)) {
        Some(names) => Dataset::with_names(values, names),
        None => Dataset::new(values),
    }
}

pub(crate) fn are_distinct(names: &[String]) -> bool {
    let mut seen = std::collections::HashSet::new();
    names.iter().all(|name| seen.insert(name))
}

/// The memory of a NumPy array, kept alive by a reference to it.
struct Borrowed {
    _owner: Py<PyArray2<f64>>,
    start: *const f64,
    length: usize,
}

impl Borrowed {
    /// Of an array that is contiguous and row-major.
    fn new(array: &PyReadonlyArray2<'_, f64>) -> Self {
        let slice = array.as_slice().expect("the caller has seen that it is contiguous");
        let (start, length) = (slice.as_ptr(), slice.len());
        let owner: &Array2<'_> = array;
        Self { _owner: owner.clone().unbind(), start, length }
    }
}

impl AsRef<[f64]> for Borrowed {
    #[allow(unsafe_code, reason = "NumPy's memory without a copy")]
    fn as_ref(&self) -> &[f64] {
        // SAFETY: `start` and `length` are those of a contiguous array of f64, which NumPy aligns and which
        // `_owner` keeps alive; NumPy does not move the memory of an array that others refer to. That nobody
        // writes to the array while it is being fitted is the caller's promise, as for NumPy's own functions.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

#[allow(unsafe_code, reason = "NumPy's memory without a copy")]
// SAFETY: the pointer is only read through, and `Py` may be sent and shared.
unsafe impl Send for Borrowed {}
#[allow(unsafe_code, reason = "NumPy's memory without a copy")]
// SAFETY: as for `Send`.
unsafe impl Sync for Borrowed {}

/// An n × d array, without a copy.
pub(crate) fn array2(py: Python<'_>, matrix: Matrix) -> PyResult<Array2<'_>> {
    let shape = [matrix.n_rows(), matrix.n_columns()];
    matrix.into_vec().into_pyarray(py).reshape(shape)
}

/// Matrices of one shape, one after the other.
pub(crate) fn array3<'py, 'a>(
    py: Python<'py>,
    shape: [usize; 3],
    parts: impl Iterator<Item = &'a Matrix>,
) -> PyResult<Array3<'py>> {
    parts.flat_map(Matrix::as_slice).copied().collect::<Vec<f64>>().into_pyarray(py).reshape(shape)
}

/// A vector, without a copy.
pub(crate) fn array1(py: Python<'_>, values: Vec<f64>) -> Array1<'_> {
    values.into_pyarray(py)
}

/// Scores or other numbers that are no table.
pub(crate) fn numbers(array: &PyReadonlyArray2<'_, f64>) -> PyResult<Matrix> {
    let (n, d) = (array.shape()[0], array.shape()[1]);
    Matrix::from_vec(n, d, array.as_array().iter().copied().collect()).map_err(crate::error::of)
}

/// A number of components as Python gives it.
#[derive(FromPyObject)]
pub(crate) enum Size {
    Number(usize),
    Share(f64),
    Word(String),
}

/// Text of an option: what Python holds as a number, a switch or a list.
pub(crate) fn option_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(switch) = value.cast::<pyo3::types::PyBool>() {
        return Ok(switch.is_true().to_string());
    }
    if let Ok(number) = value.extract::<i64>() {
        return Ok(number.to_string());
    }
    if let Ok(number) = value.extract::<f64>() {
        return Ok(format!("{number:?}"));
    }
    if let Ok(text) = value.extract::<String>() {
        return Ok(text);
    }
    if let Ok(list) = value.extract::<Vec<f64>>() {
        return Ok(format!("{list:?}"));
    }
    Err(PyTypeError::new_err(format!("an option must be a number, a switch, a word or a list, not {value}")))
}
