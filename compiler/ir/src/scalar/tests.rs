use super::*;
use ptoc_isa::RoundMode;

const I8: Ty = Ty::D(DType::I8);
const U8: Ty = Ty::D(DType::U8);
const I16: Ty = Ty::D(DType::I16);
const I32: Ty = Ty::D(DType::I32);
const U32: Ty = Ty::D(DType::U32);
const I64: Ty = Ty::D(DType::I64);
const U64: Ty = Ty::D(DType::U64);
const F16: Ty = Ty::D(DType::F16);
const BF16: Ty = Ty::D(DType::BF16);
const F32: Ty = Ty::D(DType::F32);

fn int(op: BinOp, ty: Ty, a: i128, b: i128) -> i128 {
    to_int(ty, binary(op, ty, from_int(ty, a), from_int(ty, b)).unwrap())
}

fn f(x: f32) -> u64 {
    u64::from(x.to_bits())
}

#[test]
fn integers_wrap_and_divide_as_decided() {
    assert_eq!(int(BinOp::Add, I8, 127, 1), -128);
    assert_eq!(int(BinOp::Mul, U8, 200, 2), 144);
    assert_eq!(int(BinOp::Div, I8, -7, 2), -3);
    assert_eq!(int(BinOp::Rem, I8, -7, 2), -1);
    assert_eq!(int(BinOp::Div, Ty::Index, -7, 2), -4);
    assert_eq!(int(BinOp::Rem, Ty::Index, -7, 2), 1);
    assert_eq!(int(BinOp::Rem, Ty::Index, 7, -2), -1);
    assert_eq!(int(BinOp::Div, I8, -128, -1), -128);
    assert_eq!(int(BinOp::Div, Ty::Index, i128::from(i64::MIN), -1), i128::from(i64::MIN));
    for ty in [I8, I16, I32, I64, Ty::Index] {
        assert_eq!(int(BinOp::Div, ty, 5, 0), -1);
        assert_eq!(int(BinOp::Rem, ty, -5, 0), -5);
    }
    assert_eq!(int(BinOp::Div, U64, 5, 0), i128::from(u64::MAX));
    assert_eq!(int(BinOp::Div, U8, 5, 0), 255);
    assert_eq!(int(BinOp::Max, U64, -1, 3), i128::from(u64::MAX));
    assert_eq!(int(BinOp::Max, I64, -1, 3), 3);
}

#[test]
fn shifts_at_and_beyond_the_width() {
    assert_eq!(int(BinOp::Shl, I8, 1, 7), -128);
    assert_eq!(int(BinOp::Shl, I8, 1, 8), 0);
    assert_eq!(int(BinOp::Shl, I64, 1, 64), 0);
    assert_eq!(int(BinOp::Shr, I8, -128, 8), -1);
    assert_eq!(int(BinOp::Shr, I8, -128, 3), -16);
    // A negative count is a huge unsigned one.
    assert_eq!(int(BinOp::Shl, I8, 1, -1), 0);
    assert_eq!(int(BinOp::Shr, I8, 64, -1), 0);
    assert_eq!(int(BinOp::Shr, U32, 0x8000_0000, 31), 1);
    assert_eq!(int(BinOp::Shr, U32, 0x8000_0000, 32), 0);
}

#[test]
fn max_and_min_of_floats() {
    let nan = f(f32::NAN);
    for op in [BinOp::Max, BinOp::Min] {
        assert!(to_f32(DType::F32, binary(op, F32, nan, f(1.0)).unwrap()).is_nan());
        assert!(to_f32(DType::F32, binary(op, F32, f(1.0), nan).unwrap()).is_nan());
    }
    assert_eq!(binary(BinOp::Max, F32, f(-0.0), f(0.0)), Some(f(0.0)));
    assert_eq!(binary(BinOp::Min, F32, f(0.0), f(-0.0)), Some(f(-0.0)));
    assert_eq!(unary(UnOp::Relu, F32, f(-0.0)), Some(f(0.0)));
    assert!(to_f32(DType::F32, unary(UnOp::Relu, F32, nan).unwrap()).is_nan());
}

#[test]
fn half_arithmetic_rounds_once() {
    let h = |x: f32| from_f32(DType::F16, x);
    // 2048 + 1 is a tie between 2048 and 2050.
    assert_eq!(binary(BinOp::Add, F16, h(2048.0), h(1.0)), Some(h(2048.0)));
    assert_eq!(binary(BinOp::Add, F16, h(2050.0), h(1.0)), Some(h(2052.0)));
    assert_eq!(binary(BinOp::Add, F16, h(65504.0), h(16.0)), Some(h(f32::INFINITY)));
    let b = |x: f32| from_f32(DType::BF16, x);
    assert_eq!(binary(BinOp::Add, BF16, b(256.0), b(1.0)), Some(b(256.0)));
}

#[test]
fn operations_that_do_not_exist() {
    assert_eq!(binary(BinOp::And, F32, 0, 0), None);
    assert_eq!(binary(BinOp::Add, Ty::BOOL, 0, 0), None);
    assert_eq!(unary(UnOp::Exp, I32, 0), None);
    assert_eq!(unary(UnOp::Not, F32, 0), None);
    assert_eq!(unary(UnOp::Not, Ty::BOOL, 1), Some(0));
    for ty in [I8, U64, F16, F32, Ty::Index, Ty::BOOL] {
        for &op in BinOp::ALL {
            assert_eq!(binary(op, ty, 1, 1).is_some(), binary_exists(op, ty), "{op} {ty}");
        }
        for &op in UnOp::ALL {
            assert_eq!(unary(op, ty, 1).is_some(), unary_exists(op, ty), "{op} {ty}");
        }
    }
}

#[test]
fn comparisons_with_nan() {
    let nan = f(f32::NAN);
    for &op in CmpOp::ALL {
        assert_eq!(compare(op, F32, nan, nan), op == CmpOp::Ne);
    }
    assert!(compare(CmpOp::Lt, I8, 0xff, 0));
    assert!(compare(CmpOp::Gt, U8, 0xff, 0));
    assert!(compare(CmpOp::Eq, F32, f(0.0), f(-0.0)));
}

#[test]
fn float_to_integer_in_every_mode() {
    let c = |x: f32, mode| to_int(I32, convert(F32, I32, f(x), mode, true)) as i64;
    let table = [
        (2.5, [2, 3, 2, 3, 2, 3]),
        (3.5, [4, 4, 3, 4, 3, 3]),
        (-2.5, [-2, -3, -3, -2, -2, -3]),
        (2.25, [2, 2, 2, 3, 2, 3]),
        (-0.75, [-1, -1, -1, 0, 0, -1]),
        (4.0, [4, 4, 4, 4, 4, 4]),
        (1e-40, [0, 0, 0, 1, 0, 1]),
    ];
    for (x, want) in table {
        for (mode, want) in RoundMode::ALL.iter().zip(want) {
            assert_eq!(c(x, *mode), want, "{x} {mode}");
        }
    }
}

#[test]
fn saturation() {
    let c = |x: f32, to, sat| to_int(to, convert(F32, to, f(x), RoundMode::Rint, sat));
    assert_eq!(c(300.0, I8, true), 127);
    assert_eq!(c(300.0, I8, false), 44);
    assert_eq!(c(-1.0, U8, true), 0);
    assert_eq!(c(-1.0, U8, false), 255);
    assert_eq!(c(f32::NAN, I8, true), 0);
    assert_eq!(c(f32::INFINITY, U64, true), i128::from(u64::MAX));
    assert_eq!(c(f32::NEG_INFINITY, I64, true), i128::from(i64::MIN));
    assert_eq!(c(3e38, U64, true), i128::from(u64::MAX));
    assert_eq!(c(3e38, U64, false), 0);
    assert_eq!(c(-3e38, I32, true), i128::from(i32::MIN));
    let i = |x: i128, from, to, sat| to_int(to, convert(from, to, from_int(from, x), RoundMode::Rint, sat));
    assert_eq!(i(300, I32, U8, false), 44);
    assert_eq!(i(300, I32, U8, true), 255);
    assert_eq!(i(-1, I32, U64, true), 0);
    assert_eq!(i(-1, I32, U64, false), i128::from(u64::MAX));
    assert_eq!(i(-1, I32, Ty::Index, false), -1);
}

/// Nearest-even agrees with the host and with `half` on every f16 and on many f32 patterns.
#[test]
fn nearest_even_agrees_with_half_and_the_host() {
    let mut x = 0x1234_5678u32;
    for i in 0..200_000u32 {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let bits = if i % 2 == 0 { x } else { (x & 0x8fff_ffff) | 0x3000_0000 };
        let v = f32::from_bits(bits);
        if v.is_nan() {
            continue;
        }
        for (to, d) in [(F16, DType::F16), (BF16, DType::BF16)] {
            assert_eq!(convert(F32, to, f(v), RoundMode::Rint, false), from_f32(d, v), "{v:e} {d}");
        }
        let n = i64::from(x).wrapping_mul(i64::from(x.rotate_left(7))).wrapping_sub(0x7fff_ffff_ffff);
        assert_eq!(convert(I64, F32, n as u64, RoundMode::Rint, false), f(n as f32), "{n}");
        assert_eq!(convert(U64, F32, n as u64, RoundMode::Rint, false), f(n as u64 as f32), "{n}");
    }
    for bits in 0..=u64::from(u16::MAX) {
        let v = to_f32(DType::F16, bits);
        if !v.is_nan() {
            assert_eq!(convert(F16, F32, bits, RoundMode::Odd, false), f(v));
        }
    }
}

#[test]
fn directed_rounding_to_f16() {
    let c = |x: f32, mode| convert(F32, F16, f(x), mode, false);
    let one = from_f32(DType::F16, 1.0);
    let above = 1.0 + 2f32.powi(-14);
    assert_eq!(c(above, RoundMode::Ceil), one + 1);
    assert_eq!(c(above, RoundMode::Floor), one);
    assert_eq!(c(above, RoundMode::Trunc), one);
    assert_eq!(c(above, RoundMode::Odd), one + 1);
    assert_eq!(c(-above, RoundMode::Floor), (one + 1) | 0x8000);
    assert_eq!(c(1.0 + 2f32.powi(-11), RoundMode::Round), one + 1);
    assert_eq!(c(1.0 + 2f32.powi(-11), RoundMode::Rint), one);
    assert_eq!(c(1e6, RoundMode::Floor), 0x7bff);
    assert_eq!(c(1e6, RoundMode::Ceil), 0x7c00);
    assert_eq!(c(-1e6, RoundMode::Floor), 0xfc00);
    assert_eq!(c(1e6, RoundMode::Odd), 0x7bff);
    // Below the smallest subnormal.
    assert_eq!(c(1e-10, RoundMode::Ceil), 1);
    assert_eq!(c(1e-10, RoundMode::Rint), 0);
    assert_eq!(c(-1e-10, RoundMode::Rint), 0x8000);
}

#[test]
fn bool_conversions() {
    assert_eq!(convert(F32, Ty::BOOL, f(-0.0), RoundMode::Rint, false), 0);
    assert_eq!(convert(F32, Ty::BOOL, f(0.5), RoundMode::Rint, false), 1);
    assert_eq!(convert(Ty::BOOL, F32, 1, RoundMode::Rint, false), f(1.0));
    assert_eq!(convert(I32, Ty::BOOL, 256, RoundMode::Rint, false), 1);
}

#[test]
fn from_floats_of_8_bits_to_all_floats_exactly() {
    for from in [DType::F8E4M3, DType::F8E5M2] {
        for bits in 0..=0xff {
            let x = ptoc_tensor::scalar::bits_to_f64(from, bits);
            for to in [DType::F16, DType::BF16, DType::F32] {
                for &mode in RoundMode::ALL {
                    let y = f64::from(to_f32(to, convert(Ty::D(from), Ty::D(to), bits, mode, false)));
                    assert!(y == x || y.is_nan() && x.is_nan(), "{from} {bits:#x} to {to}: {y}");
                    assert_eq!(y.is_sign_negative(), x.is_sign_negative(), "{from} {bits:#x} to {to}");
                }
            }
        }
    }
}

/// Every f16 and bf16, and each neighbourhood of an 8-bit float in f32, to the 8-bit floats, against a search among all
/// their values: in every mode, saturating and not.
#[test]
fn to_floats_of_8_bits_in_every_mode() {
    for to in [DType::F8E4M3, DType::F8E5M2] {
        let values: Vec<f64> = (0..0x80).map(|b| ptoc_tensor::scalar::bits_to_f64(to, b)).collect();
        let finite = values.iter().take_while(|v| v.is_finite()).count();
        let near = values[..finite].windows(2).flat_map(|w| {
            let middle = ((w[0] + w[1]) / 2.0) as f32;
            [w[0] as f32, middle.next_down(), middle, middle.next_up(), (w[1] as f32).next_down()]
        });
        let most = values[finite - 1] as f32;
        let beyond =
            [most.next_up(), most * 1.0625, most * 1.125, most * 1.25, 1e30, f32::MAX, f32::MIN_POSITIVE, 1e-45];
        let exact: Vec<u32> = near.chain(beyond).flat_map(|x| [x, -x]).map(f32::to_bits).collect();
        let all = (0..=0xffff).map(|b| (DType::F16, b)).chain((0..=0xffff).map(|b| (DType::BF16, b)));
        for (from, bits) in all.chain(exact.into_iter().map(|b| (DType::F32, u64::from(b)))) {
            let x = f64::from(to_f32(from, bits));
            for &mode in RoundMode::ALL {
                for saturate in [false, true] {
                    let got = convert(Ty::D(from), Ty::D(to), bits, mode, saturate);
                    let want = searched(&values[..finite], x, mode, saturate);
                    let (got, sign) = (ptoc_tensor::scalar::bits_to_f64(to, got), got >> 7 == 1);
                    // The overflow of a format without infinities is its NaN.
                    let same =
                        got == want || got.is_nan() && (want.is_nan() || want.is_infinite() && to == DType::F8E4M3);
                    assert!(same, "{x:e} ({from}) to {to}, {mode}, {saturate}: {got}, not {want}");
                    assert!(x.is_nan() || sign == x.is_sign_negative(), "{x:e} to {to} lost its sign");
                }
            }
        }
    }
}

/// The same to f16 and bf16: every f16 and bf16, the neighbourhoods of their values and of the middles in f32, and what
/// is too large for them, in every mode, saturating and not.
#[test]
fn to_floats_of_16_bits_in_every_mode() {
    for to in [DType::F16, DType::BF16] {
        let values: Vec<f64> = (0..0x8000).map(|b| f64::from(to_f32(to, b))).collect();
        let finite = values.iter().take_while(|v| v.is_finite()).count();
        let near = values[..finite].windows(2).flat_map(|w| {
            let middle = ((w[0] + w[1]) / 2.0) as f32;
            [middle.next_down(), middle, middle.next_up(), (w[1] as f32).next_down()]
        });
        let most = values[finite - 1] as f32;
        let beyond = [most.next_up(), 65519.0, 65520.0, 65536.0, 1e30, f32::MAX, f32::INFINITY, f32::NAN, 1e-45];
        let exact: Vec<u32> = near.chain(beyond).flat_map(|x| [x, -x]).map(f32::to_bits).collect();
        let all = (0..=0xffff).map(|b| (DType::F16, b)).chain((0..=0xffff).map(|b| (DType::BF16, b)));
        for (from, bits) in all.chain(exact.into_iter().map(|b| (DType::F32, u64::from(b)))).filter(|p| p.0 != to) {
            let x = f64::from(to_f32(from, bits));
            for &mode in RoundMode::ALL {
                for saturate in [false, true] {
                    let got = convert(Ty::D(from), Ty::D(to), bits, mode, saturate);
                    let want = searched(&values[..finite], x, mode, saturate);
                    let (got, sign) = (f64::from(to_f32(to, got)), got >> 15 == 1);
                    let same = got == want || got.is_nan() && want.is_nan();
                    assert!(same, "{x:e} ({from}) to {to}, {mode}, {saturate}: {got}, not {want}");
                    assert!(x.is_nan() || sign == x.is_sign_negative(), "{x:e} to {to} lost its sign");
                }
            }
        }
    }
    let most = |to, bits: u32| convert(F32, Ty::D(to), u64::from(bits), RoundMode::Rint, true);
    assert_eq!(to_f32(DType::F16, most(DType::F16, 1e9f32.to_bits())), 65504.0);
    assert_eq!(most(DType::BF16, f32::NEG_INFINITY.to_bits()), 0xff7f);
}

/// `x` rounded to the magnitudes, in f64.
fn searched(magnitudes: &[f64], x: f64, mode: RoundMode, saturate: bool) -> f64 {
    if x.is_nan() {
        return x;
    }
    let (size, most) = (x.abs(), magnitudes[magnitudes.len() - 1]);
    // One more value, as if the exponents went on.
    let next = 2.0 * most - magnitudes[magnitudes.len() - 2];
    let low = magnitudes.partition_point(|m| *m <= size) - 1;
    let (a, b) = (magnitudes[low], magnitudes.get(low + 1).copied().unwrap_or(next));
    let outward = match mode {
        RoundMode::Floor => x < 0.0,
        RoundMode::Ceil => x > 0.0,
        RoundMode::Trunc => false,
        RoundMode::Odd => low % 2 == 0,
        RoundMode::Rint => size - a > b - size || (size - a == b - size && low % 2 == 1),
        RoundMode::Round => size - a >= b - size,
    };
    let magnitude = match (size == a, outward) {
        (true, _) | (false, false) => a,
        (false, true) => b,
    };
    let to_infinity = match mode {
        RoundMode::Rint | RoundMode::Round => true,
        RoundMode::Floor => x < 0.0,
        RoundMode::Ceil => x > 0.0,
        RoundMode::Trunc | RoundMode::Odd => false,
    };
    let over = magnitude > most || size >= next;
    let result = match (over, saturate) {
        _ if size.is_infinite() && !saturate => f64::INFINITY,
        (true, false) if to_infinity => f64::INFINITY,
        (true, _) => most,
        _ => magnitude,
    };
    result.copysign(x)
}
