//! `ptoc.toml`: target, definitions and lints of a project, its folders and files.
//!
//! A source file has the files of that name in its folder and in those around it, up to one that says `root = true`.
//! The nearest counts first; in each, tables of `[[files]]` whose pattern fits count before what is said for all files.

mod lints;
mod read;

pub use lints::{Level, Lints};
pub use read::TEMPLATE;

use crate::defs::Definition;
use ptoc_diagnostics::{Diagnostics, SourceMap};
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
    // As the file is named on disk, so that links do not hide the folders around it.
    let folder = absolute.parent().unwrap_or(&absolute);
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let place = absolute.file_name().map_or_else(|| folder.clone(), |name| folder.join(name));
    let mut nearest_first = Vec::new();
    for folder in folder.ancestors() {
        let path = folder.join(FILE);
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
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

/// A path as messages show it: from the working directory, if it is below.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).ok();
    let below = here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
    below.unwrap_or_else(|| path.to_owned()).display().to_string()
}
