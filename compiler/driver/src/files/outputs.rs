//! Outputs, which appear whole or not at all, and never in the place of what the call reads.

use super::place::{Identity, PathTarget, directory};
use super::reason;
use super::temporary::Temporary;
use ptoc_diagnostics::{Diagnostic, codes};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that will be written: its place is taken when it is planned, its contents appear when all are complete.
#[derive(Debug)]
struct Planned {
    /// As the user wrote it.
    shown: PathBuf,
    identity: Identity,
    kind: Destination,
}

#[derive(Debug)]
enum Destination {
    /// Written beside the destination, then moved there.
    Replace { to: PathBuf, temporary: Temporary },
    /// A device or a pipe: written as it is.
    Direct(File),
}

/// A file that stays as it is.
#[derive(Debug)]
struct Kept {
    shown: PathBuf,
    identity: Identity,
    /// "a source of this call"
    what: String,
}

/// Outputs that appear together.
#[derive(Debug, Default)]
pub struct Outputs {
    planned: Vec<Planned>,
    kept: Vec<Kept>,
}

impl Outputs {
    /// No outputs.
    pub fn new() -> Outputs {
        Outputs::default()
    }

    /// Says that a file is read by this call (`what` says as what), so that no output may take its place; an error if
    /// one does. Hard links count as one file, though only one of their names would be taken: who writes there hardly
    /// knows.
    pub fn keep(&mut self, path: &Path, what: impl Into<String>) -> Result<(), Diagnostic> {
        // What is not there is not overwritten, and devices and pipes keep nothing.
        let Ok(place) = PathTarget::of(path) else { return Ok(()) };
        if !place.known.as_ref().is_some_and(std::fs::Metadata::is_file) {
            return Ok(());
        }
        let kept = Kept { shown: path.to_owned(), identity: place.identity, what: what.into() };
        let taken = self.planned.iter().find(|p| p.identity == kept.identity);
        let result = taken.map_or(Ok(()), |p| Err(overwrites(&p.shown, &kept)));
        self.kept.push(kept);
        result
    }

    /// [`Outputs::keep`] for the sources of a session.
    pub fn keep_sources(&mut self, paths: &[PathBuf]) -> Result<(), Diagnostic> {
        paths.iter().try_for_each(|path| self.keep(path, "a source of this call"))
    }

    /// Whether this is the file of an output.
    pub fn writes(&self, n: usize, path: &Path) -> bool {
        PathTarget::of(path).is_ok_and(|place| self.planned[n].identity == place.identity)
    }

    /// Takes the place for a file and says whether it can be written; returns its number.
    pub fn plan(&mut self, path: &Path) -> Result<usize, Diagnostic> {
        let refuse = |why: String, help: String| {
            Diagnostic::global(codes::CANNOT_WRITE, format!("cannot write `{}`: {why}", path.display())).with_help(help)
        };
        let place = PathTarget::of(path).map_err(|e| refuse(reason(&e), "choose another file".into()))?;
        if place.known.as_ref().is_some_and(std::fs::Metadata::is_dir) {
            return Err(refuse("it is a directory".into(), "name a file in it".into()));
        }
        // A file without a name (it was removed, and `/dev/stdout` leads to it) cannot be replaced.
        let nameless = place.known.is_some() && std::fs::symlink_metadata(&place.to).is_ok_and(|m| m.is_symlink());
        let kind = if !place.is_plain() || nameless {
            let file = File::options().write(true).open(path);
            Destination::Direct(file.map_err(|e| refuse(reason(&e), "choose another file".into()))?)
        } else {
            let to = place.to;
            if to.file_name().is_none() {
                return Err(refuse("it names no file".into(), "name a file".into()));
            }
            if let Some(kept) = self.kept.iter().find(|k| k.identity == place.identity) {
                return Err(overwrites(path, kept));
            }
            if let Some(other) = self.planned.iter().find(|p| p.identity == place.identity) {
                let why = format!("it is written twice (as `{}`)", other.shown.display());
                return Err(refuse(why, "give each output a file of its own".into()));
            }
            // An existing file that may not be written is not replaced either, though its directory would allow it.
            if place.known.is_some() {
                let opened = File::options().write(true).open(&to);
                opened.map_err(|e| refuse(reason(&e), "choose another file, or make it writable".into()))?;
            }
            let directory = directory(&to);
            let temporary = Temporary::new(directory, place.known.as_ref()).map_err(|e| match directory.is_dir() {
                false => {
                    let why = format!("there is no directory `{}`", directory.display());
                    refuse(why, format!("make it first: `mkdir -p {}`", directory.display()))
                }
                true => refuse(
                    format!("in directory `{}`: {}", directory.display(), reason(&e)),
                    "choose a directory that you may write to".into(),
                ),
            })?;
            Destination::Replace { to, temporary }
        };
        self.planned.push(Planned { shown: path.to_owned(), identity: place.identity, kind });
        Ok(self.planned.len() - 1)
    }

    /// Writes the contents of file number `n`; it does not appear yet.
    pub fn write(&mut self, n: usize, bytes: &[u8]) -> Result<(), Diagnostic> {
        let planned = &mut self.planned[n];
        let file: &mut dyn Write = match &mut planned.kind {
            Destination::Replace { temporary, .. } => temporary.file(),
            Destination::Direct(file) => file,
        };
        file.write_all(bytes).and_then(|()| file.flush()).map_err(|e| failed(&planned.shown, &e))
    }

    /// Puts one file in its place.
    ///
    /// # Errors
    /// Those of a plan, a write or a commit.
    pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), Diagnostic> {
        let mut outputs = Outputs::new();
        let n = outputs.plan(path)?;
        outputs.write(n, bytes)?;
        outputs.commit()
    }

    /// Moves all files to their places.
    pub fn commit(self) -> Result<(), Diagnostic> {
        for planned in self.planned {
            if let Destination::Replace { to, temporary } = planned.kind {
                temporary.persist(&to).map_err(|e| failed(&planned.shown, &e))?;
            }
        }
        Ok(())
    }
}

fn overwrites(path: &Path, kept: &Kept) -> Diagnostic {
    let (path, shown) = (path.display().to_string(), kept.shown.display().to_string());
    let what = &kept.what;
    let message = match path == shown {
        true => format!("cannot write `{path}`: it is {what}"),
        false => format!("cannot write `{path}`: it is the file `{shown}`, {what}"),
    };
    Diagnostic::global(codes::CANNOT_WRITE, message).with_help("choose another file: this one stays as it is")
}

fn failed(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::global(codes::CANNOT_WRITE, format!("cannot write `{}`: {}", path.display(), reason(error)))
        .with_help("nothing appears under this name; make room or choose another directory")
}
