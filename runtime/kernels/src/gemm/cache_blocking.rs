//! Cache blocking (MC, NC): large products where registers are few: b is packed by slabs as large as the room for
//! panels, which the third-level cache holds, and a by blocks of rows that the second-level one holds. All strips of a
//! block pass by a panel, then by the next one.
//!
//! A block of sums as high as sixteen registers allow takes a step in six cycles, and reads 64 bytes of b and 24 of a
//! for it. So the less a strip shares the first-level cache with others the better: packed, its elements lie behind one
//! another, where rows that are a multiple of 4096 bytes apart would drive each other out.

use super::super::{LINE, simd::columns_of};
use super::floats::Floats;
use super::macro_kernel::{Columns, KcBlock, Strips, fetch};
use super::micro_kernel::Version;
use super::packed_cache::PackedFrom;
use super::panels::{self, KC, Panels, STRIP, Way, even, shape, shifted};
use super::plain::at;
use super::{Job, Matrix, cache};
use ptoc_tensor::DType;
use std::arch::x86_64::_mm256_storeu_ps;

/// Fewer rows than so many times those of a block do not pay for a slab.
const LEAST: usize = 2;

/// Bytes of a block of a.
fn block_bytes() -> usize {
    cache::second_level() / 16 * 5
}

/// Rows of a block of a for so many steps, a multiple of a strip's.
pub(super) fn block_rows(high: usize, k: usize) -> usize {
    (block_bytes() / 4 / k.max(1) / high).max(1) * high
}

/// Steps of k at once.
fn kc_block(job: &Job) -> usize {
    even(job.k, KC, 1)
}

/// Whether slabs are better than panels that the second-level cache holds. Not if it holds them all.
pub(super) fn suits(job: &Job, version: &Version) -> bool {
    let (vectors, most) = shape(version, job.n);
    4 * version.lanes < LINE
        && vectors == 2
        && job.ab == DType::F32
        && job.a.col == 4
        && job.m >= LEAST * block_rows(most, kc_block(job))
        && 4 * job.k * job.n > 2 * cache::second_level()
}

/// Both operands packed.
///
/// # Safety
/// As for the routine; columns of d and the start are contiguous, and the product [`suits`].
pub(super) unsafe fn product(job: &Job, way: &Floats) {
    let version = way.version();
    let (vectors, most) = shape(version, job.n);
    let width = vectors * version.lanes;
    let kc_block = kc_block(job);
    let rows = block_rows(most, kc_block);
    // A strip's rows and a vector more than it has, which is written and not read.
    let behind = (rows * kc_block * 4 + LINE).next_multiple_of(LINE).max(STRIP);
    let (room, block) = panels::room(job, behind);
    let bytes = panels::room_bytes() + STRIP - behind;
    let columns = even(job.n, (bytes / 4 / kc_block / width).max(1) * width, width);
    for first in (0..job.n).step_by(columns) {
        let n = columns.min(job.n - first);
        for from in (0..job.k).step_by(kc_block) {
            let k = kc_block.min(job.k - from);
            let b = shifted(job.b, from, first);
            let source = PackedFrom::new(job, &b, (k, n), [Floats::STEPS as u16, Floats::MORE as u16, width as u16]);
            let part = KcBlock { job, version, first: from == 0, groups: k };
            // SAFETY: the room has these panels, and behind them a block of a; blocks lie inside the matrices.
            unsafe {
                let place = room.place(source, 4 * n.next_multiple_of(version.lanes) * k);
                let panels = Panels { at: place.at, width, lanes: version.lanes, deep: k };
                if !place.packed {
                    way.panels(job, b, k, n, panels);
                }
                for i in (0..job.m).step_by(rows) {
                    let strips = Strips { first: i, rows: rows.min(job.m - i), most };
                    strips.each().for_each(|(i, r)| {
                        let to = block.wrapping_add(4 * k * (i - strips.first));
                        strip(shifted(job.a, i, from), r, k, to.cast());
                    });
                    for panel in panels.each(n) {
                        let j = first + panel.first;
                        let b = Columns::new(panel.at.cast_const(), 4 * panel.padded as isize);
                        for (i, r) in strips.each() {
                            let a = block.wrapping_add(4 * k * (i - strips.first)).cast_const();
                            // Where the next strip's sums are, or will be.
                            let next = job.d.at.wrapping_offset((i + r) as isize * job.d.row + 4 * j as isize);
                            (0..r as isize).for_each(|r| fetch(next.wrapping_offset(r * job.d.row), 1));
                            let a = Matrix { at: a, row: 4, col: 4 * r as isize };
                            part.code(r, panel.columns, true)(&part.block(i, (j, panel.columns), a, &b));
                        }
                    }
                }
            }
        }
    }
}

/// Packs up to eight rows of k f32, column behind column.
///
/// # Safety
/// They are there, there is room for them and for a vector more, and the machine has AVX.
#[target_feature(enable = "avx")]
unsafe fn strip(a: Matrix<*const u8>, rows: usize, k: usize, to: *mut f32) {
    let whole = k / 8 * 8;
    // SAFETY: the caller's promise. Lanes behind a column's rows are written over by the next column.
    unsafe {
        for p in (0..whole).step_by(8) {
            let turned = columns_of(|r| at(&a, (r as usize).min(rows - 1), p).cast());
            for (n, column) in turned.into_iter().enumerate() {
                _mm256_storeu_ps(to.wrapping_add((p + n) * rows), column);
            }
        }
        for p in whole..k {
            (0..rows).for_each(|r| to.wrapping_add(p * rows + r).write(at(&a, r, p).cast::<f32>().read_unaligned()));
        }
    }
}
