//! Reductions, matrix products and the order of their additions.

use super::*;
use ptoc_ir::scalar;

fn loc(loc: Loc, dtype: DType, rows: u32, cols: u32) -> TileType {
    TileType { loc, ..vec_ty(dtype, rows, cols) }
}

fn noise(n: usize, seed: u32) -> Vec<f32> {
    let mut x = seed;
    (0..n)
        .map(|_| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (x >> 8) as f32 / 65536.0 - 128.0
        })
        .collect()
}

#[test]
fn row_sums_are_a_tree_of_strided_partials() {
    let xs = noise(2 * 200, 7);
    let t = vec_ty(DType::F32, 2, 256);
    let got =
        exec("TROWSUM", InstAttrs::default(), (vec_ty(DType::F32, 2, 8), (2, 1)), &[Src::Tile(t, (2, 200), f32s(&xs))])
            .unwrap();
    for (i, row) in xs.chunks(200).enumerate() {
        let mut p = vec![0f32; 64];
        for j in 0..200 {
            p[j % 64] += row[j];
        }
        while p.len() > 1 {
            let half = p.len() / 2;
            p = (0..half).map(|l| p[l] + p[l + half]).collect();
        }
        assert_eq!(got[i], u64::from(p[0].to_bits()));
        // The order matters for these numbers, so the test tells orders apart.
        assert_ne!(p[0], row.iter().sum::<f32>());
    }
}

#[test]
fn column_sums_ascend() {
    let xs = noise(100 * 3, 9);
    let t = vec_ty(DType::F32, 100, 8);
    let dst = (vec_ty(DType::F32, 1, 8), (1, 3));
    let got = exec("TCOLSUM", InstAttrs::default(), dst, &[Src::Tile(t, (100, 3), f32s(&xs))]).unwrap();
    for j in 0..3 {
        let want = (0..100).fold(0f32, |s, i| s + xs[i * 3 + j]);
        assert_eq!(got[j], u64::from(want.to_bits()));
    }
}

#[test]
fn half_sums_round_once() {
    let h = |x: f32| scalar::from_f32(DType::F16, x);
    // 2048 and 64 ones: adding one by one in f16 would stay at 2048.
    let mut bits = vec![h(1.0); 65];
    bits[0] = h(2048.0);
    let src = Src::Tile(vec_ty(DType::F16, 1, 80), (1, 65), bits.clone());
    let dst = (vec_ty(DType::F16, 1, 16), (1, 1));
    assert_eq!(exec("TROWSUM", InstAttrs::default(), dst, &[src]).unwrap(), [h(2112.0)]);
    let src = Src::Tile(vec_ty(DType::F16, 65, 16), (65, 1), bits);
    assert_eq!(exec("TCOLSUM", InstAttrs::default(), dst, &[src]).unwrap(), [h(2112.0)]);
}

#[test]
fn integer_reductions_and_extremes() {
    let none = InstAttrs::default();
    let t = vec_ty(DType::I32, 2, 8);
    let xs: Vec<u64> = [i32::MAX, 1, -5, 7, -1, i32::MIN].iter().map(|&x| u64::from(x as u32)).collect();
    let src = || Src::Tile(t, (2, 3), xs.clone());
    let i = |xs: &[i32]| xs.iter().map(|&x| u64::from(x as u32)).collect::<Vec<_>>();
    let column = (vec_ty(DType::I32, 2, 8), (2, 1));
    let line = (vec_ty(DType::I32, 1, 8), (1, 3));
    assert_eq!(exec("TROWSUM", none, column, &[src()]).unwrap(), i(&[i32::MAX - 4, i32::MIN + 6]));
    assert_eq!(exec("TROWMAX", none, column, &[src()]).unwrap(), i(&[i32::MAX, 7]));
    assert_eq!(exec("TROWMIN", none, column, &[src()]).unwrap(), i(&[-5, i32::MIN]));
    assert_eq!(exec("TCOLMAX", none, line, &[src()]).unwrap(), i(&[i32::MAX, 1, -5]));
    assert_eq!(exec("TCOLMIN", none, line, &[src()]).unwrap(), i(&[7, -1, i32::MIN]));
    let f = vec_ty(DType::F32, 1, 8);
    let nan = Src::Tile(f, (1, 3), f32s(&[1.0, f32::NAN, 2.0]));
    let got = exec("TROWMAX", none, (f, (1, 1)), &[nan]).unwrap();
    assert!(f32::from_bits(got[0] as u32).is_nan());
    // Of nothing.
    let empty = || Src::Tile(f, (1, 0), vec![]);
    assert_eq!(exec("TROWMAX", none, (f, (1, 1)), &[empty()]).unwrap(), f32s(&[f32::NEG_INFINITY]));
    assert_eq!(exec("TROWSUM", none, (f, (1, 1)), &[empty()]).unwrap(), f32s(&[0.0]));
}

fn product(
    name: &str,
    acc: DType,
    input: DType,
    (m, n, k): (usize, usize, usize),
    start: Option<Vec<u64>>,
    a: &[u64],
    b: &[u64],
) -> Vec<u64> {
    let acc_ty = loc(Loc::Acc, acc, 16, 16);
    let left = Src::Tile(loc(Loc::Left, input, 16, 32), (m, k), a.to_vec());
    let right = Src::Tile(loc(Loc::Right, input, 32, 16), (k, n), b.to_vec());
    let mut sources = vec![left, right];
    match (name, start) {
        ("TMATMUL_ACC", Some(c)) => sources.insert(0, Src::Tile(acc_ty, (m, n), c)),
        ("TMATMUL_BIAS", Some(bias)) => sources.push(Src::Tile(loc(Loc::Bias, acc, 1, 16), (1, n), bias)),
        _ => {}
    }
    exec(name, InstAttrs::default(), (acc_ty, (m, n)), &sources).unwrap()
}

#[test]
fn matrix_products_fuse_and_ascend() {
    let (m, n, k) = (3, 5, 20);
    let (a, b) = (noise(m * k, 1), noise(k * n, 2));
    let c = noise(m * n, 3);
    let want = |start: &dyn Fn(usize, usize) -> f32| -> Vec<u64> {
        let mut out = Vec::new();
        for i in 0..m {
            for j in 0..n {
                out.push((0..k).fold(start(i, j), |s, kk| a[i * k + kk].mul_add(b[kk * n + j], s)));
            }
        }
        f32s(&out)
    };
    let f = DType::F32;
    let (x, y) = (f32s(&a), f32s(&b));
    assert_eq!(product("TMATMUL", f, f, (m, n, k), None, &x, &y), want(&|_, _| 0.0));
    assert_eq!(product("TMATMUL_ACC", f, f, (m, n, k), Some(f32s(&c)), &x, &y), want(&|i, j| c[i * n + j]));
    assert_eq!(product("TMATMUL_BIAS", f, f, (m, n, k), Some(f32s(&c[..n])), &x, &y), want(&|_, j| c[j]));
    // K = 0 gives what the product starts from.
    assert_eq!(product("TMATMUL", f, f, (m, n, 0), None, &[], &[]), f32s(&[0.0; 15]));
    assert_eq!(product("TMATMUL_ACC", f, f, (m, n, 0), Some(f32s(&c)), &[], &[]), f32s(&c));
}

#[test]
fn matrix_products_of_every_triple() {
    use DType::*;
    let bits = |d: DType, xs: &[i32]| -> Vec<u64> {
        xs.iter()
            .map(|&x| if d.is_float() { scalar::from_f32(d, x as f32) } else { x as u64 & scalar::mask(Ty::D(d)) })
            .collect()
    };
    for (acc, input) in [(I32, I8), (F32, F16), (F32, BF16), (F32, F32), (F16, F16)] {
        let (a, b) = (bits(input, &[1, -2, 3, 100]), bits(input, &[5, 6, -7, 8]));
        let got = product("TMATMUL", acc, input, (2, 2, 2), None, &a, &b);
        assert_eq!(got, bits(acc, &[19, -10, -685, 818]), "{acc} {input}");
    }
    // The f16 accumulator rounds once, at the end.
    let h = |x: f32| scalar::from_f32(F16, x);
    let (a, b) = (vec![h(1.0); 3], [h(2048.0), h(1.0), h(1.0)]);
    assert_eq!(product("TMATMUL", F16, F16, (1, 1, 3), None, &a, &b), [h(2050.0)]);
    // i32 wraps.
    let start = vec![u64::from(i32::MAX as u32)];
    assert_eq!(product("TMATMUL_ACC", I32, I8, (1, 1, 1), Some(start), &[1], &[1]), [u64::from(i32::MIN as u32)]);
}

/// Every addition rounds: 2048 + 1 is 2048 in f16. Rows have 16 partial sums, columns one.
#[test]
fn sums_that_round_at_each_step() {
    let h = |x: f32| scalar::from_f32(DType::F16, x);
    let step = InstAttrs { stepwise: true, ..InstAttrs::default() };
    let (wide, tall, one) = (vec_ty(DType::F16, 1, 64), vec_ty(DType::F16, 64, 1), (vec_ty(DType::F16, 1, 16), (1, 1)));
    // Lane 0 has 2048 and three ones, which are lost; lanes 1 to 15 have four ones each.
    let mut xs = vec![h(1.0); 64];
    xs[0] = h(2048.0);
    // Partial sums one after the other: 2048 + 4, 2052 + 4, .. are exact.
    assert_eq!(exec("TROWSUM", step, one, &[Src::Tile(wide, (1, 64), xs.clone())]).unwrap(), [h(2108.0)]);
    // What no whole sixteen has is added behind them one by one: 2078 + 1 is a tie, 2080, and the other ones are lost.
    let first = |n: usize| Src::Tile(wide, (1, n), xs[..n].to_vec());
    assert_eq!(exec("TROWSUM", step, one, &[first(46)]).unwrap(), [h(2080.0)]);
    assert_eq!(exec("TROWSUM", step, one, &[first(48)]).unwrap(), [h(2108.0)]);
    assert_eq!(exec("TCOLSUM", step, one, &[Src::Tile(tall, (64, 1), xs.clone())]).unwrap(), [h(2048.0)]);
    let none = InstAttrs::default();
    assert_eq!(exec("TCOLSUM", none, one, &[Src::Tile(tall, (64, 1), xs)]).unwrap(), [h(2112.0)]);
    // Sums of rows begin with their first element, so that a row of -0 has the sum -0; those of columns begin at +0.
    for n in [2, 32, 34] {
        let zeros = vec![0x8000; n];
        assert_eq!(exec("TROWSUM", step, one, &[Src::Tile(wide, (1, n), zeros.clone())]).unwrap(), [0x8000]);
        assert_eq!(exec("TCOLSUM", step, one, &[Src::Tile(tall, (n, 1), zeros)]).unwrap(), [0]);
    }
}
