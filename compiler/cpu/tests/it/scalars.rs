//! Every operation on every pair of awkward values, as scalars and in lanes of every tail.

use crate::make::{Build, LANES_MAY_MEET, agree, strided, tensor};
use ptoc_ir::loops::{BinOp, Cast, CmpOp, LTy, Lanes, MemTy, Op, Reg, UnOp};

const FLOATS: &[u32] = &[
    0x0000_0000,
    0x8000_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x3f00_0000,
    0x3fc0_0000,
    0x4020_0000,
    0xc020_0000,
    0x0000_0001,
    0x8000_0001,
    0x007f_ffff,
    0x0080_0000,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x4f00_0000,
    0xcf00_0000,
    0x4f80_0000,
    0x5f00_0000,
    0xdf00_0000,
    0x5f80_0000,
    0x4eff_ffff,
    0x4b00_0001,
    0x4b7f_ffff,
    0x477f_efff,
    0x477f_f000,
    0x3880_0000,
    0x387f_ffff,
    0x3300_0000,
    0x3300_0001,
    0x3f80_1000,
    0x3f80_3000,
    0x3f80_8000,
    0x3f81_8000,
];

const INTS: &[u32] = &[
    0,
    1,
    2,
    3,
    7,
    31,
    32,
    33,
    63,
    64,
    100,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_ffff,
    0xffff_fffe,
    0xffff_fff9,
];

const LONGS: &[u64] = &[
    0,
    1,
    2,
    7,
    31,
    63,
    64,
    65,
    1 << 24,
    (1 << 24) + 1,
    (1 << 40) + (1 << 15),
    i64::MAX as u64,
    i64::MIN as u64,
    u64::MAX,
    u64::MAX - 1,
    (i64::MIN + 1) as u64,
    0xffff_ffff,
    0x8000_0000,
    0x1_0000_0000,
    0xffff_ff80_0000_0001,
];

fn values(ty: LTy) -> Vec<u64> {
    match ty {
        LTy::F32 => FLOATS.iter().map(|&x| u64::from(x)).collect(),
        LTy::I32 => INTS.iter().map(|&x| u64::from(x)).collect(),
        LTy::I64 => LONGS.to_vec(),
        LTy::Bool => vec![0, 1],
    }
}

fn memory(ty: LTy) -> MemTy {
    match ty {
        LTy::F32 => MemTy::F32,
        LTy::I32 => MemTy::I32,
        LTy::I64 => MemTy::I64,
        LTy::Bool => MemTy::Bool,
    }
}

fn bytes(ty: LTy, values: &[u64]) -> Vec<u8> {
    let size = memory(ty).size() as usize;
    values.iter().flat_map(|v| v.to_le_bytes()[..size].to_vec()).collect()
}

/// Replaces NaN by the standard one: its payload is not specified.
pub fn canonical(b: &mut Build, value: Reg) -> Reg {
    if b.regs[value].ty != LTy::F32 {
        return value;
    }
    let nan = b.constant(LTy::F32, 0x7fc0_0000);
    let cond = b.def(LTy::Bool, |dst| Op::Compare { dst, op: CmpOp::Ne, a: value, b: value });
    b.def(LTy::F32, |dst| Op::Select { dst, cond, a: nan, b: value })
}

/// `op` over all pairs of values: lane by lane with both operands loaded, and with the second a constant.
fn all_pairs(a_ty: LTy, b_ty: LTy, to: LTy, op: &dyn Fn(Reg, Reg, Reg) -> Op) {
    pairs((a_ty, &values(a_ty)), (b_ty, &values(b_ty)), to, op);
}

fn pairs((a_ty, xs): (LTy, &[u64]), (b_ty, ys): (LTy, &[u64]), to: LTy, op: &dyn Fn(Reg, Reg, Reg) -> Op) {
    let pairs: Vec<(u64, u64)> = xs.iter().flat_map(|&x| ys.iter().map(move |&y| (x, y))).collect();
    let a: Vec<u64> = pairs.iter().map(|p| p.0).collect();
    let b: Vec<u64> = pairs.iter().map(|p| p.1).collect();
    let out = vec![0; pairs.len() * memory(to).size() as usize];
    let (a_mem, b_mem, to_mem) = (memory(a_ty), memory(b_ty), memory(to));
    let mut f = Build::new(0);
    let zero = f.i64(0);
    let count = f.i64(pairs.len() as i64);
    let lane = f.reg(LTy::I64);
    f.open.push(vec![]);
    let x = f.load(a_mem, strided(tensor(0, zero), i64::from(a_mem.size())));
    let y = f.load(b_mem, strided(tensor(1, zero), i64::from(b_mem.size())));
    let result = f.def(to, |dst| op(dst, x, y));
    let result = canonical(&mut f, result);
    f.store(to_mem, strided(tensor(2, zero), i64::from(to_mem.size())), result);
    let body = f.open.pop().unwrap();
    f.push(Op::Lanes(Box::new(Lanes { lane, count, body })));
    agree(&f.module(3), &[], &[bytes(a_ty, &a), bytes(b_ty, &b), out]).unwrap_or_else(|e| panic!("{e}"));

    // One constant second operand a loop, one module for all.
    let mut f = Build::new(0);
    let zero = f.i64(0);
    let count = f.i64(xs.len() as i64);
    let size = i64::from(to_mem.size());
    for (n, &y) in ys.iter().enumerate() {
        let y = f.constant(b_ty, y);
        let at = f.i64(n as i64 * xs.len() as i64 * size);
        let lane = f.reg(LTy::I64);
        f.open.push(vec![]);
        let x = f.load(a_mem, strided(tensor(0, zero), i64::from(a_mem.size())));
        let result = f.def(to, |dst| op(dst, x, y));
        let result = canonical(&mut f, result);
        f.store(to_mem, strided(tensor(1, at), size), result);
        let body = f.open.pop().unwrap();
        f.push(Op::Lanes(Box::new(Lanes { lane, count, body })));
    }
    let out = vec![0; xs.len() * ys.len() * size as usize];
    agree(&f.module(2), &[], &[bytes(a_ty, xs), out]).unwrap_or_else(|e| panic!("{e}"));
}

/// Powers of two that make results of every kind: rounded to subnormals, zero, infinite.
#[test]
fn scaled_by_powers_of_two() {
    let float = |x: f32| u64::from(x.to_bits());
    let numbers: Vec<u64> = [0.5, 0.70710677, 1.0, -1.0, 1.0000001, -1.5, 1.9999999, 3.25, 4.0].map(float).to_vec();
    let powers: Vec<u64> = (-200..=200).map(|n| float(n as f32)).collect();
    fn f32s(v: &[u64]) -> (LTy, &[u64]) {
        (LTy::F32, v)
    }
    let scale = |dst, a, b| Op::Binary { dst, op: BinOp::Scale, a, b };
    pairs(f32s(&numbers), f32s(&powers), LTy::F32, &scale);
    pairs(f32s(&[float(f32::NAN)]), f32s(&[float(f32::NAN)]), LTy::F32, &scale);
}

/// Powers as functions have them: numbers rounded to integers by a constant whose last digits are left in the sum.
/// Those of 254 are read from the sum itself (AVX2).
#[test]
fn scaled_by_what_was_rounded() {
    let factors = [0.5f32, 0.70710677, -1.0, 1.25, 1.9999999, 4.0, f32::NAN];
    let powers: Vec<f32> = (-200..=200).flat_map(|n| [n as f32, n as f32 + 0.25, n as f32 - 0.4]).collect();
    let pairs: Vec<(f32, f32)> = factors
        .iter()
        .flat_map(|&x| powers.iter().map(move |&y| (x, if x.is_nan() { x } else { y.clamp(-200.0, 200.0) })))
        .collect();
    let column = |of: fn(&(f32, f32)) -> f32| -> Vec<u8> { pairs.iter().flat_map(|p| of(p).to_le_bytes()).collect() };
    for more in [0.0f32, 253.0, 254.0, 255.0, 254.0 + 1024.0, 254.0 - 1024.0] {
        let mut f = Build::new(0);
        let zero = f.i64(0);
        let count = f.i64(pairs.len() as i64);
        let lane = f.reg(LTy::I64);
        f.open.push(vec![]);
        let x = f.load(MemTy::F32, strided(tensor(0, zero), 4));
        let y = f.load(MemTy::F32, strided(tensor(1, zero), 4));
        let rounds = f.constant(LTy::F32, u64::from((12_582_912.0 + more).to_bits()));
        let sum = f.def(LTy::F32, |dst| Op::Binary { dst, op: BinOp::Add, a: y, b: rounds });
        let n = f.def(LTy::F32, |dst| Op::Binary { dst, op: BinOp::Sub, a: sum, b: rounds });
        let result = f.def(LTy::F32, |dst| Op::Binary { dst, op: BinOp::Scale, a: x, b: n });
        let result = canonical(&mut f, result);
        f.store(MemTy::F32, strided(tensor(2, zero), 4), result);
        let body = f.open.pop().unwrap();
        f.push(Op::Lanes(Box::new(Lanes { lane, count, body })));
        let data = [column(|p| p.0), column(|p| p.1), vec![0; 4 * pairs.len()]];
        agree(&f.module(3), &[], &data).unwrap_or_else(|e| panic!("{more}: {e}"));
    }
}

#[test]
fn binary() {
    for &op in BinOp::ALL {
        for ty in [LTy::I32, LTy::I64, LTy::F32, LTy::Bool] {
            let ok = match ty {
                LTy::F32 => {
                    matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Max | BinOp::Min)
                }
                // Its operands are not just any.
                _ if op == BinOp::Scale => false,
                LTy::Bool => matches!(op, BinOp::And | BinOp::Or | BinOp::Xor),
                _ => true,
            };
            if ok {
                println!("{op:?} {ty}");
                all_pairs(ty, ty, ty, &|dst, a, b| Op::Binary { dst, op, a, b });
            }
        }
    }
}

#[test]
fn compare() {
    for &op in CmpOp::ALL {
        for ty in [LTy::I32, LTy::I64, LTy::F32, LTy::Bool] {
            let unsigned = matches!(op, CmpOp::LtU | CmpOp::LeU | CmpOp::GtU | CmpOp::GeU);
            let ok = match ty {
                LTy::F32 => !unsigned,
                LTy::Bool => matches!(op, CmpOp::Eq | CmpOp::Ne),
                _ => true,
            };
            if ok {
                println!("{op:?} {ty}");
                all_pairs(ty, ty, LTy::Bool, &|dst, a, b| Op::Compare { dst, op, a, b });
            }
        }
    }
}

#[test]
fn unary_and_casts() {
    for &op in UnOp::ALL {
        for ty in [LTy::I32, LTy::I64, LTy::F32, LTy::Bool] {
            let ok = match op {
                UnOp::Neg | UnOp::Abs => ty != LTy::Bool,
                UnOp::Not => ty != LTy::F32,
                _ => ty == LTy::F32,
            };
            if ok {
                println!("{op:?} {ty}");
                all_pairs(ty, LTy::Bool, ty, &|dst, a, _| Op::Unary { dst, op, a });
            }
        }
    }
    let casts = [
        (Cast::Sext, LTy::I32, LTy::I64),
        (Cast::Zext, LTy::I32, LTy::I64),
        (Cast::Wrap, LTy::I64, LTy::I32),
        (Cast::IToF, LTy::I32, LTy::F32),
        (Cast::IToF, LTy::I64, LTy::F32),
        (Cast::UToF, LTy::I32, LTy::F32),
        (Cast::UToF, LTy::I64, LTy::F32),
        (Cast::FToI32, LTy::F32, LTy::I32),
        (Cast::FToU32, LTy::F32, LTy::I32),
        (Cast::FToI64, LTy::F32, LTy::I64),
        (Cast::FToU64, LTy::F32, LTy::I64),
        (Cast::Bits, LTy::F32, LTy::I32),
        (Cast::Bits, LTy::I32, LTy::F32),
        (Cast::BToI, LTy::Bool, LTy::I32),
        (Cast::IToB, LTy::I32, LTy::Bool),
    ];
    for (op, from, to) in casts {
        println!("{op:?} {from} {to}");
        all_pairs(from, LTy::Bool, to, &|dst, a, _| Op::Cast { dst, op, a });
    }
    all_pairs(LTy::F32, LTy::F32, LTy::F32, &|dst, a, b| Op::Fma { dst, a, b, c: a });
}

/// One load of `from` and one store of `to` over the whole of a buffer.
fn convert(from: MemTy, to: MemTy, input: Vec<u8>) {
    let count = input.len() as i64 / i64::from(from.size());
    let mut f = Build::new(0);
    let zero = f.i64(0);
    let n = f.i64(count);
    let lane = f.reg(LTy::I64);
    f.open.push(vec![]);
    let value = f.load(from, strided(tensor(0, zero), i64::from(from.size())));
    f.store(to, strided(tensor(1, zero), i64::from(to.size())), value);
    let body = f.open.pop().unwrap();
    f.push(Op::Lanes(Box::new(Lanes { lane, count: n, body })));
    let out = vec![0; count as usize * to.size() as usize];
    agree(&f.module(2), &[], &[input, out]).unwrap_or_else(|e| panic!("{from:?} to {to:?}: {e}"));
}

#[test]
fn every_half_value_and_its_neighbourhood() {
    let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for half in [MemTy::F16, MemTy::BF16] {
        // NaN payloads too: a conversion keeps what fits and makes it quiet.
        convert(half, MemTy::F32, all.clone());
        convert(half, half, all.clone());
    }
    // Around each boundary between two f16 or bf16 values, and each NaN pattern of the high half.
    let near = |shift: u32| -> Vec<u8> {
        (0..=u16::MAX)
            .flat_map(|high| {
                let base = u32::from(high) << 16;
                let half = 1u32 << (shift - 1);
                [0, 1, half - 1, half, half + 1, half * 2 - 1].map(|low| (base | (low & 0xffff)).to_le_bytes())
            })
            .flatten()
            .collect()
    };
    convert(MemTy::F32, MemTy::BF16, near(16));
    convert(MemTy::F32, MemTy::F16, near(13));
    convert(MemTy::F32, MemTy::F16, near(16));
    // Every f16 and the middle between it and the next, one f32 ulp around.
    let middles: Vec<u8> = (0..=u16::MAX)
        .flat_map(|bits| {
            let here = half::f16::from_bits(bits).to_f32();
            let next = half::f16::from_bits(bits.wrapping_add(1)).to_f32();
            let middle = ((f64::from(here) + f64::from(next)) / 2.0) as f32;
            [middle.to_bits().wrapping_sub(1), middle.to_bits(), middle.to_bits().wrapping_add(1)].map(u32::to_le_bytes)
        })
        .flatten()
        .collect();
    convert(MemTy::F32, MemTy::F16, middles.clone());
    let mut f = Build::new(0);
    let zero = f.i64(0);
    let n = f.i64(middles.len() as i64 / 4);
    let lane = f.reg(LTy::I64);
    f.open.push(vec![]);
    let value = f.load(MemTy::F32, strided(tensor(0, zero), 4));
    for (op, out) in [(UnOp::RoundF16, 1), (UnOp::RoundBf16, 2)] {
        let rounded = f.def(LTy::F32, |dst| Op::Unary { dst, op, a: value });
        f.store(MemTy::F32, strided(tensor(out, zero), 4), rounded);
    }
    let body = f.open.pop().unwrap();
    f.push(Op::Lanes(Box::new(Lanes { lane, count: n, body })));
    let out = vec![0; middles.len()];
    agree(&f.module(3), &[], &[middles, out.clone(), out]).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn memory_types_with_every_tail_and_stride() {
    let input: Vec<u8> = (0..1024u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for ty in MemTy::ALL {
        let size = i64::from(ty.size());
        for count in (0..14).chain([31, 32, 33]) {
            let mut f = Build::new(1);
            let zero = f.i64(0);
            let known = f.i64(count);
            let unknown = f.params[0];
            let mut out = 0;
            let meet = LANES_MAY_MEET.then_some((unknown, 0));
            for (count_reg, stride) in
                [(known, size), (unknown, size), (known, 3 * size), (unknown, 2 * size)].into_iter().chain(meet)
            {
                let (at, back) = (f.i64(out), f.i64(out + count.max(1) * size));
                let lane = f.reg(LTy::I64);
                f.open.push(vec![]);
                let value = f.load(ty, strided(tensor(0, zero), stride));
                f.store(ty, strided(tensor(1, at), size), value);
                f.store(ty, strided(tensor(1, back), stride), value);
                let body = f.open.pop().unwrap();
                f.push(Op::Lanes(Box::new(Lanes { lane, count: count_reg, body })));
                out += count.max(1) * size + count.max(1) * stride.max(size);
            }
            // Bools in memory are 0 or 1.
            let input = if ty == MemTy::Bool { input.iter().map(|b| b & 1).collect() } else { input.clone() };
            // NaNs of half types become quiet both ways, the same on both sides.
            agree(&f.module(2), &[count], &[input, vec![0; out as usize]])
                .unwrap_or_else(|e| panic!("{ty:?} count {count}: {e}"));
        }
    }
}
