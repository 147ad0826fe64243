//! Loads and stores of all memory types.
//!
//! Neighbouring elements are one access, in the tail by a mask. Everything else goes through an area of the frame,
//! lane by lane: what is far apart, the same element in every lane, and in tails of AVX2 what is narrower than 32 bits.

use super::lower::{Lower, Pair};
use super::ops::VOp;
use super::program::{Action, Copy, Gap, Home, Mask, MemOperand, VReg};
use ptoc_ir::loops::{BinOp, MemTy, nibble};

/// An access of a body, all lanes together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneAccess {
    pub(crate) pointer: u32,
    pub(crate) disp: i64,
    pub(crate) gap: Gap,
    /// Offsets of the lanes.
    pub(crate) gather: Option<Pair>,
}

/// A value of a lane's register: 32 bits, 64 bits, or a mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    One(VReg),
    Pair(Pair),
    Mask(VReg),
}

impl Lower {
    /// Rounds to f16, in half a register.
    pub(crate) fn f16_half(&mut self, a: VReg) -> VReg {
        // To nearest even, whatever the control register says.
        self.imm(VOp::CvtFH, &[a], 0)
    }

    /// Rounds to bf16, which is the high half of the result; the low half is anything.
    pub(crate) fn bf16_bits(&mut self, a: VReg) -> VReg {
        // Half an ulp less one, plus one if the result would be odd.
        let shifted = self.imm(VOp::ShrUBy, &[a], 16);
        let (one, half) = (self.int(1), self.int(0x7fff));
        let odd = self.ins(VOp::And, &[shifted, one]);
        let bias = self.ins(VOp::AddI, &[odd, half]);
        let rounded = self.ins(VOp::AddI, &[a, bias]);
        let quiet = self.int(0x0040_0000);
        let nan = self.ins(VOp::Or, &[a, quiet]);
        let number = self.ordered(a);
        self.choose(number, rounded, nan)
    }

    pub(crate) fn store_pair(&mut self, area: u8, value: Pair) {
        let step = self.isa().bytes();
        for (n, half) in value.into_iter().enumerate() {
            self.store(VOp::StoreQ, MemOperand::Area { area, disp: n as i32 * step }, &[half], Mask::All);
        }
    }

    pub(crate) fn load_pair(&mut self, area: u8) -> Pair {
        let step = self.isa().bytes();
        [0, 1].map(|n| self.load(VOp::LoadQ, MemOperand::Area { area, disp: n * step }, Mask::All))
    }

    /// The tail's lanes as a mask of AVX2, for 64-bit lanes by halves.
    fn tail_vector(&mut self) -> VReg {
        self.p.homed(Home::Tail)
    }

    fn tail_pair(&mut self) -> Pair {
        let mask = self.tail_vector();
        self.extended(true, mask)
    }

    /// The place of an access of neighbouring elements, if it is one instruction.
    fn direct(&self, access: &LaneAccess, ty: MemTy) -> Option<MemOperand> {
        let size = ty.size();
        let disp = i32::try_from(access.disp).ok()?;
        let neighbours = access.gather.is_none() && access.gap == Gap::Const(i64::from(size));
        let narrow = size < 4 && self.tail && !self.is_512();
        (neighbours && !narrow).then_some(MemOperand::Pointer { pointer: access.pointer, scale: size as u8, disp })
    }

    fn copy(&mut self, access: &LaneAccess, ty: MemTy, store: bool) {
        if let Some(gather) = access.gather {
            self.store_pair(1, gather);
        }
        let copy = Copy {
            pointer: access.pointer,
            disp: access.disp,
            gap: access.gap,
            size: ty.size() as u8,
            gather: access.gather.is_some(),
            store,
            tail: self.tail,
        };
        self.push(Action::Copy(copy), None, &[]);
    }

    /// An element that is the same in all lanes.
    pub(crate) fn load_shared(&mut self, access: &LaneAccess, ty: MemTy) -> Value {
        let disp = i32::try_from(access.disp).ok().filter(|_| access.gather.is_none());
        let Some(disp) = disp else {
            self.copy(access, ty, false);
            return self.widened(ty, MemOperand::Area { area: 0, disp: 0 }, false);
        };
        let place = MemOperand::Pointer { pointer: access.pointer, scale: 0, disp };
        match ty.size() {
            1 => {
                let raw = self.load(VOp::AllB, place, Mask::All);
                self.widened_register(ty, raw)
            }
            2 => {
                let raw = self.load(VOp::AllW, place, Mask::All);
                self.widened_register(ty, raw)
            }
            4 => Value::One(self.load(VOp::All, place, Mask::All)),
            _ => Value::Pair([self.load(VOp::AllQ, place, Mask::All); 2]),
        }
    }

    pub(crate) fn load_lanes(&mut self, access: &LaneAccess, ty: MemTy) -> Value {
        match self.direct(access, ty) {
            Some(place) => self.widened(ty, place, self.tail),
            None => {
                self.copy(access, ty, false);
                self.widened(ty, MemOperand::Area { area: 0, disp: 0 }, false)
            }
        }
    }

    /// Neighbouring elements at a place; `some`: only those of the tail.
    fn widened(&mut self, ty: MemTy, place: MemOperand, some: bool) -> Value {
        let mask = if some { Mask::Tail } else { Mask::All };
        let vex_tail = some && !self.is_512();
        let load = |l: &mut Lower, op| l.load(op, place, mask);
        match ty {
            MemTy::I32 | MemTy::F32 if vex_tail => {
                let lanes = self.tail_vector();
                Value::One(self.full(VOp::MaskLoad, &[lanes], Some(place), None, Mask::All))
            }
            MemTy::I32 | MemTy::F32 => Value::One(load(self, VOp::Load)),
            MemTy::I64 => {
                let second = moved(place, self.isa().bytes());
                if vex_tail {
                    let [low, high] = self.tail_pair();
                    let low = self.full(VOp::MaskLoadQ, &[low], Some(place), None, Mask::All);
                    return Value::Pair([low, self.full(VOp::MaskLoadQ, &[high], Some(second), None, Mask::All)]);
                }
                let high = if some { Mask::TailHigh } else { Mask::All };
                Value::Pair([load(self, VOp::LoadQ), self.load(VOp::LoadQ, second, high)])
            }
            MemTy::I8 => Value::One(load(self, VOp::SextB)),
            MemTy::U8 | MemTy::F8E4M3 | MemTy::F8E5M2 => Value::One(load(self, VOp::ZextB)),
            MemTy::I16 => Value::One(load(self, VOp::SextW)),
            MemTy::U16 => Value::One(load(self, VOp::ZextW)),
            MemTy::F16 => Value::One(load(self, VOp::CvtHF)),
            MemTy::BF16 => {
                let bits = load(self, VOp::ZextW);
                Value::One(self.imm(VOp::ShlIBy, &[bits], 16))
            }
            MemTy::Bool => {
                let bytes = load(self, VOp::ZextB);
                Value::Mask(self.nonzero(bytes))
            }
        }
    }

    /// Elements of one or two bytes in a register.
    fn widened_register(&mut self, ty: MemTy, raw: VReg) -> Value {
        match ty {
            MemTy::I8 => Value::One(self.ins(VOp::SextB, &[raw])),
            MemTy::I16 => Value::One(self.ins(VOp::SextW, &[raw])),
            MemTy::F16 => Value::One(self.ins(VOp::CvtHF, &[raw])),
            MemTy::BF16 => {
                let bits = self.ins(VOp::ZextW, &[raw]);
                Value::One(self.imm(VOp::ShlIBy, &[bits], 16))
            }
            MemTy::Bool => {
                let bytes = self.ins(VOp::ZextB, &[raw]);
                Value::Mask(self.nonzero(bytes))
            }
            MemTy::U8 => Value::One(self.ins(VOp::ZextB, &[raw])),
            _ => Value::One(self.ins(VOp::ZextW, &[raw])),
        }
    }

    pub(crate) fn store_lanes(&mut self, access: &LaneAccess, ty: MemTy, value: Value) {
        match self.direct(access, ty) {
            Some(place) => self.narrowed(ty, place, value, self.tail),
            None => {
                self.narrowed(ty, MemOperand::Area { area: 0, disp: 0 }, value, false);
                self.copy(access, ty, true);
            }
        }
    }

    /// Asks for the line that the first of these elements is in: vectors of words are lines.
    pub(crate) fn fetch_lanes(&mut self, access: &LaneAccess, ty: MemTy) {
        if let Some(place) = self.direct(access, ty) {
            self.store(VOp::Fetch, place, &[], Mask::All);
        }
    }

    fn narrowed(&mut self, ty: MemTy, place: MemOperand, value: Value, some: bool) {
        let mask = if some { Mask::Tail } else { Mask::All };
        let vex_tail = some && !self.is_512();
        match (ty, value) {
            (_, Value::Pair([low, high])) => {
                let second = moved(place, self.isa().bytes());
                if vex_tail {
                    let lanes = self.tail_pair();
                    self.store(VOp::MaskStoreQ, place, &[lanes[0], low], Mask::All);
                    return self.store(VOp::MaskStoreQ, second, &[lanes[1], high], Mask::All);
                }
                self.store(VOp::StoreQ, place, &[low], mask);
                let mask = if some { Mask::TailHigh } else { Mask::All };
                self.store(VOp::StoreQ, second, &[high], mask);
            }
            (_, Value::Mask(bits)) => {
                let bytes = self.one_or_zero(bits);
                self.store_bytes(bytes, place, mask);
            }
            (MemTy::I32 | MemTy::F32, Value::One(a)) if vex_tail => {
                let lanes = self.tail_vector();
                self.store(VOp::MaskStore, place, &[lanes, a], Mask::All);
            }
            (MemTy::I32 | MemTy::F32, Value::One(a)) => self.store(VOp::Store, place, &[a], mask),
            (MemTy::F16, Value::One(a)) => {
                let half = self.rounded.get(&(a, ty)).copied().unwrap_or_else(|| self.f16_half(a));
                self.store(VOp::StoreH, place, &[half], mask);
            }
            (MemTy::BF16, Value::One(a)) => {
                let bits = self.rounded.get(&(a, ty)).copied().unwrap_or_else(|| self.bf16_bits(a));
                let bits = self.imm(VOp::ShrUBy, &[bits], 16);
                self.store_words(bits, place, mask);
            }
            (MemTy::I16 | MemTy::U16, Value::One(a)) => self.store_words(a, place, mask),
            (_, Value::One(a)) => self.store_bytes(a, place, mask),
        }
    }

    /// The half bytes of the lanes, below bits of others with AVX-512: what looks them up takes their low bits.
    pub(crate) fn nibbles(&mut self, pointer: u32, moves: [u8; 3]) -> VReg {
        let lanes = self.isa().lanes();
        let [first, second] = [0, 4].map(|disp| MemOperand::Words { pointer, disp });
        let words = match (self.is_512(), self.tail) {
            (false, _) => self.load(VOp::All, first, Mask::All),
            (true, false) => {
                let both = self.load(VOp::AllQ, first, Mask::All);
                if self.p.multishift {
                    let from = |lane: i64| 32 * (lane / 8) as u32 + 4 * nibble(lane, moves) as u32;
                    let from = self.p.table((0..lanes).map(from).collect());
                    return self.ins(VOp::MultiShift, &[from, both]);
                }
                let which = self.p.table((0..lanes).map(|lane| (lane / 8) as u32).collect());
                self.ins(VOp::PermI, &[which, both])
            }
            // The second word may not be there.
            (true, true) => {
                let low = self.load(VOp::All, first, Mask::All);
                let high = self.load(VOp::All, second, Mask::TailHigh);
                self.imm(VOp::Join, &[low, high], 1)
            }
        };
        let by = self.p.table((0..lanes).map(|lane| 4 * nibble(lane, moves) as u32).collect());
        let moved = self.ins(VOp::ShrU, &[words, by]);
        if self.is_512() {
            return moved;
        }
        let low = self.int(15);
        self.ins(VOp::And, &[moved, low])
    }

    /// Joins values with the partials of their lanes, which are neighbours: a vector's first lane has a number that is
    /// a multiple of the vector's lanes, and so do the partials.
    pub(crate) fn join(&mut self, op: BinOp, float: bool, pointer: u32, value: VReg) {
        let place = MemOperand::Partials { pointer };
        let old = self.load(VOp::Load, place, Mask::All);
        let new = match float {
            true => self.binary_float(op, old, value, None),
            false => self.binary_int(op, old, value, None),
        };
        match (self.tail, self.is_512()) {
            (true, false) => {
                let lanes = self.tail_vector();
                self.store(VOp::MaskStore, place, &[lanes, new], Mask::All);
            }
            (tail, _) => self.store(VOp::Store, place, &[new], if tail { Mask::Tail } else { Mask::All }),
        }
    }

    /// The low halves of 32-bit lanes.
    fn store_words(&mut self, a: VReg, place: MemOperand, mask: Mask) {
        let half = if self.is_512() {
            self.ins(VOp::WrapW, &[a])
        } else {
            let pick = self.p.table([0x0504_0100, 0x0d0c_0908, 0, 0].repeat(2));
            let words = self.ins(VOp::ShufB, &[a, pick]);
            self.imm(VOp::PermQ, &[words], 0x08)
        };
        self.store(VOp::StoreH, place, &[half], mask);
    }

    /// The low bytes of 32-bit lanes.
    fn store_bytes(&mut self, a: VReg, place: MemOperand, mask: Mask) {
        if self.is_512() {
            let bytes = self.ins(VOp::WrapB, &[a]);
            return self.store(VOp::StoreB, place, &[bytes], mask);
        }
        let pick = self.p.table([0x0c08_0400, 0, 0, 0].repeat(2));
        let bytes = self.ins(VOp::ShufB, &[a, pick]);
        let order = self.p.table(vec![0, 4, 0, 0, 0, 0, 0, 0]);
        let low = self.ins(VOp::PermI, &[order, bytes]);
        self.store(VOp::StoreLow, place, &[low], mask);
    }
}

fn moved(place: MemOperand, bytes: i32) -> MemOperand {
    match place {
        // Their elements have 32 bits: there is no second half.
        MemOperand::Partials { .. } | MemOperand::Words { .. } => place,
        MemOperand::Pointer { pointer, scale, disp } => {
            MemOperand::Pointer { pointer, scale, disp: disp.wrapping_add(bytes) }
        }
        MemOperand::Area { area, disp } => MemOperand::Area { area, disp: disp + bytes },
    }
}
