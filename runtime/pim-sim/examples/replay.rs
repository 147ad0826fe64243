//! How long a stream's steps take, against their bounds, and the simulator for it: `replay THREADS FILE.pim ..`.
//!
//! `cargo run --release -p ptoc-pim-sim --example replay -- 2 gemv.pim`

use ptoc_pim_sim::machine::{Options, device, run};
use ptoc_pim_stream::Stream;
use std::time::Instant;

fn main() {
    let mut words = std::env::args().skip(1);
    let threads = words.next().and_then(|n| n.parse().ok()).expect("THREADS FILE.pim ..");
    for name in words {
        let bytes = std::fs::read(&name).expect("a file");
        let stream = Stream::decode(&bytes).expect("a stream");
        let config = device::config(&stream.device).expect("a device");
        let begin = Instant::now();
        let options = Options { threads, timing_only: true, ..Options::default() };
        let inputs = vec![None; stream.tensors.len()];
        let report = run(&stream, &config, inputs, options).unwrap_or_else(|e| panic!("{}", e.message)).report;
        let wall = begin.elapsed();
        let kinds = report.kinds.iter().filter(|(_, k)| k.ticks > 0);
        let kinds: Vec<String> = kinds
            .map(|(kind, k)| {
                let factor = k.bound.factor(k.ticks).map_or(String::new(), |f| format!(" {f:.3}"));
                format!("{kind} {}{factor}", report.clocks(k.ticks))
            })
            .collect();
        println!("{name}: {} ({:.2} s)", kinds.join(" | "), wall.as_secs_f64());
    }
}
