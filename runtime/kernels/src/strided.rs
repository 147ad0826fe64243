//! Elements that are moved between two strided matrices; transposes go through blocks of cache lines.

use super::LINE;
#[cfg(target_arch = "x86_64")]
use super::Rows;
use std::cell::Cell;
use std::mem::MaybeUninit;

/// Bytes of a block's row on either side: whole cache lines for the most part, wherever rows begin. Each is read and
/// written once, however many rows of a matrix meet in one set of the cache. Both buffers of a block fit the first
/// cache.
const fn line(size: usize) -> usize {
    if size == 1 { 128 } else { 256 }
}

/// Bytes of the vectors that small tiles are transposed in.
pub(super) const VECTOR: usize = 16;

/// Matrices of which both span fewer bytes are moved without buffers: all lines of one of them stay in the first cache
/// while those of the other pass by.
fn small() -> isize {
    (super::gemm::first_level() / 3 * 2) as isize
}

/// A move of this many bytes and more between rows that span [`FAR`] bytes and more leaves the cache alone: what is
/// written would not stay there, and lines that are written whole need not be read first.
const LARGE: isize = 1 << 16;
const FAR: isize = 1 << 21;

/// Steps from element to element, in bytes.
#[derive(Clone, Copy)]
struct Steps {
    dst_row: isize,
    src_row: isize,
    dst_col: isize,
    src_col: isize,
}

/// A move of `rows x cols` elements of `S` bytes.
#[derive(Clone, Copy)]
struct Move<const S: usize> {
    dst: *mut u8,
    src: *const u8,
    rows: isize,
    cols: isize,
    steps: Steps,
    /// Whether the destination is part of something too large for the caches. Then a fence ends the launch, and none is
    /// needed here: one for each block would wait until all of it has been written.
    non_temporal: bool,
}

macro_rules! routine {
    ($name:ident, $size:literal) => {
        /// Moves `rows x cols` elements, row after row; the columns of a row in any order.
        ///
        /// # Safety
        /// Both matrices are in memory that may be read and written.
        pub(super) unsafe extern "C" fn $name(
            dst: *mut u8,
            src: *const u8,
            rows: i64,
            cols: i64,
            dst_row: i64,
            src_row: i64,
            dst_col: i64,
            src_col: i64,
            non_temporal: i64,
        ) {
            let steps = Steps {
                dst_row: dst_row as isize,
                src_row: src_row as isize,
                dst_col: dst_col as isize,
                src_col: src_col as isize,
            };
            let all = Move::<$size> {
                dst,
                src,
                rows: rows as isize,
                cols: cols as isize,
                steps,
                non_temporal: non_temporal != 0,
            };
            // SAFETY: the caller's.
            unsafe { all.run() }
        }
    };
}

routine!(move_1, 1);
routine!(move_2, 2);
routine!(move_4, 4);
routine!(move_8, 8);

impl<const S: usize> Move<S> {
    /// # Safety
    /// Both matrices are in memory.
    unsafe fn run(self) {
        if self.rows <= 0 || self.cols <= 0 {
            return;
        }
        let Steps { dst_row, src_row, dst_col, src_col } = self.steps;
        let size = S as isize;
        // SAFETY: the caller's; blocks change the order of rows, which only matrices that are apart allow.
        unsafe {
            if dst_col == size && src_row == size && self.apart() {
                self.transpose();
            } else if dst_row == size && src_col == size && self.apart() {
                let steps = Steps { dst_row: dst_col, src_row: src_col, dst_col: dst_row, src_col: src_row };
                Move { rows: self.cols, cols: self.rows, steps, ..self }.transpose();
            } else {
                self.one_by_one();
            }
        }
    }

    /// Whether the two matrices lie apart.
    fn apart(&self) -> bool {
        let reach = |start: *const u8, row: isize, col: isize| {
            let (down, right) = ((self.rows - 1) as i128 * row as i128, (self.cols - 1) as i128 * col as i128);
            let start = start as usize as i128;
            (start + down.min(0) + right.min(0), start + down.max(0) + right.max(0) + S as i128)
        };
        let d = reach(self.dst, self.steps.dst_row, self.steps.dst_col);
        let s = reach(self.src, self.steps.src_row, self.steps.src_col);
        d.1 <= s.0 || s.1 <= d.0
    }

    /// The part that starts at (row, col).
    ///
    /// # Safety
    /// It is inside.
    unsafe fn part(self, row: isize, col: isize, rows: isize, cols: isize) -> Move<S> {
        let Steps { dst_row, src_row, dst_col, src_col } = self.steps;
        // SAFETY: the caller's.
        unsafe {
            let dst = self.dst.offset(row * dst_row + col * dst_col);
            let src = self.src.offset(row * src_row + col * src_col);
            Move { dst, src, rows, cols, ..self }
        }
    }

    /// # Safety
    /// Both matrices are in memory.
    unsafe fn one_by_one(self) {
        let Steps { dst_row, src_row, dst_col, src_col } = self.steps;
        for r in 0..self.rows {
            // SAFETY: inside, as the caller says.
            unsafe {
                let (mut to, mut from) = (self.dst.offset(r * dst_row), self.src.offset(r * src_row));
                for _ in 0..self.cols {
                    to.cast::<[u8; S]>().write_unaligned(from.cast::<[u8; S]>().read_unaligned());
                    to = to.wrapping_offset(dst_col);
                    from = from.wrapping_offset(src_col);
                }
            }
        }
    }

    /// Neighbours along columns in the destination, along rows in the source.
    ///
    /// # Safety
    /// Both matrices are in memory, and apart.
    unsafe fn transpose(self) {
        #[cfg(target_arch = "x86_64")]
        if S == 4 && std::is_x86_feature_detected!("avx512f") {
            // SAFETY: the caller's; the machine has the instructions.
            return unsafe { self.by_sixteens() };
        }
        #[cfg(target_arch = "x86_64")]
        if S == 4 && std::is_x86_feature_detected!("avx2") {
            // SAFETY: the caller's; the machine has the instructions.
            return unsafe { self.by_eights() };
        }
        let span = |n: isize, step: isize| n.saturating_mul(step.saturating_abs());
        let small = span(self.rows, self.steps.dst_row).max(span(self.cols, self.steps.src_col)) <= small()
            && !self.non_temporal;
        // SAFETY: the caller's.
        unsafe {
            match S {
                _ if small => self.by_vectors(),
                1 => self.by_blocks::<{ 128 * 128 }>(),
                2 => self.by_blocks::<{ 256 / 2 * 256 }>(),
                4 => self.by_blocks::<{ 256 / 4 * 256 }>(),
                _ => self.by_blocks::<{ 256 / 8 * 256 }>(),
            }
        }
    }

    /// Sixteen rows of sixteen words at a time. Lines are read and written whole, so nothing is gained by buffers where
    /// the caches hold them.
    ///
    /// # Safety
    /// As [`Self::transpose`]; elements are words, and the machine has AVX-512.
    #[cfg(target_arch = "x86_64")]
    unsafe fn by_sixteens(self) {
        use super::transpose_avx512::{SIDE, turn};
        let Steps { dst_row, src_col, .. } = self.steps;
        if self.past_cache(4) {
            // SAFETY: the caller's.
            return unsafe { self.staged() };
        }
        // Along the rows of the source, which the machine reads ahead.
        for c in (0..self.cols).step_by(SIDE) {
            for r in (0..self.rows).step_by(SIDE) {
                let rest = |n: isize| n.min(SIDE as isize) as usize;
                let src = Rows { at: self.src.wrapping_offset(c * src_col + 4 * r), step: src_col };
                let dst = Rows { at: self.dst.wrapping_offset(r * dst_row + 4 * c), step: dst_row };
                // SAFETY: the square is inside.
                unsafe { turn(src, rest(self.cols - c), rest(self.rows - r), dst) };
            }
        }
    }

    /// Past the caches, a stage at a time.
    ///
    /// # Safety
    /// As [`Self::by_sixteens`], the destination at addresses of whole words.
    #[cfg(target_arch = "x86_64")]
    #[inline(never)]
    unsafe fn staged(self) {
        let mut stage = super::transpose_avx512::Stage::new();
        // SAFETY: the caller's.
        self.past_in_parts(|src, cols, rows, dst, ahead| unsafe { stage.pass(src, cols, rows, dst, ahead) });
    }

    /// Squares of eight rows of eight words, past the caches where that writes whole lines.
    ///
    /// # Safety
    /// As [`Self::transpose`]; elements are words, and the machine has AVX2.
    #[cfg(target_arch = "x86_64")]
    unsafe fn by_eights(self) {
        use super::transpose_avx2::{PAIR, SIDE, pass, within};
        let non_temporal = self.past_cache(LINE);
        let unit = if non_temporal { PAIR } else { SIDE } as isize;
        let (rows, cols) = (self.rows - self.rows % SIDE as isize, self.cols - self.cols % unit);
        // SAFETY: all parts are inside.
        unsafe {
            if (rows, cols) != (self.rows, self.cols) {
                self.part(0, cols, rows, self.cols - cols).by_vectors();
                self.part(rows, 0, self.rows - rows, self.cols).by_vectors();
            }
            let squares = self.part(0, 0, rows, cols);
            if non_temporal {
                squares.past_in_parts(|src, cols, rows, dst, ahead| pass(src, cols, rows, dst, ahead));
            } else {
                squares.in_parts(|src, cols, rows, dst, _| within(src, cols, rows, dst));
            }
        }
    }

    /// As [`Self::in_parts`], for parts that go past the caches: with how many bytes behind each the next one is read.
    #[cfg(target_arch = "x86_64")]
    fn past_in_parts(self, mut pass: impl FnMut(Rows<*const u8>, usize, usize, Rows<*mut u8>, isize)) {
        let after = self.next_src();
        self.in_parts(|src, cols, rows, dst, at| {
            pass(src, cols, rows, dst, self.ahead(at, super::transpose_avx512::STAGE as isize, after))
        });
        if !self.non_temporal {
            fence();
        }
    }

    /// Parts of so many words that those of a row and of a column both stay in the caches, along the rows of the
    /// source, which the machine reads ahead: source, columns, rows, destination, first row and column of each.
    #[cfg(target_arch = "x86_64")]
    fn in_parts(self, mut pass: impl FnMut(Rows<*const u8>, usize, usize, Rows<*mut u8>, (isize, isize))) {
        use super::transpose_avx512::STAGE;
        let (Steps { dst_row, src_col, .. }, most) = (self.steps, STAGE as isize);
        for c in (0..self.cols).step_by(STAGE) {
            for r in (0..self.rows).step_by(STAGE) {
                let (cols, rows) = ((self.cols - c).min(most) as usize, (self.rows - r).min(most) as usize);
                let src = Rows { at: self.src.wrapping_offset(c * src_col + 4 * r), step: src_col };
                let dst = Rows { at: self.dst.wrapping_offset(r * dst_row + 4 * c), step: dst_row };
                pass(src, cols, rows, dst, (r, c));
            }
        }
    }

    /// Where the next move of this thread will read, if it is as far from this one as this one is from the last. Blocks
    /// of a grid and turns of a loop mostly are, and what one reads is too little for the machine to see in which
    /// direction it goes.
    fn next_src(&self) -> *const u8 {
        thread_local!(static LAST: Cell<usize> = const { Cell::new(0) });
        let src = self.src.addr();
        let last = LAST.replace(src);
        self.src.wrapping_add(src.wrapping_sub(last))
    }

    /// How far behind the block at (r, c), of `side` rows and columns, the next one is read: down the rows, then along
    /// the columns, then the first of the next move, which reads `after`.
    fn ahead(&self, (r, c): (isize, isize), side: isize, after: *const u8) -> isize {
        let src = |r: isize, c: isize| self.src.wrapping_offset(r * S as isize + c * self.steps.src_col);
        let next = match (r + side < self.rows, c + side < self.cols) {
            (true, _) => src(r + side, c),
            (false, true) => src(0, c + side),
            (false, false) => after,
        };
        next.addr().wrapping_sub(src(r, c).addr()) as isize
    }

    /// # Safety
    /// As [`Self::transpose`].
    unsafe fn by_vectors(self) {
        let small = (VECTOR / S) as isize;
        let (rows, cols) = (self.rows - self.rows % small, self.cols - self.cols % small);
        // SAFETY: all parts are inside.
        unsafe {
            for c in (0..cols).step_by(small as usize) {
                for r in (0..rows).step_by(small as usize) {
                    self.part(r, c, small, small).tile();
                }
            }
            self.rest(rows, cols);
        }
    }

    /// What is left at the right of and below whole tiles.
    ///
    /// # Safety
    /// As [`Self::transpose`].
    unsafe fn rest(self, rows: isize, cols: isize) {
        // SAFETY: all parts are inside.
        unsafe {
            self.part(0, cols, rows, self.cols - cols).one_by_one();
            self.part(rows, 0, self.rows - rows, self.cols).one_by_one();
        }
    }

    /// `N` bytes hold a block. Buffers on the stack are too large for the moves that do not need them.
    ///
    /// # Safety
    /// As [`Self::transpose`].
    #[inline(never)]
    unsafe fn by_blocks<const N: usize>(self) {
        let (most, small) = ((line(S) / S) as isize, (VECTOR / S) as isize);
        debug_assert!(most as usize * line(S) == N);
        let (rows, cols) = (self.rows - self.rows % small, self.cols - self.cols % small);
        let past_cache = self.past_cache(VECTOR);
        let after = self.next_src();
        let mut buffers = [const { Buffer::<N>(MaybeUninit::uninit()) }; 2];
        let [read, turned] = &mut buffers;
        let buffers = (read.0.as_mut_ptr().cast::<u8>(), turned.0.as_mut_ptr().cast::<u8>());
        // SAFETY: all parts are inside.
        unsafe {
            // Along the rows of the source, which the machine reads ahead.
            for c in (0..cols).step_by(most as usize) {
                for r in (0..rows).step_by(most as usize) {
                    let non_temporal = past_cache.then(|| self.ahead((r, c), most, after));
                    self.part(r, c, most.min(rows - r), most.min(cols - c)).block(buffers, non_temporal);
                }
            }
            if past_cache && !self.non_temporal {
                fence();
            }
            self.rest(rows, cols);
        }
    }

    /// Whether this is a part of something too large for the cache, and units of so many bytes can be written past it.
    fn past_cache(&self, unit: usize) -> bool {
        let bytes = self.rows.saturating_mul(self.cols).saturating_mul(S as isize);
        let reach = |n: isize, step: isize| n.saturating_mul(step.saturating_abs());
        let span = reach(self.rows, self.steps.dst_row).max(reach(self.cols, self.steps.src_col));
        let aligned = self.dst.addr().is_multiple_of(unit) && self.steps.dst_row % unit as isize == 0;
        aligned && (self.non_temporal || bytes >= LARGE && span >= FAR)
    }

    /// A block of whole tiles, by way of two buffers; if it goes past the caches, the next one is read so many bytes
    /// ahead.
    ///
    /// # Safety
    /// All of it is in memory, if it goes past the caches at addresses of whole vectors.
    unsafe fn block(self, (read, turned): (*mut u8, *mut u8), non_temporal: Option<isize>) {
        let (rows, cols) = (self.rows as usize, self.cols as usize);
        let pitch = line(S);
        let unit = S as isize;
        // SAFETY: the buffers have a line for every row and column; the matrices are the caller's.
        unsafe {
            let (mut src, mut src_col) = (self.src, self.steps.src_col);
            // Where all of the source stays in the first cache it is read in place.
            if cols as isize * src_col.abs() > small() {
                for n in 0..cols {
                    let from = self.src.offset(n as isize * src_col);
                    if let Some(ahead) = non_temporal {
                        ask(from.wrapping_offset(ahead), rows * S);
                    }
                    std::ptr::copy_nonoverlapping(from, read.add(n * pitch), rows * S);
                }
                (src, src_col) = (read.cast_const(), pitch as isize);
            }
            let steps = Steps { dst_row: pitch as isize, src_row: unit, dst_col: unit, src_col };
            Move::<S> { dst: turned, src, rows: rows as isize, cols: cols as isize, steps, non_temporal: false }
                .by_vectors();
            for n in 0..rows {
                let (to, from) = (self.dst.offset(n as isize * self.steps.dst_row), turned.add(n * pitch));
                if non_temporal.is_some() {
                    write_past_cache(to, from, cols * S);
                } else {
                    std::ptr::copy_nonoverlapping(from, to, cols * S);
                }
            }
        }
    }

    /// A tile of vectors by vectors.
    ///
    /// # Safety
    /// All of it is in memory.
    #[inline(always)]
    unsafe fn tile(self) {
        // SAFETY: the caller's.
        unsafe {
            match S {
                1 => self.vectors::<16>(),
                2 => self.vectors::<8>(),
                4 => self.vectors::<4>(),
                _ => self.vectors::<2>(),
            }
        }
    }

    /// # Safety
    /// `T` vectors of `T` elements are in memory on both sides.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn vectors<const T: usize>(self) {
        use std::arch::x86_64::*;
        // SAFETY: SSE2 is part of x86-64; the memory is the caller's.
        unsafe {
            let mut v = [_mm_setzero_si128(); T];
            for (n, v) in v.iter_mut().enumerate() {
                *v = _mm_loadu_si128(self.src.offset(n as isize * self.steps.src_col).cast());
            }
            // Each step interleaves vector n with vector n + T/2: it rotates the bits of an element's number, row bits
            // before column bits, by one. After log2(T) steps rows and columns have changed places.
            let interleaved = |v: [__m128i; T]| {
                let mut out = v;
                for n in 0..T / 2 {
                    let (a, b) = (v[n], v[n + T / 2]);
                    (out[2 * n], out[2 * n + 1]) = match S {
                        1 => (_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b)),
                        2 => (_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b)),
                        4 => (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)),
                        _ => (_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b)),
                    };
                }
                out
            };
            // Written out, so that all of it stays in registers.
            v = interleaved(v);
            if T > 2 {
                v = interleaved(v);
            }
            if T > 4 {
                v = interleaved(v);
            }
            if T > 8 {
                v = interleaved(v);
            }
            for (n, &v) in v.iter().enumerate() {
                _mm_storeu_si128(self.dst.offset(n as isize * self.steps.dst_row).cast(), v);
            }
        }
    }

    /// # Safety
    /// `T` vectors of `T` elements are in memory on both sides.
    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    unsafe fn vectors<const T: usize>(self) {
        // SAFETY: the caller's.
        unsafe { self.one_by_one() }
    }
}

/// # Safety
/// `to` has room for `bytes` and is at an address of whole vectors; `bytes` are whole vectors.
#[inline(always)]
pub(super) unsafe fn write_past_cache(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller's; SSE2 is part of x86-64.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::*;
        let vector = |at: usize| _mm_stream_si128(to.add(at).cast(), _mm_loadu_si128(from.add(at).cast()));
        // A line a turn: a loop of one vector took a fifth longer where its code lay across a line.
        let lines = bytes - bytes % LINE;
        for line in (0..lines).step_by(LINE) {
            (line..line + LINE).step_by(VECTOR).for_each(vector);
        }
        (lines..bytes).step_by(VECTOR).for_each(vector);
    }
    // SAFETY: the caller's.
    #[cfg(not(target_arch = "x86_64"))]
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, bytes);
    }
}

/// Asks for bytes that will be read soon. They need not be there.
#[inline(always)]
fn ask(at: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..bytes).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, and asking touches nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.wrapping_add(line).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, bytes);
}

/// What was written past the cache is seen by other threads before what is written from here on.
pub(super) fn fence() {
    // SAFETY: SSE is part of x86-64.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// A block.
#[repr(align(64))]
struct Buffer<const N: usize>(MaybeUninit<[u8; N]>);

#[cfg(test)]
mod tests;
