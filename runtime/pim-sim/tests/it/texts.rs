//! Command traces as texts: read from JSON, written for Perfetto.

use ptoc_pim_sim::check::CommandTrace;
use ptoc_pim_sim::dram::{Command, Config};
use ptoc_pim_sim::timeline;
use std::fmt::Write as _;

use crate::checker::at;
use crate::support::preset;

#[test]
fn command_traces_are_read() {
    let mut config = preset("hbm2_2000");
    config.org.channel = 2;
    let text = "[[0,\"ACT\",0,1,7,0],\n [15,\"RD\",0,1,7,3],[16,\"ACT\",1,0,9,0,1,1]]\n";
    let trace = CommandTrace::parse(&config, text).unwrap();
    assert_eq!(trace.len(), 3);
    assert_eq!(trace.channels[0][0], at(0, Command::Act, 0, 0, 1, 7));
    assert_eq!(trace.channels[0][1].address.column, 3);
    assert_eq!(trace.channels[1], [at(16, Command::Act, 1, 1, 0, 9)]);
    assert_eq!(&text[trace.bytes[0][1].clone()], "[15,\"RD\",0,1,7,3]");
    assert!(CommandTrace::parse(&config, "[]").unwrap().is_empty());
}

#[test]
fn refusals_of_command_traces() {
    let config = preset("hbm2_2000");
    let mut text = String::new();
    for source in [
        "",
        "{\"commands\": []}",
        "[1]",
        "[[0, \"ACT\", 0, 0]]",
        "[[0, \"ACT\", 0, 0, 0, 0, 0, 0, 0]]",
        "[[0, \"ACT\", 0, 0, 0, 0],\n [-1, \"RD\", 0, 0, 0, 0],\n [1.5, \"RD\", 0, 0, 0, 0]]",
        "[[0, \"PRE\", 0, 0, 0, 0], [1, \"ACTIVATE\", 0, 0, 0, 0], [2, 3, 0, 0, 0, 0]]",
        "[[0, \"ACT\", 65536, \"0\", 0, 0]]",
        "[[0, \"ACT\", 0, 0, 4294967296, 0], [0, \"ACT\", 0, 0, 0, 0, 0, 1]]",
        "[[0, \"ACT\", 0, 0, 0, 0]",
    ] {
        let _ = writeln!(text, "{source}");
        for e in CommandTrace::parse(&config, source).unwrap_err() {
            let _ = writeln!(text, "    {e}");
        }
    }
    insta::assert_snapshot!(text);
}

/// Process, thread, name, begin and end in nanoseconds.
type Slice = (u64, u64, String, u64, u64);

/// The slices of a trace, and its text.
fn slices(config: &Config, channels: &[&[ptoc_pim_sim::dram::Issued]]) -> (String, Vec<Slice>) {
    let file = timeline::of_commands(config, channels).write(ptoc_trace::Format::Chrome);
    let text = String::from_utf8(file).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let nanos = |v: &serde_json::Value| (v.as_f64().unwrap() * 1000.0).round() as u64;
    let slice = |e: &serde_json::Value| {
        let (from, length) = (nanos(&e["ts"]), nanos(&e["dur"]));
        let name = e["name"].as_str().unwrap().to_owned();
        (e["pid"].as_u64().unwrap(), e["tid"].as_u64().unwrap(), name, from, from + length)
    };
    let events = json["traceEvents"].as_array().unwrap();
    let slices = events.iter().filter(|e| e["ph"] == "X").map(slice).collect();
    (text, slices)
}

#[test]
fn timelines() {
    use Command::{Act, PreAb, PrePb, Rd, RdA, RefAb, RefPb, Wr};
    let mut config = preset("hbm2_2000");
    config.org.bankgroup = 2;
    config.org.bank = 1;
    let trace = [
        at(0, Act, 0, 0, 0, 5),
        at(4, Act, 0, 1, 0, 6),
        at(15, Rd, 0, 0, 0, 5),
        at(28, Wr, 0, 1, 0, 6),
        at(35, PrePb, 0, 0, 0, 5),
        at(48, Act, 0, 0, 0, 6),
        at(63, RdA, 0, 0, 0, 6),
        at(70, PreAb, 0, 0, 0, 0),
        at(90, RefAb, 0, 0, 0, 0),
        at(400, RefPb, 0, 1, 0, 0),
        at(700, Act, 0, 0, 0, 1),
    ];
    let (text, slices) = slices(&config, &[&trace]);
    insta::assert_snapshot!(text);
    // Slices of a track lie apart or one in the other, the outer one first.
    for (n, a) in slices.iter().enumerate() {
        for b in &slices[n + 1..] {
            if (a.0, a.1) == (b.0, b.1) {
                assert!(b.3 >= a.4 || b.4 <= a.3 || b.3 >= a.3 && b.4 <= a.4, "{a:?} {b:?}");
            }
        }
    }
}
