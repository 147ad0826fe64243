//! The watchers of a launch's threads, as compiled code calls them.

use ptoc_abi::{Monitor, STOPPED, Watcher};
use std::ffi::c_void;
use std::slice;

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

/// The hook of [`ptoc_abi::Frame::watch`]; `ctx` is a [`Seat`].
///
/// # Safety
/// `ctx` points at a seat that nothing else uses meanwhile, `values` at `count` numbers.
pub(crate) unsafe extern "C" fn tell(ctx: *mut c_void, site: u32, values: *const i64, count: u32) -> u32 {
    // SAFETY: the caller's promise.
    let (seat, values) = unsafe { (&mut *ctx.cast::<Seat<'_>>(), slice::from_raw_parts(values, count as usize)) };
    let goes_on = seat.watcher.as_mut().is_none_or(|watcher| watcher.statement(site, values));
    if goes_on { 0 } else { STOPPED }
}
