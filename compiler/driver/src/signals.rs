//! Signals: what goes with the process that one ends, what is said then, and who wants Ctrl-C for himself.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

/// Temporary names. Those that are gone stay: they are random, and removing them again does nothing.
static NAMES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// What has been done so far, for who ends it.
static DONE: Mutex<String> = Mutex::new(String::new());

/// Ctrl-C is a wish and not the end.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Waits for signals from the first call on.
fn start() {
    static WATCH: Once = Once::new();
    WATCH.call_once(watch);
}

/// The names that are removed when a signal ends the process; none does while they are held.
pub(crate) fn names() -> MutexGuard<'static, Vec<PathBuf>> {
    start();
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets what is said on standard error if a signal ends the process from now on; nothing, if it is empty.
pub fn say_at_the_end(done: String) {
    start();
    *DONE.lock().unwrap_or_else(PoisonError::into_inner) = done;
}

/// A flag that Ctrl-C raises, in place of ending the process. None where there are no such signals.
pub fn interrupts() -> Option<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    #[cfg(unix)]
    {
        start();
        signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&flag)).ok()?;
        TAKEN.store(true, Ordering::SeqCst);
        Some(flag)
    }
    #[cfg(not(unix))]
    {
        let _ = (flag, &TAKEN, Ordering::SeqCst);
        None
    }
}

/// A file that becomes longer than the process's limit (`ulimit -f`) is an error of the write, and does not end the
/// process.
pub(crate) fn of_long_files_is_an_error() {
    #[cfg(unix)]
    {
        static ONCE: Once = Once::new();
        static SEEN: AtomicBool = AtomicBool::new(false);
        ONCE.call_once(|| drop(signal_hook::flag::register(signal_hook::consts::SIGXFSZ, &SEEN)));
    }
}

/// Starts a thread that waits for the signals that end a process and that can be caught.
#[cfg(unix)]
fn watch() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    use std::io::Write as _;
    let (ready, installed) = std::sync::mpsc::channel::<()>();
    let wait = move || {
        // `nohup` and shells have some ignored, which they stay.
        let signals = [SIGHUP, SIGINT, SIGQUIT, SIGTERM].into_iter().filter(|&s| !is_ignored(s));
        let Ok(mut signals) = signal_hook::iterator::Signals::new(signals) else { return };
        drop(ready);
        for signal in signals.forever() {
            if signal == SIGINT && TAKEN.load(Ordering::SeqCst) {
                continue;
            }
            let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
            for name in names.iter() {
                let _ = std::fs::remove_file(name);
            }
            let done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
            if !done.is_empty() {
                let _ = writeln!(std::io::stderr(), "{done}");
            }
            // The process ends as it would have without this thread, and its parent sees the signal.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    };
    // Without the thread nothing is installed, and signals end the process at once.
    if std::thread::Builder::new().name("ptoc signals".into()).spawn(wait).is_ok() {
        let _ = installed.recv();
    }
}

/// Whether a signal is ignored by this process.
#[cfg(unix)]
fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: with no new action the call changes nothing, and writes the present one to `action`, which has room
    // for it.
    let known = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) } == 0;
    // SAFETY: the call succeeded, so `action` was written.
    known && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

#[cfg(not(unix))]
fn watch() {}
