//! Collects the diagnostics of one compilation.

use crate::{Code, Diagnostic, FileId, Severity, Span, codes};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Errors that are reported before the rest is only counted; and warnings.
pub const DEFAULT_LIMIT: usize = 100;

/// A place as file, start and end, and whose it is.
type Place = (FileId, u32, u32, usize);

/// How many places that begin before a diagnostic are compared with it, to see whether both are of one mistake: the
/// nearest.
const COMPARED: usize = 64;

/// Whose places begin in a span, or not far before it, the nearest first.
fn around(places: &BTreeSet<Place>, span: Span) -> Vec<usize> {
    let (first, last) = ((span.file, span.start, 0, 0), (span.file, span.end, u32::MAX, usize::MAX));
    let inside = places.range(first..=last);
    let before = places.range((span.file, 0, 0, 0)..first).rev().take(COMPARED);
    let all: Vec<usize> = inside.chain(before).map(|place| place.3).collect();
    crate::work(1 + all.len());
    all
}

/// Diagnostics in the order of arrival, without repetitions.
///
/// A second diagnostic of the same code at the same span is dropped (instances of one kernel repeat what is wrong
/// with it); of those without a span, a second one with the same code and message.
#[derive(Debug, Default)]
pub struct Diagnostics {
    /// `None`: it is not said, after all.
    list: Vec<Option<Diagnostic>>,
    /// Places on which it depends whether something is said, and those that errors are of or would mend, each with the
    /// number of the diagnostic.
    conditional: BTreeSet<Place>,
    errors: BTreeSet<Place>,
    seen: HashSet<(Code, Result<crate::Span, String>)>,
    /// Files that no edit fits, and what puts a diagnostic into their words.
    translated: HashMap<crate::FileId, fn(&mut Diagnostic)>,
}

impl Diagnostics {
    /// No diagnostics.
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// A translation of this file was checked: `words` puts what was found into words of the file.
    pub fn translated(&mut self, file: crate::FileId, words: fn(&mut Diagnostic)) {
        self.translated.insert(file, words);
    }

    /// Adds one unless it is a repetition. Says whether it was added.
    pub fn push(&mut self, mut diagnostic: Diagnostic) -> bool {
        if let Some(words) = diagnostic.span.and_then(|span| self.translated.get(&span.file)) {
            words(&mut diagnostic);
        }
        let place = diagnostic.span.ok_or_else(|| diagnostic.message.clone());
        if !self.seen.insert((diagnostic.code, place)) {
            return false;
        }
        self.add(diagnostic)
    }

    /// Of two reports of one mistake the one that says more stays, with what the other would have mended.
    fn add(&mut self, mut diagnostic: Diagnostic) -> bool {
        if let Some(place) = diagnostic.unless {
            for n in around(&self.errors, place) {
                if let Some(better) = self.list[n].as_mut().filter(|d| d.replaces(&diagnostic)) {
                    better.take_over(&diagnostic);
                    self.errors.extend(reach(better, n));
                    return false;
                }
            }
        }
        let n = self.list.len();
        if diagnostic.is_error() {
            let mut found: Vec<usize> = reach(&diagnostic, n)
                .flat_map(|(file, start, end, _)| around(&self.conditional, Span::new(file, start, end)))
                .collect();
            found.sort_unstable();
            found.dedup();
            for other in found {
                if let Some(gone) = self.list[other].take_if(|d| diagnostic.replaces(d)) {
                    diagnostic.take_over(&gone);
                }
            }
            self.errors.extend(reach(&diagnostic, n));
        }
        self.conditional.extend(diagnostic.unless.map(|p| (p.file, p.start, p.end, n)));
        self.list.push(Some(diagnostic));
        true
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// How many errors there are.
    pub fn error_count(&self) -> usize {
        self.iter().filter(|diagnostic| diagnostic.is_error()).count()
    }

    /// Whether there is an error.
    pub fn has_errors(&self) -> bool {
        self.iter().any(Diagnostic::is_error)
    }

    /// In the order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter().flatten()
    }

    /// Keeps those that `keep` picks.
    pub fn retain(&mut self, mut keep: impl FnMut(&Diagnostic) -> bool) {
        for slot in &mut self.list {
            slot.take_if(|d| !keep(d));
        }
    }

    /// Makes errors of the warnings and notes that `denied` picks.
    pub fn deny(&mut self, denied: impl Fn(&Diagnostic) -> bool) {
        for diagnostic in self.list.iter_mut().flatten() {
            if diagnostic.severity != Severity::Error && denied(diagnostic) {
                diagnostic.severity = Severity::Error;
            }
        }
    }

    /// Makes warnings of the errors that `mild` picks.
    pub fn soften(&mut self, mild: impl Fn(&Diagnostic) -> bool) {
        for diagnostic in self.list.iter_mut().flatten() {
            if diagnostic.severity == Severity::Error && mild(diagnostic) {
                diagnostic.severity = Severity::Warning;
            }
        }
    }

    /// Sorted by file, start and code, equals in the order of arrival, those without a span first.
    pub fn into_sorted(self) -> Vec<Diagnostic> {
        let mut list: Vec<Diagnostic> = self.list.into_iter().flatten().collect();
        list.sort_by_key(|diagnostic| (diagnostic.span.map(|span| (span.file, span.start)), diagnostic.code));
        list
    }

    /// [Sorted](Diagnostics::into_sorted), with at most `limit` errors; if more were found, a last note says how many.
    /// Warnings and notes behind the first error that is not shown are dropped with it. Likewise at most `limit`
    /// warnings.
    pub fn into_report(self, limit: usize) -> Vec<Diagnostic> {
        let errors = self.error_count();
        let mut list = self.into_sorted();
        if errors <= limit {
            let mut warnings = 0;
            list.retain(|d| {
                warnings += usize::from(d.severity == Severity::Warning);
                d.severity != Severity::Warning || warnings <= limit
            });
            list.extend(not_shown(warnings.saturating_sub(limit), "warning"));
            return list;
        }
        let places = list.iter().enumerate().filter(|(_, diagnostic)| diagnostic.is_error());
        let cut = places.map(|(at, _)| at).nth(limit).unwrap_or(list.len());
        list.truncate(cut);
        list.extend(not_shown(errors - limit, "error"));
        list
    }
}

/// The places of an error: its own, and those of its repairs.
fn reach(error: &Diagnostic, n: usize) -> impl Iterator<Item = Place> {
    let edits = error.fixes.iter().flat_map(|f| &f.edits).map(|e| e.span);
    error.span.into_iter().chain(edits).map(move |s| (s.file, s.start, s.end, n))
}

/// The note on so many diagnostics that are not shown.
fn not_shown(rest: usize, what: &str) -> Option<Diagnostic> {
    let (s, verb) = if rest == 1 { ("", "is") } else { ("s", "are") };
    let text = format!("{rest} more {what}{s} {verb} not shown");
    let note = || Diagnostic { severity: Severity::Note, ..Diagnostic::global(codes::TOO_MANY_ERRORS, text) };
    (rest > 0).then(note)
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, diagnostics: I) {
        for diagnostic in diagnostics {
            self.push(diagnostic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(file: u32, start: u32, message: &str) -> Diagnostic {
        Diagnostic::error(codes::UNEXPECTED_TOKEN, Span::new(FileId(file), start, start + 1), message)
    }

    #[test]
    fn repetitions_are_dropped() {
        let mut all = Diagnostics::new();
        assert!(all.push(at(0, 5, "first")));
        assert!(!all.push(at(0, 5, "in another instance")));
        assert!(all.push(at(0, 6, "first")));
        assert!(all.push(Diagnostic::global(codes::UNEXPECTED_TOKEN, "a.npy")));
        assert!(all.push(Diagnostic::global(codes::UNEXPECTED_TOKEN, "b.npy")));
        assert!(!all.push(Diagnostic::global(codes::UNEXPECTED_TOKEN, "a.npy")));
        assert_eq!((all.len(), all.error_count()), (4, 4));
    }

    #[test]
    fn sorted_by_place() {
        let mut all = Diagnostics::new();
        all.extend([at(1, 0, "d"), at(0, 9, "c"), at(0, 2, "b"), Diagnostic::global(codes::UNEXPECTED_TOKEN, "a")]);
        let messages: Vec<_> = all.into_sorted().into_iter().map(|d| d.message).collect();
        assert_eq!(messages, ["a", "b", "c", "d"]);
    }

    #[test]
    fn the_limit_counts_errors() {
        let all = || {
            let mut all = Diagnostics::new();
            all.extend((0..5).map(|i| at(0, 10 * i, "wrong")));
            all.push(Diagnostic::warning(codes::UNEXPECTED_TOKEN, Span::new(FileId(0), 15, 16), "odd"));
            all.push(Diagnostic::warning(codes::UNEXPECTED_TOKEN, Span::new(FileId(0), 35, 36), "odd"));
            all
        };
        assert_eq!(all().into_report(5).len(), 7);
        let report = all().into_report(3);
        assert_eq!(report.len(), 5);
        assert_eq!(report[4].message, "2 more errors are not shown");
        assert_eq!(report[4].severity, Severity::Note);
        assert_eq!(all().into_report(4)[6 - 1].message, "odd");
        let mut denied = all();
        denied.deny(|d| d.message == "odd");
        assert_eq!(denied.error_count(), 7);
        denied.soften(|d| d.message == "odd");
        assert_eq!(denied.error_count(), 5);
        // Warnings have the same limit.
        let warning = |i| Diagnostic::warning(codes::UNEXPECTED_TOKEN, Span::new(FileId(0), i, i + 1), "odd");
        let mut many = Diagnostics::new();
        many.extend((0..9).map(warning));
        many.push(at(0, 20, "wrong"));
        let report = many.into_report(7);
        assert_eq!((report.len(), report[7].message.as_str()), (9, "wrong"));
        assert_eq!(report[8].message, "2 more warnings are not shown");
    }
}
