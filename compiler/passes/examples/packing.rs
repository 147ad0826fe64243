//! Quality and speed of the packing, on problems whose best solution is known.
//!
//! `cargo run --release -p ptoc-passes --example packing [INSTANCES [FIRST_SEED]]`

#[path = "../tests/it/cuts.rs"]
mod cuts;

use cuts::{cut, instance};
use ptoc_placement::pack::Effort;
use std::time::Instant;

/// First seed of the instances that were kept apart: nothing in the packer was chosen by them.
const HELD_OUT: u64 = 10_000;

fn main() {
    let count: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(200);
    println!("tiles      instances  optimal  median %   worst %    worst ms");
    let held_out = std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(HELD_OUT);
    for first in [0, held_out] {
        println!("seeds from {first}");
        set(first, count);
    }
    let large = (0..20).map(|seed| {
        let c = cut(seed, 1000);
        // The best of three, because a machine has other things to do.
        let times = (0..3).map(|_| {
            let begin = milliseconds();
            c.problem.solve(Effort::Much);
            milliseconds() - begin
        });
        let ms = times.fold(f64::MAX, f64::min);
        (c.excess(&c.problem.solve(Effort::Much)), c.problem.rects.len(), ms, seed)
    });
    line("1000", large.collect());
}

/// Instances with these seeds.
fn set(first: u64, count: u64) {
    let mut rows = Vec::new();
    for seed in first..first + count {
        let c = instance(seed);
        let begin = milliseconds();
        let solution = c.problem.solve(Effort::Much);
        rows.push((c.excess(&solution), c.problem.rects.len(), milliseconds() - begin, seed));
    }
    for (lo, hi) in [(0, 12), (13, 30), (31, 100), (101, 300), (301, 1000)] {
        line(&format!("{lo}..{hi}"), rows.iter().filter(|r| (lo..=hi).contains(&r.1)).copied().collect());
    }
    line("all", rows.clone());
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (excess, tiles, _, seed) in rows.iter().take(5).filter(|r| r.0 > 0.0) {
        println!("seed {seed}: {tiles} tiles, {excess:.2} %");
    }
}

/// What this thread has computed so far, where the system tells (Linux); else the time of day.
fn milliseconds() -> f64 {
    static BEGIN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let begin = *BEGIN.get_or_init(Instant::now);
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    match stat.split_whitespace().next().and_then(|n| n.parse::<f64>().ok()) {
        Some(ns) => ns / 1e6,
        None => begin.elapsed().as_secs_f64() * 1e3,
    }
}

fn line(name: &str, mut part: Vec<(f64, usize, f64, u64)>) {
    if part.is_empty() {
        return;
    }
    part.sort_by(|a, b| a.0.total_cmp(&b.0));
    let optimal = part.iter().filter(|r| r.0 <= 0.0).count();
    let slow = part.iter().map(|r| r.2).fold(0.0, f64::max);
    let (median, worst) = (part[part.len() / 2].0, part[part.len() - 1].0);
    println!("{name:10} {:9}  {optimal:7}  {median:8.2}  {worst:8.2}  {slow:10.2}", part.len());
}
