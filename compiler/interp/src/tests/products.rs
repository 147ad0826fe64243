//! Matrix products along nests.

use super::nests::{affine, finish, tensor_side};
use super::*;
use ptoc_ir::scalar;
use ptoc_ir::tile::{Elem, Mma, NestAccess, Table};
use ptoc_isa::Oob;

/// `acc[m, n] += a[m, k] b[n, k]` on row-major tensors of these dtypes; `f` changes the statement.
fn product(
    (acc, operand): (DType, DType),
    (m, n, k): (i64, i64, i64),
    [c, a, b_]: [&[u64]; 3],
    f: impl FnOnce(&mut Builder, &mut Mma),
) -> Result<Vec<u64>, Trap> {
    let mut b = Builder::new("k", at(0), "a2a3");
    let ga = tensor(&mut b, "a", operand, TensorDir::In, &[m, k]);
    let gb = tensor(&mut b, "b", operand, TensorDir::In, &[n, k]);
    let gc = tensor(&mut b, "c", acc, TensorDir::InOut, &[m, n]);
    b.begin_body();
    let mut mma = Mma {
        m: vec![b.index_const(m)],
        n: vec![b.index_const(n)],
        k: vec![b.index_const(k)],
        acc: tensor_side(&mut b, gc, Elem::Whole(acc), 0, &[n, 1, 0]),
        a: tensor_side(&mut b, ga, Elem::Whole(operand), 0, &[k, 0, 1]),
        b: tensor_side(&mut b, gb, Elem::Whole(operand), 0, &[0, k, 1]),
    };
    f(&mut b, &mut mma);
    b.mma(mma, at(9));
    let (m, n, k) = (m as u64, n as u64, k as u64);
    let args = vec![arg(operand, &[m, k], a), arg(operand, &[n, k], b_), arg(acc, &[m, n], c)];
    run_with(&finish(b), args, &[]).map(|(_, bits)| bits)
}

fn floats(d: DType, xs: &[f32]) -> Vec<u64> {
    xs.iter().map(|&x| scalar::from_f32(d, x)).collect()
}

/// A 3 x 2 accumulator against the definition, in every combination of dtypes.
#[test]
fn every_combination() {
    let mut seed = 7u64;
    let mut random = |n: usize| -> Vec<i32> {
        let next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % 255) as i32 - 127
        };
        std::iter::repeat_with(next).take(n).collect()
    };
    let (m, n, k) = (3, 2, 5);
    let (c, a, b) = (random(m * n), random(m * k), random(n * k));
    let at = |xs: &[i32], row: usize, i: usize| xs[row * k + i];
    for (acc, operand) in [
        (DType::F32, DType::F16),
        (DType::F32, DType::BF16),
        (DType::F32, DType::F32),
        (DType::F16, DType::F16),
        (DType::I32, DType::I8),
    ] {
        let encode = |d: DType, xs: &[i32]| -> Vec<u64> {
            let one = |&x: &i32| {
                if d.is_float() { scalar::from_f32(d, x as f32 / 8.0) } else { scalar::from_int(Ty::D(d), x.into()) }
            };
            xs.iter().map(one).collect()
        };
        let [cs, a_s, bs] = [encode(acc, &c), encode(operand, &a), encode(operand, &b)];
        let got = product((acc, operand), (m as i64, n as i64, k as i64), [&cs, &a_s, &bs], |_, _| {}).expect("runs");
        for i in 0..m {
            for j in 0..n {
                let want = if acc.is_float() {
                    let start = scalar::to_f32(acc, cs[i * n + j]);
                    let sum = (0..k).fold(start, |s, kk| {
                        let (x, y) = (at(&a, i, kk) as f32 / 8.0, at(&b, j, kk) as f32 / 8.0);
                        scalar::to_f32(acc, scalar::from_f32(acc, x.mul_add(y, s)))
                    });
                    scalar::from_f32(acc, sum)
                } else {
                    let sum: i32 = (0..k).map(|kk| at(&a, i, kk) * at(&b, j, kk)).sum();
                    u64::from((c[i * n + j] + sum) as u32)
                };
                assert_eq!(got[i * n + j], want, "{acc} += {operand} at {i}, {j}");
            }
        }
    }
}

/// 2048 + 1 is 2048 in f16, so that a sum in f32 and rounded at the end would be 2050.
#[test]
fn half_accumulators_round_each_step() {
    let (c, ones) = (floats(DType::F16, &[2048.0]), floats(DType::F16, &[1.0, 1.0]));
    let got = product((DType::F16, DType::F16), (1, 1, 2), [&c, &ones, &ones], |_, _| {});
    assert_eq!(got, Ok(floats(DType::F16, &[2048.0])));
}

/// The order of additions is that of k, its first axis fastest, whatever the memory.
#[test]
fn nested_k_counts_colexicographically() {
    // As stored: 2^24, 1, -2^24, 1. Ascending in memory: ((2^24 + 1) - 2^24) + 1 = 1. With strides (2, 1): 2.
    let (c, ones) = (floats(DType::F32, &[0.0]), floats(DType::F32, &[1.0; 4]));
    let a = floats(DType::F32, &[16_777_216.0, 1.0, -16_777_216.0, 1.0]);
    let run = |strides: [i64; 2]| {
        product((DType::F32, DType::F32), (1, 1, 4), [&c, &a, &ones], |b, mma| {
            mma.k = vec![b.index_const(2); 2];
            for (side, own) in [(&mut mma.acc, false), (&mut mma.a, true), (&mut mma.b, true)] {
                if let NestAccess::Tensor { at, .. } = side {
                    let [x, y] = if own { strides } else { [0, 0] };
                    *at = affine(b, 0, &[0, 0, x, y]);
                }
            }
        })
    };
    assert_eq!(run([1, 2]), Ok(floats(DType::F32, &[1.0])));
    assert_eq!(run([2, 1]), Ok(floats(DType::F32, &[2.0])));
}

#[test]
fn i32_wraps() {
    let got = product((DType::I32, DType::I8), (1, 1, 1), [&[0x7fff_ffff], &[2], &[3]], |_, _| {});
    assert_eq!(got, Ok(vec![0x8000_0005]));
}

/// Without steps the accumulator stays, without rows there is nothing to do.
#[test]
fn empty_axes() {
    let c = floats(DType::F32, &[5.0, 6.0]);
    assert_eq!(product((DType::F32, DType::F32), (2, 1, 0), [&c, &[], &[]], |_, _| {}), Ok(c));
    assert_eq!(product((DType::F32, DType::F32), (0, 2, 2), [&[], &[], &[1; 4]], |_, _| {}), Ok(vec![]));
}

/// Rows of `a` that the table does not have are 0; the table is one more tensor.
#[test]
fn tables_of_operands() {
    let run = |oob: Oob| {
        let mut b = Builder::new("k", at(0), "a2a3");
        let rows = tensor(&mut b, "rows", DType::I32, TensorDir::In, &[2]);
        let x = tensor(&mut b, "x", DType::I8, TensorDir::In, &[2, 1]);
        let c = tensor(&mut b, "c", DType::I32, TensorDir::InOut, &[2]);
        b.begin_body();
        let (one, two) = (b.index_const(1), b.index_const(2));
        let table = Table { tensor: rows, at: affine(&mut b, 0, &[1, 0, 0]), stride: one, extent: two, oob };
        let side = |b: &mut Builder, tables| NestAccess::Tensor {
            tensor: x,
            elem: Elem::Whole(DType::I8),
            at: affine(b, 0, &[0, 0, 0]),
            swizzle: None,
            tables,
        };
        let mma = Mma {
            m: vec![two],
            n: vec![one],
            k: vec![one],
            acc: tensor_side(&mut b, c, Elem::Whole(DType::I32), 0, &[1, 0, 0]),
            a: side(&mut b, vec![table]),
            b: side(&mut b, vec![]),
        };
        b.mma(mma, at(9));
        let args =
            vec![arg(DType::I32, &[2], &[9, 1]), arg(DType::I8, &[2, 1], &[3, 5]), arg(DType::I32, &[2], &[1, 1])];
        run_with(&finish(b), args, &[]).map(|(_, bits)| bits)
    };
    assert_eq!(run(Oob::Zero), Ok(vec![1, 16]));
    assert_eq!(run(Oob::Wrap), Ok(vec![16, 16]));
    let trap = run(Oob::Undefined).expect_err("9");
    assert_eq!((trap.code, trap.span), (codes::TABLE_ENTRY, at(9)));
    assert_eq!(trap.message, "rows[0] is 9, and entries of this table are indices below 2");
}

#[test]
fn traps() {
    let expect = |got: Result<Vec<u64>, Trap>, code, message: &str| {
        let trap = got.expect_err(message);
        assert_eq!((trap.code, trap.message.as_str(), trap.span), (code, message, at(9)));
    };
    let xs = [0u64; 4];
    let got = product((DType::F32, DType::F32), (2, 2, 2), [&xs; 3], |b, mma| {
        if let NestAccess::Tensor { at, .. } = &mut mma.acc {
            *at = affine(b, 0, &[1, 1, 0]);
        }
    });
    expect(got, codes::COPY_CONFLICT, "c[0, 1] is written twice by one matrix product");
    let got = product((DType::F32, DType::F32), (2, 2, 2), [&xs; 3], |b, mma| {
        if let NestAccess::Tensor { at, .. } = &mut mma.a {
            *at = affine(b, 1, &[2, 0, 1]);
        }
    });
    expect(got, codes::TRAP_TENSOR_OUT_OF_BOUNDS, "read of element 4 of tensor a, which has 4 elements");
    // An operand that is the accumulator.
    let got = product((DType::F32, DType::F32), (2, 2, 2), [&xs; 3], |_, mma| {
        if let (NestAccess::Tensor { tensor, .. }, NestAccess::Tensor { tensor: c, .. }) = (&mut mma.b, &mma.acc) {
            *tensor = *c;
        }
    });
    expect(got, codes::COPY_CONFLICT, "c[0, 0] is read and written by one matrix product");
    // An accumulator that nothing started.
    let mut b = Builder::new("k", at(0), "a2a3");
    let out = tensor(&mut b, "out", DType::F32, TensorDir::Out, &[1]);
    let x = tensor(&mut b, "x", DType::F32, TensorDir::In, &[1]);
    b.begin_body();
    let side = |b: &mut Builder, g| tensor_side(b, g, Elem::Whole(DType::F32), 0, &[]);
    let (acc, a) = (side(&mut b, out), side(&mut b, x));
    b.mma(Mma { m: vec![], n: vec![], k: vec![], acc, b: a.clone(), a }, at(9));
    let args = vec![TensorArg::empty(DType::F32, vec![1]), arg(DType::F32, &[1], &[0])];
    let got = run_with(&finish(b), args, &[]).map(|(_, bits)| bits);
    expect(got, codes::TRAP_POISON_READ_TENSOR, "read of out[0], which nothing has written");
}
