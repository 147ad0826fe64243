//! Pass timing: how long each pass took, for `--time-passes`.
//!
//! Passes are functions that know nothing of time. Their order notes the time of each on its thread; whoever called
//! the pipeline takes the notes.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// A pass that has run.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// `placement`
    pub name: &'static str,
    /// When it began.
    pub begin: Instant,
    /// How long it took.
    pub length: Duration,
}

thread_local! {
    /// A pass is running. Passes that it runs itself, to try a repair, are part of its time.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static TIMED: RefCell<Vec<Timed>> = const { RefCell::new(Vec::new()) };
}

/// Notes kept at most, should nobody take them.
const KEPT: usize = 4096;

/// Runs a pass and notes its time.
pub fn pass<T>(name: &'static str, run: impl FnOnce() -> T) -> T {
    if INSIDE.replace(true) {
        return run();
    }
    let begin = Instant::now();
    let result = run();
    let length = begin.elapsed();
    INSIDE.set(false);
    TIMED.with_borrow_mut(|timed| {
        if timed.len() < KEPT {
            timed.push(Timed { name, begin, length });
        }
    });
    result
}

/// Takes the notes of this thread's passes, in the order in which they ended.
pub fn take() -> Vec<Timed> {
    TIMED.take()
}
