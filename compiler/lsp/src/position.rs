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

/// Where the lines of a text begin, and what in them is not ASCII. A generated text may be one line of megabytes with
/// tokens all along, each of which is asked for its place: no line is walked through.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineIndex {
    starts: Vec<usize>,
    /// The characters of several bytes.
    wide: Vec<Wide>,
}

/// A character of several bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Wide {
    start: usize,
    end: usize,
    /// Its bytes that are no columns: in UTF-16, and in UTF-32.
    own: [u32; 2],
    /// The same from the beginning of the text through this character.
    lost: [u32; 2],
}

/// Where lines begin behind ends of lines that stand in these bytes.
fn starts(text: &str, from: usize, to: usize) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    let ends = move |i: &usize| bytes[*i] == b'\n' || (bytes[*i] == b'\r' && bytes.get(i + 1) != Some(&b'\n'));
    (from..to).filter(ends).map(|i| i + 1)
}

/// Characters of several bytes in a text that begins there.
fn wide(text: &str, at: usize) -> impl Iterator<Item = Wide> {
    let all = if text.is_ascii() { "" } else { text };
    all.char_indices().filter(|(_, c)| !c.is_ascii()).map(move |(start, c)| Wide {
        start: at + start,
        end: at + start + c.len_utf8(),
        own: [Encoding::Utf16.lost(c), Encoding::Utf32.lost(c)],
        lost: [0, 0],
    })
}

impl LineIndex {
    /// The index of a text. Lines end with `\n`, `\r\n` or `\r`.
    pub fn new(text: &str) -> LineIndex {
        let mut index = LineIndex { starts: vec![0], wide: Vec::new() };
        index.starts.extend(starts(text, 0, text.len()));
        index.wide.extend(wide(text, 0));
        index.count(0);
        index
    }

    /// Follows an edit: the bytes `old` of the text before have become `new`, and now it is `text`. Lines that are not
    /// touched are not looked at: one message may have thousands of edits.
    pub fn edit(&mut self, old: ops::Range<usize>, new: &str, text: &str) {
        // Added with overflow, this is a difference.
        let more = new.len().wrapping_sub(old.len());
        // The line before the edit may end otherwise now: `\r` goes on with `\n`.
        let first = self.starts.partition_point(|&start| start <= old.start).saturating_sub(2);
        let last = self.starts.partition_point(|&start| start <= old.end);
        let end = self.starts.get(last).map_or(text.len(), |next| next.wrapping_add(more) - 1);
        let found: Vec<usize> = starts(text, self.starts[first], end).collect();
        let behind = first + 1 + found.len();
        self.starts.splice(first + 1..last, found);
        self.starts[behind..].iter_mut().for_each(|start| *start = start.wrapping_add(more));
        let from = self.wide.partition_point(|w| w.start < old.start);
        let to = self.wide.partition_point(|w| w.start < old.end);
        let found: Vec<Wide> = wide(new, old.start).collect();
        let (behind, same) = (from + found.len(), from == to && found.is_empty());
        self.wide.splice(from..to, found);
        for w in &mut self.wide[behind..] {
            (w.start, w.end) = (w.start.wrapping_add(more), w.end.wrapping_add(more));
        }
        if !same {
            self.count(from);
        }
    }

    /// Adds up what is lost, from the n-th wide character on.
    fn count(&mut self, from: usize) {
        let mut lost = from.checked_sub(1).map_or([0, 0], |last| self.wide[last].lost);
        for w in &mut self.wide[from..] {
            lost = [lost[0] + w.own[0], lost[1] + w.own[1]];
            w.lost = lost;
        }
    }

    /// The bytes before `offset` that are no columns, of the characters that end there or before.
    fn lost(&self, offset: usize, encoding: Encoding) -> usize {
        let before = self.wide.partition_point(|w| w.end <= offset);
        before.checked_sub(1).map_or(0, |last| self.wide[last].lost(encoding))
    }

    /// The byte at a position. A column behind the end of its line is the line's end, a line behind the last one the
    /// text's end, as the protocol wants it; a column inside of a character is the character's first.
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
    fn edits_are_followed() {
        const PIECES: [&str; 12] =
            ["", "", "a", "\n", "\r", "\r\n", "\u{e9}", "\u{1F600}x", "b\n\rc", "\n\n", "\r\r", "long line\u{20ac}"];
        let mut seed = 3u64;
        let mut draw = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % n
        };
        let mut text = String::new();
        let mut index = LineIndex::new(&text);
        for _ in 0..20_000 {
            let from = text.floor_char_boundary(draw(text.len() + 1));
            let to = text.floor_char_boundary((from + draw(7)).min(text.len())).max(from);
            let new = PIECES[draw(PIECES.len())];
            let before = text.clone();
            text.replace_range(from..to, new);
            index.edit(from..to, new, &text);
            assert_eq!(index, LineIndex::new(&text), "{before:?} {from}..{to} {new:?}");
            if text.len() > 60 {
                text.clear();
                index = LineIndex::new("");
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
