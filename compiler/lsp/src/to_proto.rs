//! Diagnostics and fixes in the protocol's types, with the words of the command line.

use super::context::Context;
use super::world::LIBRARY;
use lsp_types::{
    Code, CodeAction, CodeActionKind, CodeDescription, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity,
    DiagnosticTag, Location, Message, Range, TextEdit, Uri,
};
use ptoc_diagnostics::{self as core, FileId, Severity, Span, codes};
use ptoc_names::index::DefinitionKind;
use std::collections::BTreeMap;

impl Context<'_> {
    fn uri_of(&self, file: FileId) -> Option<Uri> {
        self.world.uri_of(self.loaded(), file)
    }

    /// A diagnostic. One that is about another file stands at the top of this one, and points there.
    pub fn diagnostic(&self, d: &core::Diagnostic) -> Diagnostic {
        let here = d.span.filter(|s| s.file == self.file());
        let mut related: Vec<DiagnosticRelatedInformation> = Vec::new();
        let mut point = |span: Span, message: &str| {
            if let Some(uri) = self.uri_of(span.file) {
                let location = Location { uri, range: self.range(span) };
                related.push(DiagnosticRelatedInformation { location, message: message.to_owned() });
            }
        };
        if let (None, Some(span)) = (here, d.span) {
            point(span, if d.label.is_empty() { &d.message } else { &d.label });
        }
        d.labels.iter().for_each(|l| point(l.span, &l.message));
        let setting = d.span.and_then(|span| self.setting(span.file));
        let range = here.or(setting.as_ref().and_then(|s| s.1)).map_or_else(Range::default, |span| self.range(span));
        let unused = [codes::DEAD_STORE, codes::UNUSED_NAME].contains(&d.code);
        Diagnostic {
            range,
            severity: Some(match d.severity {
                Severity::Error => DiagnosticSeverity::Error,
                Severity::Warning => DiagnosticSeverity::Warning,
                Severity::Note => DiagnosticSeverity::Information,
            }),
            code: Some(Code::String(d.code.as_str().to_owned())),
            code_description: self.described(d.code),
            source: Some("ptoc".into()),
            message: Message::String(setting.map_or(String::new(), |s| s.0) + &text(d)),
            tags: unused.then(|| vec![DiagnosticTag::Unnecessary]),
            related_information: (!related.is_empty()).then_some(related),
            ..Diagnostic::default()
        }
    }

    /// The page of a code, for clients that show a link.
    fn described(&self, code: core::Code) -> Option<CodeDescription> {
        let href = format!("{LIBRARY}codes/{}.md", code.as_str()).parse().ok()?;
        self.world.client.describes_codes.then_some(CodeDescription { href })
    }

    /// What a diagnostic about a definition of the settings begins with, and the parameter of this text that it sets,
    /// if there is one.
    fn setting(&self, file: FileId) -> Option<(String, Option<Span>)> {
        let loaded = self.loaded();
        let name = loaded.sources.name(file).strip_prefix("<-D ")?.strip_suffix('>')?;
        let words = format!("the setting `ptoc.define` has `{name}={}`: ", loaded.sources.text(file));
        let index = loaded.index.file(self.file())?;
        let settable = [
            DefinitionKind::ConstParam,
            DefinitionKind::TypeParam,
            DefinitionKind::FnParam,
            DefinitionKind::Dimension,
            DefinitionKind::Parameter,
        ];
        let parameter = index.definitions.iter().find(|d| d.name == name && settable.contains(&d.kind));
        Some((words, parameter.map(|d| d.span)))
    }

    /// The fixes of a diagnostic that can be applied.
    pub fn actions(&self, d: &core::Diagnostic) -> Vec<CodeAction> {
        let fixes: Vec<&core::Fix> = d.fixes.iter().filter(|f| !f.edits.is_empty()).collect();
        let single = fixes.len() == 1;
        fixes.into_iter().filter_map(|fix| self.action(d, fix, single)).collect()
    }

    fn action(&self, d: &core::Diagnostic, fix: &core::Fix, preferred: bool) -> Option<CodeAction> {
        let mut changes: BTreeMap<String, Vec<TextEdit>> = BTreeMap::new();
        for edit in &fix.edits {
            let text = TextEdit { range: self.range(edit.span), new_text: edit.text.clone() };
            changes.entry(self.uri_of(edit.span.file)?.as_str().to_owned()).or_default().push(text);
        }
        Some(CodeAction {
            title: fix.message.clone(),
            kind: Some(CodeActionKind::QuickFix),
            diagnostics: Some(vec![self.diagnostic(d)]),
            is_preferred: preferred.then_some(true),
            edit: serde_json::from_value(self.world.edit(changes)).ok(),
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
