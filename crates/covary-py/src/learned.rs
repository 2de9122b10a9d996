//! `Learned`: a model of any family, with the place of its columns in the table it was fitted to.

use crate::array::{Array1, Array2, Table, array1, array2};
use crate::dynamic::{Dynamic, Times};
use crate::error::{of, of_file, raise};
use crate::functional::{Functional, Points};
use crate::linear::Model;
use crate::mixture::Mixture;
use crate::place::{Filled, Pickled, Place};
use crate::sources::Sources;
use crate::work::run;
use covary::data::Steps;
use covary::family::Request;
use covary::infer::{ObjectiveKind, Step, Termination};
use covary::io::model_file;
use covary::learn::Watch;
use covary::learned::{CheckOutcome, Rows, Tipping, TippingPoint, Trained};
use covary::model::{ColumnMap, FilledCell};
use covary::select::{SelfCheck, SelfCheckOptions};
use covary::spec::NoiseFamily;
use covary::{Coordinates, Dataset, Error, Matrix};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::collections::BTreeMap;

/// A learned model. Rows are those of the table it was fitted to: all its columns, in its order. Columns
/// that never varied are not in the model; answers hold their constant.
#[pyclass(frozen, subclass, module = "covary._covary")]
pub(crate) struct Learned {
    pub(crate) learned: covary::learned::Learned,
    pub(crate) place: Place,
}

/// What the rows of a table are besides numbers.
#[derive(FromPyObject)]
pub(crate) enum At {
    /// Rows in time.
    Times(Times),
    /// Points of curves.
    Points(Points),
}

impl At {
    /// The table with it, times in the steps of a model if it has such.
    pub(crate) fn of(&self, table: Dataset, steps: Option<Steps>) -> Result<Dataset, Error> {
        match self {
            Self::Times(times) => table.in_time(times.timeline(steps)?),
            Self::Points(points) => table.of_points(points.points()?),
        }
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

/// Whether the rows are those the model was fitted to.
fn rows(own: bool) -> Rows {
    if own { Rows::Training } else { Rows::New }
}

impl Learned {
    /// Of a model file.
    fn read(bytes: &[u8]) -> PyResult<Self> {
        let learned = model_file::read(bytes).map_err(of_file)?;
        Ok(Self { place: Place::of_file(&learned.columns, &learned.constants), learned })
    }

    /// As the Python class of its kind.
    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(match self.learned.model {
            Trained::Linear(_) => Py::new(py, (Model::default(), self))?.into_any(),
            Trained::Mixture(_) => Py::new(py, (Mixture, self))?.into_any(),
            Trained::Sources(_) => Py::new(py, (Sources, self))?.into_any(),
            Trained::Dynamic(_) => Py::new(py, (Dynamic, self))?.into_any(),
            Trained::Functional(_) => Py::new(py, (Functional, self))?.into_any(),
        })
    }

    /// A table that is asked about.
    pub(crate) fn table(
        &self,
        py: Python<'_>,
        x: Table<'_>,
        at: Option<&At>,
        threads: usize,
    ) -> PyResult<Dataset> {
        let (table, steps) = (self.place.dataset(py, x, threads)?, self.learned.time().map(|t| t.0.steps));
        match at {
            Some(at) => at.of(table, steps).map_err(of),
            None => Ok(table),
        }
    }

    /// What `ask` says of the model's columns of a table.
    pub(crate) fn ask<T: Send>(
        &self,
        py: Python<'_>,
        x: Table<'_>,
        at: Option<&At>,
        threads: usize,
        ask: impl FnOnce(&Dataset) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.learned.check_rows().map_err(of)?;
        let table = self.table(py, x, at, threads)?;
        run(py, threads, None, |_| ask(&*self.place.column_map.dataset(&table)?))
    }

    /// Numbers of each missing cell, tables of them; the value itself where a cell is observed.
    fn of_gaps<const N: usize>(
        &self,
        py: Python<'_>,
        x: Table<'_>,
        own: bool,
        threads: usize,
        ask: impl Fn(&FilledCell) -> Result<[f64; N], Error> + Send + Sync,
    ) -> PyResult<[Matrix; N]> {
        let (table, map) = (self.place.dataset(py, x, threads)?, &self.place.column_map);
        let mut out = run(py, threads, None, |_| {
            let filled = self.learned.impute(rows(own), map, &table, &table)?;
            let mut out: [Matrix; N] = std::array::from_fn(|_| filled.values().clone());
            for cell in filled.cells() {
                for (table, number) in out.iter_mut().zip(ask(cell)?) {
                    table[(cell.row, cell.column)] = number;
                }
            }
            Ok(out)
        })?;
        // How far a column observed once spreads is not known.
        for &(j, _) in &self.place.singles {
            for i in (0..table.n_rows()).filter(|&i| table.row(i)[j].is_nan()) {
                for table in &mut out {
                    table[(i, j)] = f64::NAN;
                }
            }
        }
        Ok(out)
    }
}

/// What a model file holds: a `Model`, a `Mixture`, `Sources`, a `Dynamic` or a `Functional`.
#[pyfunction]
pub(crate) fn open_model(py: Python<'_>, bytes: &[u8]) -> PyResult<Py<PyAny>> {
    Learned::read(bytes)?.into_python(py)
}

#[pymethods]
impl Learned {
    /// The model file.
    fn write<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        model_file::write(&self.learned, &mut bytes).map_err(of_file)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// What pickle keeps: the model file, and what it does not hold.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>, Pickled))> {
        let (py, own) = (slf.py(), slf.get());
        let Place { column_map: ColumnMap { columns, constants }, names, singles } = own.place.clone();
        let state = (own.write(py)?, (names, columns, constants, singles));
        Ok((py.get_type::<Self>().getattr("_unpickle")?, state))
    }

    #[staticmethod]
    #[pyo3(name = "_unpickle")]
    fn unpickle(py: Python<'_>, bytes: &[u8], pickled: Pickled) -> PyResult<Py<PyAny>> {
        let Self { learned, .. } = Self::read(bytes)?;
        let place = Place::unpickled(pickled, learned.columns.len())?;
        Self { learned, place }.into_python(py)
    }

    /// The family, by its name.
    #[getter]
    fn family(&self) -> &'static str {
        self.learned.family.name()
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

    /// Places of the columns that are in the model.
    #[getter]
    fn columns(&self) -> Vec<usize> {
        self.place.column_map.columns.clone()
    }

    /// Columns observed once.
    #[getter]
    fn singles(&self) -> Vec<(usize, f64)> {
        self.place.singles.clone()
    }

    /// Components of the model, of each of its models, or its sources.
    #[getter]
    fn n_components(&self) -> usize {
        self.learned.n_shown()
    }

    /// `isotropic` or `diagonal`: the noise that was asked for, if any could be.
    #[getter]
    fn noise(&self) -> Option<&'static str> {
        Some(match self.learned.spec()?.noise {
            NoiseFamily::Isotropic => "isotropic",
            NoiseFamily::Diagonal => "diagonal",
        })
    }

    /// Whether columns were given unit variance.
    #[getter]
    fn standardized(&self) -> bool {
        self.learned.standardized()
    }

    /// The columns of times and of sequences, of a model in time whose rows were not only counted.
    #[getter]
    fn time_columns(&self) -> (Option<String>, Option<String>) {
        let axis = self.learned.time().map(|(axis, _)| axis.clone());
        axis.map_or((None, None), |axis| (Some(axis.name), axis.sequences))
    }

    /// Rows of the table it was fitted to.
    #[getter]
    fn n_rows(&self) -> usize {
        self.learned.training.n_rows
    }

    /// The method's name and options.
    #[getter]
    fn method(&self) -> (String, BTreeMap<String, String>) {
        (self.learned.method.name.clone(), self.learned.method.options.clone())
    }

    /// What was maximized, and its value at the end; None for a method that has no objective.
    #[getter]
    fn objective(&self) -> Option<(&'static str, f64)> {
        let objective = self.learned.ending().objective?;
        let kind = match objective.kind {
            ObjectiveKind::LogLikelihood | ObjectiveKind::AverageLogLikelihood => "log_likelihood",
            ObjectiveKind::LogPosterior => "log_posterior",
            ObjectiveKind::LowerBound => "lower_bound",
        };
        Some((kind, objective.value))
    }

    /// The objective after each step.
    #[getter]
    fn trace<'py>(&self, py: Python<'py>) -> Array1<'py> {
        array1(py, self.learned.ending().trace.to_vec())
    }

    #[getter]
    fn n_iterations(&self) -> usize {
        self.learned.ending().n_iterations
    }

    #[getter]
    fn converged(&self) -> bool {
        matches!(self.learned.ending().termination, Termination::Converged | Termination::ClosedForm)
    }

    /// Warnings: the code, whether it is about convergence, and the sentence.
    #[getter]
    fn warnings(&self) -> Vec<(&'static str, bool, String)> {
        let notices = self.learned.ending().warnings.into_iter();
        notices.map(|notice| (notice.code, notice.of_convergence, notice.message)).collect()
    }

    /// Everything about the model as JSON, as `covary inspect --json` has it.
    fn describe(&self) -> String {
        self.learned.to_json()
    }

    /// Scores of rows, rotated with the loadings: those of the family unless other coordinates are named.
    #[pyo3(signature = (x, coordinates=None, threads=0, at=None))]
    fn transform<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        coordinates: Option<&str>,
        threads: usize,
        at: Option<At>,
    ) -> PyResult<Array2<'py>> {
        let how = coordinates.map(self::coordinates).transpose()?;
        let ask = |data: &Dataset| self.learned.scores(data, how);
        array2(py, self.ask(py, x, at.as_ref(), threads, ask)?.values)
    }

    /// Log-density of each row in nats, gaps integrated out; in time given the rows before, of curves each as a whole.
    #[pyo3(signature = (x, threads=0, at=None))]
    fn log_density<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        threads: usize,
        at: Option<At>,
    ) -> PyResult<Array1<'py>> {
        Ok(array1(py, self.ask(py, x, at.as_ref(), threads, |data| self.learned.log_density(data))?))
    }

    /// Fresh rows, and the model of a mixture that each is from.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        n_rows: usize,
        seed: u64,
    ) -> PyResult<(Array2<'py>, Option<Vec<usize>>)> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (rows, labels) = py.detach(|| self.learned.sample(n_rows, &mut rng)).map_err(of)?;
        Ok((array2(py, self.place.widen_rows(&rows, |v| v))?, labels))
    }

    /// The table with its gaps filled, and what is known of each. `own`: these are the rows it was fitted to.
    #[pyo3(signature = (x, own=false, threads=0, at=None))]
    fn impute<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        own: bool,
        threads: usize,
        at: Option<At>,
    ) -> PyResult<Filled<'py>> {
        let (table, map) = (self.table(py, x, at.as_ref(), threads)?, &self.place.column_map);
        let filled = run(py, threads, None, |_| self.learned.impute(rows(own), map, &table, &table))?;
        self.place.filled(py, &filled, &table)
    }

    /// The ends of an interval for each missing cell; both are the value itself where it is observed.
    #[pyo3(signature = (x, level, own=false, threads=0))]
    fn intervals<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        level: f64,
        own: bool,
        threads: usize,
    ) -> PyResult<(Array2<'py>, Array2<'py>)> {
        let [lower, upper] = self.of_gaps(py, x, own, threads, |cell| Ok(cell.interval(level)?.into()))?;
        Ok((array2(py, lower)?, array2(py, upper)?))
    }

    /// The value below which each missing cell lies with probability `p`; the value itself where it is observed.
    #[pyo3(signature = (x, p, own=false, threads=0))]
    fn quantiles<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        p: f64,
        own: bool,
        threads: usize,
    ) -> PyResult<Array2<'py>> {
        let [found] = self.of_gaps(py, x, own, threads, |cell| Ok([cell.quantile(p)?]))?;
        array2(py, found)
    }

    /// The table completed by joint draws, this many times.
    #[pyo3(signature = (x, n_draws, seed, own=false, threads=0))]
    fn draw_gaps<'py>(
        &self,
        py: Python<'py>,
        x: Table<'_>,
        n_draws: usize,
        seed: u64,
        own: bool,
        threads: usize,
    ) -> PyResult<Vec<Array2<'py>>> {
        let (table, map) = (self.place.dataset(py, x, threads)?, &self.place.column_map);
        let drawn = run(py, threads, None, |_| {
            let data = map.dataset(&table)?;
            let draws = self.learned.gap_draws(rows(own), &data)?;
            (0..n_draws).map(|k| map.values(&draws.draw(k, seed)?, &table)).collect::<Result<Vec<_>, _>>()
        })?;
        drawn.into_iter().map(|values| array2(py, self.place.with_singles(values))).collect()
    }

    /// Why intervals of imputed values are not calibrated, if they are not.
    #[getter]
    fn uncalibrated(&self) -> Option<String> {
        let filling = self.learned.filling.as_ref().filter(|filling| filling.calibration.is_none())?;
        Some(covary_report::words::not_calibrated(filling))
    }

    /// The same model, filling cells of these columns this many standard deviations above.
    fn shifted(&self, py: Python<'_>, by: Vec<(String, f64)>) -> PyResult<Py<PyAny>> {
        let mut learned = self.learned.clone();
        learned.shift(&by).map_err(of)?;
        Self { learned, place: self.place.clone() }.into_python(py)
    }

    /// How the means of all columns with gaps move if missing values do: for each the column, its gaps, and shift, mean,
    /// standard error and the ends of the interval.
    #[pyo3(signature = (x, shifts, seed, own=false, threads=0))]
    fn tipping_points(
        &self,
        py: Python<'_>,
        x: Table<'_>,
        shifts: Vec<f64>,
        seed: u64,
        own: bool,
        threads: usize,
    ) -> PyResult<Vec<(usize, usize, Vec<[f64; 5]>)>> {
        let (table, map) = (self.place.dataset(py, x, threads)?, &self.place.column_map);
        run(py, threads, None, |_| {
            let data = map.dataset(&table)?;
            let incomplete = |j: &usize| data.n_observed_by_column()[*j] < data.n_rows();
            let columns: Vec<usize> = (0..data.n_columns()).filter(incomplete).collect();
            let found = self.learned.tipping_points(rows(own), &data, &columns, &shifts, seed)?;
            let points = |t: Tipping| {
                let point = |p: &TippingPoint| [p.shift, p.mean, p.standard_error, p.lower, p.upper];
                (map.columns[t.column], t.n_gaps, t.points.iter().map(point).collect())
            };
            Ok(found.into_iter().map(points).collect())
        })
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
        let checked = run(py, threads, progress.as_ref(), |watched| {
            let request = Request { seed, ..Request::new(self.learned.family) };
            let options = SelfCheckOptions { seed, levels, ..SelfCheckOptions::default() };
            let data = self.place.column_map.dataset(&table)?;
            self.learned.check_by_refit(&request, &data, &options, &mut |step: &Step| watched.fitting(step))
        })?;
        let n_hidden = match checked.outcome {
            CheckOutcome::Found(check) => return described(py, &check),
            CheckOutcome::Interrupted => return Err(of(Error::Interrupted)),
            CheckOutcome::TooFew { n_hidden } => n_hidden,
            CheckOutcome::NoneToHide => 0,
        };
        let said =
            format!("{n_hidden} cells can be hidden, which is too few to tell how well the model predicts");
        Err(raise("DataError", &said))
    }
}

/// What a check found.
fn described<'py>(py: Python<'py>, check: &SelfCheck) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("n_hidden", check.n_hidden)?;
    out.set_item("rmse", check.rmse)?;
    out.set_item("baseline_rmse", check.baseline_rmse)?;
    out.set_item("skill", check.skill)?;
    out.set_item("levels", check.coverage.iter().map(|c| c.level).collect::<Vec<_>>())?;
    out.set_item("coverage", check.coverage.iter().map(|c| c.share).collect::<Vec<_>>())?;
    Ok(out)
}
