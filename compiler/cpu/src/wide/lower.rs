//! Instruction selection: building vector programs: instructions one by one, and what the two instruction sets do
//! differently about masks.

use super::Isa;
use super::ops::{VOp, Width};
use super::program::{Action, Class, Home, Ins, Mask, MemOperand, NestProgram, Origin, VReg};
use ptoc_ir::loops::MemTy;
use rustc_hash::FxHashMap;

/// A 64-bit value: its lower lanes and its upper ones.
pub(crate) type Pair = [VReg; 2];

/// Comparisons of floats, as the machine numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FloatTest {
    Eq = 0x00,
    Lt = 0x11,
    Le = 0x12,
    Unordered = 0x03,
    Ne = 0x04,
    Ordered = 0x07,
    Ge = 0x1d,
    Gt = 0x1e,
}

/// Comparisons of integers, as AVX-512 numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IntTest {
    Eq = 0,
    Lt = 1,
    Le = 2,
    Ne = 4,
    Ge = 5,
    Gt = 6,
}

/// A program in the making. Masks are mask registers with AVX-512, and vectors of -1 and 0 with AVX2.
pub(crate) struct Lower {
    pub(crate) p: NestProgram,
    pub(crate) out: Vec<Ins>,
    /// What the instructions stem from that are built next.
    pub(crate) origin: Origin,
    /// The epilogue (tail) is being built.
    pub(crate) tail: bool,
    /// Values that were rounded to f16 or bf16, and what would be stored of them: a half register, and a register whose
    /// upper halves they are.
    pub(crate) rounded: FxHashMap<(VReg, MemTy), VReg>,
}

impl Lower {
    pub(crate) fn isa(&self) -> Isa {
        self.p.isa
    }

    pub(crate) fn is_512(&self) -> bool {
        self.p.isa == Isa::Avx512
    }

    pub(crate) fn push(&mut self, action: Action, dst: Option<VReg>, args: &[VReg]) {
        let (args, origin) = (args.to_vec(), self.origin);
        self.out.push(Ins { action, dst, args, place: None, imm: None, mask: Mask::All, origin });
    }

    /// An instruction with a result.
    pub(crate) fn ins(&mut self, op: VOp, args: &[VReg]) -> VReg {
        self.full(op, args, None, None, Mask::All)
    }

    pub(crate) fn imm(&mut self, op: VOp, args: &[VReg], imm: u8) -> VReg {
        self.full(op, args, None, Some(imm), Mask::All)
    }

    pub(crate) fn full(
        &mut self,
        op: VOp,
        args: &[VReg],
        place: Option<MemOperand>,
        imm: Option<u8>,
        mask: Mask,
    ) -> VReg {
        let class = if op.info().dst == Some(Width::Mask) { Class::Mask } else { Class::Vector };
        let dst = self.p.reg(class);
        let (args, origin) = (args.to_vec(), self.origin);
        self.out.push(Ins { action: Action::Vector(op), dst: Some(dst), args, place, imm, mask, origin });
        dst
    }

    pub(crate) fn load(&mut self, op: VOp, place: MemOperand, mask: Mask) -> VReg {
        self.full(op, &[], Some(place), None, mask)
    }

    pub(crate) fn store(&mut self, op: VOp, place: MemOperand, args: &[VReg], mask: Mask) {
        let (action, args, origin) = (Action::Vector(op), args.to_vec(), self.origin);
        self.out.push(Ins { action, dst: None, args, place: Some(place), imm: None, mask, origin });
    }

    pub(crate) fn int(&mut self, bits: u32) -> VReg {
        self.p.homed(Home::Const(bits))
    }

    pub(crate) fn float(&mut self, x: f32) -> VReg {
        self.int(x.to_bits())
    }

    pub(crate) fn long(&mut self, bits: u64) -> VReg {
        self.p.homed(Home::ConstQ(bits))
    }

    /// Does the same to both halves; once if they are the same.
    pub(crate) fn halves<const N: usize>(
        &mut self,
        args: [Pair; N],
        mut f: impl FnMut(&mut Lower, [VReg; N]) -> VReg,
    ) -> Pair {
        let low = f(self, args.map(|a| a[0]));
        if args.iter().all(|a| a[0] == a[1]) {
            return [low; 2];
        }
        [low, f(self, args.map(|a| a[1]))]
    }

    /// Two vectors of 64-bit lanes with 0 or -1, as a mask of 32-bit lanes (AVX2); also the low halves of the lanes.
    pub(crate) fn packed(&mut self, pair: Pair) -> VReg {
        let evens = self.imm(VOp::Pairs, &pair, 0x88);
        self.imm(VOp::PermQ, &[evens], 0xd8)
    }

    /// The upper half of a vector's lanes.
    pub(crate) fn high(&mut self, a: VReg) -> VReg {
        self.imm(VOp::High, &[a], 1)
    }

    /// A mask for 64-bit lanes, by halves.
    fn split(&mut self, mask: VReg) -> Pair {
        if self.is_512() {
            return [mask, self.imm(VOp::KShr, &[mask], 8)];
        }
        let low = self.ins(VOp::SextIQ, &[mask]);
        let upper = self.high(mask);
        [low, self.ins(VOp::SextIQ, &[upper])]
    }

    pub(crate) fn test_float(&mut self, test: FloatTest, a: VReg, b: VReg) -> VReg {
        let op = if self.is_512() { VOp::KCmpF } else { VOp::CmpF };
        self.imm(op, &[a, b], test as u8)
    }

    /// `op` is AVX-512's; AVX2 has `eq` and `gt`.
    fn test(&mut self, op: VOp, (eq, gt): (VOp, VOp), test: IntTest, a: VReg, b: VReg) -> VReg {
        if self.is_512() {
            return self.imm(op, &[a, b], test as u8);
        }
        let (op, args, inverted) = match test {
            IntTest::Eq => (eq, [a, b], false),
            IntTest::Ne => (eq, [a, b], true),
            IntTest::Gt => (gt, [a, b], false),
            IntTest::Le => (gt, [a, b], true),
            IntTest::Lt => (gt, [b, a], false),
            IntTest::Ge => (gt, [b, a], true),
        };
        let mask = self.ins(op, &args);
        if inverted { self.not(mask) } else { mask }
    }

    /// AVX2 compares signed numbers only: unsigned ones with their highest bit flipped.
    fn flipped(&mut self, test: IntTest, signed: bool, wide: bool, args: [VReg; 2]) -> [VReg; 2] {
        if signed || self.is_512() || matches!(test, IntTest::Eq | IntTest::Ne) {
            return args;
        }
        let bit = if wide { self.long(1 << 63) } else { self.int(1 << 31) };
        args.map(|a| self.ins(VOp::Xor, &[a, bit]))
    }

    pub(crate) fn test_int(&mut self, test: IntTest, signed: bool, a: VReg, b: VReg) -> VReg {
        let [a, b] = self.flipped(test, signed, false, [a, b]);
        let op = if signed { VOp::KCmpI } else { VOp::KCmpU };
        self.test(op, (VOp::CmpEqI, VOp::CmpGtI), test, a, b)
    }

    /// One half of a comparison of 64-bit lanes.
    fn test_half(&mut self, test: IntTest, signed: bool, a: VReg, b: VReg) -> VReg {
        let [a, b] = self.flipped(test, signed, true, [a, b]);
        let op = if signed { VOp::KCmpQ } else { VOp::KCmpUQ };
        self.test(op, (VOp::CmpEqQ, VOp::CmpGtQ), test, a, b)
    }

    pub(crate) fn test_long(&mut self, test: IntTest, signed: bool, a: Pair, b: Pair) -> VReg {
        let halves = self.halves([a, b], |l, [a, b]| l.test_half(test, signed, a, b));
        if self.is_512() { self.ins(VOp::KJoin, &[halves[1], halves[0]]) } else { self.packed(halves) }
    }

    /// `mask ? yes : no` for 32-bit lanes.
    pub(crate) fn choose(&mut self, mask: VReg, yes: VReg, no: VReg) -> VReg {
        if self.is_512() {
            return self.full(VOp::KBlend, &[no, yes], None, None, Mask::Reg(mask));
        }
        self.ins(VOp::Blend, &[no, yes, mask])
    }

    /// `mask ? yes : no` for one half of 64-bit lanes.
    pub(crate) fn choose_half(&mut self, mask: VReg, yes: VReg, no: VReg) -> VReg {
        if self.is_512() {
            return self.full(VOp::KBlendQ, &[no, yes], None, None, Mask::Reg(mask));
        }
        self.ins(VOp::Blend, &[no, yes, mask])
    }

    pub(crate) fn choose_long(&mut self, mask: VReg, yes: Pair, no: Pair) -> Pair {
        let [low, high] = self.split(mask);
        [self.choose_half(low, yes[0], no[0]), self.choose_half(high, yes[1], no[1])]
    }

    /// A comparison of one half, whose mask fits `choose_half`.
    pub(crate) fn compare_half(&mut self, test: IntTest, signed: bool, a: VReg, b: VReg) -> VReg {
        self.test_half(test, signed, a, b)
    }

    /// 0 where the mask is not set.
    pub(crate) fn keep(&mut self, mask: VReg, a: VReg) -> VReg {
        if self.is_512() {
            return self.full(VOp::KZero, &[a], None, None, Mask::Reg(mask));
        }
        self.ins(VOp::And, &[mask, a])
    }

    /// Bitwise, also on masks of AVX2.
    pub(crate) fn not(&mut self, a: VReg) -> VReg {
        if self.p.class(a) == Class::Mask {
            return self.ins(VOp::KNot, &[a]);
        }
        let ones = self.int(u32::MAX);
        self.ins(VOp::Xor, &[a, ones])
    }

    /// `and`, `or`, `xor` of vectors or masks.
    pub(crate) fn bitwise(&mut self, op: VOp, a: VReg, b: VReg) -> VReg {
        let op = match (op, self.p.class(a)) {
            (VOp::And, Class::Mask) => VOp::KAnd,
            (VOp::Or, Class::Mask) => VOp::KOr,
            (VOp::Xor, Class::Mask) => VOp::KXor,
            (op, _) => op,
        };
        self.ins(op, &[a, b])
    }

    /// Set where a 32-bit lane is not 0.
    pub(crate) fn nonzero(&mut self, a: VReg) -> VReg {
        if self.is_512() {
            return self.ins(VOp::KTest, &[a, a]);
        }
        let zero = self.int(0);
        let is_zero = self.ins(VOp::CmpEqI, &[a, zero]);
        self.not(is_zero)
    }

    /// 1 where the mask is set, otherwise 0.
    pub(crate) fn one_or_zero(&mut self, mask: VReg) -> VReg {
        if self.is_512() {
            let one = self.int(1);
            return self.keep(mask, one);
        }
        self.imm(VOp::ShrUBy, &[mask], 31)
    }

    /// The mask of the lanes whose f32 is a number, not NaN.
    pub(crate) fn ordered(&mut self, a: VReg) -> VReg {
        self.test_float(FloatTest::Ordered, a, a)
    }
}
