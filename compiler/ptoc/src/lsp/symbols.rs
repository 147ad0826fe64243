//! The outline of a text: its items.

use super::documents::Document;
use super::position::Encoding;
use lsp_types::{DocumentSymbol, Range, SymbolKind};
use ptoc_diagnostics::{SourceMap, Span};
use ptoc_syntax::ast::{Item, ItemKind};

/// Kernels, programs, functions, constants and atoms, in source order.
pub fn symbols(document: &Document, encoding: Encoding) -> Vec<DocumentSymbol> {
    let mut sources = SourceMap::new();
    let file = sources.add("outline", document.text.as_str());
    let parsed = ptoc_syntax::parse(file, &document.text);
    let range = |span: Span| {
        let at = |offset: u32| document.lines.position(&document.text, offset as usize, encoding);
        Range { start: at(span.start), end: at(span.end) }
    };
    parsed.file.items.iter().filter_map(|item| symbol(item, &range)).collect()
}

#[allow(deprecated, reason = "the protocol still has the field")]
fn symbol(item: &Item, range: &dyn Fn(Span) -> Range) -> Option<DocumentSymbol> {
    let (name, kind, what) = match &item.kind {
        ItemKind::Kernel(k) => (&k.name, SymbolKind::Function, "kernel"),
        ItemKind::Program(p) => (&p.name, SymbolKind::Function, "program"),
        ItemKind::Fn(f) => (&f.name, SymbolKind::Function, "fn"),
        ItemKind::Const(c) => (&c.name, SymbolKind::Constant, "const"),
        ItemKind::Atom(a) => (&a.name, SymbolKind::Struct, "atom"),
        ItemKind::Use(_) | ItemKind::Error => return None,
    };
    Some(DocumentSymbol {
        name: name.name.to_string(),
        detail: Some(what.to_owned()),
        kind,
        tags: None,
        deprecated: None,
        range: range(item.span),
        selection_range: range(name.span),
        children: None,
    })
}
