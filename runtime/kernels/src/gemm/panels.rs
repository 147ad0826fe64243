//! Packing: which panels are packed, and in which order blocks are computed.
//!
//! A stretch of k by some columns of b is packed into panels as wide as a block, and stays in the second-level cache
//! while strips of a pass by: a strip has as many rows as a block, lies in the first-level cache, and is read where it
//! is unless its elements have to be converted or those of one row are apart. Packing b pays from some rows on; below,
//! blocks read it in place.
//!
//! Everything is counted in groups of k: four bytes of a row of a, four bytes of a column of b. That is one f32, or
//! four i8. A panel has all columns of group 0, then of group 1, and so on.

use super::super::LINE;
use super::macro_kernel::{Ahead, Columns, KcBlock, StripSchedule, Strips, fetch};
use super::micro_kernel::Version;
use super::packed_cache::{PackedFrom, PackedOperandCache, Room};
use super::plain::at;
use super::{Job, Matrix, cache};

/// Groups of k that blocks take at once: a strip of a then takes a quarter of a first-level cache of 48 KiB.
pub(super) const KC: usize = 512;
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
    (cache::second_level() / 8 * 5).max((KC + 1) * COLUMNS * 4)
}

/// Bytes of a strip of a, its rows rounded up to vectors.
pub(super) const STRIP: usize = KC * 16 * 4;

/// Bytes of panels that are kept for the products that follow, at least: they are faster read from the cache behind the
/// second level than packed again.
const KEPT: usize = 2 << 20;

/// Bytes of room for panels.
pub(super) fn room_bytes() -> usize {
    KEPT.max(panel_bytes())
}

/// Bytes that a product needs: panels of b, and a strip of a.
pub(super) fn scratch() -> usize {
    size_of::<PackedOperandCache>() + room_bytes() + STRIP
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
    /// Packs k steps of the panels of n columns, the first of which is b's.
    ///
    /// # Safety
    /// As for [`Way::panel`].
    unsafe fn panels(&self, job: &Job, b: Matrix<*const u8>, k: usize, n: usize, to: Panels) {
        for panel in to.each(n) {
            // SAFETY: the caller's promise.
            unsafe { self.panel(job, shifted(b, 0, panel.first), k, panel) };
        }
    }
    /// Some rows of k steps of a as blocks read them: where they are, or in the strip.
    ///
    /// # Safety
    /// The strip has room for 16 by [`KC`] groups.
    unsafe fn strip(&self, job: &Job, a: Matrix<*const u8>, rows: usize, k: usize, to: *mut u8) -> Matrix<*const u8>;
}

/// Panels of some columns.
#[derive(Clone, Copy)]
pub(super) struct Panels {
    pub(super) at: *mut u8,
    /// Columns of a panel, of a vector.
    pub(super) width: usize,
    pub(super) lanes: usize,
    /// Rows of words of a panel.
    pub(super) deep: usize,
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
    pub(super) fn each(self, n: usize) -> impl Iterator<Item = Panel> {
        (0..n.div_ceil(self.width)).map(move |number| {
            let first = number * self.width;
            let columns = self.width.min(n - first);
            let padded = if columns == self.width { columns } else { columns.next_multiple_of(self.lanes) };
            Panel { at: self.at.wrapping_add(4 * first * self.deep), first, columns, padded }
        })
    }
}

/// Vectors of a block's columns, and its rows, for n columns.
pub(super) fn shape(version: &Version, n: usize) -> (usize, usize) {
    let vectors = n.div_ceil(version.lanes).clamp(1, version.rows.len());
    (vectors, version.rows[vectors - 1])
}

/// How many steps a product takes at once that packs nothing, as its operands can be read in place. `None` if it packs.
pub(super) fn in_place(job: &Job) -> Option<usize> {
    let bytes = job.k.saturating_mul(job.n).saturating_mul(4);
    if job.m < PACKED_ROWS && bytes > RESIDENT {
        Some(SIDE_BY_SIDE)
    } else {
        (job.m < PACKED_ROWS || (job.m <= 128 && bytes <= RESIDENT / 2)).then_some(KC)
    }
}

/// Both operands in place: all columns for `kc_block` steps at a time. Groups are single steps.
///
/// # Safety
/// As for the routine; columns of b, d and the start are contiguous, and blocks of the version read both as they are.
pub(super) unsafe fn unpacked(job: &Job, version: &'static Version, kc_block: usize) {
    // As wide a block as takes all rows at once, if there is one.
    let (widest, _) = shape(version, job.n);
    let vectors = (1..=widest).rev().find(|v| version.rows[v - 1] >= job.m).unwrap_or(widest);
    let rows = even(job.m, version.rows[vectors - 1], 1);
    let width = vectors * version.lanes;
    let mut from = 0;
    loop {
        let part = KcBlock { job, version, first: from == 0, groups: kc_block.min(job.k - from) };
        for j in (0..job.n).step_by(width) {
            let b = shifted(job.b, from, j);
            if kc_block == SIDE_BY_SIDE {
                // Three blocks ahead is as much as memory delivers at a time; behind the last column come the next
                // steps. What lies beside these columns is another call's, on another core.
                let (steps, column) = ahead(j + 3 * width, job.n.next_multiple_of(width));
                let ahead = shifted(job.b, from + steps * kc_block, column);
                (0..part.groups).for_each(|p| fetch(at(&ahead, p, 0), 4 * width));
            }
            let b = Columns::new(b.at, b.row);
            for i in (0..job.m).step_by(rows) {
                let (r, c) = (rows.min(job.m - i), width.min(job.n - j));
                // SAFETY: the block lies inside the matrices.
                unsafe { part.code(r, c, false)(&part.block(i, (j, c), shifted(job.a, i, from), &b)) };
            }
        }
        from += kc_block;
        if from >= job.k {
            return;
        }
    }
}

/// Where a column is that may lie behind the last one: so many stretches of steps on, and there at this column.
fn ahead(column: usize, columns: usize) -> (usize, usize) {
    (column / columns, column % columns)
}

/// b in panels.
///
/// # Safety
/// As for the routine; columns of d and the start are contiguous.
pub(super) unsafe fn packed<W: Way>(job: &Job, way: &W) {
    let version = way.version();
    let (vectors, most) = shape(version, job.n);
    let width = vectors * version.lanes;
    let groups = even(job.k.div_ceil(W::STEPS), KC, 1);
    let kc_block = groups * W::STEPS;
    let deep = groups + W::MORE;
    let columns = even(job.n, (panel_bytes() / 4 / deep / width).max(1) * width, width);
    let (room, rows) = room(job, STRIP);
    let strips = Strips { first: 0, rows: job.m, most };
    let height = strips.height();
    // Results that no near cache has are asked for a strip ahead: half a line is not stored without the other half.
    let far = 4 * version.lanes < LINE && 4 * job.m * job.n > cache::second_level();
    for first in (0..job.n).step_by(columns) {
        let n = columns.min(job.n - first);
        let mut from = 0;
        loop {
            let k = kc_block.min(job.k - from);
            let groups = k.div_ceil(W::STEPS);
            let deep = groups + W::MORE;
            let b = shifted(job.b, from, first);
            let source = PackedFrom::new(job, &b, (k, n), [W::STEPS as u16, W::MORE as u16, width as u16]);
            let part = KcBlock { job, version, first: from == 0, groups };
            // SAFETY: the panels have room for so many groups by n, and the strip for its rows; blocks lie inside the
            // matrices.
            unsafe {
                let place = room.place(source, 4 * n.next_multiple_of(version.lanes) * deep);
                let panels = Panels { at: place.at, width, lanes: version.lanes, deep };
                if !place.packed {
                    way.panels(job, b, k, n, panels);
                }
                let size = job.ab.size();
                // The next strip's rows, where they are contiguous.
                let asks = n > width && job.a.col == size as isize;
                let share = most.div_ceil(n.div_ceil(width));
                let walk = StripSchedule::new(&part, panels, (first, n));
                let codes = [walk.code(height), walk.code((height + 1).min(most))];
                for (i, r) in strips.each() {
                    let code = codes[usize::from(r > height)];
                    let a = way.strip(job, shifted(job.a, i, from), r, k, rows);
                    let next = if asks && i + r < job.m { r } else { 0 };
                    let d = if far { r as isize * job.d.row } else { 4 * width as isize };
                    let d_bytes = if far || (from > 0 && n > width) { 4 * width } else { 0 };
                    let ahead =
                        Ahead { a: shifted(job.a, i + r, from), rows: next, share, bytes: k * size, d, d_bytes };
                    walk.strip((i, r), code, a, ahead);
                }
            }
            from += kc_block;
            if from >= job.k {
                break;
            }
        }
    }
}
