//! Points of a map as lines of the source.

use ptoc_diagnostics::{FileId, SourceMap, Span};
use ptoc_placement::MemoryMap;
use ptoc_placement::liveness::Point;
use ptoc_placement::map::MappedTile;

/// A line of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapLine {
    /// The file.
    pub file: FileId,
    /// From 1.
    pub number: u32,
}

/// What a map's spans mean, as seen from the kernel's file.
#[derive(Debug)]
pub struct Lines<'s> {
    /// All texts.
    pub sources: &'s SourceMap,
    /// The kernel's file: its name is not repeated.
    pub home: FileId,
}

impl<'s> Lines<'s> {
    /// Lines for a kernel of the file `home`.
    pub fn new(sources: &'s SourceMap, home: FileId) -> Lines<'s> {
        Lines { sources, home }
    }

    /// The line where `span` begins.
    pub fn of(&self, span: Span) -> MapLine {
        MapLine { file: span.file, number: self.sources.range(span).0.line }
    }

    /// The line of a point: a loop's end for the point where it is left.
    pub fn at(&self, map: &MemoryMap, point: Point) -> MapLine {
        let span = map.points.get(point as usize).copied().unwrap_or(map.span);
        if map.loops.iter().any(|l| l.range.end == point) {
            return MapLine { file: span.file, number: self.sources.range(span).1.line };
        }
        self.of(span)
    }

    /// `12`, or `std/act.tile:12` elsewhere.
    pub fn show(&self, line: MapLine) -> String {
        match line.file == self.home {
            true => line.number.to_string(),
            false => format!("{}:{}", self.sources.name(line.file), line.number),
        }
    }

    /// The line of the call that brought a point into the kernel, if it is in a function.
    pub fn call(&self, map: &MemoryMap, point: Point) -> Option<MapLine> {
        map.calls.get(point as usize).copied().flatten().map(|span| self.of(span))
    }

    /// `12`, or `20 (12)` for line 12 of a function that line 20 calls.
    pub fn place(&self, map: &MemoryMap, point: Point) -> String {
        let line = self.show(self.at(map, point));
        match self.call(map, point) {
            Some(call) => format!("{} ({line})", self.show(call)),
            None => line,
        }
    }

    /// `12-14`: first write to last read, or to the end of its life if nothing reads it. `20 (12-14)` is in a function
    /// that line 20 calls.
    pub fn life(&self, map: &MemoryMap, tile: &MappedTile) -> String {
        let Some(held) = tile.held else { return "unused".into() };
        let start = tile.first_write.unwrap_or(held.start);
        let end = tile.last_read.or(tile.first_write).unwrap_or(held.end);
        match (self.call(map, start), self.call(map, end)) {
            (None, None) => self.range(map, start, end),
            (Some(a), Some(b)) if a == b => format!("{} ({})", self.show(a), self.range(map, start, end)),
            _ => format!("{} to {}", self.place(map, start), self.place(map, end)),
        }
    }

    fn range(&self, map: &MemoryMap, start: Point, end: Point) -> String {
        let (first, last) = (self.at(map, start), self.at(map, end));
        match (first == last, first.file == last.file && first.number > last.number) {
            (true, _) => self.show(first),
            // Read in the next iteration of a loop.
            (_, true) => format!("{}, {}", self.show(first), self.show(last)),
            _ if first.file == last.file && first.file != self.home => {
                format!("{}-{}", self.show(first), last.number)
            }
            _ => format!("{}-{}", self.show(first), self.show(last)),
        }
    }

    /// The source of a span as one line.
    pub fn text(&self, span: Span) -> String {
        self.sources.slice(span).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// What a tile is called: its name, or the expression that a hidden one is for.
    pub fn title(&self, tile: &MappedTile) -> String {
        let text = if tile.hidden { self.text(tile.span) } else { String::new() };
        match text.is_empty() {
            true => tile.name.to_string(),
            false => text,
        }
    }
}

/// At most `width` characters, the last of them a sign that there were more.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

/// `96 KiB` where that is exact, else bytes.
pub(crate) fn bytes(n: u64) -> String {
    match n {
        0 => "0 bytes".into(),
        n if n % (1 << 20) == 0 => format!("{} MiB", n >> 20),
        n if n % (1 << 10) == 0 => format!("{} KiB", n >> 10),
        n => format!("{n} bytes"),
    }
}

/// Whole percents, rounded up: what is used is never shown as less.
pub(crate) fn percent(part: u64, whole: u64) -> u64 {
    u64::try_from((u128::from(part) * 100).div_ceil(u128::from(whole.max(1)))).unwrap_or(u64::MAX)
}
