//! Ctrl-C: the first asks the work to stop where it is and write what it has, the second ends the
//! process. What asks the process to end at once (SIGTERM, SIGHUP) ends it, without files half written.

use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Files that stand beside their targets until they are whole.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Listens from here on. Where signals cannot be heard, Ctrl-C ends the process as ever.
pub(crate) fn listen() {
    let asked = ASKED.get_or_init(Arc::default);
    // In this order the first signal finds the flag unset and sets it; the second finds it set.
    let code = i32::from(crate::Failure::INTERRUPTED);
    let _ = flag::register_conditional_shutdown(SIGINT, code, Arc::clone(asked));
    let _ = flag::register(SIGINT, Arc::clone(asked));
    ends::listen();
}

/// Whether Ctrl-C was pressed.
pub(crate) fn asked() -> bool {
    ASKED.get().is_some_and(|asked| asked.load(Ordering::Relaxed))
}

/// The same, as observers answer it.
pub(crate) fn flow() -> ControlFlow<()> {
    if asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Work that has no step to stop at, such as a closed form, and writes nothing: Ctrl-C ends the process.
pub(crate) fn without_steps<T>(work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let listener = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if asked() {
                    let told = "covary: interrupted during a closed form, which has no part to keep: nothing was written";
                    let _ = writeln!(std::io::stderr(), "{told}");
                    leave(i32::from(crate::Failure::INTERRUPTED));
                }
                thread::park_timeout(Duration::from_millis(50));
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        listener.thread().unpark();
        result
    })
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

fn temporary() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
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
            if signal == SIGHUP && !hears_hangup() {
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
    fn hears_hangup() -> bool {
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
