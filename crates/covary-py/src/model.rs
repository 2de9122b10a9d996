//! `Model`: a fitted model with the place of its columns in the table it was fitted to.

use crate::array::{Table, array1, array2, grouped, numbers, option_text};
use crate::error::{of, of_file, raise};
use crate::place::{Filled, Place};
use crate::work::{run, run_or_leave};
use covary::infer::{Em, FixedPoint, Newton, ObjectiveKind, Observer, Step, Termination};
use covary::io::model_file::{self, Saved, SavedRotation};
use covary::learn::{Choice, Components, Family, Learned, Request, Watch};
use covary::model::{ColumnMap, Rotation, RotationSearch, rotate_in_steps, rotate_model};
use covary::select::{SelfCheckOptions, gap_trends, self_check};
use covary::spec::NoiseFamily;
use covary::views::Activity;
use covary::{
    Coordinates, Dataset, Density, Error, Estimator, LinearGaussian, Matrix, Method, Noise, Reconstruction,
    Spec,
};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::sync::OnceLock;

/// Views × components: ρ, R², and whether a component is active.
type Active<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<bool>>);

/// A fitted model. Rows are those of the table it was fitted to: all its columns, in its order. Columns
/// that never varied are not in the model; answers hold their constant.
#[pyclass(frozen, module = "covary._covary")]
pub(crate) struct Model {
    saved: Saved,
    place: Place,
    /// Principal axes and the variance along them, found when first asked for.
    axes: OnceLock<(Matrix, Vec<f64>)>,
    /// The variance each component explains, likewise.
    explained: OnceLock<Vec<f64>>,
}

/// Learns the model of a table.
#[pyfunction]
#[pyo3(signature = (x, names, family, *, n_components=None, share=None, inference=None, standardize=None, max_iterations=None, tolerance=None, options=None, rotation=None, seed=0, threads=0, progress=None))]
#[allow(clippy::too_many_arguments, reason = "keywords")]
pub(crate) fn fit(
    py: Python<'_>,
    x: Table<'_>,
    names: Option<Vec<String>>,
    family: &str,
    n_components: Option<usize>,
    share: Option<f64>,
    inference: Option<String>,
    standardize: Option<bool>,
    max_iterations: Option<usize>,
    tolerance: Option<f64>,
    options: Option<Bound<'_, PyDict>>,
    rotation: Option<String>,
    seed: u64,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Model> {
    let family = Family::from_name(family)
        .ok_or_else(|| raise("OptionError", &format!("there is no model `{family}`")))?;
    let mut given = Vec::new();
    for (name, value) in options.iter().flat_map(PyDictMethods::iter) {
        given.push((name.extract::<String>()?, option_text(&value)?));
    }
    let rotation = rotation.map(named_rotation).transpose()?;
    let n_components = match (n_components, share) {
        (Some(n), _) => Components::Number(n),
        (None, Some(share)) => Components::Share(share),
        (None, None) => Components::Auto,
    };
    let request = Request {
        views: Vec::new(),
        family,
        n_components,
        inference,
        standardize,
        max_iterations,
        tolerance,
        options: given,
        rotation,
        seed,
    };
    let values = x.matrix()?;
    run_or_leave(py, threads, progress.as_ref(), move |watched| {
        let data = grouped(values, names)?;
        Ok(Model::new(request.learn_observed(&data, watched)?, &data))
    })
}

/// Factor analysis at the maximum of its likelihood, with gaps or without; or, of a complete table and if
/// `as_theirs`, by the steps of scikit-learn. More factors than can be identified are allowed.
#[pyfunction]
#[pyo3(signature = (x, names, n_components, *, as_theirs=false, tolerance, max_iterations, start=None, rotation=None, seed=0, threads=0, progress=None))]
#[allow(clippy::too_many_arguments, reason = "keywords")]
pub(crate) fn fit_factors(
    py: Python<'_>,
    x: Table<'_>,
    names: Option<Vec<String>>,
    n_components: Option<usize>,
    as_theirs: bool,
    tolerance: f64,
    max_iterations: usize,
    start: Option<Vec<f64>>,
    rotation: Option<String>,
    seed: u64,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Model> {
    let rotation = rotation.map(named_rotation).transpose()?;
    let values = x.matrix()?;
    run(py, threads, progress.as_ref(), |watched| {
        let data = grouped(values, names)?;
        let mut observer = |step: &Step| watched.fitting(step);
        let mut learned = if data.is_complete() && as_theirs {
            let n_components = n_components.unwrap_or(data.n_columns());
            let spec = Spec {
                noise_floor: Some(0.0),
                allow_unidentified: true,
                ..Spec::factor_analysis(n_components)
            };
            let method =
                Method::FixedPoint(FixedPoint { tolerance, max_iterations, start, ..FixedPoint::default() });
            let fit = method.fit_observed(&data, &spec, &mut observer)?;
            let columns = (0..data.n_columns()).collect();
            Learned {
                saved: Saved::new(fit, &data, &spec, &method),
                column_map: ColumnMap { columns, constants: Vec::new() },
            }
        } else {
            let limits = FactorLimits { n_components, tolerance, max_iterations, start, seed };
            maximum_likelihood(&data, &limits, &mut observer)?
        };
        let saved = &mut learned.saved;
        if let Some((name, how)) = rotation {
            let rotated = match how {
                // Theirs has no weights, and stops early.
                Rotation::Varimax { .. } | Rotation::Quartimax => {
                    rotate_in_steps(saved.model.loadings(), &how, 1e-6, 100)?
                }
                _ => rotate_model(&saved.model, &how, &RotationSearch { seed, ..RotationSearch::default() })?,
            };
            saved.rotation = Some(SavedRotation { name, rotated });
        }
        Ok(Model::new(learned, &data))
    })
}

struct FactorLimits {
    n_components: Option<usize>,
    tolerance: f64,
    max_iterations: usize,
    start: Option<Vec<f64>>,
    seed: u64,
}

/// Newton's steps where the table is complete, EM where it is not; constant columns are set aside.
fn maximum_likelihood(
    table: &Dataset,
    limits: &FactorLimits,
    observer: &mut dyn Observer,
) -> Result<Learned, Error> {
    let &FactorLimits { n_components, tolerance, max_iterations, seed, .. } = limits;
    let request = Request { seed, ..Request::new(Family::Fa) };
    let column_map = request.column_map(table)?;
    let data = column_map.dataset(table)?;
    let (d, wide) = (data.n_columns(), table.n_columns());
    let asked = n_components.unwrap_or_else(|| request.spec().max_components(d));
    if asked > wide {
        let rows = data.n_informative_rows();
        return Err(Error::TooManyComponents { asked, rows, columns: wide, max: wide });
    }
    let method = if data.is_complete() {
        let of_model = |start: &Vec<f64>| column_map.columns.iter().map(|&j| start[j]).collect();
        let start = limits.start.as_ref().map(of_model);
        Method::Newton(Newton { max_iterations, start, seed, ..Newton::default() })
    } else {
        Method::Em(Em { max_iterations, tolerance, ..Em::default() })
    };
    // One factor less than columns reaches every covariance: what is asked for beyond is zero.
    let kept = asked.min(d.saturating_sub(1));
    // Factors are the same whatever the units; their shares of variance are those of the columns as they came.
    let spec = Spec { allow_unidentified: true, standardize: false, ..request.spec_for(&data, kept) };
    let mut fit = method.fit_observed(&data, &spec, observer)?;
    if kept < asked {
        let w = fit.model.loadings();
        let padded = Matrix::from_fn(d, asked, |j, i| if i < kept { w[(j, i)] } else { 0.0 });
        fit.model = LinearGaussian::new(padded, fit.model.mean().to_vec(), fit.model.noise().clone())?;
    }
    let choice = Choice { n_components: asked, scores: None, correlations: Vec::new(), n_permutations: None };
    let saved = request.keep(fit, &data, (&spec, &method, choice), (&column_map, table))?;
    drop(data);
    Ok(Learned { saved, column_map })
}

fn named_rotation(name: String) -> PyResult<(String, Rotation)> {
    let Some(how) = Rotation::from_name(&name) else {
        let known = Rotation::NAMES.join(", ");
        return Err(raise("OptionError", &format!("there is no rotation `{name}`; there are {known}")));
    };
    Ok((name, how))
}

impl Model {
    pub(crate) fn new(learned: Learned, data: &Dataset) -> Self {
        let Learned { saved, column_map } = learned;
        Self { saved, place: Place::new(column_map, data), axes: OnceLock::new(), explained: OnceLock::new() }
    }

    /// A model whose columns are the table's.
    pub(crate) fn whole(saved: Saved) -> Self {
        let place = Place::whole(saved.columns.clone());
        Self { saved, place, axes: OnceLock::new(), explained: OnceLock::new() }
    }

    pub(crate) fn of_file(saved: Saved) -> Self {
        let place = Place::of_file(&saved.columns, &saved.constants);
        Self { saved, place, axes: OnceLock::new(), explained: OnceLock::new() }
    }

    fn axes(&self) -> &(Matrix, Vec<f64>) {
        self.axes.get_or_init(|| self.saved.model.principal_axes())
    }

    fn explained(&self) -> &[f64] {
        self.explained.get_or_init(|| self.saved.model.explained_variance())
    }
}

fn coordinates(name: &str) -> PyResult<Coordinates> {
    match name {
        "posterior" => Ok(Coordinates::Posterior),
        "projection" => Ok(Coordinates::Projection),
        "whitened" => Ok(Coordinates::Whitened),
        "bartlett" => Ok(Coordinates::Bartlett),
        _ => Err(raise(
            "OptionError",
            &format!("coordinates `{name}` are not known; give posterior, projection, whitened or bartlett"),
        )),
    }
}

#[pymethods]
impl Model {
    /// Reads a model file.
    #[staticmethod]
    fn read(bytes: &[u8]) -> PyResult<Self> {
        model_file::read(bytes).map(Self::of_file).map_err(of_file)
    }

    /// The model file.
    fn write<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        model_file::write(&self.saved, &mut bytes).map_err(of_file)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// What pickle keeps: the model file, and what it does not hold.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(
        Bound<'py, PyAny>,
        (Bound<'py, PyBytes>, Vec<String>, Vec<usize>, Vec<(usize, f64)>, Vec<(usize, f64)>),
    )> {
        let model = slf.get();
        let Place { column_map: ColumnMap { columns, constants }, names, singles } = model.place.clone();
        let state = (model.write(slf.py())?, names, columns, constants, singles);
        Ok((slf.get_type().getattr("_unpickle")?, state))
    }

    #[staticmethod]
    #[pyo3(name = "_unpickle")]
    fn unpickle(
        bytes: &[u8],
        names: Vec<String>,
        columns: Vec<usize>,
        constants: Vec<(usize, f64)>,
        singles: Vec<(usize, f64)>,
    ) -> PyResult<Self> {
        let saved = model_file::read(bytes).map_err(of_file)?;
        let place = Place::unpickled((names, columns, constants, singles), saved.columns.len())?;
        Ok(Self { saved, place, axes: OnceLock::new(), explained: OnceLock::new() })
    }

    /// `pca`, `ppca`, `fa`, `bpca` or `gaussian`.
    #[getter]
    fn family(&self) -> &str {
        &self.saved.family
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

    /// Columns that never varied.
    #[getter]
    fn constants(&self) -> Vec<(usize, f64)> {
        self.place.column_map.constants.clone()
    }

    /// Columns observed once.
    #[getter]
    fn singles(&self) -> Vec<(usize, f64)> {
        self.place.singles.clone()
    }

    #[getter]
    fn n_components(&self) -> usize {
        self.saved.model.n_components()
    }

    /// Rows of the table it was fitted to.
    #[getter]
    fn n_rows(&self) -> usize {
        self.saved.training.n_rows
    }

    #[getter]
    fn mean<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array1(py, self.place.widen(self.saved.model.mean(), |v| v))
    }

    /// W, d × q; turned if a rotation was asked for.
    #[getter]
    fn loadings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let own = self.saved.rotation.as_ref().map_or(self.saved.model.loadings(), |r| &r.rotated.loadings);
        array2(py, self.place.widen_rows(&own.transpose(), |_| 0.0).transpose())
    }

    /// Correlations of oblique factors; None without a rotation.
    #[getter]
    fn factor_correlations<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let rotation = self.saved.rotation.as_ref();
        rotation.map(|r| array2(py, r.rotated.factor_correlations.clone())).transpose()
    }

    /// σ², or ψ of every column.
    #[getter]
    fn noise_variance<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match self.saved.model.noise() {
            Noise::Isotropic(v) => pyo3::types::PyFloat::new(py, *v).into_any(),
            Noise::Diagonal(psi) => array1(py, self.place.widen(psi, |_| 0.0)).into_any(),
        }
    }

    /// Orthonormal axes in the scale of the fit, q × d.
    #[getter]
    fn components<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array2(py, self.place.widen_rows(&self.axes().0, |_| 0.0))
    }

    #[getter]
    fn explained_variance<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array1(py, self.explained().to_vec())
    }

    #[getter]
    fn explained_variance_ratio<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let total = self.saved.model.total_variance();
        array1(py, self.explained().iter().map(|v| v / total).collect())
    }

    /// √(n λ): those of the centered table in the scale of the fit, if it is complete.
    #[getter]
    fn singular_values<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let n = self.saved.training.n_rows as f64;
        array1(py, self.explained().iter().map(|v| (n * v).sqrt()).collect())
    }

    /// Share of the total variance that is signal of each component, noise subtracted.
    #[getter]
    fn signal_variance_ratio<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array1(py, self.saved.model.signal_variance_ratio())
    }

    /// Variance of each column under the model.
    #[getter]
    fn variances<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array1(py, self.place.widen(&self.saved.model.variances(), |_| 0.0))
    }

    /// What was maximized, and its value.
    #[getter]
    fn objective(&self) -> (&'static str, f64) {
        let objective = &self.saved.report.objective;
        let kind = match objective.kind {
            ObjectiveKind::LogLikelihood => "log_likelihood",
            ObjectiveKind::LogPosterior => "log_posterior",
            ObjectiveKind::LowerBound => "lower_bound",
            ObjectiveKind::AverageLogLikelihood => "average_log_likelihood",
        };
        (kind, objective.value)
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

    /// Whether the limit on iterations ended the fit.
    #[getter]
    fn stopped_at_limit(&self) -> bool {
        self.saved.report.termination == Termination::IterationLimit
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.saved.report.warnings.iter().map(ToString::to_string).collect()
    }

    /// E[α] of each component; empty without an ARD prior.
    #[getter]
    fn relevance<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array1(py, self.saved.report.relevance.clone())
    }

    /// Names of the views, and the places of their columns in the table.
    #[getter]
    fn views(&self) -> Vec<(String, Vec<usize>)> {
        let columns = &self.place.column_map.columns;
        let places = |(name, view): (&str, std::ops::Range<usize>)| (name.to_owned(), columns[view].to_vec());
        self.saved.view_columns().into_iter().map(places).collect()
    }

    /// Views × components: ρ, R², and whether a component is active.
    fn activity<'py>(&self, py: Python<'py>) -> PyResult<Active<'py>> {
        let variances: Vec<f64> = self.saved.training.column_sds.iter().map(|s| s * s).collect();
        let found =
            Activity::of_model(&self.saved.model, &self.saved.spec.views, &variances, false).map_err(of)?;
        let (v, q) = (found.n_views(), found.n_components());
        let active: Vec<bool> = (0..v * q).map(|k| found.is_active(k / q, k % q)).collect();
        let active = PyArray1::from_vec(py, active).reshape([v, q])?;
        Ok((array2(py, found.signal)?, array2(py, found.explained_variance)?, active))
    }

    /// `isotropic` or `diagonal`: the noise that was asked for.
    #[getter]
    fn noise_family(&self) -> &'static str {
        match self.saved.spec.noise {
            NoiseFamily::Isotropic => "isotropic",
            NoiseFamily::Diagonal => "diagonal",
        }
    }

    /// The method's name and options.
    #[getter]
    fn method(&self) -> (String, std::collections::BTreeMap<String, String>) {
        (self.saved.method.name.clone(), self.saved.method.options.clone())
    }

    /// Whether columns were given unit variance.
    #[getter]
    fn standardized(&self) -> bool {
        self.saved.spec.standardize
    }

    /// Hidden-cell scores by number of components: (n_components, nats per hidden cell, its standard error,
    /// RMSE).
    #[getter]
    fn choice(&self) -> Option<Vec<(usize, f64, f64, f64)>> {
        let at = self.saved.choice.as_ref()?.by_n_components.iter();
        Some(at.map(|a| (a.n_components, a.mean, a.standard_error, a.rmse)).collect())
    }

    /// Everything about the model as JSON, as `covary inspect --json` has it.
    fn describe(&self) -> String {
        self.saved.to_json()
    }

    /// Scores of rows, turned with the loadings.
    #[pyo3(signature = (x, coordinates="posterior", threads=0))]
    fn transform<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        coordinates: &str,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let how = self::coordinates(coordinates)?;
        let table = self.place.dataset(py, x, threads)?;
        let scores = run(py, threads, None, |_| {
            let scores = self.saved.model.transform(&*self.place.column_map.dataset(&table)?, how)?;
            match &self.saved.rotation {
                Some(r) if matches!(how, Coordinates::Posterior | Coordinates::Bartlett) => {
                    r.rotated.scores(&scores)
                }
                _ => Ok(scores),
            }
        })?;
        array2(py, scores)
    }

    /// Posterior covariance of the scores of each row, n × q × q.
    #[pyo3(signature = (x, threads=0))]
    fn score_covariances<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let table = self.place.dataset(py, x, threads)?;
        let posterior =
            run(py, threads, None, |_| self.saved.model.posterior(&*self.place.column_map.dataset(&table)?))?;
        let q = self.saved.model.n_components();
        let turned = |c: &Matrix| match &self.saved.rotation {
            Some(r) => r.rotated.score_covariance(c),
            None => c.clone(),
        };
        let by_pattern: Vec<Matrix> = posterior.covariances.iter().map(turned).collect();
        let rows = posterior.pattern_of_row.iter().flat_map(|&p| by_pattern[p].as_slice());
        rows.copied().collect::<Vec<f64>>().into_pyarray(py).reshape([table.n_rows(), q, q])
    }

    /// Covariance of the projections of each row on `axes` given its observed cells, n × q × q.
    #[pyo3(signature = (x, axes, threads=0))]
    fn projection_covariances<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        axes: PyReadonlyArray2<'_, f64>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let (table, axes) = (self.place.dataset(py, x, threads)?, numbers(&axes)?);
        let n = table.n_rows();
        let (of_row, found) = run(py, threads, None, |_| {
            self.saved.model.projection_covariances(&*self.place.column_map.dataset(&table)?, &axes)
        })?;
        let rows = of_row.iter().flat_map(|&p| found[p].as_slice());
        rows.copied().collect::<Vec<f64>>().into_pyarray(py).reshape([n, axes.n_rows(), axes.n_rows()])
    }

    /// Axes and variances as principal components, to project with.
    fn principal(&self) -> crate::principal::Principal {
        crate::principal::Principal::of_model(&self.saved)
    }

    /// The rotation's name.
    #[getter]
    fn rotation(&self) -> Option<String> {
        self.saved.rotation.as_ref().map(|r| r.name.clone())
    }

    /// Rows from scores: what the posterior coordinates stand for.
    fn decode<'py>(
        &self,
        py: Python<'py>,
        scores: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let scores = numbers(&scores)?;
        // L z with turned loadings and scores is W x.
        let narrow = match &self.saved.rotation {
            Some(r) => {
                let unturned = r.rotated.unturned(&scores).map_err(of)?;
                self.saved.model.decode(&unturned)
            }
            None => self.saved.model.decode(&scores),
        };
        array2(py, self.place.widen_rows(&narrow.map_err(of)?, |v| v))
    }

    /// Rows without their noise.
    #[pyo3(signature = (x, threads=0))]
    fn reconstruct<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let table = self.place.dataset(py, x, threads)?;
        let rows = run(py, threads, None, |_| {
            self.saved.model.reconstruct(&*self.place.column_map.dataset(&table)?, Reconstruction::default())
        })?;
        array2(py, self.place.widen_rows(&rows, |v| v))
    }

    /// Log-density of each row in nats, gaps integrated out.
    #[pyo3(signature = (x, threads=0))]
    fn log_density<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let table = self.place.dataset(py, x, threads)?;
        let density = run(py, threads, None, |_| {
            self.saved.of_new_rows().log_density(&*self.place.column_map.dataset(&table)?)
        })?;
        Ok(array1(py, density))
    }

    /// Log-density of each row under draws of the parameters, and its Monte-Carlo standard error.
    #[pyo3(signature = (x, n_draws, seed, threads=0))]
    fn predictive_log_density<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        n_draws: usize,
        seed: u64,
        threads: usize,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>)> {
        let table = self.place.dataset(py, x, threads)?;
        let found = run(py, threads, None, |_| {
            let data = self.place.column_map.dataset(&table)?;
            if let Some(draws) = &self.saved.draws {
                // The draws at hand are the posterior; there is nothing further to draw.
                let values = draws.log_density(&data)?;
                let errors = vec![f64::NAN; values.len()];
                return Ok((values, errors));
            }
            let found = self.saved.model.predictive_log_density(&data, n_draws, seed)?;
            Ok(found.iter().map(|e| (e.value, e.standard_error)).unzip())
        })?;
        let (values, errors) = found;
        Ok((array1(py, values), array1(py, errors)))
    }

    /// Hotelling's T², squared prediction error and Mahalanobis distance of each row.
    #[pyo3(signature = (x, threads=0))]
    fn outlyingness<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let table = self.place.dataset(py, x, threads)?;
        let rows = run(py, threads, None, |_| {
            self.saved.model.outlyingness(&*self.place.column_map.dataset(&table)?)
        })?;
        let out = PyDict::new(py);
        out.set_item("t2", array1(py, rows.iter().map(|r| r.t_squared).collect()))?;
        out.set_item("spe", array1(py, rows.iter().map(|r| r.squared_prediction_error).collect()))?;
        out.set_item("mahalanobis", array1(py, rows.iter().map(|r| r.mahalanobis).collect()))?;
        Ok(out)
    }

    /// W Wᵀ + Ψ; zero beside columns that never varied.
    fn covariance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array2(py, self.place.widen_both(&self.saved.model.covariance()))
    }

    /// Its inverse.
    fn precision<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        if let Some((j, _)) = self.place.aside().next() {
            return Err(of(Error::ConstantColumn { column: self.place.names[j].clone() }));
        }
        array2(py, self.place.widen_both(&self.saved.model.precision()))
    }

    /// Fresh rows.
    fn sample<'py>(&self, py: Python<'py>, n_rows: usize, seed: u64) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let rows = py.detach(|| self.saved.of_new_rows().sample(n_rows, &mut rng));
        array2(py, self.place.widen_rows(&rows, |v| v))
    }

    /// The table with its gaps filled, and what is known of each. `own`: these are the rows it was fitted to.
    #[pyo3(signature = (x, own=false, threads=0))]
    fn impute<'py>(&self, py: Python<'py>, x: Table<'_>, own: bool, threads: usize) -> PyResult<Filled<'py>> {
        let table = self.place.dataset(py, x, threads)?;
        let filled = run(py, threads, None, |_| {
            let density = if own { self.saved.of_training_rows() } else { self.saved.of_new_rows() };
            self.place.column_map.imputed(density.impute(&*self.place.column_map.dataset(&table)?)?, &table)
        })?;
        self.place.filled(py, filled, &table)
    }

    /// The table completed by joint draw `k`.
    #[pyo3(signature = (x, k, seed, own=false, threads=0))]
    fn draw_gaps<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        k: usize,
        seed: u64,
        own: bool,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let table = self.place.dataset(py, x, threads)?;
        let values = run(py, threads, None, |_| {
            let density = if own { self.saved.of_training_rows() } else { self.saved.of_new_rows() };
            let drawn = density.draw_gaps(&*self.place.column_map.dataset(&table)?, k, seed)?;
            self.place.column_map.values(&drawn, &table)
        })?;
        array2(py, self.place.with_singles(values))
    }

    /// Columns whose gaps follow the first component: (name, correlation, sentence).
    #[pyo3(signature = (x, threads=0))]
    fn gap_trends(
        &self,
        py: Python<'_>,
        x: Table<'_>,
        threads: usize,
    ) -> PyResult<Vec<(String, f64, String)>> {
        let table = self.place.dataset(py, x, threads)?;
        let trends = run(py, threads, None, |_| {
            gap_trends(&self.saved.model, &*self.place.column_map.dataset(&table)?)
        })?;
        Ok(trends.iter().map(|t| (t.name.clone(), t.correlation, t.to_string())).collect())
    }

    /// Hides cells of the table, fits without them, and compares.
    #[pyo3(signature = (x, seed, levels, threads=0, progress=None))]
    fn self_check<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        seed: u64,
        levels: Vec<f64>,
        threads: usize,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let table = self.place.dataset(py, x, threads)?;
        let check = run(py, threads, progress.as_ref(), |watched| {
            let data = self.place.column_map.dataset(&table)?;
            let n_components = self.saved.model.n_components();
            let spec = Spec { n_components, ..self.saved.spec.clone() };
            let own = self.saved.method.to_method()?;
            let family = Family::from_name(&self.saved.family).unwrap_or(Family::Ppca);
            let method = match &own {
                Method::Gibbs(_) => own,
                own => Request { seed, ..Request::new(family) }.with_gaps(own)?,
            };
            let options = SelfCheckOptions { seed, levels, ..SelfCheckOptions::default() };
            let mut observer = |step: &Step| watched.fitting(step);
            self_check(&data, &spec, &method, &options, &mut observer)
        })?;
        let out = PyDict::new(py);
        out.set_item("n_hidden", check.n_hidden)?;
        out.set_item("rmse", check.rmse)?;
        out.set_item("baseline_rmse", check.baseline_rmse)?;
        out.set_item("skill", check.skill)?;
        out.set_item("levels", check.coverage.iter().map(|c| c.level).collect::<Vec<_>>())?;
        out.set_item("coverage", check.coverage.iter().map(|c| c.share).collect::<Vec<_>>())?;
        Ok(out)
    }
}
