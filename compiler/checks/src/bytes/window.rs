//! Which bytes a window of a tile takes.

use super::contents::Bytes;
use super::numbers::{Literal, Numbers, SymbolicOffset};
use ptoc_ir::tile::{Kernel, Tile, TileRef, Value};
use ptoc_isa::{Order, TileType};
use ptoc_layout::TileLayout;
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Places of a window along an axis that are told apart.
const ORIGINS: usize = 4096;

/// A window, by number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Key(u32);

/// The storage that a tile begins in, and where.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Start {
    /// At this byte of the storage with this number.
    At(usize, u64),
    /// In an element of a tile array, or at an address, that is only known as this number.
    Somewhere(u32, SymbolicOffset),
}

/// First row or column, and one past the last.
pub(super) type Range = (u32, u32);

/// An axis of a window.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct WindowAxis {
    /// First row or column.
    origin: SymbolicOffset,
    /// How many are valid.
    valid: SymbolicOffset,
    /// How many there are at most.
    capacity: u32,
}

impl WindowAxis {
    /// How many rows or columns it may touch.
    fn length(self) -> i64 {
        self.valid.constant().unwrap_or(i64::from(self.capacity))
    }

    /// The rows or columns that may be touched, of so many: in order, apart.
    fn most(self, of: u32, numbers: &mut Numbers) -> Vec<Range> {
        let length = self.length();
        let origins = match self.origin.constant() {
            Some(o) => Some(vec![o]),
            None => numbers.spread(self.origin).values(1i64.saturating_sub(length), i64::from(of), ORIGINS),
        };
        let Some(origins) = origins else { return vec![(0, of)] };
        let mut out: Vec<Range> = Vec::new();
        for (start, end) in origins.into_iter().map(|o| clip(o, length, of)).filter(|(s, e)| s < e) {
            match out.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => out.push((start, end)),
            }
        }
        out
    }

    /// Those that are touched where all is valid that can be; none if nobody knows where the window is.
    fn full(self, of: u32) -> Range {
        self.origin.constant().map_or((0, 0), |o| clip(o, self.length(), of))
    }

    /// Those that are sure to be touched, if anything of the window is.
    fn least(self, of: u32) -> Range {
        match (self.origin.constant(), self.valid.constant()) {
            (Some(o), Some(n)) => clip(o, n, of),
            (Some(o), None) => clip(o, 1, of),
            _ => (0, 0),
        }
    }

    fn exact(self) -> bool {
        self.origin.constant().is_some() && self.valid.constant().is_some()
    }

    /// Whether no row or column lies in both.
    fn apart(self, other: WindowAxis, numbers: &mut Numbers) -> bool {
        let before = |a: WindowAxis, b: WindowAxis, numbers: &mut Numbers| match a.origin.base == b.origin.base {
            true => a.origin.offset.saturating_add(a.length()) <= b.origin.offset,
            false => {
                let (end, start) = (numbers.spread(a.origin).last, numbers.spread(b.origin).first);
                end.zip(start).is_some_and(|(end, start)| end.saturating_add(a.length()) <= start)
            }
        };
        let single = self.length() == 1 && other.length() == 1;
        before(self, other, numbers)
            || before(other, self, numbers)
            || (single && numbers.differ(self.origin, other.origin))
    }

    /// Whether every row or column of `inner` lies in this one where `path` holds. No window begins before its tile.
    fn covers(self, inner: WindowAxis, numbers: &Numbers, path: &[Literal]) -> bool {
        if self.origin == inner.origin && self.valid == inner.valid {
            return true;
        }
        let Some(first) = self.origin.constant() else { return false };
        if first > 0 && inner.origin.constant().is_none_or(|o| o < first) {
            return false;
        }
        if let (Some(n), Some(p)) = (self.valid.constant(), inner.origin.constant()) {
            let m = inner.valid.constant().unwrap_or(i64::from(inner.capacity));
            return p.saturating_add(m) <= first.saturating_add(n);
        }
        self.valid.plus(first).is_some_and(|end| numbers.ends_by(inner.origin, inner.valid, end, path))
    }
}

fn clip(origin: i64, n: i64, of: u32) -> Range {
    let of = i64::from(of);
    let (start, end) = (origin.clamp(0, of), origin.saturating_add(n).clamp(0, of));
    (start as u32, end.max(start) as u32)
}

/// Where the elements of a tile lie, relative to its start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Shape {
    rows: u32,
    cols: u32,
    order: Order,
    layout: Option<TileLayout>,
    /// Bytes of an element.
    size: u64,
    /// A packed mask: bytes are not elements.
    packed: bool,
    bytes: u64,
}

impl Shape {
    /// Of a tile in a memory, or of one with storage of its own, where masks are not packed.
    pub(super) fn new(ty: TileType, own: bool) -> Shape {
        let mask = ty.dtype == DType::Bool;
        let size = ty.dtype.size() as u64;
        let bytes = if mask && own { u64::from(ty.rows) * u64::from(ty.cols) } else { ty.bytes() };
        Shape { rows: ty.rows, cols: ty.cols, order: ty.order, layout: ty.layout, size, packed: mask && !own, bytes }
    }

    /// Of all of it.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Byte of an element, from the tile's start.
    pub(super) fn byte(&self, row: u32, col: u32) -> u64 {
        let (r, c) = (u64::from(row), u64::from(col));
        let n = match (self.layout, self.order) {
            (Some(layout), _) => layout.offset(r as i64, c as i64).unsigned_abs(),
            (None, Order::Nd) => r * u64::from(self.cols) + c,
            (None, Order::Dn) => c * u64::from(self.rows) + r,
        };
        n * self.size
    }

    /// The bytes of a rectangle of elements (first and one past the last row, column).
    fn rectangle(&self, rows: Range, cols: Range) -> Vec<Bytes> {
        if rows.0 >= rows.1 || cols.0 >= cols.1 {
            return Vec::new();
        }
        let whole = rows == (0, self.rows) && cols == (0, self.cols);
        if self.packed || (whole && self.layout.is_none()) {
            return vec![(0, self.bytes)];
        }
        let mut out: Vec<Bytes> = Vec::new();
        let mut push = |start: u64, end: u64| match out.last_mut() {
            Some((_, e)) if *e == start => *e = end,
            _ => out.push((start, end)),
        };
        match (self.layout, self.order) {
            (None, Order::Nd) => {
                (rows.0..rows.1).for_each(|r| push(self.byte(r, cols.0), self.byte(r, cols.1 - 1) + self.size))
            }
            (None, Order::Dn) => {
                (cols.0..cols.1).for_each(|c| push(self.byte(rows.0, c), self.byte(rows.1 - 1, c) + self.size))
            }
            (Some(_), _) => {
                let mut all: Vec<u64> = Vec::new();
                for r in rows.0..rows.1 {
                    all.extend((cols.0..cols.1).map(|c| self.byte(r, c)));
                }
                all.sort_unstable();
                all.dedup();
                all.into_iter().for_each(|at| push(at, at + self.size));
            }
        }
        out
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct ByteWindow {
    start: Start,
    shape: Shape,
    row: WindowAxis,
    col: WindowAxis,
}

/// All windows.
#[derive(Default)]
pub(super) struct Keys {
    all: Vec<ByteWindow>,
    ids: FxHashMap<ByteWindow, Key>,
    rectangles: FxHashMap<(Shape, Range, Range), Rc<[Bytes]>>,
}

/// The bytes of a window, relative to the tile's start.
#[derive(Clone)]
pub(super) struct Extent {
    /// Those that may be touched.
    pub(super) most: Rc<[Bytes]>,
    /// Those that are where all is valid that can be; none if nobody knows where the window is.
    pub(super) full: Rc<[Bytes]>,
    /// Those that are, if anything is.
    pub(super) least: Rc<[Bytes]>,
    /// The two are the same, whatever is valid.
    pub(super) exact: bool,
    /// How much is valid is known, wherever it is.
    pub(super) sized: bool,
    /// Rows and columns of `least`: first, one past the last.
    pub(super) rows: Range,
    pub(super) cols: Range,
    /// Those of `full`.
    pub(super) reach: (Range, Range),
}

/// How many rows or columns.
#[derive(Clone, Copy)]
pub(super) enum Count {
    One,
    Of(Value),
}

/// Which part of a window a statement touches.
#[derive(Clone, Copy)]
pub(super) enum TouchedPart {
    /// Its valid part.
    Valid,
    /// One element.
    Element(Value, Value),
    /// A rectangle, by its first row and column in the window and how many there are of each.
    Rect((Value, Value), (Count, Count)),
    /// Some elements of such a rectangle.
    Within((Value, Value), (Count, Count)),
    /// Some elements; nobody knows which. They are in the first so many rows and columns, where that is known.
    Some([Option<Value>; 2]),
}

impl Keys {
    pub(super) fn younger(&self, key: Key, numbers: &Numbers, then: u32) -> bool {
        let w = &self.all[key.0 as usize];
        let axes = [w.row, w.col].iter().any(|a| numbers.younger(a.origin, then) || numbers.younger(a.valid, then));
        axes || matches!(w.start, Start::Somewhere(_, n) if numbers.younger(n, then))
    }

    /// The window with other numbers.
    pub(super) fn rewrite(&mut self, key: Key, f: &mut dyn FnMut(SymbolicOffset) -> SymbolicOffset) -> Key {
        let mut w = self.all[key.0 as usize].clone();
        for n in [&mut w.row.origin, &mut w.row.valid, &mut w.col.origin, &mut w.col.valid] {
            *n = f(*n);
        }
        if let Start::Somewhere(_, n) = &mut w.start {
            *n = f(*n);
        }
        self.number(w)
    }

    fn number(&mut self, window: ByteWindow) -> Key {
        let next = Key(self.all.len() as u32);
        let key = *self.ids.entry(window.clone()).or_insert(next);
        if key == next {
            self.all.push(window);
        }
        key
    }

    /// The numbers that say where the two windows begin, where they are not known.
    pub(super) fn starts(&self, a: Key, b: Key) -> Option<(SymbolicOffset, SymbolicOffset)> {
        match (self.all[a.0 as usize].start, self.all[b.0 as usize].start) {
            (Start::Somewhere(_, a), Start::Somewhere(_, b)) => Some((a, b)),
            _ => None,
        }
    }

    /// Whether two windows of one tile have no row or no column in common.
    pub(super) fn apart(&self, a: Key, b: Key, numbers: &mut Numbers) -> bool {
        let (a, b) = (&self.all[a.0 as usize], &self.all[b.0 as usize]);
        a.row.apart(b.row, numbers) || a.col.apart(b.col, numbers)
    }

    /// Whether every element of `inner` lies in `outer`.
    pub(super) fn covers(&self, outer: Key, inner: Key, numbers: &Numbers, path: &[Literal]) -> bool {
        let (o, i) = (&self.all[outer.0 as usize], &self.all[inner.0 as usize]);
        let within = |o: WindowAxis, i: WindowAxis| o.covers(i, numbers, path);
        outer == inner || (o.start == i.start && o.shape == i.shape && within(o.row, i.row) && within(o.col, i.col))
    }

    /// Whether every element of `inner` that has a byte of `outer`'s is certainly written through `outer`. Where rows
    /// or columns of that are constants, such a byte is in them.
    pub(super) fn has(&self, outer: Key, inner: Key, numbers: &Numbers, path: &[Literal]) -> bool {
        let (o, i) = (&self.all[outer.0 as usize], &self.all[inner.0 as usize]);
        let within = |o: WindowAxis, i: WindowAxis| {
            o.exact() && !self.all[outer.0 as usize].shape.packed || o.covers(i, numbers, path)
        };
        outer == inner || (o.start == i.start && o.shape == i.shape && within(o.row, i.row) && within(o.col, i.col))
    }

    fn rectangle(&mut self, shape: Shape, rows: Range, cols: Range) -> Rc<[Bytes]> {
        self.rectangles.entry((shape, rows, cols)).or_insert_with(|| shape.rectangle(rows, cols).into()).clone()
    }

    /// The bytes of some rows and columns.
    fn rectangles(&mut self, shape: Shape, rows: &[Range], cols: &[Range]) -> Rc<[Bytes]> {
        if let (&[rows], &[cols]) = (rows, cols) {
            return self.rectangle(shape, rows, cols);
        }
        let mut all: Vec<Bytes> = Vec::new();
        for &r in rows {
            for &c in cols {
                all.extend_from_slice(&self.rectangle(shape, r, c));
            }
        }
        all.sort_unstable();
        let mut out: Vec<Bytes> = Vec::new();
        for (start, end) in all {
            match out.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => out.push((start, end)),
            }
        }
        out.into()
    }

    /// The window of a tile with these rows and columns (first one, how many): the bytes that it may have, and whether
    /// it has all of them.
    pub(super) fn written(
        &mut self,
        kernel: &Kernel,
        numbers: &mut Numbers,
        (tile, own): (Tile, bool),
        (storage, base): (usize, u64),
        (row, col): ((SymbolicOffset, SymbolicOffset), (SymbolicOffset, SymbolicOffset)),
    ) -> (Key, Rc<[Bytes]>, bool) {
        let ty = kernel.tiles[tile].ty;
        let shape = Shape::new(ty, own);
        let axis = |(origin, valid), capacity| WindowAxis { origin, valid, capacity };
        let (row, col) = (axis(row, ty.rows), axis(col, ty.cols));
        let (rows, cols) = (row.most(ty.rows, numbers), col.most(ty.cols, numbers));
        let whole = [(0, ty.rows)] == rows[..] && [(0, ty.cols)] == cols[..];
        let exact = row.exact() && col.exact() && (!shape.packed || whole);
        let bytes = self.rectangles(shape, &rows, &cols);
        (self.number(ByteWindow { start: Start::At(storage, base), shape, row, col }), bytes, exact)
    }

    /// The window of an operand, and its bytes.
    pub(super) fn window(
        &mut self,
        kernel: &Kernel,
        numbers: &mut Numbers,
        r: &TileRef,
        part: TouchedPart,
        start: Start,
        own: bool,
    ) -> (Key, Extent) {
        let ty = kernel.tiles[r.tile].ty;
        let shape = Shape::new(ty, own);
        let zero = SymbolicOffset::known(0);
        let (mut row, mut col) = r.origin.map_or((zero, zero), |(a, b)| (numbers.get(a), numbers.get(b)));
        let (mut valid, mut capacity) = ((numbers.get(r.valid.0), numbers.get(r.valid.1)), (r.rows, r.cols));
        if let TouchedPart::Some([m, n]) = part {
            // What a nest writes is not bounded by what is valid.
            let mut limit = |v: Option<Value>, all: u32| match v {
                Some(v) => numbers.get(v),
                None => SymbolicOffset::known(i64::from(all)),
            };
            valid = (limit(m, r.rows), limit(n, r.cols));
        }
        if let TouchedPart::Element(i, j) = part {
            let mut sum = |a: SymbolicOffset, b: Value| {
                let b = numbers.get(b);
                numbers.binary(ptoc_ir::tile::Ty::Index, ptoc_isa::BinOp::Add, a, b)
            };
            (row, col) = (sum(row, i), sum(col, j));
            (valid, capacity) = ((SymbolicOffset::known(1), SymbolicOffset::known(1)), (1, 1));
        }
        if let TouchedPart::Rect((i, j), (m, n)) | TouchedPart::Within((i, j), (m, n)) = part {
            let mut sum = |a: SymbolicOffset, b: Value| {
                let b = numbers.get(b);
                numbers.binary(ptoc_ir::tile::Ty::Index, ptoc_isa::BinOp::Add, a, b)
            };
            (row, col) = (sum(row, i), sum(col, j));
            let mut count = |n: Count| match n {
                Count::One => SymbolicOffset::known(1),
                Count::Of(v) => numbers.get(v),
            };
            valid = (count(m), count(n));
        }
        // A block of 20 rows may be seen through a window of 32.
        let mut least = |valid: SymbolicOffset, capacity: u32| match numbers.spread(valid).last {
            Some(n) => u32::try_from(n.max(0)).map_or(capacity, |n| n.min(capacity)),
            None => capacity,
        };
        let capacity = (least(valid.0, capacity.0), least(valid.1, capacity.1));
        let row = WindowAxis { origin: row, valid: valid.0, capacity: capacity.0 };
        let col = WindowAxis { origin: col, valid: valid.1, capacity: capacity.1 };
        let (most_rows, most_cols) = (row.most(ty.rows, numbers), col.most(ty.cols, numbers));
        let nowhere = ((0, 0), (0, 0));
        let (rows, cols) = match part {
            TouchedPart::Some(_) | TouchedPart::Within(..) => nowhere,
            _ => (row.least(ty.rows), col.least(ty.cols)),
        };
        let full = match part {
            TouchedPart::Some(_) | TouchedPart::Within(..) => nowhere,
            _ => (row.full(ty.rows), col.full(ty.cols)),
        };
        let whole = [(0, ty.rows)] == most_rows[..] && [(0, ty.cols)] == most_cols[..];
        // A part of it is less than whole bytes, so that only all of it is byte-exact.
        let coarse = shape.packed && !whole;
        let whole_part = !matches!(part, TouchedPart::Some(_) | TouchedPart::Within(..));
        let extent = Extent {
            most: self.rectangles(shape, &most_rows, &most_cols),
            full: self.rectangle(shape, full.0, full.1),
            least: if coarse { Rc::from([]) } else { self.rectangle(shape, rows, cols) },
            sized: [row, col].iter().all(|a| a.valid.constant().is_some()) && whole_part,
            exact: row.exact() && col.exact() && !coarse && whole_part,
            rows,
            cols,
            reach: full,
        };
        (self.number(ByteWindow { start, shape, row, col }), extent)
    }
}

/// First row and column, and one past the last, of the elements of a rectangle that have one of these bytes (from the
/// tile's start).
pub(super) fn elements_in(shape: Shape, rows: Range, cols: Range, bytes: &[Bytes]) -> Option<(Range, Range)> {
    let mut found: Option<(Range, Range)> = None;
    for r in rows.0..rows.1 {
        for c in cols.0..cols.1 {
            let at = shape.byte(r, c);
            if bytes.iter().any(|(s, e)| *s < at + shape.size && at < *e) {
                let (rows, cols) = found.unwrap_or(((r, r + 1), (c, c + 1)));
                found = Some(((rows.0.min(r), rows.1.max(r + 1)), (cols.0.min(c), cols.1.max(c + 1))));
            }
        }
    }
    found
}
