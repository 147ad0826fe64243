//! The kernels of a program in a run: which steps were done for each, and how long they took.

use super::baseline::Traffic;
use ptoc_pim_stream::stream::{Action, SourceLine, Stream};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A kernel of a program: the steps from its `launch` to the next one.
#[derive(Clone, Debug, PartialEq)]
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
    /// What the host would take to move its arrays once.
    pub baseline: Option<Traffic>,
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
        let baseline = self.baseline.map(|t| json!({"cycles": cycles(t.ticks), "bytes_moved": t.moved}));
        json!({"kernel": self.kernel, "place": file, "cycles": all, "host": host, "kinds": kinds,
               "host_baseline": baseline})
    }
}

/// The launches of a stream whose steps took these times; none in one of a kernel by itself.
pub(super) fn of(stream: &Stream, steps: &[(u64, u64)], baselines: &[Option<Traffic>]) -> Vec<LaunchTime> {
    let mut out: Vec<LaunchTime> = Vec::new();
    for (step, &(start, end)) in stream.steps.iter().zip(steps) {
        if let Action::Launch(l) = &step.action {
            let (kernel, baseline) = (l.kernel.clone(), baselines.get(out.len()).copied().flatten());
            out.push(LaunchTime { kernel, place: step.place, start, end, kinds: BTreeMap::new(), baseline });
        } else if let Some(launch) = out.last_mut() {
            launch.end = end;
            let kind = launch.kinds.entry(step.action.name()).or_default();
            *kind = (kind.0 + 1, kind.1 + end - start);
        }
    }
    out
}
