//! GeoPIM's workloads at full size, through `ptoc run`: how long the simulation takes on this machine, and what it
//! says.
//!
//! `cargo run --release --manifest-path tests/bench/Cargo.toml -- pim [DIRECTORY/]` prints the tables of
//! `spec/geopim.md`.

use ptoc_cli::io::Io;
use serde_json::Value;
use std::time::{Duration, Instant};

/// A workload: its name, program and definitions.
type Workload = (&'static str, &'static str, &'static [&'static str]);

const TRANSPLAT: &[&str] = &["B=2", "H=32", "W=32", "Q=1024", "S=512"];
const PIXELSPLAT: &[&str] = &["B=1", "H=64", "W=64", "Q=4096", "S=32"];

const WORKLOADS: [Workload; 4] = [
    ("TransPlat", "transplat", TRANSPLAT),
    ("TransPlat, unfolded", "transplat", &["B=2", "H=32", "W=32", "Q=1024", "S=512", "FOLD=false"]),
    ("PixelSplat", "pixelsplat", PIXELSPLAT),
    ("PixelSplat, unfolded", "pixelsplat", &["B=1", "H=64", "W=64", "Q=4096", "S=32", "FOLD=false"]),
];

/// Seconds that this process has computed, where the system says it.
fn computed() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name in brackets: state is field 3, user and system time are 14 and 15, in hundredths.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some((fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?) / 100.0)
}

/// One run: how long the whole command took, what a core computed in it, and its report.
fn run(path: &str, (_, program, definitions): &Workload) -> (Duration, f64, Value) {
    let mut words =
        vec!["ptoc", "run", path, program, "--target", "geopim", "--backend", "pim", "--random", "1", "--json"];
    definitions.iter().for_each(|d| words.extend(["-D", d]));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (begin, before) = (Instant::now(), computed());
    let status = ptoc_cli::execute(words.iter().map(Into::into), &mut Io::new(&mut out, &mut err));
    let time = begin.elapsed();
    assert_eq!(status, 0, "{}", String::from_utf8_lossy(&err));
    let of_core = computed().zip(before).map_or(f64::NAN, |(now, before)| now - before);
    (time, of_core, serde_json::from_slice(&out).expect("JSON"))
}

fn number(v: &Value) -> f64 {
    v.as_f64().unwrap_or(f64::NAN)
}

fn thousands(n: f64) -> String {
    let digits = format!("{n:.0}");
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(|g| std::str::from_utf8(g).unwrap_or("")).collect();
    groups.join(",")
}

fn mega(n: f64) -> String {
    format!("{:.1} MB", n / 1e6)
}

/// The median of `rounds` runs of each workload.
pub fn table(directory: &str, rounds: usize) {
    let path = format!("{directory}sampling.tile");
    println!(
        "| | ptoc run | of it cores | cycles | units at work | row hits of the map | units read and write | samples \
        need | host path, moved and useful |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut hosts = Vec::new();
    for workload in &WORKLOADS {
        let mut runs: Vec<(Duration, f64, Value)> = (0..rounds).map(|_| run(&path, workload)).collect();
        runs.sort_by_key(|(time, ..)| *time);
        let (time, of_core, report) = &runs[rounds / 2];
        let run = &report["stats"]["report"];
        let units = run["per_unit"].as_array().expect("units");
        let of_units = |name: &str| units.iter().map(|u| number(&u[name])).sum::<f64>();
        let execute = number(&run["kinds"]["driver execute"]["cycles"]);
        let bytes = &run["bytes"];
        println!(
            "| {} | {:.1} s | {:.1} s | {} | {} | {:.1} % | {} | {} | {}, {} |",
            workload.0,
            time.as_secs_f64(),
            of_core,
            thousands(number(&run["cycles"])),
            thousands(execute),
            100.0 * of_units("map_hits") / of_units("map_reads"),
            mega(number(&bytes["unit_moved"])),
            mega(of_units("samples") * 4.0 * 128.0 * 2.0),
            mega(number(&bytes["host_moved"])),
            mega(number(&bytes["host_useful"])),
        );
        let host = &run["host_baseline"]["gathering"];
        let hits = number(&host["row_hits"]);
        let all = hits + number(&host["row_misses"]) + number(&host["row_conflicts"]);
        hosts.push(format!(
            "| {} | {} | {:.1} % | {:.1} % | {}, {} | {:.2} | {:.2} |",
            workload.0,
            thousands(number(&host["cycles"])),
            100.0 * number(&host["utilisation"]),
            100.0 * hits / all,
            mega(number(&host["bytes_moved"])),
            mega(number(&host["bytes_useful"])),
            number(&host["cycles"]) / execute,
            number(&host["cycles"]) / number(&run["cycles"]),
        ));
    }
    println!(
        "\n| host alone | cycles | data buses used | row hits | moved and useful | units at work are faster by | with \
        the way in and out |"
    );
    println!("|---|---|---|---|---|---|---|");
    hosts.iter().for_each(|line| println!("{line}"));
}
