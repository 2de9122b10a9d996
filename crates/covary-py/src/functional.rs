//! `Functional`: what curves answer beyond what every learned model does.

use crate::array::{Array1, Array2, Table, array1, array2};
use crate::error::of;
use crate::learned::{At, Learned};
use covary::data::{self, PointColumns};
use covary::functional::Eigenfunctions;
use covary::learned::FunctionalFit;
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
pub(crate) struct Points {
    columns: PointColumns,
    names: Vec<String>,
    curves: Vec<usize>,
    times: Vec<f64>,
}

impl<'py> FromPyObject<'_, 'py> for Points {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        type Parts<'py> = (String, String, Vec<String>, Vec<usize>, PyReadonlyArray1<'py, f64>);
        let (curve, time, names, curves, times): Parts<'_> = given.extract()?;
        let times = times.as_array().to_vec();
        Ok(Self { columns: PointColumns { curve, time }, names, curves, times })
    }
}

impl Points {
    pub(crate) fn points(&self) -> Result<data::Points, Error> {
        let points = data::Points::new(self.times.clone(), self.curves.clone(), self.names.clone())?;
        Ok(points.from_columns(self.columns.clone()))
    }
}

/// The learned model behind it, and its fit.
fn parts<'a>(slf: &'a Bound<'_, Functional>) -> (&'a Learned, &'a FunctionalFit) {
    let own = slf.as_super().get();
    (own, own.learned.functional().expect("`Functional` is made of these only"))
}

/// What `ask` says of a table of curves.
fn ask<T: Send>(
    slf: &Bound<'_, Functional>,
    x: Table<'_>,
    at: Option<&At>,
    threads: usize,
    ask: impl FnOnce(&Dataset) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let (own, fit) = parts(slf);
    own.ask(slf.py(), x, at, threads, |data| ask(&*fit.asked(data)?))
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
    #[pyo3(signature = (x, at, threads=0))]
    fn scores_of_curves<'py>(
        slf: &Bound<'py, Self>,
        x: Table<'_>,
        at: Option<At>,
        threads: usize,
    ) -> PyResult<(Array2<'py>, Array2<'py>)> {
        let fit = parts(slf).1;
        let found = ask(slf, x, at.as_ref(), threads, |data| fit.model.scores(data))?;
        let sd = |i: usize, k: usize| found.covariances[i][(k, k)].sqrt();
        let sds = Matrix::from_fn(found.means.n_rows(), found.means.n_columns(), sd);
        Ok((array2(slf.py(), found.means)?, array2(slf.py(), sds)?))
    }

    /// Each curve at these times, and the standard deviations of the curve itself.
    #[pyo3(signature = (x, at, times, threads=0))]
    fn predict<'py>(
        slf: &Bound<'py, Self>,
        x: Table<'_>,
        at: Option<At>,
        times: Vec<f64>,
        threads: usize,
    ) -> PyResult<(Array2<'py>, Array2<'py>)> {
        let fit = parts(slf).1;
        let found = ask(slf, x, at.as_ref(), threads, |data| fit.model.predict(data, &times))?;
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
