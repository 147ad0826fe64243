//! The binary while it analyses: the conversation goes on, and what is out of date is not published.

use super::super::Sandbox;
use super::names::place;
use super::{URI, document};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A client of the binary, which sees the order of the messages.
pub(super) struct Streams {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    id: u64,
}

impl Streams {
    pub(super) fn new(s: &Sandbox) -> Streams {
        let mut child = s.command("lsp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut c = Streams { child, input, output, id: 0 };
        let capabilities = json!({"general": {"positionEncodings": ["utf-8"]}});
        c.ask("initialize", json!({"processId": null, "rootUri": null, "capabilities": capabilities}));
        assert_eq!(c.read()["id"], 1);
        c.tell("initialized", json!({}));
        c
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
    }

    pub(super) fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Asks, and does not wait.
    pub(super) fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.id += 1;
        let id = self.id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub(super) fn read(&mut self) -> Value {
        serde_json::from_str(&self.message()).unwrap()
    }

    fn message(&mut self) -> String {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server is gone");
            match line.trim().strip_prefix("Content-Length: ") {
                Some(n) => length = n.parse().unwrap(),
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).unwrap();
        String::from_utf8(body).unwrap()
    }

    fn open(&mut self, version: i32, text: &str) {
        let document = json!({"uri": URI, "languageId": "tile", "version": version, "text": text});
        self.tell("textDocument/didOpen", json!({"textDocument": document}));
    }

    /// Puts text at the beginning.
    fn edit(&mut self, version: i32, text: &str) {
        let start = json!({"line": 0, "character": 0});
        let change = json!({"range": {"start": start, "end": start}, "text": text});
        let params = json!({"textDocument": {"uri": URI, "version": version}, "contentChanges": [change]});
        self.tell("textDocument/didChange", params);
    }

    /// Messages up to the diagnostics of a version: for each the id, the error, or what was published.
    fn until(&mut self, version: i32) -> Vec<(Option<u64>, Value)> {
        let mut all = Vec::new();
        loop {
            let m = self.read();
            if m["method"] == "textDocument/publishDiagnostics" {
                let params = m["params"].clone();
                let last = params["version"] == version;
                all.push((None, params));
                if last {
                    return all;
                }
                continue;
            }
            let answer = if m["error"].is_null() { m["result"].clone() } else { m["error"].clone() };
            all.push((m["id"].as_u64(), answer));
        }
    }

    pub(super) fn end(mut self) {
        let id = self.ask("shutdown", Value::Null);
        while self.read()["id"] != id {}
        self.tell("exit", Value::Null);
        assert!(self.child.wait().unwrap().success());
    }
}

/// So many kernels that their analysis takes a while.
fn long() -> String {
    let kernel = |n: usize| {
        let steps: String = (0..30)
            .map(|k| format!("    let t{} = tile Vec<f32, i, 64>;\n    TADDS(t{}, t{k}, {n}.5);\n", k + 1, k + 1))
            .collect();
        format!(
            "kernel k{n}(x: in f32[M, 64], y: out f32[M, 64]) {{\n    grid (i in tiles(M, 8));\n    \
             let t0 = Vec(x.tile(i, _));\n{steps}    TSTORE(y.tile(i, _), t30);\n}}\n"
        )
    };
    (0..60).map(kernel).collect()
}

#[test]
fn requests_are_answered_while_a_text_is_analysed() {
    let s = Sandbox::new();
    let mut c = Streams::new(&s);
    let text = long();
    c.open(1, &text);
    let at = |needle: &str| json!({"textDocument": {"uri": URI}, "position": place(&text, needle)});
    let symbols = c.ask("textDocument/documentSymbol", document(URI));
    let proposals = c.ask("textDocument/completion", at("TSTORE"));
    let definition = c.ask("textDocument/definition", at("t3, "));
    let lenses = c.ask("textDocument/codeLens", document(URI));
    let dropped = c.ask("textDocument/codeLens", document(URI));
    let renamed = c.ask("textDocument/rename", {
        let mut params = at("t0 =");
        params["newName"] = json!("first");
        params
    });
    c.tell("$/cancelRequest", json!({"id": dropped}));
    let all = c.until(1);
    let order: Vec<Option<u64>> = all.iter().map(|m| m.0).collect();
    let place_of = |id: u64| order.iter().position(|o| *o == Some(id));
    // What needs no analysis is answered before there is one; what the client does not want any more is ended at once.
    for id in [symbols, proposals, definition, dropped] {
        assert!(place_of(id).is_some(), "{id}: {order:?}");
    }
    assert_eq!(all[place_of(dropped).unwrap()].1["code"], -32800);
    assert_eq!(all.last().unwrap().1["diagnostics"], json!([]));
    // What is computed aside comes when it is done, what waits for the analysis after that.
    let mut answers: std::collections::HashMap<u64, Value> =
        all.iter().filter_map(|(id, answer)| Some(((*id)?, answer.clone()))).collect();
    while !(answers.contains_key(&renamed) && answers.contains_key(&lenses)) {
        let m = c.read();
        answers.insert(m["id"].as_u64().unwrap(), m["result"].clone());
    }
    assert!(place_of(lenses).is_none());
    assert!(answers[&renamed]["changes"][URI].as_array().unwrap().len() >= 2);
    assert!(answers[&lenses][2]["command"]["title"].as_str().unwrap().contains("cycles"));
    c.end();
}

#[test]
fn what_is_out_of_date_is_not_published() {
    let s = Sandbox::new();
    let mut c = Streams::new(&s);
    let text = long();
    c.open(1, &text);
    let old = c.ask("textDocument/inlayHint", {
        json!({"textDocument": {"uri": URI}, "range": {"start": place(&text, "let t0"), "end": place(&text, "let t2")}})
    });
    c.edit(2, "// an edit\n");
    c.edit(3, "fn f(x: f32) -> f32 { y }\n");
    let hints = c.ask("textDocument/codeLens", document(URI));
    let all = c.until(3);
    let published: Vec<&Value> = all.iter().filter(|m| m.0.is_none()).map(|m| &m.1["version"]).collect();
    assert_eq!(published, [&json!(3)]);
    assert_eq!(all.last().unwrap().1["diagnostics"][0]["code"], "E0101");
    // The client is told to ask anew, as the places in its question are those of another text.
    let overtaken = all.iter().find(|m| m.0 == Some(old)).unwrap();
    assert_eq!(overtaken.1["code"], -32801);
    assert_eq!(c.read()["id"], hints);
    // A text that was analysed keeps what was found in its kernels: the next edit costs little, and questions in
    // between are answered.
    c.edit(4, " ");
    c.edit(5, " ");
    c.until(5);
    c.end();
}

/// What is asked of the text alone takes time with its length, whatever it is that is long.
#[test]
fn long_texts_hold_nobody_up() {
    let n = 12_000;
    let function = |body: String| format!("fn f(x: f32) -> f32 {{\n{body}x }}\n");
    let texts = [
        ("deep", "if x > 0.0 {\n".repeat(n) + &"}\n".repeat(n)),
        ("closed by nothing", "(\n".repeat(n) + &"]\n".repeat(n)),
        ("many names", function((0..n).map(|k| format!("let a{k} = x;\n")).collect())),
        ("one line", function("let a  = x; ".repeat(n))),
        ("one line that is not ASCII", function("let a  = x; ".repeat(n) + "\n// ") + &"\u{e9}(a  ".repeat(n)),
        ("comments", function("// c\n".repeat(n))),
        ("functions", (0..n).map(|k| format!("fn f{k}(x: f32) -> f32 {{ x }}\n")).collect()),
        (
            "arguments",
            format!("kernel k(\n{}) {{}}\n", (0..n / 2).map(|k| format!("a{k}: in f32[M],\n")).collect::<String>()),
        ),
        ("imports", (0..n).map(|k| format!("use std::act::relu{k};\n")).collect()),
    ];
    for (what, text) in texts {
        let s = Sandbox::new();
        let mut c = Streams::new(&s);
        let options = json!({"tabSize": 4, "insertSpaces": true});
        let lines: Vec<&str> = text.split('\n').collect();
        let middle = lines.len() / 2;
        let place = json!({"line": middle, "character": lines[middle].len() * 3 / 4});
        let places = [&place, &place, &place];
        let params = json!({"textDocument": {"uri": URI}, "position": place, "positions": places, "options": options,
                            "range": {"start": place, "end": place}, "ch": "}"});
        let begin = std::time::Instant::now();
        c.open(1, &text);
        let methods = [
            "documentSymbol",
            "foldingRange",
            "semanticTokens/full",
            "semanticTokens/range",
            "selectionRange",
            "formatting",
            "rangeFormatting",
            "onTypeFormatting",
            "documentHighlight",
            "definition",
            "completion",
            "signatureHelp",
            "documentLink",
        ];
        for method in methods {
            let id = c.ask(&format!("textDocument/{method}"), params.clone());
            // The answer may be deeper than a reader of JSON goes.
            while !c.message().starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"#)) {}
            assert!(begin.elapsed().as_secs() < 100, "{what}: {method} after {:?}", begin.elapsed());
        }
        c.child.kill().unwrap();
        c.child.wait().unwrap();
    }
}

/// One message with an edit in every line, as a replacement in all of a text makes it.
#[test]
fn thousands_of_edits_at_once() {
    let s = Sandbox::new();
    let mut c = Streams::new(&s);
    let n = 5000;
    c.open(1, &"// some comment, as long as a line of code, \u{e9}\n".repeat(n));
    let begin = std::time::Instant::now();
    let edit = |line: usize| {
        let range = json!({"start": {"line": line, "character": 3}, "end": {"line": line, "character": 7}});
        json!({"range": range, "text": "another"})
    };
    let changes: Vec<Value> = (0..n).map(edit).collect();
    c.tell("textDocument/didChange", json!({"textDocument": {"uri": URI, "version": 2}, "contentChanges": changes}));
    let folds = c.ask("textDocument/foldingRange", document(URI));
    while c.read()["id"] != folds {}
    assert!(begin.elapsed().as_secs() < 100, "{:?}", begin.elapsed());
    c.end();
}

/// Every request has one answer, and behind that to `shutdown` nothing more comes.
#[test]
fn what_is_pending_at_the_end_is_cancelled() {
    let s = Sandbox::new();
    let mut c = Streams::new(&s);
    let text = long();
    c.open(1, &text);
    let lenses = c.ask("textDocument/codeLens", document(URI));
    let hover = c.ask("textDocument/hover", json!({"textDocument": {"uri": URI}, "position": place(&text, "TADDS")}));
    let symbols = c.ask("textDocument/documentSymbol", document(URI));
    let map = c.ask("ptoc/memoryMap", json!({"textDocument": {"uri": URI}, "position": place(&text, "let t0")}));
    let end = c.ask("shutdown", Value::Null);
    let mut answers = std::collections::HashMap::new();
    loop {
        let m = c.read();
        let Some(id) = m["id"].as_u64() else { continue };
        assert!(answers.insert(id, m["error"]["code"].clone()).is_none(), "{m}");
        if id == end {
            break;
        }
    }
    for id in [lenses, hover] {
        assert_eq!(answers[&id], -32800, "{answers:?}");
    }
    assert!(answers[&map].is_null() || answers[&map] == -32800, "{answers:?}");
    assert_eq!((&answers[&symbols], &answers[&end]), (&Value::Null, &Value::Null));
    // Longer than the analysis would take.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let late = c.ask("textDocument/documentSymbol", document(URI));
    let m = c.read();
    assert_eq!((&m["id"], &m["error"]["code"]), (&json!(late), &json!(-32600)), "{m}");
    c.tell("exit", Value::Null);
    assert!(c.child.wait().unwrap().success());
}

/// A client that has said all it wants is answered before the server ends.
#[test]
fn the_end_of_the_input_is_no_end_of_the_work() {
    let s = Sandbox::new();
    let mut c = Streams::new(&s);
    c.open(1, &long());
    let lenses = c.ask("textDocument/codeLens", document(URI));
    let Streams { mut child, input, mut output, .. } = c;
    drop(input);
    let mut all = String::new();
    output.read_to_string(&mut all).unwrap();
    assert!(all.contains("publishDiagnostics") && all.contains(&format!("\"id\":{lenses}")), "{all}");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
