//! The walk over blocks, statements and expressions.

use super::NameResolver;
use super::expressions::{interpolated, ranges_over};
use crate::builtins::SyncFn;
use crate::index::DefinitionKind;
use crate::scopes::{self, StatementPart};
use ptoc_diagnostics::{Diagnostic, Edit, Span, codes};
use ptoc_isa as isa;
use ptoc_syntax::ast::*;

impl NameResolver<'_> {
    pub(super) fn opt(&mut self, e: &Option<Expr>) {
        if let Some(e) = e {
            self.expr(e);
        }
    }

    pub(super) fn args(&mut self, args: &[Arg]) {
        args.iter().for_each(|a| self.expr(&a.value));
    }

    pub(super) fn block(&mut self, b: &Block) {
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

    fn part(&mut self, part: StatementPart<'_>) {
        match part {
            StatementPart::Type(e) => self.ty(e),
            StatementPart::Value(e) | StatementPart::Target(e) => self.expr(e),
            StatementPart::Arguments(args) => self.args(args),
            StatementPart::Named(name) => self.name(&name.name, name.span),
            // Loop variables may stay unused.
            StatementPart::Local { name, kind, value, .. } => {
                self.define_as(name, kind != DefinitionKind::LoopVariable, value.map(|e| e.span));
            }
            StatementPart::Block(Some((var, _)), body) => {
                self.scopes.push(Vec::new());
                self.define(var, false);
                self.block(body);
                self.pop();
            }
            StatementPart::Block(None, body) => self.block(body),
            StatementPart::On(_) | StatementPart::Attributes(_) | StatementPart::Role(_) => {}
        }
    }

    /// A type, in which names before a `:` may be fields of a record.
    pub(super) fn ty(&mut self, e: &Expr) {
        match e.record_type() {
            Some(fields) => {
                fields.iter().for_each(|(_, ty)| self.ty(ty));
                self.fields(&fields.iter().map(|(n, _)| n).collect::<Vec<_>>());
            }
            None => self.expr(e),
        }
    }

    /// The fields of a record have different names.
    fn fields(&mut self, names: &[&Ident]) {
        for (k, name) in names.iter().enumerate() {
            let Some(first) = names[..k].iter().find(|n| n.name == name.name) else { continue };
            let message = format!("the record has two fields `{}`", name.name);
            let d = Diagnostic::error(codes::DUPLICATE_NAME, name.span, message).with_label("second one");
            self.out.push(d.with_secondary(first.span, "first one"));
        }
    }

    /// `(x: 1, y: 2)` where a value stands.
    fn colons_in_a_record(&mut self, fields: &[(Ident, &Expr)], span: Span) {
        let gap = |(n, e): &(Ident, &Expr)| Span { start: n.span.end, end: e.span.start, ..n.span };
        let edits = fields.iter().map(|f| Edit { span: gap(f), text: " = ".into() }).collect();
        let d = Diagnostic::error(codes::FOREIGN_SPELLING, span, "a record has `=` between a field and its value")
            .with_note("`:` makes a layout of a shape and a stride; in types it stands behind the name of a field");
        self.out.push(d.with_edits("write `=`", edits));
        fields.iter().for_each(|(_, value)| self.expr(value));
    }

    /// Arguments of `sum<k>(..)`, in which `k` is an index.
    fn ranging(&mut self, vars: &[Arg], args: &[Arg]) {
        self.scopes.push(Vec::new());
        for v in vars {
            if let ExprKind::Name(n) = &*v.value.kind {
                let ident = Ident { name: n.clone(), span: v.value.span };
                self.define(&ident, false);
            }
        }
        self.args(args);
        self.pop();
    }

    pub(super) fn expr(&mut self, e: &Expr) {
        match &*e.kind {
            ExprKind::Name(n) => self.name(n, e.span),
            ExprKind::Int(_) | ExprKind::Float(..) | ExprKind::Bool(_) | ExprKind::Hole => {}
            ExprKind::FnType | ExprKind::Error => {}
            ExprKind::Str(text) => interpolated(text).for_each(|n| {
                self.known(n);
            }),
            ExprKind::Paren(a) | ExprKind::Unary(_, a) | ExprKind::Field(a, _) | ExprKind::TupleField(a, ..) => {
                self.expr(a)
            }
            // Basis names (`1@row`) belong to the target.
            ExprKind::Basis(a, _) => self.expr(a),
            ExprKind::Tuple(l) => {
                match e.record_type().filter(|fields| fields.iter().any(|(n, _)| !self.known(&n.name))) {
                    Some(fields) => self.colons_in_a_record(&fields, e.span),
                    None => l.iter().for_each(|e| self.expr(e)),
                }
            }
            ExprKind::List(l) | ExprKind::Tiler(l) => l.iter().for_each(|e| self.expr(e)),
            ExprKind::Binary(_, a, b) | ExprKind::Layout(a, b) | ExprKind::Range(a, b) => {
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Static(base, args) => {
                if ranges_over(base) && !self.own(base) {
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
                    && ranges_over(base)
                    && !self.own(base)
                {
                    return self.ranging(vars, args);
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
                // `median<k>(x[k])`: what is not there would range over its index.
                if let (ExprKind::Static(_, vars), ExprKind::Name(n)) = (&*callee.kind, &*base.kind)
                    && self.reported.contains_key(n)
                {
                    return self.ranging(vars, args);
                }
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
            ExprKind::Record(fields) => {
                fields.iter().for_each(|(_, e)| self.expr(e));
                self.fields(&fields.iter().map(|(n, _)| n).collect::<Vec<_>>());
            }
            ExprKind::Closure(c) => {
                self.scopes.push(Vec::new());
                for p in &c.params {
                    // Extents bind themselves, as those of functions do; a bare type must exist.
                    let open = self.open;
                    self.open |= p.ty.as_ref().is_some_and(|ty| !matches!(&*ty.kind, ExprKind::Name(_)));
                    p.ty.iter().for_each(|ty| self.ty(ty));
                    self.open = open;
                    self.define(&p.name, false);
                }
                self.block(&c.body);
                self.pop();
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
