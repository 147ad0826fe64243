//! Time from loop IR to machine code, and where it goes.
//!
//! `cargo run --release -p ptoc-cpu --example compile_time FILE.loop [REPETITIONS]`, where the file is the output of
//! `ptoc emit --stage loop`.

use ptoc_cpu::{Options, compile};
use ptoc_diagnostics::FileId;
use ptoc_ir::loops::text;
use std::time::Instant;

fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().expect("a file of loop IR");
    let repetitions = args.next().map_or(100, |n| n.parse().expect("a number"));
    let source = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let module = text::parse(&source, FileId(0)).unwrap_or_else(|e| panic!("{e:?}"));
    let mut times: Vec<f64> = (0..repetitions)
        .map(|_| {
            // As if it were the first: a thread that has slept is not about to lose the processor.
            std::thread::sleep(std::time::Duration::from_millis(5));
            let start = Instant::now();
            let kernel = compile(&module, &Options::default()).unwrap_or_else(|e| panic!("{e:?}"));
            let time = start.elapsed().as_secs_f64() * 1e3;
            drop(kernel);
            time
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let kernel = compile(&module, &Options::default()).unwrap_or_else(|e| panic!("{e:?}"));
    println!("{:.2} ms at best, {:.2} in the middle, {} bytes", times[0], times[times.len() / 2], kernel.code_size());
}
