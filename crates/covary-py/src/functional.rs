//! `Functional`: what curves answer beyond what every learned model does.

use crate::array::{Array1, Array2, Table, array1, array2};
use crate::error::of;
use crate::learned::Learned;
use crate::place::Filled;
use crate::work::run;
use covary::data::{PointColumns, Points};
use covary::functional::Eigenfunctions;
use covary::learned::{FunctionalFit, Rows};
use covary::{Dataset, Error, Matrix};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Curves.
#[pyclass(frozen, extends = Learned, module = "covary._covary")]
pub(crate) struct Functional;

/// The points of a long table: what the columns of curves and times are called, the names of the curves, and curve and time of
/// each row.
pub(crate) struct Given {
    columns: PointColumns,
    names: Vec<String>,
    curves: Vec<usize>,
    times: Vec<f64>,
}

impl<'py> FromPyObject<'_, 'py> for Given {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        type Parts<'py> = (String, String, Vec<String>, Vec<usize>, PyReadonlyArray1<'py, f64>);
        let (curve, time, names, curves, times): Parts<'_> = given.extract()?;
        let times = times.as_array().to_vec();
        Ok(Self { columns: PointColumns { curve, time }, names, curves, times })
    }
}

impl Given {
    pub(crate) fn points(&self) -> Result<Points, Error> {
        let points = Points::new(self.times.clone(), self.curves.clone(), self.names.clone())?;
        Ok(points.from_columns(self.columns.clone()))
    }
}

/// The learned model behind it, and its fit.
fn parts<'a>(slf: &'a Bound<'_, Functional>) -> (&'a Learned, &'a FunctionalFit) {
    let own = slf.as_super().get();
    (own, own.learned.functional().expect("`Functional` is made of these only"))
}

/// A table, long if its points are given.
pub(crate) fn table(
    own: &Learned,
    py: Python<'_>,
    x: Table<'_>,
    points: Option<&Given>,
    threads: usize,
) -> PyResult<Dataset> {
    let table = own.place.dataset(py, x, threads)?;
    match points {
        Some(points) => points.points().and_then(|points| table.of_points(points)).map_err(of),
        None => Ok(table),
    }
}

/// What `ask` says of a table of curves.
fn ask<T: Send>(
    slf: &Bound<'_, Functional>,
    x: Table<'_>,
    points: Option<&Given>,
    threads: usize,
    ask: impl FnOnce(&Dataset) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let (own, fit) = parts(slf);
    let table = table(own, slf.py(), x, points, threads)?;
    run(slf.py(), threads, None, |_| {
        let data = own.place.column_map.dataset(&table)?;
        ask(&*fit.asked(&data)?)
    })
}

/// Values and standard deviations, a row for each function.
fn functions(py: Python<'_>, found: Result<Eigenfunctions, Error>) -> PyResult<(Array2<'_>, Array2<'_>)> {
    let Eigenfunctions { values, sds } = found.map_err(of)?;
    Ok((array2(py, values.transpose())?, array2(py, sds.transpose())?))
}

#[pymethods]
impl Functional {
    /// First and last time, and the number of splines.
    #[getter]
    fn basis(slf: &Bound<'_, Self>) -> (f64, f64, usize) {
        let basis = parts(slf).1.model.basis();
        (basis.interval().0, basis.interval().1, basis.size())
    }

    #[getter]
    fn eigenvalues<'py>(slf: &Bound<'py, Self>) -> Array1<'py> {
        array1(slf.py(), parts(slf).1.model.eigenvalues())
    }

    #[getter]
    fn explained_variance_ratio<'py>(slf: &Bound<'py, Self>) -> Array1<'py> {
        array1(slf.py(), parts(slf).1.explained_variance_ratio())
    }

    #[getter]
    fn noise_variance(slf: &Bound<'_, Self>) -> f64 {
        parts(slf).1.model.noise()
    }

    /// λ of the mean and of the components.
    #[getter]
    fn smoothing(slf: &Bound<'_, Self>) -> (f64, f64) {
        let [mean, components] = parts(slf).1.model.smoothing();
        (mean, components)
    }

    /// The columns of curves and times of a long table.
    #[getter]
    fn points(slf: &Bound<'_, Self>) -> Option<(String, String)> {
        parts(slf).1.long().map(|columns| (columns.curve.clone(), columns.time.clone()))
    }

    /// Equally spaced times.
    fn grid<'py>(slf: &Bound<'py, Self>, n: usize) -> Array1<'py> {
        array1(slf.py(), parts(slf).1.model.basis().grid(n))
    }

    fn mean<'py>(slf: &Bound<'py, Self>, times: Vec<f64>) -> PyResult<(Array2<'py>, Array2<'py>)> {
        functions(slf.py(), parts(slf).1.model.mean_at(&times))
    }

    fn eigenfunctions<'py>(slf: &Bound<'py, Self>, times: Vec<f64>) -> PyResult<(Array2<'py>, Array2<'py>)> {
        functions(slf.py(), parts(slf).1.model.eigenfunctions(&times))
    }

    fn covariance<'py>(slf: &Bound<'py, Self>, times: Vec<f64>) -> PyResult<Array2<'py>> {
        array2(slf.py(), parts(slf).1.model.covariance(&times).map_err(of)?)
    }

    /// Scores of each curve, and their standard deviations.
    #[pyo3(signature = (x, points, threads=0))]
    fn transform<'py>(
        slf: &Bound<'py, Self>,
        x: Table<'_>,
        points: Option<Given>,
        threads: usize,
    ) -> PyResult<(Array2<'py>, Array2<'py>)> {
        let fit = parts(slf).1;
        let found = ask(slf, x, points.as_ref(), threads, |data| fit.model.scores(data))?;
        let sd = |i: usize, k: usize| found.covariances[i][(k, k)].sqrt();
        let sds = Matrix::from_fn(found.means.n_rows(), found.means.n_columns(), sd);
        Ok((array2(slf.py(), found.means)?, array2(slf.py(), sds)?))
    }

    /// Log-density of the points of each curve.
    #[pyo3(signature = (x, points, threads=0))]
    fn log_density_of_curves<'py>(
        slf: &Bound<'py, Self>,
        x: Table<'_>,
        points: Option<Given>,
        threads: usize,
    ) -> PyResult<Array1<'py>> {
        let fit = parts(slf).1;
        let found = ask(slf, x, points.as_ref(), threads, |data| fit.model.densities(data))?;
        Ok(array1(slf.py(), found.iter().map(|curve| curve.log_density).collect()))
    }

    /// The table with its missing points filled, and what is known of each.
    #[pyo3(signature = (x, points, threads=0))]
    fn impute_curves<'py>(
        slf: &Bound<'py, Self>,
        x: Table<'_>,
        points: Option<Given>,
        threads: usize,
    ) -> PyResult<Filled<'py>> {
        let (py, own) = (slf.py(), parts(slf).0);
        let table = table(own, py, x, points.as_ref(), threads)?;
        let map = &own.place.column_map;
        let filled = run(py, threads, None, |_| {
            map.imputed(own.learned.fill(Rows::New)?.fill(&*map.dataset(&table)?)?, &table)
        })?;
        own.place.filled(py, &filled, &table)
    }

    /// Each curve at these times, and the standard deviations of the curve itself.
    #[pyo3(signature = (x, points, times, threads=0))]
    fn predict<'py>(
        slf: &Bound<'py, Self>,
        x: Table<'_>,
        points: Option<Given>,
        times: Vec<f64>,
        threads: usize,
    ) -> PyResult<(Array2<'py>, Array2<'py>)> {
        let fit = parts(slf).1;
        let found = ask(slf, x, points.as_ref(), threads, |data| fit.model.predict(data, &times))?;
        let part = |of: &dyn Fn(usize) -> f64| {
            Matrix::from_fn(found.len(), times.len(), |i, j| of(i * times.len() + j))
        };
        let m = times.len();
        let means = part(&|at| found[at / m].means[at % m]);
        let sds = part(&|at| found[at / m].sds[at % m]);
        Ok((array2(slf.py(), means)?, array2(slf.py(), sds)?))
    }

    /// New curves with noise at these times.
    fn draw_curves<'py>(
        slf: &Bound<'py, Self>,
        n: usize,
        times: Vec<f64>,
        seed: u64,
    ) -> PyResult<Array2<'py>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        array2(slf.py(), parts(slf).1.model.sample(&times, n, &mut rng).map_err(of)?)
    }
}
