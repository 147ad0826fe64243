//! How long the simulator takes for TransPlat as the design states it: 2048 queries of 512 samples, 128 channels, on
//! 512 units.
//!
//! `cargo run --release -p ptoc-pim-sim --example geopim`

use ptoc_pim_sim::dram::{Config, Refresh};
use ptoc_pim_sim::units::geopim::{Banks, Border, GeoPimKernel, Job, Map, MapPlace, Order, Start, UnitConfig, run};
use ptoc_pim_stream::register::Parameters;
use std::collections::HashMap;
use std::time::Instant;

/// Banks that hold one map and rows of their own.
struct Memory {
    map: Vec<[u8; 32]>,
    own: HashMap<(usize, u64), [u8; 32]>,
}

impl Banks for Memory {
    fn read(&self, bank: usize, burst: u64) -> [u8; 32] {
        match burst.checked_sub(ORIGIN).and_then(|n| self.map.get(n as usize)) {
            Some(bytes) => *bytes,
            None => self.own.get(&(bank, burst)).copied().unwrap_or_default(),
        }
    }

    fn write(&mut self, bank: usize, burst: u64, bytes: &[u8; 32]) {
        self.own.insert((bank, burst), *bytes);
    }
}

const ORIGIN: u64 = 1 << 16;

fn main() {
    let config = Config::preset("hbm2_2000").expect("a preset");
    let half = |x: f32| half::f16::from_f32(x).to_bits();
    let map = Map { width: 32, height: 32, channels: 128, base: 0, border: Border::Clamp };
    let mut seed = 7u64;
    let mut random = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 40) as f32 / (1u64 << 24) as f32
    };
    for (fold, order) in [(true, Order::NeighbourMajor), (true, Order::TileMajor), (false, Order::TileMajor)] {
        let kernel = GeoPimKernel { unit: UnitConfig::default(), map, fold, order, replicated: true };
        let place = MapPlace::patches(&map, ORIGIN, 32);
        let (mut ticks, mut samples, mut hits, mut reads) = (0, 0, 0, 0);
        let begin = Instant::now();
        // 16 channels of 32 banks, 4 queries a unit.
        for _ in 0..16 {
            let ones = std::array::from_fn(|i| if i % 2 == 0 { 0 } else { 0x3c });
            let mut memory = Memory { map: vec![ones; 8192], own: HashMap::new() };
            let jobs: Vec<Job> = (0..32)
                .map(|bank| {
                    for q in 0..4u64 {
                        let entry = Parameters {
                            samples: 512,
                            ref_x: half(31.0 * random()),
                            ref_y: half(31.0 * random()),
                            stride_x: half((random() - 0.5) * 0.1),
                            stride_y: half((random() - 0.5) * 0.1),
                            weights: 0x10000 + 1024 * q,
                            valid: true,
                            ..Parameters::default()
                        };
                        memory.write(bank, 32 + q, &entry.encode().expect("it fits"));
                        for n in 0..32 {
                            let bytes = std::array::from_fn(|i| if i % 2 == 0 { n as u8 } else { 0x2c });
                            memory.write(bank, 0x800 + 32 * q + n, &bytes);
                        }
                    }
                    Job { bank, place: place.clone(), queries: 4, params: 1024, output: 0x8000 }
                })
                .collect();
            let start = Start { tick: 0, timed: false };
            let report = run(&config, Refresh::AllBank, &kernel, &jobs, &mut memory, start, |_| {}).expect("it runs");
            ticks = ticks.max(report.end);
            for unit in &report.units {
                samples += unit.states.samples;
                hits += unit.counts.map_hits;
                reads += unit.counts.map_reads;
            }
        }
        println!(
            "fold {fold} {order:?}: {samples} samples, {} bursts of the map, {:.1} % row hits, {:.1} us simulated, \
            {:.1} cycles a sample; took {:.2} s",
            reads,
            100.0 * hits as f64 / reads as f64,
            ticks as f64 * config.tick_ps() / 1e6,
            ticks as f64 / 2.0 / 2048.0,
            begin.elapsed().as_secs_f64()
        );
    }
}
