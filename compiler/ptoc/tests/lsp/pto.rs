//! PTO text in an editor: what is wrong with it, its format, its tokens; in process, and over the binary's streams.

use super::super::Sandbox;
use super::beside::Streams;
use super::{Client, document, place_of, range};
use ptoc_lsp::Server;
use serde_json::{Value, json};

const URI: &str = "file:///nowhere/k.pto";

const TEXT: &str = "\
// Twice the row.
module attributes {pto.target_arch = \"a2a3\"} {
  func.func @twice(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %two = arith.constant 2.0e+00 : f32
    %xv = pto.make_tensor_view %x, shape = [%c1, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
    %yv = pto.make_tensor_view %y, shape = [%c1, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
    %xp = pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%c1, %c64] : !pto.tensor_view<?x?xf32> -> \
!pto.partition_tensor_view<1x64xf32>
    %yp = pto.partition_view %yv, offsets = [%c0, %c0], sizes = [%c1, %c64] : !pto.tensor_view<?x?xf32> -> \
!pto.partition_tensor_view<1x64xf32>
    %t = pto.alloc_tile : !pto.tile_buf<vec, 1x64xf32>
    pto.tload ins(%xp : !pto.partition_tensor_view<1x64xf32>) outs(%t : !pto.tile_buf<vec, 1x64xf32>)
    pto.tmuls ins(%t, %two : !pto.tile_buf<vec, 1x64xf32>, f32) outs(%t : !pto.tile_buf<vec, 1x64xf32>)
    pto.tstore ins(%t : !pto.tile_buf<vec, 1x64xf32>) outs(%yp : !pto.partition_tensor_view<1x64xf32>)
    return
  }
}
";

#[test]
fn mistakes_are_at_their_places() {
    let mut c = Client::new(Value::Null);
    c.open(URI, TEXT);
    assert_eq!(c.published(), format!("{URI} version 1\n"));
    // A value that nothing defines.
    let line = TEXT.lines().position(|l| l.contains("pto.tmuls")).unwrap() as u32;
    c.edit(URI, [(line, 18), (line, 20)], "%z");
    let said = c.published();
    assert!(said.contains(&format!("{line}:18-{line}:20 1 E14")), "{said}");
    c.edit(URI, [(line, 18), (line, 20)], "%t");
    assert_eq!(c.published(), format!("{URI} version 3\n"));
    // A module for another target.
    c.edit(URI, [(1, 38), (1, 42)], "a5");
    let said = c.published();
    assert!(said.contains("2 W1408: the module is for a5, and is compiled for a2a3"), "{said}");
}

#[test]
fn lines_are_indented() {
    let mut c = Client::new(Value::Null);
    let messy = TEXT.replace("    pto.tstore", "\t  pto.tstore");
    c.open(URI, &messy);
    c.published();
    let mut params = document(URI);
    params["options"] = json!({"tabSize": 4, "insertSpaces": true});
    let edits = c.ask("textDocument/formatting", params);
    let [edit] = &edits.as_array().unwrap()[..] else { panic!("{edits}") };
    let line = messy.lines().position(|l| l.contains("\t  pto.tstore")).unwrap();
    assert_eq!(edit["range"]["start"]["line"], line);
    assert!(edit["newText"].as_str().unwrap().starts_with("    pto.tstore ins(%t"), "{edit}");
}

/// The first line is a comment, the second begins with a word, and both have types of their own.
#[test]
fn tokens_are_those_of_pto_text() {
    let mut c = Client::new(Value::Null);
    c.open(URI, TEXT);
    c.published();
    let tokens = c.ask("textDocument/semanticTokens/full", document(URI));
    let data: Vec<u64> = tokens["data"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    let (comment, keyword, string) = (0, 1, 3);
    assert_eq!(data[..5], [0, 0, 17, comment, 0]);
    assert_eq!(data[5..10], [1, 0, 6, keyword, 0], "module");
    assert!(data.chunks(5).any(|t| t[3] == string), "{data:?}");
    // Four constants, four views, a tile, three instructions, the function and its end.
    assert_eq!(data.chunks(5).filter(|t| t[3] == 6).count(), 14, "operations: {data:?}");
}

#[test]
fn words_of_the_dialect_are_proposed_and_told() {
    let mut c = Client::new(Value::Null);
    let text = TEXT.replace("    return\n", "    pto.tad\n    return\n");
    c.open(URI, &text);
    c.published();
    let line = text.lines().position(|l| l.trim() == "pto.tad").unwrap();
    let at = |line: usize, character: usize| {
        let mut params = document(URI);
        params["position"] = json!({"line": line, "character": character});
        params
    };
    let list = c.ask("textDocument/completion", at(line, 11));
    let labels: Vec<&str> = list["items"].as_array().unwrap().iter().map(|i| i["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["pto.tadd", "pto.taddc", "pto.tadds", "pto.taddsc"]);
    let line = text.lines().position(|l| l.contains("pto.tmuls")).unwrap();
    let told = c.ask("textDocument/hover", at(line, 8))["contents"]["value"].as_str().unwrap().to_owned();
    let form = "pto.tmuls ins(%src0, %scalar : T, T) outs(%dst : T)";
    for part in [form, "`TMulSOp` of PTOAS's dialect", "# TMULS(dst, a, scalar)"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // No words of the language stand in this text.
    let list = c.ask("textDocument/completion", at(line, 0));
    assert!(!list.to_string().contains("\"TADD\""), "{list}");
}

/// Values and functions: where they are defined and meant, another name for one, the outline, and hints in whole words.
#[test]
fn names_of_the_text_are_known() {
    let mut c = Client::new(Value::Null);
    c.open(URI, TEXT);
    c.published();
    let line = TEXT.lines().position(|l| l.contains("pto.tmuls")).unwrap();
    let at = || {
        let mut params = document(URI);
        params["position"] = json!({"line": line, "character": 19});
        params
    };
    let place = |v: &Value| (v["range"]["start"]["line"].as_u64(), v["range"]["start"]["character"].as_u64());
    let defined = c.ask("textDocument/definition", at());
    assert_eq!(place(&defined), (Some(line as u64 - 2), Some(4)), "{defined}");
    let mut params = at();
    params["context"] = json!({"includeDeclaration": true});
    let all = c.ask("textDocument/references", params);
    assert_eq!(all.as_array().unwrap().len(), 5, "{all}");
    assert_eq!(c.ask("textDocument/documentHighlight", at()).as_array().unwrap().len(), 5);
    let told = c.ask("textDocument/hover", at())["contents"]["value"].as_str().unwrap().to_owned();
    assert!(told.contains("%t = pto.alloc_tile : !pto.tile_buf<vec, 1x64xf32>"), "{told}");
    assert_eq!(c.ask("textDocument/prepareRename", at())["placeholder"], "%t");
    let mut params = at();
    params["newName"] = json!("twice");
    let edits = c.ask("textDocument/rename", params).to_string();
    assert_eq!(edits.matches("\"newText\":\"%twice\"").count(), 5, "{edits}");
    let outline = c.ask("textDocument/documentSymbol", document(URI));
    assert_eq!(outline[0]["name"], "@twice");
    let inside: Vec<&str> =
        outline[0]["children"].as_array().unwrap().iter().map(|d| d["name"].as_str().unwrap()).collect();
    assert_eq!(inside, ["%x", "%y", "%xv", "%yv", "%t"]);
    let mut params = document(URI);
    params["range"] = json!({"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}});
    let hints = c.ask("textDocument/inlayHint", params);
    let budget = hints.as_array().unwrap().iter().find(|h| h["label"].as_str().unwrap().contains("left")).unwrap();
    let character = TEXT.lines().nth(2).unwrap().find('(').unwrap();
    assert_eq!(budget["position"], json!({"line": 2, "character": character}), "{hints}");
}

/// An editor opens a file, breaks it, mends it, asks about it and goes: over the binary's streams.
#[test]
fn an_editor_over_the_streams() {
    let s = Sandbox::new();
    let path = s.path().join("k.pto");
    std::fs::write(&path, TEXT).unwrap();
    let uri = format!("file://{}", path.display());
    let mut c = Streams::new(&s);
    let item = json!({"uri": uri, "languageId": "pto", "version": 1, "text": TEXT});
    c.tell("textDocument/didOpen", json!({"textDocument": item}));
    let mut version = 1;
    // What is published of this version, and nothing else.
    let published = |c: &mut Streams, version: i32| {
        let said = c.read();
        assert_eq!(said["method"], "textDocument/publishDiagnostics", "{said}");
        assert_eq!((&said["params"]["uri"], &said["params"]["version"]), (&json!(uri), &json!(version)), "{said}");
        let found = said["params"]["diagnostics"].as_array().unwrap().clone();
        found.iter().map(|d| format!("{} {} {}", range(&d["range"]), d["severity"], d["code"])).collect::<Vec<_>>()
    };
    assert_eq!(published(&mut c, 1), [""; 0]);
    let line = TEXT.lines().position(|l| l.contains("pto.tmuls")).unwrap();
    let mut change = |c: &mut Streams, from: u32, to: u32, text: &str| {
        version += 1;
        let range = json!({"start": {"line": line, "character": from}, "end": {"line": line, "character": to}});
        let params = json!({"textDocument": {"uri": uri, "version": version},
                            "contentChanges": [{"range": range, "text": text}]});
        c.tell("textDocument/didChange", params);
        version
    };
    // The mistakes of three stages: of the text, of its types, and of what it does.
    let number = TEXT.lines().nth(line).unwrap().find(", f32").unwrap() as u32 + 2;
    for (from, to, wrong, code) in
        [(4, 13, "pto.tmulz", "E1401"), (18, 20, "%z", "E1402"), (number, number + 3, "i32", "E1403")]
    {
        let right = &TEXT.lines().nth(line).unwrap()[from as usize..to as usize];
        let now = change(&mut c, from, to, wrong);
        let found = published(&mut c, now);
        assert_eq!(found, [format!("{line}:{from}-{line}:{to} 1 \"{code}\"")], "{wrong}");
        let now = change(&mut c, from, from + wrong.len() as u32, right);
        assert_eq!(published(&mut c, now), [""; 0], "{wrong}");
    }
    let mut answer = |method: &str, params: Value| {
        let id = c.ask(method, params);
        let said = c.read();
        assert_eq!(said["id"], id, "{method}: {said}");
        assert!(said.get("error").is_none(), "{method}: {said}");
        said["result"].clone()
    };
    let at = |line: usize, character: usize| {
        let mut params = document(&uri);
        params["position"] = json!({"line": line, "character": character});
        params
    };
    let told = answer("textDocument/hover", at(line, 8))["contents"]["value"].as_str().unwrap().to_owned();
    assert!(told.contains("pto.tmuls ins(") && told.contains("# TMULS"), "{told}");
    let told = answer("textDocument/hover", at(line, 19))["contents"]["value"].as_str().unwrap().to_owned();
    assert!(told.contains("%t = pto.alloc_tile"), "{told}");
    let defined = answer("textDocument/definition", at(line, 19));
    assert_eq!(
        (&defined["uri"], range(&defined["range"])),
        (&json!(uri), format!("{0}:4-{0}:6", line - 2)),
        "{defined}"
    );
    let outline = answer("textDocument/documentSymbol", document(&uri));
    assert_eq!(
        (&outline[0]["name"], outline[0]["children"].as_array().unwrap().len()),
        (&json!("@twice"), 5),
        "{outline}"
    );
    let mut params = document(&uri);
    params["options"] = json!({"tabSize": 2, "insertSpaces": true});
    // Nothing is to be done, and then one line is indented too far.
    assert_eq!(answer("textDocument/formatting", params.clone()), json!([]));
    let proposed = answer("textDocument/completion", at(line, 12));
    assert!(proposed.to_string().contains("\"pto.tmuls\""), "{proposed}");
    let tokens = answer("textDocument/semanticTokens/full", document(&uri));
    assert!(tokens["data"].as_array().unwrap().len() > 100, "{tokens}");
    let now = change(&mut c, 0, 0, "      ");
    let indented = TEXT.lines().nth(line).unwrap().len() + 6;
    assert_eq!(published(&mut c, now), [""; 0]);
    let id = c.ask("textDocument/formatting", params);
    let edits = c.read();
    let place = range(&edits["result"][0]["range"]);
    assert_eq!((&edits["id"], place), (&json!(id), format!("{line}:0-{line}:{indented}")), "{edits}");
    c.end();
}

/// Every request at lines of every text of ptoc-pto's tests, whole and cut off: an answer or a refusal.
#[test]
fn every_request_on_pto_text() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../pto/tests/it/texts");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() > 8, "{paths:?}");
    for (n, path) in paths.iter().enumerate() {
        let whole = std::fs::read_to_string(path).unwrap();
        for text in [&whole[..], &whole[..whole.floor_char_boundary(whole.len() * 2 / 3)]] {
            let mut c = Client::new(Value::Null);
            c.open(URI, text);
            c.published();
            for (m, method) in Server::requests().enumerate() {
                for line in (0..text.lines().count()).filter(|line| line % 5 == (n + m) % 5) {
                    let column = text.lines().nth(line).unwrap().len() as u32 / 2;
                    if let Err(failure) = c.server.request(method, place_of(URI, line as u32, column)) {
                        assert!([-32803, -32602].contains(&failure.code), "{method} {path:?}:{line}: {failure:?}");
                    }
                }
            }
        }
    }
}
