//! Wrong configurations, programs with errors, runs that fail, clients that misbehave.

use super::calls;
use super::client::{Client, normal, program};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use tempfile::TempDir;

#[test]
fn launches_that_are_refused() {
    let dir = TempDir::new().unwrap();
    let broken = dir.path().join("broken.tile");
    fs::write(
        &broken,
        "kernel k(x: out f32[16, 64]) {\n    let t = tile Vec<f32, 16, 64>;\n    TMULZ(t, t, 2.0);\n}\n",
    )
    .unwrap();
    let file = program("calls.tile");
    let mut c = Client::new();
    let mut text = String::new();
    for launch in [
        json!({}),
        json!({"program": 7}),
        json!({"program": file, "tagret": "a5"}),
        json!({"program": file, "target": "a6"}),
        json!({"program": file, "define": "M=16"}),
        json!({"program": file, "define": ["M"]}),
        json!({"program": file, "random": -1}),
        json!({"program": file, "schedule": "early"}),
        json!({"program": file, "kernel": "call", "define": {"M": 16}, "random": 1}),
        json!({"program": file, "define": {"M": 16, "Q": 1}, "random": 1}),
        json!({"program": file, "define": {"M": 16}}),
        json!({"program": file, "inputs": {"x": "none.npy"}}),
        json!({"program": "none.tile"}),
        json!({"program": file, "cwd": "/nowhere"}),
        json!({"program": program("examples/gemm.tile"), "random": 1}),
        json!({"program": broken, "random": 1}),
    ] {
        let shown = normal(&launch.to_string()).replace(dir.path().to_str().unwrap(), "DIR");
        let why = c.refused("launch", launch).replace(dir.path().to_str().unwrap(), "DIR");
        let _ = writeln!(text, "{shown}\n{}\n", normal(&why));
    }
    insta::assert_snapshot!(text);
    // The adapter is ready for the next.
    c.output();
    c.ask("launch", calls());
    c.event("initialized");
    assert_eq!(c.disconnect(), 0);
}

#[test]
fn a_run_that_fails_stops_where_it_fails() {
    let mut launch = calls();
    launch["define"] = json!({"M": 9});
    let mut c = Client::new();
    c.ask("launch", launch);
    c.ask("configurationDone", Value::Null);
    let mut text = format!("{}\n", c.stop());
    let _ = writeln!(text, "{}", c.ask("exceptionInfo", json!({"threadId": 1})));
    let _ = writeln!(text, "t.valid = {}", c.value("t.valid", 1));
    // Back from the failure, and there again.
    let _ = writeln!(text, "{}", c.go("stepBack", json!({})));
    let _ = writeln!(text, "{}", c.go("continue", json!({})));
    c.ask("continue", json!({"threadId": 1}));
    assert_eq!(c.event("exited")["exitCode"], 1);
    c.event("terminated");
    text += &c.output();
    insta::assert_snapshot!(text);
    assert_eq!(c.refused("next", json!({"threadId": 1})), "`next`: no program runs; `launch` starts one");
    assert_eq!(c.disconnect(), 0);
}

/// A loop that takes long.
fn endless(dir: &TempDir) -> Value {
    let path = dir.path().join("long.tile");
    let text = "\
kernel long(y: out f32[8, 64]) {
    let t = tile Vec<f32, 8, 64>;
    t = 0.0;
    for i in 0..100000000 {
        TADDS(t, t, 1.0);
    }
    TSTORE(y, t);
}
";
    fs::write(&path, text).unwrap();
    json!({"program": path})
}

#[test]
fn a_run_is_paused_and_ended() {
    let dir = TempDir::new().unwrap();
    let mut c = Client::new();
    c.ask("launch", endless(&dir));
    c.ask("configurationDone", Value::Null);
    let threads = c.ask("threads", Value::Null);
    assert_eq!(threads["threads"][0]["name"], "long", "{threads}");
    assert!(c.refused("stackTrace", json!({"threadId": 1})).starts_with("notStopped"));
    assert!(c.refused("launch", json!({})).contains("running already"));
    c.ask("pause", json!({"threadId": 1}));
    let place = c.stop();
    assert!(place.starts_with("pause at ") && place.contains(" in long"), "{place}");
    // A breakpoint that is set while it runs.
    c.ask("continue", json!({"threadId": 1}));
    let set = c.breakpoints(&dir.path().join("long.tile"), json!([{"line": 5, "condition": "i % 2 == 1"}]));
    assert_eq!(set[0]["verified"], true);
    assert!(c.stop().starts_with("breakpoint at 5 in long"), "a breakpoint stops it");
    c.breakpoints(&dir.path().join("long.tile"), json!([]));
    c.ask("continue", json!({"threadId": 1}));
    c.ask("terminate", json!({}));
    c.event("terminated");
    assert_eq!(c.disconnect(), 0);

    let mut c = Client::new();
    c.ask("launch", endless(&dir));
    c.ask("configurationDone", Value::Null);
    assert_eq!(c.disconnect(), 0);
    // A client that dies leaves no process behind: running, and standing.
    let mut c = Client::new();
    c.ask("launch", endless(&dir));
    c.ask("configurationDone", Value::Null);
    assert_eq!(c.vanish(), 1);
    assert_eq!(Client::at_entry(calls()).vanish(), 1);
    assert_eq!(Client::start().vanish(), 1);
}

#[test]
fn messages_that_are_none() {
    let mut c = Client::start();
    assert_eq!(c.refused("threads", Value::Null), "`initialize` comes first");
    c.send("hello\r\n");
    c.send("Content-Length: 5\r\n\r\n{\"a\":");
    c.send("Content-Length: 2\r\n\r\n[]");
    let answer = c.ask("initialize", json!({"adapterID": "ptoc"}));
    assert_eq!(answer["supportsStepBack"], true);
    insta::assert_snapshot!(c.output());
    assert_eq!(c.refused("nxet", json!({})), "`nxet` is not served");
    assert!(c.refused("attach", json!({})).contains("`launch` runs one"));
    let mut c = Client::at_entry(calls());
    for (command, arguments) in [
        ("setBreakpoints", json!({"breakpoints": 7})),
        ("variables", json!({})),
        ("next", json!({"granularity": "token"})),
        ("evaluate", json!({"expression": 1})),
    ] {
        let why = c.refused(command, arguments);
        assert!(why.starts_with(&format!("the arguments of `{command}`: ")), "{why}");
    }
    let elsewhere = c.breakpoints(std::path::Path::new("/none.tile"), json!([{"line": 1}]));
    assert_eq!(elsewhere[0]["message"], "`/none.tile` is no file of this run");
    assert_eq!(c.disconnect(), 0);
}

/// Outputs are written when the run is complete, and not when it is ended.
#[test]
fn results_are_written() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("y.npy");
    for complete in [false, true] {
        let mut launch = calls();
        launch["outputs"] = json!({"y": out});
        let mut c = Client::at_entry(launch);
        c.ask(if complete { "continue" } else { "terminate" }, json!({"threadId": 1}));
        c.event("terminated");
        assert_eq!(out.exists(), complete);
        assert_eq!(c.disconnect(), 0);
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// What another order of the pipes shows is said before anybody steps.
#[test]
fn schedules() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("race.tile");
    let text = "#[sync(manual)]
kernel race(x: in f32[16, 64], y: out f32[16, 64]) {
    let t = tile Vec<f32, 16, 64> at 0;
    TLOAD(t, x);
    TSTORE(y, t);
}
";
    fs::write(&path, text).unwrap();
    let mut c = Client::at_entry(json!({"program": path, "random": 1, "schedule": "late"}));
    let output = c.output();
    assert!(output.contains("With its pipes in that order the program fails:"), "{output}");
    assert!(output.contains("error[PA-112") && output.contains("race.tile:5"), "{output}");
    assert_eq!(c.go("next", json!({})), "step at 4 in race");
    // The debugger itself goes in program order, where nothing is wrong.
    c.ask("continue", json!({"threadId": 1}));
    assert_eq!(c.event("exited")["exitCode"], 0);

    let mut launch = calls();
    launch["schedule"] = json!("random:3");
    let mut c = Client::at_entry(launch);
    assert!(c.output().contains("With its pipes in that order the program has run without an error."));
}
