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
