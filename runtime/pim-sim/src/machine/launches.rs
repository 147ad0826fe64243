//! The kernels of a program in a run: which steps were done for each, and how long they took.

use ptoc_pim_stream::stream::{Action, SourceLine, Stream};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A kernel of a program: the steps from its `launch` to the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchTime {
    /// The kernel.
    pub kernel: String,
    /// Where it is launched.
    pub place: SourceLine,
    /// Its first tick.
    pub start: u64,
    /// The tick when its last step was done.
    pub end: u64,
    /// Steps and ticks by kind of step.
    pub kinds: BTreeMap<&'static str, (u64, u64)>,
}

impl LaunchTime {
    /// Ticks of all its steps.
    pub fn ticks(&self) -> u64 {
        self.end - self.start
    }

    /// Whether the host computes it.
    pub fn is_host(&self) -> bool {
        self.kinds.contains_key("host")
    }

    pub(super) fn json(&self, file: String, cycles: &dyn Fn(u64) -> Value) -> Value {
        let kinds: Map<String, Value> = self
            .kinds
            .iter()
            .map(|(name, (steps, ticks))| ((*name).to_owned(), json!({"steps": steps, "cycles": cycles(*ticks)})))
            .collect();
        let (all, host) = (cycles(self.ticks()), self.is_host());
        json!({"kernel": self.kernel, "place": file, "cycles": all, "host": host, "kinds": kinds})
    }
}

/// The launches of a stream whose steps took these times; none in one of a kernel by itself.
pub(super) fn of(stream: &Stream, steps: &[(u64, u64)]) -> Vec<LaunchTime> {
    let mut out: Vec<LaunchTime> = Vec::new();
    for (step, &(start, end)) in stream.steps.iter().zip(steps) {
        if let Action::Launch(kernel) = &step.action {
            out.push(LaunchTime { kernel: kernel.clone(), place: step.place, start, end, kinds: BTreeMap::new() });
        } else if let Some(launch) = out.last_mut() {
            launch.end = end;
            let kind = launch.kinds.entry(step.action.name()).or_default();
            *kind = (kind.0 + 1, kind.1 + end - start);
        }
    }
    out
}
