//! Arrays that stay in a memory with units from run to run: they are there, nobody writes them, nobody else has their
//! rows, and results are the same. And what launches of a program are compared with.

use crate::engine::command;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name).display().to_string()
}

fn file(name: &str, text: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pim_resident");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    path
}

fn run(path: &str, entry: &str, more: &[&str]) -> (u8, String, Value) {
    let mut words = vec!["run", path, entry, "--target", "hbm-pim", "--random", "7", "--json"];
    words.extend(more);
    let o = command(&words);
    (o.status, o.err, serde_json::from_str(&o.out).unwrap_or_default())
}

/// Launches of programs, some of whose arrays leave rows that others take: with any of the inputs resident the bits are
/// those without, and what was written before the units began is not any more.
#[test]
fn resident_arrays_change_no_result() {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("pim/programs.tile").display().to_string();
    let gemv = example("hbm_pim.tile");
    let decoder = example("hbm_decoder.tile");
    let sizes = ["-D", "D=128", "-D", "F=200", "-D", "S=5", "-D", "E=32", "-D", "at=4"];
    let cases: [(&str, &str, &[&str], &[&str]); 6] = [
        (&gemv, "gemv", &["-D", "M=1024", "-D", "K=256"], &["A"]),
        (&gemv, "add", &["-D", "N=70000"], &["a", "b", "a,b"]),
        (&programs, "chain", &["-D", "N=20000"], &["a", "b", "a,b"]),
        (&programs, "hosted", &["-D", "N=20000"], &["a"]),
        (&programs, "turned", &["-D", "M=64", "-D", "N=64"], &["b"]),
        (&decoder, "layer", &sizes, &["wq", "wq,wk,wv,wo,gate,up,down"]),
    ];
    for (path, entry, sizes, names) in cases {
        let (status, told, plain) = run(path, entry, sizes);
        assert_eq!(status, 0, "{entry}: {told}");
        for name in names {
            let mut more = sizes.to_vec();
            more.extend(["--resident", name]);
            let (status, told, ran) = run(path, entry, &more);
            assert_eq!(status, 0, "{entry} {name}: {told}");
            assert_eq!(ran["outputs"], plain["outputs"], "{entry} {name}");
            let there = ran["stats"]["report"]["resident"].as_array().map_or(0, Vec::len);
            assert_eq!(there, name.split(',').count(), "{entry} {name}");
            // Cycles may be more: a refresh can fall into the writes that are left.
            let moved = |ran: &Value| ran["stats"]["bytes_moved"].as_u64().unwrap_or(0);
            assert!(moved(&ran) < moved(&plain), "{entry} {name}");
        }
    }
}

/// The stream says what is there; the simulator wants its values, and takes no time for them.
#[test]
fn a_stream_with_a_resident_array() {
    let path = example("hbm_pim.tile");
    let words = ["emit", &path, "gemv", "--stage", "pim", "--target", "hbm-pim", "-D", "M=1024", "-D", "K=256"];
    let o = command(&[&words[..], &["--resident", "A"]].concat());
    assert_eq!(o.status, 0, "{}", o.err);
    let steps: Vec<&str> = o.out.lines().filter(|l| l.starts_with("resident ") || l.starts_with("write ")).collect();
    assert!(steps.len() == 1 && steps[0].starts_with("resident A at "), "{steps:?}");
    let (status, told, ran) = run(&path, "gemv", &["-D", "M=1024", "-D", "K=256", "--resident", "A"]);
    assert_eq!(status, 0, "{told}");
    assert_eq!(ran["stats"]["report"]["kinds"]["resident"]["cycles"], 0);
}

/// Who cannot be resident.
#[test]
fn mistakes() {
    let path = example("hbm_pim.tile");
    let told = |more: &[&str]| {
        let (status, told, _) = run(&path, "gemv", &[&["-D", "M=1024", "-D", "K=256"], more].concat());
        (status, told)
    };
    for (name, says) in [
        ("B", "`gemv` has no such argument"),
        ("x", "no launch has it in the banks of the units"),
        ("y", "is no input"),
        ("", "has no such argument"),
    ] {
        let (status, told) = told(&["--resident", name]);
        assert!(status == 1 && told.contains("E1330") && told.contains(says), "{name}: {status} {told}");
    }
    let (status, told) = told(&["--resident", "A", "--backend", "interp"]);
    assert!(status == 2 && told.contains("`--resident` is for units in memory"), "{status} {told}");
    let text = "kernel k(a: in f16[N], c: inout f16[N]) {\n    grid (i in tiles(N, 64));\n    \
                TSTORE(c.tile(i), Vec(a.tile(i)) + Vec(c.tile(i)));\n}\n";
    // One that a run changes goes on where it was.
    let path = file("inout.tile", text).display().to_string();
    let (status, told, plain) = run(&path, "k", &["-D", "N=4096"]);
    assert_eq!(status, 0, "{told}");
    let (status, told, ran) = run(&path, "k", &["-D", "N=4096", "--resident", "c"]);
    assert_eq!((status, &ran["outputs"]), (0, &plain["outputs"]), "{told}");
}

/// A cache of keys and values: a token's rows move behind those before them, and neither a cache nor a part of it is
/// written or read otherwise. The bits are the interpreter's, whoever has the cache.
#[test]
fn a_cache_stays_in_the_memory() {
    let path = example("hbm_cache.tile");
    let sizes = ["-D", "H=8", "-D", "S=128", "-D", "E=64", "-D", "at=17"];
    let [meant, plain, kept] = [&["--backend", "interp"][..], &[], &["--resident", "keys,values"]].map(|more| {
        let (status, told, ran) = run(&path, "step", &[&sizes[..], more].concat());
        assert_eq!(status, 0, "{told}");
        ran
    });
    for output in ["keys", "values", "o"] {
        assert!(meant["outputs"][output]["sha256"].is_string(), "{output}");
        assert_eq!(meant["outputs"][output]["sha256"], plain["outputs"][output]["sha256"], "{output}");
        assert_eq!(meant["outputs"][output]["sha256"], kept["outputs"][output]["sha256"], "{output}");
    }
    let words = [&["emit", &path, "step", "--stage", "pim", "--target", "hbm-pim"][..], &sizes].concat();
    let o = command(&[&words[..], &["--resident", "keys,values"]].concat());
    assert_eq!(o.status, 0, "{}", o.err);
    let of = |name: &str| -> Vec<&str> {
        let arrays = o.out.lines().filter(|l| l.split(' ').any(|w| w == name) && l.contains(" at "));
        arrays.map(|l| l.split(' ').next().unwrap_or_default()).collect()
    };
    for name in ["keys", "values"] {
        assert_eq!(of(name), ["resident", "relayout"], "{name}: {}", o.out);
    }
    let moved = |ran: &Value| ran["stats"]["bytes_moved"].as_u64().expect("bytes");
    assert!(moved(&kept) < moved(&plain));
}

/// Weights that four launches read: the host moves them once for the whole program, but in each launch that wants
/// them.
#[test]
fn launches_have_baselines_of_their_own() {
    let text = "use hbm_pim::gemv;\nprogram four(W: in f16[N, N], x: in f16[N], y: out f16[N]) {\n    \
                let a, b, c = tensor f16[N];\n    gemv(W, x, a);\n    gemv(W, a, b);\n    gemv(W, b, c);\n    \
                gemv(W, c, y);\n}\n";
    let kernels = std::fs::read_to_string(example("hbm_pim.tile")).expect("the example");
    file("hbm_pim.tile", &kernels);
    let path = file("four.tile", text).display().to_string();
    let (status, told, ran) = run(&path, "four", &["-D", "N=512", "--resident", "W"]);
    assert_eq!(status, 0, "{told}");
    let report = &ran["stats"]["report"];
    let once = report["host_baseline"]["streaming"]["cycles"].as_f64().unwrap();
    let all = report["host_baseline"]["launch_by_launch"].as_f64().unwrap();
    assert!(all > 3.5 * once, "{once} {all}");
    let launches = report["launches"].as_array().unwrap();
    assert_eq!(launches.len(), 4);
    for l in launches {
        assert!(l["host_baseline"]["bytes_moved"].as_f64().unwrap() >= 2.0 * 512.0 * 512.0, "{l}");
    }
    assert_eq!(report["kinds"]["write"]["cycles"].as_f64().unwrap_or(0.0), 0.0);
}
