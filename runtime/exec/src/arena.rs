//! One arena a thread: allocated when a kernel first needs it, kept for all later launches on that thread.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::Cell;
use std::ptr::null_mut;

/// Every space is aligned to this.
pub const ARENA_ALIGN: usize = 64;

/// Bytes for the spaces of one running block.
pub(crate) struct Arena {
    ptr: *mut u8,
    size: usize,
}

thread_local! {
    static KEPT: Cell<Arena> = const { Cell::new(Arena::EMPTY) };
}

impl Arena {
    const EMPTY: Arena = Arena { ptr: null_mut(), size: 0 };

    /// This thread's arena, made at least `size` bytes large. `None` when memory is refused. Taken out of its slot
    /// while in use, so a launch inside a print sink gets another one.
    pub(crate) fn take(size: u64) -> Option<Arena> {
        let size = usize::try_from(size).ok()?;
        let kept = KEPT.replace(Arena::EMPTY);
        if kept.size >= size {
            return Some(kept);
        }
        drop(kept);
        let layout = Layout::from_size_align(size, ARENA_ALIGN).ok()?;
        // SAFETY: `size` is not zero here, because an arena of size 0 always satisfies a request for 0.
        let ptr = unsafe { alloc_zeroed(layout) };
        if ptr.is_null() { None } else { Some(Arena { ptr, size }) }
    }

    /// Leaves the arena to this thread's next launch.
    pub(crate) fn put_back(self) {
        // During thread exit the slot may be gone; then the arena is freed here.
        let freed = KEPT.try_with(|slot| {
            let other = slot.replace(Arena::EMPTY);
            let (keep, free) = if other.size > self.size { (other, self) } else { (self, other) };
            slot.set(keep);
            free
        });
        drop(freed);
    }

    /// Its first byte; null when the size is 0.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.ptr
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if !self.ptr.is_null() {
            // SAFETY: `ptr` came from `alloc_zeroed` with exactly this layout, which was valid then.
            unsafe { dealloc(self.ptr, Layout::from_size_align_unchecked(self.size, ARENA_ALIGN)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_and_grown() {
        let a = Arena::take(100).unwrap();
        let first = a.as_ptr();
        assert_eq!(first as usize % ARENA_ALIGN, 0);
        a.put_back();
        let again = Arena::take(64).unwrap();
        assert_eq!(again.as_ptr(), first, "a smaller request reuses the arena");
        let nested = Arena::take(64).unwrap();
        assert_ne!(nested.as_ptr(), first, "a nested launch has its own");
        nested.put_back();
        again.put_back();
        assert_eq!(Arena::take(100).unwrap().as_ptr(), first, "the larger one is kept");
        assert!(Arena::take(u64::MAX).is_none());
        assert!(Arena::take(0).is_some());
    }
}
