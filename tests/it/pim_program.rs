//! Programs on the backend `pim`: one command stream, the same bits as on the interpreter, and every command of the
//! memory by the rules (a run with `--trace` is held to them). `tests/pim/programs.tile` and the language's own
//! programs.

use crate::engine::{Outcome, command};
use proptest::prelude::*;
use ptoc_pim_stream::Stream;
use ptoc_pim_stream::stream::{Action, Role};
use ptoc_tensor::npy;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("pim/programs.tile")
}

fn language(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("language").join(name)
}

fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pim_program");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    folder.join(name)
}

fn call(verb: &str, path: &Path, program: &str, target: &str, defs: &[(&str, u32)], more: &[&str]) -> Outcome {
    let mut words = vec![verb.to_owned(), path.display().to_string(), program.to_owned()];
    words.extend(["--target", target].into_iter().chain(more.iter().copied()).map(str::to_owned));
    defs.iter().for_each(|(n, v)| words.extend(["-D".to_owned(), format!("{n}={v}")]));
    command(&words)
}

/// The stream of a program.
fn stream(path: &Path, program: &str, target: &str, defs: &[(&str, u32)]) -> Stream {
    let o = call("emit", path, program, target, defs, &["--stage", "pim"]);
    assert_eq!(o.status, 0, "{program} {defs:?}: {}", o.err);
    Stream::parse(&o.out).unwrap_or_else(|e| panic!("{e}")).stream
}

fn kinds(stream: &Stream) -> Vec<&'static str> {
    stream.steps.iter().map(|s| s.action.name()).collect()
}

/// Both backends give the same bits, and the timeline's commands keep the rules; the statistics of the units' run.
fn agree(path: &Path, program: &str, target: &str, defs: &[(&str, u32)]) -> Value {
    let trace = scratch(&format!("{program}.json")).display().to_string();
    let [interp, pim] = [&["interp"][..], &["pim", "--trace", &trace]].map(|backend| {
        let more = [&["--random", "5", "--json", "--backend"][..], backend].concat();
        let o = call("run", path, program, target, defs, &more);
        assert_eq!(o.status, 0, "{program} {defs:?}: {}", o.err);
        serde_json::from_str::<Value>(&o.out).expect("JSON")
    });
    assert_eq!(interp["outputs"], pim["outputs"], "{program} {defs:?}");
    let timeline: Value = serde_json::from_str(&std::fs::read_to_string(trace).expect("written")).expect("JSON");
    let events = timeline["traceEvents"].as_array().expect("events");
    assert!(events.iter().any(|e| e["args"]["name"] == "launches"), "one timeline for all launches");
    let stats = pim["stats"].clone();
    let launches = stats["launches"].as_array().expect("launches");
    let sum: u64 = launches.iter().map(|l| l["cycles"].as_u64().expect("cycles")).sum();
    assert_eq!(Some(sum), stats["cycles"].as_u64(), "the launches share the time");
    stats
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases(3, 8)))]

    /// Sizes that fill neither bursts nor units.
    #[test]
    fn the_same_bits_as_the_interpreter(n in 1u32..5000, (m, k) in (1u32..50, 1u32..120)) {
        for program in ["chain", "hosted", "sums", "windowed"] {
            agree(&programs(), program, "hbm-pim", &[("N", n)]);
        }
        for program in ["turned", "turned_first", "turned_window"] {
            agree(&programs(), program, "hbm-pim", &[("M", m), ("N", k)]);
        }
    }

    /// Channel-first maps, which a relayout turns, of several sizes.
    #[test]
    fn maps_that_are_turned(
        (b, q, s) in (1u32..3, 1u32..12, 1u32..20),
        (h, w, c) in prop::sample::select(vec![(2u32, 2u32, 16u32), (4, 6, 32), (8, 8, 128), (6, 10, 64)]),
    ) {
        let defs = [("B", b), ("H", h), ("W", w), ("C", c), ("Q", q), ("S", s)];
        agree(&programs(), "two_levels", "geopim", &defs);
    }
}

#[test]
fn the_languages_programs() {
    agree(&language("hbm_gemv.tile"), "gemv", "hbm-pim", &[("N", 128), ("K", 256), ("PCH", 2)]);
    let sizes = [("B", 1), ("H", 8), ("W", 8), ("C", 128), ("Q", 9), ("S", 16)];
    let stats = agree(&language("geo_sample.tile"), "sample", "geopim", &sizes);
    let turn = &stats["launches"][0];
    assert_eq!((&turn["kernel"], &turn["host"]), (&"nchw_to_nhwc".into(), &false.into()));
    assert!(turn["kinds"]["relayout"]["cycles"].as_u64() > Some(0), "{turn}");
}

/// Arrays stay in the memory: inputs are written when they are first wanted, tensors of the program are neither written
/// nor read.
#[test]
fn what_moves() {
    let s = stream(&programs(), "chain", "hbm-pim", &[("N", 5000)]);
    // The third launch has smaller blocks: its operands lie otherwise. The host has `a`, and nobody but the memory has
    // `u`.
    let wanted = ["launch", "write", "exec", "launch", "write", "exec", "launch", "move", "write", "exec", "read"];
    assert_eq!(kinds(&s), wanted);
    let temp = |n: u32| s.tensors[n as usize].role == Role::Temp;
    for step in &s.steps {
        match &step.action {
            Action::Write(t) | Action::Read(t) => assert!(!temp(t.tensor)),
            Action::Move { tensor, .. } => assert_eq!(s.tensors[*tensor as usize].name, "u"),
            _ => {}
        }
        assert!(step.place.file == 1 && step.place.line > 0, "{:?}", step.action.name());
    }
    let s = stream(&programs(), "turned", "hbm-pim", &[("M", 37), ("N", 100)]);
    assert_eq!(kinds(&s), ["launch", "write", "exec", "launch", "relayout", "launch", "write", "exec", "read"]);
    // What is with the host and is wanted by the host is the host's.
    let s = stream(&programs(), "turned_first", "hbm-pim", &[("M", 3), ("N", 5)]);
    assert_eq!(kinds(&s), ["launch", "host", "launch", "host"]);
    let s = stream(&programs(), "hosted", "hbm-pim", &[("N", 100)]);
    let hosts: Vec<(&str, &[u32], &[u32])> = s
        .steps
        .iter()
        .filter_map(|s| match &s.action {
            Action::Host(h) => Some((&h.kernel[..], &h.reads[..], &h.writes[..])),
            _ => None,
        })
        .collect();
    assert_eq!(hosts, [("curve", &[4][..], &[5][..]), ("curve", &[2], &[3])]);
}

/// A window is filled in the memory, and laid back by the host.
#[test]
fn windows_are_arrays_of_their_own() {
    let s = stream(&programs(), "turned_window", "hbm-pim", &[("M", 37), ("N", 100)]);
    let of = |name: &str| s.tensors.iter().filter(|t| t.name.starts_with(name)).count();
    assert_eq!((of("a.window"), of("y.window")), (3, 3));
    let relayouts = s.steps.iter().filter(|s| matches!(s.action, Action::Relayout(_))).count();
    assert!(relayouts >= 4, "{}", s.to_text());
    let hosts = s.steps.iter().filter_map(|s| match &s.action {
        Action::Host(h) => Some(h.kernel.as_str()),
        _ => None,
    });
    assert_eq!(hosts.collect::<Vec<_>>(), ["lay_back_window", "lay_back_window"]);
}

/// What one launch says of a tensor's place binds no other one: where the units cannot take it there, it is placed for
/// them and moved.
#[test]
fn places_that_another_launch_wants() {
    agree(&programs(), "placed_later", "hbm-pim", &[]);
    let s = stream(&programs(), "placed_later", "hbm-pim", &[]);
    assert_eq!(kinds(&s), ["launch", "write", "exec", "launch", "exec", "read", "launch", "move", "exec", "read"]);
    let moved = s.steps.iter().find_map(|step| match &step.action {
        Action::Move { tensor, .. } => Some(&s.tensors[*tensor as usize].name[..]),
        _ => None,
    });
    assert_eq!(moved, Some("t"));
}

/// Rows of arrays that live at the same time are apart, and are used again when nobody needs them any more.
#[test]
fn rows_are_used_again() {
    let mut text = std::fs::read_to_string(programs()).expect("there");
    text += "program long(a: in f16[N], y: out f16[N]) {\n    let t0 = tensor f16[N];\n    scale(a, t0);\n";
    for n in 1..20 {
        text += &format!("    let t{n} = tensor f16[N];\n    scale(t{}, t{n}, s = 1.25);\n", n - 1);
    }
    text += "    add(t19, a, y);\n}\n";
    let path = scratch("long.tile");
    std::fs::write(&path, text).expect("written");
    agree(&path, "long", "hbm-pim", &[("N", 700)]);
    let s = stream(&path, "long", "hbm-pim", &[("N", 700)]);
    let rows = s.to_text();
    assert!(!rows.contains("row=4"), "three arrays live at a time:\n{rows}");
}

/// A program without kernels of the host in a file: `ptoc sim` gives what `ptoc run` gives. One with them it cannot
/// execute.
#[test]
fn the_stream_in_a_file() {
    let (m, n) = (19, 40);
    let defs = [("M", m), ("N", n)];
    let file = |name: &str| scratch(name).display().to_string();
    let (pim, text) = (file("turned.pim"), file("turned.txt"));
    for to in [&pim, &text] {
        let o = call("emit", &programs(), "turned", "hbm-pim", &defs, &["--stage", "pim", "-o", to]);
        assert_eq!(o.status, 0, "{}", o.err);
    }
    let mut inputs = Vec::new();
    for (name, shape) in [("a", [m, n]), ("b", [n, m])] {
        let array = ptoc_tensor::random(ptoc_tensor::DType::F16, &shape.map(|e| e as usize), 3, name).expect("small");
        let path = file(&format!("{name}.npy"));
        std::fs::write(&path, npy::write(&array)).expect("written");
        inputs.extend(["--in".to_owned(), format!("{name}={path}")]);
    }
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    let results = ["run.npy", "pim.npy", "txt.npy"].map(file);
    let out = results.each_ref().map(|r| format!("y={r}"));
    let run = [&["--backend", "pim", "--out", &out[0]][..], &inputs].concat();
    let o = call("run", &programs(), "turned", "hbm-pim", &[], &run);
    assert_eq!(o.status, 0, "{}", o.err);
    for (stream, out) in [(&pim, &out[1]), (&text, &out[2])] {
        let o = command(&[&["sim", stream, "--stats", "--out", out][..], &inputs].concat());
        assert_eq!(o.status, 0, "{}", o.err);
        for launch in ["scale2", "turn", "add2"] {
            assert!(o.out.lines().any(|l| l.trim_start().starts_with(launch) && l.contains("cycles")), "{}", o.out);
        }
    }
    let [first, second, third] = results.map(|r| std::fs::read(r).expect("written"));
    assert!(first == second && second == third);
}

/// A map in regions with a halo: overlapping loops of relayouts, and a map for each unit. The same numbers as with a
/// map in every bank, but for lines that begin elsewhere and round otherwise.
#[test]
fn regions_with_a_halo() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/regions.tile");
    let sizes = [("C", 32), ("H", 12), ("W", 6), ("Q", 13), ("S", 5), ("HALO", 3)];
    let regions = [&sizes[..], &[("R", 3), ("QR", 16)]].concat();
    agree(&path, "by_region", "geopim", &regions);
    let s = stream(&path, "by_region", "geopim", &regions);
    let text = s.to_text();
    // Twice 7 rows that repeat the border and 3 that do not, or in one piece with them, and the region between.
    assert_eq!(kinds(&s).iter().filter(|k| **k == "relayout").count(), 5, "{text}");
    assert!(text.contains("start") && text.contains(":0:") && text.contains("map=patches items=own"), "{text}");
    assert!(!text.contains("replicated"), "{text}");
    let results = [("by_region", &regions[..]), ("whole", &sizes[..])].map(|(program, sizes)| {
        let file = scratch(&format!("{program}.npy"));
        let out = format!("y={}", file.display());
        let o = call("run", &path, program, "geopim", sizes, &["--random", "4", "--out", &out]);
        assert_eq!(o.status, 0, "{}", o.err);
        let array = npy::read(&std::fs::read(file).expect("written"), None).expect("an array");
        (0..array.len()).map(|n| ptoc_tensor::scalar::f16_to_f32(array.get_bits(n) as u16)).collect::<Vec<f32>>()
    });
    let [cut, whole] = results;
    let size: f32 = whole.iter().map(|x| x.abs()).sum();
    let apart: f32 = cut.iter().zip(&whole).map(|(a, b)| (a - b).abs()).sum();
    assert!(size > 0.0 && apart < 0.02 * size, "{apart} of {size}");
    // Two units for an item would need two copies of it.
    let text = std::fs::read_to_string(&path).expect("there");
    let two = text.replace(
        "grid (r in 0..R) on (R) : (1@unit);\n    for i in 0..Q {",
        "grid (r in 0..R, q in tiles(Q, 8)) on (R, Q / 8) : ((Q / 8)@unit, 1@unit);\n    for i in q {",
    );
    assert_ne!(text, two);
    let wrong = scratch("two_units.tile");
    std::fs::write(&wrong, two).expect("written");
    let o = call("emit", &wrong, "by_region", "geopim", &regions, &["--stage", "pim"]);
    assert!(o.status == 1 && o.err.contains("E1322"), "{}{}", o.out, o.err);
}

/// What streams say of the host's kernels is not enough to execute them.
#[test]
fn kernels_of_the_host() {
    let path = scratch("gemv.pim").display().to_string();
    let sizes = [("N", 64), ("K", 256), ("PCH", 1)];
    let o = call("emit", &language("hbm_gemv.tile"), "gemv", "hbm-pim", &sizes, &["--stage", "pim", "-o", &path]);
    assert_eq!(o.status, 0, "{}", o.err);
    let o = command(&["sim", &path]);
    assert!(o.status == 1 && o.err.contains("E1225") && o.err.contains("`sum_lanes`"), "{}{}", o.out, o.err);
    let o = call("emit", &language("hbm_gemv.tile"), "sum_lanes", "hbm-pim", &[("N", 64)], &["--stage", "pim"]);
    assert!(o.err.contains("E1320") && o.err.contains("the host's"), "{}", o.err);
    // A failure of the host's kernel is told as everywhere.
    let text = std::fs::read_to_string(programs()).expect("there");
    let text =
        text.replace("let a = tile Vec<f16, i, j>;", "let a = tile Vec<f16, i, j>;\n    assert(M < 4, \"too tall\");");
    let wrong = scratch("wrong.tile");
    std::fs::write(&wrong, text).expect("written");
    let o = call("run", &wrong, "turned", "hbm-pim", &[("M", 8), ("N", 8)], &["--random", "1", "--backend", "pim"]);
    assert!(o.status == 1 && o.err.contains("too tall"), "{}{}", o.out, o.err);
}

/// Results that later launches read and write again, arrays that nobody uses, nothing to do, and strides that no unit
/// knows.
#[test]
fn corners() {
    let text = "kernel scale(a: in f16[N], c: out f16[N], s: f16 = 2.0) {\n\
                grid (i in tiles(N, 128));\nTSTORE(c.tile(i), Vec(a.tile(i)) * s);\n}\n\
                kernel turned(a: in f16[(M, N):(1, M)], c: out f16[M, N]) {\n\
                grid (i in tiles(M, 16));\nTSTORE(c.tile(i, _), Vec(a.tile(i, _)) + 1.0);\n}\n\
                program again(a: in f16[N], b: in f16[N], y: out f16[N], z: out f16[N]) {\n\
                scale(a, y);\nscale(y, z);\nscale(a, y, s = 3.0);\n}\n";
    let path = scratch("corners.tile");
    std::fs::write(&path, text).expect("written");
    agree(&path, "again", "hbm-pim", &[("N", 300)]);
    let s = stream(&path, "again", "hbm-pim", &[("N", 300)]);
    // `a` is written once, `b` never, and `y` is read when it is written for the last time.
    assert_eq!(kinds(&s), ["launch", "write", "exec", "launch", "exec", "read", "launch", "exec", "read"]);
    let o = call("run", &programs(), "chain", "hbm-pim", &[("N", 0)], &["--backend", "pim", "--random", "1"]);
    assert!(o.status == 0 && o.out.contains("f16[0]"), "{}{}", o.out, o.err);
    let sizes = [("M", 32), ("N", 16)];
    let o = call("run", &path, "turned", "hbm-pim", &sizes, &["--backend", "pim", "--random", "1"]);
    assert!(o.status == 1 && o.err.contains("E1320") && o.err.contains("strides of `a`"), "{}{}", o.out, o.err);
}
