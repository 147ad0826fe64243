//! `check --fix`, `--watch`, and SARIF.

use super::super::{Sandbox, snapshot};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Mistakes: two with a fix that is certain, and three with a guess: near names, and a name that is not used.
const BROKEN: &str = "\
kernel scale(x: in f32[M, N], y: out f32[M, N]) {
    grid (i in tiles(M, 16), j in tiles(N, 64));
    let unused = 1
    let t = tile Vec<f32, i, j>;
    TLAOD(t, x.tile(i, j));
    TMULZ(t, t, 2.0);
    TSTORE(y.tile(i, j), t)
}
";

#[test]
fn fixes_are_written() {
    let s = Sandbox::new();
    s.file("broken.tile", BROKEN);
    s.file(
        "good.tile",
        "kernel k(y: out f32[16, 64]) {\n    let t = tile Vec<f32, 16, 64>;\n    t = 1.0;\n    TSTORE(y, t);\n}\n",
    );
    let before = fs::read_to_string(s.path().join("good.tile")).unwrap();
    let mut text = s.run("check broken.tile good.tile --fix");
    text += &fs::read_to_string(s.path().join("broken.tile")).unwrap();
    // What is left are guesses.
    text += &s.run("check broken.tile --fix");
    snapshot!(text);
    assert_eq!(fs::read_to_string(s.path().join("good.tile")).unwrap(), before);
    assert_eq!(s.listing(), ["a.npy", "add.tile", "b.npy", "broken.tile", "good.tile"]);
}

/// A body without braces is not mended by half.
#[test]
fn fixes_leave_no_more_mistakes() {
    let s = Sandbox::new();
    let text = |body: &str| {
        let head = "kernel k(y: out f32[16, 64], n: i32) {\n    var s = 1.0;\n";
        format!("{head}    {body}\n    let t = tile Vec<f32, 16, 64>;\n    t = s;\n    TSTORE(y, t);\n}}\n")
    };
    for (before, after) in [
        ("if n > 2 s = 2.0 else s = 3.0;", "if n > 2 { s = 2.0; } else { s = 3.0; }"),
        ("while s < 3.0: s = s * 2.0;", "while s < 3.0 { s = s * 2.0; }"),
        ("for i in 0..3: s = s * 2.0;", "for i in 0..3 { s = s * 2.0; }"),
        ("if n > 2: s = 2.0;\n    else: s = 3.0;", "if n > 2 { s = 2.0; }\n    else { s = 3.0; }"),
    ] {
        s.file("k.tile", text(before));
        let said = s.run("check k.tile --fix");
        assert!(said.contains("exit 0"), "{said}");
        assert_eq!(fs::read_to_string(s.path().join("k.tile")).unwrap(), text(after), "{said}");
    }
    // Bodies of Python: with their brace at the end and without.
    let head = "kernel k(y: out f32[16, 64])";
    let body = "    let t = tile Vec<f32, 16, 64>;\n    t = 1.0;\n    TSTORE(y, t);\n";
    for end in ["", "}\n"] {
        s.file("k.tile", format!("{head}:\n{body}{end}"));
        let said = s.run("check k.tile --fix");
        assert!(said.contains("exit 0") && said.contains("1 mistake mended"), "{said}");
        assert_eq!(fs::read_to_string(s.path().join("k.tile")).unwrap(), format!("{head} {{\n{body}}}\n"), "{said}");
    }
}

#[test]
fn sarif() {
    let s = Sandbox::new();
    s.file("my kernels/broken.tile", BROKEN);
    let dir = "my kernels/broken.tile";
    let output = s.command("check --message-format sarif").arg(dir).arg("add.tile").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let mut log: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!((&log["version"], log["runs"].as_array().unwrap().len()), (&"2.1.0".into(), 1));
    let rules = log["runs"][0]["tool"]["driver"]["rules"].take();
    for rule in rules.as_array().unwrap() {
        assert!(rule["help"]["markdown"].as_str().unwrap().starts_with(&format!("# {}", rule["id"].as_str().unwrap())));
        assert!(!rule["shortDescription"]["text"].as_str().unwrap().is_empty());
    }
    let results = log["runs"][0]["results"].as_array().unwrap();
    // Every result has its rule.
    for result in results {
        assert!(rules.as_array().unwrap().iter().any(|r| r["id"] == result["ruleId"]), "{result}");
    }
    snapshot!(serde_json::to_string_pretty(results).unwrap());
    // Nothing found is a document, too.
    let output = s.command("check add.tile --message-format sarif").output().unwrap();
    let log: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(log["runs"][0]["results"], serde_json::json!([]));
}

/// Two mistakes in names.
const MISSPELT: &str = "\
kernel scale(x: in f32[M, N], y: out f32[M, N]) {
    grid (i in tiles(M, 16), j in tiles(N, 64));
    let t = tile Vec<f32, i, j>;
    TLAOD(t, x.tile(i, j));
    TMULZ(t, t, 2.0);
    TSTORE(y.tile(i, j), t);
}
";

#[test]
fn watching() {
    let s = Sandbox::new();
    s.file("k.tile", MISSPELT);
    let mut child = s.command("check . --watch").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (sender, printed) = channel();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    // Far longer than anything takes.
    let until = |text: &str| loop {
        match printed.recv_timeout(Duration::from_secs(120)) {
            Ok(line) if line.contains(text) => break,
            Ok(_) => {}
            Err(e) => panic!("`{text}` does not come: {e}"),
        }
    };
    until("k.tile: 2 errors");
    until("watching 2 files");
    s.file("k.tile", MISSPELT.replace("TLAOD", "TLOAD").replace("TMULZ", "TMULS"));
    until("k.tile: ok");
    s.file(
        "more/new.tile",
        "kernel k(y: out f32[16, 64]) {\n    let t = tile Vec<f32, 16, 64>;\n    t = 1.0;\n    TSTORE(y, t);\n}\n",
    );
    until("new.tile: ok");
    until("watching 3 files");
    s.file("k.tile", MISSPELT);
    until("k.tile: 2 errors");
    // A project that comes, goes, and comes again.
    for _ in 0..2 {
        s.file("ptoc.toml", "target = 5\n");
        // What is wrong with it is said with the first file.
        until("add.tile: 1 error");
        until("watching 4 files");
        fs::remove_file(s.path().join("ptoc.toml")).unwrap();
        until("add.tile: ok");
        until("watching 3 files");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
