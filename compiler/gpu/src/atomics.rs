//! Atomic updates: the first thread's, one after the other, as the block has them.
//!
//! Integers of 32 and 64 bits have instructions. All else is a loop around `cas`, sums of f32 too: the card's own
//! flush subnormals in memory of the device. Elements of 8 bits are updated in the word around them.

use crate::dependences::{Key, Touched};
use crate::emit::{Emit, class};
use crate::memory::GpuAddress;
use ptoc_ir::loops::{Atomic, BinOp, LTy, MemTy};
use ptoc_isa::AtomicOp;
use ptoc_ptx::{Arith, AtomOp, Class, Cmp, Op as Ptx, Round, Space, Src, Type, VReg};

impl Emit<'_> {
    pub(crate) fn atomic(&mut self, a: &Atomic) {
        let told = !self.solo && self.used.contains(&a.dst);
        let mut solo = Touched::default();
        solo.solo_writes.insert(self.keys().of(&a.addr));
        if told {
            solo.solo_writes.insert(Key::Control);
        }
        self.order(&solo);
        let place = self.address(&a.addr);
        let old = self.b.reg(class(a.ty.reg()));
        self.b.set(old, crate::emit::whole(a.ty.reg()), Src::Imm(0));
        let skip = self.b.label();
        if !self.solo {
            self.b.bra_if(self.first, false, skip);
        }
        let value = match simple(a) {
            Some((op, ty)) => self.one(a, op, ty, place),
            None => self.by_cas(a, place),
        };
        self.b.set(old, crate::emit::whole(a.ty.reg()), value);
        self.b.place(skip);
        if told {
            let value = self.tell(a.ty.reg(), old);
            self.define(a.dst, value);
        } else {
            self.define(a.dst, old);
        }
    }

    /// By one instruction.
    fn one(&mut self, a: &Atomic, op: AtomOp, ty: Type, place: GpuAddress) -> VReg {
        let bits = |e: &mut Self, reg: VReg| if a.ty == MemTy::F32 { e.b.bits(Class::B32, reg) } else { reg };
        let mut srcs = vec![Src::Addr(place.address())];
        for reg in a.expected.iter().chain([&a.value]) {
            let reg = self.reg(*reg);
            srcs.push(bits(self, reg).into());
        }
        let old = self.b.reg(ty.class());
        self.b.push(Ptx::Atom(place.space, op, ty), &[old], &srcs);
        if a.ty == MemTy::F32 { self.b.bits(Class::F32, old) } else { old }
    }

    /// By a loop that computes the new value of the old one until nobody has changed it meanwhile.
    fn by_cas(&mut self, a: &Atomic, place: GpuAddress) -> VReg {
        let ty = a.ty.reg();
        // The word, where in it the element begins, and how wide the word is.
        let (word, shift, cas) = match a.ty.size() {
            1 => {
                let (word, shift) = self.word(place);
                (word, Some(shift), Type::B32)
            }
            2 => (place, None, Type::B16),
            8 => (place, None, Type::B64),
            _ => (place, None, Type::B32),
        };
        let at = Src::Addr(word.address());
        let current = self.b.reg(cas.class());
        // A swap of nothing for nothing reads.
        self.b.push(Ptx::Atom(word.space, AtomOp::Cas, cas), &[current], &[at, Src::Imm(0), Src::Imm(0)]);
        let (again, done) = (self.b.label(), self.b.label());
        self.b.place(again);
        let raw = match shift {
            Some(shift) => self.b.arith(Arith::Shr, Type::U32, &[current.into(), shift.into()]),
            None => current,
        };
        let old = self.widened(a.ty, raw);
        let value = self.reg(a.value);
        let value = self.settled(a.ty, value);
        let new = self.updated(a, ty, old, value);
        let new = self.narrowed(a.ty, new);
        let new = match shift {
            Some(shift) => {
                let mask = self.b.mov(Type::B32, Src::Imm(0xff));
                let mask = self.b.arith(Arith::Shl, Type::B32, &[mask.into(), shift.into()]);
                let others = self.b.arith(Arith::Not, Type::B32, &[mask.into()]);
                let others = self.b.arith(Arith::And, Type::B32, &[current.into(), others.into()]);
                let new = self.b.arith(Arith::Shl, Type::B32, &[new.into(), shift.into()]);
                let new = self.b.arith(Arith::And, Type::B32, &[new.into(), mask.into()]);
                self.b.arith(Arith::Or, Type::B32, &[others.into(), new.into()])
            }
            None => new,
        };
        let found = self.b.reg(cas.class());
        self.b.push(Ptx::Atom(word.space, AtomOp::Cas, cas), &[found], &[at, current.into(), new.into()]);
        let same = self.b.setp(Cmp::Eq, cas, found, current);
        self.b.bra_if(same, true, done);
        self.b.set(current, cas, found);
        self.b.bra(again);
        self.b.place(done);
        old
    }

    /// The aligned word around a byte, and the byte's first bit in it.
    fn word(&mut self, place: GpuAddress) -> (GpuAddress, VReg) {
        let shared = place.space == Space::Shared;
        let ty = if shared { Type::U32 } else { Type::U64 };
        let bits = if shared { Type::B32 } else { Type::B64 };
        let at = self.b.arith(Arith::Add, ty, &[place.reg.into(), Src::Imm(i64::from(place.disp) as u64)]);
        let low = if shared { at } else { self.low(at) };
        let byte = self.b.arith(Arith::And, Type::B32, &[low.into(), Src::Imm(3)]);
        let shift = self.b.arith(Arith::Shl, Type::B32, &[byte.into(), Src::Imm(3)]);
        let reg = self.b.arith(Arith::And, bits, &[at.into(), Src::Imm(!3)]);
        (GpuAddress { reg, disp: 0, ..place }, shift)
    }

    /// Memory's bits to a register. Of bits above the element's nothing is known.
    fn widened(&mut self, ty: MemTy, raw: VReg) -> VReg {
        let cut = |e: &mut Self, ty| e.b.cvt(ty, if ty == Type::S32 { Type::S16 } else { Type::U16 }, Round::None, raw);
        match ty {
            MemTy::I8 => {
                let up = self.b.arith(Arith::Shl, Type::B32, &[raw.into(), Src::Imm(24)]);
                self.b.arith(Arith::Shr, Type::S32, &[up.into(), Src::Imm(24)])
            }
            MemTy::U8 | MemTy::Bool | MemTy::F8E4M3 | MemTy::F8E5M2 => {
                self.b.arith(Arith::And, Type::B32, &[raw.into(), Src::Imm(0xff)])
            }
            MemTy::I16 => cut(self, Type::S32),
            MemTy::U16 => cut(self, Type::U32),
            MemTy::F16 => self.b.cvt(Type::F32, Type::F16, Round::None, raw),
            MemTy::BF16 => self.bf16(raw),
            MemTy::F32 => self.b.bits(Class::F32, raw),
            MemTy::I32 | MemTy::I64 => raw,
        }
    }

    /// A register to memory's bits.
    fn narrowed(&mut self, ty: MemTy, value: VReg) -> VReg {
        match ty {
            MemTy::I16 | MemTy::U16 => self.b.cvt(Type::U16, Type::U32, Round::None, value),
            MemTy::F16 => self.b.cvt(Type::F16, Type::F32, Round::Rn, value),
            MemTy::BF16 => self.b.cvt(Type::BF16, Type::F32, Round::Rn, value),
            MemTy::F32 => self.b.bits(Class::B32, value),
            _ => value,
        }
    }

    /// A register as memory would have it.
    fn settled(&mut self, ty: MemTy, value: VReg) -> VReg {
        let raw = self.narrowed(ty, value);
        self.widened(ty, raw)
    }

    /// The new value.
    fn updated(&mut self, a: &Atomic, ty: LTy, old: VReg, value: VReg) -> VReg {
        let op = match (a.op, a.unsigned) {
            (AtomicOp::Add, _) => BinOp::Add,
            (AtomicOp::Max, false) => BinOp::Max,
            (AtomicOp::Min, false) => BinOp::Min,
            (AtomicOp::Max, true) => BinOp::MaxU,
            (AtomicOp::Min, true) => BinOp::MinU,
            (AtomicOp::And, _) => BinOp::And,
            (AtomicOp::Or, _) => BinOp::Or,
            (AtomicOp::Xor, _) => BinOp::Xor,
            (AtomicOp::Exchange, _) => return value,
            (AtomicOp::Cas, _) => {
                let Some(expected) = a.expected else { return value };
                let expected = self.reg(expected);
                let expected = self.settled(a.ty, expected);
                let same = self.compare(ptoc_ir::loops::CmpOp::Eq, ty, old.into(), expected.into());
                return self.select(ty, same, value.into(), old.into());
            }
        };
        let narrow = |e: &mut Self, reg: VReg| {
            let mask = match a.ty.size() {
                1 => 0xff,
                2 => 0xffff,
                _ => return reg,
            };
            e.b.arith(Arith::And, Type::B32, &[reg.into(), Src::Imm(mask)])
        };
        let compared = matches!(op, BinOp::MaxU | BinOp::MinU);
        let (old, value) = if compared { (narrow(self, old), narrow(self, value)) } else { (old, value) };
        self.binary(op, ty, old.into(), value.into(), None)
    }
}

/// The instruction that does it, where there is one.
fn simple(a: &Atomic) -> Option<(AtomOp, Type)> {
    let (unsigned, signed, bits) = match a.ty {
        MemTy::I32 => (Type::U32, Type::S32, Type::B32),
        MemTy::I64 => (Type::U64, Type::S64, Type::B64),
        MemTy::F32 if a.op == AtomicOp::Exchange => return Some((AtomOp::Exch, Type::B32)),
        _ => return None,
    };
    let ordered = if a.unsigned { unsigned } else { signed };
    Some(match a.op {
        AtomicOp::Add => (AtomOp::Add, unsigned),
        AtomicOp::Max => (AtomOp::Max, ordered),
        AtomicOp::Min => (AtomOp::Min, ordered),
        AtomicOp::And => (AtomOp::And, bits),
        AtomicOp::Or => (AtomOp::Or, bits),
        AtomicOp::Xor => (AtomOp::Xor, bits),
        AtomicOp::Exchange => (AtomOp::Exch, bits),
        AtomicOp::Cas => (AtomOp::Cas, bits),
    })
}
