//! Statements of a text by their place: where a statement may be put next to another one.

use crate::ast::{Block, Else, Expr, ExprKind, IfStmt, Stmt, StmtKind};
use ptoc_diagnostics::Span;

/// A statement of a block, or the expression that is the block's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementPlace {
    /// With its `;`. Another statement may stand where this begins.
    pub span: Span,
    /// The innermost block around it, with the braces.
    pub block: Span,
    /// It is the block's value: nothing may follow it.
    pub tail: bool,
}

/// The innermost statement below `block` that contains `span`.
pub fn statement(block: &Block, span: Span) -> Option<StatementPlace> {
    if !block.span.contains(span) {
        return None;
    }
    let inner = block.stmts.iter().find(|s| s.span.contains(span));
    if let Some(stmt) = inner {
        let own = StatementPlace { span: stmt.span, block: block.span, tail: false };
        return blocks_of(stmt).into_iter().find_map(|b| statement(b, span)).or(Some(own));
    }
    let tail = block.tail.as_ref().filter(|t| t.span.contains(span))?;
    let mut inner = Vec::new();
    blocks_in(tail, &mut inner);
    let own = StatementPlace { span: tail.span, block: block.span, tail: true };
    inner.into_iter().find_map(|b| statement(b, span)).or(Some(own))
}

/// The outermost blocks within a statement.
fn blocks_of(stmt: &Stmt) -> Vec<&Block> {
    let mut out = Vec::new();
    match &stmt.kind {
        StmtKind::Let { value, .. } | StmtKind::LetTuple { value, .. } | StmtKind::Var { value, .. } => {
            blocks_in(value, &mut out);
        }
        StmtKind::Const(c) => blocks_in(&c.value, &mut out),
        StmtKind::Assign { target, value } | StmtKind::OpAssign { target, value, .. } => {
            blocks_in(target, &mut out);
            blocks_in(value, &mut out);
        }
        StmtKind::Expr(e) | StmtKind::Return(Some(e)) => blocks_in(e, &mut out),
        StmtKind::If(i) => blocks_of_if(i, &mut out),
        StmtKind::For { range, body, .. } | StmtKind::Pipeline { range, body, .. } => {
            blocks_in(range, &mut out);
            out.push(body);
        }
        StmtKind::While { cond, body } => {
            blocks_in(cond, &mut out);
            out.push(body);
        }
        StmtKind::Role { body, .. } => out.push(body),
        StmtKind::Grid { vars, .. } => vars.iter().for_each(|(_, e)| blocks_in(e, &mut out)),
        StmtKind::Return(None) | StmtKind::Break | StmtKind::Continue | StmtKind::Error => {}
    }
    out
}

fn blocks_of_if<'a>(i: &'a IfStmt, out: &mut Vec<&'a Block>) {
    blocks_in(&i.cond, out);
    out.push(&i.then);
    match i.els.as_deref() {
        Some(Else::Block(b)) => out.push(b),
        Some(Else::If(i, _)) => blocks_of_if(i, out),
        None => {}
    }
}

/// The outermost blocks within an expression: those of `if` and of closures.
fn blocks_in<'a>(e: &'a Expr, out: &mut Vec<&'a Block>) {
    match &*e.kind {
        ExprKind::If(i) => blocks_of_if(i, out),
        ExprKind::Paren(a)
        | ExprKind::Unary(_, a)
        | ExprKind::Basis(a, _)
        | ExprKind::Field(a, _)
        | ExprKind::TupleField(a, ..) => blocks_in(a, out),
        ExprKind::Binary(_, a, b) | ExprKind::Layout(a, b) | ExprKind::Range(a, b) => {
            blocks_in(a, out);
            blocks_in(b, out);
        }
        ExprKind::Tuple(all) | ExprKind::List(all) | ExprKind::Tiler(all) => {
            all.iter().for_each(|e| blocks_in(e, out));
        }
        ExprKind::Index(a, args) | ExprKind::Call(a, args) | ExprKind::Static(a, args) => {
            blocks_in(a, out);
            args.iter().for_each(|arg| blocks_in(&arg.value, out));
        }
        ExprKind::Record(fields) => fields.iter().for_each(|(_, e)| blocks_in(e, out)),
        // An expression alone is no block that a statement could be put into.
        ExprKind::Closure(c) => match c.body.tail.as_deref() {
            Some(value) if value.span == c.body.span => blocks_in(value, out),
            _ => out.push(&c.body),
        },
        // Types and literals have no blocks.
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::ItemKind;

    /// The statement around the first `@` of a kernel's body (taken out), the block's first line, and whether it is a
    /// tail.
    fn around(body: &str) -> Option<(String, String, bool)> {
        let text = format!("kernel k(x: in f32[M]) {{ {body} }}");
        let at = text.find('@').expect("a mark") as u32;
        let text = text.replacen('@', "", 1);
        let mut sources = ptoc_diagnostics::SourceMap::new();
        let file = sources.add("test", text.as_str());
        let parsed = crate::parse(file, &text);
        assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
        let ItemKind::Kernel(item) = &parsed.file.items[0].kind else { panic!("a kernel") };
        let place = statement(&item.body, Span::new(file, at, at))?;
        let of = |s: Span| text[s.range()].to_owned();
        Some((of(place.span), of(place.block), place.tail))
    }

    #[test]
    fn the_innermost_statement_of_a_place() {
        let found = |body: &str| around(body).map(|(s, _, tail)| (s, tail));
        let plain = |s: &str| Some((s.to_owned(), false));
        assert_eq!(found("let q = exp(@p) + p; f(q);"), plain("let q = exp(p) + p;"));
        assert_eq!(found("for j in 0..3 { f(j); g(@j); }"), plain("g(j);"));
        assert_eq!(found("if @a > 1 { f(a); } else { g(a); }"), plain("if a > 1 { f(a); } else { g(a); }"));
        assert_eq!(found("if a > 1 { f(a); } else if @b { g(a); }"), plain("if a > 1 { f(a); } else if b { g(a); }"));
        assert_eq!(found("if a > 1 { f(a); } else if b { @g(a); }"), plain("g(a);"));
        assert_eq!(found("role r { while a < 2 { p[0, 0] = @1.0; } }"), plain("p[0, 0] = 1.0;"));
        assert_eq!(found("let s = if c { f(@a) } else { 0 };"), Some(("f(a)".to_owned(), true)));
        let (_, block, _) = around("let s = if c { let b = @a; b } else { 0 };").expect("a statement");
        assert_eq!(block, "{ let b = a; b }");
        assert_eq!(found("f(x); @ "), None);
    }
}
