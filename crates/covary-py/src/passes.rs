//! Fits to rows that are elsewhere, by passes over their blocks (`covary::infer::Rows`). What an engine (Dask, Spark, Ray, a
//! loop over files) has to do:
//!
//! - Number the blocks 0, 1, 2, …, each a 2-d array of float64 or float32, NaN where a cell is missing. A block has
//!   `block_rows(d)` rows, the last one what is left: then the model has the bits of a fit in memory. Other blocks lead to a model
//!   of other bits, which still do not depend on who has summed what.
//! - `engine(task: bytes) -> bytes`, called once for each pass, answers with `merge` of `pass_block(task, index, block)`
//!   of all blocks. `merge` may be called on any of them in any order, also in several levels; a block that is missing or
//!   there twice is an error, as are sums of another pass, of another version of covary, or of another instruction set.
//! - `fit_rows(names, family, asked, engine, n_blocks=None)` drives: it calls `engine` from a thread of its own, with the
//!   interpreter's lock held, and returns the native model that `fit` returns. What `engine` raises is raised. `n_blocks` is found by the first pass
//!   unless it is given; with it a lost last block is noticed in that pass, too.
//!
//! All blocks have the columns `names`. A column that does not vary must be left out before, and the number of components, and of
//! models of a mixture, must be given: neither can be had by sums. A mixture starts on a few rows of the table, which it is asked for
//! by a pass: blocks must have `block_rows(d)` rows.

use crate::array::{Table, grouped};
use crate::error::{of, raise};
use crate::learned::Learned;
use crate::place::Place;
use crate::request::Asked;
use crate::work::{run_apart, run_or_leave};
use covary::data::Facts;
use covary::infer::{Rows, State, Sums, Task};
use covary::model::ColumnMap;
use covary::{Dataset, Error};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::cell::{Cell, OnceCell};
use std::sync::{Arc, Mutex, PoisonError};

/// The sums of one block, as bytes.
#[pyfunction]
#[pyo3(signature = (task, index, block, *, threads=1))]
pub(crate) fn pass_block<'py>(
    py: Python<'py>,
    task: &[u8],
    index: u64,
    block: Table<'_>,
    threads: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let values = block.numbers()?;
    let bytes = run_apart(py, threads, |_| {
        let task = Task::from_bytes(task)?;
        let block: Dataset = grouped(values, task.column_names().map(<[String]>::to_vec))?;
        Ok(State::of_block(&task, index, &block)?.to_bytes())
    })?;
    Ok(PyBytes::new(py, &bytes))
}

/// The sums of the blocks of all these, as bytes.
#[pyfunction]
pub(crate) fn merge<'py>(py: Python<'py>, states: Vec<Bound<'py, PyBytes>>) -> PyResult<Bound<'py, PyBytes>> {
    let mut merged: Option<State> = None;
    for state in &states {
        let state = State::from_bytes(state.as_bytes()).map_err(of)?;
        match &mut merged {
            None => merged = Some(state),
            Some(merged) => merged.merge(&state).map_err(of)?,
        }
    }
    let merged =
        merged.ok_or_else(|| raise("DataError", "there are no sums to merge; the table has no block"))?;
    Ok(PyBytes::new(py, &merged.to_bytes()))
}

/// Rows of a block of this many columns.
#[pyfunction]
pub(crate) fn block_rows(n_columns: usize) -> usize {
    covary::data::block_rows(n_columns)
}

/// Rows that somebody else's engine goes through.
struct Engine {
    call: Py<PyAny>,
    names: Vec<String>,
    n_blocks: Cell<Option<u64>>,
    facts: OnceCell<Facts>,
    /// What the engine raised, which the library cannot carry.
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl Engine {
    fn called(&self, task: &Task<'_>) -> PyResult<Vec<u8>> {
        Python::attach(|py| {
            let answer = self.call.call1(py, (PyBytes::new(py, &task.to_bytes()),))?;
            Ok(answer.bind(py).cast::<PyBytes>()?.as_bytes().to_vec())
        })
    }
}

impl Rows for Engine {
    fn facts(&self) -> Result<Facts, Error> {
        if let Some(facts) = self.facts.get() {
            return Ok(facts.clone());
        }
        let task = Task::facts(&self.names);
        let facts = task.facts_of(&self.pass(&task)?)?;
        Ok(self.facts.get_or_init(|| facts).clone())
    }

    fn pass(&self, task: &Task<'_>) -> Result<Sums, Error> {
        let bytes = self.called(task).map_err(|error| {
            *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            Error::Interrupted
        })?;
        let state = State::from_bytes(&bytes)?;
        self.n_blocks.set(self.n_blocks.get().or(Some(state.n_blocks())));
        state.finish(task, self.n_blocks.get())
    }
}

/// Learns the model of rows that `engine` goes through, by what is asked for as in `fit`.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
#[pyo3(signature = (names, family, asked, engine, *, n_blocks=None, threads=0, progress=None))]
pub(crate) fn fit_rows(
    py: Python<'_>,
    names: Vec<String>,
    family: &str,
    asked: &Bound<'_, PyDict>,
    engine: Py<PyAny>,
    n_blocks: Option<u64>,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let asked = Asked::new(family, asked)?;
    asked.by_passes()?;
    let raised = Arc::new(Mutex::new(None));
    let ours = Arc::clone(&raised);
    let learned = run_or_leave(py, threads, progress.as_ref(), move |watched| {
        let rows = Engine {
            call: engine,
            names,
            n_blocks: Cell::new(n_blocks),
            facts: OnceCell::new(),
            raised: ours,
        };
        let map = if asked.as_is {
            ColumnMap { columns: (0..rows.names.len()).collect(), constants: Vec::new() }
        } else {
            ColumnMap::of_facts(&rows.facts()?)?
        };
        let learned = asked.request.learn_rows_mapped(&rows, &map, watched)?;
        Ok(Learned { learned, place: Place::whole(rows.names) })
    });
    match raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) => Err(error),
        None => learned?.into_python(py),
    }
}
