//! Arithmetic of loop IR as vector instructions.

use super::lower::{FloatTest, IntTest, Lower, Pair};
use super::ops::VOp;
use super::program::{Action, Home, MemOperand, Scalar, VReg};
use ptoc_ir::loops::{BinOp, Cast, CmpOp, MemTy, UnOp};

/// The second operand's value where it is known.
pub(crate) type Known = Option<u64>;

/// Rounding of `RoundF`: to nearest even, down, up, to zero; without the inexact exception.
const NEAREST: u8 = 8;
const DOWN: u8 = 9;
const UP: u8 = 10;
const TO_ZERO: u8 = 11;

/// Twice the bias of an f32's exponent.
pub(super) const BIASES: u32 = 254;

impl Lower {
    pub(crate) fn unary_float(&mut self, op: UnOp, a: VReg) -> VReg {
        match op {
            UnOp::Neg => {
                let sign = self.int(1 << 31);
                self.ins(VOp::Xor, &[a, sign])
            }
            UnOp::Abs => {
                let magnitude = self.int(!(1 << 31));
                self.ins(VOp::And, &[a, magnitude])
            }
            UnOp::Sqrt => self.ins(VOp::SqrtF, &[a]),
            UnOp::Floor => self.imm(VOp::RoundF, &[a], DOWN),
            UnOp::Ceil => self.imm(VOp::RoundF, &[a], UP),
            UnOp::Trunc => self.imm(VOp::RoundF, &[a], TO_ZERO),
            UnOp::Rint => self.imm(VOp::RoundF, &[a], NEAREST),
            UnOp::RoundF16 => {
                let half = self.f16_half(a);
                let value = self.ins(VOp::CvtHF, &[half]);
                self.rounded.insert((value, MemTy::F16), half);
                value
            }
            UnOp::RoundBf16 => {
                let bits = self.bf16_bits(a);
                let mask = self.int(0xffff_0000);
                let value = self.ins(VOp::And, &[bits, mask]);
                self.rounded.insert((value, MemTy::BF16), bits);
                value
            }
            UnOp::Not => self.not(a),
        }
    }

    pub(crate) fn unary_int(&mut self, op: UnOp, a: VReg) -> VReg {
        match op {
            UnOp::Neg => {
                let zero = self.int(0);
                self.ins(VOp::SubI, &[zero, a])
            }
            UnOp::Abs => self.ins(VOp::AbsI, &[a]),
            _ => self.not(a),
        }
    }

    pub(crate) fn unary_long(&mut self, op: UnOp, a: Pair) -> Pair {
        self.halves([a], |l, [a]| match op {
            UnOp::Neg => {
                let zero = l.int(0);
                l.ins(VOp::SubQ, &[zero, a])
            }
            UnOp::Abs if l.is_512() => l.ins(VOp::AbsQ, &[a]),
            UnOp::Abs => {
                let sign = l.sign_half(a);
                let flipped = l.ins(VOp::Xor, &[a, sign]);
                l.ins(VOp::SubQ, &[flipped, sign])
            }
            _ => l.not(a),
        })
    }

    /// -1 in 64-bit lanes that are negative, otherwise 0 (AVX2).
    fn sign_half(&mut self, a: VReg) -> VReg {
        let zero = self.int(0);
        self.ins(VOp::CmpGtQ, &[zero, a])
    }

    pub(crate) fn binary_float(&mut self, op: BinOp, a: VReg, b: VReg, known: Known) -> VReg {
        match op {
            BinOp::Add => self.ins(VOp::AddF, &[a, b]),
            BinOp::Sub => self.ins(VOp::SubF, &[a, b]),
            BinOp::Mul => self.ins(VOp::MulF, &[a, b]),
            BinOp::Div => self.ins(VOp::DivF, &[a, b]),
            BinOp::Max => self.float_max(a, b, known),
            BinOp::Scale if self.is_512() => self.ins(VOp::ScaleF, &[a, b]),
            BinOp::Scale => self.scaled(a, b),
            _ => self.float_min(a, b, known),
        }
    }

    /// a * 2^n in two products, as [`ptoc_isa::math::scale`]: n and twice the bias are the sum of both powers'
    /// exponents.
    fn scaled(&mut self, a: VReg, n: VReg) -> VReg {
        let both = self.with_biases(n).unwrap_or_else(|| {
            let (n, biases) = (self.ins(VOp::CvtFI, &[n]), self.int(BIASES));
            self.ins(VOp::AddI, &[n, biases])
        });
        let first = self.imm(VOp::ShrIBy, &[both], 1);
        let second = self.ins(VOp::SubI, &[both, first]);
        [first, second].into_iter().fold(a, |product, exponent| {
            let power = self.imm(VOp::ShlIBy, &[exponent], 23);
            self.ins(VOp::MulF, &[product, power])
        })
    }

    /// A float whose last ten digits are n + [`BIASES`], if n is what is left when a constant with these digits is
    /// taken away from it: so numbers are rounded to integers. What is before them does not reach a power's exponent.
    fn with_biases(&self, n: VReg) -> Option<VReg> {
        let def = self.out.iter().rfind(|ins| ins.dst == Some(n))?;
        let (Action::Vector(VOp::SubF), &[sum, constant]) = (def.action, &def.args[..]) else { return None };
        let Some(Home::Const(bits)) = self.p.regs[constant.0 as usize].home else { return None };
        // Above 2^23 all digits are whole ones; n is small, so that the sum is there too.
        let whole = (f32::from_bits(bits) - 12_582_912.0).abs() < 1024.0;
        (whole && bits & 0x3ff == BIASES).then_some(sum)
    }

    /// `max` of the machine gives its second operand when the two are equal or unordered. Taken both ways round, the
    /// results differ only for +0 and -0 and for NaN: `or` and a subtraction (x - 0, or -0 - -0 = +0) mend both. A
    /// constant that is no NaN needs one instruction or two.
    fn float_max(&mut self, a: VReg, b: VReg, known: Known) -> VReg {
        if let Some(c) = known.map(|bits| f32::from_bits(bits as u32)).filter(|c| !c.is_nan()) {
            let most = self.ins(VOp::MaxF, &[b, a]);
            // Equal operands give `a`: wrong only for max(-0, +0), which adding +0 mends.
            if c != 0.0 || c.is_sign_negative() {
                return most;
            }
            return self.ins(VOp::AddF, &[most, b]);
        }
        let (one, two) = (self.ins(VOp::MaxF, &[a, b]), self.ins(VOp::MaxF, &[b, a]));
        let differ = self.ins(VOp::Xor, &[one, two]);
        let either = self.ins(VOp::Or, &[one, differ]);
        self.ins(VOp::SubF, &[either, differ])
    }

    /// As `float_max`, but `or` alone mends zeros (the sign of -0 wins) and NaN (all its exponent bits stay).
    fn float_min(&mut self, a: VReg, b: VReg, known: Known) -> VReg {
        let c = known.map(|bits| f32::from_bits(bits as u32));
        if c.is_some_and(|c| !c.is_nan() && c.to_bits() != 1 << 31) {
            return self.ins(VOp::MinF, &[b, a]);
        }
        let (one, two) = (self.ins(VOp::MinF, &[a, b]), self.ins(VOp::MinF, &[b, a]));
        self.ins(VOp::Or, &[one, two])
    }

    pub(crate) fn binary_int(&mut self, op: BinOp, a: VReg, b: VReg, known: Known) -> VReg {
        let simple = match op {
            BinOp::Add => VOp::AddI,
            BinOp::Sub => VOp::SubI,
            BinOp::Mul => VOp::MulI,
            BinOp::And => VOp::And,
            BinOp::Or => VOp::Or,
            BinOp::Xor => VOp::Xor,
            BinOp::Max => VOp::MaxI,
            BinOp::Min => VOp::MinI,
            BinOp::MaxU => VOp::MaxU,
            BinOp::MinU => VOp::MinU,
            // The machine's counts of the width or more give what loop IR says: 0, or the sign.
            BinOp::Shl | BinOp::Shr | BinOp::ShrU => {
                let (vector, by) = match op {
                    BinOp::Shl => (VOp::ShlI, VOp::ShlIBy),
                    BinOp::Shr => (VOp::ShrI, VOp::ShrIBy),
                    _ => (VOp::ShrU, VOp::ShrUBy),
                };
                return match known {
                    Some(n) => self.imm(by, &[a], (n as u32).min(255) as u8),
                    None => self.ins(vector, &[a, b]),
                };
            }
            _ => return self.divide_int(op, a, b),
        };
        self.ins(simple, &[a, b])
    }

    fn divide_int(&mut self, op: BinOp, a: VReg, b: VReg) -> VReg {
        for (area, value) in [(0, a), (1, b)] {
            self.store(VOp::Store, MemOperand::Area { area, disp: 0 }, &[value], super::program::Mask::All);
        }
        self.push(Action::Scalar { what: Scalar::Div(op), wide: false }, None, &[]);
        self.load(VOp::Load, MemOperand::Area { area: 2, disp: 0 }, super::program::Mask::All)
    }

    pub(crate) fn binary_long(&mut self, op: BinOp, a: Pair, b: Pair, known: Known) -> Pair {
        let wide = self.is_512();
        let simple = match op {
            BinOp::Add => VOp::AddQ,
            BinOp::Sub => VOp::SubQ,
            BinOp::And => VOp::And,
            BinOp::Or => VOp::Or,
            BinOp::Xor => VOp::Xor,
            BinOp::Mul if wide => VOp::MulQ,
            BinOp::Max if wide => VOp::MaxQ,
            BinOp::Min if wide => VOp::MinQ,
            BinOp::MaxU if wide => VOp::MaxUQ,
            BinOp::MinU if wide => VOp::MinUQ,
            BinOp::Mul => return self.halves([a, b], |l, [a, b]| l.multiply_half(a, b)),
            BinOp::Max | BinOp::Min | BinOp::MaxU | BinOp::MinU => {
                let signed = matches!(op, BinOp::Max | BinOp::Min);
                let test = if matches!(op, BinOp::Max | BinOp::MaxU) { IntTest::Gt } else { IntTest::Lt };
                return self.halves([a, b], |l, [a, b]| {
                    let first = l.compare_half(test, signed, a, b);
                    l.choose_half(first, a, b)
                });
            }
            BinOp::Shl | BinOp::ShrU => {
                let (vector, by) = if op == BinOp::Shl { (VOp::ShlQ, VOp::ShlQBy) } else { (VOp::ShrUQ, VOp::ShrUQBy) };
                return self.halves([a, b], |l, [a, b]| match known {
                    Some(n) => l.imm(by, &[a], n.min(255) as u8),
                    None => l.ins(vector, &[a, b]),
                });
            }
            BinOp::Shr if wide => VOp::ShrQ,
            BinOp::Shr => {
                // A negative number's complement is shifted, and complemented again.
                return self.halves([a, b], |l, [a, b]| {
                    let sign = l.sign_half(a);
                    let flipped = l.ins(VOp::Xor, &[a, sign]);
                    let shifted = l.ins(VOp::ShrUQ, &[flipped, b]);
                    l.ins(VOp::Xor, &[shifted, sign])
                });
            }
            _ => return self.lanewise_long(Scalar::Div(op), [Some(a), Some(b)]),
        };
        self.halves([a, b], |l, args| l.ins(simple, &args))
    }

    /// Low 64 bits of products: the low halves' product, and both mixed ones one half higher.
    fn multiply_half(&mut self, a: VReg, b: VReg) -> VReg {
        let (a_high, b_high) = (self.imm(VOp::ShrUQBy, &[a], 32), self.imm(VOp::ShrUQBy, &[b], 32));
        let (one, two) = (self.ins(VOp::MulUQ, &[a_high, b]), self.ins(VOp::MulUQ, &[b_high, a]));
        let mixed = self.ins(VOp::AddQ, &[one, two]);
        let mixed = self.imm(VOp::ShlQBy, &[mixed], 32);
        let low = self.ins(VOp::MulUQ, &[a, b]);
        self.ins(VOp::AddQ, &[low, mixed])
    }

    /// Lane by lane, from 64-bit operands to a 64-bit result.
    fn lanewise_long(&mut self, what: Scalar, args: [Option<Pair>; 2]) -> Pair {
        for (area, value) in args.into_iter().enumerate() {
            if let Some(value) = value {
                self.store_pair(area as u8, value);
            }
        }
        self.push(Action::Scalar { what, wide: true }, None, &[]);
        self.load_pair(2)
    }

    pub(crate) fn compare_float(&mut self, op: CmpOp, a: VReg, b: VReg) -> VReg {
        let test = match op {
            CmpOp::Eq => FloatTest::Eq,
            CmpOp::Ne => FloatTest::Ne,
            CmpOp::Lt | CmpOp::LtU => FloatTest::Lt,
            CmpOp::Le | CmpOp::LeU => FloatTest::Le,
            CmpOp::Gt | CmpOp::GtU => FloatTest::Gt,
            CmpOp::Ge | CmpOp::GeU => FloatTest::Ge,
        };
        self.test_float(test, a, b)
    }

    /// Bool: `eq` and `ne`, all that loop IR has.
    pub(crate) fn compare_bool(&mut self, op: CmpOp, a: VReg, b: VReg) -> VReg {
        let differ = self.bitwise(VOp::Xor, a, b);
        if op == CmpOp::Ne { differ } else { self.not(differ) }
    }

    /// Casts from 32-bit lanes to 32-bit lanes.
    pub(crate) fn cast(&mut self, op: Cast, a: VReg) -> VReg {
        match op {
            Cast::IToF => self.ins(VOp::CvtIF, &[a]),
            Cast::UToF if self.is_512() => self.ins(VOp::CvtUF, &[a]),
            Cast::UToF => {
                // Both halves become floats with exponents of 2^23 and 2^39; only the last addition rounds.
                let (low_mask, low_exponent) = (self.int(0xffff), self.int(0x4b00_0000));
                let low = self.ins(VOp::And, &[a, low_mask]);
                let low = self.ins(VOp::Or, &[low, low_exponent]);
                let high_exponent = self.int(0x5300_0000);
                let high = self.imm(VOp::ShrUBy, &[a], 16);
                let high = self.ins(VOp::Or, &[high, high_exponent]);
                let both = self.int(0x5300_0080);
                let high = self.ins(VOp::SubF, &[high, both]);
                self.ins(VOp::AddF, &[high, low])
            }
            Cast::FToI32 => {
                // Out of range and NaN give MIN; above the largest all bits are flipped, NaN becomes 0.
                let bits = self.ins(VOp::CvtFI, &[a]);
                let most = self.float(2_147_483_648.0);
                let over = self.test_float(FloatTest::Ge, a, most);
                let largest = self.int(i32::MAX as u32);
                let bits = self.choose(over, largest, bits);
                let number = self.ordered(a);
                self.keep(number, bits)
            }
            Cast::FToU32 => {
                // NaN and what is below 0 become 0 (`max` gives its second operand for NaN).
                let zero = self.int(0);
                let a = self.ins(VOp::MaxF, &[a, zero]);
                if self.is_512() {
                    return self.ins(VOp::CvtFU, &[a]);
                }
                let half = self.float(2_147_483_648.0);
                let most = self.float(4_294_967_296.0);
                let low = self.ins(VOp::CvtFI, &[a]);
                let rest = self.ins(VOp::SubF, &[a, half]);
                let rest = self.ins(VOp::CvtFI, &[rest]);
                let bit = self.int(1 << 31);
                let high = self.ins(VOp::Xor, &[rest, bit]);
                let large = self.test_float(FloatTest::Ge, a, half);
                let bits = self.choose(large, high, low);
                let over = self.test_float(FloatTest::Ge, a, most);
                self.ins(VOp::Or, &[bits, over])
            }
            _ => a,
        }
    }

    /// i64 or u64 to f32.
    pub(crate) fn long_to_float(&mut self, signed: bool, a: Pair) -> VReg {
        if self.is_512() {
            let op = if signed { VOp::CvtQF } else { VOp::CvtUQF };
            let [low, high] = self.halves([a], |l, args| l.ins(op, &args));
            return self.imm(VOp::Join, &[low, high], 1);
        }
        self.store_pair(0, a);
        self.push(Action::Scalar { what: Scalar::FromLong { signed }, wide: true }, None, &[]);
        self.load(VOp::Load, MemOperand::Area { area: 2, disp: 0 }, super::program::Mask::All)
    }

    /// f32 to i64 or u64, saturating; NaN gives 0.
    pub(crate) fn float_to_long(&mut self, signed: bool, a: VReg) -> Pair {
        if !self.is_512() {
            self.store(VOp::Store, MemOperand::Area { area: 0, disp: 0 }, &[a], super::program::Mask::All);
            self.push(Action::Scalar { what: Scalar::ToLong { signed }, wide: true }, None, &[]);
            return self.load_pair(2);
        }
        if !signed {
            let zero = self.int(0);
            let a = self.ins(VOp::MaxF, &[a, zero]);
            let high = self.high(a);
            return [self.ins(VOp::CvtFUQ, &[a]), self.ins(VOp::CvtFUQ, &[high])];
        }
        let high = self.high(a);
        let bits = [self.ins(VOp::CvtFQ, &[a]), self.ins(VOp::CvtFQ, &[high])];
        let most = self.float(9_223_372_036_854_775_808.0);
        let over = self.test_float(FloatTest::Ge, a, most);
        let largest = self.long(i64::MAX as u64);
        let bits = self.choose_long(over, [largest; 2], bits);
        let nan = self.test_float(FloatTest::Unordered, a, a);
        let zero = self.int(0);
        self.choose_long(nan, [zero; 2], bits)
    }

    /// The low 32 bits of 64-bit lanes.
    pub(crate) fn wrapped(&mut self, a: Pair) -> VReg {
        if !self.is_512() {
            return self.packed(a);
        }
        let [low, high] = self.halves([a], |l, args| l.ins(VOp::WrapQ, &args));
        self.imm(VOp::Join, &[low, high], 1)
    }

    /// 32-bit lanes as 64-bit ones.
    pub(crate) fn extended(&mut self, signed: bool, a: VReg) -> Pair {
        let op = if signed { VOp::SextIQ } else { VOp::ZextIQ };
        let high = self.high(a);
        [self.ins(op, &[a]), self.ins(op, &[high])]
    }
}
