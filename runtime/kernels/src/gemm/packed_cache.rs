//! Packed-operand cache: panels of b that stay for the products that follow.
//!
//! The blocks of a launch multiply by the same parts of an array again and again: the weights of a layer, the keys of a
//! head. Where nothing in the kernel writes the array, a thread packs each part once, as long as there is room. When
//! the room is full all panels are given up, and if none of them was used a second time, none is kept until the launch
//! ends.

use super::{Job, Matrix};

/// Most panels that are kept.
const MOST: usize = 128;

/// What panels were packed from, and how: equal ones are the same bytes for the length of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PackedFrom {
    /// b's first element, bytes from row to row and from column to column.
    at: usize,
    row: isize,
    col: isize,
    /// Steps and columns.
    size: (usize, usize),
    /// The way of packing: nothing else tells two of them apart.
    way: [u16; 4],
}

/// The panels that are there.
#[repr(C, align(64))]
pub(super) struct PackedOperandCache {
    /// Zero at launch entry; the other fields are uninitialised until this is set.
    begun: u64,
    /// The cache of packed operands is off: none of its panels was used a second time.
    off: bool,
    /// Bytes of the room that kept panels take.
    used: usize,
    /// How many panels were found since the first of them was packed.
    found: usize,
    count: usize,
    sources: [PackedFrom; MOST],
    /// Where their panels begin in the room.
    places: [usize; MOST],
}

/// Room for panels, behind [`PackedOperandCache`].
#[derive(Clone, Copy)]
pub(super) struct Room {
    kept: *mut PackedOperandCache,
    /// Bytes.
    size: usize,
}

/// A place for panels.
pub(super) struct PanelSlot {
    pub(super) at: *mut u8,
    /// The panels are packed already.
    pub(super) packed: bool,
}

impl PackedFrom {
    /// Some steps and columns of b, if it may be kept.
    pub(super) fn new(job: &Job, b: &Matrix<*const u8>, size: (usize, usize), way: [u16; 3]) -> Option<PackedFrom> {
        let [x, y, z] = way;
        let way = [x, y, z, job.ab as u16];
        job.launch_invariant.1.then_some(PackedFrom { at: b.at.addr(), row: b.row, col: b.col, size, way })
    }
}

impl Room {
    /// What lies from `at` on, `all` bytes of which [`PackedOperandCache`] and the room take; `at` is aligned to 64.
    pub(super) fn new(at: *mut u8, all: usize) -> Room {
        Room { kept: at.cast(), size: all - size_of::<PackedOperandCache>() }
    }

    /// Where panels of so many bytes go, or are. They stay until the next call; those with a source longer, perhaps.
    ///
    /// # Safety
    /// The memory is there and the caller's, `bytes` are not more than the room, and the panels of a source are packed
    /// before the next call if they are not there.
    pub(super) unsafe fn place(self, source: Option<PackedFrom>, bytes: usize) -> PanelSlot {
        debug_assert!(bytes <= self.size, "{bytes} bytes of panels in {}", self.size);
        let bytes = bytes.next_multiple_of(64).min(self.size);
        // SAFETY: the caller's promise; a struct of zeros is an empty one.
        let (kept, room) = unsafe {
            if (&raw const (*self.kept).begun).read() == 0 {
                self.kept.write_bytes(0, 1);
            }
            (&mut *self.kept, self.kept.add(1).cast::<u8>())
        };
        kept.begun = 1;
        // Another product may have taken more of the room for itself.
        if kept.used > self.size {
            kept.clear();
        }
        if let Some(source) = source.filter(|_| !kept.off) {
            if let Some(n) = kept.sources[..kept.count].iter().position(|s| *s == source) {
                kept.found += 1;
                return PanelSlot { at: room.wrapping_add(kept.places[n]), packed: true };
            }
            if kept.count == MOST || kept.used + bytes > self.size {
                kept.off = kept.found == 0;
                kept.clear();
            }
            if !kept.off {
                let at = kept.used;
                (kept.sources[kept.count], kept.places[kept.count]) = (source, at);
                kept.count += 1;
                kept.used += bytes;
                return PanelSlot { at: room.wrapping_add(at), packed: false };
            }
        }
        if kept.used + bytes > self.size {
            kept.clear();
        }
        PanelSlot { at: room.wrapping_add(kept.used), packed: false }
    }
}

impl PackedOperandCache {
    fn clear(&mut self) {
        (self.used, self.found, self.count) = (0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptoc_tensor::DType;

    fn source(n: usize) -> Option<PackedFrom> {
        Some(PackedFrom { at: n, row: 4, col: 8, size: (3, 5), way: [1, 0, 2, DType::F32 as u16] })
    }

    #[test]
    fn panels_stay_while_there_is_room() {
        let all = size_of::<PackedOperandCache>() + 1024;
        let mut memory = vec![0u64; all / 8 + 8];
        let at = memory.as_mut_ptr().cast::<u8>();
        let at = at.wrapping_add(at.align_offset(64));
        let start = at.wrapping_add(size_of::<PackedOperandCache>()).addr();
        // SAFETY: the memory is there.
        let place = |all: usize, source, bytes| {
            let place = unsafe { Room::new(at, all).place(source, bytes) };
            (place.at.addr() - start, place.packed)
        };
        assert_eq!(place(all, source(1), 300), (0, false));
        assert_eq!(place(all, source(2), 10), (320, false));
        // Others go behind them.
        assert_eq!(place(all, None, 640), (384, false));
        assert_eq!([place(all, source(1), 300), place(all, source(2), 10)], [(0, true), (320, true)]);
        // Or, where that is too much, in their place.
        assert_eq!(place(all, None, 641), (0, false));
        assert_eq!(place(all, source(2), 10), (0, false));
        assert_eq!(place(all, source(2), 10), (0, true));
        // All leave together, and some were found.
        assert_eq!([place(all, source(3), 960), place(all, source(4), 1)], [(64, false), (0, false)]);
        assert_eq!(place(all, source(3), 960), (64, false));
        // With less room those beyond it are gone.
        assert_eq!(place(all - 512, source(3), 100), (0, false));
        assert_eq!(place(all - 512, source(3), 100), (0, true));
    }

    #[test]
    fn panels_that_nobody_finds_are_not_kept() {
        let all = size_of::<PackedOperandCache>() + 1024;
        let mut memory = vec![0u64; all / 8 + 8];
        let at = memory.as_mut_ptr().cast::<u8>();
        let at = at.wrapping_add(at.align_offset(64));
        for launch in 0..2 {
            // SAFETY: the memory is there.
            let place = |source| unsafe { Room::new(at, all).place(source, 400) };
            let first: Vec<bool> = (0..3).map(|n| place(source(n)).packed).collect();
            assert_eq!(first, [false; 3], "launch {launch}");
            assert!(!place(source(2)).packed && !place(source(2)).packed, "all are off");
            // SAFETY: the same.
            unsafe { at.cast::<u64>().write(0) };
        }
    }
}
