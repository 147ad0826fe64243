//! Backwards: steps, breakpoints, and the last write.

use super::client::{Client, program};
use super::{calls, straight};
use serde_json::{Value, json};
use std::fmt::Write as _;

#[test]
fn steps_back_are_steps_forwards_undone() {
    let mut c = Client::at_entry(calls());
    let mut forwards = vec![("entry at 24 in calls (block i=0)".to_owned(), c.value("t.valid", 1))];
    for _ in 0..14 {
        let place = c.go("next", json!({}));
        forwards.push((place, c.value("t.valid", 1)));
    }
    forwards.pop();
    for (place, valid) in forwards.into_iter().rev() {
        assert_eq!(c.go("stepBack", json!({})), place);
        assert_eq!(c.value("t.valid", 1), valid);
    }
    // At the beginning there is nothing before.
    assert_eq!(c.go("stepBack", json!({})), "entry at 24 in calls (block i=0)");
    assert!(c.output().contains("Nothing of that kind was before"));
}

#[test]
fn breakpoints_backwards() {
    let mut c = Client::at_entry(calls());
    c.breakpoints(&program("calls.tile"), json!([{"line": 18}, {"line": 9, "hitCondition": "% 2"}]));
    let mut forwards = Vec::new();
    for _ in 0..6 {
        forwards.push(c.go("continue", json!({})));
    }
    assert_eq!(forwards.iter().filter(|p| p.contains(" at 9 ")).count(), 1, "{forwards:?}");
    forwards.pop();
    for place in forwards.into_iter().rev() {
        assert_eq!(c.go("reverseContinue", json!({})), place);
    }
    assert_eq!(c.go("reverseContinue", json!({})), "entry at 24 in calls (block i=0)");
}

#[test]
fn data_breakpoints_and_the_last_write() {
    let mut c = Client::at_entry(straight());
    c.breakpoints(&program("straight.tile"), json!([{"line": 6}]));
    c.go("continue", json!({}));
    let mut text = String::new();
    let info = c.ask("dataBreakpointInfo", json!({"name": "parts[1][0, 2]", "frameId": 1}));
    let _ = writeln!(text, "{info}");
    let element = c.ask("dataBreakpointInfo", json!({"name": "z[0, 0..2]", "frameId": 1}));
    let _ = writeln!(text, "{element}");
    // Of a variable in a table, as an editor asks.
    let scopes = c.ask("scopes", json!({"frameId": 1}))["scopes"].clone();
    let tiles = &scopes[0]["variablesReference"];
    let whole = c.ask("dataBreakpointInfo", json!({"variablesReference": tiles, "name": "x"}));
    let _ = writeln!(text, "{whole}");
    let value = c.ask("dataBreakpointInfo", json!({"name": "i", "frameId": 1}));
    let _ = writeln!(text, "{value}");
    let list = json!([{"dataId": element["dataId"]}, {"dataId": whole["dataId"]}, {"dataId": "9:9:q"}]);
    let _ = writeln!(text, "{}", c.ask("setDataBreakpoints", json!({"breakpoints": list})));
    c.breakpoints(&program("straight.tile"), json!([]));
    let first = c.go("continue", json!({}));
    let second = c.go("continue", json!({}));
    let _ = writeln!(text, "{first}\n{second}");
    let _ = writeln!(text, "z is {}", c.value("z[0, 0..2]", 1));
    assert_eq!(c.go("reverseContinue", json!({})), first);
    let _ = writeln!(text, "z was {}", c.value("z[0, 0..2]", 1));
    c.ask("setDataBreakpoints", json!({"breakpoints": []}));
    c.breakpoints(&program("straight.tile"), json!([{"line": 12}]));
    let _ = writeln!(text, "{}", c.go("continue", json!({})));
    let _ = writeln!(text, "last write of parts: {}", c.go("ptoc/lastWrite", json!({"expression": "parts[1]"})));
    let _ = writeln!(text, "before it: {}", c.go("ptoc/lastWrite", json!({"expression": "parts[1]"})));
    let _ = writeln!(text, "of z: {}", c.go("ptoc/lastWrite", json!({"expression": "z"})));
    let _ = writeln!(text, "of z again: {}", c.go("ptoc/lastWrite", json!({"expression": "z"})));
    text += &c.output();
    let _ = writeln!(text, "{}", c.refused("ptoc/lastWrite", json!({"expression": "i"})));
    insta::assert_snapshot!(text);
}

/// What a program prints is printed once, however often it is run for steps back; and its results are the same.
#[test]
fn output_is_not_repeated() {
    let mut c = Client::at_entry(calls());
    c.breakpoints(&program("calls.tile"), json!([{"line": 39}]));
    c.go("continue", json!({}));
    c.go("stepBack", json!({}));
    c.go("stepBack", json!({}));
    c.go("reverseContinue", json!({}));
    c.breakpoints(&program("calls.tile"), json!([]));
    c.ask("continue", json!({"threadId": 1}));
    assert_eq!(c.event("exited")["exitCode"], 0);
    let output = c.output();
    assert_eq!(output.matches("steps 5").count(), 2, "{output}");

    let mut straight_on = Client::new();
    straight_on.ask("launch", calls());
    straight_on.ask("configurationDone", Value::Null);
    straight_on.event("terminated");
    let results = |text: &str| text[text.find("y: f32").unwrap()..].to_owned();
    assert_eq!(results(&straight_on.output()), results(&output));
}
