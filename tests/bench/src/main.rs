//! Benchmarks: `cargo run --release --manifest-path tests/bench/Cargo.toml [-- DIRECTORY/]`, where the directory holds
//! the programs (`examples/` unless given).
//!
//! Everything is interleaved in one run and reported as medians; speeds of kernels as ratios to a peer or a limit that
//! was measured in the same run. Nothing here asserts a time.
//!
//! With `-- pim [DIRECTORY/]`: the workloads of units in memory at full size. With `-- launches`: what a launch costs
//! on 1, 2, 4 .. threads. With `-- serve [DIRECTORY/]`: measurements on demand, for `peers/peers.py`, which sets
//! kernels beside what else an author could use.

mod kernels;
mod launches;
mod pim;
mod products;
mod runtime;
mod serve;

use kernels::{Case, TARGET, build, front, target};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// As `ptoc` has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn time(mut f: impl FnMut()) -> Duration {
    let start = Instant::now();
    f();
    start.elapsed()
}

fn ms(d: Duration) -> f64 {
    d.as_secs_f64() * 1e3
}

/// A source of about `lines` lines: one kernel after the other.
fn long_source(lines: usize) -> String {
    let kernel = "kernel add_#(a: in f32[M, N], b: in f32[M, N], c: out f32[M, N])\n    \
        ensures c[i, j] == a[i, j] + b[i, j]\n{\n    grid (i in tiles(M, 16), j in tiles(N, 64));\n    \
        let x = Vec(a.tile(i, j));\n    let y = Vec(b.tile(i, j));\n    let z = x + y;\n    \
        let w = max(z, 0.0) * 2.0;\n    let v = z - w + w;\n    TSTORE(c.tile(i, j), v);\n}\n\n";
    (0..lines / 12 + 1).map(|i| kernel.replace('#', &i.to_string())).collect()
}

fn check_time() {
    let text = long_source(1000);
    let lines = text.lines().count();
    let names: Vec<String> = (0..lines / 12).map(|i| format!("add_{i}")).collect();
    let target = target(TARGET);
    let once = || {
        let mut map = ptoc_diagnostics::SourceMap::default();
        let file = map.add("long.tile", text.as_str());
        let mut diagnostics = Vec::new();
        let modules = ptoc_names::Modules::load(file, &text, &mut ptoc_names::NoImports, &mut diagnostics);
        ptoc_names::check_names(&modules, &mut diagnostics);
        let bindings = ptoc_analysis::Bindings::default();
        for (id, _) in modules.entries() {
            let o = ptoc_analysis::instantiate(&modules, id, target, &bindings);
            let kernel = o.result.expect("the source is right").kernel;
            black_box(ptoc_passes::place(kernel, target).expect("it fits"));
        }
        assert!(diagnostics.is_empty());
    };
    once();
    let times: Vec<Duration> = (0..31).map(|_| time(&once)).collect();
    let best = times.iter().min().copied().unwrap_or_default();
    println!(
        "check of {lines} lines ({} kernels): {:.2} ms, {:.2} at best",
        names.len() + 1,
        ms(median(times)),
        ms(best)
    );
}

/// Kernels whose author orders the pipes: the search for hazards is most of it.
fn manual_times(schedules: &str) {
    let target = target(TARGET);
    for kernel in ["basic", "pingpong", "cooperative"] {
        let case = Case { path: "schedules.tile", kernel, dims: &[], defs: &[], target: TARGET };
        let once = || {
            let kernel = front(schedules, &case).kernel;
            black_box(ptoc_passes::place(kernel, target).expect("it is right"));
        };
        once();
        let times: Vec<Duration> = (0..31).map(|_| time(&once)).collect();
        let best = times.iter().min().copied().unwrap_or_default();
        println!("check of `{kernel}`, ordered by hand: {:.2} ms, {:.2} at best", ms(median(times)), ms(best));
    }
}

/// The plain f32 product among the kernels of a file.
fn product(text: &str) -> &'static str {
    if text.contains("kernel gemm_f32") { "gemm_f32" } else { "gemm" }
}

fn compile_times(gemm: &str, attention: &str) {
    let cases = [
        (
            "gemm f32",
            gemm,
            Case {
                path: "gemm.tile",
                kernel: product(gemm),
                dims: &[("M", 512), ("N", 512), ("K", 512)],
                defs: &[],
                target: TARGET,
            },
        ),
        (
            "flash attention",
            attention,
            Case {
                path: "attention.tile",
                kernel: "attention",
                dims: &[("B", 1), ("H", 2), ("S", 192), ("M", 192), ("N", 192)],
                defs: &[],
                target: TARGET,
            },
        ),
    ];
    for (name, text, case) in &cases {
        build(text, case);
        let times = |f: &dyn Fn()| -> Vec<Duration> { (0..31).map(|_| time(f)).collect() };
        let all = times(&|| drop(black_box(build(text, case))));
        let best = all.iter().min().copied().unwrap_or_default();
        let whole = median(all);
        let checks = median(times(&|| drop(black_box(front(text, case)))));
        let passes = median(times(&|| drop(black_box(kernels::middle(text, case)))));
        println!(
            "{name}: source to machine code {:.2} ms, {:.2} at best (front end {:.2}, passes {:.2}, Cranelift {:.2})",
            ms(whole),
            ms(best),
            ms(checks),
            ms(passes) - ms(checks),
            ms(whole) - ms(passes)
        );
    }
}

fn main() {
    let mut words = std::env::args().skip(1).peekable();
    let pim = words.next_if(|w| w == "pim").is_some();
    let serve = words.next_if(|w| w == "serve").is_some();
    if words.next_if(|w| w == "launches").is_some() {
        return launches::table();
    }
    let dir = words.next().unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/").into());
    if pim {
        return pim::table(&dir, 3);
    }
    if serve {
        return serve::serve(&dir);
    }
    let read = |n: &str| std::fs::read_to_string(format!("{dir}{n}")).unwrap_or_else(|e| panic!("examples/{n}: {e}"));
    let (gemm, attention) = (read("gemm.tile"), read("attention.tile"));
    check_time();
    manual_times(&read("schedules.tile"));
    compile_times(&gemm, &attention);
    products::table(&gemm);
    runtime::table(&|n| std::fs::read_to_string(format!("{dir}{n}")).ok());
}
