//! Checks, prints, what monitors are told, and atomics.

use crate::func::Emit;
use crate::shape::{Shape, plain, scalar_type};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, I8, I16, I32, I64};
use cranelift_codegen::ir::{
    AbiParam, AtomicRmwOp, BlockArg, InstBuilder, MemFlagsData, Signature, StackSlotData, StackSlotKind, Type, Value,
};
use ptoc_abi::{Frame, PrintItem, Status};
use ptoc_ir::loops::{Atomic, BinOp, LTy, MemTy, PrintPart, Reg, Watch};
use ptoc_isa::AtomicOp;
use ptoc_tensor::DType;
use std::mem::offset_of;

impl Emit<'_, '_> {
    /// Unless `cond`: fills the status and returns 1 + `check`.
    pub(crate) fn check(&mut self, cond: Reg, check: u32, args: &[Reg]) {
        let cond = self.value(cond);
        let (failed, on) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(cond, on, &[], failed, &[]);
        self.b.set_cold_block(failed);
        self.b.switch_to_block(failed);
        let trusted = MemFlagsData::trusted();
        let frame = self.frame;
        let status = self.b.ins().load(I64, trusted, frame, offset_of!(Frame, status) as i32);
        for (field, number) in [(offset_of!(Status, check), check), (offset_of!(Status, count), args.len() as u32)] {
            let number = self.b.ins().iconst(I32, i64::from(number));
            self.b.ins().store(trusted, number, status, field as i32);
        }
        for (n, &arg) in args.iter().enumerate() {
            let value = self.value(arg);
            self.b.ins().store(trusted, value, status, (offset_of!(Status, args) + 8 * n) as i32);
        }
        let code = self.b.ins().iconst(I32, i64::from(check.wrapping_add(1)));
        self.b.ins().return_(&[code]);
        self.b.switch_to_block(on);
    }

    /// Puts the values into a stack slot and calls the frame's hook.
    pub(crate) fn print(&mut self, parts: &[PrintPart]) {
        let site = self.prints.len() as u32;
        let mut items = Vec::new();
        let mut values: Vec<Value> = Vec::new();
        for part in parts {
            match part {
                PrintPart::Text(text) => items.push(PrintItem::Text(text.clone())),
                PrintPart::Scalar { value, ty, unsigned } => {
                    items.push(PrintItem::Scalar(dtype(*ty, *unsigned)));
                    let register = self.value(*value);
                    values.push(self.slot_bits(self.func.regs[*value].ty, *unsigned, register));
                }
                PrintPart::Matrix { addr, ty, unsigned, rows, cols, row_stride, col_stride } => {
                    items.push(PrintItem::Matrix {
                        dtype: dtype(*ty, *unsigned),
                        row_stride: *row_stride,
                        col_stride: *col_stride,
                    });
                    let at = self.address(addr);
                    values.push(self.pointer(at));
                    values.extend([self.value(*rows), self.value(*cols)]);
                }
            }
        }
        self.prints.push(items);
        let values = self.slots(&values);
        let frame = self.frame;
        let hook = self.b.ins().load(I64, MemFlagsData::trusted(), frame, offset_of!(Frame, print) as i32);
        let ctx = self.b.ins().load(I64, MemFlagsData::trusted(), frame, offset_of!(Frame, print_ctx) as i32);
        let mut signature = Signature::new(self.b.func.signature.call_conv);
        signature.params.extend([I64, I32, I64].map(AbiParam::new));
        let signature = self.b.import_signature(signature);
        let site = self.b.ins().iconst(I32, i64::from(site));
        self.b.ins().call_indirect(signature, hook, &[ctx, site, values]);
    }

    /// Tells the frame's monitor, and returns if it says so.
    pub(crate) fn watch(&mut self, watch: &Watch) {
        let mut values: Vec<Value> = watch.args.iter().map(|&arg| self.value(arg)).collect();
        for (addr, (row, col)) in &watch.data {
            let at = self.address(addr);
            values.push(self.pointer(at));
            for stride in [row, col] {
                values.push(self.b.ins().iconst(I64, *stride));
            }
        }
        let slot = self.slots(&values);
        let trusted = MemFlagsData::trusted();
        let frame = self.frame;
        let hook = self.b.ins().load(I64, trusted, frame, offset_of!(Frame, watch) as i32);
        let ctx = self.b.ins().load(I64, trusted, frame, offset_of!(Frame, watch_ctx) as i32);
        let mut signature = Signature::new(self.b.func.signature.call_conv);
        signature.params.extend([I64, I32, I64, I32].map(AbiParam::new));
        signature.returns.push(AbiParam::new(I32));
        let signature = self.b.import_signature(signature);
        let [site, count] = [watch.site, values.len() as u32].map(|n| self.b.ins().iconst(I32, i64::from(n)));
        let call = self.b.ins().call_indirect(signature, hook, &[ctx, site, slot, count]);
        let code = self.b.inst_results(call)[0];
        let (stopped, on) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(code, stopped, &[], on, &[]);
        self.b.set_cold_block(stopped);
        self.b.switch_to_block(stopped);
        self.b.ins().return_(&[code]);
        self.b.switch_to_block(on);
    }

    /// The address of a stack slot with these values.
    fn slots(&mut self, values: &[Value]) -> Value {
        let size = 8 * values.len().max(1) as u32;
        let slot = self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, size, 3));
        for (n, &value) in values.iter().enumerate() {
            self.b.ins().stack_store(I64, value, slot, 8 * n as i32);
        }
        self.b.ins().stack_addr(I64, slot, 0)
    }

    /// A register as the 64 bits of a print slot.
    fn slot_bits(&mut self, ty: LTy, unsigned: bool, value: Value) -> Value {
        match ty {
            LTy::I64 => value,
            LTy::I32 if !unsigned => self.b.ins().sextend(I64, value),
            LTy::F32 => {
                let bits = self.bitcast(I32, value);
                self.b.ins().uextend(I64, bits)
            }
            LTy::I32 | LTy::Bool => self.b.ins().uextend(I64, value),
        }
    }

    pub(crate) fn atomic(&mut self, atomic: &Atomic) {
        let at = self.address(&atomic.addr);
        let at = self.pointer(at);
        let value = self.value(atomic.value);
        let old = if atomic.ty.reg() == LTy::F32 {
            self.atomic_float(atomic, at, value)
        } else {
            let machine = memory_type(atomic.ty);
            let operand = self.reduced(machine, value);
            let old = match (atomic.op, atomic.expected) {
                (AtomicOp::Cas, Some(expected)) => {
                    let expected = self.value(expected);
                    let expected = self.reduced(machine, expected);
                    self.b.ins().atomic_cas(plain(), at, expected, operand)
                }
                (op, _) => {
                    let op = match (op, atomic.unsigned) {
                        (AtomicOp::Add, _) => AtomicRmwOp::Add,
                        (AtomicOp::Max, false) => AtomicRmwOp::Smax,
                        (AtomicOp::Max, true) => AtomicRmwOp::Umax,
                        (AtomicOp::Min, false) => AtomicRmwOp::Smin,
                        (AtomicOp::Min, true) => AtomicRmwOp::Umin,
                        (AtomicOp::And, _) => AtomicRmwOp::And,
                        (AtomicOp::Or, _) => AtomicRmwOp::Or,
                        (AtomicOp::Xor, _) => AtomicRmwOp::Xor,
                        (AtomicOp::Exchange | AtomicOp::Cas, _) => AtomicRmwOp::Xchg,
                    };
                    self.b.ins().atomic_rmw(machine, plain(), op, at, operand)
                }
            };
            match atomic.ty {
                MemTy::I8 | MemTy::I16 => self.b.ins().sextend(I32, old),
                MemTy::U8 | MemTy::U16 => self.b.ins().uextend(I32, old),
                _ => old,
            }
        };
        self.define(atomic.dst, old);
    }

    fn reduced(&mut self, machine: Type, value: Value) -> Value {
        if machine.bits() < self.b.func.dfg.value_type(value).bits() {
            return self.b.ins().ireduce(machine, value);
        }
        value
    }

    /// A sum, or the larger or smaller, of floats at `at` by compare-and-swap; gives the old value.
    fn atomic_float(&mut self, atomic: &Atomic, at: Value, value: Value) -> Value {
        let (again, done) = (self.b.create_block(), self.b.create_block());
        let machine = memory_type(atomic.ty);
        let seen = self.b.append_block_param(again, machine);
        let first = self.b.ins().atomic_load(machine, plain(), at);
        self.b.ins().jump(again, &[BlockArg::Value(first)]);
        self.b.switch_to_block(again);
        let old = match machine {
            I16 => {
                let bits = self.b.ins().uextend(I32, seen);
                self.widen(Shape::One, atomic.ty, bits)
            }
            _ => self.bitcast(F32, seen),
        };
        let op = match atomic.op {
            AtomicOp::Max => BinOp::Max,
            AtomicOp::Min => BinOp::Min,
            _ => BinOp::Add,
        };
        let new = self.binary(Shape::One, LTy::F32, op, old, value, None);
        let new = match machine {
            I16 => {
                let bits = self.narrow(Shape::One, atomic.ty, new);
                self.b.ins().ireduce(I16, bits)
            }
            _ => self.bitcast(I32, new),
        };
        let found = self.b.ins().atomic_cas(plain(), at, seen, new);
        let swapped = self.b.ins().icmp(IntCC::Equal, found, seen);
        self.b.ins().brif(swapped, done, &[], again, &[BlockArg::Value(found)]);
        self.b.switch_to_block(done);
        old
    }
}

/// The machine type of an integer in memory.
fn memory_type(ty: MemTy) -> Type {
    match ty.size() {
        1 => I8,
        2 => I16,
        4 => I32,
        _ => scalar_type(LTy::I64),
    }
}

/// The dtype of what is in memory, as it is shown and reduced.
pub(crate) fn dtype(ty: MemTy, unsigned: bool) -> DType {
    match (ty, unsigned) {
        (MemTy::Bool, _) => DType::Bool,
        (MemTy::I8, false) => DType::I8,
        (MemTy::I8, true) | (MemTy::U8, _) => DType::U8,
        (MemTy::I16, false) => DType::I16,
        (MemTy::I16, true) | (MemTy::U16, _) => DType::U16,
        (MemTy::I32, false) => DType::I32,
        (MemTy::I32, true) => DType::U32,
        (MemTy::I64, false) => DType::I64,
        (MemTy::I64, true) => DType::U64,
        (MemTy::F16, _) => DType::F16,
        (MemTy::BF16, _) => DType::BF16,
        (MemTy::F32, _) => DType::F32,
        (MemTy::F8E4M3, _) => DType::F8E4M3,
        (MemTy::F8E5M2, _) => DType::F8E5M2,
    }
}
