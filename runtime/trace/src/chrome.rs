//! Chrome's trace events: complete events (`"ph": "X"`) with times in microseconds, as Perfetto and chrome://tracing
//! read them.

use crate::{Process, Slice, Trace, Value};
use serde_json::json;
use std::fmt::Write as _;

/// The text of a file.
pub fn json(trace: &Trace, note: Option<&str>) -> String {
    let mut out = String::from("{\"displayTimeUnit\":\"ns\",");
    if let Some(note) = note {
        write!(out, "\"otherData\":{},", json!({"note": note})).ok();
    }
    out.push_str("\"traceEvents\":[");
    let mut events = Events { out: &mut out, trace, first: true };
    for (number, process) in (1..).zip(trace.processes()) {
        events.name("process_name", number, 0, &process.name);
        for (thread, track) in (1..).zip(&process.tracks) {
            events.name("thread_name", number, thread, &track.name);
            track.slices.iter().for_each(|slice| events.slice(process, (number, thread), slice));
        }
    }
    if let Some(note) = note {
        events.name("process_labels", 1, 0, note);
    }
    out.push_str("\n]}\n");
    out
}

struct Events<'t> {
    out: &'t mut String,
    trace: &'t Trace,
    first: bool,
}

impl Events<'_> {
    fn next(&mut self) {
        let separator = if std::mem::take(&mut self.first) { "\n" } else { ",\n" };
        self.out.push_str(separator);
    }

    fn name(&mut self, what: &str, process: usize, thread: usize, name: &str) {
        self.next();
        let key = if what == "process_labels" { "labels" } else { "name" };
        write!(
            self.out,
            r#"{{"name":"{what}","ph":"M","pid":{process},"tid":{thread},"args":{{"{key}":{}}}}}"#,
            json!(name)
        )
        .ok();
    }

    fn slice(&mut self, process: &Process, (number, thread): (usize, usize), slice: &Slice) {
        self.next();
        let (from, to) = (process.ns(slice.begin), process.ns(slice.end.max(slice.begin)));
        let micros = |ns: u64| (ns / 1000, ns % 1000);
        let ((ts, ts_ns), (dur, dur_ns)) = (micros(from), micros(to - from));
        write!(
            self.out,
            "{{\"name\":{},\"cat\":{},\"ph\":\"X\",\"pid\":{number},\"tid\":{thread},\"ts\":{ts}.{ts_ns:03},\
             \"dur\":{dur}.{dur_ns:03},\"args\":{{",
            json!(self.trace.name(slice.name)),
            json!(self.trace.name(slice.class))
        )
        .ok();
        for (n, (key, value)) in self.trace.all_arguments(process, slice).enumerate() {
            let separator = if n > 0 { "," } else { "" };
            match value {
                Value::Number(n) => write!(self.out, "{separator}\"{key}\":{n}"),
                Value::Text(text) => write!(self.out, "{separator}\"{key}\":{}", json!(text)),
            }
            .ok();
        }
        self.out.push_str("}}");
    }
}
