//! Files of the program as the protocol names them.

use super::requests::Source;
use ptoc_debugger::DebuggedProgram;
use ptoc_diagnostics::FileId;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What names of modules of the standard library begin with: they are no files.
const LIBRARY: &str = "<std>/";

/// The files of a program.
pub(crate) struct Sources<'p> {
    program: &'p DebuggedProgram<'p>,
}

impl<'p> Sources<'p> {
    pub fn new(program: &'p DebuggedProgram<'p>) -> Sources<'p> {
        Sources { program }
    }

    /// Those that have statements.
    pub fn all(&self) -> Vec<FileId> {
        let spans = self.program.statements.items.iter().map(|item| item.span.file);
        let mut files: Vec<FileId> = spans.collect();
        files.sort_unstable_by_key(|f| f.0);
        files.dedup();
        files
    }

    /// As a client is told of it. What is no file on disk has a number by which its text is asked for.
    pub fn describe(&self, file: FileId) -> Value {
        let name = self.program.sources.name(file);
        match name.strip_prefix(LIBRARY) {
            Some(module) => json!({
                "name": module, "path": name, "sourceReference": file.0 + 1, "origin": "standard library",
                "presentationHint": "deemphasize",
            }),
            None => {
                let path = std::path::absolute(name).unwrap_or_else(|_| PathBuf::from(name));
                let short = path.file_name().map_or(name.into(), |n| n.to_string_lossy());
                json!({"name": short, "path": path})
            }
        }
    }

    /// Whether the file on disk is another one than the program was compiled from.
    pub fn has_changed(&self, file: FileId) -> bool {
        let name = self.program.sources.name(file);
        !name.starts_with('<') && std::fs::read(name).is_ok_and(|now| now != self.program.sources.text(file).as_bytes())
    }

    /// The file that a client means.
    pub fn find(&self, source: &Source) -> Result<FileId, String> {
        if let Some(reference) = source.source_reference.filter(|&r| r > 0) {
            let found = self.all().into_iter().find(|f| i64::from(f.0) + 1 == reference);
            return found.ok_or_else(|| format!("there is no source {reference}"));
        }
        let Some(path) = source.path.as_deref().or(source.name.as_deref()) else {
            return Err("a source has a `path`".into());
        };
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let wanted = real(Path::new(path));
        let name = |file: &FileId| self.program.sources.name(*file);
        let found = self.all().into_iter().find(|file| name(file) == path || real(Path::new(name(file))) == wanted);
        found.ok_or_else(|| format!("`{path}` is no file of this run"))
    }

    /// The text of a file that is not on disk.
    pub fn text(&self, reference: i64) -> Result<&'p str, String> {
        let source = Source { source_reference: Some(reference), ..Source::default() };
        self.find(&source).map(|file| self.program.sources.text(file))
    }
}
