//! Files of both formats, read back: Perfetto's by a decoder of protobuf's wire format that knows nothing of the
//! writer.

use ptoc_trace::{Arguments, Format, Process, Slice, Trace, Track, Value};
use std::collections::HashMap;
use std::path::Path;

/// A field of a message: its number, and what it holds.
#[derive(Clone, Debug, PartialEq)]
enum Field {
    Number(u64, u64),
    Bytes(u64, Vec<u8>),
}

fn varint(bytes: &[u8], at: &mut usize) -> u64 {
    let mut n = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = bytes[*at];
        *at += 1;
        n |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return n;
        }
    }
    panic!("a varint has ten bytes at most");
}

fn message(bytes: &[u8]) -> Vec<Field> {
    let (mut at, mut out) = (0, Vec::new());
    while at < bytes.len() {
        let tag = varint(bytes, &mut at);
        match tag & 7 {
            0 => out.push(Field::Number(tag >> 3, varint(bytes, &mut at))),
            2 => {
                let length = varint(bytes, &mut at) as usize;
                out.push(Field::Bytes(tag >> 3, bytes[at..at + length].to_vec()));
                at += length;
            }
            other => panic!("wire type {other}"),
        }
    }
    out
}

fn number(fields: &[Field], wanted: u64) -> Option<u64> {
    fields.iter().find_map(|f| match f {
        Field::Number(n, value) if *n == wanted => Some(*value),
        _ => None,
    })
}

fn all(fields: &[Field], wanted: u64) -> impl Iterator<Item = &[u8]> {
    fields.iter().filter_map(move |f| match f {
        Field::Bytes(n, bytes) if *n == wanted => Some(&bytes[..]),
        _ => None,
    })
}

fn text(fields: &[Field], wanted: u64) -> Option<String> {
    all(fields, wanted).next().map(|bytes| String::from_utf8(bytes.to_vec()).expect("a text"))
}

/// A slice as a reader sees it: track, depth, begin and end in nanoseconds, category, name, annotations.
type Seen = (String, usize, u64, u64, String, String, Vec<(String, String)>);

/// Slices by begin of a file of Perfetto's, and the names of its tracks.
fn perfetto(bytes: &[u8]) -> (Vec<Seen>, Vec<String>) {
    let mut interned: HashMap<(u64, u64), String> = HashMap::new();
    let mut tracks: HashMap<u64, (String, Option<u64>)> = HashMap::new();
    let mut open: HashMap<u64, Vec<usize>> = HashMap::new();
    let (mut seen, mut names): (Vec<Seen>, _) = (Vec::new(), Vec::new());
    let mut cleared = false;
    for packet in all(&message(bytes), 1) {
        let packet = message(packet);
        assert_eq!(number(&packet, 10), Some(1), "the sequence");
        match number(&packet, 13) {
            Some(1) => cleared = true,
            Some(2) => assert!(cleared, "interned data begin with a cleared state"),
            _ => {}
        }
        for data in all(&packet, 12).map(message) {
            for kind in 1..=3 {
                for entry in all(&data, kind).map(message) {
                    let key = (kind, number(&entry, 1).expect("a number"));
                    assert!(interned.insert(key, text(&entry, 2).expect("a text")).is_none(), "written once");
                }
            }
        }
        for track in all(&packet, 60).map(message) {
            let (uuid, name) = (number(&track, 1).expect("a uuid"), text(&track, 2).expect("a name"));
            if let Some(process) = all(&track, 3).next().map(message) {
                assert_eq!(text(&process, 6).as_ref(), Some(&name));
            }
            names.push(name.clone());
            assert!(tracks.insert(uuid, (name, number(&track, 5))).is_none());
        }
        for event in all(&packet, 11).map(message) {
            let (time, track) = (number(&packet, 8).expect("a time"), number(&event, 11).expect("a track"));
            let stack = open.entry(track).or_default();
            match number(&event, 9) {
                Some(1) => {
                    let name = |kind, field| interned[&(kind, number(&event, field).expect("interned"))].clone();
                    let annotations = all(&event, 4).map(message).map(|a| {
                        let key = interned[&(3, number(&a, 1).expect("a key"))].clone();
                        (key, number(&a, 3).map(|n| n.to_string()).or(text(&a, 6)).expect("a value"))
                    });
                    let (of, parent) = &tracks[&track];
                    let of = format!("{}/{of}", tracks[&parent.expect("a process")].0);
                    stack.push(seen.len());
                    seen.push((of, stack.len() - 1, time, 0, name(1, 3), name(2, 10), annotations.collect()));
                }
                Some(2) => {
                    let n = stack.pop().expect("an open slice");
                    assert!(seen[n].2 <= time);
                    seen[n].3 = time;
                }
                Some(3) => {}
                other => panic!("type {other:?}"),
            }
        }
    }
    assert!(open.values().all(Vec::is_empty), "all slices end");
    (seen, names)
}

/// Two processes: rows with reads in them at 0.5 ns a tick, and phases in nanoseconds.
fn example(rows: u64) -> Trace {
    let mut trace = Trace::default();
    let (row, read, phase) = (trace.text("row"), trace.text("RD"), trace.text("run \"x\""));
    let arguments = trace.arguments(vec![("line", Value::Number(7)), ("role", Value::Text(None))]);
    let slice =
        |begin, end, name, class, depth| Slice { begin, end, name, class, depth, arguments: Arguments::default() };
    let mut slices = Vec::new();
    for n in 0..rows {
        let name = trace.text(&format!("row {n}"));
        slices.push(Slice { arguments, ..slice(100 * n, 100 * n + 90, name, row, 0) });
        slices.extend((0..3).map(|k| slice(100 * n + 20 * k, 100 * n + 20 * k + 5, read, read, 1)));
    }
    let tracks = vec![Track { name: "bank 0".into(), slices }, Track { name: "idle".into(), slices: Vec::new() }];
    trace.push(Process { name: "memory".into(), picoseconds: 500, ticks: 1, tick: "tick", tracks });
    let tracks = vec![Track { name: "phases".into(), slices: vec![slice(3, 1003, phase, phase, 0)] }];
    trace.push(Process { name: "ptoc".into(), picoseconds: 1000, ticks: 1, tick: "", tracks });
    trace
}

#[test]
fn perfetto_files_have_every_slice() {
    let (seen, names) = perfetto(&example(2).write(Format::Perfetto));
    assert_eq!(names, ["memory", "bank 0", "idle", "ptoc", "phases"]);
    let row = |n: u64| {
        let more = [("tick", 100 * n), ("line", 7)].map(|(k, n)| (k.to_owned(), n.to_string()));
        let annotations = more.into_iter().chain([("role".to_owned(), "none".to_owned())]).collect();
        ("memory/bank 0".to_owned(), 0, 50 * n, 50 * n + 45, "row".to_owned(), format!("row {n}"), annotations)
    };
    assert_eq!((&seen[0], &seen[4]), (&row(0), &row(1)));
    // 20 to 25 ticks: times are rounded down.
    let read =
        ("memory/bank 0".to_owned(), 1, 10, 12, "RD".to_owned(), "RD".to_owned(), vec![("tick".into(), "20".into())]);
    assert_eq!(seen[2], read);
    let phase = "run \"x\"".to_owned();
    assert_eq!(seen[8], ("ptoc/phases".to_owned(), 0, 3, 1003, phase.clone(), phase, Vec::new()));
    assert_eq!(seen.len(), 9);
}

#[test]
fn both_formats_say_the_same() {
    let (seen, _) = perfetto(&example(50).write(Format::Perfetto));
    let json: serde_json::Value = serde_json::from_slice(&example(50).write(Format::Chrome)).expect("JSON");
    let events = json["traceEvents"].as_array().expect("events").iter().filter(|e| e["ph"] == "X");
    let of_json: Vec<(u64, u64, String)> = events
        .map(|e| {
            let ns = |key: &str| (e[key].as_f64().expect("a time") * 1000.0).round() as u64;
            (ns("ts"), ns("ts") + ns("dur"), e["name"].as_str().expect("a name").to_owned())
        })
        .collect();
    let of_perfetto: Vec<_> = seen.into_iter().map(|(_, _, from, to, _, name, _)| (from, to, name)).collect();
    assert_eq!(of_json, of_perfetto);
}

/// A run of a million commands is a file that viewers open, and the file says what it left out.
#[test]
fn files_are_bounded() {
    let file = example(250_000).write(Format::Perfetto);
    assert!(file.len() < 20_000_000, "{}", file.len());
    let (seen, names) = perfetto(&file);
    assert!(seen.len() <= 300_000 && seen.len() > 100_000, "{}", seen.len());
    assert!(names.last().expect("a note").starts_with("1000001 slices are "), "{names:?}");
    let file = example(250_000).write(Format::Chrome);
    assert!(file.len() < 20_000_000, "{}", file.len());
    let json: serde_json::Value = serde_json::from_slice(&file).expect("JSON");
    assert!(json["otherData"]["note"].as_str().expect("a note").starts_with("1000001 slices are "));
}

#[test]
fn names_of_files_choose_the_format() {
    for (name, format) in [
        ("t.json", Format::Chrome),
        ("t", Format::Chrome),
        ("t.pftrace", Format::Perfetto),
        ("a/t.perfetto-trace", Format::Perfetto),
    ] {
        assert_eq!(Format::of(Path::new(name)), format, "{name}");
    }
}
