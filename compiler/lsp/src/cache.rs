//! What was found in a kernel holds while its text and all that it can depend on stay the same, wherever in the file it
//! stands.
//!
//! An entry (kernel or program) depends on the settings, on the texts of imported modules, on the items of its file
//! that are no entries, on the names of all items, and on its own text; a program on all items. If these are equal,
//! what was found is equal but for places: every span lies in one of these items or in another file, and moves with its
//! item. What says the number of a line holds while the items begin in the same lines. An entry that was refused may
//! have been explained by what is wrong elsewhere: it holds while the file is as broken as it was.
//!
//! The entries of a file share the steps that analyses may take. What was found without running short of them holds
//! where as many are left as it took; what was found when they ran out holds where exactly as many are left as then.

use super::settings::Settings;
use ptoc_analysis::NameFact;
use ptoc_diagnostics::{Budget, Diagnostic, SourceMap, Span};
use ptoc_driver::session::{CompilationUnit, EntryPoint};
use ptoc_interp::cost::BlockCost;
use ptoc_names::item_name;
use ptoc_placement::MemoryMap;
use ptoc_syntax::ast::ItemKind;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Analyses after which what nobody has asked for is dropped: an author comes back to a text by undoing.
const KEPT: u64 = 16;

/// What a check finds in an entry.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// The memories.
    pub maps: Vec<MemoryMap>,
    /// What blocks cost.
    pub costs: Vec<BlockCost>,
    /// What is known of names.
    pub names: Vec<NameFact>,
    /// All of it was checked.
    pub whole: bool,
    /// The steps that it had, and took.
    pub steps: Steps,
}

/// Steps of analyses, and of compile-time evaluation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Steps {
    /// What there was.
    pub had: [u64; 2],
    /// What was taken.
    pub took: [u64; 2],
    /// There were too few: with another number of them, something else is found.
    pub short: bool,
    /// More steps of analyses than these make no difference.
    pub most: u64,
}

impl Steps {
    /// Whether the same is found with so many steps left.
    fn suffices(&self, left: [u64; 2]) -> bool {
        match self.short {
            true => self.had[0].min(self.most) == left[0].min(self.most) && self.had[1] == left[1],
            false => self.took.iter().zip(left).all(|(took, left)| Budget::PART * took <= left),
        }
    }
}

/// What was found in the entries of a text.
#[derive(Debug, Default)]
pub struct Cache {
    held: Vec<Held>,
    round: u64,
    /// How many entries were taken from here, for tests.
    pub hits: u64,
}

#[derive(Debug)]
struct Held {
    key: u64,
    text: String,
    /// Where the items begin and end that it depends on.
    items: Vec<Span>,
    /// The lines where they begin, if something says the number of a line.
    lines: Option<Vec<u32>>,
    /// Of an entry that was refused: the state of the file.
    broken: Option<u64>,
    found: Found,
    used: u64,
}

/// A text that is being analysed.
pub struct Round<'a> {
    unit: &'a CompilationUnit,
    sources: &'a SourceMap,
    /// Of all that every entry depends on.
    common: u64,
    /// What is wrong with the file as a whole.
    broken: u64,
    /// Errors of syntax and names, by their places.
    errors: Vec<Span>,
}

/// An entry as it is looked up.
pub struct Asked {
    key: u64,
    text: String,
    items: Vec<Span>,
    lines: Vec<u32>,
    broken: u64,
}

impl<'a> Round<'a> {
    /// A text that was just loaded; `found` is what is wrong with it so far.
    pub fn new(
        unit: &'a CompilationUnit,
        sources: &'a SourceMap,
        settings: &Settings,
        found: &[Diagnostic],
    ) -> Round<'a> {
        let mut hash = DefaultHasher::new();
        settings.target().hash(&mut hash);
        ptoc_driver::devices::text(settings.target()).hash(&mut hash);
        for d in settings.project.define.iter().chain(&settings.define) {
            (&d.name, &d.value).hash(&mut hash);
        }
        for (_, module) in unit.modules.all() {
            module.path.iter().for_each(|p| p.as_str().hash(&mut hash));
            if module.file != unit.file {
                sources.text(module.file).hash(&mut hash);
            }
        }
        for item in &unit.modules.root().ast.items {
            item_name(item).map(|n| n.name.as_str()).hash(&mut hash);
            if !is_entry(&item.kind) {
                sources.slice(item.span).hash(&mut hash);
            }
        }
        let mut broken = DefaultHasher::new();
        let errors: Vec<&Diagnostic> = found.iter().filter(|d| d.is_error()).collect();
        errors.iter().for_each(|d| (d.code.as_str(), &d.message).hash(&mut broken));
        let errors = errors.into_iter().filter_map(|d| d.span).collect();
        Round { unit, sources, common: hash.finish(), broken: broken.finish(), errors }
    }

    /// How an entry is looked up; nothing for one that cannot be kept, for its text is broken.
    pub fn ask(&self, entry: &EntryPoint<'_>) -> Option<Asked> {
        let item = self.unit.modules.item(entry.id);
        if self.errors.iter().any(|e| e.file == item.span.file && e.start <= item.span.end && item.span.start <= e.end)
        {
            return None;
        }
        let all = self.unit.modules.root().ast.items.iter();
        let needed = all.filter(|i| entry.program || !is_entry(&i.kind) || i.span == item.span);
        let items: Vec<Span> = needed.map(|i| i.span).collect();
        let mut hash = DefaultHasher::new();
        (self.common, entry.program).hash(&mut hash);
        let own = |s: &&Span| entry.program || **s == item.span;
        let text: String = items.iter().filter(own).map(|s| self.sources.slice(*s)).collect();
        // The order among the others: what is defined first counts.
        (items.iter().position(|s| *s == item.span), items.len()).hash(&mut hash);
        let lines = items.iter().map(|s| self.sources.position(s.file, s.start).line).collect();
        Some(Asked { key: hash.finish(), text, items, lines, broken: self.broken })
    }
}

fn is_entry(kind: &ItemKind) -> bool {
    matches!(kind, ItemKind::Kernel(_) | ItemKind::Program(_))
}

impl Cache {
    /// Begins with a new state of the text.
    pub fn begin(&mut self) {
        self.round += 1;
        let round = self.round;
        self.held.retain(|h| h.used + KEPT >= round);
    }

    /// What was found in an equal entry, with the places of this one, if `left` steps lead to the same.
    pub fn get(&mut self, asked: &Asked, left: [u64; 2]) -> Option<Found> {
        let same = |h: &&mut Held| {
            h.key == asked.key
                && h.text == asked.text
                && h.lines.as_ref().is_none_or(|lines| *lines == asked.lines)
                && h.broken.is_none_or(|broken| broken == asked.broken)
                && h.found.steps.suffices(left)
        };
        let held = self.held.iter_mut().find(same)?;
        held.used = self.round;
        let mut found = held.found.clone();
        let from = &held.items;
        let mut place = |span: &mut Span| {
            // What has no place, and the beginning of the file, stay.
            if (span.start, span.end) != (0, 0)
                && let Some(n) = from.iter().position(|item| item.contains(*span))
            {
                let by = |at: u32| at - from[n].start + asked.items[n].start;
                *span = Span::new(span.file, by(span.start), by(span.end));
            }
        };
        found.each(&mut place);
        self.hits += 1;
        Some(found)
    }

    /// Keeps what was found.
    pub fn put(&mut self, asked: Asked, found: &Found) {
        let Some(home) = asked.items.first().map(|s| s.file) else { return };
        let mut copy = found.clone();
        let mut moves = true;
        copy.each(&mut |span| {
            let still = span.file != home || (span.start, span.end) == (0, 0);
            moves &= still || asked.items.iter().any(|item| item.contains(*span));
        });
        if !moves {
            return;
        }
        let clean = copy.whole && !copy.diagnostics.iter().any(Diagnostic::is_error);
        let lines = copy.says_lines().then_some(asked.lines);
        let broken = (!clean).then_some(asked.broken);
        let Asked { key, text, items, .. } = asked;
        self.held.push(Held { key, text, items, lines, broken, found: copy, used: self.round });
    }
}

impl Found {
    /// Every span in it.
    fn each(&mut self, f: &mut dyn FnMut(&mut Span)) {
        for d in &mut self.diagnostics {
            d.span.iter_mut().for_each(&mut *f);
            d.labels.iter_mut().for_each(|l| f(&mut l.span));
            d.fixes.iter_mut().flat_map(|fix| &mut fix.edits).for_each(|e| f(&mut e.span));
        }
        for map in &mut self.maps {
            f(&mut map.span);
            map.points.iter_mut().for_each(&mut *f);
            map.calls.iter_mut().flatten().for_each(&mut *f);
            map.loops.iter_mut().for_each(|l| f(&mut l.span));
            map.memories.iter_mut().flat_map(|m| &mut m.tiles).for_each(|t| f(&mut t.span));
        }
        for cost in &mut self.costs {
            f(&mut cost.span);
            cost.turns.iter_mut().for_each(|(span, _)| f(span));
        }
        self.names.iter_mut().for_each(|n| f(&mut n.span));
    }

    /// Whether any of its sentences says the number of a line.
    fn says_lines(&self) -> bool {
        let says = |text: &String| text.contains("line");
        self.diagnostics.iter().any(|d| {
            says(&d.message)
                || says(&d.label)
                || d.notes.iter().any(says)
                || d.labels.iter().any(|l| says(&l.message))
                || d.fixes.iter().any(|f| says(&f.message) || f.edits.iter().any(|e| says(&e.text)))
        })
    }
}
