//! Addresses, loads and stores of one value.

use crate::func::Emit;
use crate::shape::{Shape, plain};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, I8, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use ptoc_ir::loops::{Addr, Base, MemTy, Reg};

/// A machine address: `base + disp`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineAddress {
    pub(crate) base: Value,
    pub(crate) disp: i32,
}

impl MachineAddress {
    /// `bytes` further on, if the displacement can hold it.
    pub(crate) fn plus(self, bytes: i64) -> Option<MachineAddress> {
        let disp = i32::try_from(i64::from(self.disp).checked_add(bytes)?).ok()?;
        Some(MachineAddress { disp, ..self })
    }
}

impl Emit<'_, '_> {
    /// `place + bytes`.
    pub(crate) fn further(&mut self, place: MachineAddress, bytes: i64) -> MachineAddress {
        place.plus(bytes).unwrap_or_else(|| {
            let base = self.b.ins().iadd_imm_s(place.base, bytes);
            MachineAddress { base, ..place }
        })
    }

    /// `place + offset`.
    pub(crate) fn moved(&mut self, place: MachineAddress, offset: Value) -> MachineAddress {
        MachineAddress { base: self.b.ins().iadd(place.base, offset), ..place }
    }

    /// The part of an address that all lanes share: base and offset.
    pub(crate) fn origin(&mut self, base: Base, offset: Reg) -> MachineAddress {
        let start = match base {
            Base::Tensor(n) => MachineAddress { base: self.tensors[n as usize], disp: 0 },
            Base::Space(space) => {
                let arena = MachineAddress { base: self.arena, disp: 0 };
                self.further(arena, self.module.spaces[space].offset as i64)
            }
        };
        match self.known[offset] {
            Some(bytes) => self.further(start, bytes as i64),
            None => {
                let offset = self.value(offset);
                self.moved(start, offset)
            }
        }
    }

    /// An address outside `Lanes`.
    pub(crate) fn address(&mut self, addr: &Addr) -> MachineAddress {
        let mut place = self.origin(addr.base, addr.offset);
        if let Some(gather) = addr.gather {
            let gather = self.value(gather);
            place = self.moved(place, gather);
        }
        place
    }

    /// An address as one register.
    pub(crate) fn pointer(&mut self, place: MachineAddress) -> Value {
        self.b.ins().iadd_imm_s(place.base, i64::from(place.disp))
    }

    /// The bits of one element: f16, bf16 and narrow integers widened to i32.
    pub(crate) fn load_raw(&mut self, ty: MemTy, at: MachineAddress) -> Value {
        let (base, disp) = (at.base, at.disp);
        match ty {
            MemTy::Bool => self.b.ins().uload8(I32, plain(), base, disp),
            MemTy::I8 => self.b.ins().sload8(I32, plain(), base, disp),
            MemTy::U8 | MemTy::F8E4M3 | MemTy::F8E5M2 => self.b.ins().uload8(I32, plain(), base, disp),
            MemTy::I16 => self.b.ins().sload16(I32, plain(), base, disp),
            MemTy::U16 | MemTy::F16 | MemTy::BF16 => self.b.ins().uload16(I32, plain(), base, disp),
            MemTy::I32 => self.b.ins().load(I32, plain(), base, disp),
            MemTy::I64 => self.b.ins().load(I64, plain(), base, disp),
            MemTy::F32 => self.b.ins().load(F32, plain(), base, disp),
        }
    }

    /// From the bits of `load_raw` (one or four) to the register.
    pub(crate) fn widen(&mut self, s: Shape, ty: MemTy, raw: Value) -> Value {
        match ty {
            MemTy::Bool => {
                let zero = self.int(s, 0);
                self.b.ins().icmp(IntCC::NotEqual, raw, zero)
            }
            MemTy::F16 => self.f16_to_f32(s, raw),
            MemTy::BF16 => self.bf16_to_f32(s, raw),
            _ => raw,
        }
    }

    /// From the register to the bits that `store_raw` takes.
    pub(crate) fn narrow(&mut self, s: Shape, ty: MemTy, value: Value) -> Value {
        match ty {
            MemTy::Bool if s == Shape::One => self.b.ins().uextend(I32, value),
            MemTy::Bool => self.b.ins().ineg(value),
            MemTy::F16 => self.f32_to_f16(s, value),
            MemTy::BF16 => self.f32_to_bf16(s, value),
            _ => value,
        }
    }

    /// Stores the bits of one element.
    pub(crate) fn store_raw(&mut self, ty: MemTy, raw: Value, at: MachineAddress) {
        let (base, disp) = (at.base, at.disp);
        match ty.size() {
            1 => self.b.ins().istore8(plain(), raw, base, disp),
            2 => self.b.ins().istore16(plain(), raw, base, disp),
            _ => self.b.ins().store(plain(), raw, base, disp),
        };
    }

    /// Loads one element into a register.
    pub(crate) fn load_one(&mut self, ty: MemTy, at: MachineAddress) -> Value {
        if ty == MemTy::Bool {
            let byte = self.b.ins().load(I8, plain(), at.base, at.disp);
            return self.b.ins().icmp_imm_s(IntCC::NotEqual, byte, 0);
        }
        let raw = self.load_raw(ty, at);
        self.widen(Shape::One, ty, raw)
    }

    /// Stores a register to one element.
    pub(crate) fn store_one(&mut self, ty: MemTy, value: Value, at: MachineAddress) {
        if ty == MemTy::Bool {
            self.b.ins().store(plain(), value, at.base, at.disp);
            return;
        }
        let raw = self.narrow(Shape::One, ty, value);
        self.store_raw(ty, raw, at);
    }
}
