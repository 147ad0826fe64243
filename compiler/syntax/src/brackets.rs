//! Between lexer and grammar: decides what each `<` and `>` is, and makes the brackets balance.
//!
//! An LR parser never says *which* bracket is open. This pass does: it reports what is unclosed, stray, mismatched or
//! nested too deeply, each once, at the bracket; and it inserts, drops or replaces brackets so that the grammar, and the
//! recovery that cuts the text at brackets, always see a balanced stream.

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
    let mut pass = Pass {
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
    /// Between the word of a function, kernel or program and its body: the index of its name, and whether its parameters
    /// have been seen.
    header: Option<(usize, bool)>,
    /// The next brace is the block of an `if` or `else`.
    next_of_if: bool,
    /// A bracket of this statement was reported: further ones follow from the same mistake.
    reported: bool,
}

impl Pass<'_> {
    /// Handles token `i`; returns the index of the next one.
    fn token(&mut self, i: usize) -> usize {
        let t = self.tokens[i];
        let first = self.new_line(i);
        let ends = i.checked_sub(1).map(|p| self.tokens[p].tok);
        if matches!(ends, Some(Tok::Semi | Tok::LBrace | Tok::RBrace)) || (first && starts_statement(t.tok)) {
            self.reported = false;
        }
        if ends_angle(t.tok) {
            self.fail_angles(t);
        }
        if first && self.indent == 0 && starts_item(t.tok) && !self.stack.is_empty() {
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
                match self.stack.last_mut() {
                    Some(_) if head.is_some() => {}
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

    /// `tile Vec <f32, 8, 8>`: where a type or a new name is expected, nothing is compared.
    fn spaced_static(&mut self, i: usize) {
        let (name, lt) = (self.tokens[i - 1], self.tokens[i]);
        let gap = self.span(name.end, lt.start);
        let text = self.text.get(name.start as usize..name.end as usize).unwrap_or_default();
        let message = format!("a space stands between `{text}` and its static arguments");
        let d = Diagnostic::error(codes::SPACED_STATIC_ARGUMENTS, self.span(lt.start, lt.end), message);
        let d = d.with_note("`<` right after a name opens static arguments; a comparison has a space before it");
        self.report(d.with_fix("remove the space", gap, ""));
    }

    /// The header of a function or kernel is complete, and a statement begins where `{` should stand.
    fn missing_brace(&mut self, i: usize) {
        let Some((name, _)) = self.header.take() else { return };
        let end = self.last_end();
        let name = self.tokens.get(name).map(|n| n.start as usize..n.end as usize);
        let name = name.and_then(|n| self.text.get(n)).unwrap_or_default();
        let message = format!("the body of `{name}` must begin with `{{`");
        let here = self.span(end, end);
        let d = Diagnostic::error(codes::MISSING_BRACE, here, message).with_fix("insert `{`", here, " {");
        self.report(d);
        let open = Open {
            tok: Tok::LBrace,
            at: self.out.lexemes.len(),
            indent: 0,
            c_for: false,
            of_if: false,
            pending_block: None,
        };
        self.stack.push(open);
        let term = Terminal::Tok(Tok::LBrace);
        let end = self.tokens[i].start.min(end);
        self.out.lexemes.push(Lexeme { term, start: end, end, touched: true });
    }

    /// Keeps track of the header that is being read; see [`Pass::missing_brace`].
    fn track_header(&mut self, i: usize, first: bool) {
        if !self.stack.is_empty() {
            return;
        }
        let t = self.tokens[i].tok;
        let prev = i.checked_sub(1).map(|p| self.tokens[p].tok);
        if matches!(t, Tok::Fn | Tok::Kernel | Tok::Program) {
            self.header = Some((i + 1, false));
            return;
        }
        let complete =
            prev.is_some_and(Tok::ends_operand) && self.out.lexemes.last().is_some_and(|l| !l.is(Tok::RBrace));
        let begins =
            starts_statement(t) || t == Tok::If || (t == Tok::Name && complete && !self.brace_before_semicolon(i));
        if let Some(header) = &mut self.header {
            header.1 |= prev == Some(Tok::RParen);
        }
        let after_params = self.header.is_some_and(|h| h.1);
        if first && self.indent > 0 && begins && after_params {
            self.missing_brace(i);
        } else if matches!(t, Tok::LBrace | Tok::Semi | Tok::RBrace | Tok::Const | Tok::Use | Tok::Atom | Tok::Hash) {
            self.header = None;
        }
    }

    /// Does a `{` follow before the next `;`?
    fn brace_before_semicolon(&self, i: usize) -> bool {
        let mut ahead = self.tokens[i..].iter().take(4 * LOOK_AHEAD).map(|t| t.tok);
        ahead.find(|t| matches!(t, Tok::LBrace | Tok::RBrace | Tok::Semi)) == Some(Tok::LBrace)
    }

    /// A statement begins on its own line though a block is due: if a `}` follows that is indented as the loop or branch
    /// is, then only its `{` is missing.
    fn missing_inner_brace(&mut self, i: usize) {
        let Some(top) = self.stack.last().filter(|o| o.tok == Tok::LBrace) else { return };
        let Some((head, indent)) = top.pending_block else { return };
        let mut depth = 0_usize;
        let mut closes = false;
        for t in self.tokens[i..].iter().take(8 * LOOK_AHEAD) {
            match t.tok {
                Tok::LBrace => depth += 1,
                Tok::RBrace if depth > 0 => depth -= 1,
                Tok::RBrace => {
                    let line = self.text[..t.start as usize].rfind('\n').map_or(0, |n| n + 1);
                    let before = &self.text[line..t.start as usize];
                    closes = before.trim().is_empty() && before.len() == indent as usize;
                    break;
                }
                _ => {}
            }
        }
        if !closes {
            return;
        }
        if let Some(top) = self.stack.last_mut() {
            top.pending_block = None;
        }
        let end = self.last_end();
        let here = self.span(end, end);
        let word = self.tokens[head].tok.word().unwrap_or_default();
        let d = Diagnostic::error(codes::MISSING_BRACE, here, format!("the body of `{word}` must begin with `{{`"));
        self.report(d.with_fix("insert `{`", here, " {"));
        let open = Open {
            tok: Tok::LBrace,
            at: self.out.lexemes.len(),
            indent,
            c_for: false,
            of_if: false,
            pending_block: None,
        };
        self.stack.push(open);
        self.out.lexemes.push(Lexeme { term: Terminal::Tok(Tok::LBrace), start: end, end, touched: true });
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
                let next = self.out.lexemes.get(open.at + 1).map_or(t.start, |l| l.start);
                let text = if next == lt.end { " < " } else { " <" };
                d = d
                    .with_note("`<` right after a name opens static arguments; a comparison has a space before it")
                    .with_fix("for a comparison, insert a space", lt, text);
            }
            if !reported && !self.too_deep {
                self.report_bracket(d);
            }
            reported = true;
        }
    }

    // ---- unclosed brackets -----------------------------------------------------------------------------------------

    /// Closes the bracket on top, which nobody closed.
    fn close_top(&mut self) {
        if let Some(open) = self.stack.last() {
            let end = self.last_end();
            let term = Terminal::Tok(open.closer());
            self.out.lexemes.push(Lexeme { term, start: end, end, touched: true });
            self.pop();
        }
    }

    /// Closes round and square brackets as long as `go_on` says so, with one report for all of them: `more` follows them
    /// in the repaired text.
    fn unwind(&mut self, more: &str, go_on: impl Fn(&Open) -> bool) {
        self.unwind_while(more, |open, _| go_on(open));
    }

    /// As [`Pass::unwind`]; `go_on` is told how many brackets are open, too.
    fn unwind_while(&mut self, more: &str, go_on: impl Fn(&Open, usize) -> bool) {
        // Closing the outermost bracket forgets it.
        let too_deep = self.too_deep;
        let end = self.last_end();
        let mut report: Option<Diagnostic> = None;
        let mut closers = String::new();
        while let Some(open) = self.stack.last().copied().filter(|o| go_on(o, self.stack.len())) {
            let at = self.out.lexemes[open.at];
            let span = self.span(at.start, at.end);
            closers += open.closer().mark().unwrap_or_default();
            report = Some(match report {
                None => self.unclosed(span, open.tok),
                Some(d) => d.with_secondary(span, "nor is this one"),
            });
            self.close_top();
        }
        if let Some(d) = report.filter(|_| !too_deep) {
            let at = self.span(end, end);
            let d = d.with_secondary(at, format!("`{closers}` is missing here"));
            let text = format!("{closers}{more}");
            self.report_bracket(d.with_fix(format!("insert `{text}`"), at, text));
        }
    }

    fn unclosed(&self, span: Span, tok: Tok) -> Diagnostic {
        let mark = tok.mark().unwrap_or_default();
        Diagnostic::error(codes::UNCLOSED_BRACKET, span, format!("this `{mark}` is never closed"))
            .with_label("opened here")
    }

    /// Closes all round and square brackets down to the next brace.
    fn unwind_to_brace(&mut self, more: &str) {
        self.unwind(more, |o| matches!(o.tok, Tok::LParen | Tok::LBracket));
    }

    /// Closes everything: at the end of the text, and before an item that starts at the margin.
    fn unwind_all(&mut self) {
        let mut reports = 0;
        while !self.stack.is_empty() {
            let end = self.last_end();
            self.fail_angles(Token { tok: Tok::Semi, start: end, end });
            self.unwind_to_brace("");
            let Some(open) = self.stack.last().copied().filter(|o| o.tok == Tok::LBrace) else { continue };
            if reports < 3 && !self.too_deep {
                self.unclosed_brace(open);
            }
            reports += 1;
            self.close_top();
        }
    }

    fn unclosed_brace(&mut self, open: Open) {
        let at = self.out.lexemes[open.at];
        // Of several braces that may be the unclosed one, indentation tells the likely one.
        let d = match self.suspects.iter().rposition(|s| *s > at.start) {
            Some(i) => {
                let start = self.suspects.remove(i);
                self.unclosed(self.span(start, start + 1), Tok::LBrace)
                    .with_note("the `}` that closes it by number is indented for an outer block")
            }
            None => {
                let end = self.last_end();
                let here = self.span(end, end);
                let text = format!("\n{}}}", " ".repeat(open.indent as usize));
                self.unclosed(self.span(at.start, at.end), Tok::LBrace)
                    .with_secondary(here, "`}` is missing here")
                    .with_fix("insert `}`", here, text)
            }
        };
        self.report(d);
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

/// After these a name is a type or a new item: `<` can only open its static arguments, even after a space.
fn wants_static(tok: Tok) -> bool {
    matches!(
        tok,
        Tok::Tile | Tok::Tensor | Tok::Kernel | Tok::Program | Tok::Fn | Tok::In | Tok::Out | Tok::InOut | Tok::Arrow
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
