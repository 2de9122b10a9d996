//! `Unmixing`: independent components of a table.

use crate::array::{Table, array1, array2, grouped, numbers};
use crate::error::{of, raise};
use crate::work::run;
use covary::ica::{Algorithm, Contrast, FastIca, Unmixing as Parts, Warning};
use covary::infer::{Step, Termination};
use covary::learn::Watch;
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

/// From rows to sources and back.
#[pyclass(frozen, module = "covary._covary")]
pub(crate) struct Unmixing {
    parts: Parts,
}

/// What a separation says beside the unmixing: kurtosis, steps, whether they ended by the rule, and warnings.
type Said<'py> = (Bound<'py, PyArray1<f64>>, usize, bool, Vec<(bool, String)>);

/// FastICA of a complete table.
#[pyfunction]
#[pyo3(signature = (x, names, n_components, *, algorithm="parallel", contrast="logcosh", slope=1.0, max_iterations=200, tolerance=1e-4, start=None, seed=0, whiten=true, threads=0))]
#[allow(clippy::too_many_arguments, reason = "keywords")]
pub(crate) fn fast_ica<'py>(
    py: Python<'py>,
    x: Table<'_>,
    names: Option<Vec<String>>,
    n_components: Option<usize>,
    algorithm: &str,
    contrast: &str,
    slope: f64,
    max_iterations: usize,
    tolerance: f64,
    start: Option<PyReadonlyArray2<'_, f64>>,
    seed: u64,
    whiten: bool,
    threads: usize,
) -> PyResult<(Unmixing, Said<'py>)> {
    let request = FastIca {
        n_components,
        algorithm: match algorithm {
            "parallel" => Algorithm::Parallel,
            "deflation" => Algorithm::Deflation,
            other => return Err(raise("OptionError", &format!("algorithm cannot be `{other}`"))),
        },
        contrast: match contrast {
            "logcosh" => Contrast::LogCosh { a: slope },
            "exp" => Contrast::Exp,
            "cube" => Contrast::Cube,
            other => return Err(raise("OptionError", &format!("fun cannot be `{other}`"))),
        },
        max_iterations,
        tolerance,
        start: start.as_ref().map(numbers).transpose()?,
        seed,
        whiten,
    };
    let values = x.matrix()?;
    let found = run(py, threads, None, |watched| {
        let data = grouped(values, names)?;
        request.fit_observed(&data, &mut |step: &Step| watched.fitting(step))
    })?;
    let warnings = found.warnings.iter().map(|w| (matches!(w, Warning::NotConverged { .. }), w.to_string()));
    let converged = found.termination == Termination::Converged;
    let said = (array1(py, found.kurtosis), found.n_iterations, converged, warnings.collect());
    Ok((Unmixing { parts: found.model }, said))
}

#[pymethods]
impl Unmixing {
    #[getter]
    fn mean<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array1(py, self.parts.mean().to_vec())
    }

    #[getter]
    fn unmixing<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array2(py, self.parts.unmixing().clone())
    }

    #[getter]
    fn mixing<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array2(py, self.parts.mixing().clone())
    }

    #[getter]
    fn whitening<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array2(py, self.parts.whitening().clone())
    }

    /// Sources of rows.
    #[pyo3(signature = (x, threads=0))]
    fn transform<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let data = x.dataset(py, threads, None)?;
        array2(py, run(py, threads, None, |_| self.parts.transform(&data))?)
    }

    /// Rows from sources.
    fn reconstruct<'py>(
        &self,
        py: Python<'py>,
        sources: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array2(py, self.parts.reconstruct(&numbers(&sources)?).map_err(of)?)
    }

    /// What pickle keeps.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, State<'py>)> {
        let (py, parts) = (slf.py(), &slf.get().parts);
        let state = (
            array1(py, parts.mean().to_vec()),
            array2(py, parts.whitening().clone())?,
            array2(py, parts.rotation().clone())?,
            array2(py, parts.mixing().clone())?,
        );
        Ok((slf.get_type().getattr("_unpickle")?, state))
    }

    #[staticmethod]
    #[pyo3(name = "_unpickle")]
    fn unpickle(
        mean: PyReadonlyArray1<'_, f64>,
        whitening: PyReadonlyArray2<'_, f64>,
        rotation: PyReadonlyArray2<'_, f64>,
        mixing: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<Self> {
        let mean = mean.as_array().iter().copied().collect();
        let parts = Parts::new(mean, numbers(&whitening)?, numbers(&rotation)?, numbers(&mixing)?);
        Ok(Self { parts: parts.map_err(of)? })
    }
}

type State<'py> = (
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
);
