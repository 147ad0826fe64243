//! How fast the engine simulates: a request trace repeated to a million requests, under FR-FCFS, on one core.
//!
//! `cargo run --release -p ptoc-pim-sim --example throughput [TRACE.txt [REQUESTS]]`; the default trace is a stream
//! over all banks of a pseudo-channel, 32 bursts a row.

use std::time::Instant;

use ptoc_pim_sim::dram::{Address, Config, Controller, Mapping, Refresh, Request, simulate, trace};

fn main() {
    let mut args = std::env::args().skip(1);
    let config = Config::preset("hbm2_2000").expect("a preset");
    let requests = match args.next() {
        Some(path) => {
            let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
            let mut channels = trace::parse_requests(&config, &Mapping::interleaved(&config), &text)
                .unwrap_or_else(|e| panic!("{path}: {}", e[0]));
            channels.remove(0)
        }
        None => stream(),
    };
    let total: usize = args.next().map_or(1_000_000, |n| n.parse().expect("a number of requests"));
    for refresh in [Refresh::Off, Refresh::AllBank, Refresh::PerBank] {
        let controller = Controller { refresh, ..Controller::default() };
        let mut best = f64::INFINITY;
        let mut ticks = 0;
        for _ in 0..5 {
            let start = Instant::now();
            let mut sum = 0u64;
            let repeated = requests.iter().copied().cycle().take(total);
            let stats = simulate(&config, &controller, repeated, |issued| sum = sum.wrapping_add(issued.tick))
                .expect("the trace lies in the device");
            std::hint::black_box(sum);
            best = best.min(start.elapsed().as_secs_f64());
            ticks = stats.end_tick;
        }
        println!(
            "{refresh:?}: {total} requests, {ticks} ticks in {:.1} ms: {:.1} million ticks/s, {:.1} million requests/s",
            best * 1e3,
            ticks as f64 / best / 1e6,
            total as f64 / best / 1e6
        );
    }
}

/// 4096 reads: over bank groups, banks, columns, rows, in this order.
fn stream() -> Vec<Request> {
    (0..4096u32)
        .map(|i| Request {
            write: false,
            address: Address {
                pc: 0,
                bankgroup: (i % 4) as u16,
                bank: (i / 4 % 4) as u16,
                row: i / 512,
                column: i / 16 % 32,
            },
        })
        .collect()
}
