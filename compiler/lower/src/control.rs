//! Statements other than instructions: scalars, control flow, checks, scalar access to memory.

use super::{Lower, convert, ops, reg_ty};
use ptoc_ir::loops::{self, Addr, Atomic, Base, Cast, LTy, MemTy, Reg, Stride};
use ptoc_ir::tile::{Const, Op, PrintPart, Region, Stmt, TensorId, TileRef, Ty, Value};
use ptoc_tensor::DType;

impl Lower<'_> {
    /// A region in a block of its own.
    fn nested(&mut self, region: &Region) -> loops::Region {
        self.code.push();
        self.region(region);
        self.code.pop()
    }

    fn ty(&self, value: Value) -> Ty {
        self.kernel.values[value].ty
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt) {
        self.code.span = stmt.span;
        if self.in_product(&stmt.op) {
            return;
        }
        match &stmt.op {
            Op::Const { dst, value } => self.values[*dst] = Some(self.const_reg(*value)),
            Op::Unary { dst, op, a } => {
                let a = self.value(*a);
                let ty = self.ty(*dst);
                let raw = ops::unary(&mut self.code, ty, *op, a);
                self.values[*dst] = Some(ops::settle(&mut self.code, ty, raw));
            }
            Op::Binary { dst, op, a, b } => {
                let (a, b) = (self.value(*a), self.value(*b));
                let ty = self.ty(*dst);
                let raw = ops::binary(&mut self.code, ty, *op, a, b);
                self.values[*dst] = Some(ops::settle(&mut self.code, ty, raw));
            }
            Op::Compare { dst, op, a, b } => {
                let ty = self.ty(*a);
                let (a, b) = (self.value(*a), self.value(*b));
                self.values[*dst] = Some(ops::compare(&mut self.code, ty, *op, a, b));
            }
            Op::Select { dst, cond, a, b } => {
                let (cond, a, b) = (self.value(*cond), self.value(*a), self.value(*b));
                self.values[*dst] = Some(self.code.select(cond, a, b));
            }
            Op::Convert { dst, a, round, saturate } => {
                let (from, to) = (self.ty(*a), self.ty(*dst));
                let a = self.value(*a);
                let saturate = ptoc_ir::scalar::saturates(from, to, *saturate);
                let raw = convert::convert(&mut self.code, from, to, a, *round, saturate);
                self.values[*dst] = Some(ops::settle(&mut self.code, to, raw));
            }
            Op::Bitcast { dst, a } => {
                let (from, to) = (self.ty(*a), self.ty(*dst));
                let a = self.value(*a);
                self.values[*dst] = Some(self.bitcast(from, to, a));
            }
            Op::Get { dst, var } => {
                let var = self.var(*var);
                self.values[*dst] = Some(self.code.get(var));
            }
            Op::Set { var, value } => {
                let (var, value) = (self.var(*var), self.value(*value));
                self.code.emit(loops::Op::Set { var, value });
            }
            Op::Load { dst, tensor, offset } => {
                let (ty, addr) = self.element(*tensor, *offset);
                self.values[*dst] = Some(self.code.load(ty, addr));
            }
            Op::Store { tensor, offset, value } => {
                let (ty, addr) = self.element(*tensor, *offset);
                let value = self.value(*value);
                self.code.store(ty, addr, value);
            }
            Op::Atomic { dst, op, tensor, offset, expected, value } => {
                let (ty, addr) = self.element(*tensor, *offset);
                let unsigned = ops::kind(self.ty(*value)) == ops::Arithmetic::Unsigned;
                let expected = expected.map(|e| self.value(e));
                let value = self.value(*value);
                let old = self.code.reg(ty.reg());
                let op = Atomic { dst: old, op: *op, unsigned, ty, addr, expected, value };
                self.code.emit(loops::Op::Atomic(Box::new(op)));
                self.values[*dst] = Some(old);
            }
            Op::TileGet { dst, tile, row, col } => {
                let (ty, addr) = self.tile_element(tile, *row, *col);
                self.values[*dst] = Some(self.code.load(ty, addr));
            }
            Op::TileSet { tile, row, col, value } => {
                let (ty, addr) = self.tile_element(tile, *row, *col);
                let value = self.value(*value);
                self.code.store(ty, addr, value);
            }
            // Bytes have no poison on the machine.
            Op::Alloc { .. } => {}
            // The machine runs a block in program order, which is what the order of pipes may never change.
            Op::Sync(_) => {}
            Op::Assign { tile, element, addr } => self.assign(*tile, *element, *addr),
            Op::Inst(inst) => self.inst(inst),
            Op::Copy(copy) => self.copy(copy),
            Op::Mma(mma) => self.mma(mma),
            Op::Check { cond, check, args } => {
                let row = self.check_row(*check, stmt.span);
                let cond = self.value(*cond);
                let args = args.iter().take(4).map(|&a| self.check_arg(a)).collect();
                self.code.emit(loops::Op::Check { cond, check: row, args });
            }
            Op::Print { parts } => {
                let parts = parts.iter().map(|p| self.print_part(p)).collect();
                self.code.emit(loops::Op::Print { parts });
            }
            Op::For(f) => {
                self.split_product(f);
                let (lo, hi) = (self.value(f.lo), self.value(f.hi));
                let (label, index) = (self.label(f.label), self.code.reg(LTy::I64));
                self.values[f.index] = Some(index);
                let body = self.nested(&f.body);
                self.code.emit(loops::Op::For(Box::new(loops::For { label, index, lo, hi, step: 1, body })));
            }
            Op::If(i) => {
                let cond = self.value(i.cond);
                let (then, els) = (self.nested(&i.then), self.nested(&i.els));
                self.code.emit(loops::Op::If(Box::new(loops::If { cond, then, els })));
            }
            Op::While(w) => {
                let label = self.label(w.label);
                let head = self.nested(&w.head);
                let cond = self.value(w.cond);
                let body = self.nested(&w.body);
                self.code.emit(loops::Op::While(Box::new(loops::While { label, head, cond, body })));
            }
            Op::Scope(s) => {
                let label = self.label(s.label);
                let body = self.nested(&s.body);
                self.code.emit(loops::Op::Scope(Box::new(loops::Scope { label, body })));
            }
            Op::Break(label) => {
                let label = self.label(*label);
                self.code.emit(loops::Op::Break(label));
            }
            Op::Continue(label) => {
                let label = self.label(*label);
                self.code.emit(loops::Op::Continue(label));
            }
            Op::Leave(label) => {
                let label = self.label(*label);
                self.code.emit(loops::Op::Leave(label));
            }
        }
    }

    fn const_reg(&mut self, value: Const) -> Reg {
        match value.ty {
            Ty::Index => self.code.int(value.bits as i64),
            Ty::D(d) if d.is_float() => {
                let x = ptoc_ir::scalar::to_f32(d, value.bits);
                self.code.f32(x)
            }
            Ty::D(DType::Bool) => self.code.bits(LTy::Bool, value.bits & 1),
            ty => {
                let n = ptoc_ir::scalar::to_int(ty, value.bits);
                match reg_ty(ty) {
                    LTy::I64 => self.code.int(n as i64),
                    _ => self.code.i32(n as i32),
                }
            }
        }
    }

    fn var(&mut self, var: ptoc_ir::tile::Var) -> loops::VarId {
        if let Some(&v) = self.vars.get(&var) {
            return v;
        }
        let v = self.code.var(reg_ty(self.kernel.vars[var].ty));
        self.vars.insert(var, v);
        v
    }

    fn label(&mut self, label: ptoc_ir::tile::Label) -> loops::Label {
        if let Some(&l) = self.labels.get(&label) {
            return l;
        }
        let l = self.code.label();
        self.labels.insert(label, l);
        l
    }

    /// Element `offset` of a tensor.
    fn element(&mut self, tensor: TensorId, offset: Value) -> (MemTy, Addr) {
        let dtype = self.kernel.tensors[tensor].dtype;
        let offset = self.value(offset);
        let offset = self.code.times(offset, dtype.size() as i64);
        let addr = Addr { base: self.tensor_base(tensor), offset, stride: Stride::Const(0), gather: None };
        (MemTy::of(dtype), addr)
    }

    /// Element (row, col) of a window of a tile.
    fn tile_element(&mut self, tile: &TileRef, row: Value, col: Value) -> (MemTy, Addr) {
        let (row, col) = (self.value(row), self.value(col));
        if self.kernel.tiles[tile.tile].ty.layout.is_some() {
            return self.placed_element(tile, row, col);
        }
        let matrix = self.tile(tile);
        let at = matrix.at_row(&mut self.code, row).at_col(&mut self.code, col);
        (at.ty, at.first())
    }

    /// The same bits as a value of another type.
    fn bitcast(&mut self, from: Ty, to: Ty, a: Reg) -> Reg {
        match (reg_ty(from), reg_ty(to)) {
            (LTy::F32, LTy::I32) if from == Ty::D(DType::F32) => self.code.cast(Cast::Bits, a, LTy::I32),
            (LTy::I32, LTy::F32) if to == Ty::D(DType::F32) => self.code.cast(Cast::Bits, a, LTy::F32),
            (LTy::F32, _) | (_, LTy::F32) => match (from, to) {
                (Ty::D(f), Ty::D(t)) => self.through_memory(MemTy::of(f), MemTy::of(t), a),
                _ => a,
            },
            (LTy::I32, LTy::I32) => ops::settle(&mut self.code, to, a),
            _ => a,
        }
    }

    /// Narrow floats change to bits and back by way of memory; loop IR needs no operation for it.
    fn through_memory(&mut self, from: MemTy, to: MemTy, a: Reg) -> Reg {
        let space = self.temp_space(64);
        let offset = self.code.int(0);
        let addr = Addr { base: Base::Space(space), offset, stride: Stride::Const(0), gather: None };
        self.code.store(from, addr, a);
        self.code.load(to, addr)
    }

    /// A scalar argument from the launch record's 64 bits.
    pub(super) fn unpack(&mut self, ty: Ty, bits: Reg) -> Reg {
        let Ty::D(dtype) = ty else { return bits };
        if reg_ty(ty) == LTy::I64 {
            return bits;
        }
        let low = self.code.cast(Cast::Wrap, bits, LTy::I32);
        match dtype {
            DType::Bool => {
                let one = self.code.i32(1);
                let bit = self.code.bin(loops::BinOp::And, low, one);
                self.code.cast(Cast::IToB, bit, LTy::Bool)
            }
            DType::F32 => self.code.cast(Cast::Bits, low, LTy::F32),
            DType::F8E4M3 | DType::F8E5M2 => self.through_memory(MemTy::U8, MemTy::of(dtype), low),
            DType::F16 | DType::BF16 => self.through_memory(MemTy::U16, MemTy::of(dtype), low),
            _ => ops::wrap(&mut self.code, dtype, low),
        }
    }

    /// A check's argument as an i64.
    pub(super) fn check_arg(&mut self, value: Value) -> Reg {
        let ty = self.ty(value);
        let reg = self.value(value);
        match reg_ty(ty) {
            LTy::I64 => reg,
            LTy::I32 if ops::kind(ty) == ops::Arithmetic::Unsigned => self.code.cast(Cast::Zext, reg, LTy::I64),
            LTy::I32 => self.code.cast(Cast::Sext, reg, LTy::I64),
            LTy::F32 => {
                let bits = self.code.cast(Cast::Bits, reg, LTy::I32);
                self.code.cast(Cast::Zext, bits, LTy::I64)
            }
            LTy::Bool => {
                let bit = self.code.cast(Cast::BToI, reg, LTy::I32);
                self.code.cast(Cast::Zext, bit, LTy::I64)
            }
        }
    }

    fn print_part(&mut self, part: &PrintPart) -> loops::PrintPart {
        match part {
            PrintPart::Text(text) => loops::PrintPart::Text(text.clone()),
            PrintPart::Scalar(value) => {
                let ty = self.ty(*value);
                let mem = match ty {
                    Ty::Index => MemTy::I64,
                    Ty::D(d) if d.is_f8() => MemTy::F32,
                    Ty::D(d) => MemTy::of(d),
                };
                let unsigned = ops::kind(ty) == ops::Arithmetic::Unsigned;
                loops::PrintPart::Scalar { value: self.value(*value), ty: mem, unsigned }
            }
            PrintPart::Tile(tile) => {
                let matrix = self.tile_by_rows(tile);
                let (rows, cols) = (self.value(tile.valid.0), self.value(tile.valid.1));
                let fixed = |s: Stride| match s {
                    Stride::Const(n) => n,
                    Stride::Reg(_) => 0,
                };
                loops::PrintPart::Matrix {
                    addr: matrix.first(),
                    ty: matrix.ty,
                    unsigned: ops::kind(Ty::D(matrix.dtype)) == ops::Arithmetic::Unsigned,
                    rows,
                    cols,
                    row_stride: fixed(matrix.rows),
                    col_stride: fixed(matrix.cols),
                }
            }
        }
    }
}
