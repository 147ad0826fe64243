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

    /// The bytes of a character that are no columns.
    fn lost(self, c: char) -> u32 {
        let columns = match self {
            Encoding::Utf8 => c.len_utf8(),
            Encoding::Utf16 => c.len_utf16(),
            Encoding::Utf32 => 1,
        };
        (c.len_utf8() - columns) as u32
    }
}

/// Where the lines of a text begin, and what in them is not ASCII. A generated text may be one line of megabytes with tokens all
/// along, each of which is asked for its place: no line is walked through.
#[derive(Clone, Debug, Default)]
pub struct LineIndex {
    starts: Vec<usize>,
    /// The characters of several bytes.
    wide: Vec<Wide>,
}

/// A character of several bytes.
#[derive(Clone, Copy, Debug)]
struct Wide {
    start: usize,
    end: usize,
    /// Bytes that are no columns, from the beginning of the text through this character: in UTF-16, and in UTF-32.
    lost: [u32; 2],
}

impl LineIndex {
    /// The index of a text. Lines end with `\n`, `\r\n` or `\r`.
    pub fn new(text: &str) -> LineIndex {
        let bytes = text.as_bytes();
        let ends =
            (0..bytes.len()).filter(|&i| bytes[i] == b'\n' || (bytes[i] == b'\r' && bytes.get(i + 1) != Some(&b'\n')));
        let starts: Vec<usize> = std::iter::once(0).chain(ends.map(|i| i + 1)).collect();
        let mut wide = Vec::new();
        let mut lost = [0, 0];
        if !text.is_ascii() {
            for (start, c) in text.char_indices().filter(|(_, c)| !c.is_ascii()) {
                lost = [lost[0] + Encoding::Utf16.lost(c), lost[1] + Encoding::Utf32.lost(c)];
                wide.push(Wide { start, end: start + c.len_utf8(), lost });
            }
        }
        LineIndex { starts, wide }
    }

    /// The bytes before `offset` that are no columns, of the characters that end there or before.
    fn lost(&self, offset: usize, encoding: Encoding) -> usize {
        let before = self.wide.partition_point(|w| w.end <= offset);
        before.checked_sub(1).map_or(0, |last| self.wide[last].lost(encoding))
    }

    /// The byte at a position. A column behind the end of its line is the line's end, a line behind the last one the text's
    /// end, as the protocol wants it; a column inside of a character is the character's first.
    pub fn offset(&self, text: &str, at: Position, encoding: Encoding) -> usize {
        let Some(&start) = self.starts.get(at.line as usize) else { return text.len() };
        let end = self.starts.get(at.line as usize + 1).copied().unwrap_or(text.len());
        let line = text[start..end].trim_end_matches(['\n', '\r']);
        // The characters of the line that begin at this column or before it.
        let first = self.wide.partition_point(|w| w.start < start);
        let in_line = &self.wide[first..];
        let before = first.checked_sub(1).map_or(0, |last| self.wide[last].lost(encoding));
        let column = at.character as usize;
        let passed = in_line.partition_point(|w| w.end <= end && w.end - start - (w.lost(encoding) - before) <= column);
        let lost = passed.checked_sub(1).map_or(0, |last| in_line[last].lost(encoding) - before);
        let offset = start + (column + lost).min(line.len());
        // Inside of a character.
        in_line.get(passed).filter(|w| w.start < offset).map_or(offset, |w| w.start)
    }

    /// The position of a byte.
    pub fn position(&self, text: &str, offset: usize, encoding: Encoding) -> Position {
        let offset = text.floor_char_boundary(offset);
        let line = self.starts.partition_point(|&start| start <= offset) - 1;
        let start = self.starts[line];
        let column = offset - start - (self.lost(offset, encoding) - self.lost(start, encoding));
        Position { line: line as u32, character: column as u32 }
    }

    /// The bytes of a range; empty at its start if its ends are the wrong way round.
    pub fn bytes(&self, text: &str, range: &Range, encoding: Encoding) -> ops::Range<usize> {
        let start = self.offset(text, range.start, encoding);
        start..self.offset(text, range.end, encoding).max(start)
    }
}

impl Wide {
    fn lost(&self, encoding: Encoding) -> usize {
        match encoding {
            Encoding::Utf8 => 0,
            Encoding::Utf16 => self.lost[0] as usize,
            Encoding::Utf32 => self.lost[1] as usize,
        }
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
        // So they do where not everything is ASCII.
        let text = "\u{1F600}(\u{e9}".repeat(1 << 17);
        for (encoding, wide) in [(Encoding::Utf8, 7), (Encoding::Utf16, 4), (Encoding::Utf32, 3)] {
            let index = LineIndex::new(&text);
            for n in 0..text.len() / 7 {
                let at = index.position(&text, 7 * n, encoding);
                assert_eq!((at.character as usize, index.offset(&text, at, encoding)), (wide * n, 7 * n));
            }
        }
        assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
    }

    /// Every column of every line, also those inside of characters and behind the end, against a walk through the line.
    #[test]
    fn columns_are_those_of_a_walk_through_the_line() {
        let text = "a\u{e9}\u{1F600}\u{20ac}b\r\n\u{1F600}\u{1F600}x\n\nplain\rz\u{e9}";
        let index = LineIndex::new(text);
        let lines = text.split_inclusive('\n').flat_map(|l| match l.split_once('\r') {
            Some((a, b)) if b != "\n" => vec![a, b],
            _ => vec![l],
        });
        for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
            for (n, line) in lines.clone().enumerate() {
                let (line, start) = (line.trim_end_matches(['\r', '\n']), index.starts[n]);
                for column in 0..20 {
                    let (mut at, mut left) = (start, column);
                    for c in line.chars() {
                        let width = c.len_utf8() - encoding.lost(c) as usize;
                        if width > left {
                            break;
                        }
                        (at, left) = (at + c.len_utf8(), left - width);
                    }
                    let position = Position { line: n as u32, character: column as u32 };
                    assert_eq!(index.offset(text, position, encoding), at, "{n}:{column} {encoding:?}");
                }
            }
        }
    }

    #[test]
    fn positions_outside_are_moved_inside() {
        let text = "a\u{1F600}\nb";
        let index = LineIndex::new(text);
        let offset = |line, character| index.offset(text, Position { line, character }, Encoding::Utf16);
        assert_eq!([offset(0, 2), offset(0, 9), offset(1, 9), offset(7, 0)], [1, 5, 7, 7]);
    }
}
