//! Products of bf16 and of i8 on the machine's matrix unit.
//!
//! b is packed into panels of two tiles of columns, as many as the second-level cache holds; strips of two tiles of rows of a pass by,
//! so many groups of k at a time as the first-level cache holds. Behind the matrices' ends tiles are zero, and blocks
//! that reach there are computed in a buffer.

use super::amx::{self, Block, Code, LINE, SIDE, TILE, Tiles};
use super::panels::{self, even, fetch, shifted};
use super::plain::at;
use super::{Job, Matrix};
use ptoc_ir::loops::MemTy;
use std::arch::x86_64::*;

/// Groups of k of a strip: two tiles of each are 32 KiB, two thirds of a first-level cache of 48.
const STRETCH: usize = 16;
/// Rows and columns of a block.
const WIDTH: usize = 2 * SIDE;
/// Panels that are in the cache together at least, before k is cut.
const LEAST: usize = 8;
/// Bytes of the buffer for blocks at the ends, of a strip, and of a tile to be turned.
const EDGE: usize = WIDTH * WIDTH * 4;
const STRIP: usize = STRETCH * 2 * TILE;

/// The code for a product, if the unit has it and it is large enough to pay.
pub(super) fn code(job: &Job) -> Option<[Code; 2]> {
    // Below, more is packed than computed, or tiles are mostly empty.
    if job.m < 8 || job.n < SIDE || job.k < 16 || job.m * job.n * job.k < 64 * SIDE * SIDE {
        return None;
    }
    let unit = amx::unit();
    match job.ab {
        MemTy::BF16 => (unit.bf16 && !job.exact).then_some(amx::BF16),
        MemTy::I8 => unit.i8.then_some(amx::I8),
        _ => None,
    }
}

/// Computes the product.
///
/// # Safety
/// As for the routine; columns of d and of the start are contiguous words; [`code`] gave the code.
pub(super) unsafe fn product(job: &Job, code: [Code; 2]) {
    let unit = LINE / job.ab.size() as usize;
    let (groups, panels) = (job.k.div_ceil(unit), job.n.div_ceil(WIDTH));
    let edge = job.scratch;
    let strip = edge.wrapping_add(EDGE);
    let at = strip.wrapping_add(STRIP);
    let room = (panels::scratch() - EDGE - STRIP) / (2 * TILE);
    let deep = even(groups, room / LEAST.min(panels), 1);
    let wide = even(panels, room / deep, 1);
    // SAFETY: the caller's promise; the room has `deep` by `wide` pairs of tiles.
    unsafe {
        let tiles = Tiles::new();
        for first in (0..panels).step_by(wide) {
            for from in (0..groups).step_by(deep) {
                let part = Part {
                    job,
                    code,
                    unit,
                    columns: (first * WIDTH, job.n.min((first + wide) * WIDTH)),
                    from,
                    groups: deep.min(groups - from),
                    panels: at,
                    strip,
                    edge,
                };
                part.compute(&tiles);
            }
        }
    }
}

/// A part of b that the cache holds.
struct Part<'j> {
    job: &'j Job,
    code: [Code; 2],
    /// Steps in a group.
    unit: usize,
    /// The first column, and the one behind the last.
    columns: (usize, usize),
    /// The first group, and how many.
    from: usize,
    groups: usize,
    panels: *mut u8,
    strip: *mut u8,
    edge: *mut u8,
}

impl Part<'_> {
    /// # Safety
    /// As for [`product`].
    unsafe fn compute(&self, tiles: &Tiles) {
        let job = self.job;
        // SAFETY: the caller's promise.
        unsafe {
            for (number, j) in (self.columns.0..self.columns.1).step_by(WIDTH).enumerate() {
                let columns = WIDTH.min(self.columns.1 - j);
                self.pack(&job.b.transposed(), Order::Words, (j, columns, 2), (0, self.groups), self.panel(number));
            }
            for i in (0..job.m).step_by(WIDTH) {
                let rows = WIDTH.min(job.m - i);
                let high = rows.div_ceil(SIDE);
                for from in (0..self.groups).step_by(STRETCH) {
                    let groups = STRETCH.min(self.groups - from);
                    self.pack(&job.a, Order::Lines, (i, rows, high), (from, groups), self.strip);
                    self.blocks((i, rows), (from, groups), tiles);
                }
            }
        }
    }

    fn panel(&self, number: usize) -> *mut u8 {
        self.panels.wrapping_add(number * self.groups * 2 * TILE)
    }

    /// Packs lines of a matrix (rows of a, columns of b): the first, how many, and tiles of them; from which group on, and
    /// how many.
    ///
    /// # Safety
    /// As for [`product`].
    unsafe fn pack(
        &self,
        m: &Matrix<*const u8>,
        order: Order,
        (line, lines, wide): (usize, usize, usize),
        (from, groups): (usize, usize),
        to: *mut u8,
    ) {
        let size = self.job.ab.size() as usize;
        for g in 0..groups {
            let k = (self.from + from + g) * self.unit;
            let steps = self.unit.min(self.job.k - k);
            for t in 0..wide {
                let there = lines.saturating_sub(t * SIDE).min(SIDE);
                let part = shifted(*m, line + t * SIDE, k);
                // SAFETY: the caller's promise.
                unsafe { pack(&part, size, (there, steps), order, to.wrapping_add((g * wide + t) * TILE)) };
            }
        }
    }

    /// The blocks of a strip.
    ///
    /// # Safety
    /// As for [`product`].
    unsafe fn blocks(&self, (i, rows): (usize, usize), (from, groups): (usize, usize), tiles: &Tiles) {
        let job = self.job;
        let code = self.code[rows.div_ceil(SIDE) - 1];
        let (first, until) = self.columns;
        let ahead = self.ahead(i, from);
        let mut fetched = 0;
        for (number, j) in (first..until).step_by(WIDTH).enumerate() {
            let columns = WIDTH.min(until - j);
            let d = job.d.at.wrapping_offset(i as isize * job.d.row + 4 * j as isize);
            let (start, start_row) = match self.from + from {
                0 if job.start.at.is_null() => (std::ptr::null(), 0),
                0 => (at(&job.start, i, j), job.start.row),
                _ => (d.cast_const(), job.d.row),
            };
            if let Some((next, rows, bytes)) = &ahead {
                let due = rows * (j + columns - first) / (until - first);
                (fetched..due).for_each(|r| fetch(at(next, r, 0), *bytes));
                fetched = due;
            }
            if j + columns < until {
                (0..rows as isize)
                    .for_each(|r| fetch(d.wrapping_offset(r * job.d.row + 4 * WIDTH as isize), 4 * WIDTH));
            }
            let b = self.panel(number).wrapping_add(from * 2 * TILE).cast_const();
            let block = Block { groups, a: self.strip.cast_const(), b, start, start_row, d, d_row: job.d.row };
            // SAFETY: whole blocks lie inside the matrices, others in the buffer.
            unsafe {
                if columns == WIDTH && rows % SIDE == 0 {
                    code(&block, tiles);
                } else {
                    self.at_end(block, (rows, columns), code, tiles);
                }
            }
        }
    }

    /// What the next strip reads of a: its part, rows, and bytes of each.
    fn ahead(&self, i: usize, from: usize) -> Option<(Matrix<*const u8>, usize, usize)> {
        let job = self.job;
        let size = job.ab.size() as usize;
        let (i, from) = if from + STRETCH < self.groups { (i, from + STRETCH) } else { (i + WIDTH, 0) };
        if i >= job.m || job.a.col != size as isize {
            return None;
        }
        let k = (self.from + from) * self.unit;
        let steps = (STRETCH * self.unit).min(job.k - k);
        Some((shifted(job.a, i, k), WIDTH.min(job.m - i), steps * size))
    }

    /// A block with fewer rows or columns than its tiles.
    ///
    /// # Safety
    /// So many rows and columns are there.
    unsafe fn at_end(&self, x: Block, (rows, columns): (usize, usize), code: Code, tiles: &Tiles) {
        const ROW: usize = 4 * WIDTH;
        let held = |r: usize| self.edge.wrapping_add(r * ROW);
        // SAFETY: the caller's promise; the buffer has room for a block.
        unsafe {
            let start = if x.start.is_null() { x.start } else { self.edge.cast_const() };
            if !x.start.is_null() {
                self.edge.write_bytes(0, EDGE);
                for r in 0..rows {
                    let from = x.start.wrapping_offset(r as isize * x.start_row);
                    held(r).copy_from_nonoverlapping(from, 4 * columns);
                }
            }
            let row = ROW as isize;
            code(&Block { start, start_row: row, d: self.edge, d_row: row, ..x }, tiles);
            for r in 0..rows {
                let to = x.d.wrapping_offset(r as isize * x.d_row);
                to.copy_from_nonoverlapping(held(r), 4 * columns);
            }
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
    for (line, word) in [(0, 0), (0, 8), (8, 0), (8, 8)] {
        let from = from.wrapping_offset(line * step + 4 * word);
        let to = to.wrapping_offset(word * LINE as isize + 4 * line);
        // SAFETY: the caller's promise.
        unsafe { super::super::simd::turn(from.cast(), step, to.cast(), LINE as isize) };
    }
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
