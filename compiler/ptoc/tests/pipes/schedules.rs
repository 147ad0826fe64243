//! The three schedules of `examples/schedules.tile` (mission table, rows 36 and 42).

use super::{Sandbox, json};
use serde_json::Value;
use std::collections::BTreeSet;

fn sandbox() -> Sandbox {
    let s = Sandbox::new();
    s.file("schedules.tile", include_str!("../../../../examples/schedules.tile"));
    s
}

fn cycles(run: &Value) -> u64 {
    run["stats"]["pipes"][0]["total_cycles"].as_u64().unwrap()
}

/// One product by steps of 64, in every schedule and in one step of all of K: the same bits.
#[test]
fn schedules_agree() {
    let s = sandbox();
    let shape = "--random 5 -D M=70 -D N=150 -D K=200 --json --exact";
    let sum = |run: &Value| run["outputs"]["C"]["sha256"].as_str().unwrap().to_owned();
    let mut sums = BTreeSet::from([sum(&json(&s, &format!("run schedules.tile basic {shape} -D BK=208")))]);
    for kernel in ["basic", "pingpong", "cooperative"] {
        sums.insert(sum(&json(&s, &format!("run schedules.tile {kernel} {shape}"))));
        for order in ["program", "late", "random:7"] {
            let call = format!("run schedules.tile {kernel} {shape} --backend interp --schedule {order}");
            sums.insert(sum(&json(&s, &call)));
        }
    }
    assert_eq!(sums.len(), 1, "{sums:?}");
}

/// A second stage lets the next load begin while this one is moved; in the model's time that shows.
#[test]
fn two_stages_take_less_time_than_one() {
    let s = sandbox();
    let shape = "-D BM=128 -D BN=256 -D M=128 -D N=256 -D K=512 --random 1";
    let of = |stages: u32| {
        let call =
            format!("run schedules.tile basic {shape} -D STAGES={stages} --backend interp --stats --json --target a5");
        cycles(&json(&s, &call))
    };
    let (one, two, three) = (of(1), of(2), of(3));
    assert!(one > two && two >= three, "{one} {two} {three}");
}

/// Who issued what is in the figures and in the trace.
#[test]
fn roles_are_lanes() {
    let s = sandbox();
    let call = "run schedules.tile cooperative --random 1 -D M=64 -D N=128 -D K=128 --backend interp --stats --json --trace t.json";
    let run = json(&s, call);
    let pipes = run["stats"]["pipes"][0]["pipes"].as_array().unwrap();
    let of = |role: &str| {
        pipes.iter().filter(|p| p["role"] == role).map(|p| p["pipe"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(of("producer"), ["MTE2"]);
    assert_eq!(of("left"), of("right"));
    assert!(of("left").contains(&"M") && of("left").contains(&"FIX"));
    let trace = std::fs::read_to_string(s.path().join("t.json")).unwrap();
    for lane in ["producer", "left", "right"] {
        assert!(trace.contains(lane), "{lane}");
    }
}
