//! A launch allocates nothing, once threads and arenas are there. A binary of its own: it counts for the whole process.

#![allow(clippy::undocumented_unsafe_blocks, reason = "kernels of tests, launched on arrays of theirs")]

use ptoc_abi::Frame;
use ptoc_exec::{Kernel, KernelParts, LaunchArgs, TensorArg};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, and how often it was asked for memory.
struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Grid `params[0] x params[1]`.
unsafe extern "C" fn launch(frame: *const Frame) -> u32 {
    unsafe {
        *(*frame).results = *(*frame).params;
        *(*frame).results.add(1) = *(*frame).params.add(1);
    }
    0
}

/// Adds 1 to byte `(i, j)` of the first tensor.
unsafe extern "C" fn block(frame: *const Frame) -> u32 {
    unsafe {
        let at = *(*frame).coords * *(*frame).params.add(1) + *(*frame).coords.add(1);
        let byte = (*(*frame).tensors).add(at as usize);
        *byte = (*byte).wrapping_add(1);
        *(*frame).arena = 1;
    }
    0
}

#[test]
fn launches_allocate_nothing() {
    let parts = KernelParts {
        non_temporal: 1000,
        name: "count".into(),
        launch,
        block,
        params: 2,
        tensors: 4,
        rank: 2,
        arena: 4096,
        kept: Some(64),
        spread: Vec::new(),
        raster: None,
        prints: Vec::new(),
        code: Box::new(()),
    };
    let kernel = unsafe { Kernel::new(parts) };
    let mut bytes = [6000, 1, 10, 2000].map(|n| vec![0u8; n]);
    let tensors: Vec<TensorArg> = bytes.iter_mut().map(|b| TensorArg::new(b)).collect();
    for threads in [1, 2] {
        for grid in [[1, 1], [4, 16], [60, 100]] {
            let once =
                || unsafe { kernel.launch(LaunchArgs { params: &grid, tensors: &tensors, threads, print: None }) };
            // Threads start when they are needed; a worker that came too late for its arena finds it in a later launch.
            let counts: Vec<usize> = (0..200)
                .map(|_| {
                    let before = COUNT.load(Ordering::Relaxed);
                    once().unwrap();
                    COUNT.load(Ordering::Relaxed) - before
                })
                .collect();
            let some = counts.iter().filter(|&&n| n > 0).count();
            // A few launches may be the first to see a thread started, parked or given its arena: far from each one.
            assert!(some <= if threads == 1 { 2 } else { 20 }, "{threads} threads, {grid:?}: {counts:?}");
        }
    }
    assert_eq!(bytes[0][0], (200u32 * 6 % 256) as u8);
}
