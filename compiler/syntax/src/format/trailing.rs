//! Comments behind code, and the text of all lines.
//!
//! Comments behind the code of neighbouring lines begin in one column: the one where the author has put them all, if
//! there is room, else two blanks behind the longest line.

use super::lines::OutputLine;

/// The text, with this behind each line.
pub(super) fn join(lines: &[OutputLine<'_>], line_end: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < lines.len() {
        let group =
            lines[at..].iter().enumerate().take_while(|(n, l)| l.comment.is_some() && (*n == 0 || !l.blank_before));
        let end = at + group.count();
        let column = column(&lines[at..end]);
        for line in &lines[at..end.max(at + 1)] {
            if line.blank_before {
                out.push_str(line_end);
            }
            out.push_str(line.text.trim_end());
            if let Some((comment, _)) = line.comment {
                out.push_str(&" ".repeat(column - width(line)));
                out.push_str(comment);
            }
            out.push_str(line_end);
        }
        at = end.max(at + 1);
    }
    out
}

fn width(line: &OutputLine<'_>) -> usize {
    line.text.trim_end().chars().count()
}

/// Where the comments of a group begin.
fn column(group: &[OutputLine<'_>]) -> usize {
    let longest = group.iter().map(width).max().unwrap_or(0);
    let mut columns = group.iter().filter_map(|l| l.comment.map(|(_, column)| column));
    let first = columns.next().unwrap_or(0);
    match first > longest && columns.all(|c| c == first) {
        true => first,
        false => longest + 2,
    }
}
