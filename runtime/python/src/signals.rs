//! Ctrl-C while a kernel runs.

use pyo3::prelude::*;
use std::cell::Cell;
use std::sync::Mutex;

/// Whether Python runs signal handlers on this thread. It is the main thread, and nothing that is worked on here goes
/// on when the interpreter has ended.
fn gets_signals(py: Python<'_>) -> PyResult<bool> {
    thread_local! {
        static KNOWN: Cell<Option<bool>> = const { Cell::new(None) };
    }
    if let Some(known) = KNOWN.get() {
        return Ok(known);
    }
    let threading = py.import("threading")?;
    let is_main = threading.call_method0("current_thread")?.is(&threading.call_method0("main_thread")?);
    KNOWN.set(Some(is_main));
    Ok(is_main)
}

/// Does work without Python's lock. What a signal's handler raises ends the launches of the work between two of their
/// blocks, and is raised here.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    detached_until(py, &|| false, work)
}

/// The same of launches that also end where `late` says so.
pub fn detached_until<T: Send>(
    py: Python<'_>,
    late: &(dyn Fn() -> bool + Sync),
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    if !gets_signals(py)? {
        return Ok(py.detach(|| ptoc_exec::interruptible(&late, work)));
    }
    let raised = Mutex::new(None);
    let done = py.detach(|| {
        let stop = || {
            if late() {
                return true;
            }
            let handled = Python::attach(|py| py.check_signals());
            let stop = handled.is_err();
            if let (Err(e), Ok(mut raised)) = (handled, raised.lock()) {
                *raised = Some(e);
            }
            stop
        };
        ptoc_exec::interruptible(&stop, work)
    });
    match raised.into_inner().ok().flatten() {
        Some(e) => Err(e),
        None => Ok(done),
    }
}
