//! Between lexer and grammar: decides what each `<` and `>` is, and makes the brackets balance.
//!
//! An LR parser never says *which* bracket is open. This pass does: it reports what is unclosed, stray, mismatched or
//! nested too deeply, each once, at the bracket; and it inserts, drops or replaces brackets so that the grammar, and the
//! recovery that cuts the text at brackets, always see a balanced stream.

use ptoc_diagnostics::{Diagnostic, FileId, Span, codes};

use crate::lexer::Token;
use crate::terminal::{Lexeme, Terminal};
use crate::token::Tok;

/// Brackets nest at most this deep. It bounds the parser's stack, and is well below [`crate::ast::MAX_DEPTH`].
pub(crate) const MAX_NESTING: usize = 128;

/// How far ahead a decision may look, in tokens.
const LOOK_AHEAD: usize = 64;

/// The result of [`balance`].
#[derive(Debug, Default)]
pub(crate) struct Balanced {
    /// Every opening bracket has its closing one.
    pub lexemes: Vec<Lexeme>,
    /// What is wrong with the brackets.
    pub diagnostics: Vec<Diagnostic>,
}

/// Balances the brackets of `tokens`, which have no comments.
pub(crate) fn balance(file: FileId, text: &str, tokens: &[Token]) -> Balanced {
    let mut pass = Pass {
        file,
        text,
        tokens,
        out: Balanced { lexemes: Vec::with_capacity(tokens.len() + 2), diagnostics: Vec::new() },
        stack: Vec::new(),
        suspects: Vec::new(),
        too_deep: false,
        line_start: 0,
        indent: 0,
    };
    let mut i = 0;
    while i < tokens.len() {
        i = pass.token(i);
    }
    pass.unwind_all();
    pass.out
}

/// An open bracket.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Opening token: `(`, `[`, `{`, static or tiler `<`.
    tok: Tok,
    /// Its index in the output.
    at: usize,
    /// Indentation of its line.
    indent: u32,
    /// `for (`: the semicolons of a C loop do not mean that it is unclosed.
    c_for: bool,
    /// An `if` or `else` inside still waits for its block.
    pending_if: bool,
}

impl Open {
    fn is_angle(&self) -> bool {
        matches!(self.tok, Tok::StaticOpen | Tok::TilerOpen)
    }

    fn closer(&self) -> Tok {
        match self.tok {
            Tok::LParen => Tok::RParen,
            Tok::LBracket => Tok::RBracket,
            Tok::LBrace => Tok::RBrace,
            _ => Tok::AngleClose,
        }
    }
}

struct Pass<'a> {
    file: FileId,
    text: &'a str,
    tokens: &'a [Token],
    out: Balanced,
    stack: Vec<Open>,
    /// Braces that were closed by a `}` further left than they are: if one is missing, it is probably theirs.
    suspects: Vec<u32>,
    /// Inside the outermost open bracket something was nested too deeply: the rest of it is not to be trusted.
    too_deep: bool,
    line_start: usize,
    indent: u32,
}

impl Pass<'_> {
    /// Handles token `i`; returns the index of the next one.
    fn token(&mut self, i: usize) -> usize {
        let t = self.tokens[i];
        let first = self.new_line(i);
        if ends_angle(t.tok) {
            self.fail_angles(t);
        }
        if first && self.indent == 0 && starts_item(t.tok) && !self.stack.is_empty() {
            self.unwind_all();
        }
        if first && starts_statement(t.tok) && self.inside_round() {
            self.unwind_to_brace(false);
            let end = self.last_end();
            self.out.lexemes.push(Lexeme { term: Terminal::Tok(Tok::Semi), start: end, end, touched: true });
        }
        match t.tok {
            Tok::LParen | Tok::LBracket => return self.open(i, t.tok),
            Tok::LBrace => {
                match self.stack.last_mut() {
                    Some(top) if top.pending_if => top.pending_if = false,
                    Some(top) if matches!(top.tok, Tok::LParen | Tok::LBracket) && !top.c_for => {
                        self.unwind_to_brace(false);
                    }
                    _ => {}
                }
                return self.open(i, t.tok);
            }
            Tok::Lt => {
                let prev = i.checked_sub(1).map(|p| self.tokens[p]);
                let is_name = |p: &Token| p.tok == Tok::Name || p.tok.is_soft_keyword();
                let operand = prev.is_some_and(|p| p.tok.ends_operand());
                if prev.is_some_and(|p| is_name(&p) && p.end == t.start) {
                    return self.open(i, Tok::StaticOpen);
                } else if !operand {
                    return self.open(i, Tok::TilerOpen);
                }
                self.push(t, Tok::Lt);
            }
            Tok::Gt | Tok::Shr | Tok::Ge | Tok::ShrAssign => self.greater(t),
            Tok::RParen | Tok::RBracket => self.close_round(i),
            Tok::RBrace => self.close_brace(i, first),
            Tok::Semi => self.semicolon(i),
            Tok::If | Tok::Else => {
                if let Some(top) = self.stack.last_mut() {
                    top.pending_if = true;
                }
                self.push(t, t.tok);
            }
            tok => self.push(t, tok),
        }
        i + 1
    }

    fn push(&mut self, t: Token, tok: Tok) {
        let touched = tok == Tok::Bad;
        self.out.lexemes.push(Lexeme { term: Terminal::Tok(tok), start: t.start, end: t.end, touched });
    }

    fn span(&self, start: u32, end: u32) -> Span {
        Span::new(self.file, start, end)
    }

    fn last_end(&self) -> u32 {
        self.out.lexemes.last().map_or(0, |l| l.end)
    }

    /// Keeps track of lines; says whether token `i` is the first of its line.
    fn new_line(&mut self, i: usize) -> bool {
        let start = self.tokens[i].start as usize;
        let before = i.checked_sub(1).map_or(0, |p| self.tokens[p].end as usize);
        let newline = self.text.get(before..start).and_then(|gap| gap.rfind('\n'));
        if let Some(at) = newline {
            self.line_start = before + at + 1;
        }
        let first = i == 0 || newline.is_some();
        if first {
            self.indent = (start - self.line_start) as u32;
        }
        first
    }

    fn inside_round(&self) -> bool {
        self.stack.last().is_some_and(|o| matches!(o.tok, Tok::LParen | Tok::LBracket))
    }

    /// Opens the bracket at token `i`, or skips it as a whole if it is nested too deeply.
    fn open(&mut self, i: usize, tok: Tok) -> usize {
        let t = self.tokens[i];
        if self.stack.len() >= MAX_NESTING {
            return self.skip_deep(i);
        }
        let c_for = tok == Tok::LParen && i > 0 && self.tokens[i - 1].tok == Tok::For;
        let open = Open { tok, at: self.out.lexemes.len(), indent: self.indent, c_for, pending_if: false };
        self.stack.push(open);
        self.push(t, tok);
        i + 1
    }

    fn skip_deep(&mut self, i: usize) -> usize {
        let t = self.tokens[i];
        if !self.too_deep {
            let message = format!("brackets are nested more than {MAX_NESTING} deep");
            let d = Diagnostic::error(codes::TOO_DEEP, self.span(t.start, t.end), message);
            self.out.diagnostics.push(d.with_help("name a part with `let`, or make it a function"));
        }
        self.too_deep = true;
        let (mut depth, mut j) = (0_usize, i);
        while j < self.tokens.len() {
            match self.tokens[j].tok {
                Tok::LParen | Tok::LBracket | Tok::LBrace => depth += 1,
                Tok::RParen | Tok::RBracket | Tok::RBrace => depth = depth.saturating_sub(1),
                // A deep `<` is skipped alone.
                _ if depth == 0 => {}
                _ => {
                    j += 1;
                    continue;
                }
            }
            j += 1;
            if depth == 0 {
                break;
            }
        }
        let end = self.tokens[j.max(i + 1) - 1].end;
        self.out.lexemes.push(Lexeme { term: Terminal::Tok(Tok::Bad), start: t.start, end, touched: true });
        j.max(i + 1)
    }

    fn pop(&mut self) {
        self.stack.pop();
        if self.stack.is_empty() {
            self.too_deep = false;
            self.suspects.clear();
        }
    }

    // ---- angles ----------------------------------------------------------------------------------------------------

    /// `>` and what begins with it: closes the angle on top, if one is.
    fn greater(&mut self, mut t: Token) {
        let rest = |tok| match tok {
            Tok::Shr => Some(Tok::Gt),
            Tok::Ge => Some(Tok::Assign),
            Tok::ShrAssign => Some(Tok::Ge),
            _ => None,
        };
        while self.stack.last().is_some_and(Open::is_angle) {
            self.push(Token { tok: Tok::Gt, start: t.start, end: t.start + 1 }, Tok::AngleClose);
            self.pop();
            let Some(tok) = rest(t.tok) else { return };
            t = Token { tok, start: t.start + 1, end: t.end };
            if tok == Tok::Assign {
                break;
            }
        }
        self.push(t, t.tok);
    }

    /// Token `t` cannot stand in static arguments: the angles on top were none, or are unclosed.
    fn fail_angles(&mut self, t: Token) {
        let mut reported = false;
        while let Some(open) = self.stack.last().copied().filter(Open::is_angle) {
            let at = self.out.lexemes[open.at];
            let (lt, before) = (self.span(at.start, at.end), self.span(self.last_end(), self.last_end()));
            let name = open.at.checked_sub(1).map(|i| self.out.lexemes[i]);
            let context = open.at.checked_sub(2).and_then(|i| self.out.lexemes[i].tok());
            let name = name.and_then(|n| self.text.get(n.start as usize..n.end as usize)).unwrap_or_default();
            let named = self.out.lexemes[open.at..].iter().take(LOOK_AHEAD).any(|l| l.is(Tok::Assign));
            let ty = named || context.is_some_and(wants_type);
            self.pop();
            if open.tok == Tok::TilerOpen {
                // The grammar says what is missing around this comparison.
                self.out.lexemes[open.at].term = Terminal::Tok(Tok::Lt);
                continue;
            }
            let mut d = Diagnostic::error(
                codes::UNCLOSED_STATIC_ARGUMENTS,
                lt,
                format!("`{name}<` opens static arguments, which no `>` closes"),
            );
            if ty {
                let end = self.last_end();
                self.out.lexemes.push(Lexeme { term: Terminal::Tok(Tok::AngleClose), start: end, end, touched: true });
                d = d.with_secondary(self.span(t.start, t.end), "this cannot be in static arguments");
                d = d.with_fix("close them", before, ">");
            } else {
                self.out.lexemes[open.at].term = Terminal::Tok(Tok::Lt);
                self.out.lexemes[open.at].touched = true;
                d = d
                    .with_note("`<` right after a name opens static arguments; a comparison has a space before it")
                    .with_fix("for a comparison, insert a space", self.span(lt.start, lt.start), " ");
            }
            if !reported && !self.too_deep {
                self.out.diagnostics.push(d);
            }
            reported = true;
        }
    }

    // ---- unclosed brackets -----------------------------------------------------------------------------------------

    /// Closes the bracket on top, which nobody closed.
    fn close_top(&mut self, report: bool) {
        let Some(open) = self.stack.last().copied() else { return };
        let at = self.out.lexemes[open.at];
        let end = self.last_end();
        if report && !self.too_deep {
            // Of several braces that may be the unclosed one, indentation tells the likely one.
            let suspect = self.suspects.iter().rposition(|s| open.tok == Tok::LBrace && *s > at.start);
            let start = suspect.map_or(at.start, |i| self.suspects.remove(i));
            let (open_mark, close_mark) =
                (open.tok.mark().unwrap_or_default(), open.closer().mark().unwrap_or_default());
            let d = Diagnostic::error(
                codes::UNCLOSED_BRACKET,
                self.span(start, start + 1),
                format!("this `{open_mark}` is never closed"),
            )
            .with_label("opened here");
            let d = match suspect {
                Some(_) => d.with_note("the `}` that closes it by number is indented for an outer block"),
                None => d.with_secondary(self.span(end, end), format!("`{close_mark}` is missing here")).with_fix(
                    format!("insert `{close_mark}`"),
                    self.span(end, end),
                    close_mark,
                ),
            };
            self.out.diagnostics.push(d);
        }
        let term = Terminal::Tok(open.closer());
        self.out.lexemes.push(Lexeme { term, start: end, end, touched: true });
        self.pop();
    }

    /// Closes all round and square brackets down to the next brace.
    fn unwind_to_brace(&mut self, quiet: bool) {
        let mut first = true;
        while self.inside_round() {
            self.close_top(first && !quiet);
            first = false;
        }
    }

    /// Closes everything: at the end of the text, and before an item that starts at the margin.
    fn unwind_all(&mut self) {
        let end = self.last_end();
        self.fail_angles(Token { tok: Tok::Semi, start: end, end });
        let mut reports = 0;
        while !self.stack.is_empty() {
            let brace = self.stack.last().is_some_and(|o| o.tok == Tok::LBrace);
            // One unclosed `(` explains the brackets around it; each brace is a mistake of its own, within reason.
            self.close_top(reports < 3 && (brace || reports == 0));
            reports += 1;
            self.fail_angles(Token { tok: Tok::Semi, start: end, end });
        }
    }

    // ---- closing brackets ------------------------------------------------------------------------------------------

    /// `)` or `]`.
    fn close_round(&mut self, i: usize) {
        let t = self.tokens[i];
        let opener = if t.tok == Tok::RParen { Tok::LParen } else { Tok::LBracket };
        let in_braces = self.stack.iter().rev().take_while(|o| o.tok != Tok::LBrace);
        let matching = in_braces.clone().any(|o| o.tok == opener);
        if matching {
            let mut first = true;
            while self.stack.last().is_some_and(|o| o.tok != opener) {
                // An angle below a round bracket that is closed here cannot be closed any more.
                if self.stack.last().is_some_and(Open::is_angle) {
                    self.fail_angles(t);
                } else {
                    self.close_top(first);
                    first = false;
                }
            }
            self.push(t, t.tok);
            self.pop();
        } else if let Some(open) = self.stack.last().copied().filter(|o| o.tok != Tok::LBrace)
            && !self.closes_on_line(i + 1, open.closer())
        {
            let at = self.out.lexemes[open.at];
            let (want, got) = (open.closer().mark().unwrap_or_default(), t.tok.mark().unwrap_or_default());
            let opened = open.tok.mark().unwrap_or_default();
            if !self.too_deep {
                let span = self.span(t.start, t.end);
                let d = Diagnostic::error(
                    codes::MISMATCHED_BRACKET,
                    span,
                    format!("`{got}` cannot close `{opened}`: `{want}` does"),
                );
                let d = d.with_secondary(self.span(at.start, at.end), "opened here");
                self.out.diagnostics.push(d.with_fix(format!("write `{want}`"), span, want));
            }
            let term = Terminal::Tok(open.closer());
            self.out.lexemes.push(Lexeme { term, start: t.start, end: t.end, touched: true });
            self.pop();
        } else {
            self.stray(t);
        }
    }

    /// `}`.
    fn close_brace(&mut self, i: usize, first: bool) {
        let t = self.tokens[i];
        if !self.stack.iter().any(|o| o.tok == Tok::LBrace) {
            return self.stray(t);
        }
        self.unwind_to_brace(false);
        while self.stack.last().is_some_and(|o| o.tok != Tok::LBrace) {
            // Angles between round brackets.
            self.fail_angles(t);
            self.unwind_to_brace(true);
        }
        let Some(open) = self.stack.last().copied() else { return self.stray(t) };
        let next = self.tokens.get(i + 1).map(|n| n.tok);
        let item_ends = next.is_none_or(|n| starts_item(n) || matches!(n, Tok::Const | Tok::Hash));
        if self.stack.len() == 1 && first && self.indent > open.indent && !item_ends {
            return self.stray(t); // the item goes on: this brace is one too many
        }
        if first && self.indent < open.indent {
            self.suspects.push(self.out.lexemes[open.at].start);
        }
        self.push(t, Tok::RBrace);
        self.pop();
    }

    fn stray(&mut self, t: Token) {
        if self.too_deep {
            return;
        }
        let span = self.span(t.start, t.end);
        let mark = t.tok.mark().unwrap_or_default();
        let d = Diagnostic::error(codes::STRAY_BRACKET, span, format!("this `{mark}` closes nothing"));
        self.out.diagnostics.push(d.with_fix("remove it", span, ""));
    }

    /// `;` ends round and square brackets that should have been closed before it, unless they are closed further on.
    fn semicolon(&mut self, i: usize) {
        if let Some(open) = self.stack.last().copied()
            && self.inside_round()
            && !open.c_for
            && !self.closes_on_line(i + 1, open.closer())
        {
            self.unwind_to_brace(false);
        }
        self.push(self.tokens[i], Tok::Semi);
    }

    /// Does `closer` follow from token `i` on, on the same line and before the statement's end?
    fn closes_on_line(&self, i: usize, closer: Tok) -> bool {
        let mut depth = 0_usize;
        let mut last = self.tokens[i - 1].end as usize;
        for t in self.tokens[i..].iter().take(LOOK_AHEAD) {
            if self.text.get(last..t.start as usize).is_some_and(|gap| gap.contains('\n')) {
                return false;
            }
            last = t.end as usize;
            match t.tok {
                tok if depth == 0 && tok == closer => return true,
                Tok::LParen | Tok::LBracket => depth += 1,
                Tok::RParen | Tok::RBracket if depth > 0 => depth -= 1,
                Tok::Semi if depth == 0 => return false,
                Tok::RParen | Tok::RBracket | Tok::LBrace | Tok::RBrace => return false,
                _ => {}
            }
        }
        false
    }
}

/// Tokens that cannot stand in static arguments or a tiler outside of inner brackets.
fn ends_angle(tok: Tok) -> bool {
    starts_statement(tok)
        || matches!(
            tok,
            Tok::Semi
                | Tok::LBrace
                | Tok::RBrace
                | Tok::RParen
                | Tok::RBracket
                | Tok::AndAnd
                | Tok::OrOr
                | Tok::Eq
                | Tok::Ne
                | Tok::Le
                | Tok::Arrow
                | Tok::FatArrow
                | Tok::DotDot
                | Tok::AddAssign
                | Tok::SubAssign
                | Tok::MulAssign
                | Tok::DivAssign
                | Tok::RemAssign
                | Tok::OrAssign
                | Tok::XorAssign
                | Tok::AndAssign
                | Tok::ShlAssign
                | Tok::If
                | Tok::Else
                | Tok::Use
                | Tok::Kernel
                | Tok::Program
                | Tok::Atom
                | Tok::Where
                | Tok::Ensures
        )
}

/// Words that begin an item and cannot begin a statement.
fn starts_item(tok: Tok) -> bool {
    matches!(tok, Tok::Use | Tok::Atom | Tok::Fn | Tok::Kernel | Tok::Program)
}

/// Words that begin a statement and cannot stand in an expression.
fn starts_statement(tok: Tok) -> bool {
    matches!(
        tok,
        Tok::Let
            | Tok::Var
            | Tok::For
            | Tok::While
            | Tok::Pipeline
            | Tok::Grid
            | Tok::Return
            | Tok::Break
            | Tok::Continue
    )
}

/// After these a name is a type or an item, and `<` after it can only open static arguments.
fn wants_type(tok: Tok) -> bool {
    matches!(
        tok,
        Tok::Tile
            | Tok::Tensor
            | Tok::Kernel
            | Tok::Program
            | Tok::Fn
            | Tok::Colon
            | Tok::In
            | Tok::Out
            | Tok::InOut
            | Tok::Arrow
    )
}
