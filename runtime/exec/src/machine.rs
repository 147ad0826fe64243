//! What the machine at hand can do at most, measured: the limits that kernels are held against.
//!
//! Every figure is the best of several short runs, since other work on the machine only ever slows one down.

#[cfg(target_arch = "x86_64")]
use crate::matrix;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Repetitions of a measurement: at most, and of one that takes [`LONG`], at least.
const RUNS: usize = 100;
const LEAST: usize = 3;
const LONG: Duration = Duration::from_millis(30);

/// What a rate of operations counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Fused multiply-adds of f32, two operations each, at the machine's full vector width.
    FmaF32,
    /// Multiply-adds of i8 products into i32, two operations each: dot products in hardware, where there are some.
    DotI8,
    /// Multiply-adds of products of bf16 into f32, two operations each, on the matrix unit.
    TilesBf16,
    /// Multiply-adds of products of i8 into i32, two operations each, on the matrix unit.
    TilesI8,
}

/// The processor's name and widest vectors.
pub fn name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|l| Some(l.strip_prefix("model name")?.split_once(':')?.1.trim().to_owned()));
    let name = model.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx512f") {
        return name + ", AVX-512";
    } else if std::is_x86_feature_detected!("avx2") {
        return name + ", AVX2";
    }
    name
}

/// Operations a second of `threads` threads that do nothing else, in registers; none if the machine has no such
/// operation.
pub fn peak(operation: Operation, threads: usize) -> Option<f64> {
    // Some hundred microseconds: longer than the clock is coarse, shorter than a time slice.
    const TURNS: usize = 20_000;
    let kernel = kernel(operation)?;
    // SAFETY: `kernel` gives only what this machine can execute.
    let once = || together(threads, || (), |_| unsafe { kernel(TURNS) } as f64);
    let (mut best, begin) = (0f64, Instant::now());
    for run in 0..RUNS {
        best = best.max(once());
        if run >= LEAST && begin.elapsed() > LONG {
            break;
        }
    }
    Some(best)
}

/// Bytes a second that `threads` threads read and write, both counted, when each copies half of its share of `bytes`
/// to the other half again and again: what moving a working set of that size costs at least.
pub fn copy_bandwidth(bytes: usize, threads: usize) -> f64 {
    let half = (bytes / 2 / cores(threads)).max(64);
    // Several copies of a small array, so that the clock's own time does not matter.
    let copies = ((1 << 20) / half).max(1);
    let arrays = || (vec![1u8; half], vec![0u8; half]);
    let once = || {
        together(threads, arrays, |(from, to)| {
            // What was never touched has no pages yet.
            for _ in 0..copies {
                to.copy_from_slice(black_box(from));
                black_box(&mut *to);
            }
            2.0 * (half * copies) as f64
        })
    };
    let (mut best, begin) = (0f64, Instant::now());
    for run in 0..RUNS {
        best = best.max(once());
        if run >= LEAST && begin.elapsed() > LONG {
            break;
        }
    }
    best
}

/// Threads that can run at once: more of them take turns.
fn cores(threads: usize) -> usize {
    threads.clamp(1, thread::available_parallelism().map_or(1, usize::from))
}

/// What `work` gives, summed over as many threads and divided by the seconds in which all have done it. Each prepares,
/// does it once, waits for the others, and does it again, which counts.
fn together<T>(threads: usize, prepare: impl Fn() -> T + Sync, work: impl Fn(&mut T) -> f64 + Sync) -> f64 {
    let threads = cores(threads);
    let barrier = Barrier::new(threads);
    let one = || {
        let mut own = prepare();
        work(&mut own);
        barrier.wait();
        let start = Instant::now();
        let done = work(&mut own);
        (start, Instant::now(), done)
    };
    let all: Vec<(Instant, Instant, f64)> = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(one)).collect();
        let own = one();
        others.into_iter().filter_map(|t| t.join().ok()).chain([own]).collect()
    });
    let start = all.iter().map(|a| a.0).min().expect("there is one");
    let end = all.iter().map(|a| a.1).max().expect("there is one");
    all.iter().map(|a| a.2).sum::<f64>() / (end - start).as_secs_f64()
}

/// Runs that many turns and returns how many operations these were.
type Turns = unsafe fn(usize) -> u64;

#[cfg(target_arch = "x86_64")]
fn kernel(operation: Operation) -> Option<Turns> {
    let avx512 = std::is_x86_feature_detected!("avx512f");
    let avx2 = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma");
    match operation {
        Operation::FmaF32 if avx512 => Some(x86::fma_avx512),
        Operation::FmaF32 if avx2 => Some(x86::fma_avx2),
        Operation::FmaF32 => Some(fma_plain),
        Operation::DotI8 if avx512 && std::is_x86_feature_detected!("avx512vnni") => Some(x86::dot_avx512),
        Operation::TilesBf16 if matrix::unit().bf16 => Some(x86::tiles_bf16),
        Operation::TilesI8 if matrix::unit().i8 => Some(x86::tiles_i8),
        Operation::DotI8 | Operation::TilesBf16 | Operation::TilesI8 => None,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn kernel(operation: Operation) -> Option<Turns> {
    match operation {
        Operation::FmaF32 => Some(fma_plain),
        Operation::DotI8 | Operation::TilesBf16 | Operation::TilesI8 => None,
    }
}

/// Chains of additions that do not wait for each other: more than latency times units on any core known.
const CHAINS: usize = 24;

/// Four lanes, in whatever the compiler makes of them.
unsafe fn fma_plain(turns: usize) -> u64 {
    let (factor, term) = (black_box([0.9f32; 4]), black_box([0.1f32; 4]));
    let mut sums = [[1f32; 4]; CHAINS / 2];
    for _ in 0..turns {
        for sum in &mut sums {
            for lane in 0..4 {
                sum[lane] = sum[lane] * factor[lane] + term[lane];
            }
        }
    }
    black_box(sums);
    (2 * 4 * (CHAINS / 2) * turns) as u64
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::CHAINS;
    use super::matrix::{AmxTiles, SIDE};
    use std::arch::x86_64::*;
    use std::hint::black_box;

    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn fma_avx512(turns: usize) -> u64 {
        let (factor, term) = (_mm512_set1_ps(black_box(0.9)), _mm512_set1_ps(black_box(0.1)));
        let mut sums = [_mm512_set1_ps(1.0); CHAINS];
        for _ in 0..turns {
            for sum in &mut sums {
                *sum = _mm512_fmadd_ps(*sum, factor, term);
            }
        }
        black_box(sums);
        (2 * 16 * CHAINS * turns) as u64
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn fma_avx2(turns: usize) -> u64 {
        // Sixteen registers in all.
        const CHAINS: usize = 12;
        let (factor, term) = (_mm256_set1_ps(black_box(0.9)), _mm256_set1_ps(black_box(0.1)));
        let mut sums = [_mm256_set1_ps(1.0); CHAINS];
        for _ in 0..turns {
            for sum in &mut sums {
                *sum = _mm256_fmadd_ps(*sum, factor, term);
            }
        }
        black_box(sums);
        (2 * 8 * CHAINS * turns) as u64
    }

    #[target_feature(enable = "avx512f,avx512vnni")]
    pub(super) unsafe fn dot_avx512(turns: usize) -> u64 {
        let (a, b) = (_mm512_set1_epi8(black_box(3)), _mm512_set1_epi8(black_box(5)));
        let mut sums = [_mm512_setzero_si512(); CHAINS];
        for _ in 0..turns {
            for sum in &mut sums {
                *sum = _mm512_dpbusd_epi32(*sum, a, b);
            }
        }
        black_box(sums);
        (2 * 64 * CHAINS * turns) as u64
    }

    /// Four sums of tiles, as many as a product of two by two has.
    macro_rules! tiles {
        ($name:ident, $multiply:literal, $steps:literal) => {
            /// # Safety
            /// The machine has a unit that multiplies these.
            pub(super) unsafe fn $name(turns: usize) -> u64 {
                // SAFETY: the caller's promise.
                let _tiles = unsafe { AmxTiles::new() };
                // SAFETY: the registers are there.
                unsafe {
                    std::arch::asm!(
                        "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                        "tilezero tmm4", "tilezero tmm5", "tilezero tmm6", "tilezero tmm7",
                        "2:",
                        concat!($multiply, " tmm0, tmm4, tmm6"),
                        concat!($multiply, " tmm1, tmm4, tmm7"),
                        concat!($multiply, " tmm2, tmm5, tmm6"),
                        concat!($multiply, " tmm3, tmm5, tmm7"),
                        "dec {turns}",
                        "jnz 2b",
                        turns = inout(reg) turns.max(1) => _,
                        out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                        out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                        options(nostack, nomem),
                    );
                }
                (2 * 4 * SIDE * SIDE * $steps * turns) as u64
            }
        };
    }
    tiles!(tiles_bf16, "tdpbf16ps", 32);
    tiles!(tiles_i8, "tdpbssd", 64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_positive_and_the_machine_has_a_name() {
        assert!(!name().is_empty());
        assert!(peak(Operation::FmaF32, 2).is_some_and(|rate| rate.is_finite() && rate > 0.0));
        for operation in [Operation::DotI8, Operation::TilesBf16, Operation::TilesI8] {
            assert!(peak(operation, 1).is_none_or(|rate| rate.is_finite() && rate > 0.0));
        }
        assert!(copy_bandwidth(1 << 16, 2).is_finite());
    }
}
