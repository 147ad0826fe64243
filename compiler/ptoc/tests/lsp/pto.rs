//! PTO text in an editor: what is wrong with it, its format, its tokens.

use super::{Client, document};
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
