//! What statements do with names, in the order in which names are looked up. The check of names and the index of names
//! both go through a tree with these rules.

use crate::index::DefinitionKind;
use ptoc_syntax::ast::*;

/// A part of a statement.
#[derive(Clone, Copy)]
pub enum StatementPart<'a> {
    /// An expression is evaluated.
    Value(&'a Expr),
    /// The type of a name.
    Type(&'a Expr),
    /// An expression whose root is given a value.
    Target(&'a Expr),
    /// Values in parentheses.
    Arguments(&'a [Arg]),
    /// A name that holds from the end of the statement to the end of the block, with its type and value where they are
    /// written.
    Local {
        /// The name.
        name: &'a Ident,
        /// What it is.
        kind: DefinitionKind,
        /// The type that is written.
        ty: Option<&'a Expr>,
        /// What it is bound to.
        value: Option<&'a Expr>,
    },
    /// A block, which has a scope; the variable of its loop and what that runs over are in a scope around it.
    Block(Option<(&'a Ident, &'a Expr)>, &'a Block),
    /// Who has the blocks of a grid: coordinates belong to the target.
    On(&'a Expr),
    /// A name that stands for itself: what `cluster` counts blocks along.
    Named(&'a Ident),
    /// Before a loop.
    Attributes(&'a [Attr]),
    /// Who issues a block.
    Role(&'a Ident),
}

/// The parts of a statement.
pub fn parts<'a>(stmt: &'a Stmt, f: &mut dyn FnMut(StatementPart<'a>)) {
    let mut given = |ty: &'a Option<Expr>, value: &'a Expr, names: &'a [Ident], kind, written: Option<&'a Expr>| {
        ty.iter().for_each(|ty| f(StatementPart::Type(ty)));
        f(StatementPart::Value(value));
        let ty = ty.as_ref().or(written);
        names.iter().for_each(|name| f(StatementPart::Local { name, kind, ty, value: Some(value) }));
    };
    match &stmt.kind {
        StmtKind::Let { names, ty, value } => given(ty, value, names, DefinitionKind::Let, written_type(value)),
        StmtKind::LetTuple { names, value } => given(&None, value, names, DefinitionKind::Let, None),
        StmtKind::Var { name, ty, value } => {
            given(ty, value, std::slice::from_ref(name), DefinitionKind::Variable, None)
        }
        StmtKind::Const(c) => given(&c.ty, &c.value, std::slice::from_ref(&c.name), DefinitionKind::Constant, None),
        StmtKind::Assign { target, value } | StmtKind::OpAssign { target, value, .. } => {
            f(StatementPart::Target(target));
            f(StatementPart::Value(value));
        }
        StmtKind::Expr(e) | StmtKind::Return(Some(e)) => f(StatementPart::Value(e)),
        StmtKind::If(i) => branches(i, f),
        StmtKind::For { attrs, var, range, body } => {
            f(StatementPart::Attributes(attrs));
            f(StatementPart::Value(range));
            f(StatementPart::Block(Some((var, range)), body));
        }
        StmtKind::Pipeline { args, var, range, body } => {
            f(StatementPart::Arguments(args));
            f(StatementPart::Value(range));
            f(StatementPart::Block(Some((var, range)), body));
        }
        StmtKind::While { cond, body } => {
            f(StatementPart::Value(cond));
            f(StatementPart::Block(None, body));
        }
        StmtKind::Role { name, body } => {
            f(StatementPart::Role(name));
            f(StatementPart::Block(None, body));
        }
        StmtKind::Grid { vars, clauses } => {
            // The launch computes all ranges before there is a block.
            vars.iter().for_each(|(_, range)| f(StatementPart::Value(range)));
            for (name, range) in vars {
                f(StatementPart::Local { name, kind: DefinitionKind::LoopVariable, ty: None, value: Some(range) });
            }
            clauses.iter().for_each(|c| match c {
                GridClause::On(e) => f(StatementPart::On(e)),
                GridClause::Option(clause, args) => {
                    let names = args.iter().filter_map(|a| a.name.as_ref()).filter(|_| clause.name == "cluster");
                    names.for_each(|name| f(StatementPart::Named(name)));
                    f(StatementPart::Arguments(args));
                }
            });
        }
        StmtKind::Return(None) | StmtKind::Break | StmtKind::Continue | StmtKind::Error => {}
    }
}

/// The parts of `if`, as a statement or as a value.
pub fn branches<'a>(i: &'a IfStmt, f: &mut dyn FnMut(StatementPart<'a>)) {
    let mut next = Some(i);
    while let Some(i) = next {
        f(StatementPart::Value(&i.cond));
        f(StatementPart::Block(None, &i.then));
        next = match i.els.as_deref() {
            Some(Else::Block(b)) => {
                f(StatementPart::Block(None, b));
                None
            }
            Some(Else::If(i, _)) => Some(i),
            None => None,
        };
    }
}

/// The type in `tile T`, `tensor T`.
fn written_type(value: &Expr) -> Option<&Expr> {
    match &*value.kind {
        ExprKind::Tile { ty, .. } | ExprKind::Tensor { ty, .. } => Some(ty),
        ExprKind::Paren(e) => written_type(e),
        _ => None,
    }
}
