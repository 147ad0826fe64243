//! Names the mistake behind a syntax error. An LR parser knows only which tokens could have stood there; these rules
//! look at the tokens around the place, recognise the situation, and say what to do about it. The first rule that
//! applies wins; rules go from the particular to the general.

mod expr;
mod foreign;
mod item;
mod part;
mod role;
mod stmt;
mod words;

use std::ops::Range;

use ptoc_diagnostics::{Code, Diagnostic, Span, codes};

pub(crate) use item::{attribute_of_nothing, misspelt_item, no_item};
pub(crate) use words::one_for_each_word;

use crate::build::Builder;
use crate::parse::Wants;
use crate::terminal::{Lexeme, Terminal};
use crate::token::Tok;

/// A part that cannot be parsed.
pub(crate) struct View<'a, 's> {
    pub builder: &'a Builder<'s>,
    /// What it should be.
    pub start: Terminal,
    /// Its tokens; inner parts are single lexemes.
    pub lexemes: &'a [Lexeme],
    /// The first lexeme that cannot stand where it is; one past the last if something is missing at the end.
    pub at: usize,
    /// What could have stood there.
    pub wants: Wants,
}

/// What to try instead, so that further mistakes in the same part are found.
#[derive(Debug)]
pub(crate) enum Repair {
    /// Nothing: the part is given up.
    None,
    /// Nothing, and whatever else is wrong in the same statement follows from this.
    Abandon,
    /// The statement ends here.
    Split,
    /// So it does, but what follows on its line is no good statement either.
    SplitQuiet,
    /// Replace these lexemes.
    Replace(Range<usize>, Vec<Lexeme>),
}

/// A named mistake.
#[derive(Debug)]
pub(crate) struct Situation {
    pub diagnostic: Diagnostic,
    pub repair: Repair,
}

impl Situation {
    fn hopeless(diagnostic: Diagnostic) -> Option<Situation> {
        Some(Situation { diagnostic, repair: Repair::None })
    }

    fn abandon(diagnostic: Diagnostic) -> Option<Situation> {
        Some(Situation { diagnostic, repair: Repair::Abandon })
    }

    fn replace(diagnostic: Diagnostic, range: Range<usize>, with: Vec<Lexeme>) -> Option<Situation> {
        Some(Situation { diagnostic, repair: Repair::Replace(range, with) })
    }
}

/// Finds the situation of a part.
pub(crate) fn find(view: &View<'_, '_>) -> Situation {
    let by_kind = match view.start {
        Terminal::StartItem => item::find(view),
        Terminal::StartStmt | Terminal::StartTail => stmt::find(view),
        Terminal::StartParam => part::param(view),
        Terminal::StartStaticParam => part::static_param(view),
        Terminal::StartGridVar => part::grid_var(view),
        _ => None,
    };
    by_kind
        .or_else(|| expr::result_of_closure(view))
        .or_else(|| foreign::find(view))
        .or_else(|| expr::find(view))
        .or_else(|| stmt::missing_body(view))
        .or_else(|| stmt::missing_head(view))
        .or_else(|| stmt::missing_semicolon(view))
        .or_else(|| part::missing_comma(view))
        .unwrap_or_else(|| unexpected(view))
}

/// No rule applies.
fn unexpected(view: &View<'_, '_>) -> Situation {
    let message = match (view.get(view.at), view.prev()) {
        (Some(l), Some(prev)) => format!("{} cannot follow {}", view.show(l), view.show(prev)),
        (Some(l), None) => format!("{} cannot stand here", view.show(l)),
        (None, _) => "something is missing here".to_owned(),
    };
    let span = view.here();
    Situation { diagnostic: Diagnostic::error(codes::UNEXPECTED_TOKEN, span, message), repair: Repair::None }
}

impl View<'_, '_> {
    fn get(&self, i: usize) -> Option<&Lexeme> {
        self.lexemes.get(i)
    }

    /// The token at `i`, if there is one that is no part.
    fn tok(&self, i: usize) -> Option<Tok> {
        self.get(i).and_then(Lexeme::tok)
    }

    /// The token where the parse stopped.
    fn here_tok(&self) -> Option<Tok> {
        self.tok(self.at)
    }

    fn prev(&self) -> Option<&Lexeme> {
        self.at.checked_sub(1).and_then(|i| self.get(i))
    }

    fn prev_tok(&self) -> Option<Tok> {
        self.prev().and_then(Lexeme::tok)
    }

    fn first(&self) -> Option<Tok> {
        self.tok(0)
    }

    fn at_end(&self) -> bool {
        self.at >= self.lexemes.len()
    }

    /// The text of the lexeme at `i`; the spelling of its token if a repair inserted it.
    fn text(&self, i: usize) -> &str {
        let Some(l) = self.get(i) else { return "" };
        let spelling = || l.tok().and_then(|t| t.word().or_else(|| t.mark())).unwrap_or_default();
        if l.start == l.end { spelling() } else { self.builder.text(l.start, l.end) }
    }

    fn span_of(&self, l: &Lexeme) -> Span {
        self.builder.span(l.start, l.end)
    }

    fn span(&self, i: usize) -> Span {
        self.get(i).map_or_else(|| self.after_prev(), |l| self.span_of(l))
    }

    /// From the start of `from` to the end of `to`.
    fn between(&self, from: usize, to: usize) -> Span {
        self.span(from).to(self.span(to))
    }

    /// The place where the parse stopped: the lexeme, or the end of the last one.
    fn here(&self) -> Span {
        self.get(self.at).map_or_else(|| self.after_prev(), |l| self.span_of(l))
    }

    /// The empty span after the lexeme before: where something is missing.
    fn after_prev(&self) -> Span {
        let end = self.at.min(self.lexemes.len()).checked_sub(1).map_or(0, |i| self.lexemes[i].end);
        self.builder.span(end, end)
    }

    /// Whether lexeme `i` touches the one before it.
    fn glued(&self, i: usize) -> bool {
        i.checked_sub(1).and_then(|p| self.get(p)).is_some_and(|p| self.get(i).is_some_and(|l| p.end == l.start))
    }

    /// Whether lexeme `i` begins a line.
    fn starts_line(&self, i: usize) -> bool {
        match (i.checked_sub(1).and_then(|p| self.get(p)), self.get(i)) {
            (Some(p), Some(l)) => crate::recover::starts_line(self.builder.source(), p, l),
            _ => false,
        }
    }

    /// Whether lexeme `i` can end an operand.
    fn ends_operand(&self, i: usize) -> bool {
        self.get(i).is_some_and(|l| l.tok().is_none_or(|t| t.ends_operand() || t.is_soft_keyword()))
    }

    /// Whether lexeme `i` can begin an operand.
    fn starts_operand(&self, i: usize) -> bool {
        self.get(i).is_some_and(|l| match l.term {
            Terminal::Expr(_) | Terminal::Arg(_) => true,
            Terminal::Tok(t) => {
                t.is_soft_keyword()
                    || matches!(
                        t,
                        Tok::Name
                            | Tok::Int
                            | Tok::Float
                            | Tok::BadNumber
                            | Tok::Str
                            | Tok::Hole
                            | Tok::True
                            | Tok::False
                            | Tok::LParen
                            | Tok::Tile
                            | Tok::Tensor
                    )
            }
            _ => false,
        })
    }

    /// How a lexeme is called in a message.
    fn show(&self, l: &Lexeme) -> String {
        let text = self.builder.text(l.start, l.end);
        match l.term {
            Terminal::Block(_) => "a block".to_owned(),
            _ if text.is_empty() => "what is missing".to_owned(),
            Terminal::Expr(_) | Terminal::Arg(_) | Terminal::Tok(Tok::BadNumber)
                if text.len() > 24 || text.contains('\n') =>
            {
                "an expression".to_owned()
            }
            Terminal::Tok(Tok::Str) => "a string".to_owned(),
            _ => format!("`{text}`"),
        }
    }

    /// An index before `end` at which one of `toks` stands, outside of brackets; the last such.
    fn find_back(&self, end: usize, toks: &[Tok]) -> Option<usize> {
        let mut depth = 0_usize;
        for i in (0..end.min(self.lexemes.len())).rev() {
            let l = &self.lexemes[i];
            if crate::recover::is_close(l) {
                depth += 1;
            } else if crate::recover::is_open(l) {
                depth = depth.checked_sub(1)?;
            } else if depth == 0 && l.tok().is_some_and(|t| toks.contains(&t)) {
                return Some(i);
            }
        }
        None
    }

    /// An inserted or changed lexeme for a repair.
    fn made(&self, tok: Tok, like: Span) -> Lexeme {
        Lexeme { term: Terminal::Tok(tok), start: like.start, end: like.end, touched: false }
    }

    fn error(&self, code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, span, message)
    }

    /// "`found` is spelled otherwise here": replace lexemes `range` by `text`, which reads as `tok`.
    fn respell(&self, range: Range<usize>, message: String, text: &str, tok: Tok) -> Option<Situation> {
        let span = self.between(range.start, range.end - 1);
        let fix = if text.is_empty() { "remove it".to_owned() } else { format!("write `{}`", text.trim()) };
        let d = self.error(codes::FOREIGN_SPELLING, span, message).with_fix(fix, span, text);
        let with = if text.is_empty() { Vec::new() } else { vec![self.made(tok, span)] };
        Situation::replace(d, range, with)
    }
}
