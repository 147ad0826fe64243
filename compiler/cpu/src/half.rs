//! f16 and bf16 by integer arithmetic on the f32's bits, the same instructions for one value or four.
//!
//! All conversions round to nearest even, keep subnormals and overflow to infinity. A NaN stays a NaN with its sign and
//! the payload bits that fit, and becomes quiet (only bf16 to f32, a mere shift, keeps a signalling NaN). So the
//! results are, bit for bit, those of IEEE 754 hardware.

use crate::func::Emit;
use crate::shape::Shape;
use cranelift_codegen::ir::condcodes::IntCC;
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
        let parts = self.split_sign(s, x);
        let (magnitude, sign) = parts;
        // Normal results: rebias the exponent and round the 13 bits that go.
        let shifted = self.b.ins().ushr_imm_s(magnitude, 13);
        let one = self.int(s, 1);
        let odd = self.b.ins().band(shifted, one);
        let bias = self.int(s, 0xc800_0fff);
        let normal = self.b.ins().iadd(magnitude, bias);
        let normal = self.b.ins().iadd(normal, odd);
        let normal = self.b.ins().ushr_imm_s(normal, 13);
        // Subnormal results: 0.5 has the ulp of f16's subnormals, so the addition rounds; its low bits are the result.
        let half = self.float(s, 0.5);
        let float = self.as_float(s, magnitude);
        let sum = self.b.ins().fadd(float, half);
        let sum = self.as_int(s, sum);
        let half_bits = self.int(s, 0x3f00_0000);
        let subnormal = self.b.ins().isub(sum, half_bits);
        let least = self.int(s, 0x3880_0000);
        let is_sub = self.compare_int(s, IntCC::SignedLessThan, magnitude, least);
        let finite = self.choose(s, is_sub, subnormal, normal);
        // Overflow and infinity, NaN.
        let payload_mask = self.int(s, 0x3ff);
        let payload = self.b.ins().band(shifted, payload_mask);
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

    /// An f32 rounded to the nearest f16 value, as f32: the steps of `f32_to_f16` without the change of format.
    pub(crate) fn round_f16(&mut self, s: Shape, x: Value) -> Value {
        let (magnitude, sign) = self.split_sign(s, x);
        let shifted = self.b.ins().ushr_imm_s(magnitude, 13);
        let one = self.int(s, 1);
        let odd = self.b.ins().band(shifted, one);
        let half_less_one = self.int(s, 0x0fff);
        let normal = self.b.ins().iadd(magnitude, half_less_one);
        let normal = self.b.ins().iadd(normal, odd);
        let half = self.float(s, 0.5);
        let float = self.as_float(s, magnitude);
        let sum = self.b.ins().fadd(float, half);
        let subnormal = self.b.ins().fsub(sum, half);
        let subnormal = self.as_int(s, subnormal);
        let limit = self.int(s, 0x477f_f000);
        let over = self.compare_int(s, IntCC::SignedGreaterThanOrEqual, magnitude, limit);
        let inf = self.int(s, 0x7f80_0000);
        let normal = self.choose(s, over, inf, normal);
        let quiet = self.int(s, 0x0040_0000);
        let nan = self.b.ins().bor(magnitude, quiet);
        let is_nan = self.is_nan(s, x);
        let normal = self.choose(s, is_nan, nan, normal);
        let mask = self.int(s, 0xffff_e000);
        let normal = self.b.ins().band(normal, mask);
        let least = self.int(s, 0x3880_0000);
        let is_sub = self.compare_int(s, IntCC::SignedLessThan, magnitude, least);
        let bits = self.choose(s, is_sub, subnormal, normal);
        let bits = self.b.ins().bor(bits, sign);
        self.as_float(s, bits)
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
