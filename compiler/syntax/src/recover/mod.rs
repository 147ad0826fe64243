//! What happens after a syntax error: the erroneous part is found, reported once, and the rest is kept.
//!
//! The whole file is parsed first; when that succeeds, nothing here runs. Otherwise the text is cut where the language
//! allows no doubt: items at their words, parameters and arguments at the commas of their brackets (which balance, see
//! `brackets`), statements at `;` and after blocks. Each part is parsed by the same grammar, innermost first, and
//! stands in the next larger one as a single terminal, so every token is parsed a bounded number of times. A part that
//! cannot be parsed is handed to `situation`, which names the mistake; if the mistake has one obvious repair, the
//! repaired part is parsed again, and so a second mistake in it is found too.

mod block;
mod item;

use ptoc_diagnostics::{Diagnostic, Edit, Span, codes};

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

    /// Whether an item can end with the lexeme at `i`.
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

    // ---- brackets --------------------------------------------------------------------------------------------------

    /// The lexemes `from..to` with every group replaced by parts.
    fn collapse(&mut self, from: usize, to: usize) -> Vec<Lexeme> {
        let mut flat = Vec::with_capacity(to - from);
        let mut i = from;
        while i < to {
            let l = self.lexemes[i];
            let next = self.hop(i);
            if self.braced_record(i) {
                let record = self.record_in_braces(i);
                flat.push(record);
            } else if l.is(Tok::LBrace) {
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

    /// Whether `{ a: 1, b: 2 }` begins at `i`, where a value stands.
    fn braced_record(&self, i: usize) -> bool {
        let before = i.checked_sub(1).and_then(|b| self.lexemes[b].tok());
        let value = matches!(before, Some(Tok::Assign | Tok::Colon | Tok::LParen | Tok::Comma | Tok::Return));
        value
            && self.lexemes[i].is(Tok::LBrace)
            && self.lexemes[i + 1..].first().is_some_and(|l| l.is(Tok::Name))
            && self.lexemes[i + 2..].first().is_some_and(|l| l.is(Tok::Colon) || l.is(Tok::Assign))
            && !self.lexemes[i..self.hop(i)].iter().any(|l| l.is(Tok::Semi))
    }

    /// A record as other languages have it, reported.
    fn record_in_braces(&mut self, open: usize) -> Lexeme {
        let mut edits = Vec::new();
        let close = self.record_edits(open, &mut edits);
        let span = self.span(open, close + 1);
        let message = "a record stands in parentheses, with `=` between a field and its value";
        let d = Diagnostic::error(codes::FOREIGN_SPELLING, span, message).with_edits("write it so", edits);
        self.report(d);
        let error = self.builder.error_expr(span);
        let term = Terminal::Expr(add(&mut self.builder.parts.exprs, error));
        Lexeme { term, start: span.start, end: span.end, touched: false }
    }

    /// Edits that make a record of the braces that open at `open`, and of those in it; where they close.
    fn record_edits(&self, open: usize, edits: &mut Vec<Edit>) -> usize {
        let close = self.hop(open) - 1;
        let at = |i: usize, text: &str| Edit { span: self.span(i, i + 1), text: text.into() };
        edits.push(at(open, "("));
        let (mut fields, mut i) = (0, open + 1);
        while i < close {
            let begins = i == open + 1 || self.lexemes[i - 1].is(Tok::Comma);
            fields += usize::from(begins);
            if begins && self.lexemes[i].is(Tok::Name) && self.lexemes[i + 1].is(Tok::Colon) {
                edits.push(at(i + 1, " ="));
            }
            i = if self.braced_record(i) { self.record_edits(i, edits) + 1 } else { self.hop(i) };
        }
        let comma = fields == 1 && !self.lexemes[close - 1].is(Tok::Comma);
        edits.push(at(close, if comma { ",)" } else { ")" }));
        close
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
                to = self.closing_bar(open, to, close).unwrap_or_else(|| self.hop(to));
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

    /// The bar that closes the parameters of a closure whose first bar is at `bar`, in the group that opens at `open`.
    /// The commas between them are its own.
    fn closing_bar(&self, open: usize, bar: usize, close: usize) -> Option<usize> {
        let before = &self.lexemes[bar - 1];
        let begins = bar - 1 == open || before.is(Tok::Comma) || before.is(Tok::Assign);
        if !self.lexemes[bar].is(Tok::Or) || !begins {
            return None;
        }
        let mut i = bar + 1;
        while i < close && !self.lexemes[i].is(Tok::Or) {
            i = self.hop(i);
        }
        (i < close).then_some(i)
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
            (_, Some(Node::Param(p))) => Terminal::Param(add(&mut parts.params, *p)),
            (_, Some(Node::StaticParam(p))) => Terminal::StaticParam(add(&mut parts.static_params, *p)),
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

/// Whether a line ends between the two.
pub(crate) fn starts_line(text: &str, before: &Lexeme, l: &Lexeme) -> bool {
    text.get(before.end as usize..l.start as usize).is_some_and(|gap| gap.contains('\n'))
}

pub(crate) fn is_open(l: &Lexeme) -> bool {
    matches!(l.tok(), Some(Tok::LParen | Tok::LBracket | Tok::LBrace | Tok::StaticOpen | Tok::TilerOpen))
}

pub(crate) fn is_close(l: &Lexeme) -> bool {
    matches!(l.tok(), Some(Tok::RParen | Tok::RBracket | Tok::RBrace | Tok::AngleClose))
}
