use super::*;

fn of(op: UnOp) -> &'static Program {
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

#[test]
fn errors_stay_within_the_published_bounds() {
    for (op, p) in programs() {
        let (error, at) = worst(*op, 12_289);
        println!("{op}: {error:.3} ulp at {at:e} ({} operations)", p.ops.len());
        assert!(error <= p.max_ulp, "{op}: {error} ulp at {at:e}");
        assert!(p.max_ulp <= 4.0);
    }
}
