//! Places in a text as the protocol counts them: lines from 0, columns in units of the encoding that was agreed on.

use lsp_types::{Position, PositionEncodingKind, Range};
use std::ops;

/// What a column counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// 16-bit units: what every client knows.
    #[default]
    Utf16,
    /// Unicode scalars.
    Utf32,
}

impl Encoding {
    /// The first one that both sides know, in the client's order.
    pub fn agree(offered: &[PositionEncodingKind]) -> Encoding {
        let known = offered.iter().find_map(|kind| match kind {
            PositionEncodingKind::UTF8 => Some(Encoding::Utf8),
            PositionEncodingKind::UTF16 => Some(Encoding::Utf16),
            PositionEncodingKind::UTF32 => Some(Encoding::Utf32),
            PositionEncodingKind::Custom(_) => None,
        });
        known.unwrap_or_default()
    }

    /// Its name in the protocol.
    pub fn kind(self) -> PositionEncodingKind {
        match self {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
            Encoding::Utf32 => PositionEncodingKind::UTF32,
        }
    }

    fn width(self, c: char) -> usize {
        match self {
            Encoding::Utf8 => c.len_utf8(),
            Encoding::Utf16 => c.len_utf16(),
            Encoding::Utf32 => 1,
        }
    }

    /// The columns of a part of a line.
    fn columns(self, part: &str) -> usize {
        if self == Encoding::Utf8 {
            return part.len();
        }
        let count = |of: fn(u8) -> bool| part.bytes().filter(|b| of(*b)).count();
        // Every character has one byte that goes on with none; those of two units have four bytes.
        let characters = count(|b| b & 0xc0 != 0x80);
        if self == Encoding::Utf16 { characters + count(|b| b >= 0xf0) } else { characters }
    }
}

/// Where the lines of a text begin.
#[derive(Clone, Debug, Default)]
pub struct LineIndex {
    starts: Vec<usize>,
    /// Which lines are ASCII: there, columns are bytes. A generated text may be one line of megabytes with tokens all along, each
    /// of which is asked for its place.
    plain: Vec<bool>,
}

impl LineIndex {
    /// The index of a text. Lines end with `\n`, `\r\n` or `\r`.
    pub fn new(text: &str) -> LineIndex {
        let bytes = text.as_bytes();
        let ends =
            (0..bytes.len()).filter(|&i| bytes[i] == b'\n' || (bytes[i] == b'\r' && bytes.get(i + 1) != Some(&b'\n')));
        let starts: Vec<usize> = std::iter::once(0).chain(ends.map(|i| i + 1)).collect();
        let ends = starts[1..].iter().copied().chain([bytes.len()]);
        let plain = starts.iter().zip(ends).map(|(&start, end)| bytes[start..end].is_ascii()).collect();
        LineIndex { starts, plain }
    }

    /// The byte at a position. A column behind the end of its line is the line's end, a line behind the last one the text's
    /// end, as the protocol wants it; a column inside of a character is the character's first.
    pub fn offset(&self, text: &str, at: Position, encoding: Encoding) -> usize {
        let Some(&start) = self.starts.get(at.line as usize) else { return text.len() };
        let end = self.starts.get(at.line as usize + 1).copied().unwrap_or(text.len());
        let line = text[start..end].trim_end_matches(['\n', '\r']);
        if encoding == Encoding::Utf8 || self.plain[at.line as usize] {
            return start + line.floor_char_boundary((at.character as usize).min(line.len()));
        }
        let mut column = 0;
        for (i, c) in line.char_indices() {
            column += encoding.width(c);
            if column > at.character as usize {
                return start + i;
            }
        }
        start + line.len()
    }

    /// The position of a byte.
    pub fn position(&self, text: &str, offset: usize, encoding: Encoding) -> Position {
        let offset = text.floor_char_boundary(offset);
        let line = self.starts.partition_point(|&start| start <= offset) - 1;
        let start = self.starts[line];
        let column = if self.plain[line] { offset - start } else { encoding.columns(&text[start..offset]) };
        Position { line: line as u32, character: column as u32 }
    }

    /// The bytes of a range; empty at its start if its ends are the wrong way round.
    pub fn bytes(&self, text: &str, range: &Range, encoding: Encoding) -> ops::Range<usize> {
        let start = self.offset(text, range.start, encoding);
        start..self.offset(text, range.end, encoding).max(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_position_in_every_encoding() {
        let text = "ab\u{e9}\u{1F600}x\r\n\n\rend\u{20ac}";
        let index = LineIndex::new(text);
        assert_eq!(index.starts.len(), 4);
        for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
            for (offset, c) in text.char_indices().filter(|(_, c)| !matches!(c, '\n' | '\r')) {
                let at = index.position(text, offset, encoding);
                assert_eq!(index.offset(text, at, encoding), offset, "{c} {encoding:?}");
            }
        }
        let columns = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32].map(|e| index.position(text, 8, e).character);
        assert_eq!(columns, [8, 5, 4]);
    }

    /// Places all along a line that is as long as a large file.
    #[test]
    fn long_lines_take_no_time() {
        let begin = std::time::Instant::now();
        let text = format!("\u{e9}{}", "(".repeat(1 << 20));
        for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
            let ascii = &text[2..];
            let index = LineIndex::new(ascii);
            for offset in (0..ascii.len()).step_by(64) {
                let at = index.position(ascii, offset, encoding);
                assert_eq!((at.character as usize, index.offset(ascii, at, encoding)), (offset, offset));
            }
        }
        assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
        let index = LineIndex::new(&text);
        assert_eq!(index.position(&text, 1000, Encoding::Utf16).character, 999);
        assert_eq!(index.offset(&text, Position { line: 0, character: 999 }, Encoding::Utf16), 1000);
    }

    #[test]
    fn positions_outside_are_moved_inside() {
        let text = "a\u{1F600}\nb";
        let index = LineIndex::new(text);
        let offset = |line, character| index.offset(text, Position { line, character }, Encoding::Utf16);
        assert_eq!([offset(0, 2), offset(0, 9), offset(1, 9), offset(7, 0)], [1, 5, 7, 7]);
    }
}
