//! An allocator that counts. It is a crate of its own to be optimised: a test that compiles makes many small
//! allocations, and a counter that is not inlined was a twentieth of the time of all tests.

use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

thread_local! {
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

/// The bytes that this thread was given.
pub fn allocated() -> u64 {
    ALLOCATED.get()
}

/// [`MiMalloc`], with a count of what it gives.
#[derive(Debug)]
pub struct Counting;

// SAFETY: everything is the other allocator's; the counter is a plain cell without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + layout.size() as u64);
        // SAFETY: the caller's promises are those that the other allocator asks for.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + layout.size() as u64);
        // SAFETY: as above.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { MiMalloc.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + size as u64);
        // SAFETY: as above.
        unsafe { MiMalloc.realloc(at, layout, size) }
    }
}
