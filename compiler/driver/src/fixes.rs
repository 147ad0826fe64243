//! What `ptoc check --fix` writes: the certain fixes of a text that do it no harm.
//!
//! A fix is certain of what its author saw. What follows in the text may be otherwise, so each is tried: with it the
//! text has fewer mistakes of its form than without, and what it writes is none of them.

use ptoc_diagnostics::fixes::{applied, certain};
use ptoc_diagnostics::{Diagnostic, Edit, FileId, Fix, Span};
use ptoc_syntax::{MAX_ERRORS, parse};

/// A text with some of its mistakes mended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mended {
    /// The text.
    pub text: String,
    /// How many of the mistakes are mended.
    pub count: usize,
}

/// Applies one round of fixes: all that are certain, or each that does no harm if together they do.
pub fn mend(text: &str, file: FileId, found: &[Diagnostic]) -> Mended {
    let errors = syntax_errors(file, text);
    let certain = certain(found.iter(), file);
    let whole = Round { text, file, errors: &errors, fixes: certain.clone() };
    if let Some(text) = whole.harmless() {
        return Mended { text, count: certain.len() };
    }
    let mut kept = Mended { text: text.to_owned(), count: 0 };
    let mut round = Round { fixes: Vec::new(), ..whole };
    for fix in certain {
        round.fixes.push(fix);
        match round.harmless() {
            Some(text) => kept = Mended { text, count: round.fixes.len() },
            None => drop(round.fixes.pop()),
        }
    }
    kept
}

struct Round<'a> {
    text: &'a str,
    file: FileId,
    /// What is wrong with the form of the text.
    errors: &'a [Diagnostic],
    fixes: Vec<(&'a Diagnostic, &'a Fix)>,
}

impl Round<'_> {
    /// The text with the fixes, if it has fewer mistakes of its form.
    fn harmless(&self) -> Option<String> {
        let edits: Vec<Edit> = self.fixes.iter().flat_map(|(_, fix)| fix.edits.iter().cloned()).collect();
        let text = applied(self.text, &edits);
        let left = syntax_errors(self.file, &text);
        let same = |d: &Diagnostic| self.errors.iter().any(|e| e.code == d.code && e.span == d.span);
        // Of very many mistakes the last ones are not listed.
        let mended = match self.errors.len() >= MAX_ERRORS {
            true => 0,
            false => self.fixes.iter().filter(|(d, _)| same(d)).count(),
        };
        let written = written(edits);
        let told = |d: &Diagnostic| d.span.is_some_and(|s| written.iter().any(|w| s.start < w.end && w.start < s.end));
        (left.len() + mended <= self.errors.len() && !left.iter().any(told)).then_some(text)
    }
}

fn syntax_errors(file: FileId, text: &str) -> Vec<Diagnostic> {
    parse(file, text).diagnostics.into_iter().filter(Diagnostic::is_error).collect()
}

/// Where what edits write stands afterwards.
fn written(mut edits: Vec<Edit>) -> Vec<Span> {
    edits.sort_by_key(|e| e.span.start);
    let mut moved = 0_i64;
    let mut out = Vec::new();
    for e in edits {
        let start = (i64::from(e.span.start) + moved) as u32;
        let blank = e.text.len() - e.text.trim_start().len();
        let end = start + e.text.trim_end().len() as u32;
        out.push(Span { start: start + blank as u32, end, ..e.span });
        moved += e.text.len() as i64 - i64::from(e.span.end - e.span.start);
    }
    out.retain(|s| s.start < s.end);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptoc_diagnostics::codes;

    const FILE: FileId = FileId(0);

    fn fix(d: Diagnostic, (start, end): (u32, u32), text: &str) -> Diagnostic {
        d.with_fix("mend it", Span::new(FILE, start, end), text)
    }

    #[test]
    fn a_fix_that_breaks_the_text_is_taken_back() {
        let text = "fn f(a: f32) -> f32 { a + b }\n";
        let unknown = |start, end| Diagnostic::error(codes::UNKNOWN_CODE, Span::new(FILE, start, end), "a mistake");
        let good = fix(unknown(26, 27), (26, 27), "a");
        let bad = fix(unknown(22, 23), (22, 23), "{ a");
        let both = mend(text, FILE, &[bad.clone(), good]);
        assert_eq!(both, Mended { text: "fn f(a: f32) -> f32 { a + a }\n".into(), count: 1 });
        assert_eq!(mend(text, FILE, &[bad]), Mended { text: text.into(), count: 0 });
    }

    #[test]
    fn a_fix_of_a_syntax_error_leaves_one_less() {
        let text = "fn f(a: f32) -> f32 { a + }\n";
        let [error] = &syntax_errors(FILE, text)[..] else { panic!("one mistake") };
        let (at, mut error) = (error.span.expect("it has a place"), error.clone());
        error.fixes.clear();
        // It only moves the mistake.
        let moved = fix(error.clone(), (24, 25), "+ +");
        assert_eq!(mend(text, FILE, &[moved]), Mended { text: text.into(), count: 0 }, "{at:?}");
        let gone = fix(error, (24, 25), "");
        assert_eq!(mend(text, FILE, &[gone]), Mended { text: "fn f(a: f32) -> f32 { a  }\n".into(), count: 1 });
    }
}
