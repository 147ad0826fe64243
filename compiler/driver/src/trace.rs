//! When each phase of a call ran, and the trace of it.

use ptoc_trace::{Arguments, Process, Slice, Trace, Track};
use std::cmp::Reverse;
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
    /// It is a part of another phase.
    pub part: bool,
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
        self.phases.push(Phase { name: name.into(), begin, length, part: false });
        length
    }

    /// Records a part of a phase.
    pub fn part(&mut self, name: &str, begin: Instant, length: Duration) {
        let begin = begin.saturating_duration_since(self.start);
        self.phases.push(Phase { name: name.to_owned(), begin, length, part: true });
    }

    /// A table of all phases by name, in the order in which they first began, parts indented under what they are of.
    pub fn table(&self) -> String {
        let mut rows: Vec<(&Phase, Duration, usize)> = Vec::new();
        let mut ordered: Vec<&Phase> = self.phases.iter().collect();
        ordered.sort_by_key(|p| (p.begin, p.part));
        for phase in ordered {
            match rows.iter_mut().find(|(p, ..)| p.name == phase.name && p.part == phase.part) {
                Some((_, length, times)) => (*length, *times) = (*length + phase.length, *times + 1),
                None => rows.push((phase, phase.length, 1)),
            }
        }
        // Parts directly behind what they are parts of.
        let (parts, wholes): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(p, ..)| p.part);
        let total: Duration = wholes.iter().map(|(_, length, _)| *length).sum();
        let ms = |d: Duration| d.as_nanos() as f64 / 1e6;
        let mut out = String::new();
        let mut line = |indent: &str, name: &str, length: Duration, times: usize| {
            let times = if times > 1 { format!("  x {times}") } else { String::new() };
            out += &format!("{:<24}{:>10.3} ms{times}\n", format!("{indent}{name}"), ms(length));
        };
        for (phase, length, times) in wholes {
            line("", &phase.name, length, times);
            if phase.name == "passes" {
                parts.iter().for_each(|(p, length, times)| line("  ", &p.name, *length, *times));
            }
        }
        line("", "total", total, 1);
        out
    }

    /// The phases as a process of a trace: parts lie in what they are parts of.
    pub fn trace(&self) -> Trace {
        let mut trace = Trace::default();
        let mut ordered: Vec<&Phase> = self.phases.iter().collect();
        ordered.sort_by_key(|p| (p.begin, Reverse(p.begin + p.length), p.part));
        let mut open: Vec<u64> = Vec::new();
        let mut slices = Vec::new();
        for p in ordered {
            let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            let (begin, end) = (nanoseconds(p.begin), nanoseconds(p.begin + p.length));
            while open.last().is_some_and(|around| *around <= begin) {
                open.pop();
            }
            let end = open.last().map_or(end, |around| end.min(*around));
            let class = if p.name.starts_with("run") { "run" } else { "compile" };
            let (name, class) = (trace.text(&p.name), trace.text(class));
            let depth = u8::try_from(open.len()).unwrap_or(u8::MAX);
            slices.push(Slice { begin, end, name, class, depth, arguments: Arguments::default() });
            open.push(end);
        }
        let tracks = vec![Track { name: "phases".into(), slices }];
        trace.push(Process { name: "ptoc".into(), picoseconds: 1000, ticks: 1, tick: "", tracks });
        trace
    }
}

/// To the microsecond.
pub fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
}
