//! What the emitted code reaches on one thread: matrix products of one resident tile, and element-wise chains.
//!
//! `cargo run --release -p ptoc-cpu --example chain_rates [--asm]`

use ptoc_cpu::{CompiledKernel, Options, compile};
use ptoc_diagnostics::FileId;
use ptoc_exec::{LaunchArgs, TensorArg};
use ptoc_ir::loops::text;
use std::time::Instant;

/// A module whose block runs `body` on three tensors; `p0` is how often.
fn module(body: &str) -> String {
    format!(
        r#"
kernel "bench"
tensor "A"
tensor "B"
tensor "C"
arena 0
launch "launch" (r0: i64) -> () {{
}}
block "block" (r0: i64) {{
  labels 1
  r1: i64 = const 0
  for l0 r2: i64 in r1..r0 step 1 {{
    {body}
  }}
}}
"#
    )
    .replace(" -> ()", "")
}

fn contract(m: i64, n: i64, k: i64, known: bool) -> String {
    let define = |reg: u32, value: i64| {
        if known {
            format!("r{reg}: i64 = const {value}\n")
        } else {
            // Not known to the compiler: r2 is less than 2^40, so this adds 0.
            let (s, z) = (reg + 10, reg + 20);
            format!(
                "r{s}: i64 = const 40\nr{z}: i64 = shr r2, r{s}\nr{}: i64 = const {value}\n\
                r{reg}: i64 = add r{z}, r{}\n",
                reg + 30,
                reg + 30
            )
        }
    };
    format!(
        "{}{}{}contract f32 (r3, r4, r5), d f32 t2[r1] ({}, 4), start f32 t2[r1] ({}, 4), a t0[r1] ({}, 4), b t1[r1] \
        ({}, 4)",
        define(3, m),
        define(4, n),
        define(5, k),
        n * 4,
        n * 4,
        k * 4,
        n * 4
    )
}

fn build(source: &str, asm: bool) -> (CompiledKernel, f64) {
    let module = text::parse(source, FileId(0)).unwrap_or_else(|e| panic!("{e:?}\n{source}"));
    let options = Options { text: asm, ..Options::default() };
    let mut best = f64::MAX;
    let mut kernel = None;
    for _ in 0..20 {
        let start = Instant::now();
        kernel = Some(compile(&module, &options).unwrap_or_else(|e| panic!("{e:?}")));
        best = best.min(start.elapsed().as_secs_f64());
    }
    let kernel = kernel.expect("compiled above");
    if let Some(text) = kernel.text() {
        println!("{}", ptoc_cpu::listing::print(&text.code, |_| String::new()));
    }
    (kernel, best * 1e3)
}

/// Seconds for one turn of the body: the median of several runs.
fn time(kernel: &CompiledKernel, tensors: &mut [Vec<u8>], turns: i64) -> f64 {
    let args: Vec<TensorArg> = tensors.iter_mut().map(|t| TensorArg::new(t)).collect();
    let mut runs: Vec<f64> = (0..9)
        .map(|_| {
            let start = Instant::now();
            let launch = LaunchArgs { params: &[turns], tensors: &args, threads: 1, print: None };
            // SAFETY: the modules below stay inside these tensors.
            unsafe { kernel.launch(launch) }.expect("no checks");
            start.elapsed().as_secs_f64() / turns as f64
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    runs[runs.len() / 2]
}

fn main() {
    let asm = std::env::args().any(|a| a == "--asm");
    println!("{:<34} {:>9} {:>10} {:>8}", "matrix product", "GFLOP/s", "compile ms", "bytes");
    for (m, n, k) in [(128, 128, 64), (64, 64, 64), (128, 128, 128), (16, 64, 64), (30, 50, 33), (8, 128, 128)] {
        for known in [true, false] {
            let (kernel, ms) =
                build(&module(&contract(m, n, k, known)), asm && (m, n, k, known) == (128, 128, 64, true));
            let floats =
                |count: i64| (0..count).flat_map(|i| ((i % 7) as f32 * 0.01).to_le_bytes()).collect::<Vec<u8>>();
            let mut tensors = [floats(m * k), floats(k * n), floats(m * n)];
            let turns = (20_000_000 / (m * n * k)).max(1);
            let seconds = time(&kernel, &mut tensors, turns);
            let what = format!("{m} x {n} x {k}{}", if known { "" } else { ", extents unknown" });
            let rate = 2.0 * (m * n * k) as f64 / seconds / 1e9;
            println!("{what:<34} {rate:>9.1} {ms:>10.2} {:>8}", kernel.code_size());
        }
    }
    println!("{:<34} {:>9} {:>10} {:>8}", "element-wise, 4096 f32", "GB/s", "compile ms", "bytes");
    let chains = [
        ("copy", ""),
        ("a * b + a", "r20: f32 = fma r10, r11, r10"),
        (
            "max(a * b, 0) + a",
            "r18: f32 = const 0.0\nr19: f32 = mul r10, r11\nr17: f32 = max r19, r18\nr20: f32 = add r17, r10",
        ),
        ("max(a, b)", "r20: f32 = max r10, r11"),
        ("min(a, b)", "r20: f32 = min r10, r11"),
        ("round_f16(a * b)", "r19: f32 = mul r10, r11\nr20: f32 = round_f16 r19"),
        ("round_bf16(a * b)", "r19: f32 = mul r10, r11\nr20: f32 = round_bf16 r19"),
        (
            "8 chained multiply-adds",
            "r12: f32 = fma r10, r11, r10\nr13: f32 = fma r12, r11, r10\nr14: f32 = fma r13, r11, r12\n\
            r15: f32 = fma r14, r11, r10\nr16: f32 = fma r15, r11, r10\nr17: f32 = fma r16, r11, r10\n\
            r18: f32 = fma r17, r11, r10\nr20: f32 = fma r18, r11, r10",
        ),
    ];
    for (name, ops) in chains {
        let result = if ops.is_empty() { "r10" } else { "r20" };
        let second = if ops.is_empty() { "" } else { "r11: f32 = load f32 t1[r1, stride 4]" };
        let body = format!(
            "r3: i64 = const 4096\nlanes r4: i64 in r3 {{\nr10: f32 = load f32 t0[r1, stride 4]\n{second}\n{ops}\n\
            store f32 t2[r1, stride 4], {result}\n}}"
        );
        let (kernel, ms) = build(&module(&body), false);
        let mut tensors = [vec![0u8; 4096 * 4], vec![0u8; 4096 * 4], vec![0u8; 4096 * 4]];
        let seconds = time(&kernel, &mut tensors, 2000);
        let moved = 4096.0 * 4.0 * if ops.is_empty() { 2.0 } else { 3.0 };
        println!("{name:<34} {:>9.1} {ms:>10.2} {:>8}", moved / seconds / 1e9, kernel.code_size());
    }
    for (name, from, to) in [
        ("f16 -> f32", "f16", "f32"),
        ("f32 -> f16", "f32", "f16"),
        ("bf16 -> f32", "bf16", "f32"),
        ("f32 -> bf16", "f32", "bf16"),
        ("i8 -> i32", "i8", "i32"),
        ("i32 -> i8", "i32", "i8"),
    ] {
        let size = |ty: &str| match ty {
            "i8" => 1,
            "f16" | "bf16" => 2,
            _ => 4,
        };
        let reg = if from.starts_with('i') { "i32" } else { "f32" };
        let body = format!(
            "r3: i64 = const 4096\nlanes r4: i64 in r3 {{\nr10: {reg} = load {from} t0[r1, stride {}]\n\
            store {to} t2[r1, stride {}], r10\n}}",
            size(from),
            size(to)
        );
        let (kernel, ms) = build(&module(&body), false);
        let mut tensors = [vec![0u8; 4096 * 4], vec![0u8; 4], vec![0u8; 4096 * 4]];
        let seconds = time(&kernel, &mut tensors, 2000);
        println!(
            "{name:<34} {:>9.1} {ms:>10.2} {:>8}",
            4096.0 * f64::from(size(from) + size(to)) / seconds / 1e9,
            kernel.code_size()
        );
    }
}
