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
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
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
        *lock(&self.news) = Some(news);
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
    run_in(py, &*pool(threads)?, progress, work)
}

/// As [`run`], on threads that end with the work. Whoever calls for a part of some other work must not wait for threads that
/// wait for that part, and the parts that several callers ask for at once must not wait for each other.
pub(crate) fn run_apart<T: Send>(
    py: Python<'_>,
    threads: usize,
    work: impl FnOnce(&Watched) -> Result<T, covary::Error> + Send,
) -> PyResult<T> {
    run_in(py, &made(threads)?, None, work)
}

fn run_in<T: Send>(
    py: Python<'_>,
    pool: &ThreadPool,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watched) -> Result<T, covary::Error> + Send,
) -> PyResult<T> {
    let shared = Shared::default();
    let progress = progress.map(|p| p.clone().unbind());
    let stopped = py.detach(|| {
        pool.in_place_scope(|scope| {
            scope.spawn(|_| shared.end_with(work));
            shared.wait(progress.as_ref(), |_| false)
        })
    });
    shared.answer(stopped)
}

/// As [`run`], of work that tells its [`Stages`]. A decomposition that Ctrl-C meets is left to end by itself, on
/// threads that nobody else is given; what it has found is dropped.
pub(crate) fn run_or_leave<T: Send + 'static>(
    py: Python<'_>,
    threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watched) -> Result<T, covary::Error> + Send + 'static,
) -> PyResult<T> {
    let (pool, shared) = (pool(threads)?, Arc::new(Shared::default()));
    let progress = progress.map(|p| p.clone().unbind());
    let own = Arc::clone(&shared);
    pool.spawn(move || own.end_with(work));
    let leave = |watched: &Watched| {
        let left = watched.pass(DECOMPOSES, LEFT);
        if left {
            retire(&pool);
        }
        left
    };
    let stopped = py.detach(|| shared.wait(progress.as_ref(), leave));
    shared.answer(stopped)
}

/// What the work and who waits for it share.
struct Shared<T> {
    watched: Watched,
    ended: Mutex<Option<Outcome<T>>>,
    end: Condvar,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self { watched: Watched::default(), ended: Mutex::new(None), end: Condvar::new() }
    }
}

impl<T> Shared<T> {
    /// Does the work and says that it has ended.
    fn end_with(&self, work: impl FnOnce(&Watched) -> Result<T, covary::Error>) {
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&self.watched)));
        *lock(&self.ended) = Some(outcome);
        self.end.notify_all();
    }

    /// Waits for its end, after a signal no longer than until `leave` allows to go; the exception of that signal.
    fn wait(&self, progress: Option<&Py<PyAny>>, leave: impl Fn(&Watched) -> bool) -> Option<PyErr> {
        let mut stopped = None;
        let mut waiting = lock(&self.ended);
        while waiting.is_none() {
            let (guard, timeout) =
                self.end.wait_timeout(waiting, EVERY).unwrap_or_else(PoisonError::into_inner);
            waiting = guard;
            if timeout.timed_out() && stopped.is_none() {
                drop(waiting);
                stopped = Python::attach(|py| listen(py, &self.watched, progress)).err();
                self.watched.stop.store(stopped.is_some(), Ordering::Relaxed);
                waiting = lock(&self.ended);
            }
            if stopped.is_some() && leave(&self.watched) {
                break;
            }
        }
        stopped
    }

    /// What came of it.
    fn answer(&self, stopped: Option<PyErr>) -> PyResult<T> {
        match (stopped, lock(&self.ended).take()) {
            (Some(signal), _) => Err(signal),
            (None, Some(Ok(result))) => result.map_err(crate::error::of),
            (None, Some(Err(panic))) => Err(PyRuntimeError::new_err(format!(
                "covary met a defect of its own, not of your data: {}; please report it",
                message(&*panic)
            ))),
            (None, None) => Err(PyRuntimeError::new_err("the work was left without a signal")),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
    let news = lock(&watched.news).take();
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
    let mut pools = lock(&POOLS);
    pools.retain(|(_, _, other)| !Arc::ptr_eq(pool, other));
}

/// Threads are made once per number of them, and anew in a forked process, where they do not live on.
fn pool(threads: usize) -> PyResult<Arc<ThreadPool>> {
    let mut pools = lock(&POOLS);
    let process = std::process::id();
    if let Some((_, _, pool)) = pools.iter().find(|(p, n, _)| (*p, *n) == (process, threads)) {
        return Ok(pool.clone());
    }
    let pool = Arc::new(made(threads)?);
    pools.push((process, threads, pool.clone()));
    Ok(pool)
}

fn made(threads: usize) -> PyResult<ThreadPool> {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|i| format!("covary-{i}"))
        .build()
        .map_err(|e| PyRuntimeError::new_err(format!("threads cannot be started: {e}")))
}
