//! Forks of the process, which `multiprocessing` and PyTorch's loaders make while other threads are at work. A thread
//! that is in the compiler then has locks that nobody in the child would give back; so a fork waits until none is.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Who is in the compiler, and whether a fork waits for them.
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    inside: usize,
    forking: bool,
}

/// The gate of the process that loads the module.
static FIRST: Gate = Gate::new();

/// The gate of this process. A child has one of its own: in that of its parent a thread that it does not have may
/// stand.
static GATE: AtomicPtr<Gate> = AtomicPtr::new((&raw const FIRST).cast_mut());

impl Gate {
    const fn new() -> Gate {
        Gate { state: Mutex::new(State { inside: 0, forking: false }), changed: Condvar::new() }
    }

    fn get() -> &'static Gate {
        // SAFETY: it is the first one or was leaked, and is shared alone.
        unsafe { &*GATE.load(Ordering::Acquire) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, state: MutexGuard<'g, State>) -> MutexGuard<'g, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that is in the compiler.
struct Inside(&'static Gate);

impl Inside {
    fn enter() -> Inside {
        let gate = Gate::get();
        let mut state = gate.lock();
        while state.forking {
            state = gate.wait(state);
        }
        state.inside += 1;
        Inside(gate)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.lock().inside -= 1;
        self.0.changed.notify_all();
    }
}

/// Does work of the compiler without Python's lock; a fork waits for its end.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| {
        let _inside = Inside::enter();
        work()
    })
}

/// Before a fork: waits until no thread is in the compiler, and lets none in.
#[pyfunction]
pub fn _before_fork(py: Python<'_>) {
    py.detach(|| {
        let gate = Gate::get();
        let mut state = gate.lock();
        while state.forking {
            state = gate.wait(state);
        }
        state.forking = true;
        while state.inside > 0 {
            state = gate.wait(state);
        }
    });
}

/// In the parent: others may go on.
#[pyfunction]
pub fn _after_fork_in_parent() {
    let gate = Gate::get();
    gate.lock().forking = false;
    gate.changed.notify_all();
}

/// In the child, which has one thread: it begins anew.
#[pyfunction]
pub fn _after_fork_in_child() {
    GATE.store(Box::into_raw(Box::new(Gate::new())), Ordering::Release);
}

/// Has Python call the module's functions around each fork; once, whatever interpreters load it.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    let py = module.py();
    // Windows has no forks.
    let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? else { return Ok(()) };
    if REGISTERED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let hooks = PyDict::new(py);
    hooks.set_item("before", module.getattr("_before_fork")?)?;
    hooks.set_item("after_in_parent", module.getattr("_after_fork_in_parent")?)?;
    hooks.set_item("after_in_child", module.getattr("_after_fork_in_child")?)?;
    register.call((), Some(&hooks)).map(drop)
}
