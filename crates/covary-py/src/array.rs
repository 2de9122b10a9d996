//! NumPy arrays as tables, and numbers as NumPy arrays.

use crate::work::run;
use covary::{Dataset, Error, Matrix};
use numpy::{
    Element, IntoPyArray, PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray2,
    PyUntypedArrayMethods,
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

/// The numbers of a table, in the precision they came in.
pub(crate) enum Numbers {
    Double(Matrix),
    /// Rows and columns, and cells that are looked at in place.
    Single((usize, usize), Arc<Borrowed<f32>>),
}

impl Table<'_> {
    /// The numbers: looked at in place if they are row by row and without holes, else copied.
    pub(crate) fn numbers(self) -> PyResult<Numbers> {
        match self {
            // `as_slice` also takes arrays that are column by column.
            Self::Narrow(array) if array.is_c_contiguous() => {
                let shape = (array.shape()[0], array.shape()[1]);
                Ok(Numbers::Single(shape, Arc::new(Borrowed::new(&array))))
            }
            Self::Wide(array) if array.is_c_contiguous() => {
                let (n, d) = (array.shape()[0], array.shape()[1]);
                let shared = Matrix::from_shared(n, d, Arc::new(Borrowed::new(&array)));
                shared.map(Numbers::Double).map_err(crate::error::of)
            }
            Self::Narrow(array) => copied(&array, |v| f64::from(*v)),
            Self::Wide(array) => copied(&array, |v| *v),
        }
    }

    /// The table, with names for its columns if there are any; grouping its rows is work for threads.
    pub(crate) fn dataset(
        self,
        py: Python<'_>,
        threads: usize,
        names: Option<Vec<String>>,
    ) -> PyResult<Dataset> {
        let values = self.numbers()?;
        run(py, threads, None, |_| grouped(values, names))
    }

    pub(crate) fn is_single(&self) -> bool {
        matches!(self, Self::Narrow(_))
    }
}

fn copied<T: Element>(array: &PyReadonlyArray2<'_, T>, wide: impl Fn(&T) -> f64) -> PyResult<Numbers> {
    let (n, d) = (array.shape()[0], array.shape()[1]);
    let values = array.as_array().iter().map(wide).collect();
    Matrix::from_vec(n, d, values).map(Numbers::Double).map_err(crate::error::of)
}

/// The table of these numbers. To be called on threads of ours: those that the library would find by itself do
/// not live on in a forked process. Names that stand for two columns name none: a model file matches by them.
pub(crate) fn grouped(values: Numbers, names: Option<Vec<String>>) -> Result<Dataset, Error> {
    match (values, names.filter(|names| are_distinct(names))) {
        (Numbers::Double(values), Some(names)) => Dataset::with_names(values, names),
        (Numbers::Double(values), None) => Dataset::new(values),
        (Numbers::Single(shape, cells), names) => Dataset::from_single(shape, cells, names),
    }
}

pub(crate) fn are_distinct(names: &[String]) -> bool {
    let mut seen = std::collections::HashSet::new();
    names.iter().all(|name| seen.insert(name))
}

/// The memory of a NumPy array, kept alive by a reference to it.
pub(crate) struct Borrowed<T> {
    _owner: Py<PyArray2<T>>,
    start: *const T,
    length: usize,
}

impl<T: Element> Borrowed<T> {
    /// Of an array that is contiguous and row-major.
    fn new(array: &PyReadonlyArray2<'_, T>) -> Self {
        let slice = array.as_slice().expect("the caller has seen that it is contiguous");
        let (start, length) = (slice.as_ptr(), slice.len());
        let owner: &Bound<'_, PyArray2<T>> = array;
        Self { _owner: owner.clone().unbind(), start, length }
    }
}

impl<T> AsRef<[T]> for Borrowed<T> {
    #[allow(unsafe_code, reason = "NumPy's memory without a copy")]
    fn as_ref(&self) -> &[T] {
        // SAFETY: `start` and `length` are those of a contiguous array of T, which NumPy aligns and which
        // `_owner` keeps alive; NumPy does not move the memory of an array that others refer to. That nobody
        // writes to the array while it is being fitted is the caller's promise, as for NumPy's own functions.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

#[allow(unsafe_code, reason = "NumPy's memory without a copy")]
// SAFETY: the pointer is only read through, numbers and `Py` may be sent and shared.
unsafe impl<T: Element> Send for Borrowed<T> {}
#[allow(unsafe_code, reason = "NumPy's memory without a copy")]
// SAFETY: as for `Send`.
unsafe impl<T: Element> Sync for Borrowed<T> {}

/// An n × d array of single precision, without a copy.
pub(crate) fn single2(
    py: Python<'_>,
    (n, d): (usize, usize),
    values: Vec<f32>,
) -> PyResult<Bound<'_, PyArray2<f32>>> {
    values.into_pyarray(py).reshape([n, d])
}

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
