//! Rename, across all files that import. It is carried out on copies first: if any name would then mean something else,
//! it is refused.

use crate::analysis::{Loaded, load};
use crate::context::Context;
use crate::failure::{Failure, read};
use crate::reply::{Reply, result};
use crate::requests::pto;
use crate::world::{LIBRARY, World};
use lsp_types::{TextDocumentPositionParams, TextEdit, Uri};
use ptoc_diagnostics::{FileId, SourceMap, Span};
use ptoc_driver::files::OpenTexts;
use ptoc_names::index::{Definition, DefinitionKind, KnownName, Meaning, known};
use ptoc_syntax::Tok;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Parameters of `textDocument/rename`.
#[derive(Deserialize)]
struct Rename {
    #[serde(flatten)]
    at: TextDocumentPositionParams,
    #[serde(rename = "newName")]
    new_name: String,
}

/// `textDocument/prepareRename`: the name, if it can be changed.
pub fn prepare(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let at: TextDocumentPositionParams = read(params)?;
    let context = world.known(&at.text_document.uri)?;
    if let Some(names) = pto::names(context) {
        return result(pto::prepare(context, &names, at.position)?);
    }
    let (span, definition) = renamable(context, &at)?;
    result(json!({"range": context.range(span), "placeholder": definition.name.as_str()}))
}

/// The name there, and its definition, which is the author's own.
fn renamable<'a>(context: Context<'a>, at: &TextDocumentPositionParams) -> Result<(Span, &'a Definition), Failure> {
    let Some(occurrence) = context.occurrence(at.position) else {
        return Err(Failure::refused("there is no name here that could be changed"));
    };
    let word = &context.text()[occurrence.span.range()];
    let whose = match occurrence.meaning {
        Meaning::Source(name) => {
            let library = context.world.uri_of(context.loaded(), name.file);
            match context.loaded().index.definition(name) {
                _ if library.is_none_or(|uri| uri.as_str().starts_with(LIBRARY)) => "belongs to the standard library",
                // Which records have the same fields is not decided by names.
                Some(definition) if definition.kind == DefinitionKind::Field => "is a field of records",
                Some(definition) => return Ok((occurrence.span, definition)),
                None => "is not defined in a text",
            }
        }
        Meaning::Module(_) => "is a module: rename its file",
        Meaning::Known(KnownName::Instruction(_)) => "is an instruction",
        Meaning::Known(_) => "is a word of the language",
    };
    Err(Failure::refused(format!("`{word}` {whose}")))
}

/// `textDocument/rename`
pub fn rename(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: Rename = read(params)?;
    let context = world.known(&params.at.text_document.uri)?;
    if let Some(names) = pto::names(context) {
        return result(pto::rename(context, &names, params.at.position, &params.new_name)?);
    }
    let (_, definition) = renamable(context, &params.at)?;
    allowed(&params.new_name)?;
    if params.new_name == definition.name.as_str() {
        return result(context.world.edit(BTreeMap::new()));
    }
    let world = context.world;
    let home = context.location(definition.span).ok_or_else(|| Failure::refused("its file has no place"))?;
    let units = context.reach(definition);
    let mut places: BTreeMap<PathBuf, Vec<std::ops::Range<usize>>> = BTreeMap::new();
    for (_, loaded) in &units {
        let same = |d: &&Definition| {
            d.name == definition.name
                && world.uri_of(loaded, d.span.file).is_some_and(|uri| uri == home.uri)
                && world.range(loaded, d.span) == home.range
        };
        let Some(d) = loaded.index.files().flat_map(|(_, f)| &f.definitions).find(same) else { continue };
        for o in loaded.index.occurrences(d.span) {
            let all = places.entry(loaded.place(o.span.file)).or_default();
            if !all.contains(&o.span.range()) {
                all.push(o.span.range());
            }
        }
    }
    places.values_mut().for_each(|all| all.sort_by_key(|r| r.start));
    unchanged(world, &units, &places, &params.new_name)?;
    let mut changes: BTreeMap<String, Vec<TextEdit>> = BTreeMap::new();
    for (path, ranges) in &places {
        let uri: Uri = world.uri(path).ok_or_else(|| Failure::refused(format!("`{}` has no place", path.display())))?;
        let (_, loaded) = units.iter().find(|(p, _)| p == path).ok_or_else(|| {
            Failure::refused(format!("`{}` is neither open nor in the workspace, and names it", path.display()))
        })?;
        let file = loaded.file();
        let edits = ranges.iter().map(|r| TextEdit {
            range: world.range(loaded, Span::new(file, r.start as u32, r.end as u32)),
            new_text: params.new_name.clone(),
        });
        changes.insert(uri.as_str().to_owned(), edits.collect());
    }
    result(world.edit(changes))
}

/// Whether this is a name that an author may give.
fn allowed(name: &str) -> Result<(), Failure> {
    let mut sources = SourceMap::new();
    let tokens = ptoc_syntax::tokens(sources.add("name", name), name);
    let single = matches!(&tokens[..], [(_, span)] if span.range() == (0..name.len()));
    match tokens.first() {
        Some((Tok::Name, _)) if single => {}
        Some((tok, _)) if single && tok.is_soft_keyword() => {}
        Some((tok, _)) if single && tok.is_keyword() => {
            return Err(Failure::refused(format!("`{name}` is a word of the language")));
        }
        _ => return Err(Failure::refused(format!("`{name}` is no name: letters, digits and `_`, no digit first"))),
    }
    let taken = match known(name) {
        Some(KnownName::DType) => "a dtype",
        Some(KnownName::Loc) => "a location",
        Some(KnownName::Instruction(_)) => "an instruction",
        Some(KnownName::Function) => "a function of the language",
        Some(KnownName::Word | KnownName::Pipe) => "a word of the language",
        None => return Ok(()),
    };
    Err(Failure::refused(format!("`{name}` is the name of {taken}")))
}

/// Carries the edits out on copies and compares what every name stands for.
fn unchanged(
    world: &World,
    units: &[(PathBuf, Loaded)],
    places: &BTreeMap<PathBuf, Vec<std::ops::Range<usize>>>,
    new: &str,
) -> Result<(), Failure> {
    let mut texts: OpenTexts = world.texts();
    for (path, loaded) in units {
        let Some(ranges) = places.get(path) else { continue };
        let mut text = loaded.sources.text(loaded.file()).to_owned();
        ranges.iter().rev().for_each(|r| text.replace_range(r.clone(), new));
        texts.texts.insert(path.clone(), text);
    }
    for (path, old) in units {
        let Some(text) = texts.texts.get(path).cloned().or_else(|| Some(old.sources.text(old.file()).to_owned()))
        else {
            continue;
        };
        let renamed = load(path, &text, &texts);
        let clash = || {
            let path = path.file_name().unwrap_or_default().to_string_lossy();
            Failure::refused(format!("`{new}` is taken: in `{path}` names would mean something else, or nothing"))
        };
        if renamed.errors > old.errors {
            return Err(clash());
        }
        let edits: Vec<_> = old.sources.files().map(|file| places.get(&old.place(file))).collect();
        // The place of a byte after the edits, all of which replace the same name.
        let moved = |file: FileId, offset: u32| {
            let here = edits.get(file.0 as usize).copied().flatten();
            let before = here.map_or(0, |all| all.partition_point(|r| r.start < offset as usize));
            let longer = here.and_then(|all| all.first()).map_or(0, |r| new.len() as i64 - r.len() as i64);
            (i64::from(offset) + before as i64 * longer) as u32
        };
        let meaning = |m: Meaning| match m {
            Meaning::Source(s) => Meaning::Source(Span::new(s.file, moved(s.file, s.start), moved(s.file, s.end))),
            other => other,
        };
        for ((_, before), (_, after)) in old.index.files().zip(renamed.index.files()) {
            let same =
                before.occurrences.len() == after.occurrences.len()
                    && before.occurrences.iter().zip(&after.occurrences).all(|(a, b)| {
                        moved(a.span.file, a.span.start) == b.span.start && meaning(a.meaning) == b.meaning
                    });
            if !same {
                return Err(clash());
            }
        }
    }
    Ok(())
}
