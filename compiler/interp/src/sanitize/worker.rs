//! One thread's view: what a statement does to tiles and tensors, window by window.

use super::memory::Matrix;
use super::sites::Data;
use super::tensors::{ElementRun, ElementUse};
use super::tiles::{ElementRect, MOST, Missing, Slot, StridedElements, TileReadFault, TileStorage, Tiles};
use super::{Sanitizer, Site};
use crate::Trap;
use crate::overlap::{Overlaps, Site as Owner};
use crate::tensors::TensorFault;
use crate::wording;
use crate::wording::{Use, Words};
use cranelift_entity::SecondaryMap;
use ptoc_abi::Watcher;
use ptoc_diagnostics::Span;
use ptoc_ir::scalar;
use ptoc_ir::tile::{Elem, Op, PrintPart, TensorId, Tile, TileRef, Value, ViewRef};
use ptoc_isa::Loc;

pub(super) type TrapResult<T = ()> = Result<T, Box<Trap>>;

/// A window of a tile as it is used now: all inside the capacity.
#[derive(Clone, Copy)]
pub(super) struct BoundWindow<'s> {
    pub tile: Tile,
    /// Of a tile array.
    pub element: u32,
    pub slot: Slot<'s>,
    /// The valid part.
    pub part: ElementRect,
}

pub(super) struct Worker<'s> {
    pub s: &'s Sanitizer<'s>,
    /// Bits of every value; those that are not visible are leftovers.
    values: Vec<u64>,
    pub tiles: Tiles<'s>,
    /// Marks of buffers of the block's own.
    own: SecondaryMap<TensorId, Vec<u8>>,
    /// Who wrote which byte of the memories.
    pub overlaps: Overlaps,
    /// What the running statement may look at.
    pub data: Vec<(Data, Matrix)>,
    number: u64,
    pub block: u32,
    coordinates: Vec<i64>,
    /// Of the running statement.
    pub span: Span,
}

impl<'s> Worker<'s> {
    pub fn new(s: &'s Sanitizer<'s>) -> Worker<'s> {
        let mut own = SecondaryMap::new();
        for (id, tensor) in s.tensors.iter() {
            own[id] = vec![0; tensor.own_marks()];
        }
        Worker {
            s,
            values: s.values.clone(),
            tiles: Tiles::new(s.kernel),
            own,
            overlaps: Overlaps::new(s.kernel),
            data: Vec::new(),
            number: 0,
            block: 0,
            coordinates: Vec::new(),
            span: s.kernel.span,
        }
    }

    pub fn fault<T>(&self, (code, message): Words) -> TrapResult<T> {
        let trap = Trap::new(code, self.span, message);
        Err(Box::new(Trap { block: Some(self.coordinates.clone()), ..trap }))
    }

    /// The coordinates of the running block.
    pub fn coordinates(&self) -> &[i64] {
        &self.coordinates
    }

    pub fn index(&self, value: Value) -> i64 {
        self.values[value.as_u32() as usize] as i64
    }

    /// The number that an integer is.
    pub fn number(&self, value: Value) -> i64 {
        let ty = self.s.kernel.values[value].ty;
        let bits = self.values[value.as_u32() as usize] & scalar::mask(ty);
        scalar::to_int(ty, bits) as i64
    }

    /// Takes the values of a statement.
    fn take(&mut self, site: &Site<'s>, values: &[i64]) {
        for (value, &bits) in site.arguments.iter().zip(values) {
            self.values[value.as_u32() as usize] = bits as u64;
        }
        self.data.clear();
        if site.data.is_empty() {
            return;
        }
        let rest = values.get(site.arguments.len()..).unwrap_or(&[]);
        for (&data, matrix) in site.data.iter().zip(rest.chunks_exact(3)) {
            self.data.push((data, Matrix::told(matrix)));
        }
    }

    fn perform(&mut self, site: &Site<'s>) -> TrapResult {
        match &site.stmt.op {
            Op::Load { tensor, offset, .. } => self.element(ElementUse::Read, *tensor, None, self.index(*offset)),
            Op::Store { tensor, offset, .. } => self.element(ElementUse::Write, *tensor, None, self.index(*offset)),
            Op::Atomic { tensor, offset, .. } => self.element(ElementUse::Atomic, *tensor, None, self.index(*offset)),
            // Elements one by one are what loops spend their time on.
            Op::TileGet { tile, row, col, .. } if self.own_mark(tile, *row, *col).is_some_and(|mark| *mark == 1) => {
                Ok(())
            }
            Op::TileSet { tile, row, col, .. } if self.own_mark(tile, *row, *col).map(|mark| *mark = 1).is_some() => {
                Ok(())
            }
            Op::TileGet { tile, row, col, .. } => {
                let (w, part) = self.place(tile, *row, *col)?;
                self.read(&w, part)
            }
            Op::TileSet { tile, row, col, .. } => {
                let (w, part) = self.place(tile, *row, *col)?;
                self.write(&w, part);
                Ok(())
            }
            Op::Alloc { tile } => {
                self.overlaps.declare(*tile);
                self.tiles.alloc(*tile);
                Ok(())
            }
            Op::Assign { tile, element, addr } => self.assign(*tile, *element, self.index(*addr)),
            Op::Inst(inst) => self.inst(inst),
            Op::Copy(copy) => self.copy(copy),
            Op::Mma(mma) => self.mma(mma),
            Op::Print { parts } => parts.iter().try_for_each(|part| match part {
                PrintPart::Tile(t) => self.read_valid(t).map(|_| ()),
                _ => Ok(()),
            }),
            _ => Ok(()),
        }
    }

    // ---- tensors -------------------------------------------------------------------------------------------------

    /// Uses a run of elements of a tensor, taken for elements of another kind if `elem` says so.
    pub fn run(&mut self, kind: ElementUse, tensor: TensorId, elem: Option<Elem>, run: ElementRun) -> TrapResult {
        let s = self.s;
        let t = &s.tensors[tensor];
        let own = &mut self.own[tensor];
        let result = match elem {
            // Of half bytes, two share one.
            Some(Elem::U4 | Elem::I4) => (0..run.count)
                .try_for_each(|k| t.one(kind, 1, run.at(k).div_euclid(2), self.block, own).map_err(|fault| (k, fault))),
            Some(Elem::Whole(dtype)) => t.run(kind, dtype.size(), run, self.block, own),
            None => t.run(kind, t.dtype.size(), run, self.block, own),
        };
        let Err((k, fault)) = result else { return Ok(()) };
        self.tensor_fault(kind, tensor, elem, run.at(k), fault)
    }

    fn tensor_fault(
        &self,
        kind: ElementUse,
        tensor: TensorId,
        elem: Option<Elem>,
        index: i64,
        fault: TensorFault,
    ) -> TrapResult {
        let t = &self.s.tensors[tensor];
        let of = Use {
            name: &self.s.kernel.tensors[tensor].name,
            dtype: t.dtype,
            bytes: t.bytes,
            elem: elem.unwrap_or(Elem::Whole(t.dtype)),
            index,
            verb: kind.verb(),
            block: self.block,
        };
        self.fault(of.fault(fault, |at| t.coordinates(at)))
    }

    /// Uses one element of a tensor.
    pub fn element(&mut self, kind: ElementUse, tensor: TensorId, elem: Option<Elem>, index: i64) -> TrapResult {
        self.run(kind, tensor, elem, ElementRun { start: index, step: 1, count: 1 })
    }

    /// Uses all elements of a window of a tensor.
    pub fn view(&mut self, kind: ElementUse, v: &ViewRef) -> TrapResult {
        let shape: Vec<u64> = v.shape.iter().map(|&n| self.index(n).max(0) as u64).collect();
        let strides: Vec<i64> = v.strides.iter().map(|&n| self.index(n)).collect();
        self.elements(kind, v.tensor, self.index(v.offset), &shape, &strides)
    }

    /// Uses the elements of a tensor at `offset` and so many strides from it, the last one fastest.
    fn elements(
        &mut self,
        kind: ElementUse,
        tensor: TensorId,
        offset: i64,
        shape: &[u64],
        strides: &[i64],
    ) -> TrapResult {
        let (Some((&count, outer)), Some((&step, outer_strides))) = (shape.split_last(), strides.split_last()) else {
            return self.element(kind, tensor, None, offset);
        };
        if shape.contains(&0) {
            return Ok(());
        }
        match (outer, outer_strides) {
            // Rows that follow each other are one.
            ([rows], [stride]) if i64::try_from(count).ok().and_then(|n| n.checked_mul(step)) == Some(*stride) => {
                self.run(kind, tensor, None, ElementRun { start: offset, step, count: rows.saturating_mul(count) })
            }
            ([], _) | (_, []) => self.run(kind, tensor, None, ElementRun { start: offset, step, count }),
            ([rows], [stride]) => {
                let rows = ElementRun { start: offset, step: *stride, count: *rows };
                (0..rows.count)
                    .try_for_each(|i| self.run(kind, tensor, None, ElementRun { start: rows.at(i), step, count }))
            }
            ([rows, inner @ ..], [stride, inner_strides @ ..]) => {
                let rows = ElementRun { start: offset, step: *stride, count: *rows };
                let (inner, inner_strides) = ([inner, &[count]].concat(), [inner_strides, &[step]].concat());
                (0..rows.count).try_for_each(|i| self.elements(kind, tensor, rows.at(i), &inner, &inner_strides))
            }
        }
    }

    /// A view that must have the shape of a window.
    pub fn matching(&self, v: &ViewRef, w: &BoundWindow<'_>) -> TrapResult {
        let shape: Vec<i64> = v.shape.iter().map(|&n| self.index(n)).collect();
        if shape[..] == [w.part.rows as i64, w.part.cols as i64] {
            return Ok(());
        }
        self.fault(wording::other_shape(self.s.kernel, v.tensor, &shape, (w.part.rows, w.part.cols)))
    }

    // ---- tiles ---------------------------------------------------------------------------------------------------

    fn number_of(&self, tile: Tile, element: Option<Value>) -> TrapResult<usize> {
        let n = element.map_or(0, |v| self.index(v));
        match usize::try_from(n) {
            Ok(n) if n < self.s.kernel.tiles[tile].count as usize => Ok(n),
            _ => self.fault(wording::no_element(self.s.kernel, tile, n)),
        }
    }

    fn assign(&mut self, tile: Tile, element: Option<Value>, addr: i64) -> TrapResult {
        let element = self.number_of(tile, element)?;
        let ty = &self.s.kernel.tiles[tile].ty;
        let capacity = self.s.capacity.iter().find(|(l, _)| *l == ty.loc).map(|&(_, bytes)| bytes);
        if !wording::is_address(*ty, addr, capacity) {
            return self.fault(wording::bad_address(self.s.kernel, tile, addr, capacity));
        }
        self.tiles.bind(tile, element, addr as u64);
        Ok(())
    }

    /// Resolves a tile operand and checks that its valid part is inside.
    pub fn window(&mut self, t: &TileRef) -> TrapResult<BoundWindow<'s>> {
        let element = self.number_of(t.tile, t.element)?;
        let origin = t.origin.map_or((0, 0), |(r, c)| (self.index(r), self.index(c)));
        let valid = (self.index(t.valid.0), self.index(t.valid.1));
        wording::window(self.s.kernel, t, origin, valid).or_else(|words| self.fault(words))?;
        let slot = self.tiles.slot(t.tile, element).or_else(|missing| {
            self.fault(match missing {
                Missing::Unassigned => wording::unassigned(self.s.kernel, t.tile),
                Missing::TooLarge => wording::too_large(self.s.kernel, t.tile, MOST),
            })
        })?;
        let part = ElementRect {
            row: origin.0 as usize,
            col: origin.1 as usize,
            rows: valid.0 as usize,
            cols: valid.1 as usize,
        };
        Ok(BoundWindow { tile: t.tile, element: element as u32, slot, part })
    }

    /// The mark of an element of a tile that shares no bytes, without a window and a layout; `None` also if it is
    /// outside.
    fn own_mark(&mut self, t: &TileRef, row: Value, col: Value) -> Option<&mut u8> {
        if t.origin.is_some() || t.element.is_some() {
            return None;
        }
        let valid = |v: Value, capacity: u32| usize::try_from(self.index(v)).ok().filter(|n| *n <= capacity as usize);
        let (rows, cols) = (valid(t.valid.0, t.rows)?, valid(t.valid.1, t.cols)?);
        let at = |v: Value, valid: usize| usize::try_from(self.index(v)).ok().filter(|n| *n < valid);
        let (row, col) = (at(row, rows)?, at(col, cols)?);
        self.tiles.own_mark(t.tile, row, col)
    }

    /// An element of a window, as a part of its tile.
    fn place(&mut self, t: &TileRef, row: Value, col: Value) -> TrapResult<(BoundWindow<'s>, ElementRect)> {
        let w = self.window(t)?;
        let (i, j) = (self.index(row), self.index(col));
        match (usize::try_from(i), usize::try_from(j)) {
            (Ok(r), Ok(c)) if r < w.part.rows && c < w.part.cols => {
                Ok((w, ElementRect { row: w.part.row + r, col: w.part.col + c, rows: 1, cols: 1 }))
            }
            _ => self.fault(wording::not_valid(self.s.kernel, t.tile, (i, j), (w.part.rows, w.part.cols))),
        }
    }

    /// Reads the valid part of a tile operand.
    pub fn read_valid(&mut self, t: &TileRef) -> TrapResult<BoundWindow<'s>> {
        let w = self.window(t)?;
        self.read(&w, w.part)?;
        Ok(w)
    }

    /// Writes it.
    pub fn write_valid(&mut self, t: &TileRef) -> TrapResult<BoundWindow<'s>> {
        let w = self.window(t)?;
        self.write(&w, w.part);
        Ok(w)
    }

    /// Reads a part of a tile.
    pub fn read(&mut self, w: &BoundWindow<'_>, part: ElementRect) -> TrapResult {
        let mut whole = true;
        let Worker { tiles, .. } = self;
        w.slot.lines(part, &mut |line| whole = whole && tiles.may_read(&w.slot, line));
        self.note(w, part, false);
        if whole {
            return Ok(());
        }
        part.places().try_for_each(|at| self.readable(w, at))
    }

    /// Reads an element of the window.
    pub fn read_one(&mut self, w: &BoundWindow<'_>, row: usize, col: usize) -> TrapResult {
        let part = ElementRect { row: w.part.row + row, col: w.part.col + col, rows: 1, cols: 1 };
        self.read(w, part)
    }

    /// Fails if an element (row and column of the tile) cannot be read.
    pub fn readable(&self, w: &BoundWindow<'_>, (row, col): (usize, usize)) -> TrapResult {
        match self.tiles.fault(&w.slot, w.slot.index(row, col)) {
            None => Ok(()),
            Some(TileReadFault::Poison) => self.fault(wording::poison(self.s.kernel, w.tile, (row, col))),
            Some(TileReadFault::Confused(by)) => self.fault(wording::confused(self.s.kernel, w.tile, (row, col), by)),
        }
    }

    /// Writes a part of a tile.
    pub fn write(&mut self, w: &BoundWindow<'_>, part: ElementRect) {
        self.note(w, part, true);
        let Worker { tiles, .. } = self;
        w.slot.lines(part, &mut |line| tiles.write(&w.slot, line));
    }

    /// For [`Overlaps`]. Masks are bits, and are left out; tiles without addresses share no bytes.
    fn note(&mut self, w: &BoundWindow<'_>, part: ElementRect, write: bool) {
        if !matches!(w.slot.place, TileStorage::Space(_)) {
            return;
        }
        let mut lines = Vec::new();
        w.slot.lines(part, &mut |line| lines.push(line));
        lines.into_iter().for_each(|line| self.note_line(w, line, write));
    }

    /// The same for elements of a line.
    pub fn note_line(&mut self, w: &BoundWindow<'_>, line: StridedElements, write: bool) {
        let Some(base) = w.slot.bytes(0) else { return };
        if line.step != 1 && line.count > 1 {
            for k in 0..line.count {
                let start = line.start.wrapping_add_signed(line.step * k as isize);
                self.note_line(w, StridedElements { start, step: 1, count: 1 }, write);
            }
            return;
        }
        let size = w.slot.ty.dtype.size() as u64;
        let start = base.start + line.start as u64 * size;
        let bytes = start..start + line.count as u64 * size;
        let BoundWindow { tile, element, slot, part } = *w;
        let at = Owner { tile, element, loc: slot.ty.loc, base: base.start, span: self.span };
        if write {
            self.overlaps.write(&at, bytes);
            return;
        }
        // A byte's element, by its number in the tile.
        let place = |byte: u64| {
            let index = ((byte - base.start) / size) as usize;
            match slot.steps() {
                Some((down, 1)) => (index / down, index % down),
                Some((_, right)) => (index % right, index / right),
                None => part.places().find(|&(row, col)| slot.index(row, col) == index).unwrap_or((0, 0)),
            }
        };
        self.overlaps.read(&at, bytes, &place, Some(&self.coordinates));
    }

    /// Memory of the block that the statement may look at.
    pub fn matrix(&self, of: Data) -> Option<Matrix> {
        self.data.iter().find(|(data, _)| *data == of).map(|(_, matrix)| *matrix)
    }
}

impl Watcher for Worker<'_> {
    fn block(&mut self, number: u64, coords: &[i64]) {
        self.number = number;
        // The launch has fewer blocks, as `Sanitizer::new` has seen.
        self.block = number as u32;
        coords.clone_into(&mut self.coordinates);
        self.tiles.reset();
        self.overlaps.reset();
        for marks in self.own.values_mut() {
            marks.fill(0);
        }
        for (dim, &at) in self.s.kernel.grid.iter().zip(coords) {
            self.values[dim.index.as_u32() as usize] = at as u64;
        }
    }

    fn statement(&mut self, site: u32, values: &[i64]) -> bool {
        let s = self.s;
        let Some(site) = s.sites.get(site as usize) else { return true };
        self.span = site.stmt.span;
        self.take(site, values);
        match self.perform(site) {
            Ok(()) => true,
            Err(trap) => {
                s.stop(self.number, *trap);
                false
            }
        }
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        self.s.leave(std::mem::take(&mut self.overlaps));
    }
}

/// Memories by location, with their capacities.
pub(super) type Capacities = Vec<(Loc, u64)>;
