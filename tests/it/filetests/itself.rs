//! The runner of filetests: what is wrong in a file is told with its line, and what `ptoc emit` prints is an input.

use super::text::{Failure, Test};
use super::{judge, run};
use crate::engine::command;
use ptoc_passes::pipeline::CPU_PASSES;

/// A copy that is forwarded.
const COPY: &str = "; pass: copy-propagation
kernel \"k\" target \"a2a3\"
tensor g0 \"x\" in f32 [v0, v1]
tensor g1 \"y\" out f32 [v0, v1]
tile t0 \"t\" Vec<f32, 16, 64>
tile t1 \"u\" Vec<f32, 16, 64>
tile t2 \"e\" Vec<f32, 16, 64>
prologue {
  v0: index = const 16
  v1: index = const 64
  v2: index = const 0
  v3: index = const 1
}
grid []
body {
  alloc t0
  tload t0[16x64 v0, v1], g0[v2 + (v0, v1):(v1, v3)]
  alloc t1
  tmov t1[16x64 v0, v1], t0[16x64 v0, v1]
  alloc t2
  texp t2[16x64 v0, v1], t1[16x64 v0, v1]
  tstore g1[v2 + (v0, v1):(v1, v3)], t2[16x64 v0, v1]
}
";

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let end = COPY.lines().count();
    // Directives, and which of them is wrong, from 1 on, in which words.
    for (directives, wrong, words) in [
        ("; check: texp t2[16x64 v0, v1], t0", 0, ""),
        ("; check: tload\n; not: tmov\n; check: texp ... t0[\n; nextln: tstore", 0, ""),
        ("; a remark: of no weight\n; check:   texp   t2[16x64  v0,", 0, ""),
        ("; check: texp t2[16x64 v0, v1], t1", 1, "check: `texp t2[16x64 v0, v1], t1` is not there"),
        ("; check: tstore\n; check: texp", 2, "check: `texp` is not there"),
        ("; check: tload\n; nextln: texp", 2, "nextln: `texp` is not there"),
        ("; check: tload\n; not: texp\n; check: tstore", 2, "not: `texp` is there"),
        ("; not: grid\n; check: tload", 1, "not: `grid` is there"),
        ("; check: tload\n; not: tstore", 2, "not: `tstore` is there"),
        ("; check: v0, v1], v1", 1, "is not there"),
        ("; check: texp ... tstore", 1, "is not there"),
        ("; check: tload\n; unchanged", 2, "unchanged: the pass made"),
        ("; error: E0805 v0", 1, "error: nothing refuses it"),
        ("; check: tload\n; chekc: tmov", 2, "`chekc:` is no directive"),
        ("; check: tload\n; not:", 2, "`not:` of nothing"),
        ("; check: tload\n; error: E0805", 1, "`error:` stands alone"),
        ("", 1 - end as isize, "there is no `check:`"),
    ] {
        let judged = judge(&format!("{COPY}{directives}\n"));
        match judged {
            Ok(()) => assert_eq!(wrong, 0, "{directives} is taken"),
            Err(Failure { line, what }) => {
                assert_eq!(line as isize, end as isize + wrong, "{directives}\n{what}");
                assert!(wrong != 0 && what.contains(words), "{directives}\n{what}");
            }
        }
    }
    // The output around the place is there.
    let Err(failure) = judge(&format!("{COPY}; check: tload\n; nextln: texp\n")) else { panic!("it is taken") };
    assert!(
        failure.what.contains(">   16 |   tload t0[") && failure.what.contains("   20 |   texp t2["),
        "{failure:?}"
    );
}

#[test]
fn what_no_pass_can_run_on_is_told() {
    let unchanged = COPY.replace(", t0[16x64 v0, v1]", ", t1[16x64 v0, v1]");
    for (text, line, words) in [
        (COPY.replace("; pass: ", "; passes: "), 1, "the first line is"),
        (COPY.replace("copy-propagation", "copy-propagatoin"), 1, "there is no pass `copy-propagatoin`"),
        (COPY.replace("copy-propagation", "elaboration"), 1, "there is no pass `elaboration`"),
        (COPY.replace("copy-propagation", "lowering, bounds"), 1, "`bounds` comes before"),
        (COPY.replace("copy-propagation", "row-pipelining"), 1, "`lowering, row-pipelining`"),
        (COPY.replace("copy-propagation", "grid-split"), 1, "the pass changed nothing"),
        (COPY.replace("texp", "texq"), 1, "line 21: E0802"),
        (COPY.replace("v3: index", "v3: f32"), 1, "E0807"),
        // A copy onto itself reads what nothing has written.
        (unchanged, 1, "refused"),
    ] {
        match judge(&format!("{text}; check: tload\n")) {
            Ok(()) => panic!("{words}: it is taken"),
            Err(failure) => assert!(failure.line == line && failure.what.contains(words), "{words}: {failure:?}"),
        }
    }
}

/// Kernels in which passes fire, on which target.
const SOURCES: [(&str, &str); 3] = [
    (
        "a2a3",
        "kernel k(x: in f32[M, 1024], y: out f32[M, 1024]) {
            grid (i in tiles(M, 8));
            let top = rowmax(Vec(x.tile(i, _)));
            TSTORE(y.tile(i, _), Vec(x.tile(i, _)) - top);
        }",
    ),
    (
        "a2a3",
        "kernel k(t: in f32[N, C], x: in i32[P], z: out f32[P, C]) where N * C <= 1000000, C >= 1 {
            grid (p in tiles(P, 32), c in tiles(C, 64));
            let n = Vec(col(x).tile(p, _)) * i32(C) + iota(1, c);
            let g = tile Vec<f32, p, c>;
            MGATHER(g, t, n);
            TSTORE(z.tile(p, c), g * 2.0);
        }",
    ),
    (
        "a5",
        "kernel k(a: in f32[16, 256], c: in f32[16, 1], z: out f16[16, 256], o: out f32[16, 1]) {
            let s = Vec(a);
            let t = tile Vec<f32, 16, 256>;
            TMOV(t, s);
            let e = exp(t);
            TSTORE(z, f16(e));
            TSTORE(o, Vec(c) * 0.5 + rowsum(e));
        }",
    ),
];

/// What `ptoc emit --stage after:NAME` prints is an input: of it the next pass makes what it makes in the pipeline.
#[test]
fn what_emit_prints_is_an_input() {
    let directory = tempfile::tempdir().expect("a folder");
    let file = directory.path().join("kernel.tile");
    let mut fired = Vec::new();
    for (target, source) in SOURCES {
        std::fs::write(&file, source).expect("written");
        let emitted = |name: &str| {
            let stage = format!("after:{name}");
            let path = file.display().to_string();
            let outcome = command(&["emit", &path, "--target", target, "--stage", &stage]);
            assert_eq!(outcome.status, 0, "{name}: {}", outcome.err);
            outcome.out
        };
        let names = CPU_PASSES.iter().map(|p| p.name);
        let mut before = emitted("address-checks");
        for name in std::iter::once("bounds").chain(names) {
            let test = Test::parse(&format!("; pass: {name}\n{before}; unchanged\n")).expect("a test");
            // Facts beside the kernel that a pass has found are not in its text.
            if name == "rematerialize" && fired.last() == Some(&"lazy-gather") {
                break;
            }
            let output = run(&test).unwrap_or_else(|e| panic!("{name}: {e:?}\n{before}"));
            if output.changed {
                fired.push(name);
            }
            let after = emitted(name);
            let text: String = after.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect();
            assert_eq!(output.ir, text, "{name}");
            before = after;
        }
    }
    assert_eq!(fired, ["grid-split", "lazy-gather", "copy-propagation", "rematerialize"]);
}
