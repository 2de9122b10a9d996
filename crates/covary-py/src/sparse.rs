//! Sparse components by scikit-learn's objective.

use crate::array::{Array2, Table, array2, grouped, numbers};
use crate::work::run;
use covary::infer::SparseCoding;
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;

/// The components (q × d), the means of the columns, and the objective after each turn.
#[pyfunction]
#[pyo3(signature = (x, names, n_components, *, alpha, max_iterations, tolerance, start=None, threads=0))]
#[allow(clippy::too_many_arguments, clippy::type_complexity, reason = "keywords")]
pub(crate) fn sparse_components<'py>(
    py: Python<'py>,
    x: Table<'_>,
    names: Option<Vec<String>>,
    n_components: usize,
    alpha: f64,
    max_iterations: usize,
    tolerance: f64,
    start: Option<(PyReadonlyArray2<'_, f64>, PyReadonlyArray2<'_, f64>)>,
    threads: usize,
) -> PyResult<(Array2<'py>, Vec<f64>, Vec<f64>)> {
    let coding = SparseCoding { n_components, alpha, max_iterations, tolerance };
    let start = start.map(|(u, v)| PyResult::Ok((numbers(&u)?, numbers(&v)?))).transpose()?;
    let values = x.numbers()?;
    let found = run(py, threads, None, |_| {
        let data = grouped(values, names)?;
        coding.fit(&data, start.as_ref().map(|(u, v)| (u, v)))
    })?;
    Ok((array2(py, found.components)?, found.mean, found.errors))
}
