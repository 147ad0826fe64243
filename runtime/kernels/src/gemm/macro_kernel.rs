//! Macro-kernel of GEMM: micro-kernels over a strip of a (MC rows), one for each packed panel of b.

use super::micro_kernel::{MicroKernel, MicroKernelArgs, Version};
use super::panels::Panels;
use super::{Job, Matrix};

/// A KC block: a stretch of k whose panels are packed together.
pub(super) struct KcBlock<'j> {
    pub(super) job: &'j Job,
    pub(super) version: &'static Version,
    /// It is the first.
    pub(super) first: bool,
    pub(super) groups: usize,
}

/// What a block reads of b.
pub(super) struct Columns {
    pub(super) at: *const u8,
    pub(super) row: isize,
    /// A row to add; null for none.
    pub(super) plus: *const u8,
}

impl Columns {
    /// Nothing is added.
    pub(super) fn new(at: *const u8, row: isize) -> Columns {
        Columns { at, row, plus: std::ptr::null() }
    }
}

/// Strips of about equal height: their first row and rows, and how many a strip has at most.
#[derive(Clone, Copy)]
pub(super) struct Strips {
    pub(super) first: usize,
    pub(super) rows: usize,
    pub(super) most: usize,
}

impl Strips {
    fn count(self) -> usize {
        self.rows.div_ceil(self.most)
    }

    /// Rows of the lowest strips; others have one more.
    pub(super) fn height(self) -> usize {
        self.rows / self.count()
    }

    /// First row and rows of each; the higher ones come first.
    pub(super) fn each(self) -> impl Iterator<Item = (usize, usize)> {
        let (height, higher) = (self.height(), self.rows % self.count());
        (0..self.count()).map(move |n| (self.first + n * height + n.min(higher), height + usize::from(n < higher)))
    }
}

impl KcBlock<'_> {
    /// The code for so many rows and columns.
    pub(super) fn code(&self, rows: usize, columns: usize, packed: bool) -> MicroKernel {
        let (vectors, last) = self.version.vectors(columns);
        self.version.code(rows, vectors, last, packed)
    }

    /// The block from row i and column j on, of so many columns; its part of a and of b.
    pub(super) fn block(
        &self,
        i: usize,
        (j, columns): (usize, usize),
        a: Matrix<*const u8>,
        b: &Columns,
    ) -> MicroKernelArgs {
        let job = self.job;
        let d = job.d.at.wrapping_offset(i as isize * job.d.row + 4 * j as isize);
        let (start, start_row) = if self.first { job.starts(i, j) } else { (d.cast_const(), job.d.row) };
        MicroKernelArgs {
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
            last: self.version.vectors(columns).1,
        }
    }
}

/// A stretch's panels, as strips of a pass by. What strips have in common is counted once: a block of 64 steps takes as
/// long as two or three divisions.
pub(super) struct StripSchedule<'p> {
    part: &'p KcBlock<'p>,
    panels: Panels,
    /// The first column of the first panel.
    first: usize,
    /// Panels that are whole, and columns of the one behind them.
    whole: usize,
    rest: usize,
    /// From a panel to the next: bytes of panels, of rows to add (none if there are none), of the start (none if it is
    /// zero), of results.
    steps: (usize, usize, usize, usize),
}

impl<'p> StripSchedule<'p> {
    pub(super) fn new(part: &'p KcBlock<'p>, panels: Panels, (first, n): (usize, usize)) -> Self {
        let Panels { width, deep, .. } = panels;
        let bytes = 4 * width * deep;
        let plus = if deep > part.groups { bytes } else { 0 };
        let start = if part.first && part.job.start.at.is_null() { 0 } else { 4 * width };
        StripSchedule { part, panels, first, whole: n / width, rest: n % width, steps: (bytes, plus, start, 4 * width) }
    }

    /// The code for whole panels by so many rows.
    pub(super) fn code(&self, rows: usize) -> MicroKernel {
        self.part.code(rows, self.panels.width, true)
    }

    /// The block of a panel with so many columns; the strip's first row and part of a.
    fn block(&self, i: usize, number: usize, columns: usize, a: Matrix<*const u8>) -> MicroKernelArgs {
        let Panels { at, width, lanes, deep } = self.panels;
        let row = if columns == width { 4 * width } else { 4 * columns.next_multiple_of(lanes) };
        let at = at.wrapping_add(number * self.steps.0).cast_const();
        let plus = if deep > self.part.groups { at.wrapping_add(self.part.groups * row) } else { std::ptr::null() };
        self.part.block(i, (self.first + number * width, columns), a, &Columns { at, row: row as isize, plus })
    }

    /// The blocks of a strip: its first row and rows, the code for them and whole panels, its part of a.
    ///
    /// # Safety
    /// They lie inside the matrices, and the machine has the version's instructions.
    #[inline(always)]
    pub(super) unsafe fn strip(
        &self,
        (i, rows): (usize, usize),
        code: MicroKernel,
        a: Matrix<*const u8>,
        mut ahead: Ahead,
    ) {
        let (bytes, plus, start, d) = self.steps;
        if self.whole > 0 {
            let mut block = self.block(i, 0, self.panels.width, a);
            for _ in 0..self.whole {
                ahead.fetch(&block, rows);
                // SAFETY: the caller's promise.
                unsafe { code(&block) };
                block.b = block.b.wrapping_add(bytes);
                block.plus = block.plus.wrapping_add(plus);
                block.d = block.d.wrapping_add(d);
                block.start = block.start.wrapping_add(start);
            }
        }
        if self.rest > 0 {
            let block = self.block(i, self.whole, self.rest, a);
            ahead.fetch(&block, rows);
            // SAFETY: the caller's promise.
            unsafe { self.part.code(rows, self.rest, true)(&block) };
        }
    }
}

/// What is asked for while blocks are computed.
pub(super) struct Ahead {
    /// Rows of the next strip, how many are left, how many with each block, and bytes of each.
    pub(super) a: Matrix<*const u8>,
    pub(super) rows: usize,
    pub(super) share: usize,
    pub(super) bytes: usize,
    /// From a block to results that are asked for with it, and bytes of a row of them, which may be none.
    pub(super) d: isize,
    pub(super) d_bytes: usize,
}

impl Ahead {
    /// With one block, of so many rows.
    #[inline(always)]
    fn fetch(&mut self, block: &MicroKernelArgs, rows: usize) {
        let share = self.share.min(self.rows);
        for _ in 0..share {
            fetch(self.a.at, self.bytes);
            self.a.at = self.a.at.wrapping_offset(self.a.row);
        }
        self.rows -= share;
        if self.d_bytes > 0 {
            let mut d = block.d.wrapping_offset(self.d).cast_const();
            for _ in 0..rows {
                fetch(d, self.d_bytes);
                d = d.wrapping_offset(block.d_row);
            }
        }
    }
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
