//! `Mixture`: a fitted mixture, or classes with a model each, with the place of its columns in the table.

use crate::array::{Table, array1, array2};
use crate::error::{of, of_file, raise};
use crate::ica::Sources;
use crate::model::Model;
use crate::place::{Filled, Pickled, Place};
use crate::work::run;
use covary::infer::{ClassConditional, Method, MethodRecord, MixtureEm, MixtureInit, Observer, Step, Stop};
use covary::io::model_file::{self, Constant, Opened, SavedMixture};
use covary::learn::Watch;
use covary::model::ColumnMap;
use covary::spec::NoiseFamily;
use covary::{Coordinates, Dataset, Density, Error, LinearGaussian, Matrix, Noise, Spec};
use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray2, PyReadonlyArray3};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// A fitted mixture. Rows are those of the table it was fitted to: all its columns, in its order.
#[pyclass(frozen, module = "covary._covary")]
pub(crate) struct Mixture {
    saved: SavedMixture,
    place: Place,
}

fn spec(noise: &str, n_components: usize, standardize: bool) -> PyResult<Spec> {
    let spec = match noise {
        "isotropic" => Spec::ppca(n_components),
        "diagonal" => Spec::factor_analysis(n_components),
        other => return Err(raise("OptionError", &format!("there is no noise `{other}`"))),
    };
    Ok(Spec { standardize, ..spec })
}

/// The number of components asked for, or as many as the columns can determine up to `most`.
fn components(spec: &Spec, asked: Option<usize>, most: Option<usize>, table: &Dataset) -> usize {
    let room = spec.max_components(table.n_columns());
    asked.unwrap_or_else(|| most.map_or(room, |most| most.min(room)))
}

/// The columns that vary, and the constants beside them by name.
fn varying(data: &Dataset) -> Result<(ColumnMap, Vec<Constant>), Error> {
    let column_map = ColumnMap::of_varying(data)?;
    let named = |&(j, value): &(usize, f64)| Constant { name: data.column_names()[j].clone(), value };
    let constants = column_map.constants.iter().map(named).collect();
    Ok((column_map, constants))
}

/// Columns of a matrix that the model has.
fn narrow(wide: &Matrix, columns: &[usize]) -> Matrix {
    Matrix::from_fn(wide.n_rows(), columns.len(), |i, j| wide[(i, columns[j])])
}

/// A start as Python gives it, over all columns of the table: means, and with them all or nothing else.
struct Start {
    means: Matrix,
    weights: Option<Vec<f64>>,
    /// K matrices of d × d.
    covariances: Option<Vec<Matrix>>,
}

impl Start {
    fn init(&self, columns: &[usize], spec: &Spec) -> Result<MixtureInit, Error> {
        let means = narrow(&self.means, columns);
        let Some(covariances) = &self.covariances else { return Ok(MixtureInit::Centers(Box::new(means))) };
        let model = |k: usize| {
            let own = narrow(&narrow(&covariances[k], columns).transpose(), columns);
            let variances: Vec<f64> = (0..columns.len()).map(|j| own[(j, j)]).collect();
            let mean = means.row(k).to_vec();
            match (spec.noise, spec.n_components) {
                _ if spec.standardize => LinearGaussian::from_covariance_by_column(mean, &own),
                (NoiseFamily::Isotropic, 0) => {
                    let pooled = variances.iter().sum::<f64>() / variances.len() as f64;
                    LinearGaussian::new(Matrix::zeros(columns.len(), 0), mean, Noise::Isotropic(pooled))
                }
                (NoiseFamily::Diagonal, 0) => {
                    LinearGaussian::new(Matrix::zeros(columns.len(), 0), mean, Noise::Diagonal(variances))
                }
                _ => LinearGaussian::from_covariance(mean, &own),
            }
        };
        let models = (0..covariances.len()).map(model).collect::<Result<Vec<_>, _>>()?;
        let weights = self.weights.clone().unwrap_or_else(|| vec![1.0; models.len()]);
        Ok(MixtureInit::Given(Box::new(covary::model::Mixture::new(models, weights)?)))
    }
}

/// What a model file holds: a `Model`, a `Mixture` or `Sources`.
#[pyfunction]
pub(crate) fn open_model(py: Python<'_>, bytes: &[u8]) -> PyResult<Py<PyAny>> {
    match model_file::open(bytes).map_err(of_file)? {
        Opened::Model(saved) => Ok(Py::new(py, Model::of_file(*saved))?.into_any()),
        Opened::Mixture(saved) => Ok(Py::new(py, Mixture::of_file(*saved))?.into_any()),
        Opened::Sources(saved) => Ok(Py::new(py, Sources::of_file(*saved))?.into_any()),
    }
}

/// Learns a mixture. `ridge`, `shared`, `change` and `before` are those of `MixtureEm`; `last` is a mixture to go
/// on from. Without `n_components` its models have as many components as the columns can
/// determine, or `most`.
#[pyfunction]
#[pyo3(signature = (x, names, family, *, n_mixtures, n_components, most=None, noise="isotropic", standardize=false, noise_floor=None, max_iterations=None, tolerance=None, restarts=None, init=None, ridge=None, shared=false, change=false, before=None, responsibilities=None, last=None, means=None, weights=None, covariances=None, seed=0, threads=0, progress=None))]
#[allow(clippy::too_many_arguments, reason = "keywords")]
pub(crate) fn fit_mixture(
    py: Python<'_>,
    x: Table<'_>,
    names: Option<Vec<String>>,
    family: String,
    n_mixtures: usize,
    n_components: Option<usize>,
    most: Option<usize>,
    noise: &str,
    standardize: bool,
    noise_floor: Option<f64>,
    max_iterations: Option<usize>,
    tolerance: Option<f64>,
    restarts: Option<usize>,
    init: Option<&str>,
    ridge: Option<f64>,
    shared: bool,
    change: bool,
    before: Option<f64>,
    responsibilities: Option<PyReadonlyArray2<'_, f64>>,
    last: Option<PyRef<'_, Mixture>>,
    means: Option<PyReadonlyArray2<'_, f64>>,
    weights: Option<Vec<f64>>,
    covariances: Option<PyReadonlyArray3<'_, f64>>,
    seed: u64,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Mixture> {
    let values = x.matrix()?;
    let covariances = covariances.map(|stack| {
        let stack = stack.as_array();
        let matrix = |k: usize| Matrix::from_fn(stack.shape()[1], stack.shape()[2], |i, j| stack[[k, i, j]]);
        (0..stack.shape()[0]).map(matrix).collect::<Vec<_>>()
    });
    let means = means.as_ref().map(crate::array::numbers).transpose()?;
    let start = means.map(|means| Start { means, weights, covariances });
    let last = last.map(|last| last.saved.mixture.clone());
    let of_rows = responsibilities.as_ref().map(crate::array::numbers).transpose()?;
    let asked = spec(noise, 0, standardize)?;
    let defaults = MixtureEm::of(n_mixtures);
    let mut method = MixtureEm {
        max_iterations: max_iterations.unwrap_or(defaults.max_iterations),
        tolerance: tolerance.unwrap_or(defaults.tolerance),
        restarts: restarts.unwrap_or(defaults.restarts),
        stop: if change { Stop::Change { before } } else { Stop::Remaining },
        ridge,
        shared_covariance: shared,
        seed,
        ..defaults
    };
    if let Some(init) = init {
        method.set("init", init).map_err(of)?;
    }
    if let Some(start) = of_rows {
        method.init = MixtureInit::Responsibilities(Box::new(start));
    }
    if let Some(last) = last {
        method.init = MixtureInit::Given(Box::new(last));
    }
    run(py, threads, progress.as_ref(), |watched| {
        let data = crate::array::grouped(values, names)?;
        let (column_map, constants) = varying(&data)?;
        // A ridge is the variance of columns that never varied.
        let whole = ridge.is_some_and(|ridge| ridge > 0.0);
        let (column_map, constants) = if whole {
            (ColumnMap { columns: (0..data.n_columns()).collect(), constants: Vec::new() }, Vec::new())
        } else {
            (column_map, constants)
        };
        let table = column_map.dataset(&data)?;
        let n_components = components(&asked, n_components, most, &table);
        let spec = Spec { n_components, noise_floor, ..asked };
        let method = match &start {
            Some(start) => MixtureEm { init: start.init(&column_map.columns, &spec)?, ..method },
            None => method,
        };
        let mut observer = |step: &Step| watched.fitting(step);
        let fit = method.fit_observed(&table, &spec, &mut observer as &mut dyn Observer)?;
        let mut saved = SavedMixture::new(fit, &table, &spec, (&method).into());
        (saved.family, saved.constants, saved.seed) = (family, constants, seed);
        drop(table);
        let place = if whole { Place::whole(saved.columns.clone()) } else { Place::new(column_map, &data) };
        Ok(Mixture { saved, place })
    })
}

/// Learns a model for each class, `labels` giving the place of each row's class among `classes`.
#[pyfunction]
#[pyo3(signature = (x, names, labels, classes, *, n_components, most=None, noise="isotropic", standardize=true, priors=None, threads=0, progress=None))]
#[allow(clippy::too_many_arguments, reason = "keywords")]
pub(crate) fn fit_classes(
    py: Python<'_>,
    x: Table<'_>,
    names: Option<Vec<String>>,
    labels: Vec<usize>,
    classes: Vec<String>,
    n_components: Option<usize>,
    most: Option<usize>,
    noise: &str,
    standardize: bool,
    priors: Option<Vec<f64>>,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Mixture> {
    let values = x.matrix()?;
    let asked = spec(noise, 0, standardize)?;
    run(py, threads, progress.as_ref(), |watched| {
        let data = crate::array::grouped(values, names)?;
        let (column_map, constants) = varying(&data)?;
        let table = column_map.dataset(&data)?;
        let asked = Spec { n_components: components(&asked, n_components, most, &table), ..asked };
        let labels: Vec<Option<usize>> = labels.into_iter().map(Some).collect();
        let method = ClassConditional { method: None, priors };
        let mut observer = |step: &Step| watched.fitting(step);
        let observer = &mut observer as &mut dyn Observer;
        let fit = method.fit_observed(&table, (&labels, &classes), &asked, observer)?;
        let method = MethodRecord::from(&Method::recommended(&table, &asked));
        let mut saved = SavedMixture::of_classes(fit, "class", &table, &asked, method);
        saved.constants = constants;
        drop(table);
        Ok(Mixture { saved, place: Place::new(column_map, &data) })
    })
}

impl Mixture {
    fn of_file(saved: SavedMixture) -> Self {
        let place = Place::of_file(&saved.columns, &saved.constants);
        Self { saved, place }
    }

    fn components(&self) -> &[LinearGaussian] {
        self.saved.mixture.models()
    }

    /// K matrices of one shape as one array.
    fn stacked<'py>(py: Python<'py>, parts: &[Matrix]) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let shape = [parts.len(), parts[0].n_rows(), parts[0].n_columns()];
        let values: Vec<f64> = parts.iter().flat_map(|m| m.as_slice().iter().copied()).collect();
        array1(py, values).reshape(shape)
    }

    /// What `ask` says of the model's columns of a table.
    fn asked<T: Send>(
        &self,
        py: Python<'_>,
        x: Table<'_>,
        threads: usize,
        ask: impl FnOnce(&covary::model::Mixture, &Dataset) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let table = self.place.dataset(py, x, threads)?;
        run(py, threads, None, |_| ask(&self.saved.mixture, &*self.place.column_map.dataset(&table)?))
    }
}

#[pymethods]
impl Mixture {
    /// Reads a model file of a mixture.
    #[staticmethod]
    fn read(bytes: &[u8]) -> PyResult<Self> {
        match model_file::open(bytes).map_err(of_file)? {
            Opened::Mixture(saved) => Ok(Self::of_file(*saved)),
            Opened::Model(_) => Err(raise("ModelFileError", "holds one model, not a mixture")),
            Opened::Sources(_) => Err(raise("ModelFileError", "holds independent components, not a mixture")),
        }
    }

    /// The model file.
    fn write<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        model_file::write_mixture(&self.saved, &mut bytes).map_err(of_file)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// What pickle keeps: the model file, and what it does not hold.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>, Pickled))> {
        let mixture = slf.get();
        let Place { column_map: ColumnMap { columns, constants }, names, singles } = mixture.place.clone();
        let state = (mixture.write(slf.py())?, (names, columns, constants, singles));
        Ok((slf.get_type().getattr("_unpickle")?, state))
    }

    #[staticmethod]
    #[pyo3(name = "_unpickle")]
    fn unpickle(bytes: &[u8], pickled: Pickled) -> PyResult<Self> {
        let Self { saved, .. } = Self::read(bytes)?;
        let place = Place::unpickled(pickled, saved.columns.len())?;
        Ok(Self { saved, place })
    }

    /// `mppca`, `mfa` or `gmm`; of classes that of each.
    #[getter]
    fn family(&self) -> &str {
        &self.saved.family
    }

    /// Names of the classes, if its models are such.
    #[getter]
    fn classes(&self) -> Option<Vec<String>> {
        Some(self.saved.classes.as_ref()?.names.clone())
    }

    /// Names of the table's columns.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.place.names.clone()
    }

    /// Whether those are the names a table without names gets.
    #[getter]
    fn has_default_names(&self) -> bool {
        self.place.has_default_names()
    }

    /// Places of the columns that are in the models.
    #[getter]
    fn columns(&self) -> Vec<usize> {
        self.place.column_map.columns.clone()
    }

    /// Components of each model.
    #[getter]
    fn n_components(&self) -> usize {
        self.components()[0].n_components()
    }

    /// Rows of the table it was fitted to.
    #[getter]
    fn n_rows(&self) -> usize {
        self.saved.training.n_rows.max(1)
    }

    /// `isotropic` or `diagonal`, as asked for.
    #[getter]
    fn noise(&self) -> &'static str {
        match self.saved.spec.noise {
            NoiseFamily::Isotropic => "isotropic",
            NoiseFamily::Diagonal => "diagonal",
        }
    }

    /// Whether all models share one covariance.
    #[getter]
    fn shares_covariance(&self) -> bool {
        self.saved.shares_covariance()
    }

    /// Whether columns were given unit variance.
    #[getter]
    fn standardized(&self) -> bool {
        self.saved.spec.standardize
    }

    /// Free parameters.
    #[getter]
    fn n_parameters(&self) -> usize {
        self.saved.n_parameters()
    }

    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array1(py, self.saved.mixture.weights().to_vec())
    }

    /// K × d.
    #[getter]
    fn means<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let rows: Vec<Vec<f64>> =
            self.components().iter().map(|c| self.place.widen(c.mean(), |v| v)).collect();
        array2(py, Matrix::from_rows(&rows))
    }

    /// K × d × q.
    #[getter]
    fn loadings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let wide = |c: &LinearGaussian| self.place.widen_rows(&c.loadings().transpose(), |_| 0.0).transpose();
        Self::stacked(py, &self.components().iter().map(wide).collect::<Vec<_>>())
    }

    /// Noise variance of every column, K × d; 0 beside columns that never varied.
    #[getter]
    fn noise_variances<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let wide = |c: &LinearGaussian| self.place.widen(&c.noise_variances(), |_| 0.0);
        array2(py, Matrix::from_rows(&self.components().iter().map(wide).collect::<Vec<_>>()))
    }

    /// σ² of each model, if all its columns share one.
    #[getter]
    fn noise_variance<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        let one = |c: &LinearGaussian| match c.noise() {
            Noise::Isotropic(variance) => Some(*variance),
            Noise::Diagonal(_) => None,
        };
        let values: Option<Vec<f64>> = self.components().iter().map(one).collect();
        Some(array1(py, values?))
    }

    /// K × d × d; zero beside columns that never varied.
    #[getter]
    fn covariances<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let wide = |c: &LinearGaussian| self.place.widen_both(&c.covariance());
        Self::stacked(py, &self.components().iter().map(wide).collect::<Vec<_>>())
    }

    /// K × d × d.
    #[getter]
    fn precisions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<f64>>> {
        if let Some((j, _)) = self.place.aside().next() {
            return Err(of(Error::ConstantColumn { column: self.place.names[j].clone() }));
        }
        Self::stacked(py, &self.components().iter().map(LinearGaussian::precision).collect::<Vec<_>>())
    }

    /// Log-likelihood of the table it was fitted to, in nats.
    #[getter]
    fn log_likelihood(&self) -> f64 {
        self.saved.report.objective.value
    }

    #[getter]
    fn trace<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array1(py, self.saved.report.trace.clone())
    }

    #[getter]
    fn n_iterations(&self) -> usize {
        self.saved.report.n_iterations()
    }

    #[getter]
    fn converged(&self) -> bool {
        self.saved.report.converged()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.saved.report.warnings.iter().map(ToString::to_string).collect()
    }

    /// The method's name and options.
    #[getter]
    fn method(&self) -> (String, std::collections::BTreeMap<String, String>) {
        (self.saved.method.name.clone(), self.saved.method.options.clone())
    }

    /// Everything as JSON, as `covary inspect --json` has it.
    fn describe(&self) -> String {
        self.saved.to_json()
    }

    /// Log-density of each row.
    #[pyo3(signature = (x, threads=0))]
    fn log_density<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(array1(py, self.asked(py, x, threads, Density::log_density)?))
    }

    /// How far each row belongs to each model, n × K.
    #[pyo3(signature = (x, threads=0))]
    fn responsibilities<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array2(py, self.asked(py, x, threads, covary::model::Mixture::responsibilities)?)
    }

    /// Scores of each row under each model, n × K × q.
    #[pyo3(signature = (x, threads=0))]
    fn scores<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let (k, q) = (self.components().len(), self.n_components());
        let by_model = self.asked(py, x, threads, |mixture, data| {
            let scores = |c: &LinearGaussian| c.transform(data, Coordinates::Posterior);
            mixture.models().iter().map(scores).collect::<Result<Vec<_>, _>>()
        })?;
        let n = by_model[0].n_rows();
        let values = (0..n).flat_map(|i| by_model.iter().flat_map(move |m| m.row(i).iter().copied()));
        array1(py, values.collect()).reshape([n, k, q])
    }

    /// Fresh rows, and the model that each is from.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        n_rows: usize,
        seed: u64,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Vec<usize>)> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (rows, labels) = py.detach(|| self.saved.mixture.sample_labeled(n_rows, &mut rng));
        Ok((array2(py, self.place.widen_rows(&rows, |v| v))?, labels))
    }

    /// The table with its gaps filled, and what is known of each.
    #[pyo3(signature = (x, threads=0))]
    fn impute<'py>(&self, py: Python<'py>, x: Table<'_>, threads: usize) -> PyResult<Filled<'py>> {
        let table = self.place.dataset(py, x, threads)?;
        let column_map = &self.place.column_map;
        let filled = run(py, threads, None, |_| {
            column_map.imputed(self.saved.mixture.impute(&*column_map.dataset(&table)?)?, &table)
        })?;
        self.place.filled(py, filled, &table)
    }

    /// The table completed by joint draw `k`.
    #[pyo3(signature = (x, k, seed, threads=0))]
    fn draw_gaps<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        k: usize,
        seed: u64,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let table = self.place.dataset(py, x, threads)?;
        let column_map = &self.place.column_map;
        let drawn = run(py, threads, None, |_| {
            let drawn = self.saved.mixture.draw_gaps(&*column_map.dataset(&table)?, k, seed)?;
            column_map.values(&drawn, &table)
        })?;
        array2(py, self.place.with_singles(drawn))
    }
}
