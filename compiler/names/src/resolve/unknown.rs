//! What is said of a name that nothing defines, and what may be meant by it.

use super::pto::{left_out, no_instruction, otherwise};
use super::{NameResolver, SUGGESTED};
use crate::builtins::{self, SyncFn};
use crate::foreign::{Foreign, foreign};
use crate::library::{Exported, library};
use crate::modules::item_name;
use ptoc_diagnostics::{Diagnostic, Edit, Span, codes, suggest};
use ptoc_isa as isa;
use ptoc_syntax::ast::*;
use rustc_hash::FxHashMap;

impl NameResolver<'_> {
    /// A name that was reported where it first stood, or where it is imported: what mends it there mends it here, too.
    pub(super) fn again(&mut self, name: &Name, span: Span) {
        if self.local(name) {
            return;
        }
        let told = self.reported.get(name).or_else(|| self.broken.get(name)).copied().flatten();
        let Some(d) = told.and_then(|at| self.out.get_mut(at)) else { return };
        for fix in &mut d.fixes {
            if let Some(first) = fix.edits.first().filter(|e| Some(e.span) == d.span)
                && fix.edits.iter().all(|e| e.span != span)
            {
                let text = first.text.clone();
                fix.edits.push(Edit { span, text });
            }
        }
    }

    pub(super) fn unknown(&mut self, name: &Name, span: Span) {
        let upper = name.len() > 1 && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        if let isa::NameLookup::NotYet(name) = isa::find(name) {
            self.out.push(no_instruction(name, span));
            return;
        }
        if let Some(d) = self.instruction.and_then(|id| left_out(id, name, span)) {
            self.out.push(d);
            return;
        }
        let called = std::mem::take(&mut self.called);
        let callee = std::mem::take(&mut self.callee);
        if self.unread {
            // What could not be read may define it, and that was reported.
            return;
        }
        if let Some(d) = otherwise(name, span).filter(|_| foreign(name).is_none()) {
            self.out.push(d);
            return;
        }
        self.suggested += 1;
        let near = self.suggested <= SUGGESTED;
        let mut candidates: Vec<&str> = Vec::new();
        if near {
            // A function may be an argument, a kernel is no value.
            let can_be_called = |item: &ItemKind| !matches!(item, ItemKind::Const(_) | ItemKind::Atom(_));
            let is_value = |item: &ItemKind| !matches!(item, ItemKind::Kernel(_) | ItemKind::Program(_));
            // Of two of one name the first counts.
            let items = self.module.ast.items.iter().rev();
            let own: FxHashMap<&str, &ItemKind> =
                items.filter_map(|i| Some((item_name(i)?.name.as_str(), &i.kind))).collect();
            candidates.extend(self.scopes.iter().flatten().map(|l| l.name.as_str()));
            let items = self.module.scope.keys().map(|n| n.as_str());
            let fits = |kind: &ItemKind| if callee { can_be_called(kind) } else { is_value(kind) };
            candidates.extend(items.filter(|n| own.get(n).is_none_or(|kind| fits(kind))));
            candidates.extend(builtins::WORD_NAMES.iter().filter(|w| !callee || builtins::word_is_called(w)));
        }
        if near && (called || upper) {
            candidates.extend(builtins::FUNCTION_NAMES);
            candidates.extend(SyncFn::ALL.map(SyncFn::name));
            candidates.extend(ptoc_layout::ops::all().map(|op| op.name));
            candidates.extend(ptoc_tensor::DType::ALL.iter().map(|d| d.name()));
            candidates.extend(isa::Loc::ALL.iter().map(|l| l.name()));
            candidates.extend(isa::TABLE.iter().map(|i| i.name));
        }
        // A short name resembles too much: half of it must be right.
        let best = suggest(name, candidates)
            .filter(|b| strsim::damerau_levenshtein(name, b) * 2 < name.len() || b.eq_ignore_ascii_case(name));
        let library = library_item(name, callee, best);
        let instruction = library.is_none() && upper && name.starts_with('T') && !name.contains('_')
            || best.is_some_and(|b| isa::lookup(b).is_some());
        let (code, what, label) = match instruction {
            true => (codes::UNKNOWN_INSTRUCTION, "no instruction", "PTO has no instruction of this name"),
            false => (codes::UNKNOWN_NAME, "unknown name", "nothing of this name is in scope"),
        };
        let mut d = Diagnostic::error(code, span, format!("{what} `{name}`")).with_label(label);
        let gone = self.gone.get(name).copied();
        // A mode of an instruction is one word in one spelling.
        let modes = self.instruction.map_or(&[][..], |id| id.get().modes);
        let mode = modes.iter().flat_map(|m| m.words).find(|w| !callee && w.eq_ignore_ascii_case(name)).copied();
        let best = mode.or(best).map(str::to_string);
        d = match (foreign(name), gone, best) {
            (Some(Foreign::Is(b)), ..) => d.with_fix(format!("it is called `{b}` here"), span, b),
            (Some(Foreign::Help(help)), ..) => d.with_help(help),
            (_, Some(at), _) => d
                .with_secondary(at, "defined here, and gone at the end of its block")
                .with_help("declare it before the block, or move this into the block"),
            _ if let Some(item) = library.filter(|_| mode.is_none()) => self.imported(d, item, name, span),
            (.., Some(b)) => {
                // What was meant is used, too.
                self.known(&b);
                d.with_suggestion(format!("did you mean `{b}`?"), span, b)
            }
            _ => match near.then(|| self.in_scope()).flatten() {
                Some(list) => d.with_note(format!("in scope here: {list}")),
                None => d,
            },
        };
        self.out.push(d);
    }

    /// The repair that imports an item of the standard library.
    fn imported(&self, d: Diagnostic, item: &Exported, name: &Name, span: Span) -> Diagnostic {
        let path = format!("{}::{}", item.module, item.name);
        let place = self.module.new_import;
        let new = Edit { span: Span::new(self.module.file, place.at, place.at), text: place.text(&path) };
        let (message, mut edits) = match item.name == *name {
            true => (format!("`{}` has it: import it with `use {path};`", item.module), Vec::new()),
            false => {
                let message =
                    format!("did you mean `{}` of `{}`? import it with `use {path};`", item.name, item.module);
                (message, vec![Edit { span, text: item.name.clone() }])
            }
        };
        edits.push(new);
        d.with_suggested_edits(message, edits)
    }

    /// Whether it is something that is not there yet, and not a name of the file's own.
    pub(super) fn not_yet(&self, callee: &Expr) -> bool {
        let ExprKind::Name(n) = &*callee.kind else { return false };
        !self.own(callee)
            && (matches!(builtins::function(n), Some(builtins::Builtin::NotYet(_)))
                || matches!(builtins::word(n), Some(builtins::Word::NotYet(_))))
    }

    /// A function that orders pipes, if the file has no name of its own for it.
    pub(super) fn sync_function(&self, callee: &Expr) -> Option<SyncFn> {
        let ExprKind::Name(n) = &*callee.kind else { return None };
        SyncFn::from_name(n).filter(|_| !self.own(callee))
    }

    /// Whether it is a name that the file defines.
    pub(super) fn own(&self, callee: &Expr) -> bool {
        matches!(&*callee.kind, ExprKind::Name(n) if self.module.scope.contains_key(n) || self.local(n))
    }

    /// `pto.tadd(..)`, as PTO's assembler writes it.
    pub(super) fn of_pto(&self, callee: &Expr) -> Option<Diagnostic> {
        let ExprKind::Field(base, name) = &*callee.kind else { return None };
        let dialect = matches!(&*base.kind, ExprKind::Name(n) if n == "pto") && !self.own(base);
        let id = isa::lookup(&name.name.to_ascii_uppercase()).filter(|_| dialect)?;
        let name = id.get().written_name();
        let d = Diagnostic::error(codes::UNKNOWN_NAME, callee.span, format!("PTO's `{name}` stands alone here"))
            .with_label("as PTO's assembler writes it");
        Some(d.with_fix(format!("write `{name}`"), callee.span, name))
    }

    /// The names that a value may have here, if they are few.
    fn in_scope(&self) -> Option<String> {
        const FEW: usize = 16;
        let mut names: Vec<&str> = Vec::new();
        for l in self.scopes.iter().flatten() {
            if names.len() > FEW {
                break;
            }
            if !names.contains(&l.name.as_str()) {
                names.push(&l.name);
            }
        }
        (1..=FEW).contains(&names.len()).then(|| names.join(", "))
    }
}

/// The item of the standard library that is most likely meant: of this name, also in other letter case, or nearer than
/// `best`, the nearest name in scope.
fn library_item(name: &str, callee: bool, best: Option<&str>) -> Option<&'static Exported> {
    let items = || library().iter().filter(|item| !callee || item.callable);
    let plain = |text: &str| text.chars().filter(|&c| c != '_').flat_map(char::to_lowercase).collect::<String>();
    if let Some(exact) = items().find(|item| item.name == name) {
        return Some(exact);
    }
    let distance = |other: &str| strsim::damerau_levenshtein(name, other);
    let found = suggest(name, items().map(|item| item.name.as_str()))?;
    let folded = plain(found) == plain(name);
    let nearer = distance(found) * 2 < name.len() && best.is_none_or(|b| distance(found) < distance(b));
    items().find(|item| item.name == found).filter(|_| folded || nearer)
}
