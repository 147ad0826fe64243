//! Fields of records and parameters of closures: names that the text of an expression defines.
//!
//! No values are known here, so what a record is made of is read off the text: of the literal that a name is set to, of
//! a written type, of the result of a function that is called.

use super::walk::IndexBuilder;
use super::{Definition, DefinitionKind, Meaning, OccurrenceAccess};
use ptoc_diagnostics::Span;
use ptoc_syntax::ast::*;
use std::rc::Rc;

/// Fields with the places of their names, and with their own fields.
#[derive(Debug, Default)]
pub(super) struct RecordShape(Vec<(Name, Span, Option<Rc<RecordShape>>)>);

/// The fields of a written type.
pub(super) fn of_type(ty: &Expr) -> Option<Rc<RecordShape>> {
    let fields = ty.record_type()?.into_iter().map(|(n, ty)| (n.name, n.span, of_type(ty)));
    Some(Rc::new(RecordShape(fields.collect())))
}

impl IndexBuilder<'_> {
    /// The fields of a value, as far as its text says them.
    pub(super) fn record(&self, e: &Expr) -> Option<Rc<RecordShape>> {
        match &*e.kind {
            ExprKind::Record(fields) => {
                let fields = fields.iter().map(|(n, e)| (n.name.clone(), n.span, self.record(e)));
                Some(Rc::new(RecordShape(fields.collect())))
            }
            ExprKind::Name(n) => self.records.get(&self.source(n)?).cloned(),
            ExprKind::Paren(a) => self.record(a),
            ExprKind::Field(base, name) => self.record(base)?.field(name)?.1.clone(),
            ExprKind::If(i) => self.record(i.then.tail.as_ref()?),
            ExprKind::Call(callee, _) => {
                let base = if let ExprKind::Static(b, _) = &*callee.kind { b } else { callee };
                let ExprKind::Name(n) = &*base.kind else { return None };
                let id = self.module.scope.get(n)?;
                let ItemKind::Fn(f) = &self.modules.item(*id).kind else { return None };
                of_type(f.ret.as_ref()?)
            }
            _ => None,
        }
    }

    /// `base.name`, where that is a field of a record.
    pub(super) fn field(&mut self, base: &Expr, name: &Ident) {
        let found = self.record(base).and_then(|shape| shape.field(name).map(|(at, _)| *at));
        if let Some(at) = found {
            self.note(name.span, Meaning::Source(at), OccurrenceAccess::Read);
        }
    }

    /// A type, whose names before a `:` are fields.
    pub(super) fn ty(&mut self, e: &Expr) {
        match e.record_type() {
            Some(fields) => fields.into_iter().for_each(|(name, ty)| {
                self.ty(ty);
                self.define_field(&name, name.span.to(ty.span), Some(ty), None);
            }),
            None => self.expr(e),
        }
    }

    /// A field is named behind a `.` alone: it is in no scope.
    pub(super) fn define_field(&mut self, name: &Ident, whole: Span, ty: Option<&Expr>, value: Option<&Expr>) {
        self.out.definitions.push(Definition {
            name: name.name.clone(),
            span: name.span,
            kind: DefinitionKind::Field,
            whole,
            scope: whole,
            ty: ty.map(|e| e.span),
            value: value.map(|e| e.span),
        });
        self.note(name.span, Meaning::Source(name.span), OccurrenceAccess::Define);
    }

    /// A closure, whose parameters are known in its body alone.
    pub(super) fn closure(&mut self, c: &Closure, whole: Span) {
        self.enter(whole.end);
        for p in &c.params {
            let open = std::mem::replace(&mut self.open, true);
            p.ty.iter().for_each(|ty| self.ty(ty));
            self.open = open;
            let declared = p.ty.as_ref().map_or(p.name.span, |ty| p.name.span.to(ty.span));
            self.define(&p.name, DefinitionKind::Parameter, declared, whole, p.ty.as_ref(), None);
        }
        c.body.stmts.iter().for_each(|s| self.stmt(s));
        if let Some(e) = &c.body.tail {
            self.expr(e);
        }
        self.leave();
    }
}

impl RecordShape {
    fn field(&self, name: &Ident) -> Option<(&Span, &Option<Rc<RecordShape>>)> {
        self.0.iter().find(|(n, ..)| *n == name.name).map(|(_, at, shape)| (at, shape))
    }
}
