//! The outline of a text, and items of the workspace by name.

use crate::context::Context;
use crate::failure::{Failure, read};
use crate::reply::{Reply, result};
use crate::requests::pto;
use crate::world::World;
use lsp_types::{DocumentSymbol, DocumentSymbolParams, SymbolKind, WorkspaceSymbolParams};
use ptoc_names::index::{Definition, DefinitionKind};
use serde_json::{Value, json};

/// `textDocument/documentSymbol`: items in source order, with what is defined in them.
pub fn document(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: DocumentSymbolParams = read(params)?;
    let context = world.known(&params.text_document.uri)?;
    if let Some(names) = pto::names(context) {
        return result(pto::outline(context, &names));
    }
    let index = context.loaded().index.file(context.file());
    let definitions: Vec<&Definition> = index.into_iter().flat_map(|f| &f.definitions).collect();
    let mut symbols: Vec<DocumentSymbol> = Vec::new();
    let mut at = 0;
    while let Some(item) = definitions.get(at) {
        let inside = definitions[at + 1..].iter().take_while(|d| item.whole.contains(d.span));
        let inside: Vec<&&Definition> = inside.collect();
        at += 1 + inside.len();
        let children = inside.into_iter().filter(|d| shown(d.kind)).map(|d| symbol(context, d)).collect();
        symbols.push(DocumentSymbol { children: Some(children), ..symbol(context, item) });
    }
    result(symbols)
}

/// Block variables and indices say nothing in an outline.
fn shown(kind: DefinitionKind) -> bool {
    !matches!(kind, DefinitionKind::BoundIndex | DefinitionKind::LoopVariable | DefinitionKind::Field)
}

/// How the protocol calls what ptoc knows.
pub fn kind(kind: DefinitionKind) -> SymbolKind {
    match kind {
        DefinitionKind::Kernel | DefinitionKind::Program | DefinitionKind::Function | DefinitionKind::FnParam => {
            SymbolKind::Function
        }
        DefinitionKind::Constant | DefinitionKind::ConstParam => SymbolKind::Constant,
        DefinitionKind::Atom => SymbolKind::Struct,
        DefinitionKind::TypeParam | DefinitionKind::Dimension => SymbolKind::TypeParameter,
        DefinitionKind::Tensor => SymbolKind::Array,
        DefinitionKind::Field => SymbolKind::Field,
        DefinitionKind::Parameter
        | DefinitionKind::Let
        | DefinitionKind::Variable
        | DefinitionKind::LoopVariable
        | DefinitionKind::BoundIndex => SymbolKind::Variable,
    }
}

fn detail(kind: DefinitionKind) -> &'static str {
    match kind {
        DefinitionKind::Function => "fn",
        DefinitionKind::Constant => "const",
        other => other.words(),
    }
}

#[allow(deprecated, reason = "the protocol still has the field")]
fn symbol(context: Context<'_>, d: &Definition) -> DocumentSymbol {
    DocumentSymbol {
        name: d.name.to_string(),
        detail: Some(detail(d.kind).to_owned()),
        kind: kind(d.kind),
        tags: None,
        deprecated: None,
        range: context.range(d.whole),
        selection_range: context.range(d.span),
        children: None,
    }
}

/// `workspace/symbol`: items whose names have the letters of the query, in this order.
pub fn workspace(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: WorkspaceSymbolParams = read(params)?;
    let query = params.query.to_lowercase();
    let mut found = Vec::new();
    for (path, loaded) in world.with_words(&[]) {
        let (Some(uri), Some(file)) = (world.uri(&path), loaded.index.file(loaded.file())) else { continue };
        // Items are what is defined nowhere inside of another item.
        let mut end = 0;
        for d in &file.definitions {
            if d.span.start < end {
                continue;
            }
            end = d.whole.end;
            if matches(&query, &d.name.to_lowercase()) {
                let location = json!({"uri": uri, "range": world.range(&loaded, d.span)});
                found.push(json!({"name": d.name.as_str(), "kind": kind(d.kind), "location": location,
                                  "containerName": path.file_stem().unwrap_or_default().to_string_lossy()}));
            }
        }
    }
    result(found)
}

/// Whether `name` has the letters of `query`, in their order.
fn matches(query: &str, name: &str) -> bool {
    let mut rest = name.chars();
    query.chars().all(|q| rest.any(|c| c == q))
}
