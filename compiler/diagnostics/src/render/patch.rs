//! The edits of a fix, shown as lines taken away and lines put in.

use super::text::show_line;
use crate::{Edit, FileId, SourceMap, Span};

/// Lines shown of each side of a hunk; the rest is counted.
const MAX_LINES: usize = 8;

/// One line of a patch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PatchLine {
    /// The lines that follow are of this file.
    File(String),
    /// A line, counted from 1, that goes.
    Old(u32, String),
    /// A line that comes, with the number that it has if nothing else changes.
    New(u32, String),
    /// So many lines are not shown.
    More(usize),
}

/// Edits that touch neighbouring lines of one file.
struct Hunk<'e> {
    file: FileId,
    /// First and last line touched, from 0.
    lines: (u32, u32),
    edits: Vec<(Span, &'e str)>,
}

/// The patch that `edits` make. `shown` is the file that the reader has in view; others are named. An edit that
/// overlaps the one before it is left out, as an editor would refuse it.
pub(super) fn patch(edits: &[Edit], sources: &SourceMap, shown: Option<FileId>, width: usize) -> Vec<PatchLine> {
    let mut sorted: Vec<(Span, &str)> = edits.iter().map(|edit| (sources.clamp(edit.span), &*edit.text)).collect();
    sorted.sort_by_key(|(span, _)| (span.file, span.start, span.end));
    let mut hunks: Vec<Hunk<'_>> = Vec::new();
    for (span, text) in sorted {
        let line_of = |offset| sources.position(span.file, offset).line - 1;
        let (first, last) = (line_of(span.start), line_of(span.end));
        match hunks.last_mut() {
            Some(hunk) if hunk.file == span.file && first <= hunk.lines.1 + 1 => {
                if hunk.edits.last().is_none_or(|(before, _)| before.end <= span.start) {
                    hunk.lines.1 = hunk.lines.1.max(last);
                    hunk.edits.push((span, text));
                }
            }
            _ => hunks.push(Hunk { file: span.file, lines: (first, last), edits: vec![(span, text)] }),
        }
    }
    let mut lines = Vec::new();
    let mut in_view = shown;
    for hunk in &hunks {
        if in_view != Some(hunk.file) {
            in_view = Some(hunk.file);
            lines.push(PatchLine::File(sources.name(hunk.file).to_string()));
        }
        hunk.render(sources, width, &mut lines);
    }
    lines
}

impl Hunk<'_> {
    fn render(&self, sources: &SourceMap, width: usize, into: &mut Vec<PatchLine>) {
        let (first, last) = self.lines;
        let start = sources.line_start(self.file, first);
        let end = sources.line_start(self.file, last) + sources.line(self.file, last).len();
        let text = sources.text(self.file);
        let (mut new, mut at) = (String::new(), start);
        for (span, replacement) in &self.edits {
            new.push_str(&text[at..(span.start as usize).max(at)]);
            new.push_str(replacement);
            at = at.max(span.end as usize);
        }
        new.push_str(&text[at..end.max(at)]);
        let old: Vec<&str> = text[start..end].lines().collect();
        let new: Vec<&str> = new.lines().collect();
        let mut from = (0, 0);
        for (i, j) in common_lines(&old, &new).into_iter().chain([(old.len(), new.len())]) {
            let changed = Changed { old: &old[from.0..i], new: &new[from.1..j] };
            changed.render((first as usize + from.0 + 1, first as usize + from.1 + 1), width, into);
            from = (i + 1, j + 1);
        }
    }
}

/// Neighbouring lines of which none stays.
struct Changed<'t> {
    old: &'t [&'t str],
    new: &'t [&'t str],
}

impl Changed<'_> {
    fn render(&self, (old_at, new_at): (usize, usize), width: usize, into: &mut Vec<PatchLine>) {
        let show = |line: &str, other: Option<&&str>| {
            let points = other.map_or((0, line.len()), |other| difference(line, other));
            show_line(line, &[points.0, points.1], width).text.trim_end().to_string()
        };
        let more = |lines: &[&str]| lines.len().checked_sub(MAX_LINES).filter(|&rest| rest > 0).map(PatchLine::More);
        // A blank line that text is put in has nothing to take away.
        if self.new.is_empty() || self.old.iter().any(|line| !line.trim().is_empty()) {
            for (i, line) in self.old.iter().enumerate().take(MAX_LINES) {
                into.push(PatchLine::Old((old_at + i) as u32, show(line, self.new.get(i))));
            }
            into.extend(more(self.old));
        }
        for (i, line) in self.new.iter().enumerate().take(MAX_LINES) {
            into.push(PatchLine::New((new_at + i) as u32, show(line, self.old.get(i))));
        }
        into.extend(more(self.new));
    }
}

/// The longest common subsequence, as pairs of indices; of long texts only the common lines at either end.
fn common_lines(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    const MAX: usize = 64;
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut pairs: Vec<_> = (0..head).map(|i| (i, i)).collect();
    if a.len() <= MAX && b.len() <= MAX {
        // length[i][j]: of the longest common subsequence of a[i..] and b[j..].
        let mut length = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in (0..a.len()).rev() {
            for j in (0..b.len()).rev() {
                let skip = length[i + 1][j].max(length[i][j + 1]);
                length[i][j] = if a[i] == b[j] { length[i + 1][j + 1] + 1 } else { skip };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < a.len() && j < b.len() {
            if a[i] == b[j] {
                pairs.push((head + i, head + j));
                (i, j) = (i + 1, j + 1);
            } else if length[i + 1][j] >= length[i][j + 1] {
                i += 1;
            } else {
                j += 1;
            }
        }
    }
    pairs.extend((0..tail).rev().map(|back| (old.len() - 1 - back, new.len() - 1 - back)));
    pairs
}

/// Where `line` begins and ends to differ from `other`, in bytes.
fn difference(line: &str, other: &str) -> (usize, usize) {
    let same = |(a, b): &(char, char)| a == b;
    let head: usize = line.chars().zip(other.chars()).take_while(same).map(|(c, _)| c.len_utf8()).sum();
    let tail: usize = line.chars().rev().zip(other.chars().rev()).take_while(same).map(|(c, _)| c.len_utf8()).sum();
    (head, line.len().saturating_sub(tail).max(head))
}
