//! Run times of the examples on one thread, as ratios to limits of the machine that are measured in the same run: the
//! rate of fused multiply-adds, and `memcpy` on as many bytes. Times are of the thread's own clock where there is one:
//! the machine may be shared.

use crate::kernels::{Case, Ready, ready};
use std::hint::black_box;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What bounds a kernel.
enum Work {
    /// Floating-point operations.
    Flops(f64),
    /// Bytes that must be read and written.
    Bytes(f64),
}

struct Row {
    name: &'static str,
    file: &'static str,
    kernel: &'static str,
    shape: &'static str,
    dims: &'static [(&'static str, i64)],
    defs: &'static [(&'static str, &'static str)],
    work: Work,
}

const FLOAT: f64 = 4.0;

fn rows() -> Vec<Row> {
    let cube = 2.0 * 512f64.powi(3);
    // Every query meets every key: twice 2 x 64 operations; causal, half of that.
    let scores = 8.0 * 1024.0 * 1024.0 * 64.0 * 4.0;
    let square = |tensors: f64| Work::Bytes(tensors * 1024.0 * 1024.0 * FLOAT);
    let flat = |tensors: f64| Work::Bytes(tensors * 256.0 * 4096.0 * FLOAT);
    let heads = &[("B", 1), ("H", 8), ("S", 1024), ("M", 1024), ("N", 1024)];
    let cubic = &[("M", 512), ("N", 512), ("K", 512)];
    let long = &[("M", 256), ("N", 4096)];
    vec![
        Row {
            name: "attention",
            file: "attention.tile",
            kernel: "attention",
            shape: "H 8, S 1024, D 64, f16",
            dims: heads,
            defs: &[("CAUSAL", "false")],
            work: Work::Flops(scores),
        },
        Row {
            name: "attention, causal",
            file: "attention.tile",
            kernel: "attention",
            shape: "H 8, S 1024, D 64, f16",
            dims: heads,
            defs: &[],
            work: Work::Flops(scores / 2.0),
        },
        Row {
            name: "linear + ReLU",
            file: "gemm.tile",
            kernel: "gemm_bias_act",
            shape: "512^3, f32",
            dims: cubic,
            defs: &[],
            work: Work::Flops(cube),
        },
        Row {
            name: "GEMM",
            file: "gemm.tile",
            kernel: "gemm_f16",
            shape: "512^3, f16",
            dims: cubic,
            defs: &[],
            work: Work::Flops(cube),
        },
        Row {
            name: "softmax",
            file: "softmax.tile",
            kernel: "softmax_long",
            shape: "256 x 4096, f32",
            dims: long,
            defs: &[],
            work: flat(2.0),
        },
        Row {
            name: "RMSNorm",
            file: "rmsnorm.tile",
            kernel: "rmsnorm",
            shape: "256 x 4096, f32",
            dims: long,
            defs: &[],
            work: flat(2.0),
        },
        Row {
            name: "layer norm",
            file: "layernorm.tile",
            kernel: "layernorm",
            shape: "256 x 4096, f32",
            dims: long,
            defs: &[],
            work: flat(2.0),
        },
        Row {
            name: "addition",
            file: "add.tile",
            kernel: "add_auto",
            shape: "1024 x 1024, f32",
            dims: &[("M", 1024), ("N", 1024)],
            defs: &[],
            work: square(3.0),
        },
        Row {
            name: "SiLU",
            file: "elementwise.tile",
            kernel: "map",
            shape: "1024 x 1024, f32",
            dims: &[("M", 1024), ("N", 1024)],
            defs: &[],
            work: square(2.0),
        },
        Row {
            name: "row sums",
            file: "reduce.tile",
            kernel: "row_sums",
            shape: "1024 x 1024, f32",
            dims: &[("M", 1024), ("N", 1024)],
            defs: &[],
            work: square(1.0),
        },
    ]
}

/// f32 operations a second of one core: fused multiply-adds of the widest vectors, in registers.
fn peak() -> f64 {
    const TURNS: usize = 200_000;
    /// Twelve chains of one vector each.
    #[inline(always)]
    fn chains<const WIDTH: usize>() -> f32 {
        let (mut sums, factor, term) = ([[1f32; WIDTH]; 12], black_box([0.9f32; WIDTH]), black_box([0.1f32; WIDTH]));
        for _ in 0..TURNS {
            for sum in &mut sums {
                for lane in 0..WIDTH {
                    sum[lane] = sum[lane].mul_add(factor[lane], term[lane]);
                }
            }
        }
        sums.iter().flatten().sum()
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,fma")]
    fn avx512() -> f32 {
        use std::arch::x86_64::*;
        let mut sums = [_mm512_set1_ps(1.0); 12];
        let (factor, term) = (_mm512_set1_ps(black_box(0.9)), _mm512_set1_ps(black_box(0.1)));
        for _ in 0..TURNS {
            for sum in &mut sums {
                *sum = _mm512_fmadd_ps(*sum, factor, term);
            }
        }
        sums.into_iter().map(|sum| _mm512_reduce_add_ps(sum)).sum()
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn avx2() -> f32 {
        chains::<8>()
    }
    let mut best = 0f64;
    for _ in 0..9 {
        let mut lanes = 4.0;
        let t = time(|| {
            #[cfg(target_arch = "x86_64")]
            {
                if std::is_x86_feature_detected!("avx512f") {
                    lanes = 16.0;
                    // SAFETY: just detected.
                    black_box(unsafe { avx512() });
                    return;
                }
                if std::is_x86_feature_detected!("fma") {
                    lanes = 8.0;
                    // SAFETY: just detected.
                    black_box(unsafe { avx2() });
                    return;
                }
            }
            black_box(chains::<4>());
        });
        best = best.max(2.0 * 12.0 * lanes * TURNS as f64 / t.as_secs_f64());
    }
    best
}

/// The thread's time so far.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn clock() -> Duration {
    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanoseconds: i64,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: i32, now: *mut Timespec) -> i32;
    }
    const CLOCK_THREAD_CPUTIME_ID: i32 = 3;
    let mut now = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: the record is that of a 64-bit Linux.
    unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &mut now) };
    Duration::new(now.seconds as u64, now.nanoseconds as u32)
}

/// The time so far.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn time(f: impl FnOnce()) -> Duration {
    let start = clock();
    f();
    clock().saturating_sub(start)
}

/// The least of a few times: other work only ever slows it down.
fn least(times: &[Duration]) -> f64 {
    times.iter().min().map_or(f64::MAX, Duration::as_secs_f64)
}

/// Today's date.
fn date() -> String {
    let days = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() / 86400) as i64;
    // Days from March 1st of year 0 on; H. Hinnant, chrono-compatible low-level date algorithms.
    let z = days + 719_468;
    let (era, day) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    format!("{}-{month:02}-{date:02}", era * 400 + year + i64::from(month <= 2))
}

/// The processor's name.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|l| l.strip_prefix("model name")?.split_once(':').map(|x| x.1.trim().to_owned()));
    let mut name = name.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx512f") {
        name += ", AVX-512";
    }
    name
}

/// The table.
pub fn table(read: &dyn Fn(&str) -> Option<String>) {
    let peak = peak();
    println!("\n{}, {}, one thread", machine(), date());
    println!("\n| kernel | shape | ms | speed | limit | ratio |\n|---|---|--:|--:|--:|--:|");
    for row in rows() {
        // Another directory's programs may lack some.
        let Some(text) = read(row.file).filter(|t| t.contains(&format!("kernel {}<", row.kernel))) else { continue };
        let case = Case { path: row.file, kernel: row.kernel, dims: row.dims, defs: row.defs };
        let mut ours: Ready = ready(&text, &case);
        let (mut from, mut to) = (Vec::new(), Vec::new());
        if let Work::Bytes(bytes) = row.work {
            from = vec![1u8; bytes as usize / 2];
            to = vec![0u8; bytes as usize / 2];
        }
        let (mut times, mut copies) = (Vec::new(), Vec::new());
        for _ in 0..25 {
            times.push(time(|| ours.run(1)));
            copies.push(time(|| to.copy_from_slice(black_box(&from))));
            black_box(&to);
        }
        let t = least(&times);
        let ms = t * 1e3;
        let (speed, unit, limit) = match row.work {
            Work::Flops(flops) => (flops / t, "GFLOP/s", peak),
            Work::Bytes(bytes) => (bytes / t, "GB/s", bytes / least(&copies)),
        };
        println!(
            "| {} | {} | {ms:.2} | {:.1} {unit} | {:.1} | {:.3} |",
            row.name,
            row.shape,
            speed / 1e9,
            limit / 1e9,
            speed / limit
        );
    }
}
