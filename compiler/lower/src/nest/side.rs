//! Sides of a nest: where an element lies, as a function of the axes, in each kind of storage.

use super::{Form, Lin, Nest};
use crate::Lower;
use crate::code::FunctionBuilder;
use crate::matrix::scaled;
use ptoc_diagnostics::codes;
use ptoc_ir::loops::{Base, BinOp, MemTy, Reg};
use ptoc_ir::tile::{CheckData, Elem, NestAccess, Table, TileRef, Value};
use ptoc_isa::Oob;
use ptoc_layout::{Swizzle, TileLayout};
use ptoc_opt::tile_layout::tile_layout;

/// What an element is in memory. Numbers of a side count bytes, or half bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stored {
    Whole(MemTy),
    Half { signed: bool },
}

impl Stored {
    /// Units of the side's numbers that an element takes.
    pub(super) fn units(self) -> i64 {
        match self {
            Stored::Whole(ty) => i64::from(ty.size()),
            Stored::Half { .. } => 1,
        }
    }
}

/// A swizzle of numbers that count bytes (or half bytes).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Xor {
    pub(super) mask: i64,
    /// To the right; to the left if negative.
    pub(super) shift: i64,
    /// Numbers below it stay: `xor(a + b) = xor(a) + b` for b below it and a multiple of it.
    pub(super) chunk: i64,
}

impl Xor {
    /// `unit` is a power of two. Bits that no address has are lost.
    fn new(swizzle: Swizzle, unit: i64) -> Xor {
        let log = unit.trailing_zeros();
        let chunk = 1i64 << (swizzle.base() + log).min(62);
        Xor { mask: swizzle.source_mask() << log, shift: i64::from(swizzle.shift()), chunk }
    }

    pub(super) fn apply(self, code: &mut FunctionBuilder, n: Reg) -> Reg {
        let (mask, by) = (code.int(self.mask), code.int(self.shift.abs()));
        let field = code.bin(BinOp::And, n, mask);
        let field = code.bin(if self.shift >= 0 { BinOp::ShrU } else { BinOp::Shl }, field, by);
        code.bin(BinOp::Xor, n, field)
    }
}

/// A digit of a row or column, and the bytes that it counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Leaf {
    div: i64,
    extent: i64,
    step: i64,
}

/// A row or column whose digits are strided apart: adds `sum((form / div % extent) * step)`.
#[derive(Clone, Debug)]
pub(super) struct Digits {
    pub(super) form: Form,
    leaves: Vec<Leaf>,
}

impl Digits {
    /// What the digits of `n` add.
    pub(super) fn apply(&self, code: &mut FunctionBuilder, n: Reg) -> Reg {
        let mut sum = code.int(0);
        for (k, leaf) in self.leaves.iter().enumerate() {
            let digit = digit(code, n, leaf, k + 1 == self.leaves.len());
            let step = code.times(digit, leaf.step);
            sum = code.add(sum, step);
        }
        sum
    }
}

/// A digit of `n`; the last one is all that is left, as `n` is inside.
fn digit(code: &mut FunctionBuilder, n: Reg, leaf: &Leaf, last: bool) -> Reg {
    let mut digit = n;
    // Rows and columns are not negative, so that powers of two need no division.
    let power = |n: i64| n.count_ones() == 1;
    if leaf.div != 1 {
        let (op, by) = match power(leaf.div) {
            true => (BinOp::ShrU, i64::from(leaf.div.trailing_zeros())),
            false => (BinOp::DivFloor, leaf.div),
        };
        let by = code.int(by);
        digit = code.bin(op, digit, by);
    }
    if !last {
        let (op, by) = match power(leaf.extent) {
            true => (BinOp::And, leaf.extent - 1),
            false => (BinOp::RemFloor, leaf.extent),
        };
        let by = code.int(by);
        digit = code.bin(op, digit, by);
    }
    digit
}

/// One side: element at byte `origin + xor(at + digits + tables)`.
#[derive(Clone, Debug)]
pub(crate) struct NestSide {
    pub(super) base: Base,
    pub(super) origin: Option<Reg>,
    pub(crate) stored: Stored,
    pub(super) at: Form,
    pub(super) digits: Vec<Digits>,
    pub(super) xor: Option<Xor>,
}

/// A table whose entries move a side.
#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    /// Which side.
    pub(super) side: usize,
    pub(super) base: Base,
    pub(super) ty: MemTy,
    pub(super) unsigned: bool,
    /// Element of the table.
    pub(super) at: Form,
    /// Units of the side's numbers for an entry.
    pub(super) stride: Reg,
    pub(super) extent: Reg,
    pub(super) oob: Oob,
    /// Extents of the table but the first, for messages.
    pub(super) inner: Vec<Reg>,
    /// Checks (rows of the table of checks) that there may be entries at all,
    pub(super) no_entries: Option<u32>,
    /// and that an entry is inside. Both are given the entry, the extent and the entry's place.
    pub(super) outside: Option<u32>,
}

impl Lookup {
    /// Whether there may be no element, so that zero is read instead.
    pub(crate) fn reads_zero(&self) -> bool {
        self.oob == Oob::Zero
    }
}

impl NestSide {
    /// A plain side.
    pub(crate) fn plain(nest: &mut Nest, base: Base, ty: MemTy, at: Lin) -> NestSide {
        let at = nest.form(at);
        NestSide { base, origin: None, stored: Stored::Whole(ty), at, digits: Vec::new(), xor: None }
    }

    /// Whether it is affine in the axes, all elements being whole.
    pub(crate) fn affine(&self) -> Option<(Base, MemTy, Form)> {
        match self.stored {
            Stored::Whole(ty) if self.digits.is_empty() && self.xor.is_none() => Some((self.base, ty, self.at)),
            _ => None,
        }
    }

    /// Whether it is affine in the axes, all elements being half bytes: whether they are signed, and the function.
    pub(crate) fn halves(&self) -> Option<(bool, Form)> {
        match self.stored {
            Stored::Half { signed } if self.digits.is_empty() && self.xor.is_none() => Some((signed, self.at)),
            _ => None,
        }
    }

    /// Turns digits into steps of axes, where the axes can be split accordingly.
    pub(crate) fn unroll(&mut self, code: &mut FunctionBuilder, nest: &mut Nest) {
        for digits in std::mem::take(&mut self.digits) {
            match unrolled(code, nest, &digits) {
                Some(lin) => {
                    let sum = &mut nest.forms[self.at];
                    sum.start = code.add(sum.start, lin.start);
                    for (step, more) in sum.steps.iter_mut().zip(&lin.steps) {
                        *step = code.add(*step, *more);
                    }
                    nest.retire(code, digits.form);
                }
                None => self.digits.push(digits),
            }
        }
        // Without a swizzle the origin is a part of the sum.
        if let (Some(origin), true, None) = (self.origin, self.digits.is_empty(), self.xor) {
            let start = nest.forms[self.at].start;
            nest.forms[self.at].start = code.add(start, origin);
            self.origin = None;
        }
    }

    /// Whether all the numbers that make up the sum are multiples of `chunk` (a power of two), the axes `low` aside.
    pub(super) fn aligned(
        &self,
        code: &FunctionBuilder,
        nest: &Nest,
        tables: &[Reg],
        chunk: i64,
        low: &[usize],
    ) -> bool {
        let fits = |r: Reg| code.power(r) >= chunk as u64;
        let at = &nest.forms[self.at];
        fits(at.start)
            && (0..nest.axes.len()).all(|a| low.contains(&a) || fits(at.steps[a]))
            && tables.iter().all(|&t| fits(t))
            && self.digits.iter().flat_map(|d| &d.leaves).all(|l| l.step % chunk == 0)
    }

    /// Splits the axis along which neighbours lie at what a swizzle moves as one, so that the swizzle is computed for
    /// whole chunks.
    pub(crate) fn split_chunks(&self, code: &mut FunctionBuilder, nest: &mut Nest, tables: &[Lookup], number: usize) {
        let Some(xor) = self.xor else { return };
        let known = |code: &FunctionBuilder, nest: &Nest, a: usize| code.known(nest.forms[self.at].steps[a]);
        let low: Vec<usize> = (0..nest.axes.len())
            .filter(|&a| known(code, nest, a).is_some_and(|t| t != 0 && t.abs() < xor.chunk))
            .collect();
        let &[a] = &low[..] else { return };
        let Some(step) = known(code, nest, a).filter(|t| *t > 0 && xor.chunk % t == 0) else { return };
        let parts = xor.chunk / step;
        let short = code.known(nest.axes[a].extent).is_some_and(|e| e <= parts);
        let strides: Vec<Reg> = tables.iter().filter(|t| t.side == number).map(|t| t.stride).collect();
        if parts >= 2 && !short && self.aligned(code, nest, &strides, xor.chunk, &low) {
            nest.split(code, a, parts);
        }
    }

    /// Splits an axis of neighbouring half bytes into low and high ones.
    pub(crate) fn split_halves(&self, code: &mut FunctionBuilder, nest: &mut Nest) {
        if !matches!(self.stored, Stored::Half { .. }) {
            return;
        }
        let unit = (0..nest.axes.len()).find(|&a| {
            let odd = code.known(nest.forms[self.at].steps[a]).is_some_and(|t| t % 2 != 0);
            odd && code.known(nest.axes[a].extent).is_none_or(|e| e > 2)
        });
        if let Some(a) = unit {
            nest.split(code, a, 2);
        }
    }
}

impl Nest {
    /// A form that nothing looks at any more must not keep axes apart.
    fn retire(&mut self, code: &mut FunctionBuilder, form: Form) {
        let zero = code.int(0);
        self.forms[form].steps.iter_mut().for_each(|s| *s = zero);
    }
}

/// The digits as an affine function, splitting axes; none if that cannot be done.
fn unrolled(code: &mut FunctionBuilder, nest: &mut Nest, digits: &Digits) -> Option<Lin> {
    let leaves = &digits.leaves;
    let Some(last) = leaves.len().checked_sub(1) else {
        let zero = code.int(0);
        return Some(Lin { start: zero, steps: vec![zero; nest.axes.len()] });
    };
    if last == 0 {
        let lin = nest.forms[digits.form].clone();
        let mut times = |r: Reg| code.times(r, leaves[0].step);
        return Some(Lin { start: times(lin.start), steps: lin.steps.into_iter().map(&mut times).collect() });
    }
    // The most that the axes make of each digit but the last, in units of the row or column.
    let mut reach = vec![0i64; leaves.len()];
    let mut of_axis: Vec<Option<usize>> = Vec::new();
    let mut a = 0;
    while a < nest.axes.len() {
        let step = code.known(nest.forms[digits.form].steps[a])?;
        if step == 0 {
            of_axis.push(None);
            a += 1;
            continue;
        }
        let k = leaves.iter().rposition(|l| l.div <= step)?;
        if step % leaves[k].div != 0 {
            return None;
        }
        if k < last {
            let room = leaves[k + 1].div;
            let fits = |code: &FunctionBuilder, nest: &Nest| {
                code.known(nest.axes[a].extent).map(|e| (e - 1).max(0).saturating_mul(step)).filter(|&most| most < room)
            };
            if fits(code, nest).is_none() {
                if room % step != 0 {
                    return None;
                }
                nest.split(code, a, room / step);
            }
            reach[k] = reach[k].saturating_add(fits(code, nest)?);
        }
        of_axis.push(Some(k));
        a += 1;
    }
    let form = nest.forms[digits.form].clone();
    for (k, leaf) in leaves.iter().enumerate().take(last) {
        let room = leaves[k + 1].div;
        let of_start = match code.known(form.start) {
            Some(n) => n / leaf.div % leaf.extent * leaf.div,
            None if room.count_ones() == 1 && code.power(form.start) >= room as u64 => 0,
            None if reach[k] == 0 => 0,
            None => return None,
        };
        if reach[k] != 0 && reach[k].checked_add(of_start)? >= room {
            return None;
        }
    }
    let start = digits.apply(code, form.start);
    let zero = code.int(0);
    let steps = form.steps.iter().zip(of_axis).map(|(&step, k)| match (k, code.known(step)) {
        (Some(k), Some(step)) => code.int(step / leaves[k].div * leaves[k].step),
        _ => zero,
    });
    Some(Lin { start, steps: steps.collect() })
}

/// The digits of mode `mode` of a tile's layout, for elements of `size` bytes.
fn leaves_of(layout: TileLayout, mode: usize, size: i64) -> Vec<Leaf> {
    let mut leaves: Vec<Leaf> = Vec::new();
    let mut div = 1;
    for &(extent, stride) in layout.leaves(mode).iter().filter(|l| l.0 != 1) {
        let step = stride * size;
        match leaves.last_mut().filter(|l| l.step.checked_mul(l.extent) == Some(step)) {
            Some(last) => last.extent *= extent,
            None => leaves.push(Leaf { div, extent, step }),
        }
        div *= extent;
    }
    leaves
}

impl Lower<'_> {
    /// A side of a nest, as number `number` of its sides; its tables are appended to `tables`.
    pub(crate) fn side(
        &mut self,
        nest: &mut Nest,
        access: &NestAccess,
        number: usize,
        tables: &mut Vec<Lookup>,
    ) -> NestSide {
        match access {
            NestAccess::Tile { tile, row, col } => {
                let (row, col) = (self.lin(row, 1), self.lin(col, 1));
                self.tile_side(nest, tile, row, col)
            }
            NestAccess::Tensor { tensor, elem, at, swizzle, tables: looked } => {
                let (stored, unit) = match elem {
                    Elem::Whole(d) => (Stored::Whole(MemTy::of(*d)), d.size() as i64),
                    Elem::U4 => (Stored::Half { signed: false }, 1),
                    Elem::I4 => (Stored::Half { signed: true }, 1),
                };
                let at = self.lin(at, unit);
                for table in looked {
                    let lookup = self.lookup(nest, table, number, unit);
                    tables.push(lookup);
                }
                NestSide {
                    base: self.tensor_base(*tensor),
                    origin: None,
                    stored,
                    at: nest.form(at),
                    digits: Vec::new(),
                    xor: swizzle.filter(|s| !s.is_identity()).map(|s| Xor::new(s, unit)),
                }
            }
        }
    }

    /// Elements (row, col) of a window of a tile.
    pub(crate) fn tile_side(&mut self, nest: &mut Nest, tile: &TileRef, row: Lin, col: Lin) -> NestSide {
        let data = &self.kernel.tiles[tile.tile];
        let Some(layout) = data.ty.layout else {
            let matrix = self.tile(tile);
            let code = &mut self.code;
            let mut sum = |r: Reg, c: Reg| {
                let (down, right) = (scaled(code, r, matrix.rows), scaled(code, c, matrix.cols));
                code.add(down, right)
            };
            let steps = row.steps.iter().zip(&col.steps).map(|(&r, &c)| sum(r, c)).collect();
            let start = sum(row.start, col.start);
            let at = Lin { start: self.code.add(matrix.offset, start), steps };
            return NestSide::plain(nest, matrix.base, matrix.ty, at);
        };
        let (ty, size) = (tile_layout(data).0, data.ty.dtype.size() as i64);
        let (base, origin) = self.tile_start(tile);
        let shifted = |this: &mut Self, lin: Lin, by: Option<Value>| match by {
            Some(v) => {
                let by = this.value(v);
                Lin { start: this.code.add(lin.start, by), ..lin }
            }
            None => lin,
        };
        let row = shifted(self, row, tile.origin.map(|o| o.0));
        let col = shifted(self, col, tile.origin.map(|o| o.1));
        let digits = [(0, row), (1, col)]
            .map(|(mode, lin)| Digits { form: nest.form(lin), leaves: leaves_of(layout, mode, size) });
        let zero = self.code.int(0);
        let first = Lin { start: self.code.int(layout.base() * size), steps: vec![zero; nest.axes.len()] };
        NestSide {
            base,
            origin: Some(origin),
            stored: Stored::Whole(ty),
            at: nest.form(first),
            digits: digits.into(),
            xor: layout.swizzle().map(|s| Xor::new(s, size)),
        }
    }

    fn lookup(&mut self, nest: &mut Nest, table: &Table, side: usize, unit: i64) -> Lookup {
        let data = &self.kernel.tensors[table.tensor];
        let at = self.lin(&table.at, 1);
        let (stride, extent) = (self.value(table.stride), self.value(table.extent));
        // The message has room for four numbers: the entry, the extent, and a row and a column.
        let inner: Vec<Value> = data.shape.iter().skip(1).copied().collect();
        let inner: Vec<Reg> =
            if inner.len() < 2 { inner.into_iter().map(|v| self.value(v)).collect() } else { Vec::new() };
        let place = match data.shape.len() {
            2 => "[{2}, {3}]",
            0 | 1 => "[{2}]",
            _ => " at element {2}",
        };
        let some = self.code.known(extent).is_some_and(|n| n > 0);
        let mut check = |wanted: bool, what: &str| {
            let message = format!("{}{place} is {{0}}, and {what}", data.name);
            let data = CheckData { code: codes::TABLE_ENTRY, message, span: self.code.span, help: None };
            wanted.then(|| self.new_check(data))
        };
        let no_entries = check(table.oob != Oob::Zero && !some, "there is nothing that it could be an index of");
        let outside = check(table.oob == Oob::Undefined, "entries of this table are indices below {1}");
        Lookup {
            side,
            base: self.tensor_base(table.tensor),
            ty: MemTy::of(data.dtype),
            unsigned: !data.dtype.is_signed_int(),
            at: nest.form(at),
            stride: self.code.times(stride, unit),
            extent,
            oob: table.oob,
            inner,
            no_entries,
            outside,
        }
    }
}
