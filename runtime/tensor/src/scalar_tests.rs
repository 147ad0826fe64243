use super::*;
use crate::DType::{BF16, Bool, F8E4M3, F8E5M2, F16, F32, I8, I16, I64, U8, U16, U32, U64};
use proptest::prelude::*;

/// The non-negative finite values of a 16-bit float, ascending.
fn magnitudes(dtype: DType) -> impl Iterator<Item = (u64, f64)> {
    (0..0x8000).map(move |bits| (bits, bits_to_f64(dtype, bits))).filter(|(_, value)| value.is_finite())
}

#[test]
fn widening_agrees_with_half() {
    for bits in 0..=u16::MAX {
        let (ours, theirs) = (bits_to_f64(F16, u64::from(bits)), f16::from_bits(bits).to_f64());
        assert!(ours == theirs && ours.signum() == theirs.signum() || ours.is_nan() && theirs.is_nan(), "{bits:#x}");
        let (ours, theirs) = (bits_to_f64(BF16, u64::from(bits)), f64::from(bf16::from_bits(bits).to_f32()));
        assert!(ours == theirs && ours.signum() == theirs.signum() || ours.is_nan() && theirs.is_nan(), "{bits:#x}");
    }
}

#[test]
fn every_midpoint_of_the_16_bit_floats_rounds_to_even() {
    for dtype in [F16, BF16] {
        for ((low, a), (high, b)) in magnitudes(dtype).zip(magnitudes(dtype).skip(1)) {
            let middle = (a + b) / 2.0; // exact: f64 has room for one more bit
            let even = if low & 1 == 0 { low } else { high };
            let sign = 0x8000;
            assert_eq!(bits_from_f64(dtype, a), low);
            assert_eq!(bits_from_f64(dtype, middle), even, "{middle:e}");
            assert_eq!(bits_from_f64(dtype, -middle), even | sign, "{middle:e}");
            // One unit of f64 beside the tie decides it, which a detour by f32 would lose.
            assert_eq!(bits_from_f64(dtype, middle.next_up()), high, "{middle:e}");
            assert_eq!(bits_from_f64(dtype, middle.next_down()), low, "{middle:e}");
        }
    }
}

/// Each byte by the definition of its format: the exponent's bias, the place of the mantissa, and the patterns that are
/// no numbers.
#[test]
fn every_8_bit_float_has_its_value() {
    for bits in 0..=0xffu64 {
        let sign = if bits & 0x80 == 0 { 1.0 } else { -1.0 };
        let number = |man_bits: i32, bias: i32| {
            let (field, man) = ((bits & 0x7f) as i32 >> man_bits, (bits & ((1 << man_bits) - 1)) as f64);
            let part = man / f64::from(1 << man_bits);
            sign * if field == 0 { part * 2f64.powi(1 - bias) } else { (1.0 + part) * 2f64.powi(field - bias) }
        };
        let e4m3 = if bits & 0x7f == 0x7f { f64::NAN } else { number(3, 7) };
        let e5m2 = match bits & 0x7f {
            0x7c => sign * f64::INFINITY,
            0x7d.. => f64::NAN,
            _ => number(2, 15),
        };
        for (dtype, want) in [(F8E4M3, e4m3), (F8E5M2, e5m2)] {
            let got = bits_to_f64(dtype, bits);
            let same = got == want && got.is_sign_negative() == want.is_sign_negative();
            assert!(same || got.is_nan() && want.is_nan(), "{dtype} {bits:#x}: {got}, not {want}");
            if !want.is_nan() {
                assert_eq!(bits_from_f64(dtype, want), bits, "{dtype} {want}");
            }
        }
        // f8e5m2 is the upper half of an f16.
        let half = bits_to_f64(F16, bits << 8);
        assert!(half == e5m2 || half.is_nan() && e5m2.is_nan());
    }
}

#[test]
fn every_midpoint_of_the_8_bit_floats_rounds_to_even() {
    for dtype in [F8E4M3, F8E5M2] {
        let magnitudes: Vec<f64> =
            (0..0x80).map(|bits| bits_to_f64(dtype, bits)).take_while(|value| value.is_finite()).collect();
        for (low, pair) in magnitudes.windows(2).enumerate() {
            let (low, middle) = (low as u64, (pair[0] + pair[1]) / 2.0);
            assert_eq!(bits_from_f64(dtype, middle), low + (low & 1), "{middle:e}");
            assert_eq!(bits_from_f64(dtype, -middle), 0x80 | (low + (low & 1)), "{middle:e}");
            assert_eq!(bits_from_f64(dtype, middle.next_up()), low + 1, "{middle:e}");
            assert_eq!(bits_from_f64(dtype, middle.next_down()), low, "{middle:e}");
        }
    }
    // Beyond the largest: half a unit is a tie, with the even 448, or with infinity.
    assert_eq!(bits_from_f64(F8E4M3, 464.0), 0x7e);
    assert_eq!(bits_from_f64(F8E4M3, 464.0f64.next_up()), 0x7f);
    assert_eq!(bits_from_f64(F8E4M3, f64::NEG_INFINITY), 0xff);
    assert_eq!(bits_from_f64(F8E5M2, 61440.0f64.next_down()), 0x7b);
    assert_eq!(bits_from_f64(F8E5M2, -61440.0), 0xfc);
    assert!(fits(F8E4M3, 464) && !fits(F8E4M3, 465) && fits(F8E5M2, 61439) && !fits(F8E5M2, 61440));
}

#[test]
fn the_largest_finite_value_and_beyond() {
    assert_eq!(bits_from_f64(F16, 65519.999), 0x7bff);
    assert_eq!(bits_from_f64(F16, 65520.0), 0x7c00);
    assert_eq!(bits_from_f64(F16, -1e300), 0xfc00);
    assert_eq!(bits_from_f64(BF16, f64::from(f32::MAX)), 0x7f80);
    assert_eq!(bits_from_f64(F16, f64::MIN_POSITIVE), 0);
    assert_eq!(bits_from_f64(F16, -f64::from_bits(1)), 0x8000);
    assert_eq!(bits_from_f64(F32, f64::INFINITY), 0x7f80_0000);
}

#[test]
fn nan_keeps_its_sign_and_upper_payload() {
    let nan = f64::from_bits(0xfff4_0000_0000_0001);
    assert_eq!(bits_from_f64(F32, nan), 0xffe0_0000);
    assert_eq!(bits_from_f64(F16, nan), 0xff00);
    assert_eq!(bits_from_f64(BF16, nan), 0xffe0);
    assert_eq!(bits_from_f64(I16, nan), 0);
    assert_eq!(bits_from_f64(Bool, nan), 1);
    assert_eq!(convert_bits(F16, F32, 0x7c01), 0x7fc0_2000);
    assert_eq!(convert_bits(F32, F16, 0x7fc0_2000), 0x7e01);
}

#[test]
fn integers_saturate_from_floats_and_wrap_from_integers() {
    assert_eq!(bits_from_f64(I8, -1000.0), 0x80);
    assert_eq!(bits_from_f64(U8, -0.5), 0);
    assert_eq!(bits_from_f64(U8, 254.9), 254);
    assert_eq!(bits_from_f64(I64, 1e30), i64::MAX as u64);
    assert_eq!(bits_from_f64(U64, f64::INFINITY), u64::MAX);
    assert_eq!(bits_from_i128(I8, 200), 200);
    assert_eq!(bits_to_i128(I8, 200), -56);
    assert_eq!(bits_from_i128(U32, -1), 0xffff_ffff);
    assert_eq!(convert_bits(I16, U8, 0xff01), 1);
    assert_eq!(convert_bits(I8, I16, 0xff), 0xffff);
    assert_eq!(convert_bits(U64, Bool, 1 << 40), 1);
    assert_eq!(bits_to_i128(U64, u64::MAX), i128::from(u64::MAX));
}

#[test]
fn integers_to_floats_round_once() {
    // 2^60 + 2^36 + 1: f64 drops the 1 and leaves a tie for f32, which would go to even, that is down.
    let value = (1i128 << 60) + (1 << 36) + 1;
    assert_eq!(bits_to_f64(F32, bits_from_i128(F32, value)), ((1i128 << 60) + (1 << 37)) as f64);
    assert_eq!(bits_from_i128(F16, 65519), 0x7bff);
    assert_eq!(bits_from_i128(F16, -65520), 0xfc00);
    assert_eq!(bits_from_i128(F32, i128::MIN), u64::from((i128::MIN as f32).to_bits()));
    assert_eq!(bits_from_i128(BF16, 257), bits_from_f64(BF16, 256.0));
}

#[test]
fn what_fits() {
    assert!(fits(U8, 255) && !fits(U8, 256) && !fits(U8, -1));
    assert!(fits(I64, i128::from(i64::MIN)) && !fits(I64, 1 << 63) && fits(U64, 1 << 63));
    assert!(fits(Bool, 1) && !fits(Bool, 2));
    assert!(fits(F16, 65519) && !fits(F16, 65520));
    assert!(fits(F32, i128::MAX));
}

#[test]
fn distance_in_units_in_the_last_place() {
    assert_eq!(ulps(F16, 0x0001, 0x8001), Some(2));
    assert_eq!(ulps(F32, 0x3f80_0000, 0x3f80_0003), Some(3));
    assert_eq!(ulps(BF16, 0x0000, 0x8000), Some(0));
    assert_eq!(ulps(F16, 0x7e00, 0), None);
    assert_eq!(ulps(U8, 1, 2), None);
}

#[test]
fn text_is_the_shortest_that_reads_back() {
    let text = |dtype, value: f64| format_bits(dtype, bits_from_f64(dtype, value));
    assert_eq!(text(F16, 0.1), "0.1");
    assert_eq!(text(F16, 65504.0), "65500.0");
    assert_eq!(text(F16, 1.0 / 3.0), "0.3333");
    assert_eq!(text(BF16, 3.15), "3.16"); // 3.156: also what 3.15 rounds to, but no third digit is closer
    assert_eq!(text(F32, 0.1), "0.1");
    assert_eq!(text(F32, 16777216.0), "16777216.0");
    assert_eq!(text(F32, 1e-45), "1e-45");
    assert_eq!(text(F32, -0.0), "-0.0");
    assert_eq!(text(F32, f64::NEG_INFINITY), "-inf");
    assert_eq!(text(F32, f64::NAN), "nan");
    assert_eq!(text(I8, -3.0), "-3");
    assert_eq!(text(Bool, 1.0), "true");
    assert_eq!(text(U16, 65535.0), "65535");
}

proptest! {
    #[test]
    fn f32_agrees_with_the_cast(bits: u64) {
        let value = f64::from_bits(bits);
        if !value.is_nan() {
            prop_assert_eq!(round_f64(value, Format::F32) as u32, (value as f32).to_bits());
        }
    }

    #[test]
    fn f32_to_16_bits_agrees_with_half(bits: u32) {
        let value = f32::from_bits(bits);
        prop_assert_eq!(convert_bits(F32, F16, u64::from(bits)) as u16, f16_from_f32(value));
        prop_assert_eq!(convert_bits(F32, BF16, u64::from(bits)) as u16, bf16_from_f32(value));
        prop_assert_eq!(bf16_to_f32((bits >> 16) as u16).to_bits(), bits & 0xffff_0000);
        prop_assert_eq!(convert_bits(BF16, F32, u64::from(bits >> 16)), u64::from(bits & 0xffff_0000));
    }

    #[test]
    fn i128_to_f32_agrees_with_the_cast(value: i128, shift in 0u32..127) {
        let value = value >> shift;
        prop_assert_eq!(bits_from_i128(F32, value) as u32, (value as f32).to_bits());
    }

    #[test]
    fn text_reads_back(bits: u32) {
        for dtype in [F16, BF16, F32, F8E4M3, F8E5M2] {
            let bits = truncated(dtype, u64::from(bits));
            if !is_nan(dtype, bits) {
                prop_assert_eq!(bits_from_f64(dtype, format_bits(dtype, bits).parse().unwrap()), bits);
            }
        }
    }
}
