//! `fit`: a request of the library from what was asked for in Python, and the model that comes of it.

use crate::array::{Size, Table, array2, grouped, numbers, option_text};
use crate::error::{of, raise};
use crate::learned::{At, Learned};
use crate::mixture::{Mixture, parts};
use crate::place::Place;
use crate::work::{Watched, run_or_leave};
use covary::data::MatrixKind;
use covary::family::{AnyMethod, Classes, Components, Family, ForFilling, Kind, Request, View};
use covary::ica;
use covary::infer::{FixedPoint, MixtureInit, Newton, Observer, Step, Stop};
use covary::learn::Watch;
use covary::learned::RotatedLoadings;
use covary::model::{ColumnMap, Rotation, rotate_in_steps};
use covary::spec::NoiseFamily;
use covary::{Dataset, Error, LinearGaussian, Matrix, Method, Noise};
use numpy::{PyReadonlyArray2, PyReadonlyArray3};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

/// What was asked for: the request, and what only Python asks.
pub(crate) struct Asked {
    pub(crate) request: Request,
    /// Views by the places of their columns.
    views: Vec<(String, Vec<usize>)>,
    /// Whether every column is fitted, as scikit-learn has it.
    pub(crate) as_is: bool,
    /// Whether the rotation is made by the steps of scikit-learn.
    in_steps: bool,
    start: Option<Start>,
    /// What the table is, if not one of observations, and of how many.
    matrix: Option<(MatrixKind, usize)>,
    /// A contrast of independent components: of sources in rows, g and the mean of g′ of each.
    contrast: Option<Py<PyAny>>,
    /// What rows are besides numbers.
    at: Option<At>,
}

/// A start, or what else of a method no option names, over all columns of the table.
enum Start {
    NoiseVariances(Vec<f64>),
    Unmixing(Matrix),
    /// Principal components that each view is reduced to.
    Rank(usize),
    Responsibilities(Matrix),
    /// The mixture to go on from, and its log-likelihood per row.
    Last(Box<covary::model::Mixture>, Option<f64>),
    /// Weights, means and K matrices of d × d.
    Moments(Vec<f64>, Matrix, Vec<Matrix>),
}

impl Asked {
    /// Refuses what needs the table itself.
    pub(crate) fn by_passes(&self) -> PyResult<()> {
        let needed = [
            (!self.views.is_empty(), "views"),
            (self.request.classes.is_some(), "classes"),
            (self.in_steps && self.request.rotation.is_some(), "a rotation by the steps of scikit-learn"),
            (self.start.is_some(), "a start"),
            (self.matrix.is_some(), "a matrix of covariances"),
            (self.at.is_some(), "times of rows"),
        ];
        match needed.iter().find(|(asked, _)| *asked) {
            Some((_, what)) => Err(raise(
                "OptionError",
                &format!(
                    "{what} cannot be had for rows that are gone through by passes; fit the table in memory"
                ),
            )),
            None => self.of_given_size().map_err(of),
        }
    }

    /// Refuses what would be chosen on more rows than an engine should send.
    fn of_given_size(&self) -> Result<(), Error> {
        let Request { family, n_components, n_mixtures, .. } = &self.request;
        let named = matches!(n_components, Some(Components::Number(_)));
        let (what, instead) = match family.kind() {
            Kind::Linear if !named && *family != Family::Gaussian => {
                ("the choice of a number of components", "a number of components that you name")
            }
            Kind::Mixture if n_mixtures.is_none() || !named && *family != Family::Gmm => {
                ("the choice of the size of a mixture", "numbers of models and components that you name")
            }
            _ => return Ok(()),
        };
        Err(Error::NotInMemory { what: what.to_owned(), instead })
    }

    pub(crate) fn new(family: &str, asked: &Bound<'_, PyDict>) -> PyResult<Self> {
        let request = Request::new(family.parse().map_err(of)?);
        let (views, as_is, in_steps) = (Vec::new(), false, false);
        let (start, matrix, contrast, at) = (None, None, None, None);
        let mut own = Self { request, views, as_is, in_steps, start, matrix, contrast, at };
        for (name, value) in asked.iter().filter(|(_, value)| !value.is_none()) {
            own.take(&name.extract::<String>()?, &value)?;
        }
        Ok(own)
    }

    fn take(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let request = &mut self.request;
        match name {
            "n_components" => request.n_components = Some(components(value.extract()?)?),
            "n_mixtures" => request.n_mixtures = Some(value.extract()?),
            "views" => self.views = value.extract()?,
            "classes" => {
                let (target, names, of_rows, priors): (_, _, Vec<usize>, _) = value.extract()?;
                let of_rows = of_rows.into_iter().map(Some).collect();
                request.classes = Some(Classes { target, names, of_rows, priors });
            }
            "inference" => request.inference = Some(value.extract()?),
            "standardize" => request.standardize = Some(value.extract()?),
            "noise" => request.noise = Some(noise(&value.extract::<String>()?)?),
            "noise_floor" => request.noise_floor = Some(value.extract()?),
            "allow_unidentified" => request.allow_unidentified = value.extract()?,
            "max_iterations" => request.max_iterations = Some(value.extract()?),
            "tolerance" => request.tolerance = Some(value.extract()?),
            "options" => {
                for (name, value) in value.cast::<PyDict>()? {
                    request.options.push((name.extract()?, option_text(&value)?));
                }
            }
            "filling" => {
                let (choose, calibrate, limits) = value.extract()?;
                request.filling = Some(ForFilling { choose, calibrate, limits });
            }
            "rotation" => request.rotation = Some(rotation(value.extract()?)?),
            "seed" => request.seed = value.extract()?,
            "as_is" => self.as_is = value.extract()?,
            "matrix" => {
                let (kind, n_rows): (String, usize) = value.extract()?;
                let kind = MatrixKind::from_name(&kind);
                self.matrix = kind.map(|kind| (kind, n_rows));
            }
            "in_steps" => self.in_steps = value.extract()?,
            "noise_start" => self.start = Some(Start::NoiseVariances(value.extract()?)),
            "rank" => self.start = Some(Start::Rank(value.extract()?)),
            "unmixing" => self.start = Some(Start::Unmixing(numbers(&value.extract()?)?)),
            "responsibilities" => self.start = Some(Start::Responsibilities(numbers(&value.extract()?)?)),
            "last" => {
                let (last, before): (Bound<'_, Mixture>, _) = value.extract()?;
                self.start = Some(Start::Last(Box::new(parts(&last).1.mixture.clone()), before));
            }
            "moments" => {
                let (weights, means, stack): (_, PyReadonlyArray2<'_, f64>, PyReadonlyArray3<'_, f64>) =
                    value.extract()?;
                let (stack, d) = (stack.as_array(), means.as_array().ncols());
                let matrix = |k: usize| Matrix::from_fn(d, d, |i, j| stack[[k, i, j]]);
                let covariances = (0..stack.shape()[0]).map(matrix).collect();
                self.start = Some(Start::Moments(weights, numbers(&means)?, covariances));
            }
            "contrast" => self.contrast = Some(value.clone().unbind()),
            "at" => self.at = Some(value.extract()?),
            other => return Err(raise("OptionError", &format!("nothing called `{other}` can be asked for"))),
        }
        Ok(())
    }
}

fn components(size: Size) -> PyResult<Components> {
    match size {
        Size::Number(n) => Ok(Components::Number(n)),
        Size::Share(share) => Ok(Components::Share(share)),
        Size::Word(word) => match word.as_str() {
            "auto" => Ok(Components::Auto),
            "identified" => Ok(Components::AtMost(usize::MAX)),
            _ => Err(raise("OptionError", &format!("n_components cannot be `{word}`"))),
        },
    }
}

fn noise(name: &str) -> PyResult<NoiseFamily> {
    match name {
        "isotropic" => Ok(NoiseFamily::Isotropic),
        "diagonal" => Ok(NoiseFamily::Diagonal),
        _ => Err(raise("OptionError", &format!("there is no noise `{name}`"))),
    }
}

fn rotation(name: String) -> PyResult<(String, Rotation)> {
    let Some(how) = Rotation::from_name(&name) else {
        let known = Rotation::NAMES.join(", ");
        return Err(raise("OptionError", &format!("there is no rotation `{name}`; there are {known}")));
    };
    Ok((name, how))
}

impl Start {
    /// The method asked for, with this start, over the columns that are fitted.
    fn of_method(self, request: &Request, columns: &[usize], data: &Dataset) -> Result<AnyMethod, Error> {
        let mut method = request.method(data)?;
        match (self, &mut method) {
            (
                Self::NoiseVariances(given),
                AnyMethod::Linear(
                    Method::Newton(Newton { start, .. }) | Method::FixedPoint(FixedPoint { start, .. }),
                ),
            ) => *start = Some(columns.iter().map(|&j| given[j]).collect()),
            (Self::Unmixing(given), AnyMethod::Sources(ica::Method::Fast(fast))) => fast.start = Some(given),
            (Self::Rank(rank), AnyMethod::Linear(Method::BachJordan(method))) => method.rank = Some(rank),
            (Self::Responsibilities(shares), AnyMethod::Mixture(em)) => {
                em.init = MixtureInit::Responsibilities(Box::new(shares));
            }
            (Self::Last(mixture, before), AnyMethod::Mixture(em)) => {
                (em.init, em.stop) = (MixtureInit::Given(mixture), Stop::Change { before });
            }
            (Self::Moments(weights, means, covariances), AnyMethod::Mixture(em)) => {
                let model = |(k, covariance)| of_moments(request, columns, means.row(k), covariance);
                let models = covariances.iter().enumerate().map(model).collect::<Result<Vec<_>, _>>()?;
                em.init = MixtureInit::Given(Box::new(covary::model::Mixture::new(models, weights)?));
            }
            _ => {}
        }
        Ok(method)
    }
}

/// A model of these columns with the mean and the covariance of a start, as far as the request allows.
fn of_moments(
    request: &Request,
    columns: &[usize],
    mean: &[f64],
    covariance: &Matrix,
) -> Result<LinearGaussian, Error> {
    let d = columns.len();
    let mean = columns.iter().map(|&j| mean[j]).collect();
    let own = Matrix::from_fn(d, d, |i, j| covariance[(columns[i], columns[j])]);
    let variances: Vec<f64> = (0..d).map(|j| own[(j, j)]).collect();
    let noise = match request.spec().noise {
        _ if request.spec().standardize => return LinearGaussian::from_covariance_by_column(mean, &own),
        _ if request.n_components != Some(Components::Number(0)) => {
            return LinearGaussian::from_covariance(mean, &own);
        }
        NoiseFamily::Isotropic => Noise::Isotropic(variances.iter().sum::<f64>() / d as f64),
        NoiseFamily::Diagonal => Noise::Diagonal(variances),
    };
    LinearGaussian::new(Matrix::zeros(d, 0), mean, noise)
}

/// Watches a fit whose contrast may be the caller's.
struct Watching<'a> {
    watched: &'a Watched,
    contrast: Option<&'a Py<PyAny>>,
    /// What the contrast raised, which the library cannot carry.
    raised: &'a Mutex<Option<PyErr>>,
}

impl Watch for Watching<'_> {
    fn choosing(&self, done: usize, total: usize) -> ControlFlow<()> {
        self.watched.choosing(done, total)
    }

    fn fitting(&self, step: &Step) -> ControlFlow<()> {
        self.watched.fitting(step)
    }

    fn decomposing(&self, begins: bool) -> ControlFlow<()> {
        self.watched.decomposing(begins)
    }

    fn separate(
        &self,
        method: &ica::Method,
        data: &Dataset,
        observer: &mut dyn Observer,
    ) -> Result<ica::Fit, Error> {
        let (ica::Method::Fast(fast), Some(own)) = (method, self.contrast) else {
            return method.fit_observed(data, observer);
        };
        let mut contrast = |y: &Matrix| {
            Python::attach(|py| called(py, own, y)).map_err(|error| {
                *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                Error::Interrupted
            })
        };
        Ok(fast.fit_by(data, &mut contrast, observer)?.into())
    }
}

/// What a file says of a contrast that it cannot hold.
const OWN: &str = "given";

fn called(py: Python<'_>, own: &Py<PyAny>, y: &Matrix) -> PyResult<(Matrix, Vec<f64>)> {
    let (values, slopes): (PyReadonlyArray2<'_, f64>, Vec<f64>) =
        own.call1(py, (array2(py, y.clone())?,))?.extract(py)?;
    Ok((numbers(&values)?, slopes))
}

/// Learns the model of a table. What is asked for is in `asked`, by the names of a request and those above; what
/// is missing from it, or None, is left to the library.
#[pyfunction]
#[pyo3(signature = (x, names, family, asked, *, threads=0, progress=None))]
pub(crate) fn fit(
    py: Python<'_>,
    x: Table<'_>,
    names: Option<Vec<String>>,
    family: &str,
    asked: &Bound<'_, PyDict>,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let Asked { mut request, views, as_is, in_steps, start, matrix, contrast, at } =
        Asked::new(family, asked)?;
    let values = x.numbers()?;
    let raised = Arc::new(Mutex::new(None));
    let ours = Arc::clone(&raised);
    let learned = run_or_leave(py, threads, progress.as_ref(), move |watched| {
        let mut table = grouped(values, names)?;
        if let Some(at) = &at {
            table = at.of(table, None)?;
        }
        let name = |&j: &usize| table.column_names()[j].clone();
        let view = |(name_of_view, places): (String, Vec<usize>)| View {
            name: name_of_view,
            columns: places.iter().map(name).collect(),
        };
        request.views = views.into_iter().map(view).collect();
        let map = if as_is || matrix.is_some() {
            ColumnMap { columns: (0..table.n_columns()).collect(), constants: Vec::new() }
        } else {
            // An estimator has as many features as the table it was fitted to; `Imputer` sets empty ones aside.
            if let Some(j) = table.n_observed_by_column().iter().position(|&n| n == 0) {
                return Err(Error::EmptyColumn { column: table.column_names()[j].clone() });
            }
            request.column_map(&table)?
        };
        if let Some(start) = start {
            request.method = Some(start.of_method(&request, &map.columns, &*map.dataset(&table)?)?);
        }
        let steps = if in_steps { request.rotation.take() } else { None };
        let watching = Watching { watched, contrast: contrast.as_ref(), raised: &ours };
        let mut learned = match matrix {
            Some((kind, n_rows)) => request.learn_matrix_observed(&table, kind, n_rows, &watching)?,
            None => request.learn_mapped(&table, &map, &watching)?,
        };
        if let Some((name, how)) = steps {
            let fit = learned.linear_mut()?;
            let rotated = rotate_in_steps(fit.model.loadings(), &how, 1e-6, 100)?;
            fit.rotation = Some(RotatedLoadings { name, rotated });
        }
        if contrast.is_some() {
            learned.method.options.insert("contrast".to_owned(), OWN.to_owned());
        }
        Ok(Learned { learned, place: Place::new(map, &table) })
    });
    match raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) => Err(error),
        None => learned?.into_python(py),
    }
}
