//! What a compilation or a launch has to say, with the texts that it points to.

use crate::session::Session;
use ptoc_diagnostics::{Code, DEFAULT_LIMIT, Diagnostic, Diagnostics, Severity, SourceMap, render};
use std::fmt;
use std::sync::Arc;

/// Diagnostics in the order in which they are shown.
#[derive(Clone, Debug)]
pub struct Report {
    diagnostics: Vec<Diagnostic>,
    sources: Arc<SourceMap>,
}

impl Report {
    /// A report of diagnostics that point into these texts. Notes, which are remarks of `ptoc check`, are left out.
    pub(crate) fn new(mut found: Diagnostics, sources: Arc<SourceMap>) -> Report {
        found.retain(|d| d.severity != Severity::Note);
        Report { diagnostics: found.into_report(DEFAULT_LIMIT).into_iter().map(of_call).collect(), sources }
    }

    /// One diagnostic.
    pub fn of(d: Diagnostic, sources: Arc<SourceMap>) -> Report {
        Report { diagnostics: vec![of_call(d)], sources }
    }

    /// What a session has found, with its texts, which it does not need any more.
    pub(crate) fn of_session(session: &mut Session) -> Report {
        let found = std::mem::take(&mut session.diagnostics);
        Report::new(found, Arc::new(std::mem::take(&mut session.sources)))
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.diagnostics.is_empty()
    }

    /// The diagnostics.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The code of the first error, or of the first diagnostic if there is none.
    pub fn code(&self) -> Option<Code> {
        let error = self.diagnostics.iter().find(|d| d.is_error());
        error.or(self.diagnostics.first()).map(|d| d.code)
    }

    /// As a terminal shows it.
    pub fn rendered(&self, color: bool) -> String {
        let shown = self.diagnostics.iter().map(|d| render::terminal(d, &self.sources, color, render::DEFAULT_WIDTH));
        shown.collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    /// One object for each diagnostic, as `--message-format json` writes it.
    pub fn json(&self) -> Vec<String> {
        self.diagnostics.iter().map(|d| render::json(d, &self.sources)).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rendered(false))
    }
}

impl std::error::Error for Report {}

/// A diagnostic in the words of a call, where definitions and options are arguments and no flags.
fn of_call(mut d: Diagnostic) -> Diagnostic {
    let said = [&mut d.message, &mut d.label].into_iter().chain(&mut d.notes);
    for text in said.chain(d.fixes.iter_mut().map(|fix| &mut fix.message)) {
        if text.contains("-D ") {
            *text = text.replace("`-D ", "`").replace(" -D ", ", ");
        }
        if text.contains("`--") {
            *text = without_flags(text);
        }
    }
    d
}

/// Flags of the command line, and what a call has in place of each: what stands before its value, and behind it.
const FLAGS: [(&str, &str, &str); 4] = [
    ("--backend", "backend=\"", "\""),
    ("--target", "target=\"", "\""),
    ("--stage", "ir(\"", "\")"),
    ("--threads", "set_num_threads(", ")"),
];

/// A text whose flags, in backquotes, are arguments of a call.
fn without_flags(text: &str) -> String {
    let quoted = |(n, part): (usize, &str)| {
        let flag = |(flag, before, behind): &(&str, &str, &str)| {
            let value = part.strip_prefix(flag)?;
            Some(match value.trim_start() {
                "" => before.trim_end_matches(['=', '"', '(']).to_owned(),
                value => format!("{before}{value}{behind}"),
            })
        };
        // Every other part is within backquotes.
        let known = if n % 2 == 1 { FLAGS.iter().find_map(flag) } else { None };
        known.unwrap_or_else(|| part.to_owned())
    };
    text.split('`').enumerate().map(quoted).collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::without_flags;

    #[test]
    fn flags_are_arguments() {
        let said = "`--backend interp` runs it; or choose `--target a5` (`x`), or `--target`; see `--stats`";
        let meant = "`backend=\"interp\"` runs it; or choose `target=\"a5\"` (`x`), or `target`; see `--stats`";
        assert_eq!(without_flags(said), meant);
        assert_eq!(without_flags("give `--stage loop`, `clif`"), "give `ir(\"loop\")`, `clif`");
    }
}
