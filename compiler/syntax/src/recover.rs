//! What happens after a syntax error: the erroneous part is found, reported once, and the rest is kept.
//!
//! The whole file is parsed first; when that succeeds, nothing here runs. Otherwise the text is cut where the language
//! allows no doubt: items at their words, parameters and arguments at the commas of their brackets (which balance, see
//! `brackets`), statements at `;` and after blocks. Each part is parsed by the same grammar, innermost first, and stands
//! in the next larger one as a single terminal, so every token is parsed a bounded number of times. A part that cannot
//! be parsed is handed to `situation`, which names the mistake; if the mistake has one obvious repair, the repaired part
//! is parsed again, and so a second mistake in it is found too.

use ptoc_diagnostics::{Diagnostic, Span, codes};

use crate::ast::*;
use crate::build::{Builder, Node};
use crate::lexer::MAX_ERRORS;
use crate::parse::{Stop, parse};
use crate::situation::{self, Repair, View};
use crate::terminal::{Lexeme, Terminal};
use crate::token::Tok;

/// So many repairs are tried on one part.
const MAX_REPAIRS: usize = 8;

/// How the pieces between the commas of a bracket are parsed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pieces {
    Params,
    StaticParams,
    GridVars,
    Args,
    StaticArgs,
    /// Not at all: names in a pattern, attributes.
    Raw,
}

/// Parses the items of an erroneous file.
pub(crate) fn items(builder: &mut Builder<'_>, lexemes: &[Lexeme]) -> Vec<Item> {
    let mut recovery = Recovery::new(builder, lexemes);
    let mut items = Vec::new();
    let mut i = 0;
    while i < lexemes.len() {
        i = recovery.next_item(i, &mut items);
    }
    items
}

/// Parses an erroneous expression.
pub(crate) fn expr(builder: &mut Builder<'_>, lexemes: &[Lexeme]) -> Option<Expr> {
    let mut recovery = Recovery::new(builder, lexemes);
    let flat = recovery.collapse(0, lexemes.len());
    match recovery.part(Terminal::StartExpr, flat) {
        Some(Node::Expr(e)) => Some(e),
        _ => None,
    }
}

struct Recovery<'b, 's, 'l> {
    builder: &'b mut Builder<'s>,
    lexemes: &'l [Lexeme],
    /// Index of the bracket that belongs to the bracket at an index.
    partner: Vec<u32>,
    errors: usize,
    /// In a statement or header whose mistake was reported in a way that leaves nothing else to trust.
    quiet: bool,
}

impl<'b, 's, 'l> Recovery<'b, 's, 'l> {
    fn new(builder: &'b mut Builder<'s>, lexemes: &'l [Lexeme]) -> Recovery<'b, 's, 'l> {
        let mut partner = vec![0; lexemes.len()];
        let mut stack = Vec::new();
        for (i, l) in lexemes.iter().enumerate() {
            if is_open(l) {
                stack.push(i);
            } else if is_close(l)
                && let Some(open) = stack.pop()
            {
                partner[open] = i as u32;
                partner[i] = open as u32;
            }
        }
        Recovery { builder, lexemes, partner, errors: 0, quiet: false }
    }

    /// The index after the lexeme at `i`, or after its whole group.
    fn hop(&self, i: usize) -> usize {
        if is_open(&self.lexemes[i]) { (self.partner[i] as usize).max(i) + 1 } else { i + 1 }
    }

    fn first_on_line(&self, i: usize) -> bool {
        i == 0 || starts_line(self.builder.source(), &self.lexemes[i - 1], &self.lexemes[i])
    }

    /// Can an item end with the lexeme at `i`?
    fn complete(&self, i: usize) -> bool {
        self.lexemes[i].tok().is_none_or(Tok::ends_operand)
    }

    fn span(&self, from: usize, to: usize) -> Span {
        let start = self.lexemes.get(from).map_or(0, |l| l.start);
        let end = to.checked_sub(1).and_then(|i| self.lexemes.get(i)).map_or(start, |l| l.end);
        self.builder.span(start, end)
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.quiet {
            return;
        }
        self.errors += 1;
        if self.errors <= MAX_ERRORS {
            self.builder.report(diagnostic);
        } else {
            self.builder.dropped += 1;
        }
    }

    // ---- items -----------------------------------------------------------------------------------------------------

    /// Parses the item that begins at `i`; returns where the next one begins.
    fn next_item(&mut self, i: usize, items: &mut Vec<Item>) -> usize {
        let mut word = i;
        while word < self.lexemes.len() && self.lexemes[word].is(Tok::Hash) {
            word = if self.lexemes.get(word + 1).is_some_and(is_open) { self.hop(word + 1) } else { word + 1 };
        }
        let Some(first) = self.lexemes.get(word).copied() else {
            self.report(situation::attribute_of_nothing(self.span(i, word)));
            return word;
        };
        if let Some(tok) = first.tok().filter(|t| starts_item(*t)) {
            let end = self.item_end(word, tok);
            let item = self.item(i, word, end, tok);
            items.push(item);
            return end;
        }
        let next = self.lexemes.get(word + 1);
        let misspelt = situation::misspelt_item(self.builder, &first, next);
        if let Some((tok, diagnostic)) = misspelt {
            self.report(diagnostic);
            let end = self.item_end(word, tok);
            let item = self.item(i, word, end, tok);
            items.push(item);
            return end;
        }
        // No item at all: one report for everything up to the next one.
        let mut end = self.hop(word);
        while end < self.lexemes.len() {
            let item = self.lexemes[end].tok().is_some_and(|t| starts_item(t) || t == Tok::Hash);
            if item && self.first_on_line(end) {
                break;
            }
            end = self.hop(end);
        }
        let span = self.span(word, end);
        if !self.lexemes[word..end].iter().any(|l| l.touched) {
            let diagnostic = situation::no_item(self.builder, &self.lexemes[word..end]);
            self.report(diagnostic);
        }
        items.push(Item { docs: String::new(), attrs: Vec::new(), kind: ItemKind::Error, span });
        end
    }

    /// Where the item whose word `tok` stands at `word` ends.
    fn item_end(&self, word: usize, tok: Tok) -> usize {
        let has_body = !matches!(tok, Tok::Use | Tok::Const);
        let mut i = word + 1;
        while i < self.lexemes.len() {
            let l = &self.lexemes[i];
            match l.tok() {
                Some(Tok::Semi) => return i + 1,
                Some(Tok::LBrace) if has_body => return self.hop(i),
                Some(t) if (starts_item(t) || t == Tok::Hash) && self.first_on_line(i) => {
                    // A static parameter may begin a line, but not at the margin.
                    let margin = self.builder.source()[..l.start as usize].ends_with('\n');
                    if margin || !matches!(t, Tok::Const | Tok::Fn) {
                        return i;
                    }
                    i += 1;
                }
                // What follows an item without `;` is another item, perhaps misspelt.
                Some(Tok::Name) if !has_body && self.first_on_line(i) && self.complete(i - 1) => return i,
                _ => i = self.hop(i),
            }
        }
        i
    }

    /// The item with attributes from `from`, its word at `word`, which is or is meant to be `tok`.
    fn item(&mut self, from: usize, word: usize, end: usize, tok: Tok) -> Item {
        let lexemes = self.lexemes;
        if lexemes[word].is(tok)
            && let Ok(Node::Item(item)) = parse(self.builder, Terminal::StartItem, &lexemes[from..end])
        {
            return item;
        }
        let mut flat: Vec<Lexeme> = lexemes[from..word].to_vec();
        // What is left of the item when its clauses are hopeless: word, name, parameters, body.
        let mut core = vec![Lexeme { term: Terminal::Tok(tok), ..lexemes[word] }];
        flat.extend(&core);
        let launches = matches!(tok, Tok::Kernel | Tok::Program | Tok::Fn);
        let distrusted = self.touched(from, end) || (launches && self.malformed_header(word, end, tok));
        let (mut statics, mut params, mut body) = (!launches, !launches, false);
        let mut i = word + 1;
        while i < end {
            let l = lexemes[i];
            let next = self.hop(i);
            let at = flat.len();
            self.quiet = distrusted;
            match l.tok() {
                Some(Tok::StaticOpen) if !statics => {
                    statics = true;
                    self.group(i, Pieces::StaticParams, &mut flat);
                    core.extend(&flat[at..]);
                }
                Some(Tok::LParen) if !params => {
                    (statics, params) = (true, true);
                    self.group(i, Pieces::Params, &mut flat);
                    core.extend(&flat[at..]);
                }
                Some(Tok::LBrace) if launches => {
                    self.quiet = false;
                    body = true;
                    let block = self.block(i);
                    flat.push(block);
                    core.push(block);
                }
                Some(Tok::LBrace) => {
                    flat.push(l);
                    flat.extend(self.collapse(i + 1, next - 1));
                    flat.push(lexemes[next - 1]);
                }
                _ if is_open(&l) => self.group(i, self.pieces_of(i), &mut flat),
                _ => {
                    flat.push(l);
                    if i == word + 1 {
                        core.push(l);
                    }
                }
            }
            i = next;
        }
        self.quiet = false;
        let docs = self.builder.docs_at(lexemes[from].start);
        if distrusted {
            flat.clear();
        }
        let node = if distrusted { None } else { self.part(Terminal::StartItem, flat) };
        self.quiet = false;
        match node {
            Some(Node::Item(item)) => Item { docs, ..item },
            _ => {
                let salvaged =
                    if launches && body { parse(self.builder, Terminal::StartItem, &core).ok() } else { None };
                let kind = match salvaged {
                    Some(Node::Item(item)) => item.kind,
                    _ => ItemKind::Error,
                };
                Item { docs, attrs: Vec::new(), kind, span: self.span(from, end) }
            }
        }
    }

    /// Reports a mistake in the frame of a header, which makes guesses about what its brackets hold worthless.
    fn malformed_header(&mut self, word: usize, end: usize, tok: Tok) -> bool {
        let mut frame = vec![Lexeme { term: Terminal::Tok(tok), ..self.lexemes[word] }];
        let mut i = word + 1;
        while i < end && !matches!(self.lexemes[i].tok(), Some(Tok::Where | Tok::Ensures | Tok::Arrow | Tok::LBrace)) {
            let next = self.hop(i);
            frame.push(self.lexemes[i]);
            if next > i + 1 {
                frame.push(self.lexemes[next - 1]);
            }
            i = next;
        }
        let params = frame.iter().position(|l| l.is(Tok::LParen));
        let Err(stop) = self.trial(Terminal::StartItem, &frame) else { return false };
        // In front of the parameters; what follows them is looked at with the whole header.
        if params.is_some_and(|p| stop.at > p) || (params.is_none() && stop.at == frame.len()) {
            return false;
        }
        let view = View {
            builder: &*self.builder,
            start: Terminal::StartItem,
            lexemes: &frame,
            at: stop.at,
            wants: stop.wants,
        };
        let found = situation::find(&view);
        let repaired = matches!(found.repair, Repair::Replace(..));
        if repaired {
            return false; // it will be reported, and repaired, with the whole header
        }
        self.report(found.diagnostic);
        true
    }

    // ---- brackets --------------------------------------------------------------------------------------------------

    /// The lexemes `from..to` with every group replaced by parts.
    fn collapse(&mut self, from: usize, to: usize) -> Vec<Lexeme> {
        let mut flat = Vec::with_capacity(to - from);
        let mut i = from;
        while i < to {
            let l = self.lexemes[i];
            let next = self.hop(i);
            if l.is(Tok::LBrace) {
                let block = self.block(i);
                flat.push(block);
            } else if is_open(&l) {
                self.group(i, self.pieces_of(i), &mut flat);
            } else {
                flat.push(l);
            }
            i = next;
        }
        flat
    }

    /// What the group that opens at `i` holds, from what stands before it.
    fn pieces_of(&self, i: usize) -> Pieces {
        let before = i.checked_sub(1).and_then(|b| self.lexemes[b].tok());
        match (self.lexemes[i].tok(), before) {
            (_, Some(Tok::Hash | Tok::Let | Tok::For)) => Pieces::Raw,
            (Some(Tok::LParen), Some(Tok::Grid)) => Pieces::GridVars,
            (Some(Tok::StaticOpen | Tok::TilerOpen), _) => Pieces::StaticArgs,
            _ => Pieces::Args,
        }
    }

    /// Adds the group that opens at `open`, with parts for its pieces.
    fn group(&mut self, open: usize, pieces: Pieces, flat: &mut Vec<Lexeme>) {
        let lexemes = self.lexemes;
        let close = self.hop(open) - 1;
        if pieces == Pieces::Raw {
            flat.extend(&lexemes[open..=close]);
            return;
        }
        flat.push(lexemes[open]);
        let mut from = open + 1;
        let mut pieces_seen = 0;
        while from < close {
            let mut to = from;
            while to < close && !lexemes[to].is(Tok::Comma) {
                to = self.hop(to);
            }
            if from == to {
                self.missing_piece(open, from, pieces_seen);
                from += 1;
                continue;
            }
            if pieces_seen > 0 {
                // The commas before missing pieces are gone with them.
                flat.push(Lexeme { term: Terminal::Tok(Tok::Comma), ..lexemes[from - 1] });
            }
            pieces_seen += 1;
            let piece = self.piece(from, to, pieces);
            flat.extend(piece);
            if to + 1 == close {
                flat.push(lexemes[to]); // the optional comma after the last
            }
            from = to + 1;
        }
        flat.push(lexemes[close]);
    }

    fn missing_piece(&mut self, open: usize, comma: usize, seen: usize) {
        let (at, comma) = (self.span(open, open + 1), self.span(comma, comma + 1));
        let message = if seen == 0 { "nothing stands before this `,`" } else { "nothing stands between two `,`" };
        let d = Diagnostic::error(codes::MISSING_OPERAND, comma, message);
        self.report(d.with_secondary(at, "in this list").with_fix("remove the `,`", comma, ""));
    }

    /// One piece of a group, as one lexeme if it is not hopeless.
    fn piece(&mut self, from: usize, to: usize, pieces: Pieces) -> Vec<Lexeme> {
        let flat = self.collapse(from, to);
        let defines = matches!(pieces, Pieces::Params | Pieces::StaticParams | Pieces::GridVars);
        let simple = |l: &Lexeme| l.tok().is_none_or(|t| t.ends_operand() || t.is_soft_keyword());
        if !defines && flat.len() == 1 && flat.iter().all(simple) {
            return flat;
        }
        let span = self.span(from, to);
        let name = flat.first().filter(|l| l.is(Tok::Name)).map(|l| self.builder.ident(l.start, l.end));
        let start = match pieces {
            Pieces::Params => Terminal::StartParam,
            Pieces::StaticParams => Terminal::StartStaticParam,
            Pieces::GridVars => Terminal::StartGridVar,
            Pieces::StaticArgs => Terminal::StartStaticArg,
            Pieces::Args | Pieces::Raw => Terminal::StartArg,
        };
        let second = flat.get(1).copied();
        let node = self.part(start, flat);
        let error = self.builder.error_expr(span);
        let parts = &mut self.builder.parts;
        let term = match (pieces, node) {
            (_, Some(Node::Param(p))) => Terminal::Param(add(&mut parts.params, p)),
            (_, Some(Node::StaticParam(p))) => Terminal::StaticParam(add(&mut parts.static_params, p)),
            (_, Some(Node::GridVar(v))) => Terminal::GridVar(add(&mut parts.grid_vars, v)),
            (_, Some(Node::Arg(Arg { name: None, value }))) => Terminal::Expr(add(&mut parts.exprs, value)),
            (_, Some(Node::Arg(arg))) => Terminal::Arg(add(&mut parts.args, arg)),
            // Hopeless: its name, if it has one, is known all the same.
            (Pieces::Params, _) => {
                let name = name.unwrap_or_else(|| self.builder.ident(span.start, span.start));
                let param = Param { name, dir: None, ty: error, at: None, over: None, default: None, span };
                Terminal::Param(add(&mut self.builder.parts.params, param))
            }
            (Pieces::GridVars, _) => {
                let name = name.unwrap_or_else(|| self.builder.ident(span.start, span.start));
                Terminal::GridVar(add(&mut self.builder.parts.grid_vars, (name, error)))
            }
            (Pieces::StaticParams, _) => {
                let at = name.map(|n| n.span).or(second.map(|l| self.builder.span(l.start, l.end)));
                let at = at.unwrap_or(Span { end: span.start, ..span });
                let name = self.builder.ident(at.start, at.end);
                let kind = StaticKind::Const { ty: None, default: Some(error), tune: Vec::new() };
                let param = StaticParam { name, kind, span };
                Terminal::StaticParam(add(&mut self.builder.parts.static_params, param))
            }
            _ => Terminal::Expr(add(&mut parts.exprs, error)),
        };
        vec![Lexeme { term, start: span.start, end: span.end, touched: false }]
    }

    // ---- blocks ----------------------------------------------------------------------------------------------------

    /// The block that opens at `open`, as a part.
    fn block(&mut self, open: usize) -> Lexeme {
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
    fn stmt_end(&self, from: usize, close: usize) -> usize {
        let lexemes = self.lexemes;
        let first = lexemes[from].tok();
        let block_like = matches!(first, Some(Tok::If | Tok::Else | Tok::For | Tok::While | Tok::Pipeline | Tok::Hash));
        let item_like = matches!(first, Some(Tok::Fn | Tok::Kernel | Tok::Program | Tok::Atom | Tok::Use));
        let mut has_if = false;
        let mut i = from;
        while i < close {
            let l = &lexemes[i];
            let next = self.hop(i);
            has_if |= l.is(Tok::If) || l.is(Tok::Else);
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

    /// Is there a bracket error in `from..to`, outside of blocks?
    fn touched(&self, from: usize, to: usize) -> bool {
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
    fn statement(
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
            Outcome::Node(Node::Stmt(stmt)) => stmts.push(stmt),
            Outcome::Node(Node::Expr(e)) => *tail = Some(e),
            // The statement ends before its `;`, which is missing: the rest is another one. Repairs before the split
            // may have changed the number of lexemes, so it is counted from the end.
            Outcome::Split { rest } if rest < to - from => {
                let end = to - rest;
                part.truncate(part.len() - rest);
                let at = part.last().map_or(span.start, |l| l.end);
                part.push(Lexeme { term: Terminal::Tok(Tok::Semi), start: at, end: at, touched: false });
                match parse(self.builder, Terminal::StartStmt, &part) {
                    Ok(Node::Stmt(stmt)) => stmts.push(stmt),
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
    fn salvage(&self, text: &[Lexeme], span: Span) -> Stmt {
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

    // ---- one part --------------------------------------------------------------------------------------------------

    /// Parses without consequences: no reports, and the parts remain.
    fn trial(&mut self, start: Terminal, flat: &[Lexeme]) -> Result<(), Stop> {
        let mark = self.builder.mark();
        self.builder.trial = true;
        let result = parse(self.builder, start, flat).map(|_| ());
        self.builder.trial = false;
        self.builder.rewind(mark);
        result
    }

    fn part(&mut self, start: Terminal, mut flat: Vec<Lexeme>) -> Option<Node> {
        match self.part_or_split(start, &mut flat, false) {
            Outcome::Node(node) => Some(node),
            _ => None,
        }
    }

    /// Parses a part; reports what is wrong with it, and repairs what can be repaired. What may be the value of a block
    /// needs no `;`.
    fn part_or_split(&mut self, start: Terminal, flat: &mut Vec<Lexeme>, may_be_tail: bool) -> Outcome {
        for _ in 0..MAX_REPAIRS {
            if may_be_tail && self.trial(Terminal::StartTail, flat).is_ok() {
                return parse(self.builder, Terminal::StartTail, flat).map_or(Outcome::Hopeless, Outcome::Node);
            }
            let stop = match self.trial(start, flat) {
                Ok(()) => return parse(self.builder, start, flat).map_or(Outcome::Hopeless, Outcome::Node),
                Err(stop) => stop,
            };
            let bad_number = flat.get(stop.at).is_some_and(|l| l.is(Tok::BadNumber));
            if bad_number || flat.iter().any(|l| l.touched) {
                return Outcome::Hopeless; // reported by the lexer or the bracket pass
            }
            if self.quiet || self.errors > MAX_ERRORS {
                return Outcome::Hopeless; // nobody will read more; what can be parsed as it is still is
            }
            let view = View { builder: &*self.builder, start, lexemes: flat, at: stop.at, wants: stop.wants };
            let found = situation::find(&view);
            self.report(found.diagnostic);
            match found.repair {
                Repair::None => return Outcome::Hopeless,
                Repair::Abandon => {
                    self.quiet = true;
                    return Outcome::Hopeless;
                }
                Repair::SplitQuiet => {
                    self.quiet = true;
                    return Outcome::Split { rest: flat.len() - stop.at };
                }
                Repair::Split => return Outcome::Split { rest: flat.len() - stop.at },
                Repair::Replace(range, with) => {
                    flat.splice(range, with);
                }
            }
        }
        Outcome::Hopeless
    }
}

/// What became of a part.
#[allow(clippy::large_enum_variant, reason = "a return value, never stored")]
enum Outcome {
    Node(Node),
    /// A statement ends where so many lexemes are left; its `;` is missing.
    Split {
        rest: usize,
    },
    Hopeless,
}

fn add<T>(list: &mut Vec<Option<T>>, part: T) -> u32 {
    list.push(Some(part));
    (list.len() - 1) as u32
}

/// Does a line end between the two?
pub(crate) fn starts_line(text: &str, before: &Lexeme, l: &Lexeme) -> bool {
    text.get(before.end as usize..l.start as usize).is_some_and(|gap| gap.contains('\n'))
}

pub(crate) fn is_open(l: &Lexeme) -> bool {
    matches!(l.tok(), Some(Tok::LParen | Tok::LBracket | Tok::LBrace | Tok::StaticOpen | Tok::TilerOpen))
}

pub(crate) fn is_close(l: &Lexeme) -> bool {
    matches!(l.tok(), Some(Tok::RParen | Tok::RBracket | Tok::RBrace | Tok::AngleClose))
}

fn starts_item(tok: Tok) -> bool {
    matches!(tok, Tok::Use | Tok::Const | Tok::Atom | Tok::Fn | Tok::Kernel | Tok::Program)
}
