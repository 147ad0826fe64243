//! Blocks of erroneous items: statements are cut apart at `;` and after blocks.

use ptoc_diagnostics::Span;

use super::{Outcome, Recovery, add};
use crate::ast::*;
use crate::build::Node;
use crate::parse::parse;
use crate::terminal::{Lexeme, Terminal};
use crate::token::Tok;

impl Recovery<'_, '_, '_> {
    /// The block that opens at `open`, as a part.
    pub(super) fn block(&mut self, open: usize) -> Lexeme {
        let lexemes = self.lexemes;
        let close = self.hop(open) - 1;
        let (l, r) = (lexemes[open].start, lexemes[close].end);
        let outer = self.quiet;
        let mut stmts = Vec::new();
        let mut tail = None;
        let mut from = open + 1;
        while from < close {
            let to = self.stmt_end(from, close);
            // A statement with a bracket error is not looked at any further; its inner blocks are.
            self.quiet = self.touched(from, to);
            let flat = self.collapse(from, to);
            let mut i = 0;
            while i < flat.len() {
                i = self.statement(&flat, i, to == close, &mut stmts, &mut tail);
            }
            from = to;
        }
        self.quiet = outer;
        let block = self.builder.block(l, stmts, tail, r);
        let i = add(&mut self.builder.parts.blocks, block);
        Lexeme { term: Terminal::Block(i), start: l, end: r, touched: false }
    }

    /// Where the statement that begins at `from` ends, in a block that ends at `close`.
    pub(super) fn stmt_end(&self, from: usize, close: usize) -> usize {
        let lexemes = self.lexemes;
        let first = lexemes[from].tok();
        // `role` is a name elsewhere.
        let role =
            first == Some(Tok::Role) && lexemes.get(from + 1).is_some_and(|l| l.is(Tok::LBrace) || l.is(Tok::Name));
        let block_like =
            role || matches!(first, Some(Tok::If | Tok::Else | Tok::For | Tok::While | Tok::Pipeline | Tok::Hash));
        let item_like = matches!(first, Some(Tok::Fn | Tok::Kernel | Tok::Program | Tok::Atom | Tok::Use));
        let mut has_if = false;
        let mut i = from;
        while i < close {
            let l = &lexemes[i];
            let next = self.hop(i);
            // A closure's block, too, stands in a value, and what is meant to be a record.
            let value = i > from && !lexemes[i - 1].tok().is_some_and(Tok::ends_operand);
            let closure = value && (l.is(Tok::Or) || l.is(Tok::Fn));
            has_if |= l.is(Tok::If) || l.is(Tok::Else) || closure || self.braced_record(i);
            if l.is(Tok::Semi) {
                return next;
            }
            if l.is(Tok::LBrace) {
                // In other statements a block can only be that of an `if`, which is a value.
                let goes_on = next < close && lexemes[next].is(Tok::Else) && !item_like;
                if !goes_on && (block_like || item_like || !has_if) {
                    return next;
                }
            }
            if i > from && self.first_on_line(i) {
                let before = lexemes[i - 1].tok();
                let complete = self.complete(i - 1) || matches!(before, Some(Tok::Break | Tok::Continue | Tok::Return));
                let head = matches!(first, Some(Tok::Pipeline | Tok::Hash)) && l.is(Tok::For);
                let starts = match l.tok() {
                    Some(Tok::For) => !head,
                    Some(Tok::If) => complete,
                    Some(Tok::Let | Tok::Var | Tok::Const | Tok::While | Tok::Pipeline | Tok::Grid) => true,
                    Some(Tok::Return | Tok::Break | Tok::Continue) => true,
                    Some(Tok::Fn | Tok::Kernel | Tok::Program | Tok::Atom | Tok::Use) => true,
                    _ => false,
                };
                if starts {
                    return i;
                }
            }
            i = next;
        }
        close
    }

    /// Whether there is a bracket error in `from..to`, outside of blocks.
    pub(super) fn touched(&self, from: usize, to: usize) -> bool {
        let mut i = from;
        while i < to {
            let l = &self.lexemes[i];
            if l.is(Tok::LBrace) {
                i = self.hop(i);
                continue;
            }
            if l.touched {
                return true;
            }
            i += 1;
        }
        false
    }

    /// Parses `flat[from..]`, which is meant to be a statement, or the value of the block if it is the `last`; returns
    /// where it ends.
    pub(super) fn statement(
        &mut self,
        flat: &[Lexeme],
        from: usize,
        last: bool,
        stmts: &mut Vec<Stmt>,
        tail: &mut Option<Expr>,
    ) -> usize {
        let to = flat.len();
        let text = &flat[from..];
        let open_end = !text.last().is_some_and(|l| l.is(Tok::Semi));
        let span = self.builder.span(text[0].start, text[text.len() - 1].end);
        let mut part = text.to_vec();
        match self.part_or_split(Terminal::StartStmt, &mut part, last && open_end) {
            Outcome::Node(Node::Stmt(stmt)) => stmts.push(*stmt),
            Outcome::Node(Node::Expr(e)) => *tail = Some(e),
            // The statement ends before its `;`, which is missing: the rest is another one. Repairs before the split
            // may have changed the number of lexemes, so it is counted from the end.
            Outcome::Split { rest } if rest < to - from => {
                let end = to - rest;
                part.truncate(part.len() - rest);
                let at = part.last().map_or(span.start, |l| l.end);
                part.push(Lexeme { term: Terminal::Tok(Tok::Semi), start: at, end: at, touched: false });
                match parse(self.builder, Terminal::StartStmt, &part) {
                    Ok(Node::Stmt(stmt)) => stmts.push(*stmt),
                    _ => {
                        let span = Span { end: at, ..span };
                        stmts.push(self.salvage(&flat[from..end], span));
                    }
                }
                return end.max(from + 1);
            }
            _ => stmts.push(self.salvage(text, span)),
        }
        to
    }

    /// A hopeless statement; what it defines is known all the same, so that its uses are no errors.
    pub(super) fn salvage(&self, text: &[Lexeme], span: Span) -> Stmt {
        let ident = |l: &Lexeme| self.builder.ident(l.start, l.end);
        let value = self.builder.error_expr(span);
        let is_name = |l: &&Lexeme| l.is(Tok::Name);
        let (first, second) = (text.first().and_then(Lexeme::tok), text.get(1));
        let kind = match (first, second) {
            (Some(Tok::Let), Some(n)) if n.is(Tok::Name) => {
                let list = text[1..].iter().take_while(|l| l.is(Tok::Name) || l.is(Tok::Comma));
                let names = list.filter(is_name).map(ident).collect();
                StmtKind::Let { names, ty: None, value }
            }
            (Some(Tok::Let), Some(open)) if open.is(Tok::LParen) => {
                let list = text[2..].iter().take_while(|l| l.is(Tok::Name) || l.is(Tok::Comma));
                let names: Vec<Ident> = list.filter(is_name).map(ident).collect();
                match names.len() {
                    0 => StmtKind::Error,
                    1 => StmtKind::Let { names, ty: None, value },
                    _ => StmtKind::LetTuple { names, value },
                }
            }
            (Some(Tok::Var), Some(n)) if n.is(Tok::Name) => StmtKind::Var { name: ident(n), ty: None, value },
            (Some(Tok::Const), Some(n)) if n.is(Tok::Name) => {
                StmtKind::Const(ConstItem { name: ident(n), ty: None, value })
            }
            _ => StmtKind::Error,
        };
        Stmt { kind, span }
    }
}
