//! `Canonical`: what two views of the same rows have in common.

use crate::array::{Table, array1, array2, grouped, numbers};
use crate::error::{of, raise};
use crate::work::{Watched, run};
use covary::infer::{SharedPrivate, Step, Termination};
use covary::learn::Watch;
use covary::views::{Canonical as Found, CanonicalCorrelation};
use covary::{Dataset, Density, Error, Estimator, Matrix, Spec};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

/// Canonical variates of two views.
#[pyclass(frozen, module = "covary._covary")]
pub(crate) struct Canonical {
    found: Found,
}

/// What was found, its log-likelihood, steps, whether they converged, and warnings.
type Fitted = (Canonical, Option<f64>, usize, bool, Vec<String>);

/// Canonical correlations of two views, and how the fit ended where it had to iterate.
#[pyfunction]
#[pyo3(signature = (x, y, n_components, *, ridge=0.0, rank=None, threads=0))]
pub(crate) fn canonical(
    py: Python<'_>,
    x: Table<'_>,
    y: Table<'_>,
    n_components: Option<usize>,
    ridge: f64,
    rank: Option<usize>,
    threads: usize,
) -> PyResult<Fitted> {
    let request = CanonicalCorrelation { n_components, ridge, rank };
    let (x, y) = (x.matrix()?, y.matrix()?);
    run(py, threads, None, |watched| {
        let (x, y) = (grouped(x, None)?, grouped(y, None)?);
        if x.is_complete() && y.is_complete() {
            let found = request.fit(&x, &y)?;
            let log_likelihood = found.log_likelihood();
            return Ok((Canonical { found }, log_likelihood, 0, true, Vec::new()));
        }
        with_gaps(&request, &x, &y, watched)
    })
}

/// By EM over the observed cells, which is the same model.
fn with_gaps(
    request: &CanonicalCorrelation,
    x: &Dataset,
    y: &Dataset,
    watched: &Watched,
) -> Result<Fitted, Error> {
    if request.ridge > 0.0 || request.rank.is_some() {
        let what = if request.rank.is_some() { "a rank with gaps" } else { "a ridge with gaps" };
        return Err(Error::Unsupported { method: "canonical correlation", what, instead: "complete views" });
    }
    let (dx, dy) = (x.n_columns(), y.n_columns());
    let (expected, got) = (x.n_rows(), y.n_rows());
    if expected != got {
        return Err(Error::WrongLength { what: "rows of the second view", expected, got });
    }
    let pick = |i: usize, j: usize| if j < dx { x.row(i)[j] } else { y.row(i)[j - dx] };
    let both = Dataset::new(Matrix::from_fn(expected, dx + dy, pick))?;
    let shared = request.n_components.unwrap_or(dx.min(dy));
    let spec = Spec { standardize: true, ..Spec::of_views(shared, vec![dx, dy]) };
    let mut observer = |step: &Step| watched.fitting(step);
    let fit = SharedPrivate::default().fit_observed(&both, &spec, &mut observer)?;
    if fit.report.termination == Termination::Interrupted {
        return Err(Error::Interrupted);
    }
    let request = CanonicalCorrelation { n_components: Some(shared), ..request.clone() };
    let found = request.of_covariance(expected, fit.model.mean(), &fit.model.covariance(), dx)?;
    let (steps, converged) = (fit.report.n_iterations(), fit.report.converged());
    let warnings = fit.report.warnings.iter().map(ToString::to_string).collect();
    Ok((Canonical { found }, Some(fit.report.objective.value), steps, converged, warnings))
}

impl Canonical {
    fn view(view: usize) -> PyResult<usize> {
        if view < 2 { Ok(view) } else { Err(raise("OptionError", &format!("there is no view {view}"))) }
    }
}

#[pymethods]
impl Canonical {
    #[getter]
    fn correlations<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array1(py, self.found.correlations().to_vec())
    }

    fn mean<'py>(&self, py: Python<'py>, view: usize) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(array1(py, self.found.mean(Self::view(view)?).to_vec()))
    }

    fn weights<'py>(&self, py: Python<'py>, view: usize) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array2(py, self.found.weights(Self::view(view)?).clone())
    }

    fn loadings<'py>(&self, py: Python<'py>, view: usize) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array2(py, self.found.loadings(Self::view(view)?))
    }

    /// Canonical variates of rows of a view.
    #[pyo3(signature = (view, x, threads=0))]
    fn transform<'py>(
        &self,
        py: Python<'py>,
        view: usize,
        x: Table<'_>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (view, data) = (Self::view(view)?, x.dataset(py, threads, None)?);
        array2(py, run(py, threads, None, |_| self.found.transform(view, &data))?)
    }

    /// Canonical variates of both views, side by side in `both`.
    #[pyo3(signature = (both, threads=0))]
    fn variates<'py>(
        &self,
        py: Python<'py>,
        both: Table<'_>,
        threads: usize,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>)> {
        let data = both.dataset(py, threads, None)?;
        let [x, y] = run(py, threads, None, |_| self.found.variates(&data))?;
        Ok((array2(py, x)?, array2(py, y)?))
    }

    /// E[z | x, y] of rows.
    #[pyo3(signature = (x, y, threads=0))]
    fn scores<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        y: Table<'_>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (x, y) = (x.dataset(py, threads, None)?, y.dataset(py, threads, None)?);
        array2(py, run(py, threads, None, |_| self.found.scores(&x, &y))?)
    }

    /// Mean and standard deviation of a view given rows of the other.
    #[pyo3(signature = (view, known, threads=0))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        view: usize,
        known: Table<'_>,
        threads: usize,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>)> {
        let (view, data) = (Self::view(view)?, known.dataset(py, threads, None)?);
        let filled = run(py, threads, None, |_| self.found.predict(view, &data))?;
        let first = if view == 0 { 0 } else { self.found.mean(0).len() };
        let d = self.found.mean(view).len();
        let mut sd = Matrix::zeros(data.n_rows(), d);
        // Gaps of the known view are filled too.
        for cell in filled.cells().iter().filter(|c| (first..first + d).contains(&c.column)) {
            sd[(cell.row, cell.column - first)] = cell.sd;
        }
        let mean = Matrix::from_fn(data.n_rows(), d, |i, j| filled.values()[(i, first + j)]);
        Ok((array2(py, mean)?, array2(py, sd)?))
    }

    /// Log-density of rows of both views, side by side.
    #[pyo3(signature = (both, threads=0))]
    fn log_density<'py>(
        &self,
        py: Python<'py>,
        both: Table<'_>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let data = both.dataset(py, threads, None)?;
        Ok(array1(py, run(py, threads, None, |_| self.found.model()?.log_density(&data))?))
    }

    /// What pickle keeps.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, State<'py>)> {
        let (py, found) = (slf.py(), &slf.get().found);
        let view = |v: usize| -> PyResult<View<'py>> {
            let (mean, weights) = (found.mean(v).to_vec(), found.weights(v).clone());
            Ok((array1(py, mean), array2(py, found.covariance(v).clone())?, array2(py, weights)?))
        };
        let correlations = array1(py, found.correlations().to_vec());
        let state = (found.n_rows(), view(0)?, view(1)?, correlations, found.ln_det());
        Ok((slf.get_type().getattr("_unpickle")?, state))
    }

    #[staticmethod]
    #[pyo3(name = "_unpickle")]
    fn unpickle(
        n_rows: usize,
        x: Pickled<'_>,
        y: Pickled<'_>,
        correlations: PyReadonlyArray1<'_, f64>,
        ln_det: Option<f64>,
    ) -> PyResult<Self> {
        let list = |array: &PyReadonlyArray1<'_, f64>| array.as_array().iter().copied().collect::<Vec<f64>>();
        let found = Found::new(
            n_rows,
            [list(&x.0), list(&y.0)],
            [numbers(&x.1)?, numbers(&y.1)?],
            [numbers(&x.2)?, numbers(&y.2)?],
            list(&correlations),
            ln_det,
        );
        Ok(Self { found: found.map_err(of)? })
    }
}

/// Mean, covariance and weights of a view.
type View<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>);
type Pickled<'py> = (PyReadonlyArray1<'py, f64>, PyReadonlyArray2<'py, f64>, PyReadonlyArray2<'py, f64>);
type State<'py> = (usize, View<'py>, View<'py>, Bound<'py, PyArray1<f64>>, Option<f64>);
