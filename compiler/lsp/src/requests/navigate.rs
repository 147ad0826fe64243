//! Definition, type definition, references, highlights.

use crate::context::Context;
use crate::failure::{Failure, read};
use crate::reply::{Reply, result};
use crate::requests::pto;
use crate::world::World;
use lsp_types::{DocumentHighlight, DocumentHighlightKind, Location, TextDocumentPositionParams};
use ptoc_diagnostics::Span;
use ptoc_names::index::{Definition, DefinitionKind, Meaning, OccurrenceAccess};
use serde::Deserialize;
use serde_json::Value;

/// `textDocument/definition`, `textDocument/declaration`
pub fn definition(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let at: TextDocumentPositionParams = read(params)?;
    let context = world.known(&at.text_document.uri)?;
    if let Some(names) = pto::names(context) {
        return result(pto::definition(context, &names, at.position));
    }
    let found = context.occurrence(at.position).and_then(|o| match o.meaning {
        Meaning::Source(name) => context.location(name),
        Meaning::Module(file) => context.location(Span::new(file, 0, 0)),
        Meaning::Known(_) => None,
    });
    result(found)
}

/// `textDocument/typeDefinition`: what the type that is written for a name is made of: parameters, constants, atoms.
pub fn type_definition(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let at: TextDocumentPositionParams = read(params)?;
    let context = world.known(&at.text_document.uri)?;
    let Some((_, definition)) = context.definition(at.position) else { return result(Value::Null) };
    result(types(context, definition))
}

fn types(context: Context<'_>, definition: &Definition) -> Vec<Location> {
    let index = &context.loaded().index;
    let written = definition.ty.or(definition.value.filter(|_| definition.kind != DefinitionKind::LoopVariable));
    let (Some(ty), Some(file)) = (written, index.file(definition.span.file)) else { return Vec::new() };
    let mut found: Vec<Span> = Vec::new();
    for o in file.occurrences.iter().filter(|o| ty.contains(o.span)) {
        let Meaning::Source(name) = o.meaning else { continue };
        let kind = index.definition(name).map(|d| d.kind);
        let is_type = matches!(kind, Some(DefinitionKind::TypeParam | DefinitionKind::Atom | DefinitionKind::Constant));
        if is_type && !found.contains(&name) {
            found.push(name);
        }
    }
    found.into_iter().filter_map(|name| context.location(name)).collect()
}

/// Parameters of `textDocument/references`.
#[derive(Deserialize)]
struct References {
    #[serde(flatten)]
    at: TextDocumentPositionParams,
    context: ReferenceContext,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReferenceContext {
    include_declaration: bool,
}

/// `textDocument/references`: in all files of the workspace and all open texts.
pub fn references(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: References = read(params)?;
    let context = world.known(&params.at.text_document.uri)?;
    if let Some(names) = pto::names(context) {
        return result(pto::references(context, &names, params.at.position, params.context.include_declaration));
    }
    let Some((_, definition)) = context.definition(params.at.position) else { return result(Value::Null) };
    let found = everywhere(context, definition).into_iter();
    let wanted = found.filter(|(_, access)| params.context.include_declaration || *access != OccurrenceAccess::Define);
    result(wanted.map(|(location, _)| location).collect::<Vec<_>>())
}

/// All occurrences of a definition, by file, in source order.
fn everywhere(context: Context<'_>, definition: &Definition) -> Vec<(Location, OccurrenceAccess)> {
    let world = context.world;
    let Some(home) = context.location(definition.span) else { return Vec::new() };
    let mut found: Vec<(Location, OccurrenceAccess)> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (_, loaded) in context.reach(definition) {
        // The definition is another span in every unit, and the same place.
        let same = |d: &&Definition| {
            d.name == definition.name
                && world.uri_of(&loaded, d.span.file).is_some_and(|uri| uri == home.uri)
                && world.range(&loaded, d.span) == home.range
        };
        let Some(name) = loaded.index.files().flat_map(|(_, f)| &f.definitions).find(same).map(|d| d.span) else {
            continue;
        };
        for o in loaded.index.occurrences(name) {
            let Some(uri) = world.uri_of(&loaded, o.span.file) else { continue };
            let uri_text = uri.as_str().to_owned();
            let location = Location { uri, range: world.range(&loaded, o.span) };
            if seen.insert((uri_text, location.range.start.line, location.range.start.character)) {
                found.push((location, o.access));
            }
        }
    }
    found.sort_by(|(a, _), (b, _)| {
        let key = |l: &Location| (l.uri.as_str().to_owned(), l.range.start.line, l.range.start.character);
        key(a).cmp(&key(b))
    });
    found
}

/// `textDocument/documentHighlight`
pub fn highlights(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let at: TextDocumentPositionParams = read(params)?;
    let context = world.known(&at.text_document.uri)?;
    if let Some(names) = pto::names(context) {
        return result(pto::highlights(context, &names, at.position));
    }
    let Some(here) = context.occurrence(at.position) else { return result(Value::Null) };
    let file = context.loaded().index.file(context.file());
    let same = file.into_iter().flat_map(|f| &f.occurrences).filter(|o| match here.meaning {
        // Words that every file knows are themselves.
        Meaning::Known(_) => {
            o.meaning == here.meaning && context.text()[o.span.range()] == context.text()[here.span.range()]
        }
        _ => o.meaning == here.meaning,
    });
    let kind = |access| match access {
        OccurrenceAccess::Define | OccurrenceAccess::Write => DocumentHighlightKind::Write,
        OccurrenceAccess::Read => DocumentHighlightKind::Read,
        OccurrenceAccess::Import | OccurrenceAccess::Mention => DocumentHighlightKind::Text,
    };
    let all = same.map(|o| DocumentHighlight { range: context.range(o.span), kind: Some(kind(o.access)) });
    result(all.collect::<Vec<_>>())
}
