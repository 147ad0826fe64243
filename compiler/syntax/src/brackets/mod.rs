//! Between lexer and grammar: decides what each `<` and `>` is, and makes the brackets balance.
//!
//! An LR parser never says *which* bracket is open. This pass does: it reports what is unclosed, stray, mismatched or
//! nested too deeply, each once, at the bracket; and it inserts, drops or replaces brackets so that the grammar, and
//! the recovery that cuts the text at brackets, always see a balanced stream.

mod angles;
mod bodies;
mod unclosed;

use angles::{ends_angle, wants_static};
use ptoc_diagnostics::{Diagnostic, FileId, Span, codes};

use crate::lexer::{MAX_ERRORS, Token};
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
    /// Reports beyond [`MAX_ERRORS`] that were dropped.
    pub dropped: usize,
}

/// Balances the brackets of `tokens`, which have no comments.
pub(crate) fn balance(file: FileId, text: &str, tokens: &[Token]) -> Balanced {
    let mut pass = BracketMatcher {
        file,
        text,
        tokens,
        out: Balanced { lexemes: Vec::with_capacity(tokens.len() + 2), diagnostics: Vec::new(), dropped: 0 },
        stack: Vec::new(),
        suspects: Vec::new(),
        too_deep: false,
        line_start: 0,
        indent: 0,
        header: None,
        next_of_if: false,
        reported: false,
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
    /// The block of an `if` or `else`.
    of_if: bool,
    /// An `if`, `else`, `for` or `while` directly inside that still waits for its block: its index and indentation.
    pending_block: Option<(usize, u32)>,
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

struct BracketMatcher<'a> {
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
    /// Between the word of a function, kernel or program and its body: the index of its name, and whether its
    /// parameters have been seen.
    header: Option<(usize, bool)>,
    /// The next brace is the block of an `if` or `else`.
    next_of_if: bool,
    /// A bracket of this statement was reported: further ones follow from the same mistake.
    reported: bool,
}

impl BracketMatcher<'_> {
    /// Handles token `i`; returns the index of the next one.
    fn token(&mut self, i: usize) -> usize {
        let t = self.tokens[i];
        let first = self.new_line(i);
        let ends = i.checked_sub(1).map(|p| self.tokens[p].tok);
        if matches!(ends, Some(Tok::Semi | Tok::LBrace | Tok::RBrace)) || (first && starts_statement(t.tok)) {
            self.reported = false;
        }
        // The block of a closure may stand in any brackets; so may what is meant to be one, or a record.
        let of_closure =
            t.tok == Tok::LBrace && (self.ends_closure_head(i) || self.ends_function_head(i) || self.braces_record(i));
        if ends_angle(t.tok) && !of_closure {
            self.fail_angles(t);
        }
        // Behind these `fn` is a type.
        let of_type = matches!(ends, Some(Tok::Colon | Tok::Arrow));
        // A static parameter, and no item: `fn act = relu`.
        let of_static = t.tok == Tok::Fn
            && self.stack.last().is_some_and(Open::is_angle)
            && matches!(self.tokens.get(i + 2).map(|n| n.tok), Some(Tok::Assign | Tok::Comma | Tok::Gt));
        if first && self.indent == 0 && starts_item(t.tok) && !of_type && !of_static && !self.stack.is_empty() {
            self.unwind_all();
        }
        self.track_header(i, first);
        if first && i > 0 && self.out.lexemes.last().is_some_and(|l| l.tok().is_some_and(Tok::ends_operand)) {
            let begins = starts_statement(t.tok) || matches!(t.tok, Tok::If | Tok::Name | Tok::Const);
            if begins {
                self.missing_inner_brace(i);
            }
        }
        if first && starts_statement(t.tok) && self.inside_round() {
            self.unwind_to_brace(";");
            let end = self.last_end();
            self.out.lexemes.push(Lexeme { term: Terminal::Tok(Tok::Semi), start: end, end, touched: true });
        }
        match t.tok {
            Tok::LParen | Tok::LBracket => return self.open(i, t.tok),
            Tok::LBrace => {
                let head = self.stack.last_mut().and_then(|top| top.pending_block.take());
                self.next_of_if = head.is_some_and(|(h, _)| matches!(self.tokens[h].tok, Tok::If | Tok::Else));
                let round = self.stack.last().is_some_and(|top| matches!(top.tok, Tok::LParen | Tok::LBracket));
                let second = round && head.is_none() && ends == Some(Tok::RBrace);
                match self.stack.last_mut() {
                    Some(_) if head.is_some() || of_closure => {}
                    _ if second => self.missing_else(),
                    Some(top) if matches!(top.tok, Tok::LParen | Tok::LBracket) && !top.c_for => {
                        self.unwind_to_brace("");
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
                } else if prev.is_some_and(|p| is_name(&p)) && i >= 2 && wants_static(self.tokens[i - 2].tok) {
                    self.spaced_static(i);
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
            Tok::If | Tok::Else | Tok::For | Tok::While => {
                // `else` follows a `}`; in the block of an `if`, that one is missing.
                let after_brace = self.out.lexemes.last().is_some_and(|l| l.is(Tok::RBrace));
                if t.tok == Tok::Else && !after_brace && self.stack.last().is_some_and(|o| o.of_if) {
                    let depth = self.stack.len();
                    self.unwind_while("", |o, len| o.of_if && len == depth);
                }
                if let Some(top) = self.stack.last_mut() {
                    top.pending_block = Some((i, self.indent));
                }
                self.push(t, t.tok);
            }
            tok => self.push(t, tok),
        }
        i + 1
    }

    /// `(if c { a } { b })`: in round brackets a block behind a block is that of an `else`.
    fn missing_else(&mut self) {
        let end = self.last_end();
        let span = self.span(end, end);
        let d =
            Diagnostic::error(codes::IF_WITHOUT_ELSE, span, "`else` is missing between the two values of this `if`");
        self.report(d.with_fix("insert `else`", span, " else"));
        self.out.lexemes.push(Lexeme { term: Terminal::Tok(Tok::Else), start: end, end, touched: false });
        self.next_of_if = true;
    }

    /// Whether the parameters of a closure stand before token `i`, with their last bar or without it.
    fn ends_closure_head(&self, i: usize) -> bool {
        let at = |k: usize| i.checked_sub(k).map(|p| self.tokens[p].tok);
        if at(1) == Some(Tok::Or) {
            return true;
        }
        let names = |t: Tok| matches!(t, Tok::Name | Tok::Comma | Tok::Colon | Tok::Arrow);
        let bar = (1..LOOK_AHEAD).find(|k| !at(*k).is_some_and(names));
        bar.is_some_and(|k| {
            let opens = !at(k + 1).is_some_and(Tok::ends_operand) || at(k - 1) == Some(Tok::Arrow);
            k > 1 && at(k) == Some(Tok::Or) && opens
        })
    }

    /// Whether `fn (v)` or `fn (v) -> f32` stands before token `i`, where a value stands.
    fn ends_function_head(&self, i: usize) -> bool {
        let at = |k: usize| i.checked_sub(k).map(|p| self.tokens[p].tok);
        let close = if at(2) == Some(Tok::Arrow) { 3 } else { 1 };
        let open = (close..LOOK_AHEAD).find(|k| at(*k) == Some(Tok::LParen));
        let word = open.filter(|k| at(close) == Some(Tok::RParen) && at(k + 1) == Some(Tok::Fn));
        word.is_some_and(|k| matches!(at(k + 2), Some(Tok::LParen | Tok::Comma | Tok::Assign)))
    }

    /// Whether `{ a: 1` begins at token `i`, in round brackets.
    fn braces_record(&self, i: usize) -> bool {
        let at = |k: usize| self.tokens.get(k).map(|t| t.tok);
        let value = i > 0 && matches!(at(i - 1), Some(Tok::LParen | Tok::Comma));
        value && at(i + 1) == Some(Tok::Name) && matches!(at(i + 2), Some(Tok::Colon | Tok::Assign))
    }

    fn push(&mut self, t: Token, tok: Tok) {
        let touched = tok == Tok::Bad;
        self.out.lexemes.push(Lexeme { term: Terminal::Tok(tok), start: t.start, end: t.end, touched });
    }

    fn span(&self, start: u32, end: u32) -> Span {
        Span::new(self.file, start, end)
    }

    /// Reports a bracket, unless another one of the same statement was.
    fn report_bracket(&mut self, diagnostic: Diagnostic) {
        if !std::mem::replace(&mut self.reported, true) {
            self.report(diagnostic);
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.out.diagnostics.len() < MAX_ERRORS {
            self.out.diagnostics.push(diagnostic);
        } else {
            self.out.dropped += 1;
        }
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
        let of_if = tok == Tok::LBrace && std::mem::take(&mut self.next_of_if);
        let open = Open { tok, at: self.out.lexemes.len(), indent: self.indent, c_for, of_if, pending_block: None };
        self.stack.push(open);
        self.push(t, tok);
        i + 1
    }

    fn skip_deep(&mut self, i: usize) -> usize {
        let t = self.tokens[i];
        if !self.too_deep {
            let message = format!("brackets are nested more than {MAX_NESTING} deep");
            let d = Diagnostic::error(codes::TOO_DEEP, self.span(t.start, t.end), message);
            self.report(d.with_help("name a part with `let`, or make it a function"));
        }
        self.too_deep = true;
        let (mut depth, mut j) = (0_usize, i);
        while j < self.tokens.len() {
            let margin = self.text[..self.tokens[j].start as usize].ends_with('\n');
            if margin && j > i && (starts_item(self.tokens[j].tok) || self.tokens[j].tok == Tok::Const) {
                break;
            }
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

    // ---- closing brackets ------------------------------------------------------------------------------------------

    /// `)` or `]`.
    fn close_round(&mut self, i: usize) {
        let t = self.tokens[i];
        let opener = if t.tok == Tok::RParen { Tok::LParen } else { Tok::LBracket };
        let in_braces = self.stack.iter().rev().take_while(|o| o.tok != Tok::LBrace);
        let matching = in_braces.clone().any(|o| o.tok == opener);
        if matching {
            while self.stack.last().is_some_and(|o| o.tok != opener) {
                // An angle below a round bracket that is closed here cannot be closed any more.
                self.fail_angles(t);
                self.unwind("", |o| o.tok != opener && !o.is_angle());
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
                self.report_bracket(d.with_fix(format!("write `{want}`"), span, want));
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
        while self.stack.last().is_some_and(|o| o.tok != Tok::LBrace) {
            self.unwind_to_brace("");
            self.fail_angles(t);
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
        if let Some(last) = self.out.lexemes.last_mut() {
            last.touched = true;
        }
        let span = self.span(t.start, t.end);
        let mark = t.tok.mark().unwrap_or_default();
        let d = Diagnostic::error(codes::STRAY_BRACKET, span, format!("this `{mark}` closes nothing"));
        self.report_bracket(d.with_fix("remove it", span, ""));
    }

    /// `;` ends round and square brackets that should have been closed before it, unless they are closed further on.
    fn semicolon(&mut self, i: usize) {
        if let Some(open) = self.stack.last().copied()
            && self.inside_round()
            && !open.c_for
            && !self.closes_on_line(i + 1, open.closer())
        {
            self.unwind_to_brace("");
        }
        if let Some(top) = self.stack.last_mut().filter(|o| !o.c_for) {
            top.pending_block = None;
        }
        self.push(self.tokens[i], Tok::Semi);
    }

    /// Whether `closer` follows from token `i` on, on the same line and before the statement's end.
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
