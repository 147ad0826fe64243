//! What `ptoc check` finds in a text that may not be saved yet, and the names in it.

use super::cache::{Asked, Cache, Found, Round, Steps};
use super::position::LineIndex;
use super::settings::Settings;
use super::work::CancelToken;
use ptoc_analysis::NameFact;
use ptoc_diagnostics::{Budget, Diagnostic, FileId, SourceMap, Span};
use ptoc_driver::check::{Checked, Whole, check_entry};
use ptoc_driver::files::OpenTexts;
use ptoc_driver::project::FoundProject;
use ptoc_driver::session::{CompilationUnit, DEFAULT_TARGET, EntryPoint, Session};
use ptoc_interp::cost::BlockCost;
use ptoc_names::index::NameIndex;
use ptoc_placement::MemoryMap;
use ptoc_syntax::ast::{Item, ItemKind};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A text with what it imports, and the names in all of them.
#[derive(Debug)]
pub struct Loaded {
    /// All texts that were read.
    pub sources: SourceMap,
    /// Where their lines begin, by number of the file.
    pub lines: Vec<LineIndex>,
    /// The text's tree and those of its imports.
    pub unit: CompilationUnit,
    /// Their names.
    pub index: NameIndex,
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
    /// What blocks of its kernels cost, where the target has a model of time.
    pub costs: Vec<BlockCost>,
    /// What elaboration has found out about names.
    pub names: Vec<NameFact>,
    /// The text was analysed. Where it was not, `names` are from a state before.
    pub whole: bool,
}

impl Loaded {
    fn new(sources: SourceMap, unit: CompilationUnit, errors: usize) -> Loaded {
        let lines = sources.files().map(|file| LineIndex::new(sources.text(file))).collect();
        let index = NameIndex::new(&unit.modules, &sources);
        Loaded { sources, lines, unit, index, errors }
    }

    /// The text itself.
    pub fn file(&self) -> FileId {
        self.unit.file
    }

    /// Whether it is, or imports, this file.
    pub fn reads(&self, file: &Path) -> bool {
        let own = |f: &FileId| !self.sources.name(*f).starts_with('<');
        self.sources.files().filter(own).any(|f| self.place(f) == file)
    }

    /// The item of the text around a byte, with what follows it. Words that begin kernels, programs and functions begin
    /// items in broken texts, too; of what else the parser takes for one it is not sure there.
    pub fn part(&self, offset: usize) -> Range<usize> {
        let sure = |item: &&Item| matches!(item.kind, ItemKind::Kernel(_) | ItemKind::Program(_) | ItemKind::Fn(_));
        let root = self.unit.modules.root();
        let starts = root.ast.items.iter().filter(sure).map(|item| item.span.start as usize);
        let from = starts.clone().take_while(|start| *start < offset).last().unwrap_or(0);
        let to = starts.clone().find(|start| *start >= offset).unwrap_or(self.sources.text(root.file).len());
        from..to
    }

    /// One name for one file of the unit, whoever imports it.
    pub fn place(&self, file: FileId) -> PathBuf {
        let path = if file == self.file() { self.unit.path.clone() } else { PathBuf::from(self.sources.name(file)) };
        path.canonicalize().unwrap_or(path)
    }
}

/// A session with the client's settings. Without their target, which may be a file that is gone, it is for the default
/// one, and says so.
pub fn session(settings: &Settings, open: &OpenTexts) -> Session {
    let found = || FoundProject { project: settings.project.clone(), ..FoundProject::default() };
    let begun = Session::in_project(found(), Some(settings.target()), &settings.define);
    let mut session = begun.unwrap_or_else(|missing| {
        let stand_in = Session::in_project(found(), Some(DEFAULT_TARGET), &settings.define);
        let mut session = stand_in.unwrap_or_else(|d| panic!("{DEFAULT_TARGET} is built in: {}", d.message));
        session.diagnostics.push(*missing);
        session
    });
    session.diagnostics.extend(settings.wrong.iter().cloned());
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

/// What is known of a text without an analysis: its names, and of those that were there before what they stood for.
pub fn glance(path: &Path, text: &str, settings: &Settings, open: &OpenTexts, before: Option<&Analysis>) -> Analysis {
    let mut session = session(settings, open);
    let unit = session.parse_text(path, text.to_owned());
    let errors = session.diagnostics.error_count();
    let loaded = Loaded::new(session.sources, unit, errors);
    let names = before.map_or(Vec::new(), |before| carried(before, &loaded));
    Analysis { loaded, diagnostics: Vec::new(), maps: Vec::new(), costs: Vec::new(), names, whole: false }
}

/// What was known of names before a text was edited, at the places where they are now: those before and behind all
/// edits.
fn carried(before: &Analysis, now: &Loaded) -> Vec<NameFact> {
    let text = |l: &Loaded| l.sources.text(l.file()).as_bytes().to_vec();
    let (old, new) = (text(&before.loaded), text(now));
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let place = |at: u32| match at as usize {
        at if at <= head => Some(at as u32),
        at if at >= old.len() - tail => Some((at + new.len() - old.len()) as u32),
        _ => None,
    };
    let moved = |n: &NameFact| {
        let span = Span::new(now.file(), place(n.span.start)?, place(n.span.end)?);
        (n.span.file == before.loaded.file()).then(|| NameFact { span, fact: n.fact.clone() })
    };
    before.names.iter().filter_map(moved).collect()
}

/// Checks a text as `ptoc check` does; entries in which nothing has changed are taken from the cache. Nothing if it was
/// stopped.
pub fn analyse(
    path: &Path,
    text: &str,
    settings: &Settings,
    open: &OpenTexts,
    cache: &mut Cache,
    stop: &CancelToken,
) -> Option<Analysis> {
    let mut session = session(settings, open);
    let unit = session.load_text(path, text.to_owned());
    let errors = session.diagnostics.error_count();
    cache.begin();
    let loaded: Vec<Diagnostic> = session.diagnostics.iter().cloned().collect();
    let round = Round::new(&unit, &session.sources, settings, &loaded);
    let asked: Vec<Option<Asked>> = unit.entries().iter().map(|entry| round.ask(entry)).collect();
    let (mut maps, mut costs, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for (entry, asked) in unit.entries().iter().zip(asked) {
        let found = match asked.as_ref().and_then(|asked| cache.get(asked, session.steps_left())) {
            Some(found) => {
                session.take_steps(found.steps.took);
                found
            }
            None if stop.is_raised() => return None,
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
        costs.extend(found.costs);
        names.extend(found.names);
    }
    names.sort_by_key(|n| n.span);
    names.dedup();
    let mut diagnostics = std::mem::take(&mut session.diagnostics);
    session.lints.apply(&mut diagnostics);
    let diagnostics = diagnostics.into_sorted();
    let loaded = Loaded::new(session.sources, unit, errors);
    Some(Analysis { loaded, diagnostics, maps, costs, names, whole: true })
}

/// Checks an entry and nothing else.
fn check(session: &mut Session, unit: &CompilationUnit, entry: &EntryPoint<'_>) -> Found {
    let before = std::mem::take(&mut session.diagnostics);
    let had = session.steps_left();
    let (Whole { maps, costs }, whole) = match check_entry(session, unit, entry) {
        Checked::Whole(found) => (found, true),
        Checked::Partly => (Whole::default(), false),
    };
    let found = std::mem::replace(&mut session.diagnostics, before);
    let names = std::mem::take(&mut session.names);
    let left = session.steps_left();
    let short = session.was_short();
    // Several launches share what there is.
    let one = !entry.program && entry.tensors().all(|p| p.default.is_none());
    let most = if one { Budget::KERNEL } else { u64::MAX };
    let steps = Steps { had, took: [had[0] - left[0], had[1] - left[1]], short, most };
    Found { diagnostics: found.iter().cloned().collect(), maps, costs, names, whole, steps }
}
