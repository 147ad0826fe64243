//! When each phase of a call ran, and the Chrome trace of it.

use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A phase that is over.
#[derive(Clone, Debug)]
pub struct Phase {
    /// `parse`, `passes`, `run add`
    pub name: String,
    /// Since the clock started.
    pub begin: Duration,
    /// How long it took.
    pub length: Duration,
}

/// Records phases.
#[derive(Clone, Debug)]
pub struct Clock {
    start: Instant,
    /// In the order in which they ended.
    pub phases: Vec<Phase>,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Clock {
        Clock { start: Instant::now(), phases: Vec::new() }
    }

    /// Time since the start.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Records that a phase lasted from `begin` until now, and returns its length.
    pub fn phase(&mut self, name: impl Into<String>, begin: Duration) -> Duration {
        let length = self.now().saturating_sub(begin);
        self.phases.push(Phase { name: name.into(), begin, length });
        length
    }

    /// The trace: complete events (`"ph": "X"`) with times in microseconds, as Perfetto and chrome://tracing read it.
    /// `more` are events of other processes than number 1.
    pub fn chrome_trace(&self, more: Vec<Value>) -> String {
        let micros = |d: Duration| d.as_nanos() as f64 / 1000.0;
        let mut events = vec![json!({"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "ptoc"}})];
        events.extend(self.phases.iter().map(|p| {
            let category = if p.name.starts_with("run") { "run" } else { "compile" };
            json!({"name": p.name, "cat": category, "ph": "X", "pid": 1, "tid": 1, "ts": micros(p.begin), "dur": micros(p.length)})
        }));
        events.extend(more);
        let trace: Value = json!({"traceEvents": events, "displayTimeUnit": "ms"});
        format!("{trace}\n")
    }
}
