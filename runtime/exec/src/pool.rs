//! Persistent worker threads: created when first needed, parked between launches, never more than were asked for.

use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a thread looks for work, or for the end of it, before it sleeps; and how long before it lets other threads
/// of the machine go first.
const SPIN: Duration = Duration::from_millis(1);
const ALONE: Duration = Duration::from_micros(50);

/// Sleeping threads that a launch wakes, and that each of these wakes: sixteen are awake after two steps, and the
/// caller of a small launch pays for three.
const WAKES: [u64; 2] = [3, 4];

thread_local! {
    /// What [`number`] gives.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// This thread's number among those of a launch: 0 is a caller, workers count from 1 on.
pub(crate) fn number() -> usize {
    NUMBER.get()
}

/// A borrowed closure with its lifetime erased. [`Pool::run`] does not return before every worker is done with it.
#[derive(Clone, Copy)]
struct Work(*const (dyn Fn() + Sync));

// SAFETY: the closure behind the pointer is `Sync`, so calling it from another thread is fine; that it still lives is
// `Pool::run`'s obligation.
unsafe impl Send for Work {}

/// The launch at hand: how many more workers may start on it, and how many run it now.
#[derive(Clone, Copy)]
struct Ticket(u64);

impl Ticket {
    const OPEN: u64 = 1 << 32;
    const RUNNING: u64 = 1;

    fn open(self) -> u64 {
        self.0 / Self::OPEN
    }

    fn running(self) -> u64 {
        self.0 % Self::OPEN
    }
}

/// What the caller and the workers share. A launch is offered by its ticket alone, so that workers that spin need no
/// lock; the lock is for those that sleep.
struct Shared {
    ticket: AtomicU64,
    /// What to run: written while nobody runs or may start, read by those that have started.
    work: UnsafeCell<Option<Work>>,
    /// A worker has panicked.
    panicked: AtomicBool,
    /// The pool is going away.
    closing: AtomicBool,
    /// Workers that sleep, or are about to.
    parked: AtomicUsize,
    /// The caller sleeps, or is about to.
    waiting: AtomicBool,
    /// There are more threads than cores: one that spins may keep another from its work.
    crowded: AtomicBool,
    sleep: Mutex<()>,
    /// Signalled when there is work, or at the end.
    start: Condvar,
    /// Signalled when the last worker is done.
    done: Condvar,
}

// SAFETY: `work` is written by the one caller that has the pool, before it offers the ticket and after all that took
// one are done.
unsafe impl Sync for Shared {}

impl Shared {
    fn new() -> Shared {
        Shared {
            ticket: AtomicU64::new(0),
            work: UnsafeCell::new(None),
            panicked: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            parked: AtomicUsize::new(0),
            waiting: AtomicBool::new(false),
            crowded: AtomicBool::new(false),
            sleep: Mutex::default(),
            start: Condvar::default(),
            done: Condvar::default(),
        }
    }

    fn ticket(&self) -> Ticket {
        Ticket(self.ticket.load(SeqCst))
    }

    /// Starts on the launch at hand, if there is one that wants more workers; how many more it wants.
    fn claim(&self) -> Option<u64> {
        let taken = |t| (Ticket(t).open() > 0).then(|| t - Ticket::OPEN + Ticket::RUNNING);
        self.ticket.fetch_update(SeqCst, SeqCst, taken).ok().map(|t| Ticket(t).open() - 1)
    }

    /// Ends a worker's share.
    fn finish(&self) {
        let left = Ticket(self.ticket.fetch_sub(Ticket::RUNNING, SeqCst) - Ticket::RUNNING);
        if left.running() == 0 && self.waiting.load(SeqCst) {
            drop(self.lock());
            self.done.notify_one();
        }
    }

    /// Wakes up to so many workers, if any sleep.
    fn wake(&self, workers: u64) {
        if workers > 0 && self.parked.load(SeqCst) > 0 {
            // Whoever counts as parked holds the lock until it sleeps.
            drop(self.lock());
            (0..workers).for_each(|_| self.start.notify_one());
        }
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        // Nothing that can panic runs under this lock.
        self.sleep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for work and starts on it; none when the pool goes away. Workers spin for a while before they sleep.
    fn next(&self) -> Option<u64> {
        let ready = || self.ticket().open() > 0 || self.closing.load(SeqCst);
        loop {
            if !self.spin(ready) {
                let mut guard = self.lock();
                self.parked.fetch_add(1, SeqCst);
                while !ready() {
                    guard = self.start.wait(guard).unwrap_or_else(PoisonError::into_inner);
                }
                self.parked.fetch_sub(1, SeqCst);
            }
            if self.closing.load(SeqCst) {
                return None;
            }
            if let Some(more) = self.claim() {
                return Some(more);
            }
        }
    }

    /// Waits until no worker runs.
    fn join(&self) {
        let done = || self.ticket().running() == 0;
        if self.spin(done) {
            return;
        }
        let mut guard = self.lock();
        self.waiting.store(true, SeqCst);
        while !done() {
            guard = self.done.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.waiting.store(false, SeqCst);
    }

    /// Looks at a condition again and again for [`SPIN`], and whether it came to hold. Waking a thread that sleeps
    /// takes as long as a small launch, so the next launch of a program or of a loop finds the workers awake.
    fn spin(&self, ready: impl Fn() -> bool) -> bool {
        /// Looks between two readings of the clock.
        const LOOKS: u32 = 32;
        if self.crowded.load(SeqCst) {
            return ready();
        }
        let begin = Instant::now();
        loop {
            for _ in 0..LOOKS {
                if ready() {
                    return true;
                }
                std::hint::spin_loop();
            }
            match begin.elapsed() {
                spun if spun >= SPIN => return false,
                spun if spun >= ALONE => thread::yield_now(),
                _ => {}
            }
        }
    }
}

/// Threads of a launch at most, or one a core where there are more: they stay, and a program that asks for as many as
/// there are numbers would take those of all others on the machine.
const MOST_THREADS: usize = 512;

/// Threads that share the blocks of a grid.
pub struct Pool {
    shared: Arc<Shared>,
    /// Held during a launch; the workers that exist.
    workers: Mutex<Vec<thread::JoinHandle<()>>>,
}

impl Pool {
    /// A pool without workers yet.
    pub fn new() -> Pool {
        Pool { shared: Arc::new(Shared::new()), workers: Mutex::default() }
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

    /// Threads of a launch at most: 512, or one a core where there are more.
    pub fn most_threads() -> usize {
        MOST_THREADS.max(Pool::default_threads())
    }

    /// Runs `work` on the caller and on up to `threads - 1` workers at once, and waits for all of them. `work` must
    /// be complete when it ran once: there may be fewer workers than asked for, and none while another launch holds
    /// them.
    pub fn run(&self, threads: usize, work: &(dyn Fn() + Sync)) {
        let threads = threads.min(Pool::most_threads());
        let Ok(mut workers) = self.workers.try_lock() else { return work() };
        while workers.len() + 1 < threads {
            let shared = self.shared.clone();
            let number = workers.len() + 1;
            match thread::Builder::new().name(format!("ptoc-{number}")).spawn(move || worker(&shared, number)) {
                Ok(handle) => workers.push(handle),
                Err(_) => break,
            }
        }
        if workers.len() >= Pool::default_threads() {
            self.shared.crowded.store(true, SeqCst);
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
        let shared = &*self.shared;
        // SAFETY: nobody runs, and none may start before the ticket is offered.
        unsafe { *shared.work.get() = Some(erased) };
        shared.ticket.store(helpers as u64 * Ticket::OPEN, SeqCst);
        shared.wake(WAKES[0].min(helpers as u64));
        let own = catch_unwind(AssertUnwindSafe(work));
        // The grid is finished, so workers that have not woken yet need not start.
        shared.ticket.fetch_and(Ticket::OPEN - 1, SeqCst);
        shared.join();
        let panicked = shared.panicked.swap(false, SeqCst);
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
        self.shared.closing.store(true, SeqCst);
        drop(self.shared.lock());
        self.shared.start.notify_all();
        for handle in self.workers.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // A worker catches panics, so joining cannot fail; and nothing could be done if it did.
            let _ = handle.join();
        }
    }
}

fn worker(shared: &Shared, number: usize) {
    NUMBER.set(number);
    while let Some(more) = shared.next() {
        shared.wake(WAKES[1].min(more));
        // SAFETY: this share was claimed, so `Pool::run` waits for its end.
        let outcome = catch_unwind(AssertUnwindSafe(|| unsafe {
            if let Some(work) = *shared.work.get() {
                (*work.0)();
            }
        }));
        if outcome.is_err() {
            shared.panicked.store(true, SeqCst);
        }
        shared.finish();
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
    fn workers_sleep_and_wake() {
        let pool = Pool::new();
        let started = AtomicUsize::new(0);
        for round in 0..20 {
            // Half of the launches come when the workers have gone to sleep.
            thread::sleep(if round % 2 == 0 { 5 * SPIN } else { Duration::ZERO });
            let others = AtomicUsize::new(0);
            pool.run(2, &|| {
                started.fetch_add(1, Ordering::Relaxed);
                // The caller leaves the work to the worker.
                if thread::current().name().is_some_and(|n| n.starts_with("ptoc-")) {
                    others.store(1, Ordering::Release);
                }
                while others.load(Ordering::Acquire) == 0 {
                    std::hint::spin_loop();
                }
            });
        }
        assert_eq!(started.into_inner(), 40);
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
