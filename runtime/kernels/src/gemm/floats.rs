//! Products of floats. f16 and bf16 are widened while they are packed.

use super::super::Rows;
#[cfg(target_arch = "x86_64")]
use super::super::{
    simd::turn,
    transpose_avx512::{self, SIDE},
};
use super::macro_kernel::fetch;
use super::micro_kernel::Version;
use super::packing::Widen;
use super::panels::{self, Panel, Panels, ROWS, Way, shifted};
use super::plain::{at, float};
use super::{Job, Matrix, skinny};
#[cfg(target_arch = "x86_64")]
use super::{cache_blocking, skinny_dot};
use ptoc_tensor::DType;

/// How many rows are packed at a time, while as many are fetched.
const AHEAD: usize = 16;

/// By f32 blocks.
pub(super) struct Floats {
    pub(super) version: &'static Version,
    pub(super) widen: Widen,
}

/// Whether a has so few rows that b is read where it is whatever its size: to pack it would be more work than to
/// multiply.
pub(super) fn of_few_rows(job: &Job, version: &Version) -> bool {
    #[cfg(target_arch = "x86_64")]
    if skinny_dot::suits(job, version) {
        return true;
    }
    skinny::reads_halves(job, version)
}

/// # Safety
/// As for the routine; columns of d are contiguous f32, those of the start too.
pub(super) unsafe fn product(job: &Job, version: &'static Version, widen: Widen) {
    let contiguous = job.b.col == job.ab.size() as isize;
    let readable = job.ab == DType::F32 && contiguous;
    // SAFETY: the caller's promise.
    unsafe {
        match panels::in_place(job) {
            #[cfg(target_arch = "x86_64")]
            _ if skinny_dot::suits(job, version) => skinny_dot::product(job, widen),
            _ if skinny::reads_halves(job, version) => skinny::product(job, version, widen),
            Some(panels::SIDE_BY_SIDE) if contiguous && skinny::suits(job, version) => {
                skinny::product(job, version, widen);
            }
            Some(kc_block) if readable => panels::unpacked(job, version, kc_block),
            #[cfg(target_arch = "x86_64")]
            _ if cache_blocking::suits(job, version) => cache_blocking::product(job, &Floats { version, widen }),
            _ => panels::packed(job, &Floats { version, widen }),
        }
    }
}

impl Way for Floats {
    const STEPS: usize = 1;
    const MORE: usize = 0;

    fn version(&self) -> &'static Version {
        self.version
    }

    unsafe fn panel(&self, job: &Job, b: Matrix<*const u8>, k: usize, to: Panel) {
        if b.col != job.ab.size() as isize {
            // SAFETY: the caller's promise.
            return unsafe { self.scattered(job, b, k, to) };
        }
        let Panel { at: to, columns, padded, .. } = to;
        for p in (0..k).step_by(AHEAD) {
            let rows = AHEAD.min(k - p);
            (p + AHEAD..k.min(p + 2 * AHEAD)).for_each(|p| fetch(at(&b, p, 0), columns * job.ab.size()));
            let to = Rows { at: to.wrapping_add(4 * p * padded), step: 4 * padded as isize };
            // SAFETY: the panel has room for k rows of `padded` elements.
            unsafe {
                (self.widen)(job.ab, Rows { at: at(&b, p, 0), step: b.row }, to, (rows, columns));
                for row in 0..if columns < padded { rows } else { 0 } {
                    let to = to.at.cast::<f32>().wrapping_add(row * padded);
                    (columns..padded).for_each(|c| to.wrapping_add(c).write(0.0));
                }
            }
        }
    }

    unsafe fn panels(&self, job: &Job, b: Matrix<*const u8>, k: usize, n: usize, to: Panels) {
        /// How many panels at once.
        const AT_ONCE: usize = 4;
        let size = job.ab.size();
        let side = self.version.side.filter(|_| to.width == 2 * to.lanes && b.col == size as isize);
        for panel in to.each(n) {
            // SAFETY: the caller's promise.
            unsafe {
                match side {
                    // Whole panels go with the one that is the first of some.
                    Some(side) if panel.columns == to.width => {
                        let count = AT_ONCE.min((n - panel.first) / to.width);
                        if (panel.first / to.width).is_multiple_of(AT_ONCE) {
                            let rows = Rows { at: at(&b, 0, panel.first), step: b.row };
                            let step = 4 * to.width * to.deep;
                            side(job.ab, rows, Rows { at: panel.at, step: step as isize }, (k, count));
                        }
                    }
                    _ => self.panel(job, shifted(b, 0, panel.first), k, panel),
                }
            }
        }
    }

    /// Where they are, if blocks read them so. Nothing of what it gives goes through memory: it would be read in other
    /// pieces than it was written in, and wait until all results before it are stored.
    #[inline(always)]
    unsafe fn strip(&self, job: &Job, a: Matrix<*const u8>, rows: usize, k: usize, to: *mut u8) -> Matrix<*const u8> {
        if job.ab == DType::F32 && a.col == 4 {
            return a;
        }
        // SAFETY: the caller's promise.
        let (row, col) = unsafe { self.widened(job, a, rows, k, to) };
        Matrix { at: to, row, col }
    }
}

impl Floats {
    /// A strip of f32, rows, if elements of a row are neighbours, otherwise columns: bytes from row to row and from
    /// column to column.
    ///
    /// # Safety
    /// As for [`Way::strip`].
    unsafe fn widened(&self, job: &Job, a: Matrix<*const u8>, rows: usize, k: usize, to: *mut u8) -> (isize, isize) {
        debug_assert!(rows <= ROWS);
        let to = to.cast::<f32>();
        // SAFETY: the strip has room for 16 by STRETCH elements.
        unsafe {
            if a.col == job.ab.size() as isize {
                let step = 4 * k as isize;
                (self.widen)(job.ab, Rows { at: a.at, step: a.row }, Rows { at: to.cast(), step }, (rows, k));
                return (4 * k as isize, 4);
            }
            if a.row == job.ab.size() as isize {
                let step = 4 * ROWS as isize;
                (self.widen)(job.ab, Rows { at: a.at, step: a.col }, Rows { at: to.cast(), step }, (k, rows));
            } else {
                for p in 0..k {
                    (0..rows).for_each(|r| to.wrapping_add(p * ROWS + r).write(float(job.ab, at(&a, r, p))));
                }
            }
        }
        (4, 4 * ROWS as isize)
    }

    /// Packs columns whose rows are apart.
    ///
    /// # Safety
    /// As for [`Way::panel`].
    unsafe fn scattered(&self, job: &Job, b: Matrix<*const u8>, k: usize, to: Panel) {
        let Panel { columns, padded, .. } = to;
        let panel = to.at.cast::<f32>();
        // SAFETY: the panel has room for k rows of `padded` elements.
        unsafe {
            let (turned_columns, turned_steps) = match b.row == job.ab.size() as isize {
                true => self.turned(job, &b, k, columns, padded, panel),
                false => (0, 0),
            };
            for c in 0..padded {
                let from = if c < turned_columns { turned_steps } else { 0 };
                for p in from..k {
                    let x = if c < columns { float(job.ab, at(&b, p, c)) } else { 0.0 };
                    panel.wrapping_add(p * padded + c).write(x);
                }
            }
        }
    }

    /// Packs columns whose elements are neighbours, sixteen by sixteen and eight by eight: how many columns, and how
    /// many steps of them.
    ///
    /// # Safety
    /// As for [`Way::panel`].
    unsafe fn turned(
        &self,
        job: &Job,
        b: &Matrix<*const u8>,
        k: usize,
        columns: usize,
        padded: usize,
        panel: *mut f32,
    ) -> (usize, usize) {
        let (whole, steps) = (columns / 8 * 8, k / 8 * 8);
        #[cfg(target_arch = "x86_64")]
        {
            let mut square = [0f32; 64];
            // Squares of sixteen, where there are such vectors.
            let wide = self.version.lanes == SIDE && job.ab == DType::F32;
            let (wide_columns, wide_steps) = if wide { (whole / SIDE * SIDE, steps / SIDE * SIDE) } else { (0, 0) };
            for c in (0..wide_columns).step_by(SIDE) {
                for p in (0..wide_steps).step_by(SIDE) {
                    let from = Rows { at: at(b, p, c), step: b.col };
                    let to = panel.wrapping_add(p * padded + c).cast();
                    // SAFETY: sixteen columns of sixteen steps are there, and the version has AVX-512.
                    unsafe { transpose_avx512::turn(from, SIDE, SIDE, Rows { at: to, step: 4 * padded as isize }) };
                }
            }
            for c in (0..whole).step_by(8) {
                for p in (if c < wide_columns { wide_steps } else { 0 }..steps).step_by(8) {
                    let to = panel.wrapping_add(p * padded + c);
                    // SAFETY: eight columns of eight steps are there, and both versions have AVX2.
                    unsafe {
                        if job.ab == DType::F32 {
                            turn(at(b, p, c).cast(), b.col, to, 4 * padded as isize);
                        } else {
                            let widened = Rows { at: square.as_mut_ptr().cast(), step: 32 };
                            (self.widen)(job.ab, Rows { at: at(b, p, c), step: b.col }, widened, (8, 8));
                            turn(square.as_ptr(), 32, to, 4 * padded as isize);
                        }
                    }
                }
            }
            (whole, steps)
        }
        #[cfg(not(target_arch = "x86_64"))]
        (0, 0)
    }
}
