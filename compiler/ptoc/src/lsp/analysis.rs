//! What `ptoc check` finds in a text that may not be saved yet, and the names in it.

use super::cache::{Asked, Cache, Found, Round};
use super::position::LineIndex;
use super::settings::Settings;
use crate::commands::check::{Checked, check_entry};
use crate::files::OpenTexts;
use crate::session::{Entry, Session, Unit};
use ptoc_analysis::NameFact;
use ptoc_analysis::index::Index;
use ptoc_diagnostics::{Diagnostic, FileId, SourceMap};
use ptoc_passes::MemoryMap;
use std::path::Path;

/// A text with what it imports, and the names in all of them.
#[derive(Debug)]
pub struct Loaded {
    /// All texts that were read.
    pub sources: SourceMap,
    /// Where their lines begin, by number of the file.
    pub lines: Vec<LineIndex>,
    /// The text's tree and those of its imports.
    pub unit: Unit,
    /// Their names.
    pub index: Index,
    /// Errors of syntax, imports and names.
    pub errors: usize,
}

/// What is known of a text.
#[derive(Debug)]
pub struct Analysis {
    /// The text.
    pub loaded: Loaded,
    /// What is wrong, in source order.
    pub diagnostics: Vec<Diagnostic>,
    /// The memories of its kernels.
    pub maps: Vec<MemoryMap>,
    /// What elaboration has found out about names.
    pub names: Vec<NameFact>,
}

impl Loaded {
    fn new(sources: SourceMap, unit: Unit, errors: usize) -> Loaded {
        let lines = sources.files().map(|file| LineIndex::new(sources.text(file))).collect();
        let index = Index::new(&unit.modules, &sources);
        Loaded { sources, lines, unit, index, errors }
    }

    /// The text itself.
    pub fn file(&self) -> FileId {
        self.unit.file
    }
}

/// A session with the client's settings. They were read with this target, so it exists.
pub fn session(settings: &Settings, open: &OpenTexts) -> Session {
    let target = ptoc_isa::Target::builtin(&settings.target).map_or(crate::args::DEFAULT_TARGET, |t| t.name.as_str());
    let mut session = Session::new(target, &settings.define).expect("there is such a target");
    session.open = open.clone();
    session
}

/// Loads a text as `ptoc check` does, with what is open in the editor in place of what is on disk, and no more.
pub fn load(path: &Path, text: &str, open: &OpenTexts) -> Loaded {
    let mut session = session(&Settings::default(), open);
    let unit = session.load_text(path, text.to_owned());
    let errors = session.diagnostics.error_count();
    Loaded::new(session.sources, unit, errors)
}

/// Checks a text as `ptoc check` does; entries in which nothing has changed are taken from the cache.
pub fn analyse(path: &Path, text: &str, settings: &Settings, open: &OpenTexts, cache: &mut Cache) -> Analysis {
    let mut session = session(settings, open);
    let unit = session.load_text(path, text.to_owned());
    let errors = session.diagnostics.error_count();
    cache.begin();
    let loaded: Vec<Diagnostic> = session.diagnostics.iter().cloned().collect();
    let round = Round::new(&unit, &session.sources, settings, &loaded);
    let asked: Vec<Option<Asked>> = unit.entries().iter().map(|entry| round.ask(entry)).collect();
    let (mut maps, mut names) = (Vec::new(), Vec::new());
    for (entry, asked) in unit.entries().iter().zip(asked) {
        let found = match asked.as_ref().and_then(|asked| cache.get(asked)) {
            Some(found) => found,
            None => {
                let found = check(&mut session, &unit, entry);
                if let Some(asked) = asked {
                    cache.put(asked, &found);
                }
                found
            }
        };
        session.diagnostics.extend(found.diagnostics);
        maps.extend(found.maps);
        names.extend(found.names);
    }
    names.sort_by_key(|n| n.span);
    names.dedup();
    let diagnostics = std::mem::take(&mut session.diagnostics).into_sorted();
    Analysis { loaded: Loaded::new(session.sources, unit, errors), diagnostics, maps, names }
}

/// Checks an entry and nothing else.
fn check(session: &mut Session, unit: &Unit, entry: &Entry<'_>) -> Found {
    let before = std::mem::take(&mut session.diagnostics);
    let (maps, whole) = match check_entry(session, unit, entry) {
        Checked::Whole(maps) => (maps, true),
        Checked::Partly => (Vec::new(), false),
    };
    let found = std::mem::replace(&mut session.diagnostics, before);
    let names = std::mem::take(&mut session.names);
    Found { diagnostics: found.iter().cloned().collect(), maps, names, whole }
}
