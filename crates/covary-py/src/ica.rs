//! `Sources`: independent components of a table.

use crate::array::{Table, array1, array2, grouped, numbers};
use crate::error::{of, of_file, raise};
use crate::place::{Filled, Pickled, Place};
use crate::work::run;
use covary::ica::{Method, Mixing, Unmixing, Warning};
use covary::infer::{Step, Termination};
use covary::io::model_file::{self, Opened, SavedSources};
use covary::learn::{Components, IcaRequest, LearnedSources, Watch};
use covary::model::ColumnMap;
use covary::{Dataset, Error, Matrix};
use numpy::{PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// From rows to sources and back, with the place of the columns in the table they were found in.
#[pyclass(frozen, module = "covary._covary")]
pub(crate) struct Sources {
    saved: SavedSources,
    place: Place,
}

/// Independent components of a table, by name; options as text. With `as_is` no column is set aside, as
/// scikit-learn has it. `own` is a contrast of the caller's: of sources in rows, g and the mean of g′ of each.
#[pyfunction]
#[pyo3(signature = (x, names, inference, n_components, options, *, start=None, own=None, as_is=false, seed=0, threads=0))]
#[allow(clippy::too_many_arguments, reason = "keywords")]
pub(crate) fn separate(
    py: Python<'_>,
    x: Table<'_>,
    names: Option<Vec<String>>,
    inference: String,
    n_components: Option<usize>,
    options: Vec<(String, String)>,
    start: Option<PyReadonlyArray2<'_, f64>>,
    own: Option<Py<PyAny>>,
    as_is: bool,
    seed: u64,
    threads: usize,
) -> PyResult<Sources> {
    let request = IcaRequest {
        n_components: n_components.map(Components::Number),
        inference: Some(inference),
        options,
        seed,
        ..IcaRequest::default()
    };
    let start = start.as_ref().map(numbers).transpose()?;
    let values = x.matrix()?;
    // What the contrast raised, which the library cannot carry.
    let raised: Mutex<Option<PyErr>> = Mutex::new(None);
    let found = run(py, threads, None, |watched| {
        let table = grouped(values, names)?;
        if !as_is {
            let LearnedSources { saved, column_map } = request.learn(&table, watched)?;
            return Ok(Sources { saved, place: Place::new(column_map, &table) });
        }
        let mut method = request.method()?;
        if let Some(n) = n_components {
            method.set("n_components", &n.to_string())?;
        }
        if let Method::Fast(fast) = &mut method {
            fast.start = start;
        }
        let mut observer = |step: &Step| watched.fitting(step);
        let found = match (&method, &own) {
            (Method::Fast(fast), Some(own)) => {
                let mut contrast = |y: &Matrix| {
                    Python::attach(|py| called(py, own, y)).map_err(|error| {
                        *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                        Error::Interrupted
                    })
                };
                fast.fit_by(&table, &mut contrast, &mut observer)?.into()
            }
            _ => method.fit_observed(&table, &mut observer)?,
        };
        let mut saved = SavedSources { seed, ..SavedSources::new(found, &table, &method) };
        if own.is_some() {
            saved.method.options.insert("contrast".to_owned(), OWN.to_owned());
        }
        Ok(Sources { place: Place::whole(saved.columns.clone()), saved })
    });
    match raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => found,
    }
}

/// What a file says of a contrast that it cannot hold.
const OWN: &str = "given";

fn called(py: Python<'_>, own: &Py<PyAny>, y: &Matrix) -> PyResult<(Matrix, Vec<f64>)> {
    let (values, slopes): (PyReadonlyArray2<'_, f64>, Vec<f64>) =
        own.call1(py, (array2(py, y.clone())?,))?.extract(py)?;
    Ok((numbers(&values)?, slopes))
}

impl Sources {
    pub(crate) fn of_file(saved: SavedSources) -> Self {
        let place = Place::of_file(&saved.columns, &saved.constants);
        Self { saved, place }
    }

    fn exact(&self) -> Option<&Unmixing> {
        match self.saved.model() {
            Mixing::Exact(model) => Some(model),
            Mixing::Noisy(_) => None,
        }
    }

    fn table(&self, py: Python<'_>, x: Table<'_>, threads: usize) -> PyResult<Dataset> {
        self.place.dataset(py, x, threads)
    }
}

#[pymethods]
impl Sources {
    /// The name of the method.
    #[getter]
    fn method(&self) -> &str {
        &self.saved.method.name
    }

    /// Its options, as text.
    #[getter]
    fn options(&self) -> BTreeMap<String, String> {
        self.saved.method.options.clone()
    }

    #[getter]
    fn names(&self) -> Vec<String> {
        self.place.names.clone()
    }

    #[getter]
    fn has_default_names(&self) -> bool {
        self.place.has_default_names()
    }

    #[getter]
    fn n_rows(&self) -> usize {
        self.saved.training.n_rows
    }

    #[getter]
    fn mean<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array1(py, self.place.widen(self.saved.model().mean(), |v| v))
    }

    #[getter]
    fn mixing<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let rows = self.saved.model().mixing().transpose();
        array2(py, self.place.widen_rows(&rows, |_| 0.0).transpose())
    }

    /// None behind noise.
    #[getter]
    fn unmixing<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        self.exact().map(|m| array2(py, self.place.widen_rows(m.unmixing(), |_| 0.0))).transpose()
    }

    /// None behind noise.
    #[getter]
    fn whitening<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        self.exact().map(|m| array2(py, self.place.widen_rows(m.whitening(), |_| 0.0))).transpose()
    }

    /// Of every column; None without noise.
    #[getter]
    fn noise_variance<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        let model = self.saved.noisy().ok()?;
        Some(array1(py, self.place.widen(model.noise_variances(), |_| 0.0)))
    }

    #[getter]
    fn kurtosis<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array1(py, self.saved.found.kurtosis.clone())
    }

    /// The density of each source, of maximum likelihood.
    #[getter]
    fn densities(&self) -> Vec<&'static str> {
        self.saved.found.kinds.iter().map(|kind| kind.name()).collect()
    }

    /// The log-likelihood or the bound, where one was maximized.
    #[getter]
    fn objective(&self) -> Option<f64> {
        self.saved.found.objective().map(|objective| objective.value)
    }

    #[getter]
    fn n_iterations(&self) -> usize {
        self.saved.found.n_iterations
    }

    #[getter]
    fn converged(&self) -> bool {
        self.saved.found.termination == Termination::Converged
    }

    /// What to doubt; true where it is about convergence.
    #[getter]
    fn warnings(&self) -> Vec<(bool, String)> {
        let said = |w: &Warning| (matches!(w, Warning::NotConverged { .. }), w.to_string());
        self.saved.found.warnings.iter().map(said).collect()
    }

    /// Sources of rows.
    #[pyo3(signature = (x, threads=0))]
    fn transform<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let table = self.table(py, x, threads)?;
        let column_map = &self.place.column_map;
        let transform = || self.saved.model().transform(&*column_map.dataset(&table)?);
        array2(py, run(py, threads, None, |_| transform())?)
    }

    /// Rows from sources.
    fn reconstruct<'py>(
        &self,
        py: Python<'py>,
        sources: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let rows: Result<Matrix, Error> = self.saved.model().reconstruct(&numbers(&sources)?);
        array2(py, self.place.widen_rows(&rows.map_err(of)?, |v| v))
    }

    /// Gaps filled, of sources behind noise.
    #[pyo3(signature = (x, threads=0))]
    fn impute<'py>(&self, py: Python<'py>, x: Table<'_>, threads: usize) -> PyResult<Filled<'py>> {
        let model = self.saved.noisy().map_err(of_file)?;
        let table = self.table(py, x, threads)?;
        let column_map = &self.place.column_map;
        let filled = run(py, threads, None, |_| {
            column_map.imputed(model.impute(&*column_map.dataset(&table)?)?, &table)
        })?;
        self.place.filled(py, filled, &table)
    }

    /// The model file.
    fn write<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        model_file::write_sources(&self.saved, &mut bytes).map_err(of_file)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// What pickle keeps: the model file, and what it does not hold.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>, Pickled))> {
        let sources = slf.get();
        let Place { column_map: ColumnMap { columns, constants }, names, singles } = sources.place.clone();
        let state = (sources.write(slf.py())?, (names, columns, constants, singles));
        Ok((slf.get_type().getattr("_unpickle")?, state))
    }

    #[staticmethod]
    #[pyo3(name = "_unpickle")]
    fn unpickle(bytes: &[u8], pickled: Pickled) -> PyResult<Self> {
        let Opened::Sources(saved) = model_file::open(bytes).map_err(of_file)? else {
            return Err(raise("ModelFileError", "the pickled sources are damaged"));
        };
        let place = Place::unpickled(pickled, saved.columns.len())?;
        Ok(Self { saved: *saved, place })
    }
}
