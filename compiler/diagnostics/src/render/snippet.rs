//! The source excerpt with its labels, drawn by ariadne.
//!
//! Ariadne gets a prepared copy of each file: only the lines with a label have text, every line ends in a space that
//! an empty span at its end can point at, control characters are visible and long lines are cut. So it sees the line
//! structure that [`SourceMap`] has (it would itself also break at form feeds and the like), and its spans are never
//! empty, backwards, or across a line break at their end, all of which it draws badly or panics on. They count
//! characters: with byte offsets ariadne 0.6 slices the text of a second file at a character offset, and panics.

use super::text::{ShownLine, printable, show_line};
use crate::{Diagnostic, FileId, Severity, SourceMap, Span};
use ariadne::{Cache, CharSet, Color, Config, IndexType, Label, Report, ReportKind, Source};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// Stands in front of a location that ariadne prints, where ours, from the original text, replaces it.
const MARK: char = '\u{1}';

/// An excerpt, and the column at which its left bar stands.
pub(super) struct Snippet {
    /// Lines without line breaks and trailing spaces.
    pub lines: Vec<String>,
    /// Columns to the left of the bar.
    pub margin: usize,
}

/// A label with its place in the original file.
struct Mark<'d> {
    span: Span,
    message: &'d str,
    primary: bool,
}

/// A file as ariadne gets it.
struct Prepared {
    file: FileId,
    source: Source<String>,
    /// Start of each line in the prepared text.
    starts: Vec<usize>,
    lines: BTreeMap<u32, ShownLine>,
}

/// Draws the places of a diagnostic; `None` if it has none.
pub(super) fn snippet(diagnostic: &Diagnostic, sources: &SourceMap, color: bool, width: usize) -> Option<Snippet> {
    let primary = sources.clamp(diagnostic.span?);
    let mut marks = vec![Mark { span: primary, message: &diagnostic.label, primary: true }];
    marks.extend(diagnostic.labels.iter().map(|label| Mark {
        span: sources.clamp(label.span),
        message: &label.message,
        primary: false,
    }));
    for mark in &mut marks {
        mark.span = without_final_break(sources, mark.span);
    }
    let mut files: Vec<FileId> = Vec::new();
    for mark in &marks {
        if !files.contains(&mark.span.file) {
            files.push(mark.span.file);
        }
    }
    let prepared: Vec<Prepared> = files.iter().map(|&file| prepare(file, &marks, sources, width)).collect();
    let rank = |mark: &Mark<'_>| files.iter().position(|&file| file == mark.span.file).unwrap_or(0);
    // One group a file, top to bottom; on one line the label whose arrow, in the middle, is rightmost comes first, so
    // that no arrow crosses another.
    let line_of = |mark: &Mark<'_>| sources.position(mark.span.file, last_offset(mark.span)).line;
    marks.sort_by_key(|mark| {
        (rank(mark), line_of(mark), std::cmp::Reverse(u64::from(mark.span.start) + u64::from(mark.span.end)))
    });
    let places = marks.iter().map(|mark| prepared[rank(mark)].place(mark.span, sources));
    let places: Vec<(usize, Range<usize>)> = marks.iter().map(rank).zip(places).collect();
    let primary_color = match diagnostic.severity {
        Severity::Error => Color::Red,
        Severity::Warning => Color::Yellow,
        Severity::Note => Color::Cyan,
    };
    let config = Config::new()
        .with_color(color)
        .with_char_set(CharSet::Unicode)
        .with_index_type(IndexType::Char)
        .with_cross_gap(false);
    let start = places[marks.iter().position(|mark| mark.primary).unwrap_or(0)].clone();
    let mut report = Report::build(ReportKind::Error, start).with_config(config);
    for (order, (mark, place)) in marks.iter().zip(&places).enumerate() {
        // Ariadne underlines only what has a message.
        let message = if mark.message.is_empty() { "here".to_string() } else { one_line(mark.message) };
        let color = if mark.primary { primary_color } else { Color::Blue };
        let label = Label::new(place.clone()).with_message(message).with_color(color);
        report.add_label(label.with_order(order as i32).with_priority(i32::from(mark.primary)));
    }
    let mut drawn = Vec::new();
    report.finish().write(Files(&prepared), &mut drawn).expect("writing to memory does not fail");
    let drawn = String::from_utf8_lossy(&drawn);
    // For the primary's file its own place; for others that of their first label.
    let location = |rank: usize| {
        let of_file = || marks.iter().filter(|mark| mark.span.file == files[rank]);
        let mark = of_file().find(|mark| mark.primary).or_else(|| of_file().next());
        let position = sources.position(files[rank], mark.map_or(0, |mark| mark.span.start));
        format!("{}:{}:{}", printable(sources.name(files[rank])), position.line, position.column)
    };
    // The first line is ariadne's header; ours stands above. The last is the bottom of the frame.
    let mut lines: Vec<String> = drawn.lines().skip(1).map(|line| relocated(line, &location)).collect();
    let bottom = lines.pop().unwrap_or_default();
    Some(Snippet { lines, margin: bottom.chars().filter(|&c| c == '─').count() })
}

/// The line with the text behind [`MARK`], a file's number, line and column, replaced.
fn relocated(line: &str, location: &impl Fn(usize) -> String) -> String {
    let Some((before, rest)) = line.split_once(MARK) else { return line.trim_end().to_string() };
    let (place, after) = rest.split_once(' ').unwrap_or((rest, ""));
    let rank = place.split(':').next().and_then(|rank| rank.parse().ok()).unwrap_or(0);
    format!("{before}{} {after}", location(rank))
}

/// Labels are drawn on one line.
fn one_line(message: &str) -> String {
    printable(&message.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The offset of a span's last byte, or its start.
fn last_offset(span: Span) -> u32 {
    span.end.saturating_sub(1).max(span.start)
}

/// The span without line breaks at its end: its last line is the one where something is seen.
fn without_final_break(sources: &SourceMap, span: Span) -> Span {
    let trimmed = sources.slice(span).trim_end_matches(['\n', '\r']);
    Span::new(span.file, span.start, span.start + trimmed.len() as u32)
}

fn prepare(file: FileId, marks: &[Mark<'_>], sources: &SourceMap, width: usize) -> Prepared {
    let line_of = |offset: u32| sources.position(file, offset).line - 1;
    // The points of interest of each line with a label.
    let mut points: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for span in marks.iter().map(|mark| mark.span).filter(|span| span.file == file) {
        for (line, offset) in [(line_of(span.start), span.start), (line_of(last_offset(span)), span.end)] {
            points.entry(line).or_default().push(offset as usize - sources.line_start(file, line));
        }
    }
    let last = points.keys().next_back().copied().unwrap_or(0);
    // The bar, the number, spaces, and the arrows of multi-line labels take the rest.
    let room = width.saturating_sub(10 + last.to_string().len()).max(40);
    let lines: BTreeMap<u32, ShownLine> =
        points.into_iter().map(|(line, points)| (line, show_line(sources.line(file, line), &points, room))).collect();
    let (mut text, mut starts) = (String::new(), Vec::new());
    crate::work(last as usize);
    for line in 0..=last {
        starts.push(text.len());
        if let Some(shown) = lines.get(&line) {
            text.push_str(&shown.text);
            text.push(' ');
        }
        text.push('\n');
    }
    Prepared { file, source: Source::from(text), starts, lines }
}

impl Prepared {
    /// The place of a span in the prepared text, in characters; never empty.
    fn place(&self, span: Span, sources: &SourceMap) -> Range<usize> {
        let at = |line: u32, offset: u32| {
            let within = offset as usize - sources.line_start(self.file, line);
            self.starts[line as usize] + self.lines[&line].at(within)
        };
        let line_of = |offset: u32| sources.position(self.file, offset).line - 1;
        let start = at(line_of(span.start), span.start);
        let end = at(line_of(last_offset(span)), span.end);
        let before = self.source.text()[..start].chars().count();
        let within = self.source.text()[start..end.max(start)].chars().count();
        before..before + within.max(1)
    }
}

/// The prepared files, by number.
struct Files<'p>(&'p [Prepared]);

impl Cache<usize> for Files<'_> {
    type Storage = String;

    fn fetch(&mut self, file: &usize) -> Result<&Source<String>, impl fmt::Debug> {
        self.0.get(*file).map(|prepared| &prepared.source).ok_or("no such file")
    }

    fn display<'i>(&self, file: &'i usize) -> Option<impl fmt::Display + 'i> {
        Some(format!("{MARK}{file}"))
    }
}
