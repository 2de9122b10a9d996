//! `Dynamic`: what rows in time answer beyond what every learned model does.

use crate::array::{Array1, Array2, Table, array1, array2};
use crate::error::{of, raise};
use crate::learned::Learned;
use crate::place::Filled;
use crate::work::run;
use covary::data::{Moment, Steps, TimeAxis, Timeline};
use covary::learned::{Course, DynamicFit, Knowing, Rows};
use covary::{Dataset, Error};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

/// Factors that follow each other.
#[pyclass(frozen, extends = Learned, module = "covary._covary")]
pub(crate) struct Dynamic;

/// Moments by their kind: microseconds since 1970, or plain numbers.
#[derive(FromPyObject)]
enum Moments<'py> {
    Clock(PyReadonlyArray1<'py, i64>),
    Number(PyReadonlyArray1<'py, f64>),
}

/// When rows happened: the name of the times, the moment of each row, and the number of its sequence.
pub(crate) struct Times {
    name: String,
    rows: Vec<(Moment, usize)>,
    /// What tells sequences apart is called.
    groups: Option<String>,
}

impl<'py> FromPyObject<'_, 'py> for Times {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        type Given<'py> = (String, Moments<'py>, Option<(String, Vec<usize>)>);
        let (name, moments, sequences): Given<'_> = given.extract()?;
        let moments: Vec<Moment> = match moments {
            Moments::Clock(at) => at.as_array().iter().map(|&at| Moment::Clock(at)).collect(),
            Moments::Number(at) => at.as_array().iter().map(|&at| Moment::Number(at)).collect(),
        };
        let (groups, sequences) = sequences.unzip();
        let sequences = sequences.unwrap_or_else(|| vec![0; moments.len()]);
        Ok(Self { name, rows: moments.into_iter().zip(sequences).collect(), groups })
    }
}

impl Times {
    /// In the steps of a model, or those that the times show.
    pub(crate) fn timeline(&self, steps: Option<Steps>) -> Result<Timeline, Error> {
        let steps = steps.map_or_else(|| Steps::of(&self.rows), Ok)?;
        // Midnight is no time of the day.
        let day = 86_400_000_000;
        let dates = self.rows.iter().all(|(at, _)| !matches!(at, Moment::Clock(at) if at % day != 0));
        let notation = if dates { "%Y-%m-%d" } else { "%Y-%m-%dT%H:%M:%S%.f" }.to_owned();
        let place = |&(moment, _): &(Moment, usize)| {
            steps.place(moment).ok_or_else(|| Error::OtherTimes {
                model: steps.words(),
                table: format!("`{}`, with {}", self.name, moment.text(&notation)),
            })
        };
        let times: Vec<i64> = self.rows.iter().map(place).collect::<Result<_, _>>()?;
        let sequences: Vec<usize> = self.rows.iter().map(|(_, sequence)| *sequence).collect();
        let timeline = Timeline::new(&times, Some(&sequences))?;
        let (name, sequences) = (self.name.clone(), self.groups.clone());
        Ok(timeline.on(TimeAxis { name, sequences, steps, notation }))
    }
}

/// The learned model behind it, and its fit.
fn parts<'a>(slf: &'a Bound<'_, Dynamic>) -> (&'a Learned, &'a DynamicFit) {
    let own = slf.as_super().get();
    (own, own.learned.dynamic().expect("`Dynamic` is made of these only"))
}

/// What `ask` says of a table in time.
fn ask<T: Send>(
    slf: &Bound<'_, Dynamic>,
    x: Table<'_>,
    times: Option<&Times>,
    threads: usize,
    ask: impl FnOnce(&Dataset) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let (own, fit) = parts(slf);
    let table = own.place.dataset(slf.py(), x, threads)?;
    let table = in_time(table, times, fit).map_err(of)?;
    run(slf.py(), threads, None, |_| ask(&*own.place.column_map.dataset(&table)?))
}

pub(crate) fn in_time(table: Dataset, times: Option<&Times>, fit: &DynamicFit) -> Result<Dataset, Error> {
    match times {
        Some(times) => table.in_time(times.timeline(fit.axis.as_ref().map(|axis| axis.steps))?),
        None => Ok(table),
    }
}

/// Times to come, means, lower and upper ends, steps × columns, of each sequence.
type Ahead<'py> = (Bound<'py, PyAny>, Array2<'py>, Array2<'py>, Array2<'py>);

/// A sequence: times, steps of the table, observed cells, means, ends of intervals.
type Past<'py> = (Bound<'py, PyAny>, usize, Array2<'py>, Array2<'py>, Vec<Array2<'py>>);

/// A sequence: times, means, standard deviations, whether anything was observed.
type Swings<'py> = (Bound<'py, PyAny>, Array2<'py>, Array2<'py>, Vec<bool>);

#[pymethods]
impl Dynamic {
    #[getter]
    fn transition<'py>(slf: &Bound<'py, Self>) -> PyResult<Array2<'py>> {
        array2(slf.py(), parts(slf).1.model.transition().clone())
    }

    #[getter]
    fn innovation<'py>(slf: &Bound<'py, Self>) -> PyResult<Array2<'py>> {
        array2(slf.py(), parts(slf).1.model.innovation().clone())
    }

    #[getter]
    fn loadings<'py>(slf: &Bound<'py, Self>) -> PyResult<Array2<'py>> {
        let (own, fit) = parts(slf);
        array2(slf.py(), own.place.widen_columns(fit.model.loadings()))
    }

    #[getter]
    fn coefficients<'py>(slf: &Bound<'py, Self>) -> PyResult<Array2<'py>> {
        let (own, fit) = parts(slf);
        array2(slf.py(), own.place.widen_columns(fit.model.coefficients()))
    }

    #[getter]
    fn noise_variance<'py>(slf: &Bound<'py, Self>) -> Array1<'py> {
        let (own, fit) = parts(slf);
        array1(slf.py(), own.place.widen(&fit.model.noise().variances(fit.model.n_columns()), |_| 0.0))
    }

    #[getter]
    fn noise_memory<'py>(slf: &Bound<'py, Self>) -> Array1<'py> {
        let (own, fit) = parts(slf);
        let none = vec![0.0; fit.model.n_columns()];
        array1(slf.py(), own.place.widen(fit.model.noise_memory().unwrap_or(&none), |_| 0.0))
    }

    /// The column of times, if rows were not only counted.
    #[getter]
    fn time_name(slf: &Bound<'_, Self>) -> Option<String> {
        parts(slf).1.axis.as_ref().map(|axis| axis.name.clone())
    }

    /// The column that tells sequences apart, if there were several.
    #[getter]
    fn groups_name(slf: &Bound<'_, Self>) -> Option<String> {
        parts(slf).1.axis.as_ref().and_then(|axis| axis.sequences.clone())
    }

    /// The largest modulus of the roots of the transition.
    #[getter]
    fn spectral_radius(slf: &Bound<'_, Self>) -> f64 {
        parts(slf).1.model.spectral_radius()
    }

    /// Factors of each row, given all rows or those so far.
    #[pyo3(signature = (x, times, filtered, threads=0))]
    fn transform<'py>(
        slf: &Bound<'py, Self>,
        x: Table<'_>,
        times: Option<Times>,
        filtered: bool,
        threads: usize,
    ) -> PyResult<Array2<'py>> {
        let fit = parts(slf).1;
        let knowing = if filtered { Knowing::RowsSoFar } else { Knowing::AllRows };
        let means = ask(slf, x, times.as_ref(), threads, |data| Ok(fit.factors(data, knowing)?.means))?;
        array2(slf.py(), means)
    }

    /// Log-density of each row given those before it.
    #[pyo3(signature = (x, times, threads=0))]
    fn log_density_in_time<'py>(
        slf: &Bound<'py, Self>,
        x: Table<'_>,
        times: Option<Times>,
        threads: usize,
    ) -> PyResult<Array1<'py>> {
        let fit = parts(slf).1;
        let ask =
            ask(slf, x, times.as_ref(), threads, |data| fit.model.log_density(data, &*fit.times(data)?))?;
        Ok(array1(slf.py(), ask))
    }

    /// The table with its gaps filled, and what is known of each.
    #[pyo3(signature = (x, times, threads=0))]
    fn impute_in_time<'py>(
        slf: &Bound<'py, Self>,
        x: Table<'_>,
        times: Option<Times>,
        threads: usize,
    ) -> PyResult<Filled<'py>> {
        let ((own, fit), py) = (parts(slf), slf.py());
        let table = in_time(own.place.dataset(py, x, threads)?, times.as_ref(), fit).map_err(of)?;
        let map = &own.place.column_map;
        let filled = run(py, threads, None, |_| {
            map.imputed(own.learned.fill(Rows::New)?.fill(&*map.dataset(&table)?)?, &table)
        })?;
        own.place.filled(py, &filled, &table)
    }

    /// Every step of each sequence and those that follow, a season's if none are asked for: times, how many of them are of the
    /// table, observed cells, means, and lower and upper ends of intervals of two levels where nothing was observed.
    #[pyo3(signature = (x, times, steps, levels, threads=0))]
    fn courses<'py>(
        slf: &Bound<'py, Self>,
        x: Table<'_>,
        times: Option<Times>,
        steps: Option<usize>,
        levels: [f64; 2],
        threads: usize,
    ) -> PyResult<Vec<Past<'py>>> {
        let ((own, fit), py) = (parts(slf), slf.py());
        let steps = steps.unwrap_or_else(|| fit.usual_steps());
        let courses = ask(slf, x, times.as_ref(), threads, |data| own.learned.courses(data, steps))?;
        let wide = |m: &covary::Matrix| array2(py, own.place.widen_rows(m, |v| v));
        let mut out = Vec::new();
        for course in &courses {
            let bands = bands(course, levels).map_err(of)?;
            let bands = bands.iter().map(wide).collect::<PyResult<Vec<_>>>()?;
            let when = moments(py, &course.times, fit)?;
            out.push((when, course.n_past, wide(&course.observed)?, wide(&course.means)?, bands));
        }
        Ok(out)
    }

    /// Factors of each step of each sequence: times, means and standard deviations given all rows, and whether anything was
    /// observed then.
    #[pyo3(signature = (x, times, threads=0))]
    fn factors<'py>(
        slf: &Bound<'py, Self>,
        x: Table<'_>,
        times: Option<Times>,
        threads: usize,
    ) -> PyResult<Vec<Swings<'py>>> {
        let (fit, py) = (parts(slf).1, slf.py());
        let (factors, every) = ask(slf, x, times.as_ref(), threads, |data| {
            let every = data.every_step()?;
            Ok((fit.factors(&every, Knowing::AllRows)?, every))
        })?;
        let k = fit.model.n_components();
        let timeline = every.times();
        let part = |sequence: &covary::dynamics::Sequence| {
            let rows: Vec<usize> = sequence.rows().iter().flatten().copied().collect();
            let when: Vec<i64> = (sequence.first()..).take(rows.len()).collect();
            let means = covary::Matrix::from_fn(rows.len(), k, |i, j| factors.means[(rows[i], j)]);
            let sd = |i: usize, j: usize| factors.covariances[rows[i]][(j, j)].sqrt();
            let sds = covary::Matrix::from_fn(rows.len(), k, sd);
            let observed = rows.iter().map(|&row| every.row(row).iter().any(|v| !v.is_nan())).collect();
            Ok((moments(py, &when, fit)?, array2(py, means)?, array2(py, sds)?, observed))
        };
        timeline.sequences().iter().map(part).collect()
    }

    /// The rows that follow each sequence: their times as the table had them, means and intervals.
    #[pyo3(signature = (x, times, steps, level, threads=0))]
    fn forecast<'py>(
        slf: &Bound<'py, Self>,
        x: Table<'_>,
        times: Option<Times>,
        steps: usize,
        level: f64,
        threads: usize,
    ) -> PyResult<Vec<Ahead<'py>>> {
        let ((own, fit), py) = (parts(slf), slf.py());
        let ahead = ask(slf, x, times.as_ref(), threads, |data| fit.forecast(data, steps))?;
        let d = fit.model.n_columns();
        let mut out = Vec::new();
        for forecast in ahead {
            let mut parts = [(); 3].map(|()| covary::Matrix::zeros(steps, d));
            for cell in &forecast.cells {
                let (low, high) = cell.interval(level).map_err(of)?;
                for (part, value) in parts.iter_mut().zip([cell.mean, low, high]) {
                    part[(cell.row, cell.column)] = value;
                }
            }
            let [mean, low, high] = parts.map(|part| own.place.widen_rows(&part, |v| v));
            out.push((
                moments(py, &forecast.times, fit)?,
                array2(py, mean)?,
                array2(py, low)?,
                array2(py, high)?,
            ));
        }
        Ok(out)
    }
}

/// Matrices of steps × columns: filled with NaN, then cell by cell with an interval of two levels.
fn bands(course: &Course, levels: [f64; 2]) -> Result<[covary::Matrix; 4], Error> {
    let nowhere = covary::Matrix::from_fn(course.means.n_rows(), course.means.n_columns(), |_, _| f64::NAN);
    let mut bands = [(); 4].map(|()| nowhere.clone());
    for cell in &course.unseen {
        let [inner, outer] = [cell.interval(levels[0])?, cell.interval(levels[1])?];
        for (band, end) in bands.iter_mut().zip([inner.0, inner.1, outer.0, outer.1]) {
            band[(cell.row, cell.column)] = end;
        }
    }
    Ok(bands)
}

/// Times as the table had them: microseconds, numbers, or counted rows.
fn moments<'py>(py: Python<'py>, times: &[i64], fit: &DynamicFit) -> PyResult<Bound<'py, PyAny>> {
    let Some(axis) = &fit.axis else { return times.to_vec().into_pyobject(py) };
    let moments: Vec<Moment> = times.iter().map(|&time| axis.steps.moment(time)).collect();
    let number = |moment: &Moment| match moment {
        Moment::Number(number) => Some(*number),
        Moment::Clock(_) => None,
    };
    let clock = |moment: &Moment| match moment {
        Moment::Clock(at) => Some(*at),
        Moment::Number(_) => None,
    };
    if let Some(numbers) = moments.iter().map(number).collect::<Option<Vec<f64>>>() {
        return numbers.into_pyobject(py);
    }
    match moments.iter().map(clock).collect::<Option<Vec<i64>>>() {
        Some(at) => at.into_pyobject(py),
        None => Err(raise("DataError", "times of two kinds")),
    }
}
