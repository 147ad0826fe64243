//! Timelines: processes with tracks of slices, written as Chrome trace events or in Perfetto's own format.
//!
//! A run can have millions of commands, and viewers take some hundred megabytes at best. So a trace that is written
//! has a bounded number of slices ([`bounded`]): on tracks with too many, what lies within a short stretch of time
//! becomes one slice, which says how many of what it stands for.

#![forbid(unsafe_code)]

mod bounded;
mod chrome;
mod perfetto;

use rustc_hash::FxHashMap;
use std::path::Path;

/// How a trace is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Chrome's trace events, JSON.
    Chrome,
    /// Packets of Perfetto, protobuf.
    Perfetto,
}

impl Format {
    /// By the name of the file: `.perfetto-trace` and `.pftrace` are Perfetto's, all others JSON.
    pub fn of(path: &Path) -> Format {
        match path.extension().and_then(|e| e.to_str()) {
            Some("perfetto-trace" | "pftrace") => Format::Perfetto,
            _ => Format::Chrome,
        }
    }

    /// Slices that a file has at most: less than 20 MB in either format.
    pub fn most_slices(self) -> usize {
        match self {
            Format::Chrome => 100_000,
            Format::Perfetto => 300_000,
        }
    }
}

/// A text that is stored once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Text(u32);

/// The arguments of a slice; the first are those without any.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arguments(u32);

/// The value of an argument.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A number.
    Number(u64),
    /// A text; none is null.
    Text(Option<String>),
}

/// Something that took time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    /// First tick.
    pub begin: u64,
    /// The tick at which it ends.
    pub end: u64,
    /// What it was.
    pub name: Text,
    /// What slices like it are called together: `RD` of `RD column 5`.
    pub class: Text,
    /// Slices that enclose it on its track.
    pub depth: u8,
    /// More about it.
    pub arguments: Arguments,
}

/// A row of slices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Track {
    /// Its name.
    pub name: String,
    /// By begin, an enclosing slice before those in it. Slices of one depth do not overlap.
    pub slices: Vec<Slice>,
}

/// Tracks that belong together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// Picoseconds of so many ticks.
    pub picoseconds: u64,
    /// Ticks of so many picoseconds.
    pub ticks: u64,
    /// What a tick is called in arguments: `tick`, `cycle`; empty where times are no ticks.
    pub tick: &'static str,
    /// From top to bottom.
    pub tracks: Vec<Track>,
}

impl Process {
    /// Nanoseconds of a tick, rounded down, as the formats have them.
    fn ns(&self, tick: u64) -> u64 {
        let ns = u128::from(tick) * u128::from(self.picoseconds) / (1000 * u128::from(self.ticks.max(1)));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// A timeline.
#[derive(Clone, Debug)]
pub struct Trace {
    processes: Vec<Process>,
    texts: Vec<String>,
    numbers: FxHashMap<String, Text>,
    arguments: Vec<Vec<(&'static str, Value)>>,
}

impl Default for Trace {
    fn default() -> Trace {
        let (texts, numbers) = (vec![String::new()], FxHashMap::from_iter([(String::new(), Text(0))]));
        Trace { processes: Vec::new(), texts, numbers, arguments: vec![Vec::new()] }
    }
}

impl Trace {
    /// The number of a text.
    pub fn text(&mut self, text: &str) -> Text {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = Text(u32::try_from(self.texts.len()).expect("four thousand million texts do not fit in memory"));
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    /// The text of a number.
    pub fn name(&self, text: Text) -> &str {
        self.texts.get(text.0 as usize).map_or("", String::as_str)
    }

    /// Arguments of a slice.
    pub fn arguments(&mut self, list: Vec<(&'static str, Value)>) -> Arguments {
        let number = u32::try_from(self.arguments.len()).expect("a trace has fewer slices");
        self.arguments.push(list);
        Arguments(number)
    }

    fn arguments_of(&self, slice: &Slice) -> &[(&'static str, Value)] {
        self.arguments.get(slice.arguments.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// The arguments of a slice with its first tick, if times are ticks.
    fn all_arguments(&self, process: &Process, slice: &Slice) -> impl Iterator<Item = (&'static str, Value)> {
        let tick = (!process.tick.is_empty()).then_some((process.tick, Value::Number(slice.begin)));
        tick.into_iter().chain(self.arguments_of(slice).iter().cloned())
    }

    /// A process below those that there are.
    pub fn push(&mut self, process: Process) {
        self.processes.push(process);
    }

    /// All processes of another trace, below these.
    pub fn append(&mut self, other: Trace) {
        let texts: Vec<Text> = other.texts.iter().map(|text| self.text(text)).collect();
        let base = self.arguments.len() as u32;
        self.arguments.extend(other.arguments);
        for mut process in other.processes {
            for slice in process.tracks.iter_mut().flat_map(|track| &mut track.slices) {
                (slice.name, slice.class) = (texts[slice.name.0 as usize], texts[slice.class.0 as usize]);
                slice.arguments.0 += base;
            }
            self.processes.push(process);
        }
    }

    /// The processes.
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// How many slices there are.
    pub fn slices(&self) -> usize {
        self.processes.iter().flat_map(|p| &p.tracks).map(|t| t.slices.len()).sum()
    }

    /// The file, with at most so many slices.
    pub fn file(self, format: Format, most: usize) -> Vec<u8> {
        let (trace, note) = bounded::bounded(self, most);
        match format {
            Format::Chrome => chrome::json(&trace, note.as_deref()).into_bytes(),
            Format::Perfetto => perfetto::packets(&trace, note.as_deref()),
        }
    }

    /// The file with as many slices as a file of this format has.
    pub fn write(self, format: Format) -> Vec<u8> {
        self.file(format, format.most_slices())
    }
}
