//! Source text and prose made fit for a terminal.

/// Columns between tab stops.
const TAB: usize = 4;

/// What is printed for a character of the user's: control characters, line separators and invisible or
/// direction-changing ones become visible, so that no input can move the cursor or hide what it says.
pub(super) fn visible(c: char) -> char {
    match c {
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        '\u{80}'..='\u{9f}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' => '\u{fffd}',
        '\u{2066}'..='\u{2069}' | '\u{feff}' => '\u{fffd}',
        c => c,
    }
}

/// A message with everything but line breaks made [`visible`].
pub(super) fn printable(text: &str) -> String {
    text.chars().filter(|&c| c != '\r').map(|c| if c == '\n' { c } else { visible(c) }).collect()
}

/// Columns that a character takes, roughly; only layout decisions depend on it, never alignment.
pub(super) fn columns(c: char) -> usize {
    match c as u32 {
        0x300..=0x36f | 0x200c..=0x200d | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f => 2,
        0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// A source line as it is shown, and where its bytes went.
pub(super) struct ShownLine {
    /// The text: tabs expanded, everything [`visible`], far parts of a long line replaced by `…`.
    pub text: String,
    /// For each byte offset of what was looked at, its end included, the offset in `text`.
    map: Vec<usize>,
    /// The parts of the original that were looked at: first byte, one past the last.
    parts: Vec<(usize, usize)>,
}

impl ShownLine {
    /// The offset in `text` of a byte offset in the original line.
    pub fn at(&self, offset: usize) -> usize {
        self.map[within(&self.parts, offset).min(self.map.len() - 1)]
    }
}

/// Bytes of a line that are looked at on either side of a point, for each column that is shown.
const NEAR: usize = 8;

/// The offset of a byte of a line where only these parts of it stay; of one that does not, that of the next part.
fn within(parts: &[(usize, usize)], offset: usize) -> usize {
    let mut before = 0;
    for &(start, end) in parts {
        if offset < end {
            return before + offset.saturating_sub(start);
        }
        before += end - start;
    }
    before
}

/// The parts of a line that may be shown: all of one that is not long, else what is near the points.
fn near(line: &str, points: &[usize], width: usize) -> Vec<(usize, usize)> {
    let reach = NEAR * width.max(24);
    if line.len() <= 4 * reach {
        return vec![(0, line.len())];
    }
    let mut points: Vec<usize> = points.iter().map(|p| (*p).min(line.len())).collect();
    points.sort_unstable();
    let mut out: Vec<(usize, usize)> = Vec::new();
    for point in if points.is_empty() { vec![0] } else { points } {
        let start = line.floor_char_boundary(point.saturating_sub(reach));
        let end = line.ceil_char_boundary((point + reach).min(line.len()));
        match out.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => out.push((start, end)),
        }
    }
    out
}

/// Prepares a line for a width of `width` columns. Of a line that is longer, the surroundings of `points` (byte
/// offsets) stay.
pub(super) fn show_line(line: &str, points: &[usize], width: usize) -> ShownLine {
    // Of a line that goes on for pages, only that is gone through.
    let parts = near(line, points, width);
    let points: Vec<usize> = points.iter().map(|p| within(&parts, *p)).collect();
    let line: String = parts.iter().map(|&(start, end)| &line[start..end]).collect();
    let (line, points) = (line.as_str(), &points[..]);
    crate::work(line.len());
    // Each character with its offset and the columns it starts at and takes.
    let mut column = 0;
    let mut cells = Vec::new();
    for (offset, c) in line.char_indices() {
        let takes = if c == '\t' { TAB - column % TAB } else { columns(c) };
        cells.push((offset, c, column, takes));
        column += takes;
    }
    let windows = (column > width).then(|| windows(&cells, points, column, width));
    let kept = |column: usize| windows.as_ref().is_none_or(|w| w.iter().any(|&(lo, hi)| (lo..hi).contains(&column)));
    let mut shown = ShownLine { text: String::new(), map: Vec::with_capacity(line.len() + 1), parts };
    let mut in_gap = false;
    for (offset, c, column, takes) in cells {
        let keep = kept(column);
        if !keep && !in_gap {
            shown.text.push('…');
        }
        in_gap = !keep;
        // Offsets within a gap mean its end, offsets within a character its start.
        shown.map.resize(offset + c.len_utf8(), shown.text.len());
        match c {
            _ if !keep => {}
            '\t' => shown.text.push_str(&" ".repeat(takes)),
            _ => shown.text.push(visible(c)),
        }
    }
    shown.map.push(shown.text.len());
    shown
}

/// The column ranges of a long line that stay: equal shares of `width` around the points.
fn windows(cells: &[(usize, char, usize, usize)], points: &[usize], total: usize, width: usize) -> Vec<(usize, usize)> {
    let column = |point: usize| {
        let after = cells.partition_point(|&(offset, ..)| offset <= point);
        if point >= cells.last().map_or(0, |&(offset, c, ..)| offset + c.len_utf8()) {
            total
        } else {
            cells.get(after.saturating_sub(1)).map_or(0, |cell| cell.2)
        }
    };
    let mut at: Vec<usize> = points.iter().map(|&point| column(point)).collect();
    if at.is_empty() {
        at.push(0);
    }
    at.sort_unstable();
    // Points of one neighbourhood share a window.
    at.dedup_by(|b, a| *b - *a < 16);
    let share = (width / at.len()).max(24).saturating_sub(2);
    let mut windows: Vec<(usize, usize)> = Vec::new();
    for point in at {
        let end = (point.saturating_sub(share / 2) + share).min(total + 1);
        let start = end.saturating_sub(share);
        match windows.last_mut() {
            // A gap of one or two columns would gain nothing.
            Some(last) if start <= last.1 + 2 => last.1 = end,
            _ => windows.push((if start <= 2 { 0 } else { start }, end)),
        }
    }
    windows
}

/// Breaks prose at spaces so that lines have at most `width` columns where they can; explicit line breaks stay.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let indent: String = paragraph.chars().take_while(|&c| c == ' ').collect();
        let (mut line, mut used) = (indent.clone(), indent.len());
        let mut empty = true;
        for word in paragraph.split(' ').filter(|word| !word.is_empty()) {
            let length: usize = word.chars().map(columns).sum();
            if !empty && used + 1 + length > width {
                lines.push(std::mem::replace(&mut line, indent.clone()));
                (used, empty) = (indent.len(), true);
            }
            if !empty {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += length;
            empty = false;
        }
        lines.push(if empty { String::new() } else { line });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lines_are_whole() {
        let line = show_line("\ta\u{1b}[0m\tß\u{202e}", &[1], 80);
        assert_eq!(line.text, "    a␛[0m   ß\u{fffd}");
        assert_eq!(line.at(0), 0);
        assert_eq!(line.at(1), 4);
        assert_eq!(line.at(99), line.text.len());
    }

    #[test]
    fn long_lines_keep_what_matters() {
        let line = format!("{}HERE{}", "x".repeat(500), "y".repeat(500));
        let shown = show_line(&line, &[500, 504], 60);
        assert!(shown.text.contains("xxHEREyy"));
        assert!(shown.text.starts_with('…') && shown.text.ends_with('…'));
        assert!(shown.text.chars().count() <= 62);
        assert_eq!(&shown.text[shown.at(500)..shown.at(504)], "HERE");
        let ends = show_line(&line, &[0, 1004], 60);
        assert!(ends.text.starts_with("xxx") && ends.text.ends_with("yyy"));
        assert_eq!(ends.text.matches('…').count(), 1);
        assert_eq!(show_line(&line, &[], 60).text.chars().count(), 59);
    }

    #[test]
    fn of_a_line_of_pages_as_much_is_shown() {
        let line = format!("{}HERE{}THERE{}", "x".repeat(50_000), "y".repeat(80_000), "z".repeat(90_000));
        let shown = show_line(&line, &[50_000, 50_004, 130_004, 130_009], 80);
        assert!(shown.text.contains("xxHEREyy") && shown.text.contains("yyTHEREzz"), "{}", shown.text);
        assert_eq!(shown.text.matches('…').count(), 3);
        assert!(shown.text.chars().count() <= 84 && shown.map.len() < 10_000);
        for (word, at) in [("HERE", 50_000), ("THERE", 130_004)] {
            assert_eq!(&shown.text[shown.at(at)..shown.at(at + word.len())], word);
        }
        assert_eq!(shown.at(220_009), shown.text.len());
    }

    #[test]
    fn prose_is_wrapped_at_spaces() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("  a table row\nnext", 9), ["  a table", "  row", "next"]);
        assert_eq!(wrap("unbreakable", 4), ["unbreakable"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("a\n\nb", 4), ["a", "", "b"]);
    }
}
