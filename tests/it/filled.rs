//! Outputs that the compiler sees filled: a launch of machine code pays nothing for telling what is unwritten.

use crate::engine::build;
use ptoc_diagnostics::Budget;
use std::path::Path;

/// Functions and one kernel of an example.
fn kernel(file: &str, name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(file);
    let text = std::fs::read_to_string(path).expect("an example");
    let mut out = String::new();
    let mut inside = false;
    for line in text.lines() {
        let starts = |word: &str| line.starts_with(&format!("{word} "));
        let this = line.strip_prefix("kernel ").is_some_and(|l| l.split(['<', '(']).next() == Some(name));
        inside |= this || starts("fn");
        if inside || starts("use") || starts("const") {
            out += line;
            out.push('\n');
        }
        // A body's brace, or a function in one line.
        inside &= !(line == "}" || starts("fn") && line.ends_with('}'));
    }
    out
}

#[test]
fn kernels_that_pay_nothing() {
    let sizes = [("M", 100), ("N", 200), ("K", 50), ("H", 2), ("D", 32), ("R", 20), ("C", 70), ("P", 33)];
    for (file, name) in [
        ("gemm.tile", "gemm"),
        ("softmax.tile", "softmax"),
        ("softmax.tile", "softmax_long"),
        ("attention.tile", "attention"),
        ("gather.tile", "gather"),
        ("layernorm.tile", "layernorm"),
        ("rmsnorm.tile", "rmsnorm"),
        ("transpose.tile", "transpose"),
        ("transpose.tile", "transpose_planes"),
    ] {
        let built = build(&kernel(file, name), "a2a3", &[], &sizes).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let open = ptoc_checks::blocks::unfilled(&built.placed.kernel, &Budget::default());
        assert!(open.is_empty(), "{name}: {open:?}\n{}", built.placed.kernel);
    }
}

/// Stores that only the proof sees to be all: a block's rows one by one, from where it begins.
#[test]
fn kernels_that_are_proved() {
    for body in [
        "for r in i { TSTORE(y[r, _], Vec(x[r, _])); }",
        "for r in 0..i.len { TSTORE(y[i.start + r, _], Vec(x[i.start + r, _])); }",
        "for r in i { for j in tiles(N, 64) { TSTORE(y[r, _].tile(j), Vec(x[r, _].tile(j))); } }",
        "for r in i { for c in 0..N { y[r, c] = x[r, c]; } }",
        "if s > 0.0 { TSTORE(y.tile(i, _), Vec(x.tile(i, _))); } else { TSTORE(y.tile(i, _), Vec(x.tile(i, _))); }",
    ] {
        let text = format!(
            "kernel k(x: in f32[M, N], s: f32 = 1.0, y: out f32[M, N]) {{\n    grid (i in tiles(M, 8));\n    {body}\n\
            }}\n"
        );
        let sizes = [("N", 64)];
        let built = build(&text, "a2a3", &[], &sizes).unwrap_or_else(|e| panic!("{body}: {e:?}"));
        let open = ptoc_checks::blocks::unfilled(&built.placed.kernel, &Budget::default());
        assert!(open.is_empty(), "{body}: {open:?}");
    }
}

/// What is not certain is not taken for it.
#[test]
fn kernels_with_holes() {
    for body in [
        "if i.index > 0 { TSTORE(y.tile(i, j), Vec(x.tile(i, j))); }",
        "for n in 0..2 { if n > 0 { break; } TSTORE(y.tile(i, j), Vec(x.tile(i, j))); }",
        "for n in 0..K { TSTORE(y.tile(i, j), Vec(x.tile(i, j))); }",
        "TSTORE(y[i.start, _].tile(j), Vec(x[i.start, _].tile(j)));",
    ] {
        let text = format!(
            "kernel k(x: in f32[M, N], k: in f32[K], s: f32 = 1.0, y: out f32[M, N]) {{\n    \
            grid (i in tiles(M, 8), j in tiles(N, 64));\n    {body}\n}}\n"
        );
        let built = build(&text, "a2a3", &[], &[]).unwrap_or_else(|e| panic!("{body}: {e:?}"));
        assert_eq!(ptoc_checks::blocks::unfilled(&built.placed.kernel, &Budget::default()).len(), 1, "{body}");
    }
}
