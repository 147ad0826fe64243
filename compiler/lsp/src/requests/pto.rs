//! Names of PTO text: what is asked of a `.pto` file is answered by the text itself, and not by its translation, which
//! has other names.

use crate::context::Context;
use crate::failure::Failure;
use lsp_types::{DocumentHighlight, DocumentHighlightKind, DocumentSymbol, Location, Position, SymbolKind, TextEdit};
use ptoc_driver::pto::{Defined, NameIndex, is_pto};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The names of the text, if it is PTO text.
pub fn names(context: Context<'_>) -> Option<NameIndex> {
    is_pto(context.loaded().sources.name(context.file())).then(|| NameIndex::of(context.text()))
}

fn location(context: Context<'_>, range: std::ops::Range<usize>) -> Location {
    Location { uri: context.uri.clone(), range: context.range_of(range) }
}

/// Where the name at a position is defined.
pub fn definition(context: Context<'_>, names: &NameIndex, at: Position) -> Option<Location> {
    let found = names.at(context.offset(at))?;
    Some(location(context, names.definitions[found.definition].range.clone()))
}

/// All places of the name at a position, with its definition if that is asked for.
pub fn references(context: Context<'_>, names: &NameIndex, at: Position, definition: bool) -> Option<Vec<Location>> {
    let found = names.at(context.offset(at))?;
    let all = names.of_definition(found.definition).filter(|o| definition || !o.defines);
    Some(all.map(|o| location(context, o.range.clone())).collect())
}

/// All places of the name at a position.
pub fn highlights(context: Context<'_>, names: &NameIndex, at: Position) -> Option<Vec<DocumentHighlight>> {
    let found = names.at(context.offset(at))?;
    let kind = |defines| if defines { DocumentHighlightKind::Write } else { DocumentHighlightKind::Read };
    let all = names.of_definition(found.definition);
    Some(
        all.map(|o| DocumentHighlight { range: context.range_of(o.range.clone()), kind: Some(kind(o.defines)) })
            .collect(),
    )
}

/// The name at a position as one that can be changed.
pub fn prepare(context: Context<'_>, names: &NameIndex, at: Position) -> Result<Value, Failure> {
    let Some(found) = names.at(context.offset(at)) else {
        return Err(Failure::refused("there is no name here that could be changed"));
    };
    let name = &names.definitions[found.definition].name;
    Ok(json!({"range": context.range_of(found.range.clone()), "placeholder": name}))
}

/// Another name for what is named at a position.
pub fn rename(context: Context<'_>, names: &NameIndex, at: Position, to: &str) -> Result<Value, Failure> {
    let Some(found) = names.at(context.offset(at)) else {
        return Err(Failure::refused("there is no name here that could be changed"));
    };
    let name = names.renamed(found.definition, to).map_err(Failure::refused)?;
    let edits = names.of_definition(found.definition);
    let edits = edits.map(|o| TextEdit { range: context.range_of(o.range.clone()), new_text: name.clone() });
    Ok(context.world.edit(BTreeMap::from([(context.uri.as_str().to_owned(), edits.collect())])))
}

/// Functions, with their arguments, tiles and views.
#[allow(deprecated, reason = "the protocol still has the field")]
pub fn outline(context: Context<'_>, names: &NameIndex) -> Vec<DocumentSymbol> {
    let symbol = |n: usize, children| {
        let d = &names.definitions[n];
        let (kind, detail) = match d.kind {
            Defined::Function => (SymbolKind::Function, "func.func"),
            Defined::Argument => (SymbolKind::Variable, "argument"),
            _ => (SymbolKind::Variable, "value"),
        };
        DocumentSymbol {
            name: d.name.clone(),
            detail: Some(detail.to_owned()),
            kind,
            tags: None,
            deprecated: None,
            range: context.range_of(d.whole.clone()),
            selection_range: context.range_of(d.range.clone()),
            children,
        }
    };
    let shown = |kind| matches!(kind, Defined::Argument | Defined::Result { shown: true });
    let all = 0..names.definitions.len();
    let functions = all.clone().filter(|n| names.definitions[*n].kind == Defined::Function);
    let with_values = functions.map(|f| {
        let inside =
            all.clone().filter(|n| names.definitions[*n].function == Some(f) && shown(names.definitions[*n].kind));
        symbol(f, Some(inside.map(|n| symbol(n, None)).collect()))
    });
    with_values.collect()
}

/// What the name at a position is: the first line of what defines it.
pub fn hover(context: Context<'_>, names: &NameIndex, at: Position) -> Option<Value> {
    let found = names.at(context.offset(at))?;
    let definition = &names.definitions[found.definition];
    let whole = context.text().get(definition.whole.clone())?;
    let line = whole.lines().next().unwrap_or_default().trim_end();
    let value = format!("```pto\n{line}\n```\n");
    Some(json!({"contents": {"kind": "markdown", "value": value}, "range": context.range_of(found.range.clone())}))
}
