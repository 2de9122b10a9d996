//! Ctrl-C: the first ends the process if nothing is there to be kept; else it asks the work to stop where it is and
//! write what it has, and says what goes on. The second ends the process. What asks the process to end at once (SIGTERM, SIGHUP) ends it, without files half written.

use indicatif::ProgressBar;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Files that stand beside their targets until they are whole.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Listens from here on. Where signals cannot be heard, Ctrl-C ends the process as ever.
pub(crate) fn listen(quiet: bool) {
    let asked = ASKED.get_or_init(Arc::default);
    // In this order the first signal finds the flag unset and sets it; the second finds it set.
    let code = i32::from(crate::Failure::INTERRUPTED);
    let _ = flag::register_conditional_shutdown(SIGINT, code, Arc::clone(asked));
    let _ = flag::register(SIGINT, Arc::clone(asked));
    thread::spawn(move || watch(quiet));
    ends::listen();
}

/// Whether Ctrl-C was pressed.
pub(crate) fn asked() -> bool {
    ASKED.get().is_some_and(|asked| asked.load(Ordering::Relaxed))
}

/// Whether it was asked and answered before.
static ANSWERED: AtomicBool = AtomicBool::new(false);

/// What was asked to stop has stopped, and what follows goes on with it: the next Ctrl-C is again the first.
pub(crate) fn answered() {
    ANSWERED.store(true, Ordering::Relaxed);
    if let Some(asked) = ASKED.get() {
        asked.store(false, Ordering::Relaxed);
    }
}

/// Whether Ctrl-C was pressed at any time.
pub(crate) fn happened() -> bool {
    asked() || ANSWERED.load(Ordering::Relaxed)
}

/// The same as [`asked`], as observers answer it.
pub(crate) fn flow() -> ControlFlow<()> {
    if asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// The flag itself, for work of the library.
pub(crate) fn stop_flag() -> Option<&'static AtomicBool> {
    ASKED.get().map(|asked| &**asked)
}

/// What Ctrl-C does to a part of the work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// Nothing of it could be kept: the process ends.
    Process,
    /// It stops where it can, and the rest goes on with what it has.
    AtStep,
    /// What came before is kept by going on to its end.
    ToEnd,
}

/// A part of the work under way, until it is dropped.
pub(crate) struct Part {
    id: usize,
}

struct Doing {
    id: usize,
    what: String,
    ends: Ends,
    bar: Option<ProgressBar>,
    /// Whether it was said that it goes on.
    told: bool,
}

/// Parts under way; the last began within those before it.
static DOING: Mutex<Vec<Doing>> = Mutex::new(Vec::new());

/// Whether something is there that is worth being written.
static KEEPS: AtomicBool = AtomicBool::new(false);

fn doing() -> MutexGuard<'static, Vec<Doing>> {
    DOING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins a part of the work. The bar, if any, makes room for words.
pub(crate) fn begin(what: &str, ends: Ends, bar: Option<ProgressBar>) -> Part {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    if ends == Ends::AtStep {
        keep();
    }
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    doing().push(Doing { id, what: what.to_owned(), ends, bar, told: false });
    Part { id }
}

impl Part {
    /// It has been said that it goes on after Ctrl-C.
    pub(crate) fn tell(&self) {
        doing().iter_mut().filter(|part| part.id == self.id).for_each(|part| part.told = true);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        doing().retain(|doing| doing.id != self.id);
    }
}

/// From here on something is there that is worth being written, or was: Ctrl-C no longer ends the process at once.
pub(crate) fn keep() {
    KEEPS.store(true, Ordering::Relaxed);
}

/// Work that has no step to stop at, such as a closed form, and writes nothing: Ctrl-C ends the process.
pub(crate) fn without_steps<T>(work: impl FnOnce() -> T) -> T {
    let _part = begin("fitting by a closed form, which has no part to keep", Ends::Process, None);
    work()
}

/// How often the watch looks.
const LOOK: Duration = Duration::from_millis(50);
/// What ends sooner than this after Ctrl-C needs no words.
const SOON: Duration = Duration::from_millis(400);
/// Then it is said again that the work goes on.
const AGAIN: Duration = Duration::from_secs(2);

fn watch(quiet: bool) {
    loop {
        while !asked() {
            thread::sleep(LOOK);
        }
        attend(quiet);
    }
}

/// After Ctrl-C, until it is answered: ends the process, or says what it goes on doing for as long as it does.
fn attend(quiet: bool) {
    let since = Instant::now();
    let mut next = since + SOON;
    while asked() {
        let now = Instant::now();
        {
            let mut doing = doing();
            let last = doing.last();
            if last.map_or(!KEEPS.load(Ordering::Relaxed), |part| part.ends == Ends::Process) {
                if let Some(bar) = last.and_then(|part| part.bar.as_ref()) {
                    bar.finish_and_clear();
                }
                let during = last.map_or(String::new(), |part| format!(" while {}", part.what));
                let words = format!("covary: interrupted{during}; nothing was written");
                let _ = writeln!(std::io::stderr(), "{}", crate::console::harmless(&words));
                // The lock is kept: nothing is begun any more.
                leave(i32::from(crate::Failure::INTERRUPTED));
            }
            // What was said when it began is not said again at once.
            let told = last.is_none_or(|part| part.told);
            if now >= next && (!told || since.elapsed() > AGAIN) && !quiet {
                let words = going_on(last, since.elapsed());
                let say = || {
                    let _ = writeln!(std::io::stderr(), "{}", crate::console::harmless(&words));
                };
                match last.and_then(|part| part.bar.as_ref()) {
                    Some(bar) => bar.suspend(say),
                    None => say(),
                }
                next = now + AGAIN;
                if let Some(part) = doing.last_mut() {
                    part.told = true;
                }
            }
        }
        thread::sleep(LOOK);
    }
}

fn going_on(part: Option<&Doing>, since: Duration) -> String {
    let Some(Doing { what, ends, told: false, .. }) = part else {
        let what = part.map_or("writing what is there", |part| part.what.as_str());
        return format!("still {what}, {:.0} s after Ctrl-C", since.as_secs_f64());
    };
    let how = if *ends == Ends::AtStep { "it stops as soon as it can" } else { "going on to its end" };
    format!("interrupted while {what}: {how}; press Ctrl-C again to give up")
}

/// A file that is removed if the process is asked to end before this is dropped.
pub(crate) struct Temporary(PathBuf);

impl Temporary {
    pub(crate) fn new(path: &Path) -> Self {
        // A relative path is that of today's folder, which this process never leaves.
        temporary().push(path.to_owned());
        Self(path.to_owned())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        temporary().retain(|path| *path != self.0);
    }
}

fn temporary() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the process without leaving half a file behind.
fn leave(code: i32) -> ! {
    // The lock is kept: no file takes its place any more.
    let files = temporary();
    for path in files.iter() {
        let _ = fs::remove_file(path);
    }
    std::process::exit(code)
}

#[cfg(unix)]
mod ends {
    use signal_hook::consts::{SIGHUP, SIGTERM};
    use signal_hook::low_level::pipe;
    use std::fs;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    /// A handler may do next to nothing: it writes a byte, which wakes a thread that may do anything.
    pub(super) fn listen() {
        for signal in [SIGTERM, SIGHUP] {
            if signal == SIGHUP && !listens_for_hangup() {
                continue;
            }
            let Ok((mut read, write)) = UnixStream::pair() else { continue };
            if pipe::register(signal, write).is_err() {
                continue;
            }
            std::thread::spawn(move || {
                if matches!(read.read(&mut [0]), Ok(1)) {
                    super::leave(128 + signal);
                }
            });
        }
    }

    /// Whether a hangup would end the process: `nohup` has it ignored, and a handler would undo that. Known on Linux.
    fn listens_for_hangup() -> bool {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        ignored.is_some_and(|mask| (mask >> (SIGHUP - 1)) & 1 == 0)
    }
}

#[cfg(not(unix))]
mod ends {
    pub(super) fn listen() {}
}
