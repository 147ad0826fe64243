//! Edits that are applied without asking: of each diagnostic with one fix, if that is machine-applicable, as far as
//! they do not overlap.

use crate::{Applicability, Diagnostic, Edit, FileId, Fix};

/// Diagnostics with the fixes of one file that can be applied together. A diagnostic with several fixes is left to its
/// author, and so is one whose fix may be incorrect or reaches into other files. One whose fix touches what an earlier
/// one changes is found again in another round.
pub fn certain<'d>(found: impl Iterator<Item = &'d Diagnostic>, file: FileId) -> Vec<(&'d Diagnostic, &'d Fix)> {
    let (mut edits, mut chosen): (Vec<&Edit>, Vec<_>) = (Vec::new(), Vec::new());
    for diagnostic in found {
        let mut with_edits = diagnostic.fixes.iter().filter(|fix| !fix.edits.is_empty());
        let (Some(fix), None) = (with_edits.next(), with_edits.next()) else { continue };
        let own =
            fix.applicability == Applicability::MachineApplicable && fix.edits.iter().all(|e| e.span.file == file);
        // Two insertions at one place have no order.
        let overlaps = |e: &Edit| edits.iter().any(|o| e.span.start <= o.span.end && o.span.start <= e.span.end);
        if own && !fix.edits.iter().any(overlaps) {
            edits.extend(&fix.edits);
            chosen.push((diagnostic, fix));
        }
    }
    chosen
}

/// The text after edits that do not overlap.
pub fn applied(text: &str, edits: &[Edit]) -> String {
    let mut edits: Vec<&Edit> = edits.iter().collect();
    edits.sort_by_key(|e| std::cmp::Reverse((e.span.start, e.span.end)));
    let mut out = text.to_owned();
    for edit in edits {
        out.replace_range(edit.span.range(), &edit.text);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Span, codes};

    fn mistake(fixes: &[(u32, u32, &str)]) -> Diagnostic {
        let span = |a, b| Span::new(FileId(0), a, b);
        let d = Diagnostic::error(codes::UNKNOWN_CODE, span(0, 1), "a mistake");
        fixes.iter().fold(d, |d, &(a, b, text)| d.with_fix("mend it", span(a, b), text))
    }

    #[test]
    fn fixes_that_are_certain_are_applied() {
        let all = [
            mistake(&[(0, 1, "A")]),
            // Two ways to mend it.
            mistake(&[(2, 3, "B"), (2, 3, "C")]),
            mistake(&[(4, 5, "")]),
            // It touches the first.
            mistake(&[(1, 2, "D")]),
            mistake(&[]),
            Diagnostic::error(codes::UNKNOWN_CODE, Span::new(FileId(0), 0, 1), "a mistake").with_suggestion(
                "a guess",
                Span::new(FileId(0), 3, 4),
                "E",
            ),
            mistake(&[(6, 6, "!")]),
        ];
        let chosen = certain(all.iter(), FileId(0));
        assert_eq!(chosen.len(), 3);
        let edits: Vec<Edit> = chosen.iter().flat_map(|(_, fix)| fix.edits.clone()).collect();
        assert_eq!(applied("abcdef", &edits), "Abcdf!");
        assert_eq!(certain(all.iter(), FileId(1)), []);
    }
}
