//! The end of launches by whoever waits for them: what Ctrl-C is to a program that has called a kernel.
//!
//! Compiled code is not left in the middle. A launch asks between blocks, on the thread that has called it, as seldom
//! as nobody notices either way.

use std::cell::Cell;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

/// How long launches go on before they ask again.
const TURN: Duration = Duration::from_millis(50);
/// The clock is looked at again after this time, as far as the blocks so far tell.
const LOOK: Duration = Duration::from_millis(1);
/// Blocks between two looks, at most.
const MOST: u32 = 1 << 12;

/// What is asked, and when it was asked last.
struct Asked<'a> {
    stop: &'a dyn Fn() -> bool,
    last: Cell<Instant>,
}

thread_local! {
    /// That of this thread; it lives as long as [`interruptible`] runs.
    static ASKED: Cell<Option<NonNull<Asked<'static>>>> = const { Cell::new(None) };
}

/// Puts back what was there before, also where the work panics.
struct Restore(Option<NonNull<Asked<'static>>>);

impl Drop for Restore {
    fn drop(&mut self) {
        ASKED.set(self.0);
    }
}

/// Does work whose launches from this thread ask `stop` from time to time, and end with
/// [`crate::LaunchError::Interrupted`] if it says so.
pub fn interruptible<T>(stop: &dyn Fn() -> bool, work: impl FnOnce() -> T) -> T {
    let asked = Asked { stop, last: Cell::new(Instant::now()) };
    // Only the lifetime is erased: the pointer is taken back before `asked` ends.
    let _restore = Restore(ASKED.replace(Some(NonNull::from(&asked).cast())));
    work()
}

/// The questions of one launch.
pub(crate) struct Interrupts {
    asked: Option<NonNull<Asked<'static>>>,
    /// Blocks until the clock is looked at, and what that was last set to.
    left: u32,
    stride: u32,
    looked: Option<Instant>,
}

impl Interrupts {
    /// Those of this thread, if somebody wants to be asked.
    pub fn here() -> Interrupts {
        Interrupts { asked: ASKED.get(), left: 1, stride: 1, looked: None }
    }

    /// Whether the launch is to end, behind a block.
    pub fn stop(&mut self) -> bool {
        let Some(asked) = self.asked else { return false };
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        // SAFETY: `interruptible` runs on this thread, below this call: it has the value as long as that is so.
        let asked = unsafe { asked.as_ref() };
        let now = Instant::now();
        if let Some(looked) = self.looked {
            let faster = now.duration_since(looked) < LOOK;
            self.stride = if faster { (self.stride * 2).min(MOST) } else { (self.stride / 2).max(1) };
        }
        self.looked = Some(now);
        self.left = self.stride;
        if now.duration_since(asked.last.get()) < TURN {
            return false;
        }
        asked.last.set(now);
        (asked.stop)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_launch_asks_from_time_to_time_and_only_inside() {
        assert!(!Interrupts::here().stop());
        let count = Cell::new(0);
        let stop = || {
            count.set(count.get() + 1);
            count.get() == 2
        };
        let begin = Instant::now();
        interruptible(&stop, || {
            let mut interrupts = Interrupts::here();
            while !interrupts.stop() {
                std::hint::spin_loop();
            }
        });
        assert_eq!(count.get(), 2);
        assert!(begin.elapsed() >= 2 * TURN);
        assert!(!Interrupts::here().stop());
    }

    #[test]
    fn launches_of_one_work_share_the_clock() {
        let count = Cell::new(0);
        let stop = || {
            count.set(count.get() + 1);
            true
        };
        let stopped = interruptible(&stop, || {
            (0..1000).any(|_| {
                std::thread::sleep(Duration::from_millis(1));
                Interrupts::here().stop()
            })
        });
        assert!(stopped);
        assert_eq!(count.get(), 1);
    }
}
