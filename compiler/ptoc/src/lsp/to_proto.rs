//! Diagnostics and fixes in the protocol's types, with the words of the command line.

use super::analysis::Analysis;
use super::documents::Document;
use super::position::{Encoding, LineIndex};
use lsp_types::{
    Code, CodeAction, CodeActionKind, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag,
    Location, Message, Range, TextEdit, Uri, WorkspaceEdit,
};
use ptoc_diagnostics::{self as core, FileId, Severity, Span, codes};
use std::collections::HashMap;
use std::path::Path;

/// Where files are and what columns count.
pub struct Places<'a> {
    /// The text that was analysed.
    pub uri: &'a Uri,
    pub document: &'a Document,
    pub analysis: &'a Analysis,
    pub encoding: Encoding,
}

impl Places<'_> {
    /// The range of a span, in whichever file it is.
    pub fn range(&self, span: Span) -> Range {
        let position = |offset: u32| {
            if span.file == self.analysis.file {
                return self.document.lines.position(&self.document.text, offset as usize, self.encoding);
            }
            let text = self.analysis.sources.text(span.file);
            LineIndex::new(text).position(text, offset as usize, self.encoding)
        };
        Range { start: position(span.start), end: position(span.end) }
    }

    /// The place of a file; modules of the library and definitions have none.
    fn uri(&self, file: FileId) -> Option<Uri> {
        if file == self.analysis.file {
            return Some(self.uri.clone());
        }
        let name = self.analysis.sources.name(file);
        let path = Path::new(name).canonicalize().ok()?;
        Uri::from_file_path(path).ok()
    }

    /// A diagnostic. One that is about another file stands at the top of this one, and points there.
    pub fn diagnostic(&self, d: &core::Diagnostic) -> Diagnostic {
        let here = d.span.filter(|s| s.file == self.analysis.file);
        let mut related: Vec<DiagnosticRelatedInformation> = Vec::new();
        let mut point = |span: Span, message: &str| {
            if let Some(uri) = self.uri(span.file) {
                let location = Location { uri, range: self.range(span) };
                related.push(DiagnosticRelatedInformation { location, message: message.to_owned() });
            }
        };
        if let (None, Some(span)) = (here, d.span) {
            point(span, if d.label.is_empty() { &d.message } else { &d.label });
        }
        d.labels.iter().for_each(|l| point(l.span, &l.message));
        let unused = [codes::DEAD_STORE, codes::UNUSED_NAME].contains(&d.code);
        Diagnostic {
            range: here.map_or_else(Range::default, |span| self.range(span)),
            severity: Some(match d.severity {
                Severity::Error => DiagnosticSeverity::Error,
                Severity::Warning => DiagnosticSeverity::Warning,
                Severity::Note => DiagnosticSeverity::Information,
            }),
            code: Some(Code::String(d.code.as_str().to_owned())),
            source: Some("ptoc".into()),
            message: Message::String(text(d)),
            tags: unused.then(|| vec![DiagnosticTag::Unnecessary]),
            related_information: (!related.is_empty()).then_some(related),
            ..Diagnostic::default()
        }
    }

    /// The fixes of a diagnostic that can be applied.
    pub fn actions(&self, d: &core::Diagnostic) -> Vec<CodeAction> {
        let fixes: Vec<&core::Fix> = d.fixes.iter().filter(|f| !f.edits.is_empty()).collect();
        let single = fixes.len() == 1;
        fixes.into_iter().filter_map(|fix| self.action(d, fix, single)).collect()
    }

    fn action(&self, d: &core::Diagnostic, fix: &core::Fix, preferred: bool) -> Option<CodeAction> {
        let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
        for edit in &fix.edits {
            let text = TextEdit { range: self.range(edit.span), new_text: edit.text.clone() };
            changes.entry(self.uri(edit.span.file)?).or_default().push(text);
        }
        Some(CodeAction {
            title: fix.message.clone(),
            kind: Some(CodeActionKind::QuickFix),
            diagnostics: Some(vec![self.diagnostic(d)]),
            is_preferred: preferred.then_some(true),
            edit: Some(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }),
            ..CodeAction::default()
        })
    }
}

/// The message with its label, its notes and the helps that are no edits.
fn text(d: &core::Diagnostic) -> String {
    let mut out = d.message.clone();
    if !d.label.is_empty() && d.label != "here" {
        out += &format!("\n{}", d.label);
    }
    d.notes.iter().for_each(|note| out += &format!("\nnote: {note}"));
    d.fixes.iter().for_each(|fix| out += &format!("\nhelp: {}", fix.message));
    out
}
