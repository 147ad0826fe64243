//! Scans and sorts of more than one chunk and one window, against plain loops.

use super::{Arrays, Entry, RUNS};
use crate::engine::{Content, Noise, noise};
use ptoc_tensor::{DType, Element, Tensor};

fn one(name: &str, tensor: Tensor) -> Arrays {
    Arrays::from([(name.to_owned(), tensor)])
}

fn vector<T: Element>(values: &[T]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).expect("it fits")
}

/// The result of a call on each backend, which is the same on all.
#[track_caller]
fn everywhere(module: &str, entry: &str, settings: &[(&str, &str)], inputs: &Arrays, wanted: &Arrays) {
    for (backend, threads) in RUNS {
        let built = Entry::new(module, entry, settings, backend).unwrap_or_else(|e| panic!("{}", e.rendered(false)));
        let found = built.call(inputs, threads).unwrap_or_else(|e| panic!("{}", e.rendered(false)));
        for (name, want) in wanted {
            assert!(found[name].bytes() == want.bytes(), "{entry} {settings:?}: {name}, {backend}, {threads} threads");
        }
    }
}

#[test]
fn scans_of_several_windows() {
    for n in [16384, 16385, 524_288, 1_100_000] {
        let x = noise(DType::U32, &[n], Content::Wild, n as u64);
        let values = x.as_slice::<u32>().expect("u32").to_vec();
        let mut sums = vec![0u32];
        values.iter().for_each(|v| sums.push(sums[sums.len() - 1].wrapping_add(*v)));
        let inputs = one("x", x);
        everywhere("std::scan", "inclusive_sum", &[], &inputs, &one("y", vector(&sums[1..])));
        everywhere("std::scan", "exclusive_sum", &[], &inputs, &one("y", vector(&sums)));
    }
    let mut noise = Noise::new(3);
    let values: Vec<i32> = (0..600_000).map(|_| noise.below(u64::from(u32::MAX)) as u32 as i32 / 3).collect();
    let running = |op: fn(i32, i32) -> i32| -> Vec<i32> {
        values.iter().scan(values[0], |m, v| (*m = op(*m, *v), Some(*m)).1).collect()
    };
    let inputs = one("x", vector(&values));
    everywhere("std::scan", "inclusive_max", &[], &inputs, &one("y", vector(&running(i32::max))));
    everywhere("std::scan", "inclusive_min", &[], &inputs, &one("y", vector(&running(i32::min))));
    let sums = values.iter().scan(0, |sum: &mut i32, v| (*sum = sum.wrapping_add(*v), Some(*sum)).1);
    let sums: Vec<i32> = std::iter::once(0).chain(sums).collect();
    everywhere("std::scan", "inclusive_sum", &[], &inputs, &one("y", vector(&sums[1..])));
    everywhere("std::scan", "exclusive_sum", &[], &inputs, &one("y", vector(&sums)));
}

/// Floats go in rows of a chunk: the same bits everywhere, and near the sums in f64.
#[test]
fn scans_of_floats() {
    for n in [1, 16383, 16384, 16385, 300_001] {
        let mut noise = Noise::new(n as u64);
        let x: Vec<f32> = (0..n).map(|_| noise.below(2001) as f32 / 1000.0 - 1.0).collect();
        let sums: Vec<f64> = x.iter().scan(0.0, |sum, x| (*sum += f64::from(*x), Some(*sum)).1).collect();
        let running = |op: fn(f32, f32) -> f32| -> Vec<f32> {
            x.iter().scan(x[0], |m, v| (*m = op(*m, *v), Some(*m)).1).collect()
        };
        let inputs = one("x", vector(&x));
        for (entry, ahead) in [("inclusive_sum", 0), ("exclusive_sum", 1)] {
            let first = Entry::new("std::scan", entry, &[("T", "f32")], "interp").and_then(|e| e.call(&inputs, 1));
            let first = first.unwrap_or_else(|e| panic!("{}", e.rendered(false)));
            let found = first["y"].to_f64s();
            assert_eq!(found.len(), n + ahead);
            let off = found[ahead..].iter().zip(&sums).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off < 1e-2, "{entry} of {n}: {off}");
            everywhere("std::scan", entry, &[("T", "f32")], &inputs, &first);
        }
        everywhere("std::scan", "inclusive_max", &[("T", "f32")], &inputs, &one("y", vector(&running(f32::max))));
        everywhere("std::scan", "inclusive_min", &[("T", "f32")], &inputs, &one("y", vector(&running(f32::min))));
    }
}

/// Windows of an output that no launch reads pass the caches if the output is large; those of a temporary are read.
#[test]
fn outputs_that_no_launch_reads() {
    let text = "kernel twice(x: in f32[N], y: out f32[N]) {
            grid (i in tiles(N, 64));
            TSTORE(y.tile(i), Vec(x.tile(i)) * 2.0);
        }
        program by_parts(x: in f32[N], y: out f32[N], z: out f32[N]) {
            let t = tensor f32[N];
            let w = tiles(N, 128);
            twice(x.tile(w[0]), t.tile(w[0]));
            twice(t.tile(w[0]), y.tile(w[0]));
            twice(y.tile(w[0]), z.tile(w[0]));
        }";
    let entry = Entry::of_text(text, "by_parts", &[], "cpu").unwrap_or_else(|e| panic!("{}", e.rendered(false)));
    let inputs = one("x", vector(&[1f32; 128]));
    let written = entry.write_only(&inputs).unwrap_or_else(|e| panic!("{}", e.rendered(false)));
    assert_eq!(written, [0b00, 0b00, 0b10], "z alone is not read");
}

/// Keys of all bits, of a few, of the highest alone, and all equal: stable in each case.
#[test]
fn sorts_of_several_chunks() {
    let mut noise = Noise::new(5);
    for (n, bits, shift) in [(16384, 64, 0), (50_001, 64, 0), (40_000, 5, 0), (40_000, 3, 61), (20_000, 0, 0)] {
        let keys: Vec<u64> = (0..n).map(|_| (noise.below(u64::MAX) & ((1u128 << bits) - 1) as u64) << shift).collect();
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by_key(|i| keys[*i as usize]);
        let inputs = one("keys", vector(&keys));
        everywhere("std::sort", "argsort", &[], &inputs, &one("order", vector(&order)));
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        everywhere("std::sort", "sort", &[], &inputs, &one("ascending", vector(&sorted)));
    }
}

/// Random keys, some of which have the upper bits of others: as many as look for their places among each other, and one
/// more, which takes all digits.
#[test]
fn sorts_by_upper_digits() {
    for alike in [2, 15, 16, 17, 60] {
        let mut noise = Noise::new(alike);
        let mut keys: Vec<u64> = (0..20_000).map(|_| noise.below(u64::MAX)).collect();
        for n in 0..alike as usize {
            keys[300 * n + 7] = 0xabcd_ef01_2340_0000 | noise.below(1 + alike / 2);
        }
        let mut order: Vec<u32> = (0..keys.len() as u32).collect();
        order.sort_by_key(|i| keys[*i as usize]);
        everywhere("std::sort", "argsort", &[], &one("keys", vector(&keys)), &one("order", vector(&order)));
    }
}

/// Few of many, of which most are equal, NaN, zeros of both signs, or all different; runs that are not whole.
#[test]
fn the_largest_of_many() {
    // As numpy sorts.
    let key = |x: f32| match x {
        x if x.is_nan() => u32::MAX,
        x if x.is_sign_negative() && x != 0.0 => !x.to_bits(),
        x => x.to_bits() & 0x7fff_ffff | 0x8000_0000,
    };
    let mut noise = Noise::new(7);
    for (n, m, kinds) in
        [(1 << 10, 8, 1 << 20), (4_001, 1, 3), (40_031, 300, 1 << 20), (20_000, 150, 1), (70_001, 70, 6)]
    {
        let wild = [f32::NAN, -f32::NAN, f32::INFINITY, 0.0, -0.0, 1.0, f32::NEG_INFINITY];
        let mut value = || match noise.below(kinds) {
            k if kinds < 10 => wild[(k as usize + n) % wild.len()],
            k => k as f32 / 1024.0 - 400.0,
        };
        let x: Vec<f32> = (0..n).map(|_| value()).collect();
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by_key(|i| std::cmp::Reverse(key(x[*i as usize])));
        order.truncate(m);
        let values: Vec<f32> = order.iter().map(|i| x[*i as usize]).collect();
        let wanted = Arrays::from([("values".to_owned(), vector(&values)), ("places".to_owned(), vector(&order))]);
        everywhere("std::sort", "top_k", &[("M", &m.to_string())], &one("x", vector(&x)), &wanted);
        // By another key.
        let x: Vec<i32> = (0..n).map(|_| noise.below(kinds.min(1 << 12)) as i32 - 2).collect();
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by_key(|i| std::cmp::Reverse(x[*i as usize]));
        order.truncate(m);
        let values: Vec<i32> = order.iter().map(|i| x[*i as usize]).collect();
        let wanted = Arrays::from([("values".to_owned(), vector(&values)), ("places".to_owned(), vector(&order))]);
        let settings = [("M", &*m.to_string()), ("T", "i32"), ("key", "int_key")];
        everywhere("std::sort", "top_k", &settings, &one("x", vector(&x)), &wanted);
    }
}

/// Elements of every dtype are ordered as their dtype orders them, if no key is given.
#[test]
fn orders_of_every_dtype() {
    use DType::{BF16, F16, F32, I8, I16, I32, I64, U8, U16, U32, U64};
    for dtype in [F16, BF16, F32, I8, U8, I16, U16, I32, U32, I64, U64] {
        for n in [1, 7, 1001] {
            let x = noise(dtype, &[n], Content::Wild, 5);
            // As numpy sorts: NaN last, and zeros are equal. Integers of 64 bits are more than f64 holds.
            let place = |i: usize| -> i128 {
                let (bits, value) = (x.get_bits(i), x.get_f64(i));
                match dtype {
                    I64 => i128::from(bits as i64),
                    U64 => i128::from(bits),
                    _ if value.is_nan() => i128::MAX,
                    _ if value == 0.0 => 0,
                    _ if value < 0.0 => -i128::from(value.abs().to_bits()),
                    _ => i128::from(value.to_bits()),
                }
            };
            let mut order: Vec<u32> = (0..n as u32).collect();
            order.sort_by_key(|i| place(*i as usize));
            let settings = [("T", dtype.name())];
            let wanted = one("order", vector(&order));
            everywhere("std::sort", "argsort_by", &settings, &one("x", x.clone()), &wanted);
            order.sort_by_key(|i| (std::cmp::Reverse(place(*i as usize)), *i));
            for m in [1, n.min(8), n.min(100)] {
                let values = Tensor::from_fn(dtype, &[m], |i| x.get_bits(order[i] as usize)).expect("it fits");
                let mut wanted = one("places", vector(&order[..m]));
                wanted.insert("values".to_owned(), values);
                let settings = [("M", &*m.to_string()), ("T", dtype.name())];
                everywhere("std::sort", "top_k", &settings, &one("x", x.clone()), &wanted);
            }
        }
    }
}

/// A weight times its scale may be more or less than f16 holds, and its group still counts.
#[test]
fn scales_far_apart() {
    let (n, k) = (16, 512);
    let weights: Vec<i8> = (0..n * k).map(|i| (i * 37 % 255) as i8).collect();
    let scale = |g: usize| if g.is_multiple_of(2) { 60000.0 } else { 1e-4 };
    let scales: Vec<f64> = (0..n * (k / 128)).map(scale).collect();
    for m in [7, 8, 9] {
        // Groups with large scales meet zeros: what is left comes from those with small ones.
        let x: Vec<f64> =
            (0..m * k).map(|i| if i % k / 128 % 2 == 0 { 0.0 } else { (i * 13 % 31) as f64 - 15.0 }).collect();
        let mut inputs = one("W", Tensor::from_slice(&[n, k], &weights).expect("it fits"));
        inputs.insert("x".to_owned(), Tensor::from_f64s(DType::F16, &[m, k], &x).expect("it fits"));
        inputs.insert("scales".to_owned(), Tensor::from_f64s(DType::F16, &[n, k / 128], &scales).expect("it fits"));
        for (backend, threads) in RUNS {
            let built =
                Entry::new("std::quant", "w8a16", &[], backend).unwrap_or_else(|e| panic!("{}", e.rendered(false)));
            let y = &built.call(&inputs, threads).unwrap_or_else(|e| panic!("{}", e.rendered(false)))["y"];
            for at in 0..m * n {
                let (row, column) = (at / n, at % n);
                let small = inputs["scales"].get_f64(1);
                let products = (0..k).map(|i| f64::from(weights[column * k + i]) * small * x[row * k + i]);
                let (want, size) = products.fold((0.0, 0.0), |(sum, size), p: f64| (sum + p, size + p.abs()));
                let got = y.get_f64(at);
                assert!(
                    (got - want).abs() <= 1e-3 * size,
                    "{m} rows, {backend}: [{row}, {column}] is {got}, not {want}"
                );
            }
        }
    }
}
