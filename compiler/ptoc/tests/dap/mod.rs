//! `ptoc dap`, driven by a client over its streams.

mod client;
mod mistakes;
mod past;

use client::{Client, normal, program};
use serde_json::{Value, json};
use std::fmt::Write as _;

fn calls() -> Value {
    json!({"program": program("calls.tile"), "define": {"M": 16}, "random": 1})
}

fn straight() -> Value {
    json!({"program": program("straight.tile"), "define": ["M=18", "N=70"], "random": 1})
}

/// Names and values of children, one a line.
fn children(client: &mut Client, reference: &Value, page: Value) -> String {
    let mut arguments = json!({"variablesReference": reference});
    for (key, value) in page.as_object().into_iter().flatten() {
        arguments[key] = value.clone();
    }
    let mut text = String::new();
    for v in client.ask("variables", arguments)["variables"].as_array().unwrap() {
        let ty = v.get("type").map_or(String::new(), |t| format!(": {}", t.as_str().unwrap()));
        let count = v.get("indexedVariables").map_or(String::new(), |n| format!(" ({n} inside)"));
        let name = v.get("evaluateName").map_or("-", |n| n.as_str().unwrap());
        let (label, value) = (v["name"].as_str().unwrap(), v["value"].as_str().unwrap());
        let _ = writeln!(text, "  {label}{ty} = {value}{count} <{name}>");
    }
    text
}

/// All scopes of a frame with what is in them.
fn scopes(client: &mut Client, frame: i64) -> String {
    let scopes = client.ask("scopes", json!({"frameId": frame}))["scopes"].clone();
    let mut text = String::new();
    for scope in scopes.as_array().unwrap() {
        let _ = writeln!(text, "{} ({})", scope["name"].as_str().unwrap(), scope["namedVariables"]);
        text += &children(client, &scope["variablesReference"], json!({}));
    }
    text
}

#[test]
fn breakpoints_with_conditions_and_counts() {
    let mut c = Client::at_entry(calls());
    let file = program("calls.tile");
    let set = c.breakpoints(
        &file,
        json!([
            {"line": 3, "condition": "x > 2.0"}, {"line": 17, "hitCondition": "== 3"}, {"line": 20},
            {"line": 28, "logMessage": "a is {a}, first {t[0, 0..2]}, {nothing}"},
            {"line": 900}, {"line": 9, "condition": "lo >"}, {"line": 9, "hitCondition": "often"},
        ]),
    );
    let mut text = String::new();
    for b in set.as_array().unwrap() {
        let message = b.get("message").map_or("", |m| m.as_str().unwrap());
        let _ = writeln!(text, "{} {} {message}", b["verified"], b.get("line").unwrap_or(&Value::Null));
    }
    for _ in 0..3 {
        let _ = writeln!(text, "{}", c.go("continue", json!({})));
    }
    let functions = json!([{"name": "clip"}, {"name": "TSTORE", "condition": "i == 1"}, {"name": "nothing"}]);
    c.breakpoints(&file, json!([]));
    let set = c.ask("setFunctionBreakpoints", json!({"breakpoints": functions}));
    let _ = writeln!(text, "{}", normal(&set.to_string()));
    for _ in 0..3 {
        let _ = writeln!(text, "{}", c.go("continue", json!({})));
    }
    let lines = c.ask("breakpointLocations", json!({"source": {"path": file}, "line": 1, "endLine": 12}));
    let _ = writeln!(text, "{lines}");
    c.ask("continue", json!({"threadId": 1}));
    assert_eq!(c.event("exited")["exitCode"], 0);
    c.event("terminated");
    text += &c.output();
    insta::assert_snapshot!(normal(&text));
    assert_eq!(c.disconnect(), 0);
}

#[test]
fn stepping() {
    let mut c = Client::at_entry(calls());
    let mut text = String::new();
    c.breakpoints(&program("calls.tile"), json!([{"line": 27}]));
    let mut go = |c: &mut Client, command: &str, how: Value| {
        let _ = writeln!(text, "{command} {how}: {}", c.go(command, how.clone()));
    };
    go(&mut c, "continue", json!({}));
    go(&mut c, "stepIn", json!({}));
    go(&mut c, "stepIn", json!({}));
    go(&mut c, "stepOut", json!({}));
    go(&mut c, "next", json!({}));
    go(&mut c, "next", json!({"granularity": "line"}));
    go(&mut c, "stepIn", json!({"granularity": "instruction"}));
    go(&mut c, "next", json!({"granularity": "instruction"}));
    go(&mut c, "next", json!({"granularity": "instruction"}));
    go(&mut c, "stepBack", json!({"granularity": "instruction"}));
    go(&mut c, "stepOut", json!({}));
    // Several statements on a line are one step of that size.
    insta::assert_snapshot!(text);
    let mut c = Client::at_entry(straight());
    c.breakpoints(&program("straight.tile"), json!([{"line": 6}]));
    assert_eq!(c.go("continue", json!({})), "breakpoint at 6 in straight (block i=0 j=0)");
    assert_eq!(c.go("next", json!({"granularity": "line"})), "step at 8 in straight (block i=0 j=0)");
}

#[test]
fn frames_and_scopes() {
    let mut c = Client::at_entry(calls());
    let mut text = String::new();
    c.ask("setFunctionBreakpoints", json!({"breakpoints": [{"name": "clip"}]}));
    c.go("continue", json!({}));
    let threads = c.ask("threads", Value::Null);
    let _ = writeln!(text, "{threads}");
    let stack = c.ask("stackTrace", json!({"threadId": 1}));
    let _ = writeln!(text, "{}", normal(&serde_json::to_string_pretty(&stack).unwrap()));
    for frame in [1, 2] {
        let _ = writeln!(text, "frame {frame}\n{}", scopes(&mut c, frame));
    }
    insta::assert_snapshot!(text);
    assert_eq!(c.value("lo + 1.0", 1), "15.0");
    assert_eq!(c.value("lo", 2), "`lo` is not visible here: it is defined later, or in another block or function");
    assert_eq!(c.refused("scopes", json!({"frameId": 7})), "there is no frame 7");
}

#[test]
fn tables_by_pages() {
    let mut c = Client::at_entry(straight());
    c.breakpoints(&program("straight.tile"), json!([{"line": 12}]));
    c.go("continue", json!({}));
    let mut text = String::new();
    let found = c.ask("scopes", json!({"frameId": 1}))["scopes"].clone();
    let tiles = c.ask("variables", json!({"variablesReference": found[0]["variablesReference"]}))["variables"].clone();
    let x = &tiles[0];
    let _ = writeln!(text, "{}\nrows 1 and 2:", x["value"].as_str().unwrap());
    text += &children(&mut c, &x["variablesReference"], json!({"filter": "indexed", "start": 1, "count": 2}));
    let rows =
        c.ask("variables", json!({"variablesReference": x["variablesReference"], "start": 15}))["variables"].clone();
    let _ = writeln!(text, "columns 62.. of row 15:");
    text += &children(&mut c, &rows[0]["variablesReference"], json!({"start": 62, "count": 100}));
    assert_eq!(children(&mut c, &x["variablesReference"], json!({"filter": "named"})), "");
    assert_eq!(children(&mut c, &x["variablesReference"], json!({"start": 16})), "");
    let parts = &tiles[3];
    let _ = writeln!(text, "{} {}", parts["name"], parts["value"]);
    text += &children(&mut c, &parts["variablesReference"], json!({}));
    for expression in [
        "x[3, 0..8]",
        "x[15, 60:64]",
        "x.valid",
        "x.shape",
        "x.address",
        "x.memory",
        "x.dtype",
        "x.rows",
        "a.shape",
        "a[0..2, 0]",
        "parts[1][0, 0..4]",
        "parts[1].address",
        "parts",
        "x[0, 0] + 1.0",
        "i.len",
        "z.valid",
        "x.vaild",
        "a.address",
        "x[99, 0]",
        "parts[7]",
        "1 +",
        "nowhere",
    ] {
        let _ = writeln!(text, "{expression} = {}", c.value(expression, 1));
    }
    insta::assert_snapshot!(text);
    c.go("next", json!({}));
    let stale = c.refused("variables", json!({"variablesReference": 40}));
    assert!(stale.contains("the run has gone on"), "{stale}");
}

/// What is typed into a client's console is an expression, or a command.
#[test]
fn the_console() {
    let mut c = Client::at_entry(straight());
    let typed = |c: &mut Client, text: &str| c.response("evaluate", json!({"expression": text, "context": "repl"}));
    typed(&mut c, "next 5");
    c.event("continued");
    let mut text = format!("{}\n", c.stop());
    for line in ["tiles", "where", "print x[0, 0:4]", "i.index", "info locals", "break 3", "block i=9"] {
        let answer = typed(&mut c, line);
        let said = if answer["success"] == true { &answer["body"]["result"] } else { &answer["message"] };
        let _ = writeln!(text, "> {line}\n{}", said.as_str().unwrap());
    }
    insta::assert_snapshot!(normal(&text));
    let targets = c.ask("completions", json!({"frameId": 1, "text": "x[0, 0] + pa", "column": 13}));
    assert_eq!(targets["targets"], json!([]), "{targets}");
    let targets = c.ask("completions", json!({"frameId": 1, "text": "x.va", "column": 5}));
    assert_eq!(targets["targets"], json!([{"label": "valid", "type": "property", "start": 2, "length": 2}]));
    let targets = c.ask("completions", json!({"frameId": 1, "text": "t", "column": 2}));
    assert_eq!(targets["targets"][0]["label"], "tiles", "{targets}");
    assert_eq!(c.go("ptoc/block", json!({"expression": "1 1"})), "step at 2 in straight (block i=1 j=1)");
}

/// The console's `help` has what the console takes.
#[test]
fn help_of_the_console() {
    let mut c = Client::at_entry(straight());
    let typed = |c: &mut Client, text: &str| c.response("evaluate", json!({"expression": text, "context": "repl"}));
    let help = typed(&mut c, "help")["body"]["result"].as_str().unwrap().to_owned();
    let words: Vec<&str> = help.lines().filter_map(|l| l.strip_prefix("  ")?.split_whitespace().next()).collect();
    assert!(words.contains(&"print") && words.contains(&"until"), "{help}");
    for word in ["break", "watch", "quit", "up"] {
        assert!(help.lines().all(|line| !line.starts_with(&format!("  {word} "))), "{help}");
    }
}

/// Reads are not watched: who asks for that is told.
#[test]
fn only_writes_are_watched() {
    let mut c = Client::at_entry(straight());
    c.breakpoints(&program("straight.tile"), json!([{"line": 10}]));
    c.go("continue", json!({}));
    let info = c.ask("dataBreakpointInfo", json!({"name": "x[0, 0]", "frameId": 1}));
    let list: Vec<Value> = ["write", "read", "readWrite"]
        .iter()
        .map(|access| json!({"dataId": info["dataId"], "accessType": access}))
        .collect();
    let set = c.ask("setDataBreakpoints", json!({"breakpoints": list}));
    let verified: Vec<bool> = set["breakpoints"].as_array().unwrap().iter().map(|b| b["verified"] == true).collect();
    assert_eq!(verified, [true, false, false], "{set}");
}

/// A source that is edited while its program runs.
#[test]
fn a_source_that_changes_is_told() {
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("straight.tile");
    let text = std::fs::read_to_string(program("straight.tile")).unwrap();
    std::fs::write(&path, &text).unwrap();
    let mut launch = straight();
    launch["program"] = json!(path);
    let mut c = Client::at_entry(launch);
    assert!(!c.output().contains("has changed"));
    std::fs::write(&path, format!("\n\n{text}")).unwrap();
    let set = c.breakpoints(&path, json!([{"line": 10}]));
    assert!(set[0]["message"].as_str().unwrap().contains("the source has changed"), "{set}");
    c.go("next", json!({}));
    c.go("next", json!({}));
    assert_eq!(c.output().matches("the source has changed").count(), 1);
}

#[test]
fn tiles_are_drawn() {
    let mut c = Client::at_entry(straight());
    c.breakpoints(&program("straight.tile"), json!([{"line": 10}]));
    c.go("continue", json!({}));
    let answer = c.ask("ptoc/picture", json!({"expression": "x", "frameId": 1}));
    let svg = answer["svg"].as_str().unwrap();
    assert!(svg.starts_with("<svg xmlns") && svg.ends_with("</svg>\n"), "{svg}");
    assert_eq!(svg.matches("<rect").count(), 16 * 64);
    assert!(answer["least"].as_f64().unwrap() < 0.0 && answer["greatest"].as_f64().unwrap() > 0.0, "{answer}");
    assert!(answer["title"].as_str().unwrap().starts_with("x: Vec f16 16 x 64"), "{answer}");
    // What is unwritten is grey, and a whole tensor has as many cells as there is room for.
    let unwritten = c.ask("ptoc/picture", json!({"expression": "parts[0]", "frameId": 1}));
    assert!(unwritten["svg"].as_str().unwrap().contains("no number is written"), "{unwritten}");
    assert!(c.refused("ptoc/picture", json!({"expression": "i"})).contains("no elements"));
    assert!(c.refused("ptoc/picture", json!({"expression": "xx"})).contains("nothing is called `xx`"));
}

/// Launches of a program, and a module of the standard library that is no file.
#[test]
fn programs_and_the_library() {
    let define = json!({"M": 8, "N": 8, "K": 130, "SPLIT": 2});
    let launch = json!({"program": program("examples/split_k.tile"), "kernel": "matmul_split", "define": define,
                        "random": 1});
    let mut c = Client::at_entry(launch);
    c.ask("setFunctionBreakpoints", json!({"breakpoints": [{"name": "add_parts"}]}));
    c.go("continue", json!({}));
    let stack = c.ask("stackTrace", json!({"threadId": 1}));
    assert_eq!(stack["stackFrames"][1]["name"], "launch 2 of 2", "{stack}");
    assert_eq!(stack["stackFrames"][1]["presentationHint"], "label");

    let define = json!({"M": 16, "N": 16, "K": 16, "act": "silu"});
    let launch = json!({"program": program("examples/gemm.tile"), "kernel": "gemm_bias_act", "define": define,
                        "random": 1});
    let mut c = Client::at_entry(launch);
    c.ask("setFunctionBreakpoints", json!({"breakpoints": [{"name": "std::silu"}]}));
    assert!(c.go("continue", json!({})).starts_with("function breakpoint at 10 in silu"));
    let top = c.ask("stackTrace", json!({"threadId": 1}))["stackFrames"][0].clone();
    let reference = &top["source"]["sourceReference"];
    let text = c.ask("source", json!({"source": top["source"], "sourceReference": reference}));
    assert!(text["content"].as_str().unwrap().contains("fn silu"), "{text}");
    let loaded = c.ask("loadedSources", Value::Null);
    let mut names: Vec<&str> =
        loaded["sources"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert!(names.contains(&"act.tile") && names.contains(&"gemm.tile"), "{names:?}");
    // A breakpoint in it, by its reference.
    let set = c.ask("setBreakpoints", json!({"source": {"sourceReference": reference}, "breakpoints": [{"line": 10}]}));
    assert_eq!(set["breakpoints"][0]["verified"], true, "{set}");
}

/// A client that counts from 0.
#[test]
fn lines_from_zero() {
    let mut c = Client::start();
    c.ask("initialize", json!({"adapterID": "ptoc", "linesStartAt1": false, "columnsStartAt1": false}));
    c.ask("launch", straight());
    c.event("initialized");
    let set = c.breakpoints(&program("straight.tile"), json!([{"line": 7}]));
    assert_eq!((&set[0]["line"], &set[0]["column"]), (&json!(7), &json!(4)), "{set}");
    c.ask("configurationDone", Value::Null);
    assert_eq!(c.stop(), "breakpoint at 7 in straight (block i=0 j=0)");
}
