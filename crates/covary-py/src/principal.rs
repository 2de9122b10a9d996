//! `Principal` and `Stream`: principal components of a table, and of a stream of batches.

use crate::array::{Array1, Array2, Size, Table, array1, array2, grouped, numbers, single2};
use crate::error::{of, raise};
use crate::learned::Learned;
use crate::place::Place;
use crate::work::{Stages, run, run_or_leave};
use covary::data::Sparse;
use covary::family::Family;
use covary::infer::{
    FitReport, Incremental, Kept, Objective, ObjectiveKind, PrincipalAxes, Solver, Termination,
};
use covary::learned::{LinearFit, Training};
use covary::model::Principal as Components;
use covary::{Density, Error, Fit, Matrix, Method, Spec};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Mutex;

/// The methods that find principal components: of complete tables, and with gaps.
const SPECTRAL: &str = "spectral";
const EM: &str = "em";

/// Principal components by scikit-learn's conventions.
#[pyclass(frozen, module = "covary._covary")]
pub(crate) struct Principal {
    axes: Components,
    names: Option<Vec<String>>,
    training: Training,
    /// The log-likelihood at the start and after every step of EM; none of the closed form.
    trace: Vec<f64>,
    method: &'static str,
    /// None where the components leave no noise.
    log_likelihood: Option<f64>,
}

/// What to keep: None, a number, a share or "mle".
fn request(
    asked: Option<Size>,
    solver: &str,
    seed: u64,
    max_iterations: Option<usize>,
    tolerance: Option<f64>,
) -> PyResult<PrincipalAxes> {
    let kept = match asked {
        None => Kept::All,
        Some(Size::Number(q)) => Kept::Number(q),
        Some(Size::Share(share)) => Kept::Share(share),
        Some(Size::Word(word)) if word == "mle" => Kept::Evidence,
        Some(Size::Word(word)) => {
            return Err(raise("OptionError", &format!("n_components cannot be `{word}`")));
        }
    };
    // "auto", "arpack" and "randomized" ask for the few leading components by the fastest way: ours is exact.
    let solver_of = match solver {
        "full" => Solver::Svd,
        "covariance_eigh" => Solver::Covariance,
        _ => Solver::Auto,
    };
    let own = PrincipalAxes::default();
    Ok(PrincipalAxes {
        kept,
        solver: solver_of,
        seed,
        max_iterations: max_iterations.unwrap_or(own.max_iterations),
        tolerance: tolerance.unwrap_or(own.tolerance),
        noise_over_columns: solver == "covariance_eigh",
    })
}

/// Principal components of a table, complete or with gaps.
#[pyfunction]
#[pyo3(signature = (x, names, n_components, *, solver="auto", seed=0, max_iterations=None, tolerance=None, threads=0, progress=None))]
#[allow(clippy::too_many_arguments, reason = "keywords")]
pub(crate) fn principal(
    py: Python<'_>,
    x: Table<'_>,
    names: Option<Vec<String>>,
    n_components: Option<Size>,
    solver: &str,
    seed: u64,
    max_iterations: Option<usize>,
    tolerance: Option<f64>,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Principal> {
    let request = request(n_components, solver, seed, max_iterations, tolerance)?;
    let values = x.numbers()?;
    run_or_leave(py, threads, progress.as_ref(), move |watched| {
        let data = grouped(values, names.clone())?;
        let (axes, report) = request.fit_reported(&data, &mut Stages(watched))?;
        // Complete rows are known by their moments.
        if data.is_complete() {
            return Ok(Principal::of_complete(axes, names));
        }
        let log_likelihood = axes.model().ok().map(|model| model.log_likelihood(&data)).transpose();
        let (training, trace) = (Training::of(&data), report.map_or(Vec::new(), |report| report.trace));
        Ok(Principal { axes, names, training, trace, method: EM, log_likelihood: log_likelihood? })
    })
}

/// A compressed sparse row matrix: shape, starts of rows, columns and values.
#[derive(FromPyObject)]
pub(crate) struct Rows<'py>(
    (usize, usize),
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, f64>,
);

impl Rows<'_> {
    fn table(&self) -> PyResult<Sparse> {
        let damaged = |_| raise("DataError", "the sparse matrix has indices out of range");
        let starts: Result<_, _> = self.1.as_array().iter().map(|&i| usize::try_from(i)).collect();
        let columns: Result<_, _> = self.2.as_array().iter().map(|&i| u32::try_from(i)).collect();
        let values = self.3.as_array().iter().copied().collect();
        Sparse::new(self.0, starts.map_err(damaged)?, columns.map_err(damaged)?, values).map_err(of)
    }
}

/// Principal components of a sparse table, which is not written out.
#[pyfunction]
#[pyo3(signature = (x, names, n_components, *, solver="auto", seed=0, threads=0))]
pub(crate) fn principal_sparse(
    py: Python<'_>,
    x: Rows<'_>,
    names: Option<Vec<String>>,
    n_components: Option<Size>,
    solver: &str,
    seed: u64,
    threads: usize,
) -> PyResult<Principal> {
    let request = request(n_components, solver, seed, None, None)?;
    let table = x.table()?;
    run(py, threads, None, |_| Ok(Principal::of_complete(request.fit_sparse(&table)?, names)))
}

impl Principal {
    /// Of complete rows, of whose columns these components say all that is known.
    fn of_complete(axes: Components, names: Option<Vec<String>>) -> Self {
        let n = axes.n_rows as f64;
        let training = Training {
            n_rows: axes.n_rows,
            n_observed_by_column: vec![axes.n_rows; axes.mean.len()],
            column_means: axes.mean.clone(),
            column_sds: axes.variances.iter().map(|v| (v * (n - 1.0) / n).sqrt()).collect(),
        };
        let log_likelihood = axes.log_likelihood().ok();
        Self { axes, names, training, trace: Vec::new(), method: SPECTRAL, log_likelihood }
    }

    /// Of a model file, whose variances are those it states.
    pub(crate) fn of_model(learned: &covary::learned::Learned, fit: &LinearFit) -> Self {
        let model = &fit.model;
        let (components, explained_variance) = model.principal_axes();
        let scale = model.scale().map(<[f64]>::to_vec);
        // PCA has one noise variance in the scale of its fit, the same for every column.
        let unit = scale.as_ref().map_or(1.0, |s| s[0]);
        Self {
            axes: Components {
                n_rows: learned.training.n_rows,
                mean: model.mean().to_vec(),
                components,
                explained_variance,
                total_variance: model.total_variance(),
                variances: model.variances(),
                noise_variance: model.noise().variance(0) / (unit * unit),
                scale,
            },
            names: Some(learned.columns.clone()),
            training: learned.training.clone(),
            trace: fit.report.trace.clone(),
            method: if learned.method.name == EM { EM } else { SPECTRAL },
            log_likelihood: Some(fit.report.objective.value),
        }
    }
}

#[pymethods]
impl Principal {
    #[getter]
    fn n_rows(&self) -> usize {
        self.axes.n_rows
    }

    #[getter]
    fn mean<'py>(&self, py: Python<'py>) -> Array1<'py> {
        array1(py, self.axes.mean.clone())
    }

    #[getter]
    fn components<'py>(&self, py: Python<'py>) -> PyResult<Array2<'py>> {
        array2(py, self.axes.components.clone())
    }

    #[getter]
    fn loadings<'py>(&self, py: Python<'py>) -> PyResult<Array2<'py>> {
        array2(py, self.axes.loadings())
    }

    #[getter]
    fn explained_variance<'py>(&self, py: Python<'py>) -> Array1<'py> {
        array1(py, self.axes.explained_variance.clone())
    }

    #[getter]
    fn explained_variance_ratio<'py>(&self, py: Python<'py>) -> Array1<'py> {
        array1(py, self.axes.explained_variance_ratio())
    }

    #[getter]
    fn singular_values<'py>(&self, py: Python<'py>) -> Array1<'py> {
        array1(py, self.axes.singular_values())
    }

    #[getter]
    fn noise_variance(&self) -> f64 {
        self.axes.noise_variance
    }

    #[getter]
    fn log_likelihood(&self) -> Option<f64> {
        self.log_likelihood
    }

    /// Steps of EM; 0 for the closed form.
    #[getter]
    fn n_iterations(&self) -> usize {
        self.trace.len().saturating_sub(1)
    }

    /// Scores of rows.
    #[pyo3(signature = (x, whiten, threads=0))]
    fn transform<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        whiten: bool,
        threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (single, data) = (x.is_single(), x.dataset(py, threads, self.names.clone())?);
        if single {
            let shape = (data.n_rows(), self.axes.components.n_rows());
            let scores = run(py, threads, None, |_| self.axes.transform_single(&data, whiten))?;
            return Ok(single2(py, shape, scores)?.into_any());
        }
        Ok(array2(py, run(py, threads, None, |_| self.axes.transform(&data, whiten))?)?.into_any())
    }

    /// Scores of sparse rows.
    #[pyo3(signature = (x, whiten, threads=0))]
    fn transform_sparse<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'_>,
        whiten: bool,
        threads: usize,
    ) -> PyResult<Array2<'py>> {
        let table = x.table()?;
        array2(py, run(py, threads, None, |_| self.axes.transform_sparse(&table, whiten))?)
    }

    /// Rows from scores.
    fn decode<'py>(
        &self,
        py: Python<'py>,
        scores: PyReadonlyArray2<'_, f64>,
        whiten: bool,
    ) -> PyResult<Array2<'py>> {
        array2(py, self.axes.decode(&numbers(&scores)?, whiten).map_err(of)?)
    }

    fn covariance<'py>(&self, py: Python<'py>) -> PyResult<Array2<'py>> {
        array2(py, self.axes.covariance())
    }

    /// The density these components state, to score, fill, draw and keep.
    fn model(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let model = self.axes.model().map_err(of)?;
        let q = model.n_components();
        let names = self
            .names
            .clone()
            .filter(|names| crate::array::are_distinct(names))
            .unwrap_or_else(|| (1..=self.axes.mean.len()).map(|j| format!("x{j}")).collect());
        let value = self.log_likelihood.unwrap_or(f64::NAN);
        let (trace, termination) = match &self.trace[..] {
            [] => (vec![value], Termination::ClosedForm),
            trace => (trace.to_vec(), Termination::Converged),
        };
        let objective = Objective { kind: ObjectiveKind::LogLikelihood, value };
        let report = FitReport::new(objective, trace, termination, Vec::new());
        let method = Method::from_name(self.method).expect("one of ours");
        let fit = Fit { model, draws: None, report };
        let spec = Spec { standardize: self.axes.scale.is_some(), ..Spec::ppca(q) };
        let (place, table) = (Place::whole(names.clone()), (names, self.training.clone()));
        let learned = covary::learned::Learned::of_table(fit, table, &spec, &method);
        let learned = covary::learned::Learned { family: Family::Pca, ..learned };
        Learned { learned, place }.into_python(py)
    }

    /// What pickle keeps.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, State<'py>)> {
        let (py, own) = (slf.py(), slf.get());
        let Components {
            n_rows,
            mean,
            components,
            explained_variance,
            total_variance,
            variances,
            noise_variance,
            scale,
        } = &own.axes;
        let Training { n_observed_by_column, column_means, column_sds, .. } = own.training.clone();
        let state = (
            (*n_rows, own.training.n_rows, own.method.to_owned(), own.names.clone(), n_observed_by_column),
            (column_means, column_sds, own.trace.clone(), scale.clone()),
            array1(py, mean.clone()),
            array2(py, components.clone())?,
            array1(py, explained_variance.clone()),
            array1(py, variances.clone()),
            (*total_variance, *noise_variance, own.log_likelihood),
        );
        Ok((slf.get_type().getattr("_unpickle")?, state))
    }

    #[staticmethod]
    #[pyo3(name = "_unpickle")]
    fn unpickle(
        counts: (usize, usize, String, Option<Vec<String>>, Vec<usize>),
        columns: Columns,
        mean: PyReadonlyArray1<'_, f64>,
        components: PyReadonlyArray2<'_, f64>,
        explained_variance: PyReadonlyArray1<'_, f64>,
        variances: PyReadonlyArray1<'_, f64>,
        numbers: (f64, f64, Option<f64>),
    ) -> PyResult<Self> {
        let list = |array: &PyReadonlyArray1<'_, f64>| array.as_array().iter().copied().collect::<Vec<f64>>();
        let (n_rows, of_table, method, names, n_observed_by_column) = counts;
        let (column_means, column_sds, trace, scale) = columns;
        let (total_variance, noise_variance, log_likelihood) = numbers;
        let axes = Components {
            n_rows,
            mean: list(&mean),
            components: self::numbers(&components)?,
            explained_variance: list(&explained_variance),
            total_variance,
            variances: list(&variances),
            noise_variance,
            scale,
        };
        let (q, d) = (axes.components.n_rows(), axes.mean.len());
        let fits = axes.components.n_columns() == d
            && axes.explained_variance.len() == q
            && axes.variances.len() == d
            && axes.scale.as_ref().is_none_or(|scale| scale.len() == d)
            && [n_observed_by_column.len(), column_means.len(), column_sds.len()] == [d; 3]
            && names.as_ref().is_none_or(|names| names.len() == d);
        if !fits {
            return Err(raise("ModelFileError", "the pickled components are damaged"));
        }
        let training = Training { n_rows: of_table, n_observed_by_column, column_means, column_sds };
        let method = if method == EM { EM } else { SPECTRAL };
        Ok(Self { axes, names, training, trace, method, log_likelihood })
    }
}

/// Means and standard deviations of the columns, the trace, and the scale of the fit.
type Columns = (Vec<f64>, Vec<f64>, Vec<f64>, Option<Vec<f64>>);

type State<'py> = (
    (usize, usize, String, Option<Vec<String>>, Vec<usize>),
    Columns,
    Array1<'py>,
    Array2<'py>,
    Array1<'py>,
    Array1<'py>,
    (f64, f64, Option<f64>),
);

/// Principal components of a stream of batches.
#[pyclass(frozen, module = "covary._covary")]
pub(crate) struct Stream {
    state: Mutex<Incremental>,
}

impl Stream {
    /// A copy, so that no lock is held while the interpreter is let go.
    fn state(&self) -> Incremental {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

#[pymethods]
impl Stream {
    #[new]
    fn new(n_components: Option<usize>) -> Self {
        Self { state: Mutex::new(Incremental::new(n_components)) }
    }

    /// Learns from a batch.
    #[pyo3(signature = (x, names=None, threads=0))]
    fn take(&self, py: Python<'_>, x: Table<'_>, names: Option<Vec<String>>, threads: usize) -> PyResult<()> {
        let batch = x.dataset(py, threads, names)?;
        let mut next = self.state();
        let next = run(py, threads, None, |_| next.take(&batch).map(|()| next))?;
        *self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = next;
        Ok(())
    }

    /// What was learned so far.
    fn principal(&self, names: Option<Vec<String>>) -> PyResult<Principal> {
        let axes = self.state().principal().cloned().ok_or_else(|| of(Error::TooFewRows { rows: 0 }))?;
        Ok(Principal::of_complete(axes, names))
    }

    /// Singular values, as they are merged.
    fn singular_values<'py>(&self, py: Python<'py>) -> Array1<'py> {
        array1(py, self.state().singular_values().to_vec())
    }

    /// Variance of each column, divisor N.
    fn variances<'py>(&self, py: Python<'py>) -> Array1<'py> {
        array1(py, self.state().variances().to_vec())
    }

    /// Scores of rows; gaps are conditioned by the model of the whole stream.
    #[pyo3(signature = (x, whiten, threads=0))]
    fn transform<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        whiten: bool,
        threads: usize,
    ) -> PyResult<Array2<'py>> {
        let (data, state) = (x.dataset(py, threads, None)?, self.state());
        array2(py, run(py, threads, None, |_| state.transform(&data, whiten))?)
    }

    /// Rows with their gaps filled, by the model of the whole stream: values and standard deviations.
    #[pyo3(signature = (x, threads=0))]
    fn impute<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        threads: usize,
    ) -> PyResult<(Array2<'py>, Array2<'py>)> {
        let (data, state) = (x.dataset(py, threads, None)?, self.state());
        let filled = run(py, threads, None, |_| state.model()?.impute(&data))?;
        let mut sd = Matrix::zeros(data.n_rows(), data.n_columns());
        filled.cells().iter().for_each(|c| sd[(c.row, c.column)] = c.sd);
        Ok((array2(py, filled.values().clone())?, array2(py, sd)?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let bytes = PyBytes::new(slf.py(), &slf.get().state().to_bytes());
        Ok((slf.get_type().getattr("_unpickle")?, (bytes,)))
    }

    #[staticmethod]
    #[pyo3(name = "_unpickle")]
    fn unpickle(bytes: &[u8]) -> PyResult<Self> {
        Ok(Self { state: Mutex::new(Incremental::from_bytes(bytes).map_err(of)?) })
    }
}
