//! Run times of the examples on one thread, as ratios to limits of the machine that are measured in the same run: the
//! rate of fused multiply-adds, and `memcpy` on as many bytes. Times are of the processor: the machine may be shared.

use crate::kernels::{Case, Ready, TARGET, ready};
use std::hint::black_box;
use std::time::Duration;

use cpu_time::ProcessTime;
use ptoc_exec::machine::{self, Operation};

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

/// The least of a few times: other work only ever slows it down.
fn least(times: &[Duration]) -> f64 {
    times.iter().min().map_or(f64::MAX, Duration::as_secs_f64)
}

fn time(f: impl FnOnce()) -> Duration {
    let start = ProcessTime::now();
    f();
    start.elapsed()
}

/// The table.
pub fn table(read: &dyn Fn(&str) -> Option<String>) {
    let peak = machine::peak(Operation::FmaF32, 1).unwrap_or(f64::NAN);
    println!("\n{}, one thread", machine::name());
    println!("\n| kernel | shape | ms | speed | limit | ratio |\n|---|---|--:|--:|--:|--:|");
    for row in rows() {
        // Another directory's programs may lack some.
        let Some(text) = read(row.file).filter(|t| t.contains(&format!("kernel {}<", row.kernel))) else { continue };
        let case = Case { path: row.file, kernel: row.kernel, dims: row.dims, defs: row.defs, target: TARGET };
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
