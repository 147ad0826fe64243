//! `copy`: elements along a nest of axes, in whatever order is fastest.

use super::Lower;
use super::code::FunctionBuilder;
use super::matrix::Matrix;
use super::nest::{Lin, Lookup, Nest, NestEmitter, NestSide, Stored, copy_order, mergeable};
use super::nibbles::WordCopy;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::loops::{Addr, Base, MemTy, Reg, Stride};
use ptoc_ir::tile::{Copy, TileRef};

impl Lower<'_> {
    pub(super) fn copy(&mut self, copy: &Copy) {
        // On a GPU neighbouring threads take the halves of a byte.
        self.copied(copy, self.target.gpu.is_none());
    }

    /// Emits a copy; `words`: half bytes may be copied eight at a time.
    pub(super) fn copied(&mut self, copy: &Copy, words: bool) {
        let mut nest = self.nest(&copy.extents, &copy.guards);
        let mut tables = Vec::new();
        // The interpreter looks at the source's tables first.
        let src = self.side(&mut nest, &copy.src, 1, &mut tables);
        let looked_up = tables.len();
        let dst = self.side(&mut nest, &copy.dst, 0, &mut tables);
        if copy.fill.is_some() && tables.len() > looked_up {
            return self.not_yet("a fill of what a table places");
        }
        let fill = copy.fill.map(|v| self.value(v));
        copy_nest(&mut self.code, nest, [dst, src], &tables, fill, words);
    }
}

impl Lower<'_> {
    /// The nest of a copy, as simple as it is, and its sides; none if there are no elements.
    pub(super) fn copy_sides(&mut self, copy: &Copy) -> Option<(Nest, [NestSide; 2])> {
        let mut nest = self.nest(&copy.extents, &copy.guards);
        let src = self.side(&mut nest, &copy.src, 1, &mut Vec::new());
        let dst = self.side(&mut nest, &copy.dst, 0, &mut Vec::new());
        let mut sides = [dst, src];
        simplify(&mut self.code, &mut nest, &mut sides, &[]).then_some((nest, sides))
    }

    pub(super) fn not_yet(&mut self, what: &str) {
        let message = format!("{what} is not compiled for the CPU yet");
        let error = Diagnostic::error(codes::NOT_YET, self.code.span, message);
        self.errors.push(error.with_help("the interpreter runs it: `--backend interp`"));
    }

    /// Element (row, col) of a tile with a layout of its own.
    pub(super) fn placed_element(&mut self, tile: &TileRef, row: Reg, col: Reg) -> (MemTy, Addr) {
        let mut nest = Nest::new(Vec::new());
        let only = |start| Lin { start, steps: Vec::new() };
        let side = self.tile_side(&mut nest, tile, only(row), only(col));
        NestEmitter::new(&mut self.code, &nest, &[side], &[]).element()
    }

    /// A window of a tile as a matrix; that of a tile with a layout of its own is copied beside.
    pub(super) fn tile_by_rows(&mut self, tile: &TileRef) -> Matrix {
        let data = &self.kernel.tiles[tile.tile];
        if data.ty.layout.is_none() {
            return self.tile(tile);
        }
        let (ty, dtype) = (MemTy::of(data.ty.dtype), data.ty.dtype);
        let size = i64::from(ty.size());
        let space = self.temp_space(u64::from(tile.rows) * u64::from(tile.cols) * size as u64);
        let beside = Matrix {
            base: Base::Space(space),
            offset: self.code.int(0),
            rows: Stride::Const(i64::from(tile.cols) * size),
            cols: Stride::Const(size),
            ty,
            dtype,
            places: None,
        };
        let (rows, cols) = (self.value(tile.valid.0), self.value(tile.valid.1));
        let (zero, one, step) = (self.code.int(0), self.code.int(1), self.code.int(size));
        // The first axis is the fastest.
        let mut nest = Nest::new(vec![cols, rows]);
        let at = |steps: [Reg; 2]| Lin { start: zero, steps: steps.into() };
        let from = self.tile_side(&mut nest, tile, at([zero, one]), at([one, zero]));
        let down = self.code.int(i64::from(tile.cols) * size);
        let to = NestSide::plain(&mut nest, beside.base, ty, at([step, down]));
        copy_nest(&mut self.code, nest, [to, from], &[], None, false);
        beside
    }
}

/// Emits the copy of side 1 to side 0. `fill` goes where a guard fails, or a table has nothing; `words`: half bytes may
/// be copied eight at a time.
pub(super) fn copy_nest(
    code: &mut FunctionBuilder,
    mut nest: Nest,
    mut sides: [NestSide; 2],
    tables: &[Lookup],
    fill: Option<Reg>,
    words: bool,
) {
    let Stored::Whole(stored) = sides[0].stored else { return };
    if !simplify(code, &mut nest, &mut sides, tables) {
        return;
    }
    let words = words && fill.is_none() && tables.is_empty();
    let words = if words { WordCopy::new(code, &nest, &sides) } else { None };
    let Some(words) = words else { return copy_elements(code, nest, sides, tables, fill.map(|value| (value, stored))) };
    match words.whole(code) {
        None => copy_words(code, words),
        Some(whole) => {
            code.either(whole, |code| copy_words(code, words), |code| copy_elements(code, nest, sides, tables, None))
        }
    }
}

/// Joins axes as far as may be; whether there is an element.
fn simplify(code: &mut FunctionBuilder, nest: &mut Nest, sides: &mut [NestSide; 2], tables: &[Lookup]) -> bool {
    nest.drop_single(code);
    if nest.is_empty(code) {
        return false;
    }
    nest.pin(code, tables);
    keep_bits(sides);
    nest.merge(code, &mergeable);
    for side in sides.iter_mut() {
        side.unroll(code, nest);
    }
    nest.merge(code, &mergeable);
    true
}

fn copy_words(code: &mut FunctionBuilder, copy: WordCopy) {
    let WordCopy { mut nest, sides, words, .. } = copy;
    nest.drop_single(code);
    copy_order(code, &mut nest, &sides[0], &sides[1]);
    nest.drop_single(code);
    NestEmitter::new(code, &nest, &sides, &[]).run(&mut |code, elems| {
        let word = elems[1].load(code);
        let bytes = words.bytes(code, word);
        elems[0].store(code, bytes);
    });
}

fn copy_elements(
    code: &mut FunctionBuilder,
    mut nest: Nest,
    mut sides: [NestSide; 2],
    tables: &[Lookup],
    fill: Option<(Reg, MemTy)>,
) {
    for (n, side) in sides.iter().enumerate() {
        side.split_chunks(code, &mut nest, tables, n);
        side.split_halves(code, &mut nest);
    }
    nest.drop_single(code);
    if fill.is_none() {
        widen(code, &mut nest, &mut sides);
    }
    copy_order(code, &mut nest, &sides[0], &sides[1]);
    nest.drop_single(code);
    let walk = NestEmitter::new(code, &nest, &sides, tables).with_fill(fill);
    walk.run(&mut |code, elems| {
        let value = elems[1].load(code);
        elems[0].store(code, value);
    });
}

/// Elements that are stored alike on both sides are moved as the bytes that they are.
fn keep_bits(sides: &mut [NestSide; 2]) {
    if let (Stored::Whole(a), Stored::Whole(b)) = (sides[0].stored, sides[1].stored)
        && a == b
    {
        let raw = match a {
            MemTy::Bool | MemTy::F8E4M3 | MemTy::F8E5M2 => MemTy::U8,
            MemTy::F16 | MemTy::BF16 => MemTy::U16,
            MemTy::F32 => MemTy::I32,
            ty => ty,
        };
        sides.iter_mut().for_each(|s| s.stored = Stored::Whole(raw));
    }
}

/// Neighbours that are neighbours on both sides, and 2, 4 or 8 bytes together, are moved as one element.
fn widen(code: &mut FunctionBuilder, nest: &mut Nest, sides: &mut [NestSide; 2]) {
    let (Some((_, ty, dst)), Some((_, other, src))) = (sides[0].affine(), sides[1].affine()) else { return };
    if ty != other {
        return;
    }
    let size = i64::from(ty.size());
    let run = (0..nest.axes.len()).find(|&a| {
        let steps = |f: &usize| code.known(nest.forms[*f].steps[a]);
        let alone = (0..nest.forms.len()).all(|f| f == dst || f == src || !nest.moves(code, a, f));
        steps(&dst) == Some(size) && steps(&src) == Some(size) && alone
    });
    let Some(run) = run else { return };
    let wide = match code.known(nest.axes[run].extent).and_then(|n| n.checked_mul(size)) {
        Some(2) => MemTy::U16,
        Some(4) => MemTy::I32,
        Some(8) => MemTy::I64,
        _ => return,
    };
    nest.remove(run);
    sides.iter_mut().for_each(|s| s.stored = Stored::Whole(wide));
}
