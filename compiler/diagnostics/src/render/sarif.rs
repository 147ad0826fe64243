//! `--message-format sarif`: SARIF 2.1.0 (OASIS), one document for all diagnostics of a call.
//!
//! Columns count Unicode scalars from 1, the end exclusive, as SARIF's `unicodeCodePoints` are. A fix is a `fix`,
//! advice in words is a part of the message, other places are related locations, and every code that was found is a
//! rule with its page.

use crate::{Code, CodeInfo, Diagnostic, Severity, SourceMap, Span};
use serde_json::{Value, json};

/// A result of the document.
pub fn result(d: &Diagnostic, sources: &SourceMap) -> Value {
    let advice = d.fixes.iter().map(|fix| fix.message.as_str());
    let more = d.notes.iter().map(String::as_str).chain(advice).map(|line| format!("\n{line}"));
    let text = format!("{}{}", d.message, more.collect::<String>());
    let mut result = json!({
        "ruleId": d.code.as_str(),
        "level": level(d.severity),
        "message": {"text": text},
        "locations": d.span.map(|span| location(sources, span, &d.label)).into_iter().collect::<Vec<_>>(),
    });
    let related: Vec<Value> = d.labels.iter().map(|l| location(sources, l.span, &l.message)).collect();
    if !related.is_empty() {
        result["relatedLocations"] = json!(related);
    }
    let fixes: Vec<Value> = d
        .fixes
        .iter()
        .filter(|fix| !fix.edits.is_empty())
        .map(|fix| {
            // One change for each artifact, with its replacements.
            let mut changes: Vec<(String, Vec<Value>)> = Vec::new();
            for edit in &fix.edits {
                let name = uri(sources.name(edit.span.file));
                let deleted = region(sources, edit.span);
                let replacement = json!({"deletedRegion": deleted, "insertedContent": {"text": edit.text}});
                match changes.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, list)) => list.push(replacement),
                    None => changes.push((name, vec![replacement])),
                }
            }
            let change = |(uri, list)| json!({"artifactLocation": {"uri": uri}, "replacements": Value::Array(list)});
            json!({"description": {"text": fix.message},
               "artifactChanges": changes.into_iter().map(change).collect::<Vec<_>>()})
        })
        .collect();
    if !fixes.is_empty() {
        result["fixes"] = json!(fixes);
    }
    result
}

/// The document.
pub fn document(results: &[Value], version: &str) -> String {
    let mut codes: Vec<&str> = results.iter().filter_map(|r| r["ruleId"].as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    let rules: Vec<Value> = codes.into_iter().map(rule).collect();
    let driver = json!({"name": "ptoc", "semanticVersion": version, "rules": rules});
    let run = json!({"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results});
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run],
    });
    format!("{document:#}\n")
}

fn rule(code: &str) -> Value {
    match Code::find(code) {
        Some(&CodeInfo { name, title, page, .. }) => json!({
            "id": code, "name": name, "shortDescription": {"text": title}, "help": {"text": title, "markdown": page},
        }),
        None => json!({"id": code}),
    }
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn location(sources: &SourceMap, span: Span, message: &str) -> Value {
    let place = json!({"artifactLocation": {"uri": uri(sources.name(span.file))}, "region": region(sources, span)});
    let mut location = json!({"physicalLocation": place});
    if !message.is_empty() {
        location["message"] = json!({"text": message});
    }
    location
}

fn region(sources: &SourceMap, span: Span) -> Value {
    let (start, end) = sources.range(span);
    json!({"startLine": start.line, "startColumn": start.column, "endLine": end.line, "endColumn": end.column})
}

/// The name of a file as a relative or absolute reference. What is no file has a scheme of its own.
fn uri(name: &str) -> String {
    let (scheme, path) = match name.strip_prefix('<').and_then(|n| n.split_once('>')) {
        Some((kind, rest)) => (format!("ptoc:{}", kind.replace(' ', "/")), rest),
        None => (String::new(), name),
    };
    let absolute = if scheme.is_empty() && path.starts_with('/') { "file://" } else { "" };
    let mut out = format!("{scheme}{absolute}");
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => out.push(byte.into()),
            b'\\' => out.push('/'),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn names_are_references() {
        assert_eq!(uri("my kernels/ä.tile"), "my%20kernels/%C3%A4.tile");
        assert_eq!(uri("/a/b.tile"), "file:///a/b.tile");
        assert_eq!(uri("<std>/act.tile"), "ptoc:std/act.tile");
        assert_eq!(uri("<-D BM>"), "ptoc:-D/BM");
    }
}
