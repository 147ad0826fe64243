//! Skinny-M (GEMV-like) kernel: few rows of a by a b that comes from memory, read once: of f32 where a vector is less
//! than a line of a cache, and of halves.
//!
//! Rows of b are often a multiple of 4096 bytes apart, as those of d are. Then the same columns of all of them share
//! one set of the first-level cache, which holds eight lines. So no more steps of k than that are taken at once there,
//! by a line of columns; and the sums lie elsewhere between stretches of k, block behind block in the order in which
//! they come up again. With AVX2 [`skinny_avx2`] has code for so many steps, which is better than more of them where
//! rows are other distances apart, too.
//!
//! f16 and bf16 are widened as blocks read them; where several blocks of rows would do that again and again, some lines
//! of each step are widened first.

use super::super::{LINE, Rows};
use super::macro_kernel::{Columns, KcBlock, fetch};
use super::micro_kernel::{self, Version};
use super::packing::Widen;
use super::panels::{self, SIDE_BY_SIDE, STRIP, even, shifted};
use super::plain::{at, float};
use super::skinny_avx2::{self, Lines};
use super::{Job, Matrix, cache};
use ptoc_tensor::DType;

/// Steps of k at once where lines of neighbouring rows are in one set of the first-level cache, or [`skinny_avx2`]
/// takes them.
const OF_A_SET: usize = skinny_avx2::STEPS;
/// Bytes from one line of a set to the next.
const SETS: usize = 4096;

/// Columns of halves that are widened for several blocks: four lines of a row.
const OF_HALVES: usize = 4 * LINE / 2;
/// So many rows leave room for blocks of four vectors, so that more of a row of b is read at once.
const WIDE_ROWS: usize = 2;

/// Whether blocks of a line are better than those of a vector. Halves are widened for each product, or packed once, if
/// b rests and all of its panels can be kept.
pub(super) fn suits(job: &Job, version: &Version) -> bool {
    let kept = job.launch_invariant.1 && 4 * job.k * job.n <= panels::room_bytes();
    if job.ab == DType::F32 { 4 * version.lanes < LINE } else { !kept }
}

/// Whether a product of halves has so few rows that blocks of four vectors widen them as they read b, and each is
/// widened once.
pub(super) fn reads_halves(job: &Job, version: &Version) -> bool {
    let contiguous = job.b.col == job.ab.size() as isize;
    contiguous && job.m <= WIDE_ROWS && micro_kernel::of_halves(version.lanes, job.ab).is_some()
}

/// b is read where it is, by blocks of the version; some steps of a are packed.
///
/// # Safety
/// As for the routine; columns of b, d and the start are contiguous, the machine has the version's instructions, which
/// is one of f32, and the product [`suits`].
pub(super) unsafe fn product(job: &Job, version: &'static Version, widen: Widen) {
    let halves = micro_kernel::of_halves(version.lanes, job.ab);
    let vectors = match halves {
        Some(_) if job.m <= WIDE_ROWS => 4,
        Some(_) => 2,
        None => LINE / 4 / version.lanes,
    };
    let (version, widened) = match halves {
        Some(halves) if job.m <= halves.rows[vectors - 1] => (halves, false),
        _ => (version, job.ab != DType::F32),
    };
    let width = vectors * version.lanes;
    let rows = even(job.m, version.rows[vectors - 1], 1);
    // Sums leave room in the second-level cache for what passes by.
    let unit = width.max(OF_HALVES);
    let most = (cache::second_level() / 2 / 4 / job.m).max(unit);
    let columns = even(job.n, most / unit * unit, unit);
    let of_a_set = job.b.row.unsigned_abs().is_multiple_of(SETS) && (halves.is_none() || job.m <= WIDE_ROWS);
    let by_lines = (widened || job.ab == DType::F32) && skinny_avx2::exist(version.lanes);
    let kc_block = if (by_lines && !widened) || of_a_set { OF_A_SET } else { SIDE_BY_SIDE };
    let (room, strip) = panels::room(job, STRIP);
    let wide = Rows { at: strip.wrapping_add(4 * SIDE_BY_SIDE * job.m), step: 4 * OF_HALVES as isize };
    // SAFETY: panels have more room than half of the second-level cache, or than a few columns for a few rows.
    let sums = unsafe { room.place(None, 4 * job.m * columns) }.at;
    for first in (0..job.n).step_by(columns) {
        let n = columns.min(job.n - first);
        for from in (0..job.k.max(1)).step_by(kc_block) {
            let k = kc_block.min(job.k - from);
            let (begins, ends) = (from == 0, from + k == job.k);
            let part = KcBlock { job, version, first: begins, groups: k };
            // SAFETY: the strip has room for some steps of all rows.
            let a = unsafe { side_by_side(job, from, k, Rows { at: strip, step: 4 * SIDE_BY_SIDE as isize }, widen) };
            for at in (0..n).step_by(if widened { OF_HALVES } else { n }) {
                let mut b = shifted(job.b, from, first + at);
                let n = if widened { OF_HALVES.min(n - at) } else { n };
                let sums = sums.wrapping_add(4 * job.m * at);
                if widened {
                    // SAFETY: the strip has room for so many columns of each step.
                    unsafe { widen(job.ab, Rows { at: b.at, step: b.row }, wide, (k, n)) };
                    b = Matrix { at: wide.at.cast_const(), row: wide.step, col: 4 };
                }
                let mut done = 0;
                if by_lines && k.is_multiple_of(skinny_avx2::STEPS) && !begins && !ends {
                    let count = n / skinny_avx2::COLUMNS;
                    for p in (0..k).step_by(skinny_avx2::STEPS) {
                        let (a, b) = (shifted(a, 0, p), shifted(b, p, 0));
                        let whole = Lines { rows: job.m, count, a: a.at, a_row: a.row, b: b.at, b_row: b.row, sums };
                        // SAFETY: these columns are inside b, and their sums lie as blocks of a line have them.
                        unsafe { skinny_avx2::add(&whole) };
                    }
                    done = count * skinny_avx2::COLUMNS;
                }
                for j in (done..n).step_by(width) {
                    let line = width.min(n - j);
                    let b = shifted(b, 0, j);
                    if halves.is_some() {
                        // The same columns of the rows that come next.
                        (k..2 * k).for_each(|p| fetch(shifted(b, p, 0).at, job.ab.size() * line));
                    }
                    for i in (0..job.m).step_by(rows) {
                        let r = rows.min(job.m - i);
                        let kept = (sums.wrapping_add(4 * (job.m * j + width * i)), 4 * width as isize);
                        let columns = (first + at + j, line);
                        let mut block = part.block(i, columns, shifted(a, i, 0), &Columns::new(b.at, b.row));
                        if !begins {
                            (block.start, block.start_row) = (kept.0.cast_const(), kept.1);
                        }
                        if !ends {
                            (block.d, block.d_row) = kept;
                        }
                        // SAFETY: the block lies inside the matrices and the sums, and the machine has the version's
                        // instructions.
                        unsafe { part.code(r, line, false)(&block) };
                    }
                }
            }
        }
    }
}

/// Some steps of all rows of a, neighbours, as f32 in rows as far apart as `to` says.
///
/// # Safety
/// They are there, and there is room for them.
pub(super) unsafe fn side_by_side(
    job: &Job,
    from: usize,
    k: usize,
    to: Rows<*mut u8>,
    widen: Widen,
) -> Matrix<*const u8> {
    // SAFETY: the caller's promise.
    unsafe {
        if job.a.col == job.ab.size() as isize {
            widen(job.ab, Rows { at: at(&job.a, 0, from), step: job.a.row }, to, (job.m, k));
        } else {
            for i in 0..job.m {
                let row = to.at.wrapping_offset(i as isize * to.step).cast::<f32>();
                for p in 0..k {
                    row.wrapping_add(p).write(float(job.ab, at(&job.a, i, from + p)));
                }
            }
        }
    }
    Matrix { at: to.at.cast_const(), row: to.step, col: 4 }
}
