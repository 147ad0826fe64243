//! The language server: in process, message by message, and the real binary over its streams.

mod beside;
mod completions;
mod fixes;
mod generic;
mod hovers;
mod names;
mod protocol;
mod pto;
mod random;
mod views;

use super::Sandbox;
use ptoc_lsp::{Failure, Message, Server};
use serde_json::{Value, json};
use std::io::{BufReader, Write as _};
use std::process::Stdio;

/// A client that knows what the server has published, and loses nothing.
struct Client {
    server: Server,
    /// Messages that no test has looked at yet.
    waiting: Vec<Message>,
    version: i32,
}

impl Client {
    fn new(options: Value) -> Client {
        Client::able(options, json!({}))
    }

    /// A client that can do more.
    fn able(options: Value, mut capabilities: Value) -> Client {
        let mut server = Server::new();
        capabilities["general"] = json!({"positionEncodings": ["utf-8"]});
        let params = json!({"processId": null, "rootUri": null, "initializationOptions": options,
                            "capabilities": capabilities});
        let answer = server.request("initialize", params).unwrap().value();
        assert_eq!(answer["capabilities"]["positionEncoding"], "utf-8");
        server.notify("initialized", json!({}));
        Client { server, waiting: Vec::new(), version: 0 }
    }

    /// A client whose workspace is this folder.
    fn in_folder(folder: &std::path::Path) -> Client {
        let mut c = Client::new(Value::Null);
        let folder = json!({"uri": format!("file://{}", folder.display()), "name": "folder"});
        let event = json!({"event": {"added": [folder], "removed": []}});
        c.server.notify("workspace/didChangeWorkspaceFolders", event);
        c
    }

    fn open(&mut self, uri: &str, text: &str) {
        self.version += 1;
        let document = json!({"uri": uri, "languageId": "tile", "version": self.version, "text": text});
        self.server.notify("textDocument/didOpen", json!({"textDocument": document}));
    }

    /// Replaces a range, given as lines and columns.
    fn edit(&mut self, uri: &str, [from, to]: [(u32, u32); 2], text: &str) {
        self.version += 1;
        let place = |(line, character): (u32, u32)| json!({"line": line, "character": character});
        let change = json!({"range": {"start": place(from), "end": place(to)}, "text": text});
        let params = json!({"textDocument": {"uri": uri, "version": self.version}, "contentChanges": [change]});
        self.server.notify("textDocument/didChange", params);
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.server.request(method, params).unwrap_or_else(|f| panic!("{method}: {f:?}")).value()
    }

    fn fails(&mut self, method: &str, params: Value) -> Failure {
        self.server.request(method, params).expect_err(method)
    }

    /// What is published now, a text for each document: places, codes, messages.
    fn published(&mut self) -> String {
        self.waiting.extend(self.server.settle());
        let mut out = String::new();
        for Message { id, method, params } in std::mem::take(&mut self.waiting) {
            if method != "textDocument/publishDiagnostics" {
                out += &format!("{}{method} {params}\n", id.map_or(String::new(), |id| format!("#{id} ")));
                continue;
            }
            out += &format!("{} version {}\n", params["uri"].as_str().unwrap(), params["version"]);
            for d in params["diagnostics"].as_array().unwrap() {
                out += &format!("{} {} {}", range(&d["range"]), d["severity"], d["code"].as_str().unwrap());
                let tags = d.get("tags").map_or(String::new(), |t| format!(" tags {t}"));
                out += &format!("{tags}: {}\n", d["message"].as_str().unwrap().replace('\n', "\n    "));
                for r in d["relatedInformation"].as_array().into_iter().flatten() {
                    out += &format!("    at {}: {}\n", range(&r["location"]["range"]), r["message"].as_str().unwrap());
                }
            }
        }
        out
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.waiting.extend(self.server.settle());
            assert!(self.waiting.is_empty(), "nobody looked at {:?}", self.waiting);
        }
    }
}

fn range(r: &Value) -> String {
    let at = |p: &Value| format!("{}:{}", p["line"], p["character"]);
    format!("{}-{}", at(&r["start"]), at(&r["end"]))
}

fn document(uri: &str) -> Value {
    json!({"textDocument": {"uri": uri}})
}

fn at(uri: &str, line: u32, character: u32) -> Value {
    json!({"textDocument": {"uri": uri}, "position": {"line": line, "character": character}})
}

/// Parameters that every request about a place understands.
fn place_of(uri: &str, line: u32, character: u32) -> Value {
    let here = json!({"line": line, "character": character});
    json!({
        "textDocument": {"uri": uri}, "position": here, "positions": [here], "newName": "renamed", "ch": ";",
        "query": "a",
        "range": {"start": here, "end": {"line": line + 3, "character": 0}},
        "context": {"includeDeclaration": true, "diagnostics": []},
        "options": {"tabSize": 4, "insertSpaces": true}, "label": "TADD", "previousResultId": "1",
        "uri": "ptoc-std:/act.tile",
        "stage": "ir", "item": {"name": "k", "uri": uri, "selectionRange": {"start": here, "end": here}},
        "data": {"uri": uri, "kernel": "k", "target": "a5", "at": {}},
    })
}

const URI: &str = "file:///nowhere/k.tile";

const KERNEL: &str = "\
/// y = 2 x
kernel twice<const N = 64>(x: in f32[M], y: out f32[M])
    ensures y[i] == 2.0 * x[i]
{
    grid (i in tiles(M, N));
    let t = Vec(x.tile(i));
    let u = tile Vec<f32, 1, i>;
    TMULS(u, t, 2.0);
    TSTORE(y.tile(i), u);
}
";

#[test]
fn diagnostics_follow_the_text() {
    let mut c = Client::new(Value::Null);
    c.open(URI, KERNEL);
    let clean = c.published();
    assert_eq!(clean, format!("{URI} version 1\n"));
    c.edit(URI, [(7, 4), (7, 9)], "TMULZ");
    c.edit(URI, [(8, 22), (8, 23)], "v");
    // Two edits, one analysis.
    insta::assert_snapshot!(c.published());
    c.edit(URI, [(7, 4), (7, 9)], "TMULS");
    c.edit(URI, [(8, 22), (8, 23)], "u");
    assert_eq!(c.published(), format!("{URI} version 5\n"));
    c.server.notify("textDocument/didClose", document(URI));
    assert_eq!(c.published(), format!("{URI} version null\n"));
}

#[test]
fn capacity_and_places_that_belong_together() {
    let mut c = Client::new(Value::Null);
    let text = KERNEL
        .replace("const N = 64", "const N = 32768")
        .replace("TMULS(u, t, 2.0);", "TMULS(u, t, 2.0);\n    TADD(u, u, t);");
    c.open(URI, &text);
    insta::assert_snapshot!(c.published());
}

#[test]
fn fixes_are_quick_fixes() {
    let mut c = Client::new(Value::Null);
    c.open(URI, &KERNEL.replace("TMULS", "TMULZ"));
    c.published();
    let span = json!({"start": {"line": 7, "character": 6}, "end": {"line": 7, "character": 6}});
    let params = json!({"textDocument": {"uri": URI}, "range": span, "context": {"diagnostics": []}});
    let actions = c.ask("textDocument/codeAction", params);
    let first = &actions[0];
    assert_eq!((&first["kind"], &first["diagnostics"][0]["code"]), (&json!("quickfix"), &json!("E0111")), "{actions}");
    let edit = &first["edit"]["changes"][URI][0];
    assert_eq!((range(&edit["range"]), &edit["newText"]), ("7:4-7:9".into(), &json!("TMUL")), "{actions}");
    // Elsewhere there is nothing to mend, and other kinds are not offered.
    let span = json!({"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}});
    let params = json!({"textDocument": {"uri": URI}, "range": span, "context": {"diagnostics": []}});
    assert_eq!(c.ask("textDocument/codeAction", params), json!([]));
    let span = json!({"start": {"line": 7, "character": 6}, "end": {"line": 7, "character": 6}});
    let params =
        json!({"textDocument": {"uri": URI}, "range": span, "context": {"diagnostics": [], "only": ["refactor"]}});
    assert_eq!(c.ask("textDocument/codeAction", params), json!([]));
}

#[test]
fn hovers() {
    let mut c = Client::new(Value::Null);
    c.open(URI, KERNEL);
    c.published();
    let mut text = String::new();
    for (line, column) in [(7, 6), (6, 8), (7, 10), (8, 5), (0, 0), (9, 1)] {
        let hover = c.ask("textDocument/hover", at(URI, line, column));
        text += &format!("== {line}:{column}\n");
        if let Some(value) = hover["contents"]["value"].as_str() {
            text += &format!("{}\n{value}\n", range(&hover["range"]));
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn outlines_and_formatting() {
    let mut c = Client::new(Value::Null);
    let text = KERNEL.replace("    let t = Vec(x.tile(i));\n", "  let t=Vec( x.tile(i) );\n");
    c.open(URI, &format!("use std::act::relu;\nconst A = 1;\nfn f(x: f32) -> f32 {{ relu(x) }}\n{text}"));
    c.published();
    let symbols = c.ask("textDocument/documentSymbol", document(URI));
    let names: Vec<String> =
        symbols.as_array().unwrap().iter().map(|s| format!("{} {}", s["detail"], s["name"])).collect();
    assert_eq!(names, ["\"const\" \"A\"", "\"fn\" \"f\"", "\"kernel\" \"twice\""]);
    assert_eq!(
        (range(&symbols[2]["range"]), range(&symbols[2]["selectionRange"])),
        ("4:0-12:1".into(), "4:7-4:12".into())
    );
    let params = json!({"textDocument": {"uri": URI}, "options": {"tabSize": 4, "insertSpaces": true}});
    let edits = c.ask("textDocument/formatting", params.clone());
    assert_eq!(edits.as_array().unwrap().len(), 1);
    assert_eq!(
        (range(&edits[0]["range"]), &edits[0]["newText"]),
        ("8:0-8:25".into(), &json!("    let t = Vec(x.tile(i));"))
    );
    c.edit(URI, [(8, 0), (9, 0)], "    let t = Vec(x.tile(i));\n");
    assert_eq!(c.ask("textDocument/formatting", params.clone()), json!([]));
    c.edit(URI, [(8, 0), (8, 20)], "let = ");
    assert_eq!(c.fails("textDocument/formatting", params).code, -32803);
    c.published();
}

/// What is open counts, also for the texts that import it; and a text that is closed counts as it is on disk.
#[test]
fn imports_are_what_is_open() {
    let s = Sandbox::new();
    s.file("lib.tile", "fn f(x: f32) -> f32 { x }\n");
    let uri = |name: &str| format!("file://{}", s.path().canonicalize().unwrap().join(name).display());
    let text = "use lib::f;\nkernel k(x: in f32[M], y: out f32[M]) {\n    grid (i in tiles(M, 64));\n    \
        TSTORE(y.tile(i), f(Vec(x.tile(i))));\n}\n";
    let mut c = Client::new(Value::Null);
    c.open(&uri("k.tile"), text);
    assert_eq!(c.published(), format!("{} version 1\n", uri("k.tile")));
    c.open(&uri("lib.tile"), "fn g(x: f32) -> f32 { x }\n");
    let published = c.published();
    assert!(published.contains("0:9-0:10 1 E01") && published.matches(" version ").count() == 2, "{published}");
    c.server.notify("textDocument/didClose", document(&uri("lib.tile")));
    let published = c.published();
    assert!(!published.contains("E01") && published.contains("k.tile version 1"), "{published}");
}

/// What an edit does not touch is not parsed again: neither imports, also those of the library, nor other texts that
/// are open.
#[test]
fn a_text_is_parsed_once() {
    let s = Sandbox::new();
    s.file("lib.tile", "use std::act::relu;\nfn f(x: f32) -> f32 { relu(x) }\n");
    let uri = |name: &str| format!("file://{}", s.path().canonicalize().unwrap().join(name).display());
    let text = "use lib::f;\nuse std::act::gelu;\nkernel k(x: in f32[M], y: out f32[M]) {\n    \
        grid (i in tiles(M, 64));\n    TSTORE(y.tile(i), f(gelu(Vec(x.tile(i)))));\n}\n";
    let mut c = Client::new(Value::Null);
    c.open(&uri("k.tile"), text);
    assert_eq!(c.published(), format!("{} version 1\n", uri("k.tile")));
    let before = c.server.parsed();
    for n in 0..5 {
        c.edit(&uri("k.tile"), [(0, 0), (0, 0)], "\n");
        assert!(c.published().ends_with(&format!("version {}\n", 2 + n)));
        c.ask("textDocument/documentSymbol", document(&uri("k.tile")));
    }
    assert_eq!(c.server.parsed() - before, 5);
    // What is imported is seen as it is: open, and then as on disk.
    c.open(&uri("lib.tile"), "fn g(x: f32) -> f32 { x }\n");
    let published = c.published();
    assert!(published.contains("module `lib` has no item `f`"), "{published}");
    c.server.notify("textDocument/didClose", document(&uri("lib.tile")));
    assert!(!c.published().contains("E0"));
    s.file("lib.tile", "fn h(x: f32) -> f32 { x }\n");
    c.server.notify("workspace/didChangeWatchedFiles", json!({"changes": []}));
    let published = c.published();
    assert!(published.contains("it defines: h"), "{published}");
}

/// That a name is wrong somewhere is found out once, and not for each kernel that is refused.
#[test]
fn mistakes_in_many_kernels() {
    let begin = std::time::Instant::now();
    let kernel = |n| format!("kernel k{n}(x: in f32[M]) {{\n    TADDX(q, r);\n}}\n");
    let mut c = Client::new(Value::Null);
    c.open(URI, &(0..120).map(kernel).collect::<String>());
    assert_eq!(c.published().matches("E0101").count(), 240);
    assert!(begin.elapsed().as_secs() < 100, "{:?}", begin.elapsed());
}

#[test]
fn settings() {
    let text = KERNEL.replace("const N = 64", "const N");
    let mut c = Client::new(json!({"target": "a5", "define": ["N=16384"]}));
    c.open(URI, &text);
    let published = c.published();
    assert_eq!(published, format!("{URI} version 1\n"));
    let change = |c: &mut Client, settings: Value| {
        c.server.notify("workspace/didChangeConfiguration", json!({"settings": {"ptoc": settings}}));
        c.published()
    };
    let says = |c: &mut Client, settings: Value, words: &str| {
        let said = change(c, settings.clone());
        assert!(said.contains(words), "{settings}: {said}");
        said
    };
    says(&mut c, json!({"target": "a2a3", "define": ["N=65536"]}), "SA-0352");
    // What is wrong is named, and stays as it was; the rest is taken over.
    let said =
        says(&mut c, json!({"target": "a6", "define": ["N=65544", "N"]}), "there is no target `a6`; the targets are");
    assert!(said.contains("did you mean `a5`?") && said.contains("has \\\"N\\\": it takes texts"), "{said}");
    assert!(said.contains("SA-0352"), "{said}");
    // It is told of once.
    let said = change(&mut c, json!({"target": "a6", "define": ["N=65552", "N"]}));
    assert!(!said.contains("showMessage") && said.contains("SA-0352"), "{said}");
    says(&mut c, json!({"target": 6, "define": ["N=64"]}), "(a2a3, a5, ");
    says(&mut c, json!({"define": "N=64"}), "is a list of texts \\\"NAME=VALUE\\\"");
    says(&mut c, json!(5), "settings are an object");
    says(&mut c, json!({"define": ["N=64"], "hints": {"types": 1}}), "`ptoc.hints.types` is true or false, and not 1");
    says(&mut c, json!({"define": ["N=64"], "hints": {"type": true}}), "there is no setting `type` of `ptoc.hints`");
    says(&mut c, json!({"define": ["N=64"], "hints": 5}), "types, addresses, bytes and budget");
    says(
        &mut c,
        json!({"define": ["N=64"], "taget": "a5"}),
        "no setting `taget` of `ptoc`, which has target, define and hints; did you mean `target`?",
    );
    // What a client has for itself, and what says nothing of ptoc, changes nothing.
    assert_eq!(change(&mut c, json!({"define": ["N=64"], "path": "/bin/ptoc", "target": null})), "");
    for nothing in [
        json!(null),
        json!({"settings": null}),
        json!({"settings": {"editor": {"tabSize": 4}}}),
        json!({"settings": {}}),
        json!({"settings": {"ptoc": null}}),
    ] {
        c.server.notify("workspace/didChangeConfiguration", nothing);
        assert_eq!(c.published(), "");
    }
    c.server.notify("workspace/didChangeConfiguration", json!({"settings": {"ptoc.target": "a5"}}));
    assert!(c.published().contains("there is no setting `ptoc.target` of `ptoc`"));
    // Missing settings have their defaults: now `N` has none.
    assert!(change(&mut c, json!({})).contains("version 1"));
    // A name that is nearly one of the text's is asked about, once.
    let said = says(&mut c, json!({"define": ["twice=1", "N=64", "MM=4", "capacity.Vec=65536"]}), "version 1");
    assert!(!said.contains("showMessage"), "{said}");
    let text = text.replace("const N", "const COLUMNS").replace(", N)", ", COLUMNS)");
    c.edit(URI, [(0, 0), (99, 0)], &text);
    c.published();
    says(
        &mut c,
        json!({"define": ["COLUMS=64", "ROWS=4"]}),
        "sets `COLUMS`, and nothing in the texts that are open is called so; did you mean `COLUMNS`?",
    );
    assert!(!change(&mut c, json!({"define": ["COLUMNS=64"]})).contains("showMessage"));
    c.edit(URI, [(0, 0), (99, 0)], &text.replace("COLUMNS", "N"));
    c.published();
    // A value that cannot be read stands where the parameter is declared, and says where it comes from.
    let published = change(&mut c, json!({"define": ["N=6 4"]}));
    assert!(published.contains("1:19-1:20 1 E0"), "{published}");
    assert!(published.contains("the setting `ptoc.define` has `N=6 4`: "), "{published}");
}

#[test]
fn the_protocol_is_kept() {
    let mut s = Server::new();
    assert_eq!(s.request("textDocument/hover", json!({})).unwrap_err().code, -32002);
    s.notify("textDocument/didOpen", json!({"nonsense": 1}));
    assert_eq!(s.request("initialize", json!(3)).unwrap_err().code, -32602);
    let params = json!({"processId": null, "rootUri": null, "capabilities": {}});
    let answer = s.request("initialize", params.clone()).unwrap().value();
    assert_eq!(answer["capabilities"]["positionEncoding"], "utf-16");
    assert_eq!(s.request("initialize", params).unwrap_err().code, -32600);
    assert_eq!(s.request("textDocument/nothing", json!({})).unwrap_err().code, -32601);
    assert_eq!(s.request("textDocument/hover", json!({"textDocument": 7})).unwrap_err().code, -32602);
    assert_eq!(s.request("textDocument/hover", at(URI, 0, 0)).unwrap_err().code, -32602);
    for (method, params) in [
        ("textDocument/didOpen", json!([])),
        (
            "textDocument/didChange",
            json!({"textDocument": {"uri": URI, "version": 1}, "contentChanges": [{"text": "x"}]}),
        ),
        ("textDocument/didClose", document(URI)),
        ("workspace/didChangeConfiguration", json!(null)),
        ("$/setTrace", json!({"value": "off"})),
    ] {
        s.notify(method, params);
    }
    assert_eq!(s.settle(), []);
    assert_eq!(s.request("shutdown", Value::Null).unwrap().text(), "null");
    assert_eq!(s.request("textDocument/hover", at(URI, 0, 0)).unwrap_err().code, -32600);
    assert!(s.is_shut());
}

/// The binary: malformed messages in between are answered, and the server goes on.
#[test]
fn over_standard_streams() {
    let s = Sandbox::new();
    let mut child =
        s.command("lsp --stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut send = |text: &str| write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
    send(concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","#,
        r#""params":{"processId":null,"rootUri":null,"capabilities":{}}}"#
    ));
    send(r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#);
    send("{ this is no JSON");
    send(r#"{"jsonrpc":"2.0","id":7}"#);
    send(r#"{"jsonrpc":"2.0","id":1.5,"method":"shutdown"}"#);
    input.write_all(b"nonsense\r\ncontent-length:32\n\n{\"jsonrpc\":\"2.0\",\"method\":\"a/b\"}").unwrap();
    input.write_all(b"Content-Length: x\r\n\r\n").unwrap();
    let mut send = |text: &str| write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
    send(r#"{"jsonrpc":"2.0","id":"x","method":"no/such","params":{}}"#);
    let open = json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params":
        {"textDocument": {"uri": URI, "languageId": "tile", "version": 1, "text": "kernel k("}}});
    send(&open.to_string());
    send(r#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#);
    send(r#"{"jsonrpc":"2.0","method":"exit"}"#);
    drop(input);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut answers = Vec::new();
    while let Ok(Some(message)) = read(&mut output) {
        answers.push(message);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let find = |id: Value| answers.iter().find(|a| a.get("id") == Some(&id)).unwrap_or_else(|| panic!("{answers:?}"));
    assert!(find(json!(1))["result"]["capabilities"]["hoverProvider"].as_bool().unwrap());
    assert_eq!(find(json!(7))["error"]["code"], -32600);
    let nameless = answers.iter().filter(|a| a.get("id") == Some(&Value::Null));
    let codes: Vec<i64> = nameless.map(|a| a["error"]["code"].as_i64().unwrap()).collect();
    assert_eq!(codes, [-32700, -32600, -32600, -32600], "{answers:?}");
    assert_eq!(find(json!("x"))["error"]["code"], -32601);
    assert_eq!(find(json!(2))["result"], Value::Null);
}

/// A message that is too long is told of at once, and not when it has come.
#[test]
fn messages_that_are_too_long() {
    let s = Sandbox::new();
    let mut child = s.command("lsp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"Content-Length: 1000000000000\r\n\r\n{}").unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let said = read(&mut output).unwrap().unwrap();
    assert_eq!(said["error"]["code"], -32600, "{said}");
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

/// One message.
fn read(input: &mut impl std::io::BufRead) -> std::io::Result<Option<Value>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim().strip_prefix("Content-Length: ") {
            Some(n) => length = n.parse().unwrap(),
            None if line.trim().is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body)?;
    Ok(Some(serde_json::from_slice(&body).unwrap()))
}
