//! AMX macro-kernel: products of bf16, f16 and i8 on the machine's matrix unit.
//!
//! b is packed into panels of two tiles of columns, as many as the second-level cache holds; strips of two tiles of
//! rows of a pass by. The first-level cache holds a strip and one panel over a stretch of k; between stretches, sums
//! lie in the second-level cache too. Behind the matrices' ends tiles are zero.

use super::super::strided::fence;
use super::super::{Rows, transpose_avx512};
use super::amx::{self, AmxBlock, Way};
use super::bf16_dot;
use super::macro_kernel::fetch;
use super::packed_cache::PackedFrom;
use super::panels::{self, even, shifted};
use super::plain::{self, at};
use super::{Job, Matrix, cache};
use ptoc_exec::matrix::{self, AmxTiles, LINE, SIDE, TILE};
use ptoc_tensor::DType;
use std::arch::x86_64::*;

/// Bytes of a strip, and of a panel of b over the same stretch of k: a third of a first-level cache of 48 KiB each, so
/// that the strip is still there when the next panel has passed by.
const STRIP: usize = 16 << 10;
/// Rows and columns of a block.
const WIDTH: usize = 2 * SIDE;
/// Panels that are in the cache together at least, before k is cut.
const LEAST: usize = 8;
/// Results that are so many times larger than the second-level cache are written past the caches: smaller ones may stay
/// in the next level.
const PAST: usize = 4;
/// Bytes of a block's sums, and of one row of them.
const SUMS: usize = WIDTH * SUMS_ROW;
const SUMS_ROW: usize = WIDTH * 4;

/// How a product goes, if the unit has a way and the product is large enough for it to pay. Floats are rounded in
/// another order there, so that is seen from the product that this one is a part of: parts go alike, whatever their
/// sizes, and these follow the number of threads.
pub(super) fn way(job: &Job) -> Option<Way> {
    // Below, more is packed than computed, or tiles are mostly empty; f16 are four times the work.
    let least = if job.ab == DType::F16 { 1 << 19 } else { 1 << 14 };
    let [m, n, k] = if job.ab == DType::I8 { [job.m, job.n, job.k] } else { job.part_of };
    let (few, many) = (m.min(n), m.max(n));
    if few < 8 || many < SIDE || k < 16 || m.saturating_mul(n).saturating_mul(k) < least {
        return None;
    }
    let unit = matrix::unit();
    match job.ab {
        DType::BF16 => (unit.bf16 && !job.exact).then_some(amx::BF16),
        DType::F16 => (unit.bf16 && !job.exact).then_some(amx::F16),
        DType::I8 => unit.i8.then_some(amx::I8),
        _ => None,
    }
}

/// Computes the product. f16 that are no numbers cannot be taken apart: the rows of a and columns of b that have some
/// go step by step, and only these.
///
/// # Safety
/// As for [`product`], but that there may be no step.
pub(super) unsafe fn numbers(job: Job, way: Way) {
    let step_by_step = |part: Job| {
        let part = Job { exact: true, ..part };
        // SAFETY: the caller's promise; parts of a product have no results in common.
        unsafe {
            if !super::fast(part) {
                plain::product(&part);
            }
        }
    };
    if job.k == 0 {
        return step_by_step(job);
    }
    let any = job.ab != DType::F16;
    // SAFETY: the caller's promise; parts of a product have no results in common.
    unsafe {
        let (rows, columns) = (any || finite(&job.a, job.m, job.k), any || finite(&job.b, job.k, job.n));
        if rows && columns {
            return product(&job, way);
        }
        let row = |i: usize| rows || finite(&shifted(job.a, i, 0), 1, job.k);
        let column = |j: usize| columns || finite(&shifted(job.b, 0, j), job.k, 1);
        for (j, n, column) in runs(job.n, &column) {
            for (i, m, row) in runs(job.m, &row) {
                let part = job.part((i, m), (j, n));
                if row && column { product(&part, way) } else { step_by_step(part) }
            }
        }
    }
}

/// Neighbours that are alike, of so many: the first, how many, and what they are.
fn runs(count: usize, like: &dyn Fn(usize) -> bool) -> impl Iterator<Item = (usize, usize, bool)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let (first, what) = (from, from < count && like(from));
        from = (first + 1..count).find(|n| like(*n) != what).unwrap_or(count);
        (first < count).then(|| (first, from - first, what))
    })
}

/// Whether all factors are numbers. The digits of others are not.
///
/// # Safety
/// They are there, and f16.
unsafe fn finite(m: &Matrix<*const u8>, rows: usize, cols: usize) -> bool {
    let (m, rows, cols) = if m.row == 2 { (m.transposed(), cols, rows) } else { (*m, rows, cols) };
    // SAFETY: the caller's promise.
    unsafe { bf16_dot::largest(&m, rows, cols) < 0x7c00 }
}

/// Computes the product.
///
/// # Safety
/// As for the routine; columns of d and of the start are contiguous words; there is at least one step; [`way`] gave the
/// way.
pub(super) unsafe fn product(job: &Job, way: Way) {
    let unit = LINE / job.ab.size();
    let (groups, panels) = (job.k.div_ceil(unit), job.n.div_ceil(WIDTH));
    // Bytes of a group of a panel.
    let group = way.parts * 2 * TILE;
    let bytes = panels::panel_bytes();
    let deep = even(groups, (bytes / LEAST.min(panels) - SUMS) / group, 1);
    let wide = even(panels, bytes / (deep * group + SUMS), 1);
    let (room, strip) = panels::room(job, STRIP + wide * SUMS);
    let sums = strip.wrapping_add(STRIP);
    let lines = (job.d.at.addr() | job.d.row.unsigned_abs()).is_multiple_of(LINE);
    let non_temporal = lines && job.m * job.n * 4 >= PAST * cache::second_level();
    let far = (job.m.max(job.n) * job.k * job.ab.size()) > cache::second_level() / 8;
    // SAFETY: the caller's promise; the room has sums of `wide` blocks, and `deep` by `wide` pairs of tiles.
    unsafe {
        let tiles = AmxTiles::new();
        for first in (0..panels).step_by(wide) {
            for from in (0..groups).step_by(deep) {
                let columns = (first * WIDTH, job.n.min((first + wide) * WIDTH));
                let (groups, last) = (deep.min(groups - from), from + deep >= groups);
                let non_temporal = non_temporal && last;
                let b = shifted(job.b, from * unit, columns.0);
                let size = ((groups * unit).min(job.k - from * unit), columns.1 - columns.0);
                let source = PackedFrom::new(job, &b, size, [unit as u16, way.parts as u16, 0]);
                let place = room.place(source, size.1.div_ceil(WIDTH) * groups * group);
                let part = CachedPart {
                    job,
                    way,
                    unit,
                    group,
                    columns,
                    from,
                    groups,
                    packed: place.at,
                    strip,
                    sums,
                    far,
                    non_temporal,
                };
                if !place.packed {
                    part.pack_panels();
                }
                part.compute(&tiles);
            }
        }
        if non_temporal {
            fence();
        }
    }
}

/// A part of b that the cache holds.
struct CachedPart<'j> {
    job: &'j Job,
    way: Way,
    /// Steps in a group, and bytes of a group of a panel.
    unit: usize,
    group: usize,
    /// The first column, and the one behind the last.
    columns: (usize, usize),
    /// The first group, and how many.
    from: usize,
    groups: usize,
    packed: *mut u8,
    strip: *mut u8,
    /// Of each panel, a block's.
    sums: *mut u8,
    /// The operands are larger than the caches, so tiles are prefetched.
    far: bool,
    /// Non-temporal stores of the results: whole lines, but at the end of a row.
    non_temporal: bool,
}

impl CachedPart<'_> {
    /// # Safety
    /// As for [`product`].
    unsafe fn compute(&self, tiles: &AmxTiles) {
        let job = self.job;
        // SAFETY: the caller's promise.
        unsafe {
            for i in (0..job.m).step_by(WIDTH) {
                let rows = WIDTH.min(job.m - i);
                let high = rows.div_ceil(SIDE) * self.way.parts * TILE;
                for from in (0..self.groups).step_by(self.kc_block()) {
                    let groups = self.kc_block().min(self.groups - from);
                    let a = self.lines(i, rows, from, groups).unwrap_or_else(|| {
                        for g in 0..groups {
                            let to = self.strip.wrapping_add(g * high);
                            self.pack(&job.a, Order::Lines, (i, rows), from + g, to);
                        }
                        let [line, below, group] = [LINE, self.way.parts * TILE, high].map(|n| n as isize);
                        amx::Lines { at: self.strip, line, below, group }
                    });
                    self.blocks((i, rows), (from, groups), a, tiles);
                }
            }
        }
    }

    /// The numbers of the panels, with their first columns and columns.
    fn panels(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let (first, until) = self.columns;
        (first..until).step_by(WIDTH).enumerate().map(move |(number, j)| (number, j, WIDTH.min(until - j)))
    }

    /// Groups of a strip.
    fn kc_block(&self) -> usize {
        STRIP / self.group
    }

    /// Group `g` of a panel.
    fn panel(&self, number: usize, g: usize) -> *mut u8 {
        self.packed.wrapping_add((number * self.groups + g) * self.group)
    }

    /// # Safety
    /// As for [`product`].
    unsafe fn pack_panels(&self) {
        /// Panels ahead of which rows of b are fetched.
        const AHEAD: usize = 4;
        let b = self.job.b;
        let columns = b.transposed();
        // SAFETY: the caller's promise.
        unsafe {
            if b.col != self.job.ab.size() as isize {
                for (number, j, width) in self.panels() {
                    (0..self.groups)
                        .for_each(|g| self.pack(&columns, Order::Words, (j, width), g, self.panel(number, g)));
                }
                return;
            }
            // Rows of b, side by side.
            for g in 0..self.groups {
                let k = (self.from + g) * self.unit;
                for (number, j, width) in self.panels() {
                    if self.far {
                        let ahead = shifted(b, k, j + AHEAD * WIDTH);
                        (0..self.unit.min(self.job.k - k)).for_each(|p| fetch(at(&ahead, p, 0), 1));
                    }
                    self.pack(&columns, Order::Words, (j, width), g, self.panel(number, g));
                }
            }
        }
    }

    /// Packs up to two tiles of one group of lines of a matrix (rows of a, columns of b): the first, and how many.
    ///
    /// # Safety
    /// As for [`product`].
    unsafe fn pack(&self, m: &Matrix<*const u8>, order: Order, (line, lines): (usize, usize), g: usize, to: *mut u8) {
        let size = self.job.ab.size();
        let k = (self.from + g) * self.unit;
        let steps = self.unit.min(self.job.k - k);
        // Blocks have two tiles of columns, one or two of rows.
        let tiles = if order == Order::Words { 2 } else { lines.div_ceil(SIDE) };
        for t in 0..tiles {
            let there = lines.saturating_sub(t * SIDE).min(SIDE);
            let part = shifted(*m, line + t * SIDE, k);
            // SAFETY: the caller's promise.
            unsafe {
                let to = to.wrapping_add(t * TILE);
                pack(&part, size, (there, steps), order, to);
                if self.way.parts == 2 {
                    split(to, to.wrapping_add(tiles * TILE));
                }
            }
        }
    }

    /// The blocks of a strip over a stretch of k.
    ///
    /// # Safety
    /// As for [`product`].
    unsafe fn blocks(
        &self,
        (i, rows): (usize, usize),
        (from, groups): (usize, usize),
        a: amx::Lines,
        tiles: &AmxTiles,
    ) {
        let job = self.job;
        let code = self.way.code[rows.div_ceil(SIDE) - 1];
        let (first, until) = self.columns;
        let ahead = self.ahead(i, from);
        let mut fetched = 0;
        for (number, j, columns) in self.panels() {
            if let Some((next, rows, bytes)) = &ahead {
                let due = rows * (j + columns - first) / (until - first);
                (fetched..due).for_each(|r| fetch(at(next, r, 0), *bytes));
                fetched = due;
            }
            let d = job.d.at.wrapping_offset(i as isize * job.d.row + 4 * j as isize);
            let sums = self.sums.wrapping_add(number * SUMS);
            let whole = columns == WIDTH && rows.is_multiple_of(SIDE);
            let (start, start_row) = match (from, self.from) {
                (0, 0) => job.starts(i, j),
                (0, _) => (d.cast_const(), job.d.row),
                _ => (sums.cast_const(), SUMS_ROW as isize),
            };
            let last = from + groups == self.groups;
            // SAFETY: whole blocks lie inside the matrices, others in the buffer.
            unsafe {
                let (start, start_row) = if whole || from > 0 || start.is_null() {
                    (start, start_row)
                } else {
                    rows_of(start, start_row, (rows, columns), sums, SUMS_ROW as isize);
                    (sums.cast_const(), SUMS_ROW as isize)
                };
                let direct = last && whole && !self.non_temporal;
                let (to, to_row) = if direct { (d, job.d.row) } else { (sums, SUMS_ROW as isize) };
                let b = self.panel(number, from).cast_const();
                code(&AmxBlock { groups, a, b, start, start_row, d: to, d_row: to_row }, tiles);
                if last && self.non_temporal && columns == WIDTH {
                    stream(sums, rows, d, job.d.row);
                } else if last && !direct {
                    rows_of(sums.cast_const(), SUMS_ROW as isize, (rows, columns), d, job.d.row);
                }
            }
        }
    }

    /// Rows of a over a stretch of k as the unit can read them where they are: whole tiles of elements that are
    /// neighbours, and rows that are not so far apart that they drive each other out of the first-level cache.
    fn lines(&self, i: usize, rows: usize, from: usize, groups: usize) -> Option<amx::Lines> {
        /// Bytes from row to row.
        const FAR: usize = 1 << 10;
        let (job, k) = (self.job, (self.from + from) * self.unit);
        let whole = rows.is_multiple_of(SIDE) && k + groups * self.unit <= job.k && self.way.parts == 1;
        let near = job.a.col == job.ab.size() as isize && job.a.row.unsigned_abs() <= FAR;
        let Matrix { row: line, .. } = job.a;
        (whole && near).then(|| amx::Lines {
            at: at(&job.a, i, k),
            line,
            below: SIDE as isize * line,
            group: LINE as isize,
        })
    }

    /// What the next strip reads of a: its part, rows, and bytes of each.
    fn ahead(&self, i: usize, from: usize) -> Option<(Matrix<*const u8>, usize, usize)> {
        let job = self.job;
        let size = job.ab.size();
        let (i, from) = if from + self.kc_block() < self.groups { (i, from + self.kc_block()) } else { (i + WIDTH, 0) };
        if !self.far || i >= job.m || job.a.col != size as isize {
            return None;
        }
        let k = (self.from + from) * self.unit;
        let steps = (self.kc_block() * self.unit).min(job.k - k);
        Some((shifted(job.a, i, k), WIDTH.min(job.m - i), steps * size))
    }
}

/// Copies rows of words, of which there may be none beside or below.
///
/// # Safety
/// They are there, as is the room for them.
unsafe fn rows_of(from: *const u8, row: isize, (rows, columns): (usize, usize), to: *mut u8, to_row: isize) {
    for r in 0..rows as isize {
        // SAFETY: the caller's promise.
        unsafe { to.wrapping_offset(r * to_row).copy_from_nonoverlapping(from.wrapping_offset(r * row), 4 * columns) };
    }
}

/// Writes rows of a block's sums past the caches.
///
/// # Safety
/// There is room for them, which begins with a line in each row; the machine has AVX-512.
#[target_feature(enable = "avx512f")]
unsafe fn stream(sums: *const u8, rows: usize, to: *mut u8, row: isize) {
    for r in 0..rows {
        let (from, to) = (sums.wrapping_add(r * SUMS_ROW), to.wrapping_offset(r as isize * row));
        for line in [0, LINE] {
            // SAFETY: the caller's promise.
            unsafe {
                _mm512_stream_si512(to.wrapping_add(line).cast(), _mm512_loadu_si512(from.wrapping_add(line).cast()))
            };
        }
    }
}

/// How a tile has its lines: rows of a, columns of b.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Behind one another, as the unit reads a.
    Lines,
    /// Word by word, as it reads b.
    Words,
}

/// Packs a tile: up to 16 lines, the rows of `m`, of so many steps of k; zero behind them.
///
/// # Safety
/// They are there, the tile has room, and the machine has AVX-512.
#[target_feature(enable = "avx512f")]
unsafe fn pack(m: &Matrix<*const u8>, size: usize, (lines, steps): (usize, usize), order: Order, to: *mut u8) {
    let whole = lines == SIDE && steps * size == LINE;
    // SAFETY: the caller's promise.
    unsafe {
        if whole && m.col == size as isize {
            match order {
                Order::Lines => (0..SIDE).for_each(|l| copy_line(at(m, l, 0), to.wrapping_add(l * LINE))),
                Order::Words => turn(m.at, m.row, to),
            }
        } else if whole && m.row == size as isize {
            let mut held = [0u8; TILE];
            let words = if order == Order::Words { to } else { held.as_mut_ptr() };
            (0..SIDE).for_each(|w| interleave(m, size, w, words.wrapping_add(w * LINE)));
            if order == Order::Lines {
                turn(words.cast_const(), LINE as isize, to);
            }
        } else {
            pieces(m, size, (lines, steps), order, to);
        }
    }
}

/// # Safety
/// As for [`pack`].
#[target_feature(enable = "avx512f")]
unsafe fn copy_line(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { _mm512_storeu_si512(to.cast(), _mm512_loadu_si512(from.cast())) }
}

/// 16 lines of 16 words, `step` bytes apart, as words.
///
/// # Safety
/// As for [`pack`].
#[target_feature(enable = "avx512f")]
unsafe fn turn(from: *const u8, step: isize, to: *mut u8) {
    let (lines, words) = (Rows { at: from, step }, Rows { at: to, step: LINE as isize });
    // SAFETY: the caller's promise.
    unsafe { transpose_avx512::turn(lines, SIDE, SIDE, words) }
}

/// Word `w` of 16 lines whose elements lie side by side.
///
/// # Safety
/// As for [`pack`].
#[target_feature(enable = "avx512f")]
unsafe fn interleave(m: &Matrix<*const u8>, size: usize, w: usize, to: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        let word = if size == 2 {
            let step = |s: usize| _mm512_cvtepu16_epi32(_mm256_loadu_si256(at(m, 0, 2 * w + s).cast()));
            _mm512_or_si512(step(0), _mm512_slli_epi32::<16>(step(1)))
        } else {
            let step = |s: usize| _mm512_cvtepu8_epi32(_mm_loadu_si128(at(m, 0, 4 * w + s).cast()));
            let low = _mm512_or_si512(step(0), _mm512_slli_epi32::<8>(step(1)));
            let high = _mm512_or_si512(step(2), _mm512_slli_epi32::<8>(step(3)));
            _mm512_or_si512(low, _mm512_slli_epi32::<16>(high))
        };
        _mm512_storeu_si512(to.cast(), word);
    }
}

/// A tile of f16, all of them numbers, in two of bf16: the upper eight digits, in its place, and the others.
///
/// # Safety
/// As for [`pack`].
#[target_feature(enable = "avx512f")]
unsafe fn split(tile: *mut u8, rest: *mut u8) {
    for half in (0..TILE).step_by(LINE / 2) {
        // SAFETY: the caller's promise.
        unsafe {
            let (tile, rest) = (tile.wrapping_add(half).cast(), rest.wrapping_add(half).cast());
            let whole = _mm512_cvtph_ps(_mm256_loadu_si256(tile));
            let upper = _mm512_and_si512(_mm512_castps_si512(whole), _mm512_set1_epi32(0xffff_0000_u32 as i32));
            let lower = _mm512_castps_si512(_mm512_sub_ps(whole, _mm512_castsi512_ps(upper)));
            let digits = |x| _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(x));
            _mm256_storeu_si256(tile, digits(upper));
            _mm256_storeu_si256(rest, digits(lower));
        }
    }
}

/// Element by element.
///
/// # Safety
/// As for [`pack`].
unsafe fn pieces(m: &Matrix<*const u8>, size: usize, (lines, steps): (usize, usize), order: Order, to: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        to.write_bytes(0, TILE);
        for l in 0..lines {
            for s in 0..steps {
                let place = match order {
                    Order::Lines => l * LINE + s * size,
                    Order::Words => s * size / 4 * LINE + 4 * l + s * size % 4,
                };
                to.wrapping_add(place).copy_from_nonoverlapping(at(m, l, s), size);
            }
        }
    }
}
