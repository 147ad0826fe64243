//! `ptoc.toml`: target, definitions and lints of a project, its folders and files.
//!
//! A source file has the files of that name in its folder and in those around it, up to one that says `root = true`.
//! The nearest counts first; in each, tables of `[[files]]` whose pattern fits count before what is said for all files.

mod lints;
mod read;

pub use lints::{Level, Lints};
pub use read::TEMPLATE;

use crate::defs::Definition;
use crate::files::{no_character, reason};
use ptoc_diagnostics::{Diagnostic, Diagnostics, SourceMap, codes};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The name of the file.
pub const FILE: &str = "ptoc.toml";

/// What the files say of one source file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Project {
    /// The target.
    pub target: Option<String>,
    /// Constants, dimensions, capacities. They apply where there is something of that name.
    pub define: Vec<Definition>,
    /// Where each of them is set, as a message says it: "line 3 of `ptoc.toml`".
    pub places: BTreeMap<String, String>,
    /// Levels of warnings.
    pub lints: Lints,
    /// The files that were read, nearest first.
    pub files: Vec<PathBuf>,
}

impl Project {
    /// What `other`, which is nearer, says counts more.
    fn overlay(&mut self, other: Project) {
        if other.target.is_some() {
            self.target = other.target;
        }
        for definition in other.define {
            self.define.retain(|d| d.name != definition.name);
            self.define.push(definition);
        }
        self.places.extend(other.places);
        self.lints.overlay(other.lints);
    }
}

/// A project with the texts that its diagnostics point into.
#[derive(Debug, Default)]
pub struct FoundProject {
    /// What holds for the source file.
    pub project: Project,
    /// Texts of the files.
    pub sources: SourceMap,
    /// What is wrong with them.
    pub diagnostics: Diagnostics,
}

/// What holds for a source file, which need not exist.
pub fn find(source: &Path) -> FoundProject {
    let mut found = FoundProject::default();
    let Ok(absolute) = std::path::absolute(source) else { return found };
    let folder = folder_of(&absolute);
    let place = absolute.file_name().map_or_else(|| folder.clone(), |name| folder.join(name));
    let mut nearest_first = Vec::new();
    for folder in folder.ancestors() {
        let path = folder.join(FILE);
        let text = match text_of(&path) {
            Ok(None) => continue,
            Ok(Some(text)) => text,
            Err(d) => {
                found.diagnostics.push(*d);
                continue;
            }
        };
        let said = read::read(&shown(&path), &text, place.strip_prefix(folder).unwrap_or(&place), &mut found);
        found.project.files.push(path);
        nearest_first.push(said.project);
        if said.root {
            break;
        }
    }
    for said in nearest_first.into_iter().rev() {
        found.project.overlay(said);
    }
    found
}

/// Where files of a project are looked for, nearest first: in these paths there are some, or may come to be.
pub fn places(source: &Path) -> Vec<PathBuf> {
    let Ok(absolute) = std::path::absolute(source) else { return Vec::new() };
    folder_of(&absolute).ancestors().map(|folder| folder.join(FILE)).collect()
}

/// The folder of a file as it is named on disk, so that links do not hide the folders around it.
fn folder_of(absolute: &Path) -> PathBuf {
    let folder = absolute.parent().unwrap_or(absolute);
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// The text of a file, if there is one. What is there and cannot be read is an error: without it, everything would be
/// compiled for something else. A folder that may not be searched has none.
fn text_of(path: &Path) -> Result<Option<String>, Box<Diagnostic>> {
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let refuse = |code, why: &str, help: &str| {
        let message = format!("cannot read `{}`: {why}", shown(path));
        Err(Box::new(Diagnostic::global(code, message).with_help(help)))
    };
    let readable = format!("make it a file that you may read, or remove it: `{FILE}` says what sources here are for");
    match path.metadata() {
        Err(e) => return refuse(codes::CANNOT_READ, &reason(&e), &readable),
        Ok(found) if found.is_dir() => return refuse(codes::CANNOT_READ, "it is a directory", &readable),
        // Of a pipe nobody knows whether it ever ends.
        Ok(found) if !found.is_file() => {
            return refuse(codes::CANNOT_READ, "it is a pipe or a device, and no file", &readable);
        }
        Ok(_) => {}
    }
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) => return refuse(codes::CANNOT_READ, &reason(&e), &readable),
    };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(e) => {
            let (byte, _, line) = no_character(&e);
            let why = format!("it is not UTF-8: byte {byte:#04x} in line {line} belongs to no character");
            refuse(codes::NOT_UTF8, &why, "save the file as UTF-8")
        }
    }
}

/// A path as messages show it: from the working directory, if it is below.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).ok();
    let below = here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
    below.unwrap_or_else(|| path.to_owned()).display().to_string()
}
