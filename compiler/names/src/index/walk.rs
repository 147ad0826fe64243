//! One walk over a file's tree that notes every name. Scopes and the order of look-up are those of `names.rs`.

use super::records::{self, RecordShape};
use super::{Definition, DefinitionKind, FileIndex, Meaning, Occurrence, OccurrenceAccess, known};
use crate::builtins::SyncFn;
use crate::modules::{ItemId, Module, ModuleId, Modules, item_name};
use crate::resolve::index_names;
use crate::scopes::{self, StatementPart};
use ptoc_diagnostics::Span;
use ptoc_isa::{Pipe, Role};
use ptoc_syntax::Directive;
use ptoc_syntax::ast::*;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The names of a module.
pub(super) fn file(modules: &Modules, id: ModuleId, text: &str) -> FileIndex {
    let module = modules.get(id);
    let whole = Span::new(module.file, 0, text.len() as u32);
    let mut walk = IndexBuilder {
        modules,
        module,
        text,
        out: FileIndex::default(),
        scopes: Vec::new(),
        ends: Vec::new(),
        open: false,
        access: OccurrenceAccess::Read,
        item: whole,
        limit: whole.end,
        records: FxHashMap::default(),
    };
    for (n, item) in module.ast.items.iter().enumerate() {
        // What an item that nobody has closed reaches up to.
        walk.limit = module.ast.items.get(n + 1).map_or(whole.end, |next| next.span.start).max(item.span.end);
        walk.item(item, whole);
    }
    for directive in &module.directives {
        walk.directive(directive);
    }
    let mut out = walk.out;
    out.definitions.sort_by_key(|d| d.span.start);
    // What is twice in the tree (`if` as a tail) or defined twice by a mistake is one name at one place.
    out.definitions.dedup_by_key(|d| d.span.start);
    out.occurrences.sort_by_key(|o| (o.span.start, o.access != OccurrenceAccess::Define));
    out.occurrences.dedup_by_key(|o| o.span.start);
    out
}

pub(super) struct IndexBuilder<'a> {
    pub(super) modules: &'a Modules,
    pub(super) module: &'a Module,
    text: &'a str,
    pub(super) out: FileIndex,
    /// Names and where they were defined last, the innermost block last.
    scopes: Vec<FxHashMap<Name, Span>>,
    /// Where the innermost block ends, and those around it.
    ends: Vec<u32>,
    /// Unknown names bind themselves.
    pub(super) open: bool,
    /// What is done with the name that comes.
    access: OccurrenceAccess,
    /// The item around.
    item: Span,
    /// Where the next item begins.
    limit: u32,
    /// The fields of names that stand for records, by where the names are defined.
    pub(super) records: FxHashMap<Span, Rc<RecordShape>>,
}

impl IndexBuilder<'_> {
    pub(super) fn note(&mut self, span: Span, meaning: Meaning, access: OccurrenceAccess) {
        // A name that the parser made up stands on nothing, or on what is there in its place.
        let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if self.text.get(span.range()).is_some_and(|word| !word.is_empty() && word.chars().all(name)) {
            self.out.occurrences.push(Occurrence { span, meaning, access });
        }
    }

    pub(super) fn define(
        &mut self,
        name: &Ident,
        kind: DefinitionKind,
        whole: Span,
        scope: Span,
        ty: Option<&Expr>,
        value: Option<&Expr>,
    ) {
        if self.text.get(name.span.range()) != Some(name.name.as_str()) || name.name.is_empty() {
            return;
        }
        self.out.definitions.push(Definition {
            name: name.name.clone(),
            span: name.span,
            kind,
            whole,
            scope,
            ty: ty.map(|e| e.span),
            value: value.map(|e| e.span),
        });
        self.note(name.span, Meaning::Source(name.span), OccurrenceAccess::Define);
        if let Some(shape) = ty.and_then(records::of_type).or_else(|| value.and_then(|v| self.record(v))) {
            self.records.insert(name.span, shape);
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.name.clone(), name.span);
        }
    }

    /// Defines what can be named from the end of `whole` to the end of the block.
    fn local(&mut self, name: &Ident, kind: DefinitionKind, whole: Span, ty: Option<&Expr>, value: Option<&Expr>) {
        let end = self.ends.last().copied().unwrap_or(whole.end).max(whole.end);
        let scope = Span::new(whole.file, whole.end, end);
        self.define(name, kind, whole, scope, ty, value);
    }

    pub(super) fn enter(&mut self, end: u32) {
        self.scopes.push(FxHashMap::default());
        self.ends.push(end);
    }

    pub(super) fn leave(&mut self) {
        self.scopes.pop();
        self.ends.pop();
    }

    fn item(&mut self, item: &Item, file: Span) {
        self.item = match body(item) {
            Some(b) if !self.closed(b) => Span { end: self.limit, ..item.span },
            _ => item.span,
        };
        if let Some(name) = item_name(item) {
            let kind = match &item.kind {
                ItemKind::Kernel(_) => DefinitionKind::Kernel,
                ItemKind::Program(_) => DefinitionKind::Program,
                ItemKind::Fn(_) => DefinitionKind::Function,
                ItemKind::Atom(_) => DefinitionKind::Atom,
                _ => DefinitionKind::Constant,
            };
            let (ty, value) = match &item.kind {
                ItemKind::Const(c) => (c.ty.as_ref(), Some(&c.value)),
                _ => (None, None),
            };
            self.define(name, kind, item.span, file, ty, value);
        }
        self.enter(self.item.end);
        self.attributes(&item.attrs);
        match &item.kind {
            ItemKind::Use(path) => self.import(path),
            ItemKind::Const(c) => {
                self.opt(&c.ty);
                self.expr(&c.value);
            }
            ItemKind::Fn(f) => {
                self.statics(&f.statics);
                self.params(&f.params, true);
                self.open = true;
                f.ret.iter().for_each(|ty| self.ty(ty));
                self.open = false;
                self.block(&f.body);
            }
            ItemKind::Kernel(k) | ItemKind::Program(k) => {
                self.statics(&k.statics);
                self.params(&k.params, false);
                self.disjoint(&item.attrs);
                for e in &k.wheres {
                    self.condition(e, e);
                }
                for e in &k.ensures {
                    self.condition(crate::resolve::claimed(e), e);
                }
                self.block(&k.body);
            }
            ItemKind::Atom(a) => a.fields.iter().for_each(|(_, e)| self.expr(e)),
            ItemKind::Error => {}
        }
        self.leave();
    }

    fn import(&mut self, path: &[Ident]) {
        let Some((last, segments)) = path.split_last() else { return };
        let Some((_, id)) = self.module.imports.iter().find(|(name, _)| name.span == last.span) else { return };
        let module = self.modules.get(id.module).file;
        segments.iter().for_each(|s| self.note(s.span, Meaning::Module(module), OccurrenceAccess::Import));
        if let Some(name) = item_name(self.modules.item(*id)) {
            self.note(last.span, Meaning::Source(name.span), OccurrenceAccess::Import);
        }
    }

    fn attributes(&mut self, attrs: &[Attr]) {
        for arg in attrs.iter().flat_map(|a| &a.args) {
            if let AttrArg::Value(_, e) = arg {
                self.expr(e);
            }
        }
    }

    /// `#[disjoint(tensor, ..)]` names a parameter.
    fn disjoint(&mut self, attrs: &[Attr]) {
        for a in attrs.iter().filter(|a| a.name.name == "disjoint") {
            if let Some(AttrArg::Name(tensor)) = a.args.first()
                && let Some(parameter) = self.source(&tensor.name)
            {
                self.note(tensor.span, Meaning::Source(parameter), OccurrenceAccess::Mention);
            }
        }
    }

    /// A condition over indices, those of `left` bound for all of `e`.
    fn condition(&mut self, left: &Expr, e: &Expr) {
        self.enter(e.span.end);
        let mut found = Vec::new();
        index_names(left, &mut found);
        for name in found {
            if self.source(&name.name).is_none() && known(&name.name).is_none() {
                self.define(&name, DefinitionKind::BoundIndex, name.span, e.span, None, None);
            }
        }
        self.expr(e);
        self.leave();
    }

    fn statics(&mut self, params: &[StaticParam]) {
        let rest = |p: &StaticParam, item: Span| Span::new(item.file, p.span.end.min(item.end), item.end);
        for p in params {
            let scope = rest(p, self.item);
            match &p.kind {
                StaticKind::Const { ty, default, tune } => {
                    self.opt(ty);
                    self.opt(default);
                    tune.iter().for_each(|e| self.expr(e));
                    self.define(&p.name, DefinitionKind::ConstParam, p.span, scope, ty.as_ref(), default.as_ref());
                }
                StaticKind::Type { default } => {
                    self.opt(default);
                    self.define(&p.name, DefinitionKind::TypeParam, p.span, scope, None, default.as_ref());
                }
                StaticKind::Fn { default } => {
                    if let Some(f) = default {
                        self.name(&f.name, f.span);
                    }
                    self.define(&p.name, DefinitionKind::FnParam, p.span, scope, None, None);
                }
            }
        }
    }

    fn params(&mut self, params: &[Param], dtype_open: bool) {
        for p in params {
            let of_tiles = |base: &Expr| matches!(&*base.kind, ExprKind::Static(..));
            let kind = if matches!(&*p.ty.kind, ExprKind::Index(base, _) if !of_tiles(base)) {
                DefinitionKind::Tensor
            } else {
                DefinitionKind::Parameter
            };
            let scope = Span::new(self.item.file, p.span.start, self.item.end.max(p.span.start));
            self.define(&p.name, kind, p.span, scope, Some(&p.ty), p.default.as_ref());
        }
        for p in params {
            match &*p.ty.kind {
                ExprKind::Index(dtype, dims) => {
                    self.open = dtype_open;
                    self.expr(dtype);
                    self.open = true;
                    dims.iter().for_each(|d| self.expr(&d.value));
                }
                ExprKind::Name(_) => self.expr(&p.ty),
                _ => {
                    self.open = true;
                    self.ty(&p.ty);
                }
            }
            self.open = false;
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

    /// The place where a name is defined.
    pub(super) fn source(&self, name: &str) -> Option<Span> {
        if let Some(span) = self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            return Some(*span);
        }
        let id = self.module.scope.get(name)?;
        item_name(self.modules.item(*id)).map(|n| n.span)
    }

    fn name(&mut self, name: &Name, span: Span) {
        if let Some(at) = self.source(name) {
            self.note(span, Meaning::Source(at), self.access);
        } else if let Some(k) = known(name) {
            self.note(span, Meaning::Known(k), OccurrenceAccess::Read);
        } else if self.open && !self.scopes.is_empty() {
            let ident = Ident { name: name.clone(), span };
            let inner = self.scopes.split_off(1);
            let scope = Span::new(span.file, span.end, self.item.end.max(span.end));
            self.define(&ident, DefinitionKind::Dimension, span, scope, None, None);
            self.scopes.extend(inner);
        }
    }

    fn opt(&mut self, e: &Option<Expr>) {
        if let Some(e) = e {
            self.expr(e);
        }
    }

    /// Whether a block has its `}`. One that the parser has added is nowhere in the text: the block ends with its last
    /// statement.
    fn closed(&self, b: &Block) -> bool {
        let last = b.stmts.last().map(|s| s.span).into_iter().chain(b.tail.as_ref().map(|e| e.span));
        self.text.get(..b.span.end as usize).is_some_and(|t| t.ends_with('}'))
            && last.into_iter().all(|s| s.end < b.span.end)
    }

    /// Where names of a block end: before its `}`.
    fn end(&self, b: &Block) -> u32 {
        if self.closed(b) { b.span.end - 1 } else { self.limit }
    }

    fn block(&mut self, b: &Block) {
        self.enter(self.end(b));
        b.stmts.iter().for_each(|s| self.stmt(s));
        if let Some(e) = &b.tail {
            self.expr(e);
        }
        self.leave();
    }

    pub(super) fn stmt(&mut self, s: &Stmt) {
        scopes::parts(s, &mut |part| self.part(part, s.span));
    }

    fn part(&mut self, part: StatementPart<'_>, stmt: Span) {
        match part {
            StatementPart::Type(e) => self.ty(e),
            StatementPart::Value(e) | StatementPart::On(e) => self.expr(e),
            StatementPart::Target(e) => self.written(e),
            StatementPart::Arguments(args) => args.iter().for_each(|a| self.expr(&a.value)),
            StatementPart::Named(name) => self.name(&name.name, name.span),
            StatementPart::Local { name, kind, ty, value } => self.local(name, kind, stmt, ty, value),
            StatementPart::Block(Some((var, range)), body) => self.looped(var, range, body),
            StatementPart::Block(None, body) => self.block(body),
            StatementPart::Attributes(attrs) => self.attributes(attrs),
            StatementPart::Role(name) => {
                self.note(name.span, Meaning::Known(super::KnownName::Pipe), OccurrenceAccess::Read)
            }
        }
    }

    fn looped(&mut self, var: &Ident, range: &Expr, body: &Block) {
        let end = self.end(body);
        self.enter(end);
        let scope = Span { end: end.max(body.span.end), ..body.span };
        self.define(var, DefinitionKind::LoopVariable, var.span.to(range.span), scope, None, Some(range));
        self.block(body);
        self.leave();
    }

    /// An expression whose root is given a value.
    fn written(&mut self, e: &Expr) {
        match &*e.kind {
            ExprKind::Name(n) => {
                let before = std::mem::replace(&mut self.access, OccurrenceAccess::Write);
                self.name(n, e.span);
                self.access = before;
            }
            ExprKind::Field(a, name) => {
                self.written(a);
                self.field(a, name);
            }
            ExprKind::Paren(a) | ExprKind::TupleField(a, ..) => self.written(a),
            // A window of what is written: `y.tile(i)`, `acc[0, 0]`.
            ExprKind::Index(a, args) | ExprKind::Call(a, args)
                if matches!(&*a.kind, ExprKind::Field(..) | ExprKind::Name(_)) =>
            {
                let method = matches!(&*a.kind, ExprKind::Field(..)) || matches!(&*e.kind, ExprKind::Index(..));
                if method {
                    self.written(a)
                } else {
                    self.expr(a)
                }
                args.iter().for_each(|a| self.expr(&a.value));
            }
            _ => self.expr(e),
        }
    }

    pub(super) fn expr(&mut self, e: &Expr) {
        match &*e.kind {
            ExprKind::Name(n) => self.name(n, e.span),
            ExprKind::Int(_) | ExprKind::Float(..) | ExprKind::Bool(_) | ExprKind::Hole => {}
            ExprKind::FnType | ExprKind::Error => {}
            ExprKind::Str(_) => self.interpolated(e.span),
            ExprKind::Field(a, name) => {
                self.expr(a);
                self.field(a, name);
            }
            ExprKind::Record(fields) => fields.iter().for_each(|(name, e)| {
                self.expr(e);
                self.define_field(name, name.span.to(e.span), None, Some(e));
            }),
            ExprKind::Closure(c) => self.closure(c, e.span),
            ExprKind::Paren(a) | ExprKind::Unary(_, a) | ExprKind::TupleField(a, ..) | ExprKind::Basis(a, _) => {
                self.expr(a)
            }
            ExprKind::Tuple(l) | ExprKind::List(l) | ExprKind::Tiler(l) => l.iter().for_each(|e| self.expr(e)),
            ExprKind::Binary(_, a, b) | ExprKind::Layout(a, b) | ExprKind::Range(a, b) => {
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Static(base, args) => {
                self.expr(base);
                self.arguments(base, args, true);
            }
            ExprKind::Call(callee, args) => {
                if let ExprKind::Static(base, vars) = &*callee.kind
                    && crate::resolve::ranges_over(base)
                    && !matches!(&*base.kind, ExprKind::Name(n) if self.module.scope.contains_key(n))
                {
                    self.expr(base);
                    self.enter(e.span.end);
                    for v in vars {
                        if let ExprKind::Name(n) = &*v.value.kind {
                            let ident = Ident { name: n.clone(), span: v.value.span };
                            self.define(&ident, DefinitionKind::BoundIndex, v.value.span, e.span, None, None);
                        }
                    }
                    args.iter().for_each(|a| self.expr(&a.value));
                    self.leave();
                    return;
                }
                self.expr(callee);
                let base = if let ExprKind::Static(b, _) = &*callee.kind { b } else { callee };
                self.arguments(base, args, false);
            }
            ExprKind::Index(base, args) => {
                self.expr(base);
                args.iter().for_each(|a| self.expr(&a.value));
            }
            ExprKind::If(i) => scopes::branches(i, &mut |part| self.part(part, e.span)),
            ExprKind::Tile { ty, at } => {
                self.expr(ty);
                self.opt(at);
            }
            ExprKind::Tensor { ty, at, fill, .. } => {
                self.expr(ty);
                self.opt(at);
                self.opt(fill);
            }
        }
    }

    /// Arguments in parentheses or static ones: names of parameters, destinations of instructions, pipes.
    fn arguments(&mut self, base: &Expr, args: &[Arg], statics: bool) {
        let callee = if let ExprKind::Name(n) = &*base.kind { Some(n) } else { None };
        let local = callee.is_some_and(|n| self.scopes.iter().any(|scope| scope.contains_key(n)));
        let item = callee.filter(|_| !local).and_then(|n| self.module.scope.get(n)).copied();
        let own = local || item.is_some();
        let instruction = callee.filter(|_| !own).and_then(|n| ptoc_isa::lookup(n)).map(|id| id.get());
        let pipes = callee.is_some_and(|n| !own && SyncFn::from_name(n).is_some());
        for (k, arg) in args.iter().enumerate() {
            if let (Some(name), Some(id)) = (&arg.name, item) {
                self.parameter(id, name, statics);
            }
            let written = instruction.and_then(|i| i.operands.get(k)).is_some_and(|o| o.role == Role::Dst);
            match &*arg.value.kind {
                ExprKind::Name(n) if pipes && Pipe::from_name(n).is_some() => {
                    self.note(arg.value.span, Meaning::Known(super::KnownName::Pipe), OccurrenceAccess::Read);
                }
                _ if written => self.written(&arg.value),
                _ => self.expr(&arg.value),
            }
        }
    }

    /// `name =` before an argument for an item.
    fn parameter(&mut self, id: ItemId, name: &Ident, statics: bool) {
        let (known, params) = match &self.modules.item(id).kind {
            ItemKind::Kernel(k) | ItemKind::Program(k) => (&k.statics, &k.params),
            ItemKind::Fn(f) => (&f.statics, &f.params),
            _ => return,
        };
        let found = match statics {
            true => known.iter().find(|p| p.name.name == name.name).map(|p| p.name.span),
            false => params.iter().find(|p| p.name.name == name.name).map(|p| p.name.span),
        };
        if let Some(at) = found {
            self.note(name.span, Meaning::Source(at), OccurrenceAccess::Mention);
        }
    }

    /// Names in the braces of a text that is written there: `"got {KS}"`.
    fn interpolated(&mut self, span: Span) {
        let Some(raw) = self.text.get(span.range()) else { return };
        for (at, _) in raw.match_indices('{') {
            // `\u{41}` is a character.
            if raw[..at].ends_with("\\u") {
                continue;
            }
            let Some(length) = raw[at + 1..].find('}') else { continue };
            let inside = &raw[at + 1..at + 1 + length];
            let lead = inside.len() - inside.trim_start().len();
            let word = inside.trim_start().split('.').next().unwrap_or_default().trim_end();
            if let Some(found) = self.source(word) {
                let start = span.start + (at + 1 + lead) as u32;
                let place = Span::new(span.file, start, start + word.len() as u32);
                self.note(place, Meaning::Source(found), OccurrenceAccess::Mention);
            }
        }
    }

    /// A test line names a kernel, its parameters, and values for them.
    fn directive(&mut self, directive: &Directive) {
        let kernel = directive.kernel();
        let Some(id) = self.module.scope.get(&kernel.name) else { return };
        let item = self.modules.item(*id);
        if let Some(name) = item_name(item) {
            self.note(kernel.span, Meaning::Source(name.span), OccurrenceAccess::Mention);
        }
        if self.module.file != item.span.file {
            return;
        }
        let settings = directive.settings();
        let arrays = match directive {
            Directive::Run(r) => r.inputs.iter().chain(&r.expects).collect(),
            Directive::Trap(t) => t.inputs.iter().collect(),
            Directive::Check(_) => Vec::new(),
        };
        for binding in settings.params.iter().chain(arrays) {
            let named = |d: &&Definition| {
                d.name == binding.name.name
                    && item.span.contains(d.span)
                    && matches!(
                        d.kind,
                        DefinitionKind::ConstParam
                            | DefinitionKind::TypeParam
                            | DefinitionKind::FnParam
                            | DefinitionKind::Tensor
                            | DefinitionKind::Parameter
                            | DefinitionKind::Dimension
                    )
            };
            if let Some(at) = self.out.definitions.iter().find(named).map(|d| d.span) {
                self.note(binding.name.span, Meaning::Source(at), OccurrenceAccess::Mention);
            }
            if let Some(at) = self.source(&binding.value) {
                self.note(binding.value_span, Meaning::Source(at), OccurrenceAccess::Mention);
            }
        }
    }
}

/// The block of an item.
fn body(item: &Item) -> Option<&Block> {
    match &item.kind {
        ItemKind::Kernel(k) | ItemKind::Program(k) => Some(&k.body),
        ItemKind::Fn(f) => Some(&f.body),
        _ => None,
    }
}
