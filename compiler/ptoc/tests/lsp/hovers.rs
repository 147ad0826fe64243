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
