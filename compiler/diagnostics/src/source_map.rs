//! The source files of one compilation, and where a byte offset lies in them.

use crate::{FileId, Span};
use line_index::{LineCol, LineIndex, TextSize, WideEncoding};

/// A place in a file as people count: both from 1, the column in Unicode scalars.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in Unicode scalars, from 1.
    pub column: u32,
}

#[derive(Debug)]
struct SourceFile {
    name: String,
    text: String,
    lines: LineIndex,
}

/// Files by [`FileId`]. No lookup panics: unknown files are empty, offsets beyond the end mean the end, and offsets
/// within a character mean its start.
#[derive(Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    /// A longer text is cut here, because offsets are 32 bits. The driver refuses such files before.
    pub const MAX_LEN: usize = u32::MAX as usize - 1;

    /// No files.
    pub fn new() -> SourceMap {
        SourceMap::default()
    }

    /// Adds a file; `name` is what diagnostics call it.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let (name, mut text) = (name.into(), text.into());
        text.truncate(text.floor_char_boundary(SourceMap::MAX_LEN));
        let lines = LineIndex::new(&text);
        self.files.push(SourceFile { name, text, lines });
        FileId(self.files.len() as u32 - 1)
    }

    /// The file of this name, the latest if there are several.
    pub fn find(&self, name: &str) -> Option<FileId> {
        let at = self.files.iter().rposition(|file| file.name == name)?;
        Some(FileId(at as u32))
    }

    /// Every file, in the order of addition.
    pub fn files(&self) -> impl Iterator<Item = FileId> + use<> {
        (0..self.files.len() as u32).map(FileId)
    }

    /// The name under which a file was added; `<unknown>` for none.
    pub fn name(&self, file: FileId) -> &str {
        self.get(file).map_or("<unknown>", |file| &file.name)
    }

    /// The text of a file; empty for none.
    pub fn text(&self, file: FileId) -> &str {
        self.get(file).map_or("", |file| &file.text)
    }

    /// The span within its file's text: ends cut to the length, the start moved down and the end up to a character
    /// boundary.
    pub fn clamp(&self, span: Span) -> Span {
        let text = self.text(span.file);
        let start = text.floor_char_boundary(span.start as usize);
        let end = text.ceil_char_boundary(span.end.max(span.start) as usize);
        Span::new(span.file, start as u32, end as u32)
    }

    /// The text under a span, [clamped](SourceMap::clamp).
    pub fn slice(&self, span: Span) -> &str {
        let span = self.clamp(span);
        &self.text(span.file)[span.range()]
    }

    /// Line and column of a byte offset.
    pub fn position(&self, file: FileId, offset: u32) -> Position {
        let Some(source) = self.get(file) else { return Position { line: 1, column: 1 } };
        let offset = source.text.floor_char_boundary(offset as usize);
        let place = source.lines.line_col(TextSize::new(offset as u32));
        // Only characters of several bytes are gone through.
        let column = source.lines.to_wide(WideEncoding::Utf32, place).map_or(place.col, |wide| wide.col);
        Position { line: place.line + 1, column: column + 1 }
    }

    /// Line and column of the start and of the end of a span.
    pub fn range(&self, span: Span) -> (Position, Position) {
        let span = self.clamp(span);
        (self.position(span.file, span.start), self.position(span.file, span.end))
    }

    /// The byte offset of a position; columns beyond a line mean its end, lines beyond the file its end.
    pub fn offset(&self, file: FileId, position: Position) -> u32 {
        let line = position.line.saturating_sub(1);
        let text = self.line(file, line);
        let column = position.column.saturating_sub(1) as usize;
        let within = text.char_indices().nth(column).map_or(text.len(), |(at, _)| at);
        (self.line_start(file, line) + within) as u32
    }

    /// The text of a line, counted from 0, without its line break; empty beyond the end.
    pub fn line(&self, file: FileId, line: u32) -> &str {
        let (start, end) = (self.line_start(file, line), self.line_start(file, line.saturating_add(1)));
        let text = &self.text(file)[start..end];
        let text = text.strip_suffix('\n').unwrap_or(text);
        text.strip_suffix('\r').unwrap_or(text)
    }

    /// Offset of the first byte of a line, counted from 0; the length of the text for lines beyond the end.
    pub fn line_start(&self, file: FileId, line: u32) -> usize {
        let offset = |source: &SourceFile| source.lines.offset(LineCol { line, col: 0 }).map(usize::from);
        self.get(file).map_or(0, |source| offset(source).unwrap_or(source.text.len()))
    }

    fn get(&self, file: FileId) -> Option<&SourceFile> {
        self.files.get(file.0 as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_scalars() {
        let mut map = SourceMap::new();
        let file = map.add("a.tile", "ab\r\nß漢🦀x\n\nend");
        let at = |offset| {
            let Position { line, column } = map.position(file, offset);
            (line, column)
        };
        assert_eq!(at(0), (1, 1));
        assert_eq!(at(3), (1, 4));
        assert_eq!(at(4), (2, 1));
        assert_eq!(at(6), (2, 2));
        assert_eq!(at(7), (2, 2)); // within a character
        assert_eq!(at(9), (2, 3));
        assert_eq!(at(13), (2, 4));
        assert_eq!(at(15), (3, 1));
        assert_eq!(at(19), (4, 4));
        assert_eq!(at(u32::MAX), (4, 4));
        assert_eq!(map.line(file, 0), "ab");
        assert_eq!(map.line(file, 3), "end");
        assert_eq!(map.line(file, 4), "");
        for offset in [0, 3, 4, 6, 9, 13, 14, 15, 16, 19] {
            let clean = map.line(file, map.position(file, offset).line - 1).len();
            if offset as usize - map.line_start(file, map.position(file, offset).line - 1) <= clean {
                assert_eq!(map.offset(file, map.position(file, offset)), offset);
            }
        }
        assert_eq!(map.offset(file, Position { line: 1, column: 99 }), 2);
        assert_eq!(map.offset(file, Position { line: 99, column: 1 }), 19);
        assert_eq!(map.offset(file, Position { line: 0, column: 0 }), 0);
    }

    #[test]
    fn spans_are_clamped_and_snapped() {
        let mut map = SourceMap::new();
        let file = map.add("a", "x漢y");
        assert_eq!(map.slice(Span::new(file, 2, 3)), "漢");
        assert_eq!(map.slice(Span::new(file, 1, 1)), "");
        assert_eq!(map.slice(Span::new(file, 4, 900)), "y");
        assert_eq!(map.slice(Span::new(file, 800, 900)), "");
        assert_eq!(map.slice(Span { file, start: 4, end: 1 }), "");
        assert_eq!(map.slice(Span::new(FileId(7), 0, 9)), "");
        assert_eq!(map.name(FileId(7)), "<unknown>");
        assert_eq!(map.position(FileId(7), 5), Position { line: 1, column: 1 });
        assert_eq!(map.find("a"), Some(file));
        assert_eq!(map.find("b"), None);
    }
}
