//! Call hierarchy: functions that call functions, programs that launch kernels.

use crate::context::Context;
use crate::failure::{Failure, read};
use crate::reply::{Reply, result};
use crate::world::{World, path};
use lsp_types::{Position, Range, TextDocumentPositionParams, Uri};
use ptoc_names::index::{Definition, DefinitionKind, Meaning, OccurrenceAccess};
use serde::Deserialize;
use serde_json::{Value, json};

/// What can call and be called.
fn callable(kind: DefinitionKind) -> bool {
    matches!(kind, DefinitionKind::Kernel | DefinitionKind::Program | DefinitionKind::Function)
}

/// `textDocument/prepareCallHierarchy`
pub fn prepare(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let at: TextDocumentPositionParams = read(params)?;
    let context = world.known(&at.text_document.uri)?;
    let found = context.definition(at.position).filter(|(_, d)| callable(d.kind));
    result(found.and_then(|(_, d)| item(context, d)).map(|item| vec![item]))
}

fn item(context: Context<'_>, d: &Definition) -> Option<Value> {
    let uri = context.world.uri_of(context.loaded(), d.span.file)?;
    Some(json!({
        "name": d.name.as_str(), "kind": super::symbols::kind(d.kind), "detail": d.kind.words(), "uri": uri,
        "range": context.range(d.whole), "selectionRange": context.range(d.span),
    }))
}

/// Parameters of both directions.
#[derive(Deserialize)]
struct Params {
    item: Item,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    name: String,
    uri: Uri,
    selection_range: Range,
}

/// `callHierarchy/incomingCalls`: who calls it, in all files of the workspace.
pub fn incoming(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let Params { item } = read(params)?;
    let mut found = Vec::new();
    for (file, loaded) in world.with_words(&[&item.name]) {
        let Some(uri) = world.uri(&file) else { continue };
        let same = |d: &&Definition| {
            d.name == item.name.as_str()
                && world.uri_of(&loaded, d.span.file).is_some_and(|u| u == item.uri)
                && world.range(&loaded, d.span) == item.selection_range
        };
        let callee = loaded.index.files().flat_map(|(_, f)| &f.definitions).find(same).map(|d| d.span);
        let (Some(callee), Some(here)) = (callee, loaded.index.file(loaded.file())) else { continue };
        for caller in here.definitions.iter().filter(|d| callable(d.kind)) {
            let calls = here.occurrences.iter().filter(|o| {
                o.meaning == Meaning::Source(callee)
                    && o.access == OccurrenceAccess::Read
                    && caller.whole.contains(o.span)
            });
            let ranges: Vec<Range> = calls.map(|o| world.range(&loaded, o.span)).collect();
            if !ranges.is_empty() {
                let from = json!({
                    "name": caller.name.as_str(), "kind": super::symbols::kind(caller.kind),
                    "detail": caller.kind.words(),
                    "uri": uri, "range": world.range(&loaded, caller.whole),
                    "selectionRange": world.range(&loaded, caller.span),
                });
                found.push(json!({"from": from, "fromRanges": ranges}));
            }
        }
    }
    result(found)
}

/// `callHierarchy/outgoingCalls`: what it calls. The item may be in a file that is not open.
pub fn outgoing(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let Params { item: asked } = read(params)?;
    let Some((file, loaded)) = world.with_words(&[&asked.name]).into_iter().find(|(p, _)| *p == path(&asked.uri))
    else {
        return result(json!([]));
    };
    let here = loaded.index.file(loaded.file());
    let at = |p: Position| (p.line, p.character);
    let is_it = |d: &&Definition| at(world.range(&loaded, d.span).start) == at(asked.selection_range.start);
    let (Some(here), Some(_)) = (here, world.uri(&file)) else { return result(json!([])) };
    let Some(caller) = here.definitions.iter().find(is_it) else { return result(json!([])) };
    let mut found: Vec<(ptoc_diagnostics::Span, Vec<Range>)> = Vec::new();
    for o in here.occurrences.iter().filter(|o| o.access == OccurrenceAccess::Read && caller.whole.contains(o.span)) {
        let Meaning::Source(name) = o.meaning else { continue };
        if !loaded.index.definition(name).is_some_and(|d| callable(d.kind)) {
            continue;
        }
        match found.iter_mut().find(|(n, _)| *n == name) {
            Some((_, ranges)) => ranges.push(world.range(&loaded, o.span)),
            None => found.push((name, vec![world.range(&loaded, o.span)])),
        }
    }
    let called = found.into_iter().filter_map(|(name, ranges)| {
        let d = loaded.index.definition(name)?;
        let to = json!({
            "name": d.name.as_str(), "kind": super::symbols::kind(d.kind), "detail": d.kind.words(),
            "uri": world.uri_of(&loaded, d.span.file)?, "range": world.range(&loaded, d.whole),
            "selectionRange": world.range(&loaded, d.span),
        });
        Some(json!({"to": to, "fromRanges": ranges}))
    });
    result(called.collect::<Vec<_>>())
}
