//! Every name in every item is looked up here, also in code that nothing instantiates. Elaboration repeats the look-up
//! with values and stays silent about what was reported here.

mod expressions;
mod pto;
mod unknown;
mod walk;

pub(crate) use expressions::each_name_of_block;
use expressions::names_in_brackets;
pub use expressions::{claimed, close_args, damaged, each_name, index_names, interpolated, mentions, ranges_over};
pub use pto::{left_out, otherwise, respelled};

use crate::builtins;
use crate::modules::{ItemId, Module, Modules};
use ptoc_diagnostics::{Diagnostic, Fix, Span, codes};
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
        let mut walk = NameResolver {
            modules,
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
            unused_imports(modules, module, &used, out);
        }
    }
    modules.note_names(out[before..].iter().any(Diagnostic::is_error));
}

fn unused_imports(modules: &Modules, module: &Module, used: &FxHashSet<ItemId>, out: &mut Vec<Diagnostic>) {
    let items = || module.ast.items.iter().filter(|i| !matches!(i.kind, ItemKind::Use(_)));
    // What the walk does not come by (options, attributes) may name it, too.
    let words = LazyCell::new(|| {
        let mut words = Words::default();
        items().for_each(|i| write!(words, "{i:?}").expect("words are collected without fail"));
        words.all
    });
    let given: FxHashSet<&Name> = module.given.iter().collect();
    let chosen = takes_functions(module);
    for (name, item) in &module.imports {
        if chosen && matches!(modules.item(*item).kind, ItemKind::Fn(_)) {
            continue;
        }
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

/// Whether the command line alone chooses a function (`-D act=gelu`): then one that nothing names is there to be
/// chosen. Where test lines choose, they say which ones are.
fn takes_functions(module: &Module) -> bool {
    let by_a_line = |p: &StaticParam| {
        module.directives.iter().flat_map(|d| &d.settings().params).any(|given| given.name.name == p.name.name)
    };
    let open = |p: &StaticParam| matches!(p.kind, StaticKind::Fn { .. }) && !by_a_line(p);
    module.ast.items.iter().any(|item| match &item.kind {
        ItemKind::Kernel(k) | ItemKind::Program(k) => k.statics.iter().any(open),
        _ => false,
    })
}

/// Adds to an error about an unknown name of a `where`, if it is written as dimensions are, what one is.
fn no_dimension(d: &mut Diagnostic) {
    let upper = d.message.split('`').nth(1).is_some_and(|n| n.starts_with(|c: char| c.is_ascii_uppercase()));
    if upper && d.code == codes::UNKNOWN_NAME && d.fixes.is_empty() {
        d.fixes.push(Fix::advice("`where` defines no dimension: one stands in the type of an argument"));
    }
}

/// Adds to an error about an unknown name of an `ensures` what makes a name an index there.
fn no_index(d: &mut Diagnostic, indexing: &FxHashSet<String>) {
    let Some(name) = d.message.split('`').nth(1).filter(|_| d.code == codes::UNKNOWN_NAME) else { return };
    if d.fixes.is_empty() && indexing.contains(name) {
        d.fixes.push(Fix::advice(format!(
            "an index is a name that stands alone in brackets on the left, as in `y[{name}] == x[{name} - 1]`"
        )));
    }
}

/// `y[i]` where `i` is a number already.
fn number_as_index(name: &Ident) -> Diagnostic {
    let n = &name.name;
    Diagnostic::error(codes::DUPLICATE_NAME, name.span, format!("`{n}` is an index here, and a number already"))
        .with_label("all elements, or one?")
        .with_help(format!("call the index otherwise; for the one element of that number write `[({n})]`"))
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

struct NameResolver<'a> {
    modules: &'a Modules,
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

impl NameResolver<'_> {
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
                f.ret.iter().for_each(|ty| self.ty(ty));
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
                    self.free_indices(e, false);
                    let told = self.out.len();
                    self.expr(e);
                    self.out[told..].iter_mut().for_each(no_dimension);
                    self.pop();
                }
                for e in &k.ensures {
                    self.scopes.push(Vec::new());
                    // Indices are those of the left side; what only the right side uses is bound by `sum<k>`.
                    self.free_indices(claimed(e), true);
                    let told = self.out.len();
                    self.expr(e);
                    let mut indexing = FxHashSet::default();
                    names_in_brackets(e, &mut indexing);
                    self.out[told..].iter_mut().for_each(|d| no_index(d, &indexing));
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
                    self.ty(&p.ty);
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

    /// Bare names used as tensor indices in `where` and `ensures` are variables that range over the extents, whatever
    /// functions and kernels are called. Numbers of these names are no indices; in an `ensures` that is refused, since
    /// it would hold for one element where all seem to be meant.
    fn free_indices(&mut self, e: &Expr, of_results: bool) {
        let mut found = Vec::new();
        index_names(e, &mut found);
        for name in found {
            let item = self.module.scope.get(&name.name).map(|item| &self.modules.item(*item).kind);
            let is_number = self.places.contains_key(&name.name) || matches!(item, Some(ItemKind::Const(_)));
            if is_number && of_results {
                self.out.push(number_as_index(&name));
            }
            if is_number && !of_results || item.is_none() && self.known(&name.name) {
                continue;
            }
            self.add(
                self.scopes.len() - 1,
                Local { used: true, warn: false, value: None, name: name.name, span: name.span },
            );
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

    /// Whether it is a local name.
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
            // A word of the language is refused as a name: it needs another one anyway.
            if l.warn && !l.used && !l.name.starts_with('_') && !ptoc_syntax::is_keyword(&l.name) {
                let d = Diagnostic::warning(codes::UNUSED_NAME, l.span, format!("`{}` is never used", l.name))
                    .with_label("defined, and never read")
                    .with_suggestion(
                        format!("if this is intended, call it `_{}`", l.name),
                        l.span,
                        format!("_{}", l.name),
                    );
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
}
