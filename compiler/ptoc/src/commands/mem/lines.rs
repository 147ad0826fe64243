//! Points of a map as lines of the source.

use ptoc_diagnostics::{FileId, SourceMap, Span};
use ptoc_passes::map::MappedTile;
use ptoc_passes::{MemoryMap, liveness::Point};

/// A line of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    /// The file.
    pub file: FileId,
    /// From 1.
    pub number: u32,
}

/// What a map's spans mean, as seen from the kernel's file.
pub(crate) struct Lines<'s> {
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
    pub fn of(&self, span: Span) -> Line {
        Line { file: span.file, number: self.sources.range(span).0.line }
    }

    /// The line of a point: a loop's end for the point where it is left.
    pub fn at(&self, map: &MemoryMap, point: Point) -> Line {
        let span = map.points.get(point as usize).copied().unwrap_or(map.span);
        if map.loops.iter().any(|l| l.range.end == point) {
            return Line { file: span.file, number: self.sources.range(span).1.line };
        }
        self.of(span)
    }

    /// `12`, or `std/act.tile:12` elsewhere.
    pub fn show(&self, line: Line) -> String {
        match line.file == self.home {
            true => line.number.to_string(),
            false => format!("{}:{}", self.sources.name(line.file), line.number),
        }
    }

    /// `12-14`: first write to last read, or to the end of its life if nothing reads it.
    pub fn life(&self, map: &MemoryMap, tile: &MappedTile) -> String {
        let Some(held) = tile.held else { return "unused".into() };
        let first = self.at(map, tile.first_write.unwrap_or(held.start));
        let last = self.at(map, tile.last_read.or(tile.first_write).unwrap_or(held.end));
        match (first == last, first.file == last.file && first.number > last.number) {
            (true, _) => self.show(first),
            // Read in the next iteration of a loop, or in a function that stands above.
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
