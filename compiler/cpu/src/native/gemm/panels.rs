//! Which panels are packed, and in which order blocks are computed.
//!
//! A stretch of k by some columns of b is packed into panels as wide as a block, and stays in the second-level cache
//! while strips of a pass by: a strip has as many rows as a block, lies in the first-level cache, and is read where it is
//! unless its elements have to be converted or those of one row are apart. Packing b pays from some rows on; below, blocks
//! read it in place.
//!
//! Everything is counted in groups of k: four bytes of a row of a, four bytes of a column of b. That is one f32, or four
//! i8. A panel has all columns of group 0, then of group 1, and so on.

use super::blocks::{Block, Version};
use super::kept::{Kept, Room, Source};
use super::plain::at;
use super::{Job, Matrix, cache};

/// Groups of k that blocks take at once: a strip of a then takes a quarter of a first-level cache of 48 KiB.
pub(super) const STRETCH: usize = 512;
/// Most columns and rows of a block.
const COLUMNS: usize = 64;
pub(super) const ROWS: usize = 12;
/// From this many rows on, packing b pays.
const PACKED_ROWS: usize = 20;
/// Bytes of b that stay in the cache by themselves, so that rows of a may pass by in any order.
const RESIDENT: usize = 128 << 10;
/// Steps of k at once where b comes from memory, once: so many rows of it are read side by side.
pub(super) const SIDE_BY_SIDE: usize = 16;

/// Bytes of the packed panels of b.
pub(super) fn panel_bytes() -> usize {
    (cache::second_level() / 8 * 5).max((STRETCH + 1) * COLUMNS * 4)
}

/// Bytes of a strip of a, its rows rounded up to vectors.
pub(super) const STRIP: usize = STRETCH * 16 * 4;

/// Bytes of panels that are kept for the products that follow where the second-level cache has less than half of it: more than it
/// holds, as they are faster read from the next one than packed again.
const KEPT: usize = 2 << 20;

/// Bytes of room for panels.
fn room_bytes() -> usize {
    if cache::second_level() < KEPT / 2 { KEPT.max(panel_bytes()) } else { panel_bytes() }
}

/// Bytes that a product needs: panels of b, and a strip of a.
pub(super) fn scratch() -> usize {
    size_of::<Kept>() + room_bytes() + STRIP
}

/// Room for panels in a product's scratch, and for so many bytes behind it.
pub(super) fn room(job: &Job, behind: usize) -> (Room, *mut u8) {
    let all = scratch() - behind;
    (Room::new(job.scratch, all), job.scratch.wrapping_add(all))
}

/// `whole` in parts of at most `most`, about equal: their size, rounded up to `unit`.
pub(super) fn even(whole: usize, most: usize, unit: usize) -> usize {
    let parts = whole.div_ceil(most).max(1);
    whole.div_ceil(parts).next_multiple_of(unit).max(1)
}

/// The part of a matrix from element (i, j) on.
pub(super) fn shifted(m: Matrix<*const u8>, i: usize, j: usize) -> Matrix<*const u8> {
    Matrix { at: at(&m, i, j), ..m }
}

/// How elements of some type are packed.
pub(super) trait Way {
    /// Steps of k in a group.
    const STEPS: usize;
    /// Rows behind the groups of a panel: one, if there is a row to add to every row of the result.
    const MORE: usize;
    /// Its blocks.
    fn version(&self) -> &'static Version;
    /// Packs k steps of the columns of one panel, the first of which is b's.
    ///
    /// # Safety
    /// The panel has room, and the elements are there.
    unsafe fn panel(&self, job: &Job, b: Matrix<*const u8>, k: usize, to: Panel);
    /// Some rows of k steps of a as blocks read them: where they are, or in the strip.
    ///
    /// # Safety
    /// The strip has room for 16 by [`STRETCH`] groups.
    unsafe fn strip(&self, job: &Job, a: Matrix<*const u8>, rows: usize, k: usize, to: *mut u8) -> Matrix<*const u8>;
}

/// Asks for some bytes, to be in the second-level cache soon.
pub(super) fn fetch(at: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..bytes).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a hint; no address is wrong.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.wrapping_add(line).cast()) };
    }
}

/// Panels of some columns.
#[derive(Clone, Copy)]
struct Panels {
    at: *mut u8,
    /// Columns of a panel, of a vector.
    width: usize,
    lanes: usize,
    /// Rows of words of a panel.
    deep: usize,
}

/// A panel.
#[derive(Clone, Copy)]
pub(super) struct Panel {
    pub(super) at: *mut u8,
    /// First column and columns, and those with what fills the last vector.
    pub(super) first: usize,
    pub(super) columns: usize,
    pub(super) padded: usize,
}

impl Panels {
    /// The panels of n columns.
    fn each(self, n: usize) -> impl Iterator<Item = Panel> {
        (0..n).step_by(self.width).map(move |first| {
            let columns = self.width.min(n - first);
            let padded = columns.next_multiple_of(self.lanes);
            Panel { at: self.at.wrapping_add(4 * first * self.deep), first, columns, padded }
        })
    }
}

/// Vectors of a block's columns, and its rows, for n columns.
fn shape(version: &Version, n: usize) -> (usize, usize) {
    let vectors = n.div_ceil(version.lanes).clamp(1, version.rows.len());
    (vectors, version.rows[vectors - 1])
}

/// A stretch of k.
struct Stretch<'j> {
    job: &'j Job,
    version: &'static Version,
    /// Is it the first?
    first: bool,
    groups: usize,
}

/// What a block reads of b.
struct Columns {
    at: *const u8,
    row: isize,
    /// A row to add; null for none.
    plus: *const u8,
    packed: bool,
}

impl Stretch<'_> {
    /// One block: first row and rows, first column and columns; its part of a and of b.
    unsafe fn block(&self, (i, rows): (usize, usize), (j, columns): (usize, usize), a: Matrix<*const u8>, b: &Columns) {
        let job = self.job;
        let lanes = self.version.lanes;
        let vectors = columns.div_ceil(lanes);
        let last = columns - (vectors - 1) * lanes;
        let d = job.d.at.wrapping_offset(i as isize * job.d.row + 4 * j as isize);
        let (start, start_row) = if self.first { job.starts(i, j) } else { (d.cast_const(), job.d.row) };
        let block = Block {
            k: self.groups,
            d,
            d_row: job.d.row,
            start,
            start_row,
            a: a.at,
            a_row: a.row,
            a_col: a.col,
            b: b.at,
            b_row: b.row,
            plus: b.plus,
            last,
        };
        // SAFETY: the block lies inside the matrices, and the machine has the version's instructions.
        unsafe { self.version.code(rows, vectors, last, b.packed)(&block) }
    }
}

/// Does a product whose operands can be read in place pack nothing, and if so, how many steps does it take at once?
pub(super) fn in_place(job: &Job) -> Option<usize> {
    let bytes = job.k.saturating_mul(job.n).saturating_mul(4);
    if job.m < PACKED_ROWS && bytes > RESIDENT {
        Some(SIDE_BY_SIDE)
    } else {
        (job.m < PACKED_ROWS || (job.m <= 128 && bytes <= RESIDENT / 2)).then_some(STRETCH)
    }
}

/// Both operands in place: all columns for `stretch` steps at a time. Groups are single steps.
///
/// # Safety
/// As for the routine; columns of b, d and the start are contiguous, and blocks of the version read both as they are.
pub(super) unsafe fn unpacked(job: &Job, version: &'static Version, stretch: usize) {
    // As wide a block as takes all rows at once, if there is one.
    let (widest, _) = shape(version, job.n);
    let vectors = (1..=widest).rev().find(|v| version.rows[v - 1] >= job.m).unwrap_or(widest);
    let rows = even(job.m, version.rows[vectors - 1], 1);
    let width = vectors * version.lanes;
    let mut from = 0;
    loop {
        let part = Stretch { job, version, first: from == 0, groups: stretch.min(job.k - from) };
        for j in (0..job.n).step_by(width) {
            let b = shifted(job.b, from, j);
            if stretch == SIDE_BY_SIDE {
                // Three blocks ahead is as much as memory delivers at a time; beyond a row's end the next one begins.
                let ahead = shifted(job.b, from, j + 3 * width);
                (0..part.groups).for_each(|p| fetch(at(&ahead, p, 0), 4 * width));
            }
            let b = Columns { at: b.at, row: b.row, plus: std::ptr::null(), packed: false };
            for i in (0..job.m).step_by(rows) {
                let (r, c) = (rows.min(job.m - i), width.min(job.n - j));
                // SAFETY: the block lies inside the matrices.
                unsafe { part.block((i, r), (j, c), shifted(job.a, i, from), &b) };
            }
        }
        from += stretch;
        if from >= job.k {
            return;
        }
    }
}

/// b in panels.
///
/// # Safety
/// As for the routine; columns of d and the start are contiguous.
pub(super) unsafe fn packed<W: Way>(job: &Job, way: &W) {
    let version = way.version();
    let (vectors, most) = shape(version, job.n);
    let width = vectors * version.lanes;
    let groups = even(job.k.div_ceil(W::STEPS), STRETCH, 1);
    let stretch = groups * W::STEPS;
    let deep = groups + W::MORE;
    let columns = even(job.n, (panel_bytes() / 4 / deep / width).max(1) * width, width);
    let (room, rows) = room(job, STRIP);
    // Strips of about equal height.
    let strips = job.m.div_ceil(most);
    let (height, higher) = (job.m / strips, job.m % strips);
    for first in (0..job.n).step_by(columns) {
        let n = columns.min(job.n - first);
        let mut from = 0;
        loop {
            let k = stretch.min(job.k - from);
            let groups = k.div_ceil(W::STEPS);
            let deep = groups + W::MORE;
            let b = shifted(job.b, from, first);
            let source = Source::new(job, &b, (k, n), [W::STEPS as u16, W::MORE as u16, width as u16]);
            let part = Stretch { job, version, first: from == 0, groups };
            // SAFETY: the panels have room for so many groups by n, and the strip for its rows; blocks lie inside the
            // matrices.
            unsafe {
                let place = room.place(source, 4 * n.next_multiple_of(version.lanes) * deep);
                let panels = Panels { at: place.at, width, lanes: version.lanes, deep };
                for panel in panels.each(n).filter(|_| !place.packed) {
                    way.panel(job, shifted(b, 0, panel.first), k, panel);
                }
                let mut i = 0;
                for number in 0..strips {
                    let r = height + usize::from(number < higher);
                    let a = way.strip(job, shifted(job.a, i, from), r, k, rows);
                    // While these rows are computed, the next ones are fetched, some of them for each block.
                    let ahead = shifted(job.a, i + r, from);
                    let mut fetched = 0;
                    for panel in panels.each(n) {
                        if number + 1 < strips && n > width && job.a.col == job.ab.size() as isize {
                            let until = (panel.first + panel.columns) * r / n;
                            (fetched..until).for_each(|r| fetch(at(&ahead, r, 0), k * job.ab.size() as usize));
                            fetched = until;
                        }
                        if from > 0 && panel.first + panel.columns < n {
                            let next = first + panel.first + panel.columns;
                            let d = job.d.at.wrapping_offset(i as isize * job.d.row + 4 * next as isize);
                            (0..r as isize).for_each(|r| fetch(d.wrapping_offset(r * job.d.row), 4 * panel.columns));
                        }
                        let (at, row) = (panel.at.cast_const(), 4 * panel.padded);
                        let plus = if W::MORE == 0 { std::ptr::null() } else { at.wrapping_add(groups * row) };
                        let b = Columns { at, row: row as isize, plus, packed: true };
                        part.block((i, r), (first + panel.first, panel.columns), a, &b);
                    }
                    i += r;
                }
            }
            from += stretch;
            if from >= job.k {
                break;
            }
        }
    }
}
