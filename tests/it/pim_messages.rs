//! What the backends of units in memory say, as it is printed.

use crate::engine::command;
use std::path::PathBuf;

/// The message for the only kernel of a text.
fn said(target: &str, sizes: &[&str], text: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pim_messages");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    let path = folder.join(format!("{target}_{}.tile", text.len())).display().to_string();
    std::fs::write(&path, text).expect("written");
    let mut words = vec!["emit", &path, "--stage", "pim", "--target", target];
    sizes.iter().for_each(|s| words.extend(["-D", *s]));
    let outcome = command(&words);
    assert_eq!(outcome.status, 1, "{text}{}", outcome.err);
    assert_eq!(outcome.err.matches("error[").count(), 1, "{text}{}", outcome.err);
    outcome.err.replace(&path, "kernel.tile")
}

fn block(tensors: &str, grid: &str, body: &str) -> String {
    format!("kernel k({tensors}) {{\n    grid {grid};\n    {}\n}}\n", body.replace('\n', "\n    "))
}

#[test]
fn hbm_pim() {
    let rows = "a: in f16[N, 64], y: out f16[N, 64]";
    let (four, x) = ("(i in tiles(N, 4))", "let x = Vec(a.tile(i, _));\n");
    let with = |rest: &str| block(rows, four, &format!("{x}{rest}"));
    let cases = [
        with("if a[0, 0] > 0.0 { TSTORE(y.tile(i, _), x); }"),
        block(
            "a: in f16[20, N], y: out f16[1, N]",
            "(j in tiles(N, 16))",
            "let s = tile Vec<f16, 1, 16>;\nlet p = tile Vec<f16, 1, 16>;\nlet x = Vec(a.tile(_, j));\ns = 0.0;\np = 1.0;\n\
             for i in 0..20 { s += x[i, _] * x[19 - i, _]; }\nfor i in 0..20 { p = p * (x[i, _] + s * x[i, _]) + x[19 - i, _] * p; }\n\
             for i in 0..20 { p = p * (x[i, _] * x[19 - i, _] + s); }\nTSTORE(y.tile(_, j), p);",
        ),
        with("if i.start == 4 { x = x + x; }\nTSTORE(y.tile(i, _), x);"),
        block(
            "a: in f16[N, 16] at (N, 16):(1@row, 2@byte), y: out f16[N, 16]",
            "(i in tiles(N, 1)) on (N):(1@unit)",
            "TSTORE(y.tile(i, _), Vec(a.tile(i, _)));",
        ),
        with("for j in tiles(64, 8) { TSTORE(y.tile(i, j), x.tile(_, j)); }"),
        block(
            "a: in f16[M, 64], y: out f16[M, 64]",
            "(j in tiles(64, 64))",
            "for i in tiles(M, 256) { TSTORE(y.tile(i, j), Vec(a.tile(i, j))); }",
        ),
        block(rows, "(i in tiles(N, 4))", "for j in tiles(64, 32) { TSTORE(y[0, _], Vec(a[i.start, _])); }"),
        with("TSTORE(y.tile(i, _), x / 3.0);"),
        with("TSTORE(y.tile(i, _), max(x, x * x));"),
        with("TSTORE(y.tile(i, _), x - rowsum(x));"),
        with("TSTORE(y.tile(i, _), f16(f32(x)));"),
    ];
    let all: Vec<String> = cases
        .iter()
        .map(|text| said("hbm-pim", &[if text.contains("[M,") { "M=65536" } else { "N=32" }], text))
        .collect();
    insta::assert_snapshot!(all.join("\n"));
}
