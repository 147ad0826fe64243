//! f16 and bf16 by integer arithmetic on the f32's bits, the same instructions for one value or four.
//!
//! All conversions round to nearest even, keep subnormals and overflow to infinity. A NaN stays a NaN with its sign and
//! the payload bits that fit, and becomes quiet (only bf16 to f32, a mere shift, keeps a signalling NaN). So the
//! results are, bit for bit, those of IEEE 754 hardware.

use crate::func::Emit;
use crate::shape::Shape;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value};

impl Emit<'_, '_> {
    /// bf16 bits (in the low half of an i32) as f32.
    pub(crate) fn bf16_to_f32(&mut self, s: Shape, h: Value) -> Value {
        let bits = self.b.ins().ishl_imm_s(h, 16);
        self.as_float(s, bits)
    }

    /// An f32 rounded to bf16: its bits in the high half, the low half is zero.
    fn bf16_high(&mut self, s: Shape, x: Value) -> Value {
        let bits = self.as_int(s, x);
        // Half an ulp less one, plus one if the result would be odd.
        let shifted = self.b.ins().ushr_imm_s(bits, 16);
        let one = self.int(s, 1);
        let odd = self.b.ins().band(shifted, one);
        let half = self.int(s, 0x7fff);
        let bias = self.b.ins().iadd(odd, half);
        let rounded = self.b.ins().iadd(bits, bias);
        let quiet = self.int(s, 0x0040_0000);
        let nan = self.b.ins().bor(bits, quiet);
        let is_nan = self.is_nan(s, x);
        let bits = self.choose(s, is_nan, nan, rounded);
        let mask = self.int(s, 0xffff_0000);
        self.b.ins().band(bits, mask)
    }

    /// An f32 rounded to bf16, as bits in the low half of an i32.
    pub(crate) fn f32_to_bf16(&mut self, s: Shape, x: Value) -> Value {
        let high = self.bf16_high(s, x);
        self.b.ins().ushr_imm_s(high, 16)
    }

    /// An f32 rounded to the nearest bf16 value.
    pub(crate) fn round_bf16(&mut self, s: Shape, x: Value) -> Value {
        let high = self.bf16_high(s, x);
        self.as_float(s, high)
    }

    /// f16 bits (zero-extended in an i32) as f32.
    pub(crate) fn f16_to_f32(&mut self, s: Shape, h: Value) -> Value {
        let magnitude_mask = self.int(s, 0x7fff);
        let magnitude = self.b.ins().band(h, magnitude_mask);
        let sign = self.b.ins().bxor(h, magnitude);
        let sign = self.b.ins().ishl_imm_s(sign, 16);
        let moved = self.b.ins().ishl_imm_s(magnitude, 13);
        // The exponent's bias is 112 too small; a multiplication mends that exactly, for subnormals too.
        let small = self.as_float(s, moved);
        let scale = self.float(s, f32::from_bits(0x7780_0000));
        let scaled = self.b.ins().fmul(small, scale);
        let finite = self.as_int(s, scaled);
        // Infinity and NaN: the exponent is all ones; a NaN becomes quiet.
        let inf = self.int(s, 0x7c00);
        let special = self.compare_int(s, IntCC::SignedGreaterThanOrEqual, magnitude, inf);
        let all_ones = self.int(s, 0x7f80_0000);
        let is_nan = self.compare_int(s, IntCC::SignedGreaterThan, magnitude, inf);
        let quiet = self.int(s, 0x0040_0000);
        let exponent = self.mask_bits(s, special, all_ones);
        let quiet = self.mask_bits(s, is_nan, quiet);
        let bits = self.b.ins().bor(finite, exponent);
        let bits = self.b.ins().bor(bits, quiet);
        let bits = self.b.ins().bor(bits, sign);
        self.as_float(s, bits)
    }

    /// An f32 rounded to f16, as bits in the low half of an i32 (the high half is zero).
    pub(crate) fn f32_to_f16(&mut self, s: Shape, x: Value) -> Value {
        let (magnitude, sign) = self.split_sign(s, x);
        let (exponent, anchor) = self.f16_anchor(s, magnitude);
        // The sum's last bit is worth an ulp of the result, so the addition rounds; what it adds to the anchor's bits
        // is the result's significand, the leading one included. That one makes the exponent, one higher.
        let float = self.as_float(s, magnitude);
        let anchor_float = self.as_float(s, anchor);
        let sum = self.b.ins().fadd(float, anchor_float);
        let sum = self.as_int(s, sum);
        let significand = self.b.ins().isub(sum, anchor);
        let exponent = self.b.ins().ushr_imm_s(exponent, 13);
        let bias = self.int(s, 113 << 10);
        let exponent = self.b.ins().isub(exponent, bias);
        let finite = self.b.ins().iadd(exponent, significand);
        // From half an ulp above the largest: infinity, or NaN with the payload that fits.
        let payload = self.b.ins().ushr_imm_s(magnitude, 13);
        let payload_mask = self.int(s, 0x3ff);
        let payload = self.b.ins().band(payload, payload_mask);
        let quiet = self.int(s, 0x0200);
        let nan = self.b.ins().bor(payload, quiet);
        let is_nan = self.is_nan(s, x);
        let nan = self.mask_bits(s, is_nan, nan);
        let inf = self.int(s, 0x7c00);
        let special = self.b.ins().bor(nan, inf);
        let limit = self.int(s, 0x477f_f000);
        let over = self.compare_int(s, IntCC::SignedGreaterThanOrEqual, magnitude, limit);
        let bits = self.choose(s, over, special, finite);
        let sign = self.b.ins().ushr_imm_s(sign, 16);
        self.b.ins().bor(bits, sign)
    }

    /// An f32 rounded to the nearest f16 value, as f32.
    pub(crate) fn round_f16(&mut self, s: Shape, x: Value) -> Value {
        let (magnitude, sign) = self.split_sign(s, x);
        // Values from 2^16 overflow whatever they are rounded to; the limit keeps the anchor finite.
        let most = self.float(s, 65536.0);
        let most_bits = self.as_int(s, most);
        let limited = self.b.ins().smin(magnitude, most_bits);
        let (_, anchor) = self.f16_anchor(s, limited);
        let float = self.as_float(s, magnitude);
        let anchor = self.as_float(s, anchor);
        let sum = self.b.ins().fadd(float, anchor);
        let rounded = self.b.ins().fsub(sum, anchor);
        let over = self.b.ins().fcmp(FloatCC::GreaterThanOrEqual, rounded, most);
        let rounded = self.as_int(s, rounded);
        let inf = self.int(s, 0x7f80_0000);
        let bits = self.choose(s, over, inf, rounded);
        // Only a NaN has more bits than fit.
        let mask = self.int(s, 0xffff_e000);
        let bits = self.b.ins().band(bits, mask);
        let bits = self.b.ins().bor(bits, sign);
        self.as_float(s, bits)
    }

    /// The exponent field of the binade in which f16 rounds a magnitude (that of the least normal value for smaller
    /// ones), and the power of two whose f32 ulp is f16's ulp there.
    fn f16_anchor(&mut self, s: Shape, magnitude: Value) -> (Value, Value) {
        let exponent_mask = self.int(s, 0x7f80_0000);
        let exponent = self.b.ins().band(magnitude, exponent_mask);
        let least = self.int(s, 113 << 23);
        let exponent = self.b.ins().smax(exponent, least);
        let thirteen = self.int(s, 13 << 23);
        (exponent, self.b.ins().iadd(exponent, thirteen))
    }

    /// The magnitude's bits and the sign bit of an f32.
    fn split_sign(&mut self, s: Shape, x: Value) -> (Value, Value) {
        let bits = self.as_int(s, x);
        let mask = self.int(s, 0x7fff_ffff);
        let magnitude = self.b.ins().band(bits, mask);
        let sign = self.b.ins().bxor(bits, magnitude);
        (magnitude, sign)
    }
}
