//! `std::gemm`: bits of the schedules, their roles, what they keep on chip, and the order of blocks. Results are held
//! to numpy's and to `ensures` by the lines of `tests/language/gemms.tile`.

use crate::engine::command;
use serde_json::Value;
use std::path::Path;

const SCHEDULES: [&str; 3] = ["basic", "pingpong", "cooperative"];

fn program() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("language/gemms.tile").display().to_string()
}

/// What a command prints about a kernel, as JSON.
fn json(verb: &str, kernel: &str, defs: &[&str], more: &[&str]) -> Value {
    let mut words = vec![verb.to_owned(), program(), kernel.to_owned(), "--json".to_owned()];
    words.extend(defs.iter().flat_map(|d| ["-D".to_owned(), (*d).to_owned()]));
    words.extend(more.iter().map(|w| (*w).to_owned()));
    let outcome = command(&words);
    assert_eq!(outcome.status, 0, "{words:?}: {}", outcome.err);
    serde_json::from_str(&outcome.out).expect("JSON")
}

#[test]
fn row_42_schedules_give_the_same_bits_and_show_their_roles() {
    let roles = [&["consumer", "producer"][..], &["ping", "pong", "producer"], &["left", "producer", "right"]];
    let mut bits = Vec::new();
    for (schedule, expected) in SCHEDULES.into_iter().zip(roles) {
        let defs = [&format!("schedule={schedule}")[..], "M=150", "N=233", "K=205", "BM=48", "BN=32"];
        let folder = tempfile::tempdir().expect("a folder");
        let trace = folder.path().join("trace.json").display().to_string();
        let more = ["--target", "a5", "--random", "1", "--backend", "interp", "--stats", "--trace", &trace];
        let run = json("run", "product", &defs, &more);
        bits.push(run["outputs"]["C"]["sha256"].clone());
        let trace = std::fs::read_to_string(trace).expect("a trace");
        for role in expected {
            assert!(trace.contains(&format!(" of {role}")), "{schedule}: no lane of {role}");
        }
        let pipes = run["stats"]["pipes"][0]["pipes"].as_array().expect("pipes").clone();
        let mut found: Vec<&str> = pipes.iter().filter_map(|p| p["role"].as_str()).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, expected, "{schedule}");
    }
    assert!(bits.iter().all(|b| *b == bits[0]), "{bits:?}");
}

/// Bytes of L1 that a kernel takes, and of its barriers.
fn stored(kernel: &str, defs: &[&str]) -> u64 {
    let map = json("mem", kernel, defs, &[]);
    let memories = map["memories"].as_array().expect("memories");
    let mat = memories.iter().find(|m| m["location"] == "Mat").expect("Mat");
    mat["used"].as_u64().expect("bytes") + map["barrier_bytes"].as_u64().expect("bytes")
}

#[test]
fn row_30_union_and_sum_of_storage() {
    // Two stages of A and of B in f16; two pieces of the epilogue, one for each consumer or for each stage.
    let (main, piece) = (2 * 2 * (128 * 64 + 64 * 128), 2 * 64 * 64);
    assert_eq!(stored("shared", &[]), main.max(2 * piece));
    assert_eq!(stored("shared", &["BK=16"]), (main / 4).max(2 * piece));
    // Where the epilogue is the larger one: a stage of 16 x 64 and 64 x 16.
    assert_eq!(stored("shared", &["BM=64", "BN=64", "BK=16"]), (2 * 2 * 2 * 64 * 16).max(2 * piece));
    // Ping-pong has stages of A and B for each consumer, cooperative shares those of A.
    assert_eq!(stored("apart", &["schedule=pingpong"]), 2 * main + 2 * piece);
    assert_eq!(stored("apart", &["schedule=cooperative"]), main / 2 * 3 + 2 * piece);
}

#[test]
fn rows_86_and_87_a_raster_keeps_panels_together() {
    for (swizzle, panels) in [(1, 17), (2, 10), (4, 8), (8, 10)] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("at.npy").display().to_string();
        let swizzle = format!("SWIZZLE={swizzle}");
        json("run", "order", &["R=16", "C=16", &swizzle], &["--verify", "--out", &format!("at={file}")]);
        let bytes = std::fs::read(file).expect("written");
        let words = bytes[bytes.len() - 4 * 256..].chunks(4).map(|b| i32::from_le_bytes(b.try_into().expect("four")));
        let first: Vec<usize> = words.enumerate().filter(|(_, t)| *t < 16).map(|(block, _)| block).collect();
        let distinct = |f: fn(usize) -> usize| {
            let mut all: Vec<usize> = first.iter().map(|b| f(*b)).collect();
            all.sort_unstable();
            all.dedup();
            all.len()
        };
        assert_eq!(distinct(|b| b / 16) + distinct(|b| b % 16), panels, "{swizzle}");
    }
}
