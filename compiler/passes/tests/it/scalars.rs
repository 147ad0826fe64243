//! Scalars, control flow and scalar access to memory.

use crate::harness::*;
use ptoc_ir::scalar::{binary_exists, unary_exists};
use ptoc_ir::tile::{CheckData, Op, TensorDir, Ty, Value};
use ptoc_isa::{AtomicOp, BinOp, CmpOp, RoundMode, UnOp};
use ptoc_tensor::DType;

fn types() -> Vec<Ty> {
    DType::ALL.into_iter().map(Ty::D).collect()
}

/// A kernel of two scalar arguments that stores what `f` makes of them, one tensor a result.
fn check(ty: Ty, a: u64, b: u64, f: &dyn Fn(&mut K, Value, Value) -> Vec<Value>) {
    let mut k = K::new("scalars");
    let span = k.span();
    let (x, y) = (k.b.scalar_param("x", ty, span), k.b.scalar_param("y", ty, span));
    let one = k.c(1);
    k.b.begin_body();
    let results = f(&mut k, x, y);
    let mut args = Args { scalars: vec![a, b], ..Args::default() };
    let zero = k.c(0);
    for (n, value) in results.into_iter().enumerate() {
        let dtype = match k.b.ty(value) {
            Ty::Index => DType::I64,
            Ty::D(d) => d,
        };
        let value = match k.b.ty(value) {
            Ty::Index => k.b.convert(value, Ty::D(DType::I64), RoundMode::Rint, false, span),
            _ => value,
        };
        let out = k.tensor(&format!("out{n}"), dtype, TensorDir::Out, &[one]);
        args.tensors.push(tensor(dtype, &[1], []));
        k.b.emit(Op::Store { tensor: out, offset: zero, value }, span);
    }
    agree(&k.finish(), a5(), &args);
}

fn interesting(ty: Ty) -> Vec<u64> {
    let d = match ty {
        Ty::Index => DType::I64,
        Ty::D(d) => d,
    };
    let mask = ptoc_ir::scalar::mask(ty);
    let mut out: Vec<u64> = noise(d, 9).take(12).collect();
    out.extend([0, 1, mask, mask >> 1, (mask >> 1) + 1].map(|b| if d == DType::Bool { b & 1 } else { b }));
    if d.is_float() {
        out.extend([6.0, -6.5, 0.25, 3.0, 1e-7].map(|x| ptoc_ir::scalar::from_f32(d, x)));
    }
    out
}

#[test]
fn arithmetic() {
    for ty in types() {
        let values = interesting(ty);
        for (n, &a) in values.iter().enumerate() {
            let b = values[(n * 7 + 3) % values.len()];
            check(ty, a, b, &|k, x, y| {
                let span = at(1);
                let mut out = Vec::new();
                for op in BinOp::ALL.iter().filter(|op| binary_exists(**op, ty)) {
                    // Twice, so that a result that is not narrowed shows.
                    let once = k.b.binary(*op, x, y, span);
                    out.push(once);
                    out.push(k.b.binary(*op, once, y, span));
                    let bits = if op == &BinOp::Shr { BinOp::Shr } else { BinOp::Max };
                    if binary_exists(bits, ty) {
                        out.push(k.b.binary(bits, once, x, span));
                    }
                }
                for op in UnOp::ALL.iter().filter(|op| unary_exists(**op, ty)) {
                    out.push(k.b.unary(*op, x, span));
                }
                for op in CmpOp::ALL {
                    let cond = k.b.compare(*op, x, y, span);
                    out.push(cond);
                    out.push(k.b.select(cond, x, y, span));
                }
                out
            });
        }
    }
}

#[test]
fn index_arithmetic() {
    let values: Vec<u64> =
        vec![0, 1, 2, u64::MAX, (-7i64) as u64, 7, 1000, i64::MIN as u64, i64::MAX as u64, (-64i64) as u64];
    for (n, &a) in values.iter().enumerate() {
        for m in 0..3 {
            let b = values[(n * 3 + m) % values.len()];
            check(Ty::Index, a, b, &|k, x, y| BinOp::ALL.iter().map(|op| k.b.binary(*op, x, y, at(1))).collect());
        }
    }
}

#[test]
fn conversions_and_bit_casts() {
    for from in types().into_iter().chain([Ty::Index]) {
        for (n, &a) in interesting(from).iter().enumerate() {
            check(from, a, 0, &|k, x, _| {
                let mut out = Vec::new();
                for to in types().into_iter().chain([Ty::Index]) {
                    let round = RoundMode::ALL[n % RoundMode::ALL.len()];
                    out.push(k.b.convert(x, to, round, n % 2 == 0, at(1)));
                    if ptoc_ir::scalar::width(to) == ptoc_ir::scalar::width(from) && from != Ty::BOOL && to != Ty::BOOL
                    {
                        out.push(k.b.bitcast(x, to, at(1)));
                    }
                }
                out
            });
        }
    }
}

/// A sum with `continue` and `break`, a `while`, a scope that is left, loads, stores and atomics.
#[test]
fn control_flow_and_memory() {
    let mut k = K::new("control");
    let span = k.span();
    let n = k.dim("N");
    let data = k.tensor("data", DType::I32, TensorDir::InOut, &[n]);
    let two = k.c(2);
    let out = k.tensor("out", DType::I64, TensorDir::Out, &[two]);
    let blocks = k.c(3);
    let block = k.b.grid_dim("g", blocks, span);
    k.b.begin_body();
    let sum = k.b.var("sum", Ty::Index);
    let (zero, one, three, seven) = (k.c(0), k.c(1), k.c(3), k.c(7));
    k.b.set(sum, zero, span);
    k.b.for_loop("i", (block, n), 1, span, |b, label, i| {
        let rest = b.binary(BinOp::Rem, i, three, span);
        let skip = b.compare(CmpOp::Eq, rest, block, span);
        b.if_else(skip, span, |b| b.emit(Op::Continue(label), span), |_| {});
        let x = b.load(data, i, span);
        let x = b.convert(x, Ty::Index, RoundMode::Rint, false, span);
        let s = b.get(sum, span);
        let s = b.add(s, x, span);
        b.set(sum, s, span);
        let limit = b.index_const(1 << 40);
        let stop = b.compare(CmpOp::Gt, s, limit, span);
        b.if_else(stop, span, |b| b.emit(Op::Break(label), span), |_| {});
    });
    k.b.while_loop(
        span,
        |b, _| {
            let s = b.get(sum, span);
            b.compare(CmpOp::Gt, s, seven, span)
        },
        |b, label| {
            let s = b.get(sum, span);
            let half = b.binary(BinOp::Div, s, two, span);
            b.set(sum, half, span);
            let odd = b.binary(BinOp::Rem, half, two, span);
            let stop = b.compare(CmpOp::Eq, odd, one, span);
            b.if_else(stop, span, |b| b.emit(Op::Break(label), span), |_| {});
        },
    );
    let last = k.b.compare(CmpOp::Eq, block, two, span);
    k.b.scope(span, |b, label| {
        b.if_else(last, span, |_| {}, |b| b.emit(Op::Leave(label), span));
        let s = b.get(sum, span);
        let s = b.convert(s, Ty::D(DType::I64), RoundMode::Rint, false, span);
        b.emit(Op::Store { tensor: out, offset: zero, value: s }, span);
        b.emit(Op::Store { tensor: out, offset: one, value: s }, span);
    });
    let kernel = k.finish();
    for n in [0u64, 1, 5, 40] {
        let args = Args {
            dims: vec![n as i64],
            scalars: vec![],
            tensors: vec![tensor(DType::I32, &[n], noise(DType::I32, n)), tensor(DType::I64, &[2], [])],
        };
        agree(&kernel, a5(), &args);
    }
}

#[test]
fn atomics() {
    for dtype in [DType::I32, DType::U32, DType::I64, DType::U64] {
        let mut k = K::new("atomics");
        let (span, one) = (k.span(), k.c(1));
        let x = k.b.scalar_param("x", Ty::D(dtype), span);
        let n = k.c(AtomicOp::ALL.len() as i64);
        let cells = k.tensor("cells", dtype, TensorDir::InOut, &[n]);
        let old = k.tensor("old", dtype, TensorDir::Out, &[n]);
        let _ = one;
        k.b.begin_body();
        for (i, op) in AtomicOp::ALL.iter().enumerate() {
            let offset = k.c(i as i64);
            let dst = k.b.new_value(Ty::D(dtype), None, span);
            let expected = (*op == AtomicOp::Cas).then_some(x);
            k.b.emit(Op::Atomic { dst, op: *op, tensor: cells, offset, expected, value: x }, span);
            k.b.emit(Op::Store { tensor: old, offset, value: dst }, span);
        }
        let kernel = k.finish();
        for seed in 0..4 {
            let count = AtomicOp::ALL.len() as u64;
            let args = Args {
                dims: vec![],
                scalars: vec![noise(dtype, seed).nth(2).unwrap()],
                tensors: vec![tensor(dtype, &[count], noise(dtype, seed + 50)), tensor(dtype, &[count], [])],
            };
            agree(&kernel, a5(), &args);
        }
    }
}

#[test]
fn checks_fail_in_the_launch_and_in_a_block() {
    let code = ptoc_diagnostics::codes::EMPTY_LOOP;
    for in_prologue in [true, false] {
        let mut k = K::new("checked");
        let (span, n) = (k.span(), k.dim("N"));
        if !in_prologue {
            k.b.begin_body();
        }
        let three = k.c(3);
        let cond = k.b.compare(CmpOp::Lt, n, three, span);
        let data = CheckData { code, message: "{0}".into(), span, help: None };
        k.b.check(cond, data, vec![n], span);
        k.b.begin_body();
        let kernel = k.finish();
        let prepared = compile(&kernel, a5());
        let run = |n| run_lowered(&prepared, &Args { dims: vec![n], ..Args::default() });
        assert_eq!(run(2), End::Done(vec![]));
        assert_eq!(run(3), End::Failed("PA-1041".into()));
    }
}
