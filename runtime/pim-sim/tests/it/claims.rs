//! What GeoPIM's design claims, measured: the tables of `spec/geopim.md`, which `UPDATE_SPEC=1` writes anew.

use ptoc_pim_sim::dram::{Config, Refresh};
use ptoc_pim_sim::units::geopim::*;
use ptoc_pim_stream::register::Parameters;
use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

/// Banks that hold parameter entries; everything else is zero, as times do not depend on it.
#[derive(Default)]
struct Entries(HashMap<(usize, u64), [u8; 32]>);

impl Banks for Entries {
    fn read(&self, bank: usize, burst: u64) -> [u8; 32] {
        self.0.get(&(bank, burst)).copied().unwrap_or_default()
    }

    fn write(&mut self, _: usize, _: u64, _: &[u8; 32]) {}
}

/// What is measured.
#[derive(Clone, Copy)]
struct Setting {
    unit: UnitConfig,
    fold: bool,
    order: Order,
    patches: bool,
    faw: u32,
    refresh: Refresh,
    banks: usize,
    offsets: bool,
}

const CLAIM: Setting = Setting {
    unit: UnitConfig::DESIGN,
    fold: false,
    order: Order::TileMajor,
    patches: true,
    faw: 15,
    refresh: Refresh::Off,
    banks: 1,
    offsets: false,
};

/// A measured setting.
struct Measured {
    /// Unit cycles a sample, operands left out, and with them.
    map: f64,
    all: f64,
    /// Share of the map's accesses that found their row open.
    hits: f64,
}

/// A query of one place for each of `places`, of `samples` samples.
fn measure(s: Setting, places: &[(f32, f32)], samples: u16) -> Measured {
    let mut config = Config::preset("hbm2_2000").unwrap();
    config.timing.faw = s.faw;
    config.derive();
    let half = |x: f32| half::f16::from_f32(x).to_bits();
    let map = Map { width: 32, height: 32, channels: 128, base: 0, border: Border::Clamp };
    let kernel = GeoPimKernel { unit: s.unit, map, fold: s.fold, order: s.order, replicated: true };
    let origin = 1 << 16;
    let place = if s.patches { MapPlace::patches(&map, origin, 32) } else { MapPlace::rows(&map, origin) };
    let mut entries = Entries::default();
    let jobs: Vec<Job> = (0..s.banks)
        .map(|bank| {
            for q in 0..places.len() as u64 {
                // Every bank begins elsewhere in the list.
                let (x, y) = places[(q as usize + bank * 7) % places.len()];
                let entry = Parameters {
                    samples,
                    ref_x: half(x),
                    ref_y: half(y),
                    weights: 0x10_0000 + 2048 * q,
                    offsets: if s.offsets { 0x80_0000 + 4096 * q } else { 0 },
                    has_offsets: s.offsets,
                    valid: true,
                    ..Parameters::default()
                };
                entries.0.insert((bank, 32 + q), entry.encode().unwrap());
            }
            Job { bank, place: place.clone(), queries: places.len() as u16, params: 1024, output: 0x40_0000 }
        })
        .collect();
    let report =
        run(&config, s.refresh, &kernel, &jobs, &mut entries, Start { tick: 0, timed: false }, |_| {}).unwrap();
    let (mut map_ticks, mut all_ticks, mut work, mut hits, mut reads) = (0, 0, 0, 0, 0);
    for unit in &report.units {
        let idle = unit.ledger.of(TickLabel::Idle);
        all_ticks += report.end - report.start - idle;
        map_ticks += report.end - report.start - idle - unit.ledger.of(TickLabel::Operand);
        work += unit.states.samples;
        hits += unit.counts.map_hits;
        reads += unit.counts.map_reads;
    }
    let cycles = |ticks: u64| ticks as f64 / 2.0 / work as f64;
    Measured { map: cycles(map_ticks), all: cycles(all_ticks), hits: hits as f64 / reads as f64 }
}

/// Places of which a share lies in one row of 2 x 2 pixels, so that all tiles of a sample come from the open row; the
/// others lie in two rows, so that each of their tiles changes the row.
fn share(of_hits: usize) -> Vec<(f32, f32)> {
    (0..20).map(|n| if n * of_hits % 100 < of_hits { (12.5, 8.25) } else { (13.5, 8.25) }).collect()
}

fn scattered() -> Vec<(f32, f32)> {
    let mut seed = 1u32;
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as f32 / (1u32 << 24) as f32 * 30.0
    };
    (0..120).map(|_| (next(), next())).collect()
}

/// Cycles of a sample, by share of tiles from the open row.
fn cycles() -> String {
    let mut out = String::from("| | 100 % | 70 % | 30 % |\n|---|---|---|---|\n| claimed | 80 | 160 | 288 |\n");
    let sixteen = Setting { banks: 16, ..CLAIM };
    let rows = [
        ("one unit", CLAIM),
        ("one unit, refresh", Setting { refresh: Refresh::AllBank, ..CLAIM }),
        ("16 units of a pseudo-channel, tFAW 15", sixteen),
        ("16 units, tFAW 30", Setting { faw: 30, ..sixteen }),
        ("one unit, one half of the buffer", Setting { unit: UnitConfig { buffers: 1, ..CLAIM.unit }, ..CLAIM }),
        ("one unit, tiles of 8 channels", Setting { unit: UnitConfig { tile_channels: 8, ..CLAIM.unit }, ..CLAIM }),
        ("one unit, 300 MHz", Setting { unit: UnitConfig { clock_khz: 300_000, ..CLAIM.unit }, ..CLAIM }),
        ("one unit, folded weights", Setting { fold: true, ..CLAIM }),
        ("one unit, folded, pixel by pixel", Setting { fold: true, order: Order::NeighbourMajor, ..CLAIM }),
    ];
    for (name, setting) in rows {
        write!(out, "| {name} |").unwrap();
        for h in [100, 70, 30] {
            let clock = f64::from(setting.unit.clock_khz) / 500_000.0;
            write!(out, " {:.0} |", measure(setting, &share(h), 32).map * clock).unwrap();
        }
        out.push('\n');
    }
    out
}

/// Row hits and cycles of samples anywhere in a map of 32 x 32 pixels.
fn orders() -> String {
    let mut out = String::from("| map | order | row hits | cycles, one unit | 16 units |\n|---|---|---|---|---|\n");
    let plain = UnitConfig { group_rows: false, ..CLAIM.unit };
    for (map, patches) in [("rows of pixels", false), ("2 x 2 patches", true)] {
        for (name, unit, fold, order) in [
            ("tile by tile, neighbours in order", plain, false, Order::TileMajor),
            ("tile by tile, neighbours of a row together", CLAIM.unit, false, Order::TileMajor),
            ("tiles outermost, neighbours of a row together", CLAIM.unit, false, Order::TileOuter),
            ("pixel by pixel (folded)", CLAIM.unit, true, Order::NeighbourMajor),
        ] {
            let s = Setting { unit, fold, order, patches, ..CLAIM };
            let one = measure(s, &scattered(), 1);
            // One sample a query makes operands dear; they are left out here.
            let many = measure(Setting { banks: 16, ..s }, &scattered(), 1);
            writeln!(out, "| {map} | {name} | {:.0} % | {:.0} | {:.0} |", 100.0 * one.hits, one.map, many.map).unwrap();
        }
    }
    out
}

/// What operands add.
fn operands() -> String {
    let mut out = String::from("| | map alone | with weights | with weights and offsets |\n|---|---|---|---|\n");
    for (name, fold, order) in
        [("tile by tile", false, Order::TileMajor), ("pixel by pixel (folded)", true, Order::NeighbourMajor)]
    {
        let s = Setting { fold, order, ..CLAIM };
        let weights = measure(s, &share(100)[..3], 512);
        let offsets = measure(Setting { offsets: true, ..s }, &share(100)[..3], 512);
        writeln!(out, "| {name} | {:.1} | {:.1} | {:.1} |", weights.map, weights.all, offsets.all).unwrap();
    }
    out
}

/// Samples a second of all units against 1.24 G of a GPU (0.38 of 3.35 TB/s, 1024 bytes a sample), and what a whole
/// encoder gains.
fn speed() -> String {
    let gpu = 0.38 * 3.35e12 / 1024.0;
    let mut out = format!(
        "| | cycles a sample | 512 units | 1536 units | encoder, 22 to 25 % sampling, 1536 units |\n\
        |---|---|---|---|---|\n| a GPU: 38 % of 3.35 TB/s, 1024 B a sample | | {:.2} G/s | | |\n",
        gpu / 1e9
    );
    let sixteen = Setting { banks: 16, offsets: true, ..CLAIM };
    let best = Setting { fold: true, order: Order::NeighbourMajor, ..sixteen };
    let rows = [
        ("claim at 100 %", 80.0),
        ("claim at 70 %", 160.0),
        ("tile by tile, all tiles from the open row, offsets", measure(sixteen, &share(100)[..2], 256).all),
        ("tile by tile, anywhere, offsets, refresh", {
            let s = Setting { refresh: Refresh::AllBank, ..sixteen };
            measure(s, &scattered()[..24], 32).all
        }),
        ("pixel by pixel, anywhere, offsets, refresh", {
            let s = Setting { refresh: Refresh::AllBank, ..best };
            measure(s, &scattered()[..24], 32).all
        }),
    ];
    for (name, cycles) in rows {
        let gain = |units: f64| units * 0.5e9 / cycles / gpu;
        let whole = |part: f64| 1.0 / (1.0 - part + part / gain(1536.0));
        writeln!(
            out,
            "| {name} | {cycles:.0} | {:.1} x | {:.1} x | {:.2} to {:.2} x |",
            gain(512.0),
            gain(1536.0),
            whole(0.22),
            whole(0.25)
        )
        .unwrap();
    }
    out
}

/// The tables stand behind lines `<!-- table NAME -->`, up to the next empty line.
#[test]
fn tables_of_the_chapter_are_current() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/geopim.md");
    let text = std::fs::read_to_string(&page).expect("UTF-8");
    let mut new = String::new();
    let (mut lines, mut seen) = (text.lines(), 0);
    while let Some(line) = lines.next() {
        writeln!(new, "{line}").unwrap();
        let Some(name) = line.strip_prefix("<!-- table ").and_then(|l| l.strip_suffix(" -->")) else { continue };
        let table = match name {
            "cycles" => cycles(),
            "orders" => orders(),
            "operands" => operands(),
            "speed" => speed(),
            other => panic!("no table `{other}`"),
        };
        writeln!(new, "{table}").unwrap();
        lines.by_ref().find(|l| l.is_empty());
        seen += 1;
    }
    assert_eq!(seen, 4);
    if std::env::var_os("UPDATE_SPEC").is_some() {
        std::fs::write(&page, new).expect("it can be written");
    } else {
        assert!(new == text, "`UPDATE_SPEC=1 cargo test -p ptoc-pim-sim claims` writes spec/geopim.md anew");
    }
}
