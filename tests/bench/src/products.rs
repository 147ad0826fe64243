//! Matrix products of `gemm.tile` beside the `gemm` crate and the machine's peak, interleaved, one thread.

use crate::kernels::{Case, Ready, TARGET, ready};
use crate::{median, product, time};
use ptoc_exec::machine::{Operation, peak};
use std::time::Duration;

/// m, n, k.
const SHAPES: [[usize; 3]; 6] = [[512; 3], [1024; 3], [2048; 3], [1000, 777, 333], [4096, 64, 64], [8, 4096, 4096]];

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

/// A kernel of the file with random arrays.
fn kernel(text: &str, name: &str, [m, n, k]: [usize; 3], defs: &[(&str, &str)]) -> Ready {
    let dims = [("M", m as i64), ("N", n as i64), ("K", k as i64)];
    ready(text, &Case { path: "gemm.tile", kernel: name, dims: &dims, defs, target: TARGET })
}

/// Some elements of the f32 product against sums in f64.
fn checked(ours: &Ready, [m, n, k]: [usize; 3]) {
    let [a, b, c] = [0, 1, 2].map(|t| floats(ours.buffers[t].bytes()));
    for at in 0..997 {
        let (i, j) = (at * 7919 % m, at * 104_729 % n);
        let (mut sum, mut size) = (0f64, 0f64);
        for p in 0..k {
            let x = f64::from(a[i * k + p]) * f64::from(b[p * n + j]);
            (sum, size) = (sum + x, size + x.abs());
        }
        let off = (f64::from(c[i * n + j]) - sum).abs();
        assert!(off <= size * k as f64 * f64::from(f32::EPSILON) / 2.0, "({i}, {j}) of {m}x{n}x{k} is off by {off}");
    }
}

/// The shapes of the table, then the other types at two of them.
pub fn table(text: &str) {
    for shape in SHAPES {
        let mut ours = kernel(text, product(text), shape, &[]);
        let [m, n, k] = shape;
        let (a, b) = (floats(ours.buffers[0].bytes()), floats(ours.buffers[1].bytes()));
        let mut c = vec![0f32; m * n];
        let mut peer = || {
            let (row_c, row_a, row_b) = (n as isize, k as isize, n as isize);
            let none = gemm::Parallelism::None;
            // SAFETY: three row-major matrices of these shapes.
            unsafe {
                let (c, a, b) = (c.as_mut_ptr(), a.as_ptr(), b.as_ptr());
                gemm::gemm(
                    m, n, k, c, 1, row_c, false, a, 1, row_a, b, 1, row_b, 0.0, 1.0f32, false, false, false, none,
                );
            }
        };
        let flops = 2.0 * m as f64 * n as f64 * k as f64;
        let Times { mine, best, theirs, top } = interleaved(flops, &mut || ours.run(1), &mut peer);
        checked(&ours, shape);
        let rate = |t: Duration| flops / t.as_secs_f64();
        println!(
            "f32 {m}x{n}x{k}: {:.3} of the gemm crate, {:.3} of the peak, {:.3} at best ({:.1}, {:.1} and {:.1} \
            GFLOP/s)",
            rate(mine) / rate(theirs),
            rate(mine) / top,
            rate(best) / top,
            rate(mine) / 1e9,
            rate(theirs) / 1e9,
            top / 1e9
        );
    }
    for (name, kind, operation) in [
        ("gemm_f16", "f16", Operation::FmaF32),
        ("gemm_f16", "bf16", unit(Operation::TilesBf16, Operation::FmaF32)),
        ("gemm_i8", "i8", unit(Operation::TilesI8, Operation::DotI8)),
    ] {
        for size in [1024, 2048] {
            let defs = if kind == "i8" { vec![] } else { vec![("T", kind)] };
            let mut ours = kernel(text, name, [size; 3], &defs);
            let flops = 2.0 * (size as f64).powi(3);
            let mut tops = Vec::new();
            let times: Vec<Duration> = (0..runs(flops))
                .map(|_| {
                    tops.extend(peak(operation, 1));
                    time(|| ours.run(1))
                })
                .collect();
            let (best, top) = (flops / shortest(&times).as_secs_f64(), middle(tops));
            let rate = flops / median(times).as_secs_f64();
            println!(
                "{kind} {size}^3: {:.1} G/s, {:.3} of the peak {:.1}, {:.3} at best",
                rate / 1e9,
                rate / top,
                top / 1e9,
                best / top
            );
        }
    }
}

/// The matrix unit's operation, or the other if there is no unit.
fn unit(tiles: Operation, other: Operation) -> Operation {
    if peak(tiles, 1).is_some() { tiles } else { other }
}

fn runs(flops: f64) -> usize {
    ((2e10 / flops) as usize).clamp(9, 101)
}

fn middle(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN)
}

fn shortest(times: &[Duration]) -> Duration {
    times.iter().min().copied().unwrap_or_default()
}

/// Medians, and the shortest of ours: other work on the machine takes from long runs, and hardly from the short one
/// that measures the peak.
struct Times {
    mine: Duration,
    best: Duration,
    theirs: Duration,
    /// Operations a second of the machine.
    top: f64,
}

fn interleaved(flops: f64, ours: &mut dyn FnMut(), peer: &mut dyn FnMut()) -> Times {
    let (mut mine, mut theirs, mut tops) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..runs(flops) {
        mine.push(time(&mut *ours));
        theirs.push(time(&mut *peer));
        tops.extend(peak(Operation::FmaF32, 1));
    }
    Times { best: shortest(&mine), mine: median(mine), theirs: median(theirs), top: middle(tops) }
}
