//! Persistent worker threads: created when first needed, parked between launches, never more than were asked for.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

/// A borrowed closure with its lifetime erased. [`Pool::run`] does not return before every worker is done with it.
#[derive(Clone, Copy)]
struct Work(*const (dyn Fn() + Sync));

// SAFETY: the closure behind the pointer is `Sync`, so calling it from another thread is fine; that it still lives is
// `Pool::run`'s obligation.
unsafe impl Send for Work {}

#[derive(Default)]
struct State {
    /// The work at hand and how many workers may still start on it.
    work: Option<(Work, usize)>,
    /// Workers that run it now.
    running: usize,
    /// A worker has panicked.
    panicked: bool,
    /// The pool is going away.
    closing: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Signalled when there is work, or at the end.
    start: Condvar,
    /// Signalled when a worker is done.
    done: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Threads that share the blocks of a grid.
pub struct Pool {
    shared: Arc<Shared>,
    /// Held during a launch; the workers that exist.
    workers: Mutex<Vec<thread::JoinHandle<()>>>,
}

impl Pool {
    /// A pool without workers yet.
    pub fn new() -> Pool {
        Pool { shared: Arc::default(), workers: Mutex::default() }
    }

    /// The process's pool. After a fork the child has none of its parent's threads, so it gets a pool of its own; the
    /// parent's, whose locks may be held by threads that are not there, is left alone.
    pub fn global() -> &'static Pool {
        struct Owned {
            process: u32,
            pool: Pool,
        }
        static CURRENT: AtomicPtr<Owned> = AtomicPtr::new(null_mut());
        let process = std::process::id();
        let mut seen = CURRENT.load(Ordering::Acquire);
        loop {
            // SAFETY: what is put there is never freed, and not changed.
            if let Some(current) = unsafe { seen.as_ref() }.filter(|current| current.process == process) {
                return &current.pool;
            }
            let new = Box::into_raw(Box::new(Owned { process, pool: Pool::new() }));
            match CURRENT.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => seen = new,
                Err(other) => {
                    // SAFETY: it was made above, and nobody else has seen it.
                    drop(unsafe { Box::from_raw(new) });
                    seen = other;
                }
            }
        }
    }

    /// How many threads a launch uses when none are named. Asking the system reads files and takes 9 us, as long as a
    /// small launch, so it is asked once.
    pub fn default_threads() -> usize {
        static CORES: OnceLock<usize> = OnceLock::new();
        *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
    }

    /// Runs `work` on the caller and on up to `threads - 1` workers at once, and waits for all of them. `work` must
    /// be complete when it ran once: there may be fewer workers than asked for, and none while another launch holds
    /// them.
    pub fn run(&self, threads: usize, work: &(dyn Fn() + Sync)) {
        let Ok(mut workers) = self.workers.try_lock() else { return work() };
        while workers.len() + 1 < threads {
            let shared = self.shared.clone();
            let name = format!("ptoc-{}", workers.len() + 1);
            match thread::Builder::new().name(name).spawn(move || worker(&shared)) {
                Ok(handle) => workers.push(handle),
                Err(_) => break,
            }
        }
        let helpers = workers.len().min(threads.saturating_sub(1));
        if helpers == 0 {
            return work();
        }
        // SAFETY: only the lifetime changes. The pointer is used by workers between the next line and the end of the
        // wait below, which is reached even if the caller's own share panics.
        let erased = Work(unsafe {
            std::mem::transmute::<*const (dyn Fn() + Sync + '_), *const (dyn Fn() + Sync + 'static)>(work)
        });
        self.shared.lock().work = Some((erased, helpers));
        // Whoever takes a share wakes others, so the caller of a small launch pays for one wake, and is done with all
        // blocks before a second would have come.
        self.shared.start.notify_one();
        let own = catch_unwind(AssertUnwindSafe(work));
        let mut state = self.shared.lock();
        // The grid is finished, so workers that have not woken yet need not start.
        state.work = None;
        while state.running > 0 {
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let panicked = std::mem::take(&mut state.panicked);
        drop(state);
        drop(workers);
        if let Err(panic) = own {
            resume_unwind(panic);
        }
        assert!(!panicked, "a worker thread panicked");
    }
}

impl Default for Pool {
    fn default() -> Pool {
        Pool::new()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.start.notify_all();
        for handle in self.workers.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // A worker catches panics, so joining cannot fail; and nothing could be done if it did.
            let _ = handle.join();
        }
    }
}

fn worker(shared: &Shared) {
    let mut state = shared.lock();
    loop {
        if state.closing {
            return;
        }
        let Some((work, left)) = state.work else {
            state = shared.start.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        state.work = (left > 1).then_some((work, left - 1));
        state.running += 1;
        drop(state);
        // Two each: sixteen threads are awake after four steps.
        (1..left.min(3)).for_each(|_| shared.start.notify_one());
        // SAFETY: `running` was raised under the lock while the work was offered, so `Pool::run` still waits.
        let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { (*work.0)() }));
        state = shared.lock();
        state.running -= 1;
        state.panicked |= outcome.is_err();
        shared.done.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_item_once_for_any_thread_count() {
        let pool = Pool::new();
        for threads in [1, 2, 3, 8, 2, 1] {
            for _ in 0..50 {
                let next = AtomicUsize::new(0);
                let sum = AtomicUsize::new(0);
                pool.run(threads, &|| {
                    loop {
                        let item = next.fetch_add(1, Ordering::Relaxed);
                        if item >= 100 {
                            break;
                        }
                        sum.fetch_add(item, Ordering::Relaxed);
                    }
                });
                assert_eq!(sum.into_inner(), 4950);
            }
        }
        assert_eq!(pool.workers.lock().unwrap().len(), 7);
    }

    #[test]
    fn a_launch_inside_a_launch_runs_on_its_own_thread() {
        let pool = Pool::new();
        let inner = AtomicUsize::new(0);
        let once = AtomicUsize::new(0);
        pool.run(2, &|| {
            if once.fetch_add(1, Ordering::Relaxed) == 0 {
                pool.run(2, &|| {
                    inner.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(inner.into_inner(), 1);
    }
}
