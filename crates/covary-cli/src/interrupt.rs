//! Ctrl-C: the first asks the work to stop where it is and write what it has, the second ends the
//! process.

use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Listens from here on. Where signals cannot be heard, Ctrl-C ends the process as ever.
pub(crate) fn listen() {
    let asked = ASKED.get_or_init(Arc::default);
    // In this order the first signal finds the flag unset and sets it; the second finds it set.
    let code = i32::from(crate::Failure::INTERRUPTED);
    let _ = flag::register_conditional_shutdown(SIGINT, code, Arc::clone(asked));
    let _ = flag::register(SIGINT, Arc::clone(asked));
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
                    eprintln!("covary: interrupted during a closed form, which has no part to keep: nothing was written");
                    std::process::exit(i32::from(crate::Failure::INTERRUPTED));
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
