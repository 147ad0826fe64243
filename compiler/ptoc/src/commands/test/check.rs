//! `// check:` lines: a kernel that is analysed, and what is wrong with it.

use super::{Failure, count};
use ptoc_diagnostics::Code;
use ptoc_driver::check::{Checked, check_entry};
use ptoc_driver::session::{CompilationUnit, Session};
use ptoc_syntax::ast::Ident;
use ptoc_syntax::directive::Check;

/// The errors of the kernel, and of the file as such, must be exactly those that the line expects. A warning counts
/// where the line names its code.
pub(super) fn check_line(session: &mut Session, unit: &CompilationUnit, check: &Check) -> Result<(), Failure> {
    match unit.entry(Some(&check.kernel.name), "check") {
        Ok(entry) => {
            session.check_definitions(&[entry], unit);
            let checked = check_entry(session, unit, &entry);
            // A line that expects nothing wrong says something only if all was looked at.
            if matches!(checked, Checked::Partly) && check.expected.is_empty() && !session.diagnostics.has_errors() {
                return Err("not checked to the end: something that it depends on is not given".to_owned().into());
            }
        }
        Err(d) => {
            session.diagnostics.push(*d);
        }
    }
    let named = |code: Code| check.expected.iter().any(|w| code.as_str().eq_ignore_ascii_case(&w.name));
    let mut got: Vec<Code> =
        session.diagnostics.iter().filter(|d| d.is_error() || named(d.code)).map(|d| d.code).collect();
    let mut missing: Vec<&Ident> = Vec::new();
    // Codes first: a kind's word takes what they leave.
    let is_code = |word: &&Ident| Code::find(&word.name).is_some();
    let (exact, kinds): (Vec<&Ident>, Vec<&Ident>) = check.expected.iter().partition(is_code);
    for word in exact.into_iter().chain(kinds) {
        let fits = |code: &Code| code.as_str().eq_ignore_ascii_case(&word.name) || code.info().kind == word.name;
        match got.iter().position(fits) {
            Some(at) => {
                got.remove(at);
            }
            None => missing.push(word),
        }
    }
    if missing.is_empty() && got.is_empty() {
        return Ok(());
    }
    let mut reasons = Vec::new();
    if !missing.is_empty() {
        let missing: Vec<&str> = missing.iter().map(|w| w.name.as_str()).collect();
        reasons.push(format!("expected {}, not found", count(&missing)));
    }
    if !got.is_empty() {
        let got: Vec<&str> = got.iter().map(|c| c.as_str()).collect();
        reasons.push(format!("found {}, not expected", count(&got)));
    }
    Err(reasons.join("; ").into())
}
