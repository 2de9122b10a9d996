//! Long work: on its own threads, without the interpreter lock, with Ctrl-C heard and progress told.

use covary::infer::{Observer, Step};
use covary::learn::Watch;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How often Ctrl-C is listened for and progress told.
const EVERY: Duration = Duration::from_millis(50);

/// What stands between the work and whoever waits for it.
#[derive(Default)]
pub(crate) struct Watched {
    stop: AtomicBool,
    news: Mutex<Option<News>>,
    phase: AtomicU8,
}

/// The work may read the table it was given, which belongs to Python.
const READS: u8 = 0;
/// It is in a decomposition, which reads numbers of its own only.
const DECOMPOSES: u8 = 1;
/// Nobody waits for it any more: it must not read the table again.
const LEFT: u8 = 2;

/// How far the work is.
#[derive(Clone, Copy)]
enum News {
    Choosing(usize, usize),
    Fitting(Step),
}

impl Watched {
    fn tell(&self, news: News) -> ControlFlow<()> {
        *self.news.lock().unwrap_or_else(PoisonError::into_inner) = Some(news);
        self.flow()
    }

    fn flow(&self) -> ControlFlow<()> {
        if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// From one phase to the next, unless it has been left.
    fn pass(&self, from: u8, to: u8) -> bool {
        self.phase.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// What a closed form tells.
pub(crate) struct Stages<'a>(pub(crate) &'a Watched);

impl Observer for Stages<'_> {
    fn step(&mut self, step: &Step) -> ControlFlow<()> {
        self.0.fitting(step)
    }

    fn decomposing(&mut self, begins: bool) -> ControlFlow<()> {
        self.0.decomposing(begins)
    }
}

impl Watch for Watched {
    fn choosing(&self, done: usize, total: usize) -> ControlFlow<()> {
        self.tell(News::Choosing(done, total))
    }

    fn fitting(&self, step: &Step) -> ControlFlow<()> {
        self.tell(News::Fitting(*step))
    }

    fn decomposing(&self, begins: bool) -> ControlFlow<()> {
        let (from, to) = if begins { (READS, DECOMPOSES) } else { (DECOMPOSES, READS) };
        if self.pass(from, to) { self.flow() } else { ControlFlow::Break(()) }
    }
}

/// Runs `work` on `threads` threads (0: as the machine has) while this one listens for Ctrl-C and tells
/// `progress` what is being done. A stopped work has no result: the exception of the signal is raised.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watched) -> Result<T, covary::Error> + Send,
) -> PyResult<T> {
    let pool = pool(threads)?;
    let progress = progress.map(|p| p.clone().unbind());
    let watched = Watched::default();
    let ended: Mutex<Option<Outcome<T>>> = Mutex::new(None);
    let end = Condvar::new();
    let stopped = py.detach(|| {
        pool.in_place_scope(|scope| {
            scope.spawn(|_| {
                let outcome = catch_unwind(AssertUnwindSafe(|| work(&watched)));
                *ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
                end.notify_all();
            });
            let mut waiting = ended.lock().unwrap_or_else(PoisonError::into_inner);
            let mut stopped = None;
            while waiting.is_none() {
                let (guard, timeout) =
                    end.wait_timeout(waiting, EVERY).unwrap_or_else(PoisonError::into_inner);
                waiting = guard;
                if timeout.timed_out() && stopped.is_none() {
                    drop(waiting);
                    stopped = Python::attach(|py| listen(py, &watched, progress.as_ref())).err();
                    watched.stop.store(stopped.is_some(), Ordering::Relaxed);
                    waiting = ended.lock().unwrap_or_else(PoisonError::into_inner);
                }
            }
            stopped
        })
    });
    if let Some(signal) = stopped {
        return Err(signal);
    }
    answer(ended.into_inner().unwrap_or_else(PoisonError::into_inner).expect("waited for"))
}

fn answer<T>(outcome: Outcome<T>) -> PyResult<T> {
    match outcome {
        Ok(result) => result.map_err(crate::error::of),
        Err(panic) => Err(PyRuntimeError::new_err(format!(
            "covary met a defect of its own, not of your data: {}; please report it",
            message(&*panic)
        ))),
    }
}

/// What [`run_or_leave`] and its work share.
struct Shared<T> {
    watched: Watched,
    ended: Mutex<Option<Outcome<T>>>,
    end: Condvar,
}

/// As [`run`], of work that tells its [`Stages`]. A decomposition that Ctrl-C meets is left to end by itself, on
/// threads that nobody else is given; what it has found is dropped.
pub(crate) fn run_or_leave<T: Send + 'static>(
    py: Python<'_>,
    threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watched) -> Result<T, covary::Error> + Send + 'static,
) -> PyResult<T> {
    let pool = pool(threads)?;
    let progress = progress.map(|p| p.clone().unbind());
    let shared =
        Arc::new(Shared { watched: Watched::default(), ended: Mutex::new(None), end: Condvar::new() });
    let own = Arc::clone(&shared);
    pool.spawn(move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&own.watched)));
        *own.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        own.end.notify_all();
    });
    let Shared { watched, ended, end } = &*shared;
    py.detach(|| {
        let mut stopped = None;
        let mut waiting = ended.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.is_none() {
            let (guard, timeout) = end.wait_timeout(waiting, EVERY).unwrap_or_else(PoisonError::into_inner);
            waiting = guard;
            if timeout.timed_out() && stopped.is_none() {
                drop(waiting);
                stopped = Python::attach(|py| listen(py, watched, progress.as_ref())).err();
                watched.stop.store(stopped.is_some(), Ordering::Relaxed);
                waiting = ended.lock().unwrap_or_else(PoisonError::into_inner);
            }
            if stopped.is_some() && watched.pass(DECOMPOSES, LEFT) {
                retire(&pool);
                break;
            }
        }
        match (stopped, waiting.take()) {
            (None, Some(outcome)) => answer(outcome),
            (Some(signal), _) => Err(signal),
            (None, None) => Err(PyRuntimeError::new_err("the work was left without a signal")),
        }
    })
}

type Outcome<T> = Result<Result<T, covary::Error>, Box<dyn Any + Send>>;

fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}

fn listen(py: Python<'_>, watched: &Watched, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    py.check_signals()?;
    let news = watched.news.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let (Some(progress), Some(news)) = (progress, news) {
        match news {
            News::Choosing(done, total) => progress.call1(py, ("choosing", done, total))?,
            News::Fitting(step) => progress.call1(py, ("fitting", step.iteration, step.objective))?,
        };
    }
    Ok(())
}

static POOLS: Mutex<Vec<(u32, usize, Arc<ThreadPool>)>> = Mutex::new(Vec::new());

/// Gives the threads to nobody any more: they end with their work.
fn retire(pool: &Arc<ThreadPool>) {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    pools.retain(|(_, _, other)| !Arc::ptr_eq(pool, other));
}

/// Threads are made once per number of them, and anew in a forked process, where they do not live on.
fn pool(threads: usize) -> PyResult<Arc<ThreadPool>> {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((_, _, pool)) = pools.iter().find(|(p, n, _)| (*p, *n) == (process, threads)) {
        return Ok(pool.clone());
    }
    let made = ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|i| format!("covary-{i}"))
        .build()
        .map_err(|e| PyRuntimeError::new_err(format!("threads cannot be started: {e}")))?;
    let pool = Arc::new(made);
    pools.push((process, threads, pool.clone()));
    Ok(pool)
}
