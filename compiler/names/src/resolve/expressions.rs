//! Names that an expression or a text mentions, without a look at what they stand for.

use crate::scopes::{self, StatementPart};
use ptoc_syntax::ast::*;
use rustc_hash::FxHashSet;

/// Whether the parser lost a part of this signature.
pub fn damaged(params: &[Param], statics: &[StaticParam]) -> bool {
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

/// Whether the name is a function that ranges over an index, as `sum` does in `sum<k>(e)`.
pub fn ranges_over(base: &Expr) -> bool {
    matches!(&*base.kind, ExprKind::Name(n) if crate::builtins::function(n).is_some_and(|b| b.over().is_some()))
}

/// The arguments of `close(a, b, rtol = x)`.
pub fn close_args(e: &Expr) -> Option<&[Arg]> {
    match &*e.kind {
        ExprKind::Call(f, args) if matches!(&*f.kind, ExprKind::Name(n) if n == "close") => Some(args),
        ExprKind::Paren(a) => close_args(a),
        _ => None,
    }
}

/// The part of an `ensures` whose index names are free: the left side of an equation, else all of it.
pub fn claimed(e: &Expr) -> &Expr {
    match &*e.kind {
        ExprKind::Binary(BinaryOp::Eq, left, _) => left,
        ExprKind::Paren(a) => claimed(a),
        _ => close_args(e).and_then(|args| args.first()).map_or(e, |a| &a.value),
    }
}

/// Bare names that index something, in order of appearance, each once; `sum<k>` binds its own.
pub fn index_names(e: &Expr, out: &mut Vec<Ident>) {
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

/// Names that are in what indexes something.
pub(super) fn names_in_brackets(e: &Expr, out: &mut FxHashSet<String>) {
    match &*e.kind {
        ExprKind::Index(base, args) => {
            names_in_brackets(base, out);
            args.iter().for_each(|a| each_name(&a.value, &mut |n| _ = out.insert(n.to_owned())));
        }
        ExprKind::Call(_, args) => args.iter().for_each(|a| names_in_brackets(&a.value, out)),
        ExprKind::Paren(a) | ExprKind::Unary(_, a) | ExprKind::Field(a, _) => names_in_brackets(a, out),
        ExprKind::Binary(_, a, b) => {
            names_in_brackets(a, out);
            names_in_brackets(b, out);
        }
        _ => {}
    }
}

/// Every name in an expression and in the blocks in it, also in the braces of texts.
pub fn each_name(e: &Expr, f: &mut dyn FnMut(&str)) {
    match &*e.kind {
        ExprKind::Name(n) => f(n),
        ExprKind::Str(text) => interpolated(text).for_each(f),
        ExprKind::Paren(a)
        | ExprKind::Unary(_, a)
        | ExprKind::Basis(a, _)
        | ExprKind::Field(a, _)
        | ExprKind::TupleField(a, ..) => each_name(a, f),
        ExprKind::Tuple(l) | ExprKind::List(l) | ExprKind::Tiler(l) => l.iter().for_each(|a| each_name(a, f)),
        ExprKind::Record(l) => l.iter().for_each(|(_, a)| each_name(a, f)),
        ExprKind::Binary(_, a, b) | ExprKind::Layout(a, b) | ExprKind::Range(a, b) => {
            each_name(a, f);
            each_name(b, f);
        }
        ExprKind::Index(a, l) | ExprKind::Call(a, l) | ExprKind::Static(a, l) => {
            each_name(a, f);
            l.iter().for_each(|a| each_name(&a.value, f));
        }
        ExprKind::If(i) => scopes::branches(i, &mut |part| each_name_of_part(part, f)),
        ExprKind::Tile { ty, at } => {
            each_name(ty, f);
            at.iter().for_each(|a| each_name(a, f));
        }
        ExprKind::Tensor { ty, at, fill, .. } => {
            each_name(ty, f);
            at.iter().chain(fill).for_each(|a| each_name(a, f));
        }
        ExprKind::Closure(c) => {
            c.params.iter().filter_map(|p| p.ty.as_ref()).for_each(|ty| each_name(ty, f));
            each_name_of_block(&c.body, f);
        }
        ExprKind::Int(_) | ExprKind::Float(..) | ExprKind::Bool(_) | ExprKind::Hole => {}
        ExprKind::FnType | ExprKind::Error => {}
    }
}

/// Every name in a block.
pub(crate) fn each_name_of_block(b: &Block, f: &mut dyn FnMut(&str)) {
    b.stmts.iter().for_each(|s| scopes::parts(s, &mut |part| each_name_of_part(part, f)));
    b.tail.iter().for_each(|e| each_name(e, f));
}

fn each_name_of_part(part: StatementPart<'_>, f: &mut dyn FnMut(&str)) {
    match part {
        StatementPart::Value(e) | StatementPart::Type(e) | StatementPart::Target(e) | StatementPart::On(e) => {
            each_name(e, f);
        }
        StatementPart::Arguments(args) => args.iter().for_each(|a| each_name(&a.value, f)),
        StatementPart::Named(name) => f(&name.name),
        StatementPart::Block(_, body) => each_name_of_block(body, f),
        StatementPart::Local { .. } | StatementPart::Attributes(_) | StatementPart::Role(_) => {}
    }
}

/// Whether the expression uses the name. Blocks are not looked into.
pub fn mentions(e: &Expr, name: &Name) -> bool {
    let args = |args: &[Arg]| args.iter().any(|a| mentions(&a.value, name));
    match &*e.kind {
        ExprKind::Name(n) => n == name,
        ExprKind::Paren(a)
        | ExprKind::Unary(_, a)
        | ExprKind::Basis(a, _)
        | ExprKind::Field(a, _)
        | ExprKind::TupleField(a, ..) => mentions(a, name),
        ExprKind::Tuple(l) | ExprKind::List(l) | ExprKind::Tiler(l) => l.iter().any(|a| mentions(a, name)),
        ExprKind::Record(fields) => fields.iter().any(|(_, a)| mentions(a, name)),
        ExprKind::Binary(_, a, b) | ExprKind::Layout(a, b) | ExprKind::Range(a, b) => {
            mentions(a, name) || mentions(b, name)
        }
        ExprKind::Index(a, l) | ExprKind::Call(a, l) | ExprKind::Static(a, l) => mentions(a, name) || args(l),
        _ => false,
    }
}

/// Names in braces: `"got {KS}"`.
pub fn interpolated(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|p| p.split_once('}').map(|(n, _)| n.split('.').next().unwrap_or(n).trim()))
}
