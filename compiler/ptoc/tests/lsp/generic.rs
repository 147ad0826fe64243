//! Closures and records in an editor: definitions of fields and captured names, hovers, proposals, tokens.

use super::names::there;
use super::{Client, URI, range};
use serde_json::{Value, json};

const TEXT: &str = r#"fn moments(t: in Vec<f32, r, c>) -> (mean: Vec<f32, r, 1>, count: index) {
    (count = 64, mean = rowsum(t) / 64.0)
}

kernel k(x: in f32[M, 64], s: f32, y: out f32[M, 64]) {
    grid (i in tiles(M, 16));
    let t = Vec(x.tile(i, _));
    let m = moments(t);
    let scale = |v, by: f32| v * by * s;
    let layer = (shift = 2.0, act = |w| scale(w, 3.0));
    TSTORE(y.tile(i, _), layer.act(t - m.mean) + layer.shift);
}
"#;

fn opened(text: &str) -> Client {
    let mut c = Client::new(Value::Null);
    c.open(URI, text);
    c.published();
    c
}

#[test]
fn fields_and_captured_names_have_definitions() {
    let mut c = opened(TEXT);
    let mut out = String::new();
    for needle in ["mean) + layer", "shift);", "act(t", "s;", "by * s", "w, 3.0", "scale(w", "v * by"] {
        let found = c.ask("textDocument/definition", there(URI, TEXT, needle));
        let place = if found.is_array() { &found[0] } else { &found };
        let hover = c.ask("textDocument/hover", there(URI, TEXT, needle));
        let text = hover["contents"]["value"].as_str().unwrap_or("nothing").lines().nth(1).unwrap_or_default();
        out += &format!("{needle}: {}, {text}\n", range(&place["range"]));
    }
    for needle in ["m = moments", "layer =", "scale = |"] {
        let hover = c.ask("textDocument/hover", there(URI, TEXT, needle));
        let text = hover["contents"]["value"].as_str().unwrap_or("nothing").lines().nth(1).unwrap_or_default();
        out += &format!("{needle}: {text}\n");
    }
    insta::assert_snapshot!(out);
}

#[test]
fn members_of_a_record_are_its_fields() {
    let mut c = opened(TEXT);
    let place = there(URI, TEXT, "mean) + layer");
    let at = |key: &str| place["position"][key].as_u64().unwrap() as u32;
    let (line, column) = (at("line"), at("character"));
    c.edit(URI, [(line, column), (line, column + 4)], "");
    let found = c.ask("textDocument/completion", place);
    c.published();
    let labels: Vec<&str> = found["items"].as_array().unwrap().iter().filter_map(|i| i["label"].as_str()).collect();
    assert_eq!(labels, ["count", "mean"]);
}

/// Records with equal fields are equal types, so a new name for one field would change others.
#[test]
fn a_field_is_not_renamed() {
    let mut c = opened(TEXT);
    let mut params = there(URI, TEXT, "mean) + layer");
    params["newName"] = json!("average");
    let answer = c.fails("textDocument/rename", params);
    assert!(answer.message.contains("is a field of records"), "{answer:?}");
}
