//! What PTO instructions touch. Sources are read whole before the destination is written, as in the interpreter.

use super::sites::Data;
use super::tensors::{ElementRun, ElementUse};
use super::tiles::{ElementRect, TileStorage};
use super::worker::{BoundWindow, TrapResult, Worker};
use crate::own_source;
use ptoc_ir::scalar;
use ptoc_ir::tile::{Inst, Operand, TensorId, TileRef, Ty, ViewRef};
use ptoc_isa::{Fixpipe, FixpipeWindow as Moved, Oob, Role, Sem, Target, check_overlap};

impl<'s> Worker<'s> {
    pub(super) fn inst(&mut self, inst: &'s Inst) -> TrapResult {
        let row = inst.instr.get();
        self.own_source(inst)?;
        let store = if inst.attrs.atomic.is_some() { ElementUse::Atomic } else { ElementUse::Write };
        let oob = inst.attrs.oob.unwrap_or(Oob::Undefined);
        match (row.sem, &inst.operands[..]) {
            (Sem::Load, [Operand::Tile(d), Operand::View(v)]) => {
                let w = self.window(d)?;
                self.matching(v, &w)?;
                self.view(ElementUse::Read, v)?;
                self.write(&w, w.part);
                Ok(())
            }
            (Sem::Store, [Operand::View(v), Operand::Tile(a)]) => {
                let w = self.window(a)?;
                self.matching(v, &w)?;
                self.read(&w, w.part)?;
                self.view(store, v)
            }
            (Sem::Fixpipe(f), [dst, Operand::Tile(a), rest @ ..]) => self.fixpipe(f, store, dst, a, rest),
            (Sem::GatherRows, [Operand::Tile(d), Operand::View(v), Operand::Tile(idx), ..]) => {
                self.indexed(ElementUse::Read, (v, idx), oob, true)?;
                self.write_valid(d).map(|_| ())
            }
            (Sem::Gather, [Operand::Tile(d), Operand::View(v), Operand::Tile(idx)]) => {
                self.indexed(ElementUse::Read, (v, idx), oob, false)?;
                self.write_valid(d).map(|_| ())
            }
            (Sem::ScatterRows, [Operand::View(v), Operand::Tile(a), Operand::Tile(idx), ..]) => {
                self.read_valid(a)?;
                self.indexed(store, (v, idx), oob, true)
            }
            (Sem::ScatterTo, [Operand::View(v), Operand::Tile(a), Operand::Tile(idx)]) => {
                self.read_valid(a)?;
                self.indexed(store, (v, idx), oob, false)
            }
            (Sem::Cells(cells), [Operand::Tile(d), ..]) => {
                self.cells(cells, inst)?;
                self.write_valid(d).map(|_| ())
            }
            _ => {
                let operands = || row.operands.iter().zip(&inst.operands);
                for (spec, operand) in operands() {
                    match operand {
                        Operand::Tile(t) if spec.role == Role::Src => drop(self.read_valid(t)?),
                        Operand::View(v) if spec.role == Role::Src => self.view(ElementUse::Read, v)?,
                        _ => {}
                    }
                }
                for (spec, operand) in operands() {
                    match operand {
                        Operand::Tile(t) if spec.role == Role::Dst => drop(self.write_valid(t)?),
                        Operand::View(v) if spec.role == Role::Dst => self.view(store, v)?,
                        _ => {}
                    }
                }
                Ok(())
            }
        }
    }

    /// What leaves the accumulator: a window of it to a window of something.
    fn fixpipe(&mut self, f: &Fixpipe, store: ElementUse, dst: &Operand, a: &TileRef, rest: &[Operand]) -> TrapResult {
        let source = self.read_valid(a)?;
        if let (true, Some(Operand::Tile(scales))) = (f.quantised, rest.first()) {
            self.read_valid(scales)?;
        }
        match dst {
            Operand::View(v) => self.view(store, v),
            Operand::Scalar(_) => Ok(()),
            Operand::Tile(d) => {
                let w = self.window(d)?;
                let mut part = w.part;
                if f.window == Moved::OfDestination {
                    // Where it goes is checked before.
                    let at = |k: usize| match rest.get(k + usize::from(f.quantised)) {
                        Some(Operand::Scalar(v)) => usize::try_from(self.index(*v)).ok(),
                        _ => None,
                    };
                    let (Some(row), Some(col)) = (at(0), at(1)) else { return Ok(()) };
                    let ElementRect { rows, cols, .. } = source.part;
                    let fits = |at: usize, n: usize, room: usize| at.checked_add(n).is_some_and(|end| end <= room);
                    if !fits(row, rows, w.part.rows) || !fits(col, cols, w.part.cols) {
                        return Ok(());
                    }
                    part = ElementRect { row: w.part.row + row, col: w.part.col + col, rows, cols };
                }
                self.write(&w, part);
                Ok(())
            }
        }
    }

    /// Uses the elements (or whole rows) of a view to which the indices in a tile lead. One that leads nowhere ends the
    /// launch by the code's own check, if it does.
    fn indexed(&mut self, kind: ElementUse, (v, idx): (&ViewRef, &TileRef), oob: Oob, rows: bool) -> TrapResult {
        let w = self.read_valid(idx)?;
        let Some(matrix) = self.matrix(Data::Tile(*idx)) else { return Ok(()) };
        let shape: Vec<i64> = v.shape.iter().map(|&n| self.index(n)).collect();
        let strides: Vec<i64> = v.strides.iter().map(|&n| self.index(n)).collect();
        let (offset, tensor) = (self.index(v.offset), v.tensor);
        // Wherever an index leads in a table that nobody writes: it is inside, if the table is.
        if self.s.tensors[tensor].is_constant() && self.view_is_inside(tensor, offset, &shape, &strides) {
            return Ok(());
        }
        let ty = Ty::D(w.slot.ty.dtype);
        let whole = shape.iter().try_fold(1i64, |n, &e| n.checked_mul(e.max(0))).unwrap_or(i64::MAX);
        let len = if rows { shape.first().copied().unwrap_or(0) } else { whole };
        // Whether the elements follow each other.
        let dense = !rows && follow(&shape, &strides);
        // Neighbours that were found, which are used at once.
        let mut open = ElementRun { start: 0, step: 1, count: 0 };
        for i in 0..w.part.rows as i64 {
            for j in 0..w.part.cols as i64 {
                // SAFETY: the element is of the valid part of the tile, which the code has told where it is.
                let bits = unsafe { matrix.element(i, j, w.slot.ty.dtype.size()) };
                let n = match oob.lead(scalar::to_int(ty, bits) as i64, len) {
                    Some(n) => n,
                    None if oob == Oob::Zero => continue,
                    None => return Ok(()),
                };
                if rows {
                    let start = at(offset, &[n], &strides);
                    let (step, count) = (strides.get(1).copied().unwrap_or(0), shape.get(1).copied().unwrap_or(1));
                    self.run(kind, tensor, None, ElementRun { start, step, count: count.max(0) as u64 })?;
                    continue;
                }
                let element = match dense {
                    true => offset.checked_add(n).unwrap_or(-1),
                    false => nth(offset, n, &shape, &strides),
                };
                if open.count > 0 && element == open.at(open.count) {
                    open.count += 1;
                    continue;
                }
                self.run(kind, tensor, None, open)?;
                open = ElementRun { start: element, step: 1, count: 1 };
            }
        }
        self.run(kind, tensor, None, open)
    }

    /// Whether all elements of a window are inside its tensor.
    fn view_is_inside(&self, tensor: TensorId, offset: i64, shape: &[i64], strides: &[i64]) -> bool {
        let last = |(&extent, &stride): (&i64, &i64)| i128::from((extent - 1).max(0)) * i128::from(stride);
        let reach: Vec<i128> = shape.iter().zip(strides).map(last).collect();
        let low = i128::from(offset) + reach.iter().filter(|r| **r < 0).sum::<i128>();
        let high = i128::from(offset) + reach.iter().filter(|r| **r > 0).sum::<i128>();
        low >= 0 && high < self.s.tensors[tensor].elements() as i128
    }

    /// Fails if the destination of `inst` has bytes of a source that the instruction reads again after it has begun to
    /// write.
    fn own_source(&mut self, inst: &'s Inst) -> TrapResult {
        let kernel = self.s.kernel;
        let Some(Operand::Tile(d)) = inst.operands.first() else { return Ok(()) };
        let sources = || inst.operands.iter().enumerate().skip(1);
        // Tiles without addresses share bytes with themselves alone.
        let may_meet = |s: &TileRef| s.tile == d.tile || !self.is_private(s) && !self.is_private(d);
        if !sources().any(|(_, o)| matches!(o, Operand::Tile(s) if may_meet(s))) {
            return Ok(());
        }
        if Target::builtin(&kernel.target).ok().and_then(|t| check_overlap(t, inst.instr, 1)).is_none() {
            return Ok(());
        }
        let destination = self.window(d)?;
        for (n, operand) in sources() {
            let Operand::Tile(s) = operand else { continue };
            let source = self.window(s)?;
            if !meet(&destination, &source) {
                continue;
            }
            let side = |w: &BoundWindow<'_>| own_source::OverlappingWindow {
                tile: w.tile,
                element: w.element,
                start: (w.part.row, w.part.col),
                shape: (w.part.rows, w.part.cols),
                bytes: w.slot.place_in_memory(),
            };
            let sides = [side(&destination), side(&source)];
            return Err(Box::new(own_source::trap(kernel, inst, n, &sides, self.span, self.coordinates().to_vec())));
        }
        Ok(())
    }

    fn is_private(&self, t: &TileRef) -> bool {
        self.s.kernel.tiles[t.tile].addr == ptoc_ir::tile::AddrKind::Auto
    }
}

/// Whether the valid parts of two windows have an element or a byte in common.
fn meet(a: &BoundWindow<'_>, b: &BoundWindow<'_>) -> bool {
    match (a.slot.place, b.slot.place) {
        (TileStorage::Private(x, i), TileStorage::Private(y, j)) => {
            let apart = |p: usize, n: usize, q: usize, m: usize| p + n <= q || q + m <= p;
            let (p, q) = (a.part, b.part);
            (x, i) == (y, j) && !apart(p.row, p.rows, q.row, q.rows) && !apart(p.col, p.cols, q.col, q.cols)
        }
        (TileStorage::Space(_), TileStorage::Space(_)) if a.slot.ty.loc == b.slot.ty.loc => {
            fn bytes<'w>(w: &'w BoundWindow<'_>) -> impl Iterator<Item = u64> + 'w {
                w.part.places().flat_map(move |(row, col)| w.slot.footprint(w.slot.index(row, col)))
            }
            // Bits of masks and plain bytes are apart.
            let masks = |w: &BoundWindow<'_>| w.slot.is_mask();
            let own: rustc_hash::FxHashSet<u64> = bytes(a).collect();
            masks(a) == masks(b) && bytes(b).any(|byte| own.contains(&byte))
        }
        _ => false,
    }
}

/// Whether the last index of such a view moves by one element, and each other one by all that it contains.
fn follow(shape: &[i64], strides: &[i64]) -> bool {
    let mut size = 1i64;
    shape.iter().zip(strides).rev().all(|(&extent, &stride)| {
        let fits = extent == 1 || stride == size;
        size = size.saturating_mul(extent.max(1));
        fits
    })
}

/// Number of element `n` of a view, in row-major order; what overflows is outside every tensor.
fn nth(offset: i64, n: i64, shape: &[i64], strides: &[i64]) -> i64 {
    let mut rest = n;
    let steps = shape.iter().zip(strides).rev().map(|(&extent, &stride)| {
        let index = rest % extent.max(1);
        rest /= extent.max(1);
        i128::from(index) * i128::from(stride)
    });
    i64::try_from(i128::from(offset) + steps.sum::<i128>()).unwrap_or(-1)
}

/// Number of an element; what overflows is outside every tensor.
fn at(offset: i64, index: &[i64], strides: &[i64]) -> i64 {
    let steps = index.iter().zip(strides).map(|(&i, &s)| i128::from(i) * i128::from(s));
    i64::try_from(i128::from(offset) + steps.sum::<i128>()).unwrap_or(-1)
}
