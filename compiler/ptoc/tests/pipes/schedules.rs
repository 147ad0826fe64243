//! The three schedules of `examples/schedules.tile`.

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
    let call = "run schedules.tile cooperative --random 1 -D M=64 -D N=128 -D K=128 --backend interp --stats --json \
        --trace t.json";
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

/// The same exponentials in one role, in two and in four.
const SHARED: &str = "\
#[sync(manual)]
kernel one(x: in f32[64, 128], y: out f32[64, 128], z: out f32[64, 128]) {
    let a, b = tile Vec<f32, 64, 128>;
    let l = event<MTE2, V>[2]; let d = event<V, MTE3>[2];
    TLOAD(a, x); set(l[0]); TLOAD(b, x); set(l[1]);
    wait(l[0]); for k in 0..16 { TEXP(a, a); barrier(V); } set(d[0]);
    wait(l[1]); for k in 0..16 { TEXP(b, b); barrier(V); } set(d[1]);
    wait(d[0]); TSTORE(y, a); wait(d[1]); TSTORE(z, b);
}

#[sync(manual)]
kernel two(x: in f32[64, 128], y: out f32[64, 128], z: out f32[64, 128]) {
    let a, b = tile Vec<f32, 64, 128>;
    role p {
        let l = event<MTE2, V>; let d = event<V, MTE3>;
        TLOAD(a, x); set(l); wait(l); for k in 0..16 { TEXP(a, a); barrier(V); } set(d); wait(d); TSTORE(y, a);
    }
    role q {
        let l = event<MTE2, V>; let d = event<V, MTE3>;
        TLOAD(b, x); set(l); wait(l); for k in 0..16 { TEXP(b, b); barrier(V); } set(d); wait(d); TSTORE(z, b);
    }
}

#[sync(manual)]
kernel four(x: in f32[128, 128], y: out f32[128, 128]) {
    let t = tile Vec<f32, 32, 128>[4]; let h = tiles(128, 32);
    role p { let l = event<MTE2, V>; let d = event<V, MTE3>; TLOAD(t[0], x.tile(h[0], _)); set(l); wait(l);
        for k in 0..16 { TEXP(t[0], t[0]); barrier(V); } set(d); wait(d); TSTORE(y.tile(h[0], _), t[0]); }
    role q { let l = event<MTE2, V>; let d = event<V, MTE3>; TLOAD(t[1], x.tile(h[1], _)); set(l); wait(l);
        for k in 0..16 { TEXP(t[1], t[1]); barrier(V); } set(d); wait(d); TSTORE(y.tile(h[1], _), t[1]); }
    role r { let l = event<MTE2, V>; let d = event<V, MTE3>; TLOAD(t[2], x.tile(h[2], _)); set(l); wait(l);
        for k in 0..16 { TEXP(t[2], t[2]); barrier(V); } set(d); wait(d); TSTORE(y.tile(h[2], _), t[2]); }
    role s { let l = event<MTE2, V>; let d = event<V, MTE3>; TLOAD(t[3], x.tile(h[3], _)); set(l); wait(l);
        for k in 0..16 { TEXP(t[3], t[3]); barrier(V); } set(d); wait(d); TSTORE(y.tile(h[3], _), t[3]); }
}
";

/// Roles share the core's units: more of them fill what one leaves idle, and no more than that.
#[test]
fn roles_share_units() {
    let s = sandbox();
    s.file("shared.tile", SHARED);
    let mut all = Vec::new();
    for kernel in ["one", "two", "four"] {
        let run =
            json(&s, &format!("run shared.tile {kernel} --random 1 --backend interp --stats --json --trace t.json"));
        let model = &run["stats"]["pipes"][0];
        let number = |value: &Value| value.as_u64().unwrap();
        let block = number(&model["block_cycles"]);
        let of = |pipe: &str| {
            let roles = model["pipes"].as_array().unwrap().iter().filter(|p| p["pipe"] == pipe);
            roles.map(|p| number(&p["busy_cycles"])).sum::<u64>()
        };
        for unit in model["units"].as_array().unwrap() {
            let busy = number(&unit["busy_cycles"]);
            assert_eq!(busy, of(unit["unit"].as_str().unwrap()), "{kernel}: {model}");
            assert!(busy <= block, "{kernel}: {unit} of {block}");
        }
        assert_eq!(of("V"), 2 * 16 * 128, "{kernel}: 32 KiB at 256 bytes a cycle, 32 times");
        all.push(block);
        // Who had a unit when, one after the other.
        let trace: Value = serde_json::from_slice(&std::fs::read(s.path().join("t.json")).unwrap()).unwrap();
        let mut lanes: std::collections::BTreeMap<u64, Vec<(f64, f64)>> = std::collections::BTreeMap::new();
        for e in trace["traceEvents"].as_array().unwrap().iter().filter(|e| e["pid"] == 2 && e["ph"] == "X") {
            let begin = e["ts"].as_f64().unwrap();
            lanes.entry(number(&e["tid"])).or_default().push((begin, begin + e["dur"].as_f64().unwrap()));
            let named = e["name"].as_str().unwrap().contains(" of ");
            assert_eq!((named, e["args"]["role"].is_string()), (kernel != "one", kernel != "one"), "{e}");
        }
        assert_eq!(lanes.len(), 3);
        for spans in lanes.values_mut() {
            spans.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(spans.windows(2).all(|w| w[0].1 <= w[1].0 + 1e-9), "{kernel}: {spans:?}");
        }
    }
    // One role waits at its barriers, and two hide that from each other; four have nothing more to hide.
    assert!(all[1] < all[0] && all[1].abs_diff(all[2]) < 600, "{all:?}");
    let text = s.run("run shared.tile two --random 1 --backend interp --stats");
    insta::assert_snapshot!(&text[text.find("pipes of").expect("a model")..]);
}
