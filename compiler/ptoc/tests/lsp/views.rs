//! Hints and lenses, formatting of parts, and what only ptoc shows.

use super::names::{place, there};
use super::{Client, KERNEL, URI, document, range};
use serde_json::{Value, json};

const GEMM: &str = include_str!("../../../../examples/gemm.tile");

fn hints(c: &mut Client, text: &str) -> String {
    let end = json!({"line": text.lines().count(), "character": 0});
    let params = json!({"textDocument": {"uri": URI}, "range": {"start": {"line": 0, "character": 0}, "end": end}});
    let mut out = String::new();
    for hint in c.ask("textDocument/inlayHint", params).as_array().unwrap() {
        let (line, column) =
            (hint["position"]["line"].as_u64().unwrap(), hint["position"]["character"].as_u64().unwrap());
        let source = text.lines().nth(line as usize).unwrap();
        let (before, after) = source.split_at(column as usize);
        out += &format!("{}:{}  {before}[{}]{after}\n", line, column, hint["label"].as_str().unwrap());
    }
    out
}

#[test]
fn inlay_hints() {
    let mut c = Client::new(Value::Null);
    c.open(URI, GEMM);
    c.published();
    let all = hints(&mut c, GEMM);
    insta::assert_snapshot!(all);
    for (kind, word) in [("types", "[:"), ("addresses", "@0x"), ("bytes", " B]"), ("budget", "left")] {
        assert!(all.contains(word), "{word}");
        let settings = json!({"settings": {"ptoc": {"hints": {kind: false}}}});
        c.server.notify("workspace/didChangeConfiguration", settings);
        c.published();
        assert!(!hints(&mut c, GEMM).contains(word), "{kind}");
    }
}

#[test]
fn code_lenses() {
    let mut c = Client::new(Value::Null);
    let program = "program both(x: in f32[M], y: out f32[M]) { twice(x, y); }\nkernel huge(x: in f32[M]) {\n    \
        let t = tile Vec<f32, 220, 256>;\n    t = 0.0;\n}\n";
    let text = format!("{KERNEL}{program}");
    c.open(URI, &text);
    c.published();
    let mut out = String::new();
    for lens in c.ask("textDocument/codeLens", document(URI)).as_array().unwrap() {
        let resolved = if lens["command"].is_null() { c.ask("codeLens/resolve", lens.clone()) } else { lens.clone() };
        let command = &resolved["command"];
        out += &format!("{} {} {}\n", range(&lens["range"]), command["title"], command["command"]);
        assert_eq!(command["arguments"][0]["textDocument"]["uri"], URI);
    }
    insta::assert_snapshot!(out);
    assert_eq!(c.fails("codeLens/resolve", json!({})).code, -32602);
}

#[test]
fn formatting_of_parts() {
    let text = "kernel k(x: in f32[M]) {\n  grid(i in tiles(M,64));\n\n\n  if M>3 {\n  let t=Vec( x.tile(i) );\n  }\n \
        let u = 1 ;\n}\n";
    let mut c = Client::new(Value::Null);
    c.open(URI, text);
    c.published();
    let mut out = String::new();
    let mut show = |what: &str, edits: Value| {
        out += &format!("== {what}\n");
        for e in edits.as_array().unwrap() {
            out += &format!("{} {}\n", range(&e["range"]), e["newText"]);
        }
    };
    let options = json!({"tabSize": 4, "insertSpaces": true});
    show("all", c.ask("textDocument/formatting", json!({"textDocument": {"uri": URI}, "options": options})));
    for (from, to) in [(5, 6), (1, 1), (0, 0)] {
        let asked = json!({"start": {"line": from, "character": 0}, "end": {"line": to, "character": 3}});
        let params = json!({"textDocument": {"uri": URI}, "range": asked, "options": options});
        show(&format!("lines {from} to {to}"), c.ask("textDocument/rangeFormatting", params));
    }
    for (ch, line, character) in [(";", 7, 12), ("}", 6, 3), ("\n", 8, 0)] {
        let mut params = json!({"textDocument": {"uri": URI}, "ch": ch, "options": options});
        params["position"] = json!({"line": line, "character": character});
        show(&format!("behind {ch:?}"), c.ask("textDocument/onTypeFormatting", params));
    }
    insta::assert_snapshot!(out);
    // A broken text is left alone, in silence while somebody writes.
    c.edit(URI, [(7, 0), (7, 12)], "let = ;");
    c.published();
    let params =
        json!({"textDocument": {"uri": URI}, "ch": ";", "position": {"line": 7, "character": 7}, "options": options});
    assert_eq!(c.ask("textDocument/onTypeFormatting", params), json!([]));
    let asked = json!({"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}});
    let params = json!({"textDocument": {"uri": URI}, "range": asked, "options": options});
    assert_eq!(c.fails("textDocument/rangeFormatting", params).code, -32803);
}

/// The edits of a range, and of what was just written, have nothing of other lines; all of them together are those of
/// the text.
#[test]
fn edits_of_a_range_lie_in_its_lines() {
    let text = "\n\nkernel k(x: in f32[M]) {\n  grid(i in tiles(M,64));\n\n \n\n  if M>3 {\n\n  \
        let t=Vec( x.tile(i) );\n  }\n  else\n  {}\n\n\n let u = 1 ;\n\n}\n\n\n";
    let mixed = text.replacen("\n\n", "\r\n\n", 3).replacen(";\n", ";\r\n", 2);
    for text in [text.to_owned(), text.replace('\n', "\r\n"), mixed] {
        let mut c = Client::new(Value::Null);
        c.open(URI, &text);
        c.published();
        let options = json!({"tabSize": 4, "insertSpaces": true});
        let last = text.matches('\n').count() as u64;
        let mut alone = 0;
        for from in 0..=last {
            for to in from..=last {
                let end = [json!({"line": to, "character": 99}), json!({"line": to + 1, "character": 0})];
                let [one, two] = end.map(|end| {
                    let asked = json!({"start": {"line": from, "character": 2}, "end": end});
                    let params = json!({"textDocument": {"uri": URI}, "range": asked, "options": options});
                    c.ask("textDocument/rangeFormatting", params)
                });
                assert_eq!(one, two, "{from}..{to}");
                for edit in one.as_array().unwrap() {
                    let at = |end: &str| {
                        let at = &edit["range"][end];
                        (at["line"].as_u64().unwrap(), at["character"].as_u64().unwrap())
                    };
                    assert!(at("start").0 >= from && at("end") <= (to + 1, 0), "{from}..{to}: {edit}");
                    // Only empty lines go with their ends.
                    let gone = edit["newText"].as_str().unwrap().trim().is_empty();
                    assert!(gone || at("end").0 <= to, "{from}..{to}: {edit}");
                    alone += u64::from(from == to);
                }
            }
            let params = json!({"textDocument": {"uri": URI}, "ch": ";", "options": options,
                                "position": {"line": from, "character": 99}});
            for edit in c.ask("textDocument/onTypeFormatting", params).as_array().unwrap() {
                assert_eq!(edit["range"]["start"]["line"], from, "{edit}");
            }
        }
        assert!(alone > 8, "{alone}");
        let whole = json!({"start": {"line": 0, "character": 0}, "end": {"line": last, "character": 0}});
        let params = json!({"textDocument": {"uri": URI}, "range": whole, "options": options});
        let edits = c.ask("textDocument/rangeFormatting", params);
        let all = c.ask("textDocument/formatting", json!({"textDocument": {"uri": URI}, "options": options}));
        let formatted = applied(&text, &all);
        assert_eq!(applied(&text, &edits).replace('\r', ""), formatted.replace('\r', ""));
        c.edit(URI, [(0, 0), (99, 0)], &formatted);
        assert_eq!(
            c.ask("textDocument/formatting", json!({"textDocument": {"uri": URI}, "options": options})),
            json!([])
        );
        let ends = (formatted.matches('\n').count(), formatted.matches("\r\n").count());
        assert!(ends.1 == 0 || ends.0 == ends.1, "{formatted:?}");
        assert_eq!(ends.1 > 0, 2 * text.matches("\r\n").count() > text.matches('\n').count(), "{formatted:?}");
        c.published();
    }
}

/// A text with edits, which are in its order and have nothing in common.
fn applied(text: &str, edits: &Value) -> String {
    let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let (mut out, mut done) = (String::new(), 0);
    for edit in edits.as_array().unwrap() {
        let at = |end: &str| {
            let at = &edit["range"][end];
            starts[at["line"].as_u64().unwrap() as usize] + at["character"].as_u64().unwrap() as usize
        };
        assert!(done <= at("start"), "{edits}");
        out += &text[done..at("start")];
        out += edit["newText"].as_str().unwrap();
        done = at("end");
    }
    out + &text[done..]
}

/// What the custom requests give is what the command line gives.
#[test]
fn views_of_a_kernel() {
    let mut c = Client::new(json!({"define": ["BM=64"]}));
    c.open(URI, GEMM);
    c.published();
    let at = there(URI, GEMM, "let acc = tile Acc<f32, m, n>;");
    let page = c.ask("ptoc/memoryMap", at.clone());
    assert_eq!(page["title"], "gemm: memory map, a2a3");
    assert!(page["html"].as_str().unwrap().starts_with("<!doctype html>"), "{page}");
    let mut params = at.clone();
    params["format"] = json!("json");
    let map = c.ask("ptoc/memoryMap", params.clone());
    assert!(map["map"].is_object(), "{map}");
    params["format"] = json!("xml");
    assert_eq!(c.fails("ptoc/memoryMap", params).code, -32602);
    let s = super::super::Sandbox::new();
    s.file("k.tile", GEMM);
    for stage in ["ast", "tokens", "ir", "placed", "sync", "loop", "clif", "pto", "pto-cpp"] {
        let mut params = at.clone();
        params["stage"] = json!(stage);
        let text = c.ask("ptoc/ir", params)["text"].as_str().unwrap().to_owned();
        assert!(text.len() > 200, "{stage}: {text}");
        if stage != "ast" && stage != "tokens" {
            let said = s.command(&format!("emit --stage {stage} k.tile gemm -D BM=64")).output().unwrap();
            assert_eq!(text, String::from_utf8(said.stdout).unwrap(), "{stage}");
        }
    }
    let mut params = at.clone();
    params["stage"] = json!("pto-c");
    assert_eq!(c.fails("ptoc/ir", params).code, -32602);
    // Between kernels there is none, and a name that is no layout has no picture.
    let nowhere = there(URI, GEMM, "use std");
    assert!(c.fails("ptoc/ir", nowhere).message.contains("several kernels"));
    assert!(c.fails("ptoc/layout", at).message.contains("no layout"));
    let broken = GEMM.replace("acc = 0.0;", "acc = ;");
    c.open(URI, &broken);
    c.published();
    let failure = c.fails("ptoc/ir", there(URI, &broken, "let acc"));
    assert!(failure.message.starts_with("line "), "{failure:?}");
}

#[test]
fn pictures_and_streams() {
    let text = "kernel k(x: in f32[M]) {\n    const ROWS = (4, 8):(8, 1);\n    grid (i in tiles(M, 64));\n}\n";
    let mut c = Client::new(Value::Null);
    c.open(URI, text);
    c.published();
    let picture = c.ask("ptoc/layout", there(URI, text, "ROWS"));
    assert_eq!(picture["title"], "ROWS = (4,8):(8,1)");
    assert!(picture["html"].as_str().unwrap().contains("<svg"), "{picture}");
    let text = "kernel scale<const BN = 256>(a: in f16[N], c: out f16[N], s: f16 = 2.0) {\n    \
        grid (i in tiles(N, BN));\n    TSTORE(c.tile(i), Vec(a.tile(i)) * s);\n}\n";
    let mut c = Client::new(json!({"target": "hbm-pim", "define": ["N=4096"]}));
    c.open(URI, text);
    c.published();
    let found = c.ask("ptoc/pim", there(URI, text, "grid"));
    assert!(found["text"].as_str().unwrap().contains("tensor"), "{found}");
    insta::assert_snapshot!(found["cost"].as_str().unwrap());
    // The lens says the same, when it is to be seen.
    let lenses = c.ask("textDocument/codeLens", document(URI));
    let lenses = lenses.as_array().unwrap().iter().filter(|l| l["command"].is_null()).cloned().collect::<Vec<_>>();
    let titles: Vec<Value> =
        lenses.into_iter().map(|l| c.ask("codeLens/resolve", l)["command"]["title"].clone()).collect();
    assert_eq!(titles[0], "show stream: 1017 cycles, 1.017 us");
    assert!(titles[1].as_str().unwrap().starts_with("geopim: "), "{titles:?}");
    let settings = json!({"settings": {"ptoc": {"target": "hbm-pim"}}});
    c.server.notify("workspace/didChangeConfiguration", settings);
    c.published();
    assert_eq!(c.fails("ptoc/pim", there(URI, text, "grid")).code, -32803);
    assert_eq!(place(text, "kernel"), json!({"line": 0, "character": 0}));
}
