//! Modules: those of the standard library, and files beside the text.

use super::{Imports, Proposal, Rank, kinds};
use crate::context::Context;
use crate::cursor::Cursor;
use crate::world::path as file_of;
use ptoc_names::{Exported, exported, library};
use ptoc_syntax::Tok;
use std::fs;

fn proposal(item: &Exported, rank: Rank, detail: String) -> Proposal {
    let kind = if item.function { kinds::FUNCTION } else { kinds::CONSTANT };
    Proposal::new(item.name.as_str(), kind, rank, detail)
}

/// Items of the standard library that the text does not import yet, each with its `use` line.
pub fn items(context: Context<'_>) -> Vec<Proposal> {
    let scope = &context.loaded().unit.modules.root().scope;
    let imports = Imports::of(context);
    let new = library().iter().filter(|item| !scope.contains_key(item.name.as_str()));
    new.map(|item| {
        let path = format!("{}::{}", item.module, item.name);
        let more = Some(imports.edit(&path));
        Proposal { more, ..proposal(item, Rank::Library, format!("use {path}")) }
    })
    .collect()
}

/// Modules below a path: parts of `std`, files and directories beside the text.
pub fn modules(context: Context<'_>, below: &[&str]) -> Vec<Proposal> {
    let mut found: Vec<String> = Vec::new();
    if below.is_empty() {
        found.push("std".into());
    }
    if let ["std", rest @ ..] = below {
        let inside = ptoc_stdlib::MODULES.iter().filter(|(at, ..)| at.len() > rest.len() && at.starts_with(rest));
        found.extend(inside.map(|(at, ..)| at[rest.len()].to_owned()));
    } else if let Some(here) = file_of(context.uri).parent() {
        let folder = below.iter().fold(here.to_path_buf(), |path, part| path.join(part));
        let this = file_of(context.uri);
        for entry in fs::read_dir(folder).into_iter().flatten().flatten().take(1000) {
            let path = entry.path();
            let module = path.extension().is_some_and(|e| e == "tile") && path != this;
            let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
            if (module || path.is_dir())
                && stem.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && !stem.is_empty()
            {
                found.push(stem.to_owned());
            }
        }
    }
    found.sort();
    found.dedup();
    found.into_iter().map(|name| Proposal::new(name, kinds::MODULE, Rank::Fits, "module")).collect()
}

/// What can follow `use a::b::`.
pub fn path(context: Context<'_>, cursor: &Cursor<'_>) -> Vec<Proposal> {
    let mut parts = Vec::new();
    let mut n = 1;
    while cursor.previous(n) == Some(Tok::PathSep) && cursor.previous(n + 1) == Some(Tok::Name) {
        parts.insert(0, cursor.previous_text(n + 1));
        n += 2;
    }
    if cursor.previous(n) != Some(Tok::Use) {
        return Vec::new();
    }
    let mut found = modules(context, &parts);
    let module = parts.join("::");
    if parts.first() == Some(&"std") {
        let inside = library().iter().filter(|item| item.module == module);
        found.extend(inside.map(|item| proposal(item, Rank::Fits, item.doc.clone())));
    } else if let Some(here) = file_of(context.uri).parent() {
        let file = parts.iter().fold(here.to_path_buf(), |path, part| path.join(part)).with_extension("tile");
        let open = context.world.texts().texts.remove(&file);
        let text = open.or_else(|| ptoc_driver::files::read_module(&file).ok()).unwrap_or_default();
        found.extend(exported(&module, &text).iter().map(|item| proposal(item, Rank::Fits, item.doc.clone())));
    }
    found
}
