//! `Online`: EM of a stream of blocks (`covary::infer::OnlineEm`).

use crate::array::Table;
use crate::error::{of, raise};
use crate::learned::Learned;
use crate::place::Place;
use crate::work::run;
use covary::infer::OnlineEm;
use covary::learned::Training;
use covary::{Error, Method, Spec};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// What is kept of the blocks seen. It does not change: another comes of each block.
#[pyclass(frozen, module = "covary._covary")]
pub(crate) struct Online {
    state: OnlineEm,
}

#[pymethods]
impl Online {
    #[new]
    fn new(family: &str, n_components: usize, standardize: bool) -> PyResult<Self> {
        let spec = match family {
            "ppca" => Spec::ppca(n_components),
            "fa" => Spec::factor_analysis(n_components),
            other => {
                return Err(raise("OptionError", &format!("a stream has no model of the family {other}")));
            }
        };
        Ok(Self { state: OnlineEm::new(Spec { standardize, ..spec }) })
    }

    /// What is known after another block.
    #[pyo3(signature = (x, names=None, threads=0))]
    fn take(
        &self,
        py: Python<'_>,
        x: Table<'_>,
        names: Option<Vec<String>>,
        threads: usize,
    ) -> PyResult<Self> {
        let block = x.dataset(py, threads, names)?;
        let mut state = self.state.clone();
        run(py, threads, None, |_| state.take(&block).map(|()| Self { state }))
    }

    /// Rows so far.
    #[getter]
    fn n_rows(&self) -> usize {
        self.state.facts().map_or(0, covary::data::Facts::n_rows)
    }

    /// The model of the rows so far.
    fn model(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let facts = self.state.facts().ok_or_else(|| of(Error::TooFewRows { rows: 0 }))?;
        let fit = self.state.fit().map_err(of)?;
        let names = facts.column_names().to_vec();
        let (place, table) = (Place::whole(names.clone()), (names, Training::of_facts(facts)));
        let method = Method::from_name("em").expect("one of ours");
        let learned = covary::learned::Learned::of_table(fit, table, self.state.spec(), &method);
        Learned { learned, place }.into_python(py)
    }

    /// What pickle keeps.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, State<'py>)> {
        let own = slf.get();
        let spec = own.state.spec();
        let family = if *spec == (Spec { standardize: spec.standardize, ..Spec::ppca(spec.n_components) }) {
            "ppca"
        } else {
            "fa"
        };
        let names = own.state.facts().map_or(Vec::new(), |facts| facts.column_names().to_vec());
        let bytes = PyBytes::new(slf.py(), &own.state.to_bytes());
        let state = (family.to_owned(), spec.n_components, spec.standardize, names, bytes);
        Ok((slf.get_type().getattr("_unpickle")?, state))
    }

    #[staticmethod]
    #[pyo3(name = "_unpickle")]
    fn unpickle(
        family: &str,
        n_components: usize,
        standardize: bool,
        names: Vec<String>,
        bytes: &[u8],
    ) -> PyResult<Self> {
        let Self { state } = Self::new(family, n_components, standardize)?;
        Ok(Self { state: OnlineEm::from_bytes(state.spec().clone(), &names, bytes).map_err(of)? })
    }
}

type State<'py> = (String, usize, bool, Vec<String>, Bound<'py, PyBytes>);
