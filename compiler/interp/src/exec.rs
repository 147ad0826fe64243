//! Statements without regions: scalars, tensors' elements, tiles' elements, addresses, printing.

use super::machine::Machine;
use super::overlap::Site;
use super::pipes::touches::{Object, TouchKind, space_of};
use super::tensors::TensorFault;
use super::tiles::{Missing, Slot, TileReadFault};
use super::trap::Trap;
use super::wording::{self, Use};
use ptoc_diagnostics::codes;
use ptoc_ir::scalar;
use ptoc_ir::tile::{Elem, Op, PrintPart, TensorId, Tile, TileRef, Ty, Update, Value};
use ptoc_isa::{AtomicOp, BinOp};
use ptoc_tensor::DType;

type TrapResult<T = ()> = Result<T, Trap>;

/// A window of a tile as it is used now: all inside the capacity.
pub(super) struct BoundWindow {
    pub tile: Tile,
    /// Of a tile array.
    pub element: u32,
    pub slot: Slot,
    pub row: usize,
    pub col: usize,
    pub rows: usize,
    pub cols: usize,
}

impl<'k> Machine<'k, '_> {
    pub(super) fn simple(&mut self, op: &'k Op) -> TrapResult {
        match op {
            Op::Const { dst, value } => self.set(*dst, value.bits),
            Op::Unary { dst, op, a } => {
                let bits = scalar::unary(*op, self.ty(*a), self.get(*a));
                self.defined(*dst, bits)?;
            }
            Op::Binary { dst, op, a, b } => {
                let bits = scalar::binary(*op, self.ty(*a), self.get(*a), self.get(*b));
                self.defined(*dst, bits)?;
            }
            Op::Compare { dst, op, a, b } => {
                let holds = scalar::compare(*op, self.ty(*a), self.get(*a), self.get(*b));
                self.set(*dst, u64::from(holds));
            }
            Op::Select { dst, cond, a, b } => {
                let bits = self.get(if self.get(*cond) & 1 == 1 { *a } else { *b });
                self.set(*dst, bits);
            }
            Op::Convert { dst, a, round, saturate } => {
                let (from, to) = (self.ty(*a), self.ty(*dst));
                let saturate = scalar::saturates(from, to, *saturate);
                let bits = scalar::convert(from, to, self.get(*a), *round, saturate);
                self.set(*dst, bits);
            }
            Op::Bitcast { dst, a } => self.set(*dst, self.get(*a)),
            Op::Get { dst, var } => self.set(*dst, self.vars[var.as_u32() as usize]),
            Op::Set { var, value } => self.vars[var.as_u32() as usize] = self.get(*value),
            Op::Load { dst, tensor, offset } => {
                let bits = self.tensor_read(*tensor, self.index(*offset))?;
                self.set(*dst, bits);
            }
            Op::Store { tensor, offset, value } => {
                self.tensor_write(*tensor, self.index(*offset), self.get(*value))?;
            }
            Op::Atomic { dst, op, tensor, offset, expected, value } => {
                let expected = expected.map(|v| self.get(v));
                let old =
                    self.atomic(self.update(*dst, *op), *tensor, self.index(*offset), expected, self.get(*value))?;
                self.set(*dst, old);
            }
            Op::TileGet { dst, tile, row, col } => {
                let window = self.window(tile)?;
                let (row, col) = self.inside(&window, *row, *col)?;
                let bits = self.tile_read(&window, row, col)?;
                self.set(*dst, bits);
            }
            Op::TileSet { tile, row, col, value } => {
                let window = self.window(tile)?;
                let (row, col) = self.inside(&window, *row, *col)?;
                self.tile_write(&window, row, col, self.get(*value));
            }
            Op::Alloc { tile } => {
                if let Some(overlaps) = &mut self.overlaps {
                    overlaps.declare(*tile);
                }
                if !self.tiles.alloc(self.k, *tile) {
                    return self.too_large(*tile);
                }
            }
            Op::Assign { tile, element, addr } => self.assign(*tile, *element, self.index(*addr))?,
            Op::Inst(inst) => self.inst(inst)?,
            Op::Copy(copy) => self.copy(copy)?,
            Op::Mma(mma) => self.mma(mma)?,
            Op::Check { cond, check, args } => {
                if self.get(*cond) & 1 == 0 {
                    return Err(self.failed(*check, args));
                }
            }
            Op::Print { parts } => self.print_line(parts)?,
            // One statement after another there is nothing to order; pipes are ordered while issuing.
            Op::Sync(_) => {}
            Op::For(_) | Op::If(_) | Op::While(_) | Op::Scope(_) => {}
            Op::Break(_) | Op::Continue(_) | Op::Leave(_) => {}
        }
        Ok(())
    }

    fn defined(&mut self, dst: Value, bits: Option<u64>) -> TrapResult {
        match bits {
            Some(bits) => self.set(dst, bits),
            None => {
                return self.trap(codes::TRAP_INVALID_IR, format!("{dst}: the operation does not exist on its type"));
            }
        }
        Ok(())
    }

    // ---- tensors -------------------------------------------------------------------------------------------------

    fn tensor_fault<T>(
        &self,
        tensor: TensorId,
        elem: Elem,
        index: i64,
        fault: TensorFault,
        verb: &'static str,
    ) -> TrapResult<T> {
        let (t, name) = (&self.tensors[tensor], self.tensor_name(tensor));
        let of = Use { name, dtype: t.dtype, bytes: t.data.len(), elem, index, verb, block: self.block };
        self.fault(of.fault(fault, |at| t.coordinates(at)))
    }

    pub(super) fn tensor_read(&mut self, tensor: TensorId, index: i64) -> TrapResult<u64> {
        self.element_read(tensor, Elem::Whole(self.tensors[tensor].dtype), index)
    }

    pub(super) fn tensor_write(&mut self, tensor: TensorId, index: i64, bits: u64) -> TrapResult {
        self.element_write(tensor, self.tensors[tensor].dtype, index, bits)
    }

    /// Makes room for the marks that elements of `dtype` need.
    pub(super) fn adapt(&mut self, tensor: TensorId, dtype: DType) -> TrapResult {
        let more = self.tensors[tensor].refinement(dtype);
        if more == 0 {
            return Ok(());
        }
        if !self.tiles.reserve(more) {
            let name = self.tensor_name(tensor);
            let message = format!("to watch the bytes of tensor {name} takes {more} bytes more than the limit leaves");
            return self.trap(codes::TRAP_MEMORY_LIMIT, message);
        }
        self.tensors[tensor].refine();
        Ok(())
    }

    /// Reads an element; half bytes are not counted in the statistics here. [`Self::adapt`] came before.
    pub(super) fn element_read(&mut self, tensor: TensorId, elem: Elem, index: i64) -> TrapResult<u64> {
        self.touch_tensor(tensor, elem, index, TouchKind::Read);
        let halves = match elem {
            Elem::Whole(dtype) => 2 * dtype.size() as u64,
            Elem::U4 | Elem::I4 => 1,
        };
        let moved = &mut self.moved[tensor];
        moved[0] += halves;
        moved[1] += if self.fetched { 0 } else { halves };
        let t = &mut self.tensors[tensor];
        let result = match elem {
            Elem::Whole(dtype) => {
                self.stats.bytes_read += dtype.size() as u64;
                t.read_as(dtype, index, self.block)
            }
            Elem::U4 | Elem::I4 => {
                t.read_as(DType::U8, index.div_euclid(2), self.block).map(|byte| elem.half(byte, index))
            }
        };
        result.or_else(|fault| self.tensor_fault(tensor, elem, index, fault, "read"))
    }

    /// Writes an element of `dtype`. [`Self::adapt`] came before.
    pub(super) fn element_write(&mut self, tensor: TensorId, dtype: DType, index: i64, bits: u64) -> TrapResult {
        self.touch_tensor(tensor, Elem::Whole(dtype), index, TouchKind::Write);
        let t = &mut self.tensors[tensor];
        self.stats.bytes_written += dtype.size() as u64;
        self.moved[tensor][2] += 2 * dtype.size() as u64;
        let result = t.write_as(dtype, index, bits, self.block);
        result.or_else(|fault| self.tensor_fault(tensor, Elem::Whole(dtype), index, fault, "write"))
    }

    /// What a scalar atomic is; whether its old value is used matters only to those who watch the pipes.
    fn update(&self, dst: Value, op: AtomicOp) -> Update {
        Update { op, seen: self.pipes_used.contains(dst) }
    }

    pub(super) fn atomic(
        &mut self,
        update: Update,
        tensor: TensorId,
        index: i64,
        expected: Option<u64>,
        value: u64,
    ) -> TrapResult<u64> {
        let own = Elem::Whole(self.tensors[tensor].dtype);
        self.touch_tensor(tensor, own, index, TouchKind::Atomic(update));
        let t = &mut self.tensors[tensor];
        let dtype = t.dtype;
        let (ty, size) = (Ty::D(dtype), dtype.size() as u64);
        self.stats.bytes_read += size;
        self.stats.bytes_written += size;
        self.moved[tensor].iter_mut().for_each(|halves| *halves += 2 * size);
        let result = t.update(index, self.block, |old| match update.op {
            AtomicOp::Add => scalar::binary(BinOp::Add, ty, old, value),
            AtomicOp::Max => scalar::binary(BinOp::Max, ty, old, value),
            AtomicOp::Min => scalar::binary(BinOp::Min, ty, old, value),
            AtomicOp::And => scalar::binary(BinOp::And, ty, old, value),
            AtomicOp::Or => scalar::binary(BinOp::Or, ty, old, value),
            AtomicOp::Xor => scalar::binary(BinOp::Xor, ty, old, value),
            AtomicOp::Exchange => Some(value),
            // Bits are compared, as the machine does.
            AtomicOp::Cas => (Some(old) == expected).then_some(value),
        });
        result.or_else(|fault| self.tensor_fault(tensor, Elem::Whole(dtype), index, fault, "atomic access"))
    }

    // ---- tiles ---------------------------------------------------------------------------------------------------

    pub(super) fn tile_name(&self, tile: Tile) -> String {
        wording::tile_name(self.k, tile)
    }

    fn too_large<T>(&self, tile: Tile) -> TrapResult<T> {
        self.fault(wording::too_large(self.k, tile, self.options.memory))
    }

    fn element(&self, tile: Tile, element: Option<Value>) -> TrapResult<usize> {
        let n = element.map_or(0, |v| self.index(v));
        let count = self.k.tiles[tile].count;
        match usize::try_from(n) {
            Ok(n) if n < count as usize => Ok(n),
            _ => self.fault(wording::no_element(self.k, tile, n)),
        }
    }

    fn assign(&mut self, tile: Tile, element: Option<Value>, addr: i64) -> TrapResult {
        let element = self.element(tile, element)?;
        let ty = self.k.tiles[tile].ty;
        let capacity = self.options.capacity.iter().find(|(l, _)| *l == ty.loc).map(|&(_, bytes)| bytes);
        if !wording::is_address(ty, addr, capacity) {
            return self.fault(wording::bad_address(self.k, tile, addr, capacity));
        }
        self.tiles.bind(tile, element, addr as u64);
        Ok(())
    }

    /// Resolves a tile operand and checks that its valid part is inside.
    pub(super) fn window(&mut self, t: &TileRef) -> TrapResult<BoundWindow> {
        let element = self.element(t.tile, t.element)?;
        let origin = t.origin.map_or((0, 0), |(r, c)| (self.index(r), self.index(c)));
        let valid = (self.index(t.valid.0), self.index(t.valid.1));
        wording::window(self.k, t, origin, valid).or_else(|words| self.fault(words))?;
        let slot = match self.tiles.slot(self.k, t.tile, element) {
            Ok(slot) => slot,
            Err(Missing::TooLarge) => return self.too_large(t.tile),
            Err(Missing::Unassigned) => {
                return self.fault(wording::unassigned(self.k, t.tile));
            }
        };
        Ok(BoundWindow {
            tile: t.tile,
            element: element as u32,
            slot,
            row: origin.0 as usize,
            col: origin.1 as usize,
            rows: valid.0 as usize,
            cols: valid.1 as usize,
        })
    }

    fn inside(&self, w: &BoundWindow, row: Value, col: Value) -> TrapResult<(usize, usize)> {
        let (i, j) = (self.index(row), self.index(col));
        match (usize::try_from(i), usize::try_from(j)) {
            (Ok(r), Ok(c)) if r < w.rows && c < w.cols => Ok((r, c)),
            _ => self.fault(wording::not_valid(self.k, w.tile, (i, j), (w.rows, w.cols))),
        }
    }

    /// Reads element (row, col) of the window.
    pub(super) fn tile_read(&mut self, w: &BoundWindow, row: usize, col: usize) -> TrapResult<u64> {
        self.touch_tile(w, row, col, TouchKind::Read);
        self.note(w, row, col, TouchKind::Read);
        let fault = match self.tiles.read(&w.slot, w.row + row, w.col + col) {
            Ok(bits) => return Ok(bits),
            Err(fault) => fault,
        };
        let at = (w.row + row, w.col + col);
        self.fault(match fault {
            TileReadFault::Poison => wording::poison(self.k, w.tile, at),
            TileReadFault::Confused(by) => wording::confused(self.k, w.tile, at, by),
        })
    }

    /// Writes element (row, col) of the window.
    pub(super) fn tile_write(&mut self, w: &BoundWindow, row: usize, col: usize, bits: u64) {
        self.touch_tile(w, row, col, TouchKind::Write);
        self.note(w, row, col, TouchKind::Write);
        self.tiles.write(&w.slot, w.row + row, w.col + col, bits);
    }

    /// What an instruction does to its scratch tiles: it writes them, and what it leaves there is its own.
    pub(super) fn scratch(&mut self, op: &Op) -> TrapResult {
        let Op::Inst(inst) = op else { return Ok(()) };
        for t in inst.scratch.iter().filter(|t| self.k.tiles[t.tile].ty.dtype != DType::Bool) {
            let w = self.window(t)?;
            for (row, col) in (0..w.rows).flat_map(|row| (0..w.cols).map(move |col| (row, col))) {
                self.touch_tile(&w, row, col, TouchKind::Write);
                self.tiles.spoil(&w.slot, w.row + row, w.col + col);
            }
        }
        Ok(())
    }

    fn touch_tile(&mut self, w: &BoundWindow, row: usize, col: usize, kind: TouchKind) {
        if let Some(touches) = &mut self.touches
            && let Some(bytes) = self.tiles.physical_bytes(&w.slot, w.row + row, w.col + col)
        {
            let pools = self.options.pipes.iter().flat_map(|p| &p.pools);
            let pool = pools.into_iter().find(|p| p.contains(&w.slot.ty.loc));
            let home = pool.and_then(|p| p.first().copied()).unwrap_or(w.slot.ty.loc);
            touches.add(home as u32, Object::Tile(w.tile, w.element), kind, bytes);
        }
    }

    /// For [`Overlaps`](super::overlap::Overlaps). Masks are bits, and are left out.
    fn note(&mut self, w: &BoundWindow, row: usize, col: usize, kind: TouchKind) {
        let Some(mut overlaps) = self.overlaps.take() else { return };
        let (row, col) = (w.row + row, w.col + col);
        let bytes = self.tiles.physical_bytes(&w.slot, row, col).filter(|_| w.slot.ty.dtype != DType::Bool);
        let base = self.tiles.physical_bytes(&w.slot, 0, 0);
        if let (Some(bytes), Some(base)) = (bytes, base) {
            let loc = w.slot.ty.loc;
            let at = Site { tile: w.tile, element: w.element, loc, base: base.start, span: self.span };
            match kind {
                TouchKind::Write => overlaps.write(&at, bytes),
                _ => overlaps.read(&at, bytes, &|_| (row, col), self.coordinates()),
            }
        }
        self.overlaps = Some(overlaps);
    }

    fn touch_tensor(&mut self, tensor: TensorId, elem: Elem, index: i64, kind: TouchKind) {
        if let (Some(touches), Ok(index)) = (&mut self.touches, u64::try_from(index)) {
            let (start, size) = match elem {
                Elem::Whole(dtype) => (index.saturating_mul(dtype.size() as u64), dtype.size() as u64),
                Elem::U4 | Elem::I4 => (index / 2, 1),
            };
            touches.add(space_of(tensor), Object::Tensor(tensor), kind, start..start.saturating_add(size));
        }
    }

    // ---- printing ------------------------------------------------------------------------------------------------

    /// One line: texts as they are, scalars by [`scalar::display`], tiles as `[[a, b], [c, d]]`.
    fn print_line(&mut self, parts: &[PrintPart]) -> TrapResult {
        let mut line = String::new();
        for part in parts {
            match part {
                PrintPart::Text(text) => line.push_str(text),
                PrintPart::Scalar(v) => line.push_str(&scalar::display(self.ty(*v), self.get(*v))),
                PrintPart::Tile(t) => {
                    let w = self.window(t)?;
                    self.spend((w.rows * w.cols) as u64)?;
                    let ty = Ty::D(w.slot.ty.dtype);
                    let mut rows = Vec::with_capacity(w.rows);
                    for i in 0..w.rows {
                        let mut row = Vec::with_capacity(w.cols);
                        for j in 0..w.cols {
                            row.push(scalar::display(ty, self.tile_read(&w, i, j)?));
                        }
                        rows.push(format!("[{}]", row.join(", ")));
                    }
                    line.push_str(&format!("[{}]", rows.join(", ")));
                }
            }
        }
        line.push('\n');
        (self.print)(&line);
        Ok(())
    }
}
