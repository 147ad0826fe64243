//! Who is told what a launch does before it does it, and may end it: how a sanitizer looks on.

use crate::frame::STOPPED;
use std::ffi::c_void;
use std::slice;

/// Looks on a launch of a kernel whose code tells what it does ([`crate::Kernel::launch_watched`]).
pub trait Monitor: Sync {
    /// Looks on one of the launch's threads.
    fn watcher(&self) -> Box<dyn Watcher + '_>;
}

/// Looks on one thread of a launch.
pub trait Watcher {
    /// The thread begins with a block: its number in the order of the launch, and its coordinates in the grid.
    fn block(&mut self, number: u64, coords: &[i64]);
    /// A statement is about to be executed: its number, and the values that it works with, as the compiler and the
    /// monitor have agreed. False ends the launch.
    fn statement(&mut self, site: u32, values: &[i64]) -> bool;
}

/// A thread's watcher as compiled code calls it.
pub(crate) struct Seat<'m> {
    watcher: Option<Box<dyn Watcher + 'm>>,
}

impl<'m> Seat<'m> {
    pub(crate) fn new(monitor: Option<&'m dyn Monitor>) -> Seat<'m> {
        Seat { watcher: monitor.map(Monitor::watcher) }
    }

    pub(crate) fn block(&mut self, number: u64, coords: &[i64]) {
        if let Some(watcher) = &mut self.watcher {
            watcher.block(number, coords);
        }
    }
}

/// The hook of [`crate::Frame::watch`]; `ctx` is a [`Seat`].
///
/// # Safety
/// `ctx` points at a seat that nothing else uses meanwhile, `values` at `count` numbers.
pub(crate) unsafe extern "C" fn tell(ctx: *mut c_void, site: u32, values: *const i64, count: u32) -> u32 {
    // SAFETY: the caller's promise.
    let (seat, values) = unsafe { (&mut *ctx.cast::<Seat<'_>>(), slice::from_raw_parts(values, count as usize)) };
    let goes_on = seat.watcher.as_mut().is_none_or(|watcher| watcher.statement(site, values));
    if goes_on { 0 } else { STOPPED }
}
