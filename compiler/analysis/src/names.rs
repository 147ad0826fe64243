//! Every name in every item is looked up here, also in code that nothing instantiates. Elaboration repeats the look-up
//! with values and stays silent about what was reported here.

use crate::builtins::{self, SyncFn};
use crate::foreign::{Foreign, foreign};
use crate::index::Kind;
use crate::library::{Exported, library};
use crate::modules::{ItemId, Module, Modules, item_name};
use crate::scopes::{self, Part};
use ptoc_diagnostics::{Diagnostic, Edit, Span, codes, suggest};
use ptoc_isa as isa;
use ptoc_syntax::ast::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::LazyCell;
use std::fmt::Write as _;

/// Unknown names of a file for which similar ones are sought. A report shows the first hundred errors.
const SUGGESTED: usize = 2 * ptoc_diagnostics::DEFAULT_LIMIT;

/// Checks the names of all modules.
pub fn check(modules: &Modules, out: &mut Vec<Diagnostic>) {
    let before = out.len();
    for (id, module) in modules.all() {
        let mut walk = Walk {
            module,
            scopes: Vec::new(),
            places: FxHashMap::default(),
            firm: FxHashMap::default(),
            gone: FxHashMap::default(),
            reported: FxHashMap::default(),
            broken: broken(module, out),
            unread: module.ast.items.iter().any(|i| matches!(i.kind, ItemKind::Error)),
            suggested: 0,
            out,
            open: false,
            called: false,
            callee: false,
            instruction: None,
            used: FxHashSet::default(),
        };
        for item in &module.ast.items {
            walk.item(item);
            walk.gone.clear();
            walk.reported.clear();
        }
        if id.0 == 0 {
            let used = walk.used;
            unused_imports(module, &used, out);
        }
    }
    modules.note_names(out[before..].iter().any(Diagnostic::is_error));
}

fn unused_imports(module: &Module, used: &FxHashSet<ItemId>, out: &mut Vec<Diagnostic>) {
    let items = || module.ast.items.iter().filter(|i| !matches!(i.kind, ItemKind::Use(_)));
    // What the walk does not come by (options, attributes) may name it, too.
    let words = LazyCell::new(|| {
        let mut words = Words::default();
        items().for_each(|i| write!(words, "{i:?}").expect("words are collected without fail"));
        words.all
    });
    let given: FxHashSet<&Name> = module.given.iter().collect();
    for (name, item) in &module.imports {
        if !given.contains(&name.name) && !used.contains(item) && !words.contains(name.name.as_str()) {
            out.push(
                Diagnostic::warning(
                    codes::UNUSED_NAME,
                    name.span,
                    format!("`{}` is imported and never used", name.name),
                )
                .with_label("nothing here uses it"),
            );
        }
    }
}

/// What stands between quotation marks in a text that is written here.
#[derive(Default)]
struct Words {
    all: FxHashSet<String>,
    open: Option<String>,
    escaped: bool,
}

impl std::fmt::Write for Words {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for c in text.chars() {
            let escaped = std::mem::take(&mut self.escaped);
            self.escaped = c == '\\' && !escaped;
            match (&mut self.open, c) {
                (Some(word), c) if escaped => word.push(c),
                (None, '"') => self.open = Some(String::new()),
                (Some(_), '"') => self.all.extend(self.open.take()),
                (Some(word), c) => word.push(c),
                (None, _) => {}
            }
        }
        Ok(())
    }
}

/// Names whose import failed, each with the number of what was said of the item that its module does not have.
fn broken(module: &Module, found: &[Diagnostic]) -> FxHashMap<Name, Option<usize>> {
    if module.broken.is_empty() {
        return FxHashMap::default();
    }
    let mut told: FxHashMap<Span, usize> = FxHashMap::default();
    for (n, d) in found.iter().enumerate().filter(|(_, d)| d.code == codes::UNKNOWN_ITEM) {
        if let Some(span) = d.span {
            told.entry(span).or_insert(n);
        }
    }
    let mut out: FxHashMap<Name, Option<usize>> = module.broken.iter().map(|n| (n.clone(), None)).collect();
    for item in &module.ast.items {
        if let ItemKind::Use(u) = &item.kind
            && let Some(last) = u.last()
            && let (Some(first), Some(n)) = (out.get_mut(&last.name), told.get(&last.span))
        {
            *first = Some(first.map_or(*n, |first| first.min(*n)));
        }
    }
    out
}

struct Local {
    name: Name,
    span: Span,
    used: bool,
    /// Parameters and loop variables may stay unused without remark.
    warn: bool,
    /// What it is defined as: if that is refused, nothing is said of its use.
    value: Option<Span>,
}

struct Walk<'a> {
    module: &'a Module,
    scopes: Vec<Vec<Local>>,
    /// Where in `scopes` each name is: number of the scope, number in it; the innermost definition last.
    places: FxHashMap<Name, Vec<(usize, usize)>>,
    /// Those of them that may not be defined a second time in their scope.
    firm: FxHashMap<Name, Vec<(usize, usize)>>,
    out: &'a mut Vec<Diagnostic>,
    /// Unknown names bind themselves (parameter types, index variables of `ensures`).
    open: bool,
    /// The modes of the instruction whose arguments are looked at.
    instruction: Option<isa::InstrId>,
    /// The name that comes is called, or takes static arguments: functions and types may be meant.
    called: bool,
    /// It stands before the brackets of a call: only what can be called may be meant.
    callee: bool,
    /// Locals of the item whose block has ended.
    gone: FxHashMap<Name, Span>,
    /// Items that were named.
    used: FxHashSet<ItemId>,
    /// Unknown names of the item, each reported once, with the number of its report if there is one.
    reported: FxHashMap<Name, Option<usize>>,
    /// See [`broken`].
    broken: FxHashMap<Name, Option<usize>>,
    /// The parser could not read an item of the file.
    unread: bool,
    /// Unknown names for which similar ones were sought.
    suggested: usize,
}

impl Walk<'_> {
    fn item(&mut self, item: &Item) {
        match &item.kind {
            ItemKind::Const(c) => {
                self.reserved(&c.name);
                self.scopes.push(Vec::new());
                self.opt(&c.ty);
                self.expr(&c.value);
                self.pop();
            }
            ItemKind::Fn(f) => {
                self.reserved(&f.name);
                self.scopes.push(Vec::new());
                self.statics(&f.statics);
                self.params(&f.params, true);
                self.open = true;
                self.opt(&f.ret);
                // A damaged signature may have lost names: what the body does not find was reported there.
                self.open = damaged(&f.params, &f.statics);
                self.block(&f.body);
                self.open = false;
                self.pop();
            }
            ItemKind::Kernel(k) | ItemKind::Program(k) => {
                self.reserved(&k.name);
                self.scopes.push(Vec::new());
                self.statics(&k.statics);
                self.params(&k.params, false);
                self.open = damaged(&k.params, &k.statics);
                for e in &k.wheres {
                    self.scopes.push(Vec::new());
                    self.free_indices(e);
                    self.expr(e);
                    self.pop();
                }
                for e in &k.ensures {
                    self.scopes.push(Vec::new());
                    // Indices are those of the left side; what only the right side uses is bound by `sum<k>`.
                    match &*e.kind {
                        ExprKind::Binary(BinaryOp::Eq, left, _) => self.free_indices(left),
                        _ => self.free_indices(e),
                    }
                    self.expr(e);
                    self.pop();
                }
                self.block(&k.body);
                self.open = false;
                self.pop();
            }
            ItemKind::Atom(a) => {
                self.reserved(&a.name);
                if let Err(faults) = crate::atoms::atom(a) {
                    self.out.extend(faults);
                }
            }
            ItemKind::Use(_) | ItemKind::Error => {}
        }
    }

    fn reserved(&mut self, name: &Ident) {
        let what = match builtins::word(&name.name) {
            Some(builtins::Word::DType(_) | builtins::Word::Index) => "a dtype",
            Some(builtins::Word::Loc(_)) => "a location",
            _ if isa::lookup(&name.name).is_some() => "an instruction",
            _ => return,
        };
        self.out.push(
            Diagnostic::error(codes::RESERVED_NAME, name.span, format!("`{}` is the name of {what}", name.name))
                .with_label(format!("taken by {what}"))
                .with_help("choose another name"),
        );
    }

    fn statics(&mut self, params: &[StaticParam]) {
        for p in params {
            match &p.kind {
                StaticKind::Const { ty, default, tune } => {
                    if let Some(t) = ty {
                        self.expr(t);
                    }
                    self.opt(default);
                    tune.iter().for_each(|e| self.expr(e));
                }
                StaticKind::Type { default } => self.opt(default),
                StaticKind::Fn { default } => {
                    if let Some(name) = default {
                        self.called = true;
                        self.name(&name.name, name.span);
                        self.called = false;
                    }
                }
            }
            self.define(&p.name, false);
        }
    }

    /// Functions also take the dtype from their arguments.
    fn params(&mut self, params: &[Param], dtype_open: bool) {
        // Names first: a type may mention a later scalar parameter.
        for p in params {
            self.define(&p.name, false);
        }
        for p in params {
            // Extents bind themselves. A bare type must exist.
            match &*p.ty.kind {
                ExprKind::Index(dtype, dims) => {
                    self.open = dtype_open;
                    self.called = true;
                    self.expr(dtype);
                    self.open = true;
                    self.args(dims);
                }
                ExprKind::Name(_) => {
                    self.called = true;
                    self.expr(&p.ty);
                }
                _ => {
                    self.open = true;
                    self.expr(&p.ty);
                }
            }
            self.open = false;
            self.called = false;
        }
        for p in params {
            self.opt(&p.default);
            if let Some(at) = &p.at {
                self.open = true;
                self.expr(at);
                self.open = false;
            }
        }
    }

    /// Bare names used as tensor indices in `where` and `ensures` are variables that range over the extents.
    fn free_indices(&mut self, e: &Expr) {
        let mut found = Vec::new();
        index_names(e, &mut found);
        for name in found {
            if !self.known(&name.name) {
                self.define(&name, false);
            }
        }
    }

    fn define(&mut self, name: &Ident, warn: bool) {
        self.define_as(name, warn, None);
    }

    fn define_as(&mut self, name: &Ident, warn: bool, value: Option<Span>) {
        self.reserved(name);
        let last = self.scopes.len().checked_sub(1).expect("a scope is open");
        if let Some(&(_, at)) = self.firm.get(&name.name).and_then(|all| all.last()).filter(|(scope, _)| *scope == last)
        {
            let first = &self.scopes[last][at];
            let d = Diagnostic::error(codes::DUPLICATE_NAME, name.span, format!("`{}` is defined twice", name.name))
                .with_label("second definition")
                .with_secondary(first.span, "first definition");
            self.out.push(d);
            return;
        }
        self.add(last, Local { name: name.name.clone(), span: name.span, used: false, warn, value });
    }

    /// Adds a name to a scope that has none inside with the same name.
    fn add(&mut self, scope: usize, local: Local) {
        let place = (scope, self.scopes[scope].len());
        if !local.warn {
            self.firm.entry(local.name.clone()).or_default().push(place);
        }
        self.places.entry(local.name.clone()).or_default().push(place);
        self.scopes[scope].push(local);
    }

    /// Is it a local name?
    fn local(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    fn pop(&mut self) {
        for l in self.scopes.pop().unwrap_or_default() {
            for places in [&mut self.places, &mut self.firm] {
                if let Some(all) = places.get_mut(&l.name) {
                    while all.last().is_some_and(|(scope, _)| *scope >= self.scopes.len()) {
                        all.pop();
                    }
                    if all.is_empty() {
                        places.remove(&l.name);
                    }
                }
            }
            self.gone.insert(l.name.clone(), l.span);
            if l.warn && !l.used && !l.name.starts_with('_') {
                let d = Diagnostic::warning(codes::UNUSED_NAME, l.span, format!("`{}` is never used", l.name))
                    .with_label("defined, and never read")
                    .with_fix(format!("if this is intended, call it `_{}`", l.name), l.span, format!("_{}", l.name));
                self.out.push(Diagnostic { unless: l.value, ..d });
            }
        }
    }

    fn known(&mut self, name: &str) -> bool {
        ptoc_diagnostics::work(1);
        if let Some(&(scope, at)) = self.places.get(name).and_then(|all| all.last()) {
            self.scopes[scope][at].used = true;
            return true;
        }
        if let Some(item) = self.module.scope.get(name) {
            self.used.insert(*item);
            return true;
        }
        self.reported.contains_key(name)
            || self.broken.contains_key(name)
            || builtins::word(name).is_some()
            || builtins::function(name).is_some()
            || isa::lookup(name).is_some()
    }

    fn name(&mut self, name: &Name, span: Span) {
        if self.known(name) {
            self.again(name, span);
            return;
        }
        if self.open {
            let ident = Ident { name: name.clone(), span };
            self.add(0, Local { name: ident.name, span, used: true, warn: false, value: None });
            return;
        }
        let before = self.out.len();
        self.unknown(name, span);
        self.reported.insert(name.clone(), (self.out.len() > before).then_some(before));
    }

    /// A name that was reported where it first stood, or where it is imported: what mends it there mends it here, too.
    fn again(&mut self, name: &Name, span: Span) {
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

    fn unknown(&mut self, name: &Name, span: Span) {
        let upper = name.len() > 1 && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        if let isa::Lookup::NotYet(name) = isa::find(name) {
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
            let own = |n: &str| self.module.ast.items.iter().find(|i| item_name(i).is_some_and(|own| own.name == n));
            candidates.extend(self.scopes.iter().flatten().map(|l| l.name.as_str()));
            let items = self.module.scope.keys().map(|n| n.as_str());
            let fits = |kind: &ItemKind| if callee { can_be_called(kind) } else { is_value(kind) };
            candidates.extend(items.filter(|n| own(n).is_none_or(|i| fits(&i.kind))));
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
                d.with_fix(format!("did you mean `{b}`?"), span, b)
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
        d.with_edits(message, edits)
    }

    /// Is it something that is not there yet, and not a name of the file's own?
    fn not_yet(&self, callee: &Expr) -> bool {
        let ExprKind::Name(n) = &*callee.kind else { return false };
        !self.own(callee)
            && (matches!(builtins::function(n), Some(builtins::Builtin::NotYet(_)))
                || matches!(builtins::word(n), Some(builtins::Word::NotYet(_))))
    }

    /// A function that orders pipes, if the file has no name of its own for it.
    fn sync_function(&self, callee: &Expr) -> Option<SyncFn> {
        let ExprKind::Name(n) = &*callee.kind else { return None };
        SyncFn::from_name(n).filter(|_| !self.own(callee))
    }

    /// Is it a name that the file defines?
    fn own(&self, callee: &Expr) -> bool {
        matches!(&*callee.kind, ExprKind::Name(n) if self.module.scope.contains_key(n) || self.local(n))
    }

    /// `pto.tadd(..)`, as PTO's assembler writes it.
    fn of_pto(&self, callee: &Expr) -> Option<Diagnostic> {
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

    fn opt(&mut self, e: &Option<Expr>) {
        if let Some(e) = e {
            self.expr(e);
        }
    }

    fn args(&mut self, args: &[Arg]) {
        args.iter().for_each(|a| self.expr(&a.value));
    }

    fn block(&mut self, b: &Block) {
        self.scopes.push(Vec::new());
        for s in &b.stmts {
            self.stmt(s);
        }
        if let Some(e) = &b.tail {
            self.expr(e);
        }
        self.pop();
    }

    fn stmt(&mut self, s: &Stmt) {
        scopes::parts(s, &mut |part| self.part(part));
    }

    fn part(&mut self, part: Part<'_>) {
        match part {
            Part::Value(e) | Part::Target(e) => self.expr(e),
            Part::Arguments(args) => self.args(args),
            // Loop variables may stay unused.
            Part::Local { name, kind, value, .. } => {
                self.define_as(name, kind != Kind::LoopVariable, value.map(|e| e.span));
            }
            Part::Block(Some((var, _)), body) => {
                self.scopes.push(Vec::new());
                self.define(var, false);
                self.block(body);
                self.pop();
            }
            Part::Block(None, body) => self.block(body),
            Part::On(_) | Part::Attributes(_) | Part::Role(_) => {}
        }
    }

    fn expr(&mut self, e: &Expr) {
        match &*e.kind {
            ExprKind::Name(n) => self.name(n, e.span),
            ExprKind::Int(_) | ExprKind::Float(..) | ExprKind::Bool(_) | ExprKind::Hole | ExprKind::Error => {}
            ExprKind::Str(text) => interpolated(text).for_each(|n| {
                self.known(n);
            }),
            ExprKind::Paren(a) | ExprKind::Unary(_, a) | ExprKind::Field(a, _) | ExprKind::TupleField(a, ..) => {
                self.expr(a)
            }
            // Basis names (`1@row`) belong to the target.
            ExprKind::Basis(a, _) => self.expr(a),
            ExprKind::Tuple(l) | ExprKind::List(l) | ExprKind::Tiler(l) => l.iter().for_each(|e| self.expr(e)),
            ExprKind::Binary(_, a, b) | ExprKind::Layout(a, b) | ExprKind::Range(a, b) => {
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Static(base, args) => {
                if matches!(&*base.kind, ExprKind::Name(n) if n == "sum") {
                    return;
                }
                if let Some(d) = crate::pto_tile::report(base, args, e.span).filter(|_| !self.own(base)) {
                    self.out.push(d);
                    return;
                }
                self.called = true;
                self.expr(base);
                (self.called, self.callee) = (false, false);
                // Pipes are known by their position; what an unknown name would take is not.
                let unknown = matches!(&*base.kind, ExprKind::Name(n) if self.reported.contains_key(n));
                if unknown || self.not_yet(base) || self.sync_function(base).is_some() {
                    return;
                }
                let tile = matches!(&*base.kind, ExprKind::Name(n) if isa::Loc::from_name(n).is_some());
                // Words of an instruction that stand there are reported where they stand.
                let instruction = matches!(&*base.kind, ExprKind::Name(n) if isa::lookup(n).is_some());
                for a in args {
                    if let (true, ExprKind::Name(n)) = (instruction, &*a.value.kind) {
                        self.known(n);
                        continue;
                    }
                    // What a tile type's other options take is said when they are refused.
                    if !tile || a.name.as_ref().is_none_or(|n| n.name == "valid") {
                        self.called = true;
                        self.expr(&a.value);
                        self.called = false;
                    }
                }
            }
            ExprKind::Call(callee, args) => {
                if let ExprKind::Static(base, vars) = &*callee.kind
                    && matches!(&*base.kind, ExprKind::Name(n) if n == "sum")
                {
                    self.scopes.push(Vec::new());
                    for v in vars {
                        if let ExprKind::Name(n) = &*v.value.kind {
                            let ident = Ident { name: n.clone(), span: v.value.span };
                            self.define(&ident, false);
                        }
                    }
                    self.args(args);
                    self.pop();
                    return;
                }
                if let Some(d) = self.of_pto(callee) {
                    self.out.push(d);
                    self.args(args);
                    return;
                }
                (self.called, self.callee) = (true, true);
                self.expr(callee);
                (self.called, self.callee) = (false, false);
                let base = match &*callee.kind {
                    ExprKind::Static(b, _) => b,
                    _ => callee,
                };
                // Arguments of what is not there yet may use names of its own (`MTE2`).
                if self.not_yet(base) {
                    return;
                }
                // Words of PTO's in a call of PTO's function go with it.
                if let ExprKind::Name(n) = &*base.kind
                    && self.reported.contains_key(n)
                    && isa::otherwise(n).is_some()
                {
                    let theirs = |a: &&Arg| matches!(&*a.value.kind, ExprKind::Name(n) if isa::is_spelled(n));
                    args.iter().filter(|a| !theirs(a)).for_each(|a| self.expr(&a.value));
                    return;
                }
                let around = self.instruction.take();
                if let ExprKind::Name(n) = &*base.kind {
                    self.instruction = isa::lookup(n);
                }
                match self.sync_function(base) {
                    // One argument may be a pipe.
                    Some(f @ (SyncFn::Barrier | SyncFn::TSync)) => {
                        for a in args {
                            match &*a.value.kind {
                                ExprKind::Name(n) if isa::Pipe::from_name(n).is_some() || f == SyncFn::Barrier => {
                                    self.known(n);
                                }
                                _ => self.expr(&a.value),
                            }
                        }
                    }
                    // Written as arguments: elaboration says where they belong.
                    Some(f) if f.is_type() => {
                        for a in args {
                            if !matches!(&*a.value.kind, ExprKind::Name(n) if isa::Pipe::from_name(n).is_some()) {
                                self.expr(&a.value);
                            }
                        }
                    }
                    _ => self.args(args),
                }
                self.instruction = around;
            }
            ExprKind::Index(base, args) => {
                self.expr(base);
                self.args(args);
            }
            ExprKind::If(i) => scopes::branches(i, &mut |part| self.part(part)),
            ExprKind::Tile { ty, at } => {
                self.expr(ty);
                self.opt(at);
            }
            ExprKind::Tensor { ty, fill, .. } => {
                self.expr(ty);
                self.opt(fill);
            }
        }
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

/// Did the parser lose a part of this signature?
pub(crate) fn damaged(params: &[Param], statics: &[StaticParam]) -> bool {
    let lost = |e: &Expr| matches!(&*e.kind, ExprKind::Error);
    params.iter().any(|p| lost(&p.ty) || p.name.name.is_empty())
        || statics.iter().any(|s| match &s.kind {
            StaticKind::Const { ty, default, .. } => {
                ty.as_ref().is_some_and(lost) || default.as_ref().is_some_and(lost)
            }
            StaticKind::Type { default } => default.as_ref().is_some_and(lost),
            StaticKind::Fn { .. } => false,
        })
}

/// Bare names that index something, in order of appearance, each once; `sum<k>` binds its own.
pub(crate) fn index_names(e: &Expr, out: &mut Vec<Ident>) {
    let mut bound = FxHashSet::default();
    collect(e, &mut bound, out);

    fn collect(e: &Expr, bound: &mut FxHashSet<Name>, out: &mut Vec<Ident>) {
        match &*e.kind {
            ExprKind::Index(base, args) => {
                collect(base, bound, out);
                for a in args {
                    if let ExprKind::Name(n) = &*a.value.kind {
                        if !bound.contains(n) && !out.iter().any(|i| i.name == *n) {
                            out.push(Ident { name: n.clone(), span: a.value.span });
                        }
                    } else {
                        collect(&a.value, bound, out);
                    }
                }
            }
            ExprKind::Call(callee, args) => {
                let mut inner = bound.clone();
                if let ExprKind::Static(_, vars) = &*callee.kind {
                    for v in vars {
                        if let ExprKind::Name(n) = &*v.value.kind {
                            inner.insert(n.clone());
                        }
                    }
                }
                args.iter().for_each(|a| collect(&a.value, &mut inner, out));
            }
            ExprKind::Paren(a) | ExprKind::Unary(_, a) | ExprKind::Field(a, _) | ExprKind::TupleField(a, ..) => {
                collect(a, bound, out)
            }
            ExprKind::Binary(_, a, b) | ExprKind::Range(a, b) | ExprKind::Layout(a, b) => {
                collect(a, bound, out);
                collect(b, bound, out);
            }
            ExprKind::Tuple(l) | ExprKind::List(l) | ExprKind::Tiler(l) => {
                l.iter().for_each(|e| collect(e, bound, out))
            }
            ExprKind::If(i) => {
                collect(&i.cond, bound, out);
                for b in
                    [Some(&i.then), i.els.as_deref().and_then(|e| if let Else::Block(b) = e { Some(b) } else { None })]
                {
                    if let Some(t) = b.and_then(|b| b.tail.as_ref()) {
                        collect(t, bound, out);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Does the expression use the name? Blocks are not looked into.
pub(crate) fn mentions(e: &Expr, name: &Name) -> bool {
    let args = |args: &[Arg]| args.iter().any(|a| mentions(&a.value, name));
    match &*e.kind {
        ExprKind::Name(n) => n == name,
        ExprKind::Paren(a)
        | ExprKind::Unary(_, a)
        | ExprKind::Basis(a, _)
        | ExprKind::Field(a, _)
        | ExprKind::TupleField(a, ..) => mentions(a, name),
        ExprKind::Tuple(l) | ExprKind::List(l) | ExprKind::Tiler(l) => l.iter().any(|a| mentions(a, name)),
        ExprKind::Binary(_, a, b) | ExprKind::Layout(a, b) | ExprKind::Range(a, b) => {
            mentions(a, name) || mentions(b, name)
        }
        ExprKind::Index(a, l) | ExprKind::Call(a, l) | ExprKind::Static(a, l) => mentions(a, name) || args(l),
        _ => false,
    }
}

/// Names in braces: `"got {KS}"`.
pub(crate) fn interpolated(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|p| p.split_once('}').map(|(n, _)| n.split('.').next().unwrap_or(n).trim()))
}

/// A name of PTO's: an instruction, a method, a type or a word that the language spells otherwise, or has not.
pub(crate) fn otherwise(name: &str, span: Span) -> Option<Diagnostic> {
    // In small letters it is most likely a name of the author's.
    let theirs = isa::is_spelled(name) || name.chars().any(char::is_uppercase);
    (theirs && isa::otherwise(name).is_some()).then(|| no_instruction(name, span))
}

/// An instruction of PTO's that the table does not have.
fn no_instruction(name: &str, span: Span) -> Diagnostic {
    let told = |message: String, label: &str| Diagnostic::error(codes::NOT_YET, span, message).with_label(label);
    match isa::otherwise(name) {
        Some(isa::Otherwise::As(how)) => told(format!("ptoc has PTO's `{name}` in another form"), "spelled otherwise")
            .with_help(format!("it is {how}")),
        Some(isa::Otherwise::LeftOut(why)) => {
            told(format!("PTO's `{name}` is not part of the language"), "left out").with_note(why)
        }
        None => told(format!("ptoc does not have the PTO instruction `{name}` yet"), "not available"),
    }
}

/// A mode of PTO's as it is written here.
pub(crate) fn respelled(word: &str) -> Option<&'static str> {
    Some(match word {
        "AtomicAdd" => "atomic = true",
        "AtomicMax" => "atomic = Max",
        "AtomicMin" => "atomic = Min",
        "ON" => "saturate = true",
        "OFF" => "saturate = false",
        _ => return None,
    })
}

/// A word for what an instruction has in PTO's form, and has not here.
pub(crate) fn left_out(id: isa::InstrId, word: &str, span: Span) -> Option<Diagnostic> {
    let name = id.get().written_name();
    let parts: Vec<isa::LeftOut> = isa::left_out(name).filter(|p| p.words.contains(&word)).collect();
    let message = format!("`{word}` of {name} is not part of the language");
    let d = Diagnostic::error(codes::NOT_YET, span, message).with_label("left out");
    match parts.as_slice() {
        [] => None,
        // It is one argument of ours.
        [part] if let Some(ours) = respelled(word) => {
            let message = format!("ptoc has `{word}` of PTO's {name} in another form");
            let d = Diagnostic::error(codes::NOT_YET, span, message).with_label("spelled otherwise");
            Some(d.with_fix(part.why, span, ours))
        }
        // It is there, said another way.
        [part] if part.why.starts_with("it is ") => {
            let message = format!("ptoc has `{word}` of PTO's {name} in another form");
            let d = Diagnostic::error(codes::NOT_YET, span, message).with_label("spelled otherwise");
            Some(d.with_help(part.why))
        }
        [part] => Some(d.with_note(part.why)),
        several => Some(several.iter().fold(d, |d, p| d.with_note(format!("{}: {}", p.what, p.why)))),
    }
}
