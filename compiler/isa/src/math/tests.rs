use super::*;
use ptoc_tensor::{DType, scalar};

fn of(op: UnOp) -> &'static MathProgram {
    program(op).expect("has a program")
}

/// The function in f64, accurate to far better than f32.
fn reference(op: UnOp, x: f64) -> f64 {
    match op {
        UnOp::Exp => x.exp(),
        UnOp::Log => x.ln(),
        UnOp::Tanh => x.tanh(),
        UnOp::Erf => libm::erf(x),
        UnOp::Sin => x.sin(),
        UnOp::Cos => x.cos(),
        _ => unreachable!("no program"),
    }
}

/// Distance of `got` from the real number `want`, in units in the last place of an f32 of that size.
fn ulps(got: f32, want: f64) -> f64 {
    if got.is_nan() || want.is_nan() {
        return if got.is_nan() && want.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let rounded = want as f32;
    if got == rounded {
        return if rounded.is_infinite() { 0.0 } else { (f64::from(got) - want).abs() / ulp_of(want) };
    }
    if got.is_infinite() || rounded.is_infinite() {
        // The value beyond the largest finite one, as if the exponent went on.
        let far = |x: f32| if x.is_infinite() { 2f64.powi(128).copysign(f64::from(x)) } else { f64::from(x) };
        return (far(got) - far(rounded)).abs() / 2f64.powi(104);
    }
    (f64::from(got) - want).abs() / ulp_of(want)
}

fn ulp_of(x: f64) -> f64 {
    let exponent = if x == 0.0 { -126 } else { x.abs().log2().floor() as i32 };
    2f64.powi(exponent.max(-126) - 23)
}

/// The worst error over every `step`-th bit pattern in the domain, and where it is.
fn worst(op: UnOp, step: usize) -> (f64, f32) {
    let p = of(op);
    let mut worst = (0.0, 0.0);
    for bits in (0..=u32::MAX).step_by(step) {
        let x = f32::from_bits(bits);
        if x.abs() > p.domain {
            continue;
        }
        let e = ulps(p.eval(x), reference(op, f64::from(x)));
        if e > worst.0 {
            worst = (e, x);
        }
    }
    worst
}

/// From one f32 that is tried to the next. A budget of 12,289 tries all of them: use a release build for that.
fn step() -> usize {
    (4 * 12_289 / ptoc_tests_budget::cases::<usize>(1, 4)).max(1)
}

#[test]
fn errors_stay_within_the_published_bounds() {
    let step = step();
    for (op, p) in programs() {
        let (error, at) = worst(*op, step);
        println!("{op}: {error:.3} ulp at {at:e} ({} operations)", p.ops.len());
        assert!(error <= p.max_ulp, "{op}: {error} ulp at {at:e}");
        assert!(p.max_ulp <= 4.0);
    }
}

/// Neighbours of the numbers at which the programs change what they do: powers of two and what lies half way in a
/// logarithm, multiples of half a step of the exponent's reduction, the ends of what is normal, and small whole
/// numbers.
#[test]
fn errors_stay_within_the_published_bounds_next_to_corners() {
    let powers = (-149..128).map(|k| 2f64.powi(k)).flat_map(|x| [x, x * std::f64::consts::SQRT_2, x * 1.5]);
    let steps = (-300..300).map(|k| f64::from(k) * std::f64::consts::LN_2 / 2.0);
    let whole = (-40..40).map(|k| f64::from(k) / 4.0);
    let corners: Vec<f32> = powers.flat_map(|x| [x, -x]).chain(steps).chain(whole).map(|x| x as f32).collect();
    for (op, p) in programs() {
        let mut worst = (0.0, 0.0);
        for corner in &corners {
            for away in -24..=24i32 {
                let x = f32::from_bits(corner.to_bits().wrapping_add_signed(away));
                if x.is_nan() || x.abs() > p.domain {
                    continue;
                }
                let error = ulps(p.eval(x), reference(*op, f64::from(x)));
                if error > worst.0 {
                    worst = (error, x);
                }
            }
        }
        println!("{op}: {:.3} ulp at {:e}", worst.0, worst.1);
        assert!(worst.0 <= p.max_ulp, "{op}: {worst:?}");
    }
}

#[test]
fn sin_and_cos_keep_their_bounds_near_multiples_of_a_quarter_turn() {
    let last = (f64::from(of(UnOp::Sin).domain) / std::f64::consts::FRAC_PI_2) as u32;
    for n in (1..last).step_by(3) {
        let near = (f64::from(n) * std::f64::consts::FRAC_PI_2) as f32;
        for x in [near.next_down(), near, near.next_up()] {
            for op in [UnOp::Sin, UnOp::Cos] {
                let error = ulps(of(op).eval(x), reference(op, f64::from(x)));
                assert!(error <= of(op).max_ulp, "{op}({x:e}): {error} ulp");
            }
        }
    }
}

#[test]
fn special_values() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let cases: &[(UnOp, f32, f32)] = &[
        (UnOp::Exp, 0.0, 1.0),
        (UnOp::Exp, -0.0, 1.0),
        (UnOp::Exp, inf, inf),
        (UnOp::Exp, -inf, 0.0),
        (UnOp::Exp, nan, nan),
        (UnOp::Exp, 88.722_84, inf),
        (UnOp::Exp, 1e30, inf),
        (UnOp::Exp, -1e30, 0.0),
        (UnOp::Exp, -103.97, f32::from_bits(1)),
        (UnOp::Exp, -103.98, 0.0),
        (UnOp::Exp, 1e-45, 1.0),
        (UnOp::Log, 1.0, 0.0),
        (UnOp::Log, 0.0, -inf),
        (UnOp::Log, -0.0, -inf),
        (UnOp::Log, inf, inf),
        (UnOp::Log, -inf, nan),
        (UnOp::Log, -1.0, nan),
        (UnOp::Log, -1e-45, nan),
        (UnOp::Log, nan, nan),
        (UnOp::Log, f32::from_bits(1), -103.278_93),
        (UnOp::Tanh, 0.0, 0.0),
        (UnOp::Tanh, -0.0, -0.0),
        (UnOp::Tanh, inf, 1.0),
        (UnOp::Tanh, -inf, -1.0),
        (UnOp::Tanh, nan, nan),
        (UnOp::Tanh, 1e-45, 1e-45),
        (UnOp::Tanh, 20.0, 1.0),
        (UnOp::Erf, 0.0, 0.0),
        (UnOp::Erf, -0.0, -0.0),
        (UnOp::Erf, inf, 1.0),
        (UnOp::Erf, -inf, -1.0),
        (UnOp::Erf, nan, nan),
        (UnOp::Erf, -5.0, -1.0),
        (UnOp::Sin, 0.0, 0.0),
        (UnOp::Sin, -0.0, -0.0),
        (UnOp::Sin, inf, nan),
        (UnOp::Sin, -inf, nan),
        (UnOp::Sin, nan, nan),
        (UnOp::Sin, 1e-45, 1e-45),
        (UnOp::Cos, 0.0, 1.0),
        (UnOp::Cos, -0.0, 1.0),
        (UnOp::Cos, inf, nan),
        (UnOp::Cos, nan, nan),
        (UnOp::Cos, 1e-45, 1.0),
    ];
    for &(op, x, want) in cases {
        let got = of(op).eval(x);
        let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
        assert!(same, "{op}({x:e}) is {got:e}, not {want:e}");
    }
}

#[test]
fn sin_and_cos_stay_bounded_beyond_their_domain() {
    for bits in (DOMAIN_END..0x7f80_0000).step_by(4_099) {
        let x = f32::from_bits(bits);
        for op in [UnOp::Sin, UnOp::Cos] {
            let y = of(op).eval(x);
            assert!(y.abs() <= 1.0, "{op}({x:e}) = {y:e}");
        }
    }
}

/// The bits of 2^20.
const DOMAIN_END: u32 = 0x4980_0000;

#[test]
fn odd_and_even_functions() {
    for bits in (0..0x7f80_0000).step_by(1_000_003) {
        let x = f32::from_bits(bits);
        for op in [UnOp::Tanh, UnOp::Erf, UnOp::Sin] {
            assert_eq!(of(op).eval(-x).to_bits(), (-of(op).eval(x)).to_bits(), "{op}({x:e})");
        }
        assert_eq!(of(UnOp::Cos).eval(-x).to_bits(), of(UnOp::Cos).eval(x).to_bits());
    }
}

#[test]
fn programs_are_well_formed() {
    assert!(program(UnOp::Sqrt).is_none() && program(UnOp::Rsqrt).is_none());
    for (op, p) in programs() {
        assert_eq!(p.name, op.name());
        assert_eq!(p.ops.len(), p.types.len());
        assert_eq!(p.ops[0], MathOp::Arg);
        assert_eq!(p.types.last(), Some(&Ty::F32));
        assert!(p.ops[1..].iter().all(|o| *o != MathOp::Arg));
        for (at, op) in p.ops.iter().enumerate() {
            assert!(op.operands().iter().all(|id| id.index() < at), "{}: operation {at}", p.name);
        }
        let used: std::collections::HashSet<usize> =
            p.ops.iter().flat_map(|o| o.operands()).map(|id| id.index()).collect();
        assert!((0..p.ops.len() - 1).all(|i| used.contains(&i)), "{}: dead operations", p.name);
    }
}

/// Pairs all over the place, near 1 with large exponents, and small whole exponents.
#[test]
fn powers_keep_their_bound() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let step = step() as u64;
    let mut worst = (0.0, 0.0, 0.0);
    for n in 0..3_000_000_000 / step {
        let (a, b) = (next(), next());
        let share = |bits: u64| (bits >> 40) as f32 / (1 << 24) as f32;
        let exponent = |x: f32| ((f64::from(share(b)) * 300.0 - 150.0) / f64::from(x).log2()) as f32;
        let (x, y) = match n % 4 {
            0 => (f32::from_bits(a as u32), f32::from_bits(b as u32)),
            1 => {
                let x = f32::from_bits(a as u32 & 0x7fff_ffff);
                (x, exponent(x))
            }
            2 => {
                let x = 1.0 + (share(a) - 0.5) * 0.01;
                (x, exponent(x))
            }
            _ => (share(a) * 8.0 - 4.0, (b % 40) as f32 - 20.0),
        };
        let error = ulps(pow().eval2(x, y), f64::from(x).powf(f64::from(y)));
        if error > worst.0 {
            worst = (error, x, y);
        }
    }
    println!("pow: {:.3} ulp at {:e}, {:e} ({} operations)", worst.0, worst.1, worst.2, pow().ops.len());
    assert!(worst.0 <= pow().max_ulp, "{worst:?}");
}

#[test]
fn special_powers() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let all = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        inf,
        -inf,
        nan,
        2.0,
        -2.0,
        0.5,
        -0.5,
        3.0,
        -3.0,
        1e-45,
        -1e-45,
        f32::MAX,
        f32::MIN,
        1.5,
        -1.5,
        16_777_217.0,
        33_554_432.0,
        8_388_609.0,
        1e-38,
    ];
    for x in all {
        for y in all {
            let (got, want) = (pow().eval2(x, y), f64::from(x).powf(f64::from(y)));
            assert!(ulps(got, want) <= 1.25, "{x:e} to the power {y:e} is {got:e}, not {want:e}");
            assert!(
                got.is_nan() || got.is_sign_negative() == want.is_sign_negative(),
                "{x:e} to the power {y:e}: {got:e}"
            );
        }
    }
}

/// Distance of `got`, a value of a 16-bit float, from the real number `want`, in units in the last place of that type.
fn narrow_ulps(dtype: DType, got: f64, want: f64) -> f64 {
    if got.is_nan() || want.is_nan() {
        return if got.is_nan() && want.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let (mantissa, least, top) = if dtype == DType::F16 { (10, -14, 16) } else { (7, -126, 128) };
    // Infinity and what is beyond it are the value after the largest, as if the exponent went on.
    let far = |x: f64| if x.abs() >= 2f64.powi(top) { 2f64.powi(top).copysign(x) } else { x };
    let (got, want) = (far(got), far(want));
    if got == want {
        return 0.0;
    }
    let exponent = if want == 0.0 { least } else { (want.abs().log2().floor() as i32).clamp(least, top - 1) };
    (got - want).abs() / 2f64.powi(exponent - mantissa)
}

/// An instruction on f16 or bf16 rounds the program's result once more: half a unit, and what the program is off.
#[test]
fn every_16_bit_float_stays_within_the_published_bound() {
    for (dtype, apart) in [(DType::F16, 13), (DType::BF16, 16)] {
        for (op, p) in programs() {
            let bound = 0.5 + p.max_ulp / f64::from(1 << apart);
            let (mut worst, mut count) = ((0.0, 0.0), 0);
            for bits in 0..=0xffff {
                let x = scalar::bits_to_f64(dtype, bits);
                if x.abs() > f64::from(p.domain) {
                    continue;
                }
                let result = scalar::bits_from_f64(dtype, f64::from(p.eval(x as f32)));
                let error = narrow_ulps(dtype, scalar::bits_to_f64(dtype, result), reference(*op, x));
                assert!(error <= bound, "{op}({x:e}) of {dtype}: {error} ulp, more than {bound}");
                if error > worst.0 {
                    worst = (error, x);
                }
                count += 1;
            }
            println!("{op} of {dtype}: {:.5} ulp at {:e}, of {count} values", worst.0, worst.1);
            // The bound is tight: a rounding costs almost half a unit somewhere.
            assert!(worst.0 > 0.49 && count > 30_000, "{op} of {dtype}: {worst:?} of {count}");
        }
    }
}

#[test]
fn powers_of_16_bit_floats_stay_within_the_published_bound() {
    for (dtype, apart) in [(DType::F16, 13), (DType::BF16, 16)] {
        let bound = 0.5 + pow().max_ulp / f64::from(1 << apart);
        let mut worst = (0.0, 0.0, 0.0);
        for a in (0..=0xffff).step_by(149) {
            for b in (0..=0xffff).step_by(151) {
                let (x, y) = (scalar::bits_to_f64(dtype, a), scalar::bits_to_f64(dtype, b));
                let result = scalar::bits_from_f64(dtype, f64::from(pow().eval2(x as f32, y as f32)));
                let error = narrow_ulps(dtype, scalar::bits_to_f64(dtype, result), x.powf(y));
                if error > worst.0 {
                    worst = (error, x, y);
                }
            }
        }
        println!("pow of {dtype}: {:.5} ulp at {:e}, {:e}", worst.0, worst.1, worst.2);
        assert!(worst.0 <= bound && worst.0 > 0.49, "{worst:?}, more than {bound}");
    }
}
