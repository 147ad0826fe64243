//! Hovers: what is known of each kind of thing.

use super::names::there;
use super::{Client, KERNEL, URI, range};
use serde_json::{Value, json};

const TEXT: &str = r#"use std::act::gelu;
// check: k BM=99999 => SA-0352
/// How many.
const HOW = 4 * 8;

/// Half of it.
fn half(x: f32) -> f32 { x / 2.0 }

kernel k<const BM = 64, type T = f32, fn act = gelu>(a: in T[M, 64], c: out T[M, 64], s: f32 = 1.0)
    ensures c[i, j] == act(a[i, j])
{
    const ROWS = (4, 8):(8, 1);
    const MANY = BM * HOW;
    grid (i in tiles(M, BM));
    let keys = a.tile(i, _);
    let t = tile Vec<T, i, 64>;
    TLOAD(t, keys);
    var n = 0;
    for q in 0..HOW { n = n + 1; }
    let both = tile Vec<f32, 16, 64>[2];
    TSTORE(c.tile(i, _), act(half(t)));
}
"#;

fn hover(c: &mut Client, text: &str, needle: &str) -> String {
    let hover = c.ask("textDocument/hover", there(URI, text, needle));
    match hover["contents"]["value"].as_str() {
        Some(value) => format!("== {needle} {}\n{value}\n", range(&hover["range"])),
        None => format!("== {needle}\nnothing\n"),
    }
}

#[test]
fn names_words_and_codes() {
    let mut c = Client::new(Value::Null);
    c.open(URI, TEXT);
    c.published();
    let needles = [
        "act::gelu",
        "gelu;",
        "SA-0352",
        "HOW =",
        "half(t)",
        "k<const",
        "BM =",
        "T[M",
        "M, 64]",
        "a: in",
        "s: f32",
        "i, j] ==",
        "ROWS",
        "MANY",
        "i, _);",
        "keys =",
        "t = tile",
        "TLOAD",
        "Vec<T",
        "f32 {",
        "n = 0",
        "q in",
        "both",
        "tiles",
        "ensures",
    ];
    insta::assert_snapshot!(needles.map(|n| hover(&mut c, TEXT, n)).concat());
}

/// A kernel with a mistake keeps what is known of its names; on another target the constraints are others.
#[test]
fn of_kernels_with_mistakes() {
    let text = KERNEL.replace("TMULS(u, t, 2.0)", "TMULS(u, u, t, 2.0)");
    let mut c = Client::new(json!({"target": "a5"}));
    c.open(URI, &text);
    assert!(c.published().contains(" 1 E"));
    insta::assert_snapshot!(["t = Vec", "u = tile", "TMULS", "M], y"].map(|n| hover(&mut c, &text, n)).concat());
}

/// The name of a kernel says what a block costs: once, and for each turn of a loop that only the launch counts.
#[test]
fn costs_of_blocks() {
    let text = "kernel sums<const BM = 16>(x: in f32[M, N], y: out f32[M, 64]) {\n    grid (i in tiles(M, BM));\n    \
                let sum = tile Vec<f32, i, 64>;\n    sum = 0.0;\n    for k in tiles(N, 64) {\n        \
                for q in 0..3 {\n            TADDS(sum, sum, 1.0);\n        }\n        \
                TADD(sum, sum, Vec(x.tile(i, k)));\n    }\n    TSTORE(y.tile(i, _), sum);\n}\n";
    let mut c = Client::new(Value::Null);
    c.open(URI, text);
    c.published();
    insta::assert_snapshot!(hover(&mut c, text, "sums<"));
}

/// Roles share the core's units, so the cost of a unit is that of all of them.
#[test]
fn costs_of_roles() {
    let role = |name: &str, tile: &str, rows: &str| {
        format!(
            "    role {name} {{ let l = event<MTE2, V>; let d = event<V, MTE3>; TLOAD({tile}, x.tile({rows}, _)); \
             set(l); wait(l);\n        \
             TEXP({tile}, {tile}); set(d); wait(d); TSTORE(y.tile({rows}, _), {tile}); }}\n"
        )
    };
    let text = format!(
        "#[sync(manual)]\nkernel halves(x: in f32[64, 64], y: out f32[64, 64]) {{\n    \
         let a, b = tile Vec<f32, 32, 64>; let h = tiles(64, 32);\n{}{}}}\n",
        role("p", "a", "h[0]"),
        role("q", "b", "h[1]")
    );
    let mut c = Client::new(Value::Null);
    c.open(URI, &text);
    c.published();
    let hover = hover(&mut c, &text, "halves(");
    let rows: Vec<&str> = hover.lines().filter(|l| l.starts_with("| V") || l.starts_with("| MTE2")).collect();
    let row = |of: &str, cycles: u64| format!("| {of} | {cycles} |");
    // 8 KiB at 256 bytes a cycle and 24 to start; at 64 and 256.
    let want = [
        ("V", 112),
        ("V of role 1", 56),
        ("V of role 2", 56),
        ("MTE2", 768),
        ("MTE2 of role 1", 384),
        ("MTE2 of role 2", 384),
    ];
    assert_eq!(rows, want.map(|(of, cycles)| row(of, cycles)));
}

/// Lines of a tile's life are those of `ptoc mem`, also in loops whose iterations overlap.
#[test]
fn lives_are_those_of_the_memory_map() {
    let mut seen = 0;
    for (name, text) in [
        ("gemm", include_str!("../../../../examples/gemm.tile")),
        ("softmax", include_str!("../../../../examples/softmax.tile")),
        ("double_buffer", include_str!("../../../../examples/double_buffer.tile")),
    ] {
        let mut c = Client::new(Value::Null);
        c.open(URI, text);
        c.published();
        let symbols = c.ask("textDocument/documentSymbol", super::document(URI));
        for kernel in symbols.as_array().unwrap().iter().filter(|s| s["detail"] == "kernel") {
            let mut params = json!({"textDocument": {"uri": URI}, "position": kernel["selectionRange"]["start"]});
            params["format"] = json!("json");
            let Ok(map) = c.server.request("ptoc/memoryMap", params) else { continue };
            let map = map.value();
            let memories = map["map"]["memories"].as_array().unwrap();
            for tile in memories.iter().flat_map(|m| m["tiles"].as_array().unwrap()) {
                let number = |end: &str| tile[end]["line"].as_u64();
                let (Some(first), Some(last), false) =
                    (number("first_write"), number("last_read"), tile["expression"].is_string())
                else {
                    continue;
                };
                let line = tile["line"].as_u64().unwrap() as u32 - 1;
                let called = tile["name"].as_str().unwrap();
                let Some(column) = text.lines().nth(line as usize).unwrap().find(&format!("{called} =")) else {
                    continue;
                };
                let hover = c.ask("textDocument/hover", super::at(URI, line, column as u32));
                let said = match first.cmp(&last) {
                    std::cmp::Ordering::Less => format!("lines {first}-{last}\n"),
                    std::cmp::Ordering::Equal => format!("lines {first}\n"),
                    std::cmp::Ordering::Greater => format!("lines {first}, {last}\n"),
                };
                let hover = hover["contents"]["value"].as_str().unwrap_or_default();
                // Lines of a function come with the line that calls it.
                if hover.contains("of a function that") {
                    assert!(hover.contains(&format!("({first})")) || hover.contains(&format!("({last})")), "{hover}");
                    continue;
                }
                assert!(hover.contains(&said), "{name} {kernel} {called}: {said} in {hover}");
                seen += 1;
            }
        }
    }
    assert!(seen > 10, "{seen} tiles");
}

/// A tile of a function that is called twice has two places, and one type.
#[test]
fn tiles_of_functions_that_are_called_again() {
    let text = "fn twice(a: in Vec<f32, 16, 64>) -> Vec<f32, 16, 64> {\n    let b = tile Vec<f32, 16, 64>;\n    \
                TADD(b, a, a);\n    return b;\n}\n\
                kernel k(x: in f32[16, 64], w: in f32[16, 64], y: out f32[16, 64], z: out f32[16, 64]) {\n    \
                let p = Vec(x);\n    let q = Vec(w);\n    \
                let r = twice(p);\n    let s = twice(q);\n    TSTORE(y, r + p);\n    TSTORE(z, s + q + r);\n}\n";
    let mut c = Client::new(Value::Null);
    c.open(URI, text);
    assert!(!c.published().contains(" 1 E"));
    insta::assert_snapshot!(hover(&mut c, text, "b = tile"));
}
