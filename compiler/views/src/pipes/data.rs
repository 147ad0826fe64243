//! The first block as JSON, which the page's script draws. Lists of numbers are flat and have differences of times, so
//! that a hundred thousand instructions are two megabytes.

use super::{PipeRun, cause};
use ptoc_diagnostics::{FileId, SourceMap, Span};
use ptoc_interp::Moment;
use ptoc_isa::Pipe;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::hash::Hash;

/// Numbers of different things, in the order in which they come up.
struct Interner<T> {
    all: Vec<T>,
    numbers: HashMap<T, usize>,
}

impl<T: Clone + Eq + Hash> Interner<T> {
    fn new() -> Interner<T> {
        Interner { all: Vec::new(), numbers: HashMap::new() }
    }

    fn number(&mut self, of: T) -> usize {
        *self.numbers.entry(of.clone()).or_insert_with(|| {
            self.all.push(of);
            self.all.len() - 1
        })
    }
}

/// Lines that something stems from, and their files.
pub(super) struct Places<'s> {
    sources: &'s SourceMap,
    lines: Interner<(FileId, u32)>,
    files: Interner<FileId>,
}

impl<'s> Places<'s> {
    pub fn new(sources: &'s SourceMap) -> Places<'s> {
        Places { sources, lines: Interner::new(), files: Interner::new() }
    }

    /// File and line of a statement.
    pub fn line(&self, span: Span) -> (FileId, u32) {
        (span.file, self.sources.position(span.file, span.start).line)
    }

    /// The number of the line of a statement.
    pub fn number(&mut self, span: Span) -> usize {
        self.files.number(span.file);
        let line = self.line(span);
        self.lines.number(line)
    }

    /// The id of a line in the listing.
    pub fn id(&self, place: usize) -> String {
        let (file, line) = self.lines.all[place];
        let file = self.files.numbers.get(&file).copied().unwrap_or(0);
        format!("F{file}L{line}")
    }

    /// `file.tile:12`
    pub fn label(&self, place: usize) -> String {
        let (file, line) = self.lines.all[place];
        format!("{}:{line}", self.sources.name(file))
    }

    /// Files that came up, with their names and texts.
    pub fn files(&self) -> impl Iterator<Item = (FileId, &str, &str)> {
        self.files.all.iter().map(|file| (*file, self.sources.name(*file), self.sources.text(*file)))
    }
}

/// Numbers of a lane, and the time that the next is given from.
#[derive(Default)]
struct Column {
    numbers: Vec<u64>,
    last: u64,
}

impl Column {
    /// Items come by their begin.
    fn push(&mut self, begin: u64, more: &[u64]) {
        self.numbers.push(begin - self.last);
        self.numbers.extend(more);
        self.last = begin;
    }
}

/// What the script has of a launch.
pub(super) fn of(run: &PipeRun<'_>, places: &mut Places<'_>) -> Value {
    let first = &run.timing.first;
    let lanes = lanes(run);
    let at = |role: u32, pipe: Pipe| lanes.iter().position(|lane| *lane == (role, pipe)).unwrap_or(0);
    let (mut names, mut causes, mut events) = (Interner::new(), Interner::new(), Interner::new());
    let mut slices: Vec<Column> = lanes.iter().map(|_| Column::default()).collect();
    for s in &first.slices {
        let (name, place) = (names.number(s.name) as u64, places.number(s.span) as u64);
        slices[at(s.role, s.pipe)].push(s.begin, &[s.free - s.begin, s.end.saturating_sub(s.free), name, place]);
    }
    let mut stalls: Vec<Column> = lanes.iter().map(|_| Column::default()).collect();
    let mut in_order: Vec<_> = first.stalls.iter().collect();
    in_order.sort_by_key(|s| s.begin);
    for s in in_order {
        let (why, place) = (causes.number(s.cause) as u64, places.number(s.span) as u64);
        stalls[at(s.role, s.pipe)].push(s.begin, &[s.end - s.begin, why, place]);
    }
    let mut signals = Column::default();
    let mut in_order: Vec<_> = first.signals.iter().collect();
    in_order.sort_by_key(|s| s.set.cycle);
    for s in in_order {
        let event = events.number(s.event) as u64;
        let lane = |m: &Moment| at(m.role, m.pipe) as u64;
        let (from, to) = (places.number(s.set.span) as u64, places.number(s.wait.span) as u64);
        signals.push(s.set.cycle, &[s.wait.cycle - s.set.cycle, lane(&s.set), lane(&s.wait), event, from, to]);
    }
    let name = |event: &ptoc_interp::EventElement| match run.events.get(event.event as usize) {
        Some((name, true)) => format!("{name}[{}]", event.element),
        Some((name, false)) => name.clone(),
        None => String::new(),
    };
    let lanes: Vec<Value> = lanes
        .iter()
        .zip(slices.iter().zip(&stalls))
        .map(|((role, pipe), (slices, stalls))| {
            json!({"role": run.role(*role), "pipe": pipe.name(), "slices": slices.numbers, "stalls": stalls.numbers})
        })
        .collect();
    let ids: Vec<Value> = (0..places.lines.all.len()).map(|n| json!([places.id(n), places.label(n)])).collect();
    json!({
        "cycles": first.cycles, "clock": run.timing.clock, "lanes": lanes, "names": names.all,
        "causes": causes.all.iter().map(|c| json!([kind(*c), cause(*c)])).collect::<Vec<_>>(),
        "events": events.all.iter().map(name).collect::<Vec<_>>(), "signals": signals.numbers, "places": ids,
    })
}

/// The colour of a stall.
fn kind(cause: ptoc_interp::Cause) -> &'static str {
    match cause {
        ptoc_interp::Cause::Event(_) => "event",
        ptoc_interp::Cause::Barrier => "barrier",
        ptoc_interp::Cause::Issue => "issue",
        ptoc_interp::Cause::Unit => "unit",
    }
}

/// Role and pipe of each lane: those that do something, wait or are waited for.
fn lanes(run: &PipeRun<'_>) -> Vec<(u32, Pipe)> {
    let first = &run.timing.first;
    let ends = first.signals.iter().flat_map(|s| [&s.set, &s.wait]).map(|m| (m.role, m.pipe));
    let mut all: Vec<(u32, Pipe)> = first.slices.iter().map(|s| (s.role, s.pipe)).chain(ends).collect();
    all.extend(first.stalls.iter().map(|s| (s.role, s.pipe)));
    all.sort_unstable();
    all.dedup();
    all
}
