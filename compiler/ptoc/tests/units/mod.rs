//! Targets with units in memory.

use super::{Sandbox, snapshot};

/// Kernels for units in memory: which backends run them, and what has no meaning there.
#[test]
fn targets_with_units() {
    let s = Sandbox::new();
    s.file(
        "unit.tile",
        "kernel k(a: in f16[32, 16] at ((8, 4), 16):((1@row, 1@unit), 2@byte), c: out f16[32, 16])\n    \
        ensures c[i, j] == a[i, j] + a[i, j]\n{\n    grid (i in tiles(32, 8)) on 4:1@unit;\n    \
        let x = GrfA(a.tile(i, _));\n    TSTORE(c.tile(i, _), x + Bank(a.tile(i, _)));\n}\n",
    );
    snapshot!(s.runs(&[
        "check unit.tile --target hbm-pim",
        "run unit.tile --target hbm-pim --backend interp --random 1 --verify --json",
        "run unit.tile --target hbm-pim --backend cpu",
        "run add.tile --backend pim",
        "emit unit.tile --stage asm --target hbm-pim",
        "mem unit.tile --source --target hbm-pim",
        "check unit.tile",
    ]));
}

/// What the backend of units in memory refuses, a check refuses too; what it cannot look at yet is said.
#[test]
fn checks_for_units() {
    let s = Sandbox::new();
    s.file(
        "refused.tile",
        "kernel div(a: in f16[N], c: out f16[N], s: f16) {\n    grid (i in tiles(N, 64));\n    \
        TSTORE(c.tile(i), s / Vec(a.tile(i)));\n}\n",
    );
    s.file(
        "given.tile",
        "kernel k(feat: in f16[4, 4, 16], geo: in f16[4, 4], attn: in f16[4, S], offs: in f16[4, S, 2] = none, y: out \
        f16[4, 16]) {\n    grid (q in 0..4) on 4:1@unit;\n    let acc = tile Vec<f32, 1, 16>;\n    \
        TSAMPLE(acc, feat, geo[q, _], attn[q, _], offs[q, _, _]);\n    TSTORE(y[q, _], f16(acc));\n}\n",
    );
    snapshot!(s.runs(&[
        "check refused.tile --target hbm-pim",
        "check refused.tile --target hbm-pim -D N=64",
        "check refused.tile --target hbm-pim -D N=64 -D s=1.0",
        "check add.tile --target geopim -D M=2 -D N=16 -D s=1.0",
        "emit given.tile --stage pim --target geopim -D S=3",
        "emit given.tile --stage pim --target geopim -D S=3 --given offs",
        "emit given.tile --stage ir --target geopim -D S=3 --given off",
        "emit add.tile add --stage ir --given a",
        "run add.tile --backend pim,interp",
    ]));
    let program = "kernel two(a: in f16[32, 16], c: out f16[32, 16]) {\n    grid (i in tiles(32, 8)) on 4:1@unit;\n    \
        TSTORE(c.tile(i, _), Vec(a.tile(i, _)) * 2.0);\n}\n#[on(host)]\n\
        kernel half(a: in f16[32, 16], c: out f16[32, 16]) {\n    grid (i in tiles(32, 8));\n    \
        TSTORE(c.tile(i, _), Vec(a.tile(i, _)) / 2.0);\n}\nprogram both(a: in f16[32, 16], c: out f16[32, 16]) {\n    \
        let t = tensor f16[32, 16];\n    two(a, t);\n    half(t, c);\n}\n";
    s.file("host.tile", program);
    let says = |kernel: &str| {
        let run = s.run(&format!("run host.tile {kernel} --target hbm-pim --backend pim --random 1"));
        let line = run.lines().find(|l| l.contains(" on pim (")).unwrap_or_else(|| panic!("{run}"));
        line.split_once(": compiled").expect("a time").0.to_owned()
    };
    assert_eq!(says("two"), "two on pim (hbm-pim)");
    assert_eq!(says("half"), "half on pim (hbm-pim; a kernel of the host: no unit takes part)");
    assert_eq!(says("both"), "both on pim (hbm-pim; 1 of 2 launches by the host)");
}

/// Time alone is the time of the whole: the two reports differ in nothing.
#[test]
fn timing_only() {
    let s = Sandbox::new();
    for (file, of) in [
        ("hbm_pim.tile", "add -D N=5000"),
        ("hbm_pim.tile", "axpy -D N=3000 -D s=1.5"),
        ("hbm_pim.tile", "row_sums -D M=50 -D N=70"),
        ("hbm_pim.tile", "gemv -D M=100 -D K=70 -D BM=16"),
        ("hbm_gemm.tile", "gemm -D N=128 -D K=256 -D B=16 -D PCH=2"),
    ] {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(file);
        let run = |how: &str| {
            let run = s.run(&format!("run {} {of} --target hbm-pim --json {how}", file.display()));
            let line = run.lines().find(|l| l.starts_with('{')).unwrap_or_else(|| panic!("{run}"));
            let mut object: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let mut stats = object["stats"].take();
            for time in ["compile_ms", "run_ms"] {
                stats.as_object_mut().expect("an object").remove(time);
            }
            (object["outputs"].as_object().expect("an object").len(), stats)
        };
        let ((outputs, whole), (none, time)) = (run("--random 1"), run("--timing-only"));
        assert_eq!((outputs, none), (1, 0));
        assert_eq!(whole, time, "{of}");
    }
    s.file(
        "pick.tile",
        "kernel pick(x: in f16[N], c: out f16[N]) where all<i>(x[i] > 0.0) {\n    \
        grid (i in tiles(N, 64));\n    TSTORE(c.tile(i), Vec(x.tile(i)) + 1.0);\n}\n",
    );
    snapshot!(s.runs(&[
        "run pick.tile --target hbm-pim --timing-only -D N=64 --threads 1",
        "run pick.tile --timing-only -D N=64",
        "run pick.tile --target geopim --timing-only -D N=64",
        "run pick.tile --target hbm-pim --timing-only -D N=64 --verify",
    ]));
}
