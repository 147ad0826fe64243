//! PTO instructions. Sources are read whole before the destination is written, so a tile may be both.

use super::clusters::Window;
use super::exec::BoundWindow;
use super::fixpipe;
use super::machine::Machine;
use super::matrix::{self, Matrix, Start};
use super::named;
use super::trap::Trap;
use super::wording;
use ptoc_diagnostics::codes;
use ptoc_ir::tile::{Inst, InstAttrs, Operand, TensorId, TileRef, Ty, Update, Value, ViewRef};
use ptoc_ir::{formula, indexed, scalar};
use ptoc_isa::{AtomicOp, Expr, Oob, Read, Role, RoundMode, Sem};
use ptoc_tensor::DType;
use ptoc_tensor::matrix_unit::SumProfile;

type TrapResult<T = ()> = Result<T, Trap>;

/// A view with its numbers.
pub(super) struct View<'k> {
    pub at: &'k ViewRef,
    offset: i64,
    pub shape: Vec<i64>,
    strides: Vec<i64>,
}

impl View<'_> {
    /// Element number of a multi-index; arithmetic that overflows lands outside every tensor.
    pub fn element(&self, index: &[i64]) -> i64 {
        let steps = index.iter().zip(&self.strides).map(|(&i, &s)| i128::from(i) * i128::from(s));
        i64::try_from(i128::from(self.offset) + steps.sum::<i128>()).unwrap_or(-1)
    }

    /// Number of elements; `None` if that is beyond i64.
    fn len(&self) -> Option<i64> {
        self.shape.iter().try_fold(1i64, |n, &e| n.checked_mul(e.max(0)))
    }

    /// The element with this number in row-major order.
    fn nth(&self, n: i64) -> i64 {
        let mut rest = n;
        let mut index = vec![0; self.shape.len()];
        for (i, &extent) in index.iter_mut().zip(&self.shape).rev() {
            *i = rest % extent.max(1);
            rest /= extent.max(1);
        }
        self.element(&index)
    }
}

impl<'k> Machine<'k, '_> {
    pub(super) fn inst(&mut self, inst: &'k Inst) -> TrapResult {
        let row = inst.instr.get();
        *self.stats.instructions.entry(row.name).or_default() += 1;
        self.own_source(inst)?;
        let ops = &inst.operands[..];
        match (row.sem, ops) {
            (Sem::Load, [Operand::Tile(d), Operand::View(v)]) => self.load(d, v),
            (Sem::Store, [Operand::View(v), Operand::Tile(a)]) => self.store(v, a, &inst.attrs),
            (Sem::Fixpipe(f), _) => self.fixpipe(f, inst),
            (Sem::Prefetch, [Operand::View(_)]) => Ok(()),
            (Sem::GatherRows, [Operand::Tile(d), Operand::View(v), Operand::Tile(idx), _]) => {
                self.gather_rows(d, v, idx, inst.attrs.oob.unwrap_or(Oob::Undefined))
            }
            (Sem::ScatterRows, [Operand::View(v), Operand::Tile(a), Operand::Tile(idx), _]) => {
                self.scatter_rows(v, a, idx, inst.attrs.oob.unwrap_or(Oob::Undefined), inst.attrs.atomic)
            }
            (Sem::Gather, [Operand::Tile(d), Operand::View(v), Operand::Tile(idx)]) => {
                self.gather(d, v, idx, inst.attrs.oob.unwrap_or(Oob::Undefined))
            }
            (Sem::ScatterTo, [Operand::View(v), Operand::Tile(a), Operand::Tile(idx)]) => {
                self.scatter_to(v, a, idx, inst.attrs.oob.unwrap_or(Oob::Undefined), inst.attrs.atomic)
            }
            (
                Sem::Sample,
                [Operand::Tile(d), Operand::View(map), Operand::View(line), Operand::View(weights), offs @ ..],
            ) => {
                let offsets = match offs {
                    [Operand::View(v)] => Some(v),
                    [] => None,
                    _ => return self.malformed(row.name),
                };
                self.sample(d, [map, line, weights], offsets, &inst.attrs)
            }
            _ if row.results().nth(1).is_some() => self.several(inst),
            (_, [Operand::Tile(d), sources @ ..]) => {
                let dtype = self.k.tiles[d.tile].ty.dtype;
                let result = match (row.sem, row.sem.expr()) {
                    (Sem::Named(named), _) => self.named(named, inst, dtype)?,
                    (Sem::Scatter, _) => self.scatter(inst)?,
                    (Sem::Cells(cells), _) => self.cells(cells, inst, dtype)?,
                    (_, Some(expr)) => self.formula(&expr, inst, dtype)?,
                    (sem, None) => self.compute(sem, inst, dtype, sources)?,
                };
                if row.sem == Sem::Move {
                    self.stats.bytes_moved += (result.bits.len() * dtype.size()) as u64;
                }
                self.give(row.name, d, &result)
            }
            _ => self.malformed(row.name),
        }
    }

    /// Writes the result of an instruction, which has the valid shape of its destination.
    fn give(&mut self, name: &str, d: &'k TileRef, result: &Matrix) -> TrapResult {
        let w = self.window(d)?;
        if (result.rows, result.cols) != (w.rows, w.cols) {
            let (rows, cols) = (result.rows, result.cols);
            let (tile, r, c) = (self.tile_name(d.tile), w.rows, w.cols);
            let message = format!("{name} makes {rows} x {cols} elements, tile {tile} is valid as {r} x {c}");
            return self.trap(codes::TRAP_TILE_OUT_OF_BOUNDS, message);
        }
        self.put(&w, |i, j| result.at(i, j))
    }

    /// An instruction of two results: both are made, then written in the order of the operands.
    fn several(&mut self, inst: &'k Inst) -> TrapResult {
        let row = inst.instr.get();
        let (mut results, mut sources, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for (spec, operand) in row.operands.iter().zip(&inst.operands) {
            match (spec.role, operand) {
                (Role::Dst, Operand::Tile(t)) => results.push(t),
                (Role::Src, Operand::Tile(t)) => sources.push(self.take(t)?),
                (Role::Src, Operand::Scalar(v)) => numbers.push(self.index(*v)),
                _ => return self.malformed(row.name),
            }
        }
        let cols = self.window(results[0])?.cols;
        let dtype = |t: &TileRef| self.k.tiles[t.tile].ty.dtype;
        let made = match (row.sem, &sources[..]) {
            (Sem::RowArgValues(op), [a]) => {
                let index = matrix::row_arg(op, dtype(results[1]), a);
                Some([matrix::chosen(a, &index), index])
            }
            (Sem::PartArg(op), [a, b, ai, bi]) => matrix::part_arg(op, a, b, ai, bi),
            (Sem::Interleave, [b, a]) => matrix::interleave(a, b).map(|[first, second]| [second, first]),
            (Sem::Deinterleave, [b, a]) => matrix::deinterleave(&[a, b]).map(|[even, odd]| [odd, even]),
            (Sem::DeinterleaveOne, [a]) => matrix::deinterleave(&[a]).map(|[even, odd]| [odd, even]),
            (Sem::Named(_), [a, k]) => match (inst.attrs.cmp, &numbers[..]) {
                (Some(op), [first]) => named::places(op, dtype(results[0]), cols, a, k, *first),
                _ => None,
            },
            _ => None,
        };
        let Some(made) = made else { return self.malformed(row.name) };
        for (d, result) in results.into_iter().zip(&made) {
            self.give(row.name, d, result)?;
        }
        Ok(())
    }

    pub(super) fn malformed<T>(&self, name: &str) -> TrapResult<T> {
        self.trap(codes::TRAP_INVALID_IR, format!("{name} has operands that it cannot have"))
    }

    /// Everything that makes one tile of tiles and scalars. `dtype` is that of the destination.
    fn compute(&mut self, sem: Sem, inst: &'k Inst, dtype: DType, sources: &'k [Operand]) -> TrapResult<Matrix> {
        let name = inst.instr.get().name;
        let mut tiles = Vec::new();
        for source in sources {
            match source {
                Operand::Tile(t) => tiles.push(self.take(t)?),
                Operand::Scalar(_) | Operand::View(_) => return self.malformed(name),
            }
        }
        let missing = |m: &Self| m.malformed(name);
        let result = match (sem, &tiles[..]) {
            (Sem::Move, [a]) => self.moved(a, dtype, &inst.attrs),
            (Sem::RowArg(op), [a]) => Some(matrix::row_arg(op, dtype, a)),
            (Sem::ColArg(op), [a]) => Some(matrix::col_arg(op, dtype, a)),
            (Sem::PairSum, [a]) => Some(matrix::pair_sum(a)),
            (Sem::Part(op), [a, b]) => matrix::part(op, a, b),
            (Sem::RowReduce(op), [a]) => Some(matrix::row_reduce(op, inst.attrs.stepwise, a)),
            (Sem::ColReduce(op), [a]) => Some(matrix::col_reduce(op, inst.attrs.stepwise, a)),
            (Sem::Matmul, [a, b]) => self.product(dtype, &Start::Zero, a, b, &inst.attrs)?,
            (Sem::MatmulAcc, [c, a, b]) if (c.rows, c.cols) == (a.rows, b.cols) => {
                self.product(dtype, &Start::Matrix(c), a, b, &inst.attrs)?
            }
            (Sem::MatmulBias, [a, b, bias]) if (bias.rows, bias.cols) == (1, b.cols) => {
                self.product(dtype, &Start::Row(bias), a, b, &inst.attrs)?
            }
            _ => None,
        };
        match result {
            Some(result) => Ok(result),
            None => missing(self),
        }
    }

    /// An element-wise instruction: its expression for every element of the destination's valid shape.
    fn formula(&mut self, expr: &Expr, inst: &'k Inst, dtype: DType) -> TrapResult<Matrix> {
        enum Source {
            Tile(Matrix, Read),
            Scalar(DType, u64),
        }
        let row = inst.instr.get();
        let mut sources = Vec::new();
        for (k, operand) in inst.operands.iter().enumerate().skip(1) {
            sources.push(match operand {
                Operand::Tile(t) => Source::Tile(self.take(t)?, row.read(k)),
                Operand::Scalar(v) => match self.k.values[*v].ty {
                    Ty::D(d) => Source::Scalar(d, self.get(*v)),
                    Ty::Index => return self.malformed(row.name),
                },
                Operand::View(_) => return self.malformed(row.name),
            });
        }
        let Some(Operand::Tile(d)) = inst.operands.first() else { return self.malformed(row.name) };
        let w = self.window(d)?;
        let (rows, cols) = (w.rows, w.cols);
        for source in &sources {
            let Source::Tile(m, read) = source else { continue };
            let wanted = match read {
                Read::Whole => (rows, cols),
                Read::Column => (rows, 1),
                Read::Row => (1, cols),
                Read::Turned => (cols, rows),
            };
            if (m.rows, m.cols) != wanted {
                return self.malformed(row.name);
            }
        }
        // Elements that only change places keep every bit, those of a NaN too.
        if let (Expr::Arg(_), [Source::Tile(m, Read::Turned)]) = (expr, &sources[..])
            && m.dtype == dtype
        {
            return Ok(Matrix::new(dtype, rows, cols, |i, j| m.at(j, i)));
        }
        if inst.attrs.reversed && sources.len() == 2 {
            sources.swap(0, 1);
        }
        let mut operands = vec![(dtype, 0); sources.len() + 1];
        let mut bits = Vec::with_capacity(rows * cols);
        for i in 0..rows {
            for j in 0..cols {
                for (at, source) in operands[1..].iter_mut().zip(&sources) {
                    *at = match source {
                        Source::Scalar(d, bits) => (*d, *bits),
                        Source::Tile(m, read) => {
                            let bits = match read {
                                Read::Whole => m.at(i, j),
                                Read::Column => m.at(i, 0),
                                Read::Row => m.at(0, j),
                                Read::Turned => m.at(j, i),
                            };
                            (m.dtype, bits)
                        }
                    };
                }
                match formula::eval_with(expr, dtype, &operands, &inst.attrs, self.options.exponential) {
                    Some(x) => bits.push(x),
                    None => return self.malformed(row.name),
                }
            }
        }
        Ok(Matrix { dtype, rows, cols, bits })
    }

    fn product(
        &mut self,
        acc: DType,
        start: &Start<'_>,
        a: &Matrix,
        b: &Matrix,
        attrs: &InstAttrs,
    ) -> TrapResult<Option<Matrix>> {
        if a.cols != b.rows {
            return Ok(None);
        }
        self.spend((a.rows as u64).saturating_mul(a.cols as u64).saturating_mul(b.cols as u64))?;
        if attrs.stepwise {
            return Ok(Some(matrix::summed_products(acc, start, a, b, attrs.round.is_some())));
        }
        let Some(factors) = attrs.factors else {
            let of = |dtype| self.profile(acc, dtype).filter(|_| dtype != DType::F32);
            return Ok(Some(match (of(a.dtype), of(b.dtype)) {
                (Some(profile), Some(other)) if profile == other => matrix::matmul_on_unit(profile, start, a, b),
                _ => matrix::matmul(acc, start, a, b),
            }));
        };
        if (a.dtype, b.dtype) != (DType::F32, DType::F32) {
            return Ok(None);
        }
        let even = attrs.round == Some(RoundMode::Rint);
        let rounded = |m: &Matrix| m.map(m.dtype, |x| u64::from(factors.rounded(x as u32, even)));
        let (a, b) = (rounded(a), rounded(b));
        Ok(Some(match self.profile(acc, DType::F32) {
            Some(profile) => matrix::matmul_on_unit(profile, start, &a, &b),
            None => matrix::matmul(acc, start, &a, &b),
        }))
    }

    /// How a matrix unit adds products of such factors to sums of f32.
    fn profile(&self, acc: DType, factors: DType) -> Option<SumProfile> {
        let mut profiles = self.options.matrix_unit.iter();
        profiles.find(|(of, _)| acc == DType::F32 && factors == *of).map(|(_, profile)| *profile)
    }

    /// The elements of a tile as a move or a store leaves them.
    fn moved(&self, a: &Matrix, to: DType, attrs: &InstAttrs) -> Option<Matrix> {
        let mut whole = true;
        let moved = a.map(to, |x| match attrs.relu {
            true => fixpipe::positive(a.dtype, to, x).unwrap_or_else(|| {
                whole = false;
                0
            }),
            false => {
                let (from, to) = (a.ty(), Ty::D(to));
                scalar::convert(from, to, x, RoundMode::Rint, scalar::saturates_unasked(from, to))
            }
        });
        whole.then_some(moved)
    }

    /// The valid part of a tile operand.
    pub(super) fn take(&mut self, t: &TileRef) -> TrapResult<Matrix> {
        let w = self.window(t)?;
        self.spend((w.rows * w.cols) as u64)?;
        let mut bits = Vec::with_capacity(w.rows * w.cols);
        for i in 0..w.rows {
            for j in 0..w.cols {
                bits.push(self.tile_read(&w, i, j)?);
            }
        }
        Ok(Matrix { dtype: w.slot.ty.dtype, rows: w.rows, cols: w.cols, bits })
    }

    pub(super) fn put(&mut self, w: &BoundWindow, element: impl Fn(usize, usize) -> u64) -> TrapResult {
        self.spend((w.rows * w.cols) as u64)?;
        for i in 0..w.rows {
            for j in 0..w.cols {
                self.tile_write(w, i, j, element(i, j));
            }
        }
        Ok(())
    }

    // ---- global memory -------------------------------------------------------------------------------------------

    pub(super) fn view(&self, at: &'k ViewRef) -> View<'k> {
        let numbers = |values: &[Value]| values.iter().map(|&v| self.index(v)).collect();
        View { at, offset: self.index(at.offset), shape: numbers(&at.shape), strides: numbers(&at.strides) }
    }

    /// A view that must have the shape of a window.
    fn matching(&self, at: &'k ViewRef, w: &BoundWindow) -> TrapResult<View<'k>> {
        let view = self.view(at);
        if view.shape[..] == [w.rows as i64, w.cols as i64] {
            return Ok(view);
        }
        self.fault(wording::other_shape(self.k, at.tensor, &view.shape, (w.rows, w.cols)))
    }

    fn load(&mut self, d: &'k TileRef, v: &'k ViewRef) -> TrapResult {
        let w = self.window(d)?;
        let view = self.matching(v, &w)?;
        self.spend((w.rows * w.cols) as u64)?;
        self.loads(|| Window::new(v.tensor, &[&[view.offset], &view.shape, &view.strides]));
        for i in 0..w.rows {
            for j in 0..w.cols {
                let bits = self.tensor_read(v.tensor, view.element(&[i as i64, j as i64]))?;
                self.tile_write(&w, i, j, bits);
            }
        }
        Ok(())
    }

    fn store(&mut self, v: &'k ViewRef, a: &'k TileRef, attrs: &InstAttrs) -> TrapResult {
        let w = self.window(a)?;
        let view = self.matching(v, &w)?;
        let dtype = self.tensors[v.tensor].dtype;
        let source = self.take(a)?;
        let Some(source) = self.moved(&source, dtype, attrs) else { return self.malformed("TSTORE") };
        for i in 0..w.rows {
            for j in 0..w.cols {
                let element = view.element(&[i as i64, j as i64]);
                self.put_element(v.tensor, element, source.at(i, j), attrs.atomic)?;
            }
        }
        Ok(())
    }

    /// Writes an element, or updates it.
    pub(super) fn put_element(
        &mut self,
        tensor: TensorId,
        element: i64,
        bits: u64,
        atomic: Option<AtomicOp>,
    ) -> TrapResult {
        match atomic {
            Some(op) => self.atomic(Update::unseen(op), tensor, element, None, bits).map(|_| ()),
            None => self.tensor_write(tensor, element, bits),
        }
    }

    fn scatter_to(
        &mut self,
        v: &'k ViewRef,
        a: &'k TileRef,
        idx: &'k TileRef,
        oob: Oob,
        atomic: Option<AtomicOp>,
    ) -> TrapResult {
        let (source, index) = (self.take(a)?, self.take(idx)?);
        let view = self.view(v);
        if (index.rows, index.cols) != (source.rows, source.cols) {
            return self.malformed("MSCATTER");
        }
        // A table beyond i64 has elements outside every tensor anyway.
        let len = view.len().unwrap_or(i64::MAX);
        self.spend((index.rows * index.cols) as u64)?;
        for i in 0..index.rows {
            for j in 0..index.cols {
                if let Some(n) = self.led(&index, (i, j), (len, indexed::ELEMENT, true), oob, (v, idx))? {
                    self.put_element(v.tensor, view.nth(n), source.at(i, j), atomic)?;
                }
            }
        }
        Ok(())
    }

    fn gather(&mut self, d: &'k TileRef, v: &'k ViewRef, idx: &'k TileRef, oob: Oob) -> TrapResult {
        let index = self.take(idx)?;
        let w = self.window(d)?;
        let view = self.view(v);
        if (index.rows, index.cols) != (w.rows, w.cols) {
            return self.malformed("MGATHER");
        }
        // A table beyond i64 has elements outside every tensor anyway.
        let len = view.len().unwrap_or(i64::MAX);
        self.spend((w.rows * w.cols) as u64)?;
        for i in 0..w.rows {
            for j in 0..w.cols {
                let bits = match self.led(&index, (i, j), (len, indexed::ELEMENT, false), oob, (v, idx))? {
                    Some(n) => self.tensor_read(v.tensor, view.nth(n))?,
                    None => 0,
                };
                self.tile_write(&w, i, j, bits);
            }
        }
        Ok(())
    }

    /// Rows of a table; one that is not there is zeros, or not.
    fn gather_rows(&mut self, d: &'k TileRef, v: &'k ViewRef, idx: &'k TileRef, oob: Oob) -> TrapResult {
        let index = self.take(idx)?;
        let (w, view) = (self.window(d)?, self.view(v));
        let [total, cols] = view.shape[..] else { return self.malformed("MGATHER_ROWS") };
        if !numbers(&index, w.rows) || cols != w.cols as i64 {
            return self.malformed("MGATHER_ROWS");
        }
        self.spend((w.rows * w.cols) as u64)?;
        for i in 0..w.rows {
            let row = self.led(&index, nth_index(&index, i), (total, indexed::ROW, false), oob, (v, idx))?;
            for j in 0..w.cols {
                let bits = match row {
                    Some(row) => self.tensor_read(v.tensor, view.element(&[row, j as i64]))?,
                    None => 0,
                };
                self.tile_write(&w, i, j, bits);
            }
        }
        Ok(())
    }

    fn scatter_rows(
        &mut self,
        v: &'k ViewRef,
        a: &'k TileRef,
        idx: &'k TileRef,
        oob: Oob,
        atomic: Option<AtomicOp>,
    ) -> TrapResult {
        let (source, index) = (self.take(a)?, self.take(idx)?);
        let view = self.view(v);
        let [total, cols] = view.shape[..] else { return self.malformed("MSCATTER_ROWS") };
        if !numbers(&index, source.rows) || cols != source.cols as i64 {
            return self.malformed("MSCATTER_ROWS");
        }
        self.spend((source.rows * source.cols) as u64)?;
        for i in 0..source.rows {
            let at = nth_index(&index, i);
            let Some(row) = self.led(&index, at, (total, indexed::ROW, true), oob, (v, idx))? else { continue };
            for j in 0..source.cols {
                self.put_element(v.tensor, view.element(&[row, j as i64]), source.at(i, j), atomic)?;
            }
        }
        Ok(())
    }

    /// Which of the `len` elements or rows of a table the index at a place leads to; `None`: none, and that is let
    /// pass.
    fn led(
        &mut self,
        index: &Matrix,
        at: (usize, usize),
        (len, what, scatters): (i64, &'static str, bool),
        oob: Oob,
        (v, idx): (&ViewRef, &TileRef),
    ) -> TrapResult<Option<i64>> {
        let n = scalar::to_int(index.ty(), index.at(at.0, at.1)) as i64;
        match oob.lead(n, len) {
            None if oob != Oob::Zero => {
                let lookup = indexed::Lookup { oob, scatters, what };
                let (text, help) = lookup.outside(&self.k.tensors[v.tensor].name, &self.k.tiles[idx.tile].name);
                let message = indexed::filled(&text, &[n, len, at.0 as i64, at.1 as i64]);
                let trap = self.trap(codes::GATHER_INDEX, message);
                trap.map_err(|t| Trap { help: Some(help.to_owned()), ..t })
            }
            led => Ok(led),
        }
    }
}

/// Where the index of row `i` stands.
fn nth_index(index: &Matrix, i: usize) -> (usize, usize) {
    if index.cols == 1 { (i, 0) } else { (0, i) }
}

/// Whether these are the indices of so many rows, in a row or in a column.
fn numbers(index: &Matrix, rows: usize) -> bool {
    (index.rows, index.cols) == (1, rows) || (index.rows, index.cols) == (rows, 1)
}
