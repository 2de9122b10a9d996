//! Sparse components by scikit-learn's objective, and sparse canonical vectors.

use crate::array::{Array2, Table, array2, grouped, numbers};
use crate::work::run;
use covary::infer::{ElasticNet, Penalties, SparseCca, SparseCoding};
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;

/// The components (q × d), the means of the columns, and the objective after each iteration.
#[pyfunction]
#[pyo3(signature = (x, names, n_components, *, alpha, n_nonzero, max_iterations, tolerance, start=None, threads=0))]
#[allow(clippy::too_many_arguments, clippy::type_complexity, reason = "keywords")]
pub(crate) fn sparse_components<'py>(
    py: Python<'py>,
    x: Table<'_>,
    names: Option<Vec<String>>,
    n_components: usize,
    alpha: f64,
    n_nonzero: Option<usize>,
    max_iterations: usize,
    tolerance: f64,
    start: Option<(PyReadonlyArray2<'_, f64>, PyReadonlyArray2<'_, f64>)>,
    threads: usize,
) -> PyResult<(Array2<'py>, Vec<f64>, Vec<f64>)> {
    let coding = SparseCoding { n_components, alpha, n_nonzero, max_iterations, tolerance };
    let start = start.map(|(u, v)| PyResult::Ok((numbers(&u)?, numbers(&v)?))).transpose()?;
    let values = x.numbers()?;
    let found = run(py, threads, None, |_| {
        let data = grouped(values, names)?;
        coding.fit(&data, start.as_ref().map(|(u, v)| (u, v)))
    })?;
    Ok((array2(py, found.components)?, found.mean, found.errors))
}

/// What [`SparseCca`] finds, as Python has it: weights of both views, correlations, means and scales of both views, penalties,
/// what permutations said of each penalty tried (penalty, correlation, z, p-value), and the iterations of each pair.
type Canonical<'py> =
    ((Array2<'py>, Array2<'py>), Vec<f64>, [Vec<f64>; 2], [Vec<f64>; 2], [f64; 2], Vec<[f64; 4]>, Vec<usize>);

/// Sparse canonical vectors of two views.
#[pyfunction]
#[pyo3(signature = (x, y, names, n_components, *, penalties, n_permutations, seed, max_iterations, tolerance, threads=0))]
#[allow(clippy::too_many_arguments, reason = "keywords")]
pub(crate) fn sparse_canonical<'py>(
    py: Python<'py>,
    x: Table<'_>,
    y: Table<'_>,
    names: (Option<Vec<String>>, Option<Vec<String>>),
    n_components: usize,
    penalties: Option<[f64; 2]>,
    n_permutations: usize,
    seed: u64,
    max_iterations: usize,
    tolerance: f64,
    threads: usize,
) -> PyResult<Canonical<'py>> {
    let penalties = match penalties {
        Some(both) => Penalties::Given(both),
        None => Penalties::Permutation { n: n_permutations, seed },
    };
    let method = SparseCca { n_components, penalties, max_iterations, tolerance };
    let (x, y) = (x.numbers()?, y.numbers()?);
    let found = run(py, threads, None, |_| method.fit(&grouped(x, names.0)?, &grouped(y, names.1)?))?;
    let [a, b] = found.weights;
    let tried = found.tried.iter().map(|t| [t.penalty, t.correlation, t.z, t.p_value]).collect();
    Ok((
        (array2(py, a)?, array2(py, b)?),
        found.correlations,
        found.means,
        found.scales,
        found.penalties,
        tried,
        found.n_iterations,
    ))
}

/// Sparse axes by elastic nets, of a table or of its covariance matrix: the axes (q × d), their means (0 of a matrix), their
/// variances, what each adds to those before it, the total variance, and the objective after each iteration.
type Axes<'py> = (Array2<'py>, Vec<f64>, Vec<f64>, Vec<f64>, f64, Vec<f64>);

/// Sparse axes by elastic nets.
#[pyfunction]
#[pyo3(signature = (x, names, penalties, *, is_matrix, ridge, max_iterations, tolerance, threads=0))]
#[allow(clippy::too_many_arguments, reason = "keywords")]
pub(crate) fn elastic_net<'py>(
    py: Python<'py>,
    x: Table<'_>,
    names: Option<Vec<String>>,
    penalties: Vec<f64>,
    is_matrix: bool,
    ridge: f64,
    max_iterations: usize,
    tolerance: f64,
    threads: usize,
) -> PyResult<Axes<'py>> {
    let net = ElasticNet { penalties, ridge, max_iterations, tolerance };
    let values = x.numbers()?;
    let (mean, total, found) = run(py, threads, None, |_| {
        let data = grouped(values, names)?;
        if is_matrix {
            let matrix = data.values();
            return Ok((vec![0.0; matrix.n_columns()], matrix.trace(), net.fit(matrix)?));
        }
        let (mean, covariance) = ElasticNet::moments(&data)?;
        Ok((mean, covariance.trace(), net.fit(&covariance)?))
    })?;
    let axes = found.axes.transpose();
    Ok((array2(py, axes)?, mean, found.variance, found.adjusted_variance, total, found.trace))
}
