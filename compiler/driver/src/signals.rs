//! Signal handling: temporary files that are removed and the line that is printed when a signal ends the process, and
//! Ctrl-C as an interrupt of the debugger.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

/// Temporary names. Those that are gone stay: they are random, and removing them again does nothing.
static NAMES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// What has been done so far, printed when a signal ends the process.
static DONE: Mutex<String> = Mutex::new(String::new());

/// Ctrl-C raises a flag instead of ending the process.
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

/// Does something and sets what is said of it, as one step: a signal ends the process before both or after both. Where
/// the step takes long, as a write does that nobody reads, the signal does not wait for it, and nothing is said.
pub fn step<R>(act: impl FnOnce(&mut String) -> R) -> R {
    start();
    act(&mut DONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Ctrl-C as an interrupt: while this lives, Ctrl-C raises a flag and does not end the process.
#[derive(Debug)]
pub struct Interrupts(Arc<AtomicBool>);

impl Interrupts {
    /// From now on. None where there are no such signals.
    pub fn new() -> Option<Interrupts> {
        let flag = Arc::new(AtomicBool::new(false));
        start();
        #[cfg(unix)]
        signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&flag)).ok()?;
        TAKEN.store(cfg!(unix), Ordering::SeqCst);
        cfg!(unix).then_some(Interrupts(flag))
    }

    /// Whether Ctrl-C was typed since this was asked last.
    pub fn raised(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        TAKEN.store(false, Ordering::SeqCst);
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
            // First the step, which may make names.
            let done = after_the_step();
            let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
            for name in names.iter() {
                let _ = std::fs::remove_file(name);
            }
            if let Some(done) = done.filter(|done| !done.is_empty()) {
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

/// What has been done, once the step that is going on is over; `None` if that takes too long.
#[cfg(unix)]
fn after_the_step() -> Option<MutexGuard<'static, String>> {
    for _ in 0..100 {
        match DONE.try_lock() {
            Ok(done) => return Some(done),
            Err(std::sync::TryLockError::Poisoned(done)) => return Some(done.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    }
    None
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
