//! What is asked about names: where they are defined and used, renaming, symbols, tokens, calls.

use super::super::Sandbox;
use super::{Client, URI, document, range};
use serde_json::{Value, json};

const TEXT: &str = r#"use std::act::relu;

// run: scale interp,cpu M=64 N=32 BM=32 act=twice seed=1
/// Twice.
fn twice(x: f32) -> f32 { x + x }

kernel scale<const BM = 64, type T = f32, fn act = twice>(a: in T[M, N], c: out T[M, N])
    where N <= 64
    ensures c[i, j] == act(a[i, j])
{
    static_assert(BM % 16 == 0, "got {BM}");
    grid (i in tiles(M, BM));
    let t = tile Vec<T, i, N>;
    TLOAD(t, a.tile(i, _));
    for k in 0..2 {
        t += T(1.0);
    }
    TSTORE(c.tile(i, _), act(relu(t)));
}
program both(x: in f32[M, N], y: out f32[M, N]) {
    let z = tensor f32[M, N];
    scale<BM = 32>(x, z);
    scale(a = z, c = y);
}
"#;

/// The position of the first letter of `needle`.
pub fn place(text: &str, needle: &str) -> Value {
    let at = text.find(needle).unwrap_or_else(|| panic!("no {needle}"));
    let (line, column) = super::random::position(text, at);
    json!({"line": line, "character": column})
}

pub fn there(uri: &str, text: &str, needle: &str) -> Value {
    json!({"textDocument": {"uri": uri}, "position": place(text, needle)})
}

fn opened(text: &str) -> Client {
    let mut c = Client::new(Value::Null);
    c.open(URI, text);
    c.published();
    c
}

/// Locations in a line each.
fn locations(value: &Value) -> String {
    let one = |l: &Value| {
        let uri = l["uri"].as_str().unwrap();
        format!("{} {}\n", uri.rsplit('/').next().unwrap(), range(&l["range"]))
    };
    match value {
        Value::Null => "nothing\n".into(),
        Value::Array(list) => list.iter().map(one).collect(),
        other => one(other),
    }
}

#[test]
fn definitions_types_references_highlights() {
    let mut c = opened(TEXT);
    let mut out = String::new();
    for needle in
        ["relu(t)", "BM));", "t += T", "N>;", "twice>", "i, j] ==", "std::act", "TLOAD", "c = y", "BM=32", "{BM}"]
    {
        let needle = needle.trim_start_matches('{');
        out += &format!("== {needle}\n");
        for method in ["definition", "typeDefinition"] {
            let found = c.ask(&format!("textDocument/{method}"), there(URI, TEXT, needle));
            out += &format!("{method}: {}", locations(&found));
        }
        let mut params = there(URI, TEXT, needle);
        params["context"] = json!({"includeDeclaration": true});
        out += &format!("references:\n{}", locations(&c.ask("textDocument/references", params.clone())));
        params["context"] = json!({"includeDeclaration": false});
        let fewer = c.ask("textDocument/references", params);
        out += &format!("without the definition {}\n", fewer.as_array().map_or(0, Vec::len));
        let lit = c.ask("textDocument/documentHighlight", there(URI, TEXT, needle));
        for h in lit.as_array().into_iter().flatten() {
            out += &format!("  {} kind {}\n", range(&h["range"]), h["kind"]);
        }
    }
    insta::assert_snapshot!(out);
}

/// The text after a workspace edit of this text.
fn applied(text: &str, edits: &Value) -> String {
    let offset = |p: &Value| {
        let (line, column) = (p["line"].as_u64().unwrap() as usize, p["character"].as_u64().unwrap() as usize);
        text.split_inclusive('\n').take(line).map(str::len).sum::<usize>() + column
    };
    let mut out = text.to_owned();
    let mut edits = edits.as_array().unwrap().clone();
    edits.sort_by_key(|e| std::cmp::Reverse(offset(&e["range"]["start"])));
    for e in &edits {
        let r = offset(&e["range"]["start"])..offset(&e["range"]["end"]);
        out.replace_range(r, e["newText"].as_str().unwrap());
    }
    out
}

#[test]
fn renaming_keeps_the_meaning_or_is_refused() {
    let mut c = opened(TEXT);
    for (needle, new) in [
        ("BM = 64", "ROWS"),
        ("M, N], c", "HEIGHT"),
        ("t = tile", "inside"),
        ("twice(x", "double"),
        ("i, j] ==", "row"),
        ("scale<const", "grow"),
        ("a: in", "source"),
        ("k in 0", "step"),
    ] {
        let prepared = c.ask("textDocument/prepareRename", there(URI, TEXT, needle));
        let old = prepared["placeholder"].as_str().unwrap().to_owned();
        assert!(needle.starts_with(&old), "{prepared}");
        let mut params = there(URI, TEXT, needle);
        params["newName"] = json!(new);
        let edit = c.ask("textDocument/rename", params);
        let renamed = applied(TEXT, &edit["changes"][URI]);
        // No error is there afterwards, and the way back leads to where it began.
        let mut other = Client::new(Value::Null);
        other.open(URI, &renamed);
        let published = other.published();
        assert!(!published.contains(" 1 E") && !published.contains(" 2 "), "{renamed}\n{published}");
        let begin = edit["changes"][URI][0]["range"]["start"].clone();
        let back = json!({"textDocument": {"uri": URI}, "position": begin, "newName": old});
        let edit = other.ask("textDocument/rename", back);
        assert_eq!(applied(&renamed, &edit["changes"][URI]), TEXT);
    }
    let mut said = String::new();
    for (needle, new) in [
        ("t = tile", "for"),
        ("t = tile", "TADD"),
        ("t = tile", "f32"),
        ("t = tile", "1x"),
        ("t = tile", "a b"),
        ("c: out", "t"),
        ("t = tile", "k"),
        ("M, N], c", "N"),
        ("twice(x", "relu"),
        ("BM = 64", "T"),
        ("k in 0", "t"),
        ("relu(t)", "ramp"),
        ("TLOAD", "load"),
        ("f32 {", "x"),
        ("std::act", "x"),
        ("scale<const", "both"),
        ("t = tile", "max"),
        ("z = tensor", "x"),
    ] {
        let mut params = there(URI, TEXT, needle);
        params["newName"] = json!(new);
        let failure = c.fails("textDocument/rename", params);
        assert_eq!(failure.code, -32803);
        said += &format!("{needle} -> {new}: {}\n", failure.message);
    }
    let nothing = c.fails("textDocument/prepareRename", there(URI, TEXT, "{\n    static"));
    said += &nothing.message;
    insta::assert_snapshot!(said);
}

/// The tensor of `#[disjoint]` is renamed with its parameter, wherever the cursor is.
#[test]
fn disjoint_names_a_parameter() {
    let text = "#[disjoint(dst, \"a permutation\")]\n\
                kernel sc(src: in f32[N], rows: in i32[N], dst: out f32[N]) {\n    \
                grid (i in tiles(N, 64));\n    let r = Vec(rows.tile(i));\n    let v = Vec(src.tile(i));\n    \
                MSCATTER(dst, v, r);\n}\n";
    let mut c = opened(text);
    for needle in ["dst, \"", "dst: out", "dst, v"] {
        let mut params = there(URI, text, needle);
        params["newName"] = json!("places");
        let edit = c.ask("textDocument/rename", params);
        assert_eq!(applied(text, &edit["changes"][URI]), text.replace("dst", "places"));
    }
}

/// Texts that are open and on no disk import each other: names lead from one to the other.
#[test]
fn names_of_texts_that_are_not_saved() {
    let (a, b) =
        ("fn scale(x: f32) -> f32 { x * 3.0 }\n", "use a::scale;\nfn twice(x: f32) -> f32 { scale(x) + scale(x) }\n");
    let [first, second] = ["file:///nowhere/a.tile", "file:///nowhere/b.tile"];
    let mut c = Client::new(Value::Null);
    c.open(first, a);
    c.published();
    c.open(second, b);
    assert!(!c.published().contains(" 1 E"));
    let found = c.ask("textDocument/definition", there(second, b, "scale(x) +"));
    assert!(found.to_string().contains(first), "{found}");
    for (uri, text, needle) in [(first, a, "scale("), (second, b, "scale(x) +")] {
        let mut params = there(uri, text, needle);
        params["newName"] = json!("triple");
        let edit = c.ask("textDocument/rename", params);
        assert_eq!(applied(a, &edit["changes"][first]), a.replace("scale", "triple"));
        assert_eq!(applied(b, &edit["changes"][second]), b.replace("scale", "triple"));
    }
}

/// Clients that can are told which state of a text an edit is for.
#[test]
fn edits_have_versions_where_the_client_takes_them() {
    let mut c = Client::able(Value::Null, json!({"workspace": {"workspaceEdit": {"documentChanges": true}}}));
    c.open(URI, TEXT);
    c.edit(URI, [(0, 0), (0, 0)], " ");
    c.published();
    let text = format!(" {TEXT}");
    let mut params = there(URI, &text, "t = tile");
    params["newName"] = json!("inside");
    let edit = c.ask("textDocument/rename", params);
    assert_eq!((&edit["changes"], edit["documentChanges"].as_array().unwrap().len()), (&Value::Null, 1), "{edit}");
    let change = &edit["documentChanges"][0];
    assert_eq!(change["textDocument"], json!({"uri": URI, "version": 2}));
    assert_eq!(applied(&text, &change["edits"]).matches("inside").count(), 4);
    c.edit(URI, [(0, 0), (0, 1)], "");
    let line = place(TEXT, "TLOAD")["line"].as_u64().unwrap() as u32;
    c.edit(URI, [(line, 4), (line, 9)], "TLOAF");
    c.published();
    let whole = json!({"start": {"line": line, "character": 0}, "end": {"line": line, "character": 9}});
    let params = json!({"textDocument": {"uri": URI}, "range": whole, "context": {"diagnostics": []}});
    let actions = c.ask("textDocument/codeAction", params);
    assert_eq!(actions[0]["edit"]["documentChanges"][0]["textDocument"]["version"], 4, "{actions}");
}

/// A function is renamed in the file that defines it, in one that imports it and is open, and in one that is not.
#[test]
fn names_go_across_files() {
    let s = Sandbox::new();
    let root = s.path().canonicalize().unwrap();
    let lib = "/// Half.\nfn half(x: f32) -> f32 { x * 0.5 }\n";
    let body = "kernel k(x: in f32[M], y: out f32[M]) {\n    grid (i in tiles(M, 64));\n    \
        TSTORE(y.tile(i), half(Vec(x.tile(i))));\n}\n";
    s.file("lib.tile", lib);
    s.file("closed.tile", format!("use lib::half;\n{body}"));
    s.file("other.tile", format!("fn half(x: f32) -> f32 {{ x }}\n{body}"));
    let text = format!("use lib::half;\n// run: k cpu M=3 x=x.npy\n{body}");
    s.file("k.tile", &text);
    s.file("x.npy", "");
    let uri = |name: &str| format!("file://{}", root.join(name).display());
    let mut c = Client::in_folder(&root);
    c.open(&uri("k.tile"), &text);
    assert_eq!(c.published(), format!("{} version 1\n", uri("k.tile")));
    let mut out = locations(&c.ask("textDocument/definition", there(&uri("k.tile"), &text, "half(Vec")));
    out += &locations(&c.ask("textDocument/definition", there(&uri("k.tile"), &text, "lib::")));
    let mut params = there(&uri("k.tile"), &text, "half(Vec");
    params["context"] = json!({"includeDeclaration": true});
    out += &locations(&c.ask("textDocument/references", params.clone()));
    params["newName"] = json!("halved");
    let edit = c.ask("textDocument/rename", params);
    let mut files: Vec<&String> = edit["changes"].as_object().unwrap().keys().collect();
    files.sort();
    assert_eq!(files, [&uri("closed.tile"), &uri("k.tile"), &uri("lib.tile")]);
    assert_eq!(applied(lib, &edit["changes"][uri("lib.tile")]), lib.replace("half", "halved"));
    assert_eq!(applied(&text, &edit["changes"][uri("k.tile")]), text.replace("half", "halved"));
    out += "links\n";
    for link in c.ask("textDocument/documentLink", document(&uri("k.tile"))).as_array().unwrap() {
        out += &format!("{} {}\n", range(&link["range"]), link["target"].as_str().unwrap().rsplit('/').next().unwrap());
    }
    out += "symbols like hf\n";
    for symbol in c.ask("workspace/symbol", json!({"query": "hf"})).as_array().unwrap() {
        out += &format!("{} in {}\n", symbol["name"], symbol["containerName"]);
    }
    let item = c.ask("textDocument/prepareCallHierarchy", there(&uri("k.tile"), &text, "half(Vec"))[0].clone();
    out += &format!("callers of {} in {}\n", item["name"], item["uri"].as_str().unwrap().rsplit('/').next().unwrap());
    for call in c.ask("callHierarchy/incomingCalls", json!({"item": item})).as_array().unwrap() {
        let uri = call["from"]["uri"].as_str().unwrap().rsplit('/').next().unwrap();
        out += &format!("{} in {uri} at {}\n", call["from"]["name"], range(&call["fromRanges"][0]));
    }
    let item = c.ask("textDocument/prepareCallHierarchy", there(&uri("k.tile"), &text, "k(x"))[0].clone();
    for call in c.ask("callHierarchy/outgoingCalls", json!({"item": item})).as_array().unwrap() {
        out += &format!("k calls {} at {}\n", call["to"]["name"], range(&call["fromRanges"][0]));
    }
    insta::assert_snapshot!(out);
}

#[test]
fn the_library_has_texts() {
    let mut c = opened(TEXT);
    let found = c.ask("textDocument/definition", there(URI, TEXT, "relu(t)"));
    let uri = found["uri"].as_str().unwrap();
    assert_eq!(uri, "ptoc-std:/act.tile");
    let text = c.ask("workspace/textDocumentContent", json!({"uri": uri}));
    let line = found["range"]["start"]["line"].as_u64().unwrap() as usize;
    assert!(text["text"].as_str().unwrap().lines().nth(line).unwrap().starts_with("fn relu"));
    assert_eq!(c.fails("workspace/textDocumentContent", json!({"uri": "ptoc-std:/no.tile"})).code, -32602);
}

#[test]
fn outlines_foldings_selections() {
    let mut c = opened(TEXT);
    let mut out = String::new();
    for symbol in c.ask("textDocument/documentSymbol", document(URI)).as_array().unwrap() {
        out += &format!("{} {} {}\n", symbol["name"], symbol["detail"], range(&symbol["range"]));
        for child in symbol["children"].as_array().unwrap() {
            out += &format!("  {} {} {}\n", child["name"], child["detail"], range(&child["range"]));
        }
    }
    out += "folds\n";
    for fold in c.ask("textDocument/foldingRange", document(URI)).as_array().unwrap() {
        out += &format!("{}..{} {}\n", fold["startLine"], fold["endLine"], fold["kind"]);
    }
    let params = json!({"textDocument": {"uri": URI}, "positions": [place(TEXT, "i, _), act"), place(TEXT, "T(1.0)")]});
    for selection in c.ask("textDocument/selectionRange", params).as_array().unwrap() {
        out += "selects\n";
        let mut at = selection;
        while at["range"].is_object() {
            out += &format!("  {}\n", range(&at["range"]));
            at = &at["parent"];
        }
    }
    insta::assert_snapshot!(out);
}

/// What is asked at every place, in texts that are whole and broken: each range is around the place and in the next
/// one.
#[test]
fn selections_are_around_each_other() {
    let deep = format!("kernel k() {{\n{}{}\n}}\n", "if M > 0 {\n".repeat(20), "}".repeat(20));
    let broken = "fn f(x: f32, y: f32) -> f32 { g(x, [y; 1)] }\nkernel k(x: in f32[M, (2, 3]) {{ a(b<c, d>(e), f); }\n\
        const A = (1, 2;\n";
    for text in [TEXT, &deep, broken] {
        let mut c = opened(text);
        let lines: Vec<&str> = text.split('\n').collect();
        let places = lines
            .iter()
            .enumerate()
            .flat_map(|(n, line)| (0..=line.len()).map(move |column| json!({"line": n, "character": column})));
        let places: Vec<Value> = places.collect();
        let params = json!({"textDocument": {"uri": URI}, "positions": places});
        let answer = c.ask("textDocument/selectionRange", params);
        for (at, selection) in places.iter().zip(answer.as_array().unwrap()) {
            let place = |v: &Value| (v["line"].as_u64().unwrap(), v["character"].as_u64().unwrap());
            let (mut inner, mut next) = ((place(at), place(at)), selection);
            while next["range"].is_object() {
                let outer = (place(&next["range"]["start"]), place(&next["range"]["end"]));
                assert!(outer.0 <= inner.0 && inner.1 <= outer.1 && outer.0 < outer.1, "{at}: {selection}");
                (inner, next) = (outer, &next["parent"]);
            }
            assert_eq!(inner.0, (0, 0), "{at}: {selection}");
        }
    }
}

/// Semantic tokens, a line each with the text.
fn tokens(text: &str, data: &Value) -> String {
    let numbers: Vec<usize> = data.as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
    let (mut line, mut column, mut out) = (0, 0, String::new());
    for t in numbers.chunks(5) {
        column = if t[0] == 0 { column + t[1] } else { t[1] };
        line += t[0];
        let word = &text.lines().nth(line).unwrap()[column..column + t[2]];
        out += &format!("{line}:{column} {word} {} {}\n", t[3], t[4]);
    }
    out
}

#[test]
fn semantic_tokens() {
    let mut c = opened(TEXT);
    let full = c.ask("textDocument/semanticTokens/full", document(URI));
    let all = tokens(TEXT, &full["data"]);
    let range = json!({"start": place(TEXT, "static_assert"), "end": place(TEXT, "let t")});
    let params = json!({"textDocument": {"uri": URI}, "range": range});
    let part = tokens(TEXT, &c.ask("textDocument/semanticTokens/range", params)["data"]);
    assert!(!part.is_empty() && all.contains(&part), "{part}");
    // An edit, told as a difference.
    c.edit(URI, [(4, 3), (4, 8)], "thrice");
    let params = json!({"textDocument": {"uri": URI}, "previousResultId": full["resultId"]});
    let delta = c.ask("textDocument/semanticTokens/full/delta", params.clone());
    let edit = &delta["edits"][0];
    let mut data = full["data"].as_array().unwrap().clone();
    let (start, count) = (edit["start"].as_u64().unwrap() as usize, edit["deleteCount"].as_u64().unwrap() as usize);
    data.splice(start..start + count, edit["data"].as_array().unwrap().iter().cloned());
    assert_eq!(json!(data), c.ask("textDocument/semanticTokens/full", document(URI))["data"]);
    // Of a state that the server has not any more there is no difference.
    assert!(c.ask("textDocument/semanticTokens/full/delta", params)["data"].is_array());
    c.published();
    insta::assert_snapshot!(all);
}

/// What is asked of a text with mistakes has an answer.
#[test]
fn broken_texts_are_served() {
    let text =
        TEXT.replace("    TLOAD(t, a.tile(i, _));\n", "    TLOAD(t, a.tile(i, \n").replace("let t = ", "let t == ");
    let mut c = opened(&text);
    let found = c.ask("textDocument/definition", there(URI, &text, "BM));"));
    assert_eq!(locations(&found), "k.tile 6:19-6:21\n");
    let lit = c.ask("textDocument/documentHighlight", there(URI, &text, "a: in"));
    assert!(lit.as_array().unwrap().len() >= 2, "{lit}");
    assert_eq!(c.ask("textDocument/documentSymbol", document(URI)).as_array().unwrap().len(), 3);
    assert!(!c.ask("textDocument/foldingRange", document(URI)).as_array().unwrap().is_empty());
}
