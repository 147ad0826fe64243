//! Diagnostics by request, what the server asks of clients that can do more, and the examples of the repository.

use super::{Client, KERNEL, Sandbox, URI, document, place_of};
use ptoc_lsp::Server;
use serde_json::{Value, json};

fn everything() -> Value {
    json!({
        "textDocument": {"diagnostic": {}, "publishDiagnostics": {"codeDescriptionSupport": true}},
        "workspace": {
            "diagnostics": {"refreshSupport": true}, "inlayHint": {"refreshSupport": true},
            "codeLens": {"refreshSupport": true},
            "didChangeWatchedFiles": {"dynamicRegistration": true},
        },
    })
}

#[test]
fn a_client_that_pulls_is_not_pushed() {
    let mut c = Client::able(Value::Null, everything());
    let registered = c.published();
    assert!(registered.starts_with("#1 client/registerCapability") && registered.contains("**/*.tile"), "{registered}");
    c.open(URI, &KERNEL.replace("TMULS", "TMULZ"));
    assert_eq!(c.published(), "");
    let report = c.ask("textDocument/diagnostic", document(URI));
    let d = &report["items"][0];
    assert_eq!((&report["kind"], &d["code"]), (&json!("full"), &json!("E0111")), "{report}");
    // The link leads to the page, which the server has.
    assert_eq!(d["codeDescription"]["href"], "ptoc-std:/codes/E0111.md");
    let page = c.ask("workspace/textDocumentContent", json!({"uri": d["codeDescription"]["href"]}));
    assert!(page["text"].as_str().unwrap().starts_with("# E0111"), "{page}");
    let mut again = document(URI);
    again["previousResultId"] = report["resultId"].clone();
    assert_eq!(c.ask("textDocument/diagnostic", again.clone())["kind"], "unchanged");
    c.edit(URI, [(7, 8), (7, 9)], "S");
    let report = c.ask("textDocument/diagnostic", again);
    assert_eq!((&report["kind"], &report["items"]), (&json!("full"), &json!([])));
    c.server.notify("workspace/didChangeConfiguration", json!({"settings": {"target": "a5"}}));
    let asked = c.published();
    assert_eq!(
        asked.lines().map(|l| l.split(' ').nth(1).unwrap()).collect::<Vec<_>>(),
        ["workspace/diagnostic/refresh", "workspace/inlayHint/refresh", "workspace/codeLens/refresh"]
    );
    c.server.notify("textDocument/didClose", document(URI));
    assert_eq!(c.published(), "");
}

/// Every request, at every line of every example, whole and cut off in the middle: it has an answer or a refusal, and
/// no request is missing here.
#[test]
fn every_request_on_every_example() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut examples: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    examples.retain(|p| p.extension().is_some_and(|e| e == "tile"));
    examples.sort();
    // Each has some of the requests on the whole text, others on half of it: all of all is too slow for a suite.
    for (n, path) in examples.iter().enumerate() {
        let whole = std::fs::read_to_string(path).unwrap();
        let text = if n % 2 == 0 { whole } else { whole[..whole.floor_char_boundary(whole.len() * 2 / 3)].to_owned() };
        let mut c = Client::new(Value::Null);
        c.open(URI, &text);
        c.published();
        for (m, method) in Server::requests().enumerate() {
            if method.starts_with("ptoc/") && n % 8 != 0 {
                continue;
            }
            for line in (0..text.lines().count()).filter(|line| line % 17 == (n + m) % 17) {
                let column = text.lines().nth(line).unwrap().len() as u32 / 2;
                if let Err(failure) = c.server.request(method, place_of(URI, line as u32, column)) {
                    assert!([-32803, -32602].contains(&failure.code), "{method} {path:?}:{line}: {failure:?}");
                }
            }
        }
    }
}

/// Who writes a client reads what is wrong with its parameters, and no names of types of the server's.
#[test]
fn wrong_parameters_are_said_in_words_of_the_protocol() {
    let mut c = Client::new(Value::Null);
    c.open(URI, KERNEL);
    c.published();
    let mut said = std::collections::BTreeSet::new();
    for params in [
        json!({"textDocument": 7, "position": {"line": 0, "character": 0}}),
        json!({"textDocument": {"uri": URI}, "position": {"line": -1, "character": 0}}),
        json!({"textDocument": {"uri": URI}, "position": {"line": "x", "character": 0}, "range": 4, "positions": {}}),
        json!({"textDocument": {"uri": "no uri at all"}}),
        json!({"textDocument": {"uri": URI}, "position": [], "context": "c", "newName": 4, "stage": 4, "query": 4}),
        json!({"textDocument": {"uri": URI}, "positions": 4, "options": {"tabSize": [1]}, "item": 4, "data": 4}),
        json!([]),
        json!("text"),
        Value::Null,
    ] {
        for method in Server::requests() {
            if let Err(failure) = c.server.request(method, params.clone()) {
                let ours = |w: &str| {
                    w.chars().filter(|c| c.is_uppercase()).count() > 1
                        && !w.contains("URI")
                        && w.chars().any(char::is_lowercase)
                };
                let words = failure.message.split(|c: char| !c.is_alphanumeric());
                let named: Vec<&str> =
                    words.filter(|w| ours(w)).filter(|w| w.starts_with(char::is_uppercase)).collect();
                let types = ["struct", "enum", "variant", "untagged", "u32", "i32", "usize"];
                assert!(
                    named.is_empty() && !types.iter().any(|t| failure.message.contains(t)),
                    "{method}: {failure:?}"
                );
                said.insert(failure.message);
            }
        }
    }
    let all: Vec<String> = said.into_iter().collect();
    insta::assert_snapshot!(all.join("\n"));
}

/// A pipe that nobody writes to never ends: it is no module, and the server goes on.
#[test]
#[cfg(unix)]
fn pipes_are_no_modules() {
    let s = Sandbox::new();
    let made = std::process::Command::new("mkfifo").arg(s.path().join("pipe.tile")).status().unwrap();
    assert!(made.success());
    let uri = format!("file://{}", s.path().canonicalize().unwrap().join("k.tile").display());
    let mut c = Client::new(Value::Null);
    c.open(&uri, &format!("use pipe::f;\n{KERNEL}"));
    let published = c.published();
    assert!(published.contains("it is a pipe or a device"), "{published}");
    c.edit(&uri, [(0, 10), (0, 12)], "");
    assert_eq!(c.ask("textDocument/completion", super::at(&uri, 0, 10))["items"], json!([]));
    c.published();
}

/// A change whose range is none is no change of the whole text: it is refused, and the user told.
#[test]
fn an_edit_with_a_bad_range_is_refused() {
    let text = "fn f(x: f32) -> f32 { x }\n";
    let place = json!({"line": 0, "character": 0});
    for range in [
        json!({"start": {"line": 0, "character": -1}, "end": place}),
        json!({"start": place}),
        json!({"start": place, "end": {"line": 4294967296u64, "character": 0}}),
        json!(5),
        Value::Null,
    ] {
        let mut c = Client::new(Value::Null);
        c.open(URI, text);
        c.published();
        let change = json!({"range": range, "text": "Q"});
        let of = json!({"uri": URI, "version": 2});
        c.server.notify("textDocument/didChange", json!({"textDocument": of, "contentChanges": [change]}));
        let said = c.published();
        assert!(said.contains("ptoc: an edit is not followed: the parameters are not those"), "{range}: {said}");
        assert_eq!(c.ask("textDocument/documentSymbol", document(URI))[0]["name"], "f", "{range}");
    }
    // The length, which the protocol has given up, is not looked at.
    let mut c = Client::new(Value::Null);
    c.open(URI, text);
    let start = json!({"line": 1, "character": 0});
    let change = json!({"range": {"start": start, "end": start}, "rangeLength": -1, "text": "fn g() -> f32 { 1.0 }\n"});
    let of = json!({"uri": URI, "version": 2});
    c.server.notify("textDocument/didChange", json!({"textDocument": of, "contentChanges": [change]}));
    let symbols = c.ask("textDocument/documentSymbol", document(URI));
    assert_eq!((&symbols[0]["name"], &symbols[1]["name"]), (&json!("f"), &json!("g")));
    c.published();
}
